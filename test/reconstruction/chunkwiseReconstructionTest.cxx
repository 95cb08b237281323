/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseComputeSanitizer.h"
#include "chunkwiseFloodTrial.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseReconstructionImages.h"
#include "chunkwiseSpecialValues.h"
#include "chunkwiseSpyControl.h"

#include <atomic>
#include <cmath>
#include <cstdlib>

using namespace chunkwise;

namespace
{

class Reconstruction : public KernelTest
{
protected:
  /** Room for small chunks; the CPU's kernels, which fake devices run too, have queues beside them. */
  template <typename T>
  Budgets
  MakeBudgets(std::size_t room) const
  {
    const std::size_t queue = 40000 * sizeof(T);
    Budgets           budgets;
    budgets.device = room + (GetParam() == Place::Fake ? queue : 0);
    budgets.host = GetParam() == Place::Cpu ? room / 2 + queue : 0;
    return budgets;
  }

  /** The number of chunks, 0 if the smallest one of this trial is larger than there is room for. */
  template <typename TTrial>
  std::size_t
  ExpectOracleInChunks(TTrial & trial, const Budgets & budgets)
  {
    ExecutionReport report;
    try
    {
      trial.ExpectOracle(trial.Run(GetManager(), GetBackend(), budgets, &report));
    }
    catch (const BudgetError &)
    {
      return 0;
    }
    return report.plan.chunks.size();
  }
};

TEST_P(Reconstruction, IsWhatItsDefinitionSays)
{
  std::mt19937 random(91);
  for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
  {
    DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
      using Pixel = decltype(pixel);
      for (int trial = 0; trial < 120; ++trial)
      {
        auto t = RandomTrial<Pixel>(random, trial % 10 == 0 ? 24 : 9);
        t.ExpectOracle(t.Run(GetManager(), GetBackend(), Budgets()));
        if (testing::Test::HasFatalFailure())
        {
          return;
        }
      }
    });
  }
}

TEST_P(Reconstruction, AnyChunksGiveTheSame)
{
  std::mt19937 random(92);
  std::size_t  most = 0;
  const auto   compare = [&](auto pixel, int trials) {
    for (int trial = 0; trial < trials && !testing::Test::HasFatalFailure(); ++trial)
    {
      auto          t = RandomTrial<decltype(pixel)>(random, 14);
      const Budgets budgets = MakeBudgets<decltype(pixel)>(4000 + random() % 30000);
      most = std::max(most, ExpectOracleInChunks(t, budgets));
    }
  };
  compare(std::uint8_t{}, 60);
  compare(std::uint16_t{}, 30);
  compare(std::int32_t{}, 30);
  compare(float{}, 60);
  compare(double{}, 30);
  EXPECT_GT(most, 3u) << "no image was cut";
}

/** Chunks of several tiles hand on to others. */
TEST_P(Reconstruction, AnyHeapsGiveTheSame)
{
  std::mt19937 random(93);
  std::size_t  most = 0;
  const int    trials = IsUnderComputeSanitizer() ? 2 : 20;
  const auto   compare = [&](auto pixel) {
    for (int trial = 0; trial < trials && !testing::Test::HasFatalFailure(); ++trial)
    {
      auto t = RandomTrial<decltype(pixel)>(random, 40);
      t.operation->method = ReconstructionMethod::ParallelHeapCluster;
      t.operation->nodeItems = 1 << random() % 4;
      t.operation->heaps = 1 + random() % 40;
      const Budgets budgets = MakeBudgets<decltype(pixel)>(100000 + random() % 300000);
      most = std::max(most, ExpectOracleInChunks(t, budgets));
    }
  };
  compare(std::uint8_t{});
  compare(std::uint16_t{});
  compare(float{});
  compare(double{});
  EXPECT_GT(most, IsUnderComputeSanitizer() ? 1u : 3u) << "no image was cut";
}

