/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseResidentRun.h"

#include "chunkwiseBoundedGrid.h"
#include "chunkwiseDeviceCarries.h"
#include "chunkwiseDeviceHandles.h"
#include "chunkwiseError.h"
#include "chunkwiseInterleaved.h"
#include "chunkwiseRegions.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace chunkwise
{

namespace
{

/** Kernels load and store vectors of up to so many bytes from the begin of an image. */
constexpr std::uintptr_t VectorBytes = 16;

bool
IsFixpoint(const ExecutionRequest & request)
{
  return request.operation->GetSchedule() == Schedule::Fixpoint;
}

/** The voxels of the box follow each other in memory as in a dense image of its size. */
bool
IsDense(const BufferView & view, const Box & box)
{
  std::int64_t expected = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (box.Extent(a) > 1 && view.stride[a] != expected)
    {
      return false;
    }
    expected *= box.Extent(a);
  }
  return true;
}

bool
IsAligned(const void * data)
{
  return reinterpret_cast<std::uintptr_t>(data) % VectorBytes == 0;
}

/** Kernels can use the box where it lies. Those of Fixpoint follow strides and load no vectors. */
bool
IsUsable(const BufferView & view, const Box & box, const Box & image)
{
  return image.Contains(box) && IsDense(view, box) && IsAligned(SubView(view, box).data);
}

/** The same for boxes of its extent wherever a plan puts them. */
bool
IsUsableAnywhere(const BufferView & view, const Box & box, const Box & image)
{
  if (!IsUsable(view, box, image))
  {
    return false;
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    const auto step = static_cast<std::uint64_t>(view.stride[a]) * PixelSize(view.kind);
    if (box.Extent(a) < view.box.Extent(a) && step % VectorBytes != 0)
    {
      return false;
    }
  }
  return true;
}

/** Whether the box is of whole pixels, whose components lie side by side, and that follow each other. */
bool
AreDensePixels(const BufferView & view, const Box & box)
{
  const std::int64_t components = CountInterleaved(view, box);
  return components > 1 && IsDense(SideBySide(view, components), SideBySide(box, components));
}

/** Whether a kernel reads and writes interleaved images of a chunk directly. */
bool
TakesPixels(const ExecutionRequest & request, const ChunkShape & shape)
{
  const KernelSet * const kernels = shape.kernels->FindSet(request.operation->GetName());
  return kernels && kernels->supportsInterleaved && request.operation->HasOutput() &&
         shape.image.Contains(shape.inputBox) && AreDensePixels(request.output, shape.outputBox) &&
         std::all_of(request.inputs.begin(),
                     request.inputs.end(),
                     [&](const BufferView & input) { return AreDensePixels(input, shape.inputBox); }) &&
         kernels->supportsInterleaved(*request.operation, shape);
}

/** Device memory that a chunk of this shape takes beside scratch. */
std::size_t
CopyBytes(const ExecutionRequest & request, const ChunkShape & shape)
{
  const Box  image = GetCopiedBox(*request.operation, shape.image);
  const bool isWhole = shape.outputBox == request.region;
  const auto bytesOf = [&](const BufferView & view, const Box & box) {
    const bool isUsable = isWhole ? IsUsable(view, box, image) : IsUsableAnywhere(view, box, image);
    return isUsable ? 0 : Arena::SizeOfBlock(DenseView(nullptr, view.kind, box).NumberOfBytes());
  };
  std::size_t               bytes = request.operation->HasOutput() ? bytesOf(request.output, shape.outputBox) : 0;
  const BoundedGrid * const grid = isWhole ? nullptr : GetBoundedGrid(*request.operation);
  for (const BufferView & input : request.inputs)
  {
    // The inputs of other chunks may be larger than that of this one.
    const auto most = [&] { return grid->GetMostInput(shape.outputBox.Extents(), shape.image.Extents()); };
    bytes += grid ? Arena::SizeOfBlock(DenseView(nullptr, input.kind, Box::FromExtent(most())).NumberOfBytes())
                  : bytesOf(input, shape.inputBox);
  }
  return bytes;
}

/** Works on a device's images, in a stream that begins when they are ready. */
class ResidentWorker
{
public:
  ResidentWorker(RunContext & context, DeviceState & state, std::size_t memoryLimit)
    : m_Context(context)
    , m_Image(GetCopiedBox(*context.request.operation, context.request.image))
    , m_State(state)
    , m_Device(*state.device)
    , m_Limit(memoryLimit)
    , m_Tables(state, memoryLimit)
    , m_Copies(context.request.inputs.size() + 1)
    , m_Stream(state.TakeHandle<DeviceStream>())
  {
    m_Device.Wait(m_Stream.Get(), context.residence->ready);
    if (IsFixpoint(context.request))
    {
      m_Sides = ArenaBlock(state.memory, sizeof(std::uint32_t), memoryLimit);
    }
  }
  ~ResidentWorker()
  {
    try
    {
      Synchronize();
      m_State.KeepHandle(std::move(m_Stream));
    }
    catch (const Error &)
    {
      // Who waited for the work has seen its failure.
    }
  }
  ResidentWorker(const ResidentWorker &) = delete;
  ResidentWorker &
  operator=(const ResidentWorker &) = delete;

  Device &
  GetDevice() const
  {
    return m_Device;
  }
  StreamHandle
  GetStream() const
  {
    return m_Stream.Get();
  }
  void
  Synchronize()
  {
    m_Device.Synchronize(m_Stream.Get());
  }

  /** Takes the memory that any of the chunks needs of what is not there yet. The stream must be idle. */
  void
  Prepare(const std::vector<Chunk> & chunks, const std::vector<const Kernel *> & kernels)
  {
    const ExecutionRequest & request = m_Context.request;
    std::size_t              scratch = 0;
    std::vector<std::size_t> copies(m_Copies.size(), 0);
    const auto               addCopy = [&](std::size_t i, const BufferView & view, const Box & box) {
      if (!IsFixpoint(request) && !m_TakesPixels && !IsUsable(view, box, m_Image))
      {
        copies[i] = std::max(copies[i], DenseView(nullptr, view.kind, box).NumberOfBytes());
      }
    };
    m_TakesPixels = std::all_of(chunks.begin(), chunks.end(), [&](const Chunk & chunk) {
      return TakesPixels(request, m_Context.ShapeOf(chunk, m_Device.GetKernels(), 1));
    });
    for (const Chunk & chunk : chunks)
    {
      for (std::size_t i = 0; i < request.inputs.size(); ++i)
      {
        addCopy(i, request.inputs[i], chunk.inputBox);
      }
      if (request.operation->HasOutput())
      {
        addCopy(request.inputs.size(), request.output, chunk.outputBox);
      }
      for (const Kernel * const kernel : kernels)
      {
        if (kernel && kernel->scratchBytes)
        {
          scratch = std::max(
            scratch, kernel->scratchBytes(*request.operation, m_Context.ShapeOf(chunk, m_Device.GetKernels(), 1)));
        }
      }
    }
    for (std::size_t i = 0; i < copies.size(); ++i)
    {
      Hold(m_Copies[i], copies[i]);
    }
    Hold(m_Scratch, scratch);
  }

  /** A call for a chunk that Prepare was told of. Its input is ready for work that is enqueued after this in the
   * stream. */
  KernelCall
  MakeCall(const Chunk & chunk)
  {
    const ExecutionRequest & request = m_Context.request;
    KernelCall               call;
    call.operation = request.operation.get();
    call.numberOfInputs = static_cast<int>(request.inputs.size());
    for (std::size_t i = 0; i < request.inputs.size(); ++i)
    {
      call.inputs[i] = ViewOf(request.inputs[i], chunk.inputBox, m_Copies[i]);
      if (IsCopy(call.inputs[i], m_Copies[i]))
      {
        m_Device.CopyVoxels(call.inputs[i], request.inputs[i], m_Image, m_Stream.Get());
      }
    }
    call.output.kind = request.output.kind;
    if (request.operation->HasOutput())
    {
      call.output = ViewOf(request.output, chunk.outputBox, m_Copies.back());
    }
    call.writable = chunk.outputBox;
    call.image = request.image;
    call.scratch = m_Scratch.Get();
    call.scratchBytes = m_Scratch.GetBytes();
    call.control = &m_Control;
    call.tables = &m_Tables;
    call.changedSides = static_cast<std::uint32_t *>(m_Sides.Get());
    return call;
  }

  void
  Launch(const Kernel & kernel, const KernelCall & call)
  {
    m_Device.Launch(kernel, call, m_Stream.Get());
  }

  /** Puts what the call gave where it belongs. */
  void
  Store(const KernelCall & call)
  {
    if (call.output.data && IsCopy(call.output, m_Copies.back()))
    {
      m_Device.CopyVoxels(SubView(m_Context.request.output, call.output.box), call.output, m_Image, m_Stream.Get());
    }
  }

private:
  void
  Hold(ArenaBlock & block, std::size_t bytes)
  {
    if (!block.Get() || block.GetBytes() < bytes)
    {
      block = ArenaBlock();
      block = ArenaBlock(m_State.memory, bytes, m_Limit);
    }
  }

  BufferView
  ViewOf(const BufferView & view, const Box & box, const ArenaBlock & copy) const
  {
    if (IsFixpoint(m_Context.request) || m_TakesPixels)
    {
      return SubView(view, box);
    }
    return DenseView(IsUsable(view, box, m_Image) ? SubView(view, box).data : copy.Get(), view.kind, box);
  }

  static bool
  IsCopy(const BufferView & view, const ArenaBlock & copy)
  {
    return copy.Get() && view.data == copy.Get();
  }

  RunContext &            m_Context;
  const Box               m_Image; ///< as copies know it
  DeviceState &           m_State;
  Device &                m_Device;
  const std::size_t       m_Limit;
  CachedTables            m_Tables;
  StopControl             m_Control{ &m_Context };
  bool                    m_TakesPixels{ false };
  std::vector<ArenaBlock> m_Copies; ///< of the inputs, then of the output
  ArenaBlock              m_Scratch;
  ArenaBlock              m_Sides; ///< of Fixpoint
  DeviceStream            m_Stream;
};

/** Chunks that were claimed; the last ones may be pending. */
class ResidentChunks
{
public:
  ResidentChunks(DeviceState & state, RunContext & context, const Plan & plan, ChunkQueue & queue, CarryChain * chain,
                 std::size_t worker, int splits, std::size_t memoryLimit)
    : m_Context(context)
    , m_Plan(plan)
    , m_Queue(queue)
    , m_Chain(chain)
    , m_Number(worker)
    , m_Splits(splits)
    , m_Worker(context, state, memoryLimit)
  {
    if (chain)
    {
      m_Carries = std::make_unique<DeviceCarries>(state, context, *chain, memoryLimit, 0);
    }
    std::vector<Chunk> all;
    for (const Chunk & chunk : plan.chunks)
    {
      const auto parts = SplitChunk(chunk, splits, plan.sweepAxis, context.plannerRequest);
      all.insert(all.end(), parts.begin(), parts.end());
    }
    m_Worker.Prepare(all,
                     { context.FindKernel(m_Worker.GetDevice().GetKernels(), &KernelSet::compute),
                       m_Carries ? m_Carries->GetAdvance() : nullptr });
    for (int i = 0; i < MostUnderWay; ++i)
    {
      m_Events.emplace_back(state);
    }
  }

  std::int64_t
  Run()
  {
    std::exception_ptr failure;
    try
    {
      RunAll();
      m_Worker.Synchronize();
    }
    catch (...)
    {
      failure = std::current_exception();
      GiveBack();
    }
    if (failure)
    {
      std::rethrow_exception(failure);
    }
    return static_cast<std::int64_t>(m_Finished);
  }

private:
  /** So that the device need not wait for this thread, and a run can be stopped soon. */
  static constexpr std::size_t MostUnderWay = 2;

  bool
  NextChunk(Chunk & chunk)
  {
    if (m_Parts.empty())
    {
      Chunk claimed;
      if (!m_Queue.Claim(m_Number, claimed, [this] { return m_Context.ShouldStop(); }))
      {
        return false;
      }
      const auto parts = SplitChunk(claimed, m_Splits, m_Plan.sweepAxis, m_Context.plannerRequest);
      m_Queue.Split(m_Number, parts.size());
      m_Parts.assign(parts.begin(), parts.end());
    }
    chunk = m_Parts.front();
    m_Parts.pop_front();
    return true;
  }

  void
  RunAll()
  {
    for (;;)
    {
      // Pending chunks count as claimed, and a worker that waits for the last claims would wait for itself.
      if (m_Parts.empty() || m_Chunks.size() - m_Finished == MostUnderWay)
      {
        FinishUpTo(m_Parts.empty() ? m_Chunks.size() : m_Finished + 1);
      }
      Chunk chunk;
      if (!NextChunk(chunk))
      {
        return;
      }
      m_Chunks.push_back(chunk);
      Issue(m_Chunks.size() - 1);
    }
  }

  void
  Issue(std::size_t number)
  {
    const Chunk &      chunk = m_Chunks[number];
    const StreamHandle stream = m_Worker.GetStream();
    Device &           device = m_Worker.GetDevice();
    if (m_Carries)
    {
      m_Carries->Take(number, chunk, [this] { return m_Context.ShouldStop(); });
    }
    KernelCall call = m_Worker.MakeCall(chunk);
    if (m_Carries)
    {
      m_Carries->Advance(number, chunk, call, stream);
      m_Carries->Enter(number, chunk, call, stream);
    }
    for (const Kernel * const kernel : m_Context.FindKernels(device.GetKernels(), chunk.outputBox))
    {
      m_Worker.Launch(*kernel, call);
    }
    m_Worker.Store(call);
    device.Record(m_Events[number % MostUnderWay].Get(), stream);
  }

  void
  FinishUpTo(std::size_t end)
  {
    for (; m_Finished < end; ++m_Finished)
    {
      AwaitEvent(
        m_Worker.GetDevice(), m_Events[m_Finished % MostUnderWay].Get(), [this] { return m_Context.ShouldStop(); });
      const Box & box = m_Chunks[m_Finished].outputBox;
      if (IsFixpoint(m_Context.request))
      {
        m_Context.fixpoint.AddPart(box);
      }
      m_Context.AddFinishedVoxels(box.NumberOfVoxels());
      m_Queue.Finish(m_Number);
    }
  }

  /** After a failure. For a sweep, also the chunks that others could not go on from: its carries were here alone. */
  void
  GiveBack() noexcept
  {
    try
    {
      m_Worker.Synchronize();
      if (m_Carries)
      {
        m_Carries->Synchronize();
      }
    }
    catch (...)
    {
      // The first failure counts.
    }
    std::vector<Chunk> again(m_Parts.begin(), m_Parts.end());
    const std::size_t  claimed = again.size() + m_Chunks.size() - m_Finished;
    for (std::size_t i = m_Chain && !m_Queue.IsFinished() ? 0 : m_Finished; i < m_Chunks.size(); ++i)
    {
      again.push_back(m_Chunks[i]);
      if (i < m_Finished)
      {
        m_Context.AddFinishedVoxels(-m_Chunks[i].outputBox.NumberOfVoxels());
      }
    }
    m_Queue.PutBack(m_Number, claimed, again);
  }

  RunContext &      m_Context;
  const Plan &      m_Plan;
  ChunkQueue &      m_Queue;
  CarryChain *      m_Chain;
  const std::size_t m_Number;
  const int         m_Splits;

  std::unique_ptr<DeviceCarries> m_Carries; ///< of a sweep
  std::vector<KeptEvent>         m_Events;
  /** Its stream is empty before what it uses goes. */
  ResidentWorker     m_Worker;
  std::deque<Chunk>  m_Parts;
  std::vector<Chunk> m_Chunks;
  std::size_t        m_Finished{ 0 };
};

class ResidentRunner : public ChunkRunner
{
public:
  ResidentRunner(RunContext & context, DeviceState & state, std::size_t memoryLimit)
    : m_Context(context)
    , m_State(state)
    , m_Limit(memoryLimit)
    , m_Worker(context, state, memoryLimit)
  {}

  void
  Run(const Step & step) override
  {
    const Kernel & kernel = m_Context.GetDeviceKernel(m_Worker.GetDevice(), step.role);
    try
    {
      m_Worker.Prepare({ step.chunk }, { &kernel });
      Enqueue(step, kernel);
    }
    catch (const DeviceError & error)
    {
      m_State.NoteFailure(error);
      EndEarly();
      throw;
    }
    catch (...)
    {
      EndEarly();
      throw;
    }
    if (step.reportsVoxels)
    {
      m_Context.AddFinishedVoxels(step.chunk.outputBox.NumberOfVoxels());
    }
  }

  std::string
  GetName() const override
  {
    return m_Worker.GetDevice().GetDescription().name;
  }

private:
  void
  EndEarly()
  {
    try
    {
      m_Worker.Synchronize();
    }
    catch (const Error &)
    {
      // The first error is the one to report.
    }
    LetGo();
  }

  void
  Enqueue(const Step & step, const Kernel & kernel)
  {
    Device &           device = m_Worker.GetDevice();
    const StreamHandle stream = m_Worker.GetStream();
    KernelCall         call = m_Worker.MakeCall(step.chunk);
    if (!step.writesOutput)
    {
      call.OmitOutput();
    }
    else if (step.changedSides)
    {
      const ExecutionRequest & request = m_Context.request;
      call.output = SubView(request.output, Intersect(step.chunk.inputBox, request.region));
      device.SetToZero(call.changedSides, sizeof(std::uint32_t), stream);
    }
    // The stream is empty when they go, see Run.
    if (step.sideIn && !step.sideIn->empty())
    {
      m_SideIn = ArenaBlock(m_State.memory, step.sideIn->size(), m_Limit);
      device.CopyToDevice(m_SideIn.Get(), step.sideIn->data(), step.sideIn->size(), stream);
      m_Context.counts.bytesToDevice += static_cast<std::int64_t>(step.sideIn->size());
      call.sideIn = m_SideIn.Get();
      call.sideInBytes = step.sideIn->size();
    }
    if (step.sideOut && !step.sideOut->empty())
    {
      m_SideOut = ArenaBlock(m_State.memory, step.sideOut->size(), m_Limit);
      call.sideOut = m_SideOut.Get();
      call.sideOutBytes = step.sideOut->size();
    }
    m_Worker.Launch(kernel, call);
    if (step.writesOutput)
    {
      m_Worker.Store(call);
    }
    if (step.changedSides)
    {
      device.CopyToHost(step.changedSides, call.changedSides, sizeof(std::uint32_t), stream);
    }
    if (call.sideOut)
    {
      device.CopyToHost(step.sideOut->data(), call.sideOut, step.sideOut->size(), stream);
      m_Context.counts.bytesToHost += static_cast<std::int64_t>(step.sideOut->size());
    }
    m_Worker.Synchronize();
    LetGo();
  }

  void
  LetGo()
  {
    m_SideIn = ArenaBlock();
    m_SideOut = ArenaBlock();
  }

  RunContext &      m_Context;
  DeviceState &     m_State;
  const std::size_t m_Limit;
  ArenaBlock        m_SideIn;
  ArenaBlock        m_SideOut;
  ResidentWorker    m_Worker;
};

} // namespace

