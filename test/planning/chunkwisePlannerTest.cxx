/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwisePlanner.h"
#include "chunkwiseTestOperations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

PlannerRequest
MakeRequest(const Coordinates & extent, std::int64_t radius, std::size_t memory, std::size_t devices = 1)
{
  PlannerRequest request;
  request.image = request.region = Box::FromExtent(extent);
  request.halo = Halo::None();
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    request.halo.lower[a] = request.halo.upper[a] = radius;
  }
  request.inputKinds[0] = PixelType::Float32;
  request.outputKind = PixelType::Float32;
  PlannerDevice device;
  device.memory = memory;
  request.devices.assign(devices, device);
  return request;
}

/** The chunk that the seed's published heuristic takes for a budget of an input and an output buffer: the axis whose
 * overlap is largest stays whole; of the other two, the one with the larger overlap gets the square root of what is
 * left per line, the last the rest. Channels and time points are single. */
Coordinates
SeedChunk(const PlannerRequest & request, std::size_t memory)
{
  const Coordinates image = request.image.Extents();
  const double      voxels = 0.95 * static_cast<double>(memory) / (2 * 4);
  int               order[3] = { 0, 1, 2 };
  const auto        overlap = [&](int a) {
    return static_cast<double>(request.halo.lower[a] + request.halo.upper[a] + 1) *
           static_cast<double>(image[0] * image[1] * image[2]) / static_cast<double>(image[a]);
  };
  std::stable_sort(order, order + 3, [&](int a, int b) { return overlap(a) > overlap(b); });
  const auto margin = [&](int a) { return request.halo.lower[a] + request.halo.upper[a]; };
  const auto fit = [&](double extent, int a) {
    return std::min(static_cast<double>(image[a]), std::max(1.0, std::floor(extent) - static_cast<double>(margin(a))));
  };
  Coordinates chunk = Coordinates::Filled(1);
  chunk[order[0]] = image[order[0]];
  const double plane = voxels / static_cast<double>(image[order[0]]);
  chunk[order[1]] = static_cast<std::int64_t>(fit(std::sqrt(plane), order[1]));
  const double line =
    plane / std::min(static_cast<double>(image[order[1]]), static_cast<double>(chunk[order[1]] + margin(order[1])));
  chunk[order[2]] = static_cast<std::int64_t>(fit(line, order[2]));
  if (chunk[order[2]] == image[order[2]])
  {
    const double rest = plane / static_cast<double>(image[order[2]]);
    chunk[order[1]] = static_cast<std::int64_t>(fit(rest, order[1]));
  }
  return chunk;
}

/** Input bytes by visiting every chunk, with the engine's rule of what neighbours keep. */
double
CountBytes(const Plan & plan, const PlannerRequest & request, std::size_t voxelBytes)
{
  double      bytes = 0;
  const Box * previous = nullptr;
  for (const Chunk & chunk : plan.chunks)
  {
    double voxels = static_cast<double>(chunk.inputBox.NumberOfVoxels());
    if (previous && request.carryHalo && plan.inputSlots > 1)
    {
      Box  common = Intersect(*previous, chunk.inputBox);
      bool neighbour = !common.IsEmpty();
      for (int a = 0; a < MaxDimension; ++a)
      {
        neighbour = neighbour && (a == plan.sweepAxis || (previous->lower[a] == chunk.inputBox.lower[a] &&
                                                          previous->upper[a] == chunk.inputBox.upper[a]));
      }
      voxels -= neighbour && previous->lower[plan.sweepAxis] <= chunk.inputBox.lower[plan.sweepAxis]
                  ? static_cast<double>(common.NumberOfVoxels())
                  : 0.0;
    }
    bytes += voxels * static_cast<double>(voxelBytes);
    previous = &chunk.inputBox;
  }
  return bytes;
}

Coordinates
RandomExtent(std::mt19937 & random, std::int64_t largest)
{
  Coordinates extent = Coordinates::Filled(1);
  const int   dimension = 1 + static_cast<int>(random() % MaxDimension);
  for (int a = 0; a < dimension; ++a)
  {
    extent[a] = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(a < 3 ? largest : 4));
  }
  return extent;
}

