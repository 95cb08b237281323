/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx2
#include "chunkwiseCpuTableImplementation.h"

namespace chunkwise
{

TableLevel
MakeTableLevelAvx2()
{
  return avx2::MakeTableLevel();
}

} // namespace chunkwise
