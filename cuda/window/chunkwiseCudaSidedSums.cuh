/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaSidedSums_cuh
#define chunkwiseCudaSidedSums_cuh

#include "chunkwiseOperation.h"

namespace chunkwise
{

/** Runs means and sums of a FootprintOperation that has sides. */
void
RunSidedSums(const KernelCall & call);

/** Bytes of scratch that they take. */
std::size_t
ScratchOfSidedSums(const Operation & operation, const ChunkShape & shape);

} // namespace chunkwise

#endif
