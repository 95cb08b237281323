/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaVariance.cuh"
#include "chunkwiseCudaVarianceBlock.cuh"
#include "chunkwiseReducer.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

// Standard deviations of integers of 8 and 16 bits, as such integers, with a small radius, the same along x, y and z:
// exact sums may be made in any order, so that along y and z they slide.
namespace chunkwise
{

namespace
{

constexpr int SumOutputs = 4;

/** The sums of a thread's outputs. */
template <typename TSecond>
struct ColumnSums
{
  std::int32_t sums[SumOutputs] = {};
  TSecond      squares[SumOutputs] = {};
};

template <int VRadius, typename TPixel>
struct SumShape
{
  using Tile = ColumnTile<VRadius>;
  static constexpr int K = Tile::K;
  static_assert(Tile::Outputs == SumOutputs, "the number that code without a radius has");
  using Second = std::conditional_t<sizeof(TPixel) == 1, std::int32_t, std::int64_t>;
  using Sums = ColumnSums<Second>;
  static constexpr int Words = sizeof(Sums) / sizeof(uint4);

  /** Pixels less `Middle`, which changes no variance: squares of three have 32 bits. */
  static constexpr int Middle = std::is_same<TPixel, std::uint16_t>::value ? 32768 : 0;
  std::int16_t         staged[2][Tile::StagedRows][Tile::StagedWidth];
  /** The passed planes of the windows along z: they leave a window as they came. */
  alignas(16) uint4 ring[K][Words][Tile::Threads];
};

/** Passes a plane along x and y. */
template <int VRadius, typename TPixel>
__device__ __forceinline__ typename SumShape<VRadius, TPixel>::Sums
           PassPlane(const std::int16_t (*rows)[ColumnTile<VRadius>::StagedWidth], int tx)
{
  using Shape = SumShape<VRadius, TPixel>;
  using Second = typename Shape::Second;
  constexpr int        K = Shape::K;
  typename Shape::Sums passed;
  std::int32_t         sums[SumOutputs + 2 * VRadius];
  Second               squares[SumOutputs + 2 * VRadius];
  std::int32_t         sum = 0;
  Second               square = 0;
#pragma unroll
  for (int row = 0; row < SumOutputs + 2 * VRadius; ++row)
  {
    // Three of the squares, and the others, have 32 bits.
    std::int32_t  ofRow = 0;
    std::uint32_t parts[2] = {};
#pragma unroll
    for (int t = 0; t < K; ++t)
    {
      const int value = rows[row][tx + t];
      ofRow += value;
      parts[t / 3] += static_cast<std::uint32_t>(value * value);
    }
    sums[row] = ofRow;
    squares[row] = static_cast<Second>(parts[0]) + static_cast<Second>(parts[1]);
    sum += sums[row];
    square += squares[row];
    if (row >= K)
    {
      sum -= sums[row - K];
      square -= squares[row - K];
    }
    if (row >= K - 1)
    {
      passed.sums[row - (K - 1)] = sum;
      passed.squares[row - (K - 1)] = square;
    }
  }
  return passed;
}

/** The root of a / b, to nearest, ties to even, for 4 a < 2^63 and roots below 2^16: one in float is off by one at the
 * most. */
__device__ __forceinline__ int
NearestRoot(std::int64_t a, std::uint32_t b)
{
  float quotient = __fdividef(static_cast<float>(a), static_cast<float>(b));
  asm("sqrt.approx.f32 %0, %0;" : "+f"(quotient));
  const auto root = static_cast<std::uint32_t>(__float2int_rn(quotient));
  // The middles between it and the integers beside it, twice, squared and times b: b times 2^17 has 32 bits.
  const auto squareOf = [b](std::uint32_t twice) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(b * twice) * twice);
  };
  const std::int64_t odd = root & 1;
  const bool         isMore = 4 * a + odd > squareOf(2 * root + 1);
  const bool         isLess = root > 0 && 4 * a - odd < squareOf(2 * root - 1);
  return static_cast<int>(root) + (isMore ? 1 : 0) - (isLess ? 1 : 0);
}

/** The standard deviation of a window of at most 125 integers of 8 or 16 bits from its sums, as an integer: what
 * VarianceOfSums gives in double has its error far from any middle, or none. */
template <typename TOut>
__device__ __forceinline__ TOut
RootOfSums(std::int64_t sum, std::int64_t squares, int count)
{
  return ClampInteger<TOut>(NearestRoot(count * squares - sum * sum, static_cast<std::uint32_t>(count * count)));
}

/** A block takes a tile in x and y and moves along z. Planes are staged in shared memory, the next while this one is
 * computed. */
