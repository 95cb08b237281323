/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx2
#include "chunkwiseCpuMaskedRowsImplementation.h"

namespace chunkwise
{

MaskedRowLevel
MakeMaskedRowLevelAvx2()
{
  return avx2::MakeMaskedRowLevel();
}

} // namespace chunkwise
