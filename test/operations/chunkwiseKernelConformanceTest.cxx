/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseKernelConformance.h"

#include "chunkwiseAdaptiveEqualizationOperation.h"
#include "chunkwiseBilateralOperation.h"
#include "chunkwiseBoxStatisticOperation.h"
#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseDerivativeOperation.h"
#include "chunkwiseDistanceOperation.h"
#include "chunkwiseDeconvolutionSteps.h"
#include "chunkwiseDifferenceOperation.h"
#include "chunkwiseDomainOperation.h"
#include "chunkwiseDiffusionOperation.h"
#include "chunkwiseEnhancementOperations.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFakeDevice.h"
#include "chunkwiseFilters.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseFootprintOperation.h"
#include "chunkwiseFramedOperation.h"
#include "chunkwiseHighPassOperation.h"
#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseLabelBoundaryOperation.h"
#include "chunkwiseLabelOperation.h"
#include "chunkwiseLocalThresholdOperation.h"
#include "chunkwiseLaplacianOperation.h"
#ifdef CHUNKWISE_HAS_NETWORKS
#  include "chunkwiseNetworkTrial.h"
#endif
#include "chunkwiseNonFlatExtremumOperation.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwiseMaskedOperation.h"
#include "chunkwiseMeasureScaleOperation.h"
#include "chunkwiseRangeOperation.h"
#include "chunkwiseThresholdOperation.h"
#include "chunkwiseWatershedOperation.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseReconstructionOperation.h"
#include "chunkwiseBinOperation.h"
#include "chunkwiseRearrangeOperation.h"
#include "chunkwiseResampleField.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseSidedWindows.h"
#include "chunkwiseSpectralDeconvolutionOperation.h"
#include "chunkwiseSummedAreaTableOperation.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseVaryingConvolutionOperation.h"
#include "chunkwiseWienerOperation.h"

using namespace chunkwise;

