/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMean.h"
#include "chunkwiseCpuRank.h"
#include "chunkwiseCpuRankCounts.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseCpuVariance.h"
#include "chunkwiseFootprintSums.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseRankOperation.h"

#include <limits>
#include <vector>

namespace chunkwise
{

namespace
{

using Run = ElementOperation::Run;

const FootprintOperation &
FootprintOf(const Operation & operation)
{
  return static_cast<const FootprintOperation &>(operation);
}

std::int64_t
CountTaps(const FootprintOperation & operation)
{
  std::int64_t taps = 0;
  for (const unsigned char tap : operation.element)
  {
    taps += tap != 0 ? 1 : 0;
  }
  return taps;
}

/** A worker's memory: the voxels, or their keys, of a tile with its surroundings, and what the windows of a row add up
 * to, or all taps of one window. */
template <typename TPixel>
struct FootprintMemory
{
  using Types = FootprintTypes<TPixel>;
  using Key = typename RankKey<TPixel>::Type;

  TPixel *                 voxels{ nullptr };
  Key *                    keys{ nullptr };
  typename Types::Sum *    sums{ nullptr };
  typename Types::Second * seconds{ nullptr };
  double *                 means{ nullptr };
  std::int64_t *           counts{ nullptr };
  Key *                    taps{ nullptr };
  Key *                    found{ nullptr }; ///< the keys of a row's ranks, unless their windows are empty

  std::int64_t
  LayOut(const FootprintOperation & operation, const WindowBoxes & boxes, char * memory)
  {
    std::int64_t bytes = 0;
    const auto   take = [&](auto *& part, std::int64_t n) {
      part = reinterpret_cast<std::remove_reference_t<decltype(part)>>(memory + bytes);
      bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(*part)));
    };
    const std::int64_t n = boxes.after[boxes.count - 1].Extent(0);
    if (operation.statistic == FootprintStatistic::Rank)
    {
      take(keys, boxes.padded.NumberOfVoxels());
      take(taps, CountTaps(operation));
      take(found, n);
      take(counts, n);
      return bytes;
    }
    take(voxels, boxes.padded.NumberOfVoxels());
    take(sums, n);
    take(seconds, n);
    take(means, n);
    take(counts, n);
    return bytes;
  }
};

/** Stores the results of a row of `n` windows from `at` on. */
template <typename TPixel>
using StoreFootprints = void (*)(const KernelCall & call, const Coordinates & at, std::int64_t n,
                                 const FootprintMemory<TPixel> & memory);

template <typename TPixel, typename TOut>
void
StoreRanks(const KernelCall & call, const Coordinates & at, std::int64_t n, const FootprintMemory<TPixel> & memory)
{
  StoreRow<TOut>(call.output, at, n, [&](std::int64_t x) {
    return memory.counts[x] == 0 ? EmptyFootprint<TOut>() : static_cast<TOut>(RankKey<TPixel>::To(memory.found[x]));
  });
}

template <typename TPixel, typename TOut>
void
StoreRises(const KernelCall & call, const Coordinates & at, std::int64_t n, const FootprintMemory<TPixel> & memory)
{
  const double sign = FootprintOf(*call.operation).statistic == FootprintStatistic::Erosion ? -1 : 1;
  StoreRow<TOut>(call.output, at, n, [&](std::int64_t x) { return ConvertResult<TOut>(sign * memory.means[x]); });
}

template <typename TPixel, typename TOut>
void
StoreSums(const KernelCall & call, const Coordinates & at, std::int64_t n, const FootprintMemory<TPixel> & memory)
{
  const FootprintOperation & operation = FootprintOf(*call.operation);
  StoreRow<TOut>(call.output, at, n, [&](std::int64_t x) {
    return FinishFootprint<TOut, TPixel>(
      operation.statistic, operation.truncates, memory.sums[x], memory.seconds[x], memory.counts[x]);
  });
}

