/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuDiffusion_h
#define chunkwiseCpuDiffusion_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

void
RegisterHostDiffusion(KernelRegistry & registry);

} // namespace chunkwise

#endif
