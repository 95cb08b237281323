/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWideMean_h
#define chunkwiseWideMean_h

#include "chunkwiseGeometry.h"

#include <cstdint>

// The part of MeanOperation's arithmetic that replaces float sums that overflow, one source for every backend.
namespace chunkwise
{

CHUNKWISE_HOST_DEVICE inline bool
IsFiniteFloat(float value)
{
  return value - value == 0.0F;
}

CHUNKWISE_HOST_DEVICE inline bool
IsLargeFloat(float value, float leastLarge)
{
  return IsFiniteFloat(value) && (value >= leastLarge || -value >= leastLarge);
}

/** Means of windows of float voxels in double. Kernels use them for the windows whose float sum is not finite; sums as
 * results stay what they are.
 *
 * The order of additions is fixed: for each position along x from the lowest to the highest, the taps at that position
 * are added from +0, y fastest; then these sums are added from +0. Unless the sum in double is NaN, the result is that
 * sum, divided in double and then converted. So float means are finite if all voxels of the window are. */
struct WideMean
{
  BufferView   in;     ///< pixels of float
  Coordinates  extent; ///< of the image
  Coordinates  radius;
  BoundaryMode mode{ BoundaryMode::Renormalized };
  float        constant{ 0 };

  /** The position in the input of tap `i` along axis `a`; false if no voxel is there. */
  CHUNKWISE_HOST_DEVICE bool
  FindTap(int a, std::int64_t i, std::int64_t & at) const
  {
    at = MapTap(i, in.box.lower.axis[a], in.box.upper.axis[a], extent.axis[a], mode);
    return at >= 0 || mode == BoundaryMode::Periodic;
  }

  /** Calls visit(isInside, offset) for each row along x of the window around `index`, y fastest. The offset is that of
   * the row's voxel at position 0 of the input. Rows outside are visited in Constant mode alone. */
  template <typename TVisit>
  CHUNKWISE_HOST_DEVICE void
  ForEachRow(const Coordinates & index, TVisit && visit) const
  {
    std::int64_t tap[MaxDimension];
    for (int a = 0; a < MaxDimension; ++a)
    {
      tap[a] = -radius.axis[a];
    }
    for (int next = 1; next < MaxDimension;)
    {
      std::int64_t offset = 0;
      bool         isInside = true;
      for (int a = 1; a < MaxDimension; ++a)
      {
        std::int64_t at = 0;
        isInside = this->FindTap(a, index.axis[a] + tap[a], at) && isInside;
        offset += (at - in.box.lower.axis[a]) * in.stride.axis[a];
      }
      if (isInside || mode == BoundaryMode::Constant)
      {
        visit(isInside, offset);
      }
      for (next = 1; next < MaxDimension && ++tap[next] > radius.axis[next]; ++next)
      {
        tap[next] = -radius.axis[next];
      }
    }
  }

  /** The number that sums are divided by. */
  CHUNKWISE_HOST_DEVICE std::int64_t
                        DivisorAt(const Coordinates & index) const
  {
    std::int64_t divisor = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t r = radius.axis[a];
      const std::int64_t i = index.axis[a];
      const std::int64_t n = extent.axis[a];
      const std::int64_t last = i + r < n - 1 ? i + r : n - 1;
      const std::int64_t first = i - r > 0 ? i - r : 0;
      divisor *= mode == BoundaryMode::Renormalized ? last - first + 1 : 2 * r + 1;
    }
    return divisor;
  }

  CHUNKWISE_HOST_DEVICE double
  MeanAt(const Coordinates & index) const
  {
    const auto * const voxels = static_cast<const float *>(in.data);
    double             sum = 0;
    for (std::int64_t i = index.axis[0] - radius.axis[0]; i <= index.axis[0] + radius.axis[0]; ++i)
    {
      std::int64_t at = 0;
      const bool   isInside = this->FindTap(0, i, at);
      if (!isInside && mode != BoundaryMode::Constant)
      {
        continue;
      }
      const std::int64_t x = (at - in.box.lower.axis[0]) * in.stride.axis[0];
      double             column = 0;
      this->ForEachRow(index, [&](bool isRowInside, std::int64_t offset) {
        column += static_cast<double>(isInside && isRowInside ? voxels[offset + x] : constant);
      });
      sum += column;
    }
    return sum / static_cast<double>(this->DivisorAt(index));
  }

  /** Whether the voxel is so large that sums may overflow. */
  CHUNKWISE_HOST_DEVICE bool
  IsLargeAt(const Coordinates & index, float leastLarge) const
  {
    return IsLargeFloat(static_cast<const float *>(in.data)[in.Offset(index)], leastLarge);
  }

  /** Sums of finite voxels that are all smaller than this in magnitude do not overflow. */
  float
  GetLeastLarge() const
  {
    double taps = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      taps *= 2.0 * static_cast<double>(radius.axis[a]) + 1.0;
    }
    // A fourth, because partial sums are rounded.
    return static_cast<float>(3.4028234663852886e38 / (4.0 * taps));
  }
  /** The voxels that windows around `output` may read. */
  Box
  GetReadBox(const Box & output) const
  {
    Box box = in.box;
    for (int a = 0; a < MaxDimension && mode != BoundaryMode::Periodic; ++a)
    {
      box.lower[a] = output.lower[a] - radius[a] > box.lower[a] ? output.lower[a] - radius[a] : box.lower[a];
      box.upper[a] = output.upper[a] + radius[a] < box.upper[a] ? output.upper[a] + radius[a] : box.upper[a];
    }
    return box;
  }
};

} // namespace chunkwise

#endif
