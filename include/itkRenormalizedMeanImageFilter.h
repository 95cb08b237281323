/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedMeanImageFilter_h
#define itkRenormalizedMeanImageFilter_h

#include "itkChunkwiseBoxImageFilter.h"

namespace itk
{
/** \class RenormalizedMeanImageFilter
 * \brief The mean over a box, at the image's edge over the part of the box inside the image.
 *
 * The output at a voxel is the sum over the window of (2 radius[a] + 1) voxels along each spatial axis a, divided by
 * the number of voxels summed. The time per voxel does not depend on the radius.
 *
 * \par Boundary
 * Renormalized (the default): the window is cut at the image's edge and the sum divided by the number of voxels that
 * are left, which neither darkens the edge (as padding by zero does) nor counts edge voxels more than once (as padding
 * by the last value does). In the boundary condition ZeroFluxNeumann the window is that of itk::MeanImageFilter.
 *
 * \par Differences from ITK
 * itk::MeanImageFilter cuts the fraction off the mean of integers, towards zero; here it is rounded to nearest, ties to
 * even. itk::BoxMeanImageFilter has the renormalized boundary too, and cuts fractions off.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Means of integers are exact, rounded
 * to nearest with ties to even for integer outputs. Float and double are summed in their own precision along one axis
 * after the other. If a sum of float overflows, the window is summed in double, so that the mean of finite voxels is
 * finite, with a mask or weights too. A NaN makes NaN the windows that have it and no others; an infinity makes them
 * that infinity, or NaN where there are both.
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
 * \sa MeanImageFilter BoxMeanImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedMeanImageFilter : public ChunkwiseBoxImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedMeanImageFilter);

  using Self = RenormalizedMeanImageFilter;
  using Superclass = ChunkwiseBoxImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedMeanImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "mean";
  }

  /** Windows over a part of the image: SetMaskImage, SetWeightImage, SetIgnoreNaN, SetEmptyValue. */
  itkChunkwiseDomainMacro();
  itkSetMacro(EmptyValue, double);
  itkGetConstMacro(EmptyValue, double);

protected:
  RenormalizedMeanImageFilter() = default;
  ~RenormalizedMeanImageFilter() override = default;
};
} // namespace itk

#endif
