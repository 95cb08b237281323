/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDevice.h"
#include "chunkwiseError.h"
#include "chunkwiseFakeDevice.h"
#include "chunkwiseManager.h"
#include "chunkwiseOracle.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

const BoundaryMode AllModes[] = { BoundaryMode::Renormalized,
                                  BoundaryMode::ZeroFluxNeumann,
                                  BoundaryMode::Constant,
                                  BoundaryMode::Mirror,
                                  BoundaryMode::Periodic };

/** Where the kernels run: the CPU, the real devices (skipped where there are none), or a fake one whose memory is
 * poisoned. */
enum class Place
{
  Cpu,
  Fake,
  Cuda
};

class Kernels : public testing::TestWithParam<Place>
{
protected:
  void
  SetUp() override
  {
    std::string reason;
    if (GetParam() == Place::Cuda && !GetCudaBackend(&reason))
    {
      GTEST_SKIP() << "no CUDA device: " << reason;
    }
  }
  Manager &
  GetManager()
  {
    if (GetParam() == Place::Cuda)
    {
      return Manager::GetGlobal();
    }
    if (!m_Manager)
    {
      std::vector<std::shared_ptr<Device>> devices;
      if (GetParam() == Place::Fake)
      {
        devices.push_back(std::make_shared<FakeDevice>(FakeDevice::Options()));
        devices.push_back(std::make_shared<FakeDevice>(FakeDevice::Options()));
      }
      m_Manager = std::make_unique<Manager>(devices);
    }
    return *m_Manager;
  }
  BackendChoice
  GetBackend() const
  {
    return GetParam() == Place::Cpu ? BackendChoice::CPU : BackendChoice::CUDA;
  }

private:
  std::unique_ptr<Manager> m_Manager;
};

Coordinates
RandomExtent(std::mt19937 & random, int largest)
{
  Coordinates extent = Coordinates::Filled(1);
  const int   dimension = 1 + static_cast<int>(random() % MaxDimension);
  for (int a = 0; a < dimension; ++a)
  {
    extent[a] = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(a < 3 ? largest : 3));
  }
  return extent;
}

/** Up to three axes of a random choice. */
std::vector<int>
RandomAxes(std::mt19937 & random)
{
  std::vector<int> axes = { 0, 1, 2, 3, 4 };
  std::shuffle(axes.begin(), axes.end(), random);
  axes.resize(1 + random() % 3);
  if (random() % 2)
  {
    axes = { 0, 1, 2 };
  }
  return axes;
}

Box
RandomRegion(std::mt19937 & random, const Coordinates & extent)
{
  Box box = Box::FromExtent(extent);
  for (int a = 0; a < MaxDimension && random() % 3; ++a)
  {
    box.lower[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a]));
    box.upper[a] =
      box.lower[a] + 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a] - box.lower[a]));
  }
  return box;
}

template <typename T>
T
RandomPixel(std::mt19937 & random)
{
  if constexpr (std::is_integral<T>::value)
  {
    return static_cast<T>((std::uint64_t{ random() } << 32) | random());
  }
  else
  {
    return static_cast<T>(static_cast<double>(random()) / 4294967296.0 * 200 - 60);
  }
}

template <typename T>
T
PoisonPixel()
{
  return std::is_integral<T>::value ? static_cast<T>(0x5A5A5A5A5A5A5A5AULL) : std::numeric_limits<T>::quiet_NaN();
}

/** An image and a run over a region of it, with buffers that hold just what the operation declares. */
template <typename TIn, typename TOut>
class Trial
{
public:
  std::vector<TIn>  pixels;
  BufferView        image;
  ExecutionRequest  request;
  std::vector<TIn>  held;
  std::vector<TOut> output;

