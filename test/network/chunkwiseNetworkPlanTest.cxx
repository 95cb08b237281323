/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkMarch.h"
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

constexpr NetworkPrecision Approximate[] = { NetworkPrecision::Float32,
                                             NetworkPrecision::TensorFloat32,
                                             NetworkPrecision::Half };

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
    NetworkRates rates = trial % 5 < 3 ? GetDeviceNetworkRates(Approximate[trial % 3]) : GetHostNetworkRates();
    // So that small networks take them too.
    rates.multiplyAdds = trial % 4 ? 1.5 : 0.01;
    operation.slab = trial % 3 == 0 ? 0 : trial % 3 == 1 ? 4 : 32;
    // Small images have no slabs, flat ones only where chunks are narrow.
    const std::int64_t depth = trial % 2 ? 250 : 1000;
    const Box          image = Box::FromExtent({ { trial % 4 < 2 ? 300 : 1000, 400, depth, 1, 1 } });
    Box                output = Box::FromExtent({ { 1, 1, 1, 1, 1 } });
    NetworkBytes       last{ 0, 0, 0 };
    while (output.upper[0] < 280 && output.upper[1] < 380 && output.upper[2] < depth - 20)
    {
      const NetworkBytes bytes = GetNetworkBytes(operation, output, image, rates, KeptPlanes::Spilled);
      ASSERT_GE(bytes.results, last.results) << ToString(output);
      ASSERT_GE(bytes.transforms, last.transforms) << ToString(output);
      ASSERT_GE(bytes.spilled, last.spilled) << ToString(output);
      // Wherever planes lie, they are the same, and so are tiles.
      const NetworkBytes inScratch = GetNetworkBytes(operation, output, image, rates);
      ASSERT_EQ(inScratch.results, bytes.results + bytes.spilled) << ToString(output);
      ASSERT_EQ(inScratch.transforms, bytes.transforms) << ToString(output);
      ASSERT_EQ(inScratch.spilled, 0u);
      last = bytes;
      output.upper[static_cast<int>(random() % 3)] += 1 + static_cast<std::int64_t>(random() % 9);
      output.upper[2] = random() % 20 ? output.upper[2] : std::min(depth - 20, 2 * output.upper[2]);
    }
  }
}

/** Slabs become thicker, and are left out, while the chunk grows. */
TEST(NetworkPlan, MemoryDoesNotShrinkWithThickerSlabs)
{
  NetworkOperation operation;
  operation.graph = Wide(9);
  for (const std::int64_t depth : { 300, 2000 })
  {
    for (const std::int64_t planes : { 1, 8, 60, 100, 250 })
    {
      NetworkBytes last{ 0, 0, 0 };
      for (std::int64_t width = 8; width < 500; width += 4)
      {
        const NetworkBytes bytes = GetNetworkBytes(operation,
                                                   Box::FromExtent({ { width, width, planes, 1, 1 } }),
                                                   Box::FromExtent({ { 600, 600, depth, 1, 1 } }),
                                                   GetDeviceNetworkRates(operation.precision));
        ASSERT_GE(bytes.results, last.results) << width << ", " << planes << " of " << depth;
        ASSERT_GE(bytes.transforms, last.transforms) << width << ", " << planes << " of " << depth;
        last = bytes;
      }
    }
  }
}

