/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDeviceCarries.h"

#include "chunkwiseError.h"

namespace chunkwise
{

DeviceCarries::DeviceCarries(DeviceState & state, RunContext & context, CarryChain & chain, std::size_t memoryLimit,
                             std::size_t pinnedLimit)
  : m_State(state)
  , m_Device(*state.device)
  , m_Context(context)
  , m_Chain(chain)
  , m_Advance(m_Device.GetKernels().Find(context.request.operation->GetName() + ".advance"))
  , m_PinnedLimit(pinnedLimit)
{
  const std::size_t bytes = chain.GetBytes();
  for (std::size_t i = 0; i < NumberOfIn(chain.IsShared()); ++i)
  {
    m_In.emplace_back(state.memory, bytes, memoryLimit);
  }
  for (std::size_t i = 0; i < NumberOfOut(chain.IsShared()); ++i)
  {
    m_Out.emplace_back(state.memory, bytes, memoryLimit);
  }
  try
  {
    m_Stream = m_Device.CreateStream();
    m_Copied = m_Device.CreateEvent();
    m_Advanced = m_Device.CreateEvent();
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
  for (const EventHandle event : { m_Copied, m_Advanced })
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
DeviceCarries::Enter(std::size_t number, const Chunk & chunk, bool follows, KernelCall & call) const
{
  call.sideIn = follows ? Out(number - 1) : In(number);
  call.sideInBytes = m_Chain.GetBytes();
  if (!m_Chain.IsLast(chunk))
  {
    call.sideOut = Out(number);
    call.sideOutBytes = m_Chain.GetBytes();
  }
}

void
DeviceCarries::Advance(const Chunk & chunk, KernelCall call, StreamHandle stream)
{
  if (m_Advance && !m_Chain.IsLast(chunk))
  {
    call.output = BufferView();
    m_Device.Launch(*m_Advance, call, stream);
    m_Device.Record(m_Advanced, stream);
  }
}

void
DeviceCarries::Await(const std::function<bool()> & mustStop)
{
  m_Device.Record(m_Copied, m_Stream);
  AwaitEvent(m_Device, m_Copied, mustStop);
}

void
DeviceCarries::Take(std::size_t number, const Chunk & chunk, const std::function<bool()> & mustStop)
{
  const CarryChain::Carry carry = m_Chain.Await(m_Chain.Begin(chunk), mustStop);
  m_OnTheWay = carry;
  m_Device.CopyToDevice(In(number), carry.get(), m_Chain.GetBytes(), m_Stream);
  Await(mustStop);
  m_Context.bytesToDevice += static_cast<std::int64_t>(m_Chain.GetBytes());
}

std::shared_ptr<void>
DeviceCarries::Acquire()
{
  try
  {
    const auto block = std::make_shared<ArenaBlock>(m_State.pinned, m_Chain.GetBytes(), m_PinnedLimit);
    return std::shared_ptr<void>(block, block->Get());
  }
  catch (const BudgetError &)
  {
    // Slower, but of no other consequence.
    const auto data = std::make_shared<SideData>(m_Chain.GetBytes());
    return std::shared_ptr<void>(data, data->data());
  }
}

void
DeviceCarries::HandOn(std::size_t number, const Chunk & chunk, const std::function<bool()> & mustStop)
{
  m_Device.Wait(m_Stream, m_Advanced);
  const std::shared_ptr<void> carry = Acquire();
  m_OnTheWay = carry;
  m_Device.CopyToHost(carry.get(), Out(number), m_Chain.GetBytes(), m_Stream);
  Await(mustStop);
  m_Context.bytesToHost += static_cast<std::int64_t>(m_Chain.GetBytes());
  m_Chain.Put(m_Chain.End(chunk), carry);
}

} // namespace chunkwise
