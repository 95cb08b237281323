/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The four networks of the ZNNi paper (table III), host to host: output voxels a second.
// Usage: chunkwise_network_benchmark cpu|cuda N|XxYxZ [NETWORK...] [--method float32|tensorfloat32|half|direct]
// [--memory GB] [--planes device|host] [--head LAYERS] [--csv FILE] [--errors] [--plans] [--layers] [--expected]
// --head LAYERS: so many are computed by the CPU, in place of what is expected to be faster.
// --planes: where slabs keep the planes that later ones need, in place of what is expected to be faster.
// --plans: layers of many kinds: what the plan chooses, beside the best of all tiles and the direct
// way, and what it expects beside what was measured. A minute with 128^3 outputs.
// --expected: what the plan expects within 130 to 1 GB of device memory, with planes where that is faster and on the
// device, and the least memory of either, also of a U-Net; nothing is run, but it takes a minute.
// --layers: what one more layer takes, and what a run takes beside its layers, each beside what the plan expects.
// --errors: not how fast, but the largest difference over the largest output, of float32 from direct, of the others
// from float32, which is a thousand times as exact.
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseError.h"
#include "chunkwiseManager.h"
#include "chunkwiseNetworkOperation.h"

#include <cmath>
#include <ctime>
#include <limits>
#include <random>
#include <thread>

using namespace chunkwise;

