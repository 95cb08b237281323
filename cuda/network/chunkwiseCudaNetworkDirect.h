/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaNetworkDirect_h
#define chunkwiseCudaNetworkDirect_h

#include "chunkwiseNetworkVoxels.h"

#include <cuda_runtime_api.h>

namespace chunkwise
{

/** Runs a convolution with strides of 1, without groups, whose tensors are dense, with the sums that NetworkOperation
 * promises. Returns false, without having done anything, for one whose windows are too wide for shared memory. */
bool
ConvolveDirectly(const network::Step & step, cudaStream_t stream);

} // namespace chunkwise

#endif
