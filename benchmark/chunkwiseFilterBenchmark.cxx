/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Filters of the table on images that lie on a device, and from the host to the host.
//
// Usage: chunkwise_filter_benchmark [--csv FILE] [--images FOLDER] [--host] [WORD...]: the rows whose names contain one
// of the words, all without words; with --host from the host to the host and on the CPU, too. With a folder the images
// are left there as raw bytes, for filter_peers.py.
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseDeconvolutionOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseFilters.h"
#include "chunkwiseManager.h"
#include "chunkwiseOperations.h"
#include "chunkwiseStatistics.h"
#include "chunkwiseVaryingConvolutionOperation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>

using namespace chunkwise;

namespace
{

struct Row
{
  const char *                                        capability;
  std::string                                         title;
  std::string                                         filter;
  std::vector<std::pair<std::string, ParameterValue>> parameters;
  std::string                                         image;
  std::int64_t                                        extent;
  PixelType                                           output;
  /** An input of the filter's, and its image; empty: none. */
  std::string further{};
  std::string furtherImage{};
};

std::vector<double>
Reals(double value)
{
  return { value };
}

/** Windows of an even number of voxels beside those of one more along each axis. */
std::vector<Row>
SidedRows()
{
  std::vector<Row> rows;
  for (const char * const filter : { "mean", "variance", "median" })
  {
    for (const char * const image : { "noise", "blobs" })
    {
      for (const std::int64_t upper : { 4, 3 })
      {
        const PixelType kind = std::string(image) == "noise" ? PixelType::Float32 : PixelType::UInt8;
        rows.push_back({ "window",
                         std::string(filter) + " over a box from -4 to " + std::to_string(upper),
                         filter,
                         { { "Radius", std::vector<std::int64_t>{ 4 } },
                           { "UpperRadius", std::vector<std::int64_t>{ upper } },
                           { "BoundaryCondition", std::string("mirror") } },
                         image,
                         256,
                         kind });
      }
    }
  }
  return rows;
}

std::vector<Row>
Rows()
{
  const auto word = [](const char * text) { return std::string(text); };
  const auto radius = std::vector<std::int64_t>{ 7 };
  const auto small = std::vector<std::int64_t>{ 2 };
  return {
    { "objects", "distance to the background", "distance", {}, "blobs", 512, PixelType::Float32 },
    { "objects", "distance to a voxel in 10,000", "distance", {}, "sparse", 512, PixelType::Float32 },
    { "objects",
      "signed distance to the contour",
      "distance",
      { { "Features", word("contour") } },
      "blobs",
      512,
      PixelType::Float32 },
    { "objects",
      "expand labels by 10",
      "expand-labels",
      { { "Distance", Reals(10) } },
      "labels",
      256,
      PixelType::UInt32 },
    { "objects",
      "opening by a ball, radius 20",
      "binary-morphology",
      { { "Morphology", word("opening") }, { "Radius", Reals(20) } },
      "blobs",
      512,
      PixelType::UInt8 },
    { "objects",
      "watershed of markers, faces",
      "watershed",
      {},
      "smooth",
      512,
      PixelType::UInt32,
      "MarkerImage",
      "markers" },
    { "objects",
      "watershed of markers, corners",
      "watershed",
      { { "Connectivity", std::vector<std::int64_t>{ 3 } } },
      "smooth",
      512,
      PixelType::UInt32,
      "MarkerImage",
      "markers" },
    { "objects",
      "watershed of markers, faces, many equal voxels",
      "watershed",
      {},
      "blobs",
      512,
      PixelType::UInt32,
      "MarkerImage",
      "markers" },
    { "objects",
      "watershed of markers, faces, noise",
      "watershed",
      {},
      "noise",
      512,
      PixelType::UInt32,
      "MarkerImage",
      "markers" },
    { "objects", "watershed of minima, faces", "watershed", {}, "smooth", 512, PixelType::UInt32 },
    { "objects", "boundaries of labels", "boundaries", {}, "labels", 512, PixelType::UInt8 },
    { "objects",
      "local threshold by Sauvola, radius 7",
      "local-threshold",
      { { "Method", word("sauvola") }, { "Radius", radius }, { "R", Reals(500) } },
      "noise",
      512,
      PixelType::UInt8 },
    { "objects",
      "threshold by Otsu",
      "threshold",
      { { "Method", word("otsu") } },
      "smooth of 16 bits",
      512,
      PixelType::UInt8 },
    { "objects",
      "threshold by multi-Otsu, 3 classes",
      "threshold",
      { { "Method", word("multi-otsu") } },
      "smooth",
      512,
      PixelType::UInt8 },
    { "objects",
      "hysteresis",
      "hysteresis",
      { { "Low", Reals(900) }, { "High", Reals(1500) } },
      "noise",
      512,
      PixelType::UInt8 },
    { "window", "white top-hat, radius 2", "white-tophat", { { "Radius", small } }, "noise", 512, PixelType::Float32 },
    { "enhancement", "unsharp mask, sigma 2", "unsharp", { { "Sigma", Reals(2) } }, "noise", 512, PixelType::Float32 },
    { "enhancement",
      "gradient diffusion, 5 iterations",
      "diffusion",
      { { "Iterations", std::vector<std::int64_t>{ 5 } }, { "GradientMagnitude", Reals(300) } },
      "noise",
      256,
      PixelType::Float32 },
    { "enhancement",
      "coherence-enhancing diffusion, 5 iterations",
      "coherence-diffusion",
      { { "Iterations", std::vector<std::int64_t>{ 5 } }, { "Contrast", Reals(100) } },
      "noise",
      256,
      PixelType::Float32 },
    { "enhancement",
      "total variation, 50 iterations",
      "total-variation",
      { { "Iterations", std::vector<std::int64_t>{ 50 } }, { "Weight", Reals(300) } },
      "noise",
      256,
      PixelType::Float32 },
    { "enhancement",
      "adaptive equalization, tiles of 32^3",
      "clahe",
      { { "TileSize", std::vector<std::int64_t>{ 32 } }, { "Range", std::vector<double>{ 0, 1678 } } },
      "noise",
      256,
      PixelType::Float32 },
    { "enhancement",
      "bilateral, sigma 1.5",
      "bilateral",
      { { "Sigma", Reals(1.5) }, { "RangeSigma", Reals(100) } },
      "noise",
      256,
      PixelType::Float32 },
    { "enhancement",
      "rolling paraboloid, radius 25",
      "rolling-ball",
      { { "Radius", Reals(25) }, { "Shape", word("paraboloid") } },
      "noise",
      256,
      PixelType::Float32 },
  };
}

/** Images of one extent, by name. */
class Images
{
public:
  explicit Images(std::int64_t extent)
    : m_Box(Box::FromExtent({ { extent, extent, extent, 1, 1 } }))
    , m_Executor(MakeThreadExecutor())
  {}

