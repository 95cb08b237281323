/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBinOperation.h"
#include "chunkwiseFilters.h"
#include "chunkwiseGridTrial.h"
#include "chunkwiseRearrangeOperation.h"

#include <cmath>
#include <map>

using namespace chunkwise;

namespace
{

__extension__ using Wide = __int128;

template <typename T>
T
QuotientByDefinition(Wide sum, Wide count)
{
  Wide floor = sum / count;
  floor -= floor * count > sum ? 1 : 0;
  const Wide twice = 2 * (sum - floor * count);
  return static_cast<T>(floor + (twice > count || (twice == count && floor % 2 != 0) ? 1 : 0));
}

/** The value of a block. `rows`: its rows, in their order. */
template <typename T>
T
BinByDefinition(BinMethod method, const std::vector<std::vector<T>> & rows)
{
  std::vector<T> values;
  for (std::size_t x = 0; x < rows[0].size(); ++x)
  {
    for (const auto & row : rows)
    {
      values.push_back(row[x]);
    }
  }
  const auto count = static_cast<double>(values.size());
  if (method <= BinMethod::Sum)
  {
    if constexpr (std::is_integral<T>::value)
    {
      Wide sum = 0;
      for (const T value : values)
      {
        sum += value;
      }
      const Wide lowest = std::numeric_limits<T>::lowest();
      const Wide highest = std::numeric_limits<T>::max();
      return method == BinMethod::Sum ? static_cast<T>(std::min(std::max(sum, lowest), highest))
                                      : QuotientByDefinition<T>(sum, static_cast<Wide>(values.size()));
    }
    double sum = 0;
    for (std::size_t x = 0; x < rows[0].size(); ++x)
    {
      auto column = static_cast<double>(rows[0][x]);
      for (std::size_t y = 1; y < rows.size(); ++y)
      {
        column += static_cast<double>(rows[y][x]);
      }
      sum = x == 0 ? column : sum + column;
    }
    return static_cast<T>(method == BinMethod::Sum ? sum : sum / count);
  }
  std::vector<T> numbers;
  std::copy_if(values.begin(), values.end(), std::back_inserter(numbers), [](T value) { return value == value; });
  std::stable_sort(numbers.begin(), numbers.end());
  const bool hasNan = numbers.size() < values.size();
  const T    nan = std::numeric_limits<T>::quiet_NaN();
  switch (method)
  {
    case BinMethod::Minimum:
      return hasNan ? nan : numbers.front();
    case BinMethod::Maximum:
      return hasNan ? nan : numbers.back();
    case BinMethod::Median:
      return (values.size() - 1) / 2 < numbers.size() ? numbers[(values.size() - 1) / 2] : nan;
    default:
      break;
  }
  std::map<T, int> times;
  for (const T value : numbers)
  {
    ++times[value];
  }
  const auto most =
    std::max_element(times.begin(), times.end(), [](const auto & a, const auto & b) { return a.second < b.second; });
  return most == times.end() ? nan : most->first;
}

/** The weights of three boxes that are convolved with each other, by counting. */
std::int64_t
GaussianWeightByDefinition(std::int64_t place, std::int64_t factor)
{
  std::int64_t weight = 0;
  for (std::int64_t a = 0; a < factor; ++a)
  {
    for (std::int64_t b = 0; b < factor; ++b)
    {
      const std::int64_t c = place + factor - 1 - a - b;
      weight += c >= 0 && c < factor ? 1 : 0;
    }
  }
  return weight;
}

template <typename T>
T
GaussianByDefinition(const BinOperation & operation, const BufferView & image, const Coordinates & bin)
{
  Box window{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] = std::max<std::int64_t>(bin[a] * operation.factor[a] - operation.factor[a] + 1, 0);
    window.upper[a] = std::min(bin[a] * operation.factor[a] + 2 * operation.factor[a] - 1, operation.image[a]);
  }
  const auto weightOf = [&](const Coordinates & at, int first, int last) {
    Wide weight = 1;
    for (int a = first; a <= last; ++a)
    {
      weight *= GaussianWeightByDefinition(at[a] - bin[a] * operation.factor[a], operation.factor[a]);
    }
    return weight;
  };
  Wide   weights = 0;
  Wide   exact = 0;
  double total = 0;
  Box    column = window;
  for (std::int64_t x = window.lower[0]; x < window.upper[0]; ++x)
  {
    column.lower[0] = x;
    column.upper[0] = x + 1;
    double sum = 0;
    ForEachIndex(column, [&](const Coordinates & at) {
      const T voxel = At<T>(image, at);
      weights += weightOf(at, 0, MaxDimension - 1);
      sum += static_cast<double>(voxel) * static_cast<double>(weightOf(at, 1, MaxDimension - 1));
      if constexpr (std::is_integral<T>::value)
      {
        exact += static_cast<Wide>(voxel) * weightOf(at, 0, MaxDimension - 1);
      }
    });
    total += sum * static_cast<double>(weightOf(column.lower, 0, 0));
  }
  if constexpr (std::is_integral<T>::value)
  {
    return QuotientByDefinition<T>(exact, weights);
  }
  return static_cast<T>(total / static_cast<double>(weights));
}

