/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFakeDevices.h"
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseThresholdOperation.h"
#include "chunkwiseThresholds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

using namespace chunkwise;

namespace
{

using Counts = std::vector<std::int64_t>;
using Real = long double;

/** Sums over the bins from `begin` to before `end`, one by one. */
struct Part
{
  Real number{ 0 };
  Real sum{ 0 };
  Real squares{ 0 }; ///< of the counts

  Part(const Counts & counts, std::size_t begin, std::size_t end)
  {
    for (std::size_t i = begin; i < end; ++i)
    {
      number += static_cast<Real>(counts[i]);
      sum += static_cast<Real>(i) * static_cast<Real>(counts[i]);
      squares += static_cast<Real>(counts[i]) * static_cast<Real>(counts[i]);
    }
  }
  Real
  Mean() const
  {
    return sum / number;
  }
};

/** The criterion that a method makes largest, for the threshold t, from its definition. */
Real
Criterion(const Counts & counts, ThresholdMethod method, std::size_t t)
{
  const Part below(counts, 0, t + 1);
  const Part above(counts, t + 1, counts.size());
  const Real total = below.number + above.number;
  const Real p = below.number / total;
  const Real q = above.number / total;
  Real       value = 0;
  switch (method)
  {
    case ThresholdMethod::Otsu:
      return p * q * (below.Mean() - above.Mean()) * (below.Mean() - above.Mean());
    case ThresholdMethod::Yen:
      return p * q * p * q / (below.squares / (total * total) * above.squares / (total * total));
    case ThresholdMethod::MaximumEntropy:
      for (std::size_t i = 0; i < counts.size(); ++i)
      {
        const Real of = static_cast<Real>(counts[i]) / (i <= t ? below.number : above.number);
        value -= counts[i] > 0 ? of * std::log(of) : Real(0);
      }
      return value;
    case ThresholdMethod::Huang:
      for (std::size_t i = 0; i < counts.size(); ++i)
      {
        const Real mean = std::floor((i <= t ? below.Mean() : above.Mean()) + Real(0.5));
        const Real mu = 1 / (1 + std::abs(static_cast<Real>(i) - mean) / static_cast<Real>(counts.size() - 1));
        value -= mu < 1 ? static_cast<Real>(counts[i]) * (-mu * std::log(mu) - (1 - mu) * std::log(1 - mu)) : Real(0);
      }
      return value;
    case ThresholdMethod::Shanbhag:
    {
      Real inside = 0;
      for (std::size_t i = 1; i <= t; ++i)
      {
        inside -= static_cast<Real>(counts[i]) / total * std::log(1 - Part(counts, 0, i).number / total / (2 * p));
      }
      Real outside = 0;
      for (std::size_t i = t + 1; i < counts.size(); ++i)
      {
        const Real rest = Part(counts, i + 1, counts.size()).number / total;
        outside -= static_cast<Real>(counts[i]) / total * std::log(1 - rest / (2 * q));
      }
      return -std::abs(inside / (2 * p) - outside / (2 * q));
    }
    default:
      throw std::logic_error("no criterion");
  }
}

Counts
RandomCounts(std::mt19937 & random)
{
  Counts counts(2 + random() % 60);
  for (std::int64_t & count : counts)
  {
    count = random() % 3 == 0 ? 0 : 1 + static_cast<std::int64_t>(random() % 1000);
  }
  counts.front() += 1;
  counts.back() += 1;
  return counts;
}

std::size_t
BinFound(const Counts & counts, ThresholdMethod method)
{
  const std::vector<double> found = ComputeThresholds({ -7, 0.5, counts }, method);
  EXPECT_EQ(found.size(), 1u);
  const double bin = (found.at(0) + 7) / 0.5;
  EXPECT_EQ(bin, std::floor(bin));
  return static_cast<std::size_t>(bin);
}

TEST(HistogramThresholds, MakeTheirCriterionLargest)
{
  std::mt19937 random(11);
  for (int trial = 0; trial < 200; ++trial)
  {
    const Counts counts = RandomCounts(random);
    for (const ThresholdMethod method : { ThresholdMethod::Otsu,
                                          ThresholdMethod::Yen,
                                          ThresholdMethod::MaximumEntropy,
                                          ThresholdMethod::Huang,
                                          ThresholdMethod::Shanbhag })
    {
      Real largest = -std::numeric_limits<Real>::infinity();
      for (std::size_t t = 0; t + 1 < counts.size(); ++t)
      {
        largest = std::max(largest, Criterion(counts, method, t));
      }
      const std::size_t bin = BinFound(counts, method);
      ASSERT_LT(bin + 1, counts.size());
      EXPECT_GT(counts[bin], 0) << "the first of several thresholds is a bin with voxels";
      const Real slack = method == ThresholdMethod::MaximumEntropy ? 1.1e-5L : std::abs(largest) * 1e-12L + 1e-15L;
      EXPECT_GE(Criterion(counts, method, bin), largest - slack) << GetThresholdMethodNames()[static_cast<int>(method)];
    }
  }
}

TEST(HistogramThresholds, OfFixedPointsStay)
{
  std::mt19937 random(12);
  for (int trial = 0; trial < 200; ++trial)
  {
    const Counts counts = RandomCounts(random);
    const auto   split = [&](double t) {
      const auto end = static_cast<std::size_t>(std::floor(t)) + 1;
      return std::make_pair(Part(counts, 0, end).Mean(), Part(counts, end, counts.size()).Mean());
    };
    Real threshold = Part(counts, 0, counts.size()).Mean();
    Real before = -1;
    while (std::abs(threshold - before) > Real(0.5))
    {
      before = threshold;
      const auto means = split(static_cast<double>(threshold));
      threshold =
        means.first > 0 ? (means.first - means.second) / (std::log(means.first) - std::log(means.second)) : threshold;
    }
    const double li = (ComputeThresholds({ -7, 0.5, counts }, ThresholdMethod::Li)[0] + 7) / 0.5;
    EXPECT_NEAR(li, static_cast<double>(threshold), 1e-9);
    const std::size_t iso = BinFound(counts, ThresholdMethod::IsoData);
    for (std::size_t t = 0; t <= iso; ++t)
    {
      const auto at = split(static_cast<double>(t));
      const Real distance = (at.first + at.second) / 2 - static_cast<Real>(t);
      EXPECT_EQ(t == iso, distance >= 0 && distance < 1) << t << " " << iso;
    }
  }
}

TEST(HistogramThresholds, FollowTheirFormulas)
{
  std::mt19937 random(13);
  for (int trial = 0; trial < 200; ++trial)
  {
    const Counts counts = RandomCounts(random);
    const Part   all(counts, 0, counts.size());
    // The image of two values has the moments of the image.
    const std::size_t bin = BinFound(counts, ThresholdMethod::Moments);
    Real              moments[4] = { 1, 0, 0, 0 };
    for (std::size_t i = 0; i < counts.size(); ++i)
    {
      for (int k = 1; k < 4; ++k)
      {
        moments[k] += std::pow(static_cast<Real>(i), static_cast<Real>(k)) * static_cast<Real>(counts[i]) / all.number;
      }
    }
    const Real determinant = moments[2] - moments[1] * moments[1];
    const Real c0 = (moments[1] * moments[3] - moments[2] * moments[2]) / determinant;
    const Real c1 = (moments[1] * moments[2] - moments[3]) / determinant;
    const Real root = std::sqrt(c1 * c1 - 4 * c0);
    const Real fraction = ((-c1 + root) / 2 - moments[1]) / root;
    EXPECT_GT(Part(counts, 0, bin + 1).number / all.number, fraction - 1e-12L);
    EXPECT_LE(Part(counts, 0, bin).number / all.number, fraction + 1e-12L);
    // No bin of the longer tail lies further below the line to the peak.
    const auto        peak = static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    const std::size_t last = counts.size() - 1;
    const bool        toEnd = peak < last - peak;
    const Real        width = static_cast<Real>(toEnd ? last - peak : peak);
    const auto        distance = [&](std::size_t i) {
      const Real x = static_cast<Real>(toEnd ? last - i : i);
      return static_cast<Real>(counts[peak]) * x - width * static_cast<Real>(counts[i]);
    };
    const std::size_t found = BinFound(counts, ThresholdMethod::Triangle);
    for (std::size_t i = toEnd ? peak + 1 : 0; i < (toEnd ? counts.size() : peak); ++i)
    {
      EXPECT_LE(distance(i), distance(found) + 1e-9L * static_cast<Real>(counts[peak]) * width);
    }
  }
}

/** All thresholds of some classes, one after the other. */
void
ForEachSplit(const Counts & counts, int classes, std::size_t from, std::vector<std::size_t> & ends,
             const std::function<void()> & visit)
{
  if (classes == 1)
  {
    visit();
    return;
  }
  for (std::size_t end = from; end + 1 < counts.size(); ++end)
  {
    ends.push_back(end);
    ForEachSplit(counts, classes - 1, end + 1, ends, visit);
    ends.pop_back();
  }
}

TEST(HistogramThresholds, OfSeveralClassesAreTheBestOfAll)
{
  std::mt19937 random(14);
  for (int trial = 0; trial < 60; ++trial)
  {
    Counts counts = RandomCounts(random);
    counts.resize(std::min<std::size_t>(counts.size(), 14));
    counts.back() += 1;
    const auto values = std::count_if(counts.begin(), counts.end(), [](std::int64_t count) { return count > 0; });
    for (int classes = 2; classes <= 4; ++classes)
    {
      if (values < classes)
      {
        EXPECT_THROW((void)ComputeThresholds({ 0, 1, counts }, ThresholdMethod::MultiOtsu, classes), ParameterError);
        continue;
      }
      const auto gain = [&](const std::vector<std::size_t> & ends) {
        Real        sum = 0;
        std::size_t begin = 0;
        for (std::size_t i = 0; i <= ends.size(); ++i)
        {
          const std::size_t end = i < ends.size() ? ends[i] + 1 : counts.size();
          const Part        part(counts, begin, end);
          sum += part.number > 0 ? part.sum * part.sum / part.number : 0;
          begin = end;
        }
        return sum;
      };
      Real                     largest = 0;
      std::vector<std::size_t> ends;
      ForEachSplit(counts, classes, 0, ends, [&] { largest = std::max(largest, gain(ends)); });
      std::vector<std::size_t> found;
      for (const double t : ComputeThresholds({ 0, 1, counts }, ThresholdMethod::MultiOtsu, classes))
      {
        found.push_back(static_cast<std::size_t>(t));
      }
      ASSERT_EQ(found.size(), static_cast<std::size_t>(classes - 1));
      EXPECT_GE(gain(found), largest * (1 - 1e-13L));
    }
    EXPECT_EQ(ComputeThresholds({ 0, 1, counts }, ThresholdMethod::MultiOtsu, 2),
              ComputeThresholds({ 0, 1, counts }, ThresholdMethod::Otsu));
  }
}

TEST(HistogramThresholds, OfOneValueAreIt)
{
  for (int method = 0; method < static_cast<int>(ThresholdMethod::MultiOtsu); ++method)
  {
    EXPECT_EQ(ComputeThresholds({ 42, 1, { 7 } }, static_cast<ThresholdMethod>(method)), std::vector<double>{ 42 });
    // Two values, one of which may be rare: every method ends, with a number that is none above them.
    for (const std::int64_t few : { 1, 50, 1000000 })
    {
      const double threshold = ComputeThresholds({ 5, 2, { 3, 0, 0, few } }, static_cast<ThresholdMethod>(method))[0];
      EXPECT_GE(threshold, 5) << method;
      EXPECT_LE(threshold, 11) << method;
    }
    EXPECT_THROW((void)ComputeThresholds({}, static_cast<ThresholdMethod>(method)), ParameterError);
  }
  EXPECT_THROW((void)ComputeThresholds({ 0, 1, { 1, 2 } }, ThresholdMethod::Fixed), ParameterError);
}

class Thresholds : public KernelTest
{};

/** The histogram by definition; `bins` 0: one for each value. */
template <typename T>
ThresholdHistogram
HistogramOf(const std::vector<T> & voxels, int bins)
{
  std::vector<double> numbers;
  for (const T voxel : voxels)
  {
    if (voxel == voxel)
    {
      numbers.push_back(static_cast<double>(voxel));
    }
  }
  const double       least = *std::min_element(numbers.begin(), numbers.end());
  const double       largest = *std::max_element(numbers.begin(), numbers.end());
  ThresholdHistogram histogram;
  histogram.width = bins > 0 ? (largest - least) / bins : 1;
  histogram.first = bins > 0 ? least + histogram.width / 2 : least;
  histogram.counts.assign(bins > 0 ? static_cast<std::size_t>(bins) : static_cast<std::size_t>(largest - least) + 1, 0);
  for (const double number : numbers)
  {
    const double at = bins > 0 ? (number - least) * (bins / (largest - least)) : number - least;
    ++histogram.counts[std::min(static_cast<std::size_t>(at), histogram.counts.size() - 1)];
  }
  return histogram;
}

TEST_P(Thresholds, AreThoseOfTheWholeImageHoweverItIsCut)
{
  std::mt19937 random(21);
  for (int trial = 0; trial < 60; ++trial)
  {
    DispatchPixelType(static_cast<PixelType>(trial % NumberOfPixelTypes), [&](auto pixel) {
      using T = decltype(pixel);
      constexpr bool                   isReal = !std::is_integral<T>::value;
      const Coordinates                extent{ { 23, 17, 15, 1, 1 } };
      const Box                        image = Box::FromExtent(extent);
      std::vector<T>                   voxels(23 * 17 * 15);
      std::vector<std::uint8_t>        mask(voxels.size());
      const double                     wide = sizeof(T) > 1 ? 40 : 1;
      std::normal_distribution<double> low(30 * wide, 8 * wide);
      std::normal_distribution<double> high(90 * wide, 10 * wide);
      for (std::size_t i = 0; i < voxels.size(); ++i)
      {
        voxels[i] = static_cast<T>(std::max(0.0, std::min(127.0 * wide, random() % 3 ? low(random) : high(random))));
        mask[i] = static_cast<std::uint8_t>(random() % 4);
        if constexpr (isReal)
        {
          voxels[i] = random() % 50 ? voxels[i] : std::numeric_limits<T>::quiet_NaN();
        }
      }
      const bool       isMasked = trial % 20 >= 10;
      const bool       hasBins = trial >= 40;
      FilterParameters parameters;
      const auto       method = static_cast<ThresholdMethod>(random() % 12);
      parameters.Set("Method", GetThresholdMethodNames()[static_cast<std::size_t>(method)]);
      parameters.SetInteger("NumberOfClasses", 4);
      if (hasBins)
      {
        parameters.SetInteger("NumberOfBins", 50);
      }
      FilterImage about;
      about.extent = extent;
      about.inputKind = PixelTypeOf<T>();
      if (isMasked)
      {
        about.additionalInputs = { "MaskImage" };
      }
      const FilterDescription &          row = GetFilter("threshold");
      const ParameterDescription * const parameter = row.FindAutomatic(parameters);
      ASSERT_NE(parameter, nullptr);
      ExecutionRequest request;
      request.operation = MakeFilterOperation("threshold", parameters, about);
      request.image = request.region = image;
      request.inputs = { DenseView(voxels.data(), PixelTypeOf<T>(), image) };
      if (isMasked)
      {
        request.inputs.push_back(DenseView(mask.data(), PixelType::UInt8, image));
      }
      request.backend = GetBackend();
      // Before the thresholds are known nothing runs.
      std::vector<std::uint8_t> classes(voxels.size(), 77);
      request.output = DenseView(classes.data(), PixelType::UInt8, image);
      EXPECT_THROW((void)GetManager().Execute(request), ParameterError);

      std::vector<T> counted;
      for (std::size_t i = 0; i < voxels.size(); ++i)
      {
        if (!isMasked || mask[i] != 0)
        {
          counted.push_back(voxels[i]);
        }
      }
      const ThresholdHistogram histogram = HistogramOf(counted, hasBins ? 50 : isReal ? 256 : 0);
      const auto               expected = ComputeThresholds(histogram, method, 4);
      request.budgets.device = GetParam() == Place::Cuda ? 0 : 2500000;
      const auto found = EstimateParameter(GetManager(), request, *parameter);
      EXPECT_EQ(found, expected) << PixelTypeName(PixelTypeOf<T>()) << " " << isMasked << hasBins;
      // The same where the image arrives in pieces.
      const SummaryRun pieces = [&](const std::shared_ptr<const Operation> & operation, Monitor * monitor) {
        ChunkState total;
        for (const std::int64_t first : { 0, 6 })
        {
          ExecutionRequest piece = MakeSummaryRequest(request, operation);
          piece.region.lower[2] = first;
          piece.region.upper[2] = first == 0 ? 6 : 15;
          const ChunkState part = GetManager().Summarise(piece, monitor);
          if (first == 0)
          {
            total = part;
          }
          else
          {
            operation->MergeSummary(total, part);
          }
        }
        return total;
      };
      EXPECT_EQ(parameter->estimate.take(*request.operation, PixelTypeOf<T>(), pieces, nullptr), expected);

      parameters.Set("Thresholds", found);
      EXPECT_EQ(row.FindAutomatic(parameters), nullptr);
      request.operation = MakeFilterOperation("threshold", parameters, about);
      request.budgets.device = 60000;
      (void)GetManager().Execute(request);
      for (std::size_t i = 0; i < voxels.size(); ++i)
      {
        const auto above = std::count_if(found.begin(), found.end(), [&](double t) { return voxels[i] > t; });
        ASSERT_EQ(classes[i], isMasked && mask[i] == 0 ? 0 : above) << i << " " << +voxels[i];
      }
    });
  }
}

TEST_P(Thresholds, AreComparedExactly)
{
  std::mt19937 random(22);
  for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
  {
    DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
      using T = decltype(pixel);
      using Limits = std::numeric_limits<T>;
      std::vector<T> voxels = { Limits::lowest(),
                                Limits::max(),
                                T(0),
                                T(1),
                                T(2),
                                T(100),
                                static_cast<T>(Limits::max() - 1),
                                static_cast<T>(Limits::lowest() + 1) };
      if constexpr (!std::is_integral<T>::value)
      {
        voxels.insert(voxels.end(),
                      { Limits::infinity(),
                        -Limits::infinity(),
                        Limits::quiet_NaN(),
                        -T(0),
                        Limits::denorm_min(),
                        static_cast<T>(0.1),
                        std::nextafter(T(2), T(3)) });
      }
      const Box  image = Box::FromExtent({ { static_cast<std::int64_t>(voxels.size()), 1, 1, 1, 1 } });
      const auto run = [&](ThresholdOperation operation) {
        std::vector<float> result(voxels.size());
        ExecutionRequest   request;
        request.operation = std::make_shared<ThresholdOperation>(operation);
        request.image = request.region = image;
        request.inputs = { DenseView(voxels.data(), PixelTypeOf<T>(), image) };
        request.output = DenseView(result.data(), PixelType::Float32, image);
        request.backend = GetBackend();
        (void)GetManager().Execute(request);
        return result;
      };
      // A long double has every number of every kind.
      for (const double threshold : { 0.0,
                                      -0.0,
                                      1.0,
                                      1.5,
                                      99.99,
                                      -1.0,
                                      -0.5,
                                      254.0,
                                      255.0,
                                      255.5,
                                      32767.0,
                                      65535.0,
                                      4294967295.0,
                                      9223372036854774784.0,
                                      9223372036854775808.0,
                                      18446744073709549568.0,
                                      18446744073709551616.0,
                                      -9223372036854775808.0,
                                      -128.0,
                                      -129.0,
                                      1e300,
                                      -1e300,
                                      1e38 })
      {
        ThresholdOperation operation;
        operation.thresholds = { threshold };
        const auto result = run(operation);
        for (std::size_t i = 0; i < voxels.size(); ++i)
        {
          EXPECT_EQ(result[i], static_cast<Real>(voxels[i]) > static_cast<Real>(threshold) ? 1 : 0)
            << PixelTypeName(PixelTypeOf<T>()) << " " << +voxels[i] << " > " << threshold;
        }
      }
      for (int trial = 0; trial < 200; ++trial)
      {
        const PixelValue   ends[] = { PixelValue(0),
                                      PixelValue(1),
                                      PixelValue(1.5),
                                      PixelValue(-1),
                                      PixelValue(-0.5),
                                      PixelValue(100),
                                      PixelValue(300),
                                      PixelValue(2.0),
                                      PixelValue(Limits::max()),
                                      PixelValue(Limits::lowest()),
                                      PixelValue(std::uint64_t{ 18446744073709551615u }) };
        ThresholdOperation operation;
        operation.method = ThresholdMethod::Fixed;
        operation.hasLower = trial % 3 != 0;
        operation.hasUpper = trial % 3 != 1;
        operation.lower = ends[random() % 11];
        operation.upper = ends[random() % 11];
        const auto number = [](const PixelValue & value) {
          return value.IsInteger() && !value.IsNegative() ? static_cast<Real>(value.As<std::uint64_t>())
                 : value.IsInteger()                      ? static_cast<Real>(value.As<std::int64_t>())
                                                          : static_cast<Real>(value.ToDouble());
        };
        const auto result = run(operation);
        for (std::size_t i = 0; i < voxels.size(); ++i)
        {
          const auto voxel = static_cast<Real>(voxels[i]);
          const bool isInside = voxels[i] == voxels[i] && (!operation.hasLower || voxel >= number(operation.lower)) &&
                                (!operation.hasUpper || voxel <= number(operation.upper));
          EXPECT_EQ(result[i], isInside ? 1 : 0)
            << PixelTypeName(PixelTypeOf<T>()) << " " << +voxels[i] << " in " << operation.GetKey();
        }
      }
    });
  }
}