namespace
{

struct Architecture
{
  const char * name;
  /** Kernels of convolutions, 0 for a pooling by 2. */
  std::vector<int> layers;
};

const Architecture Architectures[] = { { "n337", { 2, 0, 3, 0, 3, 0, 3, 3, 3, 3 } },
                                       { "n537", { 4, 0, 5, 0, 5, 0, 5, 5, 5, 5 } },
                                       { "n726", { 6, 0, 7, 0, 7, 7, 7, 7 } },
                                       { "n926", { 8, 0, 9, 0, 9, 9, 9, 9 } } };

std::shared_ptr<const NetworkGraph>
Build(const Architecture & architecture, bool endsWithRelu)
{
  std::mt19937 random(3);
  const auto   graph = std::make_shared<NetworkGraph>();
  NetworkLayer input;
  input.channels = 1;
  int at = graph->Add(input);
  for (std::size_t i = 0; i < architecture.layers.size(); ++i)
  {
    const std::int64_t k = architecture.layers[i];
    NetworkLayer       layer;
    layer.inputs = { at };
    if (k == 0)
    {
      layer.kind = LayerKind::MaximumPooling;
      layer.kernel = layer.stride = { { 2, 2, 2 } };
    }
    else
    {
      const int inputs = graph->GetLayers().back().channels;
      layer.kind = LayerKind::Convolution;
      layer.channels = i + 1 == architecture.layers.size() ? 3 : 80;
      layer.kernel = { { k, k, k } };
      const bool isLast = i + 1 == architecture.layers.size();
      layer.activation.kind = isLast && !endsWithRelu ? ActivationKind::None : ActivationKind::Relu;
      auto weights =
        std::make_shared<std::vector<float>>(static_cast<std::size_t>(inputs * layer.channels * k * k * k));
      std::normal_distribution<float> normal(0.0f, std::sqrt(2.0f / static_cast<float>(inputs * k * k * k)));
      for (float & weight : *weights)
      {
        weight = normal(random);
      }
      layer.weights = weights;
    }
    at = graph->Add(layer);
  }
  graph->SetOutput(at);
  graph->Finish();
  return graph;
}

/** MONAI's BasicUNet with batch normalization: 32 to 256 maps, two outputs. */
std::shared_ptr<const NetworkGraph>
BuildUNet()
{
  const auto   graph = std::make_shared<NetworkGraph>();
  NetworkLayer input;
  input.channels = 1;
  const auto channelsOf = [&](int layer) { return graph->GetLayers()[static_cast<std::size_t>(layer)].channels; };
  const auto weigh = [&](NetworkLayer layer, int from, int channels, std::int64_t k) {
    layer.inputs = { from };
    layer.channels = channels;
    layer.kernel = { { k, k, k } };
    layer.weights =
      std::make_shared<std::vector<float>>(static_cast<std::size_t>(channelsOf(from) * channels * k * k * k), 0.01f);
    return graph->Add(layer);
  };
  const auto convolveTwice = [&](int at, int channels) {
    NetworkLayer layer;
    layer.kind = LayerKind::Convolution;
    layer.padLower = layer.padUpper = { { 1, 1, 1 } };
    layer.activation.kind = ActivationKind::LeakyRelu;
    layer.activation.alpha = 0.1f;
    return weigh(layer, weigh(layer, at, channels, 3), channels, 3);
  };
  int              at = convolveTwice(graph->Add(input), 32);
  std::vector<int> levels;
  for (const int channels : { 32, 64, 128, 256 })
  {
    levels.push_back(at);
    NetworkLayer pool;
    pool.kind = LayerKind::MaximumPooling;
    pool.inputs = { at };
    pool.kernel = pool.stride = { { 2, 2, 2 } };
    at = convolveTwice(graph->Add(pool), channels);
  }
  for (const int channels : { 128, 64, 32, 32 })
  {
    NetworkLayer up;
    up.kind = LayerKind::TransposedConvolution;
    up.stride = { { 2, 2, 2 } };
    NetworkLayer both;
    both.kind = LayerKind::Concatenation;
    both.inputs = { levels.back(), weigh(up, at, channels, 2) };
    levels.pop_back();
    at = convolveTwice(graph->Add(both), channels);
  }
  NetworkLayer last;
  last.kind = LayerKind::Convolution;
  graph->SetOutput(weigh(last, at, 2, 1));
  graph->Finish();
  return graph;
}

/** "256^3", "256x128x512" */
std::string
TextOf(const LayerExtent & extent)
{
  const std::string x = std::to_string(extent[0]);
  return extent[1] == extent[0] && extent[2] == extent[0]
           ? x + "^3"
           : x + 'x' + std::to_string(extent[1]) + 'x' + std::to_string(extent[2]);
}

/** A run over an extent of outputs, in the middle of an image that has all they need. */
class NetworkRunner
{
public:
  NetworkRunner(const std::shared_ptr<NetworkOperation> & operation, const LayerExtent & extent, bool onDevices)
  {
    const LayerExtent & margin = operation->graph->GetMargin();
    const Box           image =
      Box::FromExtent({ { extent[0] + margin[0], extent[1] + margin[1], extent[2] + margin[2], 1, 1 } });
    // The part with the whole field of view inside the image: the result of the plain network.
    Box region = image;
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      region.lower[a] = operation->graph->GetLowerMargin()[static_cast<std::size_t>(a)];
      region.upper[a] = region.lower[a] + extent[static_cast<std::size_t>(a)];
    }
    m_Voxels.resize(static_cast<std::size_t>(image.NumberOfVoxels()));
    std::uint32_t random = 4;
    for (std::uint8_t & voxel : m_Voxels)
    {
      random = random * 1664525u + 1013904223u;
      voxel = static_cast<std::uint8_t>(random >> 24);
    }
    results.resize(static_cast<std::size_t>(region.NumberOfVoxels()));
    request.operation = operation;
    request.inputs = { DenseView(m_Voxels.data(), PixelType::UInt8, image) };
    request.output = DenseView(results.data(), PixelType::Float32, region);
    request.image = image;
    request.region = region;
    request.backend = onDevices ? BackendChoice::CUDA : BackendChoice::CPU;
  }
  ExecutionReport
  operator()()
  {
    return Manager::GetGlobal().Execute(request);
  }

  ExecutionRequest   request;
  std::vector<float> results;

private:
  std::vector<std::uint8_t> m_Voxels;
};

