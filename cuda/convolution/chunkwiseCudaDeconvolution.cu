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

/** Voxels that a thread loads at once. */
template <typename T>
struct alignas(16) StepPack
{
  static constexpr int Size = 16 / sizeof(T);
  T                    voxel[Size];
};

/** `packs`: all images begin at multiples of 16 bytes, and what is left of n after whole packs goes voxel by voxel. */
template <typename T, DeconvolutionStep VStep>
__global__ void
__launch_bounds__(Threads) DeconvolutionStepKernel(StepInputs<T> in, DeconvolutionParameters parameters,
                                                   T * __restrict__ out, std::int64_t packs, std::int64_t n)
{
  using Pack = StepPack<T>;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * Threads + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Threads;
  for (std::int64_t i = first; i < packs; i += step)
  {
    Pack voxels[3];
#pragma unroll
    for (int input = 0; input < 3; ++input)
    {
      if (in.data[input])
      {
        voxels[input] = reinterpret_cast<const Pack *>(in.data[input])[i];
      }
      else
      {
        for (T & voxel : voxels[input].voxel)
        {
          voxel = T(1);
        }
      }
    }
    Pack result;
#pragma unroll
    for (int v = 0; v < Pack::Size; ++v)
    {
      result.voxel[v] =
        DeconvolutionVoxel(VStep, parameters, voxels[0].voxel[v], voxels[1].voxel[v], voxels[2].voxel[v]);
    }
    reinterpret_cast<Pack *>(out)[i] = result;
  }
  for (std::int64_t i = packs * Pack::Size + first; i < n; i += step)
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
  auto addresses = reinterpret_cast<std::uintptr_t>(call.output.data);
  for (const T * const data : in.data)
  {
    addresses |= reinterpret_cast<std::uintptr_t>(data);
  }
  const std::int64_t packs = addresses % sizeof(StepPack<T>) == 0 ? n / StepPack<T>::Size : 0;
  kernel<<<BlocksFor(std::max(packs, n - packs * StepPack<T>::Size), Threads), Threads, 0, StreamOf(call)>>>(
    in, operation.parameters, static_cast<T *>(call.output.data), packs, n);
  CheckLaunch("DeconvolutionStepKernel");
}

/** A warp sums up a row at a time, as RowSum does. Each block adds the digits of its rows' sums to those of all:
 * integers, so that the order does not matter. Infinities and NaN add up to one of them in any order. */
template <typename T, bool VMisfit>
__global__ void
__launch_bounds__(Threads) DeconvolutionSumsKernel(StepInputs<T> in, DeconvolutionParameters parameters,
                                                   std::int64_t length, std::int64_t rows, Sums::Summary * all)
{
  constexpr int          count = VMisfit ? 2 : 4;
  constexpr int          digits = StatisticsSummary::SumDigits;
  constexpr unsigned int full = 0xFFFFFFFF;
  __shared__ std::int64_t total[count][digits];
  for (int i = threadIdx.x; i < count * digits; i += Threads)
  {
    total[i / digits][i % digits] = 0;
  }
  __syncthreads();
  const int  lane = threadIdx.x % RowSum::Lanes;
  const auto add = [&](int digit, std::int64_t part) {
    atomicAdd(reinterpret_cast<Word *>(&total[lane][digit]), static_cast<Word>(part));
  };
  ExactWindow<53>    window; // Lane s has sum s.
  double             special = 0;
  constexpr int      warps = Threads / RowSum::Lanes;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * warps;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / RowSum::Lanes; row < rows;
       row += step)
  {
    double             sums[count]{};
    const std::int64_t begin = row * length;
    for (std::int64_t x = lane; x < length; x += RowSum::Lanes)
    {
      const std::int64_t       i = begin + x;
      const DeconvolutionTerms terms =
        VMisfit ? DeconvolutionTerms::OfMisfit(parameters, in.At(0, i), in.At(1, i), in.At(2, i))
                : DeconvolutionTerms::OfChange(in.At(0, i), in.At(1, i), in.data[2] ? in.At(2, i) : T(0));
#pragma unroll
      for (int s = 0; s < count; ++s)
      {
        sums[s] += terms.value[s];
      }
    }
    double own = 0;
#pragma unroll
    for (int s = 0; s < count; ++s)
    {
      for (int width = RowSum::Lanes / 2; width > 0; width /= 2)
      {
        sums[s] += __shfl_down_sync(full, sums[s], width);
      }
      const double sum = __shfl_sync(full, sums[s], 0);
      own = lane == s ? sum : own;
    }
    if (lane < count)
    {
      AddExactly(window, special, own, add);
    }
  }
  if (lane < count)
  {
    window.End([&](int first, Int128 value) {
      if (value != 0)
      {
        AddParts(first, value, add);
      }
    });
    if (special != 0 || special != special)
    {
      atomicAdd(&all->special[lane], special);
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
  // No block has more than 2^28 rows, so that its digits do not overflow.
  constexpr std::int64_t warps = Threads / RowSum::Lanes;
  const std::int64_t     length = std::max<std::int64_t>(box.Extent(0), 1);
  const std::int64_t     rows = n / length;
  const auto             blocks = static_cast<int>(
    std::max({ std::int64_t{ 1 }, std::min<std::int64_t>(rows / (4 * warps), 2048), (rows >> 28) + (n > 0 ? 1 : 0) }));
  const auto kernel =
    operation.step == DeconvolutionStep::Ratio ? DeconvolutionSumsKernel<T, true> : DeconvolutionSumsKernel<T, false>;
  kernel<<<blocks, Threads, 0, StreamOf(call)>>>(in, operation.parameters, length, rows, summary);
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
