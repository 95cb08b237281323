/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkTrial.h"

#include "chunkwiseComputeSanitizer.h"
#include "chunkwiseDefinitionTrial.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseRecordingMonitor.h"

#include <map>

using namespace chunkwise;

namespace
{

using trial::Network;

class NetworkTest : public KernelTest
{};

constexpr BoundaryMode Modes[] = { BoundaryMode::ZeroFluxNeumann, BoundaryMode::Constant, BoundaryMode::Mirror };

std::shared_ptr<NetworkOperation>
MakeOperation(std::mt19937 & random, const Network & network)
{
  const auto operation = std::make_shared<NetworkOperation>();
  operation->graph = network.graph;
  operation->boundary = { Modes[random() % 3], static_cast<double>(random() % 100) };
  operation->scale = 0.01 * static_cast<double>(1 + random() % 2);
  operation->shift = 0.125 * static_cast<double>(random() % 3);
  operation->channel =
    static_cast<int>(random() % static_cast<unsigned int>(network.graph->GetNumberOfOutputChannels()));
  operation->method = static_cast<NetworkMethod>(random() % 3);
  // Half of them march.
  operation->slab = random() % 2 ? 1 + static_cast<std::int64_t>(random() % 5) : 0;
  return operation;
}

Coordinates
RandomImage(std::mt19937 & random, int dimension, int largest)
{
  Coordinates extent = Coordinates::Filled(1);
  for (int a = 0; a < dimension; ++a)
  {
    extent[a] = 1 + static_cast<std::int64_t>(random() % static_cast<unsigned int>(largest));
  }
  if (random() % 3 == 0)
  {
    extent[3] = 2;
  }
  return extent;
}

/** The least window for which the network, as it was built, gives one value. */
LayerExtent
FindWindow(const Network & network)
{
  LayerExtent window{ { 1, 1, 1 } };
  for (std::size_t a = 0; a < 3; ++a)
  {
    // Each axis alone decides about itself: the others are large enough.
    for (;; ++window[a])
    {
      trial::Values image;
      image.channels = 1;
      image.extent = { { 40, 40, 40 } };
      image.extent[a] = window[a];
      std::vector<LayerExtent> extents{ image.extent };
      bool                     fits = true;
      for (std::size_t i = 1; i < network.layers.size(); ++i)
      {
        const NetworkLayer & layer = network.layers[i];
        LayerExtent          e = extents[static_cast<std::size_t>(layer.inputs[0])];
        if (layer.kind == LayerKind::Convolution || layer.kind == LayerKind::MaximumPooling ||
            layer.kind == LayerKind::AveragePooling)
        {
          const std::int64_t room = e[a] - layer.dilation[a] * (layer.kernel[a] - 1) - 1;
          e[a] = room < 0 ? 0 : room / layer.stride[a] + 1;
        }
        fits = fits && e[a] > 0;
        extents.push_back(e);
      }
      if (fits)
      {
        break;
      }
    }
  }
  return window;
}

TEST_P(NetworkTest, ClassifiersGiveEachVoxelWhatTheyGiveForTheWindowAroundIt)
{
  std::mt19937 random(171);
  for (int trial = 0; trial < 30; ++trial)
  {
    const int                  dimension = 2 + trial % 2;
    const Network              network = trial::RandomClassifier(random, dimension);
    const auto                 operation = MakeOperation(random, network);
    Trial<std::uint8_t, float> t(random, operation, RandomImage(random, dimension, 8));
    const LayerExtent          window = FindWindow(network);
    t.request.backend = GetBackend();
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    GetManager().Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    EXPECT_EQ(network.graph->GetFieldOfView(), window);
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      LayerExtent lower{};
      for (std::size_t a = 0; a < 3; ++a)
      {
        lower[a] = index[static_cast<int>(a)] - (window[a] - 1) / 2;
      }
      trial::Values result =
        trial::Evaluate(network, trial::Part<std::uint8_t>(t.image, *operation, lower, window, index));
      ASSERT_EQ(result.extent, (LayerExtent{ { 1, 1, 1 } }));
      const double expected = result.At(operation->channel, 0, 0, 0);
      ASSERT_NEAR(t.Result(index), expected, 1e-4 * std::max(1.0, std::fabs(expected)))
        << trial << " at " << ToString(index) << "\n"
        << network.graph->Describe();
    });
  }
}

/** The whole image through the network as it was built. */
template <typename T>
std::vector<trial::Values>
EvaluateWhole(const Network & network, const NetworkOperation & operation, const BufferView & image)
{
  const Coordinates extent = image.box.Extents();
  const LayerExtent given = network.graph->GetInputExtent({ { extent[0], extent[1], extent[2] } });
  LayerExtent       lower{};
  for (std::size_t a = 0; a < 3; ++a)
  {
    lower[a] = -network.graph->GetLowerMargin()[a];
  }
  std::vector<trial::Values> results;
  for (std::int64_t v = 0; v < extent[4]; ++v)
  {
    for (std::int64_t u = 0; u < extent[3]; ++u)
    {
      results.push_back(
        trial::Evaluate(network, trial::Part<T>(image, operation, lower, given, { { 0, 0, 0, u, v } })));
    }
  }
  return results;
}

TEST_P(NetworkTest, UNetsGiveWhatTheyGiveOnTheWholeImage)
{
  std::mt19937 random(172);
  for (int trial = 0; trial < 40; ++trial)
  {
    const int                  dimension = 2 + trial % 2;
    const Network              network = trial::RandomUNet(random, dimension, 1 + trial % 3 % 2);
    const auto                 operation = MakeOperation(random, network);
    Trial<std::int16_t, float> t(random, operation, RandomImage(random, dimension, 13));
    for (auto & pixel : t.pixels)
    {
      pixel = static_cast<std::int16_t>(pixel % 200);
    }
    t.request.backend = GetBackend();
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    GetManager().Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    auto results = EvaluateWhole<std::int16_t>(network, *operation, t.image);
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      trial::Values & result = results[static_cast<std::size_t>(index[4] * t.request.image.upper[3] + index[3])];
      const double    expected = result.At(operation->channel, index[0], index[1], index[2]);
      ASSERT_NEAR(t.Result(index), expected, 1e-4 * std::max(1.0, std::fabs(expected)))
        << trial << " at " << ToString(index) << "\n"
        << network.graph->Describe();
    });
  }
}

TEST_P(NetworkTest, OfChunksHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(173);
  const auto   make = [&](int trial) {
    const auto operation = MakeOperation(random,
                                         trial % 2 ? trial::RandomUNet(random, 2 + trial / 2 % 2, 1 + trial / 4 % 2)
                                                     : trial::RandomClassifier(random, 2 + trial / 2 % 2));
    operation->precision = NetworkPrecision::Reproducible;
    return operation;
  };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 40, make);
  CompareBits<std::uint16_t, std::uint8_t>(random, GetManager(), GetBackend(), 20, make);
  CompareBits<double, double>(random, GetManager(), GetBackend(), 10, make);
}

TEST_P(NetworkTest, SlabsHaveTheBitsOfTheWhole)
{
  std::mt19937 random(187);
  for (int trial = 0; trial < 18; ++trial)
  {
    const auto operation = MakeOperation(random,
                                         trial % 3 == 0   ? trial::RandomUNet(random, 3, 1 + trial % 2)
                                         : trial % 3 == 1 ? trial::RandomClassifier(random, 3)
                                                          : trial::RandomConvolutions(random, 3, trial % 2 == 0));
    operation->precision = NetworkPrecision::Reproducible;
    Trial<std::uint8_t, float> t(random, operation, RandomImage(random, 3, 20));
    t.request.backend = GetBackend();
    std::vector<float> whole;
    for (const std::int64_t slab : { 1000, 1, 3, 8 })
    {
      operation->slab = slab;
      t.Prepare(t.request.image);
      GetManager().Execute(t.request);
      std::size_t i = 0;
      ForEachIndex(t.request.region, [&](const Coordinates & index) {
        if (slab == 1000)
        {
          whole.push_back(t.Result(index));
        }
        ASSERT_EQ(t.Result(index), whole[i++]) << trial << ", slabs of " << slab << " at " << ToString(index) << "\n"
                                               << operation->graph->Describe();
      });
    }
  }
}

