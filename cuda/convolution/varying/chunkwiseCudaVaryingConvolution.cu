/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseVaryingConvolutionOperation.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaTables.h"
#include "chunkwiseCudaVaryingBlocks.h"
#include "chunkwiseCudaVaryingCells.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

// In float along two axes all cells of a plane together, see chunkwiseCudaVaryingCells.h; along three axes with nothing
// beyond the edge in blocks, see chunkwiseCudaVaryingBlocks.h; what follows here is for all others. In each tile one
// node after the other, each as a convolution of the part of the tile that it reaches: its result is weighted and added
// to the sums of the chunk, or its input is weighted first. Nodes are added in their order at every voxel. Tiles are
// computed whole, so that bits do not depend on chunks.
namespace chunkwise
{

namespace
{

/** The node's weight along each axis, by image index; nullptr: 1. */
template <typename T>
struct AxisWeights
{
  const T * axis[MaxDimension];

  __device__ T
  OfRow(const Coordinates & at) const
  {
    T weight = 1;
    for (int a = 1; a < MaxDimension; ++a)
    {
      weight *= axis[a] ? __ldg(axis[a] + at.axis[a]) : T(1);
    }
    return weight;
  }
  __device__ T
  Of(T ofRow, std::int64_t x) const
  {
    return axis[0] ? ofRow * __ldg(axis[0] + x) : ofRow;
  }
};

/** The factor of a voxel's contribution so that all of it stays inside. */
template <typename T>
struct SpreadFactors
{
  const T *   table; ///< nullptr: 1
  Coordinates stride;
  Coordinates image;
  Coordinates kernel;
  Coordinates below;

  __device__ T
  At(const Coordinates & at) const
  {
    std::int64_t offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += stride.axis[a] * ConvolutionFactors::State(at.axis[a], image.axis[a], kernel.axis[a], below.axis[a]);
    }
    return __ldg(table + offset);
  }
};

/** Calls body(first voxel of a row, number of that voxel, x) for all voxels of a box. */
template <typename TBody>
__device__ __forceinline__ void
ForRows(const Box & box, TBody && body)
{
  const std::int64_t width = box.Extent(0);
  const std::int64_t rows = box.NumberOfVoxels() / width;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x)
  {
    body(IndexIn(box, row * width), row * width, width);
  }
}

template <typename TPixel, typename T>
__global__ void
WeighKernel(Voxels<const TPixel> in, Box box, AxisWeights<T> weights, SpreadFactors<T> factors, T * __restrict__ out)
{
  ForRows(box, [&](Coordinates at, std::int64_t first, std::int64_t width) {
    const T              ofRow = weights.OfRow(at);
    const std::int64_t   lower = at.axis[0];
    const TPixel * const row = &in[at];
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      T value = static_cast<T>(row[x * in.stride.axis[0]]) * weights.Of(ofRow, lower + x);
      if (factors.table)
      {
        at.axis[0] = lower + x;
        value *= factors.At(at);
      }
      out[first + x] = value;
    }
  });
}

/** The voxels of `box` of a dense part, weighted, to the sums. */
template <typename T>
__global__ void
AddKernel(Voxels<const T> part, Box box, AxisWeights<T> weights, Voxels<T> sums)
{
  ForRows(box, [&](const Coordinates & at, std::int64_t, std::int64_t width) {
    const T         ofRow = weights.OfRow(at);
    const T * const from = &part[at];
    T * const       row = &sums[at];
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      row[x] = fma(from[x], weights.Of(ofRow, at.axis[0] + x), row[x]);
    }
  });
}

template <typename T, typename TOut>
__global__ void
FinishKernel(Voxels<const T> sums, Voxels<TOut> out)
{
  ForRows(out.box, [&](const Coordinates & at, std::int64_t, std::int64_t width) {
    const T * const from = &sums[at];
    TOut * const    row = &out[at];
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      row[x * out.stride.axis[0]] = ConvertResult<TOut>(from[x]);
    }
  });
}