template <typename T>
T
RandomVoxel(std::mt19937 & random, int trial)
{
  if (trial % 4 == 0)
  {
    return static_cast<T>(random() % 5); // many are equal
  }
  if (std::is_floating_point<T>::value)
  {
    return random() % 17 == 0 && trial % 2 ? std::numeric_limits<T>::quiet_NaN() : RandomPixel<T>(random);
  }
  return trial % 3 == 0 && random() % 2 ? std::numeric_limits<T>::max() : RandomPixel<T>(random);
}

template <typename T>
bool
IsSame(T a, T b)
{
  return a == b || (a != a && b != b);
}

template <typename T>
class Bins : public testing::Test
{};
using PixelTypes =
  testing::Types<std::uint8_t, std::int16_t, std::uint32_t, std::int64_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(Bins, PixelTypes);

TYPED_TEST(Bins, AreWhatTheDefinitionGivesHoweverTheImageIsCut)
{
  std::mt19937 random(1);
  Manager      manager({});
  for (int trial = 0; trial < 42; ++trial)
  {
    const auto operation = std::make_shared<BinOperation>();
    operation->image = RandomExtent(random, 24);
    operation->method = static_cast<BinMethod>(trial % 7);
    const bool isGaussian = operation->method == BinMethod::Gaussian;
    if (trial % 9 == 6)
    {
      operation->image = { { 3000, 4, 3, 1, 2 } }; // more than the columns that are joined together
    }
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t factors[] = { 2, 1, 3, 7, 1500 };
      operation->factor[a] = std::min(factors[random() % (a == 0 && !isGaussian ? 5 : 4)], operation->image[a]);
    }
    std::vector<TypeParam> voxels(static_cast<std::size_t>(Box::FromExtent(operation->image).NumberOfVoxels()));
    std::generate(voxels.begin(), voxels.end(), [&] { return RandomVoxel<TypeParam>(random, trial); });
    GridTrial<TypeParam, TypeParam, BinOperation> t(operation, voxels);
    t.Run(manager);
    int wrong = 0;
    ForEachIndex(t.request.region, [&](const Coordinates & at) {
      Box block{};
      for (int a = 0; a < MaxDimension; ++a)
      {
        block.lower[a] = at[a] * operation->factor[a];
        block.upper[a] = std::min(block.lower[a] + operation->factor[a], operation->image[a]);
      }
      std::vector<std::vector<TypeParam>> rows;
      ForEachIndex(block, [&](const Coordinates & voxel) {
        if (voxel[0] == block.lower[0])
        {
          rows.emplace_back();
        }
        rows.back().push_back(At<TypeParam>(t.request.inputs[0], voxel));
      });
      const auto expected = isGaussian ? GaussianByDefinition<TypeParam>(*operation, t.request.inputs[0], at)
                                       : BinByDefinition(operation->method, rows);
      const auto found = At<TypeParam>(t.request.output, at);
      if (!IsSame(found, expected) && ++wrong == 1)
      {
        ADD_FAILURE() << operation->GetKey() << " at " << ToString(at) << ": " << +found << " and not " << +expected;
      }
    });
    CompareGridCuts(random, manager, t, operation->GetKey());
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TEST(Grids, BinsGiveRealNumbersAndWideIntegersExactly)
{
  Manager    manager({});
  const auto operation = std::make_shared<BinOperation>();
  operation->image = { { 5, 1, 1, 1, 1 } };
  operation->factor[0] = 2;
  GridTrial<std::int32_t, double, BinOperation> real(operation, { 1, 2, -1, -4, 2147483647 });
  EXPECT_EQ(real.Run(manager), (std::vector<double>{ 1.5, -2.5, 2147483647 }));
  operation->method = BinMethod::Sum;
  operation->factor[0] = 3;
  GridTrial<std::int32_t, std::int64_t, BinOperation> wide(operation,
                                                           { 2147483647, 2147483647, 2147483647, -2147483647, -9 });
  EXPECT_EQ(wide.Run(manager), (std::vector<std::int64_t>{ 6442450941, -2147483656 }));
}

std::int64_t
Below(std::mt19937 & random, std::int64_t limit)
{
  return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(limit));
}

