/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwisePipeline.h"

#include "chunkwiseDeviceCarries.h"
#include "chunkwiseError.h"
#include "chunkwiseHostCopy.h"
#include "chunkwiseInterleaved.h"
#include "chunkwiseLocalProcessors.h"
#include "chunkwiseOverlap.h"
#include "chunkwisePipedCall.h"
#include "chunkwiseRoundUp.h"
#include "chunkwiseStagingRing.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <thread>

namespace chunkwise
{

namespace
{

constexpr std::size_t SmallestPiece = std::size_t{ 64 } << 10;
/** Bytes that take a device as long to copy as the call takes. */
constexpr std::size_t LeastDirect = std::size_t{ 64 } << 10;

/** Bytes [begin, end) of a chunk's input, or of its output. */
struct Piece
{
  int         input{ 0 };
  std::size_t begin{ 0 };
  std::size_t end{ 0 };
};

/** What the host computes of a chunk with. */
struct HeadJob
{
  HeadJob(RunContext & context, const Chunk & chunk, RunControl & control)
    : tables(*context.hostMemory, context.hostMeter, 0)
    , call{ context.head, context.MakeHostCall(chunk, *context.executor, tables) }
    , scratch(context, *context.hostMemory,
              context.head->scratchBytes(
                *context.request.operation,
                context.ShapeOf(chunk, context.hostKernels, static_cast<int>(context.executor->GetConcurrency()))),
              0)
  {
    call.call.control = &control;
    call.call.scratch = scratch.Get();
  }

  HostTables  tables;
  PipedCall   call;
  HostScratch scratch;
};

/** A chunk on its way. */
struct Job
{
  Chunk                      chunk;
  std::vector<DenseSequence> inputs;
  std::vector<DenseSequence> output; ///< one
  /** Components that lie side by side in the sequence of an input, or of the output, and apart on the device. */
  std::vector<std::int64_t> inputComponents;
  std::int64_t              outputComponents{ 1 };
  /** Bytes at the front of each input that the previous job's buffer already holds, and where there. */
  std::vector<std::size_t> overlapBytes;
  std::vector<std::size_t> overlapFrom;
  std::vector<std::size_t> overlapBlock; ///< bytes of one component there
  bool                     overlaps{ false };
  Box                      inputBox{};
  /** Fixpoint: bytes of the previous job's state that this one goes on from, ahead of its own, and where there. */
  std::size_t              bytesBefore{ 0 };
  std::size_t              layersFrom{ 0 };
  std::vector<Piece>       loads;
  std::size_t              nextLoad{ 0 };
  std::size_t              loadsBegun{ 0 };
  bool                     isLoaded{ false };   ///< all its loads are enqueued, and its load event
  EventHandle              slotFree{ nullptr }; ///< must have come before this one is loaded
  bool                     issued{ false };
  bool                     storeWaits{ false }; ///< the store stream was told to wait for the kernel
  std::vector<Piece>       stores;
  std::size_t              nextStore{ 0 };
  std::size_t              stored{ 0 };
  bool                     finished{ false };
  std::unique_ptr<HeadJob> head;
  // For a sweep:
  bool carryTaken{ false };    ///< it is known what enters
  bool advanced{ false };      ///< what makes the next carry is enqueued
  bool carryHandedOn{ false }; ///< the chain knows what leaves, or nobody will ask for it
};

std::vector<Piece>
CutIntoPieces(int input, std::size_t begin, std::size_t end, std::size_t pieceBytes)
{
  std::vector<Piece> pieces;
  for (; begin < end; begin += pieceBytes)
  {
    pieces.push_back({ input, begin, std::min(begin + pieceBytes, end) });
  }
  return pieces;
}

} // namespace

class Pipeline::Impl
{
public:
  Impl(DeviceState & state, RunContext & context, const Plan & plan, ChunkQueue & queue, CarryChain * chain,
       std::size_t worker, int splits, std::size_t memoryLimit, std::size_t pinnedLimit)
    : m_Device(*state.device)
    , m_Context(context)
    , m_Plan(plan)
    , m_Queue(queue)
    , m_Chain(chain)
    , m_Recalls(queue.GetRecalls())
    , m_Worker(worker)
    , m_Splits(splits)
    , m_Tables(state, memoryLimit)
    , m_InputSlots(plan.inputSlots)
    , m_OutputSlots(plan.outputSlots)
  {
    const auto & inputs = context.request.inputs;
    m_IsFixpoint = context.request.operation->GetSchedule() == Schedule::Fixpoint;
    m_Kernel =
      context.spilled
        ? SpillingKernels(m_Device.GetKernels(), *context.request.operation, context.head ? ".piped" : ".spilled")
            .kernel
        : m_Device.GetKernels().Find(context.request.operation->GetName());
    if (chain)
    {
      m_Carries = std::make_unique<DeviceCarries>(state, context, *chain, memoryLimit, pinnedLimit);
    }
    std::vector<std::size_t> inputBytes(inputs.size(), 0);
    std::size_t              outputBytes = 0;
    std::size_t              scratchBytes = 0;
    for (const Chunk & chunk : plan.chunks)
    {
      for (const Chunk & part : SplitChunk(chunk, splits, plan.sweepAxis, context.plannerRequest))
      {
        const auto inputVoxels = static_cast<std::size_t>(WithLayersBefore(part.inputBox).NumberOfVoxels());
        for (std::size_t i = 0; i < inputs.size(); ++i)
        {
          inputBytes[i] = std::max(inputBytes[i], inputVoxels * PixelSize(inputs[i].kind));
        }
        outputBytes = std::max(outputBytes,
                               static_cast<std::size_t>(WithLayersBefore(part.outputBox).NumberOfVoxels()) *
                                 PixelSize(context.request.output.kind));
        for (const Kernel * const kernel : { m_Kernel, m_Carries ? m_Carries->GetAdvance() : nullptr })
        {
          if (kernel && kernel->scratchBytes)
          {
            scratchBytes = std::max(
              scratchBytes,
              kernel->scratchBytes(*context.request.operation, context.ShapeOf(part, m_Device.GetKernels(), 1)));
          }
        }
      }
    }
    std::size_t slotBytes = 0;
    for (const std::size_t bytes : inputBytes)
    {
      m_InputOffsets.push_back(slotBytes);
      slotBytes += RoundUp(bytes);
    }
    for (int slot = 0; slot < m_InputSlots; ++slot)
    {
      m_Inputs.emplace_back(state.memory, slotBytes, memoryLimit);
    }
    for (int slot = 0; slot < m_OutputSlots; ++slot)
    {
      m_Outputs.emplace_back(state.memory, outputBytes, memoryLimit);
    }
    m_Scratch = ArenaBlock(state.memory, scratchBytes, memoryLimit);
    m_ScratchBytes = scratchBytes;
    if (m_IsFixpoint)
    {
      m_ChangedSides = ArenaBlock(state.memory, sizeof(std::uint32_t), memoryLimit);
    }

    const std::size_t threads = StagingRing::ThreadsOf(context.request, m_Device);
    m_Processors = FindLocalProcessors(m_Device.GetDescription().busAddress, threads);
    const ThreadBinding binding(m_Processors);
    m_Staging = std::make_unique<StagingRing>(
      state, StagingRing::Fit(threads, 2, slotBytes + outputBytes, SmallestPiece, pinnedLimit), pinnedLimit);
    for (const auto & input : inputs)
    {
      m_InputIsPinned.push_back(IsPinned(input));
    }
    m_OutputIsPinned = IsPinned(context.request.output);
    if (splits == 0)
    {
      MakeRoomForPixels(state, memoryLimit);
    }

    for (int i = 0; i <= m_InputSlots; ++i)
    {
      m_LoadEvents.emplace_back(m_Device);
      m_RunEvents.emplace_back(m_Device);
      m_OverlapEvents.emplace_back(m_Device);
    }
  }

