/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseResidentRun_h
#define chunkwiseResidentRun_h

#include "chunkwiseCarryChain.h"
#include "chunkwiseChunkQueue.h"
#include "chunkwiseSchedules.h"

#include <memory>

namespace chunkwise
{

// Runs whose images lie in the memory of one device (RunContext::residence). Kernels work on them where they are. A
// chunk that is not dense there, or does not begin where kernels can load vectors, is copied by the device.

/** The plan: the whole region if scratch has room, or else slabs, which lie dense in a dense image, or other chunks if
 * they take less time. `plannerRequest` becomes what the plan was made for. */
Plan
MakeResidentPlan(const ExecutionRequest & request, PlannerRequest & plannerRequest,
                 std::vector<std::string> & warnings);

/** As Pipeline, with nothing to transfer. */
std::int64_t
RunResidentChunks(DeviceState & state, RunContext & context, const Plan & plan, ChunkQueue & queue, CarryChain * chain,
                  std::size_t worker, int splits, std::size_t memoryLimit);

/** As MakeDeviceRunner, with nothing to transfer but side data. */
std::unique_ptr<ChunkRunner>
MakeResidentRunner(RunContext & context, DeviceState & state, std::size_t memoryLimit);

} // namespace chunkwise

#endif
