/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionImageFilter_hxx
#define itkHeapReconstructionImageFilter_hxx

#include "itkHeapReconstructionImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
HeapReconstructionImageFilter<TInputImage, TOutputImage>::MakeOperation(const chunkwise::Coordinates &) const
{
  auto operation = std::make_shared<chunkwise::ReconstructionOperation>(m_Rule);
  operation->fullyConnected = m_FullyConnected;
  operation->spatialDimension = static_cast<int>(m_SpatialDimension);
  operation->heaps = m_NumberOfHeaps;
  operation->nodeItems = m_HeapNodeSize;
  switch (m_Method)
  {
    case MethodEnum::Auto:
      operation->method = chunkwise::ReconstructionMethod::Auto;
      break;
    case MethodEnum::TileWavefront:
      operation->method = chunkwise::ReconstructionMethod::TileWavefront;
      break;
    case MethodEnum::SpanningForest:
      operation->method = chunkwise::ReconstructionMethod::SpanningForest;
      break;
    case MethodEnum::ParallelHeapCluster:
      operation->method = chunkwise::ReconstructionMethod::ParallelHeapCluster;
      break;
  }
  return operation;
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
HeapReconstructionImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  if (m_SpatialDimension < 1 || m_SpatialDimension > 3 || m_SpatialDimension > ImageDimension)
  {
    itkExceptionMacro("SpatialDimension: " << m_SpatialDimension << " is not 1 to "
                                           << (ImageDimension < 3 ? ImageDimension : 3));
  }
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
