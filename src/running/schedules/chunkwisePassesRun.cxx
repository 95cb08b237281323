/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwisePassesRun.h"

#include "chunkwiseError.h"
#include "chunkwiseOutOfCoreRunner.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace chunkwise
{

namespace
{

/** The time of a stage in proportion to that of the others. */
double
WeightOf(const Operation & stage)
{
  return stage.GetSchedule() == Schedule::Independent ? 1 : 2;
}

/** Shows the caller one stage's progress as a part of the whole. */
class StageMonitor : public Monitor
{
public:
  StageMonitor(Monitor & whole, double & last, double begin, double end)
    : m_Whole(whole)
    , m_Last(last)
    , m_Begin(begin)
    , m_End(end)
  {}
  void
  UpdateProgress(double fraction) override
  {
    const double sum = fraction >= 1 ? m_End : m_Begin + fraction * (m_End - m_Begin);
    // A stage begins where the one before it ended.
    if (sum > m_Last)
    {
      m_Last = sum;
      m_Whole.UpdateProgress(sum);
    }
  }
  bool
  ShouldAbort() override
  {
    return m_Whole.ShouldAbort();
  }

private:
  Monitor &    m_Whole;
  double &     m_Last;
  const double m_Begin;
  const double m_End;
};

/** Throws ParameterError if the operation has no stages to run. */
const StagedOperation &
GetStaged(const Operation & operation)
{
  const StagedOperation * const staged = operation.AsStaged();
  if (!staged)
  {
    throw ParameterError("operation " + operation.GetName() + " has schedule Passes, but no stages");
  }
  return *staged;
}

} // namespace

PassesRun::PassesRun(ManagerState & manager, const ExecutionRequest & request, const std::size_t * device)
  : m_Manager(manager)
  , m_Device(device ? manager.devices[*device].get() : nullptr)
  , m_Request(request)
  , m_Operation(GetStaged(*request.operation))
  , m_Stages(m_Operation.GetStages())
  , m_LastReaders(m_Operation.GetLastReaders())
  , m_Limit(device ? manager.DeviceLimit(*device, request) : manager.HostLimit(request))
{
  if (static_cast<int>(request.inputs.size()) != m_Operation.GetNumberOfInputs())
  {
    throw ParameterError("operation " + m_Operation.GetName() + " takes " +
                         std::to_string(m_Operation.GetNumberOfInputs()) + " inputs, not " +
                         std::to_string(request.inputs.size()));
  }
  std::vector<PixelType> kinds;
  for (const auto & input : request.inputs)
  {
    kinds.push_back(input.kind);
  }
  m_Operation.Validate(request.image.Extents());
  m_Operation.CheckKinds(kinds, request.output.kind);
  m_Boxes = m_Operation.GetStageBoxes(request.region, request.image);
  m_Kinds = m_Operation.GetStageKinds(kinds[0], request.output.kind);
  std::size_t most = 0;
  for (std::size_t i = 0; i < m_Stages.size() && !request.region.IsEmpty(); ++i)
  {
    const ExecutionRequest stage = MakeRequest(i);
    m_Manager.CheckRequest(stage, m_Manager.MakePlannerRequest(stage, nullptr));
    most = std::max(most, GetBytesDuring(i));
  }
  if (m_Limit && most > m_Limit)
  {
    const std::size_t least = m_Device ? most : GetLeast(most);
    throw BudgetError(m_Operation.GetName() + " needs " + std::to_string(least) + " bytes of " + GetMemoryName() +
                        " memory, " + std::to_string(most) +
                        " of them for the images between its stages, more than the budget of " +
                        std::to_string(m_Limit) + " bytes",
                      least,
                      m_Limit);
  }
}

std::size_t
PassesRun::GetLeast(std::size_t most) const
{
  std::size_t least = most;
  for (std::size_t i = 0; i < m_Stages.size(); ++i)
  {
    ExecutionRequest stage = MakeRequest(i);
    stage.budgets.host = 1;
    try
    {
      PlannerRequest           plannerRequest;
      std::vector<std::string> warnings;
      (void)m_Manager.MakeHostPlan(stage, plannerRequest, warnings);
    }
    catch (const BudgetError & error)
    {
      least = std::max(least, GetBytesDuring(i) + error.needed);
    }
  }
  return least;
}

std::size_t
PassesRun::GetBytes(std::size_t stage) const
{
  return IsLast(stage) || m_Boxes[stage].IsEmpty()
           ? 0
           : Arena::SizeOfBlock(DenseView(nullptr, m_Kinds[stage], m_Boxes[stage]).NumberOfBytes());
}

std::size_t
PassesRun::GetBytesDuring(std::size_t stage) const
{
  std::size_t bytes = 0;
  for (std::size_t i = 0; i <= stage; ++i)
  {
    bytes += m_LastReaders[i] >= stage ? GetBytes(i) : 0;
  }
  return bytes;
}

ExecutionRequest
PassesRun::MakeRequest(std::size_t stage) const
{
  ExecutionRequest request = m_Request;
  request.operation = m_Stages[stage].operation;
  request.inputs.clear();
  for (const int input : m_Stages[stage].inputs)
  {
    const auto from = static_cast<std::size_t>(input < 0 ? Stage::Input(input) : input);
    request.inputs.push_back(input < 0 ? m_Request.inputs.at(from) : DenseView(nullptr, m_Kinds[from], m_Boxes[from]));
  }
  request.region = m_Boxes[stage];
  if (!IsLast(stage))
  {
    request.output = DenseView(nullptr, m_Kinds[stage], m_Boxes[stage]);
  }
  // The plans of devices account for the memory in use.
  if (m_Limit && !m_Device)
  {
    // 0 would be no limit.
    request.budgets.host = std::max<std::size_t>(m_Limit - std::min(m_Limit, GetBytesDuring(stage)), 1);
  }
  return request;
}

ArenaBlock
PassesRun::Hold(std::size_t stage, Monitor * monitor)
{
  const std::size_t bytes = GetBytes(stage);
  if (bytes == 0)
  {
    return ArenaBlock();
  }
  if (m_Device)
  {
    return m_Device->HoldImage(bytes, m_Limit);
  }
  Arena & memory = m_Manager.host.memory;
  if (m_Limit)
  {
    m_Manager.DropKeptSpill();
  }
  m_Manager.host.MakeRoom(bytes, m_Limit);
  for (;;)
  {
    try
    {
      return ArenaBlock(memory, bytes);
    }
    catch (const BudgetError &)
    {
      if (bytes > memory.GetBudget())
      {
        throw;
      }
    }
    if (monitor && monitor->ShouldAbort())
    {
      throw Aborted();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

ExecutionReport
PassesRun::Execute(const ExecuteFunction & execute, Monitor * monitor)
{
  std::vector<double> ends;
  double              sum = 0;
  for (const Stage & stage : m_Stages)
  {
    ends.push_back(sum += WeightOf(*stage.operation));
  }
  std::vector<ArenaBlock> images(m_Stages.size());
  ExecutionReport         report;
  double                  progress = -1;
  if (m_Request.region.IsEmpty())
  {
    if (monitor)
    {
      monitor->UpdateProgress(1.0);
    }
    report.backend = "cpu";
    return report;
  }
  for (std::size_t i = 0; i < m_Stages.size(); ++i)
  {
    images[i] = Hold(i, monitor);
    ExecutionRequest request = MakeRequest(i);
    for (std::size_t k = 0; k < m_Stages[i].inputs.size(); ++k)
    {
      const int input = m_Stages[i].inputs[k];
      if (input >= 0)
      {
        request.inputs[k].data = images[static_cast<std::size_t>(input)].Get();
      }
    }
    if (!IsLast(i))
    {
      request.output.data = images[i].Get();
    }
    std::unique_ptr<StageMonitor> part;
    if (monitor)
    {
      part = std::make_unique<StageMonitor>(*monitor, progress, i > 0 ? ends[i - 1] / sum : 0.0, ends[i] / sum);
    }
    try
    {
      ExecutionReport ofStage = execute(request, part.get());
      ofStage.peakHost += m_Device ? 0 : GetBytesDuring(i);
      AddReport(ofStage, report);
      report = std::move(ofStage);
    }
    catch (const BudgetError & error)
    {
      const std::size_t held = GetBytesDuring(i);
      // Devices have separate budgets.
      if (!m_Limit || m_Device || error.budget != request.budgets.host || held == 0)
      {
        throw;
      }
      // Later stages may need more than this one.
      const std::size_t least = GetLeast(error.needed + held);
      throw BudgetError(m_Operation.GetName() + " needs " + std::to_string(least) + " bytes of " + GetMemoryName() +
                          " memory, " + std::to_string(held) +
                          " of them for the images between its stages, more than the budget of " +
                          std::to_string(m_Limit) + " bytes",
                        least,
                        m_Limit);
    }
    for (std::size_t k = 0; k <= i; ++k)
    {
      if (m_LastReaders[k] <= i)
      {
        images[k].Reset();
      }
    }
  }
  return report;
}

} // namespace chunkwise
