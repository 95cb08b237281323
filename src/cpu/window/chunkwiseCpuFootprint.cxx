/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuTiles.h"
#include "chunkwiseFootprintSums.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseRankOperation.h"

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

/** The windows of a tile. */
template <typename TPixel>
class FootprintTile
{
public:
  using Types = FootprintTypes<TPixel>;
  using Key = typename RankKey<TPixel>::Type;

  FootprintTile(const KernelCall & call, const std::vector<Run> & runs, const WindowBoxes & boxes,
                const FootprintMemory<TPixel> & memory)
    : m_Call(call)
    , m_Operation(FootprintOf(*call.operation))
    , m_Runs(runs)
    , m_Boxes(boxes)
    , m_Memory(memory)
    , m_Cuts(m_Operation.boundary.mode == BoundaryMode::Renormalized)
  {}

  template <typename TOut>
  void
  Run()
  {
    const bool isRank = m_Operation.statistic == FootprintStatistic::Rank;
    isRank ? this->Load(m_Memory.keys, [](TPixel voxel) { return RankKey<TPixel>::From(voxel); })
           : this->Load(m_Memory.voxels, [](TPixel voxel) { return voxel; });
    const Box          output = m_Boxes.after[m_Boxes.count - 1];
    const std::int64_t n = output.Extent(0);
    ForEachRow(output, [&](const Coordinates & at) {
      if (isRank)
      {
        StoreRow<TOut>(m_Call.output, at, n, [&](std::int64_t x) { return this->RankAt<TOut>(at, x); });
        return;
      }
      this->AddUp(at, n);
      StoreRow<TOut>(m_Call.output, at, n, [&](std::int64_t x) {
        return FinishFootprint<TOut, TPixel>(
          m_Operation.statistic, m_Operation.truncates, m_Memory.sums[x], m_Memory.seconds[x], m_Memory.counts[x]);
      });
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

  /** Calls visit(voxels, first, last) tap by tap: voxels[x] is the tap of the window at at[0] + x, for first <= x <
   * last.
   */
  template <typename TVisit>
  void
  ForEachTap(const Coordinates & at, std::int64_t n, TVisit && visit) const
  {
    for (const auto & run : m_Runs)
    {
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
        visit(line + t, first, last);
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
    this->ForEachTap(at, n, [&](const TPixel * voxels, std::int64_t first, std::int64_t last) {
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
      this->ForEachTap(at, n, [&](const TPixel * voxels, std::int64_t first, std::int64_t last) {
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
      this->ForEachTap(at, n, [&](const TPixel * voxels, std::int64_t first, std::int64_t last) {
        for (std::int64_t x = first; x < last; ++x)
        {
          m.seconds[x] += SquaredDeviation(voxels[x], m.means[x]);
        }
      });
    }
  }

  template <typename TOut>
  TOut
  RankAt(const Coordinates & at, std::int64_t x) const
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
    if (count == 0)
    {
      return EmptyFootprint<TOut>();
    }
    const std::int64_t absent =
      RankKey<TPixel>::IsReal ? std::count(m_Memory.taps, m_Memory.taps + count, Key{ 0 }) : 0;
    const std::int64_t rank = RankIn(count, absent, m_Operation.fraction);
    std::nth_element(m_Memory.taps, m_Memory.taps + rank, m_Memory.taps + count);
    return static_cast<TOut>(RankKey<TPixel>::To(m_Memory.taps[rank]));
  }

  const KernelCall &                         m_Call;
  const FootprintOperation &                 m_Operation;
  const std::vector<ElementOperation::Run> & m_Runs;
  const WindowBoxes &                        m_Boxes;
  const FootprintMemory<TPixel> &            m_Memory;
  const bool                                 m_Cuts;
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
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const std::int64_t bytes = BytesOf<Pixel>(operation, call.output.box);
    DispatchExactOutput<Pixel>(call.output.kind, [&](auto out) {
      ForEachTile(call, operation.radius, [&](const Box & tile, unsigned int worker) {
        // Windows are whole in memory; those of Renormalized mode are cut tap by tap.
        const WindowBoxes      boxes(tile, call.image, operation.radius, BoundaryMode::Mirror);
        FootprintMemory<Pixel> memory;
        memory.LayOut(operation, boxes, static_cast<char *>(call.scratch) + bytes * worker);
        FootprintTile<Pixel>(call, runs, boxes, memory).template Run<decltype(out)>();
      });
    });
  });
}

std::size_t
ScratchOfFootprint(const Operation & operation, const ChunkShape & shape)
{
  return DispatchPixelKind(shape.inputKinds[0], [&](auto pixel) {
    return static_cast<std::size_t>(BytesOf<decltype(pixel)>(FootprintOf(operation), shape.outputBox) *
                                    shape.concurrency);
  });
}

/** A tap costs about as much as eight bytes, of ranks eight times that. */
double
CostOfFootprint(const Operation & operation, const ChunkShape & shape)
{
  const auto & footprint = FootprintOf(operation);
  const double ofTap = footprint.statistic == FootprintStatistic::Rank ? 64 : 8;
  return ofTap * static_cast<double>(CountTaps(footprint)) * static_cast<double>(shape.outputBox.NumberOfVoxels());
}

} // namespace

void
RegisterHostFootprint(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunFootprint;
  kernel.scratchBytes = ScratchOfFootprint;
  kernel.cost = CostOfFootprint;
  registry.Register("footprint", { kernel });
}

} // namespace chunkwise
