/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuWindow.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuTiles.h"

namespace chunkwise
{

namespace
{

/** Windows from which on the sweep makes more results together: their rows lie in so many slabs. */
constexpr std::int64_t LongRadius = 16;

std::int64_t
Equalise(std::int64_t extent, std::int64_t largest)
{
  const std::int64_t parts = (extent + largest - 1) / largest;
  return (extent + parts - 1) / parts;
}

} // namespace

void
ForEachTileOf(const Coordinates & tile, const KernelCall & call, const Box & part, const TileBody & body)
{
  call.executor->ParallelFor(CountTiles(part, tile), [&](std::int64_t task, unsigned int worker) {
    if (call.control && call.control->ShouldStop())
    {
      return;
    }
    const Box box = TileNumber(part, tile, task, FastestAxis(call.inputs[0]));
    body(box, worker);
    GetCpuLevel().endStream();
    if (call.control)
    {
      call.control->AddFinishedVoxels(box.NumberOfVoxels());
    }
  });
}

WindowTiling::WindowTiling(const Box & output, const Box & image, const std::int64_t (&radius)[MaxDimension],
                           std::int64_t accBytes, bool clips, std::int64_t componentsTogether)
  : components(componentsTogether)
{
  tile = Coordinates::Filled(1);
  tile[MaxDimension - 1] = components;
  for (int a = MaxDimension - 1; a > 0; --a)
  {
    if (radius[a] > 0)
    {
      sweep = a;
      break;
    }
  }
  for (int a = 1; a < sweep; ++a)
  {
    if (radius[a] > 0)
    {
      if (middles == 2)
      {
        throw ParameterError("a window takes part in at most " + std::to_string(MaxSpatialAxes) + " axes");
      }
      middle[middles++] = a;
    }
  }
  if (middles == 2 && radius[0] > 0)
  {
    throw ParameterError("a window takes part in at most " + std::to_string(MaxSpatialAxes) + " axes");
  }
  line = std::max<std::int64_t>(1, 64 / accBytes);
  ringSlots = 1;
  if (sweep < 0)
  {
    tile[1] = std::min(output.Extent(1), RowsOfTask);
  }
  else
  {
    tile[sweep] = output.Extent(sweep);
    // Rows that are made together need more slabs than one; blocks keep one beside their slots.
    const std::int64_t slabs = 2 * radius[sweep] + RowsTogether;
    ringSlots = clips ? std::min(slabs, image.Extent(sweep)) : slabs;
  }
  const std::int64_t fitting = CacheBytes / accBytes / (ringSlots + 1);
  std::int64_t       widest = MostOfRow / components;
  if (middles == 1 && radius[0] > 0)
  {
    // Tiles pass along x what they share along the middle axis, so that they are high; rows are long nevertheless:
    // short ones are stored in parts of lines, for which the next row waits.
    const std::int64_t wanted = fitting / (6 * radius[middle[0]]) / components / line * line;
    widest = std::min(widest, std::max(wanted, 20 * line));
  }
  tile[0] = Equalise(output.Extent(0), widest);
  tile[0] = std::min(widest, tile[0] < output.Extent(0) ? RoundToLine(tile[0]) : tile[0]);
  row = RoundToLine(std::min(output.Extent(0), widest) * components);
  std::int64_t rows = std::max<std::int64_t>(4, fitting / row);
  slab = row;
  for (int i = 0; i < middles; ++i)
  {
    // With several components few rows fit the cache, and tiles share the rows between them. Beside a large radius a
    // ring beyond the cache costs less than passes along x over rows that two tiles need.
    const std::int64_t least =
      std::min<std::int64_t>((components > 1 ? 6 : 2) * radius[middle[i]], components > 1 ? 64 : 256);
    const std::int64_t wanted = std::max(std::min<std::int64_t>(rows, 128), least);
    tile[middle[i]] = Equalise(output.Extent(middle[i]), wanted);
    rows = std::max<std::int64_t>(4, rows / tile[middle[i]]);
    slab *= std::min(output.Extent(middle[i]), wanted);
  }
  // Slabs at distances of a power of two would share few lines of the caches.
  slab += line;
  if (sweep >= 0 && radius[sweep] >= LongRadius)
  {
    // Rows of long windows then come from memory once for many results.
    together = 4 * RowsTogether;
    ringSlots += together - RowsTogether;
  }
  const std::int64_t alongX = 2 * radius[0] * components;
  paddedRow = row + RoundToLine(alongX) + line;
  firstSlab = secondSlab = 0;
  slots = 2 * radius[0] + 1 > 9 ? RoundToLine(2 * radius[0] + 1) : 0;
  for (int i = 0; i < middles; ++i)
  {
    const std::int64_t taps = 2 * radius[middle[i]] + 1;
    std::int64_t       rowsRead = tile[middle[i]] + taps - 1;
    rowsRead = clips ? std::min(rowsRead, image.Extent(middle[i])) : rowsRead;
    if (i == 0)
    {
      firstSlab = rowsRead * row;
    }
    else
    {
      secondSlab = rowsRead * tile[middle[0]] * row;
    }
    slots = std::max(slots, taps > 9 ? (taps + 1) * row : 0);
  }
  scratch = 2 * paddedRow + firstSlab + secondSlab + (ringSlots + 1) * slab + slots + (1 + RowsTogether) * row;
  // Workers' parts begin on separate cache lines.
  scratch = (scratch + 63) / 64 * 64;
}

void
WindowTiling::AddKnownRows()
{
  known = (1 + (middles > 0 ? tile[middle[0]] : 0)) * tile[0];
  scratch = (scratch + known + 63) / 64 * 64;
}

std::int64_t
WindowTiling::GetScratch(const Box & output, const Box & image, const std::int64_t (&radius)[MaxDimension],
                         std::int64_t accBytes, bool clips)
{
  const std::int64_t together =
    radius[MaxDimension - 1] > 0 ? 1 : std::min(output.Extent(MaxDimension - 1), MostComponentsTogether);
  return std::max(WindowTiling(output, image, radius, accBytes, clips, 1).scratch,
                  WindowTiling(output, image, radius, accBytes, clips, std::max<std::int64_t>(together, 1)).scratch);
}

} // namespace chunkwise
