/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaVaryingCells.h"
#include "chunkwiseCudaCellFft.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseError.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseReservedTables.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace chunkwise
{

namespace
{

/** Cells that are transformed together have at most so many bytes. Fewer at a time are slower: each launch ends with
 * blocks that the device waits for. */
constexpr std::size_t GroupBytes = std::size_t{ 512 } << 20;
/** Blocks of a launch that a large device runs at once. */
constexpr double BlocksAtOnce = 400;
/** The most bytes of spectra that are kept. */
constexpr std::size_t MostSpectraBytes = std::size_t{ 1 } << 30;
/** Neighbouring intervals between nodes that a cell may span. */
constexpr int MostMerged = 8;

/** How the planes of an image are cut into cells. */
struct CellLayout
{
  int                          axis[2]{ -1, -1 };
  const CellRows *             rows{ nullptr };
  const CellColumns *          columns{ nullptr };
  std::vector<VaryingInterval> intervals[2];
  int                          cellRows{ 0 };
  int                          reachRows{ 0 }; ///< of a cell and what its windows reach
  int                          terms{ 0 };
  int                          colors[2]{ 1, 1 }; ///< of cells whose reaches do not meet
  std::size_t                  spectraBytes{ 0 };

  bool
  Exists() const
  {
    return rows != nullptr;
  }
  std::int64_t
  GetColumns() const
  {
    return rows->fixed->length / 2;
  }
  std::size_t
  GetSpectrumBytes() const
  {
    return static_cast<std::size_t>(reachRows * GetColumns()) * sizeof(float2);
  }
  std::size_t
  GetTermBytes() const
  {
    return static_cast<std::size_t>(cellRows * GetColumns()) * sizeof(float2);
  }
  std::size_t
  GetCellBytes() const
  {
    return GetSpectrumBytes() + static_cast<std::size_t>(terms) * GetTermBytes();
  }
};

bool
Spreads(const VaryingConvolutionOperation & operation)
{
  return operation.order == VaryingOrder::WeightThenConvolve;
}

/** The interval that the windows of an interval's voxels reach, or to which its voxels spread. */
VaryingInterval
ReachOf(const VaryingConvolutionOperation & operation, int a, const VaryingInterval & interval)
{
  const std::int64_t above = operation.kernels[0]->GetCenter()[a];
  const std::int64_t below = operation.kernels[0]->GetExtent()[a] - 1 - above;
  VaryingInterval    reach = interval;
  reach.lower -= Spreads(operation) ? above : below;
  reach.upper += Spreads(operation) ? below : above;
  return reach;
}

bool
IsCut(const VaryingConvolutionOperation & operation, int a, std::int64_t n, const VaryingInterval & interval)
{
  const VaryingInterval reach = ReachOf(operation, a, interval);
  return reach.lower < 0 || reach.upper > n;
}

/** Sums over the cells of an axis. */
struct AxisSums
{
  double cells{ 0 };
  double nodes{ 0 };
  double cutNodes{ 0 };
  double reach{ 0 };
  /** Voxels, times the nodes beside the first that contribute to them. */
  double further{ 0 };
  double cutFurther{ 0 };

  AxisSums(const VaryingConvolutionOperation & operation, int a, std::int64_t n,
           const std::vector<VaryingInterval> & intervals)
    : cells(static_cast<double>(intervals.size()))
  {
    for (const VaryingInterval & interval : intervals)
    {
      const VaryingInterval reached = ReachOf(operation, a, interval);
      const double          more = static_cast<double>((interval.nodes - 1) * (interval.upper - interval.lower));
      const bool cut = operation.boundary.mode == BoundaryMode::Renormalized && IsCut(operation, a, n, interval);
      nodes += interval.nodes;
      cutNodes += cut ? interval.nodes : 0;
      reach += static_cast<double>(reached.upper - reached.lower);
      further += more;
      cutFurther += cut ? more : 0;
    }
  }
};

/** The time of an image's cells, in that of a transformed point. Terms of cells whose nodes have separate factors are
 * one for each node. */
double
CostOfCells(const AxisSums & x, const AxisSums & y, double rowPoints, double columnPoints, double height)
{
  const double apart = x.cutNodes * y.further + (x.nodes - x.cutNodes) * y.cutFurther;
  const double points = rowPoints * columnPoints * (x.cells * y.cells + x.nodes * y.nodes);
  const double waves = std::ceil(x.cells * y.cells * rowPoints / (8 * BlocksAtOnce)) /
                       (x.cells * y.cells * rowPoints / (8 * BlocksAtOnce));
  // Longer columns take so many registers that fewer blocks run at once.
  const double columns = points * waves * (columnPoints > 400 ? 1.3 : 1.0);
  return columns + rowPoints * (1.1 * x.cells * y.reach + 1.25 * x.nodes * height + 2.5 * apart);
}

/** The most terms of a cell: one for each node along the first axis, or for each node where factors differ from node to
 * node. */
int
MostTerms(const VaryingConvolutionOperation & operation, const CellLayout & layout, const Coordinates & image)
{
  int  nodes[2]{};
  int  cutNodes[2]{};
  bool apart = operation.boundary.mode == BoundaryMode::Renormalized;
  for (int i = 0; i < 2; ++i)
  {
    for (const VaryingInterval & interval : layout.intervals[i])
    {
      nodes[i] = std::max(nodes[i], interval.nodes);
      if (apart && IsCut(operation, layout.axis[i], image[layout.axis[i]], interval))
      {
        cutNodes[i] = std::max(cutNodes[i], interval.nodes);
      }
    }
  }
  return std::max({ nodes[0], cutNodes[0] * nodes[1], nodes[0] * cutNodes[1] });
}

/** Cells between two whose reaches never meet. */
int
ColorsOf(const VaryingConvolutionOperation & operation, int a, const std::vector<VaryingInterval> & intervals)
{
  std::size_t colors = 1;
  for (std::size_t i = 0; i < intervals.size(); ++i)
  {
    while (i + colors < intervals.size() &&
           ReachOf(operation, a, intervals[i]).upper > ReachOf(operation, a, intervals[i + colors]).lower)
    {
      ++colors;
    }
  }
  return static_cast<int>(colors);
}

/** The lengths and cells of the least time, as points that are transformed or moved. */
CellLayout
MakeLayout(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  CellLayout          best;
  const Coordinates & k = operation.kernels[0]->GetExtent();
  int                 axes = 0;
  if (!operation.HasPlanesAsTiles(image))
  {
    return best;
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (k[a] > 1)
    {
      if (axes == 2)
      {
        return best;
      }
      best.axis[axes++] = a;
    }
    else if (operation.nodes[a] > 1)
    {
      return best;
    }
  }
  if (axes != 2)
  {
    return best;
  }
  const auto cut = [&](int i, std::int64_t length, int merged) {
    const int a = best.axis[i];
    return CutVaryingAxis(operation, a, image[a], length - (k[a] - 1), merged);
  };
  const auto node = static_cast<double>(operation.kernels.size());
  double     least = 0;
  int        merged[2]{};
  for (int mergedX = 1; mergedX <= MostMerged; mergedX *= 2)
  {
    for (const CellRows & rows : GetCellRows())
    {
      if (rows.fixed->length < 2 * k[best.axis[0]])
      {
        continue;
      }
      const auto sums = [&](int i, const std::vector<VaryingInterval> & intervals) {
        return AxisSums(operation, best.axis[i], image[best.axis[i]], intervals);
      };
      const AxisSums x = sums(0, cut(0, rows.fixed->length, mergedX));
      for (int mergedY = 1; mergedY <= MostMerged; mergedY *= 2)
      {
        for (const CellColumns & columns : GetCellColumns())
        {
          const auto rowPoints = static_cast<double>(rows.fixed->length) / 2;
          const auto columnPoints = static_cast<double>(columns.fixed->length);
          if (columns.fixed->length < 2 * k[best.axis[1]] ||
              node * rowPoints * columnPoints * sizeof(float2) > static_cast<double>(MostSpectraBytes))
          {
            continue;
          }
          const AxisSums y = sums(1, cut(1, columns.fixed->length, mergedY));
          const double   cost = CostOfCells(x, y, rowPoints, columnPoints, static_cast<double>(image[best.axis[1]]));
          if (!best.Exists() || cost < least)
          {
            least = cost;
            best.rows = &rows;
            best.columns = &columns;
            merged[0] = mergedX;
            merged[1] = mergedY;
          }
        }
      }
    }
  }
  if (best.Exists())
  {
    best.intervals[0] = cut(0, best.rows->fixed->length, merged[0]);
    best.intervals[1] = cut(1, best.columns->fixed->length, merged[1]);
    for (const VaryingInterval & interval : best.intervals[1])
    {
      best.cellRows = std::max(best.cellRows, static_cast<int>(interval.upper - interval.lower));
    }
    best.reachRows = best.cellRows + static_cast<int>(k[best.axis[1]]) - 1;
    for (int i = 0; i < 2; ++i)
    {
      best.colors[i] = ColorsOf(operation, best.axis[i], best.intervals[i]);
    }
    best.terms = MostTerms(operation, best, image);
    best.spectraBytes = operation.kernels.size() *
                        static_cast<std::size_t>(best.GetColumns() * best.columns->fixed->length) * sizeof(float2);
  }
  return best;
}

std::shared_ptr<const CellLayout>
GetLayout(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  // Never destroyed: runs may outlive static destruction in other threads.
  static auto & cache = *new ResourceCache;
  return std::static_pointer_cast<const CellLayout>(
    cache.GetOrMake(KeyOfVaryingLayout("cells ", operation, image), [&] {
      const auto        layout = std::make_shared<CellLayout>(MakeLayout(operation, image));
      const std::size_t intervals = layout->intervals[0].size() + layout->intervals[1].size();
      return ResourceCache::Entry{ layout, sizeof(CellLayout) + intervals * sizeof(VaryingInterval) };
    }));
}

/** The most cells that `extent` consecutive voxels of an axis can meet. */
std::int64_t
MostCells(const std::vector<VaryingInterval> & intervals, std::int64_t extent)
{
  std::size_t most = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i)
  {
    // From the last voxel of cell i on.
    while (last + 1 < intervals.size() && intervals[last + 1].lower < intervals[i].upper - 1 + extent)
    {
      ++last;
    }
    most = std::max(most, last - i + 1);
  }
  return static_cast<std::int64_t>(most);
}

/** The cells that contribute to [lower, upper) of an axis. */
std::vector<CellInterval>
CutChunk(const VaryingConvolutionOperation & operation, const std::vector<VaryingInterval> & intervals, int a,
         std::int64_t lower, std::int64_t upper, std::int64_t n)
{
  const std::int64_t above = operation.kernels[0]->GetCenter()[a];
  const std::int64_t below = operation.kernels[0]->GetExtent()[a] - 1 - above;
  const bool         ends =
    operation.boundary.mode == BoundaryMode::Renormalized || operation.boundary.mode == BoundaryMode::Constant;
  std::vector<CellInterval> cells;
  for (const VaryingInterval & interval : intervals)
  {
    const VaryingInterval target = Spreads(operation) ? ReachOf(operation, a, interval) : interval;
    const std::int64_t    outLower = std::max(target.lower, lower);
    const std::int64_t    outUpper = std::min(target.upper, upper);
    if (outLower >= outUpper)
    {
      continue;
    }
    std::int64_t first = outLower - below;
    std::int64_t last = outUpper + above;
    if (Spreads(operation))
    {
      first = std::max(first, interval.lower);
      last = std::min(last, interval.upper);
    }
    else if (ends)
    {
      first = std::max<std::int64_t>(first, 0);
      last = std::min(last, n);
    }
    CellInterval cell{};
    cell.cut = IsCut(operation, a, n, interval) ? 1 : 0;
    cell.inLower = first;
    cell.outLower = outLower;
    cell.input = static_cast<int>(last - first);
    cell.output = static_cast<int>(outUpper - outLower);
    cell.crop = static_cast<int>(outLower - first + above);
    cell.node = interval.node;
    cell.nodes = interval.nodes;
    cells.push_back(cell);
  }
  return cells;
}

/** One call: what all its launches share. */
class CellRun
{
public:
  CellRun(const KernelCall & call, const CellLayout & layout)
    : m_Call(call)
    , m_Operation(static_cast<const VaryingConvolutionOperation &>(*call.operation))
    , m_Node(m_Operation.GetNodeOperation(0))
    , m_Layout(layout)
    , m_Image(call.image.Extents())
    , m_Stream(static_cast<cudaStream_t>(call.stream))
  {
    for (const auto & kernel : m_Operation.kernels)
    {
      m_Kernels += kernel->GetKey() + ";";
    }
  }

  void
  Run()
  {
    MakeGrid();
    MakeSource();
    MakeTarget();
    // The plan counts them; then others have taken the memory.
    m_Spectra = GetSpectra();
    if (!m_Spectra)
    {
      throw DeviceError(
        DeviceError::Kind::OutOfMemory, "convolution.varying", "", m_Layout.spectraBytes, "no memory for spectra");
    }
    const auto groups = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::min(m_Call.scratchBytes, GroupBytes) / m_Layout.GetCellBytes()));
    // Planes across the two axes.
    Box planes = m_Call.output.box;
    for (const int a : m_Layout.axis)
    {
      planes.lower[a] = 0;
      planes.upper[a] = 1;
    }
    Coordinates at = planes.lower;
    for (std::int64_t plane = planes.NumberOfVoxels(); plane > 0; --plane)
    {
      SetPlane(at);
      for (std::int64_t first = 0; first < m_Cells; first += groups)
      {
        RunGroup(static_cast<int>(first), static_cast<int>(std::min(groups, m_Cells - first)));
      }
      for (int a = 0; a < MaxDimension && ++at[a] == planes.upper[a]; ++a)
      {
        at[a] = planes.lower[a];
      }
    }
  }

