/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuNetworkTransform_h
#define chunkwiseCpuNetworkTransform_h

#include "chunkwiseExecutor.h"
#include "chunkwiseNetworkPlan.h"
#include "chunkwiseNetworkVoxels.h"

#include <functional>

namespace chunkwise
{

/** The threads and the memory for the parts of a transformed convolution. */
struct NetworkWorkers
{
  Executor *            executor;
  char *                memory; ///< of worker 0
  std::size_t           bytes;  ///< from one worker's memory to the next one's
  std::function<bool()> shouldStop;
};

/** The bytes that a worker needs for tiles of up to this size. */
Chunkwise_EXPORT std::size_t
                 GetTileWorkerBytes(int tile);

/** The bytes that the spectra of ConvolveTiles need beyond GetTileBytes for each tile. */
Chunkwise_EXPORT std::size_t
                 GetTileSlackBytes(int tile);

/** The spectra of a convolution's weights, at most GetKernelSpectraBytes of them. */
Chunkwise_EXPORT void
MakeKernelSpectra(const network::Step & step, int tile, float * kernels, const NetworkWorkers & workers);

/** Runs a convolution through transforms of tiles; `kernels` as MakeKernelSpectra made them. */
Chunkwise_EXPORT void
ConvolveTiles(const network::Step & step, const TileChoice & choice, const float * kernels, float * spectra,
              const NetworkWorkers & workers);

/** A pooling. Tensors may lie as fragments. The bits of network::PoolingAt. */
Chunkwise_EXPORT void
PoolFragments(const network::Step & step, const NetworkWorkers & workers);

} // namespace chunkwise

#endif
