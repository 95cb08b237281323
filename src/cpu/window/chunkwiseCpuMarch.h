/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuMarch_h
#define chunkwiseCpuMarch_h

#include "chunkwiseCpuMarchRows.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseSidedBoxes.h"

#include <vector>

// Windows that look at their center, as passes along one axis after the other. A tile is passed along its last windowed
// axis, plane by plane: a plane across that axis is read with its surroundings, goes through the passes along the axes
// before, and stays in a ring until no window needs it. So only what two tiles share is passed twice, and what is
// between passes stays in the caches.
namespace chunkwise
{

/** Numbers of a line. */
template <typename TReal>
constexpr std::int64_t MarchWidth = MarchLine / static_cast<std::int64_t>(sizeof(TReal));

/** Numbers of a row with room for `n`: whole lines, and one more, so that a line may begin at any of them. */
template <typename TReal>
std::int64_t
MarchRowLength(std::int64_t n)
{
  return (n + MarchWidth<TReal> - 1) / MarchWidth<TReal> * MarchWidth<TReal> + MarchWidth<TReal>;
}

/** The tiles of a march. */
struct MarchTiling
{
  /** Bytes of the ring that tiles should stay below, so that it lies in a core's own cache. */
  static constexpr std::int64_t CacheBytes = 640 * 1024;

  /** For so many bytes of each voxel between passes, of numbers of `size` bytes. No extent shrinks when the output
   * grows. */
  MarchTiling(const Box & output, const Coordinates & radius, std::int64_t bytes, std::int64_t size);

  /** Extents that make about as many tiles of the output, but all of the same size, and enough for all workers. */
  Coordinates
  Balance(const Box & output, unsigned int workers) const;

  /** The axis along which planes follow each other. */
  int          axis{ 1 };
  Coordinates  radius{};
  Coordinates  tile{};
  std::int64_t line{ 1 }; ///< numbers of MarchLine
};

/** How planes of a tile lie in a worker's memory. */
template <typename TReal>
struct MarchMemory
{
  /** Numbers of a voxel before the first pass, between passes, and after the last one. */
  int inputFields{ 1 };
  int fields{ 1 };
  int resultFields{ 1 };
  /** Whether the first pass is along x, and the last one along the axis of the march. */
  bool beginsWithX{ false };
  bool hasRing{ false };
  /** The rows that pass `level` reads: numbers from one kind to the next, of a row, and the first of them. A first pass
   * along x reads two rows in turn, the last one the ring. */
  std::int64_t gap[MaxDimension + 1]{};
  std::int64_t row[MaxDimension + 1]{};
  TReal *      rows[MaxDimension + 1]{};
  std::int64_t slots{ 0 };
  std::int64_t slot{ 0 }; ///< numbers of a plane of the ring
  TReal *      results{ nullptr };

  /** Lays the parts out from `memory`; gives the bytes they take. */
  std::int64_t
  LayOut(const SidedBoxes & boxes, int axis, char * memory)
  {
    std::int64_t bytes = 0;
    const auto   take = [&](std::int64_t n) {
      TReal * const part = reinterpret_cast<TReal *>(memory + bytes);
      bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(TReal)));
      return part;
    };
    beginsWithX = boxes.axes[0] == 0;
    hasRing = boxes.axes[boxes.count - 1] == axis;
    // A line may begin before the first row.
    take(MarchWidth<TReal>);
    for (int level = 0; level < boxes.count; ++level)
    {
      const Box &        box = boxes.Before(level);
      const std::int64_t number = box.NumberOfVoxels() / std::max<std::int64_t>(1, box.Extent(0) * box.Extent(axis));
      gap[level] = MarchRowLength<TReal>(box.Extent(0));
      row[level] = (level == 0 ? inputFields : fields) * gap[level];
      slot = number * row[level];
      if (level == 0 && beginsWithX)
      {
        rows[level] = take(2 * row[level]);
      }
      else if (level + 1 == boxes.count)
      {
        slots = boxes.Taps(axis) - 1 + MarchTogether;
        rows[level] = take(slots * slot);
      }
      else
      {
        rows[level] = take(slot);
      }
    }
    gap[boxes.count] = MarchRowLength<TReal>(boxes.after[0].Extent(0));
    row[boxes.count] = resultFields * gap[boxes.count];
    results = rows[boxes.count] = take(MarchTogether * row[boxes.count]);
    return bytes;
  }
};

