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
using Sums = DeconvolutionSums;
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
__launch_bounds__(Threads) DeconvolutionStepKernel(StepInputs<T> in, DeconvolutionParameters parameters, T * out,
                                                   std::int64_t packs, std::int64_t n)
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

/** Voxels of a lane whose loads are pending at once. */
constexpr int Together = 4;

/** Such voxels of a row that ends at `end`, and their terms, which the lane's sums take in their order. */
template <DeconvolutionStep VStep, typename T, int VCount>
__device__ __forceinline__ void
ComputeVoxels(const StepInputs<T> & in, const DeconvolutionParameters & parameters, T * out, std::int64_t first,
              std::int64_t end, double (&sums)[VCount])
{
  T voxels[3][Together];
#pragma unroll
  for (int input = 0; input < 3; ++input)
  {
#pragma unroll
    for (int v = 0; v < Together; ++v)
    {
      const std::int64_t i = first + v * RowSum::Lanes;
      voxels[input][v] = i < end ? in.At(input, i) : T(0);
    }
  }
  if constexpr (VStep == DeconvolutionStep::Ratio)
  {
    // The misfit is 0 if no voxel of the warp was measured.
    bool counts = false;
#pragma unroll
    for (int v = 0; v < Together; ++v)
    {
      counts = counts || (first + v * RowSum::Lanes < end && voxels[1][v] == voxels[1][v]);
    }
    if (!__any_sync(__activemask(), counts))
    {
#pragma unroll
      for (int v = 0; v < Together; ++v)
      {
        if (first + v * RowSum::Lanes < end)
        {
          out[first + v * RowSum::Lanes] = T(0);
        }
      }
      return;
    }
  }
  // Divisions of results have branches; terms have none, so that those of all voxels are pending at once.
  T results[Together];
#pragma unroll
  for (int v = 0; v < Together; ++v)
  {
    const std::int64_t i = first + v * RowSum::Lanes;
    results[v] = DeconvolutionVoxel(VStep, parameters, voxels[0][v], voxels[1][v], voxels[2][v]);
    if (i < end)
    {
      out[i] = results[v];
    }
  }
  DeconvolutionTerms terms[Together];
#pragma unroll
  for (int v = 0; v < Together; ++v)
  {
    terms[v] = DeconvolutionTermsOf(VStep, parameters, voxels[0][v], voxels[1][v], voxels[2][v], results[v]);
  }
#pragma unroll
  for (int v = 0; v < Together; ++v)
  {
#pragma unroll
    for (int s = 0; s < VCount; ++s)
    {
      sums[s] += first + v * RowSum::Lanes < end ? terms[v].value[s] : 0.0;
    }
  }
}

/** The same, with sums: a warp has a row at a time and sums it up as RowSum does. Each block adds the digits of its
 * rows' sums to those of all: integers, so that the order does not matter. Infinities and NaN add up to one of them in
 * any order. */
template <typename T, DeconvolutionStep VStep>
__global__ void
__launch_bounds__(Threads) DeconvolutionSumsKernel(StepInputs<T> in, DeconvolutionParameters parameters, T * out,
                                                   std::int64_t length, std::int64_t rows, Sums * all)
{
  constexpr int          count = Sums::Count(VStep);
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
    const std::int64_t end = (row + 1) * length;
    for (std::int64_t first = row * length + lane; first < end; first += Together * RowSum::Lanes)
    {
      ComputeVoxels<VStep>(in, parameters, out, first, end, sums);
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

/** One thread for each sum: digits are small again, so that any number of runs can add to them. */
__global__ void
CarrySumsKernel(Sums * all)
{
  Carry(all->digits[threadIdx.x], StatisticsSummary::SumDigits);
}

template <typename T, DeconvolutionStep VStep>
void
RunStepOf(const KernelCall & call)
{
  const auto &                  operation = static_cast<const DeconvolutionStepOperation &>(*call.operation);
  const Box &                   box = call.output.box;
  const std::int64_t            n = box.NumberOfVoxels();
  const StepInputs<T>           in = InputsOf<T>(call, operation.inputs, box);
  auto * const                  out = static_cast<T *>(call.output.data);
  [[maybe_unused]] auto * const sums = static_cast<Sums *>(call.sideOut);
  if constexpr (VStep == DeconvolutionStep::Ratio || VStep == DeconvolutionStep::Update ||
                VStep == DeconvolutionStep::Difference)
  {
    if (sums)
    {
      const std::int64_t length = std::max<std::int64_t>(box.Extent(0), 1);
      const std::int64_t rows = n / length;
      // No block has more than 2^28 rows, so that its digits do not overflow.
      constexpr std::int64_t warps = Threads / RowSum::Lanes;
      const auto             blocks = static_cast<int>(std::max(
        { std::int64_t{ 1 }, std::min<std::int64_t>(rows / (4 * warps), 2048), (rows >> 28) + (n > 0 ? 1 : 0) }));
      DeconvolutionSumsKernel<T, VStep>
        <<<blocks, Threads, 0, StreamOf(call)>>>(in, operation.parameters, out, length, rows, sums);
      CheckLaunch("DeconvolutionSumsKernel");
      CarrySumsKernel<<<1, Sums::Most, 0, StreamOf(call)>>>(sums);
      CheckLaunch("CarrySumsKernel");
      return;
    }
  }
  auto addresses = reinterpret_cast<std::uintptr_t>(out);
  for (const T * const data : in.data)
  {
    addresses |= reinterpret_cast<std::uintptr_t>(data);
  }
  const std::int64_t packs = addresses % sizeof(StepPack<T>) == 0 ? n / StepPack<T>::Size : 0;
  DeconvolutionStepKernel<T, VStep>
    <<<BlocksFor(std::max(packs, n - packs * StepPack<T>::Size), Threads), Threads, 0, StreamOf(call)>>>(
      in, operation.parameters, out, packs, n);
  CheckLaunch("DeconvolutionStepKernel");
}

template <typename T>
void
RunStep(const KernelCall & call)
{
  const auto & operation = static_cast<const DeconvolutionStepOperation &>(*call.operation);
  switch (operation.step)
  {
    case DeconvolutionStep::Ratio:
      return RunStepOf<T, DeconvolutionStep::Ratio>(call);
    case DeconvolutionStep::Update:
      return RunStepOf<T, DeconvolutionStep::Update>(call);
    case DeconvolutionStep::Difference:
      return RunStepOf<T, DeconvolutionStep::Difference>(call);
    case DeconvolutionStep::Known:
      return RunStepOf<T, DeconvolutionStep::Known>(call);
    case DeconvolutionStep::Start:
      return RunStepOf<T, DeconvolutionStep::Start>(call);
    default:
      return RunStepOf<T, DeconvolutionStep::Point>(call);
  }
}

void
Run(const KernelCall & call)
{
  const auto run = call.inputs[0].kind == PixelType::Float64 ? RunStep<double> : RunStep<float>;
  run(call);
}

} // namespace

void
RegisterCudaDeconvolution(KernelRegistry & registry)
{
  KernelSet step;
  step.compute.run = Run;
  registry.Register("deconvolution.step", step);
}

} // namespace chunkwise
