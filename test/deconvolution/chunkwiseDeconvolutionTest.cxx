/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDeconvolutionOperation.h"
#include "chunkwiseCpuDeconvolutionRows.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCutTrial.h"
#include "chunkwiseDeconvolutionRules.h"
#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseMemoryImage.h"
#include "chunkwiseOutOfCoreRunner.h"
#include "chunkwiseSpectralDeconvolutionOperation.h"
#include "chunkwiseStreamedRun.h"

#include <cmath>
#include <complex>

using namespace chunkwise;

namespace
{

/** Values for the voxels of a box. */
struct Grid
{
  Box                 box{};
  std::vector<double> values;

  explicit Grid(const Box & of, double value = 0)
    : box(of)
    , values(static_cast<std::size_t>(of.NumberOfVoxels()), value)
  {}
  bool
  Has(const Coordinates & at) const
  {
    bool has = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      has = has && at[a] >= box.lower[a] && at[a] < box.upper[a];
    }
    return has;
  }
  double &
  At(const Coordinates & at)
  {
    return values[static_cast<std::size_t>(DenseView(nullptr, PixelType::UInt8, box).Offset(at))];
  }
  double
  Of(const Coordinates & at) const
  {
    return Has(at) ? values[static_cast<std::size_t>(DenseView(nullptr, PixelType::UInt8, box).Offset(at))] : 0.0;
  }
};

/** The weight with which a kernel takes the voxel `from` into the voxel `to`. */
double
TapOf(const ConvolutionKernel & kernel, const Coordinates & from, const Coordinates & to)
{
  const Coordinates strides = DenseStrides(kernel.GetExtent());
  std::int64_t      offset = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t t = to[a] - from[a] + kernel.GetCenter()[a];
    if (t < 0 || t >= kernel.GetExtent()[a])
    {
      return 0;
    }
    offset += t * strides[a];
  }
  return kernel.GetWeights()[static_cast<std::size_t>(offset)];
}

/** The part of a voxel that spreads to another one: sum over nodes of the node's weight at `from` times its kernel. */
double
Spread(const DeconvolutionOperation & operation, const Coordinates & from, const Coordinates & to)
{
  const ConvolutionKernel & any = operation.GetAnyKernel();
  const Coordinates         strides = DenseStrides(any.GetExtent());
  std::int64_t              offset = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t t = to[a] - from[a] + any.GetCenter()[a];
    if (t < 0 || t >= any.GetExtent()[a])
    {
      return 0;
    }
    offset += t * strides[a];
  }
  if (!operation.varying)
  {
    return operation.kernel->GetWeights()[static_cast<std::size_t>(offset)];
  }
  double sum = 0;
  for (std::size_t node = 0; node < operation.varying->kernels.size(); ++node)
  {
    const Coordinates position = operation.varying->GetNodePosition(static_cast<std::int64_t>(node));
    double            weight = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      weight *= operation.varying->GetWeight(a, position[a], from[a]);
    }
    sum += weight * operation.varying->kernels[node]->GetWeights()[static_cast<std::size_t>(offset)];
  }
  return sum;
}

/** The definition by double loops, in the image's coordinates. */
class Definition
{
public:
  Definition(const DeconvolutionOperation & operation, const Grid & measured, const Grid & weights, const Grid * start)
    : m_Operation(operation)
    , m_Data(measured)
    , m_Weights(weights)
    , m_Estimate(GrownBox())
    , m_Norm(GrownBox())
  {
    double all = 0;
    double light = 0;
    ForEachIndex(m_Data.box, [&](const Coordinates & at) {
      double & d = m_Data.At(at);
      double & w = m_Weights.At(at);
      if (!std::isfinite(d) || d >= operation.saturation || !(w > 0))
      {
        d = w = 0;
      }
      all += w;
      light += w * (d - operation.background);
    });
    m_Norm = Backward(m_Weights);
    ForEachIndex(m_Estimate.box, [&](const Coordinates & at) {
      Coordinates near = at;
      for (int a = 0; a < MaxDimension; ++a)
      {
        near[a] = std::min(std::max(at[a], m_Data.box.lower[a]), m_Data.box.upper[a] - 1);
      }
      m_Estimate.At(at) = start ? start->Of(near) : std::max(light / all, 0.0);
      if (IsRichardsonLucy() && !IsSeen(at))
      {
        m_Estimate.At(at) = 0;
      }
    });
  }

  Grid
  Run()
  {
    Grid point = m_Estimate;
    Grid last = m_Estimate;
    Grid step(point.box);
    for (std::int64_t i = 0; i < m_Operation.iterations; ++i)
    {
      Grid ratio = Forward(point);
      ForEachIndex(m_Data.box, [&](const Coordinates & at) {
        const double expected = ratio.At(at) + m_Operation.background;
        const double w = m_Weights.At(at);
        ratio.At(at) = !IsRichardsonLucy() ? w * (m_Data.At(at) - expected)
                       : expected > 0      ? w * m_Data.At(at) / expected
                                           : 0;
      });
      const Grid correction = Backward(ratio);
      Grid       next = point;
      ForEachIndex(next.box, [&](const Coordinates & at) {
        double & u = next.At(at);
        if (IsRichardsonLucy())
        {
          const double norm = m_Norm.Of(at) - m_Operation.totalVariation * Curvature(point, at);
          u = IsSeen(at) ? std::max(norm > 0 ? u * correction.Of(at) / norm : u, 0.0) : 0.0;
          return;
        }
        u += m_Operation.relaxation * correction.Of(at);
        u = m_Operation.method == DeconvolutionMethod::ProjectedLandweber ? std::max(u, 0.0) : u;
      });
      if (!m_Operation.accelerates)
      {
        point = next;
        continue;
      }
      double both = 0;
      double length = 0;
      for (std::size_t k = 0; k < next.values.size(); ++k)
      {
        const double now = next.values[k] - point.values[k];
        both += now * step.values[k];
        length += step.values[k] * step.values[k];
        step.values[k] = now;
      }
      const double a = i > 0 && length > 0 ? std::min(std::max(both / length, 0.0), 1.0) : 0.0;
      if (i + 1 == m_Operation.iterations)
      {
        return next;
      }
      for (std::size_t k = 0; k < next.values.size(); ++k)
      {
        point.values[k] = std::max(next.values[k] + a * (next.values[k] - last.values[k]), 0.0);
      }
      last = next;
    }
    return point;
  }

private:
  bool
  IsRichardsonLucy() const
  {
    return m_Operation.method == DeconvolutionMethod::RichardsonLucy;
  }
  Box
  GrownBox() const
  {
    const Box measured = m_Operation.GetMeasuredBox();
    Box       box = Box::FromExtent(m_Operation.GetEstimateExtent());
    for (int a = 0; a < MaxDimension; ++a)
    {
      box.lower[a] -= measured.lower[a];
      box.upper[a] -= measured.lower[a];
    }
    return box;
  }
  bool
  IsSeen(const Coordinates & at) const
  {
    const ConvolutionKernel & kernel =
      m_Operation.backProjector ? *m_Operation.backProjector : m_Operation.GetAnyKernel();
    return m_Norm.Of(at) > DeconvolutionOperation::LeastShare * kernel.GetSum();
  }
  Grid
  Forward(const Grid & estimate) const
  {
    Grid blurred(m_Data.box);
    ForEachIndex(blurred.box, [&](const Coordinates & to) {
      double sum = 0;
      ForEachIndex(estimate.box,
                   [&](const Coordinates & from) { sum += Spread(m_Operation, from, to) * estimate.Of(from); });
      blurred.At(to) = sum;
    });
    return blurred;
  }
  Grid
  Backward(const Grid & ratio) const
  {
    Grid result(GrownBox());
    ForEachIndex(result.box, [&](const Coordinates & to) {
      double sum = 0;
      ForEachIndex(ratio.box, [&](const Coordinates & from) {
        sum +=
          (m_Operation.backProjector ? TapOf(*m_Operation.backProjector, from, to) : Spread(m_Operation, to, from)) *
          ratio.Of(from);
      });
      result.At(to) = sum;
    });
    return result;
  }
  /** Differences of the unit vectors of gradients. */
  double
  Curvature(const Grid & u, const Coordinates & at) const
  {
    if (m_Operation.totalVariation == 0)
    {
      return 0;
    }
    const auto flux = [&](const Coordinates & from, int a) {
      double square = 1e-12;
      double along = 0;
      for (int b = 0; b < MaxDimension; ++b)
      {
        Coordinates next = from;
        ++next[b];
        const double difference = u.Has(next) ? u.Of(next) - u.Of(from) : 0;
        square += difference * difference;
        along = b == a ? difference : along;
      }
      return along / std::sqrt(square);
    };
    double sum = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      Coordinates before = at;
      --before[a];
      sum += flux(at, a) - (u.Has(before) ? flux(before, a) : 0.0);
    }
    return sum;
  }

  const DeconvolutionOperation & m_Operation;
  Grid                           m_Data;
  Grid                           m_Weights;
  Grid                           m_Estimate;
  Grid                           m_Norm;
};

