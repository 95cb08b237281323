/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDividedRun.h"

#include "chunkwiseDividedSteps.h"
#include "chunkwiseDivisionMonitor.h"
#include "chunkwiseError.h"

#include <algorithm>
#include <string>

namespace chunkwise
{

namespace
{

/** Loading, computing, storing. */
constexpr std::int64_t PartsOfProgress = 3;
/** Times as long as plans say that chunks of a Fixpoint take, to which values come back as often as they go.
 * Reconstructions of 51200^2 uint8 on two H200, in chunks and held together, ms: 119 and 161, 239 and 172, 312 and 210.
 */
constexpr double MoreForVisits = 2;

class DividedRun
{
public:
  DividedRun(Manager & manager, ManagerState & state, const ExecutionRequest & request,
             const std::vector<std::size_t> & used)
    : m_State(state)
    , m_Request(request)
    , m_Images(manager, request.budgets, request.image)
    , m_Steps(manager, state, request.operation, GetKinds(request), request.output.kind)
  {
    const std::vector<int> devices(used.begin(), used.end());
    const bool             isPossible = request.region == request.image && !request.hostTakesChunks &&
                            request.output.stride[0] == 1 &&
                            // A single step has nothing to hand on.
                            m_Steps.Get().size() > (request.division == ImageDivision::Always ? 0u : 1u);
    m_IsPossible = isPossible && m_Images.Divide(devices, m_Steps.Get());
  }

  /** The seconds that the run is expected to take; DividedSteps::Never: it cannot be done. */
  double
  EstimateSeconds()
  {
    if (!m_IsPossible)
    {
      return DividedSteps::Never;
    }
    std::vector<std::size_t> held;
    double                   copies = 0;
    for (const DividedImages::Part & part : m_Images.GetParts())
    {
      const DeviceDescription & device =
        m_State.devices[static_cast<std::size_t>(part.device)]->device->GetDescription();
      std::size_t loaded = 0;
      for (const BufferView & input : m_Request.inputs)
      {
        loaded += DividedImages::CountBytes(part, input.kind, true);
      }
      const PixelType kind = m_Request.output.kind;
      held.push_back(loaded + DividedImages::CountBytes(part, kind, true));
      copies = std::max(copies,
                        static_cast<double>(loaded) / device.toDeviceRate +
                          static_cast<double>(DividedImages::CountBytes(part, kind, false)) / device.toHostRate);
    }
    return copies + m_Steps.EstimateSeconds(m_Images, held, false);
  }

  Plan
  MakePlan(double seconds) const
  {
    Plan plan = m_Steps.MakePlan(m_Images, seconds);
    for (const DividedImages::Part & part : m_Images.GetParts())
    {
      for (const BufferView & input : m_Request.inputs)
      {
        plan.bytesToDevice += static_cast<double>(DividedImages::CountBytes(part, input.kind, true));
      }
      plan.bytesToHost += static_cast<double>(DividedImages::CountBytes(part, m_Request.output.kind, false));
    }
    return plan;
  }

  void
  Run(Monitor * monitor)
  {
    std::vector<DividedImages::Image> inputs;
    for (const BufferView & input : m_Request.inputs)
    {
      inputs.push_back(m_Images.Add(input.kind, true));
    }
    const DividedImages::Image output = m_Images.Add(m_Request.output.kind, true);
    DivisionMonitor            loading(monitor, 0, PartsOfProgress);
    for (std::size_t i = 0; i < inputs.size(); ++i)
    {
      m_Images.Load(inputs[i], m_Request.inputs[i], &loading);
    }
    DivisionMonitor computing(monitor, 1, PartsOfProgress);
    m_Steps.Compute(m_Images, inputs, output, false, &computing);
    DivisionMonitor storing(monitor, 2, PartsOfProgress);
    m_Images.Store(m_Request.output, output, &storing);
    if (monitor)
    {
      monitor->UpdateProgress(1.0);
    }
  }

  void
  Fill(ExecutionReport & report) const
  {
    m_Steps.Fill(m_Images, report);
    report.bytesToDevice = report.plan.bytesToDevice;
    report.bytesToHost = report.plan.bytesToHost;
    for (const DividedImages::Part & part : m_Images.GetParts())
    {
      report.peakPinned =
        std::max(report.peakPinned, m_State.devices[static_cast<std::size_t>(part.device)]->pinned.GetPeak());
    }
  }

private:
  static std::vector<PixelType>
  GetKinds(const ExecutionRequest & request)
  {
    std::vector<PixelType> kinds;
    for (const BufferView & input : request.inputs)
    {
      kinds.push_back(input.kind);
    }
    return kinds;
  }

  ManagerState &           m_State;
  const ExecutionRequest & m_Request;
  DividedImages            m_Images;
  DividedSteps             m_Steps;
  bool                     m_IsPossible{ false };
};

} // namespace

bool
PlanDivided(Manager & manager, ManagerState & state, const ExecutionRequest & request,
            const std::vector<std::size_t> & used, Plan & plan)
{
  if (request.division == ImageDivision::Never || request.imageDevice >= 0 || used.size() < 2 ||
      request.region.IsEmpty() || request.inputs.empty() || !request.operation->HasOutput())
  {
    return false;
  }
  try
  {
    DividedRun   run(manager, state, request, used);
    const double seconds = run.EstimateSeconds();
    const bool   isFixpoint = request.operation->GetSchedule() == Schedule::Fixpoint;
    const double ofChunks = plan.seconds * (isFixpoint ? MoreForVisits : 1);
    if (seconds < (request.division == ImageDivision::Always ? DividedSteps::Never : ofChunks))
    {
      plan = run.MakePlan(seconds);
      return true;
    }
  }
  catch (const Error &)
  {
    // A device does not answer: chunks can do without it.
  }
  return false;
}

bool
ExecuteDivided(Manager & manager, ManagerState & state, const ExecutionRequest & request,
               const std::vector<std::size_t> & used, Monitor * monitor, ExecutionReport & report)
{
  try
  {
    DividedRun run(manager, state, request, used);
    if (run.EstimateSeconds() == DividedSteps::Never)
    {
      return false;
    }
    run.Run(monitor);
    run.Fill(report);
    return true;
  }
  catch (const Aborted &)
  {
    throw;
  }
  catch (const Error & error)
  {
    report.warnings.push_back(std::string("the image is cut into chunks: ") + error.what());
    return false;
  }
}

} // namespace chunkwise
