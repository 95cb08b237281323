/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaDenseVoxels_cuh
#define chunkwiseCudaDenseVoxels_cuh

#include <cstdint>

namespace chunkwise
{

/** Calls body(voxel) for each of n voxels once, by all threads of the grid. They load 16 bytes at a time, wherever
 * `voxels` begins: a load of a voxel alone takes as long. A thread's packs are `threads` packs apart. */
template <typename TPixel, typename TBody>
__device__ void
ForEachVoxel(const TPixel * __restrict__ voxels, std::int64_t n, TBody && body)
{
  constexpr int PackBytes = 16;
  constexpr int VoxelsOfPack = PackBytes / sizeof(TPixel);
  struct alignas(PackBytes) Pack
  {
    TPixel voxels[VoxelsOfPack];
  };
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const auto         beyond = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(voxels) % PackBytes);
  const std::int64_t before = (PackBytes - beyond) % PackBytes / static_cast<std::int64_t>(sizeof(TPixel));
  const std::int64_t head = before < n ? before : n;
  const std::int64_t packs = (n - head) / VoxelsOfPack;
  const auto * const whole = reinterpret_cast<const Pack *>(voxels + head);
  for (std::int64_t p = thread; p < packs; p += threads)
  {
    const Pack pack = whole[p];
#pragma unroll
    for (int i = 0; i < VoxelsOfPack; ++i)
    {
      body(pack.voxels[i]);
    }
  }
  // Less than two packs are left, before and behind.
  for (std::int64_t i = thread; i < n - packs * VoxelsOfPack; i += threads)
  {
    body(voxels[i < head ? i : i + packs * VoxelsOfPack]);
  }
}

} // namespace chunkwise

#endif
