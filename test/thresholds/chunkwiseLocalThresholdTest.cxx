/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseLocalThresholdOperation.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace chunkwise;

namespace
{

using Real = long double;

const LocalThresholdMethod EveryMethod[] = { LocalThresholdMethod::Mean,     LocalThresholdMethod::Median,
                                             LocalThresholdMethod::Gaussian, LocalThresholdMethod::Niblack,
                                             LocalThresholdMethod::Sauvola,  LocalThresholdMethod::Phansalkar,
                                             LocalThresholdMethod::Bernsen };
const char * const MethodNames[] = { "mean", "median", "gaussian", "niblack", "sauvola", "phansalkar", "bernsen" };

/** The voxels of a window inside image and mask with the Gaussian's weights; beyond the edge as the boundary says. */
template <typename T>
std::vector<std::pair<Real, Real>>
Seen(const LocalThresholdOperation & operation, const BufferView & image, const std::uint8_t * mask,
     const Coordinates & index)
{
  std::vector<std::pair<Real, Real>> seen;
  const bool                         isGaussian = operation.method == LocalThresholdMethod::Gaussian;
  Box                                window{};
  Coordinates                        reach{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    reach[a] = isGaussian ? static_cast<std::int64_t>(operation.weights[a].size() / 2) : operation.radius[a];
    window.lower[a] = index[a] - reach[a];
    window.upper[a] = index[a] + reach[a] + 1;
  }
  ForEachIndex(window, [&](const Coordinates & at) {
    Coordinates tap = at;
    bool        isThere = true;
    Real        weight = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (isGaussian && !operation.weights[a].empty())
      {
        weight *= operation.weights[a][static_cast<std::size_t>(at[a] - window.lower[a])];
      }
      isThere = oracle::Look(tap[a], image.box.upper[a], operation.boundary.mode) && isThere;
    }
    if (isThere && mask && mask[image.Offset(tap)] == 0)
    {
      return;
    }
    if (isThere)
    {
      seen.emplace_back(static_cast<Real>(At<T>(image, tap)), weight);
    }
    else if (operation.boundary.mode == BoundaryMode::Constant)
    {
      seen.emplace_back(static_cast<Real>(operation.boundary.constant.ToDouble()), weight);
    }
  });
  return seen;
}

/** The threshold by its definition; NaN of an empty window. */
Real
ThresholdOf(const LocalThresholdOperation & o, std::vector<std::pair<Real, Real>> seen)
{
  if (seen.empty())
  {
    return std::numeric_limits<Real>::quiet_NaN();
  }
  Real sum = 0;
  Real weights = 0;
  for (const auto & voxel : seen)
  {
    sum += voxel.first * voxel.second;
    weights += voxel.second;
  }
  const Real mean = sum / weights;
  Real       squares = 0;
  for (const auto & voxel : seen)
  {
    squares += (voxel.first - mean) * (voxel.first - mean);
  }
  const Real deviation = std::sqrt(squares / static_cast<Real>(seen.size()));
  std::sort(seen.begin(), seen.end());
  const Real least = seen.front().first;
  const Real largest = seen.back().first;
  switch (o.method)
  {
    case LocalThresholdMethod::Median:
      return seen[(seen.size() - 1) / 2].first - o.offset;
    case LocalThresholdMethod::Niblack:
      return mean - o.k * deviation;
    case LocalThresholdMethod::Sauvola:
      return mean * (1 + o.k * (deviation / o.r - 1));
    case LocalThresholdMethod::Phansalkar:
      return mean * (1 + o.p * std::exp(-o.q * mean / (2 * o.r)) + o.k * (deviation / o.r - 1));
    case LocalThresholdMethod::Bernsen:
    {
      const Real infinity = std::numeric_limits<Real>::infinity();
      const Real middle = (least + largest) / 2;
      return largest - least >= o.contrast ? middle : middle >= o.level ? -infinity : infinity;
    }
    default:
      return mean - o.offset;
  }
}

/** An image of small numbers, a mask, and a filter over it. */
template <typename T>
struct LocalTrial
{
  Coordinates               extent;
  Box                       box = Box::FromExtent(extent);
  std::vector<T>            voxels;
  std::vector<std::uint8_t> mask;
  FilterParameters          parameters;
  bool                      masked;

