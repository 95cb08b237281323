/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaVaryingBlocks.h"
#include "chunkwiseCudaConvolutionRows.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaNodeColumns.h"
#include "chunkwiseCudaVaryingCells.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseRegions.h"
#include "chunkwiseResourceCache.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace chunkwise
{

namespace
{

constexpr int Axes = 3;

/** Blocks beside each other along the first axis share launches, so many that their spectra take at most so much. */
constexpr std::size_t TogetherBytes = std::size_t{ 512 } << 20;
constexpr std::size_t MostTogether = 4;

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
  const NodeColumns *          longest[2]{};
  std::vector<VaryingInterval> intervals[Axes];
  /** The shortest columns that serve each interval along the second and the last axis. */
  std::vector<const NodeColumns *> columns[2];
  std::size_t                      together{ 1 }; ///< blocks along the first axis
  double                           traffic{ 0 };  ///< of an image, in points

  BlockLayout(const VaryingConvolutionOperation & operation, const Coordinates & image);

  bool
  Exists() const
  {
    return traffic > 0;
  }
  std::int64_t
  GetLength(int r) const
  {
    return r == 0 ? rows->length : longest[r - 1]->fixed->length;
  }
  /** The bytes of all kernels' transforms, each of all lengths that it is needed with. */
  double
  GetBytesOfSpectra() const
  {
    double bytes = static_cast<double>(intervals[0].size()) * static_cast<double>(GetLength(0) / 2) * sizeof(float2);
    for (int r = 1; r < Axes; ++r)
    {
      std::set<std::pair<int, std::int64_t>> needed;
      for (std::size_t i = 0; i < intervals[r].size(); ++i)
      {
        for (int node = 0; node < intervals[r][i].nodes; ++node)
        {
          needed.emplace(intervals[r][i].node + node, columns[r - 1][i]->fixed->length);
        }
      }
      double points = 0;
      for (const auto & one : needed)
      {
        points += static_cast<double>(one.second);
      }
      bytes *= points;
    }
    return bytes;
  }
  /** Complex numbers of a plane across the last axis, of one block. */
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
  /** The bytes of scratch of a block. */
  std::size_t
  GetBytes(const VaryingConvolutionOperation & operation) const
  {
    return (1 + MostNodes) * GetSpectrumBytes() + MostNodes * MostNodes * GetKernelBytes(operation);
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
        longest[r - 1] =
          take(length, CutVaryingAxis(operation, a, image[a], length - (k[a] - 1), 1)) ? &one : longest[r - 1];
      }
    }
    if (intervals[r].empty())
    {
      return;
    }
    for (std::size_t i = 0; r > 0 && i < intervals[r].size(); ++i)
    {
      const std::int64_t least = intervals[r][i].upper - intervals[r][i].lower + k[a] - 1;
      const auto &       all = GetNodeColumns();
      columns[r - 1].push_back(&*std::find_if(all.begin(), all.end(), [&](const NodeColumns & one) {
        return one.fixed->length >= std::max(least, 2 * k[a]);
      }));
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
    const std::size_t count = intervals[0].size();
    const std::size_t most = std::max<std::size_t>(1, std::min(MostTogether, TogetherBytes / GetBytes(operation)));
    const std::size_t groups = (count + most - 1) / most;
    together = (count + groups - 1) / groups;
  }
}

