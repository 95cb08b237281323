/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwisePipeline.h"

#include "chunkwiseJobKernels.h"
#include "chunkwiseLocalProcessors.h"
#include "chunkwisePieceCopies.h"
#include "chunkwiseThreads.h"

#include <algorithm>
#include <deque>

namespace chunkwise
{

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
    , m_Kernels(state, context, plan, chain, m_Line, worker, splits, memoryLimit, pinnedLimit)
    , m_Buffers(m_Kernels.GetBuffers())
    , m_Copies(state, context, m_Buffers.GetImageBytes(), splits == 0, memoryLimit, pinnedLimit)
  {}

  std::int64_t
  Run()
  {
    this->RunThreads();
    // Transfers and kernels may still use the buffers when another one failed.
    for (const StreamHandle stream : { m_Copies.GetLoadStream(), m_Copies.GetStoreStream() })
    {
      m_Line.Guard([this, stream] { m_Device.Synchronize(stream); });
    }
    m_Kernels.Synchronize();
    const bool         wasRecalled = this->IsRecalled() && m_Line.HasOnlyStopped();
    const std::int64_t finished = this->PutBackUnfinished();
    if (m_Line.HasFailed() && !wasRecalled)
    {
      std::rethrow_exception(m_Line.GetFailure());
    }
    return finished;
  }

private:
  /** Until all jobs are done with, or one of the threads failed. */
  void
  RunThreads()
  {
    JoinedThreads threads;
    const auto    start = [&](void (Impl::*work)(std::size_t), std::size_t lane) {
      return threads.Start([this, work, lane] {
        m_Line.Guard([this, work, lane] {
          const ThreadBinding binding(m_Copies.GetProcessors());
          (this->*work)(lane);
        });
      });
    };
    m_Line.Guard([&] {
      this->Require(!m_Chain || threads.Start([this] { m_Line.Guard([this] { m_Kernels.HandCarries(); }); }));
      // One lane in each direction suffices.
      const StagingThreads & staging = m_Copies.GetThreads();
      for (std::size_t t = 0; t < std::max(staging.loading, staging.storing); ++t)
      {
        this->Require(t >= staging.loading || start(&Impl::Load, m_Copies.LoadLane(t)) || t > 0);
        this->Require(t >= staging.storing || start(&Impl::Store, m_Copies.StoreLane(t)) || t > 0);
      }
      this->Feed();
    });
    m_Line.Close();
  }

  /** Without a thread that it needs the device is left to others, or to the CPU. */
  void
  Require(bool isStarted) const
  {
    if (!isStarted)
    {
      throw DeviceError(DeviceError::Kind::Failed,
                        "StartThread",
                        m_Device.GetDescription().name,
                        0,
                        "the system starts no thread for its transfers");
    }
  }

  /** Gives the queue what others must do, and returns the chunks that are done. */
  std::int64_t
  PutBackUnfinished()
  {
    const bool         breaksChain = m_Chain && m_Line.HasFailed() && !m_Queue.IsFinished();
    std::vector<Chunk> again(m_Parts.begin(), m_Parts.end());
    std::size_t        claimed = again.size();
    std::int64_t       finished = 0;
    for (std::size_t number = 0; number < m_Line.GetSize(); ++number)
    {
      const Job & job = m_Line.At(number);
      claimed += job.finished ? 0 : 1;
      if (job.finished && !(breaksChain && !job.carryHandedOn))
      {
        ++finished;
        continue;
      }
      again.push_back(job.chunk);
      if (job.finished)
      {
        // The chunks behind it need a carry that only this device has had.
        m_Context.AddFinishedVoxels(-job.chunk.outputBox.NumberOfVoxels());
      }
    }
    m_Queue.PutBack(m_Worker, claimed, again);
    return finished;
  }

  bool
  IsRecalled() const
  {
    return m_Chain && m_Queue.GetRecalls() != m_Recalls;
  }

  void
  Await(EventHandle event)
  {
    AwaitEvent(m_Device, event, [this] { return m_Line.MustStop(); });
  }

