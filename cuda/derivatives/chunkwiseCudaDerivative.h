/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaDerivative_h
#define chunkwiseCudaDerivative_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

void
RegisterCudaDerivative(KernelRegistry & registry);
void
RegisterCudaScaleStep(KernelRegistry & registry);

} // namespace chunkwise

#endif
