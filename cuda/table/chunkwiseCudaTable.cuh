/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaTable_cuh
#define chunkwiseCudaTable_cuh

#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseSummedAreaTableOperation.h"

#include <type_traits>

namespace chunkwise
{
namespace sat
{

constexpr int SectionRows = SummedAreaTableOperation::SectionRows;
constexpr int BlockRows = SummedAreaTableOperation::BlockRows;
constexpr int Columns = SummedAreaTableOperation::BlockColumns;
constexpr int Group = SummedAreaTableOperation::GroupColumns;
constexpr int QuarterGroups = SummedAreaTableOperation::QuarterGroups;
constexpr int Groups = Columns / Group;
constexpr int Quarters = Groups / QuarterGroups;
constexpr int Warps = 8;
constexpr int Threads = Warps * 32;
static_assert(Group * 32 == Columns && SectionRows * Warps == BlockRows, "a warp has a section of a tile");

template <typename T>
constexpr bool IsReal = std::is_floating_point<T>::value;

/** Voxels of an integer type that is known at run time. Tables of types that are not worth separate kernels have them,
 * and sums of 64 bits. */
struct AnyInteger
{};

/** Entries of a type that is known at run time: 32- or 64-bit integers or, rounded once, float or double. */
struct AnyNumber
{};

template <typename TIn>
constexpr std::size_t LargestBytesOf = std::is_same<TIn, AnyInteger>::value ? 8 : sizeof(TIn);

/** Sums of integers wrap around, so all are unsigned here. In memory that others see they have 64 bits. */
template <typename TIn>
using AccumulatorOf = std::conditional_t<IsReal<TIn>, double, std::uint64_t>;

template <typename TSum, typename TIn>
__device__ __forceinline__ TSum
Term(TIn value, bool squares)
{
  const auto wide = static_cast<TSum>(value);
  return squares ? wide * wide : wide;
}

/** A sum of voxels of type TIn in a wider type. */
template <typename TIn, typename TWide, typename TSum>
__device__ __forceinline__ TWide
Widen(TSum sum)
{
  if constexpr (std::is_signed<TIn>::value && !IsReal<TIn>)
  {
    return static_cast<TWide>(static_cast<std::make_signed_t<TSum>>(sum));
  }
  else
  {
    return static_cast<TWide>(sum);
  }
}

/** A sum that a tile hands to the next one of its row or column. All bits of a word are 1 until it is there. */
template <typename T>
struct Handed
{
  using Tag = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  T   sum;
  Tag tag; ///< 0 with a sum

  static __device__ Handed
  Of(T sum)
  {
    return { sum, 0 };
  }
  __device__ bool
  IsThere() const
  {
    return tag == 0;
  }
};

/** A number needs no tag: all bits 1 are one of many NaN, for which another one stands in. */
template <>
struct Handed<double>
{
  double sum;

