/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseRunContext.h"

#include "chunkwiseError.h"
#include "chunkwiseMappedMemory.h"
#include "chunkwiseReservedTables.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>

namespace chunkwise
{

namespace
{

/** The most that a device keeps between runs, or this part of its memory if that is more; a run of a device with little
 * memory begins without what was kept. */
constexpr std::size_t MostTableBytes = std::size_t{ 512 } << 20;
constexpr std::size_t PartForTables = 10;
constexpr std::size_t MostHostTableBytes = std::size_t{ 256 } << 20;
/** Tables that are made leave this part of a budget free, or as much as this, for others. */
constexpr std::size_t ReservedPart = 16;
constexpr std::size_t MostReserved = BytesReservedForTables;

/** The tighter of two limits, of which 0 is none. */
std::size_t
Tighter(std::size_t a, std::size_t b)
{
  return a && b ? std::min(a, b) : std::max(a, b);
}

} // namespace

HostState::HostState()
  : memory("host memory", "host", AllocateMapped, FreeMapped)
  , tables(MostHostTableBytes)
{}

void
HostState::SetBudget(std::size_t bytes)
{
  MakeRoom(0, bytes);
  memory.SetBudget(bytes);
}

void
HostState::MakeRoom(std::size_t bytes, std::size_t limit)
{
  if (limit && memory.GetBytesHeldWith(bytes) > limit)
  {
    memory.Trim();
  }
  while (limit && memory.GetBytesHeldWith(bytes) > limit && tables.DropOldest())
  {
    memory.Trim();
  }
}

void
MemoryMeter::Add(std::size_t bytes)
{
  const std::size_t now = m_Bytes.fetch_add(bytes) + bytes;
  std::size_t       peak = m_Peak;
  while (now > peak && !m_Peak.compare_exchange_weak(peak, now))
  {
  }
}

void
MemoryMeter::Remove(std::size_t bytes)
{
  m_Bytes -= bytes;
}

DeviceState::DeviceState(std::shared_ptr<Device> theDevice)
  : device(std::move(theDevice))
  , memory(
      "device memory of " + device->GetDescription().name, "device",
      [this](std::size_t bytes) { return device->Allocate(bytes); }, [this](void * block) { device->Free(block); })
  , pinned(
      "pinned memory for " + device->GetDescription().name, "pinned",
      [this](std::size_t bytes) { return device->AllocatePinned(bytes); },
      [this](void * block) { device->FreePinned(block); })
  , tables(std::max(MostTableBytes, device->GetDescription().totalMemory / PartForTables))
{}

bool
DeviceState::TakeTurn(const std::function<bool()> & stop)
{
  std::unique_lock<std::mutex> lock(m_Mutex);
  while (m_Busy)
  {
    if (stop())
    {
      return false;
    }
    // The reasons to stop have no separate signal here.
    m_Free.wait_for(lock, std::chrono::milliseconds(5));
  }
  m_Busy = true;
  return true;
}

void
DeviceState::EndTurn()
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Busy = false;
  m_Free.notify_one();
}

void
DeviceState::NoteFailure(const DeviceError & error)
{
  if (error.kind == DeviceError::Kind::Lost)
  {
    lost = true;
  }
}

void
DeviceState::DropHandles()
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Streams.clear();
  m_Events.clear();
}

ArenaBlock
DeviceState::HoldImage(std::size_t bytes, std::size_t limit)
{
  try
  {
    return ArenaBlock(memory, bytes, limit);
  }
  catch (const Error & error)
  {
    if (!IsOutOfMemory(error))
    {
      throw;
    }
  }
  tables.Clear();
  memory.Trim();
  return ArenaBlock(memory, bytes, limit);
}

const void *
CachedTables::Get(const std::string & key, const void * data, std::size_t bytes)
{
  const auto make = [&] {
    Device &   device = *m_State.device;
    const auto block = std::make_shared<ArenaBlock>(m_State.memory, bytes, m_MemoryLimit);
    // A separate stream: the tables must be there before the caller returns, the run's stream may be far behind.
    const std::shared_ptr<void> stream(device.CreateStream(), [&device](void * s) { device.DestroyStream(s); });
    device.CopyToDevice(block->Get(), data, bytes, stream.get());
    device.Synchronize(stream.get());
    return ResourceCache::Entry{ std::shared_ptr<void>(block, block->Get()), bytes };
  };
  // A kernel never reads behind a table, whatever its key.
  return Hold(key + " of " + std::to_string(bytes), make);
}

