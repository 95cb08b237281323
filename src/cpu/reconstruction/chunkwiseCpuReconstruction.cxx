/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuFlood.h"
#include "chunkwiseCpuStridedRow.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseReconstructionKey.h"

#include <atomic>

namespace chunkwise
{

namespace
{

/** The axes without neighbours are independent: each position along them has a separate volume. */
struct Volumes
{
  std::int64_t extent[3];
  bool         neighbours[3];
  Box          positions; ///< along the spatial axes the first voxel only

  Volumes(const ReconstructionOperation & operation, const Box & own, const Box & image)
    : positions(own)
  {
    for (int a = 0; a < 3; ++a)
    {
      const bool spatial = a < operation.spatialDimension;
      // A row is a volume even where it has no neighbours.
      extent[a] = spatial || a == 0 ? own.Extent(a) : 1;
      neighbours[a] = spatial && image.Extent(a) > 1;
      positions.upper[a] = spatial || a == 0 ? own.lower[a] + 1 : own.upper[a];
    }
  }
};

template <typename TKey>
std::size_t
BytesOf(const ReconstructionOperation & operation, const Box & own, const Box & image, int concurrency)
{
  const Volumes   volumes(operation, own, image);
  const FloodGrid grid(volumes.extent, volumes.neighbours, operation.fullyConnected);
  return typename Flood<TKey>::Layout(grid, concurrency, operation.partVoxels).GetBytes();
}

template <typename TPixel>
StridedRow<const TPixel>
RowAt(const BufferView & view, const Coordinates & index)
{
  return StridedRow<const TPixel>(view, index);
}

/** Calls body(index, n) for each row of the output, in parallel. */
template <typename TBody>
void
ForEachOutputRow(const KernelCall & call, TBody && body)
{
  const Box &        own = call.writable;
  const std::int64_t n = own.Extent(0);
  const std::int64_t rows = n > 0 ? own.NumberOfVoxels() / n : 0;
  const std::int64_t rowsOfTask = std::max<std::int64_t>(1, (1 << 16) / std::max<std::int64_t>(n, 1));
  call.executor->ParallelFor((rows + rowsOfTask - 1) / rowsOfTask, [&](std::int64_t task, unsigned int) {
    if (call.control && call.control->ShouldStop())
    {
      return;
    }
    for (std::int64_t row = task * rowsOfTask; row < std::min(rows, (task + 1) * rowsOfTask); ++row)
    {
      Coordinates  index = own.lower;
      std::int64_t rest = row;
      for (int a = 1; a < MaxDimension; ++a)
      {
        index[a] += rest % own.Extent(a);
        rest /= own.Extent(a);
      }
      body(static_cast<const Coordinates &>(index), n);
    }
  });
}

template <typename TPixel>
void
Begin(const KernelCall & call)
{
  using KeyOf = ReconstructionKey<TPixel>;
  const auto &                     operation = static_cast<const ReconstructionOperation &>(*call.operation);
  const ReconstructionRule<TPixel> rule(operation, call.image);
  ForEachOutputRow(call, [&](const Coordinates & index, std::int64_t n) {
    const auto               first = RowAt<TPixel>(call.inputs[0], index);
    const auto               second = RowAt<TPixel>(call.inputs[call.numberOfInputs / 2], index);
    const auto               mask = RowAt<TPixel>(call.inputs[call.numberOfInputs - 1], index);
    const StridedRow<TPixel> to(call.output, index);
    bool                     rowAtEdge = false;
    for (int a = 1; a < MaxDimension; ++a)
    {
      rowAtEdge = rowAtEdge || (rule.edges[a] && (index[a] == 0 || index[a] + 1 == call.image.upper[a]));
    }
    for (std::int64_t x = 0; x < n; ++x)
    {
      const bool atEdge =
        rowAtEdge || (rule.edges[0] && (index[0] + x == 0 || index[0] + x + 1 == call.image.upper[0]));
      to[x] = KeyOf::To(std::min(rule.MarkerKey(first[x], second[x], mask[x], atEdge), KeyOf::From(mask[x], rule.flip)),
                        rule.flip);
    }
  });
}

/** Whether a voxel of the box that may be written can be raised by one beside it. */
template <typename TPixel>
bool
IsActive(const KernelCall & call)
{
  using KeyOf = ReconstructionKey<TPixel>;
  const auto &             operation = static_cast<const ReconstructionOperation &>(*call.operation);
  const auto               flip = ReconstructionRule<TPixel>(operation, call.image).flip;
  const Box &              own = call.writable;
  const Box &              held = call.output.box;
  std::vector<Coordinates> steps;
  for (int step = 0; step < 27; ++step)
  {
    const Coordinates d = { { step % 3 - 1, step / 3 % 3 - 1, step / 9 - 1, 0, 0 } };
    const int         moved = (d[0] != 0) + (d[1] != 0) + (d[2] != 0);
    bool              spatial = true;
    for (int a = operation.spatialDimension; a < MaxSpatialAxes; ++a)
    {
      spatial = spatial && d[a] == 0;
    }
    if (spatial && (moved == 1 || (moved > 1 && operation.fullyConnected)))
    {
      steps.push_back(d);
    }
  }
  bool open = false;
  ForEachRow(own, [&](Coordinates index) {
    const auto mask = RowAt<TPixel>(call.inputs[call.numberOfInputs - 1], index);
    const auto state = RowAt<TPixel>(call.output, index);
    for (const Coordinates & d : steps)
    {
      Coordinates  other = index;
      std::int64_t first = 0;
      std::int64_t last = own.Extent(0);
      bool         there = !open;
      for (int a = 0; a < MaxSpatialAxes; ++a)
      {
        other[a] += d[a];
        there = there && (a == 0 || (other[a] >= held.lower[a] && other[a] < held.upper[a]));
      }
      first = other[0] < held.lower[0] ? 1 : 0;
      last -= other[0] + last > held.upper[0] ? 1 : 0;
      if (!there)
      {
        continue;
      }
      const auto from = RowAt<TPixel>(call.output, other);
      for (std::int64_t x = first; x < last; ++x)
      {
        const auto key = KeyOf::From(state[x], flip);
        // A larger value is let through to some degree if the voxel is below its mask.
        open = open || (KeyOf::From(from[x], flip) > key && key < KeyOf::From(mask[x], flip));
      }
    }
  });
  return open;
}

template <typename TPixel>
void
Finish(const KernelCall & call)
{
  using KeyOf = ReconstructionKey<TPixel>;
  const auto & operation = static_cast<const ReconstructionOperation &>(*call.operation);
  if (operation.result == ReconstructionResult::Reconstruction)
  {
    return;
  }
  const ReconstructionRule<TPixel> rule(operation, call.image);
  ForEachOutputRow(call, [&](const Coordinates & index, std::int64_t n) {
    const auto               mask = RowAt<TPixel>(call.inputs[call.numberOfInputs - 1], index);
    const StridedRow<TPixel> to(call.output, index);
    // A copy that no store to bytes can change: what it says is looked up once for a row.
    const ReconstructionRule<TPixel> mine = rule;
    for (std::int64_t x = 0; x < n; ++x)
    {
      to[x] = mine.Finish(mask[x], KeyOf::From(to[x], mine.flip));
    }
  });
}

/** Whether the mask has one value in the volume of the call. */
template <typename TPixel>
bool
IsFlat(const KernelCall & call)
{
  const BufferView & mask = call.inputs[call.numberOfInputs - 1];
  const TPixel       first = RowAt<TPixel>(mask, call.writable.lower)[0];
  const auto         differs = [&](const Coordinates & index) {
    const auto row = RowAt<TPixel>(mask, index);
    bool       same = true;
    for (std::int64_t x = 0; same && x < call.writable.Extent(0); ++x)
    {
      same = row[x] == first;
    }
    return !same;
  };
  // Most volumes show at once that they are not.
  if (differs(call.writable.lower))
  {
    return false;
  }
  std::atomic<bool> isFlat{ true };
  ForEachOutputRow(call, [&](const Coordinates & index, std::int64_t) {
    if (isFlat.load(std::memory_order_relaxed) && differs(index))
    {
      isFlat = false;
    }
  });
  return isFlat;
}

/** Whether a flat volume is an extremum is a matter of choice, and none of neighbours. */
template <typename TPixel>
void
FinalizeRegion(const KernelCall & call)
{
  const auto & operation = static_cast<const ReconstructionOperation &>(*call.operation);
  if (operation.result != ReconstructionResult::Extrema || operation.marker != ReconstructionMarker::NextBelow)
  {
    return;
  }
  const ReconstructionRule<TPixel> rule(operation, call.image);
  const TPixel                     value = operation.flatIsExtremum ? rule.extremum : rule.elsewhere;
  Box                              positions = call.writable;
  for (int a = 0; a < operation.spatialDimension; ++a)
  {
    positions.upper[a] = positions.lower[a] + 1;
  }
  ForEachRow(positions, [&](const Coordinates & position) {
    KernelCall volume = call;
    for (int a = 0; a < MaxDimension; ++a)
    {
      volume.writable.lower[a] = position[a];
      volume.writable.upper[a] = a < operation.spatialDimension ? call.writable.upper[a] : position[a] + 1;
    }
    if (IsFlat<TPixel>(volume))
    {
      ForEachOutputRow(volume, [&](const Coordinates & index, std::int64_t n) {
        const StridedRow<TPixel> to(call.output, index);
        for (std::int64_t x = 0; x < n; ++x)
        {
          to[x] = value;
        }
      });
    }
  });
}

/** One volume at a time, and its rows to and from the flood's keys. */
template <typename TPixel>
class VolumeRun
{
public:
  using KeyOf = ReconstructionKey<TPixel>;
  using Key = typename KeyOf::Type;

