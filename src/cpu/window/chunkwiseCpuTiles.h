/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuTiles_h
#define chunkwiseCpuTiles_h

#include "chunkwiseCpuStridedRow.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseOperation.h"
#include "chunkwiseWindow.h"

#include <algorithm>
#include <functional>

// Windows over tiles of the output that are small enough for the caches: each tile is read with its surroundings into a
// dense buffer, so that what follows knows neither the image's edge nor strides.
namespace chunkwise
{

/** Bytes, rounded up so that what follows them begins on a cache line. */
inline std::int64_t
RoundToLine(std::int64_t bytes)
{
  return (bytes + 63) / 64 * 64;
}

/** The extent of a tile of `output`; it does not shrink when the output grows. */
inline Coordinates
TileExtent(const Box & output, const Coordinates & radius)
{
  Coordinates tile{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t wanted = a == 0          ? std::max<std::int64_t>(256, 4 * radius[a])
                                : radius[a] > 0 ? std::max<std::int64_t>(16, 2 * radius[a])
                                                : 1;
    tile[a] = std::min(output.Extent(a), wanted);
  }
  return tile;
}

/** Bytes that each worker needs: what `bytesOf` says of the boxes of the largest tile. */
template <typename TBytesOf>
std::int64_t
TileBytes(const Box & output, const Coordinates & radius, TBytesOf && bytesOf)
{
  const Box tile = Box::FromExtent(TileExtent(output, radius));
  // As in the middle of an image that is large enough not to cut anything.
  return RoundToLine(bytesOf(WindowBoxes(tile, tile, radius, BoundaryMode::Mirror)));
}

/** How many tiles of an extent cover a box. */
inline std::int64_t
CountTiles(const Box & box, const Coordinates & tile)
{
  std::int64_t tiles = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    tiles *= (box.Extent(a) + tile[a] - 1) / tile[a];
  }
  return tiles;
}

/** Tile number `i` of them, x, or another axis, fastest. */
inline Box
TileNumber(const Box & box, const Coordinates & tile, std::int64_t i, int fastest = 0)
{
  Box part = box;
  for (int k = 0; k < MaxDimension; ++k)
  {
    const int          a = (fastest + k) % MaxDimension;
    const std::int64_t count = (box.Extent(a) + tile[a] - 1) / tile[a];
    part.lower[a] = box.lower[a] + i % count * tile[a];
    part.upper[a] = std::min(part.lower[a] + tile[a], box.upper[a]);
    i /= count;
  }
  return part;
}

using TileBody = std::function<void(const Box & tile, unsigned int worker)>;

/** Calls body(box, worker) for tiles of an extent that cover a part of the output, in parallel. No template: a copy for
 * each body would be most of what the kernels' compilation takes. */
void
ForEachTileOf(const Coordinates & tile, const KernelCall & call, const Box & part, const TileBody & body);

/** The same for all of the output. */
inline void
ForEachTileOf(const Coordinates & tile, const KernelCall & call, const TileBody & body)
{
  ForEachTileOf(tile, call, call.output.box, body);
}

/** The same for tiles of the usual extent. */
inline void
ForEachTile(const KernelCall & call, const Coordinates & radius, const TileBody & body)
{
  ForEachTileOf(TileExtent(call.output.box, radius), call, body);
}

/** Calls f(index) for the first voxel of each row of `box`. */
template <typename TFunctor>
void
ForEachRow(const Box & box, TFunctor && f)
{
  Coordinates        index = box.lower;
  const std::int64_t rows = box.NumberOfVoxels() / std::max<std::int64_t>(box.Extent(0), 1);
  for (std::int64_t row = 0; row < rows; ++row)
  {
    f(static_cast<const Coordinates &>(index));
    for (int a = 1; a < MaxDimension; ++a)
    {
      if (++index[a] < box.upper[a])
      {
        break;
      }
      index[a] = box.lower[a];
    }
  }
}

/** Copies `box` of the image, continued beyond its edge as the mode says, to a dense buffer. convert(pixel) gives what
 * is stored; `beyond` is stored where there is nothing but the constant. With `components` together
 * (ComponentsTogether) the box has the first, and all are stored side by side. */
