/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseKernelTrial.h"
#include "chunkwiseSpecialValues.h"

using namespace chunkwise;

namespace
{

class Kernels : public KernelTest
{};

std::shared_ptr<MeanOperation>
RandomMean(std::mt19937 & random, int largestRadius, bool exactConstant)
{
  const auto operation = std::make_shared<MeanOperation>();
  for (const int a : RandomAxes(random))
  {
    operation->radius[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(largestRadius + 1));
  }
  operation->boundary.mode = AllModes[random() % 6];
  // Integers hold it exactly as well; floats need not sum it exactly.
  operation->boundary.constant = static_cast<double>(random() % 100) + (exactConstant ? 0 : 0.1);
  return operation;
}

std::shared_ptr<SeparableOperation>
RandomSeparable(std::mt19937 & random, int largestRadius, bool exactConstant)
{
  const auto operation = std::make_shared<SeparableOperation>();
  for (const int a : RandomAxes(random))
  {
    auto & weights = operation->weights[a];
    weights.resize(2 * (random() % static_cast<std::uint32_t>(largestRadius + 1)) + 1);
    double sum = 0;
    for (auto & weight : weights)
    {
      weight = 0.1 + static_cast<double>(random() % 1000) / 1000;
      sum += weight;
    }
    for (auto & weight : weights)
    {
      weight = weights.size() == 1 ? 1.0 : weight / sum;
    }
  }
  operation->boundary.mode = AllModes[random() % 6];
  // Integers hold it exactly as well; floats need not sum it exactly.
  operation->boundary.constant = static_cast<double>(random() % 100) + (exactConstant ? 0 : 0.1);
  return operation;
}

template <typename TIn, typename TOut>
void
CompareMeanWithOracle(std::mt19937 & random, Manager & manager, BackendChoice backend)
{
  for (int trial = 0; trial < 18; ++trial)
  {
    const auto operation = RandomMean(random, trial % 4 == 0 ? 12 : 3, true);
    operation->sums = trial % 3 == 0;
    operation->truncates = trial % 2 == 1;
    Trial<TIn, TOut> t(random, operation, RandomExtent(random, 9));
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    manager.Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const auto parts = oracle::SumWindow<TIn>(t.image, index, operation->radius, operation->boundary);
      const auto divisor = operation->sums ? 1 : parts.count;
      const auto where = std::string(BoundaryModeName(operation->boundary.mode)) + " " + ToString(t.request.image) +
                         " radius " + ToString(operation->radius) + " at " + ToString(index);
      if constexpr (std::is_integral<TOut>::value)
      {
        // Division of integers truncates toward zero.
        const auto exact = operation->truncates ? static_cast<oracle::Wide>(parts.integerSum / divisor)
                                                : oracle::RoundedQuotient(parts.integerSum, divisor);
        const auto lowest = static_cast<oracle::Wide>(std::numeric_limits<TOut>::lowest());
        const auto largest = static_cast<oracle::Wide>(std::numeric_limits<TOut>::max());
        ASSERT_EQ(t.Result(index), static_cast<TOut>(std::max(lowest, std::min(largest, exact)))) << where;
      }
      else
      {
        const long double epsilon =
          std::is_same<TOut, float>::value || std::is_same<TIn, float>::value ? 6e-8L : 1.2e-16L;
        ASSERT_NEAR(static_cast<double>(t.Result(index)),
                    static_cast<double>(parts.realSum / static_cast<long double>(divisor)),
                    static_cast<double>((parts.magnitude / static_cast<long double>(divisor)) * epsilon * 68.0L))
          << where;
      }
    });
  }
}

template <typename TIn>
void
CompareMeanOfKind(std::mt19937 & random, Manager & manager, BackendChoice backend)
{
  CompareMeanWithOracle<TIn, TIn>(random, manager, backend);
  CompareMeanWithOracle<TIn, float>(random, manager, backend);
  CompareMeanWithOracle<TIn, double>(random, manager, backend);
}

TEST_P(Kernels, MeanIsWhatItsDefinitionSays)
{
  std::mt19937 random(51);
  for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
  {
    DispatchPixelType(static_cast<PixelType>(kind),
                      [&](auto pixel) { CompareMeanOfKind<decltype(pixel)>(random, GetManager(), GetBackend()); });
  }
}

