/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedWienerImageFilter_hxx
#define itkRenormalizedWienerImageFilter_hxx

#include "itkRenormalizedWienerImageFilter.h"

#include "chunkwiseStatistics.h"
#include "chunkwiseWienerOperation.h"

#include <cmath>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::WienerOperation>();
  operation->radius = this->GetWindowRadius(imageExtent);
  operation->boundary = this->GetWindowBoundary();
  // Not known before the input is there.
  operation->noise = m_EstimateNoiseVariance && m_NoiseVariance < 0.0 ? 0.0 : m_NoiseVariance;
  return operation;
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::GetOperation(const chunkwise::Coordinates & imageExtent) const
{
  if (m_EstimateNoiseVariance)
  {
    itkExceptionMacro(
      "EstimateNoiseVariance: on, but as a part of something else the filter has no input to take an estimate from");
  }
  return Superclass::GetOperation(imageExtent);
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::GenerateInputRequestedRegion()
{
  Superclass::GenerateInputRequestedRegion();

  auto * input = const_cast<TInputImage *>(this->GetInput());
  if (m_EstimateNoiseVariance && input)
  {
    input->SetRequestedRegionToLargestPossibleRegion();
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::GenerateData()
{
  if (m_EstimateNoiseVariance && this->GetOutput()->GetRequestedRegion().GetNumberOfPixels() > 0)
  {
    this->ComputeFromWholeInput([this](auto & manager, const auto & request, auto & monitor) {
      m_NoiseVariance = chunkwise::ComputeWienerNoise(manager, request, &monitor);
    });
  }
  Superclass::GenerateData();
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  if (!m_EstimateNoiseVariance && !(m_NoiseVariance >= 0.0 && std::isfinite(m_NoiseVariance)))
  {
    itkExceptionMacro(
      "NoiseVariance: " << m_NoiseVariance
                        << " is not a variance, or it was not set, nor EstimateNoiseVariance turned on");
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "NoiseVariance: " << m_NoiseVariance << std::endl;
  os << indent << "EstimateNoiseVariance: " << (m_EstimateNoiseVariance ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
