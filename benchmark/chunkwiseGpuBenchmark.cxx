/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times the kernels on a CUDA device: device-resident against the device's own copy, and host to host against the link.
#include "chunkwiseBenchmarkTime.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseHighPassOperation.h"
#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseLaplacianOperation.h"
#include "chunkwiseManager.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwiseOperations.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseSummedAreaTableOperation.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseVaryingConvolutionOperation.h"
#include "chunkwiseWienerOperation.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

using namespace chunkwise;

namespace
{

std::shared_ptr<Operation>
Mean(std::int64_t radius)
{
  auto operation = std::make_shared<MeanOperation>();
  for (int a = 0; a < 3; ++a)
  {
    operation->radius[a] = radius;
  }
  return operation;
}

std::shared_ptr<Operation>
Maximum(std::int64_t radius)
{
  auto operation = std::make_shared<ExtremumOperation>();
  operation->radius = { { radius, radius, radius, 0, 0 } };
  return operation;
}

std::shared_ptr<Operation>
Opening(std::int64_t radius)
{
  auto erosion = std::make_shared<ExtremumOperation>();
  erosion->radius = { { radius, radius, radius, 0, 0 } };
  erosion->minimum = true;
  auto operation = std::make_shared<SequenceOperation>();
  operation->stages = { erosion, Maximum(radius) };
  return operation;
}

std::shared_ptr<Operation>
Gaussian(double sigma)
{
  auto                operation = std::make_shared<SeparableOperation>();
  const auto          radius = static_cast<int>(std::ceil(4 * sigma));
  std::vector<double> weights;
  double              sum = 0;
  for (int i = -radius; i <= radius; ++i)
  {
    weights.push_back(std::exp(-0.5 * i * i / (sigma * sigma)));
    sum += weights.back();
  }
  for (auto & weight : weights)
  {
    weight /= sum;
  }
  for (int a = 0; a < 3; ++a)
  {
    operation->weights[a] = weights;
  }
  return operation;
}

/** The same, each axis through transforms. */
std::shared_ptr<Operation>
GaussianByTransforms(double sigma)
{
  const auto direct = std::static_pointer_cast<SeparableOperation>(Gaussian(sigma));
  auto       sequence = std::make_shared<SequenceOperation>();
  for (int a = 0; a < 3; ++a)
  {
    auto extent = Coordinates::Filled(1);
    auto center = Coordinates::Filled(0);
    extent[a] = static_cast<std::int64_t>(direct->weights[a].size());
    center[a] = extent[a] / 2;
    const auto stage = std::make_shared<ImageConvolutionOperation>();
    stage->kernel = std::make_shared<ConvolutionKernel>(extent, center, direct->weights[a]);
    stage->method = ConvolutionMethod::FFT;
    sequence->stages.push_back(stage);
  }
  return sequence;
}

std::shared_ptr<Operation>
Convolution(std::int64_t extent, ConvolutionMethod method, BoundaryMode mode)
{
  auto                operation = std::make_shared<ImageConvolutionOperation>();
  std::vector<double> weights(static_cast<std::size_t>(extent * extent * extent));
  for (std::size_t i = 0; i < weights.size(); ++i)
  {
    weights[i] = 1 + static_cast<double>(i % 7);
  }
  operation->kernel = std::make_shared<ConvolutionKernel>(Coordinates{ { extent, extent, extent, 1, 1 } },
                                                          Coordinates{ { extent / 2, extent / 2, extent / 2, 0, 0 } },
                                                          weights);
  operation->method = method;
  operation->boundary.mode = mode;
  return operation;
}

std::shared_ptr<Operation>
StandardDeviation(std::int64_t radius)
{
  auto operation = std::make_shared<VarianceOperation>();
  operation->radius = { { radius, radius, radius, 0, 0 } };
  operation->takesRoot = true;
  return operation;
}

std::shared_ptr<Operation>
Entropy(std::int64_t radius)
{
  auto operation = std::make_shared<EntropyOperation>();
  operation->radius = { { radius, radius, radius, 0, 0 } };
  operation->upper = 1678; // of the image's values
  return operation;
}

std::shared_ptr<Operation>
Laplacian(double sigma)
{
  auto operation = std::make_shared<LaplacianOperation>();
  for (int a = 0; a < 3; ++a)
  {
    operation->weights[a] = static_cast<const SeparableOperation &>(*Gaussian(sigma)).weights[a];
  }
  return operation;
}

std::shared_ptr<Operation>
HighPass(double sigma)
{
  auto operation = std::make_shared<HighPassOperation>();
  operation->smoothing = std::dynamic_pointer_cast<const SeparableOperation>(Gaussian(sigma));
  return operation;
}

std::shared_ptr<Operation>
Sequence()
{
  auto operation = std::make_shared<SequenceOperation>();
  operation->stages = { Gaussian(2), Mean(2), StandardDeviation(2) };
  return operation;
}

std::shared_ptr<Operation>
MedianOf(std::int64_t radius)
{
  auto operation = std::make_shared<RankOperation>();
  operation->radius = { { radius, radius, radius, 0, 0 } };
  return operation;
}

std::shared_ptr<Operation>
Wiener(std::int64_t radius)
{
  auto operation = std::make_shared<WienerOperation>();
  operation->radius = { { radius, radius, radius, 0, 0 } };
  operation->noise = 1e5; // about half of the image's variance
  return operation;
}

std::shared_ptr<Operation>
NonLocalMeans(std::int64_t search, std::int64_t patch)
{
  auto operation = std::make_shared<NonLocalMeansOperation>();
  operation->search = { { search, search, search, 0, 0 } };
  operation->patch = { { patch, patch, patch, 0, 0 } };
  operation->strength = 300;
  return operation;
}

std::shared_ptr<Operation>
GaussianOpeningMedian()
{
  const auto operation = std::make_shared<SequenceOperation>(static_cast<const SequenceOperation &>(*Opening(2)));
  operation->stages.insert(operation->stages.begin(), Gaussian(2));
  operation->stages.push_back(MedianOf(1));
  return operation;
}

struct Row
{
  const char *               name;
  std::shared_ptr<Operation> operation;
};

std::vector<Row>
Rows()
{
  return { { "mean radius 2", Mean(2) },
           { "mean radius 15", Mean(15) },
           { "Gaussian sigma 2", Gaussian(2) },
           { "Gaussian sigma 10", Gaussian(10) },
           { "std radius 2", StandardDeviation(2) },
           { "std radius 5", StandardDeviation(5) },
           { "maximum radius 2", Maximum(2) },
           { "maximum radius 15", Maximum(15) },
           { "opening radius 2", Opening(2) },
           { "median radius 1", MedianOf(1) },
           { "median radius 2", MedianOf(2) },
           { "median radius 5", MedianOf(5) },
           { "entropy radius 2", Entropy(2) },
           { "Wiener radius 2", Wiener(2) },
           { "LoG sigma 2", Laplacian(2) },
           { "highpass sigma 2", HighPass(2) },
           { "Gauss, mean, std", Sequence() } };
}

std::vector<Row>
GaussianRows()
{
  return { { "Gaussian sigma 5", Gaussian(5) },   { "by transforms", GaussianByTransforms(5) },
           { "Gaussian sigma 10", Gaussian(10) }, { "by transforms", GaussianByTransforms(10) },
           { "Gaussian sigma 20", Gaussian(20) }, { "by transforms", GaussianByTransforms(20) },
           { "Gaussian sigma 40", Gaussian(40) }, { "by transforms", GaussianByTransforms(40) } };
}

/** Windows of every size. */
std::vector<Row>
RankRows()
{
  return { { "median radius 3", MedianOf(3) },   { "median radius 4", MedianOf(4) },
           { "median radius 5", MedianOf(5) },   { "median radius 7", MedianOf(7) },
           { "median radius 10", MedianOf(10) }, { "median radius 15", MedianOf(15) },
           { "median radius 20", MedianOf(20) } };
}

std::vector<Row>
VarianceRows()
{
  return { { "std radius 1", StandardDeviation(1) },  { "std radius 2", StandardDeviation(2) },
           { "std radius 3", StandardDeviation(3) },  { "std radius 4", StandardDeviation(4) },
           { "std radius 5", StandardDeviation(5) },  { "std radius 8", StandardDeviation(8) },
           { "std radius 15", StandardDeviation(15) } };
}

std::vector<Row>
NonLocalRows()
{
  return { { "NLM 5^3, patch 3^3", NonLocalMeans(2, 1) } };
}

std::vector<Row>
ConvolutionRows()
{
  using Method = ConvolutionMethod;
  using Mode = BoundaryMode;
  return { { "FFT 65^3", Convolution(65, Method::FFT, Mode::Renormalized) },
           { "FFT 65^3, constant", Convolution(65, Method::FFT, Mode::Constant) },
           { "FFT 65^3, mirror", Convolution(65, Method::FFT, Mode::Mirror) },
           { "FFT 33^3", Convolution(33, Method::FFT, Mode::Renormalized) },
           { "FFT 129^3", Convolution(129, Method::FFT, Mode::Renormalized) },
           { "direct 3^3", Convolution(3, Method::Direct, Mode::Renormalized) },
           { "direct 4^3", Convolution(4, Method::Direct, Mode::Renormalized) },
           { "direct 5^3", Convolution(5, Method::Direct, Mode::Renormalized) },
           { "direct 7^3", Convolution(7, Method::Direct, Mode::Renormalized) },
           { "FFT 7^3", Convolution(7, Method::FFT, Mode::Renormalized) } };
}

/** Kernels of 100 x 100, all different, every `spacing` voxels. */
std::vector<Row>
VaryingRows(std::int64_t extent, std::int64_t spacing)
{
  std::vector<Row> rows;
  for (const VaryingOrder order : { VaryingOrder::ConvolveThenWeight, VaryingOrder::WeightThenConvolve })
  {
    auto operation = std::make_shared<VaryingConvolutionOperation>();
    operation->order = order;
    for (int a = 0; a < 2; ++a)
    {
      operation->nodes[a] = extent / spacing;
      operation->spacing[a] = static_cast<double>(spacing);
      operation->first[a] = static_cast<double>(spacing - 1) / 2;
    }
    for (std::int64_t node = 0; node < operation->nodes[0] * operation->nodes[1]; ++node)
    {
      std::vector<double> weights(100 * 100);
      for (std::size_t i = 0; i < weights.size(); ++i)
      {
        weights[i] = 1 + static_cast<double>((i + static_cast<std::size_t>(node)) % 1031);
      }
      operation->kernels.push_back(std::make_shared<ConvolutionKernel>(
        Coordinates{ { 100, 100, 1, 1, 1 } }, Coordinates{ { 50, 50, 0, 0, 0 } }, weights));
    }
    const bool filters = order == VaryingOrder::ConvolveThenWeight;
    if (spacing == 256)
    {
      rows.push_back({ filters ? "filter, every 256" : "spread, every 256", operation });
    }
    else
    {
      rows.push_back({ filters ? "filter, every 128" : "spread, every 128", operation });
    }
  }
  return rows;
}

/** Keeps tables for the benchmark's lifetime. */
class Tables : public DeviceTables
{
public:
  Tables(Device & device, StreamHandle stream)
    : m_Device(device)
    , m_Stream(stream)
  {}
  ~Tables() override
  {
    for (const auto & table : m_Tables)
    {
      m_Device.Free(table.second);
    }
  }
  const void *
  Get(const std::string & key, const void * data, std::size_t bytes) override
  {
    void *& table = m_Tables[key];
    if (!table)
    {
      table = m_Device.Allocate(bytes);
      m_Device.CopyToDevice(table, data, bytes, m_Stream);
      m_Device.Synchronize(m_Stream);
    }
    return table;
  }
  const void *
  GetMade(const std::string & key, std::size_t bytes, const std::function<void(void * memory)> & fill) override
  {
    void *& table = m_Tables[key];
    if (!table)
    {
      table = m_Device.Allocate(bytes);
      fill(table);
    }
    return table;
  }

private:
  Device &                      m_Device;
  StreamHandle                  m_Stream;
  std::map<std::string, void *> m_Tables;
};

/** Values from 0 to 1677 and a fraction, as `TPixel`; of bytes, to 167. */
/** Calls body(begin, end, thread) for a part of [0, count) in each of the machine's threads. */
template <typename TBody>
void
InThreads(std::size_t count, TBody && body)
{
  const unsigned int       threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> pool;
  for (unsigned int t = 0; t < threads; ++t)
  {
    pool.emplace_back([=] { body(count * t / threads, count * (t + 1) / threads, t); });
  }
  for (auto & thread : pool)
  {
    thread.join();
  }
}

template <typename TPixel>
void
FillRandom(void * data, std::size_t count)
{
  auto * const image = static_cast<TPixel *>(data);
  InThreads(count, [image](std::size_t begin, std::size_t end, unsigned int t) {
    std::uint32_t state = 1234567u + t;
    for (std::size_t i = begin; i < end; ++i)
    {
      state = state * 1664525u + 1013904223u;
      image[i] = static_cast<TPixel>(static_cast<float>(state >> 8) * (sizeof(TPixel) > 1 ? 1e-4f : 1e-5f));
    }
  });
}

void
CopyInThreads(void * to, const void * from, std::size_t bytes)
{
  InThreads(bytes, [=](std::size_t begin, std::size_t end, unsigned int) {
    std::memcpy(static_cast<char *>(to) + begin, static_cast<const char *>(from) + begin, end - begin);
  });
}

/** Differs where bits do, but for bad luck. */
std::uint64_t
CheckSum(const void * data, std::size_t bytes)
{
  std::atomic<std::uint64_t> sum{ 0 };
  InThreads(bytes / sizeof(std::uint64_t), [&sum, data](std::size_t begin, std::size_t end, unsigned int) {
    const auto * const words = static_cast<const std::uint64_t *>(data);
    std::uint64_t      own = 0;
    for (std::size_t i = begin; i < end; ++i)
    {
      own += (words[i] ^ i) * 0x9E3779B97F4A7C15u;
    }
    sum += own;
  });
  return sum;
}

struct Image
{
  Box               box;
  PixelKind         kind;
  std::vector<char> in;
  std::vector<char> out;

