/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Included once by each chunkwiseCpuTable*.cxx, with CHUNKWISE_CPU_LEVEL the level's namespace. As in
// chunkwiseCpuLevelImplementation.h everything is in that namespace, and headers without functions of external linkage
// alone are included.
#include "chunkwiseCpuTable.h"
#include "chunkwiseOrderedKey.h"

#if defined(__AVX2__)
#  include <immintrin.h>
#elif defined(__SSE2__)
#  include <emmintrin.h>
#endif

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

template <typename T>
constexpr bool IsReal = static_cast<T>(0.5) != T{ 0 };
template <typename T>
constexpr bool IsNegative = static_cast<T>(-1) < T{ 0 };

template <bool VFirst, typename TFirst, typename TSecond>
struct Choice
{
  using Type = TFirst;
};
template <typename TFirst, typename TSecond>
struct Choice<false, TFirst, TSecond>
{
  using Type = TSecond;
};

/** One column of each group of a block. */
template <typename T>
struct Groups;

#if defined(__AVX512F__)
template <>
struct Groups<double>
{
  static constexpr int N = 4;
  __m512d              v[N];

  static CHUNKWISE_ALWAYS_INLINE Groups
  Load(const double * p)
  {
    Groups g;
#  pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = _mm512_loadu_pd(p + 8 * k);
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE void
  Store(double * p) const
  {
#  pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      _mm512_storeu_pd(p + 8 * k, v[k]);
    }
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  operator+(const Groups & other) const
  {
    Groups g;
#  pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = _mm512_add_pd(v[k], other.v[k]);
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Squared() const
  {
    Groups g;
#  pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = _mm512_mul_pd(v[k], v[k]);
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  After(double left) const
  {
    Groups        g;
    const __m512d all = _mm512_set1_pd(left);
#  pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = _mm512_add_pd(all, v[k]);
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE double
  Last() const
  {
    return _mm512_cvtsd_f64(_mm512_permutexvar_pd(_mm512_set1_epi64(7), v[N - 1]));
  }
  /** Of the totals of groups: the sum of the groups before each. */
  CHUNKWISE_ALWAYS_INLINE Groups
  Before() const
  {
    const __m512i none = _mm512_setzero_si512();
    Groups        g;
    __m512d       quarters = _mm512_setzero_pd();
#  pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      __m512d t = v[k];
      t = _mm512_add_pd(_mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(t), none, 7)), t);
      t = _mm512_add_pd(_mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(t), none, 6)), t);
      t = _mm512_add_pd(_mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(t), none, 4)), t);
      g.v[k] = _mm512_add_pd(quarters, _mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(t), none, 7)));
      quarters = _mm512_add_pd(quarters, _mm512_permutexvar_pd(_mm512_set1_epi64(7), t));
    }
    return g;
  }
};

template <>
struct Groups<float>
{
  static constexpr int N = 2;
  __m512               v[N];

