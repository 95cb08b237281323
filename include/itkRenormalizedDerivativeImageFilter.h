/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedDerivativeImageFilter_h
#define itkRenormalizedDerivativeImageFilter_h

#include "itkDerivativeImageFilterBase.h"

namespace itk
{
/** \class RenormalizedDerivativeImageFilter
 * \brief A derivative of an image smoothed by a Gaussian, exact for polynomials of its order up to the image's edge.
 *
 * The order is 0 to 3 along each axis; 0 smooths.
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
 * itk::RecursiveGaussianImageFilter approximates the Gaussian by recursion without an end, and
 * itk::DiscreteGaussianDerivativeImageFilter has the discrete analog of the Gaussian and central differences.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedDerivativeImageFilter
  : public DerivativeImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedDerivativeImageFilter);

  using Self = RenormalizedDerivativeImageFilter;
  using Superclass = DerivativeImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedDerivativeImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  const char *
  GetFilterName() const override
  {
    return "derivative";
  }

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  using OrderArrayType = FixedArray<unsigned int, Superclass::ImageDimension>;

  /** The order of the derivative along each axis, 0 to 3; entries of axes that are not spatial are not used. Default: 1
   * along x, 0 along the others. */
  itkSetMacro(Order, OrderArrayType);
  itkGetConstReferenceMacro(Order, OrderArrayType);

protected:
  RenormalizedDerivativeImageFilter()
  {
    m_Order.Fill(0);
    m_Order[0] = 1;
  }
  ~RenormalizedDerivativeImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    std::vector<std::int64_t>   orders;
    for (const double order : this->OverSpatialAxes(m_Order))
    {
      orders.push_back(static_cast<std::int64_t>(order));
    }
    parameters.Set("Order", orders);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Order: " << m_Order << std::endl;
  }

private:
  OrderArrayType m_Order;
};
} // namespace itk

#endif
