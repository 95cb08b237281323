/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDescendingQueue_h
#define chunkwiseDescendingQueue_h

#include "chunkwiseError.h"

#include <cstdint>
#include <cstring>

namespace chunkwise
{

/** Numbers in descending order of unsigned keys, where no key is pushed that is larger than the one popped last: a
 * radix heap with digits of eight bits (Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path
 * problem", J. ACM 37(2), 1990), for eight-bit keys a bucket each. A number moves at most once per byte of its key.
 *
 * Keys are not stored: the owner gives the key that a number has now. It may have grown since it was pushed, if it was
 * pushed again then. Memory is given by the owner and never exceeded. */
template <typename TKey>
class DescendingQueue
{
public:
  static constexpr int           Digits = sizeof(TKey);
  static constexpr std::uint32_t EntriesOfBlock = 30;

  /** Bytes for up to `entries` numbers at a time. */
  static std::size_t
  GetBytes(std::int64_t entries)
  {
    return static_cast<std::size_t>(CountBlocks(entries)) * sizeof(Block);
  }

  /** `memory` has GetBytes(entries) and is aligned for int. */
  void
  Initialize(void * memory, std::int64_t entries)
  {
    m_Blocks = static_cast<Block *>(memory);
    m_NumberOfBlocks = static_cast<std::uint32_t>(CountBlocks(entries));
    m_Used = 0;
    m_Free = None;
    std::memset(m_Filled, 0, sizeof(m_Filled));
    Restart();
  }

  /** Any key may be pushed again. The queue is empty. */
  void
  Restart()
  {
    m_Last = static_cast<TKey>(~TKey{ 0 });
  }

  void
  Push(std::uint32_t number, TKey key)
  {
    const std::uint64_t different = key ^ m_Last;
    const int           level = different == 0 ? 0 : (63 - __builtin_clzll(different)) / 8;
    const int           digit = static_cast<int>(key >> (8 * level)) & 255;
    std::uint32_t &     head = m_Heads[level][digit];
    std::uint64_t &     filled = m_Filled[level][digit / 64];
    const std::uint64_t bit = std::uint64_t{ 1 } << (digit % 64);
    if (!(filled & bit))
    {
      filled |= bit;
      head = TakeBlock(None);
    }
    else if (m_Blocks[head].count == EntriesOfBlock)
    {
      head = TakeBlock(head);
    }
    Block & block = m_Blocks[head];
    block.entries[block.count++] = number;
  }

  /** A number of the largest key, which is then GetLevel(); false if there is none. keyOf(number) is what it has now.
   */
  template <typename TKeyOf>
  bool
  Pop(std::uint32_t & number, TKeyOf && keyOf)
  {
    for (;;)
    {
      const int lowest = FindHighest(0);
      if (lowest >= 0)
      {
        m_Last = static_cast<TKey>((m_Last & ~TKey{ 255 }) | static_cast<TKey>(lowest));
        std::uint32_t & head = m_Heads[0][lowest];
        Block &         block = m_Blocks[head];
        number = block.entries[--block.count];
        if (block.count == 0)
        {
          head = ReturnBlock(head);
          if (head == None)
          {
            m_Filled[0][lowest / 64] &= ~(std::uint64_t{ 1 } << (lowest % 64));
          }
        }
        return true;
      }
      int level = 1;
      int digit = -1;
      while (level < Digits && (digit = FindHighest(level)) < 0)
      {
        ++level;
      }
      if (digit < 0)
      {
        return false;
      }
      Spread(level, digit, keyOf);
    }
  }

  TKey
  GetLevel() const
  {
    return m_Last;
  }

private:
  static constexpr std::uint32_t None = UINT32_MAX;

  struct Block
  {
    std::uint32_t next;
    std::uint32_t count;
    std::uint32_t entries[EntriesOfBlock];
  };

  /** Every bucket may have one block that is not full. */
  static std::int64_t
  CountBlocks(std::int64_t entries)
  {
    return entries / EntriesOfBlock + 256 * Digits + 2;
  }

  std::uint32_t
  TakeBlock(std::uint32_t next)
  {
    std::uint32_t index = m_Free;
    if (index != None)
    {
      m_Free = m_Blocks[index].next;
    }
    else if (m_Used < m_NumberOfBlocks)
    {
      index = m_Used++;
    }
    else
    {
      throw Error("a queue was asked to hold more than it was made for");
    }
    m_Blocks[index].next = next;
    m_Blocks[index].count = 0;
    return index;
  }

  std::uint32_t
  ReturnBlock(std::uint32_t index)
  {
    const std::uint32_t next = m_Blocks[index].next;
    m_Blocks[index].next = m_Free;
    m_Free = index;
    return next;
  }

  int
  FindHighest(int level) const
  {
    for (int word = 3; word >= 0; --word)
    {
      if (m_Filled[level][word])
      {
        return word * 64 + 63 - __builtin_clzll(m_Filled[level][word]);
      }
    }
    return -1;
  }

  /** The largest bucket of a level becomes buckets of the levels below it. */
  template <typename TKeyOf>
  void
  Spread(int level, int digit, TKeyOf && keyOf)
  {
    const std::uint64_t below = (std::uint64_t{ 1 } << (8 * level)) - 1;
    const std::uint64_t own = std::uint64_t{ 255 } << (8 * level);
    m_Last = static_cast<TKey>((m_Last & ~(own | below)) | (static_cast<std::uint64_t>(digit) << (8 * level)) | below);
    std::uint32_t head = m_Heads[level][digit];
    m_Filled[level][digit / 64] &= ~(std::uint64_t{ 1 } << (digit % 64));
    while (head != None)
    {
      const Block block = m_Blocks[head];
      head = ReturnBlock(head);
      for (std::uint32_t i = 0; i < block.count; ++i)
      {
        // One that has grown beyond this bucket was pushed again and has been popped since.
        const TKey key = keyOf(block.entries[i]);
        if (key <= m_Last)
        {
          Push(block.entries[i], key);
        }
      }
    }
  }

  Block *       m_Blocks{ nullptr };
  std::uint32_t m_NumberOfBlocks{ 0 };
  std::uint32_t m_Used{ 0 };
  std::uint32_t m_Free{ None };
  TKey          m_Last{ 0 };
  std::uint64_t m_Filled[Digits][4];
  std::uint32_t m_Heads[Digits][256];
};

} // namespace chunkwise

#endif
