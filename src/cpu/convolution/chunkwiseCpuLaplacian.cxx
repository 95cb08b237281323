/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuMarch.h"
#include "chunkwiseCpuRowStore.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseLaplacianOperation.h"
#include "chunkwiseRealOf.h"

#include <limits>
#include <vector>

namespace chunkwise
{

namespace
{

template <typename TAcc>
using LoadFunction = void (*)(const KernelCall & call, const WindowBoundary & boundary, const Box & box, TAcc * to);

template <typename TAcc, typename TPixel>
void
Load(const KernelCall & call, const WindowBoundary & boundary, const Box & box, TAcc * to)
{
  LoadTile<TPixel>(call.inputs[0],
                   call.image,
                   box,
                   boundary.mode,
                   static_cast<TAcc>(ConstantPixel<TPixel>(boundary.constant)),
                   to,
                   [](TPixel pixel) { return static_cast<TAcc>(pixel); });
}

/** The function that makes accumulators of voxels. */
template <typename TAcc>
auto
ConvertTo(PixelType kind)
{
  const auto accumulator = sizeof(TAcc) == 4 ? Accumulator::Float32 : Accumulator::Float64;
  return GetCpuLevel().convert[static_cast<int>(kind)][static_cast<int>(accumulator)];
}

/** The weights along an axis: a row of both for each position near the image's edge. */
template <typename TAcc>
struct AxisTables
{
  std::vector<TAcc> g;
  std::vector<TAcc> h;
  std::int64_t      radius{ 0 };
  std::int64_t      extent{ 1 };
  std::int64_t      rows{ 1 };

  AxisTables(const LaplacianOperation & operation, int a, std::int64_t imageExtent)
    : radius(operation.GetRadius()[a])
    , extent(imageExtent)
    , rows(operation.GetNumberOfRows(a, extent))
  {
    const std::vector<double> both = operation.GetTables(a, extent);
    const auto                half = static_cast<std::ptrdiff_t>(both.size() / 2);
    g.assign(both.begin(), both.begin() + half);
    h.assign(both.begin() + half, both.end());
  }
  /** The weight of tap `t` at position `i`. */
  std::size_t
  Weight(std::int64_t i, std::int64_t t) const
  {
    return static_cast<std::size_t>(WeightRow(i, extent, radius, rows) * (2 * radius + 1) + t);
  }
};

/** Laplacians as passes over rows, S and L in each. */
template <typename TAcc>
class LaplacianMarch
{
public:
  using Step = LaplacianStep<TAcc>;
  static constexpr int          Fields = 2;
  static constexpr std::int64_t Width = MarchWidth<TAcc>;

  /** Numbers of the weights of rows of `n` voxels along x, of which windows are cut. */
  static std::int64_t
  CutWeights(std::int64_t n, std::int64_t radius)
  {
    return (n + Width - 1) / Width * 2 * (2 * radius + 1) * Width;
  }

  LaplacianMarch(const KernelCall & call, const WindowBoxes & boxes, const std::vector<AxisTables<TAcc>> & tables,
                 LoadFunction<TAcc> load, TAcc * cut)
    : m_Call(call)
    , m_Operation(static_cast<const LaplacianOperation &>(*call.operation))
    , m_Boxes(boxes)
    , m_Tables(tables)
    , m_Functions(MarchFunctionsOf<TAcc>(GetMarchLevel()))
    , m_Load(load)
    , m_Convert(ConvertTo<TAcc>(call.inputs[0].kind))
    , m_Store(RowStoreOf<TAcc>(call.output.kind))
  {
    const Box & out = boxes.after[0];
    for (std::int64_t x = out.lower[0]; x < out.upper[0];)
    {
      const std::int64_t last = std::min(x + Width, out.upper[0]) - 1;
      const bool         isCut = IsCut(x) || IsCut(last);
      if (isCut || m_Parts.empty() || m_Parts.back().cut)
      {
        m_Parts.push_back({ x, last + 1 - x, isCut ? cut : nullptr });
      }
      else
      {
        m_Parts.back().n += last + 1 - x;
      }
      if (isCut)
      {
        MakeCutWeights(x, last, cut);
        cut += CutWeights(1, boxes.radius[0]);
      }
      x = last + 1;
    }
  }

