/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseKernelTrial.h"
#include "chunkwiseNonFlatExtremumOperation.h"

using namespace chunkwise;

namespace
{

class RollingBalls : public KernelTest
{};

std::shared_ptr<RollingBallOperation>
RandomRollingBall(std::mt19937 & random, bool subtracts)
{
  const auto operation = std::make_shared<RollingBallOperation>();
  for (const int a : RandomAxes(random))
  {
    operation->extremum.semiAxes[a] = 0.5 * static_cast<double>(random() % 11);
  }
  operation->extremum.height = static_cast<double>(random() % 120);
  operation->extremum.shape = random() % 2 ? StructuringShape::Ball : StructuringShape::Paraboloid;
  operation->erodesAlone = random() % 3 == 0;
  operation->subtracts = subtracts;
  return operation;
}

/** The erosion of numbers, or their dilation, offset by offset. */
std::vector<double>
OracleExtremum(std::vector<double> values, const Box & box, const NonFlatExtremumOperation & operation, bool dilates)
{
  const BufferView    image = DenseView(values.data(), PixelType::Float64, box);
  std::vector<double> result;
  ForEachIndex(box, [&](const Coordinates & at) {
    double found = std::numeric_limits<double>::infinity();
    ForEachIndex(box, [&](const Coordinates & tap) {
      double squares = 0;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const double part =
          tap[a] == at[a] ? 0.0 : std::abs(static_cast<double>(tap[a] - at[a])) / operation.semiAxes[a];
        squares = part > 1 ? std::numeric_limits<double>::infinity() : squares + part * part;
      }
      const bool isBall = operation.shape == StructuringShape::Ball;
      if (!(squares <= (isBall ? 1 + 1e-9 : MaxDimension)))
      {
        return;
      }
      const double height = operation.height * (isBall ? 1 - std::sqrt(std::max(1 - squares, 0.0)) : squares / 2);
      const double value = At<double>(image, tap);
      found = std::min(found, (dilates ? -value : value) + height);
    });
    result.push_back(dilates ? -found : found);
  });
  return result;
}

TEST_P(RollingBalls, AreWhatTheirDefinitionSays)
{
  std::mt19937 random(341);
  for (int trial = 0; trial < 24; ++trial)
  {
    const auto            operation = RandomRollingBall(random, trial % 2 != 0);
    Trial<double, double> t(random, operation, RandomExtent(random, 8));
    std::vector<double>   image;
    ForEachIndex(t.request.image, [&](const Coordinates & at) { image.push_back(At<double>(t.image, at)); });
    t.request.backend = GetBackend();
    t.Prepare(t.request.image);
    GetManager().Execute(t.request);
    std::vector<double> expected = OracleExtremum(image, t.request.image, operation->extremum, false);
    if (!operation->erodesAlone)
    {
      expected = OracleExtremum(expected, t.request.image, operation->extremum, true);
    }
    std::size_t i = 0;
    ForEachIndex(t.request.image, [&](const Coordinates & at) {
      const double background = expected[i];
      ASSERT_NEAR(t.Result(at), operation->subtracts ? image[i] - background : background, 1e-9)
        << operation->GetKey() << " at " << ToString(at);
      ++i;
    });
  }
}

TEST_P(RollingBalls, OfChunksHaveTheBitsOfTheWhole)
{
  std::mt19937 random(342);
  const auto   make = [&](int trial) { return RandomRollingBall(random, trial % 2 != 0); };
  CompareBits<float, float>(random, GetManager(), GetBackend(), 20, make);
  CompareBits<std::uint8_t, std::uint8_t>(random, GetManager(), GetBackend(), 12, make);
  CompareBits<std::int32_t, double>(random, GetManager(), GetBackend(), 12, make);
}

TEST_P(RollingBalls, LeaveNaNOut)
{
  std::mt19937 random(343);
  const auto   operation = std::make_shared<RollingBallOperation>();
  operation->extremum.semiAxes[0] = 2;
  operation->extremum.height = 2;
  Trial<float, float> t(random, operation, { { 6, 1, 1, 1, 1 } });
  const float         nan = std::numeric_limits<float>::quiet_NaN();
  const float         values[] = { nan, 5, 5, 5, 5, 5 };
  ForEachIndex(t.request.image, [&](const Coordinates & at) { At<float>(t.image, at) = values[at[0]]; });
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  // The next voxel holds the ball up at NaN.
  ForEachIndex(t.request.image, [&](const Coordinates & at) {
    ASSERT_NEAR(t.Result(at), at[0] == 0 ? 7 - std::sqrt(3.0) : 5, 1e-5) << ToString(at);
  });
}

INSTANTIATE_TEST_SUITE_P(Cpu, RollingBalls, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, RollingBalls, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, RollingBalls, testing::Values(Place::Cuda));

} // namespace
