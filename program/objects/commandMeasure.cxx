/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandMeasure.h"

#include "commandInputs.h"
#include "commandJobNames.h"
#include "commandJson.h"
#include "commandMeasuring.h"
#include "commandProgress.h"
#include "commandReport.h"
#include "commandSignals.h"

#include "chunkwiseMeasurements.h"
#include "fileText.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <sstream>

namespace command
{

namespace
{

using chunkwise::ExecutionRequest;
using chunkwise::MeasurementTable;

/** Rows that are made, and written, at a time. */
constexpr std::int64_t RowsAtOnce = 4096;

/** Columns that --columns can name beside those of the engine. */
constexpr const char * MedianColumn = "intensity_median";

bool
EndsWithJson(const std::string & file)
{
  constexpr const char * ending = ".json";
  const std::size_t      n = std::string(ending).size();
  return file.size() >= n && file.compare(file.size() - n, n, ending) == 0;
}

/** Writes a table part by part, as CSV or as a JSON list of rows, to a file or to standard output. */
class TableWriter
{
public:
  TableWriter(const std::string & file, bool json, const std::vector<std::filesystem::path> & inputFiles)
    : m_Json(json || EndsWithJson(file))
  {
    if (!file.empty())
    {
      m_File.emplace(file, inputFiles);
    }
  }
  void
  Add(const MeasurementTable & part)
  {
    std::string text;
    if (m_IsFirst && !m_Json)
    {
      for (const chunkwise::MeasurementColumn & column : part)
      {
        text += (text.empty() ? "" : ",") + column.name;
      }
      text += "\n";
    }
    for (std::size_t row = 0; !part.empty() && row < part.front().GetSize(); ++row)
    {
      if (m_Json)
      {
        Json json = Json::object();
        for (const chunkwise::MeasurementColumn & column : part)
        {
          json[column.name] = ToJson(column.GetValue(row));
        }
        text += (m_HasRows ? ",\n" : "[\n") + json.dump();
        m_HasRows = true;
        continue;
      }
      for (std::size_t c = 0; c < part.size(); ++c)
      {
        text += (c > 0 ? "," : "") + part[c].GetValue(row).ToText();
      }
      text += "\n";
    }
    m_IsFirst = false;
    this->Write(text);
  }
  /** All but the file's name. */
  void
  Complete()
  {
    if (m_Json)
    {
      this->Write(m_HasRows ? "\n]\n" : "[]\n");
    }
    if (m_File)
    {
      m_File->Complete();
    }
  }
  void
  Finish()
  {
    if (m_File)
    {
      m_File->Finish();
    }
  }

private:
  void
  Write(const std::string & text)
  {
    if (m_File)
    {
      m_File->Write(text);
      return;
    }
    std::cout << text;
    if (!std::cout)
    {
      throw WorkError("standard output cannot be written");
    }
  }

  const bool                                  m_Json;
  bool                                        m_IsFirst{ true };
  bool                                        m_HasRows{ false };
  std::optional<chunkwise::files::TextOutput> m_File;
};

/** Reads both images once for the table, and again as often as quantiles take. */
class MeasureRun
{
public:
  explicit MeasureRun(const CommandLine & line);

  void
  PrintPlan() const;
  void
  Execute();

private:
  void
  ChooseColumns();
  std::vector<std::filesystem::path>
  GetInputFiles() const;

