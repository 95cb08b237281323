/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuLevels.h"
#include "chunkwiseCpuTable.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseSummedAreaTableOperation.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>
#include <type_traits>

namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(TableLevel, MakeTableLevel)

const TableLevel &
GetTableLevel()
{
  static FunctionsAtLevels<TableLevel> levels{ CHUNKWISE_AT_LEVELS(MakeTableLevel) };
  return levels.Get();
}

namespace
{

constexpr std::int64_t SectionRows = SummedAreaTableOperation::SectionRows;
constexpr std::int64_t BlockRows = SummedAreaTableOperation::BlockRows;
static_assert(SummedAreaTableOperation::BlockColumns == TableColumns &&
                SummedAreaTableOperation::GroupColumns == TableGroup &&
                SummedAreaTableOperation::QuarterGroups == TableQuarter,
              "rows are those of the operation");

/** Bytes of a row of L that a worker goes down at a time: a few such rows of sums stay in the first-level cache, and
 * workers, of whom each is a strip behind another, find enough strips. */
constexpr std::int64_t MostStripBytes = 4096;
constexpr std::int64_t StripsForWorker = 2;

std::int64_t
Padded(std::int64_t columns)
{
  return (columns + TableColumns - 1) / TableColumns * TableColumns;
}

/** The progress of a task; spread over lines of cache. */
struct alignas(64) Progress
{
  std::atomic<std::int64_t> strips{ 0 };
};

/** Takes arrays from scratch memory, or adds up what they would need. */
class Carver
{
public:
  explicit Carver(void * memory)
    : m_Memory(static_cast<char *>(memory))
  {}
  template <typename T>
  T *
  Take(std::int64_t n)
  {
    T * const taken = m_Memory ? reinterpret_cast<T *>(m_Memory + m_Bytes) : nullptr;
    m_Bytes += (static_cast<std::size_t>(n) * sizeof(T) + 63) / 64 * 64;
    return taken;
  }
  std::size_t
  GetBytes() const
  {
    return m_Bytes;
  }

private:
  char *      m_Memory;
  std::size_t m_Bytes{ 0 };
};

/** The table of one slice after another. `TSum`: double, or an unsigned integer; `TLocal`: the operation's L. */
template <typename TSum, typename TLocal>
class TableMaker
{
  static constexpr bool IsReal = std::is_floating_point<TSum>::value;
  /** Sums in memory that others see. */
  using Wide = std::conditional_t<IsReal, double, std::uint64_t>;

  struct Worker
  {
    TLocal *        sections; ///< S of floats
    TLocal *        local;    ///< l
    TSum *          before;   ///< X(C)
    std::uint64_t * in;       ///< a row of voxels that are not one after the other
    std::uint64_t * out;
    TSum            left[BlockRows];
  };

public:
  TableMaker(const SummedAreaTableOperation & operation, const Box & box, int workers, Carver & carver)
    : m_Operation(operation)
    , m_Columns(box.upper[0])
    , m_Padded(Padded(m_Columns))
    , m_Strip(StripOf(operation, box, workers))
    , m_Strips((m_Padded + m_Strip - 1) / m_Strip)
    , m_Slices(std::min(SlicesOf(operation, box), BandsOf(box) + workers))
    , m_Above(carver.Take<TSum>(m_Padded * m_Slices))
    , m_Plane(operation.summedAxes == 3 ? carver.Take<TSum>(m_Padded * box.upper[1]) : nullptr)
    , m_Progress(carver.Take<Progress>(BandsOf(box) * m_Slices))
    , m_Workers(carver.Take<Worker>(workers))
  {
    for (int i = 0; i < workers; ++i)
    {
      Worker worker{};
      worker.sections = carver.Take<TLocal>(m_Strip);
      worker.local = carver.Take<TLocal>(m_Strip);
      worker.before = carver.Take<TSum>(m_Strip);
      worker.in = carver.Take<std::uint64_t>(m_Strip);
      worker.out = carver.Take<std::uint64_t>(m_Strip);
      if (m_Workers)
      {
        new (m_Workers + i) Worker(worker);
      }
    }
  }

