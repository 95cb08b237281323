/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFixpointWork.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** Bands of a part, and the voxels across a band, at most. */
constexpr std::int64_t BandsOfPart = 16;
constexpr std::int64_t LongestBand = 128;

} // namespace

FixpointWork::FixpointWork(const Box & region, const Box & image, const Halo & halo, const std::vector<Box> & parts,
                           int bandAxis)
  : m_Image(image)
  , m_Halo(halo)
  , m_BandAxis(bandAxis)
{
  std::size_t count = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    std::vector<std::int64_t> & cuts = m_Cuts[a];
    cuts = { region.lower[a], region.upper[a] };
    for (const Box & part : parts)
    {
      cuts.push_back(part.lower[a]);
      cuts.push_back(part.upper[a]);
      m_Longest = a == bandAxis ? std::max(m_Longest, part.Extent(a)) : m_Longest;
    }
    const auto tidy = [&cuts] {
      std::sort(cuts.begin(), cuts.end());
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    };
    tidy();
    if (a == bandAxis)
    {
      for (std::size_t i = cuts.size() - 1; i-- > 0;)
      {
        const std::int64_t extent = cuts[i + 1] - cuts[i];
        const std::int64_t band = std::clamp<std::int64_t>((extent + BandsOfPart - 1) / BandsOfPart, 1, LongestBand);
        for (std::int64_t at = cuts[i] + band; at < cuts[i + 1]; at += band)
        {
          cuts.push_back(at);
        }
      }
      tidy();
    }
    m_Count[a] = static_cast<std::int64_t>(cuts.size()) - 1;
    count *= static_cast<std::size_t>(m_Count[a]);
  }
  m_Cells.resize(count);

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
      const auto markLayer = [&](std::int64_t layer) {
        Coordinates from = first;
        Coordinates to = last;
        from[a] = layer;
        to[a] = layer + 1;
        ForEach(from, to, [this](const Coordinates & index) { Mark(At(index)); });
      };
      if (halo.lower[a] > 0 && first[a] > 0)
      {
        markLayer(first[a]);
      }
      if (halo.upper[a] > 0 && last[a] < m_Count[a])
      {
        markLayer(last[a] - 1);
      }
    }
  }
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
    if (m_Halo.lower[a] > 0 || m_Halo.upper[a] > 0)
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
  const Box padded = PadAndCrop(box, m_Halo, m_Image);
  return std::any_of(
    m_Running.begin(), m_Running.end(), [&](const Box & other) { return !Intersect(padded, other).IsEmpty(); });
}

void
FixpointWork::Mark(Cell & cell)
{
  if (!cell.dirty)
  {
    cell.dirty = true;
    ++m_Dirty;
  }
}

bool
FixpointWork::Take(Visit & visit)
{
  const Cell * best = nullptr;
  Coordinates  at{};
  Coordinates  next = Coordinates::Filled(1);
  if (m_Dirty == 0)
  {
    return false;
  }
  ForEach(Coordinates::Filled(0), m_Count, [&](const Coordinates & index) {
    const Cell & cell = At(index);
    if (!cell.dirty || (best && index[m_BandAxis] <= at[m_BandAxis]))
    {
      return;
    }
    for (int a = 0; a < MaxDimension; ++a)
    {
      next[a] = index[a] + 1;
    }
    if (!IsBlocked(BoxOf(index, next)))
    {
      best = &cell;
      at = index;
    }
  });
  if (!best)
  {
    return false;
  }
  visit = Visit();
  visit.first = at;
  for (int a = 0; a < MaxDimension; ++a)
  {
    visit.last[a] = at[a] + 1;
  }

  // With the dirty bands beside it, and as far beyond as what has come in is expected to go.
  const int    b = m_BandAxis;
  std::int64_t above = best->above;
  std::int64_t below = best->below;
  const auto   grow = [&](bool up, bool dirtyOnly) {
    Visit larger = visit;
    if (up)
    {
      ++larger.last[b];
    }
    else
    {
      --larger.first[b];
    }
    if (larger.first[b] < 0 || larger.last[b] > m_Count[b])
    {
      return false;
    }
    Coordinates index = at;
    index[b] = up ? visit.last[b] : larger.first[b];
    const Cell & cell = At(index);
    larger.box = BoxOf(larger.first, larger.last);
    if ((dirtyOnly && !cell.dirty) || larger.box.Extent(b) > m_Longest || IsBlocked(larger.box))
    {
      return false;
    }
    const std::int64_t more = larger.box.Extent(b) - BoxOf(visit.first, visit.last).Extent(b);
    above = std::max(above - (up && !dirtyOnly ? more : 0), cell.above);
    below = std::max(below - (!up && !dirtyOnly ? more : 0), cell.below);
    visit = larger;
    return true;
  };
  for (const bool up : { true, false })
  {
    while (grow(up, true))
    {
    }
  }
  while (above > 0 && grow(true, false))
  {
  }
  while (below > 0 && grow(false, false))
  {
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
  const std::int64_t reach = 2 * visit.box.Extent(m_BandAxis);
  ForEachAround(visit, [&](const Coordinates & index) {
    std::uint32_t beyond = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      beyond |= index[a] < visit.first[a] ? 1u << (2 * a) : 0u;
      beyond |= index[a] >= visit.last[a] ? 2u << (2 * a) : 0u;
    }
    if (beyond == 0 || (beyond & visit.sides) != beyond)
    {
      return;
    }
    Cell & cell = At(index);
    Mark(cell);
    if (index[m_BandAxis] < visit.first[m_BandAxis])
    {
      cell.below = std::max(cell.below, reach);
    }
    if (index[m_BandAxis] >= visit.last[m_BandAxis])
    {
      cell.above = std::max(cell.above, reach);
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
FixpointWork::Shorten(const Visit & visit)
{
  m_Longest = std::min(m_Longest, std::max<std::int64_t>(visit.box.Extent(m_BandAxis) / 2, 1));
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
