/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFakeDevices.h"
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseLabelBlocks.h"
#include "chunkwiseLabelOperation.h"
#include "chunkwiseMemoryImage.h"
#include "chunkwiseStreamedRun.h"

#include <deque>
#include <map>

using namespace chunkwise;

namespace
{

class Labels : public KernelTest
{};

/** By breadth-first search from each voxel in raster order: the definition. */
template <typename T>
std::vector<std::uint64_t>
LabelByDefinition(const LabelOperation & operation, const std::vector<T> & voxels, const Coordinates & extent)
{
  const Box                  box = Box::FromExtent(extent);
  const Coordinates          stride = DenseStrides(extent);
  std::vector<std::uint64_t> labels(voxels.size(), 0);
  const T                    background = operation.background.As<T>();
  const auto                 offsetOf = [&](const Coordinates & index) {
    std::int64_t offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += index[a] * stride[a];
    }
    return static_cast<std::size_t>(offset);
  };
  const auto isForeground = [&](std::size_t i) { return operation.labelsBackground || voxels[i] != background; };
  const auto areOfOne = [&](T a, T b) {
    switch (operation.rule)
    {
      case LabelRule::Equal:
        return a == b;
      case LabelRule::Within:
        return a == b ||
               (std::is_integral<T>::value
                  ? static_cast<long double>(a) - static_cast<long double>(b) <= operation.tolerance.ToDouble() &&
                      static_cast<long double>(b) - static_cast<long double>(a) <= operation.tolerance.ToDouble()
                  : std::fabs(static_cast<double>(a) - static_cast<double>(b)) <= operation.tolerance.ToDouble());
      default:
        return true;
    }
  };
  std::uint64_t count = 0;
  ForEachIndex(box, [&](const Coordinates & seed) {
    if (labels[offsetOf(seed)] != 0 || !isForeground(offsetOf(seed)))
    {
      return;
    }
    labels[offsetOf(seed)] = ++count;
    std::deque<Coordinates> queue{ seed };
    while (!queue.empty())
    {
      const Coordinates at = queue.front();
      queue.pop_front();
      for (int bit = 0; bit < 27; ++bit)
      {
        if ((operation.structure >> bit & 1) == 0)
        {
          continue;
        }
        const int   steps[3] = { bit % 3 - 1, bit / 3 % 3 - 1, bit / 9 - 1 };
        Coordinates beside = at;
        bool        isInside = true;
        for (std::size_t i = 0; i < operation.axes.size(); ++i)
        {
          const int axis = operation.axes[i];
          beside[axis] += steps[i];
          if (operation.periodic[axis])
          {
            beside[axis] = (beside[axis] + extent[axis]) % extent[axis];
          }
          isInside = isInside && beside[axis] >= 0 && beside[axis] < extent[axis];
        }
        if (isInside && labels[offsetOf(beside)] == 0 && isForeground(offsetOf(beside)) &&
            areOfOne(voxels[offsetOf(at)], voxels[offsetOf(beside)]))
        {
          labels[offsetOf(beside)] = count;
          queue.push_back(beside);
        }
      }
    }
  });
  return labels;
}

template <typename T>
std::shared_ptr<LabelOperation>
MakeLabel(const Coordinates & extent, PixelType output, int connectivity = 3)
{
  auto operation = std::make_shared<LabelOperation>();
  operation->image = extent;
  operation->inputKind = PixelTypeOf<T>();
  operation->outputKind = output;
  operation->structure = LabelOperation::MakeStructure(connectivity, 3);
  return operation;
}

/** A structure that is symmetric, of any neighbors. */
std::uint32_t
RandomStructure(std::mt19937 & random, int dimension)
{
  const std::uint32_t inside = LabelOperation::MakeStructure(3, dimension);
  std::uint32_t       structure = 0;
  for (int bit = 0; bit < 13; ++bit)
  {
    structure |= random() % 2 ? (std::uint32_t{ 1 } << bit | std::uint32_t{ 1 } << (26 - bit)) & inside : 0;
  }
  return structure;
}

