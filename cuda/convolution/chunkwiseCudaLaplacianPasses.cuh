/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaLaplacianPasses_cuh
#define chunkwiseCudaLaplacianPasses_cuh

#include "chunkwiseCudaPlanes.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseLaplacianOperation.h"

// The passes of the Laplacian carry two accumulators, S and L: see LaplacianOperation. Those along x and y are one
// kernel, those along other axes keep the window in a ring, so that each array is read and written once a kernel.
namespace chunkwise
{

/** The weights of a pass: `rows` rows of g, then of h. */
template <typename TAcc>
struct WeightTables
{
  const TAcc * g;
  const TAcc * h;
  std::int64_t rows;
  std::int64_t extent; ///< of the image along the axis
  std::int64_t radius;

  __device__ std::int64_t
             Row(std::int64_t i) const
  {
    return WeightRow(i, extent, radius, rows) * (2 * radius + 1);
  }
  /** Whether windows that lie inside the image have a row in common, and where it begins. */
  __device__ bool
  HasMiddle() const
  {
    return rows != extent || rows == 1;
  }
  __device__ std::int64_t
             Middle() const
  {
    return rows > 1 ? radius * (2 * radius + 1) : 0;
  }
};

/** A position and its sums. */
template <bool VFirst, typename TAcc>
struct LaplacianSums
{
  TAcc s{ 0 };
  TAcc l{ 0 };

