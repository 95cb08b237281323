/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuLevels.h"
#include "chunkwiseCpuMaskedRows.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwiseRealOf.h"

#include <type_traits>

// A tile for one shift after the other: squares of the differences between the tile and the tile shifted, their sums
// along one axis after the other, weights. The weight of p and p + shift serves both.
// In a mask, voxels outside are NaN, which makes the difference from any voxel NaN; pairs are counted in bytes.
namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(MaskedRowLevel, MakeMaskedRowLevel)

const MaskedRowLevel &
GetMaskedRowLevel()
{
  static FunctionsAtLevels<MaskedRowLevel> levels{ CHUNKWISE_AT_LEVELS(MakeMaskedRowLevel) };
  return levels.Get();
}

namespace
{

template <typename TReal>
const MaskedPatchFunctions<TReal> &
MaskedPatchFunctionsOf(const MaskedRowLevel & level)
{
  if constexpr (sizeof(TReal) == 4)
  {
    return level.patch32;
  }
  else
  {
    return level.patch64;
  }
}

/** The weights that a tile's voxels have. */
enum class SeenPatches
{
  Nothing, ///< none has a weight that could be a candidate
  All,     ///< all are 1
  Masked,  ///< each is 0 or 1, and those of 1 are finite
  Weighed
};

template <typename TReal>
const PatchFunctions<TReal> &
PatchFunctionsOf(const CpuLevel & level)
{
  if constexpr (sizeof(TReal) == 4)
  {
    return level.patch32;
  }
  else
  {
    return level.patch64;
  }
}

/** Numbers of a row in memory: as many as are written, and as many more as are read beyond them. */
std::int64_t
PitchOf(std::int64_t n)
{
  return (n + PatchBlock - 1) / PatchBlock * PatchBlock + PatchBlock;
}

/** The place of voxels of a box whose rows are `pitch` apart. */
struct RowLayout
{
  Coordinates  step{};
  std::int64_t origin{ 0 };

  RowLayout(const Box & box, std::int64_t pitch)
  {
    step[0] = 1;
    step[1] = pitch;
    for (int a = 2; a < MaxDimension; ++a)
    {
      step[a] = step[a - 1] * box.Extent(a - 1);
    }
    origin = Away(box.lower);
  }

  /** From a voxel to the one that is a shift away. */
  std::int64_t
  Away(const Coordinates & shift) const
  {
    std::int64_t away = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      away += shift[a] * step[a];
    }
    return away;
  }
  std::int64_t
  At(const Coordinates & index) const
  {
    return Away(index) - origin;
  }
};

/** Both radii, cut as a renormalized window is. */
struct PatchRadii
{
  Coordinates search;
  Coordinates patch;
  Coordinates reach;

  PatchRadii(const NonLocalMeansOperation & operation, const Coordinates & image)
    : search(operation.Cut(operation.search, image))
    , patch(operation.Cut(operation.patch, image))
    , reach(operation.Reach(image))
  {}
};

/** The extent of a tile of `output`; it does not shrink when the output grows. */
Coordinates
PatchTileExtent(const Box & output, const PatchRadii & radii)
{
  Coordinates tile{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t wanted = a == 0               ? std::max<std::int64_t>(128, 4 * radii.reach[a])
                                : radii.reach[a] > 0 ? std::max<std::int64_t>(a == 1 ? 16 : 8, radii.reach[a])
                                                     : 1;
    tile[a] = std::min(output.Extent(a), wanted);
  }
  return tile;
}

/** The parts of a worker's memory. */
template <typename TReal>
struct PatchMemory
{
  TReal * values{ nullptr };
  TReal * sums[2]{ nullptr, nullptr }; ///< of squares, along some axes
  TReal * pairs{ nullptr };            ///< the weights of voxels and shifted voxels
  TReal * shares{ nullptr };           ///< inverse of the number of offsets
  TReal * weighted{ nullptr };
  TReal * weights{ nullptr };
  /** For voxels that have weights: these, sums of their products, and a row of voxels' weights for each direction. */
  TReal * given{ nullptr };
  TReal * counts[2]{ nullptr, nullptr };
  TReal * products[2]{ nullptr, nullptr };
  /** For masks: whether voxels are inside, and numbers of pairs that are, in the place of the sums of products. */
  std::uint8_t * inside{ nullptr };
  std::uint8_t * pairCounts[2]{ nullptr, nullptr };
  /** From row to row of sums, of pairs and of results. */
  std::int64_t sumPitch{ 0 };
  std::int64_t pairPitch{ 0 };
  std::int64_t pitch{ 0 };

