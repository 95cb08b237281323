/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseDefinitionTrial.h"

using namespace chunkwise;

namespace
{

class Convolutions : public KernelTest
{};

std::shared_ptr<ConvolutionOperation>
RandomConvolution(std::mt19937 & random, int largestRadius)
{
  const auto  operation = std::make_shared<ConvolutionOperation>();
  std::size_t taps = 1;
  for (const int a : RandomAxes(random))
  {
    operation->radius[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(largestRadius + 1));
    taps *= static_cast<std::size_t>(2 * operation->radius[a] + 1);
  }
  double sum = 0;
  for (std::size_t t = 0; t < taps; ++t)
  {
    operation->weights.push_back(0.1 + static_cast<double>(random() % 1000) / 1000);
    sum += operation->weights.back();
  }
  if (random() % 3 == 0 && taps > 1)
  {
    operation->weights[taps / 3] -= sum; // a derivative of some kind
  }
  operation->boundary.mode = AllModes[random() % 6];
  operation->boundary.constant = static_cast<double>(random() % 100);
  return operation;
}

/** The result at `index` and the sum of the absolute terms, straight from the definition. */
template <typename T>
std::pair<long double, long double>
Convolve(const BufferView & image, const Coordinates & index, const ConvolutionOperation & operation)
{
  Box window{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] = index[a] - operation.radius[a];
    window.upper[a] = index[a] + operation.radius[a] + 1;
  }
  long double all = 0;
  long double inside = 0;
  long double sum = 0;
  long double magnitude = 0;
  long double absolute = 0;
  std::size_t tapNumber = 0;
  const auto  center = static_cast<long double>(At<T>(image, index));
  ForEachIndex(window, [&](Coordinates tap) {
    const long double weight = operation.weights[tapNumber++];
    bool              there = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      there = oracle::Look(tap[a], image.box.upper[a], operation.boundary.mode) && there;
    }
    all += weight;
    absolute += std::fabs(weight);
    if (there || operation.boundary.mode == BoundaryMode::Constant)
    {
      const long double value =
        there ? static_cast<long double>(At<T>(image, tap)) : static_cast<long double>(operation.boundary.constant);
      inside += weight;
      sum += weight * value;
      magnitude += std::fabs(weight) * (std::fabs(value) + std::fabs(center));
    }
  });
  if (std::fabs(all) <= 1e-9L * absolute)
  {
    return { sum - inside * center, magnitude };
  }
  const long double norm = all / inside;
  return { sum * norm, magnitude * std::fabs(norm) };
}

TEST_P(Convolutions, AreWhatTheirDefinitionSays)
{
  std::mt19937 random(91);
  CompareSumsWithDefinition(
    random,
    GetManager(),
    GetBackend(),
    1400,
    [&](int trial) { return RandomConvolution(random, trial % 4 == 0 ? 5 : 2); },
    [](auto pixel, const BufferView & image, const Coordinates & index, const auto & operation) {
      return Convolve<decltype(pixel)>(image, index, operation);
    });
}

TEST_P(Convolutions, OfChunksHaveTheBitsOfTheWholeOnTheCpu)
{
  std::mt19937 random(92);
  const auto   compare = [&](auto in, auto out, int trials) {
    CompareBits<decltype(in), decltype(out)>(random, GetManager(), GetBackend(), trials, [&](int trial) {
      return RandomConvolution(random, trial % 3 == 0 ? 6 : 3);
    });
  };
  compare(float{}, float{}, 60);
  compare(double{}, double{}, 20);
  compare(std::uint8_t{}, std::uint8_t{}, 20);
  compare(std::int16_t{}, float{}, 20);
  compare(std::uint32_t{}, double{}, 20);
}

TEST_P(Convolutions, ADerivativeOfAConstantIsExactlyZeroUpToTheEdge)
{
  std::mt19937 random(93);
  const auto   operation = std::make_shared<ConvolutionOperation>();
  operation->radius = { { 1, 1, 0, 0, 0 } };
  operation->weights = { -0.1, 0, 0.1, -0.2, 0, 0.2, -0.1, 0, 0.1 };
  Trial<float, float> t(random, operation, { { 9, 8, 3, 1, 1 } });
  std::fill(t.pixels.begin(), t.pixels.end(), 1e6F + 0.25F);
  t.request.backend = GetBackend();
  t.Prepare(t.request.image);
  GetManager().Execute(t.request);
  ForEachIndex(t.request.region, [&](const Coordinates & index) { ASSERT_EQ(t.Result(index), 0.0F); });
}

TEST(ConvolutionOperation, BadParametersAreNamed)
{
  ConvolutionOperation operation;
  const auto           message = [&] { return ValidationMessage(operation, { { 10, 10, 10, 1, 1 } }); };
  operation.radius[0] = 1;
  operation.weights = { 1, 2 };
  EXPECT_NE(message().find("2 weights"), std::string::npos);
  operation.weights = { 1, 2, 3 };
  EXPECT_EQ(message(), "");
  operation.weights = { -1, 1, 3 };
  EXPECT_NE(message().find("renormalized"), std::string::npos);
  operation.boundary.mode = BoundaryMode::Mirror;
  EXPECT_EQ(message(), "");
  operation.weights[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(message().find("finite"), std::string::npos);
  operation.radius = { { 20, 20, 20, 0, 0 } };
  EXPECT_NE(message().find("4096"), std::string::npos);
  operation.radius[0] = -1;
  EXPECT_NE(message().find("-1"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Convolutions, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, Convolutions, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, Convolutions, testing::Values(Place::Cuda));

} // namespace
