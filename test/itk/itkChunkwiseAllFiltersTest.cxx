/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkBinaryBallMorphologyImageFilter.h"
#include "itkBoxStatisticImageFilter.h"
#include "itkChunkwiseDifferenceImageFilter.h"
#include "itkChunkwiseIdentityImageFilter.h"
#include "itkChunkwiseBinImageFilter.h"
#include "itkChunkwiseCropImageFilter.h"
#include "itkChunkwiseFlipImageFilter.h"
#include "itkChunkwisePadImageFilter.h"
#include "itkChunkwisePermuteAxesImageFilter.h"
#include "itkChunkwiseResampleImageFilter.h"
#include "itkChunkwiseSequenceImageFilter.h"
#include "itkConnectedComponentLabelImageFilter.h"
#include "itkEuclideanDistanceImageFilter.h"
#include "itkExpandLabelsImageFilter.h"
#include "itkGlobalThresholdImageFilter.h"
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
#include "itkNearestFeatureImageFilter.h"
#include "itkHeapRegionalMaximaImageFilter.h"
#include "itkHeapRegionalMinimaImageFilter.h"
#include "itkHysteresisThresholdImageFilter.h"
#include "itkLabelBoundaryImageFilter.h"
#include "itkLocalThresholdImageFilter.h"
#include "itkPrunedFFTConvolutionImageFilter.h"
#include "itkPrunedFFTGaussianImageFilter.h"
#include "itkRenormalizedClosingImageFilter.h"
#include "itkRenormalizedConvolutionImageFilter.h"
#include "itkRenormalizedEntropyImageFilter.h"
#include "itkRenormalizedGaussianImageFilter.h"
#include "itkRenormalizedHighPassImageFilter.h"
#include "itkRenormalizedLaplacianOfGaussianImageFilter.h"
#include "itkRenormalizedCurvatureImageFilter.h"
#include "itkRenormalizedDerivativeImageFilter.h"
#include "itkRenormalizedDivergenceImageFilter.h"
#include "itkRenormalizedGradientImageFilter.h"
#include "itkRenormalizedHessianImageFilter.h"
#include "itkRenormalizedHessianMeasureImageFilter.h"
#include "itkRenormalizedStructureTensorImageFilter.h"
#include "itkChambollePockTotalVariationImageFilter.h"
#include "itkExplicitCoherenceEnhancingDiffusionImageFilter.h"
#include "itkContrastLimitedAdaptiveHistogramEqualizationImageFilter.h"
#include "itkRenormalizedBilateralImageFilter.h"
#include "itkRollingBallImageFilter.h"
#include "itkFixedConductanceDiffusionImageFilter.h"
#include "itkRenormalizedBlackTopHatImageFilter.h"
#include "itkRenormalizedLocalNormalizationImageFilter.h"
#include "itkRenormalizedUnsharpMaskImageFilter.h"
#include "itkRenormalizedWhiteTopHatImageFilter.h"
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
#ifdef CHUNKWISE_HAS_NETWORKS
#  include "itkSlidingWindowNetworkImageFilter.h"
#endif
#include "itkSpatiallyVaryingConvolutionImageFilter.h"
#include "itkRenormalizedDeconvolutionImageFilter.h"
#include "itkComponentAreaClosingImageFilter.h"
#include "itkComponentAreaOpeningImageFilter.h"
#include "itkSpanningForestWatershedImageFilter.h"
#include "itkSpatiallyVaryingDeconvolutionImageFilter.h"
#include "itkSummedAreaTableImageFilter.h"

#ifdef CHUNKWISE_HAS_NETWORKS
#  include "chunkwiseSmallNetwork.h"
#endif
#include "itkChunkwiseTestImages.h"
#include "itkStreamingImageFilter.h"
#include "itkTranslationTransform.h"

#include <set>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <thread>

// The behaviour that every filter of this module shares.
namespace ChunkwiseAllFiltersTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using ImageType = itk::Image<float, 3>;
using FilterType = itk::ChunkwiseImageToImageFilter<ImageType, ImageType>;

ImageType::RegionType
UsualRegion()
{
  return MakeRegion<ImageType>({ -5, 20, 3 }, { 19, 14, 13 });
}

ImageType::Pointer
MakeKernelImage(unsigned int seed)
{
  return MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 0, 0, 0 }, { 3, 4, 3 }), seed, 0.1, 1);
}

/** A filter whose parameters are those of most use where their defaults are of none. */
template <typename TFilter>
typename TFilter::Pointer
MakeUsual(TFilter *)
{
  return TFilter::New();
}

