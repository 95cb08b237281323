/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseFileToFile.h"

#include "fileImage.h"
#include "itkChunkwiseExecutor.h"
#include "itkChunkwiseMonitor.h"

#include <algorithm>
#include <sstream>

namespace itk
{

namespace
{

using chunkwise::files::FileSource;
using chunkwise::files::ImageHeader;

/** The image without its voxels, as filters see it. */
chunkwise::FilterImage
DescribeImage(const ImageHeader & header)
{
  chunkwise::FilterImage image;
  image.dimension = header.dimension;
  image.extent = header.extent;
  image.inputKind = header.kind;
  for (int a = 0; a < chunkwise::MaxDimension; ++a)
  {
    image.spacing[a] = header.spacing[a];
    image.origin[a] = header.origin[a];
    std::copy_n(header.direction[a], chunkwise::MaxDimension, image.direction[a]);
  }
  return image;
}

/** What is wrong with an image for a filter whose images have so many axes and voxels of a kind; empty: nothing. */
std::string
FindMisfit(const ImageHeader & header, int dimension, chunkwise::PixelKind kind)
{
  for (int a = dimension; a < chunkwise::MaxDimension; ++a)
  {
    if (header.extent[a] != 1)
    {
      return "it has " + std::to_string(header.dimension) + " axes, the filter's images have " +
             std::to_string(dimension);
    }
  }
  bool holds = false;
  try
  {
    holds = chunkwise::GetCommonKind(header.kind, kind) == kind;
  }
  catch (const chunkwise::ParameterError &)
  {}
  return holds ? ""
               : std::string("its pixels are ") + chunkwise::PixelKindName(header.kind) + ", which " +
                   chunkwise::PixelKindName(kind) + ", the filter's input type, does not hold";
}

/** A run's error that names what was set. */
template <typename... TParts>
[[noreturn]] void
Refuse(const TParts &... parts)
{
  std::ostringstream message;
  (message << ... << parts);
  throw chunkwise::ParameterError(message.str());
}

} // namespace

/** The files of one run, and the request that is made of them. */
class ChunkwiseFileToFile::Files
{
public:
  explicit Files(const ChunkwiseFileToFile & filter)
    : m_Filter(filter)
  {}

  /** Opens all images, asks the filter for its operation and checks what will be written. */
  void
  Prepare(chunkwise::Executor & executor);
  /** Writes the output, under its name only when it is whole. */
  chunkwise::StreamedReport
  Run(ChunkwiseMonitor & monitor);

  /** Bytes that files hold beside what a run needs. */
  std::uint64_t
  GetHeldBytes() const
  {
    return m_Held;
  }
  std::int64_t
  GetBytesRead() const;
  std::int64_t
  GetBytesWritten() const
  {
    return m_Sink->GetBytesWritten();
  }
  /** What the user should know of a run that has ended. */
  std::vector<std::string>
  ListWarnings(const chunkwise::StreamedReport & report) const;

private:
  const ImageHeader &
  Open(const std::string & what, const std::string & file);
  void
  OpenFirst();
  void
  OpenFurther();
  /** What is wrong with a further image, whose voxels are to be of a kind; empty: nothing. */
  std::string
  FindMisfitOfFurther(const ImageHeader & other, chunkwise::PixelKind kind) const;
  void
  CheckOperation() const;
  void
  PrepareOutput();
  /** Gives the run what files leave of the memory, and the devices a share of that, pinned. */
  void
  ShareMemory();
  void
  CheckPieces(const chunkwise::StreamedPlan & plan) const;