  __device__ void
  Add(TAcc g, TAcc h, TAcc smooth, TAcc laplacian, TAcc center)
  {
    s = MultiplyAdd(g, smooth, s);
    if constexpr (!VFirst)
    {
      l = MultiplyAdd(g, laplacian, l);
    }
    l = MultiplyAdd(h, smooth - center, l);
  }
};

/** One output of a pass. */
template <bool VFirst, typename TIn, typename TAcc>
__device__ LaplacianSums<VFirst, TAcc>
SumTaps(const WeightTables<TAcc> & weights, const TIn * smooth, std::int64_t smoothStep, const TAcc * laplacian,
        std::int64_t laplacianStep, std::int64_t i, std::int64_t lower, std::int64_t upper)
{
  // smooth and laplacian are at position i.
  LaplacianSums<VFirst, TAcc> sums;
  const std::int64_t          row = weights.Row(i) + weights.radius;
  const TAcc                  center = static_cast<TAcc>(*smooth);
  const std::int64_t          first = lower > i - weights.radius ? lower - i : -weights.radius;
  const std::int64_t          last = upper - 1 < i + weights.radius ? upper - 1 - i : weights.radius;
#pragma unroll 4
  for (std::int64_t t = first; t <= last; ++t)
  {
    sums.Add(weights.g[row + t],
             weights.h[row + t],
             static_cast<TAcc>(smooth[t * smoothStep]),
             VFirst ? TAcc(0) : laplacian[t * laplacianStep],
             center);
  }
  return sums;
}

/** Taps of AccumulateLaplacian after the whole blocks: VRest of all outputs, and the taps that only later outputs
 * have. */
template <bool VFirst, int VRest, typename TAcc, typename TFetch>
__device__ __forceinline__ void
AccumulateLastLaplacian(LaplacianSums<VFirst, TAcc> (&sums)[Together], const TAcc (&centers)[Together],
                        TAcc (&weightG)[Together], TAcc (&weightH)[Together], const TAcc * g, const TAcc * h, int block,
                        TFetch && fetch)
{
#pragma unroll
  for (int s = 0; s < VRest + Together - 1; ++s)
  {
    if (s < VRest)
    {
      weightG[s] = g[block * Together + s];
      weightH[s] = h[block * Together + s];
    }
    TAcc smooth;
    TAcc laplacian;
    fetch(block + s / Together, s % Together, smooth, laplacian);
#pragma unroll
    for (int u = 0; u < Together; ++u)
    {
      if (s - u < VRest && (s >= u || block > 0))
      {
        sums[u].Add(weightG[(s - u + Together) % Together],
                    weightH[(s - u + Together) % Together],
                    smooth,
                    laplacian,
                    centers[u]);
      }
    }
  }
}

/** Together outputs of which all windows lie inside and have the same weights. The first window begins with the tap
 * fetch(0, 0, S, L); tap Together b + s is fetch(b, s, S, L). Each tap is fetched once, and weights move through the
 * registers from output to output. */
template <bool VFirst, typename TAcc, typename TFetch>
__device__ __forceinline__ void
AccumulateLaplacian(LaplacianSums<VFirst, TAcc> (&sums)[Together], const TAcc (&centers)[Together], const TAcc * g,
                    const TAcc * h, int taps, TFetch && fetch)
{
  TAcc weightG[Together];
  TAcc weightH[Together];
#pragma unroll
  for (int u = 0; u < Together; ++u)
  {
    sums[u] = LaplacianSums<VFirst, TAcc>();
    weightG[u] = weightH[u] = TAcc(0);
  }
  const int blocks = taps / Together;
  if (blocks > 0)
  {
#pragma unroll
    for (int s = 0; s < Together; ++s)
    {
      weightG[s] = g[s];
      weightH[s] = h[s];
      TAcc smooth;
      TAcc laplacian;
      fetch(0, s, smooth, laplacian);
#pragma unroll
      for (int u = 0; u <= s; ++u)
      {
        sums[u].Add(weightG[s - u], weightH[s - u], smooth, laplacian, centers[u]);
      }
    }
  }
#pragma unroll 1
  for (int block = 1; block < blocks; ++block)
  {
#pragma unroll
    for (int s = 0; s < Together; ++s)
    {
      weightG[s] = g[block * Together + s];
      weightH[s] = h[block * Together + s];
      TAcc smooth;
      TAcc laplacian;
      fetch(block, s, smooth, laplacian);
#pragma unroll
      for (int u = 0; u < Together; ++u)
      {
        sums[u].Add(weightG[(s - u + Together) % Together],
                    weightH[(s - u + Together) % Together],
                    smooth,
                    laplacian,
                    centers[u]);
      }
    }
  }
  switch (taps - blocks * Together)
  {
    case 1:
      return AccumulateLastLaplacian<VFirst, 1>(sums, centers, weightG, weightH, g, h, blocks, fetch);
    case 3:
      return AccumulateLastLaplacian<VFirst, 3>(sums, centers, weightG, weightH, g, h, blocks, fetch);
    case 5:
      return AccumulateLastLaplacian<VFirst, 5>(sums, centers, weightG, weightH, g, h, blocks, fetch);
    default:
      return AccumulateLastLaplacian<VFirst, 7>(sums, centers, weightG, weightH, g, h, blocks, fetch);
  }
}

/** The shared memory of a block of LaplacianPlaneKernel, in accumulators. */
struct LaplacianPlaneLayout
{
  bool        fits{ false };
  int         stagedWidth{ 0 };
  int         stagedStride{ 0 };
  int         slots{ 0 }; ///< rows of a ring in units of Together
  std::size_t bytes{ 0 };

