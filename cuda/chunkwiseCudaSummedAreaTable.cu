/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseSummedAreaTableOperation.h"

#include <cmath>
#include <cuda_pipeline.h>

namespace chunkwise
{

namespace
{

constexpr int SectionRows = SummedAreaTableOperation::SectionRows;
constexpr int BlockRows = SummedAreaTableOperation::BlockRows;
constexpr int Columns = SummedAreaTableOperation::BlockColumns;
constexpr int Group = SummedAreaTableOperation::GroupColumns;
constexpr int QuarterGroups = SummedAreaTableOperation::QuarterGroups;
constexpr int Warps = 8;
static_assert(Group * 32 == Columns && SectionRows * Warps == BlockRows, "a warp has a section of a tile");

template <typename T>
constexpr bool IsReal = std::is_floating_point<T>::value;

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

/** A sum that a tile hands to the next one of its row or column, and which tile did. */
template <typename T>
struct Handed
{
  using Tag = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  T   sum;
  Tag tag;
};

/** One kernel call on slices that are independent of each other or, `deep`, sums of all slices before. */
template <typename TIn, typename TOut, typename TCarry>
struct Table
{
  const TIn *        in; ///< rows [firstRow, lastRow) of all columns
  TOut *             out;
  Box                store; ///< of the output: columns and rows; x and y alone count
  std::int64_t       columns;
  std::int64_t       firstRow;
  std::int64_t       lastRow;
  int                slices;
  int                skipped; ///< slices before those of the output
  int                depth;   ///< slices of a stack, which a block goes through with one place of a tile
  int                tileColumns;
  int                tileRows; ///< those that [firstRow, lastRow) touches
  unsigned long long tickets;
  bool               inUnits;   ///< rows of the input may be copied in units of 16 bytes
  bool               outGroups; ///< rows of the output are whole, and groups of them begin at multiples of 16 bytes
  bool               outPairs;  ///< so do pairs of groups
  bool               squares;
  const AccumulatorOf<TIn> * carry;  ///< C, S and l before the first row; nullptr: 0
  const AccumulatorOf<TIn> * before; ///< of each stack, the sum of the slices before; nullptr: 0
  uint4 *                    planes; ///< room for P of the tiles that are worked on; nullptr: in shared memory
  Handed<TCarry> *           above;  ///< of each slice and parity, one for each column
  Handed<TCarry> *           left;   ///< of each slice and row of tiles, one for each parity and row
  unsigned long long *       ticket;
};

/** Tiles hand sums on through words of a sum and a tag, each written and read as a whole, so that no fence orders one
 * after the other and one trip to the second-level cache is enough.
 *
 * Two words alternate along a row or column of tiles: tile i writes where tile i - 2 wrote. Only tile i - 1 read that,
 * and the sum that it wrote then, which tile i has read, depends on it; so does what tile i writes. A read that saw the
 * later write would be a value out of thin air, which the memory model excludes. */
__device__ __forceinline__ Handed<std::uint32_t>
                           LoadHanded(const Handed<std::uint32_t> * word)
{
  unsigned long long bits;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(bits) : "l"(word));
  return { static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32) };
}

__device__ __forceinline__ void
StoreHanded(Handed<std::uint32_t> * word, std::uint32_t sum, std::uint32_t tag)
{
  const unsigned long long bits = sum | static_cast<unsigned long long>(tag) << 32;
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(word), "l"(bits) : "memory");
}

template <typename T>
__device__ __forceinline__ Handed<T>
                           LoadHanded(const Handed<T> * word)
{
  static_assert(sizeof(T) == 8, "two words of 64 bits");
  unsigned long long sum;
  unsigned long long tag;
  asm volatile("{\n\t.reg .b128 both;\n\t"
               "ld.relaxed.gpu.global.b128 both, [%2];\n\t"
               "mov.b128 {%0, %1}, both;\n\t}"
               : "=l"(sum), "=l"(tag)
               : "l"(word));
  Handed<T> handed;
  __builtin_memcpy(&handed.sum, &sum, sizeof(sum));
  handed.tag = tag;
  return handed;
}

template <typename T>
__device__ __forceinline__ void
StoreHanded(Handed<T> * word, T sum, std::uint64_t tag)
{
  unsigned long long bits[2]{ 0, tag };
  __builtin_memcpy(bits, &sum, sizeof(sum));
  asm volatile("{\n\t.reg .b128 both;\n\t"
               "mov.b128 both, {%1, %2};\n\t"
               "st.relaxed.gpu.global.b128 [%0], both;\n\t}" ::"l"(word),
               "l"(bits[0]),
               "l"(bits[1])
               : "memory");
}

/** One thread's sum of a row or column, at tile number `at` of it. */
template <typename T>
class Chain
{
public:
  /** Asks for what the tile before hands on. `words`: of the line of tiles, `stride` apart; nullptr: not this thread.
   */
  __device__
  Chain(Handed<T> * words, std::int64_t stride, int at)
    : m_Words(words)
    , m_Stride(stride)
    , m_At(at)
  {
    if (m_Words && m_At > 0)
    {
      m_Before = LoadHanded(From());
    }
  }

  /** The sum before this tile, `first` if it is the first one; hands on that with `own`. */
  __device__ T
  Pass(T first, T own)
  {
    if (!m_Words)
    {
      return first;
    }
    if (m_At > 0)
    {
      while (m_Before.tag != static_cast<typename Handed<T>::Tag>(m_At))
      {
        m_Before = LoadHanded(From());
      }
      first = m_Before.sum;
    }
    StoreHanded(
      m_Words + m_At % 2 * m_Stride, static_cast<T>(first + own), static_cast<typename Handed<T>::Tag>(m_At + 1));
    return first;
  }

private:
  __device__ const Handed<T> *
                   From() const
  {
    return m_Words + (m_At - 1) % 2 * m_Stride;
  }