itk::RenormalizedConvolutionImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedConvolutionImageFilter<ImageType> *)
{
  const auto                   filter = itk::RenormalizedConvolutionImageFilter<ImageType>::New();
  itk::Neighborhood<double, 3> kernel;
  kernel.SetRadius(1);
  for (unsigned int i = 0; i < kernel.Size(); ++i)
  {
    kernel[i] = 1.0 + i % 4;
  }
  filter->SetKernel(kernel);
  return filter;
}

itk::RenormalizedEntropyImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedEntropyImageFilter<ImageType> *)
{
  const auto filter = itk::RenormalizedEntropyImageFilter<ImageType>::New();
  filter->SetRange(0, 100);
  return filter;
}

itk::RenormalizedWienerImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedWienerImageFilter<ImageType> *)
{
  const auto filter = itk::RenormalizedWienerImageFilter<ImageType>::New();
  filter->SetNoiseVariance(300);
  return filter;
}

itk::GlobalThresholdImageFilter<ImageType, ImageType>::Pointer
MakeUsual(itk::GlobalThresholdImageFilter<ImageType, ImageType> *)
{
  const auto filter = itk::GlobalThresholdImageFilter<ImageType, ImageType>::New();
  filter->SetThresholds({ 20, 50 });
  return filter;
}

itk::HysteresisThresholdImageFilter<ImageType, ImageType>::Pointer
MakeUsual(itk::HysteresisThresholdImageFilter<ImageType, ImageType> *)
{
  const auto filter = itk::HysteresisThresholdImageFilter<ImageType, ImageType>::New();
  filter->SetLow(60);
  filter->SetHigh(90);
  return filter;
}

itk::LocalThresholdImageFilter<ImageType, ImageType>::Pointer
MakeUsual(itk::LocalThresholdImageFilter<ImageType, ImageType> *)
{
  const auto filter = itk::LocalThresholdImageFilter<ImageType, ImageType>::New();
  filter->SetMethod(itk::LocalThresholdEnums::Method::Sauvola);
  filter->SetR(60);
  return filter;
}

itk::RenormalizedNonLocalMeansImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedNonLocalMeansImageFilter<ImageType> *)
{
  const auto filter = itk::RenormalizedNonLocalMeansImageFilter<ImageType>::New();
  filter->SetStrength(20);
  filter->SetNoiseVariance(30);
  return filter;
}

itk::PrunedFFTConvolutionImageFilter<ImageType>::Pointer
MakeUsual(itk::PrunedFFTConvolutionImageFilter<ImageType> *)
{
  const auto filter = itk::PrunedFFTConvolutionImageFilter<ImageType>::New();
  filter->SetKernelImage(MakeKernelImage(5));
  filter->SetMethod(itk::ChunkwiseConvolutionEnums::Method::Direct);
  return filter;
}

itk::SpatiallyVaryingConvolutionImageFilter<ImageType>::Pointer
MakeUsual(itk::SpatiallyVaryingConvolutionImageFilter<ImageType> *)
{
  using Varying = itk::SpatiallyVaryingConvolutionImageFilter<ImageType>;
  const auto                filter = Varying::New();
  Varying::KernelImagesType kernels;
  kernels.emplace_back(MakeKernelImage(6));
  kernels.emplace_back(MakeKernelImage(7));
  filter->SetKernelImages(kernels);
  filter->SetGridSize({ { 2, 1, 1 } });
  return filter;
}

itk::RenormalizedDeconvolutionImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedDeconvolutionImageFilter<ImageType> *)
{
  const auto filter = itk::RenormalizedDeconvolutionImageFilter<ImageType>::New();
  filter->SetKernelImage(MakeKernelImage(8));
  filter->SetNumberOfIterations(2);
  return filter;
}

itk::SpatiallyVaryingDeconvolutionImageFilter<ImageType>::Pointer
MakeUsual(itk::SpatiallyVaryingDeconvolutionImageFilter<ImageType> *)
{
  using Varying = itk::SpatiallyVaryingDeconvolutionImageFilter<ImageType>;
  const auto filter = Varying::New();
  filter->SetKernelStack(MakeRandomImage<Varying::KernelStackType>(
    MakeRegion<Varying::KernelStackType>({ 0, 0, 0, 0 }, { 3, 2, 3, 2 }), 9, 0.1, 1));
  filter->SetGridSize({ { 1, 2, 1 } });
  filter->SetNumberOfIterations(2);
  return filter;
}

