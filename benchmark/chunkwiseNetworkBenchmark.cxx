/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The four networks of the ZNNi paper (table III), host to host: output voxels a second.
// Usage: chunkwise_network_benchmark cpu|cuda EXTENT [NETWORK...]
#include "chunkwiseBenchmarkReport.h"
#include "chunkwiseManager.h"
#include "chunkwiseNetworkOperation.h"

#include <cmath>
#include <random>

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
Build(const Architecture & architecture)
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
      layer.activation.kind = ActivationKind::Relu;
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

} // namespace

int
main(int argc, char * argv[])
{
  if (argc < 3)
  {
    std::fprintf(stderr, "usage: %s cpu|cuda EXTENT [NETWORK...]\n", argv[0]);
    return 2;
  }
  const bool         onDevices = std::strcmp(argv[1], "cuda") == 0;
  const std::int64_t extent = std::atoll(argv[2]);
  for (const Architecture & architecture : Architectures)
  {
    const auto isNamed = [&](const char * name) { return std::strcmp(name, architecture.name) == 0; };
    if (argc > 3 && std::none_of(argv + 3, argv + argc, isNamed))
    {
      continue;
    }
    const auto operation = std::make_shared<NetworkOperation>();
    operation->graph = Build(architecture);
    operation->scale = 1.0 / 255;
    const LayerExtent & margin = operation->graph->GetMargin();
    const Box image = Box::FromExtent({ { extent + margin[0], extent + margin[1], extent + margin[2], 1, 1 } });
    // Where the whole field of view is inside the image: what a run of the plain network would give.
    Box region = image;
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      region.lower[a] = operation->graph->GetLowerMargin()[static_cast<std::size_t>(a)];
      region.upper[a] = region.lower[a] + extent;
    }
    std::vector<std::uint8_t> voxels(static_cast<std::size_t>(image.NumberOfVoxels()));
    std::mt19937              random(4);
    for (std::uint8_t & voxel : voxels)
    {
      voxel = static_cast<std::uint8_t>(random());
    }
    std::vector<float> results(static_cast<std::size_t>(region.NumberOfVoxels()));
    ExecutionRequest   request;
    request.operation = operation;
    request.inputs = { DenseView(voxels.data(), PixelKind::UInt8, image) };
    request.output = DenseView(results.data(), PixelKind::Float32, region);
    request.image = image;
    request.region = region;
    request.backend = onDevices ? BackendChoice::CUDA : BackendChoice::CPU;
    ExecutionReport report;
    const double    seconds = WarmMedianSeconds(3, [&] { report = Manager::GetGlobal().Execute(request); });
    const double    arithmetic = 2 * operation->GetMultiplyAdds({ { extent, extent, extent } }, image.Extents());
    const double    megavoxels = static_cast<double>(region.NumberOfVoxels()) / 1e6;
    std::printf("%s, %lld^3 outputs, %s: %.3f s, %.4f Mvoxel/s, %zu chunks, %.2f TFLOP/s of the whole image at once\n",
                architecture.name,
                static_cast<long long>(extent),
                report.backend.c_str(),
                seconds,
                megavoxels / seconds,
                static_cast<std::size_t>(report.plan.chunks.size()),
                arithmetic / seconds / 1e12);
    std::fflush(stdout);
  }
  return 0;
}