  static __device__ Handed
  Of(double sum)
  {
    return { __double_as_longlong(sum) == -1 ? __longlong_as_double(0x7FF8000000000000) : sum };
  }
  __device__ bool
  IsThere() const
  {
    return __double_as_longlong(sum) != -1;
  }
};

/** How tiles come by what is above them and to their left: they hand it on to each other (Single), or a first pass
 * gives each tile's sums, which are then scanned (chunkwiseCudaTableBlocks.cuh), and a last one the results. */
enum class TablePass
{
  Single,
  Sums,
  Results
};

/** One kernel call on slices that are independent of each other or, `deep`, sums of all slices before. */
template <typename TIn, typename TCarry>
struct Table
{
  const void *       in; ///< rows [firstRow, lastRow) of all columns
  void *             out;
  PixelType          inKind;
  PixelType          outKind;
  Box                store; ///< of the output: columns and rows; x and y alone count
  std::int64_t       columns;
  std::int64_t       firstRow;
  std::int64_t       lastRow;
  int                slices;
  int                skipped; ///< slices before those of the output
  int                depth;   ///< slices of a stack, which a block goes through with one place of a tile
  int                tileColumns;
  int                tileRows; ///< the rows that [firstRow, lastRow) touches
  unsigned long long tickets;
  bool               inUnits;   ///< rows of the input may be copied in units of 16 bytes
  bool               outGroups; ///< rows of the output are whole, and groups of them begin at multiples of 16 bytes
  bool               outPairs;  ///< so do pairs of groups
  bool               squares;
  const AccumulatorOf<TIn> * carry;  ///< C, S and l before the first row; nullptr: 0
  const AccumulatorOf<TIn> * before; ///< of each stack, the sum of the slices before; nullptr: 0
  uint4 *                    planes; ///< room for P of the tiles that are worked on; nullptr: in shared memory
  Handed<TCarry> *           above;  ///< of each slice and row of tiles, one for each column
  Handed<TCarry> *           left;   ///< of each slice, row and column of tiles, one for each row
  unsigned long long *       ticket; ///< the last one taken, at first -1; nullptr: tiles are dealt out in turn
  /** For all passes but Single, and each slice: sums of columns and rows of tiles, those of each tile one after the
   * other. At first a tile's own sums, then the sums of those before. */
  TCarry * columnSums;
  TCarry * rowSums;
};

/** C of a column before the call's first row. Sums of integers have no order: with them it is all rows before. */
template <typename TIn, typename TCarry>
__device__ TCarry
FirstOf(const Table<TIn, TCarry> & table, std::int64_t x)
{
  const auto * const carry = table.carry + x;
  return static_cast<TCarry>(IsReal<TIn> ? *carry : *carry + carry[table.columns] + carry[2 * table.columns]);
}

/** Tiles hand sums on through words that say themselves whether they are there, each written and read as a whole, so
 * that no fence orders a flag after a sum and one trip to the second-level cache is enough.
 *
 * A word is written once in a call. Were it used again further along the line, nothing but a chain of sums through
 * other blocks would order the two writes, which relaxed accesses do not make an order of: now and then the earlier one
 * came last, and the line stood still. */
template <typename T>
__device__ __forceinline__ Handed<T>
                           LoadHanded(const Handed<T> * word)
{
  Handed<T> handed;
  if constexpr (sizeof(Handed<T>) == 8)
  {
    unsigned long long bits;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(bits) : "l"(word));
    __builtin_memcpy(&handed, &bits, sizeof(handed));
  }
  else
  {
    unsigned long long bits[2];
    asm volatile("{\n\t.reg .b128 both;\n\t"
                 "ld.relaxed.gpu.global.b128 both, [%2];\n\t"
                 "mov.b128 {%0, %1}, both;\n\t}"
                 : "=l"(bits[0]), "=l"(bits[1])
                 : "l"(word));
    __builtin_memcpy(&handed, bits, sizeof(handed));
  }
  return handed;
}

template <typename T>
__device__ __forceinline__ void
StoreHanded(Handed<T> * word, const Handed<T> & handed)
{
  if constexpr (sizeof(Handed<T>) == 8)
  {
    unsigned long long bits;
    __builtin_memcpy(&bits, &handed, sizeof(handed));
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(word), "l"(bits) : "memory");
  }
  else
  {
    unsigned long long bits[2];
    __builtin_memcpy(bits, &handed, sizeof(handed));
    asm volatile("{\n\t.reg .b128 both;\n\t"
                 "mov.b128 both, {%1, %2};\n\t"
                 "st.relaxed.gpu.global.b128 [%0], both;\n\t}" ::"l"(word),
                 "l"(bits[0]),
                 "l"(bits[1])
                 : "memory");
  }
}

/** The data that a tile needs of those before it in a line: words from its neighbor's to the nearest of a whole sum. */
template <typename T, int VPeriod>
struct Before
{
  Handed<T> words[VPeriod];

  __device__ bool
  IsThere() const
  {
    bool all = true;
#pragma unroll
    for (int k = 0; k < VPeriod; ++k)
    {
      all = all && words[k].IsThere();
    }
    return all;
  }
};

/** The word of a row or column that goes through a line of tiles. Every VPeriod-th tile, the first one among them,
 * hands on the sum of all tiles up to it, the others their own: these are there without waiting, so that a sum crosses
 * as many tiles in the time of one. */
template <typename T, int VPeriod>
struct Line
{
  Handed<T> *  word; ///< the tile's
  std::int64_t stride;
  int          at; ///< the tile's number

  __device__ int
  Count() const
  {
    return at > 0 ? (at - 1) % VPeriod + 1 : 0;
  }
  /** Asks for what is before this tile. */
  __device__ Before<T, VPeriod>
             Ask() const
  {
    Before<T, VPeriod> before{};
    const int          count = Count();
#pragma unroll
    for (int k = 0; k < VPeriod; ++k)
    {
      if (k < count)
      {
        before.words[k] = LoadHanded(word - (k + 1) * stride);
      }
    }
    return before;
  }
  /** The sum before this tile, `first` if it is the first one; hands on `own`, or that with it. */
  __device__ T
  Pass(Before<T, VPeriod> before, T first, T own) const
  {
    const bool isWhole = at % VPeriod == 0;
    if (!isWhole)
    {
      StoreHanded(word, Handed<T>::Of(own));
    }
    while (!before.IsThere())
    {
#pragma unroll
      for (int k = 0; k < VPeriod; ++k)
      {
        if (!before.words[k].IsThere())
        {
          before.words[k] = LoadHanded(word - (k + 1) * stride);
        }
      }
    }
    const int count = Count();
#pragma unroll
    for (int k = VPeriod - 1; k >= 0; --k)
    {
      if (k < count)
      {
        const T sum = before.words[k].sum;
        first = k == count - 1 ? sum : static_cast<T>(first + sum);
      }
    }
    if (isWhole)
    {
      StoreHanded(word, Handed<T>::Of(static_cast<T>(first + own)));
    }
    return first;
  }
};

