/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compares with SciPy where it defines the same filter: scipyValues.inc, written by scripts/scipy_values.py.
#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseVarianceOperation.h"

#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>

using namespace chunkwise;

namespace
{

// As in the script.
constexpr std::int64_t Radii[] = { 2, 1, 3 };
constexpr double       Sigmas[] = { 0.6, 0.9, 0.4 };
constexpr double       ConstantValue = 7;

template <typename TOperation>
std::shared_ptr<TOperation>
Box3(BoundaryMode mode)
{
  const auto operation = std::make_shared<TOperation>();
  for (int a = 0; a < 3; ++a)
  {
    operation->radius[a] = Radii[a];
  }
  operation->boundary = { mode, ConstantValue };
  return operation;
}

std::shared_ptr<Operation>
Extremum(BoundaryMode mode, bool minimum)
{
  const auto operation = Box3<ExtremumOperation>(mode);
  operation->minimum = minimum;
  return operation;
}

std::shared_ptr<Operation>
Two(const std::shared_ptr<Operation> & first, const std::shared_ptr<Operation> & second)
{
  const auto operation = std::make_shared<SequenceOperation>();
  operation->stages = { first, second };
  return operation;
}

std::shared_ptr<Operation>
StandardDeviation(BoundaryMode mode)
{
  const auto operation = Box3<VarianceOperation>(mode);
  operation->takesRoot = true;
  return operation;
}

std::shared_ptr<Operation>
Gaussian(BoundaryMode mode)
{
  const auto operation = std::make_shared<SeparableOperation>();
  for (int a = 0; a < 3; ++a)
  {
    double sum = 0;
    for (std::int64_t t = -Radii[a]; t <= Radii[a]; ++t)
    {
      operation->weights[a].push_back(std::exp(-0.5 * static_cast<double>(t * t) / (Sigmas[a] * Sigmas[a])));
      sum += operation->weights[a].back();
    }
    for (double & weight : operation->weights[a])
    {
      weight /= sum;
    }
  }
  operation->boundary = { mode, ConstantValue };
  return operation;
}

std::shared_ptr<Operation>
Convolution(BoundaryMode mode)
{
  const auto operation = Box3<ConvolutionOperation>(mode);
  const int  taps = (2 * Radii[0] + 1) * (2 * Radii[1] + 1) * (2 * Radii[2] + 1);
  for (int i = 1; i <= taps; ++i)
  {
    operation->weights.push_back(i * 7 % 11 - 4);
  }
  return operation;
}

std::shared_ptr<Operation>
MakeOperation(const std::string & name, BoundaryMode mode)
{
  const std::map<std::string, std::function<std::shared_ptr<Operation>()>> makers = {
    { "mean", [&] { return Box3<MeanOperation>(mode); } },
    { "gaussian", [&] { return Gaussian(mode); } },
    { "maximum", [&] { return Extremum(mode, false); } },
    { "minimum", [&] { return Extremum(mode, true); } },
    { "median", [&] { return Box3<RankOperation>(mode); } },
    { "opening", [&] { return Two(Extremum(mode, true), Extremum(mode, false)); } },
    { "closing", [&] { return Two(Extremum(mode, false), Extremum(mode, true)); } },
    { "standard_deviation", [&] { return StandardDeviation(mode); } },
    { "convolution", [&] { return Convolution(mode); } },
  };
  return makers.at(name)();
}

BoundaryMode
ModeOf(const std::string & name)
{
  for (const BoundaryMode mode : AllModes)
  {
    if (name == BoundaryModeName(mode))
    {
      return mode;
    }
  }
  throw std::out_of_range(name);
}

std::vector<double>
ReadValues(std::istream & line)
{
  return { std::istream_iterator<double>(line), std::istream_iterator<double>() };
}

class Scipy : public KernelTest
{};

} // namespace

TEST_P(Scipy, FiltersOfTheSameDefinitionGiveItsValues)
{
  std::istringstream file(
#include "scipyValues.inc"
  );
  std::string line;
  Coordinates extent = Coordinates::Filled(1);
  file >> extent[0] >> extent[1] >> extent[2] >> std::ws;
  const Box box = Box::FromExtent(extent);
  std::getline(file, line);
  std::istringstream  imageLine(line);
  std::vector<double> image = ReadValues(imageLine);
  ASSERT_EQ(static_cast<std::int64_t>(image.size()), box.NumberOfVoxels());
  int compared = 0;
  while (std::getline(file, line))
  {
    std::istringstream words(line);
    std::string        name;
    std::string        mode;
    words >> name >> mode;
    const std::vector<double> expected = ReadValues(words);
    ASSERT_EQ(expected.size(), image.size()) << line;
    std::vector<double> result(image.size());
    ExecutionRequest    request;
    request.operation = MakeOperation(name, ModeOf(mode));
    request.image = request.region = box;
    request.inputs.push_back(DenseView(image.data(), PixelType::Float64, box));
    request.output = DenseView(result.data(), PixelType::Float64, box);
    request.backend = GetBackend();
    GetManager().Execute(request);
    for (std::size_t i = 0; i < result.size(); ++i)
    {
      // Sums of up to 105 terms of at most 350.
      ASSERT_NEAR(result[i], expected[i], 1e-10) << name << " " << mode << " voxel " << i;
    }
    ++compared;
  }
  EXPECT_GE(compared, 36);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Scipy, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Cuda, Scipy, testing::Values(Place::Cuda));
