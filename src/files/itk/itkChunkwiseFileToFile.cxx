/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseFileToFile.h"

#include "fileJob.h"
#include "itkChunkwiseExecutor.h"
#include "itkChunkwiseMonitor.h"

#include <algorithm>
#include <sstream>

namespace itk
{

namespace
{

using chunkwise::files::FileJob;
using chunkwise::files::ImageHeader;

/** The error of an image for a filter whose images have so many axes and voxels of a kind; empty: none. */
std::string
FindMisfit(const ImageHeader & header, int dimension, chunkwise::PixelType kind)
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
               : std::string("its pixels are ") + chunkwise::PixelTypeName(header.kind) + ", which " +
                   chunkwise::PixelTypeName(kind) + ", the filter's input type, does not hold";
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

/** The names of the setters. */
chunkwise::files::JobNames
NamesOfSetters(const std::string & filter)
{
  chunkwise::files::JobNames names;
  names.input = "InputFileName";
  names.output = "OutputFileName";
  names.memory = "Memory";
  names.divisions = "Memory";
  names.resume = "Resume";
  names.filter = filter;
  names.additionalInput = [](const chunkwise::InputDescription & input) { return input.name; };
  names.formatBytes = [](std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; };
  names.formatNeed = names.formatBytes;
  return names;
}

} // namespace

/** The job of one run: opens the images that the filter's types can hold, and asks the filter for its operation. */
class ChunkwiseFileToFile::Files
{
public:
  Files(const ChunkwiseFileToFile & filter, chunkwise::Executor & executor);

  FileJob &
  GetJob()
  {
    return m_Job;
  }
  std::int64_t
  GetBytesRead() const;

private:
  void
  OpenFirst();
  void
  OpenFurther();
  void
  SetOperation();