/** Runs need no more than the memory that was set aside, wherever the chunk lies and whatever the device's tiles. */
TEST(NetworkPlan, RunsNeedNoMoreThanIsReserved)
{
  std::mt19937 random(192);
  for (int trial = 0; trial < 60; ++trial)
  {
    NetworkOperation operation;
    operation.graph =
      trial % 6 == 0 ? Wide(3 + trial / 6 % 5) : trial::RandomConvolutions(random, 3, trial % 2 == 0).graph;
    operation.method = trial % 3 ? NetworkMethod::Automatic : NetworkMethod::Transforms;
    NetworkRates rates = trial % 5 < 3 ? GetDeviceNetworkRates(Approximate[trial % 3]) : GetHostNetworkRates();
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
                    static_cast<std::size_t>(choice.tilesAtOnce) *
                      GetTileBytes(inputs, layer.channels, choice.tile, rates),
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
  const double cost = plan(256)[3].transform.cost;
  EXPECT_LT(cost, large[3].transform.cost);
  operation.precision = NetworkPrecision::Half;
  EXPECT_LT(plan(256)[3].transform.cost, cost);
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
    Plan plan;
    plan.chunkExtent = { { extent, extent, extent, 1, 1 } };
    return DescribeNetworkPlan(operation, plan, image, onDevices);
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

/** Each plane of each layer is computed, none much earlier than it is needed, and what a step needs is in memory. */
TEST(NetworkMarch, StepsHaveWhatTheyNeed)
{
  std::mt19937 random(193);
  const auto   below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned int>(n)); };
  for (int trial = 0; trial < 200; ++trial)
  {
    const auto   graph = trial % 3 == 0   ? trial::RandomUNet(random, 3, 1 + trial % 2).graph
                         : trial % 3 == 1 ? trial::RandomClassifier(random, 3).graph
                                          : trial::RandomConvolutions(random, 3, trial % 2 == 0).graph;
    const auto & layers = graph->GetLayers();
    LayerExtent  image{ { 40, 40, 30 + below(40) } };
    const auto   input = graph->GetInputExtent(image);
    const auto   whole = graph->GetExtents(input);
    const auto   lower = below(20);
    const auto   upper = lower + 1 + below(static_cast<int>(image[2] - lower));
    const auto   ranges = graph->GetRanges({ { { 0, 0, lower } }, { { 5, 5, upper } } }, &whole);
    const auto   slab = (1 + below(4)) * graph->GetTotalStride()[2];

    std::vector<std::int64_t> fragments(layers.size(), 1);
    for (std::size_t i = 1; i < layers.size() && trial % 2; ++i)
    {
      fragments[i] = layers[i].dilation[2];
    }
    const auto                march = MakeNetworkMarch(*graph, ranges, slab, fragments, false);
    const auto                own = FindSlabBounds(march);
    const auto                bounds = FindSlabBounds(*graph, slab);
    std::vector<std::int64_t> done(layers.size());
    std::vector<std::int64_t> kept(layers.size()); // first plane that was handed on
    for (std::size_t i = 0; i < layers.size(); ++i)
    {
      done[i] = kept[i] = ranges[i].lower[2];
      EXPECT_LE(own[i].computed, bounds[i].computed) << trial;
      EXPECT_LE(own[i].held, bounds[i].held) << trial;
      EXPECT_LE(own[i].kept, bounds[i].kept) << trial;
    }
    for (const NetworkSlab & step : march)
    {
      for (std::size_t i = 0; i < layers.size(); ++i)
      {
        const NetworkSlabLayer & layer = step[i];
        if (!layer.isUsed)
        {
          continue;
        }
        EXPECT_LE(layer.held, layer.lower);
        EXPECT_EQ((layer.held - ranges[i].lower[2]) % fragments[i], 0);
        if (layer.kept < layer.keptUpper)
        {
          EXPECT_LE(layer.held, layer.kept);
          EXPECT_EQ(layer.keptUpper, done[i]);
          EXPECT_EQ(layer.kept, kept[i]);
        }
        if (layer.IsComputed())
        {
          EXPECT_EQ((layer.lower - ranges[i].lower[2]) % fragments[i], 0);
          // No gap, and no plane twice but for the fragments' sake.
          EXPECT_LE(layer.lower, done[i]);
          EXPECT_GT(layer.lower, done[i] - fragments[i]);
          done[i] = layer.upper;
        }
        for (const int from : layers[i].inputs)
        {
          const NetworkSlabLayer & source = step[static_cast<std::size_t>(from)];
          const auto &             range = ranges[static_cast<std::size_t>(from)];
          std::int64_t             first = layer.lower;
          std::int64_t             end = layer.upper;
          graph->GetNeeded(layers[i], 2, first, end);
          if (layer.IsComputed() && range.lower[2] < range.upper[2])
          {
            EXPECT_TRUE(source.isUsed);
            first = std::max(first, range.lower[2]);
            EXPECT_GE(first, source.lower < source.keptUpper ? source.held : std::min(source.kept, source.lower));
            EXPECT_LE(std::min(end, range.upper[2]), source.upper);
          }
        }
        kept[i] = layer.next;
      }
    }
    for (std::size_t i = 0; i < layers.size(); ++i)
    {
      EXPECT_EQ(done[i], ranges[i].upper[2]) << trial << ", layer " << i;
    }
  }
}

