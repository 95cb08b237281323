/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx512
#include "chunkwiseCpuNetworkRowsImplementation.h"

namespace chunkwise
{

AddToNetworkTileFunction
GetAddToNetworkTileAvx512()
{
  return avx512::AddToNetworkTile<avx512::FloatVector>;
}

} // namespace chunkwise
