/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWindow_h
#define chunkwiseWindow_h

#include "chunkwiseGeometry.h"
#include "chunkwisePixelValue.h"
#include "chunkwiseReducer.h"

#include <type_traits>

namespace chunkwise
{

/** The boxes of a window computed as passes along one axis after the other, in ascending order.
 *
 * A pass at position i reads the positions [i - radius, i + radius] that the box before it has, and nothing else: in
 * Renormalized mode the first box ends at the image's edge, in every other mode it goes on beyond it and is filled as
 * the mode says. So the passes themselves know no boundary. */
struct WindowBoxes
{
  Coordinates radius{};
  /** The box that the first pass reads. */
  Box padded{};
  /** Passes: at least one, along x and with radius 0 if there is no other. */
  int count{ 0 };
  int axes[MaxDimension]{};
  /** The box of each pass' result; the last is the output. */
  Box after[MaxDimension]{};

  /** `beginsWithX`: the first pass is along x, whatever the radius there. */
  WindowBoxes(const Box & output, const Box & image, const Coordinates & theRadius, BoundaryMode mode,
              bool beginsWithX = false)
    : radius(theRadius)
    , padded(output)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      padded.lower[a] -= radius[a];
      padded.upper[a] += radius[a];
    }
    if (mode == BoundaryMode::Renormalized)
    {
      padded = Intersect(padded, image);
    }
    Box box = padded;
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (radius[a] > 0 || (a == 0 && beginsWithX))
      {
        box.lower[a] = output.lower[a];
        box.upper[a] = output.upper[a];
        axes[count] = a;
        after[count++] = box;
      }
    }
    if (count == 0)
    {
      after[count++] = output;
    }
  }

  const Box &
  Before(int pass) const
  {
    return pass == 0 ? padded : after[pass - 1];
  }
  /** Voxels that pass number `pass` leaves for the next one. */
  std::int64_t
  Intermediate(int pass) const
  {
    return pass + 1 < count ? after[pass].NumberOfVoxels() : 0;
  }
};

/** A real result as a voxel: rounded to nearest with ties to even and clamped for integers (NaN gives the lowest). */
template <typename TOutput, typename TReal>
CHUNKWISE_HOST_DEVICE TOutput
ConvertResult(TReal value)
{
  if constexpr (static_cast<TOutput>(0.5) != static_cast<TOutput>(0))
  {
    return static_cast<TOutput>(value);
  }
  else
  {
    return RoundAndClamp<TOutput>(value);
  }
}

/** Calls f(TOut{}) with the type of the output: TIn, float or double. */
template <typename TIn, typename TFunctor>
void
DispatchOutput(PixelType kind, TFunctor && f)
{
  switch (kind)
  {
    case PixelType::Float32:
      return f(float{});
    case PixelType::Float64:
      return f(double{});
    default:
      return f(TIn{});
  }
}

/** The 64-bit integers that exact results of integers are given as too, TIn where there are none: those of 32-bit
 * integers fit them, those of 64-bit integers may have the other sign. */
template <typename TIn>
using WideResultOf =
  std::conditional_t<PixelTypeOf<TIn>() == PixelType::Int64, std::uint64_t,
                     std::conditional_t<!IsFloatingPoint(PixelTypeOf<TIn>()) && sizeof(TIn) >= 4, std::int64_t, TIn>>;

/** Calls f(TOut{}) with the type of an output that CheckExactOutput accepts. */
template <typename TIn, typename TFunctor>
void
DispatchExactOutput(PixelType kind, TFunctor && f)
{
  using Wide = WideResultOf<TIn>;
  if constexpr (!std::is_same<Wide, TIn>::value)
  {
    if (kind == PixelTypeOf<Wide>())
    {
      return f(Wide{});
    }
  }
  DispatchOutput<TIn>(kind, f);
}

/** The constant beyond the edge as a voxel of the image would hold it. */
template <typename TPixel>
TPixel
ConstantPixel(const PixelValue & constant)
{
  return constant.IsInteger() ? constant.As<TPixel>() : ConvertResult<TPixel>(constant.ToDouble());
}

} // namespace chunkwise

#endif
