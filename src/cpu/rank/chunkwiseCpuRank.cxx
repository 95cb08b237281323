/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuRank.h"

#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuMedians.h"
#include "chunkwiseCpuRankCounts.h"
#include "chunkwiseCpuRankLines.h"
#include "chunkwiseCpuRankTiles.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseRankWindows.h"
#include "chunkwiseSidedBoxes.h"

#include <limits>
#include <vector>

// Small windows; for large ones see chunkwiseCpuRankTiles.h, for those along one axis chunkwiseCpuRankLines.h, for
// medians of the smallest chunkwiseCpuMedians.h. The
// bits of a result are found from the highest on: with those known before, the next is 1 if no more voxels of the
// window than the rank are below the number that it would make. So many voxels of a row are searched together.
namespace chunkwise
{

namespace
{

/** The parts of a worker's memory. */
template <typename TKey>
struct RankMemory
{
  TKey *         keys{ nullptr };
  TKey *         results{ nullptr };
  std::int32_t * ranks{ nullptr };
  const TKey **  lines{ nullptr };

  std::int64_t
  LayOut(const WindowBoxes & boxes, char * memory)
  {
    std::int64_t bytes = 0;
    const auto   take = [&](auto *& part, std::int64_t n) {
      part = reinterpret_cast<std::remove_reference_t<decltype(part)>>(memory + bytes);
      bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(*part)));
    };
    std::int64_t rows = 1;
    for (int a = 1; a < MaxDimension; ++a)
    {
      rows *= 2 * boxes.radius[a] + 1;
    }
    const std::int64_t n = boxes.after[boxes.count - 1].Extent(0);
    take(keys, boxes.padded.NumberOfVoxels());
    take(results, n);
    take(ranks, n);
    take(lines, rows);
    return bytes;
  }
};

/** Calls f(begin, end) for the parts of a row that have a voxel for which is(x); their lengths are multiples of
 * `least`, as many as are searched at once. */
template <typename TIs, typename TFunctor>
void
ForEachPart(std::int64_t n, std::int64_t least, TIs && is, TFunctor && f)
{
  std::int64_t begin = 0;
  while (begin < n)
  {
    if (!is(begin))
    {
      ++begin;
      continue;
    }
    std::int64_t end = begin;
    std::int64_t last = begin;
    do
    {
      end = std::min(end + least, n);
      last = end;
      while (!is(last - 1))
      {
        --last;
      }
      // The next voxels, unless there are none.
    } while (last == end && end < n);
    f(begin, end);
    begin = end;
  }
}

/** Whether windows are cut at the image's edge. */
bool
IsCut(const RankWindows & windows)
{
  return windows.boundary.mode == BoundaryMode::Renormalized;
}

/** The functions for the input's and the output's pixel types, beside those for the keys. */
template <typename TKey>
struct KeyedKinds
{
  /** NaN has the key 0. */
  bool isReal;
  /** The keys of a tile with its surroundings. */
  void (*load)(const KernelCall & call, const RankWindows & windows, const Box & padded, TKey * keys);
  /** `n` keys as a row of the output, from `at` on. */
  void (*store)(const BufferView & output, const Coordinates & at, std::int64_t n, const TKey * keys);
};

template <typename TPixel>
void
LoadKeys(const KernelCall & call, const RankWindows & windows, const Box & padded,
         typename RankKey<TPixel>::Type * keys)
{
  using KeyOf = RankKey<TPixel>;
  // Missing voxels are above everything, and are not counted.
  const bool cuts = IsCut(windows);
  LoadTile<TPixel>(call.inputs[0],
                   call.image,
                   padded,
                   cuts ? BoundaryMode::Constant : windows.boundary.mode,
                   cuts ? std::numeric_limits<typename KeyOf::Type>::max()
                        : KeyOf::From(ConstantPixel<TPixel>(windows.boundary.constant)),
                   keys,
                   [](TPixel pixel) { return KeyOf::From(pixel); });
}

template <typename TPixel, typename TOut>
void
StoreKeys(const BufferView & output, const Coordinates & at, std::int64_t n,
          const typename RankKey<TPixel>::Type * keys)
{
  StoreRow<TOut>(output, at, n, [keys](std::int64_t x) { return static_cast<TOut>(RankKey<TPixel>::To(keys[x])); });
}

