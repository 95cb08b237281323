/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFakeDevice.h"

#include "chunkwiseExecutor.h"
#include "chunkwiseTestOperations.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <new>
#include <random>
#include <set>
#include <thread>

namespace chunkwise
{

namespace
{

constexpr std::size_t GuardBytes = 256;
constexpr int         GuardByte = 0xA7;
constexpr int         PoisonByte = 0xFF;

/** As CUDA's, pinned memory of one device is that of all. */
struct PinnedBlocks
{
  std::mutex                          mutex;
  std::map<const char *, std::size_t> bytes;
};

PinnedBlocks &
GetPinnedBlocks()
{
  static PinnedBlocks blocks;
  return blocks;
}

} // namespace

namespace
{

thread_local bool startsStream = false;

} // namespace

bool
FakeDevice::IsStartingStream()
{
  return startsStream;
}

struct FakeDevice::Stream
{
  explicit Stream(bool jitter)
    : thread(Start([this, jitter] { Work(jitter); }))
  {}
  static std::thread
  Start(std::function<void()> work)
  {
    startsStream = true;
    std::thread started(std::move(work));
    startsStream = false;
    return started;
  }
  ~Stream()
  {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      stop = true;
    }
    changed.notify_all();
    thread.join();
  }
  void
  Enqueue(std::function<void()> task)
  {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      tasks.push_back(std::move(task));
    }
    changed.notify_all();
  }
  void
  Drain()
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return tasks.empty() && !busy; });
  }
  void
  Work(bool jitter)
  {
    // The device of chance is opened only where there is jitter: streams are made by the thousand.
    std::minstd_rand             random(jitter ? std::random_device{}() : 1);
    std::unique_lock<std::mutex> lock(mutex);
    for (;;)
    {
      changed.wait(lock, [this] { return stop || !tasks.empty(); });
      if (tasks.empty())
      {
        return;
      }
      const auto task = std::move(tasks.front());
      tasks.pop_front();
      busy = true;
      lock.unlock();
      if (jitter && random() % 4 == 0)
      {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      }
      task();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }

  std::mutex                        mutex;
  std::condition_variable           changed;
  std::deque<std::function<void()>> tasks;
  bool                              busy{ false };
  bool                              stop{ false };
  std::thread                       thread;
};

struct FakeDevice::Event
{
  std::mutex              mutex;
  std::condition_variable changed;
  std::uint64_t           recorded{ 0 };
  std::uint64_t           happened{ 0 };
};

namespace
{

/** The fake devices that there are: one copies from another's memory. */
std::mutex             s_Mutex;
std::set<FakeDevice *> s_Devices;

bool
IsOfSomeDevice(const void * memory, std::size_t bytes)
{
  const std::lock_guard<std::mutex> lock(s_Mutex);
  return std::any_of(
    s_Devices.begin(), s_Devices.end(), [&](FakeDevice * device) { return device->Owns(memory, bytes); });
}

} // namespace

FakeDevice::FakeDevice(const Options & options, const KernelRegistry & kernels)
  : m_Options(options)
  , m_Kernels(kernels)
{
  m_Description.name = options.name;
  m_Description.backend = "fake";
  m_Description.totalMemory = options.memory;
  m_Description.busAddress = options.busAddress;
  m_Description.toDeviceRate = m_Description.toHostRate = options.linkRate;
  m_Description.peerRate = options.peerRate;
  m_Description.memoryRate = 10 * options.linkRate;
  m_Description.launchSeconds = 1e-6;
  const std::lock_guard<std::mutex> lock(s_Mutex);
  s_Devices.insert(this);
}

FakeDevice::~FakeDevice()
{
  const std::lock_guard<std::mutex> lock(s_Mutex);
  s_Devices.erase(this);
}

void
FakeDevice::FailAt(const std::string & call, int at, bool persistent, DeviceError::Kind kind)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Faults[call] = { m_Calls[call] + at, persistent, kind };
}

void
FakeDevice::ClearFaults()
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Faults.clear();
  m_Asynchronous.clear();
}

int
FakeDevice::CountCalls(const std::string & call) const
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  const auto                        found = m_Calls.find(call);
  return found == m_Calls.end() ? 0 : found->second;
}

