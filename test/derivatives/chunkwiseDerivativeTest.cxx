/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDefinitionTrial.h"
#include "chunkwiseDerivativeOperation.h"
#include "chunkwiseMeasureScaleOperation.h"
#include "chunkwiseFilters.h"

#include <set>

using namespace chunkwise;

namespace
{

class Derivatives : public KernelTest
{};

std::vector<double>
Window(double sigma, int radius)
{
  std::vector<double> weights;
  for (int x = -radius; x <= radius; ++x)
  {
    weights.push_back(std::exp(-0.5 * x * x / (sigma * sigma)));
  }
  return weights;
}

std::shared_ptr<DerivativeOperation>
RandomDerivative(std::mt19937 & random, int largestRadius)
{
  const auto operation = std::make_shared<DerivativeOperation>();
  operation->components.resize(1);
  operation->components.front().fill(0);
  for (const int a : RandomAxes(random))
  {
    const int radius = 1 + static_cast<int>(random() % static_cast<std::uint32_t>(largestRadius));
    const int order = static_cast<int>(random() % static_cast<std::uint32_t>(radius == 1 ? 3 : 4));
    operation->scales.front().weights[a] = Window(radius / 2.5, radius);
    operation->scales.front().factor[a] = 0.5 + static_cast<double>(random() % 4);
    operation->scales.front().sampled[a] = random() % 3 ? 0 : radius / 2.5;
    operation->components.front()[static_cast<std::size_t>(a)] = order;
  }
  operation->scales.front().smooths = random() % 5 > 0;
  operation->boundary.mode = AllModes[random() % 6];
  operation->boundary.constant = static_cast<double>(random() % 100);
  return operation;
}

/** Solves the equations of `n` unknowns. */
std::vector<long double>
SolveEquations(std::vector<std::vector<long double>> m)
{
  const std::size_t n = m.size();
  for (std::size_t pivot = 0; pivot < n; ++pivot)
  {
    for (std::size_t row = 0; row < n; ++row)
    {
      const long double factor = m[row][pivot] / m[pivot][pivot];
      for (std::size_t column = 0; row != pivot && column <= n; ++column)
      {
        m[row][column] -= factor * m[pivot][column];
      }
    }
  }
  std::vector<long double> solution;
  for (std::size_t row = 0; row < n; ++row)
  {
    solution.push_back(m[row][n] / m[row][row]);
  }
  return solution;
}

/** The weights of an axis at a position: g times the polynomial whose moments are 0, ..., 0 and order!, or the
 * derivative of the Gaussian at whole windows. */
std::vector<long double>
OracleWeights(const DerivativeScale & scale, int a, int order, std::int64_t position, std::int64_t n, bool clips)
{
  const auto &             window = scale.weights[a];
  const auto               radius = static_cast<std::int64_t>(window.size() / 2);
  const std::int64_t       first = clips ? std::max<std::int64_t>(0, radius - position) : 0;
  const std::int64_t       last = clips ? std::min(2 * radius, n - 1 - position + radius) : 2 * radius;
  std::vector<long double> weights(window.size(), 0);
  if (last - first < order)
  {
    return weights;
  }
  if (order == 0 && !scale.smooths)
  {
    weights[static_cast<std::size_t>(radius)] = 1;
    return weights;
  }
  long double all = 0;
  for (std::int64_t t = first; t <= last; ++t)
  {
    all += static_cast<long double>(window[static_cast<std::size_t>(t)]);
  }
  const auto                            size = static_cast<std::size_t>(order + 1);
  long double                           factorial = 1;
  std::vector<std::vector<long double>> equations(size, std::vector<long double>(size + 1, 0));
  for (std::size_t row = 0; row < size; ++row)
  {
    for (std::int64_t t = first; t <= last; ++t)
    {
      for (std::size_t column = 0; column < size; ++column)
      {
        equations[row][column] += static_cast<long double>(window[static_cast<std::size_t>(t)]) / all *
                                  std::pow(static_cast<long double>(t - radius), static_cast<int>(row + column));
      }
    }
    factorial *= std::max<long double>(1, static_cast<long double>(row));
  }
  equations[size - 1][size] = factorial;
  const std::vector<long double> polynomial = SolveEquations(equations);
  for (std::int64_t t = first; t <= last; ++t)
  {
    const auto  x = static_cast<long double>(t - radius);
    long double value = 0;
    if (order > 0 && scale.sampled[a] > 0 && last - first == 2 * radius)
    {
      const long double sigma = static_cast<long double>(scale.sampled[a]);
      value = order == 1   ? x / (sigma * sigma)
              : order == 2 ? (x * x / (sigma * sigma) - 1) / (sigma * sigma)
                           : x * (x * x / (sigma * sigma) - 3) / std::pow(sigma, 4);
    }
    else
    {
      for (std::size_t power = 0; power < size; ++power)
      {
        value += polynomial[power] * std::pow(x, static_cast<int>(power));
      }
    }
    weights[static_cast<std::size_t>(t)] = value * static_cast<long double>(window[static_cast<std::size_t>(t)]) / all *
                                           std::pow(static_cast<long double>(scale.factor[a]), order);
  }
  return weights;
}

/** The derivative at `index` and a bound of the sum of the absolute terms. */
template <typename T>
std::pair<long double, long double>
OracleDerivative(const BufferView & image, const Coordinates & index, const DerivativeOperation & operation,
                 const DerivativeOrders & orders)
{
  const Coordinates        radius = operation.GetRadius(0);
  const bool               clips = operation.boundary.mode == BoundaryMode::Renormalized;
  std::vector<long double> weights[MaxDimension];
  Box                      window{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] = index[a] - radius[a];
    window.upper[a] = index[a] + radius[a] + 1;
    weights[a] =
      operation.scales.front().weights[a].empty()
        ? std::vector<long double>{ 1 }
        : OracleWeights(
            operation.scales.front(), a, orders[static_cast<std::size_t>(a)], index[a], image.box.upper[a], clips);
  }
  long double result = 0;
  long double magnitude = 0;
  long double largest = 0;
  ForEachIndex(window, [&](const Coordinates & at) {
    long double weight = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      weight *= weights[a][static_cast<std::size_t>(at[a] - window.lower[a])];
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
      magnitude += std::fabs(weight);
      largest = std::max(largest, std::fabs(value));
    }
  });
  return { result, magnitude * largest };
}

TEST_P(Derivatives, AreWhatTheirDefinitionSays)
{
  std::mt19937 random(181);
  CompareSumsWithDefinition(
    random,
    GetManager(),
    GetBackend(),
    100,
    [&](int trial) { return RandomDerivative(random, trial % 4 == 0 ? 6 : 3); },
    [](auto pixel, const BufferView & image, const Coordinates & index, const auto & operation) {
      return OracleDerivative<decltype(pixel)>(image, index, operation, operation.components.front());
    });
}

TEST_P(Derivatives, OfChunksHaveTheBitsOfTheWhole)
{
  std::mt19937 random(182);
  const auto   compare = [&](auto in, auto out, int trials) {
    CompareBits<decltype(in), decltype(out)>(random, GetManager(), GetBackend(), trials, [&](int trial) {
      const auto operation = RandomDerivative(random, trial % 3 == 0 ? 12 : 4);
      if (trial % 2)
      {
        operation->components.push_back(operation->components.front());
        for (int & order : operation->components.back())
        {
          order = order > 0 ? order - 1 : 0;
        }
        operation->result = DerivativeResult::Magnitude;
      }
      return operation;
    });
  };
  compare(float{}, float{}, 60);
  compare(double{}, double{}, 20);
  compare(std::int16_t{}, float{}, 20);
  compare(std::uint32_t{}, std::uint32_t{}, 20);
}

/** All derivatives of orders up to 2 of an image that has an axis for them. */
std::shared_ptr<DerivativeOperation>
AllSecondDerivatives(int radius)
{
  const auto operation = std::make_shared<DerivativeOperation>();
  for (int a = 0; a < 3; ++a)
  {
    operation->scales.front().weights[a] = Window(0.4 * radius + 0.1 * a, radius);
  }
  for (int x = 0; x < 3; ++x)
  {
    for (int y = 0; x + y < 3; ++y)
    {
      for (int z = 0; x + y + z < 3; ++z)
      {
        operation->components.push_back({ { x, y, z, 0, 0 } });
      }
    }
  }
  operation->componentAxis = MaxDimension - 1;
  return operation;
}

