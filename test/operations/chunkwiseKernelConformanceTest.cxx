/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseKernelConformance.h"

#include "chunkwiseFakeDevice.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseHighPassOperation.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwiseRangeOperation.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseWienerOperation.h"

using namespace chunkwise;

namespace
{

constexpr BoundaryMode AllModes[] = { BoundaryMode::Renormalized,
                                      BoundaryMode::ZeroFluxNeumann,
                                      BoundaryMode::Constant,
                                      BoundaryMode::Mirror,
                                      BoundaryMode::Periodic };

/** A fake device runs the host's kernels: it tests the comparison itself, and that the kernels keep to their scratch
 * and to what they are given. */
enum class Place
{
  Fake,
  Cuda
};

class Conformance : public testing::TestWithParam<Place>
{
protected:
  void
  SetUp() override
  {
    if (GetParam() == Place::Fake)
    {
      m_Device = std::make_shared<FakeDevice>(FakeDevice::Options());
      return;
    }
    std::string reason;
    const auto  backend = GetCudaBackend(&reason);
    if (!backend)
    {
      GTEST_SKIP() << reason;
    }
    m_Device = backend->GetDevices().front();
  }
  void
  TearDown() override
  {
    if (const auto * const fake = dynamic_cast<const FakeDevice *>(m_Device.get()))
    {
      EXPECT_EQ(fake->CountViolations(), 0);
      EXPECT_EQ(fake->CountLive(), 0);
    }
  }

  std::shared_ptr<Device> m_Device;
};

std::int64_t
Below(std::mt19937 & random, std::int64_t n)
{
  return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(n));
}

/** 1-D to 5-D; axes of a single voxel are frequent. */
Coordinates
RandomExtent(std::mt19937 & random, std::int64_t largest)
{
  Coordinates extent = Coordinates::Filled(1);
  const int   dimension = 1 + static_cast<int>(Below(random, MaxDimension));
  for (int a = 0; a < dimension; ++a)
  {
    extent[a] = random() % 6 == 0 ? 1 : 1 + Below(random, a < 3 ? largest : 4);
  }
  return extent;
}

Box
RandomChunk(std::mt19937 & random, const Coordinates & extent)
{
  Box box = Box::FromExtent(extent);
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (random() % 3)
    {
      box.lower[a] = Below(random, extent[a]);
      box.upper[a] = box.lower[a] + 1 + Below(random, extent[a] - box.lower[a]);
    }
  }
  return box;
}

/** None to three axes, any of the five. */
std::vector<int>
RandomAxes(std::mt19937 & random)
{
  std::vector<int> axes = { 0, 1, 2, 3, 4 };
  std::shuffle(axes.begin(), axes.end(), random);
  axes.resize(random() % 8 == 0 ? 0 : 1 + random() % MaxSpatialAxes);
  return axes;
}

WindowBoundary
BoundaryOf(BoundaryMode mode)
{
  // Neither an integer nor a float holds it.
  return { mode, 17.1 };
}

MeanOperation
RandomMean(std::mt19937 & random, BoundaryMode mode, std::int64_t largestRadius)
{
  MeanOperation operation;
  for (const int a : RandomAxes(random))
  {
    operation.radius[a] = Below(random, largestRadius + 1);
  }
  operation.boundary = BoundaryOf(mode);
  return operation;
}

std::vector<double>
RandomWeights(std::mt19937 & random, std::int64_t radius)
{
  std::vector<double> weights(static_cast<std::size_t>(2 * radius + 1));
  double              sum = 0;
  for (double & weight : weights)
  {
    weight = 0.1 + static_cast<double>(random() % 1000) / 1000;
    sum += weight;
  }
  for (double & weight : weights)
  {
    weight = radius == 0 ? 1.0 : weight / sum;
  }
  return weights;
}

SeparableOperation
RandomSeparable(std::mt19937 & random, BoundaryMode mode, std::int64_t largestRadius)
{
  SeparableOperation operation;
  for (const int a : RandomAxes(random))
  {
    operation.weights[a] = RandomWeights(random, Below(random, largestRadius + 1));
  }
  operation.boundary = BoundaryOf(mode);
  return operation;
}

