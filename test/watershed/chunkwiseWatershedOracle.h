/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWatershedOracle_h
#define chunkwiseWatershedOracle_h

#include "chunkwiseOracle.h"
#include "chunkwiseWatershedOperation.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

// The watershed by its definition: Kruskal's algorithm over all edges.
namespace chunkwise
{

/** From `values` different ones on, up to any. */
template <typename T>
std::vector<T>
RandomTerrain(std::mt19937 & random, std::size_t count)
{
  std::vector<T>      voxels(count);
  const std::uint32_t values[] = { 1, 2, 4, 30, 100000 };
  const std::uint32_t most = values[random() % 5];
  for (T & voxel : voxels)
  {
    voxel = static_cast<T>(random() % most);
    if constexpr (!std::is_integral<T>::value)
    {
      const std::uint32_t special = random() % 100;
      voxel = special == 0   ? std::numeric_limits<T>::quiet_NaN()
              : special == 1 ? -std::numeric_limits<T>::infinity()
              : special == 2 ? std::numeric_limits<T>::infinity()
              : special == 3 ? -T(0)
                             : voxel / T(4) - T(1);
    }
    else if (random() % 50 == 0)
    {
      voxel = random() % 2 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
    }
  }
  return voxels;
}

template <typename T>
class WatershedOracle
{
public:
  /** `markers` and `mask`: empty if there are none. */
  WatershedOracle(const WatershedOperation & operation, const Coordinates & extent, const std::vector<T> & voxels,
                  std::vector<std::uint64_t> markers, const std::vector<std::uint8_t> & mask)
    : m_Operation(operation)
    , m_Voxels(voxels)
    , m_IsInside(voxels.size())
    , m_Neighbors(voxels.size())
  {
    for (std::size_t i = 0; i < voxels.size(); ++i)
    {
      m_IsInside[i] = voxels[i] == voxels[i] && (mask.empty() || mask[i] != 0);
    }
    const Box         box = Box::FromExtent(extent);
    const Coordinates stride = DenseStrides(extent);
    std::size_t       voxel = 0;
    ForEachIndex(box, [&](const Coordinates & at) {
      int digits[MaxDimension];
      for (int code = 0; code < 243 && m_IsInside[voxel]; ++code)
      {
        int          steps = 0;
        bool         isInside = true;
        std::int64_t other = 0;
        for (int a = 0, rest = code; a < MaxDimension; ++a, rest /= 3)
        {
          digits[a] = rest % 3 - 1;
          const bool isSpatial = std::count(operation.axes.begin(), operation.axes.end(), a) > 0;
          steps += std::abs(digits[a]);
          isInside =
            isInside && (isSpatial || digits[a] == 0) && at[a] + digits[a] >= 0 && at[a] + digits[a] < extent[a];
          other += (at[a] + digits[a]) * stride[a];
        }
        if (isInside && steps > 0 && steps <= operation.connectivity && m_IsInside[static_cast<std::size_t>(other)])
        {
          m_Neighbors[voxel].push_back(static_cast<std::size_t>(other));
        }
      }
      ++voxel;
    });
    if (operation.hasMarkers)
    {
      m_Labels = std::move(markers);
      for (std::size_t i = 0; i < voxels.size(); ++i)
      {
        m_Labels[i] = m_IsInside[i] ? m_Labels[i] : 0;
      }
    }
    else
    {
      this->MarkMinima();
    }
    this->Grow();
    if (operation.lines)
    {
      const std::vector<std::uint64_t> whole = m_Labels;
      for (std::size_t i = 0; i < voxels.size(); ++i)
      {
        for (const std::size_t beside : m_Neighbors[i])
        {
          m_Labels[i] = whole[beside] != 0 && whole[beside] < whole[i] ? 0 : m_Labels[i];
        }
      }
    }
  }

