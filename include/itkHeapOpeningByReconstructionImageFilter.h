/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapOpeningByReconstructionImageFilter_h
#define itkHeapOpeningByReconstructionImageFilter_h

#include "itkHeapReconstructionOfMorphologyImageFilter.h"

namespace itk
{
/** \class HeapOpeningByReconstructionImageFilter
 * \brief Opening by reconstruction: removes bright structures that the structuring element does not fit into, keeps the
 * others whole.
 *
 * The reconstruction by dilation of the erosion, under the image.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa OpeningByReconstructionImageFilter, HeapClosingByReconstructionImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapOpeningByReconstructionImageFilter
  : public HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapOpeningByReconstructionImageFilter);

  using Self = HeapOpeningByReconstructionImageFilter;
  using Superclass = HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapOpeningByReconstructionImageFilter);

  static_assert(Superclass::GivesSameType, "inputs and output have pixels of one type");

  const char *
  GetFilterName() const override
  {
    return "opening-by-reconstruction";
  }

protected:
  HeapOpeningByReconstructionImageFilter() = default;
  ~HeapOpeningByReconstructionImageFilter() override = default;
};
} // namespace itk

#endif
