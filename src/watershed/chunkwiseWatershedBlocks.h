/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWatershedBlocks_h
#define chunkwiseWatershedBlocks_h

#include "chunkwiseExecutor.h"
#include "chunkwiseManager.h"
#include "chunkwiseSpool.h"
#include "chunkwiseWatershedSummary.h"

#include <memory>
#include <string>
#include <vector>

namespace chunkwise
{

/** Joins the blocks of an image, whole planes of its slowest axis, which come in ascending order.
 *
 * After each block it keeps the forest of all blocks so far, reduced to the block's last plane: the least edges that
 * join the trees of this plane's voxels, as a summary has them. The voxels of both planes where two blocks meet have a
 * tree, a marker or a minimum by then; the spool keeps it. After the last block the labels follow, from the last block
 * to the first. */
class WatershedBlocks
{
public:
  /** The memory that joining takes. */
  struct Memory
  {
    /** Edges that are sorted at a time; 0: as few as may be. */
    std::uint64_t edges{ 0 };
    /** Hidden minima that are kept: least voxels of trees that reach a face. 0: all. */
    std::uint64_t minima{ 0 };
  };

  /** `axis`: the slowest one. `operation.isSmallBlock` holds for all blocks. */
  static std::shared_ptr<WatershedBlocks>
  Create(const WatershedOperation & operation, int axis, std::vector<Box> blocks, const Memory & memory,
         const std::string & spoolFolder);
  virtual ~WatershedBlocks();

  /** The same with markers and `operation.isSmallBlock`, joined by a device, which keeps all summaries until the last
   * one has come (WatershedJoinOperation). Throws what Manager::AllocateOnDevice throws. */
  static std::shared_ptr<WatershedBlocks>
  CreateOnDevice(Manager & manager, int device, const Budgets & budgets, const WatershedOperation & operation, int axis,
                 std::vector<Box> blocks);
  /** Bytes of the device's memory: `held` beside each block, `joining` when none is there. */
  struct BytesOnDevice
  {
    std::uint64_t held{ 0 };
    std::uint64_t joining{ 0 };
  };
  /** For blocks of so many planes. UINT64_MAX: a device cannot join so many. */
  static BytesOnDevice
  GetBytesOnDevice(const WatershedOperation & operation, int axis, std::int64_t planes);
  /** The bytes of host memory meanwhile: the summary of a block, or its labels. */
  static std::uint64_t
  GetBytesBesideDevice(const WatershedOperation & operation, int axis);

  /** Whether summaries of such blocks, of which `block` is as large as any, have numbers of 32 bits. */
  static bool
  AreSmall(const WatershedOperation & operation, int axis, const Box & block);
  /** The bytes of host memory at a time, the summary of a block included, without hidden minima. `areThin`: blocks have
   * one plane. */
  static std::uint64_t
  GetBytes(const WatershedOperation & operation, int axis, bool areThin, std::uint64_t edgesAtOnce);
  /** Bytes of a hidden minimum. */
  static std::uint64_t
  GetBytesOfHidden(const WatershedOperation & operation)
  {
    return operation.isSmallBlock ? 20 : 32;
  }

  /** Adds the next block. The summary is that of an operation with `isBlock`. */
  virtual void
  Add(ChunkState && summary, Executor & executor) = 0;
  /** Without markers: the hidden minima so far. */
  virtual std::uint64_t
  GetNumberOfHidden() const = 0;
  /** After all blocks, with at most `mostMinima` hidden minima: finds the labels of all voxels where blocks meet.
   * Throws Error if there are more minima than the output's kind has labels. */
  virtual void
  Solve() = 0;
  virtual std::shared_ptr<const WatershedOutside>
  GetOutside(std::size_t block) const = 0;
  virtual std::uint64_t
  GetBytesWritten() const = 0;
};

} // namespace chunkwise

#endif