/** The march of a tile. TFilter has
 * - Step, what its row functions take
 * - Load(box of a row, to): what the first pass reads; Convert(voxels, n, to): the same of a row of the input. Several
 *   numbers of a voxel are MarchRowLength of the padded box apart
 * - Across(pass, position, firstTap, step): a pass along an axis other than x, whose first result has this position and
 *   this first tap
 * - AlongX(row, taps, step): the first pass, along x, of a row of all voxels; `taps` has room for pointers
 * - Store(at, n, results) */
template <typename TReal, typename TFilter>
class PlaneMarch
{
public:
  using Step = typename TFilter::Step;

  PlaneMarch(const KernelCall & call, const TFilter & filter, int axis, const SidedBoxes & boxes,
             const MarchMemory<TReal> & memory)
    : m_Call(call)
    , m_Filter(filter)
    , m_Axis(axis)
    , m_Boxes(boxes)
    , m_Memory(memory)
    , m_Output(m_Boxes.after[m_Boxes.count - 1])
  {
    std::int64_t taps = 1;
    for (int pass = 0; pass < boxes.count; ++pass)
    {
      taps = std::max(taps, boxes.Taps(boxes.axes[pass]));
    }
    m_Planes.resize(static_cast<std::size_t>(taps - 1 + MarchTogether));
    m_Taps.resize(m_Planes.size());
  }

  void
  Run()
  {
    std::int64_t made = m_Boxes.padded.lower[m_Axis];
    std::int64_t count = 1;
    for (std::int64_t i = m_Output.lower[m_Axis]; i < m_Output.upper[m_Axis]; i += count)
    {
      if (m_Call.control && m_Call.control->ShouldStop())
      {
        return;
      }
      if (!m_Memory.hasRing)
      {
        MakePlane(i);
        continue;
      }
      count = CountTogether(m_Boxes.count - 1, i);
      const std::int64_t needed = std::min(i + count + m_Boxes.upper[m_Axis], m_Boxes.padded.upper[m_Axis]);
      for (; made < needed; ++made)
      {
        MakePlane(made);
      }
      FinishPlanes(i, count);
    }
  }

private:
  static Box
  Slice(Box box, int a, std::int64_t position)
  {
    box.lower[a] = position;
    box.upper[a] = position + 1;
    return box;
  }

  /** The first row that pass `level` reads of the plane at a position of the march. */
  TReal *
  Plane(int level, std::int64_t position) const
  {
    TReal * const rows = m_Memory.rows[level];
    return m_Memory.hasRing && level + 1 == m_Boxes.count
             ? rows + (position - m_Boxes.padded.lower[m_Axis]) % m_Memory.slots * m_Memory.slot
             : rows;
  }

  /** The number of rows, or planes, from position `i` on that a pass makes together because they have all taps. */
  std::int64_t
  CountTogether(int pass, std::int64_t i) const
  {
    const int   a = m_Boxes.axes[pass];
    const Box & before = m_Boxes.Before(pass);
    return i - m_Boxes.radius[a] >= before.lower[a] && i + MarchTogether + m_Boxes.upper[a] <= before.upper[a] &&
               i + MarchTogether <= m_Boxes.after[pass].upper[a] && m_Boxes.Taps(a) >= MarchTogether
             ? MarchTogether
             : 1;
  }