  const ChunkwiseFileToFile &              m_Filter;
  FileJob                                  m_Job;
  std::vector<chunkwise::InputDescription> m_AdditionalInputs;
};

ChunkwiseFileToFile::Files::Files(const ChunkwiseFileToFile & filter, chunkwise::Executor & executor)
  : m_Filter(filter)
  , m_Job(NamesOfSetters(filter.m_FilterName), executor)
{
  if (!m_Filter.m_FilterName.empty())
  {
    m_AdditionalInputs = chunkwise::GetFilter(m_Filter.m_FilterName).additionalInputs;
  }
  this->OpenFirst();
  this->OpenFurther();
  this->SetOperation();
  m_Job.SetZarrOptions("ZarrOptions", m_Filter.m_ZarrOptions);
  m_Job.SetResume(m_Filter.m_Resume);
  m_Job.SetOutput(m_Filter.m_OutputFileName, m_Filter.m_OutputKind, m_Filter.m_UseCompression);
  // The application's memory beside the run is not counted.
  m_Job.MakePlan(m_Filter.m_Memory, chunkwise::files::LeastOwnBytes);
}

void
ChunkwiseFileToFile::Files::OpenFirst()
{
  const std::string & file = m_Filter.m_InputFileName;
  const ImageHeader & header = m_Job.SetInput(file, chunkwise::files::OpenImage(file));
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
}

void
ChunkwiseFileToFile::Files::OpenFurther()
{
  const auto & files = m_Filter.m_AdditionalInputFileNames;
  for (const auto & given : files)
  {
    if (std::none_of(m_AdditionalInputs.begin(), m_AdditionalInputs.end(), [&](const auto & input) {
          return input.name == given.first;
        }))
    {
      Refuse(given.first, ": the filter has no such input");
    }
  }
  for (const chunkwise::InputDescription & input : m_AdditionalInputs)
  {
    const auto given = files.find(input.name);
    if (given == files.end())
    {
      continue;
    }
    const ImageHeader & other = m_Job.AddInput(input, given->second, chunkwise::files::OpenImage(given->second));
    const auto          kind = input.ownKind ? other.kind : m_Filter.m_InputKind;
    if (const std::string misfit = FindMisfit(other, m_Filter.m_Dimension, kind); !misfit.empty())
    {
      Refuse(input.name, ": ", given->second, ": ", misfit);
    }
  }
}

void
ChunkwiseFileToFile::Files::SetOperation()
{
  chunkwise::FilterImage image = m_Job.DescribeImage(m_Filter.m_InputKind, m_Filter.m_OutputKind);
  image.dimension = m_Filter.m_Dimension;
  const chunkwise::Coordinates extent = image.extent;
  chunkwise::StreamedRequest & request = m_Job.GetRequest();
  m_Filter.m_Describe(image, request);
  const auto operation = request.operation;
  const auto region = request.region;
  if (const std::string wrong = m_Job.FindWrongNumberOfImages(*operation, m_AdditionalInputs); !wrong.empty())
  {
    Refuse(wrong);
  }
  operation->Validate(extent);
  m_Job.SetOutputImage(image);
  operation->CheckKinds(m_Job.ListInputKinds(m_Filter.m_InputKind), image.outputKind);
  m_Job.SetOperation(operation, m_Filter.m_InputKind, image.outputKind, region, region, region);
}

std::int64_t
ChunkwiseFileToFile::Files::GetBytesRead() const
{
  std::int64_t bytes = 0;
  for (const auto & source : m_Job.GetSources())
  {
    bytes += source->GetBytesRead();
  }
  return bytes;
}

void
ChunkwiseFileToFile::SetAdditionalInputFileName(const std::string & input, const std::string & file)
{
  const auto known = m_AdditionalInputFileNames.find(input);
  if (file.empty() ? known == m_AdditionalInputFileNames.end()
                   : known != m_AdditionalInputFileNames.end() && known->second == file)
  {
    return;
  }
  if (file.empty())
  {
    m_AdditionalInputFileNames.erase(known);
  }
  else
  {
    m_AdditionalInputFileNames[input] = file;
  }
  this->Modified();
}

void
ChunkwiseFileToFile::Update()
{
  this->SetAbortGenerateData(false);
  this->InvokeEvent(StartEvent());
  this->UpdateProgress(0.0f);
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
  m_Plan = chunkwise::StreamedPlan();
  m_BytesRead = m_BytesWritten = m_ResumedVoxels = m_ResumedIterations = 0;
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
  std::string       warning;
  try
  {
    Files     files(*this, executor);
    FileJob & job = files.GetJob();
    m_Plan = job.GetPlan();
    m_Report = job.Run(&monitor);
    monitor.RethrowObserverException();
    job.Finish();
    m_BytesRead = files.GetBytesRead();
    m_BytesWritten = job.GetBytesWritten();
    m_ResumedVoxels = static_cast<SizeValueType>(job.GetResumed());
    m_ResumedIterations = static_cast<SizeValueType>(job.GetStepsDone());
    for (const std::string & line : job.TakeWarnings())
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
  for (const auto & input : m_AdditionalInputFileNames)
  {
    os << indent << input.first << ": " << input.second << std::endl;
  }
  os << indent << "OutputFileName: " << m_OutputFileName << std::endl;
  os << indent << "UseCompression: " << (m_UseCompression ? "On" : "Off") << std::endl;
  os << indent << "ZarrOptions: " << m_ZarrOptions << std::endl;
  os << indent << "Resume: " << (m_Resume ? "On" : "Off") << std::endl;
  os << indent << "Memory: " << m_Memory << std::endl;
  os << indent << "FilterName: " << m_FilterName << std::endl;
  os << indent << "BytesRead: " << m_BytesRead << std::endl;
  os << indent << "BytesWritten: " << m_BytesWritten << std::endl;
  os << indent << "ResumedVoxels: " << m_ResumedVoxels << std::endl;
  os << indent << "ResumedIterations: " << m_ResumedIterations << std::endl;
}

} // namespace itk
