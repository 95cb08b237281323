/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandRun.h"

#include "chunkwiseError.h"
#include "chunkwiseHostMemory.h"
#include "chunkwiseRegions.h"
#include "chunkwiseStreamedRun.h"
#include "commandBatch.h"
#include "commandDevices.h"
#include "commandEstimate.h"
#include "commandFiles.h"
#include "commandInputs.h"
#include "commandJson.h"
#include "commandKernels.h"
#include "commandMemory.h"
#include "commandProgress.h"
#include "commandRegion.h"
#include "commandReport.h"
#include "commandSignals.h"
#include "commandStatistics.h"
#include "commandTrial.h"
#include "fileImage.h"

#include "chunkwiseSequenceOperation.h"
#include "chunkwiseSummedAreaTableOperation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <optional>
#include <sstream>
#include <unistd.h>

namespace command
{

namespace
{

using chunkwise::Box;
using chunkwise::BufferView;
using chunkwise::Coordinates;
using chunkwise::MaxDimension;
using chunkwise::PixelKind;

using Clock = std::chrono::steady_clock;

double
Since(Clock::time_point start)
{
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool
IsSigned(PixelKind kind)
{
  return !chunkwise::IsFloatingPoint(kind) && (static_cast<int>(kind) & 1) != 0;
}

/** Reads, filters and writes one file. */
class FileRun
{
public:
  explicit FileRun(const CommandLine & line);

  void
  PrintPlan();
  RunReport
  Execute();

private:
  using Header = chunkwise::files::ImageHeader;

  void
  OpenInputs();
  void
  CheckSameSpace(const Header & other, const std::string & option) const;
  void
  ChooseKinds();
  PixelKind
  GetConvertedKind() const;
  chunkwise::FilterImage
  DescribeImage() const;
  void
  CheckNumberOfImages() const;
  void
  MakeOperation();
  std::shared_ptr<const chunkwise::Operation>
  MakeStage(const Stage & stage, chunkwise::FilterImage image);
  void
  PrepareOutput();

  void
  MakeStream();
  void
  ChooseDivisions();
  void
  SetUpBudgets(std::uint64_t memory);
  bool
  UsesDevices() const;
  bool
  ReadsTwice() const;
  void
  RequireStreaming(const std::string & why) const;
  bool
  HasPlanOfChunks() const;
  chunkwise::ExecutionRequest
  MakeTypicalRequest() const;
  void
  TakeEstimate(Progress & progress);
  void
  PrintHeader(std::ostream & os) const;
  void
  PrintRun(std::ostream & os) const;
  double
  GetExpectedSeconds() const;
  Json
  DescribePlan() const;
  std::vector<chunkwise::NetworkLayerDescription>
  DescribeLayers() const;
  void
  PrintCostOfMemory(std::ostream & os) const;
  void
  Warn(const std::string & text);

  const CommandLine &                                        m_Line;
  std::unique_ptr<chunkwise::Executor>                       m_Executor;
  std::vector<std::shared_ptr<chunkwise::files::FileSource>> m_Sources; ///< IN first
  std::shared_ptr<const chunkwise::Operation>                m_Operation;
  std::unique_ptr<Estimate>                                  m_Estimate;  ///< of a parameter that is "auto"
  std::map<std::string, chunkwise::ParameterValue>           m_Estimated; ///< parameters that were, by name

  std::int64_t       m_Components{ 1 };       ///< of a voxel of IN
  std::int64_t       m_OutputComponents{ 1 }; ///< of one of OUT
  Box                m_Image{};               ///< all of IN, with the components of OUT
  std::optional<Box> m_OutputBox;             ///< of a filter whose result has another size than IN
  Box                m_Whole{};               ///< the part of it that the whole result has
  Box                m_Region{};              ///< the part of that which is written
  Box                m_Output{}; ///< what is computed: more than the region where voxels depend on a whole axis
  PixelKind          m_InputKind{ PixelKind::UInt8 };
  PixelKind          m_ComputedKind{ PixelKind::UInt8 }; ///< of the operation's output
  PixelKind          m_OutputKind{ PixelKind::UInt8 };   ///< of the file
  bool               m_CountsLimits{ false };            ///< voxels may have been cut within the operation
  Header             m_OutputHeader;

  chunkwise::StreamedRequest m_Stream;
  chunkwise::StreamedPlan    m_Plan;
  chunkwise::StreamedRequest m_FirstPass; ///< over the whole image, for an estimate
  chunkwise::StreamedPlan    m_FirstPlan;
  std::vector<std::string>   m_Warnings;
  std::uint64_t              m_Own{ 0 }; ///< bytes beside the divisions, scratch and pinned memory
};

FileRun::FileRun(const CommandLine & line)
  : m_Line(line)
  , m_Executor(chunkwise::MakeThreadExecutor(line.threads))
{
  this->OpenInputs();
  this->ChooseKinds();
  this->MakeOperation();
  this->PrepareOutput();
  this->MakeStream();
  this->ChooseDivisions();
}

void
FileRun::OpenInputs()
{
  m_Sources.push_back(OpenInputWithComponents(m_Line.input, "IN", m_Line.raw));
  m_Components = m_OutputComponents = m_Sources.front()->GetHeader().components;
  m_Image = Box::FromExtent(m_Sources.front()->GetHeader().extent);
  if (m_Components > 1)
  {
    if (m_Line.name == "network")
    {
      throw WorkError("IN: " + m_Line.input + " has " + std::to_string(m_Components) +
                      " components a voxel; a network takes an image for each of its channels");
    }
    // The engine has them along its last axis.
    m_Image.upper[MaxDimension - 1] = m_Components;
  }
  if (m_Image.IsEmpty())
  {
    throw WorkError("IN: " + m_Line.input + " has no voxels");
  }
  for (int a = 0; a < m_Sources.front()->GetHeader().dimension; ++a)
  {
    const double spacing = m_Sources.front()->GetHeader().spacing[a];
    if (spacing == 0.0 || !std::isfinite(spacing))
    {
      throw WorkError("IN: " + m_Line.input + " has a spacing of " + std::to_string(spacing) + " along axis " +
                      std::to_string(a));
    }
  }
  for (const chunkwise::InputDescription & input : m_Line.stages.front().filter->furtherInputs)
  {
    const auto given = m_Line.furtherInputs.find(input.name);
    if (given != m_Line.furtherInputs.end())
    {
      m_Sources.push_back(OpenInputWithComponents(given->second, "--" + input.option));
      const std::int64_t components = m_Sources.back()->GetHeader().components;
      if (components != 1 && components != m_Components)
      {
        throw WorkError("--" + input.option + ": " + given->second + " has " + std::to_string(components) +
                        " components a voxel, IN has " + std::to_string(m_Components));
      }
      this->CheckSameSpace(m_Sources.back()->GetHeader(), "--" + input.option + ": " + given->second);
    }
  }
}

void
FileRun::CheckSameSpace(const Header & other, const std::string & option) const
{
  const Header & first = m_Sources.front()->GetHeader();
  if (first.extent != other.extent)
  {
    throw WorkError(option + " has " + ToString(other.extent) + " voxels, IN has " + ToString(first.extent));
  }
  const int axis = chunkwise::files::FindAxisThatDiffers(first, other);
  if (axis >= 0)
  {
    throw WorkError(option + " does not lie where IN does: spacing, origin or direction differ along axis " +
                    std::to_string(axis));
  }
}

void
FileRun::ChooseKinds()
{
  const auto & furtherInputs = m_Line.stages.front().filter->furtherInputs;
  m_InputKind = m_Sources.front()->GetKind();
  std::size_t source = 1;
  for (const chunkwise::InputDescription & input : furtherInputs)
  {
    if (m_Line.furtherInputs.count(input.name) != 0 && !input.ownKind)
    {
      // Inputs of different kinds meet in one that has all values of both.
      try
      {
        m_InputKind = chunkwise::GetCommonKind(m_InputKind, m_Sources[source]->GetKind());
      }
      catch (const chunkwise::ParameterError & error)
      {
        throw ArgumentError("--" + input.option + ": " + error.what() + "");
      }
    }
    source += m_Line.furtherInputs.count(input.name);
  }
  if (m_InputKind == PixelKind::Float32 && m_Line.outputType == "float64" && m_Sources.size() > 1 &&
      m_Sources[0]->GetKind() != m_Sources[1]->GetKind())
  {
    // They are converted anyway: to what the result is to be as exact as.
    m_InputKind = PixelKind::Float64;
  }

  const bool isReal = std::any_of(m_Line.stages.begin(), m_Line.stages.end(), [this](const Stage & stage) {
    return chunkwise::GetDefaultOutputKind(*stage.filter, m_InputKind) != m_InputKind;
  });
  PixelKind  natural = m_InputKind;
  for (const Stage & stage : m_Line.stages)
  {
    const PixelKind kind = chunkwise::GetDefaultOutputKind(*stage.filter, m_InputKind);
    natural = PixelSize(kind) > PixelSize(natural) || chunkwise::IsFloatingPoint(kind) ? kind : natural;
  }
  m_OutputKind = m_Line.outputType.empty() ? natural : chunkwise::PixelKindFromName(m_Line.outputType);

  // What the operation gives: the file's kind where it can and cuts nothing, else its natural kind, which is converted;
  // in the place of float32 float64, whose sums of integers are not rounded.
  const bool isTable = m_Line.stages.front().filter->output == chunkwise::DefaultOutput::Sum;
  const bool givesReals = chunkwise::IsFloatingPoint(m_OutputKind);
  const bool isWide = PixelSize(m_InputKind) == 8 && !chunkwise::IsFloatingPoint(m_InputKind);
  const bool isExact = natural == m_InputKind || m_Line.stages.front().filter->name == "network";
  // Classes are numbers of any kind.
  const auto & texts = m_Line.stages.front().texts;
  const auto   result = texts.find("OutputMode");
  const bool   givesClasses = m_Line.name == "network" && result != texts.end() && result->second != "channel";
  m_ComputedKind = isTable || givesReals || givesClasses ? m_OutputKind : isExact ? natural : this->GetConvertedKind();
  if (isReal && !isTable && isWide && !givesReals)
  {
    // float64 has not all of them: the operation's own 64-bit integers have, but nobody counts what it cuts.
    m_ComputedKind = m_OutputKind == m_InputKind ? m_OutputKind : m_ComputedKind;
    m_CountsLimits = !chunkwise::IsFloatingPoint(m_ComputedKind);
  }
  // Domes and basins of a signed type can be higher than it has numbers.
  const std::string & name = m_Line.name;
  m_CountsLimits =
    m_CountsLimits || (IsSigned(m_InputKind) && (name == "h-convex" || name == "h-concave" || name == "clear-border"));
}

/** The kind that the operation gives where the file's integers are converted from it. */
PixelKind
FileRun::GetConvertedKind() const
{
  std::vector<std::string> furtherInputs;
  for (const auto & input : m_Line.furtherInputs)
  {
    furtherInputs.push_back(input.first);
  }
  PixelKind kind = m_InputKind;
  for (const Stage & stage : m_Line.stages)
  {
    chunkwise::FilterParameters choices;
    for (const auto & given : stage.texts)
    {
      choices.Set(given.first, given.second);
    }
    const PixelKind own = chunkwise::GetConvertedKind(*stage.filter, choices, furtherInputs, m_InputKind, m_OutputKind);
    if (m_Line.stages.size() == 1)
    {
      return own;
    }
    // All stages but the first have one kind, which is the input's where that has 64 bits and no stage needs another.
    kind = chunkwise::IsFloatingPoint(own) || PixelSize(m_InputKind) < 8 ? PixelKind::Float64 : kind;
  }
  return kind;
}

std::shared_ptr<const chunkwise::Operation>
FileRun::MakeStage(const Stage & stage, chunkwise::FilterImage image)
{
  chunkwise::FilterParameters parameters;
  for (const auto & given : stage.texts)
  {
    const chunkwise::ParameterDescription & parameter = *stage.filter->FindParameter(given.first);
    if (IsAutomatic(parameter, given.second))
    {
      const auto known = m_Estimated.find(parameter.name);
      parameters.Set(parameter.name,
                     known != m_Estimated.end() ? known->second
                                                : chunkwise::ParseParameter(parameter, parameter.provisionalText));
    }
    else
    {
      parameters.Set(parameter.name, ReadParameter(parameter, given.second, image.dimension, m_Line.memory));
    }
  }
  try
  {
    if (m_Line.task == Task::Filter && stage.filter->outputBox)
    {
      m_OutputBox = chunkwise::GetFilterOutputBox(stage.filter->name, parameters, image);
    }
    if (const std::int64_t own = chunkwise::GetFilterOutputComponents(stage.filter->name, parameters, image))
    {
      // The engine has them along its last axis, as those of an input.
      m_OutputComponents = m_Image.upper[MaxDimension - 1] = image.extent[MaxDimension - 1] = own;
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

/** How many images a network takes, it says itself. */
void
FileRun::CheckNumberOfImages() const
{
  const auto taken = static_cast<std::size_t>(m_Operation->GetNumberOfInputs());
  if (taken == m_Sources.size())
  {
    return;
  }
  const std::string count = "it takes " + std::to_string(taken) + (taken == 1 ? " image, " : " images, ") +
                            std::to_string(m_Sources.size()) + (m_Sources.size() == 1 ? " is given" : " are given");
  // The first option that is missing, or that is too much.
  std::size_t images = 1;
  for (const chunkwise::InputDescription & input : m_Line.stages.front().filter->furtherInputs)
  {
    const bool isGiven = m_Line.furtherInputs.count(input.name) != 0;
    images += isGiven ? 1 : 0;
    if (isGiven ? images > taken : images < taken)
    {
      throw ArgumentError("--" + input.option + ": " + count);
    }
  }
  throw ArgumentError("IN: " + count);
}

chunkwise::FilterImage
FileRun::DescribeImage() const
{
  const Header &         header = m_Sources.front()->GetHeader();
  chunkwise::FilterImage image;
  image.dimension = header.dimension;
  image.extent = m_Image.Extents();
  image.inputKind = m_InputKind;
  image.outputKind = m_ComputedKind;
  for (int a = 0; a < MaxDimension; ++a)
  {
    image.spacing[a] = header.spacing[a];
    image.origin[a] = header.origin[a];
    std::copy_n(header.direction[a], MaxDimension, image.direction[a]);
  }
  for (const auto & input : m_Line.furtherInputs)
  {
    image.furtherInputs.push_back(input.first);
  }
  return image;
}

void
FileRun::MakeOperation()
{
  chunkwise::FilterImage image = this->DescribeImage();

  const auto make = [&]() -> std::shared_ptr<const chunkwise::Operation> {
    image.outputKind = m_ComputedKind;
    if (m_Line.task != Task::Sequence)
    {
      image.inputKind = m_InputKind;
      return this->MakeStage(m_Line.stages.front(), image);
    }
    auto sequence = std::make_shared<chunkwise::SequenceOperation>();
    for (const Stage & stage : m_Line.stages)
    {
      // The first stage converts; the others have the output's kind.
      image.inputKind = sequence->stages.empty() ? m_InputKind : m_ComputedKind;
      sequence->stages.push_back(this->MakeStage(stage, image));
    }
    sequence->Validate(m_Image.Extents());
    return sequence;
  };
  std::vector<PixelKind> kinds(1, m_InputKind);
  std::size_t            source = 1;
  for (const chunkwise::InputDescription & input : m_Line.stages.front().filter->furtherInputs)
  {
    if (m_Line.furtherInputs.count(input.name) != 0)
    {
      const PixelKind kind = input.ownKind ? m_Sources[source++]->GetKind() : m_InputKind;
      kinds.insert(input.before ? kinds.begin() : kinds.end(), kind);
    }
  }
  try
  {
    m_Operation = make();
    this->CheckNumberOfImages();
    m_Operation->CheckKinds(kinds, m_ComputedKind);
  }
  catch (const chunkwise::ParameterError &)
  {
    // What gives its input's kind alone, as a reconstruction, is converted afterwards.
    const bool isTable = m_Line.stages.front().filter->output == chunkwise::DefaultOutput::Sum;
    if (m_ComputedKind == m_InputKind || isTable ||
        m_Line.stages.front().filter->output != chunkwise::DefaultOutput::Input)
    {
      throw;
    }
    m_ComputedKind = m_InputKind;
    m_Operation = make();
    m_Operation->CheckKinds(kinds, m_ComputedKind);
  }

  m_Whole = m_OutputBox.value_or(m_Image);
  m_Region = MakeRegion(m_Line.region, m_Whole, image.dimension);
  m_Output = m_Line.region.empty() ? m_Whole : GetComputedBox(*m_Operation, m_Region, m_Image);
  if (m_Line.task == Task::Filter)
  {
    m_Estimate = MakeEstimate(m_Line.stages.front(), *m_Operation, m_InputKind);
  }
}

void
FileRun::PrepareOutput()
{
  Header header = m_Sources.front()->GetHeader();
  header.components = m_OutputComponents;
  header.kind = m_OutputKind;
  m_OutputHeader = chunkwise::files::GetHeaderOfPart(header, m_Region);
  try
  {
    chunkwise::files::CheckOutput(m_Line.output, m_OutputHeader, GetOutputOptions(m_Sources, m_Line.compress));
  }
  catch (const chunkwise::files::FileError & error)
  {
    throw ArgumentError(std::string("OUT: ") + error.what());
  }
}

bool
FileRun::UsesDevices() const
{
  return m_Stream.backend != chunkwise::BackendChoice::CPU && !chunkwise::Manager::GetGlobal().GetDevices().empty();
}

void
FileRun::MakeStream()
{
  m_Stream.operation = m_Operation;
  m_Stream.inputs.push_back({ m_Sources.front(), m_InputKind, m_Components });
  std::size_t source = 1;
  for (const chunkwise::InputDescription & input : m_Line.stages.front().filter->furtherInputs)
  {
    if (m_Line.furtherInputs.count(input.name) != 0)
    {
      const auto & further = m_Sources[source++];
      m_Stream.inputs.insert(
        input.before ? m_Stream.inputs.begin() : m_Stream.inputs.end(),
        { further, input.ownKind ? further->GetKind() : m_InputKind, further->GetHeader().components });
    }
  }
  m_Stream.outputComponents = m_OutputComponents;
  m_Stream.region = m_Output;
  m_Stream.written = m_Region;
  m_Stream.computedKind = m_ComputedKind;
  m_Stream.writtenKind = m_OutputKind;
  m_Stream.sinkAccess =
    chunkwise::files::GetOutputAccess(m_Line.output, m_OutputHeader, GetOutputOptions(m_Sources, m_Line.compress));
  m_Stream.countsLimits = m_CountsLimits;
  if (this->ReadsTwice())
  {
    m_Stream.firstPass = [this](chunkwise::ExecutionRequest ofFilter) {
      return chunkwise::MakeStatisticsRequest(m_Estimate->MakeRequest(std::move(ofFilter)));
    };
  }
  m_Stream.backend = m_Line.backend;
  m_Stream.devices = m_Line.devices;
  m_Stream.budgets.device = m_Line.deviceMemory;
  m_Stream.executor = m_Executor.get();
  m_Stream.divisions = m_Line.divisions;
  m_Stream.spoolFolder = std::filesystem::absolute(m_Line.output).parent_path().string();
}

/** Not in slabs, nor a reconstruction as a whole on a device. */
bool
FileRun::HasPlanOfChunks() const
{
  return !m_Plan.inSlabs && (m_Plan.heldOnDevice < 0 || m_Operation->GetSchedule() == chunkwise::Schedule::Independent);
}

/** Of the division in the middle, which meets no end of the image; or of all that a device holds. */
chunkwise::ExecutionRequest
FileRun::MakeTypicalRequest() const
{
  if (m_Plan.heldOnDevice >= 0)
  {
    chunkwise::ExecutionRequest whole = chunkwise::MakeDivisionRequest(m_Stream, m_Plan, m_Output);
    whole.devices.assign(1, m_Plan.heldOnDevice);
    return whole;
  }
  return chunkwise::MakeDivisionRequest(
    m_Stream, m_Plan, chunkwise::GetDivision(m_Output, m_Plan, m_Plan.divisions / 2));
}

/** What contexts of devices and their kernels take of the host's memory; known only once they are there. */
std::uint64_t
MemoryOfContexts(std::size_t devices)
{
  constexpr std::uint64_t first = 128;
  constexpr std::uint64_t each = 64;
  return devices > 0 ? (first + each * devices) << 20 : 0;
}

void
FileRun::SetUpBudgets(std::uint64_t memory)
{
  // To look for devices takes memory itself.
  const std::size_t   found = this->UsesDevices() ? chunkwise::Manager::GetGlobal().GetDevices().size() : 0;
  const std::uint64_t ofContexts = MemoryOfContexts(found);
  // The program itself, and room for what the file formats and the threads take.
  m_Own = chunkwise::GetPeakHostMemory() + (std::uint64_t{ 16 } << 20);
  for (const auto & source : m_Sources)
  {
    m_Own += source->GetAccess().heldBytes;
  }
  m_Own += m_Stream.sinkAccess.heldBytes;
  // Devices are to have as much again for pinned memory and divisions.
  const bool forgoesDevices =
    ofContexts > 0 && memory < m_Own + 2 * ofContexts && m_Line.backend == chunkwise::BackendChoice::Auto;
  if (forgoesDevices)
  {
    m_Stream.backend = chunkwise::BackendChoice::CPU;
    this->Warn("the CPU computes: --memory leaves too little beside the " +
               FormatBytes(static_cast<double>(ofContexts)) + " that devices take of the host's");
  }
  const std::size_t devices = forgoesDevices ? 0 : found;
  m_Own += devices > 0 ? ofContexts : 0;
  // If the program alone needs more, no division fits, and the message names all that a run needs.
  m_Stream.memory = memory > m_Own ? memory - m_Own : 1;
  if (devices > 0)
  {
    m_Stream.budgets.pinned = std::min<std::uint64_t>(m_Stream.memory / 4 / devices, std::uint64_t{ 256 } << 20);
    m_Own += m_Stream.budgets.pinned * devices;
    m_Stream.memory -= m_Stream.budgets.pinned * devices;
  }
}

bool
FileRun::ReadsTwice() const
{
  return m_Estimate && m_Estimate->NeedsImage();
}

void
FileRun::RequireStreaming(const std::string & why) const
{
  const std::string which = " in pieces: " + chunkwise::files::ListFormatsInPieces() + " can be";
  if (!m_Stream.sinkAccess.inPieces)
  {
    throw WorkError(why + "OUT " + m_Line.output + " cannot be written" + which);
  }
  for (const auto & source : m_Sources)
  {
    if (!source->GetAccess().inPieces)
    {
      throw WorkError(why + "IN " + source->GetFiles().front().string() + " cannot be read" + which);
    }
  }
}

void
FileRun::ChooseDivisions()
{
  if (m_Line.memory)
  {
    this->SetUpBudgets(m_Line.memory);
  }
  const std::string given = FormatBytes(static_cast<double>(m_Line.memory));
  const std::string tooLarge = "--memory: the image does not fit into " + given + ", and ";
  try
  {
    auto & manager = chunkwise::Manager::GetGlobal();
    m_Plan = chunkwise::MakeStreamedPlan(manager, m_Stream);
    if (this->ReadsTwice())
    {
      // An estimate is that of the whole image, whatever is computed of it.
      m_FirstPass = m_Stream;
      m_FirstPass.region = m_FirstPass.written = m_Whole;
      m_FirstPlan = m_Whole == m_Output ? m_Plan : chunkwise::MakeStreamedPlan(manager, m_FirstPass);
    }
  }
  catch (const chunkwise::DivisionsError & error)
  {
    if (error.divisions > 1 && !m_Line.divisions)
    {
      this->RequireStreaming(tooLarge);
    }
    // A little for what a second run may hold more: its libraries' pages differ.
    throw WorkError("--memory: one of " + std::to_string(error.divisions) +
                    (error.divisions == 1 ? " division needs " : " divisions needs ") +
                    FormatNeed(m_Own + error.needed + (std::uint64_t{ 3 } << 20)) + ", more than " +
                    (m_Line.memory ? given : FormatBytes(static_cast<double>(error.budget))));
  }
  if (m_Plan.divisions > 1 || m_Plan.inSlabs)
  {
    this->RequireStreaming(m_Line.divisions ? "--divisions: " : tooLarge);
  }
  else if (m_Line.divisions > 1 && m_Output.Extent(m_Plan.axis) > 1)
  {
    throw WorkError("--divisions: " + m_Line.name + " needs the whole image at once");
  }
}

Json
FileRun::DescribePlan() const
{
  const int dimension = m_OutputHeader.dimension;
  Json      json = { { "filter", m_Line.name },
                     { "input",
                       { { "file", m_Line.input },
                         { "extent", ToJson(m_Image.Extents(), dimension) },
                         { "type", chunkwise::PixelKindName(m_Sources.front()->GetKind()) } } },
                     { "output",
                       { { "file", m_Line.output },
                         { "extent", ToJson(m_Region.Extents(), dimension) },
                         { "components", m_OutputComponents },
                         { "type", chunkwise::PixelKindName(m_OutputKind) } } },
                     { "components", m_Components },
                     { "inSlabs", m_Plan.inSlabs },
                     { "heldOnDevice", m_Plan.heldOnDevice < 0 ? Json() : Json(m_Plan.heldOnDevice) },
                     { "divisions", ToJson(m_Plan) },
                     { "chunks", nullptr },
                     { "bytesBesideDivisions", m_Own },
                     { "budgetFactor", nullptr },
                     { "secondsExpected", nullptr } };
  if (this->HasPlanOfChunks())
  {
    auto & manager = chunkwise::Manager::GetGlobal();
    json["chunks"] = ToJson(manager.MakePlanFor(this->MakeTypicalRequest()), dimension, this->UsesDevices());
    json["budgetFactor"] = ToJson(manager.GetCostOfBudget(this->MakeTypicalRequest()).budget.factor);
  }
  if (const auto layers = this->DescribeLayers(); !layers.empty())
  {
    json["layers"] = ToJson(layers);
  }
  if (const double seconds = this->GetExpectedSeconds(); seconds > 0.0)
  {
    json["secondsExpected"] = seconds;
  }
  return json;
}

/** Of a network, for a chunk. */
std::vector<chunkwise::NetworkLayerDescription>
FileRun::DescribeLayers() const
{
#ifdef CHUNKWISE_HAS_NETWORKS
  if (const auto * const network = dynamic_cast<const chunkwise::NetworkOperation *>(m_Operation.get()))
  {
    const auto plan = chunkwise::Manager::GetGlobal().MakePlanFor(this->MakeTypicalRequest());
    return chunkwise::DescribeNetworkPlan(*network, plan, m_Image, this->UsesDevices());
  }
#endif
  return {};
}

/** What the budget costs, and how much would do. */
void
FileRun::PrintCostOfMemory(std::ostream & os) const
{
  if ((!m_Line.memory && !m_Line.deviceMemory) || m_Plan.heldOnDevice >= 0)
  {
    return;
  }
  const auto cost = chunkwise::Manager::GetGlobal().GetCostOfBudget(this->MakeTypicalRequest());
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
    const std::uint64_t beside = ofDevice ? 0 : m_Own + m_Plan.bytesAtOnce;
    os << "; about " << FormatNeed(beside + cost.budget.sufficient) << " would avoid that";
  }
  os << "\n";
}

void
FileRun::PrintHeader(std::ostream & os) const
{
  os << "image: " << JoinLines(m_Line.input) << ", ";
  for (int a = 0; a < m_OutputHeader.dimension; ++a)
  {
    os << (a ? " x " : "") << m_Image.Extent(a);
  }
  os << " voxels of " << chunkwise::PixelKindName(m_Sources.front()->GetKind()) << " to "
     << chunkwise::PixelKindName(m_OutputKind) << ", " << m_Line.name;
  if (m_OutputComponents > 1)
  {
    os << ", each of " << m_OutputComponents << " components";
  }
  if (!m_Line.region.empty())
  {
    os << ", " << ToString(m_Region.Extents()) << " of them";
  }
  os << "\n";
}

/** How the image is cut. */
void
FileRun::PrintRun(std::ostream & os) const
{
  PrintDivisions(os, m_Plan);
  if (this->HasPlanOfChunks())
  {
    command::PrintPlan(os,
                       chunkwise::Manager::GetGlobal().MakePlanFor(this->MakeTypicalRequest()),
                       m_OutputHeader.dimension,
                       this->UsesDevices(),
                       m_Plan.heldOnDevice >= 0);
    this->PrintCostOfMemory(os);
  }
}

/** Of computing; 0 where nothing is known of them. */
double
FileRun::GetExpectedSeconds() const
{
  if (!this->HasPlanOfChunks())
  {
    return 0.0;
  }
  return this->UsesDevices() ? chunkwise::Manager::GetGlobal().MakePlanFor(this->MakeTypicalRequest()).seconds *
                                 static_cast<double>(m_Plan.heldOnDevice < 0 ? m_Plan.divisions : 1)
                             : TimeOnNoise(m_Stream, m_Plan);
}

void
FileRun::PrintPlan()
{
  if (m_Line.json)
  {
    std::cout << ToText(this->DescribePlan());
    return;
  }
  std::ostringstream os;
  this->PrintHeader(os);
  this->PrintRun(os);
  if (const auto layers = this->DescribeLayers(); !layers.empty())
  {
    PrintLayers(os, layers);
  }
  const double seconds = this->GetExpectedSeconds();
  if (seconds == 0.0)
  {
    os << "expected: unknown, the time depends on what is in the image\n";
  }
  else
  {
    os << "expected: " << std::setprecision(3) << seconds << " s of computing"
       << (this->UsesDevices() ? "" : ", by a trial on noise")
       << (m_Plan.heldOnDevice >= 0 ? ", after the file is read and before one is written\n"
                                    : ", beside which files are read and written\n");
  }
  std::cout << os.str();
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

/** Sets the parameter that was "auto" by a pass over the image, and makes the operation anew. */
void
FileRun::TakeEstimate(Progress & progress)
{
  chunkwise::StatisticsAccumulator accumulator(m_Estimate->GetKind());
  if (m_Estimate->NeedsImage())
  {
    progress.BeginPart(0.0, 0.5);
    auto & manager = chunkwise::Manager::GetGlobal();
    chunkwise::ReadStreamed(manager,
                            m_FirstPass,
                            m_FirstPlan,
                            &progress,
                            [&](const chunkwise::ExecutionRequest & division, chunkwise::Monitor * monitor) {
                              accumulator.Add(manager, m_Estimate->MakeRequest(division), monitor);
                            });
    progress.BeginPart(0.5, 0.5);
  }
  const std::string & name = m_Estimate->GetParameter().name;
  const std::string   option = "--" + m_Estimate->GetParameter().option;
  try
  {
    m_Estimated[name] = m_Estimate->GetValue(accumulator.Get());
  }
  catch (const chunkwise::ParameterError & error)
  {
    throw WorkError(option + " " + AutomaticWord + ": " + error.what());
  }
  m_Operation = this->MakeStage(m_Line.stages.front(), this->DescribeImage());
  m_Stream.operation = m_Operation;
  if (m_Line.verbose)
  {
    std::string numbers;
    for (const double number : std::get<std::vector<double>>(m_Estimated[name]))
    {
      numbers += (numbers.empty() ? " " : ",") + chunkwise::PixelValue(number).ToText();
    }
    std::cerr << "estimate: " << option << numbers << std::endl;
  }
}

RunReport
FileRun::Execute()
{
  if (m_Line.verbose)
  {
    this->PrintHeader(std::cerr);
    this->PrintRun(std::cerr);
  }
  const unsigned int threads = m_Line.threads ? m_Line.threads : chunkwise::GetNumberOfProcessors();
  if (m_Executor->GetConcurrency() < threads)
  {
    this->Warn("the system starts " + std::to_string(m_Executor->GetConcurrency()) + " of " + std::to_string(threads) +
               " threads: a limit of processes or of memory may be reached");
  }
  const auto start = Clock::now();
  auto       progress = std::make_unique<Progress>(
    m_Line.name, m_Output.NumberOfVoxels(), m_Line.quiet ? ProgressStyle::None : m_Line.progress);
  if (m_Estimate)
  {
    this->TakeEstimate(*progress);
  }
  const std::shared_ptr<chunkwise::files::FileSink> sink =
    chunkwise::files::CreateImage(m_Line.output, m_OutputHeader, GetOutputOptions(m_Sources, m_Line.compress));
  const chunkwise::StreamedReport streamed =
    chunkwise::ExecuteStreamed(chunkwise::Manager::GetGlobal(), m_Stream, m_Plan, sink, progress.get());
  for (const std::string & warning : streamed.execution.warnings)
  {
    this->Warn(warning);
  }
  for (const auto & source : m_Sources)
  {
    for (const std::string & warning : source->GetWarnings())
    {
      this->Warn(source->GetFiles().front().string() + ": " + warning);
    }
  }
  progress.reset();
  ThrowIfInterrupted();
  {
    const NoSudden now;
    sink->Finish();
  }

  std::string losses;
  for (const std::string & loss : sink->GetLosses())
  {
    losses += (losses.empty() ? "" : ", ") + loss;
  }
  if (!losses.empty())
  {
    this->Warn("the format of " + m_Line.output + " does not store: " + losses);
  }
  if (streamed.cut > 0)
  {
    this->Warn(std::to_string(streamed.cut) + " voxels were outside of " + chunkwise::PixelKindName(m_OutputKind) +
               " and were cut to its range; --output-type float32 or float64 keeps them");
  }
  if (streamed.atLimits > 0)
  {
    this->Warn(std::to_string(streamed.atLimits) + " voxels are at a limit of " +
               chunkwise::PixelKindName(m_ComputedKind) + " and may have been cut to its range");
  }
  RunReport report;
  report.backend = streamed.execution.backend;
  report.transforms = streamed.execution.transforms;
  report.threads = static_cast<unsigned int>(m_Executor->GetConcurrency());
  report.voxels = m_Output.NumberOfVoxels();
  report.seconds = Since(start);
  report.reading = streamed.reading;
  report.computing = streamed.computing;
  report.writing = streamed.writing;
  report.overlaps = (m_Plan.buffers > 1 && m_Plan.heldOnDevice < 0) || m_Plan.inSlabs;
  report.steps = streamed.steps;
  report.bytesRead = m_Sources.front()->GetBytesRead();
  report.bytesWritten = sink->GetBytesWritten();
  report.peakMemory = chunkwise::GetPeakHostMemory();
  report.warnings = m_Warnings;
  if (m_Line.verbose)
  {
    PrintReport(std::cerr, report);
  }
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
  else if (line.planOnly)
  {
    FileRun(line).PrintPlan();
  }
  else if (!line.outputPattern.empty())
  {
    RunBatch(line);
  }
  else
  {
    FileRun run(line);
    CheckFilesOfRuns({ line });
    AskBeforeReplacing(line);
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