/** The plan's expectation for a network, in Mvoxel/s for each memory of a device. */
void
PrintExpected(const char * name, const std::shared_ptr<const NetworkGraph> & graph, NetworkPrecision precision,
              const LayerExtent & extent)
{
  const auto operation = std::make_shared<NetworkOperation>();
  operation->graph = graph;
  operation->precision = precision;
  operation->headLayers = 0;
  const LayerExtent & margin = graph->GetMargin();
  ExecutionRequest    request;
  request.operation = operation;
  request.backend = BackendChoice::CUDA;
  request.image = Box::FromExtent({ { extent[0] + margin[0], extent[1] + margin[1], extent[2] + margin[2], 1, 1 } });
  request.region = request.image;
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    request.region.lower[a] = graph->GetLowerMargin()[static_cast<std::size_t>(a)];
    request.region.upper[a] = request.region.lower[a] + extent[static_cast<std::size_t>(a)];
  }
  // A plan needs no voxels.
  static float voxel = 0;
  request.inputs = { DenseView(static_cast<void *>(&voxel), PixelType::UInt8, request.image) };
  request.output = DenseView(static_cast<void *>(&voxel), PixelType::Float32, request.region);
  for (const auto planes : { NetworkPlanes::Automatic, NetworkPlanes::OnDevice })
  {
    operation->planes = planes;
    std::printf("| %s, %s |", name, planes == NetworkPlanes::Automatic ? "automatic" : "on the device");
    // Without a plan it takes long to find the memory that is enough: the least comes last.
    for (const double memory : { 130.0, 40.0, 16.0, 8.0, 4.0, 3.0, 2.0, 1.0, 0.001 })
    {
      request.budgets.device = static_cast<std::size_t>(memory * 1e9);
      char entry[100];
      try
      {
        const Plan   plan = Manager::GetGlobal().MakePlanFor(request);
        const double rate = static_cast<double>(request.region.NumberOfVoxels()) / plan.seconds / 1e6;
        std::snprintf(entry, sizeof(entry), " %.3g%s", rate, plan.spilledBytes > 0 ? " (host)" : "");
      }
      catch (const BudgetError & error)
      {
        std::snprintf(entry, sizeof(entry), " (needs %.2f GB)", static_cast<double>(error.needed) / 1e9);
      }
      std::printf("%s |", entry);
      std::fflush(stdout);
    }
    std::printf("\n");
  }
}

/** Layers of one kind between layers that make many channels of one, and one of many. With `pads`, all have one
 * extent. */
std::shared_ptr<const NetworkGraph>
BuildLayers(int channels, std::int64_t kernel, int layers = 3, bool pads = false)
{
  std::mt19937                    random(5);
  std::normal_distribution<float> normal(0.0f,
                                         1.0f / std::sqrt(static_cast<float>(channels * kernel * kernel * kernel)));
  const auto                      graph = std::make_shared<NetworkGraph>();
  NetworkLayer                    input;
  input.channels = 1;
  int at = graph->Add(input);
  for (int i = 0; i < layers + 2; ++i)
  {
    const bool         isLast = i == layers + 1;
    const int          inputs = i == 0 ? 1 : channels;
    const std::int64_t k = i == 0 || isLast ? 1 : kernel;
    NetworkLayer       layer;
    layer.inputs = { at };
    layer.kind = LayerKind::Convolution;
    layer.channels = isLast ? 1 : channels;
    layer.kernel = { { k, k, k } };
    layer.padLower = layer.padUpper = pads ? LayerExtent{ { k / 2, k / 2, k / 2 } } : LayerExtent{ { 0, 0, 0 } };
    layer.activation.kind = ActivationKind::Relu;
    auto weights = std::make_shared<std::vector<float>>(static_cast<std::size_t>(inputs * layer.channels * k * k * k));
    std::generate(weights->begin(), weights->end(), [&] { return normal(random); });
    layer.weights = weights;
    at = graph->Add(layer);
  }
  graph->SetOutput(at);
  graph->Finish();
  return graph;
}