TEST(ThresholdRows, SayWhatIsWrong)
{
  const auto expectRefusal = [](const FilterParameters & wrong, const char * name) {
    try
    {
      (void)MakeFilterOperation("threshold", wrong, {});
      ADD_FAILURE() << name;
    }
    catch (const ParameterError & error)
    {
      EXPECT_EQ(std::string(error.what()).rfind(name, 0), 0u) << error.what();
    }
  };
  FilterParameters fixed;
  fixed.Set("Method", "fixed");
  EXPECT_NO_THROW((void)MakeFilterOperation("threshold", fixed, {})) << "all numbers are inside, as ITK has it";
  EXPECT_EQ(GetFilter("threshold").FindAutomatic(fixed), nullptr);
  fixed.Set("Lower", PixelValue(std::nan("")));
  expectRefusal(fixed, "Lower");
  fixed.Set("Lower", PixelValue(5));
  EXPECT_NO_THROW((void)MakeFilterOperation("threshold", fixed, {}));
  fixed.Set("Upper", PixelValue(5));
  EXPECT_NO_THROW((void)MakeFilterOperation("threshold", fixed, {}));
  fixed.Set("Upper", PixelValue(4));
  expectRefusal(fixed, "Lower");
  FilterParameters thresholds;
  thresholds.Set("Thresholds", std::vector<double>{ 2, 1 });
  expectRefusal(thresholds, "Thresholds");
  thresholds.Set("Thresholds", std::vector<double>{ 1, 1 });
  expectRefusal(thresholds, "Thresholds");
  FilterParameters classes;
  classes.SetInteger("NumberOfClasses", 1);
  expectRefusal(classes, "NumberOfClasses");
}

