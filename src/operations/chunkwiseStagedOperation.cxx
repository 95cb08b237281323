/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseStagedOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseRealOf.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

bool
ReadsInput(const Stage & stage)
{
  return std::any_of(stage.inputs.begin(), stage.inputs.end(), [](int input) { return input < 0; });
}

/** Whether a voxel depends on others, in an image of any size. */
bool
ReachesBeyondVoxel(const Operation & operation)
{
  const Halo halo = operation.GetHalo(Coordinates::Filled(std::int64_t{ 1 } << 30));
  bool       reaches = false;
  for (int a = 0; a < MaxDimension; ++a)
  {
    reaches = reaches || halo.lower[a] > 0 || halo.upper[a] > 0;
  }
  return reaches;
}

bool
ReadsStage(const Stage & stage)
{
  return std::any_of(stage.inputs.begin(), stage.inputs.end(), [](int input) { return input >= 0; });
}

/** The halo of a stage; the whole axis where it must be there for windows that wrap around, or for a fixed point. */
Halo
HaloOf(const Stage & stage, const Coordinates & image, bool allWrap)
{
  if (!stage.operation)
  {
    return Halo::None();
  }
  Halo       halo = stage.operation->GetHalo(image);
  const bool takesAll =
    stage.operation->GetSchedule() == Schedule::Fixpoint || (stage.operation->WrapsAround() && !allWrap);
  for (int a = 0; takesAll && a < MaxDimension; ++a)
  {
    if (halo.lower[a] > 0 || halo.upper[a] > 0)
    {
      halo.lower[a] = halo.upper[a] = WholeAxis;
    }
  }
  return halo;
}

/** Grows `box` to hold `other`. */
void
Unite(Box & box, const Box & other)
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    box.lower[a] = std::min(box.lower[a], other.lower[a]);
    box.upper[a] = std::max(box.upper[a], other.upper[a]);
  }
}

} // namespace

std::string
StagedOperation::GetKey() const
{
  std::string key = GetName();
  for (const Stage & stage : GetStages())
  {
    key += stage.operation ? " {" + stage.operation->GetKey() + "}" : " " + stage.voxelKernel;
  }
  return key;
}

std::string
StagedOperation::GetObjectionToDevices() const
{
  for (const Stage & stage : GetStages())
  {
    const std::string objection = stage.operation ? stage.operation->GetObjectionToDevices() : std::string();
    if (!objection.empty())
    {
      return objection;
    }
  }
  return std::string();
}

Halo
StagedOperation::GetHalo(const Coordinates & image) const
{
  const std::vector<Stage> stages = GetStages();
  const bool               allWrap = WrapsAround();
  // From each stage's result to the whole operation's.
  std::vector<Halo> reach(stages.size(), Halo::None());
  Halo              total = Halo::None();
  for (std::size_t i = stages.size(); i-- > 0;)
  {
    Halo halo = HaloOf(stages[i], image, allWrap);
    for (int a = 0; a < MaxDimension; ++a)
    {
      halo.lower[a] = std::min(WholeAxis, halo.lower[a] + reach[i].lower[a]);
      halo.upper[a] = std::min(WholeAxis, halo.upper[a] + reach[i].upper[a]);
    }
    for (std::size_t k = 0; k < stages[i].inputs.size(); ++k)
    {
      const int    input = stages[i].inputs[k];
      const Halo & here = k < stages[i].seenThroughWindows ? halo : reach[i];
      Halo &       most = input < 0 ? total : reach[static_cast<std::size_t>(input)];
      for (int a = 0; a < MaxDimension; ++a)
      {
        most.lower[a] = std::max(most.lower[a], here.lower[a]);
        most.upper[a] = std::max(most.upper[a], here.upper[a]);
      }
    }
  }
  return total;
}

bool
StagedOperation::WrapsAround() const
{
  bool wraps = false;
  for (const Stage & stage : GetStages())
  {
    if (!stage.operation)
    {
      continue;
    }
    // A stage that reads beyond the image's edge what others do not expect there must find it all in the image.
    const bool wrapsHere = stage.operation->WrapsAround();
    if (wrapsHere ? ReadsStage(stage) : ReadsInput(stage))
    {
      return false;
    }
    // So must one whose neighbors another stage makes: what is loaded would reach further beyond the edge than the
    // windows that wrap around do, and kernels expect no more than these.
    if (ReadsStage(stage) && ReachesBeyondVoxel(*stage.operation))
    {
      return false;
    }
    wraps = wraps || wrapsHere;
  }
  return wraps;
}

