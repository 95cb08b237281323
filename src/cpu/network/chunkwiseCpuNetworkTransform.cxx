/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuNetworkTransform.h"

#include "chunkwiseCpuNetworkTiles.h"
#include "chunkwiseNetworkTileGrid.h"
#include "chunkwiseRoundUp.h"

#include <vector>

namespace chunkwise
{

using network::Step;
using network::Tensor;
using network::TileAxis;
using network::TileGrid;

namespace
{

std::int64_t
NumbersOf(int tile)
{
  return static_cast<std::int64_t>(tile) * tile * tile;
}

/** A worker's memory: a tile in space, and what its transform needs. */
struct TileSpace
{
  float * voxels;
  float * work;

  TileSpace(const NetworkWorkers & workers, unsigned int worker, int tile)
    : voxels(reinterpret_cast<float *>(workers.memory + worker * workers.bytes))
    , work(voxels + tile * GetTilePlane(tile))
  {}
};

/** Calls body(task, worker) in parallel until the caller asks for an end. */
template <typename TBody>
void
ForEach(const NetworkWorkers & workers, std::int64_t count, TBody && body)
{
  workers.executor->ParallelFor(count, [&](std::int64_t task, unsigned int worker) {
    if (!workers.shouldStop())
    {
      body(task, worker);
    }
  });
}

/** A tile's voxels of one channel, with zeros where it reaches beyond the tensor. */
void
LoadTile(const Tensor & in, std::int64_t channel, const TileAxis (&axes)[MaxSpatialAxes], int tile, float * voxels)
{
  const TileAxis &    x = axes[0];
  const float * const from = in.data + channel * in.ChannelLength() + x.base + axes[1].base + axes[2].base;
  const std::int64_t  begin = std::min(std::max(x.begin, 0), tile);
  const std::int64_t  end = std::max<std::int64_t>(begin, std::min(x.end, tile));
  for (int z = 0; z < tile; ++z)
  {
    float * const plane = voxels + z * GetTilePlane(tile);
    if (!IsWithin(axes[2], z))
    {
      std::fill(plane, plane + static_cast<std::int64_t>(tile) * std::max(axes[1].end, 0), 0.0f);
      continue;
    }
    for (int y = 0; y < axes[1].end; ++y)
    {
      float * const row = plane + y * tile;
      if (!IsWithin(axes[1], y))
      {
        std::fill(row, row + tile, 0.0f);
        continue;
      }
      const float * const source = from + y * axes[1].step + z * axes[2].step;
      std::fill(row, row + begin, 0.0f);
      if (x.step == 1)
      {
        std::copy(source + begin, source + end, row + begin);
      }
      else
      {
        for (std::int64_t i = begin; i < end; ++i)
        {
          row[i] = source[i * x.step];
        }
      }
      std::fill(row + end, row + tile, 0.0f);
    }
  }
}

/** Sums without a bias to the output's voxels. */
void
StoreTile(const Step & step, std::int64_t channel, const TileAxis (&axes)[MaxSpatialAxes], int tile,
          const float * voxels)
{
  float * const to = step.out.data + channel * step.out.ChannelLength() + axes[0].base + axes[1].base + axes[2].base;
  const float   bias = step.bias ? step.bias[channel] : 0.0f;
  const auto    store = [&](auto && activate) {
    for (int z = 0; z < axes[2].end; ++z)
    {
      for (int y = 0; y < axes[1].end; ++y)
      {
        const float * const row = voxels + z * GetTilePlane(tile) + y * tile;
        float * const       out = to + y * axes[1].step + z * axes[2].step;
        if (axes[0].step == 1)
        {
          for (int x = 0; x < axes[0].end; ++x)
          {
            out[x] = activate(row[x] + bias);
          }
        }
        else
        {
          for (int x = 0; x < axes[0].end; ++x)
          {
            out[x * axes[0].step] = activate(row[x] + bias);
          }
        }
      }
    }
  };
  switch (step.activation)
  {
    case ActivationKind::None:
      return store([](float value) { return value; });
    case ActivationKind::Relu:
      return store([](float value) { return value < 0.0f ? 0.0f : value; });
    default:
      return store([&](float value) { return network::Activate(step, channel, value); });
  }
}

/** Spectra of more than this are not in the caches when they are read. */
constexpr std::size_t CacheBytes = std::size_t{ 16 } << 20;

} // namespace

std::size_t
GetTileWorkerBytes(int tile)
{
  return RoundUp(2 * sizeof(float) * static_cast<std::size_t>(tile * GetTilePlane(tile)));
}

std::size_t
GetTileSlackBytes(int tile)
{
  return 2 * GetSpectrumBytes(tile);
}

void
MakeKernelSpectra(const Step & step, int tile, float * kernels, const NetworkWorkers & workers)
{
  const NetworkTileFunctions & functions = GetNetworkTileFunctions();
  const std::int64_t           inputs = step.in[0].channels;
  const std::int64_t           outputs = step.out.channels;
  const std::int64_t           cells = NumbersOf(tile) / NetworkCell;
  const std::int64_t           taps = step.kernel[0] * step.kernel[1] * step.kernel[2];
  // The transforms there and back multiply by half the number of voxels.
  const float scale = 2.0f / static_cast<float>(NumbersOf(tile));
  ForEach(workers, inputs * outputs, [&](std::int64_t task, unsigned int worker) {
    const TileSpace     space(workers, worker, tile);
    const std::int64_t  o = task / inputs;
    const std::int64_t  i = task % inputs;
    const float * const weights =
      step.packed + (o / ChannelsPerBlock * inputs + i) * taps * ChannelsPerBlock + o % ChannelsPerBlock;
    for (std::int64_t z = 0; z < tile; ++z)
    {
      for (std::int64_t y = 0; y < step.kernel[1]; ++y)
      {
        float * const row = space.voxels + z * GetTilePlane(tile) + y * tile;
        std::fill(row, row + tile, 0.0f);
        for (std::int64_t x = 0; z < step.kernel[2] && x < step.kernel[0]; ++x)
        {
          row[x] = scale * weights[((z * step.kernel[1] + y) * step.kernel[0] + x) * ChannelsPerBlock];
        }
      }
    }
    std::int64_t at = o * cells;
    std::int64_t stride = 1;
    if (inputs > 1)
    {
      const std::int64_t first = o / NetworkProductChannels * NetworkProductChannels;
      at = first * inputs + i * std::min<std::int64_t>(NetworkProductChannels, outputs - first) + (o - first);
      stride = inputs * outputs;
    }
    functions.transform(tile,
                        space.voxels,
                        step.kernel[0],
                        step.kernel[1],
                        space.work,
                        kernels + at * NetworkCell,
                        stride * NetworkCell,
                        true,
                        true);
  });
}

void
ConvolveTiles(const Step & step, const TileChoice & choice, const float * kernels, float * spectra,
              const NetworkWorkers & workers)
{
  const NetworkTileFunctions & functions = GetNetworkTileFunctions();
  const int                    tile = choice.tile;
  const TileGrid               grid(step, tile);
  const std::int64_t           inputs = step.in[0].channels;
  const std::int64_t           outputs = step.out.channels;
  const std::int64_t           cells = NumbersOf(tile) / NetworkCell;
  const std::int64_t           all = grid.Count();
  const std::int64_t           together = std::min(choice.tilesAtOnce, all);
  const bool streams = GetSpectrumBytes(tile) * static_cast<std::size_t>(together * (inputs + outputs)) > CacheBytes;
  const auto load = [&](std::int64_t      number,
                        std::int64_t      map,
                        const TileSpace & space,
                        float *           out,
                        std::int64_t      stride) {
    TileAxis axes[MaxSpatialAxes];
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      axes[a] = FindTileAxis(step, grid, number, a, true);
    }
    LoadTile(step.in[0], map, axes, tile, space.voxels);
    functions.transform(
      tile, space.voxels, std::max(axes[0].end, 0), std::max(axes[1].end, 0), space.work, out, stride, false, streams);
  };
  const auto store =
    [&](std::int64_t number, std::int64_t map, const TileSpace & space, const float * in, std::int64_t stride) {
      TileAxis axes[MaxSpatialAxes];
      for (int a = 0; a < MaxSpatialAxes; ++a)
      {
        axes[a] = FindTileAxis(step, grid, number, a, false);
      }
      if (axes[0].end > 0 && axes[1].end > 0 && axes[2].end > 0)
      {
        functions.transformBack(tile, in, stride, axes[0].end, axes[1].end, space.work, space.voxels);
        StoreTile(step, map, axes, tile, space.voxels);
      }
    };
  for (std::int64_t first = 0; first < all && !workers.shouldStop(); first += choice.tilesAtOnce)
  {
    const std::int64_t count = std::min(choice.tilesAtOnce, all - first);
    // One cell more than there are: what follows in a transform would else fall on the same lines of the caches.
    const std::int64_t inStride = (count * inputs + 1) * NetworkCell;
    const std::int64_t outStride = (count * outputs + 1) * NetworkCell;
    float * const      results = spectra + cells * inStride;
    ForEach(workers, count * inputs, [&](std::int64_t task, unsigned int worker) {
      load(
        first + task / inputs, task % inputs, TileSpace(workers, worker, tile), spectra + task * NetworkCell, inStride);
    });
    if (inputs == 1)
    {
      ForEach(workers, count * outputs, [&](std::int64_t task, unsigned int worker) {
        const TileSpace    space(workers, worker, tile);
        const std::int64_t map = task % outputs;
        const std::int64_t number = task / outputs;
        // The product lies where the voxels will be: they are written when all of it has been read.
        functions.multiplyCells(
          spectra + number * NetworkCell, inStride, kernels + map * cells * NetworkCell, space.voxels, cells);
        store(first + number, map, space, space.voxels, NetworkCell);
      });
      continue;
    }
    ForEach(workers, cells, [&](std::int64_t cell, unsigned int) {
      functions.multiply(spectra + cell * inStride,
                         kernels + cell * inputs * outputs * NetworkCell,
                         results + cell * outStride,
                         count,
                         inputs,
                         outputs,
                         streams);
    });
    ForEach(workers, count * outputs, [&](std::int64_t task, unsigned int worker) {
      store(first + task / outputs,
            task % outputs,
            TileSpace(workers, worker, tile),
            results + task * NetworkCell,
            outStride);
    });
  }
}

