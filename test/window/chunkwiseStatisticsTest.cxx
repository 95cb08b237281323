/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBoxTrial.h"
#include "chunkwiseDefinitionTrial.h"
#include "chunkwiseDifferenceOperation.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseHighPassOperation.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseWienerOperation.h"

using namespace chunkwise;

namespace
{

class Statistics : public KernelTest
{};

std::shared_ptr<VarianceOperation>
RandomVariance(std::mt19937 & random, int largestRadius, bool exactConstant)
{
  const auto operation = RandomBox<VarianceOperation>(random, largestRadius, exactConstant);
  operation->takesRoot = random() % 2;
  return operation;
}

template <typename T>
long double
VarianceOf(const std::vector<T> & values)
{
  // From the first value, since the squares of 64-bit integers have more digits than any real type.
  std::vector<long double> differences;
  long double              mean = 0;
  for (const T value : values)
  {
    using Exact = std::conditional_t<std::is_integral<T>::value, oracle::Wide, long double>;
    differences.push_back(static_cast<long double>(static_cast<Exact>(value) - static_cast<Exact>(values[0])));
    mean += differences.back();
  }
  mean /= static_cast<long double>(values.size());
  long double squares = 0;
  for (const long double difference : differences)
  {
    squares += (difference - mean) * (difference - mean);
  }
  return squares / static_cast<long double>(values.size());
}

/** The square of how far a value is from the mean. */
template <typename T>
long double
SquareAround(const std::vector<T> & values, T value)
{
  long double difference = 0;
  for (const T other : values)
  {
    using Exact = std::conditional_t<std::is_integral<T>::value, oracle::Wide, long double>;
    difference += static_cast<long double>(static_cast<Exact>(other) - static_cast<Exact>(value));
  }
  difference /= static_cast<long double>(values.size());
  return difference * difference;
}

/** NaN and infinities in every third image. */
struct AddFewSpecialsToSome
{
  std::mt19937 & random;