  LocalTrial(std::mt19937 & random, LocalThresholdMethod method, BoundaryMode mode, bool isMasked,
             const Coordinates & ofImage = { { 17, 11, 9, 1, 1 } })
    : extent(ofImage)
    , voxels(static_cast<std::size_t>(box.NumberOfVoxels()))
    , mask(voxels.size())
    , masked(isMasked)
  {
    const char * const boundaries[] = {
      "renormalized", "zero-flux", "constant", "mirror", "periodic", "mirror-center"
    };
    for (std::size_t i = 0; i < voxels.size(); ++i)
    {
      voxels[i] = static_cast<T>((random() % 10000) / 100.0 * (i % 17 < 8 ? 1.0 : 0.4));
      mask[i] = random() % 3 == 0 ? 0 : static_cast<std::uint8_t>(1 + random() % 3);
    }
    parameters.Set("Method", std::string(MethodNames[static_cast<int>(method)]));
    parameters.Set("Radius", std::vector<std::int64_t>{ 2, 1, static_cast<std::int64_t>(random() % 3) });
    parameters.Set("BoundaryCondition", std::string(boundaries[static_cast<int>(mode)]));
    if (mode == BoundaryMode::Constant)
    {
      parameters.Set("Constant", PixelValue(30));
    }
    if (method <= LocalThresholdMethod::Gaussian)
    {
      parameters.SetReal("Offset", 3.3);
    }
    else if (method == LocalThresholdMethod::Bernsen)
    {
      parameters.SetReal("Contrast", 78.5);
      parameters.SetReal("Level", 45.2);
    }
    else
    {
      parameters.SetReal("K", 0.31);
      if (method != LocalThresholdMethod::Niblack)
      {
        parameters.SetReal("R", 40);
      }
    }
  }

  std::shared_ptr<const Operation>
  Make() const
  {
    FilterImage about;
    about.extent = extent;
    about.inputKind = PixelTypeOf<T>();
    if (masked)
    {
      about.additionalInputs = { "MaskImage" };
    }
    return MakeFilterOperation("local-threshold", parameters, about);
  }

  template <typename TOut>
  ExecutionRequest
  Request(std::vector<TOut> & result) const
  {
    ExecutionRequest request;
    request.operation = Make();
    request.image = request.region = box;
    request.inputs = { DenseView(const_cast<T *>(voxels.data()), PixelTypeOf<T>(), box) };
    if (masked)
    {
      request.inputs.push_back(DenseView(const_cast<std::uint8_t *>(mask.data()), PixelType::UInt8, box));
    }
    result.assign(voxels.size(), static_cast<TOut>(77));
    request.output = DenseView(result.data(), PixelTypeOf<TOut>(), box);
    return request;
  }
};

class LocalThresholds : public KernelTest
{};

template <typename T>
void
ExpectDefinition(Manager & manager, BackendChoice backend, const LocalTrial<T> & trial)
{
  LocalTrial<T>             levels = trial;
  std::vector<std::uint8_t> classes;
  std::vector<double>       thresholds;
  ExecutionRequest          request = trial.Request(classes);
  request.backend = backend;
  (void)manager.Execute(request);
  levels.parameters.Set("Result", std::string("threshold"));
  ExecutionRequest ofLevels = levels.Request(thresholds);
  ofLevels.backend = backend;
  (void)manager.Execute(ofLevels);

  const auto & operation = dynamic_cast<const LocalThresholdOperation &>(*request.operation);
  const bool   isWide = std::is_same<T, double>::value || (std::is_integral<T>::value && sizeof(T) > 2);
  const Real   tolerance = isWide ? 1e-4L : 2e-3L;
  int          decided = 0;
  ForEachIndex(trial.box, [&](const Coordinates & index) {
    const auto & image = request.inputs[0];
    const auto   i = static_cast<std::size_t>(image.Offset(index));
    const Real   expected =
      ThresholdOf(operation, Seen<T>(operation, image, trial.masked ? trial.mask.data() : nullptr, index));
    const auto found = static_cast<Real>(thresholds[i]);
    if (std::isfinite(expected))
    {
      ASSERT_NEAR(static_cast<double>(found), static_cast<double>(expected), static_cast<double>(tolerance))
        << operation.GetKey() << " " << ToString(index);
    }
    else
    {
      ASSERT_TRUE(found == expected || (expected != expected && found != found)) << found << " " << expected;
    }
    const auto voxel = static_cast<Real>(trial.voxels[i]);
    const bool isOutside = trial.masked && trial.mask[i] == 0;
    const bool isExact =
      operation.method == LocalThresholdMethod::Bernsen && std::is_integral<T>::value; // middles have half voxels
    if (isOutside || isExact || !(std::fabs(voxel - expected) <= tolerance))
    {
      const bool isAbove = operation.method == LocalThresholdMethod::Bernsen ? voxel >= expected : voxel > expected;
      ASSERT_EQ(classes[i], !isOutside && isAbove ? 1 : 0) << operation.GetKey() << " " << ToString(index);
      ++decided;
    }
  });
  EXPECT_GT(decided, trial.box.NumberOfVoxels() * 95 / 100);
}