template <typename TKey>
void
RunTile(const KernelCall & call, const RankWindows & windows, const WindowBoxes & boxes,
        const RankMemory<TKey> & memory, const KeyedKinds<TKey> & kinds)
{
  using Key = TKey;
  const RankFunctions<Key> & functions = RankFunctionsOf<Key>(GetCpuLevel());
  const Box &                padded = boxes.padded;
  const bool                 cuts = IsCut(windows);
  kinds.load(call, windows, padded, memory.keys);
  const Box          output = boxes.after[boxes.count - 1];
  const std::int64_t n = output.Extent(0);
  const auto &       sides = windows.sides;
  const std::int64_t taps = sides.Taps(0);
  const auto         countOf = [&](int a, std::int64_t i) {
    return cuts ? windows.TapsInside(a, i, call.image.Extent(a)) : sides.Taps(a);
  };
  const RankCounts counts(call, windows.isCounted);
  ForEachRow(output, [&](const Coordinates & at) {
    Box          window{ at, at };
    std::int64_t others = 1;
    for (int a = 1; a < MaxDimension; ++a)
    {
      window.lower[a] = at[a] - sides.lower[a];
      window.upper[a] = at[a] + sides.upper[a] + 1;
      others *= countOf(a, at[a]);
    }
    window.lower[0] = padded.lower[0];
    window.upper[0] = padded.lower[0] + 1;
    const std::int64_t first = at[0] - sides.lower[0] - padded.lower[0];
    std::int64_t       lines = 0;
    ForEachRow(window, [&](const Coordinates & line) {
      memory.lines[lines++] = memory.keys + DenseOffset(padded, line) + first;
    });
    const auto search = [&](std::int64_t begin, std::int64_t end, auto && absentAt) {
      const std::int64_t width = end - begin;
      Coordinates        index = at;
      index[0] += begin;
      if (kinds.isReal)
      {
        std::fill(memory.results, memory.results + width, Key{ 1 });
        functions.countBelow(memory.ranks, memory.lines, lines, taps, memory.results, width);
      }
      else
      {
        std::fill(memory.ranks, memory.ranks + width, 0);
      }
      for (std::int64_t x = 0; x < width; ++x)
      {
        const std::int64_t inWindow = others * countOf(0, index[0] + x);
        memory.ranks[x] =
          static_cast<std::int32_t>(RankIn(inWindow, absentAt(begin + x, inWindow, memory.ranks[x]), windows.fraction));
      }
      functions.find(memory.results, memory.lines, lines, taps, memory.ranks, width);
      kinds.store(call.output, index, width, memory.results);
    };
    if (!counts.IsGiven())
    {
      search(0, n, [](std::int64_t, std::int64_t, std::int64_t lost) { return lost; });
      return;
    }
    counts.WithRow(at, [&](auto seen) {
      std::int64_t begun = 0;
      ForEachPart(
        n,
        64 / static_cast<std::int64_t>(sizeof(Key)),
        [&](std::int64_t x) { return seen[x] > 0; },
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t l = 0; l < lines; ++l)
          {
            memory.lines[l] += begin - begun;
          }
          begun = begin;
          search(begin, end, [&](std::int64_t x, std::int64_t inWindow, std::int64_t) {
            return inWindow - static_cast<std::int64_t>(seen[x]);
          });
        });
    });
  });
}

/** A tile of lines, with the memory of one worker. */
template <typename TKey>
void
RunLines(const KernelCall & call, const RankWindows & windows, int axis, const Box & output, char * memory,
         const KeyedKinds<TKey> & kinds)
{
  const SidedBoxes   boxes(output, call.image, windows.sides, windows.boundary.mode);
  const Box &        padded = boxes.padded;
  RankLineTile<TKey> tile;
  tile.lines = axis == 0 ? 1 : output.Extent(0);
  tile.LayOut(padded.Extent(axis), output.Extent(axis), windows.sides.Taps(axis), memory);
  kinds.load(call, windows, padded, tile.keys);
  tile.line.length = padded.Extent(axis);
  tile.line.outputs = output.Extent(axis);
  tile.line.lower = windows.sides.lower[axis];
  tile.line.upper = windows.sides.upper[axis];
  tile.line.shift = padded.lower[axis] - output.lower[axis];
  tile.line.fraction = windows.fraction;
  tile.line.isReal = kinds.isReal;
  FindInLines(tile);
  const TKey * row = tile.results;
  ForEachRow(output, [&](const Coordinates & at) {
    kinds.store(call.output, at, output.Extent(0), row);
    row += output.Extent(0);
  });
}

