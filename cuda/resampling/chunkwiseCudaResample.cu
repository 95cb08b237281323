/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaResample.h"
#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaResampleFilter.cuh"
#include "chunkwiseCudaResampleTiles.cuh"
#include "chunkwiseCudaTables.h"
#include "chunkwiseKernelChoice.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

namespace chunkwise
{

namespace
{

constexpr int ResampleAxes = ResampleOperation::Axes;
/** Threads of the kernels whose weights or votes lie in scratch. */
constexpr std::int64_t WideThreads = 16384;
/** Taps along each axis whose weights a thread holds. */
constexpr int HeldTaps = 6;

const ResampleOperation &
OperationOf(const Operation & operation)
{
  return static_cast<const ResampleOperation &>(operation);
}

/** Calls f(voxel, offset of the image of the axes that has it, offset of the result) for the voxels of the output that
 * a thread computes. */
template <typename TFunctor>
__device__ __forceinline__ void
ForEachVoxelOfThread(const ResampleSpace & space, TFunctor && f)
{
  const std::int64_t rows = space.CountRows();
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    const ResampleSpace::Row place = space.FindRow(row);
    for (std::int64_t x = threadIdx.x; x < space.outExtent[0]; x += blockDim.x)
    {
      const Coordinates voxel = { { space.outLower[0] + x, place.y, place.z, 0, 0 } };
      f(voxel, place.in, place.out + x * space.outStride[0]);
    }
  }
}

/** The number of this thread, in kernels that go through rows. */
__device__ __forceinline__ std::int64_t
                           NumberOfThread()
{
  return (static_cast<std::int64_t>(blockIdx.x) * RowsOfBlock + threadIdx.y) * 32 + threadIdx.x;
}

/** Voxels are copied. */
template <typename TIn, typename TOut>
__global__ void
ResampleNearestKernel(ResampleGrid grid, ResampleSpace space, const TIn * __restrict__ in, TOut * __restrict__ out,
                      TOut value)
{
  ForEachVoxelOfThread(space, [&](const Coordinates & voxel, std::int64_t from, std::int64_t to) {
    const ResamplePoint points(grid, space, voxel);
    bool                hasValue = false;
    for (int i = 0; i < ResampleAxes; ++i)
    {
      const double       point = points.at[i];
      const std::int64_t tap = FirstTap(grid.axes[i], grid.edges[i].Move(point));
      const std::int64_t at = MapVoxel(tap, grid.axes[i].length, grid.outside, false);
      hasValue = hasValue || at < 0 || grid.edges[i].HasValue(point);
      from += (at - space.inLower[i]) * space.inStride[i];
    }
    out[to] = hasValue ? value : static_cast<TOut>(in[from]);
  });
}

/** The moves of the voxels of a box, one component after the other. */
__global__ void
ResampleMovesKernel(ResampleMoves moves, Coordinates lower, Coordinates extent, double * __restrict__ out)
{
  const std::int64_t count = extent[0] * extent[1] * extent[2];
  for (std::int64_t row = FirstRow(); row < extent[1] * extent[2]; row += RowStep())
  {
    const std::int64_t z = Quotient(row, extent[1]);
    for (std::int64_t x = threadIdx.x; x < extent[0]; x += blockDim.x)
    {
      double vector[ResampleAxes];
      moves.FindVector({ { lower[0] + x, lower[1] + row - z * extent[1], lower[2] + z, 0, 0 } }, vector);
      for (int i = 0; i < ResampleAxes; ++i)
      {
        out[i * count + row * extent[0] + x] = moves.Transform(i, vector);
      }
    }
  }
}

/** The memory of a field's part for a chunk, at the beginning of its scratch: the vectors of a box of the grid, then
 * the moves of the voxels. */
struct FieldScratch
{
  FieldScratch(const ResampleOperation & operation, const Coordinates & output)
  {
    if (!operation.field)
    {
      return;
    }
    for (int i = 0; i < ResampleAxes; ++i)
    {
      extent[i] = output[operation.axes[i]];
    }
    component = sizeof(double);
    for (int i = 0; i < ResampleAxes; ++i)
    {
      component *= static_cast<std::size_t>(operation.field->CountMostOfPart(i, extent));
    }
    component = RoundUp(component);
    vectors = static_cast<std::size_t>(operation.field->GetMoves().components) * component;
    bytes = vectors +
            RoundUp(ResampleAxes * sizeof(double) * static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  }

  Coordinates extent{ Coordinates::Filled(1) }; ///< of the chunk, along the operation's axes
  std::size_t component{ 0 };                   ///< of a vector
  std::size_t vectors{ 0 };
  std::size_t bytes{ 0 };
};

/** Copies a box of the grid of vectors from the host. */
void
CopyVectors(const KernelCall & call, const ResampleMoves & all, ResampleMoves & part, const std::int64_t (&count)[3],
            std::size_t componentBytes)
{
  const auto row = [](std::int64_t numbers) { return static_cast<std::size_t>(numbers) * sizeof(double); };
  const auto size = [](std::int64_t number) { return static_cast<std::size_t>(number); };
  for (int k = 0; k < all.components; ++k)
  {
    void * const      to = static_cast<unsigned char *>(call.scratch) + static_cast<std::size_t>(k) * componentBytes;
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(
      const_cast<double *>(all.vectors[k]), row(all.extent[0]), row(all.extent[0]), size(all.extent[1]));
    copy.srcPos = make_cudaPos(row(part.lower[0]), size(part.lower[1]), size(part.lower[2]));
    copy.dstPtr = make_cudaPitchedPtr(to, row(count[0]), row(count[0]), size(count[1]));
    copy.extent = make_cudaExtent(row(count[0]), size(count[1]), size(count[2]));
    copy.kind = cudaMemcpyHostToDevice;
    CheckCuda(cudaMemcpy3DAsync(&copy, StreamOf(call)), "cudaMemcpy3DAsync of vectors");
    part.vectors[k] = static_cast<const double *>(to);
  }
}

/** The places of a chunk's voxels; a field's moves are in its scratch. */
ResampleSpace
MakeSpace(const KernelCall & call, const ResampleOperation & operation, const BufferView & from)
{
  ResampleSpace space(operation, from, call.output);
  if (!operation.field)
  {
    return space;
  }
  const FieldScratch sizes(operation, call.output.box.Extents());
  Coordinates        lower{};
  Coordinates        upper{};
  for (int i = 0; i < ResampleAxes; ++i)
  {
    lower[i] = call.output.box.lower[operation.axes[i]];
    upper[i] = call.output.box.upper[operation.axes[i]];
  }
  const ResampleMoves & all = operation.field->GetMoves();
  ResampleMoves         part = all;
  std::int64_t          last[ResampleAxes];
  std::int64_t          count[ResampleAxes];
  operation.field->GetPart(lower, upper, part.lower, last);
  for (int i = 0; i < ResampleAxes; ++i)
  {
    count[i] = last[i] - part.lower[i] + 1;
  }
  part.stride[1] = count[0];
  part.stride[2] = count[0] * count[1];
  CopyVectors(call, all, part, count, sizes.component);
  auto * const moves = reinterpret_cast<double *>(static_cast<unsigned char *>(call.scratch) + sizes.vectors);
  ResampleMovesKernel<<<BlocksFor(sizes.extent[1] * sizes.extent[2], RowsOfBlock),
                        ThreadsOfRows(),
                        0,
                        StreamOf(call)>>>(part, lower, sizes.extent, moves);
  CheckLaunch("ResampleMovesKernel");
  space.moves = moves;
  return space;
}

/** The scratch behind the field's part. */
unsigned char *
GetRestOfScratch(const KernelCall & call, const ResampleOperation & operation)
{
  return static_cast<unsigned char *>(call.scratch) + FieldScratch(operation, call.output.box.Extents()).bytes;
}

template <typename TIn, typename TOut>
void
LaunchNearest(const KernelCall & call, const ResampleOperation & operation, TOut value)
{
  const ResampleSpace space = MakeSpace(call, operation, call.inputs[0]);
  ResampleNearestKernel<TIn, TOut><<<BlocksFor(space.CountRows(), RowsOfBlock), ThreadsOfRows(), 0, StreamOf(call)>>>(
    ResampleGrid(operation),
    space,
    static_cast<const TIn *>(call.inputs[0].data),
    static_cast<TOut *>(call.output.data),
    value);
  CheckLaunch("ResampleNearestKernel");
}

void
RunNearest(const KernelCall & call)
{
  const ResampleOperation & operation = OperationOf(*call.operation);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const auto value = operation.value.As<Pixel>();
    if (call.inputs[0].kind == call.output.kind)
    {
      // NaNs keep their bits.
      DispatchSize(call.output.kind, [&](auto bits) {
        std::memcpy(&bits, &value, std::min(sizeof(bits), sizeof(value)));
        LaunchNearest<decltype(bits), decltype(bits)>(call, operation, bits);
      });
    }
    else if (call.output.kind == PixelType::Float32)
    {
      LaunchNearest<Pixel, float>(call, operation, static_cast<float>(value));
    }
    else
    {
      LaunchNearest<Pixel, double>(call, operation, static_cast<double>(value));
    }
  });
}

