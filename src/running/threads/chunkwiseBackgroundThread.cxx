/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBackgroundThread.h"

#include "chunkwiseError.h"
#include "chunkwiseThreads.h"

#include <chrono>

namespace chunkwise
{

namespace
{

/** The thread that called the run looks so often whether it is to stop. */
constexpr std::chrono::milliseconds TimeBetweenLooks{ 20 };
/** A thread in a source or sink that does not answer is left alone after this time. */
constexpr std::chrono::seconds TimeToStop{ 1 };

} // namespace

BackgroundThread::BackgroundThread(std::int64_t steps, int slots, bool slotsBeginFree, unsigned int threads)
  : m_Steps(steps)
  , m_Slots(static_cast<std::size_t>(slots))
  , m_Threads(threads)
  , m_Ready(slotsBeginFree ? slots : 0)
{}

BackgroundThread::~BackgroundThread() = default;

void
BackgroundThread::Admit()
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  ++m_Ready;
  m_Changed.notify_all();
}

void
BackgroundThread::WaitFor(std::int64_t count, Monitor * monitor)
{
  std::unique_lock<std::mutex> lock(m_Mutex);
  while (m_Done < count && !m_Failure)
  {
    if (m_InCaller)
    {
      this->DoStep(lock);
    }
    else
    {
      m_Changed.wait_for(lock, TimeBetweenLooks);
    }
    if (monitor && m_Done < count && !m_Failure)
    {
      lock.unlock();
      const bool aborts = monitor->ShouldAbort();
      lock.lock();
      if (aborts)
      {
        throw Aborted();
      }
    }
  }
  if (m_Failure)
  {
    std::rethrow_exception(m_Failure);
  }
}

bool
BackgroundThread::Stop()
{
  m_Threads.stop = true;
  std::unique_lock<std::mutex> lock(m_Mutex);
  m_Stop = true;
  m_Changed.notify_all();
  return m_Changed.wait_for(lock, TimeToStop, [this] { return m_Ended; });
}

double
BackgroundThread::GetSeconds()
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  return m_Seconds;
}

void
BackgroundThread::WorkInCaller()
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_InCaller = true;
  m_Ended = true;
}

bool
BackgroundThread::DoStep(std::unique_lock<std::mutex> & lock)
{
  using Clock = std::chrono::steady_clock;
  const std::int64_t i = m_Done;
  lock.unlock();
  const auto         start = Clock::now();
  std::exception_ptr failure;
  try
  {
    this->Step(i);
  }
  catch (...)
  {
    failure = std::current_exception();
  }
  lock.lock();
  m_Seconds += std::chrono::duration<double>(Clock::now() - start).count();
  if (failure)
  {
    m_Failure = failure;
    return false;
  }
  ++m_Done;
  m_Changed.notify_all();
  return true;
}

void
BackgroundThread::Work()
{
  std::unique_lock<std::mutex> lock(m_Mutex);
  while (m_Done < m_Steps)
  {
    m_Changed.wait(lock, [this] { return m_Stop || m_Done < m_Ready; });
    if (m_Stop || !this->DoStep(lock))
    {
      break;
    }
  }
  m_Ended = true;
  m_Changed.notify_all();
}

Running::Running(std::shared_ptr<BackgroundThread> work)
  : m_Work(std::move(work))
{
  if (!StartThread(m_Thread, [shared = m_Work] { shared->Work(); }))
  {
    m_Work->WorkInCaller();
  }
}

Running::~Running()
{
  const bool hasEnded = m_Work->Stop();
  if (!m_Thread.joinable())
  {
    return;
  }
  if (hasEnded)
  {
    m_Thread.join();
  }
  else
  {
    m_Thread.detach();
  }
}

} // namespace chunkwise
