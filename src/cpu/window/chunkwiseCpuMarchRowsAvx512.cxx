/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx512
#include "chunkwiseCpuMarchRowsImplementation.h"

namespace chunkwise
{

MarchLevel
MakeMarchLevelAvx512()
{
  return avx512::MakeMarchLevel();
}

} // namespace chunkwise