/** Almost every voxel can raise another, which is more than heaps have room for. */
TEST_P(Reconstruction, HeapsFindAgainWhatTheyHadNoRoomFor)
{
  std::mt19937 random(94);
  for (const std::int64_t nodeItems : { 1, 3, 64 })
  {
    FloodTrial<std::uint16_t> t;
    t.box = Box::FromExtent({ { 128, IsUnderComputeSanitizer() ? 8 : 64, 1, 1, 1 } });
    t.operation->method = ReconstructionMethod::ParallelHeapCluster;
    t.operation->fullyConnected = true;
    t.operation->heaps = 2;
    t.operation->nodeItems = nodeItems;
    t.mask.resize(static_cast<std::size_t>(t.box.NumberOfVoxels()));
    t.marker.resize(t.mask.size());
    FillRandomly(random, t.mask, 1);
    FillRandomly(random, t.marker, 1);
    t.ExpectOracle(t.Run(GetManager(), GetBackend(), Budgets()));
  }
}

/** Forests of one basin that rises through all tiles, of the most possible basins, with more edges than there is room
 * for, and of noise. */
TEST_P(Reconstruction, ForestsOfFewBasinsAndOfManyAreRight)
{
  std::mt19937 random(95);
  const bool   isSlow = IsUnderComputeSanitizer();
  for (const Coordinates & extent : { Coordinates{ { 150, isSlow ? 3 : 130, 1, 1, 2 } },
                                      Coordinates{ { 70, isSlow ? 3 : 35, 20, 1, 1 } },
                                      Coordinates{ { 3, 1, 1, 200, 1 } } })
  {
    for (int kind = 0; kind < 8; ++kind)
    {
      FloodTrial<std::uint16_t> t;
      t.box = Box::FromExtent(extent);
      t.operation->method = ReconstructionMethod::SpanningForest;
      t.operation->fullyConnected = kind % 2;
      t.mask.resize(static_cast<std::size_t>(t.box.NumberOfVoxels()));
      t.marker.resize(t.mask.size());
      FillRandomly(random, t.mask, 1);
      const BufferView mask = DenseView(t.mask.data(), PixelType::UInt16, t.box);
      ForEachIndex(t.box, [&](const Coordinates & index) {
        auto & value = At<std::uint16_t>(mask, index);
        if (kind / 2 == 0)
        {
          value = static_cast<std::uint16_t>(100 * index[0] + index[1] + index[2]);
        }
        else if (kind / 2 == 1)
        {
          value = 9;
        }
        else if (kind / 2 == 2)
        {
          const bool isTop = t.operation->fullyConnected ? index[0] % 2 == 0 && index[1] % 2 == 0 && index[2] % 2 == 0
                                                         : (index[0] + index[1] + index[2]) % 2 == 0;
          value = static_cast<std::uint16_t>(value / 2 + (isTop ? 0x8000 : 0));
        }
      });
      for (std::uint16_t & value : t.marker)
      {
        value = static_cast<std::uint16_t>(random() % 1000 ? 0 : random());
      }
      t.ExpectOracle(t.Run(GetManager(), GetBackend(), Budgets()));
    }
  }
}

/** One way through the whole image, forth and back across all parts and chunks. */
TEST_P(Reconstruction, GoesThroughSerpentines)
{
  for (const int axis : { 0, 1, 2 })
  {
    for (const std::int64_t part : { 0, 1, 200 })
    {
      for (const auto method : { ReconstructionMethod::TileWavefront,
                                 ReconstructionMethod::SpanningForest,
                                 ReconstructionMethod::ParallelHeapCluster })
      {
        FloodTrial<std::uint16_t> t;
        t.box = Box::FromExtent({ { 33, 31, 5, 1, 1 } });
        t.operation->partVoxels = part;
        t.operation->method = method;
        t.operation->heaps = 2;
        t.operation->nodeItems = 2;
        t.operation->patience = 1000 * axis;
        t.mask.assign(static_cast<std::size_t>(t.box.NumberOfVoxels()), 0);
        t.marker = t.mask;
        const BufferView mask = DenseView(t.mask.data(), PixelType::UInt16, t.box);
        ForEachIndex(t.box, [&](const Coordinates & index) {
          // Corridors along `axis`, every second row open, joined at alternating ends.
          const int          across = axis == 0 ? 1 : 0;
          const std::int64_t row = index[across];
          const bool         joint = row % 4 == 1 ? index[axis] == t.box.upper[axis] - 1 : index[axis] == 0;
          At<std::uint16_t>(mask, index) =
            static_cast<std::uint16_t>(row % 2 == 0 || joint ? 60000 - 3 * (row * 40 + index[axis]) : 7);
        });
        t.marker[0] = 65535;
        t.ExpectOracle(t.Run(GetManager(), GetBackend(), MakeBudgets<std::uint16_t>(40000)));
      }
    }
  }
}