template <typename TPixel>
StoreFootprints<TPixel>
StoreOf(const FootprintOperation & operation, PixelType output)
{
  StoreFootprints<TPixel> store = nullptr;
  DispatchExactOutput<TPixel>(output, [&](auto out) {
    using Out = decltype(out);
    store = operation.statistic == FootprintStatistic::Rank ? StoreRanks<TPixel, Out>
            : operation.HasHeights()                        ? StoreRises<TPixel, Out>
                                                            : StoreSums<TPixel, Out>;
  });
  return store;
}

/** The windows of a tile. */
template <typename TPixel>
class FootprintTile
{
public:
  using Types = FootprintTypes<TPixel>;
  using Key = typename RankKey<TPixel>::Type;

  FootprintTile(const KernelCall & call, const std::vector<Run> & runs, const WindowBoxes & boxes,
                const FootprintMemory<TPixel> & memory, const std::vector<double> & rises)
    : m_Call(call)
    , m_Operation(FootprintOf(*call.operation))
    , m_Runs(runs)
    , m_Boxes(boxes)
    , m_Memory(memory)
    , m_Cuts(m_Operation.boundary.mode == BoundaryMode::Renormalized)
    , m_Rises(rises)
  {}

  void
  Run(StoreFootprints<TPixel> store)
  {
    const bool isRank = m_Operation.statistic == FootprintStatistic::Rank;
    isRank ? this->Load(m_Memory.keys, [](TPixel voxel) { return RankKey<TPixel>::From(voxel); })
           : this->Load(m_Memory.voxels, [](TPixel voxel) { return voxel; });
    const Box          output = m_Boxes.after[m_Boxes.count - 1];
    const std::int64_t n = output.Extent(0);
    ForEachRow(output, [&](const Coordinates & at) {
      isRank ? this->FindRanks(at, n) : m_Operation.HasHeights() ? this->Raise(at, n) : this->AddUp(at, n);
      store(m_Call, at, n, m_Memory);
    });
  }

private:
  template <typename TTo, typename TConvert>
  void
  Load(TTo * to, TConvert && convert) const
  {
    const PixelValue & constant = m_Operation.boundary.constant;
    // Renormalized mode never reads the voxels beyond the edge.
    LoadTile<TPixel>(m_Call.inputs[0],
                     m_Call.image,
                     m_Boxes.padded,
                     m_Cuts ? BoundaryMode::Constant : m_Operation.boundary.mode,
                     m_Cuts ? TTo(0) : static_cast<TTo>(convert(ConstantPixel<TPixel>(constant))),
                     to,
                     convert);
  }

  /** Whether a run lies in the image, but for x. */
  bool
  HasRow(const Coordinates & at, const ElementOperation::Run & run) const
  {
    bool has = true;
    for (int a = 1; a < MaxDimension && m_Cuts; ++a)
    {
      const std::int64_t i = at[a] + run.first[a];
      has = has && i >= 0 && i < m_Call.image.upper[a];
    }
    return has;
  }