#ifdef CHUNKWISE_HAS_NETWORKS
itk::SlidingWindowNetworkImageFilter<ImageType, ImageType>::Pointer
MakeUsual(itk::SlidingWindowNetworkImageFilter<ImageType, ImageType> *)
{
  const auto filter = itk::SlidingWindowNetworkImageFilter<ImageType, ImageType>::New();
  filter->SetGraph(chunkwise::MakeSmallNetwork());
  filter->SetChannel(1);
  // Streams and devices are compared bit for bit.
  filter->SetPrecision(itk::SlidingWindowNetworkEnums::Precision::Reproducible);
  return filter;
}

#endif
itk::ChunkwiseSequenceImageFilter<ImageType>::Pointer
MakeUsual(itk::ChunkwiseSequenceImageFilter<ImageType> *)
{
  const auto filter = itk::ChunkwiseSequenceImageFilter<ImageType>::New();
  filter->AddFilter(itk::RenormalizedMeanImageFilter<ImageType>::New());
  filter->AddFilter(itk::RenormalizedMaximumImageFilter<ImageType>::New());
  return filter;
}

template <typename TFilter>
typename TFilter::Pointer
MakeWithSigma()
{
  const auto filter = TFilter::New();
  filter->SetSigma(2.0);
  filter->UseImageSpacingOff();
  return filter;
}

itk::RenormalizedGaussianImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedGaussianImageFilter<ImageType> *)
{
  return MakeWithSigma<itk::RenormalizedGaussianImageFilter<ImageType>>();
}

itk::PrunedFFTGaussianImageFilter<ImageType>::Pointer
MakeUsual(itk::PrunedFFTGaussianImageFilter<ImageType> *)
{
  return MakeWithSigma<itk::PrunedFFTGaussianImageFilter<ImageType>>();
}

itk::RenormalizedHighPassImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedHighPassImageFilter<ImageType> *)
{
  return MakeWithSigma<itk::RenormalizedHighPassImageFilter<ImageType>>();
}

itk::RenormalizedLaplacianOfGaussianImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedLaplacianOfGaussianImageFilter<ImageType> *)
{
  return MakeWithSigma<itk::RenormalizedLaplacianOfGaussianImageFilter<ImageType>>();
}

itk::RenormalizedDerivativeImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedDerivativeImageFilter<ImageType> *)
{
  return MakeWithSigma<itk::RenormalizedDerivativeImageFilter<ImageType>>();
}

itk::RenormalizedGradientImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedGradientImageFilter<ImageType> *)
{
  return MakeWithSigma<itk::RenormalizedGradientImageFilter<ImageType>>();
}

itk::RenormalizedHessianImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedHessianImageFilter<ImageType> *)
{
  return MakeWithSigma<itk::RenormalizedHessianImageFilter<ImageType>>();
}

itk::FixedConductanceDiffusionImageFilter<ImageType>::Pointer
MakeUsual(itk::FixedConductanceDiffusionImageFilter<ImageType> *)
{
  const auto filter = itk::FixedConductanceDiffusionImageFilter<ImageType>::New();
  filter->SetNumberOfIterations(2);
  filter->SetGradientMagnitude(20);
  return filter;
}

itk::ExplicitCoherenceEnhancingDiffusionImageFilter<ImageType>::Pointer
MakeUsual(itk::ExplicitCoherenceEnhancingDiffusionImageFilter<ImageType> *)
{
  const auto filter = itk::ExplicitCoherenceEnhancingDiffusionImageFilter<ImageType>::New();
  filter->SetNumberOfIterations(2);
  filter->SetOuterSigma(1);
  filter->SetContrast(20);
  return filter;
}

itk::ContrastLimitedAdaptiveHistogramEqualizationImageFilter<ImageType>::Pointer
MakeUsual(itk::ContrastLimitedAdaptiveHistogramEqualizationImageFilter<ImageType> *)
{
  const auto filter = itk::ContrastLimitedAdaptiveHistogramEqualizationImageFilter<ImageType>::New();
  filter->SetTileSize(itk::FixedArray<std::int64_t, 3>({ 3, 4, 2 }));
  filter->SetRange(0, 100);
  return filter;
}

