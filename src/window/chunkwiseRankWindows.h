/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRankWindows_h
#define chunkwiseRankWindows_h

#include "chunkwiseFootprintOperation.h"
#include "chunkwiseRankOperation.h"

namespace chunkwise
{

/** The windows of a RankOperation, or of a FootprintOperation that has sides, in an image of some extent. */
struct RankWindows
{
  FootprintOperation::Sides sides;
  WindowBoundary            boundary;
  double                    fraction{ 0.5 };
  bool                      isCounted{ false };

  RankWindows(const Operation & operation, const Coordinates & image)
  {
    if (const auto * const footprint = dynamic_cast<const FootprintOperation *>(&operation))
    {
      sides = *footprint->GetSides(image);
      boundary = footprint->boundary;
      fraction = footprint->fraction;
      isCounted = footprint->isCounted;
      return;
    }
    const auto & rank = static_cast<const RankOperation &>(operation);
    sides.lower = sides.upper = rank.EffectiveRadius(image);
    boundary = rank.boundary;
    fraction = rank.fraction;
    isCounted = rank.isCounted;
  }

  /** How many voxels of the image a window at position `i` of an axis of n has. */
  std::int64_t
  TapsInside(int a, std::int64_t i, std::int64_t n) const
  {
    return std::min(i + sides.upper.axis[a], n - 1) - std::max<std::int64_t>(i - sides.lower.axis[a], 0) + 1;
  }
};

} // namespace chunkwise

#endif
