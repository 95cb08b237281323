/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseRealOf.h"

#include <string>
#include <vector>

namespace chunkwise
{

namespace
{

/** Outputs of a thread along x: neighbours share what their windows read. */
constexpr int Together = 4;

template <typename TIn, typename TOut, typename TAcc>
struct DirectTask
{
  const TIn *  in;
  TOut *       out;
  const TAcc * weights; ///< from the lowest tap to the highest
  const TAcc * factors; ///< nullptr: none
  Box          inBox;
  Box          outBox;
  Coordinates  inStride;
  Coordinates  outStride;
  Coordinates  image;
  Coordinates  extent;
  Coordinates  below;
  Coordinates  factorStride;
  BoundaryMode mode;
  TAcc         constant;
};

template <typename TOut, typename TAcc>
__device__ TOut
Finish(TAcc value)
{
  if constexpr (std::is_floating_point<TOut>::value)
  {
    return static_cast<TOut>(value);
  }
  else
  {
    return RoundAndClamp<TOut>(value);
  }
}

template <typename TIn, typename TOut, typename TAcc>
__global__ void
DirectConvolutionKernel(DirectTask<TIn, TOut, TAcc> task)
{
  const std::int64_t perRow = (task.outBox.Extent(0) + Together - 1) / Together;
  std::int64_t       rows = 1;
  for (int a = 1; a < MaxDimension; ++a)
  {
    rows *= task.outBox.Extent(a);
  }
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; n < perRow * rows; n += step)
  {
    std::int64_t rest = n / perRow;
    Coordinates  at;
    at[0] = task.outBox.lower[0] + n % perRow * Together;
    std::int64_t to = (at[0] - task.outBox.lower[0]) * task.outStride[0];
    std::int64_t factor = 0;
    for (int a = 1; a < MaxDimension; ++a)
    {
      const std::int64_t i = rest % task.outBox.Extent(a);
      rest /= task.outBox.Extent(a);
      at[a] = task.outBox.lower[a] + i;
      to += i * task.outStride[a];
      factor += task.factorStride[a] * ConvolutionFactors::State(at[a], task.image[a], task.extent[a], task.below[a]);
    }
    TAcc         sums[Together] = {};
    const TAcc * weight = task.weights;
    // Rows of taps from the lowest to the highest.
    Coordinates t{};
    const bool  insideX = at[0] - task.below[0] >= task.inBox.lower[0] &&
                         at[0] + Together - 1 + task.extent[0] - task.below[0] <= task.inBox.upper[0];
    for (bool more = true; more;)
    {
      bool         there = true;
      std::int64_t row = 0;
      for (int a = 1; a < MaxDimension; ++a)
      {
        const std::int64_t mapped =
          MapTap(at[a] - task.below[a] + t[a], task.inBox.lower[a], task.inBox.upper[a], task.image[a], task.mode);
        there = there && mapped >= task.inBox.lower[a] && mapped < task.inBox.upper[a];
        row += (mapped - task.inBox.lower[a]) * task.inStride[a];
      }
      const auto fetch = [&](std::int64_t x) {
        if (!there)
        {
          return task.constant;
        }
        const std::int64_t mapped =
          insideX ? x : MapTap(x, task.inBox.lower[0], task.inBox.upper[0], task.image[0], task.mode);
        // Absent, or a tap of an output beyond the row's end.
        if (mapped < task.inBox.lower[0] || mapped >= task.inBox.upper[0])
        {
          return task.constant;
        }
        return static_cast<TAcc>(task.in[row + (mapped - task.inBox.lower[0]) * task.inStride[0]]);
      };
      TAcc taps[Together];
#pragma unroll
      for (int i = 1; i < Together; ++i)
      {
        taps[i] = fetch(at[0] - task.below[0] + i - 1);
      }
      for (std::int64_t x = 0; x < task.extent[0]; ++x)
      {
#pragma unroll
        for (int i = 0; i + 1 < Together; ++i)
        {
          taps[i] = taps[i + 1];
        }
        taps[Together - 1] = fetch(at[0] - task.below[0] + x + Together - 1);
        const TAcc w = __ldg(weight++);
#pragma unroll
        for (int i = 0; i < Together; ++i)
        {
          sums[i] = MultiplyAdd(w, taps[i], sums[i]);
        }
      }
      more = false;
      for (int a = 1; a < MaxDimension; ++a)
      {
        if (++t[a] < task.extent[a])
        {
          more = true;
          break;
        }
        t[a] = 0;
      }
    }
#pragma unroll
    for (int i = 0; i < Together; ++i)
    {
      if (at[0] + i < task.outBox.upper[0])
      {
        TAcc value = sums[i];
        if (task.factors)
        {
          value *= __ldg(task.factors + factor +
                         task.factorStride[0] *
                           ConvolutionFactors::State(at[0] + i, task.image[0], task.extent[0], task.below[0]));
        }
        task.out[to + i * task.outStride[0]] = Finish<TOut>(value);
      }
    }
  }
}

template <typename TIn, typename TAcc, typename TOut>
void
Run(const KernelCall & call)
{
  const auto &                operation = static_cast<const ImageConvolutionOperation &>(*call.operation);
  const std::vector<TAcc>     weights(operation.kernel->GetWeights().rbegin(), operation.kernel->GetWeights().rend());
  const char * const          precision = sizeof(TAcc) == 4 ? " f32" : " f64";
  DirectTask<TIn, TOut, TAcc> task{};
  task.in = static_cast<const TIn *>(call.inputs[0].data);
  task.out = static_cast<TOut *>(call.output.data);
  task.weights = static_cast<const TAcc *>(call.tables->Get(
    operation.kernel->GetKey() + " reversed" + precision, weights.data(), weights.size() * sizeof(TAcc)));
  task.inBox = call.inputs[0].box;
  task.outBox = call.output.box;
  task.inStride = call.inputs[0].stride;
  task.outStride = call.output.stride;
  task.image = call.image.Extents();
  task.extent = operation.kernel->GetExtent();
  task.mode = operation.boundary.mode;
  task.constant = task.mode == BoundaryMode::Constant ? static_cast<TAcc>(operation.boundary.constant) : TAcc(0);
  for (int a = 0; a < MaxDimension; ++a)
  {
    task.below[a] = operation.Below(a);
  }
  if (operation.Renormalizes())
  {
    const ConvolutionFactors exact(operation, task.image);
    const std::vector<TAcc>  factors(exact.factors.begin(), exact.factors.end());
    task.factorStride = DenseStrides(exact.states);
    task.factors =
      static_cast<const TAcc *>(call.tables->Get(operation.GetKey() + " factors " + ToString(task.image) + precision,
                                                 factors.data(),
                                                 factors.size() * sizeof(TAcc)));
  }
  const Box &        output = call.output.box;
  const std::int64_t threads =
    output.NumberOfVoxels() / output.Extent(0) * ((output.Extent(0) + Together - 1) / Together);
  DirectConvolutionKernel<<<BlocksFor(threads, 128), 128, 0, StreamOf(call)>>>(task);
  CheckLaunch("DirectConvolutionKernel");
}

void
RunDirectConvolution(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Acc = RealOf<Pixel>;
    switch (call.output.kind)
    {
      case PixelKind::Float32:
        return Run<Pixel, Acc, float>(call);
      case PixelKind::Float64:
        return Run<Pixel, Acc, double>(call);
      default:
        return Run<Pixel, Acc, Pixel>(call);
    }
  });
}

/** Input and output, and the taps' arithmetic, worth about a byte each. */
double
CostOfDirectConvolution(const Operation & operation, const ChunkShape & shape)
{
  const auto & kernel = *static_cast<const ImageConvolutionOperation &>(operation).kernel;
  return static_cast<double>(PixelSize(shape.inputKinds[0])) * static_cast<double>(shape.inputBox.NumberOfVoxels()) +
         (static_cast<double>(PixelSize(shape.outputKind)) + static_cast<double>(kernel.GetNumberOfTaps())) *
           static_cast<double>(shape.outputBox.NumberOfVoxels());
}

} // namespace

void
RegisterCudaDirectConvolution(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunDirectConvolution;
  kernel.cost = CostOfDirectConvolution;
  registry.Register("convolution.direct", kernel);
}

} // namespace chunkwise