TEST(Planner, ChunksTileTheRegionAndFitTheBudget)
{
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial)
  {
    const Coordinates extent = RandomExtent(random, 40);
    auto              request =
      MakeRequest(extent, static_cast<std::int64_t>(random() % 6), 3000 + random() % 200000, 1 + random() % 3);
    for (int a = 0; a < MaxDimension; ++a)
    {
      request.region.lower[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a]));
      request.region.upper[a] =
        request.region.lower[a] + 1 +
        static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a] - request.region.lower[a]));
    }
    request.wraps = random() % 4 == 0;
    request.fixedBytes = random() % 2 * (random() % 8000);
    request.scratchBytes = [](const ChunkShape & shape) {
      return static_cast<std::size_t>(shape.inputBox.NumberOfVoxels()) * 4;
    };
    Plan plan;
    try
    {
      plan = MakePlan(request);
    }
    catch (const BudgetError & error)
    {
      EXPECT_GT(error.needed, error.budget);
      continue;
    }
    std::vector<char> covered(static_cast<std::size_t>(request.region.NumberOfVoxels()), 0);
    const BufferView  view = DenseView(covered.data(), PixelType::UInt8, request.region);
    std::size_t       inputBytes = 0;
    std::size_t       outputBytes = 0;
    std::size_t       scratch = 0;
    for (const Chunk & chunk : plan.chunks)
    {
      ASSERT_TRUE(request.region.Contains(chunk.outputBox));
      ForEachIndex(chunk.outputBox, [&](const Coordinates & index) { ++At<char>(view, index); });
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t lower = chunk.outputBox.lower[a] - request.halo.lower[a];
        const std::int64_t upper = chunk.outputBox.upper[a] + request.halo.upper[a];
        EXPECT_EQ(chunk.inputBox.lower[a], request.wraps ? lower : std::max<std::int64_t>(lower, 0));
        EXPECT_EQ(chunk.inputBox.upper[a], request.wraps ? upper : std::min(upper, extent[a]));
      }
      const auto voxels = static_cast<std::size_t>(chunk.inputBox.NumberOfVoxels());
      inputBytes = std::max(inputBytes, voxels * 4);
      scratch = std::max(scratch, voxels * 4);
      outputBytes = std::max(outputBytes, static_cast<std::size_t>(chunk.outputBox.NumberOfVoxels()) * 4);
    }
    EXPECT_TRUE(std::all_of(covered.begin(), covered.end(), [](char c) { return c == 1; }));
    EXPECT_LE(static_cast<std::size_t>(plan.inputSlots) * inputBytes +
                static_cast<std::size_t>(plan.outputSlots) * outputBytes + scratch + request.fixedBytes,
              request.devices[0].memory);
    EXPECT_LE(plan.deviceBytes, request.devices[0].memory);
    EXPECT_GE(plan.inputBytes, inputBytes);
    EXPECT_GE(plan.outputBytes, outputBytes);
    EXPECT_GE(plan.scratchBytes, scratch);
  }
}

TEST(Planner, PredictsTheBytesThatCrossTheLink)
{
  std::mt19937 random(2);
  for (int trial = 0; trial < 200; ++trial)
  {
    const auto request =
      MakeRequest(RandomExtent(random, 50), static_cast<std::int64_t>(random() % 5), 40000 + random() % 200000);
    const Plan plan = MakePlan(request);
    EXPECT_DOUBLE_EQ(plan.bytesToDevice, CountBytes(plan, request, 4));
  }
}