int
BlocksForRows(const Box & box)
{
  return static_cast<int>(BlocksFor(box.NumberOfVoxels() / box.Extent(0), 1));
}

/** The convolution of a part of the image with one node's kernel: no tile of it. */
class NodeConvolution : public ImageConvolutionOperation
{
public:
  explicit NodeConvolution(const ImageConvolutionOperation & operation)
    : ImageConvolutionOperation(operation)
  {}
  Coordinates
  GetTile(const Coordinates &) const override
  {
    return Coordinates::Filled(1);
  }
};

/** Through transforms, unless the kernels are single weights. */
const Kernel &
NodeKernel(const VaryingConvolutionOperation & operation, const KernelRegistry * kernels)
{
  return kernels->Get(operation.GetNodeOperation(0).GetName(), operation.GetName());
}

/** The steps in which a chunk's tiles are gone through: several planes that lie across two axes are one part. */
Coordinates
StepsOf(const VaryingConvolutionOperation & operation, const Coordinates & image, const Coordinates & chunk)
{
  Coordinates steps = operation.GetTile(image);
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (steps[a] == 2 && operation.kernels[0]->GetExtent()[a] == 1)
    {
      steps[a] = std::min(image[a], chunk[a] + 2);
    }
  }
  return steps;
}

/** The layout of the scratch: sums of the chunk, one part's result, one part's weighted input, and the convolution's
 * own. */
template <typename T>
struct VaryingLayout
{
  std::size_t sums;
  std::size_t part;
  std::size_t weighted;
  std::size_t convolution;

  VaryingLayout(const VaryingConvolutionOperation & operation, const ChunkShape & chunk)
  {
    const auto        bytes = [](std::int64_t voxels) { return RoundUp(static_cast<std::size_t>(voxels) * sizeof(T)); };
    const Box &       output = chunk.outputBox;
    const Coordinates image = chunk.image.Extents();
    sums = bytes(output.NumberOfVoxels());
    const bool        spreads = operation.order == VaryingOrder::WeightThenConvolve;
    const Coordinates reach =
      operation.GetLargestReach(Box::FromExtent(StepsOf(operation, image, output.Extents())), image);
    NodeConvolution node(operation.GetNodeOperation(0));
    ChunkShape      shape;
    shape.outputBox = Box::FromExtent(reach);
    shape.image = Box::FromExtent(image);
    shape.inputKinds[0] = chunk.inputKinds[0];
    shape.numberOfInputs = 1;
    shape.outputKind = PixelTypeOf<T>();
    Coordinates padded = reach;
    if (spreads)
    {
      // Its image is the part's input, of which no more is known than that it is in the halo.
      for (int a = 0; a < MaxDimension; ++a)
      {
        padded[a] += 2 * (node.kernel->GetExtent()[a] - 1);
      }
      shape.image = Box::FromExtent(padded);
      shape.inputKinds[0] = PixelTypeOf<T>();
      node.boundary = WindowBoundary{ BoundaryMode::Constant, 0.0 };
    }
    shape.inputBox = shape.image;
    part = bytes(shape.outputBox.NumberOfVoxels());
    weighted = spreads ? bytes(Box::FromExtent(padded).NumberOfVoxels()) : 0;
    const Kernel & kernel = NodeKernel(operation, chunk.kernels);
    convolution = kernel.scratchBytes ? kernel.scratchBytes(node, shape) : 0;
  }

  std::size_t
  Total() const
  {
    return sums + part + weighted + convolution;
  }
};