TEST_P(Reconstruction, VisitsStayWhereChunksMeet)
{
  // Every so often a voxel that lets nothing through: nothing goes far.
  std::mt19937             random(95);
  FloodTrial<std::uint8_t> t;
  t.box = Box::FromExtent({ { 1, 240000, 1, 1, 1 } });
  t.operation->method = ReconstructionMethod::TileWavefront;
  t.operation->patience = 1e9;
  t.mask.resize(static_cast<std::size_t>(t.box.NumberOfVoxels()));
  FillRandomly(random, t.mask, 1);
  for (std::size_t y = 0; y < t.mask.size(); y += 7)
  {
    t.mask[y] = 0;
  }
  t.marker = t.mask;
  for (std::uint8_t & value : t.marker)
  {
    value = random() % 5 ? 0 : value;
  }
  ExecutionReport report;
  t.ExpectOracle(t.Run(GetManager(), GetBackend(), MakeBudgets<std::uint8_t>(130000), &report));
  ASSERT_GT(report.plan.chunks.size(), 4u);
  EXPECT_LE(report.revisits, 2 * static_cast<std::int64_t>(report.plan.chunks.size()));
  EXPECT_LT(report.revisitedVoxels, t.box.NumberOfVoxels() / 10);
  EXPECT_FALSE(report.solvedGlobally);
}

TEST_P(Reconstruction, WhatGoesFarTakesFewVisits)
{
  // From the end, against the order of the chunks.
  FloodTrial<std::uint8_t> t;
  t.box = Box::FromExtent({ { 1, 240000, 1, 1, 1 } });
  t.operation->method = ReconstructionMethod::TileWavefront;
  t.operation->patience = 1e9;
  t.mask.assign(static_cast<std::size_t>(t.box.NumberOfVoxels()), 9);
  t.marker.assign(t.mask.size(), 0);
  t.marker.back() = 7;
  ExecutionReport report;
  t.ExpectOracle(t.Run(GetManager(), GetBackend(), MakeBudgets<std::uint8_t>(130000), &report));
  const auto chunks = static_cast<std::int64_t>(report.plan.chunks.size());
  ASSERT_GT(chunks, 4);
  EXPECT_GE(report.revisits, chunks - 1);
  EXPECT_LT(report.revisits, 20 * chunks);
  EXPECT_LT(report.revisitedVoxels, 2 * t.box.NumberOfVoxels());
}

TEST_P(Reconstruction, TheHostSettlesWhatGoesFromChunkToChunk)
{
  FloodTrial<std::uint8_t> t;
  t.box = Box::FromExtent({ { 501, 501, 1, 1, 1 } });
  t.operation->method = ReconstructionMethod::TileWavefront;
  t.operation->partVoxels = 900;
  t.mask = Spiral<std::uint8_t>(t.box);
  t.marker.assign(t.mask.size(), 0);
  t.marker[0] = 255;
  ChunkShape shape;
  shape.inputBox = shape.outputBox = shape.image = t.box;
  shape.outputKind = PixelType::UInt8;
  shape.concurrency = 3;
  const std::size_t bytes =
    GetHostKernels().Find("reconstruction", &KernelSet::solveGlobally)->scratchBytes(*t.operation, shape);
  std::int64_t visits[3] = {};
  for (const int how : { 0, 1, 2 })
  {
    const bool isPatient = how == 1;
    const bool hasMemory = how != 2;
    t.operation->patience = isPatient ? 1e9 : 1;
    Budgets budgets = MakeBudgets<std::uint8_t>(140000);
    budgets.host = (bytes + 255) / 256 * 256 - (hasMemory ? 0 : 256);
    GetManager().ReleaseMemory();
    ExecutionReport report;
    t.ExpectOracle(t.Run(GetManager(), GetBackend(), budgets, &report));
    ASSERT_GT(report.plan.chunks.size(), 1u);
    EXPECT_EQ(report.solvedGlobally, !isPatient && hasMemory);
    EXPECT_LE(report.peakHost, budgets.host);
    visits[how] = report.revisits;
  }
  EXPECT_LT(2 * visits[0], visits[1]);
  EXPECT_LT(2 * visits[0], visits[2]);
}

