/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Windows of which the voxels are counted: ranks and entropies of a part of the image.
#include "chunkwiseDomainOperation.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseFootprintOperation.h"
#include "chunkwiseMaskCountOperation.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseWindow.h"

namespace chunkwise
{

namespace
{

/** A window over a footprint that is a rank, or nullptr. */
const FootprintOperation *
AsRankOfFootprint(const std::shared_ptr<const Operation> & window)
{
  const auto * const footprint = dynamic_cast<const FootprintOperation *>(window.get());
  return footprint && footprint->statistic == FootprintStatistic::Rank ? footprint : nullptr;
}

/** How many voxels inside a window has; beyond the edge of Constant there are all, unless the constant is outside. */
Stage
CountsOf(const WindowedOperation & operation, int inside, bool constantIsInside)
{
  if (const auto * const footprint = dynamic_cast<const FootprintOperation *>(&operation))
  {
    const auto sum = std::make_shared<FootprintOperation>(*footprint);
    sum->statistic = FootprintStatistic::Sum;
    sum->boundary.constant = constantIsInside ? 1.0 : 0.0;
    return { sum, { inside }, StageKind::Fixed, "", PixelType::Float32 };
  }
  const auto &  window = dynamic_cast<const BoxOperation &>(operation);
  MeanOperation box;
  box.radius = window.radius;
  box.boundary = window.boundary;
  box.boundary.constant = constantIsInside ? 1.0 : 0.0;
  const auto sum = std::make_shared<MaskCountOperation>(box);
  double     voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels *= 2.0 * static_cast<double>(window.radius[a]) + 1.0;
  }
  return { sum, { inside }, StageKind::Fixed, "", voxels <= 16777216.0 ? PixelType::Float32 : PixelType::Float64 };
}

} // namespace

bool
DomainOperation::IsCounted() const
{
  return dynamic_cast<const RankOperation *>(window.get()) || dynamic_cast<const EntropyOperation *>(window.get()) ||
         AsRankOfFootprint(window);
}

bool
DomainOperation::LeavesOutNan() const
{
  return ignoresNan || (IsFloatingPoint(imageKind) &&
                        (dynamic_cast<const RankOperation *>(window.get()) || AsRankOfFootprint(window)));
}

std::vector<Stage>
DomainOperation::GetStagesWithoutQuotient() const
{
  const auto * const rank = dynamic_cast<const RankOperation *>(window.get());
  const auto * const entropy = dynamic_cast<const EntropyOperation *>(window.get());
  const auto * const means = dynamic_cast<const NonLocalMeansOperation *>(window.get());
  const auto * const footprint = AsRankOfFootprint(window);
  if (!rank && !entropy && !means && !footprint)
  {
    return {};
  }
  std::vector<int> inputs;
  if (domain != DomainKind::All)
  {
    inputs.push_back(Stage::Input(1));
  }
  if (this->LeavesOutNan())
  {
    inputs.push_back(Stage::Input(0));
  }
  if (means)
  {
    const auto weighed = std::make_shared<NonLocalMeansOperation>(*means);
    weighed->isWeighed = true;
    weighed->emptyValue = emptyValue;
    const char * const weights = this->HasWeights() ? "domain.weights.voxels" : "domain.mask.voxels";
    const PixelType    real = UsesDouble(imageKind) ? PixelType::Float64 : PixelType::Float32;
    return { { nullptr, inputs, StageKind::Fixed, weights, real },
             { weighed, { Stage::Input(), 0 }, StageKind::Output } };
  }
  const Stage inside{ nullptr, inputs, StageKind::Fixed, "domain.mask.voxels", PixelType::UInt8 };
  const auto  constant = [&](const WindowBoundary & boundary, auto && of) {
    return DispatchPixelType(imageKind,
                             [&](auto pixel) { return of(ConstantPixel<decltype(pixel)>(boundary.constant)); });
  };
  if (marksSeen && !means)
  {
    const auto & windowed = dynamic_cast<const WindowedOperation &>(*window);
    const bool   constantIsInside =
      constant(windowed.boundary, [&](auto voxel) { return !this->LeavesOutNan() || voxel == voxel; });
    return { inside,
             CountsOf(windowed, 0, constantIsInside),
             { nullptr, { 1 }, StageKind::Output, "domain.seen.voxels" } };
  }
  if (rank || footprint)
  {
    // Voxels outside are below all voxels inside, or the same: either way they have the lowest ranks.
    const auto & ranked = dynamic_cast<const WindowedOperation &>(*window);
    const auto   counted = [](auto selection) -> std::shared_ptr<const Operation> {
      selection->isCounted = true;
      return selection;
    };
    const auto  selection = rank ? counted(std::make_shared<RankOperation>(*rank))
                                 : counted(std::make_shared<FootprintOperation>(*footprint));
    const bool  constantIsInside = constant(ranked.boundary, [](auto voxel) { return voxel == voxel; });
    const Stage voxels{ nullptr, { Stage::Input(), 0 }, StageKind::Input, "domain.least.voxels" };
    const Stage counts = CountsOf(ranked, 0, constantIsInside);
    const Stage selected{ selection, { 1, 2 }, StageKind::Output, "", PixelType::UInt8, 1 };
    return { inside, voxels, counts, selected, { nullptr, { 3, 2 }, StageKind::Output, "domain.filled.voxels" } };
  }
  // A further bin is of what is outside.
  const auto ofBins = std::make_shared<EntropyOperation>(*entropy);
  ofBins->bins = entropy->bins + 1;
  ofBins->lower = 0;
  ofBins->upper = ofBins->bins;
  ofBins->leavesOutLast = true;
  const double scale = entropy->bins / (entropy->upper - entropy->lower);
  const bool   leavesOutNan = this->LeavesOutNan();
  ofBins->boundary.constant = constant(entropy->boundary, [&](auto voxel) {
    const int bin = BinOf(voxel, entropy->lower, scale, entropy->bins);
    return static_cast<std::int64_t>(leavesOutNan && voxel != voxel ? entropy->bins : bin);
  });
  const Stage bins{ nullptr, { Stage::Input(), 0 }, StageKind::Fixed, "domain.bins.voxels", PixelType::UInt16 };
  const Stage entropies{ ofBins, { 1 }, StageKind::Fixed, "", PixelType::Float64 };
  return { inside, bins, entropies, { nullptr, { 2 }, StageKind::Output, "domain.converted.voxels" } };
}

} // namespace chunkwise
