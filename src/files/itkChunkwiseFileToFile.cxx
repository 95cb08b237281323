/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseFileToFile.h"

#include "fileImage.h"
#include "itkChunkwiseExecutor.h"
#include "itkChunkwiseMonitor.h"

#include <algorithm>

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

} // namespace

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
  std::uint64_t     held = 0;
  std::string       warning;
  const auto        warn = [&warning](const std::string & line) { warning += (warning.empty() ? "" : "\n") + line; };
  try
  {
    std::vector<std::shared_ptr<FileSource>> sources;
    chunkwise::StreamedRequest               request;
    const auto                               open = [&](const std::string & what, const std::string & file) {
      sources.push_back(chunkwise::files::OpenImage(file));
      held += sources.back()->GetAccess().heldBytes;
      if (chunkwise::Box::FromExtent(sources.back()->GetExtent()).IsEmpty())
      {
        itkExceptionMacro(<< what << ": " << file << " has no voxels");
      }
    };
    open("InputFileName", m_InputFileName);
    const ImageHeader & header = sources.front()->GetHeader();
    if (const std::string misfit = FindMisfit(header, m_Dimension, m_InputKind); !misfit.empty())
    {
      itkExceptionMacro(<< "InputFileName: " << m_InputFileName << ": " << misfit);
    }
    for (const std::int64_t expected : { m_Components, m_OutputComponents })
    {
      if (expected != 0 && header.components != expected)
      {
        itkExceptionMacro(<< "InputFileName: " << m_InputFileName << ": its pixels have " << header.components
                          << " components, those of the filter's images " << expected);
      }
    }
    chunkwise::FilterImage image = DescribeImage(header);
    if (header.components > 1)
    {
      image.extent[chunkwise::MaxDimension - 1] = header.components;
    }
    image.dimension = m_Dimension;
    image.inputKind = m_InputKind;
    request.inputs.push_back({ sources.front(), m_InputKind, header.components });

    const auto further = m_FilterName.empty() ? std::vector<chunkwise::InputDescription>()
                                              : chunkwise::GetFilter(m_FilterName).furtherInputs;
    for (const auto & given : m_FurtherInputFileNames)
    {
      if (std::none_of(further.begin(), further.end(), [&](const auto & input) { return input.name == given.first; }))
      {
        itkExceptionMacro(<< given.first << ": the filter has no such input");
      }
    }
    for (const chunkwise::InputDescription & input : further)
    {
      const auto given = m_FurtherInputFileNames.find(input.name);
      if (given == m_FurtherInputFileNames.end())
      {
        continue;
      }
      open(input.name, given->second);
      const ImageHeader & other = sources.back()->GetHeader();
      const auto          kind = input.ownKind ? other.kind : m_InputKind;
      std::string         misfit = FindMisfit(other, m_Dimension, kind);
      if (misfit.empty() && other.components != 1 && other.components != header.components)
      {
        misfit = "its pixels have " + std::to_string(other.components) + " components, those of the first image " +
                 std::to_string(header.components);
      }
      if (misfit.empty() && other.extent != header.extent)
      {
        misfit = "it has " + ToString(other.extent) + " voxels, the first image has " + ToString(header.extent);
      }
      if (misfit.empty() && chunkwise::files::FindAxisThatDiffers(header, other) >= 0)
      {
        misfit = "it does not lie where the first image does: spacing, origin or direction differ along axis " +
                 std::to_string(chunkwise::files::FindAxisThatDiffers(header, other));
      }
      if (!misfit.empty())
      {
        itkExceptionMacro(<< input.name << ": " << given->second << ": " << misfit);
      }
      image.furtherInputs.push_back(input.name);
      request.inputs.insert(input.before ? request.inputs.begin() : request.inputs.end(),
                            { sources.back(), kind, other.components });
    }

    m_Describe(image, request);
    std::vector<chunkwise::PixelKind> kinds;
    for (const chunkwise::StreamedInput & input : request.inputs)
    {
      kinds.push_back(input.kind);
    }
    if (static_cast<int>(kinds.size()) != request.operation->GetNumberOfInputs())
    {
      itkExceptionMacro(<< (further.empty() ? "InputFileName" : further.front().name) << ": the filter takes "
                        << request.operation->GetNumberOfInputs() << " images, not " << kinds.size());
    }
    request.operation->Validate(image.extent);
    request.operation->CheckKinds(kinds, image.outputKind);

    ImageHeader outputHeader = chunkwise::files::GetHeaderOfPart(header, request.region);
    outputHeader.kind = m_OutputKind;
    chunkwise::files::OutputOptions options;
    options.compress = m_UseCompression;
    for (const auto & source : sources)
    {
      options.inputFiles.insert(options.inputFiles.end(), source->GetFiles().begin(), source->GetFiles().end());
    }
    chunkwise::files::CheckOutput(m_OutputFileName, outputHeader, options);
    request.computedKind = image.outputKind;
    request.writtenKind = m_OutputKind;
    request.sinkAccess = chunkwise::files::GetOutputAccess(m_OutputFileName, outputHeader, options);
    request.spoolFolder = std::filesystem::absolute(m_OutputFileName).parent_path().string();
    request.executor = &executor;
    held += request.sinkAccess.heldBytes;
    if (m_Memory > 0)
    {
      request.memory = m_Memory > held ? m_Memory - held : 1;
      const std::size_t devices =
        request.backend == chunkwise::BackendChoice::CPU ? 0 : chunkwise::Manager::GetGlobal().GetDevices().size();
      if (devices > 0)
      {
        const std::uint64_t share = std::min<std::uint64_t>(request.memory / 4 / devices, std::uint64_t{ 256 } << 20);
        request.budgets.pinned = request.budgets.pinned > 0 ? std::min(request.budgets.pinned, share) : share;
        request.memory -= share * devices;
      }
    }
    chunkwise::Manager &          manager = chunkwise::Manager::GetGlobal();
    const chunkwise::StreamedPlan plan = chunkwise::MakeStreamedPlan(manager, request);
    if (plan.divisions > 1 || plan.inSlabs)
    {
      const bool inPieces =
        std::all_of(sources.begin(), sources.end(), [](const auto & source) { return source->GetAccess().inPieces; });
      if (!inPieces || !request.sinkAccess.inPieces)
      {
        itkExceptionMacro(<< "Memory: the image does not fit, and only " << chunkwise::files::ListFormatsInPieces()
                          << " are read and written in pieces");
      }
    }
    const std::shared_ptr<chunkwise::files::FileSink> sink =
      chunkwise::files::CreateImage(m_OutputFileName, outputHeader, options);
    m_Report = chunkwise::ExecuteStreamed(manager, request, plan, sink, &monitor);
    monitor.RethrowObserverException();
    sink->Finish();

    for (const auto & source : sources)
    {
      m_BytesRead += source->GetBytesRead();
    }
    m_BytesWritten = sink->GetBytesWritten();
    for (const std::string & line : m_Report.execution.warnings)
    {
      warn(line);
    }
    for (const std::string & loss : sink->GetLosses())
    {
      warn("the format of " + m_OutputFileName + " cannot hold the image's " + loss);
    }
    if (m_Report.cut > 0)
    {
      warn(std::to_string(m_Report.cut) + " results are beyond what " + chunkwise::PixelKindName(m_OutputKind) +
           " holds, and were clamped");
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
      m_Memory > 0 ? std::max<std::uint64_t>(held, m_Memory - std::min<std::uint64_t>(m_Memory, error.budget)) : 0;
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
