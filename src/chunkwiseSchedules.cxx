/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSchedules.h"

#include "chunkwiseError.h"
#include "chunkwiseHostCopy.h"
#include "chunkwiseStagedTransfer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

namespace chunkwise
{

ChunkRunner::~ChunkRunner() = default;

namespace
{

class HostRunner : public ChunkRunner
{
public:
  HostRunner(RunContext & context, Executor & executor, Arena & memory)
    : m_Context(context)
    , m_Executor(executor)
    , m_Memory(memory)
    , m_Control(context)
  {}

  void
  Run(const Step & step) override
  {
    const Kernel * kernel = m_Context.hostKernels.Find(step.kernel);
    if (!kernel)
    {
      throw ParameterError("the CPU has no kernel \"" + step.kernel + "\"");
    }
    const std::size_t bytes =
      kernel->scratchBytes
        ? kernel->scratchBytes(*m_Context.request.operation,
                               m_Context.ShapeOf(step.chunk, static_cast<int>(m_Executor.GetConcurrency())))
        : 0;
    const ArenaBlock scratch(m_Memory, bytes);
    KernelCall       call = m_Context.MakeHostCall(step.chunk, m_Executor, m_Tables);
    call.control = &m_Control;
    if (!step.writesOutput)
    {
      call.output = BufferView();
    }
    else if (step.changedSides)
    {
      call.output = SubView(m_Context.request.output, Intersect(step.chunk.inputBox, m_Context.request.region));
    }
    call.scratch = scratch.Get();
    call.scratchBytes = bytes;
    if (step.sideIn)
    {
      call.sideIn = step.sideIn->data();
      call.sideInBytes = step.sideIn->size();
    }
    if (step.sideOut)
    {
      call.sideOut = step.sideOut->data();
      call.sideOutBytes = step.sideOut->size();
    }
    call.changedSides = step.changedSides;
    const Kernel * const begin = step.alone ? m_Context.hostKernels.Find(step.kernel + ".begin") : nullptr;
    const Kernel * const finish = step.alone ? m_Context.hostKernels.Find(step.kernel + ".finish") : nullptr;
    if (begin)
    {
      begin->run(call);
    }
    kernel->run(call);
    if (finish)
    {
      finish->run(call);
    }
  }

  std::string
  GetName() const override
  {
    return "cpu";
  }

private:
  RunContext & m_Context;
  Executor &   m_Executor;
  Arena &      m_Memory;
  StopControl  m_Control;
  HostTables   m_Tables;
};

class DeviceRunner : public ChunkRunner
{
public:
  DeviceRunner(RunContext & context, DeviceState & state, std::size_t memoryLimit, std::size_t pinnedLimit)
    : m_Context(context)
    , m_State(state)
    , m_Device(*state.device)
    , m_Limit(memoryLimit)
    , m_Tables(state, memoryLimit)
    , m_Transfer(state, context, pinnedLimit)
    , m_Stream(m_Device.CreateStream(), [this](void * stream) { m_Device.DestroyStream(stream); })
  {}

  ~DeviceRunner() override
  {
    try
    {
      m_Device.Synchronize(m_Stream.get());
    }
    catch (const Error &)
    {
      // The step that failed has thrown; what remains is to let its memory go.
    }
  }

  void
  Run(const Step & step) override
  {
    try
    {
      Enqueue(step, Find(step.kernel));
    }
    catch (...)
    {
      // Work that was enqueued before the failure still uses the blocks that are about to be released.
      try
      {
        m_Device.Synchronize(m_Stream.get());
      }
      catch (const Error &)
      {
        // The first error is the one to report.
      }
      throw;
    }
  }

  std::string
  GetName() const override
  {
    return m_Device.GetDescription().name;
  }

private:
  const Kernel &
  Find(const std::string & name) const
  {
    const Kernel * const kernel = m_Device.GetKernels().Find(name);
    if (!kernel)
    {
      throw DeviceError(DeviceError::Kind::Failed, "look-up of kernel " + name, GetName(), 0, "it has none");
    }
    return *kernel;
  }

