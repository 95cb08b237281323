/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseBoxTable_h
#define chunkwiseBoxTable_h

#include "chunkwiseBoxStatisticOperation.h"
#include "chunkwiseMoments.h"

#include <type_traits>

// The arithmetic of BoxStatisticOperation, one source for every backend.
namespace chunkwise
{

/** An entry of the tables that variances need: both sums, so that one read fetches them. */
template <typename TSum, typename TSquares>
struct alignas(sizeof(TSquares) >= 8 ? 16 : 8) SumAndSquares
{
  TSum     sum;
  TSquares squares;

  friend CHUNKWISE_HOST_DEVICE SumAndSquares
  operator+(const SumAndSquares & a, const SumAndSquares & b)
  {
    return { a.sum + b.sum, a.squares + b.squares };
  }
  friend CHUNKWISE_HOST_DEVICE SumAndSquares
  operator-(const SumAndSquares & a, const SumAndSquares & b)
  {
    return { a.sum - b.sum, a.squares - b.squares };
  }
};

__extension__ using BoxWide = unsigned __int128;

template <typename TEntry>
struct IsSumAndSquares : std::false_type
{};
template <typename TSum, typename TSquares>
struct IsSumAndSquares<SumAndSquares<TSum, TSquares>> : std::true_type
{};

/** Calls f(TEntry{}) with the type of the tables' entries for pixels of type TPixel. */
template <typename TPixel, typename TFunctor>
void
DispatchBoxEntry(const BoxStatisticOperation & operation, const Coordinates & image, TFunctor && f)
{
  constexpr PixelKind kind = PixelKindOf<TPixel>();
  if (operation.TakesSquares())
  {
    if constexpr (!SumsAreExact(kind, true))
    {
      f(SumAndSquares<double, double>{});
    }
    else if constexpr (sizeof(TPixel) == 4)
    {
      f(SumAndSquares<std::uint64_t, BoxWide>{});
    }
    else
    {
      // 65535 squares of 8-bit integers fit 32 bits.
      if constexpr (sizeof(TPixel) == 1)
      {
        if (operation.LargestBox(image) <= 65535)
        {
          return f(SumAndSquares<std::uint32_t, std::uint32_t>{});
        }
      }
      f(SumAndSquares<std::uint64_t, std::uint64_t>{});
    }
  }
  else if constexpr (IsFloatingPoint(kind))
  {
    f(double{});
  }
  else if constexpr (sizeof(TPixel) == 8)
  {
    f(BoxWide{});
  }
  else
  {
    if constexpr (sizeof(TPixel) <= 2)
    {
      if (operation.LargestBox(image) < (std::int64_t{ 1 } << (32 - 8 * sizeof(TPixel))))
      {
        return f(std::uint32_t{});
      }
    }
    f(std::uint64_t{});
  }
}

/** What a voxel adds to the tables. */
template <typename TEntry, typename TPixel>
CHUNKWISE_HOST_DEVICE TEntry
BoxEntryOf(TPixel pixel)
{
  if constexpr (IsSumAndSquares<TEntry>::value)
  {
    using Sum = decltype(TEntry::sum);
    using Squares = decltype(TEntry::squares);
    const auto wide = static_cast<Squares>(pixel);
    return { static_cast<Sum>(pixel), wide * wide };
  }
  else
  {
    return static_cast<TEntry>(pixel);
  }
}

/** An integer's box sum from the table's, which is modulo the size of its type. */
template <bool VSigned, typename TSum>
CHUNKWISE_HOST_DEVICE auto
BoxSumOf(TSum sum)
{
  if constexpr (std::is_same<TSum, double>::value)
  {
    return sum;
  }
  else if constexpr (sizeof(TSum) == 4)
  {
    return VSigned ? std::int64_t{ static_cast<std::int32_t>(sum) } : static_cast<std::int64_t>(sum);
  }
  else if constexpr (sizeof(TSum) == 8)
  {
    return static_cast<std::int64_t>(sum);
  }
  else
  {
    __extension__ using Signed = __int128;
    return static_cast<Signed>(sum);
  }
}

/** The result from a box's entry and its number of voxels. */
template <bool VSigned, typename TOut, typename TEntry>
CHUNKWISE_HOST_DEVICE TOut
FinishBox(const TEntry & entry, std::int64_t count, BoxStatistic statistic)
{
  if constexpr (!IsSumAndSquares<TEntry>::value)
  {
    return MeanOf<TOut>(BoxSumOf<VSigned>(entry), statistic == BoxStatistic::Sum ? 1 : count);
  }
  else
  {
    double variance = 0;
    if constexpr (std::is_same<decltype(entry.sum), double>::value)
    {
      const auto   n = static_cast<double>(count);
      const double v = (entry.squares - entry.sum * (entry.sum / n)) / n;
      variance = v < 0 ? 0 : v;
    }
    else
    {
      __extension__ using Signed = __int128;
      using Squares = std::conditional_t<sizeof(entry.squares) <= 8, std::int64_t, Signed>;
      variance = VarianceOfSums(BoxSumOf<VSigned>(entry.sum), static_cast<Squares>(entry.squares), count);
    }
    return FinishVariance<TOut>(variance, statistic == BoxStatistic::StandardDeviation);
  }
}

/** Along one axis, where a box's sum finds its terms: see (E - P) + L in BoxStatisticOperation. */
struct BoxTerms
{
  std::int64_t last;
  std::int64_t before;
  std::int64_t end;
  bool         hasBefore;
  bool         hasEnd;
};

/** The table of a chunk. */
struct BoxTable
{
  /** What the table holds. */
  Box box;
  /** The image's extent. */
  Coordinates image;
  /** Radius, 0 of an axis that takes no part; the block's length there is 1. */
  Coordinates radius;
  Coordinates length;
  /** Where blocks begin: here and at multiples of their length from here. */
  Coordinates anchor;
  /** Steps of the table in entries, x dense. */
  Coordinates stride;
  /** The axes that take part, ascending; repeats of an axis that does not where there are fewer than three. */
  int axes[MaxSpatialAxes];
  int count;

