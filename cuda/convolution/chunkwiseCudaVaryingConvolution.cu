/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseVaryingConvolutionOperation.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaTables.h"
#include "chunkwiseCudaVaryingCells.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseRealOf.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

// In float along two axes all cells of the chunk together, see chunkwiseCudaVaryingCells.h; what follows here is for
// all others. One node after the other, each as a convolution of the part of the image that it reaches: its result is
// weighted and added to the sums of the chunk, or its input is weighted first. Nodes are added in their order at every
// voxel.
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

/** A dense part, weighted, to the sums. */
template <typename T>
__global__ void
AddKernel(const T * __restrict__ part, Box box, AxisWeights<T> weights, Voxels<T> sums)
{
  ForRows(box, [&](const Coordinates & at, std::int64_t first, std::int64_t width) {
    const T   ofRow = weights.OfRow(at);
    T * const row = &sums[at];
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      row[x] = fma(part[first + x], weights.Of(ofRow, at.axis[0] + x), row[x]);
    }
  });
}

template <typename T, typename TOut>
__global__ void
FinishKernel(const T * __restrict__ sums, Voxels<TOut> out)
{
  ForRows(out.box, [&](const Coordinates & at, std::int64_t first, std::int64_t width) {
    TOut * const row = &out[at];
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      row[x * out.stride.axis[0]] = ConvertResult<TOut>(sums[first + x]);
    }
  });
}

int
BlocksForRows(const Box & box)
{
  return static_cast<int>(BlocksFor(box.NumberOfVoxels() / box.Extent(0), 1));
}

/** The convolution of a part of the image with one node's kernel: no tile of the image. */
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

/** The layout of the scratch: sums of the chunk, one part's result, one part's weighted input, and the convolution's
 * own. */
template <typename T>
struct VaryingLayout
{
  std::size_t sums;
  std::size_t part;
  std::size_t weighted;
  std::size_t convolution;

  VaryingLayout(const VaryingConvolutionOperation & operation, const Box & output, const Coordinates & image,
                PixelKind kind, const KernelRegistry * kernels)
  {
    const bool        spreads = operation.order == VaryingOrder::WeightThenConvolve;
    const Coordinates reach = operation.GetLargestReach(output, image);
    NodeConvolution   node(operation.GetNodeOperation(0));
    ChunkShape        shape;
    shape.outputBox = Box::FromExtent(reach);
    shape.image = Box::FromExtent(image);
    shape.inputKinds[0] = kind;
    shape.numberOfInputs = 1;
    shape.outputKind = PixelKindOf<T>();
    Coordinates padded = reach;
    if (spreads)
    {
      // Its image is the part's input, of which no more is known than that it is in the halo.
      for (int a = 0; a < MaxDimension; ++a)
      {
        padded[a] += 2 * (node.kernel->GetExtent()[a] - 1);
      }
      shape.image = Box::FromExtent(padded);
      shape.inputKinds[0] = PixelKindOf<T>();
      node.boundary = WindowBoundary{ BoundaryMode::Constant, 0.0 };
    }
    shape.inputBox = shape.image;
    const auto bytes = [](std::int64_t voxels) { return RoundUp(static_cast<std::size_t>(voxels) * sizeof(T)); };
    sums = bytes(output.NumberOfVoxels());
    part = bytes(shape.outputBox.NumberOfVoxels());
    weighted = spreads ? bytes(Box::FromExtent(padded).NumberOfVoxels()) : 0;
    const Kernel & kernel = NodeKernel(operation, kernels);
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
    const VaryingLayout<T> layout(m_Operation, call.output.box, m_Image, call.inputs[0].kind, call.kernels);
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
    const Box & output = m_Call.output.box;
    CheckCuda(
      cudaMemsetAsync(m_Sums, 0, static_cast<std::size_t>(output.NumberOfVoxels()) * sizeof(T), StreamOf(m_Call)),
      "cudaMemsetAsync");
    const bool added = AddCells();
    for (std::size_t i = 0; !added && i < m_Operation.kernels.size(); ++i)
    {
      const auto        node = static_cast<std::int64_t>(i);
      const Coordinates position = m_Operation.GetNodePosition(node);
      const Box         support = m_Operation.GetSupport(position, m_Image);
      const Box         reach = m_Operation.GetReach(support, output);
      if (support.IsEmpty() || reach.IsEmpty())
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
        Add(reach, weights);
      }
      else
      {
        Spread(node, support, reach, weights);
        Add(reach, AxisWeights<T>{});
      }
    }
    DispatchPixelKind(m_Call.output.kind, [&](auto out) {
      using Out = decltype(out);
      FinishKernel<T, Out><<<BlocksForRows(output), 256, 0, StreamOf(m_Call)>>>(m_Sums, VoxelsOf<Out>(m_Call.output));
      CheckLaunch("FinishKernel");
    });
  }

