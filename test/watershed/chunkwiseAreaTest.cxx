/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseAreaOperation.h"
#include "chunkwiseDefinitionTrial.h"
#include "chunkwiseFilters.h"
#include "chunkwiseMemoryImage.h"
#include "chunkwiseOutOfCoreRunner.h"

#include <array>
#include <cmath>
#include <numeric>
#include <set>

using namespace chunkwise;

namespace
{

class Areas : public testing::Test
{};

template <typename T>
std::vector<T>
RandomVoxels(std::mt19937 & random, std::size_t count)
{
  std::vector<T>      voxels(count);
  const std::uint32_t values[] = { 1, 2, 4, 30, 100000 };
  const std::uint32_t most = values[random() % 5];
  for (T & voxel : voxels)
  {
    voxel = static_cast<T>(random() % most);
    if constexpr (!std::is_integral<T>::value)
    {
      const std::uint32_t special = random() % 60;
      voxel = special == 0   ? std::numeric_limits<T>::quiet_NaN()
              : special == 1 ? -std::numeric_limits<T>::infinity()
              : special == 2 ? std::numeric_limits<T>::infinity()
                             : voxel / T(4) - T(1);
    }
    else if (random() % 50 == 0)
    {
      voxel = random() % 2 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
    }
  }
  return voxels;
}

/** body(level, voxels, values beside them) for all components of all thresholds, the lowest ones first; of closings in
 * the reversed order. */
template <typename T, typename TBody>
void
ForComponents(const AreaOperation & operation, const std::vector<T> & voxels, TBody && body)
{
  const Coordinates                     stride = DenseStrides(operation.image);
  std::vector<std::vector<std::size_t>> neighbors(voxels.size());
  std::size_t                           voxel = 0;
  ForEachIndex(Box::FromExtent(operation.image), [&](const Coordinates & at) {
    for (int code = 0; code < 243; ++code)
    {
      int          steps = 0;
      bool         isNeighbor = true;
      std::int64_t other = 0;
      for (int a = 0, rest = code; a < MaxDimension; ++a, rest /= 3)
      {
        const int digit = rest % 3 - 1;
        steps += std::abs(digit);
        isNeighbor = isNeighbor && (digit == 0 || std::count(operation.axes.begin(), operation.axes.end(), a) > 0) &&
                     at[a] + digit >= 0 && at[a] + digit < operation.image[a];
        other += (at[a] + digit) * stride[a];
      }
      if (isNeighbor && steps > 0 && steps <= operation.connectivity)
      {
        neighbors[voxel].push_back(static_cast<std::size_t>(other));
      }
    }
    ++voxel;
  });
  const auto     isBefore = [&](T a, T b) { return operation.closing ? a > b : a < b; };
  std::vector<T> levels;
  std::copy_if(voxels.begin(), voxels.end(), std::back_inserter(levels), [](T value) { return value == value; });
  std::sort(levels.begin(), levels.end(), isBefore);
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  for (const T level : levels)
  {
    const auto        isIn = [&](std::size_t i) { return voxels[i] == voxels[i] && !isBefore(voxels[i], level); };
    std::vector<bool> isSeen(voxels.size());
    for (std::size_t first = 0; first < voxels.size(); ++first)
    {
      if (isSeen[first] || !isIn(first))
      {
        continue;
      }
      std::vector<std::size_t> component{ first };
      std::vector<T>           outside;
      isSeen[first] = true;
      for (std::size_t i = 0; i < component.size(); ++i)
      {
        for (const std::size_t beside : neighbors[component[i]])
        {
          if (!isIn(beside))
          {
            voxels[beside] == voxels[beside] ? outside.push_back(voxels[beside]) : void();
          }
          else if (!isSeen[beside])
          {
            isSeen[beside] = true;
            component.push_back(beside);
          }
        }
      }
      body(level, component, outside);
    }
  }
}

/** Whether a component is large, or has all voxels that paths reach. */
template <typename T>
bool
IsLargeByDefinition(const AreaOperation & operation, const std::vector<T> & voxels,
                    const std::vector<std::size_t> & component, const std::vector<T> & outside)
{
  using Real = long double;
  if (operation.attribute == AreaAttribute::Area)
  {
    return component.size() >= operation.size;
  }
  if (operation.attribute == AreaAttribute::Extent)
  {
    bool              isLarge = false;
    const Coordinates stride = DenseStrides(operation.image);
    for (std::size_t i = 0; i < operation.axes.size(); ++i)
    {
      std::set<std::int64_t> found;
      for (const std::size_t voxel : component)
      {
        const int axis = operation.axes[i];
        found.insert(static_cast<std::int64_t>(voxel) / stride[axis] % operation.image[axis]);
      }
      isLarge = isLarge || static_cast<std::uint64_t>(*found.rbegin() - *found.begin() + 1) >= operation.extents[i];
    }
    return isLarge;
  }
  if (outside.empty())
  {
    return true;
  }
  const T    next = operation.closing ? *std::min_element(outside.begin(), outside.end())
                                      : *std::max_element(outside.begin(), outside.end());
  const auto unitsOf = [&](T value) {
    constexpr Real most = 4611686018427387904.0L;
    return std::is_integral<T>::value
             ? static_cast<Real>(value)
             : std::min(most,
                        std::max(-most, std::floor(static_cast<Real>(value) / static_cast<Real>(operation.unit))));
  };
  Real volume = 0;
  Real height = 0;
  for (const std::size_t i : component)
  {
    volume += std::abs(unitsOf(voxels[i]) - unitsOf(next));
    // In the precision that the definition names.
    const Real rise = std::is_integral<T>::value
                        ? static_cast<Real>(voxels[i]) - static_cast<Real>(next)
                        : static_cast<Real>(static_cast<double>(voxels[i]) - static_cast<double>(next));
    height = std::max(height, std::abs(rise));
  }
  return operation.attribute == AreaAttribute::Volume ? volume >= static_cast<Real>(operation.size)
         : std::is_integral<T>::value                 ? height >= static_cast<Real>(operation.size)
                                                      : height >= static_cast<Real>(operation.height);
}

template <typename T>
std::vector<T>
OpenedByDefinition(const AreaOperation & operation, const std::vector<T> & voxels)
{
  std::vector<T>    result = voxels;
  std::vector<bool> hasResult(voxels.size());
  ForComponents(operation, voxels, [&](T level, const std::vector<std::size_t> & component, const auto & outside) {
    const bool isLarge = IsLargeByDefinition(operation, voxels, component, outside);
    // At the first level a component has all voxels that paths reach.
    T least = voxels[component.front()];
    for (const std::size_t i : component)
    {
      least = (operation.closing ? voxels[i] > least : voxels[i] < least) ? voxels[i] : least;
    }
    for (const std::size_t i : component)
    {
      if (isLarge || !hasResult[i])
      {
        result[i] = hasResult[i] ? level : least;
        hasResult[i] = true;
      }
    }
  });
  return result;
}

template <typename T>
struct AreaTrial
{
  AreaTrial(std::shared_ptr<AreaOperation> theOperation, std::vector<T> theVoxels)
    : operation(std::move(theOperation))
    , voxels(std::move(theVoxels))
    , output(voxels.size())
  {
    operation->inputKind = operation->outputKind = PixelTypeOf<T>();
    request.operation = operation;
    request.image = request.region = Box::FromExtent(operation->image);
    request.inputs = { DenseView(voxels.data(), PixelTypeOf<T>(), request.image) };
    request.output = DenseView(output.data(), PixelTypeOf<T>(), request.image);
    request.backend = BackendChoice::CPU;
  }
  void
  Run(Manager & manager)
  {
    std::fill(output.begin(), output.end(), static_cast<T>(77));
    manager.Execute(request);
  }
  /** From a source to a sink, with `extra` bytes more than the least. Returns the bytes of the spool. */
  std::uint64_t
  RunOutOfCore(Manager & manager, std::uint64_t extra)
  {
    const OutOfCoreRunner & runner = *operation->GetOutOfCoreRunner();
    OutOfCoreRequest        outOfCore;
    outOfCore.operation = operation;
    outOfCore.sources = { std::make_shared<MemoryImage>(request.inputs.front()) };
    outOfCore.sink = std::make_shared<MemoryImage>(request.output);
    outOfCore.spoolFolder = testing::TempDir();
    outOfCore.executor = request.executor;
    outOfCore.hostBytes = runner.GetLeastHostBytes(manager, outOfCore) + extra;
    std::fill(output.begin(), output.end(), static_cast<T>(77));
    try
    {
      return runner.Run(manager, outOfCore, nullptr).spoolWritten;
    }
    catch (const BudgetError & error)
    {
      ++refused;
      outOfCore.hostBytes = error.needed;
      return runner.Run(manager, outOfCore, nullptr).spoolWritten;
    }
  }
  void
  Expect(const std::vector<T> & expected, const std::string & where) const
  {
    for (std::size_t i = 0; i < voxels.size(); ++i)
    {
      ASSERT_TRUE(output[i] == expected[i] || (output[i] != output[i] && expected[i] != expected[i]))
        << where << ": " << operation->GetKey() << " tiles " << operation->tileVoxels << " blocks "
        << operation->blockVoxels << ": voxel " << i << " has " << +output[i] << " and not " << +expected[i];
    }
  }