std::shared_ptr<const ConvolutionKernel>
RandomLight(std::mt19937 & random, const Coordinates & extent)
{
  std::vector<double> weights(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  Coordinates         center{};
  double              sum = 0;
  for (double & weight : weights)
  {
    weight = 0.05 + static_cast<double>(random()) / 4294967296.0;
    sum += weight;
  }
  for (double & weight : weights)
  {
    weight /= sum;
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    center[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a]));
  }
  return std::make_shared<ConvolutionKernel>(extent, center, weights);
}

/** Images for a run, of T as the measured image and the result. */
template <typename T>
struct DeconvolutionTrial
{
  std::shared_ptr<DeconvolutionOperation> operation{ std::make_shared<DeconvolutionOperation>() };
  Box                                     box;
  std::vector<T>                          data;
  std::vector<std::uint8_t>               weights;
  std::vector<T>                          start;
  std::vector<T>                          output;

  DeconvolutionTrial(std::mt19937 & random, const Coordinates & extent)
    : box(Box::FromExtent(extent))
  {
    operation->image = extent;
    operation->inputKind = operation->outputKind = PixelTypeOf<T>();
    for (std::int64_t i = 0; i < box.NumberOfVoxels(); ++i)
    {
      data.push_back(static_cast<T>(5 + random() % 90));
      weights.push_back(static_cast<std::uint8_t>(random() % 4 ? 1 : 0));
      start.push_back(static_cast<T>(1 + random() % 50));
    }
    output.assign(data.size(), T(0));
  }
  ExecutionRequest
  Request()
  {
    ExecutionRequest request;
    request.operation = operation;
    request.image = request.region = box;
    request.inputs = { DenseView(data.data(), PixelTypeOf<T>(), box) };
    if (operation->hasWeights)
    {
      request.inputs.push_back(DenseView(weights.data(), PixelType::UInt8, box));
    }
    if (operation->hasStart)
    {
      request.inputs.push_back(DenseView(start.data(), PixelTypeOf<T>(), box));
    }
    request.output = DenseView(output.data(), PixelTypeOf<T>(), box);
    return request;
  }
  void
  CompareWithDefinition(double bound)
  {
    Manager host({});
    host.Execute(this->Request());
    Grid measured(box);
    Grid known(box, 1.0);
    Grid first(box);
    for (std::size_t i = 0; i < data.size(); ++i)
    {
      measured.values[i] = static_cast<double>(data[i]);
      known.values[i] = operation->hasWeights ? weights[i] : 1;
      first.values[i] = static_cast<double>(start[i]);
    }
    const Grid expected = Definition(*operation, measured, known, operation->hasStart ? &first : nullptr).Run();
    ForEachIndex(box, [&](const Coordinates & at) {
      const double value = expected.Of(at);
      ASSERT_NEAR(
        static_cast<double>(output[static_cast<std::size_t>(DenseView(nullptr, PixelType::UInt8, box).Offset(at))]),
        value,
        bound * (1 + std::abs(value)))
        << operation->GetKey() << " " << ToString(operation->image) << " at " << ToString(at);
    });
  }
};

TEST(Deconvolution, IsWhatItsDefinitionSays)
{
  std::mt19937 random(81);
  for (int trial = 0; trial < 24; ++trial)
  {
    const bool        isFlat = trial % 3 == 0;
    const Coordinates extent = isFlat ? Coordinates{ { 13, 9, 1, 1, 1 } } : Coordinates{ { 7, 6, 5, 1, 1 } };
    Coordinates       kernel = { { 1 + static_cast<std::int64_t>(random() % 4), 3, isFlat ? 1 : 2, 1, 1 } };
    const auto        prepare = [&](auto & t) {
      auto & operation = *t.operation;
      operation.kernel = RandomLight(random, kernel);
      operation.iterations = 1 + static_cast<std::int64_t>(random() % 4);
      operation.background = random() % 2 ? 2.5 : 0;
      operation.hasWeights = random() % 2 != 0;
      operation.hasStart = random() % 2 != 0;
      operation.accelerates = trial % 4 == 1;
      operation.saturation = trial % 5 == 2 ? 80 : operation.saturation;
      operation.method = trial % 8 == 6   ? DeconvolutionMethod::Landweber
                                : trial % 8 == 7 ? DeconvolutionMethod::ProjectedLandweber
                                                 : DeconvolutionMethod::RichardsonLucy;
      operation.relaxation = operation.method == DeconvolutionMethod::RichardsonLucy ? 1 : 0.7;
      operation.totalVariation = trial % 8 == 3 ? 0.01 : 0;
      if (trial % 6 == 5)
      {
        operation.backProjector = RandomLight(random, kernel);
      }
      if (trial % 6 == 4)
      {
        const auto varying = std::make_shared<VaryingConvolutionOperation>();
        varying->nodes = { { 2, 1, 1, 1, 1 } };
        varying->first[0] = 2;
        varying->spacing[0] = 3.5;
        varying->kernels = { operation.kernel,
                             std::make_shared<ConvolutionKernel>(
                               kernel,
                               operation.kernel->GetCenter(),
                               std::vector<double>(operation.kernel->GetWeights().size(),
                                                   1.0 / static_cast<double>(operation.kernel->GetWeights().size()))) };
        operation.varying = varying;
        operation.kernel = nullptr;
      }
    };
    DeconvolutionTrial<double> inDouble(random, extent);
    prepare(inDouble);
    inDouble.CompareWithDefinition(1e-9);
    DeconvolutionTrial<float> inFloat(random, extent);
    prepare(inFloat);
    inFloat.CompareWithDefinition(2e-3);
  }
}

