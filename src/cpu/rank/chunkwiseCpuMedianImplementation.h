/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Included by chunkwiseCpuLevelFunctions.cxx, see there. Medians of small windows by networks of minima and maxima,
// a vector of outputs at a time. Each column of a row of windows is sorted once, for all windows that have it. With
// three columns two are merged, with five two pairs of which each is merged once for both windows that have it; the
// merged columns keep only the keys that can be the median, and the last column is met with a minimum of maxima.
// Windows that see some of their voxels alone have the others below everything, and want a rank above the median: its
// number differs from window to window, so merged keys move down by it first.
#include "chunkwiseCpuMedianRow.h"
#include "chunkwiseSelectionNetwork.h"

#include <type_traits>

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

/** Keys, as many as a register has. If minima of unsigned integers are missing, or slower, the highest bit of keys in
 * lists is flipped and they are signed. */
template <typename TKey>
struct KeyVector
{
#if defined(__AVX512BW__)
  static constexpr int  Bytes = 64;
  static constexpr bool IsSigned = false;
#elif defined(__AVX2__)
  static constexpr int  Bytes = 32;
  static constexpr bool IsSigned = sizeof(TKey) == 8;
#elif defined(__SSE2__)
  static constexpr int  Bytes = 16;
  static constexpr bool IsSigned = sizeof(TKey) > 1;
#else
  static constexpr int  Bytes = 16;
  static constexpr bool IsSigned = false;
#endif
  static constexpr std::int64_t Width = Bytes / static_cast<int>(sizeof(TKey));
  static constexpr TKey         Flip = IsSigned ? static_cast<TKey>(TKey{ 1 } << (8 * sizeof(TKey) - 1)) : TKey{ 0 };
  using Element = std::conditional_t<IsSigned, std::make_signed_t<TKey>, TKey>;
  using Type [[gnu::vector_size(Bytes)]] = Element;
};

template <typename TKey>
using KeyVectorType = typename KeyVector<TKey>::Type;

template <typename TKey>
[[gnu::always_inline]] inline KeyVectorType<TKey>
LoadKeys(const TKey * from)
{
  KeyVectorType<TKey> v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}

template <typename TKey>
[[gnu::always_inline]] inline void
StoreKeys(TKey * to, const KeyVectorType<TKey> & v)
{
  __builtin_memcpy(to, &v, sizeof(v));
}

template <typename TKey>
[[gnu::always_inline]] inline KeyVectorType<TKey>
FlipKeys(const KeyVectorType<TKey> & v)
{
  return v ^ static_cast<typename KeyVector<TKey>::Element>(KeyVector<TKey>::Flip);
}

/** The lesser of two keys, or the greater. */
template <bool VGreatest, typename TKey>
[[gnu::always_inline]] inline KeyVectorType<TKey>
Pick(const KeyVectorType<TKey> & a, const KeyVectorType<TKey> & b)
{
  if constexpr (VGreatest)
  {
    return a < b ? b : a;
  }
  else
  {
    return a < b ? a : b;
  }
}

/** Runs a network on vectors; load(wire) gives its keys. A loop that is unrolled: thousands of inlined functions would
 * take longer to compile. */
template <typename TKey, typename TNetwork, typename TLoad>
[[gnu::always_inline]] inline void
RunOnVectors(KeyVectorType<TKey> * v, const TLoad & load)
{
#pragma GCC unroll 1000
  for (int i = 0; i < TNetwork::Value.count; ++i)
  {
    const Comparator c = TNetwork::Value.comparators[i];
    if (c.beginsLow)
    {
      v[c.low] = load(c.low);
    }
    if (c.beginsHigh)
    {
      v[c.high] = load(c.high);
    }
    const KeyVectorType<TKey> a = v[c.low];
    const KeyVectorType<TKey> b = v[c.high];
    if (c.keepsLow)
    {
      v[c.low] = a < b ? a : b;
    }
    if (c.keepsHigh)
    {
      v[c.high] = a < b ? b : a;
    }
  }
}

/** Runs a network by its table: takes twice the time, and is soon compiled. */
template <typename TKey, typename TNetwork, typename TLoad>
inline void
RunByTable(KeyVectorType<TKey> * v, const TLoad & load)
{
  for (int wire = 0; wire < TNetwork::Wires; ++wire)
  {
    v[wire] = load(wire);
  }
  for (int i = 0; i < TNetwork::Value.count; ++i)
  {
    const Comparator &        c = TNetwork::Value.comparators[i];
    const KeyVectorType<TKey> a = v[c.low];
    const KeyVectorType<TKey> b = v[c.high];
    v[c.low] = Pick<false, TKey>(a, b);
    v[c.high] = Pick<true, TKey>(a, b);
  }
}

