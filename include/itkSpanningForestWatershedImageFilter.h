/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSpanningForestWatershedImageFilter_h
#define itkSpanningForestWatershedImageFilter_h

#include "itkSpatialAxesImageFilterBase.h"

#include <cstdint>

namespace itk
{
/** \class SpanningForestWatershedImageFilter
 * \brief Watershed of markers, or of minima, as a minimum spanning forest: the same labels however the image is cut.
 *
 * Voxels that are neighbors are joined by an edge. Edges are ordered by the larger value of both voxels, then by the
 * smaller one, then by the indices of the voxels in raster order, the first one first. The forest of least edges in
 * which each tree has the voxels of one marker is unique. Each voxel of a tree gets the label of its marker.
 *
 * Without a MarkerImage each regional minimum is a marker. They are numbered 1, 2, ... in the raster order of their
 * first voxels. With a Height those minima count alone that lie so far below every path to a lower minimum. With an
 * Area, or a Volume, those count alone whose basins have it before they spill over into another such one.
 *
 * Voxels where the MaskImage is 0, and NaN, have no neighbors and the label 0; so has what no path joins to a marker.
 * A marker outside the mask is none. With Lines, a voxel that has a neighbor of a smaller label becomes 0.
 *
 * The result differs from that of MorphologicalWatershedFromMarkersImageFilter where values are equal, and where
 * basins have no marker: see docs/watershed.md.
 *
 * \par Boundary
 * Voxels at the edge have no neighbors beyond it.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to any of them; by default to unsigned integers of 32 bits. Markers are
 * an image of the output's type, which must be integers then. An output type that cannot hold the labels throws.
 *
 * \par Memory
 * 19 bytes a voxel beside input and output, 21 without markers (33 and 37 for chunks of nearly 2^31 voxels and
 * more). An image in chunks takes 88 bytes more for each voxel on the faces of chunks, on the host. With an Area or a
 * Volume it is 23 bytes, or as much as a ComponentAreaClosingImageFilter takes, if that is more.
 *
 * \par Streaming
 * A label depends on the whole image: the filter computes the largest possible region, whatever is requested.
 *
 * \par Determinism
 * The same labels for every division into chunks and every number of threads. Devices do not compute it.
 *
 * \par Source
 * J. Cousty, G. Bertrand, L. Najman, M. Couprie, "Watershed cuts: minimum spanning forests and the drop of water
 * principle", IEEE Trans. Pattern Analysis and Machine Intelligence 31(8), 2009; by Boruvka's algorithm.
 *
 * \sa MorphologicalWatershedFromMarkersImageFilter, ConnectedComponentLabelImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = Image<std::uint32_t, TInputImage::ImageDimension>>
class ITK_TEMPLATE_EXPORT SpanningForestWatershedImageFilter
  : public SpatialAxesImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(SpanningForestWatershedImageFilter);

  using Self = SpanningForestWatershedImageFilter;
  using Superclass = SpatialAxesImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(SpanningForestWatershedImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(std::is_floating_point<typename Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::OutputPixelType>::value,
                "labels are numbers");

  const char *
  GetFilterName() const override
  {
    return "watershed";
  }

  /** Labels of the markers, 0 elsewhere: integers. Default: none, each minimum is a marker. */
  using MarkerImageType = TOutputImage;
  itkSetInputMacro(MarkerImage, MarkerImageType);
  itkGetInputMacro(MarkerImage, MarkerImageType);

  /** Voxels have a label only where this image is not 0. Default: none. */
  using MaskImageType = Image<unsigned char, ImageDimension>;
  itkSetInputMacro(MaskImage, MaskImageType);
  itkGetInputMacro(MaskImage, MaskImageType);

  /** Neighbors share a face (1), a face or an edge (2), or also a corner (3). Default: 1. */
  itkSetMacro(Connectivity, unsigned int);
  itkGetConstMacro(Connectivity, unsigned int);

  /** Without markers: by how much the way from a minimum to a lower one must rise, 0 or more. Default: 0, all minima.
   */
  itkSetMacro(Height, double);
  itkGetConstMacro(Height, double);

  /** Without markers: the least area (in 3-D the volume) of a minimum's basin before it spills over into another such
   * one, 0 or more. Default: 0, any. */
  itkSetMacro(Area, double);
  itkGetConstMacro(Area, double);

  /** The same for the sum of how far the basin's voxels lie below the level at which it spills over, times the size of
   * a voxel. One of Height, Area and Volume is more than 0. Default: 0, any. */
  itkSetMacro(Volume, double);
  itkGetConstMacro(Volume, double);

  /** Whether Area and Volume are in the image's physical unit, not of voxels of the size 1. Default: on. */
  itkSetMacro(UseImageSpacing, bool);
  itkGetConstMacro(UseImageSpacing, bool);
  itkBooleanMacro(UseImageSpacing);

  /** Whether voxels with a neighbor of a smaller label become 0. Default: off. */
  itkSetMacro(Lines, bool);
  itkGetConstMacro(Lines, bool);
  itkBooleanMacro(Lines);

protected:
  SpanningForestWatershedImageFilter();
  ~SpanningForestWatershedImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  /** The operation gives the output's kind itself. */
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>();
  }
  chunkwise::BufferView
  GetInputView(unsigned int i) const override;
  chunkwise::PixelType
  GetInputKind(unsigned int i) const override;
  bool
  GivesWholeOutput() const override
  {
    return true;
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  unsigned int m_Connectivity{ 1 };
  double       m_Height{ 0.0 };
  double       m_Area{ 0.0 };
  double       m_Volume{ 0.0 };
  bool         m_UseImageSpacing{ true };
  bool         m_Lines{ false };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkSpanningForestWatershedImageFilter.hxx"
#endif

#endif
