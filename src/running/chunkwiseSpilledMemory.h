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
// A device that has such a variant of an independent operation's kernel "name" registers two more. "name.spilled" is
// the variant: it gets that part as call.sideOut, in pinned memory. "name.spilled.memory" does not run: its
// scratchBytes says how many bytes that are, and its cost how often the time of a plan with them counts beside that of
// a plan without: 0 means always better, infinity never.
//
// In the same way "name.piped" computes a part of the operation alone, for what the host's kernel "name.head" computes
// meanwhile of the rest (chunkwisePipedCall.h): call.sideOut is where the two meet. The cost of "name.piped.memory" is
// the number of parts of a chunk of which one waits for the other.

namespace chunkwise
{

class DeviceState;

/** Both kernels, or nullptr. */
struct SpillingKernels
{
  const Kernel * kernel{ nullptr };
  const Kernel * memory{ nullptr };

  SpillingKernels(const KernelRegistry & kernels, const Operation & operation, const char * variant = ".spilled");

  explicit
  operator bool() const
  {
    return kernel != nullptr;
  }
};

/** A request for a plan whose chunks spill no more than `limit` bytes, from one for a plan that does not spill. */
PlannerRequest
WithSpilling(const PlannerRequest & request, const std::shared_ptr<const Operation> & operation,
             const KernelRegistry & kernels, std::size_t limit, const char * variant = ".spilled");

/** The most bytes that a chunk of the plan spills. */
std::size_t
GetSpilledBytes(const Plan & plan, const PlannerRequest & request, const Operation & operation,
                const KernelRegistry & kernels, const char * variant = ".spilled");

/** What chunks of a plan spill of each device, and what all runs may at a time. */
struct SpilledBytes
{
  std::size_t bytes{ 0 }; ///< 0: the plan does not spill
  std::size_t limit{ 0 };
  /** What runs in place of the request's, of which the host computes the head; nullptr: nothing. */
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
  /** Of the run's device number `device`. */
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
