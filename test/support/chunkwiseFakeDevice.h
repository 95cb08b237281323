/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFakeDevice_h
#define chunkwiseFakeDevice_h

#include "chunkwiseDevice.h"
#include "chunkwiseError.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace chunkwise
{

/** A device on the host whose every call can be made to fail.
 *
 * Each stream is a thread, so that the engine's ordering by events is really tested (under ThreadSanitizer too). Device
 * memory is poisoned (all bits one: NaN, the largest integers), its ends are guarded, and every transfer is checked
 * against what is allocated. */
class FakeDevice : public Device
{
public:
  struct Options
  {
    std::string name{ "fake device" };
    std::size_t memory{ std::size_t{ 1 } << 30 };
    /** Random pauses in streams, so that interleavings differ between runs. */
    bool jitter{ false };
    /** Whether all host memory counts as pinned, not only that of AllocatePinned. */
    bool hostIsPinned{ false };
    /** Bytes a second, each way, for the planner. So slow that plans for the small images of tests overlap transfers,
     * as those of large images do. */
    double      linkRate{ 1e7 };
    double      peerRate{ 0 };
    std::string busAddress;
  };

  explicit FakeDevice(const Options & options, const KernelRegistry & kernels = GetHostKernels());
  ~FakeDevice() override;

  /** The `at`-th call of this name from now on fails (0: the next), and all that follow if `persistent`. Names are
   * those of the functions; "kernel" fails the work of a launch itself, which shows at the next synchronisation. */
  void
  FailAt(const std::string & call, int at, bool persistent, DeviceError::Kind kind = DeviceError::Kind::Failed);
  void
  ClearFaults();
  /** Calls of a name since the device was made. */
  int
  CountCalls(const std::string & call) const;

  /** Allocations, streams and events that were not given back. */
  int
  CountLive() const;
  std::size_t
  GetPeak() const;
  /** Writes beyond an allocation, transfers outside of one, and frees of what is not allocated, seen so far. */
  int
  CountViolations() const;
  /** Whether the calling thread starts that of a stream. */
  static bool
  IsStartingStream();
  /** Called (with the number of launches so far) when a kernel begins to run. */
  std::function<void(int)> onKernel;
  /** Called (with the bytes) when a copy to the device, or to the host, begins. */
  std::function<void(std::size_t)> onCopyToDevice;
  std::function<void(std::size_t)> onCopyToHost;
  /** Called (with the host's side) when a copy to or from the host is enqueued. */
  std::function<void(const void * memory, std::size_t bytes)> onHostMemory;
  /** Called with a new block of pinned memory. */
  std::function<void(const void * memory, std::size_t bytes)> onAllocatePinned;

  /** The block of pinned memory of any fake device that has all these bytes; nullptr: none. */
  static const void *
  FindPinned(const void * memory, std::size_t bytes);

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
  struct Stream;
  struct Event;
  struct Fault
  {
    int               at;
    bool              persistent;
    DeviceError::Kind kind;
  };

  /** Counts the call and throws if it is to fail. */
  void
  Enter(const std::string & call, std::size_t bytes);
  void
  CheckRange(const void * memory, std::size_t bytes);
  /** Memory that a kernel may read or write: the device's, or pinned memory of any. */
  void
  CheckRangeOfKernel(const void * memory, std::size_t bytes);
  /** Checks the range of a view from its first to its last voxel. */
  void
  CheckRange(const BufferView & view);
  /** A kernel's failure shows in every call that waits, until a synchronisation of the same stream has reported it:
   * whoever launched the kernel cannot miss it. */
  void
  ThrowAsynchronousError();

  Options                             m_Options;
  DeviceDescription                   m_Description;
  const KernelRegistry &              m_Kernels;
  mutable std::mutex                  m_Mutex;
  std::map<std::string, int>          m_Calls;
  std::map<std::string, Fault>        m_Faults;
  std::map<const char *, std::size_t> m_Allocations;
  int                                 m_PinnedBlocks{ 0 };
  std::size_t                         m_Used{ 0 };
  std::size_t                         m_Peak{ 0 };
  int                                 m_Handles{ 0 };
  std::atomic<int>                    m_Violations{ 0 };
  std::map<StreamHandle, DeviceError> m_Asynchronous;
};

} // namespace chunkwise

#endif
