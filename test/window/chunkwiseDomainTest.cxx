/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Statistics of a part of the image against their definition, voxel by voxel, and against themselves without a mask.
#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseDefinitionTrial.h"
#include "chunkwiseDomainOperation.h"
#include "chunkwiseFilters.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwiseRequiredParameters.h"
#include "chunkwiseStatistics.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseWienerOperation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace chunkwise;

namespace
{

/** A run of a filter of the table over an image, and over what says which voxels are inside. */
template <typename TIn, typename TOut, typename TWeight>
class DomainTrial
{
public:
  Box                  box{};
  std::vector<TIn>     voxels;
  std::vector<TWeight> weights;
  /** The radius of each voxel's box; empty: all have the largest one. */
  std::vector<std::int16_t> radii;
  bool                      hasWeights{ false };
  std::vector<TOut>         output;
  FilterImage               image;
  ExecutionRequest          request;

  explicit DomainTrial(const Coordinates & extent)
    : box(Box::FromExtent(extent))
    , voxels(static_cast<std::size_t>(box.NumberOfVoxels()))
    , weights(voxels.size())
  {
    image.dimension = MaxDimension;
    image.extent = extent;
    image.inputKind = PixelTypeOf<TIn>();
    image.outputKind = PixelTypeOf<TOut>();
    request.image = box;
    request.stagingThreads = 1;
  }

  /** `further`: the name of the last input, or empty. */
  void
  Make(const std::string & filter, const FilterParameters & parameters, const std::string & further)
  {
    image.additionalInputs.clear();
    if (!radii.empty())
    {
      image.additionalInputs.emplace_back("RadiusImage");
    }
    hasWeights = !further.empty();
    if (hasWeights)
    {
      image.additionalInputs.push_back(further);
    }
    request.operation = MakeFilterOperation(filter, parameters, image);
  }

  void
  Run(Manager & manager, const Box & region)
  {
    request.region = region;
    request.inputs = { DenseView(voxels.data(), PixelTypeOf<TIn>(), box) };
    std::vector<PixelType> kinds{ PixelTypeOf<TIn>() };
    if (!radii.empty())
    {
      request.inputs.push_back(DenseView(radii.data(), PixelType::Int16, box));
      kinds.push_back(PixelType::Int16);
    }
    if (hasWeights)
    {
      request.inputs.push_back(DenseView(weights.data(), PixelTypeOf<TWeight>(), box));
      kinds.push_back(PixelTypeOf<TWeight>());
    }
    request.operation->CheckKinds(kinds, PixelTypeOf<TOut>());
    output.assign(static_cast<std::size_t>(region.NumberOfVoxels()), TOut(77));
    request.output = DenseView(output.data(), PixelTypeOf<TOut>(), region);
    manager.Execute(request);
  }

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

  /** The value and the weight that a window sees at a position, perhaps beyond the edge; false: nothing. */
  bool
  Look(Coordinates at, const WindowBoundary & boundary, bool ignoresNan, long double & value,
       long double & weight) const
  {
    bool there = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      there = oracle::Look(at[a], box.upper[a], boundary.mode) && there;
    }
    if (!there)
    {
      value = static_cast<long double>(boundary.constant.ToDouble());
      weight = 1;
      return boundary.mode == BoundaryMode::Constant;
    }
    const std::size_t i = this->NumberOf(at);
    value = static_cast<long double>(voxels[i]);
    weight = !hasWeights                        ? 1.0L
             : std::is_integral<TWeight>::value ? (weights[i] != TWeight(0) ? 1.0L : 0.0L)
                                                : static_cast<long double>(weights[i]);
    weight = ignoresNan && value != value ? 0 : weight;
    return weight > 0;
  }
};

/** sum(k w x), sum(k w), and the variance, straight from the definition. */
struct Moments
{
  long double sum{ 0 };
  long double magnitude{ 0 };
  long double weights{ 0 };
  long double variance{ 0 };
  long double squares{ 0 };
};

template <typename TTrial, typename TFactor>
Moments
Define(const TTrial & t, const Coordinates & index, const Coordinates & radius, const WindowBoundary & boundary,
       bool ignoresNan, TFactor && factor)
{
  Box window{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] = index[a] - radius[a];
    window.upper[a] = index[a] + radius[a] + 1;
  }
  Moments     m;
  long double value = 0;
  long double weight = 0;
  const auto  forEach = [&](auto && f) {
    ForEachIndex(window, [&](const Coordinates & at) {
      if (t.Look(at, boundary, ignoresNan, value, weight))
      {
        Coordinates tap{};
        for (int a = 0; a < MaxDimension; ++a)
        {
          tap[a] = at[a] - window.lower[a];
        }
        f(weight * factor(tap));
      }
    });
  };
  forEach([&](long double w) {
    m.sum += w * value;
    m.magnitude += std::fabs(w * value);
    m.weights += w;
    m.squares += w * value * value;
  });
  if (m.weights > 0)
  {
    const long double mean = m.sum / m.weights;
    forEach([&](long double w) { m.variance += w * (value - mean) * (value - mean); });
    m.variance /= m.weights;
  }
  return m;
}

const char * const BoundaryWords[] = { "renormalized", "zero-flux", "constant", "mirror", "periodic", "mirror-center" };
const BoundaryMode BoundariesOfWords[] = { BoundaryMode::Renormalized, BoundaryMode::ZeroFluxNeumann,
                                           BoundaryMode::Constant,     BoundaryMode::Mirror,
                                           BoundaryMode::Periodic,     BoundaryMode::MirrorCenter };

/** A filter of the table, with its windows' factors. */
struct Case
{
  std::string         filter;
  FilterParameters    parameters;
  Coordinates         radius{};
  WindowBoundary      boundary{};
  std::vector<double> taps; ///< of the radius' box; empty: 1
  bool                transforms{ false };
  double              percentile{ 50 };
  int                 bins{ 256 };
  double              lower{ -20 };
  double              upper{ 110 };
  Coordinates         patch{};
  double              strength{ 10 };
  std::string         statistic{}; ///< "sum", "variance", "std", "wiener", "highpass"; else an average
  double              noise{ 0 };
  bool                isTable{ false };
  bool                hasRadii{ false };
  /** With two nodes along x: the taps of the second, and its part at an index. */
  std::vector<double> otherTaps{};
};

/** A kernel of any size around its center, as a parameter and as taps of the radius' box. */
std::vector<double>
RandomKernel(std::mt19937 & random, const Coordinates & extent, const Coordinates & radius, bool flips,
             KernelStack & stack)
{
  stack.extent = extent;
  std::int64_t count = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    count *= extent[a];
  }
  stack.kernels.emplace_back();
  for (std::int64_t i = 0; i < count; ++i)
  {
    stack.kernels.back().push_back(static_cast<double>(1 + random() % 100) / 64);
  }
  const std::vector<double> & weights = stack.kernels.back();
  Box                         taps{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    taps.upper[a] = 2 * radius[a] + 1;
  }
  std::vector<double> result;
  ForEachIndex(taps, [&](const Coordinates & tap) {
    std::int64_t i = 0;
    bool         inside = true;
    for (int a = MaxDimension - 1; a >= 0; --a)
    {
      const std::int64_t offset = tap[a] - radius[a];
      const std::int64_t t = extent[a] / 2 + (flips ? offset : -offset);
      inside = inside && t >= 0 && t < extent[a];
      i = i * extent[a] + t;
    }
    result.push_back(inside ? weights[static_cast<std::size_t>(i)] : 0.0);
  });
  return result;
}

Case
RandomCase(std::mt19937 & random, const std::string & filter, int mode)
{
  Case c;
  c.filter = filter;
  c.boundary.mode = BoundariesOfWords[mode];
  c.parameters.Set("BoundaryCondition", BoundaryWords[mode]);
  if (c.boundary.mode == BoundaryMode::Constant && filter != "box")
  {
    c.boundary.constant = std::int64_t{ 7 };
    c.parameters.Set("Constant", c.boundary.constant);
  }
  c.statistic = filter;
  std::vector<std::int64_t> radius;
  for (int a = 0; a < 3; ++a)
  {
    c.radius[a] = static_cast<std::int64_t>(random() % 4);
    radius.push_back(c.radius[a]);
  }
  if (filter == "convolve-image" || filter == "convolve-varying")
  {
    Coordinates extent = Coordinates::Filled(1);
    for (int a = 0; a < 3; ++a)
    {
      extent[a] = 1 + static_cast<std::int64_t>(random() % 4);
      c.radius[a] = 2;
    }
    const auto stack = std::make_shared<KernelStack>();
    const bool isVarying = filter == "convolve-varying";
    const bool correlates = !isVarying && random() % 2;
    c.taps = RandomKernel(random, extent, c.radius, correlates, *stack);
    if (isVarying)
    {
      c.otherTaps = RandomKernel(random, extent, c.radius, false, *stack);
      c.parameters.Set("KernelImages", std::shared_ptr<const KernelStack>(stack));
      c.parameters.Set("GridSize", std::vector<std::int64_t>{ 2, 1, 1 });
      c.transforms = true;
      return c;
    }
    c.parameters.Set("KernelImage", std::shared_ptr<const KernelStack>(stack));
    c.parameters.Set("Correlate", correlates);
    c.transforms = random() % 2;
    c.parameters.Set("Method", c.transforms ? "fft" : "direct");
    return c;
  }
  if (filter == "gaussian" || filter == "highpass")
  {
    const double sigma = 0.4 + static_cast<double>(random() % 10) / 10;
    c.parameters.SetReal("Sigma", sigma);
    if (filter == "highpass")
    {
      return c;
    }
    c.parameters.Set("Transforms", random() % 2 != 0);
    c.transforms = std::get<bool>(c.parameters.GetValues().at("Transforms"));
    return c;
  }
  c.parameters.Set("Radius", radius);
  if (filter == "percentile")
  {
    c.percentile = static_cast<double>(random() % 101);
    c.parameters.SetReal("Percentile", c.percentile);
  }
  if (filter == "nlm")
  {
    for (int a = 0; a < 3; ++a)
    {
      c.radius[a] = std::min<std::int64_t>(c.radius[a], 2);
      radius[static_cast<std::size_t>(a)] = c.radius[a];
      c.patch[a] = static_cast<std::int64_t>(random() % 3);
    }
    c.strength = 5 + static_cast<double>(random() % 60);
    c.noise = static_cast<double>(random() % 2) * 40;
    c.parameters.Set("Radius", radius);
    c.parameters.Set("PatchRadius", std::vector<std::int64_t>{ c.patch[0], c.patch[1], c.patch[2] });
    c.parameters.SetReal("Strength", c.strength);
    c.parameters.SetReal("NoiseVariance", c.noise);
  }
  if (filter == "entropy")
  {
    // One more than 256 takes more than a byte.
    const int bins[] = { 2, 9, 256, 300, 4096 };
    c.bins = bins[random() % 5];
    c.parameters.SetInteger("NumberOfBins", c.bins);
    c.parameters.Set("Range", std::vector<double>{ c.lower, c.upper });
  }
  if (filter == "wiener")
  {
    c.noise = static_cast<double>(random() % 3000);
    c.parameters.SetReal("NoiseVariance", c.noise);
  }
  if (filter == "box")
  {
    const char * const statistics[] = { "mean", "sum", "variance", "std" };
    c.statistic = statistics[random() % 4];
    c.parameters.Set("Statistic", c.statistic);
    c.parameters.Set("BoundaryCondition", "renormalized");
    c.boundary.mode = BoundaryMode::Renormalized;
    c.isTable = true;
    c.hasRadii = random() % 2;
  }
  if (filter == "convolve")
  {
    std::int64_t taps = 1;
    for (int a = 0; a < 3; ++a)
    {
      taps *= 2 * c.radius[a] + 1;
    }
    for (std::int64_t i = 0; i < taps; ++i)
    {
      c.taps.push_back(static_cast<double>(random() % 100) / 64);
    }
    c.taps[static_cast<std::size_t>(taps / 2)] = 3;
    c.parameters.Set("Weights", c.taps);
    c.parameters.Set("Correlate", true);
  }
  return c;
}

