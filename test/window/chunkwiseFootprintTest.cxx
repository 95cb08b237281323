/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDefinitionTrial.h"
#include "chunkwiseFilters.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseFootprintOperation.h"
#include "chunkwiseFramedOperation.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseStagedOperation.h"
#include "chunkwiseVarianceOperation.h"

#include <cmath>

using namespace chunkwise;

namespace
{

class Footprints : public KernelTest
{};

constexpr FootprintStatistic Statistics[] = { FootprintStatistic::Mean,     FootprintStatistic::Sum,
                                              FootprintStatistic::Variance, FootprintStatistic::StandardDeviation,
                                              FootprintStatistic::Rank,     FootprintStatistic::Erosion,
                                              FootprintStatistic::Dilation };

/** Any set of offsets: sparse, dense, even without the voxel itself. */
std::shared_ptr<FootprintOperation>
RandomFootprint(std::mt19937 & random, FootprintStatistic statistic, int largest)
{
  const auto operation = std::make_shared<FootprintOperation>();
  operation->statistic = statistic;
  operation->boundary = { AllModes[random() % 6], PixelValue(5) };
  std::size_t taps = 1;
  for (const int a : RandomAxes(random))
  {
    operation->radius[a] = random() % static_cast<unsigned int>(largest + 1);
    taps *= static_cast<std::size_t>(2 * operation->radius[a] + 1);
  }
  const unsigned int share = 1 + random() % 4;
  for (std::size_t i = 0; i < taps; ++i)
  {
    operation->element.push_back(random() % 4 < share ? 1 : 0);
  }
  operation->element[random() % taps] = 1;
  operation->fraction = static_cast<double>(random() % 101) / 100;
  for (std::size_t i = 0; i < taps && operation->HasHeights(); ++i)
  {
    operation->heights.push_back(static_cast<double>(random() % 41) - 20);
  }
  return operation;
}

/** The taps of a window, straight from the definition, and their heights. */
template <typename T>
std::vector<T>
TapsOf(const BufferView & image, const Coordinates & index, const FootprintOperation & operation,
       std::vector<long double> & heights)
{
  Box offsets{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    offsets.lower[a] = -operation.radius[a];
    offsets.upper[a] = operation.radius[a] + 1;
  }
  std::vector<T> taps;
  std::size_t    number = 0;
  ForEachIndex(offsets, [&](const Coordinates & offset) {
    const std::size_t at = number++;
    if (!operation.element[at])
    {
      return;
    }
    Coordinates tap = index;
    bool        isThere = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      tap[a] += offset[a];
      isThere = oracle::Look(tap[a], image.box.upper[a], operation.boundary.mode) && isThere;
    }
    if (isThere || operation.boundary.mode == BoundaryMode::Constant)
    {
      taps.push_back(isThere ? At<T>(image, tap) : T(5));
      heights.push_back(operation.HasHeights() ? static_cast<long double>(operation.heights[at]) : 0);
    }
  });
  return taps;
}

/** The integer that is nearest to sum / count, the even one of two. */
oracle::Wide
NearestQuotient(oracle::Wide sum, oracle::Wide count)
{
  oracle::Wide lower = sum / count - (sum % count < 0 ? 1 : 0);
  const auto   twice = 2 * (sum - lower * count);
  return twice > count || (twice == count && lower % 2 != 0) ? lower + 1 : lower;
}