TEST_P(LocalThresholds, AreThoseOfTheDefinition)
{
  std::mt19937 random(31);
  int          kind = 0;
  for (const LocalThresholdMethod method : EveryMethod)
  {
    for (const BoundaryMode mode : AllModes)
    {
      for (const bool masked : { false, true })
      {
        DispatchPixelType(static_cast<PixelType>(kind++ % NumberOfPixelTypes), [&](auto pixel) {
          ExpectDefinition(GetManager(), GetBackend(), LocalTrial<decltype(pixel)>(random, method, mode, masked));
        });
      }
    }
  }
}

/** The windows that kernels have for themselves, beside one that they do not: cubes, and squares in planes. */
const std::vector<std::int64_t> LongWindows[] = { { 1, 1, 1 }, { 4, 4, 4 }, { 5, 5, 5 }, { 7, 7, 7 },
                                                  { 7, 7, 0 }, { 8, 8, 8 }, { 6, 9, 5 }, { 12, 12, 0 } };

TEST_P(LocalThresholds, OfLongWindowsAreThoseOfTheDefinition)
{
  std::mt19937    random(33);
  const PixelType kinds[] = { PixelType::UInt8, PixelType::Int16, PixelType::Float32, PixelType::Int8 };
  int             trials = 0;
  for (const auto & radius : LongWindows)
  {
    DispatchPixelType(kinds[trials % 4], [&](auto pixel) {
      const int                   niblack = static_cast<int>(LocalThresholdMethod::Niblack);
      const auto                  method = static_cast<LocalThresholdMethod>(niblack + trials % 3);
      const auto                  mode = AllModes[static_cast<std::size_t>(trials) % std::size(AllModes)];
      LocalTrial<decltype(pixel)> trial(random, method, mode, false, { { 14, 13, 9, 1, 1 } });
      trial.parameters.Set("Radius", radius);
      ExpectDefinition(GetManager(), GetBackend(), trial);
    });
    ++trials;
  }
}

/** A window of equal voxels has no deviation, whatever sums are rounded to, not even a millionth of the mean. */
TEST_P(LocalThresholds, OfEqualVoxelsAreTheirMean)
{
  std::mt19937      random(34);
  LocalTrial<float> trial(
    random, LocalThresholdMethod::Niblack, BoundaryMode::Renormalized, false, { { 40, 21, 18, 1, 1 } });
  trial.parameters.Set("Radius", std::vector<std::int64_t>{ 7, 7, 7 });
  trial.parameters.Set("Result", std::string("threshold"));
  trial.parameters.SetReal("K", 1e6);
  for (const float value : { 0.0F, 1000.3F, -3e-5F, 7.7e18F })
  {
    std::fill(trial.voxels.begin(), trial.voxels.end(), value);
    std::vector<float> thresholds;
    ExecutionRequest   request = trial.Request(thresholds);
    request.backend = GetBackend();
    (void)GetManager().Execute(request);
    EXPECT_EQ(std::count(thresholds.begin(), thresholds.end(), value), trial.box.NumberOfVoxels()) << value;
  }
}

/** A voxel that is no number affects only the windows that see it. */
TEST_P(LocalThresholds, SeeNaNAndInfinitiesInTheirWindowsAlone)
{
  std::mt19937      random(35);
  LocalTrial<float> trial(
    random, LocalThresholdMethod::Sauvola, BoundaryMode::Renormalized, false, { { 40, 21, 18, 1, 1 } });
  trial.parameters.Set("Radius", std::vector<std::int64_t>{ 5, 5, 5 });
  trial.parameters.Set("Result", std::string("threshold"));
  const Coordinates at{ { 17, 9, 4, 0, 0 } };
  for (const float value : { std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity() })
  {
    std::vector<float> thresholds;
    ExecutionRequest   request = trial.Request(thresholds);
    trial.voxels[static_cast<std::size_t>(request.inputs[0].Offset(at))] = value;
    request.backend = GetBackend();
    (void)GetManager().Execute(request);
    ForEachIndex(trial.box, [&](const Coordinates & index) {
      const bool sees =
        std::abs(index[0] - at[0]) <= 5 && std::abs(index[1] - at[1]) <= 5 && std::abs(index[2] - at[2]) <= 5;
      const float threshold = thresholds[static_cast<std::size_t>(request.inputs[0].Offset(index))];
      ASSERT_EQ(threshold != threshold, sees) << ToString(index);
    });
  }
}

