/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDefinitionTrial.h"
#include "chunkwiseLaplacianOperation.h"

using namespace chunkwise;

namespace
{

class Laplacians : public KernelTest
{};

std::vector<double>
GaussianWeights(double sigma, int radius)
{
  std::vector<double> weights;
  for (int x = -radius; x <= radius; ++x)
  {
    weights.push_back(std::exp(-0.5 * x * x / (sigma * sigma)));
  }
  return weights;
}

std::shared_ptr<LaplacianOperation>
RandomLaplacian(std::mt19937 & random, int largestRadius)
{
  const auto operation = std::make_shared<LaplacianOperation>();
  for (const int a : RandomAxes(random))
  {
    const int radius = 2 + static_cast<int>(random() % static_cast<std::uint32_t>(largestRadius - 1));
    operation->weights[a] = GaussianWeights(radius / 2.5, radius);
    operation->scale[a] = 0.5 + static_cast<double>(random() % 4);
  }
  operation->boundary.mode = AllModes[random() % 6];
  operation->boundary.constant = static_cast<double>(random() % 100);
  return operation;
}

/** The second-derivative weights of the taps first to last, from the three moment equations by elimination. */
std::vector<long double>
OracleDerivative(const std::vector<double> & g, std::int64_t radius, std::int64_t first, std::int64_t last)
{
  std::vector<long double> h(g.size(), 0);
  if (last - first < 2)
  {
    return h;
  }
  long double m[3][4] = {};
  for (int row = 0; row < 3; ++row)
  {
    for (std::int64_t t = first; t <= last; ++t)
    {
      const auto x = static_cast<long double>(t - radius);
      for (int column = 0; column < 3; ++column)
      {
        m[row][column] += static_cast<long double>(g[static_cast<std::size_t>(t)]) * std::pow(x, row + column);
      }
    }
    m[row][3] = row == 2 ? 2 : 0;
  }
  for (int pivot = 0; pivot < 3; ++pivot)
  {
    for (int row = 0; row < 3; ++row)
    {
      const long double factor = m[row][pivot] / m[pivot][pivot];
      for (int column = 0; row != pivot && column < 4; ++column)
      {
        m[row][column] -= factor * m[pivot][column];
      }
    }
  }
  for (std::int64_t t = first; t <= last; ++t)
  {
    const auto x = static_cast<long double>(t - radius);
    h[static_cast<std::size_t>(t)] = static_cast<long double>(g[static_cast<std::size_t>(t)]) *
                                     (m[0][3] / m[0][0] + m[1][3] / m[1][1] * x + m[2][3] / m[2][2] * x * x);
  }
  return h;
}

/** The result at `index` and the sum of the absolute terms. */
template <typename T>
std::pair<long double, long double>
OracleLaplacian(const BufferView & image, const Coordinates & index, const LaplacianOperation & operation)
{
  const Coordinates        radius = operation.GetRadius();
  std::vector<long double> smooth[MaxDimension];
  std::vector<long double> derivative[MaxDimension];
  Box                      window{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] = index[a] - radius[a];
    window.upper[a] = index[a] + radius[a] + 1;
    const auto & g = operation.weights[a];
    if (g.empty())
    {
      smooth[a] = { 1 };
      derivative[a] = { 0 };
      continue;
    }
    const bool         clips = operation.boundary.mode == BoundaryMode::Renormalized;
    const std::int64_t n = image.box.upper[a];
    const std::int64_t first = clips ? std::max<std::int64_t>(0, radius[a] - index[a]) : 0;
    const std::int64_t last = clips ? std::min(2 * radius[a], n - 1 - index[a] + radius[a]) : 2 * radius[a];
    long double        sum = 0;
    for (std::int64_t t = first; t <= last; ++t)
    {
      sum += static_cast<long double>(g[static_cast<std::size_t>(t)]);
    }
    derivative[a] = OracleDerivative(g, radius[a], first, last);
    smooth[a].assign(g.size(), 0);
    for (std::int64_t t = first; t <= last; ++t)
    {
      smooth[a][static_cast<std::size_t>(t)] = static_cast<long double>(g[static_cast<std::size_t>(t)]) / sum;
    }
  }
  long double result = 0;
  long double magnitude = 0;
  ForEachIndex(window, [&](const Coordinates & at) {
    long double weight = 0;
    long double absolute = 0;
    for (int d = 0; d < MaxDimension; ++d)
    {
      long double term = operation.scale[d];
      for (int a = 0; a < MaxDimension; ++a)
      {
        const auto t = static_cast<std::size_t>(at[a] - window.lower[a]);
        term *= a == d ? derivative[a][t] : smooth[a][t];
      }
      weight += term;
      absolute += std::fabs(term);
    }
    Coordinates tap = at;
    bool        there = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      there = oracle::Look(tap[a], image.box.upper[a], operation.boundary.mode) && there;
    }
    if (there || operation.boundary.mode == BoundaryMode::Constant)
    {
      const long double value =
        there ? static_cast<long double>(At<T>(image, tap)) : static_cast<long double>(operation.boundary.constant);
      result += weight * value;
      magnitude += absolute * std::fabs(value);
    }
  });
  return { result, magnitude };
}