/** The extremum of voxels with their heights; NaN, as an integer the lowest, where no voxel is a number. */
template <typename TIn, typename TOut>
testing::AssertionResult
IsRise(TOut result, const std::vector<TIn> & taps, const std::vector<long double> & heights, bool erodes)
{
  long double expected = std::numeric_limits<long double>::quiet_NaN();
  for (std::size_t i = 0; i < taps.size(); ++i)
  {
    const long double value = static_cast<long double>(taps[i]) + (erodes ? -heights[i] : heights[i]);
    const bool        isBeyond = erodes ? value < expected : value > expected;
    expected = value == value && (isBeyond || expected != expected) ? value : expected;
  }
  if (expected != expected)
  {
    return IsSame(result,
                  std::is_integral<TOut>::value ? std::numeric_limits<TOut>::lowest()
                                                : std::numeric_limits<TOut>::quiet_NaN());
  }
  return IsRounded(result, expected, std::fabs(expected) * (std::is_same<TOut, float>::value ? 1.2e-7L : 4e-16L));
}

template <typename TIn, typename TOut>
testing::AssertionResult
IsStatistic(TOut result, std::vector<TIn> taps, const std::vector<long double> & heights,
            const FootprintOperation & operation)
{
  constexpr bool isReal = std::is_floating_point<TOut>::value;
  if (operation.HasHeights())
  {
    return IsRise(result, taps, heights, operation.statistic == FootprintStatistic::Erosion);
  }
  if (taps.empty())
  {
    return operation.statistic != FootprintStatistic::Sum && isReal
             ? IsSame(result, std::numeric_limits<TOut>::quiet_NaN())
             : IsSame(result, TOut(0));
  }
  if (operation.statistic == FootprintStatistic::Rank)
  {
    std::vector<TIn> numbers;
    std::copy_if(taps.begin(), taps.end(), std::back_inserter(numbers), [](TIn tap) { return tap == tap; });
    if (numbers.empty())
    {
      return IsSame(result, std::numeric_limits<TOut>::quiet_NaN());
    }
    std::sort(numbers.begin(), numbers.end());
    const auto rank = static_cast<std::size_t>(operation.fraction * static_cast<double>(numbers.size() - 1));
    return IsSame(result, static_cast<TOut>(numbers[rank]));
  }
  oracle::Wide exact = 0;
  long double  sum = 0;
  long double  magnitude = 0;
  for (const TIn tap : taps)
  {
    exact += std::is_integral<TIn>::value ? static_cast<oracle::Wide>(tap) : 0;
    sum += static_cast<long double>(tap);
    magnitude += std::fabs(static_cast<long double>(tap));
  }
  const bool isSum = operation.statistic == FootprintStatistic::Sum;
  const auto count = static_cast<long double>(taps.size());
  if (std::is_integral<TIn>::value && std::is_integral<TOut>::value &&
      (isSum || operation.statistic == FootprintStatistic::Mean))
  {
    const oracle::Wide whole = isSum ? exact : NearestQuotient(exact, static_cast<oracle::Wide>(taps.size()));
    return IsSame(
      result,
      static_cast<TOut>(std::min<oracle::Wide>(std::max<oracle::Wide>(whole, std::numeric_limits<TOut>::lowest()),
                                               std::numeric_limits<TOut>::max())));
  }
  const long double rounding = std::is_same<TOut, float>::value ? 1.2e-7L : 4e-16L;
  if (isSum || operation.statistic == FootprintStatistic::Mean)
  {
    const long double divisor = isSum ? 1 : count;
    return IsRounded(result, sum / divisor, magnitude / divisor * (rounding + 1e-15L * count));
  }
  const long double mean = sum / count;
  long double       variance = 0;
  for (const TIn tap : taps)
  {
    variance += (static_cast<long double>(tap) - mean) * (static_cast<long double>(tap) - mean);
  }
  variance /= count;
  const bool isRoot = operation.statistic == FootprintStatistic::StandardDeviation;
  // Over boxes differences from their voxel are added up, those of float in float; else the rounding of the mean
  // changes all deviations.
  const bool        isBox = operation.GetSides(Coordinates::Filled(1 << 20)).has_value();
  const auto        ends = std::minmax_element(taps.begin(), taps.end());
  const long double spread = static_cast<long double>(*ends.second) - static_cast<long double>(*ends.first);
  const long double ofBox = isBox ? spread * spread * (std::is_same<TIn, float>::value ? 1e-6L : 1e-14L) : 0;
  const long double error =
    variance * (rounding + 1e-15L * count) + magnitude / count * magnitude / count * 1e-28L + ofBox;
  return isRoot ? IsRounded(result,
                            std::sqrt(variance),
                            std::sqrt(variance) * rounding + std::sqrt(error) * 1e-6L + magnitude / count * 1e-13L +
                              ofBox / std::sqrt(std::max(variance, ofBox + 1e-30L)))
                : IsRounded(result, variance, error);
}

