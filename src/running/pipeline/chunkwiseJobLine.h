/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseJobLine_h
#define chunkwiseJobLine_h

#include "chunkwiseError.h"
#include "chunkwisePipelineJob.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>

namespace chunkwise
{

/** The jobs of a pipeline in order, for its threads, which wait here for each other, and the first error of any. */
class JobLine
{
public:
  using Lock = std::unique_lock<std::mutex>;

  /** `mustStop`: the run ends for a reason from outside. */
  explicit JobLine(std::function<bool()> mustStop)
    : m_MustStop(std::move(mustStop))
  {}

  void
  Add(std::unique_ptr<Job> job);
  /** Nothing will be added any more. */
  void
  Close();
  /** The next piece to load; nullptr when there will be none. Throws Aborted as WaitFor. */
  Job *
  TakeLoad(Piece & piece);
  /** The next piece of a job whose kernel is enqueued; nullptr when there is none, or, with `waits`, when there will be
   * none. `begins` is called under the lock ahead of a job's first piece. */
  Job *
  TakeStore(bool waits, Piece & piece, const std::function<void(const Job & job)> & begins);

  /** Keeps the first error, with which all stop. */
  void
  Fail(std::exception_ptr failure);
  /** Calls the body, whose error fails the line. */
  template <typename TBody>
  void
  Guard(TBody && body) noexcept
  {
    try
    {
      body();
    }
    catch (...)
    {
      this->Fail(std::current_exception());
    }
  }
  bool
  HasFailed() const
  {
    return m_Failed;
  }
  bool
  MustStop() const
  {
    return m_Failed || m_MustStop();
  }
  /** To be asked when all threads have ended. */
  std::exception_ptr
  GetFailure() const
  {
    return m_Failure;
  }
  /** The same: nothing, or no more than a stop, ended the line. */
  bool
  HasOnlyStopped() const;

  Lock
  Acquire()
  {
    return Lock(m_Mutex);
  }
  void
  Notify()
  {
    m_Changed.notify_all();
  }
  /** Waits until `ready`, which is called under the lock; throws Aborted if the run ends before that. */
  template <typename TCondition>
  void
  WaitFor(Lock & lock, TCondition && ready)
  {
    while (!ready())
    {
      if (this->MustStop())
      {
        throw Aborted();
      }
      // A stop of the whole run has no separate signal here.
      m_Changed.wait_for(lock, std::chrono::milliseconds(5));
    }
  }

  // Under the lock, or in the thread that adds, or when all threads have ended:
  std::size_t
  GetSize() const
  {
    return m_Jobs.size();
  }
  bool
  IsClosed() const
  {
    return m_IsClosed;
  }
  Job &
  At(std::size_t number) const
  {
    return *m_Jobs[number];
  }

private:
  const std::function<bool()>       m_MustStop;
  std::mutex                        m_Mutex;
  std::condition_variable           m_Changed;
  std::vector<std::unique_ptr<Job>> m_Jobs;
  std::size_t                       m_LoadJob{ 0 };
  std::size_t                       m_StoreJob{ 0 };
  bool                              m_IsClosed{ false };
  std::atomic<bool>                 m_Failed{ false };
  std::exception_ptr                m_Failure;
};

} // namespace chunkwise

#endif
