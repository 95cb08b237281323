/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFilters.h"
#include "chunkwiseHostSteps.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseMemoryImage.h"
#include "chunkwiseOutOfCoreRunner.h"
#include "chunkwiseStreamedRun.h"
#include "chunkwiseWatershedOracle.h"

#include <cstdlib>
#include <functional>
#include <set>

using namespace chunkwise;

namespace
{

class Watersheds : public WatershedPlaces
{
protected:
  template <typename TIn, typename TMarker, typename TOut>
  void
  TryAnyWatershed(std::mt19937 & random, int trials, int extent);
};

/** An image that is written in units of so many planes, and counts its writes. */
class PlanesImage : public MemoryImage
{
public:
  PlanesImage(const BufferView & view, std::int64_t planes)
    : MemoryImage(view)
  {
    m_Access.unit = Coordinates::Filled(planes);
  }
  ImageAccess
  GetAccess() const override
  {
    return m_Access;
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    ++writes;
    MemoryImage::Write(box, view);
  }
  int writes{ 0 };

private:
  ImageAccess m_Access;
};

/** An image, markers and a mask in memory, and a run. */
template <typename TIn, typename TMarker, typename TOut>
struct WatershedTrial
{
  WatershedTrial(std::shared_ptr<const WatershedOperation> theOperation, std::vector<TIn> theVoxels,
                 std::vector<TMarker> theMarkers = {}, std::vector<std::uint8_t> theMask = {})
    : operation(std::move(theOperation))
    , voxels(std::move(theVoxels))
    , markers(std::move(theMarkers))
    , mask(std::move(theMask))
    , output(voxels.size(), static_cast<TOut>(77))
  {
    request.operation = operation;
    request.image = request.region = Box::FromExtent(operation->image);
    request.inputs = { DenseView(voxels.data(), PixelTypeOf<TIn>(), request.image) };
    if (operation->hasMarkers)
    {
      request.inputs.push_back(DenseView(markers.data(), PixelTypeOf<TMarker>(), request.image));
    }
    if (operation->hasMask)
    {
      request.inputs.push_back(DenseView(mask.data(), PixelType::UInt8, request.image));
    }
    request.output = DenseView(output.data(), PixelTypeOf<TOut>(), request.image);
    request.stagingThreads = 1;
    request.backend = BackendChoice::CPU;
  }
  std::vector<TOut>
  GetExpected() const
  {
    const WatershedOracle<TIn> oracle(*operation,
                                      operation->image,
                                      voxels,
                                      std::vector<std::uint64_t>(markers.begin(), markers.end()),
                                      operation->hasMask ? mask : std::vector<std::uint8_t>());
    std::vector<TOut>          expected(voxels.size());
    std::transform(oracle.GetLabels().begin(), oracle.GetLabels().end(), expected.begin(), [](std::uint64_t label) {
      return static_cast<TOut>(label);
    });
    return expected;
  }
  void
  ExpectDefinition(const std::string & where) const
  {
    const std::vector<TOut> expected = this->GetExpected();
    const auto              different = std::mismatch(output.begin(), output.end(), expected.begin());
    ASSERT_TRUE(different.first == output.end())
      << where << ": " << operation->GetKey() << ": voxel " << different.first - output.begin() << " has "
      << +*different.first << " and not " << +*different.second;
  }

  /** The same from sources to a sink, with `extra` bytes more than the least, and a budget of devices. Returns the
   * number of writes. */
  int
  RunOutOfCore(Manager & manager, std::uint64_t extra, std::int64_t planes = 1, std::size_t deviceBytes = 0)
  {
    const OutOfCoreRunner & runner = *operation->GetOutOfCoreRunner();
    OutOfCoreRequest        outOfCore;
    outOfCore.operation = operation;
    for (const BufferView & input : request.inputs)
    {
      outOfCore.sources.push_back(std::make_shared<MemoryImage>(input));
    }
    const auto sink = std::make_shared<PlanesImage>(request.output, planes);
    outOfCore.sink = sink;
    outOfCore.spoolFolder = testing::TempDir();
    outOfCore.backend = request.backend;
    outOfCore.executor = request.executor;
    outOfCore.budgets.device = deviceBytes;
    outOfCore.hostBytes = 1;
    outOfCore.hostBytes = runner.GetLeastHostBytes(manager, outOfCore) + extra;
    std::fill(output.begin(), output.end(), static_cast<TOut>(77));
    report = runner.Run(manager, outOfCore, nullptr);
    return sink->writes;
  }