private:
  void
  RunGroup(int first, int cells)
  {
    const auto   columns = static_cast<int>(m_Layout.GetColumns());
    auto * const spectra = static_cast<float2 *>(m_Call.scratch);
    auto * const terms = spectra + static_cast<std::int64_t>(cells) * m_Layout.reachRows * columns;
    const int    order = Spreads(m_Operation) ? 1 : 0;
    auto * const there = order ? terms : spectra;
    auto * const back = order ? spectra : terms;
    m_Grid.first = first;
    m_Layout.rows->forward[order](m_Stream, cells, m_Grid, m_Source, there, Twiddles(m_Layout.rows->fixed->there));
    m_Layout.columns->product[order](m_Stream,
                                     cells,
                                     m_Grid,
                                     columns,
                                     there,
                                     back,
                                     Twiddles(m_Layout.columns->fixed->there),
                                     Twiddles(m_Layout.columns->fixed->back),
                                     m_Spectra);
    // Cells that add to the same voxels follow each other.
    for (m_Target.color[1] = 0; m_Target.color[1] < m_Target.colors[1]; ++m_Target.color[1])
    {
      for (m_Target.color[0] = 0; m_Target.color[0] < m_Target.colors[0]; ++m_Target.color[0])
      {
        m_Layout.rows->inverse[order](m_Stream, cells, m_Grid, m_Target, back, Twiddles(m_Layout.rows->fixed->back));
      }
    }
  }

  void
  MakeGrid()
  {
    m_Cells = 1;
    for (int i = 0; i < 2; ++i)
    {
      const int          a = m_Layout.axis[i];
      const std::int64_t lower = m_Call.output.box.lower[a];
      const std::int64_t upper = m_Call.output.box.upper[a];
      std::int64_t       count = 0;
      m_Grid.axis[i] = GetTable<CellInterval>(
        m_Call,
        KeyOfVaryingLayout("cells ", m_Operation, m_Image) + " of " + std::to_string(a) +
          BoundaryModeName(m_Operation.boundary.mode) + " " + std::to_string(lower) + " " + std::to_string(upper),
        [&] { return CutChunk(m_Operation, m_Layout.intervals[i], a, lower, upper, m_Image[a]); });
      for (const VaryingInterval & interval : m_Layout.intervals[i])
      {
        const VaryingInterval target = Spreads(m_Operation) ? ReachOf(m_Operation, a, interval) : interval;
        count += target.lower < upper && target.upper > lower ? 1 : 0;
      }
      m_Cells *= count;
      m_Grid.along = i == 0 ? static_cast<int>(count) : m_Grid.along;
      m_Grid.nodes[i] = static_cast<int>(m_Operation.nodes[a]);
      m_Grid.n[i] = m_Image[a];
      m_Grid.weights[i] = GetNodeWeights<float>(m_Call, a);
    }
    m_Grid.rows = m_Layout.reachRows;
    m_Grid.terms = m_Layout.terms;
    m_Grid.termRows = m_Layout.cellRows;
    if (m_Node.Renormalizes())
    {
      MakeFactors();
    }
  }

  /** The spread of voxels is cut like the windows of flipped kernels. */
  void
  MakeFactors()
  {
    const bool                      flipped = Spreads(m_Operation);
    const ImageConvolutionOperation node = m_Operation.GetNodeOperation(0, flipped);
    const Coordinates               states = ConvolutionFactors::States(node, m_Image);
    for (int i = 0; i < 2; ++i)
    {
      const int a = m_Layout.axis[i];
      m_Grid.factors.states[i] = states[a];
      m_Grid.factors.kernel[i] = node.kernel->GetExtent()[a];
      m_Grid.factors.below[i] = node.Below(a);
    }
    const std::string key = m_Kernels + (flipped ? " flipped" : "") + " factors " + ToString(m_Image);
    m_Grid.factors.data = GetTable<float>(m_Call, key, [&] {
      std::vector<float> all;
      for (std::size_t i = 0; i < m_Operation.kernels.size(); ++i)
      {
        const ConvolutionFactors exact(m_Operation.GetNodeOperation(static_cast<std::int64_t>(i), flipped), m_Image);
        all.insert(all.end(), exact.factors.begin(), exact.factors.end());
      }
      return all;
    });
  }

  void
  MakeSource()
  {
    const BufferView & input = m_Call.inputs[0];
    m_Source.kind = input.kind;
    m_Source.mode = m_Operation.boundary.mode;
    m_Source.constant =
      m_Source.mode == BoundaryMode::Constant ? static_cast<float>(m_Operation.boundary.constant) : 0.0f;
    for (int i = 0; i < 2; ++i)
    {
      const int a = m_Layout.axis[i];
      m_Source.boxLower[i] = input.box.lower[a];
      m_Source.boxUpper[i] = input.box.upper[a];
      m_Source.stride[i] = input.stride[a];
    }
  }

  void
  MakeTarget()
  {
    const BufferView & output = m_Call.output;
    m_Target.kind = output.kind;
    for (int i = 0; i < 2; ++i)
    {
      const int a = m_Layout.axis[i];
      m_Target.boxLower[i] = output.box.lower[a];
      m_Target.stride[i] = output.stride[a];
      m_Target.colors[i] = Spreads(m_Operation) ? m_Layout.colors[i] : 1;
    }
    if (m_Source.constant != 0.0f)
    {
      char text[40];
      std::snprintf(text, sizeof(text), " sums %a", m_Operation.boundary.constant.ToDouble());
      m_Target.constants = GetTable<float>(m_Call, m_Kernels + text, [&] {
        std::vector<float> sums;
        for (const auto & kernel : m_Operation.kernels)
        {
          sums.push_back(static_cast<float>(m_Operation.boundary.constant.ToDouble() * kernel->GetSum()));
        }
        return sums;
      });
    }
  }

  void
  SetPlane(const Coordinates & at)
  {
    std::int64_t from = 0;
    std::int64_t to = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (a != m_Layout.axis[0] && a != m_Layout.axis[1])
      {
        from += (at[a] - m_Call.inputs[0].box.lower[a]) * m_Call.inputs[0].stride[a];
        to += (at[a] - m_Call.output.box.lower[a]) * m_Call.output.stride[a];
      }
    }
    m_Source.data =
      static_cast<const char *>(m_Call.inputs[0].data) + from * static_cast<std::int64_t>(PixelSize(m_Source.kind));
    m_Target.data = static_cast<char *>(m_Call.output.data) + to * static_cast<std::int64_t>(PixelSize(m_Target.kind));
  }

  const float2 *
  GetSpectra() const
  {
    const std::string key = m_Kernels + " spectra " + std::to_string(m_Layout.rows->fixed->length) + " " +
                            std::to_string(m_Layout.columns->fixed->length);
    return static_cast<const float2 *>(m_Call.tables->GetMade(
      key, m_Layout.spectraBytes, [this](void * memory) { MakeSpectra(static_cast<float2 *>(memory)); }));
  }

  /** Rows of as many kernels at a time as scratch has room for. */
  void
  MakeSpectra(float2 * out) const
  {
    const std::int64_t  columns = m_Layout.GetColumns();
    const std::int64_t  length = m_Layout.columns->fixed->length;
    const std::int64_t  k[2] = { m_Node.kernel->GetExtent()[m_Layout.axis[0]],
                                 m_Node.kernel->GetExtent()[m_Layout.axis[1]] };
    const float * const weights = GetTable<float>(m_Call, m_Kernels + " weights", [&] {
      std::vector<float> all;
      for (const auto & kernel : m_Operation.kernels)
      {
        all.insert(all.end(), kernel->GetWeights().begin(), kernel->GetWeights().end());
      }
      return all;
    });
    const auto          kernels = static_cast<std::int64_t>(m_Operation.kernels.size());
    // A cell has more rows than a kernel.
    const auto together =
      static_cast<std::int64_t>(m_Call.scratchBytes / (static_cast<std::size_t>(k[1] * columns) * sizeof(float2)));
    // The rows' transforms are half as long.
    const float scale = 2.0f / (static_cast<float>(m_Layout.rows->fixed->length) * static_cast<float>(length));
    for (std::int64_t first = 0; first < kernels; first += together)
    {
      const std::int64_t count = std::min(together, kernels - first);
      RowSource          source{};
      source.data = weights + first * k[0] * k[1];
      source.kind = PixelType::Float32;
      source.mode = BoundaryMode::ZeroFluxNeumann;
      const std::int64_t extent[MaxDimension] = { k[0], k[1], count, 1, 1 };
      std::int64_t       stride = 1;
      for (int r = 0; r < MaxDimension; ++r)
      {
        source.count[r] = source.n[r] = source.boxUpper[r] = extent[r];
        source.stride[r] = stride;
        stride *= extent[r];
      }
      auto * const rows = static_cast<float2 *>(m_Call.scratch);
      m_Layout.rows->fixed->forward(m_Stream,
                                    source,
                                    Spectrum{ columns, columns, k[1], count },
                                    PlaneRange{ 0, count },
                                    rows,
                                    Twiddles(m_Layout.rows->fixed->there));
      m_Layout.columns->spectra(m_Stream,
                                static_cast<int>(count),
                                static_cast<int>(k[1]),
                                static_cast<int>(columns),
                                scale,
                                rows,
                                out + first * columns * length,
                                Twiddles(m_Layout.columns->fixed->there));
    }
    CheckCuda(cudaStreamSynchronize(m_Stream), "cudaStreamSynchronize");
  }

  const float2 *
  Twiddles(const FixedTwiddles & fixed) const
  {
    return GetTable<float2>(m_Call, fixed.GetKey(), [&fixed] { return fixed.Make(); });
  }

  const KernelCall &                  m_Call;
  const VaryingConvolutionOperation & m_Operation;
  const ImageConvolutionOperation     m_Node;
  const CellLayout &                  m_Layout;
  const Coordinates                   m_Image;
  const cudaStream_t                  m_Stream;
  std::string                         m_Kernels;
  CellGrid                            m_Grid{};
  CellSource                          m_Source{};
  CellTarget                          m_Target{};
  const float2 *                      m_Spectra{ nullptr };
  std::int64_t                        m_Cells{ 0 };
};

