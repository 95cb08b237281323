/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuConvolutionRows.h"
#include "chunkwiseCpuFftBlock.h"
#include "chunkwiseCpuTeam.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseRunControls.h"
#include "chunkwiseVaryingConvolutionOperation.h"

#include <atomic>
#include <thread>

// Each node's part is a convolution of a block, added to sums of the whole chunk, colors of nodes whose parts do not
// overlap one after the other. In three dimensions a node's planes and columns are shared by the workers. In two
// dimensions a node is the work of one worker, whose cache holds it; when done he takes the next one, and before he
// adds he waits for the nodes that come first at the same voxels: they were taken earlier. Who finds none left helps
// the others with theirs.
namespace chunkwise
{

namespace
{

/** All spectra of an operation that are kept: as much as the host keeps of all operations. */
constexpr double MostSpectraBytes = 256.0 * 1024 * 1024;

/** The contribution of a node and its place. */
struct NodePart
{
  std::int64_t node;
  Box          support;
  Box          reach;  ///< in the whole image
  Box          output; ///< in the chunk
  /** Parts that are added before it at some voxel, by their place in the order. */
  std::vector<std::size_t> before;
};

/** Which parts have been added, to sums that all are cleared before. */
class AddedParts
{
public:
  AddedParts(std::size_t count, const SharedIndices & cleared)
    : m_Added(count)
    , m_Cleared(cleared)
  {}

  void
  Await(const NodePart & part) const
  {
    while (!m_Cleared.AreDone())
    {
      std::this_thread::yield();
    }
    for (const std::size_t other : part.before)
    {
      while (!m_Added[other].load(std::memory_order_acquire))
      {
        std::this_thread::yield();
      }
    }
  }

  /** Says so at its end, however that comes: nobody may wait for a part that failed. */
  class Guard
  {
  public:
    Guard(AddedParts & parts, std::size_t part)
      : m_Added(parts.m_Added[part])
    {}
    Guard(const Guard &) = delete;
    Guard &
    operator=(const Guard &) = delete;
    ~Guard() { m_Added.store(true, std::memory_order_release); }

  private:
    std::atomic<bool> & m_Added;
  };

private:
  std::vector<std::atomic<bool>> m_Added;
  const SharedIndices &          m_Cleared;
};

/** The rows of one node: weighted as they enter or as they leave, and added. */
template <typename T>
class NodeRows
{
public:
  /** `factors`: room for those of a node. */
  NodeRows(const KernelCall & call, const VaryingConvolutionOperation & operation, const NodePart & part,
           const AddedParts & added, T * factors, T * sums)
    : m_Operation(operation)
    , m_Part(part)
    , m_Added(added)
    , m_Output(call.output.box)
    , m_Strides(DenseStrides(call.output.box.Extents()))
    , m_Weighted(WeightedOf(call, part.support))
    , m_Rows(call)
    , m_Factors(
        ConvolutionFactorRows<T>::Of(call, factors, operation.order == VaryingOrder::WeightThenConvolve,
                                     operation.order == VaryingOrder::WeightThenConvolve ? part.support : part.output))
    , m_Sums(sums)
  {
    const Coordinates position = operation.GetNodePosition(part.node);
    for (int a = 0; a < MaxDimension; ++a)
    {
      for (std::int64_t i = m_Weighted.lower[a]; i < m_Weighted.upper[a]; ++i)
      {
        m_Weights[a].push_back(static_cast<T>(operation.GetWeight(a, position[a], i)));
      }
    }
  }

  void
  Load(const Coordinates & at, int axis, std::int64_t n, T * row) const
  {
    m_Rows.Load(at, axis, n, row);
    if (m_Operation.order == VaryingOrder::WeightThenConvolve)
    {
      m_Factors.Scale(at, axis, n, row);
      Weigh(at, axis, n, row);
    }
  }