TEST(Planner, NeverMovesMoreThanTheSeedsHeuristic)
{
  std::mt19937 random(3);
  int          cut = 0;
  for (int trial = 0; trial < 400; ++trial)
  {
    Coordinates extent = Coordinates::Filled(1);
    for (int a = 0; a < 3; ++a)
    {
      extent[a] = 64 + static_cast<std::int64_t>(random() % 1500);
    }
    extent[3] = 1 + static_cast<std::int64_t>(random() % 2);
    const auto        image = static_cast<double>(Box::FromExtent(extent).NumberOfVoxels()) * 4;
    const std::size_t memory = static_cast<std::size_t>(image / (1 + static_cast<double>(random() % 40))) + (8u << 20);
    const auto        request = MakeRequest(extent, 1 + static_cast<std::int64_t>(random() % 12), memory);
    const Plan        plan = MakePlan(request);
    const double      seed = BytesWithoutCarry(request, SeedChunk(request, memory));
    cut += plan.chunks.size() > 2 ? 1 : 0;
    EXPECT_LE(plan.bytesToDevice, seed) << ToString(extent) << " halo " << request.halo.lower[0] << " memory " << memory
                                        << " chunk " << ToString(plan.chunkExtent) << " seed "
                                        << ToString(SeedChunk(request, memory));
  }
  EXPECT_GT(cut, 300);
}

/** If kernels take longer than the link, no byte that is loaded beside them counts: no cut into equal pieces has a
 * shorter expected time. Kernels work on tiles, which fit some extents better than others. */
TEST(Planner, TakesTheFastestCutWhereKernelsTakeLongest)
{
  std::mt19937 random(27);
  int          loadsMore = 0;
  for (int trial = 0; trial < 40; ++trial)
  {
    const auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(n)); };
    const Coordinates extent{ { 200 + below(300), 200 + below(300), 200 + below(300), 1, 1 } };
    const auto        margin = 10 + below(30);
    const auto        tile = 16 + below(33);
    const auto        image = static_cast<std::size_t>(extent[0] * extent[1] * extent[2]);
    auto              request = MakeRequest(extent, margin, image * 48 / static_cast<std::size_t>(3 + below(20)));
    request.scratchBytes = [](const ChunkShape & shape) {
      return static_cast<std::size_t>(shape.inputBox.NumberOfVoxels()) * 40;
    };
    request.cost = [&](const ChunkShape & shape) {
      double cost = 20000;
      for (int a = 0; a < MaxSpatialAxes; ++a)
      {
        cost *= static_cast<double>((shape.outputBox.Extent(a) + margin + tile - 1) / tile * tile);
      }
      return cost;
    };
    const Plan plan = MakePlan(request);
    double     leastBytes = plan.bytesToDevice;
    for (std::int64_t x = 1; x <= 8; x *= 2)
    {
      for (std::int64_t y = 1; y <= 8; y *= 2)
      {
        for (std::int64_t z = 1; z <= 16; z *= 2)
        {
          PlannerRequest    cut = request;
          const Coordinates pieces{ { x, y, z, 1, 1 } };
          cut.roundChunk = [&](const Coordinates &) {
            Coordinates all = extent;
            for (int a = 0; a < MaxSpatialAxes; ++a)
            {
              all[a] = (extent[a] + pieces[a] - 1) / pieces[a];
            }
            return all;
          };
          try
          {
            const Plan other = MakePlan(cut);
            EXPECT_LE(plan.seconds, other.seconds) << ToString(plan.chunkExtent) << ' ' << ToString(other.chunkExtent);
            leastBytes = std::min(leastBytes, BytesWithoutCarry(request, other.chunkExtent));
          }
          catch (const BudgetError &)
          {}
        }
      }
    }
    loadsMore += leastBytes < plan.bytesToDevice ? 1 : 0;
  }
  EXPECT_GT(loadsMore, 5);
}