  template <typename T>
  void
  operator()(int trial, std::vector<T> & pixels) const
  {
    if (trial % 3 == 0)
    {
      AddFewSpecials(random, pixels);
    }
  }
};

template <typename TIn, typename TOut>
testing::AssertionResult
IsTheVariance(const Trial<TIn, TOut> & t, const VarianceOperation & operation, const Coordinates & index)
{
  const auto        values = WindowValues<TIn>(t.image, index, operation);
  const long double variance = VarianceOf(values);
  const long double expected = operation.takesRoot ? std::sqrt(variance) : variance;
  // Results computed in float have errors of their terms: squares of differences, also from the voxel in the centre.
  const bool        inFloat = std::is_same<TIn, float>::value;
  const long double precision = inFloat ? 2e-5L : std::is_same<TOut, float>::value ? 1e-7L : 1e-13L;
  long double       bound = expected * precision;
  if (std::is_floating_point<TIn>::value || sizeof(TIn) == 8)
  {
    const long double around =
      SquareAround(values, At<TIn>(t.image, index)) * precision / (operation.takesRoot ? std::sqrt(variance) : 1);
    bound += std::isnan(around) ? 0 : around;
  }
  return IsRounded(t.Result(index), expected, bound);
}

TEST_P(Statistics, VarianceIsWhatItsDefinitionSays)
{
  std::mt19937 random(61);
  ForEachPairOfKinds([&](auto in, auto out) {
    CompareWithDefinition<decltype(in), decltype(out)>(
      random,
      GetManager(),
      GetBackend(),
      12,
      [&](int trial) { return RandomVariance(random, trial % 4 == 0 ? 12 : 3, true); },
      AddFewSpecialsToSome{ random },
      IsTheVariance<decltype(in), decltype(out)>);
  });
}

TEST_P(Statistics, VarianceOfChunksHasTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(62);
  const auto   compare = [&](auto in, auto out, int trials) {
    using In = decltype(in);
    CompareBits<In, decltype(out)>(random, GetManager(), GetBackend(), trials, [&](int trial) {
      return RandomVariance(random, trial % 3 == 0 ? 15 : 5, std::is_integral<In>::value);
    });
  };
  compare(float{}, float{}, 100);
  compare(double{}, double{}, 30);
  compare(std::uint8_t{}, std::uint8_t{}, 30);
  compare(std::int16_t{}, float{}, 30);
  compare(std::uint32_t{}, std::uint32_t{}, 30);
  compare(std::int64_t{}, double{}, 30);
}

/** Sums near the most that accumulators are meant for, and beyond. */
template <typename T>
void
CompareLargeSums(std::mt19937 & random, Manager & manager, BackendChoice backend)
{
  for (const std::int64_t radius : { 12, 13 })
  {
    const auto operation = std::make_shared<VarianceOperation>();
    operation->radius = { { radius, radius, radius, 0, 0 } };
    Trial<T, double> t(random, operation, { { 37, 30, 28, 1, 1 } });
    for (T & pixel : t.pixels)
    {
      pixel = random() % 8 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
    }
    t.request.backend = backend;
    t.Prepare(t.request.image);
    manager.Execute(t.request);
    for (int sample = 0; sample < 30; ++sample)
    {
      const Coordinates index{ { static_cast<std::int64_t>(random() % 37),
                                 static_cast<std::int64_t>(random() % 30),
                                 static_cast<std::int64_t>(random() % 28),
                                 0,
                                 0 } };
      const long double expected = VarianceOf(WindowValues<T>(t.image, index, *operation));
      ASSERT_NEAR(t.Result(index), static_cast<double>(expected), static_cast<double>(expected) * 1e-13)
        << operation->GetKey() << " at " << ToString(index);
    }
  }
}

TEST_P(Statistics, SumsOfLargeWindowsDoNotOverflow)
{
  std::mt19937 random(60);
  CompareLargeSums<std::uint8_t>(random, GetManager(), GetBackend());
  CompareLargeSums<std::int8_t>(random, GetManager(), GetBackend());
  CompareLargeSums<std::uint16_t>(random, GetManager(), GetBackend());
  CompareLargeSums<std::int16_t>(random, GetManager(), GetBackend());
  CompareLargeSums<std::uint32_t>(random, GetManager(), GetBackend());
  CompareLargeSums<std::int32_t>(random, GetManager(), GetBackend());
}

TEST_P(Statistics, AnOffsetDoesNotShowInTheStandardDeviation)
{
  std::mt19937 random(63);
  for (const std::int64_t radius : { 1, 2, 5, 12 })
  {
    const auto operation = std::make_shared<VarianceOperation>();
    operation->takesRoot = true;
    operation->radius = { { radius, radius, radius, 0, 0 } };
    Trial<float, float> t(random, operation, { { 33, 21, 19, 1, 1 } });
    t.request.backend = GetBackend();
    for (float & pixel : t.pixels)
    {
      // So that the offset is added without rounding.
      pixel = std::floor(pixel * 16) / 16;
    }
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    const std::vector<float> without = t.output;
    for (float & pixel : t.pixels)
    {
      pixel += 1e6F;
    }
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    ASSERT_EQ(t.output, without) << "radius " << radius;
  }
}

TEST_P(Statistics, AConstantHasNoVarianceUpToTheEdge)
{
  std::mt19937 random(64);
  const auto   operation = std::make_shared<VarianceOperation>();
  operation->radius = { { 3, 7, 2, 0, 0 } };
  Trial<float, float> t(random, operation, { { 17, 9, 8, 1, 1 } });
  std::fill(t.pixels.begin(), t.pixels.end(), 0.1F);
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  ForEachIndex(t.request.region, [&](const Coordinates & index) { ASSERT_EQ(t.Result(index), 0.0F); });
}

TEST_P(Statistics, NaNStaysWithinItsWindow)
{
  std::mt19937 random(65);
  const auto   operation = std::make_shared<VarianceOperation>();
  operation->radius = { { 2, 3, 1, 0, 0 } };
  Trial<float, float> t(random, operation, { { 20, 17, 9, 1, 1 } });
  const Coordinates   center = { { 11, 8, 4, 0, 0 } };
  for (const float value : { std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity() })
  {
    At<float>(t.image, center) = value;
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      bool near = true;
      for (int a = 0; a < 3; ++a)
      {
        near = near && std::abs(index[a] - center[a]) <= operation->radius[a];
      }
      ASSERT_EQ(std::isnan(t.Result(index)), near) << ToString(index);
    });
  }
}

