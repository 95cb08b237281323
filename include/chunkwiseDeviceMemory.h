/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeviceMemory_h
#define chunkwiseDeviceMemory_h

#include "ChunkwiseExport.h"

#include <cstddef>
#include <memory>

namespace chunkwise
{

/** Memory of a device in which an image stays between runs, see Manager::AllocateOnDevice. */
class Chunkwise_EXPORT DeviceMemory
{
public:
  struct Impl;

  explicit DeviceMemory(std::unique_ptr<Impl> impl);
  /** No pending work may use the memory. */
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &
  operator=(const DeviceMemory &) = delete;

  /** At a multiple of 256 bytes. */
  void *
  Get() const;
  std::size_t
  GetBytes() const;
  /** The device's ordinal in its manager. */
  int
  GetDevice() const;

private:
  std::unique_ptr<Impl> m_Impl;
};

} // namespace chunkwise

#endif
