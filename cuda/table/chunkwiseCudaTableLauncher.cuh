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
  /** Bytes of the tiles' sums of columns and rows. */
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
 * more words are read. More words pay while a block has fewer tiles than these; with late tiles every second word
 * always pays. */
constexpr int          ShortPeriod = 4;
constexpr std::int64_t ShortTiles = 8;
constexpr int          LatePeriod = 2;

/** Scratch of a call whose slices are summed, beside the tiles'. The scratch of a chunk must not shrink when it grows,
 * so these bound from above the numbers that depend on the device. */
struct DeepScratch
{
  std::int64_t starts; ///< entries
  std::int64_t places; ///< of tiles whose P is not in shared memory

  DeepScratch(const Tiling & tiling, std::int64_t plane, std::int64_t slices)
  {
    const std::int64_t stacks = (slices + LeastDepth - 1) / LeastDepth;
    const std::int64_t tile = tiling.tileRows * Columns;
    // The entries behind them have units of 16 bytes.
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
  using TableOf = Table<TIn, TCarry>;

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
    const auto * const in = static_cast<const char *>(m_Call.inputs[0].data);
    auto * const       out = static_cast<char *>(m_Call.output.data);
    if constexpr (!VDeep)
    {
      Launch(in, out, m_Slices, 0);
    }
    else
    {
      const Box &        box = m_Call.writable;
      const std::int64_t first = m_Operation.FirstIndex(box);
      const std::int64_t slices = box.upper[2] - first;
      const std::int64_t inBytes = slices * m_Rows * m_Columns * BytesOf(m_Call.inputs[0]);
      const std::int64_t outBytes = box.Extent(0) * box.Extent(1) * box.Extent(2) * BytesOf(m_Call.output);
      for (std::int64_t volume = 0; volume < m_Slices; ++volume)
      {
        Launch(in + volume * inBytes, out + volume * outBytes, slices, box.lower[2] - first);
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
  static std::int64_t
  BytesOf(const BufferView & view)
  {
    return static_cast<std::int64_t>(PixelSize(view.kind));
  }
  /** The bytes that tiles hand on or have summed up. */
  static std::size_t
  BytesFor(const SummedAreaTableOperation & operation, const Tiling & tiling)
  {
    return operation.method == TableMethod::Blocks ? tiling.SumBytes() : tiling.WordBytes<TCarry>();
  }

  /** How the call's shared memory is taken. */
  struct Memory
  {
    bool        planesInGlobal; ///< P of the tiles that are worked on
    std::size_t ofTeam;
    std::size_t ofBlock; ///< with one team
    std::size_t room;

    Memory()
    {
      constexpr auto planes = static_cast<std::size_t>(Tile::PlaneUnits) * sizeof(uint4);
      room = static_cast<std::size_t>(SharedMemoryOfDevice());
      ofTeam = static_cast<std::size_t>(Tile::TeamBytes);
      planesInGlobal = VDeep && ofTeam + planes > room;
      ofBlock = ofTeam + (planesInGlobal ? 0 : planes);
    }
    std::size_t
    Of(int teams) const
    {
      return ofBlock + static_cast<std::size_t>(teams - 1) * ofTeam;
    }
  };
  template <TablePass VPass, int VTeams = 1, int VPeriod = 1>
  static auto
  KernelOf()
  {
    // A pass that gives no results does not depend on the output.
    using Out = std::conditional_t<VPass == TablePass::Sums, AnyNumber, TOut>;
    return TableKernel<TIn, Out, TLocal, TCarry, VDeep, VPass, VTeams, VPeriod>;
  }
  template <typename TKernel>
  static std::int64_t
  Resident(TKernel kernel, int teams, const Memory & memory)
  {
    return std::min(MostBlocks,
                    ResidentBlocks(reinterpret_cast<const void *>(kernel), teams * Threads, memory.Of(teams)));
  }

  void
  Launch(const char * in, char * out, std::int64_t slices, std::int64_t skipped) const
  {
    const Tiling tiling = Tiling::Make(Tile(), m_Columns, m_FirstRow, m_FirstRow + m_Rows, slices);
    TableOf      table = MakeTable(tiling, in, out, slices, skipped);
    const Memory memory;
    bool         inPairs = false;
    if constexpr (VDeep)
    {
      inPairs = DealStacks(tiling, memory, table);
    }
    const std::int64_t stacks = (slices + table.depth - 1) / table.depth;
    table.tickets = static_cast<unsigned long long>(tiling.OfSlice() * stacks);
    if (m_Operation.method == TableMethod::Blocks)
    {
      LaunchBlocks(tiling, memory, table);
    }
    else
    {
      LaunchSinglePass(tiling, memory, table, inPairs);
    }
  }

  TableOf
  MakeTable(const Tiling & tiling, const char * in, char * out, std::int64_t slices, std::int64_t skipped) const
  {
    TableOf table{};
    table.in = in;
    table.out = out;
    table.inKind = m_Call.inputs[0].kind;
    table.outKind = m_Call.output.kind;
    table.store = m_Call.output.box;
    table.columns = m_Columns;
    table.firstRow = m_FirstRow;
    table.lastRow = m_FirstRow + m_Rows;
    table.slices = static_cast<int>(slices);
    table.skipped = static_cast<int>(skipped);
    table.depth = 1;
    table.tileColumns = static_cast<int>(tiling.columns);
    table.tileRows = static_cast<int>(tiling.rows);
    table.squares = m_Operation.squares;
    table.carry = VDeep ? nullptr : static_cast<const Acc *>(m_Call.sideIn);
    // Buffers begin at multiples of 256 bytes.
    table.inUnits = m_Columns * BytesOf(m_Call.inputs[0]) % 16 == 0;
    const bool whole = table.store.lower.axis[0] == 0 && table.store.upper.axis[0] == m_Columns;
    table.outGroups = m_Columns % Group == 0 && whole;
    table.outPairs = m_Columns % (2 * Group) == 0;
    auto * const scratch = static_cast<char *>(m_Call.scratch);
    if (m_Operation.method == TableMethod::Blocks)
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
    return table;
  }

  /** Splits the slices into stacks, and gives whether two teams share a place. */
  bool
  DealStacks(const Tiling & tiling, const Memory & memory, TableOf & table) const
  {
    const std::int64_t plane = m_Rows * m_Columns;
    const std::int64_t slices = table.slices;
    const DeepScratch  deep(tiling, plane, slices);
    const auto *       before = static_cast<const Acc *>(m_Call.sideIn);
    auto * const starts = reinterpret_cast<Acc *>(static_cast<char *>(m_Call.scratch) + BytesFor(m_Operation, tiling));
    table.planes = memory.planesInGlobal ? reinterpret_cast<uint4 *>(starts + deep.starts) : nullptr;
    Stacks stacks(slices, tiling.OfSlice(), Resident(KernelOf<TablePass::Single>(), 1, memory));
    // Two teams that share a place have P in shared memory once.
    bool inPairs = false;
    if (m_Operation.method != TableMethod::Blocks && !memory.planesInGlobal && memory.Of(2) <= memory.room)
    {
      const auto   blocks = Resident(KernelOf<TablePass::Single, 2>(), 2, memory);
      const Stacks ofPairs(slices, tiling.OfSlice(), blocks);
      inPairs = tiling.OfSlice() <= blocks && ofPairs.cost < stacks.cost;
      stacks = inPairs ? ofPairs : stacks;
    }
    table.depth = static_cast<int>((slices + stacks.number - 1) / stacks.number);
    table.before = before;
    if (stacks.number > 1)
    {
      table.before = starts;
      DispatchPixelType(table.inKind, [&](auto pixel) {
        using Pixel = decltype(pixel);
        if constexpr (std::is_same<Pixel, TIn>::value || (std::is_same<TIn, AnyInteger>::value && !IsReal<Pixel>))
        {
          StartsKernel<Pixel, Acc><<<BlocksFor(plane, 256), 256, 0, StreamOf(m_Call)>>>(
            static_cast<const Pixel *>(table.in), plane, slices, table.depth, before, starts, table.squares);
        }
      });
      CheckLaunch("StartsKernel");
    }
    return inPairs;
  }

  template <typename TKernel>
  void
  LaunchTiles(TKernel kernel, const Memory & memory, const TableOf & table, int teams = 1) const
  {
    const auto most = static_cast<std::int64_t>(table.tickets);
    const auto grid = std::max<std::int64_t>(1, std::min(Resident(kernel, teams, memory), most));
    kernel<<<static_cast<unsigned int>(grid), teams * Threads, memory.Of(teams), StreamOf(m_Call)>>>(table);
    CheckLaunch("TableKernel");
  }

  void
  LaunchSinglePass(const Tiling & tiling, const Memory & memory, const TableOf & table, bool inPairs) const
  {
    CheckCuda(cudaMemsetAsync(table.ticket, 0xFF, tiling.WordBytes<TCarry>(), StreamOf(m_Call)), "cudaMemsetAsync");
    if constexpr (VDeep)
    {
      if (inPairs)
      {
        return LaunchTiles(KernelOf<TablePass::Single, 2>(), memory, table, 2);
      }
    }
    else if constexpr (!Tile::IsLate)
    {
      const auto kernel = KernelOf<TablePass::Single, 1, ShortPeriod>();
      if (tiling.Tiles() <= ShortTiles * Resident(kernel, 1, memory))
      {
        return LaunchTiles(kernel, memory, table);
      }
    }
    LaunchTiles(KernelOf<TablePass::Single, 1, Tile::IsLate ? LatePeriod : 1>(), memory, table);
  }

  void
  LaunchBlocks(const Tiling & tiling, const Memory & memory, const TableOf & table) const
  {
    const std::int64_t columns = tiling.slices * tiling.columns * Columns;
    LaunchTiles(KernelOf<TablePass::Sums>(), memory, table);
    ScanColumnSums<TIn><<<BlocksFor(columns, 128), 128, 0, StreamOf(m_Call)>>>(table);
    CheckLaunch("ScanColumnSums");
    ScanRowSums<Tile::Rows, TIn><<<BlocksFor(tiling.slices * tiling.rows, 1), 128, 0, StreamOf(m_Call)>>>(table);
    CheckLaunch("ScanRowSums");
    LaunchTiles(KernelOf<TablePass::Results>(), memory, table);
  }

  const KernelCall &               m_Call;
  const SummedAreaTableOperation & m_Operation;
  std::int64_t                     m_Columns;
  std::int64_t                     m_FirstRow;
  std::int64_t                     m_Rows;
  std::int64_t                     m_Slices;
};

/** Launcher::Run, which is compiled in files for groups of types (chunkwiseCudaTableOf*.cu). */
template <typename TIn, typename TOut, typename TLocal, typename TCarry, bool VDeep>
void
RunTiles(const KernelCall & call, const SummedAreaTableOperation & operation);

} // namespace sat
} // namespace chunkwise

#endif
