/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStagingRing_h
#define chunkwiseStagingRing_h

#include "chunkwiseDeviceHandles.h"
#include "chunkwiseRunContext.h"

#include <vector>

namespace chunkwise
{

/** Threads of the host that copy for a device. */
struct StagingThreads
{
  std::size_t loading;
  std::size_t storing;
};

/** Small pieces of pinned memory in lanes, one for each host thread that copies: while a piece is filled or emptied the
 * other is on the way, and its event says when it has arrived. */
class StagingRing
{
public:
  static constexpr std::size_t PiecesOfLane = 2;

  struct Size
  {
    StagingThreads threads;
    std::size_t    pieceBytes;

    std::size_t
    GetLanes() const
    {
      return threads.loading + threads.storing;
    }
    std::size_t
    GetBytes() const
    {
      return this->GetLanes() * PiecesOfLane * pieceBytes;
    }
  };

  /** As many threads as the request says, else as keep the device's link busy on this host, whose processors so many
   * devices share. */
  static StagingThreads
  ThreadsOf(const ExecutionRequest & request, const Device & device, std::size_t devices);
  /** A lane for each thread, of pieces that share `bytes` of the images; of less where the budget (0: none) has no
   * room: smaller pieces down to `smallestPiece`, then fewer threads, then pieces smaller still. */
  static Size
  Fit(const StagingThreads & threads, std::size_t bytes, std::size_t smallestPiece, std::size_t budget);

  /** Throws BudgetError or DeviceError if memory fails. */
  StagingRing(DeviceState & state, const Size & size, std::size_t pinnedLimit);

  std::size_t
  GetLanes() const
  {
    return m_Size.GetLanes();
  }
  const StagingThreads &
  GetThreads() const
  {
    return m_Size.threads;
  }
  std::size_t
  GetPieceBytes() const
  {
    return m_Size.pieceBytes;
  }
  /** The piece of a lane that comes `count`-th. */
  char *
  Piece(std::size_t lane, std::size_t count) const
  {
    return static_cast<char *>(m_Memory.Get()) + IndexOf(lane, count) * m_Size.pieceBytes;
  }
  EventHandle
  Event(std::size_t lane, std::size_t count) const
  {
    return m_Events[IndexOf(lane, count)].Get();
  }

private:
  static std::size_t
  IndexOf(std::size_t lane, std::size_t count)
  {
    return lane * PiecesOfLane + count % PiecesOfLane;
  }

  const Size               m_Size;
  ArenaBlock               m_Memory;
  std::vector<DeviceEvent> m_Events;
};

} // namespace chunkwise

#endif
