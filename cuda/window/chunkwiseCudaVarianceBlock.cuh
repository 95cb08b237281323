/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaVarianceBlock_cuh
#define chunkwiseCudaVarianceBlock_cuh

#include "chunkwiseCudaMarchGrid.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseMoments.h"

#include <optional>
#include <type_traits>

// What the kernels of small windows share, of which a block of threads takes a tile in x and y and moves along z.
namespace chunkwise
{

/** What a block has of the output: a tile that begins at x0, y0, and a segment of the planes. */
struct MarchingBlock
{
  std::int64_t x0;
  std::int64_t y0;
  std::int64_t z0;
  std::int64_t zEnd;
  /** The position along the axes beyond z. */
  std::int64_t c;
  std::int64_t w;

  __device__ __forceinline__
  MarchingBlock(const Box & box, std::int64_t segment, int tileX, int tileY)
  {
    const std::int64_t segments = (box.Extent(2) + segment - 1) / segment;
    std::int64_t       rest = blockIdx.z;
    z0 = box.lower.axis[2] + rest % segments * segment;
    rest /= segments;
    zEnd = z0 + segment < box.upper.axis[2] ? z0 + segment : box.upper.axis[2];
    c = box.lower.axis[3] + rest % box.Extent(3);
    w = box.lower.axis[4] + rest / box.Extent(3);
    x0 = box.lower.axis[0] + static_cast<std::int64_t>(blockIdx.x) * tileX;
    y0 = box.lower.axis[1] + static_cast<std::int64_t>(blockIdx.y) * tileY;
  }
};

/** Those of the `count` rows or columns from `first` on, which a block stages, that there are. */
struct StagedRange
{
  int low;
  int high;

  __device__ __forceinline__
  StagedRange(const Box & box, int axis, std::int64_t first, int count)
    : low(Clip(box.lower.axis[axis] - first, count))
    , high(Clip(box.upper.axis[axis] - first, count))
  {}

private:
  __device__ __forceinline__ static int
  Clip(std::int64_t value, int most)
  {
    return static_cast<int>(min(max(value, std::int64_t{ 0 }), std::int64_t{ most }));
  }
};

/** The blocks for tiles and segments, unless these are too many for a launch. */
inline std::optional<dim3>
GridOfBlocks(const Box & box, std::int64_t segment, int tileX, int tileY)
{
  const std::int64_t tilesX = (box.Extent(0) + tileX - 1) / tileX;
  const std::int64_t tilesY = (box.Extent(1) + tileY - 1) / tileY;
  const std::int64_t blocksZ = (box.Extent(2) + segment - 1) / segment * box.Extent(3) * box.Extent(4);
  if (tilesX > 1000000 || tilesY > 65535 || blocksZ > 65535)
  {
    return std::nullopt;
  }
  return dim3(static_cast<unsigned int>(tilesX), static_cast<unsigned int>(tilesY), static_cast<unsigned int>(blocksZ));
}

/** The blocks of a kernel of so many threads and bytes of shared memory, and the planes of each: they fill the device
 * in few turns. None where they are too many for a launch. */
struct MarchingGrid
{
  std::int64_t        segment;
  std::optional<dim3> blocks;

  template <typename TKernel>
  MarchingGrid(TKernel kernel, int threads, std::size_t bytes, const Box & box, int tileX, int tileY,
               std::int64_t radius)
  {
    const std::int64_t tiles =
      (box.Extent(0) + tileX - 1) / tileX * ((box.Extent(1) + tileY - 1) / tileY) * box.Extent(3) * box.Extent(4);
    segment =
      MarchSegment(tiles, box.Extent(2), radius, BlocksAtOnce(reinterpret_cast<const void *>(kernel), threads, bytes));
    blocks = GridOfBlocks(box, segment, tileX, tileY);
  }
};

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

/** The variance of a window of at most 125 integers of 8 or 16 bits from its sums, or the root of it. */
template <typename TOut>
__device__ __forceinline__ TOut
ResultOfSums(std::int64_t sum, std::int64_t squares, int count, bool takesRoot)
{
  if constexpr (std::is_integral<TOut>::value)
  {
    if (takesRoot)
    {
      // What VarianceOfSums gives has its error far from any middle, or none.
      const auto divisor = static_cast<std::uint32_t>(count * count);
      return ClampInteger<TOut>(NearestRoot(count * squares - sum * sum, divisor));
    }
  }
  return FinishVariance<TOut>(VarianceOfSums(sum, squares, std::int64_t{ count }), takesRoot);
}

} // namespace chunkwise

#endif
