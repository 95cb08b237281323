/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedMedianImageFilter_h
#define itkRenormalizedMedianImageFilter_h

#include "itkChunkwiseMorphologyImageFilter.h"

namespace itk
{
/** \class RenormalizedMedianImageFilter
 * \brief The median over a box, at the image's edge over the part of the box inside the image.
 *
 * The output at a voxel is the median of the window of (2 radius[a] + 1) voxels along each spatial axis a; of an even
 * number of voxels the lower of the two in the middle.
 *
 * \par Boundary
 * Renormalized (the default): the median of the voxels that are both in the window and in the image. ZeroFluxNeumann:
 * what MedianImageFilter gives. In every other boundary condition too the image is continued beyond its edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Exact: the result is one of the
 * voxels. -0 is less than +0. NaN are not seen; a window of nothing but NaN gives NaN.
 *
 * \par Memory
 * A chunk needs its input and its output; another input where the image is continued beyond its edge on a device. Large
 * windows take, on a device, up to 256 MiB beside it, or 132 times the voxels that 16 x 16 x 16 windows have, of 8
 * bytes each, if that is more; on the CPU up to 44 bytes for each voxel that 64 x 16 x 16 windows have, for every
 * thread.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * Small windows on the CPU: the bits of the median from the highest on, many voxels at once. Small windows on CUDA:
 * selection from sorted lists of planes, D. E. Knuth, The Art of Computer Programming 3, section 5.2.2 (merge
 * exchange). Large windows: the voxels of a tile of outputs are sorted, and counted in that order for all outputs at
 * once, by summing up what they add at the corners of the box of outputs whose windows have them (F. C. Crow,
 * "Summed-area tables for texture mapping", 1984, the other way round): time grows far slower than the
 * window. Radii above 56 (CUDA) or so (CPU) are found bit by bit. The renormalized boundary follows the Hydra Image
 * Processor (E. Wait, M. Winter, A. R. Cohen, Bioinformatics 35(24), 2019).
 *
 * \sa MedianImageFilter, RenormalizedPercentileImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedMedianImageFilter
  : public ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedMedianImageFilter);

  using Self = RenormalizedMedianImageFilter;
  using Superclass = ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedMedianImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "median";
  }

  /** Windows over a part of the image: SetMaskImage, SetIgnoreNaN, SetEmptyValue; see itkChunkwiseDomainMacro. NaN are
   * never seen; with a mask or IgnoreNaN the result of windows that have nothing else is EmptyValue. */
  itkChunkwiseIgnoreNaNMacro();

protected:
  RenormalizedMedianImageFilter() = default;
  ~RenormalizedMedianImageFilter() override = default;
};
} // namespace itk

#endif
