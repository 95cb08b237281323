/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times statistics, histograms and medians in device memory beside what CUB has for them: DeviceReduce,
// DeviceHistogram, DeviceSegmentedSort and BlockRadixSort. The results are compared, and the program fails where they
// differ.
//
// Arguments: "tiny": only a small image, for checking tools. And --csv FILE.
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseOrdinal.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseStatisticsOperation.h"
#include "chunkwiseStatisticsSummary.h"

#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <cuda_runtime.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cmath>
#include <memory>

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

void
Demand(bool isSame, const char * what)
{
  if (!isSame)
  {
    std::fprintf(stderr, "%s differ\n", what);
    std::exit(1);
  }
}

template <typename T>
std::unique_ptr<T, void (*)(T *)>
Allocate(std::size_t count)
{
  T * memory = nullptr;
  Check(cudaMalloc(&memory, std::max<std::size_t>(count, 1) * sizeof(T)));
  return { memory, [](T * of) { Check(cudaFree(of)); } };
}

template <typename T>
std::vector<T>
Fetch(const T * from, std::size_t count)
{
  std::vector<T> values(count);
  Check(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

/** Milliseconds of what `body` enqueues on the default stream. */
template <typename TBody>
double
Milliseconds(TBody && body)
{
  const auto run = [&](int times) {
    for (int i = 0; i < times; ++i)
    {
      body();
    }
    Check(cudaDeviceSynchronize());
  };
  const int times = WarmMedianSeconds(1, [&] { run(1); }) > 0.02 ? 1 : 10;
  return WarmMedianSeconds(5, [&] { run(times); }) * 1e3 / times;
}

/** Milliseconds of a call of CUB, which first says what scratch it needs. */
template <typename TCall>
double
CubMilliseconds(TCall && call)
{
  std::size_t bytes = 0;
  Check(call(nullptr, bytes));
  const auto scratch = Allocate<char>(bytes);
  return Milliseconds([&] { Check(call(scratch.get(), bytes)); });
}

/** Hash values: 0 to 1677 and a fraction; of bytes, to 167. */
template <typename TPixel>
__global__ void
Fill(TPixel * image, std::int64_t n)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
  {
    const auto bits = static_cast<std::uint32_t>((static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15u) >> 40);
    image[i] = static_cast<TPixel>(static_cast<float>(bits) * (sizeof(TPixel) > 1 ? 1e-4F : 1e-5F));
  }
}

/** The values that one reduction of CUB gathers, beside ours. */
struct Moments
{
  double sum;
  double squares;
  float  minimum;
  float  maximum;
};
struct MomentsOfVoxel
{
  template <typename TPixel>
  __device__ Moments
  operator()(TPixel value) const
  {
    const auto real = static_cast<double>(value);
    return { real, real * real, static_cast<float>(value), static_cast<float>(value) };
  }
};
struct JoinMoments
{
  __device__ Moments
  operator()(const Moments & a, const Moments & b) const
  {
    return { a.sum + b.sum, a.squares + b.squares, min(a.minimum, b.minimum), max(a.maximum, b.maximum) };
  }
};

/** A device image of hash values. */
template <typename TPixel>
struct Image
{
  Box                                         box;
  std::int64_t                                n;
  std::unique_ptr<TPixel, void (*)(TPixel *)> voxels;

  explicit Image(const Coordinates & extent)
    : box(Box::FromExtent(extent))
    , n(box.NumberOfVoxels())
    , voxels(Allocate<TPixel>(static_cast<std::size_t>(n)))
  {
    Fill<<<4096, 256>>>(voxels.get(), n);
    Check(cudaGetLastError());
  }
  BufferView
  View() const
  {
    return DenseView(voxels.get(), PixelTypeOf<TPixel>(), box);
  }
  std::string
  Name() const
  {
    return SizeName(box.Extents()) + " " + PixelTypeName(PixelTypeOf<TPixel>());
  }
};

/** Milliseconds of our summary of an image, which it leaves in `summary`. */
template <typename TPixel>
double
TimeSummary(Device & device, const SummaryOperation & operation, const Image<TPixel> & image,
            std::vector<std::uint64_t> & summary)
{
  WholeImageCall    run(device.GetKernels(), operation, { image.View() }, image.View(), 1, &KernelSet::summarize);
  const std::size_t bytes =
    operation.GetSummaryBytes(image.box, std::vector<PixelType>{ PixelTypeOf<TPixel>() }, PixelTypeOf<TPixel>());
  const auto scratch = Allocate<char>(run.call.scratchBytes);
  const auto out = Allocate<std::uint64_t>(bytes / sizeof(std::uint64_t));
  run.call.scratch = scratch.get();
  run.call.sideOut = out.get();
  run.call.sideOutBytes = bytes;
  const double time = Milliseconds([&] { run.kernel.run(run.call); });
  summary = Fetch(out.get(), bytes / sizeof(std::uint64_t));
  return time;
}

template <typename TPixel>
void
MeasureStatistics(Report & report, Device & device, const Coordinates & extent)
{
  const Image<TPixel>        image(extent);
  const TPixel * const       in = image.voxels.get();
  const auto                 count = static_cast<std::size_t>(image.n);
  const auto                 copied = Allocate<TPixel>(count);
  std::vector<std::uint64_t> summary;
  // A copy reads and writes, a summary reads.
  const Reference limit{ Milliseconds([&] {
                           Check(cudaMemcpyAsync(copied.get(), in, count * sizeof(TPixel), cudaMemcpyDeviceToDevice));
                         }) /
                           2,
                         "half of a device copy" };

  const double      ours = TimeSummary(device, StatisticsOperation(), image, summary);
  const auto        moments = Allocate<Moments>(1);
  const double      one = CubMilliseconds([&](void * scratch, std::size_t & bytes) {
    const auto values = thrust::make_transform_iterator(in, MomentsOfVoxel());
    return cub::DeviceReduce::Reduce(
      scratch, bytes, values, moments.get(), image.n, JoinMoments(), Moments{ 0, 0, INFINITY, -INFINITY });
  });
  const auto        least = Allocate<TPixel>(1);
  const double      minimum = CubMilliseconds([&](void * scratch, std::size_t & bytes) {
    return cub::DeviceReduce::Min(scratch, bytes, in, least.get(), image.n);
  });
  StatisticsSummary of;
  Demand(summary.size() * sizeof(summary[0]) == sizeof(of), "sizes of summaries");
  std::memcpy(&of, summary.data(), sizeof(of));
  const Moments      sums = Fetch(moments.get(), 1)[0];
  const std::int64_t finite = of.finite;
  Demand(finite == image.n && of.minimum == OrdinalOf(Fetch(least.get(), 1)[0]) &&
           of.minimum == OrdinalOf(static_cast<TPixel>(sums.minimum)) &&
           of.maximum == OrdinalOf(static_cast<TPixel>(sums.maximum)),
         "statistics");
  report.Add("statistics",
             "sums, squares, minimum, maximum; " + image.Name(),
             ours,
             "ms",
             { { one, "cub::DeviceReduce, one reduction" }, { minimum, "cub::DeviceReduce::Min alone" } },
             limit);

  HistogramOperation histogram;
  histogram.upper = sizeof(TPixel) > 1 ? 2048 : 256;
  for (const int bins : { 256, 4096 })
  {
    histogram.bins = bins;
    const double oursOfBins = TimeSummary(device, histogram, image, summary);
    const auto   counts = Allocate<unsigned int>(static_cast<std::size_t>(bins));
    // Levels of integers are integers.
    using Level = typename std::conditional<std::is_integral<TPixel>::value, int, float>::type;
    const bool   isWhole = !std::is_integral<TPixel>::value || bins <= static_cast<int>(histogram.upper);
    const double cubs = !isWhole ? 0 : CubMilliseconds([&](void * scratch, std::size_t & bytes) {
      return cub::DeviceHistogram::HistogramEven(
        scratch, bytes, in, counts.get(), bins + 1, Level(0), static_cast<Level>(histogram.upper), image.n);
    });
    if (isWhole)
    {
      const std::vector<unsigned int> other = Fetch(counts.get(), static_cast<std::size_t>(bins));
      Demand(std::equal(other.begin(), other.end(), summary.begin()), "histograms");
    }
    report.Add("statistics",
               "histogram of " + std::to_string(bins) + " bins; " + image.Name(),
               oursOfBins,
               "ms",
               { { cubs, "cub::DeviceHistogram" } },
               limit);
  }
}

/** Tap `t` of the window around voxel `i`; beyond the edge, the nearest voxel. */
template <int VRadius, typename TPixel>
__device__ TPixel
TapOf(const TPixel * image, int size, std::int64_t i, int t)
{
  constexpr int extent = 2 * VRadius + 1;
  const auto    at = [&](std::int64_t position, int tap) {
    return min(max(static_cast<int>(position) + tap - VRadius, 0), size - 1);
  };
  const int x = at(i % size, t % extent);
  const int y = at(i / size % size, t / extent % extent);
  const int z = at(i / size / size, t / (extent * extent));
  return image[(static_cast<std::int64_t>(z) * size + y) * size + x];
}

template <int VRadius>
constexpr int WindowTaps = (2 * VRadius + 1) * (2 * VRadius + 1) * (2 * VRadius + 1);

/** All windows one after the other. */
template <int VRadius, typename TPixel>
__global__ void
GatherWindows(const TPixel * image, int size, TPixel * windows)
{
  constexpr int      taps = WindowTaps<VRadius>;
  const std::int64_t n = static_cast<std::int64_t>(size) * size * size * taps;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
  {
    windows[i] = TapOf<VRadius>(image, size, i / taps, static_cast<int>(i % taps));
  }
}
template <int VRadius, typename TPixel>
__global__ void
TakeMedians(const TPixel * sorted, std::int64_t n, TPixel * medians)
{
  constexpr int      taps = WindowTaps<VRadius>;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n)
  {
    medians[i] = sorted[i * taps + taps / 2];
  }
}

