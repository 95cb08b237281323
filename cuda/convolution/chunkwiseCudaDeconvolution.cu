/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaDeconvolution.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseDeconvolutionSteps.h"
#include "chunkwiseError.h"

#include <algorithm>

// Each input is dense: its voxels in order.
namespace chunkwise
{

namespace
{

constexpr int Threads = 256;
using Sums = DeconvolutionSumsOperation;
using Word = unsigned long long;

/** The inputs of a step; 1 in place of the voxels of one that is missing. */
template <typename T>
struct StepInputs
{
  const T * data[MaxInputs];

  __device__ T
  At(int input, std::int64_t i) const
  {
    return data[input] ? data[input][i] : T(1);
  }
};

template <typename T>
StepInputs<T>
InputsOf(const KernelCall & call, int count, const Box & box)
{
  StepInputs<T> inputs{};
  for (int i = 0; i < count; ++i)
  {
    const BufferView dense = DenseView(call.inputs[i].data, call.inputs[i].kind, box);
    if (!(call.inputs[i].box == box && call.inputs[i].stride == dense.stride))
    {
      throw DeviceError(DeviceError::Kind::Failed, "deconvolution", "CUDA", 0, "an image is not dense");
    }
    inputs.data[i] = static_cast<const T *>(call.inputs[i].data);
  }
  return inputs;
}

template <typename T, DeconvolutionStep VStep>
__global__ void
__launch_bounds__(Threads)
  DeconvolutionStepKernel(StepInputs<T> in, DeconvolutionParameters parameters, T * __restrict__ out, std::int64_t n)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * Threads + threadIdx.x; i < n; i += step)
  {
    out[i] = DeconvolutionVoxel(VStep, parameters, in.At(0, i), in.At(1, i), in.At(2, i));
  }
}

template <typename T>
void
RunStep(const KernelCall & call)
{
  const auto &        operation = static_cast<const DeconvolutionStepOperation &>(*call.operation);
  const Box &         box = call.output.box;
  const std::int64_t  n = box.NumberOfVoxels();
  const StepInputs<T> in = InputsOf<T>(call, operation.inputs, box);
  const auto          kernel =
    operation.step == DeconvolutionStep::Ratio    ? DeconvolutionStepKernel<T, DeconvolutionStep::Ratio>
             : operation.step == DeconvolutionStep::Update ? DeconvolutionStepKernel<T, DeconvolutionStep::Update>
             : operation.step == DeconvolutionStep::Difference ? DeconvolutionStepKernel<T, DeconvolutionStep::Difference>
                                                               : DeconvolutionStepKernel<T, DeconvolutionStep::Point>;
  kernel<<<BlocksFor(n, Threads), Threads, 0, StreamOf(call)>>>(
    in, operation.parameters, static_cast<T *>(call.output.data), n);
  CheckLaunch("DeconvolutionStepKernel");
}

/** Each block adds the digits of its voxels to those of all: integers, so that the order does not matter. Infinities
 * and NaN add up to one of them in any order. */
template <typename T, bool VMisfit>
__global__ void
__launch_bounds__(Threads)
  DeconvolutionSumsKernel(StepInputs<T> in, DeconvolutionParameters parameters, std::int64_t n, Sums::Summary * all)
{
  constexpr int count = VMisfit ? 2 : 4;
  constexpr int digits = StatisticsSummary::SumDigits;
  __shared__ std::int64_t total[count][digits];
  for (int i = threadIdx.x; i < count * digits; i += Threads)
  {
    total[i / digits][i % digits] = 0;
  }
  __syncthreads();
  const auto add = [&](int sum, int digit, std::int64_t part) {
    atomicAdd(reinterpret_cast<Word *>(&total[sum][digit]), static_cast<Word>(part));
  };
  DeconvolutionVoxelSums<T> sums;
  const std::int64_t        step = static_cast<std::int64_t>(gridDim.x) * Threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * Threads + threadIdx.x; i < n; i += step)
  {
    if constexpr (VMisfit)
    {
      sums.AddMisfit(parameters, in.At(0, i), in.At(1, i), in.At(2, i), add);
    }
    else
    {
      sums.AddChange(in.At(0, i), in.At(1, i), add);
      if (in.data[2])
      {
        sums.AddStep(in.At(0, i), in.At(1, i), in.At(2, i), add);
      }
    }
  }
#pragma unroll
  for (int s = 0; s < count; ++s)
  {
    sums.window[s].End([&](int first, Int128 value) {
      if (value != 0)
      {
        AddParts(first, value, [&](int i, std::int64_t part) { add(s, i, part); });
      }
    });
    if (sums.special[s] != 0 || sums.special[s] != sums.special[s])
    {
      atomicAdd(&all->special[s], sums.special[s]);
    }
  }
  __syncthreads();
  if (threadIdx.x < count)
  {
    Carry(total[threadIdx.x], digits);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count * digits; i += Threads)
  {
    if (total[i / digits][i % digits] != 0)
    {
      atomicAdd(reinterpret_cast<Word *>(&all->digits[i / digits][i % digits]),
                static_cast<Word>(total[i / digits][i % digits]));
    }
  }
}

/** One thread for each sum: as the CPU leaves them. */
__global__ void
CarrySumsKernel(Sums::Summary * all)
{
  Carry(all->digits[threadIdx.x], StatisticsSummary::SumDigits);
}

template <typename T>
void
RunSums(const KernelCall & call)
{
  const auto &        operation = static_cast<const Sums &>(*call.operation);
  const Box &         box = call.writable;
  const std::int64_t  n = box.NumberOfVoxels();
  const StepInputs<T> in = InputsOf<T>(call, operation.inputs, box);
  auto * const        summary = static_cast<Sums::Summary *>(call.sideOut);
  CheckCuda(cudaMemsetAsync(summary, 0, sizeof(*summary), StreamOf(call)), "cudaMemsetAsync");
  // No block has more than 2^28 voxels, so that its digits do not overflow.
  const auto blocks = static_cast<int>(
    std::max({ std::int64_t{ 1 }, std::min<std::int64_t>(n / (16 * Threads), 2048), (n >> 28) + (n > 0 ? 1 : 0) }));
  const auto kernel =
    operation.step == DeconvolutionStep::Ratio ? DeconvolutionSumsKernel<T, true> : DeconvolutionSumsKernel<T, false>;
  kernel<<<blocks, Threads, 0, StreamOf(call)>>>(in, operation.parameters, n, summary);
  CheckLaunch("DeconvolutionSumsKernel");
  CarrySumsKernel<<<1, Sums::Most, 0, StreamOf(call)>>>(summary);
  CheckLaunch("CarrySumsKernel");
}

template <bool VSums>
void
Run(const KernelCall & call)
{
  const bool isDouble = call.inputs[0].kind == PixelKind::Float64;
  const auto run =
    VSums ? (isDouble ? RunSums<double> : RunSums<float>) : (isDouble ? RunStep<double> : RunStep<float>);
  run(call);
}

} // namespace

void
RegisterCudaDeconvolution(KernelRegistry & registry)
{
  KernelSet step;
  step.compute.run = Run<false>;
  registry.Register("deconvolution.step", step);
  KernelSet sums;
  sums.summarize.run = Run<true>;
  registry.Register("deconvolution.sums", sums);
}

} // namespace chunkwise
