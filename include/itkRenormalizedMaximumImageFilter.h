/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedMaximumImageFilter_h
#define itkRenormalizedMaximumImageFilter_h

#include "itkChunkwiseMorphologyImageFilter.h"

namespace itk
{
/** \class RenormalizedMaximumImageFilter
 * \brief The maximum over a box: dilation, at the image's edge over the part of the box inside the image.
 *
 * The output at a voxel is the maximum of the window of (2 radius[a] + 1) voxels along each spatial axis a. The time
 * per voxel does not depend on the radius. SetKernel takes any flat structuring element instead: the window then is the
 * voxels at its offsets.
 *
 * \par Boundary
 * Renormalized (the default): the maximum of the voxels that are both in the window and in the image, which is what
 * GrayscaleDilateImageFilter gives with its default boundary. The other boundary conditions extend the image.
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
 * \sa GrayscaleDilateImageFilter, RenormalizedMinimumImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedMaximumImageFilter
  : public ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedMaximumImageFilter);

  using Self = RenormalizedMaximumImageFilter;
  using Superclass = ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedMaximumImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "maximum";
  }

protected:
  RenormalizedMaximumImageFilter() = default;
  ~RenormalizedMaximumImageFilter() override = default;
};
} // namespace itk

#endif