/** A block sorts a window. */
template <int VRadius, typename TPixel>
__global__ void
MedianByBlock(const TPixel * image, int size, TPixel * medians)
{
  constexpr int taps = WindowTaps<VRadius>;
  constexpr int threads = (taps + 31) / 32 * 32;
  using Sort = cub::BlockRadixSort<TPixel, threads, 1>;
  __shared__ typename Sort::TempStorage storage;
  const std::int64_t                    i = blockIdx.x;
  TPixel                                key[1]{ cub::Traits<TPixel>::Max() };
  if (threadIdx.x < taps)
  {
    key[0] = TapOf<VRadius>(image, size, i, static_cast<int>(threadIdx.x));
  }
  Sort(storage).Sort(key);
  if (threadIdx.x == taps / 2)
  {
    medians[i] = key[0];
  }
}

struct TimesTaps
{
  int                 taps;
  __host__ __device__ std::int64_t
                      operator()(std::int64_t i) const
  {
    return i * taps;
  }
};

template <int VRadius, typename TPixel>
void
MeasureMedian(Report & report, Device & device, int size)
{
  constexpr int       taps = WindowTaps<VRadius>;
  const Image<TPixel> image(Coordinates{ { size, size, size, 1, 1 } });
  const auto          count = static_cast<std::size_t>(image.n);
  const auto          medians = Allocate<TPixel>(count);
  RankOperation       operation;
  operation.radius = { { VRadius, VRadius, VRadius, 0, 0 } };
  operation.boundary.mode = BoundaryMode::ZeroFluxNeumann;
  WholeImageCall run(
    device.GetKernels(), operation, { image.View() }, DenseView(medians.get(), PixelTypeOf<TPixel>(), image.box));
  const auto scratch = Allocate<char>(run.call.scratchBytes);
  run.call.scratch = scratch.get();
  const double              ours = Milliseconds([&] { run.kernel.run(run.call); });
  const std::vector<TPixel> results = Fetch(medians.get(), count);

  const auto   blocks = static_cast<unsigned int>(image.n);
  const double block = Milliseconds(
    [&] { MedianByBlock<VRadius><<<blocks, (taps + 31) / 32 * 32>>>(image.voxels.get(), size, medians.get()); });
  Check(cudaGetLastError());
  Demand(results == Fetch(medians.get(), count), "medians by BlockRadixSort");

  const auto windows = Allocate<TPixel>(count * taps);
  const auto sorted = Allocate<TPixel>(count * taps);
  const auto begins =
    thrust::make_transform_iterator(thrust::make_counting_iterator(std::int64_t{ 0 }), TimesTaps{ taps });
  std::size_t bytes = 0;
  const auto  sort = [&](void * memory) {
    Check(cub::DeviceSegmentedSort::SortKeys(
      memory, bytes, windows.get(), sorted.get(), image.n * taps, image.n, begins, begins + 1));
  };
  sort(nullptr);
  const auto   memory = Allocate<char>(bytes);
  const double segments = Milliseconds([&] {
    GatherWindows<VRadius><<<4096, 256>>>(image.voxels.get(), size, windows.get());
    sort(memory.get());
    TakeMedians<VRadius><<<(blocks + 255) / 256, 256>>>(sorted.get(), image.n, medians.get());
  });
  Check(cudaGetLastError());
  Demand(results == Fetch(medians.get(), count), "medians by DeviceSegmentedSort");
  report.Add("rank",
             "median by sorting, radius " + std::to_string(VRadius) + "; " + image.Name(),
             ours,
             "ms",
             { { block, "cub::BlockRadixSort" }, { segments, "cub::DeviceSegmentedSort of windows" } });
}

template <typename TPixel>
void
Measure(Report & report, Device & device, bool isTiny)
{
  const std::int64_t size = isTiny ? 33 : 512;
  MeasureStatistics<TPixel>(report, device, Coordinates{ { size, size, size, 1, 1 } });
  MeasureMedian<1, TPixel>(report, device, isTiny ? 9 : 128);
  MeasureMedian<2, TPixel>(report, device, isTiny ? 9 : 128);
}

} // namespace

int
main(int argc, char ** argv)
{
  Report      report(argc, argv);
  std::string reason;
  const auto  backend = GetCudaBackend(&reason);
  if (!backend)
  {
    std::fprintf(stderr, "no CUDA device: %s\n", reason.c_str());
    return 1;
  }
  Device & device = *backend->GetDevices().front();
  report.SetDevice(device.GetDescription().name);
  const bool isTiny = argc > 1 && std::strcmp(argv[1], "tiny") == 0;
  Measure<float>(report, device, isTiny);
  Measure<std::uint16_t>(report, device, isTiny);
  Measure<std::uint8_t>(report, device, isTiny);
  return 0;
}