template <template <typename, typename> class TFilter>
typename TFilter<ImageType, ImageType>::Pointer
MakeArea()
{
  const auto filter = TFilter<ImageType, ImageType>::New();
  filter->SetSize(12);
  return filter;
}
itk::ComponentAreaOpeningImageFilter<ImageType>::Pointer
MakeUsual(itk::ComponentAreaOpeningImageFilter<ImageType> *)
{
  return MakeArea<itk::ComponentAreaOpeningImageFilter>();
}
itk::ComponentAreaClosingImageFilter<ImageType>::Pointer
MakeUsual(itk::ComponentAreaClosingImageFilter<ImageType> *)
{
  return MakeArea<itk::ComponentAreaClosingImageFilter>();
}

itk::RollingBallImageFilter<ImageType>::Pointer
MakeUsual(itk::RollingBallImageFilter<ImageType> *)
{
  const auto filter = itk::RollingBallImageFilter<ImageType>::New();
  filter->SetRadius(2);
  return filter;
}

itk::ChambollePockTotalVariationImageFilter<ImageType>::Pointer
MakeUsual(itk::ChambollePockTotalVariationImageFilter<ImageType> *)
{
  const auto filter = itk::ChambollePockTotalVariationImageFilter<ImageType>::New();
  filter->SetNumberOfIterations(3);
  filter->SetWeight(5);
  return filter;
}

itk::RenormalizedCurvatureImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedCurvatureImageFilter<ImageType> *)
{
  return MakeWithSigma<itk::RenormalizedCurvatureImageFilter<ImageType>>();
}

itk::RenormalizedDivergenceImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedDivergenceImageFilter<ImageType> *)
{
  const auto filter = MakeWithSigma<itk::RenormalizedDivergenceImageFilter<ImageType>>();
  filter->OfGradientOn();
  return filter;
}

itk::RenormalizedStructureTensorImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedStructureTensorImageFilter<ImageType> *)
{
  return MakeWithSigma<itk::RenormalizedStructureTensorImageFilter<ImageType>>();
}

itk::RenormalizedHessianMeasureImageFilter<ImageType>::Pointer
MakeUsual(itk::RenormalizedHessianMeasureImageFilter<ImageType> *)
{
  const auto filter = itk::RenormalizedHessianMeasureImageFilter<ImageType>::New();
  filter->SetScales({ 1.0, 1.5 });
  filter->UseImageSpacingOff();
  filter->SetContrast({ 20.0 });
  return filter;
}

/** One voxel of the usual image is the background. */
float
BackgroundOfUsualImage()
{
  return MakeRandomImage<ImageType>(UsualRegion(), 17)
    ->GetPixel(UsualRegion().GetIndex() + itk::Offset<3>{ { 3, 2, 1 } });
}

itk::ChunkwiseResampleImageFilter<ImageType>::Pointer
MakeUsual(itk::ChunkwiseResampleImageFilter<ImageType> *)
{
  const auto filter = itk::ChunkwiseResampleImageFilter<ImageType>::New();
  const auto shift = itk::TranslationTransform<double, 3>::New();
  shift->SetOffset(itk::Vector<double, 3>(0.25));
  filter->SetTransform(shift);
  return filter;
}

// Bins, crops, pads and permutations have the input's grid here; their own test has others.

itk::ChunkwiseBinImageFilter<ImageType>::Pointer
MakeUsual(itk::ChunkwiseBinImageFilter<ImageType> *)
{
  const auto filter = itk::ChunkwiseBinImageFilter<ImageType>::New();
  filter->SetFactor({ { 1, 1, 1 } });
  return filter;
}

itk::ChunkwisePermuteAxesImageFilter<ImageType>::Pointer
MakeUsual(itk::ChunkwisePermuteAxesImageFilter<ImageType> *)
{
  const auto         filter = itk::ChunkwisePermuteAxesImageFilter<ImageType>::New();
  const unsigned int order[] = { 0, 1, 2 };
  filter->SetAxisOrder(order);
  return filter;
}

itk::EuclideanDistanceImageFilter<ImageType, ImageType>::Pointer
MakeUsual(itk::EuclideanDistanceImageFilter<ImageType, ImageType> *)
{
  const auto filter = itk::EuclideanDistanceImageFilter<ImageType, ImageType>::New();
  filter->SetBackground(BackgroundOfUsualImage());
  filter->SetMaximumDistance(6); // where nothing is background
  return filter;
}

itk::ExpandLabelsImageFilter<ImageType>::Pointer
MakeUsual(itk::ExpandLabelsImageFilter<ImageType> *)
{
  const auto filter = itk::ExpandLabelsImageFilter<ImageType>::New();
  filter->SetBackground(BackgroundOfUsualImage());
  return filter;
}

