/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionByDilationImageFilter_h
#define itkHeapReconstructionByDilationImageFilter_h

#include "itkHeapReconstructionFromMarkerImageFilter.h"

namespace itk
{
/** \class HeapReconstructionByDilationImageFilter
 * \brief Morphological reconstruction by dilation of a marker image under a mask image.
 *
 * A voxel gets the largest value that some path of neighbours brings to it from the marker, where each voxel of the
 * path lets through no more than the mask has there.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa ReconstructionByDilationImageFilter, HeapReconstructionByErosionImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapReconstructionByDilationImageFilter
  : public HeapReconstructionFromMarkerImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapReconstructionByDilationImageFilter);

  using Self = HeapReconstructionByDilationImageFilter;
  using Superclass = HeapReconstructionFromMarkerImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapReconstructionByDilationImageFilter);

  static_assert(Superclass::GivesSameType, "inputs and output have pixels of one type");

  const char *
  GetFilterName() const override
  {
    return "reconstruct";
  }

protected:
  HeapReconstructionByDilationImageFilter() = default;
  ~HeapReconstructionByDilationImageFilter() override = default;
};
} // namespace itk

#endif
