/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandMemory.h"

#include <fstream>
#include <iomanip>
#include <sstream>

namespace command
{

namespace
{

/** The bytes of a line "Name:  1234 kB" of a file of the proc file system. */
std::uint64_t
ReadKilobytes(const char * file, const std::string & name)
{
  std::ifstream stream(file);
  std::string   line;
  while (std::getline(stream, line))
  {
    if (line.compare(0, name.size() + 1, name + ":") == 0)
    {
      return std::stoull(line.substr(name.size() + 1)) << 10;
    }
  }
  return 0;
}

} // namespace

std::uint64_t
GetPeakMemory()
{
  return ReadKilobytes("/proc/self/status", "VmHWM");
}

std::uint64_t
GetAvailableMemory()
{
  return ReadKilobytes("/proc/meminfo", "MemAvailable");
}

std::string
FormatBytes(double bytes)
{
  const char * const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
  int                unit = 0;
  while (bytes >= 1024.0 && unit < 4)
  {
    bytes /= 1024.0;
    ++unit;
  }
  std::ostringstream text;
  text << std::fixed << std::setprecision(unit == 0 || bytes >= 100.0 ? 0 : 1) << bytes << ' ' << units[unit];
  return text.str();
}

std::string
FormatNeed(std::uint64_t bytes)
{
  constexpr std::uint64_t mebibyte = std::uint64_t{ 1 } << 20;
  return std::to_string((bytes + mebibyte - 1) / mebibyte) + " MiB";
}

} // namespace command