  std::shared_ptr<AreaOperation> operation;
  std::vector<T>                 voxels;
  std::vector<T>                 output;
  ExecutionRequest               request;
  int                            refused{ 0 }; ///< runs with too little memory for the tree of a plane
};

/** Sizes by any attribute, of which some parts are large. */
void
SetRandomSize(AreaOperation & operation, std::mt19937 & random, std::size_t count)
{
  const std::size_t sizes[] = { 1, 2, 3, 5, 12, 60, count, count + 1, ~std::size_t{ 0 } / 4 };
  operation.size = sizes[random() % 9];
  constexpr AreaAttribute attributes[] = {
    AreaAttribute::Area, AreaAttribute::Extent, AreaAttribute::Height, AreaAttribute::Volume
  };
  operation.attribute = attributes[random() % 4];
  operation.height = 0.25 * static_cast<double>(random() % 40);
  operation.unit =
    operation.attribute == AreaAttribute::Volume ? std::ldexp(1.0, static_cast<int>(random() % 5) - 4) : 1;
  for (std::uint64_t & extent : operation.extents)
  {
    extent = random() % 10 == 0 ? std::uint64_t{ 1 } << 40 : 1 + random() % 8;
  }
}

template <typename T>
void
TryAnyArea(std::mt19937 & random, int trials)
{
  Manager manager({});
  int     spooled = 0;
  int     refused = 0;
  for (int trial = 0; trial < trials; ++trial)
  {
    auto operation = std::make_shared<AreaOperation>();
    operation->image = RandomExtent(random, 8);
    operation->axes = RandomAxes(random);
    std::sort(operation->axes.begin(), operation->axes.end());
    operation->connectivity = 1 + static_cast<int>(random() % 3);
    operation->closing = random() % 2;
    const auto count = static_cast<std::size_t>(Box::FromExtent(operation->image).NumberOfVoxels());
    SetRandomSize(*operation, random, count);
    AreaTrial<T>         t(operation, RandomVoxels<T>(random, count));
    const std::vector<T> expected = OpenedByDefinition(*operation, t.voxels);
    const auto           executor = MakeThreadExecutor(1 + random() % 3);
    t.request.executor = executor.get();
    for (int cut = 0; cut < 4; ++cut)
    {
      operation->tileVoxels = cut == 0 ? 1 << 17 : 1 << random() % 9;
      operation->blockVoxels = cut < 2 ? 1 << 17 : 1 + random() % count;
      t.Run(manager);
      ASSERT_NO_FATAL_FAILURE(t.Expect(expected, "trial " + std::to_string(trial) + " cut " + std::to_string(cut)));
    }
    spooled += t.RunOutOfCore(manager, random() % (1 + 300 * count)) > 0 ? 1 : 0;
    ASSERT_NO_FATAL_FAILURE(t.Expect(expected, "trial " + std::to_string(trial) + " out of core"));
    refused += t.refused;
  }
  EXPECT_GT(spooled, trials / 20);
  EXPECT_LT(refused, trials / 10);
}

TEST_F(Areas, AreThoseOfTheDefinition)
{
  std::mt19937 random(1);
  TryAnyArea<std::uint8_t>(random, 500);
  TryAnyArea<float>(random, 300);
  TryAnyArea<std::int16_t>(random, 150);
  TryAnyArea<double>(random, 60);
  TryAnyArea<std::int64_t>(random, 60);
  TryAnyArea<std::uint32_t>(random, 30);
}

/** Components of many voxels: what they are is known after many blocks. */
TEST_F(Areas, OfLargerImagesAreThoseOfTheDefinition)
{
  Manager           manager({});
  std::mt19937      random(2);
  const Coordinates extent{ { 14, 12, 30, 1, 1 } };
  const auto        count = static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels());
  for (int trial = 0; trial < 9; ++trial)
  {
    auto operation = std::make_shared<AreaOperation>();
    operation->image = extent;
    operation->connectivity = 1 + trial % 3;
    operation->closing = trial % 6 > 2;
    const std::size_t sizes[] = { 30, 400, 2000, 30, 400, 2000, 0, 12, 6000 };
    operation->size = sizes[trial];
    operation->attribute = trial < 6    ? AreaAttribute::Area
                           : trial == 6 ? AreaAttribute::Extent
                           : trial == 7 ? AreaAttribute::Height
                                        : AreaAttribute::Volume;
    operation->extents = { { 6, 7, 9 } };
    std::vector<std::uint16_t> voxels;
    ForEachIndex(Box::FromExtent(extent), [&](const Coordinates & at) {
      const double height = std::sin(0.4 * static_cast<double>(at[0])) + std::sin(0.5 * static_cast<double>(at[1])) +
                            std::sin(0.3 * static_cast<double>(at[2]));
      voxels.push_back(static_cast<std::uint16_t>(20 * height + 100 + random() % 4));
    });
    AreaTrial<std::uint16_t>         t(operation, voxels);
    const std::vector<std::uint16_t> expected = OpenedByDefinition(*operation, voxels);
    EXPECT_FALSE(expected == voxels);
    operation->tileVoxels = 1 << (5 + trial % 6);
    for (const std::int64_t planes : { 30, 10, 3, 1 })
    {
      operation->blockVoxels = planes * 14 * 12;
      t.Run(manager);
      ASSERT_NO_FATAL_FAILURE(t.Expect(expected, std::to_string(planes) + " planes"));
    }
    EXPECT_GT(t.RunOutOfCore(manager, 100 * count), 0U);
    ASSERT_NO_FATAL_FAILURE(t.Expect(expected, "out of core"));
  }
}