  static LaplacianPlaneLayout
  Make(std::int64_t radiusX, std::int64_t radiusY, std::size_t accumulatorBytes)
  {
    LaplacianPlaneLayout layout;
    // Far more than shared memory holds; what follows cannot overflow.
    if (radiusX > 65536 || radiusY > 65536)
    {
      return layout;
    }
    const auto kx = static_cast<int>(2 * radiusX + 1);
    const auto ky = static_cast<int>(2 * radiusY + 1);
    layout.stagedWidth = StripWidth + kx - 1;
    // A gap after every Together values; the lanes of the rows of a warp are on different banks too.
    layout.stagedStride = (layout.stagedWidth + Together) / Together * (Together + 1) + Together;
    while (layout.stagedStride % 32 != StripWidth / Together * (Together + 1) % 32)
    {
      ++layout.stagedStride;
    }
    layout.slots = (ky - 1 + Together - 1) / Together + 1;
    layout.bytes = (static_cast<std::size_t>(2 * (kx + ky)) + static_cast<std::size_t>(layout.stagedStride) * Together +
                    static_cast<std::size_t>(2 * layout.slots * Together) * StripWidth) *
                   accumulatorBytes;
    layout.fits = layout.bytes <= LargestSharedMemory;
    return layout;
  }
};

/** One strip of a plane in LaplacianPlaneKernel, as PlaneStrip. */
template <typename TIn, typename TAcc>
class LaplacianStrip
{
public:
  __device__
  LaplacianStrip(const WeightTables<TAcc> & xTables, const WeightTables<TAcc> & yTables,
                 const Voxels<const TIn> & input, const Box & output, const LaplacianPlaneLayout & l, TAcc * shared)
    : x(xTables)
    , y(yTables)
    , in(input)
    , after(output)
    , layout(l)
    , thread(static_cast<int>(threadIdx.x))
    , tapsX(static_cast<int>(2 * xTables.radius + 1))
    , tapsY(static_cast<int>(2 * yTables.radius + 1))
    , weightsX(shared)
    , weightsY(weightsX + 2 * tapsX)
    , staged(weightsY + 2 * tapsY)
    , smooths(staged + l.stagedStride * Together)
    , laplacians(smooths + l.slots * (Together * StripWidth))
  {}

  __device__ void
  LoadWeightsToShared() const
  {
    for (int t = thread; t < tapsX && x.HasMiddle(); t += StripWidth)
    {
      weightsX[t] = x.g[x.Middle() + t];
      weightsX[tapsX + t] = x.h[x.Middle() + t];
    }
    for (int t = thread; t < tapsY && y.HasMiddle(); t += StripWidth)
    {
      weightsY[t] = y.g[y.Middle() + t];
      weightsY[tapsY + t] = y.h[y.Middle() + t];
    }
  }

  /** `plane` is that of the input, toSmooth and toLaplacian those of the output. */
  __device__ void
  Run(const TIn * __restrict__ plane, TAcc * __restrict__ toSmooth, TAcc * __restrict__ toLaplacian, int column,
      int begin, int end) const
  {
    const auto width = static_cast<int>(after.Extent(0));
    const int  outputs = width - column < StripWidth ? width - column : StripWidth;
    const bool stores = thread < outputs;
    const int  firstColumn = static_cast<int>(after.lower.axis[0] - in.box.lower.axis[0] - x.radius) + column;
    const int  firstRow = static_cast<int>(after.lower.axis[1] - in.box.lower.axis[1] - y.radius) + begin;
    const int  chunks = (end - begin + Together - 1) / Together + layout.slots - 1;
    int        slot = 0;
    for (int chunk = 0; chunk < chunks; ++chunk)
    {
      Stage(plane, firstColumn, firstRow + chunk * Together, outputs);
      __syncthreads();
      SumRows(slot);
      SumCutRows(slot, column, outputs);
      __syncthreads();
      slot = slot + 1 == layout.slots ? 0 : slot + 1;
      if (chunk >= layout.slots - 1 && stores)
      {
        const int          o = (chunk - (layout.slots - 1)) * Together;
        const std::int64_t offset = static_cast<std::int64_t>(begin + o) * width + column + thread;
        SumColumn(toSmooth + offset, toLaplacian + offset, width, slot, begin + o, end - begin - o);
      }
    }
  }

private:
  __device__ static int
  StagedColumn(int i)
  {
    return i + i / Together;
  }

  /** Reads Together rows; missing rows are 0 and reach no result. */
  __device__ void
  Stage(const TIn * __restrict__ plane, int firstColumn, int row, int outputs) const
  {
    const auto width = static_cast<int>(in.box.Extent(0));
    const auto height = static_cast<int>(in.box.Extent(1));
    const auto rowStride = in.stride.axis[1];
    const int  useful = outputs + tapsX - 1;
    const bool whole = row >= 0 && row + Together <= height;
    for (int i = thread; i < layout.stagedWidth; i += StripWidth)
    {
      const int         at = firstColumn + i;
      const bool        there = i < useful && at >= 0 && at < width;
      TAcc *            to = staged + StagedColumn(i);
      const TIn * const from = plane + row * rowStride + at;
      TAcc              values[Together];
#pragma unroll
      for (int s = 0; s < Together; ++s)
      {
        values[s] =
          there && (whole || (row + s >= 0 && row + s < height)) ? static_cast<TAcc>(from[s * rowStride]) : TAcc(0);
      }
#pragma unroll
      for (int s = 0; s < Together; ++s)
      {
        to[s * layout.stagedStride] = values[s];
      }
    }
  }

