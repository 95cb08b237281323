/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaTableBlocks_cuh
#define chunkwiseCudaTableBlocks_cuh

#include "chunkwiseCudaTable.cuh"

// The scans of the block method: between a pass that gives each tile's sums of columns and rows and one that gives the
// results, what is above each tile and to its left. Slices before the output's have no sums: they are left out.
namespace chunkwise
{
namespace sat
{

/** Entries that a thread asks for at a time. */
constexpr int Asked = 16;

/** C of each tile: a thread goes down a column of tiles of one slice. */
template <typename TIn, typename TCarry>
__global__ void
ScanColumnSums(const __grid_constant__ Table<TIn, TCarry> table)
{
  const std::int64_t pitch = std::int64_t{ table.tileColumns } * Columns;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t i = pitch * table.skipped + thread; i < pitch * table.slices; i += step)
  {
    const std::int64_t x = i % pitch;
    TCarry * const     sums = table.columnSums + i / pitch * pitch * table.tileRows + x;
    TCarry             above = table.carry && x < table.columns ? FirstOf<TIn>(table, x) : TCarry(0);
    for (int first = 0; first < table.tileRows; first += Asked)
    {
      TCarry own[Asked];
#pragma unroll
      for (int k = 0; k < Asked; ++k)
      {
        own[k] = first + k < table.tileRows ? sums[(first + k) * pitch] : TCarry(0);
      }
#pragma unroll
      for (int k = 0; k < Asked; ++k)
      {
        if (first + k < table.tileRows)
        {
          sums[(first + k) * pitch] = above;
          above = above + own[k];
        }
      }
    }
  }
}

/** X(C) at a tile's last column, of one warp. */
template <typename TCarry>
__device__ TCarry
CornerOf(const TCarry * columns, int lane)
{
  TCarry group = columns[lane * Group];
#pragma unroll
  for (int i = 1; i < Group; ++i)
  {
    group = group + columns[lane * Group + i];
  }
  const TCarry total = ScanGroups(group, lane);
  TCarry       before = TCarry(0);
#pragma unroll
  for (int q = 0; q < Quarters - 1; ++q)
  {
    before = before + __shfl_sync(~0u, total, (q + 1) * QuarterGroups - 1);
  }
  before = before + __shfl_sync(~0u, total, Groups - 2);
  return before + __shfl_sync(~0u, group, Groups - 1);
}

/** G of each tile, from its C and its own sums of rows: a block has a row of tiles of one slice. */
template <int VRows, typename TIn, typename TCarry>
__global__ void
ScanRowSums(const __grid_constant__ Table<TIn, TCarry> table)
{
  constexpr int      AtOnce = 64;
  __shared__ TCarry  corners[AtOnce];
  const int          lane = static_cast<int>(threadIdx.x) % 32;
  const int          warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t skipped = std::int64_t{ table.skipped } * table.tileRows;
  for (std::int64_t i = skipped + blockIdx.x; i < std::int64_t{ table.slices } * table.tileRows; i += gridDim.x)
  {
    const std::int64_t   rows = std::int64_t{ table.tileRows } * VRows;
    const TCarry * const columns = table.columnSums + i * table.tileColumns * Columns;
    TCarry * const       sums =
      table.rowSums + i / table.tileRows * table.tileColumns * rows + i % table.tileRows * VRows + threadIdx.x;
    TCarry left = TCarry(0);
    for (int first = 0; first < table.tileColumns; first += AtOnce)
    {
      const int count = min(AtOnce, table.tileColumns - first);
      __syncthreads();
      for (int k = warp; k < count; k += static_cast<int>(blockDim.x) / 32)
      {
        const TCarry corner = CornerOf(columns + std::int64_t{ first + k } * Columns, lane);
        if (lane == 0)
        {
          corners[k] = corner;
        }
      }
      __syncthreads();
      if (threadIdx.x >= VRows)
      {
        continue;
      }
      for (int begin = 0; begin < count; begin += Asked)
      {
        TCarry own[Asked];
#pragma unroll
        for (int k = 0; k < Asked; ++k)
        {
          own[k] = begin + k < count ? sums[(first + begin + k) * rows] : TCarry(0);
        }
#pragma unroll
        for (int k = 0; k < Asked; ++k)
        {
          if (begin + k < count)
          {
            sums[(first + begin + k) * rows] = left;
            left = left + (corners[begin + k] + own[k]);
          }
        }
      }
    }
  }
}

} // namespace sat
} // namespace chunkwise

#endif
