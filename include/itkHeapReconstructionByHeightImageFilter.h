/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionByHeightImageFilter_h
#define itkHeapReconstructionByHeightImageFilter_h

#include "itkHeapReconstructionImageFilter.h"

namespace itk
{
/** \class HeapReconstructionByHeightImageFilter
 * \brief Base of the reconstructions of an image shifted by a height: h-maxima and what is built on them.
 *
 * The marker is made where the image is: the image less, or plus, the height, as far as its type reaches.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapReconstructionByHeightImageFilter
  : public HeapReconstructionImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapReconstructionByHeightImageFilter);

  using Self = HeapReconstructionByHeightImageFilter;
  using Superclass = HeapReconstructionImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(HeapReconstructionByHeightImageFilter);

  using typename Superclass::InputPixelType;

  /** In the image's own unit, at least 0. Default: 2. */
  void
  SetHeight(InputPixelType height)
  {
    if (m_Height != height)
    {
      m_Height = height;
      this->Modified();
    }
  }
  itkGetConstMacro(Height, InputPixelType);

protected:
  HeapReconstructionByHeightImageFilter() = default;
  ~HeapReconstructionByHeightImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Height", chunkwise::PixelValue(m_Height));
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Height: " << static_cast<typename NumericTraits<InputPixelType>::PrintType>(m_Height) << std::endl;
  }

private:
  InputPixelType m_Height{ 2 };
};
} // namespace itk

#endif