  void
  Store(const Coordinates & at, int axis, std::int64_t n, T * row) const
  {
    if (m_Operation.order == VaryingOrder::ConvolveThenWeight)
    {
      m_Factors.Scale(at, axis, n, row);
      Weigh(at, axis, n, row);
    }
    m_Added.Await(m_Part);
    std::int64_t offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += (at[a] - m_Output.lower[a]) * m_Strides[a];
    }
    for (std::int64_t i = 0; i < n; ++i)
    {
      m_Sums[offset + i * m_Strides[axis]] += row[i];
    }
  }

private:
  /** The part of a node's support that the call has: along each axis all of it where windows go around the image. */
  static Box
  WeightedOf(const KernelCall & call, Box support)
  {
    const Box & input = call.inputs[0].box;
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (input.lower[a] >= 0 && input.upper[a] <= call.image.upper[a])
      {
        support.lower[a] = std::max(support.lower[a], input.lower[a]);
        support.upper[a] = std::min(support.upper[a], input.upper[a]);
      }
    }
    return support;
  }

  void
  Weigh(const Coordinates & at, int axis, std::int64_t n, T * row) const
  {
    T weight = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      weight *= a == axis ? T(1) : m_Weights[a][static_cast<std::size_t>(at[a] - m_Weighted.lower[a])];
    }
    const T * const weights = m_Weights[axis].data() + (at[axis] - m_Weighted.lower[axis]);
    for (std::int64_t i = 0; i < n; ++i)
    {
      row[i] *= weight * weights[i];
    }
  }

  const VaryingConvolutionOperation & m_Operation;
  const NodePart &                    m_Part;
  const AddedParts &                  m_Added;
  const Box                           m_Output;
  const Coordinates                   m_Strides;
  const Box                           m_Weighted;
  const ConvolutionRows<T>            m_Rows;
  const ConvolutionFactorRows<T>      m_Factors;
  T * const                           m_Sums;
  std::vector<T>                      m_Weights[MaxDimension];
};

/** Whether lines along an axis depend on no others by rounding: all blocks have as much of it as the chunk. */
bool
IsBatch(const VaryingConvolutionOperation & operation, const Coordinates & image, int a)
{
  const ConvolutionBlock roles =
    ConvolutionBlock::Largest(operation.GetNodeOperation(0), Coordinates::Filled(1), image);
  return std::any_of(roles.role + 2, roles.role + MaxDimension, [a](const ConvolutionBlock::Axis & r) {
    return r.axis == a && !r.transformed;
  });
}

/** The extent of the largest block: of a node's reach in a tile, cut until its spectrum is at most
 * LargestSpectrumBytes. It depends on chunks of this extent along batches alone. */
template <typename T>
Coordinates
LargestPart(const VaryingConvolutionOperation & operation, const Coordinates & chunk, const Coordinates & image)
{
  const ImageConvolutionOperation node = operation.GetNodeOperation(0);
  const Coordinates               tile = operation.GetTile(image);
  Coordinates                     most = operation.GetLargestReach(Box::FromExtent(image), image);
  for (int a = 0; a < MaxDimension; ++a)
  {
    most[a] = std::min(most[a], IsBatch(operation, image, a) ? chunk[a] : tile[a]);
  }
  for (;;)
  {
    const auto block = ConvolutionBlock::Largest(node, most, image);
    if (static_cast<double>(CellShape<T>(block).Spectrum()) * sizeof(T) <= LargestSpectrumBytes)
    {
      return most;
    }
    // Batches first: bits do not depend on them.
    int longest = 0;
    for (int a = 1; a < MaxDimension; ++a)
    {
      const bool isBatch = most[a] > 1 && IsBatch(operation, image, a);
      const bool wasBatch = most[longest] > 1 && IsBatch(operation, image, longest);
      longest = isBatch != wasBatch ? (isBatch ? a : longest) : most[a] > most[longest] ? a : longest;
    }
    if (most[longest] == 1)
    {
      return most;
    }
    most[longest] = (most[longest] + 1) / 2;
  }
}

/** Scratch of the largest block of any part, in numbers. */
template <typename T>
struct PartShape
{
  std::int64_t spectrum;
  std::int64_t space; ///< of a worker
  std::int64_t kernelRows;
  std::int64_t factors;
  double       spectraBytes; ///< of all kernels