TEST_P(Derivatives, MadeTogetherHaveTheBitsOfEachAlone)
{
  std::mt19937 random(183);
  for (const int radius : { 1, 3, 5 })
  {
    const auto          together = AllSecondDerivatives(radius);
    const auto          count = static_cast<std::int64_t>(together->components.size());
    const Coordinates   extent{ { 70, 21, 19, 1, count } };
    Trial<float, float> t(random, together, extent);
    t.request.backend = GetBackend();
    for (std::int64_t component = 1; component < count; ++component)
    {
      ForEachIndex(t.request.image, [&](const Coordinates & i) {
        Coordinates first = i;
        first[MaxDimension - 1] = 0;
        At<float>(t.image, i) = At<float>(t.image, first);
      });
    }
    const Box region = radius == 3 ? Box{ { { 3, 2, 1, 0, 1 } }, { { 69, 20, 17, 1, count } } } : t.request.image;
    t.Prepare(region);
    GetManager().Execute(t.request);
    const std::vector<float> result = t.output;
    const BufferView view = DenseView(const_cast<float *>(result.data()), PixelType::Float32, t.request.output.box);
    for (std::int64_t component = region.lower[MaxDimension - 1]; component < count; ++component)
    {
      const auto alone = std::make_shared<DerivativeOperation>(*together);
      alone->componentAxis = -1;
      alone->components = { together->components[static_cast<std::size_t>(component)] };
      t.request.operation = alone;
      Box one = region;
      one.lower[MaxDimension - 1] = component;
      one.upper[MaxDimension - 1] = component + 1;
      t.Prepare(one);
      GetManager().Execute(t.request);
      ForEachIndex(one, [&](const Coordinates & i) {
        ASSERT_TRUE(IsSame(t.Result(i), At<float>(view, i))) << ToString(i) << " radius " << radius;
      });
    }
  }
}

TEST_P(Derivatives, AreExactForPolynomialsOfTheirOrderUpToTheEdge)
{
  std::mt19937 random(184);
  for (const Coordinates & extent : { Coordinates{ { 20, 17, 15, 1, 1 } }, Coordinates{ { 5, 4, 9, 1, 1 } } })
  {
    for (int x = 0; x < 4; ++x)
    {
      for (int y = 0; x + y < 4; ++y)
      {
        const int  z = 3 - x - y;
        const auto operation = std::make_shared<DerivativeOperation>();
        for (int a = 0; a < 3; ++a)
        {
          operation->scales.front().weights[a] = Window(1.5, 6);
        }
        operation->components = { { { x, y, z, 0, 0 } } };
        Trial<double, double> t(random, operation, extent);
        t.request.backend = GetBackend();
        for (int i = 0; i < 4; ++i)
        {
          for (int j = 0; i + j < 4; ++j)
          {
            for (int k = 0; i + j + k < 4; ++k)
            {
              ForEachIndex(t.request.image, [&](const Coordinates & at) {
                At<double>(t.image, at) = std::pow(at[0], i) * std::pow(at[1], j) * std::pow(at[2], k) + 1e4;
              });
              t.Prepare(t.request.image);
              GetManager().Execute(t.request);
              double factorials = 1;
              for (const int order : { x, y, z })
              {
                factorials *= order == 3 ? 6 : order == 2 ? 2 : 1;
              }
              const double expected = i == x && j == y && k == z ? factorials : 0;
              ForEachIndex(t.request.image, [&](const Coordinates & at) {
                ASSERT_NEAR(t.Result(at), expected, 1e-8)
                  << x << y << z << " of " << i << j << k << " at " << ToString(at) << " of " << ToString(extent);
              });
            }
          }
        }
      }
    }
  }
}

TEST_P(Derivatives, OfConstantsAreZero)
{
  std::mt19937        random(185);
  const auto          operation = AllSecondDerivatives(4);
  Trial<float, float> t(random, operation, { { 40, 15, 12, 1, 10 } });
  t.request.backend = GetBackend();
  std::fill(t.pixels.begin(), t.pixels.end(), 1000.1F);
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  ForEachIndex(t.request.image, [&](const Coordinates & at) {
    if (at[MaxDimension - 1] > 0)
    {
      ASSERT_EQ(t.Result(at), 0.0F) << ToString(at);
    }
  });
}

TEST_P(Derivatives, MagnitudeIsTheLengthOfTheGradient)
{
  std::mt19937          random(186);
  const auto            operation = std::make_shared<DerivativeOperation>();
  Trial<double, double> t(random, operation, { { 18, 9, 7, 1, 1 } });
  for (int a = 0; a < 3; ++a)
  {
    operation->scales.front().weights[a] = Window(1, 3);
    operation->scales.front().factor[a] = a + 1;
    operation->components.emplace_back();
    operation->components.back().fill(0);
    operation->components.back()[static_cast<std::size_t>(a)] = 1;
  }
  operation->result = DerivativeResult::Magnitude;
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  ForEachIndex(t.request.image, [&](const Coordinates & at) {
    long double sum = 0;
    for (const DerivativeOrders & orders : operation->components)
    {
      const long double d = OracleDerivative<double>(t.image, at, *operation, orders).first;
      sum += d * d;
    }
    ASSERT_NEAR(t.Result(at), static_cast<double>(std::sqrt(sum)), 1e-11) << ToString(at);
  });
}

/** The eigenvalues of a symmetric matrix, ascending, by rotations (C. G. J. Jacobi, 1846). */
std::vector<long double>
OracleEigenvalues(const std::vector<long double> & triangle)
{
  const std::size_t n = triangle.size() == 6 ? 3 : triangle.size() == 3 ? 2 : 1;
  long double       m[3][3] = {};
  std::size_t       next = 0;
  for (std::size_t row = 0; row < n; ++row)
  {
    for (std::size_t column = row; column < n; ++column)
    {
      m[row][column] = m[column][row] = triangle[next++];
    }
  }
  for (int sweep = 0; sweep < 30; ++sweep)
  {
    for (std::size_t p = 0; p < n; ++p)
    {
      for (std::size_t q = p + 1; q < n; ++q)
      {
        if (m[p][q] == 0)
        {
          continue;
        }
        const long double theta = (m[q][q] - m[p][p]) / (2 * m[p][q]);
        const long double t = (theta < 0 ? -1 : 1) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
        const long double c = 1 / std::sqrt(t * t + 1);
        const long double s = t * c;
        for (std::size_t k = 0; k < n; ++k)
        {
          const long double a = m[k][p];
          const long double b = m[k][q];
          m[k][p] = c * a - s * b;
          m[k][q] = s * a + c * b;
        }
        for (std::size_t k = 0; k < n; ++k)
        {
          const long double a = m[p][k];
          const long double b = m[q][k];
          m[p][k] = c * a - s * b;
          m[q][k] = s * a + c * b;
        }
      }
    }
  }
  std::vector<long double> values;
  for (std::size_t i = 0; i < n; ++i)
  {
    values.push_back(m[i][i]);
  }
  std::sort(values.begin(), values.end());
  return values;
}

/** Matrices with eigenvalues that are equal, or nearly so, in random directions: errors stay below a float's rounding.
 */
TEST(HessianEigenvalues, AreThoseOfLapackNearMultipleOnesToo)
{
  std::mt19937 random(187);
  const auto   real = [&] { return static_cast<double>(random()) / 2147483648.0 - 1.0; };
  for (int trial = 0; trial < 20000; ++trial)
  {
    const double gap = std::pow(10.0, -static_cast<int>(random() % 17));
    const double first = random() % 10 ? real() : 0.0;
    const double wanted[3] = { first, first + gap * real(), random() % 3 ? real() : first + gap * real() };
    double       axes[3][3];
    for (auto & axis : axes)
    {
      for (double & each : axis)
      {
        each = real();
      }
    }
    for (int i = 0; i < 3; ++i)
    {
      for (int j = 0; j < i; ++j)
      {
        double dot = 0;
        for (int k = 0; k < 3; ++k)
        {
          dot += axes[i][k] * axes[j][k];
        }
        for (int k = 0; k < 3; ++k)
        {
          axes[i][k] -= dot * axes[j][k];
        }
      }
      const double length = std::sqrt(axes[i][0] * axes[i][0] + axes[i][1] * axes[i][1] + axes[i][2] * axes[i][2]);
      for (double & each : axes[i])
      {
        each /= length;
      }
    }
    std::vector<double>      triangle;
    std::vector<long double> exact;
    const double             scale = std::pow(10.0, static_cast<int>(random() % 60) - 30);
    for (int row = 0; row < 3; ++row)
    {
      for (int column = row; column < 3; ++column)
      {
        double element = 0;
        for (int i = 0; i < 3; ++i)
        {
          element += wanted[i] * axes[i][row] * axes[i][column];
        }
        triangle.push_back(static_cast<float>(scale * element));
        exact.push_back(static_cast<long double>(triangle.back()));
      }
    }
    double values[3];
    EigenvaluesOf(triangle.data(), 3, values, [](double square) { return std::sqrt(square); });
    const auto expected = OracleEigenvalues(exact);
    const auto largest = std::max(std::fabs(expected.front()), std::fabs(expected.back()));
    for (std::size_t i = 0; i < 3; ++i)
    {
      ASSERT_LE(std::fabs(static_cast<long double>(values[i]) - expected[i]), 3e-8L * largest)
        << trial << " gap " << gap << " number " << i << ": " << values[i];
    }
  }
}

