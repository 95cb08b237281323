/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNeighborOffsets.h"

#include <algorithm>

namespace chunkwise
{

std::vector<Coordinates>
GetNeighborOffsets(const std::vector<int> & axes, int connectivity)
{
  std::vector<Coordinates> offsets;
  int                      count = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    count *= 3;
  }
  for (int code = 0; code < count; ++code)
  {
    // The slowest axis is the most significant digit.
    Coordinates offset{};
    int         steps = 0;
    bool        isSpatial = true;
    for (int a = 0, rest = code; a < MaxDimension; ++a, rest /= 3)
    {
      offset[a] = rest % 3 - 1;
      steps += offset[a] != 0 ? 1 : 0;
      isSpatial = isSpatial && (offset[a] == 0 || std::find(axes.begin(), axes.end(), a) != axes.end());
    }
    if (isSpatial && steps > 0 && steps <= connectivity)
    {
      offsets.push_back(offset);
    }
  }
  return offsets;
}

} // namespace chunkwise
