/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLabelBlocks_h
#define chunkwiseLabelBlocks_h

#include "chunkwiseExecutor.h"
#include "chunkwiseOperation.h"

#include <vector>

// Connected components of an image in blocks that never meet in one memory: each block is summarised, one step joins
// the summaries, and each block gets its labels alone. The operation is the table's "label", made for the whole image.

namespace chunkwise
{

/** Whether an operation finds components, which blocks can be joined by. */
Chunkwise_EXPORT bool
FindsComponents(const Operation & operation);

/** The summary of a block, whose voxels the view has: how many components begin in each row, and which
 * ones lie on its faces. Throws ParameterError if the operation finds no components. */
Chunkwise_EXPORT ChunkState
SummariseLabels(const Operation & operation, const BufferView & block, Executor & executor);

/** Joins the summaries of all blocks of the image. Returns for each what its labels are made of, and in `count` the
 * number of components. Throws Error if there are more than the output's kind has labels. */
Chunkwise_EXPORT std::vector<ChunkState>
JoinLabels(const Operation & operation, const std::vector<Box> & blocks, const std::vector<ChunkState> & summaries,
           std::uint64_t & count);

/** The labels of a block, from its voxels and what JoinLabels found for it. */
Chunkwise_EXPORT void
WriteLabels(const Operation & operation, const BufferView & block, const ChunkState & solution,
            const BufferView & labels, Executor & executor);

} // namespace chunkwise

#endif
