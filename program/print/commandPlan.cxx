/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandPlan.h"

#include "commandJson.h"
#include "commandMemory.h"
#include "commandReport.h"
#include "commandTrial.h"

#include <iomanip>
#include <iostream>
#include <sstream>

namespace command
{

using chunkwise::files::FileJob;

namespace
{

/** Seconds of computing; 0 where nothing is known of them. */
double
GetExpectedSeconds(const FileJob & job)
{
  if (!job.HasPlanOfChunks())
  {
    return 0.0;
  }
  const chunkwise::StreamedPlan & plan = job.GetPlan();
  return job.UsesDevices()
           ? job.MakeTypicalPlan().seconds * static_cast<double>(plan.heldOnDevice < 0 ? plan.divisions : 1)
           : TimeOnNoise(job.GetRequest(), plan);
}

/** The layers of a network, for a chunk. */
std::vector<chunkwise::NetworkLayerDescription>
DescribeLayers(const FileJob & job)
{
#ifdef CHUNKWISE_HAS_NETWORKS
  if (const auto * const network = dynamic_cast<const chunkwise::NetworkOperation *>(job.GetRequest().operation.get()))
  {
    const auto plan = job.MakeTypicalPlan();
    return chunkwise::DescribeNetworkPlan(*network, plan, job.GetImage(), job.UsesDevices());
  }
#endif
  static_cast<void>(job);
  return {};
}

Json
DescribePlan(const CommandLine & line, const FileJob & job)
{
  const int                       dimension = job.GetOutputHeader().dimension;
  const chunkwise::StreamedPlan & plan = job.GetPlan();
  Json                            json = { { "filter", line.name },
                                           { "input",
                                             { { "file", line.input },
                                               { "extent", ToJson(job.GetImage().Extents(), dimension) },
                                               { "type", chunkwise::PixelTypeName(job.GetHeader().kind) } } },
                                           { "output",
                                             { { "file", line.output },
                                               { "extent", ToJson(job.GetRequest().written.Extents(), dimension) },
                                               { "components", job.GetOutputComponents() },
                                               { "type", chunkwise::PixelTypeName(job.GetOutputHeader().kind) } } },
                                           { "components", job.GetHeader().components },
                                           { "inSlabs", plan.inSlabs },
                                           { "heldOnDevice", plan.heldOnDevice < 0 ? Json() : Json(plan.heldOnDevice) },
                                           { "heldOnOthers", plan.heldOnOthers },
                                           { "divisions", ToJson(plan) },
                                           { "chunks", nullptr },
                                           { "bytesBesideDivisions", job.GetBytesBesideDivisions() },
                                           { "budgetFactor", nullptr },
                                           { "secondsExpected", nullptr } };
  if (job.HasPlanOfChunks())
  {
    auto &     manager = chunkwise::Manager::GetGlobal();
    const auto request = job.MakeTypicalRequest();
    json["chunks"] = ToJson(job.MakeTypicalPlan(), dimension, job.UsesDevices());
    json["budgetFactor"] = ToJson(manager.GetCostOfBudget(request).budget.factor);
  }
  if (const auto layers = DescribeLayers(job); !layers.empty())
  {
    json["layers"] = ToJson(layers);
  }
  if (const double seconds = GetExpectedSeconds(job); seconds > 0.0)
  {
    json["secondsExpected"] = seconds;
  }
  return json;
}

/** The cost of the budget, and the memory that would be enough. */
void
PrintCostOfMemory(std::ostream & os, const CommandLine & line, const FileJob & job)
{
  if ((!line.memory && !line.deviceMemory) || job.GetPlan().heldOnDevice >= 0)
  {
    return;
  }
  const auto cost = chunkwise::Manager::GetGlobal().GetCostOfBudget(job.MakeTypicalRequest());
  const bool ofDevice = cost.memory == "device";
  os << "budget: " << (ofDevice ? "--device-memory" : "--memory");
  if (cost.budget.factor < 1.05)
  {
    os << " costs computing no time\n";
    return;
  }
  os << " makes computing take " << std::setprecision(3) << cost.budget.factor << " times as long as without a limit";
  if (cost.budget.factor > 1.25)
  {
    const std::uint64_t beside = ofDevice ? 0 : job.GetBytesBesideDivisions() + job.GetPlan().bytesAtOnce;
    os << "; about " << FormatNeed(beside + cost.budget.sufficient) << " would avoid that";
  }
  os << "\n";
}

} // namespace

void
PrintImage(std::ostream & os, const CommandLine & line, const FileJob & job)
{
  os << "image: " << JoinLines(line.input) << ", ";
  for (int a = 0; a < job.GetOutputHeader().dimension; ++a)
  {
    os << (a ? " x " : "") << job.GetImage().Extent(a);
  }
  os << " voxels of " << chunkwise::PixelTypeName(job.GetHeader().kind) << " to "
     << chunkwise::PixelTypeName(job.GetOutputHeader().kind) << ", " << line.name;
  if (job.GetOutputComponents() > 1)
  {
    os << ", each of " << job.GetOutputComponents() << " components";
  }
  if (!line.region.empty())
  {
    os << ", " << ToString(job.GetRequest().written.Extents()) << " of them";
  }
  os << "\n";
}

void
PrintCuts(std::ostream & os, const CommandLine & line, const FileJob & job)
{
  PrintDivisions(os, job.GetPlan());
  if (job.HasPlanOfChunks())
  {
    PrintPlan(
      os, job.MakeTypicalPlan(), job.GetOutputHeader().dimension, job.UsesDevices(), job.GetPlan().heldOnDevice >= 0);
    PrintCostOfMemory(os, line, job);
  }
}

void
PrintPlanOfRun(const CommandLine & line, const FileJob & job)
{
  if (line.json)
  {
    std::cout << ToText(DescribePlan(line, job));
    return;
  }
  std::ostringstream os;
  PrintImage(os, line, job);
  PrintCuts(os, line, job);
  if (const auto layers = DescribeLayers(job); !layers.empty())
  {
    PrintLayers(os, layers);
  }
  const double seconds = GetExpectedSeconds(job);
  if (seconds == 0.0)
  {
    os << "expected: unknown, the time depends on what is in the image\n";
  }
  else
  {
    os << "expected: " << std::setprecision(3) << seconds << " s of computing"
       << (job.UsesDevices() ? "" : ", by a trial on noise")
       << (job.GetPlan().heldOnDevice >= 0 ? ", after the file is read and before one is written\n"
                                           : ", beside which files are read and written\n");
  }
  std::cout << os.str();
}

} // namespace command
