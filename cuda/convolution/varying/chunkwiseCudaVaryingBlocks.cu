/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaVaryingBlocks.h"
#include "chunkwiseCudaConvolutionRows.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaNodeColumns.h"
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

bool
Spreads(const VaryingConvolutionOperation & operation)
{
  return operation.order == VaryingOrder::WeightThenConvolve;
}

/** How an image is cut into blocks. */
struct BlockLayout
{
  int                          axis[Axes]{};
  const FixedRows *            rows{ nullptr };
  const NodeColumns *          columns[2]{};
  std::vector<VaryingInterval> intervals[Axes];
  double                       traffic{ 0 }; ///< of an image, in points

  BlockLayout(const VaryingConvolutionOperation & operation, const Coordinates & image);

  bool
  Exists() const
  {
    return traffic > 0;
  }
  std::int64_t
  GetLength(int r) const
  {
    return r == 0 ? rows->length : columns[r - 1]->fixed->length;
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

/** The parts of one node each, along the first axis. */
std::vector<VaryingInterval>
CutNodes(const VaryingConvolutionOperation & operation, int a, const Coordinates & image, std::int64_t most)
{
  std::vector<VaryingInterval> intervals;
  for (std::int64_t node = 0; node < operation.nodes[a]; ++node)
  {
    Coordinates position{};
    position[a] = node;
    const Box          support = operation.GetSupport(position, image);
    const std::int64_t extent = support.Extent(a);
    const std::int64_t parts = extent > 0 ? (extent + most - 1) / most : 0;
    for (std::int64_t i = 0; i < parts; ++i)
    {
      intervals.push_back({ support.lower[a] + extent * i / parts,
                            support.lower[a] + extent * (i + 1) / parts,
                            static_cast<int>(node),
                            1 });
    }
  }
  return intervals;
}

BlockLayout::BlockLayout(const VaryingConvolutionOperation & operation, const Coordinates & image)
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
  // Sums of lengths: of nodes that are computed alone, of intervals, and of each node of intervals.
  double alone = 1;
  double cells[Axes]{};
  double nodes[Axes]{};
  for (int r = 0; r < Axes; ++r)
  {
    const int  a = axis[r];
    const auto take = [&](std::int64_t length, std::vector<VaryingInterval> cut) {
      double ofCells = 0;
      double ofNodes = 0;
      for (const VaryingInterval & interval : cut)
      {
        ofCells += static_cast<double>(length);
        ofNodes += static_cast<double>(length * interval.nodes);
      }
      const bool isBetter = intervals[r].empty() || ofNodes < nodes[r];
      if (isBetter)
      {
        cells[r] = ofCells;
        nodes[r] = ofNodes;
        intervals[r] = std::move(cut);
      }
      return isBetter;
    };
    double sum = 0;
    for (const VaryingInterval & interval : CutNodes(operation, a, image, image[a]))
    {
      sum += static_cast<double>(interval.upper - interval.lower + k[a] - 1);
    }
    alone *= sum;
    for (const FixedRows * fixed = FindFixedRows(2 * k[a]); r == 0 && fixed; fixed = FindFixedRows(fixed->length + 1))
    {
      rows = take(fixed->length, CutNodes(operation, a, image, fixed->length - (k[a] - 1))) ? fixed : rows;
    }
    for (const NodeColumns & one : GetNodeColumns())
    {
      const std::int64_t length = one.fixed->length;
      if (r > 0 && length >= 2 * k[a])
      {
        columns[r - 1] =
          take(length, CutVaryingAxis(operation, a, image[a], length - (k[a] - 1), 1)) ? &one : columns[r - 1];
      }
    }
    if (intervals[r].empty())
    {
      return;
    }
  }
  // Rows of small images are shorter than any that are transformed fast.
  std::int64_t longest = 0;
  for (const VaryingInterval & interval : intervals[0])
  {
    longest = std::max(longest, interval.upper - interval.lower + k[axis[0]] - 1);
  }
  const double blocks = nodes[0] * (6 * cells[1] * cells[2] + 2 * nodes[1] * cells[2] + nodes[1] * nodes[2]);
  if (2 * rows->length <= 3 * longest && blocks < 14 * alone)
  {
    traffic = blocks;
  }
}

/** One call: what all its launches share. */
class BlockRun
{
public:
  BlockRun(const KernelCall & call, const BlockLayout & layout, float * sums)
    : m_Call(call)
    , m_Sums(call)
    , m_Operation(static_cast<const VaryingConvolutionOperation &>(*call.operation))
    , m_Layout(layout)
    , m_Image(call.image.Extents())
    , m_Stream(static_cast<cudaStream_t>(call.stream))
    , m_Spectrum(static_cast<float2 *>(call.scratch))
    , m_Terms(m_Spectrum + layout.GetSpectrumBytes() / sizeof(float2))
    , m_Made(m_Terms + MostNodes * layout.GetSpectrumBytes() / sizeof(float2))
    , m_RowsThere(Twiddles(layout.rows->there))
    , m_RowsBack(Twiddles(layout.rows->back))
  {
    m_Sums.output = DenseView(sums, PixelType::Float32, call.output.box);
    for (int i = 0; i < 2; ++i)
    {
      m_There[i] = Twiddles(layout.columns[i]->fixed->there);
      m_Back[i] = Twiddles(layout.columns[i]->fixed->back);
    }
    for (int r = 0; r < Axes; ++r)
    {
      m_Weights[r] = GetNodeWeights<float>(call, layout.axis[r]);
    }
    m_KeepsWhole = this->HasRoomForWhole();
    m_Place = Spectrum{ layout.GetLength(0) / 2, layout.GetLength(0) / 2, layout.GetLength(1), layout.GetLength(2) };
  }

