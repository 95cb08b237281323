/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFixpointWork.h"
#include "chunkwiseTaskLoop.h"

namespace chunkwise
{

namespace
{

/** Voxels that visits go over while the host settles one, and voxels settled in the time that a visit takes whatever
 * its size (an H200 and 16 cores: 0.15 ns, 2.5 ns and 0.3 ms). */
constexpr double VisitedForSettled = 16;
constexpr double VoxelsOfVisit = 1 << 17;

/** Visits to where parts meet until nothing changes, see Operation. */
class FixpointRun
{
public:
  FixpointRun(RunContext & context, const Plan & plan, TaskLoop & loop, ChunkRunner & host)
    : m_Context(context)
    , m_Operation(*context.request.operation)
    , m_Halo(m_Operation.GetHalo(context.request.image.Extents()))
    , m_Loop(loop)
    , m_Host(host)
    , m_Parts(context.fixpoint.GetParts())
    , m_Work(context.request.region, m_Halo, m_Parts, plan.sweepAxis, context.fixpoint.mostVoxelsOfVisit,
             [this](const Box & layer, const Box & held) { return IsActive(layer, held); })
    , m_Progress(&context, context.fixpoint.visitShare, context.fixpoint.visitShare)
    , m_Patience(HasHostKernel(&KernelSet::solveGlobally) ? m_Operation.GetPatience() : WithoutEnd)
  {
    if (context.fixpoint.stateIsTorn)
    {
      m_Work.MarkAll();
    }
  }

  void
  Go()
  {
    MakeVisits();
    if (!m_Work.IsDone())
    {
      m_Patience = WithoutEnd;
      SolveGlobally();
      MakeVisits();
    }
    m_Progress.Complete();
    m_Context.counts.revisits += m_Work.GetVisits();
    m_Context.counts.revisitedVoxels += m_Work.GetVisitedVoxels();
    Finish();
  }

private:
  static constexpr double WithoutEnd = -1;

  struct Task
  {
    FixpointWork::Visit visit;
    /** Another visit ran at some time of this one, perhaps in the same memory. */
    std::atomic<bool> overlapped{ false };
    bool              failed{ false };
  };
  using TaskPointer = std::shared_ptr<Task>;

  bool
  HasHostKernel(KernelRole role) const
  {
    return m_Context.FindKernel(m_Context.host.kernels, role) != nullptr;
  }

  bool
  IsActive(const Box & layer, const Box & held)
  {
    if (!HasHostKernel(&KernelSet::isActive))
    {
      return true;
    }
    std::uint32_t open = 0;
    m_Host.Run({ &KernelSet::isActive, { layer, held }, nullptr, nullptr, true, &open });
    return open != 0;
  }

  bool
  IsOutOfPatience() const
  {
    const double cost = static_cast<double>(m_Work.GetVisitedVoxels()) / VisitedForSettled +
                        static_cast<double>(m_Work.GetVisits()) * VoxelsOfVisit;
    return m_Patience >= 0 && cost > m_Patience * static_cast<double>(m_Context.request.region.NumberOfVoxels());
  }

  /** Until nothing is left to visit, or patience ends. */
  void
  MakeVisits()
  {
    m_Loop.Loop<TaskPointer>([this](TaskPointer & task) { return Take(task); },
                             [this](ChunkRunner & runner, const TaskPointer & task) { Visit(runner, *task); },
                             [this](const TaskPointer & task) { End(task); },
                             [this](const TaskPointer & task) { PutBack(task); },
                             [this] { return m_Work.IsDone() || (IsOutOfPatience() && m_Running.empty()); });
  }

  bool
  Take(TaskPointer & task)
  {
    task = std::make_shared<Task>();
    if (IsOutOfPatience() || (m_OneAtATime && !m_Running.empty()) || !m_Work.Take(task->visit))
    {
      return false;
    }
    for (const TaskPointer & other : m_Running)
    {
      other->overlapped = task->overlapped = true;
    }
    m_Running.push_back(task);
    return true;
  }

  /** If memory fails, it may do for a smaller visit, or for one without others beside it. */
  void
  Visit(ChunkRunner & runner, Task & task) const
  {
    const Box & box = task.visit.box;
    try
    {
      runner.Run({ &KernelSet::compute,
                   { box, PadAndCrop(box, m_Halo, m_Context.request.image) },
                   nullptr,
                   nullptr,
                   true,
                   &task.visit.sides });
    }
    catch (const Error & error)
    {
      task.failed = IsOutOfMemory(error) && (task.overlapped || FixpointWork::CanShrink(task.visit));
      if (!task.failed)
      {
        throw;
      }
    }
  }

  void
  End(const TaskPointer & task)
  {
    Forget(task);
    if (!task->failed)
    {
      m_Work.Finish(task->visit);
      Report();
      return;
    }
    if (task->overlapped)
    {
      m_OneAtATime = true;
    }
    else
    {
      m_Work.Shrink(task->visit);
    }
    m_Work.PutBack(task->visit);
    ++m_Context.counts.retries;
  }

  void
  PutBack(const TaskPointer & task)
  {
    Forget(task);
    m_Context.fixpoint.stateIsTorn = true;
    m_Work.PutBack(task->visit);
  }

  void
  Forget(const TaskPointer & task)
  {
    m_Running.erase(std::find(m_Running.begin(), m_Running.end(), task));
  }

  /** Nobody knows how many visits there will be: their share of the progress is approached. */
  void
  Report()
  {
    const auto visited = static_cast<double>(m_Work.GetVisitedVoxels());
    const auto all = static_cast<double>(m_Context.request.region.NumberOfVoxels());
    const auto now =
      static_cast<std::int64_t>(static_cast<double>(m_Context.fixpoint.visitShare) * visited / (visited + all));
    m_Progress.AddFinishedVoxels(now - m_Reported);
    m_Reported = now;
  }

  void
  SolveGlobally()
  {
    const Box & region = m_Context.request.region;
    try
    {
      std::uint32_t sides = 0;
      m_Host.Run({ &KernelSet::solveGlobally, { region, region }, nullptr, nullptr, true, &sides });
      m_Work.MarkAll();
      ++m_Context.counts.solvedGlobally;
    }
    catch (const BudgetError &)
    {
      // The host has not the memory for it: visits go on.
    }
  }

  void
  Finish()
  {
    if (!HasHostKernel(&KernelSet::finish))
    {
      return;
    }
    for (const Box & part : m_Parts)
    {
      if (!m_Context.StandsAlone(part))
      {
        m_Host.Run({ &KernelSet::finish, { part, part } });
      }
    }
  }

  RunContext &             m_Context;
  const Operation &        m_Operation;
  const Halo               m_Halo;
  TaskLoop &               m_Loop;
  ChunkRunner &            m_Host;
  const std::vector<Box>   m_Parts;
  FixpointWork             m_Work;
  ShareControl             m_Progress;
  std::int64_t             m_Reported{ 0 };
  double                   m_Patience;
  std::vector<TaskPointer> m_Running;
  bool                     m_OneAtATime{ false };
};

} // namespace

void
RunFixpoint(RunContext & context, const Plan & plan, TaskLoop & loop, ChunkRunner & host)
{
  FixpointRun(context, plan, loop, host).Go();
}

} // namespace chunkwise
