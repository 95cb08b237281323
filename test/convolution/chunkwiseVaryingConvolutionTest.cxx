/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvolutionOracle.h"
#include "chunkwiseCpuTeam.h"
#include "chunkwiseCutTrial.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseVaryingConvolutionOperation.h"

#include <chrono>
#include <cmath>

using namespace chunkwise;

namespace
{

std::shared_ptr<const ConvolutionKernel>
RandomKernel(std::mt19937 & random, const Coordinates & extent, const Coordinates & center)
{
  std::vector<double> weights(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  for (double & weight : weights)
  {
    weight = (0.1 + static_cast<double>(random()) / 4294967296.0) / static_cast<double>(weights.size());
  }
  return std::make_shared<ConvolutionKernel>(extent, center, weights);
}

/** Two or three axes with kernels, grids that begin inside or outside of the image. */
std::shared_ptr<VaryingConvolutionOperation>
RandomVarying(std::mt19937 & random, VaryingOrder order, const Coordinates & image)
{
  const auto operation = std::make_shared<VaryingConvolutionOperation>();
  operation->order = order;
  operation->boundary.mode = order == VaryingOrder::ConvolveThenWeight
                               ? AllModes[random() % 6]
                               : (random() % 2 ? BoundaryMode::Renormalized : BoundaryMode::Constant);
  operation->boundary.constant = order == VaryingOrder::ConvolveThenWeight ? 7 : 0;
  Coordinates  extent = Coordinates::Filled(1);
  Coordinates  center{};
  std::int64_t count = 1;
  for (int a = 0; a < 2 + static_cast<int>(random() % 2); ++a)
  {
    extent[a] = 1 + static_cast<std::int64_t>(random() % 5);
    center[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a]));
    operation->nodes[a] = 1 + static_cast<std::int64_t>(random() % 4);
    operation->spacing[a] = 0.7 + static_cast<double>(random() % 100) / 20;
    operation->first[a] = static_cast<double>(random() % 100) / 99 * static_cast<double>(image[a]) - 1;
    count *= operation->nodes[a];
  }
  for (std::int64_t node = 0; node < count; ++node)
  {
    operation->kernels.push_back(RandomKernel(random, extent, center));
  }
  return operation;
}

/** The hat of a node, straight from its definition. */
long double
Hat(const VaryingConvolutionOperation & operation, std::int64_t node, const Coordinates & index)
{
  long double weight = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const auto at =
      static_cast<long double>((static_cast<double>(index[a]) - operation.first[a]) / operation.spacing[a]);
    const auto here = static_cast<long double>(node % operation.nodes[a]);
    const auto last = static_cast<long double>(operation.nodes[a] - 1);
    node /= operation.nodes[a];
    const bool beyond = (here == 0 && at <= 0) || (here == last && at >= last);
    weight *= beyond ? 1 : std::max(0.0L, 1 - std::fabs(at - here));
  }
  return weight;
}

/** The definition, voxel by voxel. */
template <typename T>
class Exact
{
public:
  Exact(const BufferView & image, const VaryingConvolutionOperation & operation)
    : m_Image(image)
    , m_Operation(operation)
  {
    for (std::size_t node = 0; node < operation.kernels.size(); ++node)
    {
      m_Nodes.push_back(operation.GetNodeOperation(static_cast<std::int64_t>(node)));
      if (operation.order == VaryingOrder::WeightThenConvolve)
      {
        Weigh(static_cast<std::int64_t>(node));
      }
    }
  }