/** The expected time is that of loads, kernels and stores that wait for each other and for buffers, chunk by chunk. */
TEST(Planner, ExpectsWhatAPipelineTakes)
{
  for (const double traffic : { 1.0, 300.0, 5000.0, 40000.0 })
  {
    for (const std::size_t memory : { std::size_t{ 5 } << 20, std::size_t{ 64 } << 20, std::size_t{ 4 } << 30 })
    {
      PlannerRequest request = MakeRequest({ { 256, 256, 256, 1, 1 } }, 0, memory);
      request.cost = [&](const ChunkShape & shape) {
        return traffic * static_cast<double>(shape.outputBox.NumberOfVoxels());
      };
      request.pieceSeconds = 0;
      const Plan   plan = MakePlan(request);
      const double rates[] = { request.devices[0].toDeviceRate / 4,
                               request.devices[0].memoryRate / traffic,
                               request.devices[0].toHostRate / 4 };
      const auto   n = plan.chunks.size();
      const auto   inputs = static_cast<std::size_t>(plan.inputSlots);
      const auto   outputs = static_cast<std::size_t>(plan.outputSlots);
      // When each stage of each chunk ends; number 0 is before the first chunk.
      std::vector<std::array<double, 3>> end(n + 1, { { 0, 0, 0 } });
      for (std::size_t i = 1; i <= n; ++i)
      {
        const double voxels = static_cast<double>(plan.chunks[i - 1].outputBox.NumberOfVoxels());
        const double freeInput = i > inputs ? end[i - inputs][1] : 0;
        const double freeOutput = i > outputs ? end[i - outputs][2] : 0;
        end[i][0] = std::max(end[i - 1][0], inputs == 1 ? end[i - 1][2] : freeInput) + voxels / rates[0];
        end[i][1] = std::max({ end[i - 1][1], end[i][0], freeOutput }) + voxels / rates[1];
        end[i][2] = std::max(end[i - 1][2], end[i][1]) + voxels / rates[2];
      }
      const double launches = static_cast<double>(n) * request.devices[0].launchSeconds;
      EXPECT_NEAR((plan.seconds - launches) / end[n][2], 1.0, plan.inputSlots == 2 ? 0.12 : 0.03)
        << traffic << ", " << memory << ": " << n << " chunks, " << plan.inputSlots << " buffers";
    }
  }
}

TEST(Planner, GivesEveryDeviceWorkHoweverMuchMemoryThereIs)
{
  for (const bool carryHalo : { true, false })
  {
    for (const std::size_t devices : { 2, 3, 4 })
    {
      PlannerRequest request = MakeRequest({ { 512, 512, 512, 1, 1 } }, 16, std::size_t{ 1 } << 37, devices);
      request.carryHalo = carryHalo;
      EXPECT_GE(MakePlan(request).chunks.size(), devices);
      // Nothing to cut.
      request = MakeRequest({ { 1, 1, 1, 1, 1 } }, 16, std::size_t{ 1 } << 37, devices);
      EXPECT_EQ(MakePlan(request).chunks.size(), 1u);
    }
  }
}

TEST(Planner, TwoDevicesTakeLessTimeThanOneHoweverThinARegionIs)
{
  for (const std::int64_t radius : { 0, 1, 2, 6 })
  {
    for (const std::int64_t planes : { 16, 32, 64, 130 })
    {
      double seconds[2]{};
      for (const std::size_t devices : { std::size_t{ 1 }, std::size_t{ 2 } })
      {
        PlannerRequest request = MakeRequest({ { 1024, 1024, 4096, 1, 1 } }, radius, std::size_t{ 100 } << 30, devices);
        request.region.lower[2] = 1000;
        request.region.upper[2] = 1000 + planes;
        seconds[devices - 1] = MakePlan(request).seconds;
      }
      EXPECT_LT(seconds[1], 0.8 * seconds[0]) << "radius " << radius << ", " << planes << " planes";
    }
  }
}

TEST(Planner, SaysWhatTheSmallestChunkNeeds)
{
  const auto request = MakeRequest({ { 64, 64, 64, 1, 1 } }, 8, 10000);
  try
  {
    MakePlan(request);
    FAIL() << "17^3 floats fit into 10000 bytes";
  }
  catch (const BudgetError & error)
  {
    EXPECT_EQ(error.budget, 10000u);
    // One voxel and the corner with the smallest halo is a chunk too, but a plan has every voxel.
    EXPECT_GE(error.needed, 17u * 17u * 17u * 4u);
    EXPECT_NE(std::string(error.what()).find(std::to_string(error.needed)), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("10000"), std::string::npos);
  }
}

