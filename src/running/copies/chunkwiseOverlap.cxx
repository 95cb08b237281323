/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseOverlap.h"

namespace chunkwise
{

namespace
{

/** The boxes agree across the axis, and the slower axes have one voxel. */
bool
AreSlabs(const Box & first, const Box & second, int axis)
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    const bool agrees = first.lower[a] == second.lower[a] && first.upper[a] == second.upper[a];
    if (a != axis && (!agrees || (a > axis && second.Extent(a) != 1)))
    {
      return false;
    }
  }
  return true;
}

} // namespace

Overlap
FindOverlap(const Box & first, const Box & second, int axis)
{
  Overlap overlap;
  if (!AreSlabs(first, second, axis) || second.lower[axis] < first.lower[axis] ||
      second.lower[axis] >= first.upper[axis] || second.upper[axis] < first.upper[axis])
  {
    return overlap;
  }
  const std::int64_t plane = second.NumberOfVoxels() / second.Extent(axis);
  overlap.goesOn = true;
  overlap.voxels = plane * (first.upper[axis] - second.lower[axis]);
  overlap.from = plane * (second.lower[axis] - first.lower[axis]);
  return overlap;
}

bool
Continues(const Box & first, const Box & second, int axis)
{
  return AreSlabs(first, second, axis) && first.upper[axis] == second.lower[axis];
}

} // namespace chunkwise
