/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times summed-area tables in device memory against the device's copy of the same bytes, the transposing method and
// CUB's one-dimensional scan. Argument "alone": without these two.
#include "chunkwiseDevice.h"
#include "chunkwiseSummedAreaTableOperation.h"

#include <cub/device/device_scan.cuh>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace chunkwise;

namespace
{

void
Check(cudaError_t error)
{
  if (error != cudaSuccess)
  {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}

template <typename TBody>
double
MedianMilliseconds(TBody && body)
{
  cudaEvent_t begin;
  cudaEvent_t end;
  Check(cudaEventCreate(&begin));
  Check(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < 9; ++i)
  {
    Check(cudaEventRecord(begin));
    body();
    Check(cudaEventRecord(end));
    Check(cudaEventSynchronize(end));
    float time = 0;
    Check(cudaEventElapsedTime(&time, begin, end));
    times.push_back(time);
  }
  Check(cudaEventDestroy(begin));
  Check(cudaEventDestroy(end));
  std::sort(times.begin() + 1, times.end()); // the first warms up
  return times[5];
}

/** Rows scanned by a block each. */
template <typename TIn, typename TOut>
__global__ void
ScanRows(const TIn * in, TOut * out, std::int64_t columns)
{
  __shared__ TOut    totals[32];
  const TIn *        from = in + blockIdx.x * columns;
  TOut *             to = out + blockIdx.x * columns;
  const unsigned int lane = threadIdx.x % 32;
  const unsigned int warp = threadIdx.x / 32;
  TOut               before = 0;
  for (std::int64_t x = threadIdx.x; x - threadIdx.x < columns; x += blockDim.x)
  {
    TOut sum = x < columns ? static_cast<TOut>(from[x]) : TOut(0);
    for (int d = 1; d < 32; d *= 2)
    {
      const TOut other = __shfl_up_sync(~0u, sum, d);
      sum += lane >= static_cast<unsigned int>(d) ? other : TOut(0);
    }
    if (lane == 31)
    {
      totals[warp] = sum;
    }
    __syncthreads();
    TOut all = 0;
    for (unsigned int w = 0; w < blockDim.x / 32; ++w)
    {
      sum += w < warp ? totals[w] : TOut(0);
      all += totals[w];
    }
    if (x < columns)
    {
      to[x] = before + sum;
    }
    before += all;
    __syncthreads();
  }
}

template <typename T>
__global__ void
Transpose(const T * in, T * out, std::int64_t n)
{
  __shared__ T       tile[32][33];
  const std::int64_t x = blockIdx.x * 32ll;
  const std::int64_t y = blockIdx.y * 32ll;
  for (unsigned int r = threadIdx.y; r < 32; r += blockDim.y)
  {
    tile[r][threadIdx.x] = in[(y + r) * n + x + threadIdx.x];
  }
  __syncthreads();
  for (unsigned int r = threadIdx.y; r < 32; r += blockDim.y)
  {
    out[(x + r) * n + y + threadIdx.x] = tile[threadIdx.x][r];
  }
}

/** Ends the program if a table of an image of bytes 1 is wrong at one of some entries, for integers. */
template <typename TIn, typename TOut>
void
CheckTable(const TOut * table, std::int64_t x, std::int64_t y, std::int64_t z)
{
  if constexpr (std::is_integral<TOut>::value)
  {
    TIn pixel;
    std::memset(&pixel, 1, sizeof(pixel));
    const std::uint64_t n =
      static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y) * static_cast<std::uint64_t>(z);
    std::uint64_t hash = 1;
    for (int i = 0; i < 1000; ++i)
    {
      hash = hash * 6364136223846793005u + 1442695040888963407u;
      const auto at = static_cast<std::int64_t>(i == 0 ? n - 1 : (hash >> 20) % n);
      TOut       entry;
      Check(cudaMemcpy(&entry, table + at, sizeof(entry), cudaMemcpyDeviceToHost));
      const auto voxels = static_cast<std::uint64_t>((at % x + 1) * (at / x % y + 1) * (at / (x * y) + 1));
      if (entry != static_cast<TOut>(voxels * pixel))
      {
        std::fprintf(stderr, "entry %lld is wrong\n", static_cast<long long>(at));
        std::exit(1);
      }
    }
  }
}

template <typename TIn, typename TOut>
void
Measure(Device & device, bool withPeers, std::int64_t x, std::int64_t y, std::int64_t z)
{
  const Box          box = Box::FromExtent({ { x, y, z, 1, 1 } });
  const std::int64_t n = box.NumberOfVoxels();
  const auto         bytes = static_cast<std::size_t>(n) * (sizeof(TIn) + sizeof(TOut));
  char *             memory = nullptr;
  Check(cudaMalloc(&memory, bytes));
  Check(cudaMemset(memory, 0, bytes));
  auto * const in = reinterpret_cast<TIn *>(memory + static_cast<std::size_t>(n) * sizeof(TOut));
  auto * const out = reinterpret_cast<TOut *>(memory);
  const double copy = MedianMilliseconds(
    [&] { Check(cudaMemcpyAsync(memory, memory + bytes / 2, bytes / 2, cudaMemcpyDeviceToDevice)); });
  Check(cudaMemset(memory, std::is_integral<TIn>::value ? 1 : 0, bytes));

  SummedAreaTableOperation operation;
  operation.image = box.upper;
  operation.summedAxes = z > 1 ? 3 : 2;
  operation.modular = true;
  ChunkShape shape;
  shape.inputBox = shape.outputBox = shape.image = box;
  shape.inputKinds[0] = PixelKindOf<TIn>();
  shape.numberOfInputs = 1;
  shape.outputKind = PixelKindOf<TOut>();
  const Kernel &    kernel = *device.GetKernels().Find("sat");
  KernelCall        call;
  void *            scratch = nullptr;
  void *            carry = nullptr;
  const std::size_t carryBytes = operation.GetCarryBytes(box, { shape.inputKinds[0] }, shape.outputKind);
  call.scratchBytes = kernel.scratchBytes(operation, shape);
  Check(cudaMalloc(&scratch, call.scratchBytes));
  Check(cudaMalloc(&carry, carryBytes));
  Check(cudaMemset(carry, 0, carryBytes));
  call.operation = &operation;
  call.inputs[0] = DenseView(in, shape.inputKinds[0], box);
  call.numberOfInputs = 1;
  call.output = DenseView(out, shape.outputKind, box);
  call.writable = call.image = box;
  call.scratch = scratch;
  call.sideIn = carry;
  call.sideInBytes = carryBytes;
  const double ours = MedianMilliseconds([&] { kernel.run(call); });
  CheckTable<TIn>(out, x, y, z);
  Check(cudaFree(scratch));
  Check(cudaFree(carry));

  double transposing = 0;
  if (withPeers && z == 1 && x == y && x % 32 == 0)
  {
    TOut * other = nullptr;
    Check(cudaMalloc(&other, static_cast<std::size_t>(n) * sizeof(TOut)));
    const dim3 grid(static_cast<unsigned int>(x / 32), static_cast<unsigned int>(y / 32));
    transposing = MedianMilliseconds([&] {
      ScanRows<<<static_cast<unsigned int>(y), 256>>>(in, other, x);
      Transpose<<<grid, dim3(32, 8)>>>(other, out, x);
      ScanRows<<<static_cast<unsigned int>(y), 256>>>(out, other, x);
      Transpose<<<grid, dim3(32, 8)>>>(other, out, x);
    });
    Check(cudaFree(other));
  }
  double scan = 0;
  if (withPeers)
  {
    std::size_t scanBytes = 0;
    Check(cub::DeviceScan::InclusiveSum(nullptr, scanBytes, in, out, n));
    void * scanScratch = nullptr;
    Check(cudaMalloc(&scanScratch, scanBytes));
    scan = MedianMilliseconds([&] { Check(cub::DeviceScan::InclusiveSum(scanScratch, scanBytes, in, out, n)); });
    Check(cudaFree(scanScratch));
  }
  Check(cudaFree(memory));
  std::printf("%-8s %-8s %6lld x %6lld x %5lld: copy %8.3f ms, ours %8.3f (%.2f), transposing %8.3f (%.2f), CUB scan "
              "%8.3f (%.2f)\n",
              PixelKindName(shape.inputKinds[0]),
              PixelKindName(shape.outputKind),
              static_cast<long long>(x),
              static_cast<long long>(y),
              static_cast<long long>(z),
              copy,
              ours,
              ours / copy,
              transposing,
              transposing / copy,
              scan,
              scan / copy);
  std::fflush(stdout);
}

} // namespace

