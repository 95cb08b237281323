/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDiffusionOperation.h"
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"

using namespace chunkwise;

namespace
{

class Diffusions : public KernelTest
{};

std::shared_ptr<DiffusionOperation>
RandomDiffusion(std::mt19937 & random, DiffusionMethod method, std::int64_t iterations)
{
  const auto operation = std::make_shared<DiffusionOperation>();
  operation->method = method;
  operation->iterations = iterations;
  for (const int a : RandomAxes(random))
  {
    operation->scale[a] = 0.5 + 0.25 * static_cast<double>(random() % 3);
  }
  operation->contrast = 5 + static_cast<double>(random() % 100);
  operation->weight = 5 + static_cast<double>(random() % 30);
  return operation;
}

/** An image of numbers that are looked at beyond the edge, too. */
struct Field
{
  Box                      box;
  std::vector<long double> values;

  std::int64_t
  Number(Coordinates at) const
  {
    std::int64_t number = 0;
    for (int a = MaxDimension - 1; a >= 0; --a)
    {
      at[a] = std::min(std::max<std::int64_t>(at[a], 0), box.upper[a] - 1);
      number = number * box.Extent(a) + at[a];
    }
    return number;
  }
  long double
  operator()(const Coordinates & at) const
  {
    return values[static_cast<std::size_t>(this->Number(at))];
  }
};

Coordinates
Moved(Coordinates at, int axis, std::int64_t step)
{
  at[axis] += step;
  return at;
}

/** The flux from a voxel to the next one along an axis. */
long double
OracleFlux(const Field & u, const Coordinates & at, int axis, const DiffusionOperation & operation)
{
  const Coordinates next = Moved(at, axis, 1);
  const auto        central = [&](const Coordinates & i, int a) {
    // The nearest voxel of the image, then its neighbors.
    Coordinates inside = i;
    inside[axis] = std::min(std::max<std::int64_t>(i[axis], 0), u.box.upper[axis] - 1);
    return (u(Moved(inside, a, 1)) - u(Moved(inside, a, -1))) / 2 * static_cast<long double>(operation.scale[a]);
  };
  const long double d = (u(next) - u(at)) * static_cast<long double>(operation.scale[axis]);
  long double       square = d * d;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (a != axis && operation.scale[a] > 0)
    {
      const long double mean = (central(at, a) + central(next, a)) / 2;
      square += mean * mean;
    }
  }
  const auto        contrast = static_cast<long double>(operation.contrast);
  const long double flux = d * std::exp(-square / (2 * contrast * contrast));
  return operation.method == DiffusionMethod::Curvature ? flux / std::sqrt(square + 1e-10L) : flux;
}

Field
OracleDiffusion(Field u, const DiffusionOperation & operation)
{
  for (std::int64_t i = 0; i < operation.iterations; ++i)
  {
    Field next{ u.box, {} };
    ForEachIndex(u.box, [&](const Coordinates & at) {
      long double speed = 0;
      long double rising = 0;
      long double falling = 0;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const auto scale = static_cast<long double>(operation.scale[a]);
        if (scale > 0)
        {
          speed += OracleFlux(u, at, a, operation) - OracleFlux(u, Moved(at, a, -1), a, operation);
          const long double forward = (u(Moved(at, a, 1)) - u(at)) * scale;
          const long double backward = (u(at) - u(Moved(at, a, -1))) * scale;
          const auto        high = [](long double x) { return x > 0 ? x * x : 0; };
          rising += high(forward) + high(-backward);
          falling += high(-forward) + high(backward);
        }
      }
      if (operation.method == DiffusionMethod::Curvature)
      {
        speed *= std::sqrt(speed > 0 ? rising : falling);
      }
      next.values.push_back(u(at) + speed * static_cast<long double>(operation.timeStep));
    });
    u = next;
  }
  return u;
}