/** A place of a tile and a slice; `first`: of its stack. */
struct alignas(16) Step
{
  int                row; ///< of tiles; -1: no work is left
  int                column;
  int                slice;
  int                first;
  unsigned long long ticket;
  unsigned long long begin; ///< the ticket that the tile's diagonal begins with
  std::int64_t       in;    ///< the tile's first voxel, which may be before the input's
  std::int64_t       out;
  bool               whole; ///< all of the tile is read and stored, by units of 16 bytes
};

/** As many as a block knows of. */
constexpr int Steps = 3;

/** Before the first ticket. */
__device__ inline Step
NoStep()
{
  Step step{};
  step.row = -1;
  return step;
}

/** Finds the place of a step's tile in memory. */
template <typename TTable>
__device__ void
Locate(const TTable & table, int rowsOfTile, Step & step)
{
  const Box &        store = table.store;
  const std::int64_t x = std::int64_t{ step.column } * Columns;
  const std::int64_t y = (table.firstRow / rowsOfTile + step.row) * rowsOfTile;
  step.in = (step.slice * (table.lastRow - table.firstRow) + y - table.firstRow) * table.columns + x;
  step.out = ((step.slice - table.skipped) * store.Extent(1) + y - store.lower.axis[1]) * store.Extent(0) + x -
             store.lower.axis[0];
  step.whole = table.inUnits && table.outGroups && table.outPairs && x + Columns <= table.columns &&
               y >= table.firstRow && y + rowsOfTile <= table.lastRow && y >= store.lower.axis[1] &&
               y + rowsOfTile <= store.upper.axis[1];
}

/** Whether a step's stack has a slice so many further down. */
template <typename TTable>
__device__ bool
HasSlice(const TTable & table, const Step & step, int further)
{
  return step.row >= 0 && step.slice + further < table.slices && step.slice + further < step.first + table.depth;
}

/** The step after `step` in a block's work: a slice further down its stack or, for a new ticket, a tile in the order of
 * antidiagonals, in which those to the left and above come before. A team that is one of several has but one place,
 * whose slices they take in turn. */
template <bool VDeep, int VTeams, typename TTable>
__device__ Step
NextStep(const TTable & table, const Step & step, int rowsOfTile)
{
  Step next = step;
  if (VDeep && HasSlice(table, step, VTeams))
  {
    next.slice += VTeams;
  }
  else if (VTeams > 1 && step.row >= 0)
  {
    next.row = -1;
  }
  else
  {
    next.ticket =
      table.ticket ? atomicAdd(table.ticket, 1ull) + 1 : (step.row >= 0 ? step.ticket + gridDim.x : blockIdx.x);
    const unsigned long long ticket = next.ticket;
    const bool               isThere = ticket < table.tickets;
    const int                last = table.tileRows + table.tileColumns - 2;
    int                      diagonal = step.row >= 0 ? step.row + step.column : 0;
    // Tickets of a block grow, so that the diagonal is found from the last one.
    for (;;)
    {
      const int sides = min(table.tileRows, table.tileColumns);
      const int length = min(sides, min(diagonal, last - diagonal) + 1);
      const int above = max(0, diagonal - (table.tileColumns - 1));
      if (!isThere || ticket < next.begin + static_cast<unsigned int>(length))
      {
        next.row = isThere ? above + static_cast<int>(ticket - next.begin) : -1;
        break;
      }
      next.begin += static_cast<unsigned int>(length);
      next.first += diagonal == last ? table.depth : 0;
      diagonal = diagonal == last ? 0 : diagonal + 1;
    }
    next.column = diagonal - next.row;
    next.slice = next.first;
  }
  Locate(table, rowsOfTile, next);
  return next;
}

template <typename T>
struct alignas(sizeof(T) * Group > 16 ? 16 : sizeof(T) * Group) FourOf
{
  T value[Group];
};

