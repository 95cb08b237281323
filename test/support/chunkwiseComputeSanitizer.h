/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseComputeSanitizer_h
#define chunkwiseComputeSanitizer_h

#include <fstream>
#include <string>

namespace chunkwise
{

/** Whether compute-sanitizer watches this process: to it, calls that a test makes fail on purpose are findings. */
inline bool
IsUnderComputeSanitizer()
{
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
  {
    if (line.find("sanitizer-collection") != std::string::npos ||
        line.find("InterceptorInjectionTarget") != std::string::npos)
    {
      return true;
    }
  }
  return false;
}

} // namespace chunkwise

#endif
