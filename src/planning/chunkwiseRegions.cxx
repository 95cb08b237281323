/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseRegions.h"

#include <algorithm>

namespace chunkwise
{

Box
GetOutputBox(const Operation & operation, const Box & image)
{
  const OutputGrid * const grid = operation.GetOutputGrid();
  return grid ? Box::FromExtent(grid->GetExtent(image.Extents())) : image;
}

Box
GetCopiedBox(const Operation & operation, const Box & image)
{
  const Box output = GetOutputBox(operation, image);
  Box       box = image;
  for (int a = 0; a < MaxDimension; ++a)
  {
    box.upper[a] = std::max(box.upper[a], output.upper[a]);
  }
  return box;
}

Box
GetInputBox(const Operation & operation, const Box & output, const Box & image)
{
  if (output.IsEmpty())
  {
    return output;
  }
  if (const OutputGrid * const grid = operation.GetOutputGrid())
  {
    return grid->GetInputBox(output, image.Extents());
  }
  const Halo halo = operation.GetHalo(image.Extents());
  const Box  tiles = AlignToTiles(output, operation.GetTile(image.Extents()), image);
  Box        input = PadAndCrop(tiles, halo, image);
  if (operation.WrapsAround())
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (tiles.lower[a] - halo.lower[a] < image.lower[a] || tiles.upper[a] + halo.upper[a] > image.upper[a])
      {
        input.lower[a] = image.lower[a];
        input.upper[a] = image.upper[a];
      }
    }
  }
  return input;
}

bool
NeedsWholeAxis(const Operation & operation, int axis, const Box & image)
{
  if (operation.GetOutputGrid())
  {
    return false;
  }
  if (operation.GetSchedule() == Schedule::TwoPass && operation.HasOutput() && !operation.HandsOnState())
  {
    // All summaries are solved together.
    return true;
  }
  const Halo halo = operation.GetHalo(image.Extents());
  const bool depends = halo.lower[axis] > 0 || halo.upper[axis] > 0;
  return depends && (operation.GetSchedule() == Schedule::Fixpoint || halo.lower[axis] >= WholeAxis ||
                     halo.upper[axis] >= WholeAxis);
}

} // namespace chunkwise
