/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePartMonitor_h
#define chunkwisePartMonitor_h

#include "chunkwiseManager.h"

namespace chunkwise
{

/** One of several runs of a caller: its progress is a part of the whole. */
class PartMonitor : public Monitor
{
public:
  PartMonitor(Monitor * whole, double begin, double end)
    : m_Whole(whole)
    , m_Begin(begin)
    , m_End(end)
  {}
  void
  UpdateProgress(double fraction) override
  {
    if (m_Whole)
    {
      m_Whole->UpdateProgress(fraction < 1 ? m_Begin + fraction * (m_End - m_Begin) : m_End);
    }
  }
  bool
  ShouldAbort() override
  {
    return m_Whole && m_Whole->ShouldAbort();
  }

private:
  Monitor * const m_Whole;
  const double    m_Begin;
  const double    m_End;
};

} // namespace chunkwise

#endif
