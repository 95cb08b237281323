/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandProgress_h
#define commandProgress_h

#include "itkProcessObject.h"

#include <chrono>
#include <cstdint>

namespace command
{

/** Follows a filter that runs once for each division: draws a bar with rate and time left on a terminal, and aborts the
 * filter when the process was asked to end (SIGINT, SIGTERM, SIGHUP). */
class Progress
{
public:
  /** `show`: draw, if standard error is a terminal. */
  Progress(itk::ProcessObject & filter, unsigned int divisions, std::uint64_t voxels, bool show);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &
  operator=(const Progress &) = delete;

private:
  void
  Draw(double fraction);

  itk::ProcessObject &                  m_Filter;
  unsigned int                          m_Divisions;
  std::uint64_t                         m_Voxels;
  bool                                  m_Show;
  unsigned int                          m_Done{ 0 };
  unsigned long                         m_Tags[2];
  std::chrono::steady_clock::time_point m_Start;
  std::chrono::steady_clock::time_point m_LastDrawn;
};

/** Makes SIGINT, SIGTERM and SIGHUP end the work, so that nothing unfinished stays behind. */
void
CatchSignals();

/** Whether one of them arrived. */
bool
WasInterrupted();

} // namespace command

#endif