  std::int64_t
  Run()
  {
    std::vector<std::thread> threads;
    try
    {
      for (std::size_t t = 0; t < m_Staging->GetThreads(); ++t)
      {
        threads.emplace_back([this, t] {
          Guard([this, t] {
            const ThreadBinding binding(m_Processors);
            Load(t);
          });
        });
        threads.emplace_back([this, t] {
          Guard([this, t] {
            const ThreadBinding binding(m_Processors);
            Store(m_Staging->GetThreads() + t);
          });
        });
      }
      if (m_Chain)
      {
        threads.emplace_back([this] { Guard([this] { HandCarries(); }); });
      }
      Guard([this] { Feed(); });
    }
    catch (...)
    {
      Fail(std::current_exception());
    }
    {
      const std::lock_guard<std::mutex> lock(m_Mutex);
      m_NoMoreJobs = true;
    }
    m_Changed.notify_all();
    for (auto & thread : threads)
    {
      thread.join();
    }
    // Transfers and kernels may still use the buffers when another one failed.
    for (const StreamHandle stream : { m_LoadStream.Get(), m_RunStream.Get(), m_StoreStream.Get() })
    {
      Guard([this, stream] { m_Device.Synchronize(stream); });
    }
    if (m_Carries)
    {
      Guard([this] { m_Carries->Synchronize(); });
    }
    const bool         wasRecalled = IsRecalled() && HasOnlyStopped();
    const bool         breaksChain = m_Chain && m_Failure && !m_Queue.IsFinished();
    std::vector<Chunk> again(m_Parts.begin(), m_Parts.end());
    std::size_t        claimed = again.size();
    std::int64_t       finished = 0;
    for (const auto & job : m_Jobs)
    {
      claimed += job->finished ? 0 : 1;
      if (job->finished && !(breaksChain && !job->carryHandedOn))
      {
        ++finished;
        continue;
      }
      again.push_back(job->chunk);
      if (job->finished)
      {
        // What comes behind it needs a carry that only this device has had.
        m_Context.AddFinishedVoxels(-job->chunk.outputBox.NumberOfVoxels());
      }
    }
    m_Queue.PutBack(m_Worker, claimed, again);
    if (m_Failure && !wasRecalled)
    {
      std::rethrow_exception(m_Failure);
    }
    return finished;
  }

private:
  bool
  IsPinned(const BufferView & view) const
  {
    std::int64_t pixels = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      pixels += (view.box.Extent(a) - 1) * view.stride[a];
    }
    return m_Device.IsPinned(view.data, static_cast<std::size_t>(pixels) * PixelSize(view.kind));
  }