/** From the marker itself the borders of tiles get what the reconstruction has there, and nothing gets more. */
TEST(ReconstructionSettle, BordersOfTilesAreRight)
{
  constexpr std::int64_t tile = 7;
  std::mt19937           random(97);
  for (int trial = 0; trial < 40; ++trial)
  {
    FloodTrial<std::uint16_t> t;
    t.box = Box::FromExtent({ { 40, 33, 1, 1, 1 } });
    t.operation->fullyConnected = random() % 2;
    t.operation->partVoxels = tile * tile;
    t.mask.resize(static_cast<std::size_t>(t.box.NumberOfVoxels()));
    t.marker.resize(t.mask.size());
    FillRandomly(random, t.mask, trial % 4);
    FillRandomly(random, t.marker, trial % 4);
    for (std::size_t i = 0; i < t.mask.size(); ++i)
    {
      t.marker[i] = random() % 15 ? 0 : std::min(t.marker[i], t.mask[i]);
    }
    const auto                 threads = MakeThreadExecutor(3);
    const Kernel &             kernel = *GetHostKernels().Find("reconstruction", &KernelSet::solveGlobally);
    std::vector<std::uint16_t> state = t.marker;
    ChunkShape                 shape;
    shape.inputBox = shape.outputBox = shape.image = t.box;
    shape.outputKind = PixelType::UInt16;
    shape.concurrency = 3;
    std::vector<std::uint64_t> scratch(kernel.scratchBytes(*t.operation, shape) / 8 + 1);
    KernelCall                 call;
    call.operation = t.operation.get();
    call.numberOfInputs = 2;
    call.inputs[0] = DenseView(t.marker.data(), PixelType::UInt16, t.box);
    call.inputs[1] = DenseView(t.mask.data(), PixelType::UInt16, t.box);
    call.output = DenseView(state.data(), PixelType::UInt16, t.box);
    call.writable = call.image = t.box;
    call.scratch = scratch.data();
    call.scratchBytes = scratch.size() * 8;
    call.executor = threads.get();
    kernel.run(call);
    const std::vector<std::uint16_t> expected = oracle::Run(*t.operation, t.box, t.marker, t.second, t.mask);
    std::size_t                      at = 0;
    ForEachIndex(t.box, [&](const Coordinates & index) {
      bool atBorder = false;
      for (int a = 0; a < 2; ++a)
      {
        atBorder = atBorder || (index[a] % tile == 0 && index[a] > 0) ||
                   (index[a] % tile == tile - 1 && index[a] + 1 < t.box.upper[a]);
      }
      ASSERT_EQ(state[at], atBorder ? expected[at] : t.marker[at]) << ToString(index) << " of trial " << trial;
      ++at;
    });
  }
}

/** Each volume by itself, in however many chunks. */
TEST_P(Reconstruction, FlatVolumesAreExtremaAsAsked)
{
  std::size_t most = 0;
  for (const bool is : { true, false })
  {
    for (const int spatialDimension : { 2, 3 })
    {
      for (const std::uint8_t level : { 0, 9, 255 })
      {
        for (const bool erosion : { false, true })
        {
          FloodTrial<std::uint8_t> t;
          t.box = Box::FromExtent({ { 60, 50, 4, 3, 1 } });
          t.operation->marker = ReconstructionMarker::NextBelow;
          t.operation->result = ReconstructionResult::Extrema;
          t.operation->spatialDimension = spatialDimension;
          t.operation->erosion = erosion;
          t.operation->flatIsExtremum = is;
          t.operation->extremum = 200;
          t.operation->elsewhere = 100;
          t.mask.assign(static_cast<std::size_t>(t.box.NumberOfVoxels()), level);
          // The second volume along the fourth axis is not flat, at its last voxel.
          t.mask[2 * t.mask.size() / 3 - 1] = level == 9 ? 10 : 9;
          const Budgets budgets = MakeBudgets<std::uint8_t>(6000);
          most = std::max(most, ExpectOracleInChunks(t, budgets));
          t.ExpectOracle(t.Run(GetManager(), GetBackend(), Budgets()));
        }
      }
    }
  }
  EXPECT_GT(most, 3u) << "no image was cut";
}