namespace
{

constexpr BoundaryMode AllModes[] = { BoundaryMode::Renormalized, BoundaryMode::ZeroFluxNeumann,
                                      BoundaryMode::Constant,     BoundaryMode::Mirror,
                                      BoundaryMode::Periodic,     BoundaryMode::MirrorCenter };

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
  for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
  {
    DispatchPixelType(static_cast<PixelType>(kind), [&](auto pixel) {
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
    std::vector<std::string> names;
    for (const std::string & name : kernels.GetNames())
    {
      for (const auto & [role, what] : GetKernelRoles())
      {
        // The host alone runs these roles of Fixpoint, and those beside a device.
        const bool isOfOneSide = role == &KernelSet::finalizeRegion || role == &KernelSet::isActive ||
                                 role == &KernelSet::solveGlobally || role == &KernelSet::head;
        // The CPU, and devices, alone have these.
        const bool isOfOneBackend = name == "deconvolution.spectral" || name == "watershed join";
        if (!isOfOneSide && !isOfOneBackend && kernels.Find(name, role))
        {
          names.push_back(KernelRegistry::Describe(name, role));
        }
      }
    }
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
        const Coordinates extent = RandomExtent(random, 16);
        MeanOperation     operation = RandomMean(random, mode, largestRadius);
        operation.truncates = random() % 2 == 0;
        conformance.Compare<decltype(in), decltype(out)>(
          random, operation, extent, RandomChunk(random, extent), random() % 2);
      }
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

#ifdef CHUNKWISE_HAS_NETWORKS
TEST_P(Conformance, Networks)
{
  std::mt19937      random(70);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (int trial = 0; trial < 60; ++trial)
  {
    const int        dimension = 2 + trial % 2;
    NetworkOperation network;
    network.graph = trial % 4 < 2 ? trial::RandomClassifier(random, dimension).graph
                                  : trial::RandomUNet(random, dimension, 1 + trial / 4 % 2).graph;
    network.boundary = BoundaryOf(AllModes[1 + random() % 3]);
    network.scale = 0.01;
    network.channel = static_cast<int>(Below(random, network.graph->GetNumberOfOutputChannels()));
    network.result = static_cast<NetworkResult>(random() % 3);
    network.precision = NetworkPrecision::Reproducible;
    Coordinates extent = RandomExtent(random, trial % 10 == 0 ? 70 : 12);
    conformance.Compare<std::uint16_t, std::uint8_t>(random, network, extent, RandomChunk(random, extent), false);
    conformance.Compare<float, float>(random, network, extent, RandomChunk(random, extent), false);
    conformance.Compare<std::int64_t, double>(random, network, extent, RandomChunk(random, extent), false);
  }
}

/** More channels than a kernel takes at a time, weights larger than a table. */
TEST_P(Conformance, WideNetworks)
{
  std::mt19937      random(71);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (const int channels : { 9, 16, 21, 40 })
  {
    trial::NetworkBuilder builder(random, 3);
    NetworkLayer          layer;
    int                   at = builder.Convolve(0, channels, builder.Same(3), layer);
    at = builder.Pointwise(at, ActivationKind::Relu);
    layer.groups = channels % 2 ? 1 : 2;
    layer.dilation = builder.Same(2);
    at = builder.Convolve(at, channels, builder.Extent(4, 2), layer);
    NetworkOperation network;
    network.graph = builder.Finish(builder.Convolve(at, 2, builder.Same(1))).graph;
    network.boundary = BoundaryOf(BoundaryMode::Mirror);
    network.channel = 1;
    network.precision = NetworkPrecision::Reproducible;
    // Two images, which need the same weights.
    const Coordinates extent = { { 40, 21, 9, 2, 1 } };
    Box               chunk = RandomChunk(random, extent);
    chunk.lower[3] = 0;
    chunk.upper[3] = 2;
    conformance.Compare<float, float>(random, network, extent, chunk, false);
  }
}

TEST_P(Conformance, NetworksThroughTransforms)
{
  std::mt19937      random(72);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (int trial = 0; trial < 40; ++trial)
  {
    const int        dimension = 2 + trial % 2;
    NetworkOperation network;
    network.graph = trial::RandomConvolutions(random, dimension, trial % 4 < 2).graph;
    network.method = NetworkMethod::Transforms;
    const bool isHalf = trial % 3 == 2;
    network.precision = isHalf ? NetworkPrecision::Half : NetworkPrecision::Float32;
    network.boundary = BoundaryOf(AllModes[1 + random() % 3]);
    network.scale = 0.01;
    network.channel = static_cast<int>(Below(random, network.graph->GetNumberOfOutputChannels()));
    const Coordinates extent = RandomExtent(random, trial % 10 == 0 ? 70 : 20);
    ConformanceTrial  theTrial{
      network, { PixelType::Float32 }, PixelType::Float32, extent, RandomChunk(random, extent)
    };
    theTrial.tolerance = isHalf ? 1e-2 : 1e-6;
    conformance.Compare(random, theTrial);
  }
}
#endif

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
      const BoundaryMode mode = AllModes[random() % 6];
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

/** Windows of one radius along x, y and z, whose passes devices make in one kernel: images that fill no tile and
 * several, thinner than the radius too, in volumes one after the other. */
TEST_P(Conformance, CubesOfWeights)
{
  std::mt19937      random(78);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (const BoundaryMode mode : AllModes)
  {
    for (std::int64_t radius = 1; radius <= 9; ++radius)
    {
      SeparableOperation separable;
      for (int a = 0; a < 3; ++a)
      {
        separable.weights[a] = RandomWeights(random, radius);
      }
      separable.boundary = BoundaryOf(mode);
      const auto compare = [&](auto in, auto out, const Coordinates & extent) {
        const Box chunk = random() % 2 ? Box::FromExtent(extent) : RandomChunk(random, extent);
        conformance.Compare<decltype(in), decltype(out)>(random, separable, extent, chunk, random() % 3 == 0);
      };
      compare(float{}, float{}, { { 32 + Below(random, 80), 50 + Below(random, 90), 20 + Below(random, 30), 1, 1 } });
      compare(float{}, float{}, { { 64, 128, 1 + Below(random, 12), 1, 1 } });
      compare(std::uint8_t{}, std::uint8_t{}, RandomExtent(random, 90));
      compare(std::uint8_t{}, float{}, { { 70, 1 + Below(random, 12), 40, 1, 1 } });
      compare(std::uint16_t{}, std::uint16_t{}, { { 1 + Below(random, 12), 80, 30, 2, 1 } });
      compare(std::uint16_t{}, float{}, { { 35 + Below(random, 8), 67 + Below(random, 8), 18, 2, 2 } });
      compare(std::int16_t{}, std::int16_t{}, { { 33, 65, 25, 1, 1 } });
      compare(std::int16_t{}, float{}, { { 1 + Below(random, 5), 1 + Below(random, 5), 1 + Below(random, 5), 3, 1 } });
    }
  }
}

/** Windows of so many taps that their passes have separate kernels: images that fill no tile and several, thinner than
 * the radius too, and windows that are too wide for those kernels. */
TEST_P(Conformance, WideWeights)
{
  std::mt19937      random(81);
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (const BoundaryMode mode : AllModes)
  {
    for (const std::int64_t least : { 9, 18, 33, 300 })
    {
      SeparableOperation separable;
      for (int a = 0; a < 3; ++a)
      {
        separable.weights[a] = RandomWeights(random, least > 100 && a != random() % 3 ? 9 : least + Below(random, 9));
      }
      separable.boundary = BoundaryOf(mode);
      const auto compare = [&](auto in, auto out, const Coordinates & extent) {
        const Box chunk = random() % 2 ? Box::FromExtent(extent) : RandomChunk(random, extent);
        conformance.Compare<decltype(in), decltype(out)>(random, separable, extent, chunk, random() % 3 == 0);
      };
      compare(float{}, float{}, { { 240 + Below(random, 80), 50 + Below(random, 90), 1 + Below(random, 12), 1, 1 } });
      compare(float{}, float{}, { { 1 + Below(random, 70), 9, 100 + Below(random, 40), 1, 1 } });
      compare(std::uint8_t{}, std::uint8_t{}, RandomExtent(random, 60));
      compare(std::uint16_t{}, std::uint16_t{}, { { 1 + Below(random, 12), 80, 20, 2, 1 } });
      compare(std::int16_t{}, float{}, { { 65, 1 + Below(random, 5), 70, 1, 2 } });
      separable.weights[random() % 3] = { 1 };
      compare(float{}, float{}, { { 33, 65, 25, 1, 1 } });
      compare(std::uint16_t{}, float{}, { { 70, 1 + Below(random, 12), 40, 1, 1 } });
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
      const BoundaryMode mode = AllModes[random() % 6];
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

/** Calls f(inputs, output) for all kinds that an operation takes; its inputs have one kind. */
template <typename TFunctor>
void
ForEachLegalKinds(const Operation & operation, TFunctor && f)
{
  for (int in = 0; in < NumberOfPixelTypes; ++in)
  {
    for (int out = 0; out < NumberOfPixelTypes; ++out)
    {
      const std::vector<PixelType> inputs(static_cast<std::size_t>(operation.GetNumberOfInputs()),
                                          static_cast<PixelType>(in));
      try
      {
        operation.CheckKinds(inputs, static_cast<PixelType>(out));
      }
      catch (const ParameterError &)
      {
        continue;
      }
      f(inputs, static_cast<PixelType>(out));
    }
  }
}

/** The tolerance of operations through transforms, by the accumulator of ImageConvolutionOperation. */
double
ToleranceOfTransforms(PixelType input)
{
  return input == PixelType::Float32 || PixelSize(input) <= 2 ? 1e-4 : 1e-11;
}

/** Two steps of coherence-enhancing diffusion, in a mask or everywhere. */
std::shared_ptr<const Operation>
MakeSmallCoherence(int axes, bool isMasked)
{
  FilterImage image;
  image.dimension = axes;
  image.extent = { { 9, 9, axes == 3 ? 9 : 1, 1, 1 } };
  image.additionalInputs.assign(isMasked ? 1 : 0, "MaskImage");
  FilterParameters parameters;
  parameters.SetInteger("Iterations", 2);
  parameters.Set("OuterSigma", std::vector<double>{ 1 });
  parameters.SetReal("Contrast", 20);
  return MakeFilterOperation("coherence-diffusion", parameters, image);
}

class KernelTrials
{
public:
  KernelTrials(KernelConformance & conformance, std::mt19937 & random)
    : m_Conformance(conformance)
    , m_Random(random)
  {}

  /** A random chunk of a random image of each kind. */
  void
  Try(const Operation & operation, KernelRole role = &KernelSet::compute, std::int64_t largest = 12)
  {
    ForEachLegalKinds(operation, [&](const std::vector<PixelType> & inputs, PixelType output) {
      const Coordinates extent = RandomExtent(m_Random, largest);
      Compare(operation, inputs, output, extent, RandomChunk(m_Random, extent), 0, role);
    });
  }

  void
  Compare(const Operation & operation, const std::vector<PixelType> & inputs, PixelType output,
          const Coordinates & extent, const Box & chunk, double tolerance, KernelRole role = &KernelSet::compute)
  {
    operation.Validate(extent);
    m_Conformance.Compare(m_Random, { operation, inputs, output, extent, chunk, false, tolerance, role });
  }

  /** Windows in every mode, made by make(mode). */
  template <typename TMake>
  void
  TryInEveryMode(TMake && make)
  {
    for (const BoundaryMode mode : AllModes)
    {
      Try(make(mode));
    }
  }

  std::shared_ptr<const ConvolutionKernel>
  RandomKernel(const Coordinates & extent, const Coordinates & center)
  {
    std::vector<double> weights(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
    for (double & weight : weights)
    {
      weight = (0.1 + static_cast<double>(m_Random() % 1000) / 1000) / static_cast<double>(weights.size());
    }
    return std::make_shared<ConvolutionKernel>(extent, center, weights);
  }
  /** Extent and center of a kernel along the first axes. */
  void
  RandomShape(Coordinates & extent, Coordinates & center)
  {
    extent = Coordinates::Filled(1);
    center = Coordinates{};
    for (int a = 0; a < 2 + static_cast<int>(m_Random() % 2); ++a)
    {
      extent[a] = 1 + Below(m_Random, 5);
      center[a] = Below(m_Random, extent[a]);
    }
  }

  /** Each with the inputs that it may have. */
  void
  TryDeconvolutionSteps()
  {
    for (int trial = 0; trial < 80; ++trial)
    {
      DeconvolutionStepOperation operation;
      operation.step = static_cast<DeconvolutionStep>(trial % 4);
      operation.inputs =
        operation.step == DeconvolutionStep::Update || (operation.step == DeconvolutionStep::Ratio && trial % 8 == 0)
          ? 3
          : 2;
      operation.parameters.isRatio = m_Random() % 2 != 0;
      operation.parameters.isProjected = m_Random() % 2 != 0;
      operation.parameters.mayBeNegative = m_Random() % 2 != 0;
      operation.parameters.background = trial % 5;
      operation.parameters.least = trial % 3;
      operation.parameters.leastSeen = 0.2 * (trial % 7);
      operation.parameters.relaxation = 0.7;
      operation.parameters.acceleration = 0.3;
      const PixelType   kind = trial % 3 == 0 ? PixelType::Float64 : PixelType::Float32;
      const Coordinates extent = RandomExtent(m_Random, 14);
      Compare(operation,
              std::vector<PixelType>(static_cast<std::size_t>(operation.inputs), kind),
              kind,
              extent,
              RandomChunk(m_Random, extent),
              0);
    }
  }

  void
  TryImageConvolution(ConvolutionMethod method)
  {
    for (const BoundaryMode mode : AllModes)
    {
      ImageConvolutionOperation operation;
      Coordinates               shape;
      Coordinates               center;
      RandomShape(shape, center);
      operation.kernel = RandomKernel(shape, center);
      operation.method = method;
      operation.boundary = BoundaryOf(mode);
      ForEachLegalKinds(operation, [&](const std::vector<PixelType> & inputs, PixelType output) {
        const Coordinates extent = RandomExtent(m_Random, 14);
        const double      tolerance = method == ConvolutionMethod::FFT ? ToleranceOfTransforms(inputs[0]) : 0;
        Compare(operation, inputs, output, extent, RandomChunk(m_Random, extent), tolerance);
      });
    }
  }

  void
  TrySpectralDeconvolution()
  {
    for (const SpectralRule rule : { SpectralRule::Inverse, SpectralRule::Wiener, SpectralRule::Tikhonov })
    {
      SpectralDeconvolutionOperation operation;
      operation.rule = rule;
      operation.noiseVariance = 3;
      operation.regularization = 0.1;
      operation.leastMagnitude = 0.05;
      const Coordinates shape{ { 1 + Below(m_Random, 4), 1 + Below(m_Random, 4), 1 + Below(m_Random, 3), 1, 1 } };
      operation.kernel = RandomKernel(shape, Coordinates{});
      const Coordinates extent = RandomExtent(m_Random, 14);
      for (const PixelType output : { PixelType::Float32, PixelType::UInt8 })
      {
        Compare(operation, { PixelType::UInt16 }, output, extent, RandomChunk(m_Random, extent), 0);
      }
    }
  }

  void
  TryVaryingConvolution()
  {
    for (const BoundaryMode mode : AllModes)
    {
      VaryingConvolutionOperation operation;
      Coordinates                 shape;
      Coordinates                 center;
      RandomShape(shape, center);
      for (int a = 0; a < 2; ++a)
      {
        operation.nodes[a] = 1 + Below(m_Random, 3);
        operation.spacing[a] = 2 + static_cast<double>(m_Random() % 40) / 10;
        operation.first[a] = static_cast<double>(m_Random() % 30) / 10;
      }
      for (std::int64_t node = 0; node < Box::FromExtent(operation.nodes).NumberOfVoxels(); ++node)
      {
        operation.kernels.push_back(RandomKernel(shape, center));
      }
      operation.boundary = BoundaryOf(mode);
      ForEachLegalKinds(operation, [&](const std::vector<PixelType> & inputs, PixelType output) {
        const Coordinates extent = RandomExtent(m_Random, 14);
        const Box         chunk = RandomChunk(m_Random, extent);
        Compare(operation, inputs, output, extent, chunk, ToleranceOfTransforms(inputs[0]));
      });
    }
  }

  void
  TryBoxStatistic()
  {
    for (const BoxStatistic statistic :
         { BoxStatistic::Sum, BoxStatistic::Mean, BoxStatistic::Variance, BoxStatistic::StandardDeviation })
    {
      for (const std::int64_t largest : { 2, 9 })
      {
        auto operation = RandomBoxOperation<BoxStatisticOperation>(m_Random, BoundaryMode::Renormalized, largest);
        operation.statistic = statistic;
        Try(operation, &KernelSet::compute, 40);
        // The image of radii has any kind of integers.
        BoxStatisticOperation variable = operation;
        variable.variable = true;
        ForEachLegalKinds(operation, [&](const std::vector<PixelType> & inputs, PixelType output) {
          const Coordinates extent = RandomExtent(m_Random, 20);
          const auto        radii = static_cast<PixelType>(m_Random() % 8);
          Compare(variable, { inputs[0], radii }, output, extent, RandomChunk(m_Random, extent), 0);
        });
      }
    }
  }

  /** Every window that a domain may be of; of windows that wrap around chunks hold the axis whole. */
  void
  TryDomain()
  {
    for (const BoundaryMode mode : { BoundaryMode::Renormalized, BoundaryMode::Constant, BoundaryMode::Mirror })
    {
      std::vector<std::shared_ptr<const Operation>> windows;
      const auto                                    mean = RandomMean(m_Random, mode, 3);
      windows.push_back(std::make_shared<MeanOperation>(mean));
      auto sum = mean;
      sum.sums = true;
      windows.push_back(std::make_shared<MeanOperation>(sum));
      windows.push_back(std::make_shared<VarianceOperation>(RandomBoxOperation<VarianceOperation>(m_Random, mode, 3)));
      windows.push_back(std::make_shared<SeparableOperation>(RandomSeparable(m_Random, mode, 4)));
      windows.push_back(std::make_shared<ExtremumOperation>(RandomBoxOperation<ExtremumOperation>(m_Random, mode, 3)));
      windows.push_back(std::make_shared<RangeOperation>(RandomBoxOperation<RangeOperation>(m_Random, mode, 3)));
      windows.push_back(std::make_shared<RankOperation>(RandomBoxOperation<RankOperation>(m_Random, mode, 1)));
      auto rank = RandomBoxOperation<RankOperation>(m_Random, mode, 4);
      rank.fraction = static_cast<double>(m_Random() % 101) / 100;
      windows.push_back(std::make_shared<RankOperation>(rank));
      auto means = NonLocalMeansOperation();
      means.strength = 20;
      means.boundary = { mode, 7.0 };
      means.search[0] = means.patch[1] = 1;
      means.search[2] = means.patch[2] = static_cast<std::int64_t>(m_Random() % 3);
      windows.push_back(std::make_shared<NonLocalMeansOperation>(means));
      for (const int bins : { 256, 1000 })
      {
        auto entropy = RandomBoxOperation<EntropyOperation>(m_Random, mode, 4);
        entropy.bins = bins;
        windows.push_back(std::make_shared<EntropyOperation>(entropy));
      }
      const auto highPass = std::make_shared<HighPassOperation>();
      highPass->smoothing = std::make_shared<SeparableOperation>(RandomSeparable(m_Random, mode, 4));
      windows.push_back(highPass);
      const auto wiener = std::make_shared<WienerOperation>(RandomBoxOperation<WienerOperation>(m_Random, mode, 3));
      wiener->noise = 300;
      windows.push_back(wiener);
      for (int statistic = 0; statistic < 5; ++statistic)
      {
        const auto footprint = std::make_shared<FootprintOperation>();
        footprint->statistic = static_cast<FootprintStatistic>(statistic);
        footprint->boundary = { mode, 7.0 };
        footprint->element = MakeSidedElement({ { { 1, 2, 0, 0, 0 } }, { { 2, 1, 1, 0, 0 } } }, footprint->radius);
        windows.push_back(footprint);
      }
      if (mode == BoundaryMode::Renormalized)
      {
        for (const BoxStatistic statistic : { BoxStatistic::Sum, BoxStatistic::Mean, BoxStatistic::StandardDeviation })
        {
          const auto box =
            std::make_shared<BoxStatisticOperation>(RandomBoxOperation<BoxStatisticOperation>(m_Random, mode, 3));
          box->statistic = statistic;
          windows.push_back(box);
        }
      }
      for (const auto & window : windows)
      {
        for (const DomainKind domain : { DomainKind::All, DomainKind::Mask, DomainKind::Weights })
        {
          ForEachLegalKinds(*window, [&](const std::vector<PixelType> & inputs, PixelType output) {
            DomainOperation operation;
            operation.window = window;
            operation.domain = domain;
            operation.imageKind = inputs[0];
            operation.ignoresNan = IsFloatingPoint(inputs[0]);
            operation.marksSeen = window->GetName() != "nonlocalmeans" && m_Random() % 4 == 0;
            std::vector<PixelType> kinds = inputs;
            if (domain == DomainKind::Mask)
            {
              kinds.push_back(static_cast<PixelType>(m_Random() % 8));
            }
            if (domain == DomainKind::Weights)
            {
              kinds.push_back(m_Random() % 2 ? PixelType::Float32 : PixelType::Float64);
            }
            const Coordinates extent = RandomExtent(m_Random, 14);
            try
            {
              operation.CheckKinds(kinds, output);
              operation.Validate(extent);
            }
            catch (const ParameterError &)
            {
              return;
            }
            ConformanceTrial trial{ operation, kinds, output, extent, RandomChunk(m_Random, extent) };
            trial.special = m_Random() % 2;
            trial.lastIsWeights = domain != DomainKind::All;
            m_Conformance.Compare(m_Random, trial);
          });
        }
      }
    }
  }

  /** Images of several tiles, by both methods, as sweeps and as slices that stand by themselves. */
  void
  TryTable(KernelRole role)
  {
    for (int trial = 0; trial < 8; ++trial)
    {
      SummedAreaTableOperation operation;
      Coordinates              extent = { { 1 + Below(m_Random, 300), 1 + Below(m_Random, 150), 1, 1, 1 } };
      operation.summedAxes = 2 + trial % 2;
      operation.method = trial / 2 % 2 ? TableMethod::Blocks : TableMethod::SinglePass;
      operation.squares = trial / 4 % 2;
      const bool sweeps = role == &KernelSet::advance || m_Random() % 2;
      extent[2] = operation.summedAxes == 3 || !sweeps ? 2 + Below(m_Random, 6) : 1;
      extent[3] = sweeps ? 1 : 2;
      operation.image = extent;
      for (const bool modular : { false, true })
      {
        operation.modular = modular;
        ForEachLegalKinds(operation, [&](const std::vector<PixelType> & inputs, PixelType output) {
          Box chunk = RandomChunk(m_Random, extent);
          if (sweeps)
          {
            const int axis = operation.GetSweepAxis(extent);
            const Box part = chunk;
            chunk = Box::FromExtent(extent);
            chunk.lower[axis] = part.lower[axis];
            chunk.upper[axis] = part.upper[axis];
          }
          Compare(operation, inputs, output, extent, chunk, 0, role);
        });
      }
    }
  }

  void
  TryLabels()
  {
    for (int trial = 0; trial < 12; ++trial)
    {
      LabelOperation operation;
      operation.image = { { 1 + Below(m_Random, 150), 1 + Below(m_Random, 20), 1 + Below(m_Random, 20), 1, 1 } };
      operation.structure = LabelOperation::MakeStructure(1 + trial % 3, 3);
      operation.rule = static_cast<LabelRule>(trial / 3 % 3);
      operation.tolerance = 40;
      for (int kind = 0; kind < NumberOfPixelTypes; ++kind)
      {
        const auto input = static_cast<PixelType>(kind);
        operation.inputKind = input;
        operation.outputKind = static_cast<PixelType>(m_Random() % NumberOfPixelTypes);
        const Box chunk = RandomChunk(m_Random, operation.image);
        if (operation.MayHaveTooMany(chunk))
        {
          operation.outputKind = PixelType::UInt32;
        }
        Compare(operation, { input }, operation.outputKind, operation.image, chunk, 0, &KernelSet::alone);
      }
    }
  }

  void
  TryDistances()
  {
    for (int trial = 0; trial < 60; ++trial)
    {
      DistanceOperation operation;
      operation.image = { { 1 + Below(m_Random, 150), 1 + Below(m_Random, 20), 1 + Below(m_Random, 20), 1, 1 } };
      operation.inputKind = static_cast<PixelType>(trial % NumberOfPixelTypes);
      operation.outputKind = trial % 2 ? PixelType::Float32 : PixelType::Float64;
      operation.result = static_cast<DistanceResult>(m_Random() % 5);
      operation.to = operation.KeepsNearest() ? DistanceTo::Objects : static_cast<DistanceTo>(m_Random() % 4);
      operation.background = 40;
      operation.spacing[1] = trial % 3 ? 1 : 0.3;
      Compare(operation,
              { operation.inputKind },
              operation.outputKind,
              operation.image,
              Box::FromExtent(operation.image),
              0,
              &KernelSet::alone);
    }
  }

  void
  TryResampling()
  {
    for (int trial = 0; trial < 40; ++trial)
    {
      ResampleOperation operation;
      operation.image = { { 1 + Below(m_Random, 60), 1 + Below(m_Random, 20), 1 + Below(m_Random, 20), 1, 1 } };
      operation.output = { { 1 + Below(m_Random, 60), 1 + Below(m_Random, 20), 1 + Below(m_Random, 20), 1, 1 } };
      operation.interpolation = static_cast<Interpolation>(trial % 5);
      for (int i = 0; i < ResampleOperation::Axes; ++i)
      {
        operation.matrix[i][i] = 0.1 * static_cast<double>(Below(m_Random, 30) - 15);
        operation.matrix[i][(i + 1) % 3] = trial % 2 ? 0.3 : 0;
        operation.offset[i] = 0.7 * static_cast<double>(Below(m_Random, 20));
      }
      operation.outside = static_cast<ResampleOutside>(m_Random() % 3);
      if (trial % 4 == 3)
      {
        const auto field = std::make_shared<ResampleField>();
        const auto vectors = std::make_shared<KernelStack>();
        std::copy_n(operation.output.axis, 3, field->extent);
        std::copy_n(operation.output.axis, 3, field->output);
        std::copy_n(operation.output.axis, 3, vectors->extent.axis);
        vectors->kernels.resize(1);
        for (std::int64_t i = 0; i < Box::FromExtent(operation.output).NumberOfVoxels(); ++i)
        {
          vectors->kernels[0].push_back(0.1 * static_cast<double>(Below(m_Random, 90)));
        }
        field->vectors = vectors;
        field->toImage[0][0] = field->toImage[2][0] = 1;
        field->Prepare();
        operation.field = field;
      }
      const auto kind = static_cast<PixelType>(trial % NumberOfPixelTypes);
      Compare(operation, { kind }, kind, operation.image, RandomChunk(m_Random, operation.output), 0);
    }
  }

  void
  TryBins()
  {
    for (int trial = 0; trial < 60; ++trial)
    {
      BinOperation operation;
      operation.image = { { 1 + Below(m_Random, 150), 1 + Below(m_Random, 20), 1 + Below(m_Random, 20), 1, 1 } };
      for (int a = 0; a < 3; ++a)
      {
        operation.factor[a] = std::min(1 + Below(m_Random, trial % 2 ? 3 : 9), operation.image[a]);
      }
      operation.method = static_cast<BinMethod>(trial % 7);
      const auto kind = static_cast<PixelType>(m_Random() % NumberOfPixelTypes);
      const auto output = trial % 4 ? kind : PixelType::Float64;
      const Box  bins = GetOutputBox(operation, Box::FromExtent(operation.image));
      Compare(operation, { kind }, output, operation.image, RandomChunk(m_Random, bins.Extents()), 0);
    }
  }

  void
  TryRearranging()
  {
    for (int trial = 0; trial < 60; ++trial)
    {
      RearrangeOperation operation;
      operation.image = { { 1 + Below(m_Random, 90), 1 + Below(m_Random, 20), 1 + Below(m_Random, 20), 1, 1 } };
      operation.output = { { 1 + Below(m_Random, 90), 1 + Below(m_Random, 20), 1 + Below(m_Random, 20), 1, 1 } };
      std::shuffle(operation.source, operation.source + 3, m_Random);
      for (int a = 0; a < 3; ++a)
      {
        operation.flips[a] = m_Random() % 2;
        operation.offset[a] = Below(m_Random, 40) - 20;
        operation.outside[a] = static_cast<RearrangeOutside>((trial + m_Random() % 2) % 5);
      }
      const auto kind = static_cast<PixelType>(m_Random() % NumberOfPixelTypes);
      Compare(operation, { kind }, kind, operation.image, RandomChunk(m_Random, operation.output), 0);
    }
  }

  void
  TryThresholds()
  {
    for (int trial = 0; trial < 100; ++trial)
    {
      const Coordinates  image{ { 1 + Below(m_Random, 150), 1 + Below(m_Random, 20), 1 + Below(m_Random, 20), 1, 1 } };
      ThresholdOperation operation;
      operation.thresholds = { 10, 40, 90.5 };
      operation.thresholds.resize(1 + m_Random() % 3);
      operation.masked = m_Random() % 2;
      const auto kind = static_cast<PixelType>(trial % NumberOfPixelTypes);
      const auto mask = static_cast<PixelType>(m_Random() % 8);
      Compare(operation,
              operation.masked ? std::vector<PixelType>{ kind, mask } : std::vector<PixelType>{ kind },
              static_cast<PixelType>(trial / 10),
              image,
              RandomChunk(m_Random, image),
              0);
    }
  }

  void
  TryBoundaries()
  {
    for (int trial = 0; trial < 18; ++trial)
    {
      LabelBoundaryOperation operation;
      operation.mode = static_cast<LabelBoundaryMode>(trial % 3);
      operation.connectivity = 1 + trial / 3 % 3;
      operation.axes = RandomAxes(m_Random);
      operation.axes.resize(std::max<std::size_t>(operation.axes.size(), 1));
      Try(operation);
    }
  }

  void
  TryLocalThresholds()
  {
    for (int trial = 0; trial < 140; ++trial)
    {
      const auto mode = AllModes[m_Random() % 4]; // windows that wrap around need the axis whole
      auto       operation = RandomBoxOperation<LocalThresholdOperation>(m_Random, mode, 3);
      operation.method = static_cast<LocalThresholdMethod>(trial % 7);
      operation.imageKind = static_cast<PixelType>(trial % NumberOfPixelTypes);
      operation.masked = m_Random() % 2;
      operation.givesThresholds = m_Random() % 4 == 0;
      for (int a = 0; a < MaxDimension; ++a)
      {
        operation.weights[a].assign(static_cast<std::size_t>(2 * operation.radius[a] + 1),
                                    operation.radius[a] > 0 ? 0.125 : 1);
      }
      const Coordinates extent = RandomExtent(m_Random, 14);
      ConformanceTrial  about{ operation,
                               { operation.imageKind },
                              static_cast<PixelType>(m_Random() % NumberOfPixelTypes),
                              extent,
                              RandomChunk(m_Random, extent) };
      if (operation.masked)
      {
        about.inputs.push_back(static_cast<PixelType>(m_Random() % 8));
        about.lastIsWeights = true;
      }
      operation.Validate(extent);
      m_Conformance.Compare(m_Random, about);
    }
  }

  void
  TryMomentThresholds()
  {
    for (int trial = 0; trial < 60; ++trial)
    {
      const auto mode = AllModes[m_Random() % 4];
      auto       operation = RandomBoxOperation<MomentThresholdOperation>(m_Random, mode, 3);
      if (trial % 3 != 0)
      {
        const auto r = static_cast<std::int64_t>(1 + m_Random() % 12);
        operation.radius = { { r, r, m_Random() % 3 ? r : 0, 0, 0 } };
      }
      const auto first = static_cast<int>(LocalThresholdMethod::Niblack);
      operation.method = static_cast<LocalThresholdMethod>(first + trial % 3);
      operation.givesThresholds = m_Random() % 2;
      const PixelType kinds[] = {
        PixelType::UInt8, PixelType::Int8, PixelType::UInt16, PixelType::Int16, PixelType::Float32
      };
      const Coordinates extent = RandomExtent(m_Random, 30);
      operation.Validate(extent);
      m_Conformance.Compare(m_Random,
                            { operation,
                              { kinds[trial % 5] },
                              static_cast<PixelType>(m_Random() % NumberOfPixelTypes),
                              extent,
                              RandomChunk(m_Random, extent) });
    }
  }

  void
  TryMasked()
  {
    for (int trial = 0; trial < 40; ++trial)
    {
      MaskedOperation operation;
      if (trial % 2 == 0)
      {
        BilateralOperation bilateral;
        bilateral.weights[0] = bilateral.weights[1] = SampledGaussianWeights(1, 2);
        bilateral.rangeSigma = 40;
        operation.inside = std::make_shared<BilateralOperation>(bilateral);
      }
      else
      {
        DiffusionOperation diffusion;
        diffusion.method = static_cast<DiffusionMethod>(trial / 2 % 4);
        diffusion.iterations = 2;
        diffusion.scale[0] = diffusion.scale[1] = 1;
        diffusion.contrast = diffusion.weight = 20;
        diffusion.skipsNan = true;
        operation.inside =
          diffusion.method == DiffusionMethod::Coherence
            ? dynamic_cast<const MaskedOperation &>(*MakeSmallCoherence(2 + trial / 8 % 2, true)).inside
            : std::make_shared<DiffusionOperation>(diffusion);
      }
      operation.keepsOutside = trial % 3 != 0;
      const auto        kind = static_cast<PixelType>(trial % NumberOfPixelTypes);
      const PixelType   outputs[] = { kind, PixelType::Float32, PixelType::Float64 };
      const Coordinates extent = RandomExtent(m_Random, 14);
      ConformanceTrial  about{ operation,
                               { kind, static_cast<PixelType>(m_Random() % 8) },
                              outputs[m_Random() % 3],
                              extent,
                              RandomChunk(m_Random, extent) };
      about.lastIsWeights = true;
      m_Conformance.Compare(m_Random, about);
    }
  }

  void
  TryDerivatives()
  {
    TryInEveryMode([&](BoundaryMode mode) {
      DerivativeOperation operation;
      operation.boundary = BoundaryOf(mode);
      for (const int a : RandomAxes(m_Random))
      {
        std::vector<double> & weights = operation.scales.front().weights[a];
        for (std::int64_t radius = 1 + Below(m_Random, 5); radius >= 0; --radius)
        {
          weights.insert(weights.begin(), 1.0 / static_cast<double>(1 + weights.size()));
          weights.push_back(weights.front());
        }
        weights.erase(weights.begin() + static_cast<std::ptrdiff_t>(weights.size() / 2));
      }
      const std::int64_t components = Below(m_Random, 2) ? 3 : 6;
      for (std::int64_t component = 0; component < components; ++component)
      {
        operation.components.emplace_back();
        for (std::size_t a = 0; a < MaxDimension; ++a)
        {
          operation.components.back()[a] =
            operation.scales.front().weights[a].empty() ? 0 : static_cast<int>(Below(m_Random, 4));
        }
      }
      operation.result = static_cast<DerivativeResult>(1 + Below(m_Random, 4));
      return operation;
    });
    for (const bool ofVectors : { false, true })
    {
      TryInEveryMode([&](BoundaryMode mode) {
        DerivativeOperation operation;
        operation.boundary = BoundaryOf(mode);
        operation.result = ofVectors ? DerivativeResult::Sum : DerivativeResult::Curvature;
        operation.ofVectors = ofVectors;
        operation.components = { { { 1, 0, 0, 0, 0 } }, { { 0, 1, 0, 0, 0 } }, { { 0, 0, 1, 0, 0 } } };
        const std::vector<DerivativeOrders> hessian{ { { 2, 0, 0, 0, 0 } }, { { 1, 1, 0, 0, 0 } },
                                                     { { 1, 0, 1, 0, 0 } }, { { 0, 2, 0, 0, 0 } },
                                                     { { 0, 1, 1, 0, 0 } }, { { 0, 0, 2, 0, 0 } } };
        if (!ofVectors)
        {
          operation.components.insert(operation.components.end(), hessian.begin(), hessian.end());
        }
        for (std::size_t a = 0; a < 3; ++a)
        {
          operation.scales.front().weights[a] = { 1, 3, 4, 3, 1 };
        }
        return operation;
      });
    }
    TryInEveryMode([&](BoundaryMode mode) {
      const auto          gradient = std::make_shared<DerivativeOperation>();
      DerivativeOperation operation;
      operation.boundary = gradient->boundary = BoundaryOf(mode);
      for (std::size_t a = 0; a < 3; ++a)
      {
        gradient->scales.front().weights[a] = { 1, 3, 4, 3, 1 };
        operation.scales.front().weights[a] = { 1, 2, 1 };
        gradient->components.emplace_back();
        gradient->components.back().fill(0);
        gradient->components.back()[a] = 1;
      }
      operation.components.resize(6);
      operation.gradient = gradient;
      operation.result = static_cast<DerivativeResult>(5 + Below(m_Random, 3));
      return operation;
    });
  }

  void
  TryWatershed()
  {
    for (int trial = 0; trial < 60; ++trial)
    {
      WatershedOperation operation;
      operation.image = { { 1 + Below(m_Random, 150), 1 + Below(m_Random, 15), 1 + Below(m_Random, 15), 1, 1 } };
      operation.connectivity = 1 + trial % 3;
      operation.hasMarkers = m_Random() % 2;
      operation.hasMask = m_Random() % 2;
      operation.lines = m_Random() % 2;
      operation.inputKind = static_cast<PixelType>(trial % NumberOfPixelTypes);
      std::vector<PixelType> inputs{ operation.inputKind };
      if (operation.hasMarkers)
      {
        inputs.push_back(PixelType::UInt8);
      }
      if (operation.hasMask)
      {
        inputs.push_back(static_cast<PixelType>(m_Random() % 8));
      }
      Compare(operation,
              inputs,
              operation.outputKind,
              operation.image,
              RandomChunk(m_Random, operation.image),
              0,
              &KernelSet::alone);
    }
  }

  void
  TryReconstruction(KernelRole role)
  {
    for (int trial = 0; trial < 12; ++trial)
    {
      ReconstructionOperation operation;
      operation.erosion = m_Random() % 2;
      operation.fullyConnected = m_Random() % 2;
      operation.marker = trial % 3 == 0   ? ReconstructionMarker::Image
                         : trial % 3 == 1 ? ReconstructionMarker::Shifted
                                          : ReconstructionMarker::Border;
      operation.height = 20;
      operation.result = trial % 2 ? ReconstructionResult::Residue : ReconstructionResult::Reconstruction;
      Try(operation, role);
    }
  }

  std::mt19937 &
  Random()
  {
    return m_Random;
  }

private:
  KernelConformance & m_Conformance;
  std::mt19937 &      m_Random;
};

/** One line for each operation of every registry: what is registered and not here fails. */
const std::map<std::string, void (*)(KernelTrials &, KernelRole)> &
TrialsOfKernels()
{
  static const std::map<std::string, void (*)(KernelTrials &, KernelRole)> trials = {
    { "boxstatistic", [](KernelTrials & t, KernelRole) { t.TryBoxStatistic(); } },
    { "convolution",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) {
          ConvolutionOperation operation;
          operation.radius = { { Below(t.Random(), 3), Below(t.Random(), 3), Below(t.Random(), 2), 0, 0 } };
          std::int64_t taps = 1;
          for (int a = 0; a < MaxDimension; ++a)
          {
            taps *= 2 * operation.radius[a] + 1;
          }
          for (std::int64_t tap = 0; tap < taps; ++tap)
          {
            operation.weights.push_back(0.1 + static_cast<double>(t.Random()() % 1000) / 1000);
          }
          operation.boundary = BoundaryOf(mode);
          return operation;
        });
      } },
    { "convolution.direct", [](KernelTrials & t, KernelRole) { t.TryImageConvolution(ConvolutionMethod::Direct); } },
    { "convolution.fft", [](KernelTrials & t, KernelRole) { t.TryImageConvolution(ConvolutionMethod::FFT); } },
    { "convolution.varying", [](KernelTrials & t, KernelRole) { t.TryVaryingConvolution(); } },
    { "deconvolution.spectral", [](KernelTrials & t, KernelRole) { t.TrySpectralDeconvolution(); } },
    { "deconvolution.step", [](KernelTrials & t, KernelRole) { t.TryDeconvolutionSteps(); } },
    { "difference", [](KernelTrials & t, KernelRole) { t.Try(DifferenceOperation()); } },
    { "domain", [](KernelTrials & t, KernelRole) { t.TryDomain(); } },
    { "entropy",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) {
          auto operation = RandomBoxOperation<EntropyOperation>(t.Random(), mode, 3);
          operation.bins = 2 + static_cast<int>(Below(t.Random(), 60));
          operation.lower = -60;
          operation.upper = 140;
          for (int a = 0; a < MaxDimension && mode != BoundaryMode::Renormalized; ++a)
          {
            operation.shorter[a] = operation.radius[a] > 0 && t.Random()() % 2 ? 1 : 0;
          }
          return operation;
        });
      } },
    { "extremum",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) {
          auto operation = RandomBoxOperation<ExtremumOperation>(t.Random(), mode, 4);
          operation.minimum = t.Random()() % 2;
          return operation;
        });
      } },
    { "extremum.flat",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) {
          FlatExtremumOperation operation;
          operation.radius = { { 1, 1, 1, 0, 0 } };
          operation.element.assign(27, 1);
          operation.element[static_cast<std::size_t>(Below(t.Random(), 13))] = 0;
          operation.boundary = BoundaryOf(mode);
          return operation;
        });
      } },
    { "highpass",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) {
          HighPassOperation operation;
          operation.smoothing = std::make_shared<SeparableOperation>(RandomSeparable(t.Random(), mode, 4));
          return operation;
        });
      } },
    { "identity", [](KernelTrials & t, KernelRole) { t.Try(IdentityOperation()); } },
    { "laplacian",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) {
          LaplacianOperation operation;
          for (int a = 0; a < 1 + static_cast<int>(Below(t.Random(), 3)); ++a)
          {
            operation.weights[a] = RandomWeights(t.Random(), 2 + Below(t.Random(), 3));
          }
          operation.boundary = BoundaryOf(mode);
          return operation;
        });
        // All axes at once on some devices.
        for (const std::int64_t radius : { 4, 8 })
        {
          LaplacianOperation cube;
          cube.weights[0] = cube.weights[1] = cube.weights[2] = RandomWeights(t.Random(), radius);
          t.Try(cube, &KernelSet::compute, 30);
        }
      } },
    { "mean",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) { return RandomMean(t.Random(), mode, 4); });
      } },