  void
  Run()
  {
    // Tiles have one index along the other axes.
    for (const Box & tile : CutIntoTiles(m_Call.output.box, m_Operation.GetTile(m_Image), m_Call.image))
    {
      for (const VaryingInterval & z : m_Layout.intervals[2])
      {
        for (const VaryingInterval & y : m_Layout.intervals[1])
        {
          for (const VaryingInterval & x : m_Layout.intervals[0])
          {
            RunBlock(tile, { &x, &y, &z });
          }
        }
      }
    }
  }

private:
  /** Adds what the nodes of three intervals contribute to a tile. */
  void
  RunBlock(const Box & tile, std::initializer_list<const VaryingInterval *> intervals)
  {
    const bool spreads = Spreads(m_Operation);
    Box        support = tile;
    int        r = 0;
    for (const VaryingInterval * const interval : intervals)
    {
      m_Nodes[r] = *interval;
      support.lower[m_Layout.axis[r]] = interval->lower;
      support.upper[m_Layout.axis[r++]] = interval->upper;
    }
    const Box reach = m_Operation.GetReach(support, tile);
    const Box kept = Intersect(reach, m_Call.output.box);
    if (reach.IsEmpty() || kept.IsEmpty())
    {
      return;
    }
    const ImageConvolutionOperation node = m_Operation.GetNodeOperation(NumberOf(0, 0));
    ConvolutionBlock                block(node, reach, m_Image, spreads ? &support : nullptr);
    for (r = 0; r < Axes; ++r)
    {
      block.role[r].length = m_Layout.GetLength(r);
      // Weights of what is read, or of what is kept.
      m_First[r] = spreads ? block.role[r].lower : kept.lower[m_Layout.axis[r]];
    }
    if (block.role[0].input <= 0 || block.role[1].input <= 0 || block.role[2].input <= 0)
    {
      return;
    }
    TransformRows(node, block);
    Multiply(block, reach, kept);
    StoreRows(node, block, reach, kept);
  }

  /** The node at these places of the intervals along the second and last axis. */
  std::int64_t
  NumberOf(int i, int j) const
  {
    Coordinates position{};
    position[m_Layout.axis[0]] = m_Nodes[0].node;
    position[m_Layout.axis[1]] = m_Nodes[1].node + i;
    position[m_Layout.axis[2]] = m_Nodes[2].node + j;
    const Coordinates strides = DenseStrides(m_Operation.nodes);
    std::int64_t      number = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      number += position[a] * strides[a];
    }
    return number;
  }

  const float *
  WeightsOf(int r, int node) const
  {
    return m_Weights[r] + static_cast<std::int64_t>(node) * m_Image[m_Layout.axis[r]] + m_First[r];
  }
  NodeWeights
  NodesOf(int r) const
  {
    NodeWeights nodes{ m_Nodes[r].nodes, {} };
    for (int i = 0; i < nodes.nodes; ++i)
    {
      nodes.weights[i] = WeightsOf(r, m_Nodes[r].node + i);
    }
    return nodes;
  }
  ColumnSet
  ColumnsOf(std::int64_t live, std::int64_t from, std::int64_t to) const
  {
    return { m_Place.pitch, m_Place.pitch, m_Layout.GetPlane(), live, from, to };
  }

