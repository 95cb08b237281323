/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapClearBorderImageFilter_h
#define itkHeapClearBorderImageFilter_h

#include "itkHeapReconstructionImageFilter.h"

namespace itk
{
/** \class HeapClearBorderImageFilter
 * \brief Removes what is brighter than its surroundings and connected to the image's edge.
 *
 * The image minus what HeapGrindPeakImageFilter leaves of it. Differences beyond the range of a signed integer are
 * cut. The image's edge is that of the largest possible region along the spatial axes of more than one voxel.
 *
 * Boundary, types, memory, streaming, determinism and source are those of the base class.
 *
 * \sa HeapGrindPeakImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapClearBorderImageFilter : public HeapReconstructionImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapClearBorderImageFilter);

  using Self = HeapClearBorderImageFilter;
  using Superclass = HeapReconstructionImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HeapClearBorderImageFilter);

  static_assert(Superclass::GivesSameType, "inputs and output have pixels of one type");

  const char *
  GetFilterName() const override
  {
    return "clear-border";
  }

protected:
  HeapClearBorderImageFilter() = default;
  ~HeapClearBorderImageFilter() override = default;
};
} // namespace itk

#endif
