/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseHostMemory.h"
#include "chunkwiseManager.h"
#include "chunkwiseMeasureOperation.h"
#include "chunkwiseMeasureTable.h"
#include "chunkwisePartMonitor.h"
#include "chunkwiseRunnerRun.h"
#include "chunkwiseSerialExecutor.h"
#include "chunkwiseStatistics.h"

#include <algorithm>
#include <atomic>
#include <functional>

namespace chunkwise
{

namespace
{

/** A table that one chunk makes is the result. */
class TableOfRegion : public MeasureOperation
{
public:
  bool
  SummaryIsTotal() const override
  {
    return true;
  }
};

/** Rows that a task takes. */
constexpr std::int64_t RowsOfTask = 256;

/** Calls visit(begin, end) for ranges of rows at once. */
template <typename TVisit>
void
ForRangesOfRows(std::int64_t rows, Executor & executor, TVisit && visit)
{
  executor.ParallelFor((rows + RowsOfTask - 1) / RowsOfTask, [&](std::int64_t task, unsigned int) {
    visit(task * RowsOfTask, std::min(rows, (task + 1) * RowsOfTask));
  });
}

std::uint64_t
BitsOf(const PixelValue & label, PixelType kind)
{
  return DispatchPixelType(kind, [&](auto pixel) {
    if constexpr (std::is_integral<decltype(pixel)>::value)
    {
      return BitsOfLabel(label.As<decltype(pixel)>());
    }
    return std::uint64_t{ 0 };
  });
}

/** Sets the rows for all labels that may be there. */
void
SetRows(MeasureOperation & operation, Manager & manager, const ExecutionRequest & request, Monitor * monitor)
{
  const PixelType kind = operation.settings.labelKind;
  if (PixelSize(kind) == 1)
  {
    operation.firstLabel = kind == PixelType::Int8 ? BitsOfLabel(std::int8_t{ -128 }) : 0;
    operation.rows = 256;
    return;
  }
  ExecutionRequest range = request;
  range.operation = nullptr;
  range.inputs.resize(1);
  range.region = PadAndCrop(request.region, operation.GetHalo(request.image.Extents()), request.image);
  const ImageStatistics statistics = ComputeStatistics(manager, range, monitor);
  operation.firstLabel = BitsOf(statistics.GetMinimum(), kind);
  const std::uint64_t last = BitsOf(statistics.GetMaximum(), kind) - operation.firstLabel;
  // Many more numbers than voxels are a matter of memory, see Measurements::Add.
  operation.rows = static_cast<std::int64_t>(std::min<std::uint64_t>(last, std::uint64_t{ 1 } << 40) + 1);
}

/** The digits that numbers use: from `low` on to one before `high`. */
struct UsedDigits
{
  int low;
  int high;
};

/** The digits that the rows from `begin` on to one before `end` use. */
UsedDigits
FindUsedDigits(const MeasureLayout & layout, const std::int64_t * table, std::int64_t begin, std::int64_t end)
{
  const int all = layout.high - layout.low;
  int       low = all;
  int       high = 0;
  // `scale`: digits for one of the sum; `more`: further ones.
  const auto look = [&](const std::int64_t * digits, int count, int scale, int more) {
    // Those from the last one on that only repeat the sign.
    int          last = count - 1;
    std::int64_t sign = digits[last] == -1 ? 0xFFFFFFFF : 0;
    const bool   isPlain = digits[last] == 0 || digits[last] == -1;
    while (isPlain && last > 0 && digits[last - 1] == sign)
    {
      --last;
    }
    int first = 0;
    while (first < last && digits[first] == 0)
    {
      ++first;
    }
    if (last > 0 || digits[0] != 0)
    {
      low = std::min(low, first / scale);
      high = std::max(high, last / scale + 1 - more);
    }
  };
  for (std::int64_t i = begin; all > 0 && i < end; ++i)
  {
    const std::int64_t * const row = table + i * layout.words;
    if (layout.IsEmpty(row))
    {
      continue;
    }
    look(row + layout.GetSum(), all, 1, 0);
    if (layout.details)
    {
      look(row + layout.GetSquares(), 2 * all, 2, 0);
    }
    for (int a = 0; layout.weighted && a < layout.dimension; ++a)
    {
      look(row + layout.GetWeighted(a), all + 2, 1, 2);
    }
  }
  return { low, high };
}

/** The digits that the numbers of a table use, and one more for carries: few of all that the summary has. */
MeasureLayout
NarrowLayout(const MeasureLayout & layout, const std::int64_t * table, std::int64_t rows, Executor & executor)
{
  const int        all = layout.high - layout.low;
  std::atomic<int> low{ all };
  std::atomic<int> high{ 0 };
  const auto       replace = [](std::atomic<int> & number, int by, const auto & isBetter) {
    for (int known = number; isBetter(by, known) && !number.compare_exchange_weak(known, by);)
    {
    }
  };
  ForRangesOfRows(rows, executor, [&](std::int64_t begin, std::int64_t end) {
    const UsedDigits used = FindUsedDigits(layout, table, begin, end);
    replace(low, used.low, std::less<>());
    replace(high, used.high, std::greater<>());
  });
  MeasureLayout narrow = layout;
  if (low < all)
  {
    narrow.SetDigits(layout.low + std::min<int>(low, all - 2),
                     layout.low + std::min(std::max<int>(high, low + 1) + 1, all));
  }
  else
  {
    narrow.SetDigits(0, 0);
  }
  return narrow;
}

/** Throws BudgetError if there are far more rows than voxels, or the host has no memory for `all` bytes, tables of
 * `bytes` each. */
void
RequireRoomForRows(const MeasureOperation & operation, const Box & region, std::size_t bytes, std::uint64_t all)
{
  const std::int64_t most = std::min(std::max<std::int64_t>(4 * region.NumberOfVoxels(), 1 << 16),
                                     std::int64_t{ 0xFFFFFFFE }); // rows are numbered with 32 bits
  if (operation.rows > most)
  {
    throw BudgetError("labels from the least to the largest one would take " + std::to_string(bytes) +
                        " bytes of a device's memory; there are more numbers between them than voxels",
                      bytes,
                      static_cast<std::size_t>(most) * (bytes / static_cast<std::size_t>(operation.rows)));
  }
  constexpr std::uint64_t few = std::uint64_t{ 1 } << 26;
  const std::uint64_t     available = all > few ? GetAvailableHostMemory() : 0;
  if (available > 0 && all > available)
  {
    throw BudgetError("tables of labels from the least to the largest one take " + std::to_string(all) +
                        " bytes of host memory, " + std::to_string(available) + " are there",
                      static_cast<std::size_t>(all),
                      static_cast<std::size_t>(available));
  }
}

void
MergeSummary(const MeasureOperation & operation, const ChunkState & summary, MeasureRows & rows, Executor & executor)
{
  const MeasureLayout layout = operation.GetLayout();
  const auto * const  table = reinterpret_cast<const std::int64_t *>(summary.data());
  const MeasureLayout narrow = NarrowLayout(layout, table, operation.rows, executor);
  rows.NeedDigits(narrow.low, narrow.high);
  std::vector<std::uint32_t> slots(static_cast<std::size_t>(operation.rows), LabelSlots::None);
  for (std::int64_t i = 0; i < operation.rows; ++i)
  {
    const std::int64_t * const row = table + i * layout.words;
    if (!layout.IsEmpty(row))
    {
      slots[static_cast<std::size_t>(i)] = rows.FindOrAdd(static_cast<std::uint64_t>(row[MeasureLayout::label]));
    }
  }
  // Each row has a label that no other one has.
  ForRangesOfRows(operation.rows, executor, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
    {
      const std::uint32_t slot = slots[static_cast<std::size_t>(i)];
      if (slot != LabelSlots::None)
      {
        rows.GetLayout().Add(rows.GetRow(slot), layout, table + i * layout.words);
      }
    }
  });
}

} // namespace

