/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkLabelBoundaryImageFilter_h
#define itkLabelBoundaryImageFilter_h

#include "itkSpatialAxesImageFilterBase.h"
#include "itkLabelBoundaryEnums.h"

namespace itk
{
/** \class LabelBoundaryImageFilter
 * \brief Marks the pixels at the boundaries of labelled objects.
 *
 * The output is 1 at marked pixels and 0 elsewhere. In the mode Thick pixels are marked that have a neighbor of another
 * value; in the mode Inner only those of objects, whose values are not 0; in the mode Outer those of the background,
 * and those of objects with a pixel of another object among the 26 around them (8 in 2D).
 *
 * \par Boundary
 * Beyond the image's edge there are no neighbors.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to any of these.
 *
 * \par Memory
 * A chunk needs its input and its output.
 *
 * \par Streaming
 * Requests the output's requested region padded by one pixel along the spatial axes, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device.
 *
 * \par Source
 * The definitions are those of skimage.segmentation.find_boundaries.
 *
 * \sa LabelContourImageFilter, ConnectedComponentLabelImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = Image<unsigned char, TInputImage::ImageDimension>>
class ITK_TEMPLATE_EXPORT LabelBoundaryImageFilter : public SpatialAxesImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(LabelBoundaryImageFilter);

  using Self = LabelBoundaryImageFilter;
  using Superclass = SpatialAxesImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(LabelBoundaryImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  static_assert(std::is_floating_point<typename Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::OutputPixelType>::value,
                "classes are numbers");

  const char *
  GetFilterName() const override
  {
    return "boundaries";
  }

  /** Which side of a boundary is marked. Default: Thick. */
  using ModeEnum = LabelBoundaryEnums::Mode;
  itkSetEnumMacro(Mode, ModeEnum);
  itkGetEnumMacro(Mode, ModeEnum);

  /** Neighbors share a face (1), a face or an edge (2), or also a corner (3). Default: 1. */
  itkSetMacro(Connectivity, unsigned int);
  itkGetConstMacro(Connectivity, unsigned int);

protected:
  LabelBoundaryImageFilter() = default;
  ~LabelBoundaryImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    const auto &                mode = *chunkwise::GetFilter(this->GetFilterName()).FindParameter("BoundaryMode");
    parameters.Set("BoundaryMode", mode.choices.at(static_cast<std::size_t>(m_Mode)));
    parameters.SetInteger("Connectivity", m_Connectivity);
    return parameters;
  }
  /** The operation gives the output's kind itself. */
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>();
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Mode: " << m_Mode << std::endl;
    os << indent << "Connectivity: " << m_Connectivity << std::endl;
  }

private:
  ModeEnum     m_Mode{ ModeEnum::Thick };
  unsigned int m_Connectivity{ 1 };
};
} // namespace itk

#endif
