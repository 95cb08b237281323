/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarrGrid_h
#define fileZarrGrid_h

#include "fileByteCount.h"
#include "fileZarrMetadata.h"

namespace chunkwise::files
{

/** A place, or lengths, along the axes of an array of Zarr. */
using ZarrIndex = std::vector<std::int64_t>;

/** Chunks of one level of an array, in coordinates of the array's axes and of FileSource's. */
class ZarrGrid
{
public:
  ZarrGrid(const ZarrArray & array, std::vector<int> fileAxis)
    : m_Array(array)
    , m_FileAxis(std::move(fileAxis))
  {}
  std::size_t
  GetNumberOfAxes() const
  {
    return m_Array.shape.size();
  }
  const ZarrLevel &
  GetLevel(std::size_t level) const
  {
    return m_Array.levels[level];
  }
  std::size_t
  GetLast() const
  {
    return m_Array.levels.size() - 1;
  }
  /** The begin, or the end, of a box of the file's coordinates along an axis of the array. */
  std::int64_t
  GetLower(const Box & box, std::size_t axis) const
  {
    return m_FileAxis[axis] < 0 ? 0 : box.lower[m_FileAxis[axis]];
  }
  std::int64_t
  GetUpper(const Box & box, std::size_t axis) const
  {
    return m_FileAxis[axis] < 0 ? 1 : box.upper[m_FileAxis[axis]];
  }
  /** The part of the image in a chunk that begins at `origin`, cut to `within`. */
  Box
  GetBox(std::size_t level, const ZarrIndex & origin, const Box & within) const
  {
    Box box = Box::FromExtent(Coordinates::Filled(1));
    for (std::size_t i = 0; i < origin.size(); ++i)
    {
      if (m_FileAxis[i] >= 0)
      {
        const int a = m_FileAxis[i];
        // No sum: chunks may be longer than can be counted from here.
        const std::int64_t left = within.upper[a] - origin[i];
        box.lower[a] = std::max(origin[i], within.lower[a]);
        box.upper[a] =
          left > m_Array.levels[level].chunk[i] ? origin[i] + m_Array.levels[level].chunk[i] : within.upper[a];
      }
    }
    return box;
  }
  /** The distance of voxels in a chunk of the last level, along the file's axes. */
  Coordinates
  GetStrides() const
  {
    const ZarrLevel & level = m_Array.GetInnermost();
    Coordinates       strides{};
    std::int64_t      stride = 1;
    for (std::size_t i = level.order.size(); i-- > 0;)
    {
      const auto axis = static_cast<std::size_t>(level.order[i]);
      if (m_FileAxis[axis] >= 0)
      {
        strides[m_FileAxis[axis]] = stride;
      }
      stride *= level.chunk[axis];
    }
    return strides;
  }
  /** The distance of a box's first voxel from that of the chunk of the last level that it is in. */
  std::int64_t
  GetOffset(const ZarrIndex & origin, const Box & box, const Coordinates & strides) const
  {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < origin.size(); ++i)
    {
      offset += m_FileAxis[i] < 0 ? 0 : (box.lower[m_FileAxis[i]] - origin[i]) * strides[m_FileAxis[i]];
    }
    return offset;
  }
  /** Chunks of `level` along each axis that a box of the image touches, from the first one on, and their number. */
  std::int64_t
  CountChunks(std::size_t level, const Box & box, ZarrIndex & first, ZarrIndex & count) const
  {
    std::int64_t number = 1;
    first.resize(this->GetNumberOfAxes());
    count.resize(this->GetNumberOfAxes());
    for (std::size_t i = 0; i < first.size(); ++i)
    {
      const std::int64_t chunk = m_Array.levels[level].chunk[i];
      first[i] = this->GetLower(box, i) / chunk;
      count[i] = (this->GetUpper(box, i) - 1) / chunk + 1 - first[i];
      number *= count[i];
    }
    return number;
  }
  /** Chunks of the next level in one of `level`. */
  ZarrIndex
  GetInner(std::size_t level) const
  {
    ZarrIndex inner(this->GetNumberOfAxes());
    for (std::size_t i = 0; i < inner.size(); ++i)
    {
      inner[i] = m_Array.levels[level].chunk[i] / m_Array.levels[level + 1].chunk[i];
    }
    return inner;
  }
  /** Values of a chunk. */
  std::int64_t
  CountVoxelsOfChunk(std::size_t level) const
  {
    std::int64_t count = 1;
    for (const std::int64_t length : m_Array.levels[level].chunk)
    {
      count *= length;
    }
    return count;
  }
  /** Bytes of the index of a shard: saturated. */
  ByteCount
  CountIndexBytes(std::size_t level) const
  {
    ByteCount count(16);
    for (const std::int64_t length : this->GetInner(level))
    {
      count = count * length;
    }
    return count + ByteCount(m_Array.levels[level].indexHasChecksum ? 4 : 0);
  }
  /** The place of a chunk in the index of its shard, by its number along each axis. */
  std::int64_t
  GetPlaceInIndex(std::size_t level, const ZarrIndex & at) const
  {
    const ZarrIndex inner = this->GetInner(level);
    std::int64_t    place = 0;
    for (const int axis : m_Array.levels[level].order)
    {
      place = place * inner[static_cast<std::size_t>(axis)] + at[static_cast<std::size_t>(axis)];
    }
    return place;
  }
  /** The whole of a file's axis that is a unit of streams: chunks of `level`. */
  Coordinates
  GetUnit(std::size_t level, const Coordinates & extent) const
  {
    Coordinates unit = Coordinates::Filled(1);
    for (std::size_t i = 0; i < m_FileAxis.size(); ++i)
    {
      if (m_FileAxis[i] >= 0)
      {
        unit[m_FileAxis[i]] = std::min(m_Array.levels[level].chunk[i], extent[m_FileAxis[i]]);
      }
    }
    return unit;
  }

private:
  const ZarrArray & m_Array;
  std::vector<int>  m_FileAxis;
};

/** The index of row-major number `i` in a grid of `count`, from `first` on. */
inline ZarrIndex
GetZarrIndex(std::int64_t i, const ZarrIndex & first, const ZarrIndex & count)
{
  ZarrIndex index(first);
  for (std::size_t a = count.size(); a-- > 0;)
  {
    index[a] += i % count[a];
    i /= count[a];
  }
  return index;
}

/** The first voxel of a chunk, by its number along each axis. */
inline ZarrIndex
GetZarrOrigin(const ZarrIndex & index, const ZarrIndex & chunk)
{
  ZarrIndex origin(index);
  for (std::size_t a = 0; a < origin.size(); ++a)
  {
    origin[a] *= chunk[a];
  }
  return origin;
}

} // namespace chunkwise::files

#endif
