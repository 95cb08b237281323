/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuConvolutionCache_h
#define chunkwiseCpuConvolutionCache_h

#include "chunkwiseResourceCache.h"

namespace chunkwise
{

/** What the host keeps between calls: spectra of kernels, and factors. */
Chunkwise_EXPORT ResourceCache &
GetConvolutionCache();

/** How much that is at most; 256 MiB unless set. Not while convolutions run. */
Chunkwise_EXPORT std::size_t
                 GetConvolutionCacheBytes();
Chunkwise_EXPORT void
SetConvolutionCacheBytes(std::size_t bytes);

} // namespace chunkwise

#endif
