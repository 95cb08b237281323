/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFilters.h"
#include "chunkwiseHostSteps.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseMemoryImage.h"
#include "chunkwiseOutOfCoreRunner.h"
#include "chunkwiseSizedWatershed.h"
#include "chunkwiseWatershedOracle.h"

#include <cmath>
#include <cstdlib>

using namespace chunkwise;

namespace
{

class SizedWatersheds : public WatershedPlaces
{
protected:
  template <typename T>
  void
  TryAnySizedWatershed(std::mt19937 & random, int trials);
};

class SizedWatershedsOfHosts : public testing::Test
{};

/** The labels by the definition: components of all levels, then Kruskal's algorithm. */
template <typename T>
std::vector<std::uint64_t>
LabelsByDefinition(const SizedWatershedOperation & operation, const std::vector<T> & voxels,
                   const std::vector<std::uint8_t> & mask)
{
  WatershedOperation watershed = operation.watershed;
  watershed.hasMarkers = true;
  const WatershedOracle<T> graph(watershed, watershed.image, voxels, std::vector<std::uint64_t>(voxels.size()), mask);
  const auto &             neighbors = graph.GetNeighbors();
  const auto isInside = [&](std::size_t i) { return voxels[i] == voxels[i] && (mask.empty() || mask[i] != 0); };
  const auto unitsOf = [&](T value) -> long double {
    if constexpr (std::is_integral<T>::value)
    {
      return static_cast<long double>(value);
    }
    constexpr long double most = 4611686018427387904.0L;
    return std::min(most, std::max(-most, std::floor(static_cast<long double>(value) / operation.unit)));
  };
  std::vector<T> levels;
  for (std::size_t i = 0; i < voxels.size(); ++i)
  {
    isInside(i) ? levels.push_back(voxels[i]) : void();
  }
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  std::vector<std::uint64_t> markers(voxels.size());
  std::uint64_t              count = 0;
  for (const T level : levels)
  {
    std::vector<bool> isSeen(voxels.size());
    for (std::size_t first = 0; first < voxels.size(); ++first)
    {
      if (isSeen[first] || !isInside(first) || voxels[first] > level)
      {
        continue;
      }
      std::vector<std::size_t> component{ first };
      std::vector<T>           beyond;
      isSeen[first] = true;
      bool isMarked = false;
      for (std::size_t i = 0; i < component.size(); ++i)
      {
        isMarked = isMarked || markers[component[i]] != 0;
        for (const std::size_t beside : neighbors[component[i]])
        {
          if (voxels[beside] > level)
          {
            beyond.push_back(voxels[beside]);
          }
          else if (!isSeen[beside])
          {
            isSeen[beside] = true;
            component.push_back(beside);
          }
        }
      }
      long double size = std::numeric_limits<long double>::infinity();
      if (!beyond.empty())
      {
        const T next = *std::min_element(beyond.begin(), beyond.end());
        size = operation.byVolume ? 0.0L : static_cast<long double>(component.size());
        for (const std::size_t i : component)
        {
          size += operation.byVolume ? unitsOf(next) - unitsOf(voxels[i]) : 0.0L;
        }
      }
      if (!isMarked && size >= static_cast<long double>(operation.size))
      {
        ++count;
        for (const std::size_t i : component)
        {
          markers[i] = count;
        }
      }
    }
  }
  // Numbers in the raster order of first voxels.
  std::vector<std::uint64_t> numbers(count + 1);
  std::uint64_t              next = 0;
  for (std::uint64_t & marker : markers)
  {
    numbers[marker] = marker != 0 && numbers[marker] == 0 ? ++next : numbers[marker];
    marker = numbers[marker];
  }
  return WatershedOracle<T>(watershed, watershed.image, voxels, markers, mask).GetLabels();
}

template <typename T>
struct SizedTrial
{
  SizedTrial(std::shared_ptr<SizedWatershedOperation> theOperation, std::vector<T> theVoxels,
             std::vector<std::uint8_t> theMask = {})
    : operation(std::move(theOperation))
    , voxels(std::move(theVoxels))
    , mask(std::move(theMask))
    , output(voxels.size())
  {
    operation->watershed.inputKind = PixelTypeOf<T>();
    operation->watershed.outputKind = PixelType::UInt32;
    operation->watershed.hasMask = !mask.empty();
    request.operation = operation;
    request.image = request.region = Box::FromExtent(operation->watershed.image);
    request.inputs = { DenseView(voxels.data(), PixelTypeOf<T>(), request.image) };
    if (!mask.empty())
    {
      request.inputs.push_back(DenseView(mask.data(), PixelType::UInt8, request.image));
    }
    request.output = DenseView(output.data(), PixelType::UInt32, request.image);
    request.backend = BackendChoice::CPU;
  }
  /** Runs with as much memory as errors say is enough. */
  template <typename TRun>
  void
  RunWith(std::uint64_t bytes, TRun && run)
  {
    std::fill(output.begin(), output.end(), 77U);
    for (bool isRun = false; !isRun;)
    {
      try
      {
        run(bytes);
        isRun = true;
      }
      catch (const BudgetError & error)
      {
        ++refused;
        ASSERT_GT(error.needed, bytes);
        bytes = error.needed;
      }
    }
  }
  void
  Run(Manager & manager, std::uint64_t bytes)
  {
    this->RunWith(bytes, [&](std::uint64_t budget) {
      request.budgets.host = budget;
      report = manager.Execute(request);
    });
  }
  /** From sources to a sink, with `extra` bytes more than the least. Returns the bytes of the spool. */
  std::uint64_t
  RunOutOfCore(Manager & manager, std::uint64_t extra)
  {
    const OutOfCoreRunner & runner = *operation->GetOutOfCoreRunner();
    OutOfCoreRequest        outOfCore;
    outOfCore.operation = operation;
    for (const BufferView & input : request.inputs)
    {
      outOfCore.sources.push_back(std::make_shared<MemoryImage>(input));
    }
    outOfCore.sink = std::make_shared<MemoryImage>(request.output);
    outOfCore.spoolFolder = testing::TempDir();
    outOfCore.backend = request.backend;
    outOfCore.executor = request.executor;
    outOfCore.hostBytes = 1;
    std::uint64_t spooled = 0;
    this->RunWith(runner.GetLeastHostBytes(manager, outOfCore) + extra, [&](std::uint64_t budget) {
      outOfCore.hostBytes = budget;
      spooled = runner.Run(manager, outOfCore, nullptr).spoolWritten;
    });
    return spooled;
  }
  void
  Expect(const std::vector<std::uint64_t> & expected, const std::string & where) const
  {
    const auto different = std::mismatch(output.begin(), output.end(), expected.begin());
    ASSERT_TRUE(different.first == output.end())
      << where << ": " << operation->GetKey() << " tiles " << operation->tileVoxels << " blocks "
      << operation->blockVoxels << ": voxel " << different.first - output.begin() << " has " << *different.first
      << " and not " << *different.second;
  }

