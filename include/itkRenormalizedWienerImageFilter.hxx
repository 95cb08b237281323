/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedWienerImageFilter_hxx
#define itkRenormalizedWienerImageFilter_hxx

#include "chunkwiseStatistics.h"
#include "itkRenormalizedWienerImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  // An estimate is 0 before the input is there.
  if (m_NoiseVarianceIsSet || m_EstimateNoiseVariance)
  {
    parameters.SetReal("NoiseVariance", m_NoiseVariance);
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::GetOperation(const chunkwise::FilterImage & image) const
{
  if (m_EstimateNoiseVariance)
  {
    itkExceptionMacro(
      "EstimateNoiseVariance: on, but as a part of something else the filter has no input to take an estimate from");
  }
  return Superclass::GetOperation(image);
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::GenerateInputRequestedRegion()
{
  Superclass::GenerateInputRequestedRegion();

  for (unsigned int i = 0; m_EstimateNoiseVariance && i < this->GetNumberOfIndexedInputs(); ++i)
  {
    if (DataObject * const input = this->ProcessObject::GetInput(i))
    {
      input->SetRequestedRegionToLargestPossibleRegion();
    }
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
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "NoiseVariance: " << m_NoiseVariance << std::endl;
  os << indent << "EstimateNoiseVariance: " << (m_EstimateNoiseVariance ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