  Handed<T> * const  m_Words;
  const std::int64_t m_Stride;
  const int          m_At;
  Handed<T>          m_Before;
};

/** Tile number `ticket` in the order of antidiagonals: those to the left and above come before. */
__device__ void
TileOf(unsigned int ticket, unsigned int rows, unsigned int columns, int & row, int & column)
{
  const unsigned int       shorter = rows < columns ? rows : columns;
  const unsigned int       longer = rows < columns ? columns : rows;
  const unsigned long long triangle = static_cast<unsigned long long>(shorter) * (shorter - 1) / 2;
  const unsigned long long middle = static_cast<unsigned long long>(shorter) * (longer - shorter + 1);
  const auto               diagonalOf = [](unsigned long long n) {
    auto d = static_cast<unsigned long long>((sqrt(8.0 * static_cast<double>(n) + 1.0) - 1.0) / 2.0);
    while (d * (d + 1) / 2 > n)
    {
      --d;
    }
    while ((d + 1) * (d + 2) / 2 <= n)
    {
      ++d;
    }
    return static_cast<unsigned int>(d);
  };
  unsigned int r;
  unsigned int d;
  if (ticket < triangle)
  {
    d = diagonalOf(ticket);
    r = ticket - d * (d + 1) / 2;
  }
  else if (ticket < triangle + middle)
  {
    const auto n = static_cast<unsigned int>(ticket - triangle);
    d = shorter - 1 + n / shorter;
    r = n % shorter + (rows <= columns ? 0 : d - (columns - 1));
  }
  else
  {
    const unsigned int fromEnd = rows * columns - 1 - ticket;
    const unsigned int e = diagonalOf(fromEnd);
    d = rows + columns - 2 - e;
    r = rows - 1 - (fromEnd - e * (e + 1) / 2);
  }
  row = static_cast<int>(r);
  column = static_cast<int>(d - r);
}

/** A place of a tile and a slice; `first`: of its stack. */
struct Step
{
  int row; ///< of tiles; -1: no work is left
  int column;
  int slice;
  int first;
};

/** As many as a block knows of. */
constexpr int Steps = 3;
static_assert(sizeof(Step) == sizeof(uint4), "what follows steps in memory is aligned");