/** Calls f(TIn{}, TOut{}) for every kind to itself, to float and to double. */
template <typename TFunctor>
void
ForEachPairOfKinds(TFunctor && f)
{
  for (int kind = 0; kind < NumberOfPixelKinds; ++kind)
  {
    DispatchPixelKind(static_cast<PixelKind>(kind), [&](auto pixel) {
      using Pixel = decltype(pixel);
      f(pixel, pixel);
      if constexpr (!std::is_same<Pixel, float>::value)
      {
        f(pixel, float{});
      }
      if constexpr (!std::is_same<Pixel, double>::value)
      {
        f(pixel, double{});
      }
    });
  }
}

TEST_P(Conformance, DeviceHasTheKernelsOfTheHost)
{
  const auto namesOf = [](const KernelRegistry & kernels) {
    std::vector<std::string> names = kernels.GetNames();
    // What the host alone runs of Fixpoint.
    const auto isOfTheHost = [](const std::string & name) {
      const std::string last = name.substr(name.rfind('.') + 1);
      return last == "amend" || last == "isopen" || last == "settle";
    };
    names.erase(std::remove_if(names.begin(), names.end(), isOfTheHost), names.end());
    return names;
  };
  EXPECT_EQ(namesOf(m_Device->GetKernels()), namesOf(GetHostKernels()));
}

TEST_P(Conformance, IdentityOfEveryKind)
{
  std::mt19937      random(61);
  KernelConformance conformance(*m_Device, GetHostKernels());
  ForEachPairOfKinds([&](auto in, auto out) {
    const Coordinates extent = RandomExtent(random, 30);
    conformance.Compare<decltype(in), decltype(out)>(
      random, IdentityOperation(), extent, RandomChunk(random, extent), true);
  });
}

TEST_P(Conformance, MeanOfEveryKindInEveryMode)
{
  std::mt19937      random(62);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (const BoundaryMode mode : AllModes)
  {
    ForEachPairOfKinds([&](auto in, auto out) {
      for (const std::int64_t largestRadius : { 3, 3, 9, 25 })
      {
        const Coordinates   extent = RandomExtent(random, 16);
        const MeanOperation operation = RandomMean(random, mode, largestRadius);
        conformance.Compare<decltype(in), decltype(out)>(
          random, operation, extent, RandomChunk(random, extent), random() % 2);
      }
    });
  }
}

TEST_P(Conformance, GenericMeanOfEveryKindInEveryMode)
{
  std::mt19937      random(63);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (const BoundaryMode mode : AllModes)
  {
    ForEachPairOfKinds([&](auto in, auto out) {
      const Coordinates extent = RandomExtent(random, 9);
      MeanOperation     operation = RandomMean(random, mode, 3);
      operation.generic = true;
      conformance.Compare<decltype(in), decltype(out)>(random, operation, extent, RandomChunk(random, extent), true);
    });
  }
}

TEST_P(Conformance, SeparableOfEveryKindInEveryMode)
{
  std::mt19937      random(64);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (const BoundaryMode mode : AllModes)
  {
    ForEachPairOfKinds([&](auto in, auto out) {
      for (const std::int64_t largestRadius : { 2, 5, 20 })
      {
        const Coordinates        extent = RandomExtent(random, 16);
        const SeparableOperation operation = RandomSeparable(random, mode, largestRadius);
        conformance.Compare<decltype(in), decltype(out)>(
          random, operation, extent, RandomChunk(random, extent), random() % 2);
      }
    });
  }
}

template <typename TOperation>
TOperation
RandomBoxOperation(std::mt19937 & random, BoundaryMode mode, std::int64_t largestRadius)
{
  TOperation operation;
  for (const int a : RandomAxes(random))
  {
    operation.radius[a] = Below(random, largestRadius + 1);
  }
  operation.boundary = BoundaryOf(mode);
  return operation;
}