/** Few values, so that neighbors are alike now and then. */
template <typename T>
std::vector<T>
RandomVoxels(std::mt19937 & random, const Coordinates & extent)
{
  std::vector<T>      voxels(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  const std::uint32_t outOf = 1 + random() % 8;
  const std::uint32_t values = 2 + random() % 4;
  for (T & voxel : voxels)
  {
    const bool isSet = random() % 8 < outOf;
    voxel = isSet ? static_cast<T>(random() % values) : T{ 0 };
    if constexpr (!std::is_integral<T>::value)
    {
      voxel = random() % 50 == 0 ? std::numeric_limits<T>::quiet_NaN() : voxel / T(4);
    }
  }
  return voxels;
}

/** The same in any kind. */
template <typename TOut>
std::vector<TOut>
Convert(const std::vector<std::uint64_t> & labels)
{
  std::vector<TOut> converted(labels.size());
  std::transform(
    labels.begin(), labels.end(), converted.begin(), [](std::uint64_t label) { return static_cast<TOut>(label); });
  return converted;
}

/** An image in memory and a run of its labels. */
template <typename TIn, typename TOut>
struct LabelTrial
{
  LabelTrial(std::shared_ptr<const LabelOperation> theOperation, std::vector<TIn> theVoxels)
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
    const auto expected = Convert<TOut>(LabelByDefinition(*operation, voxels, operation->image));
    const auto different = std::mismatch(output.begin(), output.end(), expected.begin());
    ASSERT_TRUE(different.first == output.end())
      << where << ": " << operation->GetKey() << ": voxel " << different.first - output.begin() << " has "
      << +*different.first << " and not " << +*different.second << " of "
      << +*std::max_element(expected.begin(), expected.end());
  }

  std::shared_ptr<const LabelOperation> operation;
  std::vector<TIn>                      voxels;
  std::vector<TOut>                     output;
  ExecutionRequest                      request;
};