template <typename TTable>
__device__ Step
NextStep(const TTable & table, const Step & step)
{
  Step next = step;
  if (step.row >= 0 && step.slice + 1 < table.slices && step.slice + 1 < step.first + table.depth)
  {
    ++next.slice;
    return next;
  }
  const unsigned long long ticket = atomicAdd(table.ticket, 1ull);
  next.row = -1;
  if (ticket < table.tickets)
  {
    const auto rows = static_cast<unsigned int>(table.tileRows);
    const auto columns = static_cast<unsigned int>(table.tileColumns);
    const auto ofSlice = static_cast<unsigned long long>(rows) * columns;
    next.slice = next.first = static_cast<int>(ticket / ofSlice) * table.depth;
    TileOf(static_cast<unsigned int>(ticket % ofSlice), rows, columns, next.row, next.column);
  }
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

/** X on one row: a lane has a group. */
template <typename T>
__device__ __forceinline__ void
ScanRow(T (&sums)[Group], int lane)
{
#pragma unroll
  for (int i = 1; i < Group; ++i)
  {
    sums[i] = sums[i - 1] + sums[i];
  }
  T         total = sums[Group - 1];
  const int place = lane % QuarterGroups;
#pragma unroll
  for (int d = 1; d < QuarterGroups; d *= 2)
  {
    const T left = __shfl_up_sync(~0u, total, d, QuarterGroups);
    total = place >= d ? left + total : total;
  }
  T before = T(0);
#pragma unroll
  for (int q = 0; q < Columns / Group / QuarterGroups - 1; ++q)
  {
    const T quarter = __shfl_sync(~0u, total, (q + 1) * QuarterGroups - 1);
    before = lane / QuarterGroups > q ? before + quarter : before;
  }
  const T left = __shfl_up_sync(~0u, total, 1, QuarterGroups);
  before = place > 0 ? before + left : before;
#pragma unroll
  for (int i = 0; i < Group; ++i)
  {
    sums[i] = before + sums[i];
  }
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

/** How large a tile is, by the types of voxels and of sums within a tile. */
template <typename TIn, typename TLocal, bool VDeep>
struct TileShape
{
  /** Whether the next tile is fetched while one is worked on: as long as shared memory of any device holds its rows. */
  static constexpr bool IsStaged = sizeof(TIn) <= 4;
  static constexpr int  WarpRows = sizeof(TLocal) == 4 && sizeof(TIn) <= 2 && !VDeep ? 2 * SectionRows : SectionRows;
  static constexpr int  Rows = WarpRows * Warps;
  /** Bytes of a warp's share: the rows of the tile that comes next. If deep, where P leaves little shared memory,
   * totals are exchanged in the same place before that. */
  static constexpr int RowBytes = IsStaged ? static_cast<int>(WarpRows * Columns * sizeof(TIn)) : 0;
  static constexpr int ExchangeBytes = static_cast<int>(ScannedRows * sizeof(ExchangeRow<TLocal>));
  static constexpr int WarpBytes = !VDeep                     ? RowBytes + ExchangeBytes
                                   : RowBytes > ExchangeBytes ? RowBytes
                                                              : ExchangeBytes;
  /** Units of P. */
  static constexpr int PlaneUnits = VDeep ? static_cast<int>(Rows * Columns * sizeof(TLocal) / sizeof(uint4)) : 0;
};

__device__ __forceinline__ int
Within(std::int64_t n, int most)
{
  return n <= 0 ? 0 : n < most ? static_cast<int>(n) : most;
}

/** One warp's share of a block's work on tiles. */
template <typename TIn, typename TOut, typename TLocal, typename TCarry, bool VDeep>
class TileWork
{
public:
  using Tile = TileShape<TIn, TLocal, VDeep>;
  static constexpr int WarpRows = Tile::WarpRows;
  static constexpr int PlaneUnits = static_cast<int>(sizeof(FourOf<TLocal>) / sizeof(uint4));

  __device__
  TileWork(const Table<TIn, TOut, TCarry> & table, uint4 * shared, TCarry * sections)
    : m_Table(table)
    , m_Lane(static_cast<int>(threadIdx.x) % 32)
    , m_Warp(static_cast<int>(threadIdx.x) / 32)
    , m_Section(sections + m_Warp * Columns + m_Lane * Group)
    , m_Planes((table.planes ? table.planes + blockIdx.x * std::int64_t{ Tile::PlaneUnits } : shared) +
               m_Warp * WarpRows * PlaneUnits * 32 + m_Lane)
    , m_Share(shared + (table.planes ? 0 : Tile::PlaneUnits) + m_Warp * (Tile::WarpBytes / sizeof(uint4)))
    , m_Stage(reinterpret_cast<TIn *>(m_Share))
    , m_Exchange(reinterpret_cast<ExchangeRow<TLocal> *>(m_Share + (VDeep ? 0 : Tile::RowBytes / sizeof(uint4))))
  {}

  /** Begins to copy a warp's rows of a tile to the stage. */
  __device__ void
  Fetch(const Step & step) const
  {
    if (!Tile::IsStaged || step.row < 0)
    {
      return;
    }
    // With whole units of 16 bytes; else voxel by voxel.
    constexpr int     Unit = Tile::IsStaged ? static_cast<int>(16 / sizeof(TIn)) : 1;
    constexpr int     RowUnits = Columns / Unit;
    const TIn * const from = Input(step);
    const int         first = Within(m_Table.firstRow - Row(step), WarpRows);
    const int         last = Within(m_Table.lastRow - Row(step), WarpRows);
    const int         columns = Within(m_Table.columns - std::int64_t{ step.column } * Columns, Columns);
    if (m_Table.inUnits)
    {
#pragma unroll
      for (int i = 0; i < WarpRows * RowUnits / 32; ++i)
      {
        const int  r = (i * 32 + m_Lane) / RowUnits;
        const int  c = (i * 32 + m_Lane) % RowUnits * Unit;
        const bool there = r >= first && r < last && c < columns;
        // Of what is not there nothing is read.
        __pipeline_memcpy_async(m_Stage + r * Columns + c, from + r * m_Table.columns + c, 16, there ? 0 : 16);
      }
    }
    else
    {
#pragma unroll 8
      for (int i = 0; i < WarpRows * Columns / 32; ++i)
      {
        const int   r = i * 32 / Columns;
        const int   c = i * 32 % Columns + m_Lane;
        const bool  there = r >= first && r < last && c < columns;
        const TIn * voxel = there ? from + r * m_Table.columns + c : m_Table.in;
        if constexpr (sizeof(TIn) == 4)
        {
          __pipeline_memcpy_async(m_Stage + r * Columns + c, voxel, 4, there ? 0 : 4);
        }
        else
        {
          m_Stage[r * Columns + c] = there ? *voxel : TIn{ 0 };
        }
      }
    }
    __pipeline_commit();
  }

  /** The sums of the section's rows up to each, and of all to the block's shared memory. */
  __device__ void
  SumColumns(const Step & step)
  {
    const std::int64_t y = Row(step);
    const std::int64_t x = Column(step);
    const int          columns = Within(m_Table.columns - x, Group);
    TLocal             local[Group];
#pragma unroll
    for (int i = 0; i < Group; ++i)
    {
      local[i] = TLocal(0);
      if constexpr (IsReal<TIn>)
      {
        // The rows of the section that are not in this call.
        if (IsFirst(step) && y < m_Table.firstRow && y + WarpRows > m_Table.firstRow && i < columns)
        {
          local[i] = m_Table.carry[2 * m_Table.columns + x + i];
        }
      }
    }
    const bool begins = VDeep && step.slice == step.first;
    const int  last = Within(m_Table.lastRow - y, WarpRows);
    if (Tile::IsStaged)
    {
      __pipeline_wait_prior(0);
      __syncwarp();
    }
#pragma unroll
    for (int r = 0; r < WarpRows; ++r)
    {
      FourOf<TIn> pixels;
      if constexpr (Tile::IsStaged)
      {
        pixels = *reinterpret_cast<const FourOf<TIn> *>(m_Stage + r * Columns + m_Lane * Group);
      }
      else
      {
        pixels = Load(step, r, columns);
      }
      FourOf<TLocal> terms;
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        terms.value[i] = static_cast<TLocal>(pixels.value[i]);
      }
      if (m_Table.squares)
      {
        // Not to be computed where it is not asked for.
        asm volatile("");
#pragma unroll
        for (int i = 0; i < Group; ++i)
        {
          terms.value[i] = terms.value[i] * terms.value[i];
        }
      }
      if constexpr (VDeep)
      {
        FourOf<TLocal> plane = begins ? PlaneBefore(step, r, r < last ? columns : 0) : LoadPlane(r);
#pragma unroll
        for (int i = 0; i < Group; ++i)
        {
          terms.value[i] = plane.value[i] + terms.value[i];
        }
        StorePlane(r, terms);
      }
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        local[i] = local[i] + terms.value[i];
        m_Sums[r][i] = local[i];
      }
    }
#pragma unroll
    for (int i = 0; i < Group; ++i)
    {
      m_Section[i] = Widen<TIn, TCarry>(local[i]);
    }
  }

  /** The x step on the sums within the section. */
  __device__ void
  ScanColumns()
  {
#pragma unroll
    for (int r = 0; r < WarpRows; r += ScannedRows)
    {
      ScanRows(reinterpret_cast<TLocal(&)[ScannedRows][Group]>(m_Sums[r]), m_Exchange, m_Lane);
    }
  }

  /** The sums of the rows to the left: lane r has row r. */
  __device__ Chain<TCarry>
             ChainOfRows(const Step & step) const
  {
    auto * const words =
      m_Table.left + (std::int64_t{ step.slice } * m_Table.tileRows + step.row) * 2 * Tile::Rows + m_Warp * WarpRows;
    return { m_Lane < WarpRows && step.slice >= m_Table.skipped ? words + m_Lane : nullptr, Tile::Rows, step.column };
  }

  /** With C + S of the section in the block's shared memory: the x step over blocks, and stores. */
  __device__ void
  Finish(const Step & step, Chain<TCarry> & rows) const
  {
    TCarry above[Group];
#pragma unroll
    for (int i = 0; i < Group; ++i)
    {
      above[i] = m_Section[i];
    }
    ScanRow(above, m_Lane);
    // Lane r has row r.
    TCarry total = TCarry(0);
#pragma unroll
    for (int r = 0; r < WarpRows; ++r)
    {
      const TCarry other = __shfl_sync(~0u, above[Group - 1] + Widen<TIn, TCarry>(m_Sums[r][Group - 1]), 31);
      total = m_Lane == r ? other : total;
    }
    const TCarry left = rows.Pass(TCarry(0), total);
    __syncwarp();

    const std::int64_t y = Row(step);
    const std::int64_t x = Column(step);
    const Box &        store = m_Table.store;
    const std::int64_t outColumns = store.Extent(0);
    TOut *             out = m_Table.out +
                 ((step.slice - m_Table.skipped) * store.Extent(1) + y - store.lower.axis[1]) * outColumns + x -
                 store.lower.axis[0];
    const int  firstRow = Within(store.lower.axis[1] - y, WarpRows);
    const int  lastRow = Within(store.upper.axis[1] - y, WarpRows);
    const int  first = Within(store.lower.axis[0] - x, Group);
    const int  last = Within(store.upper.axis[0] - x, Group);
    const auto resultsOf = [&](int r) {
      const TCarry leftOfRow = __shfl_sync(~0u, left, r);
      FourOf<TOut> results;
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        results.value[i] =
          Widen<TIn, TOut>(static_cast<TCarry>(leftOfRow + (above[i] + Widen<TIn, TCarry>(m_Sums[r][i]))));
      }
      return results;
    };
    if (m_Table.outGroups)
    {
#pragma unroll
      for (int r = 0; r < WarpRows; ++r, out += outColumns)
      {
        StoreGroup(out, resultsOf(r), r >= firstRow && r < lastRow && last > 0, m_Table.outPairs, m_Lane);
      }
      return;
    }
#pragma unroll
    for (int r = 0; r < WarpRows; ++r, out += outColumns)
    {
      const FourOf<TOut> results = resultsOf(r);
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        if (r >= firstRow && r < lastRow && i >= first && i < last)
        {
          out[i] = results.value[i];
        }
      }
    }
  }

  /** Whether there may be sums of rows before those of this call. */
  __device__ bool
  IsFirst(const Step & step) const
  {
    return !VDeep && step.row == 0 && m_Table.carry;
  }

