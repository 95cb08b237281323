/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseImageToImageFilter_hxx
#define itkChunkwiseImageToImageFilter_hxx

#include "itkChunkwiseImageToImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::SetDevices(const std::vector<int> & devices)
{
  this->ChangeDevices(devices);
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::SetOutputOnDevice(bool outputOnDevice)
{
  this->ChangeOutputOnDevice(outputOnDevice);
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::Manager &
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetManager() const
{
  return chunkwise::Manager::GetGlobal();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
template <typename TImage>
chunkwise::BufferView
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::ViewOf(const TImage &      image,
                                                                            const std::string & name) const
{
  using Pixel = ChunkwiseImagePixel<TImage>;
  static_assert(Pixel::IsVectorImage ||
                  std::is_base_of<Image<typename TImage::InternalPixelType, ImageDimension>, TImage>::value,
                "inputs are itk::Image: itk::CastImageFilter makes one of an itk::ImageAdaptor");
  this->PrepareView(&image);
  const std::int64_t components = Pixel::CountComponents(image);
  return this->ViewOfImage(image,
                           const_cast<typename TImage::InternalPixelType *>(image.GetBufferPointer()),
                           static_cast<SizeValueType>(image.GetPixelContainer()->Size()) /
                             static_cast<SizeValueType>(Pixel::IsVectorImage ? components : 1),
                           chunkwise::PixelTypeOf<typename Pixel::ComponentType>(),
                           components,
                           name);
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::BufferView
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetInputView(unsigned int i) const
{
  return this->ViewOf(*this->GetInput(i), this->GetInputName(i));
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::PixelType
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GetInputKind(unsigned int) const
{
  return chunkwise::PixelTypeOf<InputPixelType>();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();
  this->VerifyDevices();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::VerifyInputInformation() const
{
  Superclass::VerifyInputInformation();
  this->VerifyInputs();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GenerateOutputInformation()
{
  Superclass::GenerateOutputInformation();
  if (OutputComponents == 0 && this->GetNumberOfInputComponents() > 0)
  {
    this->GetOutput()->SetNumberOfComponentsPerPixel(static_cast<unsigned int>(this->GetNumberOfInputComponents()));
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GenerateInputRequestedRegion()
{
  // Not the superclass' own: where it is an ITK filter that this class stands in for, that one pads by its own rule.
  ImageToImageFilter<InputImageType, OutputImageType>::GenerateInputRequestedRegion();
  this->RequestInputs();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::UpdateOutputData(DataObject * output)
{
  this->UpdateImages(output);
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::GenerateData()
{
  this->Generate();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::WriteOutput(const chunkwise::BufferView & result)
{
  this->ConvertOutput(result);
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
template <typename TResult, typename TConvertRow>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::ConvertToOutput(
  const chunkwise::BufferView & result, TConvertRow && convertRow)
{
  this->ForRowsOf(result, [&](const void * from, void * to, std::int64_t step, std::int64_t count) {
    convertRow(static_cast<const TResult *>(from), static_cast<OutputPixelType *>(to), step, count);
  });
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  this->PrintBase(os, indent);
}

} // namespace itk

#endif