/** The networks of the ZNNi paper with few maps and two layers less, Reproducible: the bits of one thread of the CPU
 * that computes the whole at once, for any threads, budgets, slabs and places. */
TEST_P(NetworkTest, ThePapersNetworksAreReproducible)
{
  const std::vector<int> layersOf[] = {
    { 2, 0, 3, 0, 3, 0, 3, 3 }, { 4, 0, 5, 0, 5, 0, 5, 5 }, { 6, 0, 7, 0, 7, 7 }, { 8, 0, 9, 0, 9, 9 }
  };
  constexpr std::int64_t fields[] = { 53, 99, 69, 91 };
  std::mt19937           random(211);
  for (std::size_t n = 0; n < 4; ++n)
  {
    trial::NetworkBuilder builder(random, 3);
    int                   at = 0;
    for (const int kernel : layersOf[n])
    {
      NetworkLayer pool;
      pool.kernel = pool.stride = builder.Same(2);
      at = kernel ? builder.Pointwise(builder.Convolve(at, 2, builder.Same(kernel)), ActivationKind::Relu)
                  : builder.AddKind(LayerKind::MaximumPooling, { at }, pool);
    }
    const auto operation = std::make_shared<NetworkOperation>();
    operation->graph = builder.Finish(at).graph;
    ASSERT_EQ(operation->graph->GetMargin(), builder.Same(fields[n] - 1));
    operation->precision = NetworkPrecision::Reproducible;
    Trial<std::uint8_t, float> t(random, operation, { { 12, 7, 9, 1, 1 } });
    std::vector<float>         expected;
    int                        chunks = 0;
    for (int run = 0; run < 3; ++run)
    {
      operation->slab = run == 0 ? 1000 : run == 1 ? 8 : 0;
      const auto executor = MakeThreadExecutor(run % 2 ? 3 : 1);
      t.request.executor = executor.get();
      t.request.backend = run == 0 ? BackendChoice::CPU : GetBackend();
      t.request.budgets.device = t.request.budgets.host = 0;
      t.Prepare(t.request.image);
      if (run > 1)
      {
        // A little more than the least: several chunks.
        std::size_t & budget = GetParam() == Place::Cpu ? t.request.budgets.host : t.request.budgets.device;
        budget = 1;
        try
        {
          GetManager().Execute(t.request);
        }
        catch (const BudgetError & error)
        {
          budget = error.needed + error.needed / 8;
        }
      }
      const ExecutionReport report = GetManager().Execute(t.request);
      chunks = std::max(chunks, static_cast<int>(report.plan.chunks.size()));
      expected = run == 0 ? t.output : expected;
      ASSERT_EQ(t.output, expected) << "network " << n << ", run " << run;
    }
    EXPECT_GT(chunks, 1) << "network " << n;
    EXPECT_GT(*std::max_element(expected.begin(), expected.end()), *std::min_element(expected.begin(), expected.end()));
    t.request.executor = nullptr;
  }
}

/** The place of planes makes no difference: in one chunk of the same tiles, and for any chunks in an order of sums that
 * is prescribed. */
TEST_P(NetworkTest, SpilledPlanesHaveTheBitsOfKeptOnes)
{
  std::mt19937 random(188);
  int          spilled = 0;
  int          compared = 0;
  const bool   isSlow = IsUnderComputeSanitizer();
  for (int trial = 0; trial < (isSlow ? 4 : 24); ++trial)
  {
    const bool isReproducible = trial % 2;
    const auto operation = MakeOperation(random,
                                         trial % 3 == 0   ? trial::RandomUNet(random, 3, 1 + trial % 2)
                                         : trial % 3 == 1 ? trial::RandomClassifier(random, 3)
                                                          : trial::RandomConvolutions(random, 3, trial % 2 == 0));
    operation->precision = isReproducible ? NetworkPrecision::Reproducible : NetworkPrecision::Float32;
    operation->method = isReproducible ? NetworkMethod::Automatic : NetworkMethod::Transforms;
    operation->slab = 1 + trial % 9;
    operation->headLayers = 0;
    Trial<std::uint8_t, float> t(random, operation, RandomImage(random, 3, 24));
    t.request.backend = GetBackend();
    t.request.devices.assign(GetParam() != Place::Cpu && !isReproducible ? 1 : 0, 0);
    std::vector<float> kept;
    Coordinates        chunk{};
    for (const NetworkPlanes planes : { NetworkPlanes::OnDevice, NetworkPlanes::InHostMemory })
    {
      operation->planes = planes;
      t.request.budgets = Budgets();
      if (planes == NetworkPlanes::InHostMemory)
      {
        t.request.budgets.device = isReproducible ? 300000 + random() % 300000 : 0;
        t.request.budgets.pinned = random() % 2 ? 1000000 + random() % 2000000 : 0;
        t.request.budgets.host = random() % 2 ? 20000 + random() % 200000 : 0;
      }
      t.Prepare(t.request.image);
      const Budgets & budgets = t.request.budgets;
      try
      {
        const ExecutionReport report = GetManager().Execute(t.request);
        EXPECT_TRUE(budgets.pinned == 0 || report.peakPinned <= budgets.pinned) << report.peakPinned;
        EXPECT_TRUE(budgets.host == 0 || report.peakHost <= budgets.host) << report.peakHost;
        if (GetParam() != Place::Cpu)
        {
          // Devices use the host's memory for nothing else.
          EXPECT_TRUE(planes == NetworkPlanes::InHostMemory || report.peakHost == 0);
          spilled += report.peakHost > 0 ? 1 : 0;
        }
        chunk = planes == NetworkPlanes::OnDevice ? report.plan.chunkExtent : chunk;
        if (!isReproducible && !(report.plan.chunkExtent == chunk))
        {
          continue;
        }
        compared += planes == NetworkPlanes::InHostMemory && !isReproducible ? 1 : 0;
      }
      catch (const BudgetError &)
      {
        continue; // the smallest chunk of this trial is larger
      }
      ASSERT_TRUE(t.IsContained());
      std::size_t i = 0;
      ForEachIndex(t.request.region, [&](const Coordinates & index) {
        if (planes == NetworkPlanes::OnDevice)
        {
          kept.push_back(t.Result(index));
        }
        ASSERT_EQ(t.Result(index), kept[i++]) << trial << ", slabs of " << operation->slab << " at " << ToString(index)
                                              << " of " << ToString(t.request.image) << "\n"
                                              << operation->graph->Describe();
      });
    }
  }
  EXPECT_TRUE(spilled > (isSlow ? 0 : 10) || GetParam() == Place::Cpu) << spilled;
  EXPECT_GT(compared, isSlow ? 0 : 6);
}

