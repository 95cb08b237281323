/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseManagerState_h
#define chunkwiseManagerState_h

#include "chunkwiseRunContext.h"

#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

namespace chunkwise
{

/** A device that no other run uses meanwhile. */
class DeviceTurn
{
public:
  /** Throws Aborted if the caller wants to stop while others use it. */
  DeviceTurn(DeviceState & state, Monitor * monitor);
  ~DeviceTurn()
  {
    if (!m_IsShared)
    {
      m_State.EndTurn();
    }
  }
  DeviceTurn(const DeviceTurn &) = delete;
  DeviceTurn &
  operator=(const DeviceTurn &) = delete;

private:
  DeviceState & m_State;
  const bool    m_IsShared; ///< SharedTurns end it
};

/** The state of a manager, which turns requests and budgets into plans. */
struct ManagerState
{
  std::vector<std::shared_ptr<DeviceState>> devices;
  std::string                               whyNone;
  HostState                                 host;
  const KernelRegistry *                    hostKernels{ nullptr };
  mutable std::mutex                        mutex;
  Budgets                                   budgets;
  std::vector<std::size_t>                  defaultDeviceBudgets;
  std::unique_ptr<Executor>                 executor;
  /** Under a budget of the host. A run of passes holds memory while it waits for more: it runs alone. */
  std::shared_timed_mutex hostTurn;

  Executor &
  GetExecutor(const ExecutionRequest & request);

  std::size_t
  DeviceLimit(std::size_t index, const ExecutionRequest & request);

  /** The bytes that are available on a device beside the taken ones. */
  static std::size_t
  GetRoom(DeviceState & state, std::size_t taken);

  Budgets
  GetOwnBudgets() const;

  /** The manager's own pinned budget, bytes per device. */
  std::size_t
  PinnedBudget() const;

  /** Bytes per device, beside what a run spills. */
  std::size_t
  PinnedLimit(const ExecutionRequest & request, std::size_t spilledBytes = 0);

  /** Bytes that runs may spill, of each of some devices; 0: this one may not. */
  std::size_t
  SpillLimit(const ExecutionRequest & request, const std::vector<std::size_t> & used);

  std::size_t
  HostLimit(const ExecutionRequest & request);

  /** Gives back what devices keep of memory that runs have spilled: a budget of the host counts on it. */
  void
  DropKeptSpill();

  /** The devices that a request may use; why there are none goes to `reason`. */
  std::vector<std::size_t>
  SelectDevices(const ExecutionRequest & request, std::string & reason);

  /** Whose transforms the request takes on a device, or the CPU (nullptr), see Kernel::provider. Throws
   * ParameterError, which names the library, if one is named that is not there. */
  std::set<std::string>
  GetTransforms(const ExecutionRequest & request, const Device * device);

  void
  CheckRequest(const ExecutionRequest & request, const PlannerRequest & plannerRequest);

  PlannerRequest
  MakePlannerRequest(const ExecutionRequest & request, const KernelRegistry * kernels);

  /** The plan for the CPU alone: the whole region (the kernel cuts its own tiles), or what the host's budget has room
   * for. */
  Plan
  MakeHostPlan(const ExecutionRequest & request, PlannerRequest & plannerRequest, std::vector<std::string> & warnings);
  PlannerRequest
  MakeHostPlannerRequest(const ExecutionRequest & request);

  /** Leaves the first device alone in `used` where all of them are expected to save less than the others take to start.
   * Whether it is described: to ask a device again takes long beside a small run. */
  bool
  LeaveOutIdlers(const ExecutionRequest & request, PlannerRequest & plannerRequest, std::vector<std::size_t> & used);
  /** Takes devices that do not answer out of `used` and says so; throws what the last one's call did if none does.
   * `isResident`: the images lie in the memory of the one device. `spilled`: what the plan's chunks spill; nullptr:
   * they do not. */
  Plan
  MakeDevicePlan(const ExecutionRequest & request, PlannerRequest & plannerRequest, std::vector<std::size_t> & used,
                 std::vector<std::string> & warnings, bool isResident, SpilledBytes * spilled);

  BudgetCost
  GetBudgetCost(const ExecutionRequest & request, std::string & memory);

  /** The planner's description of a device, see DescribeDevices. */
  PlannerDevice
  MakePlannerDevice(std::size_t index, const ExecutionRequest & request, bool dropTables);

private:
  /** The planner's description of the devices in `used`; takes devices that do not answer out of it and says so. Throws
   * what the last one's call did if none does. `dropTables`: tables that earlier runs left are given up first. */
  void
  DescribeDevices(const ExecutionRequest & request, PlannerRequest & plannerRequest, std::vector<std::size_t> & used,
                  bool dropTables, std::vector<std::string> & warnings);
  /** A plan that spills where that is expected to be faster, or where there is no other. */
  Plan
  MakeSpillingPlan(const ExecutionRequest & request, PlannerRequest & plannerRequest,
                   const std::vector<std::size_t> & used, std::vector<std::string> & warnings, SpilledBytes & spilled);
  /** Takes a plan in place of this one in which the host computes a part of each chunk, where that is expected to be
   * faster or was asked for. */
  void
  ConsiderPiping(const ExecutionRequest & request, PlannerRequest & plannerRequest,
                 const std::vector<std::size_t> & used, Plan & plan, SpilledBytes & spilled);
};

} // namespace chunkwise

#endif
