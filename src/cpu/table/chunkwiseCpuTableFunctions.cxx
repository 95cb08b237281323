/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set. As in chunkwiseCpuLevelFunctions.cxx everything is in its namespace, and only
// headers without inline functions are included.
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuTable.h"
#include "chunkwiseOrderedKey.h"

#include <cstring>

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

#include "chunkwiseCpuTableGroups.h"

/** Columns of a step. */
constexpr std::int64_t StepColumns = StepGroups * TableGroup;
constexpr int          Steps = static_cast<int>(TableColumns / StepColumns);

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

CHUNKWISE_ALWAYS_INLINE void
Load(Groups<double> (&columns)[TableGroup], const float * in)
{
  Groups<float> narrow[TableGroup];
  Load(narrow, in);
#pragma GCC unroll 4
  for (int c = 0; c < TableGroup; ++c)
  {
    columns[c] = Widened(narrow[c]);
  }
}

/** Sums within groups, from the first column on. */
template <typename T>
CHUNKWISE_ALWAYS_INLINE void
ScanGroups(Groups<T> (&columns)[TableGroup])
{
#pragma GCC unroll 4
  for (int c = 1; c < TableGroup; ++c)
  {
    columns[c] = columns[c - 1] + columns[c];
  }
}

/** X. Adding +0 where nothing is to be added changes no bit: no sum here is -0, as all begin with +0. */
template <typename T>
CHUNKWISE_ALWAYS_INLINE void
Scan(Groups<T> (&columns)[TableGroup], typename Groups<T>::Quarters & quarters)
{
  ScanGroups(columns);
  const Groups<T> before = columns[TableGroup - 1].Before(quarters);
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
    Groups<double>::Quarters quarters{};
    for (std::int64_t at = x; at < x + TableGroups; at += StepGroups)
    {
      Groups<double> sums[TableGroup];
#pragma GCC unroll 4
      for (int c = 0; c < TableGroup; ++c)
      {
        sums[c] = Groups<double>::Load(blocks + at + c * TableGroups);
      }
      Scan(sums, quarters);
#pragma GCC unroll 4
      for (int c = 0; c < TableGroup; ++c)
      {
        sums[c].Store(out + at + c * TableGroups);
      }
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

/** Those of a block's columns that lie in [first, last). */
template <typename TOut>
void
CopyPart(TOut * out, const TOut (&stored)[TableColumns], std::int64_t first, std::int64_t last)
{
  for (std::int64_t x = first > 0 ? first : 0; x < last && x < TableColumns; ++x)
  {
    out[x] = stored[x];
  }
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
  CopyPart(out, stored, first, last);
}

/** Asks for the memory that the block at x has in the row that is `next` bytes further, which a processor that is busy
 * with sums would ask for too late. Nothing is read or written, so that any address will do where there is no such row.
 */
template <typename T>
CHUNKWISE_ALWAYS_INLINE void
FetchNext(const void * row, std::int64_t next, std::int64_t x)
{
#if defined(__GNUC__)
  const auto begin = reinterpret_cast<std::uintptr_t>(row) +
                     static_cast<std::uintptr_t>(next + x * static_cast<std::int64_t>(sizeof(T)));
#  pragma GCC unroll 16
  for (std::int64_t i = 0; i < TableColumns * static_cast<std::int64_t>(sizeof(T)); i += LineBytes)
  {
    __builtin_prefetch(reinterpret_cast<const void *>(begin + static_cast<std::uintptr_t>(i)));
  }
#endif
}

/** The numbers that a row of reals is added to; `Local` has a single precision where the image and the table have. */
template <typename TIn, typename TOut>
struct RealSums
{
  using Local = typename Choice<sizeof(TIn) == 4 && sizeof(TOut) == 4, float, double>::Type;

  explicit RealSums(const TableRow & row)
    : planes(static_cast<double *>(row.plane))
    , locals(static_cast<Local *>(row.local))
    , sections(static_cast<const Local *>(row.sections))
    , before(static_cast<const double *>(row.before))
  {}

  double * const       planes;
  Local * const        locals;
  const Local * const  sections;
  const double * const before;
};

/** Adds the voxels of the block at x, and gives the sums within groups if they are stored. */
template <bool VSquares, bool VPlane, bool VStores, typename TIn, typename TSums>
CHUNKWISE_ALWAYS_INLINE void
AddRealBlock(const TSums & of, const TIn * in, std::int64_t x, Groups<typename TSums::Local> (&sums)[Steps][TableGroup])
{
  using Local = typename TSums::Local;
  // A stage at a time for all of the block, since each is a chain of operations that wait for each other.
#pragma GCC unroll 4
  for (int step = 0; step < Steps; ++step)
  {
    const std::int64_t at = x + step * StepGroups;
    if constexpr (VPlane)
    {
      Groups<double> terms[TableGroup];
      Load(terms, in + step * StepColumns);
#pragma GCC unroll 4
      for (int c = 0; c < TableGroup; ++c)
      {
        double * const plane = of.planes + at + c * TableGroups;
        terms[c] = Groups<double>::Load(plane) + (VSquares ? terms[c].Squared() : terms[c]);
        terms[c].Store(plane);
        Narrow(sums[step][c], terms[c]);
      }
    }
    else
    {
      Load(sums[step], in + step * StepColumns);
#pragma GCC unroll 4
      for (int c = 0; c < TableGroup; ++c)
      {
        sums[step][c] = VSquares ? sums[step][c].Squared() : sums[step][c];
      }
    }
    if (VPlane && !VStores && !of.locals)
    {
      continue;
    }
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      Local * const local = of.locals + at + c * TableGroups;
      sums[step][c] = Groups<Local>::Load(local) + sums[step][c];
      sums[step][c].Store(local);
      if (VStores)
      {
        sums[step][c] = Groups<Local>::Load(of.sections + at + c * TableGroups) + sums[step][c];
      }
    }
    if (VStores)
    {
      ScanGroups(sums[step]);
    }
  }
}

/** Stores the table of the block at x, from the sums within its groups and the sum to the left of it; gives the sum to
 * the left of the next block. */
template <typename TOut, typename TSums>
CHUNKWISE_ALWAYS_INLINE double
StoreRealBlock(const TSums & of, Groups<typename TSums::Local> (&sums)[Steps][TableGroup], std::int64_t x, double left,
               TOut * out)
{
  using Local = typename TSums::Local;
  Groups<Local>                    quartersAndGroups[Steps];
  typename Groups<Local>::Quarters quarters{};
#pragma GCC unroll 4
  for (int step = 0; step < Steps; ++step)
  {
    quartersAndGroups[step] = sums[step][TableGroup - 1].Before(quarters);
  }
  double next = left;
#pragma GCC unroll 4
  for (int step = 0; step < Steps; ++step)
  {
    const std::int64_t at = x + step * StepGroups;
    Groups<double>     results[TableGroup];
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      results[c] =
        Groups<double>::Load(of.before + at + c * TableGroups) + Widened(quartersAndGroups[step] + sums[step][c]);
    }
    next = left + results[TableGroup - 1].Last();
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      results[c] = results[c].After(left);
    }
    Store(out + step * StepColumns, results);
  }
  return next;
}

