/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandFilters_h
#define commandFilters_h

#include "commandArguments.h"

#include "itkChunkwiseIdentityImageFilter.h"
#include "itkRenormalizedGaussianImageFilter.h"
#include "itkRenormalizedMeanImageFilter.h"
#include "itkRenormalizedStandardDeviationImageFilter.h"
#include "itkRenormalizedSumImageFilter.h"
#include "itkRenormalizedVarianceImageFilter.h"
#include "itkSummedAreaTableImageFilter.h"

namespace command
{

/** One value for each axis of the image from one value for all, or one for each spatial axis. */
template <typename TValue>
std::vector<TValue>
SpreadOverAxes(const std::vector<TValue> & values, const std::vector<unsigned int> & axes, unsigned int dimension,
               const std::string & option)
{
  if (values.size() != 1 && values.size() != axes.size())
  {
    throw ArgumentError(option + ": " + std::to_string(values.size()) + " values for " + std::to_string(axes.size()) +
                        " spatial axes");
  }
  std::vector<TValue> spread(dimension, TValue{ 0 });
  for (std::size_t i = 0; i < axes.size(); ++i)
  {
    spread[axes[i]] = values[values.size() == 1 ? 0 : i];
  }
  return spread;
}

template <typename TInputImage, typename TOutputImage>
void
SetWindow(itk::ChunkwiseWindowImageFilter<TInputImage, TOutputImage> & filter, const Arguments & arguments)
{
  filter.SetBoundaryCondition(static_cast<itk::ChunkwiseEnums::BoundaryCondition>(arguments.boundary));
  filter.SetConstant(arguments.constant);
  for (const unsigned int axis : arguments.axes)
  {
    if (axis >= TInputImage::ImageDimension)
    {
      throw ArgumentError("--axes: " + std::to_string(axis) + " is not an axis of a " +
                          std::to_string(TInputImage::ImageDimension) + "-D image");
    }
  }
  if (!arguments.axes.empty())
  {
    filter.SetSpatialAxes(arguments.axes);
  }
}

template <typename TFilter>
typename TFilter::Pointer
MakeBoxFilter(const Arguments & arguments)
{
  using Image = typename TFilter::InputImageType;
  const auto filter = TFilter::New();
  SetWindow<Image, typename TFilter::OutputImageType>(*filter, arguments);
  const auto radius = SpreadOverAxes(arguments.radius, filter->GetSpatialAxes(), Image::ImageDimension, "--radius");
  typename Image::SizeType size;
  std::copy(radius.begin(), radius.end(), size.begin());
  filter->SetRadius(size);
  return filter;
}

template <typename TInputImage, typename TOutputImage>
typename itk::ChunkwiseImageToImageFilter<TInputImage, TOutputImage>::Pointer
MakeSummedAreaTableFilter(const Arguments & arguments)
{
  const auto filter = itk::SummedAreaTableImageFilter<TInputImage, TOutputImage>::New();
  if (arguments.summedAxes)
  {
    filter->SetSummedAxes(arguments.summedAxes);
  }
  filter->SetSquares(arguments.squares);
  filter->SetModular(arguments.modular);
  return filter.GetPointer();
}

/** Whether the windowed filters make this output of this input. */
template <typename TInputPixel, typename TOutputPixel>
constexpr bool IsWindowedOutput =
  std::is_same<TInputPixel, TOutputPixel>::value || std::is_floating_point<TOutputPixel>::value;

/** The filter that the subcommand names, with its parameters. */
template <typename TInputImage, typename TOutputImage>
typename itk::ChunkwiseImageToImageFilter<TInputImage, TOutputImage>::Pointer
MakeFilter(const Arguments & arguments)
{
  if constexpr (!IsWindowedOutput<typename TInputImage::PixelType, typename TOutputImage::PixelType>)
  {
    return MakeSummedAreaTableFilter<TInputImage, TOutputImage>(arguments);
  }
  else
  {
    constexpr unsigned int dimension = TInputImage::ImageDimension;
    switch (arguments.filter)
    {
      case Filter::SummedAreaTable:
        return MakeSummedAreaTableFilter<TInputImage, TOutputImage>(arguments);
      case Filter::Mean:
        return MakeBoxFilter<itk::RenormalizedMeanImageFilter<TInputImage, TOutputImage>>(arguments).GetPointer();
      case Filter::Sum:
        return MakeBoxFilter<itk::RenormalizedSumImageFilter<TInputImage, TOutputImage>>(arguments).GetPointer();
      case Filter::Variance:
        return MakeBoxFilter<itk::RenormalizedVarianceImageFilter<TInputImage, TOutputImage>>(arguments).GetPointer();
      case Filter::StandardDeviation:
        return MakeBoxFilter<itk::RenormalizedStandardDeviationImageFilter<TInputImage, TOutputImage>>(arguments)
          .GetPointer();
      case Filter::Gaussian:
      {
        const auto filter = itk::RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::New();
        SetWindow<TInputImage, TOutputImage>(*filter, arguments);
        const auto sigma = SpreadOverAxes(arguments.sigma, filter->GetSpatialAxes(), dimension, "--sigma");
        filter->SetSigmaArray(itk::FixedArray<double, dimension>(sigma.data()));
        filter->SetUseImageSpacing(!arguments.voxels);
        filter->SetCutoff(arguments.cutoff);
        return filter.GetPointer();
      }
      default:
        return itk::ChunkwiseIdentityImageFilter<TInputImage, TOutputImage>::New().GetPointer();
    }
  }
}

} // namespace command

#endif
