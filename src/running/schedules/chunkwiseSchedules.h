/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSchedules_h
#define chunkwiseSchedules_h

#include "chunkwiseRunContext.h"

#include <memory>
#include <vector>

namespace chunkwise
{

/** Runs one kernel on one chunk, from and to the host's images, synchronously: what TwoPass and Fixpoint are made of.
 * One per worker. */
class ChunkRunner
{
public:
  struct Step
  {
    KernelRole         role{ &KernelSet::compute };
    Chunk              chunk{};
    const ChunkState * sideIn{ nullptr };
    ChunkState *       sideOut{ nullptr }; ///< its size says how many bytes the kernel writes
    bool               writesOutput{ true };
    /** Fixpoint: the output is read with the chunk's halo before it is written. */
    std::uint32_t * changedSides{ nullptr };
    /** The runner reports the chunk's voxels as finished, on the host while the kernel goes on. */
    bool reportsVoxels{ false };
  };

  virtual ~ChunkRunner();
  virtual void
  Run(const Step & step) = 0;
  virtual std::string
  GetName() const = 0;
};

std::unique_ptr<ChunkRunner>
MakeHostRunner(RunContext & context, Executor & executor, HostState & memory, std::size_t memoryLimit);

/** Throws BudgetError at Run if the chunk does not fit under the limit. `sharers`: runners that the device's pinned
 * memory is for. */
std::unique_ptr<ChunkRunner>
MakeDeviceRunner(RunContext & context, DeviceState & state, std::size_t memoryLimit, std::size_t pinnedLimit,
                 int sharers = 1);

/** Finished chunks per runner. `host` is for work of the host between the steps. A runner that fails is dropped and
 * its chunk given to another one; its error is thrown when none is left. Errors of dropped runners are appended to
 * `warnings`. */
std::vector<std::int64_t>
RunSchedule(RunContext & context, const Plan & plan, std::vector<std::unique_ptr<ChunkRunner>> & runners,
            std::vector<std::string> & warnings, ChunkRunner & host);

} // namespace chunkwise

#endif
