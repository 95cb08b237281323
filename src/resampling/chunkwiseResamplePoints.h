/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseResamplePoints_h
#define chunkwiseResamplePoints_h

#include "chunkwiseRealOf.h"
#include "chunkwiseResampleField.h"
#include "chunkwiseSinePi.h"
#include "chunkwiseSplineSums.h"

#include <algorithm>
#include <cmath>
#include <limits>

// The points of the voxels of a resampled image, and the weights of the voxels around them.
namespace chunkwise
{

/** The point of a voxel of the output along one of the axes, in voxels of the image. TGrid has a matrix and an offset.
 */
template <typename TGrid>
CHUNKWISE_HOST_DEVICE inline double
PointOf(const TGrid & grid, int i, const Coordinates & voxel)
{
  const double * const m = grid.matrix[i];
  return m[0] * static_cast<double>(voxel[0]) +
         (m[1] * static_cast<double>(voxel[1]) + (m[2] * static_cast<double>(voxel[2]) + grid.offset[i]));
}

/** The point of a voxel along all axes, moved by the field if there is one. */
inline void
PointsOf(const ResampleOperation & operation, const Coordinates & voxel, double (&point)[ResampleOperation::Axes])
{
  for (int i = 0; i < ResampleOperation::Axes && operation.points[0]; ++i)
  {
    point[i] = operation.points[i] ? operation.points[i][voxel[0]] + operation.offset[i] : 0;
  }
  if (operation.points[0])
  {
    return;
  }
  double move[ResampleOperation::Axes]{};
  if (operation.field)
  {
    operation.field->Move(voxel, move);
  }
  for (int i = 0; i < ResampleOperation::Axes; ++i)
  {
    const double fixed = PointOf(operation, i, voxel);
    point[i] = operation.field ? fixed + move[i] : fixed;
  }
}

/** The edges of an axis: what becomes of points beyond. */
struct ResampleEdge
{
  ResampleEdge(const ResampleOperation::Axis & axis, ResampleOutside outside)
    : lowest(-std::numeric_limits<double>::infinity())
    , highest(std::numeric_limits<double>::infinity())
    , valueBelow(lowest)
    , valueFrom(highest)
    , last(static_cast<double>(axis.length - 1))
    , renormalizes(outside <= ResampleOutside::Constant && axis.kernel != TapKernel::Spline)
  {
    if (outside <= ResampleOutside::Constant)
    {
      // The linear kernel's part inside the image is that of a point at the center of the last voxel.
      const bool atCenters = outside == ResampleOutside::Constant || axis.taps <= 2;
      lowest = atCenters ? 0 : -0.5;
      highest = atCenters ? last : last + 0.5;
    }
    if (outside == ResampleOutside::Value)
    {
      valueBelow = -0.5;
      valueFrom = last + 0.5;
    }
    else if (outside == ResampleOutside::Constant)
    {
      valueBelow = 0;
      valueFrom = std::nextafter(last, highest + 1);
    }
  }

  /** The point whose value it has. */
  CHUNKWISE_HOST_DEVICE double
  Move(double point) const
  {
    return point < lowest ? lowest : point > highest ? highest : point;
  }
  CHUNKWISE_HOST_DEVICE bool
  HasValue(double point) const
  {
    return !(point >= valueBelow && point < valueFrom);
  }

