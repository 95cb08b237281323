/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseConvolutionTrial_h
#define chunkwiseConvolutionTrial_h

#include "chunkwiseConvolutionOracle.h"
#include "chunkwiseKernelTrial.h"

#include <cmath>

// Convolutions beside their definition.
namespace chunkwise
{

inline Coordinates
RandomKernelExtent(std::mt19937 & random, int largest)
{
  Coordinates extent = Coordinates::Filled(1);
  for (const int a : RandomAxes(random))
  {
    extent[a] = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(largest));
  }
  return extent;
}

/** Positive weights, so that it can be renormalized, or of both signs; the center anywhere. */
inline std::shared_ptr<const ConvolutionKernel>
RandomKernel(std::mt19937 & random, const Coordinates & extent, bool positive)
{
  std::vector<double> weights(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()));
  for (double & weight : weights)
  {
    weight = (positive ? 0.1 : -0.6) + static_cast<double>(random()) / 4294967296.0;
    weight /= static_cast<double>(weights.size());
  }
  Coordinates center{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    center[a] =
      random() % 2 ? extent[a] / 2 : static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a]));
  }
  return std::make_shared<ConvolutionKernel>(extent, center, weights);
}

inline std::shared_ptr<ImageConvolutionOperation>
RandomConvolution(std::mt19937 & random, int largest, ConvolutionMethod method)
{
  const auto operation = std::make_shared<ImageConvolutionOperation>();
  operation->boundary.mode = AllModes[random() % 6];
  operation->boundary.constant = static_cast<double>(random() % 100);
  operation->kernel = RandomKernel(random, RandomKernelExtent(random, largest), operation->Renormalizes());
  operation->method = method;
  return operation;
}

template <typename TIn, typename TOut>
void
CompareWithOracle(std::mt19937 & random, Manager & manager, BackendChoice backend, ConvolutionMethod method,
                  TransformProvider provider = TransformProvider::Auto)
{
  for (int trial = 0; trial < 10; ++trial)
  {
    const auto operation = RandomConvolution(random, trial % 3 == 0 ? 12 : 5, method);
    operation->transforms = provider;
    Trial<TIn, TOut> t(random, operation, RandomExtent(random, trial % 3 == 0 ? 14 : 8));
    t.request.backend = backend;
    t.Prepare(RandomRegion(random, t.request.image.Extents()));
    t.request.budgets.device = trial % 2 ? 0 : 100000 + random() % 300000;
    t.request.budgets.host = random() % 2 ? 0 : 100000 + random() % 100000;
    try
    {
      manager.Execute(t.request);
    }
    catch (const BudgetError &)
    {
      continue; // the smallest chunk of this trial is larger
    }
    ASSERT_TRUE(t.IsContained());
    long double largest = std::fabs(operation->boundary.constant.ToDouble());
    for (const TIn pixel : t.pixels)
    {
      largest = std::max(largest, std::fabs(static_cast<long double>(pixel)));
    }
    const bool        isFloat = std::is_same<TOut, float>::value || std::is_same<TIn, float>::value || sizeof(TIn) <= 2;
    const long double epsilon = isFloat ? 6e-8L : 1.2e-16L;
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      const auto parts = oracle::Convolve<TIn>(t.image, index, *operation);
      // A transform's error follows the largest value of the chunk, that of a sum its own terms. Renormalization
      // raises both.
      const long double bound =
        epsilon * (operation->GetName() == "convolution.direct"
                     ? parts.magnitude * (operation->kernel->GetNumberOfTaps() + 8)
                     : 30 * (parts.magnitude + parts.factor * largest * operation->kernel->GetSumOfMagnitudes()));
      long double expected = parts.result;
      if (std::is_integral<TOut>::value)
      {
        expected = std::max(expected, static_cast<long double>(std::numeric_limits<TOut>::lowest()));
        expected = std::min(expected, static_cast<long double>(std::numeric_limits<TOut>::max()));
      }
      ASSERT_LE(std::fabs(static_cast<long double>(t.Result(index)) - expected),
                bound + (std::is_integral<TOut>::value ? 0.5L : 0.0L))
        << operation->GetKey() << " " << ToString(t.request.image) << " region " << ToString(t.request.region) << " at "
        << ToString(index) << ": " << +t.Result(index) << " and " << static_cast<double>(expected);
    });
  }
}

/** The relative L2 error at sampled voxels, one of `every`. */
template <typename TIn, typename TOut = TIn>
double
RelativeError(std::mt19937 & random, Manager & manager, BackendChoice backend, const Coordinates & image,
              const Coordinates & extent, BoundaryMode mode, TransformProvider provider = TransformProvider::Auto,
              unsigned int every = 37)
{
  const auto operation = std::make_shared<ImageConvolutionOperation>();
  operation->kernel = RandomKernel(random, extent, true);
  operation->method = ConvolutionMethod::FFT;
  operation->transforms = provider;
  operation->boundary.mode = mode;
  operation->boundary.constant = 3;
  Trial<TIn, TOut> t(random, operation, image);
  t.request.backend = backend;
  t.Prepare(t.request.image);
  manager.Execute(t.request);
  long double error = 0;
  long double norm = 0;
  ForEachIndex(t.request.region, [&](const Coordinates & index) {
    if (random() % every == 0)
    {
      const long double expected = oracle::Convolve<TIn>(t.image, index, *operation).result;
      error += std::pow(static_cast<long double>(t.Result(index)) - expected, 2);
      norm += expected * expected;
    }
  });
  return std::sqrt(static_cast<double>(error / norm));
}

} // namespace chunkwise

#endif
