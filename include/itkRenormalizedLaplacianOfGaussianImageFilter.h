/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedLaplacianOfGaussianImageFilter_h
#define itkRenormalizedLaplacianOfGaussianImageFilter_h

#include "itkChunkwiseGaussianImageFilterBase.h"

namespace itk
{
/** \class RenormalizedLaplacianOfGaussianImageFilter
 * \brief The Laplacian of an image smoothed by a Gaussian, exact for polynomials of degree 2 up to the image's edge.
 *
 * Along each spatial axis the Gaussian is sampled at the voxels x with |x| <= ceil(Cutoff * sigma), at least 2. Its
 * second derivative has the weights of the parabola that fits best, with Gaussian weights, the part of the window
 * inside the image; inside the image these are those of the Laplacian of Gaussian.
 *
 * Sigma is in units of the image's spacing if UseImageSpacing is on, else in voxels, and so is the result, per square
 * unit. With NormalizeAcrossScale the second derivative along each axis is multiplied by the square of its sigma.
 *
 * \par Boundary
 * Renormalized (the default): a constant gives exactly 0 and a ramp 0 up to rounding, at the edge too; docs/laplacian-
 * of-gaussian.md derives it. In every other boundary condition the image is continued beyond its edge. An axis of one
 * or two voxels has no second derivative in Renormalized mode.
 *
 * \par Differences from ITK
 * itk::LaplacianRecursiveGaussianImageFilter approximates the Gaussian by recursion without an end, and continues the
 * image by its edge voxels. Inside the image both agree to that approximation, with NormalizeAcrossScale too: then the
 * second derivative along each axis is multiplied by the square of its sigma, in the units of the result.
 * itk::LaplacianImageFilter does not smooth.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Results are negative as well: take
 * float or double as output of an unsigned image. Computed in float for float and 8- and 16-bit integers, in double for
 * the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * A chunk needs its input, its output and up to four intermediate images of the accumulator's type; with a boundary
 * condition other than Renormalized, a copy of its input.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * docs/laplacian-of-gaussian.md. Renormalization at edges follows E. Wait, M. Winter, A. R. Cohen, "Hydra image
 * processor: 5-D GPU image analysis library with MATLAB and Python wrappers", Bioinformatics 35(24), 2019.
 *
 * \sa LaplacianRecursiveGaussianImageFilter RenormalizedGaussianImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedLaplacianOfGaussianImageFilter
  : public ChunkwiseGaussianImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedLaplacianOfGaussianImageFilter);

  using Self = RenormalizedLaplacianOfGaussianImageFilter;
  using Superclass = ChunkwiseGaussianImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedLaplacianOfGaussianImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "log";
  }

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  /** Whether results can be compared between scales. Default: off. */
  itkSetMacro(NormalizeAcrossScale, bool);
  itkGetConstMacro(NormalizeAcrossScale, bool);
  itkBooleanMacro(NormalizeAcrossScale);

protected:
  RenormalizedLaplacianOfGaussianImageFilter() = default;
  ~RenormalizedLaplacianOfGaussianImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("NormalizeAcrossScale", m_NormalizeAcrossScale);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "NormalizeAcrossScale: " << (m_NormalizeAcrossScale ? "On" : "Off") << std::endl;
  }

private:
  bool m_NormalizeAcrossScale{ false };
};
} // namespace itk

#endif
