/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Labels of connected components of images that are usual, and of the worst ones: on a device, from the host to
// the host, and on the CPU.
//
// Usage: chunkwise_label_benchmark [--csv FILE] [--images FOLDER] [--measure] [--no-cpu] [EXTENT, 512]. With a folder
// the images are left there as raw bytes, for label_peers.py. With --measure: measurements of labels instead. With
// --no-cpu: without rows of the CPU.
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseLabelOperation.h"
#include "chunkwiseManager.h"
#include "chunkwiseMeasurements.h"
#include "chunkwiseOperations.h"

#include <cmath>
#include <fstream>
#include <map>

using namespace chunkwise;

namespace
{

using Bytes = std::vector<std::uint8_t>;

class Images
{
public:
  explicit Images(std::int64_t extent)
    : m_Box(Box::FromExtent({ { extent, extent, extent, 1, 1 } }))
    , m_Executor(MakeThreadExecutor())
  {}

  const Box &
  GetBox() const
  {
    return m_Box;
  }

  /** `all`: others than those whose objects are measured, too. */
  std::map<std::string, Bytes>
  Make(bool all)
  {
    const std::int64_t           n = m_Box.upper[0];
    std::map<std::string, Bytes> images;
    images["smoothed noise above its median"] = this->MakeBlobs();
    images["balls"] = this->Fill([](std::int64_t x, std::int64_t y, std::int64_t z, std::uint32_t) {
      const auto square = [](std::int64_t at) { return (at % 16 - 8) * (at % 16 - 8); };
      return square(x) + square(y) + square(z) < 40;
    });
    if (!all)
    {
      return images;
    }
    images["random, 50 %"] =
      this->Fill([](std::int64_t, std::int64_t, std::int64_t, std::uint32_t number) { return number < 0x80000000U; });
    images["random, 31.2 %"] =
      this->Fill([](std::int64_t, std::int64_t, std::int64_t, std::uint32_t number) { return number < 1340029796U; });
    images["all"] = this->Fill([](std::int64_t, std::int64_t, std::int64_t, std::uint32_t) { return true; });
    images["checkerboard"] =
      this->Fill([](std::int64_t x, std::int64_t y, std::int64_t z, std::uint32_t) { return (x + y + z) % 2 == 0; });
    images["comb"] = this->Fill([n](std::int64_t x, std::int64_t y, std::int64_t z, std::uint32_t) {
      return (x % 2 == 0 && y % 2 == 0) || z + 1 == n;
    });
    images["spirals"] = this->Fill([n](std::int64_t x, std::int64_t y, std::int64_t, std::uint32_t) {
      const std::int64_t ring = std::min({ x, y, n - 1 - x, n - 1 - y });
      return ring % 2 == 0 ? !(x == ring && y == ring + 1) : x == ring && y == ring + 1;
    });
    return images;
  }

private:
  template <typename TIsSet>
  Bytes
  Fill(TIsSet && isSet)
  {
    const std::int64_t n = m_Box.upper[0];
    Bytes              image(static_cast<std::size_t>(m_Box.NumberOfVoxels()));
    m_Executor->ParallelFor(n, [&](std::int64_t z, unsigned int) {
      std::uint32_t state = 1234567U + 2654435761U * static_cast<std::uint32_t>(z);
      std::size_t   i = static_cast<std::size_t>(z * n * n);
      for (std::int64_t y = 0; y < n; ++y)
      {
        for (std::int64_t x = 0; x < n; ++x, ++i)
        {
          state = state * 1664525U + 1013904223U;
          image[i] = isSet(x, y, z, (state ^ state >> 15) * 2246822519U) ? 1 : 0;
        }
      }
    });
    return image;
  }

  Bytes
  MakeBlobs()
  {
    Bytes noise = this->Fill([](std::int64_t, std::int64_t, std::int64_t, std::uint32_t number) { return number & 1; });
    std::vector<float> smooth(noise.size());
    for (std::uint8_t & voxel : noise)
    {
      voxel = static_cast<std::uint8_t>(voxel * 200);
    }
    // Three means are near to a Gaussian.
    std::vector<float> other(noise.size());
    const auto         mean = std::make_shared<MeanOperation>();
    mean->radius = { { 2, 2, 2, 0, 0 } };
    const auto run = [&](const BufferView & in, float * out) {
      ExecutionRequest request;
      request.operation = mean;
      request.image = request.region = m_Box;
      request.inputs = { in };
      request.output = DenseView(out, PixelType::Float32, m_Box);
      Manager::GetGlobal().Execute(request);
    };
    run(DenseView(noise.data(), PixelType::UInt8, m_Box), smooth.data());
    run(DenseView(smooth.data(), PixelType::Float32, m_Box), other.data());
    run(DenseView(other.data(), PixelType::Float32, m_Box), smooth.data());
    other = smooth;
    std::nth_element(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(other.size() / 2), other.end());
    const float median = other[other.size() / 2];
    std::transform(
      smooth.begin(), smooth.end(), noise.begin(), [median](float value) { return value > median ? 1 : 0; });
    return noise;
  }

