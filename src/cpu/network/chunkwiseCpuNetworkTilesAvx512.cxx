/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx512
#include "chunkwiseCpuNetworkTilesImplementation.h"

namespace chunkwise
{

NetworkTileFunctions
MakeNetworkTileFunctionsAvx512()
{
  return avx512::MakeNetworkTileFunctions();
}

} // namespace chunkwise
