/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuNetworkTiles.h"

#include "chunkwiseCpuLevel.h"

#include <string>

namespace chunkwise
{

NetworkTileFunctions
MakeNetworkTileFunctionsBaseline();
#if defined(CHUNKWISE_HAS_X86_LEVELS)
NetworkTileFunctions
MakeNetworkTileFunctionsAvx2();
NetworkTileFunctions
MakeNetworkTileFunctionsAvx512();
#endif

const NetworkTileFunctions &
GetNetworkTileFunctions()
{
#if defined(CHUNKWISE_HAS_X86_LEVELS)
  const std::string level = GetCpuLevel().name;
  if (level == "avx512")
  {
    static const NetworkTileFunctions functions = MakeNetworkTileFunctionsAvx512();
    return functions;
  }
  if (level == "avx2")
  {
    static const NetworkTileFunctions functions = MakeNetworkTileFunctionsAvx2();
    return functions;
  }
#endif
  static const NetworkTileFunctions functions = MakeNetworkTileFunctionsBaseline();
  return functions;
}

} // namespace chunkwise
