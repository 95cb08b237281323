/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuLevel.h"

#include <cstdlib>
#include <string>

namespace chunkwise
{

CpuLevel
MakeCpuLevelBaseline();
#if defined(CHUNKWISE_HAS_X86_LEVELS)
CpuLevel
MakeCpuLevelAvx2();
CpuLevel
MakeCpuLevelAvx512();
#endif

namespace
{

CpuLevel
ChooseLevel()
{
#if defined(CHUNKWISE_HAS_X86_LEVELS)
  const char * const variable = std::getenv("CHUNKWISE_CPU_LEVEL");
  const std::string  wanted = variable ? variable : "avx512";
  const bool         hasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool         hasAvx512 = hasAvx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (wanted == "avx512" && hasAvx512)
  {
    return MakeCpuLevelAvx512();
  }
  if (wanted != "baseline" && hasAvx2)
  {
    return MakeCpuLevelAvx2();
  }
#endif
  return MakeCpuLevelBaseline();
}

} // namespace

const CpuLevel &
GetCpuLevel()
{
  static const CpuLevel level = ChooseLevel();
  return level;
}

} // namespace chunkwise