/** The plan's choice beside an exhaustive search, and its expectation beside the measurement. */
void
ComparePlans(const char * name, NetworkPrecision precision, const LayerExtent & extent, bool onDevices)
{
  double worstChoice = 0;
  double leastExpected = std::numeric_limits<double>::infinity();
  double mostExpected = 0;
  for (const int channels : { 16, 80 })
  {
    for (const std::int64_t kernel : { 3, 5, 7, 9 })
    {
      const auto operation = std::make_shared<NetworkOperation>();
      operation->graph = BuildLayers(channels, kernel);
      operation->precision = precision;
      NetworkRunner runner(operation, extent, onDevices);
      double        expected = 0;
      std::string   all;
      const auto    measure = [&](NetworkMethod method, int tile) {
        operation->method = method;
        operation->tile = tile;
        expected = Manager::GetGlobal().MakePlanFor(runner.request).seconds;
        runner();
        const double seconds = MedianSeconds(3, [&] { runner(); });
        char         text[100];
        std::snprintf(text, sizeof(text), " %d: %.4f (%.4f)", tile, seconds, expected);
        all += text;
        return seconds;
      };
      const double chosen = measure(NetworkMethod::Automatic, 0);
      // A run makes its plan before it computes anything.
      const double planning = MedianSeconds(3, [&] { (void)Manager::GetGlobal().MakePlanFor(runner.request); });
      const double ratio = expected / (chosen - planning);
      double       best = chosen;
      // The direct way of wide layers takes minutes, and is known not to be the best.
      const bool mayBeDirect = channels * kernel * kernel * kernel < 3000;
      for (const int tile : { 0, 16, 20, 24, 28, 32 })
      {
        if (tile > 0 ? tile > kernel : mayBeDirect)
        {
          best = std::min(best, measure(tile > 0 ? NetworkMethod::Transforms : NetworkMethod::Direct, tile));
        }
      }
      std::printf(
        "%s, %d channels, kernel %d^3, %s: chosen/best %.2f, expected/measured %.2f beside %.1f ms of planning; "
        "of tiles, measured (expected) s:%s\n",
        name,
        channels,
        static_cast<int>(kernel),
        TextOf(extent).c_str(),
        chosen / best,
        ratio,
        1000 * planning,
        all.c_str());
      std::fflush(stdout);
      worstChoice = std::max(worstChoice, chosen / best);
      leastExpected = std::min(leastExpected, ratio);
      mostExpected = std::max(mostExpected, ratio);
    }
  }
  std::printf(
    "%s: chosen/best at most %.2f, expected/measured %.2f to %.2f\n", name, worstChoice, leastExpected, mostExpected);
}

/** The time of one more layer, and of a run beside its layers, in milliseconds. */
void
MeasureLayers(const char * name, NetworkPrecision precision, const LayerExtent & extent, bool onDevices)
{
  constexpr int few = 2;
  constexpr int many = 6;
  for (const int channels : { 8, 16, 32, 80 })
  {
    for (const std::int64_t kernel : { 3, 5, 7, 9 })
    {
      double measured[2];
      double expected[2];
      int    tile = 0;
      for (const int layers : { few, many })
      {
        const auto operation = std::make_shared<NetworkOperation>();
        operation->graph = BuildLayers(channels, kernel, layers, true);
        operation->precision = precision;
        NetworkRunner runner(operation, extent, onDevices);
        const Plan    plan = Manager::GetGlobal().MakePlanFor(runner.request);
        tile = DescribeNetworkPlan(*operation, plan, runner.request.image, onDevices)[2].tile;
        runner();
        measured[layers == many] = 1000 * MedianSeconds(5, [&] { runner(); });
        expected[layers == many] = 1000 * plan.seconds;
      }
      const auto ofLayer = [](const double(&all)[2]) { return (all[1] - all[0]) / (many - few); };
      const auto ofRest = [&](const double(&all)[2]) { return all[0] - few * ofLayer(all); };
      std::printf("%s, %d channels, kernel %d^3, %s, tile %d: a layer %.3f ms, expected %.3f (%.2f); the rest %.2f, "
                  "expected %.2f\n",
                  name,
                  channels,
                  static_cast<int>(kernel),
                  TextOf(extent).c_str(),
                  tile,
                  ofLayer(measured),
                  ofLayer(expected),
                  ofLayer(expected) / ofLayer(measured),
                  ofRest(measured),
                  ofRest(expected));
      std::fflush(stdout);
    }
  }
}

