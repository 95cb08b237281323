/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkPrunedFFTConvolutionImageFilter_hxx
#define itkPrunedFFTConvolutionImageFilter_hxx

#include "itkChunkwiseConvolutionKernel.h"
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
PrunedFFTConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  if (!this->GetKernelImage())
  {
    itkExceptionMacro("KernelImage: none is set");
  }
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
void
PrunedFFTConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::VerifyInputInformation() const
{
  // Image and kernel lie in no common space: only the operation is checked.
  const auto size = this->GetKernelImage()->GetLargestPossibleRegion().GetSize();
  for (unsigned int axis = 0; axis < ImageDimension; ++axis)
  {
    if (size[axis] == 0)
    {
      itkExceptionMacro("KernelImage: its size is " << size);
    }
    if (size[axis] > 1 && !this->IsSpatialAxis(axis))
    {
      itkExceptionMacro("KernelImage: its size is " << size << ", but axis " << axis << " is not spatial");
    }
    if (m_OutputRegionMode == VALID && size[axis] > this->GetInput()->GetLargestPossibleRegion().GetSize(axis))
    {
      itkExceptionMacro("OutputRegionMode: VALID has no voxels, the kernel's size is "
                        << size << " and the image's " << this->GetInput()->GetLargestPossibleRegion().GetSize());
    }
  }
  this->VerifyOperation();
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
void
PrunedFFTConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::GenerateOutputInformation()
{
  Superclass::GenerateOutputInformation();

  if (m_OutputRegionMode == VALID)
  {
    // Where this is empty VerifyInputInformation has thrown.
    const auto            kernel = this->MakeKernel();
    OutputImageRegionType region = this->GetInput()->GetLargestPossibleRegion();
    for (unsigned int axis = 0; axis < ImageDimension; ++axis)
    {
      const std::int64_t extent = kernel->GetExtent()[static_cast<int>(axis)];
      const std::int64_t below = extent - 1 - kernel->GetCenter()[static_cast<int>(axis)];
      region.SetIndex(axis, region.GetIndex(axis) + static_cast<IndexValueType>(below));
      region.SetSize(axis, region.GetSize(axis) - static_cast<SizeValueType>(extent - 1));
    }
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
std::shared_ptr<const chunkwise::ConvolutionKernel>
PrunedFFTConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::MakeKernel() const
{
  // Before the pipeline has run there are no voxels, or old ones; then only the shape counts.
  const KernelImageType * image = this->GetKernelImage();
  const bool              isCurrent = (!image->GetSource() || image->GetUpdateMTime() >= image->GetPipelineMTime()) &&
                         image->GetBufferedRegion().IsInside(image->GetLargestPossibleRegion());
  const auto kernel = MakeChunkwiseConvolutionKernel(image, isCurrent, m_Normalize);
  return m_Correlate ? kernel->Flipped() : kernel;
}

template <typename TInputImage, typename TKernelImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
PrunedFFTConvolutionImageFilter<TInputImage, TKernelImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates &) const
{
  auto operation = std::make_shared<chunkwise::ImageConvolutionOperation>();
  operation->kernel = this->MakeKernel();
  operation->boundary = this->GetWindowBoundary();
  switch (m_Method)
  {
    case MethodEnum::Auto:
      operation->method = chunkwise::ConvolutionMethod::Auto;
      break;
    case MethodEnum::FFT:
      operation->method = chunkwise::ConvolutionMethod::FFT;
      break;
    case MethodEnum::Direct:
      operation->method = chunkwise::ConvolutionMethod::Direct;
      break;
  }
  if (m_OutputRegionMode == VALID && operation->Renormalizes())
  {
    // No window reaches the edge: any boundary will do, and this one refuses no kernel.
    operation->boundary.mode = chunkwise::BoundaryMode::Constant;
    operation->boundary.constant = 0.0;
  }
  return operation;
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
}

} // namespace itk

#endif
