/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseGeometry_h
#define chunkwiseGeometry_h

#include "chunkwiseTypes.h"

#include <string>

namespace chunkwise
{

/** An extent, a position or a stride per axis (C array: nvcc compiles it without flags). */
struct Coordinates
{
  std::int64_t axis[MaxDimension];

  CHUNKWISE_HOST_DEVICE std::int64_t &
                        operator[](int a)
  {
    return axis[a];
  }
  CHUNKWISE_HOST_DEVICE const std::int64_t &
                              operator[](int a) const
  {
    return axis[a];
  }
  static Coordinates
  Filled(std::int64_t value)
  {
    return { { value, value, value, value, value } };
  }
  friend bool
  operator==(const Coordinates & a, const Coordinates & b)
  {
    for (int i = 0; i < MaxDimension; ++i)
    {
      if (a.axis[i] != b.axis[i])
      {
        return false;
      }
    }
    return true;
  }
  friend bool
  operator!=(const Coordinates & a, const Coordinates & b)
  {
    return !(a == b);
  }
};

/** Voxels lower <= index < upper per axis, in coordinates where the image's largest region begins at 0. */
struct Box
{
  Coordinates lower;
  Coordinates upper;

  /** [0, extent) */
  static Box
  FromExtent(const Coordinates & extent)
  {
    return { Coordinates::Filled(0), extent };
  }
  CHUNKWISE_HOST_DEVICE std::int64_t
                        Extent(int a) const
  {
    return upper.axis[a] - lower.axis[a];
  }
  Coordinates
  Extents() const
  {
    Coordinates e{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      e[a] = Extent(a);
    }
    return e;
  }
  CHUNKWISE_HOST_DEVICE std::int64_t
                        NumberOfVoxels() const
  {
    std::int64_t n = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      n *= Extent(a);
    }
    return n;
  }
  bool
  IsEmpty() const
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (Extent(a) <= 0)
      {
        return true;
      }
    }
    return false;
  }
  bool
  Contains(const Box & other) const
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (other.lower[a] < lower[a] || other.upper[a] > upper[a])
      {
        return false;
      }
    }
    return true;
  }
  friend bool
  operator==(const Box & a, const Box & b)
  {
    return a.lower == b.lower && a.upper == b.upper;
  }
};

/** The common part; empty boxes have an axis of extent <= 0. */
Chunkwise_EXPORT Box
Intersect(const Box & a, const Box & b);

/** "[x0, x1) x [y0, y1) x ..." for messages. */
Chunkwise_EXPORT std::string
                 ToString(const Box & box);

/** "512 x 512 x 512" */
Chunkwise_EXPORT std::string
                 ToString(const Coordinates & extent);

/** Voxels a window reaches to either side of its center, per axis. */
struct Halo
{
  Coordinates lower;
  Coordinates upper;

  static Halo
  None()
  {
    return { Coordinates::Filled(0), Coordinates::Filled(0) };
  }
};

/** A value that a halo takes where a result depends on the whole axis. */
constexpr std::int64_t WholeAxis = INT64_MAX / 4;

/** `box` grown by `halo`, cut at `image`. */
Chunkwise_EXPORT Box
PadAndCrop(const Box & box, const Halo & halo, const Box & image);

/** All tiles that `box` meets, of a grid that begins at the image's lower corner, cut at `image`. */
Chunkwise_EXPORT Box
AlignToTiles(const Box & box, const Coordinates & tile, const Box & image);

/** Strides in voxels of a dense buffer of this extent, x fastest. */
Chunkwise_EXPORT Coordinates
DenseStrides(const Coordinates & extent);

/** A buffer that holds the voxels of `box`: voxel i is at data + sum((i[a] - box.lower[a]) * stride[a]) pixels. */
struct BufferView
{
  void *      data{ nullptr };
  PixelType   kind{ PixelType::UInt8 };
  Box         box{};
  Coordinates stride{};

  CHUNKWISE_HOST_DEVICE std::int64_t
                        Offset(const Coordinates & index) const
  {
    std::int64_t offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += (index.axis[a] - box.lower.axis[a]) * stride.axis[a];
    }
    return offset;
  }
  std::size_t
  NumberOfBytes() const
  {
    return static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(kind);
  }
};

/** A dense view of `box` over `data`. */
Chunkwise_EXPORT BufferView
DenseView(void * data, PixelType kind, const Box & box);

/** The index that a window reads in the place of index `i`, of an axis with `n` voxels; -1 if it reads no voxel
 * (Renormalized and Constant, outside the image). The buffer holds [lower, upper). An index that it holds is read as it
 * is: a buffer that was loaded with its neighbors (Periodic) needs no mapping. Mirror, MirrorCenter and Periodic map
 * any distance. */
CHUNKWISE_HOST_DEVICE inline std::int64_t
MapTap(std::int64_t i, std::int64_t lower, std::int64_t upper, std::int64_t n, BoundaryMode mode)
{
  if (i >= lower && i < upper)
  {
    return i;
  }
  switch (mode)
  {
    case BoundaryMode::ZeroFluxNeumann:
      return i < 0 ? 0 : (i >= n ? n - 1 : i);
    case BoundaryMode::Mirror:
    {
      std::int64_t m = i % (2 * n);
      m = m < 0 ? m + 2 * n : m;
      return m < n ? m : 2 * n - 1 - m;
    }
    case BoundaryMode::MirrorCenter:
    {
      const std::int64_t period = n > 1 ? 2 * n - 2 : 1;
      std::int64_t       m = i % period;
      m = m < 0 ? m + period : m;
      return m < n ? m : period - m;
    }
    case BoundaryMode::Periodic:
    {
      const std::int64_t m = i % n;
      return m < 0 ? m + n : m;
    }
    default:
      return (i < 0 || i >= n) ? -1 : i;
  }
}

} // namespace chunkwise

#endif