int
FakeDevice::CountLive() const
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  return static_cast<int>(m_Allocations.size()) + m_PinnedBlocks + m_Handles;
}

std::size_t
FakeDevice::GetPeak() const
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  return m_Peak;
}

int
FakeDevice::CountViolations() const
{
  return m_Violations;
}

void
FakeDevice::Enter(const std::string & call, std::size_t bytes)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  const int                         number = m_Calls[call]++;
  const auto                        fault = m_Faults.find(call);
  if (fault != m_Faults.end() &&
      (number == fault->second.at || (fault->second.persistent && number > fault->second.at)))
  {
    throw DeviceError(fault->second.kind, call, m_Description.name, bytes, "injected");
  }
}

void
FakeDevice::CheckRange(const void * memory, std::size_t bytes)
{
  if (!Owns(memory, bytes))
  {
    ++m_Violations;
  }
}

void
FakeDevice::CheckRangeOfKernel(const void * memory, std::size_t bytes)
{
  if (!IsPinned(memory, bytes))
  {
    CheckRange(memory, bytes);
  }
}

void
FakeDevice::CheckRange(const BufferView & view)
{
  for (const bool last : { false, true })
  {
    Coordinates corner{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      corner[a] = (view.stride[a] < 0) == last ? view.box.lower[a] : view.box.upper[a] - 1;
    }
    CheckRangeOfKernel(static_cast<const char *>(view.data) +
                         view.Offset(corner) * static_cast<std::int64_t>(PixelSize(view.kind)),
                       PixelSize(view.kind));
  }
}

bool
FakeDevice::Owns(const void * memory, std::size_t bytes) noexcept
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  const char * const                begin = static_cast<const char *>(memory);
  auto                              found = m_Allocations.upper_bound(begin);
  return found != m_Allocations.begin() && (--found, begin + bytes <= found->first + found->second);
}

void
FakeDevice::ThrowAsynchronousError()
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  if (!m_Asynchronous.empty())
  {
    throw DeviceError(m_Asynchronous.begin()->second);
  }
}

const DeviceDescription &
FakeDevice::GetDescription() const
{
  return m_Description;
}

std::size_t
FakeDevice::GetFreeMemory()
{
  Enter("GetFreeMemory", 0);
  const std::lock_guard<std::mutex> lock(m_Mutex);
  return m_Options.memory - m_Used;
}

const KernelRegistry &
FakeDevice::GetKernels() const
{
  return m_Kernels;
}

void *
FakeDevice::Allocate(std::size_t bytes)
{
  Enter("Allocate", bytes);
  const std::lock_guard<std::mutex> lock(m_Mutex);
  if (bytes > m_Options.memory - m_Used)
  {
    throw DeviceError(DeviceError::Kind::OutOfMemory, "Allocate", m_Description.name, bytes, "out of memory");
  }
  char * const block = static_cast<char *>(::operator new(bytes + 2 * GuardBytes, std::align_val_t(256)));
  std::memset(block, GuardByte, GuardBytes);
  std::memset(block + GuardBytes, PoisonByte, bytes);
  std::memset(block + GuardBytes + bytes, GuardByte, GuardBytes);
  m_Allocations[block + GuardBytes] = bytes;
  m_Used += bytes;
  m_Peak = std::max(m_Peak, m_Used);
  return block + GuardBytes;
}

void
FakeDevice::Free(void * memory) noexcept
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  const auto                        found = m_Allocations.find(static_cast<char *>(memory));
  if (found == m_Allocations.end())
  {
    ++m_Violations;
    return;
  }
  char * const      block = static_cast<char *>(memory) - GuardBytes;
  const std::size_t bytes = found->second;
  for (std::size_t i = 0; i < GuardBytes; ++i)
  {
    if (static_cast<unsigned char>(block[i]) != GuardByte ||
        static_cast<unsigned char>(block[GuardBytes + bytes + i]) != GuardByte)
    {
      ++m_Violations;
      break;
    }
  }
  m_Used -= bytes;
  m_Allocations.erase(found);
  ::operator delete(block, std::align_val_t(256));
}

