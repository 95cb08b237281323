/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSpilledMemory_h
#define chunkwiseSpilledMemory_h

#include "chunkwiseArena.h"
#include "chunkwiseDevice.h"
#include "chunkwisePlanner.h"

#include <memory>
#include <vector>

// Kernels of devices that keep a part of their scratch in the host's memory, so that chunks can be larger.
//
// A device that has such a variant of an independent operation's kernel registers it as KernelSet::spilled, with what
// it needs. In the same way KernelSet::piped computes a part of the operation alone, for what the host's
// KernelSet::head computes meanwhile of the rest (chunkwisePipedCall.h): call.sideOut is where the two meet.

namespace chunkwise
{

class DeviceState;

/** A device's kernel that shares memory of the host's, `spilled` or `piped`; nullptr if there is none. */
struct SpillingKernel
{
  const KernelSet * set{ nullptr };
  const Kernel *    kernel{ nullptr };
  /** How many bytes of that memory a chunk needs. */
  std::size_t (*bytes)(const Operation & operation, const ChunkShape & shape){ nullptr };

  SpillingKernel(const KernelRegistry & kernels, const Operation & operation, KernelRole role = &KernelSet::spilled);

  explicit
  operator bool() const
  {
    return kernel != nullptr;
  }
};

/** A request for a plan whose chunks spill no more than `limit` bytes, from one for a plan that does not spill. */
PlannerRequest
WithSpilling(const PlannerRequest & request, const std::shared_ptr<const Operation> & operation,
             const KernelRegistry & kernels, std::size_t limit, KernelRole role = &KernelSet::spilled);

/** The most bytes that a chunk of the plan spills. */
std::size_t
GetSpilledBytes(const Plan & plan, const PlannerRequest & request, const Operation & operation,
                const KernelRegistry & kernels, KernelRole role = &KernelSet::spilled);

/** The bytes that chunks of a plan spill for each device, and the bytes that all runs may spill at a time. */
struct SpilledBytes
{
  std::size_t bytes{ 0 }; ///< 0: the plan does not spill
  std::size_t limit{ 0 };
  /** The operation that runs in place of the request's, of which the host computes the head; nullptr: none. */
  std::shared_ptr<const Operation> piped{};
};

/** Pinned memory for each device of a run. Devices keep it for the next run that spills as much. */
class SpilledMemory
{
public:
  /** Throws BudgetError where other runs have left no room, and DeviceError if a device does not give the memory. */
  SpilledMemory(const std::vector<std::shared_ptr<DeviceState>> & devices, const SpilledBytes & spilled);

  std::size_t
  GetBytes() const
  {
    return m_Bytes;
  }
  /** The memory of the run's device number `device`. */
  void *
  Get(std::size_t device) const
  {
    return m_Blocks[device].get();
  }

private:
  std::size_t                        m_Bytes;
  std::vector<std::shared_ptr<void>> m_Blocks;
};

} // namespace chunkwise

#endif