TEST_F(Areas, TakeTheMemoryThatTheySayIsEnough)
{
  Manager       manager({});
  std::uint64_t ofArea = 0;
  for (const AreaAttribute attribute :
       { AreaAttribute::Area, AreaAttribute::Extent, AreaAttribute::Height, AreaAttribute::Volume })
  {
    SCOPED_TRACE(static_cast<int>(attribute));
    auto operation = std::make_shared<AreaOperation>();
    operation->image = { { 40, 30, 20, 1, 1 } };
    operation->size = 100;
    operation->attribute = attribute;
    operation->extents = { { 6, 7, 9 } };
    std::mt19937             random(3);
    AreaTrial<std::uint16_t> t(operation, RandomVoxels<std::uint16_t>(random, 24000));
    const auto               executor = MakeThreadExecutor(2);
    t.request.executor = executor.get();
    t.Run(manager);
    const std::vector<std::uint16_t> expected = t.output;
    t.request.budgets.host = 1000;
    try
    {
      t.Run(manager);
      ADD_FAILURE();
    }
    catch (const BudgetError & error)
    {
      t.request.budgets.host = error.needed;
      EXPECT_EQ(manager.MakePlanFor(t.request).deviceBytes, error.needed);
    }
    // Components that have marks take more.
    ofArea = attribute == AreaAttribute::Area ? t.request.budgets.host : ofArea;
    EXPECT_EQ(t.request.budgets.host > ofArea, attribute != AreaAttribute::Area);
    t.Run(manager);
    EXPECT_EQ(t.output, expected);
    --t.request.budgets.host;
    EXPECT_THROW(t.Run(manager), BudgetError);
  }
}