  void
  Run(const KernelCall & call, bool advance)
  {
    m_Call = &call;
    m_Level = &GetTableLevel();
    m_Row = m_Level->row[m_Operation.squares ? 1 : 0][static_cast<int>(call.inputs[0].kind)]
                        [static_cast<int>(advance ? SumKind() : call.output.kind)];
    // With three summed axes it is the plane, read and written with each row, that takes the time.
    m_Streams =
      !advance && m_Operation.summedAxes == 2 && call.output.stride[0] == 1 &&
      call.output.box.NumberOfVoxels() * static_cast<std::int64_t>(PixelSize(call.output.kind)) >= LeastStreamed;
    const Box &        box = call.writable;
    const auto * const carryIn = static_cast<const Wide *>(call.sideIn);
    auto * const       carryOut = static_cast<Wide *>(call.sideOut);
    if (m_Operation.summedAxes == 2 && m_Operation.Sweeps())
    {
      const std::int64_t lower = m_Operation.FirstIndex(box);
      Coordinates        slice = box.lower;
      slice[0] = 0;
      if (advance)
      {
        AdvanceRows(slice, lower, box.upper[1], carryIn, carryOut);
        return;
      }
      SumSlices(1, [&](std::int64_t) { return slice; }, lower, box.upper[1], carryIn, false);
      return;
    }
    Box outer = box;
    for (int a = 0; a < m_Operation.summedAxes; ++a)
    {
      outer.lower[a] = 0;
      outer.upper[a] = 1;
    }
    const std::int64_t slices = outer.NumberOfVoxels();
    const auto         sliceAt = [&](std::int64_t i) {
      Coordinates slice = outer.lower;
      for (int a = m_Operation.summedAxes; a < MaxDimension; ++a)
      {
        slice[a] += i % outer.Extent(a);
        i /= outer.Extent(a);
      }
      return slice;
    };
    if (m_Operation.summedAxes == 2)
    {
      SumSlices(slices, sliceAt, 0, box.upper[1], nullptr, false);
      return;
    }
    for (std::int64_t i = 0; i < slices && !IsStopped(); ++i)
    {
      Coordinates slice = sliceAt(i);
      StartPlane(m_Operation.Sweeps() ? carryIn : nullptr, box.upper[1]);
      slice[2] = m_Operation.FirstIndex(box);
      if (advance)
      {
        AddSlices(slice, box.upper[2], box.upper[1]);
        StorePlane(carryOut, box.upper[1]);
        continue;
      }
      AddSlices(slice, box.lower[2], box.upper[1]);
      const std::int64_t lower = std::max(slice[2], box.lower[2]);
      const auto         inVolume = [&](std::int64_t k) {
        Coordinates at = slice;
        at[2] = lower + k;
        return at;
      };
      SumSlices(box.upper[2] - lower, inVolume, 0, box.upper[1], nullptr, true);
    }
  }

private:
  static PixelType
  SumKind()
  {
    const bool isNarrow = sizeof(TLocal) == 4;
    return IsReal ? (isNarrow ? PixelType::Float32 : PixelType::Float64)
                  : (isNarrow ? PixelType::UInt32 : PixelType::UInt64);
  }
  static std::int64_t
  BandsOf(const Box & box)
  {
    return (box.upper[1] + BlockRows - 1) / BlockRows;
  }
  /** Slices that SumSlices() has in a call, or more. */
  static std::int64_t
  SlicesOf(const SummedAreaTableOperation & operation, const Box & box)
  {
    if (operation.summedAxes == 3)
    {
      return box.Extent(2);
    }
    return operation.Sweeps() ? 1 : box.NumberOfVoxels() / (box.Extent(0) * box.Extent(1));
  }
  /** Bands of several slices are work enough for some workers; beyond that they share each band's columns. */
  static std::int64_t
  StripOf(const SummedAreaTableOperation & operation, const Box & box, int workers)
  {
    const std::int64_t bands = std::min(SlicesOf(operation, box), BandsOf(box));
    const std::int64_t strips = (StripsForWorker * workers + bands - 1) / bands;
    return Padded(
      std::min(MostStripBytes / static_cast<std::int64_t>(sizeof(TLocal)), (box.upper[0] + strips - 1) / strips));
  }
  static std::int64_t
  Place(std::int64_t x)
  {
    return IsReal ? TablePlace(x) : x;
  }
  bool
  IsStopped() const
  {
    return m_Call->control && m_Call->control->ShouldStop();
  }
  std::int64_t
  ColumnsOf(std::int64_t strip) const
  {
    return std::min(m_Strip, m_Columns - strip * m_Strip);
  }
  template <typename T>
  void
  Gather(T * sums, const Wide * from, std::int64_t columns) const
  {
    std::fill(sums, sums + Padded(columns), T{ 0 });
    for (std::int64_t x = 0; from && x < columns; ++x)
    {
      sums[Place(x)] = static_cast<T>(from[x]);
    }
  }
  template <typename T>
  void
  Scatter(Wide * to, const T * sums, std::int64_t columns) const
  {
    for (std::int64_t x = 0; x < columns; ++x)
    {
      to[x] = static_cast<Wide>(sums[Place(x)]);
    }
  }

