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

protected:
  HeapFillholeImageFilter()
  {
    this->SetRule(true, chunkwise::ReconstructionMarker::Border, chunkwise::ReconstructionResult::Reconstruction);
  }
  ~HeapFillholeImageFilter() override = default;
};
} // namespace itk

#endif