/** A filter and what a test must know of it. */
struct Case
{
  std::string name;
  FilterType::Pointer (*make)();
  /** Two inputs: the second one has the same index, size and place in space. */
  bool hasTwoInputs;
  /** Results of different divisions differ by rounding. */
  bool isRounded;
};

template <typename TFilter>
Case
CaseOf(bool hasTwoInputs = false, bool isRounded = false)
{
  Case theCase;
  theCase.name = TFilter::New()->GetNameOfClass();
  theCase.make = []() -> FilterType::Pointer { return MakeUsual(static_cast<TFilter *>(nullptr)).GetPointer(); };
  theCase.hasTwoInputs = hasTwoInputs;
  theCase.isRounded = isRounded;
  return theCase;
}

void
PrintTo(const Case & theCase, std::ostream * os)
{
  *os << theCase.name;
}

std::vector<Case>
AllCases()
{
  using namespace itk;
  return { CaseOf<BoxStatisticImageFilter<ImageType>>(),
           CaseOf<ChunkwiseDifferenceImageFilter<ImageType>>(true),
           CaseOf<ChunkwiseIdentityImageFilter<ImageType>>(),
           CaseOf<ChunkwiseSequenceImageFilter<ImageType>>(),
           CaseOf<ChunkwiseResampleImageFilter<ImageType>>(),
           CaseOf<ChunkwiseBinImageFilter<ImageType>>(),
           CaseOf<ChunkwiseCropImageFilter<ImageType>>(),
           CaseOf<ChunkwisePadImageFilter<ImageType>>(),
           CaseOf<ChunkwiseFlipImageFilter<ImageType>>(),
           CaseOf<ChunkwisePermuteAxesImageFilter<ImageType>>(),
           CaseOf<ConnectedComponentLabelImageFilter<ImageType, ImageType>>(),
           CaseOf<EuclideanDistanceImageFilter<ImageType, ImageType>>(),
           CaseOf<NearestFeatureImageFilter<ImageType, ImageType>>(),
           CaseOf<ExpandLabelsImageFilter<ImageType>>(),
           CaseOf<BinaryBallMorphologyImageFilter<ImageType>>(),
           CaseOf<GlobalThresholdImageFilter<ImageType, ImageType>>(),
           CaseOf<HeapClearBorderImageFilter<ImageType>>(),
           CaseOf<HeapClosingByReconstructionImageFilter<ImageType>>(),
           CaseOf<HeapFillholeImageFilter<ImageType>>(),
           CaseOf<HeapGrindPeakImageFilter<ImageType>>(),
           CaseOf<HeapHConcaveImageFilter<ImageType>>(),
           CaseOf<HeapHConvexImageFilter<ImageType>>(),
           CaseOf<HeapHMaximaImageFilter<ImageType>>(),
           CaseOf<HeapHMinimaImageFilter<ImageType>>(),
           CaseOf<HeapOpeningByReconstructionImageFilter<ImageType>>(),
           CaseOf<HeapReconstructionByDilationImageFilter<ImageType>>(true),
           CaseOf<HeapReconstructionByErosionImageFilter<ImageType>>(true),
           CaseOf<HeapRegionalMaximaImageFilter<ImageType>>(),
           CaseOf<HeapRegionalMinimaImageFilter<ImageType>>(),
           CaseOf<HysteresisThresholdImageFilter<ImageType, ImageType>>(),
           CaseOf<LabelBoundaryImageFilter<ImageType, ImageType>>(),
           CaseOf<LocalThresholdImageFilter<ImageType, ImageType>>(),
           CaseOf<PrunedFFTConvolutionImageFilter<ImageType>>(),
           CaseOf<PrunedFFTGaussianImageFilter<ImageType>>(false, true),
           CaseOf<RenormalizedClosingImageFilter<ImageType>>(),
           CaseOf<RenormalizedConvolutionImageFilter<ImageType>>(),
           CaseOf<RenormalizedCurvatureImageFilter<ImageType>>(),
           CaseOf<RenormalizedDerivativeImageFilter<ImageType>>(),
           CaseOf<RenormalizedDivergenceImageFilter<ImageType>>(),
           CaseOf<RenormalizedEntropyImageFilter<ImageType>>(),
           CaseOf<RenormalizedGaussianImageFilter<ImageType>>(),
           CaseOf<RenormalizedGradientImageFilter<ImageType>>(),
           CaseOf<RenormalizedHessianImageFilter<ImageType>>(),
           CaseOf<RenormalizedHessianMeasureImageFilter<ImageType>>(),
           CaseOf<RenormalizedStructureTensorImageFilter<ImageType>>(),
           CaseOf<ChambollePockTotalVariationImageFilter<ImageType>>(),
           CaseOf<ExplicitCoherenceEnhancingDiffusionImageFilter<ImageType>>(),
           CaseOf<ContrastLimitedAdaptiveHistogramEqualizationImageFilter<ImageType>>(),
           CaseOf<RenormalizedBilateralImageFilter<ImageType>>(),
           CaseOf<RollingBallImageFilter<ImageType>>(),
           CaseOf<FixedConductanceDiffusionImageFilter<ImageType>>(),
           CaseOf<RenormalizedBlackTopHatImageFilter<ImageType>>(),
           CaseOf<RenormalizedLocalNormalizationImageFilter<ImageType>>(),
           CaseOf<RenormalizedUnsharpMaskImageFilter<ImageType>>(),
           CaseOf<RenormalizedWhiteTopHatImageFilter<ImageType>>(),
           CaseOf<RenormalizedHighPassImageFilter<ImageType>>(),
           CaseOf<RenormalizedLaplacianOfGaussianImageFilter<ImageType>>(),
           CaseOf<RenormalizedMaximumImageFilter<ImageType>>(),
           CaseOf<RenormalizedMeanImageFilter<ImageType>>(),
           CaseOf<RenormalizedMedianImageFilter<ImageType>>(),
           CaseOf<RenormalizedMinimumImageFilter<ImageType>>(),
           CaseOf<RenormalizedNonLocalMeansImageFilter<ImageType>>(),
           CaseOf<RenormalizedOpeningImageFilter<ImageType>>(),
           CaseOf<RenormalizedPercentileImageFilter<ImageType>>(),
           CaseOf<RenormalizedRangeImageFilter<ImageType>>(),
           CaseOf<RenormalizedStandardDeviationImageFilter<ImageType>>(),
           CaseOf<RenormalizedSumImageFilter<ImageType>>(),
           CaseOf<RenormalizedVarianceImageFilter<ImageType>>(),
           CaseOf<RenormalizedWienerImageFilter<ImageType>>(),
#ifdef CHUNKWISE_HAS_NETWORKS
           CaseOf<SlidingWindowNetworkImageFilter<ImageType, ImageType>>(),
#endif
           CaseOf<SpatiallyVaryingConvolutionImageFilter<ImageType>>(false, true),
           CaseOf<SpatiallyVaryingDeconvolutionImageFilter<ImageType>>(),
           CaseOf<RenormalizedDeconvolutionImageFilter<ImageType>>(),
           CaseOf<ComponentAreaClosingImageFilter<ImageType>>(),
           CaseOf<ComponentAreaOpeningImageFilter<ImageType>>(),
           CaseOf<SpanningForestWatershedImageFilter<ImageType, ImageType>>(),
           CaseOf<SummedAreaTableImageFilter<ImageType, ImageType>>() };
}

