/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMarch.h"

#include "chunkwiseCpuLevels.h"


namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(MarchLevel, MakeMarchLevel)

const MarchLevel &
GetMarchLevel()
{
  static FunctionsAtLevels<MarchLevel> levels{ CHUNKWISE_AT_LEVELS(MakeMarchLevel) };
  return levels.Get();
}

MarchTiling::MarchTiling(const Box & output, const Coordinates & theRadius, std::int64_t bytes, std::int64_t size)
  : radius(theRadius)
  , line(MarchLine / size)
{
  int across = 0;
  for (int a = 1; a < MaxDimension; ++a)
  {
    if (radius[a] > 0)
    {
      axis = a;
      ++across;
    }
  }
  // The number of columns for the axes between x and the march. The more there are, the more of a tile is surroundings.
  const std::int64_t middle = across == 2 ? 64 : across == 3 ? 16 : 8;
  std::int64_t       columns = 1;
  for (int a = 1; a < MaxDimension; ++a)
  {
    std::int64_t wanted = 1;
    if (a == axis)
    {
      wanted = std::max<std::int64_t>(64, 16 * radius[a]);
    }
    else if (radius[a] > 0)
    {
      wanted = std::max(middle, radius[a]);
      columns *= wanted;
    }
    tile[a] = std::min(output.Extent(a), wanted);
  }
  const std::int64_t planes = 2 * radius[axis] + MarchTogether;
  const std::int64_t fitting = CacheBytes / (planes * columns * bytes) / line * line;
  tile[0] = std::min(output.Extent(0), std::min<std::int64_t>(std::max<std::int64_t>(fitting, 4 * line), 1024));
}

Coordinates
MarchTiling::Balance(const Box & output, unsigned int workers) const
{
  const auto equalise = [&output](int a, std::int64_t most) {
    const std::int64_t parts = (output.Extent(a) + most - 1) / most;
    return (output.Extent(a) + parts - 1) / parts;
  };
  Coordinates balanced = tile;
  for (int a = 0; a < MaxDimension; ++a)
  {
    balanced[a] = equalise(a, tile[a]);
  }
  // Rows are whole lines but at the image's end.
  balanced[0] = std::min(tile[0], (balanced[0] + line - 1) / line * line);
  const std::int64_t shortest = std::max<std::int64_t>(8, 4 * radius[axis]);
  while (workers > 1 && CountTiles(output, balanced) < 4 * static_cast<std::int64_t>(workers) &&
         balanced[axis] > shortest)
  {
    balanced[axis] = equalise(axis, std::max(shortest, balanced[axis] / 2));
  }
  return balanced;
}

} // namespace chunkwise