/** Voxel by voxel, for any number of taps. VWide: their weights lie in scratch. */
template <typename TReal, bool VWide>
__global__ void
ResampleVoxelKernel(ResampleGrid grid, ResampleSpace space, ResampleSource<TReal> source, void * out, PixelType outKind,
                    TReal * scratch)
{
  TReal                  held[VWide ? 1 : ResampleAxes * HeldTaps];
  TReal * const          own = VWide ? scratch + NumberOfThread() : held;
  constexpr std::int64_t step = VWide ? WideThreads : 1;
  const std::int64_t     begin[ResampleAxes] = { 0, grid.axes[0].taps, grid.axes[0].taps + grid.axes[1].taps };
  ForEachVoxelOfThread(space, [&](const Coordinates & voxel, std::int64_t from, std::int64_t to) {
    const ResamplePoint points(grid, space, voxel);
    std::int64_t        first[ResampleAxes];
    bool                hasValue = false;
    for (int i = 0; i < ResampleAxes; ++i)
    {
      const double point = points.at[i];
      hasValue = hasValue || grid.edges[i].HasValue(point);
      first[i] = FillTaps(grid.axes[i], grid.edges[i], point, own + begin[i] * step, step);
    }
    TReal result = source.value;
    if (!hasValue)
    {
      bool isInside = true;
      for (int i = 0; i < ResampleAxes; ++i)
      {
        isInside = isInside && first[i] >= space.inLower[i] && first[i] + grid.axes[i].taps <= space.inUpper[i];
      }
      const auto valueAt = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
        std::int64_t at[ResampleAxes] = { first[0] + x, first[1] + y, first[2] + z };
        return isInside ? LoadAs<TReal, false>(source.data, source.kind, from + space.OffsetOf(at))
                        : source.template LoadBeyond<false>(grid, space, at, from);
      };
      const auto sumUp = [&](int i, auto && value) {
        const TReal * const weights = own + begin[i] * step;
        return SumOfTaps<TReal>(
          grid.axes[i].taps, grid.axes[i].below, [&](std::int64_t k) { return weights[k * step]; }, value);
      };
      result = sumUp(2, [&](std::int64_t z) {
        return sumUp(1, [&](std::int64_t y) { return sumUp(0, [&](std::int64_t x) { return valueAt(x, y, z); }); });
      });
    }
    StoreAs<TReal, false>(out, outKind, to, result);
  });
}