  std::int64_t
  LayOut(const Coordinates & tile, const PatchRadii & radii, bool isWeighed, char * memory)
  {
    std::int64_t bytes = 0;
    const auto   take = [&](auto *& part, std::int64_t n) {
      part = reinterpret_cast<std::remove_reference_t<decltype(part)>>(memory + bytes);
      bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(*part)));
    };
    pitch = PitchOf(tile[0]);
    pairPitch = PitchOf(tile[0] + radii.search[0]);
    sumPitch = PitchOf(tile[0] + radii.search[0] + 2 * radii.patch[0]);
    std::int64_t voxels = tile[0] + 2 * radii.reach[0];
    std::int64_t sumRows = 1;
    std::int64_t pairRows = 1;
    std::int64_t rows = 1;
    for (int a = 1; a < MaxDimension; ++a)
    {
      voxels *= tile[a] + 2 * radii.reach[a];
      sumRows *= tile[a] + radii.search[a] + 2 * radii.patch[a];
      pairRows *= tile[a] + radii.search[a];
      rows *= tile[a];
    }
    // The last row is read as far as the others.
    take(values, voxels + 2 * PatchBlock);
    take(sums[0], sumRows * sumPitch);
    take(sums[1], sumRows * sumPitch);
    take(pairs, pairRows * pairPitch);
    take(shares, pairPitch);
    take(weighted, rows * pitch);
    take(weights, rows * pitch);
    if (isWeighed)
    {
      take(given, voxels + 2 * PatchBlock);
      take(counts[0], sumRows * sumPitch);
      take(counts[1], sumRows * sumPitch);
      take(products[0], pitch);
      take(products[1], pitch);
      take(inside, voxels + 2 * PatchBlock);
      pairCounts[0] = reinterpret_cast<std::uint8_t *>(counts[0]);
      pairCounts[1] = reinterpret_cast<std::uint8_t *>(counts[1]);
    }
    return bytes;
  }
};

/** Non-local means of a tile. */
template <typename TReal>
class PatchTile
{
public:
  PatchTile(const Box & tile, const Box & image, const NonLocalMeansOperation & operation, const PatchRadii & radii,
            const PatchMemory<TReal> & memory)
    : m_Tile(tile)
    , m_Padded(WindowBoxes(tile, image, radii.reach, BoundaryMode::Mirror).padded)
    , m_Values(m_Padded, m_Padded.Extent(0))
    , m_Results(tile, memory.pitch)
    , m_Image(image)
    , m_Cuts(operation.boundary.mode == BoundaryMode::Renormalized)
    , m_Radii(radii)
    , m_TwiceNoise(static_cast<TReal>(2 * operation.noise))
    , m_Inverse(static_cast<TReal>(1 / (operation.strength * operation.strength)))
    , m_Memory(memory)
    , m_Functions(PatchFunctionsOf<TReal>(GetCpuLevel()))
    , m_Masked(MaskedPatchFunctionsOf<TReal>(GetMaskedRowLevel()))
  {
    std::int64_t rows = 1;
    for (int a = 1; a < MaxDimension; ++a)
    {
      rows *= tile.Extent(a);
    }
    std::fill(memory.weighted, memory.weighted + rows * memory.pitch, TReal(0));
    std::fill(memory.weights, memory.weights + rows * memory.pitch, TReal(0));
  }

  const Box &
  GetPadded() const
  {
    return m_Padded;
  }