/** The most cells that contribute to a chunk of this extent. */
std::int64_t
CellsOf(const VaryingConvolutionOperation & operation, const CellLayout & layout, const Coordinates & extent)
{
  std::int64_t cells = 1;
  for (int i = 0; i < 2; ++i)
  {
    const int          a = layout.axis[i];
    const std::int64_t spread = Spreads(operation) ? operation.kernels[0]->GetExtent()[a] - 1 : 0;
    cells *= MostCells(layout.intervals[i], extent[a] + spread);
  }
  return cells;
}

} // namespace

std::string
KeyOfVaryingLayout(const char * what, const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  const ConvolutionKernel & kernel = *operation.kernels[0];
  std::string               key = what + ToString(image) + ToString(operation.nodes) + ToString(kernel.GetExtent()) +
                    ToString(kernel.GetCenter()) + (operation.boundary.mode == BoundaryMode::Renormalized ? "r" : "") +
                    (operation.order == VaryingOrder::ConvolveThenWeight ? "f" : "s");
  char text[128];
  for (int a = 0; a < MaxDimension; ++a)
  {
    std::snprintf(text, sizeof(text), " %a %a", operation.first[a], operation.spacing[a]);
    key += operation.nodes[a] > 1 ? text : "";
  }
  return key;
}

