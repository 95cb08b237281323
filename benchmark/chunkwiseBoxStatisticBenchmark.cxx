/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times statistics of boxes against the neighborhood family where that computes the same: on the first device,
// device-resident, with the device's copy of the image beside it, or with the argument "cpu" on the CPU. And "--csv
// FILE".
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseBoxStatisticOperation.h"
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

class Bench
{
public:
  Bench(Device & device, const Coordinates & extent, PixelType kind, std::int64_t largestRadius)
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
      if (kind == PixelType::Float32)
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
    m_Copy = { 1e3 * LaunchSeconds(device, m_Stream, [&] { device.CopyOnDevice(m_Out, m_In, bytes, m_Stream); }),
               "device copy" };
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

  /** Milliseconds. `radii`: 0 none, 1 smooth, 2 random. */
  double
  Time(const Operation & operation, int radii = 0)
  {
    std::vector<BufferView> inputs{ DenseView(m_In, m_Kind, m_Box) };
    if (radii > 0)
    {
      inputs.push_back(DenseView(radii == 1 ? m_Smooth : m_Random, PixelType::UInt8, m_Box));
    }
    WholeImageCall run(m_Device.GetKernels(), operation, inputs, DenseView(m_Out, m_Kind, m_Box));
    void * const   scratch = m_Device.Allocate(run.call.scratchBytes + 1);
    run.call.scratch = scratch;
    const double seconds = LaunchSeconds(m_Device, m_Stream, [&] { m_Device.Launch(run.kernel, run.call, m_Stream); });
    m_Device.Free(scratch);
    return 1e3 * seconds;
  }
  const Reference &
  GetCopy() const
  {
    return m_Copy;
  }

private:
  Device &     m_Device;
  StreamHandle m_Stream;
  Box          m_Box;
  PixelType    m_Kind;
  void *       m_In{ nullptr };
  void *       m_Out{ nullptr };
  void *       m_Smooth{ nullptr };
  void *       m_Random{ nullptr };
  Reference    m_Copy;
};

/** The same on the CPU: the best of some runs. */
template <typename TPixel>
class HostBench
{
public:
  HostBench(Executor & executor, const Coordinates & extent, std::int64_t largestRadius)
    : m_Box(Box::FromExtent(extent))
    , m_Manager({})
    , m_Executor(executor)
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
    m_Copy = { 1e3 * BestSeconds(
                       5, [&] { CopyInParts(executor, m_Out.data(), m_In.data(), m_In.size() * sizeof(TPixel)); }),
               "a copy" };
  }
  template <typename TOperation>
  double
  Time(const TOperation & operation, int radii = 0)
  {
    ExecutionRequest request;
    request.operation = std::make_shared<TOperation>(operation);
    request.image = request.region = m_Box;
    request.inputs.push_back(DenseView(m_In.data(), PixelTypeOf<TPixel>(), m_Box));
    if (radii > 0)
    {
      request.inputs.push_back(DenseView(m_Radii[static_cast<std::size_t>(radii - 1)].data(), PixelType::UInt8, m_Box));
    }
    request.output = DenseView(m_Out.data(), PixelTypeOf<TPixel>(), m_Box);
    request.backend = BackendChoice::CPU;
    request.executor = &m_Executor;
    return 1e3 * BestSeconds(5, [&] { m_Manager.Execute(request); });
  }
  const Reference &
  GetCopy() const
  {
    return m_Copy;
  }

private:
  Box                                     m_Box;
  Manager                                 m_Manager;
  Executor &                              m_Executor;
  std::vector<TPixel>                     m_In;
  std::vector<TPixel>                     m_Out;
  std::vector<std::vector<unsigned char>> m_Radii;
  Reference                               m_Copy;
};

template <typename TBench>
void
Compare(Report & report, const char * capability, TBench & bench, const Coordinates & extent, PixelType kind,
        const std::vector<std::int64_t> & radii)
{
  const std::string size = ", " + SizeName(extent) + " " + PixelTypeName(kind);
  report.Print("statistics of boxes" + size);
  for (const std::int64_t radius : radii)
  {
    Coordinates all{};
    for (int a = 0; a < 3; ++a)
    {
      all[a] = extent[a] > 1 ? radius : 0;
    }
    for (const bool squares : { false, true })
    {
      BoxStatisticOperation box;
      box.radius = all;
      box.statistic = squares ? BoxStatistic::StandardDeviation : BoxStatistic::Mean;
      box.anchored = IsFloatingPoint(kind);
      Reference peer;
      if (squares)
      {
        VarianceOperation variance;
        variance.radius = all;
        variance.takesRoot = true;
        peer = { bench.Time(variance), "neighborhood standard deviation" };
      }
      else
      {
        MeanOperation mean;
        mean.radius = all;
        peer = { bench.Time(mean), "neighborhood mean" };
      }
      const std::string what = squares ? "standard deviation of boxes; " : "mean of boxes; ";
      const std::string to = std::to_string(radius) + size;
      report.Add(capability, what + "radius " + to, bench.Time(box), "ms", { peer }, bench.GetCopy());
      box.variable = true;
      report.Add(capability, what + "radius 0 to " + to, bench.Time(box, 1), "ms", {}, bench.GetCopy());
      if (radius == radii.back())
      {
        report.Add(capability, what + "random radii to " + to, bench.Time(box, 2), "ms", {}, bench.GetCopy());
      }
    }
  }
}

void
CompareOnDevice(Report & report, Device & device, const Coordinates & extent, PixelType kind,
                const std::vector<std::int64_t> & radii)
{
  Bench bench(device, extent, kind, radii.back());
  Compare(report, "table", bench, extent, kind, radii);
}

template <typename TPixel>
void
CompareOnHost(Report & report, Executor & executor, const Coordinates & extent, const std::vector<std::int64_t> & radii)
{
  HostBench<TPixel> bench(executor, extent, radii.back());
  Compare(report, "cpu", bench, extent, PixelTypeOf<TPixel>(), radii);
}

} // namespace

int
main(int argc, char ** argv)
{
  Report report(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "cpu") == 0)
  {
    const Coordinates volume{ { 192, 192, 192, 1, 1 } };
    const Coordinates image{ { 2048, 2048, 1, 1, 1 } };
    const auto        executor = MakeThreadExecutor();
    report.SetHost(executor->GetConcurrency());
    CompareOnHost<float>(report, *executor, volume, { 5 });
    CompareOnHost<std::uint8_t>(report, *executor, volume, { 5 });
    CompareOnHost<float>(report, *executor, image, { 10, 100 });
    CompareOnHost<std::uint8_t>(report, *executor, image, { 10, 100 });
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
    report.SetDevice(device.GetDescription().name);
    CompareOnDevice(report, device, { { 512, 512, 512, 1, 1 } }, PixelType::Float32, { 5, 20 });
    CompareOnDevice(report, device, { { 512, 512, 512, 1, 1 } }, PixelType::UInt8, { 5, 20 });
    CompareOnDevice(report, device, { { 8192, 8192, 1, 1, 1 } }, PixelType::Float32, { 10, 100 });
    CompareOnDevice(report, device, { { 8192, 8192, 1, 1, 1 } }, PixelType::UInt8, { 10, 100 });
  }
  catch (const std::exception & error)
  {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
