/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSelectLabelsImageFilter_hxx
#define itkSelectLabelsImageFilter_hxx

#include "itkChunkwiseErrors.h"
#include "itkChunkwiseExecutor.h"
#include "itkChunkwiseMeasurementSpace.h"
#include "itkChunkwiseMonitor.h"
#include "itkImageRegionSplitterSlowDimension.h"
#include "itkSelectLabelsImageFilter.h"

#include <algorithm>

namespace itk
{

template <typename TLabelImage>
void
SelectLabelsImageFilter<TLabelImage>::SetConditions(const ConditionsType & conditions)
{
  if (m_Conditions != conditions)
  {
    m_Conditions = conditions;
    this->Modified();
  }
}

template <typename TLabelImage>
void
SelectLabelsImageFilter<TLabelImage>::SetReplacements(const ReplacementsType & replacements)
{
  if (m_Replacements != replacements)
  {
    m_Replacements = replacements;
    this->Modified();
  }
}

template <typename TLabelImage>
void
SelectLabelsImageFilter<TLabelImage>::AddReplacement(LabelType oldLabel, LabelType newLabel)
{
  ReplacementsType replacements = m_Replacements;
  replacements[oldLabel] = newLabel;
  this->SetReplacements(replacements);
}

template <typename TLabelImage>
SizeValueType
SelectLabelsImageFilter<TLabelImage>::GetNumberOfKeptLabels() const
{
  return m_Map ? static_cast<SizeValueType>(m_Map->GetCount()) : 0;
}

template <typename TLabelImage>
chunkwise::LabelSelection
SelectLabelsImageFilter<TLabelImage>::MakeSelection() const
{
  chunkwise::LabelSelection selection;
  for (const std::string & text : m_Conditions)
  {
    selection.conditions.push_back(chunkwise::LabelCondition::FromText(text));
  }
  using Comparison = chunkwise::LabelCondition::Comparison;
  const auto compare = [&](const char * column, Comparison comparison, SizeValueType value) {
    chunkwise::LabelCondition condition;
    condition.column = column;
    condition.comparison = comparison;
    condition.value = chunkwise::PixelValue(static_cast<std::int64_t>(value));
    selection.conditions.push_back(condition);
  };
  // No image has more voxels than a signed number.
  const auto most = static_cast<SizeValueType>(NumericTraits<std::int64_t>::max());
  if (m_MinimumSize > 0)
  {
    compare("num_pixels", Comparison::GreaterOrEqual, std::min(m_MinimumSize, most));
  }
  if (m_MaximumSize < most)
  {
    compare("num_pixels", Comparison::LessOrEqual, m_MaximumSize);
  }
  if (m_RemoveBorder)
  {
    compare("touches_border", Comparison::Equal, 0);
  }
  selection.keepLargest = static_cast<std::int64_t>(std::min(m_KeepLargest, most));
  selection.relabel = m_Relabel;
  return selection;
}

template <typename TLabelImage>
chunkwise::MeasurementSettings
SelectLabelsImageFilter<TLabelImage>::MakeSettings() const
{
  chunkwise::MeasurementSettings settings;
  settings.extent = MakeChunkwiseMeasuredExtent(*this->GetInput());
  settings.dimension = ImageDimension;
  settings.labelKind = chunkwise::PixelTypeOf<LabelType>();
  settings.memory = m_HostMemoryBudget;
  chunkwise::SetPartsFor(chunkwise::GetPropertiesOf(this->MakeSelection()), settings);
  return settings;
}

template <typename TLabelImage>
chunkwise::LabelTable
SelectLabelsImageFilter<TLabelImage>::MakeTable() const
{
  std::vector<chunkwise::LabelTable::Pair> pairs;
  for (const auto & [oldLabel, newLabel] : m_Replacements)
  {
    pairs.emplace_back(chunkwise::PixelValue(oldLabel), chunkwise::PixelValue(newLabel));
  }
  return chunkwise::LabelTable(chunkwise::PixelTypeOf<LabelType>(), pairs);
}

template <typename TLabelImage>
void
SelectLabelsImageFilter<TLabelImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();
  // Before anything upstream works.
  CallChunkwise(*this, [&] {
    this->MakeTable();
    // A column of an axis that the image has not shows on an image without objects.
    const auto settings = this->MakeSettings();
    chunkwise::LabelMap(chunkwise::Measurements(settings), chunkwise::MeasurementSpace(), this->MakeSelection());
  });
}

