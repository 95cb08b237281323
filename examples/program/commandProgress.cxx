/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandProgress.h"

#include "itkCommand.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

namespace command
{

namespace
{

volatile std::sig_atomic_t interrupted = 0;

void
NoteSignal(int)
{
  interrupted = 1;
}

} // namespace

void
CatchSignals()
{
  std::signal(SIGINT, NoteSignal);
  std::signal(SIGTERM, NoteSignal);
  std::signal(SIGHUP, NoteSignal);
}

bool
WasInterrupted()
{
  return interrupted != 0;
}

Progress::Progress(itk::ProcessObject & filter, unsigned int divisions, std::uint64_t voxels, bool show)
  : m_Filter(filter)
  , m_Divisions(divisions)
  , m_Voxels(voxels)
  , m_Show(show && isatty(STDERR_FILENO))
  , m_Start(std::chrono::steady_clock::now())
  , m_LastDrawn(m_Start)
{
  m_Tags[0] = filter.AddObserver(itk::ProgressEvent(), [this](const itk::EventObject &) {
    if (WasInterrupted())
    {
      m_Filter.AbortGenerateDataOn();
    }
    Draw((m_Done + m_Filter.GetProgress()) / m_Divisions);
  });
  m_Tags[1] = filter.AddObserver(itk::EndEvent(), [this](const itk::EventObject &) { ++m_Done; });
}

Progress::~Progress()
{
  m_Filter.RemoveObserver(m_Tags[0]);
  m_Filter.RemoveObserver(m_Tags[1]);
  if (m_Show)
  {
    std::fputs("\r\x1b[K", stderr);
  }
}

void
Progress::Draw(double fraction)
{
  const auto now = std::chrono::steady_clock::now();
  if (!m_Show || now - m_LastDrawn < std::chrono::milliseconds(100))
  {
    return;
  }
  m_LastDrawn = now;
  constexpr int width = 40;
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
