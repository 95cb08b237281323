/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseChunkQueue_h
#define chunkwiseChunkQueue_h

#include "ChunkwiseExport.h"
#include "chunkwisePlanner.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace chunkwise
{

/** The chunks of a run, claimed by its workers.
 *
 * Each worker begins with a separate range, so that it meets neighbours in order and can keep their common halo; a
 * worker whose range is empty takes the back half of the longest other range. While it has unfinished chunks it takes
 * none from workers that have not begun their first one: a worker that loads ahead would leave them nothing. A worker
 * that fails puts back what it did not finish. */
class Chunkwise_EXPORT ChunkQueue
{
public:
  /** The first `participants` of `workers` workers begin with a range; the others may take chunks later. If `sweepAxis`
   * is not negative there are no ranges: chunks are claimed in order along this axis, by whoever asks. */
  ChunkQueue(const std::vector<Chunk> & chunks, std::size_t workers, std::size_t participants, int sweepAxis = -1);

  /** Claims the worker's next chunk. False when all are finished, the queue was closed, or `stop` says that the worker
   * itself has failed. Waits while all chunks are claimed, since some may still be put back. In a sweep workers begin
   * in turn: a worker that claims its first chunks waits until the others have as many, or have left, or a chunk is
   * finished. */
  bool
  Claim(std::size_t worker, Chunk & chunk, const std::function<bool()> & stop);
  /** The chunk's output is in place. */
  void
  Finish(std::size_t worker);
  /** Gives claimed chunks back, or the parts of them that were not finished: `claimed` chunks became `chunks`. In a
   * sweep all claims are recalled then, since a worker with later chunks could wait for these for ever. */
  void
  PutBack(std::size_t worker, std::size_t claimed, const std::vector<Chunk> & chunks);
  /** The number of recalls so far. A worker that claimed before the last recall puts all its unfinished chunks back;
   * until all have done so, nobody gets another. */
  int
  GetRecalls() const
  {
    return m_Recalls;
  }
  /** A claimed chunk became `more` chunks. */
  void
  Split(std::size_t worker, std::size_t more);
  /** The worker takes no more: others get its range. */
  void
  Leave(std::size_t worker);
  /** Claim returns false from now on. */
  void
  Close();

  bool
  IsFinished() const;

private:
  /** Under the lock: how many chunks of another's range the worker may take. */
  std::size_t
  ToTake(const std::deque<Chunk> & range, std::size_t worker) const;
  /** Under the lock: whether the worker has to wait for others at the beginning of a sweep. */
  bool
  IsEarly(std::size_t worker) const;
  /** Under the lock: so many claims of the worker have ended. */
  void
  Release(std::size_t worker, std::size_t claimed);

  mutable std::mutex             m_Mutex;
  std::condition_variable        m_Changed;
  std::vector<std::deque<Chunk>> m_Ranges;
  std::vector<bool>              m_HasBegun; ///< each worker
  std::vector<std::size_t>       m_Held;     ///< unfinished claims of each
  std::deque<Chunk>              m_PutBack;
  const int                      m_SweepAxis;
  std::size_t                    m_Unfinished{ 0 };
  std::vector<int>               m_Claims; ///< at the beginning of a sweep: claims of each worker; -1: it has left
  bool                           m_Recalling{ false };
  std::atomic<int>               m_Recalls{ 0 };
  bool                           m_Closed{ false };
};

} // namespace chunkwise

#endif