TEST_P(Statistics, VarianceOfSmallWindowsHasTheBitsOfTheCpuInAndBetweenTiles)
{
  std::mt19937 random(67);
  for (int trial = 0; trial < 25; ++trial)
  {
    const auto         operation = std::make_shared<VarianceOperation>();
    const std::int64_t radius = 1 + trial % 5;
    operation->radius = { { radius, radius, radius, 0, 0 } };
    operation->takesRoot = trial % 2;
    operation->boundary.mode = trial < 15 ? BoundaryMode::Renormalized : AllModes[random() % 6];
    CompareTilesWithCpu<float, float>(random, GetManager(), GetBackend(), operation, trial, [&](auto & pixels) {
      for (float & pixel : pixels)
      {
        pixel = random() % 40 ? pixel : random() % 2 ? -0.0F : 1e-42F;
      }
      for (int i = 0; trial % 3 == 2 && i < 20; ++i)
      {
        const float specials[] = { std::numeric_limits<float>::quiet_NaN(),
                                   std::numeric_limits<float>::infinity(),
                                   -std::numeric_limits<float>::infinity(),
                                   std::numeric_limits<float>::max() };
        pixels[random() % pixels.size()] = specials[i % 4];
      }
    });
  }
}

/** Pixels of three sorts: few values, so that many standard deviations lie in the middle between two integers; the
 * least and the greatest, whose squares need all digits; any. */
template <typename T>
void
FillForRoots(std::mt19937 & random, int sort, std::vector<T> & pixels)
{
  const T few[] = { T(0), T(1), T(0), T(3) };
  const T extremes[] = { std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max() };
  for (T & pixel : pixels)
  {
    pixel = sort == 0 ? few[random() % 4] : sort == 1 ? extremes[random() % 2] : static_cast<T>(random());
  }
}

TEST_P(Statistics, VarianceOfSmallWindowsOfIntegersHasTheBitsOfTheCpuInAndBetweenTiles)
{
  std::mt19937 random(73);
  for (int trial = 0; trial < 36; ++trial)
  {
    const auto         operation = std::make_shared<VarianceOperation>();
    const std::int64_t radius = 1 + trial % 2;
    // Sometimes not the same along all axes.
    operation->radius = { { radius, trial % 5 == 4 ? 2 : radius, radius, 0, 0 } };
    operation->takesRoot = trial % 4 != 3;
    operation->boundary.mode = trial < 18 ? BoundaryMode::Renormalized : AllModes[random() % 6];
    const auto compare = [&](auto in, auto out) {
      using In = decltype(in);
      const int sort = static_cast<int>(random() % 3);
      CompareTilesWithCpu<In, decltype(out)>(random, GetManager(), GetBackend(), operation, trial, [&](auto & pixels) {
        FillForRoots<In>(random, sort, pixels);
      });
    };
    const auto compareKind = [&](auto in) { random() % 3 ? compare(in, in) : compare(in, float{}); };
    trial % 3 == 0   ? compareKind(std::uint8_t{})
    : trial % 3 == 1 ? compareKind(std::uint16_t{})
                     : compareKind(std::int16_t{});
    if (HasFatalFailure())
    {
      return;
    }
  }
}