std::vector<VaryingInterval>
CutVaryingAxis(const VaryingConvolutionOperation & operation, int a, std::int64_t n, std::int64_t most, int merged)
{
  const std::int64_t           nodes = operation.nodes[a];
  std::vector<VaryingInterval> cells;
  int                          taken = merged;
  std::int64_t                 lower = 0;
  for (std::int64_t next = nodes == 1 ? nodes : 0; next <= nodes; ++next)
  {
    // Up to node `next`, or the image's end.
    const double at = std::ceil(operation.first[a] + static_cast<double>(next) * operation.spacing[a]);
    const auto   upper =
      next == nodes ? n : static_cast<std::int64_t>(std::min(std::max(at, 0.0), static_cast<double>(n)));
    if (upper <= lower)
    {
      continue;
    }
    const auto            first = static_cast<int>(std::max<std::int64_t>(next - 1, 0));
    const auto            last = static_cast<int>(std::min(next, nodes - 1));
    const VaryingInterval interval{ lower, upper, first, last - first + 1 };
    lower = upper;
    if (taken < merged && interval.upper - cells.back().lower <= most)
    {
      cells.back().upper = interval.upper;
      cells.back().nodes = last - cells.back().node + 1;
      ++taken;
      continue;
    }
    const std::int64_t extent = interval.upper - interval.lower;
    const std::int64_t parts = (extent + most - 1) / most;
    for (std::int64_t i = 0; i < parts; ++i)
    {
      cells.push_back({ interval.lower + extent * i / parts,
                        interval.lower + extent * (i + 1) / parts,
                        interval.node,
                        interval.nodes });
    }
    taken = parts > 1 ? merged : 1;
  }
  return cells;
}

