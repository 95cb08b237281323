/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapClosingByReconstructionImageFilter_h
#define itkHeapClosingByReconstructionImageFilter_h

#include "itkHeapReconstructionOfMorphologyImageFilter.h"

namespace itk
{
/** \class HeapClosingByReconstructionImageFilter
 * \brief Closing by reconstruction: removes dark structures that the structuring element does not fit into, keeps the
 * others whole.
 *
 * The reconstruction by erosion of the dilation, over the image.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa ClosingByReconstructionImageFilter, HeapOpeningByReconstructionImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapClosingByReconstructionImageFilter
  : public HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapClosingByReconstructionImageFilter);

  using Self = HeapClosingByReconstructionImageFilter;
  using Superclass = HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapClosingByReconstructionImageFilter);

  static_assert(Superclass::GivesSameType, "inputs and output have pixels of one type");

  const char *
  GetFilterName() const override
  {
    return "closing-by-reconstruction";
  }

protected:
  HeapClosingByReconstructionImageFilter() = default;
  ~HeapClosingByReconstructionImageFilter() override = default;
};
} // namespace itk

#endif
