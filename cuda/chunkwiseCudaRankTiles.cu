/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaRank.cuh"

#include <cub/block/block_radix_sort.cuh>

// Windows of a medium size slide a histogram over a tile whose voxels have been sorted.
namespace chunkwise
{

namespace
{

/** Windows of a radius of up to 5 along each axis, in tiles of 16 outputs an axis. A block sorts the voxels of its tile
 * and around it: a voxel's number in that order takes the place of its key. A thread moves along a line of 8 outputs
 * and keeps a histogram of the numbers in the window, in bins of 128: what comes and goes are two planes. The voxel
 * itself is found among the 128 of its bin. */
template <typename TKey>
struct RankTile
{
  static constexpr int Outputs = 16; ///< of a side
  static constexpr int LargestRadius = 5;
  static constexpr int LargestSide = Outputs + 2 * LargestRadius;
  static constexpr int Threads = 512;
  static constexpr int OutputsOfThread = Outputs * Outputs * Outputs / Threads;
  static constexpr int Items = (LargestSide * LargestSide * LargestSide + Threads - 1) / Threads;
  static constexpr int BinBits = 7;
  static constexpr int Words = (Items * Threads / (1 << BinBits) + 3) / 4; ///< of four bins
  using Sort = cub::BlockRadixSort<TKey, Threads, Items, std::uint16_t>;
  /** A place has 6 bits an axis, of which the highest is free: for comparisons of all at once. */
  static constexpr std::uint32_t Guards = 32u | 32u << 6 | 32u << 12;
  static constexpr std::size_t   HistogramBytes = sizeof(std::uint32_t) * Words * Threads;
  static constexpr std::size_t   SharedBytes =
    (sizeof(typename Sort::TempStorage) > HistogramBytes ? sizeof(typename Sort::TempStorage) + 15 : HistogramBytes) /
      16 * 16 +
    (sizeof(std::uint16_t) + sizeof(std::uint32_t)) * Items * Threads;
  /** The number of what is not there. */
  static constexpr std::uint16_t Nowhere = 0xFFFF;

  __device__ static std::uint32_t
  Place(int p, int q, int m)
  {
    return static_cast<std::uint32_t>(p | q << 6 | m << 12);
  }
};

/** The part of a tile's axis that a window has: positions from `first` on, counted from where the tile's surroundings
 * begin. */
struct TileRange
{
  int first;
  int count;

