/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapFillholeImageFilter_h
#define itkHeapFillholeImageFilter_h

#include "itkHeapReconstructionImageFilter.h"

namespace itk
{
/** \class HeapFillholeImageFilter
 * \brief Fills holes: minima that are not connected to the image's edge.
 *
 * The reconstruction by erosion, over the image, of the image at its edge and nothing inside. The image's edge is that
 * of the largest possible region along the spatial axes of more than one voxel.
 *
 * \par Differences from ITK
 * To itk::GrayscaleFillholeImageFilter an axis of one voxel is an edge too, so that it changes nothing in a volume of
 * one slice; here such a slice is treated as the image in two dimensions is.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa GrayscaleFillholeImageFilter, HeapGrindPeakImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapFillholeImageFilter : public HeapReconstructionImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapFillholeImageFilter);

  using Self = HeapFillholeImageFilter;
  using Superclass = HeapReconstructionImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapFillholeImageFilter);

  static_assert(Superclass::GivesSameType, "inputs and output have pixels of one type");

  const char *
  GetFilterName() const override
  {
    return "fill-holes";
  }

protected:
  HeapFillholeImageFilter() = default;
  ~HeapFillholeImageFilter() override = default;
};
} // namespace itk

#endif