std::shared_ptr<RearrangeOperation>
RandomArrangement(std::mt19937 & random)
{
  const auto operation = std::make_shared<RearrangeOperation>();
  operation->image = RandomExtent(random, 30);
  if (random() % 2)
  {
    std::shuffle(operation->source, operation->source + MaxDimension, random);
  }
  for (RearrangeOutside & outside : operation->outside)
  {
    outside = static_cast<RearrangeOutside>(random() % 5);
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t n = operation->image[operation->source[a]];
    operation->flips[a] = random() % 3 == 0;
    operation->output[a] = n;
    operation->offset[a] = operation->flips[a] ? n - 1 : 0;
    if (random() % 2 && n > 1)
    {
      // Cropped, padded, or padded by several times the image.
      const std::int64_t moved = Below(random, a < 3 ? 3 * n : 2) - n;
      operation->offset[a] += moved;
      operation->output[a] = 1 + Below(random, a < 3 ? 2 * n : n);
    }
  }
  operation->value = 7;
  return operation;
}

/** The index of an axis with n voxels where the outside is what lies next to it, step by step. */
std::int64_t
FindVoxel(std::int64_t i, std::int64_t n, RearrangeOutside outside)
{
  while (i < 0 || i >= n)
  {
    switch (outside)
    {
      case RearrangeOutside::Constant:
        return -1;
      case RearrangeOutside::Nearest:
        i += i < 0 ? 1 : -1;
        break;
      case RearrangeOutside::Reflect:
        i = i < 0 ? -i - 1 : 2 * n - 1 - i;
        break;
      case RearrangeOutside::Mirror:
        i = n == 1 ? 0 : i < 0 ? -i : 2 * n - 2 - i;
        break;
      default:
        i += i < 0 ? n : -n;
    }
  }
  return i;
}

