/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseBackgroundThread_h
#define chunkwiseBackgroundThread_h

#include "chunkwiseManager.h"
#include "chunkwiseStreamedWindow.h"

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace chunkwise
{

/** A thread beside the caller's that does one step for each part of an image, with so many parts in memory at a time as
 * there are slots: step i waits until the caller has released, or filled, slot i % slots. The thread and its caller
 * share it, so that it outlives a caller who had to leave a step that does not answer. If the system starts no thread,
 * the caller does the steps while it waits for them. */
class BackgroundThread
{
public:
  BackgroundThread(std::int64_t steps, int slots, bool slotsBeginFree, unsigned int threads);
  virtual ~BackgroundThread();

  /** The thread may do one step more. */
  void
  Admit();
  /** Until `count` steps are done. Throws what the thread threw, or Aborted. */
  void
  WaitFor(std::int64_t count, Monitor * monitor);
  /** Asks the thread to end. False if its source or sink does not let it. */
  bool
  Stop();
  double
  GetSeconds();
  /** The function of the thread. */
  void
  Work();
  /** There is no thread: WaitFor does the steps. */
  void
  WorkInCaller();

protected:
  virtual void
  Step(std::int64_t i) = 0;
  std::size_t
  SlotOf(std::int64_t i) const
  {
    return static_cast<std::size_t>(i) % m_Slots;
  }

  const std::int64_t m_Steps;
  const std::size_t  m_Slots;
  StreamedThreads    m_Threads;

private:
  /** Does the step that comes next, without the lock. Returns false, and keeps why, if it failed. */
  bool
  DoStep(std::unique_lock<std::mutex> & lock);

  std::mutex              m_Mutex;
  std::condition_variable m_Changed;
  std::int64_t            m_Ready;
  std::int64_t            m_Done{ 0 };
  bool                    m_Stop{ false };
  bool                    m_Ended{ false };
  bool                    m_InCaller{ false };
  double                  m_Seconds{ 0 };
  std::exception_ptr      m_Failure;
};

/** A BackgroundThread at work, until the end of the scope. */
class Running
{
public:
  explicit Running(std::shared_ptr<BackgroundThread> work);
  ~Running();
  Running(const Running &) = delete;
  Running &
  operator=(const Running &) = delete;

private:
  std::shared_ptr<BackgroundThread> m_Work;
  std::thread                       m_Thread;
};

} // namespace chunkwise

#endif
