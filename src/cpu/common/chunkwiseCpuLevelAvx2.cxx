/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx2
#include "chunkwiseCpuLevelImplementation.h"

namespace chunkwise
{

CpuLevel
MakeCpuLevelAvx2()
{
  return avx2::MakeLevel("avx2");
}

} // namespace chunkwise