private:
  __device__ std::int64_t
             Row(const Step & step) const
  {
    return (m_Table.firstRow / Tile::Rows + step.row) * Tile::Rows + m_Warp * WarpRows;
  }
  __device__ std::int64_t
             Column(const Step & step) const
  {
    return std::int64_t{ step.column } * Columns + m_Lane * Group;
  }
  /** The first voxel of the warp's rows. */
  __device__ const TIn *
  Input(const Step & step) const
  {
    return m_Table.in +
           (step.slice * (m_Table.lastRow - m_Table.firstRow) + Row(step) - m_Table.firstRow) * m_Table.columns +
           std::int64_t{ step.column } * Columns;
  }
  __device__ FourOf<TIn>
             Load(const Step & step, int r, int columns) const
  {
    const TIn * const  in = Input(step) + r * m_Table.columns + m_Lane * Group;
    const std::int64_t y = Row(step) + r;
    FourOf<TIn>        pixels{};
    if (y >= m_Table.firstRow && y < m_Table.lastRow)
    {
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        pixels.value[i] = i < columns ? in[i] : TIn{ 0 };
      }
    }
    return pixels;
  }
  __device__ FourOf<TLocal>
             PlaneBefore(const Step & step, int r, int columns) const
  {
    FourOf<TLocal> plane{};
    if (m_Table.before)
    {
      const auto * const before = m_Table.before +
                                  (step.slice / m_Table.depth * m_Table.lastRow + Row(step) + r) * m_Table.columns +
                                  Column(step);
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        plane.value[i] = i < columns ? static_cast<TLocal>(before[i]) : TLocal(0);
      }
    }
    return plane;
  }
  __device__ FourOf<TLocal>
             LoadPlane(int r) const
  {
    uint4 units[PlaneUnits];
#pragma unroll
    for (int u = 0; u < PlaneUnits; ++u)
    {
      units[u] = m_Planes[(r * PlaneUnits + u) * 32];
    }
    FourOf<TLocal> plane;
    __builtin_memcpy(&plane, units, sizeof(plane));
    return plane;
  }
  __device__ void
  StorePlane(int r, const FourOf<TLocal> & plane)
  {
    uint4 units[PlaneUnits];
    __builtin_memcpy(units, &plane, sizeof(plane));
#pragma unroll
    for (int u = 0; u < PlaneUnits; ++u)
    {
      m_Planes[(r * PlaneUnits + u) * 32] = units[u];
    }
  }

  const Table<TIn, TOut, TCarry> & m_Table;
  const int                        m_Lane;
  const int                        m_Warp;
  TCarry * const                   m_Section;
  /** P of the tile, if deep: a thread's units are apart, so that a warp reads whole lines. */
  uint4 * const               m_Planes;
  uint4 * const               m_Share;
  TIn * const                 m_Stage;
  ExchangeRow<TLocal> * const m_Exchange;
  TLocal                      m_Sums[WarpRows][Group];
};