/** The value with most of the weights. Without scratch there are at most two taps along each axis. */
template <typename TPixel, bool VWide>
__global__ void
ResampleMajorityKernel(ResampleGrid grid, ResampleSpace  space, const TPixel * __restrict__ in,
                       TPixel * __restrict__ out, TPixel beyond, unsigned char * scratch)
{
  constexpr std::int64_t step = VWide ? WideThreads : 1;
  const std::int64_t     begin[ResampleAxes] = { 0, grid.axes[0].taps, grid.axes[0].taps + grid.axes[1].taps };
  const std::int64_t     taps = begin[2] + grid.axes[2].taps;
  const std::int64_t     all = grid.axes[0].taps * grid.axes[1].taps * grid.axes[2].taps;
  double                 heldWeights[VWide ? 1 : 6];
  double                 heldSums[VWide ? 1 : 8];
  TPixel                 heldLabels[VWide ? 1 : 8];
  double * const         numbers = reinterpret_cast<double *>(scratch) + NumberOfThread();
  double * const         weights = VWide ? numbers : heldWeights;
  double * const         sums = VWide ? numbers + taps * step : heldSums;
  TPixel * const         labels =
    VWide ? reinterpret_cast<TPixel *>(reinterpret_cast<double *>(scratch) + (taps + all) * step) + NumberOfThread()
                  : heldLabels;
  ForEachVoxelOfThread(space, [&](const Coordinates & voxel, std::int64_t from, std::int64_t to) {
    const ResamplePoint points(grid, space, voxel);
    std::int64_t        first[ResampleAxes];
    bool                hasValue = false;
    for (int i = 0; i < ResampleAxes; ++i)
    {
      const double point = points.at[i];
      hasValue = hasValue || grid.edges[i].HasValue(point);
      first[i] = FillTaps(grid.axes[i], grid.edges[i], point, weights + begin[i] * step, step);
    }
    if (hasValue)
    {
      out[to] = beyond;
      return;
    }
    LabelVote<TPixel> vote(labels, sums, step);
    AddVotes(
      vote,
      grid.axes,
      [&](int i, std::int64_t k) { return MapVoxel(first[i] + k, grid.axes[i].length, grid.outside, false); },
      [&](int i, std::int64_t k) { return weights[(begin[i] + k) * step]; },
      [&](const std::int64_t(&at)[ResampleAxes]) {
        return at[0] >= 0 && at[1] >= 0 && at[2] >= 0 ? in[from + space.OffsetOf(at)] : beyond;
      });
    out[to] = vote.Winner();
  });
}

