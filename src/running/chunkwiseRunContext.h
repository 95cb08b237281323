/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRunContext_h
#define chunkwiseRunContext_h

#include "chunkwiseArena.h"
#include "chunkwiseDeviceHandles.h"
#include "chunkwiseManager.h"
#include "chunkwiseResourceCache.h"
#include "chunkwiseRunControls.h"
#include "chunkwiseSpilledMemory.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace chunkwise
{

class DeviceError;

/** Failures of a device, or of one that works for it, in a run after which it is dropped. */
constexpr int MostFailures = 3;

/** A block of pinned memory that is kept between runs. Thread-safe. */
class SpillKept
{
public:
  /** The block, if it has just so many bytes; otherwise it is given back. */
  std::shared_ptr<void>
  Take(std::size_t bytes)
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    std::shared_ptr<void>             block = m_Bytes == bytes ? m_Block : nullptr;
    m_Block.reset();
    m_Bytes = 0;
    return block;
  }
  void
  Keep(std::shared_ptr<void> block, std::size_t bytes)
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    m_Block = std::move(block);
    m_Bytes = bytes;
  }
  void
  Drop()
  {
    (void)this->Take(0);
  }
  std::size_t
  GetBytes() const
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    return m_Bytes;
  }

private:
  mutable std::mutex    m_Mutex;
  std::shared_ptr<void> m_Block;
  std::size_t           m_Bytes{ 0 };
};

/** The state of a device that the manager keeps between runs. */
class DeviceState
{
public:
  explicit DeviceState(std::shared_ptr<Device> device);

  /** Waits until no other run uses the device; false if `stop` became true first. */
  bool
  TakeTurn(const std::function<bool()> & stop);
  void
  EndTurn();
  /** Notes that a call of the device failed: the device may be lost. */
  void
  NoteFailure(const DeviceError & error);
  /** Memory for a whole image, for which tables that earlier runs left give way. Throws BudgetError or DeviceError. */
  ArenaBlock
  HoldImage(std::size_t bytes, std::size_t limit);

  /** A stream, or event, that an earlier run has kept here, or a new one. */
  template <typename THandle>
  THandle
  TakeHandle()
  {
    {
      const std::lock_guard<std::mutex> lock(m_Mutex);
      std::vector<THandle> &            kept = GetKept(static_cast<THandle *>(nullptr));
      if (!kept.empty())
      {
        THandle handle = std::move(kept.back());
        kept.pop_back();
        return handle;
      }
    }
    return THandle(*device);
  }
  /** Keeps the handle for the next run. The stream must be idle. */
  template <typename THandle>
  void
  KeepHandle(THandle handle)
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    std::vector<THandle> &            kept = GetKept(static_cast<THandle *>(nullptr));
    if (kept.size() < MostKeptHandles)
    {
      kept.push_back(std::move(handle));
    }
  }
  void
  DropHandles();

  const std::shared_ptr<Device> device;
  Arena                         memory;
  Arena                         pinned;
  /** Declared after the arenas that hold its entries' memory. */
  ResourceCache tables;
  /** Set when the device cannot be used again by this process. */
  std::atomic<bool> lost{ false };
  /** Bytes of images that stay here between runs, see DeviceMemory. */
  std::atomic<std::size_t> imageBytes{ 0 };
  /** Bytes of pinned memory that runs have beside the arena, see SpilledMemory. */
  std::atomic<std::size_t> spilledBytes{ 0 };
  /** The spilled memory of the last run: pinning takes long, and the next run may need as much. */
  SpillKept keptSpill;

private:
  static constexpr std::size_t MostKeptHandles = 4;

  std::vector<DeviceStream> &
  GetKept(DeviceStream *)
  {
    return m_Streams;
  }
  std::vector<DeviceEvent> &
  GetKept(DeviceEvent *)
  {
    return m_Events;
  }

  std::mutex                m_Mutex;
  std::condition_variable   m_Free;
  bool                      m_Busy{ false };
  std::vector<DeviceStream> m_Streams;
  std::vector<DeviceEvent>  m_Events;
};

/** An event that goes back to where it is kept. */
class KeptEvent
{
public:
  explicit KeptEvent(DeviceState & state)
    : m_State(&state)
    , m_Event(state.TakeHandle<DeviceEvent>())
  {}
  KeptEvent(KeptEvent &&) = default;
  ~KeptEvent()
  {
    if (m_Event.Get())
    {
      m_State->KeepHandle(std::move(m_Event));
    }
  }
  EventHandle
  Get() const
  {
    return m_Event.Get();
  }

private:
  DeviceState * m_State;
  DeviceEvent   m_Event;
};

