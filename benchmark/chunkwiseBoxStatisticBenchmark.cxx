/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times statistics of boxes against the neighborhood family where that computes the same: on the first device,
// device-resident, with the device's copy of the image beside it, or with the argument "cpu" on the CPU.
#include "chunkwiseBenchmarkTime.h"
#include "chunkwiseBoxStatisticOperation.h"
#include "chunkwiseDevice.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseManager.h"
#include "chunkwiseVarianceOperation.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

using namespace chunkwise;

namespace
{

constexpr int Launches = 10;

/** Milliseconds of one launch. */
template <typename TBody>
double
MedianMilliseconds(Device & device, StreamHandle stream, TBody && body)
{
  return 1e3 / Launches * WarmMedianSeconds(7, [&] {
           for (int i = 0; i < Launches; ++i)
           {
             body();
           }
           device.Synchronize(stream);
         });
}

class Bench
{
public:
  Bench(Device & device, const Coordinates & extent, PixelKind kind, std::int64_t largestRadius)
    : m_Device(device)
    , m_Stream(device.CreateStream())
    , m_Box(Box::FromExtent(extent))
    , m_Kind(kind)
  {
    const auto                 voxels = static_cast<std::size_t>(m_Box.NumberOfVoxels());
    const std::size_t          bytes = voxels * PixelSize(kind);
    std::vector<unsigned char> pixels(bytes);
    std::vector<unsigned char> smooth(voxels);
    std::vector<unsigned char> random(voxels);
    std::uint32_t              state = 12345;
    const auto                 row = static_cast<std::size_t>(extent[0]);
    const auto                 rows = static_cast<std::size_t>(extent[1]);
    const auto                 largest = static_cast<std::uint32_t>(largestRadius);
    for (std::size_t i = 0; i < voxels; ++i)
    {
      state = state * 1664525u + 1013904223u;
      if (kind == PixelKind::Float32)
      {
        reinterpret_cast<float *>(pixels.data())[i] = static_cast<float>(state >> 8) * 1e-4F;
      }
      else
      {
        pixels[i * PixelSize(kind)] = static_cast<unsigned char>(state >> 24);
      }
      // As the depth of a scene: slopes along all axes.
      const auto x = static_cast<std::uint32_t>(i % row);
      const auto y = static_cast<std::uint32_t>(i / row % rows);
      const auto z = static_cast<std::uint32_t>(i / row / rows);
      const auto slope = ((x + y) / 8 + z / 4) % (2 * largest + 1);
      smooth[i] = static_cast<unsigned char>(slope > largest ? 2 * largest - slope : slope);
      random[i] = static_cast<unsigned char>((state >> 12) % (largest + 1));
    }
    m_In = device.Allocate(bytes);
    m_Out = device.Allocate(bytes);
    m_Smooth = device.Allocate(voxels);
    m_Random = device.Allocate(voxels);
    device.CopyToDevice(m_In, pixels.data(), bytes, m_Stream);
    device.CopyToDevice(m_Smooth, smooth.data(), voxels, m_Stream);
    device.CopyToDevice(m_Random, random.data(), voxels, m_Stream);
    device.Synchronize(m_Stream);
    m_Copy = MedianMilliseconds(device, m_Stream, [&] { device.CopyOnDevice(m_Out, m_In, bytes, m_Stream); });
    std::printf("\n%s, device-resident, %s %s; device copy %.3f ms (%.0f GB/s read + written)\n",
                device.GetDescription().name.c_str(),
                ToString(extent).c_str(),
                PixelKindName(kind),
                m_Copy,
                2e-6 * static_cast<double>(bytes) / m_Copy);
  }
  ~Bench()
  {
    for (void * const memory : { m_In, m_Out, m_Smooth, m_Random })
    {
      m_Device.Free(memory);
    }
    m_Device.DestroyStream(m_Stream);
  }
  Bench(const Bench &) = delete;
  Bench &
  operator=(const Bench &) = delete;

