/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseArena.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

namespace chunkwise
{

struct Arena::Impl
{
  struct Kept
  {
    void * memory;
    bool   isIdle; ///< since the peak was reset
  };

  std::string      name;
  std::string      budgetName;
  AllocateFunction allocate;
  FreeFunction     free;

  mutable std::mutex                      mutex;
  std::size_t                             budget{ 0 };
  std::size_t                             used{ 0 };
  std::size_t                             held{ 0 };
  std::size_t                             peak{ 0 };
  std::unordered_map<void *, std::size_t> blocks;
  /** By their size. */
  std::multimap<std::size_t, Kept> kept;
  std::size_t                      idle{ 0 }; ///< of kept blocks, the idle ones

  /** The kept block that one of so many bytes becomes. A much larger one would hold memory that the budget promised to
   * others. */
  std::multimap<std::size_t, Kept>::const_iterator
  FindKept(std::size_t bytes) const
  {
    const auto found = kept.lower_bound(bytes);
    return found != kept.end() && found->first <= bytes + bytes / 4 ? found : kept.end();
  }

  void
  GiveBack(std::multimap<std::size_t, Kept>::iterator block) noexcept
  {
    free(block->second.memory);
    held -= block->first;
    idle -= block->second.isIdle ? block->first : 0;
    kept.erase(block);
  }

  /** Gives kept blocks back, largest first, until `bytes` more fit under `limit`. */
  void
  MakeRoom(std::size_t bytes, std::size_t limit) noexcept
  {
    while (!kept.empty() && held + bytes > limit)
    {
      GiveBack(std::prev(kept.end()));
    }
  }
};

Arena::Arena(std::string name, std::string budgetName, AllocateFunction allocate, FreeFunction free)
  : m_Impl(new Impl)
{
  m_Impl->name = std::move(name);
  m_Impl->budgetName = std::move(budgetName);
  m_Impl->allocate = std::move(allocate);
  m_Impl->free = std::move(free);
}

Arena::~Arena()
{
  Trim();
}

void
Arena::SetBudget(std::size_t bytes)
{
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  m_Impl->budget = bytes;
  if (bytes)
  {
    m_Impl->MakeRoom(0, bytes);
  }
}

std::size_t
Arena::GetBudget() const
{
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  return m_Impl->budget;
}

void *
Arena::Acquire(std::size_t bytes, std::size_t limit)
{
  bytes = SizeOfBlock(bytes);
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  if (m_Impl->budget && (limit == 0 || m_Impl->budget < limit))
  {
    limit = m_Impl->budget;
  }
  if (limit == 0)
  {
    limit = static_cast<std::size_t>(-1);
  }
  if (bytes > limit || m_Impl->used > limit - bytes)
  {
    throw BudgetError(m_Impl->name + ": " + std::to_string(bytes) + " bytes do not fit beside " +
                        std::to_string(m_Impl->used) + " in use under the " + m_Impl->budgetName + " budget of " +
                        std::to_string(limit) + " bytes",
                      m_Impl->used + bytes,
                      limit);
  }
  const auto found = m_Impl->FindKept(bytes);
  void *     memory = nullptr;
  if (found != m_Impl->kept.end() && m_Impl->used + found->first <= limit)
  {
    bytes = found->first;
    memory = found->second.memory;
    m_Impl->idle -= found->second.isIdle ? bytes : 0;
    m_Impl->kept.erase(found);
    m_Impl->held -= bytes;
    m_Impl->MakeRoom(bytes, limit);
  }
  else
  {
    m_Impl->MakeRoom(bytes, limit);
    try
    {
      memory = m_Impl->allocate(bytes);
    }
    catch (...)
    {
      if (m_Impl->kept.empty())
      {
        throw;
      }
      m_Impl->MakeRoom(bytes, 0);
      memory = m_Impl->allocate(bytes);
    }
  }
  m_Impl->blocks[memory] = bytes;
  m_Impl->used += bytes;
  m_Impl->held += bytes;
  m_Impl->peak = std::max(m_Impl->peak, m_Impl->held - m_Impl->idle);
  return memory;
}

void
Arena::Release(void * block) noexcept
{
  if (!block)
  {
    return;
  }
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  const auto                        found = m_Impl->blocks.find(block);
  if (found == m_Impl->blocks.end())
  {
    return;
  }
  m_Impl->used -= found->second;
  m_Impl->kept.emplace(found->second, Impl::Kept{ block, false });
  m_Impl->blocks.erase(found);
  if (m_Impl->budget)
  {
    m_Impl->MakeRoom(0, m_Impl->budget);
  }
}

void
Arena::Trim() noexcept
{
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  while (!m_Impl->kept.empty())
  {
    m_Impl->GiveBack(m_Impl->kept.begin());
  }
}

std::size_t
Arena::GetBytesInUse() const
{
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  return m_Impl->used;
}

std::size_t
Arena::GetBytesHeld() const
{
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  return m_Impl->held;
}

std::size_t
Arena::GetBytesHeldWith(std::size_t bytes) const
{
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  return m_Impl->held + (m_Impl->FindKept(bytes) != m_Impl->kept.end() ? 0 : bytes);
}

std::size_t
Arena::GetPeak() const
{
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  return m_Impl->peak;
}

void
Arena::ResetPeak()
{
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  m_Impl->idle = 0;
  for (auto & block : m_Impl->kept)
  {
    block.second.isIdle = true;
    m_Impl->idle += block.first;
  }
  m_Impl->peak = m_Impl->held - m_Impl->idle;
}

} // namespace chunkwise