  static CHUNKWISE_ALWAYS_INLINE Groups
  Load(const float * p)
  {
    return { { _mm512_loadu_ps(p), _mm512_loadu_ps(p + 16) } };
  }
  CHUNKWISE_ALWAYS_INLINE void
  Store(float * p) const
  {
    _mm512_storeu_ps(p, v[0]);
    _mm512_storeu_ps(p + 16, v[1]);
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  operator+(const Groups & other) const
  {
    return { { _mm512_add_ps(v[0], other.v[0]), _mm512_add_ps(v[1], other.v[1]) } };
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Squared() const
  {
    return { { _mm512_mul_ps(v[0], v[0]), _mm512_mul_ps(v[1], v[1]) } };
  }
  /** Of the totals of groups: the sum of the groups before each. */
  CHUNKWISE_ALWAYS_INLINE Groups
  Before() const
  {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const auto    shifted = [&](__m512 t, int d, __mmask16 mask) {
      return _mm512_maskz_permutexvar_ps(mask, _mm512_sub_epi32(lanes, _mm512_set1_epi32(d)), t);
    };
    Groups g;
    __m512 quarters = _mm512_setzero_ps();
#  pragma GCC unroll 2
    for (int k = 0; k < N; ++k)
    {
      __m512 t = v[k];
      t = _mm512_add_ps(shifted(t, 1, 0xfefe), t);
      t = _mm512_add_ps(shifted(t, 2, 0xfcfc), t);
      t = _mm512_add_ps(shifted(t, 4, 0xf0f0), t);
      const __m512 first = quarters;
      const __m512 second = _mm512_add_ps(first, _mm512_permutexvar_ps(_mm512_set1_epi32(7), t));
      quarters = _mm512_add_ps(second, _mm512_permutexvar_ps(_mm512_set1_epi32(15), t));
      g.v[k] = _mm512_add_ps(_mm512_mask_blend_ps(0xff00, first, second), shifted(t, 1, 0xfefe));
    }
    return g;
  }
};

CHUNKWISE_ALWAYS_INLINE Groups<double>
                        Widened(const Groups<float> & groups)
{
  Groups<double> g;
#  pragma GCC    unroll 2
  for (int k = 0; k < Groups<float>::N; ++k)
  {
    g.v[2 * k] = _mm512_cvtps_pd(_mm512_castps512_ps256(groups.v[k]));
    g.v[2 * k + 1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(groups.v[k], 1));
  }
  return g;
}

CHUNKWISE_ALWAYS_INLINE void
Narrow(Groups<float> & to, const Groups<double> & groups)
{
#  pragma GCC unroll 2
  for (int k = 0; k < Groups<float>::N; ++k)
  {
    to.v[k] = _mm512_insertf32x8(
      _mm512_castps256_ps512(_mm512_cvtpd_ps(groups.v[2 * k])), _mm512_cvtpd_ps(groups.v[2 * k + 1]), 1);
  }
}

/** A block of voxels by columns of groups. */
CHUNKWISE_ALWAYS_INLINE void
Load(Groups<float> (&columns)[TableGroup], const float * in)
{
  const __m512i low = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(2));
#  pragma GCC   unroll 2
  for (int k = 0; k < Groups<float>::N; ++k)
  {
    const __m512 a = _mm512_loadu_ps(in + 64 * k);
    const __m512 b = _mm512_loadu_ps(in + 64 * k + 16);
    const __m512 c = _mm512_loadu_ps(in + 64 * k + 32);
    const __m512 d = _mm512_loadu_ps(in + 64 * k + 48);
    // Columns 0 and 1, and 2 and 3, of eight groups.
    const __m512 first[2] = { _mm512_permutex2var_ps(a, low, b), _mm512_permutex2var_ps(a, high, b) };
    const __m512 second[2] = { _mm512_permutex2var_ps(c, low, d), _mm512_permutex2var_ps(c, high, d) };
#  pragma GCC unroll 2
    for (int i = 0; i < 2; ++i)
    {
      columns[2 * i].v[k] = _mm512_shuffle_f32x4(first[i], second[i], 0x44);
      columns[2 * i + 1].v[k] = _mm512_shuffle_f32x4(first[i], second[i], 0xee);
    }
  }
}

CHUNKWISE_ALWAYS_INLINE void
Load(Groups<double> (&columns)[TableGroup], const float * in)
{
  Groups<float> narrow[TableGroup];
  Load(narrow, in);
#  pragma GCC unroll 4
  for (int c = 0; c < TableGroup; ++c)
  {
    columns[c] = Widened(narrow[c]);
  }
}

CHUNKWISE_ALWAYS_INLINE void
Store(float * out, const Groups<double> (&columns)[TableGroup])
{
  const __m512i low = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(4));
#  pragma GCC   unroll 4
  for (int k = 0; k < Groups<double>::N; ++k)
  {
    const __m512 a =
      _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(columns[0].v[k])), _mm512_cvtpd_ps(columns[1].v[k]), 1);
    const __m512 b =
      _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(columns[2].v[k])), _mm512_cvtpd_ps(columns[3].v[k]), 1);
    _mm512_storeu_ps(out + 32 * k, _mm512_permutex2var_ps(a, low, b));
    _mm512_storeu_ps(out + 32 * k + 16, _mm512_permutex2var_ps(a, high, b));
  }
}

CHUNKWISE_ALWAYS_INLINE void
Load(Groups<double> (&columns)[TableGroup], const double * in)
{
  const __m512i places = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
#  pragma GCC   unroll 4
  for (int k = 0; k < Groups<double>::N; ++k)
  {
#  pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      columns[c].v[k] = _mm512_i64gather_pd(places, in + 32 * k + c, 8);
    }
  }
}

