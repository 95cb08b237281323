/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedGradientImageFilter_h
#define itkRenormalizedGradientImageFilter_h

#include "itkDerivativeComponentsImageFilterBase.h"

namespace itk
{
/** \class RenormalizedGradientImageFilter
 * \brief The length of the gradient of an image smoothed by a Gaussian, or its components.
 *
 * The first derivatives along the spatial axes are those of RenormalizedDerivativeImageFilter; they are made together
 * in one pass over the image. An output that is an itk::VectorImage has them as its components, in the order of
 * ascending axes: they are along the axes of the image, not of physical space. Any other output has their length.
 *
 * \par Boundary
 * Renormalized (the default): exact for polynomials as above, at the edge too; an axis with as few voxels as the
 * derivative's order has none. In every other boundary condition the image is continued beyond its edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Results are negative as well: take
 * float or double as output of an unsigned image. Computed in float for float and 8- and 16-bit integers, in double for
 * the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * Beside input and output, planes of each thread that fit a core's cache.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Source
 * docs/derivatives.md. Best fits with weights are the normalised differential convolution of H. Knutsson, C.-F. Westin,
 * "Normalized and differential convolution", CVPR 1993.
 *
 * \par Differences from ITK
 * itk::GradientMagnitudeRecursiveGaussianImageFilter and itk::GradientRecursiveGaussianImageFilter approximate the
 * Gaussian by recursion without an end, and the latter turns gradients into physical space by the image's direction.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedGradientImageFilter
  : public DerivativeComponentsImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedGradientImageFilter);

  using Self = RenormalizedGradientImageFilter;
  using Superclass = DerivativeComponentsImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedGradientImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  const char *
  GetFilterName() const override
  {
    return "gradient";
  }

protected:
  RenormalizedGradientImageFilter() = default;
  ~RenormalizedGradientImageFilter() override = default;
};
} // namespace itk

#endif
