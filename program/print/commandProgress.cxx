/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandProgress.h"

#include "commandSignals.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace command
{

namespace
{

/** Text between tags: hosts do not parse XML here, they look for the tags. */
std::string
WithoutTags(std::string text)
{
  std::replace(text.begin(), text.end(), '<', '(');
  std::replace(text.begin(), text.end(), '>', ')');
  return text;
}

} // namespace

void
PrintComment(const std::string & text)
{
  std::cout << "<filter-comment>" << WithoutTags(text) << "</filter-comment>" << std::endl;
}

Progress::Progress(const std::string & name, std::int64_t voxels, ProgressStyle style)
  : m_Name(name)
  , m_Voxels(voxels)
  , m_Style(style == ProgressStyle::Bar && !isatty(STDERR_FILENO) ? ProgressStyle::None : style)
  , m_Start(std::chrono::steady_clock::now())
  , m_LastDrawn(m_Start)
{
  if (m_Style == ProgressStyle::Xml)
  {
    std::cout << "<filter-start>\n<filter-name>" << m_Name << "</filter-name>\n<filter-comment>Chunkwise " << m_Name
              << "</filter-comment>\n</filter-start>" << std::endl;
  }
}

Progress::~Progress()
{
  if (m_Style == ProgressStyle::Bar)
  {
    std::fputs("\r\x1b[K", stderr);
  }
  if (m_Style == ProgressStyle::Xml)
  {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - m_Start).count();
    std::cout << "<filter-end>\n<filter-name>" << m_Name << "</filter-name>\n<filter-time>" << seconds
              << "</filter-time>\n</filter-end>" << std::endl;
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
  const auto   now = std::chrono::steady_clock::now();
  const double fraction = m_First + m_Share * fractionOfPart;
  if (m_Style == ProgressStyle::Xml && fraction >= m_LastTold + 0.01)
  {
    m_LastTold = fraction;
    std::cout << "<filter-progress>" << fraction << "</filter-progress>" << std::endl;
  }
  if (m_Style != ProgressStyle::Bar || now - m_LastDrawn < std::chrono::milliseconds(100))
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
