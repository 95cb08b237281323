/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Every row of the engine's table of filters has an ITK filter that makes the same operation of the same parameters.
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

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace ChunkwiseFilterTableTest
{

using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using ImageType = itk::Image<float, 3>;
using FilterType = itk::ChunkwiseImageToImageFilter<ImageType, ImageType>;
using WindowType = itk::ChunkwiseWindowImageFilter<ImageType, ImageType>;
using BoxType = itk::ChunkwiseBoxImageFilter<ImageType, ImageType>;
using ReconstructionType = itk::HeapReconstructionImageFilter<ImageType, ImageType>;
using Boundary = itk::ChunkwiseEnums::BoundaryCondition;
using Texts = std::map<std::string, std::string>;
using Kernels = std::map<std::string, std::shared_ptr<const chunkwise::KernelStack>>;

/** A filter whose setters were used, and the same parameters as the program would be given them. */
struct Case
{
  FilterType::Pointer filter;
  Texts               texts;
  Kernels             kernels{};
  bool                hasRadii{ false };
  bool                hasNetwork{ false };
  std::string         domain{}; ///< the name of the second input of filters over a part of the image
};

ImageType::Pointer
MakeImage()
{
  return MakeRandomImage<ImageType>(MakeRegion<ImageType>({ -5, 20, 3 }, { 19, 14, 13 }), 17);
}

/** The engine's description of that image, without help of the filters. */
chunkwise::FilterImage
ExpectedFilterImage(const ImageType * image)
{
  chunkwise::FilterImage expected;
  expected.dimension = 3;
  expected.extent = { { 19, 14, 13, 1, 1 } };
  expected.inputKind = expected.outputKind = chunkwise::PixelType::Float32;
  for (unsigned int a = 0; a < 3; ++a)
  {
    expected.spacing[a] = 0.5 + 0.75 * a;
  }
  ImageType::PointType first;
  image->TransformIndexToPhysicalPoint({ { -5, 20, 3 } }, first);
  std::copy_n(first.GetDataPointer(), 3, expected.origin);
  const double direction[2][2] = { { 0.8, -0.6 }, { 0.6, 0.8 } };
  for (int row = 0; row < 2; ++row)
  {
    std::copy_n(direction[row], 2, expected.direction[row]);
  }
  return expected;
}

template <typename TFilter>
Case
WithWindow(const itk::SmartPointer<TFilter> & filter, Texts texts, bool isRenormalized = false)
{
  filter->SetSpatialAxes({ 2, 0 });
  texts["SpatialAxes"] = "2,0";
  filter->SetBoundaryCondition(isRenormalized ? Boundary::Renormalized : Boundary::Constant);
  texts["BoundaryCondition"] = isRenormalized ? "renormalized" : "constant";
  filter->SetConstant(0.1);
  texts["Constant"] = "0.1";
  return { filter.GetPointer(), texts };
}

template <typename TFilter>
Case
WithBox(const itk::SmartPointer<TFilter> & filter, Texts texts = {}, bool isRenormalized = false)
{
  filter->SetRadius({ { 2, 7, 3 } });
  texts["Radius"] = "3,2";
  return WithWindow(filter, texts, isRenormalized);
}

ImageType::Pointer
MakeImage();

/** Windows over a part of the image. */
template <typename TFilter>
void
AddDomains(std::vector<Case> & cases, Case (*make)(const itk::SmartPointer<TFilter> &), bool canBeEmpty)
{
  for (const char * const domain : { "MaskImage", "WeightImage", "" })
  {
    const auto filter = TFilter::New();
    Case       theCase = make(filter);
    theCase.domain = domain;
    if (theCase.domain == "MaskImage")
    {
      using Mask = typename TFilter::MaskImageType;
      filter->SetMaskImage(MakeRandomImage<Mask>(MakeImage()->GetLargestPossibleRegion(), 3, 0, 2));
    }
    else if (theCase.domain == "WeightImage")
    {
      filter->SetWeightImage(MakeImage());
    }
    else
    {
      filter->IgnoreNaNOn();
      theCase.texts["IgnoreNaN"] = "on";
    }
    if (theCase.domain == "WeightImage" && chunkwise::GetFilter(filter->GetFilterName()).FindParameter("OutputMask"))
    {
      filter->OutputMaskOn();
      theCase.texts["OutputMask"] = "on";
    }
    else if constexpr (!std::is_same<TFilter, itk::RenormalizedSumImageFilter<ImageType>>::value)
    {
      if (canBeEmpty)
      {
        filter->SetEmptyValue(-1.5);
        theCase.texts["EmptyValue"] = "-1.5";
      }
    }
    cases.push_back(theCase);
  }
}

template <typename TFilter>
std::vector<Case>
Box();
template <typename TFilter>
void
AddBoundaries(std::vector<Case> & cases);

/** Windows that reach farther to one side. */
template <typename TFilter>
void
AddSides(std::vector<Case> & cases, const itk::SmartPointer<TFilter> & filter, const Texts & more = {})
{
  filter->SetUpperRadius({ { 1, 0, 5 } });
  Texts texts = more;
  texts["UpperRadius"] = "5,1";
  cases.push_back(WithBox(filter, texts));
}

/** The cases, and one with such windows. */
template <typename TFilter>
std::vector<Case>
WithSides(std::vector<Case> cases)
{
  AddSides(cases, TFilter::New());
  return cases;
}

template <typename TFilter>
std::vector<Case>
BoxInDomain()
{
  std::vector<Case> cases = Box<TFilter>();
  AddBoundaries<TFilter>(cases);
  AddSides(cases, TFilter::New());
  AddDomains<TFilter>(cases, [](const itk::SmartPointer<TFilter> & filter) { return WithBox(filter); }, true);
  return cases;
}

template <typename TFilter>
std::vector<Case>
Box()
{
  return { WithBox(TFilter::New()), WithBox(TFilter::New(), {}, true) };
}

/** A boundary condition for each spatial axis. */
template <typename TFilter>
void
AddBoundaries(std::vector<Case> & cases)
{
  const auto filter = TFilter::New();
  Case       theCase = WithBox(filter);
  filter->SetBoundaryConditions({ Boundary::MirrorCenter, Boundary::Periodic });
  theCase.texts["BoundaryCondition"] = "mirror-center,periodic";
  theCase.texts.erase("Constant");
  cases.push_back(theCase);
}

/** A structuring element of which every second voxel takes part, for a setter and as a parameter. */
struct AlternatingElement
{
  itk::Neighborhood<int, 3>               neighborhood;
  std::shared_ptr<chunkwise::KernelStack> stack = std::make_shared<chunkwise::KernelStack>();
};

AlternatingElement
MakeAlternatingElement(const itk::Size<3> & radius)
{
  AlternatingElement element;
  element.neighborhood.SetRadius(radius);
  for (unsigned int a = 0; a < 3; ++a)
  {
    element.stack->extent[static_cast<int>(a)] = static_cast<std::int64_t>(2 * radius[a] + 1);
  }
  element.stack->kernels.emplace_back();
  for (unsigned int i = 0; i < element.neighborhood.Size(); ++i)
  {
    element.neighborhood[i] = i % 2 == 0 ? 7 : 0;
    element.stack->kernels[0].push_back(i % 2 == 0 ? 1 : 0);
  }
  return element;
}

/** The case of a filter in a mask. */
template <typename TFilter>
std::vector<Case>
WithSmoothingMask(TFilter & filter, Texts texts)
{
  filter.SetMaskImage(
    MakeRandomImage<typename TFilter::MaskImageType>(MakeImage()->GetLargestPossibleRegion(), 3, 0, 2));
  filter.SetOutsideValue(-1.5);
  texts["OutsideValue"] = "-1.5";
  Case theCase{ &filter, texts };
  theCase.domain = "MaskImage";
  return { theCase };
}

/** Cases of filters that take a mask alone. */
template <typename TFilter>
std::vector<Case>
BoxInMask()
{
  std::vector<Case> cases = Box<TFilter>();
  for (const bool marks : { false, true })
  {
    const auto filter = TFilter::New();
    Case       theCase = WithBox(filter);
    theCase.domain = "MaskImage";
    filter->SetMaskImage(
      MakeRandomImage<typename TFilter::MaskImageType>(MakeImage()->GetLargestPossibleRegion(), 3, 0, 2));
    if (marks)
    {
      filter->OutputMaskOn();
      theCase.texts["OutputMask"] = "on";
    }
    else
    {
      filter->SetEmptyValue(-1.5);
      theCase.texts["EmptyValue"] = "-1.5";
    }
    cases.push_back(theCase);
  }
  return cases;
}

/** The same of filters that leave out NaN too. */
template <typename TFilter>
std::vector<Case>
InMaskOrWithoutNan(void (*prepare)(TFilter &), const Texts & texts)
{
  std::vector<Case> cases;
  for (const char * const domain : { "", "MaskImage", "IgnoreNaN" })
  {
    const auto filter = TFilter::New();
    prepare(*filter);
    Case theCase = WithBox(filter, texts, domain == std::string("IgnoreNaN"));
    if (domain == std::string("MaskImage"))
    {
      theCase.domain = domain;
      filter->SetMaskImage(
        MakeRandomImage<typename TFilter::MaskImageType>(MakeImage()->GetLargestPossibleRegion(), 3, 0, 2));
      filter->SetEmptyValue(-1.5);
      theCase.texts["EmptyValue"] = "-1.5";
    }
    else if (domain == std::string("IgnoreNaN"))
    {
      filter->OutputMaskOn();
      theCase.texts["OutputMask"] = "on";
    }
    if (domain == std::string("IgnoreNaN"))
    {
      filter->IgnoreNaNOn();
      theCase.texts["IgnoreNaN"] = "on";
    }
    cases.push_back(theCase);
  }
  return cases;
}

template <typename TFilter>
std::vector<Case>
Morphology()
{
  std::vector<Case> cases = BoxInMask<TFilter>();
  const auto        element = MakeAlternatingElement({ { 1, 0, 2 } });
  const auto        filter = TFilter::New();
  filter->SetKernel(element.neighborhood);
  Case withKernel = WithWindow(filter, {});
  withKernel.kernels["Kernel"] = element.stack;
  cases.push_back(withKernel);
  AddSides(cases, TFilter::New());
  return cases;
}

/** Ranks over boxes, footprints and windows that reach farther to one side. */
template <typename TFilter>
std::vector<Case>
Ranks(void (*prepare)(TFilter &), const Texts & texts)
{
  std::vector<Case> cases = InMaskOrWithoutNan<TFilter>(prepare, texts);
  const auto        element = MakeAlternatingElement({ { 1, 0, 2 } });
  const auto        filter = TFilter::New();
  prepare(*filter);
  filter->SetKernel(element.neighborhood);
  Texts withRadius = texts;
  withRadius["Radius"] = "2,1";
  cases.push_back(WithWindow(filter, withRadius));
  cases.back().kernels["Kernel"] = element.stack;
  const auto sides = TFilter::New();
  prepare(*sides);
  AddSides(cases, sides, texts);
  return cases;
}

template <typename TFilter>
std::vector<Case>
TopHat()
{
  const auto filter = TFilter::New();
  const auto element = MakeAlternatingElement({ { 1, 0, 2 } });
  filter->SetKernel(element.neighborhood);
  std::vector<Case> cases = { WithBox(TFilter::New(), {}), WithWindow(filter, {}) };
  cases.back().kernels["Kernel"] = element.stack;
  return cases;
}

template <typename TFilter>
std::vector<Case>
Gaussian(const Texts & more = {})
{
  const auto sampled = TFilter::New();
  sampled->SetSigmaArray(typename TFilter::ArrayType(1.1));
  sampled->SetCutoff(3.3);
  Texts texts = more;
  texts.insert({ { "Sigma", "1.1" }, { "Cutoff", "3.3" } });
  const auto                  discrete = TFilter::New();
  typename TFilter::ArrayType variance;
  typename TFilter::ArrayType error;
  for (unsigned int a = 0; a < 3; ++a)
  {
    variance[a] = 1.7 + a;
    error[a] = 0.1 + 0.05 * a;
  }
  discrete->SetVariance(variance);
  discrete->SetKernel(itk::ChunkwiseEnums::GaussianKernel::Discrete);
  discrete->SetMaximumError(error);
  discrete->SetMaximumKernelWidth(3);
  discrete->UseImageSpacingOff();
  Texts discreteTexts = more;
  discreteTexts.insert({ { "Variance", "3.7,1.7" },
                         { "Kernel", "discrete" },
                         { "MaximumError", "0.2,0.1" },
                         { "MaximumKernelWidth", "3" },
                         { "UseImageSpacing", "off" } });
  std::vector<Case> cases = { WithWindow(sampled, texts), WithWindow(discrete, discreteTexts, true) };
  if constexpr (std::is_base_of<itk::RenormalizedGaussianImageFilter<ImageType>, TFilter>::value)
  {
    AddDomains<TFilter>(
      cases,
      [](const itk::SmartPointer<TFilter> & filter) {
        filter->SetSigma(1.1);
        return WithWindow(filter, { { "Sigma", "1.1" } });
      },
      true);
    for (std::size_t i = 2; i < cases.size(); ++i)
    {
      cases[i].texts.insert(more.begin(), more.end());
    }
  }
  return cases;
}

template <typename TFilter>
Case
WithReconstruction(const itk::SmartPointer<TFilter> & filter, Texts texts)
{
  filter->FullyConnectedOn();
  filter->SetSpatialDimension(2);
  filter->SetMethod(itk::HeapReconstructionEnums::Method::ParallelHeapCluster);
  filter->SetNumberOfHeaps(5);
  filter->SetHeapNodeSize(9);
  texts.insert({ { "FullyConnected", "on" },
                 { "SpatialAxes", "0,1" },
                 { "Method", "heaps" },
                 { "NumberOfHeaps", "5" },
                 { "HeapNodeSize", "9" } });
  return { filter.GetPointer(), texts };
}

template <typename TFilter>
std::vector<Case>
Reconstruction(const Texts & texts = {})
{
  return { WithReconstruction(TFilter::New(), texts) };
}

template <typename TFilter>
std::vector<Case>
ByHeight()
{
  const auto filter = TFilter::New();
  filter->SetHeight(0.1F);
  return { WithReconstruction(filter, { { "Height", "0.1" } }) };
}

template <typename TFilter>
std::vector<Case>
Extrema(const std::string & flat, void (TFilter::*setFlat)(bool))
{
  const auto filter = TFilter::New();
  filter->SetForegroundValue(0.3F);
  filter->SetBackgroundValue(-0.7F);
  ((*filter).*setFlat)(false);
  return { WithReconstruction(filter,
                              { { "ForegroundValue", "0.3" }, { "BackgroundValue", "-0.7" }, { flat, "off" } }) };
}

/** A box with and without the image's intensities, and an element of any shape. */
template <typename TFilter>
std::vector<Case>
OfMorphology()
{
  std::vector<Case> cases;
  for (const bool preserves : { false, true })
  {
    const auto filter = TFilter::New();
    filter->SetRadius({ { 2, 1, 3 } });
    filter->SetPreserveIntensities(preserves);
    cases.push_back(
      WithReconstruction(filter, { { "Radius", "2,1" }, { "PreserveIntensities", preserves ? "on" : "off" } }));
  }
  const auto element = MakeAlternatingElement({ { 1, 2, 0 } });
  const auto filter = TFilter::New();
  filter->SetKernel(element.neighborhood);
  Case withKernel = WithReconstruction(filter, {});
  withKernel.kernels["Kernel"] = element.stack;
  cases.push_back(withKernel);
  return cases;
}

template <typename TFilter>
std::vector<Case>
FromMarker(const std::string & erosion)
{
  const auto filter = TFilter::New();
  filter->SetMaskImage(MakeImage());
  return { WithReconstruction(filter, { { "Erosion", erosion } }) };
}

std::shared_ptr<const chunkwise::KernelStack>
StackOf(const std::vector<ImageType::Pointer> & images)
{
  auto stack = std::make_shared<chunkwise::KernelStack>();
  for (const auto & image : images)
  {
    const auto & size = image->GetLargestPossibleRegion().GetSize();
    stack->extent = { { static_cast<std::int64_t>(size[0]),
                        static_cast<std::int64_t>(size[1]),
                        static_cast<std::int64_t>(size[2]),
                        1,
                        1 } };
    const float * const voxels = image->GetBufferPointer();
    stack->kernels.emplace_back(voxels, voxels + image->GetLargestPossibleRegion().GetNumberOfPixels());
  }
  return stack;
}

ImageType::Pointer
MakeKernelImage(unsigned int seed)
{
  return MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 4, 0, -1 }, { 3, 1, 4 }), seed, 0.1, 1);
}

