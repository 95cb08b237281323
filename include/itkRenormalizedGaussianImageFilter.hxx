/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedGaussianImageFilter_hxx
#define itkRenormalizedGaussianImageFilter_hxx

#include "chunkwiseOperations.h"
#include "itkRenormalizedGaussianImageFilter.h"

#include <cmath>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::RenormalizedGaussianImageFilter()
{
  m_Variance.Fill(0.0);
  m_Sigma.Fill(0.0);
  m_MaximumError.Fill(0.01);
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::SetVariance(const ArrayType & variance)
{
  if (m_Variance == variance)
  {
    return;
  }
  for (unsigned int axis = 0; axis < ImageDimension; ++axis)
  {
    m_Sigma[axis] = std::sqrt(variance[axis]);
  }
  m_Variance = variance;
  m_VarianceIsGiven = true;
  this->Modified();
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::SetVariance(double variance)
{
  ArrayType same;
  same.Fill(variance);
  this->SetVariance(same);
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::SetVariance(const double * variance)
{
  this->SetVariance(ArrayType(variance));
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::SetSigmaArray(const ArrayType & sigma)
{
  if (m_Sigma == sigma)
  {
    return;
  }
  for (unsigned int axis = 0; axis < ImageDimension; ++axis)
  {
    m_Variance[axis] = sigma[axis] * sigma[axis];
  }
  m_Sigma = sigma;
  m_VarianceIsGiven = false;
  this->Modified();
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::SetSigma(double sigma)
{
  ArrayType same;
  same.Fill(sigma);
  this->SetSigmaArray(same);
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::SetMaximumError(double maximumError)
{
  ArrayType same;
  same.Fill(maximumError);
  this->SetMaximumError(same);
}

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  if (m_VarianceIsGiven)
  {
    parameters.Set("Variance", this->OverSpatialAxes(m_Variance));
  }
  else
  {
    parameters.Set("Sigma", this->OverSpatialAxes(m_Sigma));
  }
  parameters.Set("UseImageSpacing", m_UseImageSpacing);
  // Parameters of the kernel that is not chosen do not matter, and are not checked.
  if (m_Kernel == KernelEnum::Discrete)
  {
    parameters.Set("Kernel", "discrete");
    parameters.Set("MaximumError", this->OverSpatialAxes(m_MaximumError));
    parameters.SetInteger("MaximumKernelWidth", m_MaximumKernelWidth);
  }
  else
  {
    parameters.Set("Kernel", "sampled");
    parameters.SetReal("Cutoff", m_Cutoff);
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::VerifyInputInformation() const
{
  Superclass::VerifyInputInformation();

  if (m_Kernel != KernelEnum::Discrete)
  {
    return;
  }
  const auto operation = std::dynamic_pointer_cast<const chunkwise::SeparableOperation>(
    chunkwise::MakeFilterOperation("gaussian", this->MakeParameters(), this->MakeFilterImage()));
  for (const unsigned int axis : this->GetSpatialAxes())
  {
    if (operation && operation->weights[axis].size() / 2 > m_MaximumKernelWidth - 1)
    {
      itkWarningMacro("MaximumKernelWidth: the kernel along axis " << axis << " is cut at " << m_MaximumKernelWidth
                                                                   << " voxels, and may miss more than MaximumError");
    }
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Variance: " << m_Variance << std::endl;
  os << indent << "Sigma: " << m_Sigma << std::endl;
  os << indent << "UseImageSpacing: " << (m_UseImageSpacing ? "On" : "Off") << std::endl;
  os << indent << "Kernel: " << m_Kernel << std::endl;
  os << indent << "Cutoff: " << m_Cutoff << std::endl;
  os << indent << "MaximumError: " << m_MaximumError << std::endl;
  os << indent << "MaximumKernelWidth: " << m_MaximumKernelWidth << std::endl;
}

} // namespace itk

#endif
