/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Windows that reach farther to one side, of every filter that takes them, against the definition of each statistic.
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseFilters.h"
#include "chunkwiseFramedOperation.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseStagedOperation.h"

#include <cmath>

using namespace chunkwise;

namespace
{

/** How it is decided which voxels windows see. */
enum class Seen
{
  All,
  Mask,
  Weights,
  NotNan
};

constexpr double    Noise = 500;
constexpr long long Beyond = 5;

/** A voxel that a window sees, and its weight. */
struct Tap
{
  long double value;
  long double weight;
};

struct Sides
{
  Coordinates  lower{};
  Coordinates  upper{};
  BoundaryMode mode{ BoundaryMode::Renormalized };

  Sides
  Reflected() const
  {
    return { upper, lower, mode };
  }
};

/** An image as numbers, with weights: the definition of everything. */
struct Image
{
  Box                      box{};
  std::vector<long double> values;
  std::vector<long double> weights;

  std::size_t
  NumberOf(const Coordinates & at) const
  {
    std::size_t i = 0;
    for (int a = MaxDimension - 1; a >= 0; --a)
    {
      i = i * static_cast<std::size_t>(box.Extent(a)) + static_cast<std::size_t>(at[a]);
    }
    return i;
  }

  /** The voxels of weight above 0 in the window. */
  std::vector<Tap>
  TapsOf(const Coordinates & index, const Sides & sides) const
  {
    Box offsets{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      offsets.lower[a] = -sides.lower[a];
      offsets.upper[a] = sides.upper[a] + 1;
    }
    std::vector<Tap> taps;
    ForEachIndex(offsets, [&](const Coordinates & offset) {
      Coordinates at = index;
      bool        isThere = true;
      for (int a = 0; a < MaxDimension; ++a)
      {
        at[a] += offset[a];
        isThere = oracle::Look(at[a], box.upper[a], sides.mode) && isThere;
      }
      if (isThere && weights[NumberOf(at)] > 0)
      {
        taps.push_back({ values[NumberOf(at)], weights[NumberOf(at)] });
      }
      else if (!isThere && sides.mode == BoundaryMode::Constant)
      {
        taps.push_back({ static_cast<long double>(Beyond), 1 });
      }
    });
    return taps;
  }
};

constexpr long double Nan = std::numeric_limits<long double>::quiet_NaN();

struct Moments
{
  long double mean{ Nan };
  long double variance{ Nan };
  long double sum{ 0 };
  long double magnitude{ 0 }; ///< the mean of the voxels' squares
};

Moments
MomentsOf(const std::vector<Tap> & taps)
{
  Moments     m;
  long double weights = 0;
  long double squares = 0;
  for (const Tap & tap : taps)
  {
    m.sum += tap.value * tap.weight;
    squares += tap.value * tap.value * tap.weight;
    weights += tap.weight;
  }
  if (taps.empty())
  {
    return m;
  }
  m.mean = m.sum / weights;
  m.magnitude = squares / weights;
  m.variance = 0;
  for (const Tap & tap : taps)
  {
    m.variance += tap.weight * (tap.value - m.mean) * (tap.value - m.mean) / weights;
  }
  return m;
}

/** The voxel of a rank; NaN have none. */
long double
RankOf(const std::vector<Tap> & taps, double fraction)
{
  std::vector<long double> numbers;
  for (const Tap & tap : taps)
  {
    if (tap.value == tap.value)
    {
      numbers.push_back(tap.value);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers.empty() ? Nan : numbers[static_cast<std::size_t>(fraction * static_cast<double>(numbers.size() - 1))];
}

long double
EntropyOfTaps(const std::vector<Tap> & taps)
{
  std::vector<long double> counts(16);
  for (const Tap & tap : taps)
  {
    ++counts[BinOf(static_cast<double>(tap.value), -100, 16 / 200.0, 16)];
  }
  const auto  n = static_cast<long double>(taps.size());
  long double entropy = taps.empty() ? Nan : 0;
  for (const long double count : counts)
  {
    entropy -= count > 0 ? count / n * std::log2(count / n) : 0;
  }
  return entropy;
}

/** Whether a filter is made of one extremum after the other, the minimum first. */
bool
BeginsWithMinimum(const std::string & filter)
{
  return filter == "opening" || filter == "white-tophat";
}

bool
HasTwoExtrema(const std::string & filter)
{
  return BeginsWithMinimum(filter) || filter == "closing" || filter == "black-tophat";
}

/** The first extremum of every voxel. */
Image
FirstExtremumOf(const std::string & filter, const Image & image, const Sides & sides)
{
  Image first = image;
  ForEachIndex(image.box, [&](const Coordinates & at) {
    first.values[image.NumberOf(at)] = RankOf(image.TapsOf(at, sides), BeginsWithMinimum(filter) ? 0 : 1);
  });
  return first;
}

/** The result of a filter, and by how much rounding may change it; `precision`: of the numbers that it adds up. */
std::pair<long double, long double>
Define(const std::string & filter, const Image & image, const Image & first, const Coordinates & index,
       const Sides & sides, long double precision)
{
  const auto        taps = image.TapsOf(index, sides);
  const Moments     m = MomentsOf(taps);
  const long double voxel = image.values[image.NumberOf(index)];
  const long double ofMean = std::sqrt(m.magnitude) * precision;
  const long double ofVariance = m.magnitude * precision;
  if (filter == "mean" || filter == "sum")
  {
    const bool isSum = filter == "sum";
    return { isSum ? m.sum : m.mean, ofMean * (isSum ? static_cast<long double>(taps.size()) : 1) };
  }
  if (filter == "variance")
  {
    return { m.variance, ofVariance };
  }
  if (filter == "std")
  {
    return { std::sqrt(m.variance), std::sqrt(ofVariance) };
  }
  if (filter == "wiener")
  {
    const bool        varies = m.variance > Noise;
    const long double change = varies ? (m.variance - Noise) / m.variance * (voxel - m.mean) : 0;
    // A voxel that is not a number changes nothing where windows do not vary.
    const long double largest = voxel == voxel ? std::fabs(voxel - m.mean) : 0;
    return { m.mean + change, ofMean + 2 * ofVariance / Noise * largest };
  }
  if (filter == "normalize")
  {
    return { (voxel - m.mean) / std::max(std::sqrt(m.variance), 20.0L),
             ofMean / 20 + std::sqrt(ofVariance) * std::fabs(voxel - m.mean) / 400 };
  }
  if (filter == "local-threshold")
  {
    return { m.mean - 0.2L * std::sqrt(m.variance), ofMean + std::sqrt(ofVariance) };
  }
  if (filter == "entropy")
  {
    return { EntropyOfTaps(taps), 1e-5L };
  }
  if (filter == "median" || filter == "percentile")
  {
    return { RankOf(taps, filter == "median" ? 0.5 : 0.3), 0 };
  }
  if (filter == "maximum" || filter == "minimum")
  {
    return { RankOf(taps, filter == "maximum" ? 1 : 0), 0 };
  }
  if (filter == "range")
  {
    return { RankOf(taps, 1) - RankOf(taps, 0), 0 };
  }
  // The second window is the first one reflected.
  const long double result = RankOf(first.TapsOf(index, sides.Reflected()), BeginsWithMinimum(filter) ? 1 : 0);
  return { filter == "white-tophat" ? voxel - result : filter == "black-tophat" ? result - voxel : result, 0 };
}

const std::vector<std::string> SidedFilters = { "mean",   "sum",          "variance",     "std",
                                                "wiener", "entropy",      "normalize",    "local-threshold",
                                                "median", "percentile",   "maximum",      "minimum",
                                                "range",  "white-tophat", "black-tophat", "opening",
                                                "closing" };

bool
Takes(const std::string & filter, Seen seen)
{
  const auto isOneOf = [&](std::initializer_list<const char *> names) {
    return std::find(names.begin(), names.end(), filter) != names.end();
  };
  switch (seen)
  {
    case Seen::Weights:
      return isOneOf({ "mean", "sum", "variance", "std", "wiener" });
    case Seen::NotNan:
      return isOneOf({ "mean", "sum", "variance", "std", "wiener", "entropy", "median", "percentile" });
    case Seen::Mask:
      // Opening and closing in a mask are tested with the mask.
      return !isOneOf({ "normalize", "white-tophat", "black-tophat", "opening", "closing" });
    default:
      return true;
  }
}

template <typename TIn, typename TOut>
class SidedTrial
{
public:
  SidedTrial(std::mt19937 & random, const std::string & filter, Seen seen, int number)
    : m_Filter(filter)
    , m_Seen(seen)
  {
    const Coordinates extent = RandomExtent(random, number % 4 ? 9 : 20);
    m_Image.box = Box::FromExtent(extent);
    m_Voxels.resize(static_cast<std::size_t>(m_Image.box.NumberOfVoxels()));
    for (TIn & voxel : m_Voxels)
    {
      voxel = static_cast<TIn>(static_cast<int>(random() % 200) - (std::is_unsigned<TIn>::value ? 0 : 100));
      if (std::is_floating_point<TIn>::value && seen == Seen::NotNan && random() % 3 == 0)
      {
        voxel = std::numeric_limits<TIn>::quiet_NaN();
      }
      m_Image.values.push_back(static_cast<long double>(voxel));
    }
    const unsigned int share = 1 + random() % 6;
    for (std::size_t i = 0; i < m_Voxels.size(); ++i)
    {
      m_Mask.push_back(seen == Seen::Mask && random() % 6 < share ? 0 : 1);
      m_Weights.push_back(static_cast<float>(random() % 8) / 4);
      const bool isNumber = seen != Seen::NotNan || m_Voxels[i] == m_Voxels[i];
      m_Image.weights.push_back(seen == Seen::Weights ? static_cast<long double>(m_Weights[i])
                                                      : static_cast<long double>(isNumber ? m_Mask[i] : 0));
    }
    m_Sides.mode = AllModes[random() % 6];
    FilterParameters          parameters;
    std::vector<std::int64_t> axes;
    std::vector<std::int64_t> lower;
    std::vector<std::int64_t> upper;
    for (const int a : RandomAxes(random))
    {
      const unsigned int most = number % 5 ? 3 : 7;
      m_Sides.lower[a] = random() % most;
      m_Sides.upper[a] = random() % most;
      // Half of the windows have an odd number of voxels along each axis.
      m_Sides.upper[a] += number % 2 == 0 && (m_Sides.lower[a] + m_Sides.upper[a]) % 2 ? 1 : 0;
      axes.push_back(a);
      lower.push_back(m_Sides.lower[a]);
      upper.push_back(m_Sides.upper[a]);
    }
    parameters.Set("SpatialAxes", axes);
    parameters.Set("Radius", lower);
    parameters.Set("UpperRadius", upper);
    parameters.Set("BoundaryCondition", std::string(BoundaryWord(m_Sides.mode)));
    if (m_Sides.mode == BoundaryMode::Constant)
    {
      parameters.Set("Constant", PixelValue(Beyond));
    }
    SetOthers(parameters);
    FilterImage image;
    image.dimension = MaxDimension;
    image.extent = extent;
    image.inputKind = PixelTypeOf<TIn>();
    image.outputKind = PixelTypeOf<TOut>();
    if (seen == Seen::Mask || seen == Seen::Weights)
    {
      image.additionalInputs.emplace_back(seen == Seen::Mask ? "MaskImage" : "WeightImage");
    }
    m_Request.operation = MakeFilterOperation(filter, parameters, image);
    m_Request.image = m_Image.box;
    m_Request.stagingThreads = 1;
    m_Request.inputs = { DenseView(m_Voxels.data(), PixelTypeOf<TIn>(), m_Image.box) };
    if (seen == Seen::Mask)
    {
      m_Request.inputs.push_back(DenseView(m_Mask.data(), PixelType::UInt8, m_Image.box));
    }
    else if (seen == Seen::Weights)
    {
      m_Request.inputs.push_back(DenseView(m_Weights.data(), PixelType::Float32, m_Image.box));
    }
  }

  const Box &
  GetBox() const
  {
    return m_Image.box;
  }

  std::vector<TOut>
  Run(Manager & manager, BackendChoice backend, const Box & region)
  {
    std::vector<TOut> output(static_cast<std::size_t>(region.NumberOfVoxels()), TOut(77));
    m_Request.backend = backend;
    m_Request.region = region;
    m_Request.output = DenseView(output.data(), PixelTypeOf<TOut>(), region);
    manager.Execute(m_Request);
    return output;
  }

  /** All voxels have the value of the definition. */
  void
  CompareWithDefinition(const std::vector<TOut> & output) const
  {
    const bool  inFloat = sizeof(TIn) <= 2 || std::is_same<TIn, float>::value || std::is_same<TOut, float>::value;
    const Image first = HasTwoExtrema(m_Filter) ? FirstExtremumOf(m_Filter, m_Image, m_Sides) : Image();
    ForEachIndex(m_Image.box, [&](const Coordinates & at) {
      const auto [expected, bound] = Define(m_Filter, m_Image, first, at, m_Sides, inFloat ? 3e-6L : 1e-12L);
      const auto result = static_cast<long double>(output[m_Image.NumberOf(at)]);
      if (expected != expected && std::is_integral<TOut>::value)
      {
        ASSERT_TRUE(result == 0) << Text() << " at " << ToString(at) << ": " << result << " of an empty window";
        return;
      }
      const long double rounding =
        std::is_integral<TOut>::value ? 0.5L : std::fabs(expected) * (inFloat ? 3e-7L : 4e-16L);
      ASSERT_TRUE((expected != expected && result != result) || std::fabs(result - expected) <= bound + rounding)
        << Text() << " at " << ToString(at) << ": " << result << ", not " << expected << " within " << bound;
    });
  }

  /** Parts under budgets have the bits of the whole. */
  void
  CompareParts(std::mt19937 & random, Manager & manager, BackendChoice backend, const std::vector<TOut> & whole)
  {
    for (int part = 0; part < 2; ++part)
    {
      m_Request.budgets.device = 20000 + random() % 300000;
      m_Request.budgets.host = random() % 2 ? 0 : 60000 + random() % 200000;
      const Box         region = RandomRegion(random, m_Image.box.Extents());
      std::vector<TOut> output;
      try
      {
        output = Run(manager, backend, region);
      }
      catch (const BudgetError &)
      {
        continue;
      }
      std::size_t i = 0;
      ForEachIndex(region, [&](const Coordinates & at) {
        const TOut a = output[i++];
        const TOut b = whole[m_Image.NumberOf(at)];
        ASSERT_TRUE((a != a && b != b) || std::memcmp(&a, &b, sizeof(a)) == 0)
          << Text() << " at " << ToString(at) << ": " << +a << " and " << +b;
      });
    }
  }

private:
  static const char *
  BoundaryWord(BoundaryMode mode)
  {
    switch (mode)
    {
      case BoundaryMode::Renormalized:
        return "renormalized";
      case BoundaryMode::ZeroFluxNeumann:
        return "zero-flux";
      case BoundaryMode::Constant:
        return "constant";
      case BoundaryMode::Mirror:
        return "mirror";
      case BoundaryMode::MirrorCenter:
        return "mirror-center";
      default:
        return "periodic";
    }
  }

  void
  SetOthers(FilterParameters & parameters) const
  {
    if (m_Seen == Seen::NotNan)
    {
      parameters.Set("IgnoreNaN", true);
    }
    if (m_Filter == "wiener")
    {
      parameters.Set("NoiseVariance", std::vector<double>{ Noise });
    }
    if (m_Filter == "normalize")
    {
      parameters.Set("LeastDeviation", std::vector<double>{ 20 });
    }
    if (m_Filter == "percentile")
    {
      parameters.Set("Percentile", std::vector<double>{ 30 });
    }
    if (m_Filter == "local-threshold")
    {
      parameters.Set("Method", std::string("niblack"));
      parameters.Set("Result", std::string("threshold"));
      parameters.Set("K", std::vector<double>{ 0.2 });
    }
    if (m_Filter == "entropy")
    {
      parameters.Set("NumberOfBins", std::vector<std::int64_t>{ 16 });
      parameters.Set("Range", std::vector<double>{ -100, 100 });
    }
  }

  std::string
  Text() const
  {
    return m_Filter + " " + PixelTypeName(PixelTypeOf<TIn>()) + " to " + PixelTypeName(PixelTypeOf<TOut>()) + " " +
           ToString(m_Sides.lower) + " to " + ToString(m_Sides.upper) + " " + BoundaryModeName(m_Sides.mode) +
           " seen " + std::to_string(static_cast<int>(m_Seen)) + " " + ToString(m_Image.box.Extents());
  }

  const std::string         m_Filter;
  const Seen                m_Seen;
  Image                     m_Image;
  Sides                     m_Sides;
  std::vector<TIn>          m_Voxels;
  std::vector<std::uint8_t> m_Mask;
  std::vector<float>        m_Weights;
  ExecutionRequest          m_Request;
};

class SidedWindows : public KernelTest
{
protected:
  template <typename TIn, typename TOut>
  void
  Try(const std::string & filter, Seen seen, int trials)
  {
    Manager host({});
    for (int trial = 0; trial < trials; ++trial)
    {
      SidedTrial<TIn, TOut>   t(m_Random, filter, seen, trial);
      const std::vector<TOut> whole = t.Run(host, BackendChoice::CPU, t.GetBox());
      t.CompareWithDefinition(whole);
      t.CompareParts(m_Random, GetManager(), GetBackend(), whole);
      if (HasFatalFailure())
      {
        return;
      }
    }
  }

  void
  TryAll(Seen seen, int trials)
  {
    for (const std::string & filter : SidedFilters)
    {
      if (!Takes(filter, seen))
      {
        continue;
      }
      Try<float, float>(filter, seen, trials);
      Try<double, double>(filter, seen, trials);
      if (seen != Seen::NotNan)
      {
        Try<std::uint8_t, double>(filter, seen, trials);
        Try<std::int16_t, float>(filter, seen, trials);
        Try<std::int64_t, double>(filter, seen, trials);
        const bool isExact = filter == "mean" || filter == "median" || filter == "maximum" || filter == "range";
        if (isExact && seen != Seen::Weights)
        {
          Try<std::int16_t, std::int16_t>(filter, seen, trials);
          Try<std::int32_t, std::int32_t>(filter, seen, trials);
        }
      }
    }
  }

  std::mt19937 m_Random{ 901 };
};

TEST_P(SidedWindows, AreWhatTheDefinitionSays)
{
  TryAll(Seen::All, 12);
}

TEST_P(SidedWindows, InMasksAreWhatTheDefinitionSays)
{
  TryAll(Seen::Mask, 12);
}

TEST_P(SidedWindows, WithWeightsAreWhatTheDefinitionSays)
{
  TryAll(Seen::Weights, 12);
}

TEST_P(SidedWindows, WithoutNanAreWhatTheDefinitionSays)
{
  TryAll(Seen::NotNan, 12);
}

INSTANTIATE_TEST_SUITE_P(Cpu, SidedWindows, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, SidedWindows, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, SidedWindows, testing::Values(Place::Cuda));

} // namespace
