/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedLaplacianOfGaussianImageFilter_hxx
#define itkRenormalizedLaplacianOfGaussianImageFilter_hxx

#include "chunkwiseLaplacianOperation.h"
#include "itkChunkwiseGaussianKernel.h"
#include "itkRenormalizedLaplacianOfGaussianImageFilter.h"

#include <algorithm>
#include <cmath>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedLaplacianOfGaussianImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::LaplacianOperation>();
  for (const unsigned int axis : this->GetSpatialAxes())
  {
    const double spacing = m_UseImageSpacing ? std::abs(this->GetInput()->GetSpacing()[axis]) : 1.0;
    if (spacing == 0.0)
    {
      itkExceptionMacro("UseImageSpacing: the input's spacing along axis " << axis << " is 0");
    }
    const double sigma = m_SigmaArray[axis] / spacing;
    double       radius = std::max(2.0, ChunkwiseSampledGaussianRadius(sigma, m_Cutoff));
    if (this->GetBoundaryCondition() == Superclass::BoundaryConditionEnum::Renormalized)
    {
      // Weights farther than the image is wide are never inside it.
      radius = std::min(radius, std::max(2.0, static_cast<double>(imageExtent[static_cast<int>(axis)] - 1)));
    }
    constexpr double largest = 65535;
    if (!(radius <= largest))
    {
      itkExceptionMacro("Sigma: " << m_SigmaArray[axis] << " along axis " << axis << " with Cutoff " << m_Cutoff
                                  << " makes a kernel with a radius of " << radius << " voxels, more than " << largest);
    }
    operation->weights[axis] = ChunkwiseSampledGaussianWeights(sigma, static_cast<std::int64_t>(radius));
    operation->scale[axis] = m_NormalizeAcrossScale ? sigma * sigma : 1.0 / (spacing * spacing);
  }
  operation->boundary = this->GetWindowBoundary();
  return operation;
}

template <typename TInputImage, typename TOutputImage>
RenormalizedLaplacianOfGaussianImageFilter<TInputImage, TOutputImage>::RenormalizedLaplacianOfGaussianImageFilter()
{
  m_SigmaArray.Fill(1.0);
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedLaplacianOfGaussianImageFilter<TInputImage, TOutputImage>::SetSigma(double sigma)
{
  SigmaArrayType same;
  same.Fill(sigma);
  this->SetSigmaArray(same);
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedLaplacianOfGaussianImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  for (const unsigned int axis : this->GetSpatialAxes())
  {
    if (!(m_SigmaArray[axis] > 0.0) || !std::isfinite(m_SigmaArray[axis]))
    {
      itkExceptionMacro("Sigma: " << m_SigmaArray[axis] << " along axis " << axis << " is not a finite number above 0");
    }
  }
  if (!(m_Cutoff > 0.0 && std::isfinite(m_Cutoff)))
  {
    itkExceptionMacro("Cutoff: " << m_Cutoff << " is not a finite number above 0");
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedLaplacianOfGaussianImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Sigma: " << m_SigmaArray << std::endl;
  os << indent << "UseImageSpacing: " << (m_UseImageSpacing ? "On" : "Off") << std::endl;
  os << indent << "NormalizeAcrossScale: " << (m_NormalizeAcrossScale ? "On" : "Off") << std::endl;
  os << indent << "Cutoff: " << m_Cutoff << std::endl;
}

} // namespace itk

#endif
