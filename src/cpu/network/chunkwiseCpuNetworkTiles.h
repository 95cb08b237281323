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

/** Transforms of tiles (see NetworkTiles) and products of their spectra, compiled for one instruction set. A tile has
 * `tile` voxels along each axis, [z][y][x], and tile^3 / NetworkCell cells. Memory is aligned to 64 bytes. */
struct NetworkTileFunctions
{
  /** The transform of a tile that is 0 beyond `width` and `height`, where it is not read. Cells go to out + number *
   * stride. `work`: tile^3 numbers. `conjugates`: of a kernel, so that products are correlations. */
  void (*transform)(int tile, const float * voxels, std::int64_t width, std::int64_t height, float * work, float * out,
                    std::int64_t stride, bool conjugates);
  /** Back, not scaled; what lies beyond `width` and `height` is undefined. */
  void (*transformBack)(int tile, const float * in, std::int64_t stride, std::int64_t width, std::int64_t height,
                        float * work, float * voxels);
  /** For one cell: out[tile][output] = sum over the inputs of in[tile][input] * kernels[..][input][..]. Kernels: blocks
   * of NetworkProductChannels outputs, the last one with what is left: [block][input][output of the block]. */
  void (*multiply)(const float * in, const float * kernels, float * out, std::int64_t tiles, std::int64_t inputs,
                   std::int64_t outputs);
  /** out = a * b, `cells` of them; cells of `a` are `stride` apart. */
  void (*multiplyCells)(const float * a, std::int64_t stride, const float * b, float * out, std::int64_t cells);
};

/** For the level that GetCpuLevel() names. */
const NetworkTileFunctions &
GetNetworkTileFunctions();

} // namespace chunkwise

#endif