  Trial(std::mt19937 & random, std::shared_ptr<const Operation> operation, const Coordinates & extent)
  {
    const Box box = Box::FromExtent(extent);
    pixels.resize(static_cast<std::size_t>(box.NumberOfVoxels()));
    for (auto & pixel : pixels)
    {
      pixel = RandomPixel<TIn>(random);
    }
    image = DenseView(pixels.data(), PixelKindOf<TIn>(), box);
    request.operation = operation;
    request.image = request.region = box;
    request.stagingThreads = 1;
  }

  void
  Prepare(const Box & region)
  {
    request.region = region;
    const Halo halo = request.operation->GetHalo(request.image.Extents());
    Box        needed = PadAndCrop(region, halo, request.image);
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (request.operation->WrapsAround() &&
          (region.lower[a] < halo.lower[a] || region.upper[a] + halo.upper[a] > request.image.upper[a]))
      {
        needed.lower[a] = 0;
        needed.upper[a] = request.image.upper[a];
      }
    }
    Box room = needed;
    Box outRoom = region;
    for (int a = 0; a < MaxDimension; ++a)
    {
      --room.lower[a];
      ++room.upper[a];
      --outRoom.lower[a];
      ++outRoom.upper[a];
    }
    held.assign(static_cast<std::size_t>(room.NumberOfVoxels()), PoisonPixel<TIn>());
    BufferView input = DenseView(held.data(), PixelKindOf<TIn>(), room);
    ForEachIndex(needed, [&](const Coordinates & index) { At<TIn>(input, index) = At<TIn>(image, index); });
    input.data = &At<TIn>(input, needed.lower);
    input.box = needed;
    request.inputs.assign(1, input);
    output.assign(static_cast<std::size_t>(outRoom.NumberOfVoxels()), static_cast<TOut>(77));
    request.output = DenseView(output.data(), PixelKindOf<TOut>(), outRoom);
  }

  TOut
  Result(const Coordinates & index) const
  {
    return At<TOut>(request.output, index);
  }

  /** True if nothing outside of the region was written. */
  bool
  IsContained() const
  {
    bool contained = true;
    ForEachIndex(request.output.box, [&](const Coordinates & index) {
      const Box voxel{ index, { { index[0] + 1, index[1] + 1, index[2] + 1, index[3] + 1, index[4] + 1 } } };
      contained = contained && (request.region.Contains(voxel) || Result(index) == static_cast<TOut>(77));
    });
    return contained;
  }
};

std::shared_ptr<MeanOperation>
RandomMean(std::mt19937 & random, int largestRadius, bool exactConstant)
{
  const auto operation = std::make_shared<MeanOperation>();
  for (const int a : RandomAxes(random))
  {
    operation->radius[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(largestRadius + 1));
  }
  operation->boundary.mode = AllModes[random() % 5];
  // Integers hold it exactly as well; floats need not sum it exactly.
  operation->boundary.constant = static_cast<double>(random() % 100) + (exactConstant ? 0 : 0.1);
  return operation;
}

std::shared_ptr<SeparableOperation>
RandomSeparable(std::mt19937 & random, int largestRadius, bool exactConstant)
{
  const auto operation = std::make_shared<SeparableOperation>();
  for (const int a : RandomAxes(random))
  {
    auto & weights = operation->weights[a];
    weights.resize(2 * (random() % static_cast<std::uint32_t>(largestRadius + 1)) + 1);
    double sum = 0;
    for (auto & weight : weights)
    {
      weight = 0.1 + static_cast<double>(random() % 1000) / 1000;
      sum += weight;
    }
    for (auto & weight : weights)
    {
      weight = weights.size() == 1 ? 1.0 : weight / sum;
    }
  }
  operation->boundary.mode = AllModes[random() % 5];
  // Integers hold it exactly as well; floats need not sum it exactly.
  operation->boundary.constant = static_cast<double>(random() % 100) + (exactConstant ? 0 : 0.1);
  return operation;
}

