/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLabelNeighbors_h
#define chunkwiseLabelNeighbors_h

#include "chunkwiseGeometry.h"

// Shared by the kernels of both backends: labels are found for runs of voxels. A row of voxels is words of bits, one
// for each voxel, and a run lies within a word; so runs are numbered by counting bits.
namespace chunkwise
{

/** A row of voxels that lies before another one in raster order, or, across a periodic edge, after it. */
struct LabelRow
{
  /** From the other row, along axes 1 and up. */
  std::int8_t offset[MaxDimension];
  /** The neighbors of voxel x: bit 0 for x - 1, bit 1 for x, bit 2 for x + 1. */
  std::uint8_t shifts;
};

struct LabelNeighbors
{
  static constexpr int MostRows = 13;

  LabelRow rows[MostRows];
  int      count;
  /** x - 1 and x are neighbors. */
  bool links;
  /** The row one plane before, if all voxels around it are neighbors of what lies in it: what a voxel has there joins
   * all that lie around it. -1: none. */
  int center;
  /** Rows all of whose voxels around x are neighbors of the voxel x of the center: bit r. */
  std::uint32_t aroundCenter;
};

/** The bits of pairs of neighbors, at the voxel x of a row: with x - 1, x and x + 1 of another one. */
template <typename TWord>
struct LabelPairs
{
  TWord before;
  TWord same;
  TWord after;
};

/** The word of x - 1 at x, and of x + 1, from a word and the words beside it. */
template <typename TWord>
CHUNKWISE_HOST_DEVICE TWord
ShiftedFromBefore(TWord word, TWord before)
{
  return static_cast<TWord>(word << 1 | before >> (8 * sizeof(TWord) - 1));
}
template <typename TWord>
CHUNKWISE_HOST_DEVICE TWord
ShiftedFromAfter(TWord word, TWord after)
{
  return static_cast<TWord>(word >> 1 | after << (8 * sizeof(TWord) - 1));
}

/** Takes away pairs that others imply: those of voxels that are linked to their neighbor along x within the word. `own`
 * and `other` have a bit where a voxel is linked to the one before it. A pair is implied by one of an earlier voxel, or
 * by the pair at x, so that none is left out for the sake of one that is left out for its sake. */
template <typename TWord>
CHUNKWISE_HOST_DEVICE void
RemoveImpliedPairs(LabelPairs<TWord> & pairs, TWord own, TWord other)
{
  const TWord inWord = static_cast<TWord>(~TWord{ 1 });
  own &= inWord;
  other &= inWord;
  const auto  later = [](TWord word) { return static_cast<TWord>(word << 1); };
  const auto  earlier = [](TWord word) { return static_cast<TWord>(word >> 1); };
  const TWord both = own & other;
  const TWord same = pairs.same & ~(later(pairs.same) & both);
  const TWord before =
    pairs.before & ~(pairs.same & other) & ~(later(pairs.same) & own) & ~(later(pairs.before & other) & own);
  const TWord after = pairs.after & ~(pairs.same & earlier(other)) & ~(earlier(pairs.same & own)) &
                      ~(later(pairs.after) & own & earlier(other));
  pairs.same = same;
  pairs.before = before;
  pairs.after = after;
}

/** Whether two values are of one component: exact for integers, in double for real numbers. */
template <typename TPixel>
struct LabelIsEqual
{
  CHUNKWISE_HOST_DEVICE bool
  operator()(TPixel a, TPixel b) const
  {
    return a == b;
  }
};

template <typename TPixel>
struct LabelIsWithin
{
  std::uint64_t whole; ///< of integers
  double        real;

  CHUNKWISE_HOST_DEVICE bool
  operator()(TPixel a, TPixel b) const
  {
    if constexpr (static_cast<TPixel>(0.5) != static_cast<TPixel>(0))
    {
      const double x = static_cast<double>(a);
      const double y = static_cast<double>(b);
      // Infinities of one sign are equal.
      return a == b || (x < y ? y - x : x - y) <= real;
    }
    else
    {
      const auto x = static_cast<std::uint64_t>(a);
      const auto y = static_cast<std::uint64_t>(b);
      return (a < b ? y - x : x - y) <= whole;
    }
  }
};

/** `tolerance` is 0 or more; integers differ by whole numbers. */
template <typename TPixel, typename TValue>
LabelIsWithin<TPixel>
MakeLabelIsWithin(const TValue & tolerance)
{
  return { tolerance.template As<std::uint64_t>(), tolerance.ToDouble() };
}

} // namespace chunkwise

#endif
