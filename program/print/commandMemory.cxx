/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandMemory.h"

#include <iomanip>
#include <sstream>

namespace command
{

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