TEST(Planner, SaysWhatABudgetCosts)
{
  // A wide window, as that of a Gaussian of sigma 10.
  auto request = MakeRequest({ { 512, 512, 512, 1, 1 } }, 40, std::size_t{ 1 } << 40);
  EXPECT_LE(FindBudgetCost(request).factor, 1.0);
  const std::size_t sufficient = FindBudgetCost(request).sufficient;
  request.devices[0].memory = sufficient;
  EXPECT_LE(FindBudgetCost(request).factor, 1.25);
  EXPECT_EQ(FindBudgetCost(request).sufficient, sufficient);
  request.devices[0].memory = sufficient - sufficient / 50;
  EXPECT_GT(FindBudgetCost(request).factor, 1.25);

  std::vector<std::string> warnings;
  MakeReasonablePlan(request, warnings);
  EXPECT_TRUE(warnings.empty());
  request.devices[0].memory = 5000000;
  const double factor = FindBudgetCost(request).factor;
  EXPECT_GT(factor, 8);
  EXPECT_LT(factor, 1000);
  MakeReasonablePlan(request, warnings);
  ASSERT_EQ(warnings.size(), 1u);
  for (const std::string & part : { std::string("device budget of 5000000"), std::to_string(sufficient) })
  {
    EXPECT_NE(warnings[0].find(part), std::string::npos) << warnings[0];
  }
  // Little work is no matter, however it is cut.
  warnings.clear();
  auto little = MakeRequest({ { 20, 20, 20, 1, 1 } }, 0, 600);
  EXPECT_GT(FindBudgetCost(little).factor, 8);
  MakeReasonablePlan(little, warnings);
  EXPECT_TRUE(warnings.empty());
}

TEST(Planner, RefusesABudgetUnderWhichTheWorkTakesForEver)
{
  auto request = MakeRequest({ { 512, 512, 512, 1, 1 } }, 40, 2200000);
  EXPECT_GT(FindBudgetCost(request).factor, 1000);
  std::vector<std::string> warnings;
  for (const std::size_t memory : { 2200000u, 10u })
  {
    request.devices[0].memory = memory;
    std::size_t needed = 0;
    try
    {
      MakeReasonablePlan(request, warnings);
    }
    catch (const BudgetError & error)
    {
      needed = error.needed;
      EXPECT_EQ(error.budget, memory);
      EXPECT_NE(std::string(error.what()).find(std::to_string(needed)), std::string::npos) << error.what();
    }
    ASSERT_GT(needed, 2200000u);
    request.devices[0].memory = needed;
    MakeReasonablePlan(request, warnings);
    EXPECT_LE(FindBudgetCost(request).factor, 1000);
    request.devices[0].memory = needed - 1;
    EXPECT_THROW(MakeReasonablePlan(request, warnings), BudgetError);
  }
}

/** Networks take a millisecond to say what a chunk costs, and messages are worth many plans. */
TEST(Planner, WhatManyPlansAskForIsComputedOnce)
{
  using Calls = std::vector<std::vector<std::int64_t>>;
  const auto add = [](Calls & calls, const ChunkShape & shape) {
    calls.emplace_back();
    for (int a = 0; a < MaxDimension; ++a)
    {
      calls.back().insert(calls.back().end(), { shape.outputBox.lower[a], shape.outputBox.upper[a] });
    }
  };
  auto  request = MakeRequest({ { 512, 512, 512, 1, 1 } }, 40, 20000000);
  Calls scratch;
  Calls cost;
  request.scratchBytes = [&](const ChunkShape & shape) {
    add(scratch, shape);
    return static_cast<std::size_t>(shape.inputBox.NumberOfVoxels());
  };
  request.cost = [&](const ChunkShape & shape) {
    add(cost, shape);
    return 8.0 * static_cast<double>(shape.inputBox.NumberOfVoxels());
  };
  const Plan        plan = MakePlan(request);
  const std::size_t ofOnePlan[] = { scratch.size(), cost.size() };
  scratch.clear();
  cost.clear();
  std::vector<std::string> warnings;
  const Plan               reasonable = MakeReasonablePlan(request, warnings);
  EXPECT_EQ(warnings.size(), 1u) << "the plan is compared with others";
  EXPECT_EQ(reasonable.chunkExtent, plan.chunkExtent);
  EXPECT_EQ(reasonable.seconds, plan.seconds);
  // The first plan is the same; most are done with it.
  const auto countTwice = [](const Calls & calls, std::size_t first) {
    const std::set<std::vector<std::int64_t>> once(calls.begin() + static_cast<std::ptrdiff_t>(first), calls.end());
    return calls.size() - first - once.size();
  };
  ASSERT_GT(scratch.size(), ofOnePlan[0]);
  ASSERT_GT(cost.size(), ofOnePlan[1]);
  EXPECT_EQ(countTwice(scratch, ofOnePlan[0]), 0u);
  EXPECT_EQ(countTwice(cost, ofOnePlan[1]), 0u);
}