  /** `radii`: 0 none, 1 smooth, 2 random. */
  void
  Print(const char * name, const Operation & operation, int radii = 0)
  {
    const Kernel & kernel = *m_Device.GetKernels().Find(operation.GetName());
    ChunkShape     shape;
    shape.inputBox = shape.outputBox = shape.image = m_Box;
    shape.inputKinds[0] = shape.outputKind = m_Kind;
    shape.inputKinds[1] = PixelKind::UInt8;
    shape.numberOfInputs = operation.GetNumberOfInputs();
    const std::size_t scratchBytes = kernel.scratchBytes ? kernel.scratchBytes(operation, shape) : 0;
    void * const      scratch = m_Device.Allocate(scratchBytes + 1);
    KernelCall        call;
    call.operation = &operation;
    call.inputs[0] = DenseView(m_In, m_Kind, m_Box);
    call.inputs[1] = DenseView(radii == 1 ? m_Smooth : m_Random, PixelKind::UInt8, m_Box);
    call.numberOfInputs = shape.numberOfInputs;
    call.output = DenseView(m_Out, m_Kind, m_Box);
    call.writable = call.image = m_Box;
    call.scratch = scratch;
    call.scratchBytes = scratchBytes;
    const double time = MedianMilliseconds(m_Device, m_Stream, [&] { m_Device.Launch(kernel, call, m_Stream); });
    std::printf("%-34s %9.3f ms %8.2f times the copy %8.0f MB scratch\n",
                name,
                time,
                time / m_Copy,
                1e-6 * static_cast<double>(scratchBytes));
    std::fflush(stdout);
    m_Device.Free(scratch);
  }

private:
  Device &     m_Device;
  StreamHandle m_Stream;
  Box          m_Box;
  PixelKind    m_Kind;
  void *       m_In{ nullptr };
  void *       m_Out{ nullptr };
  void *       m_Smooth{ nullptr };
  void *       m_Random{ nullptr };
  double       m_Copy{ 0 };
};

/** The same on the CPU: the best of some runs, with as many threads as the machine has. */
template <typename TPixel>
class HostBench
{
public:
  HostBench(const Coordinates & extent, std::int64_t largestRadius)
    : m_Box(Box::FromExtent(extent))
    , m_Manager({})
    , m_Executor(MakeThreadExecutor())
    , m_In(static_cast<std::size_t>(m_Box.NumberOfVoxels()))
    , m_Out(m_In.size())
  {
    std::uint32_t state = 12345;
    m_Radii.resize(2, std::vector<unsigned char>(m_In.size()));
    for (std::size_t i = 0; i < m_In.size(); ++i)
    {
      state = state * 1664525u + 1013904223u;
      m_In[i] = static_cast<TPixel>(state >> 24);
      const auto largest = static_cast<std::uint32_t>(largestRadius);
      const auto slope = static_cast<std::uint32_t>(i / 97) % (2 * largest + 1);
      m_Radii[0][i] = static_cast<unsigned char>(slope > largest ? 2 * largest - slope : slope);
      m_Radii[1][i] = static_cast<unsigned char>((state >> 12) % (largest + 1));
    }
    m_Copy = 1e3 * BestSeconds(5, [&] { std::memcpy(m_Out.data(), m_In.data(), m_In.size() * sizeof(TPixel)); });
    std::printf("\nCPU, %u threads, %s %s; memcpy %.2f ms\n",
                m_Executor->GetConcurrency(),
                ToString(extent).c_str(),
                PixelKindName(PixelKindOf<TPixel>()),
                m_Copy);
  }
  template <typename TOperation>
  void
  Print(const char * name, const TOperation & operation, int radii = 0)
  {
    ExecutionRequest request;
    request.operation = std::make_shared<TOperation>(operation);
    request.image = request.region = m_Box;
    request.inputs.push_back(DenseView(m_In.data(), PixelKindOf<TPixel>(), m_Box));
    if (radii > 0)
    {
      request.inputs.push_back(DenseView(m_Radii[static_cast<std::size_t>(radii - 1)].data(), PixelKind::UInt8, m_Box));
    }
    request.output = DenseView(m_Out.data(), PixelKindOf<TPixel>(), m_Box);
    request.backend = BackendChoice::CPU;
    request.executor = m_Executor.get();
    const double time = 1e3 * BestSeconds(5, [&] { m_Manager.Execute(request); });
    std::printf("%-34s %9.1f ms %8.1f times memcpy\n", name, time, time / m_Copy);
    std::fflush(stdout);
  }

private:
  Box                                     m_Box;
  Manager                                 m_Manager;
  std::unique_ptr<Executor>               m_Executor;
  std::vector<TPixel>                     m_In;
  std::vector<TPixel>                     m_Out;
  std::vector<std::vector<unsigned char>> m_Radii;
  double                                  m_Copy{ 0 };
};

template <typename TBench>
void
Compare(TBench & bench, const Coordinates & extent, PixelKind kind, const std::vector<std::int64_t> & radii)
{
  for (const std::int64_t radius : radii)
  {
    Coordinates all{};
    for (int a = 0; a < 3; ++a)
    {
      all[a] = extent[a] > 1 ? radius : 0;
    }
    char name[64];
    for (const bool squares : { false, true })
    {
      BoxStatisticOperation box;
      box.radius = all;
      box.statistic = squares ? BoxStatistic::StandardDeviation : BoxStatistic::Mean;
      box.anchored = IsFloatingPoint(kind);
      const char * const what = BoxStatisticName(box.statistic);
      std::snprintf(name, sizeof(name), "%s radius %d", what, static_cast<int>(radius));
      bench.Print(name, box);
      box.variable = true;
      std::snprintf(name, sizeof(name), "%s radius 0 to %d", what, static_cast<int>(radius));
      bench.Print(name, box, 1);
      if (radius == radii.back())
      {
        std::snprintf(name, sizeof(name), "%s random to %d", what, static_cast<int>(radius));
        bench.Print(name, box, 2);
      }
      std::snprintf(name, sizeof(name), "  neighborhood, radius %d", static_cast<int>(radius));
      if (squares)
      {
        VarianceOperation variance;
        variance.radius = all;
        variance.takesRoot = true;
        bench.Print(name, variance);
      }
      else
      {
        MeanOperation mean;
        mean.radius = all;
        bench.Print(name, mean);
      }
    }
  }
}

void
CompareOnDevice(Device & device, const Coordinates & extent, PixelKind kind, const std::vector<std::int64_t> & radii)
{
  Bench bench(device, extent, kind, radii.back());
  Compare(bench, extent, kind, radii);
}

template <typename TPixel>
void
CompareOnHost(const Coordinates & extent, const std::vector<std::int64_t> & radii)
{
  HostBench<TPixel> bench(extent, radii.back());
  Compare(bench, extent, PixelKindOf<TPixel>(), radii);
}

} // namespace