  /** The place of a run's first tap of the window at `at`. */
  std::int64_t
  PlaceOf(Coordinates at, const ElementOperation::Run & run) const
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      at[a] += run.first[a];
    }
    return DenseOffset(m_Boxes.padded, at);
  }

  /** Calls visit(voxels, first, last, number) tap by tap: voxels[x] is the tap of the window at at[0] + x, for first <=
   * x < last.
   */
  template <typename TVisit>
  void
  ForEachTap(const Coordinates & at, std::int64_t n, TVisit && visit) const
  {
    std::int64_t before = 0;
    for (const auto & run : m_Runs)
    {
      const std::int64_t number = before;
      before += run.length;
      if (!this->HasRow(at, run))
      {
        continue;
      }
      const TPixel * const line = m_Memory.voxels + this->PlaceOf(at, run);
      for (std::int64_t t = 0; t < run.length; ++t)
      {
        const std::int64_t begin = at[0] + run.first[0] + t;
        const std::int64_t first = m_Cuts ? std::max<std::int64_t>(0, -begin) : 0;
        const std::int64_t last = m_Cuts ? std::min(n, m_Call.image.upper[0] - begin) : n;
        visit(line + t, first, last, number + t);
      }
    }
  }

  void
  AddUp(const Coordinates & at, std::int64_t n) const
  {
    const bool isVariance =
      m_Operation.statistic != FootprintStatistic::Mean && m_Operation.statistic != FootprintStatistic::Sum;
    const auto & m = m_Memory;
    std::fill(m.sums, m.sums + n, typename Types::Sum{ 0 });
    std::fill(m.seconds, m.seconds + n, typename Types::Second{ 0 });
    std::fill(m.counts, m.counts + n, std::int64_t{ 0 });
    this->ForEachTap(at, n, [&](const TPixel * voxels, std::int64_t first, std::int64_t last, std::int64_t) {
      for (std::int64_t x = first; x < last; ++x)
      {
        m.sums[x] += static_cast<typename Types::Sum>(voxels[x]);
        ++m.counts[x];
      }
    });
    if (!isVariance)
    {
      return;
    }
    if constexpr (Types::IsExact)
    {
      this->ForEachTap(at, n, [&](const TPixel * voxels, std::int64_t first, std::int64_t last, std::int64_t) {
        for (std::int64_t x = first; x < last; ++x)
        {
          const auto voxel = static_cast<typename Types::Second>(voxels[x]);
          m.seconds[x] += voxel * voxel;
        }
      });
    }
    else
    {
      for (std::int64_t x = 0; x < n; ++x)
      {
        m.means[x] = static_cast<double>(m.sums[x]) / static_cast<double>(m.counts[x]);
      }
      this->ForEachTap(at, n, [&](const TPixel * voxels, std::int64_t first, std::int64_t last, std::int64_t) {
        for (std::int64_t x = first; x < last; ++x)
        {
          m.seconds[x] += SquaredDeviation(voxels[x], m.means[x]);
        }
      });
    }
  }

  void
  Raise(const Coordinates & at, std::int64_t n) const
  {
    const double   sign = m_Operation.statistic == FootprintStatistic::Erosion ? -1 : 1;
    double * const largest = m_Memory.means;
    std::fill(largest, largest + n, std::numeric_limits<double>::quiet_NaN());
    this->ForEachTap(at, n, [&](const TPixel * voxels, std::int64_t first, std::int64_t last, std::int64_t tap) {
      const double rise = m_Rises[static_cast<std::size_t>(tap)];
      for (std::int64_t x = first; x < last; ++x)
      {
        largest[x] = LargerRise(largest[x], sign * static_cast<double>(voxels[x]) + rise);
      }
    });
  }

  void
  FindRanks(const Coordinates & at, std::int64_t n) const
  {
    for (std::int64_t x = 0; x < n; ++x)
    {
      m_Memory.counts[x] = this->TakeTaps(at, x);
      if (m_Memory.counts[x] > 0)
      {
        m_Memory.found[x] = this->FindRank(at, x, m_Memory.counts[x]);
      }
    }
  }

  /** The keys of the window at `x`; gives their number. */
  std::int64_t
  TakeTaps(const Coordinates & at, std::int64_t x) const
  {
    std::int64_t count = 0;
    for (const auto & run : m_Runs)
    {
      if (!this->HasRow(at, run))
      {
        continue;
      }
      const Key * const  line = m_Memory.keys + this->PlaceOf(at, run) + x;
      const std::int64_t begin = at[0] + x + run.first[0];
      const std::int64_t first = m_Cuts ? std::max<std::int64_t>(0, -begin) : 0;
      const std::int64_t last = m_Cuts ? std::min<std::int64_t>(run.length, m_Call.image.upper[0] - begin) : run.length;
      for (std::int64_t t = first; t < last; ++t)
      {
        m_Memory.taps[count++] = line[t];
      }
    }
    return count;
  }

  Key
  FindRank(const Coordinates & at, std::int64_t x, std::int64_t count) const
  {
    const std::int64_t lost = RankKey<TPixel>::IsReal ? std::count(m_Memory.taps, m_Memory.taps + count, Key{ 0 }) : 0;
    Coordinates        index = at;
    index[0] += x;
    const std::int64_t absent = RankCounts(m_Call, m_Operation.isCounted).AbsentAt(index, count, lost);
    const std::int64_t rank = RankIn(count, absent, m_Operation.fraction);
    std::nth_element(m_Memory.taps, m_Memory.taps + rank, m_Memory.taps + count);
    return m_Memory.taps[rank];
  }

  const KernelCall &                         m_Call;
  const FootprintOperation &                 m_Operation;
  const std::vector<ElementOperation::Run> & m_Runs;
  const WindowBoxes &                        m_Boxes;
  const FootprintMemory<TPixel> &            m_Memory;
  const bool                                 m_Cuts;
  const std::vector<double> &                m_Rises;
};