TEST(Planner, KeepsAFullWidthSweepWhenPlanesFit)
{
  const auto request = MakeRequest({ { 512, 512, 512, 1, 1 } }, 8, std::size_t{ 1 } << 30);
  const Plan plan = MakePlan(request);
  EXPECT_EQ(plan.chunkExtent[0], 512);
  EXPECT_EQ(plan.chunkExtent[1], 512);
  EXPECT_EQ(plan.sweepAxis, 2);
  EXPECT_GT(plan.chunks.size(), 4u);
  EXPECT_DOUBLE_EQ(plan.bytesToDevice, 512.0 * 512 * 512 * 4);
}

TEST(Planner, SweepCutsOnlyItsAxis)
{
  auto request = MakeRequest({ { 30, 40, 50, 2, 1 } }, 0, 60000);
  request.sweepAxis = 2;
  const Plan plan = MakePlan(request);
  EXPECT_EQ(plan.chunkExtent[0], 30);
  EXPECT_EQ(plan.chunkExtent[1], 40);
  EXPECT_EQ(plan.chunkExtent[3], 2);
  EXPECT_LT(plan.chunkExtent[2], 50);
  for (std::size_t i = 1; i < plan.chunks.size(); ++i)
  {
    EXPECT_EQ(plan.chunks[i].outputBox.lower[2], plan.chunks[i - 1].outputBox.upper[2]);
  }
  // Halving does not either.
  std::vector<Chunk> parts = plan.chunks;
  for (std::size_t before = 0; parts.size() != before;)
  {
    before = parts.size();
    parts = HalveChunks(parts, plan.sweepAxis, request);
  }
  ASSERT_EQ(parts.size(), 50u);
  for (std::size_t z = 0; z < parts.size(); ++z)
  {
    EXPECT_EQ(parts[z].outputBox.lower[2], static_cast<std::int64_t>(z));
    EXPECT_EQ(parts[z].outputBox.NumberOfVoxels(), 30 * 40 * 2);
  }
}

TEST(Planner, CarriesBetweenDevicesMakeChunksLarger)
{
  const auto chunksOf = [](std::size_t devices, std::size_t carryBytes) {
    auto request = MakeRequest({ { 2048, 2048, 1024, 1, 1 } }, 0, std::size_t{ 8 } << 30, devices);
    request.sweepAxis = 2;
    request.carryBytes = carryBytes;
    return MakePlan(request).chunks.size();
  };
  constexpr std::size_t plane = 2048 * 2048 * 8;
  EXPECT_EQ(chunksOf(1, plane), chunksOf(1, 0));
  EXPECT_LT(chunksOf(2, 8 * plane), chunksOf(2, 0));
}

TEST(Planner, RoundsChunksAsTheOperationAsks)
{
  auto request = MakeRequest({ { 100, 100, 100, 1, 1 } }, 2, 500000);
  request.roundChunk = [](const Coordinates & extent) {
    Coordinates rounded = extent;
    for (int a = 0; a < 3; ++a)
    {
      rounded[a] = (extent[a] + 7) / 8 * 8;
    }
    return rounded;
  };
  const Plan plan = MakePlan(request);
  for (int a = 0; a < 3; ++a)
  {
    EXPECT_TRUE(plan.chunkExtent[a] % 8 == 0 || plan.chunkExtent[a] == 100) << plan.chunkExtent[a];
  }
}