  /** What of the host's memory a piece is copied from, or to; nothing where it goes through the staging ring. */
  static std::vector<DenseSequence::Stretch>
  FindPinned(bool isPinned, const DenseSequence & sequence, const Piece & piece)
  {
    return isPinned ? sequence.FindStretches(piece.begin, piece.end, LeastDirect)
                    : std::vector<DenseSequence::Stretch>();
  }

  template <typename TBody>
  void
  Guard(TBody && body) noexcept
  {
    try
    {
      body();
    }
    catch (...)
    {
      Fail(std::current_exception());
    }
  }

  void
  Fail(std::exception_ptr failure)
  {
    {
      const std::lock_guard<std::mutex> lock(m_Mutex);
      if (!m_Failure)
      {
        m_Failure = std::move(failure);
      }
      m_Failed = true;
    }
    m_Changed.notify_all();
  }

  /** No error ended the run of the pipeline. */
  bool
  HasOnlyStopped() const
  {
    try
    {
      if (m_Failure)
      {
        std::rethrow_exception(m_Failure);
      }
      return true;
    }
    catch (const Aborted &)
    {
      return true;
    }
    catch (...)
    {
      return false;
    }
  }

  bool
  IsRecalled() const
  {
    return m_Chain && m_Queue.GetRecalls() != m_Recalls;
  }

  bool
  MustStop() const
  {
    return m_Failed || m_Context.ShouldStop() || IsRecalled();
  }

  /** Waits under the lock until `ready`; throws Aborted if the run ends before that. */
  template <typename TCondition>
  void
  WaitFor(std::unique_lock<std::mutex> & lock, TCondition && ready)
  {
    while (!ready())
    {
      if (MustStop())
      {
        throw Aborted();
      }
      // A stop of the whole run has no signal of its own here.
      m_Changed.wait_for(lock, std::chrono::milliseconds(5));
    }
  }

  void
  WaitForEvent(EventHandle event)
  {
    AwaitEvent(m_Device, event, [this] { return MustStop(); });
  }

  bool
  NextChunk(Chunk & chunk)
  {
    if (m_Parts.empty())
    {
      Chunk claimed;
      if (!m_Queue.Claim(m_Worker, claimed, [this] { return MustStop(); }))
      {
        return false;
      }
      const auto parts = SplitChunk(claimed, m_Splits, m_Plan.sweepAxis, m_Context.plannerRequest);
      m_Queue.Split(m_Worker, parts.size());
      m_Parts.assign(parts.begin(), parts.end());
    }
    chunk = m_Parts.front();
    return true;
  }

  /** Where the common voxels of two inputs lie, if they are one block at the end of one and the begin of the other, or
   * one for each component. */
  void
  FindOverlap(const Job * previous, Job & job) const
  {
    const auto inputs = m_Context.request.inputs.size();
    job.overlapBytes.assign(inputs, 0);
    job.overlapFrom.assign(inputs, 0);
    job.overlapBlock.assign(inputs, 0);
    if (!previous || inputs == 0 || m_InputSlots < 2 || !m_Context.plannerRequest.carryHalo)
    {
      return;
    }
    const std::int64_t components = job.inputComponents[0];
    const bool         areSame = std::all_of(
      job.inputComponents.begin(), job.inputComponents.end(), [&](std::int64_t c) { return c == components; });
    if (!areSame || components != previous->inputComponents[0])
    {
      return;
    }
    const Overlap overlap = chunkwise::FindOverlap(
      SideBySide(previous->chunk.inputBox, components), SideBySide(job.chunk.inputBox, components), m_Plan.sweepAxis);
    job.overlaps = overlap.goesOn;
    for (std::size_t i = 0; i < inputs; ++i)
    {
      const std::size_t pixel = PixelSize(m_Context.inputKinds[i]);
      job.overlapBytes[i] = pixel * static_cast<std::size_t>(overlap.voxels);
      job.overlapFrom[i] = pixel * static_cast<std::size_t>(overlap.from);
      job.overlapBlock[i] = previous->inputs[i].GetNumberOfBytes() / static_cast<std::size_t>(components);
    }
  }

  /** Fixpoint: the box, extended backwards along the sweep axis by the halo. */
  Box
  WithLayersBefore(const Box & box) const
  {
    Box with = box;
    if (m_IsFixpoint)
    {
      const Operation & operation = *m_Context.request.operation;
      with.lower[m_Plan.sweepAxis] =
        PadAndCrop(box, operation.GetHalo(m_Context.request.image.Extents()), m_Context.request.region)
          .lower[m_Plan.sweepAxis];
    }
    return with;
  }