/** Images of the highest value and 0 in windows on both sides of the number of voxels whose sums 32 bits hold. */
template <typename TPixel>
void
ExpectExactInLargeWindow(Manager & manager, BackendChoice backend, std::int64_t radius)
{
  const std::int64_t  extent = 2 * radius + 1;
  const std::int64_t  count = extent * extent * extent;
  std::vector<TPixel> voxels(static_cast<std::size_t>(count), std::numeric_limits<TPixel>::max());
  std::vector<double> output(voxels.size());
  const auto          operation = std::make_shared<VarianceOperation>();
  __extension__ using Wide = __int128;
  Wide sum = 0;
  Wide squares = 0;
  for (std::size_t i = 0; i < voxels.size(); ++i)
  {
    voxels[i] = i % 50 == 7 ? TPixel{ 0 } : voxels[i];
    sum += voxels[i];
    squares += Wide{ voxels[i] } * voxels[i];
  }
  operation->radius = { { radius, radius, radius, 0, 0 } };
  ExecutionRequest request;
  request.operation = operation;
  request.backend = backend;
  request.image = request.region = Box::FromExtent({ { extent, extent, extent, 1, 1 } });
  request.inputs.push_back(DenseView(voxels.data(), PixelTypeOf<TPixel>(), request.image));
  request.output = DenseView(output.data(), PixelType::Float64, request.image);
  manager.Execute(request);
  // The window of the voxel in the middle is the whole image.
  const double expected =
    static_cast<double>(count * squares - sum * sum) / (static_cast<double>(count) * static_cast<double>(count));
  EXPECT_DOUBLE_EQ(output[output.size() / 2], expected) << extent << " of " << sizeof(TPixel) << " bytes";
}

TEST_P(Statistics, VarianceOfIntegersIsExactInLargeWindows)
{
  for (const std::int64_t radius : { 15, 17, 20 })
  {
    ExpectExactInLargeWindow<std::uint8_t>(GetManager(), GetBackend(), radius);
    ExpectExactInLargeWindow<std::uint16_t>(GetManager(), GetBackend(), radius);
    ExpectExactInLargeWindow<std::uint32_t>(GetManager(), GetBackend(), radius);
  }
}

/** Windows of one radius along x, y and z, mostly so short that a device passes all axes at once. */
std::shared_ptr<Operation>
RandomCube(std::mt19937 & random, int trial)
{
  const BoundaryMode mode = AllModes[trial / 3 % 6];
  const auto         radius = static_cast<std::int64_t>(1 + random() % (trial % 3 == 2 ? 9 : 4));
  if (trial % 3 == 0)
  {
    const auto mean = std::make_shared<MeanOperation>();
    mean->radius = { { radius, radius, radius, 0, 0 } };
    mean->sums = random() % 2;
    mean->boundary = WindowBoundary{ mode, 17 };
    return mean;
  }
  if (trial % 3 == 1)
  {
    const auto extremum = std::make_shared<ExtremumOperation>();
    extremum->radius = { { radius, radius, radius, 0, 0 } };
    extremum->minimum = random() % 2;
    extremum->boundary = WindowBoundary{ mode, 17 };
    return extremum;
  }
  const auto separable = std::make_shared<SeparableOperation>();
  for (int a = 0; a < 3; ++a)
  {
    double sum = 0;
    for (std::int64_t t = -radius; t <= radius; ++t)
    {
      separable->weights[a].push_back(1.0 + static_cast<double>(random() % 1000));
      sum += separable->weights[a].back();
    }
    for (double & weight : separable->weights[a])
    {
      weight /= sum;
    }
  }
  separable->boundary = WindowBoundary{ mode, 17 };
  return separable;
}

TEST_P(Statistics, CubesHaveTheBitsOfTheCpuInAndBetweenTiles)
{
  std::mt19937 random(68);
  for (int trial = 0; trial < 45; ++trial)
  {
    const auto operation = RandomCube(random, trial);
    const auto keep = [](auto &) {};
    switch (random() % 4)
    {
      case 0:
        CompareTilesWithCpu<float, float>(random, GetManager(), GetBackend(), operation, trial, [&](auto & pixels) {
          pixels[random() % pixels.size()] = std::numeric_limits<float>::infinity();
        });
        break;
      case 1:
        CompareTilesWithCpu<std::uint8_t, float>(random, GetManager(), GetBackend(), operation, trial, keep);
        break;
      case 2:
        CompareTilesWithCpu<std::int16_t, std::int16_t>(random, GetManager(), GetBackend(), operation, trial, keep);
        break;
      default:
        CompareTilesWithCpu<std::uint16_t, std::uint16_t>(random, GetManager(), GetBackend(), operation, trial, keep);
        break;
    }
    if (HasFatalFailure())
    {
      return;
    }
  }
}

