/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwisePipelineBuffers.h"

#include "chunkwiseRoundUp.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** The most that a chunk takes of each. */
struct ChunkBytes
{
  std::vector<std::size_t> inputs;
  std::size_t              output{ 0 };
  std::size_t              scratch{ 0 };
};

ChunkBytes
FindChunkBytes(const KernelRegistry & registry, const RunContext & context, const Plan & plan,
               const std::vector<const Kernel *> & kernels, int splits)
{
  const ExecutionRequest & request = context.request;
  const auto               voxelsOf = [&](const Box & box) {
    return static_cast<std::size_t>(WithLayersBefore(context, plan, box).NumberOfVoxels());
  };
  ChunkBytes most;
  most.inputs.assign(request.inputs.size(), 0);
  for (const Chunk & chunk : plan.chunks)
  {
    for (const Chunk & part : SplitChunk(chunk, splits, plan.sweepAxis, context.plannerRequest))
    {
      for (std::size_t i = 0; i < most.inputs.size(); ++i)
      {
        most.inputs[i] = std::max(most.inputs[i], voxelsOf(part.inputBox) * PixelSize(request.inputs[i].kind));
      }
      most.output = std::max(most.output, voxelsOf(part.outputBox) * PixelSize(request.output.kind));
      for (const Kernel * const kernel : kernels)
      {
        if (kernel && kernel->scratchBytes)
        {
          most.scratch =
            std::max(most.scratch, kernel->scratchBytes(*request.operation, context.ShapeOf(part, registry, 1)));
        }
      }
    }
  }
  return most;
}

} // namespace

PipelineBuffers::PipelineBuffers(DeviceState & state, const RunContext & context, const Plan & plan,
                                 const std::vector<const Kernel *> & kernels, int splits, std::size_t memoryLimit)
{
  Device &         device = *state.device;
  const ChunkBytes bytes = FindChunkBytes(device.GetKernels(), context, plan, kernels, splits);
  std::size_t      inputBytes = 0;
  for (const std::size_t one : bytes.inputs)
  {
    m_InputOffsets.push_back(inputBytes);
    inputBytes += RoundUp(one);
  }
  m_ImageBytes = inputBytes + bytes.output;
  for (int slot = 0; slot < plan.inputSlots; ++slot)
  {
    m_Inputs.emplace_back(state.memory, inputBytes, memoryLimit);
  }
  for (int slot = 0; slot < plan.outputSlots; ++slot)
  {
    m_Outputs.emplace_back(state.memory, bytes.output, memoryLimit);
  }
  m_ScratchBytes = bytes.scratch;
  m_Scratch = ArenaBlock(state.memory, m_ScratchBytes, memoryLimit);
  if (context.request.operation->GetSchedule() == Schedule::Fixpoint)
  {
    m_ChangedSides = ArenaBlock(state.memory, sizeof(std::uint32_t), memoryLimit);
  }
  for (int i = 0; i <= plan.inputSlots; ++i)
  {
    m_Loaded.emplace_back(device);
    m_Run.emplace_back(device);
    m_Overlapped.emplace_back(device);
  }
}

} // namespace chunkwise