std::int64_t
CountTaps(const ResampleGrid & grid)
{
  return grid.axes[0].taps + grid.axes[1].taps + grid.axes[2].taps;
}

/** Whether more votes are cast than a thread holds. */
bool
HasWideVotes(const ResampleGrid & grid)
{
  return std::any_of(
    std::begin(grid.axes), std::end(grid.axes), [](const ResampleOperation::Axis & axis) { return axis.taps > 2; });
}

/** Bytes of the votes of all threads. */
std::size_t
VoteBytes(const ResampleGrid & grid)
{
  const std::int64_t all = grid.axes[0].taps * grid.axes[1].taps * grid.axes[2].taps;
  return static_cast<std::size_t>(WideThreads * (CountTaps(grid) + 2 * all)) * sizeof(double);
}

template <bool VWide>
unsigned int
BlocksOfVoxels(const ResampleSpace & space)
{
  return VWide ? static_cast<unsigned int>(WideThreads / (32 * RowsOfBlock))
               : BlocksFor(space.CountRows(), RowsOfBlock);
}

template <bool VWide>
void
RunMajority(const KernelCall & call)
{
  const ResampleOperation & operation = OperationOf(*call.operation);
  const ResampleGrid        grid(operation);
  const ResampleSpace       space = MakeSpace(call, operation, call.inputs[0]);
  DispatchPixelType(call.output.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    ResampleMajorityKernel<Pixel, VWide><<<BlocksOfVoxels<VWide>(space), ThreadsOfRows(), 0, StreamOf(call)>>>(
      grid,
      space,
      static_cast<const Pixel *>(call.inputs[0].data),
      static_cast<Pixel *>(call.output.data),
      operation.value.As<Pixel>(),
      GetRestOfScratch(call, operation));
    CheckLaunch("ResampleMajorityKernel");
  });
}

/** The extents along all axes, of which the first ones of the operation are those of the output: what a pass along axis
 * `done - 1` leaves. */
Coordinates
ExtentAfter(const ResampleOperation & operation, Coordinates input, const Coordinates & output, int done)
{
  for (int i = 0; i < done; ++i)
  {
    input[operation.axes[i]] = output[operation.axes[i]];
  }
  return input;
}

/** How a chunk is interpolated. */
enum class ResampleWay
{
  Tiles,     ///< tiles whose input lies in shared memory
  Passes,    ///< a pass along each axis
  Voxels,    ///< each voxel for itself
  WideVoxels ///< the same, with weights in scratch
};

struct ResamplePlan
{
  /** Bytes of the tables of passes, which have entries for each voxel of an axis: longer axes go without them. */
  static constexpr std::size_t MostTableBytes = std::size_t{ 256 } << 20;

  ResamplePlan(const ResampleOperation & theOperation, std::size_t pixelBytes)
    : grid(theOperation)
    , tile(theOperation, grid, pixelBytes)
    , way(tile.Fits()                                                                        ? ResampleWay::Tiles
          : theOperation.IsDiagonal() && GetTableBytes(theOperation, grid) <= MostTableBytes ? ResampleWay::Passes
          : grid.GetMostTaps() > HeldTaps                                                    ? ResampleWay::WideVoxels
                                                                                             : ResampleWay::Voxels)
  {}