  double lowest;
  double highest;
  double valueBelow;
  double valueFrom;
  double last;
  bool   renormalizes; ///< Taps beyond the image have no weight.
};

/** The voxel whose value stands at `i`, which may be beyond the image. */
CHUNKWISE_HOST_DEVICE inline std::int64_t
MapVoxel(std::int64_t i, std::int64_t n, ResampleOutside outside, bool isSpline)
{
  if (i >= 0 && i < n)
  {
    return i;
  }
  const auto modulo = [](std::int64_t a, std::int64_t period) { return (a % period + period) % period; };
  switch (outside)
  {
    case ResampleOutside::Renormalized:
    case ResampleOutside::Value:
    case ResampleOutside::Constant:
      if (!isSpline)
      {
        return i < 0 ? 0 : n - 1;
      }
      [[fallthrough]];
    case ResampleOutside::Mirror:
    {
      const std::int64_t m = n > 1 ? modulo(i, 2 * n - 2) : 0;
      return m < n ? m : 2 * n - 2 - m;
    }
    case ResampleOutside::Reflect:
    {
      const std::int64_t m = modulo(i, 2 * n);
      return m < n ? m : 2 * n - 1 - m;
    }
    case ResampleOutside::GridWrap:
      return modulo(i, n);
    case ResampleOutside::GridConstant:
      return -1;
    default:
      return i < 0 ? 0 : n - 1;
  }
}

/** The first voxel with a weight, for a point that has been moved. */
CHUNKWISE_HOST_DEVICE inline std::int64_t
FirstTap(const ResampleOperation::Axis & axis, double point)
{
  return static_cast<std::int64_t>(std::floor(axis.taps == 1 ? point + 0.5 : point)) - axis.below;
}

/** The weights of the cubic B-spline; `t` is what the point is beyond the second of four voxels. */
template <typename TReal>
CHUNKWISE_HOST_DEVICE inline void
SplineWeights(TReal t, TReal & w0, TReal & w1, TReal & w2, TReal & w3)
{
  const TReal sixth = static_cast<TReal>(1.0 / 6.0);
  const TReal s = 1 - t;
  const TReal square = t * t;
  w0 = s * s * s * sixth;
  w1 = static_cast<TReal>(2.0 / 3.0) - square + square * t * static_cast<TReal>(0.5);
  w3 = square * t * sixth;
  w2 = 1 - w0 - w1 - w3;
}

/** The kernels but for the spline's, x in units of their scale. */
CHUNKWISE_HOST_DEVICE inline double
KernelAt(TapKernel kernel, double x)
{
  x = std::abs(x);
  switch (kernel)
  {
    case TapKernel::Linear:
      return x < 1 ? 1 - x : 0;
    case TapKernel::Keys:
      return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
    default:
    {
      if (x >= 3)
      {
        return 0;
      }
      constexpr double pi = 3.14159265358979323846;
      return x < 1e-9 ? 1 : 3 * SinePi(x) * SinePi(x / 3) / (pi * pi * x * x);
    }
  }
}

/** The weights of a point's voxels, `stride` numbers apart; axis.taps of them. Returns the first voxel. */
template <typename TReal>
CHUNKWISE_HOST_DEVICE inline std::int64_t
FillTaps(const ResampleOperation::Axis & axis, const ResampleEdge & edge, double point, TReal * weights,
         std::int64_t stride)
{
  point = edge.Move(point);
  const std::int64_t first = FirstTap(axis, point);
  if (axis.taps == 1)
  {
    weights[0] = 1;
  }
  else if (axis.kernel == TapKernel::Spline || axis.taps == 2)
  {
    const auto t = static_cast<TReal>(point - static_cast<double>(first + axis.below));
    if (axis.taps == 2)
    {
      weights[0] = 1 - t;
      weights[stride] = t;
    }
    else
    {
      SplineWeights(t, weights[0], weights[stride], weights[2 * stride], weights[3 * stride]);
    }
  }
  else
  {
    const auto at = [&](std::int64_t k) {
      const std::int64_t voxel = first + k;
      return edge.renormalizes && (voxel < 0 || voxel >= axis.length)
               ? 0.0
               : KernelAt(axis.kernel, (static_cast<double>(voxel) - point) / axis.scale);
    };
    double sum = 0;
    for (std::int64_t k = 0; k < axis.taps; ++k)
    {
      sum += at(k);
    }
    for (std::int64_t k = 0; k < axis.taps; ++k)
    {
      weights[k * stride] = static_cast<TReal>(at(k) / sum);
    }
  }
  return first;
}

/** The sum of ResampleOperation along an axis: weight(k) and value(k) are those of tap k. */
template <typename TReal, typename TWeight, typename TValue>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TReal
SumOfTaps(std::int64_t taps, std::int64_t below, TWeight && weight, TValue && value)
{
  const TReal base = value(below);
  TReal       sum = base;
  for (std::int64_t k = 0; k < taps; ++k)
  {
    if (k != below)
    {
      sum += weight(k) * (value(k) - base);
    }
  }
  return sum;
}

/** How far the filter reaches whose coefficients are TReal. */
template <typename TReal>
constexpr std::int64_t SplineRadiusOf =
  sizeof(TReal) == sizeof(float) ? ResampleOperation::SplineRadiusOfFloats : ResampleOperation::SplineRadius;

/** Adds up the weights of a label's voxels. `labels` and `sums` have room for all voxels with a weight, `stride`
 * numbers apart. */
template <typename TPixel>
class LabelVote
{
public:
  CHUNKWISE_HOST_DEVICE
  LabelVote(TPixel * labels, double * sums, std::int64_t stride)
    : m_Labels(labels)
    , m_Sums(sums)
    , m_Stride(stride)
  {}

  CHUNKWISE_HOST_DEVICE void
  Add(TPixel label, double weight)
  {
    std::int64_t k = 0;
    while (k < m_Count && m_Labels[k * m_Stride] != label)
    {
      ++k;
    }
    m_Labels[k * m_Stride] = label;
    m_Sums[k * m_Stride] = (k < m_Count ? m_Sums[k * m_Stride] : 0) + weight;
    m_Count = k < m_Count ? m_Count : k + 1;
  }

  /** The label with most of the weights, of several with the same the lowest. */
  CHUNKWISE_HOST_DEVICE TPixel
  Winner() const
  {
    TPixel label = m_Labels[0];
    double sum = m_Sums[0];
    for (std::int64_t k = 1; k < m_Count; ++k)
    {
      const TPixel otherLabel = m_Labels[k * m_Stride];
      const double otherSum = m_Sums[k * m_Stride];
      if (otherSum > sum || (otherSum == sum && otherLabel < label))
      {
        label = otherLabel;
        sum = otherSum;
      }
    }
    return label;
  }

private:
  TPixel *           m_Labels;
  double *           m_Sums;
  const std::int64_t m_Stride;
  std::int64_t       m_Count{ 0 };
};

/** Adds the voxels around a point to the vote: map(i, tap) is the voxel of a tap along an axis, -1 if there is none,
 * weight(i, tap) its weight, and label(voxels) the label there, or what stands beyond. */
template <typename TVote, typename TMap, typename TWeight, typename TLabel>
CHUNKWISE_HOST_DEVICE inline void
AddVotes(TVote & vote, const ResampleOperation::Axis (&axes)[ResampleOperation::Axes], TMap && map, TWeight && weight,
         TLabel && label)
{
  std::int64_t at[ResampleOperation::Axes];
  for (std::int64_t z = 0; z < axes[2].taps; ++z)
  {
    at[2] = map(2, z);
    for (std::int64_t y = 0; y < axes[1].taps; ++y)
    {
      at[1] = map(1, y);
      for (std::int64_t x = 0; x < axes[0].taps; ++x)
      {
        const double all = weight(2, z) * weight(1, y) * weight(0, x);
        if (all > 0)
        {
          at[0] = map(0, x);
          vote.Add(label(at), all);
        }
      }
    }
  }
}

} // namespace chunkwise

#endif