const void *
CachedTables::GetMade(const std::string & key, std::size_t bytes, const std::function<void(void *)> & fill)
{
  const auto make = [&] {
    // The rest is for the tables that a run cannot do without.
    const std::size_t limit = m_MemoryLimit - std::min(m_MemoryLimit / ReservedPart, MostReserved);
    const auto        block = std::make_shared<ArenaBlock>(m_State.memory, bytes, limit);
    fill(block->Get());
    return ResourceCache::Entry{ std::shared_ptr<void>(block, block->Get()), bytes };
  };
  try
  {
    return Hold(key, make);
  }
  catch (const BudgetError &)
  {
    return nullptr;
  }
  catch (const DeviceError & error)
  {
    if (error.kind != DeviceError::Kind::OutOfMemory)
    {
      throw;
    }
    return nullptr;
  }
}

HostTables::~HostTables()
{
  for (const auto & table : m_Held)
  {
    m_Meter.Remove(table.second);
  }
}

const void *
HostTables::GetMade(const std::string & key, std::size_t bytes, const std::function<void(void *)> & fill)
{
  const std::size_t limit = Tighter(m_Limit, m_State.memory.GetBudget());
  const std::size_t size = Arena::SizeOfBlock(bytes);
  if (size > m_State.tables.GetCapacity())
  {
    return nullptr;
  }
  const auto make = [&] {
    // Tables that others have made and do not use now give way.
    m_State.MakeRoom(size, limit);
    const auto block = std::make_shared<ArenaBlock>(m_State.memory, bytes, limit);
    fill(block->Get());
    return ResourceCache::Entry{ std::shared_ptr<void>(block, block->Get()), size };
  };
  try
  {
    const std::shared_ptr<void>       table = m_State.tables.GetOrMake(key, make);
    const std::lock_guard<std::mutex> lock(m_Mutex);
    if (m_Held.emplace(table, size).second)
    {
      m_Meter.Add(size);
    }
    return table.get();
  }
  catch (const BudgetError &)
  {
    return nullptr;
  }
  catch (const std::bad_alloc &)
  {
    return nullptr;
  }
}

const void *
CachedTables::Hold(const std::string & key, const std::function<ResourceCache::Entry()> & make)
{
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    const auto                        held = m_Held.find(key);
    if (held != m_Held.end())
    {
      return held->second.get();
    }
  }
  const std::shared_ptr<void>       table = m_State.tables.GetOrMake(key, make);
  const std::lock_guard<std::mutex> lock(m_Mutex);
  return m_Held.emplace(key, table).first->second.get();
}

KernelCall
RunContext::MakeHostCall(const Chunk & chunk, Executor & executor, DeviceTables & tables)
{
  KernelCall call;
  call.operation = request.operation.get();
  call.numberOfInputs = static_cast<int>(request.inputs.size());
  for (int i = 0; i < call.numberOfInputs; ++i)
  {
    call.inputs[i] = request.inputs[static_cast<std::size_t>(i)];
  }
  if (request.operation->HasOutput())
  {
    call.output = SubView(request.output, chunk.outputBox);
  }
  call.writable = chunk.outputBox;
  call.image = request.image;
  call.executor = &executor;
  call.control = this;
  call.tables = &tables;
  call.kernels = &host.kernels;
  return call;
}

std::vector<const Kernel *>
RunContext::FindKernels(const KernelRegistry & kernels, const Box & chunk) const
{
  std::vector<KernelRole>     roles{ &KernelSet::compute };
  std::vector<const Kernel *> found;
  if (request.operation->GetSchedule() == Schedule::Fixpoint)
  {
    roles.insert(roles.begin(), &KernelSet::begin);
    if (this->FindKernel(kernels, &KernelSet::finish) && StandsAlone(chunk))
    {
      roles.push_back(&KernelSet::finish);
    }
  }
  for (const KernelRole role : roles)
  {
    found.push_back(this->FindKernel(kernels, role));
    if (!found.back())
    {
      throw ParameterError("there is no kernel " + KernelRegistry::Describe(request.operation->GetName(), role));
    }
  }
  return found;
}

