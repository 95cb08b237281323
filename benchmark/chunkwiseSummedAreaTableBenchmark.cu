/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times summed-area tables in device memory, by one pass and by blocks, against the device's copy of the same bytes,
// the transposing method, CUB's one-dimensional scan and, where its library is found at run time, NPP's integral. Every
// entry of tables of integers is compared with the exact one.
//
// Argument "alone": without the other methods. "tiny": only tables of a few tiles, for checking tools.
// And --csv FILE.
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseSummedAreaTableOperation.h"

#include <cub/device/device_scan.cuh>
#include <cuda_runtime.h>
#if defined(__linux__)
#  include <dlfcn.h>
#endif

#include <type_traits>

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

std::size_t runs = 9;

template <typename TBody>
double
MedianMilliseconds(TBody && body)
{
  cudaEvent_t begin;
  cudaEvent_t end;
  Check(cudaEventCreate(&begin));
  Check(cudaEventCreate(&end));
  std::vector<float> times;
  for (std::size_t i = 0; i < runs; ++i)
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
  return times[runs / 2 + (runs > 1 ? 1 : 0)];
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

/** Images are products of small numbers for each index, so that tables are products of those numbers' sums. */
__host__ __device__ unsigned int
Factor(std::int64_t index, int axis)
{
  const unsigned int most = axis == 2 ? 3 : 9;
  return static_cast<unsigned int>(index * (7 + 4 * axis) % 11) % most + 1;
}

template <typename TIn>
__global__ void
FillImage(TIn * image, std::int64_t x, std::int64_t y, std::int64_t z)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < x * y * z; i += step)
  {
    const unsigned int value = Factor(i % x, 0) * Factor(i / x % y, 1) * (z > 1 ? Factor(i / (x * y), 2) : 1);
    image[i] = static_cast<TIn>(value);
  }
}

template <typename TOut>
__global__ void
CountWrong(const TOut * table, std::int64_t x, std::int64_t y, std::int64_t z, const std::uint64_t * sums,
           unsigned long long * wrong)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < x * y * z; i += step)
  {
    const std::uint64_t exact = sums[i % x] * sums[x + i / x % y] * sums[x + y + i / (x * y)];
    if (table[i] != static_cast<TOut>(exact))
    {
      atomicAdd(wrong, 1ull);
    }
  }
}

/** Ends the program if an entry of a table of integers is wrong, or of floats whose sums are exact. */
template <typename TOut>
void
CheckTable(const TOut * table, const Box & box)
{
  if (!std::is_integral<TOut>::value && box.NumberOfVoxels() > 30000)
  {
    return;
  }
  std::vector<std::uint64_t> sums;
  for (int axis = 0; axis < 3; ++axis)
  {
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < box.Extent(axis); ++i)
    {
      sum += axis == 2 && box.Extent(2) == 1 ? 1 : Factor(i, axis);
      sums.push_back(sum);
    }
  }
  std::uint64_t *      entries = nullptr;
  unsigned long long * wrong = nullptr;
  unsigned long long   count = 0;
  Check(cudaMalloc(&entries, sums.size() * sizeof(sums[0])));
  Check(cudaMalloc(&wrong, sizeof(count)));
  Check(cudaMemcpy(entries, sums.data(), sums.size() * sizeof(sums[0]), cudaMemcpyHostToDevice));
  Check(cudaMemset(wrong, 0, sizeof(count)));
  CountWrong<<<4096, 256>>>(table, box.Extent(0), box.Extent(1), box.Extent(2), entries, wrong);
  Check(cudaGetLastError());
  Check(cudaMemcpy(&count, wrong, sizeof(count), cudaMemcpyDeviceToHost));
  Check(cudaFree(entries));
  Check(cudaFree(wrong));
  if (count > 0)
  {
    std::fprintf(stderr, "%llu entries are wrong\n", count);
    std::exit(1);
  }
}

/** NPP's call for bytes, from its library of this runtime's version; its context is the library's documented one. */
struct NppContext
{
  cudaStream_t stream;
  int          device;
  int          processors;
  int          threadsOfProcessor;
  int          threadsOfBlock;
  std::size_t  sharedOfBlock;
  int          major;
  int          minor;
  unsigned int streamFlags;
  int          reserved;
};
struct NppSize
{
  int width;
  int height;
};
using NppIntegral = int (*)(const std::uint8_t *, int, std::int32_t *, int, NppSize, std::int32_t, NppContext);