/** Float sums of two or more of most of them overflow; some are small, some are NaN or infinite if `hasSpecials`. */
void
FillWithLarge(std::mt19937 & random, std::vector<float> & pixels, bool hasSpecials)
{
  for (float & pixel : pixels)
  {
    const auto large =
      std::ldexp(1.0F + static_cast<float>(random() % 1000) / 1000.0F, 125 + static_cast<int>(random() % 3));
    pixel = random() % 4 == 0 ? pixel : random() % 3 == 0 ? -large : large;
  }
  if (hasSpecials)
  {
    AddFewSpecials(random, pixels);
  }
}

template <typename TOut>
void
CompareLargeMeansWithOracle(std::mt19937 & random, Manager & manager, BackendChoice backend)
{
  for (int trial = 0; trial < 40; ++trial)
  {
    const auto operation = RandomMean(random, trial % 4 == 0 ? 12 : 3, true);
    operation->boundary.constant = trial % 2 ? 3e38F : 7.0F;
    Trial<float, TOut> t(random, operation, RandomExtent(random, 9));
    FillWithLarge(random, t.pixels, trial % 4 == 1);
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    manager.Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const auto        parts = oracle::SumWindow<float>(t.image, index, operation->radius, operation->boundary);
      const auto        divisor = static_cast<long double>(parts.count);
      const long double exact = parts.realSum / divisor;
      const bool        isBeyond = std::fabs(exact) > static_cast<long double>(std::numeric_limits<TOut>::max());
      const auto        result = static_cast<long double>(t.Result(index));
      ASSERT_TRUE(isBeyond ? std::isinf(result) && (result > 0) == (exact > 0)
                           : IsNear(result, exact, parts.magnitude / divisor * 6e-8L * 68))
        << operation->GetKey() << " " << ToString(t.request.image) << " at " << ToString(index) << ": " << result
        << " and not " << exact;
    });
  }
}

TEST_P(Kernels, MeansOfFloatsWhoseSumOverflowsAreWhatTheDefinitionSays)
{
  std::mt19937 random(58);
  CompareLargeMeansWithOracle<float>(random, GetManager(), GetBackend());
  CompareLargeMeansWithOracle<double>(random, GetManager(), GetBackend());
}

TEST_P(Kernels, MeansOfFloatsWhoseSumOverflowsDoNotDependOnRegionsAndChunks)
{
  std::mt19937 random(59);
  const auto   compare = [&](auto out, bool hasSpecials) {
    CompareBits<float, decltype(out)>(
      random,
      GetManager(),
      GetBackend(),
      60,
      [&](int trial) {
        const auto operation = RandomMean(random, trial % 3 == 0 ? 12 : 3, true);
        operation->boundary.constant = trial % 2 ? 3e38F : 7.0F;
        return operation;
      },
      [&](std::vector<float> & pixels) { FillWithLarge(random, pixels, hasSpecials); });
  };
  compare(float{}, false);
  compare(float{}, true);
  compare(double{}, false);
  compare(double{}, true);
}

/** As SciPy and ITK have it. Sums in double are exact here. */
TEST_P(Kernels, TheMeanOfTheLargestFloatIsItself)
{
  std::mt19937 random(60);
  for (const float value : { std::numeric_limits<float>::max(), -3e38F })
  {
    for (int trial = 0; trial < 30; ++trial)
    {
      const auto operation = RandomMean(random, trial % 4 == 0 ? 12 : 3, true);
      operation->boundary.constant = value;
      Trial<float, float> t(random, operation, RandomExtent(random, 20));
      std::fill(t.pixels.begin(), t.pixels.end(), value);
      t.request.backend = GetBackend();
      t.Prepare(t.request.image);
      GetManager().Execute(t.request);
      ForEachIndex(t.request.region, [&](const Coordinates & index) {
        ASSERT_EQ(t.Result(index), value)
          << operation->GetKey() << " " << ToString(t.request.image) << " at " << ToString(index);
      });
    }
  }
}

