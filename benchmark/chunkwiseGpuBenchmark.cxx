/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times the kernels on a CUDA device: device-resident against the device's own copy, and host to host against the link.
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseDerivativeOperation.h"
#include "chunkwiseDiffusionOperation.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseHighPassOperation.h"
#include "chunkwiseHostCopy.h"
#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseLaplacianOperation.h"
#include "chunkwiseManager.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwiseOperations.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseResampleOperation.h"
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

/** Derivatives of a Gaussian, or of a window of three voxels for sigma 0. */
std::shared_ptr<DerivativeOperation>
Derivatives(double sigma, int order, DerivativeResult result)
{
  auto operation = std::make_shared<DerivativeOperation>();
  operation->result = result;
  for (std::size_t a = 0; a < 3; ++a)
  {
    operation->scales.front().weights[a] =
      sigma > 0 ? static_cast<const SeparableOperation &>(*Gaussian(sigma)).weights[a] : std::vector<double>{ 1, 2, 1 };
    for (std::size_t b = order == 1 ? 2 : a; b < 3; ++b)
    {
      DerivativeOrders orders{};
      ++orders[a];
      orders[b] += order == 1 ? 0 : 1;
      operation->components.push_back(orders);
    }
  }
  return operation;
}

std::shared_ptr<Operation>
HessianEigenvalues(double sigma)
{
  auto operation = Derivatives(sigma, 2, DerivativeResult::Eigenvalues);
  operation->componentAxis = MaxDimension - 1;
  return operation;
}

std::shared_ptr<Operation>
Frangi(double sigma)
{
  auto operation = Derivatives(sigma, 2, DerivativeResult::Measure);
  operation->scales.front().contrast = 20;
  return operation;
}

std::shared_ptr<Operation>
StructureTensor(double sigma)
{
  auto operation = Derivatives(sigma, 2, DerivativeResult::Eigenvalues);
  operation->components.assign(6, DerivativeOrders{});
  operation->componentAxis = MaxDimension - 1;
  operation->gradient = Derivatives(0, 1, DerivativeResult::Components);
  return operation;
}

/** An image turned about its center, by 0.2 about z after 0.1 about x: as scripts/gpu_peers.py turns it. */
std::shared_ptr<Operation>
Turn(Interpolation interpolation, bool prefilter = true)
{
  auto operation = std::make_shared<ResampleOperation>();
  operation->prefilter = prefilter;
  operation->image = operation->output = { { 512, 512, 512, 1, 1 } };
  operation->interpolation = interpolation;
  operation->outside = ResampleOutside::Constant;
  const double c = std::cos(0.2);
  const double s = std::sin(0.2);
  const double d = std::cos(0.1);
  const double t = std::sin(0.1);
  const double matrix[3][3] = { { c, -s * d, s * t }, { s, c * d, -c * t }, { 0, t, d } };
  for (int i = 0; i < 3; ++i)
  {
    std::copy(matrix[i], matrix[i] + 3, operation->matrix[i]);
    operation->offset[i] = 255.5 * (1 - (matrix[i][0] + matrix[i][1] + matrix[i][2]));
  }
  return operation;
}

struct Row
{
  std::string                name;
  std::shared_ptr<Operation> operation;
  const char *               capability{ "window" };
  bool                       withMemory{ false }; ///< whether its memory is a separate figure
  std::int64_t               results{ 1 };        ///< numbers of a voxel of the output
};

std::string
StandardName(const char * filter, std::int64_t radius)
{
  return std::string(filter) + ", radius " + std::to_string(radius);
}

Row
MedianRow(std::int64_t radius)
{
  return { StandardName("median", radius), MedianOf(radius), "rank" };
}

Row
DeviationRow(std::int64_t radius)
{
  return { StandardName("standard deviation", radius), StandardDeviation(radius) };
}

std::vector<Row>
Rows()
{
  return { { "mean, radius 2", Mean(2) },
           { "mean, radius 15", Mean(15) },
           { "Gaussian, sigma 2", Gaussian(2) },
           { "Gaussian, sigma 10", Gaussian(10) },
           DeviationRow(2),
           DeviationRow(5),
           { "maximum, radius 2", Maximum(2) },
           { "maximum, radius 15", Maximum(15) },
           { "opening, radius 2", Opening(2) },
           MedianRow(1),
           MedianRow(2),
           MedianRow(5),
           { "entropy, radius 2, 256 bins", Entropy(2) },
           { "Wiener, radius 2", Wiener(2) },
           { "Laplacian of Gaussian, sigma 2", Laplacian(2) },
           { "high pass, sigma 2", HighPass(2) },
           { "sequence: Gaussian sigma 2, mean radius 2, standard deviation radius 2", Sequence() } };
}

std::vector<Row>
ResamplingRows()
{
  return { { "affine transform, linear", Turn(Interpolation::Linear), "resampling" },
           { "affine transform, cubic B-spline", Turn(Interpolation::Cubic), "resampling" },
           { "affine transform, cubic B-spline of coefficients", Turn(Interpolation::Cubic, false), "resampling" } };
}

