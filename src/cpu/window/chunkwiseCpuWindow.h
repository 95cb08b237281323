/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuWindow_h
#define chunkwiseCpuWindow_h

#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuRowSight.h"
#include "chunkwiseCpuStridedRow.h"
#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseOperation.h"
#include "chunkwiseStridedVoxels.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace chunkwise
{

/** The windows of a separable operation along one axis. */
template <typename TAcc>
struct AxisWindow
{
  std::int64_t radius{ 0 };
  /** Taps that a sum has on its upper side beyond the radius, or if negative does not have up to it. */
  std::int64_t further{ 0 };
  /** 2 radius + 1 weights; empty: a sum. */
  std::vector<TAcc> weights;
  /** Factors, of which position i of the image's axis has NormRow(i, extent, radius); empty: none. */
  std::vector<TAcc> norms;
  std::int64_t      extent{ 0 };

  std::int64_t
  Taps() const
  {
    return 2 * radius + 1 + further;
  }
  std::int64_t
  Upper() const
  {
    return radius + further;
  }
  /** Sums of many taps go by blocks, see MeanOperation. */
  bool
  UsesBlocks() const
  {
    return weights.empty() && Taps() > 9;
  }
};

/** A pass along one axis for each axis that has a window, for any number of axes, in one sweep over the image.
 *
 * A task is a tile of the output. It sweeps along the last windowed axis other than x; of each plane across it, a slab
 * of the tile with its halo is read from the image, passed along x and the axes between, and kept in a ring from which
 * the pass along the sweep axis is made. So the image is read about once and written once, and what is between stays in
 * the caches. */
class WindowTiling
{
public:
  /** Bytes of ring and slab that a task should stay below, so that they lie in a core's own cache. */
  static constexpr std::int64_t CacheBytes = 640 * 1024;
  /** Rows of a task whose windows extend along x alone. */
  static constexpr std::int64_t RowsOfTask = 64;
  /** Numbers of the longest row. */
  static constexpr std::int64_t MostOfRow = 1024;

  /** `clips`: nothing outside of the image is needed, however far the windows reach. `components`: of pixels, where
   * rows hold them side by side. */
  WindowTiling(const Box & output, const Box & image, const std::int64_t (&radius)[MaxDimension], std::int64_t accBytes,
               bool clips, std::int64_t components);

  /** The components that a call takes together. */
  static std::int64_t
  ComponentsOf(const KernelCall & call, const std::int64_t (&radius)[MaxDimension])
  {
    return radius[MaxDimension - 1] > 0 ? 1 : ComponentsTogether(call.inputs[0], call.output);
  }

  /** Accumulators that a worker needs, however the components of pixels lie. */
  static std::int64_t
  GetScratch(const Box & output, const Box & image, const std::int64_t (&radius)[MaxDimension], std::int64_t accBytes,
             bool clips);

  std::int64_t
  RoundToLine(std::int64_t n) const
  {
    return (n + line - 1) / line * line;
  }

  /** Makes room for what WindowSweep::Pair knows of rows. */
  void
  AddKnownRows();

  int          sweep{ -1 }; ///< -1: none but x, or no axis at all
  int          middle[2]{ -1, -1 };
  int          middles{ 0 };
  Coordinates  tile{};
  std::int64_t components{ 1 };
  std::int64_t ringSlots{ 1 };
  /** Positions along the sweep axis that are made together. */
  std::int64_t together{ RowsTogether };

  /** Accumulators that a worker needs, those of a row, and of a line of the cache. */
  std::int64_t scratch{ 0 };
  std::int64_t row{ 0 };
  std::int64_t line{ 1 };
  std::int64_t paddedRow{ 0 };
  std::int64_t firstSlab{ 0 };
  std::int64_t secondSlab{ 0 };
  std::int64_t slab{ 0 };
  std::int64_t slots{ 0 };
  std::int64_t known{ 0 };
};

/** How two parts of a window are joined where no row function does it, and the value that joins without effect. */
template <typename TAcc>
struct JoinBySum
{
  static constexpr TAcc Nothing = 0;
  static TAcc
  Join(TAcc a, TAcc b)
  {
    return static_cast<TAcc>(a + b);
  }
};
template <typename TAcc>
struct JoinByMaximum
{
  static constexpr TAcc Nothing = std::numeric_limits<TAcc>::lowest();
  static TAcc
  Join(TAcc a, TAcc b)
  {
    return std::max(a, b);
  }
};

/** `TJoin` is what the row functions do. */
template <typename TAcc, typename TJoin = JoinBySum<TAcc>>
class WindowSweep
{
public:
  using ConvertFunction = void (*)(void * out, const void * in, std::int64_t n);

  WindowSweep(const KernelCall & call, const RowFunctions<TAcc> & rows, ConvertFunction convert, BoundaryMode mode,
              TAcc constant, const AxisWindow<TAcc> (&windows)[MaxDimension], const WindowTiling & tiling)
    : m_Call(call)
    , m_Rows(rows)
    , m_Convert(convert)
    , m_Mode(mode)
    , m_Windows(windows)
    , m_Tiling(tiling)
  {
    TAcc beyond = mode == BoundaryMode::Constant ? constant : TJoin::Nothing;
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_Beyond[a] = beyond;
      if (windows[a].Taps() > 1 && mode == BoundaryMode::Constant)
      {
        beyond = PassConstant(windows[a], beyond);
      }
    }
  }

  static TAcc
  PassConstant(const AxisWindow<TAcc> & window, TAcc constant)
  {
    TAcc sum = TJoin::Nothing;
    for (std::int64_t t = 0; t < window.Taps(); ++t)
    {
      if constexpr (static_cast<TAcc>(0.5) != static_cast<TAcc>(0))
      {
        sum = window.weights.empty() ? TJoin::Join(sum, constant)
                                     : std::fma(window.weights[static_cast<std::size_t>(t)], constant, sum);
      }
      else
      {
        sum = TJoin::Join(sum, constant);
      }
    }
    return sum;
  }

  /** hide(accumulators, mask, n) */
  using HideFunction = void (*)(TAcc * accumulators, const std::uint8_t * mask, std::int64_t n);

  /** Lets voxels go through `hide` as they are read, with a mask of bytes that lie side by side along x; what is
   * outside becomes what joins without effect. Components are not taken together. */
  void
  Hide(const BufferView & mask, HideFunction hide)
  {
    m_Mask = mask;
    m_Hide = hide;
  }

  /** Makes two rows of each row of voxels, with such a mask: values, 0 outside, and after them weights, 1 or 0. Sums of
   * weights are not made where windows see nothing but ones. The tiling has two components together, along the last
   * axis one, and room for known rows. Not in Constant mode. */
  void
  Pair(const BufferView & mask, const PairFunctions<TAcc> & functions)
  {
    m_Mask = mask;
    m_Pairs = &functions;
    m_KnowsWhole = true;
  }

  /** The same for two sums of which the second may be of anything that is 0 outside. Neither is made where windows see
   * nothing but ones. */
  void
  PairCut(const BufferView & mask, const PairFunctions<TAcc> & functions)
  {
    m_Mask = mask;
    m_Pairs = &functions;
  }

  /** Calls finish(row, index, n) for each finished row of n accumulators that begins at voxel `index`; where the tiling
   * has several components together, they are those of n / components voxels; of pairs the values come first, and
   * finish(row, index, n, sight) learns what the row sees. */
  template <typename TFinish>
  void
  Run(TFinish && finish)
  {
    const Box & out = m_Call.output.box;
    const int   c = m_Tiling.sweep;
    Coordinates tile = m_Tiling.tile;
    // Few tiles: cut the sweep as well, as long as its halo stays a small part.
    const auto workers = static_cast<std::int64_t>(m_Call.executor->GetConcurrency());
    const auto tiles = CountTiles(tile);
    if (workers > 1 && tiles < 4 * workers)
    {
      const int          cut = c >= 0 ? c : 1;
      const std::int64_t shortest = std::max<std::int64_t>(8, 6 * m_Windows[cut].radius);
      const std::int64_t parts =
        std::max<std::int64_t>(1, std::min((4 * workers + tiles - 1) / tiles, tile[cut] / shortest));
      tile[cut] = (tile[cut] + parts - 1) / parts;
    }
    m_Call.executor->ParallelFor(CountTiles(tile), [&](std::int64_t task, unsigned int worker) {
      Box       box = out;
      const int fastest = FastestAxis(m_Call.inputs[0]);
      for (int i = 0; i < MaxDimension; ++i)
      {
        const int          a = (fastest + i) % MaxDimension;
        const std::int64_t count = (out.Extent(a) + tile[a] - 1) / tile[a];
        box.lower[a] = out.lower[a] + task % count * tile[a];
        box.upper[a] = std::min(box.lower[a] + tile[a], out.upper[a]);
        task /= count;
      }
      Task(*this, box, worker).Sweep(finish);
      // Ends the stores of RowOutput past the caches.
      GetCpuLevel().endStream();
    });
  }

private:
  std::int64_t
  CountTiles(const Coordinates & tile) const
  {
    std::int64_t count = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      count *= (m_Call.output.box.Extent(a) + tile[a] - 1) / tile[a];
    }
    return count;
  }

  /** The work of one tile. */
  class Task
  {
    static constexpr std::int64_t NoSource = -1;

  public:
    Task(const WindowSweep & sweep, const Box & box, unsigned int worker)
      : m(sweep)
      , m_Box(box)
      , m_Components(sweep.m_Pairs ? 1 : sweep.m_Tiling.components)
      , m_X(box.Extent(0) * sweep.m_Tiling.components)
      , m_Pitch(sweep.m_Tiling.RoundToLine(m_X))
      , m_Ends(*this)
    {
      const WindowTiling & tiling = m.m_Tiling;
      TAcc *               memory = static_cast<TAcc *>(m.m_Call.scratch) + tiling.scratch * worker;
      const auto           take = [&memory](std::int64_t n) {
        TAcc * const block = memory;
        memory += n;
        return block;
      };
      m_Padded = take(tiling.paddedRow);
      m_OtherPadded = take(tiling.paddedRow);
      m_First = take(tiling.firstSlab);
      m_Second = take(tiling.secondSlab);
      m_Ring = take(tiling.ringSlots * tiling.slab);
      m_Prefix = take(tiling.slab);
      m_Slots = take(tiling.slots);
      m_Row = take(RowsTogether * tiling.row);
      m_Nothing = take(tiling.row);
      std::fill(m_Nothing, m_Nothing + m_X, TJoin::Nothing);
      // Whole lines are read, but what is beyond the row has no effect.
      std::fill(m_Padded, m_OtherPadded + tiling.paddedRow, TAcc{ 0 });
      m_SlabRows = 1;
      for (int i = 0; i < tiling.middles; ++i)
      {
        const int a = tiling.middle[i];
        m_SlabRows *= m_Box.Extent(a);
        Range(a, m_Lower[i], m_Upper[i]);
      }
      std::int64_t mostTaps = m.m_Windows[0].Taps();
      for (int a = 1; a < MaxDimension; ++a)
      {
        mostTaps = std::max(mostTaps, m.m_Windows[a].UsesBlocks() ? 1 : m.m_Windows[a].Taps());
      }
      m_Taps.resize(static_cast<std::size_t>(mostTaps + tiling.together - 1));
      m_Slabs.resize(m_Taps.size());
      m_Sources.assign(static_cast<std::size_t>(tiling.sweep >= 0 ? tiling.ringSlots : 0), NoSource);
      this->FindNorms();
      if (!m_Ends.areAbsent)
      {
        const auto look = [&](std::int64_t x, std::int64_t last) {
          for (; x < last; ++x)
          {
            const std::int64_t source = Map(0, x);
            const bool         isLoaded = source >= m_Ends.from && source < m_Ends.to;
            m_EndSources.push_back(isLoaded ? (source - m_Ends.begin) * m_Components : NoSource);
          }
        };
        m_EndSources.reserve(static_cast<std::size_t>(m_Ends.from - m_Ends.begin + m_Ends.end - m_Ends.to));
        look(m_Ends.begin, m_Ends.from);
        look(m_Ends.to, m_Ends.end);
      }
      if (m.m_Pairs)
      {
        this->PreparePairs(take(tiling.known));
      }
    }

    template <typename TFinish>
    void
    Sweep(TFinish && finish)
    {
      const int c = m.m_Tiling.sweep;
      if (c < 0)
      {
        for (Coordinates at = m_Box.lower; at[1] < m_Box.upper[1]; ++at[1])
        {
          if (Stops())
          {
            return;
          }
          MakeSlab(at, m_Ring);
          PassLoadedRow();
          FinishRow(m_Ring, 0, at, finish);
          Report();
        }
        return;
      }
      const AxisWindow<TAcc> & window = m.m_Windows[c];
      if (window.UsesBlocks())
      {
        SweepBlocks(finish);
        return;
      }
      std::int64_t lower = 0;
      std::int64_t upper = 0;
      Range(c, lower, upper);
      std::int64_t made = lower;
      for (std::int64_t i = m_Box.lower[c], count = 1; i < m_Box.upper[c]; i += count)
      {
        if (Stops())
        {
          return;
        }
        count = CountTogether(c, i, lower, upper, m.m_Tiling.together);
        const std::int64_t first = std::max(i - window.radius, lower);
        const std::int64_t last = std::min(i + window.Upper() + 1, upper);
        for (; made < last + count - 1; ++made)
        {
          if (Stops())
          {
            return;
          }
          MakeRingSlab(made, made - lower);
        }
        PassLoadedRow();
        for (std::int64_t v = first; v < last + count - 1; ++v)
        {
          m_Slabs[static_cast<std::size_t>(v - first)] = (v - lower) % m.m_Tiling.ringSlots;
        }
        Coordinates at = m_Box.lower;
        for (std::int64_t row = 0; row < m_SlabRows; ++row)
        {
          const bool isMade = !m_Knows || this->SeesSome(row, last - first);
          if (isMade)
          {
            for (std::size_t t = 0; t < static_cast<std::size_t>(last - first + count - 1); ++t)
            {
              m_Taps[t] = m_Ring + m_Slabs[t] * m.m_Tiling.slab + row * m_Pitch;
            }
          }
          const std::int64_t rows = std::min<std::int64_t>(count, RowsTogether);
          for (std::int64_t done = 0; done < count; done += rows)
          {
            if (isMade)
            {
              CombineSlabs(m_Taps.data() + done, first - (i - window.radius), last - first, rows);
            }
            for (std::int64_t k = 0; k < rows; ++k)
            {
              at[c] = i + done + k;
              if (isMade)
              {
                ScaleByNorm(window, at[c], m_Row + k * m_Pitch, m_X);
              }
              FinishRow(m_Row + k * m_Pitch, row, at, finish);
            }
          }
        }
        Report(count);
      }
    }

  private:
    /** The voxels of a row that windows along x see. */
    struct RowEnds
    {
      std::int64_t begin;
      std::int64_t end;
      /** The range that the input has. */
      std::int64_t from;
      std::int64_t to;
      /** Whether the voxels beyond both ends are only those beyond the image's edge. */
      bool areAbsent;

      explicit RowEnds(const Task & task)
        : begin(task.m_Box.lower[0] - task.m.m_Windows[0].radius)
        , end(task.m_Box.upper[0] + task.m.m_Windows[0].Upper())
        , from(std::max(begin, task.m.m_Call.inputs[0].box.lower[0]))
        , to(std::min(end, task.m.m_Call.inputs[0].box.upper[0]))
      {
        const Box & input = task.m.m_Call.inputs[0].box;
        areAbsent = from < to && task.IsAbsent(-1) && input.lower[0] <= std::max<std::int64_t>(begin, 0) &&
                    input.upper[0] >= std::min(end, task.m.m_Call.image.upper[0]);
      }
    };

    bool
    Stops() const
    {
      return m.m_Call.control && m.m_Call.control->ShouldStop();
    }

    void
    Report(std::int64_t slabs = 1) const
    {
      if (m.m_Call.control)
      {
        m.m_Call.control->AddFinishedVoxels(slabs * m_SlabRows * m_X);
      }
    }

    /** How many positions from `i` on along an axis are made together, at most `most`: those whose windows are whole.
     */
    std::int64_t
    CountTogether(int a, std::int64_t i, std::int64_t lower, std::int64_t upper, std::int64_t most) const
    {
      const AxisWindow<TAcc> & window = m.m_Windows[a];
      const std::int64_t       whole = std::min({ most, upper - window.Upper() - i, m_Box.upper[a] - i });
      return !m.m_Pairs && window.Taps() > 1 && i - window.radius >= lower && whole >= RowsTogether
               ? whole / RowsTogether * RowsTogether
               : 1;
    }

    /** The positions along axis `a` whose values the tile needs. In Renormalized mode what is outside adds nothing. */
    void
    Range(int a, std::int64_t & lower, std::int64_t & upper) const
    {
      const AxisWindow<TAcc> & window = m.m_Windows[a];
      lower = m_Box.lower[a] - window.radius;
      upper = m_Box.upper[a] + window.Upper();
      if (m.m_Mode == BoundaryMode::Renormalized && !window.UsesBlocks())
      {
        lower = std::max<std::int64_t>(lower, 0);
        upper = std::min(upper, m.m_Call.image.upper[a]);
      }
    }

    /** The sights of the windows of the rows of a slab of the ring. */
    RowSight *
    SightsOf(const TAcc * ringSlab)
    {
      return m_SightsOfRing.data() + (ringSlab - m_Ring) / m.m_Tiling.slab * m_SlabRows;
    }

    TAcc *
    RingSlab(std::int64_t number) const
    {
      return m_Ring + number % m.m_Tiling.ringSlots * m.m_Tiling.slab;
    }

    void
    Combine(const AxisWindow<TAcc> & window, TAcc * out, const TAcc * const * taps, std::int64_t firstTap,
            std::int64_t count, std::int64_t n) const
    {
      if (window.weights.empty())
      {
        m.m_Rows.sum(out, taps, count, n);
      }
      else
      {
        m.m_Rows.weigh(out, taps, window.weights.data() + firstTap, count, n);
      }
    }

    void
    ScaleByNorm(const AxisWindow<TAcc> & window, std::int64_t position, TAcc * row, std::int64_t n) const
    {
      if (!window.norms.empty())
      {
        const auto norm = window.norms[static_cast<std::size_t>(NormRow(position, window.extent, window.radius))];
        if (norm != TAcc{ 1 })
        {
          m.m_Rows.scale(row, norm, n);
        }
      }
    }

    std::int64_t
    Map(int a, std::int64_t position) const
    {
      const BufferView & input = m.m_Call.inputs[0];
      return MapTap(position, input.box.lower[a], input.box.upper[a], m.m_Call.image.Extent(a), m.m_Mode);
    }

    /** Only these modes have taps without a voxel; elsewhere a negative index is a neighbour that was loaded. */
    bool
    IsAbsent(std::int64_t mapped) const
    {
      return mapped < 0 && (m.m_Mode == BoundaryMode::Renormalized || m.m_Mode == BoundaryMode::Constant);
    }

    /** Makes room for pairs, and the sums of weights where all windows see nothing but ones: of rows, and of the slabs'
     * rows. The factors of cut windows are not in them. */
    void
    PreparePairs(TAcc * known)
    {
      const WindowTiling &     tiling = m.m_Tiling;
      const AxisWindow<TAcc> & window = m.m_Windows[0];
      const RowEnds &          ends = m_Ends;
      m_Half = m_Box.Extent(0);
      m_Known = known;
      m_Knows = tiling.sweep >= 0 && tiling.middles <= 1;
      m_RunTaps.resize(m_Taps.size());
      m_MaskRow.resize(
        static_cast<std::size_t>((ends.end - ends.begin + RowSight::Part - 1) / RowSight::Part * RowSight::Part));
      if (m_Knows)
      {
        m_SightsOfRing.resize(static_cast<std::size_t>(tiling.ringSlots * m_SlabRows));
        m_SightsOfFirst.resize(static_cast<std::size_t>(m_Upper[0] - m_Lower[0]));
      }
      if (!m.m_KnowsWhole)
      {
        return;
      }
      std::fill(m_Known, m_Known + m_Half, TAcc{ 1 });
      if (window.radius > 0)
      {
        for (std::int64_t x = ends.begin; x < ends.end; ++x)
        {
          const bool isThere = (x >= ends.from && x < ends.to) || !IsAbsent(Map(0, x));
          m_Padded[x - ends.begin] = static_cast<TAcc>(isThere ? 1 : 0);
        }
        this->TakeTaps(m_Padded, 1, window.Taps());
        m.m_Rows.weigh(m_Known, m_Taps.data(), window.weights.data(), window.Taps(), m_Half);
      }
      if (m_Knows && tiling.middles == 1)
      {
        const int                a = tiling.middle[0];
        const AxisWindow<TAcc> & across = m.m_Windows[a];
        std::copy(m_Known, m_Known + m_Half, m_Row);
        ScaleEnds(m_Row);
        for (std::int64_t i = m_Box.lower[a]; i < m_Box.upper[a]; ++i)
        {
          const std::int64_t first = std::max(i - across.radius, m_Lower[0]);
          const std::int64_t last = std::min(i + across.radius + 1, m_Upper[0]);
          this->TakeTaps(m_Row, 0, last - first);
          m.m_Rows.weigh(m_Known + (1 + i - m_Box.lower[a]) * m_Half,
                         m_Taps.data(),
                         across.weights.data() + first - (i - across.radius),
                         last - first,
                         m_Half);
        }
      }
    }

    /** Lets m_Sight say what windows along the sweep axis see in a row of `count` slabs of pairs. Returns whether any
     * of it is wanted. */
    bool
    SeesSome(std::int64_t row, std::int64_t count)
    {
      m_Sight = RowSight::Nothing();
      for (std::size_t t = 0; t < static_cast<std::size_t>(count); ++t)
      {
        m_Sight.Join(m_SightsOfRing[static_cast<std::size_t>(m_Slabs[t] * m_SlabRows + row)]);
      }
      return (m.m_KnowsWhole ? m_Sight.some : m_Sight.Cut()) != 0;
    }

    /** Combine for RowsTogether rows with all taps. */
    void
    CombineTogether(const AxisWindow<TAcc> & window, TAcc * const * outs, const TAcc * const * taps) const
    {
      if (window.weights.empty())
      {
        m.m_Rows.sumTogether(outs, taps, window.Taps(), m_X);
      }
      else
      {
        m.m_Rows.weighTogether(outs, taps, window.weights.data(), window.Taps(), m_X);
      }
    }

    /** The pass along the sweep axis of `rows` rows. */
    void
    CombineSlabs(const TAcc * const * taps, std::int64_t firstTap, std::int64_t count, std::int64_t rows)
    {
      const AxisWindow<TAcc> & window = m.m_Windows[m.m_Tiling.sweep];
      if (m_Knows)
      {
        const std::uint64_t some = m.m_KnowsWhole ? m_Sight.some : m_Sight.Cut();
        this->CombinePairs(window, m_Row, firstTap, count, m_Half, { some, m_Sight.lacks }, nullptr);
        return;
      }
      if (rows == RowsTogether)
      {
        TAcc * const outs[RowsTogether]{ m_Row, m_Row + m_Pitch, m_Row + 2 * m_Pitch, m_Row + 3 * m_Pitch };
        CombineTogether(window, outs, taps);
        return;
      }
      Combine(window, m_Row, taps, firstTap, count, m_X);
    }

    void
    TakeTaps(const TAcc * first, std::int64_t step, std::int64_t count)
    {
      for (std::int64_t t = 0; t < count; ++t)
      {
        m_Taps[static_cast<std::size_t>(t)] = first + t * step;
      }
    }

    /** Combine for both numbers of pairs; the taps of the second lie `gap` numbers after those of the first. Nothing is
     * added up where nothing is seen, nor weights where all of them are 1: there they are `known`, if it is given. */
    void
    CombinePairs(const AxisWindow<TAcc> & window, TAcc * out, std::int64_t firstTap, std::int64_t count,
                 std::int64_t gap, const RowSight & sight, const TAcc * known)
    {
      const std::uint64_t second = m.m_KnowsWhole ? sight.Cut() : sight.some;
      // One long sum takes no longer than several short ones.
      const std::int64_t parts = (m_Half + RowSight::Part - 1) / RowSight::Part;
      if (gap == m_Half && 4 * __builtin_popcountll(second & ~std::uint64_t{ 0 } >> (64 - parts)) >= 3 * parts)
      {
        this->Combine(window, out, m_Taps.data(), firstTap, count, m_X);
        return;
      }
      const auto combine = [&](TAcc * to, std::int64_t offset) {
        return [this, &window, to, offset, firstTap, count](std::int64_t begin, std::int64_t end) {
          const TAcc ** taps = m_Taps.data();
          if (offset + begin > 0)
          {
            taps = m_RunTaps.data();
            std::transform(m_Taps.begin(), m_Taps.begin() + count, taps, [offset, begin](const TAcc * tap) {
              return tap + (offset + begin);
            });
          }
          this->Combine(window, to + begin, taps, firstTap, count, end - begin);
        };
      };
      ForEachRun(sight.some, m_Half, combine(out, 0));
      ForEachRun(second, m_Half, combine(out + m_Half, gap));
      ForEachRun(~sight.some, m_Half, [&](std::int64_t begin, std::int64_t end) {
        std::fill(out + begin, out + end, TAcc{ 0 });
        std::fill(out + m_Half + begin, out + m_Half + end, TAcc{ 0 });
      });
      if (m.m_KnowsWhole && known)
      {
        ForEachRun(sight.Whole(), m_Half, [&](std::int64_t begin, std::int64_t end) {
          std::copy(known + begin, known + end, out + m_Half + begin);
        });
      }
    }

    /** Copies the mask of a row of the input to m_MaskRow, continued as its edge where there is nothing beyond: windows
     * that reach there see the edge. */
    void
    LoadMask(Coordinates at)
    {
      const RowEnds & ends = m_Ends;
      at[0] = ends.from;
      const std::uint8_t * const mask = static_cast<const std::uint8_t *>(m.m_Mask.data) + m.m_Mask.Offset(at);
      std::uint8_t * const       row = m_MaskRow.data();
      const auto                 look = [&](std::int64_t x, std::int64_t last) {
        for (; x < last; ++x)
        {
          const std::int64_t source = Map(0, x);
          row[x - ends.begin] =
            mask[(IsAbsent(source) ? std::min(std::max(x, ends.from), ends.to - 1) : source) - ends.from];
        }
      };
      std::copy(mask, mask + (ends.to - ends.from), row + (ends.from - ends.begin));
      if (ends.areAbsent)
      {
        std::fill(row, row + (ends.from - ends.begin), mask[0]);
        std::fill(row + (ends.to - ends.begin), row + (ends.end - ends.begin), mask[ends.to - ends.from - 1]);
      }
      else
      {
        look(ends.begin, ends.from);
        look(ends.to, ends.end);
      }
      std::fill(row + (ends.end - ends.begin), row + m_MaskRow.size(), row[ends.end - ends.begin - 1]);
    }

    /** MakeRow for pairs. */
    void
    MakePairs(const Coordinates & at, TAcc * out)
    {
      const AxisWindow<TAcc> & window = m.m_Windows[0];
      const RowEnds &          ends = m_Ends;
      this->LoadMask(at);
      m_Sight = SightOf(*m.m_Pairs, m_MaskRow.data(), static_cast<std::int64_t>(m_MaskRow.size()), window.radius);
      if (m_Sight.some == 0)
      {
        std::fill(out, out + m_X, TAcc{ 0 });
        return;
      }
      const std::int64_t width = ends.end - ends.begin;
      TAcc * const       padded = window.radius == 0 ? out : m_Padded;
      LoadRow(at, padded);
      m.m_Pairs->split(padded, padded + width, m_MaskRow.data(), width);
      if (m.m_Mode == BoundaryMode::Renormalized)
      {
        std::fill(padded + width, padded + width + (ends.from - ends.begin), TAcc{ 0 });
        std::fill(padded + width + (ends.to - ends.begin), padded + 2 * width, TAcc{ 0 });
      }
      if (window.radius > 0)
      {
        this->TakeTaps(padded, 1, window.Taps());
        this->CombinePairs(window, out, 0, window.Taps(), width, m_Sight, m_Known);
        ScaleEnds(out);
        ScaleEnds(out + m_Half);
      }
    }

    static bool
    HasAny(const std::uint8_t * mask, std::int64_t n)
    {
      std::uint8_t any = 0;
      for (std::int64_t i = 0; i < n; ++i)
      {
        any |= mask[i];
      }
      return any != 0;
    }

    /** The accumulators of the row of the input that begins at `at`, and of what lies beyond its ends. */
    void
    LoadRow(const Coordinates & at, TAcc * padded) const
    {
      const RowEnds &    ends = m_Ends;
      const BufferView & input = m.m_Call.inputs[0];
      const std::int64_t begin = ends.begin;
      const std::int64_t end = ends.end;
      const TAcc         outside = m.m_Beyond[0];
      const std::int64_t from = ends.from;
      const std::int64_t to = ends.to;
      const std::size_t  pixel = PixelSize(input.kind);
      const char * const line =
        static_cast<const char *>(input.data) + input.Offset(at) * static_cast<std::int64_t>(pixel);
      const auto address = [&](std::int64_t x) {
        return line + (x - input.box.lower[0]) * input.stride[0] * static_cast<std::int64_t>(pixel);
      };
      const int sweep = m.m_Tiling.sweep;
      if (sweep >= 0 && at[sweep] + 1 < input.box.upper[sweep] && from < to)
      {
        // Prefetches the voxels that the next slab reads in the place of this row.
        const char * const next = address(from) + input.stride[sweep] * static_cast<std::int64_t>(pixel);
        for (std::int64_t byte = 0; byte < (to - from) * input.stride[0] * static_cast<std::int64_t>(pixel); byte += 64)
        {
          __builtin_prefetch(next + byte);
        }
      }
      const auto maskAt = [&](std::int64_t x) {
        return static_cast<const std::uint8_t *>(m.m_Mask.data) + m.m_Mask.Offset(at) + (x - at[0]);
      };
      if (m.m_Hide && from < to && !HasAny(maskAt(from), to - from))
      {
        std::fill(padded + (from - begin), padded + (to - begin), TJoin::Nothing);
      }
      else if (from < to)
      {
        UseStrided(pixel,
                   address(from),
                   m_Components > 1 ? 1 : input.stride[0],
                   (to - from) * m_Components,
                   [&](const char * voxels, std::int64_t first, std::int64_t count) {
                     m.m_Convert(padded + (from - begin) * m_Components + first, voxels, count);
                   });
        if (m.m_Hide)
        {
          m.m_Hide(padded + (from - begin), maskAt(from), to - from);
        }
      }
      const auto fillOutside = [&](std::int64_t x) {
        const std::int64_t source = Map(0, x);
        TAcc * const       voxel = padded + (x - begin) * m_Components;
        if (IsAbsent(source))
        {
          std::fill(voxel, voxel + m_Components, outside);
        }
        else
        {
          m.m_Convert(voxel, address(source), m_Components);
          if (m.m_Hide)
          {
            m.m_Hide(voxel, maskAt(source), 1);
          }
        }
      };
      if (ends.areAbsent)
      {
        std::fill(padded, padded + (from - begin) * m_Components, outside);
        std::fill(padded + (to - begin) * m_Components, padded + (end - begin) * m_Components, outside);
      }
      else
      {
        const auto fill = [&](std::int64_t x, std::int64_t last, const std::int64_t * sources) {
          for (; x < last; ++x, ++sources)
          {
            if (*sources < 0)
            {
              fillOutside(x);
              continue;
            }
            for (std::int64_t component = 0; component < m_Components; ++component)
            {
              padded[(x - begin) * m_Components + component] = padded[*sources + component];
            }
          }
        };
        fill(begin, from, m_EndSources.data());
        fill(to, end, m_EndSources.data() + (from - begin));
      }
    }

    /** Finds the factors along x that are not 1: those of the first positions of the tile and of the last ones. */
    void
    FindNorms()
    {
      const AxisWindow<TAcc> & window = m.m_Windows[0];
      m_NormEnd = m_Box.Extent(0);
      if (window.norms.empty())
      {
        return;
      }
      const auto inTile = [&](std::int64_t position) {
        return std::clamp<std::int64_t>(position - m_Box.lower[0], 0, m_Box.Extent(0));
      };
      m_NormBegin = inTile(window.radius);
      m_NormEnd = std::max(inTile(window.extent - window.radius), m_NormBegin);
      // Positions of each part follow each other in the table, too.
      const auto row = [&](std::int64_t x) {
        return window.norms.data() + NormRow(m_Box.lower[0] + x, window.extent, window.radius);
      };
      m_FirstNorms = row(0);
      m_LastNorms = row(m_NormEnd);
      for (; m_NormBegin > 0 && m_FirstNorms[m_NormBegin - 1] == TAcc{ 1 }; --m_NormBegin)
      {
      }
      for (; m_NormEnd < m_Box.Extent(0) && *m_LastNorms == TAcc{ 1 }; ++m_NormEnd, ++m_LastNorms)
      {
      }
    }

    /** Applies the factors along x. */
    void
    ScaleEnds(TAcc * out) const
    {
      const auto scale = [&](std::int64_t x, std::int64_t last, const TAcc * norm) {
        for (; m_Components == 1 && x < last; ++x, ++norm)
        {
          out[x] *= *norm;
        }
        for (; x < last; ++x, ++norm)
        {
          for (std::int64_t component = 0; component < m_Components; ++component)
          {
            out[x * m_Components + component] *= *norm;
          }
        }
      };
      scale(0, m_NormBegin, m_FirstNorms);
      scale(m_NormEnd, m_Box.Extent(0), m_LastNorms);
    }

    /** One row of the tile, passed along x when the next one is made or PassLoadedRow is called; `outer` may lie
     * outside the image on the windowed axes. Coordinates are taken one by one: a copy would wait until what was just
     * written to them, and all before it, is in the cache. */
    void
    MakeRow(const Coordinates & outer, TAcc * out)
    {
      Coordinates at;
      at[0] = m.m_Call.inputs[0].box.lower[0];
      bool inside = true;
      for (int a = 1; a < MaxDimension; ++a)
      {
        at[a] = Map(a, outer[a]);
        inside = inside && !IsAbsent(at[a]);
      }
      if (!inside)
      {
        // Absent along the axis after x: what lies further out is filled in by MakeSlab.
        std::fill(out, out + m_X, m.m_Beyond[m.m_Tiling.middle[0]]);
        return;
      }
      if (m.m_Pairs)
      {
        this->MakePairs(at, out);
        return;
      }
      if (m.m_Windows[0].Taps() == 1)
      {
        LoadRow(at, out);
        return;
      }
      // While a row is passed the next one is loaded: what was stored a moment ago is slow to read.
      LoadRow(at, m_Padded);
      PassLoadedRow();
      m_Loaded = m_Padded;
      m_LoadedTo = out;
      std::swap(m_Padded, m_OtherPadded);
    }

    /** Passes the row that MakeRow left, if there is one. */
    void
    PassLoadedRow()
    {
      TAcc * const in = std::exchange(m_Loaded, nullptr);
      if (!in)
      {
        return;
      }
      const AxisWindow<TAcc> & window = m.m_Windows[0];
      if (window.UsesBlocks())
      {
        for (std::int64_t component = 0; component < m_Components; ++component)
        {
          SumRowByBlocks(window, in + component, m_LoadedTo + component);
        }
      }
      else if (!window.weights.empty() && m_Components == 1)
      {
        m.m_Rows.weighAlong(m_LoadedTo, in, window.weights.data(), window.Taps(), m_X);
      }
      else
      {
        this->TakeTaps(in, m_Components, window.Taps());
        Combine(window, m_LoadedTo, m_Taps.data(), 0, window.Taps(), m_X);
      }
      ScaleEnds(m_LoadedTo);
    }

    /** The block rule along x, on one component. */
    void
    SumRowByBlocks(const AxisWindow<TAcc> & window, const TAcc * in, TAcc * out)
    {
      const std::int64_t k = window.Taps();
      std::int64_t       j = m_Box.lower[0] - window.radius;
      std::int64_t       p = j % k < 0 ? j % k + k : j % k;
      TAcc               prefix = TJoin::Nothing;
      for (std::int64_t n = 0; n < m_Box.Extent(0) + k - 1; ++n)
      {
        const TAcc voxel = in[n * m_Components];
        prefix = TJoin::Join(prefix, voxel);
        if (n >= k - 1)
        {
          out[(n - (k - 1)) * m_Components] = p == k - 1 ? prefix : TJoin::Join(m_Slots[p + 1], prefix);
        }
        m_Slots[p] = voxel;
        if (++p == k)
        {
          for (std::int64_t s = k - 2; s >= std::max<std::int64_t>(0, k - 1 - n); --s)
          {
            m_Slots[s] = TJoin::Join(m_Slots[s], m_Slots[s + 1]);
          }
          p = 0;
          prefix = TJoin::Nothing;
        }
      }
    }

    /** The slab at position `v` along the sweep axis, to slot `number` of the ring. Positions that see the same voxels,
     * beyond an edge and inside, share one computation. */
    void
    MakeRingSlab(std::int64_t v, std::int64_t number)
    {
      const int          c = m.m_Tiling.sweep;
      const std::int64_t source = Map(c, v);
      const bool         canShare = source >= 0 && !m.m_Pairs;
      const auto         same = canShare ? std::find(m_Sources.begin(), m_Sources.end(), source) : m_Sources.end();
      const auto         slot = static_cast<std::size_t>(number % m.m_Tiling.ringSlots);
      if (same == m_Sources.end())
      {
        Coordinates at = m_Box.lower;
        at[c] = v;
        MakeSlab(at, RingSlab(number));
      }
      else if (const auto other = same - m_Sources.begin(); other != static_cast<std::ptrdiff_t>(slot))
      {
        PassLoadedRow();
        const TAcc * const slab = RingSlab(other);
        std::copy(slab, slab + m_SlabRows * m_Pitch, RingSlab(number));
      }
      m_Sources[slot] = canShare ? source : NoSource;
    }

    /** The slab at `at` (its sweep position; the tile's lower corner on the other axes), passed along all axes but the
     * sweep axis, to `out`. Without a middle axis its row may be left to PassLoadedRow. */
    void
    MakeSlab(const Coordinates & at, TAcc * out)
    {
      const WindowTiling & tiling = m.m_Tiling;
      if (tiling.sweep >= 0 && IsAbsent(Map(tiling.sweep, at[tiling.sweep])))
      {
        std::fill(out, out + m_SlabRows * m_Pitch, m.m_Beyond[tiling.sweep]);
        return;
      }
      if (tiling.middles == 0)
      {
        MakeRow(at, out);
        if (m_Knows)
        {
          *this->SightsOf(out) = m_Sight;
        }
        return;
      }
      const int          first = tiling.middle[0];
      const std::int64_t rows = m_Upper[0] - m_Lower[0];
      const std::int64_t planes = tiling.middles == 2 ? m_Upper[1] - m_Lower[1] : 1;
      const std::int64_t outRows = m_Box.Extent(first);
      TAcc * const       passed = tiling.middles == 2 ? m_Second : out;
      for (std::int64_t plane = 0; plane < planes; ++plane)
      {
        Coordinates row = at;
        if (tiling.middles == 2)
        {
          row[tiling.middle[1]] = m_Lower[1] + plane;
          if (IsAbsent(Map(tiling.middle[1], row[tiling.middle[1]])))
          {
            TAcc * const absent = passed + plane * outRows * m_Pitch;
            std::fill(absent, absent + outRows * m_Pitch, m.m_Beyond[tiling.middle[1]]);
            continue;
          }
        }
        MakeRows(row, rows);
        Pass(first, m_First, m_Pitch, m_Lower[0], rows, passed + plane * outRows * m_Pitch, m_Pitch);
      }
      if (tiling.middles == 2)
      {
        for (std::int64_t r = 0; r < outRows; ++r)
        {
          Pass(tiling.middle[1],
               m_Second + r * m_Pitch,
               outRows * m_Pitch,
               m_Lower[1],
               planes,
               out + r * m_Pitch,
               outRows * m_Pitch);
        }
      }
    }

    /** The rows from m_Lower[0] on along the first middle axis. Those beyond the image's edges are copies of rows
     * inside. */
    void
    MakeRows(Coordinates row, std::int64_t rows)
    {
      const int          first = m.m_Tiling.middle[0];
      const std::int64_t begin = std::max<std::int64_t>(m_Lower[0], 0);
      const std::int64_t end = std::min(m_Lower[0] + rows, m.m_Call.image.upper[first]);
      const auto         make = [&](std::int64_t from, std::int64_t to) {
        for (row[first] = from; row[first] < to; ++row[first])
        {
          const std::int64_t r = row[first] - m_Lower[0];
          const std::int64_t source = from == begin ? row[first] : Map(first, row[first]);
          TAcc * const       out = m_First + r * m_Pitch;
          if (source != row[first] && source >= begin && source < end && !m.m_Pairs)
          {
            const TAcc * const made = m_First + (source - m_Lower[0]) * m_Pitch;
            std::copy(made, made + m_X, out);
            continue;
          }
          MakeRow(row, out);
          if (m_Knows)
          {
            m_SightsOfFirst[static_cast<std::size_t>(r)] = m_Sight;
          }
        }
        PassLoadedRow();
      };
      make(begin, end);
      make(m_Lower[0], begin);
      make(end, m_Lower[0] + rows);
    }

    /** The pass along a middle axis: rows `stride` apart, the first at position `lower`, to the tile's positions. */
    void
    Pass(int a, const TAcc * in, std::int64_t stride, std::int64_t lower, std::int64_t count, TAcc * out,
         std::int64_t outStride)
    {
      const AxisWindow<TAcc> & window = m.m_Windows[a];
      if (window.UsesBlocks())
      {
        const std::int64_t k = window.Taps();
        TAcc * const       prefix = m_Slots + k * m_Pitch;
        std::int64_t       p = lower % k < 0 ? lower % k + k : lower % k;
        std::fill(prefix, prefix + m_X, TJoin::Nothing);
        for (std::int64_t n = 0; n < count; ++n)
        {
          const TAcc * const row = in + n * stride;
          m.m_Rows.add(prefix, prefix, row, m_X);
          if (n >= k - 1)
          {
            TAcc * const to = out + (n - (k - 1)) * outStride;
            m.m_Rows.add(to, p == k - 1 ? m_Nothing : m_Slots + (p + 1) * m_Pitch, prefix, m_X);
          }
          std::copy(row, row + m_X, m_Slots + p * m_Pitch);
          if (++p == k)
          {
            for (std::int64_t s = k - 2; s >= std::max<std::int64_t>(0, k - 1 - n); --s)
            {
              m.m_Rows.add(m_Slots + s * m_Pitch, m_Slots + s * m_Pitch, m_Slots + (s + 1) * m_Pitch, m_X);
            }
            p = 0;
            std::fill(prefix, prefix + m_X, TJoin::Nothing);
          }
        }
        return;
      }
      for (std::int64_t i = m_Box.lower[a], together = 1; i < m_Box.upper[a]; i += together)
      {
        together = CountTogether(a, i, lower, lower + count, RowsTogether);
        const std::int64_t first = std::max(i - window.radius, lower);
        const std::int64_t last = std::min(i + window.Upper() + 1, lower + count);
        this->TakeTaps(in + (first - lower) * stride, stride, last - first + together - 1);
        TAcc * const to = out + (i - m_Box.lower[a]) * outStride;
        if (together == RowsTogether)
        {
          TAcc * const outs[RowsTogether]{ to, to + outStride, to + 2 * outStride, to + 3 * outStride };
          CombineTogether(window, outs, m_Taps.data());
          for (std::int64_t k = 0; k < RowsTogether; ++k)
          {
            ScaleByNorm(window, i + k, outs[k], m_X);
          }
          continue;
        }
        if (m_Knows)
        {
          const std::int64_t row = i - m_Box.lower[a];
          RowSight           sight = RowSight::Nothing();
          for (std::int64_t v = first; v < last; ++v)
          {
            sight.Join(m_SightsOfFirst[static_cast<std::size_t>(v - lower)]);
          }
          this->SightsOf(out)[row] = sight;
          this->CombinePairs(
            window, to, first - (i - window.radius), last - first, m_Half, sight, m_Known + (1 + row) * m_Half);
          ScaleByNorm(window, i, to, m_X);
          continue;
        }
        Combine(window, to, m_Taps.data(), first - (i - window.radius), last - first, m_X);
        ScaleByNorm(window, i, to, m_X);
      }
    }

    /** The block rule along the sweep axis: the ring's slabs are the slots. */
    template <typename TFinish>
    void
    SweepBlocks(TFinish && finish)
    {
      const int                c = m.m_Tiling.sweep;
      const AxisWindow<TAcc> & window = m.m_Windows[c];
      const std::int64_t       k = window.Taps();
      const std::int64_t       lower = m_Box.lower[c] - window.radius;
      const std::int64_t       count = m_Box.Extent(c) + k - 1;
      std::int64_t             p = lower % k < 0 ? lower % k + k : lower % k;
      const auto               slot = [&](std::int64_t number) { return m_Ring + number * m.m_Tiling.slab; };
      TAcc * const             fresh = slot(k);
      const auto               add = [&](TAcc * to, const TAcc * one, const TAcc * other) {
        for (std::int64_t row = 0; row < m_SlabRows * m_Pitch; row += m_Pitch)
        {
          m.m_Rows.add(to + row, one + row, other + row, m_X);
        }
      };
      std::fill(m_Prefix, m_Prefix + m_SlabRows * m_Pitch, TJoin::Nothing);
      for (std::int64_t n = 0; n < count; ++n)
      {
        if (Stops())
        {
          return;
        }
        Coordinates at = m_Box.lower;
        at[c] = lower + n;
        MakeSlab(at, fresh);
        PassLoadedRow();
        add(m_Prefix, m_Prefix, fresh);
        if (n >= k - 1)
        {
          at[c] = lower + n - window.Upper();
          for (std::int64_t row = 0; row < m_SlabRows; ++row)
          {
            m.m_Rows.add(m_Row, p == k - 1 ? m_Nothing : slot(p + 1) + row * m_Pitch, m_Prefix + row * m_Pitch, m_X);
            FinishRow(m_Row, row, at, finish);
          }
          Report();
        }
        std::copy(fresh, fresh + m_SlabRows * m_Pitch, slot(p));
        if (++p == k)
        {
          for (std::int64_t s = k - 2; s >= std::max<std::int64_t>(0, k - 1 - n); --s)
          {
            add(slot(s), slot(s), slot(s + 1));
          }
          p = 0;
          std::fill(m_Prefix, m_Prefix + m_SlabRows * m_Pitch, TJoin::Nothing);
        }
      }
    }

    template <typename TFinish>
    void
    FinishRow(const TAcc * values, std::int64_t row, const Coordinates & first, TFinish && finish)
    {
      Coordinates at = first;
      for (int i = 0; i < m.m_Tiling.middles; ++i)
      {
        const int a = m.m_Tiling.middle[i];
        at[a] = m_Box.lower[a] + row % m_Box.Extent(a);
        row /= m_Box.Extent(a);
      }
      if constexpr (std::is_invocable<TFinish, const TAcc *, const Coordinates &, std::int64_t, const RowSight &>::
                      value)
      {
        finish(values, at, m_X, m_Knows ? m_Sight : RowSight{});
      }
      else
      {
        finish(values, at, m_X);
      }
    }

    const WindowSweep &       m;
    const Box                 m_Box;
    const std::int64_t        m_Components;
    const std::int64_t        m_X;     ///< numbers of a row
    const std::int64_t        m_Pitch; ///< from one row to the next
    const RowEnds             m_Ends;
    std::int64_t              m_Lower[2]{ 0, 0 };
    std::int64_t              m_Upper[2]{ 1, 1 };
    std::int64_t              m_SlabRows{ 1 };
    TAcc *                    m_Padded{ nullptr };
    TAcc *                    m_OtherPadded{ nullptr };
    TAcc *                    m_Loaded{ nullptr }; ///< the row that is not passed yet
    TAcc *                    m_LoadedTo{ nullptr };
    TAcc *                    m_First{ nullptr };
    TAcc *                    m_Second{ nullptr };
    TAcc *                    m_Ring{ nullptr };
    TAcc *                    m_Prefix{ nullptr };
    TAcc *                    m_Slots{ nullptr };
    TAcc *                    m_Row{ nullptr };
    TAcc *                    m_Nothing{ nullptr };
    std::vector<const TAcc *> m_Taps;
    std::vector<std::int64_t> m_Slabs; ///< of the ring: those of the taps along the sweep axis
    /** The numbers of a padded row that voxels beyond its ends repeat, or NoSource. */
    std::vector<std::int64_t> m_EndSources;
    std::vector<std::int64_t> m_Sources; ///< the positions inside the image that the ring's slabs are those of
    /** Before the first and from the second on are all norms along x that are not 1. */
    std::int64_t m_NormBegin{ 0 };
    std::int64_t m_NormEnd{ 0 };
    const TAcc * m_FirstNorms{ nullptr };
    const TAcc * m_LastNorms{ nullptr };
    /** For pairs: the numbers of each half of a row, the sights of the row that was made last, of the slab before its
     * pass and of the ring's slabs, and whether they are known; sums of weights of ones. */
    std::int64_t              m_Half{ 0 };
    bool                      m_Knows{ false };
    TAcc *                    m_Known{ nullptr };
    RowSight                  m_Sight;
    std::vector<RowSight>     m_SightsOfFirst;
    std::vector<RowSight>     m_SightsOfRing;
    std::vector<std::uint8_t> m_MaskRow;
    std::vector<const TAcc *> m_RunTaps;
  };

  const KernelCall &          m_Call;
  const RowFunctions<TAcc> &  m_Rows;
  const ConvertFunction       m_Convert;
  BufferView                  m_Mask;
  HideFunction                m_Hide{ nullptr };
  const PairFunctions<TAcc> * m_Pairs{ nullptr };
  bool                        m_KnowsWhole{ false };
  const BoundaryMode          m_Mode;
  const AxisWindow<TAcc> (&m_Windows)[MaxDimension];
  const WindowTiling & m_Tiling;
  /** The values beyond the image's edge along an axis when its pass comes: the constant, passed along the axes before.
   */
  TAcc m_Beyond[MaxDimension];
};

} // namespace chunkwise

#endif