template <int VRadius, typename TPixel>
__global__ void
__launch_bounds__(ColumnTile<VRadius>::Threads, 3)
  VarianceSumsKernel(const __grid_constant__ Voxels<const TPixel> pixels, const __grid_constant__ Voxels<TPixel> out,
                     std::int64_t segment)
{
  using Shape = SumShape<VRadius, TPixel>;
  using Sums = typename Shape::Sums;
  extern __shared__ __align__(16) unsigned char memory[];
  Shape &                                       shape = *reinterpret_cast<Shape *>(memory);

  const MarchingBlock  block(typename Shape::Tile(), out.box, segment);
  const ColumnOfThread own(typename Shape::Tile(), block, out.box);
  const int            tx = own.tx;
  const int            top = own.top;
  const int            outputs = own.outputs;
  const StagedRange    rangeX(pixels.box, 0, block.x0 - VRadius, Shape::Tile::StagedWidth);
  const StagedRange    rangeY(pixels.box, 1, block.y0 - VRadius, Shape::Tile::StagedRows);
  const std::int64_t   lowerZ = pixels.box.lower.axis[2];
  const std::int64_t   upperZ = pixels.box.upper.axis[2];
  int                  taps[SumOutputs];
#pragma unroll
  for (int u = 0; u < SumOutputs; ++u)
  {
    taps[u] = (min(tx + Shape::K, rangeX.high) - max(tx, rangeX.low)) *
              (min(top + u + Shape::K, rangeY.high) - max(top + u, rangeY.low));
  }
  ColumnLoads<VRadius, TPixel, std::int16_t, true, Shape::Middle> loads(pixels, block, rangeX, rangeY);
  std::int64_t                                                    z = max(lowerZ, block.z0 - VRadius);
  const TPixel *                                                  plane =
    &pixels[Coordinates{ { pixels.box.lower.axis[0], pixels.box.lower.axis[1], z, block.c, block.w } }];
  TPixel * to = out.data + out.Offset(Coordinates{ { own.x, block.y0 + top, z - VRadius, block.c, block.w } });
  uint4(*const ring)[Shape::Words][Shape::Tile::Threads] = shape.ring;
#pragma unroll 1
  for (int slot = 0; slot < Shape::K; ++slot)
  {
#pragma unroll
    for (int w = 0; w < Shape::Words; ++w)
    {
      ring[slot][w][threadIdx.x] = make_uint4(0, 0, 0, 0);
    }
  }
  loads.Load(plane);
  loads.Stage(shape.staged[0]);
  Sums windows;
  int  slot = 0;
  for (int buffer = 0; z < block.zEnd + VRadius; ++z, buffer ^= 1, to += out.stride.axis[2])
  {
    Sums now;
    if (z < upperZ)
    {
      __syncthreads();
      const bool more = z + 1 < upperZ && z + 1 < block.zEnd + VRadius;
      if (more)
      {
        plane += pixels.stride.axis[2];
        loads.Load(plane);
      }
      now = PassPlane<VRadius, TPixel>(&shape.staged[buffer][top], tx);
      if (more)
      {
        loads.Stage(shape.staged[buffer ^ 1]);
      }
    }
    // The plane takes the place of the one that leaves.
    uint4 words[Shape::Words];
#pragma unroll
    for (int w = 0; w < Shape::Words; ++w)
    {
      words[w] = ring[slot][w][threadIdx.x];
    }
    Sums old;
    memcpy(&old, words, sizeof(old));
    memcpy(words, &now, sizeof(now));
#pragma unroll
    for (int w = 0; w < Shape::Words; ++w)
    {
      ring[slot][w][threadIdx.x] = words[w];
    }
    slot = slot + 1 == Shape::K ? 0 : slot + 1;
    const std::int64_t at = z - VRadius;
    const auto         planes = static_cast<int>(min(z + 1, upperZ) - max(at - VRadius, lowerZ));
#pragma unroll
    for (int u = 0; u < SumOutputs; ++u)
    {
      windows.sums[u] += now.sums[u] - old.sums[u];
      windows.squares[u] += now.squares[u] - old.squares[u];
      if (at >= block.z0 && u < outputs)
      {
        to[u * out.stride.axis[1]] =
          RootOfSums<TPixel>(windows.sums[u], static_cast<std::int64_t>(windows.squares[u]), planes * taps[u]);
      }
    }
  }
}

template <int VRadius, typename TPixel>
void
LaunchVarianceSums(const Voxels<const TPixel> & pixels, const BufferView & output, cudaStream_t stream)
{
  using Tile = ColumnTile<VRadius>;
  constexpr std::size_t bytes = sizeof(SumShape<VRadius, TPixel>);
  const auto            kernel = VarianceSumsKernel<VRadius, TPixel>;
  AllowSharedMemory(kernel, bytes);
  const MarchingGrid grid(Tile(), kernel, bytes, output.box);
  kernel<<<grid.blocks, Tile::Threads, bytes, stream>>>(pixels, VoxelsOf<TPixel>(output), grid.segment);
  CheckLaunch("VarianceSumsKernel");
}

} // namespace

bool
SupportsVarianceSums(const VarianceShape & shape)
{
  const bool isShort =
    shape.kind == PixelType::UInt8 || shape.kind == PixelType::UInt16 || shape.kind == PixelType::Int16;
  constexpr std::size_t most = sizeof(SumShape<2, std::uint16_t>);
  return isShort && shape.takesRoot && shape.outputKind == shape.kind && shape.AreCubes() && shape.radius[0] >= 1 &&
         shape.radius[0] <= 2 && shape.AreSmallPlanes() && AreFewBlocks<ColumnTile<2>>(shape.output) &&
         static_cast<std::int64_t>(most) <= SharedMemoryOfDevice();
}

template <typename TPixel>
void
RunVarianceSums(const Voxels<const TPixel> & pixels, const BufferView & output, const Coordinates & radius,
                cudaStream_t stream)
{
  radius[0] == 1 ? LaunchVarianceSums<1>(pixels, output, stream) : LaunchVarianceSums<2>(pixels, output, stream);
}

template void
RunVarianceSums(const Voxels<const std::uint8_t> &, const BufferView &, const Coordinates &, cudaStream_t);
template void
RunVarianceSums(const Voxels<const std::uint16_t> &, const BufferView &, const Coordinates &, cudaStream_t);
template void
RunVarianceSums(const Voxels<const std::int16_t> &, const BufferView &, const Coordinates &, cudaStream_t);

} // namespace chunkwise