  /** The plane at a position of the march, passed along the axes before. */
  void
  MakePlane(std::int64_t position)
  {
    const Box slice = Slice(m_Boxes.padded, m_Axis, position);
    if (m_Memory.beginsWithX)
    {
      MakeRows(slice, Plane(1, position));
    }
    else
    {
      TReal * to = Plane(0, position);
      ForEachRow(slice, [&](const Coordinates & at) {
        LoadRow(at, to);
        to += m_Memory.row[0];
      });
    }
    for (int pass = m_Memory.beginsWithX ? 1 : 0; pass + 1 < m_Boxes.count; ++pass)
    {
      PassPlane(pass, position);
    }
  }

  /** The rows of a plane, passed along x. Each is loaded while the one before is passed: what was stored a moment ago
   * is slow to read. */
  void
  MakeRows(const Box & slice, TReal * to)
  {
    Step step = MakeStep(0, 1);
    step.results[0] = to;
    Coordinates  loaded{};
    std::int64_t number = 0;
    const auto   pass = [&] {
      m_Filter.AlongX(m_Memory.rows[0] + (number - 1) % 2 * m_Memory.row[0], m_Taps.data(), step);
      if (step.isLast)
      {
        loaded[0] = m_Output.lower[0];
        m_Filter.Store(loaded, step.n, step.results[0]);
        return;
      }
      step.results[0] += m_Memory.row[1];
    };
    ForEachRow(slice, [&](const Coordinates & at) {
      LoadRow(at, m_Memory.rows[0] + number % 2 * m_Memory.row[0]);
      if (number > 0)
      {
        pass();
      }
      if (step.isLast)
      {
        loaded = at;
      }
      ++number;
    });
    pass();
  }

  /** A row as the first pass reads it, with zeros after it. Prefetches the voxels that the next plane reads in its
   * place. */
  void
  LoadRow(const Coordinates & at, TReal * to) const
  {
    const BufferView & input = m_Call.inputs[0];
    const std::int64_t n = m_Boxes.padded.Extent(0);
    bool               isInside = input.stride[0] == 1 && at[0] + n <= input.box.upper[0];
    for (int a = 0; a < MaxDimension; ++a)
    {
      isInside = isInside && at[a] >= input.box.lower[a] && at[a] < input.box.upper[a];
    }
    std::fill(to + n, to + m_Memory.row[0], TReal{ 0 });
    if (isInside)
    {
      const auto         size = static_cast<std::int64_t>(PixelSize(input.kind));
      const char * const voxels = static_cast<const char *>(input.data) + input.Offset(at) * size;
      const char * const next = voxels + input.stride[m_Axis] * size;
      for (std::int64_t byte = 0; at[m_Axis] + 1 < input.box.upper[m_Axis] && byte < n * size; byte += 64)
      {
        __builtin_prefetch(next + byte);
      }
      m_Filter.Convert(voxels, n, to);
      return;
    }
    Box row{ at, at };
    for (int a = 0; a < MaxDimension; ++a)
    {
      row.upper[a] += a == 0 ? n : 1;
    }
    m_Filter.Load(row, to);
  }

  /** The part of a step that all rows of a pass share. */
  Step
  MakeStep(int pass, std::int64_t count) const
  {
    Step step;
    step.gap = m_Memory.gap[pass];
    step.isFirst = pass == 0;
    step.isLast = pass + 1 == m_Boxes.count;
    step.resultGap = m_Memory.gap[pass + 1];
    step.count = static_cast<int>(count);
    step.n = m_Output.Extent(0);
    step.rows = m_Taps.data();
    return step;
  }

  /** The taps of `count` positions from `i` on. */
  struct Range
  {
    std::int64_t first;
    std::int64_t taps;
  };
  Range
  RangeOf(int pass, std::int64_t i) const
  {
    const int          a = m_Boxes.axes[pass];
    const Box &        before = m_Boxes.Before(pass);
    const std::int64_t first = std::max(i - m_Boxes.radius[a], before.lower[a]);
    return { first, std::min(i + m_Boxes.upper[a] + 1, before.upper[a]) - first };
  }

