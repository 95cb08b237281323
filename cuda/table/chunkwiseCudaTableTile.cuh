/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaTableTile_cuh
#define chunkwiseCudaTableTile_cuh

#include "chunkwiseCudaTable.cuh"

#include <cuda_pipeline.h>

namespace chunkwise
{
namespace sat
{

/** How large a tile is, by the types of voxels, of sums within a tile and of sums between tiles. */
template <typename TIn, typename TLocal, typename TCarry, bool VDeep>
struct TileShape
{
  /** If sums are small enough, a multiprocessor has three teams, which hide each other's waiting. A team then takes a
   * tile as late as it can: what it knows of early it comes to out of turn, and lets others wait. */
  static constexpr bool IsLate = !VDeep && LargestBytesOf<TIn> == 4 && sizeof(TLocal) == 4;
  /** Whether the next tile is fetched while one is worked on: as long as shared memory of any device holds its rows. */
  static constexpr bool IsStaged = LargestBytesOf<TIn> <= 4 && !IsLate;
  static constexpr int  WarpRows =
    sizeof(TLocal) == 4 && LargestBytesOf<TIn> <= 2 && !VDeep ? 2 * SectionRows : SectionRows;
  static constexpr int Rows = WarpRows * Warps;
  /** A warp's share: totals of its rows, the rows of the tile that comes next, and where totals of groups are
   * exchanged. If P leaves little shared memory the latter two have the same place, one after the other. */
  static constexpr bool IsTight = VDeep && sizeof(TLocal) == 8;
  static constexpr int  RowBytes = IsStaged ? static_cast<int>(WarpRows * Columns * sizeof(TIn)) : 0;
  static constexpr int  ExchangeBytes = static_cast<int>(ScannedRows * sizeof(ExchangeRow<TLocal>));
  static constexpr int  LineBytes = static_cast<int>(WarpRows * (sizeof(TLocal) + sizeof(TCarry)));
  static constexpr int  WarpBytes = LineBytes + (!IsTight                   ? RowBytes + ExchangeBytes
                                                 : RowBytes > ExchangeBytes ? RowBytes
                                                                            : ExchangeBytes);
  /** Units of P. */
  static constexpr int PlaneUnits = VDeep ? static_cast<int>(Rows * Columns * sizeof(TCarry) / sizeof(uint4)) : 0;
  /** The additional memory of a team: the sums before the first section and the sections' sums, the parts of X(C),
   * steps. */
  static constexpr int BlockBytes = static_cast<int>(
    (Warps + 1) * Columns * sizeof(TLocal) + (Columns + Groups + Quarters) * sizeof(TCarry) + Steps * sizeof(Step));
  static constexpr int TeamBytes = BlockBytes + Warps * WarpBytes;
  /** Teams of a multiprocessor, which bounds registers. */
  static constexpr int Resident = IsLate ? 3 : 2;
};

__device__ __forceinline__ int
Within(std::int64_t n, int most)
{
  return n <= 0 ? 0 : n < most ? static_cast<int>(n) : most;
}

/** A lane's group of a row of sums: units of 16 bytes, which are apart, so that a warp has whole lines. */
template <typename T>
__device__ __forceinline__ FourOf<T>
                           LoadUnits(const uint4 * units)
{
  constexpr int Units = static_cast<int>(sizeof(FourOf<T>) / sizeof(uint4));
  uint4         copies[Units];
#pragma unroll
  for (int u = 0; u < Units; ++u)
  {
    copies[u] = units[u * 32];
  }
  FourOf<T> group;
  __builtin_memcpy(&group, copies, sizeof(group));
  return group;
}

template <typename T>
__device__ __forceinline__ void
StoreUnits(uint4 * units, const FourOf<T> & group)
{
  constexpr int Units = static_cast<int>(sizeof(FourOf<T>) / sizeof(uint4));
  uint4         copies[Units];
  __builtin_memcpy(copies, &group, sizeof(group));
#pragma unroll
  for (int u = 0; u < Units; ++u)
  {
    units[u * 32] = copies[u];
  }
}

/** Begins to copy a warp's rows [first, last), of which there are `columns`, to the stage, and sets what is not there
 * to 0. Not inlined: few tiles need it, and its registers would count for all. */
template <typename TShape, typename TIn>
__device__ __noinline__ void
FetchPart(const TIn * from, TIn * stage, std::int64_t pitch, int first, int last, int columns, bool inUnits)
{
  const int     lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int Unit = 16 / sizeof(TIn);
  if (inUnits)
  {
    for (int i = lane * Unit; i < TShape::WarpRows * Columns; i += 32 * Unit)
    {
      const int  r = i / Columns;
      const int  c = i % Columns;
      const bool there = r >= first && r < last && c < columns;
      // Missing values are not read.
      __pipeline_memcpy_async(stage + i, from + r * pitch + c, 16, there ? 0 : 16);
    }
  }
  else
  {
#pragma unroll 4
    for (int i = lane; i < TShape::WarpRows * Columns; i += 32)
    {
      const int  r = i / Columns;
      const int  c = i % Columns;
      const bool there = r >= first && r < last && c < columns;
      if constexpr (sizeof(TIn) == 4)
      {
        __pipeline_memcpy_async(stage + i, from + r * pitch + c, 4, there ? 0 : 4);
      }
      else
      {
        stage[i] = there ? from[r * pitch + c] : TIn{ 0 };
      }
    }
  }
  __pipeline_commit();
}

/** One warp's share of a team's work on tiles. Most blocks are one team. Several teams of a block go through the slices
 * of one place in turn. */
template <typename TIn, typename TOut, typename TLocal, typename TCarry, bool VDeep, TablePass VPass, int VTeams,
          int VPeriod>
class TileWork
{
public:
  using Tile = TileShape<TIn, TLocal, TCarry, VDeep>;
  static constexpr int WarpRows = Tile::WarpRows;
  static constexpr int SumUnits = static_cast<int>(sizeof(FourOf<TLocal>) / sizeof(uint4));
  static constexpr int PlaneUnits = static_cast<int>(sizeof(FourOf<TCarry>) / sizeof(uint4));
  static constexpr int BlockUnits = Tile::BlockBytes / static_cast<int>(sizeof(uint4));
  static constexpr int TeamUnits = Tile::TeamBytes / static_cast<int>(sizeof(uint4));