  const ChunkwiseFileToFile &                 m_Filter;
  std::vector<chunkwise::InputDescription>    m_FurtherInputs;
  std::vector<std::shared_ptr<FileSource>>    m_Sources;
  chunkwise::FilterImage                      m_Image;
  chunkwise::StreamedRequest                  m_Request;
  ImageHeader                                 m_OutputHeader;
  chunkwise::files::OutputOptions             m_Options;
  std::shared_ptr<chunkwise::files::FileSink> m_Sink;
  std::uint64_t                               m_Held{ 0 };
};

void
ChunkwiseFileToFile::Files::Prepare(chunkwise::Executor & executor)
{
  m_Request.executor = &executor;
  if (!m_Filter.m_FilterName.empty())
  {
    m_FurtherInputs = chunkwise::GetFilter(m_Filter.m_FilterName).furtherInputs;
  }
  this->OpenFirst();
  this->OpenFurther();
  m_Filter.m_Describe(m_Image, m_Request);
  this->CheckOperation();
  this->PrepareOutput();
  this->ShareMemory();
}

const ImageHeader &
ChunkwiseFileToFile::Files::Open(const std::string & what, const std::string & file)
{
  m_Sources.push_back(chunkwise::files::OpenImage(file));
  const FileSource & source = *m_Sources.back();
  m_Held += source.GetAccess().heldBytes;
  if (chunkwise::Box::FromExtent(source.GetExtent()).IsEmpty())
  {
    Refuse(what, ": ", file, " has no voxels");
  }
  return source.GetHeader();
}

void
ChunkwiseFileToFile::Files::OpenFirst()
{
  const std::string & file = m_Filter.m_InputFileName;
  const ImageHeader & header = this->Open("InputFileName", file);
  if (const std::string misfit = FindMisfit(header, m_Filter.m_Dimension, m_Filter.m_InputKind); !misfit.empty())
  {
    Refuse("InputFileName: ", file, ": ", misfit);
  }
  for (const std::int64_t expected : { m_Filter.m_Components, m_Filter.m_OutputComponents })
  {
    if (expected != 0 && header.components != expected)
    {
      Refuse("InputFileName: ",
             file,
             ": its pixels have ",
             header.components,
             " components, those of the filter's images ",
             expected);
    }
  }
  m_Image = DescribeImage(header);
  if (header.components > 1)
  {
    m_Image.extent[chunkwise::MaxDimension - 1] = header.components;
  }
  m_Image.dimension = m_Filter.m_Dimension;
  m_Image.inputKind = m_Filter.m_InputKind;
  m_Request.inputs.push_back({ m_Sources.front(), m_Filter.m_InputKind, header.components });
}

void
ChunkwiseFileToFile::Files::OpenFurther()
{
  const auto & files = m_Filter.m_FurtherInputFileNames;
  for (const auto & given : files)
  {
    if (std::none_of(m_FurtherInputs.begin(), m_FurtherInputs.end(), [&](const auto & input) {
          return input.name == given.first;
        }))
    {
      Refuse(given.first, ": the filter has no such input");
    }
  }
  for (const chunkwise::InputDescription & input : m_FurtherInputs)
  {
    const auto given = files.find(input.name);
    if (given == files.end())
    {
      continue;
    }
    const ImageHeader & other = this->Open(input.name, given->second);
    const auto          kind = input.ownKind ? other.kind : m_Filter.m_InputKind;
    if (const std::string misfit = this->FindMisfitOfFurther(other, kind); !misfit.empty())
    {
      Refuse(input.name, ": ", given->second, ": ", misfit);
    }
    m_Image.furtherInputs.push_back(input.name);
    m_Request.inputs.insert(input.before ? m_Request.inputs.begin() : m_Request.inputs.end(),
                            { m_Sources.back(), kind, other.components });
  }
}

std::string
ChunkwiseFileToFile::Files::FindMisfitOfFurther(const ImageHeader & other, chunkwise::PixelKind kind) const
{
  const ImageHeader & header = m_Sources.front()->GetHeader();
  if (const std::string misfit = FindMisfit(other, m_Filter.m_Dimension, kind); !misfit.empty())
  {
    return misfit;
  }
  if (other.components != 1 && other.components != header.components)
  {
    return "its pixels have " + std::to_string(other.components) + " components, those of the first image " +
           std::to_string(header.components);
  }
  if (other.extent != header.extent)
  {
    return "it has " + ToString(other.extent) + " voxels, the first image has " + ToString(header.extent);
  }
  const int axis = chunkwise::files::FindAxisThatDiffers(header, other);
  return axis < 0 ? ""
                  : "it does not lie where the first image does: spacing, origin or direction differ along axis " +
                      std::to_string(axis);
}

void
ChunkwiseFileToFile::Files::CheckOperation() const
{
  std::vector<chunkwise::PixelKind> kinds;
  for (const chunkwise::StreamedInput & input : m_Request.inputs)
  {
    kinds.push_back(input.kind);
  }
  const chunkwise::Operation & operation = *m_Request.operation;
  if (static_cast<int>(kinds.size()) != operation.GetNumberOfInputs())
  {
    Refuse(m_FurtherInputs.empty() ? "InputFileName" : m_FurtherInputs.front().name,
           ": the filter takes ",
           operation.GetNumberOfInputs(),
           " images, not ",
           kinds.size());
  }
  operation.Validate(m_Image.extent);
  operation.CheckKinds(kinds, m_Image.outputKind);
}

void
ChunkwiseFileToFile::Files::PrepareOutput()
{
  const std::string & file = m_Filter.m_OutputFileName;
  m_OutputHeader = chunkwise::files::GetHeaderOfPart(m_Sources.front()->GetHeader(), m_Request.region);
  m_OutputHeader.kind = m_Filter.m_OutputKind;
  m_Options.compress = m_Filter.m_UseCompression;
  for (const auto & source : m_Sources)
  {
    m_Options.inputFiles.insert(m_Options.inputFiles.end(), source->GetFiles().begin(), source->GetFiles().end());
  }
  chunkwise::files::CheckOutput(file, m_OutputHeader, m_Options);
  m_Request.computedKind = m_Image.outputKind;
  m_Request.writtenKind = m_Filter.m_OutputKind;
  m_Request.sinkAccess = chunkwise::files::GetOutputAccess(file, m_OutputHeader, m_Options);
  m_Request.spoolFolder = std::filesystem::absolute(file).parent_path().string();
  m_Held += m_Request.sinkAccess.heldBytes;
}

void
ChunkwiseFileToFile::Files::ShareMemory()
{
  const std::uint64_t memory = m_Filter.m_Memory;
  if (memory == 0)
  {
    return;
  }
  m_Request.memory = memory > m_Held ? memory - m_Held : 1;
  const std::size_t devices =
    m_Request.backend == chunkwise::BackendChoice::CPU ? 0 : chunkwise::Manager::GetGlobal().GetDevices().size();
  if (devices > 0)
  {
    const std::uint64_t share = std::min<std::uint64_t>(m_Request.memory / 4 / devices, std::uint64_t{ 256 } << 20);
    m_Request.budgets.pinned = m_Request.budgets.pinned > 0 ? std::min(m_Request.budgets.pinned, share) : share;
    m_Request.memory -= share * devices;
  }
}

void
ChunkwiseFileToFile::Files::CheckPieces(const chunkwise::StreamedPlan & plan) const
{
  const bool inPieces =
    std::all_of(m_Sources.begin(), m_Sources.end(), [](const auto & source) { return source->GetAccess().inPieces; }) &&
    m_Request.sinkAccess.inPieces;
  if ((plan.divisions > 1 || plan.inSlabs) && !inPieces)
  {
    Refuse("Memory: the image does not fit, and only ",
           chunkwise::files::ListFormatsInPieces(),
           " are read and written in pieces");
  }
}

chunkwise::StreamedReport
ChunkwiseFileToFile::Files::Run(ChunkwiseMonitor & monitor)
{
  chunkwise::Manager &          manager = chunkwise::Manager::GetGlobal();
  const chunkwise::StreamedPlan plan = chunkwise::MakeStreamedPlan(manager, m_Request);
  this->CheckPieces(plan);
  m_Sink = chunkwise::files::CreateImage(m_Filter.m_OutputFileName, m_OutputHeader, m_Options);
  chunkwise::StreamedReport report = chunkwise::ExecuteStreamed(manager, m_Request, plan, m_Sink, &monitor);
  monitor.RethrowObserverException();
  m_Sink->Finish();
  return report;
}

std::int64_t
ChunkwiseFileToFile::Files::GetBytesRead() const
{
  std::int64_t bytes = 0;
  for (const auto & source : m_Sources)
  {
    bytes += source->GetBytesRead();
  }
  return bytes;
}

std::vector<std::string>
ChunkwiseFileToFile::Files::ListWarnings(const chunkwise::StreamedReport & report) const
{
  std::vector<std::string> warnings(report.execution.warnings.begin(), report.execution.warnings.end());
  for (const auto & source : m_Sources)
  {
    for (const std::string & warning : source->GetWarnings())
    {
      warnings.push_back(source->GetFiles().front().string() + ": " + warning);
    }
  }
  for (const std::string & loss : m_Sink->GetLosses())
  {
    warnings.push_back("the format of " + m_Filter.m_OutputFileName + " does not store: " + loss);
  }
  if (report.cut > 0)
  {
    warnings.push_back(std::to_string(report.cut) + " results are beyond what " +
                       chunkwise::PixelKindName(m_Filter.m_OutputKind) + " holds, and were clamped");
  }
  return warnings;
}

void
ChunkwiseFileToFile::SetFurtherInputFileName(const std::string & input, const std::string & file)
{
  const auto known = m_FurtherInputFileNames.find(input);
  if (file.empty() ? known == m_FurtherInputFileNames.end()
                   : known != m_FurtherInputFileNames.end() && known->second == file)
  {
    return;
  }
  if (file.empty())
  {
    m_FurtherInputFileNames.erase(known);
  }
  else
  {
    m_FurtherInputFileNames[input] = file;
  }
  this->Modified();
}

void
ChunkwiseFileToFile::Update()
{
  this->SetAbortGenerateData(false);
  this->SetProgress(0.0f);
  this->InvokeEvent(StartEvent());
  try
  {
    this->GenerateData();
  }
  catch (const ProcessAborted &)
  {
    this->InvokeEvent(AbortEvent());
    throw;
  }
  this->InvokeEvent(EndEvent());
}

void
ChunkwiseFileToFile::GenerateData()
{
  m_Report = chunkwise::StreamedReport();
  m_BytesRead = m_BytesWritten = 0;
  if (!m_Filter)
  {
    itkExceptionMacro("Filter: none is set");
  }
  for (const auto & name :
       { std::make_pair("InputFileName", &m_InputFileName), std::make_pair("OutputFileName", &m_OutputFileName) })
  {
    if (name.second->empty())
    {
      itkExceptionMacro(<< name.first << ": none is set");
    }
  }
  ChunkwiseExecutor executor(this->GetMultiThreader(), this->GetNumberOfWorkUnits());
  ChunkwiseMonitor  monitor(*this);
  Files             files(*this);
  std::string       warning;
  try
  {
    files.Prepare(executor);
    m_Report = files.Run(monitor);
    m_BytesRead = files.GetBytesRead();
    m_BytesWritten = files.GetBytesWritten();
    for (const std::string & line : files.ListWarnings(m_Report))
    {
      warning += (warning.empty() ? "" : "\n") + line;
    }
  }
  catch (const chunkwise::Aborted &)
  {
    monitor.RethrowObserverException();
    ProcessAborted aborted(__FILE__, __LINE__);
    aborted.SetLocation(ITK_LOCATION);
    aborted.SetDescription("AbortGenerateData was set");
    throw aborted;
  }
  catch (const chunkwise::DivisionsError & error)
  {
    // Beside the divisions: what files hold, and pinned memory.
    const std::uint64_t beside =
      m_Memory > 0
        ? std::max<std::uint64_t>(files.GetHeldBytes(), m_Memory - std::min<std::uint64_t>(m_Memory, error.budget))
        : 0;
    itkExceptionMacro(<< "Memory: one of " << error.divisions << " parts of the image needs " << beside + error.needed
                      << " bytes, more than " << (m_Memory > 0 ? m_Memory : error.budget));
  }
  catch (const chunkwise::Error & error)
  {
    itkExceptionMacro(<< error.what());
  }
  if (!warning.empty())
  {
    itkWarningMacro(<< warning);
  }
}

void
ChunkwiseFileToFile::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "InputFileName: " << m_InputFileName << std::endl;
  for (const auto & input : m_FurtherInputFileNames)
  {
    os << indent << input.first << ": " << input.second << std::endl;
  }
  os << indent << "OutputFileName: " << m_OutputFileName << std::endl;
  os << indent << "UseCompression: " << (m_UseCompression ? "On" : "Off") << std::endl;
  os << indent << "Memory: " << m_Memory << std::endl;
  os << indent << "FilterName: " << m_FilterName << std::endl;
  os << indent << "BytesRead: " << m_BytesRead << std::endl;
  os << indent << "BytesWritten: " << m_BytesWritten << std::endl;
}

} // namespace itk
