/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionImageFilter_hxx
#define itkHeapReconstructionImageFilter_hxx

#include "itkHeapReconstructionImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
HeapReconstructionImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  constexpr unsigned int      most = ImageDimension < 3 ? ImageDimension : 3;
  if (m_SpatialDimension < 1 || m_SpatialDimension > most)
  {
    itkExceptionMacro("SpatialDimension: " << m_SpatialDimension << " is not 1 to " << most);
  }
  std::vector<std::int64_t> axes;
  for (unsigned int a = 0; a < m_SpatialDimension; ++a)
  {
    axes.push_back(a);
  }
  parameters.Set("SpatialAxes", axes);
  parameters.Set("FullyConnected", m_FullyConnected);
  switch (m_Method)
  {
    case MethodEnum::Auto:
      parameters.Set("Method", "auto");
      break;
    case MethodEnum::TileWavefront:
      parameters.Set("Method", "wavefront");
      break;
    case MethodEnum::SpanningForest:
      parameters.Set("Method", "forest");
      break;
    case MethodEnum::ParallelHeapCluster:
      parameters.Set("Method", "heaps");
      break;
  }
  parameters.SetInteger("NumberOfHeaps", m_NumberOfHeaps);
  parameters.SetInteger("HeapNodeSize", m_HeapNodeSize);
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
HeapReconstructionImageFilter<TInputImage, TOutputImage>::EnlargeOutputRequestedRegion(DataObject * data)
{
  Superclass::EnlargeOutputRequestedRegion(data);
  auto * const output = dynamic_cast<TOutputImage *>(data);
  if (!output)
  {
    return;
  }
  auto         region = output->GetRequestedRegion();
  const auto & largest = output->GetLargestPossibleRegion();
  for (unsigned int a = 0; a < m_SpatialDimension && a < ImageDimension; ++a)
  {
    region.SetIndex(a, largest.GetIndex(a));
    region.SetSize(a, largest.GetSize(a));
  }
  output->SetRequestedRegion(region);
}

template <typename TInputImage, typename TOutputImage>
void
HeapReconstructionImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "FullyConnected: " << (m_FullyConnected ? "On" : "Off") << std::endl;
  os << indent << "SpatialDimension: " << m_SpatialDimension << std::endl;
  os << indent << "Method: " << m_Method << std::endl;
  os << indent << "NumberOfHeaps: " << m_NumberOfHeaps << std::endl;
  os << indent << "HeapNodeSize: " << m_HeapNodeSize << std::endl;
}

} // namespace itk

#endif
