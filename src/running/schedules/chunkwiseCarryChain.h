/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCarryChain_h
#define chunkwiseCarryChain_h

#include "chunkwiseRunContext.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

namespace chunkwise
{

/** The carries that the chunks of a sweep hand on, as far as the host has them, by the index along the sweep's axis
 * where they are handed over. Chunks may be cut differently by who takes them: a carry says nothing of the chunk that
 * made it. */
class CarryChain
{
public:
  /** GetBytes() bytes; nullptr: zeros. */
  using Carry = std::shared_ptr<void>;

  /** Knows what enters the request's region. `isShared`: several workers take chunks, so that each must hand on what
   * it makes; one alone keeps that to itself. Throws what the operation does when it has no initial carry. */
  CarryChain(const RunContext & context, bool isShared);

  bool
  IsShared() const
  {
    return m_IsShared;
  }
  int
  GetAxis() const
  {
    return m_Axis;
  }
  std::int64_t
  Begin(const Chunk & chunk) const
  {
    return chunk.outputBox.lower[m_Axis];
  }
  std::int64_t
  End(const Chunk & chunk) const
  {
    return chunk.outputBox.upper[m_Axis];
  }
  /** Nothing comes after the chunk. */
  bool
  IsLast(const Chunk & chunk) const
  {
    return End(chunk) == m_End;
  }
  /** Bytes of every carry. */
  std::size_t
  GetBytes() const
  {
    return m_Bytes;
  }

  /** Waits for the carry; throws Aborted if `stop` is true before it is there. */
  Carry
  Await(std::int64_t index, const std::function<bool()> & stop) const;
  void
  Put(std::int64_t index, Carry carry);
  /** A carry in memory of no kind, of these bytes. */
  static Carry
  Keep(ChunkState data);
  /** No chunk that begins there will be run again. */
  void
  Forget(std::int64_t index);

private:
  const bool                      m_IsShared;
  const int                       m_Axis;
  const std::int64_t              m_End;
  std::size_t                     m_Bytes{ 0 };
  mutable std::mutex              m_Mutex;
  mutable std::condition_variable m_Changed;
  std::map<std::int64_t, Carry>   m_Known;
};

} // namespace chunkwise

#endif
