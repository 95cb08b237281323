/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaTableCarry_cuh
#define chunkwiseCudaTableCarry_cuh

#include "chunkwiseCudaTable.cuh"

namespace chunkwise
{
namespace sat
{

/** The sums before each stack of slices but the first: a thread goes along z. `starts` has a plane for each stack. */
template <typename TIn, typename TAcc>
__global__ void
StartsKernel(const TIn * __restrict__ in, std::int64_t plane, std::int64_t slices, std::int64_t depth,
             const TAcc * __restrict__ before, TAcc * __restrict__ starts, bool squares)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < plane; i += step)
  {
    TAcc sum = before ? before[i] : TAcc(0);
    for (std::int64_t z = 0; z < slices; z += depth)
    {
      starts[z / depth * plane + i] = sum;
      const std::int64_t end = z + depth < slices ? z + depth : z;
#pragma unroll 16
      for (std::int64_t k = z; k < end; ++k)
      {
        sum = sum + Term<TAcc>(in[k * plane + i], squares);
      }
    }
  }
}

/** The plane P behind a slab. */
template <typename TIn, typename TAcc>
__global__ void
AdvancePlaneKernel(const TIn * __restrict__ in, std::int64_t plane, std::int64_t      slices,
                   const TAcc * __restrict__ before, TAcc * __restrict__ behind, bool squares)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < plane; i += step)
  {
    TAcc sum = before[i];
#pragma unroll 8
    for (std::int64_t z = 0; z < slices; ++z)
    {
      sum = sum + Term<TAcc>(in[z * plane + i], squares);
    }
    behind[i] = sum;
  }
}

/** The rows C, S and l behind rows [first, last). */
template <typename TIn, typename TLocal, typename TAcc>
__global__ void
AdvanceRowsKernel(const TIn * __restrict__ in, std::int64_t columns, std::int64_t first, std::int64_t last,
                  const TAcc * __restrict__ before, TAcc * __restrict__ behind, bool squares)
{
  const std::int64_t x = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (x >= columns)
  {
    return;
  }
  TAcc   blocks = before[x];
  TLocal sections = static_cast<TLocal>(before[columns + x]);
  TLocal local = static_cast<TLocal>(before[2 * columns + x]);
  for (std::int64_t y = first; y < last;)
  {
    const std::int64_t end = (y / SectionRows + 1) * SectionRows;
    const std::int64_t stop = end < last ? end : last;
#pragma unroll 16
    for (; y < stop; ++y)
    {
      local = local + Term<TLocal>(in[(y - first) * columns + x], squares);
    }
    if (stop == end)
    {
      sections = sections + local;
      local = TLocal(0);
      if (end % BlockRows == 0)
      {
        blocks = blocks + static_cast<TAcc>(sections);
        sections = TLocal(0);
      }
    }
  }
  if constexpr (std::is_integral<TAcc>::value)
  {
    // Sums of integers have no order: C is all of them, as on the host.
    behind[x] = blocks + sections + local;
    behind[columns + x] = behind[2 * columns + x] = TAcc(0);
  }
  else
  {
    behind[x] = blocks;
    behind[columns + x] = static_cast<TAcc>(sections);
    behind[2 * columns + x] = static_cast<TAcc>(local);
  }
}

} // namespace sat
} // namespace chunkwise

#endif