/** A network of the ZNNi paper: kernels of convolutions, 0 for a pooling by 2. */
std::shared_ptr<const NetworkGraph>
Published(const std::vector<std::int64_t> & kernels)
{
  std::mt19937          random(194);
  trial::NetworkBuilder builder(random, 3);
  int                   at = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i)
  {
    NetworkLayer pool;
    pool.kernel = pool.stride = builder.Same(2);
    at = kernels[i] == 0 ? builder.AddKind(LayerKind::MaximumPooling, { at }, pool)
                         : builder.Convolve(at, i + 1 == kernels.size() ? 3 : 80, builder.Same(kernels[i]));
  }
  return builder.Finish(at).graph;
}

const std::vector<std::int64_t> n337{ 2, 0, 3, 0, 3, 0, 3, 3, 3, 3 };
const std::vector<std::int64_t> n537{ 4, 0, 5, 0, 5, 0, 5, 5, 5, 5 };
const std::vector<std::int64_t> n726{ 6, 0, 7, 0, 7, 7, 7, 7 };
const std::vector<std::int64_t> n926{ 8, 0, 9, 0, 9, 9, 9, 9 };

/** A device of 2 GB has room for some chunk of each, and for its weights. */
TEST(NetworkPlan, SmallDevicesAreEnough)
{
  for (const auto & kernels : { n337, n537, n726, n926 })
  {
    NetworkOperation operation;
    operation.graph = Published(kernels);
    const NetworkBytes bytes = GetNetworkBytes(operation,
                                               Box::FromExtent({ { 8, 8, 64, 1, 1 } }),
                                               Box::FromExtent({ { 1024, 1024, 1024, 1, 1 } }),
                                               GetDeviceNetworkRates(operation.precision));
    EXPECT_LE(bytes.results + bytes.transforms, std::size_t{ 1900 } << 20) << kernels[0];
  }
}

/** Seconds for a chunk that an H200 took (docs/notes/network.md), and what is expected of its memory's rate. */
TEST(NetworkPlan, ExpectsWhatWasMeasured)
{
  struct Measurement
  {
    const std::vector<std::int64_t> & kernels;
    LayerExtent                       chunk;
    std::int64_t                      image; ///< outputs along each axis
    std::int64_t                      slab;
    double                            seconds;
  };
  const Measurement measurements[] = { { n337, { { 256, 256, 256 } }, 256, 1000, 0.435 },
                                       { n537, { { 256, 256, 256 } }, 256, 1000, 0.765 },
                                       { n726, { { 256, 256, 256 } }, 256, 1000, 0.506 },
                                       { n926, { { 256, 256, 256 } }, 256, 1000, 0.746 },
                                       { n926, { { 103, 128, 512 } }, 512, 64, 0.770 } };
  for (const Measurement & m : measurements)
  {
    NetworkOperation operation;
    operation.graph = Published(m.kernels);
    operation.slab = m.slab;
    const LayerExtent & margin = operation.graph->GetMargin();
    const Box image = Box::FromExtent({ { m.image + margin[0], m.image + margin[1], m.image + margin[2], 1, 1 } });
    Box       output = image;
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      output.lower[a] = operation.graph->GetLowerMargin()[static_cast<std::size_t>(a)];
      output.upper[a] = output.lower[a] + m.chunk[static_cast<std::size_t>(a)];
    }
    const double cost = GetNetworkCost(operation, output, image, GetDeviceNetworkRates(operation.precision));
    EXPECT_NEAR(cost / 4.05e12 / m.seconds, 1.0, 0.15) << operation.graph->GetMargin()[0] << ' ' << m.chunk[0];
  }
}