  /** The bytes of the tables of passes in doubles, or the largest number if they are more than MostTableBytes by far.
   */
  static std::size_t
  GetTableBytes(const ResampleOperation & operation, const ResampleGrid & grid)
  {
    std::size_t bytes = 0;
    for (int i = 0; i < ResampleAxes; ++i)
    {
      const auto n = static_cast<std::size_t>(operation.output[operation.axes[i]]);
      if (static_cast<double>(n) * static_cast<double>(grid.axes[i].taps) > static_cast<double>(MostTableBytes))
      {
        return std::numeric_limits<std::size_t>::max();
      }
      bytes += RoundUp(n * static_cast<std::size_t>(grid.axes[i].taps) * sizeof(double)) +
               RoundUp(n * sizeof(std::int64_t)) + RoundUp(n);
    }
    return bytes;
  }

  ResampleGrid grid;
  ResampleTile tile;
  ResampleWay  way;
};

template <typename TReal>
std::size_t
BytesOf(const Coordinates & extent)
{
  return RoundUp(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()) * sizeof(TReal));
}

/** Scratch: the coefficients, two images of which the second one is used in between; then what the interpolation takes.
 */
template <typename TReal>
struct ResampleScratch
{
  ResampleScratch(const ResampleOperation & operation, const ResamplePlan & plan, const Coordinates & output)
  {
    const Coordinates input = operation.GetMostInput(output, operation.image);
    coefficients = plan.grid.isFiltered ? BytesOf<TReal>(input) : 0;
    if (plan.way == ResampleWay::Passes)
    {
      first = BytesOf<TReal>(ExtentAfter(operation, input, output, 1));
      second = BytesOf<TReal>(ExtentAfter(operation, input, output, 2));
    }
    else if (plan.way == ResampleWay::WideVoxels)
    {
      first = static_cast<std::size_t>(WideThreads * CountTaps(plan.grid)) * sizeof(TReal);
    }
    bytes = coefficients + std::max(coefficients, first + second);
  }

  std::size_t coefficients{ 0 };
  std::size_t first{ 0 };
  std::size_t second{ 0 };
  std::size_t bytes{ 0 };
};

/** Makes coefficients of the input in `to`, by way of `between`. Both are used in turn. */
template <typename TReal>
BufferView
MakeCoefficients(const KernelCall & call, const ResampleOperation & operation, const ResampleGrid & grid, TReal * to,
                 TReal * between)
{
  const BufferView & input = call.inputs[0];
  BufferView         from = input;
  int                passes = 0;
  for (const ResampleOperation::Axis & axis : grid.axes)
  {
    passes += axis.isFiltered ? 1 : 0;
  }
  const SplineSums<TReal> sums;
  for (int i = 0; i < ResampleAxes; ++i)
  {
    if (!grid.axes[i].isFiltered)
    {
      continue;
    }
    TReal * const       result = passes % 2 ? to : between;
    const ResampleLines lines(operation, grid, i, input.box);
    LaunchFilter(call, from, result, lines, sums);
    from = DenseView(result, PixelTypeOf<TReal>(), input.box);
    --passes;
  }
  return from;
}

/** The taps of the voxels of the output along an axis. */
template <typename TReal>
struct ResampleTable
{
  const std::int64_t *  first{ nullptr };
  const TReal *         weights{ nullptr };  ///< `taps` of each voxel
  const unsigned char * hasValue{ nullptr }; ///< whether a voxel has the value from beyond
  std::int64_t          taps{ 0 };
};

/** Which voxels of a dense output have the value from beyond. */
struct ResampleBeyond
{
  __device__ bool
  HasValue(std::int64_t offset) const
  {
    bool hasValue = false;
    for (int i = 0; i < ResampleAxes && isThere; ++i)
    {
      hasValue = hasValue || of[i][Quotient(offset, stride[i]) % extent[i]];
    }
    return hasValue;
  }

  bool                  isThere{ false };
  const unsigned char * of[ResampleAxes]{};
  std::int64_t          stride[ResampleAxes]{};
  std::int64_t          extent[ResampleAxes]{};
};

