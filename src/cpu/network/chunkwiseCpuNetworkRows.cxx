/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuNetworkRows.h"

#include "chunkwiseCpuLevels.h"

namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(AddToNetworkTileFunction, MakeAddToNetworkTile)

AddToNetworkTileFunction
GetAddToNetworkTile()
{
  static FunctionsAtLevels<AddToNetworkTileFunction> functions{ CHUNKWISE_AT_LEVELS(MakeAddToNetworkTile) };
  return functions.Get();
}

} // namespace chunkwise