namespace
{

/** The place in memory of index `at` of a tensor along an axis. */
std::int64_t
PlaceOf(const Tensor & tensor, int a, std::int64_t at)
{
  std::int64_t voxel;
  std::int64_t fragment;
  network::FindStrides(tensor, a, voxel, fragment);
  const std::int64_t number = (at - tensor.lower[a]) / tensor.fragments[a];
  return number * voxel + ((at - tensor.lower[a]) - number * tensor.fragments[a]) * fragment;
}

/** A tap of the voxels of a row: those in [begin, end) have it inside the image. */
struct RowTap
{
  std::int64_t begin;
  std::int64_t end;
  std::int64_t place;  ///< of the first one's
  std::int64_t stride; ///< 0: places have no one distance
  std::int64_t index;  ///< of voxel 0's
};

/** The taps of n voxels from index x on, `apart` indices apart. */
RowTap
FindRowTap(const Step & step, std::int64_t tap, std::int64_t x, std::int64_t apart, std::int64_t n)
{
  const Tensor &     in = step.in[0];
  const std::int64_t at = x * step.stride[0] - step.padLower[0] + tap * step.dilation[0];
  const std::int64_t by = apart * step.stride[0];
  RowTap             row;
  row.index = at;
  row.begin = std::min(n, at < 0 ? (-at + by - 1) / by : 0);
  row.end = std::max(row.begin, std::min(n, at >= in.whole[0] ? 0 : (in.whole[0] - at + by - 1) / by));
  row.stride = by % in.fragments[0] == 0 ? by / in.fragments[0] : 0;
  row.place = row.begin < row.end ? PlaceOf(in, 0, at + row.begin * by) : 0;
  return row;
}

/** As network::PoolingAt joins them. */
template <bool VMaximum>
inline float
Join(float result, float value)
{
  return !VMaximum ? result + value : value > result || value != value ? value : result;
}

template <bool VMaximum>
inline void
JoinRow(float * to, const float * from, std::int64_t stride, std::int64_t n)
{
  if (VMaximum && stride == 1)
  {
    return GetNetworkTileFunctions().takeMaxima(to, from, n);
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    to[i] = Join<VMaximum>(to[i], from[stride * i]);
  }
}

/** n voxels of the output's channel `c`, `apart` indices apart along x, to `to`. */
template <bool VMaximum>
void
PoolRow(const Step & step, std::int64_t c, const RowTap * taps, std::int64_t y, std::int64_t z, std::int64_t apart,
        std::int64_t n, float * to)
{
  const Tensor &      in = step.in[0];
  const float * const channel = in.data + c * in.ChannelLength();
  std::int64_t        rows = 0;
  std::fill(to, to + n, VMaximum ? -HUGE_VALF : 0.0f);
  for (std::int64_t kz = 0; kz < step.kernel[2]; ++kz)
  {
    const std::int64_t iz = z * step.stride[2] - step.padLower[2] + kz * step.dilation[2];
    for (std::int64_t ky = 0; ky < step.kernel[1]; ++ky)
    {
      const std::int64_t iy = y * step.stride[1] - step.padLower[1] + ky * step.dilation[1];
      if (!in.IsInside(1, iy) || !in.IsInside(2, iz))
      {
        continue;
      }
      ++rows;
      const float * const plane = channel + PlaceOf(in, 1, iy) + PlaceOf(in, 2, iz);
      for (std::int64_t kx = 0; kx < step.kernel[0]; ++kx)
      {
        const RowTap & tap = taps[kx];
        float * const  first = to + tap.begin;
        switch (tap.stride)
        {
          case 0:
            for (std::int64_t i = tap.begin; i < tap.end; ++i)
            {
              to[i] = Join<VMaximum>(to[i], plane[PlaceOf(in, 0, tap.index + i * apart * step.stride[0])]);
            }
            break;
          case 1:
            JoinRow<VMaximum>(first, plane + tap.place, 1, tap.end - tap.begin);
            break;
          default:
            JoinRow<VMaximum>(first, plane + tap.place, tap.stride, tap.end - tap.begin);
        }
      }
    }
  }
  for (std::int64_t i = 0; !VMaximum && i < n; ++i)
  {
    std::int64_t count = step.kernel[0] * step.kernel[1] * step.kernel[2];
    if (!step.countsPadding)
    {
      count = rows * std::count_if(
                       taps, taps + step.kernel[0], [&](const RowTap & tap) { return i >= tap.begin && i < tap.end; });
    }
    to[i] /= static_cast<float>(count);
  }
  for (std::int64_t i = 0; step.activation != ActivationKind::None && i < n; ++i)
  {
    to[i] = network::Activate(step, c, to[i]);
  }
}

} // namespace