  /** Along x, a thread Together outputs of a row, as if all windows were inside. */
  __device__ __forceinline__ void
  SumRows(int slot) const
  {
    constexpr int             perRow = StripWidth / Together;
    const int                 row = thread / perRow;
    const int                 lane = thread % perRow;
    const TAcc * const        own = staged + row * layout.stagedStride + lane * (Together + 1);
    const int                 radius = tapsX / 2;
    LaplacianSums<true, TAcc> sums[Together];
    TAcc                      centers[Together];
#pragma unroll
    for (int u = 0; u < Together; ++u)
    {
      centers[u] = own[StagedColumn(radius + u)];
    }
    AccumulateLaplacian(sums, centers, weightsX, weightsX + tapsX, tapsX, [&](int block, int s, TAcc & value, TAcc &) {
      value = own[block * (Together + 1) + s];
    });
    const int to = (slot * Together + row) * StripWidth;
#pragma unroll
    for (int u = 0; u < Together; ++u)
    {
      smooths[to + RingColumn(lane * Together + u)] = sums[u].s;
      laplacians[to + RingColumn(lane * Together + u)] = sums[u].l;
    }
  }

  /** Again for the windows that the image's edge cuts, which have separate weights; a thread one output. */
  __device__ void
  SumCutRows(int slot, int column, int outputs) const
  {
    const std::int64_t first = after.lower.axis[0] + column;
    const auto limit = [outputs](std::int64_t n) { return static_cast<int>(n < 0 ? 0 : n < outputs ? n : outputs); };
    int        left = limit(in.box.lower.axis[0] + x.radius - first);
    const int  right = limit(in.box.upper.axis[0] - x.radius - first);
    if (!x.HasMiddle() || right < left)
    {
      left = outputs;
    }
    const int cut = left + (left == outputs ? 0 : outputs - right);
    if (cut == 0)
    {
      return;
    }
    // The results that are overwritten below must be complete.
    __syncthreads();
    for (int work = thread; work < cut * Together; work += StripWidth)
    {
      const int          row = work / cut;
      const int          c = work - row * cut;
      const int          output = c < left ? c : right + (c - left);
      const std::int64_t i = first + output;
      const auto         weights = x.Row(i);
      const TAcc * const line = staged + row * layout.stagedStride;
      const TAcc         center = line[StagedColumn(output + tapsX / 2)];
      const auto         begin = static_cast<int>(max(std::int64_t{ 0 }, in.box.lower.axis[0] - (i - x.radius)));
      const auto         end = static_cast<int>(min(std::int64_t{ tapsX }, in.box.upper.axis[0] - (i - x.radius)));
      LaplacianSums<true, TAcc> sums;
#pragma unroll 4
      for (int t = begin; t < end; ++t)
      {
        sums.Add(x.g[weights + t], x.h[weights + t], line[StagedColumn(output + t)], TAcc(0), center);
      }
      const int to = (slot * Together + row) * StripWidth + RingColumn(output);
      smooths[to] = sums.s;
      laplacians[to] = sums.l;
    }
  }

