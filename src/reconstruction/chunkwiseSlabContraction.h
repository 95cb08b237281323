/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabContraction_h
#define chunkwiseSlabContraction_h

#include "chunkwiseExecutor.h"
#include "chunkwiseSlabForest.h"

namespace chunkwise
{

/** Contracts planes, and what lies beyond the last of them, to the first one.
 *
 * Only what hangs together with voxels of the first plane is looked at. The planes are cut into bands of rows, each a
 * job of a thread. A terminal is a voxel of the first plane, of a band's row beside another band, or an end of an edge
 * of the given forest that leads to another band. A band takes the voxels of each open plateau with two or more
 * terminals in descending order of the mask and joins them with those of their neighbors that were taken before
 * (Kruskal), and so the ends of the forest's edges within it. If two components meet that each have a terminal, an edge
 * between terminals is kept. These edges, and the neighbors and edges across bands, are then joined in the same
 * way by one thread, and where two components meet that each have a voxel of the first plane, the new forest gets an
 * edge.
 *
 * Among equal keys those within the first plane come first, and are no edges of the new forest: the slab before this
 * one holds the plane too. The number of bands makes other forests that let the same through. */
template <typename TKey>
class SlabContraction
{
public:
  /** Bands that are worth it, for so many threads. */
  static int
  GetBands(const SlabGrid & grid, unsigned int threads)
  {
    constexpr std::int64_t leastRows = 16;
    constexpr std::int64_t leastBands = 4;
    const auto             wanted = std::max<std::int64_t>(threads, leastBands);
    return threads < 2 ? 1 : static_cast<int>(std::clamp<std::int64_t>(grid.height / leastRows, 1, wanted));
  }
  static std::size_t
  GetBytes(const SlabGrid & grid, int bands)
  {
    const auto voxels = static_cast<std::size_t>(grid.GetVoxels());
    const auto planeVoxels = static_cast<std::size_t>(grid.planeVoxels);
    const auto items =
      bands > 1 ? static_cast<std::size_t>(grid.width * (3 * grid.height + bands * GetEdgeItems(grid))) : 0;
    return items * sizeof(Item) + (3 * voxels + 2 * planeVoxels) * sizeof(std::uint32_t) + voxels;
  }

  /** `memory` has GetBytes(grid, bands) and is aligned for a key and for int. */
  SlabContraction(const SlabGrid & grid, const SlabVoxels<TKey> & voxels, int bands, void * memory,
                  StopFunction shouldStop)
    : m_Grid(grid)
    , m_Voxels(voxels)
    , m_ShouldStop(std::move(shouldStop))
    , m_Count(static_cast<std::uint32_t>(grid.GetVoxels()))
    , m_PlaneVoxels(static_cast<std::uint32_t>(grid.planeVoxels))
    , m_LastPlane(m_Count - m_PlaneVoxels)
  {
    auto *       items = static_cast<Item *>(memory);
    std::int64_t row = 0;
    for (std::int64_t band = 0; band < bands; ++band)
    {
      const std::int64_t next = grid.height * (band + 1) / bands;
      m_Bands.push_back({ row, next, items, 0, 0, 0, nullptr, nullptr });
      items += bands > 1 ? grid.width * (3 * (next - row) + GetEdgeItems(grid)) : 0;
      row = next;
    }
    auto * numbers = reinterpret_cast<std::uint32_t *>(items);
    m_Parent = numbers;
    numbers += m_Count;
    for (Band & band : m_Bands)
    {
      const std::int64_t size = grid.width * (band.lastRow - band.firstRow) * (grid.planes + 1);
      band.order = numbers;
      band.other = numbers + size;
      numbers += 2 * size;
    }
    m_Marks = reinterpret_cast<unsigned char *>(numbers);
  }

