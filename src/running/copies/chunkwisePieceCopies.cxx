/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwisePieceCopies.h"

#include "chunkwiseError.h"
#include "chunkwiseLocalProcessors.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

constexpr std::size_t SmallestPiece = std::size_t{ 64 } << 10;
/** Bytes that take a device as long to copy as the call takes. */
constexpr std::size_t LeastDirect = std::size_t{ 64 } << 10;

/** A piece of pixels as it lies in `together`, and in `apart`, which holds all bytes of its sequence. */
PixelViews
ViewPiece(void * together, char * apart, PixelType kind, std::int64_t components, std::size_t bytes,
          const Piece & piece)
{
  const auto         number = static_cast<std::size_t>(components);
  const std::int64_t pixel = static_cast<std::int64_t>(PixelSize(kind)) * components;
  return ViewPixels(together,
                    apart + piece.begin / number,
                    kind,
                    components,
                    static_cast<std::int64_t>(piece.end - piece.begin) / pixel,
                    static_cast<std::int64_t>(bytes) / pixel);
}

} // namespace

PieceCopies::PieceCopies(DeviceState & state, RunContext & context, std::size_t bytes, bool mayTakeApart,
                         std::size_t memoryLimit, std::size_t pinnedLimit)
  : m_Device(*state.device)
  , m_Context(context)
{
  const StagingThreads threads =
    StagingRing::ThreadsOf(context.request, m_Device, context.plannerRequest.devices.size());
  m_Processors = FindLocalProcessors(m_Device.GetDescription().busAddress, std::max(threads.loading, threads.storing));
  const ThreadBinding binding(m_Processors);
  m_Staging =
    std::make_unique<StagingRing>(state, StagingRing::Fit(threads, bytes, SmallestPiece, pinnedLimit), pinnedLimit);
  for (const BufferView & input : context.request.inputs)
  {
    m_InputIsPinned.push_back(this->IsPinned(input));
  }
  m_OutputIsPinned = this->IsPinned(context.request.output);
  if (mayTakeApart)
  {
    this->MakeRoomForPixels(state, memoryLimit);
  }
}

void
PieceCopies::Load(std::size_t lane, std::size_t count, const Job & job, const Piece & piece, char * to)
{
  const DenseSequence & sequence = job.inputs[piece.input];
  const std::size_t     bytes = piece.end - piece.begin;
  Stretches             stretches = FindPinned(m_InputIsPinned[piece.input], sequence, piece);
  if (stretches.empty())
  {
    stretches.push_back({ m_Staging->Piece(lane, count), 0, bytes });
    sequence.Gather(piece.begin, piece.end, stretches.front().address);
  }
  const auto copy = [&](void * memory) {
    for (const auto & stretch : stretches)
    {
      m_Device.CopyToDevice(
        static_cast<char *>(memory) + stretch.at, stretch.address, stretch.bytes, m_LoadStream.Get());
    }
  };
  if (const std::int64_t components = job.inputComponents[piece.input]; components > 1)
  {
    const std::lock_guard<std::mutex> lock(m_PixelsMutex);
    copy(m_PixelsToDevice.Get());
    const PixelViews views = ViewPiece(
      m_PixelsToDevice.Get(), to, m_Context.inputKinds[piece.input], components, sequence.GetNumberOfBytes(), piece);
    m_Device.CopyVoxels(views.apart, views.together, views.apart.box, m_LoadStream.Get());
  }
  else
  {
    copy(to + piece.begin);
  }
  m_Device.Record(m_Staging->Event(lane, count), m_LoadStream.Get());
  m_Context.counts.bytesToDevice += static_cast<std::int64_t>(bytes);
}

bool
PieceCopies::BeginStore(std::size_t lane, std::size_t count, const Job & job, const Piece & piece, char * from)
{
  const DenseSequence & sequence = job.output[0];
  Stretches             stretches = FindPinned(m_OutputIsPinned, sequence, piece);
  const bool            isStaged = stretches.empty();
  if (isStaged)
  {
    stretches.push_back({ m_Staging->Piece(lane, count), 0, piece.end - piece.begin });
  }
  const auto copy = [&](const void * memory) {
    for (const auto & stretch : stretches)
    {
      m_Device.CopyToHost(
        stretch.address, static_cast<const char *>(memory) + stretch.at, stretch.bytes, m_StoreStream.Get());
    }
  };
  if (job.outputComponents > 1)
  {
    const std::lock_guard<std::mutex> lock(m_PixelsMutex);
    const PixelViews                  views = ViewPiece(m_PixelsToHost.Get(),
                                       from,
                                       m_Context.request.output.kind,
                                       job.outputComponents,
                                       sequence.GetNumberOfBytes(),
                                       piece);
    m_Device.CopyVoxels(views.together, views.apart, views.apart.box, m_StoreStream.Get());
    copy(m_PixelsToHost.Get());
  }
  else
  {
    copy(from + piece.begin);
  }
  m_Device.Record(m_Staging->Event(lane, count), m_StoreStream.Get());
  return isStaged;
}

void
PieceCopies::EndStore(std::size_t lane, std::size_t count, const Job & job, const Piece & piece)
{
  job.output[0].Scatter(piece.begin, piece.end, m_Staging->Piece(lane, count));
}

bool
PieceCopies::IsPinned(const BufferView & view) const
{
  std::int64_t pixels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    pixels += (view.box.Extent(a) - 1) * view.stride[a];
  }
  return m_Device.IsPinned(view.data, static_cast<std::size_t>(pixels) * PixelSize(view.kind));
}

void
PieceCopies::MakeRoomForPixels(DeviceState & state, std::size_t memoryLimit)
{
  const auto make = [&](ArenaBlock & block, const BufferView & view) {
    if (!block.Get() && this->ComponentsTogether(view, view.box) > 1)
    {
      block = ArenaBlock(state.memory, m_Staging->GetPieceBytes(), memoryLimit);
    }
  };
  try
  {
    for (const BufferView & input : m_Context.request.inputs)
    {
      make(m_PixelsToDevice, input);
    }
    make(m_PixelsToHost, m_Context.request.output);
  }
  catch (const BudgetError &)
  {}
  catch (const DeviceError & error)
  {
    if (!IsOutOfMemory(error))
    {
      throw;
    }
  }
}

std::int64_t
PieceCopies::ComponentsTogether(const BufferView & view, const Box & box) const
{
  const std::int64_t components = CountInterleaved(view, box);
  return this->PieceBytes(view.kind, components) > 0 ? components : 1;
}

PieceCopies::Stretches
PieceCopies::FindPinned(bool isPinned, const DenseSequence & sequence, const Piece & piece)
{
  return isPinned ? sequence.FindStretches(piece.begin, piece.end, LeastDirect) : Stretches();
}

} // namespace chunkwise
