/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Included by chunkwiseCpuLevelFunctions.cxx, see there. Ranks in large windows: the voxels of all windows of a tile
// are sorted and counted in that order. A voxel is in the windows of a box of outputs, so that it counts for them by
// what it adds to rows at the corners of that box, summed along two axes: its work does not depend on how many windows
// it is in. An output whose count passes its rank is found; which voxel it is, is looked up at the end.
#include "chunkwiseCpuRankTile.h"

#include <type_traits>

#if defined(__SSE2__)
#  include <immintrin.h>
#endif

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

/** A place has a position along each axis and, above each, a bit that is free for comparisons. */
constexpr int           PlaceQ = 11;
constexpr int           PlaceM = 21;
constexpr std::uint32_t PlaceGuards = 1u << 10 | 1u << 20 | 1u << 31;

inline std::int64_t
Lesser(std::int64_t a, std::int64_t b)
{
  return a < b ? a : b;
}
inline std::int64_t
Greater(std::int64_t a, std::int64_t b)
{
  return a < b ? b : a;
}

/** A key of up to 32 bits and its place are one number. */
template <typename TKey>
using TileItem = std::conditional_t<sizeof(TKey) <= 4, std::uint64_t, RankTileItem>;

template <typename TKey>
inline TileItem<TKey>
MakeTileItem(TKey key, std::uint32_t place)
{
  if constexpr (sizeof(TKey) <= 4)
  {
    return static_cast<std::uint64_t>(key) << 32 | place;
  }
  else
  {
    return { key, place };
  }
}
template <typename TKey>
inline std::uint64_t
KeyOf(const TileItem<TKey> & item)
{
  if constexpr (sizeof(TKey) <= 4)
  {
    return item >> 32;
  }
  else
  {
    return item.key;
  }
}
template <typename TKey>
inline std::uint32_t
PlaceOf(const TileItem<TKey> & item)
{
  if constexpr (sizeof(TKey) <= 4)
  {
    return static_cast<std::uint32_t>(item);
  }
  else
  {
    return item.place;
  }
}

/** Sorts the places by their keys, digit by digit. Returns how many keys are 0. */
template <typename TKey>
std::int64_t
SortPlaces(const RankTile<TKey> & t)
{
  constexpr int           bits = RankTileDigitBits<TKey>;
  constexpr int           digits = RankTileDigits<TKey>;
  constexpr std::int64_t  values = std::int64_t{ 1 } << bits;
  constexpr std::uint64_t mask = values - 1;
  const std::int64_t      n = t.sides[0] * t.sides[1] * t.sides[2];
  for (std::int64_t i = 0; i < digits * values; ++i)
  {
    t.histograms[i] = 0;
  }
  std::int64_t zeros = 0;
  for (std::int64_t i = 0; i < n; ++i)
  {
    const auto key = static_cast<std::uint64_t>(t.keys[i]);
    zeros += key == 0 ? 1 : 0;
    for (int d = 0; d < digits; ++d)
    {
      ++t.histograms[d * values + static_cast<std::int64_t>(key >> (d * bits) & mask)];
    }
  }
  for (int d = 0; d < digits; ++d)
  {
    std::uint32_t sum = 0;
    for (std::int64_t v = 0; v < values; ++v)
    {
      const std::uint32_t count = t.histograms[d * values + v];
      t.histograms[d * values + v] = sum;
      sum += count;
    }
  }
  using Item = TileItem<TKey>;
  Item *       to = static_cast<Item *>(t.items[0]);
  const TKey * key = t.keys;
  for (std::int64_t m = 0; m < t.sides[2]; ++m)
  {
    for (std::int64_t q = 0; q < t.sides[1]; ++q)
    {
      const auto row = static_cast<std::uint32_t>(m << PlaceM | q << PlaceQ);
      for (std::int64_t p = 0; p < t.sides[0]; ++p, ++key)
      {
        const std::uint32_t place = row | static_cast<std::uint32_t>(p);
        const std::int64_t  position = t.histograms[*key & mask]++;
        if constexpr (digits == 1)
        {
          t.places[position] = place;
        }
        else
        {
          to[position] = MakeTileItem(*key, place);
        }
      }
    }
  }
  for (int d = 1; d < digits; ++d)
  {
    std::uint32_t * const begins = t.histograms + d * values;
    const Item * const    from = static_cast<const Item *>(t.items[(d + 1) % 2]);
    to = static_cast<Item *>(t.items[d % 2]);
    for (std::int64_t i = 0; i < n; ++i)
    {
      const Item         item = from[i];
      const std::int64_t position = begins[KeyOf<TKey>(item) >> (d * bits) & mask]++;
      if (d + 1 == digits)
      {
        t.places[position] = PlaceOf<TKey>(item);
      }
      else
      {
        to[position] = item;
      }
    }
  }
  for (std::int64_t i = 0; i < RankTileLook; ++i)
  {
    t.places[n + i] = 0;
  }
  return zeros;
}