  explicit VolumeRun(const KernelCall & call)
    : m_Call(call)
    , m_Operation(static_cast<const ReconstructionOperation &>(*call.operation))
    , m_Flip(ReconstructionRule<TPixel>(m_Operation, call.image).flip)
    , m_Volumes(m_Operation, call.writable, call.image)
    , m_Grid(m_Volumes.extent, m_Volumes.neighbours, m_Operation.fullyConnected)
    , m_Layout(m_Grid, static_cast<int>(call.executor->GetConcurrency()), m_Operation.partVoxels)
  {}

  void
  Run()
  {
    std::uint32_t sides = 0;
    ForEachRow(m_Volumes.positions, [&](Coordinates position) {
      // positions has one voxel along x.
      if (m_Call.control && m_Call.control->ShouldStop())
      {
        return;
      }
      Flood<Key> flood(m_Grid, m_Layout, m_Call.scratch);
      if (flood.Run(
            *m_Call.executor, m_Call.control, [&](std::int64_t y, std::int64_t z) { LoadRow(flood, position, y, z); }))
      {
        sides |= Store(flood, position);
      }
    });
    if (m_Call.changedSides)
    {
      *m_Call.changedSides |= sides;
    }
  }

private:
  Coordinates
  IndexOf(const Coordinates & position, std::int64_t y, std::int64_t z) const
  {
    Coordinates index = position;
    index[1] += y;
    index[2] += z;
    return index;
  }