/** Each voxel is read once and written once. A warp has a section of a tile's rows, a lane a group of its columns,
 * whose sums stay in registers while the tile looks back. The rows of the next tile are on their way at the same time:
 * a block takes tickets in advance, which does not let blocks wait for each other in a circle, as it works on its
 * tickets in order, and a tile waits for smaller tickets alone. */
template <typename TIn, typename TOut, typename TLocal, typename TCarry, bool VDeep>
__global__ void
__launch_bounds__(Warps * 32, 2) TableKernel(const __grid_constant__ Table<TIn, TOut, TCarry> table)
{
  extern __shared__ uint4 memory[];
  auto * const            sections = reinterpret_cast<TCarry(*)[Columns]>(memory);
  // This step and the next two: the last is found while a step is worked on, for its successor to fetch.
  auto * const                               steps = reinterpret_cast<Step *>(sections + Warps);
  TileWork<TIn, TOut, TLocal, TCarry, VDeep> work(table, reinterpret_cast<uint4 *>(steps + Steps), &sections[0][0]);
  const int                                  thread = static_cast<int>(threadIdx.x);
  if (thread == 0)
  {
    steps[0] = NextStep(table, Step{ -1, 0, 0, 0 });
  }
  __syncthreads();
  work.Fetch(steps[0]);
  if (thread == 0 && steps[0].row >= 0)
  {
    steps[1] = NextStep(table, steps[0]);
  }
  // All threads see the same steps: the votes tell the compiler so, which else looks after warps that fell apart.
  for (int now = 0; __any_sync(~0u, steps[now].row >= 0); now = now == Steps - 1 ? 0 : now + 1)
  {
    const Step    step = steps[now];
    const Step &  next = steps[now == Steps - 1 ? 0 : now + 1];
    const bool    isStored = !VDeep || __any_sync(~0u, step.slice >= table.skipped);
    const bool    hasColumn = isStored && thread < Columns;
    auto * const  words = table.above + (std::int64_t{ step.slice } * 2 * table.tileColumns + step.column) * Columns;
    Chain<TCarry> columns(hasColumn ? words + thread : nullptr, std::int64_t{ table.tileColumns } * Columns, step.row);
    work.SumColumns(step);
    __syncthreads();
    if (!VDeep)
    {
      work.Fetch(next);
    }
    Chain<TCarry> rows = work.ChainOfRows(step);
    if (hasColumn)
    {
      const std::int64_t column = std::int64_t{ step.column } * Columns + thread;
      TCarry             first = TCarry(0);
      TCarry             own = TCarry(0);
      if (work.IsFirst(step) && column < table.columns)
      {
        first = static_cast<TCarry>(table.carry[column]);
        own = static_cast<TCarry>(table.carry[table.columns + column]);
        if constexpr (!IsReal<TIn>)
        {
          own = own + static_cast<TCarry>(table.carry[2 * table.columns + column]);
        }
      }
#pragma unroll
      for (int s = 0; s < Warps; ++s)
      {
        const TCarry total = sections[s][thread];
        sections[s][thread] = own;
        own = own + total;
      }
      const TCarry above = columns.Pass(first, own);
#pragma unroll
      for (int s = 0; s < Warps; ++s)
      {
        sections[s][thread] = above + sections[s][thread];
      }
    }
    else if (thread == Warps * 32 - 1)
    {
      steps[now == 0 ? Steps - 1 : now - 1] = next.row >= 0 ? NextStep(table, next) : next;
    }
    __syncwarp();
    work.ScanColumns();
    if (VDeep)
    {
      __syncwarp();
      work.Fetch(next);
    }
    __syncthreads();
    if (isStored)
    {
      work.Finish(step, rows);
    }
  }
}