  /** The row's voxels, one after the other. */
  const void *
  Voxels(const Coordinates & slice, std::int64_t x, std::int64_t y, std::int64_t columns, void * copy) const
  {
    const BufferView & in = m_Call->inputs[0];
    Coordinates        at = slice;
    at[0] = x;
    at[1] = y;
    return DispatchPixelType(in.kind, [&](auto pixel) -> const void * {
      using In = decltype(pixel);
      const auto * const row = static_cast<const In *>(in.data) + in.Offset(at);
      if (in.stride[0] == 1)
      {
        return row;
      }
      for (std::int64_t i = 0; i < columns; ++i)
      {
        static_cast<In *>(copy)[i] = row[i * in.stride[0]];
      }
      return copy;
    });
  }

  /** One row of a strip, with the sums that `row` names. */
  void
  DoRow(const Coordinates & slice, std::int64_t strip, std::int64_t y, TableRow & row, Worker & worker) const
  {
    const std::int64_t x = strip * m_Strip;
    row.columns = ColumnsOf(strip);
    row.in = Voxels(slice, x, y, row.columns, worker.in);
    row.nextIn = m_Call->inputs[0].stride[1] * static_cast<std::int64_t>(PixelSize(m_Call->inputs[0].kind));
    m_Row(row);
  }

  /** The same, stored if the output has any of it. */
  void
  StoreRow(const Coordinates & slice, std::int64_t strip, std::int64_t y, TableRow & row, Worker & worker) const
  {
    const BufferView & out = m_Call->output;
    const std::int64_t x = strip * m_Strip;
    row.out = nullptr;
    if (y < out.box.lower[1] || y >= out.box.upper[1])
    {
      DoRow(slice, strip, y, row, worker);
      return;
    }
    row.first = out.box.lower[0] - x;
    row.last = out.box.upper[0] - x;
    Coordinates at = slice;
    at[0] = out.box.lower[0];
    at[1] = y;
    DispatchPixelType(out.kind, [&](auto pixel) {
      using Out = decltype(pixel);
      Out * const to = static_cast<Out *>(out.data) + out.Offset(at) - row.first * out.stride[0];
      row.isStaged = m_Streams || out.stride[0] != 1;
      row.out = row.isStaged ? worker.out : static_cast<void *>(to);
      row.nextOut = out.stride[1] * static_cast<std::int64_t>(sizeof(Out));
      DoRow(slice, strip, y, row, worker);
      if (!row.isStaged)
      {
        return;
      }
      const auto * const staged = static_cast<const Out *>(row.out);
      std::int64_t       i = std::max<std::int64_t>(row.first, 0);
      const std::int64_t last = std::min(row.last, row.columns);
      if (m_Streams && i < last)
      {
        GetCpuLevel().stream(to + i, staged + i, (last - i) * static_cast<std::int64_t>(sizeof(Out)));
        return;
      }
      for (; i < last; ++i)
      {
        to[i * out.stride[0]] = staged[i];
      }
    });
  }

