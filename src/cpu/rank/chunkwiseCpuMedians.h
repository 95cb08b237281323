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

/** How many of so many components are taken together: all or one. Rows of few voxels would share too many columns with
 * the next ones. */
std::int64_t
MediansTogether(const Coordinates & radius, PixelType kind, std::int64_t components);

/** The extent of a tile of them, of so many components together; it does not shrink when the output grows. */
Coordinates
MedianTileExtent(const Box & output, const Coordinates & radius, PixelType kind, std::int64_t components);

/** Bytes that each worker needs for a tile of this extent. */
std::int64_t
MedianTileBytes(const Coordinates & tile, const Coordinates & radius, PixelType kind, std::int64_t components,
                bool isMasked = false);

/** Computes a tile of the output, whose components are side by side if there are several. False, and nothing done, if
 * there is a NaN in its windows. */
bool
RunMedianTile(const KernelCall & call, const Coordinates & radius, const Box & tile, std::int64_t components,
              char * memory);

/** Says which voxels medians see. */
struct MedianMask
{
  /** Bytes that are not 0 there. */
  BufferView inside;
  /** The result of windows that see nothing. */
  PixelValue empty;
};

/** The same of what a mask has inside, of one component. */
void
RunMaskedMedianTile(const KernelCall & call, const Coordinates & radius, const Box & tile, const MedianMask & mask,
                    char * memory);

} // namespace chunkwise

#endif