CHUNKWISE_ALWAYS_INLINE void
Store(double * out, const Groups<double> (&columns)[TableGroup])
{
  const __m512i even = _mm512_setr_epi64(0, 8, 2, 10, 4, 12, 6, 14);
  const __m512i odd = _mm512_add_epi64(even, _mm512_set1_epi64(1));
#  pragma GCC   unroll 4
  for (int k = 0; k < Groups<double>::N; ++k)
  {
    // Columns 0 and 1, and 2 and 3, of every second group.
    const __m512d pairs[2][2] = { { _mm512_permutex2var_pd(columns[0].v[k], even, columns[1].v[k]),
                                    _mm512_permutex2var_pd(columns[2].v[k], even, columns[3].v[k]) },
                                  { _mm512_permutex2var_pd(columns[0].v[k], odd, columns[1].v[k]),
                                    _mm512_permutex2var_pd(columns[2].v[k], odd, columns[3].v[k]) } };
    for (int pair = 0; pair < 4; ++pair)
    {
      const std::int64_t at = 2 * pair;
      const __m512i      lanes = _mm512_setr_epi64(at, at + 1, at + 8, at + 9, 0, 0, 0, 0);
      const __m256d      first = _mm512_castpd512_pd256(_mm512_permutex2var_pd(pairs[0][0], lanes, pairs[0][1]));
      const __m256d      second = _mm512_castpd512_pd256(_mm512_permutex2var_pd(pairs[1][0], lanes, pairs[1][1]));
      _mm256_storeu_pd(out + 32 * k + 8 * pair, first);
      _mm256_storeu_pd(out + 32 * k + 8 * pair + 4, second);
    }
  }
}
#else
template <typename T>
struct Groups
{
  T v[TableGroups];