template <typename TIn, typename TOut>
void
CompareSeparableWithOracle(std::mt19937 & random, Manager & manager, BackendChoice backend)
{
  for (int trial = 0; trial < 12; ++trial)
  {
    const auto       operation = RandomSeparable(random, trial % 4 == 0 ? 11 : 3, true);
    Trial<TIn, TOut> t(random, operation, RandomExtent(random, 9));
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    manager.Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const auto weighed = oracle::WeighWindow<TIn>(t.image, index, *operation);
      const bool isFloat = std::is_same<TOut, float>::value || std::is_same<TIn, float>::value || sizeof(TIn) <= 2;
      const long double bound = weighed.second * (isFloat ? 6e-8L : 1.2e-16L) * 60;
      const auto        result = static_cast<long double>(t.Result(index));
      ASSERT_LE(std::fabs(result - weighed.first), bound + (std::is_integral<TOut>::value ? 0.5L : 0.0L))
        << BoundaryModeName(operation->boundary.mode) << " " << ToString(t.request.image) << " at " << ToString(index);
    });
  }
}

TEST_P(Kernels, SeparableIsWhatItsDefinitionSays)
{
  std::mt19937 random(52);
  for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
  {
    DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
      using Pixel = decltype(pixel);
      CompareSeparableWithOracle<Pixel, Pixel>(random, GetManager(), GetBackend());
      CompareSeparableWithOracle<Pixel, float>(random, GetManager(), GetBackend());
      CompareSeparableWithOracle<Pixel, double>(random, GetManager(), GetBackend());
    });
  }
}

template <typename TIn, typename TOut>
void
CompareBits(std::mt19937 & random, Manager & manager, BackendChoice backend, bool mean, int trials)
{
  CompareBits<TIn, TOut>(random, manager, backend, trials, [&](int trial) -> std::shared_ptr<const Operation> {
    const int largest = trial % 3 == 0 ? 15 : 5;
    if (mean)
    {
      const auto operation = RandomMean(random, largest, std::is_integral<TIn>::value);
      operation->sums = trial % 3 == 1;
      return operation;
    }
    return RandomSeparable(random, largest, std::is_integral<TIn>::value);
  });
}

TEST_P(Kernels, ChunksOnAnyDeviceGiveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(53);
  for (const bool mean : { true, false })
  {
    CompareBits<float, float>(random, GetManager(), GetBackend(), mean, 150);
    CompareBits<double, double>(random, GetManager(), GetBackend(), mean, 40);
    CompareBits<std::uint8_t, std::uint8_t>(random, GetManager(), GetBackend(), mean, 40);
    CompareBits<std::int16_t, float>(random, GetManager(), GetBackend(), mean, 40);
    CompareBits<std::uint32_t, std::uint32_t>(random, GetManager(), GetBackend(), mean, 40);
    CompareBits<std::int64_t, std::int64_t>(random, GetManager(), GetBackend(), mean, 40);
  }
}

TEST_P(Kernels, NaNAndInfinitiesStayWithinTheirWindows)
{
  std::mt19937 random(54);
  const float  infinity = std::numeric_limits<float>::infinity();
  for (const auto & trial : { std::make_pair(2, std::numeric_limits<float>::quiet_NaN()),
                              std::make_pair(7, std::numeric_limits<float>::quiet_NaN()),
                              std::make_pair(2, infinity),
                              std::make_pair(7, -infinity) })
  {
    const std::int64_t radius = trial.first;
    const auto         operation = std::make_shared<MeanOperation>();
    for (int a = 0; a < 3; ++a)
    {
      operation->radius[a] = radius;
    }
    Trial<float, float> t(random, operation, { { 40, 30, 25, 1, 1 } });
    const Coordinates   centre = { { 21, 14, 12, 0, 0 } };
    At<float>(t.image, centre) = trial.second;
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      bool near = true;
      for (int a = 0; a < 3; ++a)
      {
        near = near && std::abs(index[a] - centre[a]) <= radius;
      }
      const float result = t.Result(index);
      ASSERT_EQ(!std::isfinite(result), near) << ToString(index);
      ASSERT_TRUE(!near || std::isnan(trial.second) || result == trial.second) << ToString(index);
    });
  }
}