  /** `beyond` is of the last plane, and `children` its. The result is unfinished if it was stopped. */
  void
  Run(Executor & executor, const PlaneForest<TKey> & beyond, const ForestChildren & children,
      PlaneForest<TKey> & forest)
  {
    m_Beyond = &beyond;
    m_Children = &children;
    m_Forest = &forest;
    forest.Clear();
    const auto forEachBand = [&](auto && visit) {
      executor.ParallelFor(static_cast<std::int64_t>(m_Bands.size()),
                           [&](std::int64_t i, unsigned int) { visit(m_Bands[static_cast<std::size_t>(i)]); });
    };
    forEachBand([this](Band & band) { BeginBand(band); });
    if (m_Bands.size() > 1 && !m_ShouldStop())
    {
      GoOnInBands(executor);
      forEachBand([](Band & band) { std::sort(band.items, band.items + band.count); });
      JoinBands();
    }
  }

private:
  static constexpr std::uint32_t None = UINT32_MAX;
  /** Marks of a voxel: of a plateau that was found; one of the voxels that bands are joined by; taken by its band; its
   * parent is one among terminals; taken as the bands are joined; an item has it. */
  static constexpr unsigned char Found = 1;
  static constexpr unsigned char Terminal = 2;
  static constexpr unsigned char Taken = 4;
  static constexpr unsigned char Rooted = 8;
  static constexpr unsigned char Joined = 16;
  static constexpr unsigned char Used = 32;
  /** Up to so many items there are cheaper ways to sort than by digits. */
  static constexpr std::uint32_t Few = 64 * sizeof(TKey);
  /** Marks an item that is not within the first plane. Slabs have fewer voxels. */
  static constexpr std::uint32_t NotInPlane = std::uint32_t{ 1 } << 31;

  /** An item by which bands are joined: an edge, or a voxel (`second` is None) with its neighbors in other bands. */
  struct Item
  {
    TKey          key;
    std::uint32_t first; ///< and NotInPlane
    std::uint32_t second;

    /** Descending keys; of equal ones those within the first plane come first. */
    bool
    operator<(const Item & other) const
    {
      return key != other.key ? key > other.key : (first & NotInPlane) < (other.first & NotInPlane);
    }
  };
  struct Band
  {
    std::int64_t    firstRow;
    std::int64_t    lastRow;
    Item *          items;
    std::int64_t    count;
    std::int64_t    firstNew; ///< of the items that other bands look at next
    std::int64_t    lastNew;
    std::uint32_t * order; ///< room for all of the band's voxels and edges
    std::uint32_t * other;

    bool
    Has(std::int64_t row) const
    {
      return row >= firstRow && row < lastRow;
    }
  };

  /** Items of a band for each x beside those of the first and the last plane: two rows beside others have a voxel each,
   * two in the first plane, and an edge for each. */
  static std::int64_t
  GetEdgeItems(const SlabGrid & grid)
  {
    return 4 * grid.planes + 2;
  }

  bool
  IsBeside(const Band & band, std::int64_t row) const
  {
    return (row == band.firstRow && row > 0) || (row + 1 == band.lastRow && row + 1 < m_Grid.height);
  }
  std::int64_t
  GetRowOfNumber(std::uint32_t number) const
  {
    return m_Grid.byWidth.Divide(number);
  }

  /** Calls visit(other number, capacity) for the edges of a voxel of the last plane in the forest beyond it. */
  template <typename TVisit>
  void
  ForEachBeyond(std::uint32_t number, TVisit && visit) const
  {
    if (m_Beyond->parent[number] != None)
    {
      visit(m_Beyond->parent[number], m_Beyond->capacity[number]);
    }
    m_Children->ForEach(number, [&](std::uint32_t child) { visit(child, m_Beyond->capacity[child]); });
  }