template <typename TIn, typename TOut>
void
CompareMeanWithOracle(std::mt19937 & random, Manager & manager, BackendChoice backend, bool generic)
{
  for (int trial = 0; trial < 12; ++trial)
  {
    const auto operation = RandomMean(random, trial % 4 == 0 ? 12 : 3, true);
    operation->generic = generic;
    Trial<TIn, TOut> t(random, operation, RandomExtent(random, 9));
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    manager.Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const auto parts = oracle::SumWindow<TIn>(t.image, index, operation->radius, operation->boundary);
      const auto where = std::string(BoundaryModeName(operation->boundary.mode)) + " " + ToString(t.request.image) +
                         " radius " + ToString(operation->radius) + " at " + ToString(index);
      if constexpr (std::is_integral<TOut>::value)
      {
        ASSERT_EQ(t.Result(index), static_cast<TOut>(oracle::RoundedQuotient(parts.integerSum, parts.count))) << where;
      }
      else
      {
        const auto        count = static_cast<long double>(parts.count);
        const long double epsilon =
          std::is_same<TOut, float>::value || std::is_same<TIn, float>::value ? 6e-8L : 1.2e-16L;
        ASSERT_NEAR(static_cast<double>(t.Result(index)),
                    static_cast<double>(parts.realSum / count),
                    static_cast<double>((parts.magnitude / count) * epsilon * (generic ? count + 8 : 68.0L)))
          << where;
      }
    });
  }
}

template <typename TIn>
void
CompareMeanOfKind(std::mt19937 & random, Manager & manager, BackendChoice backend, bool generic)
{
  CompareMeanWithOracle<TIn, TIn>(random, manager, backend, generic);
  CompareMeanWithOracle<TIn, float>(random, manager, backend, generic);
  CompareMeanWithOracle<TIn, double>(random, manager, backend, generic);
}

TEST_P(Kernels, MeanIsWhatItsDefinitionSays)
{
  std::mt19937 random(51);
  for (const bool generic : { false, true })
  {
    for (int kind = 0; kind < NumberOfPixelKinds; ++kind)
    {
      DispatchPixelKind(static_cast<PixelKind>(kind), [&](auto pixel) {
        CompareMeanOfKind<decltype(pixel)>(random, GetManager(), GetBackend(), generic);
      });
    }
  }
}

template <typename TIn, typename TOut>
void
CompareSeparableWithOracle(std::mt19937 & random, Manager & manager, BackendChoice backend)
{
  for (int trial = 0; trial < 12; ++trial)
  {
    const auto       operation = RandomSeparable(random, trial % 4 == 0 ? 11 : 3, true);
    Trial<TIn, TOut> t(random, operation, RandomExtent(random, 9));
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    manager.Execute(t.request);
    ASSERT_TRUE(t.IsContained());
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const auto weighed = oracle::WeighWindow<TIn>(t.image, index, *operation);
      const bool isFloat = std::is_same<TOut, float>::value || std::is_same<TIn, float>::value || sizeof(TIn) <= 2;
      const long double bound = weighed.second * (isFloat ? 6e-8L : 1.2e-16L) * 60;
      const auto        result = static_cast<long double>(t.Result(index));
      ASSERT_LE(std::fabs(result - weighed.first), bound + (std::is_integral<TOut>::value ? 0.5L : 0.0L))
        << BoundaryModeName(operation->boundary.mode) << " " << ToString(t.request.image) << " at " << ToString(index);
    });
  }
}

TEST_P(Kernels, SeparableIsWhatItsDefinitionSays)
{
  std::mt19937 random(52);
  for (int kind = 0; kind < NumberOfPixelKinds; ++kind)
  {
    DispatchPixelKind(static_cast<PixelKind>(kind), [&](auto pixel) {
      using Pixel = decltype(pixel);
      CompareSeparableWithOracle<Pixel, Pixel>(random, GetManager(), GetBackend());
      CompareSeparableWithOracle<Pixel, float>(random, GetManager(), GetBackend());
      CompareSeparableWithOracle<Pixel, double>(random, GetManager(), GetBackend());
    });
  }
}