/** Rows of n voxels on each instruction set, beside the rules voxel by voxel. */
template <typename T>
void
CompareRows(std::mt19937 & random, std::int64_t n)
{
  using Limits = std::numeric_limits<T>;
  const T specials[] = {
    T(0), T(-3), Limits::quiet_NaN(), Limits::infinity(), Limits::denorm_min(), Limits::max(), T(1)
  };
  const auto make = [&] {
    std::vector<T> row;
    for (std::int64_t i = 0; i < n; ++i)
    {
      row.push_back(random() % 5 ? static_cast<T>(random() % 1000) / 7 : specials[random() % 7]);
    }
    return row;
  };
  const std::vector<T> blurred = make();
  std::vector<T>       measured = make();
  std::vector<T>       weights = make();
  const std::int64_t   first = static_cast<std::int64_t>(random() % 50);
  const bool           isRatio = random() % 3 != 0;
  const T              background = random() % 2 ? T(2.5) : T(0);
  const T              least = random() % 2 ? T(1) : T(0);
  const auto &         rows = GetDeconvolutionRowFunctions<T>();
  std::vector<T>       known = measured;
  std::vector<T>       all = weights;
  rows.hide(measured.data(), weights.data(), false, 120, n);
  rows.hide(known.data(), all.data(), true, 120, n);
  std::vector<T> ratio = blurred;
  RowSum         divergence;
  RowSum         misfit;
  RowSum         sums[2];
  rows.ratio(isRatio,
             ratio.data(),
             measured.data(),
             weights.data(),
             background,
             least,
             first,
             divergence.GetLanes(),
             misfit.GetLanes(),
             n);
  std::vector<T> updated = blurred;
  rows.update(updated.data(), updated.data(), measured.data(), weights.data(), 2, n);
  const auto same = [](const auto & one, const auto & other) { return std::memcmp(&one, &other, sizeof(one)) == 0; };
  for (std::int64_t i = 0; i < n; ++i)
  {
    const auto k = static_cast<std::size_t>(i);
    const T    d = measured[k];
    const T    w = weights[k];
    ASSERT_TRUE(std::isfinite(d) && d < 120 && w >= 0 && (w > 0 || d == 0));
    ASSERT_TRUE(w > 0 ? all[k] == 1 && known[k] == d : true);
    if (w > 0)
    {
      const DeconvolutionMisfit terms(isRatio, blurred[k], d, w, background);
      sums[0].Add(first + i, terms.divergence);
      sums[1].Add(first + i, terms.misfit);
    }
    const T expected = DeconvolutionRatio(isRatio, blurred[k], d, w, background, least);
    ASSERT_TRUE(same(ratio[k], expected) || (std::isnan(ratio[k]) && std::isnan(expected)))
      << ratio[k] << " " << expected;
    const T after = w > 2 ? RichardsonLucyUpdate(blurred[k], d, w) : T(0);
    ASSERT_TRUE(same(updated[k], after) || (std::isnan(updated[k]) && std::isnan(after))) << updated[k] << " " << after;
  }
  const double taken[] = { divergence.Take(), misfit.Take(), sums[0].Take(), sums[1].Take() };
  EXPECT_TRUE(same(taken[0], taken[2]) || (std::isnan(taken[0]) && std::isnan(taken[2])))
    << taken[0] << " " << taken[2];
  EXPECT_TRUE(same(taken[1], taken[3]) || (std::isnan(taken[1]) && std::isnan(taken[3])))
    << taken[1] << " " << taken[3];
}

TEST(Deconvolution, RowsOfAllInstructionSetsAreTheRules)
{
  const std::string before = GetCpuLevel().name;
  for (const char * const level : { "baseline", "avx2", "avx512" })
  {
    if (SetCpuLevel(level))
    {
      std::mt19937 random(87);
      for (std::int64_t n = 1; n < 100; ++n)
      {
        CompareRows<float>(random, n);
        CompareRows<double>(random, n);
      }
    }
  }
  SetCpuLevel(before.c_str());
}

TEST(Deconvolution, GivesTheSameBitsInMemoryAndInSlabsWithAnyThreads)
{
  std::mt19937 random(82);
  for (int trial = 0; trial < 4; ++trial)
  {
    DeconvolutionTrial<float> t(random, { { 12, 10, 230, 1, 1 } });
    t.operation->kernel = RandomLight(random, { { 5, 4, 5, 1, 1 } });
    t.operation->iterations = 3;
    t.operation->hasWeights = trial % 2 == 0;
    t.operation->accelerates = trial % 3 != 0;
    t.operation->totalVariation = trial % 3 == 1 ? 0.002 : 0;
    t.operation->relativeChange = 1e-9;
    Manager               host({});
    const ExecutionReport report = host.Execute(t.Request());
    const auto            whole = t.output;

    const auto       executor = MakeThreadExecutor(1 + static_cast<unsigned int>(trial % 3));
    OutOfCoreRequest request;
    request.operation = t.operation;
    for (const BufferView & input : t.Request().inputs)
    {
      request.sources.push_back(std::make_shared<MemoryImage>(input));
    }
    t.output.assign(t.output.size(), 0.0f);
    request.sink = std::make_shared<MemoryImage>(t.Request().output);
    request.executor = executor.get();
    request.spoolFolder = testing::TempDir();
    const OutOfCoreRunner & runner = *t.operation->GetOutOfCoreRunner();
    request.hostBytes = runner.GetLeastHostBytes(host, request);
    const OutOfCoreReport inSlabs = runner.Run(host, request, nullptr);
    EXPECT_GT(inSlabs.spoolWritten, 0u);
    EXPECT_EQ(t.output, whole) << trial;
    ASSERT_EQ(inSlabs.execution.figures.size(), report.figures.size());
    for (std::size_t i = 0; i < report.figures.size(); ++i)
    {
      EXPECT_EQ(inSlabs.execution.figures[i].first, report.figures[i].first);
      EXPECT_EQ(inSlabs.execution.figures[i].second, report.figures[i].second) << report.figures[i].first;
    }
    request.hostBytes -= 1;
    EXPECT_THROW(runner.Run(host, request, nullptr), BudgetError);
  }
}