/** For each position along the first axis, the outputs of a row whose windows have it. */
template <typename TKey>
void
MakeMasks(const RankTile<TKey> & t)
{
  for (std::int64_t p = 0; p < t.sides[0]; ++p)
  {
    const std::int64_t begin = p + t.shifts[0] - t.uppers[0];
    const std::int64_t end = Lesser(t.outputs[0], p + t.shifts[0] + t.lowers[0] + 1);
    for (std::int64_t o = 0; o < RankTileWidth; ++o)
    {
      t.masks[p * RankTileWidth + o] = o >= begin && o < end ? 1 : 0;
    }
  }
}

/** A row of counts. */
struct TileRow
{
  static_assert(RankTileWidth == 64, "the bits of a word");
  using Vector = std::uint8_t __attribute__((vector_size(RankTileWidth), may_alias));

  static inline Vector &
  At(std::uint8_t * rows, std::int64_t row)
  {
    return *reinterpret_cast<Vector *>(rows + row * RankTileWidth);
  }

  /** left[i] -= counts[i]. Bits are set where there was less left than counted. */
  template <typename TLeft>
  static inline std::uint64_t
  Subtract(TLeft * __restrict__ left, const std::uint8_t * __restrict__ counts)
  {
#if defined(__AVX512BW__)
    if constexpr (sizeof(TLeft) == 2)
    {
      std::uint64_t passed = 0;
      for (int half = 0; half < 2; ++half)
      {
        __m512i * const to = reinterpret_cast<__m512i *>(left + 32 * half);
        const __m512i   count =
          _mm512_cvtepu8_epi16(_mm256_load_si256(reinterpret_cast<const __m256i *>(counts + 32 * half)));
        const __m512i before = _mm512_load_si512(to);
        passed |= static_cast<std::uint64_t>(_mm512_cmplt_epu16_mask(before, count)) << (32 * half);
        _mm512_store_si512(to, _mm512_sub_epi16(before, count));
      }
      return passed;
    }
#elif defined(__SSE2__)
    if constexpr (sizeof(TLeft) == 2)
    {
      const __m128i zero = _mm_setzero_si128();
      const auto    subtract = [&](TLeft * at, __m128i count) {
        __m128i * const to = reinterpret_cast<__m128i *>(at);
        const __m128i   before = _mm_load_si128(to);
        _mm_store_si128(to, _mm_sub_epi16(before, count));
        return _mm_cmpeq_epi16(_mm_subs_epu16(count, before), zero);
      };
      std::uint64_t passed = 0;
      for (int i = 0; i < RankTileWidth; i += 16)
      {
        const __m128i count = _mm_load_si128(reinterpret_cast<const __m128i *>(counts + i));
        const __m128i lower = subtract(left + i, _mm_unpacklo_epi8(count, zero));
        const __m128i upper = subtract(left + i + 8, _mm_unpackhi_epi8(count, zero));
        const auto    enough = static_cast<std::uint64_t>(_mm_movemask_epi8(_mm_packs_epi16(lower, upper)));
        passed |= (enough ^ 0xFFFF) << i;
      }
      return passed;
    }
#endif
    TLeft some = 0;
    for (std::int64_t i = 0; i < RankTileWidth; ++i)
    {
      some = static_cast<TLeft>(some | (left[i] < counts[i] ? 1 : 0));
      left[i] = static_cast<TLeft>(left[i] - counts[i]);
    }
    std::uint64_t passed = 0;
    for (std::int64_t i = 0; some != 0 && i < RankTileWidth; ++i)
    {
      const auto before = static_cast<TLeft>(left[i] + counts[i]);
      passed |= std::uint64_t{ before < counts[i] ? 1u : 0u } << i;
    }
    return passed;
  }
};

/** Goes through the first `n` places. Counts how many are in each window, or looks for the ranks: `left` has how many
 * of a window are before its result and not counted yet; all bits are set once it is found. */