/** The reference for bits: one call of the CPU's kernel over the whole image. */
template <typename TIn, typename TOut>
void
CompareBits(std::mt19937 & random, Manager & manager, BackendChoice backend, bool mean, int trials)
{
  Manager host({});
  for (int trial = 0; trial < trials; ++trial)
  {
    const int                        largest = trial % 3 == 0 ? 15 : 5;
    std::shared_ptr<const Operation> operation;
    if (mean)
    {
      operation = RandomMean(random, largest, std::is_integral<TIn>::value);
    }
    else
    {
      operation = RandomSeparable(random, largest, std::is_integral<TIn>::value);
    }
    Trial<TIn, TOut> t(random, operation, RandomExtent(random, trial % 5 == 0 ? 40 : 12));
    t.request.backend = BackendChoice::CPU;
    t.Prepare(t.request.image);
    host.Execute(t.request);
    const std::vector<TOut> whole = t.output;
    const BufferView wholeView = DenseView(const_cast<TOut *>(whole.data()), PixelKindOf<TOut>(), t.request.output.box);
    for (int part = 0; part < 3; ++part)
    {
      t.Prepare(RandomRegion(random, t.request.image.Extents()));
      t.request.backend = backend;
      t.request.budgets.device = 20000 + random() % 300000;
      t.request.budgets.host = random() % 2 ? 0 : 40000 + random() % 100000;
      try
      {
        manager.Execute(t.request);
      }
      catch (const BudgetError &)
      {
        continue; // the smallest chunk of this trial is larger
      }
      ASSERT_TRUE(t.IsContained());
      ForEachIndex(t.request.region, [&](const Coordinates & index) {
        const TOut a = t.Result(index);
        const TOut b = At<TOut>(wholeView, index);
        ASSERT_EQ(std::memcmp(&a, &b, sizeof(a)), 0)
          << operation->GetKey() << " " << ToString(t.request.image) << " region " << ToString(t.request.region)
          << " at " << ToString(index) << ": " << +a << " and " << +b;
      });
    }
  }
}

TEST_P(Kernels, ChunksOnAnyDeviceGiveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(53);
  for (const bool mean : { true, false })
  {
    CompareBits<float, float>(random, GetManager(), GetBackend(), mean, 150);
    CompareBits<double, double>(random, GetManager(), GetBackend(), mean, 40);
    CompareBits<std::uint8_t, std::uint8_t>(random, GetManager(), GetBackend(), mean, 40);
    CompareBits<std::int16_t, float>(random, GetManager(), GetBackend(), mean, 40);
    CompareBits<std::uint32_t, std::uint32_t>(random, GetManager(), GetBackend(), mean, 40);
    CompareBits<std::int64_t, std::int64_t>(random, GetManager(), GetBackend(), mean, 40);
  }
}

TEST_P(Kernels, NaNStaysWithinItsWindow)
{
  std::mt19937 random(54);
  for (const std::int64_t radius : { 2, 7 })
  {
    const auto operation = std::make_shared<MeanOperation>();
    for (int a = 0; a < 3; ++a)
    {
      operation->radius[a] = radius;
    }
    Trial<float, float> t(random, operation, { { 40, 30, 25, 1, 1 } });
    const Coordinates   centre = { { 21, 14, 12, 0, 0 } };
    At<float>(t.image, centre) = std::numeric_limits<float>::quiet_NaN();
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      bool near = true;
      for (int a = 0; a < 3; ++a)
      {
        near = near && std::abs(index[a] - centre[a]) <= radius;
      }
      ASSERT_EQ(std::isnan(t.Result(index)), near) << ToString(index);
    });
  }
}