TEST(ReconstructionOperation, FlatIsInItsKey)
{
  ReconstructionOperation operation;
  const std::string       key = operation.GetKey();
  operation.flatIsExtremum = false;
  EXPECT_NE(operation.GetKey(), key);
}

TEST(ReconstructionOperation, AMarkerBeyondTheMaskIsFound)
{
  const Box          box = Box::FromExtent({ { 7, 5, 3, 2, 1 } });
  std::vector<float> marker(static_cast<std::size_t>(box.NumberOfVoxels()), 1.5f);
  std::vector<float> mask(marker.size(), 1.5f);
  const BufferView   from = DenseView(marker.data(), PixelType::Float32, box);
  const BufferView   limit = DenseView(mask.data(), PixelType::Float32, box);
  const Coordinates  index = { { 3, 4, 1, 1, 0 } };
  At<float>(from, { { 0, 0, 0, 1, 0 } }) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(FindMarkerBeyondMask(false, from, limit, box));
  At<float>(from, index) = 2.25f;
  EXPECT_FALSE(FindMarkerBeyondMask(true, from, limit, box));
  const auto beyond = FindMarkerBeyondMask(false, from, limit, box);
  ASSERT_TRUE(beyond);
  EXPECT_EQ(beyond->index, index);
  EXPECT_EQ(beyond->marker, "2.25");
  EXPECT_EQ(beyond->mask, "1.5");
  EXPECT_TRUE(FindMarkerBeyondMask(true, limit, from, box));
  Box region = box;
  region.upper[3] = 1;
  EXPECT_FALSE(FindMarkerBeyondMask(false, from, limit, region));
  EXPECT_THROW(FindMarkerBeyondMask(false, from, DenseView(mask.data(), PixelType::Int32, box), box), ParameterError);
}

/** One call of the CPU's kernel from the marker, without what begins and ends a run. */
template <typename T>
void
FloodOnce(const FloodTrial<T> & t, std::vector<T> & state, RunControl & control, unsigned int concurrency)
{
  const auto     threads = MakeThreadExecutor(concurrency);
  const Kernel & kernel = *GetHostKernels().Find("reconstruction");
  ChunkShape     shape;
  shape.inputBox = shape.outputBox = shape.image = t.box;
  shape.outputKind = PixelTypeOf<T>();
  shape.concurrency = static_cast<int>(concurrency);
  std::vector<std::uint64_t> scratch(kernel.scratchBytes(*t.operation, shape) / 8 + 1);
  KernelCall                 call;
  call.operation = t.operation.get();
  call.numberOfInputs = 2;
  call.inputs[0] = DenseView(const_cast<T *>(t.marker.data()), PixelTypeOf<T>(), t.box);
  call.inputs[1] = DenseView(const_cast<T *>(t.mask.data()), PixelTypeOf<T>(), t.box);
  call.output = DenseView(state.data(), PixelTypeOf<T>(), t.box);
  call.writable = call.image = t.box;
  call.scratch = scratch.data();
  call.scratchBytes = scratch.size() * 8;
  call.executor = threads.get();
  call.control = &control;
  kernel.run(call);
}

/** A marker whose values have far to go between voxels of a random mask. */
FloodTrial<std::uint16_t>
MakeLongFlood(const Coordinates & extent)
{
  std::mt19937              random(98);
  FloodTrial<std::uint16_t> t;
  t.box = Box::FromExtent(extent);
  t.mask.resize(static_cast<std::size_t>(t.box.NumberOfVoxels()));
  t.marker.assign(t.mask.size(), 0);
  FillRandomly(random, t.mask, 1);
  for (std::size_t i = 0; i < t.mask.size(); i += 5000)
  {
    t.marker[i] = t.mask[i];
  }
  return t;
}

TEST(ReconstructionKernel, ReportsItsProgressInManySteps)
{
  for (const Coordinates & extent : { Coordinates{ { 96, 96, 96, 1, 1 } },
                                      Coordinates{ { 1000, 900, 1, 1, 1 } },
                                      Coordinates{ { 90, 80, 7, 9, 1 } } })
  {
    const auto                 t = MakeLongFlood(extent);
    std::vector<std::uint16_t> first;
    for (const unsigned int concurrency : { 1u, 3u })
    {
      std::vector<std::uint16_t> state = t.marker;
      SpyControl                 control;
      FloodOnce(t, state, control, concurrency);
      first = first.empty() ? state : first;
      EXPECT_EQ(state, first);
      EXPECT_EQ(control.GetVoxels(), t.box.NumberOfVoxels());
      EXPECT_GE(control.CountSteps(), 36u) << ToString(extent);
      EXPECT_GT(control.GetSmallestStep(), 0);
    }
  }
}

