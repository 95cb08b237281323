/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseBoxTasks.h"
#include "itkChunkwiseLinearTasks.h"
#include "itkChunkwiseMorphologyTasks.h"
#include "itkChunkwiseRankTasks.h"

namespace itk
{

namespace
{

template <unsigned int VDimension>
void
Add(ChunkwiseOverrides & overrides)
{
  using Double = Image<double, VDimension>;
  using Flat = FlatStructuringElement<VDimension>;
  AddChunkwiseStandIn<MedianImageFilter<Double, Double>>(overrides, "MedianImageFilter");
  AddChunkwiseStandIn<GrayscaleDilateImageFilter<Double, Double, Flat>>(overrides, "GrayscaleDilateImageFilter");
  AddChunkwiseStandIn<GrayscaleErodeImageFilter<Double, Double, Flat>>(overrides, "GrayscaleErodeImageFilter");
  AddChunkwiseStandIn<MeanImageFilter<Double, Double>>(overrides, "MeanImageFilter");
  AddChunkwiseStandIn<DiscreteGaussianImageFilter<Double, Double>>(overrides, "DiscreteGaussianImageFilter");
}

} // namespace

void
AddChunkwiseStandInsOfDoubles(ChunkwiseOverrides & overrides)
{
  Add<2>(overrides);
  Add<3>(overrides);
}

} // namespace itk
