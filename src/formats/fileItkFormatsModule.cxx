/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileItkFormats.h"

#include "itkGDCMImageIO.h"
#include "itkGDCMSeriesFileNames.h"
#include "itkHDF5ImageIO.h"

#if defined(_WIN32)
#  define CHUNKWISE_MODULE_EXPORT __declspec(dllexport)
#else
#  define CHUNKWISE_MODULE_EXPORT __attribute__((visibility("default")))
#endif

namespace
{

std::size_t
FindSeries(const std::string & folder, std::vector<std::string> & slices)
{
  const auto names = itk::GDCMSeriesFileNames::New();
  names->SetUseSeriesDetails(true);
  names->SetDirectory(folder);
  const std::size_t series = names->GetSeriesUIDs().size();
  if (series == 1)
  {
    slices = names->GetFileNames(names->GetSeriesUIDs().front());
  }
  return series;
}

} // namespace

extern "C" CHUNKWISE_MODULE_EXPORT const chunkwise::files::ItkFormats *
                                         chunkwiseGetItkFormats(int version)
{
  static const chunkwise::files::ItkFormats formats{
    [] { return itk::ImageIOBase::Pointer(itk::HDF5ImageIO::New().GetPointer()); },
    [] { return itk::ImageIOBase::Pointer(itk::GDCMImageIO::New().GetPointer()); },
    FindSeries
  };
  return version == chunkwise::files::ItkFormatsVersion ? &formats : nullptr;
}
