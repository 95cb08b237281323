/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBoxTrial.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseOrderedKey.h"
#include "chunkwiseRangeOperation.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseSpecialValues.h"

#include <cmath>

using namespace chunkwise;

namespace
{

class Extremum : public KernelTest
{};

std::shared_ptr<ExtremumOperation>
RandomExtremum(std::mt19937 & random, int largestRadius, bool exactConstant)
{
  const auto operation = RandomBox<ExtremumOperation>(random, largestRadius, exactConstant);
  operation->minimum = random() % 2;
  return operation;
}

template <typename T>
T
ExtremumOf(const std::vector<T> & values, bool minimum)
{
  T    result{};
  bool found = false;
  for (const T value : values)
  {
    if (value != value)
    {
      continue;
    }
    if (!found || (minimum ? IsLess(value, result) : IsLess(result, value)))
    {
      result = value;
      found = true;
    }
  }
  return found ? result : std::numeric_limits<T>::quiet_NaN();
}

template <typename TIn, typename TOut>
void
CompareWithOracle(std::mt19937 & random, Manager & manager, BackendChoice backend)
{
  for (int trial = 0; trial < 12; ++trial)
  {
    const auto       operation = RandomExtremum(random, trial % 4 == 0 ? 12 : 3, true);
    Trial<TIn, TOut> t(random, operation, RandomExtent(random, 9));
    if constexpr (std::is_floating_point<TIn>::value)
    {
      if (trial % 2)
      {
        AddSpecials(random, t.pixels);
      }
    }
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    manager.Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const TOut expected =
        static_cast<TOut>(ExtremumOf(WindowValues<TIn>(t.image, index, *operation), operation->minimum));
      const TOut result = t.Result(index);
      const bool bothNaN = expected != expected && result != result;
      ASSERT_TRUE(bothNaN || std::memcmp(&expected, &result, sizeof(result)) == 0)
        << operation->GetKey() << " " << ToString(t.request.image) << " at " << ToString(index) << ": " << +result
        << " not " << +expected;
    });
  }
}

TEST_P(Extremum, IsWhatItsDefinitionSays)
{
  std::mt19937 random(71);
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

TEST_P(Extremum, ChunksHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(72);
  const auto   compare = [&](auto in, auto out, int trials) {
    CompareBits<decltype(in), decltype(out)>(random, GetManager(), GetBackend(), trials, [&](int trial) {
      return RandomExtremum(random, trial % 3 == 0 ? 25 : 5, true);
    });
  };
  compare(float{}, float{}, 100);
  compare(double{}, double{}, 30);
  compare(std::uint8_t{}, std::uint8_t{}, 30);
  compare(std::int16_t{}, float{}, 30);
  compare(std::uint32_t{}, std::uint32_t{}, 30);
  compare(std::uint64_t{}, std::uint64_t{}, 30);
}

template <typename TIn, typename TOut>
void
CompareRangeWithOracle(std::mt19937 & random, Manager & manager, BackendChoice backend)
{
  for (int trial = 0; trial < 12; ++trial)
  {
    const auto       operation = RandomBox<RangeOperation>(random, trial % 4 == 0 ? 12 : 3, true);
    Trial<TIn, TOut> t(random, operation, RandomExtent(random, 9));
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    manager.Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const auto  values = WindowValues<TIn>(t.image, index, *operation);
      const auto  extrema = std::minmax_element(values.begin(), values.end());
      long double expected = 0;
      if constexpr (std::is_integral<TIn>::value)
      {
        const auto difference = static_cast<oracle::Wide>(*extrema.second) - static_cast<oracle::Wide>(*extrema.first);
        expected = static_cast<long double>(difference);
        if (std::is_integral<TOut>::value)
        {
          expected = std::min(expected, static_cast<long double>(std::numeric_limits<TOut>::max()));
        }
      }
      else
      {
        expected = static_cast<long double>(*extrema.second - *extrema.first);
      }
      ASSERT_EQ(t.Result(index), static_cast<TOut>(expected))
        << operation->GetKey() << " " << ToString(t.request.image) << " at " << ToString(index);
    });
  }
}

