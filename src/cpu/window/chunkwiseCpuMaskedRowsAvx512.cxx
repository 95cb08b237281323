/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx512
#include "chunkwiseCpuMaskedRowsImplementation.h"

namespace chunkwise
{

MaskedRowLevel
MakeMaskedRowLevelAvx512()
{
  return avx512::MakeMaskedRowLevel();
}

} // namespace chunkwise