  /** A chunk that follows on the previous one goes on from the last layers of its state: what comes from there need not
   * come in a visit of its own. */
  void
  FindLayersBefore(const Job * previous, Job & job) const
  {
    const Box & to = job.chunk.outputBox;
    job.inputBox = job.chunk.inputBox;
    if (!m_IsFixpoint || !previous || m_OutputSlots < 2)
    {
      return;
    }
    const int          s = m_Plan.sweepAxis;
    const Box &        from = previous->chunk.outputBox;
    const Box          with = WithLayersBefore(to);
    const std::int64_t layers = to.lower[s] - with.lower[s];
    if (Continues(from, to, s) && layers <= from.Extent(s))
    {
      job.inputBox = with;
      job.bytesBefore = static_cast<std::size_t>(with.NumberOfVoxels() - to.NumberOfVoxels()) *
                        PixelSize(m_Context.request.output.kind);
      job.layersFrom = previous->bytesBefore + previous->output[0].GetNumberOfBytes() - job.bytesBefore;
    }
  }

  /** Waits until it is known what the next job's input buffer must wait for; nullptr: nothing. */
  EventHandle
  AwaitSlot()
  {
    std::unique_lock<std::mutex> lock(m_Mutex);
    const auto                   number = static_cast<std::int64_t>(m_Jobs.size());
    const std::int64_t           user = number - m_InputSlots;
    if (user < 0)
    {
      return nullptr;
    }
    // The slot's last reader is its own kernel, or the copy of its end to the next job's buffer, which comes ahead of
    // that job's kernel.
    const bool         overlapped = user + 1 < number && m_Jobs[static_cast<std::size_t>(user) + 1]->overlaps;
    const std::int64_t reader = overlapped ? user + 1 : user;
    WaitFor(lock, [&] { return m_Jobs[static_cast<std::size_t>(reader)]->issued; });
    return overlapped ? OverlapEvent(reader) : RunEvent(reader);
  }

  /** A chunk is claimed when there is room for it, so that a sweep's are dealt to the devices in turn. */
  void
  Feed()
  {
    Chunk chunk;
    for (;;)
    {
      const EventHandle slotFree = AwaitSlot();
      if (MustStop() || !NextChunk(chunk))
      {
        return;
      }
      auto job = std::make_unique<Job>();
      job->chunk = chunk;
      job->slotFree = slotFree;
      const auto & request = m_Context.request;
      FindLayersBefore(m_Jobs.empty() ? nullptr : m_Jobs.back().get(), *job);
      for (const BufferView & input : request.inputs)
      {
        job->inputComponents.push_back(m_PixelsToDevice.Get() ? ComponentsTogether(input, job->inputBox) : 1);
      }
      FindOverlap(m_Jobs.empty() ? nullptr : m_Jobs.back().get(), *job);
      for (std::size_t i = 0; i < request.inputs.size(); ++i)
      {
        const std::int64_t components = job->inputComponents[i];
        job->inputs.push_back(SequenceOf(request.inputs[i], job->inputBox, components));
        const auto pieces = CutIntoPieces(static_cast<int>(i),
                                          job->overlapBytes[i],
                                          job->inputs.back().GetNumberOfBytes(),
                                          PieceBytes(request.inputs[i].kind, components));
        job->loads.insert(job->loads.end(), pieces.begin(), pieces.end());
      }
      if (m_Chain)
      {
        job->carryHandedOn = m_Chain->IsLast(chunk);
      }
      job->isLoaded = job->loads.empty();
      job->outputComponents = m_PixelsToHost.Get() ? ComponentsTogether(request.output, chunk.outputBox) : 1;
      job->output.push_back(SequenceOf(request.output, chunk.outputBox, job->outputComponents));
      job->stores =
        CutIntoPieces(0, 0, job->output[0].GetNumberOfBytes(), PieceBytes(request.output.kind, job->outputComponents));
      {
        const std::lock_guard<std::mutex> lock(m_Mutex);
        m_Jobs.push_back(std::move(job));
        m_Parts.pop_front();
      }
      m_Changed.notify_all();
      // A chunk whose input was carried whole has nothing to load.
      IssueReady();
    }
  }

  /** Memory for a piece of pixels with components side by side, in each direction: the host copies them as they lie,
   * and the device takes them apart and puts them together. Without room for it the host does, voxel by voxel. */
  void
  MakeRoomForPixels(DeviceState & state, std::size_t memoryLimit)
  {
    const auto & request = m_Context.request;
    const auto   make = [&](ArenaBlock & block, const BufferView & view) {
      if (!block.Get() && ComponentsTogether(view, view.box) > 1)
      {
        block = ArenaBlock(state.memory, m_Staging->GetPieceBytes(), memoryLimit);
      }
    };
    try
    {
      for (const BufferView & input : request.inputs)
      {
        make(m_PixelsToDevice, input);
      }
      make(m_PixelsToHost, request.output);
    }
    catch (const BudgetError &)
    {}
    catch (const DeviceError & error)
    {
      if (!IsOutOfMemory(error))
      {
        throw;
      }
    }
  }

  /** Components that `box` of the view has side by side, if a piece holds those of some pixels; else 1. */
  std::int64_t
  ComponentsTogether(const BufferView & view, const Box & box) const
  {
    const std::int64_t components = CountInterleaved(view, box);
    return PieceBytes(view.kind, components) > 0 ? components : 1;
  }