[[noreturn]] void
Fail(const char * program)
{
  std::fprintf(stderr,
               "usage: %s cpu|cuda N|XxYxZ [NETWORK...] [--method float32|tensorfloat32|half|direct] "
               "[--memory GB] "
               "[--planes device|host] [--head LAYERS] [--csv FILE] "
               "[--errors] [--plans] [--layers] [--expected]\n",
               program);
  std::exit(2);
}

} // namespace

int
main(int argc, char * argv[])
{
  Report report(argc, argv);
  double memory = 0;
  int    method = 0;
  bool   wantsErrors = false;
  bool   wantsPlans = false;
  bool   wantsLayers = false;
  bool   wantsExpected = false;
  auto   planes = NetworkPlanes::Automatic;
  int    head = -1;

  constexpr std::pair<const char *, NetworkPrecision> methods[] = {
    { "float32", NetworkPrecision::Float32 },
    { "tensorfloat32", NetworkPrecision::TensorFloat32 },
    { "half", NetworkPrecision::Half },
    { "direct", NetworkPrecision::Reproducible },
  };

  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i)
  {
    const std::string word = argv[i];
    if (word == "--memory" && i + 1 < argc)
    {
      memory = std::atof(argv[++i]);
    }
    else if (word == "--errors")
    {
      wantsErrors = true;
    }
    else if (word == "--plans")
    {
      wantsPlans = true;
    }
    else if (word == "--expected")
    {
      wantsExpected = true;
    }
    else if (word == "--layers")
    {
      wantsLayers = true;
    }
    else if (word == "--head" && i + 1 < argc)
    {
      head = std::atoi(argv[++i]);
    }
    else if (word == "--planes" && i + 1 < argc)
    {
      const std::string where = argv[++i];
      if (where != "device" && where != "host")
      {
        Fail(argv[0]);
      }
      planes = where == "host" ? NetworkPlanes::InHostMemory : NetworkPlanes::OnDevice;
    }
    else if (word == "--method" && i + 1 < argc)
    {
      const std::string name = argv[++i];
      method = 0;
      constexpr int all = static_cast<int>(std::size(methods));
      while (method < all && name != methods[method].first)
      {
        ++method;
      }
      if (method == all)
      {
        Fail(argv[0]);
      }
    }
    else
    {
      words.push_back(word);
    }
  }
  LayerExtent extent{};
  if (words.size() > 1)
  {
    const char * text = words[1].c_str();
    char *       end = nullptr;
    extent[0] = extent[1] = extent[2] = std::strtoll(text, &end, 10);
    for (std::size_t a = 1; a < 3 && *end == 'x'; ++a)
    {
      extent[a] = extent[2] = std::strtoll(end + 1, &end, 10);
    }
    extent[0] = *end ? 0 : extent[0];
  }
  if (std::min({ extent[0], extent[1], extent[2] }) < 1 || (words[0] != "cpu" && words[0] != "cuda"))
  {
    Fail(argv[0]);
  }
  const bool onDevices = words[0] == "cuda";
  if (onDevices)
  {
    std::string reason;
    const auto  backend = GetCudaBackend(&reason);
    if (!backend)
    {
      std::fprintf(stderr, "%s\n", reason.c_str());
      return 1;
    }
    report.SetDevice(backend->GetDevices().front()->GetDescription().name);
  }
  else
  {
    report.SetHost(std::thread::hardware_concurrency());
  }
  if (wantsPlans)
  {
    ComparePlans(methods[method].first, methods[method].second, extent, onDevices);
    return 0;
  }
  if (wantsLayers)
  {
    MeasureLayers(methods[method].first, methods[method].second, extent, onDevices);
    return 0;
  }
  const auto isAsked = [&words](const char * name) {
    return words.size() <= 2 || std::find(words.begin() + 2, words.end(), name) != words.end();
  };
  if (wantsExpected)
  {
    for (const Architecture & architecture : Architectures)
    {
      if (isAsked(architecture.name))
      {
        PrintExpected(architecture.name, Build(architecture, true), methods[method].second, extent);
      }
    }
    if (isAsked("U-Net"))
    {
      PrintExpected("U-Net", BuildUNet(), methods[method].second, extent);
    }
    return 0;
  }
  for (const Architecture & architecture : Architectures)
  {
    if (!isAsked(architecture.name))
    {
      continue;
    }
    const auto operation = std::make_shared<NetworkOperation>();
    // With random weights many outputs are below 0: errors are to be seen in all of them.
    operation->graph = Build(architecture, !wantsErrors);
    operation->scale = 1.0 / 255;
    operation->precision = methods[method].second;
    operation->planes = planes;
    operation->headLayers = head;
    const bool        isDirect = operation->precision == NetworkPrecision::Reproducible;
    const std::string within =
      (memory > 0 ? ", in " + std::to_string(static_cast<int>(memory)) + " GB of device memory" : std::string()) +
      (planes == NetworkPlanes::OnDevice       ? ", planes on the device"
       : planes == NetworkPlanes::InHostMemory ? ", planes in the host's memory"
                                               : "") +
      (head > 0 ? ", the first " + std::to_string(head) + " layers by the CPU" : std::string());
    const std::string sizes = TextOf(extent) + " outputs of uint8";
    NetworkRunner     runner(operation, extent, onDevices);
    runner.request.budgets.device = static_cast<std::size_t>(memory * 1e9);
    if (wantsErrors)
    {
      const auto exact = std::make_shared<NetworkOperation>(*operation);
      exact->precision =
        operation->precision == NetworkPrecision::Float32 ? NetworkPrecision::Reproducible : NetworkPrecision::Float32;
      NetworkRunner reference(exact, extent, onDevices);
      reference();
      runner();
      double largest = 0;
      double difference = 0;
      for (std::size_t i = 0; i < runner.results.size(); ++i)
      {
        const auto   expected = static_cast<double>(reference.results[i]);
        const double error = std::fabs(static_cast<double>(runner.results[i]) - expected);
        largest = std::max(largest, std::fabs(expected));
        // NaN is not a small error.
        difference = error <= difference ? difference : error;
      }
      std::printf("%s, %s, %s: largest error over largest output %.2e\n",
                  architecture.name,
                  methods[method].first,
                  sizes.c_str(),
                  difference / largest);
      continue;
    }
    {
      // Work that is done once: the module is loaded, weights go to the device.
      LayerExtent small = extent;
      for (std::int64_t & each : small)
      {
        each = std::min<std::int64_t>(each, 32);
      }
      NetworkRunner first(operation, small, onDevices);
      first();
    }
    ExecutionReport last;
    // A long run is done once.
    const std::clock_t before = std::clock();
    double             seconds = MedianSeconds(1, [&] { last = runner(); });
    // Processor time of all threads, which other users of the machine do not change.
    const double processor = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    if (seconds < 2)
    {
      seconds = MedianSeconds(3, [&] { last = runner(); });
    }
    const double voxels = static_cast<double>(extent[0] * extent[1] * extent[2]);
    const double arithmetic = 2 * operation->GetMultiplyAdds(extent, runner.request.image.Extents());
    report.Add("network",
               std::string(architecture.name) + ", " + (isDirect ? "float32, direct" : methods[method].first) + within +
                 "; " + sizes,
               voxels / seconds / 1e6,
               "Mvoxel/s",
               {},
               { onDevices && isDirect ? 67e6 * voxels / arithmetic : 0.0, "67 TFLOP/s of multiply-adds" },
               std::to_string(last.plan.chunks.size()) + " chunks of " + ToString(last.plan.chunkExtent) +
                 ", planned " + std::to_string(last.plan.seconds) + " s, " + std::to_string(seconds) +
                 " s, expected/measured " + std::to_string(last.plan.seconds / seconds) + ", " +
                 std::to_string(last.peakDevice >> 20) + " MiB of the device, " + std::to_string(last.peakHost >> 20) +
                 " MiB of results in the host's memory, " + std::to_string(processor) + " s of processors, " +
                 std::to_string(arithmetic / seconds / 1e12) + " TFLOP/s if it were direct");
  }
  return 0;
}
