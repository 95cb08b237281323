/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, as Chunkwise_LEVEL_SRCS are, with CHUNKWISE_CPU_LEVEL the level's namespace.
// Everything here is in that namespace: a template compiled for AVX must not be what the linker gives to the baseline.
// For the same reason only headers without inline functions are included.
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuMedianImplementation.h"
#include "chunkwiseCpuPatchImplementation.h"
#include "chunkwiseCpuRankTileImplementation.h"
#include "chunkwiseCpuTogetherImplementation.h"
#include "chunkwiseCpuVectors.h"
#include "chunkwiseOrderedKey.h"

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

inline float
MultiplyAddOne(float w, float x, float sum)
{
  return __builtin_fmaf(w, x, sum);
}
inline double
MultiplyAddOne(double w, double x, double sum)
{
  return __builtin_fma(w, x, sum);
}

/** Voxels [i, i + VVectors vectors). */
template <int VVectors, typename TAcc>
CHUNKWISE_ALWAYS_INLINE void
WeighVectors(TAcc * out, const TAcc * const * rows, const TAcc * weights, std::int64_t taps, std::int64_t i)
{
  using V = RealVector<TAcc>;
  VectorOf<TAcc> sums[VVectors]{};
  for (std::int64_t t = 0; t < taps; ++t)
  {
    const VectorOf<TAcc> weight = weights[t] - VectorOf<TAcc>{};
#pragma GCC unroll 8
    for (int k = 0; k < VVectors; ++k)
    {
      sums[k] = Fuse<TAcc>(weight, V::Load(rows[t] + i + k * V::Width), sums[k]);
    }
  }
#pragma GCC unroll 8
  for (int k = 0; k < VVectors; ++k)
  {
    V::Store(out + i + k * V::Width, sums[k]);
  }
}

template <typename TAcc>
void
Weigh(TAcc * __restrict out, const TAcc * const * rows, const TAcc * weights, std::int64_t taps, std::int64_t n)
{
  constexpr std::int64_t width = RealVector<TAcc>::Width;
  std::int64_t           i = n - n % width;
  // Enough independent chains to hide the latency of a multiply-add, and at the end as many as there are.
  ForEachVectors<8>(0, n / width, [&](std::int64_t first, auto vectors) {
    WeighVectors<decltype(vectors)::value>(out, rows, weights, taps, first * width);
  });
  if (i < n && n >= width)
  {
    // Some voxels once more, instead of the last ones one by one.
    WeighVectors<1>(out, rows, weights, taps, n - width);
    return;
  }
  for (; i < n; ++i)
  {
    TAcc s = 0;
    for (std::int64_t t = 0; t < taps; ++t)
    {
      s = MultiplyAddOne(weights[t], rows[t][i], s);
    }
    out[i] = s;
  }
}

