/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMaskedWindow.h"
#include "chunkwiseCpuMedians.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseRunControls.h"

#include <algorithm>

// Ranks in a mask, whose windows have so few voxels that a byte counts them: the stages of DomainOperation, but for
// counts in bytes in the place of real numbers. Medians that networks find are hidden and counted as a tile is loaded.
namespace chunkwise
{

namespace
{

/** The stages of ranks, see DomainOperation. */
enum RankStage
{
  Inside,
  Voxels,
  Counts,
  Selected
};

/** Whether windows are ranks of so few voxels. */
bool
HasFewVoxels(const DomainOperation & domain, const Box & image)
{
  const auto * const rank = dynamic_cast<const RankOperation *>(domain.window.get());
  if (!rank || domain.marksSeen)
  {
    return false;
  }
  const Coordinates radius = rank->EffectiveRadius(image.Extents());
  std::int64_t      voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels = std::min<std::int64_t>(voxels * (2 * std::min<std::int64_t>(radius[a], 128) + 1), 256);
  }
  return voxels < 256;
}

bool
TakesMaskedMedians(const DomainOperation & domain, const Box & image, PixelType)
{
  return HasFewVoxels(domain, image) &&
         MediansTake(static_cast<const RankOperation &>(*domain.window), image.Extents());
}

bool
TakesMaskedRanks(const DomainOperation & domain, const Box & image, PixelType kind)
{
  return HasFewVoxels(domain, image) && !TakesMaskedMedians(domain, image, kind);
}

struct MaskedImages
{
  std::vector<Stage> stages;
  BufferView         mask;
  BufferView         voxels;
  BufferView         counts;
  std::size_t        bytes{ 0 };

  MaskedImages(const DomainOperation & domain, const Box & output, const Box & image, PixelType kind, void * scratch)
    : stages(domain.GetStages())
  {
    char * const to = static_cast<char *>(scratch);
    const auto   boxes = domain.GetStageBoxes(output, image);
    mask = TakeImage(to, bytes, PixelType::UInt8, boxes[Inside]);
    voxels = TakeImage(to, bytes, kind, boxes[Voxels]);
    counts = TakeImage(to, bytes, PixelType::UInt8, boxes[Counts]);
  }
};

/** The medians that networks find, with the mask if the run's own does not serve. */
struct MaskedMedians
{
  const RankOperation & rank;
  Coordinates           radius;
  Coordinates           tile;
  std::size_t           bytes{ 0 };
  BufferView            made;

  MaskedMedians(const DomainOperation & domain, const Box & output, const Box & image, PixelType kind, void * scratch)
    : rank(static_cast<const RankOperation &>(*domain.window))
    , radius(rank.EffectiveRadius(image.Extents()))
    , tile(MedianTileExtent(output, radius, kind, 1))
    , made(
        TakeImage(static_cast<char *>(scratch), bytes, PixelType::UInt8, domain.GetStageBoxes(output, image)[Inside]))
  {}
};

void
RunMaskedMedians(const KernelCall & call)
{
  const DomainOperation & domain = MaskedDomainOf(*call.operation);
  const PixelType         kind = call.inputs[0].kind;
  const MaskedMedians     medians(domain, call.output.box, call.image, kind, call.scratch);
  const std::int64_t      bytes = MedianTileBytes(medians.tile, medians.radius, kind, 1, true);
  // Tiles leave out NaN themselves.
  MedianMask mask{ call.inputs[1], domain.emptyValue };
  if (domain.domain != DomainKind::Mask || PixelSize(mask.inside.kind) > 1)
  {
    MakeMask(call, medians.made, medians.bytes);
    mask.inside = medians.made;
  }
  KernelCall part = call;
  part.operation = &medians.rank;
  ForEachTileOf(medians.tile, part, [&](const Box & tile, unsigned int worker) {
    char * const memory = static_cast<char *>(call.scratch) + medians.bytes + bytes * worker;
    RunMaskedMedianTile(part, medians.radius, tile, mask, memory);
  });
}

void
RunMaskedRanks(const KernelCall & call)
{
  const DomainOperation & domain = MaskedDomainOf(*call.operation);
  const MaskedImages      images(domain, call.output.box, call.image, call.inputs[0].kind, call.scratch);
  const Operation &       counting = *images.stages[Counts].operation;
  const Operation &       selection = *images.stages[Selected].operation;
  MakeMask(call, images.mask, images.bytes);
  RunMaskedStage(call, "domain.least.voxels", domain, { call.inputs[0], images.mask }, images.voxels, images.bytes);
  RunMaskedStage(call, counting.GetName().c_str(), counting, { images.mask }, images.counts, images.bytes);
  KernelCall part = call;
  part.operation = &selection;
  part.inputs[0] = images.voxels;
  part.inputs[1] = images.counts;
  part.numberOfInputs = 2;
  part.scratch = static_cast<char *>(call.scratch) + images.bytes;
  part.scratchBytes = call.scratchBytes - images.bytes;
  call.kernels->Get(selection.GetName(), "domain").run(part);
  RunMaskedStage(call, "domain.filled.voxels", domain, { call.output, images.counts }, call.output, images.bytes);
}

std::size_t
ScratchOfMaskedMedians(const Operation & operation, const ChunkShape & shape)
{
  const PixelType     kind = shape.inputKinds[0];
  const MaskedMedians medians(MaskedDomainOf(operation), shape.outputBox, shape.image, kind, nullptr);
  const std::int64_t  bytes = MedianTileBytes(medians.tile, medians.radius, kind, 1, true) * shape.concurrency;
  return medians.bytes + static_cast<std::size_t>(bytes);
}

std::size_t
ScratchOfMaskedRanks(const Operation & operation, const ChunkShape & shape)
{
  const DomainOperation & domain = MaskedDomainOf(operation);
  const PixelType         kind = shape.inputKinds[0];
  const MaskedImages      images(domain, shape.outputBox, shape.image, kind, nullptr);
  const auto              scratchOf = [&](const Operation & stage, const ChunkShape & part) {
    const Kernel & kernel = shape.kernels->Get(stage.GetName(), "domain");
    return kernel.scratchBytes ? kernel.scratchBytes(stage, part) : 0;
  };
  ChunkShape part = shape;
  part.inputBox = images.voxels.box;
  part.numberOfInputs = 2;
  part.inputKinds[1] = PixelType::UInt8;
  const std::size_t ofRanks = scratchOf(*images.stages[Selected].operation, part);
  part.inputBox = images.mask.box;
  part.outputBox = images.counts.box;
  part.numberOfInputs = 1;
  part.inputKinds[0] = part.outputKind = PixelType::UInt8;
  return images.bytes + std::max(ofRanks, scratchOf(*images.stages[Counts].operation, part));
}

} // namespace

MaskedWindow
GetMaskedMedians()
{
  return { "medians", TakesMaskedMedians, RunMaskedMedians, ScratchOfMaskedMedians };
}

MaskedWindow
GetMaskedRanks()
{
  return { "ranks", TakesMaskedRanks, RunMaskedRanks, ScratchOfMaskedRanks };
}

} // namespace chunkwise
