/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaDevice_h
#define chunkwiseCudaDevice_h

#include "chunkwiseDevice.h"

#include <map>
#include <mutex>
#include <set>

namespace chunkwise
{

/** One GPU through the CUDA runtime. Streams do not synchronise with the default stream; the caller's current device is
 * left as it was.
 *
 * The environment variable CHUNKWISE_CUDA_DEVICE_LIMIT (bytes) makes allocations beyond that total fail, as they would
 * on a smaller device. */
class CudaDevice : public Device
{
public:
  CudaDevice(int index, const KernelRegistry & kernels);

  const DeviceDescription &
  GetDescription() const override;
  std::size_t
  GetFreeMemory() override;
  const KernelRegistry &
  GetKernels() const override;
  void *
  Allocate(std::size_t bytes) override;
  void
  Free(void * memory) noexcept override;
  void *
  AllocatePinned(std::size_t bytes) override;
  void
  FreePinned(void * memory) noexcept override;
  bool
  IsPinned(const void * memory, std::size_t bytes) noexcept override;
  StreamHandle
  CreateStream() override;
  void
  DestroyStream(StreamHandle stream) noexcept override;
  EventHandle
  CreateEvent() override;
  void
  DestroyEvent(EventHandle event) noexcept override;
  void
  Record(EventHandle event, StreamHandle stream) override;
  void
  Wait(StreamHandle stream, EventHandle event) override;
  bool
  Query(EventHandle event) override;
  void
  Synchronize(StreamHandle stream) override;
  void
  CopyToDevice(void * to, const void * from, std::size_t bytes, StreamHandle stream) override;
  void
  CopyToHost(void * to, const void * from, std::size_t bytes, StreamHandle stream) override;
  void
  CopyOnDevice(void * to, const void * from, std::size_t bytes, StreamHandle stream) override;
  void
  SetToZero(void * memory, std::size_t bytes, StreamHandle stream) override;
  void
  CopyVoxels(const BufferView & to, const BufferView & from, const Box & image, StreamHandle stream) override;
  bool
  Owns(const void * memory, std::size_t bytes) noexcept override;
  void
  Launch(const Kernel & kernel, KernelCall call, StreamHandle stream) override;

private:
  /** Lets copies from another device's memory go directly, if they can. */
  void
  OpenPeer(const void * memory);

  const int                     m_Index;
  const KernelRegistry &        m_Kernels;
  DeviceDescription             m_Description;
  std::size_t                   m_Limit{ 0 };
  std::mutex                    m_Mutex;
  std::map<void *, std::size_t> m_Allocations;
  std::size_t                   m_Used{ 0 };
  std::set<int>                 m_Peers; ///< whose memory was asked for
};

} // namespace chunkwise

#endif