/** The CPU's part before the device changes the result no more than other ways do, wherever the two meet. */
TEST_P(NetworkTest, TheCpusLayersComeBeforeTheDevices)
{
  std::mt19937 random(197);
  int          piped = 0;
  const bool   isSlow = IsUnderComputeSanitizer();
  for (int trial = 0; trial < (isSlow ? 4 : 24); ++trial)
  {
    const Network network = trial % 3 == 0   ? trial::RandomUNet(random, 3, 1 + trial % 2)
                            : trial % 3 == 1 ? trial::RandomClassifier(random, 3)
                                             : trial::RandomConvolutions(random, 3, trial % 2 == 0);
    const auto    operation = MakeOperation(random, network);
    operation->slab = trial % 4 == 0 ? 0 : 1 + trial % 7;
    operation->method = static_cast<NetworkMethod>(trial % 3);
    Trial<std::uint8_t, float> t(random, operation, RandomImage(random, 3, 20));
    std::vector<float>         expected;
    double                     largest = 0;
    const int                  layers = static_cast<int>(network.graph->GetLayers().size());
    for (int head = 0; head < layers; ++head)
    {
      operation->headLayers = head;
      t.request.backend = head ? GetBackend() : BackendChoice::CPU;
      t.request.budgets.device = head % 2 ? 0 : 400000;
      t.Prepare(t.request.image);
      try
      {
        const ExecutionReport report = GetManager().Execute(t.request);
        piped += head && GetParam() != Place::Cpu && report.peakHost > 0 ? 1 : 0;
      }
      catch (const BudgetError &)
      {
        continue; // the smallest chunk of this trial is larger
      }
      ASSERT_TRUE(t.IsContained());
      std::size_t i = 0;
      ForEachIndex(t.request.region, [&](const Coordinates & index) {
        if (head == 0)
        {
          expected.push_back(t.Result(index));
          largest = std::max(largest, std::fabs(static_cast<double>(expected.back())));
        }
        ASSERT_NEAR(t.Result(index), expected[i++], 1e-5 * largest)
          << trial << ", " << head << " of " << layers << " layers, at " << ToString(index) << " of "
          << ToString(t.request.image) << "\n"
          << operation->graph->Describe();
      });
    }
  }
  EXPECT_TRUE(piped > (isSlow ? 2 : 20) || GetParam() == Place::Cpu) << piped;
}

/** A run of many chunks and slabs, as it is with planes on the device. */
class SpillingRun : public testing::Test
{
protected:
  SpillingRun()
    : m_Operation(std::make_shared<NetworkOperation>())
    , m_Random(189)
    , m_Manager(m_Devices.MakeManager())
    , m_Trial(m_Random, m_Operation, { { 20, 18, 40, 1, 1 } })
  {
    m_Operation->graph = trial::RandomClassifier(m_Random, 3).graph;
    m_Operation->precision = NetworkPrecision::Reproducible;
    m_Operation->slab = 4;
    m_Operation->planes = NetworkPlanes::OnDevice;
    m_Trial.request.backend = BackendChoice::CUDA;
    m_Trial.Prepare(m_Trial.request.image);
    m_Trial.request.budgets.device = 1;
    m_Trial.request.budgets.device = FindLeast() * 3 / 2;
    EXPECT_EQ(Run().peakHost, 0u);
    m_Expected = m_Trial.output;
    m_Operation->planes = NetworkPlanes::InHostMemory;
  }
  /** The least budget of what the request has too little of. */
  std::size_t
  FindLeast()
  {
    try
    {
      m_Manager->Execute(m_Trial.request);
    }
    catch (const BudgetError & error)
    {
      return error.needed;
    }
    return 0;
  }
  ExecutionReport
  Run(Monitor * monitor = nullptr)
  {
    m_Trial.Prepare(m_Trial.request.image);
    return m_Manager->Execute(m_Trial.request, monitor);
  }

  FakeDevices                             m_Devices{ 1, FakeDevice::Options(), GetHostKernels() };
  const std::shared_ptr<NetworkOperation> m_Operation;
  std::mt19937                            m_Random;
  const std::unique_ptr<Manager>          m_Manager;
  Trial<std::uint8_t, float>              m_Trial;
  std::vector<float>                      m_Expected;
};

/** With some layers on the CPU: the memory goes with the run, aborting stops both, and what fails is done by others. */
TEST_F(SpillingRun, IsPiped)
{
  m_Operation->precision = NetworkPrecision::Float32;
  m_Operation->method = NetworkMethod::Direct;
  m_Operation->headLayers = 1;
  const auto check = [this](const ExecutionReport & report) {
    for (std::size_t i = 0; i < m_Expected.size(); ++i)
    {
      ASSERT_NEAR(m_Trial.output[i], m_Expected[i], 1e-4) << i;
    }
    EXPECT_LE(report.peakDevice, m_Trial.request.budgets.device);
  };
  const ExecutionReport report = Run();
  check(report);
  EXPECT_GT(report.peakHost, 0u);
  EXPECT_GT(report.plan.chunks.size(), 1u);
  RecordingMonitor monitor;
  monitor.abortAt = 0.3;
  EXPECT_THROW(Run(&monitor), Aborted);
  for (const char * const call : { "kernel", "AllocatePinned", "Launch" })
  {
    m_Devices.fakes[0]->FailAt(call, 0, false);
    check(Run());
    m_Devices.fakes[0]->ClearFaults();
  }
  // Not piped if the same bits were asked for, or the host's memory has a budget, or the CPU has separate chunks.
  const auto isPiped = [this] {
    m_Operation->planes = NetworkPlanes::OnDevice;
    const bool is = Run().peakHost > 0;
    m_Operation->planes = NetworkPlanes::InHostMemory;
    return is;
  };
  EXPECT_TRUE(isPiped());
  m_Trial.request.budgets.host = std::size_t{ 1 } << 40;
  EXPECT_FALSE(isPiped());
  m_Trial.request.budgets.host = 0;
  m_Operation->precision = NetworkPrecision::Reproducible;
  EXPECT_FALSE(isPiped());
  EXPECT_EQ(m_Trial.output, m_Expected);
}

/** Head and tail meet where the run is expected to be fastest, and nowhere if the device alone is as fast. */
TEST_F(SpillingRun, TakesTheFastestHead)
{
  m_Operation->precision = NetworkPrecision::Float32;
  m_Operation->method = NetworkMethod::Direct;
  m_Operation->planes = NetworkPlanes::OnDevice;
  m_Trial.request.budgets.device = 0;
  for (const double rate : { 1e7, 1e8, 1e14 })
  {
    FakeDevice::Options options;
    options.linkRate = rate;
    const FakeDevices devices(1, options, GetHostKernels());
    const auto        manager = devices.MakeManager();
    const auto        secondsOf = [&](int head) {
      m_Operation->headLayers = head;
      return manager->MakePlanFor(m_Trial.request).seconds;
    };
    const double alone = secondsOf(0);
    double       best = alone;
    for (int head = 1; head < static_cast<int>(m_Operation->graph->GetLayers().size()) - 1; ++head)
    {
      const double seconds = secondsOf(head);
      best = seconds < alone / 1.03 ? std::min(best, seconds) : best;
    }
    EXPECT_EQ(secondsOf(-1), best) << rate;
    // Devices as slow as the CPU gain, much faster devices do not.
    EXPECT_EQ(best < alone, rate < 1e10) << rate << ": " << best << " and " << alone;
  }
}

TEST_F(SpillingRun, MakesRoomForLargerChunks)
{
  const Plan   spilled = m_Manager->MakePlanFor(m_Trial.request);
  const double factor = m_Manager->GetCostOfBudget(m_Trial.request).budget.factor;
  m_Operation->planes = NetworkPlanes::OnDevice;
  const Plan without = m_Manager->MakePlanFor(m_Trial.request);
  EXPECT_LT(spilled.chunks.size(), without.chunks.size());
  const std::size_t budget = m_Trial.request.budgets.device;
  m_Trial.request.budgets.device = 0;
  EXPECT_NEAR(factor * m_Manager->MakePlanFor(m_Trial.request).seconds, spilled.seconds, 0.01 * spilled.seconds);
  m_Trial.request.budgets.device = budget;
  m_Operation->planes = NetworkPlanes::InHostMemory;
  const ExecutionReport report = Run();
  EXPECT_EQ(m_Trial.output, m_Expected);
  EXPECT_GT(report.peakHost, 0u);
  EXPECT_GE(report.peakPinned, report.peakHost);
  EXPECT_LE(report.peakDevice, m_Trial.request.budgets.device);
  // It is kept for a run that needs as much, and goes for others.
  EXPECT_GE(m_Manager->GetHeldMemory().pinned, report.peakHost);
  const int allocations = m_Devices.fakes[0]->CountCalls("AllocatePinned");
  EXPECT_EQ(Run().peakHost, report.peakHost);
  EXPECT_EQ(m_Devices.fakes[0]->CountCalls("AllocatePinned"), allocations);
  m_Operation->planes = NetworkPlanes::OnDevice;
  EXPECT_EQ(Run().peakHost, 0u);
  EXPECT_LE(m_Manager->GetHeldMemory().pinned, report.peakPinned - report.peakHost);
  m_Operation->planes = NetworkPlanes::InHostMemory;
  Run();
  m_Manager->ReleaseMemory();
  EXPECT_EQ(m_Manager->GetHeldMemory().pinned, 0u);
}

