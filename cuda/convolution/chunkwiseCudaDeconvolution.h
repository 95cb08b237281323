/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaDeconvolution_h
#define chunkwiseCudaDeconvolution_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

void
RegisterCudaDeconvolution(KernelRegistry & registry);

} // namespace chunkwise

#endif
