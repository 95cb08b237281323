/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The row of contrast-limited adaptive histogram equalization.
#include "chunkwiseAdaptiveEqualizationOperation.h"
#include "chunkwiseEnhancementRows.h"
#include "chunkwiseFilterRows.h"
#include "chunkwisePartMonitor.h"
#include "chunkwiseStatistics.h"
#include "chunkwiseStatisticsOperation.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

std::vector<double>
TakeExtremes(const Operation &, PixelType input, const SummaryRun & run, Monitor * monitor)
{
  PartMonitor           whole(monitor, 0, 1);
  const ImageStatistics found(input, run(std::make_shared<StatisticsOperation>(), &whole));
  if (found.GetCount() <= found.GetNumberOfInfinities())
  {
    return { 0, 0 };
  }
  return { found.GetFiniteMinimum().As<double>(), found.GetFiniteMaximum().As<double>() };
}

std::shared_ptr<const Operation>
MakeEqualization(const CheckedParameters & p, const FilterImage & image)
{
  auto operation = std::make_shared<AdaptiveEqualizationOperation>();
  for (const int axis : p.SpatialAxes())
  {
    operation->tile[axis] =
      p.Has("TileSize") ? p.OverAxes("TileSize")[axis] : std::max<std::int64_t>(image.extent[axis] / 8, 1);
  }
  operation->clip = p.Real("ClipLimit");
  operation->bins = static_cast<int>(p.Integer("NumberOfBins"));
  operation->lower = p.Reals("Range")[0];
  operation->upper = p.Reals("Range")[1];
  return operation;
}

} // namespace

void
AddAdaptiveEqualizationFilter(std::vector<FilterDescription> & filters)
{
  ParameterDescription tile =
    MakeParameter("TileSize",
                  "tile",
                  ParameterType::Integers,
                  "Voxels of a tile, one number or one for each spatial axis; by default an eighth of the image");
  tile.minimum = 1;
  tile.maximum = static_cast<double>(AdaptiveEqualizationOperation::LargestTile);
  tile.exampleText = "64";
  ParameterDescription clip = MakeNonNegative(
    "ClipLimit",
    "clip",
    "The part of a tile's voxels that a bin holds at most, so that noise is not amplified; 0 clips nothing",
    "0.01");
  ParameterDescription bins =
    MakeParameter("NumberOfBins", "bins", ParameterType::Integer, "Bins of the histograms", "256");
  bins.minimum = 2;
  bins.maximum = AdaptiveEqualizationOperation::MostBins;
  ParameterDescription range = MakeParameter(
    "Range",
    "range",
    ParameterType::Reals,
    "The values from which and up to which the image is equalized; auto: its least and its largest finite one");
  range.count = ParameterCount::Two;
  range.defaultText = "auto";
  range.provisionalText = "0,1";
  range.estimate = { TakeExtremes, [](const Operation &, PixelType) -> std::shared_ptr<const Operation> {
                      return std::make_shared<StatisticsOperation>();
                    } };
  FilterDescription row;
  row.name = "clahe";
  row.group = "Enhancement";
  row.title = "Contrast-limited adaptive histogram equalization: the same contrast everywhere";
  row.parameters = { tile, clip, bins, range, SpatialAxesParameter() };
  row.canBeStage = false;
  row.make = MakeEqualization;
  filters.push_back(row);
}

} // namespace chunkwise