/** States in memory. They are always due, and the run is ended once one is kept at the step `last`. */
class StatesInMemory : public StateStore
{
public:
  struct Ended
  {};

  std::int64_t last{ std::numeric_limits<std::int64_t>::max() };
  std::int64_t steps{ 0 };

  std::int64_t
  Open(const std::map<std::string, std::string> & run, std::uint64_t bytes) override
  {
    EXPECT_TRUE(steps == 0 || run == m_Run);
    m_Run = run;
    m_Room = bytes;
    m_At = 0;
    m_Next.clear();
    return steps;
  }
  void
  Read(void * data, std::size_t bytes) override
  {
    ASSERT_LE(m_At + bytes, m_State.size());
    std::memcpy(data, m_State.data() + m_At, bytes);
    m_At += bytes;
  }
  void
  EndReading() override
  {
    EXPECT_EQ(m_At, m_State.size());
  }
  bool
  IsDue() const override
  {
    return true;
  }
  void
  Write(const void * data, std::size_t bytes) override
  {
    const auto * const from = static_cast<const unsigned char *>(data);
    m_Next.insert(m_Next.end(), from, from + bytes);
  }
  void
  Keep(std::int64_t done) override
  {
    EXPECT_GT(done, steps);
    EXPECT_LE(m_Next.size(), m_Room);
    steps = done;
    m_State.swap(m_Next);
    m_Next.clear();
    if (done >= last)
    {
      throw Ended();
    }
  }

private:
  std::map<std::string, std::string> m_Run;
  std::uint64_t                      m_Room{ 0 };
  std::vector<unsigned char>         m_State;
  std::vector<unsigned char>         m_Next;
  std::size_t                        m_At{ 0 };
};

/** Runs that end after any iterations, each in memory, in slabs or on devices, and go on: the bits and figures are
 * those of `request` without an end. With `deviceBytes` devices convolve, but do not hold the images. */
template <typename T>
void
CompareResumed(std::mt19937 & random, Manager & manager, DeconvolutionTrial<T> & t, const ExecutionRequest & request,
               std::size_t deviceBytes = 0)
{
  const ExecutionReport report = manager.Execute(request);
  const auto            whole = t.output;
  const std::int64_t    iterations = t.operation->iterations;
  const auto            states = std::make_shared<StatesInMemory>();
  OutOfCoreRequest      parts;
  parts.operation = t.operation;
  parts.backend = request.backend;
  parts.devices = request.devices;
  parts.spoolFolder = testing::TempDir();
  for (const BufferView & input : request.inputs)
  {
    parts.sources.push_back(std::make_shared<MemoryImage>(input));
  }
  parts.sink = std::make_shared<MemoryImage>(request.output);
  parts.states = states;
  const OutOfCoreRunner & runner = *t.operation->GetOutOfCoreRunner();
  ASSERT_TRUE(runner.KeepsStates());
  const std::uint64_t least = runner.GetLeastHostBytes(manager, parts);
  t.output.assign(t.output.size(), T(0));
  const auto run = [&](std::int64_t upTo) {
    parts.hostBytes = random() % 2 ? 0 : least;
    parts.budgets.device = parts.hostBytes == 0 && random() % 2 ? deviceBytes : 0;
    t.operation->iterations = upTo;
    return runner.Run(manager, parts, nullptr);
  };
  while (states->steps + 1 < iterations)
  {
    states->last = std::min(states->steps + 1 + static_cast<std::int64_t>(random() % 2), iterations - 1);
    // A run may also have been asked for fewer iterations.
    EXPECT_THROW(run(random() % 2 ? iterations : states->last + 1), StatesInMemory::Ended);
    EXPECT_THROW(run(states->steps - 1), ParameterError);
  }
  states->last = std::numeric_limits<std::int64_t>::max();
  const OutOfCoreReport last = run(iterations);
  EXPECT_EQ(t.output, whole);
  EXPECT_EQ(last.execution.figures, report.figures);

  // As many iterations as are done already.
  ASSERT_EQ(states->steps, iterations - 1);
  t.operation->iterations = states->steps;
  manager.Execute(request);
  const auto fewer = t.output;
  t.output.assign(t.output.size(), T(0));
  run(states->steps);
  EXPECT_EQ(t.output, fewer);
  t.operation->iterations = iterations;
}

TEST(Deconvolution, GoesOnWithTheStateOfARunThatHasEnded)
{
  std::mt19937 random(88);
  for (int trial = 0; trial < 12; ++trial)
  {
    DeconvolutionTrial<float> t(random, { { 12, 10, 60, 1, 1 } });
    t.operation->kernel = RandomLight(random, { { 5, 4, 5, 1, 1 } });
    t.operation->iterations = 6;
    t.operation->hasWeights = trial % 2 == 0;
    t.operation->hasStart = trial % 4 == 3;
    t.operation->accelerates = trial % 3 != 0;
    t.operation->totalVariation = trial % 4 == 1 ? 0.002 : 0;
    t.operation->method = trial % 4 == 2 ? DeconvolutionMethod::Landweber : DeconvolutionMethod::RichardsonLucy;
    t.operation->relaxation = 0.5;
    t.operation->relativeChange = trial % 2 ? 1e-9 : 0;
    SCOPED_TRACE(trial);
    Manager host({});
    CompareResumed(random, host, t, t.Request());
  }
}

class DeconvolutionOnDevices : public KernelTest
{
protected:
  enum class Trial
  {
    Weights,
    TotalVariation,
    Plane,
    Landweber,
    Varying,
    VaryingPlane
  };
  void
  CompareCuts(Trial trial);
};

/** Hardly more than the least memory of a device with which a request is run. */
std::size_t
LeastOfDevice(Manager & manager, ExecutionRequest request)
{
  request.budgets.device = 1;
  try
  {
    manager.Execute(request);
  }
  catch (const BudgetError & error)
  {
    return error.needed + error.needed / 4;
  }
  ADD_FAILURE() << "one byte of a device is enough";
  return 0;
}