template <typename TIn, typename TTo, typename TConvert>
void
LoadTile(const BufferView & input, const Box & image, const Box & box, BoundaryMode mode, TTo beyond, TTo * to,
         TConvert && convert, std::int64_t components = 1)
{
  const auto map = [&](int a, std::int64_t i) {
    return MapTap(i, input.box.lower[a], input.box.upper[a], image.Extent(a), mode);
  };
  const bool         constant = mode == BoundaryMode::Constant;
  const std::int64_t n = box.Extent(0);
  const std::int64_t from = std::min(std::max(box.lower[0], input.box.lower[0]), box.upper[0]);
  const std::int64_t until = std::max(std::min(box.upper[0], input.box.upper[0]), from);
  ForEachRow(box, [&](const Coordinates & index) {
    Coordinates at = index;
    bool        there = true;
    for (int a = 1; a < MaxDimension; ++a)
    {
      at[a] = map(a, index[a]);
      there = there && !(constant && at[a] < 0);
    }
    if (!there)
    {
      std::fill(to, to + n * components, beyond);
    }
    else
    {
      at[0] = input.box.lower[0];
      const TIn * const  line = static_cast<const TIn *>(input.data) + input.Offset(at);
      const std::int64_t stride = input.stride[0];
      const auto         edge = [&](std::int64_t x) {
        const std::int64_t source = map(0, x);
        for (std::int64_t c = 0; c < components; ++c)
        {
          to[(x - box.lower[0]) * components + c] =
            constant && source < 0 ? beyond
                                           : static_cast<TTo>(convert(line[(source - input.box.lower[0]) * stride + c]));
        }
      };
      for (std::int64_t x = box.lower[0]; x < from; ++x)
      {
        edge(x);
      }
      const TIn * const inside = line + (from - input.box.lower[0]) * stride;
      TTo * const       toInside = to + (from - box.lower[0]) * components;
      const auto        load = [&](auto step) {
        for (std::int64_t i = 0; i < (until - from) * components; ++i)
        {
          toInside[i] = static_cast<TTo>(convert(inside[i * step]));
        }
      };
      WithStride(components > 1 ? 1 : stride, load);
      for (std::int64_t x = until; x < box.upper[0]; ++x)
      {
        edge(x);
      }
    }
    to += n * components;
  });
}

/** Number of the voxel at `index` in a dense buffer of `box`. */
inline std::int64_t
DenseOffset(const Box & box, const Coordinates & index)
{
  std::int64_t offset = 0;
  for (int a = MaxDimension - 1; a >= 0; --a)
  {
    offset = offset * box.Extent(a) + index[a] - box.lower[a];
  }
  return offset;
}

/** One pass of a window, row by row of what it gives. For each row, beginning at voxel `at`: begin(at); then
 * tap(t, from, first, last) for each tap t = 0 ... 2 radius that some of the row has, in ascending order: of the row's
 * voxels first <= x < last, counted from its begin, the tap is x + (the row of `from`, a voxel of the box before); then
 * end(at). */
template <typename TBegin, typename TTap, typename TEnd>
void
WalkPass(const WindowBoxes & boxes, int pass, TBegin && begin, TTap && tap, TEnd && end)
{
  const Box &        before = boxes.Before(pass);
  const Box &        after = boxes.after[pass];
  const int          a = boxes.axes[pass];
  const std::int64_t r = boxes.radius[a];
  const std::int64_t n = after.Extent(0);
  ForEachRow(after, [&](const Coordinates & at) {
    begin(at);
    for (std::int64_t t = -r; t <= r; ++t)
    {
      Coordinates from = at;
      from[a] += t;
      if (a == 0)
      {
        const std::int64_t first = std::max<std::int64_t>(0, before.lower[0] - from[0]);
        const std::int64_t last = std::min(n, before.upper[0] - from[0]);
        if (first < last)
        {
          tap(t + r, from, first, last);
        }
      }
      else if (from[a] >= before.lower[a] && from[a] < before.upper[a])
      {
        tap(t + r, from, std::int64_t{ 0 }, n);
      }
    }
    end(at);
  });
}

/** How many taps a pass has at position `i` of its axis. */
inline std::int64_t
CountTaps(const WindowBoxes & boxes, int pass, std::int64_t i)
{
  const int   a = boxes.axes[pass];
  const Box & before = boxes.Before(pass);
  return std::min(i + boxes.radius[a], before.upper[a] - 1) - std::max(i - boxes.radius[a], before.lower[a]) + 1;
}

/** Stores a row of results. */
template <typename TOut, typename TFunctor>
void
StoreRow(const BufferView & output, const Coordinates & at, std::int64_t n, TFunctor && result)
{
  TOut * const to = static_cast<TOut *>(output.data) + output.Offset(at);
  WithStride(output.stride[0], [&](auto step) {
    for (std::int64_t i = 0; i < n; ++i)
    {
      to[i * step] = result(i);
    }
  });
}

} // namespace chunkwise

#endif
