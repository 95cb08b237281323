/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandDevices.h"

#include "chunkwiseHostMemory.h"
#include "chunkwiseManager.h"
#include "commandJson.h"
#include "commandMemory.h"

#include <iostream>
#include <thread>

namespace command
{

namespace
{

/** The widest vector instructions of the CPU. */
const char *
GetSimdLevel()
{
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f"))
  {
    return "AVX-512";
  }
  if (__builtin_cpu_supports("avx2"))
  {
    return "AVX2";
  }
  if (__builtin_cpu_supports("avx"))
  {
    return "AVX";
  }
  return "SSE2";
#elif defined(__aarch64__)
  return "NEON";
#else
  return "unknown";
#endif
}

} // namespace

void
PrintDevices(bool asJson)
{
  chunkwise::Manager & manager = chunkwise::Manager::GetGlobal();
  const auto           devices = manager.GetDevices();
  if (asJson)
  {
    Json list = Json::array();
    for (const auto & device : devices)
    {
      const auto & description = device->GetDescription();
      list.push_back({ { "backend", description.backend },
                       { "ordinal", description.index },
                       { "name", description.name },
                       { "memory", description.totalMemory },
                       { "memoryFree", device->GetFreeMemory() } });
    }
    std::cout << ToText({ { "devices", list },
                          { "reasonForNone", devices.empty() ? Json(manager.GetReasonForNoDevices()) : Json() },
                          { "cpu",
                            { { "threads", chunkwise::GetNumberOfProcessors() },
                              { "instructions", GetSimdLevel() },
                              { "memoryAvailable", chunkwise::GetAvailableHostMemory() } } } });
    return;
  }
  for (const auto & device : devices)
  {
    const auto & description = device->GetDescription();
    std::cout << description.backend << ' ' << description.index << ": " << description.name << ", "
              << FormatBytes(static_cast<double>(description.totalMemory)) << ", "
              << FormatBytes(static_cast<double>(device->GetFreeMemory())) << " free\n";
  }
  if (devices.empty())
  {
    std::cout << "cuda: none (" << manager.GetReasonForNoDevices() << ")\n";
  }
  std::cout << "cpu: " << chunkwise::GetNumberOfProcessors() << " threads, " << GetSimdLevel() << ", "
            << FormatBytes(static_cast<double>(chunkwise::GetAvailableHostMemory())) << " available\n";
}

} // namespace command