void *
FakeDevice::AllocatePinned(std::size_t bytes)
{
  Enter("AllocatePinned", bytes);
  char * const block = static_cast<char *>(::operator new(bytes, std::align_val_t(256)));
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    ++m_PinnedBlocks;
  }
  if (onAllocatePinned)
  {
    onAllocatePinned(block, bytes);
  }
  const std::lock_guard<std::mutex> lock(GetPinnedBlocks().mutex);
  GetPinnedBlocks().bytes[block] = bytes;
  return block;
}

void
FakeDevice::FreePinned(void * memory) noexcept
{
  {
    const std::lock_guard<std::mutex> lock(GetPinnedBlocks().mutex);
    if (GetPinnedBlocks().bytes.erase(static_cast<char *>(memory)) == 0)
    {
      ++m_Violations;
      return;
    }
  }
  ::operator delete(memory, std::align_val_t(256));
  const std::lock_guard<std::mutex> lock(m_Mutex);
  --m_PinnedBlocks;
}

const void *
FakeDevice::FindPinned(const void * memory, std::size_t bytes)
{
  const std::lock_guard<std::mutex> lock(GetPinnedBlocks().mutex);
  const char * const                begin = static_cast<const char *>(memory);
  auto                              found = GetPinnedBlocks().bytes.upper_bound(begin);
  const bool                        isInside =
    found != GetPinnedBlocks().bytes.begin() && (--found, begin + bytes <= found->first + found->second);
  return isInside ? found->first : nullptr;
}

bool
FakeDevice::IsPinned(const void * memory, std::size_t bytes) noexcept
{
  return m_Options.hostIsPinned || FindPinned(memory, bytes);
}

StreamHandle
FakeDevice::CreateStream()
{
  Enter("CreateStream", 0);
  auto * const                      stream = new Stream(m_Options.jitter);
  const std::lock_guard<std::mutex> lock(m_Mutex);
  ++m_Handles;
  return stream;
}

void
FakeDevice::DestroyStream(StreamHandle stream) noexcept
{
  delete static_cast<Stream *>(stream);
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Asynchronous.erase(stream);
  --m_Handles;
}

EventHandle
FakeDevice::CreateEvent()
{
  Enter("CreateEvent", 0);
  const std::lock_guard<std::mutex> lock(m_Mutex);
  ++m_Handles;
  return new std::shared_ptr<Event>(std::make_shared<Event>());
}

void
FakeDevice::DestroyEvent(EventHandle event) noexcept
{
  // As of CUDA's, what was enqueued with it goes on.
  delete static_cast<std::shared_ptr<Event> *>(event);
  const std::lock_guard<std::mutex> lock(m_Mutex);
  --m_Handles;
}

void
FakeDevice::Record(EventHandle handle, StreamHandle stream)
{
  Enter("Record", 0);
  const auto    event = *static_cast<std::shared_ptr<Event> *>(handle);
  std::uint64_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(event->mutex);
    number = ++event->recorded;
    if (!stream)
    {
      // Nothing is ever enqueued in the default stream.
      event->happened = number;
      return;
    }
  }
  static_cast<Stream *>(stream)->Enqueue([event, number] {
    const std::lock_guard<std::mutex> lock(event->mutex);
    event->happened = std::max(event->happened, number);
    event->changed.notify_all();
  });
}

void
FakeDevice::Wait(StreamHandle stream, EventHandle handle)
{
  Enter("Wait", 0);
  const auto    event = *static_cast<std::shared_ptr<Event> *>(handle);
  std::uint64_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(event->mutex);
    number = event->recorded;
  }
  static_cast<Stream *>(stream)->Enqueue([event, number] {
    std::unique_lock<std::mutex> lock(event->mutex);
    event->changed.wait(lock, [&] { return event->happened >= number; });
  });
}

bool
FakeDevice::Query(EventHandle handle)
{
  Enter("Query", 0);
  const auto event = *static_cast<std::shared_ptr<Event> *>(handle);
  bool       happened = false;
  {
    const std::lock_guard<std::mutex> lock(event->mutex);
    happened = event->happened >= event->recorded;
  }
  // Asked afterwards: a kernel that failed before the event must not be missed.
  ThrowAsynchronousError();
  return happened;
}

