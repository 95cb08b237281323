/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFloodProgress_h
#define chunkwiseFloodProgress_h

#include "chunkwiseOperation.h"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace chunkwise
{

/** How far the threads of a flood are, in voxels of what it floods. A voxel is loaded once and swept twice. Nobody
 * knows how often voxels will be raised after that: the queues' share is approached as they are emptied. */
class FloodProgress
{
public:
  /** Voxels that a thread handles before it says so, and looks whether to stop. */
  static constexpr std::int64_t Step = 1 << 14;

  FloodProgress(RunControl * control, std::int64_t voxels)
    : m_Control(control)
    , m_Voxels(voxels)
  {}

  bool
  ShouldStop() const
  {
    return m_Control && m_Control->ShouldStop();
  }
  void
  AddLoaded(std::int64_t voxels)
  {
    Add(m_Loaded, voxels);
  }
  void
  AddSwept(std::int64_t voxels)
  {
    Add(m_Swept, voxels);
  }
  void
  AddPopped(std::int64_t voxels)
  {
    Add(m_Popped, voxels);
  }
  /** The flood is over. */
  void
  Complete()
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    ReportUpTo(m_Voxels);
  }

private:
  static constexpr double LoadShare = 0.1;
  static constexpr double SweepShare = 0.5;
  static constexpr double QueueShare = 0.4;
  /** Reports of a flood, at most. */
  static constexpr std::int64_t MostReports = 256;

  void
  Add(std::atomic<std::int64_t> & count, std::int64_t voxels)
  {
    if (!m_Control)
    {
      return;
    }
    count.fetch_add(voxels, std::memory_order_relaxed);
    // Who finds another thread at it leaves it to that one.
    const std::unique_lock<std::mutex> lock(m_Mutex, std::try_to_lock);
    if (lock)
    {
      const auto   all = static_cast<double>(m_Voxels);
      const auto   popped = static_cast<double>(m_Popped.load(std::memory_order_relaxed));
      const double done =
        LoadShare * std::min(1.0, static_cast<double>(m_Loaded.load(std::memory_order_relaxed)) / all) +
        SweepShare * std::min(1.0, static_cast<double>(m_Swept.load(std::memory_order_relaxed)) / (2 * all)) +
        QueueShare * (popped / (popped + all));
      const auto voxelsDone = static_cast<std::int64_t>(done * all);
      if (voxelsDone - m_Reported >= m_Voxels / MostReports)
      {
        ReportUpTo(voxelsDone);
      }
    }
  }

  void
  ReportUpTo(std::int64_t voxels)
  {
    if (m_Control && voxels > m_Reported)
    {
      m_Control->AddFinishedVoxels(voxels - m_Reported);
      m_Reported = voxels;
    }
  }

  RunControl * const        m_Control;
  const std::int64_t        m_Voxels;
  std::atomic<std::int64_t> m_Loaded{ 0 };
  std::atomic<std::int64_t> m_Swept{ 0 };
  std::atomic<std::int64_t> m_Popped{ 0 };
  std::mutex                m_Mutex;
  std::int64_t              m_Reported{ 0 };
};

} // namespace chunkwise

#endif