void
DeconvolutionOnDevices::CompareCuts(Trial trial)
{
  std::mt19937 random(84 + static_cast<unsigned int>(trial));
  const bool   isPlane = trial == Trial::Plane || trial == Trial::VaryingPlane;
  const bool   varies = trial == Trial::Varying || trial == Trial::VaryingPlane;
  // CUDA has fast transforms from a length of 86 on.
  const Coordinates solid =
    GetParam() == Place::Cuda ? Coordinates{ { 100, 94, 130, 1, 1 } } : Coordinates{ { 20, 18, 110, 1, 1 } };
  const Coordinates         extent = isPlane ? Coordinates{ { 150, 130, 1, 1, 1 } } : solid;
  DeconvolutionTrial<float> t(random, extent);
  t.operation->kernel =
    RandomLight(random, isPlane ? Coordinates{ { 9, 8, 1, 1, 1 } } : Coordinates{ { 5, 4, 5, 1, 1 } });
  if (varies)
  {
    const auto varying = std::make_shared<VaryingConvolutionOperation>();
    varying->nodes = { { 2, 3, 1, 1, 1 } };
    for (int a = 0; a < 2; ++a)
    {
      varying->spacing[a] = static_cast<double>(extent[a]) / static_cast<double>(varying->nodes[a]);
      varying->first[a] = (varying->spacing[a] - 1) / 2;
    }
    for (int node = 0; node < 6; ++node)
    {
      const auto light = RandomLight(random, t.operation->kernel->GetExtent());
      varying->kernels.push_back(
        std::make_shared<ConvolutionKernel>(light->GetExtent(), t.operation->kernel->GetCenter(), light->GetWeights()));
    }
    t.operation->varying = varying;
    t.operation->kernel = nullptr;
  }
  t.operation->iterations = 3;
  t.operation->hasWeights = isPlane || trial == Trial::Weights;
  t.operation->hasStart = trial == Trial::Landweber;
  t.operation->accelerates = isPlane || trial == Trial::TotalVariation;
  t.operation->totalVariation = trial == Trial::TotalVariation ? 0.002 : 0;
  t.operation->method =
    trial == Trial::Landweber ? DeconvolutionMethod::ProjectedLandweber : DeconvolutionMethod::RichardsonLucy;
  t.operation->relaxation = 0.7;
  t.operation->relativeChange = 1e-9;
  for (std::size_t i = 0; isPlane && i < t.weights.size(); ++i)
  {
    // Not a mask: devices need an image of them.
    t.weights[i] = static_cast<std::uint8_t>(random() % 4);
  }
  ExecutionRequest request = t.Request();
  request.backend = GetBackend();
  request.devices = { 0 };
  const ExecutionReport report = GetManager().Execute(request);
  EXPECT_EQ(report.backend, "cuda");
  const auto whole = t.output;
  const auto compare = [&](const ExecutionReport & other, const char * how) {
    EXPECT_EQ(t.output, whole) << how;
    ASSERT_EQ(other.figures.size(), report.figures.size());
    for (std::size_t i = 0; i < report.figures.size(); ++i)
    {
      EXPECT_EQ(other.figures[i], report.figures[i]) << how;
    }
    t.output.assign(t.output.size(), 0.0f);
  };
  t.output.assign(t.output.size(), 0.0f);
  request.devices.clear();
  const ExecutionReport onAll = GetManager().Execute(request);
  compare(onAll, "on all devices");
  if (GetParam() == Place::Fake && !isPlane && !varies && t.operation->totalVariation == 0)
  {
    // The image has two tiles.
    ASSERT_EQ(onAll.chunksPerDevice.size(), 2u);
    EXPECT_GT(std::min(onAll.chunksPerDevice[0], onAll.chunksPerDevice[1]), 2 * t.operation->iterations);
  }

  request.budgets.device = LeastOfDevice(GetManager(), request);
  compare(GetManager().Execute(request), "in small chunks");

  OutOfCoreRequest slabs;
  slabs.operation = t.operation;
  for (const BufferView & input : request.inputs)
  {
    slabs.sources.push_back(std::make_shared<MemoryImage>(input));
  }
  slabs.sink = std::make_shared<MemoryImage>(request.output);
  slabs.spoolFolder = testing::TempDir();
  slabs.backend = GetBackend();
  const OutOfCoreRunner & runner = *t.operation->GetOutOfCoreRunner();
  slabs.budgets = request.budgets;
  slabs.hostBytes = runner.GetLeastHostBytes(GetManager(), slabs);
  const OutOfCoreReport inSlabs = runner.Run(GetManager(), slabs, nullptr);
  // A tile of kernels that vary is the whole image.
  EXPECT_TRUE(inSlabs.spoolWritten > 0 || isPlane || varies);
  compare(inSlabs.execution, "in slabs");

  // Images that devices hold go there plane by plane.
  const std::uint64_t leastOfSlabs = slabs.hostBytes;
  slabs.budgets = Budgets();
  slabs.hostBytes = runner.GetLeastHostBytes(GetManager(), slabs);
  const OutOfCoreReport held = runner.Run(GetManager(), slabs, nullptr);
  if (t.operation->totalVariation == 0)
  {
    EXPECT_LE(slabs.hostBytes, leastOfSlabs);
    EXPECT_EQ(held.spoolWritten, 0u);
  }
  compare(held.execution, "plane by plane");

  // The CPU's transforms have other last bits, which iterations do not magnify much.
  request.backend = BackendChoice::CPU;
  request.budgets = Budgets();
  EXPECT_EQ(GetManager().Execute(request).backend, "cpu");
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < whole.size(); ++i)
  {
    error += std::pow(static_cast<double>(whole[i]) - static_cast<double>(t.output[i]), 2);
    size += std::pow(static_cast<double>(whole[i]), 2);
  }
  EXPECT_LT(std::sqrt(error / size), 1e-5);
  if (GetParam() == Place::Fake)
  {
    EXPECT_EQ(t.output, whole);
  }
}

TEST_P(DeconvolutionOnDevices, GivesTheSameBitsHoweverItIsCut)
{
  CompareCuts(Trial::Weights);
}

TEST_P(DeconvolutionOnDevices, GivesTheSameBitsWithTotalVariation)
{
  CompareCuts(Trial::TotalVariation);
}

TEST_P(DeconvolutionOnDevices, GivesTheSameBitsInAPlane)
{
  CompareCuts(Trial::Plane);
}

TEST_P(DeconvolutionOnDevices, GivesTheSameBitsByLandweber)
{
  CompareCuts(Trial::Landweber);
}

TEST_P(DeconvolutionOnDevices, GivesTheSameBitsWithKernelsThatVary)
{
  CompareCuts(Trial::Varying);
}

TEST_P(DeconvolutionOnDevices, GivesTheSameBitsWithKernelsThatVaryInAPlane)
{
  CompareCuts(Trial::VaryingPlane);
}