template <typename T>
class DeviceVarying
{
public:
  explicit DeviceVarying(const KernelCall & call)
    : m_Call(call)
    , m_Operation(static_cast<const VaryingConvolutionOperation &>(*call.operation))
    , m_Image(call.image.Extents())
    , m_Convolution(NodeKernel(m_Operation, call.kernels))
  {
    const VaryingLayout<T> layout(m_Operation, ShapeOf(call));
    char *                 scratch = static_cast<char *>(call.scratch);
    m_Sums = reinterpret_cast<T *>(scratch);
    m_Part = reinterpret_cast<T *>(scratch += layout.sums);
    m_Weighted = reinterpret_cast<T *>(scratch += layout.part);
    m_Scratch = scratch += layout.weighted;
    m_ScratchBytes = layout.convolution;
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_Weights[a] = m_Operation.nodes[a] > 1 ? GetNodeWeights<T>(call, a) : nullptr;
    }
  }

  void
  Run() const
  {
    ClearSums(m_Call, m_Sums);
    const Box         computed = AlignToTiles(m_Call.output.box, m_Operation.GetTile(m_Image), m_Call.image);
    const Coordinates steps = StepsOf(m_Operation, m_Image, m_Call.output.box.Extents());
    Box               part;
    for (Coordinates at = computed.lower; NextPart(computed, steps, at, part);)
    {
      AddPart(part);
    }
    Finish(m_Call, m_Sums, m_Call.output.box);
  }

  /** Stores what the sums of a box have of the call's output. */
  static void
  Finish(const KernelCall & call, const T * sums, const Box & box)
  {
    DispatchPixelType(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      FinishKernel<T, Out><<<BlocksForRows(call.output.box), 256, 0, StreamOf(call)>>>(DenseVoxels(sums, box),
                                                                                       VoxelsOf<Out>(call.output));
      CheckLaunch("FinishKernel");
    });
  }

  /** Sums of the call's output begin as 0. */
  static void
  ClearSums(const KernelCall & call, T * sums)
  {
    const std::size_t bytes = static_cast<std::size_t>(call.output.box.NumberOfVoxels()) * sizeof(T);
    CheckCuda(cudaMemsetAsync(sums, 0, bytes, StreamOf(call)), "cudaMemsetAsync");
  }

