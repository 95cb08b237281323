/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseStagingRing.h"

#include "chunkwiseHostRates.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <limits>

namespace chunkwise
{

namespace
{

// A ring of pieces that stays in the host's last-level cache lets the link's copies read and write there rather than in
// memory; larger pieces take fewer calls. H200 host (16 cores, 300 MiB L3), mean of 16 GiB, 8 threads a direction, of
// the link's rate one way: 3 pieces of 1 MiB a thread 76%, 2 of 2 MiB 81%, 3 of 2 MiB 76 to 80%, 2 of 3 MiB 78%, 3 of 4
// MiB 77%.
constexpr std::size_t LargestPiece = std::size_t{ 2 } << 20;
constexpr std::size_t PieceAlignment = 256;

} // namespace

std::size_t
StagingRing::ThreadsOf(const ExecutionRequest & request, const Device & device)
{
  if (request.stagingThreads)
  {
    return request.stagingThreads;
  }
  // H200 host, 16 processors, 9 GB/s a thread, mean of 4 GiB from memory to memory, GB/s a direction by 1, 2, 3, 4, 6,
  // 8 and 12 threads: 7, 15, 20, 28, 40, 42 and 39.
  const DeviceDescription & link = device.GetDescription();
  return FindTransferThreads(std::max(link.toDeviceRate, link.toHostRate));
}

StagingRing::Size
StagingRing::Fit(std::size_t threads, std::size_t lanesOfThread, std::size_t bytes, std::size_t smallestPiece,
                 std::size_t budget)
{
  const std::size_t room = budget ? budget : std::numeric_limits<std::size_t>::max();
  Size              size{ threads,
             lanesOfThread,
             std::clamp(RoundUp(bytes / (threads * lanesOfThread), PieceAlignment), smallestPiece, LargestPiece) };
  while (size.GetBytes() > room && size.pieceBytes > smallestPiece)
  {
    size.pieceBytes = std::max(smallestPiece, RoundUp(size.pieceBytes / 2, PieceAlignment));
  }
  while (size.GetBytes() > room && size.threads > 1)
  {
    size.threads /= 2;
  }
  while (size.GetBytes() > room && size.pieceBytes > PieceAlignment)
  {
    size.pieceBytes = RoundUp(size.pieceBytes / 2, PieceAlignment);
  }
  return size;
}

StagingRing::StagingRing(DeviceState & state, const Size & size, std::size_t pinnedLimit)
  : m_Size(size)
  , m_Memory(state.pinned, size.GetBytes(), pinnedLimit)
{
  for (std::size_t i = 0; i < GetLanes() * PiecesOfLane; ++i)
  {
    m_Events.emplace_back(*state.device);
  }
}

} // namespace chunkwise
