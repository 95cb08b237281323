/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseBoxImageFilter_h
#define itkChunkwiseBoxImageFilter_h

#include "itkChunkwiseWindowImageFilter.h"

namespace itk
{
/** \class ChunkwiseBoxImageFilter
 * \brief Base of the Chunkwise filters whose window is a box: has its radius, or the two radii of a window that reaches
 * farther to one side.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage>
class ITK_TEMPLATE_EXPORT ChunkwiseBoxImageFilter : public ChunkwiseWindowImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseBoxImageFilter);

  using Self = ChunkwiseBoxImageFilter;
  using Superclass = ChunkwiseWindowImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(ChunkwiseBoxImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;

  using RadiusType = typename TInputImage::SizeType;
  using RadiusValueType = typename TInputImage::SizeValueType;

  /** Voxels to either side of the window's center, per axis; entries of axes that are not spatial are not used. It may
   * be larger than the image, with a boundary condition other than Renormalized up to 65535. Default: 1. */
  virtual void
  SetRadius(const RadiusType & radius);
  /** The same radius along every axis. */
  virtual void
  SetRadius(const RadiusValueType & radius);
  itkGetConstReferenceMacro(Radius, RadiusType);

  /** Voxels to the upper side of the window's center, where Radius is those to its lower side: of all filters but
   * statistics from tables and non-local means, which refuse it. Such windows take about the time of windows around
   * their voxel. Default: as many as Radius. */
  virtual void
  SetUpperRadius(const RadiusType & radius);
  virtual void
  SetUpperRadius(const RadiusValueType & radius);
  /** Radius where none is set. */
  const RadiusType &
  GetUpperRadius() const
  {
    return m_HasUpperRadius ? m_UpperRadius : m_Radius;
  }
  /** Back to windows around their center. */
  void
  ClearUpperRadius();

protected:
  ChunkwiseBoxImageFilter();
  ~ChunkwiseBoxImageFilter() override = default;

  /** Those of ChunkwiseWindowImageFilter, and Radius. */
  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  RadiusType m_Radius;
  RadiusType m_UpperRadius{};
  bool       m_HasUpperRadius{ false };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkChunkwiseBoxImageFilter.hxx"
#endif

#endif