  /** Along y, a thread Together outputs of its column from output row `o` on, of which `count` are there; the oldest
   * rows are in `slot`. */
  __device__ __forceinline__ void
  SumColumn(TAcc * toSmooth, TAcc * toLaplacian, int width, int slot, int o, int count) const
  {
    const int          own = RingColumn(thread);
    const std::int64_t first = after.lower.axis[1] + o;
    const int          radius = tapsY / 2;
    const auto         at = [&](int block) {
      return (slot + block < layout.slots ? slot + block : slot + block - layout.slots) * (Together * StripWidth) + own;
    };
    LaplacianSums<false, TAcc> sums[Together];
    if (y.HasMiddle() && first - radius >= in.box.lower.axis[1] && first + Together - 1 + radius < in.box.upper.axis[1])
    {
      TAcc centers[Together];
#pragma unroll
      for (int u = 0; u < Together; ++u)
      {
        centers[u] = smooths[at((radius + u) / Together) + (radius + u) % Together * StripWidth];
      }
      AccumulateLaplacian(
        sums, centers, weightsY, weightsY + tapsY, tapsY, [&](int block, int s, TAcc & smooth, TAcc & laplacian) {
          smooth = smooths[at(block) + s * StripWidth];
          laplacian = laplacians[at(block) + s * StripWidth];
        });
    }
    else
    {
#pragma unroll 1
      for (int u = 0; u < Together && u < count; ++u)
      {
        const LaplacianSums<false, TAcc> cut = SumCutColumn(at, first + u, u);
        toSmooth[static_cast<std::int64_t>(u) * width] = cut.s;
        toLaplacian[static_cast<std::int64_t>(u) * width] = cut.l;
      }
      return;
    }
#pragma unroll
    for (int u = 0; u < Together; ++u)
    {
      if (u < count)
      {
        *toSmooth = sums[u].s;
        *toLaplacian = sums[u].l;
      }
      toSmooth += width;
      toLaplacian += width;
    }
  }

  /** The output at image index `i`, whose window begins `row` rows after the oldest. */
  template <typename TAt>
  __device__ LaplacianSums<false, TAcc>
             SumCutColumn(const TAt & at, std::int64_t i, int row) const
  {
    LaplacianSums<false, TAcc> sums;
    const auto                 weights = y.Row(i);
    const auto                 begin = static_cast<int>(max(std::int64_t{ 0 }, in.box.lower.axis[1] - (i - y.radius)));
    const auto end = static_cast<int>(min(std::int64_t{ tapsY }, in.box.upper.axis[1] - (i - y.radius)));
    const int  middle = row + tapsY / 2;
    const TAcc center = smooths[at(middle / Together) + middle % Together * StripWidth];
#pragma unroll 4
    for (int t = begin; t < end; ++t)
    {
      const int from = at((row + t) / Together) + (row + t) % Together * StripWidth;
      sums.Add(y.g[weights + t], y.h[weights + t], smooths[from], laplacians[from], center);
    }
    return sums;
  }

  const WeightTables<TAcc> &   x;
  const WeightTables<TAcc> &   y;
  const Voxels<const TIn> &    in;
  const Box &                  after;
  const LaplacianPlaneLayout & layout;
  const int                    thread;
  const int                    tapsX;
  const int                    tapsY;
  TAcc * const                 weightsX; ///< of g, then of h
  TAcc * const                 weightsY;
  TAcc * const                 staged;
  TAcc * const                 smooths;
  TAcc * const                 laplacians;
};

/** The passes along x and y: voxels of `in` to S and L of `after`. */
template <typename TIn, typename TAcc>
__global__ void
__launch_bounds__(StripWidth, sizeof(TAcc) == 4 ? 6 : 3)
  LaplacianPlaneKernel(const __grid_constant__ WeightTables<TAcc> x, const __grid_constant__ WeightTables<TAcc> y,
                       const __grid_constant__ Voxels<const TIn> in, const __grid_constant__ Box after,
                       TAcc * __restrict__ smooth, TAcc * __restrict__ laplacian,
                       const __grid_constant__ LaplacianPlaneLayout layout, int segment)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const LaplacianStrip<TIn, TAcc>               strip(x, y, in, after, layout, reinterpret_cast<TAcc *>(memory));
  strip.LoadWeightsToShared();
  const std::int64_t plane = after.Extent(0) * after.Extent(1);
  const auto         columns = static_cast<int>((after.Extent(0) + StripWidth - 1) / StripWidth);
  const auto         segments = static_cast<int>((after.Extent(1) + segment - 1) / segment);
  const auto         strips = static_cast<std::int64_t>(columns) * segments;
  const std::int64_t planes = after.Extent(2) * after.Extent(3) * after.Extent(4);
  for (std::int64_t tile = blockIdx.x; tile < strips * planes; tile += gridDim.x)
  {
    const std::int64_t number = tile / strips;
    const auto         rest = tile - number * strips;
    const auto         begin = static_cast<int>(rest / columns) * segment;
    const int          end = begin + segment < after.Extent(1) ? begin + segment : static_cast<int>(after.Extent(1));
    const std::int64_t z = number % after.Extent(2);
    const std::int64_t u = number / after.Extent(2) % after.Extent(3);
    const std::int64_t v = number / after.Extent(2) / after.Extent(3);
    // Later passes have not cut their axes yet: plane 0 of both boxes is the same.
    strip.Run(in.data + z * in.stride.axis[2] + u * in.stride.axis[3] + v * in.stride.axis[4],
              smooth + number * plane,
              laplacian + number * plane,
              static_cast<int>(rest % columns) * StripWidth,
              begin,
              end);
    __syncthreads();
  }
}