  CHUNKWISE_HOST_DEVICE bool
  TakesPart(int a) const
  {
    return radius.axis[a] > 0;
  }
  /** Where the block of position `i`, at or after the anchor, begins. Lengths are powers of two. */
  CHUNKWISE_HOST_DEVICE std::int64_t
                        BlockBegin(int a, std::int64_t i) const
  {
    return i - ((i - anchor.axis[a]) & (length.axis[a] - 1));
  }
  CHUNKWISE_HOST_DEVICE std::int64_t
                        First(int a, std::int64_t i, std::int64_t r) const
  {
    return i < r ? 0 : i - r;
  }
  CHUNKWISE_HOST_DEVICE std::int64_t
                        Last(int a, std::int64_t i, std::int64_t r) const
  {
    const std::int64_t n = image.axis[a];
    return i + r < n ? i + r : n - 1;
  }
  /** Offsets in the table along axis `a` for the box from `first` to `last`. */
  CHUNKWISE_HOST_DEVICE BoxTerms
  TermsOf(int a, std::int64_t first, std::int64_t last) const
  {
    const std::int64_t begin = BlockBegin(a, last);
    const bool         meetsTwo = first < begin;
    const std::int64_t step = stride.axis[a];
    const std::int64_t base = box.lower.axis[a];
    BoxTerms           terms;
    terms.last = (last - base) * step;
    terms.before = (first - 1 - base) * step;
    terms.end = (begin - 1 - base) * step;
    terms.hasBefore = first > (meetsTwo ? begin - length.axis[a] : begin);
    terms.hasEnd = meetsTwo;
    return terms;
  }
};

/** (E - P) + L of what `f(offset, there)` gives; what is not there it gives as zero. */
template <typename TFunctor>
CHUNKWISE_HOST_DEVICE auto
CombineBoxTerms(const BoxTerms & terms, std::int64_t offset, bool there, TFunctor && f)
{
  return (f(offset + terms.end, there && terms.hasEnd) - f(offset + terms.before, there && terms.hasBefore)) +
         f(offset + terms.last, there);
}

/** The sum over a box whose terms along the axes that take part are given. */
template <typename TEntry>
CHUNKWISE_HOST_DEVICE TEntry
SumOfBox(const TEntry * table, const BoxTerms (&terms)[MaxSpatialAxes], std::int64_t offset)
{
  return CombineBoxTerms(terms[0], offset, true, [&](std::int64_t at0, bool there0) {
    return CombineBoxTerms(terms[1], at0, there0, [&](std::int64_t at1, bool there1) {
      return CombineBoxTerms(
        terms[2], at1, there1, [&](std::int64_t at2, bool there2) { return there2 ? table[at2] : TEntry{}; });
    });
  });
}

/** The radius that an image of radii gives, cut to [0, largest]. */
template <typename TRadius>
CHUNKWISE_HOST_DEVICE std::int64_t
                      CutRadius(TRadius value, std::int64_t largest)
{
  if constexpr (static_cast<TRadius>(-1) > static_cast<TRadius>(0))
  {
    const auto radius = static_cast<std::uint64_t>(value);
    return radius < static_cast<std::uint64_t>(largest) ? static_cast<std::int64_t>(radius) : largest;
  }
  else
  {
    const auto radius = static_cast<std::int64_t>(value);
    return radius < 0 ? 0 : radius < largest ? radius : largest;
  }
}

/** The table that the boxes around the voxels of `output` need. */
inline BoxTable
MakeBoxTable(const BoxStatisticOperation & operation, const Box & output, const Box & image)
{
  BoxTable          table{};
  const Coordinates extent = image.Extents();
  table.image = extent;
  table.box = output;
  table.length = Coordinates::Filled(1);
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t r = operation.EffectiveRadius(a, extent[a]);
    table.radius[a] = r;
    if (r == 0)
    {
      continue;
    }
    table.axes[table.count++] = a;
    table.length[a] = operation.BlockLength(a, extent);
    table.box.lower[a] = table.First(a, output.lower[a], r);
    table.box.upper[a] = table.Last(a, output.upper[a] - 1, r) + 1;
    if (operation.anchored)
    {
      table.box.lower[a] = table.BlockBegin(a, table.box.lower[a]);
    }
    else
    {
      table.anchor[a] = table.box.lower[a];
    }
  }
  table.stride = DenseStrides(table.box.Extents());
  return table;
}

/** At least the entries of the table for `output`; it does not shrink when that grows. */
inline std::int64_t
MostBoxEntries(const BoxStatisticOperation & operation, const Coordinates & output, const Coordinates & image)
{
  const Halo   halo = operation.GetHalo(image);
  std::int64_t entries = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t extent = output[a] + halo.lower[a] + halo.upper[a];
    entries *= extent < image[a] ? extent : image[a];
  }
  return entries;
}

} // namespace chunkwise

#endif