  std::shared_ptr<const WatershedOperation> operation;
  std::vector<TIn>                          voxels;
  std::vector<TMarker>                      markers;
  std::vector<std::uint8_t>                 mask;
  std::vector<TOut>                         output;
  ExecutionRequest                          request;
  OutOfCoreReport                           report;
};

template <typename TMarker>
std::vector<TMarker>
RandomMarkers(std::mt19937 & random, std::size_t count)
{
  std::vector<TMarker> markers(count);
  const std::uint32_t  outOf = std::uint32_t{ 1 } << random() % 9;
  for (TMarker & marker : markers)
  {
    marker = random() % outOf == 0 ? static_cast<TMarker>(random() % 100) : TMarker{ 0 };
  }
  return markers;
}

/** Random operations on random images, whole and in chunks, by several numbers of threads. */
template <typename TIn, typename TMarker, typename TOut>
void
Watersheds::TryAnyWatershed(std::mt19937 & random, int trials, int extent)
{
  trials /= (IsOnDevice() ? 2 : 1) * (std::getenv("CHUNKWISE_TEST_FEW") ? 10 : 1);
  Manager & manager = GetManager();
  int       chunked = 0;
  int       inBlocks = 0;
  for (int trial = 0; trial < trials; ++trial)
  {
    Coordinates size = RandomExtent(random, extent);
    auto        operation = std::make_shared<WatershedOperation>();
    operation->image = size;
    operation->inputKind = PixelTypeOf<TIn>();
    operation->outputKind = PixelTypeOf<TOut>();
    operation->axes = RandomAxes(random);
    std::sort(operation->axes.begin(), operation->axes.end());
    operation->connectivity = 1 + static_cast<int>(random() % 3);
    operation->hasMarkers = random() % 2;
    operation->hasMask = random() % 3 == 0;
    operation->lines = random() % 4 == 0;
    operation->height = operation->hasMarkers || random() % 2 ? PixelValue(0)
                        : std::is_integral<TIn>::value        ? PixelValue(random() % 20)
                                                              : PixelValue(random() % 20 * 0.25);
    const auto                count = static_cast<std::size_t>(Box::FromExtent(size).NumberOfVoxels());
    std::vector<std::uint8_t> mask(count);
    std::generate(mask.begin(), mask.end(), [&] { return random() % 5 == 0 ? 0 : 1 + random() % 2; });
    WatershedTrial<TIn, TMarker, TOut> t(
      operation, RandomTerrain<TIn>(random, count), RandomMarkers<TMarker>(random, count), mask);
    const auto executor = MakeThreadExecutor(1 + random() % 3);
    t.request.executor = executor.get();
    for (const bool inChunks : { false, true })
    {
      const std::size_t budget = inChunks ? 3000 + count * (2 + random() % 40) : 0;
      SetBudget(t.request, budget);
      std::fill(t.output.begin(), t.output.end(), static_cast<TOut>(77));
      try
      {
        const ExecutionReport report = manager.Execute(t.request);
        chunked += report.plan.chunks.size() > 1 ? 1 : 0;
      }
      catch (const BudgetError &)
      {
        continue; // the smallest chunk is larger
      }
      ASSERT_NO_FATAL_FAILURE(
        t.ExpectDefinition("trial " + std::to_string(trial) + " budget " + std::to_string(budget)));
    }
    SetBudget(t.request, 0);
    const std::uint64_t extra = random() % 2 ? 0 : random() % (40 * count);
    const std::int64_t  planes = 1 + random() % 2;
    inBlocks += t.RunOutOfCore(manager, extra, planes) > 1 ? 1 : 0;
    ASSERT_NO_FATAL_FAILURE(t.ExpectDefinition("trial " + std::to_string(trial) + " out of core, " +
                                               std::to_string(extra) + " extra bytes, units of " +
                                               std::to_string(planes)));
  }
  // The memory of devices is given out in larger units: larger images, below, are cut there.
  EXPECT_TRUE(chunked > trials / 10 || IsOnDevice());
  EXPECT_GT(inBlocks, trials / 8);
}

TEST_P(Watersheds, AreThoseOfTheDefinition)
{
  std::mt19937 random(1);
  TryAnyWatershed<std::uint8_t, std::uint8_t, std::uint32_t>(random, 200, 11);
  TryAnyWatershed<float, std::int32_t, std::uint16_t>(random, 100, 11);
  TryAnyWatershed<std::int64_t, std::uint64_t, std::int64_t>(random, 60, 11);
  TryAnyWatershed<double, std::int8_t, float>(random, 60, 11);
  TryAnyWatershed<std::uint64_t, std::uint16_t, std::int32_t>(random, 40, 11);
  TryAnyWatershed<std::int8_t, std::int16_t, std::uint64_t>(random, 40, 11);
}

/** Hills of many voxels: chunks are joined over long ways. */
TEST_P(Watersheds, OfLargerImagesAreThoseOfTheDefinition)
{
  Manager &         manager = GetManager();
  std::mt19937      random(2);
  const Coordinates extent{ { 40, 20, 20, 1, 1 } };
  const auto        count = static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels());
  for (int trial = 0; trial < 8; ++trial)
  {
    auto operation = std::make_shared<WatershedOperation>();
    operation->image = extent;
    operation->connectivity = 1 + trial % 3;
    operation->hasMarkers = trial % 2 == 0;
    operation->height = operation->hasMarkers ? 0 : trial;
    operation->lines = trial > 5;
    std::vector<std::uint8_t>  voxels;
    std::vector<std::uint16_t> markers(count);
    ForEachIndex(Box::FromExtent(extent), [&](const Coordinates & at) {
      const double height = std::sin(0.4 * static_cast<double>(at[0])) + std::sin(0.5 * static_cast<double>(at[1])) +
                            std::sin(0.3 * static_cast<double>(at[2]));
      voxels.push_back(static_cast<std::uint8_t>(20 * height + 100 + random() % 4));
    });
    for (int i = 0; i < 20; ++i)
    {
      markers[random() % count] = static_cast<std::uint16_t>(1 + i);
    }
    WatershedTrial<std::uint8_t, std::uint16_t, std::uint32_t> t(operation, voxels, markers);
    const std::vector<std::uint32_t>                           expected = t.GetExpected();
    for (const std::size_t budget : { std::size_t{ 0 }, 8 * count, 3 * count })
    {
      SetBudget(t.request, budget);
      try
      {
        EXPECT_TRUE(manager.Execute(t.request).plan.chunks.size() > 1 || budget == 0);
      }
      catch (const BudgetError & error)
      {
        EXPECT_TRUE(IsOnDevice() && budget == 3 * count) << error.what();
        continue;
      }
      ASSERT_TRUE(t.output == expected) << operation->GetKey() << ", budget " << budget;
    }
    SetBudget(t.request, 0);
    std::set<int> numbersOfBlocks;
    for (std::uint64_t extra = 0; extra < 36 * count; extra += 4 * count)
    {
      numbersOfBlocks.insert(t.RunOutOfCore(manager, extra));
      ASSERT_TRUE(t.output == expected) << operation->GetKey() << ", " << *numbersOfBlocks.rbegin() << " blocks";
    }
    EXPECT_GT(numbersOfBlocks.size(), IsOnDevice() ? 2u : 4u); // scratch takes none of the host's memory there
    EXPECT_GT(*numbersOfBlocks.rbegin(), 9);
  }
}