TEST_F(SpillingRun, DoesWithoutMemoryThatIsNotThere)
{
  for (const auto kind : { DeviceError::Kind::OutOfMemory, DeviceError::Kind::Failed })
  {
    // The first pinned memory of the run is what it spills.
    m_Manager->ReleaseMemory();
    m_Devices.fakes[0]->FailAt("AllocatePinned", 0, false, kind);
    const ExecutionReport report = Run();
    m_Devices.fakes[0]->ClearFaults();
    EXPECT_EQ(m_Trial.output, m_Expected);
    EXPECT_EQ(report.peakHost, 0u);
    EXPECT_EQ(report.retries, 0) << "the plan is one without";
  }
}

/** Each budget alone, and what each of them has no room for. */
TEST_F(SpillingRun, KeepsToTheHostsBudgets)
{
  const std::size_t most = Run().peakHost;
  for (const std::size_t budget : { most / 3, most - 1, most, 3 * most })
  {
    m_Trial.request.budgets.host = budget;
    const ExecutionReport ofHost = Run();
    EXPECT_LE(ofHost.peakHost, budget);
    EXPECT_EQ(m_Trial.output, m_Expected);
    m_Trial.request.budgets.host = 0;
    // A little for the pieces of images.
    m_Trial.request.budgets.pinned = budget + 1100;
    EXPECT_LE(Run().peakPinned, budget + 1100);
    EXPECT_EQ(m_Trial.output, m_Expected);
    // If there is not room for all, smaller chunks are planned.
    EXPECT_GT(ofHost.peakHost, 0u) << budget << " of " << most;
    EXPECT_EQ(ofHost.retries, 0);
    m_Trial.request.budgets.pinned = 0;
  }
  // A budget for all runs is what others may count on.
  Budgets ofManager;
  ofManager.host = 10 * most;
  m_Manager->SetBudgets(ofManager);
  EXPECT_EQ(Run().peakHost, 0u);
  ofManager.host = 0;
  ofManager.pinned = most / 2;
  m_Manager->SetBudgets(ofManager);
  EXPECT_LE(Run().peakPinned, ofManager.pinned);
  EXPECT_EQ(m_Trial.output, m_Expected);
}

/** Memory that a run has spilled is kept for the next one, but not beside the host's memory of another run. */
TEST_F(SpillingRun, KeepsNothingBesideAnotherRunsBudget)
{
  struct Watch : Monitor
  {
    const Manager & manager;
    std::size_t     most{ 0 };
    explicit Watch(const Manager & of)
      : manager(of)
    {}
    void
    UpdateProgress(double) override
    {
      most = std::max(most, manager.GetHeldMemory().pinned);
    }
    bool
    ShouldAbort() override
    {
      most = std::max(most, manager.GetHeldMemory().pinned);
      return false;
    }
  };
  FakeDevices                    devices(2, FakeDevice::Options(), GetHostKernels());
  const std::unique_ptr<Manager> manager = devices.MakeManager();
  const auto                     heldDuring = [&](BackendChoice backend, int device, std::size_t hostBudget) {
    m_Trial.request.backend = BackendChoice::CUDA;
    m_Trial.request.devices = { 0 };
    m_Trial.request.budgets.host = 0;
    m_Operation->planes = NetworkPlanes::InHostMemory;
    const std::size_t spilled = manager->Execute(m_Trial.request).peakHost;
    EXPECT_GT(spilled, 0u);
    const std::size_t kept = manager->GetHeldMemory().pinned;
    EXPECT_GE(kept, spilled);
    m_Trial.request.backend = backend;
    m_Trial.request.devices = { device };
    m_Trial.request.budgets.host = hostBudget;
    m_Operation->planes = NetworkPlanes::OnDevice;
    m_Trial.Prepare(m_Trial.request.image);
    Watch watch(*manager);
    EXPECT_EQ(manager->Execute(m_Trial.request, &watch).peakHost > 0, backend == BackendChoice::CPU);
    EXPECT_EQ(m_Trial.output, m_Expected);
    EXPECT_GT(watch.most, 0u);
    return watch.most >= kept;
  };
  constexpr std::size_t much = std::size_t{ 1 } << 30;
  EXPECT_FALSE(heldDuring(BackendChoice::CPU, 0, much));
  EXPECT_FALSE(heldDuring(BackendChoice::CPU, 0, 0));
  EXPECT_FALSE(heldDuring(BackendChoice::CUDA, 1, much));
  // Nobody counts on it.
  EXPECT_TRUE(heldDuring(BackendChoice::CUDA, 1, 0));
  // A plan for such a run is asked for before its images are there.
  const std::size_t kept = manager->GetHeldMemory().pinned;
  m_Trial.request.budgets.host = much;
  (void)manager->MakePlanFor(m_Trial.request);
  EXPECT_LT(manager->GetHeldMemory().pinned, kept);
}

/** A plan says where planes lie, and what the CPU computes. */
TEST_F(SpillingRun, IsDescribed)
{
  const auto describe = [this](const Plan & plan) {
    return DescribeNetworkPlan(*m_Operation, plan, m_Trial.request.image, true);
  };
  const Plan spilled = m_Manager->MakePlanFor(m_Trial.request);
  EXPECT_EQ(spilled.spilledBytes, Run().peakHost);
  EXPECT_FALSE(spilled.piped);
  std::size_t kept = 0;
  for (const NetworkLayerDescription & row : describe(spilled))
  {
    EXPECT_TRUE(row.keptByHost);
    EXPECT_FALSE(row.byCpu);
    kept += row.keptBytes;
  }
  EXPECT_GT(kept, 0u);
  // There is room for chunks of other places too.
  EXPECT_LE(kept, spilled.spilledBytes);

  m_Operation->planes = NetworkPlanes::OnDevice;
  const Plan onDevice = m_Manager->MakePlanFor(m_Trial.request);
  EXPECT_EQ(onDevice.spilledBytes, 0u);
  for (const NetworkLayerDescription & row : describe(onDevice))
  {
    EXPECT_FALSE(row.keptByHost || row.byCpu);
  }

  m_Operation->precision = NetworkPrecision::Float32;
  m_Operation->headLayers = 2;
  const Plan piped = m_Manager->MakePlanFor(m_Trial.request);
  EXPECT_GT(piped.spilledBytes, 0u);
  ASSERT_TRUE(piped.piped);
  const auto rows = describe(piped);
  double     ofCpu = 0;
  double     ofDevice = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
  {
    EXPECT_EQ(rows[i].byCpu, i <= 2) << i;
    EXPECT_FALSE(rows[i].keptByHost);
    (rows[i].byCpu ? ofCpu : ofDevice) += rows[i].share;
  }
  EXPECT_NEAR(ofCpu, 1.0, 1e-9);
  EXPECT_NEAR(ofDevice, 1.0, 1e-9);
}

