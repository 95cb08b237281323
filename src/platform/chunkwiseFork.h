/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFork_h
#define chunkwiseFork_h

#include "ChunkwiseExport.h"

#include <atomic>
#include <thread>

namespace chunkwise
{

/** How many forks lie between the process that first asked and this one. A forked child lacks its parent's
 * threads, and locks that these held stay closed: code that keeps threads or locks checks this number before it uses
 * them, and if the number has changed leaves them where they are and makes others. 0 for ever on systems that do not
 * fork. */
Chunkwise_EXPORT unsigned int
GetForkCount();

/** Guards the moment in which something is looked up that a fork may have made useless. A fork opens it: who held it in
 * the parent is not here. */
class SpinFlag
{
public:
  void
  Lock()
  {
    // Held by nobody: 0. Else the number of forks at that time, plus 1.
    const unsigned int mine = GetForkCount() + 1;
    unsigned int       holder = 0;
    while (!m_Holder.compare_exchange_weak(holder, mine))
    {
      // A lock that a thread of the parent left closed counts as open.
      if (holder == mine)
      {
        holder = 0;
        std::this_thread::yield();
      }
    }
  }
  void
  Unlock()
  {
    m_Holder = 0;
  }

private:
  std::atomic<unsigned int> m_Holder{ 0 };
};

/** Holds a SpinFlag. */
class SpinLock
{
public:
  explicit SpinLock(SpinFlag & flag)
    : m_Flag(flag)
  {
    m_Flag.Lock();
  }
  ~SpinLock() { m_Flag.Unlock(); }
  SpinLock(const SpinLock &) = delete;
  SpinLock &
  operator=(const SpinLock &) = delete;

private:
  SpinFlag & m_Flag;
};

} // namespace chunkwise

#endif
