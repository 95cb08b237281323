/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileItkHeader.h"
#include "formatServices.h"

#include "itkGDCMImageIO.h"
#include "itkGDCMSeriesFileNames.h"

namespace chunkwise::formats
{

namespace
{

/** Reads the header; throws unless the file is complete, and GDCM finds in it what a walk over it does. */
itk::GDCMImageIO::Pointer
OpenFile(const std::string & path, DicomSummary & summary)
{
  summary = SummarizeDicom(path);
  const auto io = itk::GDCMImageIO::New();
  if (!summary.isDicom || !summary.hasVoxels || !io->CanReadFile(path.c_str()))
  {
    throw std::runtime_error(summary.isDicom ? "is a DICOM file without an image" : "is no DICOM file");
  }
  io->SetFileName(path);
  io->ReadImageInformation();
  const unsigned int  axes = io->GetNumberOfDimensions();
  const std::uint64_t frames = axes > 2 ? io->GetDimensions(2) : 1;
  if (axes < 2 || io->GetDimensions(0) != summary.columns || io->GetDimensions(1) != summary.rows ||
      frames != summary.frames)
  {
    throw std::runtime_error("is damaged: it says its size more than once, and differently");
  }
  return io;
}

} // namespace

void
DicomService::Find(MessageReader & request, Answer & answer)
{
  const auto names = itk::GDCMSeriesFileNames::New();
  names->SetUseSeriesDetails(true);
  names->SetDirectory(request.GetText());
  const std::vector<std::string> series = names->GetSeriesUIDs();
  answer.text.Put<std::uint64_t>(series.size());
  if (series.size() == 1)
  {
    const std::vector<std::string> files = names->GetFileNames(series.front());
    answer.text.Put<std::uint64_t>(files.size());
    for (const std::string & file : files)
    {
      answer.text.PutText(file);
    }
  }
}

void
DicomService::Check(MessageReader & request, Answer & answer)
{
  const DicomSummary summary = SummarizeDicom(request.GetText());
  answer.text.Put<std::uint8_t>(summary.isDicom && summary.hasVoxels);
  answer.text.Put<std::uint8_t>(summary.isCompressed);
  answer.text.Put<std::uint8_t>(summary.isInRuns);
  answer.text.Put(summary.voxelBytes);
}

void
DicomService::Open(MessageReader & request, Answer & answer)
{
  DicomSummary summary;
  const auto   io = OpenFile(request.GetText(), summary);
  files::PutItkHeader(files::DescribeItkHeader(*io), answer.text);
}

void
DicomService::Read(MessageReader & request, Answer & answer)
{
  DicomSummary       summary;
  const auto         io = OpenFile(request.GetText(), summary);
  const unsigned int axes = io->GetNumberOfDimensions();
  itk::ImageIORegion region(axes);
  for (unsigned int a = 0; a < axes; ++a)
  {
    region.SetIndex(a, 0);
    region.SetSize(a, io->GetDimensions(a));
  }
  io->SetIORegion(region);
  answer.voxels.resize(static_cast<std::size_t>(io->GetImageSizeInBytes()));
  io->Read(answer.voxels.data());
}

} // namespace chunkwise::formats