std::shared_ptr<DerivativeOperation>
HessianOperation(int dimension, double sigma)
{
  const auto operation = std::make_shared<DerivativeOperation>();
  for (int a = 0; a < dimension; ++a)
  {
    operation->scales.front().weights[a] = Window(sigma, 3);
    operation->scales.front().factor[a] = sigma;
    for (int b = a; b < dimension; ++b)
    {
      DerivativeOrders orders{};
      ++orders[static_cast<std::size_t>(a)];
      ++orders[static_cast<std::size_t>(b)];
      operation->components.push_back(orders);
    }
  }
  return operation;
}

/** The measure as its comment defines it, of eigenvalues by magnitude that are negated where structures are dark. */
long double
OracleMeasure(std::vector<long double> values, const HessianMeasureParameters & p)
{
  const auto n = static_cast<int>(values.size());
  if (p.dark)
  {
    for (long double & value : values)
    {
      value = -value;
    }
    std::reverse(values.begin(), values.end());
  }
  const auto positive = [](long double x) { return std::max<long double>(x, 0); };
  if (p.measure == HessianMeasure::Sato)
  {
    return n < 3 ? positive(-values[0]) : std::sqrt(positive(-values[0]) * positive(-values[1]));
  }
  if (p.measure == HessianMeasure::Meijering)
  {
    long double all = 0;
    for (const long double value : values)
    {
      all += value;
    }
    long double largest = 0;
    for (const long double value : values)
    {
      const long double sum = -(value + (all - value) / (n + 1));
      largest = std::fabs(sum) > std::fabs(largest) ? sum : largest;
    }
    return positive(largest) / static_cast<long double>(p.contrast);
  }
  std::sort(values.begin(), values.end(), [](long double a, long double b) { return std::fabs(a) < std::fabs(b); });
  if (p.measure == HessianMeasure::Jerman)
  {
    const long double l3 = -values[static_cast<std::size_t>(n - 1)];
    const long double l2 = n == 3 ? -values[1] : l3;
    const long double l = std::max(l3, static_cast<long double>(p.tau * p.contrast));
    return l2 <= 0 || l3 <= 0 ? 0 : l2 >= l / 2 ? 1 : l2 * l2 * (l - l2) * 27 / std::pow(l + l2, 3);
  }
  const auto  magnitude = [&](int i) { return std::fabs(values[static_cast<std::size_t>(i)]); };
  const auto  squared = [](long double x) { return x * x; };
  long double result = 1;
  long double norm = 0;
  for (int i = 0; i < n; ++i)
  {
    norm += squared(magnitude(i));
    if (i >= p.objectDimension && values[static_cast<std::size_t>(i)] >= 0)
    {
      return 0;
    }
  }
  const auto mean = [&](int first) {
    long double product = 1;
    for (int i = first; i < n; ++i)
    {
      product *= magnitude(i);
    }
    return std::pow(product, 1.0L / (n - first));
  };
  if (p.objectDimension < n - 1)
  {
    result *= 1 - std::exp(-squared(magnitude(p.objectDimension) / mean(p.objectDimension + 1) / p.alpha) / 2);
  }
  if (p.objectDimension > 0)
  {
    result *= std::exp(-squared(magnitude(p.objectDimension - 1) / mean(p.objectDimension) / p.beta) / 2);
  }
  if (p.contrast > 0)
  {
    result *= 1 - std::exp(-norm / squared(p.contrast) / 2);
  }
  return p.scales ? result * magnitude(n - 1) : result;
}

TEST_P(Derivatives, MeasuresAreWhatTheirDefinitionSays)
{
  std::mt19937 random(188);
  for (int trial = 0; trial < 24; ++trial)
  {
    const int  dimension = trial % 6 == 5 ? 2 : 3;
    const auto operation = HessianOperation(dimension, 1.1);
    operation->result = DerivativeResult::Measure;
    operation->measure.measure = static_cast<HessianMeasure>(trial % 4);
    operation->measure.objectDimension =
      operation->measure.measure == HessianMeasure::Objectness ? trial / 4 % dimension : 0;
    operation->measure.alpha = 0.4;
    operation->measure.beta = 0.7;
    operation->measure.dark = trial % 3 == 0;
    operation->measure.scales = trial % 5 == 0;
    operation->scales.front().contrast =
      trial % 7 == 6 && operation->measure.measure == HessianMeasure::Objectness ? 0 : 30;
    Trial<double, double> t(random, operation, { { 10, 5, dimension == 3 ? 6 : 2, 1, 1 } });
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    HessianMeasureParameters parameters = operation->measure;
    parameters.contrast = operation->scales.front().contrast;
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      std::vector<long double> triangle;
      for (const DerivativeOrders & orders : operation->components)
      {
        triangle.push_back(OracleDerivative<double>(t.image, at, *operation, orders).first);
      }
      const long double expected = OracleMeasure(OracleEigenvalues(triangle), parameters);
      ASSERT_NEAR(t.Result(at), static_cast<double>(expected), 1e-6 * std::max(1.0, static_cast<double>(expected)))
        << trial << " at " << ToString(at);
    });
  }
}

TEST_P(Derivatives, EigenvaluesOfFloatsAreThoseInDoubleOfTheirElements)
{
  std::mt19937 random(189);
  const auto   elements = HessianOperation(3, 1.2);
  elements->componentAxis = MaxDimension - 1;
  const auto eigenvalues = std::make_shared<DerivativeOperation>(*elements);
  for (const bool byMagnitude : { false, true })
  {
    eigenvalues->result = byMagnitude ? DerivativeResult::ByMagnitude : DerivativeResult::Eigenvalues;
    Trial<float, float> t(random, elements, { { 35, 9, 8, 1, 6 } });
    for (std::int64_t i = 35 * 9 * 8; i < 6 * 35 * 9 * 8; ++i)
    {
      t.pixels[static_cast<std::size_t>(i)] = t.pixels[static_cast<std::size_t>(i - 35 * 9 * 8)];
    }
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    const std::vector<float> result = t.output;
    const BufferView view = DenseView(const_cast<float *>(result.data()), PixelType::Float32, t.request.output.box);
    t.request.operation = eigenvalues;
    t.request.image.upper[MaxDimension - 1] = 3;
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    ForEachIndex({ {}, { { 35, 9, 8, 1, 1 } } }, [&](const Coordinates & at) {
      std::vector<long double> triangle;
      Coordinates              component = at;
      for (; component[MaxDimension - 1] < 6; ++component[MaxDimension - 1])
      {
        triangle.push_back(static_cast<long double>(At<float>(view, component)));
      }
      auto              expected = OracleEigenvalues(triangle);
      const long double largest = std::max(std::fabs(expected.front()), std::fabs(expected.back()));
      if (byMagnitude)
      {
        std::sort(expected.begin(), expected.end(), [](auto a, auto b) { return std::fabs(a) < std::fabs(b); });
      }
      component = at;
      for (; component[MaxDimension - 1] < 3; ++component[MaxDimension - 1])
      {
        const auto i = static_cast<std::size_t>(component[MaxDimension - 1]);
        ASSERT_LE(std::fabs(static_cast<long double>(t.Result(component)) - expected[i]), 1e-7L * largest)
          << ToString(component);
      }
    });
  }
}

TEST_P(Derivatives, MeasuresOfSeveralScalesAreTheLargestOfEachAndThoseOfChunks)
{
  std::mt19937 random(190);
  const auto   several = HessianOperation(3, 1.0);
  several->result = DerivativeResult::Measure;
  several->scales.front().contrast = 20;
  for (const int radius : { 5, 2 })
  {
    several->scales.push_back(HessianOperation(3, 1.0)->scales.front());
    for (int a = 0; a < 3; ++a)
    {
      several->scales.back().weights[a] = Window(radius / 3.0, radius);
      several->scales.back().factor[a] = radius / 3.0;
    }
    several->scales.back().contrast = 10 * radius;
  }
  Trial<float, float> t(random, several, { { 50, 21, 19, 2, 1 } });
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  const std::vector<float> result = t.output;
  const BufferView   view = DenseView(const_cast<float *>(result.data()), PixelType::Float32, t.request.output.box);
  std::vector<float> largest(result.size(), 0);
  for (const DerivativeScale & scale : several->scales)
  {
    const auto one = std::make_shared<DerivativeOperation>(*several);
    one->scales = { scale };
    t.request.operation = one;
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    for (std::size_t i = 0; i < largest.size(); ++i)
    {
      largest[i] = std::max(largest[i], t.output[i]);
    }
  }
  EXPECT_EQ(largest, result);
  t.request.operation = several;
  for (int part = 0; part < 3; ++part)
  {
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    GetManager().Execute(t.request);
    ForEachIndex(t.request.region, [&](const Coordinates & at) {
      ASSERT_TRUE(IsSame(t.Result(at), At<float>(view, at))) << ToString(at);
    });
  }
}

