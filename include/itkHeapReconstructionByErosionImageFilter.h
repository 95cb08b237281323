/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionByErosionImageFilter_h
#define itkHeapReconstructionByErosionImageFilter_h

#include "itkHeapReconstructionFromMarkerImageFilter.h"

namespace itk
{
/** \class HeapReconstructionByErosionImageFilter
 * \brief Morphological reconstruction by erosion of a marker image over a mask image.
 *
 * A voxel gets the smallest value that some path of neighbours brings to it from the marker, where each voxel of the
 * path lets through no less than the mask has there.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa ReconstructionByErosionImageFilter, HeapReconstructionByDilationImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapReconstructionByErosionImageFilter
  : public HeapReconstructionFromMarkerImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapReconstructionByErosionImageFilter);

  using Self = HeapReconstructionByErosionImageFilter;
  using Superclass = HeapReconstructionFromMarkerImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapReconstructionByErosionImageFilter);

  static_assert(Superclass::GivesSameType, "inputs and output have pixels of one type");

  const char *
  GetFilterName() const override
  {
    return "reconstruct";
  }

protected:
  HeapReconstructionByErosionImageFilter()
    : Superclass(true)
  {}
  ~HeapReconstructionByErosionImageFilter() override = default;
};
} // namespace itk

#endif
