/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx2
#include "chunkwiseCpuNetworkTilesImplementation.h"

namespace chunkwise
{

NetworkTileFunctions
MakeNetworkTileFunctionsAvx2()
{
  return avx2::MakeNetworkTileFunctions();
}

} // namespace chunkwise