  void
  Load(const Box & row, TAcc * to) const
  {
    m_Load(m_Call, m_Operation.boundary, row, to);
  }

  void
  Convert(const void * voxels, std::int64_t n, TAcc * to) const
  {
    m_Convert(to, voxels, n);
  }

  void
  Across(int pass, std::int64_t position, std::int64_t firstTap, Step & step) const
  {
    const AxisTables<TAcc> & axis = m_Tables[static_cast<std::size_t>(m_Boxes.axes[pass])];
    for (int k = 0; k < step.count; ++k)
    {
      const std::size_t weight = axis.Weight(position + k, firstTap);
      step.g[k] = axis.g.data() + weight;
      step.h[k] = axis.h.data() + weight;
    }
    m_Functions.mergeLaplacians(step);
  }

  void
  AlongX(const TAcc * row, const TAcc ** taps, Step & step) const
  {
    const AxisTables<TAcc> & axis = m_Tables[0];
    const std::int64_t       radius = axis.radius;
    const std::int64_t       lower = m_Boxes.padded.lower[0];
    TAcc * const             results = step.results[0];
    for (const Part & part : m_Parts)
    {
      Step cut = step;
      cut.n = part.n;
      cut.results[0] = results + (part.x - m_Boxes.after[0].lower[0]);
      cut.centers[0] = row + (part.x - lower);
      // Cut windows have the taps of any voxel of the line.
      const std::int64_t first = part.cut ? std::max<std::int64_t>(0, lower - (part.x + Width - 1) + radius) : 0;
      const std::int64_t last =
        part.cut ? std::min(2 * radius, m_Boxes.padded.upper[0] - 1 - part.x + radius) : 2 * radius;
      cut.taps = last + 1 - first;
      for (std::int64_t t = 0; t < cut.taps; ++t)
      {
        taps[t] = row + (part.x - radius + first + t - lower);
      }
      cut.rows = taps;
      if (part.cut)
      {
        cut.g[0] = part.cut + first * Width;
        cut.h[0] = cut.g[0] + (2 * radius + 1) * Width;
        m_Functions.mergeCutLaplacians(cut);
      }
      else
      {
        const std::size_t weight = axis.Weight(part.x, 0);
        cut.g[0] = axis.g.data() + weight;
        cut.h[0] = axis.h.data() + weight;
        m_Functions.mergeLaplacians(cut);
      }
    }
  }

  void
  Store(const Coordinates & at, std::int64_t n, const TAcc * results) const
  {
    m_Store(m_Call.output, at, n, results);
  }

private:
  /** Voxels of a row, with their weights if some of their windows are cut. */
  struct Part
  {
    std::int64_t x;
    std::int64_t n;
    const TAcc * cut;
  };

  bool
  IsCut(std::int64_t x) const
  {
    const std::int64_t radius = m_Boxes.radius[0];
    return x - radius < m_Boxes.padded.lower[0] || x + radius >= m_Boxes.padded.upper[0];
  }

  void
  MakeCutWeights(std::int64_t x, std::int64_t last, TAcc * cut) const
  {
    const AxisTables<TAcc> & axis = m_Tables[0];
    const std::int64_t       taps = 2 * axis.radius + 1;
    for (std::int64_t t = 0; t < taps; ++t)
    {
      for (std::int64_t i = x; i < x + Width; ++i)
      {
        const std::int64_t from = i + t - axis.radius;
        const bool         isThere = i <= last && from >= m_Boxes.padded.lower[0] && from < m_Boxes.padded.upper[0];
        TAcc * const       weight = cut + t * Width + (i - x);
        weight[0] = isThere ? axis.g[axis.Weight(i, t)] : std::numeric_limits<TAcc>::quiet_NaN();
        weight[taps * Width] = isThere ? axis.h[axis.Weight(i, t)] : TAcc{ 0 };
      }
    }
  }