Field
OracleVariation(const Field & image, const DiffusionOperation & operation)
{
  std::vector<int> axes = operation.GetAxes();
  long double      squares = 0;
  for (const int a : axes)
  {
    squares += static_cast<long double>(operation.scale[a] * operation.scale[a]);
  }
  const long double  step = squares > 0 ? 1 / (2 * std::sqrt(squares)) : 0;
  Field              u = image;
  Field              ahead = image;
  std::vector<Field> p(axes.size(), Field{ image.box, std::vector<long double>(image.values.size(), 0) });
  for (std::int64_t i = 0; i < operation.iterations; ++i)
  {
    ForEachIndex(image.box, [&](const Coordinates & at) {
      const auto  n = static_cast<std::size_t>(image.Number(at));
      long double square = 0;
      for (std::size_t k = 0; k < axes.size(); ++k)
      {
        p[k].values[n] +=
          step * static_cast<long double>(operation.scale[axes[k]]) * (ahead(Moved(at, axes[k], 1)) - ahead(at));
        square += p[k].values[n] * p[k].values[n];
      }
      const long double factor = std::max(1.0L, std::sqrt(square) / static_cast<long double>(operation.weight));
      for (Field & each : p)
      {
        each.values[n] /= factor;
      }
    });
    ForEachIndex(image.box, [&](const Coordinates & at) {
      const auto  n = static_cast<std::size_t>(image.Number(at));
      long double divergence = 0;
      for (std::size_t k = 0; k < axes.size(); ++k)
      {
        const long double before = at[axes[k]] > 0 ? p[k](Moved(at, axes[k], -1)) : 0;
        divergence += static_cast<long double>(operation.scale[axes[k]]) * (p[k].values[n] - before);
      }
      const long double next = (u.values[n] + step * divergence + step * image.values[n]) / (1 + step);
      ahead.values[n] = 2 * next - u.values[n];
      u.values[n] = next;
    });
  }
  return u;
}

TEST_P(Diffusions, AreWhatTheirDefinitionSays)
{
  std::mt19937 random(311);
  for (int trial = 0; trial < 36; ++trial)
  {
    const auto method = trial % 3 == 0   ? DiffusionMethod::Gradient
                        : trial % 3 == 1 ? DiffusionMethod::Curvature
                                         : DiffusionMethod::TotalVariation;
    const auto operation = RandomDiffusion(random, method, 1 + trial % 4);
    operation->contrast = trial % 9 == 0 ? 0 : operation->contrast;
    Trial<double, double> t(random, operation, RandomExtent(random, 9));
    Field                 image{ t.request.image, {} };
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      image.values.push_back(static_cast<long double>(At<double>(t.image, at)));
    });
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    const Field expected = method == DiffusionMethod::TotalVariation ? OracleVariation(image, *operation)
                           : operation->contrast > 0                 ? OracleDiffusion(image, *operation)
                                                                     : image;
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      ASSERT_NEAR(t.Result(at), static_cast<double>(expected(at)), 1e-9)
        << operation->GetKey() << " at " << ToString(at);
    });
  }
}

TEST_P(Diffusions, OfChunksHaveTheBitsOfTheWhole)
{
  std::mt19937 random(312);
  const auto   make = [&](int trial) {
    return RandomDiffusion(random, static_cast<DiffusionMethod>(trial % 4), trial % 4 == 3 ? 1 : 1 + trial % 7);
  };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 48, make);
  CompareBits<std::uint8_t, float>(random, GetManager(), GetBackend(), 16, make);
  CompareBits<std::int32_t, double>(random, GetManager(), GetBackend(), 16, make);
}

/** Total variation of a step of two halves: each moves towards the other by the weight times border over volume. */
TEST_P(Diffusions, TotalVariationOfAStepIsTheExactOne)
{
  std::mt19937 random(313);
  const auto   operation = std::make_shared<DiffusionOperation>();
  operation->method = DiffusionMethod::TotalVariation;
  operation->iterations = 2000;
  operation->scale[0] = operation->scale[1] = 1;
  operation->weight = 20;
  Trial<double, double> t(random, operation, { { 8, 6, 1, 1, 1 } });
  ForEachIndex(t.request.image, [&](const Coordinates & at) { At<double>(t.image, at) = at[0] < 4 ? 10 : 90; });
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  ForEachIndex(t.request.image,
               [&](const Coordinates & at) { ASSERT_NEAR(t.Result(at), at[0] < 4 ? 15 : 85, 1e-3) << ToString(at); });
}

TEST(DiffusionRows, RefuseStepsThatAreNotStable)
{
  FilterImage image;
  image.extent = { { 9, 9, 9, 1, 1 } };
  image.dimension = 3;
  image.inputKind = image.outputKind = PixelKind::Float32;
  FilterParameters parameters;
  parameters.SetReal("GradientMagnitude", 3);
  parameters.SetReal("TimeStep", 0.2);
  try
  {
    MakeFilterOperation("diffusion", parameters, image);
    FAIL();
  }
  catch (const ParameterError & error)
  {
    EXPECT_NE(std::string(error.what()).find("TimeStep: 0.2 is more than 0.16666666666666666"), std::string::npos)
      << error.what();
  }
  parameters.SetReal("TimeStep", 0.1);
  EXPECT_NE(MakeFilterOperation("diffusion", parameters, image), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Diffusions, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Diffusions, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Diffusions, testing::Values(Place::Cuda));

} // namespace