TEST(Planner, TakesPartsOfTilesOnlyIfWholeOnesDoNotFit)
{
  // A convolution of 8 GiB. Whole tiles are computed for every chunk.
  PlannerRequest request = MakeRequest({ { 1024, 1024, 2048, 1, 1 } }, 16, std::size_t{ 100 } << 30);
  request.tile = { { 512, 512, 128, 1, 1 } };
  request.cost = [](const ChunkShape & shape) {
    return 12.0 * 4 * static_cast<double>(shape.inputBox.NumberOfVoxels());
  };
  request.scratchBytes = [](const ChunkShape &) { return std::size_t{ 220 } << 20; };
  std::size_t least = 0;
  for (const std::size_t memory : { std::size_t{ 100 } << 30, std::size_t{ 4 } << 30, std::size_t{ 1 } << 20 })
  {
    request.devices[0].memory = memory;
    try
    {
      for (const Chunk & chunk : MakePlan(request).chunks)
      {
        EXPECT_EQ(AlignToTiles(chunk.outputBox, request.tile, request.image), chunk.outputBox) << memory;
      }
    }
    catch (const BudgetError & error)
    {
      least = error.needed;
    }
  }
  // The input of a tile, which meets two of its neighbors, and its scratch.
  ASSERT_GT(least, std::size_t{ 220 } << 20);
  ASSERT_LT(least, (std::size_t{ 220 } << 20) + 528 * 528 * 160 * 4 + (1 << 20));
  request.devices[0].memory = least + (std::size_t{ 64 } << 20);
  const Plan parts = MakePlan(request);
  EXPECT_GT(parts.chunks.size(), 64U);
  for (const Chunk & chunk : parts.chunks)
  {
    // Each is in one tile.
    EXPECT_EQ(AlignToTiles(chunk.outputBox, request.tile, request.image).Extents(), request.tile);
  }
}

TEST(Planner, PartsOfTilesWhoseExtentIsPrimeHaveManyPlanes)
{
  for (const std::int64_t planes : { std::int64_t{ 137 }, std::int64_t{ 3 * 137 } })
  {
    PlannerRequest request = MakeRequest({ { 1, 1, planes, 1, 1 } }, 0, 1);
    request.tile = { { 1, 1, 137, 1, 1 } };
    try
    {
      MakePlan(request);
      ADD_FAILURE() << "one byte is enough";
    }
    catch (const BudgetError & error)
    {
      // Among several tiles a part may meet two, whose input must fit.
      request.devices[0].memory = error.needed + std::size_t{ 4 } * (planes > 137 ? 500 : 100);
    }
    EXPECT_LT(MakePlan(request).chunks.size(), static_cast<std::size_t>(planes) / 4);
  }
}

TEST(Planner, HalvesUntilOneVoxelIsLeft)
{
  const auto         request = MakeRequest({ { 5, 7, 3, 1, 1 } }, 1, 1 << 20);
  std::vector<Chunk> open(1, Chunk{ request.region, InputBoxOf(request.region, request) });
  std::int64_t       single = 0;
  while (!open.empty())
  {
    const Chunk chunk = open.back();
    open.pop_back();
    const auto halves = HalveChunk(chunk, 2, request);
    if (halves.empty())
    {
      EXPECT_EQ(chunk.outputBox.NumberOfVoxels(), 1);
      ++single;
      continue;
    }
    ASSERT_EQ(halves.size(), 2u);
    EXPECT_EQ(halves[0].outputBox.NumberOfVoxels() + halves[1].outputBox.NumberOfVoxels(),
              chunk.outputBox.NumberOfVoxels());
    for (const Chunk & half : halves)
    {
      EXPECT_EQ(half.inputBox, PadAndCrop(half.outputBox, request.halo, request.image));
      open.push_back(half);
    }
  }
  EXPECT_EQ(single, 5 * 7 * 3);
}

TEST(Planner, HandlesImagesBeyond32Bits)
{
  const auto request = MakeRequest({ { 100000, 100000, 100000, 1, 1 } }, 5, std::size_t{ 16 } << 30);
  const Plan plan = MakePlan(request);
  EXPECT_LE(plan.deviceBytes, std::size_t{ 16 } << 30);
  EXPECT_GE(plan.bytesToDevice, 4e15);
  EXPECT_EQ(plan.chunks.back().outputBox.upper, request.image.upper);
}

