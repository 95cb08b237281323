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

StagingThreads
StagingRing::ThreadsOf(const ExecutionRequest & request, const Device & device, std::size_t devices)
{
  if (request.stagingThreads)
  {
    return { request.stagingThreads, request.stagingThreads };
  }
  const DeviceDescription & link = device.GetDescription();
  const TransferThreads     threads =
    FindTransferThreads(link.toDeviceRate, link.toHostRate, static_cast<unsigned int>(devices));
  return { threads.gathering, threads.scattering };
}

StagingRing::Size
StagingRing::Fit(const StagingThreads & threads, std::size_t bytes, std::size_t smallestPiece, std::size_t budget)
{
  const std::size_t room = budget ? budget : std::numeric_limits<std::size_t>::max();
  Size              size{ threads, 0 };
  size.pieceBytes = std::clamp(RoundUp(bytes / size.GetLanes(), PieceAlignment), smallestPiece, LargestPiece);
  const auto halvePieces = [&](std::size_t smallest) {
    while (size.GetBytes() > room && size.pieceBytes > smallest)
    {
      size.pieceBytes = std::max(smallest, RoundUp(size.pieceBytes / 2, PieceAlignment));
    }
  };
  halvePieces(smallestPiece);
  const auto halve = [](std::size_t number) { return number > 1 ? number / 2 : number; };
  while (size.GetBytes() > room && std::max(size.threads.loading, size.threads.storing) > 1)
  {
    size.threads = { halve(size.threads.loading), halve(size.threads.storing) };
  }
  halvePieces(PieceAlignment);
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