std::vector<Case>
CasesOf(const std::string & row)
{
  using namespace itk;
  using Image = ImageType;
  if (row == "mean")
    return BoxInDomain<RenormalizedMeanImageFilter<Image>>();
  if (row == "sum")
    return BoxInDomain<RenormalizedSumImageFilter<Image>>();
  if (row == "variance")
    return BoxInDomain<RenormalizedVarianceImageFilter<Image>>();
  if (row == "std")
    return BoxInDomain<RenormalizedStandardDeviationImageFilter<Image>>();
  if (row == "range")
    return WithSides<RenormalizedRangeImageFilter<Image>>(BoxInMask<RenormalizedRangeImageFilter<Image>>());
  if (row == "median")
    return Ranks<RenormalizedMedianImageFilter<Image>>([](auto &) {}, {});
  if (row == "maximum")
    return Morphology<RenormalizedMaximumImageFilter<Image>>();
  if (row == "minimum")
    return Morphology<RenormalizedMinimumImageFilter<Image>>();
  if (row == "opening")
    return Morphology<RenormalizedOpeningImageFilter<Image>>();
  if (row == "closing")
    return Morphology<RenormalizedClosingImageFilter<Image>>();
  if (row == "white-tophat")
    return WithSides<RenormalizedWhiteTopHatImageFilter<Image>>(TopHat<RenormalizedWhiteTopHatImageFilter<Image>>());
  if (row == "black-tophat")
    return WithSides<RenormalizedBlackTopHatImageFilter<Image>>(TopHat<RenormalizedBlackTopHatImageFilter<Image>>());
  if (row == "diffusion")
  {
    const auto filter = FixedConductanceDiffusionImageFilter<Image>::New();
    filter->SetNumberOfIterations(3);
    filter->CurvatureOn();
    filter->SetConductance(2.5);
    filter->SetGradientMagnitude(1.5);
    filter->SetTimeStep(0.05);
    filter->UseImageSpacingOff();
    filter->SetSpatialAxes({ 0, 1 });
    return WithSmoothingMask(*filter,
                             { { "Iterations", "3" },
                               { "Method", "curvature" },
                               { "Conductance", "2.5" },
                               { "GradientMagnitude", "1.5" },
                               { "TimeStep", "0.05" },
                               { "UseImageSpacing", "off" },
                               { "SpatialAxes", "0,1" } });
  }
  if (row == "total-variation")
  {
    const auto filter = ChambollePockTotalVariationImageFilter<Image>::New();
    filter->SetNumberOfIterations(3);
    filter->SetWeight(2.5);
    filter->UseImageSpacingOff();
    filter->SetSpatialAxes({ 0, 1 });
    return WithSmoothingMask(
      *filter, { { "Iterations", "3" }, { "Weight", "2.5" }, { "UseImageSpacing", "off" }, { "SpatialAxes", "0,1" } });
  }
  if (row == "coherence-diffusion")
  {
    const auto filter = ExplicitCoherenceEnhancingDiffusionImageFilter<Image>::New();
    filter->SetNumberOfIterations(3);
    filter->SetSigma(0.8);
    filter->SetOuterSigma(1.3);
    filter->SetAlpha(0.01);
    filter->SetContrast(0.5);
    filter->SetTimeStep(0.05);
    filter->SetCutoff(2.5);
    filter->UseImageSpacingOff();
    filter->SetSpatialAxes({ 0, 1 });
    return WithSmoothingMask(*filter,
                             { { "Iterations", "3" },
                               { "Sigma", "0.8" },
                               { "OuterSigma", "1.3" },
                               { "Alpha", "0.01" },
                               { "Contrast", "0.5" },
                               { "TimeStep", "0.05" },
                               { "Cutoff", "2.5" },
                               { "UseImageSpacing", "off" },
                               { "SpatialAxes", "0,1" } });
  }
  if (row == "clahe")
  {
    const auto filter = ContrastLimitedAdaptiveHistogramEqualizationImageFilter<Image>::New();
    filter->SetTileSize(FixedArray<std::int64_t, 3>({ 4, 5, 0 }));
    filter->SetClipLimit(0.2);
    filter->SetNumberOfBins(30);
    filter->SetRange(-2, 3);
    filter->SetSpatialAxes({ 0, 1 });
    return { { filter,
               { { "TileSize", "4,5" },
                 { "ClipLimit", "0.2" },
                 { "NumberOfBins", "30" },
                 { "Range", "-2,3" },
                 { "SpatialAxes", "0,1" } } } };
  }
  if (row == "rolling-ball")
  {
    const auto filter = RollingBallImageFilter<Image>::New();
    filter->SetRadius(3.5);
    filter->SetHeight(2);
    filter->ParaboloidOn();
    filter->ErosionAloneOn();
    filter->SubtractBackgroundOn();
    filter->SetSpatialAxes({ 0, 1 });
    return { { filter,
               { { "Radius", "3.5" },
                 { "Height", "2" },
                 { "Shape", "paraboloid" },
                 { "Background", "erosion" },
                 { "SubtractBackground", "on" },
                 { "SpatialAxes", "0,1" } } } };
  }
  if (row == "bilateral")
  {
    const auto filter = RenormalizedBilateralImageFilter<Image>::New();
    filter->SetSigma(1.3);
    filter->SetCutoff(2.3);
    filter->UseImageSpacingOff();
    filter->SetRangeSigma(2.5);
    const Case whole = WithWindow(
      filter, { { "Sigma", "1.3" }, { "Cutoff", "2.3" }, { "UseImageSpacing", "off" }, { "RangeSigma", "2.5" } });
    return WithSmoothingMask(*filter, whole.texts);
  }
  if (row == "normalize")
  {
    using Filter = RenormalizedLocalNormalizationImageFilter<Image>;
    const auto filter = Filter::New();
    filter->SetLeastDeviation(2.5);
    return WithSides<Filter>({ WithBox(filter, { { "LeastDeviation", "2.5" } }) });
  }
  if (row == "unsharp")
  {
    const auto filter = RenormalizedUnsharpMaskImageFilter<Image>::New();
    filter->SetSigma(1.3);
    filter->SetCutoff(3.3);
    filter->UseImageSpacingOff();
    filter->SetAmount(0.7);
    filter->SetThreshold(2.5);
    return { WithWindow(filter,
                        { { "Sigma", "1.3" },
                          { "Cutoff", "3.3" },
                          { "UseImageSpacing", "off" },
                          { "Amount", "0.7" },
                          { "Threshold", "2.5" } }) };
  }
  if (row == "wiener")
  {
    const auto filter = RenormalizedWienerImageFilter<Image>::New();
    filter->SetNoiseVariance(2.3);
    std::vector<Case> cases = { WithBox(filter, { { "NoiseVariance", "2.3" } }) };
    AddDomains<RenormalizedWienerImageFilter<Image>>(
      cases,
      [](const itk::SmartPointer<RenormalizedWienerImageFilter<Image>> & inDomain) {
        inDomain->SetNoiseVariance(2.3);
        return WithBox(inDomain, { { "NoiseVariance", "2.3" } });
      },
      true);
    const auto sided = RenormalizedWienerImageFilter<Image>::New();
    sided->SetNoiseVariance(2.3);
    AddSides(cases, sided, { { "NoiseVariance", "2.3" } });
    return cases;
  }
  if (row == "nlm")
  {
    using Filter = RenormalizedNonLocalMeansImageFilter<Image>;
    const auto make = [](const itk::SmartPointer<Filter> & filter) {
      filter->SetPatchRadius({ { 1, 9, 2 } });
      filter->SetStrength(20.5);
      filter->SetNoiseVariance(3.1);
      return WithBox(filter, { { "PatchRadius", "2,1" }, { "Strength", "20.5" }, { "NoiseVariance", "3.1" } });
    };
    std::vector<Case> cases{ make(Filter::New()) };
    AddDomains<Filter>(cases, make, true);
    return cases;
  }
  if (row == "entropy")
  {
    using Filter = RenormalizedEntropyImageFilter<Image>;
    const auto set = [](auto & filter) {
      filter.SetNumberOfBins(17);
      filter.SetRange(-1.5, 99.7);
    };
    const Texts texts = { { "NumberOfBins", "17" }, { "Range", "-1.5,99.7" } };
    auto        cases = InMaskOrWithoutNan<Filter>(set, texts);
    const auto  sided = Filter::New();
    set(*sided);
    AddSides(cases, sided, texts);
    return cases;
  }
  if (row == "percentile")
  {
    return Ranks<RenormalizedPercentileImageFilter<Image>>([](auto & filter) { filter.SetPercentile(12.3); },
                                                           { { "Percentile", "12.3" } });
  }
  if (row == "gaussian")
  {
    auto cases = Gaussian<RenormalizedGaussianImageFilter<Image>>();
    using Transformed = PrunedFFTGaussianImageFilter<Image>;
    const auto byTransforms = Gaussian<Transformed>({ { "Transforms", "on" }, { "TransformProvider", "own" } });
    for (const Case & theCase : byTransforms)
    {
      dynamic_cast<Transformed &>(*theCase.filter)
        .SetTransformProvider(ChunkwiseConvolutionEnums::TransformProvider::Own);
    }
    cases.insert(cases.end(), byTransforms.begin(), byTransforms.end());
    return cases;
  }
  if (row == "highpass")
    return Gaussian<RenormalizedHighPassImageFilter<Image>>();
  if (row == "log")
  {
    const auto            filter = RenormalizedLaplacianOfGaussianImageFilter<Image>::New();
    FixedArray<double, 3> sigma;
    sigma[0] = 1.3;
    sigma[1] = -7.0;
    sigma[2] = 2.1;
    filter->SetSigmaArray(sigma);
    filter->SetCutoff(3.3);
    filter->NormalizeAcrossScaleOn();
    filter->UseImageSpacingOff();
    return {
      WithWindow(
        filter,
        { { "Sigma", "2.1,1.3" }, { "Cutoff", "3.3" }, { "NormalizeAcrossScale", "on" }, { "UseImageSpacing", "off" } })
    };
  }
  if (row == "derivative")
  {
    const auto filter = RenormalizedDerivativeImageFilter<Image>::New();
    filter->SetSigma(1.3);
    FixedArray<unsigned int, 3> order;
    order[0] = 2;
    order[1] = 3;
    order[2] = 1;
    filter->SetOrder(order);
    filter->SetKernel(RenormalizedDerivativeEnums::Kernel::Sampled);
    filter->SetCutoff(3.3);
    filter->NormalizeAcrossScaleOn();
    filter->UseImageSpacingOff();
    const auto sobel = RenormalizedDerivativeImageFilter<Image>::New();
    sobel->SetOperator(RenormalizedDerivativeEnums::Operator::Sobel);
    return { WithWindow(filter,
                        { { "Sigma", "1.3" },
                          { "Order", "1,2" },
                          { "Kernel", "sampled" },
                          { "Cutoff", "3.3" },
                          { "NormalizeAcrossScale", "on" },
                          { "UseImageSpacing", "off" } }),
             WithWindow(sobel, { { "Order", "0,1" }, { "Operator", "sobel" } }) };
  }
  if (row == "gradient")
  {
    const auto filter = RenormalizedGradientImageFilter<Image>::New();
    filter->SetSigma(1.3);
    filter->SetCutoff(3.3);
    filter->SetKernel(RenormalizedDerivativeEnums::Kernel::Sampled);
    filter->NormalizeAcrossScaleOn();
    filter->UseImageSpacingOff();
    const auto scharr = RenormalizedGradientImageFilter<Image>::New();
    scharr->SetOperator(RenormalizedDerivativeEnums::Operator::Scharr);
    return { WithWindow(filter,
                        { { "Sigma", "1.3" },
                          { "Cutoff", "3.3" },
                          { "Kernel", "sampled" },
                          { "NormalizeAcrossScale", "on" },
                          { "UseImageSpacing", "off" } }),
             WithWindow(scharr, { { "Operator", "scharr" } }) };
  }
  if (row == "hessian")
  {
    const auto filter = RenormalizedHessianImageFilter<Image>::New();
    filter->SetSigma(1.3);
    filter->SetCutoff(3.3);
    filter->NormalizeAcrossScaleOn();
    filter->SetKernel(RenormalizedDerivativeEnums::Kernel::Sampled);
    filter->UseImageSpacingOff();
    filter->SetResult(RenormalizedDerivativeEnums::Result::Elements);
    filter->SetNumber(2);
    const auto prewitt = RenormalizedHessianImageFilter<Image>::New();
    prewitt->SetOperator(RenormalizedDerivativeEnums::Operator::Prewitt);
    return { WithWindow(filter,
                        { { "Sigma", "1.3" },
                          { "Cutoff", "3.3" },
                          { "NormalizeAcrossScale", "on" },
                          { "Kernel", "sampled" },
                          { "UseImageSpacing", "off" },
                          { "Result", "elements" },
                          { "Number", "2" } }),
             WithWindow(prewitt, { { "Operator", "prewitt" } }) };
  }
  if (row == "curvature")
  {
    const auto filter = RenormalizedCurvatureImageFilter<Image>::New();
    filter->SetSigma(1.3);
    filter->SetCutoff(3.3);
    filter->NormalizeAcrossScaleOn();
    filter->SetKernel(RenormalizedDerivativeEnums::Kernel::Sampled);
    filter->UseImageSpacingOff();
    filter->SetResult(RenormalizedDerivativeEnums::CurvatureResult::Mean);
    filter->SetLeastGradient(2.5);
    const auto scharr = RenormalizedCurvatureImageFilter<Image>::New();
    scharr->SetOperator(RenormalizedDerivativeEnums::Operator::Scharr);
    return { WithWindow(filter,
                        { { "Sigma", "1.3" },
                          { "Cutoff", "3.3" },
                          { "NormalizeAcrossScale", "on" },
                          { "Kernel", "sampled" },
                          { "UseImageSpacing", "off" },
                          { "Result", "mean" },
                          { "LeastGradient", "2.5" } }),
             WithWindow(scharr, { { "Operator", "scharr" } }) };
  }
  if (row == "divergence")
  {
    const auto filter = RenormalizedDivergenceImageFilter<Image>::New();
    filter->SetSigma(1.3);
    filter->SetCutoff(3.3);
    filter->NormalizeAcrossScaleOn();
    filter->SetKernel(RenormalizedDerivativeEnums::Kernel::Sampled);
    filter->UseImageSpacingOff();
    filter->OfGradientOn();
    const auto vectors = RenormalizedDivergenceImageFilter<Image>::New();
    vectors->SetOperator(RenormalizedDerivativeEnums::Operator::Sobel);
    vectors->SetInput2(MakeImage());
    Case ofVectors = WithWindow(vectors, { { "Operator", "sobel" } });
    ofVectors.domain = "Input2";
    return { WithWindow(filter,
                        { { "Sigma", "1.3" },
                          { "Cutoff", "3.3" },
                          { "NormalizeAcrossScale", "on" },
                          { "Kernel", "sampled" },
                          { "UseImageSpacing", "off" },
                          { "OfGradient", "on" } }),
             ofVectors };
  }
  if (row == "structure-tensor")
  {
    const auto filter = RenormalizedStructureTensorImageFilter<Image>::New();
    filter->SetSigma(1.3);
    filter->SetOuterSigma(1.7);
    filter->SetCutoff(3.3);
    filter->NormalizeAcrossScaleOn();
    filter->SetKernel(RenormalizedDerivativeEnums::Kernel::Sampled);
    filter->UseImageSpacingOff();
    filter->SetResult(RenormalizedDerivativeEnums::TensorResult::Orientation);
    filter->SetNumber(1);
    const auto corners = RenormalizedStructureTensorImageFilter<Image>::New();
    corners->SetOperator(RenormalizedDerivativeEnums::Operator::Scharr);
    corners->SetResult(RenormalizedDerivativeEnums::TensorResult::Cornerness);
    corners->SetHarris(0.1);
    return { WithWindow(filter,
                        { { "Sigma", "1.3" },
                          { "OuterSigma", "1.7" },
                          { "Cutoff", "3.3" },
                          { "NormalizeAcrossScale", "on" },
                          { "Kernel", "sampled" },
                          { "UseImageSpacing", "off" },
                          { "Result", "orientation" },
                          { "Number", "1" } }),
             WithWindow(
               corners,
               { { "Operator", "scharr" }, { "OuterSigma", "2" }, { "Result", "cornerness" }, { "Harris", "0.1" } }) };
  }
  if (row == "vesselness")
  {
    const auto frangi = RenormalizedHessianMeasureImageFilter<Image>::New();
    frangi->SetScales({ 1.5, 2.5 });
    frangi->SetAlpha(0.4);
    frangi->SetBeta(0.7);
    frangi->SetContrast({ 12.0, 3.0 });
    frangi->DarkOn();
    frangi->ScaleByLargestOn();
    frangi->OutputScaleOn();
    frangi->UseImageSpacingOff();
    frangi->SetKernel(RenormalizedDerivativeEnums::Kernel::Sampled);
    frangi->SetCutoff(3.3);
    const auto jerman = RenormalizedHessianMeasureImageFilter<Image>::New();
    jerman->SetMeasure(RenormalizedDerivativeEnums::Measure::Jerman);
    jerman->SetTau(0.7);
    jerman->SetContrast({ 5.0 });
    return { WithWindow(frangi,
                        { { "Scales", "1.5,2.5" },
                          { "Alpha", "0.4" },
                          { "Beta", "0.7" },
                          { "Contrast", "12,3" },
                          { "Dark", "on" },
                          { "ScaleByLargest", "on" },
                          { "Result", "scale" },
                          { "UseImageSpacing", "off" },
                          { "Kernel", "sampled" },
                          { "Cutoff", "3.3" } }),
             WithWindow(jerman,
                        { { "Scales", "1" }, { "Measure", "jerman" }, { "Tau", "0.7" }, { "Contrast", "5" } }) };
  }
#ifdef CHUNKWISE_HAS_NETWORKS
  if (row == "network")
  {
    const auto filter = SlidingWindowNetworkImageFilter<Image, Image>::New();
    filter->SetGraph(chunkwise::MakeSmallNetwork());
    filter->SetOutputMode(SlidingWindowNetworkEnums::OutputMode::Threshold);
    filter->SetChannel(2);
    filter->SetThreshold(0.3);
    filter->SetInputScale(0.1);
    filter->SetInputShift(-0.7);
    filter->SetPrecision(SlidingWindowNetworkEnums::Precision::Reproducible);
    filter->SetBoundaryCondition(Boundary::Constant);
    filter->SetConstant(0.1);
    Case theCase{ filter.GetPointer(),
                  { { "OutputMode", "threshold" },
                    { "Channel", "2" },
                    { "Threshold", "0.3" },
                    { "InputScale", "0.1" },
                    { "InputShift", "-0.7" },
                    { "Precision", "reproducible" },
                    { "BoundaryCondition", "constant" },
                    { "Constant", "0.1" } } };
    theCase.hasNetwork = true;
    const auto windows = SlidingWindowNetworkImageFilter<Image, Image>::New();
    windows->SetGraph(chunkwise::MakeSmallNetwork());
    windows->SetInferenceMode(SlidingWindowNetworkEnums::InferenceMode::Patches);
    windows->SetPatchSize({ { 8, 6, 4 } });
    windows->SetOverlap(0.5);
    windows->SetPatchWeighting(SlidingWindowNetworkEnums::PatchWeighting::Gaussian);
    Case inWindows{ windows.GetPointer(),
                    { { "InferenceMode", "patches" },
                      { "PatchSize", "8,6,4" },
                      { "Overlap", "0.5" },
                      { "PatchWeighting", "gaussian" } } };
    inWindows.hasNetwork = true;
    std::vector<Case> cases{ theCase, inWindows };
    for (const auto & precision :
         { std::make_pair(SlidingWindowNetworkEnums::Precision::TensorFloat32, "tensorfloat32"),
           std::make_pair(SlidingWindowNetworkEnums::Precision::Half, "half") })
    {
      const auto other = SlidingWindowNetworkImageFilter<Image, Image>::New();
      other->SetGraph(chunkwise::MakeSmallNetwork());
      other->SetPrecision(precision.first);
      cases.push_back({ other.GetPointer(), { { "Precision", precision.second } } });
      cases.back().hasNetwork = true;
    }
    return cases;
  }
#endif
  if (row == "convolve")
  {
    std::vector<Case> cases;
    for (const bool correlate : { false, true })
    {
      const auto             filter = RenormalizedConvolutionImageFilter<Image>::New();
      Neighborhood<float, 3> kernel;
      kernel.SetRadius({ { 1, 0, 2 } });
      auto stack = std::make_shared<chunkwise::KernelStack>();
      stack->extent = { { 3, 1, 5, 1, 1 } };
      stack->kernels.emplace_back();
      for (unsigned int i = 0; i < kernel.Size(); ++i)
      {
        kernel[i] = 0.25F + static_cast<float>(i);
        stack->kernels[0].push_back(0.25 + i);
      }
      filter->SetKernel(kernel);
      filter->SetCorrelate(correlate);
      cases.push_back(WithWindow(filter, { { "Correlate", correlate ? "on" : "off" } }));
      cases.back().kernels["Kernel"] = stack;
    }
    const std::size_t before = cases.size();
    AddDomains<RenormalizedConvolutionImageFilter<Image>>(
      cases,
      [](const itk::SmartPointer<RenormalizedConvolutionImageFilter<Image>> & filter) {
        Neighborhood<float, 3> one;
        one.SetRadius(itk::Size<3>{ { 0, 0, 0 } });
        one[0] = 2;
        filter->SetKernel(one);
        return WithWindow(filter, {});
      },
      true);
    for (std::size_t i = before; i < cases.size(); ++i)
    {
      auto stack = std::make_shared<chunkwise::KernelStack>();
      stack->kernels.push_back({ 2.0 });
      cases[i].kernels["Kernel"] = stack;
    }
    return cases;
  }
  if (row == "convolve-image")
  {
    const auto filter = PrunedFFTConvolutionImageFilter<Image>::New();
    const auto kernel = MakeKernelImage(5);
    filter->SetKernelImage(kernel);
    filter->NormalizeOn();
    filter->CorrelateOn();
    filter->SetOutputRegionModeToValid();
    filter->SetMethod(ChunkwiseConvolutionEnums::Method::Direct);
    Case theCase =
      WithWindow(filter, { { "Normalize", "on" }, { "Correlate", "on" }, { "Valid", "on" }, { "Method", "direct" } });
    theCase.kernels["KernelImage"] = StackOf({ kernel });
    std::vector<Case> cases = { theCase };
    AddDomains<PrunedFFTConvolutionImageFilter<Image>>(
      cases,
      [](const itk::SmartPointer<PrunedFFTConvolutionImageFilter<Image>> & inDomain) {
        inDomain->SetKernelImage(MakeKernelImage(5));
        return WithWindow(inDomain, {});
      },
      true);
    for (std::size_t i = 1; i < cases.size(); ++i)
    {
      cases[i].kernels["KernelImage"] = StackOf({ MakeKernelImage(5) });
    }
    using Provider = ChunkwiseConvolutionEnums::TransformProvider;
    for (const auto & named : { std::make_pair(Provider::Own, "own"),
                                std::make_pair(Provider::CuFFT, "cufft"),
                                std::make_pair(Provider::FFTW, "fftw") })
    {
      const auto provided = PrunedFFTConvolutionImageFilter<Image>::New();
      provided->SetKernelImage(kernel);
      provided->SetTransformProvider(named.first);
      cases.push_back(WithWindow(provided, { { "TransformProvider", named.second } }));
      cases.back().kernels["KernelImage"] = StackOf({ kernel });
    }
    return cases;
  }
  if (row == "convolve-varying")
  {
    using Varying = SpatiallyVaryingConvolutionImageFilter<Image>;
    const auto                filter = Varying::New();
    const auto                first = MakeKernelImage(6);
    const auto                second = MakeKernelImage(7);
    Varying::KernelImagesType kernels;
    kernels.emplace_back(first);
    kernels.emplace_back(second);
    filter->SetKernelImages(kernels);
    filter->SetGridSize({ { 2, 1, 1 } });
    Varying::PointType   origin;
    Varying::SpacingType spacing;
    for (unsigned int a = 0; a < 3; ++a)
    {
      origin[a] = 1.5 - a;
      spacing[a] = 4.5 + a;
    }
    filter->SetGrid(origin, spacing);
    filter->SetOrder(ChunkwiseConvolutionEnums::Order::WeightThenConvolve);
    filter->NormalizeOn();
    Case theCase = WithWindow(filter,
                              { { "GridSize", "1,2" },
                                { "GridOrigin", "1.5,0.5,-0.5" },
                                { "GridSpacing", "4.5,5.5,6.5" },
                                { "WeightThenConvolve", "on" },
                                { "Normalize", "on" } },
                              true);
    theCase.kernels["KernelImages"] = StackOf({ first, second });
    std::vector<Case> cases = { theCase };
    AddDomains<Varying>(
      cases,
      [](const itk::SmartPointer<Varying> & inDomain) {
        inDomain->SetKernelImages({ MakeKernelImage(5).GetPointer() });
        return WithWindow(inDomain, { { "GridSize", "1" } });
      },
      true);
    for (std::size_t i = 1; i < cases.size(); ++i)
    {
      cases[i].kernels["KernelImages"] = StackOf({ MakeKernelImage(5) });
    }
    return cases;
  }
  if (row == "reconstruct")
  {
    auto       cases = FromMarker<HeapReconstructionByDilationImageFilter<Image>>("off");
    const auto erosion = FromMarker<HeapReconstructionByErosionImageFilter<Image>>("on");
    cases.insert(cases.end(), erosion.begin(), erosion.end());
    return cases;
  }
  if (row == "h-maxima")
    return ByHeight<HeapHMaximaImageFilter<Image>>();
  if (row == "h-minima")
    return ByHeight<HeapHMinimaImageFilter<Image>>();
  if (row == "h-convex")
    return ByHeight<HeapHConvexImageFilter<Image>>();
  if (row == "h-concave")
    return ByHeight<HeapHConcaveImageFilter<Image>>();
  if (row == "fill-holes")
    return Reconstruction<HeapFillholeImageFilter<Image>>();
  if (row == "grind-peaks")
    return Reconstruction<HeapGrindPeakImageFilter<Image>>();
  if (row == "clear-border")
    return Reconstruction<HeapClearBorderImageFilter<Image>>();
  if (row == "regional-maxima")
    return Extrema<HeapRegionalMaximaImageFilter<Image>>("FlatIsMaxima",
                                                         &HeapRegionalMaximaImageFilter<Image>::SetFlatIsMaxima);
  if (row == "regional-minima")
    return Extrema<HeapRegionalMinimaImageFilter<Image>>("FlatIsMinima",
                                                         &HeapRegionalMinimaImageFilter<Image>::SetFlatIsMinima);
  if (row == "opening-by-reconstruction")
    return OfMorphology<HeapOpeningByReconstructionImageFilter<Image>>();
  if (row == "closing-by-reconstruction")
    return OfMorphology<HeapClosingByReconstructionImageFilter<Image>>();
  if (row == "box")
  {
    std::vector<Case>  cases;
    const char * const names[] = { "sum", "mean", "variance", "std" };
    for (int i = 0; i < 4; ++i)
    {
      using BoxStatistic = BoxStatisticImageFilter<Image>;
      const auto filter = BoxStatistic::New();
      filter->SetStatistic(static_cast<BoxStatisticEnums::Statistic>(i));
      if (i % 2 == 0)
      {
        filter->SetRadiusImage(
          MakeRandomImage<BoxStatistic::RadiusImageType>(MakeImage()->GetLargestPossibleRegion(), 3, 0, 3));
      }
      cases.push_back(WithBox(filter, { { "Statistic", names[i] } }, true));
      cases.back().hasRadii = i % 2 == 0;
    }
    AddDomains<BoxStatisticImageFilter<Image>>(
      cases,
      [](const itk::SmartPointer<BoxStatisticImageFilter<Image>> & inDomain) {
        return WithBox(inDomain, { { "Statistic", "mean" } }, true);
      },
      true);
    return cases;
  }
  if (row == "sat")
  {
    const auto filter = SummedAreaTableImageFilter<Image, Image>::New();
    filter->SetSummedAxes(2);
    filter->SquaresOn();
    filter->ModularOn();
    filter->SetMethod(SummedAreaTableEnums::Method::Blocks);
    return { { filter.GetPointer(),
               { { "SummedAxes", "2" }, { "Squares", "on" }, { "Modular", "on" }, { "Method", "blocks" } } } };
  }
  if (row == "label")
  {
    const auto within = ConnectedComponentLabelImageFilter<Image, Image>::New();
    within->SetConnectivity(2);
    within->SetRule(ConnectedComponentLabelEnums::Rule::Within);
    within->SetTolerance(0.5);
    within->SetBackground(3.0F);
    within->SetPeriodicAxes({ 2 });
    within->SetSpatialAxes({ 2, 0 });
    const auto structured = ConnectedComponentLabelImageFilter<Image, Image>::New();
    structured->SetStructure({ 1, 0, 0, 0, 1, 0, 0, 0, 1 });
    structured->SetSpatialAxes({ 0, 1 });
    structured->LabelBackgroundOn();
    return { { within.GetPointer(),
               { { "Connectivity", "2" },
                 { "Rule", "within" },
                 { "Tolerance", "0.5" },
                 { "Background", "3" },
                 { "PeriodicAxes", "2" },
                 { "SpatialAxes", "2,0" } } },
             { structured.GetPointer(),
               { { "Structure", "1,0,0,0,1,0,0,0,1" }, { "SpatialAxes", "0,1" }, { "LabelBackground", "on" } } } };
  }
  const auto withAxes = [](const auto & filter, std::map<std::string, std::string> texts) {
    filter->SetBackground(3.0F);
    filter->UseImageSpacingOff();
    filter->SetSpatialAxes({ 0, 2 });
    texts.insert({ { "Background", "3" }, { "UseImageSpacing", "off" }, { "SpatialAxes", "0,2" } });
    return Case{ filter.GetPointer(), texts };
  };
  if (row == "distance")
  {
    const auto filter = EuclideanDistanceImageFilter<Image, Image>::New();
    filter->SetFeatures(EuclideanDistanceEnums::Features::Contour);
    filter->SquaredDistanceOn();
    filter->SetMaximumDistance(2.5);
    filter->InsideIsPositiveOn();
    return { withAxes(filter,
                      { { "Features", "contour" },
                        { "SquaredDistance", "on" },
                        { "MaximumDistance", "2.5" },
                        { "InsideIsPositive", "on" } }) };
  }
  if (row == "nearest")
  {
    const auto filter = NearestFeatureImageFilter<Image, Image>::New();
    filter->SetFeatures(EuclideanDistanceEnums::Features::Background);
    return { withAxes(filter, { { "Features", "background" } }) };
  }
  if (row == "expand-labels")
  {
    const auto filter = ExpandLabelsImageFilter<Image>::New();
    filter->SetDistance(2.5);
    return { withAxes(filter, { { "Distance", "2.5" } }) };
  }
  if (row == "binary-morphology")
  {
    const auto filter = BinaryBallMorphologyImageFilter<Image>::New();
    filter->SetMorphology(EuclideanDistanceEnums::Morphology::Closing);
    filter->SetRadius(2.5);
    filter->SetForegroundValue(7.0F);
    return { withAxes(filter, { { "Morphology", "closing" }, { "Radius", "2.5" }, { "ForegroundValue", "7" } }) };
  }
  if (row == "threshold")
  {
    const auto several = GlobalThresholdImageFilter<Image, Image>::New();
    several->SetMethod(GlobalThresholdEnums::Method::MultiOtsu);
    several->SetThresholds({ 1.5, 4 });
    several->SetNumberOfClasses(4);
    several->SetNumberOfBins(100);
    several->SetMaskImage(
      MakeRandomImage<itk::Image<unsigned char, 3>>(MakeImage()->GetLargestPossibleRegion(), 3, 0, 2));
    const auto range = GlobalThresholdImageFilter<Image, Image>::New();
    range->SetMethod(GlobalThresholdEnums::Method::Fixed);
    range->SetLower(-2.5F);
    range->SetUpper(7.25F);
    Case ofSeveral{
      several.GetPointer(),
      { { "Method", "multi-otsu" }, { "Thresholds", "1.5,4" }, { "NumberOfClasses", "4" }, { "NumberOfBins", "100" } }
    };
    ofSeveral.domain = "MaskImage";
    return { ofSeveral, { range.GetPointer(), { { "Method", "fixed" }, { "Lower", "-2.5" }, { "Upper", "7.25" } } } };
  }
  if (row == "resample")
  {
    using Resample = ChunkwiseResampleImageFilter<Image>;
    const auto            filter = Resample::New();
    Resample::SizeType    size{ { 4, 5, 6 } };
    Resample::SpacingType spacing;
    Resample::PointType   origin;
    spacing.Fill(1.5);
    origin.Fill(-2);
    filter->SetSize(size);
    filter->SetOutputSpacing(spacing);
    filter->SetOutputOrigin(origin);
    filter->SetInterpolation(ChunkwiseResampleEnums::Interpolation::Cubic);
    filter->UseDefaultPixelValueOn();
    filter->SetDefaultPixelValue(7.5);
    filter->AntialiasOff();
    return { { filter.GetPointer(),
               { { "Size", "4,5,6" },
                 { "OutputSpacing", "1.5,1.5,1.5" },
                 { "OutputOrigin", "-2,-2,-2" },
                 { "Interpolation", "cubic" },
                 { "Outside", "value" },
                 { "OutsideValue", "7.5" },
                 { "Antialias", "off" } } } };
  }
  if (row == "bin" || row == "bin-sum")
  {
    const auto filter = ChunkwiseBinImageFilter<Image>::New();
    filter->SetFactor({ { 3, 2, 4 } });
    const bool sums = row == "bin-sum";
    filter->SetMethod(sums ? ChunkwiseGridEnums::Method::Sum : ChunkwiseGridEnums::Method::Median);
    Case each{ filter.GetPointer(), { { "Factor", "3,2,4" } } };
    if (!sums)
    {
      each.texts["Method"] = "median";
    }
    return { each };
  }
  if (row == "crop")
  {
    const auto filter = ChunkwiseCropImageFilter<Image>::New();
    filter->SetLower({ { 1, 2, 1 } });
    filter->SetUpper({ { 0, 1, 1 } });
    return { { filter.GetPointer(), { { "Lower", "1,2,1" }, { "Upper", "0,1,1" } } } };
  }
  if (row == "pad")
  {
    const auto filter = ChunkwisePadImageFilter<Image>::New();
    filter->SetLower({ { 1, 2, 1 } });
    filter->SetUpper({ { 0, 1, 1 } });
    filter->SetOutsideValue(2.5F);
    const auto mirrored = ChunkwisePadImageFilter<Image>::New();
    mirrored->SetUpper({ { 2, 1, 1 } });
    mirrored->SetOutside(ChunkwiseGridEnums::Outside::Mirror);
    return { { filter.GetPointer(), { { "Lower", "1,2,1" }, { "Upper", "0,1,1" }, { "OutsideValue", "2.5" } } },
             { mirrored.GetPointer(), { { "Upper", "2,1,1" }, { "Outside", "mirror" } } } };
  }
  if (row == "flip")
  {
    const auto filter = ChunkwiseFlipImageFilter<Image>::New();
    filter->FlipAboutOriginOn();
    return { { filter.GetPointer(), { { "FlipAboutOrigin", "on" } } } };
  }
  if (row == "permute-axes")
  {
    const auto                                            filter = ChunkwisePermuteAxesImageFilter<Image>::New();
    ChunkwisePermuteAxesImageFilter<Image>::AxisOrderType order;
    order[0] = 1;
    order[1] = 2;
    order[2] = 0;
    filter->SetAxisOrder(order);
    return { { filter.GetPointer(), { { "AxisOrder", "1,2,0" } } } };
  }
  if (row == "boundaries")
  {
    const auto filter = LabelBoundaryImageFilter<Image, Image>::New();
    filter->SetMode(LabelBoundaryEnums::Mode::Outer);
    filter->SetConnectivity(2);
    filter->SetSpatialAxes({ 2, 0 });
    return { { filter.GetPointer(),
               { { "BoundaryMode", "outer" }, { "Connectivity", "2" }, { "SpatialAxes", "2,0" } } } };
  }
  if (row == "hysteresis")
  {
    auto cases = Reconstruction<HysteresisThresholdImageFilter<Image, Image>>();
    for (Case & theCase : cases)
    {
      auto & filter = dynamic_cast<HysteresisThresholdImageFilter<Image, Image> &>(*theCase.filter);
      filter.SetLow(10);
      filter.SetHigh(40.5);
      theCase.texts.insert({ { "Low", "10" }, { "High", "40.5" } });
    }
    return cases;
  }
  if (row == "local-threshold")
  {
    using Local = LocalThresholdImageFilter<Image, Image>;
    const auto mean = Local::New();
    mean->SetOffset(-2.5);
    mean->SetResult(LocalThresholdEnums::Result::Threshold);
    const auto phansalkar = Local::New();
    phansalkar->SetMethod(LocalThresholdEnums::Method::Phansalkar);
    phansalkar->SetK(0.3);
    phansalkar->SetR(50);
    phansalkar->SetP(1.5);
    phansalkar->SetQ(8);
    phansalkar->SetMaskImage(MakeRandomImage<Local::MaskImageType>(MakeImage()->GetLargestPossibleRegion(), 3, 0, 2));
    const auto bernsen = Local::New();
    bernsen->SetMethod(LocalThresholdEnums::Method::Bernsen);
    bernsen->SetContrast(20);
    bernsen->SetLevel(33);
    Case ofPhansalkar =
      WithBox(phansalkar, { { "Method", "phansalkar" }, { "K", "0.3" }, { "R", "50" }, { "P", "1.5" }, { "Q", "8" } });
    ofPhansalkar.domain = "MaskImage";
    return WithSides<Local>(
      { WithBox(mean, { { "Method", "mean" }, { "Offset", "-2.5" }, { "Result", "threshold" } }, true),
        ofPhansalkar,
        WithBox(bernsen, { { "Method", "bernsen" }, { "Contrast", "20" }, { "Level", "33" } }) });
  }
  if (row == "deconvolve" || row == "deconvolve-varying")
  {
    const auto set = [](auto filter, Texts texts) {
      filter->SetAlgorithm(DeconvolutionEnums::Algorithm::RichardsonLucy);
      filter->SetNumberOfIterations(7);
      filter->NormalizeOff();
      filter->SetBackground(0.5);
      filter->SetLeastExpected(0.01);
      filter->SetTotalVariation(0.25);
      filter->AccelerateOn();
      filter->SetRelativeChange(0.125);
      filter->SetDiscrepancy(1.5);
      filter->SetSaturation(70);
      filter->SetSpatialAxes({ 2, 1, 0 });
      for (const auto & text : Texts{ { "Algorithm", "richardson-lucy" },
                                      { "NumberOfIterations", "7" },
                                      { "Normalize", "off" },
                                      { "Background", "0.5" },
                                      { "LeastExpected", "0.01" },
                                      { "TotalVariation", "0.25" },
                                      { "Accelerate", "on" },
                                      { "RelativeChange", "0.125" },
                                      { "Discrepancy", "1.5" },
                                      { "Saturation", "70" },
                                      { "SpatialAxes", "2,1,0" } })
      {
        texts.insert(text);
      }
      return Case{ filter.GetPointer(), texts };
    };
    if (row == "deconvolve")
    {
      const auto filter = RenormalizedDeconvolutionImageFilter<Image>::New();
      filter->SetKernelImage(MakeKernelImage(6));
      filter->SetBackProjector(MakeKernelImage(7));
      Case theCase = set(filter, {});
      theCase.kernels["KernelImage"] = StackOf({ MakeKernelImage(6) });
      theCase.kernels["BackProjector"] = StackOf({ MakeKernelImage(7) });
      const auto landweber = RenormalizedDeconvolutionImageFilter<Image>::New();
      landweber->SetKernelImage(MakeKernelImage(6));
      landweber->SetAlgorithm(DeconvolutionEnums::Algorithm::ProjectedLandweber);
      landweber->SetRelaxation(0.5);
      landweber->SetWeightImage(MakeImage());
      Case ofLandweber{ landweber.GetPointer(), { { "Algorithm", "projected-landweber" }, { "Relaxation", "0.5" } } };
      ofLandweber.kernels["KernelImage"] = StackOf({ MakeKernelImage(6) });
      ofLandweber.domain = "WeightImage";
      const auto wiener = RenormalizedDeconvolutionImageFilter<Image>::New();
      wiener->SetKernelImage(MakeKernelImage(6));
      wiener->SetAlgorithm(DeconvolutionEnums::Algorithm::Wiener);
      wiener->SetNoiseVariance(0.25);
      wiener->SetRegularizationConstant(0.5);
      wiener->SetKernelZeroMagnitudeThreshold(0.125);
      Case ofWiener{ wiener.GetPointer(),
                     { { "Algorithm", "wiener" },
                       { "NoiseVariance", "0.25" },
                       { "RegularizationConstant", "0.5" },
                       { "KernelZeroMagnitudeThreshold", "0.125" } } };
      ofWiener.kernels["KernelImage"] = StackOf({ MakeKernelImage(6) });
      return { theCase, ofLandweber, ofWiener };
    }
    using Varying = SpatiallyVaryingDeconvolutionImageFilter<Image>;
    const auto filter = Varying::New();
    const auto stack = Varying::KernelStackType::New();
    stack->SetRegions(Varying::KernelStackType::SizeType{ { 1, 1, 1, 2 } });
    stack->Allocate();
    stack->FillBuffer(0.5f);
    filter->SetKernelStack(stack);
    filter->SetGridSize({ { 1, 1, 2 } });
    Case theCase = set(filter, { { "GridSize", "2,1,1" } });
    auto kernels = std::make_shared<chunkwise::KernelStack>();
    kernels->kernels = { { 0.5 }, { 0.5 } };
    theCase.kernels["KernelImages"] = kernels;
    const auto landweber = Varying::New();
    landweber->SetKernelStack(stack);
    landweber->SetGridSize({ { 2, 1, 1 } });
    landweber->SetAlgorithm(DeconvolutionEnums::Algorithm::Landweber);
    landweber->SetRelaxation(0.5);
    Case ofLandweber{ landweber.GetPointer(),
                      { { "Algorithm", "landweber" }, { "Relaxation", "0.5" }, { "GridSize", "2,1,1" } } };
    ofLandweber.kernels["KernelImages"] = kernels;
    return { theCase, ofLandweber };
  }
  const auto ofArea = [](auto filter) {
    filter->SetLambda(20);
    filter->SetAttribute(ComponentAreaEnums::Attribute::Extent);
    filter->UseImageSpacingOff();
    filter->SetConnectivity(2);
    filter->SetSpatialAxes({ 0, 2 });
    return std::vector<Case>{ { filter.GetPointer(),
                                { { "Size", "20" },
                                  { "Attribute", "extent" },
                                  { "UseImageSpacing", "off" },
                                  { "Connectivity", "2" },
                                  { "SpatialAxes", "0,2" } } } };
  };
  if (row == "area-opening")
  {
    return ofArea(ComponentAreaOpeningImageFilter<Image>::New());
  }
  if (row == "area-closing")
  {
    return ofArea(ComponentAreaClosingImageFilter<Image>::New());
  }
  if (row == "watershed")
  {
    const auto masked = SpanningForestWatershedImageFilter<Image, Image>::New();
    masked->SetConnectivity(2);
    masked->SetHeight(0.5);
    masked->LinesOn();
    masked->SetSpatialAxes({ 2, 0 });
    masked->SetMaskImage(
      MakeRandomImage<itk::Image<unsigned char, 3>>(MakeImage()->GetLargestPossibleRegion(), 3, 0, 2));
    Case ofMask{ masked.GetPointer(),
                 { { "Connectivity", "2" }, { "Height", "0.5" }, { "Lines", "on" }, { "SpatialAxes", "2,0" } } };
    ofMask.domain = "MaskImage";
    const auto byArea = SpanningForestWatershedImageFilter<Image, Image>::New();
    byArea->SetArea(7);
    byArea->UseImageSpacingOff();
    const auto byVolume = SpanningForestWatershedImageFilter<Image, Image>::New();
    byVolume->SetVolume(900);
    return { ofMask,
             { byArea.GetPointer(), { { "Area", "7" }, { "UseImageSpacing", "off" } } },
             { byVolume.GetPointer(), { { "Volume", "900" } } } };
  }
  if (row == "identity")
    return { { ChunkwiseIdentityImageFilter<Image>::New().GetPointer(), {} } };
  if (row == "difference")
  {
    const auto filter = ChunkwiseDifferenceImageFilter<Image>::New();
    filter->SetInput2(MakeImage());
    return { { filter.GetPointer(), {} } };
  }
  return {};
}

