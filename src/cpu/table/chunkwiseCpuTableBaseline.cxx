/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL baseline
#include "chunkwiseCpuTableImplementation.h"

namespace chunkwise
{

TableLevel
MakeTableLevelBaseline()
{
  return baseline::MakeTableLevel();
}

} // namespace chunkwise