/** The taps of a Gaussian are those of its operation without a mask. */
void
TakeTaps(Case & c, const FilterImage & given)
{
  if (c.filter != "gaussian" && c.filter != "highpass")
  {
    return;
  }
  FilterImage image = given;
  image.additionalInputs.clear();
  FilterParameters parameters = c.parameters;
  parameters.Set("Transforms", false);
  parameters.Set("IgnoreNaN", false);
  FilterParameters direct;
  for (const auto & value : parameters.GetValues())
  {
    if (value.first != "EmptyValue")
    {
      direct.Set(value.first, value.second);
    }
  }
  const auto operation =
    std::dynamic_pointer_cast<const SeparableOperation>(MakeFilterOperation("gaussian", direct, image));
  Box kernel{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    c.radius[a] = operation->Radius(a);
    kernel.upper[a] = 2 * c.radius[a] + 1;
  }
  ForEachIndex(kernel, [&](const Coordinates & tap) {
    double product = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      product *= operation->weights[a].empty() ? 1.0 : operation->weights[a][static_cast<std::size_t>(tap[a])];
    }
    c.taps.push_back(product);
  });
}

const char * const Filters[] = { "mean",
                                 "sum",
                                 "variance",
                                 "std",
                                 "gaussian",
                                 "convolve",
                                 "highpass",
                                 "wiener",
                                 "box",
                                 "convolve-image",
                                 "convolve-varying" };

/** The filters that take no weights, but leave out NaN. */
const char * const CountingFilters[] = { "median", "percentile", "entropy" };

/** Random radii, of boxes that have their own. */
template <typename TTrial>
void
FillRadii(std::mt19937 & random, const Case & c, TTrial & t)
{
  t.radii.clear();
  for (std::size_t i = 0; c.hasRadii && i < t.voxels.size(); ++i)
  {
    t.radii.push_back(static_cast<std::int16_t>(random() % 6) - 1);
  }
}

/** The factor of each tap at an index, of two kernels that vary along x; in Renormalized mode each with its own factor.
 * `whole`: the sum of the kernel that is there. */
std::vector<double>
TapsAt(const Case & c, const Box & box, const Coordinates & index, long double & whole)
{
  if (c.otherTaps.empty())
  {
    whole = 0;
    for (const double tap : c.taps)
    {
      whole += tap;
    }
    return c.taps;
  }
  const double spacing = static_cast<double>(box.upper[0]) / 2;
  const double at = (static_cast<double>(index[0]) - (spacing - 1) / 2) / spacing;
  const double part = std::min(std::max(at, 0.0), 1.0);
  Box          window{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] = index[a] - c.radius[a];
    window.upper[a] = index[a] + c.radius[a] + 1;
  }
  std::vector<double> taps(c.taps.size(), 0.0);
  whole = 0;
  for (const bool second : { false, true })
  {
    const std::vector<double> & own = second ? c.otherTaps : c.taps;
    double                      sum = 0;
    double                      inside = 0;
    std::size_t                 i = 0;
    ForEachIndex(window, [&](const Coordinates & tap) {
      sum += own[i];
      bool there = true;
      for (int a = 0; a < MaxDimension; ++a)
      {
        there = there && tap[a] >= 0 && tap[a] < box.upper[a];
      }
      inside += there ? own[i] : 0.0;
      ++i;
    });
    const double share = second ? part : 1 - part;
    const double factor = c.boundary.mode == BoundaryMode::Renormalized ? sum / inside : 1.0;
    for (i = 0; i < own.size(); ++i)
    {
      taps[i] += share * factor * own[i];
    }
    whole += share * sum;
  }
  return taps;
}

using DomainDefinition = KernelTest;

template <typename TIn, typename TOut, typename TWeight>
void
CompareAll(std::mt19937 & random, Manager & manager, BackendChoice backend, const std::string & filter, int mode)
{
  constexpr bool                  isMask = std::is_integral<TWeight>::value;
  constexpr bool                  isReal = std::is_floating_point<TIn>::value;
  DomainTrial<TIn, TOut, TWeight> t(RandomExtent(random, 9));
  Case                            c = RandomCase(random, filter, mode);
  if (c.statistic == "sum" && !isMask && std::is_integral<TOut>::value)
  {
    return; // refused: see Refusals
  }
  if (c.transforms && std::is_integral<TOut>::value)
  {
    if (filter == "convolve-varying")
    {
      return;
    }
    c.transforms = false;
    filter == "gaussian" ? c.parameters.Set("Transforms", false) : c.parameters.Set("Method", "direct");
  }
  FillRadii(random, c, t);
  const bool ignoresNan = isReal && random() % 2;
  c.parameters.Set("IgnoreNaN", ignoresNan);
  TOut empty = std::is_floating_point<TOut>::value ? std::numeric_limits<TOut>::quiet_NaN() : TOut(0);
  if (c.statistic != "sum" && random() % 2)
  {
    empty = TOut(42);
    c.parameters.Set("EmptyValue", PixelValue(std::int64_t{ 42 }));
  }
  // From no voxel inside to all of them.
  const unsigned int share = random() % 5;
  for (std::size_t i = 0; i < t.voxels.size(); ++i)
  {
    t.voxels[i] = isReal || sizeof(TIn) < 8 ? RandomPixel<TIn>(random) : static_cast<TIn>(random());
    const bool inside = random() % 4 < share;
    t.weights[i] = !inside ? TWeight(0) : isMask ? TWeight(1 + random() % 100) : TWeight(1 + random() % 1000) / 256;
    if constexpr (isReal)
    {
      // Voxels outside may be anything.
      if (ignoresNan ? random() % 3 == 0 : !inside)
      {
        t.voxels[i] = std::numeric_limits<TIn>::quiet_NaN();
      }
    }
  }
  t.Make(filter, c.parameters, isMask ? "MaskImage" : "WeightImage");
  TakeTaps(c, t.image);
  t.request.backend = backend;
  if (random() % 2)
  {
    t.request.budgets.device = 200000;
  }
  const Box region = RandomRegion(random, t.image.extent);
  try
  {
    t.Run(manager, region);
  }
  catch (const BudgetError &)
  {
    return;
  }
  catch (const ParameterError & error)
  {
    // Integer means of sums that no double holds.
    ASSERT_TRUE((filter == "mean" || filter == "box") && std::is_integral<TOut>::value && sizeof(TIn) >= 4 && isMask)
      << error.what();
    return;
  }
  const BufferView result = DenseView(t.output.data(), PixelTypeOf<TOut>(), region);
  long double      largest = std::fabs(static_cast<long double>(c.boundary.constant.ToDouble()));
  for (const TIn voxel : t.voxels)
  {
    largest = voxel == voxel ? std::max(largest, std::fabs(static_cast<long double>(voxel))) : largest;
  }
  // The error bound of a table's entries: of sums, and of sums of squares.
  const bool        isRounded = c.isTable && (isReal || !isMask || sizeof(TIn) >= 4);
  const long double magnitude = largest * 4 * static_cast<long double>(t.voxels.size());
  const long double ofTable = isRounded ? magnitude * 2e-15L : 0.0L;
  const long double ofSquares = isRounded ? magnitude * largest * 2e-15L : 0.0L;
  ForEachIndex(region, [&](const Coordinates & index) {
    long double               whole = 1;
    const std::vector<double> taps = TapsAt(c, t.box, index, whole);
    const auto                factor = [&](const Coordinates & tap) -> long double {
      if (taps.empty())
      {
        return 1;
      }
      std::int64_t i = 0;
      for (int a = MaxDimension - 1; a >= 0; --a)
      {
        i = i * (2 * c.radius[a] + 1) + tap[a];
      }
      return static_cast<long double>(taps[static_cast<std::size_t>(i)]);
    };
    Coordinates radius = c.radius;
    for (int a = 0; c.hasRadii && a < MaxDimension; ++a)
    {
      radius[a] = std::min<std::int64_t>(radius[a], std::max<std::int16_t>(t.radii[t.NumberOf(index)], 0));
    }
    const Moments     m = Define(t, index, radius, c.boundary, ignoresNan, factor);
    const TOut        found = At<TOut>(result, index);
    const bool        inFloat = std::is_same<TOut, float>::value || std::is_same<TIn, float>::value || sizeof(TIn) <= 2;
    const long double unit = inFloat ? 6e-8L : 1.2e-16L;
    SCOPED_TRACE(filter + " " + t.request.operation->GetKey() + " at " + ToString(index));
    if (c.statistic == "sum")
    {
      ASSERT_TRUE(IsRounded(found, m.sum, m.magnitude * unit * 400 + ofTable)) << m.weights;
      return;
    }
    if (c.transforms && m.weights / whole < 1.1e-6L)
    {
      return; // whether that is nothing, rounding decides
    }
    if (!(m.weights > 0))
    {
      ASSERT_TRUE(IsSame(found, empty));
      return;
    }
    const long double scale = taps.empty() ? 1.0L : whole;
    const long double ofVariance = 1e-13L * m.squares / m.weights + m.variance * unit * 200 + ofSquares / m.weights;
    const long double mean = scale * m.sum / m.weights;
    const auto        voxel = static_cast<long double>(t.voxels[t.NumberOf(index)]);
    const long double ofMean = c.transforms ? largest * scale * (1e-12L * whole / m.weights + unit)
                                            : m.magnitude / m.weights * scale * unit * 500 + ofTable / m.weights;
    if (filter == "wiener")
    {
      const long double excess = m.variance - static_cast<long double>(c.noise);
      if (voxel != voxel)
      {
        // The voxel itself is outside. Whether the window varies more than the noise, rounding may decide.
        ASSERT_TRUE(std::fabs(excess) <= ofVariance || (excess > 0 ? found != found : IsRounded(found, mean, ofMean)));
        return;
      }
      const long double difference = voxel - mean;
      const long double gain = excess > 0 ? excess / m.variance : 0.0L;
      const long double ofGain = std::min(1.0L, 2 * ofVariance / std::max<long double>(m.variance, c.noise));
      const long double bound =
        2 * ofMean + std::fabs(difference) * (ofGain + 8 * unit) + 4 * unit * (std::fabs(mean) + std::fabs(voxel));
      ASSERT_TRUE(IsRounded(found, mean + gain * difference, bound)) << m.variance;
      return;
    }
    if (filter == "highpass")
    {
      const long double bound = ofMean + 2 * unit * (std::fabs(voxel) + std::fabs(mean));
      ASSERT_TRUE(voxel == voxel ? IsRounded(found, voxel - mean, bound) : found != found);
      return;
    }
    if (c.statistic == "variance" || c.statistic == "std")
    {
      const bool        root = c.statistic == "std";
      const long double bound = ofVariance;
      if (root)
      {
        const long double least = std::sqrt(std::max(m.variance - bound, 0.0L));
        const long double most = std::sqrt(m.variance + bound);
        ASSERT_TRUE(IsRounded(found, (least + most) / 2, (most - least) / 2 + most * unit * 4)) << m.variance;
        return;
      }
      ASSERT_TRUE(IsRounded(found, m.variance, bound));
      return;
    }
    ASSERT_TRUE(IsRounded(found, mean, ofMean));
  });
}