template <typename TReal, int VVectors>
CHUNKWISE_ALWAYS_INLINE void
WeighDifferencesBlock(TReal * out, const TReal * const * rows, const TReal * center, const TReal * weights,
                      std::int64_t taps, std::int64_t i)
{
  using V = RealVector<TReal>;
  VectorOf<TReal> sums[VVectors]{};
  VectorOf<TReal> centers[VVectors];
#pragma GCC unroll 8
  for (int v = 0; v < VVectors; ++v)
  {
    centers[v] = V::Load(center + i + v * V::Width);
  }
  for (std::int64_t t = 0; t < taps; ++t)
  {
    const VectorOf<TReal> weight = weights[t] - VectorOf<TReal>{};
#pragma GCC unroll 8
    for (int v = 0; v < VVectors; ++v)
    {
      sums[v] = Fuse<TReal>(weight, V::Load(rows[t] + i + v * V::Width) - centers[v], sums[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < VVectors; ++v)
  {
    V::Store(out + i + v * V::Width, sums[v]);
  }
}

template <typename TReal>
void
WeighDifferences(TReal * out, const TReal * const * rows, const TReal * center, const TReal * weights,
                 std::int64_t taps, std::int64_t n)
{
  constexpr std::int64_t width = RealVector<TReal>::Width;
  if (n < width)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      TReal sum = 0;
      for (std::int64_t t = 0; t < taps; ++t)
      {
        sum = MultiplyAddOne(weights[t], rows[t][i] - center[i], sum);
      }
      out[i] = sum;
    }
    return;
  }
  ForEachVectors<4>(0, n / width, [&](std::int64_t first, auto vectors) {
    WeighDifferencesBlock<TReal, decltype(vectors)::value>(out, rows, center, weights, taps, first * width);
  });
  // Some voxels once more, instead of the last ones one by one.
  WeighDifferencesBlock<TReal, 1>(out, rows, center, weights, taps, n - width);
}

template <typename T>
constexpr bool IsReal = static_cast<T>(0.5) != static_cast<T>(0);

/** Calls f(begin, end) for all of [0, n), in runs that are multiples of what vectors hold: of a last one that is
 * shorter some numbers come twice, instead of being done one by one. */
template <typename TFunctor>
CHUNKWISE_ALWAYS_INLINE void
ForWholeBlocks(std::int64_t n, TFunctor && f)
{
  constexpr std::int64_t block = 32;
  const std::int64_t     whole = n < block ? n : n / block * block;
  for (std::int64_t begin = 0, end = whole; begin < end; begin = n - block, end = end < n ? n : begin)
  {
    f(begin, end);
  }
}

struct Plus
{
  /** Joined in another order real numbers have other bits. */
  template <typename TAcc>
  static constexpr bool HasOrder = IsReal<TAcc>;
  template <typename TAcc>
  static TAcc
  First(TAcc value)
  {
    // +0 for -0
    return static_cast<TAcc>(TAcc{ 0 } + value);
  }
  template <typename TAcc>
  static TAcc
  Join(TAcc a, TAcc b)
  {
    return static_cast<TAcc>(a + b);
  }
};

struct Larger
{
  template <typename TAcc>
  static constexpr bool HasOrder = false;
  template <typename TAcc>
  static TAcc
  First(TAcc value)
  {
    return value;
  }
  template <typename TAcc>
  static TAcc
  Join(TAcc a, TAcc b)
  {
    return a > b ? a : b;
  }
};

template <typename TAcc, typename TJoin, int VTaps>
void
JoinFixed(TAcc * __restrict out, const TAcc * const * rows, std::int64_t n)
{
  const TAcc * r[VTaps];
  for (int t = 0; t < VTaps; ++t)
  {
    r[t] = rows[t];
  }
  ForWholeBlocks(n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
    {
      TAcc s = TJoin::First(r[0][i]);
      for (int t = 1; t < VTaps; ++t)
      {
        s = TJoin::Join(s, r[t][i]);
      }
      out[i] = s;
    }
  });
}

template <typename TAcc, typename TJoin>
void
JoinRows(TAcc * __restrict out, const TAcc * const * rows, std::int64_t taps, std::int64_t n)
{
  switch (taps)
  {
    case 1:
      return JoinFixed<TAcc, TJoin, 1>(out, rows, n);
    case 2:
      return JoinFixed<TAcc, TJoin, 2>(out, rows, n);
    case 3:
      return JoinFixed<TAcc, TJoin, 3>(out, rows, n);
    case 4:
      return JoinFixed<TAcc, TJoin, 4>(out, rows, n);
    case 5:
      return JoinFixed<TAcc, TJoin, 5>(out, rows, n);
    case 6:
      return JoinFixed<TAcc, TJoin, 6>(out, rows, n);
    case 7:
      return JoinFixed<TAcc, TJoin, 7>(out, rows, n);
    case 8:
      return JoinFixed<TAcc, TJoin, 8>(out, rows, n);
    default:
      JoinFixed<TAcc, TJoin, 9>(out, rows, n);
  }
}

template <typename TAcc, typename TJoin>
void
JoinTwo(TAcc * out, const TAcc * a, const TAcc * b, std::int64_t n)
{
  for (std::int64_t i = 0; i < n; ++i)
  {
    out[i] = TJoin::Join(a[i], b[i]);
  }
}

template <typename TAcc>
void
Scale(TAcc * row, TAcc factor, std::int64_t n)
{
  for (std::int64_t i = 0; i < n; ++i)
  {
    row[i] *= factor;
  }
}

template <typename TAcc>
void
MultiplyAddRow(TAcc * __restrict sum, const TAcc * __restrict row, TAcc weight, std::int64_t n)
{
  for (std::int64_t i = 0; i < n; ++i)
  {
    sum[i] = MultiplyAddOne(weight, row[i], sum[i]);
  }
}