  /** Bytes of the largest piece of whole pixels. */
  std::size_t
  PieceBytes(PixelKind kind, std::int64_t components) const
  {
    const std::size_t pixel = PixelSize(kind) * static_cast<std::size_t>(components);
    return m_Staging->GetPieceBytes() / pixel * pixel;
  }

  DenseSequence
  SequenceOf(const BufferView & view, const Box & box, std::int64_t components) const
  {
    const Box & image = m_Context.request.image;
    return DenseSequence(SideBySide(view, components), SideBySide(box, components), SideBySide(image, components));
  }

  /** A piece of pixels as it lies in `together`, and in `apart`, which holds all bytes of its sequence. */
  static PixelViews
  ViewPixels(void * together, char * apart, PixelKind kind, std::int64_t components, std::size_t bytes,
             const Piece & piece)
  {
    const auto         number = static_cast<std::size_t>(components);
    const std::int64_t pixel = static_cast<std::int64_t>(PixelSize(kind)) * components;
    return chunkwise::ViewPixels(together,
                                 apart + piece.begin / number,
                                 kind,
                                 components,
                                 static_cast<std::int64_t>(piece.end - piece.begin) / pixel,
                                 static_cast<std::int64_t>(bytes) / pixel);
  }

  EventHandle
  LoadEvent(std::size_t job) const
  {
    return m_LoadEvents[job % m_LoadEvents.size()].Get();
  }

  EventHandle
  RunEvent(std::int64_t job) const
  {
    return m_RunEvents[static_cast<std::size_t>(job) % m_RunEvents.size()].Get();
  }

  EventHandle
  OverlapEvent(std::int64_t job) const
  {
    return m_OverlapEvents[static_cast<std::size_t>(job) % m_OverlapEvents.size()].Get();
  }

  char *
  InputMemory(std::size_t job) const
  {
    return static_cast<char *>(m_Inputs[job % m_Inputs.size()].Get());
  }

  char *
  OutputMemory(std::size_t job) const
  {
    return static_cast<char *>(m_Outputs[job % m_Outputs.size()].Get());
  }

  /** The next piece to load; false when there will be none. */
  bool
  TakeLoad(std::size_t & jobNumber, Piece & piece)
  {
    std::unique_lock<std::mutex> lock(m_Mutex);
    WaitFor(lock, [this] {
      while (m_LoadJob < m_Jobs.size() && m_Jobs[m_LoadJob]->nextLoad == m_Jobs[m_LoadJob]->loads.size())
      {
        ++m_LoadJob;
      }
      return m_LoadJob < m_Jobs.size() || m_NoMoreJobs;
    });
    if (m_LoadJob == m_Jobs.size())
    {
      return false;
    }
    jobNumber = m_LoadJob;
    Job & job = *m_Jobs[m_LoadJob];
    piece = job.loads[job.nextLoad++];
    return true;
  }

  void
  Load(std::size_t thread)
  {
    std::size_t jobNumber = 0;
    Piece       piece;
    for (std::size_t count = 0; TakeLoad(jobNumber, piece); ++count)
    {
      const std::size_t slot = count % StagingRing::PiecesOfLane;
      if (count >= StagingRing::PiecesOfLane)
      {
        WaitForEvent(m_Staging->Event(thread, slot));
      }
      Job * job = nullptr;
      {
        const std::lock_guard<std::mutex> lock(m_Mutex);
        job = m_Jobs[jobNumber].get();
        // Not before: what is loaded for the job ahead must not wait.
        if (job->slotFree)
        {
          m_Device.Wait(m_LoadStream.Get(), job->slotFree);
          job->slotFree = nullptr;
        }
      }
      const auto            input = static_cast<std::size_t>(piece.input);
      const DenseSequence & sequence = job->inputs[input];
      const std::size_t     bytes = piece.end - piece.begin;
      auto                  stretches = this->FindPinned(m_InputIsPinned[input], sequence, piece);
      if (stretches.empty())
      {
        stretches.push_back({ m_Staging->Piece(thread, slot), 0, bytes });
        sequence.Gather(piece.begin, piece.end, stretches.front().address);
      }
      const auto copy = [&](void * to) {
        for (const auto & stretch : stretches)
        {
          m_Device.CopyToDevice(
            static_cast<char *>(to) + stretch.at, stretch.address, stretch.bytes, m_LoadStream.Get());
        }
      };
      char * const to = InputMemory(jobNumber) + m_InputOffsets[input];
      if (const std::int64_t components = job->inputComponents[input]; components > 1)
      {
        const std::lock_guard<std::mutex> lock(m_PixelsMutex);
        copy(m_PixelsToDevice.Get());
        const PixelViews views = ViewPixels(
          m_PixelsToDevice.Get(), to, m_Context.inputKinds[input], components, sequence.GetNumberOfBytes(), piece);
        m_Device.CopyVoxels(views.apart, views.together, views.apart.box, m_LoadStream.Get());
      }
      else
      {
        copy(to + piece.begin);
      }
      m_Device.Record(m_Staging->Event(thread, slot), m_LoadStream.Get());
      m_Context.bytesToDevice += static_cast<std::int64_t>(bytes);
      bool complete = false;
      {
        const std::lock_guard<std::mutex> lock(m_Mutex);
        complete = ++job->loadsBegun == job->loads.size();
      }
      if (complete)
      {
        // At once: the job need not wait for what is loaded behind it.
        m_Device.Record(LoadEvent(jobNumber), m_LoadStream.Get());
        {
          const std::lock_guard<std::mutex> lock(m_Mutex);
          job->isLoaded = true;
        }
        IssueReady();
      }
    }
  }