TEST_P(Footprints, AreWhatTheirDefinitionSays)
{
  std::mt19937 random(611);
  ForEachPairOfKinds([&](auto in, auto out) {
    using In = decltype(in);
    using Out = decltype(out);
    CompareWithDefinition<In, Out>(
      random,
      GetManager(),
      GetBackend(),
      21,
      [&](int trial) { return RandomFootprint(random, Statistics[trial % 7], trial % 4 ? 2 : 6); },
      [&](int trial, std::vector<In> & pixels) {
        if constexpr (std::is_floating_point<In>::value)
        {
          for (std::size_t i = 0; i < pixels.size() && trial % 7 >= 4; i += 1 + random() % 5)
          {
            pixels[i] = std::numeric_limits<In>::quiet_NaN();
          }
        }
      },
      [](const auto & t, const FootprintOperation & operation, const Coordinates & index) {
        std::vector<long double> heights;
        const auto               taps = TapsOf<In>(t.image, index, operation, heights);
        return IsStatistic<In, Out>(t.Result(index), taps, heights, operation);
      });
  });
}

TEST_P(Footprints, ChunksHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(612);
  const auto   compare = [&](auto in, auto out) {
    // Sums alone are given as 64-bit integers too.
    const int statistics = std::is_same<decltype(in), std::int32_t>::value ? 2 : 7;
    CompareBits<decltype(in), decltype(out)>(random, GetManager(), GetBackend(), 40, [&](int trial) {
      return RandomFootprint(random, Statistics[trial % statistics], trial % 3 ? 3 : 8);
    });
  };
  compare(float{}, float{});
  compare(double{}, float{});
  compare(std::uint8_t{}, std::uint8_t{});
  compare(std::int16_t{}, float{});
  compare(std::int32_t{}, std::int64_t{});
  compare(std::uint64_t{}, std::uint64_t{});
}

/** An element of 2 radius + 1 voxels along x and y whose voxels have[y][x] are taps. */
FootprintOperation
FlatFootprint(std::int64_t rx, std::int64_t ry, std::vector<unsigned char> have)
{
  FootprintOperation footprint;
  footprint.radius = { { rx, ry, 0, 0, 0 } };
  footprint.element = std::move(have);
  footprint.boundary.mode = BoundaryMode::Mirror;
  return footprint;
}

/** Boxes that have their voxel are recognized, and nothing else. */
TEST(FootprintSides, AreThoseOfBoxesAroundTheirVoxel)
{
  const Coordinates image{ { 3, 9, 1, 1, 1 } };
  auto              box = FlatFootprint(2, 1, { 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1 });
  auto              sides = box.GetSides(image);
  ASSERT_TRUE(sides);
  EXPECT_EQ(sides->lower, (Coordinates{ { 1, 0, 0, 0, 0 } }));
  EXPECT_EQ(sides->upper, (Coordinates{ { 2, 1, 0, 0, 0 } }));
  EXPECT_EQ(sides->Taps(0), 4);
  EXPECT_EQ(sides->Farthest(), (Coordinates{ { 2, 1, 0, 0, 0 } }));
  box.boundary.mode = BoundaryMode::Renormalized;
  EXPECT_EQ(box.GetSides({ { 2, 9, 1, 1, 1 } })->upper, (Coordinates{ { 1, 1, 0, 0, 0 } }));
  EXPECT_TRUE(FlatFootprint(0, 0, { 1 }).GetSides(image));
  // A hole, a row of another length, a row that is missing, and boxes beside the voxel.
  EXPECT_FALSE(FlatFootprint(1, 1, { 1, 1, 1, 1, 0, 1, 1, 1, 1 }).GetSides(image));
  EXPECT_FALSE(FlatFootprint(1, 1, { 1, 1, 1, 1, 1, 0, 1, 1, 1 }).GetSides(image));
  EXPECT_FALSE(FlatFootprint(1, 1, { 1, 1, 1, 0, 0, 0, 1, 1, 1 }).GetSides(image));
  EXPECT_FALSE(FlatFootprint(1, 0, { 0, 0, 1 }).GetSides(image));
  EXPECT_FALSE(FlatFootprint(0, 1, { 1, 0, 0 }).GetSides(image));
}

