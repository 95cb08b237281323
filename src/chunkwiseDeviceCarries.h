/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeviceCarries_h
#define chunkwiseDeviceCarries_h

#include "chunkwiseCarryChain.h"

namespace chunkwise
{

/** The carries of a sweep on one device: what enters each of its chunks and what leaves it, while the chunks go through
 * a pipeline. From one chunk to the next on this device a carry stays in its memory; to and from other devices it goes
 * through the chain. Chunks are numbered from 0 in order. */
class DeviceCarries
{
public:
  /** Chunks whose carry may be made before the output of the one before them. */
  static std::size_t
  Lead(bool isShared)
  {
    return isShared ? 1 : 0;
  }
  /** Device memory that an object takes. */
  static std::size_t
  DeviceBytes(std::size_t carryBytes, bool isShared)
  {
    return (NumberOfIn(isShared) + NumberOfOut(isShared)) * ((carryBytes + 255) / 256 * 256);
  }

  /** Throws BudgetError or DeviceError if memory fails. */
  DeviceCarries(DeviceState & state, RunContext & context, CarryChain & chain, std::size_t memoryLimit,
                std::size_t pinnedLimit);
  ~DeviceCarries();
  DeviceCarries(const DeviceCarries &) = delete;
  DeviceCarries &
  operator=(const DeviceCarries &) = delete;

  /** The kernel that makes a carry without the output; nullptr if there is none. */
  const Kernel *
  GetAdvance() const
  {
    return m_Advance;
  }

  /** Gives the call of a chunk what enters it, and memory for what leaves it. `follows`: chunk `number` - 1 was the one
   * before. */
  void
  Enter(std::size_t number, const Chunk & chunk, bool follows, KernelCall & call) const;
  /** Enqueues the kernel, if there is one, that makes what leaves the chunk of this call alone, so that the next chunk
   * need not wait for this one's output. At most Lead chunks ahead of the calls that make the outputs; all in one
   * stream. */
  void
  Advance(const Chunk & chunk, KernelCall call, StreamHandle stream);

  /** Brings what enters the chunk here, once the chain knows it: after the chunk before was handed on. Returns when it
   * is there; throws Aborted if `mustStop` is true before. */
  void
  Take(std::size_t number, const Chunk & chunk, const std::function<bool()> & mustStop);
  /** Brings what leaves the chunk to the chain, into pinned memory as far as the budget has room for what others
   * have not taken yet. Between Advance of this chunk and of the next. */
  void
  HandOn(std::size_t number, const Chunk & chunk, const std::function<bool()> & mustStop);
  void
  Synchronize()
  {
    m_Device.Synchronize(m_Stream);
  }

private:
  // A buffer is used again for a chunk when the chunk that is Lead + 1 (in) or Lead + 2 (out) before it has its output:
  // when a carry was handed on, all kernels that were enqueued before the one that made it have ended.
  static std::size_t
  NumberOfIn(bool isShared)
  {
    return isShared ? Lead(true) + 2 : 1;
  }
  static std::size_t
  NumberOfOut(bool isShared)
  {
    return Lead(isShared) + 2;
  }
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

  /** Memory of the host for a carry. */
  std::shared_ptr<void>
  Acquire();

  DeviceState &           m_State;
  Device &                m_Device;
  RunContext &            m_Context;
  CarryChain &            m_Chain;
  const Kernel *          m_Advance;
  const std::size_t       m_PinnedLimit;
  std::vector<ArenaBlock> m_In;
  std::vector<ArenaBlock> m_Out;
  CarryChain::Carry       m_OnTheWay; ///< what the stream may still copy to or from
  StreamHandle            m_Stream{ nullptr };
  EventHandle             m_Copied{ nullptr };
  EventHandle             m_Advanced{ nullptr };
};

} // namespace chunkwise

#endif
