/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSequenceOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** What a stage reads to compute `output`. */
Box
StageInput(const Operation & stage, const Box & output, const Box & image)
{
  const Halo halo = stage.GetHalo(image.Extents());
  Box        input = PadAndCrop(output, halo, image);
  for (int a = 0; stage.WrapsAround() && a < MaxDimension; ++a)
  {
    if (halo.lower[a] > 0 || halo.upper[a] > 0)
    {
      input.lower[a] = image.lower[a];
      input.upper[a] = image.upper[a];
    }
  }
  return input;
}

std::size_t
Aligned(std::size_t bytes)
{
  return (bytes + 255) / 256 * 256;
}

/** Where in the scratch memory the stages keep what is between them: two buffers in turn, and their own scratch. */
struct SequenceLayout
{
  std::vector<Box> boxes;
  std::size_t      buffer[2]{ 0, 0 };
  std::size_t      scratch{ 0 };

  SequenceLayout(const KernelRegistry & kernels, const SequenceOperation & sequence, const ChunkShape & shape)
    : boxes(sequence.GetStageBoxes(shape.outputBox, shape.image))
  {
    for (std::size_t i = 0; i < boxes.size(); ++i)
    {
      if (i + 1 < boxes.size())
      {
        const auto voxels = static_cast<std::size_t>(std::max<std::int64_t>(boxes[i].NumberOfVoxels(), 0));
        buffer[i % 2] = std::max(buffer[i % 2], Aligned(voxels * PixelSize(shape.outputKind)));
      }
      const Operation & stage = *sequence.stages[i];
      const Kernel &    kernel = kernels.Get(stage.GetName(), "sequence");
      scratch = std::max(scratch, kernel.scratchBytes ? kernel.scratchBytes(stage, StageShape(shape, i)) : 0);
    }
  }

  ChunkShape
  StageShape(const ChunkShape & shape, std::size_t i) const
  {
    ChunkShape stage = shape;
    stage.outputBox = boxes[i];
    if (i > 0)
    {
      stage.inputBox = boxes[i - 1];
      stage.inputKinds[0] = shape.outputKind;
    }
    return stage;
  }
};

/** Lets only the last stage report voxels: each voxel is finished once. */
class LastStageReports : public RunControl
{
public:
  explicit LastStageReports(RunControl & control)
    : m_Control(control)
  {}
  bool
  ShouldStop() const override
  {
    return m_Control.ShouldStop();
  }
  void
  AddFinishedVoxels(std::int64_t) override
  {}

private:
  RunControl & m_Control;
};

ChunkShape
ShapeOf(const KernelCall & call)
{
  ChunkShape shape;
  shape.inputBox = call.inputs[0].box;
  shape.outputBox = call.output.box;
  shape.image = call.image;
  shape.inputKinds[0] = call.inputs[0].kind;
  shape.numberOfInputs = 1;
  shape.outputKind = call.output.kind;
  shape.concurrency = call.executor ? static_cast<int>(call.executor->GetConcurrency()) : 1;
  return shape;
}

} // namespace

std::string
SequenceOperation::GetKey() const
{
  std::string key = GetName();
  for (const auto & stage : stages)
  {
    key += " {" + stage->GetKey() + "}";
  }
  return key;
}

Halo
SequenceOperation::GetHalo(const Coordinates & image) const
{
  Halo total = Halo::None();
  for (const auto & stage : stages)
  {
    const Halo halo = stage->GetHalo(image);
    for (int a = 0; a < MaxDimension; ++a)
    {
      const bool whole = stage->WrapsAround() && (halo.lower[a] > 0 || halo.upper[a] > 0);
      total.lower[a] = std::min(WholeAxis, total.lower[a] + (whole ? WholeAxis : halo.lower[a]));
      total.upper[a] = std::min(WholeAxis, total.upper[a] + (whole ? WholeAxis : halo.upper[a]));
    }
  }
  return total;
}