  /** Enqueues the kernels of all jobs that are loaded and have a free output buffer, in order, and ahead of them what
   * makes the carries that others may wait for. */
  void
  IssueReady()
  {
    std::unique_lock<std::mutex> lock(m_Mutex);
    if (m_Issuing)
    {
      return;
    }
    m_Issuing = true;
    while (!m_Failed)
    {
      if (MayAdvance())
      {
        Job & job = *m_Jobs[m_AdvanceJob];
        lock.unlock();
        AwaitLoads(m_AdvanceJob, job);
        m_Carries->Advance(m_AdvanceJob, job.chunk, MakeCall(m_AdvanceJob, job), m_RunStream.Get());
        lock.lock();
        job.advanced = true;
        ++m_AdvanceJob;
      }
      else if (MayIssue())
      {
        Job & job = *m_Jobs[m_IssueJob];
        lock.unlock();
        Issue(m_IssueJob, job);
        lock.lock();
        job.issued = true;
        ++m_IssueJob;
      }
      else
      {
        break;
      }
      m_Changed.notify_all();
    }
    m_Issuing = false;
  }

  bool
  MayAdvance() const
  {
    if (!m_Chain || m_AdvanceJob == m_Jobs.size() ||
        m_AdvanceJob > m_IssueJob + DeviceCarries::Lead(m_Chain->IsShared()))
    {
      return false;
    }
    const Job & job = *m_Jobs[m_AdvanceJob];
    return job.isLoaded && job.carryTaken;
  }

  bool
  MayIssue() const
  {
    if (m_IssueJob == m_Jobs.size())
    {
      return false;
    }
    const Job & job = *m_Jobs[m_IssueJob];
    const bool  outputFree = m_IssueJob < m_Outputs.size() || m_Jobs[m_IssueJob - m_Outputs.size()]->finished;
    return job.isLoaded && outputFree && (!m_Chain || m_IssueJob < m_AdvanceJob);
  }

  /** What comes next in the run stream waits for all that was loaded for the job; of a sweep, once for a chunk. */
  void
  AwaitLoads(std::size_t number, const Job & job)
  {
    if (!job.loads.empty())
    {
      m_Device.Wait(m_RunStream.Get(), LoadEvent(number));
    }
  }

  KernelCall
  MakeCall(std::size_t number, const Job & job)
  {
    KernelCall call;
    call.operation = m_Context.request.operation.get();
    call.numberOfInputs = static_cast<int>(job.inputs.size());
    for (std::size_t i = 0; i < job.inputs.size(); ++i)
    {
      call.inputs[i] = DenseView(InputMemory(number) + m_InputOffsets[i], m_Context.inputKinds[i], job.inputBox);
    }
    call.output = DenseView(
      OutputMemory(number), m_Context.request.output.kind, job.bytesBefore > 0 ? job.inputBox : job.chunk.outputBox);
    call.writable = job.chunk.outputBox;
    call.image = m_Context.request.image;
    call.scratch = m_Scratch.Get();
    call.scratchBytes = m_ScratchBytes;
    call.control = &m_Control;
    call.tables = &m_Tables;
    call.changedSides = static_cast<std::uint32_t *>(m_ChangedSides.Get());
    return call;
  }

  void
  Issue(std::size_t number, Job & job)
  {
    if (!m_Chain)
    {
      AwaitLoads(number, job);
    }
    if (job.overlaps)
    {
      for (std::size_t i = 0; i < job.inputs.size(); ++i)
      {
        // A block for each component, whose planes lie one after the other.
        const auto blocks = static_cast<std::size_t>(job.inputComponents[i]);
        for (std::size_t block = 0; block < blocks; ++block)
        {
          const std::size_t bytes = job.inputs[i].GetNumberOfBytes() / blocks;
          m_Device.CopyOnDevice(InputMemory(number) + m_InputOffsets[i] + block * bytes,
                                InputMemory(number - 1) + m_InputOffsets[i] + block * job.overlapBlock[i] +
                                  job.overlapFrom[i] / blocks,
                                job.overlapBytes[i] / blocks,
                                m_RunStream.Get());
        }
      }
      m_Device.Record(OverlapEvent(static_cast<std::int64_t>(number)), m_RunStream.Get());
    }
    if (job.bytesBefore > 0)
    {
      m_Device.CopyOnDevice(
        OutputMemory(number), OutputMemory(number - 1) + job.layersFrom, job.bytesBefore, m_RunStream.Get());
    }
    KernelCall call = MakeCall(number, job);
    if (m_Chain)
    {
      m_Carries->Enter(number, job.chunk, call, m_RunStream.Get());
    }
    if (m_IsFixpoint)
    {
      m_Device.SetToZero(call.changedSides, sizeof(std::uint32_t), m_RunStream.Get());
    }
    if (m_Context.spilled)
    {
      call.sideOut = m_Context.spilled->Get(m_Worker);
      call.sideOutBytes = m_Context.spilled->GetBytes();
      if (m_Context.head)
      {
        job.head = std::make_unique<HeadJob>(m_Context, job.chunk, m_Control);
        call.sideIn = &job.head->call;
        call.sideInBytes = sizeof(job.head->call);
      }
      m_Device.Launch(*m_Kernel, call, m_RunStream.Get());
    }
    else
    {
      for (const Kernel * const kernel : m_Context.FindKernels(m_Device.GetKernels(), job.chunk.outputBox))
      {
        m_Device.Launch(*kernel, call, m_RunStream.Get());
      }
    }
    m_Device.Record(RunEvent(static_cast<std::int64_t>(number)), m_RunStream.Get());
  }

