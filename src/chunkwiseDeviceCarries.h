/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeviceCarries_h
#define chunkwiseDeviceCarries_h

#include "chunkwiseCarryChain.h"

namespace chunkwise
{

/** The carries of a sweep on one device: what enters each of its chunks and what leaves it, while the chunks go through
 * a pipeline. From one chunk to the next on this device a carry stays in its memory; to and from other devices it goes
 * through the chain. Chunks are numbered from 0 in the order of their kernels. */
class DeviceCarries
{
public:
  /** Device memory that an object takes: it has a carry for a chunk to read and one to write, each twice where a chunk
   * of another device may come between. */
  static std::size_t
  DeviceBytes(std::size_t carryBytes, bool isShared)
  {
    return (isShared ? 4 : 3) * ((carryBytes + 255) / 256 * 256);
  }

  /** Throws BudgetError or DeviceError. At most a quarter of the pinned budget is used. */
  DeviceCarries(DeviceState & state, RunContext & context, CarryChain & chain, std::size_t memoryLimit,
                std::size_t pinnedLimit);
  ~DeviceCarries();
  DeviceCarries(const DeviceCarries &) = delete;
  DeviceCarries &
  operator=(const DeviceCarries &) = delete;

  CarryChain &
  GetChain() const
  {
    return m_Chain;
  }
  std::size_t
  GetPinnedBytes() const
  {
    return m_PieceBytes;
  }
  /** The kernel that makes a carry without the output; nullptr if there is none. */
  const Kernel *
  GetAdvance() const
  {
    return m_Advance;
  }

  /** Gives the call of a chunk its carry and enqueues what makes the next one: a kernel of its own, so that the next
   * chunk need not wait for this one's output, or the call itself. `follows`: chunk `number` - 1 was the one before. */
  void
  Advance(std::size_t number, const Chunk & chunk, bool follows, KernelCall & call, StreamHandle stream);

  /** Brings what enters the chunk here, once the chain knows it and `lastUse`, if there is one, has come: that of the
   * chunk two before. Returns when it is there; throws Aborted if `mustStop` is true before. */
  void
  Take(std::size_t number, const Chunk & chunk, EventHandle lastUse, const std::function<bool()> & mustStop);
  /** Brings what leaves the chunk to the chain. Between Advance of this chunk and of the next. */
  void
  HandOn(std::size_t number, const Chunk & chunk, const std::function<bool()> & mustStop);
  void
  Synchronize()
  {
    m_Device.Synchronize(m_Stream);
  }

private:
  void
  DestroyHandles() noexcept;
  void
  Await(const std::function<bool()> & mustStop);
  void *
  In(std::size_t number) const
  {
    return m_In[number % m_In.size()].Get();
  }
  void *
  Out(std::size_t number) const
  {
    return m_Out[number % m_Out.size()].Get();
  }

  Device &                m_Device;
  RunContext &            m_Context;
  CarryChain &            m_Chain;
  const Kernel *          m_Advance;
  std::vector<ArenaBlock> m_In;
  std::vector<ArenaBlock> m_Out;
  std::size_t             m_PieceBytes;
  ArenaBlock              m_Staging;
  StreamHandle            m_Stream{ nullptr };
  EventHandle             m_Copied{ nullptr };
  EventHandle             m_Advanced{ nullptr };
};

} // namespace chunkwise

#endif
