/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseRecordingMonitor.h"
#include "chunkwiseStatistics.h"
#include "chunkwiseStatisticsOperation.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseWienerOperation.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <cmath>
#include <limits>
#include <numeric>

using namespace chunkwise;

namespace
{

/** More bits than any sum of the tests has. */
#if defined(__SIZEOF_FLOAT128__)
__extension__ using Quad = __float128;
#else
using Quad = long double;
#endif

constexpr PixelType AllKinds[] = { PixelType::UInt8,   PixelType::Int8,   PixelType::UInt16, PixelType::Int16,
                                   PixelType::UInt32,  PixelType::Int32,  PixelType::UInt64, PixelType::Int64,
                                   PixelType::Float32, PixelType::Float64 };

/** Infinities, NaN, zeros of both signs and subnormal numbers among the others. */
template <typename T>
std::vector<T>
RandomVoxels(std::mt19937 & random, std::size_t count, bool special)
{
  std::vector<T> voxels(count);
  for (T & voxel : voxels)
  {
    voxel = RandomPixel<T>(random);
    if constexpr (!std::is_integral<T>::value)
    {
      using Limits = std::numeric_limits<T>;
      const T values[] = { Limits::infinity(),
                           -Limits::infinity(),
                           Limits::quiet_NaN(),
                           -Limits::quiet_NaN(),
                           Limits::denorm_min(),
                           -Limits::min() / 3,
                           T(0),
                           -T(0) };
      voxel = special && random() % 20 == 0 ? values[random() % 8] : voxel;
    }
  }
  return voxels;
}

/** An image and a request for statistics of it. */
template <typename T>
struct Image
{
  std::vector<T>   voxels;
  ExecutionRequest request;

