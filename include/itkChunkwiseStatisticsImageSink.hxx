/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseStatisticsImageSink_hxx
#define itkChunkwiseStatisticsImageSink_hxx

#include "chunkwiseError.h"
#include "itkChunkwiseGeometry.h"
#include "itkChunkwiseStatisticsImageSink.h"

namespace itk
{

template <typename TInputImage>
template <typename TGet>
auto
ChunkwiseStatisticsImageSink<TInputImage>::Get(TGet && get) const
  -> decltype(get(std::declval<const chunkwise::ImageStatistics &>()))
{
  try
  {
    return get(m_Statistics);
  }
  catch (const chunkwise::Error & error)
  {
    itkExceptionMacro(<< error.what());
  }
}

template <typename TInputImage>
double
ChunkwiseStatisticsImageSink<TInputImage>::GetMean() const
{
  return this->Get([](const chunkwise::ImageStatistics & statistics) { return statistics.GetMean(); });
}

template <typename TInputImage>
double
ChunkwiseStatisticsImageSink<TInputImage>::GetVariance() const
{
  return this->Get([](const chunkwise::ImageStatistics & statistics) { return statistics.GetVariance(); });
}

template <typename TInputImage>
double
ChunkwiseStatisticsImageSink<TInputImage>::GetStandardDeviation() const
{
  return this->Get([](const chunkwise::ImageStatistics & statistics) { return statistics.GetStandardDeviation(); });
}

template <typename TInputImage>
auto
ChunkwiseStatisticsImageSink<TInputImage>::GetMinimum() const -> PixelType
{
  return this->Get(
    [](const chunkwise::ImageStatistics & statistics) { return statistics.GetMinimum().template As<PixelType>(); });
}

template <typename TInputImage>
auto
ChunkwiseStatisticsImageSink<TInputImage>::GetMaximum() const -> PixelType
{
  return this->Get(
    [](const chunkwise::ImageStatistics & statistics) { return statistics.GetMaximum().template As<PixelType>(); });
}

template <typename TInputImage>
unsigned int
ChunkwiseStatisticsImageSink<TInputImage>::GetNumberOfInputRequestedRegions()
{
  // Nothing is read of an image without voxels: what divides regions does not end there.
  return this->GetInput()->GetLargestPossibleRegion().GetNumberOfPixels() == 0
           ? 0
           : Superclass::GetNumberOfInputRequestedRegions();
}

template <typename TInputImage>
void
ChunkwiseStatisticsImageSink<TInputImage>::BeforeStreamedGenerateData()
{
  Superclass::BeforeStreamedGenerateData();
  m_Total.Reset();
  m_Statistics = m_Total.Get();
}

template <typename TInputImage>
void
ChunkwiseStatisticsImageSink<TInputImage>::StreamedGenerateData(unsigned int inputRequestedRegionNumber)
{
  Superclass::StreamedGenerateData(inputRequestedRegionNumber);
  if (this->GetAbortGenerateData())
  {
    ProcessAborted aborted(__FILE__, __LINE__);
    aborted.SetLocation(ITK_LOCATION);
    aborted.SetDescription("AbortGenerateData was set");
    throw aborted;
  }
}

template <typename TInputImage>
void
ChunkwiseStatisticsImageSink<TInputImage>::ThreadedStreamedGenerateData(const RegionType & region)
{
  class Control : public chunkwise::RunControl
  {
  public:
    explicit Control(const Self & sink)
      : m_Sink(sink)
    {}
    bool
    ShouldStop() const override
    {
      return m_Sink.GetAbortGenerateData();
    }
    void
    AddFinishedVoxels(std::int64_t) override
    {}

  private:
    const Self & m_Sink;
  } control(*this);

  const TInputImage & input = *this->GetInput();
  const auto          origin = input.GetLargestPossibleRegion().GetIndex();
  // The engine only reads its inputs; its views serve both directions.
  const chunkwise::BufferView      view = chunkwise::DenseView(const_cast<PixelType *>(input.GetBufferPointer()),
                                                          chunkwise::PixelTypeOf<PixelType>(),
                                                          ChunkwiseBoxFromRegion(input.GetBufferedRegion(), origin));
  chunkwise::StatisticsAccumulator part(view.kind);
  try
  {
    part.Add(view, ChunkwiseBoxFromRegion(region, origin), nullptr, &control);
  }
  catch (const chunkwise::Aborted &)
  {
    // Who waits for all threads says so.
    return;
  }
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Total.Add(part);
}

template <typename TInputImage>
void
ChunkwiseStatisticsImageSink<TInputImage>::AfterStreamedGenerateData()
{
  Superclass::AfterStreamedGenerateData();
  m_Statistics = m_Total.Get();
}

template <typename TInputImage>
void
ChunkwiseStatisticsImageSink<TInputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  using PrintType = typename NumericTraits<PixelType>::PrintType;
  os << indent << "Count: " << this->GetCount() << std::endl;
  os << indent << "NumberOfNaNs: " << this->GetNumberOfNaNs() << std::endl;
  os << indent << "Sum: " << this->GetSum() << std::endl;
  if (this->GetCount() > 0)
  {
    os << indent << "Variance: " << this->GetVariance() << std::endl;
    os << indent << "Minimum: " << static_cast<PrintType>(this->GetMinimum()) << std::endl;
    os << indent << "Maximum: " << static_cast<PrintType>(this->GetMaximum()) << std::endl;
  }
}

} // namespace itk

#endif