/** The cost of a run that does not depend on its layers is counted once for the image, however many chunks it is cut
 * into, and not for each window. */
TEST(NetworkPlan, CountsOnceWhatARunTakesBesideItsLayers)
{
  NetworkOperation operation;
  operation.graph = Wide(3);
  const Box  image = Box::FromExtent({ { 200, 180, 160, 1, 1 } });
  const auto share = [&](const Box & chunk, const NetworkRates & rates) {
    NetworkRates without = rates;
    without.ofRun = 0;
    return GetNetworkCost(operation, chunk, image, rates) - GetNetworkCost(operation, chunk, image, without);
  };
  for (const NetworkPrecision precision : Approximate)
  {
    const NetworkRates rates = GetDeviceNetworkRates(precision);
    ASSERT_GT(rates.ofRun, 0.0);
    for (const std::int64_t pieces : { 1, 2, 5 })
    {
      double sum = 0;
      for (std::int64_t i = 0; i < pieces * pieces; ++i)
      {
        Box chunk = image;
        for (const auto & [a, at] : { std::pair{ 0, i % pieces }, std::pair{ 2, i / pieces } })
        {
          chunk.lower[a] = image.Extent(a) * at / pieces;
          chunk.upper[a] = image.Extent(a) * (at + 1) / pieces;
        }
        sum += share(chunk, rates);
      }
      EXPECT_NEAR(sum, rates.ofRun, 1e-4 * rates.ofRun) << pieces;
    }
  }
  const NetworkRates ofHost = GetHostNetworkRates();
  EXPECT_EQ(share(image, ofHost), 0.0);
  operation.mode = NetworkMode::Patches;
  operation.patch = { { 64, 64, 64 } };
  EXPECT_EQ(share(image, GetDeviceNetworkRates(operation.precision)), 0.0);
}

/** Computes voxel by voxel, and makes the copies beside that as late, or as early, as it may: what is fetched is no
 * number until it is awaited, and what is stored is read when it is awaited. */
