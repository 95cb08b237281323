/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuMedians_h
#define chunkwiseCpuMedians_h

#include "chunkwiseOperation.h"
#include "chunkwiseRankOperation.h"

namespace chunkwise
{

/** Whether networks find the results of an operation in an image: medians of small windows. */
bool
MediansTake(const RankOperation & operation, const Coordinates & image);

/** The extent of a tile of them; it does not shrink when the output grows. */
Coordinates
MedianTileExtent(const Box & output, const Coordinates & radius, PixelKind kind);

/** Bytes that each worker needs for a tile of this extent. */
std::int64_t
MedianTileBytes(const Coordinates & tile, const Coordinates & radius, PixelKind kind);

/** Computes a tile of the output. False, and nothing done, if there is a NaN in its windows. */
bool
RunMedianTile(const KernelCall & call, const Coordinates & radius, const Box & tile, char * memory);

} // namespace chunkwise

#endif
