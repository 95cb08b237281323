/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkMaskedSmoothingImageFilterBase_h
#define itkMaskedSmoothingImageFilterBase_h

#include "itkSpatialAxesImageFilterBase.h"

#include <cmath>
#include <limits>

namespace itk
{
/** \class MaskedSmoothingImageFilterBase
 * \brief Base of the filters that smooth in a fixed number of iterations, in a mask or everywhere.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT MaskedSmoothingImageFilterBase : public SpatialAxesImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(MaskedSmoothingImageFilterBase);

  using Self = MaskedSmoothingImageFilterBase;
  using Superclass = SpatialAxesImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(MaskedSmoothingImageFilterBase);

  /** Only voxels where this image is not 0 take part, as if the image ended there; voxels that are NaN count as
   * outside. Default: none. */
  using MaskImageType = Image<unsigned char, TInputImage::ImageDimension>;
  itkSetInputMacro(MaskImage, MaskImageType);
  itkGetInputMacro(MaskImage, MaskImageType);

  /** The result at voxels outside the mask. Default: NaN, which stands for their own value. */
  itkSetMacro(OutsideValue, double);
  itkGetConstMacro(OutsideValue, double);

protected:
  MaskedSmoothingImageFilterBase() { this->AddOptionalInputName("MaskImage", 1); }
  ~MaskedSmoothingImageFilterBase() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    if (!std::isnan(m_OutsideValue))
    {
      parameters.Set("OutsideValue", chunkwise::PixelValue(m_OutsideValue));
    }
    return parameters;
  }
  chunkwise::BufferView
  GetInputView(unsigned int i) const override
  {
    return i > 0 && this->GetMaskImage() ? this->ViewOf(*this->GetMaskImage(), "MaskImage")
                                         : Superclass::GetInputView(i);
  }
  chunkwise::PixelType
  GetInputKind(unsigned int i) const override
  {
    return i > 0 && this->GetMaskImage() ? chunkwise::PixelType::UInt8 : Superclass::GetInputKind(i);
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "OutsideValue: " << m_OutsideValue << std::endl;
  }

private:
  double m_OutsideValue{ std::numeric_limits<double>::quiet_NaN() };
};
} // namespace itk

#endif
