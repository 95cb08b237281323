/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL baseline
#include "chunkwiseCpuMarchRowsImplementation.h"

namespace chunkwise
{

MarchLevel
MakeMarchLevelBaseline()
{
  return baseline::MakeMarchLevel();
}

} // namespace chunkwise