  Image(std::vector<T> theVoxels, const Coordinates & extent)
    : voxels(std::move(theVoxels))
  {
    request.image = request.region = Box::FromExtent(extent);
    request.inputs.push_back(DenseView(voxels.data(), PixelTypeOf<T>(), request.image));
  }
  static Image
  Line(std::vector<T> theVoxels)
  {
    const auto n = static_cast<std::int64_t>(theVoxels.size());
    return Image(std::move(theVoxels), Coordinates{ { n, 1, 1, 1, 1 } });
  }
  /** The numbers of the region, in ascending order, -0 before +0. */
  std::vector<T>
  Numbers() const
  {
    std::vector<T> numbers;
    ForEachIndex(request.region, [&](const Coordinates & at) {
      const T value = At<T>(request.inputs[0], at);
      if (value == value)
      {
        numbers.push_back(value);
      }
    });
    std::sort(numbers.begin(), numbers.end(), [](T a, T b) {
      return a < b || (a == b && std::signbit(static_cast<double>(a)) && !std::signbit(static_cast<double>(b)));
    });
    return numbers;
  }
};

template <typename T>
void
ExpectSameBits(T a, T b, const std::string & what)
{
  EXPECT_EQ(std::memcmp(&a, &b, sizeof(a)), 0) << what << ": " << +a << " and " << +b;
}

template <typename T>
void
ExpectStatistics(const ImageStatistics & got, const Image<T> & image, const std::string & where)
{
  SCOPED_TRACE(where);
  const std::vector<T> numbers = image.Numbers();
  const auto           n = static_cast<std::int64_t>(numbers.size());
  ASSERT_EQ(got.GetCount(), n);
  EXPECT_EQ(got.GetNumberOfNaNs(), image.request.region.NumberOfVoxels() - n);
  if (n == 0)
  {
    EXPECT_EQ(got.GetSum(), 0.0);
    EXPECT_THROW(got.GetMinimum(), Error);
    return;
  }
  ExpectSameBits(got.GetMinimum().template As<T>(), numbers.front(), "minimum");
  ExpectSameBits(got.GetMaximum().template As<T>(), numbers.back(), "maximum");
  Quad sum = 0;
  for (const T value : numbers)
  {
    sum += static_cast<Quad>(value);
  }
  if (std::isfinite(static_cast<double>(numbers.front())) && std::isfinite(static_cast<double>(numbers.back())))
  {
    EXPECT_EQ(got.GetNumberOfInfinities(), 0);
    EXPECT_EQ(got.GetSum(), static_cast<double>(sum));
    EXPECT_EQ(got.GetMean(), static_cast<double>(sum) / static_cast<double>(n));
    const Quad mean = sum / static_cast<Quad>(n);
    Quad       squares = 0;
    for (const T value : numbers)
    {
      squares += (static_cast<Quad>(value) - mean) * (static_cast<Quad>(value) - mean);
    }
    EXPECT_EQ(got.GetVariance(), static_cast<double>(squares / static_cast<Quad>(n)));
    EXPECT_EQ(got.GetStandardDeviation(), std::sqrt(got.GetVariance()));
  }
  else
  {
    EXPECT_GT(got.GetNumberOfInfinities(), 0);
    const auto expected = static_cast<double>(sum);
    EXPECT_TRUE(got.GetSum() == expected || (std::isnan(got.GetSum()) && std::isnan(expected))) << got.GetSum();
    EXPECT_TRUE(std::isnan(got.GetVariance()));
  }
}

ImageStatistics
StatisticsOf(const std::vector<double> & numbers)
{
  StatisticsAccumulator accumulator(PixelType::Float64);
  auto                  image = Image<double>::Line(numbers);
  accumulator.Add(image.request.inputs[0], image.request.region);
  return accumulator.Get();
}

TEST(ImageStatistics, TheSumIsRoundedOnceAtTheEndWhateverTheOrder)
{
  const double tiny = std::numeric_limits<double>::denorm_min();
  const auto   sum = [](const std::vector<double> & values) {
    StatisticsAccumulator back(PixelType::Float64);
    for (auto it = values.rbegin(); it != values.rend(); ++it)
    {
      StatisticsAccumulator one(PixelType::Float64);
      auto                  image = Image<double>::Line({ *it });
      one.Add(image.request.inputs[0], image.request.region);
      back.Add(one);
    }
    const double forth = StatisticsOf(values).GetSum();
    EXPECT_TRUE(forth == back.Get().GetSum() || (std::isnan(forth) && std::isnan(back.Get().GetSum())));
    return forth;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sum({}), 0.0);
  EXPECT_EQ(sum({ 1e300, 1.0, -1e300 }), 1.0);
  EXPECT_EQ(sum({ -1e300, tiny, 1e300 }), tiny);
  EXPECT_EQ(sum({ -1e300, -tiny, 1e300 }), -tiny);
  EXPECT_EQ(sum({ -3.5, 1.25 }), -2.25);
  // Ties go to even, and the smallest bit decides them.
  EXPECT_EQ(sum({ 1.0, std::ldexp(1.0, -53) }), 1.0);
  EXPECT_EQ(sum({ 1.0, std::ldexp(1.0, -52), std::ldexp(1.0, -53) }), 1.0 + std::ldexp(1.0, -51));
  EXPECT_EQ(sum({ 1.0, std::ldexp(1.0, -53), tiny }), 1.0 + std::ldexp(1.0, -52));
  EXPECT_EQ(sum({ -1.0, -std::ldexp(1.0, -53), -tiny }), -1.0 - std::ldexp(1.0, -52));
  const double largest = std::numeric_limits<double>::max();
  EXPECT_EQ(sum({ largest, largest }), infinity);
  EXPECT_EQ(sum({ largest, largest, -largest }), largest);
  EXPECT_EQ(sum({ infinity, -1e308 }), infinity);
  EXPECT_EQ(sum({ -infinity, 1e308 }), -infinity);
  EXPECT_TRUE(std::isnan(sum({ infinity, 1.0, -infinity })));
}

TEST(ImageStatistics, TheVarianceIsRoundedOnceForNumbersOfAnySize)
{
  const auto spread = [](double a) { return StatisticsOf({ a, -a }).GetVariance(); };
  EXPECT_EQ(StatisticsOf({ 5.0 }).GetVariance(), 0.0);
  EXPECT_EQ(spread(std::ldexp(1.0, 500)), std::ldexp(1.0, 1000));
  EXPECT_EQ(spread(std::ldexp(1.0, -500)), std::ldexp(1.0, -1000));
  EXPECT_EQ(spread(std::ldexp(1.0, 600)), std::numeric_limits<double>::infinity());
  // Subnormal results: 2.25 and 2.5625 of the least number, a tie at a half of it, and below.
  const double tiny = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(spread(std::ldexp(1.0, -537)), tiny);
  EXPECT_EQ(spread(std::ldexp(1.5, -537)), 2 * tiny);
  EXPECT_EQ(spread(std::ldexp(1.625, -537)), 3 * tiny);
  EXPECT_EQ(StatisticsOf({ std::ldexp(1.0, -537), 0.0, 0.0, -std::ldexp(1.0, -537) }).GetVariance(), 0.0);
  EXPECT_EQ(spread(std::ldexp(1.0, -600)), 0.0);
  // An offset does not show.
  EXPECT_EQ(StatisticsOf({ 1e15 + 1, 1e15 + 2, 1e15 + 3 }).GetVariance(), 2.0 / 3.0);
  EXPECT_EQ(StatisticsOf({ 1e300, 1e300, 1e300 }).GetVariance(), 0.0);
}

TEST(ImageStatistics, SaysWhyThereIsNoValue)
{
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto   why = [](const ImageStatistics & statistics) {
    std::string text;
    for (const auto & get : { std::function<void()>([&] { (void)statistics.GetMean(); }),
                              std::function<void()>([&] { (void)statistics.GetVariance(); }),
                              std::function<void()>([&] { (void)statistics.GetStandardDeviation(); }),
                              std::function<void()>([&] { (void)statistics.GetMinimum(); }),
                              std::function<void()>([&] { (void)statistics.GetMaximum(); }) })
    {
      try
      {
        get();
        ADD_FAILURE() << "there is a value";
      }
      catch (const Error & error)
      {
        text = error.what();
      }
    }
    return text;
  };
  EXPECT_NE(why(StatisticsOf({})).find("no voxels"), std::string::npos);
  EXPECT_NE(why(StatisticsOf({ nan, nan })).find("nothing but NaN (2 voxels)"), std::string::npos);
  const ImageStatistics infinite = StatisticsOf({ std::numeric_limits<double>::infinity(), nan });
  EXPECT_EQ(infinite.GetCount(), 1);
  EXPECT_EQ(infinite.GetNumberOfNaNs(), 1);
  EXPECT_EQ(infinite.GetMinimum().As<double>(), std::numeric_limits<double>::infinity());
  EXPECT_THROW((void)infinite.GetFiniteMinimum(), Error);
  EXPECT_THROW((void)infinite.GetFiniteMaximum(), Error);
}

TEST(StatisticsAccumulator, AddsUpPiecesInAnyOrder)
{
  std::mt19937 random(71);
  const auto   executor = MakeThreadExecutor(3);
  for (const PixelType kind : AllKinds)
  {
    DispatchPixelType(kind, [&](auto pixel) {
      using T = decltype(pixel);
      const Coordinates extent{ { 70, 9, 4, 2, 1 } };
      Image<T>          image(RandomVoxels<T>(random, 70 * 9 * 4 * 2, true), extent);
      std::vector<Box>  pieces;
      for (std::int64_t y = 0; y < 9; y += 4)
      {
        for (std::int64_t x = 0; x < 70;)
        {
          Box piece = image.request.image;
          piece.lower[0] = x;
          piece.upper[0] = x = std::min<std::int64_t>(x + 1 + static_cast<std::int64_t>(random() % 40), 70);
          piece.lower[1] = y;
          piece.upper[1] = std::min<std::int64_t>(y + 4, 9);
          pieces.push_back(piece);
        }
      }
      std::shuffle(pieces.begin(), pieces.end(), random);
      StatisticsAccumulator total(kind);
      for (const Box & piece : pieces)
      {
        StatisticsAccumulator part(kind);
        part.Add(image.request.inputs[0], piece, random() % 2 ? executor.get() : nullptr);
        total.Add(part);
      }
      ExpectStatistics(total.Get(), image, PixelTypeName(kind));
    });
  }
  StatisticsAccumulator floats(PixelType::Float32);
  EXPECT_THROW(floats.Add(StatisticsAccumulator(PixelType::Float64)), ParameterError);
  auto doubles = Image<double>::Line({ 1, 2 });
  EXPECT_THROW(floats.Add(doubles.request.inputs[0], doubles.request.region), ParameterError);
  StatisticsAccumulator ofDoubles(PixelType::Float64);
  EXPECT_THROW(ofDoubles.Add(doubles.request.inputs[0], Box::FromExtent({ { 3, 1, 1, 1, 1 } })), ParameterError);
}

/** Stops when some voxels are done. */
class StopAt : public RunControl
{
public:
  std::atomic<std::int64_t> voxels{ 0 };
  std::int64_t              stopAt{ INT64_MAX };

