/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePipedCall_h
#define chunkwisePipedCall_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

/** A device's kernel `piped` finds this at call.sideIn: the host's kernel `head` and a call for it that reads
 * the host's images, in which it sets what the two kernels agree on. */
struct PipedCall
{
  const Kernel * kernel;
  KernelCall     call;
};

} // namespace chunkwise

#endif