TEST_P(Derivatives, ScalesOfMeasuresAreThoseOfTheLargest)
{
  std::mt19937 random(192);
  const auto   operation = std::make_shared<MeasureScaleOperation>();
  operation->measure = *HessianOperation(2, 1.0);
  operation->measure.result = DerivativeResult::Measure;
  operation->measure.measure.measure = HessianMeasure::Sato;
  operation->measure.scales.clear();
  operation->scales = { 0.5, 1.25, 2 };
  for (const double scale : operation->scales)
  {
    operation->measure.scales.push_back(HessianOperation(2, 1.0)->scales.front());
    for (int a = 0; a < 2; ++a)
    {
      operation->measure.scales.back().weights[a] = Window(scale, static_cast<int>(3 * scale));
      operation->measure.scales.back().factor[a] = scale;
    }
  }
  Trial<float, float> t(random, operation, { { 40, 31, 2, 1, 1 } });
  std::vector<float>  largest(static_cast<std::size_t>(t.request.image.NumberOfVoxels()), 0);
  std::vector<float>  expected = largest;
  for (std::size_t i = 0; i < operation->scales.size(); ++i)
  {
    const auto one = std::make_shared<DerivativeOperation>(operation->measure);
    one->scales = { operation->measure.scales[i] };
    t.request.operation = one;
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    std::size_t voxel = 0;
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      if (t.Result(at) > largest[voxel])
      {
        largest[voxel] = t.Result(at);
        expected[voxel] = static_cast<float>(operation->scales[i]);
      }
      ++voxel;
    });
  }
  t.request.operation = operation;
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  std::set<float> found;
  std::size_t     voxel = 0;
  ForEachIndex(t.request.image, [&](const Coordinates & at) {
    found.insert(t.Result(at));
    ASSERT_EQ(t.Result(at), expected[voxel++]) << ToString(at);
  });
  EXPECT_GE(found.size(), 3U);
  CompareBits<std::uint8_t, float>(random, GetManager(), GetBackend(), 4, [&](int) { return operation; });
}

/** A structure tensor along the first `dimension` axes, with windows of these radii. */
std::shared_ptr<DerivativeOperation>
TensorOperation(int dimension, int inner, int outer, BoundaryMode mode)
{
  const auto operation = std::make_shared<DerivativeOperation>();
  const auto gradient = std::make_shared<DerivativeOperation>();
  for (int a = 0; a < dimension; ++a)
  {
    gradient->scales.front().weights[a] = Window(inner / 2.5, inner);
    gradient->scales.front().factor[a] = 1.0 + 0.25 * a;
    operation->scales.front().weights[a] = outer > 0 ? Window(outer / 2.5, outer) : std::vector<double>{};
    gradient->components.emplace_back();
    gradient->components.back().fill(0);
    gradient->components.back()[static_cast<std::size_t>(a)] = 1;
  }
  operation->components.resize(static_cast<std::size_t>(dimension * (dimension + 1) / 2));
  operation->boundary.mode = gradient->boundary.mode = mode;
  gradient->boundary.constant = operation->boundary.constant = PixelValue(7.0);
  operation->gradient = gradient;
  operation->result = DerivativeResult::Eigenvalues;
  return operation;
}

/** The upper triangles of the structure tensors of an image, of each voxel. */
std::vector<std::vector<long double>>
OracleTensors(const BufferView & image, const Box & box, const DerivativeOperation & operation)
{
  const BoundaryMode                    mode = operation.boundary.mode;
  const std::size_t                     n = operation.gradient->components.size();
  std::vector<std::vector<long double>> gradients;
  ForEachIndex(box, [&](const Coordinates & at) {
    gradients.emplace_back();
    for (const DerivativeOrders & orders : operation.gradient->components)
    {
      gradients.back().push_back(OracleDerivative<double>(image, at, *operation.gradient, orders).first);
    }
  });
  const auto numberOf = [&](const Coordinates & at) {
    std::int64_t number = 0;
    for (int a = MaxDimension - 1; a >= 0; --a)
    {
      number = number * box.Extent(a) + at[a];
    }
    return static_cast<std::size_t>(number);
  };
  std::vector<std::vector<long double>> tensors;
  const Coordinates                     radius = operation.GetRadius(0);
  ForEachIndex(box, [&](const Coordinates & index) {
    Box window{ index, index };
    for (int a = 0; a < MaxDimension; ++a)
    {
      window.lower[a] -= radius[a];
      window.upper[a] += radius[a] + 1;
    }
    std::vector<long double> sum(n * (n + 1) / 2, 0);
    long double              all = 0;
    ForEachIndex(window, [&](const Coordinates & at) {
      long double weight = 1;
      Coordinates tap = at;
      bool        there = true;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const auto & weights = operation.scales.front().weights[a];
        weight *=
          weights.empty() ? 1 : static_cast<long double>(weights[static_cast<std::size_t>(at[a] - window.lower[a])]);
        there = oracle::Look(tap[a], box.upper[a], mode) && there;
      }
      all += there || mode != BoundaryMode::Renormalized ? weight : 0;
      std::size_t next = 0;
      for (std::size_t row = 0; there && row < n; ++row)
      {
        for (std::size_t column = row; column < n; ++column)
        {
          const auto & gradient = gradients[numberOf(tap)];
          sum[next++] += weight * gradient[row] * gradient[column];
        }
      }
    });
    for (long double & each : sum)
    {
      each /= all;
    }
    tensors.push_back(sum);
  });
  return tensors;
}

TEST_P(Derivatives, StructureTensorsAreWhatTheirDefinitionSays)
{
  std::mt19937 random(191);
  for (int trial = 0; trial < 25; ++trial)
  {
    const int  dimension = trial % 5 == 4 ? 1 : 2 + trial % 2;
    const auto operation =
      TensorOperation(dimension, 1 + trial % 3, trial % 7 == 6 ? 0 : 1 + trial % 2, AllModes[trial % 6]);
    const auto size = static_cast<std::size_t>(dimension);
    operation->componentAxis = MaxDimension - 1;
    Trial<double, double> t(random, operation, { { 9, 6, dimension == 3 ? 5 : 2, 1, 1 } });
    const auto            tensors = OracleTensors(t.image, t.request.image, *operation);
    const std::int64_t    voxels = t.request.image.NumberOfVoxels();
    std::vector<double>   results[5];
    for (const auto result : { DerivativeResult::Components,
                               DerivativeResult::Eigenvalues,
                               DerivativeResult::Direction,
                               DerivativeResult::Coherence,
                               DerivativeResult::Cornerness })
    {
      operation->result = result;
      operation->componentAxis = -1;
      for (int number = 0; number < operation->GetNumberOfResults(); ++number)
      {
        operation->chosen = number;
        t.request.backend = GetBackend();
        t.Prepare(t.request.image);
        GetManager().Execute(t.request);
        auto & all = results[result == DerivativeResult::Components    ? 0
                             : result == DerivativeResult::Eigenvalues ? 1
                             : result == DerivativeResult::Direction   ? 2
                             : result == DerivativeResult::Coherence   ? 3
                                                                       : 4];
        ForEachIndex(t.request.image, [&](const Coordinates & at) { all.push_back(t.Result(at)); });
      }
      operation->chosen = 0;
    }
    for (std::int64_t voxel = 0; voxel < voxels; ++voxel)
    {
      const auto & triangle = tensors[static_cast<std::size_t>(voxel)];
      const auto   values = OracleEigenvalues(triangle);
      const auto   largest = static_cast<double>(values.back());
      const auto   found = [&](int result, std::size_t number) {
        return results[result][number * static_cast<std::size_t>(voxels) + static_cast<std::size_t>(voxel)];
      };
      for (std::size_t i = 0; i < triangle.size(); ++i)
      {
        ASSERT_NEAR(found(0, i), static_cast<double>(triangle[i]), 1e-11 * (1 + largest)) << trial << ", " << voxel;
      }
      long double product = 1;
      long double trace = 0;
      for (std::size_t i = 0; i < size; ++i)
      {
        ASSERT_NEAR(found(1, i), static_cast<double>(values[i]), 5e-8 * (1 + largest)) << trial << ", " << voxel;
        product *= values[i];
        trace += values[i];
      }
      ASSERT_NEAR(
        found(3, 0), static_cast<double>((values.back() - values.front()) / (values.back() + values.front())), 1e-6);
      ASSERT_NEAR(found(4, 0),
                  static_cast<double>(product - 0.05L * std::pow(trace, dimension)),
                  1e-6 * std::pow(1 + largest, dimension));
      if (dimension > 1 && values[1] - values[0] > 1e-3L * values.back())
      {
        double length = 0;
        double sign = 0;
        for (std::size_t row = 0; row < size; ++row)
        {
          long double product = 0;
          for (std::size_t column = 0; column < size; ++column)
          {
            const std::size_t first = std::min(row, column);
            const std::size_t second = std::max(row, column);
            product +=
              triangle[first * size - first * (first + 1) / 2 + second] * static_cast<long double>(found(2, column));
          }
          const double component = found(2, row);
          ASSERT_NEAR(static_cast<double>(product), static_cast<double>(values[0]) * component, 2e-7 * (1 + largest));
          length += component * component;
          sign = std::fabs(component) > std::fabs(sign) ? component : sign;
        }
        ASSERT_NEAR(length, 1, 1e-12);
        ASSERT_GT(sign, 0);
      }
    }
  }
}