  bool
  ShouldStop() const override
  {
    return voxels >= stopAt;
  }
  void
  AddFinishedVoxels(std::int64_t more) override
  {
    voxels += more;
  }
};

TEST(StatisticsAccumulator, StopsSoonAndReportsItsVoxels)
{
  auto                  image = Image<std::uint8_t>::Line(std::vector<std::uint8_t>(1 << 22, 7));
  StatisticsAccumulator accumulator(PixelType::UInt8);
  StopAt                control;
  accumulator.Add(image.request.inputs[0], image.request.region, nullptr, &control);
  EXPECT_EQ(control.voxels, 1 << 22);
  EXPECT_EQ(accumulator.Get().GetSum(), 7.0 * (1 << 22));
  EXPECT_EQ(accumulator.Get().GetVariance(), 0.0);
  control.voxels = 0;
  control.stopAt = 1 << 19;
  EXPECT_THROW(accumulator.Add(image.request.inputs[0], image.request.region, nullptr, &control), Aborted);
  EXPECT_LT(control.voxels, 1 << 20);
  // A stopped run leaves no partial result.
  EXPECT_EQ(accumulator.Get().GetCount(), 1 << 22);
}

using GlobalStatistics = KernelTest;

/** Some budget that cuts what has this many bytes, or none. */
void
ChooseBudgets(std::mt19937 & random, ExecutionRequest & request)
{
  request.budgets = Budgets();
  if (random() % 3)
  {
    request.budgets.device = 12000 + random() % 20000;
    request.budgets.host = 40000 + random() % 40000;
  }
}

TEST_P(GlobalStatistics, AreThoseOfTheDefinitionHoweverTheImageIsCut)
{
  std::mt19937 random(72);
  std::size_t  mostChunks = 0;
  for (const PixelType kind : AllKinds)
  {
    DispatchPixelType(kind, [&](auto pixel) {
      using T = decltype(pixel);
      for (int trial = 0; trial < 8; ++trial)
      {
        const Coordinates extent = RandomExtent(random, 24);
        Image<T>          image(
          RandomVoxels<T>(random, static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()), trial % 2 == 0),
          extent);
        image.request.region = RandomRegion(random, extent);
        image.request.backend = GetBackend();
        ChooseBudgets(random, image.request);
        const auto executor = MakeThreadExecutor(1 + random() % 4);
        image.request.executor = executor.get();
        ExecutionReport  report;
        RecordingMonitor monitor;
        const auto       statistics = ComputeStatistics(GetManager(), image.request, &monitor, &report);
        ExpectStatistics(statistics,
                         image,
                         std::string(PixelTypeName(kind)) + " " + ToString(extent) + " " +
                           ToString(report.plan.chunkExtent));
        mostChunks = std::max(mostChunks, report.plan.chunks.size());
        EXPECT_EQ(monitor.fractions.back(), 1.0);
        EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
        EXPECT_EQ(report.bytesToHost, 0.0);
        EXPECT_TRUE(image.request.budgets.device == 0 || report.peakDevice <= image.request.budgets.device);
        EXPECT_TRUE(image.request.budgets.host == 0 || report.peakHost <= image.request.budgets.host);
      }
    });
  }
  EXPECT_TRUE(GetParam() == Place::Cpu || mostChunks > 2) << mostChunks;
}

