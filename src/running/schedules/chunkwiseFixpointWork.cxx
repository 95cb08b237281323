/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFixpointWork.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** Cells across a part along the sweep axis, and the voxels across a cell, at most. */
constexpr std::int64_t CellsOfPart = 16;
constexpr std::int64_t LongestCell = 128;
/** Cells along another axis, and the voxels along a cell, at least. A visit takes as long as it takes to go over some
 * millions of voxels even if it has fewer. */
constexpr std::int64_t CellsAlong = 32;
constexpr std::int64_t ShortestCell = 512;
/** How much further than the visit before it a visit reaches. */
constexpr std::int64_t Reach = 3;

} // namespace

FixpointWork::FixpointWork(const Box & region, const Halo & halo, const std::vector<Box> & parts, int sweepAxis,
                           std::int64_t mostVoxels, IsActiveFunction isActive)
  : m_Region(region)
  , m_Halo(halo)
  , m_SweepAxis(sweepAxis)
  , m_IsActive(std::move(isActive))
  , m_MostVoxels(mostVoxels)
{
  MakeCells(parts);
  // The cells of parts that others touch, where they do.
  for (const Box & part : parts)
  {
    Coordinates first{};
    Coordinates last{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      const auto at = [&](std::int64_t voxel) {
        return std::lower_bound(m_Cuts[a].begin(), m_Cuts[a].end(), voxel) - m_Cuts[a].begin();
      };
      first[a] = at(part.lower[a]);
      last[a] = at(part.upper[a]);
    }
    for (int a = 0; a < MaxDimension; ++a)
    {
      for (const bool up : { false, true })
      {
        if (!IsAxis(a) || (up ? last[a] == m_Count[a] : first[a] == 0))
        {
          continue;
        }
        Coordinates from = first;
        Coordinates to = last;
        from[a] = up ? last[a] - 1 : first[a];
        to[a] = from[a] + 1;
        ForEach(from, to, [&](const Coordinates & index) {
          Coordinates next{};
          for (int b = 0; b < MaxDimension; ++b)
          {
            next[b] = index[b] + 1;
          }
          Box layer = BoxOf(index, next);
          (up ? layer.lower : layer.upper)[a] =
            up ? layer.upper[a] - m_Halo.upper[a] : layer.lower[a] + m_Halo.lower[a];
          layer = Intersect(layer, BoxOf(index, next));
          Cell & cell = At(index);
          if (!cell.dirty && m_IsActive(layer, m_Region))
          {
            Mark(cell);
          }
        });
      }
    }
  }
}

void
FixpointWork::MakeCells(const std::vector<Box> & parts)
{
  int along = -1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    // The longest other axis; of equal ones the slowest, so that rows stay whole.
    if (a != m_SweepAxis && IsAxis(a) && (along < 0 || m_Region.Extent(a) >= m_Region.Extent(along)))
    {
      along = a;
    }
  }
  std::size_t count = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    std::vector<std::int64_t> & cuts = m_Cuts[a];
    cuts = { m_Region.lower[a], m_Region.upper[a] };
    for (const Box & part : parts)
    {
      cuts.push_back(part.lower[a]);
      cuts.push_back(part.upper[a]);
      m_Longest[a] = std::max(m_Longest[a], part.Extent(a));
    }
    const auto tidy = [&cuts] {
      std::sort(cuts.begin(), cuts.end());
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    };
    tidy();
    const std::int64_t shortest = std::max((m_Region.Extent(a) + CellsAlong - 1) / CellsAlong, ShortestCell);
    for (std::size_t i = cuts.size() - 1; i-- > 0;)
    {
      const std::int64_t extent = cuts[i + 1] - cuts[i];
      const std::int64_t cell = a == m_SweepAxis
                                  ? std::clamp<std::int64_t>((extent + CellsOfPart - 1) / CellsOfPart, 1, LongestCell)
                                  : (a == along ? shortest : extent);
      for (std::int64_t at = cuts[i] + cell; at < cuts[i + 1]; at += cell)
      {
        cuts.push_back(at);
      }
    }
    tidy();
    m_Count[a] = static_cast<std::int64_t>(cuts.size()) - 1;
    count *= static_cast<std::size_t>(m_Count[a]);
  }
  m_Cells.resize(count);
}

template <typename TBody>
void
FixpointWork::ForEach(const Coordinates & first, const Coordinates & last, TBody && body)
{
  Coordinates index = first;
  for (;;)
  {
    body(static_cast<const Coordinates &>(index));
    int a = 0;
    while (a < MaxDimension && ++index[a] == last[a])
    {
      index[a] = first[a];
      ++a;
    }
    if (a == MaxDimension)
    {
      return;
    }
  }
}

template <typename TBody>
void
FixpointWork::ForEachAround(const Visit & visit, TBody && body)
{
  Coordinates from = visit.first;
  Coordinates to = visit.last;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (IsAxis(a))
    {
      from[a] = std::max<std::int64_t>(from[a] - 1, 0);
      to[a] = std::min(to[a] + 1, m_Count[a]);
    }
  }
  ForEach(from, to, body);
}

FixpointWork::Cell &
FixpointWork::At(const Coordinates & index)
{
  std::int64_t at = 0;
  for (int a = MaxDimension; a-- > 0;)
  {
    at = at * m_Count[a] + index[a];
  }
  return m_Cells[static_cast<std::size_t>(at)];
}

Box
FixpointWork::BoxOf(const Coordinates & first, const Coordinates & last) const
{
  Box box{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    box.lower[a] = m_Cuts[a][static_cast<std::size_t>(first[a])];
    box.upper[a] = m_Cuts[a][static_cast<std::size_t>(last[a])];
  }
  return box;
}

