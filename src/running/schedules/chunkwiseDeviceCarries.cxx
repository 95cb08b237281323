/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDeviceCarries.h"

#include "chunkwiseError.h"

namespace chunkwise
{

namespace
{

/** Memory without structure, as voxels that are as wide as can be. */
BufferView
ViewOfBytes(void * memory, std::size_t bytes)
{
  const PixelType kind = bytes % sizeof(std::uint64_t) == 0 ? PixelType::UInt64 : PixelType::UInt8;
  Coordinates     extent = Coordinates::Filled(1);
  extent[0] = static_cast<std::int64_t>(bytes / PixelSize(kind));
  return DenseView(memory, kind, Box::FromExtent(extent));
}

} // namespace

DeviceCarries::DeviceCarries(DeviceState & state, RunContext & context, CarryChain & chain, std::size_t memoryLimit,
                             std::size_t pinnedLimit)
  : m_State(state)
  , m_Device(*state.device)
  , m_Context(context)
  , m_Chain(chain)
  , m_Advance(context.FindKernel(m_Device.GetKernels(), &KernelSet::advance))
  , m_PinnedLimit(pinnedLimit)
{
  const std::size_t bytes = chain.GetBytes();
  for (std::size_t i = 0; i < NumberOfOut(chain.IsShared()); ++i)
  {
    m_Out.emplace_back(state.memory, bytes, memoryLimit);
  }
  m_In.resize(NumberOfIn(chain.IsShared()));
  for (Entry & entry : m_In)
  {
    entry.memory = ArenaBlock(state.memory, bytes, memoryLimit);
  }
  try
  {
    m_Stream = m_Device.CreateStream();
    m_Advanced = m_Device.CreateEvent();
    m_HandedOn = m_Device.CreateEvent();
    for (Entry & entry : m_In)
    {
      entry.copied = m_Device.CreateEvent();
    }
  }
  catch (...)
  {
    DestroyHandles();
    throw;
  }
}

DeviceCarries::~DeviceCarries()
{
  DestroyHandles();
}

void
DeviceCarries::DestroyHandles() noexcept
{
  for (const Entry & entry : m_In)
  {
    if (entry.copied)
    {
      m_Device.DestroyEvent(entry.copied);
    }
  }
  for (const EventHandle event : { m_Advanced, m_HandedOn })
  {
    if (event)
    {
      m_Device.DestroyEvent(event);
    }
  }
  if (m_Stream)
  {
    m_Device.DestroyStream(m_Stream);
  }
}

void
DeviceCarries::Take(std::size_t number, const Chunk & chunk, const std::function<bool()> & mustStop)
{
  if (Follows(number))
  {
    return;
  }
  Entry & entry = In(number);
  entry.carry = m_Chain.Await(m_Chain.Begin(chunk), mustStop);
  if (entry.carry && IsPinned(entry.carry))
  {
    const BufferView to = ViewOfBytes(entry.memory.Get(), m_Chain.GetBytes());
    m_Device.CopyVoxels(to, ViewOfBytes(entry.carry.get(), m_Chain.GetBytes()), to.box, m_Stream);
  }
  else if (entry.carry)
  {
    m_Device.CopyToDevice(entry.memory.Get(), entry.carry.get(), m_Chain.GetBytes(), m_Stream);
  }
  else
  {
    m_Device.SetToZero(entry.memory.Get(), m_Chain.GetBytes(), m_Stream);
  }
  m_Context.counts.bytesToDevice += entry.carry ? static_cast<std::int64_t>(m_Chain.GetBytes()) : 0;
  m_Device.Record(entry.copied, m_Stream);
}

void
DeviceCarries::Advance(std::size_t number, const Chunk & chunk, KernelCall call, StreamHandle stream)
{
  if (!m_Advance || m_Chain.IsLast(chunk))
  {
    return;
  }
  call.sideIn = Await(number, stream);
  call.sideInBytes = call.sideOutBytes = m_Chain.GetBytes();
  call.sideOut = Out(number);
  if (m_Chain.IsShared())
  {
    m_Left = Acquire();
    m_IsLeftPinned = IsPinned(m_Left);
    call.sideOut = m_IsLeftPinned ? m_Left.get() : call.sideOut;
  }
  call.OmitOutput();
  m_Device.Launch(*m_Advance, call, stream);
  m_Device.Record(m_Advanced, stream);
}

void
DeviceCarries::Enter(std::size_t number, const Chunk & chunk, KernelCall & call, StreamHandle stream)
{
  call.sideIn = Await(number, stream);
  call.sideInBytes = m_Chain.GetBytes();
  if (!m_Advance && !m_Chain.IsLast(chunk))
  {
    call.sideOut = Out(number);
    call.sideOutBytes = m_Chain.GetBytes();
  }
}

const void *
DeviceCarries::Await(std::size_t number, StreamHandle stream)
{
  if (Follows(number))
  {
    return Out(number - 1);
  }
  m_Device.Wait(stream, In(number).copied);
  return In(number).memory.Get();
}

CarryChain::Carry
DeviceCarries::Acquire()
{
  try
  {
    const auto block = std::make_shared<ArenaBlock>(m_State.pinned, m_Chain.GetBytes(), m_PinnedLimit);
    return CarryChain::Carry(block, block->Get());
  }
  catch (const BudgetError &)
  {
    // Slower, but of no other consequence.
    return CarryChain::Keep(ChunkState(m_Chain.GetBytes()));
  }
}

void
DeviceCarries::HandOn(std::size_t number, const Chunk & chunk, const std::function<bool()> & mustStop)
{
  if (!m_IsLeftPinned)
  {
    m_Device.Wait(m_Stream, m_Advanced);
    m_Device.CopyToHost(m_Left.get(), Out(number), m_Chain.GetBytes(), m_Stream);
    m_Device.Record(m_HandedOn, m_Stream);
  }
  AwaitEvent(m_Device, m_IsLeftPinned ? m_Advanced : m_HandedOn, mustStop);
  m_Context.counts.bytesToHost += static_cast<std::int64_t>(m_Chain.GetBytes());
  m_Chain.Put(m_Chain.End(chunk), m_Left);
}

} // namespace chunkwise
