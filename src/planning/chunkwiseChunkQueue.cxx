/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseChunkQueue.h"

#include <algorithm>
#include <chrono>

namespace chunkwise
{

ChunkQueue::ChunkQueue(const std::vector<Chunk> & chunks, std::size_t workers, std::size_t participants, int sweepAxis)
  : m_Ranges(std::max<std::size_t>(workers, 1))
  , m_HasBegun(m_Ranges.size(), false)
  , m_Held(m_Ranges.size(), 0)
  , m_SweepAxis(sweepAxis)
  , m_Unfinished(chunks.size())
{
  if (sweepAxis >= 0)
  {
    m_PutBack.assign(chunks.begin(), chunks.end());
    m_Claims.assign(participants, 0);
    return;
  }
  for (std::size_t w = 0; w < participants; ++w)
  {
    const auto begin = static_cast<std::ptrdiff_t>(chunks.size() * w / participants);
    const auto end = static_cast<std::ptrdiff_t>(chunks.size() * (w + 1) / participants);
    m_Ranges[w].assign(chunks.begin() + begin, chunks.begin() + end);
  }
}

bool
ChunkQueue::Claim(std::size_t worker, Chunk & chunk, const std::function<bool()> & stop)
{
  std::unique_lock<std::mutex> lock(m_Mutex);
  for (;;)
  {
    if (m_Closed || m_Unfinished == 0 || stop())
    {
      return false;
    }
    std::deque<Chunk> & own = m_Ranges[worker];
    if (own.empty() && m_PutBack.empty())
    {
      std::deque<Chunk> & longest =
        *std::max_element(m_Ranges.begin(), m_Ranges.end(), [=](const auto & a, const auto & b) {
          return ToTake(a, worker) < ToTake(b, worker);
        });
      const auto first = static_cast<std::ptrdiff_t>(longest.size() - (ToTake(longest, worker) + 1) / 2);
      own.assign(longest.begin() + first, longest.end());
      longest.erase(longest.begin() + first, longest.end());
    }
    std::deque<Chunk> & source = own.empty() ? m_PutBack : own;
    if (!source.empty() && !m_Recalling && !IsEarly(worker))
    {
      chunk = source.front();
      source.pop_front();
      m_HasBegun[worker] = true;
      ++m_Held[worker];
      if (worker < m_Claims.size())
      {
        ++m_Claims[worker];
        m_Changed.notify_all();
      }
      return true;
    }
    // A worker's own failure has no signal here.
    m_Changed.wait_for(lock, std::chrono::milliseconds(2));
  }
}

std::size_t
ChunkQueue::ToTake(const std::deque<Chunk> & range, std::size_t worker) const
{
  const auto owner = static_cast<std::size_t>(&range - m_Ranges.data());
  const bool isKept = !m_HasBegun[owner] && m_Held[worker] > 0 && !range.empty();
  return range.size() - (isKept ? 1 : 0);
}

bool
ChunkQueue::IsEarly(std::size_t worker) const
{
  return worker < m_Claims.size() &&
         std::any_of(
           m_Claims.begin(), m_Claims.end(), [&](int claims) { return claims >= 0 && claims < m_Claims[worker]; });
}

void
ChunkQueue::Finish(std::size_t worker)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  --m_Unfinished;
  m_Claims.clear();
  Release(worker, 1);
}

void
ChunkQueue::PutBack(std::size_t worker, std::size_t claimed, const std::vector<Chunk> & chunks)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Unfinished += chunks.size();
  m_Unfinished -= claimed;
  m_PutBack.insert(m_PutBack.end(), chunks.begin(), chunks.end());
  if (m_SweepAxis >= 0 && !chunks.empty())
  {
    std::sort(m_PutBack.begin(), m_PutBack.end(), [this](const Chunk & a, const Chunk & b) {
      return a.outputBox.lower[m_SweepAxis] < b.outputBox.lower[m_SweepAxis];
    });
    // Workers that know of a pending recall hold no claims of a later one.
    m_Recalls += m_Recalling ? 0 : 1;
    m_Recalling = true;
    m_Claims.clear();
  }
  Release(worker, claimed);
}

void
ChunkQueue::Release(std::size_t worker, std::size_t claimed)
{
  m_Held[worker] -= claimed;
  m_Recalling = m_Recalling && std::any_of(m_Held.begin(), m_Held.end(), [](std::size_t held) { return held > 0; });
  m_Changed.notify_all();
}

void
ChunkQueue::Split(std::size_t worker, std::size_t more)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Unfinished += more - 1;
  m_Held[worker] += more - 1;
}

void
ChunkQueue::Leave(std::size_t worker)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_PutBack.insert(m_PutBack.end(), m_Ranges[worker].begin(), m_Ranges[worker].end());
  m_Ranges[worker].clear();
  if (worker < m_Claims.size())
  {
    m_Claims[worker] = -1;
  }
  m_Changed.notify_all();
}

void
ChunkQueue::Close()
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Closed = true;
  m_Changed.notify_all();
}

bool
ChunkQueue::IsFinished() const
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  return m_Unfinished == 0;
}

} // namespace chunkwise