/** A device holds blocks as thick as fit it, while the host holds thin parts of them. */
TEST_P(Watersheds, InBlocksThatADeviceHoldsAreThoseOfTheDefinition)
{
  Manager &         manager = GetManager();
  std::mt19937      random(7);
  const Coordinates extent{ { 32, 24, 64, 1, 1 } };
  const auto        count = static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels());
  int               held = 0;
  int               joined = 0;
  const auto        tryBlocks = [&](int trial, auto label) {
    using Label = decltype(label);
    auto operation = std::make_shared<WatershedOperation>();
    operation->image = extent;
    operation->outputKind = PixelTypeOf<Label>();
    operation->connectivity = 1 + trial % 3;
    operation->hasMarkers = trial % 2 == 0;
    operation->hasMask = trial == 2;
    operation->height = operation->hasMarkers ? 0 : trial;
    operation->lines = trial > 2;
    std::vector<std::uint8_t> mask(count);
    std::generate(mask.begin(), mask.end(), [&] { return random() % 5 == 0 ? 0 : 1; });
    WatershedTrial<std::uint8_t, std::uint8_t, Label> t(
      operation, RandomTerrain<std::uint8_t>(random, count), RandomMarkers<std::uint8_t>(random, count), mask);
    t.request.backend = BackendChoice::CUDA;
    const std::vector<Label> expected = t.GetExpected();
    for (const std::size_t kilobytes : { 300, 500, 700, 2000 })
    {
      t.RunOutOfCore(manager, 120 * 32 * 24, 1, kilobytes << 10);
      ASSERT_TRUE(t.output == expected) << operation->GetKey() << ", " << kilobytes;
      // Blocks between others have two faces; that they have no room must not come out after the first ones.
      EXPECT_TRUE(t.report.execution.warnings.empty()) << t.report.execution.warnings.front();
      // The host leaves the trees of the planes where blocks meet in the spool.
      held += t.report.steps.front().first == "blocks on the device" && t.report.spoolWritten > 0 ? 1 : 0;
      joined += t.report.steps.back().first == "joining blocks on the device" ? 1 : 0;
    }
  };
  for (int trial = 0; trial < 5 && IsOnDevice(); ++trial)
  {
    tryBlocks(trial, std::uint32_t{});
  }
  if (IsOnDevice())
  {
    EXPECT_GT(joined, 4);
    tryBlocks(6, std::uint64_t{});
    EXPECT_GT(held, 4);
  }
}