#ifdef CHUNKWISE_HAS_NETWORKS
    { "network",
      [](KernelTrials & t, KernelRole role) {
        NetworkOperation operation;
        operation.graph = trial::RandomUNet(t.Random(), 3, 1).graph;
        operation.scale = 0.01;
        if (role == &KernelSet::spilled)
        {
          operation.slab = 1;
          operation.precision = NetworkPrecision::Reproducible;
        }
        t.Try(operation, role);
      } },
#endif
    { "nonlocalmeans",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) {
          NonLocalMeansOperation operation;
          operation.search = { { 2, 1, 1, 0, 0 } };
          operation.patch = { { 1, 1, 0, 0, 0 } };
          operation.boundary = BoundaryOf(mode);
          operation.strength = 30;
          return operation;
        });
      } },
    { "range",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) { return RandomBoxOperation<RangeOperation>(t.Random(), mode, 4); });
      } },
    { "rank",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) { return RandomBoxOperation<RankOperation>(t.Random(), mode, 3); });
      } },
    { "reconstruction", [](KernelTrials & t, KernelRole role) { t.TryReconstruction(role); } },
    { "sat", [](KernelTrials & t, KernelRole role) { t.TryTable(role); } },
    { "separable",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) { return RandomSeparable(t.Random(), mode, 4); });
      } },
    { "sequence",
      [](KernelTrials & t, KernelRole) {
        // Chunks hold the axis whole if windows wrap around.
        for (const BoundaryMode mode : { BoundaryMode::Renormalized, BoundaryMode::Constant, BoundaryMode::Mirror })
        {
          SequenceOperation operation;
          operation.stages = { std::make_shared<MeanOperation>(RandomMean(t.Random(), mode, 2)),
                               std::make_shared<ExtremumOperation>(
                                 RandomBoxOperation<ExtremumOperation>(t.Random(), mode, 2)) };
          t.Try(operation);
        }
      } },
    { "footprint",
      [](KernelTrials & t, KernelRole) {
        for (int trial = 0; trial < 30; ++trial)
        {
          FootprintOperation operation;
          operation.boundary = BoundaryOf(AllModes[trial % 6]);
          operation.statistic = static_cast<FootprintStatistic>(trial % 7);
          operation.radius = { { 2, 1, 1, 0, 0 } };
          for (int i = 0; i < 45; ++i)
          {
            operation.element.push_back(i == 7 || t.Random()() % 2 ? 1 : 0);
          }
          operation.heights.assign(operation.HasHeights() ? 45 : 0, trial);
          t.Try(operation);
        }
      } },
    { "framed",
      [](KernelTrials & t, KernelRole) {
        for (int trial = 0; trial < 30; ++trial)
        {
          const auto      mode = BoundaryMode::ZeroFluxNeumann;
          FramedOperation operation;
          operation.inner =
            trial % 3 == 0
              ? std::shared_ptr<const Operation>(std::make_shared<MeanOperation>(RandomMean(t.Random(), mode, 3)))
            : trial % 3 == 1
              ? std::shared_ptr<const Operation>(
                  std::make_shared<RankOperation>(RandomBoxOperation<RankOperation>(t.Random(), mode, 2)))
              : std::make_shared<RangeOperation>(RandomBoxOperation<RangeOperation>(t.Random(), mode, 2));
          for (BoundaryMode & each : operation.modes)
          {
            // Chunks hold the axis whole if windows wrap around.
            each = AllModes[1 + t.Random()() % 3];
          }
          operation.constant = PixelValue(5);
          t.Try(operation);
        }
        for (int trial = 0; trial < 20; ++trial)
        {
          // Windows beside their voxel, in a mask of the image.
          const auto  mode = trial % 2 ? BoundaryMode::Renormalized : BoundaryMode::Mirror;
          const auto  mean = std::make_shared<MeanOperation>(RandomMean(t.Random(), mode, 3));
          WindowSides sides;
          for (int a = 0; a < 3; ++a)
          {
            sides.lower[a] = Below(t.Random(), 4);
            sides.upper[a] = sides.lower[a] % 2 + 2 * Below(t.Random(), 3);
          }
          t.Try(*MakeSided(mean, sides, trial % 4 < 2 ? PixelType::Int16 : PixelType::Float32));
        }
      } },
    { "localnormalization",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode(
          [&](BoundaryMode mode) { return RandomBoxOperation<LocalNormalizationOperation>(t.Random(), mode, 3); });
      } },
    { "adaptiveequalization",
      [](KernelTrials & t, KernelRole) {
        for (const std::int64_t size : { 0, 3, 8 })
        {
          AdaptiveEqualizationOperation operation;
          operation.tile = { { size, 1 + Below(t.Random(), 6), 4, 0, 0 } };
          operation.bins = 2 + static_cast<int>(Below(t.Random(), 300));
          operation.upper = 100;
          t.Try(operation);
        }
      } },
    { "scalestep",
      [](KernelTrials & t, KernelRole) {
        ScaleStepOperation operation;
        operation.scale = 2;
        t.Try(operation);
        operation.givesScale = false;
        t.Try(operation);
      } },
    { "measurescale",
      [](KernelTrials & t, KernelRole) {
        MeasureScaleOperation operation;
        operation.measure.result = DerivativeResult::Measure;
        operation.measure.measure.measure = HessianMeasure::Sato;
        operation.measure.components = { { { 2 } }, { { 1, 1 } }, { { 0, 2 } } };
        operation.measure.scales.resize(2);
        for (std::size_t i = 0; i < 2; ++i)
        {
          for (const int a : { 0, 1 })
          {
            operation.measure.scales[i].weights[a] = SampledGaussianWeights(1 + static_cast<double>(i), 3);
          }
        }
        operation.scales = { 1, 2 };
        t.Try(operation);
      } },
    { "nonflatextremum",
      [](KernelTrials & t, KernelRole) {
        for (const bool dilates : { false, true })
        {
          NonFlatExtremumOperation operation;
          operation.semiAxes[Below(t.Random(), 2)] = static_cast<double>(Below(t.Random(), 5));
          operation.semiAxes[2] = 1.5;
          operation.height = 20;
          operation.dilates = dilates;
          t.Try(operation);
        }
      } },
    { "rollingball",
      [](KernelTrials & t, KernelRole) {
        for (const auto shape : { StructuringShape::Ball, StructuringShape::Paraboloid })
        {
          RollingBallOperation operation;
          operation.extremum.semiAxes[0] = operation.extremum.semiAxes[1] = 2.5;
          operation.extremum.shape = shape;
          operation.subtracts = shape == StructuringShape::Ball;
          t.Try(operation);
        }
      } },
    { "bilateral",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) {
          BilateralOperation operation;
          operation.weights[0] = SampledGaussianWeights(1.5, Below(t.Random(), 4));
          operation.weights[1 + Below(t.Random(), 2)] = SampledGaussianWeights(1, 2);
          operation.rangeSigma = 20;
          operation.boundary.mode = mode;
          return operation;
        });
      } },
    { "diffusion",
      [](KernelTrials & t, KernelRole) {
        for (const auto method :
             { DiffusionMethod::Gradient, DiffusionMethod::Curvature, DiffusionMethod::TotalVariation })
        {
          DiffusionOperation operation;
          operation.method = method;
          operation.iterations = 1 + Below(t.Random(), 4);
          operation.scale[0] = operation.scale[1] = 1;
          operation.contrast = operation.weight = 20;
          t.Try(operation);
        }
        for (const int axes : { 2, 3 })
        {
          t.Try(dynamic_cast<const DiffusionOperation &>(*MakeSmallCoherence(axes, false)));
        }
      } },
    { "masked", [](KernelTrials & t, KernelRole) { t.TryMasked(); } },
    { "tophat",
      [](KernelTrials & t, KernelRole) {
        // Chunks hold the axis whole if windows wrap around.
        for (const BoundaryMode mode : { BoundaryMode::Renormalized, BoundaryMode::Constant, BoundaryMode::Mirror })
        {
          TopHatOperation operation;
          const auto      first =
            std::make_shared<ExtremumOperation>(RandomBoxOperation<ExtremumOperation>(t.Random(), mode, 2));
          const auto second = std::make_shared<ExtremumOperation>(*first);
          first->minimum = !second->minimum;
          operation.first = first;
          operation.second = second;
          operation.black = second->minimum;
          t.Try(operation);
        }
      } },
    { "unsharp",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) {
          UnsharpOperation operation;
          operation.smoothing = std::make_shared<SeparableOperation>(RandomSeparable(t.Random(), mode, 4));
          operation.threshold = 3;
          return operation;
        });
      } },
    { "variance",
      [](KernelTrials & t, KernelRole) {
        for (const std::int64_t largest : { 2, 3, 5, 9 })
        {
          t.TryInEveryMode([&](BoundaryMode mode) {
            auto operation = RandomBoxOperation<VarianceOperation>(t.Random(), mode, largest);
            operation.takesRoot = t.Random()() % 2;
            return operation;
          });
          VarianceOperation cube;
          cube.radius = { { largest, largest, largest, 0, 0 } };
          t.Try(cube, &KernelSet::compute, 30);
        }
      } },
    { "label", [](KernelTrials & t, KernelRole) { t.TryLabels(); } },
    { "labelboundary", [](KernelTrials & t, KernelRole) { t.TryBoundaries(); } },
    { "localthreshold", [](KernelTrials & t, KernelRole) { t.TryLocalThresholds(); } },
    { "momentthreshold", [](KernelTrials & t, KernelRole) { t.TryMomentThresholds(); } },
    { "derivative", [](KernelTrials & t, KernelRole) { t.TryDerivatives(); } },
    { "distance", [](KernelTrials & t, KernelRole) { t.TryDistances(); } },
    { "bin", [](KernelTrials & t, KernelRole) { t.TryBins(); } },
    { "rearrange", [](KernelTrials & t, KernelRole) { t.TryRearranging(); } },
    { "resample", [](KernelTrials & t, KernelRole) { t.TryResampling(); } },
    { "threshold", [](KernelTrials & t, KernelRole) { t.TryThresholds(); } },
    { "watershed", [](KernelTrials & t, KernelRole) { t.TryWatershed(); } },
    { "wiener",
      [](KernelTrials & t, KernelRole) {
        t.TryInEveryMode([&](BoundaryMode mode) {
          auto operation = RandomBoxOperation<WienerOperation>(t.Random(), mode, 3);
          operation.noise = 500;
          return operation;
        });
      } },
  };
  return trials;
}

