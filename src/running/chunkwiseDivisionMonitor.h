/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDivisionMonitor_h
#define chunkwiseDivisionMonitor_h

#include "chunkwiseManager.h"

#include <algorithm>
#include <cstdint>

namespace chunkwise
{

/** Progress of one of several divisions, or of other parts of a run that are alike. */
class DivisionMonitor : public Monitor
{
public:
  DivisionMonitor(Monitor * all, std::int64_t division, std::int64_t divisions)
    : m_All(all)
    , m_Division(division)
    , m_Divisions(divisions)
  {}
  void
  UpdateProgress(double fraction) override
  {
    if (m_All)
    {
      // One expression for the end of a division and the beginning of the next: it never falls. Only a finished run
      // says 1.
      const double all = (static_cast<double>(m_Division) + fraction) / static_cast<double>(m_Divisions);
      m_All->UpdateProgress(std::min(all, 1.0 - 1e-12));
    }
  }
  bool
  ShouldAbort() override
  {
    return m_All && m_All->ShouldAbort();
  }

private:
  Monitor *    m_All;
  std::int64_t m_Division;
  std::int64_t m_Divisions;
};

/** Keeps progress from falling where a run begins again in another way. */
class RisingMonitor : public Monitor
{
public:
  explicit RisingMonitor(Monitor * all)
    : m_All(all)
  {}
  void
  UpdateProgress(double fraction) override
  {
    if (m_All && fraction > m_Last)
    {
      m_Last = fraction;
      m_All->UpdateProgress(fraction);
    }
  }
  bool
  ShouldAbort() override
  {
    return m_All && m_All->ShouldAbort();
  }

private:
  Monitor * m_All;
  double    m_Last{ -1 };
};

} // namespace chunkwise

#endif