/** The host's memory that the manager keeps between runs: scratch, and tables that kernels have made. */
class HostState
{
public:
  HostState();

  /** Gives back what is kept beyond the budget. 0: no limit. */
  void
  SetBudget(std::size_t bytes);
  /** Gives back what is kept, until a block of so many bytes more is held under the limit (0: none), or nothing is kept
   * any more. New memory costs time for each of its pages: a kept block that fits stays. */
  void
  MakeRoom(std::size_t bytes, std::size_t limit);

  Arena memory;
  /** Declared after the arena that holds its entries' memory. */
  ResourceCache tables;
};

/** Counts what a run has of a memory. Thread-safe. */
class MemoryMeter
{
public:
  void
  Add(std::size_t bytes);
  void
  Remove(std::size_t bytes);
  /** The most at a time. */
  std::size_t
  GetPeak() const
  {
    return m_Peak;
  }

private:
  std::atomic<std::size_t> m_Bytes{ 0 };
  std::atomic<std::size_t> m_Peak{ 0 };
};

/** Bytes of a run, counted as long as this lives. */
class MeteredBytes
{
public:
  MeteredBytes(MemoryMeter & meter, std::size_t bytes)
    : m_Meter(meter)
    , m_Bytes(bytes)
  {
    m_Meter.Add(m_Bytes);
  }
  ~MeteredBytes() { m_Meter.Remove(m_Bytes); }
  MeteredBytes(const MeteredBytes &) = delete;
  MeteredBytes &
  operator=(const MeteredBytes &) = delete;

private:
  MemoryMeter &     m_Meter;
  const std::size_t m_Bytes;
};

/** Tables of a device, held until the run ends. */
class CachedTables : public DeviceTables
{
public:
  CachedTables(DeviceState & state, std::size_t memoryLimit)
    : m_State(state)
    , m_MemoryLimit(memoryLimit)
  {}
  const void *
  Get(const std::string & key, const void * data, std::size_t bytes) override;
  const void *
  GetMade(const std::string & key, std::size_t bytes, const std::function<void(void * memory)> & fill) override;

private:
  /** The table of this key, for as long as the run lasts: the device may keep it for a shorter time. */
  const void *
  Hold(const std::string & key, const std::function<ResourceCache::Entry()> & make);

  DeviceState &                                m_State;
  std::size_t                                  m_MemoryLimit;
  std::mutex                                   m_Mutex;
  std::map<std::string, std::shared_ptr<void>> m_Held;
};

/** Tables of one call of a host's kernel: data as it is. Tables that are made are kept in the host's memory, and held
 * until the call ends. */
class HostTables : public DeviceTables
{
public:
  /** `limit`: of the run, 0: none. */
  HostTables(HostState & state, MemoryMeter & meter, std::size_t limit)
    : m_State(state)
    , m_Meter(meter)
    , m_Limit(limit)
  {}
  ~HostTables() override;

  const void *
  Get(const std::string &, const void * data, std::size_t) override
  {
    return data;
  }
  const void *
  GetMade(const std::string & key, std::size_t bytes, const std::function<void(void * memory)> & fill) override;

private:
  HostState &                                  m_State;
  MemoryMeter &                                m_Meter;
  const std::size_t                            m_Limit;
  std::mutex                                   m_Mutex;
  std::map<std::shared_ptr<void>, std::size_t> m_Held; ///< and their bytes
};

/** The place of a run's images, if a device's memory holds them. Who makes it has taken the device's turn. */
struct Residence
{
  std::size_t device{ 0 };
  /** The work that the images' owner had enqueued before the run. */
  EventHandle ready{ nullptr };
};

/** The host's part of a run. */
struct HostOfRun
{
  /** A run that is resident on a device has that device's: there is no work for the host. */
  const KernelRegistry & kernels;
  /** The kernel that computes a part of each chunk of a device, and what it computes with; nullptr: none. */
  const Kernel * head{ nullptr };
  Executor *     executor{ nullptr };
  HostState *    memory{ nullptr };
  /** The run's share of the host's budget. */
  MemoryMeter meter;
};

/** Counts of all workers. */
struct RunCounts
{
  std::int64_t              voxels{ 0 }; ///< the work of a schedule
  std::atomic<std::int64_t> finishedVoxels{ 0 };
  std::atomic<std::int64_t> bytesToDevice{ 0 };
  std::atomic<std::int64_t> bytesToHost{ 0 };
  std::atomic<int>          retries{ 0 };
  /** Fixpoint: visits to where parts meet, and their voxels. */
  std::atomic<std::int64_t> revisits{ 0 };
  std::atomic<std::int64_t> revisitedVoxels{ 0 };
  std::atomic<int>          solvedGlobally{ 0 };
};