  /** Finds which weights the loaded voxels have, once these are loaded too. */
  SeenPatches
  LookAtWeights()
  {
    Box candidates = m_Tile;
    for (int a = 0; a < MaxDimension; ++a)
    {
      candidates.lower[a] -= m_Radii.search[a];
      candidates.upper[a] += m_Radii.search[a];
    }
    m_Seen = SeenPatches::Nothing;
    ForEachRow(Intersect(candidates, m_Padded), [&](const Coordinates & at) {
      const TReal * const given = m_Memory.given + m_Values.At(at);
      const bool          isEmpty = std::all_of(given, given + candidates.Extent(0), [](TReal w) { return w == 0; });
      m_Seen = isEmpty ? m_Seen : SeenPatches::Masked;
    });
    if (m_Seen == SeenPatches::Nothing)
    {
      return m_Seen;
    }
    bool isMask = true;
    for (std::int64_t i = 0; i < m_Padded.NumberOfVoxels(); ++i)
    {
      const TReal w = m_Memory.given[i];
      const TReal off = m_Memory.values[i] - m_Memory.values[i];
      isMask = isMask && (w == 0 || (w == 1 && off == 0));
    }
    std::int64_t pairs = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      pairs *= 2 * m_Radii.patch[a] + 1;
    }
    // In Renormalized mode, voxels beyond the image have the weight 0, which is known without loading.
    const Box there = m_Cuts ? Intersect(m_Padded, m_Image) : m_Padded;
    bool      isAll = true;
    ForEachRow(there, [&](const Coordinates & at) {
      const TReal * const given = m_Memory.given + m_Values.At(at);
      isAll = isAll && std::all_of(given, given + there.Extent(0), [](TReal w) { return w == 1; });
    });
    m_Seen = isAll ? SeenPatches::All : isMask && pairs <= 255 ? SeenPatches::Masked : SeenPatches::Weighed;
    for (std::int64_t i = 0; m_Seen == SeenPatches::Masked && i < m_Padded.NumberOfVoxels(); ++i)
    {
      m_Memory.inside[i] = m_Memory.given[i] != 0 ? 1 : 0;
      m_Memory.values[i] = m_Memory.given[i] != 0 ? m_Memory.values[i] : std::numeric_limits<TReal>::quiet_NaN();
    }
    return m_Seen;
  }

  /** Adds the voxels that are a shift away, in both directions. */
  void
  AddShift(const Coordinates & shift)
  {
    // The pairs with both voxels in the image; along x rows are whole, and voxels outside are set to 0.
    Box there = m_Image;
    Box pairs = m_Tile;
    for (int a = 0; a < MaxDimension; ++a)
    {
      there.lower[a] -= std::min<std::int64_t>(shift[a], 0);
      there.upper[a] -= std::max<std::int64_t>(shift[a], 0);
      pairs.lower[a] -= std::max<std::int64_t>(shift[a], 0);
      pairs.upper[a] -= std::min<std::int64_t>(shift[a], 0);
    }
    const bool cutsX = m_Cuts && (m_Padded.lower[0] < m_Image.lower[0] || m_Padded.upper[0] > m_Image.upper[0]);
    Box        sums = pairs;
    for (int a = 0; a < MaxDimension; ++a)
    {
      sums.lower[a] -= m_Radii.patch[a];
      sums.upper[a] += m_Radii.patch[a];
      if (m_Cuts && a > 0)
      {
        sums.lower[a] = std::max(sums.lower[a], there.lower[a]);
        sums.upper[a] = std::min(sums.upper[a], there.upper[a]);
        pairs.lower[a] = std::max(pairs.lower[a], there.lower[a]);
        pairs.upper[a] = std::min(pairs.upper[a], there.upper[a]);
      }
    }
    if (pairs.IsEmpty())
    {
      return;
    }
    if (m_Seen == SeenPatches::Weighed)
    {
      WeighCountedPairs(shift, pairs, sums);
    }
    else if (m_Seen == SeenPatches::Masked)
    {
      WeighMaskedPairs(shift, pairs, sums);
    }
    else
    {
      TReal * const sum = SumSquares(shift, pairs, sums);
      WeighPairs(shift, pairs, sums, sum, there, cutsX);
    }
    AddPairs(shift, pairs);
  }

  TReal *
  Weighted(const Coordinates & at) const
  {
    return m_Memory.weighted + m_Results.At(at);
  }
  TReal *
  Weights(const Coordinates & at) const
  {
    return m_Memory.weights + m_Results.At(at);
  }