TEST_P(DeconvolutionOnDevices, GiveTheSameBitsInWindowsOfPlanes)
{
  std::mt19937 random(90);
  for (int trial = 0; trial < 6; ++trial)
  {
    // The last two have planes that do not begin at multiples of 16 bytes.
    const bool                isLarge = GetParam() == Place::Cuda;
    const Coordinates         extent = trial < 4 ? Coordinates{ { isLarge ? 100 : 20, isLarge ? 94 : 18, 300, 1, 1 } }
                                                 : Coordinates{ { isLarge ? 99 : 19, isLarge ? 92 : 17, 300, 1, 1 } };
    DeconvolutionTrial<float> t(random, extent);
    t.operation->kernel = RandomLight(random, { { 5, 4, 5, 1, 1 } });
    t.operation->iterations = 3;
    t.operation->background = trial == 1 ? 3 : 0;
    t.operation->saturation = trial == 1 ? 90 : t.operation->saturation;
    t.operation->hasWeights = trial % 2 == 0;
    t.operation->hasStart = trial == 2;
    t.operation->method = trial == 3 ? DeconvolutionMethod::ProjectedLandweber : DeconvolutionMethod::RichardsonLucy;
    t.operation->relaxation = 0.7;
    t.operation->relativeChange = trial % 3 == 0 ? 1e-9 : 0;
    SCOPED_TRACE(trial);
    ExecutionRequest request = t.Request();
    request.backend = GetBackend();
    request.devices = { 0 };
    const ExecutionReport report = GetManager().Execute(request);
    const auto            whole = t.output;
    const auto bytes = static_cast<double>(Box::FromExtent(t.operation->GetEstimateExtent()).NumberOfVoxels()) * 4;
    // H^T w, and each next point, come from the device alone.
    const double      toHost = 1.01 * bytes * static_cast<double>(1 + t.operation->iterations);
    const std::size_t least = LeastOfDevice(GetManager(), request);
    const auto        most = static_cast<std::size_t>(6 * bytes);
    int               inWindows = 0;
    for (std::size_t budget = least; budget < most; budget += (most - least) / 7)
    {
      t.output.assign(t.output.size(), 0.0f);
      request.budgets.device = budget;
      const ExecutionReport other = GetManager().Execute(request);
      EXPECT_EQ(t.output, whole) << budget;
      EXPECT_EQ(other.figures, report.figures) << budget;
      EXPECT_LE(other.peakDevice, budget);
      inWindows += other.bytesToDevice > 0 && other.bytesToHost > bytes && other.bytesToHost <= toHost ? 1 : 0;
    }
    EXPECT_GE(inWindows, 3);

    // From file to file, in slabs.
    OutOfCoreRequest slabs;
    slabs.operation = t.operation;
    for (const BufferView & input : request.inputs)
    {
      slabs.sources.push_back(std::make_shared<MemoryImage>(input));
    }
    slabs.sink = std::make_shared<MemoryImage>(request.output);
    slabs.spoolFolder = testing::TempDir();
    slabs.backend = GetBackend();
    slabs.devices = { 0 };
    slabs.budgets.device = (least + most) / 2;
    slabs.hostBytes = t.operation->GetOutOfCoreRunner()->GetLeastHostBytes(GetManager(), slabs);
    t.output.assign(t.output.size(), 0.0f);
    const OutOfCoreReport inSlabs = t.operation->GetOutOfCoreRunner()->Run(GetManager(), slabs, nullptr);
    EXPECT_EQ(t.output, whole);
    EXPECT_EQ(inSlabs.execution.figures, report.figures);
    EXPECT_LE(inSlabs.execution.bytesToHost, toHost);
    EXPECT_GT(inSlabs.spoolWritten, 0u);
  }
}

TEST_P(DeconvolutionOnDevices, GoOnWithTheStateOfARunThatHasEnded)
{
  std::mt19937 random(89);
  for (const bool accelerates : { false, true })
  {
    const Coordinates extent =
      GetParam() == Place::Cuda ? Coordinates{ { 100, 94, 130, 1, 1 } } : Coordinates{ { 20, 18, 110, 1, 1 } };
    DeconvolutionTrial<float> t(random, extent);
    t.operation->kernel = RandomLight(random, { { 5, 4, 5, 1, 1 } });
    t.operation->iterations = 5;
    t.operation->hasWeights = accelerates;
    t.operation->accelerates = accelerates;
    ExecutionRequest request = t.Request();
    request.backend = GetBackend();
    CompareResumed(random, GetManager(), t, request, LeastOfDevice(GetManager(), request));
  }
}

INSTANTIATE_TEST_SUITE_P(Fake, DeconvolutionOnDevices, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, DeconvolutionOnDevices, testing::Values(Place::Cuda));

TEST(Deconvolution, AFailingDeviceLeavesAllIterationsToTheCpu)
{
  std::mt19937              random(85);
  DeconvolutionTrial<float> t(random, { { 30, 28, 26, 1, 1 } });
  t.operation->kernel = RandomLight(random, { { 5, 4, 5, 1, 1 } });
  t.operation->iterations = 2;
  const auto       device = std::make_shared<FakeDevice>(FakeDevice::Options());
  Manager          manager({ device });
  ExecutionRequest request = t.Request();
  request.backend = BackendChoice::CPU;
  manager.Execute(request);
  const auto expected = t.output;
  t.output.assign(t.output.size(), 0.0f);
  device->FailAt("Launch", 2, true, DeviceError::Kind::Lost);
  request.backend = BackendChoice::Auto;
  const ExecutionReport report = manager.Execute(request);
  EXPECT_EQ(report.backend, "cpu");
  EXPECT_EQ(report.warnings.size(), 1u);
  EXPECT_EQ(t.output, expected);
}

TEST(Deconvolution, FewerDevicesHoldTheImagesWhereOneIsLostOrFull)
{
  std::mt19937              random(86);
  DeconvolutionTrial<float> t(random, { { 20, 18, 110, 1, 1 } });
  t.operation->kernel = RandomLight(random, { { 5, 4, 5, 1, 1 } });
  t.operation->iterations = 2;
  ExecutionRequest request = t.Request();
  request.backend = BackendChoice::CPU;
  Manager({}).Execute(request);
  const auto expected = t.output;
  request.backend = BackendChoice::CUDA;
  for (const auto kind : { DeviceError::Kind::Lost, DeviceError::Kind::OutOfMemory })
  {
    t.output.assign(t.output.size(), 0.0f);
    const auto first = std::make_shared<FakeDevice>(FakeDevice::Options());
    const auto second = std::make_shared<FakeDevice>(FakeDevice::Options());
    Manager    manager({ first, second });
    // A run without faults, and then nothing is kept.
    manager.Execute(request);
    EXPECT_EQ(t.output, expected);
    t.output.assign(t.output.size(), 0.0f);
    manager.ReleaseMemory();
    second->FailAt("Allocate", 0, true, kind);
    EXPECT_EQ(manager.Execute(request).backend, "cuda");
    EXPECT_EQ(t.output, expected);
  }
}

TEST(Deconvolution, StopsByTheRelativeChangeAndByTheDiscrepancy)
{
  std::mt19937              random(83);
  DeconvolutionTrial<float> t(random, { { 40, 40, 1, 1, 1 } });
  t.operation->kernel = RandomLight(random, { { 5, 5, 1, 1, 1 } });
  t.operation->iterations = 60;
  Manager    host({});
  const auto count = [&] {
    std::int64_t iterations = 0;
    double       last = std::numeric_limits<double>::infinity();
    for (const auto & figure : host.Execute(t.Request()).figures)
    {
      if (figure.first.find("divergence") == 0)
      {
        ++iterations;
        EXPECT_LE(figure.second, last * (1 + 1e-6)) << figure.first;
        last = figure.second;
      }
    }
    return iterations;
  };
  EXPECT_EQ(count(), 60);
  t.operation->relativeChange = 0.02;
  const std::int64_t byChange = count();
  EXPECT_GT(byChange, 1);
  EXPECT_LT(byChange, 60);
  t.operation->relativeChange = 0;
  t.operation->discrepancy = 12;
  const std::int64_t byDiscrepancy = count();
  EXPECT_GT(byDiscrepancy, 1);
  EXPECT_LT(byDiscrepancy, 60);
}