template <bool VCounts, typename TLeft, typename TKey>
void
SweepPlaces(const RankTile<TKey> & t, TLeft * allLeft, std::int64_t n)
{
  constexpr std::int64_t width = RankTileWidth;
  std::int64_t           waiting = t.outputs[0] * t.outputs[1] * t.outputs[2];
  // Rows may alias everything; these are not read again for each.
  std::uint8_t * const        rows = t.rows;
  std::uint8_t * const        sums = t.sums;
  std::uint8_t * const        masks = t.masks;
  std::uint32_t * const       found = t.found;
  const std::uint32_t * const places = t.places;
  const std::int64_t          shiftQ = t.shifts[1];
  const std::int64_t          shiftM = t.shifts[2];
  const std::int64_t          lowerQ = t.lowers[1];
  const std::int64_t          lowerM = t.lowers[2];
  const std::int64_t          upperQ = t.uppers[1];
  const std::int64_t          upperM = t.uppers[2];
  const std::int64_t          outputsQ = t.outputs[1];
  const std::int64_t          outputsM = t.outputs[2];
  // Boxes that reach the tile's end end in rows that nobody reads.
  constexpr std::int64_t pitch = RankTileSide + 1;
  for (std::int64_t row = 0; row < (outputsM + 1) * pitch; ++row)
  {
    TileRow::At(rows, row) = TileRow::Vector{};
  }
  for (std::int64_t first = 0; first < n && waiting > 0; first += RankTileBatch)
  {
    const std::int64_t end = Lesser(n, first + RankTileBatch);
    for (std::int64_t i = first; i < end; ++i)
    {
      const std::uint32_t   place = places[i];
      const std::int64_t    q = (place >> PlaceQ & 511) + shiftQ;
      const std::int64_t    m = (place >> PlaceM & 1023) + shiftM;
      const std::int64_t    q0 = Greater(0, q - upperQ);
      const std::int64_t    q1 = Lesser(RankTileSide, q + lowerQ + 1);
      const std::int64_t    m0 = Greater(0, m - upperM) * pitch;
      const std::int64_t    m1 = Lesser(outputsM, m + lowerM + 1) * pitch;
      const TileRow::Vector mask = TileRow::At(masks, place & 1023);
      TileRow::At(rows, m0 + q0) += mask;
      TileRow::At(rows, m0 + q1) -= mask;
      TileRow::At(rows, m1 + q0) -= mask;
      TileRow::At(rows, m1 + q1) += mask;
    }
    for (std::int64_t q = 0; q < outputsQ; ++q)
    {
      TileRow::At(sums, q) = TileRow::Vector{};
    }
    for (std::int64_t m = 0; m < outputsM; ++m)
    {
      TileRow::Vector count{};
      for (std::int64_t q = 0; q < outputsQ; ++q)
      {
        TileRow::Vector & row = TileRow::At(rows, m * pitch + q);
        TileRow::Vector & sum = TileRow::At(sums, q);
        TLeft * const     left = allLeft + (m * RankTileSide + q) * width;
        sum += row;
        row = TileRow::Vector{};
        count += sum;
        alignas(64) std::uint8_t counts[width];
        TileRow::At(counts, 0) = count;
        if constexpr (VCounts)
        {
          for (std::int64_t i = 0; i < width; ++i)
          {
            left[i] = static_cast<TLeft>(left[i] + counts[i]);
          }
        }
        else
        {
          for (std::uint64_t passed = TileRow::Subtract(left, counts); passed != 0; passed &= passed - 1)
          {
            const int i = __builtin_ctzll(passed);
            found[left - allLeft + i] =
              static_cast<std::uint32_t>(first) | static_cast<std::uint32_t>(static_cast<TLeft>(left[i] + counts[i]));
            left[i] = static_cast<TLeft>(~TLeft{ 0 });
            --waiting;
          }
        }
      }
    }
  }
}

/** Bits for those of the next RankTileLook places that a window has. */
inline std::uint32_t
PlacesIn(const std::uint32_t * __restrict__ places, std::uint32_t first, std::uint32_t last)
{
  static_assert(RankTileLook == 16, "a vector of places");
#if defined(__AVX512F__)
  const __m512i guards = _mm512_set1_epi32(static_cast<int>(PlaceGuards));
  const __m512i some = _mm512_loadu_si512(places);
  const __m512i afterFirst =
    _mm512_sub_epi32(_mm512_or_si512(some, guards), _mm512_set1_epi32(static_cast<int>(first)));
  const __m512i beforeLast = _mm512_sub_epi32(_mm512_set1_epi32(static_cast<int>(last)), some);
  return _mm512_cmpeq_epi32_mask(_mm512_and_si512(_mm512_and_si512(afterFirst, beforeLast), guards), guards);
#elif defined(__SSE2__)
  const __m128i guards = _mm_set1_epi32(static_cast<int>(PlaceGuards));
  const auto    isIn = [&](std::int64_t i) {
    const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i *>(places + i));
    const __m128i afterFirst = _mm_sub_epi32(_mm_or_si128(some, guards), _mm_set1_epi32(static_cast<int>(first)));
    const __m128i beforeLast = _mm_sub_epi32(_mm_set1_epi32(static_cast<int>(last)), some);
    return _mm_cmpeq_epi32(_mm_and_si128(_mm_and_si128(afterFirst, beforeLast), guards), guards);
  };
  const __m128i lower = _mm_packs_epi32(isIn(0), isIn(4));
  const __m128i upper = _mm_packs_epi32(isIn(8), isIn(12));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(lower, upper)));