void
Measurements::Summarise(const MeasureOperation & operation, std::int64_t * summary) const
{
  const MeasureRows & rows = m_State->rows;
  const MeasureLayout layout = operation.GetLayout();
  std::fill_n(summary, operation.rows * layout.words, std::int64_t{ 0 });
  for (std::size_t i = 0; i < rows.GetSize(); ++i)
  {
    const std::int64_t * const measured = rows.GetRow(static_cast<std::uint32_t>(i));
    if (rows.GetLayout().IsEmpty(measured))
    {
      continue;
    }
    const std::uint64_t  label = rows.GetLabels()[i];
    std::int64_t * const row = summary + static_cast<std::int64_t>(label - operation.firstLabel) * layout.words;
    layout.Begin(row, label);
    layout.Add(row, rows.GetLayout(), measured);
  }
}

void
Measurements::Add(Manager & manager, const ExecutionRequest & request, Monitor * monitor)
{
  if (request.region.IsEmpty())
  {
    return;
  }
  State &                     state = *m_State;
  const MeasurementSettings & settings = state.settings;
  const bool                  hasImages = request.inputs.size() == (settings.hasIntensity ? 2u : 1u);
  const std::string           objection = MeasureOperation::GetObjectionTo(settings);
  const bool                  isResident = request.imageDevice >= 0;
  const bool                  mustBeDevice = isResident || request.backend == BackendChoice::CUDA;
  if (!hasImages || !(request.image == Box::FromExtent(settings.extent)))
  {
    throw ParameterError("the images to measure are others than those of the settings");
  }
  if (!objection.empty() && mustBeDevice)
  {
    throw ParameterError(objection);
  }
  std::unique_ptr<Executor> own;
  const auto                getExecutor = [&]() -> Executor & {
    own = request.executor || own ? std::move(own) : MakeThreadExecutor();
    return request.executor ? *request.executor : *own;
  };
  const auto onHost = [&] {
    this->Add(request.inputs[0], settings.hasIntensity ? &request.inputs[1] : nullptr, request.region, getExecutor());
    PartMonitor(monitor, 0, 1).UpdateProgress(1);
  };
  if (request.backend != BackendChoice::CPU)
  {
    CheckDevices(manager, request.devices);
  }
  const bool isForHost = request.backend == BackendChoice::CPU || manager.GetDevices().empty();
  if (!objection.empty() || (isForHost && !mustBeDevice))
  {
    onHost();
    return;
  }
  ExecutionRequest run = request;
  const auto       operation = std::make_shared<TableOfRegion>();
  operation->settings = settings;
  PartMonitor first(monitor, 0, 0.4);
  PartMonitor second(monitor, 0.4, 1);
  ChunkState  summary;
  try
  {
    SetRows(*operation, manager, request, &first);
    // The table, and one for each chunk that a device computes.
    const std::size_t   bytes = operation->GetSummaryBytes(request.region, {}, PixelType::UInt8);
    const std::uint64_t all = (1 + std::max<std::size_t>(1, isResident ? 1 : manager.GetDevices().size())) * bytes;
    CountedBytes        held(state.meter);
    held.Take(all);
    RequireRoomForRows(*operation, request.region, bytes, all);
    if (settings.memory > 0)
    {
      // For what the CPU measures of a device that fails.
      operation->settings.memory = std::max<std::uint64_t>(1, settings.memory - state.meter.GetUsed());
    }
    run.operation = operation;
    summary = manager.Summarise(run, &second);
  }
  catch (const BudgetError &)
  {
    if (mustBeDevice)
    {
      throw;
    }
    onHost();
    return;
  }
  SerialExecutor alone;
  MergeSummary(*operation, summary, state.rows, operation->rows > 4 * RowsOfTask ? getExecutor() : alone);
  state.planeIndex = -1;
  state.isPrepared = false;
}

} // namespace chunkwise