/** Parameters for which there is no setter: those of the program or of Python alone, what filters have two names for,
 * and what only stand-ins for ITK's own filters need. */
const std::set<std::string> withoutSetter = { "Element",
                                              "Heights",
                                              "Weights",
                                              "convolve Radius",
                                              "Rounding",
                                              "KernelRadius",
                                              "OutputComponents",
                                              "resample Scale",
                                              "resample OutputDirection",
                                              "resample Affine",
                                              "resample Reference",
                                              "resample Displacements",
                                              "resample DisplacementGrid",
                                              "resample DisplacementsArePoints",
                                              "resample Prefilter",
                                              "resample SpatialAxes",
                                              "bin SpatialAxes",
                                              "bin-sum SpatialAxes",
                                              "crop SpatialAxes",
                                              "pad SpatialAxes",
                                              "flip SpatialAxes" };

TEST(ChunkwiseFilterTable, EveryRowHasAnItkFilterThatMakesTheSameOperation)
{
  const auto image = MakeImage();
  for (const chunkwise::FilterDescription & row : chunkwise::GetFilters())
  {
    const auto cases = CasesOf(row.name);
    EXPECT_FALSE(cases.empty()) << "no ITK filter of the row " << row.name;
    std::set<std::string> seen;
    for (const Case & theCase : cases)
    {
      theCase.filter->SetInput(0, image);
      EXPECT_EQ(theCase.filter->GetFilterName(), row.name);
      chunkwise::FilterParameters parameters;
      for (const auto & text : theCase.texts)
      {
        const auto * const parameter = row.FindParameter(text.first);
        ASSERT_NE(parameter, nullptr) << row.name << " has no " << text.first;
        parameters.Set(text.first, chunkwise::ParseParameter(*parameter, text.second));
        seen.insert(text.first);
      }
      for (const auto & kernel : theCase.kernels)
      {
        parameters.Set(kernel.first, kernel.second);
        seen.insert(kernel.first);
      }
#ifdef CHUNKWISE_HAS_NETWORKS
      if (theCase.hasNetwork)
      {
        parameters.Set("Model", chunkwise::MakeSmallNetwork());
        seen.insert("Model");
      }
#endif
      chunkwise::FilterImage expected = ExpectedFilterImage(image);
      if (theCase.hasRadii)
      {
        expected.additionalInputs = { "RadiusImage" };
      }
      if (!theCase.domain.empty())
      {
        expected.additionalInputs = { theCase.domain };
      }
      const auto fromText = chunkwise::MakeFilterOperation(row.name, parameters, expected);
      const auto fromSetters = theCase.filter->GetOperation(theCase.filter->MakeFilterImage());
      EXPECT_EQ(fromSetters->GetKey(), fromText->GetKey()) << row.name;
      EXPECT_EQ(fromSetters->GetNumberOfInputs(), fromText->GetNumberOfInputs()) << row.name;
    }
    for (const auto & parameter : row.parameters)
    {
      EXPECT_TRUE(seen.count(parameter.name) + withoutSetter.count(parameter.name) +
                    withoutSetter.count(row.name + " " + parameter.name) >
                  0)
        << "no case of " << row.name << " sets " << parameter.name;
    }
  }
}

