/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// What masks and components of pixels cost: filters of the table over a whole image, with a mask or of three
// components, and without. Arguments: the edge of the cube (256), the threads (all), the repeats (7), what is measured
// (cpu; cuda: host to host; resident: on a device, in whose memory the images lie; processor: the time that the
// processor worked on it, which others on the machine change little), a part of the names of the filters to run (all);
// and --csv FILE.
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseFilters.h"
#include "chunkwiseManager.h"

#include <ctime>
#include <functional>

using namespace chunkwise;

namespace
{

struct Filter
{
  const char * name;
  const char * text;
  const char * parameter;
  const char * value;
  const char * further{ nullptr };
  const char * furtherValue{ nullptr };
};

/** Filters to compare with the same filter of one component over the whole image. */
enum class Pixels
{
  InBall,   ///< inside a ball, as an organ fills its volume
  InRandom, ///< with every tenth voxel left out
  OfThree   ///< of three components
};

const char *
TextOf(Pixels pixels)
{
  return pixels == Pixels::InBall ? " in a mask" : pixels == Pixels::InRandom ? " in a random mask" : " of RGB";
}

/** Other work on the machine only adds to these. */
double
MeasureSeconds(bool ofProcessor, const std::function<void()> & run)
{
  if (!ofProcessor)
  {
    return BestSeconds(1, run);
  }
  const std::clock_t begin = std::clock();
  run();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

/** A copy of an image in the memory of the first device. */
std::shared_ptr<DeviceMemory>
CopyOnDevice(Manager & manager, const void * data, std::size_t bytes)
{
  const auto         memory = manager.AllocateOnDevice(0, bytes);
  Device &           device = *manager.GetDevices()[0];
  const StreamHandle stream = device.CreateStream();
  device.CopyToDevice(memory->Get(), data, bytes, stream);
  device.Synchronize(stream);
  device.DestroyStream(stream);
  return memory;
}

/** The least time of a filter with these pixels and without, each in turn. */
template <typename TPixel>
void
Compare(Report & report, Executor & executor, std::int64_t edge, int repeats, const std::string & measured,
        const Filter & filter, Pixels pixels, const char * kind)
{
  const bool         isResident = measured == "resident";
  const bool         onDevice = isResident || measured == "cuda";
  const std::int64_t components = pixels == Pixels::OfThree ? 3 : 1;
  constexpr int      axis = MaxDimension - 1;
  FilterImage        image;
  image.extent = { { edge, edge, edge, 1, 1 } };
  image.inputKind = PixelTypeOf<TPixel>();
  const PixelType natural = GetDefaultOutputKind(GetFilter(filter.name), image.inputKind);
  image.outputKind = natural;
  const Box                 box = Box::FromExtent(image.extent);
  const auto                number = static_cast<std::size_t>(box.NumberOfVoxels());
  std::vector<TPixel>       voxels(number * static_cast<std::size_t>(components));
  std::vector<std::uint8_t> mask(number);
  std::vector<char>         output(voxels.size() * PixelSize(natural));
  std::uint32_t             state = 5;
  const auto                random = [&] { return (state = state * 1664525U + 1013904223U) >> 24; };
  for (TPixel & voxel : voxels)
  {
    voxel = static_cast<TPixel>(random());
  }
  for (std::size_t i = 0; i < number; ++i)
  {
    std::int64_t rest = static_cast<std::int64_t>(i);
    std::int64_t distance = 0;
    for (int a = 0; a < 3; ++a)
    {
      const std::int64_t d = 2 * (rest % edge) - edge;
      distance += d * d;
      rest /= edge;
    }
    mask[i] = (pixels == Pixels::InRandom ? random() >= 26 : distance < edge * edge * 2 / 3) ? 1 : 0;
  }
  Manager          host({});
  Manager &        manager = onDevice ? Manager::GetGlobal() : host;
  ExecutionRequest request;
  request.backend = onDevice ? BackendChoice::CUDA : BackendChoice::CPU;
  request.executor = &executor;
  FilterParameters parameters;
  parameters.Set(filter.parameter,
                 ParseParameter(*GetFilter(filter.name).FindParameter(filter.parameter), filter.value));
  if (filter.further)
  {
    parameters.Set(filter.further,
                   ParseParameter(*GetFilter(filter.name).FindParameter(filter.further), filter.furtherValue));
  }
  const auto view = [&](void * data, PixelType of, bool hasComponents) {
    BufferView result = DenseView(data, of, box);
    if (hasComponents)
    {
      for (int a = 0; a < axis; ++a)
      {
        result.stride[a] *= components;
      }
      result.box.upper[axis] = components;
      result.stride[axis] = 1;
    }
    return result;
  };
  void *                                     data[] = { voxels.data(), mask.data(), output.data() };
  std::vector<std::shared_ptr<DeviceMemory>> memory;
  if (isResident)
  {
    const std::size_t bytes[] = { voxels.size() * sizeof(TPixel), mask.size(), output.size() };
    for (int i = 0; i < 3; ++i)
    {
      memory.push_back(CopyOnDevice(manager, data[i], bytes[i]));
      data[i] = memory.back()->Get();
    }
    request.imageDevice = 0;
  }
  double seconds[2] = { 1e9, 1e9 };
  for (int i = 0; i < 2 * repeats + 2; ++i)
  {
    const bool differs = i % 2 != 0;
    const bool hasComponents = differs && components > 1;
    request.inputs = { view(data[0], image.inputKind, hasComponents) };
    request.output = view(data[2], natural, hasComponents);
    request.image = request.region = request.output.box;
    image.extent = request.image.Extents();
    image.additionalInputs.clear();
    if (differs && !hasComponents)
    {
      request.inputs.push_back(view(data[1], PixelType::UInt8, false));
      image.additionalInputs = { "MaskImage" };
    }
    request.operation = MakeFilterOperation(filter.name, parameters, image);
    const double time = MeasureSeconds(measured == "processor", [&] { manager.Execute(request); });
    double &     least = seconds[differs ? 1 : 0];
    least = i < 2 ? least : std::min(least, time);
  }
  report.Add(isResident ? "window"
             : onDevice ? "host-to-host"
                        : "cpu",
             std::string(filter.text) + TextOf(pixels) + "; " + SizeName(box.Extents()) + " " + kind,
             seconds[1] * 1e3,
             "ms",
             {},
             { seconds[0] * 1e3, components > 1 ? "one component" : "without a mask" });
}

} // namespace

int
main(int argc, char * argv[])
{
  Report            report(argc, argv);
  const auto        number = [&](int i, int other) { return argc > i ? std::atoi(argv[i]) : other; };
  const auto        text = [&](int i) { return std::string(argc > i ? argv[i] : ""); };
  const int         edge = number(1, 256);
  const auto        executor = MakeThreadExecutor(static_cast<unsigned int>(number(2, 0)));
  const int         repeats = number(3, 7);
  const std::string measured = text(4);
  if (measured == "cuda" || measured == "resident")
  {
    const auto devices = Manager::GetGlobal().GetDevices();
    if (devices.empty())
    {
      std::printf("no CUDA device\n");
      return 0;
    }
    report.SetDevice(devices[0]->GetDescription().name);
  }
  else
  {
    report.SetHost(executor->GetConcurrency());
  }
  for (const Filter & filter : { Filter{ "mean", "mean, radius 2", "Radius", "2" },
                                 Filter{ "variance", "variance, radius 2", "Radius", "2" },
                                 Filter{ "gaussian", "Gaussian, sigma 2", "Sigma", "2" },
                                 Filter{ "maximum", "maximum, radius 2", "Radius", "2" },
                                 Filter{ "opening", "opening, radius 2", "Radius", "2" },
                                 Filter{ "median", "median, radius 1", "Radius", "1" },
                                 Filter{ "median", "median, radius 2", "Radius", "2" },
                                 Filter{ "median", "median, radius 5", "Radius", "5" },
                                 Filter{ "entropy", "entropy, radius 2", "Radius", "2", "Range", "0,256" },
                                 Filter{ "nlm", "non-local means, radius 2", "Radius", "2", "Strength", "40" } })
  {
    for (const Pixels pixels : { Pixels::InBall, Pixels::InRandom, Pixels::OfThree })
    {
      if ((std::string(filter.text) + TextOf(pixels)).find(text(5)) != std::string::npos)
      {
        Compare<std::uint8_t>(report, *executor, edge, repeats, measured, filter, pixels, "uint8");
        Compare<float>(report, *executor, edge, repeats, measured, filter, pixels, "float32");
      }
    }
  }
  return 0;
}