  std::shared_ptr<SizedWatershedOperation> operation;
  std::vector<T>                           voxels;
  std::vector<std::uint8_t>                mask;
  std::vector<std::uint32_t>               output;
  ExecutionRequest                         request;
  ExecutionReport                          report;
  int                                      refused{ 0 }; ///< runs with too little memory
};

template <typename T>
void
SizedWatersheds::TryAnySizedWatershed(std::mt19937 & random, int trials)
{
  Manager & manager = GetManager();
  int       refused = 0;
  int       onDevices = 0;
  trials /= std::getenv("CHUNKWISE_TEST_FEW") ? 10 : 1;
  for (int trial = 0; trial < trials; ++trial)
  {
    auto                 operation = std::make_shared<SizedWatershedOperation>();
    WatershedOperation & watershed = operation->watershed;
    watershed.image = RandomExtent(random, 8);
    watershed.axes = RandomAxes(random);
    std::sort(watershed.axes.begin(), watershed.axes.end());
    watershed.connectivity = 1 + static_cast<int>(random() % 3);
    watershed.lines = random() % 5 == 0;
    const auto        count = static_cast<std::size_t>(Box::FromExtent(watershed.image).NumberOfVoxels());
    const std::size_t sizes[] = { 1, 2, 3, 5, 12, 60, count, ~std::size_t{ 0 } / 4 };
    operation->size = sizes[random() % 8];
    operation->byVolume = random() % 2;
    operation->unit = std::ldexp(1.0, static_cast<int>(random() % 5) - 4);
    std::vector<std::uint8_t> mask(random() % 3 == 0 ? count : 0);
    std::generate(mask.begin(), mask.end(), [&] { return random() % 5 == 0 ? 0 : 1 + random() % 2; });
    SizedTrial<T>                    t(operation, RandomTerrain<T>(random, count), mask);
    const std::vector<std::uint64_t> expected = LabelsByDefinition(*operation, t.voxels, mask);
    const auto                       executor = MakeThreadExecutor(1 + random() % 3);
    t.request.executor = executor.get();
    t.request.backend = IsOnDevice() ? BackendChoice::CUDA : BackendChoice::CPU;
    for (int cut = 0; cut < 4; ++cut)
    {
      operation->tileVoxels = cut == 0 ? 1 << 17 : 1 << random() % 9;
      operation->blockVoxels = cut < 2 ? 1 << 17 : 1 + random() % count;
      t.Run(manager, cut < 3 ? 0 : 3000 + random() % (1 + 300 * count));
      ASSERT_NO_FATAL_FAILURE(t.Expect(expected, "trial " + std::to_string(trial) + " cut " + std::to_string(cut)));
      onDevices += t.report.backend != "cpu" && t.report.warnings.empty() ? 1 : 0;
    }
    t.refused = 0;
    t.RunOutOfCore(manager, random() % (1 + 300 * count));
    ASSERT_NO_FATAL_FAILURE(t.Expect(expected, "trial " + std::to_string(trial) + " out of core"));
    refused += t.refused;
  }
  EXPECT_LT(refused, trials / 4);
  // The CPU finds minima if the host has little memory, or the image many of them.
  EXPECT_TRUE(IsOnDevice() ? onDevices > 2 * trials : onDevices == 0) << onDevices << " of " << 4 * trials;
}

TEST_P(SizedWatersheds, AreThoseOfTheDefinition)
{
  std::mt19937 random(1);
  TryAnySizedWatershed<std::uint8_t>(random, 150);
  TryAnySizedWatershed<float>(random, 120);
  TryAnySizedWatershed<std::int64_t>(random, 60);
}

/** Basins of many voxels: what they are is known after many blocks. */
TEST_P(SizedWatersheds, OfLargerImagesAreThoseOfTheDefinition)
{
  Manager & manager = GetManager();
  // Memory of many threads would hold the image.
  const auto        executor = MakeThreadExecutor(2);
  std::mt19937      random(2);
  const Coordinates extent{ { 14, 12, 30, 1, 1 } };
  const auto        count = static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels());
  for (int trial = 0; trial < 4; ++trial)
  {
    auto operation = std::make_shared<SizedWatershedOperation>();
    operation->watershed.image = extent;
    operation->watershed.connectivity = 1 + trial % 3;
    operation->byVolume = trial % 2;
    operation->size = operation->byVolume ? 900 : 90;
    operation->tileVoxels = 1 << (5 + trial);
    std::vector<std::uint16_t> voxels;
    ForEachIndex(Box::FromExtent(extent), [&](const Coordinates & at) {
      const double height = std::sin(0.4 * static_cast<double>(at[0])) + std::sin(0.5 * static_cast<double>(at[1])) +
                            std::sin(0.9 * static_cast<double>(at[2]));
      voxels.push_back(static_cast<std::uint16_t>(20 * height + 100 + random() % 8));
    });
    SizedTrial<std::uint16_t> t(operation, voxels);
    t.request.executor = executor.get();
    t.request.backend = IsOnDevice() ? BackendChoice::CUDA : BackendChoice::CPU;
    const std::vector<std::uint64_t> expected = LabelsByDefinition(*operation, voxels, {});
    EXPECT_GT(*std::max_element(expected.begin(), expected.end()), 2U);
    for (const std::int64_t planes : { 30, 10, 3, 1 })
    {
      operation->blockVoxels = planes * 14 * 12;
      t.Run(manager, 0);
      ASSERT_NO_FATAL_FAILURE(t.Expect(expected, std::to_string(planes) + " planes"));
    }
    EXPECT_EQ(t.report.backend != "cpu" && t.report.warnings.empty(), IsOnDevice());
    EXPECT_TRUE(t.RunOutOfCore(manager, 20 * count) > 0 || IsOnDevice());
    ASSERT_NO_FATAL_FAILURE(t.Expect(expected, "out of core"));
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, SizedWatersheds, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Steps, SizedWatersheds, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, SizedWatersheds, testing::Values(Place::Cuda));

/** As docs/watershed.md says, areas are those of a closing. */
TEST_F(SizedWatershedsOfHosts, ByAreaAreThoseOfTheMinimaOfAClosing)
{
  Manager           manager({});
  std::mt19937      random(3);
  const Coordinates extent{ { 9, 7, 5, 1, 1 } };
  for (int trial = 0; trial < 20; ++trial)
  {
    auto operation = std::make_shared<SizedWatershedOperation>();
    operation->watershed.image = extent;
    operation->size = 2 + random() % 40;
    SizedTrial<std::uint8_t> t(operation, RandomTerrain<std::uint8_t>(random, 315));
    t.Run(manager, 0);
    std::vector<std::uint8_t>  closed(315);
    std::vector<std::uint8_t>  minima(315);
    std::vector<std::uint32_t> markers(315);
    std::vector<std::uint32_t> labels(315);
    FilterImage                image;
    FilterParameters           parameters;
    image.extent = extent;
    const auto run = [&](const char * name, std::vector<BufferView> inputs, const BufferView & output) {
      image.inputKind = inputs.front().kind;
      image.outputKind = output.kind;
      t.request.operation = MakeFilterOperation(name, parameters, image);
      t.request.inputs = std::move(inputs);
      t.request.output = output;
      manager.Execute(t.request);
    };
    const Box  box = t.request.image;
    const auto viewOf = [&](auto & voxels) {
      return DenseView(voxels.data(), PixelTypeOf<std::decay_t<decltype(voxels[0])>>(), box);
    };
    parameters.SetReal("Size", static_cast<double>(operation->size));
    parameters.Set("UseImageSpacing", false);
    run("area-closing", { viewOf(t.voxels) }, viewOf(closed));
    parameters = FilterParameters();
    run("regional-minima", { viewOf(closed) }, viewOf(minima));
    parameters.SetInteger("Connectivity", 1);
    run("label", { viewOf(minima) }, viewOf(markers));
    image.additionalInputs = { "MarkerImage" };
    run("watershed", { viewOf(t.voxels), viewOf(markers) }, viewOf(labels));
    ASSERT_EQ(t.output, labels) << trial << " " << operation->GetKey();
  }
}

TEST_F(SizedWatershedsOfHosts, TakeTheMemoryThatTheySayIsEnough)
{
  Manager manager({});
  auto    operation = std::make_shared<SizedWatershedOperation>();
  operation->watershed.image = { { 40, 30, 20, 1, 1 } };
  operation->size = 100;
  std::mt19937              random(3);
  SizedTrial<std::uint16_t> t(operation, RandomTerrain<std::uint16_t>(random, 24000));
  const auto                executor = MakeThreadExecutor(2);
  t.request.executor = executor.get();
  t.Run(manager, 0);
  const std::vector<std::uint64_t> expected(t.output.begin(), t.output.end());
  t.Run(manager, 1000);
  EXPECT_EQ(t.refused, 1);
  t.Expect(expected, "least");
  // A part of the labels takes the whole image.
  t.request.region.upper[2] = 7;
  const auto end = static_cast<std::ptrdiff_t>(t.request.region.NumberOfVoxels());
  t.Run(manager, 1000);
  EXPECT_TRUE(std::equal(t.output.begin(), t.output.begin() + end, expected.begin()));
  EXPECT_EQ(std::count(t.output.begin() + end, t.output.end(), 77U), 24000 - end);
  t.refused = 0;
  t.request.region = t.request.image;
  t.Run(manager, 1000);
  EXPECT_EQ(manager.MakePlanFor(t.request).deviceBytes, t.request.budgets.host);
  --t.request.budgets.host;
  EXPECT_THROW(manager.Execute(t.request), BudgetError);
  EXPECT_THROW(manager.MakePlanFor(t.request), BudgetError);
}

/** More minima than there is memory for, and than the output has labels. */
TEST_F(SizedWatershedsOfHosts, WithTooManyMinimaAreRefused)
{
  Manager manager({});
  auto    operation = std::make_shared<SizedWatershedOperation>();
  operation->watershed.image = { { 60, 60, 3, 1, 1 } };
  operation->watershed.connectivity = 1;
  operation->byVolume = true;
  operation->size = 1;
  std::vector<std::uint8_t> voxels;
  ForEachIndex(Box::FromExtent(operation->watershed.image),
               [&](const Coordinates & at) { voxels.push_back((at[0] + at[1] + at[2]) % 2 == 0 ? 0 : 1); });
  SizedTrial<std::uint8_t> t(operation, voxels);
  t.Run(manager, 0);
  EXPECT_EQ(*std::max_element(t.output.begin(), t.output.end()), 5400U);
  std::vector<std::uint8_t> small(voxels.size());
  operation->watershed.outputKind = PixelType::UInt8;
  t.request.output = DenseView(small.data(), PixelType::UInt8, t.request.image);
  try
  {
    manager.Execute(t.request);
    ADD_FAILURE();
  }
  catch (const Error & error)
  {
    EXPECT_NE(std::string(error.what()).find("5400 minima"), std::string::npos) << error.what();
  }
}

TEST(SizedWatershedRows, CountVoxelsAndVolumes)
{
  FilterImage image;
  image.extent = { { 5, 4, 3, 1, 1 } };
  image.outputKind = PixelType::UInt32;
  image.spacing[0] = 0.5;
  image.spacing[1] = 0.2;
  image.spacing[2] = -1;
  const auto make = [&](const char * name, double size, bool usesSpacing = true) {
    FilterParameters parameters;
    parameters.SetReal(name, size);
    parameters.Set("UseImageSpacing", usesSpacing);
    return MakeFilterOperation("watershed", parameters, image);
  };
  const auto sizedOf = [](const std::shared_ptr<const Operation> & operation) -> const SizedWatershedOperation & {
    return dynamic_cast<const SizedWatershedOperation &>(*operation);
  };
  EXPECT_EQ(sizedOf(make("Area", 0.3)).size, 3U);
  EXPECT_EQ(sizedOf(make("Area", 7, false)).size, 7U);
  EXPECT_FALSE(sizedOf(make("Area", 7)).byVolume);
  EXPECT_EQ(sizedOf(make("Volume", 0.31)).size, 4U);
  EXPECT_TRUE(sizedOf(make("Volume", 0.31)).byVolume);
  EXPECT_NE(dynamic_cast<const WatershedOperation *>(make("Area", 0).get()), nullptr);
  EXPECT_NE(sizedOf(make("Area", 2)).GetKey(), sizedOf(make("Area", 3)).GetKey());
  EXPECT_NE(sizedOf(make("Area", 2)).GetKey(), sizedOf(make("Volume", 2)).GetKey());
  image.inputKind = PixelType::Float32;
  for (const double volume : { 1e-310, 3e-5, 1.0, 0.7, 1e308 })
  {
    const auto                      operation = make("Volume", volume, false);
    const SizedWatershedOperation & sized = sizedOf(operation);
    EXPECT_GE(static_cast<double>(sized.size) * sized.unit, std::min(volume, 1e300));
    EXPECT_LT(static_cast<double>(sized.size - 1) * sized.unit, volume);
    EXPECT_LE(sized.size, std::uint64_t{ 1 } << 40);
    EXPECT_TRUE(volume < 1e-300 || sized.size > std::uint64_t{ 1 } << 38) << volume;
  }
  const auto expectRefused = [&](const FilterParameters & parameters, const std::string & name) {
    try
    {
      MakeFilterOperation("watershed", parameters, image);
      ADD_FAILURE() << name;
    }
    catch (const ParameterError & error)
    {
      EXPECT_EQ(error.parameter, name) << error.what();
    }
  };
  FilterParameters two;
  two.Set("Height", PixelValue(3));
  two.SetReal("Area", 2);
  expectRefused(two, "Area");
  FilterParameters negative;
  negative.SetReal("Volume", -1);
  expectRefused(negative, "Volume");
  image.additionalInputs = { "MarkerImage" };
  FilterParameters ofMarkers;
  ofMarkers.SetReal("Volume", 2);
  expectRefused(ofMarkers, "Volume");
}

} // namespace
