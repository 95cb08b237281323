/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuLevels.h"

#include "chunkwiseError.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(CpuLevel, MakeCpuLevel)

namespace
{

constexpr const char * LevelNames[NumberOfCpuLevels] = { "baseline", "avx2", "avx512" };

bool
IsOnThisMachine(std::size_t index)
{
#if defined(__x86_64__)
  const bool hasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool hasAvx512 = hasAvx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return index == 0 || (index == 1 ? hasAvx2 : hasAvx512);
#else
  return index == 0;
#endif
}

/** nullptr if this machine, or this build, lacks the level. */
const CpuLevel *
FindLevel(std::size_t index)
{
  static FunctionsAtLevels<CpuLevel> levels{ CHUNKWISE_AT_LEVELS(MakeCpuLevel) };
  if (!levels.Has(index) || !IsOnThisMachine(index))
  {
    return nullptr;
  }
  static std::array<std::once_flag, NumberOfCpuLevels> isNamed;
  CpuLevel &                                           level = levels.Get(index);
  std::call_once(isNamed[index], [&level, index] {
    level.name = LevelNames[index];
    level.index = index;
  });
  return &level;
}

const CpuLevel *
FindLevel(const char * name)
{
  for (std::size_t index = 0; index < NumberOfCpuLevels; ++index)
  {
    if (std::strcmp(name, LevelNames[index]) == 0)
    {
      return FindLevel(index);
    }
  }
  return nullptr;
}

const CpuLevel *
ChooseLevel()
{
  const char * const variable = std::getenv("CHUNKWISE_CPU_LEVEL");
  const CpuLevel *   level = variable ? FindLevel(variable) : nullptr;
  for (std::size_t index = NumberOfCpuLevels; !level && index > 0; --index)
  {
    level = FindLevel(index - 1);
  }
  if (!level)
  {
    throw Error("this library was compiled for the instruction set of another machine (CHUNKWISE_CPU_LEVELS=native)");
  }
  return level;
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