TEST_P(GlobalStatistics, OfAnEmptyRegionAreOfNoVoxel)
{
  auto image = Image<float>::Line({ 1, 2, 3 });
  image.request.backend = GetBackend();
  image.request.region.upper[0] = 0;
  EXPECT_EQ(ComputeStatistics(GetManager(), image.request).GetCount(), 0);
  EXPECT_THROW((void)ComputeQuantiles(GetManager(), image.request, { 0.5 }), Error);
  EXPECT_EQ(ComputeHistogram(GetManager(), image.request, 4, { 0, 1 }).counts, std::vector<std::int64_t>(4, 0));
}

/** Numbers whose exponents jump, so that no window of bits holds two neighbours: all goes to the digits. */
TEST_P(GlobalStatistics, OfNumbersOfAllSizesAreExact)
{
  std::mt19937        random(73);
  std::vector<double> numbers;
  for (int i = 0; i < 20000; ++i)
  {
    const double number = std::ldexp(1.0 + random() / 4294967296.0, static_cast<int>(random() % 2000) - 1000);
    numbers.push_back(number);
    numbers.push_back(-number);
  }
  numbers.push_back(0.375);
  numbers.push_back(std::numeric_limits<double>::denorm_min());
  std::shuffle(numbers.begin(), numbers.end(), random);
  auto image = Image<double>::Line(numbers);
  image.request.backend = GetBackend();
  const auto statistics = ComputeStatistics(GetManager(), image.request);
  EXPECT_EQ(statistics.GetSum(), 0.375);
  auto again = Image<double>::Line(std::vector<double>(numbers.rbegin(), numbers.rend()));
  again.request.backend = BackendChoice::CPU;
  EXPECT_EQ(ComputeStatistics(GetManager(), again.request).GetVariance(), statistics.GetVariance());
  std::vector<float> floats;
  for (int i = 0; i < 20000; ++i)
  {
    const float number = std::ldexp(1.5f, static_cast<int>(random() % 250) - 140);
    floats.push_back(number);
    floats.push_back(-number);
  }
  floats.push_back(std::numeric_limits<float>::denorm_min());
  auto ofFloats = Image<float>::Line(floats);
  ofFloats.request.backend = GetBackend();
  EXPECT_EQ(ComputeStatistics(GetManager(), ofFloats.request).GetSum(), std::numeric_limits<float>::denorm_min());
}

/** More voxels than one block of threads takes, and long rows. */
TEST_P(GlobalStatistics, OfALargeImageAreExact)
{
  std::mt19937               random(74);
  std::vector<std::uint64_t> voxels(300001);
  for (auto & voxel : voxels)
  {
    voxel = random() % 8 ? UINT64_MAX - random() : random();
  }
  auto image = Image<std::uint64_t>::Line(voxels);
  image.request.backend = GetBackend();
  ExpectStatistics(ComputeStatistics(GetManager(), image.request), image, "uint64");
  std::vector<float> floats;
  for (const std::uint64_t voxel : voxels)
  {
    floats.push_back(static_cast<float>(voxel % 100003) / 7.0f - 3000.0f);
  }
  Image<float> ofFloats(floats, { { 300001, 1, 1, 1, 1 } });
  ofFloats.request.backend = GetBackend();
  ofFloats.request.budgets.device = 400000;
  ExpectStatistics(ComputeStatistics(GetManager(), ofFloats.request), ofFloats, "float");
}

TEST_P(GlobalStatistics, HistogramsCountEveryVoxelOnce)
{
  std::mt19937 random(75);
  for (const PixelType kind : AllKinds)
  {
    DispatchPixelType(kind, [&](auto pixel) {
      using T = decltype(pixel);
      for (const int bins : { 1, 7, 256, 65536 })
      {
        const Coordinates extent = RandomExtent(random, 24);
        Image<T>          image(
          RandomVoxels<T>(random, static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()), true), extent);
        image.request.region = RandomRegion(random, extent);
        image.request.backend = GetBackend();
        ChooseBudgets(random, image.request);
        image.request.budgets.device *= bins > 256 ? 200 : 1;
        // Each thread has separate counts.
        const unsigned int threads = std::thread::hardware_concurrency();
        image.request.budgets.host *= bins > 256 ? std::max(200u, 40 * threads) : 1 + threads / 8;
        const double highest =
          std::is_integral<T>::value ? 0.8 * static_cast<double>(std::numeric_limits<T>::max()) : 120;
        const ValueRange          range{ highest / -3.1, highest };
        std::vector<std::int64_t> expected(static_cast<std::size_t>(bins), 0);
        for (const T value : image.Numbers())
        {
          const double position = (static_cast<double>(value) - range.lower) * (bins / (range.upper - range.lower));
          ++expected[static_cast<std::size_t>(std::max(0.0, std::min(std::floor(position), bins - 1.0)))];
        }
        const ImageHistogram histogram = ComputeHistogram(GetManager(), image.request, bins, range);
        EXPECT_EQ(histogram.counts, expected) << PixelTypeName(kind) << " " << bins;
        EXPECT_EQ(histogram.numberOfNaNs,
                  image.request.region.NumberOfVoxels() -
                    std::accumulate(expected.begin(), expected.end(), std::int64_t{ 0 }));
      }
    });
  }
  auto image = Image<float>::Line({ 1 });
  EXPECT_THROW((void)ComputeHistogram(GetManager(), image.request, 0, { 0, 1 }), ParameterError);
  EXPECT_THROW((void)ComputeHistogram(GetManager(), image.request, 65537, { 0, 1 }), ParameterError);
  EXPECT_THROW((void)ComputeHistogram(GetManager(), image.request, 4, { 1, 1 }), ParameterError);
}