  long double
  operator()(const Coordinates & index) const
  {
    long double sum = 0;
    for (std::size_t node = 0; node < m_Nodes.size(); ++node)
    {
      if (m_Operation.order == VaryingOrder::WeightThenConvolve)
      {
        const BufferView view =
          DenseView(const_cast<double *>(m_Weighted[node].data()), PixelType::Float64, m_Image.box);
        sum += oracle::Convolve<double>(view, index, m_Nodes[node]).result;
        continue;
      }
      const long double weight = Hat(m_Operation, static_cast<std::int64_t>(node), index);
      sum += weight > 0 ? weight * oracle::Convolve<T>(m_Image, index, m_Nodes[node]).result : 0;
    }
    return sum;
  }

private:
  /** The value that each voxel spreads with the node's kernel, divided by the part of it that stays inside. */
  void
  Weigh(std::int64_t node)
  {
    ImageConvolutionOperation & spread = m_Nodes[static_cast<std::size_t>(node)];
    const Coordinates           strides = DenseStrides(spread.kernel->GetExtent());
    std::vector<double>         weighted;
    ForEachIndex(m_Image.box, [&](const Coordinates & index) {
      const long double weight = Hat(m_Operation, node, index);
      long double       inside = 0;
      bool              cut = false;
      for (int a = 0; a < MaxDimension; ++a)
      {
        cut = cut || index[a] < spread.kernel->GetCenter()[a] ||
              index[a] - spread.kernel->GetCenter()[a] + spread.kernel->GetExtent()[a] > m_Image.box.upper[a];
      }
      const Coordinates taps = cut && weight > 0 ? spread.kernel->GetExtent() : Coordinates{};
      ForEachIndex(Box::FromExtent(taps), [&](const Coordinates & k) {
        bool         there = true;
        std::int64_t at = 0;
        for (int a = 0; a < MaxDimension; ++a)
        {
          const std::int64_t target = index[a] + k[a] - spread.kernel->GetCenter()[a];
          there = there && target >= 0 && target < m_Image.box.upper[a];
          at += k[a] * strides[a];
        }
        inside += there ? spread.kernel->GetWeights()[static_cast<std::size_t>(at)] : 0;
      });
      const bool        renormalizes = cut && weight > 0 && m_Operation.boundary.mode == BoundaryMode::Renormalized;
      const long double factor = renormalizes ? spread.kernel->GetSum() / inside : 1;
      weighted.push_back(static_cast<double>(weight * factor * static_cast<long double>(At<T>(m_Image, index))));
    });
    spread.boundary.mode = BoundaryMode::Constant;
    spread.boundary.constant = 0;
    m_Weighted.push_back(weighted);
  }

  const BufferView                       m_Image;
  const VaryingConvolutionOperation &    m_Operation;
  std::vector<ImageConvolutionOperation> m_Nodes;
  std::vector<std::vector<double>>       m_Weighted;
};

template <typename T>
void
CompareWithBruteForce(std::mt19937 & random, Manager & manager, BackendChoice backend, int trials)
{
  for (int trial = 0; trial < trials; ++trial)
  {
    const auto  order = trial % 2 ? VaryingOrder::ConvolveThenWeight : VaryingOrder::WeightThenConvolve;
    Coordinates extent = RandomExtent(random, 9);
    extent[1] += 3;
    const auto     operation = RandomVarying(random, order, extent);
    Trial<T, T>    t(random, operation, extent);
    const Exact<T> expected(t.image, *operation);
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, extent));
    t.request.budgets.host = trial % 3 ? 0 : 300000;
    t.request.budgets.device = trial % 3 ? 0 : 300000;
    try
    {
      manager.Execute(t.request);
    }
    catch (const BudgetError &)
    {
      continue; // the smallest chunk of this trial is larger
    }
    ASSERT_TRUE(t.IsContained());
    const double bound = std::is_integral<T>::value ? 0.51 : (sizeof(T) == 4 ? 4e-3 : 1e-11);
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const auto exact = static_cast<double>(expected(index));
      const auto largest = static_cast<double>(std::numeric_limits<T>::max());
      ASSERT_NEAR(static_cast<double>(t.Result(index)), std::min(exact, largest), bound)
        << (order == VaryingOrder::ConvolveThenWeight ? "filter " : "spread ")
        << BoundaryModeName(operation->boundary.mode) << " " << ToString(extent) << " nodes "
        << ToString(operation->nodes) << " at " << ToString(index);
    });
  }
}

class VaryingKernels : public KernelTest
{};

TEST_P(VaryingKernels, AreWhatTheirDefinitionSays)
{
  std::mt19937 random(71);
  CompareWithBruteForce<double>(random, GetManager(), GetBackend(), 60);
  CompareWithBruteForce<float>(random, GetManager(), GetBackend(), 30);
  CompareWithBruteForce<std::uint8_t>(random, GetManager(), GetBackend(), 10);
}

