/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuNetworkTiles.h"

#include "chunkwiseCpuLevel.h"

#include <string>

namespace chunkwise
{

NetworkTileFunctions
MakeNetworkTileFunctionsBaseline();
NetworkTileFunctions
MakeNetworkTileFunctionsAvx2();
NetworkTileFunctions
MakeNetworkTileFunctionsAvx512();

const NetworkTileFunctions &
GetNetworkTileFunctions()
{
  const std::string level = GetCpuLevel().name;
#if defined(CHUNKWISE_HAS_AVX512)
  if (level == "avx512")
  {
    static const NetworkTileFunctions functions = MakeNetworkTileFunctionsAvx512();
    return functions;
  }
#endif
#if defined(CHUNKWISE_HAS_AVX2)
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
