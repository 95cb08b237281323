/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapHMinimaImageFilter_h
#define itkHeapHMinimaImageFilter_h

#include "itkHeapReconstructionByHeightImageFilter.h"

namespace itk
{
/** \class HeapHMinimaImageFilter
 * \brief Suppresses minima that are no deeper than a height.
 *
 * The reconstruction by erosion of the image plus the height, over the image.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa HMinimaImageFilter, HeapHConcaveImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapHMinimaImageFilter
  : public HeapReconstructionByHeightImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapHMinimaImageFilter);

  using Self = HeapHMinimaImageFilter;
  using Superclass = HeapReconstructionByHeightImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapHMinimaImageFilter);

  static_assert(Superclass::GivesSameType, "inputs and output have pixels of one type");

  const char *
  GetFilterName() const override
  {
    return "h-minima";
  }

protected:
  HeapHMinimaImageFilter() = default;
  ~HeapHMinimaImageFilter() override = default;
};
} // namespace itk

#endif
