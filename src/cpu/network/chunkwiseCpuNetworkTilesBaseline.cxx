/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL baseline
#include "chunkwiseCpuNetworkTilesImplementation.h"

namespace chunkwise
{

NetworkTileFunctions
MakeNetworkTileFunctionsBaseline()
{
  return baseline::MakeNetworkTileFunctions();
}

} // namespace chunkwise