  void
  Enqueue(const Step & step, const Kernel & kernel)
  {
    const auto & request = m_Context.request;
    KernelCall   call;
    call.operation = request.operation.get();
    call.numberOfInputs = static_cast<int>(request.inputs.size());
    call.image = request.image;
    call.writable = step.chunk.outputBox;
    call.tables = &m_Tables;

    std::vector<ArenaBlock> inputs;
    for (std::size_t i = 0; i < request.inputs.size(); ++i)
    {
      inputs.push_back(Load(request.inputs[i], step.chunk.inputBox));
      call.inputs[i] = DenseView(inputs.back().Get(), request.inputs[i].kind, step.chunk.inputBox);
    }
    ArenaBlock output;
    if (step.writesOutput)
    {
      const Box box = step.changedSides ? Intersect(step.chunk.inputBox, request.region) : step.chunk.outputBox;
      output = step.changedSides && !step.alone
                 ? Load(request.output, box)
                 : ArenaBlock(m_State.memory, DenseView(nullptr, request.output.kind, box).NumberOfBytes(), m_Limit);
      call.output = DenseView(output.Get(), request.output.kind, box);
    }
    const std::size_t scratchBytes =
      kernel.scratchBytes ? kernel.scratchBytes(*request.operation, m_Context.ShapeOf(step.chunk, 1)) : 0;
    const ArenaBlock scratch(m_State.memory, scratchBytes, m_Limit);
    call.scratch = scratch.Get();
    call.scratchBytes = scratchBytes;
    ArenaBlock sideIn;
    if (step.sideIn && !step.sideIn->empty())
    {
      sideIn = ArenaBlock(m_State.memory, step.sideIn->size(), m_Limit);
      ToDevice(sideIn.Get(), step.sideIn->data(), step.sideIn->size());
      call.sideIn = sideIn.Get();
      call.sideInBytes = step.sideIn->size();
    }
    ArenaBlock sideOut;
    if (step.sideOut && !step.sideOut->empty())
    {
      sideOut = ArenaBlock(m_State.memory, step.sideOut->size(), m_Limit);
      call.sideOut = sideOut.Get();
      call.sideOutBytes = step.sideOut->size();
    }
    ArenaBlock sides;
    if (step.changedSides)
    {
      sides = ArenaBlock(m_State.memory, sizeof(std::uint32_t), m_Limit);
      m_Device.SetToZero(sides.Get(), sizeof(std::uint32_t), m_Stream.get());
      call.changedSides = static_cast<std::uint32_t *>(sides.Get());
    }

    if (step.alone)
    {
      m_Device.Launch(Find(step.kernel + ".begin"), call, m_Stream.get());
    }
    m_Device.Launch(kernel, call, m_Stream.get());
    if (step.alone && m_Context.hostKernels.Find(step.kernel + ".finish"))
    {
      m_Device.Launch(Find(step.kernel + ".finish"), call, m_Stream.get());
    }

    if (step.changedSides)
    {
      ToHost(step.changedSides, sides.Get(), sizeof(std::uint32_t));
    }
    if (sideOut.Get())
    {
      ToHost(step.sideOut->data(), sideOut.Get(), step.sideOut->size());
    }
    if (step.writesOutput)
    {
      m_Device.Synchronize(m_Stream.get());
      StoreOwn(step.chunk.outputBox, call.output);
    }
    m_Device.Synchronize(m_Stream.get());
  }

