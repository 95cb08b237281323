/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaVaryingNodes.h"
#include "chunkwiseCudaConvolutionRows.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaFixedFft.h"
#include "chunkwiseCudaVaryingCells.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseRegions.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace chunkwise
{

namespace
{

constexpr int Axes = 3;

/** The part of an axis in which the weight of a node may be above 0, or a piece of it. */
struct NodeInterval
{
  std::int64_t lower;
  std::int64_t upper;
  std::int64_t node;
};

/** The transforms of a node's parts. */
struct NodeLayout
{
  int                       axis[Axes]{};
  const FixedRows *         rows{ nullptr };
  const FixedColumns *      columns[2]{};
  std::vector<NodeInterval> intervals[Axes];
  bool                      exists{ false };

  NodeLayout(const VaryingConvolutionOperation & operation, const Coordinates & image);

  std::int64_t
  GetLength(int r) const
  {
    return r == 0 ? rows->length : columns[r - 1]->length;
  }
  /** Complex numbers of a plane across the last axis. */
  std::int64_t
  GetPlane() const
  {
    return GetLength(1) * GetLength(0) / 2;
  }
  std::size_t
  GetSpectrumBytes() const
  {
    return RoundUp(static_cast<std::size_t>(GetLength(2) * GetPlane()) * sizeof(float2));
  }
  std::size_t
  GetKernelBytes(const VaryingConvolutionOperation & operation) const
  {
    return RoundUp(static_cast<std::size_t>(operation.kernels[0]->GetExtent()[axis[2]] * GetPlane()) * sizeof(float2));
  }
};

/** The parts of each node along an axis, of at most `most` voxels. */
std::vector<NodeInterval>
CutNodes(const VaryingConvolutionOperation & operation, int a, const Coordinates & image, std::int64_t most)
{
  std::vector<NodeInterval> intervals;
  for (std::int64_t node = 0; node < operation.nodes[a]; ++node)
  {
    Coordinates position{};
    position[a] = node;
    const Box          support = operation.GetSupport(position, image);
    const std::int64_t extent = support.Extent(a);
    const std::int64_t parts = extent > 0 ? (extent + most - 1) / most : 0;
    for (std::int64_t i = 0; i < parts; ++i)
    {
      intervals.push_back({ support.lower[a] + extent * i / parts, support.lower[a] + extent * (i + 1) / parts, node });
    }
  }
  return intervals;
}

NodeLayout::NodeLayout(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  const Coordinates & k = operation.kernels[0]->GetExtent();
  int                 count = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (k[a] > 1 && count < Axes)
    {
      axis[count] = a;
    }
    count += k[a] > 1 ? 1 : 0;
    if (k[a] == 1 && operation.nodes[a] > 1)
    {
      return;
    }
  }
  if (count != Axes || operation.boundary.mode != BoundaryMode::Constant || operation.boundary.constant.ToDouble() != 0)
  {
    return;
  }
  for (int r = 0; r < Axes; ++r)
  {
    const int          a = axis[r];
    const std::int64_t reach = k[a] - 1;
    std::int64_t       least = 0;
    const auto         choose = [&](auto find, auto & chosen) {
      for (auto fixed = find(2 * k[a]); fixed; fixed = find(fixed->length + 1))
      {
        auto               cut = CutNodes(operation, a, image, fixed->length - reach);
        const std::int64_t points = static_cast<std::int64_t>(cut.size()) * fixed->length;
        if (!chosen || points < least)
        {
          least = points;
          chosen = fixed;
          intervals[r] = std::move(cut);
        }
      }
    };
    r == 0 ? choose(FindFixedRows, rows) : choose(FindFixedColumns, columns[r - 1]);
    // Lines of small images are shorter than any that are transformed fast.
    std::int64_t longest = 0;
    for (const NodeInterval & interval : intervals[r])
    {
      longest = std::max(longest, interval.upper - interval.lower + reach);
    }
    if (intervals[r].empty() || 2 * GetLength(r) > 3 * longest)
    {
      return;
    }
  }
  exists = true;
}

/** One call: what all its launches share. */
class NodeRun
{
public:
  NodeRun(const KernelCall & call, const NodeLayout & layout, float * sums)
    : m_Call(call)
    , m_Sums(call)
    , m_Operation(static_cast<const VaryingConvolutionOperation &>(*call.operation))
    , m_Layout(layout)
    , m_Image(call.image.Extents())
    , m_Stream(static_cast<cudaStream_t>(call.stream))
    , m_Data(static_cast<float2 *>(call.scratch))
    , m_Made(m_Data + layout.GetSpectrumBytes() / sizeof(float2))
    , m_Place{ layout.GetLength(0) / 2, layout.GetLength(0) / 2, layout.GetLength(1), layout.GetLength(2) }
    , m_RowsThere(Twiddles(layout.rows->there))
    , m_RowsBack(Twiddles(layout.rows->back))
  {
    m_Sums.output = DenseView(sums, PixelKind::Float32, call.output.box);
    for (int i = 0; i < 2; ++i)
    {
      m_There[i] = Twiddles(layout.columns[i]->there);
      m_Back[i] = Twiddles(layout.columns[i]->back);
    }
    for (int r = 0; r < Axes; ++r)
    {
      m_Weights[r] = GetNodeWeights<float>(call, layout.axis[r]);
    }
  }

  void
  Run()
  {
    // Tiles have one index along the other axes.
    for (const Box & tile : CutIntoTiles(m_Call.output.box, m_Operation.GetTile(m_Image), m_Call.image))
    {
      for (const NodeInterval & z : m_Layout.intervals[2])
      {
        for (const NodeInterval & y : m_Layout.intervals[1])
        {
          for (const NodeInterval & x : m_Layout.intervals[0])
          {
            RunPart(tile, { x, y, z });
          }
        }
      }
    }
  }

private:
  /** Adds what a node contributes to a tile from a part of its support. */
  void
  RunPart(const Box & tile, std::initializer_list<NodeInterval> intervals)
  {
    Box         support = tile;
    Coordinates position{};
    int         r = 0;
    for (const NodeInterval & interval : intervals)
    {
      const int a = m_Layout.axis[r++];
      position[a] = interval.node;
      support.lower[a] = interval.lower;
      support.upper[a] = interval.upper;
    }
    const Box reach = m_Operation.GetReach(support, tile);
    const Box kept = Intersect(reach, m_Call.output.box);
    if (reach.IsEmpty() || kept.IsEmpty())
    {
      return;
    }
    const Coordinates strides = DenseStrides(m_Operation.nodes);
    std::int64_t      number = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      number += position[a] * strides[a];
    }
    const bool                      spreads = m_Operation.order == VaryingOrder::WeightThenConvolve;
    const ImageConvolutionOperation node = m_Operation.GetNodeOperation(number);
    ConvolutionBlock                block(node, reach, m_Image, spreads ? &support : nullptr);
    const float *                   weights[Axes];
    for (r = 0; r < Axes; ++r)
    {
      const int a = m_Layout.axis[r];
      block.role[r].length = m_Layout.GetLength(r);
      if (block.role[r].input <= 0)
      {
        return;
      }
      weights[r] =
        m_Weights[r] + position[a] * m_Image[a] + (spreads ? block.role[r].lower : kept.lower[m_Layout.axis[r]]);
    }
    Transform(node, block, reach, kept, spreads, weights);
  }

  void
  Transform(const ImageConvolutionOperation & node, const ConvolutionBlock & block, const Box & reach, const Box & kept,
            bool spreads, const float * const * weights) const
  {
    const auto &         y = block.role[1];
    const auto &         z = block.role[2];
    const FixedColumns & second = *m_Layout.columns[0];
    const FixedColumns & last = *m_Layout.columns[1];
    const std::int64_t   plane = m_Layout.GetPlane();
    const float2 * const kernel = GetSpectrum(*node.kernel, block);
    const auto           number = [](std::int64_t n) { return static_cast<int>(n); };
    const int            above = number(node.Above(z.axis));
    RowSource            source = MakeImageSource(m_Call, node, block);
    RowTarget            target = MakeTarget<float>(m_Sums, node, block, kept);
    std::copy_n(weights, spreads ? Axes : 0, source.weights);
    m_Layout.rows->forward(m_Stream, source, m_Place, PlaneRange{ 0, z.input }, m_Data, m_RowsThere);
    second.forward(m_Stream, z.input, ColumnsOf(y.input, 0, 0), m_Data, m_There[0]);
    const ColumnTiles tiles{ number(z.output),
                             number(z.output),
                             number(z.input),
                             number(z.crop) - above,
                             number(node.Below(z.axis)),
                             above,
                             0,
                             number(kept.lower[z.axis] - reach.lower[z.axis]),
                             number(kept.upper[z.axis] - reach.lower[z.axis]) };
    last.product(m_Stream,
                 1,
                 ColumnSet{ plane, plane, 0, 0, 0, 0 },
                 tiles,
                 m_Data,
                 m_There[1],
                 m_Back[1],
                 kernel,
                 number(z.kernel));
    const std::int64_t from = y.crop + kept.lower[y.axis] - reach.lower[y.axis];
    second.inverse(m_Stream, kept.Extent(z.axis), ColumnsOf(0, from, from + kept.Extent(y.axis)), m_Data, m_Back[0]);
    const int x = m_Layout.axis[0];
    target.crop += kept.lower[x] - reach.lower[x];
    // The rows' transforms are half as long.
    target.scale *= 2;
    target.adds = true;
    std::copy_n(weights, spreads ? 0 : Axes, target.weights);
    m_Layout.rows->inverse(m_Stream, target, m_Place, PlaneRange{ 0, kept.Extent(z.axis) }, m_Data, m_RowsBack);
  }

  ColumnSet
  ColumnsOf(std::int64_t live, std::int64_t from, std::int64_t to) const
  {
    return { m_Place.pitch, m_Place.pitch, m_Layout.GetPlane(), live, from, to };
  }

  /** A kernel's transform along all axes but the last: kept if there is room, else made in scratch. */
  const float2 *
  GetSpectrum(const ConvolutionKernel & kernel, const ConvolutionBlock & block) const
  {
    const std::string key =
      kernel.GetKey() + " rows of " + std::to_string(block.role[0].length) + " " + std::to_string(block.role[1].length);
    const void * const kept = m_Call.tables->GetMade(key, m_Layout.GetKernelBytes(m_Operation), [&](void * memory) {
      MakeSpectrum(kernel, block, static_cast<float2 *>(memory));
      CheckCuda(cudaStreamSynchronize(m_Stream), "cudaStreamSynchronize");
    });
    if (!kept)
    {
      MakeSpectrum(kernel, block, m_Made);
    }
    return kept ? static_cast<const float2 *>(kept) : m_Made;
  }

  void
  MakeSpectrum(const ConvolutionKernel & kernel, const ConvolutionBlock & block, float2 * out) const
  {
    const PlaneRange planes{ 0, block.role[2].kernel };
    m_Layout.rows->forward(m_Stream, MakeKernelSource<float>(m_Call, kernel, block), m_Place, planes, out, m_RowsThere);
    m_Layout.columns[0]->forward(m_Stream, planes.count, ColumnsOf(block.role[1].kernel, 0, 0), out, m_There[0]);
  }

  const float2 *
  Twiddles(const FixedTwiddles & fixed) const
  {
    return GetTable<float2>(m_Call, fixed.GetKey(), [&fixed] { return fixed.Make(); });
  }

  const KernelCall &                  m_Call;
  KernelCall                          m_Sums; ///< the call, with its sums as output
  const VaryingConvolutionOperation & m_Operation;
  const NodeLayout &                  m_Layout;
  const Coordinates                   m_Image;
  const cudaStream_t                  m_Stream;
  float2 * const                      m_Data;
  float2 * const                      m_Made; ///< the spectrum of a kernel that is not kept
  const Spectrum                      m_Place;
  const float2 * const                m_RowsThere;
  const float2 * const                m_RowsBack;
  const float2 *                      m_There[2]{};
  const float2 *                      m_Back[2]{};
  const float *                       m_Weights[Axes]{};
};

} // namespace