NppIntegral
FindNpp()
{
#if defined(__linux__)
  char name[64];
  std::snprintf(name, sizeof(name), "libnppist.so.%d", CUDART_VERSION / 1000);
  void * const library = dlopen(name, RTLD_NOW);
  return library ? reinterpret_cast<NppIntegral>(dlsym(library, "nppiIntegral_8u32s_C1R_Ctx")) : nullptr;
#else
  return nullptr;
#endif
}

/** Milliseconds of NPP's integral; 0 without it. */
double
TimeNpp(const std::uint8_t * in, std::int64_t x, std::int64_t y)
{
  static const NppIntegral integral = FindNpp();
  if (!integral)
  {
    return 0;
  }
  NppContext     context{};
  cudaDeviceProp device{};
  Check(cudaGetDeviceProperties(&device, 0));
  context.processors = device.multiProcessorCount;
  context.threadsOfProcessor = device.maxThreadsPerMultiProcessor;
  context.threadsOfBlock = device.maxThreadsPerBlock;
  context.sharedOfBlock = device.sharedMemPerBlock;
  context.major = device.major;
  context.minor = device.minor;
  // Its table has a row and a column of zeros more, and steps that are multiples of 4 bytes.
  std::int32_t * table = nullptr;
  const auto     step = static_cast<std::size_t>(x + 32) * sizeof(*table);
  Check(cudaMalloc(&table, step * static_cast<std::size_t>(y + 1)));
  const NppSize size{ static_cast<int>(x), static_cast<int>(y) };
  int           status = 0;
  const double  time =
    MedianMilliseconds([&] { status |= integral(in, size.width, table, static_cast<int>(step), size, 0, context); });
  Check(cudaFree(table));
  if (status != 0)
  {
    std::fprintf(stderr, "nppiIntegral gives %d\n", status);
    return 0;
  }
  return time;
}

template <typename TIn, typename TOut>
double
TimeTable(Device & device, const Box & box, TableMethod method, TIn * in, TOut * out)
{
  SummedAreaTableOperation operation;
  operation.image = box.upper;
  operation.summedAxes = box.Extent(2) > 1 ? 3 : 2;
  operation.modular = true;
  operation.method = method;
  const BufferView  input = DenseView(in, PixelTypeOf<TIn>(), box);
  const BufferView  output = DenseView(out, PixelTypeOf<TOut>(), box);
  WholeImageCall    run(device.GetKernels(), operation, { input }, output);
  void *            scratch = nullptr;
  void *            carry = nullptr;
  const std::size_t carryBytes = operation.GetCarryBytes(box, { input.kind }, output.kind);
  Check(cudaMalloc(&scratch, run.call.scratchBytes));
  Check(cudaMalloc(&carry, carryBytes));
  Check(cudaMemset(carry, 0, carryBytes));
  run.call.scratch = scratch;
  run.call.sideIn = carry;
  run.call.sideInBytes = carryBytes;
  Check(cudaMemset(out, 0xff, output.NumberOfBytes()));
  const double time = MedianMilliseconds([&] { run.kernel.run(run.call); });
  CheckTable(out, box);
  Check(cudaFree(scratch));
  Check(cudaFree(carry));
  return time;
}

