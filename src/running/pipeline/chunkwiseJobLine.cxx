/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseJobLine.h"

namespace chunkwise
{

void
JobLine::Add(std::unique_ptr<Job> job)
{
  {
    const Lock lock(m_Mutex);
    m_Jobs.push_back(std::move(job));
  }
  m_Changed.notify_all();
}

void
JobLine::Close()
{
  {
    const Lock lock(m_Mutex);
    m_IsClosed = true;
  }
  m_Changed.notify_all();
}

Job *
JobLine::TakeLoad(Piece & piece)
{
  Lock lock(m_Mutex);
  this->WaitFor(lock, [this] {
    while (m_LoadJob < m_Jobs.size() && m_Jobs[m_LoadJob]->nextLoad == m_Jobs[m_LoadJob]->loads.size())
    {
      ++m_LoadJob;
    }
    return m_LoadJob < m_Jobs.size() || m_IsClosed;
  });
  if (m_LoadJob == m_Jobs.size())
  {
    return nullptr;
  }
  Job & job = *m_Jobs[m_LoadJob];
  piece = job.loads[job.nextLoad++];
  return &job;
}

Job *
JobLine::TakeStore(bool waits, Piece & piece, const std::function<void(const Job & job)> & begins)
{
  Lock       lock(m_Mutex);
  const auto found = [this] {
    while (m_StoreJob < m_Jobs.size() && m_Jobs[m_StoreJob]->nextStore == m_Jobs[m_StoreJob]->stores.size())
    {
      ++m_StoreJob;
    }
    return m_StoreJob < m_Jobs.size() && m_Jobs[m_StoreJob]->issued;
  };
  if (waits)
  {
    this->WaitFor(lock, [&] { return found() || (m_IsClosed && m_StoreJob == m_Jobs.size()); });
  }
  if (!found())
  {
    return nullptr;
  }
  Job & job = *m_Jobs[m_StoreJob];
  if (job.nextStore == 0)
  {
    begins(job);
  }
  piece = job.stores[job.nextStore++];
  return &job;
}

void
JobLine::Fail(std::exception_ptr failure)
{
  {
    const Lock lock(m_Mutex);
    if (!m_Failure)
    {
      m_Failure = std::move(failure);
    }
    m_Failed = true;
  }
  m_Changed.notify_all();
}

bool
JobLine::HasOnlyStopped() const
{
  try
  {
    if (m_Failure)
    {
      std::rethrow_exception(m_Failure);
    }
    return true;
  }
  catch (const Aborted &)
  {
    return true;
  }
  catch (...)
  {
    return false;
  }
}

} // namespace chunkwise