  PartShape(const VaryingConvolutionOperation & operation, const Coordinates & chunk, const Coordinates & image)
  {
    const ImageConvolutionOperation node = operation.GetNodeOperation(0);
    const auto         block = ConvolutionBlock::Largest(node, LargestPart<T>(operation, chunk, image), image);
    const CellShape<T> shape(block);
    spectrum = shape.Spectrum();
    space = shape.Worker();
    kernelRows = NumbersOfKernelRows<T>(block);
    factors = NumbersOfFactors(node, image);
    spectraBytes = static_cast<double>(NumbersOfKernelSpectrum<T>(block)) *
                   static_cast<double>(operation.kernels.size() * sizeof(T));
  }
  std::int64_t
  Part() const
  {
    return spectrum + kernelRows + factors;
  }
};

/** Whether all workers share one node after another; else each has a separate node. */
bool
SharesNodes(const VaryingConvolutionOperation & operation)
{
  return operation.kernels[0]->GetExtent()[0] > 1 && operation.kernels[0]->GetExtent()[1] > 1 &&
         operation.kernels[0]->GetExtent()[2] > 1;
}

/** Nodes between two whose parts never overlap, along one axis. */
std::int64_t
ColorsOf(const VaryingConvolutionOperation & operation, int a, const Box & output, const Coordinates & image)
{
  const auto reach = [&](std::int64_t node) {
    Coordinates position{};
    position[a] = node;
    return operation.GetReach(operation.GetSupport(position, image), output);
  };
  for (std::int64_t colors = 1;; ++colors)
  {
    bool apart = true;
    for (std::int64_t node = 0; apart && node + colors < operation.nodes[a]; ++node)
    {
      const Box left = reach(node);
      const Box right = reach(node + colors);
      apart = left.upper[a] <= right.lower[a] || left.Extent(a) <= 0 || right.Extent(a) <= 0;
    }
    if (apart)
    {
      return colors;
    }
  }
}

template <typename T>
class VaryingConvolution
{
public:
  VaryingConvolution(const KernelCall & call, bool sharesNodes)
    : m_Call(call)
    , m_Operation(static_cast<const VaryingConvolutionOperation &>(*call.operation))
    , m_Sums(static_cast<T *>(call.scratch))
    , m_Shape(m_Operation, call.output.box.Extents(), call.image.Extents())
    , m_Tile(m_Operation.GetTile(call.image.Extents()))
    , m_LargestPart(LargestPart<T>(m_Operation, call.output.box.Extents(), call.image.Extents()))
    , m_Spaces(m_Sums + (call.output.box.NumberOfVoxels() + 63) / 64 * 64)
    , m_Parts(m_Spaces + m_Shape.space * call.executor->GetConcurrency())
    // Spectra that drive each other out of what is kept are better made where they are needed.
    , m_KeepsSpectra(m_Shape.spectraBytes <= MostSpectraBytes)
    , m_SharesNodes(sharesNodes)
  {}

