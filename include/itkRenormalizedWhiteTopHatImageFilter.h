/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedWhiteTopHatImageFilter_h
#define itkRenormalizedWhiteTopHatImageFilter_h

#include "itkChunkwiseMorphologyImageFilter.h"

namespace itk
{
/** \class RenormalizedWhiteTopHatImageFilter
 * \brief The image minus its opening with a box: bright structures that are smaller than the box.
 *
 * Both steps of the opening and the difference are done chunk by chunk in one pass over the image. SetKernel takes any
 * flat structuring element.
 *
 * \par Boundary
 * Those of RenormalizedOpeningImageFilter. Renormalized (the default): nowhere negative, up to the edge.
 *
 * \par Differences from ITK
 * There is no SafeBorder, see ChunkwiseMorphologyImageFilter. SetMaskImage is refused.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Differences of integers are exact; a
 * signed type may be too small for them: they are clamped.
 *
 * \par Memory
 * A chunk needs the memory of RenormalizedOpeningImageFilter, and one image more.
 *
 * \par Streaming
 * Requests the output's requested region padded by twice the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and instruction set and device.
 *
 * \par Source
 * F. Meyer, "Iterative image transformations for an automatic screening of cervical smears", Journal of Histochemistry
 * and Cytochemistry 27(1), 1979.
 *
 * \sa WhiteTopHatImageFilter, RenormalizedOpeningImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedWhiteTopHatImageFilter
  : public ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedWhiteTopHatImageFilter);

  using Self = RenormalizedWhiteTopHatImageFilter;
  using Superclass = ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedWhiteTopHatImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "white-tophat";
  }

protected:
  RenormalizedWhiteTopHatImageFilter() = default;
  ~RenormalizedWhiteTopHatImageFilter() override = default;
};
} // namespace itk

#endif
