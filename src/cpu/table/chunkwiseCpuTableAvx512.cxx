/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx512
#include "chunkwiseCpuTableImplementation.h"

namespace chunkwise
{

TableLevel
MakeTableLevelAvx512()
{
  return avx512::MakeTableLevel();
}

} // namespace chunkwise