bool
HasVaryingCells(const VaryingConvolutionOperation & operation, const Coordinates & image, PixelType kind)
{
  return !UsesDouble(kind) && GetLayout(operation, image)->Exists();
}

std::size_t
TableBytesOfVaryingCells(const VaryingConvolutionOperation & operation, const Coordinates & image)
{
  const auto layout = GetLayout(operation, image);
  const auto bytes = [](std::int64_t numbers) { return RoundUp(static_cast<std::size_t>(numbers) * sizeof(float)); };
  const auto kernels = static_cast<std::int64_t>(operation.kernels.size());
  const ImageConvolutionOperation node = operation.GetNodeOperation(0);
  // Weights of kernels, factors, sums of constants, and twiddles there and back.
  std::size_t sum = bytes(kernels * operation.kernels[0]->GetNumberOfTaps()) + bytes(kernels) +
                    2 * bytes(2 * layout->rows->fixed->length) + 2 * bytes(2 * layout->columns->fixed->length);
  if (node.Renormalizes())
  {
    sum += bytes(kernels * Box::FromExtent(ConvolutionFactors::States(node, image)).NumberOfVoxels());
  }
  for (int i = 0; i < 2; ++i)
  {
    const int a = layout->axis[i];
    sum += bytes(operation.nodes[a] * image[a]) + RoundUp(layout->intervals[i].size() * sizeof(CellInterval));
  }
  return sum + RoundUp(layout->spectraBytes) + BytesReservedForTables;
}

