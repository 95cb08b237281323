/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkConfigure.h"
// Stand-ins bring ITK's own code with them. Its transforms by FFTW would link FFTW, which is under the GPL.
#if defined(ITK_USE_FFTWD)
#  define CHUNKWISE_ITK_HAS_FFTWD
#endif
#undef ITK_USE_FFTWD
#undef ITK_USE_FFTWF
#include "itkChunkwiseConvolutionTasks.h"
#include "itkChunkwiseDeconvolutionTasks.h"

namespace itk
{

namespace
{

template <typename TPixel, unsigned int VDimension>
void
Add(ChunkwiseOverrides & overrides)
{
  using Input = Image<TPixel, VDimension>;
  using Real = Image<float, VDimension>;
  AddChunkwiseStandIn<ConvolutionImageFilter<Input, Real, Real>>(overrides, "ConvolutionImageFilter");
  AddChunkwiseStandIn<FFTConvolutionImageFilter<Input, Real, Real>>(overrides, "FFTConvolutionImageFilter");
  AddChunkwiseStandIn<RichardsonLucyDeconvolutionImageFilter<Input, Real, Real>>(
    overrides, "RichardsonLucyDeconvolutionImageFilter");
}

} // namespace

void
AddChunkwiseStandInsOfConvolutions(ChunkwiseOverrides & overrides)
{
  Add<short, 2>(overrides);
  Add<short, 3>(overrides);
  Add<float, 2>(overrides);
  Add<float, 3>(overrides);
}

} // namespace itk
