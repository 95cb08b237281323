/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapHConcaveImageFilter_h
#define itkHeapHConcaveImageFilter_h

#include "itkHeapReconstructionByHeightImageFilter.h"

namespace itk
{
/** \class HeapHConcaveImageFilter
 * \brief Basins, which lie below their surroundings, up to a height: the h-minima minus the image.
 *
 * Differences beyond the range of a signed integer are cut.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa HConcaveImageFilter, HeapHMinimaImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapHConcaveImageFilter
  : public HeapReconstructionByHeightImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapHConcaveImageFilter);

  using Self = HeapHConcaveImageFilter;
  using Superclass = HeapReconstructionByHeightImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapHConcaveImageFilter);

  static_assert(Superclass::GivesSameType, "inputs and output have pixels of one type");

  const char *
  GetFilterName() const override
  {
    return "h-concave";
  }

protected:
  HeapHConcaveImageFilter() = default;
  ~HeapHConcaveImageFilter() override = default;
};
} // namespace itk

#endif
