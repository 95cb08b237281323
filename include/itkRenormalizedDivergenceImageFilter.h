/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedDivergenceImageFilter_h
#define itkRenormalizedDivergenceImageFilter_h

#include "itkDerivativeImageFilterBase.h"

namespace itk
{
/** \class RenormalizedDivergenceImageFilter
 * \brief The divergence of vectors, an image for each of their components, or of the gradient of an image.
 *
 * The sum of the derivatives of each component along its axis, smoothed by a Gaussian. The input has the components
 * along the first spatial axis, SetInput2 and SetInput3 those along the others;
 * itk::VectorIndexSelectionCastImageFilter takes them from an image of vectors. With OfGradient there is one input, and
 * the result is the divergence of its gradient: the sum of the second derivatives along all spatial axes, its
 * Laplacian.
 *
 * Vectors are along the axes of the image, not of physical space.
 *
 * \par Boundary
 * Renormalized (the default): exact for linear vectors, with OfGradient for polynomials of degree 2, up to the image's
 * edge. In every other boundary condition the images are continued beyond their edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Computed in float for float and 8- and
 * 16-bit integers, in double for the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * Beside inputs and output, planes of each thread that fit a core's cache.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Source
 * docs/derivatives.md.
 *
 * \par Differences from ITK
 * ITK's own modules have no filter of divergences.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedDivergenceImageFilter
  : public DerivativeImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedDivergenceImageFilter);

  using Self = RenormalizedDivergenceImageFilter;
  using Superclass = DerivativeImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedDivergenceImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  const char *
  GetFilterName() const override
  {
    return "divergence";
  }

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");
  static_assert(Superclass::InputComponents == 1, "each component of vectors is an image of its own");

  /** The components along the second and the third spatial axis, of the input's size and place. */
  itkSetInputMacro(Input2, TInputImage);
  itkGetInputMacro(Input2, TInputImage);
  itkSetInputMacro(Input3, TInputImage);
  itkGetInputMacro(Input3, TInputImage);

  /** Whether the result is the divergence of the one input's gradient. Default: off. */
  itkSetMacro(OfGradient, bool);
  itkGetConstMacro(OfGradient, bool);
  itkBooleanMacro(OfGradient);

protected:
  RenormalizedDivergenceImageFilter()
  {
    this->AddOptionalInputName("Input2", 1);
    this->AddOptionalInputName("Input3", 2);
  }
  ~RenormalizedDivergenceImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("OfGradient", m_OfGradient);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "OfGradient: " << (m_OfGradient ? "On" : "Off") << std::endl;
  }

private:
  bool m_OfGradient{ false };
};
} // namespace itk

#endif