  /** Brings the jobs' carries from and to the chain, in order. */
  void
  HandCarries()
  {
    const auto mustStop = [this] { return MustStop(); };
    for (std::size_t number = 0;; ++number)
    {
      Job * job = nullptr;
      {
        std::unique_lock<std::mutex> lock(m_Mutex);
        WaitFor(lock, [&] { return number < m_Jobs.size() || m_NoMoreJobs; });
        if (number == m_Jobs.size())
        {
          return;
        }
        job = m_Jobs[number].get();
      }
      m_Carries->Take(number, job->chunk, mustStop);
      {
        const std::lock_guard<std::mutex> lock(m_Mutex);
        job->carryTaken = true;
      }
      IssueReady();
      if (m_Chain->IsShared() && !m_Chain->IsLast(job->chunk))
      {
        {
          std::unique_lock<std::mutex> lock(m_Mutex);
          WaitFor(lock, [job] { return job->advanced; });
        }
        m_Carries->HandOn(number, job->chunk, mustStop);
        const std::lock_guard<std::mutex> lock(m_Mutex);
        job->carryHandedOn = true;
        ForgetCarry(*job);
      }
    }
  }

  /** What entered a job that is done with is kept no longer. */
  void
  ForgetCarry(const Job & job)
  {
    if (m_Chain && job.finished && job.carryHandedOn)
    {
      m_Chain->Forget(m_Chain->Begin(job.chunk));
    }
  }

  /** The next piece to store; false when there is none (`wait`: when there will be none). */
  bool
  TakeStore(bool wait, std::size_t & jobNumber, Piece & piece)
  {
    std::unique_lock<std::mutex> lock(m_Mutex);
    const auto                   found = [this] {
      while (m_StoreJob < m_Jobs.size() && m_Jobs[m_StoreJob]->nextStore == m_Jobs[m_StoreJob]->stores.size())
      {
        ++m_StoreJob;
      }
      return m_StoreJob < m_Jobs.size() && m_Jobs[m_StoreJob]->issued;
    };
    if (wait)
    {
      WaitFor(lock, [&] { return found() || (m_NoMoreJobs && m_StoreJob == m_Jobs.size()); });
    }
    if (!found())
    {
      return false;
    }
    Job & job = *m_Jobs[m_StoreJob];
    if (!job.storeWaits)
    {
      m_Device.Wait(m_StoreStream.Get(), RunEvent(static_cast<std::int64_t>(m_StoreJob)));
      job.storeWaits = true;
    }
    jobNumber = m_StoreJob;
    piece = job.stores[job.nextStore++];
    return true;
  }

  void
  Store(std::size_t thread)
  {
    struct InFlight
    {
      Job * job;
      Piece piece;
      bool  isStaged;
    };
    InFlight    pieces[StagingRing::PiecesOfLane];
    std::size_t begun = 0;
    std::size_t done = 0;
    for (;;)
    {
      std::size_t jobNumber = 0;
      Piece       piece;
      if (begun - done < StagingRing::PiecesOfLane && TakeStore(begun == done, jobNumber, piece))
      {
        const std::size_t slot = begun % StagingRing::PiecesOfLane;
        InFlight &        now = pieces[slot];
        now.piece = piece;
        {
          const std::lock_guard<std::mutex> lock(m_Mutex);
          now.job = m_Jobs[jobNumber].get();
        }
        auto stretches = this->FindPinned(m_OutputIsPinned, now.job->output[0], piece);
        now.isStaged = stretches.empty();
        if (now.isStaged)
        {
          stretches.push_back({ m_Staging->Piece(thread, slot), 0, piece.end - piece.begin });
        }
        const auto copy = [&](const void * from) {
          for (const auto & stretch : stretches)
          {
            m_Device.CopyToHost(
              stretch.address, static_cast<const char *>(from) + stretch.at, stretch.bytes, m_StoreStream.Get());
          }
        };
        char * const from = OutputMemory(jobNumber) + now.job->bytesBefore;
        if (now.job->outputComponents > 1)
        {
          const std::lock_guard<std::mutex> lock(m_PixelsMutex);
          const PixelViews                  views = ViewPixels(m_PixelsToHost.Get(),
                                              from,
                                              m_Context.request.output.kind,
                                              now.job->outputComponents,
                                              now.job->output[0].GetNumberOfBytes(),
                                              piece);
          m_Device.CopyVoxels(views.together, views.apart, views.apart.box, m_StoreStream.Get());
          copy(m_PixelsToHost.Get());
        }
        else
        {
          copy(from + piece.begin);
        }
        m_Device.Record(m_Staging->Event(thread, slot), m_StoreStream.Get());
        ++begun;
        continue;
      }
      if (begun == done)
      {
        return;
      }
      const std::size_t slot = done % StagingRing::PiecesOfLane;
      InFlight &        now = pieces[slot];
      WaitForEvent(m_Staging->Event(thread, slot));
      if (now.isStaged)
      {
        now.job->output[0].Scatter(now.piece.begin, now.piece.end, m_Staging->Piece(thread, slot));
      }
      ++done;
      m_Context.bytesToHost += static_cast<std::int64_t>(now.piece.end - now.piece.begin);
      FinishStore(*now.job);
    }
  }

