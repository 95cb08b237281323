/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedOpeningImageFilter_h
#define itkRenormalizedOpeningImageFilter_h

#include "itkChunkwiseMorphologyImageFilter.h"

namespace itk
{
/** \class RenormalizedOpeningImageFilter
 * \brief The opening with a box: the minimum over a box, then the maximum.
 *
 * Both steps are done chunk by chunk in one pass over the image: what is between never leaves the device. The time per
 * voxel does not depend on the radius. SetKernel takes any flat structuring element instead; the second step uses it
 * reflected at its center, so that this is true of elements that are not symmetric too.
 *
 * \par Boundary
 * Renormalized (the default): each step sees the part of the window inside the image. This keeps what makes it an
 * opening up to the edge: it is nowhere above the image, and repeating it changes nothing. The other boundary
 * conditions extend the image for the first step, and its result for the second.
 *
 * \par Differences from ITK
 * There is no SafeBorder, and elements that are not symmetric are reflected in the second step: see
 * ChunkwiseMorphologyImageFilter.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Exact: the result is one of the
 * voxels. -0 is less than +0. NaN are not seen; a window of nothing but NaN gives NaN.
 *
 * \par Memory
 * A chunk needs its input, its output, the result of the first step and one to two intermediate images of 32 bits a
 * voxel (64 for 64-bit types).
 *
 * \par Streaming
 * Requests the output's requested region padded by twice the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * Maxima of windows from those of prefixes and suffixes of blocks: M. van Herk, "A fast algorithm for local minimum and
 * maximum filters on rectangular and octagonal kernels", Pattern Recognition Letters 13(7), 1992. The renormalized
 * boundary follows the Hydra Image Processor (E. Wait, M. Winter, A. R. Cohen, Bioinformatics 35(24), 2019).
 *
 * \sa GrayscaleMorphologicalOpeningImageFilter, RenormalizedMinimumImageFilter, RenormalizedMaximumImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedOpeningImageFilter
  : public ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedOpeningImageFilter);

  using Self = RenormalizedOpeningImageFilter;
  using Superclass = ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedOpeningImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "opening";
  }

protected:
  RenormalizedOpeningImageFilter() = default;
  ~RenormalizedOpeningImageFilter() override = default;
};
} // namespace itk

#endif
