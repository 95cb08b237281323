/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaCufftConvolution_h
#define chunkwiseCudaCufftConvolution_h

#include "chunkwiseOperation.h"

// The convolution of a chunk by cuFFT's transforms, as kernels have their functions. The caller has found that there is
// cuFFT.
namespace chunkwise
{

void
RunCufftConvolution(const KernelCall & call);
std::size_t
ScratchOfCufftConvolution(const Operation & operation, const ChunkShape & chunk);
double
CostOfCufftConvolution(const Operation & operation, const ChunkShape & chunk);

} // namespace chunkwise

#endif