/** The relative L2 error at sampled voxels, those near an edge among them. */
template <typename T>
double
RelativeError(std::mt19937 & random, Manager & manager, BackendChoice backend, VaryingOrder order, BoundaryMode mode,
              const Coordinates & image, const Coordinates & extent)
{
  const auto operation = std::make_shared<VaryingConvolutionOperation>();
  operation->order = order;
  operation->boundary.mode = mode;
  Coordinates center{};
  for (int a = 0; a < 3; ++a)
  {
    center[a] = extent[a] / 3;
    operation->nodes[a] = extent[a] > 1 ? 3 : 1;
    operation->spacing[a] = static_cast<double>(image[a]) / 3.25;
    operation->first[a] = operation->spacing[a] / 2;
  }
  for (std::int64_t node = 0; node < Box::FromExtent(operation->nodes).NumberOfVoxels(); ++node)
  {
    operation->kernels.push_back(RandomKernel(random, extent, center));
  }
  Trial<T, T> t(random, operation, image);
  t.request.backend = backend;
  t.Prepare(t.request.image);
  manager.Execute(t.request);
  const Exact<T> exact(t.image, *operation);
  long double    error = 0;
  long double    norm = 0;
  ForEachIndex(t.request.region, [&](const Coordinates & index) {
    if (random() % 61 == 0)
    {
      const long double expected = exact(index);
      error += std::pow(static_cast<long double>(t.Result(index)) - expected, 2);
      norm += expected * expected;
    }
  });
  return std::sqrt(static_cast<double>(error / norm));
}

TEST_P(VaryingKernels, RelativeErrorIsBelowTheStatedBound)
{
  std::mt19937 random(78);
  double       largestOfFloats = 0;
  double       largestOfDoubles = 0;
  for (const VaryingOrder order : { VaryingOrder::ConvolveThenWeight, VaryingOrder::WeightThenConvolve })
  {
    for (const BoundaryMode mode : { BoundaryMode::Renormalized, BoundaryMode::Constant })
    {
      const auto compare = [&](const Coordinates & image, const Coordinates & extent) {
        const double ofFloats = RelativeError<float>(random, GetManager(), GetBackend(), order, mode, image, extent);
        const double ofDoubles = RelativeError<double>(random, GetManager(), GetBackend(), order, mode, image, extent);
        const std::string what = std::string(order == VaryingOrder::ConvolveThenWeight ? "filter " : "spread ") +
                                 BoundaryModeName(mode) + " " + ToString(image) + " with " + ToString(extent);
        EXPECT_LT(ofFloats, 1e-6) << what;
        EXPECT_LT(ofDoubles, 1e-14) << what;
        largestOfFloats = std::max(largestOfFloats, ofFloats);
        largestOfDoubles = std::max(largestOfDoubles, ofDoubles);
      };
      compare({ { 260, 210, 1, 1, 1 } }, { { 31, 24, 1, 1, 1 } });
      compare({ { 44, 37, 30, 1, 1 } }, { { 9, 6, 7, 1, 1 } });
    }
  }
  // For the documentation: --gtest_output shows them.
  RecordProperty("LargestOfFloats", testing::PrintToString(largestOfFloats));
  RecordProperty("LargestOfDoubles", testing::PrintToString(largestOfDoubles));
}

/** A region of an image of many cells, in several chunks, against the whole in double on the CPU. Values are of a few
 * hundred, kernels sum to about 0.6. */
template <typename TIn, typename TOut>
void
CompareLarge(std::mt19937 & random, Manager & manager, BackendChoice backend, Coordinates image, Coordinates extent,
             VaryingConvolutionOperation parameters)
{
  Coordinates center{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    center[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a]));
  }
  const auto operation = std::make_shared<VaryingConvolutionOperation>(parameters);
  for (std::int64_t node = 0; node < Box::FromExtent(operation->nodes).NumberOfVoxels(); ++node)
  {
    operation->kernels.push_back(RandomKernel(random, extent, center));
  }
  Trial<TIn, TOut>      t(random, operation, image);
  Manager               host({});
  Trial<double, double> exact(random, operation, image);
  std::copy(t.pixels.begin(), t.pixels.end(), exact.pixels.begin());
  exact.request.backend = BackendChoice::CPU;
  exact.Prepare(exact.request.image);
  host.Execute(exact.request);
  Box part = t.request.image;
  part.lower[0] += 17;
  part.upper[image[1] > 31 ? 1 : 2] -= 31;
  for (const Box & region : { t.request.image, part })
  {
    for (const std::size_t budget : { std::size_t{ 0 }, std::size_t{ 40 } << 20, std::size_t{ 24 } << 20 })
    {
      t.request.backend = backend;
      t.request.budgets.device = budget;
      t.Prepare(region);
      manager.Execute(t.request);
      ASSERT_TRUE(t.IsContained());
      ForEachIndex(region, [&](const Coordinates & index) {
        const double value =
          std::min(std::max(exact.Result(index), static_cast<double>(std::numeric_limits<TOut>::lowest())),
                   static_cast<double>(std::numeric_limits<TOut>::max()));
        ASSERT_NEAR(static_cast<double>(t.Result(index)), value, std::is_integral<TOut>::value ? 0.51 : 3e-4)
          << BoundaryModeName(operation->boundary.mode) << ToString(image) << ToString(extent) << " nodes "
          << ToString(operation->nodes) << " at " << ToString(index) << " budget " << budget;
      });
    }
  }
}

