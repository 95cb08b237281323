/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuDeconvolution_h
#define chunkwiseCpuDeconvolution_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

void
RegisterHostDeconvolution(KernelRegistry & registry);

} // namespace chunkwise

#endif