/** Every kernel that is registered, between guards. */
TEST_P(Conformance, EveryRegisteredKernel)
{
  KernelConformance conformance(*m_Device, GetHostKernels());
  for (const std::string & name : m_Device->GetKernels().GetNames())
  {
    // Voxel-wise stages run in their composite alone.
    if (name.substr(name.rfind('.') + 1) == "voxels")
    {
      EXPECT_EQ(TrialsOfKernels().count(name.substr(0, name.find('.'))), 1U) << name;
      continue;
    }
    for (const auto & [role, what] : GetKernelRoles())
    {
      // The networks' test compares the two roles that run together; the test of global statistics compares the roles
      // that make no image, between guards too.
      if (!m_Device->GetKernels().Find(name, role) || role == &KernelSet::head || role == &KernelSet::piped ||
          role == &KernelSet::summarize)
      {
        continue;
      }
      // The family's own test compares kernels that need a solution.
      if (role == &KernelSet::compute && m_Device->GetKernels().Find(name, &KernelSet::summarize))
      {
        continue;
      }
      // Blocks that a device holds are joined in the test of watersheds: the host joins them without a kernel.
      if (name == "watershed join")
      {
        continue;
      }
      const auto trial = TrialsOfKernels().find(name);
      ASSERT_NE(trial, TrialsOfKernels().end()) << "no trial of the kernel " << name;
      std::mt19937 random(71);
      KernelTrials trials(conformance, random);
      trial->second(trials, role);
      const std::string kernel = KernelRegistry::Describe(name, role);
      EXPECT_EQ(conformance.GetCompared().count(kernel), 1U) << "the trial runs another kernel than " << kernel;
      if (HasFatalFailure())
      {
        return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fake, Conformance, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Conformance, testing::Values(Place::Cuda));

} // namespace
