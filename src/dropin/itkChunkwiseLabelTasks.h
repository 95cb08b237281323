/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseLabelTasks_h
#define itkChunkwiseLabelTasks_h
#include "itkChunkwiseStandInFilter.h"
#include "itkConnectedComponentImageFilter.h"

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
      const TOutput &             output = *this->GetOutput();
      const auto * const          labels = output.GetBufferPointer();
      typename TOutput::PixelType largest{ 0 };
      // Compilers make vector code of this loop, and not of std::max_element.
      for (SizeValueType i = 0; i < output.GetBufferedRegion().GetNumberOfPixels(); ++i)
      {
        largest = labels[i] > largest ? labels[i] : largest;
      }
      m_ObjectCount = largest;
    }
  }

private:
  bool                           m_IsServed{ false };
  typename Superclass::LabelType m_ObjectCount{ 0 };
};

} // namespace itk

#endif