  Image(const Coordinates & extent, PixelKind theKind)
    : box(Box::FromExtent(extent))
    , kind(theKind)
    , in(static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(kind))
    , out(in.size())
  {
    const auto count = static_cast<std::size_t>(box.NumberOfVoxels());
    switch (kind)
    {
      case PixelKind::Float32:
        FillRandom<float>(in.data(), count);
        break;
      case PixelKind::Float64:
        FillRandom<double>(in.data(), count);
        break;
      case PixelKind::UInt16:
        FillRandom<std::uint16_t>(in.data(), count);
        break;
      default:
        FillRandom<std::uint8_t>(in.data(), count);
    }
  }
};

void
DeviceResident(Device & device, const Image & image, const std::vector<Row> & rows)
{
  const StreamHandle stream = device.CreateStream();
  const Box          box = image.box;
  const std::size_t  bytes = image.in.size();
  void * const       in = device.Allocate(bytes);
  void * const       out = device.Allocate(bytes);
  device.CopyToDevice(in, image.in.data(), bytes, stream);
  device.Synchronize(stream);
  constexpr int launches = 10;
  const double  copy = WarmMedianSeconds(7,
                                        [&] {
                                          for (int i = 0; i < launches; ++i)
                                          {
                                            device.CopyOnDevice(out, in, bytes, stream);
                                          }
                                          device.Synchronize(stream);
                                        }) /
                      launches;
  std::printf("\n%s, device-resident, %s %s; device copy %.3f ms (%.0f GB/s read + written)\n",
              device.GetDescription().name.c_str(),
              ToString(box.Extents()).c_str(),
              PixelKindName(image.kind),
              copy * 1e3,
              2e-9 * static_cast<double>(bytes) / copy);
  std::printf("%-20s %10s %14s %12s\n", "", "ours ms", "times the copy", "memory MB");
  {
    Tables tables(device, stream);
    for (const Row & row : rows)
    {
      const Kernel & kernel = *device.GetKernels().Find(row.operation->GetName());
      ChunkShape     shape;
      shape.inputBox = shape.outputBox = shape.image = box;
      shape.inputKinds[0] = shape.outputKind = image.kind;
      shape.numberOfInputs = 1;
      shape.kernels = &device.GetKernels();
      KernelCall call;
      call.operation = row.operation.get();
      call.inputs[0] = DenseView(in, image.kind, box);
      call.numberOfInputs = 1;
      call.output = DenseView(out, image.kind, box);
      call.writable = call.image = box;
      call.scratchBytes = kernel.scratchBytes ? kernel.scratchBytes(*row.operation, shape) : 0;
      call.scratch = device.Allocate(std::max<std::size_t>(call.scratchBytes, 1));
      call.tables = &tables;
      const auto launch = [&](int times) {
        for (int i = 0; i < times; ++i)
        {
          device.Launch(kernel, call, stream);
        }
        device.Synchronize(stream);
      };
      const double one = WarmMedianSeconds(1, [&] { launch(1); });
      const int    times = one > 0.02 ? 1 : launches;
      const double ours = WarmMedianSeconds(one > 0.02 ? 3 : 7, [&] { launch(times); }) / times;
      std::printf("%-20s %10.3f %14.2f %12.0f\n",
                  row.name,
                  ours * 1e3,
                  ours / copy,
                  1e-6 * static_cast<double>(2 * bytes + call.scratchBytes));
      device.Free(call.scratch);
    }
  }
  device.Free(in);
  device.Free(out);
  device.DestroyStream(stream);
}

/** The link's rate with pinned memory, one way and both ways at once. */
void
MeasureLink(Device & device, double & oneWay, double & bothWays)
{
  constexpr std::size_t bytes = std::size_t{ 512 } << 20;
  const StreamHandle    up = device.CreateStream();
  const StreamHandle    down = device.CreateStream();
  void * const          a = device.Allocate(bytes);
  void * const          b = device.Allocate(bytes);
  void * const          in = device.AllocatePinned(bytes);
  void * const          out = device.AllocatePinned(bytes);
  oneWay = bytes / WarmMedianSeconds(5, [&] {
             device.CopyToDevice(a, in, bytes, up);
             device.Synchronize(up);
           });
  bothWays = 2 * bytes / WarmMedianSeconds(5, [&] {
               device.CopyToDevice(a, in, bytes, up);
               device.CopyToHost(out, b, bytes, down);
               device.Synchronize(up);
               device.Synchronize(down);
             });
  device.Free(a);
  device.Free(b);
  device.FreePinned(in);
  device.FreePinned(out);
  device.DestroyStream(up);
  device.DestroyStream(down);
}

ExecutionReport
Execute(const BufferView & in, const BufferView & out, const std::shared_ptr<Operation> & operation, std::size_t memory,
        std::vector<int> devices)
{
  ExecutionRequest request;
  request.operation = operation;
  request.image = request.region = in.box;
  request.inputs.push_back(in);
  request.output = out;
  request.backend = BackendChoice::CUDA;
  request.budgets.device = memory;
  request.devices = std::move(devices);
  return Manager::GetGlobal().Execute(request);
}

ExecutionReport
Execute(Image & image, const std::shared_ptr<Operation> & operation, std::size_t memory, std::vector<int> devices)
{
  return Execute(DenseView(image.in.data(), image.kind, image.box),
                 DenseView(image.out.data(), image.kind, image.box),
                 operation,
                 memory,
                 std::move(devices));
}

void
HostToHost(Device & device, PixelKind kind)
{
  double oneWay = 0;
  double bothWays = 0;
  MeasureLink(device, oneWay, bothWays);
  std::printf("\nHost to host, pageable memory; link %.1f GB/s one way, %.1f both ways together\n",
              oneWay * 1e-9,
              bothWays * 1e-9);
  Image        image(Coordinates{ { 512, 512, 512, 1, 1 } }, kind);
  const double limit = 2.0 * static_cast<double>(image.in.size()) / bothWays;
  for (const std::size_t memory : { std::size_t{ 0 }, std::size_t{ 1 } << 30 })
  {
    std::printf("512^3 %s, %s; transfers alone %.2f ms\n",
                PixelKindName(kind),
                memory ? "device budget 1 GiB" : "device budget not limited",
                limit * 1e3);
    std::printf("%-20s %10s %18s %8s %12s\n", "", "ours ms", "times transfers", "chunks", "peak MiB");
    for (const Row & row : Rows())
    {
      ExecutionReport report;
      const double    ours = WarmMedianSeconds(7, [&] { report = Execute(image, row.operation, memory, { 0 }); });
      std::printf("%-20s %10.2f %18.2f %8zu %12.0f\n",
                  row.name,
                  ours * 1e3,
                  ours / limit,
                  report.plan.chunks.size(),
                  static_cast<double>(report.peakDevice) / 1048576);
    }
  }
}

/** Seconds to copy an image in the host's memory, all threads: what staging cannot beat, however many devices. */
double
HostCopy(void * to, const void * from, std::size_t bytes)
{
  return WarmMedianSeconds(3, [&] { CopyInThreads(to, from, bytes); });
}

std::vector<int>
FirstDevices(std::size_t count)
{
  std::vector<int> devices;
  for (std::size_t d = 0; d < count; ++d)
  {
    devices.push_back(static_cast<int>(d));
  }
  return devices;
}

void
Large(Device & device, std::size_t devices)
{
  double oneWay = 0;
  double bothWays = 0;
  MeasureLink(device, oneWay, bothWays);
  Image        image(Coordinates{ { 2048, 2048, 1024, 1, 1 } }, PixelKind::Float32);
  const double bytes = static_cast<double>(image.in.size());
  std::printf(
    "\n2048 x 2048 x 1024 float (16 GiB), host to host, device budget 2 GiB; link one way %.1f GB/s, a copy in "
    "the host's memory %.1f GB/s on %u threads\n",
    oneWay * 1e-9,
    bytes / HostCopy(image.out.data(), image.in.data(), image.in.size()) * 1e-9,
    std::thread::hardware_concurrency());
  double one = 0;
  for (std::size_t count = 1; count <= devices; count *= 2)
  {
    const std::vector<int> used = FirstDevices(count);
    for (const Row & row : { Rows()[0], Rows()[2], Row{ "Gaussian, opening, median", GaussianOpeningMedian() } })
    {
      ExecutionReport report;
      const double    ours =
        WarmMedianSeconds(3, [&] { report = Execute(image, row.operation, std::size_t{ 2 } << 30, used); });
      one = count == 1 && row.name == std::string("Gaussian sigma 2") ? ours : one;
      std::printf("%zu device(s) %-18s %8.3f s  %6.1f GB/s each way, %5.1f%% of the link one way, %.2f times the "
                  "transfers alone%s; bytes to device / image %.4f, %zu chunks, peak %.0f MiB\n",
                  count,
                  row.name,
                  ours,
                  bytes / ours * 1e-9,
                  100 * bytes / ours / oneWay,
                  ours * bothWays / (2 * bytes),
                  count > 1 && one > 0 && row.name == std::string("Gaussian sigma 2")
                    ? (", " + std::to_string(one / ours) + " times one device").c_str()
                    : "",
                  report.bytesToDevice / bytes,
                  report.plan.chunks.size(),
                  static_cast<double>(report.peakDevice) / 1048576);
    }
  }
}

constexpr std::size_t LargeBytes = std::size_t{ 16 } << 30;

std::shared_ptr<Operation>
Table(const Coordinates & extent)
{
  const auto operation = std::make_shared<SummedAreaTableOperation>();
  operation->image = extent;
  operation->summedAxes = extent[2] > 1 ? 3 : 2;
  return operation;
}

/** Summed-area tables of 16 GiB, host to host, from and to `in` and `out`, and a mean for comparison. */
void
LargeTable(const char * memory, Device & device, std::size_t devices, void * in, void * out)
{
  double oneWay = 0;
  double bothWays = 0;
  MeasureLink(device, oneWay, bothWays);
  const auto bytes = static_cast<double>(LargeBytes);
  std::printf(
    "\n16 GiB float, host to host, %s memory, device budget 2 GiB; link one way %.1f GB/s, both ways %.1f GB/s "
    "together, a copy in the host's memory %.1f GB/s on %u threads\n",
    memory,
    oneWay * 1e-9,
    bothWays * 1e-9,
    bytes / HostCopy(out, in, LargeBytes) * 1e-9,
    std::thread::hardware_concurrency());
  for (const Coordinates & extent :
       { Coordinates{ { 65536, 65536, 1, 1, 1 } }, Coordinates{ { 2048, 2048, 1024, 1, 1 } } })
  {
    const Box box = Box::FromExtent(extent);
    for (std::size_t count = 1; count <= devices; count *= 2)
    {
      const std::vector<int> used = FirstDevices(count);
      for (const Row & row : { Row{ "mean radius 2", Mean(2) }, Row{ "table", Table(extent) } })
      {
        ExecutionReport report;
        const double    ours = WarmMedianSeconds(3, [&] {
          report = Execute(DenseView(in, PixelKind::Float32, box),
                           DenseView(out, PixelKind::Float32, box),
                           row.operation,
                           std::size_t{ 2 } << 30,
                           used);
        });
        std::printf(
          "%zu device(s), %d-D %-14s %7.3f s, %5.1f GB/s both ways together, %5.1f%% of the link's; %zu chunks, "
          "peak %.0f MiB, check sum %016llx\n",
          count,
          extent[2] > 1 ? 3 : 2,
          row.name,
          ours,
          2 * bytes / ours * 1e-9,
          200 * bytes / ours / bothWays,
          report.plan.chunks.size(),
          static_cast<double>(report.peakDevice) / 1048576,
          static_cast<unsigned long long>(CheckSum(out, LargeBytes)));
      }
    }
  }
}

/** The exact result at a voxel, in Renormalized mode. */
template <typename TPixel>
double
DirectConvolution(const Image & image, const ConvolutionKernel & kernel, const Coordinates & index)
{
  const auto * const pixels = reinterpret_cast<const TPixel *>(image.in.data());
  const Coordinates  n = image.box.Extents();
  double             sum = 0;
  double             inside = 0;
  std::size_t        weight = 0;
  for (std::int64_t z = 0; z < kernel.GetExtent()[2]; ++z)
  {
    for (std::int64_t y = 0; y < kernel.GetExtent()[1]; ++y)
    {
      for (std::int64_t x = 0; x < kernel.GetExtent()[0]; ++x, ++weight)
      {
        const std::int64_t i = index[0] + kernel.GetCenter()[0] - x;
        const std::int64_t j = index[1] + kernel.GetCenter()[1] - y;
        const std::int64_t k = index[2] + kernel.GetCenter()[2] - z;
        if (i >= 0 && i < n[0] && j >= 0 && j < n[1] && k >= 0 && k < n[2])
        {
          sum += kernel.GetWeights()[weight] * static_cast<double>(pixels[i + n[0] * (j + n[1] * k)]);
          inside += kernel.GetWeights()[weight];
        }
      }
    }
  }
  return sum * kernel.GetSum() / inside;
}

/** The relative L2 error of transforms at sampled voxels, an eighth of them at the image's faces. */
template <typename TPixel>
void
Accuracy(std::int64_t extent, std::int64_t kernelExtent)
{
  Image      image(Coordinates{ { extent, extent, extent, 1, 1 } }, PixelKindOf<TPixel>());
  const auto operation = Convolution(kernelExtent, ConvolutionMethod::FFT, BoundaryMode::Renormalized);
  Execute(image, operation, 0, { 0 });
  const auto & kernel = *static_cast<const ImageConvolutionOperation &>(*operation).kernel;
  std::size_t  state = 1;
  double       error = 0;
  double       norm = 0;
  double       largest = 0;
  for (int sample = 0; sample < 256; ++sample)
  {
    Coordinates index{};
    for (int a = 0; a < 3; ++a)
    {
      state = state * 6364136223846793005u + 1442695040888963407u;
      index[a] = static_cast<std::int64_t>((state >> 33) % static_cast<std::size_t>(extent));
    }
    index[0] = sample % 8 == 0 ? 0 : index[0];
    const double exact = DirectConvolution<TPixel>(image, kernel, index);
    const auto   at = static_cast<std::size_t>(index[0] + extent * (index[1] + extent * index[2]));
    const double difference = static_cast<double>(reinterpret_cast<const TPixel *>(image.out.data())[at]) - exact;
    error += difference * difference;
    norm += exact * exact;
    largest = std::max(largest, std::abs(difference / exact));
  }
  std::printf(
    "FFT %lld^3 with %lld^3, %s, against direct sums in double at 256 voxels: relative L2 error %.2g, largest "
    "relative error %.2g\n",
    static_cast<long long>(extent),
    static_cast<long long>(kernelExtent),
    PixelKindName(image.kind),
    std::sqrt(error / norm),
    largest);
}

/** A convolution of 8 GiB, host to host. */
void
LargeConvolution(Device & device, std::size_t devices)
{
  double oneWay = 0;
  double bothWays = 0;
  MeasureLink(device, oneWay, bothWays);
  Image        image(Coordinates{ { 1024, 1024, 2048, 1, 1 } }, PixelKind::Float32);
  const double limit = 2.0 * static_cast<double>(image.in.size()) / bothWays;
  std::printf("\n1024 x 1024 x 2048 float (8 GiB), host to host; transfers alone %.3f s with one device, a copy in the "
              "host's memory %.3f s\n",
              limit,
              HostCopy(image.out.data(), image.in.data(), image.in.size()));
  for (const std::int64_t kernel : { 33, 65 })
  {
    const auto operation = Convolution(kernel, ConvolutionMethod::FFT, BoundaryMode::Renormalized);
    for (std::size_t count = 1; count <= devices; count *= 2)
    {
      for (const std::size_t gigabytes : { 0, 4 })
      {
        ExecutionReport report;
        const double    ours =
          WarmMedianSeconds(3, [&] { report = Execute(image, operation, gigabytes << 30, FirstDevices(count)); });
        std::printf("FFT %lld^3, %zu device(s), budget of each %s: %.3f s, %.2f times the transfers, %zu chunks, peak "
                    "%.0f MiB, check sum %016llx\n",
                    static_cast<long long>(kernel),
                    count,
                    gigabytes ? "4 GiB" : "not limited",
                    ours,
                    ours / limit,
                    report.plan.chunks.size(),
                    static_cast<double>(report.peakDevice) / 1048576,
                    static_cast<unsigned long long>(CheckSum(image.out.data(), image.out.size())));
      }
    }
  }
}

} // namespace