template <typename TIn, typename TOut>
void
Measure(Report & report, Device & device, bool withPeers, std::int64_t x, std::int64_t y, std::int64_t z)
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
  FillImage<<<4096, 256>>>(in, x, y, z);
  Check(cudaGetLastError());
  const double onePass = TimeTable(device, box, TableMethod::SinglePass, in, out);
  const double blocks = TimeTable(device, box, TableMethod::Blocks, in, out);
  Reference    transposing{ 0, "transposing" };
  Reference    scan{ 0, "CUB's 1-D scan" };
  Reference    npp{ 0, "NPP" };

  if (withPeers && z == 1 && x == y && x % 32 == 0)
  {
    TOut * other = nullptr;
    Check(cudaMalloc(&other, static_cast<std::size_t>(n) * sizeof(TOut)));
    const dim3 grid(static_cast<unsigned int>(x / 32), static_cast<unsigned int>(y / 32));
    transposing.value = MedianMilliseconds([&] {
      ScanRows<<<static_cast<unsigned int>(y), 256>>>(in, other, x);
      Transpose<<<grid, dim3(32, 8)>>>(other, out, x);
      ScanRows<<<static_cast<unsigned int>(y), 256>>>(out, other, x);
      Transpose<<<grid, dim3(32, 8)>>>(other, out, x);
    });
    Check(cudaFree(other));
  }
  if (withPeers)
  {
    std::size_t scanBytes = 0;
    Check(cub::DeviceScan::InclusiveSum(nullptr, scanBytes, in, out, n));
    void * scanScratch = nullptr;
    Check(cudaMalloc(&scanScratch, scanBytes));
    scan.value = MedianMilliseconds([&] { Check(cub::DeviceScan::InclusiveSum(scanScratch, scanBytes, in, out, n)); });
    Check(cudaFree(scanScratch));
  }
  if constexpr (std::is_same<TIn, std::uint8_t>::value)
  {
    npp.value = withPeers && z == 1 ? TimeNpp(in, x, y) : 0;
  }
  Check(cudaFree(memory));
  const std::string kinds =
    std::string(PixelTypeName(PixelTypeOf<TIn>())) + " to " + PixelTypeName(PixelTypeOf<TOut>());
  const std::string size = SizeName(box.Extents()) + (z > 1 ? ", 3 axes" : "");
  const Reference   limit{ copy, "device copy" };
  // Tables of floats have a line for each size.
  const std::string row =
    "table of " + kinds + (kinds == "float32 to float32" ? ", " + size + "; one pass" : "; " + size);
  report.Add("table", row, onePass, "ms", { scan, npp, transposing }, limit);
  report.Add("table", "table by blocks; " + kinds + ", " + size, blocks, "ms", { transposing }, limit);
}

/** Tables of one tile, of several, and of parts of tiles. */
void
MeasureTiny(Report & report, Device & device)
{
  Measure<float, float>(report, device, false, 128, 64, 1);
  Measure<float, float>(report, device, false, 141, 71, 1);
  Measure<float, float>(report, device, false, 140, 150, 1);
  Measure<float, double>(report, device, false, 130, 70, 1);
  Measure<std::uint8_t, std::uint32_t>(report, device, false, 137, 131, 1);
  Measure<std::uint16_t, std::uint64_t>(report, device, false, 144, 131, 1);
  Measure<float, float>(report, device, false, 132, 66, 3);
}

} // namespace

int
main(int argc, char ** argv)
{
  Report      report(argc, argv);
  const bool  withPeers = argc < 2 || std::strcmp(argv[1], "alone") != 0;
  std::string reason;
  const auto  backend = GetCudaBackend(&reason);
  if (!backend)
  {
    std::fprintf(stderr, "no CUDA device: %s\n", reason.c_str());
    return 1;
  }
  Device & device = *backend->GetDevices().front();
  report.SetDevice(device.GetDescription().name);
  if (argc > 1 && std::strcmp(argv[1], "tiny") == 0)
  {
    runs = 1;
    MeasureTiny(report, device);
    return 0;
  }
  for (const std::int64_t n : { 1024, 2048, 4096, 8192, 16384, 32768 })
  {
    Measure<float, float>(report, device, withPeers, n, n, 1);
  }
  for (const std::int64_t n : { 16384, 32768 })
  {
    Measure<std::uint8_t, std::uint32_t>(report, device, withPeers, n, n, 1);
    Measure<std::uint16_t, std::uint64_t>(report, device, withPeers, n, n, 1);
    Measure<float, double>(report, device, withPeers, n, n, 1);
  }
  Measure<float, float>(report, device, withPeers, 4097, 8191, 1);
  Measure<std::uint8_t, std::uint32_t>(report, device, withPeers, 46349, 46351, 1); // more than 2^31 voxels
  Measure<double, double>(report, device, withPeers, 16384, 16384, 1);
  Measure<float, float>(report, device, withPeers, 512, 512, 512);
  Measure<float, float>(report, device, withPeers, 1024, 1024, 1024);
  Measure<std::uint8_t, std::uint32_t>(report, device, withPeers, 1024, 1024, 1024);
  return 0;
}
