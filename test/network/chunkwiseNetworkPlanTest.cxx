/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkRun.h"
#include "chunkwiseNetworkTrial.h"

using namespace chunkwise;

namespace
{

std::shared_ptr<const NetworkGraph>
Wide(std::int64_t kernel)
{
  std::mt19937          random(190);
  trial::NetworkBuilder builder(random, 3);
  int                   at = builder.Convolve(0, 80, builder.Same(kernel));
  NetworkLayer          pool;
  pool.kernel = pool.stride = builder.Same(2);
  at = builder.AddKind(LayerKind::MaximumPooling, { at }, pool);
  at = builder.Convolve(at, 80, builder.Same(kernel));
  return builder.Finish(builder.Convolve(at, 3, builder.Same(kernel))).graph;
}

constexpr NetworkPrecision Approximate[] = { NetworkPrecision::Float32, NetworkPrecision::TensorFloat32 };

/** The planner relies on it. */
TEST(NetworkPlan, MemoryDoesNotShrinkWhenChunksGrow)
{
  std::mt19937 random(191);
  for (int trial = 0; trial < 60; ++trial)
  {
    NetworkOperation operation;
    operation.graph = trial % 6 == 0 ? Wide(3 + trial / 6 % 5)
                      : trial % 2    ? trial::RandomConvolutions(random, 3, trial % 4 == 1).graph
                                     : trial::RandomUNet(random, 3, 1).graph;
    operation.method = trial % 3 ? NetworkMethod::Automatic : NetworkMethod::Transforms;
    NetworkRates rates = trial % 5 < 3 ? GetDeviceNetworkRates(Approximate[trial % 2]) : GetHostNetworkRates();
    // So that small networks take them too.
    rates.multiplyAdds = trial % 4 ? 1.5 : 0.01;
    const Box    image = Box::FromExtent({ { 300, 200, 250, 1, 1 } });
    Box          output = Box::FromExtent({ { 1, 1, 1, 1, 1 } });
    NetworkBytes last{ 0, 0 };
    while (output.upper[0] < 280 && output.upper[1] < 180 && output.upper[2] < 230)
    {
      const NetworkBytes bytes = GetNetworkBytes(operation, output, image, rates);
      ASSERT_GE(bytes.results, last.results) << ToString(output);
      ASSERT_GE(bytes.transforms, last.transforms) << ToString(output);
      last = bytes;
      output.upper[static_cast<int>(random() % 3)] += 1 + static_cast<std::int64_t>(random() % 9);
    }
  }
}

/** What runs needs no more than what was set aside, wherever the chunk lies and whatever the device's tiles. */
TEST(NetworkPlan, RunsNeedNoMoreThanIsReserved)
{
  std::mt19937 random(192);
  for (int trial = 0; trial < 60; ++trial)
  {
    NetworkOperation operation;
    operation.graph =
      trial % 6 == 0 ? Wide(3 + trial / 6 % 5) : trial::RandomConvolutions(random, 3, trial % 2 == 0).graph;
    operation.method = trial % 3 ? NetworkMethod::Automatic : NetworkMethod::Transforms;
    NetworkRates rates = trial % 5 < 3 ? GetDeviceNetworkRates(Approximate[trial % 2]) : GetHostNetworkRates();
    rates.multiplyAdds = trial % 4 ? 1.5 : 0.01;
    std::vector<LayerExtent> large(operation.graph->GetLayers().size());
    std::vector<LayerExtent> small = large;
    for (std::size_t i = 0; i < large.size(); ++i)
    {
      for (std::size_t a = 0; a < 3; ++a)
      {
        large[i][a] = 1 + static_cast<std::int64_t>(random() % 200);
        small[i][a] = 1 + static_cast<std::int64_t>(random()) % large[i][a];
      }
    }
    const auto reserved = PlanNetwork(operation, large, rates, true);
    if (trial % 5 < 3 && trial % 2 == 0)
    {
      // A device without tensor cores.
      const double multiplyAdds = rates.multiplyAdds;
      rates = GetDeviceNetworkRates(NetworkPrecision::Float32);
      rates.multiplyAdds = multiplyAdds;
    }
    rates.largestTile = NetworkTiles[random() % 5];
    const auto run = PlanNetwork(operation, small, rates, false);
    for (std::size_t i = 1; i < run.size(); ++i)
    {
      const NetworkLayer & layer = operation.graph->GetLayers()[i];
      const int            inputs = operation.graph->GetLayers()[static_cast<std::size_t>(layer.inputs[0])].channels;
      EXPECT_LE(run[i].transformBytes, reserved[i].transformBytes);
      EXPECT_TRUE(run[i].fragments == reserved[i].fragments || run[i].fragments == (LayerExtent{ { 1, 1, 1 } }));
      const TileChoice & choice = run[i].transform;
      if (choice.tile > 0)
      {
        EXPECT_LE(choice.tile, rates.largestTile);
        EXPECT_GE(choice.tilesAtOnce, 1);
        EXPECT_LE(choice.tilesAtOnce, rates.mostTiles);
        EXPECT_LE(GetKernelSpectraBytes(inputs, layer.channels, choice.tile) +
                    static_cast<std::size_t>(choice.tilesAtOnce) * GetTileBytes(inputs, layer.channels, choice.tile),
                  run[i].transformBytes);
      }
    }
  }
}

/** Wide layers of large chunks are transformed; small chunks, thin layers and reproducible runs are not. */
TEST(NetworkPlan, TransformsAreTakenWhereTheyAreFaster)
{
  NetworkOperation operation;
  operation.graph = Wide(5);
  const auto plan = [&](std::int64_t extent) {
    return PlanNetwork(operation,
                       std::vector<LayerExtent>(5, LayerExtent{ { extent, extent, extent } }),
                       GetDeviceNetworkRates(operation.precision),
                       false);
  };
  const auto large = plan(256);
  EXPECT_GT(large[3].transform.tile, 0);
  EXPECT_EQ(large[2].fragments, (LayerExtent{ { 2, 2, 2 } }));
  EXPECT_EQ(large[3].fragments, (LayerExtent{ { 2, 2, 2 } }));
  EXPECT_EQ(large[4].fragments, (LayerExtent{ { 1, 1, 1 } }));
  EXPECT_EQ(plan(4)[3].transform.tile, 0);
  // Less exact is expected to be faster.
  operation.precision = NetworkPrecision::TensorFloat32;
  EXPECT_LT(plan(256)[3].transform.cost, large[3].transform.cost);
  operation.precision = NetworkPrecision::Reproducible;
  EXPECT_EQ(plan(256)[3].transform.tile, 0);
}

/** The table says of every layer what the run will do. */
TEST(NetworkPlan, IsDescribedLayerByLayer)
{
  NetworkOperation operation;
  operation.graph = Wide(5);
  const Box  image = Box::FromExtent({ { 300, 300, 300, 1, 1 } });
  const auto table = [&](bool onDevices, std::int64_t extent) {
    return DescribeNetworkPlan(operation, Box::FromExtent({ { extent, extent, extent, 1, 1 } }), image, onDevices);
  };
  for (const bool onDevices : { false, true })
  {
    operation.precision = NetworkPrecision::Float32;
    const auto rows = table(onDevices, 200);
    ASSERT_EQ(rows.size(), operation.graph->GetLayers().size());
    double share = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
    {
      EXPECT_EQ(rows[i].channels, operation.graph->GetLayers()[i].channels);
      EXPECT_GT(rows[i].bytes, 0u);
      share += rows[i].share;
    }
    EXPECT_NEAR(share, 1.0, 1e-9);
    EXPECT_EQ(rows[0].share, 0.0);
    EXPECT_EQ(rows[2].tile, 0); // a pooling
    EXPECT_GT(rows[3].tile, 0);
    EXPECT_GT(rows[3].transformBytes, 0u);
    EXPECT_EQ(rows[3].dilation, (LayerExtent{ { 2, 2, 2 } }));
    EXPECT_GE(rows[3].extent[0], 200);
    // The middle layer's products are most of the work.
    EXPECT_GT(rows[3].share, 0.3);
    operation.precision = NetworkPrecision::Reproducible;
    EXPECT_EQ(table(onDevices, 200)[3].tile, 0);
    EXPECT_EQ(table(onDevices, 200)[3].transformBytes, 0u);
  }
}

} // namespace