  __device__
  TileRange(const Box & in, int axis, std::int64_t center, int radius, std::int64_t origin)
  {
    const std::int64_t low = max(center - radius, in.lower.axis[axis]);
    const std::int64_t high = min(center + radius, in.upper.axis[axis] - 1);
    first = static_cast<int>(low - origin);
    count = static_cast<int>(high - low + 1);
  }
};

template <typename TKey>
__global__ void
__launch_bounds__(RankTile<TKey>::Threads, 1)
  RankTileKernel(const __grid_constant__ RankGeometry g, const TKey * __restrict__ in, void * __restrict__ out)
{
  using Tile = RankTile<TKey>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ int                                lost;
  auto * const numbers = reinterpret_cast<std::uint16_t *>(memory + Tile::SharedBytes) - Tile::Items * Tile::Threads;
  auto * const sorted = reinterpret_cast<std::uint32_t *>(numbers) - Tile::Items * Tile::Threads;
  const int    thread = static_cast<int>(threadIdx.x);
  std::uint32_t * const histogram = reinterpret_cast<std::uint32_t *>(memory) + thread;
  const int             axes[3] = { g.planeAxes[0], g.planeAxes[1], g.lineAxis };
  const int             radii[3] = { g.planeRadii[0], g.planeRadii[1], g.lineRadius };
  for (std::int64_t number = blockIdx.x; number < g.lines; number += gridDim.x)
  {
    Coordinates  corner = g.out.lower;
    std::int64_t rest = number;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const int          side = a == axes[0] || a == axes[1] || a == axes[2] ? Tile::Outputs : 1;
      const std::int64_t tiles = (g.out.Extent(a) + side - 1) / side;
      const std::int64_t quotient = rest / tiles;
      corner.axis[a] += (rest - quotient * tiles) * side;
      rest = quotient;
    }
    std::int64_t origin[3];
    int          sides[3];
#pragma unroll
    for (int i = 0; i < 3; ++i)
    {
      origin[i] = corner.axis[axes[i]] - radii[i];
      sides[i] = Tile::Outputs + 2 * radii[i];
    }
    const std::int64_t base = RankLine::Offset(corner, g.in, g.inStride);
    const auto         offsetOf = [&](int p, int q, int m) {
      return base + (p - radii[0]) * g.inStride.axis[axes[0]] + (q - radii[1]) * g.inStride.axis[axes[1]] +
             (m - radii[2]) * g.inStride.axis[axes[2]];
    };
    // Sorts the voxels, each with its place.
    TKey          keys[Tile::Items];
    std::uint16_t codes[Tile::Items];
#pragma unroll
    for (int i = 0; i < Tile::Items; ++i)
    {
      const int n = thread + i * Tile::Threads;
      const int p = n % sides[0];
      const int q = n / sides[0] % sides[1];
      const int m = n / sides[0] / sides[1];
      bool      is = m < sides[2];
      const int at[3] = { p, q, m };
#pragma unroll
      for (int k = 0; k < 3; ++k)
      {
        is = is && origin[k] + at[k] >= g.in.lower.axis[axes[k]] && origin[k] + at[k] < g.in.upper.axis[axes[k]];
      }
      keys[i] = is ? ToKey(in[offsetOf(p, q, m)], g.form) : static_cast<TKey>(~TKey{ 0 });
      codes[i] = is ? static_cast<std::uint16_t>(n) : Tile::Nowhere;
    }
    if (thread == 0)
    {
      lost = 0;
    }
    __syncthreads();
    typename Tile::Sort(*reinterpret_cast<typename Tile::Sort::TempStorage *>(memory)).Sort(keys, codes);
    int lostHere = 0;
#pragma unroll
    for (int i = 0; i < Tile::Items; ++i)
    {
      const int n = thread * Tile::Items + i;
      const int code = codes[i];
      // What is not there is in no window: all bits are set.
      sorted[n] = ~0u;
      if (code != Tile::Nowhere)
      {
        sorted[n] = Tile::Place(code % sides[0], code / sides[0] % sides[1], code / sides[0] / sides[1]);
        numbers[code] = static_cast<std::uint16_t>(n);
        lostHere += g.form == KeyForm::Real && keys[i] == 0 ? 1 : 0;
      }
    }
    if (lostHere > 0)
    {
      atomicAdd(&lost, lostHere);
    }
    __syncthreads();
    const int lostInTile = lost;
    for (int w = 0; w < Tile::Words; ++w)
    {
      histogram[w * Tile::Threads] = 0;
    }
    // A thread's outputs.
    const int   column = thread % (Tile::Outputs * Tile::Outputs);
    const int   firstLine = thread / (Tile::Outputs * Tile::Outputs) * Tile::OutputsOfThread;
    Coordinates index = corner;
    index.axis[axes[0]] += column % Tile::Outputs;
    index.axis[axes[1]] += column / Tile::Outputs;
    index.axis[axes[2]] += firstLine;
    const bool active =
      index.axis[axes[0]] < g.out.upper.axis[axes[0]] && index.axis[axes[1]] < g.out.upper.axis[axes[1]];
    const TileRange rangeP(g.in, axes[0], index.axis[axes[0]], radii[0], origin[0]);
    const TileRange rangeQ(g.in, axes[1], index.axis[axes[1]], radii[1], origin[1]);
    int             lostInWindow = 0;
    const auto      addPlane = [&](int m, std::uint32_t sign) {
      for (int q = rangeQ.first; q < rangeQ.first + rangeQ.count; ++q)
      {
        const std::uint16_t * const row = numbers + (m * sides[1] + q) * sides[0] + rangeP.first;
#pragma unroll 4
        for (int p = 0; p < rangeP.count; ++p)
        {
          const std::uint32_t n = row[p];
          histogram[(n >> (Tile::BinBits + 2)) * Tile::Threads] += sign << (n >> (Tile::BinBits - 3) & 24u);
        }
        for (int p = 0; lostInTile > 0 && p < rangeP.count; ++p)
        {
          lostInWindow += row[p] < lostInTile ? static_cast<int>(sign) : 0;
        }
      }
    };
    int begin = 0;
    int end = 0;
    for (int o = 0; active && o < Tile::OutputsOfThread && index.axis[axes[2]] < g.out.upper.axis[axes[2]]; ++o)
    {
      const TileRange rangeM(g.in, axes[2], index.axis[axes[2]], radii[2], origin[2]);
      if (o == 0)
      {
        begin = end = rangeM.first;
      }
      for (; end < rangeM.first + rangeM.count; ++end)
      {
        addPlane(end, 1u);
      }
      for (; begin < rangeM.first; ++begin)
      {
        addPlane(begin, ~0u);
      }
      int below = static_cast<int>(RankIn(rangeP.count * rangeQ.count * rangeM.count, lostInWindow, g.fraction));
      int word = 0;
      std::uint32_t bins = histogram[0];
      for (int some = __dp4a(bins, 0x01010101u, 0u); below >= some; some = __dp4a(bins, 0x01010101u, 0u))
      {
        below -= some;
        bins = histogram[++word * Tile::Threads];
      }
      int bin = 0;
      while (below >= static_cast<int>(bins >> 8 * bin & 255u))
      {
        below -= static_cast<int>(bins >> 8 * bin & 255u);
        ++bin;
      }
      // A guard survives where a place is not before the window's first, nor after its last.
      const std::uint32_t first = Tile::Place(rangeP.first, rangeQ.first, rangeM.first);
      const std::uint32_t last =
        first + Tile::Place(rangeP.count - 1, rangeQ.count - 1, rangeM.count - 1) + Tile::Guards;
      std::uint32_t place = 0;
      for (int n = (4 * word + bin) << Tile::BinBits;; ++n)
      {
        place = sorted[n];
        if ((((place | Tile::Guards) - first) & (last - place) & Tile::Guards) == Tile::Guards && place != ~0u &&
            below-- == 0)
        {
          break;
        }
      }
      StoreKey(ToKey(in[offsetOf(place & 31, place >> 6 & 31, place >> 12)], g.form),
               g,
               out,
               RankLine::Offset(index, g.outBuffer, g.outStride));
      ++index.axis[axes[2]];
    }
    __syncthreads();
  }
}

} // namespace