TEST_F(SpillingRun, CanBeAborted)
{
  RecordingMonitor monitor;
  monitor.abortAt = 0.3;
  EXPECT_THROW(Run(&monitor), Aborted);
  RecordingMonitor untilTheEnd;
  EXPECT_GT(Run(&untilTheEnd).peakHost, 0u);
  EXPECT_EQ(m_Trial.output, m_Expected);
  EXPECT_TRUE(std::is_sorted(untilTheEnd.fractions.begin(), untilTheEnd.fractions.end()));
  EXPECT_EQ(untilTheEnd.fractions.back(), 1.0);
}

TEST_F(SpillingRun, LeavesTheMemoryToTheCpuThatTakesOver)
{
  const std::size_t most = Run().peakHost;
  m_Trial.request.backend = BackendChoice::CPU;
  m_Trial.request.budgets.host = 1;
  m_Trial.request.budgets.host = FindLeast() + most / 2;
  m_Trial.request.backend = BackendChoice::Auto;
  EXPECT_GT(Run().peakHost, 0u);
  m_Devices.fakes[0]->FailAt("kernel", 1, true);
  const ExecutionReport report = Run();
  m_Devices.fakes[0]->ClearFaults();
  EXPECT_EQ(m_Trial.output, m_Expected);
  EXPECT_GT(report.chunksOnHost, 0);
  EXPECT_LE(report.peakHost, m_Trial.request.budgets.host);
}

/** Images of more than a tile of the devices' direct convolutions, with halos of many widths. */
TEST_P(NetworkTest, LargeDirectConvolutionsHaveTheBitsOfTheCpu)
{
  std::mt19937 random(186);
  for (int trial = 0; trial < 6; ++trial)
  {
    trial::NetworkBuilder builder(random, 3);
    const auto            pool = [&](int at, std::int64_t taps) {
      NetworkLayer layer;
      layer.kernel = layer.stride = builder.Same(taps);
      return builder.AddKind(LayerKind::MaximumPooling, { at }, layer);
    };
    int at = builder.Convolve(0, 5 + trial, { { 1 + trial, 3, 2 } });
    at = builder.Convolve(pool(at, 1 + trial % 3), 17, { { 3, 1 + trial, 2 } });
    const Network network = builder.Finish(builder.Convolve(pool(at, 2), 3 + 7 * (trial % 2), builder.Same(2)));
    const auto    operation = MakeOperation(random, network);
    operation->precision = NetworkPrecision::Reproducible;
    Trial<std::uint8_t, float> t(random, operation, { { 130 + trial, 67 - trial, 4, 1, 1 } });
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    std::vector<float> results;
    ForEachIndex(t.request.region, [&](const Coordinates & index) { results.push_back(t.Result(index)); });
    t.request.backend = BackendChoice::CPU;
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    std::size_t i = 0;
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      ASSERT_EQ(results[i++], t.Result(index)) << trial << " at " << ToString(index) << "\n"
                                               << network.graph->Describe();
    });
  }
}

/** Every layer of the dense network over the whole image, in double. Layers are few and thin here: what was measured of
 * large networks is in docs/networks.md. */
TEST_P(NetworkTest, TransformsKeepToTheirBound)
{
  const std::pair<NetworkPrecision, double> bounds[] = { { NetworkPrecision::Float32, 1e-5 },
                                                         { NetworkPrecision::TensorFloat32, 1e-2 },
                                                         { NetworkPrecision::Half, 1e-2 } };
  std::mt19937                              random(182);
  for (int trial = 0; trial < 120; ++trial)
  {
    const double  bound = bounds[trial / 40].second;
    const int     dimension = 2 + (trial % 4 > 0 ? 1 : 0);
    const Network network = trial::RandomConvolutions(random, dimension, trial % 2 != 0);
    const auto    operation = MakeOperation(random, network);
    operation->method = NetworkMethod::Transforms;
    operation->precision = bounds[trial / 40].first;
    Trial<std::uint8_t, float> t(random, operation, RandomImage(random, dimension, trial % 8 == 0 ? 34 : 11));
    t.request.backend = GetBackend();
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    GetManager().Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    Network dense = network;
    dense.layers = network.graph->GetLayers();
    dense.output = network.graph->GetOutput();
    auto   results = EvaluateWhole<std::uint8_t>(dense, *operation, t.image);
    double largest = 0;
    for (const trial::Values & result : results)
    {
      for (const double value : result.values)
      {
        largest = std::max(largest, std::fabs(value));
      }
    }
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      trial::Values & result = results[static_cast<std::size_t>(index[4] * t.request.image.upper[3] + index[3])];
      const double    expected = result.At(operation->channel, index[0], index[1], index[2]);
      ASSERT_NEAR(t.Result(index), expected, bound * largest)
        << trial << " at " << ToString(index) << " of " << ToString(t.request.image) << "\n"
        << network.graph->Describe();
    });
  }
}

/** Wide layers, of more outputs than a block has, more tiles than a block has, and inputs no multiple of a stage's:
 * nothing overflows in half precision, whatever the voxels' scale is, and of maps much smaller than others nothing is
 * lost that large weights make of them. */
TEST_P(NetworkTest, HalfKeepsToItsBoundAtEveryScale)
{
  std::mt19937 random(187);
  const int    widths[][3] = { { 5, 8, 6 }, { 40, 24, 17 }, { 72, 72, 3 }, { 17, 90, 5 }, { 33, 50, 9 } };
  for (int trial = 0; trial < 10; ++trial)
  {
    const auto &          width = widths[trial % 5];
    trial::NetworkBuilder builder(random, 3);
    int                   at = builder.Convolve(0, width[0], builder.Same(2));
    NetworkLayer          scaling;
    const auto            factors = std::make_shared<std::vector<float>>();
    for (int c = 0; c < width[0]; ++c)
    {
      factors->push_back(c % 2 ? 1.0f / 1024 : 1.0f);
    }
    scaling.weights = factors;
    at = builder.AddKind(LayerKind::Scaling, { at }, scaling);
    at = builder.Pointwise(builder.Convolve(at, width[1], builder.Same(3)), ActivationKind::Relu);
    NetworkLayer dilated;
    dilated.dilation = builder.Same(1 + trial % 2);
    at = builder.Pointwise(builder.Convolve(at, width[2], builder.Same(2), dilated), ActivationKind::Relu);
    const Network network = builder.Finish(builder.Convolve(at, 2, builder.Same(2)));
    const auto    operation = MakeOperation(random, network);
    operation->method = NetworkMethod::Transforms;
    operation->precision = NetworkPrecision::Half;
    operation->tile = trial % 5 == 0 ? 16 : 0;
    operation->scale = std::ldexp(0.01, trial % 3 == 0 ? -30 : trial % 3 == 1 ? 0 : 30);
    operation->shift = 0.0;
    operation->boundary = { BoundaryMode::ZeroFluxNeumann, 0.0 };
    Trial<std::uint8_t, float> t(random, operation, { { trial % 5 == 0 ? 530 : 34, 6, 5, 1, 1 } });
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    Network dense = network;
    dense.layers = network.graph->GetLayers();
    dense.output = network.graph->GetOutput();
    auto   results = EvaluateWhole<std::uint8_t>(dense, *operation, t.image);
    double largest = 0;
    for (const double value : results[0].values)
    {
      largest = std::max(largest, std::fabs(value));
    }
    double difference = 0;
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const double expected = results[0].At(operation->channel, index[0], index[1], index[2]);
      const double error = std::fabs(t.Result(index) - expected);
      difference = error <= difference ? difference : error;
    });
    EXPECT_LT(difference, 5e-3 * largest) << trial << ": " << difference / largest << "\n" << network.graph->Describe();
    if (GetParam() == Place::Cpu)
    {
      const std::vector<float> half = t.output;
      operation->precision = NetworkPrecision::Float32;
      GetManager().Execute(t.request);
      EXPECT_EQ(t.output, half) << "on the CPU it is Float32";
    }
  }
}