  const KernelCall &                    m_Call;
  const LaplacianOperation &            m_Operation;
  const WindowBoxes &                   m_Boxes;
  const std::vector<AxisTables<TAcc>> & m_Tables;
  const MarchFunctions<TAcc> &          m_Functions;
  const LoadFunction<TAcc>              m_Load;
  void (*const m_Convert)(void * to, const void * voxels, std::int64_t n);
  const RowStore<TAcc> m_Store;
  std::vector<Part>    m_Parts;
};

template <typename TAcc>
MarchMemory<TAcc>
MakeMemory()
{
  MarchMemory<TAcc> memory;
  memory.fields = LaplacianMarch<TAcc>::Fields;
  return memory;
}

template <typename TAcc>
MarchTiling
MakeTiling(const Box & output, const Coordinates & radius)
{
  return { output, radius, LaplacianMarch<TAcc>::Fields * sizeof(TAcc), sizeof(TAcc) };
}

/** The memory of a worker: planes, then weights. */
template <typename TAcc>
std::int64_t
BytesOf(const MarchTiling & tiling)
{
  const Box         tile = Box::FromExtent(tiling.tile);
  const WindowBoxes boxes(tile, tile, tiling.radius, BoundaryMode::Mirror);
  return MakeMemory<TAcc>().LayOut(boxes, tiling.axis, nullptr) +
         LaplacianMarch<TAcc>::CutWeights(tiling.tile[0], tiling.radius[0]) * static_cast<std::int64_t>(sizeof(TAcc));
}

template <typename TAcc>
void
Run(const KernelCall & call, LoadFunction<TAcc> load)
{
  const auto &                  operation = static_cast<const LaplacianOperation &>(*call.operation);
  const Coordinates             radius = operation.GetRadius();
  const MarchTiling             tiling = MakeTiling<TAcc>(call.output.box, radius);
  const std::int64_t            bytes = BytesOf<TAcc>(tiling);
  std::vector<AxisTables<TAcc>> tables;
  for (int a = 0; a < MaxDimension; ++a)
  {
    tables.emplace_back(operation, a, call.image.Extent(a));
  }
  ForEachTileOf(
    tiling.Balance(call.output.box, call.executor->GetConcurrency()), call, [&](const Box & tile, unsigned int worker) {
      const WindowBoxes boxes(tile, call.image, radius, operation.boundary.mode);
      char * const      scratch = static_cast<char *>(call.scratch) + bytes * worker;
      MarchMemory<TAcc> memory = MakeMemory<TAcc>();
      const auto        cut = reinterpret_cast<TAcc *>(scratch + memory.LayOut(boxes, tiling.axis, scratch));
      PlaneMarch<TAcc, LaplacianMarch<TAcc>>(
        call, LaplacianMarch<TAcc>(call, boxes, tables, load, cut), tiling.axis, boxes, memory)
        .Run();
    });
}

void
RunLaplacian(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    if constexpr (std::is_same<Pixel, float>::value || sizeof(Pixel) <= 2)
    {
      Run<float>(call, Load<float, Pixel>);
    }
    else
    {
      Run<double>(call, Load<double, Pixel>);
    }
  });
}

std::size_t
ScratchOfLaplacian(const Operation & operation, const ChunkShape & shape)
{
  const Coordinates  radius = static_cast<const LaplacianOperation &>(operation).GetRadius();
  const std::int64_t bytes = UsesDouble(shape.inputKinds[0])
                               ? BytesOf<double>(MakeTiling<double>(shape.outputBox, radius))
                               : BytesOf<float>(MakeTiling<float>(shape.outputBox, radius));
  return static_cast<std::size_t>(bytes * shape.concurrency);
}

} // namespace

void
RegisterHostLaplacian(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunLaplacian;
  kernel.scratchBytes = ScratchOfLaplacian;
  registry.Register("laplacian", { kernel });
}

} // namespace chunkwise