template <typename TBox>
std::shared_ptr<TBox>
BoxLike(const FootprintOperation & footprint)
{
  auto box = std::make_shared<TBox>();
  box->radius = footprint.radius;
  box->boundary = footprint.boundary;
  return box;
}

/** The bits of the kernels for boxes, where these are exact. */
TEST_P(Footprints, WholeBoxesHaveTheBitsOfBoxes)
{
  std::mt19937 random(613);
  for (int trial = 0; trial < 30; ++trial)
  {
    const auto footprint = RandomFootprint(random, Statistics[trial % 5], 2);
    std::fill(footprint->element.begin(), footprint->element.end(), 1);
    std::shared_ptr<Operation> box;
    if (trial % 5 == 4)
    {
      const auto rank = BoxLike<RankOperation>(*footprint);
      rank->fraction = footprint->fraction;
      box = rank;
    }
    else if (trial % 5 >= 2)
    {
      const auto variance = BoxLike<VarianceOperation>(*footprint);
      variance->takesRoot = trial % 5 == 3;
      box = variance;
    }
    else
    {
      const auto mean = BoxLike<MeanOperation>(*footprint);
      mean->sums = trial % 5 == 1;
      box = mean;
    }
    Trial<std::int16_t, float> t(random, footprint, RandomExtent(random, 9));
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    const std::vector<float> result = t.output;
    t.request.operation = box;
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    EXPECT_EQ(std::memcmp(result.data(), t.output.data(), result.size() * sizeof(float)), 0)
      << footprint->GetKey() << " " << ToString(t.request.image);
  }
}

FilterImage
ImageOf(const Coordinates & extent)
{
  FilterImage image;
  image.extent = extent;
  image.dimension = 3;
  return image;
}

template <typename TOperation>
std::shared_ptr<const TOperation>
Make(const std::string & filter, const FilterParameters & parameters)
{
  return std::dynamic_pointer_cast<const TOperation>(
    MakeFilterOperation(filter, parameters, ImageOf({ { 20, 9, 8, 1, 1 } })));
}

FilterParameters
Sides(std::vector<std::int64_t> lower, std::vector<std::int64_t> upper)
{
  FilterParameters parameters;
  parameters.Set("Radius", std::move(lower));
  parameters.Set("UpperRadius", std::move(upper));
  return parameters;
}

/** A box of an odd number of voxels along each axis is one around another voxel; one that is as far to both sides is a
 * box. */
