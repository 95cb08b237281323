/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkDerivativeImageFilterBase_h
#define itkDerivativeImageFilterBase_h

#include "itkChunkwiseGaussianImageFilterBase.h"
#include "itkRenormalizedDerivativeEnums.h"

namespace itk
{
/** \class DerivativeImageFilterBase
 * \brief Base of the filters of derivatives: the window that smooths, and its derivatives.
 *
 * An axis whose sigma is 0 is not smoothed, and has no derivative; derivatives are in units of the image's spacing if
 * sigma is.
 *
 * Along each spatial axis the Gaussian is sampled at the voxels x with |x| <= ceil(Cutoff * sigma); the other operators
 * have windows of three voxels. A derivative of order k has the weights of the polynomial of degree k that fits best,
 * with the window's weights, the part of the window inside the image: it is exact for polynomials of degree k up to the
 * image's edge. docs/derivatives.md derives it.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage>
class ITK_TEMPLATE_EXPORT DerivativeImageFilterBase : public ChunkwiseGaussianImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(DerivativeImageFilterBase);

  using Self = DerivativeImageFilterBase;
  using Superclass = ChunkwiseGaussianImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(DerivativeImageFilterBase);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  using OperatorEnum = RenormalizedDerivativeEnums::Operator;
  using KernelEnum = RenormalizedDerivativeEnums::Kernel;

  /** The window. Default: Gaussian. */
  itkSetEnumMacro(Operator, OperatorEnum);
  itkGetEnumMacro(Operator, OperatorEnum);

  /** The weights of derivatives of a Gaussian. Default: Exact. */
  itkSetEnumMacro(Kernel, KernelEnum);
  itkGetEnumMacro(Kernel, KernelEnum);

  /** Whether each order multiplies by sigma, so that results can be compared between scales. Default: off. */
  itkSetMacro(NormalizeAcrossScale, bool);
  itkGetConstMacro(NormalizeAcrossScale, bool);
  itkBooleanMacro(NormalizeAcrossScale);

protected:
  DerivativeImageFilterBase() = default;
  ~DerivativeImageFilterBase() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Operator", ToWord(m_Operator));
    parameters.Set("Kernel", ToWord(m_Kernel));
    parameters.Set("NormalizeAcrossScale", m_NormalizeAcrossScale);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Operator: " << m_Operator << std::endl;
    os << indent << "Kernel: " << m_Kernel << std::endl;
    os << indent << "NormalizeAcrossScale: " << (m_NormalizeAcrossScale ? "On" : "Off") << std::endl;
  }

private:
  OperatorEnum m_Operator{ OperatorEnum::Gaussian };
  KernelEnum   m_Kernel{ KernelEnum::Exact };
  bool         m_NormalizeAcrossScale{ false };
};
} // namespace itk

#endif
