/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseGaussianKernel_h
#define itkChunkwiseGaussianKernel_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <vector>

namespace itk
{

/** The radius in voxels of a sampled Gaussian: ceil(cutoff * sigma), sigma in voxels; as a double, since it may be
 * larger than any image.
 * \ingroup Chunkwise */
Chunkwise_EXPORT double
ChunkwiseSampledGaussianRadius(double sigma, double cutoff);

/** The 2 radius + 1 weights exp(-x^2 / (2 sigma^2)) at the integers x, normalized to the sum 1 in double.
 * \ingroup Chunkwise */
Chunkwise_EXPORT std::vector<double>
                 ChunkwiseSampledGaussianWeights(double sigma, std::int64_t radius);

/** The weights of itk::GaussianOperator for a variance in square voxels: the discrete analog of the Gaussian, until the
 * sum of the weights is 1 - maximumError or there are more than maximumKernelWidth.
 * \ingroup Chunkwise */
Chunkwise_EXPORT std::vector<double>
ChunkwiseDiscreteGaussianWeights(double variance, double maximumError, unsigned int maximumKernelWidth);

} // namespace itk

#endif