  /** Stores `own`, a part of what the device holds of the output. */
  void
  StoreOwn(const Box & own, const BufferView & held)
  {
    const BufferView &  output = m_Context.request.output;
    const DenseSequence to(output, own, m_Context.request.image);
    const char * const  from =
      static_cast<const char *>(held.data) + held.Offset(own.lower) * static_cast<std::int64_t>(PixelSize(held.kind));
    bool contiguous = true;
    bool whole = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      contiguous = contiguous && (whole || own.Extent(a) == 1);
      whole = whole && own.Extent(a) == held.box.Extent(a);
    }
    if (contiguous)
    {
      m_Transfer.ToHost(to, from);
      m_Context.bytesToHost += static_cast<std::int64_t>(to.GetNumberOfBytes());
      return;
    }
    // With what surrounds it, which the host leaves out.
    std::vector<char>   dense(held.NumberOfBytes());
    const BufferView    copy = DenseView(dense.data(), held.kind, held.box);
    const DenseSequence all(copy, held.box, m_Context.request.image);
    m_Transfer.ToHost(all, held.data);
    const DenseSequence inner(copy, own, m_Context.request.image);
    std::vector<char>   block(std::min<std::size_t>(inner.GetNumberOfBytes(), std::size_t{ 1 } << 20));
    for (std::size_t at = 0; at < inner.GetNumberOfBytes(); at += block.size())
    {
      const std::size_t end = std::min(at + block.size(), inner.GetNumberOfBytes());
      inner.Gather(at, end, block.data());
      to.Scatter(at, end, block.data());
    }
    m_Context.bytesToHost += static_cast<std::int64_t>(all.GetNumberOfBytes());
  }

  ArenaBlock
  Load(const BufferView & view, const Box & box)
  {
    const DenseSequence sequence(view, box, m_Context.request.image);
    ArenaBlock          block(m_State.memory, sequence.GetNumberOfBytes(), m_Limit);
    m_Transfer.ToDevice(block.Get(), sequence);
    m_Context.bytesToDevice += static_cast<std::int64_t>(sequence.GetNumberOfBytes());
    return block;
  }

  void
  ToDevice(void * to, const void * from, std::size_t bytes)
  {
    m_Device.CopyToDevice(to, from, bytes, m_Stream.get());
    m_Device.Synchronize(m_Stream.get());
  }

  void
  ToHost(void * to, const void * from, std::size_t bytes)
  {
    m_Device.CopyToHost(to, from, bytes, m_Stream.get());
    m_Device.Synchronize(m_Stream.get());
  }

  RunContext &          m_Context;
  DeviceState &         m_State;
  Device &              m_Device;
  const std::size_t     m_Limit;
  CachedTables          m_Tables;
  StagedTransfer        m_Transfer;
  std::shared_ptr<void> m_Stream;
};

/** Hands tasks to runners from a rule that says what may run now. */
class TaskLoop
{
public:
  TaskLoop(RunContext & context, std::vector<std::unique_ptr<ChunkRunner>> & runners,
           std::vector<std::string> & warnings)
    : m_Context(context)
    , m_Runners(runners)
    , m_Warnings(warnings)
    , m_Finished(runners.size(), 0)
  {}

  /** Repeats until `done()`: a free runner asks `take(task)`, false if nothing may run now; runs `work(runner, task)`
   * unlocked; then `finish(task)`, or `putBack(task)` if the runner failed. take, finish, putBack and done are called
   * under one lock. */
  template <typename TTask, typename TTake, typename TWork, typename TFinish, typename TPutBack, typename TDone>
  void
  Loop(TTake && take, TWork && work, TFinish && finish, TPutBack && putBack, TDone && done)
  {
    const auto serve = [&](std::size_t r) {
      std::unique_lock<std::mutex> lock(m_Mutex);
      while (!m_Failure && !done() && m_Runners[r])
      {
        TTask task{};
        if (m_Context.ShouldStop())
        {
          m_Failure = std::make_exception_ptr(Aborted());
          break;
        }
        if (!take(task))
        {
          m_Changed.wait_for(lock, std::chrono::milliseconds(5));
          continue;
        }
        lock.unlock();
        std::exception_ptr failure;
        try
        {
          work(*m_Runners[r], task);
        }
        catch (...)
        {
          failure = std::current_exception();
        }
        lock.lock();
        if (!failure)
        {
          finish(task);
          ++m_Finished[r];
        }
        else
        {
          putBack(task);
          Drop(r, failure);
        }
        m_Changed.notify_all();
      }
      m_Changed.notify_all();
    };
    std::vector<std::thread> threads;
    for (std::size_t r = 1; r < m_Runners.size(); ++r)
    {
      threads.emplace_back(serve, r);
    }
    serve(0);
    for (auto & thread : threads)
    {
      thread.join();
    }
    if (m_Failure)
    {
      std::rethrow_exception(m_Failure);
    }
  }