/** The lines of a pass along another axis than x, in the dense boxes before and after it. */
template <typename TAcc>
Pass<TAcc>
LinesOf(const WindowBoxes & boxes, int number)
{
  const int   a = boxes.axes[number];
  const Box & before = boxes.Before(number);
  Pass<TAcc>  lines{};
  lines.outer = lines.inner = 1;
  for (int b = 0; b < MaxDimension; ++b)
  {
    (b < a ? lines.inner : lines.outer) *= b == a ? 1 : before.Extent(b);
  }
  lines.inCount = before.Extent(a);
  lines.outCount = boxes.after[number].Extent(a);
  lines.inLower = before.lower[a];
  lines.outLower = boxes.after[number].lower[a];
  return lines;
}

/** Stores what a pass gives: the last one the voxel. */
template <bool VLast, typename TAcc, typename TOut>
struct StoreLaplacian
{
  TAcc * smooth;
  TAcc * laplacian;
  TOut * out;

  __device__ void
  operator()(std::int64_t offset, TAcc s, TAcc l) const
  {
    if constexpr (VLast)
    {
      out[offset] = ConvertResult<TOut>(l);
    }
    else
    {
      smooth[offset] = s;
      laplacian[offset] = l;
    }
  }
};

/** A pass along an axis other than x, as RingColumnKernel. `lines` says where the lines are, and nothing of windows. */
template <bool VLast, typename TAcc, typename TOut>
__global__ void
LaplacianRingKernel(WeightTables<TAcc> tables, Pass<TAcc> lines, const TAcc * __restrict__ smooth,
                    const TAcc * __restrict__ laplacian, StoreLaplacian<VLast, TAcc, TOut> store, std::int64_t segment,
                    int slots)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     threads = static_cast<int>(blockDim.x);
  const int                                     radius = static_cast<int>(tables.radius);
  const int                                     taps = 2 * radius + 1;
  TAcc * const                                  weights = reinterpret_cast<TAcc *>(memory);
  TAcc * const ring = weights + 2 * taps + threadIdx.x / 32 * (slots * 2 * Together * 32) + threadIdx.x % 32;
  for (int t = threadIdx.x; t < taps && tables.HasMiddle(); t += threads)
  {
    weights[t] = tables.g[tables.Middle() + t];
    weights[taps + t] = tables.h[tables.Middle() + t];
  }
  __syncthreads();
  const std::int64_t inner = lines.inner;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * segment;
  const std::int64_t end = begin + segment < lines.outCount ? begin + segment : lines.outCount;
  // Positions of the input, from the first tap of the first output on.
  const std::int64_t first = lines.outLower + begin - radius - lines.inLower;
  const std::int64_t rows = ((end - begin + Together - 1) / Together + slots - 1) * Together;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t q = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; q < lines.outer * inner;
       q += step)
  {
    const std::int64_t outerIndex = q / inner;
    const std::int64_t innerIndex = q - outerIndex * inner;
    const std::int64_t source = outerIndex * lines.inCount * inner + innerIndex;
    std::int64_t       offset = (outerIndex * lines.outCount + begin) * inner + innerIndex;
    TAcc               nextSmooth[Together];
    TAcc               nextLaplacian[Together];
    const auto         load = [&](std::int64_t j) {
#pragma unroll
      for (int s = 0; s < Together; ++s)
      {
        const std::int64_t at = first + j + s;
        const bool         there = at >= 0 && at < lines.inCount;
        nextSmooth[s] = there ? smooth[source + at * inner] : TAcc(0);
        nextLaplacian[s] = there ? laplacian[source + at * inner] : TAcc(0);
      }
    };
    load(0);
    int slot = 0;
    int filled = 0;
    for (std::int64_t j = 0; j < rows; j += Together)
    {
      TAcc * const newest = ring + slot * (2 * Together * 32);
#pragma unroll
      for (int s = 0; s < Together; ++s)
      {
        newest[s * 32] = nextSmooth[s];
        newest[(Together + s) * 32] = nextLaplacian[s];
      }
      slot = slot + 1 == slots ? 0 : slot + 1;
      // On their way while the sums are made.
      if (j + Together < rows)
      {
        load(j + Together);
      }
      if (++filled < slots)
      {
        continue;
      }
      const std::int64_t o = begin + j - static_cast<std::int64_t>(slots - 1) * Together;
      const std::int64_t i = lines.outLower + o;
      const auto         at = [&](int block) {
        return (slot + block < slots ? slot + block : slot + block - slots) * (2 * Together * 32);
      };
      LaplacianSums<false, TAcc> sums[Together];
      if (tables.HasMiddle() && i - radius >= lines.inLower &&
          i + Together - 1 + radius < lines.inLower + lines.inCount)
      {
        TAcc centers[Together];
#pragma unroll
        for (int u = 0; u < Together; ++u)
        {
          centers[u] = ring[at((radius + u) / Together) + (radius + u) % Together * 32];
        }
        AccumulateLaplacian(sums, centers, weights, weights + taps, taps, [&](int block, int s, TAcc & v, TAcc & l) {
          v = ring[at(block) + s * 32];
          l = ring[at(block) + (Together + s) * 32];
        });
      }
      else
      {
#pragma unroll 1
        for (int u = 0; u < Together && o + u < end; ++u)
        {
          const std::int64_t center = source + (i + u - lines.inLower) * inner;
          const auto         cut = SumTaps<false, TAcc, TAcc>(tables,
                                                      smooth + center,
                                                      inner,
                                                      laplacian + center,
                                                      inner,
                                                      i + u,
                                                      lines.inLower,
                                                      lines.inLower + lines.inCount);
          store(offset + u * inner, cut.s, cut.l);
        }
        offset += Together * inner;
        continue;
      }
#pragma unroll
      for (int u = 0; u < Together; ++u)
      {
        if (o + u < end)
        {
          store(offset, sums[u].s, sums[u].l);
        }
        offset += inner;
      }
    }
  }
}

/** A pass along any axis, an output a thread, straight from memory: where no shared memory holds the window. */
template <bool VLast, typename TAcc, typename TOut>
__global__ void
LaplacianDirectKernel(WeightTables<TAcc> tables, Pass<TAcc> lines, const TAcc * __restrict__ smooth,
                      const TAcc * __restrict__ laplacian, StoreLaplacian<VLast, TAcc, TOut> store)
{
  const std::int64_t count = lines.outer * lines.outCount * lines.inner;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; n < count; n += step)
  {
    const std::int64_t innerIndex = n % lines.inner;
    const std::int64_t i = lines.outLower + n / lines.inner % lines.outCount;
    const std::int64_t outerIndex = n / lines.inner / lines.outCount;
    const std::int64_t center = (outerIndex * lines.inCount + i - lines.inLower) * lines.inner + innerIndex;
    const auto         sums = SumTaps<false, TAcc, TAcc>(tables,
                                                 smooth + center,
                                                 lines.inner,
                                                 laplacian + center,
                                                 lines.inner,
                                                 i,
                                                 lines.inLower,
                                                 lines.inLower + lines.inCount);
    store(n, sums.s, sums.l);
  }
}

} // namespace chunkwise

#endif
