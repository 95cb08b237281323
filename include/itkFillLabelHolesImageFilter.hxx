/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkFillLabelHolesImageFilter_hxx
#define itkFillLabelHolesImageFilter_hxx

#include "itkChunkwiseErrors.h"
#include "itkChunkwiseExecutor.h"
#include "itkChunkwiseMeasurementSpace.h"
#include "itkChunkwiseMonitor.h"
#include "itkFillLabelHolesImageFilter.h"
#include "itkImageAlgorithm.h"

namespace itk
{

template <typename TLabelImage>
void
FillLabelHolesImageFilter<TLabelImage>::GenerateInputRequestedRegion()
{
  Superclass::GenerateInputRequestedRegion();
  if (auto * const input = const_cast<TLabelImage *>(this->GetInput()))
  {
    input->SetRequestedRegionToLargestPossibleRegion();
  }
}

template <typename TLabelImage>
void
FillLabelHolesImageFilter<TLabelImage>::EnlargeOutputRequestedRegion(DataObject * output)
{
  Superclass::EnlargeOutputRequestedRegion(output);
  output->SetRequestedRegionToLargestPossibleRegion();
}

template <typename TLabelImage>
void
FillLabelHolesImageFilter<TLabelImage>::GenerateData()
{
  this->AllocateOutputs();
  TLabelImage & output = *this->GetOutput();
  const auto &  region = output.GetLargestPossibleRegion();
  m_NumberOfFilledHoles = 0;
  if (region.GetNumberOfPixels() == 0)
  {
    return;
  }
  ImageAlgorithm::Copy(this->GetInput(), &output, region, region);
  CallChunkwise(*this, [&] {
    ChunkwiseExecutor           executor(this->GetMultiThreader(), this->GetNumberOfWorkUnits());
    ChunkwiseMonitor            monitor(*this);
    chunkwise::ExecutionRequest request;
    request.executor = &executor;
    request.budgets.host = m_HostMemoryBudget;
    try
    {
      m_NumberOfFilledHoles =
        chunkwise::FillLabelHoles(chunkwise::Manager::GetGlobal(), MakeChunkwiseBufferView(output), request, &monitor);
    }
    catch (const chunkwise::Aborted &)
    {
      monitor.RethrowObserverException();
      throw;
    }
    monitor.RethrowObserverException();
  });
}

template <typename TLabelImage>
void
FillLabelHolesImageFilter<TLabelImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "HostMemoryBudget: " << m_HostMemoryBudget << std::endl;
  os << indent << "NumberOfFilledHoles: " << m_NumberOfFilledHoles << std::endl;
}

} // namespace itk

#endif
