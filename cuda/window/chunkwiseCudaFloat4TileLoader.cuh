/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaFloat4TileLoader_cuh
#define chunkwiseCudaFloat4TileLoader_cuh

#include "chunkwiseCudaPasses.cuh"

#include <cuda_pipeline.h>

namespace chunkwise
{

/** How a tile's planes arrive in shared memory without a way through registers: the third quarter of a block's threads
 * copies four values at a time. Rows are staged from TTile::Padding values before the first output on, a multiple
 * of four, and in whole fours. */
template <typename TTile>
class Float4TileLoader
{
public:
  /** (x, y) is where in a plane of width x height values the tile's first staged value is. Values beyond the plane's
   * edge are never copied, but are `beyond` in all buffers from now on. */
  template <int VBuffers>
  __device__ __forceinline__
  Float4TileLoader(int x, int y, int width, int height,
                   float (&staged)[VBuffers][TTile::StagedRows * TTile::StagedStride], float beyond)
  {
    const int thread = static_cast<int>(threadIdx.x) - 2 * Threads;
    const int row = thread / TTile::Float4TileLoader;
    const int column = thread % TTile::Float4TileLoader * 4;
    m_To = InRegister(row * TTile::StagedStride + column);
    m_From = static_cast<std::int64_t>(y + row) * width + x + column;
    m_Step = static_cast<std::int64_t>(Rows) * width;
    if (thread < 0 || row >= Rows)
    {
      return;
    }
#pragma unroll
    for (int i = 0; i < Count; ++i)
    {
      const int at = y + row + i * Rows;
      if (row + i * Rows < TTile::StagedRows)
      {
        m_Copied |= x + column >= 0 && x + column < width && at >= 0 && at < height ? 1U << i : 0;
        for (auto & plane : staged)
        {
          Put(plane, i, beyond);
        }
      }
    }
  }

  /** Whether the thread's warp has a share. */
  __device__ __forceinline__ static bool
  IsCopying()
  {
    return threadIdx.x / Threads == 2;
  }

  /** Begins to copy a plane. */
  __device__ __forceinline__ void
  Copy(float * staged, const float * plane) const
  {
    const float * from = plane + m_From;
#pragma unroll
    for (int i = 0; i < Count; ++i, from += m_Step)
    {
      if ((m_Copied & 1U << i) != 0)
      {
        __pipeline_memcpy_async(staged + m_To + i * Rows * TTile::StagedStride, from, 4 * sizeof(float));
      }
    }
  }

  /** Writes `beyond` where a plane would be copied. */
  __device__ __forceinline__ void
  Put(float * staged, float beyond) const
  {
#pragma unroll
    for (int i = 0; i < Count; ++i)
    {
      if ((m_Copied & 1U << i) != 0)
      {
        Put(staged, i, beyond);
      }
    }
  }

private:
  static constexpr int Threads = TTile::Threads / 4;
  static constexpr int Rows = Threads / TTile::Float4TileLoader; ///< at a time
  static constexpr int Count = (TTile::StagedRows + Rows - 1) / Rows;
  static_assert(Count <= 32, "a bit for each copy");

  __device__ __forceinline__ void
  Put(float * staged, int i, float beyond) const
  {
    float4 * const to = reinterpret_cast<float4 *>(staged + m_To + i * Rows * TTile::StagedStride);
    *to = make_float4(beyond, beyond, beyond, beyond);
  }

  int           m_To;   ///< of the first four
  std::int64_t  m_From; ///< in a plane
  std::int64_t  m_Step;
  std::uint32_t m_Copied{ 0 }; ///< a bit of each four
};

/** Whether rows lie so that fours can be copied, of planes of `width` values a row that begin at `data`, for tiles
 * whose first output is `lead` values after a row's first. */
inline bool
AreFours(const void * data, std::int64_t lead, std::int64_t width)
{
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && lead % 4 == 0 && width % 4 == 0;
}

} // namespace chunkwise

#endif
