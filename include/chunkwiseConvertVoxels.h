/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseConvertVoxels_h
#define chunkwiseConvertVoxels_h

#include "chunkwiseGeometry.h"

namespace chunkwise
{

/** `count` voxels of one kind as another: rounded to nearest, ties to even, and cut where the kind ends. Returns how
 * many voxels were cut; a NaN that becomes an integer is 0 and counts. Those of `to` lie `step` apart. */
Chunkwise_EXPORT std::int64_t
                 ConvertVoxels(const void * from, PixelType fromKind, void * to, PixelType toKind, std::int64_t count,
                               std::int64_t step = 1);

/** How many of `count` voxels have the lowest or the highest value of their integer kind. */
Chunkwise_EXPORT std::int64_t
                 CountVoxelsAtLimits(const void * voxels, PixelType kind, std::int64_t count);

} // namespace chunkwise

#endif
