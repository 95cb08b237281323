/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseTileMappings_h
#define chunkwiseTileMappings_h

#include "chunkwiseTypes.h"

#include <cstdint>

// The arithmetic of AdaptiveEqualizationOperation. Templates take numbers or vectors of them, with the same bits.
namespace chunkwise
{

constexpr int LargestLevel = 16383;

/** The level of a voxel, a whole number from 0 to LargestLevel. */
template <typename TVector, typename TReal>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
LevelOf(TVector voxel, TReal lower, TReal scale)
{
  // The sum has no bits after the point: rounded to nearest, ties to even.
  constexpr TReal shift = sizeof(TReal) == 4 ? TReal(12582912) : TReal(6755399441055744);
  const TVector   zero{};
  const TVector   most = zero + TReal(LargestLevel);
  const TVector   value = (voxel - lower) * scale;
  const TVector   positive = value > zero ? value : zero;
  const TVector   bounded = positive < most ? positive : most;
  return (bounded + shift) - shift;
}

/** Levels of a bin. */
CHUNKWISE_HOST_DEVICE inline int
LevelsOfBin(int bins)
{
  return 1 + (LargestLevel + 1) / bins;
}

/** The bin of a level, before it is rounded down; `inverse` is 1 / LevelsOfBin. A half more than the level is as far
 * from multiples as rounding cannot reach. */
template <typename TVector, typename TReal>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
BinOf(TVector level, TReal inverse)
{
  return (level + TReal(0.5)) * inverse;
}

/** The tiles that a position lies between along an axis with `n` voxels and tiles of `size`. */
struct TilePlace
{
  std::int64_t before{ 0 };
  std::int64_t after{ 0 };
  float        part{ 0 };

  CHUNKWISE_HOST_DEVICE
  TilePlace(std::int64_t i, std::int64_t size, std::int64_t n)
  {
    if (size == 0)
    {
      before = after = i;
      return;
    }
    const std::int64_t last = (n - 1) / size;
    const std::int64_t j = (i + size / 2) / size;
    before = j > 0 ? j - 1 : 0;
    before = before < last ? before : last;
    after = j < last ? j : last;
    part = static_cast<float>((i + size / 2) % size) / static_cast<float>(size);
  }
};

/** The voxel that stands for one at or beyond the image's upper edge. */
CHUNKWISE_HOST_DEVICE inline std::int64_t
ReflectAtEnd(std::int64_t i, std::int64_t n)
{
  if (i < n || n == 1)
  {
    return i < n ? i : 0;
  }
  const std::int64_t m = i % (2 * (n - 1));
  return m < n ? m : 2 * (n - 1) - m;
}

/** Clips a histogram at `limit` and gives the voxels above it to bins that have fewer: first the same number to each
 * that has room for more, and as much as they lack to bins that then lack no more than this number; then one to bins at
 * equal distances, from the first bin on, then from the second, and so on, until none is left or all bins are full. */
CHUNKWISE_HOST_DEVICE inline void
ClipHistogram(std::uint32_t * counts, int bins, std::int64_t limit)
{
  std::int64_t excess = 0;
  for (int b = 0; b < bins; ++b)
  {
    if (counts[b] > limit)
    {
      excess += counts[b] - limit;
      counts[b] = static_cast<std::uint32_t>(limit);
    }
  }
  const std::int64_t share = excess / bins;
  int                open = 0;
  for (int b = 0; b < bins; ++b)
  {
    const std::int64_t count = counts[b];
    const std::int64_t most = count < limit - share ? count + share : count;
    const std::int64_t filled = most < limit - share ? most : limit;
    excess -= filled - count;
    counts[b] = static_cast<std::uint32_t>(filled);
    open += counts[b] < limit ? 1 : 0;
  }
  while (excess > 0 && open > 0)
  {
    for (int first = 0; first < bins && excess > 0 && open > 0; ++first)
    {
      const int step = open > excess ? static_cast<int>(open / excess) : 1;
      for (int b = first; b < bins; b += step)
      {
        if (counts[b] < limit)
        {
          ++counts[b];
          --excess;
          open -= counts[b] < limit ? 0 : 1;
        }
      }
    }
  }
}

/** The mapping of a bin: `count` voxels of a tile are in it and in the bins below, `unit` is LargestLevel over the
 * tile's voxels. */
CHUNKWISE_HOST_DEVICE inline float
MappingOf(std::int64_t count, double unit)
{
  const double level = static_cast<double>(count) * unit;
  return static_cast<float>(level < LargestLevel ? static_cast<int>(level) : LargestLevel);
}

/** Between two mappings. */
template <typename TVector>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
MixOf(TVector before, TVector after, float part)
{
  return before + (after - before) * part;
}

} // namespace chunkwise

#endif
