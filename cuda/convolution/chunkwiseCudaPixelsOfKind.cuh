/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaPixelsOfKind_cuh
#define chunkwiseCudaPixelsOfKind_cuh

#include "chunkwiseCudaPixels.cuh"

// Pixels of a kind known at run time, for loops that are unrolled: a choice among all kinds would be there for each of
// their points. Floats take no call, the others one of a function that a file has once.
namespace chunkwise
{

__device__ __noinline__ inline float
LoadOtherKind(const void * data, PixelType kind, std::int64_t at)
{
  return LoadAs<float, false>(data, kind, at);
}

__device__ __noinline__ inline void
StoreOtherKind(void * data, PixelType kind, std::int64_t at, float value)
{
  StoreAs<float, false>(data, kind, at, value);
}

__device__ __forceinline__ float
LoadOfKind(const void * data, PixelType kind, std::int64_t at)
{
  return kind == PixelType::Float32 ? static_cast<const float *>(data)[at] : LoadOtherKind(data, kind, at);
}

__device__ __forceinline__ void
StoreOfKind(void * data, PixelType kind, std::int64_t at, float value)
{
  if (kind == PixelType::Float32)
  {
    static_cast<float *>(data)[at] = value;
  }
  else
  {
    StoreOtherKind(data, kind, at, value);
  }
}

} // namespace chunkwise

#endif