  void
  Run() const
  {
    const Box &        output = m_Call.output.box;
    const std::int64_t row = output.Extent(0);
    const std::int64_t rows = output.NumberOfVoxels() / row;
    const std::int64_t rowsOfTask = std::max<std::int64_t>(1, 8192 / row);
    const std::int64_t tasks = (rows + rowsOfTask - 1) / rowsOfTask;
    const auto         clear = [&](std::int64_t task) {
      std::fill(m_Sums + task * rowsOfTask * row, m_Sums + std::min(rows, (task + 1) * rowsOfTask) * row, T(0));
    };
    const ImageConvolutionOperation first = m_Operation.GetNodeOperation(0);
    KernelCall                      call = m_Call;
    call.operation = &first;
    const ConvolutionRows<T> finished(call);
    const auto               finish = [&](std::int64_t task) {
      const std::int64_t end = std::min(rows, (task + 1) * rowsOfTask);
      for (std::int64_t r = task * rowsOfTask; r < end; ++r)
      {
        Coordinates  at = output.lower;
        std::int64_t rest = r;
        for (int a = 1; a < MaxDimension; ++a)
        {
          at[a] += rest % output.Extent(a);
          rest /= output.Extent(a);
        }
        finished.Finish(at, 0, row, m_Sums + r * row);
      }
      if (m_Call.control)
      {
        m_Call.control->AddFinishedVoxels((end - task * rowsOfTask) * row);
      }
    };

    const std::vector<NodePart> parts = MakeParts();
    SharedIndices               clearing(tasks);
    SharedIndices               finishing(tasks);
    AddedParts                  added(parts.size(), clearing);
    const auto                  run = [&](std::int64_t i, Executor & executor, T * memory) {
      const auto              number = static_cast<std::size_t>(i);
      const AddedParts::Guard guard(added, number);
      RunPart(parts[number], added, executor, memory);
    };
    Executor & executor = *m_Call.executor;
    if (m_SharesNodes)
    {
      executor.ParallelFor(executor.GetConcurrency(), [&](std::int64_t, unsigned int) { clearing.Take(clear); });
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(parts.size()); ++i)
      {
        run(i, executor, m_Parts);
      }
      executor.ParallelFor(executor.GetConcurrency(), [&](std::int64_t, unsigned int) { finishing.Take(finish); });
      return;
    }
    // All at one go: waking the workers takes a while.
    Team          team(executor.GetConcurrency());
    SharedIndices running(static_cast<std::int64_t>(parts.size()));
    executor.ParallelFor(executor.GetConcurrency(), [&](std::int64_t, unsigned int worker) {
      Team::Member member(team, worker);
      clearing.Take(clear);
      running.Take([&](std::int64_t i) { run(i, member, m_Parts + worker * m_Shape.Part()); });
      team.Help(worker, running);
      finishing.Take(finish);
    });
  }

