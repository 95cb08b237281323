/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSpyControl_h
#define chunkwiseSpyControl_h

#include "chunkwiseOperation.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

namespace chunkwise
{

/** Keeps what a kernel reports, and asks it to stop once it has reported so many voxels. */
class SpyControl : public RunControl
{
public:
  explicit SpyControl(std::int64_t stopAt = std::numeric_limits<std::int64_t>::max())
    : m_StopAt(stopAt)
  {}
  bool
  ShouldStop() const override
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    return m_Sum >= m_StopAt;
  }
  void
  AddFinishedVoxels(std::int64_t voxels) override
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    m_Steps.push_back(voxels);
    m_Sum += voxels;
  }

  std::int64_t
  GetVoxels() const
  {
    return m_Sum;
  }
  std::size_t
  CountSteps() const
  {
    return m_Steps.size();
  }
  std::int64_t
  GetSmallestStep() const
  {
    return m_Steps.empty() ? 0 : *std::min_element(m_Steps.begin(), m_Steps.end());
  }
  std::int64_t
  GetLargestStep() const
  {
    return m_Steps.empty() ? 0 : *std::max_element(m_Steps.begin(), m_Steps.end());
  }

private:
  const std::int64_t        m_StopAt;
  mutable std::mutex        m_Mutex;
  std::vector<std::int64_t> m_Steps;
  std::int64_t              m_Sum{ 0 };
};

} // namespace chunkwise

#endif