/** Arguments: any of "resident", "ranks", "variances", "nonlocal", "gaussians", "convolution", "varying", "host",
 * "large", "large-convolution", "large-table", "large-table-pinned"; none: all but the last four. */
int
main(int argc, char * argv[])
{
  // So that what was measured is seen if the rest takes too long.
  std::setvbuf(stdout, nullptr, _IOLBF, 1024);
  std::string reason;
  const auto  backend = GetCudaBackend(&reason);
  if (!backend)
  {
    std::printf("no CUDA device: %s\n", reason.c_str());
    return 0;
  }
  const auto wants = [&](const char * part) {
    bool wanted = argc == 1 && std::strncmp(part, "large", 5) != 0;
    for (int i = 1; i < argc; ++i)
    {
      wanted = wanted || std::strcmp(argv[i], part) == 0;
    }
    return wanted;
  };
  try
  {
    const auto        devices = backend->GetDevices();
    const Coordinates extent{ { 512, 512, 512, 1, 1 } };
    for (const PixelKind kind : { PixelKind::Float32, PixelKind::UInt16 })
    {
      if (wants("resident"))
      {
        DeviceResident(*devices[0], Image(extent, kind), Rows());
      }
      if (wants("host"))
      {
        HostToHost(*devices[0], kind);
      }
    }
    for (const PixelKind kind : { PixelKind::UInt8, PixelKind::UInt16, PixelKind::Float32 })
    {
      if (wants("ranks"))
      {
        DeviceResident(*devices[0], Image(extent, kind), RankRows());
      }
      if (wants("variances"))
      {
        DeviceResident(*devices[0], Image(extent, kind), VarianceRows());
      }
    }
    if (wants("nonlocal"))
    {
      DeviceResident(*devices[0], Image(extent, PixelKind::Float32), NonLocalRows());
    }
    if (wants("gaussians"))
    {
      DeviceResident(*devices[0], Image(extent, PixelKind::Float32), GaussianRows());
    }
    if (wants("convolution"))
    {
      for (const PixelKind kind : { PixelKind::Float32, PixelKind::UInt16 })
      {
        DeviceResident(*devices[0], Image(extent, kind), ConvolutionRows());
      }
      Accuracy<float>(512, 65);
      Accuracy<double>(256, 33);
    }
    if (wants("varying"))
    {
      for (const std::int64_t size : { 1024, 2048, 4096 })
      {
        std::vector<Row> rows = VaryingRows(size, 256);
        for (const Row & row : VaryingRows(size, 128))
        {
          rows.push_back(row);
        }
        DeviceResident(*devices[0], Image(Coordinates{ { size, size, 1, 1, 1 } }, PixelKind::Float32), rows);
      }
    }
    if (wants("large-convolution"))
    {
      LargeConvolution(*devices[0], devices.size());
    }
    if (wants("large-table"))
    {
      // Not touched before it is filled: that takes longer than the runs.
      const auto                                    free = [](void * memory) { std::free(memory); };
      const std::unique_ptr<void, void (*)(void *)> in(std::malloc(LargeBytes), free);
      const std::unique_ptr<void, void (*)(void *)> out(std::malloc(LargeBytes), free);
      FillRandom<float>(in.get(), LargeBytes / sizeof(float));
      LargeTable("pageable", *devices[0], devices.size(), in.get(), out.get());
    }
    if (wants("large-table-pinned"))
    {
      void * const in = devices[0]->AllocatePinned(LargeBytes);
      void * const out = devices[0]->AllocatePinned(LargeBytes);
      FillRandom<float>(in, LargeBytes / sizeof(float));
      LargeTable("pinned", *devices[0], devices.size(), in, out);
      devices[0]->FreePinned(in);
      devices[0]->FreePinned(out);
    }
    if (wants("large"))
    {
      Large(*devices[0], devices.size());
    }
  }
  catch (const Error & error)
  {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
