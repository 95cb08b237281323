/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBoxTrial.h"
#include "chunkwiseError.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseSpecialValues.h"

#include <cmath>

using namespace chunkwise;

namespace
{

class Rank : public KernelTest
{};

std::shared_ptr<RankOperation>
RandomRank(std::mt19937 & random, int largestRadius)
{
  const auto   operation = RandomBox<RankOperation>(random, largestRadius, true);
  const double fractions[] = { 0.5, 0.5, 0.5, 0.0, 1.0, static_cast<double>(random() % 1001) / 1000 };
  operation->fraction = fractions[random() % 6];
  return operation;
}

template <typename T>
T
PercentileOf(std::vector<T> values, double fraction)
{
  values.erase(std::remove_if(values.begin(), values.end(), [](T value) { return value != value; }), values.end());
  if (values.empty())
  {
    return std::numeric_limits<T>::quiet_NaN();
  }
  std::sort(values.begin(), values.end(), IsLess<T>);
  return values[static_cast<std::size_t>(std::floor(fraction * static_cast<double>(values.size() - 1)))];
}

template <typename TIn, typename TOut>
void
CompareWithOracle(std::mt19937 & random, Manager & manager, BackendChoice backend)
{
  for (int trial = 0; trial < 12; ++trial)
  {
    const auto       operation = RandomRank(random, trial % 4 == 0 ? 7 : 3);
    Trial<TIn, TOut> t(random, operation, RandomExtent(random, 9));
    if constexpr (std::is_floating_point<TIn>::value)
    {
      if (trial % 2)
      {
        AddSpecials(random, t.pixels);
      }
    }
    else if (trial % 2)
    {
      // Many equal voxels, both ends of the range.
      for (TIn & pixel : t.pixels)
      {
        pixel = random() % 3   ? static_cast<TIn>(pixel % 3)
                : random() % 2 ? std::numeric_limits<TIn>::max()
                               : std::numeric_limits<TIn>::lowest();
      }
    }
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    manager.Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const TOut expected =
        static_cast<TOut>(PercentileOf(WindowValues<TIn>(t.image, index, *operation), operation->fraction));
      const TOut result = t.Result(index);
      const bool bothNaN = expected != expected && result != result;
      ASSERT_TRUE(bothNaN || std::memcmp(&expected, &result, sizeof(result)) == 0)
        << operation->GetKey() << " " << ToString(t.request.image) << " at " << ToString(index) << ": " << +result
        << " not " << +expected;
    });
  }
}

TEST_P(Rank, IsWhatItsDefinitionSays)
{
  std::mt19937 random(81);
  for (int kind = 0; kind < NumberOfPixelKinds; ++kind)
  {
    DispatchPixelKind(static_cast<PixelKind>(kind), [&](auto pixel) {
      using Pixel = decltype(pixel);
      CompareWithOracle<Pixel, Pixel>(random, GetManager(), GetBackend());
      CompareWithOracle<Pixel, float>(random, GetManager(), GetBackend());
      CompareWithOracle<Pixel, double>(random, GetManager(), GetBackend());
    });
  }
}

TEST_P(Rank, ChunksHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(82);
  const auto   compare = [&](auto in, auto out, int trials) {
    CompareBits<decltype(in), decltype(out)>(random, GetManager(), GetBackend(), trials, [&](int trial) {
      return RandomRank(random, trial % 5 == 0 ? 6 : 3);
    });
  };
  compare(float{}, float{}, 40);
  compare(double{}, double{}, 15);
  compare(std::uint8_t{}, std::uint8_t{}, 40);
  compare(std::uint16_t{}, std::uint16_t{}, 40);
  compare(std::int16_t{}, float{}, 20);
  compare(std::uint32_t{}, std::uint32_t{}, 15);
  compare(std::int64_t{}, std::int64_t{}, 15);
}

/** Every radius along every axis, in an image that is larger than the window. */
TEST_P(Rank, WindowsOfEveryShape)
{
  std::mt19937 random(83);
  for (std::int64_t x = 0; x < 5; ++x)
  {
    for (std::int64_t y = 0; y < 5; ++y)
    {
      for (std::int64_t z = 0; z < 5; ++z)
      {
        const auto operation = std::make_shared<RankOperation>();
        operation->radius = { { x, y, z, 0, 0 } };
        operation->boundary.mode = AllModes[random() % 5];
        Trial<std::uint16_t, std::uint16_t> t(random, operation, { { 37, 11, 12, 1, 1 } });
        t.request.backend = GetBackend();
        t.Prepare(t.request.image);
        GetManager().Execute(t.request);
        for (int sample = 0; sample < 200; ++sample)
        {
          const Coordinates index{ { static_cast<std::int64_t>(random() % 37),
                                     static_cast<std::int64_t>(random() % 11),
                                     static_cast<std::int64_t>(random() % 12),
                                     0,
                                     0 } };
          ASSERT_EQ(t.Result(index), PercentileOf(WindowValues<std::uint16_t>(t.image, index, *operation), 0.5))
            << operation->GetKey() << " at " << ToString(index);
        }
      }
    }
  }
}

TEST(RankOperation, BadParametersAreNamed)
{
  const auto message = [](const RankOperation & operation) -> std::string {
    try
    {
      operation.Validate({ { 10000, 10000, 10000, 10, 1 } });
    }
    catch (const ParameterError & error)
    {
      return error.what();
    }
    return "";
  };
  RankOperation operation;
  operation.radius = { { 3, 3, 3, 0, 0 } };
  EXPECT_EQ(message(operation), "");
  operation.fraction = 1.5;
  EXPECT_NE(message(operation).find("Fraction is 1.5"), std::string::npos);
  operation.fraction = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(message(operation).find("Fraction is"), std::string::npos);
  operation.fraction = 0.5;
  operation.radius = { { 2000, 2000, 2000, 0, 0 } };
  EXPECT_NE(message(operation).find("Radius 2000 x 2000 x 2000"), std::string::npos) << message(operation);
  operation.radius = { { 1, 1, 1, 1, 0 } };
  EXPECT_NE(message(operation).find("4 axes"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Rank, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Rank, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Rank, testing::Values(Place::Cuda));

} // namespace