  /** Rows [lower, upper) of n slices; with a plane each is added to it first, and the plane's table is stored. Tasks
   * are bands of rows of a slice; from strip to strip each follows the band above it and, on a plane, that of the slice
   * before. Workers begin them diagonal by diagonal, a band further down for each slice before, so that what a task
   * follows was begun a diagonal earlier. */
  template <typename TSliceAt>
  void
  SumSlices(std::int64_t n, TSliceAt && sliceAt, std::int64_t lower, std::int64_t upper, const Wide * carry,
            bool usesPlane)
  {
    const std::int64_t first = lower / BlockRows;
    const std::int64_t bands = (upper + BlockRows - 1) / BlockRows - first;
    for (std::int64_t i = 0; i < bands * m_Slices; ++i)
    {
      new (m_Progress + i) Progress;
    }
    const std::int64_t width = std::min(n, bands);
    m_Call->executor->ParallelFor((n + bands - 1) * width, [&](std::int64_t task, unsigned int index) {
      Worker &           worker = m_Workers[index];
      const std::int64_t diagonal = task / width;
      const std::int64_t band = n < bands ? diagonal - task % width : task % width;
      const std::int64_t slice = diagonal - band;
      if (band < 0 || band >= bands || slice < 0 || slice >= n)
      {
        return; // beyond a corner
      }
      const Coordinates  at = sliceAt(slice);
      const std::int64_t begin = std::max(lower, (first + band) * BlockRows);
      const std::int64_t end = std::min(upper, (first + band + 1) * BlockRows);
      // Strips that a band of a slice has done, behind those of slices that had its place before.
      const auto progressOf = [&](std::int64_t i, std::int64_t b) -> std::atomic<std::int64_t> & {
        return m_Progress[i % m_Slices * bands + b].strips;
      };
      const auto stripsUpTo = [&](std::int64_t i) { return i / m_Slices * m_Strips; };
      const auto await = [&](std::int64_t i, std::int64_t b, std::int64_t strips) {
        while (progressOf(i, b).load(std::memory_order_acquire) < strips)
        {
          std::this_thread::yield();
        }
      };
      await(slice, band, stripsUpTo(slice));
      const bool isStopped = IsStopped();
      std::fill(worker.left, worker.left + BlockRows, TSum{ 0 });
      // One that is stopped waits too, so that progress never goes back.
      for (std::int64_t strip = 0; strip < m_Strips; ++strip)
      {
        if (band > 0)
        {
          await(slice, band - 1, stripsUpTo(slice) + strip + 1);
        }
        else if (slice >= m_Slices)
        {
          await(slice, bands - 1, stripsUpTo(slice - m_Slices) + strip + 1);
        }
        if (usesPlane && slice > 0)
        {
          await(slice - 1, band, stripsUpTo(slice - 1) + strip + 1);
        }
        if (!isStopped)
        {
          TSum * const above = m_Above + slice % m_Slices * m_Padded + strip * m_Strip;
          StartStrip(above, strip, band == 0 ? carry : nullptr, band == 0, worker);
          SumBand(at, strip, begin, end, above, worker, usesPlane);
        }
        progressOf(slice, band).store(stripsUpTo(slice) + strip + 1, std::memory_order_release);
      }
      if (m_Streams)
      {
        GetCpuLevel().endStream();
      }
      if (m_Call->control && !isStopped)
      {
        const Box & box = m_Call->writable;
        m_Call->control->AddFinishedVoxels(
          box.Extent(0) * std::max<std::int64_t>(0, std::min(end, box.upper[1]) - std::max(begin, box.lower[1])));
      }
    });
  }