  static CHUNKWISE_ALWAYS_INLINE Groups
  Load(const T * p)
  {
    Groups g;
    for (int i = 0; i < TableGroups; ++i)
    {
      g.v[i] = p[i];
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE void
  Store(T * p) const
  {
    for (int i = 0; i < TableGroups; ++i)
    {
      p[i] = v[i];
    }
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  operator+(const Groups & other) const
  {
    Groups g;
    for (int i = 0; i < TableGroups; ++i)
    {
      g.v[i] = v[i] + other.v[i];
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Squared() const
  {
    Groups g;
    for (int i = 0; i < TableGroups; ++i)
    {
      g.v[i] = v[i] * v[i];
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  After(T left) const
  {
    Groups g;
    for (int i = 0; i < TableGroups; ++i)
    {
      g.v[i] = left + v[i];
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE T
  Last() const
  {
    return v[TableGroups - 1];
  }
  /** Of the totals of groups: the sum of the groups before each. */
  CHUNKWISE_ALWAYS_INLINE Groups
  Before() const
  {
    Groups g;
    T      quarters = 0;
    for (int q = 0; q < TableGroups; q += TableQuarter)
    {
      T scanned[4][TableQuarter];
      for (int i = 0; i < TableQuarter; ++i)
      {
        scanned[0][i] = v[q + i];
      }
      for (int step = 0; step < 3; ++step)
      {
        const int d = 1 << step;
        for (int i = 0; i < TableQuarter; ++i)
        {
          scanned[step + 1][i] = i >= d ? scanned[step][i - d] + scanned[step][i] : scanned[step][i];
        }
      }
      for (int i = 0; i < TableQuarter; ++i)
      {
        g.v[q + i] = quarters + (i > 0 ? scanned[3][i - 1] : T{ 0 });
      }
      quarters = quarters + scanned[3][TableQuarter - 1];
    }
    return g;
  }
};

inline Groups<double>
Widened(const Groups<float> & groups)
{
  Groups<double> g;
  for (int i = 0; i < TableGroups; ++i)
  {
    g.v[i] = static_cast<double>(groups.v[i]);
  }
  return g;
}

inline void
Narrow(Groups<float> & to, const Groups<double> & groups)
{
  for (int i = 0; i < TableGroups; ++i)
  {
    to.v[i] = static_cast<float>(groups.v[i]);
  }
}

/** A block of voxels by columns of groups. */
template <typename T, typename TIn>
void
Load(Groups<T> (&columns)[TableGroup], const TIn * in)
{
  for (int i = 0; i < TableGroups; ++i)
  {
#  pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      columns[c].v[i] = static_cast<T>(in[TableGroup * i + c]);
    }
  }
}

template <typename TOut>
void
Store(TOut * out, const Groups<double> (&columns)[TableGroup])
{
  for (int i = 0; i < TableGroups; ++i)
  {
#  pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      out[TableGroup * i + c] = static_cast<TOut>(columns[c].v[i]);
    }
  }
}
#endif

CHUNKWISE_ALWAYS_INLINE Groups<double>
                        Widened(const Groups<double> & groups)
{
  return groups;
}

CHUNKWISE_ALWAYS_INLINE void
Narrow(Groups<double> & to, const Groups<double> & groups)
{
  to = groups;
}

/** X. Adding +0 where nothing is to be added changes no bit: no sum here is -0, as all begin with +0. */
template <typename T>
CHUNKWISE_ALWAYS_INLINE void
Scan(Groups<T> (&columns)[TableGroup])
{
#pragma GCC unroll 4
  for (int c = 1; c < TableGroup; ++c)
  {
    columns[c] = columns[c - 1] + columns[c];
  }
  const Groups<T> before = columns[TableGroup - 1].Before();
#pragma GCC unroll 4
  for (int c = 0; c < TableGroup; ++c)
  {
    columns[c] = before + columns[c];
  }
}

inline void
Before(double * out, const double * blocks, std::int64_t columns)
{
  for (std::int64_t x = 0; x < columns; x += TableColumns)
  {
    Groups<double> sums[TableGroup];
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      sums[c] = Groups<double>::Load(blocks + x + c * TableGroups);
    }
    Scan(sums);
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      sums[c].Store(out + x + c * TableGroups);
    }
  }
}

/** The voxels of a block, in `padded` if it is not whole. */
template <typename TIn>
const TIn *
WholeBlock(const TIn * in, std::int64_t n, TIn (&padded)[TableColumns])
{
  if (n >= TableColumns)
  {
    return in;
  }
  for (std::int64_t x = 0; x < TableColumns; ++x)
  {
    padded[x] = x < n ? in[x] : TIn{ 0 };
  }
  return padded;
}

/** Calls store with the place of a block's output, or of `stored`, from which [first, last) is copied. */
template <typename TOut, typename TStore>
CHUNKWISE_ALWAYS_INLINE void
StoreBlock(TOut * out, std::int64_t first, std::int64_t last, TStore && store)
{
  if (first <= 0 && last >= TableColumns)
  {
    store(out);
    return;
  }
  TOut stored[TableColumns];
  store(stored);
  for (std::int64_t x = first > 0 ? first : 0; x < last && x < TableColumns; ++x)
  {
    out[x] = stored[x];
  }
}

/** Bytes of a line of the caches. */
constexpr std::int64_t Line = 64;

/** Asks for the memory of a block some blocks ahead, which a processor that is busy with sums would ask for too late.
 * Beyond the end of a row nothing is read or written, so that any address will do. */
template <typename T>
CHUNKWISE_ALWAYS_INLINE void
FetchAhead(const void * row, std::int64_t x)
{
#if defined(__GNUC__)
  constexpr std::int64_t Ahead = 4 * TableColumns;
  const auto  begin = reinterpret_cast<std::uintptr_t>(row) + static_cast<std::uintptr_t>(x + Ahead) * sizeof(T);
#  pragma GCC unroll 16
  for (std::int64_t i = 0; i < TableColumns * static_cast<std::int64_t>(sizeof(T)); i += Line)
  {
    __builtin_prefetch(reinterpret_cast<const void *>(begin + static_cast<std::uintptr_t>(i)));
  }
#endif
}

template <typename TIn, typename TOut, bool VSquares>
void
RealRow(const TableRow & row)
{
  using Local = typename Choice<sizeof(TIn) == 4 && sizeof(TOut) == 4, float, double>::Type;
  auto * const plane = static_cast<double *>(row.plane);
  auto * const local = static_cast<Local *>(row.local);
  double       left = row.out ? *static_cast<double *>(row.left) : 0;
  for (std::int64_t x = 0; x < row.columns; x += TableColumns)
  {
    FetchAhead<TIn>(row.in, x);
    if (row.out && !row.isStaged)
    {
      FetchAhead<TOut>(row.out, x);
    }
    TIn               padded[TableColumns];
    const TIn * const in = WholeBlock(static_cast<const TIn *>(row.in) + x, row.columns - x, padded);
    Groups<Local>     sums[TableGroup];
    if (plane)
    {
      Groups<double> terms[TableGroup];
      Load(terms, in);
#pragma GCC unroll 4
      for (int c = 0; c < TableGroup; ++c)
      {
        const std::int64_t at = x + c * TableGroups;
        terms[c] = Groups<double>::Load(plane + at) + (VSquares ? terms[c].Squared() : terms[c]);
        terms[c].Store(plane + at);
        Narrow(sums[c], terms[c]);
      }
    }
    else
    {
      Load(sums, in);
#pragma GCC unroll 4
      for (int c = 0; c < TableGroup; ++c)
      {
        sums[c] = VSquares ? sums[c].Squared() : sums[c];
      }
    }
    if (!local)
    {
      continue;
    }
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      const std::int64_t at = x + c * TableGroups;
      sums[c] = Groups<Local>::Load(local + at) + sums[c];
      sums[c].Store(local + at);
    }
    if (!row.out)
    {
      continue;
    }
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      sums[c] = Groups<Local>::Load(static_cast<const Local *>(row.sections) + x + c * TableGroups) + sums[c];
    }
    Scan(sums);
    Groups<double> results[TableGroup];
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      results[c] =
        Groups<double>::Load(static_cast<const double *>(row.before) + x + c * TableGroups) + Widened(sums[c]);
    }
    const double next = left + results[TableGroup - 1].Last();
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      results[c] = results[c].After(left);
    }
    left = next;
    StoreBlock(static_cast<TOut *>(row.out) + x, row.first - x, row.last - x, [&](TOut * out) { Store(out, results); });
  }
  if (row.out)
  {
    *static_cast<double *>(row.left) = left;
  }
}

/** The sums up to each of a block's columns, of those and `left`; gives the last. */
template <typename TSum>
TSum
Prefix(TSum * out, const TSum * sums, TSum left)
{
#if defined(__AVX512F__)
  const __m512i none = _mm512_setzero_si512();
  if constexpr (sizeof(TSum) == 4)
  {
    __m512i before = _mm512_set1_epi32(static_cast<int>(left));
    for (std::int64_t x = 0; x < TableColumns; x += 16)
    {
      __m512i v = _mm512_loadu_si512(sums + x);
      v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, none, 15));
      v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, none, 14));
      v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, none, 12));
      v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, none, 8));
      v = _mm512_add_epi32(v, before);
      _mm512_storeu_si512(out + x, v);
      before = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), v);
    }
  }
  else
  {
    __m512i before = _mm512_set1_epi64(static_cast<long long>(left));
    for (std::int64_t x = 0; x < TableColumns; x += 8)
    {
      __m512i v = _mm512_loadu_si512(sums + x);
      v = _mm512_add_epi64(v, _mm512_alignr_epi64(v, none, 7));
      v = _mm512_add_epi64(v, _mm512_alignr_epi64(v, none, 6));
      v = _mm512_add_epi64(v, _mm512_alignr_epi64(v, none, 4));
      v = _mm512_add_epi64(v, before);
      _mm512_storeu_si512(out + x, v);
      before = _mm512_permutexvar_epi64(_mm512_set1_epi64(7), v);
    }
  }
  return out[TableColumns - 1];
