/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuLevel.h"
#include "chunkwiseDistanceOperation.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseMemoryImage.h"
#include "chunkwisePassesOperation.h"
#include "chunkwiseStreamedRun.h"

#include <cmath>

using namespace chunkwise;

namespace
{

class Distances : public KernelTest
{};

constexpr double Infinite = std::numeric_limits<double>::infinity();

/** The nearest feature of a voxel by comparing all of them: the definition. */
template <typename TIn>
class DistancesByDefinition
{
public:
  DistancesByDefinition(const DistanceOperation & operation, const std::vector<TIn> & voxels)
    : m_Operation(operation)
    , m_Voxels(voxels)
    , m_Stride(DenseStrides(operation.image))
    , m_Box(Box::FromExtent(operation.image))
    , m_Background(operation.background.As<TIn>())
    , m_IsWhole(operation.GetNumber() != DistanceNumber::Double)
    , m_Unit(operation.GetUnit())
  {
    for (int axis = 0; axis < MaxDimension; ++axis)
    {
      m_IsAlong[axis] = operation.IsAlong(axis);
    }
    ForEachIndex(m_Box, [&](const Coordinates & at) {
      if (operation.to == DistanceTo::Others || this->IsFeature(at))
      {
        m_Features.push_back(at);
      }
    });
  }

  /** The squared distance, infinite without a feature, and its index. */
  std::pair<double, std::int64_t>
  Find(const Coordinates & at) const
  {
    if (m_Operation.to == DistanceTo::Others && this->IsBackground(at))
    {
      return { 0, this->IndexOf(at) };
    }
    std::pair<double, std::int64_t> best(Infinite, -1);
    // In raster order: the first of several wins.
    for (const Coordinates & feature : m_Features)
    {
      bool isInVolume = m_Operation.to != DistanceTo::Others || this->At(feature) != this->At(at);
      for (int axis = 0; axis < MaxDimension; ++axis)
      {
        isInVolume = isInVolume && (m_IsAlong[axis] || feature[axis] == at[axis]);
      }
      const double square = isInVolume ? this->Square(at, feature) : Infinite;
      if (square < best.first)
      {
        best = { square, this->IndexOf(feature) };
      }
    }
    return best;
  }

  double
  Expected(const Coordinates & at, double largest) const
  {
    const auto   found = this->Find(at);
    const double most = m_Operation.limit * m_Operation.limit;
    const bool   isWithin = found.first <= most && found.second >= 0;
    const double sign =
      m_Operation.to == DistanceTo::Contour && this->IsBackground(at) == m_Operation.insideIsPositive ? -1 : 1;
    switch (m_Operation.result)
    {
      case DistanceResult::Root:
        return sign * (isWithin ? std::sqrt(found.first) : m_Operation.limit);
      case DistanceResult::Squared:
        return sign * std::min(isWithin ? found.first : most, largest);
      case DistanceResult::Within:
        return isWithin ? m_Operation.foreground.ToDouble() : 0;
      case DistanceResult::Beyond:
        return isWithin ? 0 : m_Operation.foreground.ToDouble();
      case DistanceResult::Index:
        return isWithin ? static_cast<double>(found.second) : largest;
      default:
        return static_cast<double>(isWithin ? m_Voxels[static_cast<std::size_t>(found.second)] : m_Background);
    }
  }

private:
  std::int64_t
  IndexOf(const Coordinates & at) const
  {
    std::int64_t index = 0;
    for (int axis = 0; axis < MaxDimension; ++axis)
    {
      index += at[axis] * m_Stride[axis];
    }
    return index;
  }
  TIn
  At(const Coordinates & at) const
  {
    return m_Voxels[static_cast<std::size_t>(this->IndexOf(at))];
  }
  bool
  IsBackground(const Coordinates & at) const
  {
    return this->At(at) == m_Background;
  }
  double
  Square(const Coordinates & a, const Coordinates & b) const
  {
    std::int64_t whole = 0;
    double       sum = 0;
    for (int axis = MaxDimension - 1; axis >= 0; --axis)
    {
      const std::int64_t voxels = a[axis] - b[axis];
      const double       length = static_cast<double>(voxels) * m_Operation.spacing[axis];
      whole += voxels * voxels;
      sum += length * length;
    }
    return m_IsWhole ? static_cast<double>(whole) * (m_Unit * m_Unit) : sum;
  }
  bool
  IsFeature(const Coordinates & at) const
  {
    switch (m_Operation.to)
    {
      case DistanceTo::Background:
        return this->IsBackground(at);
      case DistanceTo::Objects:
        return !this->IsBackground(at);
      case DistanceTo::Others:
        return false;
      default:
        break;
    }
    Box around = { at, at };
    for (int axis = 0; axis < MaxDimension; ++axis)
    {
      const bool isAlong = m_Operation.IsAlong(axis);
      around.lower[axis] = std::max<std::int64_t>(at[axis] - (isAlong ? 1 : 0), 0);
      around.upper[axis] = std::min(at[axis] + (isAlong ? 2 : 1), m_Operation.image[axis]);
    }
    bool touches = false;
    ForEachIndex(around, [&](const Coordinates & beside) { touches = touches || this->IsBackground(beside); });
    return touches && !this->IsBackground(at);
  }

