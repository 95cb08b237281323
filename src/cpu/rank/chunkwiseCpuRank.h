/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuRank_h
#define chunkwiseCpuRank_h

#include "chunkwiseKernelChoice.h"

namespace chunkwise
{

/** How a RankOperation, or a rank of a FootprintOperation that has sides, is computed. */
KernelChoice
ChooseRank(const Operation & operation, const ChunkShape & shape);

} // namespace chunkwise

#endif