private:
  /** The part of `box` that begins at `at`, which moves on to the next one; false: there are no more. */
  static bool
  NextPart(const Box & box, const Coordinates & steps, Coordinates & at, Box & part)
  {
    if (at[MaxDimension - 1] >= box.upper[MaxDimension - 1])
    {
      return false;
    }
    part.lower = at;
    for (int a = 0; a < MaxDimension; ++a)
    {
      part.upper[a] = std::min(at[a] + steps[a], box.upper[a]);
    }
    for (int a = 0; a < MaxDimension && (at[a] += steps[a]) >= box.upper[a] && a + 1 < MaxDimension; ++a)
    {
      at[a] = box.lower[a];
    }
    return true;
  }

  /** Adds what all nodes contribute to a tile. */
  void
  AddPart(const Box & tile) const
  {
    for (std::size_t i = 0; i < m_Operation.kernels.size(); ++i)
    {
      const auto        node = static_cast<std::int64_t>(i);
      const Coordinates position = m_Operation.GetNodePosition(node);
      const Box         support = m_Operation.GetSupport(position, m_Image);
      const Box         reach = m_Operation.GetReach(support, tile);
      const Box         kept = Intersect(reach, m_Call.output.box);
      if (support.IsEmpty() || kept.IsEmpty())
      {
        continue;
      }
      AxisWeights<T> weights{};
      for (int a = 0; a < MaxDimension; ++a)
      {
        weights.axis[a] = m_Weights[a] ? m_Weights[a] + position[a] * m_Image[a] : nullptr;
      }
      if (m_Operation.order == VaryingOrder::ConvolveThenWeight)
      {
        Convolve(NodeConvolution(m_Operation.GetNodeOperation(node)), m_Call.inputs[0], m_Call.image, reach);
        Add(reach, kept, weights);
      }
      else
      {
        Spread(node, support, reach, weights);
        Add(reach, kept, AxisWeights<T>{});
      }
    }
  }

  void
  Convolve(const NodeConvolution & node, const BufferView & input, const Box & image, const Box & part) const
  {
    KernelCall call = m_Call;
    call.operation = &node;
    call.inputs[0] = input;
    call.image = image;
    call.output = DenseView(m_Part, PixelTypeOf<T>(), part);
    call.writable = part;
    call.scratch = m_Scratch;
    call.scratchBytes = m_ScratchBytes;
    m_Convolution.run(call);
  }

  /** Computes the node's contribution from its support. The weighted input is a separate image, with nothing around
   * it. */
  void
  Spread(std::int64_t number, const Box & support, const Box & reach, const AxisWeights<T> & weights) const
  {
    NodeConvolution node(m_Operation.GetNodeOperation(number));
    Box             input = reach;
    for (int a = 0; a < MaxDimension; ++a)
    {
      input.lower[a] -= node.Below(a);
      input.upper[a] += node.Above(a);
    }
    input = Intersect(input, support);
    SpreadFactors<T> factors{};
    if (node.Renormalizes())
    {
      const ImageConvolutionOperation flipped = m_Operation.GetNodeOperation(number, true);
      factors.table = GetFactors<T>(m_Call, flipped, m_Image);
      factors.stride = DenseStrides(ConvolutionFactors::States(flipped, m_Image));
      factors.image = m_Image;
      factors.kernel = flipped.kernel->GetExtent();
      for (int a = 0; a < MaxDimension; ++a)
      {
        factors.below[a] = flipped.Below(a);
      }
    }
    DispatchPixelType(m_Call.inputs[0].kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      WeighKernel<Pixel, T><<<BlocksForRows(input), 256, 0, StreamOf(m_Call)>>>(
        VoxelsOf<const Pixel>(m_Call.inputs[0]), input, weights, factors, m_Weighted);
      CheckLaunch("WeighKernel");
    });
    node.boundary = WindowBoundary{ BoundaryMode::Constant, 0.0 };
    const Box image = Box::FromExtent(input.Extents());
    Box       part = reach;
    for (int a = 0; a < MaxDimension; ++a)
    {
      part.lower[a] -= input.lower[a];
      part.upper[a] -= input.lower[a];
    }
    Convolve(node, DenseView(m_Weighted, PixelTypeOf<T>(), image), image, part);
  }

  void
  Add(const Box & part, const Box & kept, const AxisWeights<T> & weights) const
  {
    AddKernel<T><<<BlocksForRows(kept), 256, 0, StreamOf(m_Call)>>>(
      DenseVoxels<const T>(m_Part, part), kept, weights, DenseVoxels(m_Sums, m_Call.output.box));
    CheckLaunch("AddKernel");
  }

  const KernelCall &                  m_Call;
  const VaryingConvolutionOperation & m_Operation;
  const Coordinates                   m_Image;
  const Kernel &                      m_Convolution;
  T *                                 m_Sums{ nullptr };
  T *                                 m_Part{ nullptr };
  T *                                 m_Weighted{ nullptr };
  void *                              m_Scratch{ nullptr };
  std::size_t                         m_ScratchBytes{ 0 };
  const T *                           m_Weights[MaxDimension]{};
};

/** A chunk with the whole planes of which it has parts. */
ChunkShape
WithWholePlanes(const VaryingConvolutionOperation & operation, ChunkShape chunk)
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (operation.kernels[0]->GetExtent()[a] > 1)
    {
      chunk.outputBox.lower[a] = chunk.image.lower[a];
      chunk.outputBox.upper[a] = chunk.image.upper[a];
    }
  }
  return chunk;
}

/** Bytes of sums beside the scratch of cells: they are added to, or only a part of them is stored. */
std::size_t
BytesOfCellSums(const VaryingConvolutionOperation & operation, const ChunkShape & chunk)
{
  const Box planes = WithWholePlanes(operation, chunk).outputBox;
  return operation.order == VaryingOrder::WeightThenConvolve || !(planes == chunk.outputBox)
           ? RoundUp(static_cast<std::size_t>(planes.NumberOfVoxels()) * sizeof(float))
           : 0;
}

