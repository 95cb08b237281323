/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSummedAreaTableCarry_h
#define chunkwiseSummedAreaTableCarry_h

#include "chunkwiseExecutor.h"
#include "chunkwiseSummedAreaTableOperation.h"

namespace chunkwise
{

/** The carry of a table of kind `output` behind `region`, which begins where the operation's own carry stands and has
 * the other summed axes from 0: one read of the region on the host, so that a request need not begin at the image's
 * first voxel. */
Chunkwise_EXPORT ChunkState
AdvanceCarry(const SummedAreaTableOperation & operation, const BufferView & input, PixelType output, const Box & region,
             Executor & executor);

} // namespace chunkwise

#endif