  /** Finds the voxels that hang together with the first plane within the band, or with other bands by the forest. */
  void
  BeginBand(Band & band)
  {
    const auto width = static_cast<std::uint32_t>(m_Grid.width);
    const auto rows = static_cast<std::uint32_t>(band.lastRow - band.firstRow) * width;
    const auto begin = static_cast<std::uint32_t>(band.firstRow) * width;
    for (std::uint32_t plane = begin; plane < m_Count; plane += m_PlaneVoxels)
    {
      std::fill_n(m_Marks + plane, rows, static_cast<unsigned char>(0));
    }
    for (std::uint32_t number = begin; number < begin + rows; ++number)
    {
      TakePlateau(band, number);
      bool leads = false;
      if (m_Bands.size() > 1)
      {
        ForEachBeyond(number, [&](std::uint32_t other, TKey) { leads = leads || !band.Has(GetRowOfNumber(other)); });
      }
      if (leads)
      {
        TakePlateau(band, m_LastPlane + number);
      }
    }
    band.lastNew = band.count;
  }

  /** Plateaus go on in the bands beside theirs, and from there in others, until all that hang together are found. */
  void
  GoOnInBands(Executor & executor)
  {
    const auto count = static_cast<std::int64_t>(m_Bands.size());
    const auto hasNew = [&](std::int64_t i) {
      return i >= 0 && i < count &&
             m_Bands[static_cast<std::size_t>(i)].firstNew < m_Bands[static_cast<std::size_t>(i)].lastNew;
    };
    for (std::vector<std::int64_t> active(1); !active.empty() && !m_ShouldStop();)
    {
      active.clear();
      for (std::int64_t i = 0; i < count; ++i)
      {
        if (hasNew(i - 1) || hasNew(i + 1))
        {
          active.push_back(i);
        }
      }
      executor.ParallelFor(static_cast<std::int64_t>(active.size()), [&](std::int64_t k, unsigned int) {
        const std::int64_t i = active[static_cast<std::size_t>(k)];
        for (const std::int64_t other : { i - 1, i + 1 })
        {
          if (hasNew(other))
          {
            GoOnFrom(m_Bands[static_cast<std::size_t>(other)], m_Bands[static_cast<std::size_t>(i)]);
          }
        }
      });
      for (Band & band : m_Bands)
      {
        band.firstNew = band.lastNew;
        band.lastNew = band.count;
      }
    }
  }

  /** From the voxels that were found in one band last into the band beside it. */
  void
  GoOnFrom(const Band & from, Band & band)
  {
    for (std::int64_t i = from.firstNew; i < from.lastNew; ++i)
    {
      const Item & item = from.items[i];
      if (item.second != None || !(item.first & NotInPlane))
      {
        continue;
      }
      const std::uint32_t voxel = item.first & ~NotInPlane;
      m_Grid.ForEachNeighbor(
        voxel, m_Grid.Locate(voxel), band.firstRow, band.lastRow, 0, m_Grid.steps.size(), [&](std::uint32_t other) {
          TakePlateau(band, other);
        });
    }
  }

  void
  TakePlateau(Band & band, std::uint32_t seed)
  {
    if (m_Marks[seed] == 0 && m_Voxels.IsOpen(seed) && !m_ShouldStop())
    {
      ContractPlateau(band, seed);
    }
  }

  void
  ContractPlateau(Band & band, std::uint32_t seed)
  {
    std::uint32_t terminals = 0;
    const auto    count = Find(band, seed, terminals);
    // A plateau with one terminal has nothing to tell.
    if (terminals > 1)
    {
      Join(band, Sort(band, count), count);
    }
  }

