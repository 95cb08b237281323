/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseBlockForest_h
#define chunkwiseBlockForest_h

#include "chunkwiseOperation.h"

#include <vector>

// Morphological reconstruction of an image in blocks that never meet in one memory: each block is contracted to a
// forest on its border, one step joins the forests and finds what the borders get, and each block is finished alone.

namespace chunkwise
{

class ReconstructionOperation;

/** The part of an image that a block covers: block i along each axis goes from cuts[axis][i] to cuts[axis][i + 1]. */
struct BlockCuts
{
  std::vector<std::int64_t> cuts[MaxDimension];
};

/** The part of a block that other blocks need: mask and state of the border voxels with neighbors in another block, and
 * the forest between them, without edges that cannot raise anything. A block has fewer than 2^32
 * voxels. `state` and `mask` are of one kind, cover the block and no more, and the state is nowhere beyond the mask.
 * Only `erosion`, `fullyConnected` and `spatialDimension` of the operation count. Throws ParameterError. */
Chunkwise_EXPORT ChunkState
ContractBlock(const ReconstructionOperation & operation, const BufferView & state, const BufferView & mask,
              const Box & image);

/** Joins all blocks' contractions, in the order of memory of the blocks, x fastest. Returns what each block's border
 * has in the reconstruction of the whole image; empty for a block whose border stays as it was. */
Chunkwise_EXPORT std::vector<ChunkState>
                 JoinBlocks(const ReconstructionOperation & operation, PixelType kind, const BlockCuts & cuts,
                            const std::vector<ChunkState> & contractions);

/** Gives the border of a block's state what JoinBlocks found. */
Chunkwise_EXPORT void
RaiseBorder(const ReconstructionOperation & operation, const ChunkState & border, const BufferView & state,
            const Box & image);

} // namespace chunkwise

#endif