  void
  LoadRow(Flood<Key> & flood, const Coordinates & position, std::int64_t y, std::int64_t z) const
  {
    const Box &        own = m_Call.writable;
    const Box &        held = m_Call.output.box;
    const BufferView & maskView = m_Call.inputs[m_Call.numberOfInputs - 1];
    const std::int64_t n = m_Grid.extent[0];
    Key * const        state = flood.GetState() + m_Grid.Offset(0, y, z);
    Key * const        mask = flood.GetMask() + m_Grid.Offset(0, y, z);
    Coordinates        index = IndexOf(position, y, z);
    bool               isHeld = true;
    bool               isOwn = true;
    for (int a = 1; a < 3; ++a)
    {
      isHeld = isHeld && index[a] >= held.lower[a] && index[a] < held.upper[a];
      isOwn = isOwn && index[a] >= own.lower[a] && index[a] < own.upper[a];
    }
    if (!isHeld)
    {
      std::fill(state - 1, state + n + 1, Key{ 0 });
    }
    else
    {
      const auto from = RowAt<TPixel>(m_Call.output, index);
      const bool spatial = m_Grid.frame[0] && m_Volumes.neighbours[0];
      state[-1] = spatial && own.lower[0] > held.lower[0] ? KeyOf::From(from[-1], m_Flip) : Key{ 0 };
      for (std::int64_t x = 0; x < n; ++x)
      {
        state[x] = KeyOf::From(from[x], m_Flip);
      }
      state[n] = spatial && own.upper[0] < held.upper[0] ? KeyOf::From(from[n], m_Flip) : Key{ 0 };
    }
    mask[-1] = mask[n] = 0;
    if (!isOwn)
    {
      std::fill(mask, mask + n, Key{ 0 });
    }
    else
    {
      const auto from = RowAt<TPixel>(maskView, index);
      for (std::int64_t x = 0; x < n; ++x)
      {
        mask[x] = KeyOf::From(from[x], m_Flip);
      }
    }
  }

