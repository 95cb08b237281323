/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseFlipImageFilter_h
#define itkChunkwiseFlipImageFilter_h

#include "itkChunkwiseGridImageFilterBase.h"

namespace itk
{
/** \class ChunkwiseFlipImageFilter
 * \brief Reverses the order of pixels along axes.
 *
 * Pixels keep their places in space, and the axes point the other way; with FlipAboutOrigin on the image is mirrored in
 * space, as FlipImageFilter does by default.
 *
 * \par Boundary
 * None.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type. Pixels keep their bits.
 *
 * \par Memory
 * None. CPU only.
 *
 * \par Streaming
 * Requests the pixels of the output's requested region.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions and every number of threads.
 *
 * \par Source
 * None.
 *
 * \sa FlipImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ChunkwiseFlipImageFilter : public ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseFlipImageFilter);

  using Self = ChunkwiseFlipImageFilter;
  using Superclass = ChunkwiseGridImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwiseFlipImageFilter);

  static_assert(Superclass::GivesSameType, "the output has the input's type");

  const char *
  GetFilterName() const override
  {
    return "flip";
  }

  /** Axes along which pixels are reversed: one to three. Default: the first three. */
  using FlipAxesArrayType = FixedArray<bool, TOutputImage::ImageDimension>;
  itkSetMacro(FlipAxes, FlipAxesArrayType);
  itkGetConstReferenceMacro(FlipAxes, FlipAxesArrayType);

  /** Whether the image is mirrored in space, at the planes through the origin. Default: off. */
  itkSetMacro(FlipAboutOrigin, bool);
  itkGetConstMacro(FlipAboutOrigin, bool);
  itkBooleanMacro(FlipAboutOrigin);

protected:
  ChunkwiseFlipImageFilter()
  {
    for (unsigned int a = 0; a < Superclass::ImageDimension; ++a)
    {
      m_FlipAxes[a] = a < chunkwise::MaxSpatialAxes;
    }
  }
  ~ChunkwiseFlipImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    std::vector<std::int64_t>   axes;
    for (unsigned int a = 0; a < Superclass::ImageDimension; ++a)
    {
      if (m_FlipAxes[a])
      {
        axes.push_back(a);
      }
    }
    parameters.Set("SpatialAxes", axes);
    parameters.Set("FlipAboutOrigin", m_FlipAboutOrigin);
    return parameters;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "FlipAxes: " << m_FlipAxes << std::endl;
    os << indent << "FlipAboutOrigin: " << (m_FlipAboutOrigin ? "On" : "Off") << std::endl;
  }

private:
  FlipAxesArrayType m_FlipAxes;
  bool              m_FlipAboutOrigin{ false };
};
} // namespace itk

#endif
