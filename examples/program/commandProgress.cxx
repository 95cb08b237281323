/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandProgress.h"

#include "commandSignals.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace command
{

Progress::Progress(std::int64_t voxels, bool show)
  : m_Voxels(voxels)
  , m_Show(show && isatty(STDERR_FILENO))
  , m_Start(std::chrono::steady_clock::now())
  , m_LastDrawn(m_Start)
{}

Progress::~Progress()
{
  if (m_Show)
  {
    std::fputs("\r\x1b[K", stderr);
  }
}

void
Progress::BeginPart(double first, double share)
{
  m_First = first;
  m_Share = share;
  this->UpdateProgress(0.0);
}

bool
Progress::ShouldAbort()
{
  return WasInterrupted();
}

void
Progress::UpdateProgress(double fractionOfPart)
{
  const auto now = std::chrono::steady_clock::now();
  if (!m_Show || now - m_LastDrawn < std::chrono::milliseconds(100))
  {
    return;
  }
  m_LastDrawn = now;
  constexpr int width = 40;
  const double  fraction = m_First + m_Share * fractionOfPart;
  const double  seconds = std::chrono::duration<double>(now - m_Start).count();
  const int     filled = static_cast<int>(fraction * width);
  const double  left = fraction > 0.0 ? seconds / fraction - seconds : 0.0;
  std::fprintf(stderr,
               "\r[%s%s] %3.0f %%  %.1f Mvoxel/s  %.0f s left \x1b[K",
               std::string(static_cast<std::size_t>(filled), '#').c_str(),
               std::string(static_cast<std::size_t>(width - filled), '.').c_str(),
               100.0 * fraction,
               1e-6 * static_cast<double>(m_Voxels) * fraction / seconds,
               left);
}

} // namespace command