class ChunkwiseFilters : public testing::TestWithParam<Case>
{
protected:
  FilterType::Pointer
  Make(const ImageType * image) const
  {
    const auto filter = GetParam().make();
    filter->SetInput(image);
    if (GetParam().hasTwoInputs)
    {
      filter->SetInput(1, MakeRandomImage<ImageType>(image->GetLargestPossibleRegion(), 18));
    }
    filter->SetBackend(itk::ChunkwiseEnums::Backend::CPU);
    return filter;
  }

  /** The whole output, in a separate buffer. */
  static ImageType::Pointer
  WholeOutput(FilterType * filter)
  {
    filter->UpdateLargestPossibleRegion();
    const ImageType::Pointer output = filter->GetOutput();
    output->DisconnectPipeline();
    return output;
  }
};

TEST_P(ChunkwiseFilters, KeepTheirInputAndWhereItLiesInSpace)
{
  const auto image = MakeRandomImage<ImageType>(UsualRegion(), 17);
  const auto same = MakeRandomImage<ImageType>(UsualRegion(), 17);
  const auto filter = Make(image);
  EXPECT_EQ(filter->GetBackendUsed(), "");
  filter->Update();
  const ImageType * const output = filter->GetOutput();
  EXPECT_EQ(CountDifferentVoxels(image.GetPointer(), same.GetPointer(), UsualRegion()), 0u);
  EXPECT_NE(output->GetBufferPointer(), image->GetBufferPointer());
  // With parameters that do nothing these tests would say little.
  const std::set<std::string> copies = { "ChunkwiseIdentityImageFilter",
                                         "ChunkwiseBinImageFilter",
                                         "ChunkwiseCropImageFilter",
                                         "ChunkwisePadImageFilter",
                                         "ChunkwisePermuteAxesImageFilter" };
  EXPECT_EQ(CountDifferentVoxels(image.GetPointer(), output, UsualRegion()) == 0, copies.count(GetParam().name) == 1);
  EXPECT_EQ(output->GetLargestPossibleRegion(), UsualRegion());
  EXPECT_EQ(output->GetBufferedRegion(), UsualRegion());
  EXPECT_EQ(output->GetSpacing(), image->GetSpacing());
  if (GetParam().name != "ChunkwiseFlipImageFilter")
  {
    EXPECT_EQ(output->GetOrigin(), image->GetOrigin());
    EXPECT_EQ(output->GetDirection(), image->GetDirection());
  }
  EXPECT_EQ(filter->GetBackendUsed(), "cpu");
  EXPECT_GT(filter->GetLastReport().chunksOnHost, 0);
}

