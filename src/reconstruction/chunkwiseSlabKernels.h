/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabKernels_h
#define chunkwiseSlabKernels_h

#include "chunkwiseSlabPlan.h"
#include "chunkwiseSlabTransfer.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace chunkwise
{

/** Work on a voxel in proportion: flooded, contracted and packed, finished. */
constexpr double SlabFloodWork = 5;
constexpr double SlabContractWork = 2;
constexpr double SlabFinishWork = 3;

/** Counts the seconds of its life. */
class Stopwatch
{
public:
  explicit Stopwatch(double & seconds)
    : m_Seconds(seconds)
    , m_Begin(std::chrono::steady_clock::now())
  {}
  ~Stopwatch() { m_Seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - m_Begin).count(); }

private:
  double &                                    m_Seconds;
  const std::chrono::steady_clock::time_point m_Begin;
};

/** How far a run in slabs is, and whether it is to stop. */
class SlabProgress : public RunControl
{
public:
  explicit SlabProgress(double allWork)
    : m_AllWork(std::max(allWork, 1.0))
  {}
  void
  Stop()
  {
    m_Stop = true;
  }
  const std::atomic<bool> &
  GetStop() const
  {
    return m_Stop;
  }
  bool
  ShouldStop() const override;
  void
  CheckStop() const;
  /** The calling thread calls `poll` from now on whenever it asks whether to stop. Set before others work. */
  void
  SetPoll(std::function<void()> poll);
  double
  GetFraction() const;
  /** Throws Aborted. */
  void
  AddWork(double work);
  /** Voxels that are flooded count until EndFlood. */
  void
  BeginFlood()
  {
    m_CountsFlood = true;
  }
  void
  EndFlood(double voxels);
  void
  AddFinishedVoxels(std::int64_t voxels) override
  {
    m_Flooded += m_CountsFlood ? voxels : 0;
  }

private:
  const double              m_AllWork;
  std::atomic<double>       m_Work{ 0 };
  std::atomic<std::int64_t> m_Flooded{ 0 }; ///< voxels of the slab at hand
  std::atomic<bool>         m_CountsFlood{ false };
  std::atomic<bool>         m_Stop{ false };
  std::function<void()>     m_Poll;
  std::thread::id           m_Poller;
};

/** The kernels of a slab, which run on the manager's devices. */
class SlabKernels
{
public:
  SlabKernels(Manager & manager, const SlabRequest & request, const ReconstructionOperation & operation,
              const SlabPlanner & planner, const SlabPlan & plan, Executor & executor, SlabMemory & memory,
              SlabProgress & progress, SlabReport & report);

  BufferView
  ViewOf(char * buffer, const Box & box) const
  {
    return DenseView(buffer, m_Kind, box);
  }
  /** A kernel of the host, of the operation. */
  void
  Call(KernelRole role, const std::vector<BufferView> & inputs, const BufferView & state)
  {
    CallOf(role, m_Operation, inputs, state, m_Image);
  }
  /** Brings a state to the fixed point that its box has without others. */
  void
  Flood(char * state, char * mask, const Box & box);
  /** The operation from begin to end, of a piece with whole volumes. */
  void
  Compute(const std::vector<BufferView> & inputs, const BufferView & output);
  void
  Copy(char * to, const char * from, std::size_t bytes);

private:
  void
  CallOf(KernelRole role, const Operation & operation, const std::vector<BufferView> & inputs, const BufferView & state,
         const Box & image);
  void
  Execute(std::shared_ptr<const Operation> operation, std::vector<BufferView> inputs, BufferView output);

  Manager &                       m_Manager;
  const SlabRequest &             m_Request;
  const ReconstructionOperation & m_Operation;
  const SlabPlanner &             m_Planner;
  const SlabPlan &                m_Plan;
  Executor &                      m_Executor;
  SlabMemory &                    m_Memory;
  SlabProgress &                  m_Progress;
  SlabReport &                    m_Report;
  const Box                       m_Image;
  const PixelType                 m_Kind;
};

/** Throws what keeps the request's backend from computing, where only devices may. */
void
CheckDevices(Manager & manager, const SlabRequest & request, const ReconstructionOperation & operation);

} // namespace chunkwise

#endif
