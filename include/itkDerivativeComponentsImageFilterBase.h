/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkDerivativeComponentsImageFilterBase_h
#define itkDerivativeComponentsImageFilterBase_h

#include "itkDerivativeImageFilterBase.h"

namespace itk
{
/** \class DerivativeComponentsImageFilterBase
 * \brief Base of the derivatives of which a voxel has several: an output that is an itk::VectorImage has all of them as
 * its components.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT DerivativeComponentsImageFilterBase
  : public DerivativeImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(DerivativeComponentsImageFilterBase);

  using Self = DerivativeComponentsImageFilterBase;
  using Superclass = DerivativeImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(DerivativeComponentsImageFilterBase);

  using Components = typename Superclass::Components;

  /** Whether a pixel of the output has all components. */
  static constexpr bool HasComponents =
    std::is_base_of<VectorImage<typename TOutputImage::InternalPixelType, TOutputImage::ImageDimension>,
                    TOutputImage>::value;
  static_assert(std::is_floating_point<typename TOutputImage::InternalPixelType>::value ||
                  std::is_integral<typename TOutputImage::InternalPixelType>::value,
                "the output's pixels are integers, float or double, or vectors of these");
  static_assert(!HasComponents || TOutputImage::ImageDimension < chunkwise::MaxDimension,
                "an itk::VectorImage of derivatives has at most four dimensions");

protected:
  DerivativeComponentsImageFilterBase() = default;
  ~DerivativeComponentsImageFilterBase() override = default;

  /** The components of a voxel: a number for each spatial axis, unless a derived class has others. */
  virtual std::int64_t
  CountComponents() const
  {
    return static_cast<std::int64_t>(this->GetSpatialAxes().size());
  }

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("OutputComponents", HasComponents);
    return parameters;
  }
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return HasComponents ? chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>()
                         : Superclass::GetOperationKind();
  }
  Components
  GetComponents() const override
  {
    return HasComponents ? Components{ chunkwise::MaxDimension - 1, this->CountComponents() }
                         : Superclass::GetComponents();
  }
  std::shared_ptr<const chunkwise::Operation>
  MakeOperation(const chunkwise::FilterImage & image) const override
  {
    chunkwise::FilterImage whole = image;
    if (HasComponents)
    {
      whole.extent[chunkwise::MaxDimension - 1] = this->GetComponents().number;
    }
    return Superclass::MakeOperation(whole);
  }
  void
  GenerateOutputInformation() override
  {
    Superclass::GenerateOutputInformation();
    if constexpr (HasComponents)
    {
      this->GetOutput()->SetNumberOfComponentsPerPixel(static_cast<unsigned int>(this->CountComponents()));
    }
  }
};
} // namespace itk

#endif