TEST(ReconstructionKernel, AStopIsSeenSoon)
{
  for (const Coordinates & extent : { Coordinates{ { 96, 96, 96, 1, 1 } }, Coordinates{ { 1000, 900, 1, 1, 1 } } })
  {
    const auto t = MakeLongFlood(extent);
    for (const int percent : { 0, 5, 20, 40, 55, 65 })
    {
      std::vector<std::uint16_t> state = t.marker;
      const std::int64_t         stopAt = t.box.NumberOfVoxels() * percent / 100;
      SpyControl                 control(stopAt);
      FloodOnce(t, state, control, 2);
      EXPECT_GE(control.GetVoxels(), stopAt);
      EXPECT_LT(control.GetVoxels(), stopAt + t.box.NumberOfVoxels() / 10) << ToString(extent) << " " << percent << "%";
      EXPECT_EQ(state, t.marker) << "what was stopped is not stored";
    }
  }
}

/** The previous content of a device's memory makes no difference. */
TEST_P(Reconstruction, AHundredRunsOnPoisonedMemoryAreTheSame)
{
  std::mt19937 random(96);
  auto         t = RandomTrial<std::uint16_t>(random, 40);
  while (t.box.NumberOfVoxels() < 2000)
  {
    t = RandomTrial<std::uint16_t>(random, 40);
  }
  t.operation->method = ReconstructionMethod::Auto;
  const std::vector<std::uint16_t> first = t.Run(GetManager(), GetBackend(), Budgets());
  t.ExpectOracle(first);
  std::vector<unsigned char> poison(std::size_t{ 4 } << 20);
  for (int run = 0; run < (IsUnderComputeSanitizer() ? 3 : 100); ++run)
  {
    GetManager().ReleaseMemory();
    for (unsigned char & byte : poison)
    {
      byte = static_cast<unsigned char>(random() >> 8);
    }
    for (const auto & device : GetManager().GetDevices())
    {
      const StreamHandle stream = device->CreateStream();
      void * const       memory = device->Allocate(poison.size());
      device->CopyToDevice(memory, poison.data(), poison.size(), stream);
      device->Synchronize(stream);
      device->Free(memory);
      device->DestroyStream(stream);
    }
    // Whole, and in chunks.
    const Budgets budgets = run % 2 ? MakeBudgets<std::uint16_t>(20000) : Budgets();
    ASSERT_EQ(t.Run(GetManager(), GetBackend(), budgets), first) << "run " << run;
  }
}

/** An image of 4 GB and as much for its result, on a CUDA device in one chunk: only where the environment has
 * CHUNKWISE_TEST_LARGE. */