TEST_P(VaryingKernels, OfLargeImagesAreTheSumOfTheirNodes)
{
  std::mt19937 random(77);
  int          trial = 0;
  for (const VaryingOrder order : { VaryingOrder::ConvolveThenWeight, VaryingOrder::WeightThenConvolve })
  {
    for (const BoundaryMode mode : AllModes)
    {
      VaryingConvolutionOperation parameters;
      parameters.order = order;
      parameters.boundary.mode = mode;
      parameters.boundary.constant = order == VaryingOrder::ConvolveThenWeight ? 5 : 0;
      if (order == VaryingOrder::WeightThenConvolve && mode != BoundaryMode::Renormalized &&
          mode != BoundaryMode::Constant)
      {
        continue;
      }
      const auto grid = [&](int a, std::int64_t nodes, double first, double spacing) {
        parameters.nodes[a] = nodes;
        parameters.first[a] = first;
        parameters.spacing[a] = spacing;
      };
      // Nodes far apart, a few voxels apart, and one whose neighbours are beyond the image.
      grid(0, 3, 60.5, 150);
      grid(1, 2, 100, 99.25);
      CompareLarge<float, float>(
        random, GetManager(), GetBackend(), { { 430, 300, 1, 1, 1 } }, { { 41, 32, 1, 1, 1 } }, parameters);
      grid(0, 9, 3, 7.5);
      grid(1, 5, -4, 31);
      CompareLarge<std::uint8_t, float>(
        random, GetManager(), GetBackend(), { { 290, 140, 2, 1, 1 } }, { { 9, 70, 1, 1, 1 } }, parameters);
      grid(0, 1, 0, 1);
      grid(1, 2, -300, 350);
      CompareLarge<std::int16_t, std::int16_t>(
        random, GetManager(), GetBackend(), { { 90, 310, 1, 1, 1 } }, { { 120, 11, 1, 1, 1 } }, parameters);
      // Along other axes than x and y.
      grid(1, 1, 0, 1);
      grid(2, 3, 5, trial++ % 2 ? 40 : 90);
      CompareLarge<float, double>(
        random, GetManager(), GetBackend(), { { 150, 3, 160, 1, 1 } }, { { 12, 1, 31, 1, 1 } }, parameters);
    }
  }
}

TEST_P(VaryingKernels, GiveTheBitsOfTheWholeHoweverItIsCut)
{
  std::mt19937 random(79);
  for (const VaryingOrder order : { VaryingOrder::ConvolveThenWeight, VaryingOrder::WeightThenConvolve })
  {
    for (const auto & [image, kernel] : std::vector<std::pair<Coordinates, Coordinates>>{
           { { { 700, 20, 2, 1, 1 } }, { { 7, 6, 1, 1, 1 } } },
           { { { 24, 20, 18, 1, 1 } }, { { 5, 6, 3, 1, 1 } } },
           { { { 20, 670, 15, 1, 1 } }, { { 4, 3, 3, 1, 1 } } },
           { { { 60, 130, 3, 1, 1 } }, { { 9, 1, 1, 1, 1 } } },
           { { { 30, 14, 5, 3, 1 } }, { { 5, 4, 1, 1, 1 } } },
         })
    {
      const auto operation = std::make_shared<VaryingConvolutionOperation>();
      operation->order = order;
      operation->nodes = { { 3, kernel[1] > 1 ? 2 : 1, 1, 1, 1 } };
      for (int a = 0; a < 2; ++a)
      {
        operation->spacing[a] = static_cast<double>(image[a]) / static_cast<double>(operation->nodes[a]);
        operation->first[a] = operation->spacing[a] / 2 - 0.5;
      }
      for (std::int64_t node = 0; node < operation->nodes[0] * operation->nodes[1]; ++node)
      {
        operation->kernels.push_back(
          RandomKernel(random, kernel, { { kernel[0] / 2, kernel[1] / 3, kernel[2] / 2, 0, 0 } }));
      }
      CompareCuts<float>(random, GetManager(), GetBackend(), operation, image);
      CompareCuts<double>(random, GetManager(), GetBackend(), operation, image);
    }
  }
}