TEST_P(DomainDefinition, OfMasksAndWeights)
{
  std::mt19937 random(5);
  for (const char * const filter : Filters)
  {
    for (int mode = 0; mode < 5; ++mode)
    {
      ForEachPairOfKinds([&](auto in, auto out) {
        using In = decltype(in);
        using Out = decltype(out);
        // Kernels of fake devices are slow: each pair of kinds has one kind of weights there.
        const bool         all = this->GetParam() != Place::Fake;
        const unsigned int one = random() % 4;
        if (all || one == 0)
        {
          CompareAll<In, Out, std::uint8_t>(random, this->GetManager(), this->GetBackend(), filter, mode);
        }
        if (all || one == 1)
        {
          CompareAll<In, Out, float>(random, this->GetManager(), this->GetBackend(), filter, mode);
        }
        if constexpr (std::is_same<In, Out>::value)
        {
          if (all || one == 2)
          {
            CompareAll<In, Out, std::int16_t>(random, this->GetManager(), this->GetBackend(), filter, mode);
          }
          if (all || one == 3)
          {
            CompareAll<In, Out, double>(random, this->GetManager(), this->GetBackend(), filter, mode);
          }
        }
      });
      if (this->HasFatalFailure())
      {
        return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, DomainDefinition, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, DomainDefinition, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, DomainDefinition, testing::Values(Place::Cuda));

/** The parameters, so that bits are promised. */
FilterParameters
WithoutTransforms(const Case & c)
{
  FilterParameters parameters = c.parameters;
  if (c.filter == "gaussian")
  {
    parameters.Set("Transforms", false);
  }
  if (c.filter == "convolve-image")
  {
    parameters.Set("Method", "direct");
  }
  return parameters;
}

/** A mask of ones, and NaN ignored where there is none, change no bit; nor does a mask that holds a window wholly,
 * where the window is. */
template <typename TIn, typename TOut>
void
CompareWithWhole(std::mt19937 & random, Manager & manager, BackendChoice backend, const std::string & filter, int mode)
{
  DomainTrial<TIn, TOut, std::uint8_t> t(RandomExtent(random, 12));
  const Case                           c = RandomCase(random, filter, mode);
  FilterParameters                     parameters = WithoutTransforms(c);
  if (filter == "mean")
  {
    parameters.Set("Rounding", random() % 2 ? "nearest" : "toward-zero");
  }
  FillRadii(random, c, t);
  for (TIn & voxel : t.voxels)
  {
    voxel = RandomPixel<TIn>(random);
  }
  t.weights.assign(t.weights.size(), 255);
  t.request.backend = backend;
  t.Make(filter, parameters, "");
  t.Run(manager, t.box);
  const std::vector<TOut> whole = t.output;
  const auto              compare = [&](const char * what) {
    for (std::size_t i = 0; i < whole.size(); ++i)
    {
      ASSERT_EQ(std::memcmp(&whole[i], &t.output[i], sizeof(TOut)), 0)
        << what << ": " << +whole[i] << " and " << +t.output[i] << " at " << i << " of "
        << t.request.operation->GetKey();
    }
  };
  try
  {
    t.Make(filter, parameters, "MaskImage");
    t.Run(manager, t.box);
    compare("mask of ones");
    if (std::is_floating_point<TIn>::value)
    {
      parameters.Set("IgnoreNaN", true);
      t.Make(filter, parameters, "");
      t.Run(manager, t.box);
      compare("no NaN");
    }
  }
  catch (const ParameterError & error)
  {
    ASSERT_TRUE((filter == "mean" || filter == "box") && std::is_integral<TOut>::value && sizeof(TIn) >= 4)
      << error.what();
  }
}

TEST_P(DomainDefinition, AMaskOfOnesChangesNoBit)
{
  std::mt19937              random(9);
  std::vector<const char *> filters(std::begin(Filters), std::end(Filters));
  filters.insert(filters.end(), std::begin(CountingFilters), std::end(CountingFilters));
  filters.push_back("nlm");
  for (const char * const filter : filters)
  {
    if (filter == std::string("convolve-varying"))
    {
      continue; // its bits are its transforms'
    }
    for (int mode = 0; mode < 5; ++mode)
    {
      for (int trial = 0; trial < (this->GetParam() == Place::Fake ? 1 : 4); ++trial)
      {
        ForEachPairOfKinds([&](auto in, auto out) {
          CompareWithWhole<decltype(in), decltype(out)>(random, this->GetManager(), this->GetBackend(), filter, mode);
        });
        if (this->HasFatalFailure())
        {
          return;
        }
      }
    }
  }
}

/** Any region, chunks and devices give the bits of the CPU over the whole image. TWeight: float, or of masks bytes. */
template <typename TWeight, typename TFilters>
void
CompareChunks(const TFilters & filters, Manager & manager, BackendChoice backend)
{
  std::mt19937 random(12);
  Manager      host({});
  for (const char * const filter : filters)
  {
    if (filter == std::string("convolve-varying"))
    {
      continue;
    }
    for (int mode = 0; mode < 5; ++mode)
    {
      for (int trial = 0; trial < 4; ++trial)
      {
        DomainTrial<float, float, TWeight> t(RandomExtent(random, 24));
        const Case                         c = RandomCase(random, filter, mode);
        FillRadii(random, c, t);
        for (std::size_t i = 0; i < t.voxels.size(); ++i)
        {
          t.voxels[i] = RandomPixel<float>(random);
          t.weights[i] = static_cast<TWeight>(static_cast<TWeight>(random() % 3) / 2);
        }
        t.Make(filter, WithoutTransforms(c), std::is_integral<TWeight>::value ? "MaskImage" : "WeightImage");
        t.request.backend = BackendChoice::CPU;
        t.Run(host, t.box);
        const std::vector<float> whole = t.output;
        const BufferView         view = DenseView(const_cast<float *>(whole.data()), PixelType::Float32, t.box);
        for (int part = 0; part < 3; ++part)
        {
          const Box region = RandomRegion(random, t.image.extent);
          t.request.backend = backend;
          t.request.budgets.device = 60000 + random() % 300000;
          t.request.budgets.host = 60000 + random() % 100000;
          try
          {
            t.Run(manager, region);
          }
          catch (const BudgetError &)
          {
            continue;
          }
          const BufferView result = DenseView(t.output.data(), PixelType::Float32, region);
          ForEachIndex(region, [&](const Coordinates & index) {
            ASSERT_TRUE(IsSame(At<float>(result, index), At<float>(view, index)))
              << t.request.operation->GetKey() << " region " << ToString(region) << " at " << ToString(index);
          });
          if (testing::Test::HasFatalFailure())
          {
            return;
          }
        }
      }
    }
  }
}

TEST_P(DomainDefinition, BitsDependOnNoChunk)
{
  const char * const means[] = { "nlm" };
  CompareChunks<float>(Filters, this->GetManager(), this->GetBackend());
  CompareChunks<float>(means, this->GetManager(), this->GetBackend());
  CompareChunks<std::uint8_t>(means, this->GetManager(), this->GetBackend());
  CompareChunks<std::uint8_t>(CountingFilters, this->GetManager(), this->GetBackend());
}

/** Means of voxels of up to 3.4e38: those of the definition, and the bits of the CPU over the whole image. Returns how
 * many of them have a float sum that overflows. */
template <typename TOut, typename TWeight>
int
CompareLargeMeans(std::mt19937 & random, Manager & host, Manager & manager, BackendChoice backend, int mode)
{
  constexpr bool                    isMask = std::is_integral<TWeight>::value;
  DomainTrial<float, TOut, TWeight> t(RandomExtent(random, 12));
  Case                              c = RandomCase(random, "mean", mode);
  const bool                        ignoresNan = random() % 2;
  const bool                        isGiven = !ignoresNan || random() % 3 != 0;
  c.parameters.Set("IgnoreNaN", ignoresNan);
  if (c.boundary.mode == BoundaryMode::Constant && random() % 2)
  {
    c.boundary.constant = 2e38;
    c.parameters.Set("Constant", c.boundary.constant);
  }
  const float        values[] = { 3.4e38F, -3.4e38F, 2e38F, 1e36F, -7, 0, 1e-30F };
  const float        signless[] = { 3.4e38F, 3e38F, 2e38F, 1e38F, 3e38F, 3e38F, 3e38F };
  const bool         isSigned = random() % 2;
  const unsigned int share = 1 + random() % 4;
  // Weights whose sums overflow, of voxels whose products with them do, or do not.
  const double weightScale = !isMask && random() % 3 == 0 ? 3e37 : 1;
  const float  scale = weightScale > 1 && random() % 4 != 0 ? 1e-38F : 1;
  for (std::size_t i = 0; i < t.voxels.size(); ++i)
  {
    t.voxels[i] = (isSigned ? values : signless)[random() % 7] * scale;
    if (random() % 40 == 0)
    {
      t.voxels[i] = random() % 2 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
    }
    const bool inside = random() % 4 < share;
    t.weights[i] = !inside  ? TWeight(0)
                   : isMask ? TWeight(1 + random() % 100)
                            : static_cast<TWeight>(static_cast<double>(1 + random() % 1000) / 256 * weightScale);
  }
  t.Make("mean", c.parameters, !isGiven ? "" : isMask ? "MaskImage" : "WeightImage");
  t.request.backend = BackendChoice::CPU;
  t.request.budgets = {};
  t.Run(host, t.box);
  const std::vector<TOut> whole = t.output;
  const BufferView        view = DenseView(const_cast<TOut *>(whole.data()), PixelTypeOf<TOut>(), t.box);
  int                     overflows = 0;
  ForEachIndex(t.box, [&](const Coordinates & index) {
    const Moments m = Define(t, index, c.radius, c.boundary, ignoresNan, [](const Coordinates &) { return 1.0L; });
    const TOut    found = At<TOut>(view, index);
    SCOPED_TRACE(t.request.operation->GetKey() + " at " + ToString(index));
    if (!(m.weights > 0) || m.sum != m.sum)
    {
      ASSERT_TRUE(found != found);
      return;
    }
    if (std::isinf(m.sum))
    {
      ASSERT_EQ(static_cast<long double>(found), m.sum);
      return;
    }
    ASSERT_TRUE(IsRounded(found, m.sum / m.weights, m.magnitude / m.weights * 3e-5L + 1e-44L));
    overflows += std::max(std::fabs(m.sum), m.weights) > std::numeric_limits<float>::max() ? 1 : 0;
  });
  for (int part = 0; part < 3 && !testing::Test::HasFatalFailure(); ++part)
  {
    const Box region = RandomRegion(random, t.image.extent);
    t.request.backend = backend;
    t.request.budgets.device = 60000 + random() % 300000;
    t.request.budgets.host = 60000 + random() % 100000;
    try
    {
      t.Run(manager, region);
    }
    catch (const BudgetError &)
    {
      continue;
    }
    const BufferView result = DenseView(t.output.data(), PixelTypeOf<TOut>(), region);
    ForEachIndex(region, [&](const Coordinates & index) {
      ASSERT_TRUE(IsSame(At<TOut>(result, index), At<TOut>(view, index)))
        << t.request.operation->GetKey() << " region " << ToString(region) << " at " << ToString(index);
    });
  }
  return overflows;
}

TEST_P(DomainDefinition, MeansOfFloatsWhoseSumsOverflow)
{
  std::mt19937 random(31);
  Manager      host({});
  int          overflows = 0;
  for (int trial = 0; trial < 4 && !this->HasFatalFailure(); ++trial)
  {
    for (int mode = 0; mode < 6; ++mode)
    {
      const auto backend = this->GetBackend();
      overflows += CompareLargeMeans<float, std::uint8_t>(random, host, this->GetManager(), backend, mode);
      overflows += CompareLargeMeans<float, float>(random, host, this->GetManager(), backend, mode);
      overflows += CompareLargeMeans<double, std::int32_t>(random, host, this->GetManager(), backend, mode);
      overflows += CompareLargeMeans<float, double>(random, host, this->GetManager(), backend, mode);
    }
  }
  EXPECT_GT(overflows, 1000);
}

/** The largest, or least, number that a window sees of a mask's voxels; false: none. */
template <typename T>
bool
Extreme(const std::vector<T> & voxels, const std::vector<std::uint8_t> & mask, const Box & box,
        const Coordinates & index, const Coordinates & radius, const std::vector<unsigned char> & element,
        bool reflected, const WindowBoundary & boundary, bool minimum, T & result)
{
  Box window{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] = index[a] - radius[a];
    window.upper[a] = index[a] + radius[a] + 1;
  }
  bool        any = false;
  std::size_t tap = 0;
  ForEachIndex(window, [&](Coordinates at) {
    const std::size_t t = reflected ? element.size() - 1 - tap : tap;
    ++tap;
    if (!element.empty() && element[t] == 0)
    {
      return;
    }
    bool        there = true;
    std::size_t i = 0;
    for (int a = MaxDimension - 1; a >= 0; --a)
    {
      there = oracle::Look(at[a], box.upper[a], boundary.mode) && there;
      i = i * static_cast<std::size_t>(box.Extent(a)) + static_cast<std::size_t>(there ? at[a] : 0);
    }
    if (there ? mask[i] == 0 : boundary.mode != BoundaryMode::Constant)
    {
      return;
    }
    const T value = there ? voxels[i] : static_cast<T>(boundary.constant);
    result = !any || (minimum ? value < result : value > result) ? value : result;
    any = true;
  });
  return any;
}

template <typename T>
void
CompareExtrema(std::mt19937 & random, Manager & manager, BackendChoice backend, const std::string & filter, int mode)
{
  DomainTrial<T, T, std::uint8_t> t(RandomExtent(random, 8));
  WindowBoundary                  boundary;
  boundary.mode = BoundariesOfWords[mode];
  FilterParameters parameters;
  parameters.Set("BoundaryCondition", BoundaryWords[mode]);
  if (boundary.mode == BoundaryMode::Constant)
  {
    boundary.constant = std::int64_t{ 7 };
    parameters.Set("Constant", boundary.constant);
  }
  const bool                 isFlat = filter != "range" && random() % 2;
  Coordinates                radius{};
  std::vector<std::int64_t>  radii;
  std::vector<unsigned char> element;
  auto                       stack = std::make_shared<KernelStack>();
  stack->kernels.emplace_back();
  std::int64_t taps = 1;
  for (int a = 0; a < 3; ++a)
  {
    radius[a] = static_cast<std::int64_t>(random() % 3);
    radii.push_back(radius[a]);
    stack->extent[a] = 2 * radius[a] + 1;
    taps *= stack->extent[a];
  }
  if (isFlat)
  {
    for (std::int64_t i = 0; i < taps; ++i)
    {
      element.push_back(random() % 2);
    }
    element[random() % element.size()] = 1;
    stack->kernels[0].assign(element.begin(), element.end());
    parameters.Set("Kernel", std::shared_ptr<const KernelStack>(stack));
  }
  else
  {
    parameters.Set("Radius", radii);
  }
  const T empty(11);
  parameters.SetInteger("EmptyValue", 11);
  const unsigned int share = random() % 5;
  for (std::size_t i = 0; i < t.voxels.size(); ++i)
  {
    t.weights[i] = random() % 4 < share ? 3 : 0;
    t.voxels[i] = RandomPixel<T>(random);
    if (std::is_floating_point<T>::value && t.weights[i] == 0)
    {
      t.voxels[i] = static_cast<T>(1e30);
    }
  }
  t.Make(filter, parameters, "MaskImage");
  t.request.backend = backend;
  const bool isSequence = filter == "opening" || filter == "closing";
  const Box  region = RandomRegion(random, t.image.extent);
  t.Run(manager, region);
  const BufferView          result = DenseView(t.output.data(), PixelTypeOf<T>(), region);
  std::vector<T>            voxels = t.voxels;
  std::vector<std::uint8_t> mask = t.weights;
  if (isSequence)
  {
    std::size_t i = 0;
    ForEachIndex(t.box, [&](const Coordinates & index) {
      if (!Extreme(t.voxels, t.weights, t.box, index, radius, element, false, boundary, filter == "opening", voxels[i]))
      {
        mask[i] = 0;
      }
      ++i;
    });
  }
  const bool minimum = filter == "minimum" || filter == "closing";
  ForEachIndex(region, [&](const Coordinates & index) {
    T          expected = empty;
    const bool any = Extreme(voxels, mask, t.box, index, radius, element, isSequence, boundary, minimum, expected);
    if (any && filter == "range")
    {
      T least{};
      Extreme(voxels, mask, t.box, index, radius, element, false, boundary, true, least);
      if constexpr (std::is_integral<T>::value)
      {
        const auto difference = static_cast<oracle::Wide>(expected) - static_cast<oracle::Wide>(least);
        expected = static_cast<T>(std::min<oracle::Wide>(difference, std::numeric_limits<T>::max()));
      }
      else
      {
        expected -= least;
      }
    }
    expected = any ? expected : empty;
    ASSERT_TRUE(IsSame(At<T>(result, index), expected))
      << t.request.operation->GetKey() << " " << ToString(t.box) << " at " << ToString(index);
  });
}

TEST_P(DomainDefinition, OfExtremaInMasks)
{
  std::mt19937 random(21);
  for (const char * const filter : { "maximum", "minimum", "range", "opening", "closing" })
  {
    for (int mode = 0; mode < 5; ++mode)
    {
      for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
      {
        for (int trial = 0; trial < (this->GetParam() == Place::Fake ? 2 : 10); ++trial)
        {
          DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
            CompareExtrema<decltype(pixel)>(random, this->GetManager(), this->GetBackend(), filter, mode);
          });
          if (this->HasFatalFailure())
          {
            return;
          }
        }
      }
    }
  }
}