class LateBackend : public NetworkBackend
{
public:
  LateBackend(const KernelCall & call, bool isLate)
    : m_Call(call)
    , m_IsLate(isLate)
  {}
  const NetworkRates &
  GetRates() const override
  {
    return m_Rates;
  }
  const float *
  Upload(const std::string &, const std::vector<float> & values) override
  {
    return values.data();
  }
  void
  Load(const network::Tensor & tensor, const LayerExtent & shift, const Coordinates &) override
  {
    ForEachVoxel(tensor, [&](int c, std::int64_t x, std::int64_t y, std::int64_t z) {
      tensor.At(c, x, y, z) = At<float>(m_Call.inputs[0], { { x - shift[0], y - shift[1], z - shift[2], 0, 0 } });
    });
  }
  void
  Run(const network::Step & step, const TileChoice &) override
  {
    network::DispatchVoxelKind(step.kind, [&](auto kind) {
      ForEachVoxel(step.out, [&](int c, std::int64_t x, std::int64_t y, std::int64_t z) {
        step.out.At(c, x, y, z) = network::ValueAt<decltype(kind)::value>(step, c, x, y, z);
      });
    });
  }
  void
  Store(const network::Tensor & tensor, const Coordinates &, int channel) override
  {
    ForEachVoxel(tensor, [&](int c, std::int64_t x, std::int64_t y, std::int64_t z) {
      if (c == channel)
      {
        At<float>(m_Call.output, { { x, y, z, 0, 0 } }) = tensor.At(c, x, y, z);
      }
    });
  }
  void
  Copy(const network::Tensor & from, const network::Tensor & to) override
  {
    ForEachVoxel(
      from, [&](int c, std::int64_t x, std::int64_t y, std::int64_t z) { to.At(c, x, y, z) = from.At(c, x, y, z); });
  }
  int
  StartCopy(const network::Tensor & from, const network::Tensor & to) override
  {
    const auto * const spilled = static_cast<const float *>(m_Call.sideOut);
    const bool         isFetch = from.data >= spilled && from.data < spilled + m_Call.sideOutBytes / sizeof(float);
    ++(isFetch ? fetches : stores);
    if (m_IsLate)
    {
      Clear(to, std::nanf(""));
    }
    else
    {
      this->Copy(from, to);
    }
    m_Started.push_back({ from, to, isFetch, !m_IsLate });
    return static_cast<int>(m_Started.size()) - 1;
  }
  void
  AwaitCopy(int number) override
  {
    const auto last = static_cast<std::size_t>(number);
    for (std::size_t i = 0; i <= last; ++i)
    {
      Started & copy = m_Started[i];
      if (copy.isFetch == m_Started[last].isFetch && !copy.isDone)
      {
        this->Copy(copy.from, copy.to);
        copy.isDone = true;
      }
    }
  }
  void
  Clear(const network::Tensor & tensor) override
  {
    Clear(tensor, 0.0f);
  }
  void
  AddWindow(const network::Tensor &, const network::Tensor &, const LayerExtent &,
            const float * const (&)[MaxSpatialAxes]) override
  {}
  void
  DivideSums(const network::Tensor &) override
  {}
  bool
  ShouldStop() const override
  {
    return false;
  }
  void
  AddProgress(double) override
  {}
  bool
  IsAllDone() const
  {
    return std::all_of(m_Started.begin(), m_Started.end(), [](const Started & copy) { return copy.isDone; });
  }

  int fetches{ 0 };
  int stores{ 0 };

private:
  struct Started
  {
    network::Tensor from;
    network::Tensor to;
    bool            isFetch;
    bool            isDone;
  };

  template <typename TVisit>
  static void
  ForEachVoxel(const network::Tensor & tensor, TVisit && visit)
  {
    for (int c = 0; c < tensor.channels; ++c)
    {
      for (std::int64_t z = tensor.lower[2]; z < tensor.lower[2] + tensor.extent[2]; ++z)
      {
        for (std::int64_t y = tensor.lower[1]; y < tensor.lower[1] + tensor.extent[1]; ++y)
        {
          for (std::int64_t x = tensor.lower[0]; x < tensor.lower[0] + tensor.extent[0]; ++x)
          {
            visit(c, x, y, z);
          }
        }
      }
    }
  }
  static void
  Clear(const network::Tensor & tensor, float value)
  {
    ForEachVoxel(tensor, [&](int c, std::int64_t x, std::int64_t y, std::int64_t z) { tensor.At(c, x, y, z) = value; });
  }

  const KernelCall &   m_Call;
  const bool           m_IsLate;
  NetworkRates         m_Rates{ GetHostNetworkRates() };
  std::vector<Started> m_Started;
};

/** Layers that read each other's planes, in a row or with branches. */
std::shared_ptr<const NetworkGraph>
RandomPoolings(std::mt19937 & random)
{
  trial::NetworkBuilder builder(random, 3);
  int                   at = 0;
  for (int i = 0; i < 2 + builder.Below(6); ++i)
  {
    NetworkLayer pool;
    pool.kernel = builder.Extent(3);
    pool.dilation = builder.Same(1 + builder.Below(2));
    int next = builder.AddKind(builder.Below(2) ? LayerKind::MaximumPooling : LayerKind::AveragePooling, { at }, pool);
    if (builder.Below(3) == 0)
    {
      const int other = builder.AddKind(LayerKind::AveragePooling, { at }, pool);
      next = builder.AddKind(LayerKind::Sum, { next, other });
    }
    at = next;
  }
  return builder.Finish(at).graph;
}

