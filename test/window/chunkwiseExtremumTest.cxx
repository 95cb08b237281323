/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBoxTrial.h"
#include "chunkwiseDefinitionTrial.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseOrderedKey.h"
#include "chunkwiseRangeOperation.h"
#include "chunkwiseSequenceOperation.h"

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

/** Special values in every second image. */
struct AddSpecialsToSome
{
  std::mt19937 & random;

  template <typename T>
  void
  operator()(int trial, std::vector<T> & pixels) const
  {
    if constexpr (std::is_floating_point<T>::value)
    {
      if (trial % 2)
      {
        AddSpecials(random, pixels);
      }
    }
  }
};

TEST_P(Extremum, IsWhatItsDefinitionSays)
{
  std::mt19937 random(71);
  ForEachPairOfKinds([&](auto in, auto out) {
    using In = decltype(in);
    using Out = decltype(out);
    CompareWithDefinition<In, Out>(
      random,
      GetManager(),
      GetBackend(),
      12,
      [&](int trial) { return RandomExtremum(random, trial % 4 == 0 ? 12 : 3, true); },
      AddSpecialsToSome{ random },
      [](const auto & t, const ExtremumOperation & operation, const Coordinates & index) {
        return IsSame(t.Result(index),
                      static_cast<Out>(ExtremumOf(WindowValues<In>(t.image, index, operation), operation.minimum)));
      });
  });
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

/** The largest minus the smallest number; a number's type gives the difference its rounding. */
template <typename T>
long double
RangeOf(std::vector<T> values)
{
  values.erase(std::remove_if(values.begin(), values.end(), [](T value) { return value != value; }), values.end());
  if (values.empty())
  {
    return std::numeric_limits<long double>::quiet_NaN();
  }
  const auto extrema = std::minmax_element(values.begin(), values.end());
  using Difference = std::conditional_t<std::is_integral<T>::value, oracle::Wide, T>;
  return static_cast<long double>(static_cast<Difference>(*extrema.second) - static_cast<Difference>(*extrema.first));
}

TEST_P(Extremum, RangeIsTheMaximumMinusTheMinimum)
{
  std::mt19937 random(74);
  ForEachPairOfKinds([&](auto in, auto out) {
    using In = decltype(in);
    using Out = decltype(out);
    CompareWithDefinition<In, Out>(
      random,
      GetManager(),
      GetBackend(),
      12,
      [&](int trial) { return RandomBox<RangeOperation>(random, trial % 4 == 0 ? 12 : 3, true); },
      [&](int trial, std::vector<In> & pixels) {
        if (trial % 2)
        {
          AddFewSpecials(random, pixels);
        }
      },
      [](const auto & t, const RangeOperation & operation, const Coordinates & index) {
        long double expected = RangeOf(WindowValues<In>(t.image, index, operation));
        if (std::is_integral<Out>::value)
        {
          expected = std::min(expected, static_cast<long double>(std::numeric_limits<Out>::max()));
        }
        return IsSame(t.Result(index), static_cast<Out>(expected));
      });
  });
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

/** The voxels under the element at `index`; for integers the neutral value if there is none. */
template <typename T>
std::vector<T>
ElementValues(const BufferView & image, const Coordinates & index, const FlatExtremumOperation & operation)
{
  std::vector<T> values;
  Box            window{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] = -operation.radius[a];
    window.upper[a] = operation.radius[a] + 1;
  }
  std::size_t tap = 0;
  ForEachIndex(window, [&](Coordinates at) {
    if (!operation.element[tap++])
    {
      return;
    }
    bool there = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      at[a] += index[a];
      there = oracle::Look(at[a], image.box.upper[a], operation.boundary.mode) && there;
    }
    if (there)
    {
      values.push_back(At<T>(image, at));
    }
    else if (operation.boundary.mode == BoundaryMode::Constant)
    {
      values.push_back(static_cast<T>(operation.boundary.constant));
    }
  });
  if (values.empty() && std::is_integral<T>::value)
  {
    values.push_back(operation.minimum ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest());
  }
  return values;
}

TEST_P(Extremum, OverAnElementIsWhatItsDefinitionSays)
{
  std::mt19937 random(76);
  ForEachPairOfKinds([&](auto in, auto out) {
    using In = decltype(in);
    using Out = decltype(out);
    CompareWithDefinition<In, Out>(
      random,
      GetManager(),
      GetBackend(),
      12,
      [&](int trial) { return RandomElement(random, trial % 4 == 0 ? 5 : 2); },
      AddSpecialsToSome{ random },
      [](const auto & t, const FlatExtremumOperation & operation, const Coordinates & index) {
        return IsSame(t.Result(index),
                      static_cast<Out>(ExtremumOf(ElementValues<In>(t.image, index, operation), operation.minimum)));
      });
  });
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
  const auto message = [&] { return ValidationMessage(operation, Coordinates::Filled(10)); };
  EXPECT_EQ(message(), "");
  operation.element.assign(9, 0);
  EXPECT_NE(message().find("is empty"), std::string::npos);
  operation.element.assign(8, 1);
  EXPECT_NE(message().find("has 8 voxels"), std::string::npos);
  operation.radius = { { 3000000, 0, 0, 0, 0 } };
  EXPECT_NE(message().find("Radius: 3000000"), std::string::npos);
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

TEST_P(Extremum, TakesAConstantThatNoDoubleHas)
{
  const auto run = [&](auto pixel, std::int64_t constant) {
    using T = decltype(pixel);
    const auto operation = std::make_shared<ExtremumOperation>();
    operation->radius[0] = 1;
    operation->boundary = { BoundaryMode::Constant, constant };
    operation->minimum = constant < 0;
    T                voxels[] = { 5, 5, 5 };
    T                result[] = { 0, 0, 0 };
    const Box        image = Box::FromExtent({ { 3, 1, 1, 1, 1 } });
    ExecutionRequest request;
    request.operation = operation;
    request.image = request.region = image;
    request.backend = GetBackend();
    request.inputs = { DenseView(voxels, PixelTypeOf<T>(), image) };
    request.output = DenseView(result, PixelTypeOf<T>(), image);
    GetManager().Execute(request);
    EXPECT_EQ(result[0], static_cast<T>(constant));
    EXPECT_EQ(result[1], T{ 5 });
    EXPECT_EQ(result[2], static_cast<T>(constant));
  };
  run(std::uint64_t{}, 9007199254740993);
  run(std::int64_t{}, 9007199254740993);
  run(std::int64_t{}, -9007199254740993);
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
