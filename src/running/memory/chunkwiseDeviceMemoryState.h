/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeviceMemoryState_h
#define chunkwiseDeviceMemoryState_h

#include "chunkwiseDeviceMemory.h"
#include "chunkwiseRunContext.h"

namespace chunkwise
{

/** May outlive the manager, not the device. */
struct DeviceMemory::Impl
{
  Impl(std::shared_ptr<DeviceState> theState, int theDevice, ArenaBlock theBlock);
  ~Impl();
  Impl(const Impl &) = delete;
  Impl &
  operator=(const Impl &) = delete;

  const std::shared_ptr<DeviceState> state;
  const int                          device;
  ArenaBlock                         block; ///< goes before the state that has it
  const unsigned int                 forks;
};

} // namespace chunkwise

#endif
