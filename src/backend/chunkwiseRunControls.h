/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRunControls_h
#define chunkwiseRunControls_h

#include "chunkwiseOperation.h"

#include <algorithm>
#include <mutex>

namespace chunkwise
{

/** Lets a kernel stop early; its voxels are counted by who runs it. */
class StopControl : public RunControl
{
public:
  /** nullptr: never. */
  explicit StopControl(const RunControl * whole)
    : m_Whole(whole)
  {}
  bool
  ShouldStop() const override
  {
    return m_Whole && m_Whole->ShouldStop();
  }
  void
  AddFinishedVoxels(std::int64_t) override
  {}

private:
  const RunControl * m_Whole;
};

/** Lets a part of some work stop early, and counts what it has done as a share of the whole. */
class ShareControl : public RunControl
{
public:
  /** `voxels` of the part are `share` voxels of the whole; nullptr: nobody counts. */
  ShareControl(RunControl * whole, std::int64_t voxels, std::int64_t share)
    : m_Whole(whole)
    , m_Voxels(std::max<std::int64_t>(voxels, 1))
    , m_Share(share)
  {}
  bool
  ShouldStop() const override
  {
    return m_Whole && m_Whole->ShouldStop();
  }
  void
  AddFinishedVoxels(std::int64_t voxels) override
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    m_Finished = std::min(m_Voxels, m_Finished + voxels);
    const double part = static_cast<double>(m_Finished) / static_cast<double>(m_Voxels);
    ReportUpTo(std::min(m_Share, static_cast<std::int64_t>(part * static_cast<double>(m_Share))));
  }
  /** The part is done, whatever it has counted. */
  void
  Complete()
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    ReportUpTo(m_Share);
  }

private:
  void
  ReportUpTo(std::int64_t voxels)
  {
    if (m_Whole && voxels > m_Reported)
    {
      m_Whole->AddFinishedVoxels(voxels - m_Reported);
      m_Reported = voxels;
    }
  }

  RunControl * const m_Whole;
  const std::int64_t m_Voxels;
  const std::int64_t m_Share;
  std::mutex         m_Mutex;
  std::int64_t       m_Finished{ 0 };
  std::int64_t       m_Reported{ 0 };
};

} // namespace chunkwise

#endif
