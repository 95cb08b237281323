/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBilateralOperation.h"
#include "chunkwiseDiffusionOperation.h"
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseMaskedOperation.h"
#include "chunkwiseStatistics.h"

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

/** An image of numbers, of which some may lie outside a mask. */
struct Field
{
  Box                      box;
  std::vector<long double> values;
  std::vector<bool>        inside; ///< empty: all are

  std::size_t
  Number(const Coordinates & at) const
  {
    std::int64_t number = 0;
    for (int a = MaxDimension - 1; a >= 0; --a)
    {
      number = number * box.Extent(a) + at[a];
    }
    return static_cast<std::size_t>(number);
  }
  long double
  operator()(const Coordinates & at) const
  {
    return values[this->Number(at)];
  }
  bool
  Has(const Coordinates & at) const
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (at[a] < 0 || at[a] >= box.upper[a])
      {
        return false;
      }
    }
    return inside.empty() || inside[this->Number(at)];
  }
  /** A neighbor, or the voxel itself in place of one that is not there. */
  long double
  Beside(const Coordinates & at, int axis, std::int64_t step) const
  {
    Coordinates next = at;
    next[axis] += step;
    return (*this)(this->Has(next) ? next : at);
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
  if (!u.Has(at) || !u.Has(next))
  {
    return 0;
  }
  const auto central = [&](const Coordinates & i, int a) {
    return (u.Beside(i, a, 1) - u.Beside(i, a, -1)) / 2 * static_cast<long double>(operation.scale[a]);
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
    Field next{ u.box, {}, u.inside };
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
          const long double forward = (u.Beside(at, a, 1) - u(at)) * scale;
          const long double backward = (u(at) - u.Beside(at, a, -1)) * scale;
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
  std::vector<Field> p(axes.size(), Field{ image.box, std::vector<long double>(image.values.size(), 0), {} });
  for (std::int64_t i = 0; i < operation.iterations; ++i)
  {
    ForEachIndex(image.box, [&](const Coordinates & at) {
      const std::size_t n = image.Number(at);
      long double       square = 0;
      for (std::size_t k = 0; k < axes.size(); ++k)
      {
        const long double rise = image.Has(at) ? ahead.Beside(at, axes[k], 1) - ahead(at) : 0;
        p[k].values[n] += step * static_cast<long double>(operation.scale[axes[k]]) * rise;
        square += p[k].values[n] * p[k].values[n];
      }
      const long double factor = std::max(1.0L, std::sqrt(square) / static_cast<long double>(operation.weight));
      for (Field & each : p)
      {
        each.values[n] /= factor;
      }
    });
    ForEachIndex(image.box, [&](const Coordinates & at) {
      const std::size_t n = image.Number(at);
      long double       divergence = 0;
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

std::shared_ptr<MaskedOperation>
InMask(const std::shared_ptr<DiffusionOperation> & diffusion)
{
  diffusion->skipsNan = true;
  auto masked = std::make_shared<MaskedOperation>();
  masked->inside = diffusion;
  return masked;
}

/** A mask of a trial's image, of which about a third is outside. */
struct TrialMask
{
  std::vector<std::uint16_t> voxels;
  BufferView                 view;

  TrialMask(std::mt19937 & random, const Box & image)
  {
    for (std::int64_t i = 0; i < image.NumberOfVoxels(); ++i)
    {
      voxels.push_back(random() % 3 == 0 ? 0 : 256);
    }
    view = DenseView(voxels.data(), PixelKind::UInt16, image);
  }
};

TEST_P(Diffusions, AreWhatTheirDefinitionSays)
{
  std::mt19937 random(311);
  for (int trial = 0; trial < 54; ++trial)
  {
    const bool isMasked = trial % 2 == 1;
    const auto method = trial % 3 == 0   ? DiffusionMethod::Gradient
                        : trial % 3 == 1 ? DiffusionMethod::Curvature
                                         : DiffusionMethod::TotalVariation;
    const auto operation = RandomDiffusion(random, method, 1 + trial % 4);
    operation->contrast = trial % 9 == 0 ? 0 : operation->contrast;
    Trial<double, double> t(random, operation, RandomExtent(random, 9));
    const TrialMask       mask(random, t.request.image);
    Field                 image{ t.request.image, {}, {} };
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      image.values.push_back(static_cast<long double>(At<double>(t.image, at)));
    });
    t.request.backend = GetBackend();
    if (isMasked)
    {
      t.request.operation = InMask(operation);
      image.inside.assign(mask.voxels.begin(), mask.voxels.end());
    }
    t.Prepare(t.request.image);
    if (isMasked)
    {
      t.request.inputs.push_back(mask.view);
    }
    GetManager().Execute(t.request);
    const Field expected = method == DiffusionMethod::TotalVariation ? OracleVariation(image, *operation)
                           : operation->contrast > 0                 ? OracleDiffusion(image, *operation)
                                                                     : image;
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      ASSERT_NEAR(t.Result(at), static_cast<double>(image.Has(at) ? expected(at) : image(at)), 1e-9)
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

/** Compares runs in a mask over any region and chunks with one call of the CPU's kernel over the whole image, whose
 * voxels outside are random, or NaN and infinite. */
template <typename TIn, typename TOut>
void
CompareMaskedBits(std::mt19937 & random, Manager & manager, BackendChoice backend)
{
  Manager host({});
  for (int trial = 0; trial < 12; ++trial)
  {
    std::shared_ptr<MaskedOperation> masked;
    if (trial % 4 == 3)
    {
      const auto bilateral = std::make_shared<BilateralOperation>();
      bilateral->weights[0] = bilateral->weights[1] = SampledGaussianWeights(1, 2);
      bilateral->rangeSigma = 60;
      masked = std::make_shared<MaskedOperation>();
      masked->inside = bilateral;
    }
    else
    {
      masked = InMask(RandomDiffusion(random, static_cast<DiffusionMethod>(trial % 4), 1 + trial % 5));
    }
    masked->keepsOutside = trial % 3 != 0;
    masked->outsideValue = 7.0;
    Trial<TIn, TOut> t(random, masked, RandomExtent(random, 14));
    const TrialMask  mask(random, t.request.image);
    const auto       execute = [&](Manager & with) {
      t.request.inputs.push_back(mask.view);
      with.Execute(t.request);
    };
    t.request.backend = BackendChoice::CPU;
    t.Prepare(t.request.image);
    execute(host);
    const std::vector<TOut> whole = t.output;
    const BufferView view = DenseView(const_cast<TOut *>(whole.data()), PixelKindOf<TOut>(), t.request.output.box);
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      if (At<std::uint16_t>(mask.view, at) == 0)
      {
        // Does not matter for what is inside.
        const TIn own = At<TIn>(t.image, at);
        ASSERT_EQ(At<TOut>(view, at), masked->keepsOutside ? static_cast<TOut>(own) : static_cast<TOut>(7));
        At<TIn>(t.image, at) = trial % 2 == 0 ? PoisonPixel<TIn>() : RandomPixel<TIn>(random);
      }
    });
    for (int part = 0; part < 3; ++part)
    {
      t.Prepare(RandomRegion(random, t.request.image.Extents()));
      t.request.backend = backend;
      t.request.budgets.device = 60000 + random() % 300000;
      t.request.budgets.host = random() % 2 ? 0 : 60000 + random() % 100000;
      try
      {
        execute(manager);
      }
      catch (const BudgetError &)
      {
        continue; // the smallest chunk of this trial is larger
      }
      ASSERT_TRUE(t.IsContained());
      ForEachIndex(t.request.region, [&](const Coordinates & at) {
        if (At<std::uint16_t>(mask.view, at) != 0)
        {
          ASSERT_EQ(t.Result(at), At<TOut>(view, at)) << masked->GetKey() << " at " << ToString(at);
        }
      });
    }
  }
}

TEST_P(Diffusions, InMasksSeeNothingOutsideAndHaveTheBitsOfTheWhole)
{
  std::mt19937 random(314);
  CompareMaskedBits<float, float>(random, GetManager(), GetBackend());
  CompareMaskedBits<std::uint8_t, float>(random, GetManager(), GetBackend());
  CompareMaskedBits<std::int64_t, std::int64_t>(random, GetManager(), GetBackend());
}

TEST_P(Diffusions, InMasksOfOnesHaveTheBitsWithoutAMask)
{
  std::mt19937 random(315);
  for (int trial = 0; trial < 6; ++trial)
  {
    const auto operation = RandomDiffusion(random, static_cast<DiffusionMethod>(trial % 3), 3);
    Trial<std::int32_t, double> t(random, operation, RandomExtent(random, 14));
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    const std::vector<double> expected = t.output;
    TrialMask                 mask(random, t.request.image);
    std::fill(mask.voxels.begin(), mask.voxels.end(), std::uint16_t{ 1 });
    t.request.operation = InMask(std::make_shared<DiffusionOperation>(*operation));
    t.Prepare(t.request.image);
    t.request.inputs.push_back(mask.view);
    GetManager().Execute(t.request);
    EXPECT_EQ(std::memcmp(t.output.data(), expected.data(), expected.size() * sizeof(double)), 0)
      << operation->GetKey();
  }
}

/** A ramp inside the mask, beside values that would make its gradient larger. */
TEST_P(Diffusions, TakeTheGradientMagnitudeInsideTheMask)
{
  std::mt19937 random(316);
  FilterImage  image;
  image.extent = { { 8, 5, 1, 1, 1 } };
  image.dimension = 2;
  image.inputKind = image.outputKind = PixelKind::Float32;
  image.furtherInputs = { "MaskImage" };
  FilterParameters parameters;
  parameters.SetReal("GradientMagnitude", 0);
  const auto          operation = MakeFilterOperation("diffusion", parameters, image);
  Trial<float, float> t(random, operation, image.extent);
  TrialMask           mask(random, t.request.image);
  ForEachIndex(t.request.image, [&](const Coordinates & at) {
    const bool isInside = at[0] >= 2 && at[0] < 6;
    At<float>(t.image, at) = isInside ? 4.0F * static_cast<float>(at[0]) : -1000.0F;
    At<std::uint16_t>(mask.view, at) = isInside ? 1 : 0;
  });
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  t.request.inputs.push_back(mask.view);
  const std::vector<double> found = EstimateParameter(
    GetManager(), t.request, *GetFilter("diffusion").FindParameter("GradientMagnitude"));
  // Central differences of 2, 4, 4 and 2.
  EXPECT_DOUBLE_EQ(found.at(0), std::sqrt((4.0 + 16 + 16 + 4) / 4));
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

TEST(DiffusionRows, RefuseOutsideValuesThatAreNone)
{
  FilterImage image;
  image.extent = { { 9, 9, 1, 1, 1 } };
  image.dimension = 2;
  image.inputKind = image.outputKind = PixelKind::UInt8;
  FilterParameters parameters;
  parameters.SetReal("Weight", 3);
  parameters.Set("OutsideValue", PixelValue(std::int64_t{ 300 }));
  const auto message = [&] {
    try
    {
      MakeFilterOperation("total-variation", parameters, image);
    }
    catch (const ParameterError & error)
    {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message().find("OutsideValue: 300 has no effect without a MaskImage"), std::string::npos) << message();
  image.furtherInputs = { "MaskImage" };
  EXPECT_NE(message().find("OutsideValue: 300 is not a value of the output's pixel type, uint8"), std::string::npos)
    << message();
  parameters.Set("OutsideValue", PixelValue(std::int64_t{ 255 }));
  EXPECT_EQ(message(), "");
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
