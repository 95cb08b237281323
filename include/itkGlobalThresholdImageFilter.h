/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkGlobalThresholdImageFilter_h
#define itkGlobalThresholdImageFilter_h

#include "itkChunkwiseImageToImageFilter.h"
#include "itkGlobalThresholdEnums.h"
#include "itkNumericTraits.h"

namespace itk
{
/** \class GlobalThresholdImageFilter
 * \brief Voxels above a threshold that the histogram of the whole image gives, or within a range of values.
 *
 * The output is 1 at voxels above the threshold and 0 elsewhere; by the method MultiOtsu, and where several Thresholds
 * are set, it is the number of thresholds that a voxel is above, so classes from 0 on. By the method Fixed it is 1
 * where Lower <= voxel <= Upper. NaN is 0. With a MaskImage only the voxels where that is not 0 count in the histogram,
 * and the output is 0 elsewhere. chunkwise::ComputeThresholds defines the methods and names their papers.
 *
 * The histogram has a bin for each value of integers, where there are up to 65536 between the least voxel and the
 * largest; else NumberOfBins, or 256, between the least finite voxel and the largest.
 *
 * \par Boundary
 * There is none: an output voxel depends on the voxel of the same index, and on the histogram.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double; to any of these, which has as many numbers as there are classes.
 *
 * \par Memory
 * A chunk needs its input and its output; while a histogram is taken, up to 512 KiB for each thread. With a MaskImage
 * it also takes three to four images of 8 bytes a voxel of a chunk.
 *
 * \par Streaming
 * Requests the output's requested region; where the histogram is needed, the whole input, whose buffer a streaming
 * pipeline then holds. ChunkwiseFileToFile and the program read the image in pieces, once or twice for the histogram
 * and once for the output.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device: counts are
 * integers, and the threshold is computed once on the host.
 *
 * \par Source
 * M. Sezgin, B. Sankur, "Survey over image thresholding techniques and quantitative performance evaluation", Journal of
 * Electronic Imaging 13(1), 2004; chunkwise::ComputeThresholds has the source of each method.
 *
 * \sa HistogramThresholdImageFilter, BinaryThresholdImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = Image<unsigned char, TInputImage::ImageDimension>>
class ITK_TEMPLATE_EXPORT GlobalThresholdImageFilter : public ChunkwiseImageToImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(GlobalThresholdImageFilter);

  using Self = GlobalThresholdImageFilter;
  using Superclass = ChunkwiseImageToImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;
  using InputPixelType = typename Superclass::InputPixelType;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(GlobalThresholdImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  static_assert(std::is_floating_point<typename Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::OutputPixelType>::value,
                "classes are numbers");

  const char *
  GetFilterName() const override
  {
    return "threshold";
  }

  /** How the threshold follows from the histogram. Default: Otsu. */
  using MethodEnum = GlobalThresholdEnums::Method;
  itkSetEnumMacro(Method, MethodEnum);
  itkGetEnumMacro(Method, MethodEnum);

  /** Thresholds that are known, ascending: no histogram is taken. Empty, the default: the method finds them. */
  using ThresholdsType = std::vector<double>;
  void
  SetThresholds(const ThresholdsType & thresholds);
  /** The thresholds that were set, or, after an update, the thresholds that the method has found. */
  const ThresholdsType &
  GetThresholds() const
  {
    return m_Thresholds.empty() ? m_Found : m_Thresholds;
  }
  /** The first one; 0 if there is none yet. */
  double
  GetThreshold() const
  {
    return this->GetThresholds().empty() ? 0.0 : this->GetThresholds().front();
  }

  /** Classes of the method MultiOtsu, 2 to 256. Default: 3. */
  itkSetMacro(NumberOfClasses, int);
  itkGetConstMacro(NumberOfClasses, int);

  /** Bins of the histogram, 2 to 65536; 0, the default: see above. */
  itkSetMacro(NumberOfBins, int);
  itkGetConstMacro(NumberOfBins, int);

  /** The range of the method Fixed. Default: all finite values. */
  itkSetMacro(Lower, InputPixelType);
  itkGetConstMacro(Lower, InputPixelType);
  itkSetMacro(Upper, InputPixelType);
  itkGetConstMacro(Upper, InputPixelType);

  /** Voxels count where this image is not 0; the output is 0 elsewhere. Default: none. */
  using MaskImageType = Image<unsigned char, ImageDimension>;
  itkSetInputMacro(MaskImage, MaskImageType);
  itkGetInputMacro(MaskImage, MaskImageType);

  std::shared_ptr<const chunkwise::Operation>
  GetOperation(const chunkwise::FilterImage & image) const override;

protected:
  GlobalThresholdImageFilter();
  ~GlobalThresholdImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  /** The operation gives the output's kind itself. */
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>();
  }
  chunkwise::BufferView
  GetInputView(unsigned int i) const override;
  chunkwise::PixelType
  GetInputKind(unsigned int i) const override;
  void
  GenerateInputRequestedRegion() override;
  void
  GenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  bool
  NeedsHistogram() const
  {
    return m_Method != MethodEnum::Fixed && m_Thresholds.empty();
  }

  MethodEnum     m_Method{ MethodEnum::Otsu };
  ThresholdsType m_Thresholds;
  ThresholdsType m_Found; ///< by the last update
  int            m_NumberOfClasses{ 3 };
  int            m_NumberOfBins{ 0 };
  InputPixelType m_Lower{ NumericTraits<InputPixelType>::NonpositiveMin() };
  InputPixelType m_Upper{ NumericTraits<InputPixelType>::max() };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkGlobalThresholdImageFilter.hxx"
#endif

#endif
