/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL baseline
#include "chunkwiseCpuMaskedRowsImplementation.h"

namespace chunkwise
{

MaskedRowLevel
MakeMaskedRowLevelBaseline()
{
  return baseline::MakeMaskedRowLevel();
}

} // namespace chunkwise
