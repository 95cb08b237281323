/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaDistanceLines.cuh"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseDistanceOperation.h"

#include <algorithm>
#include <limits>

// Distances in a chunk: features are marked in a byte for each voxel, then a thread scans each column, then warps
// compute lines along one axis after the other. If lines have runs, or are too long for the memory of a block, a
// thread searches outwards from each voxel instead, until nothing farther away can be nearer.
namespace chunkwise
{

namespace
{

constexpr int DistanceThreads = 256;

/** The meaning of a byte of the marks, of one voxel. */
constexpr std::uint8_t IsFeature = 1;
constexpr std::uint8_t IsBackground = 2;
/** It differs from the voxel before it along an axis of the slice. */
constexpr std::uint8_t DiffersAlongX = 4;
constexpr std::uint8_t DiffersAlongY = 8;

/** A chunk as volumes of slices: [volume][z][row][column]. */
struct DistanceChunk
{
  std::int64_t volumes;
  std::int64_t slices;
  std::int64_t rows;
  std::int64_t columns;
  /** The position of slice 0 in the image. */
  std::int64_t begin;
  std::int64_t slicesOfImage;
  /** The axes in the image; -1: there is none. */
  int scan;
  int x;
  int y;
  Box writable;
  /** Along the axes that are no axes of distances the extent of the chunk; 1 along the others. */
  Coordinates  ofVolumes;
  Coordinates  dense; ///< strides of the image
  DistanceTo   to;
  std::uint8_t hasBackground;

  __device__ std::int64_t
             CountColumns() const
  {
    return volumes * rows * columns;
  }
  /** The position in the image of a volume, slice, row and column. */
  __device__ Coordinates
  Place(std::int64_t volume, std::int64_t z, std::int64_t row, std::int64_t column) const
  {
    // Indices of axes must be known when this is compiled, or coordinates lie in memory.
    Coordinates place{};
#pragma unroll
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t n = ofVolumes.axis[a];
      std::int64_t       rest = 0;
      if (volume > 0)
      {
        rest = volume % n;
        volume /= n;
      }
      place.axis[a] = a == x ? column : a == y ? row : a == scan ? begin + z : writable.lower.axis[a] + rest;
    }
    return place;
  }
  /** Calls f(i, first, volume, z, row) for rows, whose voxels number i and following begin at `first` of the image. */
  template <typename TFunctor>
  __device__ void
  ForEachRow(TFunctor && f) const
  {
    const std::int64_t all = volumes * slices * rows;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; i < all;
         i += static_cast<std::int64_t>(gridDim.x) * blockDim.y)
    {
      std::int64_t volume = 0;
      std::int64_t z = 0;
      std::int64_t row = 0;
      if (all < std::int64_t{ 1 } << 31)
      {
        // Divisions of 32 bits are much faster.
        const auto number = static_cast<std::uint32_t>(i);
        const auto slice = number / static_cast<std::uint32_t>(rows);
        row = number - slice * static_cast<std::uint32_t>(rows);
        volume = slice / static_cast<std::uint32_t>(slices);
        z = slice - volume * slices;
      }
      else
      {
        const std::int64_t slice = i / rows;
        row = i - slice * rows;
        volume = slice / slices;
        z = slice - volume * slices;
      }
      f(i * columns, this->Place(volume, z, row, 0), volume, z, row);
    }
  }
};

struct DistanceView
{
  const void * data;
  Box          box;
  Coordinates  stride;
  /** Strides of the axes of a chunk, 0 where there is none. */
  std::int64_t alongScan;
  std::int64_t alongRows;
  std::int64_t alongColumns;

  __device__ std::int64_t
             Offset(const Coordinates & at) const
  {
    std::int64_t offset = 0;
#pragma unroll
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += (at.axis[a] - box.lower.axis[a]) * stride.axis[a];
    }
    return offset;
  }
  /** Calls f(column) for the columns of a row that lie in the view, by the threads of the row. */
  template <typename TFunctor>
  __device__ void
  ForEachColumn(const Coordinates & first, int axis, std::int64_t columns, TFunctor && f) const
  {
    std::int64_t begin = 0;
    std::int64_t end = columns;
#pragma unroll
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t lower = box.lower.axis[a] - first.axis[a];
      const std::int64_t upper = box.upper.axis[a] - first.axis[a];
      if (a == axis)
      {
        begin = begin < lower ? lower : begin;
        end = end > upper ? upper : end;
      }
      else
      {
        end = lower <= 0 && upper > 0 ? end : 0;
      }
    }
    for (std::int64_t column = begin + threadIdx.x; column < end; column += blockDim.x)
    {
      f(column);
    }
  }
};

