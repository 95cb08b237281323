/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaResample_cuh
#define chunkwiseCudaResample_cuh

#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseResamplePoints.h"

#include <algorithm>

// Parameters of the kernels of resampling: the grid, where voxels lie, and lines along an axis.
namespace chunkwise
{

/** A ResampleOperation without what voxels do not need. */
struct ResampleGrid
{
  explicit ResampleGrid(const ResampleOperation & operation)
    : axes{ operation.GetAxis(0), operation.GetAxis(1), operation.GetAxis(2) }
    , edges{ { axes[0], operation.outside }, { axes[1], operation.outside }, { axes[2], operation.outside } }
    , outside(operation.outside)
  {
    for (int i = 0; i < ResampleOperation::Axes; ++i)
    {
      std::copy(operation.matrix[i], operation.matrix[i] + ResampleOperation::Axes, matrix[i]);
      offset[i] = operation.offset[i];
      isFiltered = isFiltered || axes[i].isFiltered;
    }
  }
  std::int64_t
  GetMostTaps() const
  {
    return std::max({ axes[0].taps, axes[1].taps, axes[2].taps });
  }

  double                  matrix[ResampleOperation::Axes][ResampleOperation::Axes];
  double                  offset[ResampleOperation::Axes];
  ResampleOperation::Axis axes[ResampleOperation::Axes];
  ResampleEdge            edges[ResampleOperation::Axes];
  ResampleOutside         outside;
  bool                    isFiltered{ false };
};

/** The places of voxels: arrays count the operation's axes, along which the grids differ, or the two others. */
struct ResampleSpace
{
  static constexpr int Axes = ResampleOperation::Axes;

  /** A row of the output: its voxel along y and z, and the offsets of the images of these axes at its other indices, of
   * the output that of the row's first voxel. */
  struct Row
  {
    std::int64_t y;
    std::int64_t z;
    std::int64_t in;
    std::int64_t out;
  };

  ResampleSpace(const ResampleOperation & operation, const BufferView & in, const BufferView & out)
  {
    bool isOther[MaxDimension] = { true, true, true, true, true };
    for (int i = 0; i < Axes; ++i)
    {
      const int a = operation.axes[i];
      isOther[a] = false;
      inLower[i] = in.box.lower[a];
      inUpper[i] = in.box.upper[a];
      inStride[i] = in.stride[a];
      outLower[i] = out.box.lower[a];
      outExtent[i] = out.box.Extent(a);
      outStride[i] = out.stride[a];
    }
    for (int a = 0, other = 0; a < MaxDimension; ++a)
    {
      if (isOther[a])
      {
        otherExtent[other] = out.box.Extent(a);
        otherInStride[other] = in.stride[a];
        otherOutStride[other] = out.stride[a];
        inBegin += (out.box.lower[a] - in.box.lower[a]) * in.stride[a];
        ++other;
      }
    }
  }

  /** Images of the axes. */
  CHUNKWISE_HOST_DEVICE std::int64_t
                        CountImages() const
  {
    return otherExtent[0] * otherExtent[1];
  }
  CHUNKWISE_HOST_DEVICE std::int64_t
                        CountRows() const
  {
    return outExtent[1] * outExtent[2] * this->CountImages();
  }
  __device__ void
  FindImage(std::int64_t image, std::int64_t & in, std::int64_t & out) const
  {
    const std::int64_t second = Quotient(image, otherExtent[0]);
    const std::int64_t first = image - second * otherExtent[0];
    in = inBegin + first * otherInStride[0] + second * otherInStride[1];
    out = first * otherOutStride[0] + second * otherOutStride[1];
  }
  __device__ Row
  FindRow(std::int64_t row) const
  {
    const std::int64_t planes = Quotient(row, outExtent[1]);
    const std::int64_t image = Quotient(planes, outExtent[2]);
    const std::int64_t y = row - planes * outExtent[1];
    const std::int64_t z = planes - image * outExtent[2];
    Row                result;
    this->FindImage(image, result.in, result.out);
    result.y = outLower[1] + y;
    result.z = outLower[2] + z;
    result.out += y * outStride[1] + z * outStride[2];
    return result;
  }
  /** The offset of a voxel of the input in its image of the axes. */
  __device__ std::int64_t
             OffsetOf(const std::int64_t (&at)[Axes]) const
  {
    return (at[0] - inLower[0]) * inStride[0] + (at[1] - inLower[1]) * inStride[1] + (at[2] - inLower[2]) * inStride[2];
  }

  std::int64_t inLower[Axes];
  std::int64_t inUpper[Axes];
  std::int64_t inStride[Axes];
  std::int64_t outLower[Axes];
  std::int64_t outExtent[Axes];
  std::int64_t outStride[Axes];
  std::int64_t otherExtent[MaxDimension - Axes];
  std::int64_t otherInStride[MaxDimension - Axes];
  std::int64_t otherOutStride[MaxDimension - Axes];
  std::int64_t inBegin{ 0 };
  /** By what the points of the voxels of the output's box are moved: one component after the other; nullptr: not. */
  const double * moves{ nullptr };
};

/** The point of a voxel of the output, in voxels of the image. */
struct ResamplePoint
{
  __device__ __forceinline__
  ResamplePoint(const ResampleGrid & grid, const ResampleSpace & space, const Coordinates & voxel)
  {
    for (int i = 0; i < ResampleSpace::Axes; ++i)
    {
      at[i] = PointOf(grid, i, voxel);
    }
    if (space.moves)
    {
      const auto         n = [&](int i) { return voxel[i] - space.outLower[i]; };
      const std::int64_t place = (n(2) * space.outExtent[1] + n(1)) * space.outExtent[0] + n(0);
      const std::int64_t count = space.outExtent[0] * space.outExtent[1] * space.outExtent[2];
      for (int i = 0; i < ResampleSpace::Axes; ++i)
      {
        at[i] += space.moves[i * count + place];
      }
    }
  }