/** Bins of all 16 bits, with more voxels in a bin than 16 bits count. */
TEST_P(GlobalStatistics, HistogramsOfLargeImagesCountEveryVoxelOnce)
{
  constexpr int bins = 65536;
  std::mt19937  random(77);
  const auto    expectHistogram = [&](auto pixel, double lower, double upper, std::size_t n = 5000011) {
    using T = decltype(pixel);
    std::vector<T> voxels(n);
    for (std::size_t i = 0; i < n; ++i)
    {
      // Random ones, two in turn, and equal ones.
      const std::size_t number = i < n / 2 ? random() % bins : i < 3 * (n / 4) ? 40000 + i % 2 : 65535;
      voxels[i] = std::is_integral<T>::value || i % 11 > 0
                       ? static_cast<T>(lower + (static_cast<double>(number) + 0.5) / bins * (upper - lower))
                       : std::numeric_limits<T>::quiet_NaN();
    }
    std::vector<std::int64_t> expected(bins + 1, 0);
    for (const T voxel : voxels)
    {
      const double position = (static_cast<double>(voxel) - lower) * (bins / (upper - lower));
      ++expected[voxel == voxel ? static_cast<std::size_t>(std::max(0.0, std::min(std::floor(position), bins - 1.0)))
                                   : bins];
    }
    auto image = Image<T>::Line(std::move(voxels));
    image.request.backend = GetBackend();
    const ImageHistogram histogram = ComputeHistogram(GetManager(), image.request, bins, { lower, upper });
    EXPECT_EQ(histogram.numberOfNaNs, expected.back());
    expected.pop_back();
    EXPECT_TRUE(histogram.counts == expected) << PixelTypeName(PixelTypeOf<T>()) << " from " << lower;
  };
  expectHistogram(std::uint16_t(), 0, 65536);
  expectHistogram(std::int16_t(), -32768, 32768);
  expectHistogram(std::uint16_t(), 100, 40100);
  expectHistogram(std::uint16_t(), 1000, 66536);
  // Blocks of CUDA kernels leave their counters, an odd number of them, in memory.
  expectHistogram(std::uint16_t(), 0, 65536, 17000011);
  expectHistogram(float(), -0.5, 7, 17000011);
  expectHistogram(float(), -0.5, 7);
  expectHistogram(double(), 3, 65539);
}

TEST_P(GlobalStatistics, QuantilesAreThoseOfTheSortedImage)
{
  std::mt19937        random(76);
  std::vector<double> fractions = { 0, 1, 0.5, 0.25, 0.999, 1e-9 };
  for (int i = 0; i < 8; ++i)
  {
    fractions.push_back(random() / 4294967296.0);
  }
  for (const PixelType kind : AllKinds)
  {
    DispatchPixelType(kind, [&](auto pixel) {
      using T = decltype(pixel);
      for (int trial = 0; trial < 3; ++trial)
      {
        const Coordinates extent = RandomExtent(random, trial == 0 ? 1 : 20);
        Image<T>          image(
          RandomVoxels<T>(random, static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()), trial == 2),
          extent);
        if (trial == 1)
        {
          // Many equal ones, and ones that differ by their lowest bits alone.
          for (T & voxel : image.voxels)
          {
            voxel = static_cast<T>(T(100) + static_cast<T>(random() % 3) * std::numeric_limits<T>::epsilon() * 64 +
                                   static_cast<T>(random() % 2));
          }
        }
        image.request.backend = GetBackend();
        const std::vector<T> sorted = image.Numbers();
        if (sorted.empty())
        {
          continue;
        }
        RecordingMonitor monitor;
        const auto       quantiles = ComputeQuantiles(GetManager(), image.request, fractions, &monitor);
        EXPECT_EQ(monitor.fractions.back(), 1.0);
        EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
        ASSERT_EQ(quantiles.size(), fractions.size());
        for (std::size_t i = 0; i < fractions.size(); ++i)
        {
          const double position = fractions[i] * static_cast<double>(sorted.size() - 1);
          const auto   rank = static_cast<std::size_t>(position);
          const T      lower = sorted[rank];
          const T      next = sorted[std::min(rank + 1, sorted.size() - 1)];
          ExpectSameBits(quantiles[i].lower.template As<T>(), lower, "lower " + std::to_string(fractions[i]));
          ExpectSameBits(quantiles[i].next.template As<T>(), next, "next " + std::to_string(fractions[i]));
          const auto a = static_cast<double>(lower);
          const auto b = static_cast<double>(next);
          if (std::isfinite(a) && std::isfinite(b))
          {
            const double weight = position - static_cast<double>(rank);
            EXPECT_NEAR(quantiles[i].linear, a * (1 - weight) + b * weight, 1e-14 * (std::abs(a) + std::abs(b)));
          }
        }
      }
    });
  }
  auto image = Image<double>::Line({ 1, 2, 3, 10 });
  image.request.backend = GetBackend();
  EXPECT_EQ(ComputeQuantiles(GetManager(), image.request, { 0.5 })[0].linear, 2.5);
  EXPECT_EQ(ComputeQuantiles(GetManager(), image.request, { 0.5 })[0].lower.As<double>(), 2.0);
  EXPECT_THROW((void)ComputeQuantiles(GetManager(), image.request, { 1.5 }), ParameterError);
  EXPECT_THROW((void)ComputeQuantiles(GetManager(), image.request, { std::nan("") }), ParameterError);
}