/** A voxel that is not finite spoils its tile, and no other. */
TEST_P(NetworkTest, InfinityStaysInItsTile)
{
  std::mt19937 random(185);
  for (const auto precision : { NetworkPrecision::Float32, NetworkPrecision::TensorFloat32, NetworkPrecision::Half })
  {
    trial::NetworkBuilder builder(random, 3);
    int                   at = builder.Convolve(0, 16, builder.Same(3));
    at = builder.Convolve(at, 16, builder.Same(3));
    const Network network = builder.Finish(builder.Convolve(at, 16, builder.Same(3)));
    const auto    operation = MakeOperation(random, network);
    operation->method = NetworkMethod::Transforms;
    operation->precision = precision;
    operation->boundary = { BoundaryMode::ZeroFluxNeumann, 0.0 };
    Trial<float, float> t(random, operation, { { 100, 9, 8, 1, 1 } });
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    std::vector<float> before;
    double             largest = 0;
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      before.push_back(t.Result(index));
      largest = std::max(largest, std::fabs(static_cast<double>(before.back())));
    });
    t.pixels[static_cast<std::size_t>(t.image.Offset({ { 95, 4, 4, 0, 0 } }))] = HUGE_VALF;
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    std::size_t i = 0;
    bool        isSpoilt = false;
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const double difference = std::fabs(static_cast<double>(t.Result(index)) - static_cast<double>(before[i++]));
      isSpoilt = isSpoilt || !(difference < 1e-5);
      if (index[0] < 20)
      {
        // No tile of any layer that gives this reaches so far.
        ASSERT_EQ(difference, 0.0) << ToString(index) << " in " << static_cast<int>(precision);
      }
    });
    EXPECT_TRUE(isSpoilt);
  }
}

TEST_P(NetworkTest, ResultsAreDecidedForEachVoxel)
{
  std::mt19937 random(174);
  for (int trial = 0; trial < 10; ++trial)
  {
    Network network;
    do
    {
      network = trial::RandomUNet(random, 3, 1);
    } while (network.graph->GetNumberOfOutputChannels() < 2);
    const auto                      operation = MakeOperation(random, network);
    Trial<std::uint8_t, float>      channels(random, operation, RandomImage(random, 3, 10));
    std::vector<std::vector<float>> values;
    const auto                      run = [&](auto & t) {
      t.request.backend = GetBackend();
      t.Prepare(t.request.image);
      GetManager().Execute(t.request);
    };
    for (int c = 0; c < network.graph->GetNumberOfOutputChannels(); ++c)
    {
      operation->channel = c;
      run(channels);
      values.emplace_back();
      ForEachIndex(channels.request.region,
                   [&](const Coordinates & index) { values.back().push_back(channels.Result(index)); });
    }
    const auto                        decided = std::make_shared<NetworkOperation>(*operation);
    Trial<std::uint8_t, std::uint8_t> t(random, decided, channels.request.image.Extents());
    t.pixels = channels.pixels;
    t.image.data = t.pixels.data();
    decided->result = NetworkResult::ArgMax;
    run(t);
    std::size_t i = 0;
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      int best = 0;
      for (int c = 1; c < network.graph->GetNumberOfOutputChannels(); ++c)
      {
        best = values[static_cast<std::size_t>(c)][i] > values[static_cast<std::size_t>(best)][i] ? c : best;
      }
      ASSERT_EQ(t.Result(index), best);
      ++i;
    });
    decided->result = NetworkResult::Threshold;
    decided->channel = 1;
    decided->threshold = values[1][values[1].size() / 2];
    run(t);
    i = 0;
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      ASSERT_EQ(t.Result(index), values[1][i] > decided->threshold ? 1 : 0);
      ++i;
    });
  }
}

/** All channels at once have the bits of each, wherever chunks and regions end. */
TEST_P(NetworkTest, AllChannelsLieAlongAnAxis)
{
  std::mt19937 random(183);
  for (int trial = 0; trial < 12; ++trial)
  {
    const Network network = trial % 2 ? trial::RandomUNet(random, 3, 1) : trial::RandomConvolutions(random, 3, false);
    const auto    one = MakeOperation(random, network);
    one->precision = NetworkPrecision::Reproducible;
    one->channel = 0;
    const int  channels = network.graph->GetNumberOfOutputChannels();
    const int  axis = 3 + trial % 2;
    const auto all = std::make_shared<NetworkOperation>(*one);
    all->result = NetworkResult::AllChannels;
    all->channelAxis = axis;

    Coordinates extent = RandomImage(random, 3, 12);
    extent[3] = extent[4] = 1;
    Trial<std::uint8_t, float> t(random, one, extent);
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);

    ExecutionRequest request = t.request;
    request.operation = all;
    request.image.upper[axis] = channels;
    request.region = RandomRegion(random, request.image.Extents());
    request.inputs = { t.image };
    request.inputs[0].box.upper[axis] = channels;
    request.inputs[0].stride[axis] = 0;
    std::vector<float> results(static_cast<std::size_t>(request.region.NumberOfVoxels()), std::nanf(""));
    request.output = DenseView(results.data(), PixelType::Float32, request.region);
    GetManager().Execute(request);
    for (int c = static_cast<int>(request.region.lower[axis]); c < request.region.upper[axis]; ++c)
    {
      one->channel = c;
      t.Prepare(t.request.image);
      GetManager().Execute(t.request);
      ForEachIndex(t.request.region, [&](const Coordinates & index) {
        Coordinates at = index;
        at[axis] = c;
        if (request.region.Contains(Box{ at, { { at[0] + 1, at[1] + 1, at[2] + 1, at[3] + 1, at[4] + 1 } } }))
        {
          ASSERT_EQ(results[static_cast<std::size_t>(request.output.Offset(at))], t.Result(index)) << trial;
        }
      });
    }
    request.image.upper[axis] = channels + 1;
    EXPECT_THROW(GetManager().Execute(request), ParameterError);
  }
}

/** Two grids, and normalization by the statistics of what the network is given. */
Network
MakeNormalizing(std::mt19937 & random, int dimension)
{
  trial::NetworkBuilder builder(random, dimension);
  NetworkLayer          same;
  same.padLower = same.padUpper = builder.Same(1, 0);
  const auto normalize = [&](int at) {
    NetworkLayer layer;
    layer.weights = builder.Values(builder.Channels(at));
    layer.bias = builder.Values(builder.Channels(at));
    layer.activation.kind = ActivationKind::LeakyRelu;
    layer.activation.alpha = 0.25f;
    return builder.AddKind(LayerKind::InstanceNormalization, { at }, layer);
  };
  const int    first = normalize(builder.Convolve(0, 3, builder.Same(3), same));
  NetworkLayer pool;
  pool.kernel = pool.stride = builder.Same(2);
  const int    below = builder.AddKind(LayerKind::MaximumPooling, { first }, pool);
  const int    second = normalize(builder.Convolve(below, 4, builder.Same(3), same));
  NetworkLayer up;
  up.stride = builder.Same(2);
  const int last = builder.AddKind(LayerKind::NearestUpsampling, { second }, up);
  return builder.Finish(
    builder.Convolve(builder.AddKind(LayerKind::Concatenation, { first, last }), 2, builder.Same(1)));
}

std::shared_ptr<NetworkOperation>
MakePatches(std::mt19937 & random, const Network & network, int dimension)
{
  const auto operation = MakeOperation(random, network);
  operation->mode = NetworkMode::Patches;
  operation->overlap = 0.25 * static_cast<double>(random() % 4);
  operation->weighting = random() % 2 ? PatchWeighting::Gaussian : PatchWeighting::Constant;
  for (std::size_t a = 0; a < 3; ++a)
  {
    const std::int64_t stride = network.graph->GetTotalStride()[a];
    operation->patch[a] =
      static_cast<int>(a) < dimension ? stride * ((3 + stride) / stride + static_cast<std::int64_t>(random() % 3)) : 1;
  }
  return operation;
}