private:
  /** The sums along all axes but x of the values that first(row, tap, stride, taps, n) makes from the voxels of
   * `values`, and next(...) from those, in `buffers`; `sums` becomes the box of the result. */
  template <typename T, typename TFirst, typename TNext>
  T *
  SumSlowAxes(const Box & pairs, Box & sums, const T * values, T * const (&buffers)[2], TFirst && first, TNext && next)
  {
    const std::int64_t n = sums.Extent(0);
    int                to = 0;
    bool               isFirst = true;
    for (int a = MaxDimension - 1; a > 0; --a)
    {
      // If there is no patch along any of these axes, the squares alone.
      if (m_Radii.patch[a] == 0 && !(a == 1 && isFirst))
      {
        continue;
      }
      const Box before = sums;
      sums.lower[a] = pairs.lower[a];
      sums.upper[a] = pairs.upper[a];
      const RowLayout   summed(before, m_Memory.sumPitch);
      const RowLayout & layout = isFirst ? m_Values : summed;
      const T * const   from = isFirst ? values : buffers[1 - to];
      T *               row = buffers[to];
      ForEachRow(sums, [&](const Coordinates & at) {
        const std::int64_t lower = std::max(at[a] - m_Radii.patch[a], before.lower[a]);
        const std::int64_t taps = std::min(at[a] + m_Radii.patch[a] + 1, before.upper[a]) - lower;
        const T *          tap = from + (layout.At(at) + (lower - at[a]) * layout.step[a]);
        isFirst ? first(row, tap, layout.step[a], taps, n) : next(row, tap, layout.step[a], taps, n);
        row += m_Memory.sumPitch;
      });
      isFirst = false;
      to = 1 - to;
    }
    return buffers[1 - to];
  }

  /** The squares, summed along all axes but x; `sums` becomes the box of what is returned. */
  TReal *
  SumSquares(const Coordinates & shift, const Box & pairs, Box & sums)
  {
    const std::int64_t away = m_Values.Away(shift);
    const auto         squares = m_Seen == SeenPatches::Masked ? m_Masked.squares : m_Functions.squares;
    return SumSlowAxes(
      pairs,
      sums,
      m_Memory.values,
      m_Memory.sums,
      [&](TReal * row, const TReal * tap, std::int64_t step, std::int64_t taps, std::int64_t n) {
        squares(row, tap, tap + away, step, taps, n);
      },
      m_Functions.sum);
  }

  /** The weights of pairs of voxels in a mask. */
  void
  WeighMaskedPairs(const Coordinates & shift, const Box & pairs, Box sums)
  {
    const std::int64_t away = m_Values.Away(shift);
    Box                summed = sums;
    const TReal *      squares = SumSquares(shift, pairs, summed);
    const auto         count = [&](auto * row, const auto * tap, std::int64_t step, std::int64_t taps, std::int64_t n) {
      m_Masked.countPairs(row, tap, tap + away, step, taps, n);
    };
    const std::uint8_t * counts =
      SumSlowAxes(pairs, sums, m_Memory.inside, m_Memory.pairCounts, count, m_Masked.addCounts);
    const RowLayout layout(sums, m_Memory.sumPitch);
    TReal *         row = m_Memory.pairs;
    ForEachRow(pairs, [&](const Coordinates & at) {
      const std::int64_t from = layout.At(at) - (at[0] - sums.lower[0]);
      m_Masked.weigh(row,
                     squares + from,
                     counts + from,
                     m_Memory.shares,
                     2 * m_Radii.patch[0] + 1,
                     m_TwiceNoise,
                     m_Inverse,
                     pairs.Extent(0));
      row += m_Memory.pairPitch;
    });
  }

  /** The values in `buffers`, summed along all axes but x; `sums` becomes the box of the result. */
  TReal *
  SumProducts(const Box & pairs, Box & sums, TReal * const (&buffers)[2])
  {
    const std::int64_t n = sums.Extent(0);
    int                from = 0;
    for (int a = MaxDimension - 1; a > 0; --a)
    {
      if (m_Radii.patch[a] == 0)
      {
        continue;
      }
      const Box before = sums;
      sums.lower[a] = pairs.lower[a];
      sums.upper[a] = pairs.upper[a];
      const RowLayout layout(before, m_Memory.sumPitch);
      TReal *         row = buffers[1 - from];
      ForEachRow(sums, [&](const Coordinates & at) {
        Coordinates tap = at;
        tap[a] = std::max(at[a] - m_Radii.patch[a], before.lower[a]);
        const std::int64_t taps = std::min(at[a] + m_Radii.patch[a] + 1, before.upper[a]) - tap[a];
        m_Functions.sum(row, buffers[from] + layout.At(tap), layout.step[a], taps, n);
        row += m_Memory.sumPitch;
      });
      from = 1 - from;
    }
    return buffers[from];
  }

  /** The weights of pairs of voxels that have weights themselves. */
  void
  WeighCountedPairs(const Coordinates & shift, const Box & pairs, Box sums)
  {
    const std::int64_t away = m_Values.Away(shift);
    const std::int64_t width = sums.Extent(0);
    std::int64_t       offset = 0;
    ForEachRow(sums, [&](const Coordinates & at) {
      const TReal * const a = m_Memory.values + m_Values.At(at);
      const TReal * const w = m_Memory.given + m_Values.At(at);
      TReal * const       squares = m_Memory.sums[0] + offset;
      TReal * const       counts = m_Memory.counts[0] + offset;
      for (std::int64_t i = 0; i < width; ++i)
      {
        const TReal difference = a[i] - a[i + away];
        const TReal both = w[i] * w[i + away];
        squares[i] = both != TReal(0) ? both * (difference * difference) : TReal(0);
        counts[i] = both;
      }
      offset += m_Memory.sumPitch;
    });
    Box           summed = sums;
    TReal * const squares = SumProducts(pairs, summed, m_Memory.sums);
    TReal * const counts = SumProducts(pairs, sums, m_Memory.counts);

    const std::int64_t n = pairs.Extent(0);
    const std::int64_t taps = 2 * m_Radii.patch[0] + 1;
    const RowLayout    layout(sums, m_Memory.sumPitch);
    TReal *            row = m_Memory.pairs;
    ForEachRow(pairs, [&](const Coordinates & at) {
      const std::int64_t from = layout.At(at) - (at[0] - sums.lower[0]);
      TReal * const      shares = m_Memory.shares;
      m_Functions.sum(shares, counts + from, 1, taps, n);
      for (std::int64_t i = 0; i < n; ++i)
      {
        shares[i] = TReal(1) / shares[i];
      }
      m_Functions.weigh(row, squares + from, taps, shares, m_TwiceNoise, m_Inverse, n);
      for (std::int64_t i = 0; i < n; ++i)
      {
        row[i] = shares[i] <= std::numeric_limits<TReal>::max() ? row[i] : TReal(0);
      }
      row += m_Memory.pairPitch;
    });
  }

  /** The number of offsets at which both patches are in the image. */
  std::int64_t
  CountOffsets(int a, std::int64_t i, std::int64_t shift) const
  {
    const std::int64_t r = m_Radii.patch[a];
    if (!m_Cuts)
    {
      return 2 * r + 1;
    }
    const std::int64_t low = std::min(i, i + shift);
    const std::int64_t high = std::max(i, i + shift);
    return std::min(r, m_Image.upper[a] - 1 - high) - std::max(-r, m_Image.lower[a] - low) + 1;
  }

  void
  WeighPairs(const Coordinates & shift, const Box & pairs, const Box & sums, TReal * sum, const Box & there, bool cutsX)
  {
    const std::int64_t n = pairs.Extent(0);
    // Sets to 0 what is not in the image of a row that begins at `lower`.
    const auto clear = [&](TReal * row, std::int64_t lower, std::int64_t count) {
      for (std::int64_t i = 0; i < std::min(there.lower[0] - lower, count); ++i)
      {
        row[i] = 0;
      }
      for (std::int64_t i = std::max<std::int64_t>(there.upper[0] - lower, 0); i < count; ++i)
      {
        row[i] = 0;
      }
    };
    const std::int64_t taps = 2 * m_Radii.patch[0] + 1;
    const auto         share = [&](std::int64_t i, std::int64_t others) {
      const std::int64_t count = CountOffsets(0, pairs.lower[0] + i, shift[0]);
      m_Memory.shares[i] = TReal(1) / static_cast<TReal>(others * std::max<std::int64_t>(count, 1));
      return count < taps;
    };
    const RowLayout layout(sums, m_Memory.sumPitch);
    std::int64_t    known = 0;
    TReal *         row = m_Memory.pairs;
    ForEachRow(pairs, [&](const Coordinates & at) {
      std::int64_t others = 1;
      for (int a = 1; a < MaxDimension; ++a)
      {
        others *= m_Radii.patch[a] > 0 ? CountOffsets(a, at[a], shift[a]) : 1;
      }
      if (others != known)
      {
        // Fewer offsets are there near the ends alone.
        std::fill(m_Memory.shares, m_Memory.shares + n, TReal(1) / static_cast<TReal>(others * taps));
        for (std::int64_t i = 0; i < n && share(i, others); ++i)
        {
        }
        for (std::int64_t i = n - 1; i >= 0 && share(i, others); --i)
        {
        }
        known = others;
      }
      TReal * const squares = sum + layout.At(at) - (at[0] - sums.lower[0]);
      if (cutsX)
      {
        clear(squares, sums.lower[0], sums.Extent(0));
      }
      m_Functions.weigh(row, squares, taps, m_Memory.shares, m_TwiceNoise, m_Inverse, n);
      if (cutsX)
      {
        clear(row, pairs.lower[0], n);
      }
      row += m_Memory.pairPitch;
    });
  }

  void
  AddPairs(const Coordinates & shift, const Box & pairs)
  {
    const bool         isZero = shift == Coordinates{};
    const RowLayout    layout(pairs, m_Memory.pairPitch);
    const std::int64_t away = m_Values.Away(shift);
    const std::int64_t pairAway = layout.Away(shift);
    std::int64_t       row = 0;
    ForEachRow(m_Tile, [&](const Coordinates & at) {
      bool hasAfter = true;
      bool hasBefore = !isZero;
      for (int a = 1; a < MaxDimension; ++a)
      {
        const std::int64_t before = at[a] - shift[a];
        hasAfter = hasAfter && at[a] >= pairs.lower[a] && at[a] < pairs.upper[a];
        hasBefore = hasBefore && before >= pairs.lower[a] && before < pairs.upper[a];
      }
      const TReal *       w[2];
      const TReal *       voxels[2];
      int                 count = 0;
      const TReal * const pair = m_Memory.pairs + layout.At(at);
      const TReal * const voxel = m_Memory.values + m_Values.At(at);
      if (hasAfter)
      {
        w[count] = pair;
        voxels[count++] = voxel + away;
      }
      if (hasBefore)
      {
        w[count] = pair - pairAway;
        voxels[count++] = voxel - away;
      }
      for (int k = 0; m_Seen == SeenPatches::Weighed && k < count; ++k)
      {
        const TReal * const given = m_Memory.given + (voxels[k] - m_Memory.values);
        for (std::int64_t i = 0; i < m_Tile.Extent(0); ++i)
        {
          // Not NaN times 0.
          m_Memory.products[k][i] = given[i] != TReal(0) ? w[k][i] * given[i] : TReal(0);
        }
        w[k] = m_Memory.products[k];
      }
      const auto add = m_Seen == SeenPatches::Masked ? m_Masked.add : m_Functions.add;
      add(m_Memory.weighted + row, m_Memory.weights + row, w, voxels, count, m_Tile.Extent(0));
      row += m_Memory.pitch;
    });
  }

  Box                                 m_Tile;
  Box                                 m_Padded;
  RowLayout                           m_Values;
  RowLayout                           m_Results;
  Box                                 m_Image;
  bool                                m_Cuts;
  PatchRadii                          m_Radii;
  TReal                               m_TwiceNoise;
  TReal                               m_Inverse;
  PatchMemory<TReal>                  m_Memory;
  const PatchFunctions<TReal> &       m_Functions;
  const MaskedPatchFunctions<TReal> & m_Masked;
  SeenPatches                         m_Seen{ SeenPatches::All };
};

