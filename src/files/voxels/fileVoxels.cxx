/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileVoxels.h"

#include "fileByteCount.h"

#include <cstring>

namespace chunkwise::files
{

namespace
{

inline std::uint16_t
Swapped(std::uint16_t v)
{
  return static_cast<std::uint16_t>(v << 8 | v >> 8);
}

inline std::uint32_t
Swapped(std::uint32_t v)
{
  return v << 24 | (v & 0xff00u) << 8 | (v >> 8 & 0xff00u) | v >> 24;
}

inline std::uint64_t
Swapped(std::uint64_t v)
{
  return static_cast<std::uint64_t>(Swapped(static_cast<std::uint32_t>(v))) << 32 |
         Swapped(static_cast<std::uint32_t>(v >> 32));
}

template <typename TWord>
void
SwapWords(void * to, const void * from, std::size_t count)
{
  // Copies of memory: voxels in files need not be aligned.
  for (std::size_t i = 0; i < count; ++i)
  {
    TWord word;
    std::memcpy(&word, static_cast<const char *>(from) + i * sizeof(TWord), sizeof(TWord));
    word = Swapped(word);
    std::memcpy(static_cast<char *>(to) + i * sizeof(TWord), &word, sizeof(TWord));
  }
}

} // namespace

void
SwapBytes(void * to, const void * from, std::size_t count, std::size_t size)
{
  switch (size)
  {
    case 2:
      return SwapWords<std::uint16_t>(to, from, count);
    case 4:
      return SwapWords<std::uint32_t>(to, from, count);
    case 8:
      return SwapWords<std::uint64_t>(to, from, count);
    default:
      if (to != from)
      {
        std::memcpy(to, from, count * size);
      }
  }
}

Coordinates
GetStoredExtent(const ImageHeader & header)
{
  if (header.components == 1)
  {
    return header.extent;
  }
  Coordinates extent{ { header.components, 1, 1, 1, 1 } };
  std::copy_n(header.extent.axis, MaxDimension - 1, extent.axis + 1);
  return extent;
}

std::int64_t
CountVoxels(const std::string & file, const ImageHeader & header)
{
  if (header.components < 1 || (header.components > 1 && header.extent[MaxDimension - 1] != 1))
  {
    Fail(file,
         "has " + std::to_string(header.components) +
           " components a voxel; images of two to four dimensions can have some");
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (header.extent[a] < 1)
    {
      Fail(file, "has no voxels: its size is " + ToString(header.extent));
    }
  }
  const ByteCount values = ByteCount::OfValues(header.extent, header.components);
  // With the largest value type, and room for what else the file holds.
  if (!(values * 16).IsCountable())
  {
    Fail(file, "has more voxels than can be counted: its size is " + ToString(header.extent));
  }
  return values.Get();
}

int
LastAxis(const Coordinates & extent)
{
  int last = MaxDimension - 1;
  while (last > 0 && extent[last] == 1)
  {
    --last;
  }
  return last;
}

void
CheckBox(const Coordinates & extent, PixelType kind, const Box & box, const BufferView & view)
{
  if (view.kind != kind || !Box::FromExtent(extent).Contains(box) || (!box.IsEmpty() && !view.box.Contains(box)))
  {
    throw std::logic_error("a box " + ToString(box) + " that is not in the image or the view");
  }
}

void
CopyBox(const Box & box, const BufferView & from, const BufferView & to)
{
  const std::size_t size = PixelSize(from.kind);
  // Rows that are contiguous in both.
  ForEachStretch(box.upper, box, to, [&](std::int64_t voxel, char * data, std::int64_t count) {
    Coordinates index{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      index[a] = voxel % box.upper[a];
      voxel /= box.upper[a];
    }
    // A stretch of the target is cut into those of the source.
    while (count > 0)
    {
      const std::int64_t row = std::min(count, box.upper[0] - index[0]);
      const char * const source =
        static_cast<const char *>(from.data) + from.Offset(index) * static_cast<std::int64_t>(size);
      if (from.stride[0] == 1 || row == 1)
      {
        std::memcpy(data, source, static_cast<std::size_t>(row) * size);
      }
      else
      {
        for (std::int64_t i = 0; i < row; ++i)
        {
          std::memcpy(data + i * static_cast<std::int64_t>(size),
                      source + i * from.stride[0] * static_cast<std::int64_t>(size),
                      size);
        }
      }
      data += row * static_cast<std::int64_t>(size);
      count -= row;
      index[0] += row;
      for (int a = 0; a + 1 < MaxDimension && index[a] == box.upper[a]; ++a)
      {
        index[a] = box.lower[a];
        ++index[a + 1];
      }
    }
  });
}

void
VoxelCoding::Decode(void * from, void * to, PixelType toKind, std::size_t count) const
{
  if (!scales)
  {
    if (swaps)
    {
      SwapBytes(to, from, count, PixelSize(kind));
    }
    else if (to != from)
    {
      std::memcpy(to, from, count * PixelSize(kind));
    }
    return;
  }
  if (swaps)
  {
    SwapBytes(from, from, count, PixelSize(kind));
  }
  DispatchPixelType(kind, [&](auto stored) {
    DispatchPixelType(toKind, [&](auto wanted) {
      using Stored = decltype(stored);
      using Wanted = decltype(wanted);
      if constexpr (std::is_floating_point_v<Wanted>)
      {
        const auto * const in = static_cast<const Stored *>(from);
        auto * const       out = static_cast<Wanted *>(to);
        for (std::size_t i = 0; i < count; ++i)
        {
          // ITK rounds the stored value to the wanted type first.
          double value = static_cast<double>(static_cast<Wanted>(in[i])) * slope;
          value += intercept;
          out[i] = static_cast<Wanted>(value);
        }
      }
      else
      {
        throw std::logic_error("scaled voxels are float or double");
      }
    });
  });
}

} // namespace chunkwise::files