  double at[ResampleSpace::Axes];
};

/** The voxel of [lower, upper) whose value stands at `at` of an axis; -1: the value from beyond does. Few voxels need
 * it, and it is long. */
static __device__ __noinline__ std::int64_t
FindVoxel(std::int64_t at, std::int64_t lower, std::int64_t upper, std::int64_t length, ResampleOutside outside,
          bool isSpline)
{
  const std::int64_t voxel = MapVoxel(at, length, outside, isSpline);
  return voxel < 0 ? -1 : voxel < lower ? lower : voxel >= upper ? upper - 1 : voxel;
}

/** The image that is interpolated, which goes on beyond its edge. */
template <typename TReal>
struct ResampleSource
{
  const void * data;
  PixelType    kind;
  TReal        value; ///< from beyond

  /** The number at a voxel, which may be beyond the image. */
  template <bool VNative>
  __device__ TReal
  LoadBeyond(const ResampleGrid & grid, const ResampleSpace & space, std::int64_t (&at)[ResampleSpace::Axes],
             std::int64_t image) const
  {
    for (int i = 0; i < ResampleSpace::Axes; ++i)
    {
      at[i] = FindVoxel(at[i],
                        space.inLower[i],
                        space.inUpper[i],
                        grid.axes[i].length,
                        grid.outside,
                        grid.axes[i].kernel == TapKernel::Spline);
      if (at[i] < 0)
      {
        return value;
      }
    }
    return LoadAs<TReal, VNative>(data, kind, image + space.OffsetOf(at));
  }
};

/** Lines along an axis of a dense image. */
struct ResampleLines
{
  /** A voxel of a line: number k of it; `begin` is the line's begin in an image whose lines have `count` voxels. */
  struct Place
  {
    std::int64_t outer;
    std::int64_t within;
    std::int64_t k;
  };

  ResampleLines(const ResampleOperation & operation, const ResampleGrid & grid, int i, const Box & box)
    : lower(box.lower[operation.axes[i]])
    , count(box.Extent(operation.axes[i]))
    , length(grid.axes[i].length)
    , outside(grid.outside)
    , isSpline(grid.axes[i].kernel == TapKernel::Spline)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      inner *= a < operation.axes[i] ? box.Extent(a) : 1;
      outer *= a > operation.axes[i] ? box.Extent(a) : 1;
    }
  }

  /** Voxels are visited in rows, along which they follow each other in memory. */
  CHUNKWISE_HOST_DEVICE std::int64_t
                        CountRows() const
  {
    return inner == 1 ? outer : outer * count;
  }
  CHUNKWISE_HOST_DEVICE std::int64_t
                        CountOfRow() const
  {
    return inner == 1 ? count : inner;
  }
  __device__ Place
  Find(std::int64_t row, std::int64_t x) const
  {
    if (inner == 1)
    {
      return { row, 0, x };
    }
    const std::int64_t slab = Quotient(row, count);
    return { slab, x, row - slab * count };
  }
  /** The offset of voxel 0 of a line. */
  __device__ std::int64_t
             BeginOf(const Place & place) const
  {
    return place.outer * inner * count + place.within;
  }
  /** The voxel of the line whose value stands at `k`, which may be beyond; -1: none. */
  __device__ std::int64_t
             Map(std::int64_t k) const
  {
    if (k >= 0 && k < count)
    {
      return k;
    }
    const std::int64_t voxel = FindVoxel(lower + k, lower, lower + count, length, outside, isSpline);
    return voxel < 0 ? -1 : voxel - lower;
  }
  /** Whether MapOnce gives what Map does for voxels up to `reach` beyond. */
  bool
  ReflectsOnce(std::int64_t reach) const
  {
    const bool reflects =
      outside <= ResampleOutside::Constant || outside == ResampleOutside::Mirror || outside == ResampleOutside::Reflect;
    return isSpline && reflects && count > 2 * reach;
  }
  __device__ __forceinline__ std::int64_t
                             MapOnce(std::int64_t k) const
  {
    const int          shift = outside == ResampleOutside::Reflect ? 1 : 0;
    const std::int64_t last = count - 1;
    const std::int64_t before = lower == 0 ? -k - shift : 0;
    const std::int64_t after = lower + count == length ? 2 * last - k + shift : last;
    return k < 0 ? before : k > last ? after : k;
  }

  std::int64_t    lower;
  std::int64_t    count;
  std::int64_t    length;
  std::int64_t    inner{ 1 };
  std::int64_t    outer{ 1 };
  ResampleOutside outside;
  bool            isSpline;
};

} // namespace chunkwise

#endif
