/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuRankTiles_h
#define chunkwiseCpuRankTiles_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

/** Whether windows of this radius are found in sorted tiles, rather than bit by bit. */
bool
RankTilesTake(const Coordinates & radius, PixelType kind);

/** Bytes that each worker needs for them; they do not shrink when the output grows. */
std::int64_t
RankTilesBytes(const Coordinates & radius, const Box & output, PixelType kind);

/** The extent of such a tile. */
Coordinates
RankTileExtent(const Box & output, const Coordinates & radius);

/** Finds ranks in such windows (RankWindows), which reach no farther than `radius`, of a part of the output, with the
 * memory of one worker. */
void
RunRankTilesOf(const KernelCall & call, const Coordinates & radius, const Box & part, char * memory);

} // namespace chunkwise

#endif
