/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFakeDevice.h"
#include "chunkwiseFilters.h"
#include "chunkwiseKernelTrial.h"
#include "chunkwiseManager.h"
#include "chunkwiseRequiredParameters.h"
#include "chunkwiseStatistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

// Images whose pixels have components, side by side in memory: a run over all of them gives each the bits that it has
// alone.

using namespace chunkwise;

namespace
{

constexpr int AxisOfComponents = MaxDimension - 1;

using ComponentsTest = KernelTest;

/** A view of pixels with their components side by side; component c is at index c of the last axis. */
BufferView
Interleaved(void * data, PixelType kind, Box box, std::int64_t components)
{
  BufferView view = DenseView(data, kind, box);
  for (int a = 0; a < AxisOfComponents; ++a)
  {
    view.stride[a] *= components;
  }
  view.box.upper[AxisOfComponents] = components;
  view.stride[AxisOfComponents] = 1;
  return view;
}

/** Component `c` alone, as a dense image. */
std::vector<unsigned char>
ComponentOf(const std::vector<unsigned char> & pixels, std::int64_t c, std::int64_t components, PixelType kind)
{
  const std::size_t          size = PixelSize(kind);
  const auto                 step = static_cast<std::size_t>(components) * size;
  std::vector<unsigned char> one;
  for (std::size_t at = static_cast<std::size_t>(c) * size; at < pixels.size(); at += step)
  {
    one.insert(one.end(),
               pixels.begin() + static_cast<std::ptrdiff_t>(at),
               pixels.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
  return one;
}

std::vector<unsigned char>
RandomPixels(std::mt19937 & random, std::int64_t count, PixelType kind)
{
  std::vector<unsigned char> pixels(static_cast<std::size_t>(count) * PixelSize(kind));
  DispatchPixelType(kind, [&](auto pixel) {
    for (std::int64_t i = 0; i < count; ++i)
    {
      const auto value = static_cast<decltype(pixel)>(random() % 200);
      std::memcpy(pixels.data() + static_cast<std::size_t>(i) * sizeof(value), &value, sizeof(value));
    }
  });
  return pixels;
}

/** The case that is compared. */
struct Case
{
  PixelType kind{ PixelType::UInt8 };
  /** A further input that says what windows see of all components, if it is not empty. */
  std::string  domain;
  std::int64_t components{ 3 };
  Coordinates  extent{ { 21, 13, 9, 1, 1 } };
  /** Texts of parameters. */
  std::vector<std::pair<std::string, std::string>> parameters;
  std::size_t                                      deviceBudget{ 600000 };
  std::size_t                                      hostBudget{ 0 };
  /** Then components that are transformed together differ from each alone, within a bound. */
  bool isThroughTransforms{ false };
};

/** The error in parts of the largest value. */
double
TransformError(PixelType kind)
{
  return kind == PixelType::Float64 ? 1e-11 : 1e-4;
}

/** The bits, or numbers to a part of the largest. */
bool
AreEqual(const std::vector<unsigned char> & a, const std::vector<unsigned char> & b, PixelType kind, double error)
{
  if (a == b || error == 0)
  {
    return a == b;
  }
  return DispatchPixelType(kind, [&](auto pixel) {
    using T = decltype(pixel);
    std::vector<T> one(a.size() / sizeof(T));
    std::vector<T> other(one.size());
    std::memcpy(one.data(), a.data(), a.size());
    std::memcpy(other.data(), b.data(), a.size());
    double largest = 0;
    double difference = std::is_integral<T>::value ? -1 : 0;
    bool   areNan = true;
    for (std::size_t i = 0; i < one.size(); ++i)
    {
      const auto x = static_cast<double>(one[i]);
      const auto y = static_cast<double>(other[i]);
      areNan = areNan && std::isnan(x) == std::isnan(y);
      largest = std::isnan(x) ? largest : std::max(largest, std::abs(x));
      difference =
        std::isnan(x - y) ? difference : std::max(difference, std::abs(x - y) - (std::is_integral<T>::value ? 1 : 0));
    }
    return areNan && difference <= error * largest;
  });
}

/** Runs a filter over all components at once and over each alone. */
void
CompareFilter(std::mt19937 & random, Manager & manager, BackendChoice backend, const FilterDescription & filter,
              const Case & what)
{
  const PixelType     kind = what.kind;
  const std::string & domain = what.domain;
  const std::int64_t  components = what.components;
  FilterImage         image;
  image.dimension = 3;
  image.extent = what.extent;
  image.inputKind = kind;
  image.outputKind = GetDefaultOutputKind(filter, kind);
  for (const auto & input : filter.additionalInputs)
  {
    if (input.required)
    {
      image.additionalInputs.push_back(input.name);
    }
  }
  FilterParameters parameters = RequiredParameters(filter);
  if (!domain.empty())
  {
    image.additionalInputs.push_back(domain);
    if (IsFloatingPoint(kind) && filter.FindParameter("IgnoreNaN"))
    {
      parameters.Set("IgnoreNaN", true);
    }
  }
  if (filter.name == "entropy")
  {
    parameters.Set("Range", std::vector<double>{ 0, 200 });
  }
  for (const auto & parameter : what.parameters)
  {
    parameters.Set(parameter.first, ParseParameter(*filter.FindParameter(parameter.first), parameter.second));
  }
  const Box  box = Box::FromExtent(image.extent);
  const auto operationOfOne = MakeFilterOperation(filter.name, parameters, image);
  image.extent[AxisOfComponents] = components;
  const auto operation = MakeFilterOperation(filter.name, parameters, image);
  if (backend == BackendChoice::CUDA && !operation->GetObjectionToDevices().empty())
  {
    return;
  }
  std::vector<PixelType> kinds(static_cast<std::size_t>(operation->GetNumberOfInputs()), kind);
  if (!domain.empty())
  {
    kinds.back() = domain == "MaskImage" ? PixelType::UInt8 : PixelType::Float32;
  }

  ExecutionRequest request;
  request.operation = operation;
  request.backend = backend;
  request.stagingThreads = 2;
  const std::int64_t                      voxels = box.NumberOfVoxels();
  std::vector<std::vector<unsigned char>> inputs;
  request.image = box;
  request.image.upper[AxisOfComponents] = components;
  const OutputGrid * const grid = operationOfOne->GetOutputGrid();
  const Box                result = grid ? Box::FromExtent(grid->GetExtent(box.Extents())) : box;
  const std::int64_t       resultVoxels = result.NumberOfVoxels();
  request.region = result;
  request.region.upper[AxisOfComponents] = components;
  for (const PixelType each : kinds)
  {
    inputs.push_back(RandomPixels(random, voxels * components, each));
    request.inputs.push_back(Interleaved(inputs.back().data(), each, box, components));
  }
  if (!domain.empty())
  {
    // One for all components.
    inputs.back() = RandomPixels(random, voxels, kinds.back());
    for (std::size_t i = 0; i < inputs.back().size(); i += 3 * PixelSize(kinds.back()))
    {
      std::memset(&inputs.back()[i], 0, std::min<std::size_t>(PixelSize(kinds.back()), inputs.back().size() - i));
    }
    request.inputs.back() = DenseView(inputs.back().data(), kinds.back(), box);
    request.inputs.back().box.upper[AxisOfComponents] = components;
    request.inputs.back().stride[AxisOfComponents] = 0;
  }
  std::vector<unsigned char> together(static_cast<std::size_t>(resultVoxels * components) * PixelSize(image.outputKind),
                                      77);
  request.output = Interleaved(together.data(), image.outputKind, result, components);
  request.budgets.device = what.deviceBudget;
  request.budgets.host = what.hostBudget;
  manager.Execute(request);

  for (std::int64_t c = 0; c < components; ++c)
  {
    ExecutionRequest                        alone = request;
    std::vector<std::vector<unsigned char>> ones;
    alone.operation = operationOfOne;
    alone.image = box;
    alone.region = result;
    for (std::size_t i = 0; i < inputs.size(); ++i)
    {
      const bool isShared = !domain.empty() && i + 1 == inputs.size();
      ones.push_back(isShared ? inputs[i] : ComponentOf(inputs[i], c, components, kinds[i]));
      alone.inputs[i] = DenseView(ones.back().data(), kinds[i], box);
    }
    std::vector<unsigned char> one(static_cast<std::size_t>(resultVoxels) * PixelSize(image.outputKind), 78);
    alone.output = DenseView(one.data(), image.outputKind, result);
    manager.Execute(alone);
    EXPECT_TRUE(AreEqual(one,
                         ComponentOf(together, c, components, image.outputKind),
                         image.outputKind,
                         what.isThroughTransforms ? TransformError(image.outputKind) : 0))
      << filter.name << " of " << PixelTypeName(kind) << ", component " << c << ' ' << domain;
  }
}

} // namespace

TEST_P(ComponentsTest, EveryFilterGivesEachComponentWhatItHasAlone)
{
  std::mt19937 random(22);
  for (const FilterDescription & filter : GetFilters())
  {
    // A network's channels are not independent, and labels are of whole voxels.
    if (!filter.takesComponents)
    {
      continue;
    }
    for (const PixelType kind : { PixelType::UInt8, PixelType::Int16, PixelType::Float32, PixelType::Float64 })
    {
      SCOPED_TRACE(filter.name + " " + PixelTypeName(kind));
      Case whole;
      whole.kind = kind;
      whole.isThroughTransforms =
        GetParam() == Place::Cuda && (filter.name == "convolve-varying" || filter.name == "convolve-image");
      // Ten iterations, each with the halo and the six numbers of a tensor.
      whole.deviceBudget = filter.name == "coherence-diffusion" ? 2000000 : whole.deviceBudget;
      CompareFilter(random, GetManager(), GetBackend(), filter, whole);
      for (const InputDescription & input : filter.additionalInputs)
      {
        const bool isMask = input.name == "MaskImage";
        if (!input.required && (isMask || input.name == "WeightImage"))
        {
          Case inDomain = whole;
          inDomain.domain = input.name;
          CompareFilter(random, GetManager(), GetBackend(), filter, inDomain);
        }
      }
    }
  }
}

TEST_P(ComponentsTest, ShortAndLongWindowsGiveEachComponentWhatItHasAlone)
{
  // Rows that hold components side by side are cut in other places than rows of one.
  std::mt19937 random(24);
  int          number = 0;
  const auto   compare = [&](const char * name, const char * parameter, const char * value) {
    for (const char * const boundary :
         { "renormalized", "zero-flux", "constant", "mirror", "mirror-center", "periodic" })
    {
      for (const std::int64_t components : { 3, 4, 5 })
      {
        for (const PixelType kind : { PixelType::UInt8, PixelType::Float32 })
        {
          // Devices take components apart: that there is all there is to see, in a part of the cases.
          if (GetParam() == Place::Fake && ++number % 11 != 0)
          {
            continue;
          }
          SCOPED_TRACE(std::string(name) + " " + value + " " + boundary + " of " + std::to_string(components));
          Case what;
          what.kind = kind;
          what.components = components;
          what.extent = { { components == 3 ? 360 : 37, 7, 6, 1, 1 } };
          what.parameters = { { parameter, value }, { "BoundaryCondition", boundary } };
          what.deviceBudget = 6000000;
          what.hostBudget = components == 4 ? 3000000 : 0;
          CompareFilter(random, GetManager(), GetBackend(), GetFilter(name), what);
        }
      }
    }
  };
  for (const char * const radius : { "1", "2,1,1", "2", "0,2,1", "3,0,6", "7,5,2" })
  {
    for (const char * const name : { "mean", "maximum", "opening", "range", "median" })
    {
      compare(name, "Radius", radius);
    }
  }
  compare("gaussian", "Sigma", "0.7,2,1.5");
  compare("highpass", "Sigma", "1.2");
}

TEST_P(ComponentsTest, StatisticsOfOneComponentAreThoseOfItAlone)
{
  constexpr std::int64_t     Components = 3;
  std::mt19937               random(23);
  const Box                  box = Box::FromExtent({ { 2100, 5, 3, 1, 1 } });
  std::vector<unsigned char> pixels = RandomPixels(random, box.NumberOfVoxels() * Components, PixelType::UInt8);
  const BufferView           all = Interleaved(pixels.data(), PixelType::UInt8, box, Components);
  BufferView                 second = all;
  second.data = static_cast<unsigned char *>(all.data) + 1;
  second.box = box;
  std::vector<unsigned char> one = ComponentOf(pixels, 1, Components, PixelType::UInt8);
  StatisticsAccumulator      ofView(PixelType::UInt8);
  StatisticsAccumulator      ofOne(PixelType::UInt8);
  ofView.Add(second, box);
  ofOne.Add(DenseView(one.data(), PixelType::UInt8, box), box);
  EXPECT_EQ(ofView.Get().GetSum(), ofOne.Get().GetSum());
  EXPECT_EQ(ofView.Get().GetVariance(), ofOne.Get().GetVariance());
}

INSTANTIATE_TEST_SUITE_P(Cpu, ComponentsTest, testing::Values(Place::Cpu));
INSTANTIATE_TEST_SUITE_P(Fake, ComponentsTest, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, ComponentsTest, testing::Values(Place::Cuda));

TEST(PixelsOnDevices, AreCopiedAsTheyLie)
{
  // The host must not take components apart: that is the device's work where there is room for a piece.
  const auto   device = std::make_shared<FakeDevice>(FakeDevice::Options());
  Manager      manager({ device });
  std::mt19937 random(25);
  Case         what;
  what.extent = { { 301, 67, 31, 1, 1 } };
  what.parameters = { { "Radius", "1" } };
  what.deviceBudget = 0;
  for (const std::int64_t components : { 1, 3 })
  {
    what.components = components;
    CompareFilter(random, manager, BackendChoice::CUDA, GetFilter("mean"), what);
    EXPECT_EQ(device->CountCalls("CopyVoxels") > 0, components > 1);
  }
}