/** The blocks of a row; `row` is a copy, so that its pointers stay in registers. */
template <typename TIn, typename TOut, bool VSquares, bool VPlane, bool VStores>
void
RealBlocks(const TableRow row)
{
  const RealSums<TIn, TOut> of(row);
  double                    left = VStores ? *static_cast<double *>(row.left) : 0;
  for (std::int64_t x = 0; x < row.columns; x += TableColumns)
  {
    FetchNext<TIn>(row.in, row.nextIn, x);
    if (VStores && !row.isStaged)
    {
      FetchNext<TOut>(row.out, row.nextOut, x);
    }
    TIn               padded[TableColumns];
    const TIn * const in = WholeBlock(static_cast<const TIn *>(row.in) + x, row.columns - x, padded);
    TOut              stored[TableColumns];
    TOut * const      whole = VStores ? static_cast<TOut *>(row.out) + x : nullptr;
    const bool        isWhole = row.first <= x && x + TableColumns <= row.last;
    TOut * const      out = isWhole ? whole : stored;
    Groups<typename RealSums<TIn, TOut>::Local> sums[Steps][TableGroup];
    AddRealBlock<VSquares, VPlane, VStores>(of, in, x, sums);
    if constexpr (!VStores)
    {
      continue;
    }
    left = StoreRealBlock(of, sums, x, left, out);
    if (!isWhole)
    {
      CopyPart(whole, stored, row.first - x, row.last - x);
    }
  }
  if (VStores)
  {
    *static_cast<double *>(row.left) = left;
  }
}