TEST(FootprintFilters, WindowsReachAsFarAsTheirSides)
{
  for (const char * const filter : { "mean", "sum", "variance", "median", "maximum", "minimum" })
  {
    FilterParameters parameters = Sides({ 3, 0, 1 }, { 1, 0, 1 });
    parameters.Set("BoundaryCondition", "mirror");
    const auto framed = Make<FramedOperation>(filter, parameters);
    ASSERT_TRUE(framed) << filter;
    EXPECT_EQ(framed->shift, (Coordinates{ { -1, 0, 0, 0, 0 } })) << filter;
    EXPECT_EQ(dynamic_cast<const BoxOperation &>(*framed->inner).radius, (Coordinates{ { 2, 0, 1, 0, 0 } })) << filter;
    EXPECT_EQ(framed->GetFrame(Coordinates::Filled(9)).lower, (Coordinates{ { 3, 0, 1, 0, 0 } })) << filter;
    EXPECT_TRUE(Make<BoxOperation>(filter, Sides({ 2, 0, 1 }, { 2, 0, 1 }))) << filter;
  }
  // Those of an even number are footprints.
  const auto mean = Make<FootprintOperation>("mean", Sides({ 2, 0, 1 }, { 1, 0, 1 }));
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->radius, (Coordinates{ { 2, 0, 1, 0, 0 } }));
  std::vector<unsigned char> expected;
  for (int row = 0; row < 3; ++row)
  {
    expected.insert(expected.end(), { 1, 1, 1, 1, 0 });
  }
  EXPECT_EQ(mean->element, expected);
  // Renormalized windows end where the image does.
  EXPECT_EQ(Make<FootprintOperation>("mean", Sides({ 2 }, { 30 }))->radius, (Coordinates{ { 19, 8, 7, 0, 0 } }));
}

/** The second window is the first one reflected. */
TEST(FootprintFilters, OpeningsReflectTheWindow)
{
  const auto opening = MakeFilterOperation("opening", Sides({ 3, 0, 0 }, { 1, 0, 0 }), ImageOf({ { 9, 9, 9, 1, 1 } }));
  const auto stages = opening->AsStaged()->GetStages();
  ASSERT_EQ(stages.size(), 2U);
  const auto shift = [&](std::size_t i) {
    return std::dynamic_pointer_cast<const FramedOperation>(stages[i].operation)->shift[0];
  };
  EXPECT_EQ(shift(0), -1);
  EXPECT_EQ(shift(1), 1);
}

std::string
MessageOf(const std::string & filter, const FilterParameters & parameters,
          const std::vector<std::string> & additionalInputs = {})
{
  try
  {
    FilterImage image = ImageOf({ { 20, 9, 8, 1, 1 } });
    image.additionalInputs = additionalInputs;
    MakeFilterOperation(filter, parameters, image);
  }
  catch (const ParameterError & error)
  {
    return error.what();
  }
  return "";
}

TEST(FootprintFilters, RefusalsNameTheParameter)
{
  EXPECT_EQ(MessageOf("mean", Sides({ 1 }, { 2 }), { "MaskImage" }), "");
  FilterParameters gaussian = Sides({ 1 }, { 2 });
  gaussian.Set("Method", "gaussian");
  EXPECT_EQ(MessageOf("local-threshold", gaussian),
            "UpperRadius: it has no effect on Gaussians, which reach as far to both sides");
  EXPECT_EQ(MessageOf("mean", Sides({ 1 }, { -2 })), "UpperRadius: -2 is not a finite number of at least 0");
  FilterParameters ball = Sides({ 1 }, { 2 });
  ball.Set("Element", "ball");
  EXPECT_EQ(MessageOf("median", ball), "UpperRadius: it has an effect on boxes alone, and the element is none");
  FilterParameters large = Sides({ 100 }, { 201 });
  large.Set("BoundaryCondition", "mirror");
  EXPECT_EQ(
    MessageOf("mean", large),
    "UpperRadius: 201 x 201 x 201 x 0 x 0 and Radius 100 x 100 x 100 x 0 x 0 make a box of more than 2097152 voxels "
    "around the center");
  // Masks see extrema over any element.
  EXPECT_EQ(MessageOf("maximum", Sides({ 1 }, { 2 }), { "MaskImage" }), "");
}

INSTANTIATE_TEST_SUITE_P(Cpu, Footprints, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Footprints, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Footprints, testing::Values(Place::Cuda));

} // namespace