  void
  FinishStore(Job & job)
  {
    {
      const std::lock_guard<std::mutex> lock(m_Mutex);
      if (++job.stored < job.stores.size())
      {
        return;
      }
      job.finished = true;
      job.head.reset();
      ForgetCarry(job);
    }
    if (m_IsFixpoint)
    {
      m_Context.AddPart(job.chunk.outputBox);
    }
    m_Context.AddFinishedVoxels(job.chunk.outputBox.NumberOfVoxels());
    m_Queue.Finish(m_Worker);
    m_Changed.notify_all();
    IssueReady();
  }

  Device &          m_Device;
  RunContext &      m_Context;
  const Plan &      m_Plan;
  ChunkQueue &      m_Queue;
  CarryChain *      m_Chain;
  const int         m_Recalls; ///< of the queue's, before the first claim
  const std::size_t m_Worker;
  const int         m_Splits;
  const Kernel *    m_Kernel{ nullptr };
  CachedTables      m_Tables;
  StopControl       m_Control{ &m_Context };

  std::unique_ptr<DeviceCarries> m_Carries; ///< of a sweep

  int                      m_InputSlots;
  int                      m_OutputSlots;
  std::vector<std::size_t> m_InputOffsets;
  std::vector<ArenaBlock>  m_Inputs;
  std::vector<ArenaBlock>  m_Outputs;
  ArenaBlock               m_Scratch;
  std::size_t              m_ScratchBytes{ 0 };
  bool                     m_IsFixpoint{ false };
  /** Fixpoint: a word that kernels write and nobody reads, since all that chunks share is visited again. */
  ArenaBlock                   m_ChangedSides;
  std::vector<int>             m_Processors;  ///< of the threads that copy; empty: any
  std::unique_ptr<StagingRing> m_Staging;     ///< a lane for each loader, then one for each storer
  std::mutex                   m_PixelsMutex; ///< of what uses these:
  ArenaBlock                   m_PixelsToDevice;
  ArenaBlock                   m_PixelsToHost;
  std::vector<bool>            m_InputIsPinned;
  bool                         m_OutputIsPinned{ false };

  DeviceStream             m_LoadStream{ m_Device };
  DeviceStream             m_RunStream{ m_Device };
  DeviceStream             m_StoreStream{ m_Device };
  std::vector<DeviceEvent> m_LoadEvents;
  std::vector<DeviceEvent> m_RunEvents;
  std::vector<DeviceEvent> m_OverlapEvents;

  std::mutex                        m_Mutex;
  std::condition_variable           m_Changed;
  std::vector<std::unique_ptr<Job>> m_Jobs;
  std::deque<Chunk>                 m_Parts;
  std::size_t                       m_LoadJob{ 0 };
  std::size_t                       m_AdvanceJob{ 0 };
  std::size_t                       m_IssueJob{ 0 };
  std::size_t                       m_StoreJob{ 0 };
  bool                              m_Issuing{ false };
  bool                              m_NoMoreJobs{ false };
  std::atomic<bool>                 m_Failed{ false };
  std::exception_ptr                m_Failure;
};

Pipeline::Pipeline(DeviceState & state, RunContext & context, const Plan & plan, ChunkQueue & queue, CarryChain * chain,
                   std::size_t worker, int splits, std::size_t memoryLimit, std::size_t pinnedLimit)
  : m_Impl(new Impl(state, context, plan, queue, chain, worker, splits, memoryLimit, pinnedLimit))
{}

Pipeline::~Pipeline() = default;

std::int64_t
Pipeline::Run()
{
  return m_Impl->Run();
}

bool
Pipeline::CanSplit(const Plan & plan, int splits, const PlannerRequest & request)
{
  for (const Chunk & chunk : plan.chunks)
  {
    for (const Chunk & part : SplitChunk(chunk, splits, plan.sweepAxis, request))
    {
      if (!HalveChunk(part, plan.sweepAxis, request).empty())
      {
        return true;
      }
    }
  }
  return false;
}

} // namespace chunkwise
