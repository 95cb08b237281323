/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL baseline
#include "chunkwiseCpuLevelImplementation.h"

namespace chunkwise
{

CpuLevel
MakeCpuLevelBaseline()
{
  return baseline::MakeLevel("baseline");
}

} // namespace chunkwise
