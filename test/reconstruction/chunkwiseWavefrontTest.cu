/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaForest.cuh"
#include "chunkwisePlanner.h"
#include "chunkwiseReconstructionImages.h"

#include <functional>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

/** Wavefronts in memory that both sides see. */
class Wavefront : public testing::Test
{
protected:
  void
  SetUp() override
  {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
    {
      GTEST_SKIP() << "no CUDA device";
    }
  }
  void
  TearDown() override
  {
    for (void * const block : m_Blocks)
    {
      EXPECT_EQ(cudaFree(block), cudaSuccess);
    }
  }
  template <typename T>
  T *
  Allocate(std::size_t n)
  {
    void * block = nullptr;
    EXPECT_EQ(cudaMallocManaged(&block, n * sizeof(T)), cudaSuccess);
    m_Blocks.push_back(block);
    T * const items = static_cast<T *>(block);
    std::fill(items, items + n, T{ 0 });
    return items;
  }

  /** One that gives up whenever a tile is done, and how often it was launched. `betweenLaunches` is asked whether to
   * stop. */
  std::int64_t
  Run(bool fullyConnected, const std::vector<std::uint8_t> & mask, std::vector<std::uint8_t> & state, const Box & box,
      const std::function<bool(const WavefrontImage<std::uint8_t> & image)> & betweenLaunches)
  {
    ReconstructionOperation operation;
    operation.fullyConnected = fullyConnected;
    operation.spatialDimension = 3;
    KernelCall call;
    call.operation = &operation;
    call.numberOfInputs = 1;
    call.inputs[0] = DenseView(Allocate<std::uint8_t>(mask.size()), PixelType::UInt8, box);
    call.output = DenseView(Allocate<std::uint8_t>(mask.size()), PixelType::UInt8, box);
    call.writable = call.image = box;
    call.scratch = Allocate<char>(WavefrontScratchBytes(operation, box, box, 1));
    call.changedSides = Allocate<std::uint32_t>(1);
    std::copy(mask.begin(), mask.end(), static_cast<std::uint8_t *>(call.inputs[0].data));
    const auto result = static_cast<std::uint8_t *>(call.output.data);
    std::copy(state.begin(), state.end(), result);
    const WavefrontShape shape(operation, box, box, 1);
    auto                 image = MakeWavefrontImage<std::uint8_t>(call, operation, shape);
    image.patience = 1;
    const std::int64_t launches =
      RunWavefront(image, shape, operation, ReconstructionCode<std::uint8_t>(false, false, 0), nullptr, [&] {
        return betweenLaunches(image);
      });
    std::copy(result, result + state.size(), state.begin());
    return launches;
  }

private:
  std::vector<void *> m_Blocks;
};

constexpr std::int64_t TilesOfRow = 200;

/** A row of planar tiles, in which a value has to go from the first voxel to the last. */
Box
MakeRow()
{
  return Box::FromExtent({ { TileShapeOf(true, 1).x * TilesOfRow, 1, 1, 1, 1 } });
}

// It once did not where to find the tiles to begin with took longer than its patience, as in images of 16 GiB.
TEST_F(Wavefront, ComesToAnEndHoweverSoonItGivesUp)
{
  const Box                       box = MakeRow();
  const std::vector<std::uint8_t> mask(static_cast<std::size_t>(box.NumberOfVoxels()), 9);
  std::vector<std::uint8_t>       state(mask.size(), 0);
  state[0] = 9;
  std::int64_t       looks = 0;
  const std::int64_t launches =
    Run(false, mask, state, box, [&](const WavefrontImage<std::uint8_t> &) { return ++looks > 2 * TilesOfRow; });
  EXPECT_GT(launches, 1) << "it never gave up";
  EXPECT_LE(launches, TilesOfRow + 1) << "launches that did no tile";
  EXPECT_EQ(state, mask);
}

// To look through the whole image again took as long as the work between.
TEST_F(Wavefront, GoesOnWithWhatIsLeftAndLooksForNothingElse)
{
  const Box                       box = MakeRow();
  const std::vector<std::uint8_t> mask(static_cast<std::size_t>(box.NumberOfVoxels()), 9);
  std::vector<std::uint8_t>       state(mask.size(), 0);
  // The state that the first launch left is dropped.
  state.front() = 9;
  std::int64_t looks = 0;
  std::int64_t open = 0;
  Run(false, mask, state, box, [&](const WavefrontImage<std::uint8_t> & image) {
    if (++looks == 2)
    {
      open = std::count_if(
        image.entries, image.entries + image.numberOfTiles, [](std::uint32_t entry) { return entry != 0; });
      EXPECT_EQ(*image.open, open);
      std::fill(image.entries, image.entries + image.numberOfTiles, 0);
      *image.open = 0;
    }
    return looks > 2 * TilesOfRow;
  });
  EXPECT_GT(open, 0);
  EXPECT_EQ(state.back(), 0) << "tiles were opened again";
  EXPECT_LE(looks, 4);
}