  BufferView
  Get(const std::string & name)
  {
    std::vector<char> & image = m_Images[name];
    if (name == "noise")
    {
      return this->Fill<float>(
        image, [](std::size_t, std::uint32_t number) { return static_cast<float>(number >> 8) * 1e-4F; });
    }
    if (name == "sparse")
    {
      return this->Fill<std::uint8_t>(image,
                                      [](std::size_t, std::uint32_t number) { return number % 10000 == 0 ? 0 : 1; });
    }
    if (name == "labels")
    {
      return this->Fill<std::uint32_t>(
        image, [](std::size_t i, std::uint32_t number) { return number % 10000 == 0 ? i + 1 : 0; });
    }
    if (name == "markers")
    {
      return this->Fill<std::uint32_t>(
        image, [](std::size_t i, std::uint32_t number) { return number % 65536 == 0 ? i + 1 : 0; });
    }
    // Two means of noise, above the middle: parts some voxels thick.
    std::vector<char> first;
    std::vector<char> second(static_cast<std::size_t>(m_Box.NumberOfVoxels()) * sizeof(float));
    const BufferView  noise = this->Fill<float>(
      first, [](std::size_t, std::uint32_t number) { return static_cast<float>(number >> 8) * 1e-4F; });
    const BufferView mean = DenseView(second.data(), PixelType::Float32, m_Box);
    this->Mean(noise, mean);
    this->Mean(mean, noise);
    const auto * const smooth = static_cast<const float *>(noise.data);
    if (name == "smooth")
    {
      // About two deviations from the middle are in range.
      return this->Fill<std::uint8_t>(image, [smooth](std::size_t i, std::uint32_t) {
        return std::min(std::max((smooth[i] - 839) * 8 + 128, 0.F), 255.F);
      });
    }
    if (name == "smooth of 16 bits")
    {
      return this->Fill<std::uint16_t>(image, [smooth](std::size_t i, std::uint32_t) {
        return std::min(std::max((smooth[i] - 839) * 8 + 128, 0.F), 255.F) * 256;
      });
    }
    return this->Fill<std::uint8_t>(image, [smooth](std::size_t i, std::uint32_t) { return smooth[i] > 839 ? 1 : 0; });
  }

private:
  template <typename T, typename TValue>
  BufferView
  Fill(std::vector<char> & image, TValue && value)
  {
    image.resize(static_cast<std::size_t>(m_Box.NumberOfVoxels()) * sizeof(T));
    const auto plane = static_cast<std::size_t>(m_Box.Extent(0) * m_Box.Extent(1));
    m_Executor->ParallelFor(m_Box.Extent(2), [&](std::int64_t z, unsigned int) {
      std::uint32_t state = 1234567U + 2654435761U * static_cast<std::uint32_t>(z);
      for (std::size_t i = plane * static_cast<std::size_t>(z); i < plane * static_cast<std::size_t>(z + 1); ++i)
      {
        state = state * 1664525U + 1013904223U;
        reinterpret_cast<T *>(image.data())[i] = static_cast<T>(value(i, (state ^ state >> 15) * 2246822519U));
      }
    });
    return DenseView(image.data(), PixelTypeOf<T>(), m_Box);
  }