template <typename TPixel>
std::int64_t
BytesOf(const FootprintOperation & operation, const Box & output)
{
  return TileBytes(output, operation.radius, [&](const WindowBoxes & boxes) {
    return FootprintMemory<TPixel>().LayOut(operation, boxes, nullptr);
  });
}

void
RunFootprint(const KernelCall & call)
{
  const auto &           operation = FootprintOf(*call.operation);
  const std::vector<Run> runs = operation.GetRuns();
  const auto             rises = operation.GetRises(call.inputs[0].kind);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const std::int64_t bytes = BytesOf<Pixel>(operation, call.output.box);
    const auto         store = StoreOf<Pixel>(operation, call.output.kind);
    ForEachTile(call, operation.radius, [&](const Box & tile, unsigned int worker) {
      // Windows are whole in memory; those of Renormalized mode are cut tap by tap.
      const WindowBoxes      boxes(tile, call.image, operation.radius, BoundaryMode::Mirror);
      FootprintMemory<Pixel> memory;
      memory.LayOut(operation, boxes, static_cast<char *>(call.scratch) + bytes * worker);
      FootprintTile<Pixel>(call, runs, boxes, memory, rises).Run(store);
    });
  });
}

std::size_t
ScratchOfFootprint(const Operation & operation, const ChunkShape & shape)
{
  return DispatchPixelType(shape.inputKinds[0], [&](auto pixel) {
    return static_cast<std::size_t>(BytesOf<decltype(pixel)>(FootprintOf(operation), shape.outputBox) *
                                    shape.concurrency);
  });
}

/** A tap costs about as much as eight bytes, of ranks eight times that. A box costs its passes. */
KernelChoice
ChooseFootprint(const Operation & operation, const ChunkShape & shape)
{
  const auto & footprint = FootprintOf(operation);
  const auto   sides = footprint.GetSides(shape.image.Extents());
  const auto   voxels = static_cast<double>(shape.outputBox.NumberOfVoxels());
  if (!sides || footprint.HasHeights())
  {
    const double ofTap = footprint.statistic == FootprintStatistic::Rank ? 64 : 8;
    return { "taps",
             RunFootprint,
             ScratchOfFootprint(operation, shape),
             ofTap * static_cast<double>(CountTaps(footprint)) * voxels };
  }
  double taps = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    taps += static_cast<double>(sides->Taps(a));
  }
  if (footprint.statistic == FootprintStatistic::Rank)
  {
    KernelChoice ranks = ChooseRank(operation, shape);
    ranks.cost = 64 * taps * voxels;
    return ranks;
  }
  return footprint.TakesVariance()
           ? KernelChoice{ "variances", RunVariance, ScratchOfVariance(operation, shape), 8 * taps * voxels }
           : KernelChoice{ "sums", RunMean, ScratchOfMean(operation, shape), 8 * taps * voxels };
}

} // namespace

void
RegisterHostFootprint(KernelRegistry & registry)
{
  registry.Register("footprint", { MakeChoosingKernel<ChooseFootprint>(true) });
}

} // namespace chunkwise