/** The same for a part of the output, tile by tile. */
template <typename TKey>
void
RunTiles(const KernelCall & call, const RankWindows & windows, const Box & part, char * memory,
         const KeyedKinds<TKey> & kinds)
{
  const Coordinates radius = windows.sides.Farthest();
  const Coordinates extent = TileExtent(call.output.box, radius);
  for (std::int64_t i = 0; i < CountTiles(part, extent); ++i)
  {
    // Windows are whole: the keys of what is beyond the image's edge say so.
    const WindowBoxes boxes(TileNumber(part, extent, i), call.image, radius, BoundaryMode::Mirror);
    RankMemory<TKey>  parts;
    parts.LayOut(boxes, memory);
    RunTile(call, windows, boxes, parts, kinds);
  }
}

template <typename TKey>
std::int64_t
BytesOf(const Box & output, const Coordinates & radius)
{
  return TileBytes(output, radius, [](const WindowBoxes & boxes) { return RankMemory<TKey>().LayOut(boxes, nullptr); });
}

/** How ranks are found: in sorted tiles or bit by bit, and by networks where no voxel is NaN. */
struct RankWays
{
  bool medians;
  bool tiles;
};

RankWays
ChooseWays(const Operation & operation, const Coordinates & image, PixelType kind)
{
  const auto * const rank = dynamic_cast<const RankOperation *>(&operation);
  return { rank && !rank->isCounted && MediansTake(*rank, image),
           RankTilesTake(RankWindows(operation, image).sides.Farthest(), kind) };
}

/** Bytes that each worker needs to find ranks bit by bit or in sorted tiles. */
std::int64_t
BytesOfRanks(const RankWays & ways, const Coordinates & radius, const Box & output, PixelType kind)
{
  return ways.tiles ? RankTilesBytes(radius, output, kind) : DispatchPixelType(kind, [&](auto pixel) {
    return BytesOf<typename RankKey<decltype(pixel)>::Type>(output, radius);
  });
}

/** Calls f(kinds) with what is known of a call's kinds. */
template <typename TFunctor>
void
WithKinds(const KernelCall & call, TFunctor && f)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Key = typename RankKey<Pixel>::Type;
    KeyedKinds<Key> kinds{ RankKey<Pixel>::IsReal, LoadKeys<Pixel>, nullptr };
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) { kinds.store = StoreKeys<Pixel, decltype(out)>; });
    f(kinds);
  });
}

/** Finds the ranks of a part of the output, bit by bit or in sorted tiles, with the memory of one worker. */
void
RunRanks(bool inTiles, const KernelCall & call, const Coordinates & radius, const Box & part, char * memory)
{
  if (inTiles)
  {
    RunRankTilesOf(call, radius, part, memory);
    return;
  }
  const RankWindows windows(*call.operation, call.image.Extents());
  WithKinds(call, [&](const auto & kinds) { RunTiles(call, windows, part, memory, kinds); });
}

/** The tile that is computed at once, for pixels with so many components together, and the bytes that each worker needs
 * for it, whether or not components are interleaved. */
struct RankWork
{
  Coordinates  tile;
  std::int64_t bytes;

  RankWork(const RankWays & ways, const Coordinates & radius, const Box & output, PixelType kind,
           std::int64_t components)
    : tile(ways.medians ? MedianTileExtent(output, radius, kind, components)
           : ways.tiles ? RankTileExtent(output, radius)
                        : TileExtent(output, radius))
    , bytes(BytesOfRanks(ways, radius, output, kind))
  {
    if (ways.medians)
    {
      const std::int64_t most =
        MediansTogether(radius, kind, std::min(output.Extent(MaxDimension - 1), MostComponentsTogether));
      for (const std::int64_t together : { std::int64_t{ 1 }, std::max<std::int64_t>(most, 1) })
      {
        bytes =
          std::max(bytes, MedianTileBytes(MedianTileExtent(output, radius, kind, together), radius, kind, together));
      }
    }
  }
};

/** The part of a tile where windows see something. */
Box
SeenPart(const KernelCall & call, const Box & tile)
{
  const RankCounts   counts(call, true);
  const std::int64_t n = tile.Extent(0);
  Box                part{ tile.upper, tile.lower };
  ForEachRow(tile, [&](const Coordinates & at) {
    counts.WithRow(at, [&](auto seen) {
      std::int64_t begin = 0;
      std::int64_t end = n;
      CutEnds(seen, begin, end);
      if (begin == end)
      {
        return;
      }
      for (int a = 0; a < MaxDimension; ++a)
      {
        part.lower[a] = std::min(part.lower[a], a == 0 ? at[0] + begin : at[a]);
        part.upper[a] = std::max(part.upper[a], a == 0 ? at[0] + end : at[a] + 1);
      }
    });
  });
  return part;
}