  const std::vector<std::uint64_t> &
  GetLabels() const
  {
    return m_Labels;
  }
  /** The neighbors of each voxel. */
  const std::vector<std::vector<std::size_t>> &
  GetNeighbors() const
  {
    return m_Neighbors;
  }

private:
  /** All voxels that paths below a level reach, and whether one of them precedes the minimum at `first`: is lower, or
   * as low and earlier. */
  bool
  ReachesLower(std::size_t first, T level) const
  {
    std::vector<bool>       isSeen(m_Voxels.size());
    std::deque<std::size_t> queue{ first };
    isSeen[first] = true;
    while (!queue.empty())
    {
      const std::size_t at = queue.front();
      queue.pop_front();
      if (m_Voxels[at] < m_Voxels[first] || (m_Voxels[at] == m_Voxels[first] && at < first))
      {
        return true;
      }
      for (const std::size_t beside : m_Neighbors[at])
      {
        if (!isSeen[beside] && m_Voxels[beside] <= level)
        {
          isSeen[beside] = true;
          queue.push_back(beside);
        }
      }
    }
    return false;
  }

  void
  MarkMinima()
  {
    m_Labels.assign(m_Voxels.size(), 0);
    std::vector<T> levels;
    for (std::size_t i = 0; i < m_Voxels.size(); ++i)
    {
      if (m_IsInside[i])
      {
        levels.push_back(m_Voxels[i]);
      }
    }
    std::sort(levels.begin(), levels.end());
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    std::vector<bool> isSeen(m_Voxels.size());
    std::uint64_t     count = 0;
    for (std::size_t first = 0; first < m_Voxels.size(); ++first)
    {
      if (isSeen[first] || !m_IsInside[first])
      {
        continue;
      }
      std::vector<std::size_t> plateau{ first };
      isSeen[first] = true;
      bool isMinimum = true;
      for (std::size_t i = 0; i < plateau.size(); ++i)
      {
        for (const std::size_t beside : m_Neighbors[plateau[i]])
        {
          isMinimum = isMinimum && !(m_Voxels[beside] < m_Voxels[first]);
          if (m_Voxels[beside] == m_Voxels[first] && !isSeen[beside])
          {
            isSeen[beside] = true;
            plateau.push_back(beside);
          }
        }
      }
      if (!isMinimum)
      {
        continue;
      }
      // The levels from which a path to a lower minimum is there, and whether the first of them is high enough.
      bool isKept = true;
      for (const T level : levels)
      {
        const long double rise = static_cast<long double>(level) - static_cast<long double>(m_Voxels[first]);
        if (level > m_Voxels[first] && rise < static_cast<long double>(m_Operation.height.ToDouble()))
        {
          isKept = isKept && !this->ReachesLower(first, level);
        }
      }
      if (isKept)
      {
        ++count;
        for (const std::size_t voxel : plateau)
        {
          m_Labels[voxel] = count;
        }
      }
    }
  }

  void
  Grow()
  {
    struct Edge
    {
      T           high;
      T           low;
      std::size_t first;
      std::size_t second;
    };
    std::vector<Edge> edges;
    for (std::size_t i = 0; i < m_Voxels.size(); ++i)
    {
      for (const std::size_t j : m_Neighbors[i])
      {
        if (i < j)
        {
          edges.push_back({ std::max(m_Voxels[i], m_Voxels[j]), std::min(m_Voxels[i], m_Voxels[j]), i, j });
        }
      }
    }
    std::sort(edges.begin(), edges.end(), [](const Edge & a, const Edge & b) {
      return a.high != b.high     ? a.high < b.high
             : a.low != b.low     ? a.low < b.low
             : a.first != b.first ? a.first < b.first
                                  : a.second < b.second;
    });
    std::vector<std::size_t> parents(m_Voxels.size());
    std::iota(parents.begin(), parents.end(), std::size_t{ 0 });
    const auto find = [&](std::size_t i) {
      while (parents[i] != i)
      {
        i = parents[i] = parents[parents[i]];
      }
      return i;
    };
    for (const Edge & edge : edges)
    {
      const std::size_t a = find(edge.first);
      const std::size_t b = find(edge.second);
      if (a != b && (m_Labels[a] == 0 || m_Labels[b] == 0))
      {
        m_Labels[a] = std::max(m_Labels[a], m_Labels[b]);
        parents[b] = a;
      }
    }
    for (std::size_t i = 0; i < m_Voxels.size(); ++i)
    {
      m_Labels[i] = m_Labels[find(i)];
    }
  }

  const WatershedOperation &            m_Operation;
  const std::vector<T> &                m_Voxels;
  std::vector<bool>                     m_IsInside;
  std::vector<std::vector<std::size_t>> m_Neighbors;
  std::vector<std::uint64_t>            m_Labels;
};

} // namespace chunkwise

#endif