Plan
MakeResidentPlan(const ExecutionRequest & request, PlannerRequest & plannerRequest, std::vector<std::string> & warnings)
{
  PlannerRequest inPlace = plannerRequest;
  inPlace.inPlace = true;
  inPlace.oneAtATime = true;
  inPlace.carryHalo = false;
  inPlace.pieceSeconds = 0;
  PlannerRequest copied = inPlace;
  for (PlannerDevice & device : inPlace.devices)
  {
    device.toDeviceRate = device.toHostRate = std::numeric_limits<double>::infinity();
  }
  if (request.operation->GetSchedule() == Schedule::Fixpoint)
  {
    plannerRequest = inPlace;
    return MakeReasonablePlan(plannerRequest, warnings);
  }
  inPlace.scratchBytes = [&request, kernel = plannerRequest.scratchBytes](const ChunkShape & shape) {
    // Each of them is a separate block.
    return (kernel ? RoundUp(kernel(shape)) : 0) + CopyBytes(request, shape);
  };
  if (request.operation->GetSchedule() == Schedule::Sweep)
  {
    plannerRequest = inPlace;
    return MakeReasonablePlan(plannerRequest, warnings);
  }
  // Slabs lie dense; other chunks are copied, which reads and writes them.
  copied.inPlace = false;
  for (PlannerDevice & device : copied.devices)
  {
    device.toDeviceRate = device.toHostRate = device.memoryRate / 2;
  }
  int slowest = MaxDimension - 1;
  while (slowest > 0 && request.region.Extent(slowest) <= 1)
  {
    --slowest;
  }
  PlannerRequest slabs = inPlace;
  slabs.sweepAxis = slowest;
  Plan plan;
  bool fits = true;
  try
  {
    plan = MakePlan(slabs);
  }
  catch (const BudgetError &)
  {
    fits = false;
  }
  if (!fits || plan.chunks.size() > 1)
  {
    try
    {
      std::vector<std::string> more;
      Plan                     other = MakeReasonablePlan(copied, more);
      if (!fits || other.seconds < plan.seconds)
      {
        warnings.insert(warnings.end(), more.begin(), more.end());
        plannerRequest = copied;
        return other;
      }
    }
    catch (const BudgetError &)
    {
      if (!fits)
      {
        throw;
      }
    }
  }
  plannerRequest = inPlace;
  return plan;
}

std::int64_t
RunResidentChunks(DeviceState & state, RunContext & context, const Plan & plan, ChunkQueue & queue, CarryChain * chain,
                  std::size_t worker, int splits, std::size_t memoryLimit)
{
  return ResidentChunks(state, context, plan, queue, chain, worker, splits, memoryLimit).Run();
}

std::unique_ptr<ChunkRunner>
MakeResidentRunner(RunContext & context, DeviceState & state, std::size_t memoryLimit)
{
  return std::unique_ptr<ChunkRunner>(new ResidentRunner(context, state, memoryLimit));
}

} // namespace chunkwise