  /** Sums above a band's part of a strip; `above` itself is what the band before left unless this is the first. */
  void
  StartStrip(TSum * above, std::int64_t strip, const Wide * carry, bool isFirst, Worker & worker) const
  {
    const std::int64_t columns = ColumnsOf(strip);
    const Wide * const blocks = carry ? carry + strip * m_Strip : nullptr;
    const Wide * const sections = carry ? blocks + m_Columns : nullptr;
    const Wide * const local = carry ? sections + m_Columns : nullptr;
    if (isFirst)
    {
      Gather(above, blocks, columns);
    }
    if constexpr (IsReal)
    {
      Gather(worker.sections, sections, columns);
      Gather(worker.local, local, columns);
    }
    else
    {
      for (std::int64_t x = 0; carry && x < columns; ++x)
      {
        above[x] += static_cast<TSum>(sections[x] + local[x]);
      }
    }
  }

  void
  SumBand(const Coordinates & slice, std::int64_t strip, std::int64_t begin, std::int64_t end, TSum * above,
          Worker & worker, bool usesPlane)
  {
    const std::int64_t padded = Padded(ColumnsOf(strip));
    TableRow           row{};
    row.local = above;
    if constexpr (IsReal)
    {
      m_Level->before(worker.before, above, padded);
      row.local = worker.local;
      row.sections = worker.sections;
      row.before = worker.before;
    }
    for (std::int64_t y = begin; y < end; ++y)
    {
      row.plane = usesPlane ? m_Plane + y * m_Padded + strip * m_Strip : nullptr;
      row.left = worker.left + (y - begin);
      StoreRow(slice, strip, y, row, worker);
      if constexpr (IsReal)
      {
        EndRow(y, above, worker, padded);
      }
    }
  }

  /** After row y of floats: l becomes part of S, S of C, where a section or block ends. */
  void
  EndRow(std::int64_t y, TSum * blocks, Worker & worker, std::int64_t columns) const
  {
    if ((y + 1) % SectionRows != 0)
    {
      return;
    }
    for (std::int64_t x = 0; x < columns; ++x)
    {
      worker.sections[x] = worker.sections[x] + worker.local[x];
      worker.local[x] = 0;
    }
    for (std::int64_t x = 0; (y + 1) % BlockRows == 0 && x < columns; ++x)
    {
      blocks[x] = blocks[x] + static_cast<TSum>(worker.sections[x]);
      worker.sections[x] = 0;
    }
  }

  /** C, S and l behind rows [lower, upper); of integers, whose sums have no order, C is all and the others are 0. */
  void
  AdvanceRows(const Coordinates & slice, std::int64_t lower, std::int64_t upper, const Wide * carryIn, Wide * carryOut)
  {
    m_Call->executor->ParallelFor(m_Strips, [&](std::int64_t strip, unsigned int index) {
      Worker &           worker = m_Workers[index];
      const std::int64_t x = strip * m_Strip;
      const std::int64_t columns = ColumnsOf(strip);
      TSum * const       above = m_Above + x;
      Gather(above, carryIn + x, columns);
      Gather(worker.sections, carryIn + m_Columns + x, columns);
      Gather(worker.local, carryIn + 2 * m_Columns + x, columns);
      TableRow row{};
      row.local = worker.local;
      for (std::int64_t y = lower; y < upper; ++y)
      {
        DoRow(slice, strip, y, row, worker);
        if constexpr (IsReal)
        {
          EndRow(y, above, worker, Padded(columns));
        }
      }
      for (std::int64_t i = 0; !IsReal && i < columns; ++i)
      {
        above[i] += static_cast<TSum>(worker.sections[i] + worker.local[i]);
        worker.sections[i] = worker.local[i] = 0;
      }
      Scatter(carryOut + x, above, columns);
      Scatter(carryOut + m_Columns + x, worker.sections, columns);
      Scatter(carryOut + 2 * m_Columns + x, worker.local, columns);
    });
  }

