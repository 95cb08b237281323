/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNetworkPlan_h
#define chunkwiseNetworkPlan_h

#include "chunkwiseNetworkOperation.h"

#include <iterator>

// How each convolution of a network is computed on a chunk, a pure function of shapes and rates.

namespace chunkwise
{

/** The number of voxels: more than 64 bits may count. */
inline double
Product(const LayerExtent & extent)
{
  return static_cast<double>(extent[0]) * static_cast<double>(extent[1]) * static_cast<double>(extent[2]);
}

/** Tiles of the input, transformed, multiplied with the kernels' spectra frequency by frequency, and transformed back.
 *
 * A tile has as many voxels along each axis. It is transformed as a signal that goes on with the opposite sign, so that
 * half as many complex numbers as voxels say all of it, none of them special. Results that a convolution wraps around
 * are not kept: of `tile` voxels, tile - kernel + 1 are results. A dilated convolution is an ordinary one on each of
 * the grids of every dilation-th voxel.
 *
 * Source: A. Zlateski et al., ZNNi, 2016; A. Zlateski et al., FFT convolutions are faster than Winograd on modern CPUs,
 * here is why, arXiv 1809.07851 (tiles, one matrix product a frequency). */
constexpr int NetworkTiles[] = { 16, 20, 24, 28, 32 };

/** The rates of a backend, in the time in which it moves a byte of memory. */
struct NetworkRates
{
  double multiplyAdds{ 2.5 };        ///< of direct convolutions
  double planeTaps{ 0.0 };           ///< of a direct kernel's plane, in whose time the input's next plane comes
  double productMultiplyAdds{ 0.0 }; ///< of products of spectra; 0: the backend has no transforms
  /** The cost of products of spectra beside that, in times in which a number of a tile's spectra is read or written. */
  double productTraffic{ 0.0 };
  double productFixed{ 0.0 }; ///< for each tile and frequency, whatever the channels
  double poolingTaps{ 4.0 };
  double linkTraffic{ 80 }; ///< what a byte takes from or to the host's memory
  int    largestTile{ 32 }; ///< voxels along an axis
  /** The cost of the transform of a tile of each size in NetworkTiles, in the time in which its voxels are read and its
   * spectrum is written; 0: there is none. */
  double transforms[std::size(NetworkTiles)]{ 0.88, 1.06, 1.14, 1.32, 1.49 };
  /** The additional cost of a voxel that is kept of a tile. */
  double stores[std::size(NetworkTiles)]{ 20, 17, 12.5, 9.7, 5.9 };
  /** The cost of making a byte of the kernels' spectra, once a run; here for a chunk's share of it, and a step's. */
  double spectraMaking{ 0.0 };
  double uploads{ 0.0 }; ///< what a byte of the weights takes to the device, once a run
  double ofRun{ 0.0 };   ///< what a run takes beside its layers: streams, events, pieces of images
  /** Memory for the spectra of tiles that are multiplied at a time: so many that the kernels' spectra, which are read
   * once for all of them, are little beside them. */
  double       groupBytes{ 2.75 * (1 << 30) };
  std::int64_t mostTiles{ std::int64_t{ 1 } << 40 }; ///< that are multiplied at a time
  std::int64_t tilesPerGroup{ 64 };                  ///< that a block of the products takes
  bool         padsOutputs{ true };                  ///< products are of multiples of GetProductChannels
  bool         isInPlace{ true }; ///< a tile's products take the place of its spectra, where a block has all of them
  int          onlyTile{ 0 };     ///< NetworkOperation::tile
  /** Memory for spectra of kernels and tiles of a layer: beside large results of layers little, beside small ones what
   * the smallest tiles need, and no less than `leastBytes`. */
  double mostBytes{ 1e18 };
  double leastBytes{ 4e8 };
};

/** The rates of a core with vectors of eight or sixteen numbers. There are no tiles of 20 and 28: lines are transformed
 * eight at a time. */
NetworkRates
GetHostNetworkRates();

/** The rates of recent devices. Those without tensor cores take Float32 for TensorFloat32. */
NetworkRates
GetDeviceNetworkRates(NetworkPrecision precision);

/** Poolings of larger windows need dense tensors. */
constexpr std::int64_t MostPoolingTaps = 4;

/** Bytes of the spectrum of a tile of one channel. */
constexpr std::size_t
GetSpectrumBytes(int tile)
{
  return std::size_t{ 4 } * static_cast<std::size_t>(tile) * static_cast<std::size_t>(tile) *
         static_cast<std::size_t>(tile);
}

/** Output channels of which products have a multiple. */
constexpr int ChannelsPerProduct = 16;
/** Output channels that a block of the product takes. */
int
GetProductChannels(int outputs);

/** One input channel: the product is so little that the transform back does it. */
std::size_t
GetKernelSpectraBytes(int inputs, int outputs, int tile);
/** Channels of a tile whose spectra lie in memory: of inputs and outputs, or of the more of them where the products
 * take the place of their factors. */
int
GetTileChannels(int inputs, int outputs, const NetworkRates & rates);
/** Bytes of the spectra of a tile's inputs and outputs. */
std::size_t
GetTileBytes(int inputs, int outputs, int tile, const NetworkRates & rates);

/** The tiles that a convolution's result of this extent takes; 0 if the kernel is too large for them. */
double
CountTiles(const NetworkLayer & layer, const LayerExtent & output, int tile);

/** The tile with which a convolution takes the least time, as the bytes that are moved in it. `bytes` is the memory for
 * spectra of kernels and tiles. */
struct TileChoice
{
  int          tile{ 0 }; ///< 0: none fits
  std::int64_t tilesAtOnce{ 0 };
  double       cost{ 0 };
};
TileChoice
ChooseTile(const NetworkLayer & layer, int inputs, const LayerExtent & output, std::size_t bytes,
           const NetworkRates & rates);

/** The tile with which layer `i` computes a part. */
TileChoice
ChooseStepTile(const NetworkOperation & operation, std::size_t i, const LayerExtent & part, std::size_t bytes,
               const NetworkRates & rates);

/** The cost of reading a layer's inputs and writing its result once. */
double
GetTrafficCost(const NetworkGraph & graph, const NetworkLayer & layer, const LayerExtent & output);

/** The cost of a layer's direct convolution. */
double
GetDirectCost(const NetworkLayer & layer, int inputs, const LayerExtent & output, const NetworkRates & rates);

/** How a layer is computed, and how its result lies in memory. */
struct NetworkLayerPlan
{
  TileChoice  transform{};              ///< tile 0: directly
  LayerExtent fragments{ { 1, 1, 1 } }; ///< see network::Tensor
  std::size_t transformBytes{ 0 };      ///< memory that transforms of this layer may take
};

/** For a chunk that needs these parts of the layers' results.
 *
 * Memory must not shrink when the chunk grows, while a tile may fit one chunk better than a larger one: `reserve` plans
 * for memory, as if every convolution took transforms that may for a part of such a size or a smaller one. Without it
 * the plan is the one that runs, and needs no more than that. */
std::vector<NetworkLayerPlan>
PlanNetwork(const NetworkOperation & operation, const std::vector<LayerExtent> & parts, const NetworkRates & rates,
            bool reserve);

} // namespace chunkwise

#endif