  const Box                 m_Box;
  std::unique_ptr<Executor> m_Executor;
};

LabelOperation
MakeLabel(const Box & box, int connectivity)
{
  LabelOperation operation;
  operation.image = box.upper;
  operation.structure = LabelOperation::MakeStructure(connectivity, 3);
  return operation;
}

double
OnDevice(Device & device, const LabelOperation & operation, const Box & box, const Bytes & image, double & copy)
{
  const StreamHandle stream = device.CreateStream();
  const std::size_t  bytes = image.size() * sizeof(std::uint32_t);
  void * const       in = device.Allocate(image.size());
  void * const       out = device.Allocate(bytes);
  device.CopyToDevice(in, image.data(), image.size(), stream);
  device.Synchronize(stream);
  copy = LaunchSeconds(device, stream, [&] { device.CopyOnDevice(out, in, image.size(), stream); });
  WholeImageCall run(device.GetKernels(),
                     operation,
                     { DenseView(in, PixelType::UInt8, box) },
                     DenseView(out, PixelType::UInt32, box),
                     1,
                     &KernelSet::alone);
  run.call.scratch = device.Allocate(std::max<std::size_t>(run.call.scratchBytes, 1));
  const double seconds = LaunchSeconds(device, stream, [&] { device.Launch(run.kernel, run.call, stream); });
  device.Free(run.call.scratch);
  device.Free(in);
  device.Free(out);
  device.DestroyStream(stream);
  return seconds;
}

double
OnHost(BackendChoice backend, const LabelOperation & operation, const Box & box, Bytes & image,
       std::vector<std::uint32_t> & labels)
{
  ExecutionRequest request;
  request.operation = std::make_shared<LabelOperation>(operation);
  request.image = request.region = box;
  request.inputs = { DenseView(image.data(), PixelType::UInt8, box) };
  request.output = DenseView(labels.data(), PixelType::UInt32, box);
  request.backend = backend;
  return WarmMedianSeconds(5, [&] { Manager::GetGlobal().Execute(request); });
}

/** Tables of labels and of numbers: on the device, and on the CPU. */
template <typename TPixel>
void
ReportMeasurements(Report & report, const std::string & name, const Box & box, std::vector<std::uint32_t> & labels,
                   const std::string & folder, bool onHostToo)
{
  std::vector<TPixel> values(labels.size());
  std::uint32_t       state = 7;
  for (TPixel & value : values)
  {
    state = state * 1664525U + 1013904223U;
    value = static_cast<TPixel>((state >> 24) * (std::is_integral<TPixel>::value ? 1 : 0.37));
  }
  const std::string sizes = "; " + SizeName(box.upper) + " uint32, " + PixelTypeName(PixelTypeOf<TPixel>());
  if (!folder.empty())
  {
    std::string file = folder + "/" + name + "_" + PixelTypeName(PixelTypeOf<TPixel>());
    std::replace(file.begin(), file.end(), ' ', '_');
    const auto write = [](const std::string & path, const auto & voxels) {
      std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(voxels.data()),
               static_cast<std::streamsize>(voxels.size() * sizeof(voxels[0])));
    };
    write(file + "_labels.raw", labels);
    write(file + "_values.raw", values);
  }
  Manager &        manager = Manager::GetGlobal();
  ExecutionRequest request;
  request.image = request.region = box;
  request.inputs = { DenseView(labels.data(), PixelType::UInt32, box),
                     DenseView(values.data(), PixelTypeOf<TPixel>(), box) };
  ExecutionRequest resident = request;
  request.backend = BackendChoice::CPU;
  double                                     read = 0;
  std::vector<std::shared_ptr<DeviceMemory>> memory;
  if (!manager.GetDevices().empty())
  {
    Device &           device = *manager.GetDevices()[0];
    const StreamHandle stream = device.CreateStream();
    for (BufferView & input : resident.inputs)
    {
      const void * const from = input.data;
      memory.push_back(manager.AllocateOnDevice(0, input.NumberOfBytes()));
      input.data = memory.back()->Get();
      device.CopyToDevice(input.data, from, input.NumberOfBytes(), stream);
    }
    device.Synchronize(stream);
    resident.imageDevice = 0;
    // A copy reads and writes: as long as it takes to read both images.
    const std::size_t bytes = resident.inputs[1].NumberOfBytes();
    const auto half = [&] { device.CopyOnDevice(resident.inputs[0].data, resident.inputs[1].data, bytes, stream); };
    read = LaunchSeconds(device, stream, half) / 2 * (1.0 + 4.0 / sizeof(TPixel));
    device.CopyToDevice(resident.inputs[0].data, labels.data(), bytes, stream);
    device.Synchronize(stream);
    device.DestroyStream(stream);
  }
  for (const bool isWhole : { false, true })
  {
    MeasurementSettings settings;
    settings.extent = box.upper;
    settings.hasIntensity = true;
    settings.intensityKind = PixelTypeOf<TPixel>();
    const std::vector<std::string> columns =
      isWhole ? GetDefaultProperties(true) : std::vector<std::string>{ "label", "intensity_sum", "intensity_mean" };
    SetPartsFor(columns, settings);
    const auto   executor = MakeThreadExecutor();
    std::int64_t objects = 0;
    const auto   measure = [&](const ExecutionRequest & how) {
      Measurements     measured(settings);
      ExecutionRequest run = how;
      run.executor = executor.get();
      measured.Add(manager, run);
      objects = static_cast<std::int64_t>(
        measured.MakeTable(MeasurementSpace(), columns, 0, INT64_MAX, executor.get()).front().GetSize());
    };
    const std::string row = (isWhole ? "table of measurements, " : "sums and means of labels, ") + name + sizes;
    if (!memory.empty())
    {
      const double seconds = WarmMedianSeconds(9, [&] { measure(resident); });
      report.Add("objects", row, 1e3 * seconds, "ms", {}, { 1e3 * read, "reading both images" });
    }
    if (onHostToo)
    {
      report.Add("objects", row + ", CPU", 1e3 * WarmMedianSeconds(3, [&] { measure(request); }), "ms");
    }
    std::printf("  %lld objects\n", static_cast<long long>(objects));
  }
}

} // namespace

