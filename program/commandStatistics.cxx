/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandStatistics.h"

#include "chunkwiseStatistics.h"
#include "chunkwiseStreamedRun.h"
#include "commandInputs.h"
#include "commandJson.h"
#include "commandProgress.h"
#include "commandReport.h"
#include "commandSignals.h"

#include <iostream>
#include <sstream>

namespace command
{

namespace
{

class SignalControl : public chunkwise::RunControl
{
public:
  bool
  ShouldStop() const override
  {
    return WasInterrupted();
  }
  void
  AddFinishedVoxels(std::int64_t) override
  {}
};

} // namespace

void
PrintStatistics(const CommandLine & line)
{
  const std::shared_ptr<chunkwise::files::FileSource> source = OpenInput(line.input, "IN", line.raw);
  const auto                                          executor = chunkwise::MakeThreadExecutor(line.threads);
  const chunkwise::PixelKind                          kind = source->GetKind();
  chunkwise::StreamedRequest                          request;
  request.inputs.push_back({ source, kind });
  request.region = chunkwise::Box::FromExtent(source->GetExtent());
  request.divisions = line.divisions;
  request.executor = executor.get();
  auto &                        manager = chunkwise::Manager::GetGlobal();
  const chunkwise::StreamedPlan plan = chunkwise::MakeStreamedPlan(manager, request);
  if (line.planOnly && line.json)
  {
    std::cout << ToText({ { "filter", "statistics" },
                          { "input",
                            { { "file", line.input },
                              { "extent", ToJson(source->GetExtent(), source->GetHeader().dimension) },
                              { "type", chunkwise::PixelKindName(kind) } } },
                          { "divisions", ToJson(plan) } });
    return;
  }
  if (line.planOnly)
  {
    std::ostringstream os;
    os << "image: " << JoinLines(line.input) << ", " << ToString(source->GetExtent()) << " voxels of "
       << chunkwise::PixelKindName(kind) << ", statistics\n";
    PrintDivisions(os, plan);
    std::cout << os.str();
    return;
  }

  Progress                         progress("statistics", request.region.NumberOfVoxels(), ProgressStyle::None);
  SignalControl                    control;
  chunkwise::StatisticsAccumulator accumulator(kind);
  chunkwise::ReadStreamed(
    manager, request, plan, &progress, [&](const chunkwise::ExecutionRequest & division, chunkwise::Monitor *) {
      accumulator.Add(division.inputs.front(), division.region, executor.get(), &control);
    });
  ThrowIfInterrupted();

  const chunkwise::ImageStatistics statistics = accumulator.Get();
  if (statistics.GetCount() == 0)
  {
    throw WorkError("IN: " + line.input + " has no voxel that is a number" +
                    (statistics.GetNumberOfNaNs() > 0
                       ? ", all " + std::to_string(statistics.GetNumberOfNaNs()) + " are NaN"
                       : std::string()));
  }
  for (const std::string & warning : source->GetWarnings())
  {
    if (!line.quiet)
    {
      std::cerr << "chunkwise: warning: " << line.input << ": " << JoinLines(warning) << std::endl;
    }
  }
  if (line.json)
  {
    std::cout << ToText({ { "voxels", statistics.GetCount() },
                          { "sum", ToJson(statistics.GetSum()) },
                          { "mean", ToJson(statistics.GetMean()) },
                          { "minimum", ToJson(statistics.GetMinimum()) },
                          { "maximum", ToJson(statistics.GetMaximum()) },
                          { "standardDeviation", ToJson(statistics.GetStandardDeviation()) },
                          { "voxelsThatAreNaN", statistics.GetNumberOfNaNs() } });
    return;
  }
  const auto text = [](double value) { return chunkwise::PixelValue(value).ToText(); };
  const auto extremum = [&](const chunkwise::PixelValue & value) { return value.ToText(); };
  std::cout << "sum: " << text(statistics.GetSum()) << "\nmean: " << text(statistics.GetMean())
            << "\nminimum: " << extremum(statistics.GetMinimum()) << "\nmaximum: " << extremum(statistics.GetMaximum())
            << "\nstandard deviation: " << text(statistics.GetStandardDeviation()) << "\n";
  if (statistics.GetNumberOfNaNs() > 0)
  {
    std::cout << "voxels that are NaN, and left out: " << statistics.GetNumberOfNaNs() << "\n";
  }
}

} // namespace command
