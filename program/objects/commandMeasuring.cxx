/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandMeasuring.h"

#include "commandInputs.h"
#include "commandJobNames.h"
#include "commandJson.h"
#include "commandReport.h"
#include "commandSignals.h"

#include "chunkwiseHostMemory.h"

#include <algorithm>
#include <iostream>
#include <sstream>

namespace command
{

chunkwise::files::JobNames
MakeNamesOfLabels(const CommandLine & line)
{
  chunkwise::files::JobNames names = MakeJobNames(line);
  names.input = "LABELS";
  names.additionalInput = [](const chunkwise::InputDescription &) { return std::string("INTENSITY"); };
  return names;
}

void
OpenLabels(const CommandLine & line, chunkwise::files::FileJob & job, chunkwise::MeasurementSettings & settings)
{
  const auto & header = job.SetInput(line.input, OpenInput(line.input, "LABELS", line.raw));
  settings.labelKind = header.kind;
  if (chunkwise::IsFloatingPoint(header.kind))
  {
    throw ArgumentError("LABELS: " + line.input + " has voxels of " + chunkwise::PixelTypeName(header.kind) +
                        "; labels are integers of 8 to 64 bits");
  }
  for (int a = chunkwise::MaxSpatialAxes; a < header.dimension; ++a)
  {
    if (header.extent[a] > 1)
    {
      throw ArgumentError("LABELS: " + line.input + " has " + std::to_string(header.dimension) +
                          " axes; objects are measured along up to 3");
    }
  }
  settings.dimension = std::min(header.dimension, +chunkwise::MaxSpatialAxes);
  settings.extent = header.extent;
  job.GetRequest().backend = chunkwise::BackendChoice::CPU;
}

chunkwise::MeasurementSpace
MakeSpaceOf(const chunkwise::files::ImageHeader & header)
{
  chunkwise::MeasurementSpace space;
  for (int a = 0; a < chunkwise::MaxDimension; ++a)
  {
    space.spacing[a] = header.spacing[a];
    space.origin[a] = header.origin[a];
    std::copy_n(header.direction[a], chunkwise::MaxDimension, space.direction[a]);
  }
  return space;
}

void
ShareMemoryOfTables(const CommandLine & line, chunkwise::files::FileJob & job, const chunkwise::Executor & executor,
                    chunkwise::MeasurementSettings & settings)
{
  const std::uint64_t own = std::max<std::uint64_t>(chunkwise::GetPeakHostMemory(), chunkwise::files::LeastOwnBytes);
  if (line.memory == 0)
  {
    settings.memory = chunkwise::GetAvailableHostMemory() / 2;
    job.MakePlan(0, own);
    return;
  }
  // A few objects, and what each thread has for a part of the image.
  const std::uint64_t ofThread = 40 * static_cast<std::uint64_t>(settings.extent[0]) + (std::uint64_t{ 1 } << 18);
  const std::uint64_t least = (std::uint64_t{ 1 } << 20) + ofThread * executor.GetConcurrency();
  settings.memory = line.memory > own ? (line.memory - own) / 2 : 0;
  if (settings.memory > least)
  {
    try
    {
      job.MakePlan(line.memory, own + settings.memory);
      return;
    }
    catch (const chunkwise::files::JobError &)
    {
      // With less for tables, then.
    }
  }
  settings.memory = least;
  job.MakePlan(line.memory, own + settings.memory);
}

void
PrintPlanOfLabels(const CommandLine & line, const chunkwise::files::FileJob & job,
                  const chunkwise::MeasurementSettings & settings, int reads)
{
  const auto & header = job.GetHeader();
  if (line.json)
  {
    std::cout << ToText({ { "filter", line.name },
                          { "input",
                            { { "file", line.input },
                              { "extent", ToJson(header.extent, header.dimension) },
                              { "type", chunkwise::PixelTypeName(header.kind) } } },
                          { "divisions", ToJson(job.GetPlan()) },
                          { "reads", reads } });
    return;
  }
  std::ostringstream os;
  os << "image: " << JoinLines(line.input) << ", " << ToString(header.extent) << " voxels of "
     << chunkwise::PixelTypeName(header.kind) << ", " << line.name << "\n";
  PrintDivisions(os, job.GetPlan());
  if (reads > 1)
  {
    os << "reads: " << reads << " times\n";
  }
  os << "tables: up to " << FormatBytes(static_cast<double>(settings.memory)) << "\n";
  std::cout << os.str();
}

void
ReadLabels(chunkwise::files::FileJob & job, Progress & progress,
           const std::function<void(const chunkwise::ExecutionRequest &)> & add)
{
  job.Read(&progress, [&](const chunkwise::ExecutionRequest & division, chunkwise::Monitor * ofDivision) {
    if (ofDivision->ShouldAbort())
    {
      throw chunkwise::Aborted();
    }
    add(division);
    ofDivision->UpdateProgress(1.0);
  });
  ThrowIfInterrupted();
}

void
PrintWarnings(const CommandLine & line, chunkwise::files::FileJob & job)
{
  for (const std::string & warning : job.TakeWarnings())
  {
    if (!line.quiet)
    {
      std::cerr << "chunkwise: warning: " << JoinLines(warning) << std::endl;
    }
  }
}

void
RefuseTables(const CommandLine & line, const chunkwise::MeasurementSettings & settings, std::int64_t labels)
{
  throw WorkError("--memory: the tables of " + std::to_string(labels) + " labels or more need more than the " +
                  FormatBytes(static_cast<double>(settings.memory)) + " that are left for them" +
                  (line.memory > 0 ? " of " + FormatBytes(static_cast<double>(line.memory)) : ""));
}

} // namespace command
