/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseGaussianKernel.h"

#include "itkGaussianOperator.h"

#include <cmath>

namespace itk
{

double
ChunkwiseSampledGaussianRadius(double sigma, double cutoff)
{
  return std::ceil(cutoff * sigma);
}

std::vector<double>
ChunkwiseSampledGaussianWeights(double sigma, std::int64_t radius)
{
  std::vector<double> weights(static_cast<std::size_t>(2 * radius + 1));
  // From the tails inwards, smallest first, which keeps the sum accurate.
  double sum = 0.0;
  for (std::int64_t x = radius; x > 0; --x)
  {
    const double z = static_cast<double>(x) / sigma;
    const double weight = std::exp(-0.5 * z * z);
    weights[static_cast<std::size_t>(radius - x)] = weight;
    weights[static_cast<std::size_t>(radius + x)] = weight;
    sum += 2.0 * weight;
  }
  weights[static_cast<std::size_t>(radius)] = 1.0;
  sum += 1.0;
  for (double & weight : weights)
  {
    weight /= sum;
  }
  return weights;
}

std::vector<double>
ChunkwiseDiscreteGaussianWeights(double variance, double maximumError, unsigned int maximumKernelWidth)
{
  GaussianOperator<double, 1> gaussian;
  gaussian.SetDirection(0);
  gaussian.SetVariance(variance);
  gaussian.SetMaximumError(maximumError);
  gaussian.SetMaximumKernelWidth(maximumKernelWidth);
  gaussian.CreateDirectional();
  return std::vector<double>(gaussian.Begin(), gaussian.End());
}

} // namespace itk