TEST_P(Derivatives, StructureTensorsOfChunksHaveTheBitsOfTheWhole)
{
  std::mt19937 random(192);
  const auto   compare = [&](auto in, auto out, int trials) {
    CompareBits<decltype(in), decltype(out)>(random, GetManager(), GetBackend(), trials, [&](int trial) {
      const auto operation =
        TensorOperation(1 + trial % 3, 1 + trial % 4, trial % 5 == 4 ? 0 : 1 + trial % 6, AllModes[random() % 6]);
      operation->result = static_cast<DerivativeResult>(2 + trial % 6);
      operation->result =
        operation->result == DerivativeResult::Measure ? DerivativeResult::Components : operation->result;
      return operation;
    });
  };
  compare(float{}, float{}, 40);
  compare(std::uint16_t{}, float{}, 12);
  compare(std::int32_t{}, double{}, 12);
}

/** First derivatives along some axes with a window each, or their sum of second ones; random windows, orders and
 * boundary as RandomDerivative has them. */
std::shared_ptr<DerivativeOperation>
RandomDivergence(std::mt19937 & random, int largestRadius, bool ofVectors)
{
  auto operation = RandomDerivative(random, largestRadius);
  operation->result = DerivativeResult::Sum;
  operation->ofVectors = ofVectors;
  operation->components.clear();
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (!operation->scales.front().weights[a].empty())
    {
      operation->components.emplace_back();
      operation->components.back().fill(0);
      operation->components.back()[static_cast<std::size_t>(a)] = ofVectors ? 1 : 2;
    }
  }
  operation->ofVectors = ofVectors && operation->components.size() > 1;
  return operation;
}

/** The inputs of a run over vectors: an image for each component. */
template <typename TIn, typename TOut>
struct VectorTrial
{
  std::vector<Trial<TIn, TOut>> each;

  VectorTrial(std::mt19937 & random, const std::shared_ptr<const DerivativeOperation> & operation,
              const Coordinates & extent)
  {
    for (int i = 0; i < operation->GetNumberOfInputs(); ++i)
    {
      each.emplace_back(random, operation, extent);
    }
    for (auto & one : each)
    {
      // Trials have moved since.
      one.image.data = one.pixels.data();
    }
  }
  Trial<TIn, TOut> &
  Prepare(const Box & region)
  {
    for (auto & one : each)
    {
      one.Prepare(region);
    }
    for (std::size_t i = 1; i < each.size(); ++i)
    {
      each.front().request.inputs.push_back(each[i].request.inputs.front());
    }
    return each.front();
  }
};

TEST_P(Derivatives, DivergencesAreWhatTheirDefinitionSays)
{
  std::mt19937 random(195);
  for (int trial = 0; trial < 60; ++trial)
  {
    const auto                  operation = RandomDivergence(random, trial % 4 == 0 ? 6 : 3, trial % 3 > 0);
    VectorTrial<double, double> t(random, operation, RandomExtent(random, 9));
    auto &                      first = t.Prepare(RandomRegion(random, t.each.front().request.image.Extents()));
    first.request.backend = GetBackend();
    GetManager().Execute(first.request);
    ASSERT_TRUE(first.IsContained());
    ForEachIndex(first.request.region, [&](const Coordinates & at) {
      long double expected = 0;
      long double bound = 0;
      for (std::size_t i = 0; i < operation->components.size(); ++i)
      {
        const BufferView & image = t.each[operation->ofVectors ? i : 0].image;
        const auto         found = OracleDerivative<double>(image, at, *operation, operation->components[i]);
        expected += found.first;
        bound += found.second;
      }
      ASSERT_NEAR(first.Result(at), static_cast<double>(expected), 1e-14 * (1 + static_cast<double>(bound)))
        << trial << " " << operation->GetKey() << " at " << ToString(at);
    });
  }
}

template <typename TIn, typename TOut>
void
CompareBitsOfVectors(std::mt19937 & random, Manager & manager, BackendChoice backend, int trials, int largest)
{
  Manager host({});
  for (int trial = 0; trial < trials; ++trial)
  {
    const auto             operation = RandomDivergence(random, trial % 3 == 0 ? 12 : 4, true);
    const Coordinates      extent = RandomExtent(random, trial % 5 == 0 ? largest : 12);
    VectorTrial<TIn, TOut> t(random, operation, extent);
    auto &                 first = t.Prepare(t.each.front().request.image);
    first.request.backend = BackendChoice::CPU;
    host.Execute(first.request);
    const std::vector<TOut> whole = first.output;
    const BufferView view = DenseView(const_cast<TOut *>(whole.data()), PixelTypeOf<TOut>(), first.request.output.box);
    for (int part = 0; part < 3; ++part)
    {
      t.Prepare(part == 0 ? Box::FromExtent(extent) : RandomRegion(random, extent));
      first.request.backend = backend;
      first.request.budgets.device = 60000 + random() % 900000;
      first.request.budgets.host = random() % 2 ? 0 : 90000 + random() % 300000;
      try
      {
        manager.Execute(first.request);
      }
      catch (const BudgetError &)
      {
        continue; // the smallest chunk of this trial is larger
      }
      ASSERT_TRUE(first.IsContained());
      ForEachIndex(first.request.region, [&](const Coordinates & at) {
        ASSERT_TRUE(IsSame(first.Result(at), At<TOut>(view, at))) << operation->GetKey() << " at " << ToString(at);
      });
    }
  }
}

TEST_P(Derivatives, DivergencesOfChunksHaveTheBitsOfTheWhole)
{
  std::mt19937 random(196);
  CompareBitsOfVectors<float, float>(random, GetManager(), GetBackend(), 40, 40);
  CompareBitsOfVectors<std::uint8_t, float>(random, GetManager(), GetBackend(), 10, 30);
  CompareBitsOfVectors<std::int32_t, double>(random, GetManager(), GetBackend(), 10, 30);
  const auto make = [&](int trial) { return RandomDivergence(random, trial % 3 == 0 ? 12 : 4, false); };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 30, make);
  CompareBits<std::int16_t, double>(random, GetManager(), GetBackend(), 10, make);
}

FilterImage
ImageOfLengths(int dimension, PixelType kind)
{
  FilterImage image;
  image.dimension = dimension;
  image.extent = { { 24, 21, dimension == 3 ? 19 : 1, 1, 1 } };
  image.inputKind = kind;
  image.outputKind = PixelType::Float64;
  image.spacing[0] = 0.8;
  image.spacing[1] = 1.25;
  image.spacing[2] = 1.5;
  return image;
}

/** A voxel's position in units of the spacing, from a point near the image's middle. */
std::array<double, 3>
PositionOf(const Coordinates & at, const FilterImage & image)
{
  std::array<double, 3> position{};
  for (int a = 0; a < 3; ++a)
  {
    const double middle = 0.5 * static_cast<double>(image.extent[a] - 1) + 0.3;
    position[static_cast<std::size_t>(a)] =
      image.extent[a] > 1 ? (static_cast<double>(at[a]) - middle) * image.spacing[a] : 0;
  }
  return position;
}

/** Vectors that are linear in the position, whose divergence is the trace of their matrix, in the unit of the spacing;
 * the image of a polynomial of degree 2, whose Laplacian is constant too. */
