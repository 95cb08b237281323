/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaNetworkHalf_h
#define chunkwiseCudaNetworkHalf_h

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

// Spectra in half precision (NetworkPrecision::Half): numbers of 11 bits, of which none may be larger than 65504.
//
// Voxels of a tile's map are below 2^e, and their spectrum is stored times 2^(-e - HalfShift): no number of it is
// larger than 2^14.5 / 4. The spectra of an output's kernels are stored times 2^-g, such that their weights' magnitudes
// add up to less than 8. So neither they nor the products are too large, whatever the voxels are. The products of a
// tile are those of its largest map's e.

namespace chunkwise
{

/** The shape of products of spectra. */
struct ProductShape
{
  int          inputs;
  int          outputs;
  int          padded; ///< outputs of the kernels' spectra
  int          tiles;
  std::int64_t points;     ///< of a spectrum
  int          mapsOfTile; ///< from tile to tile, of `in`
  int          mapsOfOut;  ///< and of `out`
};

/** The part of a product that is a block's. Blocks that follow each other have neighbouring frequencies, VTogether
 * groups of VFrequencies, then other tiles of these, then other channels. */
template <int VTogether, int VFrequencies, int VTiles, int VChannels>
struct ProductBlock
{
  __device__ __forceinline__ explicit ProductBlock(const ProductShape & shape)
  {
    const int tileBlocks = (shape.tiles + VTiles - 1) / VTiles;
    const int channelBlocks = shape.padded / VChannels;
    int       block = static_cast<int>(blockIdx.x);
    const int inner = block % VTogether;
    block /= VTogether;
    firstTile = block % tileBlocks * VTiles;
    block /= tileBlocks;
    firstChannel = block % channelBlocks * VChannels;
    group = static_cast<std::int64_t>(block / channelBlocks) * VTogether + inner;
    firstPoint = static_cast<int>(group * VFrequencies);
  }

  int          firstTile;
  int          firstChannel;
  std::int64_t group; ///< of frequencies
  int          firstPoint;
};

/** The place of a number of a map's spectrum among those of its tile, of so many maps: as many as fill a line of memory
 * lie together, then those of the next map. So the blocks of a product, of which each has a sector of every map, write
 * where their neighbours do. A tile has fewer than 2^31 numbers: with more it would take 16 GB. */
template <typename TNumber>
__device__ __forceinline__ int
PlaceInTile(int maps, int map, int index)
{
  constexpr unsigned int line = 128 / sizeof(TNumber);
  const auto             number = static_cast<unsigned int>(index);
  return static_cast<int>((number / line * static_cast<unsigned int>(maps) + static_cast<unsigned int>(map)) * line +
                          number % line);
}

constexpr int HalfShift = 2;
/** Layers of fewer inputs have spectra in float32. */
constexpr int LeastHalfInputs = 5;

/** The exponents e of tiles. */
struct HalfScales
{
  int * ofMaps;  ///< [tile][input]
  int * ofTiles; ///< the largest of a tile's
};

/** Frequencies that a block multiplies: a sector of a map's spectrum. */
constexpr int HalfFrequencies = 8;
constexpr int HalfInputs = 8;
constexpr int HalfTiles = 32;

/** The place of the kernels' number of an input, an output and a frequency: eight inputs times 16 outputs lie together
 * as the threads of a warp take them. Behind them are the exponents g of the outputs. */
struct HalfKernelLayout
{
  int          inputs; ///< a multiple of HalfInputs
  int          padded;
  std::int64_t points;

  HalfKernelLayout(int numberOfInputs, int paddedOutputs, std::int64_t numberOfPoints)
    : inputs((numberOfInputs + HalfInputs - 1) / HalfInputs * HalfInputs)
    , padded(paddedOutputs)
    , points(numberOfPoints)
  {}

  __host__ __device__ std::int64_t
                      Numbers() const
  {
    return points * inputs * padded;
  }
  std::size_t
  Bytes() const
  {
    return static_cast<std::size_t>(this->Numbers()) * sizeof(__half2) + static_cast<std::size_t>(padded) * sizeof(int);
  }
  __device__ std::int64_t
             At(int i, int o, int frequency) const
  {
    const std::int64_t stage =
      static_cast<std::int64_t>(frequency / HalfFrequencies) * (inputs / HalfInputs) + i / HalfInputs;
    const std::int64_t block = (stage * HalfFrequencies + frequency % HalfFrequencies) * (padded / 16) + o / 16;
    const int          lane = o % 8 * 4 + i % 4;
    return block * 128 + lane * 4 + o % 16 / 8 + i % HalfInputs / 4 * 2;
  }
};

/** Whether the current device runs code that has tensor cores for half precision, and a block has room there. */
bool
HasHalfTensorCores();

/** One complex matrix product a frequency, summed in float32. `out` may be `in` where a block has all outputs. */
void
MultiplyHalf(const ProductShape & shape, const __half2 * kernels, const HalfScales & scales, const __half2 * in,
             __half2 * out, cudaStream_t stream);

} // namespace chunkwise

#endif