TEST_P(Extremum, RangeIsTheMaximumMinusTheMinimum)
{
  std::mt19937 random(74);
  for (int kind = 0; kind < NumberOfPixelKinds; ++kind)
  {
    DispatchPixelKind(static_cast<PixelKind>(kind), [&](auto pixel) {
      using Pixel = decltype(pixel);
      CompareRangeWithOracle<Pixel, Pixel>(random, GetManager(), GetBackend());
      CompareRangeWithOracle<Pixel, double>(random, GetManager(), GetBackend());
    });
  }
}

TEST_P(Extremum, RangesOfChunksHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(75);
  const auto   make = [&](int trial) { return RandomBox<RangeOperation>(random, trial % 3 == 0 ? 20 : 5, true); };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 40, make);
  CompareBits<std::uint16_t, std::uint16_t>(random, GetManager(), GetBackend(), 30, make);
}

/** An opening is never above the image, and opening twice is opening once: where windows are cut at the edge too. */
TEST_P(Extremum, OpeningIsAnOpening)
{
  std::mt19937 random(73);
  for (int trial = 0; trial < 30; ++trial)
  {
    const auto erosion = RandomBox<ExtremumOperation>(random, 4, true);
    erosion->boundary.mode = BoundaryMode::Renormalized;
    erosion->minimum = true;
    const auto dilation = std::make_shared<ExtremumOperation>(*erosion);
    dilation->minimum = false;
    const auto opening = std::make_shared<SequenceOperation>();
    opening->stages = { erosion, dilation };
    Trial<std::uint16_t, std::uint16_t> t(random, opening, RandomExtent(random, 20));
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    std::vector<std::uint16_t> once;
    ForEachIndex(t.request.image, [&](const Coordinates & index) {
      once.push_back(t.Result(index));
      ASSERT_LE(t.Result(index), At<std::uint16_t>(t.image, index)) << opening->GetKey();
    });
    std::copy(once.begin(), once.end(), t.pixels.begin());
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    ForEachIndex(t.request.image, [&](const Coordinates & index) {
      ASSERT_EQ(t.Result(index), At<std::uint16_t>(t.image, index)) << opening->GetKey() << " at " << ToString(index);
    });
  }
}

TEST(OrderedKey, KeepsTheOrderAndComesBack)
{
  const float values[] = { -std::numeric_limits<float>::infinity(), -2.0f, -1e-44f, -0.0f, 0.0f, 1e-44f, 3.0f,
                           std::numeric_limits<float>::infinity() };
  for (std::size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i)
  {
    for (const std::int32_t flip : { 0, -1 })
    {
      const float back = OrderedKey<float>::To(OrderedKey<float>::From(values[i], flip), flip);
      EXPECT_EQ(std::memcmp(&back, &values[i], sizeof(back)), 0) << values[i];
    }
    if (i > 0)
    {
      EXPECT_LT(OrderedKey<float>::From(values[i - 1], 0), OrderedKey<float>::From(values[i], 0));
      EXPECT_GT(OrderedKey<float>::From(values[i - 1], -1), OrderedKey<float>::From(values[i], -1));
    }
  }
  for (const std::int32_t flip : { 0, -1 })
  {
    EXPECT_EQ(OrderedKey<float>::From(-std::numeric_limits<float>::quiet_NaN(), flip), OrderedKey<float>::Lowest);
    EXPECT_TRUE(std::isnan(OrderedKey<float>::To(OrderedKey<float>::Lowest, flip)));
  }
  EXPECT_LT(OrderedKey<std::uint64_t>::From(5, 0), OrderedKey<std::uint64_t>::From(~std::uint64_t{ 0 }, 0));
}

INSTANTIATE_TEST_SUITE_P(Cpu, Extremum, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Extremum, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Extremum, testing::Values(Place::Cuda));

} // namespace
