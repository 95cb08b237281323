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

/** The voxels that a box depends on: the voxels of the tiles that it meets, and of a halo around these. */
struct Reach
{
  Coordinates tile{ Coordinates::Filled(1) };
  Halo        halo{ Halo::None() };

  /** Adds that of a stage whose results are seen so. */
  void
  Through(const Coordinates & stageTile, const Halo & stageHalo)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t t = stageTile[a];
      if (t > 1)
      {
        const bool isOnOneGrid = tile[a] == 1 || tile[a] == t;
        tile[a] = std::max(tile[a], isOnOneGrid ? t : 1);
        for (std::int64_t * const side : { &halo.lower[a], &halo.upper[a] })
        {
          *side = isOnOneGrid ? (*side + t - 1) / t * t : *side + t - 1;
        }
      }
      halo.lower[a] = std::min(WholeAxis, halo.lower[a] + stageHalo.lower[a]);
      halo.upper[a] = std::min(WholeAxis, halo.upper[a] + stageHalo.upper[a]);
    }
  }
  /** Becomes the larger of both. */
  void
  Unite(const Reach & other)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      const bool isOnOneGrid = tile[a] == 1 || other.tile[a] == 1 || tile[a] == other.tile[a];
      tile[a] = isOnOneGrid ? std::max(tile[a], other.tile[a]) : tile[a];
      const std::int64_t more = isOnOneGrid ? 0 : other.tile[a] - 1;
      halo.lower[a] = std::min(WholeAxis, std::max(halo.lower[a], other.halo.lower[a] + more));
      halo.upper[a] = std::min(WholeAxis, std::max(halo.upper[a], other.halo.upper[a] + more));
    }
  }
};

/** From the inputs to the result. */
Reach
FindReach(const std::vector<Stage> & stages, const Coordinates & image, bool allWrap)
{
  std::vector<Reach> reach(stages.size());
  Reach              total;
  for (std::size_t i = stages.size(); i-- > 0;)
  {
    Reach windows = reach[i];
    windows.Through(stages[i].operation ? stages[i].operation->GetTile(image) : Coordinates::Filled(1),
                    HaloOf(stages[i], image, allWrap));
    for (std::size_t k = 0; k < stages[i].inputs.size(); ++k)
    {
      const int input = stages[i].inputs[k];
      (input < 0 ? total : reach[static_cast<std::size_t>(input)])
        .Unite(k < stages[i].seenThroughWindows ? windows : reach[i]);
    }
  }
  return total;
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
  return FindReach(GetStages(), image, WrapsAround()).halo;
}

Coordinates
StagedOperation::GetTile(const Coordinates & image) const
{
  return FindReach(GetStages(), image, WrapsAround()).tile;
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
StagedOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  const std::vector<Stage>     stages = GetStages();
  const std::vector<PixelType> kinds = GetStageKinds(inputs.at(0), output);
  for (std::size_t i = 0; i < stages.size(); ++i)
  {
    std::vector<PixelType> read;
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
    const Box tiles =
      stages[i].operation ? AlignToTiles(boxes[i], stages[i].operation->GetTile(image.Extents()), image) : boxes[i];
    const Box padded = PadAndCrop(tiles, HaloOf(stages[i], image.Extents(), allWrap), image);
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

std::vector<PixelType>
StagedOperation::GetStageKinds(PixelType input, PixelType output) const
{
  std::vector<PixelType> kinds;
  for (const Stage & stage : GetStages())
  {
    kinds.push_back(stage.kind == StageKind::Output  ? output
                    : stage.kind == StageKind::Input ? input
                    : stage.kind == StageKind::Fixed ? stage.fixed
                    : UsesDouble(input)              ? PixelType::Float64
                                                     : PixelType::Float32);
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
