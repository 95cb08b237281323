/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseConvolutionOracle_h
#define chunkwiseConvolutionOracle_h

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseOracle.h"

namespace chunkwise
{
namespace oracle
{

struct ConvolutionParts
{
  long double result{ 0 };
  /** The sum with absolute values. */
  long double magnitude{ 0 };
  /** By how much renormalization raised both. */
  long double factor{ 1 };
};

/** The sum over the kernel at `index`, times the sum of all weights by that of those inside in Renormalized mode. */
template <typename T>
ConvolutionParts
Convolve(const BufferView & image, const Coordinates & index, const ImageConvolutionOperation & operation)
{
  const ConvolutionKernel & kernel = *operation.kernel;
  const Coordinates         strides = DenseStrides(kernel.GetExtent());
  ConvolutionParts          parts;
  long double               whole = 0;
  long double               inside = 0;
  ForEachIndex(Box::FromExtent(kernel.GetExtent()), [&](const Coordinates & t) {
    Coordinates  tap{};
    std::int64_t at = 0;
    bool         there = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      at += t[a] * strides[a];
      tap[a] = index[a] + kernel.GetCenter()[a] - t[a];
      there = Look(tap[a], image.box.upper[a], operation.boundary.mode) && there;
    }
    const long double weight = kernel.GetWeights()[static_cast<std::size_t>(at)];
    whole += weight;
    if (!there && operation.boundary.mode == BoundaryMode::Renormalized)
    {
      return;
    }
    inside += weight;
    const long double value =
      there ? static_cast<long double>(At<T>(image, tap)) : static_cast<long double>(operation.boundary.constant);
    parts.result += weight * value;
    parts.magnitude += std::fabs(weight * value);
  });
  if (operation.boundary.mode == BoundaryMode::Renormalized)
  {
    parts.factor = std::fabs(whole / inside);
    parts.result *= whole / inside;
    parts.magnitude *= parts.factor;
  }
  return parts;
}

} // namespace oracle
} // namespace chunkwise

#endif
