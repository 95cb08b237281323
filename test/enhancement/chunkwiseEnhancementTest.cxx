/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseEnhancementOperations.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseKernelTrial.h"

using namespace chunkwise;

namespace
{

constexpr BoundaryMode Modes[] = { BoundaryMode::Renormalized, BoundaryMode::ZeroFluxNeumann, BoundaryMode::Mirror };

/** The values that the window around a voxel sees, with the weights of their taps. */
template <typename T>
std::vector<std::pair<long double, long double>>
TapsOf(const BufferView & image, const Coordinates & index, const Coordinates & radius, BoundaryMode mode,
       const std::vector<double> * weights = nullptr)
{
  std::vector<std::pair<long double, long double>> taps;
  Box                                              window{ index, index };
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] -= radius[a];
    window.upper[a] += radius[a] + 1;
  }
  ForEachIndex(window, [&](const Coordinates & at) {
    long double weight = 1;
    Coordinates tap = at;
    bool        there = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      weight *= weights && !weights[a].empty()
                  ? static_cast<long double>(weights[a][static_cast<std::size_t>(at[a] - window.lower[a])])
                  : 1;
      there = oracle::Look(tap[a], image.box.upper[a], mode) && there;
    }
    if (there)
    {
      taps.emplace_back(static_cast<long double>(At<T>(image, tap)), weight);
    }
  });
  return taps;
}

class Enhancement : public KernelTest
{};

template <typename TOperation>
std::shared_ptr<TOperation>
BoxOf(std::mt19937 & random, BoundaryMode mode, std::int64_t largest)
{
  const auto operation = std::make_shared<TOperation>();
  for (const int a : RandomAxes(random))
  {
    operation->radius[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(largest + 1));
  }
  operation->boundary.mode = mode;
  return operation;
}

std::shared_ptr<TopHatOperation>
RandomTopHat(std::mt19937 & random, BoundaryMode mode, bool black)
{
  const auto operation = std::make_shared<TopHatOperation>();
  const auto first = BoxOf<ExtremumOperation>(random, mode, 3);
  const auto second = std::make_shared<ExtremumOperation>(*first);
  first->minimum = !black;
  second->minimum = black;
  operation->black = black;
  operation->first = first;
  operation->second = second;
  return operation;
}

TEST_P(Enhancement, TopHatsAreTheImageBesideItsOpeningOrClosing)
{
  std::mt19937 random(301);
  const auto   compare = [&](auto in, auto out) {
    using In = decltype(in);
    using Out = decltype(out);
    for (int trial = 0; trial < 12; ++trial)
    {
      const BoundaryMode mode = Modes[trial % 3];
      const bool         black = trial % 2 == 1;
      const auto         operation = RandomTopHat(random, mode, black);
      const Coordinates  radius = dynamic_cast<const ExtremumOperation &>(*operation->first).radius;
      Trial<In, Out>     t(random, operation, RandomExtent(random, 9));
      t.request.backend = GetBackend();
      t.Prepare(t.request.image);
      GetManager().Execute(t.request);
      std::vector<In> first;
      const auto      extremum = [&](const BufferView & image, const Coordinates & at, bool minimum) {
        auto taps = TapsOf<In>(image, at, radius, mode);
        std::sort(taps.begin(), taps.end());
        return static_cast<In>(minimum ? taps.front().first : taps.back().first);
      };
      ForEachIndex(t.request.image, [&](const Coordinates & at) { first.push_back(extremum(t.image, at, !black)); });
      const BufferView between = DenseView(first.data(), PixelTypeOf<In>(), t.request.image);
      ForEachIndex(t.request.image, [&](const Coordinates & at) {
        const auto        voxel = static_cast<long double>(At<In>(t.image, at));
        const auto        second = static_cast<long double>(extremum(between, at, black));
        const long double expected = black ? second - voxel : voxel - second;
        const auto        largest = static_cast<long double>(std::numeric_limits<Out>::max());
        ASSERT_EQ(t.Result(at), static_cast<Out>(std::min(expected, largest))) << trial << " at " << ToString(at);
        ASSERT_GE(t.Result(at), Out{ 0 });
      });
    }
  };
  compare(std::uint8_t{}, std::uint8_t{});
  compare(std::int8_t{}, std::int8_t{});
  compare(std::int16_t{}, float{});
  compare(double{}, double{});
}