void
FakeDevice::Synchronize(StreamHandle stream)
{
  static_cast<Stream *>(stream)->Drain();
  Enter("Synchronize", 0);
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    const auto                        own = m_Asynchronous.find(stream);
    if (own != m_Asynchronous.end())
    {
      const DeviceError error = own->second;
      m_Asynchronous.erase(own);
      throw error;
    }
  }
  ThrowAsynchronousError();
}

void
FakeDevice::CopyToDevice(void * to, const void * from, std::size_t bytes, StreamHandle stream)
{
  Enter("CopyToDevice", bytes);
  CheckRange(to, bytes);
  if (onHostMemory)
  {
    onHostMemory(from, bytes);
  }
  static_cast<Stream *>(stream)->Enqueue([=] {
    if (onCopyToDevice)
    {
      onCopyToDevice(bytes);
    }
    std::memcpy(to, from, bytes);
  });
}

void
FakeDevice::CopyToHost(void * to, const void * from, std::size_t bytes, StreamHandle stream)
{
  Enter("CopyToHost", bytes);
  CheckRange(from, bytes);
  if (onHostMemory)
  {
    onHostMemory(to, bytes);
  }
  static_cast<Stream *>(stream)->Enqueue([=] {
    if (onCopyToHost)
    {
      onCopyToHost(bytes);
    }
    std::memcpy(to, from, bytes);
  });
}

void
FakeDevice::CopyOnDevice(void * to, const void * from, std::size_t bytes, StreamHandle stream)
{
  Enter("CopyOnDevice", bytes);
  CheckRange(to, bytes);
  if (!IsOfSomeDevice(from, bytes))
  {
    ++m_Violations;
  }
  static_cast<Stream *>(stream)->Enqueue([=] { std::memcpy(to, from, bytes); });
}

void
FakeDevice::SetToZero(void * memory, std::size_t bytes, StreamHandle stream)
{
  Enter("SetToZero", bytes);
  CheckRange(memory, bytes);
  static_cast<Stream *>(stream)->Enqueue([=] { std::memset(memory, 0, bytes); });
}

void
FakeDevice::CopyVoxels(const BufferView & to, const BufferView & from, const Box & image, StreamHandle stream)
{
  Enter("CopyVoxels", to.NumberOfBytes());
  CheckRange(to);
  CheckRange(from);
  static_cast<Stream *>(stream)->Enqueue([=] {
    const std::size_t pixel = PixelSize(to.kind);
    ForEachIndex(to.box, [&](const Coordinates & index) {
      Coordinates at = index;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t n = image.Extent(a);
        at[a] = index[a] < 0 || index[a] >= n ? ((index[a] % n) + n) % n : index[a];
      }
      std::memcpy(static_cast<char *>(to.data) + to.Offset(index) * static_cast<std::int64_t>(pixel),
                  static_cast<const char *>(from.data) + from.Offset(at) * static_cast<std::int64_t>(pixel),
                  pixel);
    });
  });
}

void
FakeDevice::Launch(const Kernel & kernel, KernelCall call, StreamHandle stream)
{
  Enter("Launch", 0);
  int number = 0;
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    number = m_Calls["Launch"];
  }
  call.stream = stream;
  call.kernels = &m_Kernels;
  static_cast<Stream *>(stream)->Enqueue([this, kernel, call, number, stream]() mutable {
    const std::unique_ptr<Executor> executor = MakeThreadExecutor(1);
    call.executor = executor.get();
    if (onKernel)
    {
      onKernel(number);
    }
    const auto fail = [&](const DeviceError & error) {
      const std::lock_guard<std::mutex> lock(m_Mutex);
      m_Asynchronous.emplace(stream, error);
    };
    try
    {
      Enter("kernel", 0);
      kernel.run(call);
    }
    catch (const DeviceError & error)
    {
      fail(error);
    }
    catch (const std::exception & error)
    {
      fail(DeviceError(DeviceError::Kind::Failed, "kernel", m_Description.name, 0, error.what()));
    }
  });
}

} // namespace chunkwise