  const CommandLine &                  m_Line;
  std::unique_ptr<chunkwise::Executor> m_Executor;
  chunkwise::files::FileJob            m_Job;
  chunkwise::MeasurementSettings       m_Settings;
  chunkwise::MeasurementSpace          m_Space;
  std::vector<std::string>             m_Columns;
  std::vector<double>                  m_Quantiles;
};

MeasureRun::MeasureRun(const CommandLine & line)
  : m_Line(line)
  , m_Executor(chunkwise::MakeThreadExecutor(line.threads))
  , m_Job(MakeNamesOfLabels(line), *m_Executor)
{
  OpenLabels(m_Line, m_Job, m_Settings);
  if (!m_Line.intensity.empty())
  {
    chunkwise::InputDescription intensity;
    intensity.name = "Intensity";
    intensity.ownKind = true;
    m_Settings.intensityKind =
      m_Job.AddInput(intensity, m_Line.intensity, OpenInput(m_Line.intensity, "INTENSITY")).kind;
    m_Settings.hasIntensity = true;
  }
  this->ChooseColumns();
  m_Space = MakeSpaceOf(m_Job.GetHeader());
  for (const std::string & file : { m_Line.output, m_Line.contacts })
  {
    if (!file.empty())
    {
      chunkwise::files::TextOutput::Check(file, this->GetInputFiles());
    }
  }
  if (!m_Line.contacts.empty() && !m_Line.output.empty() &&
      chunkwise::files::TextOutput::AreOne(m_Line.contacts, m_Line.output))
  {
    throw ArgumentError("--contacts: " + m_Line.contacts + " is the file of --out");
  }
  m_Job.SetReading();
  m_Job.GetRequest().divisions = m_Line.divisions;
  ShareMemoryOfTables(m_Line, m_Job, *m_Executor, m_Settings);
}

std::vector<std::filesystem::path>
MeasureRun::GetInputFiles() const
{
  std::vector<std::filesystem::path> files;
  for (const auto & source : m_Job.GetSources())
  {
    files.insert(files.end(), source->GetFiles().begin(), source->GetFiles().end());
  }
  return files;
}

void
MeasureRun::ChooseColumns()
{
  m_Quantiles = m_Line.quantiles;
  m_Columns = m_Line.columns;
  const auto median = std::find(m_Columns.begin(), m_Columns.end(), MedianColumn);
  if (median != m_Columns.end())
  {
    m_Columns.erase(median);
    m_Quantiles.push_back(0.5);
  }
  if (m_Line.columns.empty())
  {
    m_Columns = chunkwise::GetDefaultProperties(m_Settings.hasIntensity);
  }
  if (std::find(m_Columns.begin(), m_Columns.end(), "label") == m_Columns.end())
  {
    m_Columns.insert(m_Columns.begin(), "label");
  }
  if (!m_Quantiles.empty() && !m_Settings.hasIntensity)
  {
    throw ArgumentError(
      (m_Line.quantiles.empty() ? "--columns: " + std::string(MedianColumn) : std::string("--quantiles: they")) +
      (m_Line.quantiles.empty() ? " needs INTENSITY" : " need INTENSITY"));
  }
  try
  {
    chunkwise::SetPartsFor(m_Columns, m_Settings);
  }
  catch (const chunkwise::ParameterError & error)
  {
    throw ArgumentError("--columns: " + error.value + " is not " + error.allowed);
  }
  m_Settings.contacts = !m_Line.contacts.empty();
}

void
MeasureRun::PrintPlan() const
{
  PrintPlanOfLabels(m_Line, m_Job, m_Settings, 1);
}

void
MeasureRun::Execute()
{
  Progress                progress("measure", m_Job.GetImage().NumberOfVoxels(), ProgressStyle::None);
  chunkwise::Measurements measurements(m_Settings);
  try
  {
    ReadLabels(m_Job, progress, [&](const ExecutionRequest & division) {
      measurements.Add(division.inputs.front(),
                       m_Settings.hasIntensity ? &division.inputs.back() : nullptr,
                       division.region,
                       *m_Executor);
    });
    std::optional<chunkwise::LabelQuantiles> quantiles;
    if (!m_Quantiles.empty())
    {
      const std::uint64_t taken = measurements.GetBytes();
      quantiles.emplace(measurements, m_Quantiles, m_Settings.memory > taken ? m_Settings.memory - taken : 1);
      while (quantiles->BeginPass())
      {
        ReadLabels(m_Job, progress, [&](const ExecutionRequest & division) {
          quantiles->Add(division.inputs.front(), division.inputs.back(), division.region, *m_Executor);
        });
        quantiles->EndPass();
      }
    }
    m_Job.WarnOfSources();
    PrintWarnings(m_Line, m_Job);
    const auto                 files = this->GetInputFiles();
    std::optional<TableWriter> contacts;
    if (m_Settings.contacts)
    {
      contacts.emplace(m_Line.contacts, false, files);
      contacts->Add(measurements.MakeContacts(m_Space));
      contacts->Complete();
    }
    TableWriter        writer(m_Line.output, m_Line.json, files);
    const std::int64_t labels = measurements.GetNumberOfLabels();
    for (std::int64_t begin = 0; begin == 0 || begin < labels; begin += RowsAtOnce)
    {
      MeasurementTable part = measurements.MakeTable(m_Space, m_Columns, begin, begin + RowsAtOnce);
      if (quantiles)
      {
        const MeasurementTable more = quantiles->MakeTable(begin, begin + RowsAtOnce);
        part.insert(part.end(), more.begin(), more.end());
      }
      writer.Add(part);
      ThrowIfInterrupted();
    }
    writer.Complete();
    writer.Finish();
    if (contacts)
    {
      contacts->Finish();
    }
  }
  catch (const chunkwise::BudgetError &)
  {
    RefuseTables(m_Line, m_Settings, measurements.GetNumberOfLabels());
  }
}

} // namespace

void
Measure(const CommandLine & line)
{
  MeasureRun run(line);
  if (line.planOnly)
  {
    run.PrintPlan();
    return;
  }
  run.Execute();
}

} // namespace command
