/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL baseline
#include "chunkwiseCpuNetworkRowsImplementation.h"

namespace chunkwise
{

AddToNetworkTileFunction
GetAddToNetworkTileBaseline()
{
  return baseline::AddToNetworkTile<baseline::FloatVector>;
}

} // namespace chunkwise
