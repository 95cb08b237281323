/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseStagedTransfer.h"

#include "chunkwiseError.h"
#include "chunkwiseThreads.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>

namespace chunkwise
{

namespace
{

constexpr std::size_t SmallestPiece = 4096;

StagingRing::Size
SizeOfRing(const ExecutionRequest & request, const Device & device, std::size_t devices, std::size_t pinnedLimit,
           int sharers)
{
  // Sharers leave room for what other steps of the run have kept.
  const std::size_t budget = pinnedLimit / static_cast<std::size_t>(sharers > 1 ? 2 * sharers : 1);
  const auto        largest =
    static_cast<std::size_t>(std::max<std::int64_t>(request.image.NumberOfVoxels(), 1)) * sizeof(double);
  const StagingThreads threads = StagingRing::ThreadsOf(request, device, devices);
  // Lanes serve one direction after the other.
  return StagingRing::Fit({ std::max(threads.loading, threads.storing), 0 },
                          largest,
                          SmallestPiece,
                          pinnedLimit ? std::max<std::size_t>(budget, 1) : 0);
}

} // namespace

StagedTransfer::StagedTransfer(DeviceState & state, const RunContext & context, std::size_t pinnedLimit, int sharers)
  : m_Device(*state.device)
  , m_Context(context)
  , m_Ring(state,
           SizeOfRing(context.request, *state.device, context.plannerRequest.devices.size(), pinnedLimit, sharers),
           pinnedLimit)
{
  for (std::size_t i = 0; i < m_Ring.GetLanes(); ++i)
  {
    m_Streams.emplace_back(m_Device);
  }
}

char *
StagedTransfer::FindPinned(const DenseSequence & sequence, std::size_t begin, std::size_t end) const
{
  char * const memory = sequence.FindContiguous(begin, end);
  return memory && m_Device.IsPinned(memory, end - begin) ? memory : nullptr;
}

template <typename TBody>
void
StagedTransfer::InLanes(std::size_t bytes, TBody && body)
{
  const std::size_t pieces = (bytes + m_Ring.GetPieceBytes() - 1) / m_Ring.GetPieceBytes();
  const std::size_t used = std::min(m_Streams.size(), pieces);
  RunTogether(used, [&](std::size_t i) {
    std::exception_ptr failure;
    try
    {
      body(i, used, pieces);
    }
    catch (...)
    {
      failure = std::current_exception();
    }
    // Copies that were begun must end before the pieces are used again.
    try
    {
      m_Device.Synchronize(m_Streams[i].Get());
    }
    catch (...)
    {
      failure = failure ? failure : std::current_exception();
    }
    if (failure)
    {
      std::rethrow_exception(failure);
    }
  });
}

void
StagedTransfer::ToDevice(void * to, const DenseSequence & from)
{
  const std::size_t bytes = from.GetNumberOfBytes();
  InLanes(bytes, [&](std::size_t lane, std::size_t step, std::size_t pieces) {
    const StreamHandle stream = m_Streams[lane].Get();
    std::size_t        count = 0;
    for (std::size_t piece = lane; piece < pieces; piece += step, ++count)
    {
      const std::size_t slot = count % StagingRing::PiecesOfLane;
      char * const      memory = m_Ring.Piece(lane, slot);
      const std::size_t begin = piece * m_Ring.GetPieceBytes();
      const std::size_t end = std::min(begin + m_Ring.GetPieceBytes(), bytes);
      if (const char * const pinned = FindPinned(from, begin, end))
      {
        m_Device.CopyToDevice(static_cast<char *>(to) + begin, pinned, end - begin, stream);
        m_Device.Record(m_Ring.Event(lane, slot), stream);
        continue;
      }
      if (count >= StagingRing::PiecesOfLane)
      {
        Await(m_Ring.Event(lane, slot));
      }
      from.Gather(begin, end, memory);
      m_Device.CopyToDevice(static_cast<char *>(to) + begin, memory, end - begin, stream);
      m_Device.Record(m_Ring.Event(lane, slot), stream);
    }
  });
}

void
StagedTransfer::ToHost(const DenseSequence & to, const void * from)
{
  const std::size_t bytes = to.GetNumberOfBytes();
  InLanes(bytes, [&](std::size_t lane, std::size_t step, std::size_t pieces) {
    const StreamHandle stream = m_Streams[lane].Get();
    const std::size_t  own = pieces > lane ? (pieces - lane + step - 1) / step : 0;
    // A piece is asked for while the one before it is scattered.
    for (std::size_t count = 0; count <= own; ++count)
    {
      if (count < own)
      {
        const std::size_t slot = count % StagingRing::PiecesOfLane;
        const std::size_t begin = (lane + count * step) * m_Ring.GetPieceBytes();
        const std::size_t end = std::min(begin + m_Ring.GetPieceBytes(), bytes);
        char * const      pinned = FindPinned(to, begin, end);
        m_Device.CopyToHost(
          pinned ? pinned : m_Ring.Piece(lane, slot), static_cast<const char *>(from) + begin, end - begin, stream);
        m_Device.Record(m_Ring.Event(lane, slot), stream);
      }
      if (count > 0)
      {
        const std::size_t slot = (count - 1) % StagingRing::PiecesOfLane;
        const std::size_t begin = (lane + (count - 1) * step) * m_Ring.GetPieceBytes();
        const std::size_t end = std::min(begin + m_Ring.GetPieceBytes(), bytes);
        if (!FindPinned(to, begin, end))
        {
          Await(m_Ring.Event(lane, slot));
          to.Scatter(begin, end, m_Ring.Piece(lane, slot));
        }
      }
    }
  });
}

} // namespace chunkwise