template <typename TPixel>
void
CompareArrangements(unsigned int seed, int trials)
{
  std::mt19937 random(seed);
  Manager      manager({});
  for (int trial = 0; trial < trials; ++trial)
  {
    const auto          operation = RandomArrangement(random);
    std::vector<TPixel> voxels(static_cast<std::size_t>(Box::FromExtent(operation->image).NumberOfVoxels()));
    std::generate(voxels.begin(), voxels.end(), [&] { return RandomPixel<TPixel>(random); });
    GridTrial<TPixel, TPixel, RearrangeOperation> t(operation, voxels);
    t.Run(manager);
    int wrong = 0;
    ForEachIndex(t.request.region, [&](const Coordinates & at) {
      Coordinates from{};
      bool        isInside = true;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const int          s = operation->source[a];
        const std::int64_t o = operation->flips[a] ? -at[a] : at[a];
        from[s] = FindVoxel(operation->offset[a] + o, operation->image[s], operation->outside[a]);
        isInside = isInside && from[s] >= 0;
      }
      const TPixel expected = isInside ? At<TPixel>(t.request.inputs[0], from) : TPixel(7);
      wrong += At<TPixel>(t.request.output, at) == expected ? 0 : 1;
    });
    EXPECT_EQ(wrong, 0) << operation->GetKey();
    CompareGridCuts(random, manager, t, operation->GetKey());
    ASSERT_FALSE(testing::Test::HasFailure()) << "trial " << trial;
  }
}

TEST(Rearrange, CopiesVoxelsHoweverTheImageIsCut)
{
  CompareArrangements<std::uint8_t>(2, 60);
  CompareArrangements<float>(4, 40);
  CompareArrangements<double>(5, 40);
}

class GridsOnDevices : public KernelTest
{
protected:
  /** The whole image, and with the least memory, beside the CPU's. */
  template <typename TPixel, typename TOperation>
  void
  CompareWithCpu(std::mt19937 & random, std::shared_ptr<TOperation> operation)
  {
    std::vector<TPixel> voxels(static_cast<std::size_t>(Box::FromExtent(operation->image).NumberOfVoxels()));
    const int           trial = static_cast<int>(random() % 4);
    std::generate(voxels.begin(), voxels.end(), [&] { return RandomVoxel<TPixel>(random, trial); });
    GridTrial<TPixel, TPixel, TOperation> t(operation, voxels);
    Manager                               host({});
    const std::vector<TPixel>             expected = t.Run(host);
    t.request.backend = GetBackend();
    const auto compare = [&] {
      const std::vector<TPixel> found = t.Run(GetManager());
      EXPECT_NE(t.report.backend, "cpu");
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(TPixel)), 0) << operation->GetKey();
    };
    compare();
    t.request.budgets.device = 1;
    try
    {
      t.Run(GetManager());
      ADD_FAILURE() << "one byte of a device is enough";
    }
    catch (const BudgetError & error)
    {
      t.request.budgets.device = error.needed + random() % error.needed;
    }
    compare();
  }
  template <typename TPixel>
  void
  CompareAll(std::mt19937 & random)
  {
    for (int trial = 0; trial < 12; ++trial)
    {
      const auto bin = std::make_shared<BinOperation>();
      bin->image = trial % 8 == 7 ? Coordinates{ { 3000, 4, 3, 1, 2 } } : RandomExtent(random, 24);
      bin->method = static_cast<BinMethod>(trial % 7);
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t factors[] = { 2, 1, 3, 7 };
        bin->factor[a] = std::min(factors[random() % 4], bin->image[a]);
      }
      CompareWithCpu<TPixel>(random, bin);
      CompareWithCpu<TPixel>(random, RandomArrangement(random));
    }
  }
};

TEST_P(GridsOnDevices, HaveTheBitsOfTheCpuForShortIntegers)
{
  std::mt19937 random(6);
  CompareAll<std::uint8_t>(random);
  CompareAll<std::int16_t>(random);
}

TEST_P(GridsOnDevices, HaveTheBitsOfTheCpuForLongIntegers)
{
  std::mt19937 random(7);
  CompareAll<std::uint32_t>(random);
  CompareAll<std::int64_t>(random);
}

TEST_P(GridsOnDevices, HaveTheBitsOfTheCpuForRealNumbers)
{
  std::mt19937 random(8);
  CompareAll<float>(random);
  CompareAll<double>(random);
}

INSTANTIATE_TEST_SUITE_P(Fake, GridsOnDevices, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, GridsOnDevices, testing::Values(Place::Cuda));