TEST_P(GlobalStatistics, GiveTheRangeOfAnEntropy)
{
  const double inf = std::numeric_limits<double>::infinity();
  const auto   rangeOf = [&](auto && image) {
    image.request.backend = GetBackend();
    const ValueRange range = ComputeEntropyRange(GetManager(), image.request, 64);
    EntropyOperation operation;
    operation.bins = 64;
    operation.lower = range.lower;
    operation.upper = range.upper;
    EXPECT_NO_THROW(operation.Validate(image.request.image.Extents())) << range.lower << " " << range.upper;
    return range;
  };
  ValueRange range = rangeOf(Image<double>::Line({ 3, -2.5, 17, inf, -inf, std::nan("") }));
  EXPECT_EQ(range.lower, -2.5);
  EXPECT_EQ(range.upper, 17.0);
  EXPECT_EQ(BinOf(17.0, range.lower, 64 / (range.upper - range.lower), 64), 63);
  range = rangeOf(Image<std::int32_t>::Line({ 5, 5, 5 }));
  EXPECT_EQ(range.lower, 5.0);
  EXPECT_EQ(range.upper, 6.0);
  EXPECT_GT(rangeOf(Image<float>::Line({ 1e30f })).upper, 1e30f);
  rangeOf(Image<double>::Line({ 0.0, std::numeric_limits<double>::denorm_min() }));
  range = rangeOf(Image<std::int16_t>::Line({ 5 }));
  EXPECT_EQ(range.lower, -32768.0);
  EXPECT_EQ(range.upper, 32768.0);
  EXPECT_THROW(rangeOf(Image<float>::Line({ std::nanf("") })), ParameterError);
  EXPECT_THROW(rangeOf(Image<double>::Line({ 1.5e308, -1.5e308 })), ParameterError);
}

TEST_P(GlobalStatistics, GiveTheNoiseOfAWienerFilter)
{
  std::mt19937 random(77);
  std::size_t  mostChunks = 0;
  for (const PixelType kind : { PixelType::UInt8, PixelType::Int32, PixelType::Float32, PixelType::Float64 })
  {
    DispatchPixelType(kind, [&](auto pixel) {
      using T = decltype(pixel);
      for (const BoundaryMode mode : AllModes)
      {
        const Coordinates extent{ { 30, 21, 14, 1, 1 } };
        Image<T>          image(RandomVoxels<T>(random, 30 * 21 * 14, false), extent);
        const auto        wiener = std::make_shared<WienerOperation>();
        wiener->radius = { { 2, 1, 1, 0, 0 } };
        wiener->boundary.mode = mode;
        wiener->noise = -1;
        image.request.operation = wiener;
        image.request.backend = GetBackend();
        // Kernels of real devices may need more for their smallest chunk.
        image.request.budgets.device = GetParam() == Place::Cuda ? 600000 : 150000;

        // By the definition, from an image of the variances.
        const auto variance = std::make_shared<VarianceOperation>();
        variance->radius = wiener->radius;
        variance->boundary = wiener->boundary;
        ExecutionRequest    ofVariance = image.request;
        std::vector<double> memory(image.voxels.size());
        ofVariance.operation = variance;
        ofVariance.backend = BackendChoice::CPU;
        ofVariance.output =
          DenseView(memory.data(), WienerOperation().GetStageKinds(kind, kind).front(), image.request.image);
        GetManager().Execute(ofVariance);
        Quad sum = 0;
        ForEachIndex(image.request.image, [&](const Coordinates & at) {
          sum += ofVariance.output.kind == PixelType::Float32 ? static_cast<Quad>(At<float>(ofVariance.output, at))
                                                              : static_cast<Quad>(At<double>(ofVariance.output, at));
        });
        const double expected = static_cast<double>(sum) / static_cast<double>(image.voxels.size());
        EXPECT_EQ(ComputeWienerNoise(GetManager(), image.request), expected)
          << PixelTypeName(kind) << " " << BoundaryModeName(mode);
        // The same where the image arrives in pieces.
        ExecutionRequest      piece = MakeLocalVarianceRequest(image.request);
        StatisticsAccumulator pieces(piece.output.kind);
        for (const std::int64_t first : { 0, 9 })
        {
          piece.region.lower[2] = first;
          piece.region.upper[2] = first == 0 ? 9 : 14;
          pieces.Add(GetManager(), piece);
        }
        EXPECT_EQ(GetWienerNoise(pieces.Get()), expected);
        ExecutionReport report;
        image.request.operation = variance;
        image.request.output.kind = ofVariance.output.kind;
        EXPECT_EQ(ComputeStatistics(GetManager(), image.request, nullptr, &report).GetMean(), expected);
        mostChunks = std::max(mostChunks, report.plan.chunks.size());
        EXPECT_LE(report.peakDevice, image.request.budgets.device);
      }
    });
  }
  EXPECT_TRUE(GetParam() != Place::Fake || mostChunks > 2) << mostChunks;
  auto image = Image<float>::Line({ std::nanf(""), 1 });
  image.request.operation = std::make_shared<WienerOperation>();
  EXPECT_NO_THROW((void)ComputeWienerNoise(GetManager(), image.request));
  EXPECT_THROW(StatisticsAccumulator(PixelType::Float64).Add(GetManager(), MakeLocalVarianceRequest(image.request)),
               ParameterError);
  image.voxels[1] = std::nanf("");
  EXPECT_THROW((void)ComputeWienerNoise(GetManager(), image.request), ParameterError);
  image.request.operation = std::make_shared<VarianceOperation>();
  EXPECT_THROW((void)ComputeWienerNoise(GetManager(), image.request), ParameterError);
}