bool
HasVaryingNodes(const VaryingConvolutionOperation & operation, const Coordinates & image, PixelKind kind)
{
  return !UsesDouble(kind) && NodeLayout(operation, image).exists;
}

std::size_t
ScratchOfVaryingNodes(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  const NodeLayout layout(operation, image);
  return layout.GetSpectrumBytes() + layout.GetKernelBytes(operation);
}

std::size_t
TableBytesOfVaryingNodes(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  const NodeLayout layout(operation, image);
  const auto bytes = [](std::int64_t numbers) { return RoundUp(static_cast<std::size_t>(numbers) * sizeof(float)); };
  // Weights of kernels and of nodes, and twiddles there and back.
  std::size_t sum = operation.kernels.size() * bytes(operation.kernels[0]->GetNumberOfTaps());
  for (int r = 0; r < Axes; ++r)
  {
    const int a = layout.axis[r];
    sum += bytes(operation.nodes[a] * image[a]) + 2 * bytes(2 * layout.GetLength(r));
  }
  return sum;
}

double
CostOfVaryingNodes(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  // Spectra are read and written about five times.
  const NodeLayout layout(operation, image);
  double           points = 1;
  for (int r = 0; r < Axes; ++r)
  {
    points *= static_cast<double>(static_cast<std::int64_t>(layout.intervals[r].size()) * layout.GetLength(r)) /
              static_cast<double>(image[layout.axis[r]]);
  }
  return 11.5 * sizeof(float) * points * static_cast<double>(Box::FromExtent(image).NumberOfVoxels());
}

void
RunVaryingNodes(const KernelCall & call, float * sums)
{
  const auto &     operation = static_cast<const VaryingConvolutionOperation &>(*call.operation);
  const NodeLayout layout(operation, call.image.Extents());
  NodeRun(call, layout, sums).Run();
}

} // namespace chunkwise