/** Stores a lane's group. Groups of 32 bytes are exchanged within pairs of lanes first, so that each store of a warp
 * covers whole sectors; `paired` says that both lanes of a pair store. */
template <typename TOut>
__device__ __forceinline__ void
StoreGroup(TOut * out, const FourOf<TOut> & group, bool isStored, bool paired, int lane)
{
  if constexpr (sizeof(FourOf<TOut>) == 16)
  {
    if (isStored)
    {
      uint4 bits;
      __builtin_memcpy(&bits, &group, 16);
      __stcs(reinterpret_cast<uint4 *>(out), bits);
    }
  }
  else
  {
    static_assert(sizeof(FourOf<TOut>) == 32, "4 or 8 bytes a voxel");
    uint4 halves[2];
    __builtin_memcpy(halves, &group, 32);
    int second = 2;
    if (paired)
    {
      const bool  odd = lane % 2 != 0;
      const uint4 given = odd ? halves[0] : halves[1];
      uint4       taken;
      taken.x = __shfl_xor_sync(~0u, given.x, 1);
      taken.y = __shfl_xor_sync(~0u, given.y, 1);
      taken.z = __shfl_xor_sync(~0u, given.z, 1);
      taken.w = __shfl_xor_sync(~0u, given.w, 1);
      halves[0] = odd ? taken : halves[0];
      halves[1] = odd ? halves[1] : taken;
      out -= odd ? 2 : 0;
      second = 4;
    }
    if (isStored)
    {
      __stcs(reinterpret_cast<uint4 *>(out), halves[0]);
      __stcs(reinterpret_cast<uint4 *>(out + second), halves[1]);
    }
  }
}

/** t of X on one row: a lane has a group. */
template <typename T>
__device__ __forceinline__ T
ScanGroups(T total, int lane)
{
#pragma unroll
  for (int d = 1; d < QuarterGroups; d *= 2)
  {
    const T left = __shfl_up_sync(~0u, total, d, QuarterGroups);
    total = lane % QuarterGroups >= d ? left + total : total;
  }
  return total;
}

/** X on several rows: a lane has a group of each. For the totals of groups rows change places with lanes, through
 * `exchange`, so that a lane has a quarter of a row and scans it without asking others step by step. */
constexpr int ScannedRows = 8;
static_assert(ScannedRows * Columns / Group / QuarterGroups == 32, "a lane has a quarter of a row");

template <typename T>
struct alignas(16) Quarter
{
  T total[QuarterGroups];
};

/** A row of totals and what keeps rows out of each other's banks. */
template <typename T>
struct ExchangeRow
{
  Quarter<T> quarters[Columns / Group / QuarterGroups];
  uint4      apart;
};

template <typename T>
__device__ __forceinline__ void
ScanRows(T (&sums)[ScannedRows][Group], ExchangeRow<T> * exchange, int lane)
{
  T * const     own = exchange[0].quarters[0].total + lane;
  constexpr int Pitch = sizeof(ExchangeRow<T>) / sizeof(T);
#pragma unroll
  for (int r = 0; r < ScannedRows; ++r)
  {
#pragma unroll
    for (int i = 1; i < Group; ++i)
    {
      sums[r][i] = sums[r][i - 1] + sums[r][i];
    }
    own[r * Pitch] = sums[r][Group - 1];
  }
  __syncwarp();
  const int    row = lane % ScannedRows;
  Quarter<T> & place = exchange[row].quarters[lane / ScannedRows];
  Quarter<T>   quarter = place;
#pragma unroll
  for (int d = 1; d < QuarterGroups; d *= 2)
  {
#pragma unroll
    for (int g = QuarterGroups - 1; g >= d; --g)
    {
      quarter.total[g] = quarter.total[g - d] + quarter.total[g];
    }
  }
  T before = T(0);
#pragma unroll
  for (int q = 0; q < 32 / ScannedRows - 1; ++q)
  {
    const T total = __shfl_sync(~0u, quarter.total[QuarterGroups - 1], q * ScannedRows + row);
    before = lane / ScannedRows > q ? before + total : before;
  }
#pragma unroll
  for (int g = QuarterGroups - 1; g > 0; --g)
  {
    quarter.total[g] = before + quarter.total[g - 1];
  }
  quarter.total[0] = before;
  place = quarter;
  __syncwarp();
#pragma unroll
  for (int r = 0; r < ScannedRows; ++r)
  {
    const T left = own[r * Pitch];
#pragma unroll
    for (int i = 0; i < Group; ++i)
    {
      sums[r][i] = left + sums[r][i];
    }
  }
}

} // namespace sat
} // namespace chunkwise

#endif