/** Copies may take as long as they like: no layer uses, or writes to, what is on its way. */
TEST(NetworkMarch, SpilledPlanesAreAwaited)
{
  std::mt19937 random(196);
  int          fetches = 0;
  for (int trial = 0; trial < 60; ++trial)
  {
    NetworkOperation operation;
    operation.graph = RandomPoolings(random);
    operation.precision = NetworkPrecision::Reproducible;
    operation.slab = 1 + static_cast<std::int64_t>(random() % 4);
    const LayerExtent & margin = operation.graph->GetMargin();
    const LayerExtent & lower = operation.graph->GetLowerMargin();
    const LayerExtent   extent{ { 3, 2, 5 + static_cast<std::int64_t>(random() % 15) } };
    KernelCall          call;
    call.operation = &operation;
    call.numberOfInputs = 1;
    call.image = Box::FromExtent({ { extent[0] + margin[0], extent[1] + margin[1], extent[2] + margin[2], 1, 1 } });
    Box output = call.image;
    for (int a = 0; a < 3; ++a)
    {
      output.lower[a] = lower[static_cast<std::size_t>(a)];
      output.upper[a] = output.lower[a] + extent[static_cast<std::size_t>(a)];
    }
    std::vector<float> image(static_cast<std::size_t>(call.image.NumberOfVoxels()));
    std::generate(image.begin(), image.end(), [&] { return static_cast<float>(random() % 1000); });
    call.inputs[0] = DenseView(image.data(), PixelType::Float32, call.image);
    std::vector<float> whole;
    for (const int way : { 0, 1, 2 })
    {
      const auto bytes = GetNetworkBytes(
        operation, output, call.image, GetHostNetworkRates(), way ? KeptPlanes::Spilled : KeptPlanes::InScratch);
      std::vector<float> scratch(bytes.results / sizeof(float), std::nanf(""));
      std::vector<float> spilled(bytes.spilled / sizeof(float), std::nanf(""));
      std::vector<float> result(static_cast<std::size_t>(output.NumberOfVoxels()), -1.0f);
      call.scratch = scratch.data();
      call.sideOut = way ? spilled.data() : nullptr;
      call.sideOutBytes = bytes.spilled;
      call.output = DenseView(result.data(), PixelType::Float32, output);
      LateBackend backend(call, way == 2);
      RunNetwork(call, backend);
      EXPECT_TRUE(backend.IsAllDone());
      EXPECT_TRUE(way || backend.fetches + backend.stores == 0);
      fetches += backend.fetches;
      whole = way ? whole : result;
      ASSERT_EQ(result, whole) << trial << ", way " << way << ", slabs of " << operation.slab << "\n"
                               << operation.graph->Describe();
    }
  }
  EXPECT_GT(fetches, 1000);
}

/** A device that does nothing before somebody waits for it. */
class LazyBackend : public LateBackend
{
public:
  explicit LazyBackend(const KernelCall & call)
    : LateBackend(call, false)
  {}
  ~LazyBackend() override { this->Do(m_Work.size()); }
  void
  Run(const network::Step & step, const TileChoice & tile) override
  {
    m_Work.push_back([this, step, tile] { LateBackend::Run(step, tile); });
  }
  void
  Store(const network::Tensor & tensor, const Coordinates & at, int channel) override
  {
    m_Work.push_back([this, tensor, at, channel] { LateBackend::Store(tensor, at, channel); });
  }
  void
  Copy(const network::Tensor & from, const network::Tensor & to) override
  {
    m_Work.push_back([this, from, to] { LateBackend::Copy(from, to); });
  }
  int
  StartCopy(const network::Tensor & from, const network::Tensor & to) override
  {
    this->Copy(from, to);
    return static_cast<int>(m_Work.size());
  }
  void
  AwaitCopy(int) override
  {}
  void
  FinishCopy(int number) override
  {
    ++waits;
    this->Do(static_cast<std::size_t>(number));
  }

