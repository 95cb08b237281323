/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBilateralOperation.h"
#include "chunkwiseCudaEnhancement.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaRealOutput.cuh"
#include "chunkwisePatchWeight.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseStructuringHeight.h"

#include <limits>
#include <vector>

// Bilateral filters, and erosions and dilations with structuring functions: a thread a voxel, which sees all its
// neighbors.
namespace chunkwise
{

namespace
{

/** The axes of a window, the fastest first; then others, up to three. */
struct NeighborAxes
{
  int axes[3];
  int radius[3];

  explicit NeighborAxes(const Coordinates & reach)
  {
    int found = 0;
    for (const bool takesPart : { true, false })
    {
      for (int a = 0; a < MaxDimension && found < 3; ++a)
      {
        if ((reach[a] > 0) == takesPart)
        {
          axes[found] = a;
          radius[found++] = static_cast<int>(reach[a]);
        }
      }
    }
  }
};

/** Calls body(output offset, index) for each voxel of the output. */
template <typename TBody>
__device__ __forceinline__ void
ForEachOutput(const Voxels<char> & out, TBody && body)
{
  const std::int64_t width = out.box.Extent(0);
  const std::int64_t rows = out.box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    Coordinates at = IndexIn(out.box, row * width);
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      at.axis[0] = out.box.lower.axis[0] + x;
      body(out.Offset(at), at);
    }
  }
}

/** The taps of a window around a voxel that an image has, along one of the axes. */
struct NeighborRange
{
  int          first;
  int          last;
  std::int64_t stride;

  template <typename TPixel>
  __device__
  NeighborRange(const Voxels<const TPixel> & in, const NeighborAxes & g, int i, const Coordinates & at)
    : stride(in.stride.axis[g.axes[i]])
  {
    const int          a = g.axes[i];
    const std::int64_t before = at.axis[a] - in.box.lower.axis[a];
    const std::int64_t after = in.box.upper.axis[a] - 1 - at.axis[a];
    first = before < g.radius[i] ? -static_cast<int>(before) : -g.radius[i];
    last = after < g.radius[i] ? static_cast<int>(after) : g.radius[i];
  }
};

template <typename TPixel, typename TReal>
__global__ void
BilateralKernel(const __grid_constant__ Voxels<const TPixel> in, const __grid_constant__ RealOutput out,
                const __grid_constant__ NeighborAxes g, const TReal * __restrict__ weights, TReal inverse)
{
  // Behind each other: the weights of the three axes.
  const TReal * const along[3] = { weights + g.radius[0],
                                   weights + 2 * g.radius[0] + 1 + g.radius[1],
                                   weights + 2 * g.radius[0] + 2 * g.radius[1] + 2 + g.radius[2] };
  ForEachOutput(out.voxels, [&](std::int64_t to, const Coordinates & at) {
    const TPixel * const center = &in[at];
    const TReal          here = static_cast<TReal>(*center);
    const NeighborRange  x(in, g, 0, at);
    const NeighborRange  y(in, g, 1, at);
    const NeighborRange  z(in, g, 2, at);
    TReal                deviations = 0;
    TReal                sums = 0;
    for (int k = z.first; k <= z.last; ++k)
    {
      for (int j = y.first; j <= y.last; ++j)
      {
        const TPixel * const line = center + k * z.stride + j * y.stride;
        const TReal          weightOfRow = along[2][k] * along[1][j];
        for (int i = x.first; i <= x.last; ++i)
        {
          const TReal deviation = static_cast<TReal>(line[i * x.stride]) - here;
          const TReal weight = static_cast<TReal>(NonLocalWeight(static_cast<float>(deviation * deviation * inverse))) *
                               (weightOfRow * along[0][i]);
          if (weight > TReal(0))
          {
            deviations += weight * deviation;
            sums += weight;
          }
        }
      }
    }
    out.Store<TPixel>(to, sums > TReal(0) ? here + deviations / sums : here);
  });
}

std::size_t
TableBytesOfBilateral(const Operation & operation, const ChunkShape & shape)
{
  const NeighborAxes g(static_cast<const BilateralOperation &>(operation).GetRadius());
  return RoundUp(static_cast<std::size_t>(2 * (g.radius[0] + g.radius[1] + g.radius[2]) + 3) *
                 (UsesDouble(shape.inputKinds[0]) ? 8 : 4));
}

WindowBoxes
BoxesOfBilateral(const BilateralOperation & operation, const Box & output, const Box & image)
{
  return WindowBoxes(output, image, operation.GetRadius(), operation.boundary.mode);
}

void
RunBilateral(const KernelCall & call)
{
  const auto &       operation = static_cast<const BilateralOperation &>(*call.operation);
  const NeighborAxes g(operation.GetRadius());
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    std::vector<Real> weights;
    for (const int a : g.axes)
    {
      const std::vector<double> & given = operation.weights[a];
      given.empty() ? weights.push_back(1)
                    : static_cast<void>(weights.insert(weights.end(), given.begin(), given.end()));
    }
    const auto * const table = static_cast<const Real *>(call.tables->Get(
      operation.GetKey() + " " + std::to_string(sizeof(Real)), weights.data(), weights.size() * sizeof(Real)));
    char *             scratch = static_cast<char *>(call.scratch);
    const auto         in =
      PadImage<Pixel>(call, BoxesOfBilateral(operation, call.output.box, call.image), operation.boundary, scratch);
    const RealOutput out{ VoxelsOf<char>(call.output), call.output.kind };
    BilateralKernel<Pixel, Real><<<BlocksOfRows(call.output.box), ThreadsOfRows(), 0, StreamOf(call)>>>(
      in, out, g, table, static_cast<Real>(0.5 / (operation.rangeSigma * operation.rangeSigma)));
    CheckLaunch("BilateralKernel");
  });
}

