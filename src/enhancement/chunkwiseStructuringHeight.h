/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStructuringHeight_h
#define chunkwiseStructuringHeight_h

#include "chunkwiseNonFlatExtremumOperation.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

/** The height of a structuring function above its apex at an offset; below 0: it has none there. */
inline double
StructuringHeight(const Coordinates & offset, const NonFlatExtremumOperation & operation)
{
  double squares = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const double part = offset[a] == 0 ? 0.0 : static_cast<double>(offset[a]) / operation.semiAxes[a];
    squares += part * part;
  }
  if (operation.shape == StructuringShape::Paraboloid)
  {
    return 0.5 * operation.height * squares;
  }
  // A sum that is 1 may be rounded up.
  return squares > 1 + 1e-12 ? -1.0 : operation.height * (1 - std::sqrt(std::max(1 - squares, 0.0)));
}

/** The lines along the first axis that takes part, of which a structuring function is made. */
struct StructuringLines
{
  Coordinates radius;
  int         axis{ 0 };
  /** The offsets of the lines: 0 along `axis`. */
  Box offsets;
  /** Heights of all lines, each at the distances 0, ..., radius[axis]. */
  std::int64_t numbers{ 0 };

  StructuringLines(const NonFlatExtremumOperation & operation, const Coordinates & image)
    : radius(operation.GetRadius(image))
  {
    for (int a = MaxDimension - 1; a >= 0; --a)
    {
      axis = radius[a] > 0 ? a : axis;
    }
    for (int a = 0; a < MaxDimension; ++a)
    {
      offsets.lower[a] = a == axis ? 0 : -radius[a];
      offsets.upper[a] = a == axis ? 1 : radius[a] + 1;
    }
    numbers = offsets.NumberOfVoxels() * (radius[axis] + 1);
  }

  template <typename TReal>
  void
  Fill(const NonFlatExtremumOperation & operation, TReal * heights) const
  {
    const std::int64_t lines = offsets.NumberOfVoxels();
    for (std::int64_t line = 0; line < lines; ++line)
    {
      Coordinates  offset{};
      std::int64_t rest = line;
      for (int a = 0; a < MaxDimension; ++a)
      {
        offset[a] = offsets.lower[a] + rest % offsets.Extent(a);
        rest /= offsets.Extent(a);
      }
      for (std::int64_t t = 0; t <= radius[axis]; ++t)
      {
        offset[axis] = t;
        *heights++ = static_cast<TReal>(StructuringHeight(offset, operation));
      }
    }
  }
};

} // namespace chunkwise

#endif
