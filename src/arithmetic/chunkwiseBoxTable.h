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

using BoxWide = UInt128;

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
  constexpr PixelType kind = PixelTypeOf<TPixel>();
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
      if (operation.LargestBox(image) < (std::int64_t{ 1 } << (31 - 8 * sizeof(TPixel))))
      {
        return f(std::uint32_t{});
      }
    }
    f(std::uint64_t{});
  }
}

/** The entry that a voxel adds to the tables. */
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
template <typename TSum>
CHUNKWISE_HOST_DEVICE auto
BoxSumOf(TSum sum)
{
  if constexpr (std::is_same<TSum, double>::value)
  {
    return sum;
  }
  else if constexpr (sizeof(TSum) == 4)
  {
    return static_cast<std::int32_t>(sum);
  }
  else if constexpr (sizeof(TSum) == 8)
  {
    return static_cast<std::int64_t>(sum);
  }
  else
  {
    return static_cast<Int128>(sum);
  }
}

/** A box's number of voxels. If many boxes have the same number, a backend may have a quicker way to divide. */
struct BoxVoxels
{
  std::int64_t count;

  CHUNKWISE_HOST_DEVICE double
  Divide(double sum) const
  {
    return sum / static_cast<double>(count);
  }
};

/** The result from a box's entry and its number of voxels. */
template <typename TOut, typename TEntry, typename TVoxels>
CHUNKWISE_HOST_DEVICE TOut
FinishBox(const TEntry & entry, const TVoxels & voxels, BoxStatistic statistic)
{
  if constexpr (!IsSumAndSquares<TEntry>::value)
  {
    if constexpr (std::is_floating_point<TOut>::value)
    {
      const auto sum = static_cast<double>(BoxSumOf(entry));
      return static_cast<TOut>(statistic == BoxStatistic::Sum ? sum : voxels.Divide(sum));
    }
    else
    {
      const std::int64_t divisor = statistic == BoxStatistic::Sum ? 1 : voxels.count;
#if defined(__CUDA_ARCH__)
      // Devices are slow at conversions from and to 64 bits. A quotient of floats is off by less than one where it fits
      // 16 bits, which the remainder shows.
      if constexpr (std::is_integral<TOut>::value && sizeof(TOut) <= 2 && sizeof(TEntry) == 4)
      {
        const auto sum = BoxSumOf(entry);
        if (statistic == BoxStatistic::Sum)
        {
          return ClampInteger<TOut>(sum);
        }
        const auto n = static_cast<std::int32_t>(voxels.count);
        auto       quotient = __float2int_rn(__fdividef(static_cast<float>(sum), static_cast<float>(n)));
        const auto rest = 2 * (sum - quotient * n);
        const bool isOdd = quotient % 2 != 0;
        quotient += rest > n || (rest == n && isOdd) ? 1 : rest < -n || (rest == -n && isOdd) ? -1 : 0;
        return static_cast<TOut>(quotient);
      }
#endif
      if constexpr (std::is_integral<TOut>::value && sizeof(TOut) <= 2)
      {
        // A quotient of so small sums is, rounded to double, as far from a tie as before, or is the tie: rounding
        // it once more gives the integer that the exact one does. Adding a large number rounds to nearest, ties to
        // even.
        constexpr double rounder = 1.5 * 4503599627370496.0;
        const double     quotient = static_cast<double>(BoxSumOf(entry)) / static_cast<double>(divisor);
        return ClampInteger<TOut>(static_cast<std::int64_t>((quotient + rounder) - rounder));
      }
      else
      {
        return MeanOf<TOut>(BoxSumOf(entry), divisor);
      }
    }
  }
  else
  {
    double variance = 0;
    if constexpr (std::is_same<decltype(entry.sum), double>::value)
    {
      const double v = voxels.Divide(entry.squares - entry.sum * voxels.Divide(entry.sum));
      variance = v < 0 ? 0 : v;
    }
    else
    {
      using Squares = std::conditional_t<sizeof(entry.squares) <= 8, std::int64_t, Int128>;
      variance = VarianceOfSums(BoxSumOf(entry.sum), static_cast<Squares>(entry.squares), voxels.count);
    }
    return FinishVariance<TOut>(variance, statistic == BoxStatistic::StandardDeviation);
  }
}

/** Along one axis, where a box's sum finds its terms: see (E - P) + L in BoxStatisticOperation. */
template <typename TIndex>
struct BoxTerms
{
  TIndex last;
  TIndex before;
  TIndex end;
  bool   hasBefore;
  bool   hasEnd;
};

/** The ranges of boxes and blocks along one axis. */
template <typename TIndex>
struct BoxAxis
{
  TIndex extent; ///< the image's
  TIndex radius; ///< 0 of an axis that takes no part
  TIndex length; ///< of a block, a power of two; 1 of an axis that takes no part
  TIndex lower;  ///< where the table, and with it a block, begins
  TIndex stride; ///< from one entry of the table to the next

