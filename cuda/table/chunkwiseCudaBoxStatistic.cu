/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaBoxRows.cuh"

#include <limits>

// A table is made by warps that each own the columns of a block along x, or of a part of it, and march down the block:
// what the rows above sum to stays in registers, what the planes before sum to is read back from the table, which the
// L2 cache still has. So a chunk's input is read once and its table written once. Then each voxel reads the corners of
// its box.
namespace chunkwise
{

namespace
{

constexpr int          WarpsPerBlock = 4;
constexpr int          Segments = 4; ///< that a warp has in registers
constexpr std::int64_t RowMultiple = 4;
constexpr unsigned int AllLanes = 0xFFFFFFFFU;

static_assert(BoxStatisticOperation::SegmentColumns == 64, "two columns a lane");
static_assert(BoxStatisticOperation::LeastBlockColumns == 64 * Segments, "a short block is in registers");

template <typename T>
struct alignas(2 * sizeof(T) < 16 ? 2 * sizeof(T) : 16) Pair
{
  T a;
  T b;
};

template <typename TMove, typename T>
__device__ T
MoveWords(const T & value, TMove && move)
{
  constexpr int words = sizeof(T) / 4;
  union Words
  {
    T             value;
    std::uint32_t word[words];
    __device__
    Words()
    {}
  };
  Words in;
  Words out;
  in.value = value;
#pragma unroll
  for (int i = 0; i < words; ++i)
  {
    out.word[i] = move(in.word[i]);
  }
  return out.value;
}

template <typename T>
__device__ T
FromLaneBefore(const T & value, int distance)
{
  return MoveWords(value, [&](std::uint32_t word) { return __shfl_up_sync(AllLanes, word, distance); });
}

template <typename T>
__device__ T
FromLastLane(const T & value)
{
  return MoveWords(value, [](std::uint32_t word) { return __shfl_sync(AllLanes, word, 31); });
}

/** How the rows of a chunk are dealt to warps. */
struct Deal
{
  /** The axes that a warp marches along, the first the inner one; -1: none. */
  int inner;
  int outer;
  /** Along each axis, the positions that a warp has, and how many warps that makes. */
  Coordinates step;
  Coordinates count;
  /** Pixels and entries from one row, and from one plane, to the next. */
  std::int64_t inRow;
  std::int64_t inPlane;
  std::int64_t toRow;
  std::int64_t toPlane;

  __host__ __device__ std::int64_t
                      Tasks() const
  {
    std::int64_t tasks = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      tasks *= count.axis[a];
    }
    return tasks;
  }
};

/** The columns of one row that a warp works on: Segments segments, a pair of columns a lane of each. Small pixels stay
 * as they were loaded until they are needed: to take them apart would be to wait for them. */
template <typename TPixel>
struct RowPixels
{
  using Raw = std::conditional_t<sizeof(TPixel) == 1, std::uint16_t,
                                 std::conditional_t<sizeof(TPixel) == 2, std::uint32_t, Pair<TPixel>>>;
  static_assert(sizeof(Raw) == sizeof(Pair<TPixel>), "two pixels");

  Raw raw[Segments];

  /** `columns`: those that there are from here. */
  __device__ void
  Load(const TPixel * __restrict__ row, std::int64_t stride, std::int64_t columns)
  {
    const int  lane = static_cast<int>(threadIdx.x % 32);
    const bool isAligned = reinterpret_cast<std::uintptr_t>(row) % sizeof(Raw) == 0;
    if (stride == 1 && isAligned && columns >= 64 * Segments)
    {
#pragma unroll
      for (int s = 0; s < Segments; ++s)
      {
        raw[s] = *reinterpret_cast<const Raw *>(row + 64 * s + 2 * lane);
      }
      return;
    }
#pragma unroll
    for (int s = 0; s < Segments; ++s)
    {
      const int          column = 64 * s + 2 * lane;
      const Pair<TPixel> pair{ column < columns ? row[column * stride] : TPixel(0),
                               column + 1 < columns ? row[(column + 1) * stride] : TPixel(0) };
      raw[s] = Reinterpret<Raw>(pair);
    }
  }
  __device__ Pair<TPixel>
             Get(int segment) const
  {
    return Reinterpret<Pair<TPixel>>(raw[segment]);
  }

private:
  template <typename TTo, typename TFrom>
  __device__ static TTo
  Reinterpret(const TFrom & from)
  {
    TTo to;
    memcpy(&to, &from, sizeof(to));
    return to;
  }
};

/** What a row's columns add to the table, see BoxStatisticOperation. `before` is the sum of the segments before, and
 * then also of these. */
template <bool VScans, typename TPixel, typename TEntry>
__device__ void
ScanPixels(const RowPixels<TPixel> & pixels, TEntry & before, Pair<TEntry> (&sums)[Segments])
{
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int s = 0; s < Segments; ++s)
  {
    const Pair<TPixel> pair = pixels.Get(s);
    const auto         a = BoxEntryOf<TEntry>(pair.a);
    const auto         b = BoxEntryOf<TEntry>(pair.b);
    if constexpr (!VScans)
    {
      sums[s] = { TEntry{} + a, TEntry{} + b };
      continue;
    }
    const TEntry both = a + b;
    TEntry       total = both;
#pragma unroll
    for (int d = 1; d < 32; d *= 2)
    {
      const TEntry other = FromLaneBefore(total, d);
      total = lane >= d ? other + total : total;
    }
    const TEntry other = FromLaneBefore(total, 1);
    const TEntry left = before + (lane > 0 ? other : TEntry{});
    sums[s] = { left + a, left + both };
    before = before + FromLastLane(total);
  }
}

