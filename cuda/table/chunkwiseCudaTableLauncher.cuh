/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaTableLauncher_cuh
#define chunkwiseCudaTableLauncher_cuh

#include "chunkwiseCudaTableBlocks.cuh"
#include "chunkwiseCudaTableCarry.cuh"
#include "chunkwiseCudaTableTile.cuh"

#include <map>
#include <mutex>
#include <tuple>

namespace chunkwise
{
namespace sat
{

/** Room for the ticket, in words: whole lines of the cache. Atomic additions to it then share none with what tiles hand
 * on, and each warp's words begin a line. */
constexpr std::int64_t TicketWords = 16;

/** How much there is to do, and the scratch that it takes. */
struct Tiling
{
  std::int64_t columns;
  std::int64_t rows;
  std::int64_t slices;
  std::int64_t tileRows;

  template <typename TShape>
  static Tiling
  Make(TShape, std::int64_t columnCount, std::int64_t firstRow, std::int64_t lastRow, std::int64_t sliceCount)
  {
    return { (columnCount + Columns - 1) / Columns,
             (lastRow + TShape::Rows - 1) / TShape::Rows - firstRow / TShape::Rows,
             sliceCount,
             TShape::Rows };
  }
  std::int64_t
  OfSlice() const
  {
    return rows * columns;
  }
  /** Words for columns and rows that tiles hand on. */
  std::int64_t
  Words() const
  {
    return Tiles() * (Columns + tileRows);
  }
  /** With the ticket. */
  template <typename TCarry>
  std::size_t
  WordBytes() const
  {
    return sizeof(Handed<TCarry>) * static_cast<std::size_t>(Words() + TicketWords);
  }
  std::int64_t
  Tiles() const
  {
    return slices * OfSlice();
  }
  /** Of the tiles' sums of columns and rows. */
  std::size_t
  SumBytes() const
  {
    return sizeof(std::uint64_t) * static_cast<std::size_t>(Tiles() * (Columns + tileRows));
  }
};

/** Blocks of a kernel that the current device runs at once, with as much shared memory. Asked for once: the runtime
 * takes as long for an answer as a small table does. */
inline std::int64_t
ResidentBlocks(const void * kernel, int threads, std::size_t shared)
{
  static std::mutex                                                         mutex;
  static std::map<std::tuple<const void *, std::size_t, int>, std::int64_t> known;

  int device = 0;
  CheckCuda(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard<std::mutex> lock(mutex);
  std::int64_t &                    blocks = known[{ kernel, shared, device }];
  if (blocks == 0)
  {
    CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)),
              "cudaFuncSetAttribute");
    blocks = BlocksAtOnce(kernel, threads, shared);
  }
  return blocks;
}

/** A stack of fewer slices is not worth reading those before it once more. */
constexpr std::int64_t LeastDepth = 32;
/** More blocks than run at a time on any device. */
constexpr std::int64_t MostBlocks = 1024;

/** Tiles of a small table wait for each other longer than they take: sums cross as many in the time of one, for which
 * more words are read. That pays while a block has fewer tiles than these; with late tiles every second one always. */
constexpr int          ShortPeriod = 4;
constexpr std::int64_t ShortTiles = 8;
constexpr int          LatePeriod = 2;

/** Scratch of a call whose slices are summed, beside the tiles'. What a chunk needs must not shrink when it grows, so
 * these bound from above what depends on the device. */
struct DeepScratch
{
  std::int64_t starts; ///< entries
  std::int64_t places; ///< of tiles whose P is not in shared memory

  DeepScratch(const Tiling & tiling, std::int64_t plane, std::int64_t slices)
  {
    const std::int64_t stacks = (slices + LeastDepth - 1) / LeastDepth;
    const std::int64_t tile = tiling.tileRows * Columns;
    // What comes behind them has units of 16 bytes.
    starts = (std::min(plane * stacks, std::max(plane, MostBlocks * tile)) + 1) / 2 * 2;
    places = std::min(tiling.OfSlice() * stacks, MostBlocks);
  }
  std::size_t
  Bytes(std::int64_t tileRows) const
  {
    return static_cast<std::size_t>(starts + places * tileRows * Columns) * sizeof(std::uint64_t);
  }
};

/** With too few places of tiles to keep the device busy the slices are split into stacks. */
struct Stacks
{
  std::int64_t number;
  double       cost; ///< of the time with all blocks at work

  Stacks(std::int64_t slices, std::int64_t places, std::int64_t blocks)
    : number(std::max<std::int64_t>(1, std::min(slices / LeastDepth, blocks / places)))
    // Reading all stacks but the last once more takes a third of the time of a table.
    , cost(static_cast<double>(blocks) / static_cast<double>(std::min(blocks, places * number)) +
           (1 - 1 / static_cast<double>(number)) / 3)
  {}
};

