/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx2
#include "chunkwiseCpuNetworkRowsImplementation.h"

namespace chunkwise
{

AddToNetworkTileFunction
GetAddToNetworkTileAvx2()
{
  return avx2::AddToNetworkTile<avx2::FloatVector>;
}

} // namespace chunkwise
