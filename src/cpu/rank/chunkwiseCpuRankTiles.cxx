/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuRankTiles.h"

#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuRankCounts.h"
#include "chunkwiseRankWindows.h"
#include "chunkwiseSidedBoxes.h"

namespace chunkwise
{

namespace
{

/** The axes along which a tile has more than one output: those of the window, then others. */
struct TileAxes
{
  int axis[3];

  explicit TileAxes(const Coordinates & radius)
  {
    int  found = 0;
    bool taken[MaxDimension] = {};
    for (const bool wide : { true, false })
    {
      for (int a = 0; a < MaxDimension && found < 3; ++a)
      {
        if (!taken[a] && (radius[a] > 0) == wide)
        {
          taken[a] = true;
          axis[found++] = a;
        }
      }
    }
    std::sort(axis, axis + 3);
  }
};

constexpr std::int64_t LargestTile[3] = { RankTileWidth, RankTileSide, RankTileSide };

/** Parts of a worker's memory, for so many voxels, positions of them along the first axis and planes of outputs.
 * Returns the bytes. */
template <typename TKey>
std::int64_t
LayOut(RankTile<TKey> & tile, std::int64_t voxels, std::int64_t width, std::int64_t planes, char * memory)
{
  std::int64_t bytes = 0;
  const auto   take = [&](auto *& part, std::int64_t n) {
    part = reinterpret_cast<std::remove_reference_t<decltype(part)>>(memory + bytes);
    bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(*part)));
  };
  const std::int64_t outputs = planes * RankTileSide * RankTileWidth;
  take(tile.keys, voxels);
  take(tile.places, voxels + RankTileLook);
  take(tile.histograms, std::int64_t{ RankTileDigits<TKey> } << RankTileDigitBits<TKey>);
  take(tile.rows, (planes + 1) * (RankTileSide + 1) * RankTileWidth);
  take(tile.sums, RankTileSide * RankTileWidth);
  take(tile.masks, width * RankTileWidth);
  take(tile.left, outputs);
  take(tile.found, outputs);
  take(tile.ranks, outputs);
  take(tile.results, outputs);
  for (int i = 0; i < (RankTileDigits<TKey> > 1 ? 2 : 0); ++i)
  {
    std::conditional_t<sizeof(TKey) <= 4, std::uint64_t, RankTileItem> * items = nullptr;
    take(items, voxels);
    tile.items[i] = items;
  }
  return bytes;
}

Coordinates
TileOutputs(const Box & output, const TileAxes & axes)
{
  Coordinates tile = Coordinates::Filled(1);
  for (int k = 0; k < 3; ++k)
  {
    tile[axes.axis[k]] = std::min(output.Extent(axes.axis[k]), LargestTile[k]);
  }
  return tile;
}

template <typename TKey>
std::int64_t
BytesOf(const Coordinates & radius, const Box & output)
{
  const TileAxes axes(radius);
  Coordinates    voxels = TileOutputs(output, axes);
  std::int64_t   n = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels[a] += 2 * radius[a];
    n *= voxels[a];
  }
  RankTile<TKey>     tile;
  const std::int64_t planes = voxels[axes.axis[2]] - 2 * radius[axes.axis[2]];
  return LayOut(tile, n, voxels[axes.axis[0]], planes, nullptr);
}