TEST_P(Conformance, RanksAndExtremaOfEveryKindInEveryMode)
{
  std::mt19937      random(66);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (const BoundaryMode mode : AllModes)
  {
    ForEachPairOfKinds([&](auto in, auto out) {
      using In = decltype(in);
      using Out = decltype(out);
      const Coordinates extent = RandomExtent(random, 12);
      auto              rank = RandomBoxOperation<RankOperation>(random, mode, 3);
      rank.fraction = static_cast<double>(Below(random, 5)) / 4;
      conformance.Compare<In, Out>(random, rank, extent, RandomChunk(random, extent), random() % 2);
      const auto range = RandomBoxOperation<RangeOperation>(random, mode, 4);
      conformance.Compare<In, Out>(random, range, extent, RandomChunk(random, extent), false);
      FlatExtremumOperation flat;
      const auto            box = RandomBoxOperation<RangeOperation>(random, mode, 3);
      flat.radius = box.radius;
      flat.boundary = box.boundary;
      flat.minimum = random() % 2;
      std::int64_t taps = 1;
      for (int a = 0; a < MaxDimension; ++a)
      {
        taps *= 2 * flat.radius[a] + 1;
      }
      for (std::int64_t t = 0; t < taps; ++t)
      {
        flat.element.push_back(t == taps / 2 || random() % 2 ? 1 : 0);
      }
      conformance.Compare<In, Out>(random, flat, extent, RandomChunk(random, extent), random() % 2);
    });
  }
}

TEST_P(Conformance, DenoisingOfEveryKindInEveryMode)
{
  std::mt19937      random(67);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (const BoundaryMode mode : AllModes)
  {
    ForEachPairOfKinds([&](auto in, auto out) {
      using In = decltype(in);
      using Out = decltype(out);
      const Coordinates extent = RandomExtent(random, 12);
      auto              wiener = RandomBoxOperation<WienerOperation>(random, mode, 3);
      wiener.noise = static_cast<double>(Below(random, 5000));
      conformance.Compare<In, Out>(random, wiener, extent, RandomChunk(random, extent), false);
      NonLocalMeansOperation means;
      const auto             box = RandomBoxOperation<RangeOperation>(random, mode, 2);
      means.search = box.radius;
      means.boundary = box.boundary;
      for (int a = 0; a < MaxDimension; ++a)
      {
        means.patch[a] = means.search[a] > 0 ? Below(random, 3) : 0;
      }
      means.strength = 1 + static_cast<double>(Below(random, 100));
      conformance.Compare<In, Out>(random, means, extent, RandomChunk(random, extent), random() % 2);
    });
  }
}

TEST_P(Conformance, CompositesOfEveryKindInEveryMode)
{
  std::mt19937      random(69);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (const BoundaryMode mode : AllModes)
  {
    ForEachPairOfKinds([&](auto in, auto out) {
      using In = decltype(in);
      using Out = decltype(out);
      const Coordinates extent = RandomExtent(random, 12);
      HighPassOperation highPass;
      highPass.smoothing = std::make_shared<SeparableOperation>(RandomSeparable(random, mode, 3));
      conformance.Compare<In, Out>(random, highPass, extent, RandomChunk(random, extent), false);
      SequenceOperation sequence;
      sequence.stages = { std::make_shared<MeanOperation>(RandomMean(random, mode, 2)),
                          std::make_shared<SeparableOperation>(RandomSeparable(random, mode, 2)),
                          std::make_shared<IdentityOperation>(),
                          std::make_shared<MeanOperation>(RandomMean(random, mode, 2)) };
      conformance.Compare<In, Out>(random, sequence, extent, RandomChunk(random, extent), false);
    });
  }
}

/** Windows of every width along each of the axes: kernels treat the widths' remainders and the axes differently. */
TEST_P(Conformance, WindowsOfEveryWidth)
{
  std::mt19937      random(65);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (std::int64_t radius = 1; radius <= 24; ++radius)
  {
    for (int axis = 0; axis < 3; ++axis)
    {
      Coordinates extent = { { 5, 4, 3, 1, 1 } };
      extent[axis] = 60 + Below(random, 30);
      const BoundaryMode mode = AllModes[random() % 5];
      MeanOperation      mean;
      mean.radius[axis] = radius;
      mean.boundary = BoundaryOf(mode);
      conformance.Compare<float, float>(random, mean, extent, RandomChunk(random, extent), radius % 2);
      conformance.Compare<std::uint16_t, std::uint16_t>(random, mean, extent, RandomChunk(random, extent), false);
      SeparableOperation separable;
      separable.weights[axis] = RandomWeights(random, radius);
      separable.boundary = BoundaryOf(mode);
      conformance.Compare<float, float>(random, separable, extent, RandomChunk(random, extent), radius % 2);
      conformance.Compare<double, double>(random, separable, extent, RandomChunk(random, extent), radius % 2);
    }
  }
}