/** The voxels inside that a window sees; without NaN in ascending order, -0 before +0. */
template <typename T, typename TTrial>
std::vector<T>
Seen(const TTrial & t, const Coordinates & index, const Case & c, bool ignoresNan)
{
  Box window{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] = index[a] - c.radius[a];
    window.upper[a] = index[a] + c.radius[a] + 1;
  }
  std::vector<T> seen;
  ForEachIndex(window, [&](const Coordinates & at) {
    long double value = 0;
    long double weight = 0;
    if (t.Look(at, c.boundary, ignoresNan, value, weight))
    {
      seen.push_back(static_cast<T>(value));
    }
  });
  if (ignoresNan)
  {
    std::sort(seen.begin(), seen.end(), [](T a, T b) {
      return a < b || (a == b && std::signbit(static_cast<double>(a)) > std::signbit(static_cast<double>(b)));
    });
  }
  return seen;
}

template <typename TIn, typename TOut>
void
CompareCounted(std::mt19937 & random, Manager & manager, BackendChoice backend, const std::string & filter, int mode,
               std::int64_t extent)
{
  constexpr bool                       isReal = std::is_floating_point<TIn>::value;
  DomainTrial<TIn, TOut, std::uint8_t> t(RandomExtent(random, extent));
  const Case                           drawn = RandomCase(random, filter, mode);
  Case                                 c = drawn;
  const bool                           ignoresNan = isReal && random() % 2;
  c.parameters.Set("IgnoreNaN", ignoresNan);
  const bool hasMask = !ignoresNan || random() % 2;
  TOut       empty = std::is_floating_point<TOut>::value ? std::numeric_limits<TOut>::quiet_NaN() : TOut(0);
  if (random() % 2)
  {
    empty = TOut(42);
    c.parameters.Set("EmptyValue", PixelValue(std::int64_t{ 42 }));
  }
  // Single voxels or a box, so that windows are whole, cut and empty.
  const bool         isBox = random() % 2;
  const Box          box = RandomRegion(random, t.image.extent);
  const unsigned int share = random() % 5;
  std::size_t        i = 0;
  ForEachIndex(t.box, [&](const Coordinates & at) {
    t.weights[i] = (isBox ? box.Contains(Box{ at, { { at[0] + 1, at[1] + 1, at[2] + 1, at[3] + 1, at[4] + 1 } } })
                          : random() % 4 < share)
                     ? 7
                     : 0;
    t.voxels[i] = random() % 3 ? RandomPixel<TIn>(random) : static_cast<TIn>(random() % 5);
    const unsigned int special = random() % 40;
    if (special < 3 && sizeof(TIn) < 8)
    {
      // Values that stand for outside voxels may be inside too.
      t.voxels[i] = special == 0 ? std::numeric_limits<TIn>::lowest() : std::numeric_limits<TIn>::max();
    }
    if constexpr (isReal)
    {
      const TIn values[] = { -std::numeric_limits<TIn>::infinity(), std::numeric_limits<TIn>::quiet_NaN(), TIn(-0.0) };
      t.voxels[i] = special < 3 ? values[special] : t.voxels[i];
      // Voxels outside may be anything.
      t.voxels[i] = t.weights[i] == 0 && random() % 2 ? std::numeric_limits<TIn>::quiet_NaN() : t.voxels[i];
    }
    ++i;
  });
  t.Make(filter, c.parameters, hasMask ? "MaskImage" : "");
  t.request.backend = backend;
  if (random() % 2)
  {
    t.request.budgets.device = 300000;
  }
  const Box region = RandomRegion(random, t.image.extent);
  try
  {
    t.Run(manager, region);
  }
  catch (const BudgetError &)
  {
    return;
  }
  const BufferView result = DenseView(t.output.data(), PixelTypeOf<TOut>(), region);
  ForEachIndex(region, [&](const Coordinates & index) {
    const bool             isRank = filter != "entropy";
    const std::vector<TIn> seen = Seen<TIn>(t, index, c, true);
    const TOut             found = At<TOut>(result, index);
    SCOPED_TRACE(t.request.operation->GetKey() + " " + ToString(t.box) + " at " + ToString(index));
    if (seen.empty())
    {
      ASSERT_TRUE(IsSame(found, empty));
      return;
    }
    if (isRank)
    {
      const auto rank = static_cast<std::size_t>(c.percentile / 100 * static_cast<double>(seen.size() - 1));
      ASSERT_TRUE(IsSame(found, static_cast<TOut>(seen[rank]))) << seen.size();
      return;
    }
    std::map<int, int> histogram;
    for (const TIn voxel : seen)
    {
      const double position = (static_cast<double>(voxel) - c.lower) * (c.bins / (c.upper - c.lower));
      ++histogram[position > 0 ? static_cast<int>(std::min(position, c.bins - 1.0)) : 0];
    }
    long double entropy = 0;
    for (const auto & bin : histogram)
    {
      const long double share = static_cast<long double>(bin.second) / static_cast<long double>(seen.size());
      entropy -= share * std::log2(share);
    }
    ASSERT_TRUE(IsRounded(found, entropy, 2e-6L));
  });
}

