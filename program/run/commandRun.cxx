/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandRun.h"

#include "commandBatch.h"
#include "commandChain.h"
#include "commandComputation.h"
#include "commandDevices.h"
#include "commandFiles.h"
#include "commandFillHoles.h"
#include "commandFilterLabels.h"
#include "commandInputs.h"
#include "commandJobNames.h"
#include "commandJson.h"
#include "commandMeasure.h"
#include "commandPlan.h"
#include "commandProgress.h"
#include "commandSeparate.h"
#include "commandSignals.h"
#include "commandStatistics.h"
#include "fileComponent.h"
#include "fileJob.h"

#include "chunkwiseHostMemory.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <unistd.h>

namespace command
{

namespace
{

using chunkwise::files::FileJob;
using Clock = std::chrono::steady_clock;

double
Since(Clock::time_point start)
{
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/** Reads, filters and writes one file. */
class FileRun
{
public:
  explicit FileRun(const CommandLine & line);

  const FileJob &
  GetJob() const
  {
    return m_Job;
  }
  RunReport
  Execute();

private:
  void
  OpenInputs();
  void
  SplitInput(std::int64_t components, const std::function<std::unique_ptr<chunkwise::files::FileSource>()> & open);
  void
  PrepareOutput();
  void
  TakeEstimate(Progress & progress);
  RunReport
  MakeReport(double seconds) const;
  void
  Warn(const std::string & text);
  void
  WarnOfJob();

  const CommandLine &                  m_Line;
  std::unique_ptr<chunkwise::Executor> m_Executor;
  FileJob                              m_Job;
  std::unique_ptr<Computation>         m_Computation;
  std::vector<std::string>             m_Warnings;
  decltype(RunReport::estimate)        m_Estimate;
};

FileRun::FileRun(const CommandLine & line)
  : m_Line(line)
  , m_Executor(chunkwise::MakeThreadExecutor(line.threads))
  , m_Job(MakeJobNames(line), *m_Executor)
{
  this->OpenInputs();
  m_Computation = std::make_unique<Computation>(m_Line, m_Job);
  chunkwise::StreamedRequest & request = m_Job.GetRequest();
  request.backend = m_Line.backend;
  request.devices = m_Line.devices;
  request.budgets.device = m_Line.deviceMemory;
  request.divisions = m_Line.divisions;
  this->PrepareOutput();
  // Looking for devices takes memory itself, which counts.
  m_Job.UsesDevices();
  m_Job.MakePlan(m_Line.memory, chunkwise::GetPeakHostMemory());
  this->WarnOfJob();
}

void
FileRun::OpenInputs()
{
  const chunkwise::FilterDescription & filter = *m_Line.stages.front().filter;
  const auto                           open = [this] {
    return OpenInputWithComponents(m_Line.input, m_Line.levels.empty() ? "IN" : "STORE", m_Line.raw);
  };
  auto       source = open();
  const auto components = source->GetHeader().components;
  if (components > 1 && filter.splitsComponents)
  {
    this->SplitInput(components, open);
    return;
  }
  const auto & header = m_Job.SetInput(m_Line.input, std::move(source));
  if (header.components > 1 && !filter.takesComponents)
  {
    throw WorkError("IN: " + m_Line.input + " has " + std::to_string(header.components) + " components a voxel; a " +
                    m_Line.name + " takes an image for each of its channels");
  }
  for (const chunkwise::InputDescription & input : filter.additionalInputs)
  {
    const auto given = m_Line.additionalInputs.find(input.name);
    if (given != m_Line.additionalInputs.end())
    {
      m_Job.AddInput(input, given->second, OpenInputWithComponents(given->second, "--" + input.option));
    }
  }
}

/** Takes the components of IN's voxels as the images that the filter has. */
void
FileRun::SplitInput(std::int64_t                                                           components,
                    const std::function<std::unique_ptr<chunkwise::files::FileSource>()> & open)
{
  const auto & further = m_Line.stages.front().filter->additionalInputs;
  const auto   most = static_cast<std::int64_t>(further.size()) + 1;
  if (components > most || !m_Line.additionalInputs.empty())
  {
    throw WorkError("IN: " + m_Line.input + " has " + std::to_string(components) + " components a voxel" +
                    (components > most ? "; a " + m_Line.name + " takes at most " + std::to_string(most)
                                       : ", beside which a " + m_Line.name + " takes no other image"));
  }
  m_Job.SetInput(m_Line.input, chunkwise::files::MakeComponentSource(open(), 0));
  for (std::int64_t i = 1; i < components; ++i)
  {
    m_Job.AddInput(
      further[static_cast<std::size_t>(i - 1)], m_Line.input, chunkwise::files::MakeComponentSource(open(), i));
  }
}

void
FileRun::PrepareOutput()
{
  try
  {
    m_Job.SetResume(m_Line.resume);
    if (m_Line.levels.empty())
    {
      m_Job.SetZarrOptions("--zarr", m_Line.zarr);
    }
    else
    {
      m_Job.SetZarrLevels("--zarr", m_Line.zarr, m_Line.levels, m_Line.overwrite);
    }
    m_Job.SetOutput(m_Line.output, m_Computation->GetOutputKind(), m_Line.compress);
  }
  catch (const chunkwise::files::FileError & error)
  {
    throw ArgumentError((m_Line.levels.empty() ? "OUT: " : "STORE: ") + std::string(error.what()));
  }
}

void
FileRun::Warn(const std::string & text)
{
  m_Warnings.push_back(JoinLines(text));
  if (m_Line.progress == ProgressStyle::Xml)
  {
    PrintComment(m_Warnings.back());
  }
  else if (!m_Line.quiet)
  {
    std::cerr << "chunkwise: warning: " << m_Warnings.back() << std::endl;
  }
}

void
FileRun::WarnOfJob()
{
  for (const std::string & warning : m_Job.TakeWarnings())
  {
    this->Warn(warning);
  }
}

/** Sets the parameter that is "auto" by passes over the image. */
void
FileRun::TakeEstimate(Progress & progress)
{
  const chunkwise::SummaryRun run = [&](const std::shared_ptr<const chunkwise::Operation> & summary,
                                        chunkwise::Monitor *                                ofRun) {
    chunkwise::ChunkState total;
    m_Job.RunFirstPass(ofRun, [&](const chunkwise::ExecutionRequest & division, chunkwise::Monitor * monitor) {
      const chunkwise::ChunkState part =
        chunkwise::Manager::GetGlobal().Summarise(chunkwise::MakeSummaryRequest(division, summary), monitor);
      if (total.empty())
      {
        total = part;
      }
      else
      {
        summary->MergeSummary(total, part);
      }
    });
    return total;
  };
  progress.BeginPart(0.0, 0.5);
  const std::vector<double> value = m_Computation->TakeEstimate(run, &progress);
  progress.BeginPart(0.5, 0.5);
  m_Estimate.first = m_Computation->GetAutomatic()->option;
  m_Estimate.second = value;
  if (!m_Line.quiet && m_Line.progress != ProgressStyle::Xml)
  {
    std::cerr << "estimate: --" << m_Estimate.first << " " << TextOf(value) << std::endl;
  }
}

RunReport
FileRun::Execute()
{
  if (m_Line.verbose)
  {
    PrintImage(std::cerr, m_Line, m_Job);
    PrintCuts(std::cerr, m_Line, m_Job);
  }
  const unsigned int threads = m_Line.threads ? m_Line.threads : chunkwise::GetNumberOfProcessors();
  if (m_Executor->GetConcurrency() < threads)
  {
    this->Warn("the system starts " + std::to_string(m_Executor->GetConcurrency()) + " of " + std::to_string(threads) +
               " threads: a limit of processes or of memory may be reached");
  }
  const auto start = Clock::now();
  auto       progress = std::make_unique<Progress>(
    m_Line.name, m_Job.GetRequest().region.NumberOfVoxels(), m_Line.quiet ? ProgressStyle::None : m_Line.progress);
  if (m_Computation->GetAutomatic())
  {
    this->TakeEstimate(*progress);
  }
  m_Job.Run(progress.get());
  this->WarnOfJob();
  progress.reset();
  ThrowIfInterrupted();
  {
    const NoSudden now;
    m_Job.Finish();
  }
  this->WarnOfJob();
  const RunReport report = this->MakeReport(Since(start));
  if (m_Line.verbose)
  {
    PrintReport(std::cerr, report);
  }
  return report;
}

RunReport
FileRun::MakeReport(double seconds) const
{
  const chunkwise::StreamedReport & streamed = m_Job.GetReport();
  const chunkwise::StreamedPlan &   plan = m_Job.GetPlan();
  RunReport                         report;
  report.backend = streamed.execution.backend;
  report.transforms = streamed.execution.transforms;
  report.threads = static_cast<unsigned int>(m_Executor->GetConcurrency());
  report.voxels = m_Job.GetRequest().region.NumberOfVoxels();
  report.seconds = seconds;
  report.reading = streamed.reading;
  report.computing = streamed.computing;
  report.writing = streamed.writing;
  report.overlaps = (plan.buffers > 1 && plan.heldOnDevice < 0) || plan.inSlabs;
  report.steps = streamed.steps;
  report.figures = streamed.execution.figures;
  report.bytesRead = m_Job.GetSources().front()->GetBytesRead();
  report.bytesWritten = m_Job.GetBytesWritten();
  report.resumed = m_Job.GetResumed();
  report.stepsDone = m_Job.GetStepsDone();
  report.peakMemory = chunkwise::GetPeakHostMemory();
  report.warnings = m_Warnings;
  report.estimate = m_Estimate;
  return report;
}

/** A shell makes two images of a folder IN and OUT where the user meant both: a terminal is asked before what is there
 * is lost. Scripts and hosts have none, and know what they do. */
void
AskBeforeReplacing(const CommandLine & line)
{
  std::error_code ignored;
  if (line.overwrite || line.progress == ProgressStyle::Xml || !::isatty(STDIN_FILENO) || !::isatty(STDERR_FILENO) ||
      !std::filesystem::exists(line.output, ignored))
  {
    return;
  }
  std::cerr << "chunkwise: OUT: " << JoinLines(line.output) << " exists; replace it? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "Y" && answer != "yes")
  {
    throw WorkError("OUT: " + line.output + " is left as it is; --overwrite replaces it without a question");
  }
}

} // namespace

RunReport
RunFile(const CommandLine & line)
{
  return FileRun(line).Execute();
}

void
Run(const CommandLine & line)
{
  if (line.task == Task::Devices)
  {
    PrintDevices(line.json);
  }
  else if (line.task == Task::Statistics)
  {
    PrintStatistics(line);
  }
  else if (line.task == Task::Measure)
  {
    Measure(line);
  }
  else if (line.task == Task::FilterLabels)
  {
    if (!line.planOnly)
    {
      AskBeforeReplacing(line);
    }
    FilterLabels(line);
  }
  else if (line.task == Task::FillHoles || line.task == Task::Chain)
  {
    AskBeforeReplacing(line);
    (line.task == Task::Chain ? RunChain : FillLabelHoles)(line);
  }
  else if (line.task == Task::Separate)
  {
    AskBeforeReplacing(line);
    SeparateObjects(line);
  }
  else if (line.planOnly)
  {
    PrintPlanOfRun(line, FileRun(line).GetJob());
  }
  else if (!line.outputPattern.empty())
  {
    RunBatch(line);
  }
  else
  {
    FileRun run(line);
    if (line.levels.empty())
    {
      CheckFilesOfRuns({ line });
      AskBeforeReplacing(line);
    }
    const RunReport report = run.Execute();
    if (!line.returnParameterFile.empty())
    {
      WriteReturnParameters(line.returnParameterFile, report);
    }
    if (line.json)
    {
      std::cout << ToText(ToJson(report));
    }
  }
}

} // namespace command