template <typename TIn, typename TOut, bool VSquares>
void
RealRow(const TableRow & row)
{
  const bool stores = row.local && row.out;
  if (row.plane)
  {
    stores ? RealBlocks<TIn, TOut, VSquares, true, true>(row) : RealBlocks<TIn, TOut, VSquares, true, false>(row);
  }
  else
  {
    stores ? RealBlocks<TIn, TOut, VSquares, false, true>(row) : RealBlocks<TIn, TOut, VSquares, false, false>(row);
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
      _mm512_storeu_si512(out + x, _mm512_add_epi32(v, before));
      before = _mm512_add_epi32(before, _mm512_permutexvar_epi32(_mm512_set1_epi32(15), v));
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
      _mm512_storeu_si512(out + x, _mm512_add_epi64(v, before));
      before = _mm512_add_epi64(before, _mm512_permutexvar_epi64(_mm512_set1_epi64(7), v));
    }
  }
  return out[TableColumns - 1];
#elif defined(__AVX2__)
  // Sums within halves, then of the first half in the second; `before` waits for one addition alone.
  const auto load = [&](std::int64_t x) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(sums + x)); };
  const auto store = [&](std::int64_t x, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + x), v); };
  if constexpr (sizeof(TSum) == 4)
  {
    __m256i before = _mm256_set1_epi32(static_cast<int>(left));
    for (std::int64_t x = 0; x < TableColumns; x += 8)
    {
      __m256i v = load(x);
      v = _mm256_add_epi32(v, _mm256_slli_si256(v, 4));
      v = _mm256_add_epi32(v, _mm256_slli_si256(v, 8));
      v = _mm256_add_epi32(v, _mm256_shuffle_epi32(_mm256_permute2x128_si256(v, v, 0x08), 0xff));
      store(x, _mm256_add_epi32(v, before));
      before = _mm256_add_epi32(before, _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(7)));
    }
  }
  else
  {
    __m256i before = _mm256_set1_epi64x(static_cast<long long>(left));
    for (std::int64_t x = 0; x < TableColumns; x += 4)
    {
      __m256i v = load(x);
      v = _mm256_add_epi64(v, _mm256_slli_si256(v, 8));
      v = _mm256_add_epi64(v, _mm256_shuffle_epi32(_mm256_permute2x128_si256(v, v, 0x08), 0xee));
      store(x, _mm256_add_epi64(v, before));
      before = _mm256_add_epi64(before, _mm256_permute4x64_epi64(v, 0xff));
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
    FetchNext<TIn>(row.in, row.nextIn, x);
    if (row.out && !row.isStaged)
    {
      FetchNext<TOut>(row.out, row.nextOut, x);
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

/** In the order of PixelType. */
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

TableLevel
MakeTableLevel()
{
  TableLevel level{};
  SetRows<false>(level.row[0]);
  SetRows<true>(level.row[1]);
  level.before = Before;
  return level;
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