private:
  /** Color after color. */
  std::vector<NodePart>
  MakeParts() const
  {
    const Box &       output = m_Call.output.box;
    const Coordinates image = m_Call.image.Extents();
    Coordinates       colors{};
    std::int64_t      allColors = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      colors[a] = ColorsOf(m_Operation, a, m_Call.image, image);
      allColors *= colors[a];
    }
    std::vector<std::vector<NodePart>> ofColor(static_cast<std::size_t>(allColors));
    for (std::size_t node = 0; node < m_Operation.kernels.size(); ++node)
    {
      const auto        number = static_cast<std::int64_t>(node);
      const Coordinates position = m_Operation.GetNodePosition(number);
      const Box         support = m_Operation.GetSupport(position, image);
      const Box         reach = m_Operation.GetReach(support, m_Call.image);
      const NodePart    part{ number, support, reach, Intersect(reach, output), {} };
      if (support.IsEmpty() || part.output.IsEmpty())
      {
        continue;
      }
      std::int64_t color = 0;
      for (int a = MaxDimension - 1; a >= 0; --a)
      {
        color = color * colors[a] + position[a] % colors[a];
      }
      ofColor[static_cast<std::size_t>(color)].push_back(part);
    }
    const Coordinates         strides = DenseStrides(m_Operation.nodes);
    std::vector<std::int64_t> place(m_Operation.kernels.size(), -1);
    std::vector<NodePart>     parts;
    for (const auto & together : ofColor)
    {
      for (NodePart part : together)
      {
        // Only nodes this close can overlap.
        const Coordinates position = m_Operation.GetNodePosition(part.node);
        Box               near{};
        for (int a = 0; a < MaxDimension; ++a)
        {
          near.lower[a] = std::max<std::int64_t>(position[a] - colors[a] + 1, 0);
          near.upper[a] = std::min(position[a] + colors[a], m_Operation.nodes[a]);
        }
        for (std::int64_t i = 0; i < near.NumberOfVoxels(); ++i)
        {
          std::int64_t node = 0;
          std::int64_t rest = i;
          for (int a = 0; a < MaxDimension; ++a)
          {
            node += (near.lower[a] + rest % near.Extent(a)) * strides[a];
            rest /= near.Extent(a);
          }
          const std::int64_t earlier = place[static_cast<std::size_t>(node)];
          if (earlier >= 0 && !Intersect(parts[static_cast<std::size_t>(earlier)].output, part.output).IsEmpty())
          {
            part.before.push_back(static_cast<std::size_t>(earlier));
          }
        }
        place[static_cast<std::size_t>(part.node)] = static_cast<std::int64_t>(parts.size());
        parts.push_back(part);
      }
    }
    return parts;
  }

  void
  RunPart(const NodePart & part, const AddedParts & added, Executor & executor, T * memory) const
  {
    // A voxel is finished once all parts are.
    StopControl control(m_Call.control);
    if (control.ShouldStop())
    {
      return;
    }
    const bool                      spreads = m_Operation.order == VaryingOrder::WeightThenConvolve;
    const ImageConvolutionOperation node = m_Operation.GetNodeOperation(part.node);
    KernelCall                      call = m_Call;
    call.operation = &node;
    call.executor = &executor;
    call.control = &control;
    T * const            kernelRows = memory + m_Shape.spectrum;
    const NodeRows<T>    rows(call, m_Operation, part, added, kernelRows + m_Shape.kernelRows, m_Sums);
    const BlockMemory<T> scratch{ memory, m_Spaces, m_Shape.space, kernelRows, m_KeepsSpectra };
    const Coordinates    image = m_Call.image.Extents();
    Coordinates          tiles = m_Tile;
    Box                  reach = part.reach;
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (IsBatch(m_Operation, image, a))
      {
        tiles[a] = image[a];
        reach.lower[a] = part.output.lower[a];
        reach.upper[a] = part.output.upper[a];
      }
    }
    for (const Box & tile : CutIntoTiles(part.output, tiles, m_Call.image))
    {
      for (const Box & block : CutIntoBlocks(Intersect(tile, reach), m_LargestPart))
      {
        const Box needed = Intersect(block, part.output);
        if (!needed.IsEmpty())
        {
          const ConvolutionBlock transforms(node, block, image, spreads ? &part.support : nullptr);
          RunBlock<T>(call, rows, transforms, block, needed, scratch);
        }
      }
    }
  }

  const KernelCall &                  m_Call;
  const VaryingConvolutionOperation & m_Operation;
  T * const                           m_Sums;
  const PartShape<T>                  m_Shape;
  const Coordinates                   m_Tile;
  const Coordinates                   m_LargestPart;
  T * const                           m_Spaces;
  T * const                           m_Parts;
  const bool                          m_KeepsSpectra;
  const bool                          m_SharesNodes;
};

template <typename T, bool VSharesNodes>
void
Run(const KernelCall & call)
{
  VaryingConvolution<T>(call, VSharesNodes).Run();
}

template <typename T>
KernelChoice
Choose(const VaryingConvolutionOperation & operation, const ChunkShape & chunk)
{
  const bool         sharesNodes = SharesNodes(operation);
  const PartShape<T> shape(operation, chunk.outputBox.Extents(), chunk.image.Extents());
  std::int64_t       numbers = (chunk.outputBox.NumberOfVoxels() + 63) / 64 * 64;
  numbers += shape.space * chunk.concurrency;
  numbers += shape.Part() * (sharesNodes ? 1 : chunk.concurrency);
  KernelChoice choice;
  choice.name = sharesNodes ? "shared nodes" : "nodes of workers";
  choice.run = sharesNodes ? Run<T, true> : Run<T, false>;
  choice.scratchBytes = static_cast<std::size_t>(numbers) * sizeof(T);
  return choice;
}

KernelChoice
ChooseVaryingConvolution(const Operation & operation, const ChunkShape & chunk)
{
  const auto & varying = static_cast<const VaryingConvolutionOperation &>(operation);
  return UsesDouble(chunk.inputKinds[0]) ? Choose<double>(varying, chunk) : Choose<float>(varying, chunk);
}

} // namespace

void
RegisterHostVaryingConvolution(KernelRegistry & registry)
{
  registry.Register("convolution.varying", { MakeChoosingKernel<ChooseVaryingConvolution>(false) });
}

} // namespace chunkwise
