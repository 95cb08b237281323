/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx2
#include "chunkwiseCpuMarchRowsImplementation.h"

namespace chunkwise
{

MarchLevel
MakeMarchLevelAvx2()
{
  return avx2::MakeMarchLevel();
}

} // namespace chunkwise