  __device__
  TileWork(const Table<TIn, TCarry> & table, uint4 * shared)
    : m_Table(table)
    , m_Thread(VTeams > 1 ? static_cast<int>(threadIdx.x) % Threads : static_cast<int>(threadIdx.x))
    , m_Team(VTeams > 1 ? static_cast<int>(threadIdx.x) / Threads : 0)
    , m_Lane(m_Thread % 32)
    , m_Warp(m_Thread / 32)
    , m_Sections(shared + (table.planes ? 0 : Tile::PlaneUnits) + m_Team * TeamUnits)
    , m_Above(m_Sections + (Warps + 1) * SumUnits * 32)
    , m_Planes((table.planes ? table.planes + blockIdx.x * std::int64_t{ Tile::PlaneUnits } : shared) +
               m_Warp * WarpRows * PlaneUnits * 32 + m_Lane)
    , m_Share(m_Sections + BlockUnits + m_Warp * (Tile::WarpBytes / sizeof(uint4)))
    , m_Stage(reinterpret_cast<TIn *>(m_Share + Tile::LineBytes / sizeof(uint4)))
    , m_Exchange(m_Share + (Tile::LineBytes + (Tile::IsTight ? 0 : Tile::RowBytes)) / sizeof(uint4))
  {}

  __device__ int
  Thread() const
  {
    return m_Thread;
  }
  /** The steps that a team knows of, this one or one further on. */
  __device__ Step *
  StepsOf(int further = 0) const
  {
    return reinterpret_cast<Step *>(m_Sections + further * TeamUnits + BlockUnits) - Steps;
  }
  /** All threads of a team. */
  __device__ void
  Sync() const
  {
    if constexpr (VTeams > 1)
    {
      asm volatile("bar.sync %0, %1;" ::"r"(m_Team + 1), "n"(Threads) : "memory");
    }
    else
    {
      __syncthreads();
    }
  }