/** The process with CUDA takes the rest of a limit of 1 GiB. */
TEST(WatershedBlocksOnDevice, Of16GiBNeed400MiBOfTheHost)
{
  const Coordinates extent{ { 2048, 2048, 4096, 1, 1 } };
  auto              operation = std::make_shared<WatershedOperation>();
  operation->image = extent;
  operation->hasMarkers = true;
  KernelRegistry kernels;
  kernels.Register("watershed", MakeWatershedStepKernels<HostStepRunner>(nullptr));
  kernels.Register("watershed join", MakeWatershedJoinKernels<HostStepRunner>());
  KernelSet identity;
  identity.compute = *GetHostKernels().Find("identity");
  kernels.Register("identity", identity);
  FakeDevice::Options options;
  options.memory = std::size_t{ 139 } << 30;
  Manager          manager({ std::make_shared<FakeDevice>(options, kernels) });
  const Box        box = Box::FromExtent(extent);
  OutOfCoreRequest request;
  request.operation = operation;
  request.sources.assign(2, std::make_shared<MemoryImage>(DenseView(nullptr, PixelType::UInt8, box)));
  request.sink = std::make_shared<MemoryImage>(DenseView(nullptr, PixelType::UInt32, box));
  request.hostBytes = 1;
  EXPECT_LT(operation->GetOutOfCoreRunner()->GetLeastHostBytes(manager, request), std::uint64_t{ 400 } << 20);
  operation->hasMask = true; // planes of three inputs
  request.sources.push_back(request.sources.front());
  EXPECT_LT(operation->GetOutOfCoreRunner()->GetLeastHostBytes(manager, request), std::uint64_t{ 400 } << 20);
}