  int waits{ 0 };

private:
  void
  Do(std::size_t end)
  {
    for (; m_Done < end; ++m_Done)
    {
      m_Work[m_Done]();
    }
  }

  std::vector<std::function<void()>> m_Work;
  std::size_t                        m_Done{ 0 };
};

/** The head may be as far ahead of the tail as memory for what they exchange allows, and no further. */
TEST(NetworkMarch, TheHeadWaitsForTheTail)
{
  std::mt19937 random(198);
  int          waits = 0;
  int          runs = 0;
  for (int trial = 0; trial < 30; ++trial)
  {
    NetworkOperation operation;
    operation.graph = RandomPoolings(random);
    operation.method = NetworkMethod::Direct;
    operation.slab = 1 + static_cast<std::int64_t>(random() % 4);
    const Box          image = Box::FromExtent({ { 9, 8, 30, 1, 1 } });
    std::vector<float> pixels(static_cast<std::size_t>(image.NumberOfVoxels()));
    std::generate(pixels.begin(), pixels.end(), [&] { return static_cast<float>(random() % 1000); });
    const LayerExtent & margin = operation.graph->GetMargin();
    Box                 output = image;
    for (int a = 0; a < 3; ++a)
    {
      output.lower[a] = operation.graph->GetLowerMargin()[static_cast<std::size_t>(a)];
      output.upper[a] = image.upper[a] - (margin[static_cast<std::size_t>(a)] - output.lower[a]);
    }
    if (output.IsEmpty())
    {
      continue;
    }
    std::vector<float> whole;
    auto               variants = operation.GetPipedVariants();
    operation.headLayers = 0;
    variants.insert(variants.begin(), std::make_shared<NetworkOperation>(operation));
    for (const auto & variant : variants)
    {
      const auto & piped = static_cast<const NetworkOperation &>(*variant);
      const bool   hasHead = piped.headLayers > 0;
      const auto   bytesOf = [&](NetworkSide side) {
        return GetNetworkBytes(piped, output, image, GetHostNetworkRates(), KeptPlanes::InScratch, side);
      };
      const auto         bytes = bytesOf(hasHead ? NetworkSide::Tail : NetworkSide::Whole);
      std::vector<float> scratch(bytes.results / sizeof(float), std::nanf(""));
      std::vector<float> exchange(bytes.spilled / sizeof(float), std::nanf(""));
      std::vector<float> ofHead(bytesOf(NetworkSide::Head).results / sizeof(float), std::nanf(""));
      std::vector<float> result(static_cast<std::size_t>(output.NumberOfVoxels()), -1.0f);
      KernelCall         call;
      call.operation = &piped;
      call.numberOfInputs = 1;
      call.image = image;
      call.inputs[0] = DenseView(pixels.data(), PixelType::Float32, image);
      call.output = DenseView(result.data(), PixelType::Float32, output);
      KernelCall headCall = call;
      headCall.scratch = ofHead.data();
      call.scratch = scratch.data();
      call.sideOut = hasHead ? exchange.data() : nullptr;
      call.sideOutBytes = bytes.spilled;
      LateBackend       host(headCall, false);
      const NetworkHead head{ &host, &headCall };
      {
        LateBackend alone(call, false);
        LazyBackend device(call);
        RunNetwork(call, hasHead ? static_cast<NetworkBackend &>(device) : alone, hasHead ? &head : nullptr);
        waits += device.waits;
      }
      runs += hasHead ? 1 : 0;
      whole = hasHead ? whole : result;
      ASSERT_EQ(result, whole) << trial << ", " << piped.headLayers << " layers, slabs of " << piped.slab << "\n"
                               << piped.graph->Describe();
    }
  }
  EXPECT_GT(runs, 30);
  EXPECT_GT(waits, 500);
}

} // namespace