std::shared_ptr<HighPassOperation>
RandomHighPass(std::mt19937 & random)
{
  const auto smoothing = std::make_shared<SeparableOperation>();
  for (const int a : RandomAxes(random))
  {
    smoothing->weights[a] = { 0.1, 0.2, 0.4, 0.2, 0.1 };
  }
  smoothing->boundary.mode = AllModes[random() % 6];
  smoothing->boundary.constant = static_cast<double>(random() % 100);
  const auto operation = std::make_shared<HighPassOperation>();
  operation->smoothing = smoothing;
  return operation;
}

template <typename TIn, typename TOut>
testing::AssertionResult
IsTheHighPass(const Trial<TIn, TOut> & t, const HighPassOperation & operation, const Coordinates & index)
{
  const auto weighed = oracle::WeighWindow<TIn>(t.image, index, *operation.smoothing);
  const auto pixel = static_cast<long double>(At<TIn>(t.image, index));
  const bool inFloat = std::is_same<TOut, float>::value || std::is_same<TIn, float>::value || sizeof(TIn) <= 2;
  return IsRounded(
    t.Result(index), pixel - weighed.first, (weighed.second + std::fabs(pixel)) * (inFloat ? 6e-8L : 1.2e-16L) * 60);
}

TEST_P(Statistics, AHighPassIsTheImageMinusItselfSmoothed)
{
  std::mt19937 random(66);
  ForEachPairOfKinds([&](auto in, auto out) {
    CompareWithDefinition<decltype(in), decltype(out)>(
      random,
      GetManager(),
      GetBackend(),
      8,
      [&](int) { return RandomHighPass(random); },
      AddFewSpecialsToSome{ random },
      IsTheHighPass<decltype(in), decltype(out)>);
  });
  CompareBits<float, float>(random, GetManager(), GetBackend(), 40, [&](int) { return RandomHighPass(random); });
  CompareBits<std::int16_t, std::int16_t>(
    random, GetManager(), GetBackend(), 20, [&](int) { return RandomHighPass(random); });
}

template <typename TIn, typename TOut>
void
CompareDifference(std::mt19937 & random, Manager & manager, BackendChoice backend)
{
  const auto       operation = std::make_shared<DifferenceOperation>();
  Trial<TIn, TOut> t(random, std::make_shared<IdentityOperation>(), RandomExtent(random, 20));
  t.request.operation = operation;
  t.request.backend = backend;
  t.Prepare(RandomRegion(random, t.request.image.Extents()));
  std::vector<TIn> other(t.pixels.size());
  for (TIn & pixel : other)
  {
    pixel = RandomPixel<TIn>(random);
  }
  AddFewSpecials(random, t.pixels);
  AddFewSpecials(random, other);
  t.Prepare(t.request.region);
  t.request.inputs.push_back(DenseView(other.data(), PixelTypeOf<TIn>(), t.request.image));
  manager.Execute(t.request);
  ASSERT_TRUE(t.IsContained());
  ForEachIndex(t.request.region, [&](const Coordinates & index) {
    const TIn a = At<TIn>(t.image, index);
    const TIn b = At<TIn>(t.request.inputs[1], index);
    if constexpr (std::is_integral<TIn>::value)
    {
      auto exact = static_cast<oracle::Wide>(a) - static_cast<oracle::Wide>(b);
      if (std::is_integral<TOut>::value)
      {
        exact = std::max(exact, static_cast<oracle::Wide>(std::numeric_limits<TOut>::lowest()));
        exact = std::min(exact, static_cast<oracle::Wide>(std::numeric_limits<TOut>::max()));
      }
      ASSERT_EQ(t.Result(index), static_cast<TOut>(exact));
    }
    else
    {
      ASSERT_TRUE(IsNear(t.Result(index), static_cast<TOut>(a - b), 0)) << a << " - " << b;
    }
  });
}