  /** Asks for a warp's rows of a tile, which then are in the second-level cache when its turn comes. A row at a time:
   * asked for line by line they came later than if nobody had asked. */
  __device__ void
  Prefetch(const Step & step) const
  {
#if __CUDA_ARCH__ >= 900
    if (step.row >= 0 && step.whole && m_Lane < WarpRows)
    {
      asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(Input<TIn>(step) + m_Lane * m_Table.columns),
                   "n"(Columns * sizeof(TIn))
                   : "memory");
    }
#endif
  }

  /** Begins to copy a warp's rows of a tile to the stage. */
  __device__ void
  Fetch(const Step & step) const
  {
    if constexpr (Tile::IsStaged)
    {
      if (step.row < 0)
      {
        return;
      }
      // With whole units of 16 bytes; else voxel by voxel.
      constexpr int     Unit = static_cast<int>(16 / sizeof(TIn));
      constexpr int     RowUnits = Columns / Unit;
      constexpr int     Together = 32 / RowUnits;
      const TIn * const from = Input<TIn>(step);
      if (step.whole)
      {
        const int   r = m_Lane / RowUnits;
        const int   c = m_Lane % RowUnits * Unit;
        const TIn * voxel = from + r * m_Table.columns + c;
#pragma unroll
        for (int i = 0; i < WarpRows; i += Together, voxel += Together * m_Table.columns)
        {
          __pipeline_memcpy_async(m_Stage + (i + r) * Columns + c, voxel, 16);
        }
        __pipeline_commit();
        return;
      }
      FetchPart<Tile>(from,
                      m_Stage,
                      m_Table.columns,
                      Within(m_Table.firstRow - Row(step), WarpRows),
                      Within(m_Table.lastRow - Row(step), WarpRows),
                      Within(m_Table.columns - std::int64_t{ step.column } * Columns, Columns),
                      m_Table.inUnits);
    }
  }

  /** l of the section's rows, and of all of them to the block's shared memory. */
  __device__ void
  SumColumns(const Step & step)
  {
    if (Tile::IsStaged)
    {
      __pipeline_wait_prior(0);
      __syncwarp();
    }
    if constexpr (VDeep)
    {
      AwaitPlane(step);
      AddToPlane(step);
      HandPlaneOn(step);
    }
    else
    {
      Load(step);
      if (m_Table.squares)
      {
#pragma unroll
        for (int r = 0; r < WarpRows; ++r)
        {
#pragma unroll
          for (int i = 0; i < Group; ++i)
          {
            m_Sums[r][i] = m_Sums[r][i] * m_Sums[r][i];
          }
        }
      }
    }
    if (m_Warp == 0)
    {
      StoreUnits(m_Sections + m_Lane, FourOf<TLocal>{});
    }
    if (IsReal<TIn> && !step.whole && IsFirst(step))
    {
      AddRowsBefore(step);
    }
    FourOf<TLocal> local;
#pragma unroll
    for (int i = 0; i < Group; ++i)
    {
      m_Sums[0][i] = TLocal(0) + m_Sums[0][i];
#pragma unroll
      for (int r = 1; r < WarpRows; ++r)
      {
        m_Sums[r][i] = m_Sums[r - 1][i] + m_Sums[r][i];
      }
      local.value[i] = m_Sums[WarpRows - 1][i];
    }
    StoreUnits(m_Sections + (m_Warp + 1) * SumUnits * 32 + m_Lane, local);
  }

  /** The sum of a column, where a lane has one column and one row. */
  __device__ TCarry *
  ColumnSum(const Step & step) const
  {
    return m_Table.columnSums +
           ((std::int64_t{ step.slice } * m_Table.tileRows + step.row) * m_Table.tileColumns + step.column) * Columns +
           m_Thread;
  }
  __device__ TCarry *
  RowSum(const Step & step) const
  {
    return m_Table.rowSums +
           ((std::int64_t{ step.slice } * m_Table.tileColumns + step.column) * m_Table.tileRows + step.row) *
             Tile::Rows +
           m_Warp * WarpRows + m_Lane;
  }

  /** The columns, of which the first warps' lanes have one each. */
  __device__ Line<TCarry, VPeriod>
             ColumnOf(const Step & step) const
  {
    return { m_Table.above +
               ((std::int64_t{ step.slice } * m_Table.tileRows + step.row) * m_Table.tileColumns + step.column) *
                 Columns +
               m_Thread,
             std::int64_t{ m_Table.tileColumns } * Columns,
             step.row };
  }