int
main(int argc, char ** argv)
{
  if (argc > 1 && std::strcmp(argv[1], "cpu") == 0)
  {
    const Coordinates volume{ { 192, 192, 192, 1, 1 } };
    const Coordinates image{ { 2048, 2048, 1, 1, 1 } };
    CompareOnHost<float>(volume, { 5 });
    CompareOnHost<std::uint8_t>(volume, { 5 });
    CompareOnHost<float>(image, { 10, 100 });
    CompareOnHost<std::uint8_t>(image, { 10, 100 });
    return 0;
  }
  std::string reason;
  const auto  backend = GetCudaBackend(&reason);
  if (!backend || backend->GetDevices().empty())
  {
    std::printf("no CUDA device: %s\n", reason.c_str());
    return 1;
  }
  try
  {
    Device & device = *backend->GetDevices().front();
    CompareOnDevice(device, { { 512, 512, 512, 1, 1 } }, PixelKind::Float32, { 5, 20 });
    CompareOnDevice(device, { { 512, 512, 512, 1, 1 } }, PixelKind::UInt8, { 5, 20 });
    CompareOnDevice(device, { { 8192, 8192, 1, 1, 1 } }, PixelKind::Float32, { 10, 100 });
    CompareOnDevice(device, { { 8192, 8192, 1, 1, 1 } }, PixelKind::UInt8, { 10, 100 });
  }
  catch (const std::exception & error)
  {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
