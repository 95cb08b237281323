/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuVariance_h
#define chunkwiseCpuVariance_h

#include "chunkwiseOperation.h"

#include <functional>

namespace chunkwise
{

/** Runs the kernel "variance", or variances of a FootprintOperation that has sides. */
void
RunVariance(const KernelCall & call);

std::size_t
ScratchOfVariance(const Operation & operation, const ChunkShape & shape);

/** The same for the part of each tile that is wanted; all else of the output stays as it is. */
void
RunVarianceOf(const KernelCall & call, const std::function<Box(const Box & tile)> & part);

} // namespace chunkwise

#endif