/** Every window through the network as it was built, in double, and their means, as MONAI defines them. */
TEST_P(NetworkTest, WindowsAreWeighedWhereTheyOverlap)
{
  std::mt19937 random(184);
  for (int trial = 0; trial < 24; ++trial)
  {
    const int                  dimension = 2 + trial % 2;
    const Network              network = MakeNormalizing(random, dimension);
    const auto                 operation = MakePatches(random, network, dimension);
    Trial<std::uint8_t, float> t(random, operation, RandomImage(random, dimension, 17));
    t.request.backend = GetBackend();
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    GetManager().Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    const LayerExtent & window = operation->patch;
    const Coordinates   extent = t.request.image.Extents();
    // The first indices of windows: one every int(window * (1 - overlap)) voxels, the last ones moved to the end.
    std::vector<std::int64_t> starts[3];
    for (std::size_t a = 0; a < 3; ++a)
    {
      const std::int64_t n = std::max(extent[static_cast<int>(a)], window[a]);
      const std::int64_t before = (n - extent[static_cast<int>(a)]) / 2;
      std::int64_t       step = static_cast<std::int64_t>(static_cast<double>(window[a]) * (1.0 - operation->overlap));
      step = n == window[a] ? window[a] : std::max<std::int64_t>(step, 1);
      for (std::int64_t at = 0; starts[a].empty() || starts[a].back() + before + window[a] < n; at += step)
      {
        starts[a].push_back(std::min(at, n - window[a]) - before);
      }
    }
    std::map<std::array<std::int64_t, 5>, std::pair<double, double>> sums;
    for (std::int64_t image = 0; image < extent[3] * extent[4]; ++image)
    {
      const std::int64_t u = image % extent[3];
      const std::int64_t v = image / extent[3];
      for (const std::int64_t z : starts[2])
      {
        for (const std::int64_t y : starts[1])
        {
          for (const std::int64_t x : starts[0])
          {
            trial::Values result =
              trial::Evaluate(network,
                              trial::Part<std::uint8_t>(
                                t.image, *operation, LayerExtent{ { x, y, z } }, window, { { 0, 0, 0, u, v } }));
            for (std::int64_t i = 0; i < window[0] * window[1] * window[2]; ++i)
            {
              const std::int64_t in[3] = { i % window[0], i / window[0] % window[1], i / window[0] / window[1] };
              double             weight = 1;
              for (std::size_t a = 0; a < 3 && operation->weighting == PatchWeighting::Gaussian; ++a)
              {
                const double d = (static_cast<double>(in[a]) - 0.5 * static_cast<double>(window[a] - 1)) /
                                 (0.125 * static_cast<double>(window[a]));
                weight *= std::exp(-0.5 * d * d);
              }
              weight = std::max(weight, 1e-3);
              auto & sum = sums[{ x + in[0], y + in[1], z + in[2], u, v }];
              sum.first += weight * result.At(operation->channel, in[0], in[1], in[2]);
              sum.second += weight;
            }
          }
        }
      }
    }
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const auto & sum = sums.at({ index[0], index[1], index[2], index[3], index[4] });
      ASSERT_NEAR(t.Result(index), sum.first / sum.second, 2e-4)
        << trial << " at " << ToString(index) << " of " << ToString(extent);
    });
  }
}

TEST_P(NetworkTest, WindowsHaveTheSameBitsForAnyChunks)
{
  std::mt19937 random(185);
  int          trial = 0;
  CompareBits<std::uint8_t, float>(random, GetManager(), GetBackend(), 20, [&](int) {
    const int  dimension = 2 + trial++ % 2;
    const auto operation = MakePatches(random, MakeNormalizing(random, dimension), dimension);
    operation->precision = NetworkPrecision::Reproducible;
    return operation;
  });
}

TEST(NetworkOperation, WindowsAndNetworksMustFit)
{
  std::mt19937      random(186);
  const Network     network = MakeNormalizing(random, 3);
  const auto        operation = MakePatches(random, network, 3);
  const Coordinates image{ { 30, 20, 10, 1, 1 } };
  const auto        message = [&] { return ValidationMessage(*operation, image); };
  EXPECT_EQ(message(), "");
  operation->overlap = 1.0;
  EXPECT_NE(message().find("Overlap"), std::string::npos);
  operation->overlap = std::nan("");
  EXPECT_NE(message().find("Overlap"), std::string::npos);
  operation->overlap = 0.5;
  operation->patch[1] = 9;
  EXPECT_NE(message().find("PatchSize: 9 along axis 1"), std::string::npos) << message();
  operation->patch[1] = 0;
  EXPECT_NE(message().find("PatchSize: 0"), std::string::npos) << message();
  operation->mode = NetworkMode::Dense;
  EXPECT_NE(message().find("patches"), std::string::npos) << message();
  operation->mode = NetworkMode::Patches;
  operation->patch = { { 8, 8, 8 } };
  operation->graph = trial::RandomClassifier(random, 3).graph;
  operation->channel = 0;
  EXPECT_NE(message().find("densely"), std::string::npos) << message();
}

/** A network with a crop, as U-Nets without padding have, fits only some extents. */
TEST_P(NetworkTest, BranchesMeetInEveryImage)
{
  std::mt19937          random(175);
  trial::NetworkBuilder builder(random, 3);
  const int             first = builder.Convolve(0, 2, builder.Same(3));
  NetworkLayer          layer;
  layer.kernel = layer.stride = builder.Same(2);
  int at = builder.AddKind(LayerKind::MaximumPooling, { first }, layer);
  at = builder.Convolve(at, 2, builder.Same(3));
  layer = NetworkLayer();
  layer.stride = builder.Same(2);
  at = builder.AddKind(LayerKind::NearestUpsampling, { at }, layer);
  layer = NetworkLayer();
  layer.padLower = layer.padUpper = builder.Same(2);
  const int     cropped = builder.AddKind(LayerKind::Crop, { first }, layer);
  const Network network = builder.Finish(builder.AddKind(LayerKind::Sum, { cropped, at }));
  EXPECT_EQ(network.graph->GetMargin(), (LayerExtent{ { 6, 6, 6 } }));
  EXPECT_EQ(network.graph->GetTotalStride(), (LayerExtent{ { 2, 2, 2 } }));
  for (std::int64_t n = 1; n < 9; ++n)
  {
    const auto          operation = MakeOperation(random, network);
    Trial<float, float> t(random, operation, { { n, 3, 5, 1, 1 } });
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    auto results = EvaluateWhole<float>(network, *operation, t.image);
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      ASSERT_NEAR(t.Result(index), results[0].At(operation->channel, index[0], index[1], index[2]), 1e-4);
    });
  }
}

/** A margin that is larger at one end than at the opposite end does not shift the image. */
TEST_P(NetworkTest, ResultsLieWhereTheirWindowsAre)
{
  std::mt19937          random(179);
  trial::NetworkBuilder builder(random, 3);
  NetworkLayer          layer;
  layer.padLower = { { 5, 0, 2 } };
  layer.padUpper = { { 1, 3, 2 } };
  const Network network = builder.Finish(builder.AddKind(LayerKind::Crop, { 0 }, layer));
  EXPECT_EQ(network.graph->GetLowerMargin(), (LayerExtent{ { 5, 0, 2 } }));
  const auto operation = std::make_shared<NetworkOperation>();
  operation->graph = network.graph;
  Trial<float, float> t(random, operation, { { 17, 9, 6, 2, 1 } });
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  ForEachIndex(t.request.region,
               [&](const Coordinates & index) { ASSERT_EQ(t.Result(index), At<float>(t.image, index)); });
}

/** A window of four voxels lies one and a half beyond its first one, and a voxel that stands for four as much before.
 */