std::vector<Row>
WeightedRows()
{
  std::vector<Row> rows{ { "Gaussian, sigma 10", Gaussian(10) }, { "Laplacian of Gaussian, sigma 2", Laplacian(2) } };
  // Radii of 2 to 9: one kernel makes the passes of those up to 8.
  for (const char * const sigma : { "0.5", "0.75", "1", "1.25", "1.5", "1.75", "2", "2.25" })
  {
    rows.push_back({ std::string("Gaussian, sigma ") + sigma, Gaussian(std::atof(sigma)) });
  }
  return rows;
}

std::vector<Row>
GaussianRows()
{
  std::vector<Row> rows;
  for (const int sigma : { 5, 10, 20, 40 })
  {
    rows.push_back({ "Gaussian by weights; sigma " + std::to_string(sigma), Gaussian(sigma), "convolution" });
    rows.push_back(
      { "Gaussian through transforms; sigma " + std::to_string(sigma), GaussianByTransforms(sigma), "convolution" });
  }
  return rows;
}

std::vector<Row>
RankRows(std::initializer_list<std::int64_t> radii)
{
  std::vector<Row> rows;
  for (const std::int64_t radius : radii)
  {
    rows.push_back(MedianRow(radius));
  }
  return rows;
}

std::vector<Row>
VarianceRows()
{
  std::vector<Row> rows;
  for (const std::int64_t radius : { 1, 2, 3, 4, 5, 8, 15 })
  {
    rows.push_back(DeviationRow(radius));
  }
  return rows;
}

std::vector<Row>
NonLocalRows()
{
  return { { "non-local means, 5^3 voxels, patches of 3^3", NonLocalMeans(2, 1) } };
}

std::vector<Row>
DerivativeRows()
{
  return { { "gradient magnitude, sigma 2", Derivatives(2, 1, DerivativeResult::Magnitude), "derivatives" },
           { "Hessian eigenvalues, sigma 2", HessianEigenvalues(2), "derivatives", false, 3 },
           { "Hessian eigenvalues, sigma 4", HessianEigenvalues(4), "derivatives", false, 3 },
           { "Frangi, sigma 2", Frangi(2), "derivatives" },
           { "structure tensor eigenvalues, sigma 2", StructureTensor(2), "derivatives", false, 3 } };
}

std::vector<Row>
ConvolutionRows()
{
  using Method = ConvolutionMethod;
  using Mode = BoundaryMode;
  const auto row = [](const char * name, std::int64_t extent, Method method, Mode mode = Mode::Renormalized) {
    return Row{ name, Convolution(extent, method, mode), "convolution", true };
  };
  return { row("65^3 through transforms", 65, Method::FFT),
           row("65^3 through transforms, constant", 65, Method::FFT, Mode::Constant),
           row("65^3 through transforms, mirror", 65, Method::FFT, Mode::Mirror),
           row("33^3 through transforms", 33, Method::FFT),
           row("129^3 through transforms", 129, Method::FFT),
           row("few weights directly; 3^3", 3, Method::Direct),
           row("few weights directly; 4^3", 4, Method::Direct),
           row("few weights directly; 5^3", 5, Method::Direct),
           row("few weights directly; 7^3", 7, Method::Direct),
           row("few weights through transforms; 7^3", 7, Method::FFT) };
}