/** Ascending values: all voxels before a plane are levels of the plane's component. */
TEST_F(Areas, TellTheMemoryThatTreesNeed)
{
  Manager manager({});
  auto    operation = std::make_shared<AreaOperation>();
  operation->image = { { 1, 1, 4000, 1, 1 } };
  operation->size = 3500;
  std::vector<std::uint32_t> voxels(4000);
  std::iota(voxels.begin(), voxels.end(), 7U);
  AreaTrial<std::uint32_t> t(operation, voxels);
  const auto               executor = MakeThreadExecutor(1);
  t.request.executor = executor.get();
  operation->blockVoxels = 10;
  operation->tileVoxels = 16;
  EXPECT_GT(t.RunOutOfCore(manager, 0), 0U);
  EXPECT_EQ(t.refused, 1);
  std::fill(voxels.begin() + 501, voxels.end(), voxels[500]);
  t.Expect(voxels, "ascending");
}

/** As docs/watershed.md says, the regional minima of a closing are the least components that have the size. */
TEST_F(Areas, HaveMinimaThatAreTheLeastLargeComponents)
{
  Manager      manager({});
  std::mt19937 random(6);
  for (int trial = 0; trial < 30; ++trial)
  {
    auto operation = std::make_shared<AreaOperation>();
    operation->image = { { 9, 7, 5, 1, 1 } };
    operation->closing = true;
    operation->size = 2 + random() % 60;
    AreaTrial<std::uint8_t> t(operation, RandomVoxels<std::uint8_t>(random, 315));
    t.Run(manager);
    FilterImage image;
    image.extent = operation->image;
    std::vector<std::uint8_t> minima(315);
    t.request.operation = MakeFilterOperation("regional-minima", FilterParameters(), image);
    t.request.inputs = { t.request.output };
    t.request.output = DenseView(minima.data(), PixelType::UInt8, t.request.image);
    manager.Execute(t.request);
    std::vector<std::vector<std::size_t>> large;
    ForComponents(*operation, t.voxels, [&](std::uint8_t, const std::vector<std::size_t> & component, const auto &) {
      if (component.size() >= operation->size)
      {
        large.push_back(component);
      }
    });
    std::vector<std::uint8_t> expected(315);
    for (auto component = large.rbegin(); component != large.rend(); ++component)
    {
      const bool isLeast =
        std::none_of(component->begin(), component->end(), [&](std::size_t i) { return expected[i] != 0; });
      for (const std::size_t i : *component)
      {
        expected[i] = isLeast ? 255 : expected[i] == 0 ? 1 : expected[i];
      }
    }
    std::replace(expected.begin(), expected.end(), std::uint8_t{ 1 }, std::uint8_t{ 0 });
    ASSERT_EQ(minima, expected) << trial << " " << operation->GetKey();
  }
}

