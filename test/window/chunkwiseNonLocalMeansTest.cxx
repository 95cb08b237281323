/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDefinitionTrial.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwisePatchWeight.h"

#include <cmath>

using namespace chunkwise;

namespace
{

class NonLocalMeans : public KernelTest
{};

std::shared_ptr<NonLocalMeansOperation>
RandomMeans(std::mt19937 & random, int largestRadius)
{
  const auto operation = std::make_shared<NonLocalMeansOperation>();
  for (const int a : RandomAxes(random))
  {
    operation->search[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(largestRadius + 1));
    operation->patch[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(largestRadius + 1));
  }
  operation->boundary = { AllModes[random() % 6], static_cast<double>(random() % 100) };
  // Voxels differ by 30 or so.
  operation->strength = 5 + static_cast<double>(random() % 60);
  operation->noise = static_cast<double>(random() % 2) * 40;
  return operation;
}

/** The voxel at `index` as the boundary mode says; false where there is none. */
template <typename T>
bool
Look(const BufferView & image, const NonLocalMeansOperation & operation, Coordinates index, long double & value)
{
  bool there = true;
  for (int a = 0; a < MaxDimension; ++a)
  {
    there = oracle::Look(index[a], image.box.upper[a], operation.boundary.mode) && there;
  }
  if (there)
  {
    value = static_cast<long double>(At<T>(image, index));
    return true;
  }
  value = operation.boundary.constant.ToDouble();
  return operation.boundary.mode == BoundaryMode::Constant;
}

template <typename T>
long double
Expected(const BufferView & image, const NonLocalMeansOperation & operation, const Coordinates & p)
{
  Box search{};
  Box patch{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    search.lower[a] = -operation.search[a];
    search.upper[a] = operation.search[a] + 1;
    patch.lower[a] = -operation.patch[a];
    patch.upper[a] = operation.patch[a] + 1;
  }
  const auto sum = [](Coordinates a, const Coordinates & b) {
    for (int i = 0; i < MaxDimension; ++i)
    {
      a[i] += b[i];
    }
    return a;
  };
  long double weighted = 0;
  long double weights = 0;
  ForEachIndex(search, [&](const Coordinates & shift) {
    long double voxel = 0;
    if (!Look<T>(image, operation, sum(p, shift), voxel))
    {
      return;
    }
    long double squares = 0;
    int         count = 0;
    ForEachIndex(patch, [&](const Coordinates & offset) {
      long double a = 0;
      long double b = 0;
      if (Look<T>(image, operation, sum(p, offset), a) && Look<T>(image, operation, sum(sum(p, shift), offset), b))
      {
        squares += (a - b) * (a - b);
        ++count;
      }
    });
    const long double excess = std::max(squares / count - 2 * operation.noise, 0.0L);
    const long double weight = std::exp(-excess / (operation.strength * operation.strength));
    weighted += weight * voxel;
    weights += weight;
  });
  return weighted / weights;
}

TEST_P(NonLocalMeans, AreWhatTheirDefinitionSays)
{
  std::mt19937 random(101);
  ForEachPairOfKinds([&](auto in, auto out) {
    using In = decltype(in);
    CompareWithDefinition<In, decltype(out)>(
      random,
      GetManager(),
      GetBackend(),
      8,
      [&](int trial) { return RandomMeans(random, trial % 4 == 0 ? 4 : 2); },
      [&](int trial, std::vector<In> & pixels) {
        for (In & pixel : pixels)
        {
          pixel = static_cast<In>(random() % 100);
        }
        if (trial % 2)
        {
          AddFewSpecials(random, pixels);
        }
      },
      [](const auto & t, const NonLocalMeansOperation & operation, const Coordinates & index) {
        return IsRounded(t.Result(index), Expected<In>(t.image, operation, index), 1e-3L);
      });
  });
}

TEST_P(NonLocalMeans, OfChunksHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(102);
  const auto   make = [&](int) { return RandomMeans(random, 2); };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 20, make);
  CompareBits<std::uint8_t, std::uint8_t>(random, GetManager(), GetBackend(), 10, make);
  CompareBits<double, double>(random, GetManager(), GetBackend(), 10, make);
  CompareBits<std::uint16_t, float>(random, GetManager(), GetBackend(), 10, make);
}

TEST_P(NonLocalMeans, OfCubesHaveTheBitsOfTheCpuInAndBetweenTiles)
{
  std::mt19937 random(103);
  for (int trial = 0; trial < 16; ++trial)
  {
    const auto operation = RandomMeans(random, 2);
    const auto patch = static_cast<std::int64_t>(trial % 5 == 4 ? 2 : 1);
    operation->patch = { { patch, patch, patch, 0, 0 } };
    for (int a = 0; a < 3; ++a)
    {
      operation->search[a] = static_cast<std::int64_t>(random() % (trial % 4 == 3 ? 4 : 3));
    }
    operation->search[3] = operation->search[4] = 0;
    const auto compare = [&](auto kind) {
      using Kind = decltype(kind);
      CompareTilesWithCpu<Kind, Kind>(random, GetManager(), GetBackend(), operation, trial, [&](auto & pixels) {
        for (Kind & pixel : pixels)
        {
          pixel = static_cast<Kind>(random() % 100);
        }
      });
    };
    trial % 3 == 0 ? compare(std::uint16_t{}) : compare(float{});
    if (HasFatalFailure())
    {
      return;
    }
  }
}

TEST(NonLocalWeight, IsTheExponential)
{
  for (float t = 0; t < 100; t += 0.0137f)
  {
    EXPECT_NEAR(NonLocalWeight(t) / std::exp(-static_cast<double>(t)), 1.0, t < 80 ? 1e-5 : 1.0) << t;
    EXPECT_NEAR(NonLocalWeight(t), std::exp(-static_cast<double>(t)), 3e-7) << t;
  }
  EXPECT_EQ(NonLocalWeight(0.0f), 1.0f);
  EXPECT_EQ(NonLocalWeight(1e30f), 0.0f);
  EXPECT_EQ(NonLocalWeight(std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_TRUE(std::isnan(NonLocalWeight(std::numeric_limits<float>::quiet_NaN())));
}

TEST(NonLocalMeansOperation, BadParametersAreNamed)
{
  NonLocalMeansOperation operation;
  const auto             message = [&] { return ValidationMessage(operation, { { 1000, 1000, 1000, 10, 1 } }); };
  operation.search = { { 3, 3, 3, 0, 0 } };
  operation.patch = { { 1, 1, 1, 0, 0 } };
  EXPECT_EQ(message(), "");
  operation.strength = 0;
  EXPECT_NE(message().find("Strength: 0"), std::string::npos);
  operation.strength = 1e-30;
  EXPECT_NE(message().find("Strength: "), std::string::npos);
  operation.strength = 1;
  operation.noise = -1;
  EXPECT_NE(message().find("NoiseVariance: -1"), std::string::npos);
  operation.noise = 0;
  operation.patch = { { 500, 500, 500, 0, 0 } };
  EXPECT_NE(message().find("PatchRadius: 500"), std::string::npos);
  operation.patch = { { 0, 0, 0, 1, 0 } };
  EXPECT_NE(message().find("4 axes"), std::string::npos);
  operation.search = { { -1, 0, 0, 0, 0 } };
  EXPECT_NE(message().find("Radius: -1"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Cpu, NonLocalMeans, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, NonLocalMeans, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, NonLocalMeans, testing::Values(Place::Cuda));

} // namespace