  /** C of a quarter of the columns, each lane's one of them, and what the quarter knows of X(C). */
  __device__ void
  SumAbove(const Step & step, const Before<TCarry, VPeriod> & asked) const
  {
    const int column = m_Thread;
    TLocal    sections = Of<TLocal>(m_Sections, column);
#pragma unroll
    for (int s = 1; s <= Warps; ++s)
    {
      sections = sections + Of<TLocal>(m_Sections + s * SumUnits * 32, column);
    }
    const TCarry own = Widen<TIn, TCarry>(sections);
    if constexpr (VPass == TablePass::Sums)
    {
      *ColumnSum(step) = own;
      return;
    }
    TCarry above = TCarry(0);
    if constexpr (VPass == TablePass::Results)
    {
      above = *ColumnSum(step);
    }
    else
    {
      const std::int64_t x = std::int64_t{ step.column } * Columns + column;
      above = IsFirst(step) && x < m_Table.columns ? FirstOf<TIn>(m_Table, x) : TCarry(0);
      above = ColumnOf(step).Pass(asked, above, own);
    }
    Of<TCarry>(m_Above, column) = above;
    __syncwarp();

    // The quarter's groups, each by several lanes.
    const int      place = m_Lane % QuarterGroups;
    const int      group = m_Warp * QuarterGroups + place;
    FourOf<TCarry> sums = LoadUnits<TCarry>(m_Above + group);
#pragma unroll
    for (int i = 1; i < Group; ++i)
    {
      sums.value[i] = sums.value[i - 1] + sums.value[i];
    }
    const TCarry total = ScanGroups(sums.value[Group - 1], m_Lane);
    const TCarry left = __shfl_up_sync(~0u, total, 1, QuarterGroups);
    __syncwarp();
    if (m_Lane < QuarterGroups)
    {
      StoreUnits(m_Above + group, sums);
      LeftOfGroups()[group] = place > 0 ? left : TCarry(0);
      if (place == QuarterGroups - 1)
      {
        LeftOfGroups()[Groups + m_Warp] = total;
      }
    }
  }

  /** X(S + l). */
  __device__ void
  ScanColumns()
  {
    auto before = LoadUnits<TLocal>(m_Sections + m_Lane);
#pragma unroll
    for (int s = 1; s < Warps; ++s)
    {
      if (s <= m_Warp)
      {
        const auto section = LoadUnits<TLocal>(m_Sections + s * SumUnits * 32 + m_Lane);
#pragma unroll
        for (int i = 0; i < Group; ++i)
        {
          before.value[i] = before.value[i] + section.value[i];
        }
      }
    }
#pragma unroll
    for (int r = 0; r < WarpRows; ++r)
    {
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        m_Sums[r][i] = before.value[i] + m_Sums[r][i];
      }
    }
#pragma unroll
    for (int r = 0; r < WarpRows; r += ScannedRows)
    {
      ScanRows(reinterpret_cast<TLocal(&)[ScannedRows][Group]>(m_Sums[r]),
               reinterpret_cast<ExchangeRow<TLocal> *>(m_Exchange),
               m_Lane);
    }
  }

  /** The warp's rows: lane r has row r. */
  __device__ Line<TCarry, VPeriod>
             RowOf(const Step & step) const
  {
    return { m_Table.left +
               ((std::int64_t{ step.slice } * m_Table.tileRows + step.row) * m_Table.tileColumns + step.column) *
                 Tile::Rows +
               m_Warp * WarpRows + m_Lane,
             Tile::Rows,
             step.column };
  }
  __device__ bool
  HasRow() const
  {
    return m_Lane < WarpRows;
  }