/** Pulls the whole input through the pipeline, slab by slab. */
template <typename TLabelImage>
void
SelectLabelsImageFilter<TLabelImage>::Measure()
{
  auto * const                input = const_cast<TLabelImage *>(this->GetInput());
  const auto &                largest = input->GetLargestPossibleRegion();
  const auto                  splitter = ImageRegionSplitterSlowDimension::New();
  const chunkwise::LabelTable table = this->MakeTable();
  ChunkwiseExecutor           executor(this->GetMultiThreader(), this->GetNumberOfWorkUnits());
  std::vector<LabelType>      replaced;
  const unsigned int          slabs =
    largest.GetNumberOfPixels() == 0 ? 0 : splitter->GetNumberOfSplits(largest, m_NumberOfStreamDivisions);
  m_Measurements = std::make_unique<chunkwise::Measurements>(this->MakeSettings());
  for (unsigned int i = 0; i < slabs; ++i)
  {
    auto slab = largest;
    splitter->GetSplit(i, slabs, slab);
    input->SetRequestedRegion(slab);
    input->PropagateRequestedRegion();
    input->UpdateOutputData();
    if (this->GetAbortGenerateData())
    {
      throw chunkwise::Aborted();
    }
    const chunkwise::Box  box = ChunkwiseBoxFromRegion(slab, largest.GetIndex());
    chunkwise::BufferView labels = MakeChunkwiseBufferView(*input);
    if (table.GetSize() > 0)
    {
      replaced.resize(slab.GetNumberOfPixels());
      const chunkwise::BufferView to = chunkwise::DenseView(replaced.data(), labels.kind, box);
      table.Apply(labels, to, box, executor);
      labels = to;
    }
    m_Measurements->Add(labels, nullptr, box, executor);
  }
  m_Map = std::make_unique<chunkwise::LabelMap>(
    *m_Measurements, MakeChunkwiseMeasurementSpace(*this->GetInput()), this->MakeSelection());
  m_MeasureTime.Modified();
}

template <typename TLabelImage>
void
SelectLabelsImageFilter<TLabelImage>::UpdateOutputData(DataObject * output)
{
  if (!this->m_Updating && (!m_Map || m_MeasureTime.GetMTime() < output->GetPipelineMTime()))
  {
    m_Map.reset();
    this->SetAbortGenerateData(false);
    this->VerifyPreconditions();
    CallChunkwise(*this, [&] { this->Measure(); });
    this->PropagateRequestedRegion(output);
  }
  Superclass::UpdateOutputData(output);
}

template <typename TLabelImage>
void
SelectLabelsImageFilter<TLabelImage>::GenerateData()
{
  this->AllocateOutputs();
  TLabelImage &               output = *this->GetOutput();
  const auto &                region = output.GetRequestedRegion();
  const auto                  first = this->GetInput()->GetLargestPossibleRegion().GetIndex();
  const auto                  splitter = ImageRegionSplitterSlowDimension::New();
  const chunkwise::BufferView from = MakeChunkwiseBufferView(*this->GetInput());
  const chunkwise::BufferView to = MakeChunkwiseBufferView(output);
  if (region.GetNumberOfPixels() == 0)
  {
    return;
  }
  CallChunkwise(*this, [&] {
    const chunkwise::LabelTable table = this->MakeTable();
    ChunkwiseExecutor           executor(this->GetMultiThreader(), this->GetNumberOfWorkUnits());
    ChunkwiseMonitor            monitor(*this);
    const unsigned int          slabs = splitter->GetNumberOfSplits(region, 16);
    for (unsigned int i = 0; i < slabs; ++i)
    {
      auto slab = region;
      splitter->GetSplit(i, slabs, slab);
      const chunkwise::Box box = ChunkwiseBoxFromRegion(slab, first);
      if (monitor.ShouldAbort())
      {
        monitor.RethrowObserverException();
        throw chunkwise::Aborted();
      }
      if (table.GetSize() > 0)
      {
        table.Apply(from, to, box, executor);
        m_Map->Apply(to, to, box, executor);
      }
      else
      {
        m_Map->Apply(from, to, box, executor);
      }
      monitor.UpdateProgress(static_cast<double>(i + 1) / slabs);
    }
    monitor.RethrowObserverException();
  });
}

template <typename TLabelImage>
void
SelectLabelsImageFilter<TLabelImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "MinimumSize: " << m_MinimumSize << std::endl;
  os << indent << "MaximumSize: " << m_MaximumSize << std::endl;
  os << indent << "Conditions:";
  for (const std::string & condition : m_Conditions)
  {
    os << " \"" << condition << "\"";
  }
  os << std::endl;
  os << indent << "RemoveBorder: " << (m_RemoveBorder ? "On" : "Off") << std::endl;
  os << indent << "KeepLargest: " << m_KeepLargest << std::endl;
  os << indent << "Relabel: " << (m_Relabel ? "On" : "Off") << std::endl;
  os << indent << "Replacements: " << m_Replacements.size() << std::endl;
  os << indent << "HostMemoryBudget: " << m_HostMemoryBudget << std::endl;
  os << indent << "NumberOfStreamDivisions: " << m_NumberOfStreamDivisions << std::endl;
  os << indent << "NumberOfKeptLabels: " << this->GetNumberOfKeptLabels() << std::endl;
}

} // namespace itk

#endif
