/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaBoxQuery.cuh"
#include "chunkwiseCudaKernels.h"

#include <limits>

// Statistics of boxes of any size from their table: each voxel reads the corners of its box.
namespace chunkwise
{

namespace
{

template <typename TIndex>
__device__ TIndex
RadiusAt(const void * radii, PixelType kind, std::int64_t i)
{
  const auto read = [&](auto pixel) {
    return CutRadius(static_cast<const decltype(pixel) *>(radii)[i], std::numeric_limits<TIndex>::max());
  };
  switch (kind)
  {
    case PixelType::UInt8:
      return read(std::uint8_t{});
    case PixelType::Int8:
      return read(std::int8_t{});
    case PixelType::UInt16:
      return read(std::uint16_t{});
    case PixelType::Int16:
      return read(std::int16_t{});
    case PixelType::UInt32:
      return read(std::uint32_t{});
    case PixelType::Int32:
      return read(std::int32_t{});
    case PixelType::UInt64:
      return read(std::uint64_t{});
    default:
      return read(std::int64_t{});
  }
}

constexpr int BlockColumns = 32;
constexpr int BlockRows = 8;
constexpr int RowsPerThread = 4;

/** The extent of a block of threads in the output along axis `a`. */
__host__ __device__ inline std::int64_t
         BlockExtent(int a)
{
  return a == 0 ? BlockColumns : a == 1 ? BlockRows * RowsPerThread : 1;
}

__host__ __device__ inline std::int64_t
         BlocksAlong(const Box & output, int a)
{
  return (output.Extent(a) + BlockExtent(a) - 1) / BlockExtent(a);
}

template <typename TIndex>
struct QueryAxes
{
  /** At least two, the last ones; axes that are not there have one position. */
  QueryAxis<TIndex> axes[MaxSpatialAxes];
  bool              hasThree;
  /** In the table, from one voxel of the output to the next along axes that take no part; 0 along others. */
  Coordinates stride;
};

/** (E - P) + L of what `f(offset, there)` gives; what is not there it gives as zero. Leaving out a missing E changes no
 * bit: entries are never -0. */
template <bool VMeetsTwo, typename TIndex, typename TFunctor>
__device__ auto
CombineBoxTerms(const BoxTerms<TIndex> & terms, TIndex offset, bool there, TFunctor && f)
{
  if constexpr (VMeetsTwo)
  {
    return (f(offset + terms.end, there && terms.hasEnd) - f(offset + terms.before, there && terms.hasBefore)) +
           f(offset + terms.last, there);
  }
  else
  {
    return f(offset + terms.last, there) - f(offset + terms.before, there && terms.hasBefore);
  }
}

/** The sum over a box whose terms along VAxes axes are given; no more axes take part. Bit k of VMeetsTwo: whether it
 * may meet two blocks along axis k of `terms`. */
template <int VAxes, unsigned int VMeetsTwo, typename TEntry, typename TIndex>
__device__ TEntry
SumOfBox(const TEntry * table, const BoxTerms<TIndex> (&terms)[MaxSpatialAxes], TIndex offset, bool there = true)
{
  if constexpr (VAxes == 0)
  {
    return there ? table[offset] : TEntry{};
  }
  else
  {
    constexpr int axis = MaxSpatialAxes - VAxes;
    return CombineBoxTerms < (VMeetsTwo >> axis & 1) !=
           0 > (terms[axis], offset, there, [&](TIndex at, bool thereToo) {
             return SumOfBox<VAxes - 1, VMeetsTwo>(table, terms, at, thereToo);
           });
  }
}

/** If no box of a warp meets two blocks along an axis, no thread looks for the second: `meets` has a bit for each
 * axis along which any does. */
template <int VAxes, typename TEntry, typename TIndex>
__device__ TEntry
SumOfWarp(const TEntry * __restrict__ entries, const BoxTerms<TIndex> (&terms)[MaxSpatialAxes], unsigned int meets)
{
  const TIndex none = 0;
  if constexpr (sizeof(TIndex) < 8)
  {
    switch (meets)
    {
      case 0:
        return SumOfBox<VAxes, 0>(entries, terms, none);
      case 1:
        return SumOfBox<VAxes, 1>(entries, terms, none);
      case 2:
        return SumOfBox<VAxes, 2>(entries, terms, none);
      case 3:
        return SumOfBox<VAxes, 3>(entries, terms, none);
      case 4:
        return SumOfBox<VAxes, 4>(entries, terms, none);
      case 5:
        return SumOfBox<VAxes, 5>(entries, terms, none);
      case 6:
        return SumOfBox<VAxes, 6>(entries, terms, none);
      default:
        break;
    }
  }
  return SumOfBox<VAxes, 7>(entries, terms, none);
}

/** Without radii all boxes have the axes' own. */
template <typename TOut, typename TEntry, typename TIndex>
__global__ void
__launch_bounds__(BlockColumns * BlockRows)
  QueryKernel(QueryAxes<TIndex> query, const TEntry * __restrict__ entries, Voxels<const char> radii,
              PixelType radiusKind, Voxels<char> out, PixelType kind, BoxStatistic statistic)
{
  // Counted from the output's first voxel.
  Coordinates   at{};
  std::uint32_t rest = blockIdx.x;
#pragma unroll
  for (int a = 0; a < MaxDimension; ++a)
  {
    const auto count = static_cast<std::uint32_t>(BlocksAlong(out.box, a));
    const auto next = rest / count;
    at.axis[a] = (rest - next * count) * BlockExtent(a);
    rest = next;
  }
  at.axis[0] += threadIdx.x % BlockColumns;
  at.axis[1] += threadIdx.x / BlockColumns;
  std::int64_t radius = 0;
#pragma unroll
  for (int a = 0; a < MaxDimension; ++a)
  {
    entries += at.axis[a] * query.stride.axis[a];
    out.data += at.axis[a] * out.stride.axis[a];
    radius += (at.axis[a] + out.box.lower.axis[a] - radii.box.lower.axis[a]) * radii.stride.axis[a];
  }
  TIndex positions[MaxSpatialAxes];
  TIndex steps[MaxSpatialAxes];
#pragma unroll
  for (int k = 0; k < MaxSpatialAxes; ++k)
  {
    positions[k] = query.axes[k].first + Pick<TIndex>(at, query.axes[k].axis);
    steps[k] = query.axes[k].axis == 1 ? BlockRows : 0;
  }
  // Lanes beyond the output do as the last one does, so that the warp stays together; they store nothing.
  const std::int64_t beyond = max(at.axis[0] - (out.box.Extent(0) - 1), std::int64_t{ 0 });
  entries -= beyond * query.stride.axis[0];
  radius -= beyond * radii.stride.axis[0];
#pragma unroll
  for (int k = 0; k < MaxSpatialAxes; ++k)
  {
    positions[k] -= query.axes[k].axis == 0 ? static_cast<TIndex>(beyond) : 0;
  }
#pragma unroll 1
  for (int row = 0; row < RowsPerThread && at.axis[1] < out.box.Extent(1); ++row)
  {
    const TIndex r = radii.data ? RadiusAt<TIndex>(radii.data, radiusKind, radius) : std::numeric_limits<TIndex>::max();
    TIndex       voxels = 1;
    BoxTerms<TIndex> terms[MaxSpatialAxes]{};
    unsigned int     meets = 0;
#pragma unroll
    for (int k = 0; k < MaxSpatialAxes; ++k)
    {
      if (k > 0 || query.hasThree)
      {
        terms[k] = query.axes[k].TermsOf(positions[k], r, voxels);
        meets |= __any_sync(0xFFFFFFFFU, terms[k].hasEnd) ? 1U << k : 0U;
      }
    }
    const TEntry sum = query.hasThree ? SumOfWarp<3>(entries, terms, meets) : SumOfWarp<2>(entries, terms, meets);
    if (beyond == 0)
    {
      StoreBox<TOut>(out.data, sum, BoxVoxels{ voxels }, kind, statistic);
    }
    at.axis[1] += BlockRows;
    entries += BlockRows * query.stride.axis[1];
    out.data += BlockRows * out.stride.axis[1];
    radius += BlockRows * radii.stride.axis[1];
#pragma unroll
    for (int k = 0; k < MaxSpatialAxes; ++k)
    {
      positions[k] += steps[k];
    }
  }
}

template <typename TIndex, typename TEntry>
void
Query(const KernelCall & call, const BoxTable & table, const TEntry * entries)
{
  const auto &       operation = static_cast<const BoxStatisticOperation &>(*call.operation);
  const BufferView & output = call.output;
  QueryAxes<TIndex>  query{};
  query.hasThree = table.count == 3;
  for (QueryAxis<TIndex> & axis : query.axes)
  {
    axis.axis = -1;
    axis.length = 1;
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    const BoxAxis<std::int64_t> & axis = table.axes[a];
    query.stride[a] = axis.TakesPart() ? 0 : axis.stride;
  }
  for (int part = 0; part < table.count; ++part)
  {
    query.axes[MaxSpatialAxes - table.count + part] = MakeQueryAxis<TIndex>(table, output.box, table.parts[part]);
  }
  std::int64_t blocks = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    blocks *= BlocksAlong(output.box, a);
  }
  const BufferView radii = operation.variable ? call.inputs[1] : BufferView{};
  const auto       launch = [&](auto out) {
    QueryKernel<decltype(out)><<<static_cast<unsigned int>(blocks), BlockColumns * BlockRows, 0, StreamOf(call)>>>(
      query, entries, VoxelsOf<const char>(radii), radii.kind, BoxBytesOf(output), output.kind, StatisticOf(call));
  };
  // Tables that need wide indices are rare.
  if constexpr (sizeof(TIndex) < 8)
  {
    DispatchBoxOutput<TEntry>(output.kind, launch);
  }
  else
  {
    launch(AnyBoxOutput{});
  }
  CheckLaunch("QueryKernel");
}

} // namespace

void
QueryBoxVoxels(const KernelCall & call, const BoxTable & table)
{
  DispatchBoxTypes(call, [&](auto, auto entry) {
    const auto * const entries = static_cast<const decltype(entry) *>(call.scratch);
    if (IsNarrow(table))
    {
      Query<std::int32_t>(call, table, entries);
    }
    else
    {
      Query<std::int64_t>(call, table, entries);
    }
  });
}

} // namespace chunkwise