void
SequenceOperation::CheckKinds(const std::vector<PixelKind> & inputs, PixelKind output) const
{
  PixelKind kind = inputs.at(0);
  for (const auto & stage : stages)
  {
    stage->CheckKinds({ kind }, output);
    kind = output;
  }
}

void
SequenceOperation::Validate(const Coordinates & image) const
{
  if (stages.empty())
  {
    throw ParameterError("the sequence has no stages");
  }
  for (std::size_t i = 0; i < stages.size(); ++i)
  {
    const std::string which = "stage " + std::to_string(i) + " of the sequence, " + stages[i]->GetName() + ", ";
    if (stages[i]->GetSchedule() != Schedule::Independent)
    {
      throw ParameterError(which + "needs the whole image and cannot be run chunk by chunk");
    }
    if (stages[i]->GetNumberOfInputs() != 1)
    {
      throw ParameterError(which + "has " + std::to_string(stages[i]->GetNumberOfInputs()) +
                           " inputs; it must have one");
    }
    stages[i]->Validate(image);
  }
}

std::vector<Box>
SequenceOperation::GetStageBoxes(const Box & output, const Box & image) const
{
  std::vector<Box> boxes(stages.size(), output);
  for (std::size_t i = stages.size(); i-- > 1;)
  {
    boxes[i - 1] = StageInput(*stages[i], boxes[i], image);
  }
  return boxes;
}

std::size_t
SequenceScratchBytes(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape)
{
  const SequenceLayout layout(kernels, static_cast<const SequenceOperation &>(operation), shape);
  return layout.buffer[0] + layout.buffer[1] + layout.scratch;
}

double
SequenceCost(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape)
{
  const auto &         sequence = static_cast<const SequenceOperation &>(operation);
  const SequenceLayout layout(kernels, sequence, shape);
  double               cost = 0;
  for (std::size_t i = 0; i < layout.boxes.size(); ++i)
  {
    const ChunkShape stage = layout.StageShape(shape, i);
    const Kernel &   kernel = kernels.Get(sequence.stages[i]->GetName(), "sequence");
    cost += kernel.cost ? kernel.cost(*sequence.stages[i], stage)
                        : static_cast<double>(stage.inputBox.NumberOfVoxels()) * PixelSize(stage.inputKinds[0]) +
                            static_cast<double>(stage.outputBox.NumberOfVoxels()) * PixelSize(stage.outputKind);
  }
  return cost;
}

void
RunSequence(const KernelRegistry & kernels, const KernelCall & call)
{
  const auto &                      sequence = static_cast<const SequenceOperation &>(*call.operation);
  const ChunkShape                  shape = ShapeOf(call);
  const SequenceLayout              layout(kernels, sequence, shape);
  char * const                      memory = static_cast<char *>(call.scratch);
  char * const                      buffers[2] = { memory, memory + layout.buffer[0] };
  std::unique_ptr<LastStageReports> control(call.control ? new LastStageReports(*call.control) : nullptr);
  for (std::size_t i = 0; i < layout.boxes.size(); ++i)
  {
    KernelCall stage = call;
    stage.operation = sequence.stages[i].get();
    if (i > 0)
    {
      stage.inputs[0] = DenseView(buffers[(i - 1) % 2], call.output.kind, layout.boxes[i - 1]);
    }
    if (i + 1 < layout.boxes.size())
    {
      stage.output = DenseView(buffers[i % 2], call.output.kind, layout.boxes[i]);
      stage.control = control.get();
    }
    stage.writable = stage.output.box;
    const Kernel & kernel = kernels.Get(stage.operation->GetName(), "sequence");
    stage.scratchBytes = kernel.scratchBytes ? kernel.scratchBytes(*stage.operation, layout.StageShape(shape, i)) : 0;
    stage.scratch = memory + layout.buffer[0] + layout.buffer[1];
    kernel.run(stage);
  }
}

} // namespace chunkwise
