/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBilateralOperation.h"
#include "chunkwiseDerivativeOperation.h"
#include "chunkwiseDiffusionOperation.h"
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseLaplacianOperation.h"
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
  if (diffusion->tensor)
  {
    const auto tensor = std::make_shared<DerivativeOperation>(*diffusion->tensor);
    const auto gradient = std::make_shared<DerivativeOperation>(*tensor->gradient);
    tensor->skipsNan = gradient->skipsNan = true;
    tensor->gradient = gradient;
    diffusion->tensor = tensor;
  }
  auto masked = std::make_shared<MaskedOperation>();
  masked->inside = diffusion;
  return masked;
}

/** A mask of a trial's image, of which about one voxel of `outside` is outside. */
struct TrialMask
{
  std::vector<std::uint16_t> voxels;
  BufferView                 view;

  TrialMask(std::mt19937 & random, const Box & image, std::uint32_t outside = 3)
  {
    for (std::int64_t i = 0; i < image.NumberOfVoxels(); ++i)
    {
      voxels.push_back(random() % outside == 0 ? 0 : 256);
    }
    view = DenseView(voxels.data(), PixelType::UInt16, image);
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
    return trial % 4 == 3 ? RandomDiffusion(random, DiffusionMethod::SquaredGradient, 1)
                            : RandomDiffusion(random, static_cast<DiffusionMethod>(trial % 4), 1 + trial % 7);
  };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 48, make);
  CompareBits<std::uint8_t, float>(random, GetManager(), GetBackend(), 16, make);
  CompareBits<std::int32_t, double>(random, GetManager(), GetBackend(), 16, make);
}

