/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandFillHoles.h"

#include "commandInputs.h"
#include "commandJobNames.h"
#include "commandJson.h"
#include "commandMeasuring.h"
#include "commandProgress.h"
#include "commandSignals.h"
#include "commandSteps.h"

#include "chunkwiseLabelHoles.h"

#include <iostream>

namespace command
{

namespace
{

/** Numbers the parts of the background, into a file of the folder. */
std::string
LabelBackground(const CommandLine & line, const StepFolder & folder, std::int64_t voxels)
{
  const auto run = [&](std::vector<std::string> words) {
    for (const std::string & option : MakeStepOptions(line, Task::Filter))
    {
      words.push_back(option);
    }
    words.emplace_back("--quiet");
    RunStepOrThrow(words);
  };
  std::vector<std::string> threshold = { "threshold", line.input,  folder.GetFile(0), "--method=fixed",
                                         "--lower=0", "--upper=0", "--backend=cpu" };
  if (!line.raw.empty())
  {
    threshold.push_back("--raw=" + line.raw);
  }
  run(threshold);
  std::vector<std::string> label = { "label", folder.GetFile(0), folder.GetFile(1), "--backend=cpu" };
  if (voxels >= std::int64_t{ 1 } << 32)
  {
    label.emplace_back("--output-type=uint64");
  }
  run(label);
  std::error_code ignored;
  std::filesystem::remove(folder.GetFile(0), ignored);
  return folder.GetFile(1);
}

} // namespace

void
FillLabelHoles(const CommandLine & line)
{
  using chunkwise::ExecutionRequest;
  const NoSudden                       now;
  std::unique_ptr<chunkwise::Executor> executor = chunkwise::MakeThreadExecutor(line.threads);
  chunkwise::files::FileJob            job(MakeNamesOfLabels(line), *executor);
  chunkwise::MeasurementSettings       settings;
  OpenLabels(line, job, settings);
  const StepFolder  folder(line.output);
  const std::string file = LabelBackground(line, folder, job.GetImage().NumberOfVoxels());

  chunkwise::InputDescription parts;
  parts.name = "Parts";
  parts.ownKind = true;
  const chunkwise::PixelType kind = job.AddInput(parts, file, OpenInput(file, "the parts of the background")).kind;
  job.SetReading();
  job.GetRequest().divisions = line.divisions;
  job.GetRequest().written = job.GetImage();
  job.SetZarrOptions("--zarr", line.zarr);
  job.SetOutput(line.output, settings.labelKind, line.compress);
  ShareMemoryOfTables(line, job, *executor, settings);
  Progress              progress("fill-label-holes", job.GetImage().NumberOfVoxels(), ProgressStyle::None);
  chunkwise::LabelHoles holes(settings.labelKind, kind, settings.extent, settings.memory);
  try
  {
    ReadLabels(job, progress, [&](const ExecutionRequest & division) {
      holes.Add(division.inputs.front(), division.inputs.back(), division.region);
    });
  }
  catch (const chunkwise::BudgetError & error)
  {
    throw WorkError(std::string("--memory: ") + error.what());
  }
  const auto sink = job.CreateSink();
  ReadLabels(job, progress, [&](const ExecutionRequest & division) {
    holes.Fill(division.inputs.front(), division.inputs.back(), division.region);
    sink->Write(division.region, division.inputs.front());
  });
  job.WarnOfSources();
  sink->Finish();
  PrintWarnings(line, job);
  if (line.json)
  {
    std::cout << ToText(
      { { "filter", "fill-label-holes" }, { "output", line.output }, { "filled", holes.GetCount() } });
  }
}

} // namespace command