template <typename TIn, typename TAcc>
void
Convert(void * outMemory, const void * inMemory, std::int64_t n)
{
  TAcc * __restrict const out = static_cast<TAcc *>(outMemory);
  const TIn * __restrict const in = static_cast<const TIn *>(inMemory);
  ForWholeBlocks(n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
    {
      out[i] = static_cast<TAcc>(in[i]);
    }
  });
}

template <typename TPixel, int VFlip>
void
ToKey(void * outMemory, const void * inMemory, std::int64_t n)
{
  using Key = typename OrderedKey<TPixel>::Type;
  Key * __restrict const out = static_cast<Key *>(outMemory);
  const TPixel * __restrict const in = static_cast<const TPixel *>(inMemory);
  ForWholeBlocks(n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
    {
      out[i] = OrderedKey<TPixel>::From(in[i], VFlip);
    }
  });
}

template <typename TPixel, typename TOut, int VFlip>
void
FromKey(void * outMemory, const void * inMemory, std::int64_t n)
{
  using Key = typename OrderedKey<TPixel>::Type;
  TOut * __restrict const out = static_cast<TOut *>(outMemory);
  const Key * __restrict const in = static_cast<const Key *>(inMemory);
  ForWholeBlocks(n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
    {
      out[i] = static_cast<TOut>(OrderedKey<TPixel>::To(in[i], VFlip));
    }
  });
}

template <typename TKey>
void
HideKeys(TKey * __restrict keys, const std::uint8_t * __restrict mask, std::int64_t n)
{
  constexpr auto lowest = static_cast<TKey>(std::uint64_t{ 1 } << (8 * sizeof(TKey) - 1));
  for (std::int64_t i = 0; i < n; ++i)
  {
    const TKey seen = keys[i] > lowest ? keys[i] : static_cast<TKey>(lowest + 1);
    keys[i] = mask[i] != 0 ? seen : lowest;
  }
}

/** As DivideRoundHalfEven, here so that no other translation unit's copy is used. */
template <typename TInteger>
inline TInteger
DivideHalfEven(TInteger sum, TInteger divisor)
{
  TInteger quotient = sum / divisor;
  TInteger remainder = sum % divisor;
  if (remainder < 0)
  {
    remainder += divisor;
    --quotient;
  }
  const TInteger rest = divisor - remainder;
  return quotient + ((remainder > rest || (remainder == rest && quotient % 2 != 0)) ? 1 : 0);
}

inline float
RoundToEven(float value)
{
  return __builtin_rintf(value);
}
inline double
RoundToEven(double value)
{
  return __builtin_rint(value);
}

/** Quotients that are rounded to integers of up to 16 bits. */
template <typename TReal, typename TAcc, typename TOut, typename TQuotient>
CHUNKWISE_ALWAYS_INLINE void
FinishSmallMean(TOut * __restrict out, const TAcc * __restrict in, std::int64_t n, bool truncates,
                TQuotient && quotient)
{
  constexpr bool  isSigned = static_cast<TOut>(-1) < static_cast<TOut>(0);
  constexpr TReal lowest = isSigned ? -static_cast<TReal>(1 << (8 * sizeof(TOut) - 1)) : TReal{ 0 };
  constexpr TReal largest = lowest + static_cast<TReal>((1 << (8 * sizeof(TOut))) - 1);
  ForWholeBlocks(n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
    {
      TReal value = quotient(static_cast<TReal>(in[i]));
      value = value > lowest ? value : lowest;
      value = value < largest ? value : largest;
      out[i] = static_cast<TOut>(static_cast<std::int32_t>(truncates ? value : RoundToEven(value)));
    }
  });
}