/** Enough neighboring lines along each axis for the kernels that work on bundles of them, whole bundles and parts. */
TEST_P(Conformance, BundlesOfLines)
{
  std::mt19937      random(68);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (const BoundaryMode mode : AllModes)
  {
    for (const std::int64_t largestRadius : { 2, 8, 40, 90 })
    {
      for (int trial = 0; trial < 3; ++trial)
      {
        Coordinates extent = { { 30 + Below(random, 110), 30 + Below(random, 40), 1 + Below(random, 5), 1, 1 } };
        if (trial == 0)
        {
          extent[0] = 64;
        }
        std::swap(extent[1 + trial % 2], extent[2]);
        MeanOperation      mean;
        SeparableOperation separable;
        for (int a = 0; a < 3; ++a)
        {
          mean.radius[a] = Below(random, largestRadius + 1);
          separable.weights[a] = RandomWeights(random, Below(random, largestRadius + 1));
        }
        mean.boundary = separable.boundary = BoundaryOf(mode);
        Box chunk = RandomChunk(random, extent);
        if (random() % 2)
        {
          chunk = Box::FromExtent(extent);
        }
        conformance.Compare<float, float>(random, mean, extent, chunk, trial == 1);
        conformance.Compare<double, double>(random, mean, extent, chunk, trial == 1);
        conformance.Compare<std::uint8_t, std::uint8_t>(random, mean, extent, chunk, false);
        conformance.Compare<std::int32_t, float>(random, mean, extent, chunk, false);
        conformance.Compare<std::uint64_t, std::uint64_t>(random, mean, extent, chunk, false);
        conformance.Compare<float, float>(random, separable, extent, chunk, trial == 1);
        conformance.Compare<std::int16_t, std::int16_t>(random, separable, extent, chunk, false);
        conformance.Compare<double, float>(random, separable, extent, chunk, trial == 1);
      }
    }
  }
}

/** Axes longer than any tile, so that tiles and segments meet inside of the chunk. */
TEST_P(Conformance, LongAxes)
{
  std::mt19937      random(66);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (int axis = 0; axis < 3; ++axis)
  {
    for (const std::int64_t radius : { 1, 4, 5, 15, 40, 130 })
    {
      Coordinates extent = { { 3, 2, 2, 1, 1 } };
      extent[axis] = 4500 + Below(random, 2000);
      const BoundaryMode mode = AllModes[random() % 5];
      MeanOperation      mean;
      mean.radius[axis] = radius;
      mean.boundary = BoundaryOf(mode);
      conformance.Compare<float, float>(random, mean, extent, Box::FromExtent(extent), false);
      conformance.Compare<float, float>(random, mean, extent, RandomChunk(random, extent), false);
      conformance.Compare<std::uint8_t, std::uint8_t>(random, mean, extent, RandomChunk(random, extent), false);
      SeparableOperation separable;
      separable.weights[axis] = RandomWeights(random, radius);
      separable.boundary = BoundaryOf(mode);
      conformance.Compare<float, float>(random, separable, extent, Box::FromExtent(extent), false);
      conformance.Compare<std::int16_t, float>(random, separable, extent, RandomChunk(random, extent), false);
    }
  }
}

/** Windows too large for fast memory, and larger than the image. */
TEST_P(Conformance, HugeWindows)
{
  std::mt19937      random(67);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (int axis = 0; axis < 2; ++axis)
  {
    for (const BoundaryMode mode : AllModes)
    {
      for (const std::int64_t radius : { 300, 1100, 9000 })
      {
        Coordinates extent = { { 2, 2, 1, 1, 1 } };
        extent[axis] = 1200 + Below(random, 100);
        MeanOperation mean;
        mean.radius[axis] = radius;
        mean.boundary = BoundaryOf(mode);
        conformance.Compare<float, float>(random, mean, extent, RandomChunk(random, extent), false);
        conformance.Compare<std::int64_t, std::int64_t>(random, mean, extent, RandomChunk(random, extent), false);
        SeparableOperation separable;
        separable.weights[axis] = RandomWeights(random, radius);
        separable.boundary = BoundaryOf(mode);
        conformance.Compare<float, float>(random, separable, extent, RandomChunk(random, extent), false);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fake, Conformance, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Conformance, testing::Values(Place::Cuda));

} // namespace