void
PoolFragments(const Step & step, const NetworkWorkers & workers)
{
  const Tensor & out = step.out;
  // Values that lie side by side in the input are read directly, and go to several fragments of the output.
  const bool         isWhole = step.stride[0] == 1 && out.fragments[0] % step.in[0].fragments[0] == 0;
  const std::int64_t apart = isWhole ? step.in[0].fragments[0] : out.fragments[0];
  const std::int64_t parts = out.fragments[0] / apart;
  ForEach(workers, out.channels * out.extent[2], [&](std::int64_t task, unsigned int) {
    const std::int64_t               c = task / out.extent[2];
    const std::int64_t               z = out.lower[2] + task % out.extent[2];
    float * const                    plane = out.data + c * out.ChannelLength() + PlaceOf(out, 2, z);
    std::vector<float>               row(static_cast<std::size_t>((out.extent[0] + apart - 1) / apart));
    std::vector<std::vector<RowTap>> taps;
    for (std::int64_t first = 0; first < std::min(apart, out.extent[0]); ++first)
    {
      taps.emplace_back();
      for (std::int64_t kx = 0; kx < step.kernel[0]; ++kx)
      {
        taps.back().push_back(
          FindRowTap(step, kx, out.lower[0] + first, apart, (out.extent[0] - first + apart - 1) / apart));
      }
    }
    for (std::int64_t y = out.lower[1]; y < out.lower[1] + out.extent[1]; ++y)
    {
      float * const to = plane + PlaceOf(out, 1, y);
      for (std::size_t first = 0; first < taps.size(); ++first)
      {
        const std::int64_t x = out.lower[0] + static_cast<std::int64_t>(first);
        const std::int64_t n = (out.lower[0] + out.extent[0] - x + apart - 1) / apart;
        (step.kind == LayerKind::MaximumPooling
           ? PoolRow<true>
           : PoolRow<false>)(step, c, taps[first].data(), y, z, apart, n, row.data());
        for (std::int64_t part = 0; part < std::min(parts, n); ++part)
        {
          float * target = to + PlaceOf(out, 0, x + part * apart);
          for (std::int64_t i = part; i < n; i += parts)
          {
            *target++ = row[static_cast<std::size_t>(i)];
          }
        }
      }
    }
  });
}

} // namespace chunkwise
