/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDeviceMemoryState.h"

#include "chunkwiseFork.h"

#include <utility>

namespace chunkwise
{

DeviceMemory::Impl::Impl(std::shared_ptr<DeviceState> theState, int theDevice, ArenaBlock theBlock)
  : state(std::move(theState))
  , device(theDevice)
  , block(std::move(theBlock))
  , forks(GetForkCount())
{
  state->imageBytes += Arena::SizeOfBlock(block.GetBytes());
}

DeviceMemory::Impl::~Impl()
{
  state->imageBytes -= Arena::SizeOfBlock(block.GetBytes());
}

DeviceMemory::DeviceMemory(std::unique_ptr<Impl> impl)
  : m_Impl(std::move(impl))
{}

DeviceMemory::~DeviceMemory()
{
  if (m_Impl->forks != GetForkCount())
  {
    // A forked child cannot use the device, nor the locks of what its parent keeps.
    (void)m_Impl.release();
  }
}

void *
DeviceMemory::Get() const
{
  return m_Impl->block.Get();
}

std::size_t
DeviceMemory::GetBytes() const
{
  return m_Impl->block.GetBytes();
}

int
DeviceMemory::GetDevice() const
{
  return m_Impl->device;
}

} // namespace chunkwise