TEST(NetworkGraph, CoarserGridsLieBetweenTheVoxels)
{
  for (const LayerKind way :
       { LayerKind::NearestUpsampling, LayerKind::LinearUpsampling, LayerKind::TransposedConvolution })
  {
    std::mt19937          random(181);
    trial::NetworkBuilder builder(random, 3);
    int                   at = builder.Convolve(0, 1, builder.Same(3));
    NetworkLayer          four;
    four.channels = 1;
    four.kernel = four.stride = builder.Same(4);
    four.weights = builder.Values(64);
    at = builder.AddKind(LayerKind::AveragePooling, { at }, four);
    at = builder.Convolve(at, 1, builder.Same(3));
    at = builder.AddKind(way, { at }, four);
    const Network network = builder.Finish(at);
    // The image is a multiple of four, of which the pooling leaves two voxels at the upper end.
    EXPECT_EQ(network.graph->GetMargin(), (LayerExtent{ { 12, 12, 12 } }));
    EXPECT_EQ(network.graph->GetLowerMargin(), (LayerExtent{ { 5, 5, 5 } }));
  }
}

/** A small file can ask for more memory than 64 bits count. */
TEST(NetworkOperation, SizesThatNoMachineHasAreRefused)
{
  std::mt19937          random(180);
  trial::NetworkBuilder builder(random, 3);
  NetworkLayer          layer;
  layer.dilation = builder.Same(1 << 20);
  int at = 0;
  for (int i = 0; i < 4; ++i)
  {
    at = builder.Convolve(at, 1, builder.Same(3), layer);
  }
  const auto operation = std::make_shared<NetworkOperation>();
  operation->graph = builder.Finish(at).graph;
  Trial<float, float> t(random, operation, { { 5, 4, 3, 1, 1 } });
  t.Prepare(t.request.image);
  Manager manager({});
  t.request.backend = BackendChoice::CPU;
#ifndef __SANITIZE_ADDRESS__ // AddressSanitizer ends the process where operator new lacks memory.
  EXPECT_ANY_THROW(manager.Execute(t.request));
#endif
  t.request.budgets.host = std::size_t{ 1 } << 30;
  EXPECT_THROW(manager.Execute(t.request), BudgetError);
}

TEST(NetworkGraph, IsSimplified)
{
  std::mt19937          random(176);
  trial::NetworkBuilder builder(random, 3);
  int                   at = builder.Convolve(0, 4, builder.Same(3));
  NetworkLayer          scaling;
  scaling.weights = builder.Values(4);
  scaling.bias = builder.Values(4);
  at = builder.AddKind(LayerKind::Scaling, { at }, scaling);
  at = builder.Pointwise(at, ActivationKind::Relu);
  // Nobody needs it.
  builder.Convolve(at, 7, builder.Same(5));
  const Network network = builder.Finish(at);
  ASSERT_EQ(network.graph->GetLayers().size(), 2u);
  EXPECT_EQ(network.graph->GetLayers()[1].activation.kind, ActivationKind::Relu);
  EXPECT_EQ(network.graph->GetOutput(), 1);
  EXPECT_EQ(network.graph->GetFieldOfView(), (LayerExtent{ { 3, 3, 3 } }));
}

std::string
MessageOf(const std::function<void()> & f)
{
  try
  {
    f();
  }
  catch (const ParameterError & error)
  {
    return error.what();
  }
  return "";
}

TEST(NetworkGraph, BadLayersAreNamed)
{
  std::mt19937 random(177);
  const auto   refuse = [&](const char * part, const std::function<void(trial::NetworkBuilder &)> & build) {
    trial::NetworkBuilder builder(random, 3, 2);
    const std::string     message = MessageOf([&] { build(builder); });
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  };
  NetworkLayer layer;
  layer.name = "conv7";
  refuse("conv7: a kernel, stride or dilation of 0", [&](auto & b) {
    layer.stride = { { 1, 0, 1 } };
    b.Convolve(0, 1, b.Same(3), layer);
  });
  refuse("3 groups do not divide 2 and 3", [&](auto & b) {
    NetworkLayer three;
    three.groups = 3;
    b.Convolve(0, 3, b.Same(1), three);
  });
  refuse("not finite", [&](auto & b) {
    NetworkLayer bad;
    bad.kind = LayerKind::Scaling;
    bad.inputs = { 0 };
    bad.weights = std::make_shared<std::vector<float>>(2, std::numeric_limits<float>::infinity());
    b.Add(bad);
  });
  refuse("5 numbers where 2", [&](auto & b) {
    NetworkLayer bad;
    bad.weights = b.Values(5);
    b.AddKind(LayerKind::Scaling, { 0 }, bad);
  });
  refuse("input 3 is not an earlier layer", [](auto & b) { b.AddKind(LayerKind::Softmax, { 3 }); });
  refuse("have 2 and 1 channels", [](auto & b) {
    NetworkLayer slice;
    slice.channels = 1;
    const int one = b.AddKind(LayerKind::ChannelSlice, { 0 }, slice);
    b.AddKind(LayerKind::Sum, { 0, one });
  });
  refuse("coarser than the image, and it enlarges", [](auto & b) {
    NetworkLayer pool;
    pool.kernel = pool.stride = b.Same(4);
    NetworkLayer up;
    up.stride = b.Same(2);
    b.Finish(b.AddKind(LayerKind::NearestUpsampling, { b.AddKind(LayerKind::MaximumPooling, { 0 }, pool) }, up));
  });
  refuse("train it without padding", [](auto & b) {
    NetworkLayer pool;
    pool.kernel = pool.stride = b.Same(2);
    NetworkLayer padded;
    padded.padLower = padded.padUpper = b.Same(1);
    b.Finish(b.Convolve(b.AddKind(LayerKind::MaximumPooling, { 0 }, pool), 1, b.Same(3), padded));
  });
  refuse("networks that enlarge images", [](auto & b) {
    NetworkLayer up;
    up.stride = b.Same(2);
    b.Finish(b.AddKind(LayerKind::NearestUpsampling, { 0 }, up));
  });
  refuse("different spacing", [](auto & b) {
    NetworkLayer pool;
    pool.kernel = pool.stride = b.Same(2);
    b.Finish(b.AddKind(LayerKind::Sum, { 0, b.AddKind(LayerKind::MaximumPooling, { 0 }, pool) }));
  });
  refuse("all branches have the same extent", [](auto & b) {
    NetworkLayer pool;
    pool.kernel = b.Same(2);
    b.Finish(b.AddKind(LayerKind::Sum, { 0, b.AddKind(LayerKind::MaximumPooling, { 0 }, pool) }));
  });
  refuse("windows without a voxel", [](auto & b) {
    NetworkLayer mean;
    mean.kernel = b.Same(2);
    mean.padUpper = b.Same(2);
    b.AddKind(LayerKind::AveragePooling, { 0 }, mean);
  });
  refuse("more than the image", [](auto & b) {
    NetworkLayer padded;
    padded.padLower = padded.padUpper = b.Same(3);
    b.Finish(b.Convolve(0, 1, b.Same(3), padded));
  });
}

TEST(NetworkOperation, BadParametersAreNamed)
{
  std::mt19937 random(178);
  const auto   operation = MakeOperation(random, trial::RandomUNet(random, 3, 1));
  const auto   message = [&] { return ValidationMessage(*operation, { { 30, 20, 10, 1, 1 } }); };
  EXPECT_EQ(message(), "");
  operation->channel = 17;
  EXPECT_NE(message().find("Channel: 17"), std::string::npos);
  operation->channel = 0;
  operation->boundary.mode = BoundaryMode::Periodic;
  EXPECT_NE(message().find("BoundaryCondition"), std::string::npos);
  operation->boundary.mode = BoundaryMode::Mirror;
  operation->scale = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(message().find("InputScale"), std::string::npos);
  operation->graph = nullptr;
  EXPECT_NE(message().find("Model"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Cpu, NetworkTest, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, NetworkTest, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, NetworkTest, testing::Values(Place::Cuda));

} // namespace
