/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBilateralOperation.h"
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"

using namespace chunkwise;

namespace
{

class Bilaterals : public KernelTest
{};

constexpr BoundaryMode BilateralModes[] = { BoundaryMode::Renormalized,
                                            BoundaryMode::ZeroFluxNeumann,
                                            BoundaryMode::Constant,
                                            BoundaryMode::Mirror,
                                            BoundaryMode::MirrorCenter };

std::shared_ptr<BilateralOperation>
RandomBilateral(std::mt19937 & random, BoundaryMode mode)
{
  const auto operation = std::make_shared<BilateralOperation>();
  for (const int a : RandomAxes(random))
  {
    const std::int64_t radius = random() % 4;
    operation->weights[a] = SampledGaussianWeights(0.5 + 0.25 * static_cast<double>(random() % 8), radius);
  }
  operation->rangeSigma = 5 + static_cast<double>(random() % 100);
  operation->boundary.mode = mode;
  operation->boundary.constant = 30.0;
  return operation;
}

TEST_P(Bilaterals, AreWhatTheirDefinitionSays)
{
  std::mt19937 random(351);
  for (int trial = 0; trial < 32; ++trial)
  {
    const BoundaryMode    mode = BilateralModes[trial % 5];
    const auto            operation = RandomBilateral(random, mode);
    const Coordinates     radius = operation->GetRadius();
    Trial<double, double> t(random, operation, RandomExtent(random, 9));
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      Box window{ at, at };
      for (int a = 0; a < MaxDimension; ++a)
      {
        window.lower[a] -= radius[a];
        window.upper[a] += radius[a] + 1;
      }
      long double weighted = 0;
      long double weights = 0;
      ForEachIndex(window, [&](const Coordinates & place) {
        Coordinates tap = place;
        bool        isThere = true;
        long double weight = 1;
        for (int a = 0; a < MaxDimension; ++a)
        {
          weight *= operation->weights[a].empty()
                      ? 1
                      : operation->weights[a][static_cast<std::size_t>(place[a] - window.lower[a])];
          isThere = oracle::Look(tap[a], t.request.image.upper[a], mode) && isThere;
        }
        if (!isThere && mode == BoundaryMode::Renormalized)
        {
          return;
        }
        const long double value = isThere ? At<double>(t.image, tap) : 30;
        const long double z = (value - At<double>(t.image, at)) / operation->rangeSigma;
        weight *= std::exp(-z * z / 2);
        weighted += weight * value;
        weights += weight;
      });
      ASSERT_NEAR(t.Result(at), static_cast<double>(weighted / weights), 1e-4)
        << operation->GetKey() << " at " << ToString(at);
    });
  }
}

TEST_P(Bilaterals, OfChunksHaveTheBitsOfTheWhole)
{
  std::mt19937 random(352);
  const auto   make = [&](int trial) { return RandomBilateral(random, BilateralModes[trial % 5]); };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 24, make);
  CompareBits<std::uint8_t, std::uint8_t>(random, GetManager(), GetBackend(), 12, make);
  CompareBits<std::int32_t, double>(random, GetManager(), GetBackend(), 12, make);
}

/** Constants keep their bits, edges far above the range's sigma stay, and NaN and infinities change no other voxel. */
TEST_P(Bilaterals, KeepConstantsAndEdgesAndLeaveOutWhatIsNoNumber)
{
  std::mt19937 random(353);
  const auto   operation = RandomBilateral(random, BoundaryMode::Renormalized);
  for (const int a : { 0, 1, 2 })
  {
    operation->weights[a] = SampledGaussianWeights(1.5, 2);
  }
  operation->rangeSigma = 3;
  Trial<float, float> t(random, operation, { { 12, 9, 5, 1, 1 } });
  ForEachIndex(t.request.image, [&](const Coordinates & at) { At<float>(t.image, at) = at[0] < 6 ? 0.1F : 1000.3F; });
  const float strange[] = { std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity() };
  At<float>(t.image, { { 2, 2, 2, 0, 0 } }) = strange[0];
  At<float>(t.image, { { 8, 2, 2, 0, 0 } }) = strange[1];
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  ForEachIndex(t.request.image, [&](const Coordinates & at) {
    const float before = At<float>(t.image, at);
    ASSERT_TRUE(t.Result(at) == before || (before != before && t.Result(at) != t.Result(at))) << ToString(at);
  });
}

INSTANTIATE_TEST_SUITE_P(Cpu, Bilaterals, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Bilaterals, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Bilaterals, testing::Values(Place::Cuda));

} // namespace
