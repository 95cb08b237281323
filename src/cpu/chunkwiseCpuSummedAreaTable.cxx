/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseExecutor.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseSummedAreaTableOperation.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace chunkwise
{

namespace
{

constexpr std::int64_t SectionRows = SummedAreaTableOperation::SectionRows;
constexpr std::int64_t BlockRows = SummedAreaTableOperation::BlockRows;
constexpr std::int64_t GroupColumns = SummedAreaTableOperation::GroupColumns;
constexpr std::int64_t BlockColumns = SummedAreaTableOperation::BlockColumns;
constexpr std::int64_t Groups = BlockColumns / GroupColumns;

/** Input that two passes over it should find in a core's cache the second time. */
constexpr std::int64_t CachedBytes = 1 << 20;

template <typename TIn>
using AccumulatorOf = std::conditional_t<std::is_floating_point<TIn>::value, double,
                                         std::conditional_t<std::is_signed<TIn>::value, std::int64_t, std::uint64_t>>;

/** Sums of signed integers wrap around, which only unsigned ones may. */
template <typename TAcc>
inline TAcc
Add(TAcc a, TAcc b)
{
  if constexpr (std::is_integral<TAcc>::value)
  {
    return static_cast<TAcc>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
  else
  {
    return a + b;
  }
}

template <typename TAcc, bool VSquares, typename TIn>
inline TAcc
Term(TIn value)
{
  const auto wide = static_cast<TAcc>(value);
  if constexpr (!VSquares)
  {
    return wide;
  }
  else if constexpr (std::is_integral<TAcc>::value)
  {
    return static_cast<TAcc>(static_cast<std::uint64_t>(wide) * static_cast<std::uint64_t>(wide));
  }
  else
  {
    return wide * wide;
  }
}

/** The x step on one block of columns, `before` being the sum of those before it, which is moved on. */
template <typename TAcc>
void
ScanBlock(TAcc * block, TAcc & before)
{
  if constexpr (std::is_integral<TAcc>::value)
  {
    for (std::int64_t x = 0; x < BlockColumns; ++x)
    {
      before = Add(before, block[x]);
      block[x] = before;
    }
  }
  else
  {
    TAcc totals[2][Groups];
    for (std::int64_t g = 0; g < Groups; ++g)
    {
      TAcc * const group = block + g * GroupColumns;
      for (std::int64_t i = 1; i < GroupColumns; ++i)
      {
        group[i] = group[i - 1] + group[i];
      }
      totals[0][g] = group[GroupColumns - 1];
    }
    int now = 0;
    for (std::int64_t d = 1; d < Groups; d *= 2, now = 1 - now)
    {
      const TAcc * const from = totals[now];
      TAcc * const       to = totals[1 - now];
      std::copy(from, from + d, to);
      for (std::int64_t g = d; g < Groups; ++g)
      {
        to[g] = from[g - d] + from[g];
      }
    }
    for (std::int64_t g = 0; g < Groups; ++g)
    {
      const TAcc   left = g > 0 ? totals[now][g - 1] : TAcc{ 0 };
      TAcc * const group = block + g * GroupColumns;
      for (std::int64_t i = 0; i < GroupColumns; ++i)
      {
        group[i] = before + (left + group[i]);
      }
    }
    before = before + totals[now][Groups - 1];
  }
}

/** How the rows of a plane are worked on: sections in parallel, as many at a time as the cores' caches hold. */
struct Sections
{
  std::int64_t columns;
  std::int64_t atOnce;

  Sections(std::int64_t columnCount, std::size_t pixel, int concurrency)
    : columns(columnCount)
    , atOnce(concurrency)
  {
    const std::int64_t bytes = SectionRows * columns * static_cast<std::int64_t>(pixel);
    atOnce *= std::max<std::int64_t>(1, CachedBytes / std::max<std::int64_t>(bytes, 1));
    atOnce = std::min<std::int64_t>(atOnce, 16 * std::int64_t{ concurrency });
  }
  /** Entries: for each section its total, and the C and S it begins with; the state. */
  std::int64_t
  Entries() const
  {
    return (3 * atOnce + 3) * columns;
  }
};

/** The table of one plane after another. */
template <typename TIn, typename TAcc, bool VSquares>
class TableMaker
{
public:
  TableMaker(const KernelCall & call, const SummedAreaTableOperation & operation)
    : m_Call(call)
    , m_In(call.inputs[0])
    , m_Columns(call.writable.upper[0])
    , m_Workers(static_cast<int>(call.executor->GetConcurrency()))
    , m_Sections(m_Columns, operation.summedAxes == 3 ? sizeof(TAcc) : sizeof(TIn), m_Workers)
    , m_Totals(static_cast<TAcc *>(call.scratch))
    , m_Blocks(m_Totals + m_Sections.atOnce * m_Columns)
    , m_Before(m_Blocks + m_Sections.atOnce * m_Columns)
    , m_State(m_Before + m_Sections.atOnce * m_Columns)
    , m_Plane(m_State + 3 * m_Columns)
  {}

  TAcc *
  GetState()
  {
    return m_State;
  }
  TAcc *
  GetPlane()
  {
    return m_Plane;
  }

  /** Adds the slice at `slice` to the plane. */
  void
  AddSlice(Coordinates slice, TAcc * plane, std::int64_t rows)
  {
    m_Call.executor->ParallelFor((rows + SectionRows - 1) / SectionRows, [&](std::int64_t section, unsigned int) {
      Coordinates at = slice;
      for (std::int64_t y = section * SectionRows; y < std::min(rows, (section + 1) * SectionRows); ++y)
      {
        at[1] = y;
        AddRow(at, plane + y * m_Columns);
      }
    });
  }

  /** Rows [lower, upper) of the plane at `slice`, from the state before them, which is moved on. With `plane` its rows
   * are the terms, else the input's. Rows in the output's box are stored. */
  void
  Sum(const Coordinates & slice, const TAcc * plane, std::int64_t lower, std::int64_t upper, bool store)
  {
    const std::int64_t first = lower / SectionRows;
    const std::int64_t last = (upper + SectionRows - 1) / SectionRows;
    for (std::int64_t from = first; from < last; from += m_Sections.atOnce)
    {
      if (m_Call.control && m_Call.control->ShouldStop())
      {
        return;
      }
      const std::int64_t to = std::min(last, from + m_Sections.atOnce);
      m_Call.executor->ParallelFor(to - from, [&](std::int64_t i, unsigned int) {
        const std::int64_t section = from + i;
        TAcc * const       total = m_Totals + i * m_Columns;
        StartSection(section, lower, total);
        for (std::int64_t y = std::max(lower, section * SectionRows); y < End(section, upper); ++y)
        {
          AddRowOf(slice, plane, y, total);
        }
      });
      ChainSections(from, to, upper);
      if (store)
      {
        m_Call.executor->ParallelFor(
          to - from, [&](std::int64_t i, unsigned int) { Finish(slice, plane, from + i, i, lower, upper); });
      }
    }
  }

private:
  static std::int64_t
  End(std::int64_t section, std::int64_t upper)
  {
    return std::min(upper, (section + 1) * SectionRows);
  }

  /** The rows of a section that came before are in the state. */
  void
  StartSection(std::int64_t section, std::int64_t lower, TAcc * sum) const
  {
    if (section * SectionRows < lower)
    {
      std::copy(m_Local, m_Local + m_Columns, sum);
    }
    else
    {
      std::fill(sum, sum + m_Columns, TAcc{ 0 });
    }
  }

  void
  AddRow(const Coordinates & at, TAcc * sum) const
  {
    const TIn * const  row = static_cast<const TIn *>(m_In.data) + m_In.Offset(at);
    const std::int64_t stride = m_In.stride[0];
    if (stride == 1)
    {
      for (std::int64_t x = 0; x < m_Columns; ++x)
      {
        sum[x] = Add(sum[x], Term<TAcc, VSquares>(row[x]));
      }
      return;
    }
    for (std::int64_t x = 0; x < m_Columns; ++x)
    {
      sum[x] = Add(sum[x], Term<TAcc, VSquares>(row[x * stride]));
    }
  }

  void
  AddRowOf(const Coordinates & slice, const TAcc * plane, std::int64_t y, TAcc * sum) const
  {
    if (!plane)
    {
      Coordinates at = slice;
      at[1] = y;
      AddRow(at, sum);
      return;
    }
    const TAcc * const row = plane + y * m_Columns;
    for (std::int64_t x = 0; x < m_Columns; ++x)
    {
      sum[x] = Add(sum[x], row[x]);
    }
  }

  /** C and S at the begin of each section from the totals, and the state behind the last. */
  void
  ChainSections(std::int64_t from, std::int64_t to, std::int64_t upper)
  {
    const std::int64_t stripe = 4096;
    m_Call.executor->ParallelFor((m_Columns + stripe - 1) / stripe, [&](std::int64_t task, unsigned int) {
      const std::int64_t end = std::min(m_Columns, (task + 1) * stripe);
      TAcc * const       blocks = m_State;
      TAcc * const       before = m_State + m_Columns;
      for (std::int64_t section = from; section < to; ++section)
      {
        const std::int64_t at = (section - from) * m_Columns;
        std::copy(blocks + task * stripe, blocks + end, m_Blocks + at + task * stripe);
        std::copy(before + task * stripe, before + end, m_Before + at + task * stripe);
        const bool complete = (section + 1) * SectionRows <= upper;
        const bool completeBlock = complete && (section + 1) * SectionRows % BlockRows == 0;
        for (std::int64_t x = task * stripe; complete && x < end; ++x)
        {
          const TAcc sum = Add(before[x], m_Totals[at + x]);
          before[x] = completeBlock ? TAcc{ 0 } : sum;
          blocks[x] = completeBlock ? Add(blocks[x], sum) : blocks[x];
        }
      }
    });
  }

  void
  Finish(const Coordinates & slice, const TAcc * plane, std::int64_t section, std::int64_t i, std::int64_t lower,
         std::int64_t upper)
  {
    // The total is not needed any more: its place holds the running sum.
    TAcc * const       local = m_Totals + i * m_Columns;
    const TAcc * const blocks = m_Blocks + i * m_Columns;
    const TAcc * const before = m_Before + i * m_Columns;
    const Box &        box = m_Call.output.box;
    StartSection(section, lower, local);
    for (std::int64_t y = std::max(lower, section * SectionRows); y < End(section, upper); ++y)
    {
      AddRowOf(slice, plane, y, local);
      if (y < box.lower[1] || y >= box.upper[1])
      {
        continue;
      }
      Coordinates at = slice;
      at[0] = box.lower[0];
      at[1] = y;
      DispatchPixelKind(m_Call.output.kind, [&](auto pixel) {
        using Out = decltype(pixel);
        Out * const        out = static_cast<Out *>(m_Call.output.data) + m_Call.output.Offset(at);
        const std::int64_t stride = m_Call.output.stride[0];
        TAcc               sum{ 0 };
        for (std::int64_t begin = 0; begin < box.upper[0]; begin += BlockColumns)
        {
          const std::int64_t n = std::min(BlockColumns, m_Columns - begin);
          TAcc               block[BlockColumns];
          for (std::int64_t x = 0; x < n; ++x)
          {
            block[x] = Add(blocks[begin + x], Add(before[begin + x], local[begin + x]));
          }
          std::fill(block + n, block + BlockColumns, TAcc{ 0 });
          ScanBlock(block, sum);
          const std::int64_t first = std::max<std::int64_t>(0, box.lower[0] - begin);
          Out * const        to = out + (begin - box.lower[0]) * stride;
          if (stride == 1)
          {
            for (std::int64_t x = first; x < n; ++x)
            {
              to[x] = static_cast<Out>(block[x]);
            }
            continue;
          }
          for (std::int64_t x = first; x < n; ++x)
          {
            to[x * stride] = static_cast<Out>(block[x]);
          }
        }
      });
    }
  }

public:
  /** `local`: the sum of the rows of the first section that come before the first row to sum. */
  void
  SetLocal(const TAcc * local)
  {
    m_Local = local;
  }

  /** The totals of the last section of the last Sum: its running sum. */
  const TAcc *
  GetTotals(std::int64_t lower, std::int64_t upper) const
  {
    const std::int64_t first = lower / SectionRows;
    const std::int64_t last = (upper - 1) / SectionRows;
    return m_Totals + (last - first) % m_Sections.atOnce * m_Columns;
  }

  static std::size_t
  ScratchBytes(const SummedAreaTableOperation & operation, const ChunkShape & shape)
  {
    const std::int64_t columns = shape.outputBox.upper[0];
    const Sections     sections(columns, operation.summedAxes == 3 ? sizeof(TAcc) : sizeof(TIn), shape.concurrency);
    const std::int64_t plane = operation.summedAxes == 3 ? columns * shape.outputBox.upper[1] : 0;
    return static_cast<std::size_t>(sections.Entries() + plane) * sizeof(TAcc);
  }

private:
  const KernelCall & m_Call;
  const BufferView & m_In;
  const std::int64_t m_Columns;
  const int          m_Workers;
  const Sections     m_Sections;
  TAcc * const       m_Totals;
  TAcc * const       m_Blocks;
  TAcc * const       m_Before;
  TAcc * const       m_State;
  TAcc * const       m_Plane;
  const TAcc *       m_Local{ nullptr };
};

/** Calls f with the maker's class for the kind of the input. */
template <typename TFunctor>
decltype(auto)
DispatchMaker(PixelKind kind, bool squares, TFunctor && f)
{
  return DispatchPixelKind(kind, [&](auto pixel) {
    using In = decltype(pixel);
    using Acc = AccumulatorOf<In>;
    return squares ? f(static_cast<TableMaker<In, Acc, true> *>(nullptr), Acc{})
                   : f(static_cast<TableMaker<In, Acc, false> *>(nullptr), Acc{});
  });
}

void
RunTable(const KernelCall & call, bool advance)
{
  const auto & operation = static_cast<const SummedAreaTableOperation &>(*call.operation);
  DispatchMaker(call.inputs[0].kind, operation.squares, [&](auto * type, auto zero) {
    using Maker = std::remove_pointer_t<decltype(type)>;
    using Acc = decltype(zero);
    Maker              maker(call, operation);
    const Box &        box = call.writable;
    const std::int64_t columns = box.upper[0];
    const auto * const carryIn = static_cast<const Acc *>(call.sideIn);
    auto * const       carryOut = static_cast<Acc *>(call.sideOut);
    Acc * const        state = maker.GetState();
    if (operation.summedAxes == 2 && operation.Sweeps())
    {
      const std::int64_t lower = operation.FirstIndex(box);
      std::copy(carryIn, carryIn + 2 * columns, state);
      maker.SetLocal(carryIn + 2 * columns);
      Coordinates slice = box.lower;
      slice[0] = 0;
      maker.Sum(slice, nullptr, lower, box.upper[1], !advance);
      if (advance)
      {
        std::copy(state, state + 2 * columns, carryOut);
        if (box.upper[1] % SectionRows == 0)
        {
          std::fill(carryOut + 2 * columns, carryOut + 3 * columns, Acc{ 0 });
        }
        else
        {
          const Acc * const local = maker.GetTotals(lower, box.upper[1]);
          std::copy(local, local + columns, carryOut + 2 * columns);
        }
      }
    }
    else
    {
      Box outer = box;
      for (int a = 0; a < operation.summedAxes; ++a)
      {
        outer.lower[a] = 0;
        outer.upper[a] = 1;
      }
      const std::int64_t slices = outer.NumberOfVoxels();
      const std::int64_t rows = box.upper[1];
      const std::int64_t planeEntries = rows * columns;
      for (std::int64_t i = 0; i < slices; ++i)
      {
        Coordinates  slice = outer.lower;
        std::int64_t rest = i;
        for (int a = operation.summedAxes; a < MaxDimension; ++a)
        {
          slice[a] += rest % outer.Extent(a);
          rest /= outer.Extent(a);
        }
        if (operation.summedAxes == 2)
        {
          std::fill(state, state + 2 * columns, Acc{ 0 });
          maker.Sum(slice, nullptr, 0, rows, true);
          continue;
        }
        Acc * const plane = advance ? carryOut : maker.GetPlane();
        if (operation.Sweeps())
        {
          std::copy(carryIn, carryIn + planeEntries, plane);
        }
        else
        {
          std::fill(plane, plane + planeEntries, Acc{ 0 });
        }
        for (slice[2] = operation.FirstIndex(box); slice[2] < box.upper[2]; ++slice[2])
        {
          if (call.control && call.control->ShouldStop())
          {
            return;
          }
          maker.AddSlice(slice, plane, rows);
          if (!advance && slice[2] >= box.lower[2])
          {
            std::fill(state, state + 2 * columns, Acc{ 0 });
            maker.Sum(slice, plane, 0, rows, true);
          }
        }
      }
    }
    if (call.control && !advance)
    {
      call.control->AddFinishedVoxels(box.NumberOfVoxels());
    }
  });
}

std::size_t
ScratchOfTable(const Operation & operation, const ChunkShape & shape)
{
  const auto & table = static_cast<const SummedAreaTableOperation &>(operation);
  return DispatchMaker(shape.inputKinds[0], table.squares, [&](auto * type, auto) {
    return std::remove_pointer_t<decltype(type)>::ScratchBytes(table, shape);
  });
}

} // namespace

void
RegisterHostSummedAreaTable(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = [](const KernelCall & call) { RunTable(call, false); };
  kernel.scratchBytes = ScratchOfTable;
  registry.Register("sat", kernel);
  kernel.run = [](const KernelCall & call) { RunTable(call, true); };
  registry.Register("sat.advance", kernel);
}

} // namespace chunkwise