/** Memory of a device, or of the host, between guards of all bits one. */
class Guarded
{
public:
  Guarded(Device * device, std::size_t bytes)
    : m_Device(device)
    , m_Image(bytes + 2 * Guard + 256, 0xFF)
    , m_Stream(device ? device->CreateStream() : nullptr)
    , m_Memory(device ? device->Allocate(m_Image.size()) : nullptr)
    , m_Begin(device ? Guard : Guard + 256 - reinterpret_cast<std::uintptr_t>(m_Image.data()) % 256)
    , m_Bytes(bytes)
  {
    Upload();
  }
  ~Guarded()
  {
    if (m_Device)
    {
      m_Device->Free(m_Memory);
      m_Device->DestroyStream(m_Stream);
    }
  }
  Guarded(const Guarded &) = delete;
  Guarded &
  operator=(const Guarded &) = delete;

  void *
  Get()
  {
    return m_Device ? static_cast<unsigned char *>(m_Memory) + m_Begin : m_Image.data() + m_Begin;
  }
  void
  Fill(const void * data)
  {
    std::memcpy(m_Image.data() + m_Begin, data, m_Bytes);
    Upload();
  }
  /** The contents; a failure if a guard has changed. */
  ChunkState
  Fetch(const std::string & what)
  {
    if (m_Device)
    {
      m_Device->CopyToHost(m_Image.data(), m_Memory, m_Image.size(), m_Stream);
      m_Device->Synchronize(m_Stream);
    }
    const auto isOne = [](unsigned char byte) { return byte == 0xFF; };
    const auto begin = m_Image.begin() + static_cast<std::ptrdiff_t>(m_Begin);
    const auto end = begin + static_cast<std::ptrdiff_t>(m_Bytes);
    EXPECT_TRUE(std::all_of(m_Image.begin(), begin, isOne) && std::all_of(end, m_Image.end(), isOne))
      << "writes beside its " << what;
    return ChunkState(begin, end);
  }

private:
  static constexpr std::size_t Guard = 4096;

  void
  Upload()
  {
    if (m_Device)
    {
      m_Device->CopyToDevice(m_Memory, m_Image.data(), m_Image.size(), m_Stream);
      m_Device->Synchronize(m_Stream);
    }
  }

  Device *                   m_Device;
  std::vector<unsigned char> m_Image;
  StreamHandle               m_Stream;
  void *                     m_Memory;
  std::size_t                m_Begin;
  std::size_t                m_Bytes;
};

/** The bytes of a summary by a device, or by the host with some threads, of the image that begins at a voxel. */
template <typename T>
ChunkState
SummaryOf(Device * device, unsigned int threads, const SummaryOperation & operation, const std::vector<T> & voxels,
          const Coordinates & extent, std::size_t begin)
{
  class Tables : public DeviceTables
  {
    const void *
    Get(const std::string &, const void * data, std::size_t) override
    {
      return data;
    }
  } tables;
  const KernelRegistry & kernels = device ? device->GetKernels() : GetHostKernels();
  const Kernel &         kernel = kernels.Get(operation.GetName(), "the test", &KernelSet::summarize);
  const auto             executor = MakeThreadExecutor(threads);
  ChunkShape             shape;
  shape.inputBox = shape.outputBox = shape.image = Box::FromExtent(extent);
  shape.numberOfInputs = 1;
  shape.inputKinds[0] = PixelTypeOf<T>();
  shape.concurrency = static_cast<int>(threads);
  shape.kernels = &kernels;
  const std::size_t scratchBytes = kernel.scratchBytes ? kernel.scratchBytes(operation, shape) : 0;
  Guarded           input(device, voxels.size() * sizeof(T));
  Guarded           scratch(device, scratchBytes);
  Guarded           summary(device, operation.GetSummaryBytes(shape.outputBox, { PixelTypeOf<T>() }, PixelType::UInt8));
  input.Fill(voxels.data());
  KernelCall call;
  call.operation = &operation;
  call.inputs[0] = DenseView(static_cast<T *>(input.Get()) + begin, PixelTypeOf<T>(), shape.image);
  call.numberOfInputs = 1;
  call.image = call.writable = shape.image;
  call.scratch = scratch.Get();
  call.scratchBytes = scratchBytes;
  call.sideOut = summary.Get();
  call.sideOutBytes = summary.Fetch("summary").size();
  call.executor = executor.get();
  call.tables = &tables;
  call.kernels = &kernels;
  if (device)
  {
    const StreamHandle stream = device->CreateStream();
    device->Launch(kernel, call, stream);
    device->Synchronize(stream);
    device->DestroyStream(stream);
  }
  else
  {
    kernel.run(call);
  }
  scratch.Fetch("scratch");
  input.Fetch("input");
  return summary.Fetch("summary");
}