std::shared_ptr<const DiffusionOperation>
MakeCoherence(std::mt19937 & random, const FilterImage & image, std::int64_t iterations)
{
  FilterParameters parameters;
  parameters.SetInteger("Iterations", iterations);
  parameters.Set("Sigma", std::vector<double>{ 0.6 + 0.2 * static_cast<double>(random() % 3) });
  parameters.Set("OuterSigma", std::vector<double>{ 0.5 * static_cast<double>(random() % 3) });
  parameters.SetReal("Contrast", 5 + static_cast<double>(random() % 30));
  parameters.SetReal("Alpha", 0.01);
  std::vector<std::int64_t> axes{ 0, 1, 2, 3 };
  std::shuffle(axes.begin(), axes.begin() + image.dimension, random);
  axes.resize(2 + random() % static_cast<unsigned int>(std::min(image.dimension, 3) - 1));
  parameters.Set("SpatialAxes", axes);
  return std::dynamic_pointer_cast<const DiffusionOperation>(
    MakeFilterOperation("coherence-diffusion", parameters, image));
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
    if (trial % 6 == 5)
    {
      FilterImage about;
      about.dimension = 3;
      about.extent = { { 14, 14, 14, 1, 1 } };
      about.inputKind = PixelTypeOf<TIn>();
      masked = InMask(std::make_shared<DiffusionOperation>(*MakeCoherence(random, about, 1 + trial % 2)));
    }
    else if (trial % 4 == 3)
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
    const BufferView view = DenseView(const_cast<TOut *>(whole.data()), PixelTypeOf<TOut>(), t.request.output.box);
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
  FilterImage  about;
  about.dimension = 3;
  about.extent = { { 14, 14, 14, 1, 1 } };
  for (int trial = 0; trial < 8; ++trial)
  {
    const auto operation = trial % 4 == 3 ? std::make_shared<DiffusionOperation>(*MakeCoherence(random, about, 2))
                                          : RandomDiffusion(random, static_cast<DiffusionMethod>(trial % 4), 3);
    Trial<std::int32_t, double> t(random, operation, trial % 4 == 3 ? about.extent : RandomExtent(random, 14));
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

/** In a mask that is a box, structures are those of the box alone. */
TEST_P(Diffusions, AlongStructuresInAMaskThatIsABoxAreThoseOfTheBox)
{
  std::mt19937 random(320);
  for (int trial = 0; trial < 4; ++trial)
  {
    FilterImage about;
    about.dimension = 3;
    about.extent = { { 12, 13, 11, 1, 1 } };
    about.inputKind = about.outputKind = PixelType::Float64;
    const auto            operation = MakeCoherence(random, about, 2);
    Trial<double, double> t(random, operation, about.extent);
    TrialMask             mask(random, t.request.image);
    const Box             box{ { { 2, 3, 1, 0, 0 } }, { { 9, 12, 8, 1, 1 } } };
    Trial<double, double> cropped(random, operation, box.Extents());
    const auto            inBox = [&](Coordinates at) {
      for (int a = 0; a < MaxDimension; ++a)
      {
        at[a] += box.lower[a];
      }
      return at;
    };
    std::fill(mask.voxels.begin(), mask.voxels.end(), std::uint16_t{ 0 });
    ForEachIndex(box, [&](const Coordinates & at) { At<std::uint16_t>(mask.view, at) = 1; });
    ForEachIndex(cropped.request.image,
                 [&](const Coordinates & at) { At<double>(cropped.image, at) = At<double>(t.image, inBox(at)); });
    t.request.operation = InMask(std::make_shared<DiffusionOperation>(*operation));
    for (auto * const each : { &t, &cropped })
    {
      each->request.backend = GetBackend();
      each->Prepare(each->request.image);
      if (each == &t)
      {
        each->request.inputs.push_back(mask.view);
      }
      GetManager().Execute(each->request);
    }
    ForEachIndex(cropped.request.image,
                 [&](const Coordinates & at) { ASSERT_NEAR(t.Result(inBox(at)), cropped.Result(at), 1e-8); });
  }
}

/** A ramp inside the mask, beside values that would make its gradient larger. */
TEST_P(Diffusions, TakeTheGradientMagnitudeInsideTheMask)
{
  std::mt19937 random(316);
  FilterImage  image;
  image.extent = { { 8, 5, 1, 1, 1 } };
  image.dimension = 2;
  image.inputKind = image.outputKind = PixelType::Float32;
  image.additionalInputs = { "MaskImage" };
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
  const std::vector<double> found =
    EstimateParameter(GetManager(), t.request, *GetFilter("diffusion").FindParameter("GradientMagnitude"));
  // Central differences of 2, 4, 4 and 2.
  EXPECT_DOUBLE_EQ(found.at(0), std::sqrt((4.0 + 16 + 16 + 4) / 4));
}

/** The eigenvalues of a symmetric matrix, and its eigenvectors as columns, by rotations of Jacobi. */
struct Eigensystem
{
  long double value[3]{};
  long double vector[3][3]{ { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };

  Eigensystem(long double (&a)[3][3], int size)
  {
    for (int sweep = 0; sweep < 60; ++sweep)
    {
      for (int p = 0; p < size; ++p)
      {
        for (int q = p + 1; q < size; ++q)
        {
          if (a[p][q] == 0)
          {
            continue;
          }
          const long double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
          const long double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
          const long double c = 1 / std::sqrt(t * t + 1);
          const auto        rotate = [&](long double & x, long double & y) {
            const long double before = x;
            x = c * x - t * c * y;
            y = t * c * before + c * y;
          };
          for (int k = 0; k < size; ++k)
          {
            rotate(a[k][p], a[k][q]);
            rotate(vector[k][p], vector[k][q]);
          }
          for (int k = 0; k < size; ++k)
          {
            rotate(a[p][k], a[q][k]);
          }
        }
      }
    }
    for (int i = 0; i < size; ++i)
    {
      value[i] = a[i][i];
    }
  }
};

/** The same at a voxel, over the run of voxels inside a mask around it: the value or the slope of the polynomial that
 * fits best. */
long double
CorrelatedInRun(const Field & u, const Coordinates & at, const DerivativeOperation & operation, int axis, int order)
{
  const auto & window = operation.scales.front().weights[axis];
  const auto   radius = static_cast<std::int64_t>(window.size() / 2);
  if (!u.Has(at) || window.empty())
  {
    return u(at);
  }
  std::vector<std::pair<std::int64_t, long double>> taps{ { 0, window[static_cast<std::size_t>(radius)] } };
  for (const int side : { -1, 1 })
  {
    for (std::int64_t t = side; std::abs(t) <= radius && u.Has(Moved(at, axis, t)); t += side)
    {
      taps.emplace_back(t, window[static_cast<std::size_t>(radius + t)]);
    }
  }
  long double all = 0;
  long double mean = 0;
  long double level = 0;
  for (const auto & [t, g] : taps)
  {
    all += g;
    mean += g * t;
    level += g * u(Moved(at, axis, t));
  }
  mean /= all;
  level /= all;
  if (order == 0)
  {
    return level;
  }
  long double above = 0;
  long double below = 0;
  for (const auto & [t, g] : taps)
  {
    above += g * (t - mean) * (u(Moved(at, axis, t)) - level);
    below += g * (t - mean) * (t - mean);
  }
  return taps.size() < 2 ? 0 : above / below * static_cast<long double>(operation.scales.front().factor[axis]);
}

/** A correlation along an axis with the weights that an operation has there for an order. */
Field
Correlated(const Field & u, const DerivativeOperation & operation, int axis, int order)
{
  const std::vector<double> table = operation.GetTable(0, axis, order, u.box.upper[axis]);
  const std::int64_t        rows = operation.GetNumberOfRows(0, axis, u.box.upper[axis]);
  const std::int64_t        radius = operation.GetRadius(0)[axis];
  Field                     out{ u.box, {}, u.inside };
  ForEachIndex(u.box, [&](const Coordinates & at) {
    if (!u.inside.empty())
    {
      out.values.push_back(CorrelatedInRun(u, at, operation, axis, order));
      return;
    }
    const std::int64_t row = WeightRow(at[axis], u.box.upper[axis], radius, rows);
    long double        sum = 0;
    for (std::int64_t t = -radius; t <= radius; ++t)
    {
      const Coordinates tap = Moved(at, axis, t);
      sum += u.Has(tap) ? u(tap) * table[static_cast<std::size_t>(row * (2 * radius + 1) + t + radius)] : 0.0L;
    }
    out.values.push_back(sum);
  });
  return out;
}

/** The elements (a, b) of the diffusion tensors, number a * 3 + b. */
std::vector<Field>
OracleTensors(const Field & u, const DiffusionOperation & operation)
{
  const std::vector<int> axes = operation.GetAxes();
  const auto             size = static_cast<int>(axes.size());
  std::vector<Field>     gradient;
  for (const int along : axes)
  {
    gradient.push_back(u);
    for (const int a : axes)
    {
      gradient.back() = Correlated(gradient.back(), *operation.tensor->gradient, a, a == along ? 1 : 0);
    }
  }
  std::vector<Field> tensors(9, u);
  for (int i = 0; i < size; ++i)
  {
    for (int j = 0; j < size; ++j)
    {
      Field & product = tensors[static_cast<std::size_t>(3 * i + j)];
      for (std::size_t n = 0; n < u.values.size(); ++n)
      {
        product.values[n] =
          gradient[static_cast<std::size_t>(i)].values[n] * gradient[static_cast<std::size_t>(j)].values[n];
      }
      for (const int a : axes)
      {
        product = Correlated(product, *operation.tensor, a, 0);
      }
    }
  }
  const long double alpha = operation.tensor->tensor.alpha;
  for (std::size_t n = 0; n < u.values.size(); ++n)
  {
    long double matrix[3][3]{};
    for (int i = 0; i < size; ++i)
    {
      for (int j = 0; j < size; ++j)
      {
        matrix[i][j] = tensors[static_cast<std::size_t>(3 * i + j)].values[n];
      }
    }
    const Eigensystem found(matrix, size);
    long double       squares = 0;
    int               least = 0;
    long double       most = 0;
    for (int i = 0; i < size; ++i)
    {
      least = found.value[i] < found.value[least] ? i : least;
      most = std::max(most, found.value[i]);
      for (int j = 0; j < i; ++j)
      {
        squares += (found.value[i] - found.value[j]) * (found.value[i] - found.value[j]);
      }
    }
    long double gap = most;
    for (int i = 0; i < size; ++i)
    {
      gap = i == least ? gap : std::min(gap, found.value[i] - found.value[least]);
    }
    // Without a direction of least change there is none to smooth along.
    const long double more =
      gap > 1e-6L * most && squares > 0 ? (1 - alpha) * std::exp(-operation.tensor->tensor.coherence / squares) : 0;
    for (int i = 0; i < size; ++i)
    {
      for (int j = 0; j < size; ++j)
      {
        tensors[static_cast<std::size_t>(3 * i + j)].values[n] =
          more * found.vector[i][least] * found.vector[j][least] + (i == j ? alpha : 0);
      }
    }
  }
  return tensors;
}

/** Descent of half the sum over all voxels of c D c + D_aa e_a^2, with c central differences and e half the differences
 * of forward and backward ones: each term is added where its voxels are. */
Field
OracleCoherence(Field u, const DiffusionOperation & operation)
{
  const std::vector<int> axes = operation.GetAxes();
  for (std::int64_t i = 0; i < operation.iterations; ++i)
  {
    const std::vector<Field> tensors = OracleTensors(u, operation);
    Field                    next = u;
    ForEachIndex(u.box, [&](const Coordinates & at) {
      const std::size_t n = u.Number(at);
      for (std::size_t a = 0; a < axes.size(); ++a)
      {
        const long double scale = operation.scale[axes[a]];
        const auto        difference = [&](std::size_t b, int sign) {
          const long double forward = u.Beside(at, axes[b], 1) - u(at);
          const long double backward = u(at) - u.Beside(at, axes[b], -1);
          return (forward + sign * backward) / 2 * static_cast<long double>(operation.scale[axes[b]]);
        };
        long double along = 0;
        for (std::size_t b = 0; b < axes.size(); ++b)
        {
          along += tensors[3 * a + b].values[n] * difference(b, 1);
        }
        const long double beside = tensors[4 * a].values[n] * difference(a, -1);
        for (const int side : { -1, 1 })
        {
          const Coordinates neighbor = Moved(at, axes[a], side);
          if (u.Has(at) && u.Has(neighbor))
          {
            // The derivative by the neighbor; that by the voxel itself is the opposite.
            const long double slope = (side * along + beside) / 2 * scale * operation.timeStep;
            next.values[u.Number(neighbor)] -= slope;
            next.values[n] += slope;
          }
        }
      }
    });
    u = next;
  }
  return u;
}

FilterImage
RandomFilterImage(std::mt19937 & random, int largest, PixelType kind)
{
  FilterImage image;
  image.dimension = 2 + static_cast<int>(random() % 3);
  image.inputKind = kind;
  image.outputKind = PixelType::Float64;
  for (int a = 0; a < MaxDimension; ++a)
  {
    image.extent[a] =
      a < image.dimension ? 1 + static_cast<std::int64_t>(random() % static_cast<unsigned int>(largest)) : 1;
    image.spacing[a] = 0.8 + 0.4 * static_cast<double>(random() % 3);
  }
  return image;
}

TEST_P(Diffusions, AlongStructuresAreWhatTheirDefinitionSays)
{
  std::mt19937 random(317);
  for (int trial = 0; trial < 24; ++trial)
  {
    const bool            isMasked = trial % 2 == 1;
    const FilterImage     about = RandomFilterImage(random, 9, PixelType::Float64);
    const auto            operation = MakeCoherence(random, about, 1 + trial % 3);
    Trial<double, double> t(random, operation, about.extent);
    const TrialMask       mask(random, t.request.image, isMasked && trial % 4 == 1 ? 12 : 3);
    Field                 image{ t.request.image, {}, {} };
    ForEachIndex(t.request.image, [&](const Coordinates & at) { image.values.push_back(At<double>(t.image, at)); });
    t.request.backend = GetBackend();
    if (isMasked)
    {
      t.request.operation = InMask(std::make_shared<DiffusionOperation>(*operation));
      image.inside.assign(mask.voxels.begin(), mask.voxels.end());
    }
    t.Prepare(t.request.image);
    if (isMasked)
    {
      t.request.inputs.push_back(mask.view);
    }
    GetManager().Execute(t.request);
    const Field expected = OracleCoherence(image, *operation);
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      ASSERT_NEAR(t.Result(at), static_cast<double>(expected(at)), 1e-6)
        << operation->GetKey() << " " << ToString(t.request.image) << " at " << ToString(at);
    });
  }
}

TEST_P(Diffusions, AlongStructuresOfChunksHaveTheBitsOfTheWhole)
{
  std::mt19937 random(318);
  const auto   compare = [&](auto pixel, auto out) {
    using Pixel = decltype(pixel);
    FilterImage image;
    image.dimension = 3;
    image.extent = { { 40, 40, 40, 1, 1 } };
    image.inputKind = PixelTypeOf<Pixel>();
    CompareBits<Pixel, decltype(out)>(
      random, GetManager(), GetBackend(), 12, [&](int trial) { return MakeCoherence(random, image, 1 + trial % 3); });
  };
  compare(float{}, float{});
  compare(std::uint8_t{}, float{});
  compare(std::int32_t{}, double{});
}

/** The largest time step, which is not above the limit of its proof. */
TEST_P(Diffusions, AlongStructuresKeepTheMeanAndAddNoContrast)
{
  std::mt19937 random(319);
  FilterImage  image;
  image.dimension = 2;
  image.extent = { { 17, 14, 1, 1, 1 } };
  image.inputKind = image.outputKind = PixelType::Float64;
  FilterParameters parameters;
  parameters.SetInteger("Iterations", 1);
  parameters.SetReal("TimeStep", 0.25);
  parameters.SetReal("Alpha", 1);
  const auto            operation = MakeFilterOperation("coherence-diffusion", parameters, image);
  Trial<double, double> t(random, operation, image.extent);
  double                before[2]{ 0, 1e300 };
  for (int i = 0; i < 5; ++i)
  {
    double sums[2]{};
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      sums[0] += At<double>(t.image, at);
      sums[1] += At<double>(t.image, at) * At<double>(t.image, at);
    });
    EXPECT_TRUE(i == 0 || std::abs(sums[0] - before[0]) < 1e-9) << sums[0] << " after " << before[0];
    EXPECT_LT(sums[1], before[1]);
    std::copy(sums, sums + 2, before);
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    ForEachIndex(t.request.image, [&](const Coordinates & at) { At<double>(t.image, at) = t.Result(at); });
  }
  parameters.SetReal("TimeStep", 0.26);
  EXPECT_THROW(MakeFilterOperation("coherence-diffusion", parameters, image), ParameterError);
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