  void
  TransformRows(const ImageConvolutionOperation & node, const ConvolutionBlock & block) const
  {
    RowSource source = MakeImageSource(m_Call, node, block);
    source.weights = Spreads(m_Operation) ? WeightsOf(0, m_Nodes[0].node) : nullptr;
    m_Layout.rows->forward(m_Stream, source, m_Place, PlaneRange{ 0, block.role[2].input }, m_Spectrum, m_RowsThere);
  }

  /** Along the second and the last axis there, times the kernels, and back. */
  void
  Multiply(const ConvolutionBlock & block, const Box & reach, const Box & kept)
  {
    const int          y = m_Layout.axis[1];
    const int          z = m_Layout.axis[2];
    const FixedColumns second = *m_Layout.columns[0]->fixed;
    const NodeColumns  last = *m_Layout.columns[1];
    const std::int64_t plane = m_Layout.GetPlane();
    const bool         spreads = Spreads(m_Operation);
    const int          order = spreads ? 1 : 0;
    const std::int64_t from = block.role[1].crop + kept.lower[y] - reach.lower[y];
    const ColumnSet    there = ColumnsOf(block.role[1].input, 0, 0);
    const ColumnSet    back = ColumnsOf(0, from, from + kept.Extent(y));
    NodeProduct        product{};
    product.columns = plane;
    product.live = static_cast<int>(block.role[2].input);
    product.crop = static_cast<int>(block.role[2].crop + kept.lower[z] - reach.lower[z]);
    product.kept = static_cast<int>(kept.Extent(z));
    product.terms = { NodesOf(1), (spreads ? block.role[2].input : kept.Extent(z)) * plane };
    product.last = NodesOf(2);
    if (!this->FindSpectra(block, product, true))
    {
      product.kernelLive = static_cast<int>(block.role[2].kernel);
      (void)this->FindSpectra(block, product, false);
    }
    const auto terms = m_Layout.columns[0]->terms[order];
    if (spreads)
    {
      terms(m_Stream, block.role[2].input, there, product.terms, m_Spectrum, m_Terms, m_There[0]);
      last.product[order](m_Stream, product, m_Terms, m_Spectrum, m_There[1], m_Back[1]);
      second.inverse(m_Stream, kept.Extent(z), back, m_Spectrum, m_Back[0]);
      return;
    }
    second.forward(m_Stream, block.role[2].input, there, m_Spectrum, m_There[0]);
    last.product[order](m_Stream, product, m_Spectrum, m_Terms, m_There[1], m_Back[1]);
    terms(m_Stream, kept.Extent(z), back, product.terms, m_Terms, m_Spectrum, m_Back[0]);
  }

  void
  StoreRows(const ImageConvolutionOperation & node, const ConvolutionBlock & block, const Box & reach,
            const Box & kept) const
  {
    const int x = m_Layout.axis[0];
    RowTarget target = MakeTarget<float>(m_Sums, node, block, kept);
    target.crop += kept.lower[x] - reach.lower[x];
    // The rows' transforms are half as long.
    target.scale *= 2;
    target.adds = true;
    target.weights = Spreads(m_Operation) ? nullptr : WeightsOf(0, m_Nodes[0].node);
    m_Layout.rows->inverse(
      m_Stream, target, m_Place, PlaneRange{ 0, kept.Extent(m_Layout.axis[2]) }, m_Spectrum, m_RowsBack);
  }

  /** The kernels' transforms along all axes, which take much room, or along all but the last. False if they are not
   * kept. */
  bool
  FindSpectra(const ConvolutionBlock & block, NodeProduct & product, bool whole) const
  {
    for (int i = 0; i < product.terms.nodes.nodes; ++i)
    {
      for (int j = 0; j < product.last.nodes; ++j)
      {
        product.kernels[i][j] = whole && !m_KeepsWhole ? nullptr : GetSpectrum(block, i, j, whole);
        if (!product.kernels[i][j])
        {
          return false;
        }
      }
    }
    return true;
  }

