/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionOfMorphologyImageFilter_hxx
#define itkHeapReconstructionOfMorphologyImageFilter_hxx

#include "itkHeapReconstructionOfMorphologyImageFilter.h"
#include "itkProgressAccumulator.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage, typename TMorphology>
HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage,
                                          TMorphology>::HeapReconstructionOfMorphologyImageFilter()
  : m_Morphology(TMorphology::New())
{
  m_Morphology->SetRadius(1);
}

template <typename TInputImage, typename TOutputImage, typename TMorphology>
void
HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage, TMorphology>::CopySettings(
  ChunkwiseImageToImageFilter<TInputImage, TOutputImage> & filter) const
{
  filter.SetBackend(this->GetBackend());
  filter.SetDevices(this->GetDevices());
  filter.SetDeviceMemoryBudget(this->GetDeviceMemoryBudget());
  filter.SetPinnedMemoryBudget(this->GetPinnedMemoryBudget());
  filter.SetHostMemoryBudget(this->GetHostMemoryBudget());
  filter.SetHostTakesChunks(this->GetHostTakesChunks());
  filter.SetNumberOfWorkUnits(this->GetNumberOfWorkUnits());
}

template <typename TInputImage, typename TOutputImage, typename TMorphology>
void
HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage, TMorphology>::VerifyInputInformation() const
{
  Superclass::VerifyInputInformation();

  // Throws for an element that cannot be used, before any work.
  std::vector<unsigned int> axes;
  for (unsigned int a = 0; a < this->GetSpatialDimension(); ++a)
  {
    axes.push_back(a);
  }
  m_Morphology->SetSpatialAxes(axes);
  m_Morphology->SetInput(this->GetInput());
  m_Morphology->UpdateOutputInformation();
}

template <typename TInputImage, typename TOutputImage, typename TMorphology>
void
HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage, TMorphology>::GenerateData()
{
  const auto progress = ProgressAccumulator::New();
  progress->SetMiniPipelineFilter(this);

  // Its result is needed twice where intensities are preserved.
  m_Morphology->SetReleaseDataFlag(!m_PreserveIntensities);
  this->CopySettings(*m_Morphology);
  // Else the end of an earlier run would be taken for progress of this one.
  m_Morphology->UpdateProgress(0.0f);
  progress->RegisterInternalFilter(m_Morphology, 0.3f);

  const int                        steps = m_PreserveIntensities ? 2 : 1;
  typename Reconstruction::Pointer reconstructions[2];
  for (int step = 0; step < steps; ++step)
  {
    const auto reconstruction = Reconstruction::New();
    reconstruction->SetFullyConnected(this->GetFullyConnected());
    reconstruction->SetSpatialDimension(this->GetSpatialDimension());
    reconstruction->SetMethod(this->GetMethod());
    reconstruction->SetRule(this->GetRule().erosion,
                            step == 0 ? chunkwise::ReconstructionMarker::Image
                                      : chunkwise::ReconstructionMarker::Agreeing);
    unsigned int inputs = 0;
    reconstruction->SetInput(inputs++, m_Morphology->GetOutput());
    if (step == 1)
    {
      reconstruction->SetInput(inputs++, reconstructions[0]->GetOutput());
    }
    reconstruction->SetInput(inputs, this->GetInput());
    reconstruction->ReleaseDataFlagOn();
    this->CopySettings(*reconstruction);
    progress->RegisterInternalFilter(reconstruction, 0.7f / static_cast<float>(steps));
    reconstructions[step] = reconstruction;
  }
  const auto & last = reconstructions[steps - 1];
  last->GraftOutput(this->GetOutput());
  last->Update();
  this->GraftOutput(last->GetOutput());
  this->SetLastReport(last->GetLastReport());
}

template <typename TInputImage, typename TOutputImage, typename TMorphology>
void
HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage, TMorphology>::PrintSelf(std::ostream & os,
                                                                                             Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Radius: " << this->GetRadius() << std::endl;
  os << indent << "Morphology:" << std::endl;
  m_Morphology->Print(os, indent.GetNextIndent());
  os << indent << "PreserveIntensities: " << (m_PreserveIntensities ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