TEST_P(Laplacians, AreWhatTheirDefinitionSays)
{
  std::mt19937 random(81);
  CompareSumsWithDefinition(
    random,
    GetManager(),
    GetBackend(),
    100,
    [&](int trial) { return RandomLaplacian(random, trial % 4 == 0 ? 7 : 3); },
    [](auto pixel, const BufferView & image, const Coordinates & index, const auto & operation) {
      return OracleLaplacian<decltype(pixel)>(image, index, operation);
    });
}

TEST_P(Laplacians, OfChunksHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(82);
  const auto   compare = [&](auto in, auto out, int trials) {
    CompareBits<decltype(in), decltype(out)>(random, GetManager(), GetBackend(), trials, [&](int trial) {
      return RandomLaplacian(random, trial % 3 == 0 ? 15 : 5);
    });
  };
  compare(float{}, float{}, 100);
  compare(double{}, double{}, 30);
  compare(std::uint8_t{}, std::uint8_t{}, 30);
  compare(std::int16_t{}, float{}, 30);
  compare(std::uint32_t{}, std::uint32_t{}, 30);
}

/** Windows of one radius along x, y and z, which a device may pass along all axes at once. */
TEST_P(Laplacians, OfCubesHaveTheBitsOfTheCpuInAndBetweenTiles)
{
  std::mt19937 random(84);
  for (int trial = 0; trial < 24 && !HasFatalFailure(); ++trial)
  {
    const auto operation = std::make_shared<LaplacianOperation>();
    const int  radius = trial % 3 == 0 ? 4 : trial % 3 == 1 ? 8 : 2 + static_cast<int>(random() % 7);
    for (int a = 0; a < 3; ++a)
    {
      operation->weights[a] = GaussianWeights((radius + a) / 4.0, radius);
      operation->scale[a] = 1 + a;
    }
    operation->boundary.mode = trial < 12 ? BoundaryMode::Renormalized : AllModes[random() % 6];
    operation->boundary.constant = 17;
    CompareTilesWithCpu<float, float>(random, GetManager(), GetBackend(), operation, trial, [&](auto & pixels) {
      for (float & pixel : pixels)
      {
        pixel = trial % 4 == 3 ? 1e-42F * (pixel - 40) : random() % 40 ? pixel : -0.0F;
      }
      if (trial % 5 == 4)
      {
        pixels[random() % pixels.size()] = std::numeric_limits<float>::infinity();
        pixels[random() % pixels.size()] = std::numeric_limits<float>::quiet_NaN();
      }
    });
  }
}

TEST_P(Laplacians, ConstantsAndRampsGiveZeroAndParabolasTheirCurvatureUpToTheEdge)
{
  std::mt19937 random(83);
  const auto   operation = std::make_shared<LaplacianOperation>();
  for (int a = 0; a < 3; ++a)
  {
    operation->weights[a] = GaussianWeights(1.5, 6);
  }
  for (const Coordinates & extent : { Coordinates{ { 20, 17, 15, 1, 1 } }, Coordinates{ { 5, 3, 9, 1, 1 } } })
  {
    Trial<double, double> t(random, operation, extent);
    t.request.backend = GetBackend();
    const auto expect = [&](const char * what, auto && f, double expected, double tolerance) {
      ForEachIndex(t.request.image, [&](const Coordinates & i) {
        At<double>(t.image, i) = f(static_cast<double>(i[0]), static_cast<double>(i[1]), static_cast<double>(i[2]));
      });
      t.Prepare(t.request.image);
      GetManager().Execute(t.request);
      ForEachIndex(t.request.image, [&](const Coordinates & i) {
        ASSERT_NEAR(t.Result(i), expected, tolerance) << what << " at " << ToString(i);
      });
    };
    expect("constant", [](double, double, double) { return 1e6 + 0.1; }, 0, 0);
    expect("ramp", [](double x, double y, double z) { return 3 * x - 2 * y + z + 7; }, 0, 1e-12);
    expect("product", [](double x, double y, double z) { return x * y - 4 * y * z + z * x; }, 0, 1e-10);
    expect("parabola", [](double x, double y, double z) { return x * x - 0.5 * y * y + 2 * z * z; }, 5, 1e-9);
  }
}

TEST(LaplacianOperation, BadParametersAreNamed)
{
  LaplacianOperation operation;
  const auto         message = [&] { return ValidationMessage(operation, { { 9, 9, 9, 1, 1 } }); };
  EXPECT_NE(message().find("no axis"), std::string::npos);
  operation.weights[1] = { 1, 2, 1 };
  EXPECT_NE(message().find("3 weights along axis 1"), std::string::npos);
  operation.weights[1] = { 1, 2, 3, 0, 1 };
  EXPECT_NE(message().find("0.0"), std::string::npos);
  operation.weights[1] = { 1, 2, 3, 2, 1 };
  EXPECT_EQ(message(), "");
  const std::string key = operation.GetKey();
  operation.scale[0] = 2;
  EXPECT_NE(operation.GetKey(), key);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Laplacians, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Laplacians, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Laplacians, testing::Values(Place::Cuda));

} // namespace