TEST(Deconvolution, KeepsLightAndHasNoRingsAtTheEdge)
{
  // A sharp image that goes on beyond the edge, blurred by a Gaussian of known light.
  constexpr std::int64_t n = 64;
  constexpr std::int64_t r = 6;
  std::vector<double>    weights;
  double                 sum = 0;
  for (std::int64_t y = -r; y <= r; ++y)
  {
    for (std::int64_t x = -r; x <= r; ++x)
    {
      weights.push_back(std::exp(-static_cast<double>(x * x + y * y) / 8));
      sum += weights.back();
    }
  }
  for (double & weight : weights)
  {
    weight /= sum;
  }
  const auto sharp = [](std::int64_t x, std::int64_t y) {
    return 20.0 + ((x + 100) / 9 % 2 == (y + 100) / 9 % 2 ? 100.0 : 0.0);
  };
  std::mt19937               random(84);
  DeconvolutionTrial<double> t(random, { { n, n, 1, 1, 1 } });
  t.operation->kernel = std::make_shared<ConvolutionKernel>(
    Coordinates{ { 2 * r + 1, 2 * r + 1, 1, 1, 1 } }, Coordinates{ { r, r, 0, 0, 0 } }, weights);
  t.operation->iterations = 100;
  for (std::int64_t y = 0; y < n; ++y)
  {
    for (std::int64_t x = 0; x < n; ++x)
    {
      double value = 0;
      for (std::int64_t j = -r; j <= r; ++j)
      {
        for (std::int64_t i = -r; i <= r; ++i)
        {
          value += weights[static_cast<std::size_t>((j + r) * (2 * r + 1) + i + r)] * sharp(x - i, y - j);
        }
      }
      t.data[static_cast<std::size_t>(y * n + x)] = value;
    }
  }
  Manager host({});
  host.Execute(t.Request());
  double atEdge = 0;
  double inside = 0;
  double ofEdge = 0;
  double ofInside = 0;
  for (std::int64_t y = 0; y < n; ++y)
  {
    for (std::int64_t x = 0; x < n; ++x)
    {
      const bool   isEdge = std::min(std::min(x, y), std::min(n - 1 - x, n - 1 - y)) < r;
      const double error = t.output[static_cast<std::size_t>(y * n + x)] - sharp(x, y);
      (isEdge ? atEdge : inside) += error * error;
      (isEdge ? ofEdge : ofInside) += 1;
    }
  }
  EXPECT_LT(std::sqrt(atEdge / ofEdge), 2 * std::sqrt(inside / ofInside));
}

TEST(Deconvolution, RefusesWhatMakesNoSense)
{
  std::mt19937 random(85);
  const auto   message = [&](const std::function<void(DeconvolutionOperation &)> & change) -> std::string {
    DeconvolutionTrial<float> t(random, { { 8, 8, 1, 1, 1 } });
    t.operation->kernel = RandomLight(random, { { 3, 3, 1, 1, 1 } });
    change(*t.operation);
    try
    {
      Manager({}).Execute(t.Request());
    }
    catch (const ParameterError & error)
    {
      return error.what();
    }
    return "nothing";
  };
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(message([](auto & o) { o.iterations = 0; }).find("Iterations: 0"), std::string::npos);
  EXPECT_NE(message([](auto & o) { o.background = -1; }).find("Background: -1"), std::string::npos);
  EXPECT_NE(message([&](auto & o) { o.relaxation = nan; }).find("Relaxation"), std::string::npos);
  EXPECT_NE(message([](auto & o) { o.totalVariation = -2; }).find("TotalVariation"), std::string::npos);
  EXPECT_NE(message([](auto & o) {
              o.kernel = std::make_shared<ConvolutionKernel>(
                Coordinates::Filled(1), Coordinates::Filled(0), std::vector<double>{ -1.0 });
            }).find("KernelImage: -1"),
            std::string::npos);
  EXPECT_EQ(message([](auto &) {}), "nothing");
}

/** Discrete transforms of a grid by their definition, along one axis after the other. */
std::vector<std::complex<double>>
TransformByDefinition(std::vector<std::complex<double>> values, const Coordinates & extent, bool inverse)
{
  std::int64_t stride = 1;
  for (int a = 0; a < MaxDimension; stride *= extent[a++])
  {
    const std::int64_t                n = extent[a];
    std::vector<std::complex<double>> line(static_cast<std::size_t>(n));
    for (std::int64_t first = 0; first < static_cast<std::int64_t>(values.size()); ++first)
    {
      if (first / stride % n != 0)
      {
        continue;
      }
      for (std::int64_t k = 0; k < n; ++k)
      {
        std::complex<double> sum = 0;
        for (std::int64_t i = 0; i < n; ++i)
        {
          const double angle = 2 * 3.14159265358979323846 * static_cast<double>(k * i % n) / static_cast<double>(n);
          sum += values[static_cast<std::size_t>(first + i * stride)] * std::polar(1.0, inverse ? angle : -angle);
        }
        line[static_cast<std::size_t>(k)] = inverse ? sum / static_cast<double>(n) : sum;
      }
      for (std::int64_t i = 0; i < n; ++i)
      {
        values[static_cast<std::size_t>(first + i * stride)] = line[static_cast<std::size_t>(i)];
      }
    }
  }
  return values;
}