private:
  /** Adds all nodes at once to the sums, if it can be done. */
  bool
  AddCells() const
  {
    if (m_Operation.order == VaryingOrder::ConvolveThenWeight || std::is_same<T, double>::value)
    {
      return false;
    }
    KernelCall call = m_Call;
    call.output = DenseView(m_Sums, PixelKindOf<T>(), m_Call.output.box);
    call.scratch = m_Part;
    call.scratchBytes = m_Call.scratchBytes - (reinterpret_cast<char *>(m_Part) - reinterpret_cast<char *>(m_Sums));
    return RunVaryingCells(call);
  }

  void
  Convolve(const NodeConvolution & node, const BufferView & input, const Box & image, const Box & part) const
  {
    KernelCall call = m_Call;
    call.operation = &node;
    call.inputs[0] = input;
    call.image = image;
    call.output = DenseView(m_Part, PixelKindOf<T>(), part);
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
    DispatchPixelKind(m_Call.inputs[0].kind, [&](auto pixel) {
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
    Convolve(node, DenseView(m_Weighted, PixelKindOf<T>(), image), image, part);
  }

  void
  Add(const Box & part, const AxisWeights<T> & weights) const
  {
    AddKernel<T><<<BlocksForRows(part), 256, 0, StreamOf(m_Call)>>>(
      m_Part, part, weights, DenseVoxels(m_Sums, m_Call.output.box));
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

void
RunVarying(const KernelCall & call)
{
  if (static_cast<const VaryingConvolutionOperation &>(*call.operation).order == VaryingOrder::ConvolveThenWeight &&
      RunVaryingCells(call))
  {
    return;
  }
  if (UsesDouble(call.inputs[0].kind))
  {
    DeviceVarying<double>(call).Run();
  }
  else
  {
    DeviceVarying<float>(call).Run();
  }
}

std::size_t
ScratchOfVarying(const Operation & operation, const ChunkShape & chunk)
{
  const auto &      varying = static_cast<const VaryingConvolutionOperation &>(operation);
  const Coordinates image = chunk.image.Extents();
  const PixelKind   kind = chunk.inputKinds[0];
  if (UsesDouble(kind))
  {
    return VaryingLayout<double>(varying, chunk.outputBox, image, kind, chunk.kernels).Total();
  }
  // Cells need room for their spectra, which only a run can know to be there.
  const VaryingLayout<float> layout(varying, chunk.outputBox, image, kind, chunk.kernels);
  const std::size_t          sums = varying.order == VaryingOrder::WeightThenConvolve ? layout.sums : 0;
  return std::max(layout.Total(), sums + ScratchOfVaryingCells(varying, chunk));
}

/** The nodes' parts cover the chunk about twice along each axis of the grid, each with its halo. */
double
CostOfVarying(const Operation & operation, const ChunkShape & chunk)
{
  const auto & varying = static_cast<const VaryingConvolutionOperation &>(operation);
  if (const double cells = CostOfVaryingCells(varying, chunk))
  {
    return cells;
  }
  const Coordinates reach = varying.GetLargestReach(chunk.outputBox, chunk.image.Extents());
  ChunkShape        part = chunk;
  part.outputBox = Box::FromExtent(reach);
  part.outputKind = UsesDouble(chunk.inputKinds[0]) ? PixelKind::Float64 : PixelKind::Float32;
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

} // namespace

void
RegisterCudaVaryingConvolution(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunVarying;
  kernel.scratchBytes = ScratchOfVarying;
  kernel.cost = CostOfVarying;
  registry.Register("convolution.varying", { kernel });
}

} // namespace chunkwise