  CHUNKWISE_HOST_DEVICE bool
  TakesPart() const
  {
    return radius > 0;
  }
  /** The first position of the block of position `i` of the table. */
  CHUNKWISE_HOST_DEVICE TIndex
  BlockBegin(TIndex i) const
  {
    return i - ((i - lower) & (length - 1));
  }
  /** The first and the last position of a box of radius `r`, no more than the largest, around `i`. */
  CHUNKWISE_HOST_DEVICE TIndex
  First(TIndex i, TIndex r) const
  {
    return i < r ? 0 : i - r;
  }
  CHUNKWISE_HOST_DEVICE TIndex
  Last(TIndex i, TIndex r) const
  {
    return i + r < extent ? i + r : extent - 1;
  }
  /** Offsets in the table for the box from `first` to `last`. */
  CHUNKWISE_HOST_DEVICE BoxTerms<TIndex>
                        TermsOf(TIndex first, TIndex last) const
  {
    const TIndex     begin = BlockBegin(last);
    const bool       meetsTwo = first < begin;
    BoxTerms<TIndex> terms;
    terms.last = (last - lower) * stride;
    terms.before = (first - 1 - lower) * stride;
    terms.end = (begin - 1 - lower) * stride;
    terms.hasBefore = first > (meetsTwo ? begin - length : begin);
    terms.hasEnd = meetsTwo;
    return terms;
  }
};

/** The table of a chunk. */
struct BoxTable
{
  /** The box of the table. */
  Box                   box;
  BoxAxis<std::int64_t> axes[MaxDimension];
  /** The axes that take part, ascending. */
  int parts[MaxSpatialAxes];
  int count;

  CHUNKWISE_HOST_DEVICE std::int64_t
                        Offset(const Coordinates & at) const
  {
    std::int64_t offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += (at.axis[a] - axes[a].lower) * axes[a].stride;
    }
    return offset;
  }
};

/** The radius that an image of radii gives, cut to [0, largest]. */
template <typename TIndex, typename TRadius>
CHUNKWISE_HOST_DEVICE TIndex
CutRadius(TRadius value, TIndex largest)
{
  constexpr bool isSigned = static_cast<TRadius>(-1) < static_cast<TRadius>(0);
  if (isSigned && static_cast<std::int64_t>(value) < 0)
  {
    return 0;
  }
  return static_cast<std::uint64_t>(value) < static_cast<std::uint64_t>(largest) ? static_cast<TIndex>(value) : largest;
}

/** The table that the boxes around the voxels of `output` need. Its rows are padded to a multiple of `rowMultiple`. */
inline BoxTable
MakeBoxTable(const BoxStatisticOperation & operation, const Box & output, const Box & image,
             std::int64_t rowMultiple = 1)
{
  BoxTable          table{};
  const Coordinates extent = image.Extents();
  table.box = output;
  std::int64_t stride = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    BoxAxis<std::int64_t> & axis = table.axes[a];
    axis.extent = extent[a];
    axis.radius = operation.EffectiveRadius(a, extent[a]);
    axis.length = 1;
    if (axis.TakesPart())
    {
      table.parts[table.count++] = a;
      axis.length = operation.BlockLength(a, extent);
      table.box.lower[a] = axis.First(output.lower[a], axis.radius);
      table.box.upper[a] = axis.Last(output.upper[a] - 1, axis.radius) + 1;
      if (operation.anchored)
      {
        table.box.lower[a] -= table.box.lower[a] % axis.length;
      }
    }
    axis.lower = table.box.lower[a];
    axis.stride = stride;
    const std::int64_t multiple = a == 0 ? rowMultiple : 1;
    stride *= (table.box.Extent(a) + multiple - 1) / multiple * multiple;
  }
  return table;
}

/** Whether 32 bits hold every index and offset of a table. */
inline bool
IsNarrow(const BoxTable & table)
{
  constexpr std::int64_t        limit = std::int64_t{ 1 } << 30;
  const BoxAxis<std::int64_t> & last = table.axes[MaxDimension - 1];
  bool                          isNarrow = table.box.Extent(MaxDimension - 1) * last.stride < limit;
  for (const BoxAxis<std::int64_t> & axis : table.axes)
  {
    isNarrow = isNarrow && axis.extent < limit && axis.length < limit;
  }
  return isNarrow;
}

/** At least the entries of the table for `output`; it does not shrink when that grows. */
inline std::int64_t
MostBoxEntries(const BoxStatisticOperation & operation, const Coordinates & output, const Coordinates & image,
               std::int64_t rowMultiple = 1)
{
  const Halo   halo = operation.GetHalo(image);
  std::int64_t entries = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t padded = output[a] + halo.lower[a] + halo.upper[a];
    const std::int64_t extent = padded < image[a] ? padded : image[a];
    entries *= a == 0 ? (extent + rowMultiple - 1) / rowMultiple * rowMultiple : extent;
  }
  return entries;
}

} // namespace chunkwise

#endif
