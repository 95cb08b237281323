/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseThreads_h
#define chunkwiseThreads_h

#include "ChunkwiseExport.h"

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

// All threads are started here: a limit of processes or of address space may allow none.
namespace chunkwise
{

/** Starts a thread that the caller joins or detaches. Returns false, with `thread` as it was, if the system starts
 * none: the caller does the work itself, or does without. */
Chunkwise_EXPORT bool
StartThread(std::thread & thread, std::function<void()> work);

/** Threads that are joined at the end of the scope. */
class Chunkwise_EXPORT JoinedThreads
{
public:
  JoinedThreads() = default;
  ~JoinedThreads() { this->Join(); }
  JoinedThreads(const JoinedThreads &) = delete;
  JoinedThreads &
  operator=(const JoinedThreads &) = delete;

  /** Returns false if the system starts none. */
  bool
  Start(std::function<void()> work);
  void
  Join();
  std::size_t
  GetSize() const
  {
    return m_Threads.size();
  }

private:
  std::vector<std::thread> m_Threads;
};

/** Calls body(0) in the caller's thread and body(1) to body(count - 1) beside it, each in a separate thread. The
 * caller calls those for which the system starts no thread afterwards, one after the other. A body must not wait for
 * another. When all have ended, throws the error of the first of them that threw. */
Chunkwise_EXPORT void
RunTogether(std::size_t count, const std::function<void(std::size_t)> & body);

} // namespace chunkwise

#endif