/** Cutting gains nothing where loading, computing and storing do not overlap. */
TEST(Planner, OneAtATimeCutsOnlyForMemory)
{
  PlannerRequest request = MakeRequest({ { 256, 256, 256, 1, 1 } }, 1, std::size_t{ 1 } << 40);
  EXPECT_GT(MakePlan(request).chunks.size(), 1u) << "with overlap it pays to cut";
  request.oneAtATime = true;
  const Plan whole = MakePlan(request);
  EXPECT_EQ(whole.chunks.size(), 1u);
  EXPECT_EQ(whole.inputSlots, 1);
  EXPECT_EQ(whole.outputSlots, 1);
  request.devices[0].memory = std::size_t{ 60 } << 20;
  const Plan cut = MakePlan(request);
  EXPECT_GT(cut.chunks.size(), 1u);
  EXPECT_LE(cut.deviceBytes, request.devices[0].memory);
}

/** A second pass costs more than what overlap and other devices gain. */
TEST(Planner, WhatFitsIsNotCutWhereOnePassIsEnough)
{
  PlannerRequest request = MakeRequest({ { 256, 256, 256, 1, 1 } }, 1, std::size_t{ 1 } << 40);
  request.devices.push_back(request.devices[0]);
  EXPECT_GT(MakePlan(request).chunks.size(), 1u);
  request.wholeIfItFits = true;
  EXPECT_EQ(MakePlan(request).chunks.size(), 1u);
  request.devices[1].memory = std::size_t{ 60 } << 20;
  const Plan cut = MakePlan(request);
  EXPECT_GT(cut.chunks.size(), 1u);
  EXPECT_LE(cut.deviceBytes, request.devices[1].memory);
}

/** Images in place take no memory of the budget; scratch does. */
TEST(Planner, InPlaceOnlyScratchCounts)
{
  PlannerRequest request = MakeRequest({ { 256, 256, 256, 1, 1 } }, 1, std::size_t{ 1 } << 20);
  request.oneAtATime = true;
  request.inPlace = true;
  EXPECT_EQ(MakePlan(request).chunks.size(), 1u);
  request.concurrency = 3;
  int threads = 0;
  request.scratchBytes = [&threads](const ChunkShape & shape) {
    threads = shape.concurrency;
    return static_cast<std::size_t>(shape.outputBox.NumberOfVoxels());
  };
  const Plan plan = MakePlan(request);
  EXPECT_GE(plan.chunks.size(), 16u);
  EXPECT_LE(plan.deviceBytes, request.devices[0].memory);
  EXPECT_EQ(threads, 3);
}

/** Every third voxel along x, and twice as many along y: chunks have another input than output. */
TEST(Planner, ChunksOfAnotherGridFitTheMemory)
{
  PlannerRequest request = MakeRequest({ { 100, 60, 50, 1, 1 } }, 0, std::size_t{ 1 } << 20);
  request.image = Box::FromExtent({ { 300, 30, 50, 1, 1 } });
  request.mostInput = [](Coordinates output) {
    output[0] = 3 * output[0] - 2;
    output[1] = output[1] / 2 + 1;
    return output;
  };
  request.inputBox = [](Box output) {
    output.lower[0] *= 3;
    output.upper[0] = 3 * output.upper[0] - 2;
    output.lower[1] /= 2;
    output.upper[1] = (output.upper[1] + 1) / 2;
    return output;
  };
  for (std::size_t memory = std::size_t{ 4 } << 20; memory > 2000; memory /= 2)
  {
    request.devices[0].memory = memory;
    const Plan   plan = MakePlan(request);
    std::int64_t voxels = 0;
    EXPECT_LE(plan.deviceBytes, memory);
    for (const Chunk & chunk : plan.chunks)
    {
      voxels += chunk.outputBox.NumberOfVoxels();
      EXPECT_EQ(chunk.inputBox, request.inputBox(chunk.outputBox));
      EXPECT_LE(static_cast<std::size_t>(chunk.inputBox.NumberOfVoxels()) * sizeof(float), plan.inputBytes);
      EXPECT_LE(static_cast<std::size_t>(chunk.outputBox.NumberOfVoxels()) * sizeof(float), plan.outputBytes);
    }
    EXPECT_EQ(voxels, request.region.NumberOfVoxels());
  }
  request.devices[0].memory = 100;
  EXPECT_THROW(MakePlan(request), BudgetError);
}

} // namespace
