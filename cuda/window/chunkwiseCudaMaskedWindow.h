/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaMaskedWindow_h
#define chunkwiseCudaMaskedWindow_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

/** Registers the kernel of DomainOperation: a march of its own, or the stages. */
void
RegisterCudaMaskedWindows(KernelRegistry & registry);

} // namespace chunkwise

#endif
