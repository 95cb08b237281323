/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSidedBoxes_h
#define chunkwiseSidedBoxes_h

#include "chunkwiseFootprintOperation.h"
#include "chunkwiseWindow.h"

namespace chunkwise
{

/** WindowBoxes of a box that may reach farther to one side: a pass at position i reads the positions
 * [i - radius, i + upper]. */
struct SidedBoxes : WindowBoxes
{
  Coordinates upper{};

  SidedBoxes(const WindowBoxes & boxes)
    : WindowBoxes(boxes)
    , upper(boxes.radius)
  {}
  SidedBoxes(const Box & output, const Box & image, const FootprintOperation::Sides & sides, BoundaryMode mode)
    : WindowBoxes(output, image, sides.Farthest(), mode)
    , upper(sides.upper)
  {
    radius = sides.lower;
    padded = output;
    for (int a = 0; a < MaxDimension; ++a)
    {
      padded.lower[a] -= radius[a];
      padded.upper[a] += upper[a];
    }
    if (mode == BoundaryMode::Renormalized)
    {
      padded = Intersect(padded, image);
    }
    Box box = padded;
    for (int pass = 0; pass < count; ++pass)
    {
      const int a = axes[pass];
      box.lower[a] = output.lower[a];
      box.upper[a] = output.upper[a];
      after[pass] = box;
    }
  }

  std::int64_t
  Taps(int a) const
  {
    return radius.axis[a] + 1 + upper.axis[a];
  }
  /** How many taps a pass has at position `i` of its axis. */
  std::int64_t
  CountTaps(int pass, std::int64_t i) const
  {
    const int   a = axes[pass];
    const Box & before = Before(pass);
    return std::min(i + upper[a], before.upper[a] - 1) - std::max(i - radius[a], before.lower[a]) + 1;
  }
};

} // namespace chunkwise

#endif