/** Images and kernels so large that devices compute them in blocks of intervals between nodes. */
TEST_P(VaryingKernels, InSpaceOfLargeImagesAreThoseOfTheCpu)
{
  if (GetParam() != Place::Cuda)
  {
    GTEST_SKIP() << "the CPU has one way for all extents";
  }
  std::mt19937      random(80);
  const Coordinates image{ { 256, 448, 448, 1, 1 } };
  for (const VaryingOrder order : { VaryingOrder::ConvolveThenWeight, VaryingOrder::WeightThenConvolve })
  {
    const auto operation = std::make_shared<VaryingConvolutionOperation>();
    operation->order = order;
    operation->boundary.mode = BoundaryMode::Constant;
    operation->nodes = { { 2, 4, 4, 1, 1 } };
    for (int a = 0; a < 3; ++a)
    {
      operation->spacing[a] = static_cast<double>(image[a]) / static_cast<double>(operation->nodes[a]);
      operation->first[a] = operation->spacing[a] / 2 - 0.5;
    }
    for (int node = 0; node < 32; ++node)
    {
      operation->kernels.push_back(RandomKernel(random, { { 9, 8, 7, 1, 1 } }, { { 2, 7, 0, 0, 0 } }));
    }
    Trial<float, float> t(random, operation, image);
    t.request.backend = BackendChoice::CUDA;
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    std::vector<float> onDevice;
    ForEachIndex(t.request.image, [&](const Coordinates & index) { onDevice.push_back(t.Result(index)); });
    t.request.backend = BackendChoice::CPU;
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    double      error = 0;
    double      size = 0;
    std::size_t i = 0;
    ForEachIndex(t.request.image, [&](const Coordinates & index) {
      const auto value = static_cast<double>(t.Result(index));
      error += std::pow(static_cast<double>(onDevice[i++]) - value, 2);
      size += value * value;
    });
    EXPECT_LT(std::sqrt(error / size), 1e-6);
    CompareCuts<float>(random, GetManager(), BackendChoice::CUDA, operation, image);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, VaryingKernels, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, VaryingKernels, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, VaryingKernels, testing::Values(Place::Cuda));

/** Runs over the whole image; on more than one thread as well. */
std::vector<double>
RunWhole(std::mt19937 & random, const std::shared_ptr<const Operation> & operation, const Coordinates & extent,
         std::vector<double> & pixels, unsigned int threads = 3, std::size_t hostBudget = 0)
{
  Manager               host({});
  Trial<double, double> t(random, operation, extent);
  if (pixels.empty())
  {
    pixels = t.pixels;
  }
  std::copy(pixels.begin(), pixels.end(), t.pixels.begin());
  const auto executor = MakeThreadExecutor(threads);
  t.request.executor = executor.get();
  t.request.backend = BackendChoice::CPU;
  t.request.budgets.host = hostBudget;
  t.Prepare(t.request.image);
  EXPECT_EQ(host.Execute(t.request).plan.chunks.size(), 1u);
  std::vector<double> out;
  ForEachIndex(t.request.image, [&](const Coordinates & index) { out.push_back(t.Result(index)); });
  return out;
}

std::shared_ptr<VaryingConvolutionOperation>
SomeVarying(std::mt19937 & random, const Coordinates & image, std::int64_t depth)
{
  const auto operation = std::make_shared<VaryingConvolutionOperation>();
  operation->nodes = { { 4, 3, depth > 1 ? 2 : 1, 1, 1 } };
  std::int64_t count = 1;
  for (int a = 0; a < 3; ++a)
  {
    operation->spacing[a] = static_cast<double>(image[a]) / static_cast<double>(operation->nodes[a]);
    operation->first[a] = operation->spacing[a] / 2 - 0.5;
    count *= operation->nodes[a];
  }
  for (std::int64_t node = 0; node < count; ++node)
  {
    operation->kernels.push_back(RandomKernel(random, { { 7, 6, depth, 1, 1 } }, { { 3, 1, depth / 2, 0, 0 } }));
  }
  return operation;
}

TEST(VaryingConvolution, TheOrdersAreAdjointWithFlippedKernels)
{
  std::mt19937 random(72);
  for (const std::int64_t depth : { 1, 4 })
  {
    const Coordinates image{ { 40, 33, depth > 1 ? 12 : 2, 1, 1 } };
    for (const BoundaryMode mode : { BoundaryMode::Renormalized, BoundaryMode::Constant })
    {
      const auto filter = SomeVarying(random, image, depth);
      filter->boundary.mode = mode;
      const auto spread = std::make_shared<VaryingConvolutionOperation>(*filter);
      spread->order = VaryingOrder::WeightThenConvolve;
      for (auto & kernel : spread->kernels)
      {
        kernel = kernel->Flipped();
      }
      std::vector<double> f;
      std::vector<double> g;
      const auto          filtered = RunWhole(random, filter, image, f);
      const auto          spreaded = RunWhole(random, spread, image, g);
      double              left = 0;
      double              right = 0;
      double              size = 0;
      for (std::size_t i = 0; i < f.size(); ++i)
      {
        left += filtered[i] * g[i];
        right += f[i] * spreaded[i];
        size += std::abs(filtered[i] * g[i]);
      }
      EXPECT_NEAR(left, right, 1e-13 * size) << BoundaryModeName(mode) << depth;
    }
  }
}

TEST(VaryingConvolution, EqualKernelsGiveThePlainConvolution)
{
  std::mt19937      random(73);
  const Coordinates image{ { 40, 33, 9, 1, 1 } };
  for (const BoundaryMode mode : AllModes)
  {
    const auto varying = SomeVarying(random, image, 3);
    varying->boundary.mode = mode;
    std::fill(varying->kernels.begin(), varying->kernels.end(), varying->kernels[0]);
    std::vector<double> f;
    const auto          ours = RunWhole(random, varying, image, f);
    const auto          plain =
      RunWhole(random, std::make_shared<ImageConvolutionOperation>(varying->GetNodeOperation(0)), image, f);
    for (std::size_t i = 0; i < ours.size(); ++i)
    {
      ASSERT_NEAR(ours[i], plain[i], 1e-11) << BoundaryModeName(mode);
    }
  }
}

TEST(VaryingConvolution, RenormalizedSpreadingKeepsTheSum)
{
  std::mt19937      random(74);
  const Coordinates image{ { 40, 33, 1, 1, 1 } };
  const auto        varying = SomeVarying(random, image, 1);
  varying->order = VaryingOrder::WeightThenConvolve;
  for (auto & kernel : varying->kernels)
  {
    std::vector<double> weights = kernel->GetWeights();
    for (double & weight : weights)
    {
      weight /= kernel->GetSum();
    }
    kernel = std::make_shared<ConvolutionKernel>(kernel->GetExtent(), kernel->GetCenter(), weights);
  }
  std::vector<double> f;
  const auto          out = RunWhole(random, varying, image, f);
  double              before = 0;
  double              after = 0;
  double              size = 0;
  for (std::size_t i = 0; i < f.size(); ++i)
  {
    before += f[i];
    after += out[i];
    size += std::abs(f[i]);
  }
  EXPECT_NEAR(before, after, 1e-12 * size);
}

TEST(VaryingConvolution, ThreadsDoNotChangeTheBits)
{
  std::mt19937 random(75);
  for (const std::int64_t depth : { 1, 4 })
  {
    const Coordinates   image{ { 40, 33, 9, 1, 1 } };
    const auto          varying = SomeVarying(random, image, depth);
    std::vector<double> f;
    const auto          one = RunWhole(random, varying, image, f, 1);
    EXPECT_EQ(one, RunWhole(random, varying, image, f, 2));
    EXPECT_EQ(one, RunWhole(random, varying, image, f, 7));
  }
}

TEST(VaryingConvolution, SpectraThatAreNotKeptDoNotChangeTheBits)
{
  std::mt19937      random(79);
  const Coordinates image{ { 70, 63, 2, 1, 1 } };
  for (const VaryingOrder order : { VaryingOrder::ConvolveThenWeight, VaryingOrder::WeightThenConvolve })
  {
    const auto varying = SomeVarying(random, image, 1);
    varying->order = order;
    std::vector<double> f;
    const auto          kept = RunWhole(random, varying, image, f);
    ChunkShape          shape;
    shape.inputBox = shape.outputBox = shape.image = Box::FromExtent(image);
    shape.inputKinds[0] = shape.outputKind = PixelType::Float64;
    shape.numberOfInputs = 1;
    shape.concurrency = 3;
    // Room for nothing but the scratch.
    const std::size_t bytes = GetHostKernels().Find("convolution.varying")->scratchBytes(*varying, shape);
    const auto        made = RunWhole(random, varying, image, f, 3, (bytes + 255) / 256 * 256);
    EXPECT_EQ(kept, made);
  }
}

TEST(Team, IndicesAreDoneOnceByWhoeverIsFree)
{
  constexpr unsigned int        Workers = 4;
  const auto                    executor = MakeThreadExecutor(Workers);
  Team                          team(Workers);
  std::vector<std::atomic<int>> done(3 * 40);
  std::atomic<bool>             helped{ false };
  SharedIndices                 jobs(1);
  executor->ParallelFor(Workers, [&](std::int64_t, unsigned int worker) {
    Team::Member member(team, worker);
    jobs.Take([&](std::int64_t) {
      for (int job = 0; job < 3; ++job)
      {
        member.ParallelFor(40, [&](std::int64_t index, unsigned int by) {
          helped = helped || by != worker;
          ++done[static_cast<std::size_t>(job * 40 + index)];
          // Until somebody comes; who is alone goes on after a while.
          for (int wait = 0; !helped && wait < 100; ++wait)
          {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        });
      }
    });
    team.Help(worker, jobs);
  });
  EXPECT_TRUE(helped);
  for (const auto & count : done)
  {
    ASSERT_EQ(count, 1);
  }
}

TEST(Team, WhoseWorkFailsIsToldSo)
{
  constexpr unsigned int Workers = 3;
  const auto             executor = MakeThreadExecutor(Workers);
  Team                   team(Workers);
  SharedIndices          jobs(5);
  std::atomic<int>       thrown{ 0 };
  executor->ParallelFor(Workers, [&](std::int64_t, unsigned int worker) {
    Team::Member member(team, worker);
    const auto   job = [&](std::int64_t) {
      member.ParallelFor(30, [&](std::int64_t index, unsigned int) {
        if (index == 7)
        {
          throw ParameterError("no");
        }
      });
    };
    // Who fails goes on here; those who help others are not told.
    for (bool more = true; more;)
    {
      try
      {
        jobs.Take(job);
        more = false;
      }
      catch (const ParameterError &)
      {
        ++thrown;
      }
    }
    team.Help(worker, jobs);
  });
  EXPECT_EQ(thrown, 5);
}

TEST(VaryingConvolution, BadParametersAreNamed)
{
  std::mt19937      random(76);
  const Coordinates image{ { 40, 33, 9, 1, 1 } };
  const auto        message = [&](const VaryingConvolutionOperation & operation) {
    try
    {
      operation.Validate(image);
    }
    catch (const ParameterError & error)
    {
      return std::string(error.what());
    }
    return std::string();
  };
  auto operation = SomeVarying(random, image, 1);
  EXPECT_EQ(message(*operation), "");
  operation->kernels.pop_back();
  EXPECT_NE(message(*operation).find("11 kernels"), std::string::npos);
  operation = SomeVarying(random, image, 1);
  operation->spacing[1] = 0;
  EXPECT_NE(message(*operation).find("spacing"), std::string::npos);
  operation = SomeVarying(random, image, 1);
  operation->kernels[5] = RandomKernel(random, { { 3, 3, 1, 1, 1 } }, {});
  EXPECT_NE(message(*operation).find("node 5"), std::string::npos);
  operation = SomeVarying(random, image, 1);
  operation->order = VaryingOrder::WeightThenConvolve;
  operation->boundary.mode = BoundaryMode::Mirror;
  EXPECT_NE(message(*operation).find("mirror"), std::string::npos);
}

} // namespace