const Kernel *
RunContext::FindKernel(const KernelRegistry & kernels, KernelRole role) const
{
  return kernels.Find(request.operation->GetName(), role);
}

const Kernel &
RunContext::GetHostKernel(KernelRole role) const
{
  const Kernel * const kernel = this->FindKernel(host.kernels, role);
  if (!kernel)
  {
    throw ParameterError("the CPU has no kernel " + KernelRegistry::Describe(request.operation->GetName(), role));
  }
  return *kernel;
}

const Kernel &
RunContext::GetDeviceKernel(const Device & device, KernelRole role) const
{
  const Kernel * const kernel = this->FindKernel(device.GetKernels(), role);
  if (!kernel)
  {
    throw DeviceError(DeviceError::Kind::Failed,
                      "look-up of kernel " + KernelRegistry::Describe(request.operation->GetName(), role),
                      device.GetDescription().name,
                      0,
                      "it has none");
  }
  return *kernel;
}

bool
RunContext::StandsAlone(const Box & chunk) const
{
  const Coordinates image = request.image.Extents();
  const Box         tiles = AlignToTiles(chunk, request.operation->GetTile(image), request.image);
  return Intersect(PadAndCrop(tiles, request.operation->GetHalo(image), request.image), request.region) == chunk;
}

ChunkShape
RunContext::ShapeOf(const Chunk & chunk, const KernelRegistry & kernels, int concurrency) const
{
  ChunkShape shape;
  shape.inputBox = chunk.inputBox;
  shape.outputBox = chunk.outputBox;
  shape.image = request.image;
  shape.numberOfInputs = static_cast<int>(inputKinds.size());
  std::copy(inputKinds.begin(), inputKinds.end(), shape.inputKinds);
  shape.outputKind = request.output.kind;
  shape.concurrency = concurrency;
  shape.kernels = &kernels;
  return shape;
}

namespace
{

ArenaBlock
AwaitHostMemory(const RunContext & context, HostState & state, std::size_t bytes, std::size_t runLimit)
{
  if (bytes == 0)
  {
    return ArenaBlock();
  }
  const std::size_t limit = Tighter(runLimit, state.memory.GetBudget());
  const std::size_t size = Arena::SizeOfBlock(bytes);
  if (limit && size > limit)
  {
    throw BudgetError("the smallest chunk needs " + std::to_string(size) +
                        " bytes of host memory, more than the host budget of " + std::to_string(limit) + " bytes",
                      size,
                      limit);
  }
  for (;;)
  {
    // Memory that earlier chunks and runs left counts as held: a run under a budget does not add to it, but takes what
    // fits.
    state.MakeRoom(size, limit);
    try
    {
      return ArenaBlock(state.memory, bytes);
    }
    catch (const BudgetError &)
    {
      if (size > state.memory.GetBudget())
      {
        throw;
      }
    }
    // Others hold memory for one chunk at a time, and wait for nothing meanwhile.
    if (context.ShouldStop())
    {
      throw Aborted();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

} // namespace

HostScratch::HostScratch(RunContext & context, HostState & state, std::size_t bytes, std::size_t limit)
  : m_Block(AwaitHostMemory(context, state, bytes, limit))
  , m_Metered(context.host.meter, bytes ? Arena::SizeOfBlock(bytes) : 0)
{}

void
AwaitEvent(Device & device, EventHandle event, const std::function<bool()> & mustStop)
{
  for (int tries = 0; !device.Query(event); ++tries)
  {
    if (mustStop())
    {
      throw Aborted();
    }
    if (tries < 1000)
    {
      std::this_thread::yield();
    }
    else
    {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

BufferView
SubView(const BufferView & view, const Box & box)
{
  BufferView part = view;
  part.data = static_cast<char *>(view.data) + view.Offset(box.lower) * static_cast<std::int64_t>(PixelSize(view.kind));
  part.box = box;
  return part;
}

} // namespace chunkwise