TEST_P(GlobalStatistics, SummariesHaveTheSameBytesAndKernelsKeepToTheirScratch)
{
  std::mt19937 random(79);
  const auto   variance = std::make_shared<VarianceOperation>();
  variance->radius = { { 1, 2, 0, 0, 0 } };
  StatisticsOperation statistics;
  StatisticsOperation ofVariance;
  ofVariance.stage = variance;
  HistogramOperation few;
  few.lower = -50;
  HistogramOperation some = few;
  some.bins = 5000;
  HistogramOperation many = few;
  many.bins = 20000;
  OrdinalsOperation ordinals;
  for (const PixelType kind : AllKinds)
  {
    DispatchPixelType(kind, [&](auto pixel) {
      using T = decltype(pixel);
      ofVariance.stageKind = WienerOperation().GetStageKinds(kind, kind).front();
      ordinals.bits = std::min<int>(8 * sizeof(T), 16);
      for (const Coordinates & extent :
           { Coordinates{ { 1, 1, 1, 1, 1 } }, Coordinates{ { 7, 5, 3, 2, 1 } }, Coordinates{ { 300, 301, 2, 1, 1 } } })
      {
        // Kernels load more than a voxel at a time, wherever the image begins.
        const std::size_t begin = random() % 4;
        const auto        voxels =
          RandomVoxels<T>(random, begin + static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()), true);
        ordinals.shift = 8 * static_cast<int>(sizeof(T)) - ordinals.bits;
        ordinals.prefixes = { 0 };
        Device * const device = GetParam() == Place::Cpu ? nullptr : GetManager().GetDevices().front().get();
        const auto     expectSame = [&](const SummaryOperation & operation) {
          EXPECT_EQ(SummaryOf(device, device ? 1 : 3, operation, voxels, extent, begin),
                    SummaryOf(nullptr, 1, operation, voxels, extent, begin))
            << operation.GetKey() << " of " << PixelTypeName(kind) << " " << ToString(extent);
        };
        expectSame(statistics);
        expectSame(ofVariance);
        expectSame(few);
        expectSame(some);
        expectSame(many);
        expectSame(ordinals);
        if (sizeof(T) > 2)
        {
          ordinals.shift -= 16;
          ordinals.prefixes = { 0x4001, 0x7FFF, 0x8000, 0x8001, 0xC100, 0xC2A0 };
          expectSame(ordinals);
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Everywhere, GlobalStatistics, testing::Values(Place::Cpu, Place::Fake, Place::Cuda),
                         [](const auto & info) {
                           return info.param == Place::Cpu ? "Cpu" : info.param == Place::Fake ? "Fake" : "Cuda";
                         });

TEST(Summarise, OperationsWithAnOutputAreExecutedTheOthersSummarised)
{
  auto image = Image<float>::Line({ 1, 2 });
  auto manager = FakeDevices(0, FakeDevice::Options(), GetHostKernels()).MakeManager();
  image.request.operation = std::make_shared<StatisticsOperation>();
  EXPECT_THROW(manager->Execute(image.request), ParameterError);
  EXPECT_EQ(manager->MakePlanFor(image.request).chunks.size(), 1u);
  image.request.operation = std::make_shared<IdentityOperation>();
  EXPECT_THROW(manager->Summarise(image.request), ParameterError);
  // Statistics of what hands on a carry, or of statistics, are none.
  image.request.operation = std::make_shared<StatisticsOperation>();
  EXPECT_THROW((void)ComputeStatistics(*manager, image.request), ParameterError);
  image.request.operation = nullptr;
  image.request.inputs.clear();
  EXPECT_THROW((void)ComputeStatistics(*manager, image.request), ParameterError);
}

TEST(Summarise, OnTheCpuReportsProgressAndObeysAbort)
{
  auto             image = Image<float>::Line(std::vector<float>(40000000, 1.5f));
  const auto       manager = FakeDevices(0, FakeDevice::Options(), GetHostKernels()).MakeManager();
  RecordingMonitor monitor;
  EXPECT_EQ(ComputeStatistics(*manager, image.request, &monitor).GetSum(), 6e7);
  EXPECT_EQ(monitor.fractions.back(), 1.0);
  EXPECT_GT(monitor.fractions.size(), 3u);
  RecordingMonitor aborting;
  aborting.abortAt = 0.05;
  EXPECT_THROW((void)ComputeStatistics(*manager, image.request, &aborting), Aborted);
  EXPECT_LT(aborting.fractions.back(), 0.95);
  RecordingMonitor ofQuantiles;
  ofQuantiles.abortAt = 0.6;
  EXPECT_THROW((void)ComputeQuantiles(*manager, image.request, { 0.5 }, &ofQuantiles), Aborted);
}

TEST(Summarise, OnADeviceCanBeAborted)
{
  std::mt19937     random(78);
  Image<float>     image(RandomVoxels<float>(random, 64 * 64 * 20, false), { { 64, 64, 20, 1, 1 } });
  FakeDevices      devices(2, FakeDevice::Options(), GetHostKernels());
  const auto       manager = devices.MakeManager();
  RecordingMonitor monitor;
  monitor.abortAt = 0;
  std::atomic<int> kernels{ 0 };
  for (const auto & fake : devices.fakes)
  {
    fake->onKernel = [&](int) {
      ++kernels;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    };
  }
  image.request.budgets.device = 30000;
  image.request.backend = BackendChoice::CUDA;
  EXPECT_THROW((void)ComputeStatistics(*manager, image.request, &monitor), Aborted);
  EXPECT_LT(kernels, 8);
}

/** Without a budget, statistics of another operation's result do not hold an image of it. */
TEST(Summarise, AStageOnTheCpuTakesAPartOfTheImageAtATime)
{
  std::vector<std::uint8_t> voxels(std::size_t{ 64 } << 20, 0);
  voxels.back() = 100;
  Image<std::uint8_t> image(std::move(voxels), { { 1024, 1024, 64, 1, 1 } });
  const auto          manager = FakeDevices(0, FakeDevice::Options(), GetHostKernels()).MakeManager();
  image.request.operation = std::make_shared<IdentityOperation>();
  image.request.output.kind = PixelType::Float64;
  ExecutionReport report;
  EXPECT_EQ(ComputeStatistics(*manager, image.request, nullptr, &report).GetSum(), 100.0);
  EXPECT_GT(report.plan.chunks.size(), 1u);
  // The whole of it would be 512 MiB.
  EXPECT_LE(report.peakHost, std::size_t{ 320 } << 20);
}

} // namespace
