/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDeviceCarries.h"

#include <algorithm>
#include <cstring>

namespace chunkwise
{

DeviceCarries::DeviceCarries(DeviceState & state, RunContext & context, CarryChain & chain, std::size_t memoryLimit,
                             std::size_t pinnedLimit)
  : m_Device(*state.device)
  , m_Context(context)
  , m_Chain(chain)
  , m_Advance(m_Device.GetKernels().Find(context.request.operation->GetName() + ".advance"))
{
  const std::size_t bytes = chain.GetBytes();
  for (int i = 0; i < (chain.IsShared() ? 2 : 1); ++i)
  {
    m_In.emplace_back(state.memory, bytes, memoryLimit);
  }
  for (int i = 0; i < 2; ++i)
  {
    m_Out.emplace_back(state.memory, bytes, memoryLimit);
  }
  m_PieceBytes = std::max<std::size_t>(256, (bytes + 255) / 256 * 256);
  if (pinnedLimit)
  {
    m_PieceBytes = std::min(m_PieceBytes, std::max<std::size_t>(256, pinnedLimit / 4 / 256 * 256));
  }
  m_Staging = ArenaBlock(state.pinned, m_PieceBytes, pinnedLimit);
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
DeviceCarries::Advance(std::size_t number, const Chunk & chunk, bool follows, KernelCall & call, StreamHandle stream)
{
  call.sideIn = follows ? Out(number - 1) : In(number);
  call.sideInBytes = m_Chain.GetBytes();
  if (m_Chain.IsLast(chunk))
  {
    return;
  }
  KernelCall advance = call;
  advance.sideOut = Out(number);
  advance.sideOutBytes = m_Chain.GetBytes();
  if (!m_Advance)
  {
    call = advance;
    return;
  }
  advance.output = BufferView();
  m_Device.Launch(*m_Advance, advance, stream);
  m_Device.Record(m_Advanced, stream);
}

void
DeviceCarries::Await(const std::function<bool()> & mustStop)
{
  m_Device.Record(m_Copied, m_Stream);
  AwaitEvent(m_Device, m_Copied, mustStop);
}

void
DeviceCarries::Take(std::size_t number, const Chunk & chunk, EventHandle lastUse,
                    const std::function<bool()> & mustStop)
{
  const CarryChain::Carry carry = m_Chain.Await(m_Chain.Begin(chunk), mustStop);
  if (lastUse)
  {
    m_Device.Wait(m_Stream, lastUse);
  }
  for (std::size_t at = 0; at < carry->size(); at += m_PieceBytes)
  {
    const std::size_t bytes = std::min(m_PieceBytes, carry->size() - at);
    std::memcpy(m_Staging.Get(), carry->data() + at, bytes);
    m_Device.CopyToDevice(static_cast<char *>(In(number)) + at, m_Staging.Get(), bytes, m_Stream);
    Await(mustStop);
  }
  m_Context.bytesToDevice += static_cast<std::int64_t>(carry->size());
}

void
DeviceCarries::HandOn(std::size_t number, const Chunk & chunk, const std::function<bool()> & mustStop)
{
  m_Device.Wait(m_Stream, m_Advanced);
  SideData carry(m_Chain.GetBytes());
  for (std::size_t at = 0; at < carry.size(); at += m_PieceBytes)
  {
    const std::size_t bytes = std::min(m_PieceBytes, carry.size() - at);
    m_Device.CopyToHost(m_Staging.Get(), static_cast<const char *>(Out(number)) + at, bytes, m_Stream);
    Await(mustStop);
    std::memcpy(carry.data() + at, m_Staging.Get(), bytes);
  }
  m_Context.bytesToHost += static_cast<std::int64_t>(carry.size());
  m_Chain.Put(m_Chain.End(chunk), std::move(carry));
}

} // namespace chunkwise
