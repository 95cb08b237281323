/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseResourceCache.h"

#include <condition_variable>
#include <list>
#include <map>
#include <mutex>

namespace chunkwise
{

struct ResourceCache::Impl
{
  struct Slot
  {
    Entry                            entry;
    bool                             ready{ false };
    std::list<std::string>::iterator use;
  };

  mutable std::mutex          mutex;
  std::condition_variable     made;
  std::size_t                 capacity{ 0 };
  std::size_t                 bytes{ 0 };
  std::map<std::string, Slot> slots;
  /** Keys, the most recently used first. */
  std::list<std::string> uses;

  void
  Erase(std::map<std::string, Slot>::iterator slot)
  {
    bytes -= slot->second.entry.bytes;
    uses.erase(slot->second.use);
    slots.erase(slot);
  }

  void
  Shrink()
  {
    for (auto use = uses.end(); bytes > capacity && use != uses.begin();)
    {
      --use;
      const auto slot = slots.find(*use);
      if (slot->second.ready)
      {
        ++use;
        Erase(slot);
      }
    }
  }
};

ResourceCache::ResourceCache(std::size_t capacity)
  : m_Impl(new Impl)
{
  m_Impl->capacity = capacity;
}

ResourceCache::~ResourceCache() = default;

std::shared_ptr<void>
ResourceCache::GetOrMake(const std::string & key, const std::function<Entry()> & make)
{
  std::unique_lock<std::mutex> lock(m_Impl->mutex);
  for (;;)
  {
    const auto found = m_Impl->slots.find(key);
    if (found == m_Impl->slots.end())
    {
      break;
    }
    if (found->second.ready)
    {
      m_Impl->uses.splice(m_Impl->uses.begin(), m_Impl->uses, found->second.use);
      return found->second.entry.value;
    }
    m_Impl->made.wait(lock);
  }
  m_Impl->uses.push_front(key);
  m_Impl->slots[key].use = m_Impl->uses.begin();
  lock.unlock();
  Entry entry;
  try
  {
    entry = make();
  }
  catch (...)
  {
    lock.lock();
    m_Impl->Erase(m_Impl->slots.find(key));
    m_Impl->made.notify_all();
    throw;
  }
  lock.lock();
  Impl::Slot & slot = m_Impl->slots[key];
  slot.entry = entry;
  slot.ready = true;
  m_Impl->bytes += entry.bytes;
  m_Impl->made.notify_all();
  if (entry.bytes > m_Impl->capacity)
  {
    // It would push out all the others, and then itself.
    m_Impl->Erase(m_Impl->slots.find(key));
  }
  m_Impl->Shrink();
  return entry.value;
}

std::size_t
ResourceCache::GetCapacity() const
{
  return m_Impl->capacity;
}

bool
ResourceCache::DropOldest()
{
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  for (auto use = m_Impl->uses.rbegin(); use != m_Impl->uses.rend(); ++use)
  {
    const auto slot = m_Impl->slots.find(*use);
    if (slot->second.ready && slot->second.entry.value.use_count() == 1)
    {
      m_Impl->Erase(slot);
      return true;
    }
  }
  return false;
}

std::size_t
ResourceCache::GetBytes() const
{
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  return m_Impl->bytes;
}

void
ResourceCache::Clear(const std::string & prefix)
{
  const std::lock_guard<std::mutex> lock(m_Impl->mutex);
  for (auto slot = m_Impl->slots.lower_bound(prefix);
       slot != m_Impl->slots.end() && slot->first.compare(0, prefix.size(), prefix) == 0;)
  {
    const auto next = std::next(slot);
    if (slot->second.ready)
    {
      m_Impl->Erase(slot);
    }
    slot = next;
  }
}

} // namespace chunkwise
