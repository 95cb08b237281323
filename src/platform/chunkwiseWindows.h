/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWindows_h
#define chunkwiseWindows_h

// The only place that includes windows.h, which without these two defines names that others use.
#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#  define NOMINMAX
#endif
#include <windows.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace chunkwise
{

/** Paths are UTF-8 in the engine and UTF-16 in the system's functions. */
inline std::wstring
MakeWide(const std::string & path)
{
  return std::filesystem::u8path(path).wstring();
}
inline std::string
MakeNarrow(const std::wstring & path)
{
  return std::filesystem::path(path).u8string();
}

inline std::string
DescribeLastError()
{
  return std::system_category().message(static_cast<int>(GetLastError()));
}

} // namespace chunkwise

#endif
