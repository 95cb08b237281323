/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseArena_h
#define chunkwiseArena_h

#include "ChunkwiseExport.h"
#include "chunkwiseRoundUp.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace chunkwise
{

/** Memory of one place (a device, pinned host memory, host scratch) under a budget.
 *
 * Freed blocks are kept for the next run and given back when the budget or the place needs them. The bytes that are
 * held, kept blocks included, never exceed the budget. Thread-safe. */
class Chunkwise_EXPORT Arena
{
public:
  using AllocateFunction = std::function<void *(std::size_t)>; ///< throws on failure
  using FreeFunction = std::function<void(void *)>;

  /** Messages say `name` for the memory ("device memory of X"), and `budgetName` for its budget ("device"). */
  Arena(std::string name, std::string budgetName, AllocateFunction allocate, FreeFunction free);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &
  operator=(const Arena &) = delete;

  /** 0: no limit. Kept blocks beyond the new budget are given back; blocks in use stay. */
  void
  SetBudget(std::size_t bytes);
  std::size_t
  GetBudget() const;

  /** The bytes of the budget that a block of so many bytes takes. */
  static std::size_t
  SizeOfBlock(std::size_t bytes)
  {
    return RoundUp(bytes > 0 ? bytes : 1);
  }
  /** A block of at least `bytes`, see SizeOfBlock. Throws BudgetError if the budget leaves no room, or what the
   * allocate function throws (after the kept blocks were given back and it failed again). `limit`: a tighter budget for
   * this call alone, 0: none. */
  void *
  Acquire(std::size_t bytes, std::size_t limit = 0);
  void
  Release(void * block) noexcept;
  /** Gives the kept blocks back. */
  void
  Trim() noexcept;

  std::size_t
  GetBytesInUse() const;
  /** In use and kept. */
  std::size_t
  GetBytesHeld() const;
  /** The bytes that would be held with one more block of so many bytes: a kept one may become it. */
  std::size_t
  GetBytesHeldWith(std::size_t bytes) const;
  /** The most that was held since the last reset, less what was kept then and has not been used since. */
  std::size_t
  GetPeak() const;
  void
  ResetPeak();

private:
  struct Impl;
  std::unique_ptr<Impl> m_Impl;
};

/** Owns a block of an arena. */
class ArenaBlock
{
public:
  ArenaBlock() = default;
  ArenaBlock(Arena & arena, std::size_t bytes, std::size_t limit = 0)
    : m_Arena(&arena)
    , m_Memory(bytes ? arena.Acquire(bytes, limit) : nullptr)
    , m_Bytes(bytes)
  {}
  ArenaBlock(ArenaBlock && other) noexcept
    : m_Arena(other.m_Arena)
    , m_Memory(other.m_Memory)
    , m_Bytes(other.m_Bytes)
  {
    other.m_Memory = nullptr;
  }
  ArenaBlock &
  operator=(ArenaBlock && other) noexcept
  {
    if (this != &other)
    {
      Reset();
      m_Arena = other.m_Arena;
      m_Memory = other.m_Memory;
      m_Bytes = other.m_Bytes;
      other.m_Memory = nullptr;
    }
    return *this;
  }
  ~ArenaBlock() { Reset(); }
  void
  Reset() noexcept
  {
    if (m_Memory)
    {
      m_Arena->Release(m_Memory);
      m_Memory = nullptr;
    }
  }
  void *
  Get() const
  {
    return m_Memory;
  }
  std::size_t
  GetBytes() const
  {
    return m_Bytes;
  }

private:
  Arena *     m_Arena{ nullptr };
  void *      m_Memory{ nullptr };
  std::size_t m_Bytes{ 0 };
};

} // namespace chunkwise

#endif
