/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseExecutor.h"

#include "chunkwiseFork.h"
#include "chunkwiseHostMemory.h"
#include "chunkwiseThreads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>

namespace chunkwise
{

Executor::~Executor() = default;

namespace
{

/** A pool whose threads sleep between calls. Concurrent calls take turns. It has fewer threads where the system starts
 * no more. A call does not wait for threads that wake after its last index was taken. */
class ThreadPool
{
public:
  explicit ThreadPool(unsigned int concurrency)
  {
    unsigned int worker = 1;
    while (worker < concurrency && m_Threads.Start([this, worker] { Work(worker); }))
    {
      ++worker;
    }
  }

  ~ThreadPool()
  {
    {
      const std::lock_guard<std::mutex> lock(m_Mutex);
      m_Stop = true;
    }
    m_Wake.notify_all();
    m_Threads.Join();
  }

  unsigned int
  GetConcurrency() const
  {
    return static_cast<unsigned int>(m_Threads.GetSize()) + 1;
  }

  void
  ParallelFor(std::int64_t count, const std::function<void(std::int64_t, unsigned int)> & body)
  {
    const std::lock_guard<std::mutex> turn(m_Turn);
    {
      const std::lock_guard<std::mutex> lock(m_Mutex);
      m_Body = &body;
      m_Count = count;
      m_Next = 0;
      m_Failure = nullptr;
      ++m_Generation;
    }
    if (count > 1)
    {
      m_Wake.notify_all();
    }
    TakeIndices(0);
    std::unique_lock<std::mutex> lock(m_Mutex);
    m_Done.wait(lock, [this] { return m_Busy == 0; });
    m_Body = nullptr;
    if (m_Failure)
    {
      std::rethrow_exception(m_Failure);
    }
  }

private:
  void
  TakeIndices(unsigned int worker)
  {
    for (;;)
    {
      const std::int64_t index = m_Next.fetch_add(1);
      if (index >= m_Count)
      {
        return;
      }
      try
      {
        (*m_Body)(index, worker);
      }
      catch (...)
      {
        const std::lock_guard<std::mutex> lock(m_Mutex);
        if (!m_Failure)
        {
          m_Failure = std::current_exception();
        }
        m_Next = m_Count;
        return;
      }
    }
  }

  void
  Work(unsigned int worker)
  {
    std::uint64_t seen = 0;
    for (;;)
    {
      {
        std::unique_lock<std::mutex> lock(m_Mutex);
        m_Wake.wait(lock, [&] { return m_Stop || (m_Generation != seen && m_Body); });
        if (m_Stop)
        {
          return;
        }
        seen = m_Generation;
        ++m_Busy;
      }
      TakeIndices(worker);
      const std::lock_guard<std::mutex> lock(m_Mutex);
      if (--m_Busy == 0)
      {
        m_Done.notify_one();
      }
    }
  }

  JoinedThreads                                           m_Threads;
  std::mutex                                              m_Turn;
  std::mutex                                              m_Mutex;
  std::condition_variable                                 m_Wake;
  std::condition_variable                                 m_Done;
  const std::function<void(std::int64_t, unsigned int)> * m_Body{ nullptr };
  std::int64_t                                            m_Count{ 0 };
  std::atomic<std::int64_t>                               m_Next{ 0 };
  unsigned int                                            m_Busy{ 0 };
  std::uint64_t                                           m_Generation{ 0 };
  std::exception_ptr                                      m_Failure;
  bool                                                    m_Stop{ false };
};

/** A pool that is made anew in a forked child. */
class ThreadExecutor : public Executor
{
public:
  explicit ThreadExecutor(unsigned int concurrency)
    : m_Forks(GetForkCount())
    , m_Pool(std::make_unique<ThreadPool>(concurrency))
    , m_Concurrency(m_Pool->GetConcurrency())
  {}

  ~ThreadExecutor() override
  {
    if (m_Forks != GetForkCount())
    {
      LeaveBehind();
    }
  }

  unsigned int
  GetConcurrency() const override
  {
    return m_Concurrency;
  }

  void
  ParallelFor(std::int64_t count, const std::function<void(std::int64_t, unsigned int)> & body) override
  {
    GetPool().ParallelFor(count, body);
  }

private:
  ThreadPool &
  GetPool()
  {
    const SpinLock lock(m_Lock);
    if (m_Forks != GetForkCount())
    {
      LeaveBehind();
      m_Pool = std::make_unique<ThreadPool>(m_Concurrency);
      m_Forks = GetForkCount();
    }
    return *m_Pool;
  }

  /** Its threads are not here to be joined. */
  void
  LeaveBehind()
  {
    (void)m_Pool.release();
  }

  SpinFlag                    m_Lock;
  unsigned int                m_Forks;
  std::unique_ptr<ThreadPool> m_Pool;
  const unsigned int          m_Concurrency; ///< threads of the first pool, with the caller
};

} // namespace

std::unique_ptr<Executor>
MakeThreadExecutor(unsigned int concurrency)
{
  if (concurrency == 0)
  {
    concurrency = GetNumberOfProcessors();
  }
  return std::unique_ptr<Executor>(new ThreadExecutor(concurrency));
}

} // namespace chunkwise