TEST_P(LocalThresholds, HaveTheSameBitsHoweverTheImageIsCut)
{
  std::mt19937 random(32);
  Manager      host(std::vector<std::shared_ptr<Device>>{});
  int          kind = 3;
  for (const LocalThresholdMethod method : EveryMethod)
  {
    for (const BoundaryMode mode : AllModes)
    {
      for (const bool masked : { false, true })
      {
        DispatchPixelType(static_cast<PixelType>(kind++ % NumberOfPixelTypes), [&](auto pixel) {
          LocalTrial<decltype(pixel)> trial(random, method, mode, masked);
          if (!masked)
          {
            trial.parameters.Set("Radius", LongWindows[static_cast<std::size_t>(kind) % std::size(LongWindows)]);
          }
          if (random() % 2)
          {
            trial.parameters.Set("Result", std::string("threshold"));
          }
          std::vector<float> whole;
          std::vector<float> part;
          ExecutionRequest   request = trial.Request(whole);
          request.backend = BackendChoice::CPU;
          (void)host.Execute(request);
          int tried = 0;
          for (int cut = 0; cut < 4; ++cut)
          {
            ExecutionRequest piece = trial.Request(part);
            piece.backend = GetBackend();
            piece.region = cut == 0 ? trial.box : RandomRegion(random, trial.extent);
            piece.budgets.device = 60000 + random() % 100000;
            piece.budgets.host = cut % 2 ? 0 : 100000 + random() % 100000;
            try
            {
              (void)GetManager().Execute(piece);
            }
            catch (const BudgetError &)
            {
              continue; // the smallest chunk of this trial is larger
            }
            ++tried;
            ForEachIndex(trial.box, [&](const Coordinates & index) {
              const auto  i = static_cast<std::size_t>(piece.output.Offset(index));
              const Box   voxel{ index, { { index[0] + 1, index[1] + 1, index[2] + 1, index[3] + 1, index[4] + 1 } } };
              const float expected = piece.region.Contains(voxel) ? whole[i] : 77;
              ASSERT_TRUE(std::memcmp(&part[i], &expected, sizeof(float)) == 0 ||
                          (part[i] != part[i] && expected != expected))
                << piece.operation->GetKey() << " " << ToString(index) << ": " << part[i] << " and " << expected;
            });
          }
          EXPECT_GT(tried, 0);
        });
      }
    }
  }
}

TEST(LocalThresholdRow, HasDefaultsThatFollowFromThePixelType)
{
  const auto make = [](const char * method, PixelType kind) {
    FilterParameters parameters;
    parameters.Set("Method", std::string(method));
    parameters.SetInteger("Radius", 3);
    FilterImage about;
    about.extent = { { 50, 50, 50, 1, 1 } };
    about.inputKind = kind;
    const auto operation = MakeFilterOperation("local-threshold", parameters, about);
    return dynamic_cast<const LocalThresholdOperation &>(*operation);
  };
  EXPECT_EQ(make("sauvola", PixelType::UInt8).r, 127.5);
  EXPECT_EQ(make("sauvola", PixelType::Int16).r, 32767.5);
  EXPECT_EQ(make("sauvola", PixelType::Float32).r, 1);
  EXPECT_EQ(make("phansalkar", PixelType::Float32).r, 0.5);
  EXPECT_EQ(make("phansalkar", PixelType::UInt8).k, 0.25);
  EXPECT_EQ(make("niblack", PixelType::UInt8).k, 0.2);
  EXPECT_EQ(make("bernsen", PixelType::UInt8).level, 128);
  EXPECT_EQ(make("bernsen", PixelType::Int8).level, 0);
  EXPECT_EQ(make("bernsen", PixelType::Float64).level, 0.5);
  // The Gaussian has a sigma of a third of the radius, and ends at four sigmas.
  const auto gaussian = make("gaussian", PixelType::UInt8);
  ASSERT_EQ(gaussian.weights[0].size(), 9u);
  EXPECT_NEAR(gaussian.weights[0][5] / gaussian.weights[0][4], std::exp(-0.5), 1e-12);
}

TEST(LocalThresholdRow, SaysWhatIsWrong)
{
  const auto expectRefusal = [](const char * method, const char * name, const ParameterValue & value) {
    FilterParameters wrong;
    wrong.Set("Method", std::string(method));
    wrong.SetInteger("Radius", 1);
    wrong.Set(name, value);
    try
    {
      (void)MakeFilterOperation("local-threshold", wrong, {});
      ADD_FAILURE() << name;
    }
    catch (const ParameterError & error)
    {
      EXPECT_EQ(std::string(error.what()).rfind(name, 0), 0u) << error.what();
    }
  };
  const auto real = [](double number) { return ParameterValue(std::vector<double>{ number }); };
  expectRefusal("sauvola", "R", real(0));
  expectRefusal("sauvola", "R", real(-3));
  expectRefusal("sauvola", "K", real(std::nan("")));
  expectRefusal("bernsen", "Contrast", real(-1));
  expectRefusal("mean", "Method", std::string("otsu"));
  expectRefusal("mean", "Result", std::string("channel"));
  expectRefusal("gaussian", "Radius", ParameterValue(std::vector<std::int64_t>{ 200000 }));
}

INSTANTIATE_TEST_SUITE_P(Cpu, LocalThresholds, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, LocalThresholds, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, LocalThresholds, testing::Values(Place::Cuda));

} // namespace
