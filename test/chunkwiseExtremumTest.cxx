/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBoxTrial.h"
#include "chunkwiseError.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFlatExtremumOperation.h"
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
    if (trial % 2)
    {
      AddFewSpecials(random, t.pixels);
    }
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    manager.Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      auto values = WindowValues<TIn>(t.image, index, *operation);
      values.erase(std::remove_if(values.begin(), values.end(), [](TIn value) { return value != value; }),
                   values.end());
      if (values.empty())
      {
        ASSERT_NE(t.Result(index), t.Result(index));
        return;
      }
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
      ASSERT_TRUE(
        IsNear(static_cast<long double>(t.Result(index)), static_cast<long double>(static_cast<TOut>(expected)), 0))
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

std::shared_ptr<FlatExtremumOperation>
RandomElement(std::mt19937 & random, int largestRadius)
{
  const auto box = RandomBox<RangeOperation>(random, largestRadius, true);
  const auto operation = std::make_shared<FlatExtremumOperation>();
  operation->radius = box->radius;
  operation->boundary = box->boundary;
  operation->minimum = random() % 2;
  std::size_t taps = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    taps *= static_cast<std::size_t>(2 * operation->radius[a] + 1);
  }
  const unsigned int density = 1 + random() % 4;
  for (std::size_t t = 0; t < taps; ++t)
  {
    operation->element.push_back(random() % density == 0 ? 1 : 0);
  }
  operation->element[random() % taps] = 1;
  return operation;
}

template <typename TIn, typename TOut>
void
CompareElementsWithOracle(std::mt19937 & random, Manager & manager, BackendChoice backend)
{
  for (int trial = 0; trial < 12; ++trial)
  {
    const auto       operation = RandomElement(random, trial % 4 == 0 ? 5 : 2);
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
      std::vector<TIn> values;
      Box              window{};
      for (int a = 0; a < MaxDimension; ++a)
      {
        window.lower[a] = -operation->radius[a];
        window.upper[a] = operation->radius[a] + 1;
      }
      std::size_t tap = 0;
      ForEachIndex(window, [&](Coordinates at) {
        if (!operation->element[tap++])
        {
          return;
        }
        bool there = true;
        for (int a = 0; a < MaxDimension; ++a)
        {
          at[a] += index[a];
          there = oracle::Look(at[a], t.image.box.upper[a], operation->boundary.mode) && there;
        }
        if (there)
        {
          values.push_back(At<TIn>(t.image, at));
        }
        else if (operation->boundary.mode == BoundaryMode::Constant)
        {
          values.push_back(static_cast<TIn>(operation->boundary.constant));
        }
      });
      if (values.empty() && std::is_integral<TIn>::value)
      {
        values.push_back(operation->minimum ? std::numeric_limits<TIn>::max() : std::numeric_limits<TIn>::lowest());
      }
      const TOut expected = static_cast<TOut>(ExtremumOf(values, operation->minimum));
      const TOut result = t.Result(index);
      const bool bothNaN = expected != expected && result != result;
      ASSERT_TRUE(bothNaN || std::memcmp(&expected, &result, sizeof(result)) == 0)
        << operation->GetKey() << " " << ToString(t.request.image) << " at " << ToString(index) << ": " << +result
        << " not " << +expected;
    });
  }
}

TEST_P(Extremum, OverAnElementIsWhatItsDefinitionSays)
{
  std::mt19937 random(76);
  for (int kind = 0; kind < NumberOfPixelKinds; ++kind)
  {
    DispatchPixelKind(static_cast<PixelKind>(kind), [&](auto pixel) {
      using Pixel = decltype(pixel);
      CompareElementsWithOracle<Pixel, Pixel>(random, GetManager(), GetBackend());
      CompareElementsWithOracle<Pixel, double>(random, GetManager(), GetBackend());
    });
  }
}

TEST_P(Extremum, OverElementsChunksHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(77);
  const auto   make = [&](int trial) { return RandomElement(random, trial % 4 == 0 ? 4 : 2); };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 25, make);
  CompareBits<std::int16_t, std::int16_t>(random, GetManager(), GetBackend(), 20, make);
}

TEST(FlatExtremumOperation, BadElementsAreNamed)
{
  FlatExtremumOperation operation;
  operation.radius = { { 1, 1, 0, 0, 0 } };
  operation.element.assign(9, 1);
  operation.Validate(Coordinates::Filled(10));
  const auto message = [&]() -> std::string {
    try
    {
      operation.Validate(Coordinates::Filled(10));
    }
    catch (const ParameterError & error)
    {
      return error.what();
    }
    return "";
  };
  operation.element.assign(9, 0);
  EXPECT_NE(message().find("is empty"), std::string::npos);
  operation.element.assign(8, 1);
  EXPECT_NE(message().find("has 8 voxels"), std::string::npos);
  operation.radius = { { 3000000, 0, 0, 0, 0 } };
  EXPECT_NE(message().find("Radius 3000000"), std::string::npos);
  operation.radius = { { 1, 1, 1, 1, 0 } };
  EXPECT_NE(message().find("4 axes"), std::string::npos);
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
