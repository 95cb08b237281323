/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSpilledMemory.h"

#include "chunkwiseError.h"
#include "chunkwiseLocalProcessors.h"
#include "chunkwiseRunContext.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** More than any device has: chunks that take so much are in no plan. */
constexpr std::size_t TooManyBytes = std::size_t{ 1 } << 56;

std::size_t
GetSpilledBytes(const SpillingKernel & spilling, const Operation & operation, ChunkShape shape,
                const KernelRegistry & kernels)
{
  shape.kernels = &kernels;
  return spilling.bytes(operation, shape);
}

} // namespace

SpillingKernel::SpillingKernel(const KernelRegistry & kernels, const Operation & operation, KernelRole role)
{
  if (operation.GetSchedule() == Schedule::Independent && kernels.Find(operation.GetName(), role))
  {
    set = kernels.FindSet(operation.GetName());
    kernel = &(set->*role);
    bytes = role == &KernelSet::piped ? set->exchangedBytes : set->spilledBytes;
  }
}

PlannerRequest
WithSpilling(const PlannerRequest & request, const std::shared_ptr<const Operation> & operation,
             const KernelRegistry & kernels, std::size_t limit, KernelRole role)
{
  const SpillingKernel spilling(kernels, *operation, role);
  PlannerRequest       spills = request;
  spills.scratchBytes = [operation, spilling, &kernels, limit](ChunkShape shape) {
    shape.kernels = &kernels;
    return GetSpilledBytes(spilling, *operation, shape, kernels) > limit
             ? TooManyBytes
             : spilling.kernel->scratchBytes(*operation, shape);
  };
  spills.cost = [operation, spilling, &kernels](ChunkShape shape) {
    shape.kernels = &kernels;
    return spilling.kernel->cost(*operation, shape);
  };
  return spills;
}

std::size_t
GetSpilledBytes(const Plan & plan, const PlannerRequest & request, const Operation & operation,
                const KernelRegistry & kernels, KernelRole role)
{
  const SpillingKernel spilling(kernels, operation, role);
  std::size_t          most = 0;
  for (const Chunk & chunk : plan.chunks)
  {
    ChunkShape shape;
    shape.inputBox = chunk.inputBox;
    shape.outputBox = chunk.outputBox;
    shape.image = request.image;
    shape.numberOfInputs = request.numberOfInputs;
    std::copy(request.inputKinds, request.inputKinds + MaxInputs, shape.inputKinds);
    shape.outputKind = request.outputKind;
    most = std::max(most, GetSpilledBytes(spilling, operation, shape, kernels));
  }
  return most;
}

SpilledMemory::SpilledMemory(const std::vector<std::shared_ptr<DeviceState>> & devices, const SpilledBytes & spilled)
  : m_Bytes(spilled.bytes)
{
  const std::size_t bytes = spilled.bytes;
  for (const auto & state : devices)
  {
    const std::size_t before = state->spilledBytes.fetch_add(bytes);
    // Counted before it is there, so that no two runs take the same room.
    const std::shared_ptr<void> counted(nullptr, [state, bytes](void *) { state->spilledBytes -= bytes; });
    if (before + bytes > spilled.limit)
    {
      throw BudgetError("pinned memory of " + state->device->GetDescription().name + ": " + std::to_string(bytes) +
                          " bytes do not fit beside " + std::to_string(before) + " in use",
                        before + bytes,
                        spilled.limit);
    }
    std::shared_ptr<void> block = state->keptSpill.Take(bytes);
    if (!block)
    {
      const std::shared_ptr<Device> device = state->device;
      const ThreadBinding           binding(FindLocalProcessors(device->GetDescription().busAddress, 1));
      try
      {
        block = { device->AllocatePinned(bytes), [device](void * memory) { device->FreePinned(memory); } };
      }
      catch (const DeviceError & error)
      {
        state->NoteFailure(error);
        throw;
      }
    }
    m_Blocks.push_back(std::shared_ptr<void>(
      block.get(), [state, counted, block, bytes](void *) { state->keptSpill.Keep(block, bytes); }));
  }
}

} // namespace chunkwise
