/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedSumImageFilter_h
#define itkRenormalizedSumImageFilter_h

#include "itkChunkwiseBoxImageFilter.h"

namespace itk
{
/** \class RenormalizedSumImageFilter
 * \brief The sum over a box, at the image's edge over the part of the box inside the image.
 *
 * The output at a voxel is the sum over the window of (2 radius[a] + 1) voxels along each spatial axis a. The time per
 * voxel does not depend on the radius.
 *
 * \par Boundary
 * Renormalized (the default): the sum of the voxels that are both in the window and in the image; the other boundary
 * conditions give every window the same number of voxels.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double; integers of up to 32 bits to any
 * integers. Sums of integers are exact, and clamped to the range of an integer output; where that is another type than
 * the input's, the filter warns of voxels that were clamped. Float and double are summed in their own precision along
 * one axis after the other: a sum beyond that is infinite. A NaN makes NaN the windows that have it and no others; an
 * infinity makes them that infinity, or NaN where there are both.
 *
 * \par Memory
 * A chunk needs its input, its output and one to two intermediate images of the accumulator's type.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * The renormalized boundary follows the Hydra Image Processor (E. Wait, M. Winter, A. R. Cohen, "Hydra image processor:
 * 5-D GPU image analysis library with MATLAB and Python wrappers", Bioinformatics 35(24), 2019).
 *
 * \sa RenormalizedMeanImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedSumImageFilter : public ChunkwiseBoxImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedSumImageFilter);

  using Self = RenormalizedSumImageFilter;
  using Superclass = ChunkwiseBoxImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedSumImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "sum";
  }

  /** Windows over a part of the image: SetMaskImage, SetWeightImage, SetIgnoreNaN. */
  itkChunkwiseDomainMacro();

protected:
  RenormalizedSumImageFilter() = default;
  ~RenormalizedSumImageFilter() override = default;
};
} // namespace itk

#endif
