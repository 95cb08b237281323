/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandStatistics.h"

#include "commandInputs.h"
#include "commandJobNames.h"
#include "commandJson.h"
#include "commandProgress.h"
#include "commandReport.h"
#include "commandSignals.h"

#include "chunkwiseHostMemory.h"
#include "chunkwiseStatistics.h"

#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <sstream>

namespace command
{

namespace
{

using chunkwise::BufferView;
using chunkwise::ExecutionRequest;
using chunkwise::PixelValue;

/** The output of the run. */
struct Results
{
  chunkwise::ImageStatistics            statistics;
  std::vector<chunkwise::ImageQuantile> quantiles;
  chunkwise::ImageHistogram             histogram;
};

/** The voxels of the first view where the mask is not 0, moved to its beginning: how many. Statistics depend on no
 * order. */
template <typename TMask>
std::int64_t
GatherInside(const BufferView & view, const TMask * mask)
{
  auto * const       voxels = static_cast<char *>(view.data);
  const std::size_t  size = PixelSize(view.kind);
  const std::int64_t count = view.box.NumberOfVoxels();
  std::int64_t       inside = 0;
  for (std::int64_t begin = 0, end = 0; begin < count; begin = end)
  {
    // A run of voxels on one side of the mask's surface.
    const bool isInside = mask[begin] != TMask(0);
    while (end < count && (mask[end] != TMask(0)) == isInside)
    {
      ++end;
    }
    if (isInside)
    {
      std::memmove(voxels + static_cast<std::size_t>(inside) * size,
                   voxels + static_cast<std::size_t>(begin) * size,
                   static_cast<std::size_t>(end - begin) * size);
      inside += end - begin;
    }
  }
  return inside;
}

/** Reads an image once for each statistic that needs it. */
class StatisticsRun
{
public:
  explicit StatisticsRun(const CommandLine & line);

  void
  PrintPlan() const;
  Results
  Compute();

private:
  void
  Read(chunkwise::Monitor * monitor, const std::function<void(const ExecutionRequest &, chunkwise::Monitor *)> & add);
  int
  CountReads() const;