  template <typename TBody>
  void
  ForRows(std::int64_t rows, TBody && body) const
  {
    m_Call->executor->ParallelFor(
      (rows + SectionRows - 1) / SectionRows, [&](std::int64_t section, unsigned int index) {
        for (std::int64_t y = section * SectionRows; y < std::min(rows, (section + 1) * SectionRows); ++y)
        {
          body(y, m_Workers[index]);
        }
      });
  }
  void
  StartPlane(const Wide * carry, std::int64_t rows)
  {
    ForRows(rows, [&](std::int64_t y, Worker &) {
      Gather(m_Plane + y * m_Padded, carry ? carry + y * m_Columns : nullptr, m_Columns);
    });
  }
  void
  StorePlane(Wide * carry, std::int64_t rows) const
  {
    ForRows(rows, [&](std::int64_t y, Worker &) { Scatter(carry + y * m_Columns, m_Plane + y * m_Padded, m_Columns); });
  }
  /** Adds slices up to `upper` to the plane. */
  void
  AddSlices(Coordinates slice, std::int64_t upper, std::int64_t rows)
  {
    ForRows(rows, [&](std::int64_t y, Worker & worker) {
      Coordinates at = slice;
      for (; at[2] < upper; ++at[2])
      {
        for (std::int64_t strip = 0; strip < m_Strips; ++strip)
        {
          TableRow row{};
          row.plane = m_Plane + y * m_Padded + strip * m_Strip;
          DoRow(at, strip, y, row, worker);
        }
      }
    });
  }

  const SummedAreaTableOperation & m_Operation;
  const std::int64_t               m_Columns;
  const std::int64_t               m_Padded;
  const std::int64_t               m_Strip;
  const std::int64_t               m_Strips;
  /** The number of slices that are computed at a time: as many as a diagonal has bands, and the slices that workers
   * reach beyond it. A bound that does not shrink where a chunk grows. */
  const std::int64_t m_Slices;
  /** For each of these slices, C for floats, all rows above for integers, of the strips that the last band has not
   * done.
   */
  TSum * const       m_Above;
  TSum * const       m_Plane;
  Progress * const   m_Progress;
  Worker * const     m_Workers;
  bool               m_Streams{ false };
  const KernelCall * m_Call{ nullptr };
  const TableLevel * m_Level{ nullptr };
  void (*m_Row)(const TableRow &){ nullptr };
};

/** Calls f with numbers of the types of sums. */
template <typename TFunctor>
void
DispatchSum(PixelType input, PixelType output, TFunctor && f)
{
  if (input == PixelType::Float32 && output == PixelType::Float32)
  {
    f(double{}, float{});
  }
  else if (IsFloatingPoint(input))
  {
    f(double{}, double{});
  }
  else if (!IsFloatingPoint(output) && PixelSize(output) == 4)
  {
    f(std::uint32_t{}, std::uint32_t{});
  }
  else
  {
    f(std::uint64_t{}, std::uint64_t{});
  }
}

void
RunTable(const KernelCall & call, bool advance)
{
  const auto & operation = static_cast<const SummedAreaTableOperation &>(*call.operation);
  // A carry of integers has all of 64 bits.
  const PixelType input = call.inputs[0].kind;
  const PixelType output = advance && !IsFloatingPoint(input) ? PixelType::Float64 : call.output.kind;
  DispatchSum(input, output, [&](auto sum, auto local) {
    Carver                                     carver(call.scratch);
    TableMaker<decltype(sum), decltype(local)> maker(
      operation, call.writable, static_cast<int>(call.executor->GetConcurrency()), carver);
    maker.Run(call, advance);
  });
}

std::size_t
ScratchOfTable(const Operation & operation, const ChunkShape & shape)
{
  std::size_t bytes = 0;
  for (const PixelType output : { shape.outputKind, PixelType::Float64 }) // of the table, and of a carry of integers
  {
    DispatchSum(shape.inputKinds[0], output, [&](auto sum, auto local) {
      Carver                                           carver(nullptr);
      const TableMaker<decltype(sum), decltype(local)> maker(
        static_cast<const SummedAreaTableOperation &>(operation), shape.outputBox, shape.concurrency, carver);
      bytes = std::max(bytes, carver.GetBytes());
    });
  }
  return bytes;
}

} // namespace

void
RegisterHostSummedAreaTable(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.compute.run = [](const KernelCall & call) { RunTable(call, false); };
  kernels.advance.run = [](const KernelCall & call) { RunTable(call, true); };
  kernels.compute.scratchBytes = kernels.advance.scratchBytes = ScratchOfTable;
  registry.Register("sat", kernels);
}

} // namespace chunkwise
