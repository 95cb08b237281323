/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseLabelBlocks.h"

#include "chunkwiseDevice.h"
#include "chunkwiseError.h"
#include "chunkwiseLabelSummary.h"

#include <memory>

namespace chunkwise
{

namespace
{

const LabelOperation &
AsLabel(const Operation & operation)
{
  const auto * const label = dynamic_cast<const LabelOperation *>(&operation);
  if (!label)
  {
    throw ParameterError(operation.GetName() + " finds no components");
  }
  return *label;
}

/** Runs a kernel of the host on a block. */
void
RunOnBlock(const LabelOperation & operation, const Kernel & kernel, const BufferView & block, KernelCall call,
           Executor & executor)
{
  ChunkShape shape;
  shape.inputBox = shape.outputBox = block.box;
  shape.image = Box::FromExtent(operation.image);
  shape.inputKinds[0] = block.kind;
  shape.numberOfInputs = 1;
  shape.outputKind = operation.outputKind;
  shape.concurrency = static_cast<int>(executor.GetConcurrency());
  constexpr std::size_t      alignment = 256;
  std::vector<unsigned char> scratch(kernel.scratchBytes(operation, shape) + alignment);
  void *                     begin = scratch.data();
  std::size_t                room = scratch.size();
  call.operation = &operation;
  call.inputs[0] = block;
  call.numberOfInputs = 1;
  call.writable = block.box;
  call.image = shape.image;
  call.scratch = std::align(alignment, room - alignment, begin, room);
  call.scratchBytes = scratch.size() - alignment;
  call.executor = &executor;
  call.kernels = &GetHostKernels();
  kernel.run(call);
}

} // namespace

bool
FindsComponents(const Operation & operation)
{
  return dynamic_cast<const LabelOperation *>(&operation) != nullptr;
}

ChunkState
SummariseLabels(const Operation & operation, const BufferView & block, Executor & executor)
{
  const LabelOperation & label = AsLabel(operation);
  ChunkState             summary(label.GetSummaryBytes(block.box, { block.kind }, label.outputKind));
  KernelCall             call;
  call.output.kind = label.outputKind;
  call.sideOut = summary.data();
  call.sideOutBytes = summary.size();
  RunOnBlock(label, *GetHostKernels().Find("label", &KernelSet::summarize), block, call, executor);
  return summary;
}

std::vector<ChunkState>
JoinLabels(const Operation & operation, const std::vector<Box> & blocks, const std::vector<ChunkState> & summaries,
           std::uint64_t & count)
{
  const LabelOperation & label = AsLabel(operation);
  if (blocks.size() != summaries.size())
  {
    throw ParameterError(std::to_string(summaries.size()) + " summaries of " + std::to_string(blocks.size()) +
                         " blocks");
  }
  for (std::size_t i = 0; i < blocks.size(); ++i)
  {
    const std::size_t bytes = label.GetSummaryBytes(blocks[i], { label.inputKind }, label.outputKind);
    if (summaries[i].size() != bytes)
    {
      throw ParameterError("a summary has " + std::to_string(summaries[i].size()) + " bytes, not " +
                           std::to_string(bytes));
    }
  }
  return label.SolveAndCount(blocks, summaries, count);
}

void
WriteLabels(const Operation & operation, const BufferView & block, const ChunkState & solution,
            const BufferView & labels, Executor & executor)
{
  const LabelOperation & label = AsLabel(operation);
  const std::size_t      rows = static_cast<std::size_t>(CountRows(block.box)) * sizeof(std::uint64_t);
  if (solution.size() < rows || (solution.size() - rows) % sizeof(LabelOfPart) != 0)
  {
    throw ParameterError("a solution of " + std::to_string(solution.size()) + " bytes is of another block");
  }
  KernelCall call;
  call.output = labels;
  call.sideIn = solution.data();
  call.sideInBytes = solution.size();
  RunOnBlock(label, *GetHostKernels().Find("label"), block, call, executor);
}

} // namespace chunkwise
