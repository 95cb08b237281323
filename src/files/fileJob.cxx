/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileJob.h"

#include "chunkwiseOperations.h"
#include "chunkwisePartOfSink.h"
#include "fileIdentity.h"
#include "fileZarrMetadata.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace chunkwise::files
{

namespace
{

/** The inputs together, and the output, hold so small a part of the memory for their threads, where they have a choice.
 */
constexpr std::uint64_t PartsForFiles = 8;

std::string
CountImages(std::size_t count)
{
  return std::to_string(count) + (count == 1 ? " image" : " images");
}

/** The identity of what a source reads. */
std::string
IdentifyInput(const std::string & name, const FileSource & source)
{
  std::vector<std::filesystem::path> files = source.GetFiles();
  if (IsZarr(name) && files.size() > 1)
  {
    // The folder of the array, with all its chunks: other images may come into the group meanwhile.
    files.front() = files.back().parent_path();
  }
  std::string text;
  for (const auto & file : files)
  {
    const auto identity = IdentifyFile(file);
    text += (identity ? identity->text : "") + "\n";
  }
  return text;
}

} // namespace

FileJob::FileJob(JobNames names, Executor & executor)
  : m_Names(std::move(names))
{
  m_Request.executor = &executor;
}

const ImageHeader &
FileJob::SetInput(const std::string & file, std::unique_ptr<FileSource> source)
{
  m_Sources.push_back(std::move(source));
  m_Inputs.push_back(file);
  const ImageHeader & header = this->GetHeader();
  const std::string   name = m_Names.input + ": " + file;
  m_Image = Box::FromExtent(header.extent);
  m_OutputComponents = header.components;
  if (header.components > 1)
  {
    // The engine has them along its last axis.
    m_Image.upper[MaxDimension - 1] = header.components;
  }
  if (m_Image.IsEmpty())
  {
    throw JobError(name + " has no voxels");
  }
  for (int a = 0; a < header.dimension; ++a)
  {
    if (header.spacing[a] == 0.0 || !std::isfinite(header.spacing[a]))
    {
      throw JobError(name + " has a spacing of " + std::to_string(header.spacing[a]) + " along axis " +
                     std::to_string(a));
    }
  }
  return header;
}

const ImageHeader &
FileJob::AddInput(const InputDescription & input, const std::string & file, std::unique_ptr<FileSource> source)
{
  m_AdditionalInputs.push_back({ input, m_Sources.size() });
  m_Sources.push_back(std::move(source));
  m_Inputs.push_back(file);
  const ImageHeader & first = this->GetHeader();
  const ImageHeader & other = m_Sources.back()->GetHeader();
  const std::string   name = m_Names.additionalInput(input) + ": " + file;
  if (other.components != 1 && other.components != first.components)
  {
    throw JobError(name + " has " + std::to_string(other.components) + " components a voxel, " + m_Names.input +
                   " has " + std::to_string(first.components));
  }
  if (first.extent != other.extent)
  {
    throw JobError(name + " has " + ToString(other.extent) + " voxels, " + m_Names.input + " has " +
                   ToString(first.extent));
  }
  const int axis = FindAxisThatDiffers(first, other);
  if (axis >= 0)
  {
    throw JobError(name + " does not lie where " + m_Names.input +
                   " does: spacing, origin or direction differ along axis " + std::to_string(axis));
  }
  return other;
}

PixelType
FileJob::FindInputKind() const
{
  PixelType kind = m_Sources.front()->GetKind();
  for (const AdditionalInput & input : m_AdditionalInputs)
  {
    if (!input.description.ownKind)
    {
      try
      {
        kind = GetCommonKind(kind, m_Sources[input.source]->GetKind());
      }
      catch (const ParameterError & error)
      {
        throw ParameterError(m_Names.additionalInput(input.description) + ": " + error.what());
      }
    }
  }
  return kind;
}

std::vector<PixelType>
FileJob::ListInputKinds(PixelType first) const
{
  std::vector<PixelType> kinds(1, first);
  for (const AdditionalInput & input : m_AdditionalInputs)
  {
    kinds.insert(input.description.before ? kinds.begin() : kinds.end(),
                 input.description.ownKind ? m_Sources[input.source]->GetKind() : first);
  }
  return kinds;
}

FilterImage
FileJob::DescribeImage(PixelType inputKind, PixelType outputKind) const
{
  const ImageHeader & header = this->GetHeader();
  FilterImage         image;
  image.dimension = header.dimension;
  image.extent = m_Image.Extents();
  image.inputKind = inputKind;
  image.outputKind = outputKind;
  for (int a = 0; a < MaxDimension; ++a)
  {
    image.spacing[a] = header.spacing[a];
    image.origin[a] = header.origin[a];
    std::copy_n(header.direction[a], MaxDimension, image.direction[a]);
  }
  for (const AdditionalInput & input : m_AdditionalInputs)
  {
    image.additionalInputs.push_back(input.description.name);
  }
  return image;
}

void
FileJob::SetOutputComponents(std::int64_t components)
{
  m_OutputComponents = m_Image.upper[MaxDimension - 1] = components;
}

void
FileJob::SetOutputImage(const FilterImage & image)
{
  m_OutputImage = image;
}

std::string
FileJob::FindWrongNumberOfImages(const Operation & operation, const std::vector<InputDescription> & all) const
{
  const auto taken = static_cast<std::size_t>(operation.GetNumberOfInputs());
  if (taken == m_Sources.size())
  {
    return "";
  }
  const std::string message = ": it takes " + CountImages(taken) + ", " + std::to_string(m_Sources.size()) +
                              (m_Sources.size() == 1 ? " is given" : " are given");
  std::size_t images = 1;
  for (const InputDescription & input : all)
  {
    const bool isGiven =
      std::any_of(m_AdditionalInputs.begin(), m_AdditionalInputs.end(), [&](const AdditionalInput & given) {
        return given.description.name == input.name;
      });
    images += isGiven ? 1 : 0;
    if (isGiven ? images > taken : images < taken)
    {
      return m_Names.additionalInput(input) + message;
    }
  }
  return m_Names.input + message;
}

void
FileJob::SetOperation(std::shared_ptr<const Operation> operation, PixelType inputKind, PixelType computedKind,
                      const Box & whole, const Box & computed, const Box & written)
{
  m_Request.operation = std::move(operation);
  m_Request.copiesVoxels = dynamic_cast<const IdentityOperation *>(m_Request.operation.get()) != nullptr;
  m_Request.inputs.assign(1, { m_Sources.front(), inputKind, this->GetHeader().components });
  for (const AdditionalInput & input : m_AdditionalInputs)
  {
    const auto &    source = m_Sources[input.source];
    const PixelType kind = input.description.ownKind ? source->GetKind() : inputKind;
    m_Request.inputs.insert(input.description.before ? m_Request.inputs.begin() : m_Request.inputs.end(),
                            { source, kind, source->GetHeader().components });
  }
  m_Request.outputComponents = m_OutputComponents;
  m_Request.computedKind = computedKind;
  m_Request.region = computed;
  m_Request.written = written;
  m_Whole = whole;
}

void
FileJob::SetReading()
{
  for (const auto & source : m_Sources)
  {
    m_Request.inputs.push_back({ source, source->GetKind(), source->GetHeader().components });
  }
  m_Request.region = m_Whole = m_Image;
}

void
FileJob::ReplaceOperation(std::shared_ptr<const Operation> operation)
{
  m_Request.operation = std::move(operation);
  m_Request.copiesVoxels = false;
}

void
FileJob::SetFirstPass(std::function<ExecutionRequest(ExecutionRequest)> firstPass)
{
  m_Request.firstPass = std::move(firstPass);
}

OutputOptions
FileJob::GetOutputOptions() const
{
  OutputOptions options;
  options.compress = m_Compress;
  options.zarr = m_Zarr;
  options.heldBytes = m_HeldByOutput;
  options.resumes = m_Resumes && !this->KeepsStates();
  for (const auto & source : m_Sources)
  {
    options.inputFiles.insert(options.inputFiles.end(), source->GetFiles().begin(), source->GetFiles().end());
  }
  return options;
}

void
FileJob::SetOutput(const std::string & file, PixelType kind, bool compress)
{
  m_Output = file;
  m_Compress = compress;
  ImageHeader header = this->GetHeader();
  header.components = m_OutputComponents;
  header.kind = kind;
  if (m_OutputImage)
  {
    for (int a = 0; a < header.dimension; ++a)
    {
      header.spacing[a] = m_OutputImage->spacing[a];
      header.origin[a] = m_OutputImage->origin[a];
      std::copy_n(m_OutputImage->direction[a], MaxDimension, header.direction[a]);
    }
  }
  m_OutputHeader = GetHeaderOfPart(header, m_Request.written);
  CheckOutput(file, m_OutputHeader, this->GetOutputOptions());
  m_Request.writtenKind = kind;
  m_Request.sinkAccess = GetOutputAccess(file, m_OutputHeader, this->GetOutputOptions());
  m_Request.spoolFolder = std::filesystem::absolute(file).parent_path().string();
}

bool
FileJob::UsesDevices() const
{
  return m_Request.backend != BackendChoice::CPU && !Manager::GetGlobal().GetDevices().empty();
}

void
FileJob::CheckPieces(const std::string & why) const
{
  const std::string which = " in pieces: " + ListFormatsInPieces() + " can be";
  if (!m_Request.sinkAccess.inPieces)
  {
    throw JobError(why + m_Names.output + " " + m_Output + " cannot be written" + which);
  }
  for (const auto & source : m_Sources)
  {
    if (!source->GetAccess().inPieces)
    {
      throw JobError(why + m_Names.input + " " + source->GetFiles().front().string() + " cannot be read" + which);
    }
  }
}

void
FileJob::RefuseDivisions(const DivisionsError & error, std::uint64_t memory, const std::string & tooLarge)
{
  if (error.divisions > 1 && m_Request.divisions == 0)
  {
    this->CheckPieces(tooLarge);
  }
  // A little for what a second run may hold more: its libraries' pages differ.
  std::uint64_t needed = m_BesideDivisions + error.needed + (std::uint64_t{ 3 } << 20);
  // Files hold more of a larger memory.
  for (std::uint64_t held = this->GetHeldByFiles(); memory > 0;)
  {
    this->ShareWithFiles(needed / PartsForFiles);
    const std::uint64_t more = this->GetHeldByFiles();
    if (more <= held)
    {
      break;
    }
    needed += more - held;
    held = more;
  }
  throw JobError(m_Names.memory + ": one of " + std::to_string(error.divisions) +
                 (error.divisions == 1 ? " division needs " : " divisions needs ") + m_Names.formatNeed(needed) +
                 ", more than " + m_Names.formatBytes(memory > 0 ? memory : error.budget));
}

void
FileJob::ShareWithFiles(std::uint64_t bytes)
{
  for (const auto & source : m_Sources)
  {
    source->HoldAtMost(bytes / m_Sources.size());
  }
  if (!m_Output.empty())
  {
    m_HeldByOutput = bytes;
    m_Request.sinkAccess = GetOutputAccess(m_Output, m_OutputHeader, this->GetOutputOptions());
  }
}

std::uint64_t
FileJob::GetHeldByFiles() const
{
  std::uint64_t bytes = m_Request.sinkAccess.heldBytes;
  for (const auto & source : m_Sources)
  {
    bytes += source->GetAccess().heldBytes;
  }
  return bytes;
}

void
FileJob::MakePlan(std::uint64_t memory, std::uint64_t ownBytes)
{
  auto & manager = Manager::GetGlobal();
  if (memory > 0)
  {
    this->ShareWithFiles(memory / PartsForFiles);
    JobMemory parts;
    parts.total = memory;
    parts.own = ownBytes;
    parts.heldByFiles = this->GetHeldByFiles();
    parts.devices = this->UsesDevices() ? manager.GetDevices().size() : 0;
    parts.mayForgoDevices = m_Request.backend == BackendChoice::Auto;
    parts.pinned = m_Request.budgets.pinned;
    const JobShares shares = ShareJobMemory(parts);
    if (shares.forgoesDevices)
    {
      m_Request.backend = BackendChoice::CPU;
      m_Warnings.push_back("the CPU computes: " + m_Names.memory + " leaves too little beside the " +
                           m_Names.formatBytes(shares.ofContexts) + " that devices take of the host's");
    }
    m_Request.memory = shares.divisions;
    m_Request.budgets.pinned = shares.pinned > 0 ? shares.pinned : m_Request.budgets.pinned;
    m_BesideDivisions = shares.beside;
  }
  const std::string tooLarge =
    m_Names.memory + ": the image does not fit into " + m_Names.formatBytes(memory) + ", and ";
  try
  {
    m_Request.keepsStates = m_Resumes && this->KeepsStates();
    m_Plan = MakeStreamedPlan(manager, m_Request);
    if (m_Request.firstPass)
    {
      // Its statistics are those of the whole image, whatever is computed of it.
      m_FirstPass = m_Request;
      m_FirstPass.region = m_FirstPass.written = m_Whole;
      m_FirstPlan = m_Whole == m_Request.region ? m_Plan : MakeStreamedPlan(manager, m_FirstPass);
    }
  }
  catch (const DivisionsError & error)
  {
    this->RefuseDivisions(error, memory, tooLarge);
  }
  if (m_Plan.divisions > 1 || m_Plan.inSlabs)
  {
    // An image that is only read, or whose run keeps states, may be held whole if no limit was set.
    if ((!m_Request.operation || m_Request.keepsStates) && memory == 0)
    {
      return;
    }
    this->CheckPieces(m_Request.divisions > 0 ? m_Names.divisions + ": "
                      : m_Request.keepsStates ? m_Names.resume + ": with " + m_Names.memory + " "
                                              : tooLarge);
  }
  else if (m_Request.divisions > 1 && m_Request.region.Extent(m_Plan.axis) > 1)
  {
    throw JobError(m_Names.divisions + ": " + m_Names.filter + " needs the whole image at once");
  }
}

bool
FileJob::HasPlanOfChunks() const
{
  return !m_Plan.inSlabs && (m_Plan.heldOnDevice < 0 || m_Request.operation->GetSchedule() == Schedule::Independent);
}

ExecutionRequest
FileJob::MakeTypicalRequest() const
{
  if (m_Plan.heldOnDevice >= 0)
  {
    ExecutionRequest whole = MakeDivisionRequest(m_Request, m_Plan, m_Request.region);
    whole.devices = m_Plan.GetHoldingDevices();
    whole.division = m_Plan.heldOnOthers.empty() ? ImageDivision::Auto : ImageDivision::Always;
    return whole;
  }
  return MakeDivisionRequest(m_Request, m_Plan, GetDivision(m_Request.region, m_Plan, m_Plan.divisions / 2));
}

Plan
FileJob::MakeTypicalPlan() const
{
  ExecutionRequest request = this->MakeTypicalRequest();
  request.imageDevice = m_Plan.heldOnOthers.empty() ? m_Plan.heldOnDevice : -1;
  return Manager::GetGlobal().MakePlanFor(request);
}

void
FileJob::RunFirstPass(Monitor * monitor, const std::function<void(const ExecutionRequest &, Monitor *)> & add)
{
  ReadStreamed(Manager::GetGlobal(), m_FirstPass, m_FirstPlan, monitor, add);
}

void
FileJob::Read(Monitor * monitor, const std::function<void(const ExecutionRequest &, Monitor *)> & add)
{
  ReadStreamed(Manager::GetGlobal(), m_Request, m_Plan, monitor, add);
}

bool
FileJob::CanResume() const
{
  const Operation & operation = *m_Request.operation;
  return operation.GetSchedule() == Schedule::Independent && !operation.HandsOnState() && !m_Plan.inSlabs &&
         GetWrittenBox(m_Request) == m_Request.region;
}

bool
FileJob::KeepsStates() const
{
  const OutOfCoreRunner * const runner = m_Request.operation ? m_Request.operation->GetOutOfCoreRunner() : nullptr;
  return runner && runner->KeepsStates() && m_Request.region == m_Whole && GetWrittenBox(m_Request) == m_Whole;
}

std::map<std::string, std::string>
FileJob::DescribeRun() const
{
  std::map<std::string, std::string> run;
  for (std::size_t i = 0; i < m_Sources.size(); ++i)
  {
    const auto further = std::find_if(m_AdditionalInputs.begin(),
                                      m_AdditionalInputs.end(),
                                      [&](const AdditionalInput & input) { return input.source == i; });
    run[further == m_AdditionalInputs.end() ? m_Names.input : m_Names.additionalInput(further->description)] =
      IdentifyInput(m_Inputs[i], *m_Sources[i]);
  }
  std::string & kinds = run["the pixel types"];
  for (const StreamedInput & input : m_Request.inputs)
  {
    kinds += std::string(PixelTypeName(input.kind)) + " ";
  }
  kinds += std::string(PixelTypeName(m_Request.computedKind)) + " " + PixelTypeName(m_Request.writtenKind);
  run["the region"] = ToString(m_Request.region.lower) + " " + ToString(m_Request.region.Extents());
  run["the program"] = IdentifyCode(reinterpret_cast<const void *>(&IdentifyInput)) + "\n" +
                       IdentifyCode(reinterpret_cast<const void *>(&GetFilters));
  return run;
}

const StreamedReport &
FileJob::Run(Monitor * monitor)
{
  OutputOptions options = this->GetOutputOptions();
  if (m_Request.keepsStates && m_Plan.inSlabs)
  {
    m_States = std::make_shared<StateFiles>(m_Output, this->DescribeRun());
    m_Request.states = m_States;
  }
  else if (m_Resumes && this->CanResume())
  {
    options.run = this->DescribeRun();
    // Keys may be long, and no text.
    options.run["the filter or its parameters"] =
      m_Request.operation->GetName() + " " + std::to_string(std::hash<std::string>()(m_Request.operation->GetKey()));
  }
  else if (m_Resumes)
  {
    m_Warnings.push_back(m_Names.resume + " has no effect: " + m_Names.filter +
                         " computes what lies far apart together, so a run that ends early begins anew");
  }
  m_Sink = CreateImage(m_Output, m_OutputHeader, options);
  const Box missing = m_Sink->GetMissing();
  m_Resumed = Box::FromExtent(m_Sink->GetExtent()).NumberOfVoxels() - missing.NumberOfVoxels();
  if (m_Resumed == 0)
  {
    m_Report = ExecuteStreamed(Manager::GetGlobal(), m_Request, m_Plan, m_Sink, monitor);
  }
  else if (!missing.IsEmpty())
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      // In files components are the first axis.
      m_Request.region.lower[std::max(0, a - (GetComponents(m_Request) > 1 ? 1 : 0))] += missing.lower[a];
    }
    m_Request.written = m_Request.region;
    m_Plan = MakeStreamedPlan(Manager::GetGlobal(), m_Request);
    // An earlier run may have written the beginning.
    const auto rest = std::make_shared<PartOfSink>(m_Sink, m_Sink->GetMissing(), true);
    m_Report = ExecuteStreamed(Manager::GetGlobal(), m_Request, m_Plan, rest, monitor);
  }
  else
  {
    m_Report.execution.backend = "none";
  }
  m_Warnings.insert(m_Warnings.end(), m_Report.execution.warnings.begin(), m_Report.execution.warnings.end());
  this->WarnOfSources();
  return m_Report;
}

