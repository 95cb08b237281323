/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkDerivativeImageFilterBase_h
#define itkDerivativeImageFilterBase_h

#include "itkChunkwiseWindowImageFilter.h"
#include "itkFixedArray.h"
#include "itkRenormalizedDerivativeEnums.h"

namespace itk
{
/** \class DerivativeImageFilterBase
 * \brief Base of the filters of derivatives: the window that smooths, and its derivatives.
 *
 * Along each spatial axis the Gaussian is sampled at the voxels x with |x| <= ceil(Cutoff * sigma); the other operators
 * have windows of three voxels. A derivative of order k has the weights of the polynomial of degree k that fits best,
 * with the window's weights, the part of the window inside the image: it is exact for polynomials of degree k up to the
 * image's edge. docs/derivatives.md derives it.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage>
class ITK_TEMPLATE_EXPORT DerivativeImageFilterBase : public ChunkwiseWindowImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(DerivativeImageFilterBase);

  using Self = DerivativeImageFilterBase;
  using Superclass = ChunkwiseWindowImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(DerivativeImageFilterBase);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  using SigmaArrayType = FixedArray<double, Superclass::ImageDimension>;
  using OperatorEnum = RenormalizedDerivativeEnums::Operator;
  using KernelEnum = RenormalizedDerivativeEnums::Kernel;

  /** The standard deviation per axis; entries of axes that are not spatial are not used. 0: the axis is not smoothed,
   * and has no derivative. Default: 1. */
  itkSetMacro(SigmaArray, SigmaArrayType);
  itkGetConstReferenceMacro(SigmaArray, SigmaArrayType);
  void
  SetSigma(double sigma)
  {
    SigmaArrayType same;
    same.Fill(sigma);
    this->SetSigmaArray(same);
  }
  /** The standard deviation along x. */
  double
  GetSigma() const
  {
    return m_SigmaArray[0];
  }

  /** Whether sigma and derivatives are in units of the image's spacing, or in voxels. Default: on. */
  itkSetMacro(UseImageSpacing, bool);
  itkGetConstMacro(UseImageSpacing, bool);
  itkBooleanMacro(UseImageSpacing);

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

  /** The radius of the Gaussian, in sigmas; above 0. Default: 4. */
  itkSetMacro(Cutoff, double);
  itkGetConstMacro(Cutoff, double);

protected:
  DerivativeImageFilterBase() { m_SigmaArray.Fill(1.0); }
  ~DerivativeImageFilterBase() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Sigma", this->OverSpatialAxes(m_SigmaArray));
    parameters.Set("UseImageSpacing", m_UseImageSpacing);
    parameters.Set("Operator", ToWord(m_Operator));
    parameters.Set("Kernel", ToWord(m_Kernel));
    parameters.Set("NormalizeAcrossScale", m_NormalizeAcrossScale);
    parameters.SetReal("Cutoff", m_Cutoff);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "SigmaArray: " << m_SigmaArray << std::endl;
    os << indent << "UseImageSpacing: " << (m_UseImageSpacing ? "On" : "Off") << std::endl;
    os << indent << "Operator: " << m_Operator << std::endl;
    os << indent << "Kernel: " << m_Kernel << std::endl;
    os << indent << "NormalizeAcrossScale: " << (m_NormalizeAcrossScale ? "On" : "Off") << std::endl;
    os << indent << "Cutoff: " << m_Cutoff << std::endl;
  }

private:
  SigmaArrayType m_SigmaArray;
  bool           m_UseImageSpacing{ true };
  OperatorEnum   m_Operator{ OperatorEnum::Gaussian };
  KernelEnum     m_Kernel{ KernelEnum::Exact };
  bool           m_NormalizeAcrossScale{ false };
  double         m_Cutoff{ 4.0 };
};
} // namespace itk

#endif
