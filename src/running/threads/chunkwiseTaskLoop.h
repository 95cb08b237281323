/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseTaskLoop_h
#define chunkwiseTaskLoop_h

#include "chunkwiseError.h"
#include "chunkwiseSchedules.h"
#include "chunkwiseThreads.h"

#include <algorithm>
#include <chrono>

namespace chunkwise
{

/** Hands tasks to runners from a rule that says what may run now. */
class TaskLoop
{
public:
  TaskLoop(RunContext & context, std::vector<std::unique_ptr<ChunkRunner>> & runners,
           std::vector<std::string> & warnings)
    : m_Context(context)
    , m_Runners(runners)
    , m_Warnings(warnings)
    , m_Finished(runners.size(), 0)
    , m_Failures(runners.size(), 0)
  {}

  /** Repeats until `done()`: a free runner asks `take(task)`, false if nothing may run now; runs `work(runner, task)`
   * unlocked; then `finish(task)`, or `putBack(task)` if the runner failed. take, finish, putBack and done are called
   * under one lock. */
  template <typename TTask, typename TTake, typename TWork, typename TFinish, typename TPutBack, typename TDone>
  void
  Loop(TTake && take, TWork && work, TFinish && finish, TPutBack && putBack, TDone && done)
  {
    const auto serveOne = [&](std::size_t r, std::unique_lock<std::mutex> & lock) {
      TTask task{};
      if (m_Context.ShouldStop())
      {
        throw Aborted();
      }
      if (!take(task))
      {
        m_Changed.wait_for(lock, std::chrono::milliseconds(5));
        return;
      }
      lock.unlock();
      std::exception_ptr failure;
      try
      {
        work(*m_Runners[r], task);
      }
      catch (...)
      {
        failure = std::current_exception();
      }
      lock.lock();
      if (!failure)
      {
        finish(task);
        ++m_Finished[r];
      }
      else
      {
        putBack(task);
        NoteFailure(r, failure);
      }
      m_Changed.notify_all();
    };
    const auto serve = [&](std::size_t r) {
      std::unique_lock<std::mutex> lock(m_Mutex);
      while (!m_Failure && !done() && m_Runners[r])
      {
        try
        {
          serveOne(r, lock);
        }
        catch (...)
        {
          m_Failure = m_Failure ? m_Failure : std::current_exception();
        }
      }
      m_Changed.notify_all();
    };
    RunTogether(m_Runners.size(), serve);
    if (m_Failure)
    {
      std::rethrow_exception(m_Failure);
    }
  }

  const std::vector<std::int64_t> &
  GetFinished() const
  {
    return m_Finished;
  }

private:
  /** The runner tries again, or is dropped, or else the run ends. */
  void
  NoteFailure(std::size_t r, const std::exception_ptr & failure)
  {
    const bool last =
      std::count_if(m_Runners.begin(), m_Runners.end(), [](const auto & x) { return x != nullptr; }) == 1;
    try
    {
      std::rethrow_exception(failure);
    }
    catch (const Error & error)
    {
      const auto * const ofDevice = dynamic_cast<const DeviceError *>(&error);
      if (ofDevice && ofDevice->kind == DeviceError::Kind::Failed && ++m_Failures[r] < MostFailures)
      {
        ++m_Context.counts.retries;
        return;
      }
      // Who has no memory may have it for smaller chunks.
      const bool isDrop = IsOutOfMemory(error) ? !m_Context.chunksCanShrink : ofDevice != nullptr;
      if (!last && isDrop)
      {
        m_Warnings.push_back(m_Runners[r]->GetName() + " dropped: " + error.what());
        m_Runners[r].reset();
        return;
      }
    }
    catch (...)
    {
      // Anything but a device's failure ends the run.
    }
    m_Failure = failure;
  }

  RunContext &                                m_Context;
  std::vector<std::unique_ptr<ChunkRunner>> & m_Runners;
  std::vector<std::string> &                  m_Warnings;
  std::vector<std::int64_t>                   m_Finished;
  std::vector<int>                            m_Failures;
  std::mutex                                  m_Mutex;
  std::condition_variable                     m_Changed;
  std::exception_ptr                          m_Failure;
};

void
RunTwoPass(RunContext & context, const Plan & plan, TaskLoop & loop);
/** `host` runs what takes more than a chunk, and ends the state. */
void
RunFixpoint(RunContext & context, const Plan & plan, TaskLoop & loop, ChunkRunner & host);

} // namespace chunkwise

#endif