template <typename T>
ThresholdHistogram
HistogramFound(Manager & manager, std::vector<T> voxels, int bins = 0)
{
  ExecutionRequest request;
  request.image = request.region = Box::FromExtent({ { static_cast<std::int64_t>(voxels.size()), 1, 1, 1, 1 } });
  request.inputs = { DenseView(voxels.data(), PixelTypeOf<T>(), request.image) };
  request.backend = BackendChoice::CPU;
  return ComputeThresholdHistogram(
    [&](const std::shared_ptr<const Operation> & operation, Monitor * monitor) {
      return manager.Summarise(MakeSummaryRequest(request, operation), monitor);
    },
    PixelTypeOf<T>(),
    bins);
}

TEST(ThresholdHistograms, HaveTheBinsThatArePromised)
{
  Manager     manager(std::vector<std::shared_ptr<Device>>{});
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  const auto  shorts = HistogramFound<std::int16_t>(manager, { -3, -3, 2 });
  EXPECT_EQ(shorts.first, -3);
  EXPECT_EQ(shorts.counts, (Counts{ 2, 0, 0, 0, 0, 1 }));
  const auto four = HistogramFound<std::int16_t>(manager, { -3, -3, 1, 5 }, 4);
  EXPECT_EQ(four.first, -2);
  EXPECT_EQ(four.width, 2);
  EXPECT_EQ(four.counts, (Counts{ 2, 0, 1, 1 }));
  // Integers of 64 bits that are close to each other have a bin each.
  const auto longs = HistogramFound<std::int64_t>(manager, { 1000000000000, 1000000000003, 1000000000003 });
  EXPECT_EQ(longs.first, 1e12);
  EXPECT_EQ(longs.counts, (Counts{ 1, 0, 0, 2 }));
  EXPECT_EQ(HistogramFound<std::int64_t>(manager, { 0, 65535 }).counts.size(), 65536u);
  EXPECT_EQ(HistogramFound<std::int64_t>(manager, { 0, 65536 }).counts.size(), 256u);
  EXPECT_EQ(HistogramFound<std::uint64_t>(manager, { std::uint64_t{ 1 } << 60, (std::uint64_t{ 1 } << 60) + 4096 })
              .counts.size(),
            256u);
  const auto floats = HistogramFound<float>(manager, { 1, nan, 3, inf, 3, -inf }, 2);
  EXPECT_EQ(floats.first, 1.5);
  EXPECT_EQ(floats.counts, (Counts{ 2, 3 }));
  EXPECT_EQ(HistogramFound<float>(manager, { 2.5F, nan, 2.5F }).counts, (Counts{ 2 }));
  EXPECT_EQ(HistogramFound<float>(manager, { 2.5F, nan, 2.5F }).first, 2.5);
  EXPECT_NO_THROW((void)HistogramFound<float>(manager, { 2.5F, inf, 2.5F }));
  EXPECT_NO_THROW((void)HistogramFound<double>(manager, { 0, std::numeric_limits<double>::denorm_min() }));
  EXPECT_THROW((void)HistogramFound<float>(manager, { nan, nan }), ParameterError);
  EXPECT_THROW((void)HistogramFound<float>(manager, { inf, nan }), ParameterError);
  EXPECT_THROW((void)HistogramFound<double>(manager, { 1.7e308, -1.7e308 }), ParameterError);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Thresholds, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Thresholds, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Thresholds, testing::Values(Place::Cuda));

} // namespace