TEST(Grids, BoxesNeedNoMoreInputThanTheySayBeforeAndMoveInOneDirection)
{
  std::mt19937 random(6);
  for (int trial = 0; trial < 400; ++trial)
  {
    const auto        operation = RandomArrangement(random);
    const auto &      grid = dynamic_cast<const BoundedGrid &>(*operation->GetOutputGrid());
    const Box         image = Box::FromExtent(operation->image);
    const Box         output = RandomRegion(random, operation->output);
    const Coordinates most = grid.GetMostInput(output.Extents(), operation->image);
    const Box         input = GetInputBox(*operation, output, image);
    EXPECT_TRUE(image.Contains(input) && !input.IsEmpty());
    for (int a = 0; a < MaxDimension; ++a)
    {
      const int s = operation->source[a];
      ASSERT_LE(input.Extent(s), most[s]) << ToString(output) << " of " << operation->GetKey();
      Box next = output;
      if (operation->outside[a] != RearrangeOutside::Wrap && next.upper[a] < operation->output[a])
      {
        ++next.lower[a];
        ++next.upper[a];
        const Box    moved = GetInputBox(*operation, next, image);
        std::int64_t step = operation->flips[a] ? -1 : 1;
        EXPECT_GE(step * (moved.lower[s] - input.lower[s]), 0) << operation->GetKey();
        EXPECT_GE(step * (moved.upper[s] - input.upper[s]), 0) << operation->GetKey();
      }
    }
  }
}

FilterImage
MakeImage(const Coordinates & extent, int dimension = 3)
{
  FilterImage image;
  image.dimension = dimension;
  image.extent = extent;
  const double turned[3][3] = { { 0.8, -0.6, 0 }, { 0.6, 0.8, 0 }, { 0, 0, 1 } };
  for (int row = 0; row < 3; ++row)
  {
    image.spacing[row] = 0.5 + row;
    image.origin[row] = 10 * row - 4;
    std::copy(turned[row], turned[row] + 3, image.direction[row]);
  }
  return image;
}

/** The place in space of a point between voxels. */
std::vector<double>
PlaceOf(const FilterImage & image, const std::vector<double> & index)
{
  std::vector<double> place(image.origin, image.origin + 3);
  for (std::size_t row = 0; row < 3; ++row)
  {
    for (std::size_t a = 0; a < 3; ++a)
    {
      place[row] += image.direction[row][a] * image.spacing[a] * index[a];
    }
  }
  return place;
}

void
ExpectPlace(const FilterImage & a, const std::vector<double> & indexA, const FilterImage & b,
            const std::vector<double> & indexB)
{
  for (std::size_t row = 0; row < 3; ++row)
  {
    EXPECT_NEAR(PlaceOf(a, indexA)[row], PlaceOf(b, indexB)[row], 1e-12) << "along " << row;
  }
}

FilterParameters
Parse(const std::string & name, const std::vector<std::pair<const char *, const char *>> & texts)
{
  FilterParameters parameters;
  for (const auto & text : texts)
  {
    parameters.Set(text.first, ParseParameter(*GetFilter(name).FindParameter(text.first), text.second));
  }
  return parameters;
}

