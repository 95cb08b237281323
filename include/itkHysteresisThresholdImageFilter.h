/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHysteresisThresholdImageFilter_h
#define itkHysteresisThresholdImageFilter_h

#include "itkHeapReconstructionImageFilter.h"

namespace itk
{
/** \class HysteresisThresholdImageFilter
 * \brief Pixels above a low threshold that are connected to one above a high threshold.
 *
 * The output is 1 at pixels above Low from which a path of neighbours above Low leads to one above High, and 0
 * elsewhere. Comparisons are exact, and strict; NaN is 0.
 *
 * \par Boundary
 * There is none: the image's edge lets nothing through.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to any of these.
 *
 * \par Memory
 * The input, the output, two images of the output's type between the steps, and what the base class needs.
 *
 * \par Streaming
 * The output's requested region becomes whole along the axes along which neighbours lie. ChunkwiseFileToFile and the
 * program run on images larger than memory.
 *
 * \par Determinism
 * The same bits for every division into chunks, number of threads and device.
 *
 * \par Source
 * J. Canny, "A computational approach to edge detection", IEEE Transactions on Pattern Analysis and Machine
 * Intelligence 8(6), 1986.
 *
 * \sa GlobalThresholdImageFilter, HeapHMaximaImageFilter, DoubleThresholdImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = Image<unsigned char, TInputImage::ImageDimension>>
class ITK_TEMPLATE_EXPORT HysteresisThresholdImageFilter
  : public HeapReconstructionImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HysteresisThresholdImageFilter);

  using Self = HysteresisThresholdImageFilter;
  using Superclass = HeapReconstructionImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(HysteresisThresholdImageFilter);

  static_assert(std::is_floating_point<typename Superclass::OutputPixelType>::value ||
                  std::is_integral<typename Superclass::OutputPixelType>::value,
                "classes are numbers");

  const char *
  GetFilterName() const override
  {
    return "hysteresis";
  }

  /** All pixels of the result are above Low, and at least one of each connected part is above High, which is not less.
   * Default: 0 and 0. */
  itkSetMacro(Low, double);
  itkGetConstMacro(Low, double);
  itkSetMacro(High, double);
  itkGetConstMacro(High, double);

protected:
  HysteresisThresholdImageFilter() = default;
  ~HysteresisThresholdImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override
  {
    chunkwise::FilterParameters parameters = Superclass::MakeParameters();
    parameters.SetReal("Low", m_Low);
    parameters.SetReal("High", m_High);
    return parameters;
  }
  /** The operation gives the output's kind itself. */
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>();
  }
  void
  PrintSelf(std::ostream & os, Indent indent) const override
  {
    Superclass::PrintSelf(os, indent);
    os << indent << "Low: " << m_Low << std::endl;
    os << indent << "High: " << m_High << std::endl;
  }

private:
  double m_Low{ 0.0 };
  double m_High{ 0.0 };
};
} // namespace itk

#endif
