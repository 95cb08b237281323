/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedHessianImageFilter_h
#define itkRenormalizedHessianImageFilter_h

#include "itkDerivativeComponentsImageFilterBase.h"

namespace itk
{
/** \class RenormalizedHessianImageFilter
 * \brief Eigenvalues, eigenvectors or elements of the Hessian of an image smoothed by a Gaussian.
 *
 * The direction is the unit vector of the eigenvalue with the smallest magnitude: along a tube. Its component with the
 * largest magnitude is positive; it is zero where another eigenvalue is equal, within 1e-6 of the largest magnitude.
 *
 * An output that is an itk::VectorImage has all of them as its components, any other one the one with a number. Second
 * derivatives are along the axes of the image, not of physical space, and made together in one pass over the image.
 * Eigenvalues are within 6e-8 of the largest magnitude, also where several are equal.
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
 * itk::HessianRecursiveGaussianImageFilter approximates the Gaussian by recursion without an end, and gives the
 * elements alone.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedHessianImageFilter
  : public DerivativeComponentsImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedHessianImageFilter);

  using Self = RenormalizedHessianImageFilter;
  using Superclass = DerivativeComponentsImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedHessianImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  const char *
  GetFilterName() const override
  {
    return "hessian";
  }

  using ResultEnum = RenormalizedDerivativeEnums::Result;
  /** The result that is made of the Hessian. Default: Eigenvalues. */
  itkSetEnumMacro(Result, ResultEnum);
  itkGetEnumMacro(Result, ResultEnum);

  /** The number of the result, from 0 on, if the output is no itk::VectorImage. Default: 0. */
  itkSetMacro(Number, unsigned int);
  itkGetConstMacro(Number, unsigned int);

protected:
  RenormalizedHessianImageFilter() = default;
  ~RenormalizedHessianImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Result", ToWord(m_Result));
    parameters.SetInteger("Number", m_Number);
    return parameters;
  }
  std::int64_t
  CountComponents() const override
  {
    const std::int64_t axes = Superclass::CountComponents();
    return m_Result == ResultEnum::Elements       ? axes * (axes + 1) / 2
           : m_Result == ResultEnum::Eigenvectors ? axes * axes
                                                  : axes;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Result: " << m_Result << std::endl;
    os << indent << "Number: " << m_Number << std::endl;
  }

private:
  ResultEnum   m_Result{ ResultEnum::Eigenvalues };
  unsigned int m_Number{ 0 };
};
} // namespace itk

#endif
