/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseStagedTransfer.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

namespace chunkwise
{

namespace
{

constexpr std::size_t LargestPiece = std::size_t{ 2 } << 20;
constexpr std::size_t SmallestPiece = 4096;
/** A lane has two: one is filled or emptied while the other is on the way. */
constexpr std::size_t PiecesOfLane = 2;

} // namespace

StagedTransfer::StagedTransfer(DeviceState & state, const RunContext & context, std::size_t pinnedLimit, int sharers)
  : m_Device(*state.device)
  , m_Context(context)
{
  const ExecutionRequest & request = context.request;
  std::size_t              lanes = request.stagingThreads;
  if (lanes == 0)
  {
    lanes = std::min<std::size_t>(8, std::max(1u, std::thread::hardware_concurrency() / 2));
  }
  // Sharers leave room for what other steps of the run have kept.
  const std::size_t budget = (pinnedLimit ? pinnedLimit : static_cast<std::size_t>(-1)) /
                             static_cast<std::size_t>(sharers > 1 ? 2 * sharers : 1);
  const auto largest =
    static_cast<std::size_t>(std::max<std::int64_t>(request.image.NumberOfVoxels(), 1)) * sizeof(double);
  m_PieceBytes = std::clamp((largest / lanes + 255) / 256 * 256, SmallestPiece, LargestPiece);
  const auto ring = [&] { return lanes * PiecesOfLane * m_PieceBytes; };
  while (ring() > budget && m_PieceBytes > SmallestPiece)
  {
    m_PieceBytes = std::max(SmallestPiece, m_PieceBytes / 2 / 256 * 256);
  }
  while (ring() > budget && lanes > 1)
  {
    lanes /= 2;
  }
  while (ring() > budget && m_PieceBytes > 256)
  {
    m_PieceBytes /= 2;
  }
  m_Staging = ArenaBlock(state.pinned, ring(), pinnedLimit);
  try
  {
    for (std::size_t i = 0; i < lanes; ++i)
    {
      m_Lanes.emplace_back();
      Lane & lane = m_Lanes.back();
      lane.pieces = static_cast<char *>(m_Staging.Get()) + i * PiecesOfLane * m_PieceBytes;
      lane.stream = m_Device.CreateStream();
      for (std::size_t slot = 0; slot < PiecesOfLane; ++slot)
      {
        lane.events.push_back(m_Device.CreateEvent());
      }
    }
  }
  catch (...)
  {
    Release();
    throw;
  }
}

StagedTransfer::~StagedTransfer()
{
  Release();
}

void
StagedTransfer::Release() noexcept
{
  for (const Lane & lane : m_Lanes)
  {
    for (const EventHandle event : lane.events)
    {
      m_Device.DestroyEvent(event);
    }
    if (lane.stream)
    {
      m_Device.DestroyStream(lane.stream);
    }
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
  const std::size_t        pieces = (bytes + m_PieceBytes - 1) / m_PieceBytes;
  const std::size_t        used = std::min(m_Lanes.size(), pieces);
  std::mutex               mutex;
  std::exception_ptr       failure;
  std::vector<std::thread> threads;
  const auto               serve = [&](std::size_t i) {
    std::exception_ptr mine;
    try
    {
      body(m_Lanes[i], i, used, pieces);
    }
    catch (...)
    {
      mine = std::current_exception();
    }
    // What was begun must end before the pieces are used again.
    try
    {
      m_Device.Synchronize(m_Lanes[i].stream);
    }
    catch (...)
    {
      mine = mine ? mine : std::current_exception();
    }
    if (mine)
    {
      const std::lock_guard<std::mutex> lock(mutex);
      failure = failure ? failure : mine;
    }
  };
  for (std::size_t i = 1; i < used; ++i)
  {
    threads.emplace_back(serve, i);
  }
  if (used > 0)
  {
    serve(0);
  }
  for (auto & thread : threads)
  {
    thread.join();
  }
  if (failure)
  {
    std::rethrow_exception(failure);
  }
}

void
StagedTransfer::ToDevice(void * to, const DenseSequence & from)
{
  const std::size_t bytes = from.GetNumberOfBytes();
  InLanes(bytes, [&](Lane & lane, std::size_t first, std::size_t step, std::size_t pieces) {
    std::size_t count = 0;
    for (std::size_t piece = first; piece < pieces; piece += step, ++count)
    {
      const std::size_t slot = count % PiecesOfLane;
      char * const      memory = lane.pieces + slot * m_PieceBytes;
      const std::size_t begin = piece * m_PieceBytes;
      const std::size_t end = std::min(begin + m_PieceBytes, bytes);
      if (const char * const pinned = FindPinned(from, begin, end))
      {
        m_Device.CopyToDevice(static_cast<char *>(to) + begin, pinned, end - begin, lane.stream);
        m_Device.Record(lane.events[slot], lane.stream);
        continue;
      }
      if (count >= PiecesOfLane)
      {
        Await(lane.events[slot]);
      }
      from.Gather(begin, end, memory);
      m_Device.CopyToDevice(static_cast<char *>(to) + begin, memory, end - begin, lane.stream);
      m_Device.Record(lane.events[slot], lane.stream);
    }
  });
}

void
StagedTransfer::ToHost(const DenseSequence & to, const void * from)
{
  const std::size_t bytes = to.GetNumberOfBytes();
  InLanes(bytes, [&](Lane & lane, std::size_t first, std::size_t step, std::size_t pieces) {
    const std::size_t own = pieces > first ? (pieces - first + step - 1) / step : 0;
    // A piece is asked for while the one before it is scattered.
    for (std::size_t count = 0; count <= own; ++count)
    {
      if (count < own)
      {
        const std::size_t slot = count % PiecesOfLane;
        const std::size_t begin = (first + count * step) * m_PieceBytes;
        const std::size_t end = std::min(begin + m_PieceBytes, bytes);
        char * const      pinned = FindPinned(to, begin, end);
        m_Device.CopyToHost(pinned ? pinned : lane.pieces + slot * m_PieceBytes,
                            static_cast<const char *>(from) + begin,
                            end - begin,
                            lane.stream);
        m_Device.Record(lane.events[slot], lane.stream);
      }
      if (count > 0)
      {
        const std::size_t slot = (count - 1) % PiecesOfLane;
        const std::size_t begin = (first + (count - 1) * step) * m_PieceBytes;
        const std::size_t end = std::min(begin + m_PieceBytes, bytes);
        if (!FindPinned(to, begin, end))
        {
          Await(lane.events[slot]);
          to.Scatter(begin, end, lane.pieces + slot * m_PieceBytes);
        }
      }
    }
  });
}

} // namespace chunkwise
