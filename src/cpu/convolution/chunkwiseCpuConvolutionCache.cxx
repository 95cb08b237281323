/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuConvolutionCache.h"

namespace chunkwise
{

namespace
{

struct Cache
{
  std::size_t   bytes{ std::size_t{ 256 } << 20 };
  ResourceCache entries{ bytes };
};

Cache &
GetCache()
{
  // Never destroyed: runs may outlive static destruction in other threads.
  static auto & cache = *new Cache;
  return cache;
}

} // namespace

ResourceCache &
GetConvolutionCache()
{
  return GetCache().entries;
}

std::size_t
GetConvolutionCacheBytes()
{
  return GetCache().bytes;
}

void
SetConvolutionCacheBytes(std::size_t bytes)
{
  GetCache().bytes = bytes;
  GetCache().entries.SetCapacity(bytes);
}

} // namespace chunkwise
