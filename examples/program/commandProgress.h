/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandProgress_h
#define commandProgress_h

#include "chunkwiseManager.h"

#include <chrono>
#include <cstdint>

namespace command
{

/** Draws a bar on the terminal, and lets signals end a run. */
class Progress : public chunkwise::Monitor
{
public:
  /** `voxels` of the whole output; a bar only if `show` and standard error is a terminal. */
  Progress(std::int64_t voxels, bool show);
  ~Progress() override;
  Progress(const Progress &) = delete;
  Progress &
  operator=(const Progress &) = delete;

  /** What comes next is this part of the whole. */
  void
  BeginPart(double first, double share);

  void
  UpdateProgress(double fraction) override;
  bool
  ShouldAbort() override;

private:
  std::int64_t                          m_Voxels;
  bool                                  m_Show;
  double                                m_First{ 0 };
  double                                m_Share{ 1 };
  std::chrono::steady_clock::time_point m_Start;
  std::chrono::steady_clock::time_point m_LastDrawn;
};

} // namespace command

#endif
