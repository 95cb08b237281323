/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseStatisticsImageSink_h
#define itkChunkwiseStatisticsImageSink_h

#include "chunkwiseExactSum.h"
#include "itkChunkwiseMacro.h"
#include "itkImageSink.h"
#include "itkNumericTraits.h"

#include <mutex>

namespace itk
{
/** \class ChunkwiseStatisticsImageSink
 * \brief The sum, minimum and maximum of an image of any size, read piece by piece.
 *
 * Update() pulls the image through the pipeline in NumberOfStreamDivisions pieces and keeps none of them. It runs on
 * the CPU: that reads memory faster than a device could be fed.
 *
 * \par Boundary
 * None.
 *
 * \par Types
 * itk::Image of 8- to 64-bit integers, float or double. The sum is that of the exact numbers, rounded once to double.
 * NaN and infinities give what addition gives; NaN is neither a minimum nor a maximum, and an image of nothing else has
 * a minimum above its maximum.
 *
 * \par Memory
 * 32 KiB a thread, and the piece that the pipeline makes.
 *
 * \par Streaming
 * Requests the pieces one after the other.
 *
 * \par Determinism
 * The same bits for every number of divisions and of threads.
 *
 * \par Source
 * Sums in a bin for each exponent: J. Demmel, Y. Hida, "Accurate and efficient floating point summation", SIAM J. Sci.
 * Comput. 25(4), 2003.
 *
 * \sa StatisticsImageFilter MinimumMaximumImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage>
class ITK_TEMPLATE_EXPORT ChunkwiseStatisticsImageSink : public ImageSink<TInputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseStatisticsImageSink);

  using Self = ChunkwiseStatisticsImageSink;
  using Superclass = ImageSink<TInputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwiseStatisticsImageSink);

  using PixelType = typename TInputImage::PixelType;
  using RegionType = typename TInputImage::RegionType;

  /** Pieces in which the image is read. Default: 1. */
  void
  SetNumberOfStreamDivisions(unsigned int count) override
  {
    Superclass::SetNumberOfStreamDivisions(count);
  }
  unsigned int
  GetNumberOfStreamDivisions() const override
  {
    return Superclass::GetNumberOfStreamDivisions();
  }

  /** Of the last update. */
  double
  GetSum() const
  {
    return m_Sum;
  }
  double
  GetMean() const
  {
    return m_Sum / static_cast<double>(m_Count);
  }
  PixelType
  GetMinimum() const
  {
    return m_Minimum;
  }
  PixelType
  GetMaximum() const
  {
    return m_Maximum;
  }
  SizeValueType
  GetCount() const
  {
    return m_Count;
  }

protected:
  ChunkwiseStatisticsImageSink() = default;
  ~ChunkwiseStatisticsImageSink() override = default;

  void
  BeforeStreamedGenerateData() override;
  void
  ThreadedStreamedGenerateData(const RegionType & region) override;
  void
  AfterStreamedGenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  std::mutex          m_Mutex;
  chunkwise::ExactSum m_Exact;
  double              m_Sum{ 0 };
  PixelType           m_Minimum{ NumericTraits<PixelType>::max() };
  PixelType           m_Maximum{ NumericTraits<PixelType>::NonpositiveMin() };
  SizeValueType       m_Count{ 0 };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkChunkwiseStatisticsImageSink.hxx"
#endif

#endif
