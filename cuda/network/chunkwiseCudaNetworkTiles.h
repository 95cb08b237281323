/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaNetworkTiles_h
#define chunkwiseCudaNetworkTiles_h

#include "chunkwiseNetworkOperation.h"
#include "chunkwiseNetworkVoxels.h"

#include <cuda_runtime_api.h>

namespace chunkwise
{

/** Whether the code that the current device runs uses tensor cores for TF32, and a block of it has room there. */
bool
HasNetworkTensorCores();

/** Whether this layer's spectra are of half precision, and their products on tensor cores. */
bool
HasHalfSpectra(const network::Step & step, NetworkPrecision precision);

/** Runs a convolution through transforms of tiles (see NetworkTransform): `tile` voxels along each axis, groups of
 * `tilesAtOnce` tiles. `kernels` is what MakeKernelSpectra made of its weights; `spectra` has room for
 * GetSpectrumBytes(tile) times `tilesAtOnce` times the channels of input and output (of input alone where that is 1).
 * TensorFloat32 and Half hold for products of several inputs, on devices with tensor cores. */
void
ConvolveTiles(const network::Step & step, int tile, std::int64_t tilesAtOnce, NetworkPrecision precision,
              const void * kernels, void * spectra, cudaStream_t stream);

/** The spectra of a convolution's weights, of GetUsedKernelBytes. */
void
MakeKernelSpectra(const network::Step & step, int tile, NetworkPrecision precision, void * kernels,
                  cudaStream_t stream);

/** GetKernelSpectraBytes, or fewer in half precision. */
std::size_t
GetUsedKernelBytes(const network::Step & step, int tile, NetworkPrecision precision);

/** A pooling by windows of at most MostPoolingTaps along each axis. Tensors may lie as fragments. */
void
PoolFragments(const network::Step & step, cudaStream_t stream);

/** The largest tile that a block of the current device has room for. */
int
GetLargestNetworkTile();

} // namespace chunkwise

#endif