/** Plateaus, noise, long ways down, long chains of basins: a device gives what the CPU gives. */
TEST_P(Watersheds, OfHardImagesAreThoseOfTheCpu)
{
  const std::int64_t n = GetParam() == Place::Cuda ? 150 : 24;
  std::mt19937       random(3);
  const std::pair<Coordinates, std::function<std::uint32_t(std::int64_t, std::int64_t, std::int64_t)>> images[] = {
    { { { n, n, n, 1, 1 } }, [](std::int64_t, std::int64_t, std::int64_t) { return 7u; } },
    { { { n, n, n, 1, 1 } }, [&](std::int64_t, std::int64_t, std::int64_t) { return random() % 256; } },
    { { { n, n, n, 1, 1 } }, [&](std::int64_t, std::int64_t, std::int64_t) { return random() % 2; } },
    { { { n, n, n, 1, 1 } }, [](std::int64_t x, std::int64_t y, std::int64_t z) { return (x + y + z) / 3; } },
    // A valley that goes to and fro, and down.
    { { { n * n, n, 1, 1, 1 } },
      [n](std::int64_t x, std::int64_t y, std::int64_t) {
        const std::int64_t                                                                             turn = y / 2 % 2 == 0 ? n * n - 1 : 0;
        const std::int64_t                                                                             along = y % 2 == 0 ? std::abs(turn - x) : x == turn ? -1 : n * n * n;
        return along + (n - y / 2) * (n * n + 1);
      } },
    // Saddles that become lower from basin to basin.
    { { { n * n * n, 1, 1, 1, 1 } },
      [n](std::int64_t x, std::int64_t, std::int64_t) { return x % 2 == 0 ? 0 : 2 * n * n * n - x; } },
  };
  for (const auto & [extent, value] : images)
  {
    std::vector<std::uint32_t> voxels;
    ForEachIndex(Box::FromExtent(extent),
                 [&, &valueOf = value](const Coordinates & at) { voxels.push_back(valueOf(at[0], at[1], at[2])); });
    for (const int trial : { 0, 1, 2 })
    {
      std::vector<std::uint16_t> markers(voxels.size());
      for (std::size_t marker = 1; marker < (trial == 0 ? 2 : 20); ++marker)
      {
        markers[random() % markers.size()] = static_cast<std::uint16_t>(marker);
      }
      auto operation = std::make_shared<WatershedOperation>();
      operation->image = extent;
      operation->inputKind = PixelType::UInt32;
      operation->hasMarkers = trial < 2;
      operation->connectivity = trial == 1 ? 3 : 1;
      WatershedTrial<std::uint32_t, std::uint16_t, std::uint32_t> t(operation, voxels, markers);
      this->SetBudget(t.request, 0);
      this->GetManager().Execute(t.request);
      const std::vector<std::uint32_t> labels = t.output;
      t.request.backend = BackendChoice::CPU;
      this->GetManager().Execute(t.request);
      ASSERT_TRUE(labels == t.output) << operation->GetKey() << ", trial " << trial;
      EXPECT_GT(*std::max_element(labels.begin(), labels.end()), 0u);
    }
  }
}