std::shared_ptr<FileSink>
FileJob::CreateSink() const
{
  return CreateImage(m_Output, m_OutputHeader, this->GetOutputOptions());
}

void
FileJob::WarnOfSources()
{
  for (const auto & source : m_Sources)
  {
    for (const std::string & warning : source->GetWarnings())
    {
      m_Warnings.push_back(source->GetFiles().front().string() + ": " + warning);
    }
  }
}

void
FileJob::Finish()
{
  m_Sink->Finish();
  if (m_States)
  {
    m_States->Remove();
  }
  std::string losses;
  for (const std::string & loss : m_Sink->GetLosses())
  {
    losses += (losses.empty() ? "" : ", ") + loss;
  }
  if (!losses.empty())
  {
    m_Warnings.push_back("the format of " + m_Output + " does not store: " + losses);
  }
  if (m_Report.cut > 0)
  {
    m_Warnings.push_back(std::to_string(m_Report.cut) + " voxels were outside of " +
                         PixelTypeName(m_Request.writtenKind) + " and were cut to its range" + m_Names.adviceOnRange);
  }
  if (m_Report.atLimits > 0)
  {
    m_Warnings.push_back(std::to_string(m_Report.atLimits) + " voxels are at a limit of " +
                         PixelTypeName(m_Request.computedKind) + " and may have been cut to its range");
  }
}

std::vector<std::string>
FileJob::TakeWarnings()
{
  return std::exchange(m_Warnings, {});
}

} // namespace chunkwise::files