  void
  Mean(const BufferView & from, const BufferView & to)
  {
    const auto operation = std::make_shared<MeanOperation>();
    operation->radius = { { 4, 4, 4, 0, 0 } };
    ExecutionRequest request;
    request.operation = operation;
    request.image = request.region = m_Box;
    request.inputs = { from };
    request.output = to;
    request.backend = BackendChoice::CPU;
    Manager::GetGlobal().Execute(request);
  }

  const Box                                m_Box;
  std::unique_ptr<Executor>                m_Executor;
  std::map<std::string, std::vector<char>> m_Images;
};

/** An image in the memory of a device. */
struct OnDevice
{
  OnDevice(Device & from, PixelType kind, const Box & box)
    : device(from)
    , view(DenseView(device.Allocate(static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(kind)), kind, box))
  {}
  ~OnDevice() { device.Free(view.data); }
  OnDevice(const OnDevice &) = delete;
  OnDevice &
  operator=(const OnDevice &) = delete;

  Device &         device;
  const BufferView view;
};

void
Run(Report & report, Device & device, const Row & row, const BufferView & image, const BufferView & further,
    bool onHostToo)
{
  FilterParameters parameters;
  for (const auto & [name, value] : row.parameters)
  {
    parameters.Set(name, value);
  }
  FilterImage about;
  about.extent = image.box.Extents();
  about.inputKind = image.kind;
  about.outputKind = row.output;
  if (further.data)
  {
    about.additionalInputs = { row.further };
  }
  ExecutionRequest request;
  request.operation = MakeFilterOperation(row.filter, parameters, about);
  request.image = request.region = image.box;
  const std::string name = row.title + "; " + std::to_string(row.extent) + "^3 " + PixelTypeName(image.kind) + " to " +
                           PixelTypeName(row.output);
  const std::string objection = request.operation->GetObjectionToDevices();
  if (!objection.empty())
  {
    std::printf("%s: %s\n", name.c_str(), objection.c_str());
    return;
  }
  const OnDevice     from(device, image.kind, image.box);
  const OnDevice     to(device, row.output, image.box);
  const StreamHandle stream = device.CreateStream();
  const OnDevice     beside(device, further.kind, further.data ? image.box : Box::FromExtent({ { 1, 1, 1, 1, 1 } }));
  device.CopyToDevice(from.view.data, image.data, image.NumberOfBytes(), stream);
  if (further.data)
  {
    device.CopyToDevice(beside.view.data, further.data, further.NumberOfBytes(), stream);
  }
  device.Synchronize(stream);
  const double copy = LaunchSeconds(device, stream, [&] {
    device.CopyOnDevice(to.view.data, from.view.data, std::min(image.NumberOfBytes(), to.view.NumberOfBytes()), stream);
  });
  request.inputs = { from.view };
  if (further.data)
  {
    request.inputs.push_back(beside.view);
  }
  request.output = to.view;
  request.imageDevice = 0;
  request.stream = stream;
  const auto execute = [&] {
    ExecutionRequest run = request;
    for (const ParameterDescription & parameter : GetFilter(row.filter).parameters)
    {
      // It follows from the image, which takes its time, too.
      if (parameter.estimate.take && !parameters.Has(parameter.name))
      {
        FilterParameters found = parameters;
        found.Set(parameter.name, EstimateParameter(Manager::GetGlobal(), run, parameter));
        run.operation = MakeFilterOperation(row.filter, found, about);
      }
    }
    Manager::GetGlobal().Execute(run);
  };
  const double seconds = WarmMedianSeconds(9, execute);
  report.Add(row.capability, name, 1e3 * seconds, "ms", {}, { 1e3 * copy, "device copy of the smaller image" });
  device.DestroyStream(stream);
  if (!onHostToo)
  {
    return;
  }
  std::vector<char> result(to.view.NumberOfBytes());
  request.inputs = { image };
  if (further.data)
  {
    request.inputs.push_back(further);
  }
  request.output = DenseView(result.data(), row.output, image.box);
  request.imageDevice = -1;
  request.stream = nullptr;
  for (const BackendChoice backend : { BackendChoice::CUDA, BackendChoice::CPU })
  {
    request.backend = backend;
    const double transferred = WarmMedianSeconds(5, execute);
    report.Add(
      row.capability, name + (backend == BackendChoice::CPU ? ", CPU" : ", host to host"), 1e3 * transferred, "ms");
  }
}

constexpr const char * DeconvolutionTitle = "Richardson-Lucy, an iteration, kernel 33^3";
constexpr const char * VaryingTitle = "Richardson-Lucy, an iteration, 4 x 4 x 4 kernels of 33^3";

/** The time of an iteration, from what a run says of its progress. */
class IterationTimer : public Monitor
{
public:
  /** Progress before and after the iterations that count. */
  IterationTimer(double begin, double end)
    : m_Begin(begin)
    , m_End(end)
  {}
  void
  UpdateProgress(double fraction) override
  {
    const auto now = std::chrono::steady_clock::now();
    if (fraction <= m_Begin + 1e-9)
    {
      m_First = now;
    }
    if (fraction <= m_End + 1e-9)
    {
      m_Last = now;
    }
  }
  bool
  ShouldAbort() override
  {
    return false;
  }
  double
  GetSeconds() const
  {
    return std::chrono::duration<double>(m_Last - m_First).count();
  }

private:
  const double                          m_Begin;
  const double                          m_End;
  std::chrono::steady_clock::time_point m_First;
  std::chrono::steady_clock::time_point m_Last;
};

/** On a device that holds all images, and on one that holds those of a convolution. */
void
RunDeconvolution(Report & report, const BufferView & image, bool onHostToo)
{
  constexpr std::int64_t n = 33;
  const auto             makeKernel = [](double width) {
    std::vector<double> weights;
    for (std::int64_t i = 0; i < n * n * n; ++i)
    {
      const auto square = [](std::int64_t x) { return static_cast<double>((x - n / 2) * (x - n / 2)); };
      weights.push_back(
        std::exp(-((square(i % n) + square(i / n % n)) / 32 + square(i / n / n) / 98) / (width * width)));
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double & weight : weights)
    {
      weight /= sum;
    }
    return std::make_shared<ConvolutionKernel>(
      Coordinates{ { n, n, n, 1, 1 } }, Coordinates{ { n / 2, n / 2, n / 2, 0, 0 } }, std::move(weights));
  };
  auto operation = std::make_shared<DeconvolutionOperation>();
  operation->image = image.box.Extents();
  operation->kernel = makeKernel(1);
  std::vector<float> result(static_cast<std::size_t>(image.box.NumberOfVoxels()));
  ExecutionRequest   request;
  request.image = request.region = image.box;
  request.inputs = { image };
  request.output = DenseView(result.data(), PixelType::Float32, image.box);
  const auto add = [&](const char * title, const char * where, std::int64_t iterations) {
    // Two iterations warm up; after the last one the result is written.
    const auto some = std::make_shared<DeconvolutionOperation>(*operation);
    some->iterations = iterations + 3;
    request.operation = some;
    const auto     parts = static_cast<double>(2 * some->iterations + 1);
    IterationTimer timer(5 / parts, (parts - 2) / parts);
    Manager::GetGlobal().Execute(request, &timer);
    report.Add("deconvolution",
               std::string(title) + "; " + std::to_string(image.box.Extent(0)) + "^3 float32 to float32" + where,
               1e3 / static_cast<double>(iterations) * timer.GetSeconds(),
               "ms");
  };
  request.backend = BackendChoice::CUDA;
  add(DeconvolutionTitle, "", 50);
  if (onHostToo)
  {
    request.budgets.device = std::size_t{ 4 } << 30;
    add(DeconvolutionTitle, ", host to host", 3);
    request.budgets.device = 0;
  }
  const auto varying = std::make_shared<VaryingConvolutionOperation>();
  for (int a = 0; a < 3; ++a)
  {
    varying->nodes[a] = 4;
    varying->spacing[a] = static_cast<double>(image.box.Extent(a)) / 4;
    varying->first[a] = (varying->spacing[a] - 1) / 2;
  }
  for (int node = 0; node < 64; ++node)
  {
    varying->kernels.push_back(makeKernel(0.6 + 0.01 * node));
  }
  operation->varying = varying;
  operation->kernel = nullptr;
  add(VaryingTitle, "", 5);
}

} // namespace