__device__ __forceinline__ std::int64_t
                           FirstItem()
{
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::int64_t
                           ItemStep()
{
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

/** Whether the bits of two voxels differ; NaN does not differ from itself. */
template <typename TPixel>
__device__ bool
BitsDiffer(TPixel a, TPixel b)
{
  if constexpr (static_cast<TPixel>(0.5) != TPixel{ 0 })
  {
    if constexpr (sizeof(TPixel) == 4)
    {
      return __float_as_uint(a) != __float_as_uint(b);
    }
    else
    {
      return __double_as_longlong(a) != __double_as_longlong(b);
    }
  }
  else
  {
    return a != b;
  }
}

template <typename TPixel>
__global__ void
MarkKernel(DistanceChunk chunk, DistanceView input, TPixel background, std::uint8_t * __restrict__ marks)
{
  const TPixel * const voxels = static_cast<const TPixel *>(input.data);
  chunk.ForEachRow([&](std::int64_t row0, const Coordinates & first, std::int64_t, std::int64_t z, std::int64_t row) {
    const std::int64_t ofRow = input.Offset(first);
    for (std::int64_t column = threadIdx.x; column < chunk.columns; column += blockDim.x)
    {
      const TPixel * const at = voxels + (ofRow + column * input.alongColumns);
      const TPixel         voxel = *at;
      const bool           isBackground = chunk.hasBackground && voxel == background;
      bool                 isFeature = isBackground;
      std::uint8_t         mark = isBackground ? IsBackground : 0;
      if (chunk.to == DistanceTo::Objects)
      {
        isFeature = !isBackground;
      }
      else if (chunk.to == DistanceTo::Others)
      {
        isFeature = chunk.begin + z > 0 && BitsDiffer(voxel, *(at - input.alongScan));
        mark |= column > 0 && BitsDiffer(voxel, *(at - input.alongColumns)) ? DiffersAlongX : 0;
        mark |= row > 0 && BitsDiffer(voxel, *(at - input.alongRows)) ? DiffersAlongY : 0;
      }
      else if (chunk.to == DistanceTo::Contour)
      {
        isFeature = false;
        const std::int64_t position = chunk.begin + z;
        for (int dz = -1; dz <= 1 && !isBackground && chunk.hasBackground; ++dz)
        {
          for (int dy = -1; dy <= 1 && position + dz >= 0 && position + dz < chunk.slicesOfImage; ++dy)
          {
            if (row + dy < 0 || row + dy >= chunk.rows)
            {
              continue;
            }
            const TPixel * const line = at + (dz * input.alongScan + dy * input.alongRows);
            isFeature = isFeature || *line == background ||
                        (column > 0 && *(line - input.alongColumns) == background) ||
                        (column + 1 < chunk.columns && *(line + input.alongColumns) == background);
          }
        }
      }
      marks[row0 + column] = mark | (isFeature ? IsFeature : 0);
    }
  });
}

/** The first and the last feature of each column. */
__global__ void
SummaryKernel(DistanceChunk chunk, const std::uint8_t * __restrict__ marks, std::int32_t * __restrict__ firsts,
              std::int32_t * __restrict__ lasts)
{
  const std::int64_t plane = chunk.rows * chunk.columns;
  for (std::int64_t i = FirstItem(); i < chunk.CountColumns(); i += ItemStep())
  {
    const std::int64_t base = i / plane * chunk.slices * plane + i % plane;
    std::int32_t       first = -1;
    std::int32_t       last = -1;
    for (std::int64_t z = 0; z < chunk.slices; ++z)
    {
      if ((marks[base + z * plane] & IsFeature) != 0)
      {
        last = static_cast<std::int32_t>(chunk.begin + z);
        first = first < 0 ? last : first;
      }
    }
    firsts[i] = first;
    lasts[i] = last;
  }
  // Sides consist of words of 8 bytes.
  if (FirstItem() == 0 && chunk.CountColumns() % 2 != 0)
  {
    firsts[chunk.CountColumns()] = 0;
    lasts[chunk.CountColumns()] = 0;
  }
}

/** The bits of the voxels at the positions of a side. */
template <typename TBits>
__global__ void
ValuesKernel(DistanceChunk chunk, DistanceView input, const std::int32_t * __restrict__ positions,
             std::uint64_t * __restrict__ values)
{
  const std::int64_t plane = chunk.rows * chunk.columns;
  for (std::int64_t i = FirstItem(); i < chunk.CountColumns(); i += ItemStep())
  {
    const std::int64_t row = i % plane / chunk.columns;
    values[i] =
      positions[i] < 0
        ? 0
        : static_cast<const TBits *>(
            input.data)[input.Offset(chunk.Place(i / plane, positions[i] - chunk.begin, row, i % chunk.columns))];
  }
}

/** Slices of a chunk whose distances are computed at once. */
struct DistanceSlab
{
  std::int32_t begin;
  std::int32_t end;
  /** For each column the positions of the last feature up to the slab's end and of the next one after it, from the slab
   * before; -1: there is none. A next position may be SeekNext: nobody has looked for it. */
  std::int32_t * last;
  std::int32_t * next;
};
constexpr std::int32_t SeekNext = -2;

/** Squared distances along the scan axis of the slices of a slab, which are the first ones of `numbers`. */
template <typename T, typename TIndex>
__global__ void
ScanColumnsKernel(DistanceChunk chunk, DistanceSlab slab, const std::uint8_t * __restrict__ marks,
                  const std::int32_t * before, const std::int32_t * behind, DistanceWeight<T> weight, T beyond,
                  T * __restrict__ numbers, TIndex * __restrict__ nearest)
{
  // Positions fit 31 bits: sides have them so.
  constexpr std::uint32_t none = 0xFFFFFFFFu;
  const std::int64_t      plane = chunk.rows * chunk.columns;
  const auto              slices = static_cast<std::int32_t>(chunk.slices);
  const auto              start = static_cast<std::int32_t>(chunk.begin);
  const int               ahead = chunk.to == DistanceTo::Others ? 1 : 0;
  for (std::int64_t i = FirstItem(); i < chunk.CountColumns(); i += ItemStep())
  {
    const std::int64_t         volume = i / plane;
    const std::int64_t         base = volume * chunk.slices * plane + (i - volume * plane);
    const std::uint8_t * const column = marks + base;
    const std::int64_t         offset = base - slab.begin * plane;
    // A bit for each of 32 slices: their loads do not wait for each other.
    const auto featuresFrom = [&](std::int32_t begin) {
      std::uint32_t mask = 0;
#pragma unroll
      for (int bit = 0; bit < 32; ++bit)
      {
        mask |= begin + bit < slices && (column[(begin + bit) * plane] & IsFeature) != 0 ? 1u << bit : 0u;
      }
      return mask;
    };
    std::int64_t first = 0;
    std::int64_t step = 0;
    if (nearest)
    {
      const std::int64_t row = (i - volume * plane) / chunk.columns;
      const Coordinates  place = chunk.Place(volume, -chunk.begin, row, i - volume * plane - row * chunk.columns);
#pragma unroll
      for (int a = 0; a < MaxDimension; ++a)
      {
        first += place.axis[a] * chunk.dense.axis[a];
        step = a == chunk.scan ? chunk.dense.axis[a] : step;
      }
    }
    // The positions of the features before and after, -1: there is none.
    const std::int32_t after = behind ? behind[i] : -1;
    std::int32_t       last = slab.begin > 0 ? slab.last[i] : before ? before[i] : -1;
    std::int32_t       next = slab.begin > 0 ? slab.next[i] : SeekNext;
    bool               seeks = next == SeekNext;
    std::int32_t       known = -1;
    std::uint32_t      maskAhead = 0;
    for (std::int32_t begin = slab.begin; begin < slab.end; begin += 32)
    {
      const std::uint32_t mask = known == begin ? maskAhead : featuresFrom(begin);
      const int           bits = slab.end - begin < 32 ? slab.end - begin : 32;
      for (int bit = 0; bit < bits; ++bit)
      {
        const std::int64_t at = offset + (begin + bit) * plane;
        const std::int32_t position = start + begin + bit;
        last = (mask >> bit & 1u) != 0 ? position : last;
        if (seeks || (next >= 0 && next < position + ahead))
        {
          seeks = false;
          std::uint32_t found = bit + ahead < 32 ? mask & 0xFFFFFFFFu << (bit + ahead) : 0u;
          std::int32_t  from = begin;
          while (found == 0 && from + 32 < slices)
          {
            from += 32;
            found = maskAhead = featuresFrom(from);
            known = from;
          }
          next = found != 0 ? start + from + __ffs(static_cast<int>(found)) - 1 : after;
        }
        const std::uint32_t toLast = last < 0 ? none : static_cast<std::uint32_t>(position - last + ahead);
        const std::uint32_t toNext = next < 0 ? none : static_cast<std::uint32_t>(next - position);
        const std::uint32_t nearer = toLast < toNext ? toLast : toNext;
        T                   square = beyond;
        if (nearer != none)
        {
          square = weight(nearer);
          square = square < beyond ? square : beyond;
        }
        numbers[at] = ahead != 0 && (column[(begin + bit) * plane] & IsBackground) != 0 ? T{ 0 } : square;
        // Nobody reads that of a voxel without a feature near.
        if (nearest && (square < beyond || ahead != 0))
        {
          nearest[at] = static_cast<TIndex>(nearer != none ? first + (toLast <= toNext ? last : next) * step : -1);
        }
      }
    }
    if (slab.end < slices)
    {
      slab.last[i] = last;
      slab.next[i] = next;
    }
  }
}

/** The lowest of what the voxels of a line have, with what they are away. `differs`: the mark of voxels that end runs
 * of equal voxels; 0: lines have no runs. */
template <typename T, typename TIndex>
__global__ void
LineKernel(std::int64_t voxels, std::int64_t stride, std::int64_t length, std::uint8_t differs,
           const std::uint8_t * __restrict__ marks, DistanceWeight<T> weight, T beyond, const T * __restrict__ in,
           const TIndex * __restrict__ nearestIn, T * __restrict__ out, TIndex * __restrict__ nearestOut)
{
  for (std::int64_t i = FirstItem(); i < voxels; i += ItemStep())
  {
    const std::int64_t place = i / stride % length;
    T                  best = in[i];
    TIndex             index = nearestIn && best < beyond ? nearestIn[i] : static_cast<TIndex>(-1);
    bool               goesBack = true;
    bool               goesOn = true;
    for (std::int64_t k = 1; (goesBack && k <= place) || (goesOn && place + k < length); ++k)
    {
      const T more = weight(k);
      if (nearestIn ? best < more : best <= more)
      {
        break;
      }
      for (int side = 0; side < 2; ++side)
      {
        bool & goes = side == 0 ? goesBack : goesOn;
        goes = goes && (side == 0 ? k <= place : place + k < length);
        if (!goes)
        {
          continue;
        }
        const std::int64_t at = side == 0 ? i - k * stride : i + k * stride;
        // The run ends between this voxel and the one that is nearer.
        goes = differs == 0 || (marks[side == 0 ? at + stride : at] & differs) == 0;
        const T value = goes ? in[at] : T{ 0 };
        if (value < beyond)
        {
          const T sum = AddDistances(value, more);
          if (sum < best || (nearestIn && sum == best && nearestIn[at] < index))
          {
            best = sum;
            index = nearestIn ? nearestIn[at] : static_cast<TIndex>(-1);
          }
        }
      }
    }
    out[i] = best;
    if (nearestOut)
    {
      nearestOut[i] = index;
    }
  }
}

/** The parts of a result. */
struct DistanceStore
{
  DistanceResult result;
  bool           isSigned;
  bool           insideIsPositive;
  double         square;
  double         limit;
  bool           isShort; ///< float roots of whole numbers that float has
};

template <typename T, typename TIndex, typename TOut>
__global__ void
StoreKernel(DistanceChunk chunk, DistanceView output, DistanceStore store, TOut foreground, TOut none,
            const std::uint8_t * __restrict__ marks, T beyond, const T * __restrict__ numbers,
            const TIndex * __restrict__ nearest)
{
  constexpr bool givesReals = static_cast<TOut>(0.5) != TOut{ 0 };
  TOut * const   out = const_cast<TOut *>(static_cast<const TOut *>(output.data));
  chunk.ForEachRow([&](std::int64_t row0, const Coordinates & first, std::int64_t, std::int64_t, std::int64_t) {
    const std::int64_t ofRow = output.Offset(first);
    output.ForEachColumn(first, chunk.x, chunk.columns, [&](std::int64_t column) {
      TOut &     to = out[ofRow + column * output.alongColumns];
      const bool isNear = numbers[row0 + column] < beyond;
      if (store.result == DistanceResult::Within || store.result == DistanceResult::Beyond)
      {
        to = isNear == (store.result == DistanceResult::Within) ? foreground : TOut{ 0 };
        return;
      }
      if (store.result == DistanceResult::Index)
      {
        to = isNear ? static_cast<TOut>(nearest[row0 + column]) : none;
        return;
      }
      TOut value = none;
      if (isNear)
      {
        const double square = __dmul_rn(static_cast<double>(numbers[row0 + column]), store.square);
        if constexpr (givesReals)
        {
          // The root of a float is the same rounded once or twice.
          value = store.isShort                          ? static_cast<TOut>(__fsqrt_rn(static_cast<float>(square)))
                  : store.result == DistanceResult::Root ? static_cast<TOut>(__dsqrt_rn(square))
                                                         : static_cast<TOut>(square);
        }
        else
        {
          value = static_cast<TOut>(numbers[row0 + column]);
        }
      }
      if (store.isSigned && value != TOut{ 0 } &&
          ((marks[row0 + column] & IsBackground) == 0) != store.insideIsPositive)
      {
        value = static_cast<TOut>(-value);
      }
      to = value;
    });
  });
}

/** Labels, by their bits. */
template <typename T, typename TIndex, typename TBits>
__global__ void
LabelKernel(DistanceChunk chunk, DistanceView input, DistanceView output, TBits background, T beyond,
            const T * __restrict__ numbers, const TIndex * __restrict__ nearest,
            const std::uint64_t * __restrict__ before, const std::uint64_t * __restrict__ behind)
{
  TBits * const out = const_cast<TBits *>(static_cast<const TBits *>(output.data));
  chunk.ForEachRow([&](std::int64_t row0, const Coordinates & first, std::int64_t volume, std::int64_t, std::int64_t) {
    const std::int64_t ofRow = output.Offset(first);
    output.ForEachColumn(first, chunk.x, chunk.columns, [&](std::int64_t column) {
      TBits label = background;
      if (numbers[row0 + column] < beyond)
      {
        Coordinates  from{};
        bool         isBefore = false;
        bool         isBehind = false;
        std::int64_t fromRow = 0;
        std::int64_t fromColumn = 0;
        std::int64_t rest = static_cast<std::int64_t>(nearest[row0 + column]);
#pragma unroll
        for (int a = MaxDimension - 1; a >= 0; --a)
        {
          const std::int64_t step = chunk.dense.axis[a];
          // Divisions of 32 bits are much faster.
          const std::int64_t quotient = rest < std::int64_t{ 1 } << 32 && step < std::int64_t{ 1 } << 32
                                          ? static_cast<std::uint32_t>(rest) / static_cast<std::uint32_t>(step)
                                          : rest / step;
          rest -= quotient * step;
          from.axis[a] = quotient;
          isBefore = a == chunk.scan ? quotient < chunk.writable.lower.axis[a] : isBefore;
          isBehind = a == chunk.scan ? quotient >= chunk.writable.upper.axis[a] : isBehind;
          fromRow = a == chunk.y ? quotient : fromRow;
          fromColumn = a == chunk.x ? quotient : fromColumn;
        }
        const std::int64_t ofColumn = (volume * chunk.rows + fromRow) * chunk.columns + fromColumn;
        label = isBefore   ? static_cast<TBits>(before[ofColumn])
                : isBehind ? static_cast<TBits>(behind[ofColumn])
                           : static_cast<const TBits *>(input.data)[input.Offset(from)];
      }
      out[ofRow + column * output.alongColumns] = label;
    });
  });
}

DistanceChunk
MakeChunk(const DistanceOperation & operation, const Box & box)
{
  DistanceChunk chunk{};
  chunk.scan = operation.GetScanAxis();
  chunk.x = operation.GetSliceAxis(0);
  chunk.y = operation.GetSliceAxis(1);
  chunk.columns = chunk.x < 0 ? 1 : operation.image[chunk.x];
  chunk.rows = chunk.y < 0 ? 1 : operation.image[chunk.y];
  chunk.slices = box.Extent(chunk.scan);
  chunk.volumes = operation.GetPlanes(box).columns / (chunk.columns * chunk.rows);
  chunk.begin = box.lower[chunk.scan];
  chunk.slicesOfImage = operation.image[chunk.scan];
  chunk.writable = box;
  chunk.dense = DenseStrides(operation.image);
  chunk.to = operation.to;
  for (int a = 0; a < MaxDimension; ++a)
  {
    chunk.ofVolumes[a] = operation.IsAlong(a) ? 1 : box.Extent(a);
  }
  return chunk;
}

DistanceView
ViewOf(const BufferView & view, const DistanceChunk & chunk)
{
  const auto strideOf = [&](int axis) { return axis < 0 ? std::int64_t{ 0 } : view.stride[axis]; };
  return { view.data, view.box, view.stride, strideOf(chunk.scan), strideOf(chunk.y), strideOf(chunk.x) };
}

/** Voxels of a slab, unless even a slice has more. */
constexpr std::int64_t VoxelsOfSlab = std::int64_t{ 1 } << 27;

/** Indices of voxels have 32 bits, and one is left for none. */
bool
HasShortIndices(const DistanceOperation & operation)
{
  return operation.GetNumber() == DistanceNumber::Int32 &&
         Box::FromExtent(operation.image).NumberOfVoxels() < std::int64_t{ UINT32_MAX };
}

/** Two images of a slab's numbers, and of indices, which take turns. */
struct CudaDistanceScratch
{
  CudaDistanceScratch(const DistanceOperation & operation, const Box & box)
  {
    const DistanceChunk chunk = MakeChunk(operation, box);
    const std::int64_t  plane = chunk.rows * chunk.columns;
    const std::int64_t  all = chunk.volumes * chunk.slices * plane;
    // Several volumes are one slab.
    const bool isOne = chunk.volumes > 1 || all <= VoxelsOfSlab;
    // No less of a larger chunk.
    const auto voxels = static_cast<std::size_t>(isOne ? all : std::max(plane, VoxelsOfSlab));
    slices = isOne ? chunk.slices : std::max<std::int64_t>(1, VoxelsOfSlab / plane);
    const std::size_t size = operation.GetNumber() == DistanceNumber::Int32 ? 4 : 8;
    const auto        take = [this](std::size_t count) {
      const std::size_t at = bytes;
      bytes += (count + 255) / 256 * 256;
      return at;
    };
    marks = take(static_cast<std::size_t>(all));
    last = take(isOne ? 0 : static_cast<std::size_t>(plane) * sizeof(std::int32_t));
    next = take(isOne ? 0 : static_cast<std::size_t>(plane) * sizeof(std::int32_t));
    for (int i = 0; i < 2; ++i)
    {
      numbers[i] = take(voxels * size);
      nearest[i] = take(operation.KeepsNearest() ? voxels * (HasShortIndices(operation) ? 4 : 8) : 0);
    }
  }

  std::int64_t slices; ///< of a slab
  std::size_t  marks;
  std::size_t  last;
  std::size_t  next;
  std::size_t  numbers[2];
  std::size_t  nearest[2];
  std::size_t  bytes{ 0 };
};

class CudaDistances
{
public:
  explicit CudaDistances(const KernelCall & call)
    : m_Call(call)
    , m_Operation(static_cast<const DistanceOperation &>(*call.operation))
    , m_Scratch(m_Operation, call.writable)
    , m_Planes(m_Operation.GetPlanes(call.writable))
    , m_Chunk(MakeChunk(m_Operation, call.writable))
  {
    m_Chunk.hasBackground = m_Operation.background.IsOf(call.inputs[0].kind) ? 1 : 0;
    DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      MarkKernel<<<this->BlocksOfRows(m_Chunk), this->ThreadsOfRows(), 0, StreamOf(call)>>>(
        m_Chunk, ViewOf(call.inputs[0], m_Chunk), m_Operation.background.As<Pixel>(), this->Marks());
      CheckLaunch("MarkKernel");
    });
  }

  void
  Summarize()
  {
    auto * const bytes = static_cast<unsigned char *>(m_Call.sideOut);
    auto * const firsts = reinterpret_cast<std::int32_t *>(bytes);
    auto * const lasts = reinterpret_cast<std::int32_t *>(bytes + m_Planes.SideBytes());
    SummaryKernel<<<BlocksFor(m_Planes.columns, DistanceThreads), DistanceThreads, 0, StreamOf(m_Call)>>>(
      m_Chunk, this->Marks(), firsts, lasts);
    CheckLaunch("SummaryKernel");
    if (const std::size_t used = 2 * m_Planes.SideBytes(); used < m_Call.sideOutBytes)
    {
      // Plans ask for more than a chunk needs.
      CheckCuda(cudaMemsetAsync(bytes + used, 0, m_Call.sideOutBytes - used, StreamOf(m_Call)), "cudaMemsetAsync");
    }
    for (int side = 0; side < 2 && m_Planes.hasValues; ++side)
    {
      auto * const values = reinterpret_cast<std::uint64_t *>(
        bytes + static_cast<std::size_t>(side) * m_Planes.SideBytes() + m_Planes.ValuesOffset());
      DispatchSize(m_Call.inputs[0].kind, [&](auto bits) {
        ValuesKernel<decltype(bits)>
          <<<BlocksFor(m_Planes.columns, DistanceThreads), DistanceThreads, 0, StreamOf(m_Call)>>>(
            m_Chunk, ViewOf(m_Call.inputs[0], m_Chunk), side == 0 ? firsts : lasts, values);
        CheckLaunch("ValuesKernel");
      });
    }
  }

  /** `sides`, in memory of the device: the nearest features before and after the chunk; nullptr: there are none. */
  void
  Run(const void * sides)
  {
    switch (m_Operation.GetNumber())
    {
      case DistanceNumber::Int32:
        return HasShortIndices(m_Operation)
                 ? this->RunIn<std::int32_t, std::uint32_t>(sides, static_cast<std::int32_t>(m_Operation.GetBeyond()))
                 : this->RunIn<std::int32_t, std::int64_t>(sides, static_cast<std::int32_t>(m_Operation.GetBeyond()));
      case DistanceNumber::Int64:
        return this->RunIn<std::int64_t, std::int64_t>(sides, m_Operation.GetBeyond());
      default:
        return this->RunIn<double, std::int64_t>(sides, m_Operation.GetBeyondAsDouble());
    }
  }

private:
  bool
  FitsFloat() const
  {
    return m_Operation.GetLargestSquare() < 1 << 24;
  }
  dim3
  ThreadsOfRows() const
  {
    // A thread finds out about a row for several voxels.
    unsigned int width = 32;
    while (width < DistanceThreads && 8 * width < m_Chunk.columns)
    {
      width *= 2;
    }
    return dim3(width, DistanceThreads / width);
  }
  unsigned int
  BlocksOfRows(const DistanceChunk & chunk) const
  {
    return std::min(BlocksFor(chunk.volumes * chunk.slices * chunk.rows, this->ThreadsOfRows().y), 1u << 13);
  }
  template <typename T>
  T *
  At(std::size_t offset) const
  {
    return reinterpret_cast<T *>(static_cast<unsigned char *>(m_Call.scratch) + offset);
  }
  std::uint8_t *
  Marks() const
  {
    return this->At<std::uint8_t>(m_Scratch.marks);
  }
  template <typename TIndex>
  TIndex *
  Nearest(int i) const
  {
    return m_Operation.KeepsNearest() ? this->At<TIndex>(m_Scratch.nearest[i]) : nullptr;
  }

  template <typename T, typename TIndex>
  void
  RunIn(const void * sides, T beyond)
  {
    for (std::int64_t begin = 0; begin < m_Chunk.slices; begin += m_Scratch.slices)
    {
      this->RunSlab<T, TIndex>(begin, std::min(begin + m_Scratch.slices, m_Chunk.slices), sides, beyond);
    }
  }

  /** The slices of a slab, as a chunk. */
  DistanceChunk
  MakeSlab(std::int64_t begin, std::int64_t end) const
  {
    DistanceChunk slab = m_Chunk;
    slab.begin += begin;
    slab.slices = end - begin;
    return slab;
  }

  template <typename T, typename TIndex>
  void
  RunSlab(std::int64_t begin, std::int64_t end, const void * sides, T beyond)
  {
    const auto * const bytes = static_cast<const unsigned char *>(sides);
    const auto * const before = reinterpret_cast<const std::int32_t *>(bytes);
    const auto * const behind = bytes ? reinterpret_cast<const std::int32_t *>(bytes + m_Planes.SideBytes()) : nullptr;
    const DistanceSlab ofScan{ static_cast<std::int32_t>(begin),
                               static_cast<std::int32_t>(end),
                               this->At<std::int32_t>(m_Scratch.last),
                               this->At<std::int32_t>(m_Scratch.next) };
    ScanColumnsKernel<T, TIndex>
      <<<BlocksFor(m_Planes.columns, DistanceThreads), DistanceThreads, 0, StreamOf(m_Call)>>>(
        m_Chunk,
        ofScan,
        this->Marks(),
        before,
        behind,
        DistanceWeight<T>{ m_Operation.spacing[m_Chunk.scan] },
        beyond,
        this->At<T>(m_Scratch.numbers[0]),
        this->Nearest<TIndex>(0));
    CheckLaunch("ScanColumnsKernel");
    const DistanceChunk        slab = this->MakeSlab(begin, end);
    const std::uint8_t * const marks = this->Marks() + begin * m_Chunk.rows * m_Chunk.columns;
    const DistanceRoots        roots = std::is_same<T, std::int32_t>::value ? this->FindRoots(slab) : DistanceRoots{};
    const DistanceLabels       labels = bytes ? DistanceLabels{} : this->FindLabels(slab);
    int                        turn = 0;
    if (this->ComputeLines<T, TIndex>(slab, marks, beyond, roots, labels, turn))
    {
      return;
    }
    this->Store<T, TIndex>(slab, marks, beyond, turn, bytes);
  }

  /** The axes of slices, one after the other. `turn`: the image of numbers, which others take in turn. Returns true if
   * the last lines have stored `roots` or `labels`. */
  template <typename T, typename TIndex>
  bool
  ComputeLines(const DistanceChunk & slab, const std::uint8_t * marks, T beyond, const DistanceRoots & roots,
               const DistanceLabels & labels, int & turn)
  {
    const std::int64_t voxels = slab.volumes * slab.slices * slab.rows * slab.columns;
    bool               isStored = false;
    const auto         search = [&](int axis, std::int64_t stride, std::int64_t length, std::uint8_t differs) {
      if (length == 1)
      {
        return;
      }
      const DistanceRoots  rootsOfLines = stride == 1 ? roots : DistanceRoots{};
      const DistanceLabels labelsOfLines = stride == 1 ? labels : DistanceLabels{};
      DistanceLines        lines{};
      lines.groups = stride == 1 ? 1 : voxels / (stride * length);
      lines.lines = stride == 1 ? voxels / length : stride;
      lines.ofGroup = stride * length;
      lines.ofLine = stride == 1 ? length : 1;
      lines.stride = stride;
      lines.length = static_cast<std::int32_t>(std::min<std::int64_t>(length, INT32_MAX));
      if (m_Operation.to != DistanceTo::Others &&
          LaunchDistanceLines<T, TIndex>(StreamOf(m_Call),
                                         lines,
                                         m_Operation.spacing[axis],
                                         beyond,
                                         this->At<T>(m_Scratch.numbers[turn]),
                                         this->Nearest<TIndex>(turn),
                                         this->At<T>(m_Scratch.numbers[1 - turn]),
                                         this->Nearest<TIndex>(1 - turn),
                                         rootsOfLines,
                                         labelsOfLines))
      {
        isStored = rootsOfLines.to != nullptr || labelsOfLines.to != nullptr;
        turn = 1 - turn;
        return;
      }
      LineKernel<T, TIndex><<<BlocksFor(voxels, DistanceThreads), DistanceThreads, 0, StreamOf(m_Call)>>>(
        voxels,
        stride,
        length,
        m_Operation.to == DistanceTo::Others ? differs : std::uint8_t{ 0 },
        marks,
        DistanceWeight<T>{ m_Operation.spacing[axis] },
        beyond,
        this->At<T>(m_Scratch.numbers[turn]),
        this->Nearest<TIndex>(turn),
        this->At<T>(m_Scratch.numbers[1 - turn]),
        this->Nearest<TIndex>(1 - turn));
      CheckLaunch("LineKernel");
      turn = 1 - turn;
    };
    search(std::max(slab.y, 0), slab.columns, slab.rows, DiffersAlongY);
    search(std::max(slab.x, 0), 1, slab.columns, DiffersAlongX);
    return isStored;
  }

  template <typename T, typename TIndex>
  void
  Store(const DistanceChunk & slab, const std::uint8_t * marks, T beyond, int turn, const unsigned char * sides)
  {
    const T * const      numbers = this->At<T>(m_Scratch.numbers[turn]);
    const TIndex * const nearest = this->Nearest<TIndex>(turn);
    if (m_Operation.result == DistanceResult::Label)
    {
      this->StoreLabels(slab, numbers, nearest, beyond, sides);
      return;
    }
    DispatchPixelType(m_Call.output.kind, [&](auto out) {
      using Out = decltype(out);
      const bool    isReal = std::is_same<T, double>::value;
      const double  unit = m_Operation.GetUnit();
      DistanceStore store{};
      store.result = m_Operation.result;
      store.isSigned = m_Operation.to == DistanceTo::Contour;
      store.insideIsPositive = m_Operation.insideIsPositive;
      store.square = isReal ? 1.0 : unit * unit;
      store.limit = m_Operation.limit;
      store.isShort = std::is_same<Out, float>::value && m_Operation.result == DistanceResult::Root && !isReal &&
                      store.square == 1 && this->FitsFloat();
      StoreKernel<T, TIndex, Out><<<this->BlocksOfRows(slab), this->ThreadsOfRows(), 0, StreamOf(m_Call)>>>(
        slab,
        ViewOf(m_Call.output, slab),
        store,
        m_Operation.foreground.IsOf(m_Call.output.kind) ? m_Operation.foreground.As<Out>() : Out{ 1 },
        this->NoneOf<Out>(),
        marks,
        beyond,
        numbers,
        nearest);
      CheckLaunch("StoreKernel");
    });
  }

  /** Whether the voxels of a view are those of the chunk, one after the other as its numbers are. */
  bool
  IsDense(const BufferView & view) const
  {
    return view.box == m_Chunk.writable && m_Chunk.volumes == 1 && m_Chunk.x >= 0 && view.stride[m_Chunk.x] == 1 &&
           (m_Chunk.y < 0 || view.stride[m_Chunk.y] == m_Chunk.columns) &&
           (m_Chunk.slices == 1 || view.stride[m_Chunk.scan] == m_Chunk.rows * m_Chunk.columns);
  }
  std::int64_t
  FirstOf(const DistanceChunk & slab) const
  {
    return (slab.begin - m_Chunk.begin) * slab.rows * slab.columns;
  }
  /** The output, if lines along x can store roots there. */
  DistanceRoots
  FindRoots(const DistanceChunk & slab) const
  {
    const BufferView & output = m_Call.output;
    const bool         areRoots = m_Operation.result == DistanceResult::Root && m_Operation.to != DistanceTo::Contour &&
                          m_Operation.GetUnit() == 1 && this->FitsFloat();
    return output.kind == PixelType::Float32 && this->IsDense(output) && areRoots
             ? DistanceRoots{ static_cast<float *>(output.data) + this->FirstOf(slab), this->NoneOf<float>() }
             : DistanceRoots{};
  }
  /** The same for labels of an image in one chunk, whose indices are places in the input. */
  DistanceLabels
  FindLabels(const DistanceChunk & slab) const
  {
    const BufferView & input = m_Call.inputs[0];
    const BufferView & output = m_Call.output;
    const bool         isWhole = m_Chunk.writable == Box::FromExtent(m_Operation.image);
    const auto         bytes = static_cast<std::int64_t>(PixelSize(output.kind));
    return m_Operation.result == DistanceResult::Label && isWhole && this->IsDense(input) && this->IsDense(output)
             ? DistanceLabels{ input.data,
                               static_cast<unsigned char *>(output.data) + this->FirstOf(slab) * bytes,
                               static_cast<int>(bytes),
                               this->GetBitsOfBackground() }
             : DistanceLabels{};
  }
  /** In the output's type. */
  std::uint64_t
  GetBitsOfBackground() const
  {
    std::uint64_t bits = 0;
    DispatchPixelType(m_Call.output.kind, [&](auto pixel) {
      const auto value = m_Operation.background.As<decltype(pixel)>();
      std::copy_n(
        reinterpret_cast<const unsigned char *>(&value), sizeof(value), reinterpret_cast<unsigned char *>(&bits));
    });
    return bits;
  }

  /** The value of voxels without a feature within the limit. */
  template <typename TOut>
  TOut
  NoneOf() const
  {
    constexpr bool isReal = static_cast<TOut>(0.5) != TOut{ 0 };
    const double   limit = m_Operation.limit;
    if (m_Operation.result == DistanceResult::Index)
    {
      return static_cast<TOut>(-1) < TOut{ 0 } ? static_cast<TOut>(-1) : std::numeric_limits<TOut>::max();
    }
    if (isReal)
    {
      return static_cast<TOut>(m_Operation.result == DistanceResult::Root ? limit : limit * limit);
    }
    return limit * limit < static_cast<double>(std::numeric_limits<TOut>::max()) ? static_cast<TOut>(limit * limit)
                                                                                 : std::numeric_limits<TOut>::max();
  }

  template <typename T, typename TIndex>
  void
  StoreLabels(const DistanceChunk & slab, const T * numbers, const TIndex * nearest, T beyond,
              const unsigned char * bytes)
  {
    DispatchSize(m_Call.output.kind, [&](auto bits) {
      using Bits = decltype(bits);
      const auto values = [&](std::size_t side) {
        return bytes ? reinterpret_cast<const std::uint64_t *>(bytes + side + m_Planes.ValuesOffset()) : nullptr;
      };
      LabelKernel<T, TIndex, Bits><<<this->BlocksOfRows(slab), this->ThreadsOfRows(), 0, StreamOf(m_Call)>>>(
        slab,
        ViewOf(m_Call.inputs[0], slab),
        ViewOf(m_Call.output, slab),
        static_cast<Bits>(this->GetBitsOfBackground()),
        beyond,
        numbers,
        nearest,
        values(0),
        values(m_Planes.SideBytes()));
      CheckLaunch("LabelKernel");
    });
  }

  const KernelCall &        m_Call;
  const DistanceOperation & m_Operation;
  const CudaDistanceScratch m_Scratch;
  const DistancePlanes      m_Planes;
  DistanceChunk             m_Chunk;
};