template <typename TReal>
ResampleTable<TReal>
GetResampleTable(const KernelCall & call, const ResampleOperation & operation, const ResampleGrid & grid, int i)
{
  const std::string  key = operation.GetKey() + " taps " + std::to_string(i) + (sizeof(TReal) == 4 ? " f32" : " f64");
  const std::int64_t n = operation.output[operation.axes[i]];
  const auto         pointOf = [&](std::int64_t voxel) {
    Coordinates at{};
    at[i] = voxel;
    return PointOf(grid, i, at);
  };
  ResampleTable<TReal> table;
  table.taps = grid.axes[i].taps;
  table.weights = GetTable<TReal>(call, key + " weights", [&] {
    std::vector<TReal> weights(static_cast<std::size_t>(n * table.taps));
    for (std::int64_t voxel = 0; voxel < n; ++voxel)
    {
      (void)FillTaps(grid.axes[i], grid.edges[i], pointOf(voxel), weights.data() + voxel * table.taps, 1);
    }
    return weights;
  });
  table.first = GetTable<std::int64_t>(call, key + " first", [&] {
    std::vector<std::int64_t> first;
    for (std::int64_t voxel = 0; voxel < n; ++voxel)
    {
      first.push_back(FirstTap(grid.axes[i], grid.edges[i].Move(pointOf(voxel))));
    }
    return first;
  });
  table.hasValue = GetTable<unsigned char>(call, key + " beyond", [&] {
    std::vector<unsigned char> hasValue;
    for (std::int64_t voxel = 0; voxel < n; ++voxel)
    {
      hasValue.push_back(grid.edges[i].HasValue(pointOf(voxel)) ? 1 : 0);
    }
    return hasValue;
  });
  return table;
}

/** A pass along an axis: lines of `results` from lines of the input. The table begins at their first voxel. */
template <typename TReal>
__global__ void
ResamplePassKernel(const void * __restrict__ in, PixelType inKind, ResampleLines lines, void * __restrict__ out,
                   PixelType outKind, ResampleLines results, ResampleTable<TReal> table, std::int64_t below,
                   TReal value, ResampleBeyond beyond)
{
  for (std::int64_t row = FirstRow(); row < results.CountRows(); row += RowStep())
  {
    for (std::int64_t x = threadIdx.x; x < results.CountOfRow(); x += blockDim.x)
    {
      const ResampleLines::Place place = results.Find(row, x);
      const std::int64_t         from = lines.BeginOf(place);
      const std::int64_t         to = results.BeginOf(place) + place.k * results.inner;
      const std::int64_t         first = table.first[place.k] - lines.lower;
      const TReal * const        weights = table.weights + place.k * table.taps;
      const TReal                sum = SumOfTaps<TReal>(
        table.taps,
        below,
        [&](std::int64_t tap) { return weights[tap]; },
        [&](std::int64_t tap) {
          const std::int64_t at = lines.Map(first + tap);
          return at < 0 ? value : LoadAs<TReal, false>(in, inKind, from + at * lines.inner);
        });
      StoreAs<TReal, false>(out, outKind, to, beyond.HasValue(to) ? value : sum);
    }
  }
}

template <typename TReal>
void
RunPasses(const KernelCall & call, const ResampleOperation & operation, const ResampleGrid & grid, BufferView from,
          TReal * const (&between)[2])
{
  const bool     hasValue = grid.outside == ResampleOutside::Value || grid.outside == ResampleOutside::Constant;
  ResampleBeyond beyond;
  for (int i = 0; i < ResampleAxes; ++i)
  {
    const int a = operation.axes[i];
    Box       box = from.box;
    box.lower[a] = call.output.box.lower[a];
    box.upper[a] = call.output.box.upper[a];
    ResampleTable<TReal> table = GetResampleTable<TReal>(call, operation, grid, i);
    table.first += box.lower[a];
    table.weights += box.lower[a] * table.taps;
    beyond.of[i] = table.hasValue + box.lower[a];
    beyond.stride[i] = call.output.stride[a];
    beyond.extent[i] = box.Extent(a);
    beyond.isThere = i + 1 == ResampleAxes && hasValue;
    const BufferView    to = i + 1 == ResampleAxes ? call.output : DenseView(between[i], PixelTypeOf<TReal>(), box);
    const ResampleLines lines(operation, grid, i, from.box);
    const ResampleLines results(operation, grid, i, box);
    ResamplePassKernel<TReal>
      <<<BlocksFor(results.CountRows(), RowsOfBlock), ThreadsOfRows(), 0, StreamOf(call)>>>(from.data,
                                                                                            from.kind,
                                                                                            lines,
                                                                                            to.data,
                                                                                            to.kind,
                                                                                            results,
                                                                                            table,
                                                                                            grid.axes[i].below,
                                                                                            operation.value.As<TReal>(),
                                                                                            beyond);
    CheckLaunch("ResamplePassKernel");
    from = to;
  }
}