/** What comes before each stack of slices but the first: a thread goes along z. `starts` has a plane for each stack. */
template <typename TIn, typename TAcc>
__global__ void
StartsKernel(const TIn * __restrict__ in, std::int64_t plane, std::int64_t slices, std::int64_t depth,
             const TAcc * __restrict__ before, TAcc * __restrict__ starts, bool squares)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < plane; i += step)
  {
    TAcc sum = before ? before[i] : TAcc(0);
    for (std::int64_t z = 0; z < slices; z += depth)
    {
      starts[z / depth * plane + i] = sum;
      const std::int64_t end = z + depth < slices ? z + depth : z;
#pragma unroll 16
      for (std::int64_t k = z; k < end; ++k)
      {
        sum = sum + Term<TAcc>(in[k * plane + i], squares);
      }
    }
  }
}

/** The plane P behind a slab. */
template <typename TIn, typename TAcc>
__global__ void
AdvancePlaneKernel(const TIn * __restrict__ in, std::int64_t plane, std::int64_t      slices,
                   const TAcc * __restrict__ before, TAcc * __restrict__ behind, bool squares)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < plane; i += step)
  {
    TAcc sum = before[i];
#pragma unroll 8
    for (std::int64_t z = 0; z < slices; ++z)
    {
      sum = sum + Term<TAcc>(in[z * plane + i], squares);
    }
    behind[i] = sum;
  }
}

/** The rows C, S and l behind rows [first, last). */
template <typename TIn, typename TAcc>
__global__ void
AdvanceRowsKernel(const TIn * __restrict__ in, std::int64_t columns, std::int64_t first, std::int64_t last,
                  const TAcc * __restrict__ before, TAcc * __restrict__ behind, bool squares)
{
  const std::int64_t x = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (x >= columns)
  {
    return;
  }
  TAcc blocks = before[x];
  TAcc sections = before[columns + x];
  TAcc local = before[2 * columns + x];
  for (std::int64_t y = first; y < last;)
  {
    const std::int64_t end = (y / SectionRows + 1) * SectionRows;
    const std::int64_t stop = end < last ? end : last;
#pragma unroll 16
    for (; y < stop; ++y)
    {
      local = local + Term<TAcc>(in[(y - first) * columns + x], squares);
    }
    if (stop == end)
    {
      sections = sections + local;
      local = TAcc(0);
      if (end % BlockRows == 0)
      {
        blocks = blocks + sections;
        sections = TAcc(0);
      }
    }
  }
  behind[x] = blocks;
  behind[columns + x] = sections;
  behind[2 * columns + x] = local;
}

/** How much there is to do, and the scratch that it takes. */
struct Tiling
{
  std::int64_t columns;
  std::int64_t rows;
  std::int64_t slices;
  std::int64_t tileRows;

  template <typename TShape>
  static Tiling
  Make(TShape, std::int64_t columnCount, std::int64_t firstRow, std::int64_t lastRow, std::int64_t sliceCount)
  {
    return { (columnCount + Columns - 1) / Columns,
             (lastRow + TShape::Rows - 1) / TShape::Rows - firstRow / TShape::Rows,
             sliceCount,
             TShape::Rows };
  }
  std::int64_t
  OfSlice() const
  {
    return rows * columns;
  }
  /** Words for columns and rows. */
  std::int64_t
  Words() const
  {
    return slices * 2 * (columns * Columns + rows * tileRows);
  }
  std::size_t
  Bytes() const
  {
    return sizeof(std::uint64_t) * 2 * static_cast<std::size_t>(Words() + 1);
  }
};

/** A stack of fewer slices is not worth reading those before it once more. */
constexpr std::int64_t LeastDepth = 32;
/** More blocks than run at a time on any device. */
constexpr std::int64_t MostBlocks = 1024;

/** Scratch of a call whose slices are summed, beside the tiles'. What a chunk needs must not shrink when it grows, so
 * these bound from above what depends on the device. */
struct DeepScratch
{
  std::int64_t starts; ///< entries
  std::int64_t places; ///< of tiles whose P is not in shared memory

  DeepScratch(const Tiling & tiling, std::int64_t plane, std::int64_t slices)
  {
    const std::int64_t stacks = (slices + LeastDepth - 1) / LeastDepth;
    const std::int64_t tile = tiling.tileRows * Columns;
    starts = std::min(plane * stacks, std::max(plane, MostBlocks * tile));
    places = std::min(tiling.OfSlice() * stacks, MostBlocks);
  }
  std::size_t
  Bytes(std::int64_t tileRows) const
  {
    return static_cast<std::size_t>(starts + places * tileRows * Columns) * sizeof(std::uint64_t);
  }
};

/** Calls f with types that stand for the kernel: of a sum within a tile, of one between tiles. Where the output has 32
 * bits so may the sums, modulo 2^32; small integers do not fill 32 bits within a tile. */
template <typename TIn, typename TOut, bool VDeep, typename TFunctor>
void
DispatchSums(bool squares, TFunctor && f)
{
  if constexpr (IsReal<TIn>)
  {
    f(double{}, double{});
  }
  else if constexpr (!IsReal<TOut> && sizeof(TOut) == 4)
  {
    f(std::uint32_t{}, std::uint32_t{});
  }
  else if constexpr (!VDeep && sizeof(TIn) <= 2)
  {
    if (sizeof(TIn) == 1 || !squares)
    {
      return f(std::uint32_t{}, std::uint64_t{});
    }
    if constexpr (sizeof(TIn) == 2)
    {
      f(std::uint64_t{}, std::uint64_t{});
    }
  }
  else
  {
    f(std::uint64_t{}, std::uint64_t{});
  }
}

