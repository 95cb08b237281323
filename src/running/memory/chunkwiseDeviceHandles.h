/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeviceHandles_h
#define chunkwiseDeviceHandles_h

#include "chunkwiseDevice.h"

#include <utility>

namespace chunkwise
{

/** Owns a stream or an event of a device. */
template <void * (Device::*VCreate)(), void (Device::*VDestroy)(void *) noexcept>
class DeviceHandle
{
public:
  DeviceHandle() = default;
  explicit DeviceHandle(Device & device)
    : m_Device(&device)
    , m_Handle((device.*VCreate)())
  {}
  DeviceHandle(DeviceHandle && other) noexcept
    : m_Device(other.m_Device)
    , m_Handle(std::exchange(other.m_Handle, nullptr))
  {}
  DeviceHandle &
  operator=(DeviceHandle && other) noexcept
  {
    std::swap(m_Device, other.m_Device);
    std::swap(m_Handle, other.m_Handle);
    return *this;
  }
  ~DeviceHandle()
  {
    if (m_Handle)
    {
      (m_Device->*VDestroy)(m_Handle);
    }
  }
  void *
  Get() const
  {
    return m_Handle;
  }

private:
  Device * m_Device{ nullptr };
  void *   m_Handle{ nullptr };
};

using DeviceStream = DeviceHandle<&Device::CreateStream, &Device::DestroyStream>;
using DeviceEvent = DeviceHandle<&Device::CreateEvent, &Device::DestroyEvent>;

} // namespace chunkwise

#endif