TEST(ChunkwiseFilterTable, AFilterKnowsItsImage)
{
  const auto image = MakeImage();
  const auto filter = itk::RenormalizedMeanImageFilter<ImageType, itk::Image<double, 3>>::New();
  filter->SetInput(image);
  const auto known = filter->MakeFilterImage();
  const auto expected = ExpectedFilterImage(image);
  EXPECT_EQ(known.dimension, 3);
  EXPECT_EQ(known.extent, expected.extent);
  EXPECT_EQ(known.inputKind, chunkwise::PixelType::Float32);
  EXPECT_EQ(known.outputKind, chunkwise::PixelType::Float64);
  for (int row = 0; row < chunkwise::MaxDimension; ++row)
  {
    EXPECT_EQ(known.spacing[row], expected.spacing[row]);
    EXPECT_EQ(known.origin[row], expected.origin[row]);
    for (int column = 0; column < chunkwise::MaxDimension; ++column)
    {
      EXPECT_EQ(known.direction[row][column], expected.direction[row][column]);
    }
  }
}

TEST(ChunkwiseFilterTable, AGridLiesWhereItIsInSpaceAlsoWhereAxesAreNotOrthogonal)
{
  using Image2 = itk::Image<float, 2>;
  using Varying = itk::SpatiallyVaryingConvolutionImageFilter<Image2>;
  const auto image = MakeRandomImage<Image2>(MakeRegion<Image2>({ 7, -3 }, { 20, 18 }), 5);
  auto       direction = image->GetDirection();
  direction(0, 1) = 0.1;
  image->SetDirection(direction);
  const auto kernel = MakeRandomImage<Image2>(MakeRegion<Image2>({ 0, 0 }, { 3, 3 }), 6, 0.1, 1);
  // The grid's nodes are in the middle of the cells that it has without being told.
  itk::ContinuousIndex<double, 2> index;
  index[0] = 7 + (20.0 / 2 - 1) / 2;
  index[1] = -3 + (18.0 / 3 - 1) / 2;
  Varying::PointType   origin;
  Varying::SpacingType spacing;
  image->TransformContinuousIndexToPhysicalPoint(index, origin);
  spacing[0] = 10 * image->GetSpacing()[0];
  spacing[1] = 6 * image->GetSpacing()[1];
  Image2::Pointer outputs[2];
  for (const bool isGiven : { false, true })
  {
    const auto                filter = Varying::New();
    Varying::KernelImagesType kernels;
    for (int node = 0; node < 6; ++node)
    {
      const auto own = Image2::New();
      own->SetRegions(kernel->GetLargestPossibleRegion());
      own->Allocate();
      own->FillBuffer(static_cast<float>(1 + node * node));
      kernels.emplace_back(own);
    }
    filter->SetInput(image);
    filter->SetKernelImages(kernels);
    filter->SetGridSize({ { 2, 3 } });
    if (isGiven)
    {
      filter->SetGrid(origin, spacing);
    }
    filter->Update();
    outputs[isGiven ? 1 : 0] = filter->GetOutput();
    const auto stack = filter->GetKernelStack();
    ASSERT_NE(stack, nullptr);
    EXPECT_EQ(stack->GetLargestPossibleRegion().GetSize(), (itk::Size<3>{ { 3, 3, 6 } }));
    EXPECT_EQ(stack->GetPixel({ { 1, 2, 4 } }), 17.0F);
  }
  for (itk::ImageRegionConstIteratorWithIndex<Image2> it(outputs[0], image->GetLargestPossibleRegion()); !it.IsAtEnd();
       ++it)
  {
    ASSERT_NEAR(outputs[1]->GetPixel(it.GetIndex()), it.Get(), 1e-5 * std::abs(it.Get())) << it.GetIndex();
  }
}

} // namespace ChunkwiseFilterTableTest
