/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandTrial.h"

#include "chunkwiseRegions.h"

#include <algorithm>
#include <chrono>
#include <random>

namespace command
{

namespace
{

using chunkwise::Box;

constexpr double EnoughSeconds = 0.05;

/** A part of the region with about `extent` voxels along each axis, and twice the halo where windows are long,
 * so that what is computed of the halo counts about as much as in a thin division. */
Box
PartOf(const chunkwise::StreamedRequest & stream, int axis, const Box & image, std::int64_t extent)
{
  const chunkwise::Halo halo =
    stream.operation->GetOutputGrid() ? chunkwise::Halo::None() : stream.operation->GetHalo(image.Extents());
  Box part = stream.region;
  for (int a = 0; a < chunkwise::MaxDimension; ++a)
  {
    if (stream.operation->GetSchedule() != chunkwise::Schedule::Independent)
    {
      // The carry begins at the image's beginning.
      part.upper[a] = a == axis ? std::min(part.upper[a], part.lower[a] + extent / 16) : part.upper[a];
      continue;
    }
    const std::int64_t whole = stream.region.Extent(a);
    const std::int64_t wanted = std::max(extent, 2 * std::max(halo.lower[a], halo.upper[a]));
    const std::int64_t taken = halo.lower[a] >= chunkwise::WholeAxis ? whole : std::min(whole, wanted);
    part.lower[a] += (whole - taken) / 2;
    part.upper[a] = part.lower[a] + taken;
  }
  return part;
}

void
FillWithNoise(std::vector<std::uint64_t> & memory, chunkwise::PixelType kind)
{
  std::mt19937_64 random;
  for (std::uint64_t & word : memory)
  {
    word = random();
    if (chunkwise::IsFloatingPoint(kind))
    {
      // Numbers from 1 to 2: no NaN among them.
      const bool isDouble = PixelSize(kind) == 8;
      word = isDouble ? (word >> 12 | 0x3ff0000000000000u) : ((word & 0x007fffff007fffffu) | 0x3f8000003f800000u);
    }
  }
}

} // namespace

double
TimeOnNoise(const chunkwise::StreamedRequest & stream, const chunkwise::StreamedPlan & plan)
{
  const Box image = chunkwise::GetImageBox(stream);
  if (stream.region.IsEmpty() || chunkwise::NeedsWholeAxis(*stream.operation, plan.axis, image))
  {
    return 0.0;
  }
  double rate = 0.0;
  for (std::int64_t extent = 16; rate == 0.0 || extent <= 512; extent *= 2)
  {
    const Box                   part = PartOf(stream, plan.axis, image, extent);
    chunkwise::ExecutionRequest request = MakeDivisionRequest(stream, plan, part);
    request.backend = chunkwise::BackendChoice::CPU;
    std::uint64_t                           bytes = 0;
    std::vector<std::vector<std::uint64_t>> memory;
    std::vector<chunkwise::BufferView>      views = request.inputs;
    views.push_back(request.output);
    for (const chunkwise::BufferView & view : views)
    {
      bytes += static_cast<std::uint64_t>(view.box.NumberOfVoxels()) * PixelSize(view.kind);
    }
    if (bytes > plan.bytesAtOnce && rate > 0.0)
    {
      break;
    }
    for (chunkwise::BufferView & view : views)
    {
      memory.emplace_back(static_cast<std::size_t>(view.box.NumberOfVoxels()) * PixelSize(view.kind) / 8 + 1);
      FillWithNoise(memory.back(), view.kind);
      view.data = memory.back().data();
    }
    request.output = views.back();
    views.pop_back();
    request.inputs = views;
    const auto start = std::chrono::steady_clock::now();
    chunkwise::Manager::GetGlobal().Execute(request);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    rate = static_cast<double>(part.NumberOfVoxels()) / seconds;
    if (seconds > EnoughSeconds || part == stream.region)
    {
      break;
    }
  }
  return static_cast<double>(stream.region.NumberOfVoxels()) / rate;
}

} // namespace command