bool
FixpointWork::IsBlocked(const Box & box) const
{
  const Box padded = PadAndCrop(box, m_Halo, m_Region);
  return std::any_of(m_Running.begin(), m_Running.end(), [&](const Box & other) {
    return !Intersect(padded, PadAndCrop(other, m_Halo, m_Region)).IsEmpty();
  });
}

void
FixpointWork::Mark(Cell & cell)
{
  m_Dirty += cell.dirty ? 0 : 1;
  cell.dirty = true;
}

bool
FixpointWork::Grow(Visit & visit, int axis, bool up, bool onlyDirty)
{
  Visit larger = visit;
  if (up)
  {
    ++larger.last[axis];
  }
  else
  {
    --larger.first[axis];
  }
  if (larger.first[axis] < 0 || larger.last[axis] > m_Count[axis])
  {
    return false;
  }
  larger.box = BoxOf(larger.first, larger.last);
  if (larger.box.Extent(axis) > m_Longest[axis] || larger.box.NumberOfVoxels() > m_MostVoxels || IsBlocked(larger.box))
  {
    return false;
  }
  if (onlyDirty)
  {
    Coordinates from = larger.first;
    Coordinates to = larger.last;
    (up ? from : to)[axis] = up ? visit.last[axis] : visit.first[axis];
    std::int64_t all = 0;
    std::int64_t dirty = 0;
    ForEach(from, to, [&](const Coordinates & index) {
      ++all;
      dirty += At(index).dirty ? 1 : 0;
    });
    if (4 * dirty < all)
    {
      return false;
    }
  }
  visit = larger;
  return true;
}

bool
FixpointWork::Take(Visit & visit)
{
  if (m_Dirty == 0)
  {
    return false;
  }
  const Cell * best = nullptr;
  visit = Visit();
  ForEach(Coordinates::Filled(0), m_Count, [&](const Coordinates & index) {
    const Cell & cell = At(index);
    if (!cell.dirty || (best && index[m_SweepAxis] <= visit.first[m_SweepAxis]))
    {
      return;
    }
    Coordinates next{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      next[a] = index[a] + 1;
    }
    if (!IsBlocked(BoxOf(index, next)))
    {
      best = &cell;
      visit.first = index;
      visit.last = next;
    }
  });
  if (!best)
  {
    return false;
  }

  // With the dirty cells beside it, and as far beyond as what has come in is expected to go.
  for (bool grows = true; grows;)
  {
    grows = false;
    for (int a = 0; a < MaxDimension; ++a)
    {
      for (const bool up : { true, false })
      {
        while (IsAxis(a) && Grow(visit, a, up, true))
        {
          grows = true;
        }
      }
    }
  }
  Coordinates above{};
  Coordinates below{};
  ForEach(visit.first, visit.last, [&](const Coordinates & index) {
    for (int a = 0; a < MaxDimension; ++a)
    {
      above[a] = std::max(above[a], At(index).above[a]);
      below[a] = std::max(below[a], At(index).below[a]);
    }
  });
  for (int a = 0; a < MaxDimension; ++a)
  {
    const Box begun = BoxOf(visit.first, visit.last);
    while (above[a] > 0 && BoxOf(visit.first, visit.last).upper[a] < begun.upper[a] + above[a] &&
           Grow(visit, a, true, false))
    {
    }
    while (below[a] > 0 && BoxOf(visit.first, visit.last).lower[a] > begun.lower[a] - below[a] &&
           Grow(visit, a, false, false))
    {
    }
  }
  visit.box = BoxOf(visit.first, visit.last);
  ForEach(visit.first, visit.last, [this](const Coordinates & index) {
    Cell & cell = At(index);
    m_Dirty -= cell.dirty ? 1 : 0;
    cell = Cell();
  });
  m_Running.push_back(visit.box);
  return true;
}

void
FixpointWork::Forget(const Visit & visit)
{
  m_Running.erase(std::find(m_Running.begin(), m_Running.end(), visit.box));
}

void
FixpointWork::Finish(const Visit & visit)
{
  Forget(visit);
  ++m_Visits;
  m_VisitedVoxels += visit.box.NumberOfVoxels();
  const Box around = PadAndCrop(visit.box, m_Halo, m_Region);
  ForEachAround(visit, [&](const Coordinates & index) {
    std::uint32_t beyond = 0;
    Coordinates   next{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      beyond |= index[a] < visit.first[a] ? 1u << (2 * a) : 0u;
      beyond |= index[a] >= visit.last[a] ? 2u << (2 * a) : 0u;
      next[a] = index[a] + 1;
    }
    if (beyond == 0 || (beyond & visit.sides) != beyond || !m_IsActive(Intersect(BoxOf(index, next), around), around))
    {
      return;
    }
    Cell & cell = At(index);
    Mark(cell);
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t reach = Reach * visit.box.Extent(a);
      if (index[a] < visit.first[a])
      {
        cell.below[a] = std::max(cell.below[a], reach);
      }
      if (index[a] >= visit.last[a])
      {
        cell.above[a] = std::max(cell.above[a], reach);
      }
    }
  });
}

void
FixpointWork::PutBack(const Visit & visit)
{
  Forget(visit);
  ForEachAround(visit, [this](const Coordinates & index) { Mark(At(index)); });
}

void
FixpointWork::Shrink(const Visit & visit)
{
  m_MostVoxels = std::min(m_MostVoxels, visit.box.NumberOfVoxels() / 2);
}

bool
FixpointWork::CanShrink(const Visit & visit)
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (visit.last[a] - visit.first[a] > 1)
    {
      return true;
    }
  }
  return false;
}

void
FixpointWork::MarkAll()
{
  for (Cell & cell : m_Cells)
  {
    Mark(cell);
  }
}

} // namespace chunkwise