TEST_P(ChunkwiseFilters, RunAgainWhenModifiedAndOnlyThen)
{
  const auto image = MakeRandomImage<ImageType>(UsualRegion(), 17);
  const auto filter = Make(image);
  int        runs = 0;
  filter->AddObserver(itk::EndEvent(), [&runs](const itk::EventObject &) { ++runs; });
  filter->Update();
  filter->Update();
  EXPECT_EQ(runs, 1);
  filter->SetHostMemoryBudget(std::size_t{ 1 } << 30);
  filter->Update();
  EXPECT_EQ(runs, 2);
}

TEST_P(ChunkwiseFilters, StreamedAreTheSame)
{
  const auto image = MakeRandomImage<ImageType>(UsualRegion(), 17);
  const auto whole = WholeOutput(Make(image));
  const auto filter = Make(image);
  const auto streamer = itk::StreamingImageFilter<ImageType, ImageType>::New();
  streamer->SetInput(filter->GetOutput());
  streamer->SetNumberOfStreamDivisions(4);
  streamer->Update();
  itk::ImageRegionConstIteratorWithIndex<ImageType> it(whole, UsualRegion());
  for (; !it.IsAtEnd(); ++it)
  {
    const float tolerance = GetParam().isRounded ? 1e-5F * std::fabs(it.Get()) : 0;
    ASSERT_NEAR(it.Get(), streamer->GetOutput()->GetPixel(it.GetIndex()), tolerance) << it.GetIndex();
  }
}

TEST_P(ChunkwiseFilters, ProgressRisesFromZeroToOneInTheInvokingThread)
{
  const auto image = MakeRandomImage<ImageType>(UsualRegion(), 17);
  const auto filter = Make(image);
  const auto thread = std::this_thread::get_id();
  for (int run = 0; run < 2; ++run)
  {
    std::vector<float> values;
    const auto         tag = filter->AddObserver(itk::ProgressEvent(), [&](const itk::EventObject &) {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      values.push_back(filter->GetProgress());
    });
    filter->Modified();
    filter->Update();
    filter->RemoveObserver(tag);
    ASSERT_GE(values.size(), 2u);
    EXPECT_EQ(values.front(), 0.0F) << "run " << run;
    EXPECT_EQ(values.back(), 1.0F);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  }
}

TEST_P(ChunkwiseFilters, AbortAndCanBeUsedAgain)
{
  const auto image = MakeRandomImage<ImageType>(UsualRegion(), 17);
  const auto whole = WholeOutput(Make(image));
  const auto filter = Make(image);
  // Before the work begins, and where there is more to report.
  for (int run = 0; run < 2; ++run)
  {
    bool       mayAsk = true;
    bool       hasAsked = false;
    bool       hasFinished = false;
    int        events = 0;
    const auto tag = filter->AddObserver(itk::ProgressEvent(), [&](const itk::EventObject &) {
      hasFinished = filter->GetProgress() == 1.0F;
      if (mayAsk && !hasFinished && ++events > run)
      {
        hasAsked = true;
        filter->AbortGenerateDataOn();
      }
    });
    filter->Modified();
    try
    {
      filter->Update();
      EXPECT_FALSE(hasAsked);
      EXPECT_GT(run, 0);
    }
    catch (const itk::ProcessAborted &)
    {
      EXPECT_TRUE(hasAsked);
      EXPECT_FALSE(hasFinished);
    }
    mayAsk = false;
    filter->UpdateLargestPossibleRegion();
    filter->RemoveObserver(tag);
    EXPECT_EQ(CountDifferentVoxels(whole.GetPointer(), filter->GetOutput(), UsualRegion()), 0u);
  }
}