std::size_t
ScratchOfDistances(const Operation & operation, const ChunkShape & shape)
{
  return CudaDistanceScratch(static_cast<const DistanceOperation &>(operation), shape.outputBox).bytes;
}

/** Searches read what is near from the caches. */
double
CostOfDistances(const Operation & operation, const ChunkShape & shape)
{
  const double perVoxel = static_cast<const DistanceOperation &>(operation).KeepsNearest() ? 200.0 : 80.0;
  return static_cast<double>(shape.outputBox.NumberOfVoxels()) * perVoxel;
}

} // namespace

void
RegisterCudaDistance(KernelRegistry & registry)
{
  KernelSet kernels;
  Kernel    kernel;
  kernel.scratchBytes = ScratchOfDistances;
  kernel.cost = CostOfDistances;
  kernel.run = [](const KernelCall & call) {
    if (!call.writable.IsEmpty())
    {
      CudaDistances(call).Summarize();
    }
  };
  kernels.summarize = kernel;
  kernel.run = [](const KernelCall & call) {
    if (call.writable.IsEmpty())
    {
      return;
    }
    const auto & operation = static_cast<const DistanceOperation &>(*call.operation);
    CudaDistances(call).Run(operation.outside ? call.tables->Get("distance sides " + operation.outsideKey,
                                                                 operation.outside->data(),
                                                                 operation.outside->size())
                                              : nullptr);
  };
  kernels.alone = kernel;
  kernel.run = [](const KernelCall & call) {
    if (!call.writable.IsEmpty())
    {
      CudaDistances(call).Run(call.sideIn);
    }
  };
  kernels.compute = kernel;
  registry.Register("distance", kernels);
}

// Runs of images that do not fit a memory are the library's; this module has its own copy of the operation.
const OutOfCoreRunner *
DistanceOperation::GetOutOfCoreRunner() const
{
  return nullptr;
}

} // namespace chunkwise
