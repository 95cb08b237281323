/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuConvolutionCache_h
#define chunkwiseCpuConvolutionCache_h

#include "chunkwiseResourceCache.h"

namespace chunkwise
{

/** Bytes of spectra that are kept between calls. */
constexpr std::size_t KeptSpectraBytes = std::size_t{ 256 } << 20;

/** What the host keeps between calls: spectra of kernels, and factors. */
inline ResourceCache &
GetConvolutionCache()
{
  // Never destroyed: runs may outlive static destruction in other threads.
  static auto & cache = *new ResourceCache(KeptSpectraBytes);
  return cache;
}

} // namespace chunkwise

#endif