template <bool VScans, typename TPixel, typename TEntry>
__global__ void __launch_bounds__(32 * WarpsPerBlock)
  TableKernel(Voxels<const TPixel> in, BoxTable table, Deal deal, TEntry * __restrict__ entries)
{
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x) * WarpsPerBlock + threadIdx.x / 32;
  if (task >= deal.Tasks())
  {
    return;
  }
  const int    lane = static_cast<int>(threadIdx.x % 32);
  Coordinates  at{};
  std::int64_t rest = task;
  std::int64_t rows = 1;
  std::int64_t planes = 1;
#pragma unroll
  for (int a = 0; a < MaxDimension; ++a)
  {
    at.axis[a] = table.box.lower.axis[a] + rest % deal.count.axis[a] * deal.step.axis[a];
    rest /= deal.count.axis[a];
    const std::int64_t positions = min(deal.step.axis[a], table.box.upper.axis[a] - at.axis[a]);
    rows = a == deal.inner ? positions : rows;
    planes = a == deal.outer ? positions : planes;
  }
  const TPixel * const from = in.data + in.Offset(at);
  TEntry * const       to = entries + table.Offset(at);
  const std::int64_t   columns = table.box.upper.axis[0] - at.axis[0];
  const std::int64_t   padded = table.axes[1].stride - (at.axis[0] - table.box.lower.axis[0]);
  const std::int64_t   width = min(deal.step.axis[0], columns);

  // Blocks that are wider than what a warp has at once are dealt without rows to march along.
  TEntry before{};
  for (std::int64_t first = 0; first < width; first += 64 * Segments)
  {
    TEntry            total{};
    Pair<TEntry>      rowsBefore[Segments];
    RowPixels<TPixel> pixels;
    pixels.Load(from + first * in.stride.axis[0], in.stride.axis[0], columns - first);
    for (std::int64_t plane = 0; plane < planes; ++plane)
    {
      for (std::int64_t row = 0; row < rows; ++row)
      {
        const RowPixels<TPixel> now = pixels;
        const bool              endsPlane = row + 1 == rows;
        if (!endsPlane || plane + 1 < planes)
        {
          const std::int64_t next =
            endsPlane ? (plane + 1) * deal.inPlane : plane * deal.inPlane + (row + 1) * deal.inRow;
          pixels.Load(from + next + first * in.stride.axis[0], in.stride.axis[0], columns - first);
        }
        TEntry * const line = to + plane * deal.toPlane + row * deal.toRow + first;
        Pair<TEntry>   planesBefore[Segments];
        if (plane > 0)
        {
#pragma unroll
          for (int s = 0; s < Segments; ++s)
          {
            const int column = 64 * s + 2 * lane;
            if (column < padded - first)
            {
              planesBefore[s] = *reinterpret_cast<const Pair<TEntry> *>(line - deal.toPlane + column);
            }
          }
        }
        Pair<TEntry> sums[Segments];
        total = before;
        ScanPixels<VScans>(now, total, sums);
#pragma unroll
        for (int s = 0; s < Segments; ++s)
        {
          if (row > 0)
          {
            sums[s] = { rowsBefore[s].a + sums[s].a, rowsBefore[s].b + sums[s].b };
          }
          rowsBefore[s] = sums[s];
          if (plane > 0)
          {
            sums[s] = { planesBefore[s].a + sums[s].a, planesBefore[s].b + sums[s].b };
          }
          const int column = 64 * s + 2 * lane;
          if (column < padded - first)
          {
            *reinterpret_cast<Pair<TEntry> *>(line + column) = sums[s];
          }
        }
      }
    }
    before = total;
  }
}

