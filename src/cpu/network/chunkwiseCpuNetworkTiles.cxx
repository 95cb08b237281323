/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuNetworkTiles.h"

#include "chunkwiseCpuLevels.h"


namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(NetworkTileFunctions, MakeNetworkTileFunctions)

const NetworkTileFunctions &
GetNetworkTileFunctions()
{
  static FunctionsAtLevels<NetworkTileFunctions> functions{ CHUNKWISE_AT_LEVELS(MakeNetworkTileFunctions) };
  return functions.Get();
}

} // namespace chunkwise
