/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseChunkQueue_h
#define chunkwiseChunkQueue_h

#include "chunkwisePlanner.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace chunkwise
{

/** The chunks of a run, claimed by its workers.
 *
 * Each worker begins with a range of its own, so that it meets neighbours in order and can keep their common halo; a
 * worker whose range is empty takes the back half of the longest other range. A worker that fails puts back what it did
 * not finish. */
class ChunkQueue
{
public:
  /** The first `participants` of `workers` workers begin with a range; the others may take chunks later. */
  ChunkQueue(const std::vector<Chunk> & chunks, std::size_t workers, std::size_t participants);

  /** The worker's next chunk. Waits while all chunks are claimed but some may still be put back; false when all are
   * finished, the queue was closed, or `stop` says that the worker itself has failed. */
  bool
  Claim(std::size_t worker, Chunk & chunk, const std::function<bool()> & stop);
  /** The chunk's output is in place. */
  void
  Finish();
  /** Gives claimed chunks back, whole or in parts that were not finished: `claimed` chunks became `chunks`. */
  void
  PutBack(std::size_t claimed, const std::vector<Chunk> & chunks);
  /** `more` chunks take the place of one claimed one. */
  void
  Split(std::size_t more);
  /** The worker takes no more: others get its range. */
  void
  Leave(std::size_t worker);
  /** Claim returns false from now on. */
  void
  Close();

  bool
  IsFinished() const;

private:
  mutable std::mutex             m_Mutex;
  std::condition_variable        m_Changed;
  std::vector<std::deque<Chunk>> m_Ranges;
  std::deque<Chunk>              m_PutBack;
  std::size_t                    m_Unfinished{ 0 };
  bool                           m_Closed{ false };
};

} // namespace chunkwise

#endif