TEST_P(ChunkwiseFilters, TakeTinyAndThinAndEmptyImages)
{
  for (const itk::Size<3> & size : std::initializer_list<itk::Size<3>>{
         { { 1, 1, 1 } }, { { 9, 1, 1 } }, { { 1, 9, 1 } }, { { 1, 1, 9 } }, { { 2, 1, 3 } }, { { 5, 0, 4 } } })
  {
    const ImageType::RegionType region({ { 4, -7, 2 } }, size);
    const auto                  filter = Make(MakeRandomImage<ImageType>(region, 3));
    ASSERT_NO_THROW(filter->Update()) << size;
    EXPECT_EQ(filter->GetOutput()->GetBufferedRegion(), region);
    itk::ImageRegionConstIteratorWithIndex<ImageType> it(filter->GetOutput(), region);
    for (; region.GetNumberOfPixels() > 0 && !it.IsAtEnd(); ++it)
    {
      ASSERT_TRUE(std::isfinite(it.Get())) << size << " at " << it.GetIndex();
    }
  }
}

TEST_P(ChunkwiseFilters, PrintThemselvesAndMakeOthersOfTheirKind)
{
  const auto         filter = Make(MakeRandomImage<ImageType>(UsualRegion(), 17));
  std::ostringstream text;
  filter->Print(text);
  EXPECT_NE(text.str().find(GetParam().name), std::string::npos);
  EXPECT_NE(text.str().find("Backend: itk::ChunkwiseEnums::Backend::CPU"), std::string::npos) << text.str();
  EXPECT_EQ(filter->CreateAnother()->GetNameOfClass(), GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(All, ChunkwiseFilters, testing::ValuesIn(AllCases()),
                         [](const testing::TestParamInfo<Case> & info) { return info.param.name; });

/** A filter of five dimensions gives each volume what it gives the volume by itself. */
template <template <typename, typename> class TFilter>
void
ExpectVolumesOfTheirOwn()
{
  using Image5 = itk::Image<float, 5>;
  const auto image = MakeRandomImage<Image5>(MakeRegion<Image5>({ 3, -4, 5, -1, 2 }, { 9, 7, 6, 2, 3 }), 29);
  const auto filter = TFilter<Image5, Image5>::New();
  filter->SetInput(image);
  filter->Update();
  const auto volume = ImageType::New();
  volume->SetRegions(MakeRegion<ImageType>({ 0, 0, 0 }, { 9, 7, 6 }));
  volume->SetSpacing(image->GetSpacing().GetDataPointer());
  volume->Allocate();
  const std::size_t voxels = volume->GetLargestPossibleRegion().GetNumberOfPixels();
  for (std::size_t i = 0; i < 6; ++i)
  {
    std::copy_n(image->GetBufferPointer() + i * voxels, voxels, volume->GetBufferPointer());
    const auto ofVolume = TFilter<ImageType, ImageType>::New();
    ofVolume->SetInput(volume);
    ofVolume->Update();
    EXPECT_EQ(std::memcmp(filter->GetOutput()->GetBufferPointer() + i * voxels,
                          ofVolume->GetOutput()->GetBufferPointer(),
                          voxels * sizeof(float)),
              0)
      << filter->GetNameOfClass() << ", volume " << i;
  }
}

TEST(ChunkwiseFiltersInFiveDimensions, GiveEachVolumeItsOwn)
{
  ExpectVolumesOfTheirOwn<itk::BoxStatisticImageFilter>();
  ExpectVolumesOfTheirOwn<itk::HeapFillholeImageFilter>();
  ExpectVolumesOfTheirOwn<itk::HeapHMaximaImageFilter>();
  ExpectVolumesOfTheirOwn<itk::HeapOpeningByReconstructionImageFilter>();
  ExpectVolumesOfTheirOwn<itk::HeapRegionalMinimaImageFilter>();
  ExpectVolumesOfTheirOwn<itk::RenormalizedClosingImageFilter>();
  ExpectVolumesOfTheirOwn<itk::RenormalizedGaussianImageFilter>();
  ExpectVolumesOfTheirOwn<itk::RenormalizedMedianImageFilter>();
  ExpectVolumesOfTheirOwn<itk::RenormalizedVarianceImageFilter>();
  ExpectVolumesOfTheirOwn<itk::SummedAreaTableImageFilter>();
}

} // namespace ChunkwiseAllFiltersTest
