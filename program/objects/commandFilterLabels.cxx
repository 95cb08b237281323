/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandFilterLabels.h"

#include "commandInputs.h"
#include "commandJobNames.h"
#include "commandJson.h"
#include "commandMeasuring.h"
#include "commandProgress.h"
#include "commandReport.h"
#include "commandSignals.h"

#include "chunkwiseLabelSelection.h"

#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>

namespace command
{

namespace
{

using chunkwise::ExecutionRequest;

/** Reads the image twice: for the measurements, then to write it. */
class FilterLabelsRun
{
public:
  explicit FilterLabelsRun(const CommandLine & line);

  void
  PrintPlan() const;
  void
  Execute();

private:
  /** Both passes read the labels that the table gives. */
  void
  Replace(const ExecutionRequest & division) const
  {
    if (m_Table)
    {
      m_Table->Apply(division.inputs.front(), division.inputs.front(), division.region, *m_Executor);
    }
  }

  const CommandLine &                  m_Line;
  std::unique_ptr<chunkwise::Executor> m_Executor;
  chunkwise::files::FileJob            m_Job;
  chunkwise::MeasurementSettings       m_Settings;
  chunkwise::LabelSelection            m_Selection;
  std::optional<chunkwise::LabelTable> m_Table;
};

FilterLabelsRun::FilterLabelsRun(const CommandLine & line)
  : m_Line(line)
  , m_Executor(chunkwise::MakeThreadExecutor(line.threads))
  , m_Job(MakeNamesOfLabels(line), *m_Executor)
  , m_Selection(line.selection)
{
  OpenLabels(m_Line, m_Job, m_Settings);
  if (!m_Line.replace.empty())
  {
    try
    {
      m_Table.emplace(m_Settings.labelKind, m_Line.replacements);
    }
    catch (const chunkwise::ParameterError & error)
    {
      throw ArgumentError("--replace: " + m_Line.replace + ": " + error.value + " is not " + error.allowed);
    }
    std::error_code ignored;
    if (std::filesystem::equivalent(m_Line.replace, m_Line.output, ignored))
    {
      throw ArgumentError("OUT: " + m_Line.output + " is the file of --replace");
    }
  }
  chunkwise::SetPartsFor(chunkwise::GetPropertiesOf(m_Selection), m_Settings);
  m_Job.SetReading();
  m_Job.GetRequest().divisions = m_Line.divisions;
  m_Job.GetRequest().written = m_Job.GetImage();
  m_Job.SetZarrOptions("--zarr", m_Line.zarr);
  m_Job.SetOutput(m_Line.output, m_Settings.labelKind, m_Line.compress);
  ShareMemoryOfTables(m_Line, m_Job, *m_Executor, m_Settings);
}

void
FilterLabelsRun::PrintPlan() const
{
  PrintPlanOfLabels(m_Line, m_Job, m_Settings, 2);
}

void
FilterLabelsRun::Execute()
{
  Progress                progress("filter-labels", m_Job.GetImage().NumberOfVoxels(), ProgressStyle::None);
  chunkwise::Measurements measurements(m_Settings);
  try
  {
    ReadLabels(m_Job, progress, [&](const ExecutionRequest & division) {
      this->Replace(division);
      measurements.Add(division.inputs.front(), nullptr, division.region, *m_Executor);
    });
    const chunkwise::LabelMap map(measurements, MakeSpaceOf(m_Job.GetHeader()), m_Selection);
    const auto                sink = m_Job.CreateSink();
    ReadLabels(m_Job, progress, [&](const ExecutionRequest & division) {
      const chunkwise::BufferView & view = division.inputs.front();
      this->Replace(division);
      map.Apply(view, view, division.region, *m_Executor);
      sink->Write(division.region, view);
    });
    m_Job.WarnOfSources();
    sink->Finish();
    PrintWarnings(m_Line, m_Job);
    if (m_Line.json)
    {
      std::cout << ToText({ { "filter", "filter-labels" },
                            { "output", m_Line.output },
                            { "labels", measurements.GetNumberOfLabels() },
                            { "kept", map.GetCount() } });
    }
  }
  catch (const chunkwise::ParameterError & error)
  {
    // A column of an axis that the image has not.
    throw ArgumentError("--where: " + error.value + " is not " + error.allowed);
  }
  catch (const chunkwise::BudgetError &)
  {
    RefuseTables(m_Line, m_Settings, measurements.GetNumberOfLabels());
  }
}

} // namespace

void
FilterLabels(const CommandLine & line)
{
  FilterLabelsRun run(line);
  if (line.planOnly)
  {
    run.PrintPlan();
    return;
  }
  run.Execute();
}

} // namespace command
