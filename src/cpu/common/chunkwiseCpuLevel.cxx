/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuLevel.h"

#include <atomic>
#include <cstdlib>
#include <string>

namespace chunkwise
{

CpuLevel
MakeCpuLevelBaseline();
CpuLevel
MakeCpuLevelAvx2();
CpuLevel
MakeCpuLevelAvx512();

namespace
{

/** nullptr if this machine, or this build, lacks the level. */
const CpuLevel *
FindLevel(const std::string & name)
{
  if (name == "baseline")
  {
    static const CpuLevel level = MakeCpuLevelBaseline();
    return &level;
  }
#if defined(CHUNKWISE_HAS_AVX2)
  if (name == "avx2" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
  {
    static const CpuLevel level = MakeCpuLevelAvx2();
    return &level;
  }
#endif
#if defined(CHUNKWISE_HAS_AVX512)
  if (name == "avx512" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
  {
    static const CpuLevel level = MakeCpuLevelAvx512();
    return &level;
  }
#endif
  return nullptr;
}

const CpuLevel *
ChooseLevel()
{
  const char * const variable = std::getenv("CHUNKWISE_CPU_LEVEL");
  for (const char * const name : { variable ? variable : "avx512", "avx512", "avx2" })
  {
    if (const CpuLevel * const level = FindLevel(name))
    {
      return level;
    }
  }
  return FindLevel("baseline");
}

std::atomic<const CpuLevel *> &
CurrentLevel()
{
  static std::atomic<const CpuLevel *> level{ ChooseLevel() };
  return level;
}

} // namespace

const CpuLevel &
GetCpuLevel()
{
  return *CurrentLevel();
}

bool
SetCpuLevel(const char * name)
{
  const CpuLevel * const level = FindLevel(name);
  if (level)
  {
    CurrentLevel() = level;
  }
  return level != nullptr;
}

} // namespace chunkwise
