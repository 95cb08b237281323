/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedUnsharpMaskImageFilter_h
#define itkRenormalizedUnsharpMaskImageFilter_h

#include "itkChunkwiseGaussianImageFilterBase.h"

namespace itk
{
/** \class RenormalizedUnsharpMaskImageFilter
 * \brief The image plus its difference from itself smoothed by a Gaussian: sharper edges.
 *
 * With d the difference the result is x + amount (d - threshold) above the threshold, x + amount (d + threshold) below
 * its negative, and x between.
 *
 * \par Boundary
 * Those of RenormalizedGaussianImageFilter. Renormalized (the default): a constant image stays as it is, up to
 * rounding, up to its edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Computed in float for float and 8- and
 * 16-bit integers, in double for the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * A chunk needs an image of the accumulator's type beside its input and output.
 *
 * \par Differences from ITK
 * itk::UnsharpMaskImageFilter smooths by recursion, and truncates integers.
 *
 * \par Streaming
 * Requests the output's requested region padded by the kernel's radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Source
 * The page docs/enhancement.md has the formula, which is that of itk::UnsharpMaskImageFilter.
 *
 * \sa UnsharpMaskImageFilter, RenormalizedHighPassImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedUnsharpMaskImageFilter
  : public ChunkwiseGaussianImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedUnsharpMaskImageFilter);

  using Self = RenormalizedUnsharpMaskImageFilter;
  using Superclass = ChunkwiseGaussianImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedUnsharpMaskImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "unsharp";
  }

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  /** The factor of the difference, at least 0. Default: 0.5. */
  itkSetMacro(Amount, double);
  itkGetConstMacro(Amount, double);

  /** Differences up to this one do not count, others by so much less; at least 0. Default: 0. */
  itkSetMacro(Threshold, double);
  itkGetConstMacro(Threshold, double);

protected:
  RenormalizedUnsharpMaskImageFilter() = default;
  ~RenormalizedUnsharpMaskImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.SetReal("Amount", m_Amount);
    parameters.SetReal("Threshold", m_Threshold);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Amount: " << m_Amount << std::endl;
    os << indent << "Threshold: " << m_Threshold << std::endl;
  }

private:
  double m_Amount{ 0.5 };
  double m_Threshold{ 0.0 };
};
} // namespace itk

#endif
