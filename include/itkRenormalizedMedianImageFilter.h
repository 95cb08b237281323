/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedMedianImageFilter_h
#define itkRenormalizedMedianImageFilter_h

#include "itkChunkwiseBoxImageFilter.h"

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
 * A chunk needs its input and its output; another input where the image is continued beyond its edge on a device.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * CPU: the bits of the median from the highest on, many voxels at once. CUDA: selection from sorted lists of planes, D.
 * E. Knuth, The Art of Computer Programming 3, section 5.2.2 (merge exchange); windows of a radius of 4 or 5 by sliding
 * histograms (T. S. Huang, G. J. Yang, G. Y. Tang, 1979) of sorted tiles, larger ones as on the CPU. The renormalized
 * boundary follows the Hydra Image Processor (E. Wait, M. Winter, A. R. Cohen, Bioinformatics 35(24), 2019).
 *
 * \sa MedianImageFilter, RenormalizedPercentileImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedMedianImageFilter : public ChunkwiseBoxImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedMedianImageFilter);

  using Self = RenormalizedMedianImageFilter;
  using Superclass = ChunkwiseBoxImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedMedianImageFilter);

protected:
  RenormalizedMedianImageFilter() = default;
  ~RenormalizedMedianImageFilter() override = default;

  std::shared_ptr<const chunkwise::Operation>
  MakeOperation(const chunkwise::Coordinates & imageExtent) const override;
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkRenormalizedMedianImageFilter.hxx"
#endif

#endif
