/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapHMaximaImageFilter_h
#define itkHeapHMaximaImageFilter_h

#include "itkHeapReconstructionByHeightImageFilter.h"

namespace itk
{
/** \class HeapHMaximaImageFilter
 * \brief Suppresses maxima that rise by no more than a height.
 *
 * The reconstruction by dilation of the image less the height, under the image.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa HMaximaImageFilter, HeapHConvexImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapHMaximaImageFilter
  : public HeapReconstructionByHeightImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapHMaximaImageFilter);

  using Self = HeapHMaximaImageFilter;
  using Superclass = HeapReconstructionByHeightImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapHMaximaImageFilter);

  static_assert(Superclass::GivesSameType, "inputs and output have pixels of one type");

  const char *
  GetFilterName() const override
  {
    return "h-maxima";
  }

protected:
  HeapHMaximaImageFilter() = default;
  ~HeapHMaximaImageFilter() override = default;
};
} // namespace itk

#endif