template <typename TIn, typename TOut, typename TLocal, typename TCarry, bool VDeep>
class Launcher
{
  using Tile = TileShape<TIn, TLocal, VDeep>;
  using Acc = AccumulatorOf<TIn>;

public:
  Launcher(const KernelCall & call, const SummedAreaTableOperation & operation)
    : m_Call(call)
    , m_Operation(operation)
    , m_Columns(call.writable.upper[0])
  {
    const Box & box = call.writable;
    m_FirstRow = VDeep ? 0 : operation.FirstIndex(box);
    m_Rows = box.upper[1] - m_FirstRow;
    m_Slices = 1;
    for (int a = operation.summedAxes; a < MaxDimension; ++a)
    {
      m_Slices *= box.Extent(a);
    }
  }

  void
  Run() const
  {
    const auto * const in = static_cast<const TIn *>(m_Call.inputs[0].data);
    auto * const       out = static_cast<TOut *>(m_Call.output.data);
    if constexpr (!VDeep)
    {
      Launch(in, out, m_Slices, 0);
    }
    else
    {
      const Box &        box = m_Call.writable;
      const std::int64_t first = m_Operation.FirstIndex(box);
      const std::int64_t slices = box.upper[2] - first;
      for (std::int64_t volume = 0; volume < m_Slices; ++volume)
      {
        Launch(in + volume * slices * m_Rows * m_Columns,
               out + volume * box.Extent(0) * box.Extent(1) * box.Extent(2),
               slices,
               box.lower[2] - first);
      }
    }
  }

  static std::size_t
  ScratchBytes(const SummedAreaTableOperation & operation, const ChunkShape & shape)
  {
    const Box &        box = shape.outputBox;
    const std::int64_t columns = box.upper[0];
    std::int64_t       slices = 1;
    for (int a = 2; a < MaxDimension; ++a)
    {
      slices *= a == 2 && VDeep ? box.upper[2] - operation.FirstIndex(box) : box.Extent(a);
    }
    if constexpr (!VDeep)
    {
      // A chunk that begins inside of a tile touches one more than its rows need.
      return Tiling::Make(Tile(), columns, 0, box.upper[1] - operation.FirstIndex(box) + Tile::Rows - 1, slices)
        .Bytes();
    }
    const std::int64_t volumes = box.Extent(3) * box.Extent(4);
    const Tiling       tiling = Tiling::Make(Tile(), columns, 0, box.upper[1], slices / volumes);
    return tiling.Bytes() + DeepScratch(tiling, columns * box.upper[1], slices / volumes).Bytes(Tile::Rows);
  }

private:
  void
  Launch(const TIn * in, TOut * out, std::int64_t slices, std::int64_t skipped) const
  {
    const Tiling             tiling = Tiling::Make(Tile(), m_Columns, m_FirstRow, m_FirstRow + m_Rows, slices);
    const std::int64_t       plane = m_Rows * m_Columns;
    Table<TIn, TOut, TCarry> table{};
    table.in = in;
    table.out = out;
    table.store = m_Call.output.box;
    table.columns = m_Columns;
    table.firstRow = m_FirstRow;
    table.lastRow = m_FirstRow + m_Rows;
    table.slices = static_cast<int>(slices);
    table.skipped = static_cast<int>(skipped);
    table.tileColumns = static_cast<int>(tiling.columns);
    table.tileRows = static_cast<int>(tiling.rows);
    table.squares = m_Operation.squares;
    table.carry = VDeep ? nullptr : static_cast<const Acc *>(m_Call.sideIn);
    // Buffers begin at multiples of 256 bytes.
    table.inUnits = m_Columns * static_cast<std::int64_t>(sizeof(TIn)) % 16 == 0;
    const bool whole = table.store.lower.axis[0] == 0 && table.store.upper.axis[0] == m_Columns;
    table.outGroups = m_Columns % Group == 0 && whole;
    table.outPairs = m_Columns % (2 * Group) == 0;

    auto *     scratch = static_cast<char *>(m_Call.scratch);
    const auto take = [&](std::int64_t entries) {
      auto * const taken = scratch;
      scratch += static_cast<std::size_t>(entries) * sizeof(std::uint64_t);
      return taken;
    };
    table.ticket = reinterpret_cast<unsigned long long *>(take(2));
    table.above = reinterpret_cast<Handed<TCarry> *>(take(2 * tiling.Words()));
    table.left = table.above + slices * 2 * tiling.columns * Columns;
    const std::size_t used =
      2 * sizeof(std::uint64_t) + static_cast<std::size_t>(tiling.Words()) * sizeof(Handed<TCarry>);
    if (cudaMemsetAsync(table.ticket, 0, used, StreamOf(m_Call)) != cudaSuccess)
    {
      CheckLaunch("cudaMemsetAsync");
    }

    const auto kernel = TableKernel<TIn, TOut, TLocal, TCarry, VDeep>;
    const auto most = static_cast<std::size_t>(SharedMemoryOfDevice());
    const auto planes = static_cast<std::size_t>(Tile::PlaneUnits) * sizeof(uint4);
    const auto shares = static_cast<std::size_t>(Warps * Tile::WarpBytes);
    const auto own = Warps * Columns * sizeof(TCarry) + Steps * sizeof(Step);
    const bool inGlobal = VDeep && own + shares + planes > most;
    const auto bytes = own + shares + (inGlobal ? 0 : planes);
    AllowSharedMemory(kernel, bytes);
    int        blocks = 0;
    int        processors = 0;
    int        device = 0;
    const bool known =
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, Warps * 32, bytes) == cudaSuccess &&
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) == cudaSuccess;
    const std::int64_t atOnce = known ? std::min(MostBlocks, std::int64_t{ blocks } * processors) : 1;

    table.depth = 1;
    if constexpr (VDeep)
    {
      const DeepScratch room(tiling, plane, slices);
      const auto *      before = static_cast<const Acc *>(m_Call.sideIn);
      auto * const      starts = reinterpret_cast<Acc *>(take(room.starts));
      table.planes = inGlobal ? reinterpret_cast<uint4 *>(scratch) : nullptr;
      // With too few places of tiles to keep the device busy the slices are split.
      const std::int64_t stacks = std::max<std::int64_t>(1, std::min(slices / LeastDepth, atOnce / tiling.OfSlice()));
      table.depth = static_cast<int>((slices + stacks - 1) / stacks);
      table.before = before;
      if (stacks > 1)
      {
        table.before = starts;
        StartsKernel<TIn, Acc><<<BlocksFor(plane, 256), 256, 0, StreamOf(m_Call)>>>(
          in, plane, slices, table.depth, before, starts, table.squares);
        CheckLaunch("StartsKernel");
      }
    }
    const std::int64_t stacks = (slices + table.depth - 1) / table.depth;
    table.tickets = static_cast<unsigned long long>(tiling.OfSlice() * stacks);
    const auto grid = static_cast<unsigned int>(std::max<std::int64_t>(1, std::min(atOnce, tiling.OfSlice() * stacks)));
    kernel<<<grid, Warps * 32, bytes, StreamOf(m_Call)>>>(table);
    CheckLaunch("TableKernel");
  }

  const KernelCall &               m_Call;
  const SummedAreaTableOperation & m_Operation;
  std::int64_t                     m_Columns;
  std::int64_t                     m_FirstRow;
  std::int64_t                     m_Rows;
  std::int64_t                     m_Slices;
};

