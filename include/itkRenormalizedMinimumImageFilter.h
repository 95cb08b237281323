/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedMinimumImageFilter_h
#define itkRenormalizedMinimumImageFilter_h

#include "itkChunkwiseMorphologyImageFilter.h"

namespace itk
{
/** \class RenormalizedMinimumImageFilter
 * \brief The minimum over a box: erosion, at the image's edge over the part of the box inside the image.
 *
 * The output at a voxel is the minimum of the window of (2 radius[a] + 1) voxels along each spatial axis a. The time
 * per voxel does not depend on the radius. SetKernel takes any flat structuring element instead: the window then is the
 * voxels at its offsets.
 *
 * \par Boundary
 * Renormalized (the default): the minimum of the voxels that are both in the window and in the image, which is what
 * GrayscaleErodeImageFilter gives with its default boundary. The other boundary conditions extend the image.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Exact: the result is one of the
 * voxels. -0 is less than +0. NaN are not seen; a window of nothing but NaN gives NaN.
 *
 * \par Memory
 * A chunk needs its input, its output and one to two intermediate images of 32 bits a voxel (64 for 64-bit types).
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
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
 * \sa GrayscaleErodeImageFilter, RenormalizedMaximumImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedMinimumImageFilter
  : public ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedMinimumImageFilter);

  using Self = RenormalizedMinimumImageFilter;
  using Superclass = ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedMinimumImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "minimum";
  }

protected:
  RenormalizedMinimumImageFilter() = default;
  ~RenormalizedMinimumImageFilter() override = default;
};
} // namespace itk

#endif