/** The state of a run with the schedule Fixpoint. */
class FixpointOfRun
{
public:
  /** The part of the work that is visits, if some are expected. */
  std::int64_t visitShare{ 0 };
  /** The most voxels of a visit that fit the memory. */
  std::int64_t mostVoxelsOfVisit{ INT64_MAX };
  /** A visit failed whose neighbours may not know what it has changed. */
  std::atomic<bool> stateIsTorn{ false };

  /** A chunk, or a part of one, that has its state. */
  void
  AddPart(const Box & part)
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    m_Parts.push_back(part);
  }
  std::vector<Box>
  GetParts() const
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    return m_Parts;
  }

private:
  mutable std::mutex m_Mutex;
  std::vector<Box>   m_Parts;
};

/** The state that all workers of one run share. */
class RunContext : public RunControl
{
public:
  RunContext(const ExecutionRequest & theRequest, const PlannerRequest & thePlannerRequest,
             const KernelRegistry & theHostKernels)
    : request(theRequest)
    , plannerRequest(thePlannerRequest)
    , host{ theHostKernels }
  {
    for (const auto & input : request.inputs)
    {
      inputKinds.push_back(input.kind);
    }
  }

  bool
  ShouldStop() const override
  {
    if (m_Poll.ask && std::this_thread::get_id() == m_Poll.thread)
    {
      m_Poll.ask();
    }
    return stop.load(std::memory_order_relaxed);
  }
  /** Sets the function that this thread calls from now on whenever it asks whether to stop. Set before others work. */
  void
  SetPoll(std::function<void()> poll)
  {
    m_Poll = { std::this_thread::get_id(), std::move(poll) };
  }
  void
  AddFinishedVoxels(std::int64_t voxels) override
  {
    counts.finishedVoxels.fetch_add(voxels, std::memory_order_relaxed);
  }

  /** A call for a chunk that reads and writes the host's images. */
  KernelCall
  MakeHostCall(const Chunk & chunk, Executor & executor, DeviceTables & tables);
  /** The kernels of the run, in order, for a chunk: for Fixpoint the kernel that makes its state, as far as the chunk
   * by itself tells it, and the kernel that ends it if nothing lies beyond. Throws if the main one is not there. */
  std::vector<const Kernel *>
  FindKernels(const KernelRegistry & kernels, const Box & chunk) const;
  /** A kernel of the operation; nullptr if there is none. */
  const Kernel *
  FindKernel(const KernelRegistry & kernels, KernelRole role) const;
  /** Throws ParameterError if the host has none. */
  const Kernel &
  GetHostKernel(KernelRole role) const;
  /** Throws DeviceError if the device has none. */
  const Kernel &
  GetDeviceKernel(const Device & device, KernelRole role) const;
  /** Whether a chunk's result depends on nothing else of the region. */
  bool
  StandsAlone(const Box & chunk) const;
  /** The shape of a chunk, for scratch functions of one of `kernels`. */
  ChunkShape
  ShapeOf(const Chunk & chunk, const KernelRegistry & kernels, int concurrency) const;

  const ExecutionRequest & request;
  const PlannerRequest &   plannerRequest;
  HostOfRun                host;
  /** nullptr: the images are the host's. */
  const Residence *      residence{ nullptr };
  std::vector<PixelType> inputKinds;
  std::atomic<bool>      stop{ false };
  RunCounts              counts;
  FixpointOfRun          fixpoint;
  /** nullptr: kernels keep all their scratch on the device. */
  std::unique_ptr<SpilledMemory> spilled;
  /** The sum of the chunks' summaries, for an operation without an output. */
  ChunkState total;
  /** TwoPass: the chunks can be halved if memory fails. */
  bool chunksCanShrink{ false };

private:
  struct Poll
  {
    std::thread::id       thread;
    std::function<void()> ask;
  };
  Poll m_Poll;
};

/** Scratch of the host for a chunk. */
class HostScratch
{
public:
  /** Waits until other runs leave room. Throws BudgetError if it is more than `limit` (0: none). */
  HostScratch(RunContext & context, HostState & state, std::size_t bytes, std::size_t limit);
  void *
  Get() const
  {
    return m_Block.Get();
  }

private:
  ArenaBlock   m_Block;
  MeteredBytes m_Metered;
};

/** Waits until the event has happened; throws Aborted if `mustStop` is true before that. */
void
AwaitEvent(Device & device, EventHandle event, const std::function<bool()> & mustStop);

/** The part of a view that holds `box`. */
BufferView
SubView(const BufferView & view, const Box & box);

} // namespace chunkwise

#endif