/** Running sums over blocks of an axis, in place: [outer][axis][inner], a thread for a column of a block. */
template <typename TEntry>
__global__ void
MarchKernel(TEntry * __restrict__ entries, std::int64_t inner, std::int64_t positions, std::int64_t length,
            std::int64_t blocks, std::int64_t outer)
{
  constexpr int      ahead = 8;
  const std::int64_t count = inner * blocks * outer;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    const std::int64_t rest = i / inner;
    const std::int64_t block = rest % blocks;
    const std::int64_t n = min(length, positions - block * length);
    TEntry *           line = entries + (rest / blocks * positions + block * length) * inner + (i - rest * inner);
    TEntry             sum = *line;
    for (std::int64_t k = 1; k < n; k += ahead)
    {
      TEntry values[ahead];
#pragma unroll
      for (int j = 0; j < ahead; ++j)
      {
        if (k + j < n)
        {
          values[j] = line[(k + j) * inner];
        }
      }
#pragma unroll
      for (int j = 0; j < ahead; ++j)
      {
        if (k + j < n)
        {
          sum = sum + values[j];
          line[(k + j) * inner] = sum;
        }
      }
    }
  }
}

/** Fewer than this many warps do not fill a GPU. */
constexpr std::int64_t EnoughWarps = 1024;

template <typename TPixel, typename TEntry>
void
MakeTable(const KernelCall & call, const BoxTable & table, TEntry * entries)
{
  const BufferView & in = call.inputs[0];
  Deal               deal{ -1, -1, Coordinates::Filled(1), table.box.Extents(), 0, 0, 0, 0 };
  deal.step[0] = table.axes[0].TakesPart() ? table.axes[0].length : 64 * Segments;
  deal.count[0] = (table.box.Extent(0) + deal.step[0] - 1) / deal.step[0];
  bool marched[MaxDimension]{};
  for (int a = 1; a < MaxDimension && deal.step[0] == 64 * Segments && deal.outer < 0; ++a)
  {
    const BoxAxis<std::int64_t> & axis = table.axes[a];
    if (!axis.TakesPart())
    {
      continue;
    }
    Deal       more = deal;
    const bool isInner = deal.inner < 0;
    (isInner ? more.inner : more.outer) = a;
    (isInner ? more.inRow : more.inPlane) = in.stride[a];
    (isInner ? more.toRow : more.toPlane) = axis.stride;
    more.step[a] = axis.length;
    more.count[a] = (table.box.Extent(a) + axis.length - 1) / axis.length;
    if (more.Tasks() < EnoughWarps)
    {
      break;
    }
    deal = more;
    marched[a] = true;
  }
  const auto stream = StreamOf(call);
  const auto blocks = static_cast<unsigned int>((deal.Tasks() + WarpsPerBlock - 1) / WarpsPerBlock);
  if (table.axes[0].TakesPart())
  {
    TableKernel<true><<<blocks, 32 * WarpsPerBlock, 0, stream>>>(VoxelsOf<const TPixel>(in), table, deal, entries);
  }
  else
  {
    TableKernel<false><<<blocks, 32 * WarpsPerBlock, 0, stream>>>(VoxelsOf<const TPixel>(in), table, deal, entries);
  }
  CheckLaunch("TableKernel");
  for (int a = 1; a < MaxDimension; ++a)
  {
    const BoxAxis<std::int64_t> & axis = table.axes[a];
    if (axis.TakesPart() && !marched[a])
    {
      const std::int64_t positions = table.box.Extent(a);
      const std::int64_t blocksOfAxis = (positions + axis.length - 1) / axis.length;
      std::int64_t       outer = 1;
      for (int b = a + 1; b < MaxDimension; ++b)
      {
        outer *= table.box.Extent(b);
      }
      MarchKernel<<<BlocksFor(axis.stride * blocksOfAxis * outer, 256), 256, 0, stream>>>(
        entries, axis.stride, positions, axis.length, blocksOfAxis, outer);
      CheckLaunch("MarchKernel");
    }
  }
}

template <typename TIndex>
__device__ TIndex
RadiusAt(const void * radii, PixelKind kind, std::int64_t i)
{
  const auto read = [&](auto pixel) {
    return CutRadius(static_cast<const decltype(pixel) *>(radii)[i], std::numeric_limits<TIndex>::max());
  };
  switch (kind)
  {
    case PixelKind::UInt8:
      return read(std::uint8_t{});
    case PixelKind::Int8:
      return read(std::int8_t{});
    case PixelKind::UInt16:
      return read(std::uint16_t{});
    case PixelKind::Int16:
      return read(std::int16_t{});
    case PixelKind::UInt32:
      return read(std::uint32_t{});
    case PixelKind::Int32:
      return read(std::int32_t{});
    case PixelKind::UInt64:
      return read(std::uint64_t{});
    default:
      return read(std::int64_t{});
  }
}

constexpr int BlockColumns = 32;
constexpr int BlockRows = 8;
constexpr int RowsPerThread = 4;

