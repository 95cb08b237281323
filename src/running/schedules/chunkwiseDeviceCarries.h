/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeviceCarries_h
#define chunkwiseDeviceCarries_h

#include "chunkwiseCarryChain.h"

namespace chunkwise
{

/** The carries of a sweep on one device, while its chunks go through a pipeline.
 *
 * A single device keeps them in its memory, from one chunk to the next. One of several devices takes the carry that
 * enters a chunk from the chain and hands the one that leaves it to the chain, through memory of the host. If that is
 * pinned, kernels read and write it: copies would wait behind those of the images, whatever their stream, because a
 * device has one queue for each direction of its link.
 *
 * Chunks are numbered from 0 in order. Calls for a chunk: Take, Advance, Enter, HandOn; Enter may come after Take and
 * Advance of the next Lead chunks. Kernels of all chunks are enqueued in one stream. */
class DeviceCarries
{
public:
  static std::size_t
  Lead(bool isShared)
  {
    return isShared ? 1 : 0;
  }
  /** Device memory that an object takes. */
  static std::size_t
  DeviceBytes(std::size_t carryBytes, bool isShared)
  {
    return (NumberOfIn(isShared) + NumberOfOut(isShared)) * RoundUp(carryBytes);
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

  /** Waits until the chain knows what enters the chunk, and begins to bring it here; with one device, for its first
   * chunk only. Throws Aborted if `mustStop` is true before. */
  void
  Take(std::size_t number, const Chunk & chunk, const std::function<bool()> & mustStop);
  /** Enqueues the kernel, if there is one, that makes what leaves the chunk of this call alone, so that the next chunk
   * need not wait for this one's output. With several devices it writes to pinned memory of the host. */
  void
  Advance(std::size_t number, const Chunk & chunk, KernelCall call, StreamHandle stream);
  /** Gives the call that makes the chunk's output what enters it, once it is there. */
  void
  Enter(std::size_t number, const Chunk & chunk, KernelCall & call, StreamHandle stream);
  /** With several devices: brings what leaves the chunk to the chain. Call it before Advance of the next chunk. */
  void
  HandOn(std::size_t number, const Chunk & chunk, const std::function<bool()> & mustStop);
  void
  Synchronize()
  {
    m_Device.Synchronize(m_Stream);
  }

private:
  // When a carry was handed on, all kernels that were enqueued before the one that made it have ended: those of the
  // outputs of chunks that are Lead + 1 and more before it. The memory that these read may be overwritten.
  static std::size_t
  NumberOfIn(bool isShared)
  {
    return isShared ? Lead(true) + 2 : 1;
  }
  static std::size_t
  NumberOfOut(bool isShared)
  {
    return isShared ? 1 : 2;
  }

  struct Entry
  {
    ArenaBlock        memory;
    CarryChain::Carry carry; ///< what it is copied from, and may be still
    EventHandle       copied{ nullptr };
  };

  void
  DestroyHandles() noexcept;
  /** With one device: whether what enters the chunk left the one before. */
  bool
  Follows(std::size_t number) const
  {
    return number > 0 && !m_Chain.IsShared();
  }
  Entry &
  In(std::size_t number)
  {
    return m_In[number % m_In.size()];
  }
  void *
  Out(std::size_t number) const
  {
    return m_Out[number % m_Out.size()].Get();
  }
  /** The carry that enters the chunk, in the device's memory, for work that comes after this in the stream. */
  const void *
  Await(std::size_t number, StreamHandle stream);
  bool
  IsPinned(const CarryChain::Carry & carry) const
  {
    return m_Device.IsPinned(carry.get(), m_Chain.GetBytes());
  }
  /** Memory of the host for a carry: pinned, as far as the budget has room for what others have not taken yet. */
  CarryChain::Carry
  Acquire();

  DeviceState &           m_State;
  Device &                m_Device;
  RunContext &            m_Context;
  CarryChain &            m_Chain;
  const Kernel *          m_Advance;
  const std::size_t       m_PinnedLimit;
  std::vector<Entry>      m_In;
  std::vector<ArenaBlock> m_Out;
  CarryChain::Carry       m_Left; ///< what a stream may still write to
  bool                    m_IsLeftPinned{ false };
  StreamHandle            m_Stream{ nullptr };
  EventHandle             m_Advanced{ nullptr };
  EventHandle             m_HandedOn{ nullptr };
};

} // namespace chunkwise

#endif