  /** The items of a plateau, into band.order: voxels, then edges of the forest beyond within the band. Returns their
   * number. */
  std::uint32_t
  Find(Band & band, std::uint32_t seed, std::uint32_t & terminals)
  {
    std::uint32_t * const order = band.order;
    std::uint32_t         found = 0;
    const TKey            key = m_Voxels.GetState(seed);
    bool                  hasLast = false;
    const auto            reach = [&](std::uint32_t voxel) {
      if (m_Marks[voxel] == 0 && m_Voxels.IsOpen(voxel))
      {
        m_Marks[voxel] = Found;
        order[found++] = voxel;
      }
    };
    reach(seed);
    for (std::uint32_t i = 0; i < found; ++i)
    {
      const std::uint32_t            voxel = order[i];
      const typename SlabGrid::Place at = m_Grid.Locate(voxel);
      const bool                     isBeside = IsBeside(band, at.y);
      bool                           leadsAway = false;
      m_Grid.ForEachNeighbor(voxel, at, band.firstRow, band.lastRow, 0, m_Grid.steps.size(), reach);
      if (voxel >= m_LastPlane)
      {
        ForEachBeyond(voxel - m_LastPlane, [&](std::uint32_t other, TKey capacity) {
          const bool leads = capacity > key;
          const bool stays = band.Has(GetRowOfNumber(other));
          hasLast = hasLast || leads;
          leadsAway = leadsAway || (leads && !stays);
          if (leads && stays)
          {
            reach(m_LastPlane + other);
          }
        });
      }
      if (at.plane == 0 || isBeside || leadsAway)
      {
        m_Marks[voxel] |= Terminal;
        ++terminals;
      }
      if (isBeside)
      {
        AddVoxel(band, voxel);
      }
      if (isBeside || leadsAway)
      {
        m_Marks[voxel] |= Used;
      }
      if ((i & 0xFFFF) == 0xFFFF && m_ShouldStop())
      {
        terminals = 0;
        return 0;
      }
    }
    const std::uint32_t end = found;
    for (std::uint32_t i = 0; i < end && hasLast; ++i)
    {
      if (order[i] < m_LastPlane)
      {
        continue;
      }
      const std::uint32_t number = order[i] - m_LastPlane;
      const std::uint32_t parent = m_Beyond->parent[number];
      if (parent == None || m_Beyond->capacity[number] <= key)
      {
        continue;
      }
      if (band.Has(GetRowOfNumber(parent)))
      {
        order[found++] = m_Count + number;
      }
      else
      {
        band.items[band.count++] = { m_Beyond->capacity[number], order[i] | NotInPlane, m_LastPlane + parent };
      }
    }
    return found;
  }

  void
  AddVoxel(Band & band, std::uint32_t voxel)
  {
    if (voxel < m_PlaneVoxels)
    {
      band.items[band.count++] = { m_Voxels.GetMask(voxel), voxel, None };
    }
    band.items[band.count++] = { m_Voxels.GetMask(voxel), voxel | NotInPlane, None };
  }

  TKey
  KeyOf(std::uint32_t item) const
  {
    return item < m_Count ? m_Voxels.GetMask(item) : m_Beyond->capacity[item - m_Count];
  }

  /** Items in descending order of their keys; of equal ones the first plane's voxels, other voxels, edges. */
  const std::uint32_t *
  Sort(const Band & band, std::uint32_t count) const
  {
    std::uint32_t * order = band.order;
    std::uint32_t * other = band.other;
    if (count <= Few)
    {
      // By their numbers they are in that order.
      std::sort(order, order + count, [&](std::uint32_t a, std::uint32_t b) {
        const TKey keys[2] = { KeyOf(a), KeyOf(b) };
        return keys[0] != keys[1] ? keys[0] > keys[1] : a < b;
      });
      return order;
    }
    const auto          isOfPlane = [this](std::uint32_t item) { return item < m_PlaneVoxels; };
    const std::uint32_t ofPlane = static_cast<std::uint32_t>(std::count_if(order, order + count, isOfPlane));
    for (std::uint32_t i = 0, first = 0, second = ofPlane; i < count; ++i)
    {
      other[isOfPlane(order[i]) ? first++ : second++] = order[i];
    }
    std::swap(order, other);
    for (std::size_t digit = 0; digit < sizeof(TKey); ++digit)
    {
      const auto digitOf = [&](std::uint32_t item) {
        return 255 - (static_cast<unsigned int>(KeyOf(item) >> (8 * digit)) & 255u);
      };
      std::uint32_t begins[257] = {};
      for (std::uint32_t i = 0; i < count; ++i)
      {
        ++begins[digitOf(order[i]) + 1];
      }
      if (std::find(begins, begins + 257, count) != begins + 257)
      {
        continue; // all have the same
      }
      for (int d = 0; d < 256; ++d)
      {
        begins[d + 1] += begins[d];
      }
      for (std::uint32_t i = 0; i < count; ++i)
      {
        other[begins[digitOf(order[i])]++] = order[i];
      }
      std::swap(order, other);
    }
    return order;
  }

