/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedWienerImageFilter_h
#define itkRenormalizedWienerImageFilter_h

#include "itkChunkwiseBoxImageFilter.h"

namespace itk
{
/** \class RenormalizedWienerImageFilter
 * \brief The adaptive Wiener filter: smooths where the image varies no more than its noise, at the image's edge by the
 * part of the box inside the image.
 *
 * With m the mean and v the variance of the window of (2 radius[a] + 1) voxels along each spatial axis a, the output at
 * a voxel x is m + max(v - NoiseVariance, 0) / max(v, NoiseVariance) (x - m). If the noise is not known, the mean of
 * the local variances is a common estimate: compute it from the output of RenormalizedVarianceImageFilter with the same
 * radius, by ChunkwiseStatisticsImageSink.
 *
 * \par Boundary
 * Renormalized (the default): the statistics of the voxels that are both in the window and in the image. In every other
 * boundary condition the image is continued beyond its edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double; computed as float for float, 8- and
 * 16-bit integers, as double for the others. Integer results are rounded to nearest, ties to even. A NaN makes its
 * windows NaN; where a window has an infinity the result is its mean: that infinity, or NaN where there are both.
 *
 * \par Memory
 * A chunk needs its input, its output, and four to six images of 32 bits a voxel (64 for 32- and 64-bit integers and
 * double).
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, and cut at the image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * J. S. Lee, "Digital image enhancement and noise filtering by use of local statistics", IEEE Transactions on Pattern
 * Analysis and Machine Intelligence 2(2), 1980. J. S. Lim, Two-Dimensional Signal and Image Processing, 1990.
 *
 * \sa RenormalizedMeanImageFilter, RenormalizedVarianceImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT RenormalizedWienerImageFilter : public ChunkwiseBoxImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(RenormalizedWienerImageFilter);

  using Self = RenormalizedWienerImageFilter;
  using Superclass = ChunkwiseBoxImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(RenormalizedWienerImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "wiener";
  }

  /** The variance of the noise. It must be set, or EstimateNoiseVariance be turned on. */
  void
  SetNoiseVariance(double variance)
  {
    if (!m_NoiseVarianceIsSet || m_NoiseVariance != variance)
    {
      m_NoiseVarianceIsSet = true;
      m_NoiseVariance = variance;
      this->Modified();
    }
  }
  itkGetConstMacro(NoiseVariance, double);

  /** Whether an update takes the variance of the noise from the whole input: the mean of the local variances that are
   * not NaN, summed up exactly; of those at voxels inside, with a weight above 0, if there is a mask or the like.
   * NoiseVariance is then that of the last update. Default: off. */
  itkSetMacro(EstimateNoiseVariance, bool);
  itkGetConstMacro(EstimateNoiseVariance, bool);
  itkBooleanMacro(EstimateNoiseVariance);

  std::shared_ptr<const chunkwise::Operation>
  GetOperation(const chunkwise::FilterImage & image) const override;

  /** Windows over a part of the image: SetMaskImage, SetWeightImage, SetIgnoreNaN, SetEmptyValue. */
  itkChunkwiseDomainMacro();
  itkSetMacro(EmptyValue, double);
  itkGetConstMacro(EmptyValue, double);

protected:
  RenormalizedWienerImageFilter() = default;
  ~RenormalizedWienerImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  GenerateInputRequestedRegion() override;
  void
  GenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  double m_NoiseVariance{ 0.0 };
  bool   m_NoiseVarianceIsSet{ false };
  bool   m_EstimateNoiseVariance{ false };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkRenormalizedWienerImageFilter.hxx"
#endif

#endif