  /** The sides whose border layer has changed. */
  std::uint32_t
  Store(Flood<Key> & flood, const Coordinates & position) const
  {
    const std::int64_t         n = m_Grid.extent[0];
    const std::int64_t         rows = m_Grid.extent[1] * m_Grid.extent[2];
    const std::int64_t         rowsOfTask = std::max<std::int64_t>(1, (1 << 16) / n);
    std::atomic<std::uint32_t> all{ 0 };
    m_Call.executor->ParallelFor((rows + rowsOfTask - 1) / rowsOfTask, [&](std::int64_t task, unsigned int) {
      std::uint32_t sides = 0;
      for (std::int64_t row = task * rowsOfTask; row < std::min(rows, (task + 1) * rowsOfTask); ++row)
      {
        const std::int64_t       y = row % m_Grid.extent[1];
        const std::int64_t       z = row / m_Grid.extent[1];
        const Key * const        state = flood.GetState() + m_Grid.Offset(0, y, z);
        const StridedRow<TPixel> to(m_Call.output, IndexOf(position, y, z));
        const std::uint32_t ofRow = (y == 0 ? 4u : 0u) | (y + 1 == m_Grid.extent[1] ? 8u : 0u) | (z == 0 ? 16u : 0u) |
                                    (z + 1 == m_Grid.extent[2] ? 32u : 0u);
        const auto changed = [&](std::int64_t x) { return KeyOf::From(to[x], m_Flip) != state[x]; };
        sides |= (changed(0) ? 1u : 0u) | (changed(n - 1) ? 2u : 0u);
        for (std::int64_t x = 0; ofRow && x < n; ++x)
        {
          sides |= changed(x) ? ofRow : 0u;
        }
        for (std::int64_t x = 0; x < n; ++x)
        {
          to[x] = KeyOf::To(state[x], m_Flip);
        }
      }
      all.fetch_or(sides);
    });
    return all;
  }

  const KernelCall &                m_Call;
  const ReconstructionOperation &   m_Operation;
  const Key                         m_Flip;
  const Volumes                     m_Volumes;
  const FloodGrid                   m_Grid;
  const typename Flood<Key>::Layout m_Layout;
};

std::size_t
ScratchOfReconstruction(const Operation & operation, const ChunkShape & shape)
{
  const auto & reconstruction = static_cast<const ReconstructionOperation &>(operation);
  return DispatchPixelType(shape.outputKind, [&](auto pixel) {
    return BytesOf<typename ReconstructionKey<decltype(pixel)>::Type>(
      reconstruction, shape.outputBox, shape.image, shape.concurrency);
  });
}

} // namespace

void
RegisterHostReconstruction(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.compute.run = [](const KernelCall & call) {
    DispatchPixelType(call.output.kind, [&](auto pixel) { VolumeRun<decltype(pixel)>(call).Run(); });
  };
  kernels.compute.scratchBytes = ScratchOfReconstruction;
  kernels.begin.run = [](const KernelCall & call) {
    DispatchPixelType(call.output.kind, [&](auto pixel) { Begin<decltype(pixel)>(call); });
  };
  kernels.finish.run = [](const KernelCall & call) {
    DispatchPixelType(call.output.kind, [&](auto pixel) { Finish<decltype(pixel)>(call); });
  };
  kernels.finalizeRegion.run = [](const KernelCall & call) {
    DispatchPixelType(call.output.kind, [&](auto pixel) { FinalizeRegion<decltype(pixel)>(call); });
  };
  kernels.isActive.run = [](const KernelCall & call) {
    if (DispatchPixelType(call.output.kind, [&](auto pixel) { return IsActive<decltype(pixel)>(call); }))
    {
      *call.changedSides = 1;
    }
  };
  kernels.solveGlobally = MakeHostGlobalSolution();
  registry.Register("reconstruction", kernels);
}

} // namespace chunkwise