TEST_P(DomainDefinition, OfRanksAndEntropiesInMasks)
{
  std::mt19937 random(33);
  for (const char * const filter : CountingFilters)
  {
    for (int mode = 0; mode < 5; ++mode)
    {
      for (int trial = 0; trial < (this->GetParam() == Place::Fake ? 1 : 4); ++trial)
      {
        ForEachPairOfKinds([&](auto in, auto out) {
          CompareCounted<decltype(in), decltype(out)>(
            random, this->GetManager(), this->GetBackend(), filter, mode, trial == 3 ? 16 : 9);
        });
        if (this->HasFatalFailure())
        {
          return;
        }
      }
    }
  }
}

/** The median of small windows in a mask of any kind, voxel by voxel; rows take several tiles, or are short. */
template <typename T>
void
CompareSmallMedians(std::mt19937 & random, Manager & manager, const Coordinates & radius, int mode)
{
  constexpr bool isReal = std::is_floating_point<T>::value;
  const auto     width =
    static_cast<std::int64_t>(random() % 2 ? 384 / sizeof(T) + random() % 90 : 2 * radius[0] + random() % 9);
  const Coordinates               extent{ { std::max<std::int64_t>(width, 1),
                                            1 + static_cast<std::int64_t>(random() % 5),
                                            1 + static_cast<std::int64_t>(random() % 5),
                                            1,
                                            1 } };
  DomainTrial<T, T, std::uint8_t> t(extent);
  Case                            c;
  c.radius = radius;
  c.boundary.mode = BoundariesOfWords[mode];
  c.parameters.Set("Radius", std::vector<std::int64_t>{ radius[0], radius[1], radius[2] });
  c.parameters.Set("BoundaryCondition", BoundaryWords[mode]);
  if (c.boundary.mode == BoundaryMode::Constant)
  {
    c.boundary.constant = std::int64_t{ 7 };
    c.parameters.Set("Constant", c.boundary.constant);
  }
  // None, one voxel, every tenth one left out, half of them, few, ranges of rows, all.
  const unsigned int pattern = random() % 7;
  const unsigned int shares[] = { 0, 0, 90, 50, 5, 0, 100 };
  const bool         hasFew = random() % 2;
  bool               isInside = false;
  for (std::size_t i = 0; i < t.voxels.size(); ++i)
  {
    isInside = random() % 40 == 0 ? !isInside : isInside;
    t.weights[i] = (pattern == 5 ? isInside : random() % 100 < shares[pattern]) ? 1 : 0;
    // Values that stand for voxels outside may be inside too.
    const T extremes[] = { std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max() };
    t.voxels[i] = random() % 8 == 0 ? extremes[random() % 2]
                  : hasFew          ? static_cast<T>(random() % 4)
                                    : RandomPixel<T>(random);
    if constexpr (isReal)
    {
      const T values[] = { -std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(), T(-0.0) };
      t.voxels[i] = random() % 10 == 0 ? values[random() % 3] : t.voxels[i];
    }
  }
  if (pattern == 1)
  {
    t.weights[random() % t.weights.size()] = 1;
  }
  t.Make("median", c.parameters, "MaskImage");
  t.request.backend = BackendChoice::CPU;
  if (random() % 2)
  {
    t.request.budgets.host = 200000 + random() % 200000;
  }
  try
  {
    t.Run(manager, t.box);
  }
  catch (const BudgetError &)
  {
    return;
  }
  const BufferView result = DenseView(t.output.data(), PixelTypeOf<T>(), t.box);
  const T          empty = isReal ? std::numeric_limits<T>::quiet_NaN() : T(0);
  ForEachIndex(t.box, [&](const Coordinates & index) {
    const std::vector<T> seen = Seen<T>(t, index, c, true);
    ASSERT_TRUE(IsSame(At<T>(result, index), seen.empty() ? empty : seen[(seen.size() - 1) / 2]))
      << GetCpuLevel().name << " " << PixelTypeName(PixelTypeOf<T>()) << " pattern " << pattern << " "
      << t.request.operation->GetKey() << " " << ToString(t.box) << " at " << ToString(index) << ": " << seen.size();
  });
}

TEST(Domain, MediansOfSmallWindowsInMasksAreWhatTheirDefinitionSaysAtEveryLevel)
{
  const std::string before = GetCpuLevel().name;
  std::mt19937      random(87);
  Manager           host({});
  for (const char * const level : { "baseline", "avx2", "avx512" })
  {
    if (!SetCpuLevel(level))
    {
      continue;
    }
    for (int radii = 0; radii < 18; ++radii)
    {
      const Coordinates radius{ { 1 + radii % 2, radii / 2 % 3, radii / 6, 0, 0 } };
      for (int mode = 0; mode < 5; ++mode)
      {
        CompareSmallMedians<std::uint8_t>(random, host, radius, mode);
        CompareSmallMedians<std::int16_t>(random, host, radius, mode);
        CompareSmallMedians<float>(random, host, radius, mode);
        CompareSmallMedians<std::uint32_t>(random, host, radius, mode);
        CompareSmallMedians<double>(random, host, radius, mode);
      }
    }
  }
  ASSERT_TRUE(SetCpuLevel(before.c_str()));
}

