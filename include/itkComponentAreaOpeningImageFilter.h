/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkComponentAreaOpeningImageFilter_h
#define itkComponentAreaOpeningImageFilter_h

#include "itkComponentAreaImageFilterBase.h"

namespace itk
{
/** \class ComponentAreaOpeningImageFilter
 * \brief Area opening: bright components that are smaller than a size are lowered.
 *
 * The result at a voxel is the highest level, at most the voxel's value, at which the connected component of voxels
 * from that level on that has the voxel has the Size, or more. If no component is as large, it is the least
 * value that paths from the voxel reach. NaN has no neighbors and stays. The Attribute says how the size is measured:
 * by the area, the longest side of the bounding box, the height, or the volume between the values of the component and
 * the nearest value beside it.
 *
 * \par Boundary
 * Voxels at the edge have no neighbors beyond it.
 *
 * \par Differences from ITK
 * The result is that of AreaOpeningImageFilter, which has SetLambda for SetSize, and SetFullyConnected for a
 * Connectivity of 1 or of the image's dimension; but ITK 5.2 does not sort the last voxel. The attribute is the number
 * of voxels times the size of a voxel, rounded once.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type.
 *
 * \par Memory
 * 4 bytes and a pixel a voxel beside input and output, and, for components on the border of tiles, up to some 150 more
 * (200 if the Attribute is another than the area).
 *
 * \par Streaming
 * A result depends on the whole image: the filter computes the largest possible region, whatever is requested.
 *
 * \par Determinism
 * The same bits for every division into blocks and every number of threads. Devices do not compute it.
 *
 * \par Source
 * L. Vincent, "Morphological area openings and closings for grey-scale images", Shape in Picture, 1992; by union-find
 * as in A. Meijster, M. H. F. Wilkinson, IEEE Trans. Pattern Analysis and Machine Intelligence 24(4), 2002.
 *
 * \sa AreaOpeningImageFilter, ComponentAreaClosingImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ComponentAreaOpeningImageFilter
  : public ComponentAreaImageFilterBase<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ComponentAreaOpeningImageFilter);

  using Self = ComponentAreaOpeningImageFilter;
  using Superclass = ComponentAreaImageFilterBase<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ComponentAreaOpeningImageFilter);

  static_assert(Superclass::GivesSameType, "the output has the input's type");

  const char *
  GetFilterName() const override
  {
    return "area-opening";
  }

protected:
  ComponentAreaOpeningImageFilter() = default;
  ~ComponentAreaOpeningImageFilter() override = default;
};
} // namespace itk

#endif