  const DistanceOperation & m_Operation;
  const std::vector<TIn> &  m_Voxels;
  const Coordinates         m_Stride;
  const Box                 m_Box;
  const TIn                 m_Background;
  const bool                m_IsWhole;
  const double              m_Unit;
  bool                      m_IsAlong[MaxDimension];
  std::vector<Coordinates>  m_Features;
};

/** An image in memory and a run of its distances. */
template <typename TIn, typename TOut>
struct DistanceTrial
{
  DistanceTrial(std::shared_ptr<const DistanceOperation> theOperation, std::vector<TIn> theVoxels)
    : operation(std::move(theOperation))
    , voxels(std::move(theVoxels))
    , output(voxels.size(), static_cast<TOut>(77))
  {
    request.operation = operation;
    request.image = request.region = Box::FromExtent(operation->image);
    request.inputs = { DenseView(voxels.data(), PixelTypeOf<TIn>(), request.image) };
    request.output = DenseView(output.data(), PixelTypeOf<TOut>(), request.image);
    request.stagingThreads = 1;
  }
  void
  ExpectDefinition(const std::string & where) const
  {
    const DistancesByDefinition<TIn> definition(*operation, voxels);
    const double largest = std::is_integral<TOut>::value && operation->result != DistanceResult::Index
                             ? static_cast<double>(std::numeric_limits<TOut>::max())
                           : operation->result != DistanceResult::Index ? Infinite
                           : std::is_signed<TOut>::value                ? -1.0
                                                         : static_cast<double>(std::numeric_limits<TOut>::max());
    int          wrong = 0;
    ForEachIndex(request.region, [&](const Coordinates & at) {
      const double expected = definition.Expected(at, largest);
      const TOut   result = At<TOut>(request.output, at);
      // The largest number of an integer type is more than that of doubles before it.
      const bool isLargest = std::fabs(expected) == std::fabs(largest);
      const bool isSame = isLargest ? static_cast<double>(result) == expected
                                    : static_cast<double>(static_cast<TOut>(expected)) == static_cast<double>(result);
      if (!isSame && ++wrong == 1)
      {
        ADD_FAILURE() << where << ": " << operation->GetKey() << " at " << ToString(at) << ": " << +result
                      << " and not " << expected;
      }
    });
    ASSERT_EQ(wrong, 0);
  }

