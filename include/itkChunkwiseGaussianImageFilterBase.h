/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseGaussianImageFilterBase_h
#define itkChunkwiseGaussianImageFilterBase_h

#include "itkChunkwiseWindowImageFilter.h"
#include "itkFixedArray.h"

namespace itk
{
/** \class ChunkwiseGaussianImageFilterBase
 * \brief Base of the filters whose window is a Gaussian: its standard deviation and radius.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage>
class ITK_TEMPLATE_EXPORT ChunkwiseGaussianImageFilterBase
  : public ChunkwiseWindowImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseGaussianImageFilterBase);

  using Self = ChunkwiseGaussianImageFilterBase;
  using Superclass = ChunkwiseWindowImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(ChunkwiseGaussianImageFilterBase);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  using SigmaArrayType = FixedArray<double, Superclass::ImageDimension>;

  /** The standard deviation per axis, above 0 for derivatives; entries of axes that are not spatial are not used.
   * Default: 1. */
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

  /** Whether sigma is in units of the image's spacing, or in voxels. Default: on. */
  itkSetMacro(UseImageSpacing, bool);
  itkGetConstMacro(UseImageSpacing, bool);
  itkBooleanMacro(UseImageSpacing);

  /** The radius of the Gaussian, in sigmas; above 0. Default: 4, if the filter does not say another. */
  itkSetMacro(Cutoff, double);
  itkGetConstMacro(Cutoff, double);

protected:
  explicit ChunkwiseGaussianImageFilterBase(double cutoff = 4.0)
    : m_Cutoff(cutoff)
  {
    m_SigmaArray.Fill(1.0);
  }
  ~ChunkwiseGaussianImageFilterBase() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Sigma", this->OverSpatialAxes(m_SigmaArray));
    parameters.Set("UseImageSpacing", m_UseImageSpacing);
    parameters.SetReal("Cutoff", m_Cutoff);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "SigmaArray: " << m_SigmaArray << std::endl;
    os << indent << "UseImageSpacing: " << (m_UseImageSpacing ? "On" : "Off") << std::endl;
    os << indent << "Cutoff: " << m_Cutoff << std::endl;
  }

private:
  SigmaArrayType m_SigmaArray;
  bool           m_UseImageSpacing{ true };
  double         m_Cutoff;
};
} // namespace itk

#endif