template <typename TIn, typename TOut, typename TLocal, typename TCarry, bool VDeep>
class Launcher
{
  using Tile = TileShape<TIn, TLocal, TCarry, VDeep>;
  using Acc = AccumulatorOf<TIn>;

public:
  Launcher(const KernelCall & call, const SummedAreaTableOperation & operation)
    : m_Call(call)
    , m_Operation(operation)
    , m_Columns(call.writable.upper[0])
  {
    const Box & box = call.writable;
    m_FirstRow = VDeep ? 0 : operation.FirstIndex(box);
    m_Rows = box.upper[1] - m_FirstRow;
    m_Slices = 1;
    for (int a = operation.summedAxes; a < MaxDimension; ++a)
    {
      m_Slices *= box.Extent(a);
    }
  }

  void
  Run() const
  {
    const auto * const in = static_cast<const TIn *>(m_Call.inputs[0].data);
    auto * const       out = static_cast<TOut *>(m_Call.output.data);
    if constexpr (!VDeep)
    {
      Launch(in, out, m_Slices, 0);
    }
    else
    {
      const Box &        box = m_Call.writable;
      const std::int64_t first = m_Operation.FirstIndex(box);
      const std::int64_t slices = box.upper[2] - first;
      for (std::int64_t volume = 0; volume < m_Slices; ++volume)
      {
        Launch(in + volume * slices * m_Rows * m_Columns,
               out + volume * box.Extent(0) * box.Extent(1) * box.Extent(2),
               slices,
               box.lower[2] - first);
      }
    }
  }

  static std::size_t
  ScratchBytes(const SummedAreaTableOperation & operation, const ChunkShape & shape)
  {
    const Box &        box = shape.outputBox;
    const std::int64_t columns = box.upper[0];
    std::int64_t       slices = 1;
    for (int a = 2; a < MaxDimension; ++a)
    {
      slices *= a == 2 && VDeep ? box.upper[2] - operation.FirstIndex(box) : box.Extent(a);
    }
    if constexpr (!VDeep)
    {
      // A chunk that begins inside of a tile touches one more than its rows need.
      return BytesFor(
        operation, Tiling::Make(Tile(), columns, 0, box.upper[1] - operation.FirstIndex(box) + Tile::Rows - 1, slices));
    }
    const std::int64_t volumes = box.Extent(3) * box.Extent(4);
    const Tiling       tiling = Tiling::Make(Tile(), columns, 0, box.upper[1], slices / volumes);
    return BytesFor(operation, tiling) +
           DeepScratch(tiling, columns * box.upper[1], slices / volumes).Bytes(Tile::Rows);
  }

private:
  /** What tiles hand on or have summed up. */
  static std::size_t
  BytesFor(const SummedAreaTableOperation & operation, const Tiling & tiling)
  {
    return operation.method == TableMethod::Blocks ? tiling.SumBytes() : tiling.WordBytes<TCarry>();
  }

