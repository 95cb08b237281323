/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkComponentAreaImageFilterBase_h
#define itkComponentAreaImageFilterBase_h

#include "itkComponentAreaEnums.h"
#include "itkSpatialAxesImageFilterBase.h"

namespace itk
{
/** \class ComponentAreaImageFilterBase
 * \brief Base of area openings and closings.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ComponentAreaImageFilterBase : public SpatialAxesImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ComponentAreaImageFilterBase);

  using Self = ComponentAreaImageFilterBase;
  using Superclass = SpatialAxesImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(ComponentAreaImageFilterBase);

  using AttributeEnum = ComponentAreaEnums::Attribute;
  /** The measure of a component's size. Default: Area. */
  itkSetEnumMacro(Attribute, AttributeEnum);
  itkGetEnumMacro(Attribute, AttributeEnum);

  /** Components of this size, or larger ones, stay: 0 or more. Default: 0, all. */
  itkSetMacro(Size, double);
  itkGetConstMacro(Size, double);
  /** The size, by the name that ITK's filters have for it. */
  void
  SetLambda(double lambda)
  {
    this->SetSize(lambda);
  }
  double
  GetLambda() const
  {
    return m_Size;
  }

  /** Whether the size is in the image's physical unit, not of voxels of size 1. Default: on. */
  itkSetMacro(UseImageSpacing, bool);
  itkGetConstMacro(UseImageSpacing, bool);
  itkBooleanMacro(UseImageSpacing);

  /** Neighbors share a face (1), a face or an edge (2), or also a corner (3). Default: 1. */
  itkSetMacro(Connectivity, unsigned int);
  itkGetConstMacro(Connectivity, unsigned int);

protected:
  ComponentAreaImageFilterBase() = default;
  ~ComponentAreaImageFilterBase() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.SetReal("Size", m_Size);
    parameters.Set("Attribute", ToWord(m_Attribute));
    parameters.Set("UseImageSpacing", m_UseImageSpacing);
    parameters.SetInteger("Connectivity", m_Connectivity);
    return parameters;
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
    os << indent << "Size: " << m_Size << std::endl;
    os << indent << "Attribute: " << m_Attribute << std::endl;
    os << indent << "UseImageSpacing: " << (m_UseImageSpacing ? "On" : "Off") << std::endl;
    os << indent << "Connectivity: " << m_Connectivity << std::endl;
  }

private:
  double        m_Size{ 0.0 };
  AttributeEnum m_Attribute{ AttributeEnum::Area };
  bool          m_UseImageSpacing{ true };
  unsigned int  m_Connectivity{ 1 };
};
} // namespace itk

#endif
