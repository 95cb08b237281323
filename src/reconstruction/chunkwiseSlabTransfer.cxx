/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSlabTransfer.h"

#include "chunkwiseAxes.h"
#include "chunkwiseError.h"

#include <cstring>
#include <new>

namespace chunkwise
{

namespace
{

constexpr std::align_val_t Alignment{ 256 };

} // namespace

SlabMemory::SlabMemory(const SlabPlan & plan)
  : m_Block(static_cast<char *>(::operator new(std::max<std::size_t>(plan.GetBlockBytes(), 1), Alignment)))
{
  char *     at = m_Block;
  const auto take = [&at](std::size_t bytes) {
    char * const block = at;
    at += bytes;
    return block;
  };
  scratch = take(plan.scratch);
  // Beside the scratch: until slabs are written it can be more of it.
  state[1] = plan.ahead ? take(plan.buffer) : nullptr;
  for (int slot = 0; slot < plan.GetSlots(); ++slot)
  {
    for (int i = 0; i < plan.inputs; ++i)
    {
      slots[slot].push_back(take(plan.buffer));
    }
  }
  state[0] = take(plan.buffer);
  state[1] = plan.ahead ? state[1] : state[0];
  if (plan.inSlabs)
  {
    marker = plan.onDevices ? take(plan.buffer) : nullptr;
    forests[0] = take(plan.forest);
    forests[1] = take(plan.forest);
    children = take(plan.children);
    planeState = take(plan.plane);
  }
}

SlabMemory::~SlabMemory()
{
  ::operator delete(m_Block, Alignment);
}

SlabReader::SlabReader(const SlabRequest & request, std::vector<std::shared_ptr<ImageSource>> sources,
                       const SlabPlan & plan, std::vector<SlabToRead> pieces, std::shared_ptr<SlabMemory> memory)
  : BackgroundThread(static_cast<std::int64_t>(pieces.size()), plan.GetSlots(), true, std::max(request.fileThreads, 1u))
  , m_Sources(std::move(sources))
  , m_Plan(plan)
  , m_Pieces(std::move(pieces))
  , m_Memory(std::move(memory))
  , m_LastAxis(GetLastAxis(request.sink->GetExtent()))
  , m_InPieces(request.fileThreads > 1)
{}

void
SlabReader::Step(std::int64_t i)
{
  const SlabToRead &          piece = m_Pieces[static_cast<std::size_t>(i)];
  const std::vector<char *> & to = m_Memory->slots[SlotOf(i)];
  const int                   axis = m_Plan.axis;
  const std::size_t           planeBytes = static_cast<std::size_t>(m_Plan.planeVoxels) * m_Plan.pixelBytes;
  for (std::size_t input = piece.firstInput; input < to.size(); ++input)
  {
    Box fresh = piece.box;
    if (piece.isNext)
    {
      // The memory of the piece before is only read while it is computed.
      const Box &        held = m_Pieces[static_cast<std::size_t>(i - 1)].box;
      const bool         isAbove = held.lower[axis] < fresh.lower[axis];
      const std::int64_t shared = isAbove ? fresh.lower[axis] : held.lower[axis];
      std::memmove(to[input] + static_cast<std::size_t>(shared - fresh.lower[axis]) * planeBytes,
                   m_Memory->slots[SlotOf(i - 1)][input] +
                     static_cast<std::size_t>(shared - held.lower[axis]) * planeBytes,
                   planeBytes);
      (isAbove ? fresh.lower[axis] : fresh.upper[axis]) += isAbove ? 1 : -1;
    }
    ImageSource &    source = *m_Sources[input];
    const BufferView view = DenseView(to[input], source.GetKind(), piece.box);
    if (m_InPieces)
    {
      ReadPieces(source, fresh, view, m_LastAxis, m_Threads);
    }
    else
    {
      source.Read(fresh, view);
    }
    m_Bytes += static_cast<std::uint64_t>(fresh.NumberOfVoxels()) * m_Plan.pixelBytes;
  }
}

SlabWriter::SlabWriter(const SlabRequest & request, const SlabPlan & plan, std::int64_t pieces,
                       std::shared_ptr<SlabMemory> memory)
  : BackgroundThread(pieces, plan.GetSlots(), false, std::max(request.fileThreads, 1u))
  , m_Sink(request.sink)
  , m_Kind(request.sink->GetKind())
  , m_Memory(std::move(memory))
  , m_LastAxis(GetLastAxis(request.sink->GetExtent()))
  , m_InPieces(request.fileThreads > 1)
  , m_Boxes(m_Slots)
{}

void
SlabWriter::Put(const Box & box)
{
  m_Boxes[SlotOf(m_Put++)] = box;
  Admit();
}

void
SlabWriter::Step(std::int64_t i)
{
  const Box &      box = m_Boxes[SlotOf(i)];
  const BufferView view = DenseView(m_Memory->state[SlotOf(i)], m_Kind, box);
  if (m_InPieces)
  {
    WritePieces(*m_Sink, view, Coordinates{}, m_LastAxis, m_Threads);
  }
  else
  {
    m_Sink->Write(box, view);
  }
  m_Bytes += static_cast<std::uint64_t>(box.NumberOfVoxels()) * PixelSize(m_Kind);
}

SpoolCopier::SpoolCopier(std::shared_ptr<ImageSource> source, std::shared_ptr<SpooledImage> spool,
                         std::size_t bufferBytes)
  : BackgroundThread(1, 1, true, 1)
  , m_Source(std::move(source))
  , m_Spool(std::move(spool))
  , m_Buffer(bufferBytes)
{}

void
SpoolCopier::Step(std::int64_t)
{
  CopyToSpool(*m_Source, *m_Spool, m_Buffer.data(), m_Buffer.size(), [this](const Box &) {
    if (m_Threads.stop)
    {
      throw Aborted();
    }
  });
}

std::uint64_t
SpoolCopier::Copy(const std::shared_ptr<ImageSource> & source, const std::shared_ptr<SpooledImage> & spool,
                  std::size_t bufferBytes, Monitor * monitor)
{
  const std::uint64_t bytes =
    static_cast<std::uint64_t>(Box::FromExtent(source->GetExtent()).NumberOfVoxels()) * PixelSize(source->GetKind());
  const auto copier =
    std::make_shared<SpoolCopier>(source, spool, static_cast<std::size_t>(std::min<std::uint64_t>(bytes, bufferBytes)));
  const Running running(copier);
  copier->WaitFor(1, monitor);
  return bytes;
}

} // namespace chunkwise