TEST_P(Reconstruction, MoreThan2To31VoxelsAreRight)
{
  if (!std::getenv("CHUNKWISE_TEST_LARGE") || GetParam() == Place::Fake)
  {
    GTEST_SKIP() << "CHUNKWISE_TEST_LARGE is not set, or the device is a fake one";
  }
  constexpr std::int64_t n = 46400;
  const Box              box = Box::FromExtent({ { n, n, 1, 1, 1 } });
  ASSERT_GT(box.NumberOfVoxels(), std::int64_t{ 1 } << 31);
  // A frame of 200 from which a wall of 3 lets 3 through to what it surrounds.
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(box.NumberOfVoxels()), 90);
  std::vector<std::uint8_t> result(mask.size(), 55);
  const auto                isWithin = [](std::int64_t x, std::int64_t y, std::int64_t distance) {
    return std::min({ x, y, n - 1 - x, n - 1 - y }) >= distance;
  };
  const auto threads = MakeThreadExecutor();
  threads->ParallelFor(n, [&](std::int64_t y, unsigned int) {
    for (std::int64_t x = 0; x < n; ++x)
    {
      std::uint8_t & value = mask[static_cast<std::size_t>(y * n + x)];
      value = isWithin(x, y, 6) ? static_cast<std::uint8_t>(90 + (x ^ y) % 100) : isWithin(x, y, 5) ? 3 : 200;
    }
  });
  ExecutionRequest request;
  const auto       operation = std::make_shared<ReconstructionOperation>();
  operation->marker = ReconstructionMarker::Border;
  request.operation = operation;
  request.image = request.region = box;
  request.backend = GetBackend();
  request.executor = threads.get();
  // The CPU's queues for all of it would take more than the images.
  request.budgets.host = std::size_t{ 1 } << 30;
  request.inputs.push_back(DenseView(mask.data(), PixelType::UInt8, box));
  request.output = DenseView(result.data(), PixelType::UInt8, box);
  GetManager().Execute(request);
  std::atomic<std::int64_t> wrong{ 0 };
  threads->ParallelFor(n, [&](std::int64_t y, unsigned int) {
    std::int64_t ofRow = 0;
    for (std::int64_t x = 0; x < n; ++x)
    {
      ofRow += result[static_cast<std::size_t>(y * n + x)] != (isWithin(x, y, 5) ? 3 : 200);
    }
    wrong += ofRow;
  });
  EXPECT_EQ(wrong, 0);
  GetManager().ReleaseMemory();
}

INSTANTIATE_TEST_SUITE_P(Places, Reconstruction, testing::Values(Place::Cpu, Place::Fake, Place::Cuda),
                         [](const testing::TestParamInfo<Place> & info) {
                           return info.param == Place::Cpu ? "Cpu" : info.param == Place::Fake ? "Fake" : "Cuda";
                         });

std::string
MessageOf(const std::shared_ptr<ReconstructionOperation> & operation, const Box & region, PixelType markerKind)
{
  Manager                   manager({});
  const Box                 box = Box::FromExtent({ { 4, 3, 2, 1, 1 } });
  std::vector<std::uint8_t> pixels(24 * 4);
  std::vector<std::uint8_t> output(24);
  ExecutionRequest          request;
  request.operation = operation;
  request.image = box;
  request.region = region;
  if (operation->GetNumberOfInputs() == 2)
  {
    request.inputs.push_back(DenseView(pixels.data(), markerKind, box));
  }
  request.inputs.push_back(DenseView(pixels.data(), PixelType::UInt8, box));
  request.output = DenseView(output.data(), PixelType::UInt8, box);
  try
  {
    manager.Execute(request);
  }
  catch (const ParameterError & error)
  {
    return error.what();
  }
  return "";
}

TEST(ReconstructionOperation, BadRequestsAreNamed)
{
  const Box  whole = Box::FromExtent({ { 4, 3, 2, 1, 1 } });
  const auto make = [] { return std::make_shared<ReconstructionOperation>(); };
  EXPECT_EQ(MessageOf(make(), whole, PixelType::UInt8), "");
  auto operation = make();
  operation->spatialDimension = 4;
  EXPECT_NE(MessageOf(operation, whole, PixelType::UInt8).find("SpatialDimension: 4"), std::string::npos);
  operation = make();
  operation->marker = ReconstructionMarker::Shifted;
  operation->height = -3;
  EXPECT_NE(MessageOf(operation, whole, PixelType::UInt8).find("Height: -3"), std::string::npos);
  operation = make();
  operation->heaps = -1;
  EXPECT_NE(MessageOf(operation, whole, PixelType::UInt8).find("NumberOfHeaps: -1"), std::string::npos);
  operation = make();
  operation->nodeItems = ReconstructionOperation::MaxNodeItems + 1;
  EXPECT_NE(MessageOf(operation, whole, PixelType::UInt8).find("HeapNodeSize: 257"), std::string::npos);
  EXPECT_NE(MessageOf(make(), whole, PixelType::Float32).find("float32"), std::string::npos);
  Box part = whole;
  part.upper[1] = 2;
  EXPECT_NE(MessageOf(make(), part, PixelType::UInt8).find("axis 1"), std::string::npos);
  operation = make();
  operation->spatialDimension = 2;
  part = whole;
  part.upper[2] = 1;
  EXPECT_EQ(MessageOf(operation, part, PixelType::UInt8), "") << "slices are independent";
}

} // namespace