template <typename TPixel, typename TOut>
void
RunTile(const KernelCall & call, const RankWindows & windows, const TileAxes & axes, const Box & output, char * memory)
{
  using KeyOf = RankKey<TPixel>;
  using Key = typename KeyOf::Type;
  const auto &     functions = RankFunctionsOf<Key>(GetCpuLevel());
  const SidedBoxes boxes(output, call.image, windows.sides, windows.boundary.mode);
  const Box &      voxels = boxes.padded;
  RankTile<Key>    tile;
  LayOut(tile, voxels.NumberOfVoxels(), voxels.Extent(axes.axis[0]), output.Extent(axes.axis[2]), memory);
  tile.taps = 1;
  for (int k = 0; k < 3; ++k)
  {
    const int a = axes.axis[k];
    tile.sides[k] = voxels.Extent(a);
    tile.outputs[k] = output.Extent(a);
    tile.lowers[k] = windows.sides.lower[a];
    tile.uppers[k] = windows.sides.upper[a];
    tile.shifts[k] = voxels.lower[a] - output.lower[a];
    tile.taps *= windows.sides.Taps(a);
  }
  LoadTile<TPixel>(call.inputs[0],
                   call.image,
                   voxels,
                   windows.boundary.mode,
                   KeyOf::From(ConstantPixel<TPixel>(windows.boundary.constant)),
                   tile.keys,
                   [](TPixel pixel) { return KeyOf::From(pixel); });
  functions.sortTile(tile, KeyOf::IsReal);
  const auto countOf = [&](int k, std::int64_t o) {
    const std::int64_t center = o - tile.shifts[k];
    return std::min(center + tile.uppers[k], tile.sides[k] - 1) - std::max<std::int64_t>(center - tile.lowers[k], 0) +
           1;
  };
  const auto forEachRow = [&](auto && body) {
    for (std::int64_t m = 0; m < tile.outputs[2]; ++m)
    {
      for (std::int64_t q = 0; q < tile.outputs[1]; ++q)
      {
        body(m, q, (m * RankTileSide + q) * RankTileWidth);
      }
    }
  };
  const RankCounts counts(call, windows.isCounted);
  forEachRow([&](std::int64_t m, std::int64_t q, std::int64_t row) {
    const std::int64_t others = countOf(2, m) * countOf(1, q);
    Coordinates        at = output.lower;
    at[axes.axis[1]] += q;
    at[axes.axis[2]] += m;
    for (std::int64_t p = 0; p < tile.outputs[0]; ++p, ++at[axes.axis[0]])
    {
      std::int32_t &     rank = tile.ranks[row + p];
      const std::int64_t n = others * countOf(0, p);
      rank = static_cast<std::int32_t>(RankIn(n, counts.AbsentAt(at, n, rank), windows.fraction));
    }
  });
  functions.findInTile(tile);
  forEachRow([&](std::int64_t m, std::int64_t q, std::int64_t row) {
    Coordinates at = output.lower;
    at[axes.axis[1]] += q;
    at[axes.axis[2]] += m;
    TOut * const       to = static_cast<TOut *>(call.output.data) + call.output.Offset(at);
    const std::int64_t stride = call.output.stride[axes.axis[0]];
    for (std::int64_t p = 0; p < tile.outputs[0]; ++p)
    {
      to[p * stride] = static_cast<TOut>(KeyOf::To(tile.results[row + p]));
    }
  });
}

} // namespace

bool
RankTilesTake(const Coordinates & radius, PixelType kind)
{
  const TileAxes axes(radius);
  std::int64_t   voxels = 1;
  std::int64_t   taps = 1;
  for (int k = 0; k < 3; ++k)
  {
    const std::int64_t r = radius[axes.axis[k]];
    // Places have bits for no more.
    if (2 * r + LargestTile[k] > 512)
    {
      return false;
    }
    voxels *= 2 * r + LargestTile[k];
    taps *= 2 * r + 1;
  }
  // Above where both take as long; and within the memory that a tile may take.
  const std::size_t  size = PixelSize(kind);
  const std::int64_t most = size == 1 ? 250 : size == 2 ? 90 : size == 4 ? 27 : 8;
  return taps > most && voxels <= std::int64_t{ 1 } << 21;
}

std::int64_t
RankTilesBytes(const Coordinates & radius, const Box & output, PixelType kind)
{
  return DispatchPixelType(
    kind, [&](auto pixel) { return BytesOf<typename RankKey<decltype(pixel)>::Type>(radius, output); });
}

Coordinates
RankTileExtent(const Box & output, const Coordinates & radius)
{
  return TileOutputs(output, TileAxes(radius));
}

void
RunRankTilesOf(const KernelCall & call, const Coordinates & radius, const Box & part, char * memory)
{
  const TileAxes    axes(radius);
  const Coordinates extent = TileOutputs(call.output.box, axes);
  const RankWindows windows(*call.operation, call.image.Extents());
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    DispatchOutput<decltype(pixel)>(call.output.kind, [&](auto out) {
      for (std::int64_t i = 0; i < CountTiles(part, extent); ++i)
      {
        RunTile<decltype(pixel), decltype(out)>(call, windows, axes, TileNumber(part, extent, i), memory);
      }
    });
  });
}

} // namespace chunkwise
