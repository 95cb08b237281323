/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkLabelMeasurementsImageSink_hxx
#define itkLabelMeasurementsImageSink_hxx

#include "itkChunkwiseErrors.h"
#include "itkChunkwiseMeasurementSpace.h"
#include "itkLabelMeasurementsImageSink.h"

#include <algorithm>

namespace itk
{

template <typename TLabelImage, typename TIntensityImage>
std::vector<double>
LabelMeasurementsImageSink<TLabelImage, TIntensityImage>::GetColumn(const std::string & name) const
{
  for (const chunkwise::MeasurementColumn & column : m_Table)
  {
    if (column.name == name)
    {
      std::vector<double> values(column.GetSize());
      for (std::size_t row = 0; row < values.size(); ++row)
      {
        values[row] = column.GetValue(row).template As<double>();
      }
      return values;
    }
  }
  std::string names;
  for (const chunkwise::MeasurementColumn & column : m_Table)
  {
    names += (names.empty() ? "" : ", ") + column.name;
  }
  itkExceptionMacro("There is no column " << name << "; there are "
                                          << (names.empty() ? "none before Update()" : names));
}

template <typename TLabelImage, typename TIntensityImage>
typename LabelMeasurementsImageSink<TLabelImage, TIntensityImage>::PropertiesType
LabelMeasurementsImageSink<TLabelImage, TIntensityImage>::GetColumnsToMake() const
{
  PropertiesType names =
    m_Properties.empty() ? chunkwise::GetDefaultProperties(this->GetIntensityImage() != nullptr) : m_Properties;
  if (std::find(names.begin(), names.end(), "label") == names.end())
  {
    names.insert(names.begin(), "label");
  }
  return names;
}

template <typename TLabelImage, typename TIntensityImage>
chunkwise::MeasurementSettings
LabelMeasurementsImageSink<TLabelImage, TIntensityImage>::MakeSettings() const
{
  chunkwise::MeasurementSettings settings;
  settings.extent = MakeChunkwiseMeasuredExtent(*this->GetInput());
  settings.dimension = ImageDimension;
  settings.labelKind = chunkwise::PixelTypeOf<typename TLabelImage::PixelType>();
  settings.hasIntensity = this->GetIntensityImage() != nullptr;
  settings.intensityKind = chunkwise::PixelTypeOf<typename TIntensityImage::PixelType>();
  settings.memory = m_HostMemoryBudget;
  chunkwise::SetPartsFor(this->GetColumnsToMake(), settings);
  settings.contacts = m_Contacts;
  return settings;
}

template <typename TLabelImage, typename TIntensityImage>
void
LabelMeasurementsImageSink<TLabelImage, TIntensityImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();
  // Before anything upstream works.
  CallChunkwise(*this, [&] { this->MakeSettings(); });
}

template <typename TLabelImage, typename TIntensityImage>
unsigned int
LabelMeasurementsImageSink<TLabelImage, TIntensityImage>::GetNumberOfInputRequestedRegions()
{
  // Nothing is read of an image without voxels: what divides regions does not end there.
  return this->GetInput()->GetLargestPossibleRegion().GetNumberOfPixels() == 0
           ? 0
           : Superclass::GetNumberOfInputRequestedRegions();
}

template <typename TLabelImage, typename TIntensityImage>
void
LabelMeasurementsImageSink<TLabelImage, TIntensityImage>::BeforeStreamedGenerateData()
{
  Superclass::BeforeStreamedGenerateData();
  m_Table.clear();
  m_ContactTable.clear();
  const TIntensityImage * const intensity = this->GetIntensityImage();
  if (intensity && intensity->GetLargestPossibleRegion() != this->GetInput()->GetLargestPossibleRegion())
  {
    itkExceptionMacro("IntensityImage: its largest possible region is "
                      << intensity->GetLargestPossibleRegion() << ", that of the labels is "
                      << this->GetInput()->GetLargestPossibleRegion());
  }
  CallChunkwise(*this, [&] {
    m_Measurements = std::make_unique<chunkwise::Measurements>(this->MakeSettings());
    m_Executor = chunkwise::MakeThreadExecutor(this->GetNumberOfWorkUnits());
  });
}

template <typename TLabelImage, typename TIntensityImage>
void
LabelMeasurementsImageSink<TLabelImage, TIntensityImage>::StreamedGenerateData(unsigned int inputRequestedRegionNumber)
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

  const auto origin = this->GetInput()->GetLargestPossibleRegion().GetIndex();
  CallChunkwise(*this, [&] {
    const chunkwise::BufferView labels = MakeChunkwiseBufferView(*this->GetInput());
    const chunkwise::Box        box = ChunkwiseBoxFromRegion(this->GetInput()->GetRequestedRegion(), origin);
    if (this->GetIntensityImage())
    {
      const chunkwise::BufferView intensity = MakeChunkwiseBufferView(*this->GetIntensityImage());
      m_Measurements->Add(labels, &intensity, box, *m_Executor, &control);
    }
    else
    {
      m_Measurements->Add(labels, nullptr, box, *m_Executor, &control);
    }
    this->UpdateProgress(static_cast<float>(inputRequestedRegionNumber + 1) /
                         static_cast<float>(this->GetNumberOfInputRequestedRegions()));
    if (control.ShouldStop())
    {
      throw chunkwise::Aborted();
    }
  });
}

template <typename TLabelImage, typename TIntensityImage>
void
LabelMeasurementsImageSink<TLabelImage, TIntensityImage>::AfterStreamedGenerateData()
{
  Superclass::AfterStreamedGenerateData();
  CallChunkwise(*this, [&] {
    const chunkwise::MeasurementSpace space = MakeChunkwiseMeasurementSpace(*this->GetInput());
    m_Table = m_Measurements->MakeTable(space, this->GetColumnsToMake());
    if (m_Contacts)
    {
      m_ContactTable = m_Measurements->MakeContacts(space);
    }
  });
  m_Measurements.reset();
  m_Executor.reset();
}

template <typename TLabelImage, typename TIntensityImage>
void
LabelMeasurementsImageSink<TLabelImage, TIntensityImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Properties:";
  for (const std::string & property : m_Properties)
  {
    os << " " << property;
  }
  os << std::endl;
  os << indent << "Contacts: " << (m_Contacts ? "On" : "Off") << std::endl;
  os << indent << "HostMemoryBudget: " << m_HostMemoryBudget << std::endl;
  os << indent << "NumberOfObjects: " << this->GetNumberOfObjects() << std::endl;
}

} // namespace itk

#endif
