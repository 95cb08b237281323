/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseOverlap_h
#define chunkwiseOverlap_h

#include "chunkwiseGeometry.h"

namespace chunkwise
{

/** Voxels that two boxes have in common and that are one block in a dense buffer of each: the end of the first one's,
 * the begin of the second one's. */
struct Overlap
{
  /** The second box goes on from the first one: there may be no voxels in common all the same. */
  bool         goesOn{ false };
  std::int64_t voxels{ 0 };
  std::int64_t from{ 0 }; ///< where they begin in the first one's buffer
};

/** The overlap of a box and one that follows it along `axis`. */
Chunkwise_EXPORT Overlap
FindOverlap(const Box & first, const Box & second, int axis);

/** Whether the second box begins along `axis` where the first one ends and is as wide, and layers across the axis are
 * one block in a dense buffer. */
Chunkwise_EXPORT bool
Continues(const Box & first, const Box & second, int axis);

} // namespace chunkwise

#endif