/** lists[k * pitch + column]: key number k of a column. */
template <typename TKey, int VLines>
void
SortColumns(const MedianRow<TKey> & row)
{
  using Sorting = SortingNetwork<VLines>;
  const TKey * lines[VLines];
  for (int k = 0; k < VLines; ++k)
  {
    lines[k] = row.lines[k];
  }
  for (std::int64_t i = 0; i < row.columns; i += KeyVector<TKey>::Width)
  {
    KeyVectorType<TKey> v[VLines];
    RunOnVectors<TKey, Sorting>(v, [&](int wire) { return FlipKeys<TKey>(LoadKeys<TKey>(lines[wire] + i)); });
#pragma GCC unroll 25
    for (int k = 0; k < VLines; ++k)
    {
      StoreKeys<TKey>(row.lists + k * row.pitch + i, v[Sorting::Value.order[k]]);
    }
  }
  const auto fill = [&](std::int64_t column, std::int64_t below) {
    const std::int64_t lows = (VLines + (column / row.step % 2 == below ? 1 : -1)) / 2;
    for (std::int64_t k = 0; k < VLines; ++k)
    {
      row.lists[k * row.pitch + column] =
        static_cast<TKey>((k < lows ? TKey{ 0 } : ~TKey{ 0 }) ^ KeyVector<TKey>::Flip);
    }
  };
  for (std::int64_t column = 0; column < row.first; ++column)
  {
    fill(column, row.below[0]);
  }
  for (std::int64_t column = row.last; column < row.columns; ++column)
  {
    fill(column, row.below[1]);
  }
}

/** The key of rank VRank of a list of VLines keys and a sorted one: the lesser, over the ways to divide the rank, of
 * the greater of both. keyOf(k) is key number VRank - k of the sorted list. */
template <int VLines, typename TKey, typename TKeyOf>
[[gnu::always_inline]] inline KeyVectorType<TKey>
MeetList(const MedianRow<TKey> & row, const TKey * list, const TKeyOf & keyOf)
{
  KeyVectorType<TKey> result = keyOf(0);
#pragma GCC unroll 25
  for (int j = 1; j <= VLines; ++j)
  {
    result = Pick<false, TKey>(result, Pick<true, TKey>(keyOf(j), LoadKeys<TKey>(list + (j - 1) * row.pitch)));
  }
  return result;
}

template <typename TKey>
[[gnu::always_inline]] inline bool
HasAny(const KeyVectorType<TKey> & v)
{
  std::uint64_t words[sizeof(v) / sizeof(std::uint64_t)];
  __builtin_memcpy(words, &v, sizeof(v));
  std::uint64_t any = 0;
  for (const std::uint64_t word : words)
  {
    any |= word;
  }
  return any != 0;
}

/** Moves sorted keys down by as many places as `raises` says, as far as the lowest VLines + 1 are wanted: one bit of
 * the numbers after the other, from VBit, the highest that they have; no more keys than the next bits need. */
template <typename TKey, int VLines, int VBit, int VCount>
[[gnu::always_inline]] inline void
MoveDown(KeyVectorType<TKey> (&keys)[VCount], const KeyVectorType<TKey> & raises, const KeyVectorType<TKey> & most)
{
  using Element = typename KeyVector<TKey>::Element;
  const KeyVectorType<TKey> bits = raises & static_cast<Element>(VBit);
  if (HasAny<TKey>(bits))
  {
#pragma GCC unroll 100
    for (int k = 0; k < (VCount < VLines + VBit ? VCount : VLines + VBit); ++k)
    {
      keys[k] = bits != 0 ? (k + VBit < VCount ? keys[k + VBit < VCount ? k + VBit : 0] : most) : keys[k];
    }
  }
  if constexpr (VBit > 1)
  {
    MoveDown<TKey, VLines, VBit / 2>(keys, raises, most);
  }
}

/** The median of lists of VEach keys, twice at each output, and of a list of VLines keys; or what is as many ranks
 * above it as the row says. */
