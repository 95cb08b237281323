/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuNetworkTiles_h
#define chunkwiseCpuNetworkTiles_h

#include <cstdint>

namespace chunkwise
{

/** Frequencies of a cell, in which spectra lie: that many real parts, then as many imaginary ones. Their order is that
 * of an instruction set. */
constexpr std::int64_t NetworkLanes = 16;
constexpr std::int64_t NetworkCell = 2 * NetworkLanes;

/** Output channels whose kernels' spectra lie side by side. */
constexpr int NetworkProductChannels = 3;

/** Numbers from a plane of a tile's voxels to the next one: lines along z would else fall on the same lines of the
 * first cache. */
constexpr std::int64_t
GetTilePlane(int tile)
{
  return static_cast<std::int64_t>(tile) * tile + 16;
}
/** The same for what is between two steps of a transform: real and imaginary parts of half as many planes. */
constexpr std::int64_t
GetTileWorkPlane(int tile)
{
  return 2 * GetTilePlane(tile);
}

/** Transforms of tiles (see NetworkTiles) and products of their spectra, compiled for one instruction set. A tile has
 * `tile` voxels along each axis, [z][y][x], its planes GetTilePlane apart, and tile^3 / NetworkCell cells. Memory is
 * aligned to 64 bytes. */
struct NetworkTileFunctions
{
  /** The transform of a tile that is 0 beyond `width` and `height`, where it is not read. Cells go to out + number *
   * stride. `work`: as much memory as voxels take. `conjugates`: of a kernel, so that products are correlations.
   * `streams`: the cells of many tiles are more than the caches hold, and go past them. */
  void (*transform)(int tile, const float * voxels, std::int64_t width, std::int64_t height, float * work, float * out,
                    std::int64_t stride, bool conjugates, bool streams);
  /** Back, not scaled; what lies beyond `width` and `height` is undefined. */
  void (*transformBack)(int tile, const float * in, std::int64_t stride, std::int64_t width, std::int64_t height,
                        float * work, float * voxels);
  /** For one cell: out[tile][output] = sum over the inputs of in[tile][input] * kernels[..][input][..]. Kernels: blocks
   * of NetworkProductChannels outputs, the last one with what is left: [block][input][output of the block]. */
  void (*multiply)(const float * in, const float * kernels, float * out, std::int64_t tiles, std::int64_t inputs,
                   std::int64_t outputs, bool streams);
  /** out = a * b, `cells` of them; cells of `a` are `stride` apart. */
  void (*multiplyCells)(const float * a, std::int64_t stride, const float * b, float * out, std::int64_t cells);
  /** Writes the maximum of to[i] and from[i], as network::PoolingAt takes it, to to[i]. */
  void (*takeMaxima)(float * to, const float * from, std::int64_t n);
};

/** For the level that GetCpuLevel() names. */
const NetworkTileFunctions &
GetNetworkTileFunctions();

} // namespace chunkwise

#endif