/** Calls f with a voxel of each kind whose arithmetic is in TReal. */
template <typename TReal, typename TFunctor>
void
DispatchKindsOf(PixelType kind, TFunctor && f)
{
  DispatchPixelType(kind, [&](auto pixel) {
    if constexpr (std::is_same<RealOf<decltype(pixel)>, TReal>::value)
    {
      f(pixel);
    }
  });
}

template <typename TReal>
void
RunTile(const KernelCall & call, const NonLocalMeansOperation & operation, const PatchRadii & radii, const Box & box,
        const PatchMemory<TReal> & memory)
{
  const bool         cuts = operation.boundary.mode == BoundaryMode::Renormalized;
  const BoundaryMode mode = cuts ? BoundaryMode::Constant : operation.boundary.mode;
  PatchTile<TReal>   tile(box, call.image, operation, radii, memory);
  DispatchKindsOf<TReal>(call.inputs[0].kind, [&](auto example) {
    using Pixel = decltype(example);
    const TReal beyond = cuts ? TReal(0) : static_cast<TReal>(ConstantPixel<Pixel>(operation.boundary.constant));
    LoadTile<Pixel>(call.inputs[0], call.image, tile.GetPadded(), mode, beyond, memory.values, [](Pixel pixel) {
      return static_cast<TReal>(pixel);
    });
  });
  if (operation.isWeighed)
  {
    LoadTile<TReal>(
      call.inputs[1], call.image, tile.GetPadded(), mode, TReal(cuts ? 0 : 1), memory.given, [](TReal weight) {
        return weight;
      });
    for (std::int64_t i = 0; i < tile.GetPadded().NumberOfVoxels(); ++i)
    {
      memory.values[i] = memory.given[i] != TReal(0) ? memory.values[i] : TReal(0);
    }
  }
  const bool isEmpty = operation.isWeighed && tile.LookAtWeights() == SeenPatches::Nothing;
  Box        shifts{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    shifts.lower[a] = -radii.search[a];
    shifts.upper[a] = radii.search[a] + 1;
  }
  // 0, which is in the middle, and those after it.
  for (std::int64_t i = shifts.NumberOfVoxels() / 2; !isEmpty && i < shifts.NumberOfVoxels(); ++i)
  {
    tile.AddShift(TileNumber(shifts, Coordinates::Filled(1), i).lower);
  }
  DispatchPixelType(call.output.kind, [&](auto example) {
    using Out = decltype(example);
    const auto empty = EmptyPixel<Out>(operation.emptyValue);
    ForEachRow(box, [&](const Coordinates & at) {
      const TReal * const weighted = tile.Weighted(at);
      const TReal * const weights = tile.Weights(at);
      StoreRow<Out>(call.output, at, box.Extent(0), [&](std::int64_t i) {
        return operation.isWeighed && weights[i] == 0 ? empty : ConvertResult<Out>(weighted[i] / weights[i]);
      });
    });
  });
}