/** Random operations on random images, whole and in chunks. */
template <typename TIn, typename TOut>
void
TryAnyLabels(std::mt19937 & random, Manager & manager, BackendChoice backend, int trials, int extent)
{
  int chunked = 0;
  for (int trial = 0; trial < trials; ++trial)
  {
    Coordinates size = RandomExtent(random, extent);
    size[0] = random() % 3 == 0 ? 1 + static_cast<std::int64_t>(random() % 200) : size[0];
    const auto operation = MakeLabel<TIn>(size, PixelTypeOf<TOut>());
    operation->axes = RandomAxes(random);
    std::sort(operation->axes.begin(), operation->axes.end());
    const int dimension = static_cast<int>(operation->axes.size());
    operation->structure = random() % 3 == 0
                             ? RandomStructure(random, dimension)
                             : LabelOperation::MakeStructure(1 + static_cast<int>(random() % 3), dimension);
    operation->rule = static_cast<LabelRule>(random() % 3);
    operation->tolerance = std::is_integral<TIn>::value ? PixelValue(random() % 3) : PixelValue(0.25);
    operation->background = PixelValue(random() % 2);
    operation->labelsBackground = random() % 4 == 0;
    for (const int axis : operation->axes)
    {
      operation->periodic[axis] = random() % 5 == 0;
    }
    LabelTrial<TIn, TOut> t(operation, RandomVoxels<TIn>(random, size));
    t.request.backend = backend;
    if (random() % 3)
    {
      t.request.budgets.device = extent > 20 ? 50000 + random() % 1000000 : 4000 + random() % 200000;
      t.request.budgets.host = (std::size_t{ 2000 } << random() % 9) + (extent > 20 ? random() % 400000 : 0);
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
    t.ExpectDefinition("trial " + std::to_string(trial) + " budget " + std::to_string(t.request.budgets.host));
    if (testing::Test::HasFatalFailure())
    {
      return;
    }
  }
  // The faces of small chunks take more memory than a small image does as one chunk.
  EXPECT_TRUE(chunked > 0 || extent < 20 || backend == BackendChoice::CUDA);
}

TEST_P(Labels, AreThoseOfTheDefinition)
{
  std::mt19937 random(1);
  TryAnyLabels<std::uint8_t, std::uint32_t>(random, this->GetManager(), this->GetBackend(), 150, 14);
  TryAnyLabels<std::int16_t, std::uint16_t>(random, this->GetManager(), this->GetBackend(), 50, 14);
  TryAnyLabels<std::uint64_t, std::int64_t>(random, this->GetManager(), this->GetBackend(), 50, 14);
  TryAnyLabels<float, std::int32_t>(random, this->GetManager(), this->GetBackend(), 50, 14);
  TryAnyLabels<double, float>(random, this->GetManager(), this->GetBackend(), 50, 14);
}

TEST_P(Labels, OfLargerImagesAreThoseOfTheDefinition)
{
  std::mt19937 random(2);
  TryAnyLabels<std::uint8_t, std::uint32_t>(random, this->GetManager(), this->GetBackend(), 30, 60);
  TryAnyLabels<std::uint16_t, std::uint64_t>(random, this->GetManager(), this->GetBackend(), 20, 60);
}

/** Images that are worst for unions. */
std::vector<std::vector<std::uint8_t>>
HardImages(const Coordinates & extent)
{
  const Coordinates stride = DenseStrides(extent);
  const auto        make = [&](auto && isSet) {
    std::vector<std::uint8_t> voxels(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
    ForEachIndex(Box::FromExtent(extent), [&](const Coordinates & at) {
      voxels[static_cast<std::size_t>(at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2])] = isSet(at) ? 1 : 0;
    });
    return voxels;
  };
  std::mt19937 random(3);
  return { make([](const Coordinates &) { return true; }),
           make([](const Coordinates &) { return false; }),
           make([](const Coordinates & at) { return (at[0] + at[1] + at[2]) % 2 == 0; }),
           // Combs whose teeth meet in the last row, or plane.
           make([&](const Coordinates & at) { return at[0] % 2 == 0 || at[1] + 1 == extent[1]; }),
           make([&](const Coordinates & at) { return (at[0] % 2 == 0 && at[1] % 2 == 0) || at[2] + 1 == extent[2]; }),
           // Walls with a hole on alternating sides: one path through all planes.
           make([&](const Coordinates & at) {
             return at[2] % 2 == 0 || (at[0] == (at[2] % 4 == 1 ? 0 : extent[0] - 1) && at[1] == 0);
           }),
           // A spiral in each plane.
           make([&](const Coordinates & at) {
             const std::int64_t ring = std::min({ at[0], at[1], extent[0] - 1 - at[0], extent[1] - 1 - at[1] });
             return ring % 2 == 0 ? !(at[0] == ring && at[1] == ring + 1) : at[0] == ring && at[1] == ring + 1;
           }),
           make([&](const Coordinates &) { return random() % 1000 < 312; }),
           make([&](const Coordinates &) { return random() % 2 == 0; }) };
}

TEST_P(Labels, OfHardImagesAreThoseOfTheDefinition)
{
  const Coordinates extent{ { 131, 37, 29, 1, 1 } };
  int               number = 0;
  for (const auto & voxels : HardImages(extent))
  {
    for (const int connectivity : { 1, 2, 3 })
    {
      for (const std::size_t budget : { std::size_t{ 0 }, std::size_t{ 300000 } })
      {
        LabelTrial<std::uint8_t, std::uint32_t> t(MakeLabel<std::uint8_t>(extent, PixelType::UInt32, connectivity),
                                                  voxels);
        t.request.backend = this->GetBackend();
        t.request.budgets.device = t.request.budgets.host = budget;
        const ExecutionReport report = this->GetManager().Execute(t.request);
        EXPECT_TRUE(budget == 0 || report.plan.chunks.size() > 1);
        ASSERT_NO_FATAL_FAILURE(t.ExpectDefinition("image " + std::to_string(number)));
      }
    }
    ++number;
  }
}

TEST_P(Labels, OfARegionAreThoseOfItsVoxelsAlone)
{
  std::mt19937      random(4);
  const Coordinates extent{ { 40, 30, 20, 1, 1 } };
  const auto        operation = MakeLabel<std::uint8_t>(extent, PixelType::UInt32);
  for (int trial = 0; trial < 10; ++trial)
  {
    LabelTrial<std::uint8_t, std::uint32_t> t(operation, RandomVoxels<std::uint8_t>(random, extent));
    t.request.region = RandomRegion(random, extent);
    t.request.backend = this->GetBackend();
    t.request.budgets.device = random() % 2 ? 0 : 60000;
    this->GetManager().Execute(t.request);
    std::vector<std::uint8_t>  part;
    std::vector<std::uint32_t> result;
    ForEachIndex(t.request.region, [&](const Coordinates & at) {
      part.push_back(At<std::uint8_t>(t.request.inputs[0], at));
      result.push_back(At<std::uint32_t>(t.request.output, at));
    });
    ASSERT_EQ(result, Convert<std::uint32_t>(LabelByDefinition(*operation, part, t.request.region.Extents())));
  }
}

/** The image has more than 2^31 voxels, of which a region is labelled. */
TEST_P(Labels, OfAnImageOfMoreThan2To31VoxelsAreThoseOfTheDefinition)
{
  std::mt19937      random(5);
  const Coordinates extent{ { 1 << 20, 1 << 20, 1 << 20, 1, 1 } };
  const Box         region{ { { 1000000, 5, 1048500, 0, 0 } }, { { 1000100, 25, 1048530, 1, 1 } } };
  for (const std::size_t budget : { std::size_t{ 0 }, std::size_t{ 400000 } })
  {
    const auto operation = MakeLabel<std::uint8_t>(extent, PixelType::UInt32);
    ASSERT_TRUE(operation->IsWide());
    std::vector<std::uint8_t>  voxels = RandomVoxels<std::uint8_t>(random, region.Extents());
    std::vector<std::uint32_t> output(voxels.size());
    ExecutionRequest           request;
    request.operation = operation;
    request.image = Box::FromExtent(extent);
    request.region = region;
    request.inputs = { DenseView(voxels.data(), PixelType::UInt8, region) };
    request.output = DenseView(output.data(), PixelType::UInt32, region);
    request.backend = this->GetBackend();
    request.budgets.device = request.budgets.host = budget;
    this->GetManager().Execute(request);
    ASSERT_EQ(output, Convert<std::uint32_t>(LabelByDefinition(*operation, voxels, region.Extents())));
  }
}

/** Entries of its runs lie where the labels will: they are as many bytes where every second voxel begins a run. */
TEST_P(Labels, OfManyVoxelsOfALargeImageAreThoseOfTheirOwnImage)
{
  std::mt19937              random(7);
  const Coordinates         extent{ { 160, 200, 300, 1, 1 } };
  std::vector<std::uint8_t> voxels(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  for (const bool areStripes : { true, false })
  {
    for (std::size_t i = 0; i < voxels.size(); ++i)
    {
      voxels[i] = areStripes ? i % 2 == 0 : random() % 3 == 0;
    }
    for (const std::int64_t width : { 160, 159, 158 })
    {
      const Coordinates large{ { width, 200, 1 << 20, 1, 1 } };
      const Coordinates part{ { width, 200, 300, 1, 1 } };
      voxels.resize(static_cast<std::size_t>(Box::FromExtent(part).NumberOfVoxels()));
      const auto operation = MakeLabel<std::uint8_t>(large, PixelType::UInt32, 1);
      ASSERT_TRUE(operation->IsWide());
      LabelTrial<std::uint8_t, std::uint32_t> own(MakeLabel<std::uint8_t>(part, PixelType::UInt32, 1), voxels);
      own.request.backend = BackendChoice::CPU;
      this->GetManager().Execute(own.request);
      std::vector<std::uint32_t> output(voxels.size());
      ExecutionRequest           request = own.request;
      request.operation = operation;
      request.image = Box::FromExtent(large);
      request.output.data = output.data();
      request.backend = this->GetBackend();
      this->GetManager().Execute(request);
      ASSERT_TRUE(output == own.output) << width << (areStripes ? ", stripes" : "");
    }
    voxels.resize(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  }
}

TEST_P(Labels, ThatTheOutputCannotHoldAreRefused)
{
  const Coordinates         extent{ { 33, 32, 1, 1, 1 } };
  std::vector<std::uint8_t> voxels;
  ForEachIndex(Box::FromExtent(extent),
               [&](const Coordinates & at) { voxels.push_back(at[0] % 2 == 0 && at[1] % 2 == 0 ? 1 : 0); });
  LabelTrial<std::uint8_t, std::uint8_t> narrow(MakeLabel<std::uint8_t>(extent, PixelType::UInt8), voxels);
  narrow.request.backend = this->GetBackend();
  try
  {
    this->GetManager().Execute(narrow.request);
    ADD_FAILURE() << "272 labels in a byte";
  }
  catch (const Error & error)
  {
    EXPECT_NE(std::string(error.what()).find("272 components"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("uint8"), std::string::npos) << error.what();
  }
  for (std::size_t i = 0; i < 17; ++i)
  {
    voxels[2 * i] = 0;
  }
  LabelTrial<std::uint8_t, std::uint8_t> fits(MakeLabel<std::uint8_t>(extent, PixelType::UInt8), voxels);
  fits.request.backend = this->GetBackend();
  this->GetManager().Execute(fits.request);
  fits.ExpectDefinition("255 labels");
}

/** Memory for a part of the image: it goes in blocks. */
template <typename TIn, typename TOut>
void
StreamLabels(Manager & manager, BackendChoice backend, std::shared_ptr<LabelOperation> operation,
             std::vector<TIn> voxels, std::uint64_t memory, std::size_t deviceMemory = 100000)
{
  LabelTrial<TIn, TOut> t(operation, std::move(voxels));
  StreamedRequest       request;
  request.operation = operation;
  request.inputs = { { std::make_shared<MemoryImage>(t.request.inputs[0]), PixelTypeOf<TIn>() } };
  request.region = t.request.region;
  request.computedKind = request.writtenKind = PixelTypeOf<TOut>();
  request.backend = backend;
  request.memory = memory;
  request.budgets.device = deviceMemory;
  request.spoolFolder = testing::TempDir();
  const StreamedPlan plan = MakeStreamedPlan(manager, request);
  ASSERT_TRUE(plan.inSlabs);
  EXPECT_EQ(plan.bytesRead, 2 * t.voxels.size() * sizeof(TIn));
  ExecuteStreamed(manager, request, plan, std::make_shared<MemoryImage>(t.request.output));
  t.ExpectDefinition("streamed");
}

TEST_P(Labels, OfImagesLargerThanMemoryAreThoseOfTheDefinition)
{
  std::mt19937      random(6);
  const Coordinates extent{ { 30, 20, 90, 1, 1 } };
  for (int trial = 0; trial < 12; ++trial)
  {
    const auto operation = MakeLabel<std::uint8_t>(extent, PixelType::UInt32, 1 + trial % 3);
    operation->rule = static_cast<LabelRule>(trial / 3 % 3);
    operation->tolerance = PixelValue(1);
    operation->periodic[2] = trial % 4 == 3;
    operation->periodic[1] = trial % 5 == 3;
    // As of an image of more than 2^31 voxels, whose blocks have fewer.
    operation->largestNumber = trial % 2 == 1 ? std::uint64_t{ 1 } << 40 : 0;
    ASSERT_NO_FATAL_FAILURE((StreamLabels<std::uint8_t, std::uint32_t>(
      this->GetManager(), this->GetBackend(), operation, RandomVoxels<std::uint8_t>(random, extent), 250000)));
  }
  const Coordinates flat{ { 70, 700, 1, 1, 1 } };
  for (const auto & voxels : HardImages(flat))
  {
    ASSERT_NO_FATAL_FAILURE((StreamLabels<std::uint8_t, std::int64_t>(
      this->GetManager(), this->GetBackend(), MakeLabel<std::uint8_t>(flat, PixelType::Int64), voxels, 200000)));
  }
}

/** Tables of blocks stay on the device under their keys, which images with numbers of 32 and of 64 bits share. */
TEST(LabelStreams, OfImagesOfAnySizeHaveTablesOfTheirOwn)
{
  static std::map<std::string, std::size_t> parts;
  static const Kernel                       alone = GetHostKernels().FindSet("label")->alone;
  KernelSet                                 label = *GetHostKernels().FindSet("label");
  label.alone.run = [](const KernelCall & call) {
    const auto & numbering = *static_cast<const LabelOperation &>(*call.operation).numbering;
    EXPECT_TRUE(parts.emplace(numbering.key, numbering.parts.size()).second) << "key " << numbering.key << " was there";
    alone.run(call);
  };
  KernelRegistry kernels;
  kernels.Register("label", label);
  parts.clear();
  FakeDevices       devices(1, FakeDevice::Options(), kernels);
  const auto        manager = devices.MakeManager();
  std::mt19937      random(6);
  const Coordinates extent{ { 30, 20, 90, 1, 1 } };
  for (const std::uint64_t largest : { std::uint64_t{ 0 }, std::uint64_t{ 1 } << 40 })
  {
    const auto operation = MakeLabel<std::uint8_t>(extent, PixelType::UInt32);
    operation->largestNumber = largest;
    const std::size_t before = parts.size();
    ASSERT_NO_FATAL_FAILURE((StreamLabels<std::uint8_t, std::uint32_t>(
      *manager, BackendChoice::CUDA, operation, RandomVoxels<std::uint8_t>(random, extent), 250000, 200000)));
    EXPECT_GT(parts.size(), before + 1);
  }
}

/** A block whose summary finds no memory on the device is summarized by the host, not in two parts. */
TEST(LabelStreams, AreTheSameWhereADeviceLacksMemory)
{
  std::mt19937                    random(8);
  const Coordinates               extent{ { 30, 20, 90, 1, 1 } };
  const std::vector<std::uint8_t> voxels = RandomVoxels<std::uint8_t>(random, extent);
  for (int call = 0; call < 8; ++call)
  {
    FakeDevices devices(1, FakeDevice::Options(), GetHostKernels());
    const auto  manager = devices.MakeManager();
    devices.fakes[0]->FailAt("Allocate", call, false, DeviceError::Kind::OutOfMemory);
    ASSERT_NO_FATAL_FAILURE((StreamLabels<std::uint8_t, std::uint64_t>(
      *manager, BackendChoice::Auto, MakeLabel<std::uint8_t>(extent, PixelType::UInt64), voxels, 400000)))
      << call;
    if (call < 3)
    {
      EXPECT_GT(devices.fakes[0]->CountCalls("Allocate"), call);
    }
  }
}

TEST_P(Labels, OfImagesLargerThanMemoryMayBeTooManyForTheOutput)
{
  const Coordinates               extent{ { 30, 20, 90, 1, 1 } };
  const std::vector<std::uint8_t> checkers = HardImages(extent)[2];
  const auto                      operation = MakeLabel<std::uint8_t>(extent, PixelType::UInt8, 1);
  try
  {
    StreamLabels<std::uint8_t, std::uint8_t>(this->GetManager(), this->GetBackend(), operation, checkers, 100000);
    ADD_FAILURE() << "27000 labels in a byte";
  }
  catch (const Error & error)
  {
    EXPECT_NE(std::string(error.what()).find("27000 components"), std::string::npos) << error.what();
  }
}

TEST(LabelStreams, WithMoreComponentsBetweenBlocksThanMemoryAreRefused)
{
  const Coordinates         extent{ { 60, 60, 1000, 1, 1 } };
  std::vector<std::uint8_t> columns;
  std::vector<std::uint8_t> more;
  ForEachIndex(Box::FromExtent(extent), [&](const Coordinates & at) {
    columns.push_back(at[0] % 2 == 0 && at[1] % 2 == 0 ? 1 : 0);
    more.push_back((at[0] + at[1]) % 2 == 0 ? 1 : 0);
  });
  // Columns along the slowest axis cross all blocks: 900 of them, which take 8 bytes in each block, and 1800.
  Manager manager({});
  ASSERT_NO_FATAL_FAILURE((StreamLabels<std::uint8_t, std::uint64_t>(
    manager, BackendChoice::CPU, MakeLabel<std::uint8_t>(extent, PixelType::UInt64), columns, 2400000)));
  std::string message;
  try
  {
    StreamLabels<std::uint8_t, std::uint64_t>(
      manager, BackendChoice::CPU, MakeLabel<std::uint8_t>(extent, PixelType::UInt64, 1), more, 700000);
  }
  catch (const BudgetError & error)
  {
    message = error.what();
    EXPECT_GT(error.needed, error.budget);
  }
  EXPECT_NE(message.find("components that lie in several blocks"), std::string::npos) << message;
}

/** Summaries of blocks that are full of components, as no memory holds them. */
TEST(LabelBlocks, NumberMoreThan2To32Components)
{
  const Coordinates extent{ { 1 << 20, 4, 1 << 20, 1, 1 } };
  const auto        operation = MakeLabel<std::uint8_t>(extent, PixelType::UInt64, 1);
  const Box         lower{ {}, { { 1 << 20, 4, 1, 1, 1 } } };
  const Box         upper{ { { 0, 0, 1, 0, 0 } }, { { 1 << 20, 4, 2, 1, 1 } } };
  const auto        summaryOf = [&](const Box & box, std::uint32_t inRow, std::uint64_t onFace) {
    ChunkState summary(operation->GetSummaryBytes(box, { PixelType::UInt8 }, PixelType::UInt64));
    for (std::size_t row = 0; row < 4; ++row)
    {
      std::memcpy(&summary[row * sizeof(inRow)], &inRow, sizeof(inRow));
    }
    // One voxel of the last row of each face along the last axis: faces have labels of 64 bits.
    for (const std::size_t end : { std::size_t{ 0 }, std::size_t{ 4 << 20 } * sizeof(onFace) })
    {
      std::memcpy(&summary[summary.size() - end - sizeof(onFace)], &onFace, sizeof(onFace));
    }
    return summary;
  };
  constexpr std::uint32_t       inRow = 0xf0000000U;
  constexpr std::uint64_t       ofBlock = std::uint64_t{ 4 } * inRow;
  const std::vector<ChunkState> summaries{ summaryOf(lower, inRow, ofBlock), summaryOf(upper, inRow, 1) };
  std::uint64_t                 count = 0;
  const auto                    solutions = JoinLabels(*operation, { lower, upper }, summaries, count);
  // The upper block's first component is the lower one's last.
  EXPECT_EQ(count, 2 * ofBlock - 1);
  std::vector<std::uint64_t> numbers(6);
  ASSERT_EQ(solutions.at(1).size(), numbers.size() * sizeof(std::uint64_t));
  std::memcpy(numbers.data(), solutions[1].data(), solutions[1].size());
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{ ofBlock, ofBlock, ofBlock, ofBlock, 1, ofBlock }));
  operation->outputKind = PixelType::UInt32;
  try
  {
    JoinLabels(*operation, { lower, upper }, summaries, count);
    ADD_FAILURE() << "more than 2^32 labels in 32 bits";
  }
  catch (const Error & error)
  {
    const std::string message = error.what();
    EXPECT_NE(message.find(std::to_string(2 * ofBlock - 1) + " components"), std::string::npos) << message;
    EXPECT_NE(message.find("the output type uint64 has all"), std::string::npos) << message;
  }
}

/** Every second voxel is a component: 2^32 and some. */
class CheckeredSource : public ImageSource
{
public:
  explicit CheckeredSource(const Coordinates & extent)
    : m_Extent(extent)
  {}
  Coordinates
  GetExtent() const override
  {
    return m_Extent;
  }
  PixelType
  GetKind() const override
  {
    return PixelType::UInt8;
  }
  ImageAccess
  GetAccess() const override
  {
    return ImageAccess();
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    auto * voxel = static_cast<std::uint8_t *>(view.data) + view.Offset(box.lower);
    for (std::int64_t z = box.lower[2]; z < box.upper[2]; ++z)
    {
      for (std::int64_t y = box.lower[1]; y < box.upper[1]; ++y)
      {
        for (std::int64_t x = box.lower[0]; x < box.upper[0]; ++x)
        {
          *voxel++ = (x + y + z) % 2 == 0 ? 1 : 0;
        }
      }
    }
  }

private:
  const Coordinates m_Extent;
};

/** Counts voxels that have not the label they should have there. Lines have an even number of voxels. */
class CheckeredSink : public ImageSink
{
public:
  explicit CheckeredSink(const Coordinates & extent)
    : m_Extent(extent)
  {}
  Coordinates
  GetExtent() const override
  {
    return m_Extent;
  }
  PixelType
  GetKind() const override
  {
    return PixelType::UInt64;
  }
  ImageAccess
  GetAccess() const override
  {
    return ImageAccess();
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    const auto * voxel = static_cast<const std::uint64_t *>(view.data) + view.Offset(box.lower);
    for (std::int64_t z = box.lower[2]; z < box.upper[2]; ++z)
    {
      for (std::int64_t y = box.lower[1]; y < box.upper[1]; ++y)
      {
        const std::int64_t before = (z * m_Extent[1] + y) * m_Extent[0] / 2;
        for (std::int64_t x = box.lower[0]; x < box.upper[0]; ++x)
        {
          wrong += *voxel++ != static_cast<std::uint64_t>((x + y + z) % 2 == 0 ? before + x / 2 + 1 : 0) ? 1 : 0;
          ++written;
        }
      }
    }
  }
  void
  Finish() override
  {}

  std::int64_t wrong{ 0 };
  std::int64_t written{ 0 };

private:
  const Coordinates m_Extent;
};

TEST(LabelStreams, NumberMoreThan2To32Components)
{
  if (!std::getenv("CHUNKWISE_TEST_LARGE"))
  {
    GTEST_SKIP() << "CHUNKWISE_TEST_LARGE is not set";
  }
  const Coordinates extent{ { 2048, 2048, 2050, 1, 1 } };
  const auto        operation = MakeLabel<std::uint8_t>(extent, PixelType::UInt64, 1);
  StreamedRequest   request;
  request.operation = operation;
  request.inputs = { { std::make_shared<CheckeredSource>(extent), PixelType::UInt8 } };
  request.region = Box::FromExtent(extent);
  request.computedKind = request.writtenKind = PixelType::UInt64;
  request.backend = BackendChoice::CPU;
  request.memory = std::uint64_t{ 1 } << 30;
  request.fileThreads = 1;
  Manager    manager({});
  const auto sink = std::make_shared<CheckeredSink>(extent);
  ExecuteStreamed(manager, request, MakeStreamedPlan(manager, request), sink);
  EXPECT_EQ(sink->wrong, 0);
  EXPECT_EQ(sink->written, request.region.NumberOfVoxels());
}

std::shared_ptr<const Operation>
MakeRow(const FilterParameters & parameters, int dimension = 2)
{
  FilterImage image;
  image.dimension = dimension;
  image.extent = { { 9, 8, dimension > 2 ? 7 : 1, 1, 1 } };
  image.outputKind = PixelType::UInt32;
  return MakeFilterOperation("label", parameters, image);
}

TEST(LabelRows, MakeTheOperation)
{
  FilterParameters parameters;
  const auto       plain = std::dynamic_pointer_cast<const LabelOperation>(MakeRow(parameters));
  EXPECT_EQ(plain->structure, LabelOperation::MakeStructure(1, 2));
  EXPECT_EQ(plain->axes, (std::vector<int>{ 0, 1 }));
  parameters.Set("Structure", std::vector<std::int64_t>{ 0, 0, 1, 0, 1, 0, 1, 0, 0 });
  const auto diagonal = std::dynamic_pointer_cast<const LabelOperation>(MakeRow(parameters));
  EXPECT_EQ(diagonal->structure, std::uint32_t{ 1 } << 11 | 1 << 13 | 1 << 15);
  const auto expectRefusal = [](const FilterParameters & wrong, const char * name) {
    try
    {
      MakeRow(wrong);
      ADD_FAILURE() << name;
    }
    catch (const ParameterError & error)
    {
      EXPECT_EQ(error.parameter, name) << error.what();
    }
  };
  parameters.Set("Structure", std::vector<std::int64_t>{ 0, 0, 1, 0, 1, 0, 0, 0, 0 });
  expectRefusal(parameters, "Structure");
  parameters.Set("Structure", std::vector<std::int64_t>{ 1, 1 });
  expectRefusal(parameters, "Structure");
  FilterParameters periodic;
  periodic.Set("PeriodicAxes", std::vector<std::int64_t>{ 2 });
  expectRefusal(periodic, "PeriodicAxes");
  FilterParameters tolerance;
  tolerance.Set("Rule", "within");
  tolerance.Set("Tolerance", PixelValue(-1));
  expectRefusal(tolerance, "Tolerance");
}

INSTANTIATE_TEST_SUITE_P(Cpu, Labels, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Labels, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Labels, testing::Values(Place::Cuda));

} // namespace