  /** A kernel's transform: kept if there is room, else made in scratch, or nullptr if it is `whole`. */
  const float2 *
  GetSpectrum(const ConvolutionBlock & block, int i, int j, bool whole) const
  {
    const ConvolutionKernel & kernel = *m_Operation.kernels[static_cast<std::size_t>(NumberOf(i, j))];
    const std::size_t         ofPlanes = m_Layout.GetKernelBytes(m_Operation);
    std::string               key =
      kernel.GetKey() + " rows of " + std::to_string(block.role[0].length) + " " + std::to_string(block.role[1].length);
    key += whole ? " " + std::to_string(block.role[2].length) : "";
    const std::size_t  bytes = whole ? m_Layout.GetSpectrumBytes() : ofPlanes;
    const void * const kept = m_Call.tables->GetMade(key, bytes, [&](void * memory) {
      MakeSpectrum(kernel, block, whole, static_cast<float2 *>(memory));
      CheckCuda(cudaStreamSynchronize(m_Stream), "cudaStreamSynchronize");
    });
    if (kept || whole)
    {
      return static_cast<const float2 *>(kept);
    }
    float2 * const made = m_Made + static_cast<std::size_t>(i * MostNodes + j) * (bytes / sizeof(float2));
    MakeSpectrum(kernel, block, false, made);
    return made;
  }

  void
  MakeSpectrum(const ConvolutionKernel & kernel, const ConvolutionBlock & block, bool whole, float2 * out) const
  {
    const PlaneRange planes{ 0, block.role[2].kernel };
    m_Layout.rows->forward(m_Stream, MakeKernelSource<float>(m_Call, kernel, block), m_Place, planes, out, m_RowsThere);
    m_Layout.columns[0]->fixed->forward(m_Stream, planes.count, ColumnsOf(block.role[1].kernel, 0, 0), out, m_There[0]);
    if (whole)
    {
      const std::int64_t plane = m_Layout.GetPlane();
      m_Layout.columns[1]->fixed->forward(
        m_Stream, 1, ColumnSet{ plane, plane, 0, planes.count, 0, 0 }, out, m_There[1]);
    }
  }

  /** Whether devices keep all kernels' transforms along all axes after a run, and those of the other direction. */
  bool
  HasRoomForWhole() const
  {
    std::size_t free = 0;
    std::size_t total = 0;
    CheckCuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return m_Operation.kernels.size() * m_Layout.GetSpectrumBytes() <= total / 32;
  }

  const float2 *
  Twiddles(const FixedTwiddles & fixed) const
  {
    return GetTable<float2>(m_Call, fixed.GetKey(), [&fixed] { return fixed.Make(); });
  }

  const KernelCall &                  m_Call;
  KernelCall                          m_Sums; ///< the call, with its sums as output
  const VaryingConvolutionOperation & m_Operation;
  const BlockLayout &                 m_Layout;
  const Coordinates                   m_Image;
  const cudaStream_t                  m_Stream;
  float2 * const                      m_Spectrum;
  float2 * const                      m_Terms;
  float2 * const                      m_Made; ///< spectra of kernels that are not kept
  const float2 * const                m_RowsThere;
  const float2 * const                m_RowsBack;
  const float2 *                      m_There[2]{};
  const float2 *                      m_Back[2]{};
  const float *                       m_Weights[Axes]{};
  bool                                m_KeepsWhole{ false };
  Spectrum                            m_Place{};
  VaryingInterval                     m_Nodes[Axes]{};
  std::int64_t                        m_First[Axes]{};
};

} // namespace

bool
HasVaryingBlocks(const VaryingConvolutionOperation & operation, const Coordinates & image, PixelType kind)
{
  return !UsesDouble(kind) && BlockLayout(operation, image).Exists();
}

std::size_t
ScratchOfVaryingBlocks(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  const BlockLayout layout(operation, image);
  return (1 + MostNodes) * layout.GetSpectrumBytes() + MostNodes * MostNodes * layout.GetKernelBytes(operation);
}

std::size_t
TableBytesOfVaryingBlocks(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  const BlockLayout layout(operation, image);
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
CostOfVaryingBlocks(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  const BlockLayout layout(operation, image);
  double            images = static_cast<double>(Box::FromExtent(image).NumberOfVoxels());
  for (const int a : layout.axis)
  {
    images /= static_cast<double>(image[a]);
  }
  return images * sizeof(float) * layout.traffic;
}

void
RunVaryingBlocks(const KernelCall & call, float * sums)
{
  const auto &      operation = static_cast<const VaryingConvolutionOperation &>(*call.operation);
  const BlockLayout layout(operation, call.image.Extents());
  BlockRun(call, layout, sums).Run();
}

} // namespace chunkwise