  /** With the parts of X(C) in the block's shared memory: sums to the left, and stores. */
  __device__ void
  Finish(const Step & step, const Before<TCarry, VPeriod> & asked) const
  {
    // Rows change places with lanes: lane r has row r.
    if (m_Lane == 31)
    {
#pragma unroll
      for (int r = 0; r < WarpRows; ++r)
      {
        Totals()[r] = m_Sums[r][Group - 1];
      }
    }
    if constexpr (VPass == TablePass::Sums)
    {
      __syncwarp();
      if (HasRow())
      {
        *RowSum(step) = Widen<TIn, TCarry>(Totals()[m_Lane]);
      }
    }
    else
    {
      const FourOf<TCarry> above = ScanAbove();
      const TCarry         corner = __shfl_sync(~0u, above.value[Group - 1], 31);
      __syncwarp();
      if (HasRow())
      {
        if constexpr (VPass == TablePass::Results)
        {
          Lefts()[m_Lane] = *RowSum(step);
        }
        else
        {
          const auto own = static_cast<TCarry>(corner + Widen<TIn, TCarry>(Totals()[m_Lane]));
          Lefts()[m_Lane] = RowOf(step).Pass(asked, TCarry(0), own);
        }
      }
      __syncwarp();
      if constexpr (!std::is_same<TOut, AnyNumber>::value)
      {
        StoreRows<TOut>(step, above);
      }
      else if (PixelSize(m_Table.outKind) == 4)
      {
        StoreRows<std::uint32_t>(step, above);
      }
      else
      {
        StoreRows<std::uint64_t>(step, above);
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
  /** A column's entry of a row of sums that LoadUnits gives groups of. */
  template <typename T>
  __device__ static T &
  Of(uint4 * units, int column)
  {
    constexpr int InUnit = static_cast<int>(sizeof(uint4) / sizeof(T));
    return reinterpret_cast<T *>(units + column % Group / InUnit * 32 + column / Group)[column % InUnit];
  }
  /** Within a quarter; after them come the sums of whole quarters. */
  __device__ TCarry *
  LeftOfGroups() const
  {
    return reinterpret_cast<TCarry *>(m_Above + PlaneUnits * 32);
  }
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
  /** G of the warp's rows, and their last sums. */
  __device__ TCarry *
  Lefts() const
  {
    return reinterpret_cast<TCarry *>(m_Share);
  }
  __device__ TLocal *
  Totals() const
  {
    return reinterpret_cast<TLocal *>(Lefts() + WarpRows);
  }
  /** X(C) of the lane's group, from its parts. */
  __device__ FourOf<TCarry>
             ScanAbove() const
  {
    auto           above = LoadUnits<TCarry>(m_Above + m_Lane);
    const TCarry * left = LeftOfGroups();
    TCarry         quarters = TCarry(0);
#pragma unroll
    for (int q = 0; q < Quarters - 1; ++q)
    {
      quarters = m_Lane / QuarterGroups > q ? quarters + left[Groups + q] : quarters;
    }
    quarters = quarters + left[m_Lane];
#pragma unroll
    for (int i = 0; i < Group; ++i)
    {
      above.value[i] = quarters + above.value[i];
    }
    return above;
  }
  /** An entry of the output; with AnyNumber, of integers alone, the bits of one. */
  template <typename T>
  __device__ T
  ResultOf(TCarry sum) const
  {
    if constexpr (!std::is_same<TOut, AnyNumber>::value)
    {
      return Widen<TIn, T>(sum);
    }
    else if constexpr (sizeof(T) == 4)
    {
      return m_Table.outKind == PixelType::Float32 ? __float_as_uint(RealOf<float>(sum)) : static_cast<T>(sum);
    }
    else
    {
      return m_Table.outKind == PixelType::Float64 ? static_cast<T>(__double_as_longlong(RealOf<double>(sum)))
                                                   : static_cast<T>(sum);
    }
  }
  template <typename TReal>
  __device__ TReal
  RealOf(TCarry sum) const
  {
    const PixelType kind = m_Table.inKind;
    const bool      isSigned =
      kind == PixelType::Int8 || kind == PixelType::Int16 || kind == PixelType::Int32 || kind == PixelType::Int64;
    return isSigned ? static_cast<TReal>(static_cast<std::int64_t>(sum)) : static_cast<TReal>(sum);
  }
  template <typename T>
  __device__ void
  StoreRows(const Step & step, const FourOf<TCarry> & above) const
  {
    const std::int64_t outColumns = m_Table.store.Extent(0);
    T *                out = static_cast<T *>(m_Table.out) + step.out + m_Warp * WarpRows * outColumns + m_Lane * Group;
    const auto         resultsOf = [&](int r) {
      const TCarry leftOfRow = Lefts()[r];
      FourOf<T>    results;
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        results.value[i] =
          ResultOf<T>(static_cast<TCarry>(leftOfRow + (above.value[i] + Widen<TIn, TCarry>(m_Sums[r][i]))));
      }
      return results;
    };
    if (step.whole)
    {
#pragma unroll
      for (int r = 0; r < WarpRows; ++r, out += outColumns)
      {
        StoreGroup(out, resultsOf(r), true, true, m_Lane);
      }
      return;
    }
    const Box & store = m_Table.store;
    const int   firstRow = Within(store.lower.axis[1] - Row(step), WarpRows);
    const int   lastRow = Within(store.upper.axis[1] - Row(step), WarpRows);
    const int   first = Within(store.lower.axis[0] - Column(step), Group);
    const int   last = Within(store.upper.axis[0] - Column(step), Group);
#pragma unroll
    for (int r = 0; r < WarpRows; ++r, out += outColumns)
    {
      const FourOf<T> results = resultsOf(r);
      if (r < firstRow || r >= lastRow)
      {
        continue;
      }
      if (m_Table.outGroups)
      {
        if (last > 0)
        {
          StoreGroup(out, results, true, false, m_Lane);
        }
        continue;
      }
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        if (i >= first && i < last)
        {
          out[i] = results.value[i];
        }
      }
    }
  }
  /** The first voxel of the warp's rows. */
  template <typename T>
  __device__ const T *
  Input(const Step & step) const
  {
    return static_cast<const T *>(m_Table.in) + step.in + m_Warp * WarpRows * m_Table.columns;
  }
  /** The lane's voxels, 0 where there is none. */
  __device__ void
  Load(const Step & step)
  {
    if constexpr (std::is_same<TIn, AnyInteger>::value)
    {
      LoadAny(step);
    }
    else
    {
#pragma unroll
      for (int r = 0; r < WarpRows; ++r)
      {
        const FourOf<TIn> pixels = Pixels(step, r);
#pragma unroll
        for (int i = 0; i < Group; ++i)
        {
          m_Sums[r][i] = static_cast<TLocal>(pixels.value[i]);
        }
      }
    }
  }
  /** The type is chosen once for all rows, whose loads are then on their way together. */
  __device__ void
  LoadAny(const Step & step)
  {
    switch (m_Table.inKind)
    {
      case PixelType::UInt8:
        return LoadAs<std::uint8_t>(step);
      case PixelType::Int8:
        return LoadAs<std::int8_t>(step);
      case PixelType::UInt16:
        return LoadAs<std::uint16_t>(step);
      case PixelType::Int16:
        return LoadAs<std::int16_t>(step);
      case PixelType::UInt32:
        return LoadAs<std::uint32_t>(step);
      case PixelType::Int32:
        return LoadAs<std::int32_t>(step);
      default:
        return LoadAs<std::uint64_t>(step);
    }
  }
  template <typename T>
  __device__ void
  LoadAs(const Step & step)
  {
    const T * const in = Input<T>(step) + m_Lane * Group;
    const int       columns = Within(m_Table.columns - Column(step), Group);
    const int       first = Within(m_Table.firstRow - Row(step), WarpRows);
    const int       last = Within(m_Table.lastRow - Row(step), WarpRows);
    FourOf<T>       pixels[WarpRows];
#pragma unroll
    for (int r = 0; r < WarpRows; ++r)
    {
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        pixels[r].value[i] = r >= first && r < last && i < columns ? in[r * m_Table.columns + i] : T(0);
      }
    }
#pragma unroll
    for (int r = 0; r < WarpRows; ++r)
    {
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        m_Sums[r][i] = static_cast<TLocal>(pixels[r].value[i]);
      }
    }
  }
  /** The lane's group of row r. */
  __device__ FourOf<TIn>
             Pixels(const Step & step, int r) const
  {
    if constexpr (Tile::IsStaged)
    {
      return *reinterpret_cast<const FourOf<TIn> *>(m_Stage + r * Columns + m_Lane * Group);
    }
    else
    {
      const TIn * const  in = Input<TIn>(step) + r * m_Table.columns + m_Lane * Group;
      FourOf<TIn>        pixels{};
      const std::int64_t y = Row(step) + r;
      const int          columns = Within(m_Table.columns - Column(step), Group);
      if (Tile::IsLate && step.whole)
      {
        const uint4 bits = __ldcg(reinterpret_cast<const uint4 *>(in));
        __builtin_memcpy(&pixels, &bits, sizeof(pixels) < sizeof(bits) ? sizeof(pixels) : sizeof(bits));
        return pixels;
      }
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
  }
  /** Begins with the block's and the section's rows that are not in this call. */
  __device__ void
  AddRowsBefore(const Step & step)
  {
    const std::int64_t y = Row(step);
    const auto * const carry = m_Table.carry + m_Table.columns + Column(step);
    const int          columns = Within(m_Table.columns - Column(step), Group);
    FourOf<TLocal>     sections;
#pragma unroll
    for (int i = 0; i < Group; ++i)
    {
      sections.value[i] = i < columns ? static_cast<TLocal>(carry[i]) : TLocal(0);
      if (i < columns && y < m_Table.firstRow && y + WarpRows > m_Table.firstRow)
      {
        m_Sums[0][i] = static_cast<TLocal>(carry[m_Table.columns + i]) + m_Sums[0][i];
      }
    }
    if (m_Warp == 0)
    {
      StoreUnits(m_Sections + m_Lane, sections);
    }
  }
  /** P goes from team to team, through a barrier for each direction at which one waits and the other does not. */
  __device__ void
  AwaitPlane(const Step & step) const
  {
    if constexpr (VTeams > 1)
    {
      if (step.slice > step.first)
      {
        asm volatile("bar.sync %0, %1;" ::"r"(1 + VTeams + m_Team), "n"(2 * Threads) : "memory");
      }
    }
  }
  __device__ void
  HandPlaneOn(const Step & step) const
  {
    if constexpr (VTeams > 1)
    {
      if (HasSlice(m_Table, step, 1))
      {
        asm volatile("bar.arrive %0, %1;" ::"r"(1 + VTeams + (m_Team + 1) % VTeams), "n"(2 * Threads) : "memory");
      }
    }
  }
  /** Adds the slice's rows to those of P, of which it gives copies. */
  __device__ void
  AddToPlane(const Step & step)
  {
    const bool begins = step.slice == step.first;
    const int  columns = Within(m_Table.columns - Column(step), Group);
    const int  last = Within(m_Table.lastRow - Row(step), WarpRows);
    if constexpr (std::is_same<TIn, AnyInteger>::value)
    {
      LoadAny(step);
    }
#pragma unroll
    for (int r = 0; r < WarpRows; ++r)
    {
      // P is in the type of sums between tiles.
      FourOf<TCarry> terms;
      if constexpr (std::is_same<TIn, AnyInteger>::value)
      {
#pragma unroll
        for (int i = 0; i < Group; ++i)
        {
          terms.value[i] = m_Sums[r][i];
        }
      }
      else
      {
        const FourOf<TIn> pixels = Pixels(step, r);
#pragma unroll
        for (int i = 0; i < Group; ++i)
        {
          terms.value[i] = static_cast<TCarry>(pixels.value[i]);
        }
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
      uint4 * const        units = m_Planes + r * PlaneUnits * 32;
      const FourOf<TCarry> plane = begins ? PlaneBefore(step, r, r < last ? columns : 0) : LoadUnits<TCarry>(units);
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        terms.value[i] = plane.value[i] + terms.value[i];
        m_Sums[r][i] = static_cast<TLocal>(terms.value[i]);
      }
      StoreUnits(units, terms);
    }
  }
  __device__ FourOf<TCarry>
             PlaneBefore(const Step & step, int r, int columns) const
  {
    FourOf<TCarry> plane{};
    if (m_Table.before)
    {
      const auto * const before = m_Table.before +
                                  (step.slice / m_Table.depth * m_Table.lastRow + Row(step) + r) * m_Table.columns +
                                  Column(step);
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        plane.value[i] = i < columns ? static_cast<TCarry>(before[i]) : TCarry(0);
      }
    }
    return plane;
  }
  const Table<TIn, TCarry> & m_Table;
  const int                  m_Thread; ///< of the team
  const int                  m_Team;
  const int                  m_Lane;
  const int                  m_Warp;
  /** The sums before the tile's first section and the sections' sums; s of X(C), and more of that behind it. */
  uint4 * const m_Sections;
  uint4 * const m_Above;
  /** P of the tile, if deep. */
  uint4 * const m_Planes;
  uint4 * const m_Share;
  TIn * const   m_Stage;
  uint4 * const m_Exchange;
  /** l, S + l, then X of that. */
  TLocal m_Sums[WarpRows][Group];
};