template <typename TReal>
std::int64_t
BytesOf(const Coordinates & tile, const PatchRadii & radii, bool isWeighed)
{
  return PatchMemory<TReal>().LayOut(tile, radii, isWeighed, nullptr);
}

void
RunNonLocalMeans(const KernelCall & call)
{
  const auto &      operation = static_cast<const NonLocalMeansOperation &>(*call.operation);
  const PatchRadii  radii(operation, call.image.Extents());
  const Coordinates extent = PatchTileExtent(call.output.box, radii);
  const auto        run = [&](auto real) {
    using Real = decltype(real);
    const std::int64_t bytes = BytesOf<Real>(extent, radii, operation.isWeighed);
    ForEachTileOf(extent, call, [&](const Box & tile, unsigned int worker) {
      PatchMemory<Real> memory;
      memory.LayOut(extent, radii, operation.isWeighed, static_cast<char *>(call.scratch) + bytes * worker);
      RunTile<Real>(call, operation, radii, tile, memory);
    });
  };
  const bool isDouble = DispatchPixelType(
    call.inputs[0].kind, [](auto pixel) { return std::is_same<RealOf<decltype(pixel)>, double>::value; });
  isDouble ? run(double{}) : run(float{});
}

std::size_t
ScratchOfNonLocalMeans(const Operation & operation, const ChunkShape & shape)
{
  const auto &      means = static_cast<const NonLocalMeansOperation &>(operation);
  const PatchRadii  radii(means, shape.image.Extents());
  const Coordinates extent = PatchTileExtent(shape.outputBox, radii);
  return DispatchPixelType(shape.inputKinds[0], [&](auto pixel) {
    return static_cast<std::size_t>(BytesOf<RealOf<decltype(pixel)>>(extent, radii, means.isWeighed) *
                                    shape.concurrency);
  });
}

} // namespace

void
RegisterHostNonLocalMeans(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunNonLocalMeans;
  kernel.scratchBytes = ScratchOfNonLocalMeans;
  registry.Register("nonlocalmeans", { kernel });
}

} // namespace chunkwise