void
StagedOperation::CheckKinds(const std::vector<PixelKind> & inputs, PixelKind output) const
{
  const std::vector<Stage>     stages = GetStages();
  const std::vector<PixelKind> kinds = GetStageKinds(inputs.at(0), output);
  for (std::size_t i = 0; i < stages.size(); ++i)
  {
    std::vector<PixelKind> read;
    for (const int input : stages[i].inputs)
    {
      read.push_back(input < 0 ? inputs.at(static_cast<std::size_t>(Stage::Input(input)))
                               : kinds.at(static_cast<std::size_t>(input)));
    }
    if (stages[i].operation)
    {
      stages[i].operation->CheckKinds(read, kinds[i]);
    }
  }
}

void
StagedOperation::Validate(const Coordinates & image) const
{
  const std::vector<Stage> stages = GetStages();
  if (stages.empty())
  {
    throw ParameterError("the " + GetName() + " has no stages");
  }
  for (std::size_t i = 0; i < stages.size(); ++i)
  {
    const Operation * const operation = stages[i].operation.get();
    const std::string       which = "stage " + std::to_string(i) + " of the " + GetName();
    if (stages[i].inputs.size() > static_cast<std::size_t>(MaxInputs))
    {
      throw ParameterError(which + " has " + std::to_string(stages[i].inputs.size()) + " inputs, more than " +
                           std::to_string(MaxInputs));
    }
    if (!operation)
    {
      if (stages[i].voxelKernel.empty())
      {
        throw ParameterError(which + " is missing");
      }
      continue;
    }
    const std::string objection = GetObjection(*operation);
    if (!objection.empty())
    {
      throw ParameterError(which + ", " + operation->GetName() + ", " + objection);
    }
    operation->Validate(image);
  }
}

std::vector<Box>
StagedOperation::GetStageBoxes(const Box & output, const Box & image) const
{
  const std::vector<Stage> stages = GetStages();
  const bool               allWrap = WrapsAround();
  std::vector<Box>         boxes(stages.size(), output);
  std::vector<bool>        isKnown(stages.size(), false);
  for (std::size_t i = stages.size(); i-- > 0;)
  {
    const Box padded = PadAndCrop(boxes[i], HaloOf(stages[i], image.Extents(), allWrap), image);
    for (std::size_t k = 0; k < stages[i].inputs.size(); ++k)
    {
      const int   input = stages[i].inputs[k];
      const Box & needed = k < stages[i].seenThroughWindows ? padded : boxes[i];
      if (input >= 0)
      {
        const auto from = static_cast<std::size_t>(input);
        if (isKnown[from])
        {
          Unite(boxes[from], needed);
        }
        else
        {
          boxes[from] = needed;
          isKnown[from] = true;
        }
      }
    }
  }
  return boxes;
}

std::vector<PixelKind>
StagedOperation::GetStageKinds(PixelKind input, PixelKind output) const
{
  std::vector<PixelKind> kinds;
  for (const Stage & stage : GetStages())
  {
    kinds.push_back(stage.kind == StageKind::Output  ? output
                    : stage.kind == StageKind::Input ? input
                    : stage.kind == StageKind::Fixed ? stage.fixed
                    : UsesDouble(input)              ? PixelKind::Float64
                                                     : PixelKind::Float32);
  }
  return kinds;
}

std::vector<std::size_t>
StagedOperation::GetLastReaders() const
{
  const std::vector<Stage> stages = GetStages();
  std::vector<std::size_t> readers(stages.size(), stages.empty() ? 0 : stages.size() - 1);
  for (std::size_t i = 0; i < stages.size(); ++i)
  {
    for (const int input : stages[i].inputs)
    {
      if (input >= 0)
      {
        readers[static_cast<std::size_t>(input)] = i;
      }
    }
  }
  return readers;
}

} // namespace chunkwise
