/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapRegionalExtremaImageFilter_hxx
#define itkHeapRegionalExtremaImageFilter_hxx

#include "itkChunkwiseGeometry.h"
#include "itkHeapRegionalExtremaImageFilter.h"
#include "itkImageRegionConstIterator.h"
#include "itkImageRegionIterator.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  // What is converted is only where extrema are.
  parameters.Set("ForegroundValue",
                 Superclass::GivesSameType ? chunkwise::PixelValue(m_ForegroundValue) : chunkwise::PixelValue(1));
  parameters.Set("BackgroundValue",
                 Superclass::GivesSameType ? chunkwise::PixelValue(m_BackgroundValue) : chunkwise::PixelValue(0));
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>::WriteOutput(const chunkwise::BufferView & result)
{
  const auto region = ChunkwiseRegionFromBox<TOutputImage::ImageDimension>(
    result.box, this->GetInput()->GetLargestPossibleRegion().GetIndex());
  const auto * from = static_cast<const typename TInputImage::PixelType *>(result.data);
  for (ImageRegionIterator<TOutputImage> it(this->GetOutput(), region); !it.IsAtEnd(); ++it)
  {
    it.Set(*from++ != 0 ? m_ForegroundValue : m_BackgroundValue);
  }
}

template <typename TInputImage, typename TOutputImage>
std::vector<typename TInputImage::RegionType>
HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>::FindFlatVolumes(std::size_t & volumes) const
{
  using Region = typename TInputImage::RegionType;
  const Region        whole = this->GetOutput()->GetRequestedRegion();
  std::vector<Region> flat;
  volumes = whole.GetNumberOfPixels() > 0 ? 1 : 0;
  for (unsigned int a = this->GetSpatialDimension(); a < TInputImage::ImageDimension; ++a)
  {
    volumes *= whole.GetSize(a);
  }
  for (std::size_t volume = 0; volume < volumes; ++volume)
  {
    Region      region = whole;
    std::size_t rest = volume;
    for (unsigned int a = this->GetSpatialDimension(); a < TInputImage::ImageDimension; ++a)
    {
      region.SetIndex(a, whole.GetIndex(a) + static_cast<IndexValueType>(rest % whole.GetSize(a)));
      region.SetSize(a, 1);
      rest /= whole.GetSize(a);
    }
    // Those that are not flat are found out at their first voxels.
    ImageRegionConstIterator<TInputImage> it(this->GetInput(), region);
    it.GoToBegin();
    const auto first = it.Get();
    while (!it.IsAtEnd() && it.Get() == first)
    {
      ++it;
    }
    if (it.IsAtEnd())
    {
      flat.push_back(region);
    }
  }
  return flat;
}

template <typename TInputImage, typename TOutputImage>
void
HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>::GenerateData()
{
  // Whether what is flat is an extremum is a matter of choice.
  std::size_t volumes = 0;
  const auto  flat = this->FindFlatVolumes(volumes);
  const bool  allFlat = volumes > 0 && flat.size() == volumes;
  if (allFlat)
  {
    this->AllocateOutputs();
  }
  else
  {
    Superclass::GenerateData();
  }
  for (const auto & region : flat)
  {
    for (ImageRegionIterator<TOutputImage> it(this->GetOutput(), region); !it.IsAtEnd(); ++it)
    {
      it.Set(m_FlatIsExtremum ? m_ForegroundValue : m_BackgroundValue);
    }
  }
  if (allFlat)
  {
    this->UpdateProgress(1.0f);
  }
}

template <typename TInputImage, typename TOutputImage>
void
HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  using Print = typename NumericTraits<OutputPixelType>::PrintType;
  Superclass::PrintSelf(os, indent);
  os << indent << "ForegroundValue: " << static_cast<Print>(m_ForegroundValue) << std::endl;
  os << indent << "BackgroundValue: " << static_cast<Print>(m_BackgroundValue) << std::endl;
  os << indent << "FlatIsExtremum: " << (m_FlatIsExtremum ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
