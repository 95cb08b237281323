/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionFromMarkerImageFilter_hxx
#define itkHeapReconstructionFromMarkerImageFilter_hxx

#include "chunkwiseReconstructionOperation.h"
#include "itkChunkwiseGeometry.h"
#include "itkHeapReconstructionFromMarkerImageFilter.h"

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
    const auto & region = this->GetOutput()->GetRequestedRegion();
    const auto   origin = this->GetInput()->GetLargestPossibleRegion().GetIndex();
    const auto   beyond =
      chunkwise::FindMarkerBeyondMask(m_ByErosion, this->GetInputView(0), this->GetInputView(1), this->GetBox(region));
    if (beyond)
    {
      auto index = origin;
      for (unsigned int a = 0; a < TInputImage::ImageDimension; ++a)
      {
        index[a] += static_cast<IndexValueType>(beyond->index[static_cast<int>(a)]);
      }
      itkExceptionMacro("MarkerImage: " << beyond->marker << " at " << index << " is "
                                        << (m_ByErosion ? "below" : "above") << " the mask, " << beyond->mask);
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