TEST_F(Wavefront, WhatGivesUpIsWhatGoesOn)
{
  for (const Coordinates & extent : { Coordinates{ { 700, 500, 1, 1, 1 } }, Coordinates{ { 100, 90, 80, 1, 1 } } })
  {
    const Box                       box = Box::FromExtent(extent);
    const std::vector<std::uint8_t> mask = Noise<std::uint8_t>(box, 2, 255);
    std::vector<std::uint8_t>       marker(mask.size());
    for (std::size_t i = 0; i < mask.size(); ++i)
    {
      marker[i] = static_cast<std::uint8_t>(std::max(mask[i] - 60, 0));
    }
    for (const bool fullyConnected : { false, true })
    {
      std::vector<std::uint8_t> atOnce = marker;
      std::vector<std::uint8_t> inSteps = marker;
      const auto                goesOn = [](const WavefrontImage<std::uint8_t> &) { return false; };
      std::int64_t              looks = 0;
      const auto                fails = [&](const WavefrontImage<std::uint8_t> &) { return ++looks > 100000; };
      Run(fullyConnected, mask, atOnce, box, goesOn);
      EXPECT_GT(Run(fullyConnected, mask, inSteps, box, fails), 1);
      EXPECT_EQ(inSteps, atOnce);
    }
  }
}

// The code below runs on the host alone.

std::size_t
ScratchOf(const ReconstructionOperation & operation, const Box & own, const Box & image)
{
  return WavefrontScratchBytes(operation, own, image, 1) + ForestScratchBytes(operation, own, image, 1);
}

TEST(WavefrontScratch, AnImageTooLargeForAForestHasNoRoomForOneAndStaysWhole)
{
  const auto operation = std::make_shared<ReconstructionOperation>();
  operation->spatialDimension = 3;
  const Box large = Box::FromExtent({ { 4096, 4096, 1024, 1, 1 } });
  EXPECT_EQ(ForestScratchBytes(*operation, large, large, 1), 0u);
  const Box small = Box::FromExtent({ { 512, 512, 512, 1, 1 } });
  EXPECT_GT(ForestScratchBytes(*operation, small, small, 1), static_cast<std::size_t>(small.NumberOfVoxels()));

  // 16 GiB, in the memory that a device of 140 has beside both images.
  PlannerRequest request;
  request.image = request.region = large;
  request.halo = operation->GetHalo(large.Extents());
  request.inPlace = request.oneAtATime = true;
  request.carryHalo = false;
  request.visitSeconds = 1e-3;
  request.scratchBytes = [&](const ChunkShape & shape) { return ScratchOf(*operation, shape.outputBox, shape.image); };
  request.devices.resize(1);
  request.devices[0].memory = std::size_t{ 100 } << 30;
  EXPECT_EQ(MakePlan(request).chunks.size(), 1u);
}

TEST(WavefrontScratch, DoesNotShrinkAsChunksGrow)
{
  ReconstructionOperation operation;
  operation.spatialDimension = 3;
  for (const ReconstructionMethod method : { ReconstructionMethod::Auto, ReconstructionMethod::SpanningForest })
  {
    operation.method = method;
    const Box   image = Box::FromExtent({ { 1024, 1024, 512, 9, 1 } });
    std::size_t before = 0;
    for (std::int64_t planes = 1; planes <= 512; ++planes)
    {
      const std::size_t bytes = ScratchOf(operation, Box::FromExtent({ { 1024, 1024, planes, 1, 1 } }), image);
      ASSERT_GE(bytes, before) << planes;
      before = bytes;
    }
    for (std::int64_t volumes = 1; volumes <= 9; ++volumes)
    {
      const std::size_t bytes = ScratchOf(operation, Box::FromExtent({ { 1024, 1024, 512, volumes, 1 } }), image);
      ASSERT_GE(bytes, before) << volumes;
      before = bytes;
    }
  }
}

} // namespace
