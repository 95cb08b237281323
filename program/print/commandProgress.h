/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandProgress_h
#define commandProgress_h

#include "commandLine.h"

#include <chrono>
#include <cstdint>

namespace command
{

/** A line for hosts of command-line modules, on standard output. */
void
PrintComment(const std::string & text);

/** Says how far a run is, and lets signals end it. */
class Progress : public chunkwise::Monitor
{
public:
  /** `voxels` of the whole output; a bar only if standard error is a terminal. */
  Progress(const std::string & name, std::int64_t voxels, ProgressStyle style);
  ~Progress() override;
  Progress(const Progress &) = delete;
  Progress &
  operator=(const Progress &) = delete;

  /** The next work is this part of the whole. */
  void
  BeginPart(double first, double share);

  void
  UpdateProgress(double fraction) override;
  bool
  ShouldAbort() override;

private:
  std::string                           m_Name;
  std::int64_t                          m_Voxels;
  ProgressStyle                         m_Style;
  double                                m_First{ 0 };
  double                                m_Share{ 1 };
  double                                m_LastTold{ 0 };
  std::chrono::steady_clock::time_point m_Start;
  std::chrono::steady_clock::time_point m_LastDrawn;
};

} // namespace command

#endif
