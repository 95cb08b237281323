/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaWindow_cuh
#define chunkwiseCudaWindow_cuh

#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseOperations.h"
#include "chunkwiseWindow.h"
#include "chunkwiseRoundUp.h"

// Windows over an image that goes on beyond its edge: a chunk's input is first continued there as the boundary mode
// says, except in Renormalized mode, where windows are cut. The code below knows no boundary. See WindowBoxes.
namespace chunkwise
{

/** Voxels of `box`, wherever they lie. */
template <typename T>
struct Voxels
{
  T *         data; ///< of voxel box.lower
  Box         box;
  Coordinates stride;

  __device__ std::int64_t
             Offset(const Coordinates & index) const
  {
    std::int64_t offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += (index.axis[a] - box.lower.axis[a]) * stride.axis[a];
    }
    return offset;
  }
  __device__ T &
  operator[](const Coordinates & index) const
  {
    return data[Offset(index)];
  }
};

inline Coordinates
StridesOf(const Box & box)
{
  Coordinates stride{};
  stride[0] = 1;
  for (int a = 1; a < MaxDimension; ++a)
  {
    stride[a] = stride[a - 1] * box.Extent(a - 1);
  }
  return stride;
}

template <typename T>
Voxels<T>
DenseVoxels(T * data, const Box & box)
{
  return { data, box, StridesOf(box) };
}

template <typename T>
Voxels<T>
VoxelsOf(const BufferView & view)
{
  return { static_cast<T *>(view.data), view.box, view.stride };
}

/** A quotient of numbers that are not negative. Those of 32 bits take a fifth of the time. */
__device__ __forceinline__ std::int64_t
                           Quotient(std::int64_t a, std::int64_t b)
{
  return (a | b) >> 32 == 0 ? static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b) : a / b;
}

/** Voxel number `i` of a box, x fastest. */
__device__ inline Coordinates
IndexIn(const Box & box, std::int64_t i)
{
  Coordinates index{};
  for (int a = 0; a < MaxDimension - 1; ++a)
  {
    const std::int64_t extent = box.Extent(a);
    const std::int64_t rest = Quotient(i, extent);
    index.axis[a] = box.lower.axis[a] + (i - rest * extent);
    i = rest;
  }
  index.axis[MaxDimension - 1] = box.lower.axis[MaxDimension - 1] + i;
  return index;
}

/** Kernels that go through the rows of a box, a warp a row: what a row takes before its voxels is shared by many. */
constexpr int RowsOfBlock = 8;

inline dim3
ThreadsOfRows()
{
  return dim3(32, RowsOfBlock);
}
inline unsigned int
BlocksOfRows(const Box & box)
{
  return BlocksFor(box.NumberOfVoxels() / box.Extent(0), RowsOfBlock);
}
__device__ __forceinline__ std::int64_t
                           FirstRow()
{
  return static_cast<std::int64_t>(blockIdx.x) * RowsOfBlock + threadIdx.y;
}
__device__ __forceinline__ std::int64_t
                           RowStep()
{
  return static_cast<std::int64_t>(gridDim.x) * RowsOfBlock;
}

/** Copies the image as it goes on beyond its edge, converted. */
template <typename TIn, typename TOut>
__global__ void
ContinueKernel(Voxels<const TIn> in, Box image, BoundaryMode mode, TOut constant, Voxels<TOut> out)
{
  const std::int64_t width = out.box.Extent(0);
  const std::int64_t rows = out.box.NumberOfVoxels() / width;
  const auto         map = [&](std::int64_t i, int a) {
    return MapTap(i, in.box.lower.axis[a], in.box.upper.axis[a], image.Extent(a), mode);
  };
  const auto isAbsent = [mode](std::int64_t i) { return mode == BoundaryMode::Constant && i < 0; };
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    Coordinates at = IndexIn(out.box, row * width);
    bool        there = true;
    for (int a = 1; a < MaxDimension; ++a)
    {
      at.axis[a] = map(at.axis[a], a);
      there = there && !isAbsent(at.axis[a]);
      at.axis[a] = isAbsent(at.axis[a]) ? in.box.lower.axis[a] : at.axis[a];
    }
    at.axis[0] = in.box.lower.axis[0];
    const TIn * const from = &in[at];
    TOut * const      to = out.data + row * width;
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      const std::int64_t i = map(out.box.lower.axis[0] + x, 0);
      to[x] =
        there && !isAbsent(i) ? static_cast<TOut>(from[(i - in.box.lower.axis[0]) * in.stride.axis[0]]) : constant;
    }
  }
}

/** Bytes of scratch that PadImage takes. */
inline std::size_t
ContinuedBytes(const WindowBoxes & boxes, BoundaryMode mode, std::size_t pixelBytes)
{
  return mode == BoundaryMode::Renormalized
           ? 0
           : RoundUp(static_cast<std::size_t>(boxes.padded.NumberOfVoxels()) * pixelBytes);
}

/** The voxels that the first pass reads. `scratch` moves past what is taken of it. */
template <typename T>
Voxels<const T>
PadImage(const KernelCall & call, const WindowBoxes & boxes, const WindowBoundary & boundary, char *& scratch)
{
  if (boundary.mode == BoundaryMode::Renormalized)
  {
    const BufferView & in = call.inputs[0];
    return { static_cast<const T *>(in.data) + in.Offset(boxes.padded.lower), boxes.padded, in.stride };
  }
  const Voxels<T> continued = DenseVoxels(reinterpret_cast<T *>(scratch), boxes.padded);
  scratch += ContinuedBytes(boxes, boundary.mode, sizeof(T));
  ContinueKernel<T, T><<<BlocksOfRows(continued.box), ThreadsOfRows(), 0, StreamOf(call)>>>(
    VoxelsOf<const T>(call.inputs[0]), call.image, boundary.mode, ConstantPixel<T>(boundary.constant), continued);
  CheckLaunch("ContinueKernel");
  return { continued.data, continued.box, continued.stride };
}

} // namespace chunkwise

#endif