TEST_P(Kernels, IdentityCopiesAndConverts)
{
  std::mt19937 random(55);
  for (int kind = 0; kind < NumberOfPixelKinds; ++kind)
  {
    DispatchPixelKind(static_cast<PixelKind>(kind), [&](auto pixel) {
      using Pixel = decltype(pixel);
      Trial<Pixel, Pixel> same(random, std::make_shared<IdentityOperation>(), RandomExtent(random, 20));
      same.request.backend = GetBackend();
      same.Prepare(RandomRegion(random, same.request.image.Extents()));
      GetManager().Execute(same.request);
      ForEachIndex(same.request.region,
                   [&](const Coordinates & index) { ASSERT_EQ(same.Result(index), At<Pixel>(same.image, index)); });
      Trial<Pixel, float> converted(random, std::make_shared<IdentityOperation>(), RandomExtent(random, 20));
      converted.request.backend = GetBackend();
      converted.Prepare(converted.request.image);
      GetManager().Execute(converted.request);
      ForEachIndex(converted.request.region, [&](const Coordinates & index) {
        ASSERT_EQ(converted.Result(index), static_cast<float>(At<Pixel>(converted.image, index)));
      });
    });
  }
}

/** The process' manager keeps memory for the next run; a leak check at the end must not find it. */
class GiveBackMemory : public testing::Environment
{
public:
  void
  TearDown() override
  {
    Manager::GetGlobal().ReleaseMemory();
  }
};
testing::Environment * const giveBackMemory = testing::AddGlobalTestEnvironment(new GiveBackMemory);

INSTANTIATE_TEST_SUITE_P(Cpu, Kernels, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Kernels, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Kernels, testing::Values(Place::Cuda));

TEST(Operations, BadParametersAreNamed)
{
  const Coordinates extent = { { 10, 10, 10, 1, 1 } };
  const auto        message = [&](const Operation & operation) {
    try
    {
      operation.Validate(extent);
    }
    catch (const ParameterError & error)
    {
      return std::string(error.what());
    }
    return std::string();
  };
  MeanOperation mean;
  EXPECT_EQ(message(mean), "");
  mean.radius[1] = -3;
  EXPECT_NE(message(mean).find("-3"), std::string::npos);
  mean.radius[1] = 65536;
  EXPECT_EQ(message(mean), "");
  mean.boundary.mode = BoundaryMode::Mirror;
  EXPECT_NE(message(mean).find("65536"), std::string::npos);
  SeparableOperation separable;
  separable.weights[2] = { 0.5, 0.5 };
  EXPECT_NE(message(separable).find("odd"), std::string::npos);
  separable.weights[2] = { -1, 0, 1 };
  EXPECT_EQ(message(separable), "") << "the clipped sums are -1 and 1";
  separable.weights[2] = { -1, 2, -1, 0, 0 };
  EXPECT_NE(message(separable).find("renormalized"), std::string::npos);
  separable.weights[2] = { 1, std::numeric_limits<double>::infinity(), 1 };
  EXPECT_NE(message(separable).find("finite"), std::string::npos);
  EXPECT_THROW(mean.CheckKinds({ PixelKind::UInt8 }, PixelKind::Int16), ParameterError);
}

TEST(Operations, KeysTellParametersApart)
{
  MeanOperation a;
  MeanOperation b;
  EXPECT_EQ(a.GetKey(), b.GetKey());
  b.radius[1] = 2;
  EXPECT_NE(a.GetKey(), b.GetKey());
  a.radius[1] = 2;
  b.boundary.mode = BoundaryMode::Constant;
  EXPECT_NE(a.GetKey(), b.GetKey());
  a.boundary.mode = BoundaryMode::Constant;
  b.boundary.constant = 1e-30;
  EXPECT_NE(a.GetKey(), b.GetKey());
  SeparableOperation c;
  SeparableOperation d;
  c.weights[0] = { 0.25, 0.5, 0.25 };
  d.weights[1] = { 0.25, 0.5, 0.25 };
  EXPECT_NE(c.GetKey(), d.GetKey());
}

} // namespace
