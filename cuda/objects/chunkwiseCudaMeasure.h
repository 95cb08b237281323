/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaMeasure_h
#define chunkwiseCudaMeasure_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

void
RegisterCudaMeasure(KernelRegistry & registry);

} // namespace chunkwise

#endif
