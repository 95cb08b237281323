/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaWideMeans_cuh
#define chunkwiseCudaWideMeans_cuh

#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseWideMean.h"

#include <algorithm>

// Means of floats whose sums overflow are computed again in double, after the kernels of a chunk. These kernels return
// at once where all sums are finite.
namespace chunkwise
{

/** Flags that the kernels of a chunk set, in scratch memory that begins as 0. */
struct WideFlags
{
  std::uint32_t overflows;     ///< a sum of floats is not finite
  std::uint32_t hasLargeVoxel; ///< TMean::IsLargeAt
};

/** Looks for large voxels if a sum is not finite. */
template <typename TMean>
__global__ void
FindLargeKernel(WideFlags * flags, TMean mean, Box box, float leastLarge)
{
  if (flags->overflows == 0)
  {
    return;
  }
  const std::int64_t count = box.NumberOfVoxels();
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t voxel = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; voxel < count;
       voxel += step)
  {
    if (mean.IsLargeAt(IndexIn(box, voxel), leastLarge))
    {
      flags->hasLargeVoxel = 1;
    }
  }
}

/** Replaces results that are not finite, if a voxel is large. `isForced`: the constant is. */
template <typename TOut, typename TMean>
__global__ void
ReplaceOverflowsKernel(const WideFlags * flags, bool isForced, TMean mean, BufferView out)
{
  if (flags->overflows == 0 || !(isForced || flags->hasLargeVoxel != 0))
  {
    return;
  }
  const std::int64_t count = out.box.NumberOfVoxels();
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t voxel = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; voxel < count;
       voxel += step)
  {
    const Coordinates index = IndexIn(out.box, voxel);
    TOut &            result = static_cast<TOut *>(out.data)[out.Offset(index)];
    if (!(result - result == TOut(0)))
    {
      const double wide = mean.MeanAt(index);
      // A mean that is NaN in double is NaN in float already, or its window is empty.
      if (wide == wide)
      {
        result = static_cast<TOut>(wide);
      }
    }
  }
}

/** `window` of `mean`: what both read, and divide by. */
template <typename TOut, typename TMean>
void
ReplaceOverflows(const KernelCall & call, WideFlags * flags, const TMean & mean, const WideMean & window)
{
  const float leastLarge = window.GetLeastLarge();
  const Box   box = window.GetReadBox(call.output.box);
  const bool  isForced = window.mode == BoundaryMode::Constant && IsLargeFloat(window.constant, leastLarge);
  // Few blocks: starting them is all that most chunks take.
  const auto blocksFor = [](std::int64_t voxels) { return std::min(BlocksFor(voxels, 256), 1024U); };
  FindLargeKernel<<<blocksFor(box.NumberOfVoxels()), 256, 0, StreamOf(call)>>>(flags, mean, box, leastLarge);
  CheckLaunch("FindLargeKernel");
  ReplaceOverflowsKernel<TOut>
    <<<blocksFor(call.output.box.NumberOfVoxels()), 256, 0, StreamOf(call)>>>(flags, isForced, mean, call.output);
  CheckLaunch("ReplaceOverflowsKernel");
}

} // namespace chunkwise

#endif