template <typename TAcc, typename TOut>
void
FinishMean(void * outMemory, const void * inMemory, std::int64_t count, std::int64_t n, bool truncates)
{
  TOut * __restrict const out = static_cast<TOut *>(outMemory);
  const TAcc * __restrict const in = static_cast<const TAcc *>(inMemory);
  if constexpr (IsReal<TAcc>)
  {
    const TAcc divisor = static_cast<TAcc>(count);
    ForWholeBlocks(n, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
      {
        out[i] = static_cast<TOut>(in[i] / divisor);
      }
    });
  }
  else if constexpr (IsReal<TOut>)
  {
    const auto divisor = static_cast<double>(count);
    for (std::int64_t i = 0; i < n; ++i)
    {
      out[i] = static_cast<TOut>(static_cast<double>(in[i]) / divisor);
    }
  }
  else if constexpr (sizeof(TOut) <= 2)
  {
    // Quotients lie at least 1 / (2 count) from every tie, and 1 / count from every integer, except quotients that are
    // ties or integers. If this distance is more than the last place of a quotient below 2^bits, the nearest number to
    // a quotient lies on the same side of ties and integers as the quotient, and equals one only if the quotient does.
    // A product with the inverse may be off by two such places more, and by any at all where a quotient is a tie: odd
    // counts have none.
    constexpr int bits = 8 * static_cast<int>(sizeof(TOut));
    if (count <= std::int64_t{ 1 } << (22 - bits) && count % 2 == 1 && !truncates)
    {
      const float inverse = 1.0f / static_cast<float>(count);
      FinishSmallMean<float>(out, in, n, false, [inverse](float sum) { return sum * inverse; });
    }
    else if (count <= std::int64_t{ 1 } << (23 - bits))
    {
      const auto divisor = static_cast<float>(count);
      FinishSmallMean<float>(out, in, n, truncates, [divisor](float sum) { return sum / divisor; });
    }
    else
    {
      // With |sum| < 2^53, a quotient below 2^16 and fewer than 2^31 taps the same is true of doubles.
      const auto divisor = static_cast<double>(count);
      FinishSmallMean<double>(out, in, n, truncates, [divisor](double sum) { return sum / divisor; });
    }
  }
  else
  {
    constexpr bool isSigned = static_cast<TOut>(-1) < static_cast<TOut>(0);
    for (std::int64_t i = 0; i < n; ++i)
    {
      TAcc value = truncates ? in[i] / static_cast<TAcc>(count) : DivideHalfEven<TAcc>(in[i], static_cast<TAcc>(count));
      if constexpr (sizeof(TAcc) > sizeof(TOut))
      {
        constexpr TAcc largest = (TAcc{ 1 } << (8 * sizeof(TOut) - (isSigned ? 1 : 0))) - 1;
        constexpr TAcc lowest = isSigned ? -largest - 1 : 0;
        value = value < lowest ? lowest : value > largest ? largest : value;
      }
      out[i] = static_cast<TOut>(value);
    }
  }
}

template <typename TAcc, typename TOut>
void
FinishWeighted(void * outMemory, const void * inMemory, std::int64_t n)
{
  TOut * __restrict const out = static_cast<TOut *>(outMemory);
  const TAcc * __restrict const in = static_cast<const TAcc *>(inMemory);
  ForWholeBlocks(n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
    {
      if constexpr (IsReal<TOut>)
      {
        out[i] = static_cast<TOut>(in[i]);
      }
      else
      {
        constexpr bool isSigned = static_cast<TOut>(-1) < static_cast<TOut>(0);
        constexpr TOut lowest = isSigned ? static_cast<TOut>(std::uint64_t{ 1 } << (8 * sizeof(TOut) - 1)) : TOut{ 0 };
        constexpr TOut largest = static_cast<TOut>(~lowest);
        const TAcc     value = in[i];
        if constexpr (sizeof(TOut) <= 2)
        {
          TAcc clamped = value > static_cast<TAcc>(lowest) ? value : static_cast<TAcc>(lowest);
          clamped = clamped < static_cast<TAcc>(largest) ? clamped : static_cast<TAcc>(largest);
          out[i] = static_cast<TOut>(static_cast<std::int32_t>(RoundToEven(clamped)));
        }
        else
        {
          out[i] = !(value > static_cast<TAcc>(lowest))  ? lowest
                   : value >= static_cast<TAcc>(largest) ? largest
                                                         : static_cast<TOut>(RoundToEven(value));
        }
      }
    }
  });
}

/** One line of the caches; `to` is its begin. */
CHUNKWISE_ALWAYS_INLINE void
StreamLine(unsigned char * to, const unsigned char * from)
{
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i *>(to), _mm512_loadu_si512(from));
#elif defined(__AVX2__)
#  pragma GCC unroll 2
  for (std::int64_t i = 0; i < LineBytes; i += 32)
  {
    _mm256_stream_si256(reinterpret_cast<__m256i *>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from + i)));
  }