template <typename TKey>
bool
LaunchRankTiles(RankGeometry g, const void * in, void * out, cudaStream_t stream)
{
  if constexpr (sizeof(TKey) > 4)
  {
    return false;
  }
  else
  {
    using Tile = RankTile<TKey>;
    if (std::max({ g.planeRadii[0], g.planeRadii[1], g.lineRadius }) > Tile::LargestRadius ||
        static_cast<std::int64_t>(Tile::SharedBytes + 1024) > SharedMemoryOfDevice())
    {
      return false;
    }
    g.lines = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const bool isWide = a == g.planeAxes[0] || a == g.planeAxes[1] || a == g.lineAxis;
      g.lines *= isWide ? (g.out.Extent(a) + Tile::Outputs - 1) / Tile::Outputs : g.out.Extent(a);
    }
    const auto kernel = RankTileKernel<TKey>;
    AllowSharedMemory(kernel, Tile::SharedBytes);
    kernel<<<BlocksFor(g.lines, 1), Tile::Threads, Tile::SharedBytes, stream>>>(g, static_cast<const TKey *>(in), out);
    CheckLaunch("RankTileKernel");
    return true;
  }
}

template bool
LaunchRankTiles<std::uint8_t>(RankGeometry, const void *, void *, cudaStream_t);
template bool
LaunchRankTiles<std::uint16_t>(RankGeometry, const void *, void *, cudaStream_t);
template bool
LaunchRankTiles<std::uint32_t>(RankGeometry, const void *, void *, cudaStream_t);
template bool
LaunchRankTiles<std::uint64_t>(RankGeometry, const void *, void *, cudaStream_t);

} // namespace chunkwise