/** Runs a tile whose windows may be empty: there the output is 0. */
void
RunCountedTile(bool inTiles, const KernelCall & call, const Coordinates & radius, const Box & tile, char * memory)
{
  const Box part = SeenPart(call, tile);
  if (!(part == tile))
  {
    DispatchPixelType(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      ForEachRow(tile, [&](const Coordinates & at) {
        StoreRow<Out>(call.output, at, tile.Extent(0), [](std::int64_t) { return Out(0); });
      });
    });
  }
  if (!part.IsEmpty())
  {
    RunRanks(inTiles, call, radius, part, memory);
  }
}

template <bool VMedians, bool VTiles>
void
RunRank(const KernelCall & call)
{
  const RankWindows windows(*call.operation, call.image.Extents());
  const Coordinates radius = windows.sides.Farthest();
  const auto        kind = call.inputs[0].kind;
  // Medians of counted voxels have a separate kernel, see RunMaskedMedianTile.
  const std::int64_t components =
    VMedians ? MediansTogether(radius, kind, ComponentsTogether(call.inputs[0], call.output)) : 1;
  const RankWork work({ VMedians, VTiles }, radius, call.output.box, kind, components);
  ForEachTileOf(work.tile, call, [&](const Box & tile, unsigned int worker) {
    char * const memory = static_cast<char *>(call.scratch) + work.bytes * worker;
    if (windows.isCounted)
    {
      RunCountedTile(VTiles, call, radius, tile, memory);
    }
    else if (!VMedians || !RunMedianTile(call, radius, tile, components, memory))
    {
      RunRanks(VTiles, call, radius, tile, memory);
    }
  });
}

/** Bytes that each worker needs for lines. */
std::int64_t
BytesOfLines(std::int64_t taps, int axis, const Box & output, PixelType kind)
{
  const Coordinates extent = RankLineTileExtent(output, taps, axis, kind);
  return DispatchPixelType(kind, [&](auto pixel) {
    RankLineTile<typename RankKey<decltype(pixel)>::Type> tile;
    tile.lines = axis == 0 ? 1 : extent[0];
    return tile.LayOut(extent[axis] + taps - 1, extent[axis], taps, nullptr);
  });
}

void
RunRankLines(const KernelCall & call)
{
  const Coordinates  image = call.image.Extents();
  const RankWindows  windows(*call.operation, image);
  const int          axis = RankLineAxis(windows, image, call.inputs[0].kind);
  const std::int64_t taps = windows.sides.Taps(axis);
  const std::int64_t bytes = BytesOfLines(taps, axis, call.output.box, call.inputs[0].kind);
  WithKinds(call, [&](const auto & kinds) {
    const Coordinates extent = RankLineTileExtent(call.output.box, taps, axis, call.inputs[0].kind);
    ForEachTileOf(extent, call, [&](const Box & tile, unsigned int worker) {
      RunLines(call, windows, axis, tile, static_cast<char *>(call.scratch) + bytes * worker, kinds);
    });
  });
}

} // namespace

KernelChoice
ChooseRank(const Operation & operation, const ChunkShape & shape)
{
  const Coordinates image = shape.image.Extents();
  const RankWindows windows(operation, image);
  if (const int axis = RankLineAxis(windows, image, shape.inputKinds[0]); axis >= 0)
  {
    KernelChoice lines;
    lines.name = "lines";
    lines.run = RunRankLines;
    lines.scratchBytes = static_cast<std::size_t>(
      BytesOfLines(windows.sides.Taps(axis), axis, shape.outputBox, shape.inputKinds[0]) * shape.concurrency);
    return lines;
  }
  const RankWays ways = ChooseWays(operation, image, shape.inputKinds[0]);
  const RankWork work(ways, windows.sides.Farthest(), shape.outputBox, shape.inputKinds[0], 1);
  KernelChoice   choice;
  choice.name = ways.medians ? (ways.tiles ? "medians and tiles" : "medians and bits") : ways.tiles ? "tiles" : "bits";
  choice.run = ways.medians ? (ways.tiles ? RunRank<true, true> : RunRank<true, false>)
               : ways.tiles ? RunRank<false, true>
                            : RunRank<false, false>;
  choice.scratchBytes = static_cast<std::size_t>(work.bytes * shape.concurrency);
  return choice;
}

void
RegisterHostRank(KernelRegistry & registry)
{
  registry.Register("rank", { MakeChoosingKernel<ChooseRank>(false) });
}

} // namespace chunkwise
