/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseMemoryImage.h"
#include "chunkwiseOutOfCoreRunner.h"

#include <algorithm>
#include <cmath>
#include <deque>

using namespace chunkwise;

namespace
{

/** By its definition: a breadth-first search from every voxel above the high threshold. */
template <typename T>
std::vector<float>
FloodFromHigh(const std::vector<T> & voxels, const Box & box, double low, double high, bool full, int axes)
{
  const BufferView        view = DenseView(const_cast<T *>(voxels.data()), PixelTypeOf<T>(), box);
  std::vector<float>      result(voxels.size(), 0.0F);
  std::deque<Coordinates> queue;
  const auto              visit = [&](const Coordinates & index, double above) {
    const auto i = static_cast<std::size_t>(view.Offset(index));
    if (result[i] == 0 && static_cast<long double>(voxels[i]) > above)
    {
      result[i] = 1;
      queue.push_back(index);
    }
  };
  ForEachIndex(box, [&](const Coordinates & index) { visit(index, high); });
  while (!queue.empty())
  {
    const Coordinates at = queue.front();
    queue.pop_front();
    Box around{ at, at };
    for (int a = 0; a < MaxDimension; ++a)
    {
      around.lower[a] = std::max(box.lower[a], at[a] - (a < axes ? 1 : 0));
      around.upper[a] = std::min(box.upper[a], at[a] + (a < axes ? 2 : 1));
    }
    ForEachIndex(around, [&](const Coordinates & next) {
      int differ = 0;
      for (int a = 0; a < MaxDimension; ++a)
      {
        differ += next[a] != at[a] ? 1 : 0;
      }
      if (full || differ == 1)
      {
        visit(next, low);
      }
    });
  }
  return result;
}

class Hysteresis : public KernelTest
{};

TEST_P(Hysteresis, IsThatOfTheDefinitionHoweverTheImageIsCut)
{
  std::mt19937 random(41);
  for (int trial = 0; trial < 60; ++trial)
  {
    DispatchPixelType(static_cast<PixelType>(trial % NumberOfPixelTypes), [&](auto pixel) {
      using T = decltype(pixel);
      const Coordinates extent{ { 19, 13, 1 + static_cast<std::int64_t>(random() % 12), 1 + trial % 2, 1 } };
      const Box         box = Box::FromExtent(extent);
      std::vector<T>    voxels(static_cast<std::size_t>(box.NumberOfVoxels()));
      for (T & voxel : voxels)
      {
        voxel = static_cast<T>(random() % 30 == 0 ? 100 : random() % 101 * 0.9);
        if constexpr (!std::is_integral<T>::value)
        {
          voxel = random() % 40 ? voxel : std::numeric_limits<T>::quiet_NaN();
        }
      }
      const bool       full = trial / 10 % 2;
      const int        axes = 1 + trial % 3;
      const double     low = full ? 72.5 : 55;
      const double     high = trial % 7 == 0 ? low : 95.5;
      FilterParameters parameters;
      parameters.SetReal("Low", low);
      parameters.SetReal("High", high);
      parameters.Set("FullyConnected", full);
      std::vector<std::int64_t> spatial = { 0, 1, 2 };
      spatial.resize(static_cast<std::size_t>(axes));
      parameters.Set("SpatialAxes", spatial);
      FilterImage about;
      about.dimension = 4;
      about.extent = extent;
      about.inputKind = PixelTypeOf<T>();
      about.outputKind = trial % 2 ? PixelType::UInt8 : PixelType::Float32;
      const auto operation = MakeFilterOperation("hysteresis", parameters, about);
      const auto expected = FloodFromHigh(voxels, box, low, high, full, axes);
      const auto count = std::count(expected.begin(), expected.end(), 1.0F);
      EXPECT_GT(count, 10);
      EXPECT_LT(count, box.NumberOfVoxels());

      std::vector<std::uint8_t> bytes(voxels.size(), 77);
      std::vector<float>        reals(voxels.size(), 77);
      const auto                result =
        trial % 2 ? DenseView(bytes.data(), PixelType::UInt8, box) : DenseView(reals.data(), PixelType::Float32, box);
      const auto expectResult = [&] {
        for (std::size_t i = 0; i < voxels.size(); ++i)
        {
          ASSERT_EQ(trial % 2 ? bytes[i] : reals[i], expected[i]) << operation->GetKey() << " " << i;
        }
        std::fill(bytes.begin(), bytes.end(), std::uint8_t{ 77 });
        std::fill(reals.begin(), reals.end(), 77.0F);
      };
      ExecutionRequest request;
      request.operation = operation;
      request.image = request.region = box;
      request.inputs = { DenseView(voxels.data(), PixelTypeOf<T>(), box) };
      request.output = result;
      request.backend = GetParam() == Place::Cpu ? BackendChoice::CPU : BackendChoice::Auto;
      request.budgets.device = 60000;
      (void)GetManager().Execute(request);
      expectResult();
      // The same from a source to a sink with as little memory as there can be.
      const OutOfCoreRunner * const runner = operation->GetOutOfCoreRunner();
      EXPECT_EQ(runner == nullptr, low == high) << "one threshold needs no run out of core";
      if (runner)
      {
        OutOfCoreRequest outOfCore;
        outOfCore.operation = operation;
        outOfCore.sources = { std::make_shared<MemoryImage>(request.inputs[0]) };
        outOfCore.sink = std::make_shared<MemoryImage>(result);
        outOfCore.spoolFolder = testing::TempDir();
        outOfCore.backend = BackendChoice::CPU;
        outOfCore.hostBytes = 1;
        outOfCore.hostBytes = runner->GetLeastHostBytes(GetManager(), outOfCore);
        EXPECT_GT(outOfCore.hostBytes, 1u);
        (void)runner->Run(GetManager(), outOfCore, nullptr);
        expectResult();
      }
    });
  }
}

TEST(HysteresisRow, SaysWhatIsWrong)
{
  const auto messageOf = [](double low, double high) {
    FilterParameters parameters;
    parameters.SetReal("Low", low);
    parameters.SetReal("High", high);
    try
    {
      (void)MakeFilterOperation("hysteresis", parameters, {});
    }
    catch (const ParameterError & error)
    {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(messageOf(3, 2), "Low: 3 is more than High, 2");
  EXPECT_EQ(messageOf(std::nan(""), 2).rfind("Low: nan", 0), 0u);
  EXPECT_EQ(messageOf(0, std::numeric_limits<double>::infinity()).rfind("High: inf", 0), 0u);
  EXPECT_EQ(messageOf(2, 2), "");
}

INSTANTIATE_TEST_SUITE_P(Cpu, Hysteresis, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Hysteresis, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Hysteresis, testing::Values(Place::Cuda));

} // namespace
