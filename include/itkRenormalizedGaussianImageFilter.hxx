/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedGaussianImageFilter_hxx
#define itkRenormalizedGaussianImageFilter_hxx

#include "itkChunkwiseGaussianKernel.h"
#include "itkRenormalizedGaussianImageFilter.h"

#include <algorithm>
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
void
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  for (const unsigned int axis : this->GetSpatialAxes())
  {
    if (m_Variance[axis] < 0.0)
    {
      itkExceptionMacro("Variance: " << m_Variance[axis] << " along axis " << axis << " is negative");
    }
    if (!(m_Sigma[axis] >= 0.0) || !std::isfinite(m_Sigma[axis]))
    {
      itkExceptionMacro("Sigma: " << m_Sigma[axis] << " along axis " << axis
                                  << " is not a finite number of at least 0");
    }
    if (m_Kernel == KernelEnum::Discrete && !(m_MaximumError[axis] > 0.0 && m_MaximumError[axis] < 1.0))
    {
      itkExceptionMacro("MaximumError: " << m_MaximumError[axis] << " along axis " << axis
                                         << " is not between 0 and 1");
    }
  }
  if (m_Kernel == KernelEnum::Sampled && !(m_Cutoff > 0.0 && std::isfinite(m_Cutoff)))
  {
    itkExceptionMacro("Cutoff: " << m_Cutoff << " is not a finite number above 0");
  }
}

template <typename TInputImage, typename TOutputImage>
std::vector<double>
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::MakeWeights(unsigned int axis, std::int64_t extent) const
{
  const double spacing = m_UseImageSpacing ? std::abs(this->GetInput()->GetSpacing()[axis]) : 1.0;
  if (spacing == 0.0)
  {
    itkExceptionMacro("UseImageSpacing: the input's spacing along axis " << axis << " is 0");
  }
  if (m_Sigma[axis] == 0.0)
  {
    return {};
  }
  if (m_Kernel == KernelEnum::Discrete)
  {
    return ChunkwiseDiscreteGaussianWeights(
      m_Variance[axis] / (spacing * spacing), m_MaximumError[axis], m_MaximumKernelWidth);
  }

  const double sigma = m_Sigma[axis] / spacing;
  double       radius = ChunkwiseSampledGaussianRadius(sigma, m_Cutoff);
  if (this->GetBoundaryCondition() == Superclass::BoundaryConditionEnum::Renormalized)
  {
    // Weights farther than the image is wide are never inside it.
    radius = std::min(radius, static_cast<double>(std::max<std::int64_t>(extent, 1) - 1));
  }
  constexpr double largest = 1 << 24;
  if (!(radius <= largest))
  {
    itkExceptionMacro("Sigma: " << m_Sigma[axis] << " along axis " << axis << " with Cutoff " << m_Cutoff
                                << " makes a kernel with a radius of " << radius << " voxels, more than " << largest);
  }
  return ChunkwiseSampledGaussianWeights(sigma, static_cast<std::int64_t>(radius));
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedGaussianImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::SeparableOperation>();
  for (const unsigned int axis : this->GetSpatialAxes())
  {
    operation->weights[axis] = this->MakeWeights(axis, imageExtent[static_cast<int>(axis)]);
  }
  operation->boundary = this->GetWindowBoundary();
  return operation;
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
