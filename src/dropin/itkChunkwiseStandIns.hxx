/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseStandIns_hxx
#define itkChunkwiseStandIns_hxx

#include "itkChunkwiseBoxTasks.h"
#include "itkChunkwiseDiffusionTasks.h"
#include "itkChunkwiseDistanceTasks.h"
#include "itkChunkwiseLabelTasks.h"
#include "itkChunkwiseLinearTasks.h"
#include "itkChunkwiseMorphologyTasks.h"
#include "itkChunkwiseRankTasks.h"
#include "itkChunkwiseReconstructionTasks.h"

// Which instantiations there are stand-ins for. Each is ITK's filter compiled once more, one to three seconds.

namespace itk
{

template <typename TImage>
void
AddChunkwiseStandInsOfImage(ChunkwiseOverrides & overrides)
{
  using PixelType = typename TImage::PixelType;
  constexpr unsigned int n = TImage::ImageDimension;
  using Real = Image<float, n>;
  using Flat = FlatStructuringElement<n>;
  using Ball = BinaryBallStructuringElement<PixelType, n>;

  AddChunkwiseStandIn<MedianImageFilter<TImage, TImage>>(overrides, "MedianImageFilter");
  AddChunkwiseStandIn<RankImageFilter<TImage, TImage, Flat>>(overrides, "RankImageFilter");

  AddChunkwiseStandIn<GrayscaleDilateImageFilter<TImage, TImage, Flat>>(overrides, "GrayscaleDilateImageFilter");
  AddChunkwiseStandIn<GrayscaleDilateImageFilter<TImage, TImage, Ball>>(overrides, "GrayscaleDilateImageFilter");
  AddChunkwiseStandIn<GrayscaleErodeImageFilter<TImage, TImage, Flat>>(overrides, "GrayscaleErodeImageFilter");
  AddChunkwiseStandIn<GrayscaleErodeImageFilter<TImage, TImage, Ball>>(overrides, "GrayscaleErodeImageFilter");
  AddChunkwiseStandIn<GrayscaleMorphologicalOpeningImageFilter<TImage, TImage, Flat>>(
    overrides, "GrayscaleMorphologicalOpeningImageFilter");
  AddChunkwiseStandIn<GrayscaleMorphologicalClosingImageFilter<TImage, TImage, Flat>>(
    overrides, "GrayscaleMorphologicalClosingImageFilter");
  AddChunkwiseStandIn<MorphologicalGradientImageFilter<TImage, TImage, Flat>>(overrides,
                                                                              "MorphologicalGradientImageFilter");

  AddChunkwiseStandIn<RegionalMaximaImageFilter<TImage, TImage>>(overrides, "RegionalMaximaImageFilter");
  AddChunkwiseStandIn<RegionalMinimaImageFilter<TImage, TImage>>(overrides, "RegionalMinimaImageFilter");

  AddChunkwiseStandIn<ConnectedComponentImageFilter<TImage, Image<unsigned short, n>>>(overrides,
                                                                                       "ConnectedComponentImageFilter");
  AddChunkwiseStandIn<ConnectedComponentImageFilter<TImage, Image<unsigned int, n>>>(overrides,
                                                                                     "ConnectedComponentImageFilter");
  AddChunkwiseStandIn<ConnectedComponentImageFilter<TImage, Image<unsigned long, n>>>(overrides,
                                                                                      "ConnectedComponentImageFilter");

  AddChunkwiseStandIn<MeanImageFilter<TImage, TImage>>(overrides, "MeanImageFilter");
  AddChunkwiseStandIn<BoxMeanImageFilter<TImage, TImage>>(overrides, "BoxMeanImageFilter");
  AddChunkwiseStandIn<DiscreteGaussianImageFilter<TImage, Real>>(overrides, "DiscreteGaussianImageFilter");
  AddChunkwiseStandIn<GradientMagnitudeImageFilter<TImage, Real>>(overrides, "GradientMagnitudeImageFilter");
  if constexpr (std::is_integral<PixelType>::value)
  {
    // ITK takes floats that nearly agree for equal, and errs on near plateaus.
    AddChunkwiseStandIn<ReconstructionByDilationImageFilter<TImage, TImage>>(overrides,
                                                                             "ReconstructionByDilationImageFilter");
    AddChunkwiseStandIn<ReconstructionByErosionImageFilter<TImage, TImage>>(overrides,
                                                                            "ReconstructionByErosionImageFilter");
    AddChunkwiseStandIn<MeanImageFilter<TImage, Real>>(overrides, "MeanImageFilter");
    AddChunkwiseStandIn<SignedMaurerDistanceMapImageFilter<TImage, Real>>(overrides,
                                                                          "SignedMaurerDistanceMapImageFilter");
  }
  else
  {
    AddChunkwiseStandIn<BoxSigmaImageFilter<TImage, TImage>>(overrides, "BoxSigmaImageFilter");
    AddChunkwiseStandIn<NoiseImageFilter<TImage, TImage>>(overrides, "NoiseImageFilter");
    if constexpr (n == 3)
    {
      AddChunkwiseStandIn<GradientAnisotropicDiffusionImageFilter<TImage, TImage>>(
        overrides, "GradientAnisotropicDiffusionImageFilter");
      AddChunkwiseStandIn<CurvatureAnisotropicDiffusionImageFilter<TImage, TImage>>(
        overrides, "CurvatureAnisotropicDiffusionImageFilter");
    }
  }
}

template <typename TPixel>
void
AddChunkwiseStandInsOf(ChunkwiseOverrides & overrides)
{
  AddChunkwiseStandInsOfImage<Image<TPixel, 2>>(overrides);
  AddChunkwiseStandInsOfImage<Image<TPixel, 3>>(overrides);
}

} // namespace itk

#endif