void
RunCells(const KernelCall & call)
{
  const auto & operation = static_cast<const VaryingConvolutionOperation &>(*call.operation);
  ChunkShape   chunk;
  chunk.outputBox = call.output.box;
  chunk.image = call.image;
  const std::size_t bytes = BytesOfCellSums(operation, chunk);
  if (bytes == 0)
  {
    return RunVaryingCells(call);
  }
  const Box     planes = WithWholePlanes(operation, chunk).outputBox;
  float * const sums = static_cast<float *>(call.scratch);
  KernelCall    cells = call;
  cells.output = DenseView(sums, PixelType::Float32, planes);
  cells.scratch = static_cast<char *>(call.scratch) + bytes;
  cells.scratchBytes = call.scratchBytes - bytes;
  CheckCuda(cudaMemsetAsync(sums, 0, bytes, StreamOf(call)), "cudaMemsetAsync");
  RunVaryingCells(cells);
  DeviceVarying<float>::Finish(call, sums, planes);
}

std::size_t
BytesOfBlockSums(const Box & output)
{
  return RoundUp(static_cast<std::size_t>(output.NumberOfVoxels()) * sizeof(float));
}

void
RunBlocks(const KernelCall & call)
{
  // An output of dense numbers has the sums, too.
  const BufferView  dense = DenseView(call.output.data, PixelType::Float32, call.output.box);
  const bool        isDense = call.output.kind == PixelType::Float32 && call.output.stride == dense.stride;
  float * const     sums = static_cast<float *>(isDense ? call.output.data : call.scratch);
  const std::size_t bytes = BytesOfBlockSums(call.output.box);
  KernelCall        blocks = call;
  blocks.scratch = static_cast<char *>(call.scratch) + bytes;
  blocks.scratchBytes = call.scratchBytes - bytes;
  DeviceVarying<float>::ClearSums(call, sums);
  RunVaryingBlocks(blocks, sums);
  if (!isDense)
  {
    DeviceVarying<float>::Finish(call, sums, call.output.box);
  }
}

template <typename T>
void
RunParts(const KernelCall & call)
{
  DeviceVarying<T>(call).Run();
}

/** How an image is computed: all of its chunks in one way. */
enum class VaryingWay
{
  Cells,        ///< all cells of a plane together
  Blocks,       ///< blocks of three axes
  Parts,        ///< node by node, by another operation's kernel
  PartsOfDouble ///< the same in double
};

VaryingWay
VaryingWayOf(const VaryingConvolutionOperation & operation, const ChunkShape & chunk)
{
  const Coordinates image = chunk.image.Extents();
  const PixelType   kind = chunk.inputKinds[0];
  if (UsesDouble(kind))
  {
    return VaryingWay::PartsOfDouble;
  }
  if (HasVaryingCells(operation, image, kind))
  {
    return VaryingWay::Cells;
  }
  return HasVaryingBlocks(operation, image, kind) ? VaryingWay::Blocks : VaryingWay::Parts;
}

