/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Included after chunkwiseCpuPatchImplementation.h by chunkwiseCpuLevelFunctions.cxx and others, see there. Rows
// that are made together, of which each row that they share is read once.
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuVectors.h"

#include <utility>

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

/** Calls body(row, tap, result) for the rows that some of VCount results have as taps, ascending; a result that does
 * not have a row is left out. */
template <int VCount, typename TRow, typename TBody>
CHUNKWISE_ALWAYS_INLINE void
ForEachTap(std::int64_t taps, TRow && row, TBody && body)
{
#pragma GCC unroll 8
  for (int j = 0; j < VCount - 1; ++j)
  {
    const auto values = row(static_cast<std::int64_t>(j));
#pragma GCC unroll 8
    for (int k = 0; k <= j; ++k)
    {
      body(values, j - k, k);
    }
  }
  for (std::int64_t j = VCount - 1; j < taps; ++j)
  {
    const auto values = row(j);
#pragma GCC unroll 8
    for (int k = 0; k < VCount; ++k)
    {
      body(values, j - k, k);
    }
  }
#pragma GCC unroll 8
  for (int j = 1; j < VCount; ++j)
  {
    const auto values = row(taps + j - 1);
#pragma GCC unroll 8
    for (int k = j; k < VCount; ++k)
    {
      body(values, taps + j - 1 - k, k);
    }
  }
}

/** Calls f(first, constant) for runs of vectors of at most VMost, that number as a constant. */
template <int VMost, typename TFunctor>
CHUNKWISE_ALWAYS_INLINE void
ForEachVectors(std::int64_t first, std::int64_t vectors, TFunctor && f)
{
  for (; vectors >= VMost; first += VMost, vectors -= VMost)
  {
    f(first, std::integral_constant<int, VMost>{});
  }
  if constexpr (VMost > 1)
  {
    if (vectors > 0)
    {
      ForEachVectors<VMost - 1>(first, vectors, f);
    }
  }
}

template <typename TReal>
std::int64_t
CountVectors(std::int64_t n)
{
  return (n + RealVector<TReal>::Width - 1) / RealVector<TReal>::Width;
}

template <typename TReal, int VVectors>
CHUNKWISE_ALWAYS_INLINE void
WeighTogetherBlock(TReal * const * outs, const TReal * const * rows, const TReal * weights, std::int64_t taps,
                   std::int64_t i)
{
  using V = RealVector<TReal>;
  struct Taken
  {
    VectorOf<TReal> x[VVectors];
  };
  VectorOf<TReal> sums[RowsTogether][VVectors]{};
  ForEachTap<RowsTogether>(
    taps,
    [&](std::int64_t j) {
      Taken taken;
#pragma GCC unroll 8
      for (int v = 0; v < VVectors; ++v)
      {
        taken.x[v] = V::Load(rows[j] + i + v * V::Width);
      }
      return taken;
    },
    [&](const Taken & taken, std::int64_t t, int k) {
      const VectorOf<TReal> weight = weights[t] - VectorOf<TReal>{};
#pragma GCC unroll 8
      for (int v = 0; v < VVectors; ++v)
      {
        sums[k][v] = Fuse<TReal>(weight, taken.x[v], sums[k][v]);
      }
    });
#pragma GCC unroll 8
  for (int k = 0; k < RowsTogether; ++k)
  {
#pragma GCC unroll 8
    for (int v = 0; v < VVectors; ++v)
    {
      V::Store(outs[k] + i + v * V::Width, sums[k][v]);
    }
  }
}

template <typename TReal>
void
WeighTogether(TReal * const * outs, const TReal * const * rows, const TReal * weights, std::int64_t taps,
              std::int64_t n)
{
#if defined(__AVX512F__)
  constexpr int most = 4;
#else
  constexpr int most = 2;
#endif
  ForEachVectors<most>(0, CountVectors<TReal>(n), [&](std::int64_t first, auto vectors) {
    WeighTogetherBlock<TReal, decltype(vectors)::value>(outs, rows, weights, taps, first * RealVector<TReal>::Width);
  });
}

#if defined(__AVX512F__)
/** The numbers from VShift on of two vectors that lie side by side. */
template <typename TReal, int VShift>
CHUNKWISE_ALWAYS_INLINE VectorOf<TReal>
                        ShiftVectors(VectorOf<TReal> low, VectorOf<TReal> high)
{
  if constexpr (sizeof(TReal) == 4)
  {
    return _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(high), _mm512_castps_si512(low), VShift));
  }
  else
  {
    return _mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(high), _mm512_castpd_si512(low), VShift));
  }
}

/** Adds the taps from `in` on that are in two vectors; `taps` of them. A vector that reaches into two lines of the
 * cache takes two reads; every other one is put together from registers instead. */
template <typename TReal, int VVectors, int... VShifts>
CHUNKWISE_ALWAYS_INLINE void
AddShifted(VectorOf<TReal> (&sums)[VVectors], const TReal * in, const TReal * weights, std::int64_t taps,
           std::integer_sequence<int, VShifts...>)
{
  using V = RealVector<TReal>;
  VectorOf<TReal> parts[VVectors + 1];
#  pragma GCC     unroll 16
  for (int v = 0; v <= VVectors; ++v)
  {
    parts[v] = V::Load(in + v * V::Width);
  }
  const auto add = [&](auto constant) {
    constexpr int         shift = decltype(constant)::value;
    const VectorOf<TReal> weight = weights[shift] - VectorOf<TReal>{};
#  pragma GCC unroll 8
    for (int v = 0; v < VVectors; ++v)
    {
      VectorOf<TReal> x;
      if constexpr (shift % 2 == 1)
      {
        x = V::Load(in + shift + v * V::Width);
      }
      else
      {
        x = ShiftVectors<TReal, shift>(parts[v], parts[v + 1]);
      }
      sums[v] = Fuse<TReal>(weight, x, sums[v]);
    }
    return shift + 1 < taps;
  };
  static_cast<void>((add(std::integral_constant<int, VShifts>{}) && ...));
}
#endif

