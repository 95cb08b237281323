/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkLocalThresholdImageFilter_h
#define itkLocalThresholdImageFilter_h

#include "itkChunkwiseBoxImageFilter.h"
#include "itkLocalThresholdEnums.h"

namespace itk
{
/** \class LocalThresholdImageFilter
 * \brief Pixels above a threshold that the window around each of them gives.
 *
 * The output is 1 where a pixel is above its threshold and 0 elsewhere, or, with the Result Threshold, the thresholds.
 * With the mean m and the standard deviation s of the window of (2 radius[a] + 1) voxels along each spatial axis a,
 * thresholds are:
 * - Mean, Median, Gaussian: that of the window, minus Offset. The Gaussian has a sigma of a third of the radius, and
 *   ends at four sigmas.
 * - Niblack: m - K s.
 * - Sauvola: m (1 + K (s / R - 1)).
 * - Phansalkar: m (1 + P exp(-Q m / (2 R)) + K (s / R - 1)).
 * - Bernsen: the middle between the window's minimum and its maximum, itself above. If these differ by less than
 *   Contrast, the output is 1 if that middle is at least Level.
 *
 * NaN is 0. With a MaskImage windows see only the pixels where it is not 0, and the output is 0 at the others.
 *
 * \par Boundary
 * Renormalized (the default): statistics of the pixels that are both in the window and in the image. In every other
 * boundary condition the image is continued beyond its edge.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to any of these. Thresholds are computed as float for float, 8- and
 * 16-bit integers, as double for the others; as an integer output they are rounded to nearest, ties to even, and
 * clamped.
 *
 * \par Memory
 * A chunk needs its input, its output, and three to four images of 32 bits a voxel (64 for 32- and 64-bit integers and
 * double); with a mask three to six more.
 *
 * \par Streaming
 * Requests the output's requested region padded by the radius, four thirds of it for the Gaussian, and cut at the
 * image.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device.
 *
 * \par Source
 * J. Bernsen, "Dynamic thresholding of gray-level images", ICPR 1986; W. Niblack, An Introduction to Digital Image
 * Processing, 1986; J. Sauvola, M. Pietikainen, "Adaptive document image binarization", Pattern Recognition 33(2),
 * 2000; N. Phansalkar, S. More, A. Sabale, M. Joshi, "Adaptive local thresholding for detection of nuclei in diversity
 * stained cytology images", ICCSP 2011.
 *
 * \sa GlobalThresholdImageFilter, RenormalizedMeanImageFilter, RenormalizedStandardDeviationImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = Image<unsigned char, TInputImage::ImageDimension>>
class ITK_TEMPLATE_EXPORT LocalThresholdImageFilter : public ChunkwiseBoxImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(LocalThresholdImageFilter);

  using Self = LocalThresholdImageFilter;
  using Superclass = ChunkwiseBoxImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(LocalThresholdImageFilter);

  static_assert(std::is_floating_point<typename Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::OutputPixelType>::value,
                "classes are numbers");

  const char *
  GetFilterName() const override
  {
    return "local-threshold";
  }

  /** How the threshold follows from the window. Default: Mean. */
  using MethodEnum = LocalThresholdEnums::Method;
  itkSetEnumMacro(Method, MethodEnum);
  itkGetEnumMacro(Method, MethodEnum);

  /** Classes or thresholds. Default: Class. */
  using ResultEnum = LocalThresholdEnums::Result;
  itkSetEnumMacro(Result, ResultEnum);
  itkGetEnumMacro(Result, ResultEnum);

  /** How far the threshold is below the statistic; of Mean, Median and Gaussian. Default: 0. */
  itkSetMacro(Offset, double);
  itkGetConstMacro(Offset, double);

  /** How much the standard deviation counts; of Niblack, Sauvola and Phansalkar. Default: NaN, which stands for 0.2,
   * of Phansalkar 0.25. */
  itkSetMacro(K, double);
  itkGetConstMacro(K, double);

  /** The standard deviation with which K has no effect, above 0; of Sauvola and Phansalkar. Default: NaN, which stands
   * for half of the pixel type's range, of float and double for 1, of Phansalkar for 0.5. */
  itkSetMacro(R, double);
  itkGetConstMacro(R, double);

  /** How much the threshold rises in dark windows, and how fast that ends in brighter ones; of Phansalkar. Default: 2
   * and 10. */
  itkSetMacro(P, double);
  itkGetConstMacro(P, double);
  itkSetMacro(Q, double);
  itkGetConstMacro(Q, double);

  /** The least range of values in a window that has both classes; of Bernsen. Default: 15. */
  itkSetMacro(Contrast, double);
  itkGetConstMacro(Contrast, double);

  /** From which middle on windows of a smaller range are 1; of Bernsen. Default: NaN, which stands for the middle of
   * the pixel type's range, of float and double for 0.5. */
  itkSetMacro(Level, double);
  itkGetConstMacro(Level, double);

  /** Windows see the pixels alone where this image is not 0; the output is 0 elsewhere. Default: none. */
  using MaskImageType = typename Superclass::MaskImageType;
  virtual void
  SetMaskImage(const MaskImageType * image)
  {
    this->SetDomainImage("MaskImage", 1, image);
  }
  const MaskImageType *
  GetMaskImage() const
  {
    return this->GetDomainMask();
  }

protected:
  LocalThresholdImageFilter() = default;
  ~LocalThresholdImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  /** The operation gives the output's kind itself. */
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>();
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  MethodEnum m_Method{ MethodEnum::Mean };
  ResultEnum m_Result{ ResultEnum::Class };
  double     m_Offset{ 0.0 };
  double     m_K{ std::numeric_limits<double>::quiet_NaN() };
  double     m_R{ std::numeric_limits<double>::quiet_NaN() };
  double     m_P{ 2.0 };
  double     m_Q{ 10.0 };
  double     m_Contrast{ 15.0 };
  double     m_Level{ std::numeric_limits<double>::quiet_NaN() };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkLocalThresholdImageFilter.hxx"
#endif

#endif