TEST_P(Derivatives, DivergencesOfPolynomialsAreExactUpToTheEdge)
{
  std::mt19937     random(197);
  FilterImage      image = ImageOfLengths(3, PixelType::Float64);
  FilterParameters parameters;
  const auto       makeOf = [&] {
    return std::dynamic_pointer_cast<const DerivativeOperation>(MakeFilterOperation("divergence", parameters, image));
  };
  for (const char * const name : { "gaussian", "sobel", "prewitt", "scharr", "central" })
  {
    parameters = FilterParameters();
    parameters.Set("Operator", name);
    if (std::string(name) == "gaussian")
    {
      parameters.SetReal("Sigma", 2);
    }
    image.additionalInputs = { "Input2", "Input3" };
    VectorTrial<double, double> t(random, makeOf(), image.extent);
    const double                matrix[3][3] = { { 2, -1, 5 }, { 3, 4, -7 }, { 0.5, 6, -9 } };
    for (std::size_t row = 0; row < 3; ++row)
    {
      auto & component = t.each[row];
      ForEachIndex(component.request.image, [&](const Coordinates & at) {
        const auto x = PositionOf(at, image);
        At<double>(component.image, at) = matrix[row][0] * x[0] + matrix[row][1] * x[1] + matrix[row][2] * x[2] + 40;
      });
    }
    auto & first = t.Prepare(t.each.front().request.image);
    first.request.backend = GetBackend();
    GetManager().Execute(first.request);
    ForEachIndex(first.request.region,
                 [&](const Coordinates & at) { ASSERT_NEAR(first.Result(at), 2 + 4 - 9, 1e-11) << name; });

    image.additionalInputs.clear();
    parameters.Set("OfGradient", true);
    Trial<double, double> one(random, makeOf(), image.extent);
    ForEachIndex(one.request.image, [&](const Coordinates & at) {
      const auto x = PositionOf(at, image);
      At<double>(one.image, at) = 3 * x[0] * x[0] - x[1] * x[1] + 0.5 * x[2] * x[2] + x[0] * x[1] - 4 * x[2] + 7;
    });
    one.Prepare(one.request.image);
    one.request.backend = GetBackend();
    GetManager().Execute(one.request);
    ForEachIndex(one.request.region, [&](const Coordinates & at) {
      // Two voxels at the edge have no second derivative.
      bool isInside = std::string(name) == "gaussian";
      for (int a = 0, inside = 0; a < 3; ++a)
      {
        inside += at[a] > 0 && at[a] + 1 < image.extent[a] ? 1 : 0;
        isInside = isInside || inside == 3;
      }
      ASSERT_TRUE(!isInside || std::fabs(one.Result(at) - (6 - 2 + 1)) < 1e-9) << name << " at " << ToString(at);
    });
  }
}

std::shared_ptr<DerivativeOperation>
RandomCurvature(std::mt19937 & random, int dimension, int trial)
{
  const auto operation = std::make_shared<DerivativeOperation>();
  for (int a = 0; a < dimension; ++a)
  {
    const int radius = 1 + static_cast<int>(random() % 4);
    operation->scales.front().weights[a] = Window(radius / 2.5, radius);
    operation->scales.front().factor[a] = 0.5 + 0.25 * a;
    operation->components.emplace_back();
    operation->components.back().fill(0);
    operation->components.back()[static_cast<std::size_t>(a)] = 1;
  }
  for (int a = 0; a < dimension; ++a)
  {
    for (int b = a; b < dimension; ++b)
    {
      operation->components.emplace_back();
      operation->components.back().fill(0);
      ++operation->components.back()[static_cast<std::size_t>(a)];
      ++operation->components.back()[static_cast<std::size_t>(b)];
    }
  }
  operation->result = DerivativeResult::Curvature;
  operation->curvature.kind = static_cast<CurvatureKind>(dimension == 3 ? trial % 5 : trial % 2);
  operation->curvature.leastGradient = trial % 4 == 3 ? 8 : 0;
  operation->boundary.mode = AllModes[random() % 5];
  operation->boundary.constant = 12.0;
  return operation;
}

/** Curvatures by the matrix of the Weingarten map: the Hessian on the plane across the gradient, over its length. */
long double
OracleCurvature(const std::vector<long double> & d, int dimension, const CurvatureParameters & p)
{
  long double length = 0;
  for (int a = 0; a < dimension; ++a)
  {
    length += d[static_cast<std::size_t>(a)] * d[static_cast<std::size_t>(a)];
  }
  length = std::sqrt(length);
  if (length <= static_cast<long double>(p.leastGradient))
  {
    return 0;
  }
  long double hessian[3][3]{};
  auto        next = static_cast<std::size_t>(dimension);
  for (int row = 0; row < dimension; ++row)
  {
    for (int column = row; column < dimension; ++column)
    {
      hessian[row][column] = hessian[column][row] = d[next++];
    }
  }
  // (I - n n) H (I - n n) / |g| has the principal curvatures, and 0 along n.
  long double projected[3][3]{};
  const auto  across = [&](int i, int j) {
    return (i == j ? 1.0L : 0.0L) - d[static_cast<std::size_t>(i)] * d[static_cast<std::size_t>(j)] / (length * length);
  };
  for (int i = 0; i < dimension; ++i)
  {
    for (int j = 0; j < dimension; ++j)
    {
      for (int k = 0; k < dimension; ++k)
      {
        for (int l = 0; l < dimension; ++l)
        {
          projected[i][j] += across(i, k) * hessian[k][l] * across(l, j) / length;
        }
      }
    }
  }
  long double trace = 0;
  long double squares = 0;
  for (int i = 0; i < dimension; ++i)
  {
    trace += projected[i][i];
    for (int j = 0; j < dimension; ++j)
    {
      squares += projected[i][j] * projected[i][j];
    }
  }
  const long double half = trace / 2;
  const long double product = (trace * trace - squares) / 2;
  const long double apart = std::sqrt(std::max(0.0L, half * half - product));
  switch (p.kind)
  {
    case CurvatureKind::LevelSet:
      return trace;
    case CurvatureKind::Mean:
      return trace / (dimension - 1);
    case CurvatureKind::Gaussian:
      return product;
    default:
      return p.kind == CurvatureKind::Smallest ? half - apart : half + apart;
  }
}

TEST_P(Derivatives, CurvaturesAreWhatTheirDefinitionSays)
{
  std::mt19937 random(198);
  for (int trial = 0; trial < 40; ++trial)
  {
    const int             dimension = trial % 4 == 1 ? 2 : 3;
    const auto            operation = RandomCurvature(random, dimension, trial);
    Trial<double, double> t(random, operation, { { 11, 7, dimension == 3 ? 6 : 2, 1, 1 } });
    t.request.backend = GetBackend();
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    GetManager().Execute(t.request);
    ForEachIndex(t.request.region, [&](const Coordinates & at) {
      std::vector<long double> d;
      for (const DerivativeOrders & orders : operation->components)
      {
        d.push_back(OracleDerivative<double>(t.image, at, *operation, orders).first);
      }
      const auto expected = static_cast<double>(OracleCurvature(d, dimension, operation->curvature));
      ASSERT_NEAR(t.Result(at), expected, 1e-7 * (1 + std::fabs(expected))) << trial << " at " << ToString(at);
    });
  }
}

TEST_P(Derivatives, CurvaturesOfChunksHaveTheBitsOfTheWhole)
{
  std::mt19937 random(199);
  const auto   make = [&](int trial) { return RandomCurvature(random, trial % 3 == 0 ? 2 : 3, trial); };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 40, make);
  CompareBits<std::uint8_t, float>(random, GetManager(), GetBackend(), 10, make);
  CompareBits<std::int32_t, double>(random, GetManager(), GetBackend(), 10, make);
}

/** Squared distances from a point and from an axis: spheres and cylinders, whose curvatures are known, in lengths. The
 * derivatives of polynomials of degree 2 are exact where windows are whole. */
TEST_P(Derivatives, CurvaturesOfBallsAndTubesAreThoseOfTheirRadius)
{
  std::mt19937 random(200);
  for (int trial = 0; trial < 18; ++trial)
  {
    const bool         isTube = trial % 3 == 1;
    const int          dimension = trial % 3 == 2 ? 2 : 3;
    const double       sign = trial % 2 ? -1 : 1;
    const char * const names[] = { "level-set", "mean", "gaussian", "smallest", "largest" };
    const std::string  name = names[trial / 3 % (dimension == 2 ? 2 : 5)];
    FilterImage        image = ImageOfLengths(dimension, PixelType::Float64);
    FilterParameters   parameters;
    constexpr int      margin = 5;
    parameters.SetReal("Sigma", 1);
    parameters.Set("Result", name);
    const auto            operation = MakeFilterOperation("curvature", parameters, image);
    Trial<double, double> t(random, operation, image.extent);
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      const auto x = PositionOf(at, image);
      At<double>(t.image, at) = sign * (x[0] * x[0] + x[1] * x[1] + (isTube ? 0 : x[2] * x[2])) + 100;
    });
    Box region = t.request.image;
    for (int a = 0; a < dimension; ++a)
    {
      region.lower[a] += margin;
      region.upper[a] -= margin;
    }
    t.request.backend = GetBackend();
    t.Prepare(region);
    GetManager().Execute(t.request);
    ForEachIndex(region, [&](const Coordinates & at) {
      const auto   x = PositionOf(at, image);
      const double radius = std::sqrt(x[0] * x[0] + x[1] * x[1] + (isTube ? 0 : x[2] * x[2]));
      const double first = sign / radius;
      const double second = dimension == 2 || isTube ? 0 : first;
      const double expected = name == "level-set"  ? first + second
                              : name == "mean"     ? (first + second) / (dimension - 1)
                              : name == "gaussian" ? first * second
                              : name == "smallest" ? std::min(first, second)
                                                   : std::max(first, second);
      ASSERT_NEAR(t.Result(at), expected, 2e-7 * (1 + std::fabs(expected))) << name << " at " << ToString(at);
    });
  }
}