template <ResampleWay VWay, typename TReal>
void
RunInterpolation(const KernelCall & call)
{
  const ResampleOperation &    operation = OperationOf(*call.operation);
  const ResamplePlan           plan(operation, sizeof(TReal));
  const ResampleScratch<TReal> sizes(operation, plan, call.output.box.Extents());
  auto * const                 scratch = GetRestOfScratch(call, operation);
  auto * const                 coefficients = reinterpret_cast<TReal *>(scratch);
  auto * const                 rest = scratch + sizes.coefficients;
  const BufferView             from =
    plan.grid.isFiltered ? MakeCoefficients(call, operation, plan.grid, coefficients, reinterpret_cast<TReal *>(rest))
                                     : call.inputs[0];
  if constexpr (VWay == ResampleWay::Passes)
  {
    RunPasses<TReal>(call,
                     operation,
                     plan.grid,
                     from,
                     { reinterpret_cast<TReal *>(rest), reinterpret_cast<TReal *>(rest + sizes.first) });
  }
  else
  {
    const ResampleSpace         space = MakeSpace(call, operation, from);
    const ResampleSource<TReal> source{ from.data, from.kind, operation.value.As<TReal>() };
    if constexpr (VWay == ResampleWay::Tiles)
    {
      LaunchTiles(call, plan.grid, space, source, plan.tile);
    }
    else
    {
      constexpr bool isWide = VWay == ResampleWay::WideVoxels;
      ResampleVoxelKernel<TReal, isWide><<<BlocksOfVoxels<isWide>(space), ThreadsOfRows(), 0, StreamOf(call)>>>(
        plan.grid, space, source, call.output.data, call.output.kind, reinterpret_cast<TReal *>(rest));
      CheckLaunch("ResampleVoxelKernel");
    }
  }
}

template <typename TReal>
KernelChoice
ChooseInterpolation(const ResampleOperation & operation, const ChunkShape & shape)
{
  const ResamplePlan plan(operation, sizeof(TReal));
  const Coordinates  output = shape.outputBox.Extents();
  const std::size_t  scratch =
    FieldScratch(operation, output).bytes + ResampleScratch<TReal>(operation, plan, output).bytes;
  switch (plan.way)
  {
    case ResampleWay::Tiles:
      return { "tiles", RunInterpolation<ResampleWay::Tiles, TReal>, scratch };
    case ResampleWay::Passes:
      return { "passes", RunInterpolation<ResampleWay::Passes, TReal>, scratch };
    case ResampleWay::Voxels:
      return { "voxels", RunInterpolation<ResampleWay::Voxels, TReal>, scratch };
    default:
      return { "wide voxels", RunInterpolation<ResampleWay::WideVoxels, TReal>, scratch };
  }
}

KernelChoice
ChooseResample(const Operation & anyOperation, const ChunkShape & shape)
{
  const ResampleOperation & operation = OperationOf(anyOperation);
  const std::size_t         ofField = FieldScratch(operation, shape.outputBox.Extents()).bytes;
  if (operation.IsOnVoxels())
  {
    return { "nearest", RunNearest, ofField };
  }
  if (operation.interpolation == Interpolation::Label)
  {
    const ResampleGrid grid(operation);
    return HasWideVotes(grid) ? KernelChoice{ "wide votes", RunMajority<true>, ofField + VoteBytes(grid) }
                              : KernelChoice{ "votes", RunMajority<false>, ofField };
  }
  return ResampleOperation::UsesDoubles(shape.inputKinds[0], shape.outputKind)
           ? ChooseInterpolation<double>(operation, shape)
           : ChooseInterpolation<float>(operation, shape);
}

/** Tables of passes; for doubles, as the shape does not say the output's kind. */
std::size_t
TableBytes(const Operation & theOperation, const ChunkShape &)
{
  const ResampleOperation & operation = OperationOf(theOperation);
  const ResamplePlan        plan(operation, sizeof(double));
  const bool                isInterpolated = !operation.IsOnVoxels() && operation.interpolation != Interpolation::Label;
  return isInterpolated && plan.way == ResampleWay::Passes ? ResamplePlan::GetTableBytes(operation, plan.grid) : 0;
}

} // namespace

void
RegisterCudaResample(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.compute = MakeChoosingKernel<ChooseResample>(false);
  kernels.tableBytes = TableBytes;
  registry.Register("resample", kernels);
}

} // namespace chunkwise