template <typename TReal, int VVectors>
CHUNKWISE_ALWAYS_INLINE void
WeighAlongBlock(TReal * out, const TReal * in, const TReal * weights, std::int64_t taps)
{
  using V = RealVector<TReal>;
  VectorOf<TReal> sums[VVectors]{};
#if defined(__AVX512F__)
  for (std::int64_t t = 0; t < taps; t += V::Width)
  {
    AddShifted<TReal, VVectors>(
      sums, in + t, weights + t, taps - t, std::make_integer_sequence<int, static_cast<int>(V::Width)>{});
  }
#else
  for (std::int64_t t = 0; t < taps; ++t)
  {
    const VectorOf<TReal> weight = weights[t] - VectorOf<TReal>{};
#  pragma GCC unroll 8
    for (int v = 0; v < VVectors; ++v)
    {
      sums[v] = Fuse<TReal>(weight, V::Load(in + t + v * V::Width), sums[v]);
    }
  }
#endif
#pragma GCC unroll 8
  for (int v = 0; v < VVectors; ++v)
  {
    V::Store(out + v * V::Width, sums[v]);
  }
}

template <typename TReal>
void
WeighAlong(TReal * out, const TReal * in, const TReal * weights, std::int64_t taps, std::int64_t n)
{
  ForEachVectors<8>(0, CountVectors<TReal>(n), [&](std::int64_t first, auto vectors) {
    const std::int64_t i = first * RealVector<TReal>::Width;
    WeighAlongBlock<TReal, decltype(vectors)::value>(out + i, in + i, weights, taps);
  });
}

/** Joined in any order real numbers would have other bits. */
template <typename TAcc, typename TJoin, int VTaps>
void
JoinTogetherFixed(TAcc * __restrict out0, TAcc * __restrict out1, TAcc * __restrict out2, TAcc * __restrict out3,
                  const TAcc * const * rows, std::int64_t n)
{
  static_assert(RowsTogether == 4, "results have names");
  constexpr int count = VTaps + RowsTogether - 1;
  const TAcc *  r[count];
  for (int t = 0; t < count; ++t)
  {
    r[t] = rows[t];
  }
  ForWholeBlocks(n, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
    {
      if constexpr (TJoin::template HasOrder<TAcc> || VTaps <= 3)
      {
        const auto join = [&](int first) {
          TAcc s = TJoin::First(r[first][i]);
          for (int t = 1; t < VTaps; ++t)
          {
            s = TJoin::Join(s, r[first + t][i]);
          }
          return s;
        };
        out0[i] = join(0);
        out1[i] = join(1);
        out2[i] = join(2);
        out3[i] = join(3);
      }
      else
      {
        TAcc all = r[3][i];
        for (int t = 4; t < VTaps; ++t)
        {
          all = TJoin::Join(all, r[t][i]);
        }
        const TAcc from2 = TJoin::Join(r[2][i], all);
        const TAcc from1 = TJoin::Join(r[1][i], from2);
        const TAcc after = TJoin::Join(r[VTaps][i], r[VTaps + 1][i]);
        out0[i] = TJoin::Join(r[0][i], from1);
        out1[i] = TJoin::Join(from1, r[VTaps][i]);
        out2[i] = TJoin::Join(from2, after);
        out3[i] = TJoin::Join(TJoin::Join(all, after), r[VTaps + 2][i]);
      }
    }
  });
}

template <typename TAcc, typename TJoin>
void
JoinTogether(TAcc * const * outs, const TAcc * const * rows, std::int64_t taps, std::int64_t n)
{
  switch (taps)
  {
    case 2:
      return JoinTogetherFixed<TAcc, TJoin, 2>(outs[0], outs[1], outs[2], outs[3], rows, n);
    case 3:
      return JoinTogetherFixed<TAcc, TJoin, 3>(outs[0], outs[1], outs[2], outs[3], rows, n);
    case 4:
      return JoinTogetherFixed<TAcc, TJoin, 4>(outs[0], outs[1], outs[2], outs[3], rows, n);
    case 5:
      return JoinTogetherFixed<TAcc, TJoin, 5>(outs[0], outs[1], outs[2], outs[3], rows, n);
    case 6:
      return JoinTogetherFixed<TAcc, TJoin, 6>(outs[0], outs[1], outs[2], outs[3], rows, n);
    case 7:
      return JoinTogetherFixed<TAcc, TJoin, 7>(outs[0], outs[1], outs[2], outs[3], rows, n);
    case 8:
      return JoinTogetherFixed<TAcc, TJoin, 8>(outs[0], outs[1], outs[2], outs[3], rows, n);
    default:
      JoinTogetherFixed<TAcc, TJoin, 9>(outs[0], outs[1], outs[2], outs[3], rows, n);
  }
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