/** Each voxel is read once and written once. A warp has a section of a tile's rows, a lane a group of its columns,
 * whose sums stay in registers while the tile looks back. The rows of the next tile are on their way at the same time:
 * a block takes tickets in advance (unless tiles are late: while the tile before is worked on), which does not let
 * blocks wait for each other in a circle, as it works on its tickets in order, and a tile waits for smaller tickets
 * alone. */
template <typename TIn, typename TOut, typename TLocal, typename TCarry, bool VDeep, TablePass VPass, int VTeams,
          int VPeriod>
__global__ void
__launch_bounds__(Threads * VTeams, (TileShape<TIn, TLocal, TCarry, VDeep>::Resident / VTeams))
  TableKernel(const __grid_constant__ Table<TIn, TCarry> table)
{
  extern __shared__ uint4 memory[];
  using Work = TileWork<TIn, TOut, TLocal, TCarry, VDeep, VPass, VTeams, VPeriod>;
  constexpr bool IsChained = VPass == TablePass::Single;
  constexpr bool IsLate = Work::Tile::IsLate;
  Work           work(table, memory);
  const int      thread = work.Thread();
  // This step and the next two: the last is found while a step is worked on, for its successor to fetch. Late, this
  // step and the next.
  auto * const steps = work.StepsOf();
  if (threadIdx.x == 0)
  {
    steps[0] = NextStep<VDeep, VTeams>(table, NoStep(), Work::Tile::Rows);
    for (int other = 1; other < VTeams; ++other)
    {
      Step & step = work.StepsOf(other)[0];
      step = steps[0];
      step.row = HasSlice(table, step, other) ? step.row : -1;
      step.slice += other;
      Locate(table, Work::Tile::Rows, step);
    }
  }
  __syncthreads();
  work.Fetch(steps[0]);
  if (!IsLate && thread == 0 && steps[0].row >= 0)
  {
    steps[1] = NextStep<VDeep, VTeams>(table, steps[0], Work::Tile::Rows);
  }
  work.Sync();
  // All threads see the same steps: the votes tell the compiler so, which else looks after warps that fell apart.
  for (int now = 0; __any_sync(~0u, steps[now].row >= 0); now = now == Steps - 1 ? 0 : now + 1)
  {
    const Step & step = steps[now];
    const Step & next = steps[now == Steps - 1 ? 0 : now + 1];
    const bool   isStored = !VDeep || __any_sync(~0u, step.slice >= table.skipped);
    const bool   hasColumns = __any_sync(~0u, isStored && thread < Columns);
    work.SumColumns(step);
    if (!IsLate && !Work::Tile::IsTight)
    {
      __syncwarp();
      work.Fetch(next);
    }
    const auto above = IsChained && hasColumns ? work.ColumnOf(step).Ask() : Before<TCarry, VPeriod>{};
    work.Sync();
    const auto left = IsChained && isStored && work.HasRow() ? work.RowOf(step).Ask() : Before<TCarry, VPeriod>{};
    if (hasColumns)
    {
      work.SumAbove(step, above);
    }
    else if (thread == Threads - 1)
    {
      if constexpr (IsLate)
      {
        steps[now == Steps - 1 ? 0 : now + 1] = NextStep<VDeep, VTeams>(table, step, Work::Tile::Rows);
      }
      else
      {
        steps[now == 0 ? Steps - 1 : now - 1] =
          next.row >= 0 ? NextStep<VDeep, VTeams>(table, next, Work::Tile::Rows) : next;
      }
    }
    __syncwarp();
    work.ScanColumns();
    if (Work::Tile::IsTight)
    {
      __syncwarp();
      work.Fetch(next);
    }
    work.Sync();
    if (IsLate)
    {
      work.Prefetch(next);
    }
    if (isStored)
    {
      work.Finish(step, left);
    }
  }
}

} // namespace sat
} // namespace chunkwise

#endif
