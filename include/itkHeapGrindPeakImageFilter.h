/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapGrindPeakImageFilter_h
#define itkHeapGrindPeakImageFilter_h

#include "itkHeapReconstructionImageFilter.h"

namespace itk
{
/** \class HeapGrindPeakImageFilter
 * \brief Grinds peaks: maxima that are not connected to the image's edge.
 *
 * The reconstruction by dilation, under the image, of the image at its edge and nothing inside. The image's edge is
 * that of the largest possible region along the spatial axes of more than one voxel.
 *
 * \par Differences from ITK
 * To itk::GrayscaleGrindPeakImageFilter an axis of one voxel is an edge too, so that it changes nothing in a volume of
 * one slice; here such a slice is treated as the image in two dimensions is.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa GrayscaleGrindPeakImageFilter, HeapClearBorderImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapGrindPeakImageFilter : public HeapReconstructionImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapGrindPeakImageFilter);

  using Self = HeapGrindPeakImageFilter;
  using Superclass = HeapReconstructionImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapGrindPeakImageFilter);

  static_assert(Superclass::GivesSameType, "inputs and output have pixels of one type");

  const char *
  GetFilterName() const override
  {
    return "grind-peaks";
  }

protected:
  HeapGrindPeakImageFilter() = default;
  ~HeapGrindPeakImageFilter() override = default;
};
} // namespace itk

#endif
