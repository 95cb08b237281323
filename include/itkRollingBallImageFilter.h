/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRollingBallImageFilter_h
#define itkRollingBallImageFilter_h

#include "itkSpatialAxesImageFilterBase.h"

namespace itk
{
/** \class RollingBallImageFilter
 * \brief The background of an image, under which a ball or a paraboloid rolls, or the image minus it.
 *
 * The background is the opening of the image with a structuring function: the upper half of a ball of Radius voxels and
 * Height values, or the paraboloid that has the ball's curvature at its apex and ends at Radius along each axis. It is
 * nowhere above the image. Paraboloids are separable: their time grows with the radius, not with its power.
 *
 * \par Boundary
 * Voxels beyond the image's edge do not count.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Computed in float for float and 8- and
 * 16-bit integers, in double for the others; integer outputs are rounded to nearest, ties to even, and clamped.
 *
 * \par Memory
 * A chunk needs two images of the type that computes beside its input and output.
 *
 * \par Streaming
 * Requests the output's requested region padded by twice the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set.
 *
 * \par Source
 * S. Sternberg, "Biomedical image processing", Computer 16(1), 1983.
 *
 * \sa RenormalizedWhiteTopHatImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RollingBallImageFilter : public SpatialAxesImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RollingBallImageFilter);

  using Self = RollingBallImageFilter;
  using Superclass = SpatialAxesImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RollingBallImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "rolling-ball";
  }

  using RadiusType = FixedArray<double, TInputImage::ImageDimension>;

  /** The semi-axes in voxels, at least 0; entries of axes that are not spatial are not used. Default: 50. */
  itkSetMacro(RadiusArray, RadiusType);
  itkGetConstReferenceMacro(RadiusArray, RadiusType);
  void
  SetRadius(double radius)
  {
    RadiusType same;
    same.Fill(radius);
    this->SetRadiusArray(same);
  }
  /** The semi-axis along x. */
  double
  GetRadius() const
  {
    return m_RadiusArray[0];
  }

  /** The semi-axis in units of the image's values, at least 0. Default: below 0, the first radius. */
  itkSetMacro(Height, double);
  itkGetConstMacro(Height, double);

  /** Whether a paraboloid rolls, not a ball. Default: off. */
  itkSetMacro(Paraboloid, bool);
  itkGetConstMacro(Paraboloid, bool);
  itkBooleanMacro(Paraboloid);

  /** Whether the background is the erosion alone, which lies lower than the opening. Default: off. */
  itkSetMacro(ErosionAlone, bool);
  itkGetConstMacro(ErosionAlone, bool);
  itkBooleanMacro(ErosionAlone);

  /** Whether the output is the image minus its background. Default: off. */
  itkSetMacro(SubtractBackground, bool);
  itkGetConstMacro(SubtractBackground, bool);
  itkBooleanMacro(SubtractBackground);

protected:
  RollingBallImageFilter() { m_RadiusArray.Fill(50); }
  ~RollingBallImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    std::vector<double>         radius;
    for (const unsigned int axis : this->GetSpatialAxes())
    {
      radius.push_back(axis < ImageDimension ? m_RadiusArray[axis] : 0.0);
    }
    parameters.Set("Radius", radius);
    if (!(m_Height < 0))
    {
      parameters.SetReal("Height", m_Height);
    }
    parameters.Set("Shape", m_Paraboloid ? "paraboloid" : "ball");
    parameters.Set("Background", m_ErosionAlone ? "erosion" : "opening");
    parameters.Set("SubtractBackground", m_SubtractBackground);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "RadiusArray: " << m_RadiusArray << std::endl;
    os << indent << "Height: " << m_Height << std::endl;
    os << indent << "Paraboloid: " << (m_Paraboloid ? "On" : "Off") << std::endl;
    os << indent << "ErosionAlone: " << (m_ErosionAlone ? "On" : "Off") << std::endl;
    os << indent << "SubtractBackground: " << (m_SubtractBackground ? "On" : "Off") << std::endl;
  }

private:
  RadiusType m_RadiusArray;
  double     m_Height{ -1.0 };
  bool       m_Paraboloid{ false };
  bool       m_ErosionAlone{ false };
  bool       m_SubtractBackground{ false };
};
} // namespace itk

#endif