std::shared_ptr<ImageConvolutionOperation>
ProvidedConvolution(const Coordinates & extent, TransformProvider provider)
{
  auto                operation = std::make_shared<ImageConvolutionOperation>();
  std::vector<double> weights(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  Coordinates         center{};
  for (std::size_t i = 0; i < weights.size(); ++i)
  {
    weights[i] = 1 + static_cast<double>(i % 1031);
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    center[a] = extent[a] / 2;
  }
  operation->kernel = std::make_shared<ConvolutionKernel>(extent, center, weights);
  operation->method = ConvolutionMethod::FFT;
  operation->transforms = provider;
  return operation;
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
    const std::string way = order == VaryingOrder::ConvolveThenWeight ? "a filter" : "a point-spread function";
    rows.push_back({ "varying kernels of 100^2, as " + way + "; every " + std::to_string(spacing),
                     operation,
                     "convolution",
                     order == VaryingOrder::ConvolveThenWeight });
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

/** All of the host's threads. */
Executor &
AllThreads()
{
  static const std::unique_ptr<Executor> executor = MakeThreadExecutor();
  return *executor;
}

/** Values from 0 to 1677 and a fraction, as `TPixel`; of bytes, to 167. */
template <typename TPixel>
void
FillRandom(void * data, std::size_t count)
{
  auto * const image = static_cast<TPixel *>(data);
  InParts(AllThreads(), count, [image](std::size_t begin, std::size_t end, std::size_t part) {
    std::uint32_t state = 1234567u + static_cast<std::uint32_t>(part);
    for (std::size_t i = begin; i < end; ++i)
    {
      state = state * 1664525u + 1013904223u;
      image[i] = static_cast<TPixel>(static_cast<float>(state >> 8) * (sizeof(TPixel) > 1 ? 1e-4f : 1e-5f));
    }
  });
}

/** Differs where bits do, but for bad luck. */
std::string
CheckSum(const void * data, std::size_t bytes)
{
  std::atomic<std::uint64_t> sum{ 0 };
  InParts(AllThreads(), bytes / sizeof(std::uint64_t), [&sum, data](std::size_t begin, std::size_t end, std::size_t) {
    const auto * const words = static_cast<const std::uint64_t *>(data);
    std::uint64_t      own = 0;
    for (std::size_t i = begin; i < end; ++i)
    {
      own += (words[i] ^ i) * 0x9E3779B97F4A7C15u;
    }
    sum += own;
  });
  char text[32];
  std::snprintf(text, sizeof(text), "check sum %016llx", static_cast<unsigned long long>(sum));
  return text;
}

struct Image
{
  Box               box;
  PixelType         kind;
  std::vector<char> in;
  std::vector<char> out;

  Image(const Coordinates & extent, PixelType theKind)
    : box(Box::FromExtent(extent))
    , kind(theKind)
    , in(static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(kind))
    , out(in.size())
  {
    const auto count = static_cast<std::size_t>(box.NumberOfVoxels());
    switch (kind)
    {
      case PixelType::Float32:
        FillRandom<float>(in.data(), count);
        break;
      case PixelType::Float64:
        FillRandom<double>(in.data(), count);
        break;
      case PixelType::UInt16:
        FillRandom<std::uint16_t>(in.data(), count);
        break;
      default:
        FillRandom<std::uint8_t>(in.data(), count);
    }
  }
};

void
DeviceResident(Report & report, Device & device, const Image & image, const std::vector<Row> & rows)
{
  const StreamHandle stream = device.CreateStream();
  const std::size_t  bytes = image.in.size();
  std::int64_t       most = 1;
  for (const Row & row : rows)
  {
    most = std::max(most, row.results);
  }
  void * const in = device.Allocate(bytes);
  void * const out = device.Allocate(bytes * static_cast<std::size_t>(most));
  device.CopyToDevice(in, image.in.data(), bytes, stream);
  device.Synchronize(stream);
  const double      copy = LaunchSeconds(device, stream, [&] { device.CopyOnDevice(out, in, bytes, stream); });
  const std::string size = SizeName(image.box.Extents()) + " " + PixelTypeName(image.kind);
  report.Print("device-resident, " + size);
  report.Add(
    "host-to-host", "device copy, read and written; " + size, 2e-9 * static_cast<double>(bytes) / copy, "GB/s");
  {
    Tables tables(device, stream);
    for (const Row & row : rows)
    {
      BufferView from = DenseView(in, image.kind, image.box);
      if (row.results > 1)
      {
        // The image is the same for each of them.
        from.box.upper[MaxDimension - 1] = row.results;
        from.stride[MaxDimension - 1] = 0;
      }
      WholeImageCall run(device.GetKernels(), *row.operation, { from }, DenseView(out, image.kind, from.box));
      run.call.scratch = device.Allocate(std::max<std::size_t>(run.call.scratchBytes, 1));
      run.call.tables = &tables;
      const double ours = LaunchSeconds(device, stream, [&] { device.Launch(run.kernel, run.call, stream); });
      const double megabytes = 1e-6 * static_cast<double>(2 * bytes + run.call.scratchBytes);
      report.Add(row.capability, RowName(row.name, size), ours * 1e3, "ms", {}, { copy * 1e3, "device copy" });
      if (row.withMemory)
      {
        report.Add(row.capability, RowName("memory of " + row.name, size), megabytes, "MB");
      }
      device.Free(run.call.scratch);
    }
  }
  device.Free(in);
  device.Free(out);
  device.DestroyStream(stream);
}

/** Seconds of an operation over an image in the device's memory, and what that takes with its scratch. */
double
ResidentSeconds(Device & device, const Image & image, const Operation & operation, double & megabytes)
{
  const std::shared_ptr<void> stream(device.CreateStream(), [&](void * s) { device.DestroyStream(s); });
  const auto                  allocate = [&](std::size_t bytes) {
    return std::shared_ptr<void>(device.Allocate(bytes), [&](void * memory) { device.Free(memory); });
  };
  const auto in = allocate(image.in.size());
  const auto out = allocate(image.in.size());
  device.CopyToDevice(in.get(), image.in.data(), image.in.size(), stream.get());
  device.Synchronize(stream.get());
  Tables         tables(device, stream.get());
  WholeImageCall run(device.GetKernels(),
                     operation,
                     { DenseView(in.get(), image.kind, image.box) },
                     DenseView(out.get(), image.kind, image.box));
  const auto     scratch = allocate(std::max<std::size_t>(run.call.scratchBytes, 1));
  run.call.scratch = scratch.get();
  run.call.tables = &tables;
  megabytes = 1e-6 * static_cast<double>(2 * image.in.size() + run.call.scratchBytes);
  return LaunchSeconds(device, stream.get(), [&] { device.Launch(run.kernel, run.call, stream.get()); });
}

/** Own transforms beside cuFFT's: sizes with small factors, a prime, a product with 13; lines that own ones have not.
 */
void
Providers(Report & report, Device & device)
{
  struct Trial
  {
    Coordinates image;
    Coordinates kernel;
    PixelType   kind;
  };
  std::vector<Trial> trials;
  const PixelType    kinds[] = { PixelType::Float32, PixelType::Float64 };
  const auto         add = [&](const Coordinates & image, const Coordinates & kernel) {
    for (const PixelType kind : kinds)
    {
      trials.push_back({ image, kernel, kind });
    }
  };
  for (const std::int64_t n : { 512, 509, 520 })
  {
    add({ { n, n, n, 1, 1 } }, { { 65, 65, 65, 1, 1 } });
  }
  add({ { 20000, 512, 1, 1, 1 } }, { { 9001, 33, 1, 1, 1 } });
  add({ { 4096, 4096, 1, 1, 1 } }, { { 65, 65, 1, 1, 1 } });
  add({ { 4096, 4096, 1, 1, 1 } }, { { 601, 601, 1, 1, 1 } });
  add({ { 4093, 4093, 1, 1, 1 } }, { { 65, 65, 1, 1, 1 } });
  // Between fixed lengths.
  add({ { 648, 648, 648, 1, 1 } }, { { 65, 65, 65, 1, 1 } });
  for (const Trial & trial : trials)
  {
    const Image image(trial.image, trial.kind);
    double      milliseconds[2]{};
    double      megabytes[2]{};
    std::string failure;
    const auto  ofCufft = ProvidedConvolution(trial.kernel, TransformProvider::CuFFT);
    for (const bool byCufft : { false, true })
    {
      try
      {
        const auto operation = byCufft ? ofCufft : ProvidedConvolution(trial.kernel, TransformProvider::Own);
        milliseconds[byCufft] = 1e3 * ResidentSeconds(device, image, *operation, megabytes[byCufft]);
      }
      catch (const Error & error)
      {
        failure = error.what();
      }
    }
    // Auto takes our transforms.
    const bool        byCufft = ofCufft->IsForCufft();
    const std::string size = SizeName(trial.kernel) + ", " + SizeName(trial.image) + " " + PixelTypeName(trial.kind);
    const std::string name = byCufft ? "kernels of more than 512 voxels by cuFFT" : "own transforms beside cuFFT's";
    const std::string peer = byCufft ? "own transforms" : "cuFFT, batched, by the same filter";
    const bool        hasPeer = milliseconds[!byCufft] > 0;
    if (milliseconds[byCufft] > 0)
    {
      report.Add("convolution",
                 name + "; " + size,
                 milliseconds[byCufft],
                 "ms",
                 hasPeer ? std::vector<Reference>{ { milliseconds[!byCufft], peer } } : std::vector<Reference>());
      report.Add("convolution",
                 "memory of " + name + "; " + size,
                 megabytes[byCufft],
                 "MB",
                 hasPeer ? std::vector<Reference>{ { megabytes[!byCufft], peer } } : std::vector<Reference>());
    }
    if (!failure.empty())
    {
      report.Print("  " + size + ": " + failure);
    }
  }
}

/** The link's rate with pinned memory, one way and both ways at once. */
void
MeasureLink(Report & report, Device & device, double & oneWay, double & bothWays)
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
  report.SetDevice(device.GetDescription().name);
  report.Add("host-to-host", "link, one way; pinned memory", oneWay * 1e-9, "GB/s");
  report.Add("host-to-host", "link, both ways together; pinned memory", bothWays * 1e-9, "GB/s");
}

/** Bytes a second of each link, one way and both ways, while those of the first devices are all used at once. */
void
Links(Report & report, const std::vector<std::shared_ptr<Device>> & devices)
{
  constexpr std::size_t bytes = std::size_t{ 1 } << 30;
  constexpr std::size_t piece = std::size_t{ 16 } << 20;
  struct Link
  {
    Device &     device;
    StreamHandle up;
    StreamHandle down;
    char *       onDevice;
    char *       pinned;
  };
  std::vector<Link> links;
  for (const auto & device : devices)
  {
    links.push_back({ *device,
                      device->CreateStream(),
                      device->CreateStream(),
                      static_cast<char *>(device->Allocate(2 * bytes)),
                      static_cast<char *>(device->AllocatePinned(2 * bytes)) });
  }
  const auto rate = [&](std::size_t first, std::size_t last, bool up, bool down) {
    return bytes * 1e-9 / WarmMedianSeconds(5, [&] {
             for (std::size_t at = 0; at < bytes; at += piece)
             {
               for (std::size_t d = first; d < last; ++d)
               {
                 const Link & link = links[d];
                 if (up)
                 {
                   link.device.CopyToDevice(link.onDevice + at, link.pinned + at, piece, link.up);
                 }
                 if (down)
                 {
                   link.device.CopyToHost(link.pinned + bytes + at, link.onDevice + bytes + at, piece, link.down);
                 }
               }
             }
             for (std::size_t d = first; d < last; ++d)
             {
               links[d].device.Synchronize(links[d].up);
               links[d].device.Synchronize(links[d].down);
             }
           });
  };
  const auto add = [&](const std::string & which, std::size_t first, std::size_t last) {
    report.Add("host-to-host", "link to the device; " + which, rate(first, last, true, false), "GB/s");
    report.Add("host-to-host", "link to the host; " + which, rate(first, last, false, true), "GB/s");
    report.Add("host-to-host", "link, each way of both together; " + which, rate(first, last, true, true), "GB/s");
  };
  for (std::size_t d = 0; d < links.size(); ++d)
  {
    add("device " + std::to_string(d) + " alone", d, d + 1);
  }
  if (links.size() > 1)
  {
    add("each of " + std::to_string(links.size()) + " at once", 0, links.size());
  }
  for (const Link & link : links)
  {
    link.device.Free(link.onDevice);
    link.device.FreePinned(link.pinned);
    link.device.DestroyStream(link.up);
    link.device.DestroyStream(link.down);
  }
}

/** Bytes a second that threads copy in the host's memory, as they gather what goes to a device and scatter what comes
 * from one. */
void
HostCopies(Report & report, char * to, char * from, std::size_t bytes)
{
  const Box           box = Box::FromExtent({ { static_cast<std::int64_t>(bytes), 1, 1, 1, 1 } });
  const DenseSequence source(DenseView(from, PixelType::UInt8, box), box, box);
  const DenseSequence target(DenseView(to, PixelType::UInt8, box), box, box);
  const unsigned int  most = AllThreads().GetConcurrency();
  for (unsigned int threads = 1; threads <= most; threads = threads < most ? std::min(2 * threads, most) : most + 1)
  {
    const auto        executor = MakeThreadExecutor(threads);
    const std::size_t part = std::min(bytes, (std::size_t{ 1 } << 30) * threads);
    for (const bool streams : { false, true })
    {
      const double seconds = BestSeconds(3, [&] {
        InParts(*executor, part, [&](std::size_t begin, std::size_t end, std::size_t) {
          streams ? target.Scatter(begin, end, from + begin) : source.Gather(begin, end, to + begin);
        });
      });
      report.Add("host-to-host",
                 std::string("a copy in the host's memory, ") + (streams ? "past the caches" : "plain") + "; " +
                   std::to_string(threads) + (threads > 1 ? " threads" : " thread"),
                 static_cast<double>(part) * 1e-9 / seconds,
                 "GB/s");
    }
  }
}

/** Bytes a second each way of what is gathered into small buffers while as much is scattered from others, as staging
 * does, but without a device. */
void
HostStaging(Report & report, char * to, char * from, std::size_t bytes)
{
  constexpr std::size_t piece = std::size_t{ 2 } << 20;
  const Box             box = Box::FromExtent({ { static_cast<std::int64_t>(bytes), 1, 1, 1, 1 } });
  const DenseSequence   source(DenseView(from, PixelType::UInt8, box), box, box);
  const DenseSequence   target(DenseView(to, PixelType::UInt8, box), box, box);
  const unsigned int    threads = AllThreads().GetConcurrency();
  std::vector<char>     rings(2 * piece * threads, 1);
  for (const unsigned int gathering : { threads / 2, threads * 5 / 8 })
  {
    const double seconds = BestSeconds(3, [&] {
      std::atomic<std::size_t> gathered{ 0 };
      std::atomic<std::size_t> scattered{ 0 };
      AllThreads().ParallelFor(threads, [&](std::int64_t thread, unsigned int) {
        const bool  gathers = thread < gathering;
        std::size_t count = 0;
        std::size_t at = 0;
        while ((at = (gathers ? gathered : scattered).fetch_add(piece)) < bytes)
        {
          char * const ring = rings.data() + (2 * static_cast<std::size_t>(thread) + count++ % 2) * piece;
          gathers ? source.Gather(at, at + piece, ring) : target.Scatter(at, at + piece, ring);
        }
      });
    });
    report.Add("host-to-host",
               "gathered and scattered at once by the host, each way; " + std::to_string(gathering) + " and " +
                 std::to_string(threads - gathering) + " threads",
               static_cast<double>(bytes) * 1e-9 / seconds,
               "GB/s");
  }
}

/** Seconds to copy an image in the host's memory, all threads: what staging cannot beat, however many devices. */
double
HostCopy(Report & report, const std::string & size, void * to, const void * from, std::size_t bytes)
{
  const double seconds = WarmMedianSeconds(3, [&] { CopyInParts(AllThreads(), to, from, bytes); });
  report.Add("host-to-host",
             "a copy in the host's memory, " + std::to_string(AllThreads().GetConcurrency()) + " threads; " + size,
             seconds,
             "s");
  return seconds;
}

std::string
NoteOf(const ExecutionReport & execution)
{
  return std::to_string(execution.plan.chunks.size()) + " chunks, peak " + std::to_string(execution.peakDevice >> 20) +
         " MiB";
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
HostToHost(Report & report, Device & device, PixelType kind)
{
  double oneWay = 0;
  double bothWays = 0;
  MeasureLink(report, device, oneWay, bothWays);
  Image           image(Coordinates{ { 512, 512, 512, 1, 1 } }, kind);
  const Reference transfers{ 2e3 * static_cast<double>(image.in.size()) / bothWays, "transfers alone" };
  for (const std::size_t memory : { std::size_t{ 0 }, std::size_t{ 1 } << 30 })
  {
    const std::string size = std::string("512^3 ") + PixelTypeName(kind) + (memory ? ", 1 GiB a device" : "");
    report.Print("host to host, pageable memory, " + size);
    for (const Row & row : Rows())
    {
      ExecutionReport execution;
      const double    ours = WarmMedianSeconds(7, [&] { execution = Execute(image, row.operation, memory, { 0 }); });
      report.Add("host-to-host", RowName(row.name, size), ours * 1e3, "ms", {}, transfers, NoteOf(execution));
    }
  }
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

/** "NVIDIA H200" or "2 x NVIDIA H200" */
void
SetDevices(Report & report, const Device & device, std::size_t count)
{
  report.SetDevice((count > 1 ? std::to_string(count) + " x " : std::string()) + device.GetDescription().name);
}

std::string
DevicesName(std::size_t count)
{
  return (count == 2 ? "two" : std::to_string(count)) + " devices";
}

/** A row's name, which begins with the number of devices where that is not one. */
std::string
NameOf(std::size_t devices, const std::string & what, const std::string & size)
{
  return devices > 1 ? DevicesName(devices) + "; " + what + ", " + size : RowName(what, size);
}

constexpr std::size_t LargeBytes = std::size_t{ 16 } << 30;

/** Filters of 16 GiB, host to host, from and to `in` and `out`. */
void
Large(Report & report, const char * memory, Device & device, std::size_t devices, void * in, void * out)
{
  double oneWay = 0;
  double bothWays = 0;
  MeasureLink(report, device, oneWay, bothWays);
  const Box         box = Box::FromExtent({ { 2048, 2048, 1024, 1, 1 } });
  const auto        bytes = static_cast<double>(LargeBytes);
  const std::string size = SizeName(box.Extents()) + " float32";
  HostCopy(report, size, out, in, LargeBytes);
  for (const Row & row :
       { Row{ "identity", std::make_shared<IdentityOperation>() },
         Rows()[0],
         Rows()[2],
         Row{ "sequence: Gaussian sigma 2, opening radius 2, median radius 1", GaussianOpeningMedian() } })
  {
    const std::string budget =
      size + (std::strcmp(memory, "pageable") ? std::string(", ") + memory : std::string()) + ", 2 GiB a device";
    double one = 0;
    for (std::size_t count = 1; count <= devices; count *= 2)
    {
      SetDevices(report, device, count);
      ExecutionReport execution;
      const double    ours = WarmMedianSeconds(3, [&] {
        execution = Execute(DenseView(in, PixelType::Float32, box),
                            DenseView(out, PixelType::Float32, box),
                            row.operation,
                            std::size_t{ 2 } << 30,
                            FirstDevices(count));
      });
      one = count == 1 ? ours : one;
      char note[64];
      std::snprintf(note, sizeof(note), ", bytes to device / image %.4f, ", execution.bytesToDevice / bytes);
      report.Add("host-to-host",
                 NameOf(count, row.name, budget),
                 ours,
                 "s",
                 { { count > 1 ? one : 0, "one device" } },
                 { 2 * bytes / bothWays, "transfers alone, one device" },
                 NoteOf(execution) + note + CheckSum(out, LargeBytes));
      report.Add("host-to-host",
                 (count > 1 ? DevicesName(count) + ", " : std::string()) + "each way; " + row.name + ", " + budget,
                 bytes / ours * 1e-9,
                 "GB/s",
                 {},
                 { oneWay * 1e-9, "link, one way" });
    }
  }
}

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
LargeTable(Report & report, const char * memory, Device & device, std::size_t devices, void * in, void * out)
{
  double oneWay = 0;
  double bothWays = 0;
  MeasureLink(report, device, oneWay, bothWays);
  const auto bytes = static_cast<double>(LargeBytes);
  HostCopy(report, "65536^2 float32", out, in, LargeBytes);
  for (const Coordinates & extent :
       { Coordinates{ { 65536, 65536, 1, 1, 1 } }, Coordinates{ { 2048, 2048, 1024, 1, 1 } } })
  {
    const Box         box = Box::FromExtent(extent);
    const std::string size = SizeName(extent) + " float32, " + memory + ", 2 GiB a device";
    double            one = 0;
    for (std::size_t count = 1; count <= devices; count *= 2)
    {
      const std::vector<int> used = FirstDevices(count);
      SetDevices(report, device, count);
      ExecutionReport execution;
      const auto      time = [&](const std::shared_ptr<Operation> & operation) {
        return WarmMedianSeconds(3, [&] {
          execution = Execute(DenseView(in, PixelType::Float32, box),
                              DenseView(out, PixelType::Float32, box),
                              operation,
                              std::size_t{ 2 } << 30,
                              used);
        });
      };
      const double mean = time(Mean(2));
      const double ours = time(Table(extent));
      one = count == 1 ? ours : one;
      report.Add("host-to-host",
                 NameOf(count, "table", size),
                 ours,
                 "s",
                 { { mean, "mean, radius 2" }, { count > 1 ? one : 0, "one device" } },
                 {},
                 NoteOf(execution) + ", " + CheckSum(out, LargeBytes));
      if (count == 1)
      {
        report.Add("host-to-host", "table, of the link both ways; " + size, 200 * bytes / ours / bothWays, "%");
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
Accuracy(Report & report, std::int64_t extent, std::int64_t kernelExtent)
{
  Image      image(Coordinates{ { extent, extent, extent, 1, 1 } }, PixelTypeOf<TPixel>());
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
  const std::string size =
    std::to_string(kernelExtent) + "^3 on " + std::to_string(extent) + "^3 " + PixelTypeName(image.kind);
  const std::string note = "against direct sums in double at 256 voxels";
  report.Add("convolution", "relative L2 error of transforms; " + size, std::sqrt(error / norm), "1", {}, {}, note);
  report.Add("convolution", "largest relative error of transforms; " + size, largest, "1", {}, {}, note);
}

/** Images of all sizes, host to host, where only one device may be used and where all may: the best of many runs. */
void
OneOrAll(Report & report, Device & device, std::size_t devices)
{
  for (const std::int64_t extent : { 64, 128, 256, 512, 1024 })
  {
    Image             image(Coordinates{ { extent, extent, extent, 1, 1 } }, PixelType::UInt16);
    const std::string size = SizeName(image.box.Extents()) + " uint16";
    for (const Row & row :
         { Row{ "identity", std::make_shared<IdentityOperation>() },
           Row{ "Gaussian, sigma 2", Rows()[2].operation },
           Row{ "sequence: Gaussian sigma 2, opening radius 2, median radius 1", GaussianOpeningMedian() },
           Row{ "convolution 33^3", Convolution(33, ConvolutionMethod::FFT, BoundaryMode::Renormalized) } })
    {
      double one = 0;
      for (const std::size_t count : { std::size_t{ 1 }, devices })
      {
        SetDevices(report, device, count);
        ExecutionReport execution;
        const auto      run = [&] { execution = Execute(image, row.operation, 0, FirstDevices(count)); };
        run();
        const double ours = BestSeconds(extent > 512 ? 7 : 25, run);
        one = count == 1 ? ours : one;
        report.Add("host-to-host",
                   NameOf(count, row.name + (count > 1 ? ", where it may use all" : ""), size),
                   ours * 1e3,
                   "ms",
                   { { count > 1 ? one * 1e3 : 0, "one device" } },
                   {},
                   NoteOf(execution) + " on " + std::to_string(execution.chunksPerDevice.size()) + ", expected " +
                     std::to_string(execution.plan.seconds * 1e3) + " ms");
      }
    }
  }
}

/** Many iterations, host to host: one device, several by chunks with halos, and several that hold the image together.
 */
void
LargeIterations(Report & report, Device & device, std::size_t devices)
{
  struct Case
  {
    std::int64_t extent;
    std::int64_t iterations;
  };
  for (const Case & each : { Case{ 512, 20 }, Case{ 512, 100 }, Case{ 1024, 100 } })
  {
    Image      image(Coordinates{ { each.extent, each.extent, each.extent, 1, 1 } }, PixelType::Float32);
    const auto operation = std::make_shared<DiffusionOperation>();
    operation->iterations = each.iterations;
    operation->contrast = 0.1;
    std::fill_n(operation->scale, 3, 1.0);
    const std::string name = "gradient diffusion, " + std::to_string(each.iterations) + " iterations";
    const std::string size = SizeName(image.box.Extents()) + " float32";
    double            one = 0;
    for (std::size_t count = 1; count <= devices; count *= 2)
    {
      SetDevices(report, device, count);
      for (const ImageDivision division : { ImageDivision::Never, ImageDivision::Always, ImageDivision::Auto })
      {
        if (count == 1 && division != ImageDivision::Never)
        {
          continue;
        }
        ExecutionReport  execution;
        ExecutionRequest request;
        request.operation = operation;
        request.image = request.region = image.box;
        request.inputs.push_back(DenseView(image.in.data(), image.kind, image.box));
        request.output = DenseView(image.out.data(), image.kind, image.box);
        request.backend = BackendChoice::CUDA;
        request.devices = FirstDevices(count);
        request.division = division;
        const double ours = WarmMedianSeconds(3, [&] { execution = Manager::GetGlobal().Execute(request); });
        one = count == 1 ? ours : one;
        const char * const how = division == ImageDivision::Never    ? "in chunks"
                                 : division == ImageDivision::Always ? "held together"
                                                                     : "as planned";
        report.Add("host-to-host",
                   NameOf(count, name + (count > 1 ? std::string(", ") + how : std::string()), size),
                   ours * 1e3,
                   "ms",
                   { { count > 1 ? one * 1e3 : 0, "one device" } },
                   {},
                   NoteOf(execution) + ", expected " + std::to_string(execution.plan.seconds * 1e3) + " ms, " +
                     CheckSum(image.out.data(), image.out.size()));
      }
    }
  }
}

/** A convolution of 8 GiB, host to host. */
void
LargeConvolution(Report & report, Device & device, std::size_t devices)
{
  double oneWay = 0;
  double bothWays = 0;
  MeasureLink(report, device, oneWay, bothWays);
  Image             image(Coordinates{ { 1024, 1024, 2048, 1, 1 } }, PixelType::Float32);
  const std::string size = "1024 x 1024 x 2048 float32";
  const double      limit = 2.0 * static_cast<double>(image.in.size()) / bothWays;
  HostCopy(report, size, image.out.data(), image.in.data(), image.in.size());
  for (const std::int64_t kernel : { 33, 65 })
  {
    const auto                    operation = Convolution(kernel, ConvolutionMethod::FFT, BoundaryMode::Renormalized);
    const std::string             name = "convolution " + std::to_string(kernel) + "^3";
    std::map<std::size_t, double> one;
    for (std::size_t count = 1; count <= devices; count *= 2)
    {
      SetDevices(report, device, count);
      for (const std::size_t gigabytes : { 0, 4 })
      {
        ExecutionReport execution;
        const double    ours =
          WarmMedianSeconds(3, [&] { execution = Execute(image, operation, gigabytes << 30, FirstDevices(count)); });
        one.insert({ gigabytes, ours });
        report.Add("host-to-host",
                   NameOf(count, name, size + (gigabytes ? ", 4 GiB a device" : "")),
                   ours,
                   "s",
                   { { count > 1 ? one[gigabytes] : 0, "one device" } },
                   { count > 1 ? 0 : limit, "transfers alone" },
                   NoteOf(execution) + ", " + CheckSum(image.out.data(), image.out.size()));
      }
    }
  }
}

} // namespace

/** Arguments: any of "resident", "ranks", "medians", "variances", "derivatives", "nonlocal", "weighted", "gaussians",
 * "resampling", "convolution", "cufft", "varying", "host"; none: all of these. Runs of one device beside all devices,
 * only by name: "large-links", "large-copies" (of the host), "large", "large-pinned", "large-convolution",
 * "large-table", "large-table-pinned", "large-iterations", "large-or-small". And --csv FILE. */
int
main(int argc, char * argv[])
{
  Report      report(argc, argv);
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
    const auto devices = backend->GetDevices();
    report.SetDevice(devices[0]->GetDescription().name);
    const Coordinates extent{ { 512, 512, 512, 1, 1 } };
    for (const PixelType kind : { PixelType::Float32, PixelType::UInt16 })
    {
      if (wants("resident"))
      {
        DeviceResident(report, *devices[0], Image(extent, kind), Rows());
      }
      if (wants("resampling"))
      {
        DeviceResident(report, *devices[0], Image(extent, kind), ResamplingRows());
      }
      if (wants("host"))
      {
        HostToHost(report, *devices[0], kind);
      }
    }
    for (const PixelType kind : { PixelType::UInt8, PixelType::UInt16, PixelType::Float32 })
    {
      if (wants("ranks"))
      {
        DeviceResident(report, *devices[0], Image(extent, kind), RankRows({ 3, 4, 5, 7, 10, 15, 20 }));
      }
      if (wants("medians"))
      {
        DeviceResident(report, *devices[0], Image(extent, kind), RankRows({ 1, 2 }));
        const Coordinates slice{ { 8192, 8192, 1, 1, 1 } };
        DeviceResident(report, *devices[0], Image(slice, kind), RankRows({ 1, 2, 3, 10 }));
      }
      if (wants("variances"))
      {
        DeviceResident(report, *devices[0], Image(extent, kind), VarianceRows());
      }
    }
    if (wants("derivatives"))
    {
      for (const std::int64_t size : { 256, 512 })
      {
        DeviceResident(
          report, *devices[0], Image(Coordinates{ { size, size, size, 1, 1 } }, PixelType::Float32), DerivativeRows());
      }
    }
    if (wants("nonlocal"))
    {
      DeviceResident(report, *devices[0], Image(extent, PixelType::Float32), NonLocalRows());
    }
    for (const PixelType kind : { PixelType::Float32, PixelType::UInt16 })
    {
      if (wants("weighted"))
      {
        DeviceResident(report, *devices[0], Image(extent, kind), WeightedRows());
      }
      if (wants("gaussians"))
      {
        DeviceResident(report, *devices[0], Image(extent, kind), GaussianRows());
      }
    }
    if (wants("convolution"))
    {
      for (const PixelType kind : { PixelType::Float32, PixelType::UInt16 })
      {
        DeviceResident(report, *devices[0], Image(extent, kind), ConvolutionRows());
      }
      Accuracy<float>(report, 512, 65);
      Accuracy<double>(report, 256, 33);
    }
    if (wants("cufft"))
    {
      Providers(report, *devices[0]);
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
        DeviceResident(report, *devices[0], Image(Coordinates{ { size, size, 1, 1, 1 } }, PixelType::Float32), rows);
      }
    }
    if (wants("large-convolution"))
    {
      LargeConvolution(report, *devices[0], devices.size());
    }
    if (wants("large-iterations"))
    {
      LargeIterations(report, *devices[0], devices.size());
    }
    if (wants("large-or-small"))
    {
      OneOrAll(report, *devices[0], devices.size());
    }
    if (wants("large-links"))
    {
      Links(report, devices);
    }
    if (wants("large-copies") || wants("large-table") || wants("large"))
    {
      // Not touched before it is filled: that takes longer than the runs.
      const auto                                    free = [](void * memory) { std::free(memory); };
      const std::unique_ptr<void, void (*)(void *)> in(std::malloc(LargeBytes), free);
      const std::unique_ptr<void, void (*)(void *)> out(std::malloc(LargeBytes), free);
      FillRandom<float>(in.get(), LargeBytes / sizeof(float));
      CopyInParts(AllThreads(), out.get(), in.get(), LargeBytes);
      if (wants("large-copies"))
      {
        HostCopies(report, static_cast<char *>(out.get()), static_cast<char *>(in.get()), LargeBytes);
        HostStaging(report, static_cast<char *>(out.get()), static_cast<char *>(in.get()), LargeBytes);
      }
      if (wants("large"))
      {
        Large(report, "pageable", *devices[0], devices.size(), in.get(), out.get());
      }
      if (wants("large-table"))
      {
        LargeTable(report, "pageable", *devices[0], devices.size(), in.get(), out.get());
      }
    }
    if (wants("large-table-pinned") || wants("large-pinned"))
    {
      void * const in = devices[0]->AllocatePinned(LargeBytes);
      void * const out = devices[0]->AllocatePinned(LargeBytes);
      FillRandom<float>(in, LargeBytes / sizeof(float));
      if (wants("large-pinned"))
      {
        Large(report, "pinned", *devices[0], devices.size(), in, out);
      }
      if (wants("large-table-pinned"))
      {
        LargeTable(report, "pinned", *devices[0], devices.size(), in, out);
      }
      devices[0]->FreePinned(in);
      devices[0]->FreePinned(out);
    }
  }
  catch (const Error & error)
  {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
