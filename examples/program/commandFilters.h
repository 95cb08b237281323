/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandFilters_h
#define commandFilters_h

#include "commandArguments.h"
#include "commandElement.h"
#include "commandKernelFile.h"
#include "commandReconstruction.h"

#include "itkBoxStatisticImageFilter.h"
#include "itkChunkwiseDifferenceImageFilter.h"
#include "itkChunkwiseIdentityImageFilter.h"
#include "itkChunkwiseSequenceImageFilter.h"
#include "itkPrunedFFTConvolutionImageFilter.h"
#include "itkPrunedFFTGaussianImageFilter.h"
#include "itkRenormalizedClosingImageFilter.h"
#include "itkRenormalizedConvolutionImageFilter.h"
#include "itkRenormalizedEntropyImageFilter.h"
#include "itkRenormalizedGaussianImageFilter.h"
#include "itkRenormalizedHighPassImageFilter.h"
#include "itkRenormalizedLaplacianOfGaussianImageFilter.h"
#include "itkRenormalizedMaximumImageFilter.h"
#include "itkRenormalizedMeanImageFilter.h"
#include "itkRenormalizedMedianImageFilter.h"
#include "itkRenormalizedMinimumImageFilter.h"
#include "itkRenormalizedNonLocalMeansImageFilter.h"
#include "itkRenormalizedOpeningImageFilter.h"
#include "itkRenormalizedPercentileImageFilter.h"
#include "itkRenormalizedRangeImageFilter.h"
#include "itkRenormalizedStandardDeviationImageFilter.h"
#include "itkRenormalizedSumImageFilter.h"
#include "itkRenormalizedVarianceImageFilter.h"
#include "itkRenormalizedWienerImageFilter.h"
#include "itkSpatiallyVaryingConvolutionImageFilter.h"
#include "itkSummedAreaTableImageFilter.h"