class StoppingMonitor : public Monitor
{
public:
  void
  UpdateProgress(double fraction) override
  {
    EXPECT_GE(fraction, last);
    last = fraction;
  }
  bool
  ShouldAbort() override
  {
    return last >= stopsAt;
  }
  double last{ 0 };
  double stopsAt{ 2 };
};

TEST_F(Areas, ReportProgressAndStop)
{
  Manager manager({});
  auto    operation = std::make_shared<AreaOperation>();
  operation->image = { { 9, 9, 20, 1, 1 } };
  operation->size = 9;
  operation->blockVoxels = 2 * 81;
  std::mt19937            random(4);
  AreaTrial<std::uint8_t> t(operation, RandomVoxels<std::uint8_t>(random, 1620));
  StoppingMonitor         monitor;
  manager.Execute(t.request, &monitor);
  EXPECT_EQ(monitor.last, 1.0);
  monitor.last = 0;
  monitor.stopsAt = 0.3;
  EXPECT_THROW(manager.Execute(t.request, &monitor), Aborted);
  EXPECT_LT(monitor.last, 0.5);
}

TEST_F(Areas, AreNotComputedByDevices)
{
  Manager manager({ std::make_shared<FakeDevice>(FakeDevice::Options()) });
  auto    operation = std::make_shared<AreaOperation>();
  operation->image = { { 5, 4, 3, 1, 1 } };
  AreaTrial<std::uint8_t> t(operation, std::vector<std::uint8_t>(60, 7));
  t.request.backend = BackendChoice::CUDA;
  EXPECT_THROW(t.Run(manager), Error);
  t.request.backend = BackendChoice::Auto;
  t.Run(manager);
  EXPECT_EQ(t.output, t.voxels);
}