  std::uint32_t
  FindRoot(std::uint32_t voxel)
  {
    while (m_Parent[voxel] != voxel)
    {
      m_Parent[voxel] = m_Parent[m_Parent[voxel]];
      voxel = m_Parent[voxel];
    }
    return voxel;
  }

  void
  AddToForest(std::uint32_t a, std::uint32_t b, TKey key)
  {
    m_Forest->parent[a] = b;
    m_Forest->capacity[a] = key;
  }

  /** Unites two components of a band. A component with terminals has one of them as its root. */
  void
  Unite(Band & band, std::uint32_t a, std::uint32_t b, TKey key, bool inPlane)
  {
    a = FindRoot(a);
    b = FindRoot(b);
    if (a == b)
    {
      return;
    }
    const bool isTerminal = m_Marks[a] & Terminal;
    if (isTerminal && (m_Marks[b] & Terminal))
    {
      // Voxels of the plane that only the plane joins to others are joined by the slab before, too.
      if (m_Bands.size() > 1 && (!inPlane || (m_Marks[a] & Used)))
      {
        band.items[band.count++] = { key, a | (inPlane ? 0 : NotInPlane), b };
        m_Marks[b] |= Used;
      }
      else if (m_Bands.size() == 1 && !inPlane)
      {
        AddToForest(a, b, key);
      }
    }
    else if (isTerminal)
    {
      std::swap(a, b);
    }
    m_Parent[a] = b;
  }

  void
  Join(Band & band, const std::uint32_t * items, std::uint32_t count)
  {
    const std::size_t inPlane = m_Grid.stepsInPlane;
    const std::size_t all = m_Grid.steps.size();
    const auto        unite = [&](std::uint32_t voxel, std::size_t first, std::size_t last, TKey key, bool isInPlane) {
      m_Grid.ForEachNeighbor(
        voxel, m_Grid.Locate(voxel), band.firstRow, band.lastRow, first, last, [&](std::uint32_t other) {
          if (m_Marks[other] & Taken)
          {
            Unite(band, voxel, other, key, isInPlane);
          }
        });
    };
    const auto take = [&](std::uint32_t voxel) {
      m_Parent[voxel] = voxel;
      m_Marks[voxel] |= Taken;
    };
    for (std::uint32_t begin = 0; begin < count;)
    {
      const TKey    key = KeyOf(items[begin]);
      std::uint32_t end = begin;
      for (; end < count && items[end] < m_PlaneVoxels && KeyOf(items[end]) == key; ++end)
      {
        take(items[end]);
        unite(items[end], 0, inPlane, key, true);
      }
      for (end = begin; end < count && KeyOf(items[end]) == key; ++end)
      {
        const std::uint32_t item = items[end];
        if (item >= m_Count)
        {
          Unite(band, m_LastPlane + item - m_Count, m_LastPlane + m_Beyond->parent[item - m_Count], key, false);
        }
        else if (item < m_PlaneVoxels)
        {
          unite(item, inPlane, all, key, false);
        }
        else
        {
          take(item);
          unite(item, 0, all, key, false);
        }
        if ((end & 0xFFFF) == 0xFFFF && m_ShouldStop())
        {
          return;
        }
      }
      begin = end;
    }
  }