TEST_P(Statistics, ADifferenceIsExactAndClamped)
{
  std::mt19937 random(67);
  for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
  {
    DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
      using Pixel = decltype(pixel);
      CompareDifference<Pixel, Pixel>(random, GetManager(), GetBackend());
      CompareDifference<Pixel, float>(random, GetManager(), GetBackend());
      CompareDifference<Pixel, double>(random, GetManager(), GetBackend());
    });
  }
  EXPECT_THROW(DifferenceOperation().CheckKinds({ PixelType::UInt8, PixelType::UInt16 }, PixelType::UInt8),
               ParameterError);
}

template <typename TIn>
std::shared_ptr<EntropyOperation>
RandomEntropy(std::mt19937 & random, int largestRadius)
{
  const auto operation = RandomBox<EntropyOperation>(random, largestRadius, true);
  const int  bins[] = { 2, 10, 256, 300 };
  operation->bins = bins[random() % 4];
  const bool wide = std::is_integral<TIn>::value;
  operation->lower = wide ? 0.4 * static_cast<double>(std::numeric_limits<TIn>::lowest()) : -20;
  operation->upper = wide ? 0.8 * static_cast<double>(std::numeric_limits<TIn>::max()) : 110;
  return operation;
}

template <typename T>
long double
EntropyOf(const std::vector<T> & values, const EntropyOperation & operation)
{
  std::vector<long double> counts(static_cast<std::size_t>(operation.bins), 0);
  for (const T value : values)
  {
    const double position =
      (static_cast<double>(value) - operation.lower) * (operation.bins / (operation.upper - operation.lower));
    counts[static_cast<std::size_t>(std::max(0.0, std::min(position, operation.bins - 1.0)))] += 1;
  }
  long double entropy = 0;
  for (const long double count : counts)
  {
    const long double share = count / static_cast<long double>(values.size());
    entropy -= count > 0 ? share * std::log2(share) : 0;
  }
  return entropy;
}

TEST_P(Statistics, EntropyIsWhatItsDefinitionSays)
{
  std::mt19937 random(68);
  ForEachPairOfKinds([&](auto in, auto out) {
    using In = decltype(in);
    CompareWithDefinition<In, decltype(out)>(
      random,
      GetManager(),
      GetBackend(),
      8,
      [&](int trial) { return RandomEntropy<In>(random, trial % 4 == 0 ? 6 : 2); },
      [&](int trial, std::vector<In> & pixels) {
        if constexpr (std::is_floating_point<In>::value)
        {
          if (trial % 2)
          {
            AddSpecials(random, pixels);
          }
        }
      },
      [](const auto & t, const EntropyOperation & operation, const Coordinates & index) {
        return IsRounded(t.Result(index), EntropyOf(WindowValues<In>(t.image, index, operation), operation), 1e-6L);
      });
  });
}

TEST_P(Statistics, EntropyOfChunksHasTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(69);
  const auto   compare = [&](auto in, auto out, int trials) {
    using In = decltype(in);
    CompareBits<In, decltype(out)>(random, GetManager(), GetBackend(), trials, [&](int trial) {
      return RandomEntropy<In>(random, trial % 3 == 0 ? 7 : 3);
    });
  };
  compare(std::uint16_t{}, float{}, 40);
  compare(std::uint8_t{}, double{}, 20);
  compare(float{}, float{}, 30);
}

TEST(EntropyOperation, BadParametersAreNamed)
{
  EntropyOperation operation;
  const auto       message = [&] { return ValidationMessage(operation, { { 99, 99, 99, 9, 1 } }); };
  EXPECT_EQ(message(), "");
  operation.bins = 1;
  EXPECT_NE(message().find("NumberOfBins: 1"), std::string::npos);
  operation.bins = 256;
  operation.upper = operation.lower;
  EXPECT_NE(message().find("Range"), std::string::npos);
  operation.upper = 3;
  operation.radius = { { 20, 20, 20, 0, 0 } };
  EXPECT_NE(message().find("68921"), std::string::npos);
  operation.radius = { { 1, 1, 1, 1, 0 } };
  EXPECT_NE(message().find("4 axes"), std::string::npos);
}