int
main(int argc, char ** argv)
{
  Report                   report(argc, argv);
  std::string              folder;
  bool                     onHostToo = false;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i)
  {
    const std::string word = argv[i];
    if (word == "--images" && i + 1 < argc)
    {
      folder = argv[++i];
    }
    else if (word == "--host")
    {
      onHostToo = true;
    }
    else
    {
      words.push_back(word);
    }
  }
  const auto devices = Manager::GetGlobal().GetDevices();
  if (devices.empty())
  {
    std::printf("no device\n");
    return 0;
  }
  report.SetDevice(devices[0]->GetDescription().name);
  std::map<std::string, BufferView>               made;
  std::map<std::int64_t, std::unique_ptr<Images>> images;
  bool                                            failed = false;
  auto                                            rows = Rows();
  for (const Row & row : SidedRows())
  {
    rows.push_back(row);
  }
  for (const Row & row : rows)
  {
    if (!words.empty() && std::none_of(words.begin(), words.end(), [&](const std::string & word) {
          return row.title.find(word) != std::string::npos;
        }))
    {
      continue;
    }
    auto & ofExtent = images[row.extent];
    ofExtent = ofExtent ? std::move(ofExtent) : std::make_unique<Images>(row.extent);
    const auto get = [&](const std::string & image) {
      std::string name = image + "_" + std::to_string(row.extent) + "_voxels.raw";
      std::replace(name.begin(), name.end(), ' ', '_');
      if (made.count(name) == 0)
      {
        made[name] = ofExtent->Get(image);
        if (!folder.empty())
        {
          std::ofstream(folder + "/" + name, std::ios::binary)
            .write(static_cast<const char *>(made[name].data),
                   static_cast<std::streamsize>(made[name].NumberOfBytes()));
        }
      }
      return made[name];
    };
    try
    {
      Run(report,
          *devices[0],
          row,
          get(row.image),
          row.furtherImage.empty() ? BufferView() : get(row.furtherImage),
          onHostToo);
    }
    catch (const std::exception & error)
    {
      std::printf("%s: %s\n", row.title.c_str(), error.what());
      failed = true;
    }
  }
  if (words.empty() || std::any_of(words.begin(), words.end(), [](const std::string & word) {
        return std::string(DeconvolutionTitle).find(word) != std::string::npos;
      }))
  {
    auto & ofExtent = images[512];
    ofExtent = ofExtent ? std::move(ofExtent) : std::make_unique<Images>(512);
    const BufferView image = ofExtent->Get("noise");
    if (!folder.empty() && made.count("noise_512_voxels.raw") == 0)
    {
      std::ofstream(folder + "/noise_512_voxels.raw", std::ios::binary)
        .write(static_cast<const char *>(image.data), static_cast<std::streamsize>(image.NumberOfBytes()));
    }
    RunDeconvolution(report, image, onHostToo);
  }
  return failed ? 1 : 0;
}
