/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandRegion.h"

#include "chunkwiseError.h"
#include "chunkwiseFilters.h"
#include "chunkwiseRegions.h"
#include "commandLine.h"

namespace command
{

using chunkwise::Box;

std::vector<std::int64_t>
ParseRegion(const std::string & text)
{
  chunkwise::ParameterDescription row;
  row.name = "--region";
  row.type = chunkwise::ParameterType::Integers;
  try
  {
    return std::get<std::vector<std::int64_t>>(chunkwise::ParseParameter(row, text));
  }
  catch (const chunkwise::ParameterError & error)
  {
    throw ArgumentError(error.what());
  }
}

Box
MakeRegion(const std::vector<std::int64_t> & numbers, const Box & whole, int dimension)
{
  if (numbers.empty())
  {
    return whole;
  }
  const auto axes = static_cast<std::size_t>(dimension);
  if (numbers.size() != 2 * axes)
  {
    throw ArgumentError("--region: " + std::to_string(numbers.size()) + " numbers; a " + std::to_string(dimension) +
                        "-D image takes " + std::to_string(2 * axes) + ", where it begins and its sizes");
  }
  Box region = whole;
  for (std::size_t i = 0; i < axes; ++i)
  {
    const int          a = static_cast<int>(i);
    const std::int64_t begin = numbers[i];
    const std::int64_t size = numbers[axes + i];
    const std::int64_t extent = whole.Extent(a);
    if (begin < 0 || size < 1 || begin >= extent || size > extent - begin)
    {
      throw ArgumentError("--region: " + std::to_string(size) + (size == 1 ? " voxel" : " voxels") + " from " +
                          std::to_string(begin) + " on along axis " + std::to_string(i) +
                          " are not within the result's " + std::to_string(extent));
    }
    region.lower[a] = whole.lower[a] + begin;
    region.upper[a] = region.lower[a] + size;
  }
  return region;
}

Box
GetComputedBox(const chunkwise::Operation & operation, const Box & region, const Box & image)
{
  if (operation.GetOutputGrid())
  {
    return region;
  }
  const chunkwise::Halo halo = operation.GetHalo(image.Extents());
  const bool            sweeps = operation.GetSchedule() == chunkwise::Schedule::Sweep;
  Box                   computed = region;
  for (int a = 0; a < chunkwise::MaxDimension; ++a)
  {
    const bool isJoined = operation.GetSchedule() == chunkwise::Schedule::Fixpoint ||
                          operation.GetSchedule() == chunkwise::Schedule::TwoPass;
    const bool whole = isJoined && chunkwise::NeedsWholeAxis(operation, a, image);
    if (whole || halo.lower[a] >= chunkwise::WholeAxis || (sweeps && a == operation.GetSweepAxis(image.Extents())))
    {
      computed.lower[a] = image.lower[a];
    }
    if (whole || halo.upper[a] >= chunkwise::WholeAxis)
    {
      computed.upper[a] = image.upper[a];
    }
  }
  return computed;
}

} // namespace command
