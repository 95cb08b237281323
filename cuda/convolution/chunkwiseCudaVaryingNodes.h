/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaVaryingNodes_h
#define chunkwiseCudaVaryingNodes_h

#include "chunkwiseVaryingConvolutionOperation.h"

// A convolution that varies along three axes, in float, with nothing beyond the edge: node after node, whose rows are
// weighted as they are read, or as they are added to the sums. Spectra of kernels are kept, if the budget has room for
// them.
namespace chunkwise
{

/** Whether an image is computed so, by image and kernels alone. The rest of this file is for such images alone. */
bool
HasVaryingNodes(const VaryingConvolutionOperation & operation, const Coordinates & image, PixelKind kind);

/** The bytes of scratch. */
std::size_t
ScratchOfVaryingNodes(const VaryingConvolutionOperation & operation, const Coordinates & image);

/** The bytes of all tables, but for spectra of kernels. */
std::size_t
TableBytesOfVaryingNodes(const VaryingConvolutionOperation & operation, const Coordinates & image);

/** Device memory traffic of the whole image in bytes. */
double
CostOfVaryingNodes(const VaryingConvolutionOperation & operation, const Coordinates & image);

/** Adds the result to `sums`, dense numbers of the call's output box. */
void
RunVaryingNodes(const KernelCall & call, float * sums);

} // namespace chunkwise

#endif