/** Rows so long that iterations go together through few of them at a time; those of its parts are short. */
TEST_P(Diffusions, TotalVariationOfLongRowsHasTheBitsOfItsParts)
{
  std::mt19937 random(321);
  const auto   operation = std::make_shared<DiffusionOperation>();
  operation->method = DiffusionMethod::TotalVariation;
  operation->iterations = 11;
  operation->scale[0] = operation->scale[1] = operation->scale[2] = 1;
  operation->weight = 15;
  Trial<float, float> t(random, operation, { { 3000, 23, 14, 1, 1 } });
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  const std::vector<float> whole = t.output;
  const BufferView view = DenseView(const_cast<float *>(whole.data()), PixelType::Float32, t.request.output.box);
  for (const std::int64_t first : { 0, 1400, 2920 })
  {
    Box region = t.request.image;
    region.lower[0] = first;
    region.upper[0] = first + 80;
    t.Prepare(region);
    GetManager().Execute(t.request);
    ForEachIndex(region, [&](const Coordinates & at) { ASSERT_EQ(t.Result(at), At<float>(view, at)) << ToString(at); });
  }
}

TEST(DiffusionRows, RefuseOutsideValuesThatAreNone)
{
  FilterImage image;
  image.extent = { { 9, 9, 1, 1, 1 } };
  image.dimension = 2;
  image.inputKind = image.outputKind = PixelType::UInt8;
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
  image.additionalInputs = { "MaskImage" };
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
  image.inputKind = image.outputKind = PixelType::Float32;
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