TEST(Grids, VoxelsKeepTheirPlacesInSpace)
{
  const FilterImage image = MakeImage({ { 9, 8, 1, 1, 1 } });
  FilterImage       output = GetFilterOutputImage("bin", Parse("bin", { { "Factor", "4" } }), image);
  EXPECT_EQ(output.extent, (Coordinates{ { 3, 2, 1, 1, 1 } }));
  EXPECT_EQ(output.spacing[1], 6);
  EXPECT_EQ(output.spacing[2], image.spacing[2]); // one voxel is one block
  ExpectPlace(output, { 0, 0, 0 }, image, { 1.5, 1.5, 0 });
  ExpectPlace(output, { 1, 1, 0 }, image, { 5.5, 5.5, 0 });

  output = GetFilterOutputImage("crop", Parse("crop", { { "Lower", "2,1,0" }, { "Upper", "3,0,0" } }), image);
  EXPECT_EQ(output.extent, (Coordinates{ { 4, 7, 1, 1, 1 } }));
  ExpectPlace(output, { 0, 0, 0 }, image, { 2, 1, 0 });

  output = GetFilterOutputImage("pad", Parse("pad", { { "Lower", "2,1,0" }, { "Upper", "3,0,5" } }), image);
  EXPECT_EQ(output.extent, (Coordinates{ { 14, 9, 6, 1, 1 } }));
  ExpectPlace(output, { 2, 1, 0 }, image, { 0, 0, 0 });

  output = GetFilterOutputImage("flip", Parse("flip", { { "SpatialAxes", "0" } }), image);
  ExpectPlace(output, { 0, 3, 0 }, image, { 8, 3, 0 });
  output = GetFilterOutputImage(
    "flip", Parse("flip", { { "SpatialAxes", "0" }, { "FlipAboutOrigin", "on" } }), MakeImage({ { 9, 8, 1, 1, 1 } }));
  EXPECT_EQ(output.direction[0][0], image.direction[0][0]);
  EXPECT_NEAR(output.origin[0], -PlaceOf(image, { 8, 0, 0 })[0], 1e-12);

  output = GetFilterOutputImage("permute-axes", Parse("permute-axes", { { "AxisOrder", "2,0,1" } }), image);
  EXPECT_EQ(output.extent, (Coordinates{ { 1, 9, 8, 1, 1 } }));
  ExpectPlace(output, { 0, 5, 6 }, image, { 5, 6, 0 });
}

TEST(Grids, RefuseWhatMakesNone)
{
  const FilterImage image = MakeImage({ { 9, 8, 3, 1, 1 } });
  const FilterImage none = MakeImage({ { 9, 0, 3, 1, 1 } });
  const auto        refuses = [](const FilterImage &                                        of,
                          const std::string &                                        name,
                          const std::vector<std::pair<const char *, const char *>> & texts,
                          const std::string &                                        word) {
    try
    {
      MakeFilterOperation(name, Parse(name, texts), of);
      ADD_FAILURE() << name << " is made where " << word << " is refused";
    }
    catch (const ParameterError & error)
    {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  refuses(image, "bin", { { "Factor", "0" } }, "Factor");
  refuses(image, "bin", { { "Factor", "2,2" } }, "Factor");
  refuses(image, "crop", { { "Lower", "0,0,2" }, { "Upper", "0,0,1" } }, "Upper");
  refuses(image, "crop", { { "Lower", "-1" } }, "Lower");
  refuses(image, "crop", { { "Lower", "1000000000000" } }, "Upper");
  refuses(image, "pad", { { "Lower", "9000000000000000" } }, "2^63");
  refuses(image, "pad", { { "Upper", "9000000000000000000" } }, "Upper");
  refuses(image, "pad", { { "OutsideValue", "256" } }, "OutsideValue");
  refuses(none, "pad", { { "Upper", "1" } }, "no voxels");
  refuses(image, "permute-axes", { { "AxisOrder", "0,1" } }, "AxisOrder");
  refuses(image, "permute-axes", { { "AxisOrder", "0,1,1" } }, "AxisOrder");
  refuses(image, "permute-axes", { { "AxisOrder", "0,1,3" } }, "AxisOrder");
  for (const char * const name : { "bin", "bin-sum", "crop", "flip", "permute-axes" })
  {
    EXPECT_TRUE(Box::FromExtent(GetFilterOutputImage(name, {}, none).extent).IsEmpty()) << name;
    EXPECT_NE(MakeFilterOperation(name, {}, none), nullptr);
  }
  // An axis with fewer voxels than the factor is one block.
  EXPECT_EQ(GetFilterOutputImage("bin", Parse("bin", { { "Factor", "1099511627776" } }), image).extent,
            Coordinates::Filled(1));
}

} // namespace