/** Calls f with the launcher's class, as a null pointer. */
template <typename TFunctor>
void
DispatchLauncher(const SummedAreaTableOperation & operation, PixelKind inKind, PixelKind outKind, TFunctor && f)
{
  DispatchPixelKind(inKind, [&](auto pixel) {
    using In = decltype(pixel);
    const auto withOutput = [&](auto voxel) {
      using Out = decltype(voxel);
      const auto withDepth = [&](auto deep) {
        constexpr bool VDeep = decltype(deep)::value;
        DispatchSums<In, Out, VDeep>(operation.squares, [&](auto local, auto carry) {
          f(static_cast<Launcher<In, Out, decltype(local), decltype(carry), VDeep> *>(nullptr));
        });
      };
      operation.summedAxes == 3 ? withDepth(std::true_type{}) : withDepth(std::false_type{});
    };
    switch (outKind)
    {
      case PixelKind::Float32:
        return withOutput(float{});
      case PixelKind::Float64:
        return withOutput(double{});
      default:
        if constexpr (!IsReal<In>)
        {
          // Modulo their size, signed and unsigned integers have the same bits.
          PixelSize(outKind) == 4 ? withOutput(std::uint32_t{}) : withOutput(std::uint64_t{});
        }
    }
  });
}

void
RunTable(const KernelCall & call)
{
  const auto & operation = static_cast<const SummedAreaTableOperation &>(*call.operation);
  DispatchLauncher(operation, call.inputs[0].kind, call.output.kind, [&](auto * type) {
    std::remove_pointer_t<decltype(type)>(call, operation).Run();
  });
}

void
RunAdvance(const KernelCall & call)
{
  const auto & operation = static_cast<const SummedAreaTableOperation &>(*call.operation);
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using In = decltype(pixel);
    using Acc = AccumulatorOf<In>;
    const Box &        box = call.writable;
    const auto * const in = static_cast<const In *>(call.inputs[0].data);
    const auto * const before = static_cast<const Acc *>(call.sideIn);
    auto * const       behind = static_cast<Acc *>(call.sideOut);
    if (operation.summedAxes == 2)
    {
      AdvanceRowsKernel<In, Acc><<<BlocksFor(box.upper[0], 64), 64, 0, StreamOf(call)>>>(
        in, box.upper[0], box.lower[1], box.upper[1], before, behind, operation.squares);
    }
    else
    {
      const std::int64_t plane = box.upper[0] * box.upper[1];
      AdvancePlaneKernel<In, Acc><<<BlocksFor(plane, 256), 256, 0, StreamOf(call)>>>(
        in, plane, box.Extent(2), before, behind, operation.squares);
    }
    CheckLaunch("advance of a summed-area table");
  });
}

std::size_t
ScratchOfTable(const Operation & operation, const ChunkShape & shape)
{
  const auto & table = static_cast<const SummedAreaTableOperation &>(operation);
  std::size_t  bytes = 0;
  DispatchLauncher(table, shape.inputKinds[0], shape.outputKind, [&](auto * type) {
    bytes = std::remove_pointer_t<decltype(type)>::ScratchBytes(table, shape);
  });
  return bytes;
}

double
CostOfTable(const Operation &, const ChunkShape & shape)
{
  // Sums handed from tile to tile add about an eighth.
  return 1.125 * static_cast<double>(shape.inputBox.NumberOfVoxels()) *
         static_cast<double>(PixelSize(shape.inputKinds[0]) + PixelSize(shape.outputKind));
}

} // namespace

void
RegisterCudaSummedAreaTable(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunTable;
  kernel.scratchBytes = ScratchOfTable;
  kernel.cost = CostOfTable;
  registry.Register("sat", kernel);
  Kernel advance;
  advance.run = RunAdvance;
  registry.Register("sat.advance", advance);
}

} // namespace chunkwise
