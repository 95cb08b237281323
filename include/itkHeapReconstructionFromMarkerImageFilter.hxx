/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionFromMarkerImageFilter_hxx
#define itkHeapReconstructionFromMarkerImageFilter_hxx

#include "itkHeapReconstructionFromMarkerImageFilter.h"
#include "itkImageRegionConstIteratorWithIndex.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
void
HeapReconstructionFromMarkerImageFilter<TInputImage, TOutputImage>::VerifyInputInformation() const
{
  Superclass::VerifyInputInformation();

  const auto & marker = this->GetMarkerImage()->GetLargestPossibleRegion();
  const auto & mask = this->GetMaskImage()->GetLargestPossibleRegion();
  if (marker != mask)
  {
    itkExceptionMacro("MarkerImage: its largest possible region begins at "
                      << marker.GetIndex() << " with size " << marker.GetSize() << ", that of MaskImage at "
                      << mask.GetIndex() << " with size " << mask.GetSize());
  }
}

template <typename TInputImage, typename TOutputImage>
void
HeapReconstructionFromMarkerImageFilter<TInputImage, TOutputImage>::GenerateData()
{
  if (m_Strict)
  {
    const bool                                     erosion = this->GetRule().erosion;
    const auto &                                   region = this->GetOutput()->GetRequestedRegion();
    ImageRegionConstIteratorWithIndex<TInputImage> marker(this->GetMarkerImage(), region);
    ImageRegionConstIteratorWithIndex<TInputImage> mask(this->GetMaskImage(), region);
    for (; !marker.IsAtEnd(); ++marker, ++mask)
    {
      if (erosion ? marker.Get() < mask.Get() : marker.Get() > mask.Get())
      {
        using Print = typename NumericTraits<typename TInputImage::PixelType>::PrintType;
        itkExceptionMacro("MarkerImage: " << static_cast<Print>(marker.Get()) << " at " << marker.GetIndex() << " is "
                                          << (erosion ? "below" : "above") << " the mask, "
                                          << static_cast<Print>(mask.Get()));
      }
    }
  }
  Superclass::GenerateData();
}

template <typename TInputImage, typename TOutputImage>
void
HeapReconstructionFromMarkerImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Strict: " << (m_Strict ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