#else
  for (std::int64_t x = 0; x < TableColumns; ++x)
  {
    left += sums[x];
    out[x] = left;
  }
  return left;
#endif
}

template <typename TIn, typename TOut, bool VSquares>
void
IntegerRow(const TableRow & row)
{
  using Sum = typename Choice<!IsReal<TOut> && sizeof(TOut) == 4, std::uint32_t, std::uint64_t>::Type;
  auto * const plane = static_cast<Sum *>(row.plane);
  auto * const local = static_cast<Sum *>(row.local);
  Sum          left = row.out ? *static_cast<Sum *>(row.left) : 0;
  for (std::int64_t x = 0; x < row.columns; x += TableColumns)
  {
    FetchAhead<TIn>(row.in, x);
    if (row.out && !row.isStaged)
    {
      FetchAhead<TOut>(row.out, x);
    }
    TIn               padded[TableColumns];
    const TIn * const in = WholeBlock(static_cast<const TIn *>(row.in) + x, row.columns - x, padded);
    Sum               terms[TableColumns];
    for (std::int64_t i = 0; i < TableColumns; ++i)
    {
      const auto wide = static_cast<Sum>(in[i]);
      terms[i] = VSquares ? wide * wide : wide;
    }
    if (plane)
    {
      for (std::int64_t i = 0; i < TableColumns; ++i)
      {
        terms[i] += plane[x + i];
        plane[x + i] = terms[i];
      }
    }
    if (!local)
    {
      continue;
    }
    for (std::int64_t i = 0; i < TableColumns; ++i)
    {
      local[x + i] += terms[i];
    }
    if (!row.out)
    {
      continue;
    }
    StoreBlock(static_cast<TOut *>(row.out) + x, row.first - x, row.last - x, [&](TOut * out) {
      if constexpr (sizeof(TOut) == sizeof(Sum) && !IsReal<TOut>)
      {
        left = Prefix(out, local + x, left);
      }
      else
      {
        left = Prefix(terms, local + x, left);
        for (std::int64_t i = 0; i < TableColumns; ++i)
        {
          if constexpr (IsNegative<TIn>)
          {
            out[i] = static_cast<TOut>(static_cast<std::int64_t>(terms[i]));
          }
          else
          {
            out[i] = static_cast<TOut>(terms[i]);
          }
        }
      }
    });
  }
  if (row.out)
  {
    *static_cast<Sum *>(row.left) = left;
  }
}

