/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseStatisticsImageSink_h
#define itkChunkwiseStatisticsImageSink_h

#include "chunkwiseStatistics.h"
#include "itkChunkwiseMacro.h"
#include "itkImageSink.h"

#include <mutex>

namespace itk
{
/** \class ChunkwiseStatisticsImageSink
 * \brief The sum, mean, variance, minimum and maximum of an image of any size, read piece by piece.
 *
 * Update() pulls the image through the pipeline in NumberOfStreamDivisions pieces and keeps none of them. It runs on
 * the CPU: that reads memory faster than a device could be fed. SetAbortGenerateData ends it within a piece, with
 * itk::ProcessAborted.
 *
 * \par Boundary
 * None.
 *
 * \par Types
 * itk::Image of 8- to 64-bit integers, float or double. NaN is counted and else skipped. The sum is that of the exact
 * numbers, rounded once to double; the variance, which is the mean square deviation from the mean (over n, not over n -
 * 1 as itk::StatisticsImageFilter has it), is rounded once too: see chunkwise::ImageStatistics. An infinity makes the
 * sum that infinity, or NaN where there are both, and the variance NaN. An image without numbers, empty or of nothing
 * but NaN, has the sum 0, and no other value: they throw.
 *
 * \par Memory
 * 4 KiB a thread, and the piece that the pipeline makes.
 *
 * \par Streaming
 * Requests the pieces one after the other. An image with an empty axis requests nothing.
 *
 * \par Determinism
 * The same bits for every number of divisions and of threads.
 *
 * \par Source
 * Sums as long integers: U. W. Kulisch, "Very fast and exact accumulation of products", Computing 91, 2011.
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

  // The statistics of the last update.

  /** Voxels that are numbers: all but NaN. */
  SizeValueType
  GetCount() const
  {
    return static_cast<SizeValueType>(m_Statistics.GetCount());
  }
  SizeValueType
  GetNumberOfNaNs() const
  {
    return static_cast<SizeValueType>(m_Statistics.GetNumberOfNaNs());
  }
  double
  GetSum() const
  {
    return m_Statistics.GetSum();
  }
  /** Throws itk::ExceptionObject if there are no numbers, as the getters below do. */
  double
  GetMean() const;
  double
  GetVariance() const;
  double
  GetStandardDeviation() const;
  PixelType
  GetMinimum() const;
  PixelType
  GetMaximum() const;

protected:
  ChunkwiseStatisticsImageSink() = default;
  ~ChunkwiseStatisticsImageSink() override = default;

  unsigned int
  GetNumberOfInputRequestedRegions() override;
  void
  BeforeStreamedGenerateData() override;
  void
  StreamedGenerateData(unsigned int inputRequestedRegionNumber) override;
  void
  ThreadedStreamedGenerateData(const RegionType & region) override;
  void
  AfterStreamedGenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  /** A value of the statistics; the error becomes an itk::ExceptionObject. */
  template <typename TGet>
  auto
  Get(TGet && get) const -> decltype(get(std::declval<const chunkwise::ImageStatistics &>()));

  std::mutex                       m_Mutex;
  chunkwise::StatisticsAccumulator m_Total{ chunkwise::PixelTypeOf<PixelType>() };
  chunkwise::ImageStatistics       m_Statistics{ chunkwise::PixelTypeOf<PixelType>() };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkChunkwiseStatisticsImageSink.hxx"
#endif

#endif