std::shared_ptr<UnsharpOperation>
RandomUnsharp(std::mt19937 & random, BoundaryMode mode)
{
  const auto smoothing = std::make_shared<SeparableOperation>();
  for (const int a : RandomAxes(random))
  {
    smoothing->weights[a] = { 0.25, 0.5, 0.25 };
  }
  smoothing->boundary.mode = mode;
  const auto operation = std::make_shared<UnsharpOperation>();
  operation->smoothing = smoothing;
  operation->amount = 0.25 * static_cast<double>(random() % 8);
  operation->threshold = random() % 2 ? 0.0 : 10.0;
  return operation;
}

TEST_P(Enhancement, UnsharpMasksAreWhatTheirDefinitionSays)
{
  std::mt19937 random(302);
  for (int trial = 0; trial < 24; ++trial)
  {
    const BoundaryMode    mode = Modes[trial % 3];
    const auto            operation = RandomUnsharp(random, mode);
    Trial<double, double> t(random, operation, RandomExtent(random, 9));
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    Coordinates radius{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      radius[a] = operation->smoothing->weights[a].empty() ? 0 : 1;
    }
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      long double sum = 0;
      long double all = 0;
      for (const auto & [value, weight] : TapsOf<double>(t.image, at, radius, mode, operation->smoothing->weights))
      {
        sum += value * weight;
        all += weight;
      }
      const auto        voxel = static_cast<long double>(At<double>(t.image, at));
      const auto        threshold = static_cast<long double>(operation->threshold);
      const long double difference = voxel - sum / all;
      const long double beyond = std::max<long double>(std::fabs(difference) - threshold, 0);
      const auto expected = voxel + static_cast<long double>(operation->amount) * (difference > 0 ? beyond : -beyond);
      ASSERT_NEAR(t.Result(at), static_cast<double>(expected), 1e-10) << trial << " at " << ToString(at);
    });
  }
}

TEST_P(Enhancement, LocalNormalizationIsTheDeviationInUnitsOfTheStandardDeviation)
{
  std::mt19937 random(303);
  for (int trial = 0; trial < 24; ++trial)
  {
    const BoundaryMode mode = Modes[trial % 3];
    const auto         operation = BoxOf<LocalNormalizationOperation>(random, mode, 2);
    operation->least = trial % 4 == 3 ? 20 : 0;
    Trial<double, double> t(random, operation, RandomExtent(random, 9));
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      const auto  taps = TapsOf<double>(t.image, at, operation->radius, mode);
      const auto  n = static_cast<long double>(taps.size());
      long double mean = 0;
      long double squares = 0;
      for (const auto & tap : taps)
      {
        mean += tap.first / n;
      }
      for (const auto & tap : taps)
      {
        squares += (tap.first - mean) * (tap.first - mean) / n;
      }
      const auto        voxel = static_cast<long double>(At<double>(t.image, at));
      const long double unit = std::max(std::sqrt(squares), static_cast<long double>(operation->least));
      ASSERT_NEAR(t.Result(at), unit > 0 ? static_cast<double>((voxel - mean) / unit) : 0.0, 1e-9)
        << trial << " at " << ToString(at);
    });
  }
  const auto operation = BoxOf<LocalNormalizationOperation>(random, BoundaryMode::Renormalized, 3);
  Trial<std::uint8_t, std::uint8_t> t(random, operation, { { 9, 8, 7, 1, 1 } });
  std::fill(t.pixels.begin(), t.pixels.end(), std::uint8_t{ 200 });
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  ForEachIndex(t.request.image, [&](const Coordinates & at) { ASSERT_EQ(t.Result(at), 0) << ToString(at); });
}

TEST_P(Enhancement, OfChunksHasTheBitsOfTheWhole)
{
  std::mt19937 random(304);
  const auto   make = [&](int trial) -> std::shared_ptr<const Operation> {
    const BoundaryMode mode = Modes[random() % 3];
    switch (trial % 3)
    {
      case 0:
        return RandomTopHat(random, mode, random() % 2);
      case 1:
        return RandomUnsharp(random, mode);
      default:
        return BoxOf<LocalNormalizationOperation>(random, mode, 4);
    }
  };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 24, make);
  CompareBits<std::uint8_t, float>(random, GetManager(), GetBackend(), 12, make);
  CompareBits<std::int32_t, double>(random, GetManager(), GetBackend(), 12, make);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Enhancement, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Enhancement, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Enhancement, testing::Values(Place::Cuda));

} // namespace