int
main(int argc, char ** argv)
{
  Report       report(argc, argv);
  std::string  folder;
  std::int64_t extent = 512;
  bool         measures = false;
  bool         onHostToo = true;
  for (int i = 1; i < argc; ++i)
  {
    const std::string word = argv[i];
    if (word == "--images" && i + 1 < argc)
    {
      folder = argv[++i];
    }
    else if (word == "--measure")
    {
      measures = true;
    }
    else if (word == "--no-cpu")
    {
      onHostToo = false;
    }
    else
    {
      extent = std::atoll(word.c_str());
    }
  }
  Images                     images(extent);
  const Box &                box = images.GetBox();
  const auto                 devices = Manager::GetGlobal().GetDevices();
  std::vector<std::uint32_t> labels(static_cast<std::size_t>(box.NumberOfVoxels()));
  if (!devices.empty())
  {
    report.SetDevice(devices[0]->GetDescription().name);
  }
  for (auto & [name, image] : images.Make(!measures))
  {
    if (measures)
    {
      const BackendChoice any = devices.empty() ? BackendChoice::CPU : BackendChoice::CUDA;
      OnHost(any, MakeLabel(box, 3), box, image, labels);
      ReportMeasurements<float>(report, name, box, labels, folder, onHostToo);
      ReportMeasurements<std::uint8_t>(report, name, box, labels, folder, onHostToo);
      continue;
    }
    if (!folder.empty())
    {
      std::string file = name;
      std::replace(file.begin(), file.end(), ' ', '_');
      std::ofstream(folder + "/" + file + "_uint8.raw", std::ios::binary)
        .write(reinterpret_cast<const char *>(image.data()), static_cast<std::streamsize>(image.size()));
    }
    for (const int connectivity : { 1, 3 })
    {
      const LabelOperation operation = MakeLabel(box, connectivity);
      const std::string    row = std::string("label, ") + (connectivity == 1 ? "faces, " : "corners, ") + name + "; " +
                              std::to_string(extent) + "^3 uint8";
      if (!devices.empty())
      {
        double       copy = 0;
        const double seconds = OnDevice(*devices[0], operation, box, image, copy);
        report.Add("objects", row, 1e3 * seconds, "ms", {}, { 1e3 * copy, "device copy of the image" });
        const double transferred = OnHost(BackendChoice::CUDA, operation, box, image, labels);
        report.Add("objects", row + ", host to host", 1e3 * transferred, "ms");
      }
      if (onHostToo)
      {
        const double seconds = OnHost(BackendChoice::CPU, operation, box, image, labels);
        report.Add("objects", row + ", CPU", 1e3 * seconds, "ms");
      }
      std::printf("  %u components\n", *std::max_element(labels.begin(), labels.end()));
    }
  }
  return 0;
}