  const CommandLine &                  m_Line;
  std::unique_ptr<chunkwise::Executor> m_Executor;
  chunkwise::files::FileJob            m_Job;
  chunkwise::PixelType                 m_Kind;
};

StatisticsRun::StatisticsRun(const CommandLine & line)
  : m_Line(line)
  , m_Executor(chunkwise::MakeThreadExecutor(line.threads))
  , m_Job(MakeJobNames(line), *m_Executor)
{
  m_Kind = m_Job.SetInput(m_Line.input, OpenInput(m_Line.input, "IN", m_Line.raw)).kind;
  if (!m_Line.mask.empty())
  {
    chunkwise::InputDescription mask;
    mask.option = "mask";
    const auto & header = m_Job.AddInput(mask, m_Line.mask, OpenInput(m_Line.mask, "--mask"));
    if (chunkwise::IsFloatingPoint(header.kind))
    {
      throw ArgumentError("--mask: " + m_Line.mask + " has voxels of " + chunkwise::PixelTypeName(header.kind) +
                          "; a mask has integers");
    }
  }
  m_Job.SetReading();
  chunkwise::StreamedRequest & request = m_Job.GetRequest();
  request.backend = chunkwise::BackendChoice::CPU;
  request.divisions = m_Line.divisions;
  // Each thread has separate counts, 4 MiB for quantiles, and so has the total.
  const std::uint64_t counts = (std::uint64_t{ m_Executor->GetConcurrency() } + 2) << 22;
  const bool          hasCounts = m_Line.histogramBins > 0 || !m_Line.quantiles.empty();
  m_Job.MakePlan(m_Line.memory, chunkwise::GetPeakHostMemory() + (hasCounts ? counts : 0));
}

/** The image, and each voxel of it, is read so many times. */
int
StatisticsRun::CountReads() const
{
  const int ofQuantiles = m_Line.quantiles.empty() ? 0 : std::max(1, static_cast<int>(PixelSize(m_Kind)) / 2);
  return 1 + (m_Line.histogramBins > 0 ? 1 : 0) + ofQuantiles;
}

void
StatisticsRun::PrintPlan() const
{
  const auto & header = m_Job.GetHeader();
  if (m_Line.json)
  {
    std::cout << ToText({ { "filter", "statistics" },
                          { "input",
                            { { "file", m_Line.input },
                              { "extent", ToJson(header.extent, header.dimension) },
                              { "type", chunkwise::PixelTypeName(m_Kind) } } },
                          { "divisions", ToJson(m_Job.GetPlan()) },
                          { "reads", this->CountReads() } });
    return;
  }
  std::ostringstream os;
  os << "image: " << JoinLines(m_Line.input) << ", " << ToString(header.extent) << " voxels of "
     << chunkwise::PixelTypeName(m_Kind) << ", statistics\n";
  PrintDivisions(os, m_Job.GetPlan());
  if (this->CountReads() > 1)
  {
    os << "reads: " << this->CountReads() << " times\n";
  }
  std::cout << os.str();
}

/** The voxels that count, a division at a time. */
void
StatisticsRun::Read(chunkwise::Monitor *                                                        monitor,
                    const std::function<void(const ExecutionRequest &, chunkwise::Monitor *)> & add)
{
  m_Job.Read(monitor, [&](ExecutionRequest division, chunkwise::Monitor * ofDivision) {
    // MakePlan has counted what a run takes beside the images.
    division.budgets = chunkwise::Budgets();
    BufferView & view = division.inputs.front();
    if (division.inputs.size() > 1)
    {
      const BufferView & mask = division.inputs.back();
      const std::int64_t inside = chunkwise::DispatchPixelType(
        mask.kind, [&](auto pixel) { return GatherInside(view, static_cast<const decltype(pixel) *>(mask.data)); });
      chunkwise::Box box = chunkwise::Box::FromExtent(chunkwise::Coordinates::Filled(1));
      box.upper[0] = inside;
      view = chunkwise::DenseView(view.data, view.kind, box);
      division.inputs.resize(1);
      division.image = division.region = box;
    }
    if (!division.region.IsEmpty())
    {
      add(division, ofDivision);
    }
  });
  ThrowIfInterrupted();
}

Results
StatisticsRun::Compute()
{
  auto &                           manager = chunkwise::Manager::GetGlobal();
  Progress                         progress("statistics", m_Job.GetImage().NumberOfVoxels(), ProgressStyle::None);
  chunkwise::StatisticsAccumulator accumulator(m_Kind);
  this->Read(&progress, [&](const ExecutionRequest & division, chunkwise::Monitor * monitor) {
    accumulator.Add(manager, division, monitor);
  });
  Results results;
  results.statistics = accumulator.Get();
  if (results.statistics.GetCount() == 0)
  {
    const std::int64_t nans = results.statistics.GetNumberOfNaNs();
    throw WorkError("IN: " + m_Line.input + " has no voxel that is a number" +
                    (m_Line.mask.empty() ? "" : " inside the mask") +
                    (nans > 0 ? ", all " + std::to_string(nans) + " are NaN" : std::string()));
  }
  const chunkwise::SummaryRun run = [&](const std::shared_ptr<const chunkwise::Operation> & operation,
                                        chunkwise::Monitor *                                monitor) {
    chunkwise::ChunkState total(operation->GetSummaryBytes(m_Job.GetImage(), { m_Kind }, m_Kind), 0);
    this->Read(monitor, [&](ExecutionRequest division, chunkwise::Monitor * ofDivision) {
      division.operation = operation;
      operation->MergeSummary(total, manager.Summarise(division, ofDivision));
    });
    return total;
  };
  if (!m_Line.quantiles.empty())
  {
    results.quantiles = chunkwise::ComputeQuantiles(run, m_Kind, m_Line.quantiles, &progress);
  }
  if (m_Line.histogramBins > 0)
  {
    if (results.statistics.GetCount() == results.statistics.GetNumberOfInfinities())
    {
      throw WorkError("--histogram: IN: " + m_Line.input + " has no finite voxel" +
                      (m_Line.mask.empty() ? "" : " inside the mask"));
    }
    chunkwise::ValueRange range{ results.statistics.GetFiniteMinimum().As<double>(),
                                 results.statistics.GetFiniteMaximum().As<double>() };
    if (range.lower == range.upper)
    {
      // One unit, or as much as doubles of that size are apart.
      constexpr double infinity = std::numeric_limits<double>::infinity();
      range = { std::min(range.lower - 0.5, std::nextafter(range.lower, -infinity)),
                std::max(range.upper + 0.5, std::nextafter(range.upper, infinity)) };
    }
    try
    {
      results.histogram = chunkwise::ComputeHistogram(run, m_Line.histogramBins, range, &progress);
    }
    catch (const chunkwise::ParameterError & error)
    {
      throw WorkError(std::string("--histogram: ") + error.what());
    }
  }
  m_Job.WarnOfSources();
  for (const std::string & warning : m_Job.TakeWarnings())
  {
    if (!m_Line.quiet)
    {
      std::cerr << "chunkwise: warning: " << JoinLines(warning) << std::endl;
    }
  }
  return results;
}

/** Whether it is the voxel `lower`, which keeps all its digits. */
bool
IsVoxel(const chunkwise::ImageQuantile & quantile)
{
  return quantile.linear == quantile.lower.As<double>();
}

Json
DescribeResults(const CommandLine & line, const Results & results)
{
  const chunkwise::ImageStatistics & statistics = results.statistics;
  Json                               json = { { "voxels", statistics.GetCount() },
                                              { "sum", ToJson(statistics.GetSum()) },
                                              { "mean", ToJson(statistics.GetMean()) },
                                              { "minimum", ToJson(statistics.GetMinimum()) },
                                              { "maximum", ToJson(statistics.GetMaximum()) },
                                              { "standardDeviation", ToJson(statistics.GetStandardDeviation()) },
                                              { "voxelsThatAreNaN", statistics.GetNumberOfNaNs() } };
  for (std::size_t i = 0; i < results.quantiles.size(); ++i)
  {
    const chunkwise::ImageQuantile & quantile = results.quantiles[i];
    json["quantiles"].push_back({ { "fraction", line.quantiles[i] },
                                  { "value", IsVoxel(quantile) ? ToJson(quantile.lower) : ToJson(quantile.linear) },
                                  { "lower", ToJson(quantile.lower) },
                                  { "next", ToJson(quantile.next) } });
  }
  if (line.histogramBins > 0)
  {
    json["histogram"] = { { "lower", ToJson(results.histogram.lower) },
                          { "upper", ToJson(results.histogram.upper) },
                          { "counts", results.histogram.counts } };
  }
  return json;
}

void
PrintResults(const CommandLine & line, const Results & results)
{
  const chunkwise::ImageStatistics & statistics = results.statistics;
  const auto                         text = [](double value) { return PixelValue(value).ToText(); };
  std::cout << "sum: " << text(statistics.GetSum()) << "\nmean: " << text(statistics.GetMean())
            << "\nminimum: " << statistics.GetMinimum().ToText() << "\nmaximum: " << statistics.GetMaximum().ToText()
            << "\nstandard deviation: " << text(statistics.GetStandardDeviation()) << "\n";
  if (statistics.GetNumberOfNaNs() > 0)
  {
    std::cout << "voxels that are NaN, and left out: " << statistics.GetNumberOfNaNs() << "\n";
  }
  for (std::size_t i = 0; i < results.quantiles.size(); ++i)
  {
    const chunkwise::ImageQuantile & quantile = results.quantiles[i];
    std::cout << "quantile " << text(line.quantiles[i]) << ": "
              << (IsVoxel(quantile) ? quantile.lower.ToText() : text(quantile.linear)) << "\n";
  }
  const chunkwise::ImageHistogram & histogram = results.histogram;
  const double                      width = (histogram.upper - histogram.lower) / std::max(1, line.histogramBins);
  for (std::size_t i = 0; i < histogram.counts.size(); ++i)
  {
    const bool isLast = i + 1 == histogram.counts.size();
    std::cout << "from " << text(histogram.lower + static_cast<double>(i) * width) << " to "
              << text(isLast ? histogram.upper : histogram.lower + static_cast<double>(i + 1) * width) << ": "
              << histogram.counts[i] << "\n";
  }
}

} // namespace

void
PrintStatistics(const CommandLine & line)
{
  StatisticsRun run(line);
  if (line.planOnly)
  {
    run.PrintPlan();
    return;
  }
  const Results results = run.Compute();
  if (line.json)
  {
    std::cout << ToText(DescribeResults(line, results));
    return;
  }
  PrintResults(line, results);
}

} // namespace command
