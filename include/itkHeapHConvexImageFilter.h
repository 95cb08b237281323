/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapHConvexImageFilter_h
#define itkHeapHConvexImageFilter_h

#include "itkHeapReconstructionByHeightImageFilter.h"

namespace itk
{
/** \class HeapHConvexImageFilter
 * \brief Domes, which rise above their surroundings, up to a height: the image minus its h-maxima.
 *
 * Differences beyond the range of a signed integer are cut.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa HConvexImageFilter, HeapHMaximaImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapHConvexImageFilter
  : public HeapReconstructionByHeightImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapHConvexImageFilter);

  using Self = HeapHConvexImageFilter;
  using Superclass = HeapReconstructionByHeightImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapHConvexImageFilter);

  static_assert(Superclass::GivesSameType, "inputs and output have pixels of one type");

  const char *
  GetFilterName() const override
  {
    return "h-convex";
  }

protected:
  HeapHConvexImageFilter() = default;
  ~HeapHConvexImageFilter() override = default;
};
} // namespace itk

#endif