std::size_t
ScratchOfBilateral(const Operation & operation, const ChunkShape & shape)
{
  const auto & bilateral = static_cast<const BilateralOperation &>(operation);
  return ContinuedBytes(
    BoxesOfBilateral(bilateral, shape.outputBox, shape.image), bilateral.boundary.mode, PixelSize(shape.inputKinds[0]));
}

/** A neighbor costs about as much as eight bytes. */
double
CostOfNeighbors(const Coordinates & radius, const ChunkShape & shape)
{
  double taps = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    taps *= static_cast<double>(2 * radius[a] + 1);
  }
  return 8 * taps * static_cast<double>(shape.outputBox.NumberOfVoxels());
}

double
CostOfBilateral(const Operation & operation, const ChunkShape & shape)
{
  return CostOfNeighbors(static_cast<const BilateralOperation &>(operation).GetRadius(), shape);
}

/** Lines are along the first of the axes; `heights` has radius + 1 numbers for each pair of offsets along the others.
 */
template <typename TPixel, typename TReal>
__global__ void
NonFlatKernel(const __grid_constant__ Voxels<const TPixel> in, const __grid_constant__ RealOutput out,
              const __grid_constant__ NeighborAxes g, const TReal * __restrict__ heights, bool dilates)
{
  ForEachOutput(out.voxels, [&](std::int64_t to, const Coordinates & at) {
    const TPixel * const center = &in[at];
    const NeighborRange  x(in, g, 0, at);
    const NeighborRange  y(in, g, 1, at);
    const NeighborRange  z(in, g, 2, at);
    TReal                least = std::numeric_limits<TReal>::infinity();
    for (int k = z.first; k <= z.last; ++k)
    {
      for (int j = y.first; j <= y.last; ++j)
      {
        const TPixel * const line = center + k * z.stride + j * y.stride;
        const TReal * const  height =
          heights +
          (static_cast<std::int64_t>(k + g.radius[2]) * (2 * g.radius[1] + 1) + j + g.radius[1]) * (g.radius[0] + 1);
        for (int i = x.first; i <= x.last; ++i)
        {
          const TReal rise = height[i < 0 ? -i : i];
          const TReal value = static_cast<TReal>(line[i * x.stride]);
          const TReal sum = (dilates ? -value : value) + rise;
          least = rise >= TReal(0) && sum < least ? sum : least;
        }
      }
    }
    out.Store<TPixel>(to, dilates ? -least : least);
  });
}

void
RunNonFlatExtremum(const KernelCall & call)
{
  const auto &           operation = static_cast<const NonFlatExtremumOperation &>(*call.operation);
  const StructuringLines lines(operation, call.image.Extents());
  const NeighborAxes     g(lines.radius);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    std::vector<Real> heights(static_cast<std::size_t>(lines.numbers));
    lines.Fill(operation, heights.data());
    const auto * const table = static_cast<const Real *>(
      call.tables->Get(operation.GetKey() + " " + ToString(lines.radius) + " " + std::to_string(sizeof(Real)),
                       heights.data(),
                       heights.size() * sizeof(Real)));
    char *           scratch = nullptr;
    const auto       in = PadImage<Pixel>(call,
                                    WindowBoxes(call.output.box, call.image, lines.radius, BoundaryMode::Renormalized),
                                    WindowBoundary(),
                                    scratch);
    const RealOutput out{ VoxelsOf<char>(call.output), call.output.kind };
    NonFlatKernel<Pixel, Real>
      <<<BlocksOfRows(call.output.box), ThreadsOfRows(), 0, StreamOf(call)>>>(in, out, g, table, operation.dilates);
    CheckLaunch("NonFlatKernel");
  });
}

std::size_t
TableBytesOfNonFlat(const Operation & operation, const ChunkShape & shape)
{
  const StructuringLines lines(static_cast<const NonFlatExtremumOperation &>(operation), shape.image.Extents());
  return RoundUp(static_cast<std::size_t>(lines.numbers) * (UsesDouble(shape.inputKinds[0]) ? 8 : 4));
}

double
CostOfNonFlat(const Operation & operation, const ChunkShape & shape)
{
  return CostOfNeighbors(static_cast<const NonFlatExtremumOperation &>(operation).GetRadius(shape.image.Extents()),
                         shape);
}

} // namespace

void
RegisterCudaNeighbors(KernelRegistry & registry)
{
  KernelSet bilateral;
  bilateral.compute.run = RunBilateral;
  bilateral.compute.scratchBytes = ScratchOfBilateral;
  bilateral.compute.cost = CostOfBilateral;
  bilateral.tableBytes = TableBytesOfBilateral;
  registry.Register("bilateral", bilateral);
  KernelSet nonFlat;
  nonFlat.compute.run = RunNonFlatExtremum;
  nonFlat.compute.cost = CostOfNonFlat;
  nonFlat.tableBytes = TableBytesOfNonFlat;
  registry.Register("nonflatextremum", nonFlat);
}

} // namespace chunkwise
