/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandStatistics_h
#define commandStatistics_h

#include "commandArguments.h"

#include "itkChunkwiseStatisticsImageSink.h"
#include "itkImageFileReader.h"

#include <iomanip>
#include <iostream>
#include <limits>

namespace command
{

/** Prints the sum, mean, minimum and maximum of an image. */
template <typename TImage>
void
PrintStatistics(const Arguments & arguments)
{
  using Print = typename itk::NumericTraits<typename TImage::PixelType>::PrintType;
  const auto reader = itk::ImageFileReader<TImage>::New();
  reader->SetFileName(arguments.input);
  reader->ReleaseDataFlagOn();
  reader->UpdateOutputInformation();
  const auto sink = itk::ChunkwiseStatisticsImageSink<TImage>::New();
  sink->SetInput(reader->GetOutput());
  // Pieces of about 64 MiB, where the format can be read in pieces.
  const auto bytes = reader->GetOutput()->GetLargestPossibleRegion().GetNumberOfPixels() *
                     static_cast<std::uint64_t>(sizeof(typename TImage::PixelType));
  sink->SetNumberOfStreamDivisions(arguments.divisions ? arguments.divisions
                                                       : static_cast<unsigned int>(1 + (bytes >> 26)));
  sink->Update();
  // Throws if there are no numbers, before anything is printed.
  const double mean = sink->GetMean();
  std::cout << std::setprecision(std::numeric_limits<double>::max_digits10) << "sum: " << sink->GetSum()
            << "\nmean: " << mean << "\nminimum: " << static_cast<Print>(sink->GetMinimum())
            << "\nmaximum: " << static_cast<Print>(sink->GetMaximum()) << "\n";
  if (sink->GetNumberOfNaNs() > 0)
  {
    std::cout << "not numbers: " << sink->GetNumberOfNaNs() << "\n";
  }
}

} // namespace command

#endif
