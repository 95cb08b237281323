/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDevice_h
#define chunkwiseDevice_h

#include "chunkwiseOperation.h"

#include <memory>
#include <string>
#include <vector>

namespace chunkwise
{

using StreamHandle = void *;
using EventHandle = void *;

/** The planner's description of a device. Rates in bytes per second. */
struct DeviceDescription
{
  std::string name;                   ///< "NVIDIA H200"
  std::string backend;                ///< "cuda", "fake"
  int         index{ 0 };             ///< ordinal within the backend
  std::string busAddress;             ///< on the PCI bus, "0000:3B:00.0"; empty: not known
  std::size_t totalMemory{ 0 };       ///< bytes
  double      toDeviceRate{ 50e9 };   ///< host link, one way
  double      toHostRate{ 50e9 };     ///< host link, the other way
  double      peerRate{ 0 };          ///< from another device's memory; 0: no faster than from the host's
  double      memoryRate{ 4e12 };     ///< read + written
  double      launchSeconds{ 10e-6 }; ///< fixed cost of a chunk
};

/** One accelerator with its own memory: an NVIDIA GPU, or a fake one on the host for tests.
 *
 * Work is asynchronous in streams. Every function throws DeviceError on failure except those marked noexcept. Functions
 * may be called from any thread; calls on one stream are ordered as they are made. */
class Chunkwise_EXPORT Device
{
public:
  virtual ~Device();

  virtual const DeviceDescription &
  GetDescription() const = 0;
  /** Bytes that can be allocated now. */
  virtual std::size_t
  GetFreeMemory() = 0;
  virtual const KernelRegistry &
  GetKernels() const = 0;

  /** 256-byte aligned. */
  virtual void *
  Allocate(std::size_t bytes) = 0;
  virtual void
  Free(void * memory) noexcept = 0;
  /** Host memory that all devices copy to and from asynchronously, and that their kernels may read and write. */
  virtual void *
  AllocatePinned(std::size_t bytes) = 0;
  virtual void
  FreePinned(void * memory) noexcept = 0;
  /** True if [memory, memory + bytes) is host memory that needs no staging. */
  virtual bool
  IsPinned(const void * memory, std::size_t bytes) noexcept = 0;

  virtual StreamHandle
  CreateStream() = 0;
  virtual void
  DestroyStream(StreamHandle stream) noexcept = 0;
  virtual EventHandle
  CreateEvent() = 0;
  virtual void
  DestroyEvent(EventHandle event) noexcept = 0;

  virtual void
  Record(EventHandle event, StreamHandle stream) = 0;
  /** Work enqueued on `stream` from now on waits until `event` (as recorded last) has happened. */
  virtual void
  Wait(StreamHandle stream, EventHandle event) = 0;
  /** True if the event (as recorded last) has happened. */
  virtual bool
  Query(EventHandle event) = 0;
  /** Waits for all work of the stream. Throws if any of it failed since the last time, even where another call has
   * reported that before. */
  virtual void
  Synchronize(StreamHandle stream) = 0;

  virtual void
  CopyToDevice(void * to, const void * from, std::size_t bytes, StreamHandle stream) = 0;
  virtual void
  CopyToHost(void * to, const void * from, std::size_t bytes, StreamHandle stream) = 0;
  virtual void
  CopyOnDevice(void * to, const void * from, std::size_t bytes, StreamHandle stream) = 0; ///< from any device
  virtual void
  SetToZero(void * memory, std::size_t bytes, StreamHandle stream) = 0;
  /** Fills `to` with the voxels of its box from `from`, which is of the same kind; both lie in this device's or in
   * pinned memory, with any strides. Parts of `to` beyond `image` come from the opposite side. Done by a kernel. */
  virtual void
  CopyVoxels(const BufferView & to, const BufferView & from, const Box & image, StreamHandle stream) = 0;
  /** True if [memory, memory + bytes) is memory of this device, whoever allocated it. */
  virtual bool
  Owns(const void * memory, std::size_t bytes) noexcept = 0;

  /** Enqueues a kernel of this device's registry; fills call.stream with the native stream and
   * call.kernels with the registry. */
  virtual void
  Launch(const Kernel & kernel, KernelCall call, StreamHandle stream) = 0;
};

/** A set of devices of one kind. */
class Chunkwise_EXPORT Backend
{
public:
  virtual ~Backend();
  virtual std::string
  GetName() const = 0;
  virtual std::vector<std::shared_ptr<Device>>
  GetDevices() = 0;
};

/** Changes whenever a type that crosses the module boundary changes. */
constexpr int BackendInterfaceVersion = 12;

/** The function that a backend module exports as "chunkwiseMakeBackend". Returns nullptr and fills `reason` (at most
 * `reasonBytes` with the final 0) if it cannot work on this machine or `version` is not its own. */
using MakeBackendFunction = Backend * (*)(int version, char * reason, std::size_t reasonBytes);

/** The CUDA backend if its module and a driver are here, else nullptr and the reason. Opened once per process. Looked
 * for at $CHUNKWISE_CUDA_MODULE, then beside the Chunkwise library, then where it was installed. */
Chunkwise_EXPORT std::shared_ptr<Backend>
                 GetCudaBackend(std::string * reason = nullptr);

/** The kernels that run on the host. */
Chunkwise_EXPORT const KernelRegistry &
GetHostKernels();

using AddKernelsFunction = void (*)(KernelRegistry & kernels);
/** Adds the host's kernels of a family of operations that the engine does not have itself: of a library beside it, or
 * of a program. Call it before the family's first run; it may be called again, and from any thread. */
Chunkwise_EXPORT void
AddHostKernels(AddKernelsFunction add);

} // namespace chunkwise

#endif