/** The definition of SpectralDeconvolutionOperation: the numbers of the image, x fastest. `padded`: along each axis. */
std::vector<double>
SpectralByDefinition(const SpectralDeconvolutionOperation & operation, const std::vector<double> & data,
                     const Coordinates & image, const Coordinates & padded)
{
  const Box                         grid = Box::FromExtent(padded);
  const auto                        voxels = static_cast<std::size_t>(grid.NumberOfVoxels());
  std::vector<std::complex<double>> measured(voxels);
  std::vector<std::complex<double>> blur(voxels);
  const auto                        offset = [](const Coordinates & at, const Coordinates & extent) {
    return static_cast<std::size_t>(DenseView(nullptr, PixelType::UInt8, Box::FromExtent(extent)).Offset(at));
  };
  const auto before = [&](int a) { return std::max((padded[a] - image[a]) / 2, operation.kernel->GetCenter()[a]); };
  ForEachIndex(grid, [&](const Coordinates & at) {
    Coordinates near{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      near[a] = std::min(std::max<std::int64_t>(at[a] - before(a), 0), image[a] - 1);
    }
    measured[offset(at, padded)] = data[offset(near, image)];
  });
  const Coordinates & k = operation.kernel->GetExtent();
  ForEachIndex(Box::FromExtent(k), [&](const Coordinates & at) {
    Coordinates turned{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      turned[a] = (at[a] - operation.kernel->GetCenter()[a] + padded[a]) % padded[a];
    }
    blur[offset(turned, padded)] = operation.kernel->GetWeights()[offset(at, k)];
  });
  measured = TransformByDefinition(measured, padded, false);
  blur = TransformByDefinition(blur, padded, false);
  for (std::size_t i = 0; i < voxels; ++i)
  {
    const std::complex<double> h = blur[i];
    double                     divisor = std::norm(h);
    bool                       isKept = std::abs(h) >= operation.leastMagnitude;
    if (operation.rule == SpectralRule::Wiener)
    {
      divisor += operation.noiseVariance / (std::norm(measured[i]) - operation.noiseVariance);
      isKept = std::abs(divisor) >= operation.leastMagnitude;
    }
    if (operation.rule == SpectralRule::Tikhonov)
    {
      divisor += operation.regularization;
      isKept = divisor >= operation.leastMagnitude;
    }
    measured[i] = isKept ? measured[i] * std::conj(h) / divisor : 0.0;
  }
  measured = TransformByDefinition(measured, padded, true);
  std::vector<double> result;
  ForEachIndex(Box::FromExtent(image), [&](const Coordinates & at) {
    Coordinates from = at;
    for (int a = 0; a < MaxDimension; ++a)
    {
      from[a] += before(a);
    }
    result.push_back(measured[offset(from, padded)].real());
  });
  return result;
}

std::shared_ptr<SpectralDeconvolutionOperation>
MakeSpectral(std::mt19937 & random, int trial, const Coordinates & kernel)
{
  const auto operation = std::make_shared<SpectralDeconvolutionOperation>();
  operation->kernel = RandomLight(random, kernel);
  operation->rule = static_cast<SpectralRule>(trial % 3);
  operation->noiseVariance = 7;
  operation->regularization = 0.01;
  operation->leastMagnitude = 1e-3;
  return operation;
}

TEST(SpectralDeconvolution, IsWhatItsDefinitionSays)
{
  std::mt19937 random(91);
  struct Case
  {
    Coordinates image;
    Coordinates kernel;
    Coordinates padded;
  };
  const Case cases[] = { { { { 11, 8, 5, 1, 1 } }, { { 4, 3, 2, 1, 1 } }, { { 15, 12, 8, 1, 1 } } },
                         { { { 13, 9, 1, 1, 1 } }, { { 3, 5, 1, 1, 1 } }, { { 16, 15, 1, 1, 1 } } },
                         { { { 5, 4, 3, 1, 1 } }, { { 2, 1, 7, 1, 1 } }, { { 8, 5, 10, 1, 1 } } },
                         { { { 19, 1, 1, 1, 1 } }, { { 6, 1, 1, 1, 1 } }, { { 25, 1, 1, 1, 1 } } },
                         { { { 1, 6, 4, 1, 1 } }, { { 1, 3, 2, 1, 1 } }, { { 2, 9, 6, 1, 1 } } } };
  for (int trial = 0; trial < 15; ++trial)
  {
    const Case & one = cases[trial % 5];
    const auto   operation = MakeSpectral(random, trial, one.kernel);
    // Each of two images along the fourth axis is deconvolved alone.
    Coordinates extent = one.image;
    extent[3] = 2;
    Trial<float, double> t(random, operation, extent);
    t.request.backend = BackendChoice::CPU;
    t.Prepare(t.request.image);
    Manager({}).Execute(t.request);
    for (std::int64_t part = 0; part < 2; ++part)
    {
      Box frame = t.request.image;
      frame.lower[3] = part;
      frame.upper[3] = part + 1;
      std::vector<double> data;
      ForEachIndex(frame, [&](const Coordinates & at) { data.push_back(static_cast<double>(At<float>(t.image, at))); });
      const std::vector<double> expected = SpectralByDefinition(*operation, data, one.image, one.padded);
      std::size_t               i = 0;
      ForEachIndex(frame, [&](const Coordinates & at) {
        ASSERT_NEAR(t.Result(at), expected[i], 1e-9 * (1 + std::abs(expected[i])) / operation->leastMagnitude)
          << operation->GetKey() << " " << ToString(extent) << " at " << ToString(at);
        ++i;
      });
    }
  }
}

TEST(SpectralDeconvolution, GivesTheBitsOfTheWholeForAnyRegionsThreadsAndBudgets)
{
  std::mt19937 random(92);
  Manager      host({});
  for (int trial = 0; trial < 6; ++trial)
  {
    const auto operation = MakeSpectral(random, trial, { { 5, trial % 2 ? 1 : 4, trial % 2 ? 1 : 3, 1, 1 } });
    operation->isSpatial[1] = operation->isSpatial[2] = trial % 2 == 0;
    CompareCuts<float>(random, host, BackendChoice::CPU, operation, { { 30, 140, 9, 3, 1 } });
  }
}

TEST(SpectralDeconvolution, NamesTheMemoryThatIsEnough)
{
  std::mt19937        random(93);
  Manager             host({});
  Trial<float, float> t(random, MakeSpectral(random, 1, { { 5, 5, 5, 1, 1 } }), { { 60, 60, 60, 1, 1 } });
  t.request.backend = BackendChoice::CPU;
  t.Prepare(t.request.image);
  t.request.budgets.host = 1 << 20;
  try
  {
    host.Execute(t.request);
    ADD_FAILURE() << "1 MiB is enough";
  }
  catch (const BudgetError & error)
  {
    // The spectrum of 72^3 points.
    EXPECT_GT(error.needed, std::size_t{ 64 * 64 * 64 * 8 });
    t.request.budgets.host = error.needed;
    EXPECT_LE(host.Execute(t.request).peakHost, error.needed);
  }
  const auto message = [&](const std::function<void(SpectralDeconvolutionOperation &)> & change) -> std::string {
    const auto operation = MakeSpectral(random, 1, { { 3, 3, 1, 1, 1 } });
    change(*operation);
    try
    {
      operation->Validate({ { 9, 8, 7, 6, 1 } });
    }
    catch (const ParameterError & error)
    {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_NE(message([](auto & o) { o.noiseVariance = -1; }).find("NoiseVariance: -1"), std::string::npos);
  EXPECT_NE(message([](auto & o) { o.regularization = -2; }).find("RegularizationConstant: -2"), std::string::npos);
  EXPECT_NE(message([](auto & o) { o.leastMagnitude = -3; }).find("KernelZeroMagnitudeThreshold: -3"),
            std::string::npos);
  EXPECT_NE(message([](auto & o) { o.isSpatial[3] = true; }).find("Axes: 4"), std::string::npos);
  EXPECT_EQ(message([](auto &) {}), "nothing");
}

} // namespace