  /** Among terminals. A terminal that comes for the first time is a separate component. */
  std::uint32_t
  FindRootOfTerminals(std::uint32_t voxel)
  {
    if (!(m_Marks[voxel] & Rooted))
    {
      m_Marks[voxel] |= Rooted;
      m_Parent[voxel] = voxel;
      return voxel;
    }
    return FindRoot(voxel);
  }

  /** A component with voxels of the first plane has one of them as its root. */
  void
  UniteTerminals(std::uint32_t a, std::uint32_t b, TKey key, bool inPlane)
  {
    a = FindRootOfTerminals(a);
    b = FindRootOfTerminals(b);
    if (a == b)
    {
      return;
    }
    if (a < m_PlaneVoxels && b < m_PlaneVoxels && !inPlane)
    {
      AddToForest(a, b, key);
    }
    if (a < m_PlaneVoxels && b >= m_PlaneVoxels)
    {
      std::swap(a, b);
    }
    m_Parent[a] = b;
  }

  /** A voxel meets those of its neighbors in other bands that were taken before it. */
  void
  JoinVoxel(const Band & band, std::uint32_t voxel, TKey key, bool inPlane)
  {
    const typename SlabGrid::Place at = m_Grid.Locate(voxel);
    const auto                     meet = [&](std::uint32_t other) {
      if (m_Marks[other] & Joined)
      {
        UniteTerminals(voxel, other, key, inPlane);
      }
    };
    m_Marks[voxel] |= Joined;
    const std::size_t first = at.plane == 0 && !inPlane ? m_Grid.stepsInPlane : 0;
    const std::size_t last = inPlane ? m_Grid.stepsInPlane : m_Grid.steps.size();
    for (std::size_t i = first; i < last; ++i)
    {
      if (!band.Has(at.y + m_Grid.steps[i].y))
      {
        m_Grid.ForEachNeighbor(voxel, at, 0, m_Grid.height, i, i + 1, meet);
      }
    }
  }

  /** Takes the items of all bands in their order. */
  void
  JoinBands()
  {
    using Next = std::pair<const Item *, const Band *>;
    const auto        isAfter = [](const Next & a, const Next & b) { return *b.first < *a.first; };
    std::vector<Next> heap;
    for (const Band & band : m_Bands)
    {
      if (band.count > 0)
      {
        heap.emplace_back(band.items, &band);
      }
    }
    std::make_heap(heap.begin(), heap.end(), isAfter);
    for (std::uint32_t taken = 1; !heap.empty() && ((taken & 0xFFFF) != 0 || !m_ShouldStop()); ++taken)
    {
      std::pop_heap(heap.begin(), heap.end(), isAfter);
      Next &              next = heap.back();
      const Item          item = *next.first;
      const std::uint32_t first = item.first & ~NotInPlane;
      const bool          inPlane = first == item.first;
      if (item.second == None)
      {
        JoinVoxel(*next.second, first, item.key, inPlane);
      }
      else
      {
        UniteTerminals(first, item.second, item.key, inPlane);
      }
      if (++next.first == next.second->items + next.second->count)
      {
        heap.pop_back();
      }
      else
      {
        std::push_heap(heap.begin(), heap.end(), isAfter);
      }
    }
  }

  const SlabGrid &          m_Grid;
  const SlabVoxels<TKey>    m_Voxels;
  const StopFunction        m_ShouldStop;
  const std::uint32_t       m_Count;
  const std::uint32_t       m_PlaneVoxels;
  const std::uint32_t       m_LastPlane;
  const PlaneForest<TKey> * m_Beyond{ nullptr };
  const ForestChildren *    m_Children{ nullptr };
  PlaneForest<TKey> *       m_Forest{ nullptr };
  std::vector<Band>         m_Bands;
  std::uint32_t *           m_Parent; ///< of a voxel that was taken
  unsigned char *           m_Marks;
};

} // namespace chunkwise

#endif
