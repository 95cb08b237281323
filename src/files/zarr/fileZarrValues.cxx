/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileZarrValues.h"

#include <algorithm>
#include <array>

namespace chunkwise::files
{

namespace
{

struct StridedAxis
{
  std::int64_t extent;
  std::int64_t from;
  std::int64_t to;
};

using StridedAxes = std::array<StridedAxis, MaxDimension>;

template <typename TWord>
void
CopyWords(const char * from, std::int64_t fromStride, char * to, std::int64_t toStride, std::int64_t count)
{
  constexpr auto size = static_cast<std::int64_t>(sizeof(TWord));
  for (std::int64_t i = 0; i < count; ++i)
  {
    // Copies of memory: voxels need not be aligned.
    TWord word;
    std::memcpy(&word, from + i * fromStride * size, sizeof(word));
    std::memcpy(to + i * toStride * size, &word, sizeof(word));
  }
}

void
CopyRow(std::size_t size, const char * from, char * to, const StridedAxis & axis)
{
  if (axis.from == 1 && axis.to == 1)
  {
    std::memcpy(to, from, static_cast<std::size_t>(axis.extent) * size);
    return;
  }
  switch (size)
  {
    case 1:
      return CopyWords<std::uint8_t>(from, axis.from, to, axis.to, axis.extent);
    case 2:
      return CopyWords<std::uint16_t>(from, axis.from, to, axis.to, axis.extent);
    case 4:
      return CopyWords<std::uint32_t>(from, axis.from, to, axis.to, axis.extent);
    default:
      return CopyWords<std::uint64_t>(from, axis.from, to, axis.to, axis.extent);
  }
}

void
CopyAxes(std::size_t size, const char * from, char * to, const StridedAxes & axes, std::size_t count)
{
  if (count == 1)
  {
    return CopyRow(size, from, to, axes[0]);
  }
  const StridedAxis & axis = axes[count - 1];
  for (std::int64_t i = 0; i < axis.extent; ++i)
  {
    const auto bytes = static_cast<std::int64_t>(size);
    CopyAxes(size, from + i * axis.from * bytes, to + i * axis.to * bytes, axes, count - 1);
  }
}

} // namespace

void
CopyStrided(std::size_t size, const Coordinates & extent, const char * from, const Coordinates & fromStride, char * to,
            const Coordinates & toStride)
{
  StridedAxes axes{};
  std::size_t count = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (extent[a] == 0)
    {
      return;
    }
    if (extent[a] > 1)
    {
      axes[count++] = { extent[a], fromStride[a], toStride[a] };
    }
  }
  if (count == 0)
  {
    axes[count++] = { 1, 1, 1 };
  }
  std::sort(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(count), [](const auto & a, const auto & b) {
    return a.to != b.to ? a.to < b.to : a.from < b.from;
  });
  // Axes that go on in both where the one before ends are one.
  std::size_t last = 0;
  for (std::size_t i = 1; i < count; ++i)
  {
    if (axes[i].from == axes[last].from * axes[last].extent && axes[i].to == axes[last].to * axes[last].extent)
    {
      axes[last].extent *= axes[i].extent;
    }
    else
    {
      axes[++last] = axes[i];
    }
  }
  CopyAxes(size, from, to, axes, last + 1);
}

} // namespace chunkwise::files