std::size_t
TableBytesOfVarying(const Operation & operation, const ChunkShape & chunk)
{
  const auto &      varying = static_cast<const VaryingConvolutionOperation &>(operation);
  const Coordinates image = chunk.image.Extents();
  const VaryingWay  way = VaryingWayOf(varying, chunk);
  if (way == VaryingWay::Cells)
  {
    return TableBytesOfVaryingCells(varying, image);
  }
  if (way == VaryingWay::Blocks)
  {
    return TableBytesOfVaryingBlocks(varying, image);
  }
  const std::size_t size = UsesDouble(chunk.inputKinds[0]) ? 8 : 4;
  const auto        bytes = [&](std::int64_t numbers) { return RoundUp(static_cast<std::size_t>(numbers) * size); };
  const ImageConvolutionOperation node = varying.GetNodeOperation(0);
  // Weights and factors of each kernel.
  std::size_t ofKernel = bytes(node.kernel->GetNumberOfTaps());
  ofKernel +=
    node.Renormalizes() ? bytes(Box::FromExtent(ConvolutionFactors::States(node, image)).NumberOfVoxels()) : 0;
  std::size_t       sum = varying.kernels.size() * ofKernel;
  const Coordinates tile = varying.GetTile(image);
  const Coordinates reach =
    varying.GetLargestReach(Box::FromExtent(StepsOf(varying, image, chunk.outputBox.Extents())), image);
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (node.kernel->GetExtent()[a] > 1)
    {
      // Parts of several extents, each with twiddles there and back, or those of all passes, and positions.
      const std::int64_t length = 2 * (reach[a] + 2 * node.kernel->GetExtent()[a]);
      const std::int64_t parts = varying.nodes[a] * ((image[a] + tile[a] - 1) / tile[a]);
      sum += static_cast<std::size_t>(parts) * 3 * bytes(2 * length);
    }
    sum += varying.nodes[a] > 1 ? bytes(varying.nodes[a] * image[a]) : 0;
  }
  return sum;
}

/** The nodes' parts cover the chunk about twice along each axis of the grid, each with its halo. */
double
CostOfParts(const VaryingConvolutionOperation & varying, const ChunkShape & chunk)
{
  const Coordinates image = chunk.image.Extents();
  const Coordinates reach =
    varying.GetLargestReach(Box::FromExtent(StepsOf(varying, image, chunk.outputBox.Extents())), image);
  ChunkShape part = chunk;
  part.outputBox = Box::FromExtent(reach);
  part.outputKind = UsesDouble(chunk.inputKinds[0]) ? PixelType::Float64 : PixelType::Float32;
  double parts = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    parts *= varying.nodes[a] == 1
               ? 1.0
               : 1.0 + 2.0 * static_cast<double>(chunk.outputBox.Extent(a)) / static_cast<double>(reach[a]);
  }
  const NodeConvolution node(varying.GetNodeOperation(0));
  const Kernel &        kernel = NodeKernel(varying, chunk.kernels);
  const double          pixels = 16 * static_cast<double>(part.outputBox.NumberOfVoxels());
  return parts * (pixels + (kernel.cost ? kernel.cost(node, part) : pixels)) +
         16 * static_cast<double>(chunk.outputBox.NumberOfVoxels());
}

KernelChoice
ChooseVarying(const Operation & operation, const ChunkShape & chunk)
{
  const auto &      varying = static_cast<const VaryingConvolutionOperation &>(operation);
  const Coordinates image = chunk.image.Extents();
  switch (VaryingWayOf(varying, chunk))
  {
    case VaryingWay::Cells:
    {
      const ChunkShape planes = WithWholePlanes(varying, chunk);
      return { "cells",
               RunCells,
               BytesOfCellSums(varying, chunk) + ScratchOfVaryingCells(varying, planes),
               CostOfVaryingCells(varying, planes) };
    }
    case VaryingWay::Blocks:
    {
      const auto voxels = static_cast<double>(chunk.outputBox.NumberOfVoxels());
      return { "blocks",
               RunBlocks,
               BytesOfBlockSums(chunk.outputBox) + ScratchOfVaryingBlocks(varying, image),
               voxels / static_cast<double>(chunk.image.NumberOfVoxels()) * CostOfVaryingBlocks(varying, image) +
                 16 * voxels };
    }
    case VaryingWay::PartsOfDouble:
      return {
        "parts of double", RunParts<double>, VaryingLayout<double>(varying, chunk).Total(), CostOfParts(varying, chunk)
      };
    default:
      return { "parts", RunParts<float>, VaryingLayout<float>(varying, chunk).Total(), CostOfParts(varying, chunk) };
  }
}

} // namespace

void
RegisterCudaVaryingConvolution(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.compute = MakeChoosingKernel<ChooseVarying>(true);
  kernels.tableBytes = TableBytesOfVarying;
  registry.Register("convolution.varying", kernels);
}

} // namespace chunkwise
