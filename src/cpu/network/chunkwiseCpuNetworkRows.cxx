/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuNetworkRows.h"

#include "chunkwiseCpuLevel.h"

#include <string>

namespace chunkwise
{

AddToNetworkTileFunction
GetAddToNetworkTileBaseline();
AddToNetworkTileFunction
GetAddToNetworkTileAvx2();
AddToNetworkTileFunction
GetAddToNetworkTileAvx512();

AddToNetworkTileFunction
GetAddToNetworkTile()
{
  const std::string level = GetCpuLevel().name;
#if defined(CHUNKWISE_HAS_AVX512)
  if (level == "avx512")
  {
    return GetAddToNetworkTileAvx512();
  }
#endif
#if defined(CHUNKWISE_HAS_AVX2)
  if (level == "avx2")
  {
    return GetAddToNetworkTileAvx2();
  }
#endif
  return GetAddToNetworkTileBaseline();
}

} // namespace chunkwise