template <typename TIn, typename TOut, typename TWeight>
void
CompareMeans(std::mt19937 & random, Manager & manager, BackendChoice backend, int mode)
{
  constexpr bool                  isMask = std::is_integral<TWeight>::value;
  constexpr bool                  isReal = std::is_floating_point<TIn>::value;
  DomainTrial<TIn, TOut, TWeight> t(RandomExtent(random, 7));
  Case                            c = RandomCase(random, "nlm", mode);
  const bool                      ignoresNan = isReal && random() % 2;
  c.parameters.Set("IgnoreNaN", ignoresNan);
  TOut empty = std::is_floating_point<TOut>::value ? std::numeric_limits<TOut>::quiet_NaN() : TOut(0);
  if (random() % 2)
  {
    empty = TOut(42);
    c.parameters.Set("EmptyValue", PixelValue(std::int64_t{ 42 }));
  }
  const unsigned int share = random() % 5;
  for (std::size_t i = 0; i < t.voxels.size(); ++i)
  {
    const bool inside = random() % 4 < share;
    t.weights[i] = !inside  ? TWeight(0)
                   : isMask ? TWeight(1 + random() % 100)
                            : static_cast<TWeight>(static_cast<TWeight>(1 + random() % 1000) / 256);
    t.voxels[i] = static_cast<TIn>(random() % 100);
    if constexpr (isReal)
    {
      // Voxels outside may be anything.
      if (ignoresNan ? random() % 4 == 0 : !inside && random() % 2)
      {
        t.voxels[i] = std::numeric_limits<TIn>::quiet_NaN();
      }
    }
  }
  t.Make("nlm", c.parameters, isMask ? "MaskImage" : "WeightImage");
  t.request.backend = backend;
  const Box region = RandomRegion(random, t.image.extent);
  t.Run(manager, region);
  const BufferView result = DenseView(t.output.data(), PixelTypeOf<TOut>(), region);
  Box              search{};
  Box              patch{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    search.lower[a] = -c.radius[a];
    search.upper[a] = c.radius[a] + 1;
    patch.lower[a] = -c.patch[a];
    patch.upper[a] = c.patch[a] + 1;
  }
  const auto sum = [](Coordinates a, const Coordinates & b) {
    for (int i = 0; i < MaxDimension; ++i)
    {
      a[i] += b[i];
    }
    return a;
  };
  ForEachIndex(region, [&](const Coordinates & p) {
    long double weighted = 0;
    long double weights = 0;
    ForEachIndex(search, [&](const Coordinates & shift) {
      const Coordinates q = sum(p, shift);
      long double       voxel = 0;
      long double       own = 0;
      if (!t.Look(q, c.boundary, ignoresNan, voxel, own))
      {
        return;
      }
      long double squares = 0;
      long double count = 0;
      ForEachIndex(patch, [&](const Coordinates & offset) {
        long double a = 0;
        long double b = 0;
        long double ofA = 0;
        long double ofB = 0;
        if (t.Look(sum(p, offset), c.boundary, ignoresNan, a, ofA) &&
            t.Look(sum(q, offset), c.boundary, ignoresNan, b, ofB))
        {
          squares += ofA * ofB * (a - b) * (a - b);
          count += ofA * ofB;
        }
      });
      if (count > 0)
      {
        const long double excess = std::max(squares / count - 2 * c.noise, 0.0L);
        const long double weight = own * std::exp(-excess / (c.strength * c.strength));
        weighted += weight * voxel;
        weights += weight;
      }
    });
    SCOPED_TRACE(t.request.operation->GetKey() + " " + ToString(t.box) + " at " + ToString(p));
    const TOut found = At<TOut>(result, p);
    if (weights < 1e-36L)
    {
      ASSERT_TRUE(weights > 0 || IsSame(found, empty)); // or it is what floats do not hold
      return;
    }
    // A weight is exact within 3e-7 where it is near 1, and a millionth of it where it is not.
    ASSERT_TRUE(IsRounded(found, weighted / weights, 1e-2L)) << weights;
  });
}

TEST_P(DomainDefinition, OfNonLocalMeans)
{
  std::mt19937 random(44);
  for (int mode = 0; mode < 5; ++mode)
  {
    for (int trial = 0; trial < (this->GetParam() == Place::Fake ? 1 : 3); ++trial)
    {
      ForEachPairOfKinds([&](auto in, auto out) {
        using In = decltype(in);
        using Out = decltype(out);
        CompareMeans<In, Out, std::uint8_t>(random, this->GetManager(), this->GetBackend(), mode);
        CompareMeans<In, Out, float>(random, this->GetManager(), this->GetBackend(), mode);
      });
      if (this->HasFatalFailure())
      {
        return;
      }
    }
  }
}

TEST_P(DomainDefinition, WrongWeightsAreAnError)
{
  for (const float wrong : { -1.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity() })
  {
    const Coordinates                extent = { { 30, 20, 10, 1, 1 } };
    DomainTrial<float, float, float> t(extent);
    t.weights.assign(t.weights.size(), 1.0F);
    t.weights[777] = wrong;
    FilterParameters parameters;
    parameters.SetInteger("Radius", 1);
    t.request.backend = this->GetBackend();
    t.Make("mean", parameters, "WeightImage");
    try
    {
      t.Run(this->GetManager(), t.box);
      FAIL() << wrong << " was taken";
    }
    catch (const Error & error)
    {
      // The fake device says first that a kernel failed.
      const std::size_t at = std::string(error.what()).find("WeightImage: ");
      EXPECT_TRUE(this->GetParam() == Place::Fake ? at != std::string::npos : at == 0) << error.what();
    }
    // None of it concerns what is far away.
    Box far = t.box;
    far.lower[2] = 7;
    EXPECT_NO_THROW(t.Run(this->GetManager(), far));
  }
}

