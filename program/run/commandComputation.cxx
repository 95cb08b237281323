/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandComputation.h"

#include "commandKernels.h"
#include "commandRegion.h"

#include "chunkwiseSequenceOperation.h"

#include <algorithm>

namespace command
{

using chunkwise::FilterDescription;

namespace
{

/** The texts of a stage that are words: what they choose is known before the image is. */
chunkwise::FilterParameters
ChoicesOf(const Stage & stage)
{
  chunkwise::FilterParameters choices;
  for (const auto & given : stage.texts)
  {
    choices.Set(given.first, given.second);
  }
  return choices;
}

} // namespace

Computation::Computation(const CommandLine & line, chunkwise::files::FileJob & job)
  : m_Line(line)
  , m_Job(job)
{
  this->ChooseKinds();
  const Pointer        operation = this->MakeChecked();
  const chunkwise::Box image = m_Job.GetImage();
  const chunkwise::Box whole = m_OutputBox.value_or(image);
  const chunkwise::Box written = MakeRegion(m_Line.region, whole, m_Job.GetHeader().dimension);
  // More than what is written where voxels depend on a whole axis.
  const chunkwise::Box computed = m_Line.region.empty() ? whole : GetComputedBox(*operation, written, image);
  m_Job.SetOperation(operation, m_InputKind, m_ComputedKind, whole, computed, written);
  if (m_Line.task == Task::Filter)
  {
    m_Automatic = m_Line.stages.front().filter->FindAutomatic(ChoicesOf(m_Line.stages.front()));
  }
  if (const Pointer planned = m_Automatic ? m_Automatic->estimate.plan(*operation, m_InputKind) : nullptr)
  {
    m_Job.SetFirstPass([planned](chunkwise::ExecutionRequest ofFilter) {
      return chunkwise::MakeSummaryRequest(std::move(ofFilter), planned);
    });
  }
}

void
Computation::ChooseKinds()
{
  const FilterDescription & first = *m_Line.stages.front().filter;
  const auto &              sources = m_Job.GetSources();
  m_InputKind = m_Job.FindInputKind();
  if (m_InputKind == PixelType::Float32 && m_Line.outputType == "float64" && sources.size() > 1 &&
      sources[0]->GetKind() != sources[1]->GetKind())
  {
    // They are converted anyway: to what the result is to be as exact as.
    m_InputKind = PixelType::Float64;
  }

  const bool isReal = std::any_of(m_Line.stages.begin(), m_Line.stages.end(), [this](const Stage & stage) {
    return chunkwise::GetDefaultOutputKind(*stage.filter, m_InputKind) != m_InputKind;
  });
  const bool isLabels =
    first.output == chunkwise::DefaultOutput::Label || first.output == chunkwise::DefaultOutput::Class;
  PixelType natural = isLabels ? chunkwise::GetDefaultOutputKind(first, m_InputKind) : m_InputKind;
  for (const Stage & stage : m_Line.stages)
  {
    const PixelType kind = chunkwise::GetDefaultOutputKind(*stage.filter, m_InputKind);
    natural = PixelSize(kind) > PixelSize(natural) || chunkwise::IsFloatingPoint(kind) ? kind : natural;
  }
  m_OutputKind = m_Line.outputType.empty() ? natural : chunkwise::PixelTypeFromName(m_Line.outputType);

  // The pixel type that the operation gives: the file's type where it can and cuts nothing, else its natural kind,
  // which is converted; in the place of float32 float64, whose sums of integers are not rounded.
  const bool isTable = first.output == chunkwise::DefaultOutput::Sum;
  const bool givesReals = chunkwise::IsFloatingPoint(m_OutputKind);
  const bool isWide = PixelSize(m_InputKind) == 8 && !chunkwise::IsFloatingPoint(m_InputKind);
  const bool isExact = natural == m_InputKind || first.convertsDefaultOutput;
  const bool givesClasses = first.givesClasses && first.givesClasses(ChoicesOf(m_Line.stages.front()));
  m_ComputedKind = isTable || givesReals || givesClasses ? m_OutputKind : isExact ? natural : this->GetConvertedKind();
  bool countsLimits = false;
  if (isReal && !isTable && !isLabels && isWide && !givesReals)
  {
    // float64 has not all of them: the operation's own 64-bit integers have, but nobody counts what it cuts.
    m_ComputedKind = m_OutputKind == m_InputKind ? m_OutputKind : m_ComputedKind;
    countsLimits = !chunkwise::IsFloatingPoint(m_ComputedKind);
  }
  m_Job.GetRequest().countsLimits = countsLimits || first.CanExceed(m_InputKind);
}

/** The kind that the operation gives where the file's integers are converted from it. */
chunkwise::PixelType
Computation::GetConvertedKind() const
{
  std::vector<std::string> additionalInputs;
  for (const auto & input : m_Line.additionalInputs)
  {
    additionalInputs.push_back(input.first);
  }
  PixelType kind = m_InputKind;
  for (const Stage & stage : m_Line.stages)
  {
    const PixelType own =
      chunkwise::GetConvertedKind(*stage.filter, ChoicesOf(stage), additionalInputs, m_InputKind, m_OutputKind);
    if (m_Line.stages.size() == 1)
    {
      return own;
    }
    // All stages but the first have one kind, which is the input's where that has 64 bits and no stage needs another.
    kind = chunkwise::IsFloatingPoint(own) || PixelSize(m_InputKind) < 8 ? PixelType::Float64 : kind;
  }
  return kind;
}

Computation::Pointer
Computation::MakeStage(const Stage & stage, chunkwise::FilterImage image)
{
  chunkwise::FilterParameters                   parameters;
  const chunkwise::ParameterDescription * const automatic = stage.filter->FindAutomatic(ChoicesOf(stage));
  if (automatic)
  {
    const auto known = m_Estimated.find(automatic->name);
    parameters.Set(automatic->name,
                   known != m_Estimated.end() ? known->second
                                              : chunkwise::ParseParameter(*automatic, automatic->provisionalText));
  }
  for (const auto & given : stage.texts)
  {
    const chunkwise::ParameterDescription & parameter = *stage.filter->FindParameter(given.first);
    if (&parameter != automatic)
    {
      parameters.Set(parameter.name, ReadParameter(parameter, given.second, image.dimension, m_Line.memory));
      // The file of vectors has the grid that they lie on.
      const auto * const grid = parameter.isVector ? stage.filter->FindParameter("DisplacementGrid") : nullptr;
      if (grid && stage.texts.count(grid->name) == 0)
      {
        parameters.Set(grid->name, ReadParameter(*grid, given.second, image.dimension, m_Line.memory));
      }
    }
  }
  try
  {
    if (m_Line.task == Task::Filter && (stage.filter->outputBox || stage.filter->outputImage))
    {
      m_OutputBox = chunkwise::GetFilterOutputBox(stage.filter->name, parameters, image);
      m_Job.SetOutputImage(chunkwise::GetFilterOutputImage(stage.filter->name, parameters, image));
    }
    if (const std::int64_t own = chunkwise::GetFilterOutputComponents(stage.filter->name, parameters, image))
    {
      // The engine has them along its last axis, as those of an input.
      m_Job.SetOutputComponents(own);
      image.extent = m_Job.GetImage().Extents();
    }
    return chunkwise::MakeFilterOperation(stage.filter->name, parameters, image);
  }
  catch (const chunkwise::ParameterError & error)
  {
    if (m_Line.task == Task::Sequence)
    {
      throw ArgumentError("--step: \"" + stage.filter->name + "\": " + WithOptionNames(error.what(), m_Line));
    }
    throw;
  }
}

Computation::Pointer
Computation::Make()
{
  chunkwise::FilterImage image = m_Job.DescribeImage(m_InputKind, m_ComputedKind);
  if (m_Line.task != Task::Sequence)
  {
    return this->MakeStage(m_Line.stages.front(), image);
  }
  auto sequence = std::make_shared<chunkwise::SequenceOperation>();
  for (const Stage & stage : m_Line.stages)
  {
    // The first stage converts; the others have the output's kind.
    image.inputKind = sequence->stages.empty() ? m_InputKind : m_ComputedKind;
    sequence->stages.push_back(this->MakeStage(stage, image));
  }
  sequence->Validate(m_Job.GetImage().Extents());
  return sequence;
}

Computation::Pointer
Computation::MakeChecked()
{
  const std::vector<PixelType> kinds = m_Job.ListInputKinds(m_InputKind);
  try
  {
    Pointer operation = this->Make();
    this->CheckNumberOfImages(*operation);
    operation->CheckKinds(kinds, m_ComputedKind);
    return operation;
  }
  catch (const chunkwise::ParameterError &)
  {
    // A result that has only its input's type, as of a reconstruction, is converted afterwards.
    if (m_ComputedKind == m_InputKind || m_Line.stages.front().filter->output != chunkwise::DefaultOutput::Input)
    {
      throw;
    }
    m_ComputedKind = m_InputKind;
    Pointer operation = this->Make();
    operation->CheckKinds(kinds, m_ComputedKind);
    return operation;
  }
}

/** How many images a network takes, it says itself. */
void
Computation::CheckNumberOfImages(const chunkwise::Operation & operation) const
{
  const std::string wrong = m_Job.FindWrongNumberOfImages(operation, m_Line.stages.front().filter->additionalInputs);
  if (!wrong.empty())
  {
    throw ArgumentError(wrong);
  }
}

std::vector<double>
Computation::TakeEstimate(const chunkwise::SummaryRun & run, chunkwise::Monitor * monitor)
{
  const std::string & name = m_Automatic->name;
  try
  {
    m_Estimated[name] = m_Automatic->estimate.take(*m_Job.GetRequest().operation, m_InputKind, run, monitor);
  }
  catch (const chunkwise::ParameterError & error)
  {
    throw WorkError("--" + m_Automatic->option + " " + AutomaticWord + ": " + error.what());
  }
  m_Job.ReplaceOperation(this->MakeStage(m_Line.stages.front(), m_Job.DescribeImage(m_InputKind, m_ComputedKind)));
  return std::get<std::vector<double>>(m_Estimated[name]);
}

} // namespace command
