/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuMean_h
#define chunkwiseCpuMean_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

/** Runs the kernel "mean", or means and sums of a FootprintOperation that has sides. */
void
RunMean(const KernelCall & call);

std::size_t
ScratchOfMean(const Operation & operation, const ChunkShape & chunk);

} // namespace chunkwise

#endif
