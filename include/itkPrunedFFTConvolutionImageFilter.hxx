/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkPrunedFFTConvolutionImageFilter_hxx
#define itkPrunedFFTConvolutionImageFilter_hxx

#include "itkChunkwiseKernelStack.h"
#include "itkPrunedFFTConvolutionImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
PrunedFFTConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::PrunedFFTConvolutionImageFilter()
{
  this->AddRequiredInputName("KernelImage");
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
void
PrunedFFTConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::VerifyInputInformation() const
{
  // Image and kernel lie in no common space; a mask or weights lie in the image's.
  this->VerifyDomain();
  this->VerifyOperation();
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
void
PrunedFFTConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::GenerateOutputInformation()
{
  Superclass::GenerateOutputInformation();

  if (m_OutputRegionMode == VALID)
  {
    const auto & largest = this->GetInput()->GetLargestPossibleRegion();
    const auto   box =
      chunkwise::GetFilterOutputBox(this->GetFilterName(), this->MakeParameters(), this->MakeFilterImage());
    const OutputImageRegionType region = ChunkwiseRegionFromBox<ImageDimension>(box, largest.GetIndex());
    this->GetOutput()->SetLargestPossibleRegion(region);
  }
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
void
PrunedFFTConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::GenerateInputRequestedRegion()
{
  Superclass::GenerateInputRequestedRegion();

  const_cast<KernelImageType *>(this->GetKernelImage())->SetRequestedRegionToLargestPossibleRegion();
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
chunkwise::FilterParameters
PrunedFFTConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters   parameters = Superclass::MakeParameters();
  const KernelImageType * const kernel = this->GetKernelImage();
  if (!kernel)
  {
    itkExceptionMacro("KernelImage: none is set");
  }
  // Before the pipeline has run there are no voxels, or old ones; then only the shape counts.
  const bool isCurrent = !kernel->GetSource() || kernel->GetUpdateMTime() >= kernel->GetPipelineMTime();
  if (!kernel->GetSource() && !ChunkwiseHasAllVoxels(kernel))
  {
    itkExceptionMacro("KernelImage: its size is " << kernel->GetLargestPossibleRegion().GetSize()
                                                  << ", and its buffer does not have these voxels");
  }
  parameters.Set("KernelImage",
                 MakeChunkwiseKernelStack<ImageDimension>(
                   kernel->GetLargestPossibleRegion().GetSize(),
                   isCurrent && ChunkwiseHasAllVoxels(kernel) ? ChunkwiseReadVoxels(kernel) : std::vector<double>()));
  parameters.Set("Normalize", m_Normalize);
  parameters.Set("Correlate", m_Correlate);
  parameters.Set("Valid", m_OutputRegionMode == VALID);
  parameters.Set("Method", m_Method == MethodEnum::FFT ? "fft" : m_Method == MethodEnum::Direct ? "direct" : "auto");
  parameters.Set("TransformProvider",
                 chunkwise::TransformProviderName(ChunkwiseTransformProvider(m_TransformProvider)));
  return parameters;
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
PrunedFFTConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::GetOperation(
  const chunkwise::FilterImage & image) const
{
  // Whoever asks does not update the kernel's pipeline.
  const KernelImageType * const kernel = this->GetKernelImage();
  if (kernel && (!ChunkwiseHasAllVoxels(kernel) ||
                 (kernel->GetSource() && kernel->GetUpdateMTime() < kernel->GetPipelineMTime())))
  {
    itkExceptionMacro("KernelImage: it is not up to date");
  }
  return Superclass::GetOperation(image);
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
void
PrunedFFTConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::PrintSelf(std::ostream & os,
                                                                                    Indent         indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Normalize: " << (m_Normalize ? "On" : "Off") << std::endl;
  os << indent << "Correlate: " << (m_Correlate ? "On" : "Off") << std::endl;
  os << indent << "OutputRegionMode: " << m_OutputRegionMode << std::endl;
  os << indent << "Method: " << m_Method << std::endl;
  os << indent << "TransformProvider: " << m_TransformProvider << std::endl;
}

} // namespace itk

#endif
