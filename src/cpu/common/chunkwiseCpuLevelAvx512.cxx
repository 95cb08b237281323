/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx512
#include "chunkwiseCpuLevelImplementation.h"

namespace chunkwise
{

CpuLevel
MakeCpuLevelAvx512()
{
  return avx512::MakeLevel("avx512");
}

} // namespace chunkwise