  void
  Launch(const TIn * in, TOut * out, std::int64_t slices, std::int64_t skipped) const
  {
    const Tiling             tiling = Tiling::Make(Tile(), m_Columns, m_FirstRow, m_FirstRow + m_Rows, slices);
    const std::int64_t       plane = m_Rows * m_Columns;
    Table<TIn, TOut, TCarry> table{};
    table.in = in;
    table.out = out;
    table.store = m_Call.output.box;
    table.columns = m_Columns;
    table.firstRow = m_FirstRow;
    table.lastRow = m_FirstRow + m_Rows;
    table.slices = static_cast<int>(slices);
    table.skipped = static_cast<int>(skipped);
    table.tileColumns = static_cast<int>(tiling.columns);
    table.tileRows = static_cast<int>(tiling.rows);
    table.squares = m_Operation.squares;
    table.carry = VDeep ? nullptr : static_cast<const Acc *>(m_Call.sideIn);
    // Buffers begin at multiples of 256 bytes.
    table.inUnits = m_Columns * static_cast<std::int64_t>(sizeof(TIn)) % 16 == 0;
    const bool whole = table.store.lower.axis[0] == 0 && table.store.upper.axis[0] == m_Columns;
    table.outGroups = m_Columns % Group == 0 && whole;
    table.outPairs = m_Columns % (2 * Group) == 0;

    auto *     scratch = static_cast<char *>(m_Call.scratch);
    const bool byBlocks = m_Operation.method == TableMethod::Blocks;
    if (byBlocks)
    {
      table.columnSums = reinterpret_cast<TCarry *>(scratch);
      table.rowSums = table.columnSums + tiling.Tiles() * Columns;
    }
    else
    {
      table.ticket = reinterpret_cast<unsigned long long *>(scratch);
      table.above = reinterpret_cast<Handed<TCarry> *>(scratch) + TicketWords;
      table.left = table.above + tiling.Tiles() * Columns;
    }
    scratch += BytesFor(m_Operation, tiling);

    constexpr auto    planes = static_cast<std::size_t>(Tile::PlaneUnits) * sizeof(uint4);
    const auto        room = static_cast<std::size_t>(SharedMemoryOfDevice());
    const bool        inGlobal = VDeep && Tile::TeamBytes + planes > room;
    const std::size_t bytes = Tile::TeamBytes + (inGlobal ? 0 : planes);
    const auto sharedOf = [&](int teams) { return bytes + static_cast<std::size_t>(teams - 1) * Tile::TeamBytes; };
    const auto resident = [&](auto kernel, int teams) {
      return std::min(MostBlocks,
                      ResidentBlocks(reinterpret_cast<const void *>(kernel), teams * Threads, sharedOf(teams)));
    };

    bool inPairs = false;
    table.depth = 1;
    if constexpr (VDeep)
    {
      const DeepScratch deep(tiling, plane, slices);
      const auto *      before = static_cast<const Acc *>(m_Call.sideIn);
      auto * const      starts = reinterpret_cast<Acc *>(scratch);
      table.planes = inGlobal ? reinterpret_cast<uint4 *>(starts + deep.starts) : nullptr;
      Stacks stacks(
        slices, tiling.OfSlice(), resident(TableKernel<TIn, TOut, TLocal, TCarry, true, TablePass::Single, 1, 1>, 1));
      // Two teams that share a place have P in shared memory once.
      if (!byBlocks && !inGlobal && sharedOf(2) <= room)
      {
        const auto   blocks = resident(TableKernel<TIn, TOut, TLocal, TCarry, true, TablePass::Single, 2, 1>, 2);
        const Stacks ofPairs(slices, tiling.OfSlice(), blocks);
        inPairs = tiling.OfSlice() <= blocks && ofPairs.cost < stacks.cost;
        stacks = inPairs ? ofPairs : stacks;
      }
      table.depth = static_cast<int>((slices + stacks.number - 1) / stacks.number);
      table.before = before;
      if (stacks.number > 1)
      {
        table.before = starts;
        StartsKernel<TIn, Acc><<<BlocksFor(plane, 256), 256, 0, StreamOf(m_Call)>>>(
          in, plane, slices, table.depth, before, starts, table.squares);
        CheckLaunch("StartsKernel");
      }
    }
    const std::int64_t stacks = (slices + table.depth - 1) / table.depth;
    table.tickets = static_cast<unsigned long long>(tiling.OfSlice() * stacks);
    const auto launch = [&](auto kernel, int teams) {
      const auto grid = std::max<std::int64_t>(1, std::min(resident(kernel, teams), tiling.OfSlice() * stacks));
      kernel<<<static_cast<unsigned int>(grid), teams * Threads, sharedOf(teams), StreamOf(m_Call)>>>(table);
      CheckLaunch("TableKernel");
    };
    if (!byBlocks)
    {
      CheckCuda(cudaMemsetAsync(table.ticket, 0xFF, tiling.WordBytes<TCarry>(), StreamOf(m_Call)), "cudaMemsetAsync");
      if constexpr (VDeep)
      {
        if (inPairs)
        {
          return launch(TableKernel<TIn, TOut, TLocal, TCarry, true, TablePass::Single, 2, 1>, 2);
        }
      }
      else if constexpr (!Tile::IsLate)
      {
        const auto kernel = TableKernel<TIn, TOut, TLocal, TCarry, VDeep, TablePass::Single, 1, ShortPeriod>;
        if (tiling.Tiles() <= ShortTiles * resident(kernel, 1))
        {
          return launch(kernel, 1);
        }
      }
      constexpr int Period = Tile::IsLate ? LatePeriod : 1;
      return launch(TableKernel<TIn, TOut, TLocal, TCarry, VDeep, TablePass::Single, 1, Period>, 1);
    }
    launch(TableKernel<TIn, TOut, TLocal, TCarry, VDeep, TablePass::Sums, 1, 1>, 1);
    ScanColumnSums<TIn><<<BlocksFor(slices * tiling.columns * Columns, 128), 128, 0, StreamOf(m_Call)>>>(table);
    CheckLaunch("ScanColumnSums");
    ScanRowSums<Tile::Rows, TIn><<<BlocksFor(slices * tiling.rows, 1), 128, 0, StreamOf(m_Call)>>>(table);
    CheckLaunch("ScanRowSums");
    launch(TableKernel<TIn, TOut, TLocal, TCarry, VDeep, TablePass::Results, 1, 1>, 1);
  }

  const KernelCall &               m_Call;
  const SummedAreaTableOperation & m_Operation;
  std::int64_t                     m_Columns;
  std::int64_t                     m_FirstRow;
  std::int64_t                     m_Rows;
  std::int64_t                     m_Slices;
};

} // namespace sat
} // namespace chunkwise

#endif
