/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaVaryingBlocks_h
#define chunkwiseCudaVaryingBlocks_h

#include "chunkwiseVaryingConvolutionOperation.h"

// A convolution that varies along three axes, in float, with nothing beyond the edge. A block is what a node along the
// first axis, and intervals between nodes along the two others, contribute to: a voxel is transformed for two nodes
// instead of for eight. Spectra of kernels are kept, if the budget has room for them.
namespace chunkwise
{

/** Whether an image is computed so, by image and kernels alone. The rest of this file is for such images alone. */
bool
HasVaryingBlocks(const VaryingConvolutionOperation & operation, const Coordinates & image, PixelType kind);

/** The bytes of scratch. */
std::size_t
ScratchOfVaryingBlocks(const VaryingConvolutionOperation & operation, const Coordinates & image);

/** The bytes of all tables, but for spectra of kernels. */
std::size_t
TableBytesOfVaryingBlocks(const VaryingConvolutionOperation & operation, const Coordinates & image);

/** Device memory traffic of the whole image in bytes. */
double
CostOfVaryingBlocks(const VaryingConvolutionOperation & operation, const Coordinates & image);

/** Adds the result to `sums`, dense numbers of the call's output box. */
void
RunVaryingBlocks(const KernelCall & call, float * sums);

} // namespace chunkwise

#endif
