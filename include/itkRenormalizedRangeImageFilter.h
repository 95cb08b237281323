/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedRangeImageFilter_h
#define itkRenormalizedRangeImageFilter_h

#include "itkChunkwiseBoxImageFilter.h"

namespace itk
{
/** \class RenormalizedRangeImageFilter
 * \brief The maximum minus the minimum over a box: the morphological gradient, at the image's edge over the part of the
 * box inside the image.
 *
 * The output at a voxel is the difference of the maximum and the minimum of the window of (2 radius[a] + 1) voxels
 * along each spatial axis a. The time per voxel does not depend on the radius.
 *
 * \par Boundary
 * Renormalized (the default): of the voxels that are both in the window and in the image. The other boundary conditions
 * extend the image.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Exact for integers; what a signed
 * output cannot hold is clamped. NaN are not seen; a window of nothing but NaN gives NaN.
 *
 * \par Memory
 * A chunk needs its input, its output, an image of each extremum and one to two intermediate images of 32 bits a voxel
 * (64 for 64-bit types).
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * As RenormalizedMaximumImageFilter.
 *
 * \sa GrayscaleMorphologicalGradientImageFilter, RenormalizedMaximumImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedRangeImageFilter : public ChunkwiseBoxImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedRangeImageFilter);

  using Self = RenormalizedRangeImageFilter;
  using Superclass = ChunkwiseBoxImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedRangeImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "range";
  }

  /** Windows over a part of the image: SetMaskImage, SetEmptyValue; see itkChunkwiseDomainMacro. */
  itkChunkwiseMaskMacro();
  itkSetMacro(EmptyValue, double);
  itkGetConstMacro(EmptyValue, double);

protected:
  RenormalizedRangeImageFilter() = default;
  ~RenormalizedRangeImageFilter() override = default;
};
} // namespace itk

#endif