/** What a block of threads has of the output along axis `a`. */
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

/** (E - P) + L of what `f(offset, there)` gives; what is not there it gives as zero. Where no E is there, leaving it
 * out changes no bit: entries are never -0. */
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

/** Of warps of which no box meets two blocks along an axis, no thread looks for the second: `meets` has a bit for each
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
template <typename TEntry, typename TIndex, typename TOut>
__global__ void
__launch_bounds__(BlockColumns * BlockRows)
  QueryKernel(QueryAxes<TIndex> query, const TEntry * __restrict__ entries, Voxels<const char> radii, PixelKind kind,
              Voxels<TOut> out, BoxStatistic statistic)
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
    const TIndex     r = radii.data ? RadiusAt<TIndex>(radii.data, kind, radius) : std::numeric_limits<TIndex>::max();
    TIndex           voxels = 1;
    BoxTerms<TIndex> terms[MaxSpatialAxes]{};
    unsigned int     meets = 0;
#pragma unroll
    for (int k = 0; k < MaxSpatialAxes; ++k)
    {
      if (k > 0 || query.hasThree)
      {
        terms[k] = query.axes[k].TermsOf(positions[k], r, voxels);
        meets |= __any_sync(AllLanes, terms[k].hasEnd) ? 1U << k : 0U;
      }
    }
    const TEntry sum = query.hasThree ? SumOfWarp<3>(entries, terms, meets) : SumOfWarp<2>(entries, terms, meets);
    if (beyond == 0)
    {
      *out.data = FinishBox<TOut>(sum, BoxVoxels{ voxels }, statistic);
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

template <typename TOut, typename TIndex, typename TEntry>
void
Query(const KernelCall & call, const BoxTable & table, const TEntry * entries)
{
  const auto &       operation = static_cast<const BoxStatisticOperation &>(*call.operation);
  const BufferView & output = call.output;
  if (!operation.variable && QueryRows<TOut>(call, table, entries))
  {
    return;
  }
  QueryAxes<TIndex> query{};
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
  QueryKernel<<<static_cast<unsigned int>(blocks), BlockColumns * BlockRows, 0, StreamOf(call)>>>(
    query, entries, VoxelsOf<const char>(radii), radii.kind, VoxelsOf<TOut>(output), operation.statistic);
  CheckLaunch("QueryKernel");
}

template <typename TFunctor>
void
DispatchTypes(const BoxStatisticOperation & operation, const Coordinates & image, PixelKind input, TFunctor && f)
{
  DispatchPixelKind(input, [&](auto pixel) {
    DispatchBoxEntry<decltype(pixel)>(operation, image, [&](auto entry) { f(pixel, entry); });
  });
}

void
RunBoxStatistic(const KernelCall & call)
{
  const auto &   operation = static_cast<const BoxStatisticOperation &>(*call.operation);
  const BoxTable table = MakeBoxTable(operation, call.output.box, call.image, RowMultiple);
  DispatchTypes(operation, call.image.Extents(), call.inputs[0].kind, [&](auto pixel, auto entry) {
    using Pixel = decltype(pixel);
    using Entry = decltype(entry);
    auto * const entries = static_cast<Entry *>(call.scratch);
    MakeTable<Pixel>(call, table, entries);
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      if (IsNarrow(table))
      {
        Query<Out, std::int32_t>(call, table, entries);
      }
      else
      {
        Query<Out, std::int64_t>(call, table, entries);
      }
    });
  });
}

std::size_t
BoxStatisticScratch(const Operation & anyOperation, const ChunkShape & shape)
{
  const auto &      operation = static_cast<const BoxStatisticOperation &>(anyOperation);
  const Coordinates image = shape.image.Extents();
  std::size_t       bytes = 0;
  DispatchTypes(operation, image, shape.inputKinds[0], [&](auto, auto entry) {
    bytes = static_cast<std::size_t>(MostBoxEntries(operation, shape.outputBox.Extents(), image, RowMultiple)) *
            sizeof(entry);
  });
  return bytes;
}

/** Input, output, and the table written and read. */
double
BoxStatisticCost(const Operation & operation, const ChunkShape & shape)
{
  const double input = static_cast<double>(shape.inputBox.NumberOfVoxels()) * PixelSize(shape.inputKinds[0]);
  const double output = static_cast<double>(shape.outputBox.NumberOfVoxels()) * PixelSize(shape.outputKind);
  return input + output + 2.0 * static_cast<double>(BoxStatisticScratch(operation, shape));
}

} // namespace

void
RegisterCudaBoxStatistic(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunBoxStatistic;
  kernel.scratchBytes = BoxStatisticScratch;
  kernel.cost = BoxStatisticCost;
  registry.Register("boxstatistic", kernel);
}

} // namespace chunkwise