  bool
  NextChunk(Chunk & chunk)
  {
    if (m_Parts.empty())
    {
      Chunk claimed;
      if (!m_Queue.Claim(m_Worker, claimed, [this] { return m_Line.MustStop(); }))
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

  /** A chunk is claimed when there is room for it, so that a sweep's are dealt to the devices in turn. */
  void
  Feed()
  {
    const JobMaker maker(m_Context, m_Plan, m_Copies);
    const Job *    previous = nullptr;
    Chunk          chunk;
    for (;;)
    {
      const EventHandle slotFree = m_Kernels.AwaitSlot();
      if (m_Line.MustStop() || !this->NextChunk(chunk))
      {
        return;
      }
      auto job = maker.Make(chunk, previous);
      job->slotFree = slotFree;
      job->carryHandedOn = m_Chain && m_Chain->IsLast(chunk);
      previous = job.get();
      m_Line.Add(std::move(job));
      m_Parts.pop_front();
      // A chunk whose input was carried whole has nothing to load.
      m_Kernels.IssueReady();
    }
  }

  void
  Load(std::size_t lane)
  {
    Piece piece;
    Job * job = nullptr;
    for (std::size_t count = 0; (job = m_Line.TakeLoad(piece)) != nullptr; ++count)
    {
      if (count >= StagingRing::PiecesOfLane)
      {
        this->Await(m_Copies.Arrived(lane, count));
      }
      {
        const JobLine::Lock lock = m_Line.Acquire();
        // Not before: what is loaded for the job ahead must not wait.
        if (job->slotFree)
        {
          m_Device.Wait(m_Copies.GetLoadStream(), job->slotFree);
          job->slotFree = nullptr;
        }
      }
      m_Copies.Load(lane, count, *job, piece, m_Buffers.Input(job->number, piece.input));
      bool complete = false;
      {
        const JobLine::Lock lock = m_Line.Acquire();
        complete = ++job->loadsBegun == job->loads.size();
      }
      if (complete)
      {
        // At once: the job need not wait for what is loaded behind it.
        m_Device.Record(m_Buffers.Loaded(job->number), m_Copies.GetLoadStream());
        {
          const JobLine::Lock lock = m_Line.Acquire();
          job->isLoaded = true;
        }
        m_Kernels.IssueReady();
      }
    }
  }

  void
  Store(std::size_t lane)
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
    const auto  awaitKernel = [this](const Job & job) {
      m_Device.Wait(m_Copies.GetStoreStream(), m_Buffers.Run(job.number));
    };
    for (;;)
    {
      Piece piece;
      Job * job = nullptr;
      if (begun - done < StagingRing::PiecesOfLane &&
          (job = m_Line.TakeStore(begun == done, piece, awaitKernel)) != nullptr)
      {
        char * const from = m_Buffers.Output(job->number) + job->bytesBefore;
        pieces[begun % StagingRing::PiecesOfLane] = { job, piece, m_Copies.BeginStore(lane, begun, *job, piece, from) };
        ++begun;
        continue;
      }
      if (begun == done)
      {
        return;
      }
      const InFlight & now = pieces[done % StagingRing::PiecesOfLane];
      this->Await(m_Copies.Arrived(lane, done));
      if (now.isStaged)
      {
        m_Copies.EndStore(lane, done, *now.job, now.piece);
      }
      ++done;
      m_Context.counts.bytesToHost += static_cast<std::int64_t>(now.piece.end - now.piece.begin);
      this->FinishStore(*now.job);
    }
  }

  void
  FinishStore(Job & job)
  {
    {
      const JobLine::Lock lock = m_Line.Acquire();
      if (++job.stored < job.stores.size())
      {
        return;
      }
      job.finished = true;
      job.head.reset();
      m_Kernels.ForgetCarry(job);
    }
    if (m_Context.request.operation->GetSchedule() == Schedule::Fixpoint)
    {
      m_Context.fixpoint.AddPart(job.chunk.outputBox);
    }
    m_Context.AddFinishedVoxels(job.chunk.outputBox.NumberOfVoxels());
    m_Queue.Finish(m_Worker);
    m_Line.Notify();
    m_Kernels.IssueReady();
  }

  Device &                m_Device;
  RunContext &            m_Context;
  const Plan &            m_Plan;
  ChunkQueue &            m_Queue;
  CarryChain *            m_Chain;
  const int               m_Recalls; ///< of the queue's, before the first claim
  const std::size_t       m_Worker;
  const int               m_Splits;
  JobLine                 m_Line{ [this] { return m_Context.ShouldStop() || this->IsRecalled(); } };
  JobKernels              m_Kernels;
  const PipelineBuffers & m_Buffers;
  PieceCopies             m_Copies;
  std::deque<Chunk>       m_Parts; ///< of a chunk that is claimed, not yet jobs
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
