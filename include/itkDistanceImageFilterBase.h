/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkDistanceImageFilterBase_h
#define itkDistanceImageFilterBase_h

#include "itkSpatialAxesImageFilterBase.h"

namespace itk
{
/** \class DistanceImageFilterBase
 * \brief Base of the filters of exact Euclidean distances.
 *
 * Results have the same bits for every division into chunks and requested regions, and number of threads.
 * docs/distances.md defines them.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage>
class ITK_TEMPLATE_EXPORT DistanceImageFilterBase : public SpatialAxesImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(DistanceImageFilterBase);

  using Self = DistanceImageFilterBase;
  using Superclass = SpatialAxesImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;
  using InputPixelType = typename Superclass::InputPixelType;

  itkOverrideGetNameOfClassMacro(DistanceImageFilterBase);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(std::is_arithmetic<typename Superclass::OutputPixelType>::value, "distances are numbers");

  /** The value of voxels that are no object. Default: 0. */
  itkSetMacro(Background, InputPixelType);
  itkGetConstMacro(Background, InputPixelType);

  /** Whether distances are in the image's physical unit, not in voxels. Default: on. */
  itkSetMacro(UseImageSpacing, bool);
  itkGetConstMacro(UseImageSpacing, bool);
  itkBooleanMacro(UseImageSpacing);

protected:
  DistanceImageFilterBase() = default;
  ~DistanceImageFilterBase() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.Set("Background", chunkwise::PixelValue(m_Background));
    parameters.Set("UseImageSpacing", m_UseImageSpacing);
    return parameters;
  }
  /** The operation gives the output's kind itself. */
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>();
  }
  bool
  GivesWholeOutput() const override
  {
    return true;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Background: " << +m_Background << std::endl;
    os << indent << "UseImageSpacing: " << (m_UseImageSpacing ? "On" : "Off") << std::endl;
  }

private:
  InputPixelType m_Background{};
  bool           m_UseImageSpacing{ true };
};
} // namespace itk

#endif