TEST_P(Derivatives, CurvaturesAreZeroWithoutAGradientAndNanBesideNan)
{
  std::mt19937        random(201);
  const auto          operation = RandomCurvature(random, 3, 0);
  Trial<float, float> t(random, operation, { { 30, 20, 12, 1, 1 } });
  operation->boundary.mode = BoundaryMode::Renormalized;
  std::fill(t.pixels.begin(), t.pixels.end(), 1000.1F);
  t.request.backend = GetBackend();
  const Coordinates nan{ { 25, 15, 9, 0, 0 } };
  At<float>(t.image, nan) = std::numeric_limits<float>::quiet_NaN();
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  const Coordinates radius = operation->GetRadius(0);
  ForEachIndex(t.request.image, [&](const Coordinates & at) {
    bool isBeside = true;
    for (int a = 0; a < 3; ++a)
    {
      isBeside = isBeside && std::abs(at[a] - nan[a]) <= radius[a];
    }
    ASSERT_EQ(t.Result(at) != t.Result(at), isBeside) << ToString(at);
    ASSERT_TRUE(isBeside || t.Result(at) == 0.0F) << ToString(at);
  });
}

TEST(DerivativeRows, DivergenceAndCurvatureNameWhatIsWrong)
{
  FilterImage      image = ImageOfLengths(3, PixelType::Float32);
  FilterParameters parameters;
  parameters.SetReal("Sigma", 1);
  const auto message = [&](const char * name) {
    try
    {
      MakeFilterOperation(name, parameters, image);
    }
    catch (const ParameterError & error)
    {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message("divergence").find("Input2: vectors along 3 spatial axes are as many images, 1 is given"),
            std::string::npos)
    << message("divergence");
  image.additionalInputs = { "Input2" };
  EXPECT_NE(message("divergence").find("Input3: vectors along 3"), std::string::npos) << message("divergence");
  image.additionalInputs = { "Primary", "Input2", "Input3" };
  EXPECT_EQ(message("divergence"), "");
  parameters.Set("SpatialAxes", std::vector<std::int64_t>{ 0, 1 });
  EXPECT_NE(message("divergence").find("Input3: vectors along 2"), std::string::npos) << message("divergence");
  parameters.Set("OfGradient", true);
  EXPECT_NE(message("divergence").find("OfGradient: "), std::string::npos) << message("divergence");
  image.additionalInputs = { "Primary" };
  EXPECT_EQ(message("divergence"), "");

  parameters = FilterParameters();
  parameters.SetReal("Sigma", 1);
  EXPECT_EQ(message("curvature"), "");
  parameters.Set("SpatialAxes", std::vector<std::int64_t>{ 0, 1 });
  EXPECT_EQ(message("curvature"), "");
  parameters.Set("Result", "gaussian");
  EXPECT_NE(message("curvature").find("Result: gaussian needs three spatial axes"), std::string::npos)
    << message("curvature");
  parameters.Set("Result", "mean");
  parameters.Set("SpatialAxes", std::vector<std::int64_t>{ 1 });
  EXPECT_NE(message("curvature").find("at least two"), std::string::npos) << message("curvature");
  parameters = FilterParameters();
  parameters.SetReal("Sigma", 0);
  EXPECT_NE(message("curvature").find("Sigma: 0"), std::string::npos) << message("curvature");
}

/** Unit vectors that the matrix multiplies by its ascending eigenvalues, and that are perpendicular; zeros of an
 * eigenvalue that is double. */
TEST_P(Derivatives, EigenvectorsAreThoseOfTheElements)
{
  std::mt19937 random(203);
  for (int trial = 0; trial < 8; ++trial)
  {
    const int  dimension = 2 + trial % 2;
    const auto elements =
      trial % 4 < 2 ? HessianOperation(dimension, 1.1) : TensorOperation(dimension, 2, 1, BoundaryMode::Renormalized);
    elements->result = DerivativeResult::Components;
    const std::int64_t  size = dimension;
    const Coordinates   spatial{ { 10, 7, dimension == 3 ? 5 : 1, 1, 1 } };
    std::vector<double> pixels;
    const auto          run = [&](DerivativeResult result, std::int64_t count) {
      const auto operation = std::make_shared<DerivativeOperation>(*elements);
      operation->result = result;
      operation->componentAxis = MaxDimension - 1;
      Coordinates extent = spatial;
      extent[MaxDimension - 1] = count;
      Trial<double, double> t(random, operation, extent);
      const std::size_t     voxels = t.pixels.size() / static_cast<std::size_t>(count);
      pixels =
        pixels.empty() ? std::vector<double>(t.pixels.begin(), t.pixels.begin() + static_cast<int>(voxels)) : pixels;
      for (std::size_t i = 0; i < t.pixels.size(); ++i)
      {
        t.pixels[i] = pixels[i % voxels];
      }
      t.request.backend = GetBackend();
      t.Prepare(t.request.image);
      GetManager().Execute(t.request);
      std::vector<double> results;
      ForEachIndex(t.request.image, [&](const Coordinates & at) { results.push_back(t.Result(at)); });
      return results;
    };
    const auto triangles = run(DerivativeResult::Components, size * (size + 1) / 2);
    const auto values = run(DerivativeResult::Eigenvalues, size);
    const auto vectors = run(DerivativeResult::Eigenvectors, size * size);
    const auto voxels = values.size() / static_cast<std::size_t>(size);
    for (std::size_t voxel = 0; voxel < voxels; ++voxel)
    {
      const auto of = [&](const std::vector<double> & results, std::int64_t number) {
        return results[static_cast<std::size_t>(number) * voxels + voxel];
      };
      const double largest = std::max(std::fabs(of(values, 0)), std::fabs(of(values, size - 1)));
      for (std::int64_t i = 0; i < size; ++i)
      {
        for (std::int64_t row = 0; row < size; ++row)
        {
          double product = 0;
          for (std::int64_t column = 0; column < size; ++column)
          {
            const std::int64_t first = std::min(row, column);
            const std::int64_t second = std::max(row, column);
            product += of(triangles, first * size - first * (first + 1) / 2 + second) * of(vectors, i * size + column);
          }
          ASSERT_NEAR(product, of(values, i) * of(vectors, i * size + row), 1e-6 * largest) << trial << " " << voxel;
        }
        for (std::int64_t j = 0; j <= i; ++j)
        {
          double dot = 0;
          for (std::int64_t a = 0; a < size; ++a)
          {
            dot += of(vectors, i * size + a) * of(vectors, j * size + a);
          }
          ASSERT_NEAR(dot, i == j ? 1 : 0, 1e-5) << trial << " " << voxel;
        }
      }
    }
  }
}

/** Operations of one to five results and of every kind, with windows that devices pass along two axes at once, and with
 * larger ones. */
std::shared_ptr<DerivativeOperation>
OperationOfTiles(std::mt19937 & random, int trial)
{
  const bool                           isLarge = trial % 8 == 7;
  std::shared_ptr<DerivativeOperation> operation;
  const auto                           radius = [&] { return 1 + static_cast<int>(random() % (isLarge ? 18 : 8)); };
  if (trial % 4 == 3)
  {
    operation = TensorOperation(3, radius(), radius(), AllModes[random() % 6]);
    operation->result = static_cast<DerivativeResult>(2 + random() % 6);
  }
  else
  {
    operation = HessianOperation(3, 1.5);
    operation->boundary.mode = trial < 12 ? BoundaryMode::Renormalized : AllModes[random() % 6];
    operation->boundary.constant = 17;
    operation->result = static_cast<DerivativeResult>(2 + random() % 5);
    if (trial % 4 == 0)
    {
      operation->components = { { { 1, 0, 0, 0, 0 } }, { { 0, 1, 0, 0, 0 } }, { { 0, 0, 1, 0, 0 } } };
      operation->result = trial % 12 == 0   ? DerivativeResult::Components
                          : trial % 12 == 4 ? DerivativeResult::Magnitude
                                            : DerivativeResult::Sum;
    }
    if (trial % 8 == 2)
    {
      operation->result = DerivativeResult::Eigenvectors;
    }
    if (trial % 8 == 1)
    {
      const std::vector<DerivativeOrders> gradient{ { { 1, 0, 0, 0, 0 } },
                                                    { { 0, 1, 0, 0, 0 } },
                                                    { { 0, 0, 1, 0, 0 } } };
      operation->components.insert(operation->components.begin(), gradient.begin(), gradient.end());
      operation->result = DerivativeResult::Curvature;
      operation->curvature.kind = static_cast<CurvatureKind>(random() % 5);
      operation->curvature.leastGradient = random() % 3 ? 0 : 4;
    }
    for (int a = 0; a < 3; ++a)
    {
      const int r = trial % 3 ? radius() : 8;
      operation->scales.front().weights[a] = Window(r / 3.0, r);
      operation->scales.front().sampled[a] = random() % 2 ? r / 3.0 : 0;
    }
  }
  if (operation->result == DerivativeResult::Measure)
  {
    operation->measure.measure = static_cast<HessianMeasure>(random() % 6);
    operation->measure.dark = random() % 2;
    operation->measure.objectDimension =
      operation->measure.measure == HessianMeasure::Objectness ? static_cast<int>(random() % 3) : 0;
    operation->scales.front().contrast = 20;
    if (!operation->gradient && trial % 2)
    {
      operation->scales.push_back(operation->scales.front());
      for (int a = 0; a < 3; ++a)
      {
        operation->scales.back().weights[a] = Window(1, 2 + static_cast<int>(random() % 5));
      }
    }
  }
  operation->chosen = static_cast<int>(random() % static_cast<std::uint32_t>(operation->GetNumberOfResults()));
  return operation;
}

TEST_P(Derivatives, OfTilesHaveTheBitsOfTheCpu)
{
  std::mt19937 random(193);
  for (int trial = 0; trial < 48 && !HasFatalFailure(); ++trial)
  {
    const auto operation = OperationOfTiles(random, trial);
    CompareTilesWithCpu<float, float>(random, GetManager(), GetBackend(), operation, trial, [&](auto & pixels) {
      for (float & pixel : pixels)
      {
        pixel = trial % 7 == 3 ? 1e-42F * (pixel - 40) : random() % 40 ? pixel : -0.0F;
      }
      for (int i = 0; trial % 5 == 4 && i < 3; ++i)
      {
        pixels[random() % pixels.size()] = i == 0 ? std::numeric_limits<float>::infinity() : PoisonPixel<float>();
      }
    });
    const auto other = OperationOfTiles(random, trial);
    CompareTilesWithCpu<std::uint8_t, std::uint8_t>(
      random, GetManager(), GetBackend(), other, trial, [](std::vector<std::uint8_t> &) {});
  }
}

/** Vectors of images as wide as those above. */
TEST_P(Derivatives, OfTilesOfVectorsHaveTheBitsOfTheCpu)
{
  std::mt19937 random(202);
  Manager      host({});
  for (int trial = 0; trial < 16; ++trial)
  {
    const auto operation = std::make_shared<DerivativeOperation>();
    operation->boundary.mode = AllModes[random() % 5];
    operation->boundary.constant = 17;
    operation->result = DerivativeResult::Sum;
    operation->ofVectors = true;
    for (int a = 0; a < 3; ++a)
    {
      const int r = 1 + static_cast<int>(random() % (trial % 8 == 7 ? 18 : 8));
      operation->scales.front().weights[a] = Window(r / 3.0, r);
      operation->components.emplace_back();
      operation->components.back().fill(0);
      operation->components.back()[static_cast<std::size_t>(a)] = 1;
    }
    const auto        atMost = [&](std::uint32_t n) { return static_cast<std::int64_t>(1 + random() % n); };
    const Coordinates extent{ { 128 + atMost(40), 30 + atMost(trial % 3 ? 20 : 70), atMost(30), atMost(2), 1 } };
    VectorTrial<float, float> t(random, operation, extent);
    const Box                 region = trial % 2 ? Box::FromExtent(extent) : RandomRegion(random, extent);
    auto &                    first = t.Prepare(region);
    first.request.backend = BackendChoice::CPU;
    host.Execute(first.request);
    const std::vector<float> expected = first.output;
    t.Prepare(region);
    first.request.backend = GetBackend();
    GetManager().Execute(first.request);
    ASSERT_TRUE(first.IsContained());
    ASSERT_EQ(std::memcmp(first.output.data(), expected.data(), expected.size() * sizeof(float)), 0)
      << operation->GetKey() << " " << ToString(extent) << " " << ToString(region);
  }
}

TEST_P(Derivatives, WithComponentsHaveTheBitsOfTheCpu)
{
  std::mt19937 random(194);
  Manager      host({});
  for (int trial = 0; trial < 24; ++trial)
  {
    const auto operation = OperationOfTiles(random, trial);
    operation->chosen = 0;
    operation->componentAxis = MaxDimension - 1;
    const auto          count = static_cast<std::int64_t>(operation->GetNumberOfResults());
    const Coordinates   extent{ { 100 + static_cast<std::int64_t>(random() % 60), 30, 20, 1, count } };
    Trial<float, float> t(random, operation, extent);
    const std::size_t   voxels = t.pixels.size() / static_cast<std::size_t>(count);
    for (std::size_t i = voxels; i < t.pixels.size(); ++i)
    {
      t.pixels[i] = t.pixels[i - voxels];
    }
    Box region = trial % 2 ? t.request.image : RandomRegion(random, extent);
    t.request.backend = BackendChoice::CPU;
    t.Prepare(region);
    host.Execute(t.request);
    const std::vector<float> expected = t.output;
    t.request.backend = GetBackend();
    t.Prepare(region);
    GetManager().Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    const BufferView view = DenseView(const_cast<float *>(expected.data()), PixelType::Float32, t.request.output.box);
    ForEachIndex(region, [&](const Coordinates & at) {
      ASSERT_TRUE(IsSame(t.Result(at), At<float>(view, at))) << operation->GetKey() << " at " << ToString(at);
    });
  }
}

/** If the image changes along one axis alone, no direction across it is better than another. */
TEST(TensorDirections, AreZerosWhereTheSmallestEigenvalueIsDouble)
{
  const auto   root = [](double square) { return std::sqrt(square); };
  const double plane[6] = { 1, 2, 2, 4, 4, 4 };
  double       values[3];
  double       direction[3];
  EigenvaluesOf(plane, 3, values, root);
  DirectionOf(plane, values, 3, direction, root);
  for (const double each : direction)
  {
    EXPECT_EQ(each, 0);
  }
  // A tube along (0, 3, 4) / 5, in the Hessian of which two eigenvalues are negative.
  const double tube[6] = { -2, 0, 0, -1.28, 0.96, -0.72 };
  EigenvaluesOf(tube, 3, values, root);
  DirectionOf(tube, values, 3, direction, root);
  EXPECT_NEAR(direction[0], 0, 1e-7);
  EXPECT_NEAR(direction[1], 0.6, 1e-7);
  EXPECT_NEAR(direction[2], 0.8, 1e-7);
  // Its two other eigenvalues are equal.
  double vectors[9];
  EigenvectorsOf(tube, values, 3, vectors, root);
  for (int i = 0; i < 9; ++i)
  {
    EXPECT_NEAR(vectors[i], i < 6 ? 0 : direction[i - 6], 1e-7) << i;
  }
  EXPECT_EQ(CoherenceOf(std::vector<double>{ 0, 0, 0 }.data(), 3), 0);
}

TEST(DerivativeOperation, BadParametersAreNamed)
{
  DerivativeOperation operation;
  const auto          message = [&] { return ValidationMessage(operation, { { 9, 9, 9, 1, 1 } }); };
  EXPECT_NE(message().find("component"), std::string::npos);
  operation.components = { { { 0, 4, 0, 0, 0 } } };
  EXPECT_NE(message().find("axis 1 is 4"), std::string::npos);
  operation.components = { { { 0, 1, 0, 0, 0 } } };
  EXPECT_NE(message().find("no window"), std::string::npos);
  operation.scales.front().weights[1] = { 1, 2 };
  EXPECT_NE(message().find("2 weights along axis 1"), std::string::npos);
  operation.scales.front().weights[1] = { 1, 2, 3 };
  EXPECT_NE(message().find("symmetric"), std::string::npos);
  operation.scales.front().weights[1] = { 1, 2, 1 };
  EXPECT_EQ(message(), "");
  const std::string key = operation.GetKey();
  operation.scales.front().factor[0] = 2;
  EXPECT_NE(operation.GetKey(), key);
  operation.componentAxis = MaxDimension - 1;
  operation.components.push_back(operation.components.front());
  EXPECT_NE(message().find("2 components"), std::string::npos);
  DerivativeOperation tensor = *TensorOperation(2, 1, 1, BoundaryMode::Mirror);
  EXPECT_EQ(ValidationMessage(tensor, { { 9, 9, 9, 1, 1 } }), "");
  tensor.boundary.mode = BoundaryMode::Renormalized;
  EXPECT_NE(ValidationMessage(tensor, { { 9, 9, 9, 1, 1 } }).find("structure tensor"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Derivatives, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Derivatives, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Derivatives, testing::Values(Place::Cuda));

} // namespace