TEST(AreaRows, CountVoxels)
{
  FilterImage image;
  image.extent = { { 5, 4, 3, 1, 1 } };
  image.spacing[0] = 0.5;
  image.spacing[1] = 0.2;
  image.spacing[2] = -1;
  const auto sizeOf = [&](double size, bool usesSpacing, std::vector<std::int64_t> axes) {
    FilterParameters parameters;
    parameters.SetReal("Size", size);
    parameters.Set("UseImageSpacing", usesSpacing);
    parameters.Set("SpatialAxes", std::move(axes));
    const auto operation = MakeFilterOperation("area-closing", parameters, image);
    return dynamic_cast<const AreaOperation &>(*operation).size;
  };
  const auto make = [&](const char * attribute, double size, PixelType kind) {
    FilterParameters parameters;
    parameters.SetReal("Size", size);
    parameters.Set("Attribute", attribute);
    image.inputKind = image.outputKind = kind;
    return std::dynamic_pointer_cast<const AreaOperation>(MakeFilterOperation("area-opening", parameters, image));
  };
  EXPECT_EQ(make("extent", 1.01, PixelType::UInt8)->extents, (std::array<std::uint64_t, 3>{ { 3, 6, 2 } }));
  EXPECT_EQ(make("height", 2.5, PixelType::UInt8)->size, 3U);
  EXPECT_EQ(make("height", 2.5, PixelType::Float32)->height, 2.5);
  EXPECT_EQ(make("volume", 0.31, PixelType::UInt8)->size, 4U);
  EXPECT_GE(make("volume", 0.31, PixelType::Float32)->size, std::uint64_t{ 1 } << 39);
  EXPECT_THROW(make("dynamics", 1, PixelType::UInt8), ParameterError);
  std::set<std::string> keys;
  for (const char * const attribute : { "area", "extent", "height", "volume" })
  {
    keys.insert(make(attribute, 2, PixelType::Float32)->GetKey());
    keys.insert(make(attribute, 3, PixelType::Float32)->GetKey());
  }
  EXPECT_EQ(keys.size(), 8U);
  image.extent[1] = MostVoxelsOfExtent;
  EXPECT_THROW(make("extent", 1, PixelType::UInt8)->Validate(image.extent), ParameterError);
  make("height", 1, PixelType::UInt8)->Validate(image.extent);
  image.extent[1] = 4;
  EXPECT_EQ(sizeOf(7, false, { 0, 1, 2 }), 7U);
  EXPECT_EQ(sizeOf(6.01, false, { 0, 1, 2 }), 7U);
  EXPECT_EQ(sizeOf(0, false, { 0, 1, 2 }), 1U);
  EXPECT_EQ(sizeOf(0.3, true, { 0, 1, 2 }), 3U);
  EXPECT_EQ(sizeOf(0.31, true, { 2, 0, 1 }), 4U);
  EXPECT_EQ(sizeOf(2, true, { 0, 2 }), 4U);
  EXPECT_GT(sizeOf(1e300, true, { 0, 2 }), std::uint64_t{ 1 } << 62);
  EXPECT_THROW(sizeOf(-1, true, { 0 }), ParameterError);
  EXPECT_THROW(sizeOf(std::numeric_limits<double>::quiet_NaN(), true, { 0 }), ParameterError);
  image.spacing[1] = 0;
  EXPECT_THROW(sizeOf(1, true, { 0, 1 }), ParameterError);
}

} // namespace
