/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedPercentileImageFilter_h
#define itkRenormalizedPercentileImageFilter_h

#include "itkChunkwiseMorphologyImageFilter.h"

namespace itk
{
/** \class RenormalizedPercentileImageFilter
 * \brief A percentile over a box, at the image's edge over the part of the box inside the image.
 *
 * The result is one of the n voxels of the window of (2 radius[a] + 1) voxels along each spatial axis a: in ascending
 * order that with number floor(Percentile / 100 (n - 1)), from 0 on: 0 is the minimum, 50
 * RenormalizedMedianImageFilter's median, 100 the maximum.
 *
 * \par Boundary
 * Renormalized (the default): of the voxels that are both in the window and in the image. In every other boundary
 * condition the image is continued beyond its edge.
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
 * As RenormalizedMedianImageFilter.
 *
 * \sa RankImageFilter, RenormalizedMedianImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedPercentileImageFilter
  : public ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedPercentileImageFilter);

  using Self = RenormalizedPercentileImageFilter;
  using Superclass = ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedPercentileImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "percentile";
  }

  /** Windows over a part of the image: SetMaskImage, SetIgnoreNaN, SetEmptyValue; see itkChunkwiseDomainMacro. NaN are
   * never seen; with a mask or IgnoreNaN the result of windows that have nothing else is EmptyValue. */
  itkChunkwiseIgnoreNaNMacro();

  /** From 0 to 100. Default: 50. */
  itkSetMacro(Percentile, double);
  itkGetConstMacro(Percentile, double);

protected:
  RenormalizedPercentileImageFilter() = default;
  ~RenormalizedPercentileImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  double m_Percentile{ 50.0 };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkRenormalizedPercentileImageFilter.hxx"
#endif

#endif
