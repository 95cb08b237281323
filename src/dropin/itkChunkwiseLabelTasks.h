/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseLabelTasks_h
#define itkChunkwiseLabelTasks_h
#include "itkChunkwiseStandInFilter.h"
#include "itkConnectedComponentImageFilter.h"

#include <algorithm>

namespace itk
{

template <typename TInput, typename TOutput, typename TMask>
void
DescribeChunkwiseTask(const ConnectedComponentImageFilter<TInput, TOutput, TMask> & filter, ChunkwiseStandInTask & task)
{
  task.filter = "label";
  task.parameters.SetInteger("Connectivity", filter.GetFullyConnected() ? TInput::ImageDimension : 1);
  if (filter.GetMaskImage())
  {
    task.Refuse("a mask");
  }
  if (filter.GetBackgroundValue() != typename TOutput::PixelType{})
  {
    task.Refuse("a background value other than 0");
  }
}

/** The number of objects, which ITK's filter keeps to itself. */
template <typename TInput, typename TOutput, typename TMask>
class ChunkwiseStandInResults<ConnectedComponentImageFilter<TInput, TOutput, TMask>>
  : public ConnectedComponentImageFilter<TInput, TOutput, TMask>
{
public:
  using Superclass = ConnectedComponentImageFilter<TInput, TOutput, TMask>;

  const typename Superclass::LabelType &
  GetObjectCount() const override
  {
    return m_IsServed ? m_ObjectCount : Superclass::GetObjectCount();
  }

protected:
  ChunkwiseStandInResults() = default;
  ~ChunkwiseStandInResults() override = default;

  void
  TakeResults(bool isServed)
  {
    m_IsServed = isServed;
    if (isServed)
    {
      const TOutput &    output = *this->GetOutput();
      const auto * const begin = output.GetBufferPointer();
      m_ObjectCount = *std::max_element(begin, begin + output.GetBufferedRegion().GetNumberOfPixels());
    }
  }

private:
  bool                           m_IsServed{ false };
  typename Superclass::LabelType m_ObjectCount{ 0 };
};

} // namespace itk

#endif