template <typename TKey, int VEach, int VLines>
[[gnu::always_inline]] inline void
SelectMedians(const MedianRow<TKey> & row, const TKey * first, const TKey * second, const TKey * rest)
{
  using Vector = KeyVectorType<TKey>;
  using Element = typename KeyVector<TKey>::Element;
  constexpr int rank = (2 * VEach + VLines - 1) / 2;
  // Squares and cubes of what most images have.
  constexpr int  taps = 2 * VEach / VLines + 1;
  constexpr bool isCommon = sizeof(TKey) <= 4 && (VLines == taps || VLines == taps * taps);
  for (std::int64_t i = 0; i < row.columns - (row.taps - 1) * row.step; i += KeyVector<TKey>::Width)
  {
    const auto load = [&](int wire) {
      return LoadKeys<TKey>((wire < VEach ? first + wire * row.pitch : second + (wire - VEach) * row.pitch) + i);
    };
    Vector v[2 * VEach];
    Vector result;
    if (row.raises && HasAny<TKey>(LoadKeys<TKey>(row.raises + i)))
    {
      using Merging = MergingNetwork<VEach, rank - VLines, 2 * VEach - 1>;
      constexpr int count = 2 * VEach - (rank - VLines);
      const Vector  most = Vector{} + static_cast<Element>(~TKey{ 0 } ^ KeyVector<TKey>::Flip);
      const Vector  raises = LoadKeys<TKey>(row.raises + i);
      if constexpr (isCommon)
      {
        RunOnVectors<TKey, Merging>(v, load);
      }
      else
      {
        RunByTable<TKey, Merging>(v, load);
      }
      Vector merged[count];
#pragma GCC unroll 100
      for (int k = 0; k < count; ++k)
      {
        merged[k] = v[Merging::Value.order[rank - VLines + k]];
      }
      if constexpr (isCommon)
      {
        MoveDown<TKey, VLines, (rank >= 32 ? 32 : rank >= 16 ? 16 : 8)>(merged, raises, most);
      }
      else
      {
        for (int bit = rank >= 32 ? 32 : rank >= 16 ? 16 : 8; bit > 0; bit /= 2)
        {
          const Vector bits = raises & static_cast<Element>(bit);
          for (int k = 0; HasAny<TKey>(bits) && k < count && k < VLines + bit; ++k)
          {
            merged[k] = bits != 0 ? (k + bit < count ? merged[k + bit] : most) : merged[k];
          }
        }
      }
      result = MeetList<VLines>(row, rest + i, [&](int k) { return merged[VLines - k]; });
    }
    else
    {
      using Merging = MergingNetwork<VEach, rank - VLines, rank>;
      RunOnVectors<TKey, Merging>(v, load);
      result = MeetList<VLines>(row, rest + i, [&](int k) { return v[Merging::Value.order[rank - k]]; });
    }
    StoreKeys<TKey>(row.results + i, FlipKeys<TKey>(result));
  }
}

template <typename TKey, int VLines>
void
MediansOfLines(const MedianRow<TKey> & row)
{
  SortColumns<TKey, VLines>(row);
  if (row.taps == 3)
  {
    SelectMedians<TKey, VLines, VLines>(row, row.lists, row.lists + row.step, row.lists + 2 * row.step);
    return;
  }
  using Merging = MergingNetwork<VLines, 0, 2 * VLines - 1>;
  TKey * const pairs = row.lists + VLines * row.pitch;
  for (std::int64_t i = 0; i < row.columns - 2 * row.step; i += KeyVector<TKey>::Width)
  {
    KeyVectorType<TKey> v[2 * VLines];
    RunOnVectors<TKey, Merging>(v, [&](int wire) {
      return LoadKeys<TKey>(row.lists + (wire < VLines ? wire * row.pitch : (wire - VLines) * row.pitch + row.step) +
                            i);
    });
#pragma GCC unroll 50
    for (int k = 0; k < 2 * VLines; ++k)
    {
      StoreKeys<TKey>(pairs + k * row.pitch + i, v[Merging::Value.order[k]]);
    }
  }
  SelectMedians<TKey, 2 * VLines, VLines>(row, pairs, pairs + 2 * row.step, row.lists + 4 * row.step);
}

template <typename TKey>
bool
BitsToKeys(TKey * keys, std::int64_t n)
{
  constexpr int  top = 8 * sizeof(TKey) - 1;
  constexpr TKey sign = TKey{ 1 } << top;
  constexpr TKey infinity = sizeof(TKey) == 4 ? TKey{ 0xff } << 23 : static_cast<TKey>(std::uint64_t{ 0x7ff } << 52);
  TKey           hasNaN = 0;
  for (std::int64_t i = 0; i < n; ++i)
  {
    const TKey bits = keys[i];
    hasNaN |= (bits & ~sign) > (infinity & ~sign) ? 1 : 0;
    // A negative number is less the larger its bits are.
    keys[i] = bits ^ ((TKey{ 0 } - (bits >> top)) | sign);
  }
  return hasNaN != 0;
}

template <typename TKey>
auto
RealsToKeys() -> bool (*)(TKey *, std::int64_t)
{
  if constexpr (sizeof(TKey) >= 4)
  {
    return BitsToKeys<TKey>;
  }
  else
  {
    return nullptr;
  }
}

/** results[]: the medians of a row. */
template <typename TKey>
void
FindMedians(const MedianRow<TKey> & row)
{
  switch (row.lineCount)
  {
    case 3:
      return MediansOfLines<TKey, 3>(row);
    case 5:
      return MediansOfLines<TKey, 5>(row);
    case 9:
      return MediansOfLines<TKey, 9>(row);
    case 15:
      return MediansOfLines<TKey, 15>(row);
    default:
      MediansOfLines<TKey, 25>(row);
  }
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