  std::shared_ptr<const DistanceOperation> operation;
  std::vector<TIn>                         voxels;
  std::vector<TOut>                        output;
  ExecutionRequest                         request;
};

template <typename TIn, typename TOut>
std::shared_ptr<DistanceOperation>
MakeDistance(const Coordinates & extent, DistanceTo to = DistanceTo::Background,
             DistanceResult result = DistanceResult::Root)
{
  auto operation = std::make_shared<DistanceOperation>();
  operation->image = extent;
  operation->inputKind = PixelTypeOf<TIn>();
  operation->outputKind = PixelTypeOf<TOut>();
  operation->to = to;
  operation->result = result;
  return operation;
}

/** Features that are rare, or not; blocks of equal voxels. */
template <typename TIn>
std::vector<TIn>
RandomObjects(std::mt19937 & random, const Coordinates & extent)
{
  std::vector<TIn>    voxels(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  const std::uint32_t outOf[] = { 2, 10, 100, 1000 };
  const std::uint32_t rarity = outOf[random() % 4];
  const bool          isInverse = random() % 2;
  const std::uint32_t run = 1 + random() % 6;
  TIn                 value = 0;
  for (std::size_t i = 0; i < voxels.size(); ++i)
  {
    if (i % run == 0)
    {
      value = static_cast<TIn>((random() % rarity == 0) != isInverse ? 1 + random() % 3 : 0);
    }
    voxels[i] = value;
  }
  return voxels;
}

void
SetRandomSpacing(std::mt19937 & random, DistanceOperation & operation)
{
  const double lengths[] = { 1, 7, 0.3, 2.5, 1.0 / 3 };
  const int    how = static_cast<int>(random() % 3);
  const double all = lengths[random() % 5];
  for (double & length : operation.spacing)
  {
    length = how == 0 ? 1 : how == 1 ? all : lengths[random() % 5];
  }
}

template <typename TIn, typename TOut>
void
TryAnyDistances(std::mt19937 & random, Manager & manager, BackendChoice backend, int trials, int extent,
                std::vector<DistanceResult> results)
{
  const std::unique_ptr<Executor> executor = MakeThreadExecutor(1);
  int                             chunked = 0;
  for (int trial = 0; trial < trials; ++trial)
  {
    Coordinates size = RandomExtent(random, extent);
    const int   longAxis = static_cast<int>(random() % 3);
    if (trial % 3 == 1)
    {
      size = { { 5, 4, 200, 1, 1 } };
    }
    else if (random() % 2)
    {
      size = Coordinates::Filled(1);
      size[longAxis] = 1 + static_cast<std::int64_t>(random() % 700);
      size[(longAxis + 1) % 3] = 1 + static_cast<std::int64_t>(random() % 4);
    }
    const DistanceResult result = results[random() % results.size()];
    const auto           operation = MakeDistance<TIn, TOut>(size, static_cast<DistanceTo>(random() % 4), result);
    if (operation->KeepsNearest())
    {
      operation->to = result == DistanceResult::Label || random() % 2 ? DistanceTo::Objects : DistanceTo::Background;
    }
    operation->axes = RandomAxes(random);
    std::sort(operation->axes.begin(), operation->axes.end());
    if (std::is_floating_point<TOut>::value || operation->result != DistanceResult::Squared)
    {
      SetRandomSpacing(random, *operation);
    }
    operation->background = PixelValue(random() % 4 == 0 ? 1 : 0);
    operation->insideIsPositive = random() % 2;
    operation->foreground = PixelValue(1 + random() % 3);
    if (random() % 2 && result != DistanceResult::Index)
    {
      operation->limit = random() % 2                          ? static_cast<double>(random() % 12)
                         : std::is_floating_point<TOut>::value ? 0.37 * static_cast<double>(random() % 40)
                                                               : 3;
    }
    DistanceTrial<TIn, TOut> t(operation, RandomObjects<TIn>(random, size));
    t.request.backend = backend;
    t.request.executor = executor.get();
    if (random() % 3)
    {
      // The chunks of the second images are cut.
      t.request.budgets.device = 40000 + random() % 100000;
      t.request.budgets.host = 40000 + random() % 60000;
    }
    try
    {
      const ExecutionReport report = manager.Execute(t.request);
      chunked += report.plan.chunks.size() > 1 ? 1 : 0;
    }
    catch (const BudgetError &)
    {
      continue; // the smallest chunk is larger
    }
    t.ExpectDefinition("trial " + std::to_string(trial));
    if (testing::Test::HasFatalFailure())
    {
      return;
    }
  }
  EXPECT_TRUE(chunked > 0 || backend == BackendChoice::CUDA || trials < 40);
}

TEST_P(Distances, AreThoseOfTheDefinition)
{
  std::mt19937 random(1);
  const auto   roots = { DistanceResult::Root, DistanceResult::Squared };
  TryAnyDistances<std::uint8_t, float>(random, this->GetManager(), this->GetBackend(), 90, 11, roots);
  TryAnyDistances<std::int16_t, double>(random, this->GetManager(), this->GetBackend(), 50, 11, roots);
  TryAnyDistances<float, std::int32_t>(
    random, this->GetManager(), this->GetBackend(), 40, 11, { DistanceResult::Squared });
  TryAnyDistances<std::uint64_t, std::int64_t>(
    random, this->GetManager(), this->GetBackend(), 40, 11, { DistanceResult::Squared });
}

TEST_P(Distances, ToTheNearestFeatureLeadThere)
{
  std::mt19937 random(2);
  TryAnyDistances<std::uint8_t, std::int64_t>(
    random, this->GetManager(), this->GetBackend(), 50, 11, { DistanceResult::Index });
  TryAnyDistances<std::uint16_t, std::uint32_t>(
    random, this->GetManager(), this->GetBackend(), 40, 11, { DistanceResult::Index });
  TryAnyDistances<std::uint16_t, std::uint16_t>(
    random, this->GetManager(), this->GetBackend(), 50, 11, { DistanceResult::Label });
  TryAnyDistances<float, float>(random, this->GetManager(), this->GetBackend(), 40, 11, { DistanceResult::Label });
}

TEST_P(Distances, AreComparedWithALimit)
{
  std::mt19937 random(3);
  const auto   compared = { DistanceResult::Within, DistanceResult::Beyond };
  TryAnyDistances<std::uint8_t, std::uint8_t>(random, this->GetManager(), this->GetBackend(), 50, 11, compared);
  TryAnyDistances<double, std::int16_t>(random, this->GetManager(), this->GetBackend(), 40, 11, compared);
}

/** Images whose lines have long envelopes, and many parabolas that cross in one point. */
TEST_P(Distances, OfHardImagesAreThoseOfTheDefinition)
{
  const Coordinates extent{ { 61, 43, 1, 1, 1 } };
  const auto        make = [&](auto && isSet) {
    std::vector<std::uint8_t> voxels;
    ForEachIndex(Box::FromExtent(extent),
                 [&](const Coordinates & at) { voxels.push_back(isSet(at[0], at[1]) ? 1 : 0); });
    return voxels;
  };
  const std::vector<std::vector<std::uint8_t>> images = {
    make([](auto, auto) { return true; }),
    make([](auto, auto) { return false; }),
    make([](auto x, auto y) { return x == 30 && y == 20; }),
    make([](auto x, auto y) { return x == 0 && y == 42; }),
    // On a circle: all are as near to the middle.
    make([](auto x, auto y) { return (x - 30) * (x - 30) + (y - 21) * (y - 21) == 325; }),
    make([](auto x, auto y) { return (x - 30) * (x - 30) + (y - 21) * (y - 21) > 400; }),
    make([](auto x, auto y) { return x == y; }),
    make([](auto x, auto y) { return (x + y) % 2 == 0; }),
  };
  for (const auto & voxels : images)
  {
    for (const auto result : { DistanceResult::Root, DistanceResult::Index })
    {
      for (const double ratio : { 1.0, 0.3, 1e-4, 1e4 })
      {
        for (int to = 0; to < (result == DistanceResult::Root ? 4 : 2); ++to)
        {
          const auto operation = MakeDistance<std::uint8_t, double>(extent, static_cast<DistanceTo>(to), result);
          operation->spacing[0] = ratio;
          DistanceTrial<std::uint8_t, double> t(operation, voxels);
          t.request.backend = this->GetBackend();
          ASSERT_NO_FATAL_FAILURE(this->GetManager().Execute(t.request));
          ASSERT_NO_FATAL_FAILURE(t.ExpectDefinition("hard"));
        }
      }
    }
  }
}

/** Lines of many blocks of voxels, some of them with features at hand, some without any. */
TEST_P(Distances, OfLinesWithFeaturesNearAndFarAreThoseOfTheDefinition)
{
  std::mt19937 random(12);
  for (const Coordinates & extent : { Coordinates{ { 300, 9, 3, 1, 1 } }, Coordinates{ { 9, 300, 3, 1, 1 } } })
  {
    for (const double length : { 1.0, 0.3 })
    {
      for (const unsigned int outOf : { 4u, 40u, 400u })
      {
        const auto operation = MakeDistance<std::uint8_t, float>(extent, DistanceTo::Objects);
        operation->spacing[1] = length;
        std::vector<std::uint8_t> voxels;
        ForEachIndex(Box::FromExtent(extent), [&](const Coordinates & at) {
          const bool isFull = std::max(at[0], at[1]) / 50 % 2 == 0;
          voxels.push_back(isFull && random() % outOf == 0 ? 1 : 0);
        });
        DistanceTrial<std::uint8_t, float> t(operation, voxels);
        t.request.backend = this->GetBackend();
        this->GetManager().Execute(t.request);
        ASSERT_NO_FATAL_FAILURE(t.ExpectDefinition("near and far, one in " + std::to_string(outOf)));
      }
    }
  }
}

/** Lines longer than a search goes, and squares that need 64 bits. */
TEST_P(Distances, AlongLongAxesAreThoseOfTheDefinition)
{
  struct Case
  {
    Coordinates              extent;
    std::vector<Coordinates> features;
  };
  const Case cases[] = {
    { { { 3000, 3, 2, 1, 1 } }, { { { 5, 1, 1, 0, 0 } }, { { 2900, 0, 0, 0, 0 } } } },
    { { { 2, 3000, 2, 1, 1 } }, { { { 0, 1500, 0, 0, 0 } } } },
    { { { 40000, 2, 1, 1, 1 } }, { { { 7, 0, 0, 0, 0 } } } },
    { { { 2, 60000, 2, 1, 1 } }, { { { 1, 59999, 1, 0, 0 } }, { { 0, 3, 0, 0, 0 } } } },
    { { { 2, 2, 70000, 1, 1 } }, { { { 1, 0, 69999, 0, 0 } }, { { 0, 1, 3, 0, 0 } } } },
  };
  for (const Case & each : cases)
  {
    for (const double length : { 1.0, 0.3 })
    {
      const auto operation = MakeDistance<std::uint8_t, double>(each.extent, DistanceTo::Objects);
      operation->spacing[0] = length;
      std::vector<std::uint8_t> voxels(static_cast<std::size_t>(Box::FromExtent(each.extent).NumberOfVoxels()));
      DistanceTrial<std::uint8_t, double> t(operation, voxels);
      for (const Coordinates & at : each.features)
      {
        t.voxels[static_cast<std::size_t>(t.request.inputs[0].Offset(at))] = 1;
      }
      t.request.backend = this->GetBackend();
      this->GetManager().Execute(t.request);
      int wrong = 0;
      ForEachIndex(t.request.image, [&](const Coordinates & at) {
        double best = Infinite;
        for (const Coordinates & feature : each.features)
        {
          double sum = 0;
          for (int axis = 2; axis >= 0; --axis)
          {
            const double apart = static_cast<double>(at[axis] - feature[axis]) * operation->spacing[axis];
            sum += apart * apart;
          }
          best = std::min(best, sum);
        }
        wrong += At<double>(t.request.output, at) == std::sqrt(best) ? 0 : 1;
      });
      EXPECT_EQ(wrong, 0) << ToString(each.extent) << " " << length;
    }
  }
}

TEST_P(Distances, OfPartsAreThoseOfTheWholeImage)
{
  std::mt19937      random(4);
  const Coordinates extent{ { 20, 15, 40, 1, 1 } };
  const auto        operation = MakeDistance<std::uint8_t, float>(extent);
  for (int trial = 0; trial < 10; ++trial)
  {
    DistanceTrial<std::uint8_t, float> t(operation, RandomObjects<std::uint8_t>(random, extent));
    t.request.region = RandomRegion(random, extent);
    t.request.region.lower[2] = 0;
    t.request.region.upper[2] = extent[2];
    t.request.backend = this->GetBackend();
    t.request.budgets.device = random() % 2 ? 0 : 200000;
    this->GetManager().Execute(t.request);
    t.ExpectDefinition("region");
  }
  DistanceTrial<std::uint8_t, float> t(operation, RandomObjects<std::uint8_t>(random, extent));
  t.request.region.upper[2] = 20;
  t.request.backend = this->GetBackend();
  EXPECT_THROW(this->GetManager().Execute(t.request), ParameterError);
}

/** Memory for a part of the image: it goes in blocks, which give what a run in memory gives. */
template <typename TIn, typename TOut>
void
StreamDistances(Manager & manager, BackendChoice backend, const std::shared_ptr<const Operation> & operation,
                std::vector<TIn> & voxels, const Coordinates & extent, std::uint64_t memory)
{
  const std::unique_ptr<Executor> executor = MakeThreadExecutor(1);
  const Box                       box = Box::FromExtent(extent);
  std::vector<TOut>               expected(voxels.size());
  std::vector<TOut>               output(voxels.size());
  ExecutionRequest                whole;
  whole.operation = operation;
  whole.image = whole.region = box;
  whole.inputs = { DenseView(voxels.data(), PixelTypeOf<TIn>(), box) };
  whole.output = DenseView(expected.data(), PixelTypeOf<TOut>(), box);
  whole.backend = BackendChoice::CPU;
  manager.Execute(whole);
  StreamedRequest request;
  request.operation = operation;
  request.inputs = { { std::make_shared<MemoryImage>(whole.inputs[0]), PixelTypeOf<TIn>() } };
  request.region = box;
  request.computedKind = request.writtenKind = PixelTypeOf<TOut>();
  request.backend = backend;
  request.memory = memory;
  // Less than the smallest of the images and its result take together: no device holds them.
  request.budgets.device = 280000;
  request.executor = executor.get();
  request.spoolFolder = testing::TempDir();
  const StreamedPlan plan = MakeStreamedPlan(manager, request);
  ASSERT_TRUE(plan.inSlabs);
  EXPECT_EQ(plan.bytesRead, 2 * voxels.size() * sizeof(TIn));
  ExecuteStreamed(
    manager, request, plan, std::make_shared<MemoryImage>(DenseView(output.data(), PixelTypeOf<TOut>(), box)));
  EXPECT_TRUE(output == expected) << operation->GetKey();
}

TEST_P(Distances, InImagesLargerThanMemoryAreThoseInMemory)
{
  std::mt19937      random(5);
  const Coordinates extents[] = { { { 24, 20, 300, 1, 1 } }, { { 120, 1500, 1, 1, 1 } }, { { 20, 8, 30, 25, 1 } } };
  for (int trial = 0; trial < 12; ++trial)
  {
    const Coordinates & extent = extents[trial % 3];
    auto                voxels = RandomObjects<std::uint8_t>(random, extent);
    const auto          operation = MakeDistance<std::uint8_t, float>(extent, static_cast<DistanceTo>(trial % 4));
    SetRandomSpacing(random, *operation);
    ASSERT_NO_FATAL_FAILURE((
      StreamDistances<std::uint8_t, float>(this->GetManager(), this->GetBackend(), operation, voxels, extent, 420000)));
    const auto labels = MakeDistance<std::uint8_t, std::uint8_t>(extent, DistanceTo::Objects, DistanceResult::Label);
    labels->limit = 4 + trial;
    ASSERT_NO_FATAL_FAILURE((StreamDistances<std::uint8_t, std::uint8_t>(
      this->GetManager(), this->GetBackend(), labels, voxels, extent, 250000)));
    if (trial % 3 == 2)
    {
      continue;
    }
    FilterImage image;
    image.extent = extent;
    FilterParameters parameters;
    parameters.SetReal("Radius", 3);
    parameters.Set("Morphology", trial % 2 ? "opening" : "closing");
    ASSERT_NO_FATAL_FAILURE(
      (StreamDistances<std::uint8_t, std::uint8_t>(this->GetManager(),
                                                   BackendChoice::CPU,
                                                   MakeFilterOperation("binary-morphology", parameters, image),
                                                   voxels,
                                                   extent,
                                                   250000)));
  }
}

/** The device computes some slices after the other. */
TEST(DistancesOnCuda, OfManySlicesAreThoseOfTheCpu)
{
  Manager & manager = Manager::GetGlobal();
  if (manager.GetDevices().empty())
  {
    GTEST_SKIP() << manager.GetReasonForNoDevices();
  }
  std::mt19937              random(8);
  const Coordinates         extent{ { 500, 300, 1000, 1, 1 } };
  std::vector<std::uint8_t> voxels(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()), 1);
  for (int i = 0; i < 2000; ++i)
  {
    // Some columns have features at both ends alone.
    const std::size_t column = random() % (500 * 300);
    const std::size_t slice = i % 4 == 0 ? 0 : i % 4 == 1 ? 999 : random() % 1000;
    voxels[slice * 500 * 300 + column] = i % 3 == 0 ? 2 : 0;
  }
  const auto compare = [&](const std::shared_ptr<DistanceOperation> & operation, auto out) {
    using Out = decltype(out);
    std::vector<Out> results[2];
    for (const BackendChoice backend : { BackendChoice::CPU, BackendChoice::CUDA })
    {
      std::vector<Out> & output = results[backend == BackendChoice::CUDA ? 1 : 0];
      output.resize(voxels.size());
      ExecutionRequest request;
      request.operation = operation;
      request.image = request.region = Box::FromExtent(extent);
      request.inputs = { DenseView(voxels.data(), PixelType::UInt8, request.image) };
      request.output = DenseView(output.data(), PixelTypeOf<Out>(), request.image);
      request.backend = backend;
      const ExecutionReport report = manager.Execute(request);
      EXPECT_EQ(report.plan.chunks.size(), 1u);
    }
    EXPECT_TRUE(results[0] == results[1]) << operation->GetKey();
  };
  compare(MakeDistance<std::uint8_t, float>(extent), float{});
  compare(MakeDistance<std::uint8_t, float>(extent, DistanceTo::Contour), float{});
  compare(MakeDistance<std::uint8_t, float>(extent, DistanceTo::Others), float{});
  const auto stretched = MakeDistance<std::uint8_t, double>(extent);
  stretched->spacing[2] = 0.3;
  compare(stretched, double{});
  const auto labels = MakeDistance<std::uint8_t, std::uint8_t>(extent, DistanceTo::Objects, DistanceResult::Label);
  labels->background = PixelValue(1);
  compare(labels, std::uint8_t{});
}

/** All instruction sets give the same bits. */
TEST(DistanceLevels, GiveTheSameBits)
{
  std::mt19937                                           random(6);
  Manager                                                manager({});
  const Coordinates                                      extent{ { 333, 77, 9, 1, 1 } };
  std::map<std::string, std::vector<std::vector<float>>> results;
  std::vector<std::vector<std::uint8_t>>                 images;
  for (int trial = 0; trial < 8; ++trial)
  {
    images.push_back(RandomObjects<std::uint8_t>(random, extent));
  }
  const std::string before = GetCpuLevel().name;
  for (const char * const level : { "baseline", "avx2", "avx512" })
  {
    if (!SetCpuLevel(level))
    {
      continue;
    }
    for (int trial = 0; trial < 8; ++trial)
    {
      const auto operation = MakeDistance<std::uint8_t, float>(extent);
      operation->spacing[1] = trial % 2 ? 1 : 0.7;
      DistanceTrial<std::uint8_t, float> t(operation, images[static_cast<std::size_t>(trial)]);
      t.request.backend = BackendChoice::CPU;
      manager.Execute(t.request);
      results[level].push_back(t.output);
    }
  }
  SetCpuLevel(before.c_str());
  for (const auto & level : results)
  {
    EXPECT_TRUE(level.second == results["baseline"]) << level.first;
  }
}

/** One thread and several. */
TEST(DistanceThreads, GiveTheSameBits)
{
  std::mt19937 random(7);
  for (int trial = 0; trial < 12; ++trial)
  {
    const Coordinates   extent{ { 90, trial % 3 == 0 ? 1 : 60, trial % 3 == 1 ? 3 : 40, trial % 4 == 3 ? 3 : 1, 1 } };
    const auto          voxels = RandomObjects<std::uint8_t>(random, extent);
    const auto          operation = MakeDistance<std::uint8_t, double>(extent, static_cast<DistanceTo>(trial % 4));
    std::vector<double> first;
    for (const unsigned int threads : { 1u, 3u, 8u })
    {
      Manager                             manager({});
      const std::unique_ptr<Executor>     executor = MakeThreadExecutor(threads);
      DistanceTrial<std::uint8_t, double> t(operation, voxels);
      t.request.backend = BackendChoice::CPU;
      t.request.executor = executor.get();
      manager.Execute(t.request);
      first = first.empty() ? t.output : first;
      EXPECT_TRUE(t.output == first) << threads;
    }
  }
}

/** Rows make operations; a composite is its stages. */
TEST(DistanceRows, MakeTheOperation)
{
  FilterImage image;
  image.extent = { { 20, 30, 40, 1, 1 } };
  image.outputKind = PixelType::Float32;
  image.spacing[0] = 0.5;
  FilterParameters parameters;
  parameters.Set("Features", "objects");
  parameters.SetReal("MaximumDistance", 7);
  const auto distance =
    std::dynamic_pointer_cast<const DistanceOperation>(MakeFilterOperation("distance", parameters, image));
  ASSERT_TRUE(distance);
  EXPECT_EQ(distance->to, DistanceTo::Objects);
  EXPECT_EQ(distance->spacing[0], 0.5);
  EXPECT_EQ(distance->limit, 7);
  EXPECT_EQ(distance->GetNumber(), DistanceNumber::Double);
  parameters.Set("UseImageSpacing", false);
  EXPECT_EQ(
    std::dynamic_pointer_cast<const DistanceOperation>(MakeFilterOperation("distance", parameters, image))->GetNumber(),
    DistanceNumber::Int32);
  image.outputKind = PixelType::UInt8;
  const auto refuses = [&](const std::string & name, const FilterParameters & given) {
    EXPECT_THROW(MakeFilterOperation(name, given, image)->CheckKinds({ image.inputKind }, image.outputKind),
                 ParameterError)
      << name;
  };
  refuses("distance", parameters);
  refuses("nearest", FilterParameters());
  EXPECT_THROW(MakeFilterOperation("expand-labels", FilterParameters(), image), ParameterError);
  FilterParameters morphology;
  morphology.SetReal("Radius", 2.5);
  morphology.Set("Morphology", "opening");
  const auto opening = MakeFilterOperation("binary-morphology", morphology, image);
  ASSERT_TRUE(opening->AsStaged());
  EXPECT_EQ(opening->AsStaged()->GetStages().size(), 2u);
  morphology.Set("ForegroundValue", PixelValue(300));
  refuses("binary-morphology", morphology);
}

/** Openings and closings by their definition: unions of balls in the object, and in the background. */
TEST_P(Distances, MakeOpeningsAndClosings)
{
  std::mt19937      random(8);
  const Coordinates extent{ { 14, 12, 10, 1, 1 } };
  const Box         box = Box::FromExtent(extent);
  for (int trial = 0; trial < 8; ++trial)
  {
    std::vector<std::uint8_t> voxels = RandomObjects<std::uint8_t>(random, extent);
    const double              radius = 1 + 0.5 * static_cast<double>(random() % 5);
    const bool                isOpening = trial % 2 == 0;
    FilterImage               image;
    image.extent = extent;
    FilterParameters parameters;
    parameters.SetReal("Radius", radius);
    parameters.Set("Morphology", isOpening ? "opening" : "closing");
    ExecutionRequest          request;
    std::vector<std::uint8_t> output(voxels.size(), 9);
    request.operation = MakeFilterOperation("binary-morphology", parameters, image);
    request.image = request.region = box;
    request.inputs = { DenseView(voxels.data(), PixelType::UInt8, box) };
    request.output = DenseView(output.data(), PixelType::UInt8, box);
    request.backend = BackendChoice::Auto;
    this->GetManager().Execute(request);
    const auto spread = [&](const std::vector<bool> & set) {
      std::vector<bool> grown;
      ForEachIndex(box, [&](const Coordinates & at) {
        bool        isNear = false;
        std::size_t i = 0;
        ForEachIndex(box, [&](const Coordinates & other) {
          double sum = 0;
          for (int axis = 0; axis < 3; ++axis)
          {
            sum += static_cast<double>((at[axis] - other[axis]) * (at[axis] - other[axis]));
          }
          isNear = isNear || (set[i++] && sum <= radius * radius);
        });
        grown.push_back(isNear);
      });
      return grown;
    };
    std::vector<bool> set;
    for (const std::uint8_t voxel : voxels)
    {
      set.push_back((voxel != 0) != isOpening);
    }
    // The complement, grown twice with a complement between.
    set = spread(set);
    set.flip();
    set = spread(set);
    for (std::size_t i = 0; i < set.size(); ++i)
    {
      ASSERT_EQ(output[i], set[i] == isOpening ? 1 : 0) << i << " radius " << radius;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Distances, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Distances, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Distances, testing::Values(Place::Cuda));

} // namespace