/** Made once: plans ask for it again and again. */
std::shared_ptr<const BlockLayout>
GetLayout(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  // Never destroyed: runs may outlive static destruction in other threads.
  static auto &     cache = *new ResourceCache;
  const std::string key = KeyOfVaryingLayout("blocks ", operation, image) + BoundaryModeName(operation.boundary.mode) +
                          ExactText(operation.boundary.constant);
  return std::static_pointer_cast<const BlockLayout>(cache.GetOrMake(key, [&] {
    const auto  layout = std::make_shared<BlockLayout>(operation, image);
    std::size_t bytes = sizeof(BlockLayout);
    for (const auto & intervals : layout->intervals)
    {
      bytes += intervals.size() * sizeof(VaryingInterval);
    }
    return ResourceCache::Entry{ layout, bytes };
  }));
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
    , m_Terms(m_Spectrum + layout.together * layout.GetSpectrumBytes() / sizeof(float2))
    , m_Made(m_Terms + MostNodes * layout.together * layout.GetSpectrumBytes() / sizeof(float2))
    , m_RowsThere(Twiddles(layout.rows->there))
    , m_RowsBack(Twiddles(layout.rows->back))
  {
    m_Sums.output = DenseView(sums, PixelType::Float32, call.output.box);
    for (int r = 0; r < Axes; ++r)
    {
      m_Weights[r] = GetNodeWeights<float>(call, layout.axis[r]);
    }
    m_KeepsWhole = this->HasRoomForWhole();
  }

  void
  Run()
  {
    const std::vector<VaryingInterval> & nodes = m_Layout.intervals[0];
    // Tiles have one index along the other axes.
    for (const Box & tile : CutIntoTiles(m_Call.output.box, m_Operation.GetTile(m_Image), m_Call.image))
    {
      for (std::size_t z = 0; z < m_Layout.intervals[2].size(); ++z)
      {
        SetInterval(2, z);
        for (std::size_t y = 0; y < m_Layout.intervals[1].size(); ++y)
        {
          SetInterval(1, y);
          for (std::size_t first = 0; first < nodes.size(); first += m_Layout.together)
          {
            RunBlocks(tile, first, std::min(first + m_Layout.together, nodes.size()));
          }
        }
      }
    }
  }

private:
  /** A block of a group: all are alike along the second and the last axis. */
  struct Part
  {
    int              node; ///< along the first axis
    ConvolutionBlock block;
    Box              reach;
    Box              kept;
  };

  /** The interval along the second or the last axis. */
  void
  SetInterval(int r, std::size_t i)
  {
    const NodeColumns & columns = *m_Layout.columns[r - 1][i];
    m_Nodes[r] = m_Layout.intervals[r][i];
    m_Columns[r - 1] = &columns;
    m_There[r - 1] = Twiddles(columns.fixed->there);
    m_Back[r - 1] = Twiddles(columns.fixed->back);
  }
  std::int64_t
  LengthOf(int r) const
  {
    return r == 0 ? m_Layout.rows->length : m_Columns[r - 1]->fixed->length;
  }

  /** Adds what the nodes [first, last) along the first axis and those of the intervals contribute to a tile. */
  void
  RunBlocks(const Box & tile, std::size_t first, std::size_t last)
  {
    const bool spreads = Spreads(m_Operation);
    m_Parts.clear();
    const ImageConvolutionOperation node = m_Operation.GetNodeOperation(0);
    for (std::size_t i = first; i < last; ++i)
    {
      const VaryingInterval & x = m_Layout.intervals[0][i];
      Box                     support = tile;
      int                     r = 0;
      for (const VaryingInterval * const interval : { &x, &std::as_const(m_Nodes[1]), &std::as_const(m_Nodes[2]) })
      {
        support.lower[m_Layout.axis[r]] = interval->lower;
        support.upper[m_Layout.axis[r++]] = interval->upper;
      }
      const Box reach = m_Operation.GetReach(support, tile);
      const Box kept = Intersect(reach, m_Call.output.box);
      if (reach.IsEmpty() || kept.IsEmpty())
      {
        continue;
      }
      Part part{ x.node, ConvolutionBlock(node, reach, m_Image, spreads ? &support : nullptr), reach, kept };
      bool hasInput = true;
      for (r = 0; r < Axes; ++r)
      {
        part.block.role[r].length = LengthOf(r);
        hasInput = hasInput && part.block.role[r].input > 0;
      }
      if (hasInput)
      {
        m_Parts.push_back(part);
      }
    }
    if (m_Parts.empty())
    {
      return;
    }
    const std::int64_t half = LengthOf(0) / 2;
    m_Place = Spectrum{ half, half * static_cast<std::int64_t>(m_Parts.size()), LengthOf(1), LengthOf(2) };
    m_Plane = m_Place.pitch * m_Place.rows;
    TransformRows(node);
    Multiply();
    StoreRows(node);
  }

  /** The node at these places of the intervals along the second and last axis. */
  std::int64_t
  NumberOf(const Part & part, int i, int j) const
  {
    Coordinates position{};
    position[m_Layout.axis[0]] = part.node;
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

  /** Weights of what is read, or of what is kept. */
  const float *
  WeightsOf(const Part & part, int r, int node) const
  {
    const std::int64_t first = Spreads(m_Operation) ? part.block.role[r].lower : part.kept.lower[m_Layout.axis[r]];
    return m_Weights[r] + static_cast<std::int64_t>(node) * m_Image[m_Layout.axis[r]] + first;
  }
  NodeWeights
  NodesOf(int r) const
  {
    NodeWeights nodes{ m_Nodes[r].nodes, {} };
    for (int i = 0; i < nodes.nodes; ++i)
    {
      nodes.weights[i] = WeightsOf(m_Parts[0], r, m_Nodes[r].node + i);
    }
    return nodes;
  }
  ColumnSet
  ColumnsOf(std::int64_t live, std::int64_t from, std::int64_t to) const
  {
    return { m_Place.pitch, m_Place.pitch, m_Plane, live, from, to };
  }
  /** The place of the first row of part `i`. */
  std::int64_t
  OffsetOf(std::size_t i) const
  {
    return static_cast<std::int64_t>(i) * m_Place.half;
  }

  void
  TransformRows(const ImageConvolutionOperation & node) const
  {
    for (std::size_t i = 0; i < m_Parts.size(); ++i)
    {
      const Part & part = m_Parts[i];
      RowSource    source = MakeImageSource(m_Call, node, part.block);
      source.weights = Spreads(m_Operation) ? WeightsOf(part, 0, part.node) : nullptr;
      const PlaneRange planes{ 0, part.block.role[2].input };
      m_Layout.rows->forward(m_Stream, source, m_Place, planes, m_Spectrum + OffsetOf(i), m_RowsThere);
    }
  }

  /** Along the second and the last axis there, times the kernels, and back. */
  void
  Multiply()
  {
    const auto & [node, block, reach, kept] = m_Parts[0];
    const int          y = m_Layout.axis[1];
    const int          z = m_Layout.axis[2];
    const FixedColumns second = *m_Columns[0]->fixed;
    const NodeColumns  last = *m_Columns[1];
    const bool         spreads = Spreads(m_Operation);
    const int          order = spreads ? 1 : 0;
    const std::int64_t from = block.role[1].crop + kept.lower[y] - reach.lower[y];
    const ColumnSet    there = ColumnsOf(block.role[1].input, 0, 0);
    const ColumnSet    back = ColumnsOf(0, from, from + kept.Extent(y));
    NodeProduct        product{};
    product.columns = m_Plane;
    product.live = static_cast<int>(block.role[2].input);
    product.crop = static_cast<int>(block.role[2].crop + kept.lower[z] - reach.lower[z]);
    product.kept = static_cast<int>(kept.Extent(z));
    product.terms = { NodesOf(1), (spreads ? block.role[2].input : kept.Extent(z)) * m_Plane };
    product.last = NodesOf(2);
    if (!this->FindSpectra(product, true))
    {
      product.kernelLive = static_cast<int>(block.role[2].kernel);
      (void)this->FindSpectra(product, false);
    }
    const auto terms = m_Columns[0]->terms[order];
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
  StoreRows(const ImageConvolutionOperation & node) const
  {
    for (std::size_t i = 0; i < m_Parts.size(); ++i)
    {
      const Part & part = m_Parts[i];
      const int    x = m_Layout.axis[0];
      RowTarget    target = MakeTarget<float>(m_Sums, node, part.block, part.kept);
      target.crop += part.kept.lower[x] - part.reach.lower[x];
      // The rows' transforms are half as long.
      target.scale *= 2;
      target.adds = true;
      target.weights = Spreads(m_Operation) ? nullptr : WeightsOf(part, 0, part.node);
      const PlaneRange planes{ 0, part.kept.Extent(m_Layout.axis[2]) };
      m_Layout.rows->inverse(m_Stream, target, m_Place, planes, m_Spectrum + OffsetOf(i), m_RowsBack);
    }
  }

  /** The kernels' transforms along all axes, which take much room, or along all but the last. False if they are not
   * kept. */
  bool
  FindSpectra(NodeProduct & product, bool whole) const
  {
    for (int i = 0; i < product.terms.nodes.nodes; ++i)
    {
      for (int j = 0; j < product.last.nodes; ++j)
      {
        product.kernels[i][j] = whole && !m_KeepsWhole ? nullptr : GetSpectra(i, j, whole);
        if (!product.kernels[i][j])
        {
          return false;
        }
      }
    }
    return true;
  }

  /** The transforms of all parts' kernels, side by side as their blocks are: kept if there is room, else made in
   * scratch, or nullptr if they are `whole`. */
  const float2 *
  GetSpectra(int i, int j, bool whole) const
  {
    std::string key = "blocks of " + std::to_string(LengthOf(0)) + " " + std::to_string(LengthOf(1));
    key += whole ? " " + std::to_string(LengthOf(2)) : "";
    for (const Part & part : m_Parts)
    {
      key += ";" + m_Operation.kernels[static_cast<std::size_t>(NumberOf(part, i, j))]->GetKey();
    }
    const std::int64_t planes = whole ? LengthOf(2) : m_Parts[0].block.role[2].kernel;
    const std::size_t  bytes = static_cast<std::size_t>(planes * m_Plane) * sizeof(float2);
    const void * const kept = m_Call.tables->GetMade(key, bytes, [&](void * memory) {
      MakeSpectra(i, j, whole, static_cast<float2 *>(memory));
      CheckCuda(cudaStreamSynchronize(m_Stream), "cudaStreamSynchronize");
    });
    if (kept || whole)
    {
      return static_cast<const float2 *>(kept);
    }
    float2 * const made = m_Made + static_cast<std::size_t>(i * MostNodes + j) * m_Layout.together *
                                     (m_Layout.GetKernelBytes(m_Operation) / sizeof(float2));
    MakeSpectra(i, j, false, made);
    return made;
  }

  void
  MakeSpectra(int i, int j, bool whole, float2 * out) const
  {
    const ConvolutionBlock & block = m_Parts[0].block;
    const PlaneRange         planes{ 0, block.role[2].kernel };
    for (std::size_t p = 0; p < m_Parts.size(); ++p)
    {
      const ConvolutionKernel & kernel = *m_Operation.kernels[static_cast<std::size_t>(NumberOf(m_Parts[p], i, j))];
      m_Layout.rows->forward(
        m_Stream, MakeKernelSource<float>(m_Call, kernel, block), m_Place, planes, out + OffsetOf(p), m_RowsThere);
    }
    m_Columns[0]->fixed->forward(m_Stream, planes.count, ColumnsOf(block.role[1].kernel, 0, 0), out, m_There[0]);
    if (whole)
    {
      m_Columns[1]->fixed->forward(m_Stream, 1, ColumnSet{ m_Plane, m_Plane, 0, planes.count, 0, 0 }, out, m_There[1]);
    }
  }

  /** Whether devices keep all kernels' transforms along all axes after a run, and those of the other direction. */
  bool
  HasRoomForWhole() const
  {
    std::size_t free = 0;
    std::size_t total = 0;
    CheckCuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return 20 * m_Layout.GetBytesOfSpectra() <= static_cast<double>(total);
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
  std::vector<Part>                   m_Parts;
  Spectrum                            m_Place{}; ///< of all parts: rows of one follow those of the one before
  std::int64_t                        m_Plane{ 0 };
  VaryingInterval                     m_Nodes[Axes]{}; ///< along the second and the last axis
  const NodeColumns *                 m_Columns[2]{};
};

} // namespace

bool
HasVaryingBlocks(const VaryingConvolutionOperation & operation, const Coordinates & image, PixelType kind)
{
  return !UsesDouble(kind) && GetLayout(operation, image)->Exists();
}

std::size_t
ScratchOfVaryingBlocks(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  const auto layout = GetLayout(operation, image);
  return layout->together * layout->GetBytes(operation);
}

std::size_t
TableBytesOfVaryingBlocks(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  const auto layout = GetLayout(operation, image);
  const auto bytes = [](std::int64_t numbers) { return RoundUp(static_cast<std::size_t>(numbers) * sizeof(float)); };
  // Weights of kernels and of nodes, and twiddles there and back.
  std::size_t sum = operation.kernels.size() * bytes(operation.kernels[0]->GetNumberOfTaps());
  for (int r = 0; r < Axes; ++r)
  {
    const int a = layout->axis[r];
    sum += bytes(operation.nodes[a] * image[a]) + 2 * bytes(2 * layout->GetLength(r));
  }
  // Shorter columns have other twiddles.
  for (const NodeColumns & columns : GetNodeColumns())
  {
    sum += 2 * bytes(2 * columns.fixed->length);
  }
  return sum;
}

double
CostOfVaryingBlocks(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  const auto layout = GetLayout(operation, image);
  double     images = static_cast<double>(Box::FromExtent(image).NumberOfVoxels());
  for (const int a : layout->axis)
  {
    images /= static_cast<double>(image[a]);
  }
  return images * sizeof(float) * layout->traffic;
}

void
RunVaryingBlocks(const KernelCall & call, float * sums)
{
  const auto & operation = static_cast<const VaryingConvolutionOperation &>(*call.operation);
  const auto   layout = GetLayout(operation, call.image.Extents());
  BlockRun(call, *layout, sums).Run();
}

} // namespace chunkwise