#elif defined(__SSE2__)
#  pragma GCC unroll 4
  for (std::int64_t i = 0; i < LineBytes; i += 16)
  {
    _mm_stream_si128(reinterpret_cast<__m128i *>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i)));
  }
#else
  __builtin_memcpy(to, from, LineBytes);
#endif
}

inline void
Stream(void * out, const void * in, std::int64_t bytes)
{
  auto *             to = static_cast<unsigned char *>(out);
  const auto *       from = static_cast<const unsigned char *>(in);
  const std::int64_t beyond = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % LineBytes);
  std::int64_t       i = beyond == 0 ? 0 : LineBytes - beyond < bytes ? LineBytes - beyond : bytes;
  __builtin_memcpy(to, from, static_cast<std::size_t>(i));
  for (; i + LineBytes <= bytes; i += LineBytes)
  {
    StreamLine(to + i, from + i);
  }
  __builtin_memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
}

inline void
EndStream()
{
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

template <typename TAcc, typename TJoin>
RowFunctions<TAcc>
JoiningRows()
{
  RowFunctions<TAcc> rows{};
  rows.sum = JoinRows<TAcc, TJoin>;
  rows.sumTogether = JoinTogether<TAcc, TJoin>;
  rows.add = JoinTwo<TAcc, TJoin>;
  return rows;
}

template <typename TAcc>
RowFunctions<TAcc>
IntegerRows()
{
  RowFunctions<TAcc> rows = JoiningRows<TAcc, Plus>();
  rows.scale = Scale<TAcc>;
  return rows;
}

template <typename TAcc>
RowFunctions<TAcc>
RealRows()
{
  RowFunctions<TAcc> rows = IntegerRows<TAcc>();
  rows.weigh = Weigh<TAcc>;
  rows.weighDifferences = WeighDifferences<TAcc>;
  rows.multiplyAdd = MultiplyAddRow<TAcc>;
  rows.weighTogether = WeighTogether<TAcc>;
  rows.weighAlong = WeighAlong<TAcc>;
  return rows;
}

template <typename TPixel, int VFlip>
void
FillKeys(CpuLevel & level, int kind)
{
  level.toKey[-VFlip][kind] = ToKey<TPixel, VFlip>;
  level.fromKey[-VFlip][kind][0] = FromKey<TPixel, TPixel, VFlip>;
  level.fromKey[-VFlip][kind][1] = FromKey<TPixel, float, VFlip>;
  level.fromKey[-VFlip][kind][2] = FromKey<TPixel, double, VFlip>;
}

template <typename TIn>
void
FillConvert(CpuLevel & level, int kind)
{
  level.convert[kind][0] = Convert<TIn, std::int32_t>;
  level.convert[kind][1] = Convert<TIn, std::int64_t>;
  level.convert[kind][2] = Convert<TIn, Int128>;
  level.convert[kind][3] = Convert<TIn, float>;
  level.convert[kind][4] = Convert<TIn, double>;
  level.convert[kind][5] = Convert<TIn, std::int16_t>;
  FillKeys<TIn, 0>(level, kind);
  FillKeys<TIn, -1>(level, kind);
}

template <typename TOut>
void
FillFinish(CpuLevel & level, int kind)
{
  level.finishMean[0][kind] = FinishMean<std::int32_t, TOut>;
  level.finishMean[1][kind] = FinishMean<std::int64_t, TOut>;
  level.finishMean[2][kind] = FinishMean<Int128, TOut>;
  level.finishMean[3][kind] = FinishMean<float, TOut>;
  level.finishMean[4][kind] = FinishMean<double, TOut>;
  level.finishMean[5][kind] = FinishMean<std::int16_t, TOut>;
  level.finishWeighted[3][kind] = FinishWeighted<float, TOut>;
  level.finishWeighted[4][kind] = FinishWeighted<double, TOut>;
}

/** Voxels that are searched together: few enough for what is counted to stay in the first cache. */
constexpr std::int64_t RankBlock = 256;

/** Adds to counts[i] how many of VTaps keys from lines[l][offset + i] on are below limits[i], for VLines lines. */
template <int VLines, int VTaps, typename TKey>
void
AddBelow(TKey * __restrict__ counts, const TKey * const * lines, std::int64_t offset, const TKey * __restrict__ limits,
         std::int64_t n)
{
  const TKey * at[VLines];
  for (int l = 0; l < VLines; ++l)
  {
    at[l] = lines[l] + offset;
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    const TKey limit = limits[i];
    TKey       count = counts[i];
#pragma GCC unroll 8
    for (int l = 0; l < VLines; ++l)
    {
#pragma GCC unroll 8
      for (int t = 0; t < VTaps; ++t)
      {
        count = static_cast<TKey>(count + (at[l][i + t] < limit ? 1 : 0));
      }
    }
    counts[i] = count;
  }
}

/** Keys of a window that integers of the keys' size can count. */
template <typename TKey>
constexpr std::int64_t MostCounted = sizeof(TKey) == 1 ? 255 : 65535;

/** Adds as many of `taps` taps of the first of `lineCount` lines as one loop takes, and returns how many these are;
 * `taken`: of how many lines it took them all. */
template <typename TKey>
std::int64_t
AddSome(TKey * counts, const TKey * const * lines, std::int64_t lineCount, std::int64_t taps, std::int64_t offset,
        const TKey * limits, std::int64_t n, std::int64_t & taken)
{
  taken = 1;
  if (taps == 3 && lineCount >= 3)
  {
    taken = 3;
    AddBelow<3, 3>(counts, lines, offset, limits, n);
    return 3;
  }
  if (taps >= 8)
  {
    AddBelow<1, 8>(counts, lines, offset, limits, n);
    return 8;
  }
  if (taps >= 5)
  {
    AddBelow<1, 5>(counts, lines, offset, limits, n);
    return 5;
  }
  if (taps >= 3)
  {
    AddBelow<1, 3>(counts, lines, offset, limits, n);
    return 3;
  }
  AddBelow<1, 1>(counts, lines, offset, limits, n);
  return 1;
}

/** Adds all taps; calls flush() before the counts could overflow. */
template <typename TKey, typename TFlush>
void
AddWindow(TKey * counts, const TKey * const * lines, std::int64_t lineCount, std::int64_t taps, std::int64_t offset,
          const TKey * limits, std::int64_t n, TFlush && flush)
{
  std::int64_t added = 0;
  for (std::int64_t l = 0; l < lineCount;)
  {
    std::int64_t taken = 1;
    for (std::int64_t t = 0; t < taps;)
    {
      // No call adds more than 9.
      if (added + 9 > MostCounted<TKey>)
      {
        flush();
        added = 0;
      }
      const std::int64_t now =
        AddSome(counts, lines + l, t == 0 ? lineCount - l : 1, taps - t, offset + t, limits, n, taken);
      added += now * taken;
      t += now;
    }
    l += taken;
  }
}

template <typename TKey>
void
CountBelowInBlock(std::int32_t * __restrict__ counts, const TKey * const * lines, std::int64_t lineCount,
                  std::int64_t taps, std::int64_t offset, const TKey * __restrict__ limits, std::int64_t n)
{
  // Counted in integers of the keys' size, as many at once as there are keys in a vector.
  TKey some[RankBlock];
  for (std::int64_t i = 0; i < n; ++i)
  {
    counts[i] = 0;
    some[i] = 0;
  }
  const auto flush = [&] {
    for (std::int64_t i = 0; i < n; ++i)
    {
      counts[i] += static_cast<std::int32_t>(some[i]);
      some[i] = 0;
    }
  };
  AddWindow(some, lines, lineCount, taps, offset, limits, n, flush);
  flush();
}

template <typename TKey>
void
CountBelow(std::int32_t * counts, const TKey * const * lines, std::int64_t lineCount, std::int64_t taps,
           const TKey * limits, std::int64_t n)
{
  for (std::int64_t begin = 0; begin < n; begin += RankBlock)
  {
    const std::int64_t block = n - begin < RankBlock ? n - begin : RankBlock;
    CountBelowInBlock(counts + begin, lines, lineCount, taps, begin, limits + begin, block);
  }
}

template <typename TKey>
void
FindRanks(TKey * results, const TKey * const * lines, std::int64_t lineCount, std::int64_t taps,
          const std::int32_t * ranks, std::int64_t n)
{
  for (std::int64_t begin = 0; begin < n; begin += RankBlock)
  {
    const std::int64_t block = n - begin < RankBlock ? n - begin : RankBlock;
    TKey               found[RankBlock];
    TKey               limits[RankBlock];
    std::int32_t       counts[RankBlock];
    TKey               some[RankBlock];
    TKey               wanted[RankBlock];
    // Then nothing is wider than the keys.
    const bool isSmall = lineCount * taps + 9 <= MostCounted<TKey>;
    for (std::int64_t i = 0; i < block; ++i)
    {
      found[i] = 0;
      wanted[i] = static_cast<TKey>(ranks[begin + i]);
    }
    for (TKey bit = static_cast<TKey>(TKey{ 1 } << (8 * sizeof(TKey) - 1)); bit != 0; bit = static_cast<TKey>(bit >> 1))
    {
      for (std::int64_t i = 0; i < block; ++i)
      {
        limits[i] = static_cast<TKey>(found[i] | bit);
        some[i] = 0;
      }
      if (isSmall)
      {
        AddWindow(some, lines, lineCount, taps, begin, limits, block, [] {});
        for (std::int64_t i = 0; i < block; ++i)
        {
          found[i] = some[i] <= wanted[i] ? limits[i] : found[i];
        }
        continue;
      }
      CountBelowInBlock(counts, lines, lineCount, taps, begin, limits, block);
      for (std::int64_t i = 0; i < block; ++i)
      {
        found[i] = counts[i] <= ranks[begin + i] ? limits[i] : found[i];
      }
    }
    for (std::int64_t i = 0; i < block; ++i)
    {
      results[begin + i] = found[i];
    }
  }
}

template <typename TKey>
RankFunctions<TKey>
RankRows()
{
  return {
    CountBelow<TKey>, FindRanks<TKey>, SortTile<TKey>, FindInTile<TKey>, RealsToKeys<TKey>(), FindMedians<TKey>
  };
}

CpuLevel
MakeCpuLevel()
{
  CpuLevel level{};
  level.int16 = IntegerRows<std::int16_t>();
  level.int32 = IntegerRows<std::int32_t>();
  level.int64 = IntegerRows<std::int64_t>();
  level.int128 = IntegerRows<Int128>();
  level.float32 = RealRows<float>();
  level.float64 = RealRows<double>();
  level.largest32 = JoiningRows<std::int32_t, Larger>();
  level.largest64 = JoiningRows<std::int64_t, Larger>();
  level.largest16 = JoiningRows<std::int16_t, Larger>();
  level.hide16 = HideKeys<std::int16_t>;
  level.hide32 = HideKeys<std::int32_t>;
  level.hide64 = HideKeys<std::int64_t>;
  level.largest8 = JoiningRows<std::uint8_t, Larger>();
  level.count8 = JoiningRows<std::uint8_t, Plus>();
  level.patch32 = PatchRows<float>();
  level.patch64 = PatchRows<double>();
  level.rank8 = RankRows<std::uint8_t>();
  level.rank16 = RankRows<std::uint16_t>();
  level.rank32 = RankRows<std::uint32_t>();
  level.rank64 = RankRows<std::uint64_t>();
  level.stream = Stream;
  level.endStream = EndStream;
  FillConvert<std::uint8_t>(level, 0);
  FillConvert<std::int8_t>(level, 1);
  FillConvert<std::uint16_t>(level, 2);
  FillConvert<std::int16_t>(level, 3);
  FillConvert<std::uint32_t>(level, 4);
  FillConvert<std::int32_t>(level, 5);
  FillConvert<std::uint64_t>(level, 6);
  FillConvert<std::int64_t>(level, 7);
  FillConvert<float>(level, 8);
  FillConvert<double>(level, 9);
  FillFinish<std::uint8_t>(level, 0);
  FillFinish<std::int8_t>(level, 1);
  FillFinish<std::uint16_t>(level, 2);
  FillFinish<std::int16_t>(level, 3);
  FillFinish<std::uint32_t>(level, 4);
  FillFinish<std::int32_t>(level, 5);
  FillFinish<std::uint64_t>(level, 6);
  FillFinish<std::int64_t>(level, 7);
  FillFinish<float>(level, 8);
  FillFinish<double>(level, 9);
  return level;
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
