/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandReconstruction_h
#define commandReconstruction_h

#include "commandArguments.h"
#include "commandElement.h"

#include "itkHeapClearBorderImageFilter.h"
#include "itkHeapClosingByReconstructionImageFilter.h"
#include "itkHeapFillholeImageFilter.h"
#include "itkHeapGrindPeakImageFilter.h"
#include "itkHeapHConcaveImageFilter.h"
#include "itkHeapHConvexImageFilter.h"
#include "itkHeapHMaximaImageFilter.h"
#include "itkHeapHMinimaImageFilter.h"
#include "itkHeapOpeningByReconstructionImageFilter.h"
#include "itkHeapReconstructionByDilationImageFilter.h"
#include "itkHeapReconstructionByErosionImageFilter.h"
#include "itkHeapRegionalMaximaImageFilter.h"
#include "itkHeapRegionalMinimaImageFilter.h"

#include <cmath>

namespace command
{

template <typename TFilter>
typename TFilter::Pointer
MakeReconstructionFilter(const Arguments & arguments)
{
  const auto filter = TFilter::New();
  filter->SetFullyConnected(arguments.fullyConnected);
  if (arguments.spatialDimension)
  {
    if (arguments.spatialDimension > TFilter::ImageDimension)
    {
      throw ArgumentError("--spatial-dimension: " + std::to_string(arguments.spatialDimension) + " of a " +
                          std::to_string(TFilter::ImageDimension) + "-D image");
    }
    filter->SetSpatialDimension(arguments.spatialDimension);
  }
  return filter;
}

template <typename TFilter>
typename TFilter::Pointer
MakeHeightFilter(const Arguments & arguments)
{
  using Pixel = typename TFilter::InputPixelType;
  const auto height = static_cast<Pixel>(arguments.height);
  if (static_cast<double>(height) != arguments.height && std::is_integral<Pixel>::value)
  {
    throw ArgumentError("--height: " + std::to_string(arguments.height) + " is no value of the image's type");
  }
  const auto filter = MakeReconstructionFilter<TFilter>(arguments);
  filter->SetHeight(height);
  return filter;
}

template <typename TFilter>
typename TFilter::Pointer
MakeReconstructionOfMorphologyFilter(const Arguments & arguments)
{
  const auto                filter = MakeReconstructionFilter<TFilter>(arguments);
  std::vector<unsigned int> axes;
  for (unsigned int a = 0; a < filter->GetSpatialDimension(); ++a)
  {
    axes.push_back(a);
  }
  const auto                   radius = SpreadOverAxes(arguments.radius, axes, TFilter::ImageDimension, "--radius");
  typename TFilter::RadiusType size;
  std::copy(radius.begin(), radius.end(), size.begin());
  filter->SetRadius(size);
  SetElement(*filter, arguments);
  filter->SetPreserveIntensities(arguments.preserveIntensities);
  return filter;
}

/** The filter of a subcommand that is a reconstruction; nullptr if it is another. */
template <typename TImage>
typename itk::ChunkwiseImageToImageFilter<TImage, TImage>::Pointer
MakeReconstruction(const Arguments & arguments)
{
  switch (arguments.filter)
  {
    case Filter::Reconstruction:
      return arguments.erosion
               ? MakeReconstructionFilter<itk::HeapReconstructionByErosionImageFilter<TImage>>(arguments).GetPointer()
               : static_cast<itk::ChunkwiseImageToImageFilter<TImage, TImage> *>(
                   MakeReconstructionFilter<itk::HeapReconstructionByDilationImageFilter<TImage>>(arguments)
                     .GetPointer());
    case Filter::HMaxima:
      return MakeHeightFilter<itk::HeapHMaximaImageFilter<TImage>>(arguments).GetPointer();
    case Filter::HMinima:
      return MakeHeightFilter<itk::HeapHMinimaImageFilter<TImage>>(arguments).GetPointer();
    case Filter::HConvex:
      return MakeHeightFilter<itk::HeapHConvexImageFilter<TImage>>(arguments).GetPointer();
    case Filter::HConcave:
      return MakeHeightFilter<itk::HeapHConcaveImageFilter<TImage>>(arguments).GetPointer();
    case Filter::FillHoles:
      return MakeReconstructionFilter<itk::HeapFillholeImageFilter<TImage>>(arguments).GetPointer();
    case Filter::GrindPeaks:
      return MakeReconstructionFilter<itk::HeapGrindPeakImageFilter<TImage>>(arguments).GetPointer();
    case Filter::ClearBorder:
      return MakeReconstructionFilter<itk::HeapClearBorderImageFilter<TImage>>(arguments).GetPointer();
    case Filter::OpeningByReconstruction:
      return MakeReconstructionOfMorphologyFilter<itk::HeapOpeningByReconstructionImageFilter<TImage>>(arguments)
        .GetPointer();
    case Filter::ClosingByReconstruction:
      return MakeReconstructionOfMorphologyFilter<itk::HeapClosingByReconstructionImageFilter<TImage>>(arguments)
        .GetPointer();
    case Filter::RegionalMaxima:
      return MakeReconstructionFilter<itk::HeapRegionalMaximaImageFilter<TImage>>(arguments).GetPointer();
    case Filter::RegionalMinima:
      return MakeReconstructionFilter<itk::HeapRegionalMinimaImageFilter<TImage>>(arguments).GetPointer();
    default:
      return nullptr;
  }
}

} // namespace command

#endif