  /** A pass within a plane. Rows along its axis are `apart` rows apart, and each of `apart` columns begins after the
   * one before it. */
  void
  PassPlane(int pass, std::int64_t position)
  {
    const int     a = m_Boxes.axes[pass];
    const Box &   before = m_Boxes.Before(pass);
    const Box &   after = m_Boxes.after[pass];
    const TReal * from = Plane(pass, position);
    TReal *       to = Plane(pass + 1, position);
    std::int64_t  apart = 1;
    std::int64_t  blocks = 1;
    for (int b = 1; b < MaxDimension; ++b)
    {
      (b < a ? apart : blocks) *= b == a || b == m_Axis ? 1 : before.Extent(b);
    }
    const std::int64_t row = m_Memory.row[pass];
    const std::int64_t resultRow = m_Memory.row[pass + 1];
    for (std::int64_t block = 0; block < blocks; ++block)
    {
      for (std::int64_t i = after.lower[a], count = 1; i < after.upper[a]; i += count)
      {
        count = CountTogether(pass, i);
        const Range range = RangeOf(pass, i);
        Step        step = MakeStep(pass, count);
        step.taps = range.taps;
        for (std::int64_t column = 0; column < apart; ++column)
        {
          for (std::int64_t t = 0; t < range.taps + count - 1; ++t)
          {
            m_Taps[static_cast<std::size_t>(t)] = from + ((range.first - before.lower[a] + t) * apart + column) * row;
          }
          for (int k = 0; k < step.count; ++k)
          {
            step.centers[k] = m_Taps[static_cast<std::size_t>(i + k - range.first)];
            step.results[k] = to + ((i + k - after.lower[a]) * apart + column) * resultRow;
          }
          m_Filter.Across(pass, i, range.first - (i - m_Boxes.radius[a]), step);
        }
      }
      from += before.Extent(a) * apart * row;
      to += after.Extent(a) * apart * resultRow;
    }
  }

  /** The last pass of `count` planes from position `i` on. */
  void
  FinishPlanes(std::int64_t i, std::int64_t count)
  {
    const int   pass = m_Boxes.count - 1;
    const Range range = RangeOf(pass, i);
    Step        step = MakeStep(pass, count);
    step.taps = range.taps;
    const auto planes = static_cast<std::size_t>(range.taps + count - 1);
    for (std::size_t t = 0; t < planes; ++t)
    {
      m_Planes[t] = Plane(pass, range.first + static_cast<std::int64_t>(t));
    }
    std::int64_t offset = 0;
    ForEachRow(Slice(m_Output, m_Axis, i), [&](const Coordinates & first) {
      for (std::size_t t = 0; t < planes; ++t)
      {
        m_Taps[t] = m_Planes[t] + offset;
      }
      for (int k = 0; k < step.count; ++k)
      {
        step.centers[k] = m_Taps[static_cast<std::size_t>(i + k - range.first)];
        step.results[k] = m_Memory.results + k * m_Memory.row[pass + 1];
      }
      // Before the rows: a copy waits until what was written last is in the cache.
      Coordinates at = first;
      m_Filter.Across(pass, i, range.first - (i - m_Boxes.radius[m_Axis]), step);
      for (int k = 0; k < step.count; ++k)
      {
        m_Filter.Store(at, step.n, step.results[k]);
        ++at[m_Axis];
      }
      offset += m_Memory.row[pass];
    });
  }

  const KernelCall &         m_Call;
  const TFilter &            m_Filter;
  const int                  m_Axis;
  const SidedBoxes           m_Boxes;
  const MarchMemory<TReal> & m_Memory;
  const Box &                m_Output;
  std::vector<const TReal *> m_Planes;
  std::vector<const TReal *> m_Taps;
};

} // namespace chunkwise

#endif