/** One line of the caches; `to` is its begin. */
CHUNKWISE_ALWAYS_INLINE void
StreamLine(unsigned char * to, const unsigned char * from)
{
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i *>(to), _mm512_loadu_si512(from));
#elif defined(__AVX2__)
#  pragma GCC unroll 2
  for (std::int64_t i = 0; i < Line; i += 32)
  {
    _mm256_stream_si256(reinterpret_cast<__m256i *>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from + i)));
  }
#elif defined(__SSE2__)
#  pragma GCC unroll 4
  for (std::int64_t i = 0; i < Line; i += 16)
  {
    _mm_stream_si128(reinterpret_cast<__m128i *>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i)));
  }
#else
  __builtin_memcpy(to, from, Line);
#endif
}

inline void
Stream(void * out, const void * in, std::int64_t bytes)
{
  auto *             to = static_cast<unsigned char *>(out);
  const auto *       from = static_cast<const unsigned char *>(in);
  const std::int64_t beyond = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % Line);
  std::int64_t       i = beyond == 0 ? 0 : Line - beyond < bytes ? Line - beyond : bytes;
  __builtin_memcpy(to, from, static_cast<std::size_t>(i));
  for (; i + Line <= bytes; i += Line)
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

/** In the order of PixelKind. */
template <typename TIn, bool VSquares>
void
SetIntegers(void (*(&rows)[10])(const TableRow &))
{
  rows[4] = rows[5] = IntegerRow<TIn, std::uint32_t, VSquares>;
  rows[6] = rows[7] = IntegerRow<TIn, std::uint64_t, VSquares>;
  rows[8] = IntegerRow<TIn, float, VSquares>;
  rows[9] = IntegerRow<TIn, double, VSquares>;
}

template <bool VSquares>
void
SetRows(void (*(&rows)[10][10])(const TableRow &))
{
  SetIntegers<std::uint8_t, VSquares>(rows[0]);
  SetIntegers<std::int8_t, VSquares>(rows[1]);
  SetIntegers<std::uint16_t, VSquares>(rows[2]);
  SetIntegers<std::int16_t, VSquares>(rows[3]);
  SetIntegers<std::uint32_t, VSquares>(rows[4]);
  SetIntegers<std::int32_t, VSquares>(rows[5]);
  SetIntegers<std::uint64_t, VSquares>(rows[6]);
  SetIntegers<std::int64_t, VSquares>(rows[7]);
  rows[8][8] = RealRow<float, float, VSquares>;
  rows[8][9] = RealRow<float, double, VSquares>;
  rows[9][8] = RealRow<double, float, VSquares>;
  rows[9][9] = RealRow<double, double, VSquares>;
}

inline TableLevel
MakeTableLevel()
{
  TableLevel level{};
  SetRows<false>(level.row[0]);
  SetRows<true>(level.row[1]);
  level.before = Before;
  level.stream = Stream;
  level.endStream = EndStream;
  return level;
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