namespace command
{

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

/** A filter of flat morphology: a box, or the element that the arguments name. */
template <typename TFilter>
typename TFilter::Pointer
MakeMorphologyFilter(const Arguments & arguments)
{
  const auto filter = MakeBoxFilter<TFilter>(arguments);
  SetElement(*filter, arguments);
  return filter;
}

template <typename TFilter>
typename TFilter::Pointer
MakeGaussianFilter(const Arguments & arguments)
{
  using Image = typename TFilter::InputImageType;
  constexpr unsigned int dimension = Image::ImageDimension;
  const auto             filter = TFilter::New();
  SetWindow<Image, typename TFilter::OutputImageType>(*filter, arguments);
  const auto sigma = SpreadOverAxes(arguments.sigma, filter->GetSpatialAxes(), dimension, "--sigma");
  filter->SetSigmaArray(itk::FixedArray<double, dimension>(sigma.data()));
  filter->SetUseImageSpacing(!arguments.voxels);
  filter->SetCutoff(arguments.cutoff);
  return filter;
}

template <typename TInputImage, typename TOutputImage>
auto
MakeVaryingConvolution(const Arguments & arguments)
{
  constexpr unsigned int dimension = TInputImage::ImageDimension;
  using KernelImage = itk::Image<double, dimension>;
  using FilterType = itk::SpatiallyVaryingConvolutionImageFilter<TInputImage, KernelImage, TOutputImage>;
  const auto filter = FilterType::New();
  SetWindow<TInputImage, TOutputImage>(*filter, arguments);
  filter->SetKernelStack(ReadKernel<dimension + 1>(arguments.kernelsFile, "--kernels"));
  const auto nodes = SpreadOverAxes(arguments.grid, filter->GetSpatialAxes(), dimension, "--grid");
  typename FilterType::GridSizeType size;
  for (unsigned int axis = 0; axis < dimension; ++axis)
  {
    size[axis] = static_cast<itk::SizeValueType>(std::max<std::int64_t>(nodes[axis], 1));
  }
  filter->SetGridSize(size);
  if (!arguments.gridOrigin.empty())
  {
    if (arguments.gridOrigin.size() != dimension || arguments.gridSpacing.size() != dimension)
    {
      throw ArgumentError("--grid-origin, --grid-spacing: " + std::to_string(arguments.gridOrigin.size()) + " and " +
                          std::to_string(arguments.gridSpacing.size()) + " numbers for a " + std::to_string(dimension) +
                          "-D image");
    }
    typename FilterType::PointType   origin;
    typename FilterType::SpacingType spacing;
    std::copy(arguments.gridOrigin.begin(), arguments.gridOrigin.end(), origin.Begin());
    std::copy(arguments.gridSpacing.begin(), arguments.gridSpacing.end(), spacing.Begin());
    filter->SetGrid(origin, spacing);
  }
  filter->SetOrder(arguments.weightsFirst ? FilterType::OrderEnum::WeightThenConvolve
                                          : FilterType::OrderEnum::ConvolveThenWeight);
  filter->SetNormalize(arguments.normalize);
  return filter;
}

/** Radii as they are read from a file: of any integer type, and below zero too. */
template <typename TInputImage>
using RadiusImage = itk::Image<int, TInputImage::ImageDimension>;

template <typename TInputImage, typename TOutputImage>
using BoxStatisticFilter = itk::BoxStatisticImageFilter<TInputImage, TOutputImage, RadiusImage<TInputImage>>;

/** The filter that the subcommand names, with its parameters. */
template <typename TInputImage, typename TOutputImage>
typename itk::ChunkwiseImageToImageFilter<TInputImage, TOutputImage>::Pointer
MakeFilter(const Arguments & arguments)
{
  if constexpr (std::is_same<TInputImage, TOutputImage>::value)
  {
    if (const auto reconstruction = MakeReconstruction<TInputImage>(arguments))
    {
      return reconstruction;
    }
  }
  else if (arguments.filter >= Filter::Reconstruction)
  {
    throw ArgumentError("--output-type: a reconstruction has the type of IN");
  }
  switch (arguments.filter)
  {
    case Filter::Mean:
      return MakeBoxFilter<itk::RenormalizedMeanImageFilter<TInputImage, TOutputImage>>(arguments).GetPointer();
    case Filter::Sum:
      return MakeBoxFilter<itk::RenormalizedSumImageFilter<TInputImage, TOutputImage>>(arguments).GetPointer();
    case Filter::Variance:
      return MakeBoxFilter<itk::RenormalizedVarianceImageFilter<TInputImage, TOutputImage>>(arguments).GetPointer();
    case Filter::StandardDeviation:
      return MakeBoxFilter<itk::RenormalizedStandardDeviationImageFilter<TInputImage, TOutputImage>>(arguments)
        .GetPointer();
    case Filter::Maximum:
      return MakeMorphologyFilter<itk::RenormalizedMaximumImageFilter<TInputImage, TOutputImage>>(arguments)
        .GetPointer();
    case Filter::Median:
      return MakeBoxFilter<itk::RenormalizedMedianImageFilter<TInputImage, TOutputImage>>(arguments).GetPointer();
    case Filter::Percentile:
    {
      const auto filter = MakeBoxFilter<itk::RenormalizedPercentileImageFilter<TInputImage, TOutputImage>>(arguments);
      filter->SetPercentile(arguments.percentile);
      return filter.GetPointer();
    }
    case Filter::Range:
      return MakeBoxFilter<itk::RenormalizedRangeImageFilter<TInputImage, TOutputImage>>(arguments).GetPointer();
    case Filter::Wiener:
    {
      const auto filter = MakeBoxFilter<itk::RenormalizedWienerImageFilter<TInputImage, TOutputImage>>(arguments);
      filter->SetNoiseVariance(arguments.noise);
      return filter.GetPointer();
    }
    case Filter::NonLocalMeans:
    {
      const auto filter =
        MakeBoxFilter<itk::RenormalizedNonLocalMeansImageFilter<TInputImage, TOutputImage>>(arguments);
      const auto patch =
        SpreadOverAxes(arguments.patch, filter->GetSpatialAxes(), TInputImage::ImageDimension, "--patch");
      typename TInputImage::SizeType size;
      std::copy(patch.begin(), patch.end(), size.begin());
      filter->SetPatchRadius(size);
      filter->SetStrength(arguments.strength);
      filter->SetNoiseVariance(arguments.noise);
      return filter.GetPointer();
    }
    case Filter::Minimum:
      return MakeMorphologyFilter<itk::RenormalizedMinimumImageFilter<TInputImage, TOutputImage>>(arguments)
        .GetPointer();
    case Filter::Opening:
      return MakeMorphologyFilter<itk::RenormalizedOpeningImageFilter<TInputImage, TOutputImage>>(arguments)
        .GetPointer();
    case Filter::Closing:
      return MakeMorphologyFilter<itk::RenormalizedClosingImageFilter<TInputImage, TOutputImage>>(arguments)
        .GetPointer();
    case Filter::Gaussian:
      if (arguments.method == chunkwise::ConvolutionMethod::FFT)
      {
        if constexpr (std::is_floating_point<typename TOutputImage::PixelType>::value)
        {
          return MakeGaussianFilter<itk::PrunedFFTGaussianImageFilter<TInputImage, TOutputImage>>(arguments)
            .GetPointer();
        }
        else
        {
          throw ArgumentError("--fft gives float32 or float64");
        }
      }
      return MakeGaussianFilter<itk::RenormalizedGaussianImageFilter<TInputImage, TOutputImage>>(arguments)
        .GetPointer();
    case Filter::Convolution:
    {
      const auto filter = itk::RenormalizedConvolutionImageFilter<TInputImage, TOutputImage>::New();
      SetWindow<TInputImage, TOutputImage>(*filter, arguments);
      const auto radius =
        SpreadOverAxes(arguments.radius, filter->GetSpatialAxes(), TInputImage::ImageDimension, "--radius");
      typename TInputImage::SizeType size;
      std::copy(radius.begin(), radius.end(), size.begin());
      itk::Neighborhood<double, TInputImage::ImageDimension> kernel;
      kernel.SetRadius(size);
      if (kernel.Size() != arguments.weights.size())
      {
        throw ArgumentError("--weights: " + std::to_string(arguments.weights.size()) + " numbers, the radius needs " +
                            std::to_string(kernel.Size()));
      }
      std::copy(arguments.weights.begin(), arguments.weights.end(), kernel.Begin());
      filter->SetKernel(kernel);
      return filter.GetPointer();
    }
    case Filter::ImageConvolution:
    {
      using KernelImage = itk::Image<double, TInputImage::ImageDimension>;
      using FilterType = itk::PrunedFFTConvolutionImageFilter<TInputImage, KernelImage, TOutputImage>;
      const auto filter = FilterType::New();
      SetWindow<TInputImage, TOutputImage>(*filter, arguments);
      filter->SetKernelImage(ReadKernel<TInputImage::ImageDimension>(arguments.kernelFile, "--kernel"));
      filter->SetNormalize(arguments.normalize);
      filter->SetCorrelate(arguments.correlate);
      filter->SetMethod(arguments.method == chunkwise::ConvolutionMethod::FFT      ? FilterType::MethodEnum::FFT
                        : arguments.method == chunkwise::ConvolutionMethod::Direct ? FilterType::MethodEnum::Direct
                                                                                   : FilterType::MethodEnum::Auto);
      if (arguments.valid)
      {
        filter->SetOutputRegionModeToValid();
      }
      return filter.GetPointer();
    }
    case Filter::VaryingConvolution:
      return MakeVaryingConvolution<TInputImage, TOutputImage>(arguments).GetPointer();
    case Filter::Entropy:
    {
      const auto filter = MakeBoxFilter<itk::RenormalizedEntropyImageFilter<TInputImage, TOutputImage>>(arguments);
      filter->SetNumberOfBins(arguments.bins);
      if (!arguments.range.empty())
      {
        filter->SetRange(arguments.range[0], arguments.range[1]);
      }
      return filter.GetPointer();
    }
    case Filter::BoxStatistic:
    {
      using Statistic = itk::BoxStatisticEnums::Statistic;
      const auto filter = MakeBoxFilter<BoxStatisticFilter<TInputImage, TOutputImage>>(arguments);
      filter->SetStatistic(arguments.statistic == "sum"        ? Statistic::Sum
                           : arguments.statistic == "mean"     ? Statistic::Mean
                           : arguments.statistic == "variance" ? Statistic::Variance
                                                               : Statistic::StandardDeviation);
      return filter.GetPointer();
    }
    case Filter::HighPass:
      return MakeGaussianFilter<itk::RenormalizedHighPassImageFilter<TInputImage, TOutputImage>>(arguments)
        .GetPointer();
    case Filter::Difference:
      return itk::ChunkwiseDifferenceImageFilter<TInputImage, TOutputImage>::New().GetPointer();
    case Filter::LaplacianOfGaussian:
      return MakeGaussianFilter<itk::RenormalizedLaplacianOfGaussianImageFilter<TInputImage, TOutputImage>>(arguments)
        .GetPointer();
    case Filter::Sequence:
    {
      const auto sequence = itk::ChunkwiseSequenceImageFilter<TInputImage, TOutputImage>::New();
      for (const Arguments & step : arguments.steps)
      {
        sequence->AddFilter(MakeFilter<TOutputImage, TOutputImage>(step));
      }
      return sequence.GetPointer();
    }
    default:
      return itk::ChunkwiseIdentityImageFilter<TInputImage, TOutputImage>::New().GetPointer();
  }
}

/** The same, or a summed-area table: the one filter whose integers become wider integers. */
template <typename TInputImage, typename TOutputImage>
typename itk::ChunkwiseImageToImageFilter<TInputImage, TOutputImage>::Pointer
MakeFilterOrTable(const Arguments & arguments)
{
  using Output = typename TOutputImage::PixelType;
  if constexpr (std::is_same<typename TInputImage::PixelType, Output>::value || std::is_floating_point<Output>::value)
  {
    if (arguments.filter != Filter::SummedAreaTable)
    {
      return MakeFilter<TInputImage, TOutputImage>(arguments);
    }
  }
  if constexpr (std::is_floating_point<Output>::value ||
                (std::is_integral<typename TInputImage::PixelType>::value && sizeof(Output) >= 4))
  {
    const auto table = itk::SummedAreaTableImageFilter<TInputImage, TOutputImage>::New();
    if (arguments.summedAxes)
    {
      table->SetSummedAxes(arguments.summedAxes);
    }
    table->SetSquares(arguments.squares);
    table->SetModular(arguments.modular);
    return table.GetPointer();
  }
  else
  {
    throw ArgumentError("--output-type: sums of integers have 32 or 64 bits, of others float32 or float64");
  }
}

} // namespace command

#endif
