/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseMonitor.h"

namespace itk
{

ChunkwiseMonitor::ChunkwiseMonitor(ProcessObject & filter, double progressBefore, double progressAfter)
  : m_Filter(filter)
  , m_ProgressBefore(progressBefore)
  , m_ProgressAfter(progressAfter)
{}

ChunkwiseMonitor::~ChunkwiseMonitor() = default;

void
ChunkwiseMonitor::UpdateProgress(double fraction)
{
  if (m_ObserverException || fraction <= m_Last)
  {
    return;
  }
  m_Last = fraction;
  try
  {
    m_Filter.UpdateProgress(static_cast<float>(m_ProgressBefore + fraction * (m_ProgressAfter - m_ProgressBefore)));
  }
  catch (...)
  {
    m_ObserverException = std::current_exception();
  }
}

bool
ChunkwiseMonitor::ShouldAbort()
{
  return m_ObserverException || m_Filter.GetAbortGenerateData();
}

void
ChunkwiseMonitor::RethrowObserverException() const
{
  if (m_ObserverException)
  {
    std::rethrow_exception(m_ObserverException);
  }
}

} // namespace itk