TEST_P(Kernels, IdentityCopiesAndConverts)
{
  std::mt19937 random(55);
  for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
  {
    DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
      using Pixel = decltype(pixel);
      Trial<Pixel, Pixel> same(random, std::make_shared<IdentityOperation>(), RandomExtent(random, 20));
      same.request.backend = GetBackend();
      same.Prepare(RandomRegion(random, same.request.image.Extents()));
      GetManager().Execute(same.request);
      ForEachIndex(same.request.region,
                   [&](const Coordinates & index) { ASSERT_EQ(same.Result(index), At<Pixel>(same.image, index)); });
      Trial<Pixel, float> converted(random, std::make_shared<IdentityOperation>(), RandomExtent(random, 20));
      converted.request.backend = GetBackend();
      converted.Prepare(converted.request.image);
      GetManager().Execute(converted.request);
      ForEachIndex(converted.request.region, [&](const Coordinates & index) {
        ASSERT_EQ(converted.Result(index), static_cast<float>(At<Pixel>(converted.image, index)));
      });
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Kernels, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Kernels, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Kernels, testing::Values(Place::Cuda));

TEST(Operations, LongAxesAreCheckedWithoutATableOfTheirLength)
{
  SeparableOperation operation;
  operation.weights[0] = { 1, 2, 1 };
  operation.boundary.mode = BoundaryMode::Renormalized;
  // A number for each voxel would be 256 TiB.
  EXPECT_NO_THROW(operation.Validate({ { std::int64_t{ 1 } << 45, 1, 1, 1, 1 } }));
  // The sum of the weights inside is 0 at the last voxel alone.
  operation.weights[0] = { -2, 2, 1 };
  EXPECT_THROW(operation.Validate({ { std::int64_t{ 1 } << 45, 1, 1, 1, 1 } }), ParameterError);
  EXPECT_THROW(operation.Validate({ { 3, 1, 1, 1, 1 } }), ParameterError);
}

TEST(Operations, BadParametersAreNamed)
{
  const Coordinates extent = { { 10, 10, 10, 1, 1 } };
  const auto        message = [&](const Operation & operation) {
    try
    {
      operation.Validate(extent);
    }
    catch (const ParameterError & error)
    {
      return std::string(error.what());
    }
    return std::string();
  };
  MeanOperation mean;
  EXPECT_EQ(message(mean), "");
  mean.radius[1] = -3;
  EXPECT_NE(message(mean).find("-3"), std::string::npos);
  mean.radius[1] = 65536;
  EXPECT_EQ(message(mean), "");
  mean.boundary.mode = BoundaryMode::Mirror;
  EXPECT_NE(message(mean).find("65536"), std::string::npos);
  SeparableOperation separable;
  separable.weights[2] = { 0.5, 0.5 };
  EXPECT_NE(message(separable).find("odd"), std::string::npos);
  separable.weights[2] = { -1, 0, 1 };
  EXPECT_EQ(message(separable), "") << "the clipped sums are -1 and 1";
  separable.weights[2] = { -1, 2, -1, 0, 0 };
  EXPECT_NE(message(separable).find("renormalized"), std::string::npos);
  separable.weights[2] = { 1, std::numeric_limits<double>::infinity(), 1 };
  EXPECT_NE(message(separable).find("finite"), std::string::npos);
  EXPECT_THROW(mean.CheckKinds({ PixelType::UInt8 }, PixelType::Int16), ParameterError);
}

TEST(Operations, KeysTellParametersApart)
{
  MeanOperation a;
  MeanOperation b;
  EXPECT_EQ(a.GetKey(), b.GetKey());
  b.radius[1] = 2;
  EXPECT_NE(a.GetKey(), b.GetKey());
  a.radius[1] = 2;
  b.boundary.mode = BoundaryMode::Constant;
  EXPECT_NE(a.GetKey(), b.GetKey());
  a.boundary.mode = BoundaryMode::Constant;
  b.boundary.constant = 1e-30;
  EXPECT_NE(a.GetKey(), b.GetKey());
  b = a;
  b.sums = true;
  EXPECT_NE(a.GetKey(), b.GetKey());
  SeparableOperation c;
  SeparableOperation d;
  c.weights[0] = { 0.25, 0.5, 0.25 };
  d.weights[1] = { 0.25, 0.5, 0.25 };
  EXPECT_NE(c.GetKey(), d.GetKey());
}

} // namespace
