/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedStandardDeviationImageFilter_h
#define itkRenormalizedStandardDeviationImageFilter_h

#include "itkChunkwiseBoxImageFilter.h"

namespace itk
{
/** \class RenormalizedStandardDeviationImageFilter
 * \brief The standard deviation over a box, at the image's edge over the part of the box inside the image.
 *
 * The output at a voxel is the square root of the mean square deviation of the window's voxels from their mean: the sum
 * of squares is divided by the number of voxels n, not n - 1. The window has (2 radius[a] + 1) voxels along each
 * spatial axis a.
 *
 * \par Boundary
 * Renormalized (the default): of the voxels that are both in the window and in the image. In every other boundary
 * condition the image is continued beyond its edge, and every window has the same number of voxels.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. The sums over integers of up to 32
 * bits are exact. Float is computed in float, double and 64-bit integers in double, from differences alone: an offset
 * common to all voxels does not show. Integer outputs are rounded to nearest, ties to even, and clamped. A NaN or an
 * infinity in a window gives NaN.
 *
 * \par Memory
 * A chunk needs its input and its output; with a radius above 2, up to four intermediate images of the accumulators'
 * types; with a boundary condition other than Renormalized, a copy of its input.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * Windows are merged axis by axis as in T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise
 * algorithm for computing sample variances", 1979; the renormalized boundary follows E. Wait, M. Winter, A. R. Cohen,
 * "Hydra image processor: 5-D GPU image analysis library with MATLAB and Python wrappers", Bioinformatics 35(24), 2019.
 *
 * \sa RenormalizedVarianceImageFilter BoxSigmaImageFilter NoiseImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedStandardDeviationImageFilter
  : public ChunkwiseBoxImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedStandardDeviationImageFilter);

  using Self = RenormalizedStandardDeviationImageFilter;
  using Superclass = ChunkwiseBoxImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedStandardDeviationImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "std";
  }

  /** Windows over a part of the image: SetMaskImage, SetWeightImage, SetIgnoreNaN, SetEmptyValue. */
  itkChunkwiseDomainMacro();
  itkSetMacro(EmptyValue, double);
  itkGetConstMacro(EmptyValue, double);

protected:
  RenormalizedStandardDeviationImageFilter() = default;
  ~RenormalizedStandardDeviationImageFilter() override = default;
};
} // namespace itk

#endif
