/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuTeam_h
#define chunkwiseCpuTeam_h

#include "chunkwiseExecutor.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace chunkwise
{

/** Indices that workers take in ascending order, whenever they have time. */
class SharedIndices
{
public:
  explicit SharedIndices(std::int64_t count)
    : m_Count(count)
  {}

  /** Calls body(index) until none is left; others may still be at theirs. */
  template <typename TBody>
  void
  Take(TBody && body)
  {
    for (std::int64_t i = m_Next++; i < m_Count; i = m_Next++)
    {
      const Guard guard{ m_Done };
      body(i);
    }
  }
  bool
  AreDone() const
  {
    return m_Done.load(std::memory_order_acquire) == m_Count;
  }

private:
  /** Counts however the body ends: nobody may wait for one that failed. */
  struct Guard
  {
    std::atomic<std::int64_t> & done;
    ~Guard() { done.fetch_add(1, std::memory_order_release); }
  };

  const std::int64_t        m_Count;
  std::atomic<std::int64_t> m_Next{ 0 };
  std::atomic<std::int64_t> m_Done{ 0 };
};

/** Workers who each have separate work, and help the others once they have none left: large work stays in the cache of
 * one worker, and none is idle at the end. */
class Team
{
public:
  explicit Team(unsigned int workers)
    : m_Jobs(workers)
  {}

  /** The executor of a worker's own work. Bodies may be called by all workers. */
  class Member : public Executor
  {
  public:
    Member(Team & team, unsigned int worker)
      : m_Team(team)
      , m_Worker(worker)
    {}
    unsigned int
    GetConcurrency() const override
    {
      return static_cast<unsigned int>(m_Team.m_Jobs.size());
    }
    void
    ParallelFor(std::int64_t count, const std::function<void(std::int64_t, unsigned int)> & body) override
    {
      m_Team.Run(count, body, m_Worker);
    }

  private:
    Team &             m_Team;
    const unsigned int m_Worker;
  };

  /** Helps others until all they took is done. */
  void
  Help(unsigned int worker, const SharedIndices & taken)
  {
    while (!taken.AreDone())
    {
      bool helped = false;
      for (std::size_t i = 1; i < m_Jobs.size(); ++i)
      {
        helped = HelpWith(m_Jobs[(worker + i) % m_Jobs.size()], worker) || helped;
      }
      if (!helped)
      {
        std::this_thread::yield();
      }
    }
  }

private:
  using Body = std::function<void(std::int64_t, unsigned int)>;

  struct alignas(64) Job
  {
    std::mutex         mutex;
    const Body *       body{ nullptr };
    std::int64_t       count{ 0 };
    std::int64_t       next{ 0 };
    int                helpers{ 0 };
    std::exception_ptr failure;
    /** A hint whether an index is left: idle workers look often. */
    std::atomic<bool> open{ false };

    /** The next index, or -1. */
    std::int64_t
    Take()
    {
      if (next >= count)
      {
        open.store(false, std::memory_order_relaxed);
        return -1;
      }
      return next++;
    }
  };

  /** With the job's lock held, but not while a body runs. */
  static void
  Work(Job & job, unsigned int worker, std::unique_lock<std::mutex> & lock)
  {
    for (std::int64_t index = job.Take(); index >= 0; index = job.Take())
    {
      const Body & body = *job.body;
      lock.unlock();
      std::exception_ptr failure;
      try
      {
        body(index, worker);
      }
      catch (...)
      {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure)
      {
        job.failure = failure;
        job.next = job.count;
      }
    }
  }

  static bool
  HelpWith(Job & job, unsigned int worker)
  {
    if (!job.open.load(std::memory_order_relaxed))
    {
      return false;
    }
    std::unique_lock<std::mutex> lock(job.mutex);
    if (job.next >= job.count)
    {
      return false;
    }
    ++job.helpers;
    Work(job, worker, lock);
    --job.helpers;
    return true;
  }

  void
  Run(std::int64_t count, const Body & body, unsigned int worker)
  {
    Job &                        job = m_Jobs[worker];
    std::unique_lock<std::mutex> lock(job.mutex);
    job.body = &body;
    job.count = count;
    job.next = 0;
    job.failure = nullptr;
    job.open.store(count > 1, std::memory_order_relaxed);
    Work(job, worker, lock);
    while (job.helpers > 0)
    {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    if (job.failure)
    {
      std::rethrow_exception(job.failure);
    }
  }

  std::vector<Job> m_Jobs;
};

} // namespace chunkwise

#endif