std::size_t
ScratchOfVaryingCells(const VaryingConvolutionOperation & operation, const ChunkShape & chunk)
{
  const auto        layout = GetLayout(operation, chunk.image.Extents());
  const std::size_t bytes = layout->GetCellBytes();
  const auto        cells = static_cast<std::size_t>(CellsOf(operation, *layout, chunk.outputBox.Extents()));
  return bytes * std::max<std::size_t>(1, std::min(cells, GroupBytes / bytes));
}

double
CostOfVaryingCells(const VaryingConvolutionOperation & operation, const ChunkShape & chunk)
{
  const auto layout = GetLayout(operation, chunk.image.Extents());
  // Spectra are written and read, kernels' spectra are read for each term.
  const Coordinates extent = chunk.outputBox.Extents();
  const double      cells = static_cast<double>(CellsOf(operation, *layout, extent));
  const double      planes = static_cast<double>(chunk.outputBox.NumberOfVoxels()) /
                        static_cast<double>(extent[layout->axis[0]] * extent[layout->axis[1]]);
  const double perCell = 2 * static_cast<double>(layout->GetCellBytes()) +
                         static_cast<double>(layout->terms) * static_cast<double>(layout->spectraBytes) /
                           static_cast<double>(operation.kernels.size());
  return planes * cells * perCell +
         static_cast<double>(PixelSize(chunk.inputKinds[0])) * static_cast<double>(chunk.inputBox.NumberOfVoxels()) +
         static_cast<double>(PixelSize(chunk.outputKind)) * static_cast<double>(chunk.outputBox.NumberOfVoxels());
}

void
RunVaryingCells(const KernelCall & call)
{
  const auto & operation = static_cast<const VaryingConvolutionOperation &>(*call.operation);
  CellRun(call, *GetLayout(operation, call.image.Extents())).Run();
}

} // namespace chunkwise