#else
  std::uint32_t bits = 0;
  for (std::uint32_t i = 0; i < RankTileLook; ++i)
  {
    const std::uint32_t guards = ((places[i] | PlaceGuards) - first) & (last - places[i]) & PlaceGuards;
    bits |= (guards == PlaceGuards ? 1u : 0u) << i;
  }
  return bits;
#endif
}

/** The voxel of a window that is number `left` of those from places[0] on. */
inline std::uint32_t
LookUp(const std::uint32_t * places, std::uint32_t left, std::uint32_t first, std::uint32_t last)
{
  while (true)
  {
    std::uint32_t in = PlacesIn(places, first, last);
    const auto    some = static_cast<std::uint32_t>(__builtin_popcount(in));
    if (left < some)
    {
      for (; left > 0; --left)
      {
        in &= in - 1;
      }
      return places[__builtin_ctz(in)];
    }
    left -= some;
    places += RankTileLook;
  }
}

/** Whether counts of a window fit 16 bits, beside the number that says an output is found. */
template <typename TKey>
inline bool
CountsInShort(const RankTile<TKey> & t)
{
  return t.taps < 65535;
}

/** Sorts a tile; ranks[]: how many keys of each window are 0, of which `counts` says if anyone wants to know. */
template <typename TKey>
void
SortTile(const RankTile<TKey> & t, bool counts)
{
  const std::int64_t zeros = SortPlaces(t);
  MakeMasks(t);
  const std::int64_t outputs = RankTileWidth * RankTileSide * t.outputs[2];
  for (std::int64_t i = 0; i < outputs; ++i)
  {
    t.ranks[i] = 0;
    t.left[i] = 0;
  }
  if (counts && zeros > 0)
  {
    SweepPlaces<true>(t, t.left, zeros);
    for (std::int64_t i = 0; i < outputs; ++i)
    {
      t.ranks[i] = static_cast<std::int32_t>(t.left[i]);
    }
  }
}

template <typename TLeft, typename TKey>
void
FindInTileAs(const RankTile<TKey> & t)
{
  auto * const left = reinterpret_cast<TLeft *>(t.left);
  for (std::int64_t i = 0; i < RankTileWidth * RankTileSide * t.outputs[2]; ++i)
  {
    const bool isOutput = i % RankTileWidth < t.outputs[0];
    left[i] = isOutput ? static_cast<TLeft>(t.ranks[i]) : static_cast<TLeft>(~TLeft{ 0 });
  }
  SweepPlaces<false>(t, left, t.sides[0] * t.sides[1] * t.sides[2]);
}

/** results[]: of each window the key with number ranks[], after SortTile. */
template <typename TKey>
void
FindInTile(const RankTile<TKey> & t)
{
  CountsInShort(t) ? FindInTileAs<std::uint16_t>(t) : FindInTileAs<std::uint32_t>(t);
  // The part of a window that there is: its first position in the low, its last in the high half.
  const auto rangeOf = [&t](int axis, std::int64_t o, std::uint32_t & first, std::uint32_t & last) {
    first = static_cast<std::uint32_t>(Greater(0, o - t.lowers[axis] - t.shifts[axis]));
    last = static_cast<std::uint32_t>(Lesser(t.sides[axis] - 1, o + t.uppers[axis] - t.shifts[axis]));
  };
  for (std::int64_t m = 0; m < t.outputs[2]; ++m)
  {
    for (std::int64_t q = 0; q < t.outputs[1]; ++q)
    {
      std::uint32_t firsts[3];
      std::uint32_t lasts[3];
      rangeOf(1, q, firsts[1], lasts[1]);
      rangeOf(2, m, firsts[2], lasts[2]);
      for (std::int64_t p = 0; p < t.outputs[0]; ++p)
      {
        const std::int64_t  at = (m * RankTileSide + q) * RankTileWidth + p;
        const std::uint32_t found = t.found[at];
        rangeOf(0, p, firsts[0], lasts[0]);
        const std::uint32_t place = LookUp(t.places + (found & ~static_cast<std::uint32_t>(RankTileBatch - 1)),
                                           found & static_cast<std::uint32_t>(RankTileBatch - 1),
                                           firsts[0] | firsts[1] << PlaceQ | firsts[2] << PlaceM,
                                           (lasts[0] | lasts[1] << PlaceQ | lasts[2] << PlaceM) + PlaceGuards);
        t.results[at] =
          t.keys[(place & 1023) + t.sides[0] * ((place >> PlaceQ & 511) + t.sides[1] * (place >> PlaceM & 1023))];
      }
    }
  }
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