  const std::vector<std::int64_t> &
  GetFinished() const
  {
    return m_Finished;
  }

private:
  void
  Drop(std::size_t r, const std::exception_ptr & failure)
  {
    const bool last =
      std::count_if(m_Runners.begin(), m_Runners.end(), [](const auto & x) { return x != nullptr; }) == 1;
    try
    {
      std::rethrow_exception(failure);
    }
    catch (const DeviceError & error)
    {
      if (!last)
      {
        m_Warnings.push_back(m_Runners[r]->GetName() + " dropped: " + error.what());
        m_Runners[r].reset();
        return;
      }
    }
    catch (...)
    {
      // Anything but a device's failure ends the run.
    }
    m_Failure = failure;
  }

  RunContext &                                m_Context;
  std::vector<std::unique_ptr<ChunkRunner>> & m_Runners;
  std::vector<std::string> &                  m_Warnings;
  std::vector<std::int64_t>                   m_Finished;
  std::mutex                                  m_Mutex;
  std::condition_variable                     m_Changed;
  std::exception_ptr                          m_Failure;
};

/** Chunks in order; each begins when the carry of the one before it is known, and its carry is computed first, so that
 * the next chunk need not wait for its output. */
void
Sweep(RunContext & context, const Plan & plan, TaskLoop & loop)
{
  const Operation &        operation = *context.request.operation;
  const PixelKind          output = context.request.output.kind;
  const std::string        name = operation.GetName();
  std::vector<SideData>    carries(plan.chunks.size() + 1);
  std::vector<bool>        known(plan.chunks.size() + 1, false);
  std::vector<std::size_t> again;
  std::size_t              next = 0;
  std::size_t              finished = 0;
  std::mutex               mutex;
  const auto               carryBytes = [&](std::size_t i) {
    return operation.GetCarryBytes(plan.chunks[i].outputBox, context.inputKinds, output);
  };
  if (!plan.chunks.empty())
  {
    carries[0] = operation.GetInitialCarry(plan.chunks[0].outputBox, context.inputKinds, output);
    known[0] = true;
  }
  const auto isKnown = [&](std::size_t i) -> bool {
    const std::lock_guard<std::mutex> lock(mutex);
    return known[i];
  };
  loop.Loop<std::size_t>(
    [&](std::size_t & task) {
      // It has begun before, so that its carry is known.
      if (!again.empty())
      {
        task = again.back();
        again.pop_back();
        return true;
      }
      if (next < plan.chunks.size() && isKnown(next))
      {
        task = next++;
        return true;
      }
      return false;
    },
    [&](ChunkRunner & runner, std::size_t task) {
      const Chunk & chunk = plan.chunks[task];
      if (task + 1 < plan.chunks.size() && !isKnown(task + 1))
      {
        SideData          carry(carryBytes(task + 1));
        ChunkRunner::Step advance{ name + ".advance", chunk, &carries[task], &carry, false, nullptr };
        runner.Run(advance);
        const std::lock_guard<std::mutex> lock(mutex);
        carries[task + 1] = std::move(carry);
        known[task + 1] = true;
      }
      runner.Run({ name, chunk, &carries[task], nullptr, true, nullptr });
    },
    [&](std::size_t task) {
      ++finished;
      context.AddFinishedVoxels(plan.chunks[task].outputBox.NumberOfVoxels());
    },
    [&](std::size_t task) { again.push_back(task); },
    [&] { return finished == plan.chunks.size(); });
}

/** One pass over all chunks in any order. */
template <typename TWork>
void
Pass(RunContext & context, const Plan & plan, TaskLoop & loop, TWork && work)
{
  std::vector<std::size_t> open;
  for (std::size_t i = plan.chunks.size(); i-- > 0;)
  {
    open.push_back(i);
  }
  std::size_t finished = 0;
  loop.Loop<std::size_t>(
    [&](std::size_t & task) {
      if (open.empty())
      {
        return false;
      }
      task = open.back();
      open.pop_back();
      return true;
    },
    work,
    [&](std::size_t task) {
      ++finished;
      context.AddFinishedVoxels(plan.chunks[task].outputBox.NumberOfVoxels());
    },
    [&](std::size_t task) { open.push_back(task); },
    [&] { return finished == plan.chunks.size(); });
}

void
TwoPass(RunContext & context, const Plan & plan, TaskLoop & loop)
{
  const Operation &     operation = *context.request.operation;
  const std::string     name = operation.GetName();
  std::vector<SideData> summaries(plan.chunks.size());
  std::vector<Box>      boxes;
  for (std::size_t i = 0; i < plan.chunks.size(); ++i)
  {
    boxes.push_back(plan.chunks[i].outputBox);
    summaries[i].resize(operation.GetSummaryBytes(boxes[i], context.inputKinds, context.request.output.kind));
  }
  Pass(context, plan, loop, [&](ChunkRunner & runner, std::size_t task) {
    runner.Run({ name + ".summarise", plan.chunks[task], nullptr, &summaries[task], false, nullptr });
  });
  const std::vector<SideData> solutions = operation.Solve(boxes, summaries);
  if (solutions.size() != plan.chunks.size())
  {
    throw Error("operation " + name + " solved " + std::to_string(solutions.size()) + " of " +
                std::to_string(plan.chunks.size()) + " chunks");
  }
  Pass(context, plan, loop, [&](ChunkRunner & runner, std::size_t task) {
    runner.Run({ name, plan.chunks[task], &solutions[task], nullptr, true, nullptr });
  });
}

/** The state starts as a copy of an input. */
void
CopyInitialState(const RunContext & context)
{
  const std::string name = context.request.operation->GetName();
  const auto &      input =
    context.request.inputs[static_cast<std::size_t>(context.request.operation->GetInitialStateInput())];
  if (input.kind != context.request.output.kind)
  {
    throw ParameterError("operation " + name + " starts from its input, whose kind " + PixelKindName(input.kind) +
                         " must be the output's, " + PixelKindName(context.request.output.kind));
  }
  const DenseSequence from(input, context.request.region, context.request.image);
  const DenseSequence to(context.request.output, context.request.region, context.request.image);
  std::vector<char>   block(std::min<std::size_t>(from.GetNumberOfBytes(), std::size_t{ 1 } << 20));
  for (std::size_t at = 0; at < from.GetNumberOfBytes(); at += block.size())
  {
    const std::size_t end = std::min(at + block.size(), from.GetNumberOfBytes());
    from.Gather(at, end, block.data());
    to.Scatter(at, end, block.data());
  }
}

/** Dirty chunks until there is none. Chunks whose halos meet never run at the same time, so that the state a chunk
 * reads is whole. */
void
Fixpoint(RunContext & context, const Plan & plan, TaskLoop & loop, Executor & executor)
{
  const std::string    name = context.request.operation->GetName();
  const auto           count = plan.chunks.size();
  const Kernel * const begin = context.hostKernels.Find(name + ".begin");
  const Kernel * const finish = context.hostKernels.Find(name + ".finish");
  // Neighbours by the side of the first chunk that they touch: what a changed border layer may reach.
  std::vector<std::vector<std::pair<std::size_t, std::uint32_t>>> neighbours(count);
  for (std::size_t i = 0; i < count; ++i)
  {
    for (std::size_t j = 0; j < count; ++j)
    {
      if (i == j || Intersect(plan.chunks[j].inputBox, plan.chunks[i].outputBox).IsEmpty())
      {
        continue;
      }
      std::uint32_t sides = 0;
      for (int a = 0; a < MaxDimension; ++a)
      {
        sides |= plan.chunks[j].outputBox.upper[a] <= plan.chunks[i].outputBox.lower[a] ? 1u << (2 * a) : 0u;
        sides |= plan.chunks[j].outputBox.lower[a] >= plan.chunks[i].outputBox.upper[a] ? 2u << (2 * a) : 0u;
      }
      neighbours[i].emplace_back(j, sides);
    }
  }
  const auto isAlone = [&](std::size_t i) { return begin && neighbours[i].empty(); };
  HostTables tables;
  const auto onHost = [&](const Kernel & kernel) {
    for (std::size_t i = 0; i < count; ++i)
    {
      if (!isAlone(i))
      {
        KernelCall call = context.MakeHostCall(plan.chunks[i], executor, tables);
        call.control = nullptr;
        kernel.run(call);
      }
    }
  };
  if (begin)
  {
    onHost(*begin);
  }
  else
  {
    CopyInitialState(context);
  }
  std::vector<bool>        dirty(count, true);
  std::vector<bool>        running(count, false);
  std::vector<bool>        counted(count, false);
  std::vector<std::size_t> touched(count, 1); ///< changes since the chunk ran: the most changed goes first
  std::size_t              open = count;
  struct Task
  {
    std::size_t   chunk{ 0 };
    std::uint32_t sides{ 0 };
  };
  loop.Loop<std::shared_ptr<Task>>(
    [&](std::shared_ptr<Task> & task) {
      std::size_t best = count;
      for (std::size_t i = 0; i < count; ++i)
      {
        const bool blocked = running[i] || std::any_of(neighbours[i].begin(), neighbours[i].end(), [&](const auto & n) {
                               return running[n.first];
                             });
        if (dirty[i] && !blocked && (best == count || touched[i] > touched[best]))
        {
          best = i;
        }
      }
      if (best == count)
      {
        return false;
      }
      dirty[best] = false;
      running[best] = true;
      touched[best] = 0;
      task = std::make_shared<Task>();
      task->chunk = best;
      return true;
    },
    [&](ChunkRunner & runner, const std::shared_ptr<Task> & task) {
      runner.Run({ name, plan.chunks[task->chunk], nullptr, nullptr, true, &task->sides, isAlone(task->chunk) });
    },
    [&](const std::shared_ptr<Task> & task) {
      running[task->chunk] = false;
      --open;
      for (const auto & neighbour : neighbours[task->chunk])
      {
        if ((neighbour.second & task->sides) != neighbour.second)
        {
          continue;
        }
        ++touched[neighbour.first];
        if (!dirty[neighbour.first])
        {
          dirty[neighbour.first] = true;
          ++open;
        }
      }
      if (!counted[task->chunk])
      {
        counted[task->chunk] = true;
        context.AddFinishedVoxels(plan.chunks[task->chunk].outputBox.NumberOfVoxels());
      }
    },
    [&](const std::shared_ptr<Task> & task) {
      running[task->chunk] = false;
      dirty[task->chunk] = true;
    },
    [&] { return open == 0; });
  if (finish)
  {
    onHost(*finish);
  }
}

} // namespace

std::unique_ptr<ChunkRunner>
MakeHostRunner(RunContext & context, Executor & executor, Arena & memory)
{
  return std::unique_ptr<ChunkRunner>(new HostRunner(context, executor, memory));
}

std::unique_ptr<ChunkRunner>
MakeDeviceRunner(RunContext & context, DeviceState & state, std::size_t memoryLimit, std::size_t pinnedLimit)
{
  return std::unique_ptr<ChunkRunner>(new DeviceRunner(context, state, memoryLimit, pinnedLimit));
}

std::vector<std::int64_t>
RunSchedule(RunContext & context, const Plan & plan, std::vector<std::unique_ptr<ChunkRunner>> & runners,
            std::vector<std::string> & warnings, Executor & executor)
{
  TaskLoop loop(context, runners, warnings);
  switch (context.request.operation->GetSchedule())
  {
    case Schedule::Sweep:
      Sweep(context, plan, loop);
      break;
    case Schedule::TwoPass:
      TwoPass(context, plan, loop);
      break;
    case Schedule::Fixpoint:
      Fixpoint(context, plan, loop, executor);
      break;
    case Schedule::Independent:
      throw Error("independent chunks run through the pipeline");
  }
  return loop.GetFinished();
}

} // namespace chunkwise
