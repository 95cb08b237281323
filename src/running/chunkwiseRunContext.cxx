/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseRunContext.h"

#include "chunkwiseError.h"

#include <chrono>
#include <thread>

namespace chunkwise
{

namespace
{

/** The most that a device keeps between runs; a run of a device with little memory begins without what was kept. */
constexpr std::size_t MostTableBytes = std::size_t{ 512 } << 20;
/** This part of a budget is not taken for tables that a run can do without. */
constexpr std::size_t ReservedPart = 16;

} // namespace

DeviceState::DeviceState(std::shared_ptr<Device> theDevice)
  : device(std::move(theDevice))
  , memory(
      "device memory of " + device->GetDescription().name,
      [this](std::size_t bytes) { return device->Allocate(bytes); }, [this](void * block) { device->Free(block); })
  , pinned(
      "pinned memory for " + device->GetDescription().name,
      [this](std::size_t bytes) { return device->AllocatePinned(bytes); },
      [this](void * block) { device->FreePinned(block); })
  , tables(MostTableBytes)
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
    // The reasons to stop have no signal of their own here.
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

const void *
CachedTables::Get(const std::string & key, const void * data, std::size_t bytes)
{
  const auto make = [&] {
    Device &   device = *m_State.device;
    const auto block = std::make_shared<ArenaBlock>(m_State.memory, bytes, m_MemoryLimit);
    // A stream of its own: the tables must be there before the caller returns, the run's stream may be far behind.
    const std::shared_ptr<void> stream(device.CreateStream(), [&device](void * s) { device.DestroyStream(s); });
    device.CopyToDevice(block->Get(), data, bytes, stream.get());
    device.Synchronize(stream.get());
    return ResourceCache::Entry{ std::shared_ptr<void>(block, block->Get()), bytes };
  };
  return Hold(m_State.tables.GetOrMake(key, make));
}

const void *
CachedTables::GetMade(const std::string & key, std::size_t bytes, const std::function<void(void *)> & fill)
{
  const auto make = [&] {
    // What is left is for the tables that a run cannot do without.
    const std::size_t limit = m_MemoryLimit - m_MemoryLimit / ReservedPart;
    const auto        block = std::make_shared<ArenaBlock>(m_State.memory, bytes, limit);
    fill(block->Get());
    return ResourceCache::Entry{ std::shared_ptr<void>(block, block->Get()), bytes };
  };
  try
  {
    return Hold(m_State.tables.GetOrMake(key, make));
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

const void *
CachedTables::Hold(const std::shared_ptr<void> & table)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Held.insert(table);
  return table.get();
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
  call.kernels = &hostKernels;
  return call;
}

std::vector<const Kernel *>
RunContext::FindKernels(const KernelRegistry & kernels, const Box & chunk) const
{
  const Operation &           operation = *request.operation;
  const std::string           name = operation.GetName();
  std::vector<std::string>    names{ name };
  std::vector<const Kernel *> found;
  const bool                  ends = kernels.Find(name + ".finish") != nullptr;
  if (operation.GetSchedule() == Schedule::Fixpoint)
  {
    names.insert(names.begin(), name + ".begin");
    if (ends && StandsAlone(chunk))
    {
      names.push_back(name + ".finish");
    }
  }
  for (const std::string & kernel : names)
  {
    found.push_back(kernels.Find(kernel));
    if (!found.back())
    {
      throw ParameterError("there is no kernel \"" + kernel + "\"");
    }
  }
  return found;
}

bool
RunContext::StandsAlone(const Box & chunk) const
{
  return Intersect(PadAndCrop(chunk, request.operation->GetHalo(request.image.Extents()), request.image),
                   request.region) == chunk;
}

void
RunContext::AddPart(const Box & part)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Parts.push_back(part);
}

std::vector<Box>
RunContext::GetParts() const
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  return m_Parts;
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

ArenaBlock
HoldHostScratch(const RunContext & context, Arena & memory, std::size_t bytes, std::size_t limit)
{
  if (bytes == 0)
  {
    return ArenaBlock();
  }
  if (limit && bytes > limit)
  {
    throw BudgetError("the smallest chunk needs " + std::to_string(bytes) +
                        " bytes of host scratch, more than the budget of " + std::to_string(limit) + " bytes",
                      bytes,
                      limit);
  }
  // Blocks that earlier chunks and runs left count as held: a run under a budget does not add to them.
  if (limit && memory.GetBytesHeld() + bytes > limit)
  {
    memory.Trim();
  }
  for (;;)
  {
    try
    {
      return ArenaBlock(memory, bytes);
    }
    catch (const BudgetError &)
    {
      if (Arena::SizeOfBlock(bytes) > memory.GetBudget())
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