int
main(int argc, char ** argv)
{
  const bool  withPeers = argc < 2 || std::strcmp(argv[1], "alone") != 0;
  std::string reason;
  const auto  backend = GetCudaBackend(&reason);
  if (!backend)
  {
    std::fprintf(stderr, "no CUDA device: %s\n", reason.c_str());
    return 1;
  }
  Device & device = *backend->GetDevices().front();
  for (const std::int64_t n : { 2048, 8192, 16384, 32768 })
  {
    Measure<float, float>(device, withPeers, n, n, 1);
  }
  for (const std::int64_t n : { 16384, 32768 })
  {
    Measure<std::uint8_t, std::uint32_t>(device, withPeers, n, n, 1);
    Measure<std::uint16_t, std::uint64_t>(device, withPeers, n, n, 1);
    Measure<float, double>(device, withPeers, n, n, 1);
  }
  Measure<float, float>(device, withPeers, 4097, 8191, 1);
  Measure<std::uint8_t, std::uint32_t>(device, withPeers, 46349, 46351, 1); // more than 2^31 voxels
  Measure<double, double>(device, withPeers, 16384, 16384, 1);
  Measure<float, float>(device, withPeers, 512, 512, 512);
  Measure<float, float>(device, withPeers, 1024, 1024, 1024);
  Measure<std::uint8_t, std::uint32_t>(device, withPeers, 1024, 1024, 1024);
  return 0;
}