TEST(WatershedRows, HaveTheMemoryThatTheirPlansSayIsEnough)
{
  Manager           manager({});
  const Coordinates extent{ { 64, 64, 25, 1, 1 } };
  auto              operation = std::make_shared<WatershedOperation>();
  operation->image = extent;
  std::vector<std::uint8_t> voxels(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  std::mt19937              random(5);
  std::generate(voxels.begin(), voxels.end(), [&random] { return static_cast<std::uint8_t>(random() % 9); });
  WatershedTrial<std::uint8_t, std::uint16_t, std::uint32_t> t(operation, voxels);
  std::set<std::size_t>                                      numbersOfChunks;
  // Chunks in the middle have two faces, those at the ends have one. Halves of them, or an image cut into chunks as
  // small as the last one, would need more memory to be joined.
  for (std::size_t budget = 5 * voxels.size() / 2; budget < 14 * voxels.size(); budget += 30000)
  {
    t.request.budgets.host = budget;
    std::size_t chunks = 0;
    try
    {
      chunks = manager.MakePlanFor(t.request).chunks.size();
    }
    catch (const BudgetError &)
    {
      continue;
    }
    numbersOfChunks.insert(chunks);
    // Each chunk is read twice, a chunk alone once.
    ASSERT_NO_THROW(
      EXPECT_EQ(static_cast<std::size_t>(manager.Execute(t.request).chunksOnHost), chunks * (chunks > 1 ? 2 : 1)))
      << budget;
  }
  EXPECT_GT(*numbersOfChunks.rbegin(), 2u);
}

/** Blocks of such an image take more than all of it in memory. */
TEST(WatershedRows, OfFewPlanesSayHowLittleIsEnough)
{
  Manager manager({});
  auto    operation = std::make_shared<WatershedOperation>();
  operation->image = { { 60, 50, 2, 1, 1 } };
  std::mt19937                                               random(6);
  WatershedTrial<std::uint8_t, std::uint16_t, std::uint32_t> t(operation, RandomTerrain<std::uint8_t>(random, 6000));
  StreamedRequest                                            request;
  request.operation = operation;
  request.inputs = { { std::make_shared<MemoryImage>(t.request.inputs.front()), PixelType::UInt8 } };
  request.region = t.request.image;
  request.computedKind = request.writtenKind = PixelType::UInt32;
  request.backend = BackendChoice::CPU;
  request.spoolFolder = testing::TempDir();
  request.memory = 1000;
  try
  {
    MakeStreamedPlan(manager, request);
    FAIL();
  }
  catch (const DivisionsError & error)
  {
    // Images and labels, and twice what the forest of the image takes.
    EXPECT_LT(error.needed, std::size_t{ 6000 * (1 + 4 + 2 * 21) } + (1 << 18));
    request.memory = error.needed;
  }
  ExecuteStreamed(
    manager, request, MakeStreamedPlan(manager, request), std::make_shared<MemoryImage>(t.request.output));
  t.ExpectDefinition("file to file");
}

TEST_P(Watersheds, WithLabelsThatTheOutputCannotHoldAreRefused)
{
  Manager &  manager = GetManager();
  const auto expectError = [&](bool hasMarkers, std::int16_t label, const std::string & words) {
    auto operation = std::make_shared<WatershedOperation>();
    operation->image = { { 40, 40, 1, 1, 1 } };
    operation->outputKind = PixelType::UInt8;
    operation->hasMarkers = hasMarkers;
    std::vector<std::uint8_t> voxels;
    ForEachIndex(Box::FromExtent(operation->image),
                 [&](const Coordinates & at) { voxels.push_back((at[0] + at[1]) % 2 == 0 ? 0 : 1); });
    WatershedTrial<std::uint8_t, std::int16_t, std::uint8_t> t(
      operation, voxels, std::vector<std::int16_t>(voxels.size(), label));
    for (const std::size_t budget : { 0, 20000 })
    {
      SetBudget(t.request, budget);
      try
      {
        manager.Execute(t.request);
        ADD_FAILURE() << words;
      }
      catch (const BudgetError & error)
      {
        EXPECT_TRUE(IsOnDevice() && budget > 0) << error.what();
      }
      catch (const Error & error)
      {
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("uint8"), std::string::npos) << error.what();
      }
    }
  };
  expectError(true, -3, "the label -3");
  expectError(true, 300, "the label 300");
  expectError(false, 0, "800 minima");
}

INSTANTIATE_TEST_SUITE_P(Cpu, Watersheds, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Steps, Watersheds, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Watersheds, testing::Values(Place::Cuda));

TEST(WatershedRows, RefuseKindsAndHeights)
{
  WatershedOperation operation;
  operation.hasMarkers = operation.hasMask = true;
  EXPECT_NO_THROW(operation.CheckKinds({ PixelType::UInt8, PixelType::Int64, PixelType::UInt8 }, PixelType::UInt32));
  EXPECT_THROW(operation.CheckKinds({ PixelType::UInt8, PixelType::Float32, PixelType::UInt8 }, PixelType::UInt32),
               ParameterError);
  EXPECT_THROW(operation.CheckKinds({ PixelType::UInt8, PixelType::Int64, PixelType::Float64 }, PixelType::UInt32),
               ParameterError);
  EXPECT_THROW(operation.CheckKinds({ PixelType::UInt8, PixelType::Int64 }, PixelType::UInt32), ParameterError);
  FilterImage image;
  image.extent = { { 5, 4, 3, 1, 1 } };
  image.outputKind = PixelType::UInt32;
  image.additionalInputs = { "MarkerImage" };
  FilterParameters parameters;
  parameters.Set("Height", PixelValue(3));
  try
  {
    MakeFilterOperation("watershed", parameters, image);
    ADD_FAILURE() << "a height of markers";
  }
  catch (const ParameterError & error)
  {
    EXPECT_EQ(error.parameter, "Height") << error.what();
  }
}

} // namespace