std::shared_ptr<WienerOperation>
RandomWiener(std::mt19937 & random, int largestRadius, double largestNoise)
{
  const auto operation = RandomBox<WienerOperation>(random, largestRadius, true);
  operation->noise = static_cast<double>(random() % 1001) / 1000 * largestNoise;
  return operation;
}

template <typename TIn, typename TOut>
testing::AssertionResult
IsTheWiener(const Trial<TIn, TOut> & t, const WienerOperation & operation, const Coordinates & index)
{
  const auto  values = WindowValues<TIn>(t.image, index, operation);
  long double mean = 0;
  for (const TIn value : values)
  {
    mean += static_cast<long double>(value);
  }
  mean /= static_cast<long double>(values.size());
  const long double variance = VarianceOf(values);
  long double       expected = mean;
  if (variance > operation.noise)
  {
    expected += (variance - operation.noise) / variance * (static_cast<long double>(At<TIn>(t.image, index)) - mean);
  }
  return IsRounded(t.Result(index), expected, 1e-3L);
}

TEST_P(Statistics, WienerIsWhatItsDefinitionSays)
{
  std::mt19937 random(95);
  ForEachPairOfKinds([&](auto in, auto out) {
    using In = decltype(in);
    CompareWithDefinition<In, decltype(out)>(
      random,
      GetManager(),
      GetBackend(),
      12,
      // Voxels are from -60 to 140, or the integers near: a variance of 3000 is common.
      [&](int trial) { return RandomWiener(random, trial % 4 == 0 ? 6 : 2, 6000); },
      [&](int trial, std::vector<In> & pixels) {
        for (In & pixel : pixels)
        {
          pixel = static_cast<In>(static_cast<double>(random() % 200) - (std::is_signed<In>::value ? 60 : 0));
        }
        AddFewSpecialsToSome{ random }(trial, pixels);
      },
      IsTheWiener<In, decltype(out)>);
  });
}

TEST_P(Statistics, WienerOfChunksHasTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(96);
  const auto   make = [&](int trial) { return RandomWiener(random, trial % 3 == 0 ? 8 : 3, 6000); };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 40, make);
  CompareBits<std::uint8_t, std::uint8_t>(random, GetManager(), GetBackend(), 20, make);
  CompareBits<std::uint16_t, float>(random, GetManager(), GetBackend(), 20, make);
  CompareBits<double, double>(random, GetManager(), GetBackend(), 15, make);
}

TEST_P(Statistics, WienerOfSmallWindowsHasTheBitsOfTheCpuInAndBetweenTiles)
{
  std::mt19937 random(97);
  for (int trial = 0; trial < 16; ++trial)
  {
    const auto         operation = std::make_shared<WienerOperation>();
    const std::int64_t radius = 1 + trial % 3;
    operation->radius = { { radius, radius, radius, 0, 0 } };
    operation->noise = static_cast<double>(random() % 6001);
    operation->boundary.mode = trial < 8 ? BoundaryMode::Renormalized : AllModes[random() % 6];
    CompareTilesWithCpu<float, float>(random, GetManager(), GetBackend(), operation, trial, [&](auto & pixels) {
      if (trial % 3 == 2)
      {
        AddFewSpecials(random, pixels);
      }
    });
    if (HasFatalFailure())
    {
      return;
    }
  }
}

TEST(WienerOperation, BadNoiseIsNamed)
{
  WienerOperation operation;
  operation.radius = { { 1, 1, 1, 0, 0 } };
  for (const double bad : { -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN() })
  {
    operation.noise = bad;
    EXPECT_NE(ValidationMessage(operation, Coordinates::Filled(5)).find("NoiseVariance: "), std::string::npos) << bad;
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Statistics, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Statistics, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Statistics, testing::Values(Place::Cuda));

} // namespace