/** The mean of the local variances of the voxels inside. */
TEST_P(DomainDefinition, NoiseIsThatOfTheVoxelsInside)
{
  std::mt19937 random(31);
  for (const char * const further : { "MaskImage", "WeightImage", "" })
  {
    DomainTrial<float, float, float>        weighed(Coordinates{ { 17, 14, 11, 1, 1 } });
    DomainTrial<float, float, std::uint8_t> masked(weighed.image.extent);
    const bool                              isMask = further == std::string("MaskImage");
    const bool                              ignoresNan = *further == '\0';
    for (std::size_t i = 0; i < masked.voxels.size(); ++i)
    {
      weighed.voxels[i] = RandomPixel<float>(random);
      masked.weights[i] = random() % 3 == 0 ? 0 : 9;
      weighed.weights[i] = static_cast<float>(random() % 4) / 2;
      if (ignoresNan && random() % 5 == 0)
      {
        weighed.voxels[i] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    masked.voxels = weighed.voxels;
    FilterParameters parameters;
    parameters.SetInteger("Radius", 2);
    parameters.SetReal("NoiseVariance", 0);
    parameters.SetInteger("EmptyValue", 5);
    parameters.Set("IgnoreNaN", ignoresNan);
    const auto compare = [&](auto & t) {
      t.Make("wiener", parameters, further);
      t.request.backend = this->GetBackend();
      t.Run(this->GetManager(), t.box);
      long double sum = 0;
      long double count = 0;
      ForEachIndex(t.box, [&](const Coordinates & index) {
        long double value = 0;
        long double weight = 0;
        if (t.Look(index, WindowBoundary(), ignoresNan, value, weight))
        {
          const auto one = [](const Coordinates &) { return 1.0L; };
          sum += Define(t, index, Coordinates{ { 2, 2, 2, 0, 0 } }, WindowBoundary(), ignoresNan, one).variance;
          count += 1;
        }
      });
      const double noise = ComputeWienerNoise(this->GetManager(), t.request);
      EXPECT_NEAR(noise, static_cast<double>(sum / count), 1e-5 * noise) << further;
    };
    isMask ? compare(masked) : compare(weighed);
  }
}

std::string
MessageOf(const std::string & filter, const FilterParameters & parameters, const std::vector<std::string> & further,
          PixelType input, PixelType second, PixelType output)
{
  FilterImage image;
  image.extent = { { 300, 300, 300, 1, 1 } };
  image.inputKind = input;
  image.outputKind = output;
  image.additionalInputs = further;
  try
  {
    const auto operation = MakeFilterOperation(filter, parameters, image);
    operation->CheckKinds({ input, second }, output);
  }
  catch (const ParameterError & error)
  {
    return error.what();
  }
  return "no error";
}

/** Results are the empty value exactly where the output mask is 0. */
template <typename TPixel, typename TWeight>
void
CompareOutputMask(std::mt19937 & random, Manager & manager, BackendChoice backend, const FilterDescription & filter,
                  const std::string & domain, const std::string & boundary)
{
  DomainTrial<TPixel, float, TWeight> values(Coordinates{ { 23, 11, 9, 1, 1 } });
  const bool                          ignoresNan = domain.empty();
  for (std::size_t i = 0; i < values.voxels.size(); ++i)
  {
    // Few voxels count, and nowhere but in a part of the image.
    const bool counts = i < values.voxels.size() / 9 && random() % 40 == 0;
    values.voxels[i] = static_cast<TPixel>(random() % 200);
    values.weights[i] = static_cast<TWeight>(counts ? 1 + random() % 3 : 0);
    if constexpr (std::is_floating_point<TPixel>::value)
    {
      values.voxels[i] = ignoresNan && !counts ? std::numeric_limits<TPixel>::quiet_NaN() : values.voxels[i];
    }
  }
  values.request.backend = backend;
  values.image.dimension = 3;
  FilterParameters parameters = RequiredParameters(filter);
  parameters.Set("BoundaryCondition", boundary);
  if (ignoresNan)
  {
    parameters.Set("IgnoreNaN", true);
  }
  if (filter.name == "entropy")
  {
    parameters.Set("Range", std::vector<double>{ 0, 200 });
  }
  auto             mask = values;
  FilterParameters ofMask = parameters;
  ofMask.Set("OutputMask", true);
  FilterDescription valued = filter;
  if (filter.name == "sum")
  {
    // Sums have no empty value; means of the same windows have.
    valued = GetFilter("mean");
  }
  parameters.Set("EmptyValue", PixelValue(-777777.0));
  values.Make(valued.name, parameters, domain);
  values.Run(manager, values.box);
  mask.Make(filter.name, ofMask, domain);
  mask.Run(manager, mask.box);
  std::size_t empty = 0;
  for (std::size_t i = 0; i < mask.output.size(); ++i)
  {
    ASSERT_EQ(mask.output[i], values.output[i] == -777777.0F ? 0.0F : 1.0F) << i << ": " << values.output[i];
    empty += mask.output[i] == 0.0F ? 1 : 0;
  }
  EXPECT_GT(empty, 0u);
  EXPECT_LT(empty, mask.output.size());
}

TEST_P(DomainDefinition, TheOutputMaskSaysWhereWindowsAreEmpty)
{
  std::mt19937          random(31);
  std::set<std::string> tried;
  for (const FilterDescription & filter : GetFilters())
  {
    if (!filter.FindParameter("OutputMask"))
    {
      continue;
    }
    tried.insert(filter.name);
    for (const char * const boundary : { "renormalized", "mirror" })
    {
      SCOPED_TRACE(filter.name + " " + boundary);
      if (filter.name == "box" && boundary == std::string("mirror"))
      {
        continue; // tables have no other boundary
      }
      Manager &           manager = this->GetManager();
      const BackendChoice backend = this->GetBackend();
      CompareOutputMask<std::uint8_t, std::uint8_t>(random, manager, backend, filter, "MaskImage", boundary);
      CompareOutputMask<float, std::int16_t>(random, manager, backend, filter, "MaskImage", boundary);
      const auto & further = filter.additionalInputs;
      if (std::any_of(further.begin(), further.end(), [](const auto & input) { return input.name == "WeightImage"; }))
      {
        CompareOutputMask<std::int16_t, float>(random, manager, backend, filter, "WeightImage", boundary);
        CompareOutputMask<float, double>(random, manager, backend, filter, "WeightImage", boundary);
      }
      if (filter.FindParameter("IgnoreNaN"))
      {
        CompareOutputMask<float, float>(random, manager, backend, filter, "", boundary);
      }
      if (this->HasFatalFailure())
      {
        return;
      }
    }
  }
  EXPECT_EQ(tried.size(), 18u);
}

/** Fills a mask: any voxels, or a box of an image inside or outside, as parts of rows whose windows see the same. */
template <typename TTrial>
void
FillMask(std::mt19937 & random, bool isBox, TTrial & t)
{
  const unsigned int share = random() % 5;
  const bool         isInside = random() % 2;
  Box                part{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t n = t.box.Extent(a);
    part.lower[a] = random() % 2 ? 0 : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    part.upper[a] =
      random() % 2 ? n : part.lower[a] + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  }
  ForEachIndex(t.box, [&](const Coordinates & index) {
    const bool inside = isBox ? part.Contains(Box{ index, index }) == isInside : random() % 4 < share;
    t.weights[t.NumberOf(index)] = inside ? 1 + random() % 100 : 0;
  });
}

/** Runs a kernel of the CPU on a region at once. */
template <typename TIn, typename TOut, typename TWeight>
void
RunOnHost(const Kernel & kernel, Executor & executor, const DomainTrial<TIn, TOut, TWeight> & t, const Box & region,
          std::vector<TOut> & output)
{
  ChunkShape shape;
  KernelCall call;
  call.operation = t.request.operation.get();
  call.inputs[0] = DenseView(const_cast<TIn *>(t.voxels.data()), PixelTypeOf<TIn>(), t.box);
  call.inputs[1] = DenseView(const_cast<TWeight *>(t.weights.data()), PixelTypeOf<TWeight>(), t.box);
  call.numberOfInputs = shape.numberOfInputs = t.hasWeights ? 2 : 1;
  output.assign(static_cast<std::size_t>(region.NumberOfVoxels()), TOut(77));
  call.output = DenseView(output.data(), PixelTypeOf<TOut>(), region);
  call.writable = shape.outputBox = region;
  call.image = shape.image = shape.inputBox = t.box;
  call.executor = &executor;
  shape.inputKinds[0] = PixelTypeOf<TIn>();
  shape.inputKinds[1] = PixelTypeOf<TWeight>();
  shape.outputKind = PixelTypeOf<TOut>();
  shape.concurrency = static_cast<int>(executor.GetConcurrency());
  call.kernels = shape.kernels = &GetHostKernels();
  call.scratchBytes = kernel.scratchBytes(*call.operation, shape);
  // The scratch beyond its end is checked.
  std::vector<std::uint64_t> scratch(call.scratchBytes / 8 + 33, 0x7777777777777777U);
  void *                     begin = scratch.data();
  std::size_t                space = scratch.size() * 8;
  call.scratch = std::align(256, call.scratchBytes, begin, space);
  kernel.run(call);
  ASSERT_EQ(static_cast<std::uint8_t *>(call.scratch)[call.scratchBytes], 0x77);
}

/** Stages alone leave float sums that overflow: MeansOfFloatsWhoseSumsOverflow compares these means. */
template <typename TIn, typename TOut>
bool
MayOverflow(const std::string & filter, TOut staged)
{
  return std::is_same<TIn, float>::value && filter == "mean" && !(staged - staged == TOut(0));
}

/** A window in a mask by the CPU's own kernel, and by the stages of the operation, each through memory. */
template <typename TIn, typename TOut>
void
CompareWithStages(std::mt19937 & random, Executor & executor, const std::string & filter, int mode)
{
  constexpr bool isReal = std::is_floating_point<TIn>::value;
  // Rows of many parts, or any image.
  const bool  isLong = random() % 2;
  Coordinates extent = RandomExtent(random, isLong ? 9 : 20);
  extent[0] += isLong ? 24 + static_cast<std::int64_t>(random() % 100) : 0;
  DomainTrial<TIn, TOut, std::uint8_t> t(extent);
  Case                                 c = RandomCase(random, filter, mode);
  const std::int64_t                   most = random() % 3 == 0 ? 7 : 3;
  const bool                           isMean = filter == "mean";
  const bool                           isGaussian = filter == "gaussian";
  const bool                           isVariance = filter == "variance" || filter == "std";
  if (isGaussian)
  {
    c.parameters.Set("Transforms", false);
  }
  else
  {
    c.parameters.Set("Radius",
                     std::vector<std::int64_t>{ static_cast<std::int64_t>(random() % (most + 1)),
                                                static_cast<std::int64_t>(random() % 4),
                                                static_cast<std::int64_t>(random() % 4) });
  }
  if (isMean)
  {
    c.parameters.Set("Rounding", random() % 2 ? "nearest" : "toward-zero");
  }
  const bool ignoresNan = isReal && (isMean || isGaussian || isVariance) && random() % 2;
  if (isMean || isGaussian || isVariance)
  {
    c.parameters.Set("IgnoreNaN", ignoresNan);
  }
  const unsigned int nanEvery = isLong ? 5000 : random() % 2 ? 50 : 2;
  if (random() % 2)
  {
    c.parameters.Set("EmptyValue", PixelValue(std::int64_t{ 42 }));
  }
  FillMask(random, isLong, t);
  const bool isExtreme = random() % 2;
  for (std::size_t i = 0; i < t.voxels.size(); ++i)
  {
    t.voxels[i] = !isExtreme      ? RandomPixel<TIn>(random)
                  : random() % 20 ? std::numeric_limits<TIn>::max()
                                  : std::numeric_limits<TIn>::lowest();
    if constexpr (isReal)
    {
      t.voxels[i] = random() % nanEvery == 0 ? std::numeric_limits<TIn>::quiet_NaN() : t.voxels[i];
    }
  }
  t.Make(filter, c.parameters, ignoresNan && random() % 2 ? "" : "MaskImage");
  const Box         region = RandomRegion(random, t.image.extent);
  std::vector<TOut> own;
  std::vector<TOut> staged;
  RunOnHost(GetHostKernels().Get("domain", "a test"), executor, t, region, own);
  RunOnHost(MakeCompositeKernel(), executor, t, region, staged);
  for (std::size_t i = 0; i < own.size(); ++i)
  {
    const bool isSame = IsSame(own[i], staged[i]);
    ASSERT_TRUE(isSame || MayOverflow<TIn>(filter, staged[i]))
      << GetCpuLevel().name << " " << t.request.operation->GetKey() << " " << ToString(t.box) << " region "
      << ToString(region) << " number " << i;
  }
}

TEST(Domain, WindowsInMasksHaveTheBitsOfTheirStagesAtEveryLevel)
{
  const std::string before = GetCpuLevel().name;
  std::mt19937      random(88);
  const auto        executor = MakeThreadExecutor(2);
  for (const char * const level : { "baseline", "avx2", "avx512" })
  {
    if (!SetCpuLevel(level))
    {
      continue;
    }
    for (const char * const filter :
         { "mean", "gaussian", "variance", "std", "median", "maximum", "minimum", "opening", "closing" })
    {
      for (int mode = 0; mode < 5; ++mode)
      {
        for (int trial = 0; trial < 3; ++trial)
        {
          ForEachPairOfKinds([&](auto in, auto out) {
            using In = decltype(in);
            // For other kinds the stages are the kernel.
            if constexpr (sizeof(In) <= 2 || std::is_floating_point<In>::value)
            {
              CompareWithStages<In, decltype(out)>(random, *executor, filter, mode);
            }
          });
          if (testing::Test::HasFatalFailure())
          {
            return;
          }
        }
      }
    }
  }
  ASSERT_TRUE(SetCpuLevel(before.c_str()));
}

/** A cube in a mask, which devices march along, in any chunks and by the stages of the operation on the host. */
template <typename TIn, typename TOut, typename TMask>
void
CompareCubes(std::mt19937 & random, Executor & executor, Manager & manager, BackendChoice backend,
             const std::string & filter, int mode)
{
  constexpr bool isReal = std::is_floating_point<TIn>::value;
  const auto     upTo = [&](unsigned int most) { return static_cast<std::int64_t>(1 + random() % most); };
  // More than a tile along x and y, of several volumes, or any image.
  const bool                      isLarge = random() % 2;
  DomainTrial<TIn, TOut, TMask>   t(isLarge ? Coordinates{ { 30 + upTo(60), 10 + upTo(40), upTo(12), 1, 1 } }
                                          : Coordinates{ { upTo(20), upTo(20), upTo(9), upTo(3), upTo(2) } });
  Case                            c = RandomCase(random, filter, mode);
  const std::int64_t              radius = upTo(3);
  const std::vector<std::int64_t> radii{ radius, radius, radius };
  const bool                      seesNan = filter != "mean" && filter != "gaussian" && filter != "median";
  const bool                      ignoresNan = isReal && !seesNan && random() % 2;
  if (filter == "gaussian")
  {
    c.parameters.Set("Sigma", std::vector<double>(3, static_cast<double>(1 + upTo(9)) / 4));
    c.parameters.Set("Transforms", false);
  }
  else
  {
    c.parameters.Set("Radius", radii);
  }
  if (filter == "mean")
  {
    c.parameters.Set("Rounding", random() % 2 ? "nearest" : "toward-zero");
  }
  if (ignoresNan)
  {
    c.parameters.Set("IgnoreNaN", true);
  }
  if (random() % 2)
  {
    c.parameters.Set("EmptyValue", PixelValue(std::int64_t{ 42 }));
  }
  FillMask(random, isLarge, t);
  const unsigned int extremes = random() % 3;
  for (TIn & voxel : t.voxels)
  {
    voxel = random() % 3 >= extremes ? RandomPixel<TIn>(random)
            : random() % 20          ? std::numeric_limits<TIn>::max()
                                     : std::numeric_limits<TIn>::lowest();
    if constexpr (isReal)
    {
      const TIn values[] = { std::numeric_limits<TIn>::quiet_NaN(), -std::numeric_limits<TIn>::infinity(), TIn(-0.0) };
      voxel = random() % 8 == 0 ? values[random() % (filter == "mean" || filter == "gaussian" ? 1 : 3)] : voxel;
    }
  }
  t.Make(filter, c.parameters, ignoresNan && random() % 2 ? "" : "MaskImage");
  std::vector<TOut> staged;
  RunOnHost(MakeCompositeKernel(), executor, t, t.box, staged);
  const BufferView whole = DenseView(staged.data(), PixelTypeOf<TOut>(), t.box);
  t.request.backend = backend;
  for (int part = 0; part < 3; ++part)
  {
    const Box region = part == 0 ? t.box : RandomRegion(random, t.image.extent);
    t.request.budgets.device = part == 0 ? 1 << 28 : 60000 + random() % 300000;
    try
    {
      t.Run(manager, region);
    }
    catch (const BudgetError &)
    {
      continue;
    }
    const BufferView result = DenseView(t.output.data(), PixelTypeOf<TOut>(), region);
    ForEachIndex(region, [&](const Coordinates & index) {
      const TOut expected = At<TOut>(whole, index);
      ASSERT_TRUE(IsSame(At<TOut>(result, index), expected) || MayOverflow<TIn>(filter, expected))
        << t.request.operation->GetKey() << " " << ToString(t.box) << " region " << ToString(region) << " at "
        << ToString(index) << ": " << +At<TOut>(result, index) << " and " << +At<TOut>(whole, index);
    });
  }
}

TEST_P(DomainDefinition, CubesInMasksHaveTheBitsOfTheirStages)
{
  std::mt19937 random(89);
  const auto   executor = MakeThreadExecutor(2);
  for (const char * const filter :
       { "mean", "variance", "std", "gaussian", "maximum", "minimum", "opening", "closing", "median" })
  {
    for (int mode = 0; mode < 5; ++mode)
    {
      for (int trial = 0; trial < (this->GetParam() == Place::Cuda ? 6 : 1); ++trial)
      {
        ForEachPairOfKinds([&](auto in, auto out) {
          using In = decltype(in);
          using Out = decltype(out);
          // For other kinds the stages are the kernel, but for medians.
          if (sizeof(In) <= 2 || std::is_same<In, float>::value || std::string(filter) == "median")
          {
            trial == 0 ? CompareCubes<In, Out, std::int16_t>(
                           random, *executor, this->GetManager(), this->GetBackend(), filter, mode)
                       : CompareCubes<In, Out, std::uint8_t>(
                           random, *executor, this->GetManager(), this->GetBackend(), filter, mode);
          }
        });
        if (this->HasFatalFailure())
        {
          return;
        }
      }
    }
  }
}

/** Non-local means in a mask, and with weights of which one is neither 0 nor 1: where that one is far away, both have
 * the same bits. */
template <typename T>
void
CompareMaskWithWeights(std::mt19937 & random, Manager & manager, int mode)
{
  const Coordinates extent{
    { 40, static_cast<std::int64_t>(1 + random() % 6), static_cast<std::int64_t>(1 + random() % 6), 1, 1 }
  };
  DomainTrial<T, float, std::uint8_t> mask(extent);
  DomainTrial<T, float, float>        weights(extent);
  const Case                          c = RandomCase(random, "nlm", mode);
  const unsigned int                  share = random() % 6;
  for (std::size_t i = 0; i < mask.voxels.size(); ++i)
  {
    mask.voxels[i] = RandomPixel<T>(random);
    mask.weights[i] = random() % 5 < share ? 1 : 0;
    if constexpr (std::is_floating_point<T>::value)
    {
      mask.voxels[i] = mask.weights[i] == 0 && random() % 2 ? std::numeric_limits<T>::infinity() : mask.voxels[i];
    }
  }
  weights.voxels = mask.voxels;
  weights.weights.assign(mask.weights.begin(), mask.weights.end());
  weights.weights[0] = 0.5F;
  for (const bool hasMask : { true, false })
  {
    const auto run = [&](auto & t, const char * further) {
      t.request.backend = BackendChoice::CPU;
      t.Make("nlm", c.parameters, further);
      t.Run(manager, t.box);
    };
    hasMask ? run(mask, "MaskImage") : run(weights, "WeightImage");
  }
  const std::int64_t reach = c.radius[0] + c.patch[0];
  for (std::size_t i = 0; i < mask.output.size(); ++i)
  {
    const auto x = static_cast<std::int64_t>(i) % extent[0];
    ASSERT_TRUE(x <= reach || x >= extent[0] - reach || IsSame(mask.output[i], weights.output[i]))
      << GetCpuLevel().name << " " << mask.request.operation->GetKey() << " " << ToString(mask.box) << " number " << i;
  }
}

TEST(Domain, NonLocalMeansInMasksHaveTheBitsOfWeightsAtEveryLevel)
{
  const std::string before = GetCpuLevel().name;
  std::mt19937      random(89);
  Manager           host({});
  for (const char * const level : { "baseline", "avx2", "avx512" })
  {
    for (int trial = 0; SetCpuLevel(level) && trial < 40; ++trial)
    {
      CompareMaskWithWeights<std::uint8_t>(random, host, trial % 5);
      CompareMaskWithWeights<float>(random, host, trial % 5);
      CompareMaskWithWeights<double>(random, host, trial % 5);
      if (testing::Test::HasFatalFailure())
      {
        return;
      }
    }
  }
  ASSERT_TRUE(SetCpuLevel(before.c_str()));
}

TEST(Domain, WhatCannotBeServedIsNamed)
{
  FilterParameters box;
  box.SetInteger("Radius", 1);
  const auto bytes = PixelType::UInt8;
  const auto real = PixelType::Float32;
  const auto begins = [](const std::string & message, const std::string & text) {
    EXPECT_EQ(message.compare(0, text.size(), text), 0) << message;
  };
  begins(MessageOf("mean", box, { "MaskImage", "WeightImage" }, bytes, bytes, bytes),
         "WeightImage: it is given beside");
  begins(MessageOf("mean", box, { "MaskImage" }, bytes, real, bytes), "MaskImage: its voxels are float32");
  begins(MessageOf("mean", box, { "WeightImage" }, bytes, bytes, bytes), "WeightImage: its voxels are uint8");
  begins(MessageOf("sum", box, { "WeightImage" }, bytes, real, bytes), "WeightImage: weighted sums are real");
  begins(MessageOf("mean", box, { "MaskImage" }, PixelType::Int64, bytes, PixelType::Int64), "MaskImage: sums of 27");
  EXPECT_EQ(MessageOf("mean", box, { "MaskImage" }, PixelType::Int64, bytes, PixelType::Float64), "no error");
  FilterParameters nan = box;
  nan.Set("IgnoreNaN", true);
  begins(MessageOf("mean", nan, {}, bytes, bytes, bytes), "IgnoreNaN: the image's voxels are uint8");
  FilterParameters mask = box;
  mask.Set("OutputMask", true);
  begins(MessageOf("mean", mask, {}, bytes, bytes, bytes), "OutputMask: without what says");
  mask.SetInteger("EmptyValue", 3);
  begins(MessageOf("mean", mask, { "MaskImage" }, bytes, bytes, bytes), "EmptyValue: 3 has no effect on");
  FilterParameters empty = box;
  empty.SetInteger("EmptyValue", 300);
  begins(MessageOf("mean", empty, { "MaskImage" }, bytes, bytes, bytes), "EmptyValue: 300 is not a value");
  begins(MessageOf("mean", empty, {}, real, bytes, real), "EmptyValue: 300 has no effect without");
  FilterParameters edge;
  edge.Set("Radius", std::vector<std::int64_t>{ 1, 0, 0 });
  edge.Set("Weights", std::vector<double>{ -1, 3, 1 });
  begins(MessageOf("convolve", edge, { "MaskImage" }, real, bytes, real), "Weights: -1 is negative");
  const auto derivative = std::make_shared<KernelStack>();
  derivative->extent = { { 2, 1, 1, 1, 1 } };
  derivative->kernels = { { 1, -0.5 } };
  FilterParameters image;
  image.Set("KernelImage", std::shared_ptr<const KernelStack>(derivative));
  begins(MessageOf("convolve-image", image, { "MaskImage" }, real, bytes, real), "KernelImage: -0.5 is negative");
  FilterParameters varying;
  varying.Set("KernelImages", std::shared_ptr<const KernelStack>(derivative));
  varying.SetInteger("GridSize", 1);
  begins(MessageOf("convolve-varying", varying, { "MaskImage" }, real, bytes, real), "KernelImages: -0.5 is negative");
  const auto spread = std::make_shared<KernelStack>(*derivative);
  spread->kernels = { { 1, 0.5 } };
  varying.Set("KernelImages", std::shared_ptr<const KernelStack>(spread));
  EXPECT_EQ(MessageOf("convolve-varying", varying, { "MaskImage" }, real, bytes, real), "no error");
  varying.Set("WeightThenConvolve", true);
  begins(MessageOf("convolve-varying", varying, { "MaskImage" }, real, bytes, real), "WeightThenConvolve: its results");
  FilterParameters sum = empty;
  sum.Set("Statistic", "sum");
  begins(MessageOf("box", sum, { "MaskImage" }, real, bytes, real), "EmptyValue: 300 has no effect on a sum");
  begins(MessageOf("box", box, { "MaskImage" }, PixelType::Int64, bytes, PixelType::Int64), "MaskImage: sums of 27");
}

} // namespace
