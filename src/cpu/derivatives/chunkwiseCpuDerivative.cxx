/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuDerivativeRows.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuLevels.h"
#include "chunkwiseCpuMarch.h"
#include "chunkwiseCpuRowStore.h"
#include "chunkwiseMeasureScaleOperation.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseLaplacianOperation.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseRunSums.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(DerivativeLevel, MakeDerivativeLevel)

const DerivativeLevel &
GetDerivativeLevel()
{
  static FunctionsAtLevels<DerivativeLevel> levels{ CHUNKWISE_AT_LEVELS(MakeDerivativeLevel) };
  return levels.Get();
}

namespace
{

template <typename TAcc>
const DerivativeFunctions<TAcc> &
DerivativeFunctionsOf(const DerivativeLevel & level)
{
  if constexpr (sizeof(TAcc) == 4)
  {
    return level.float32;
  }
  else
  {
    return level.float64;
  }
}

/** A row beyond the image's edge, as the accumulator holds it. */
template <typename TAcc>
using DerivativeLoad = void (*)(const KernelCall & call, const WindowBoundary & boundary, const Box & box, TAcc * to);

template <typename TAcc>
DerivativeLoad<TAcc>
DerivativeLoadOf(PixelType kind)
{
  return DispatchPixelType(kind, [](auto pixel) -> DerivativeLoad<TAcc> {
    using Pixel = decltype(pixel);
    return [](const KernelCall & call, const WindowBoundary & boundary, const Box & box, TAcc * to) {
      LoadTile<Pixel>(call.inputs[0],
                      call.image,
                      box,
                      boundary.mode,
                      static_cast<TAcc>(ConstantPixel<Pixel>(boundary.constant)),
                      to,
                      [](Pixel voxel) { return static_cast<TAcc>(voxel); });
    };
  });
}

/** The weights along an axis: of each order a row for each position near the image's edge. */
template <typename TAcc>
struct DerivativeTables
{
  std::vector<TAcc> weights[DerivativeOperation::LargestOrder + 1];
  std::int64_t      radius{ 0 };
  std::int64_t      extent{ 1 };
  std::int64_t      rows{ 1 };
  double            factor{ 1 };

  DerivativeTables(const DerivativeOperation & operation, std::size_t scale, int a, std::int64_t imageExtent)
    : radius(operation.GetRadius(scale)[a])
    , extent(imageExtent)
    , rows(operation.GetNumberOfRows(scale, a, extent))
    , factor(operation.scales[scale].factor[a])
  {
    for (int order = 0; order <= DerivativeOperation::LargestOrder; ++order)
    {
      const bool isAsked =
        std::any_of(operation.components.begin(), operation.components.end(), [&](const DerivativeOrders & orders) {
          return order == 0 || orders[static_cast<std::size_t>(a)] == order;
        });
      if (isAsked)
      {
        const std::vector<double> table = operation.GetTable(scale, a, order, extent);
        weights[order].assign(table.begin(), table.end());
      }
    }
  }
  /** The weight of tap `t` at position `i`. */
  const TAcc *
  Weight(int order, std::int64_t i, std::int64_t t) const
  {
    return weights[order].data() + WeightRow(i, extent, radius, rows) * (2 * radius + 1) + t;
  }
};

/** The fields of a source that a pass makes together. */
struct DerivativeGroup
{
  int source{ 0 };
  /** For each kind of DerivativesTogether: the field, or below 0, and its order. */
  int fields[DerivativesTogether]{ -1, -1, -1 };
  int orders[DerivativesTogether]{};
};

std::vector<DerivativeGroup>
GroupFields(const std::vector<DerivativeField> & fields)
{
  std::vector<DerivativeGroup> groups;
  for (std::size_t f = 0; f < fields.size(); ++f)
  {
    const int kind = fields[f].order == 0 ? 0 : fields[f].order == 2 ? 2 : 1;
    auto      group = std::find_if(groups.begin(), groups.end(), [&](const DerivativeGroup & each) {
      return each.source == fields[f].source && each.fields[kind] < 0;
    });
    if (group == groups.end())
    {
      groups.emplace_back();
      groups.back().source = fields[f].source;
      group = groups.end() - 1;
    }
    group->fields[kind] = static_cast<int>(f);
    group->orders[kind] = fields[f].order;
  }
  return groups;
}

/** Stores a row of results where they are larger than what is there. */
template <typename TFrom, typename TOut>
void
StoreLargest(const BufferView & output, const Coordinates & at, std::int64_t n, const TFrom * results)
{
  TOut * const to = static_cast<TOut *>(output.data) + output.Offset(at);
  WithStride(output.stride[0], [&](auto step) {
    for (std::int64_t i = 0; i < n; ++i)
    {
      // Rounding keeps the order.
      const TOut value = ConvertResult<TOut>(results[i]);
      to[i * step] = value > to[i * step] ? value : to[i * step];
    }
  });
}

template <typename TFrom>
RowStore<TFrom>
LargestStoreOf(PixelType kind)
{
  return DispatchPixelType(kind, [](auto out) -> RowStore<TFrom> { return StoreLargest<TFrom, decltype(out)>; });
}

/** The plan that all tiles of a call share at one scale. */
template <typename TAcc>
struct DerivativePlan
{
  std::vector<DerivativeTables<TAcc>>       tables;
  std::vector<std::vector<DerivativeGroup>> passes;
  int                                       inputFields{ 1 };
  int                                       fields{ 1 };
  int                                       resultFields{ 1 };
  /** Rows of what the last pass makes, and of what is made of it. */
  int         resultRows{ 1 };
  Coordinates radius{};
  std::size_t scale{ 0 };
  /** Numbers from one component to the next, if the input's voxels are gradients, or the results lie like that. */
  std::int64_t inputGap{ 0 };
  std::int64_t resultGap{ 0 };

  DerivativePlan(const DerivativeOperation & operation, std::size_t theScale)
    : radius(operation.GetRadius(theScale))
    , scale(theScale)
  {
    const Box         one = Box::FromExtent(Coordinates::Filled(1));
    const WindowBoxes boxes(one, one, radius, BoundaryMode::Mirror);
    if (operation.gradient)
    {
      // Each product is smoothed for itself.
      inputFields = fields = resultFields = static_cast<int>(operation.components.size());
      resultRows = std::max(resultFields, operation.GetNumberOfResults());
      std::vector<DerivativeGroup> each(operation.components.size());
      for (int field = 0; field < fields; ++field)
      {
        each[static_cast<std::size_t>(field)].source = each[static_cast<std::size_t>(field)].fields[0] = field;
      }
      passes.assign(static_cast<std::size_t>(boxes.count), each);
      return;
    }
    inputFields = operation.GetNumberOfInputs();
    const auto all =
      MakeDerivativeFields(operation.components, { boxes.axes, boxes.axes + boxes.count }, operation.ofVectors);
    for (const auto & made : all)
    {
      passes.push_back(GroupFields(made));
    }
    for (std::size_t pass = 0; pass + 1 < all.size(); ++pass)
    {
      fields = std::max(fields, static_cast<int>(all[pass].size()));
    }
    resultFields = static_cast<int>(all.back().size());
    resultRows = std::max(resultFields, operation.GetNumberOfResults());
  }
  MarchMemory<TAcc>
  MakeMemory() const
  {
    MarchMemory<TAcc> memory;
    memory.inputFields = inputFields;
    memory.fields = fields;
    memory.resultFields = resultRows;
    return memory;
  }
  void
  MakeTables(const DerivativeOperation & operation, const Box & image)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      tables.emplace_back(operation, scale, a, image.Extent(a));
    }
  }
};

/** Derivatives as passes over rows. */
template <typename TAcc>
class DerivativeMarch
{
public:
  using Step = MarchStep<TAcc>;
  static constexpr std::int64_t Width = MarchWidth<TAcc>;

  /** Numbers of the weights of rows of `n` voxels along x, of which windows are cut: of each order. */
  static std::int64_t
  CutWeights(std::int64_t n, std::int64_t radius)
  {
    return (n + Width - 1) / Width * (DerivativeOperation::LargestOrder + 1) * (2 * radius + 1) * Width;
  }

  DerivativeMarch(const KernelCall & call, const WindowBoxes & boxes, const DerivativePlan<TAcc> & plan, TAcc * cut)
    : m_Call(call)
    , m_Operation(static_cast<const DerivativeOperation &>(*call.operation))
    , m_Boxes(boxes)
    , m_Plan(plan)
    , m_Functions(DerivativeFunctionsOf<TAcc>(GetDerivativeLevel()))
    , m_Load(DerivativeLoadOf<TAcc>(call.inputs[0].kind))
    , m_Convert(GetCpuLevel().convert[static_cast<int>(call.inputs[0].kind)][static_cast<int>(
        sizeof(TAcc) == 4 ? Accumulator::Float32 : Accumulator::Float64)])
    , m_Store(plan.scale == 0 ? RowStoreOf<TAcc>(call.output.kind) : LargestStoreOf<TAcc>(call.output.kind))
    , m_Measure(m_Operation.measure)
  {
    m_Measure.contrast = m_Operation.scales[plan.scale].contrast;
    // Whole windows and cut ones have other bits, so that a line has either. Each is written before the ones behind it,
    // whose first voxels it may overwrite.
    const Box &        out = boxes.after[0];
    const std::int64_t radius = boxes.axes[0] == 0 ? boxes.radius[0] : 0;
    const std::int64_t whole = std::min(std::max(boxes.padded.lower[0] + radius, out.lower[0]), out.upper[0]);
    const std::int64_t end = std::min(std::max(boxes.padded.upper[0] - radius, whole), out.upper[0]);
    const auto         addCut = [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t x = first; x < last; x += Width)
      {
        const std::int64_t n = std::min(Width, last - x);
        m_Parts.push_back({ x, n, cut });
        MakeCutWeights(x, x + n - 1, cut);
        cut += CutWeights(1, radius);
      }
    };
    addCut(out.lower[0], whole);
    if (whole < end)
    {
      m_Parts.push_back({ whole, end - whole, nullptr });
    }
    addCut(end, out.upper[0]);
  }

  void
  Load(const Box & row, TAcc * to) const
  {
    if (m_Operation.ofVectors)
    {
      const std::int64_t gap = MarchRowLength<TAcc>(m_Boxes.padded.Extent(0));
      KernelCall         call = m_Call;
      for (int input = 0; input < m_Call.numberOfInputs; ++input)
      {
        call.inputs[0] = m_Call.inputs[input];
        m_Load(call, m_Operation.boundary, row, to + input * gap);
      }
      return;
    }
    if (m_Plan.inputGap == 0)
    {
      m_Load(m_Call, m_Operation.boundary, row, to);
      return;
    }
    KernelCall     call = m_Call;
    WindowBoundary boundary = m_Operation.boundary;
    boundary.constant = PixelValue(0.0);
    this->MakeProducts(row.Extent(0), to, [&](int component, TAcc * place) {
      call.inputs[0].data = static_cast<TAcc *>(m_Call.inputs[0].data) + component * m_Plan.inputGap;
      m_Load(call, boundary, row, place);
    });
  }

  void
  Convert(const void * voxels, std::int64_t n, TAcc * to) const
  {
    if (m_Plan.inputGap == 0)
    {
      m_Convert(to, voxels, n);
      return;
    }
    this->MakeProducts(n, to, [&](int component, TAcc * place) {
      const TAcc * const from = static_cast<const TAcc *>(voxels) + component * m_Plan.inputGap;
      std::copy(from, from + n, place);
    });
  }

  void
  Across(int pass, std::int64_t position, std::int64_t firstTap, Step & step) const
  {
    const DerivativeTables<TAcc> & axis = m_Plan.tables[static_cast<std::size_t>(m_Boxes.axes[pass])];
    // The rows of each field lie behind each other.
    std::vector<const TAcc *> & taps = m_Taps;
    for (const DerivativeGroup & group : m_Plan.passes[static_cast<std::size_t>(pass)])
    {
      const std::int64_t shift = group.source * step.gap;
      taps.clear();
      for (std::int64_t t = 0; t < step.taps + step.count - 1; ++t)
      {
        taps.push_back(step.rows[t] + shift);
      }
      for (int k = 0; k < step.count; ++k)
      {
        Make(
          axis,
          group,
          position + k,
          firstTap,
          step.taps,
          taps.data() + k,
          step.centers[k] + shift,
          step.n,
          [&](int field) { return step.results[k] + field * step.resultGap; },
          0);
      }
    }
  }

  void
  AlongX(const TAcc * row, const TAcc ** taps, Step & step) const
  {
    const DerivativeTables<TAcc> & axis = m_Plan.tables[0];
    const std::int64_t             radius = axis.radius;
    const std::int64_t             lower = m_Boxes.padded.lower[0];
    TAcc * const                   results = step.results[0];
    for (const Part & part : m_Parts)
    {
      // The taps of cut windows that some voxel of the line has.
      const std::int64_t first = part.cut ? std::max<std::int64_t>(0, lower - (part.x + Width - 1) + radius) : 0;
      const std::int64_t last =
        part.cut ? std::min(2 * radius, m_Boxes.padded.upper[0] - 1 - part.x + radius) : 2 * radius;
      TAcc * const to = results + (part.x - m_Boxes.after[0].lower[0]);
      const TAcc * centers = row + (part.x - lower);
      const auto   place = [&](int field) { return to + field * step.resultGap; };
      int          source = -1;
      for (const DerivativeGroup & group : m_Plan.passes.front())
      {
        if (group.source != source)
        {
          source = group.source;
          centers = row + source * step.gap + (part.x - lower);
          for (std::int64_t t = first; t <= last; ++t)
          {
            taps[t - first] = centers + t - radius;
          }
        }
        if (!part.cut)
        {
          Make(axis, group, part.x, first, last + 1 - first, taps, centers, part.n, place, 1);
          continue;
        }
        CutDerivative<TAcc> cut{ taps, last + 1 - first, centers, part.n };
        cut.isLine = true;
        for (int kind = 0; kind < DerivativesTogether; ++kind)
        {
          if (group.fields[kind] >= 0)
          {
            cut.weights = part.cut + (group.orders[kind] * (2 * radius + 1) + first) * Width;
            cut.differs = kind > 0;
            cut.result = place(group.fields[kind]);
            m_Functions.cut(cut);
            SkipNan(axis, group.orders[kind], part.x, 1, first, last, taps, centers, part.n, cut.result);
          }
        }
      }
    }
  }

  void
  Store(const Coordinates & first, std::int64_t n, TAcc * results) const
  {
    const std::int64_t gap = MarchRowLength<TAcc>(m_Boxes.after[0].Extent(0));
    switch (m_Operation.result)
    {
      case DerivativeResult::Components:
        break;
      case DerivativeResult::Magnitude:
        m_Functions.magnitude(results, gap, m_Plan.resultFields, n, results);
        break;
      case DerivativeResult::Sum:
        m_Functions.sum(results, gap, m_Plan.resultFields, n, results);
        break;
      case DerivativeResult::Curvature:
        m_Functions.curvature(results, gap, m_Operation.GetMatrixSize(), m_Operation.curvature, n, results);
        break;
      case DerivativeResult::Measure:
        m_Functions.measure(results, gap, m_Operation.GetMatrixSize(), m_Measure, n, results);
        break;
      case DerivativeResult::Direction:
      case DerivativeResult::Eigenvectors:
      case DerivativeResult::Coherence:
      case DerivativeResult::Cornerness:
      case DerivativeResult::Diffusivity:
        m_Functions.tensor(
          results, gap, m_Operation.GetMatrixSize(), m_Operation.result, m_Operation.tensor, n, results);
        break;
      default:
        m_Functions.eigenvalues(
          results, gap, m_Operation.GetMatrixSize(), m_Operation.result == DerivativeResult::ByMagnitude, n, results);
    }
    if (m_Plan.resultGap > 0)
    {
      BufferView view = m_Call.output;
      for (int component = 0; component < m_Plan.resultFields; ++component)
      {
        m_Store(view, first, n, results + component * gap);
        view.data = static_cast<TAcc *>(view.data) + m_Plan.resultGap;
      }
      return;
    }
    const int axis = m_Operation.componentAxis;
    if (axis < 0)
    {
      m_Store(m_Call.output, first, n, results + m_Operation.chosen * gap);
      return;
    }
    Coordinates at = first;
    for (at[axis] = m_Call.output.box.lower[axis]; at[axis] < m_Call.output.box.upper[axis]; ++at[axis])
    {
      m_Store(m_Call.output, at, n, results + at[axis] * gap);
    }
  }

private:
  /** Voxels of a row, with their weights if some of their windows are cut. */
  struct Part
  {
    std::int64_t x;
    std::int64_t n;
    const TAcc * cut;
  };

  /** Products of the gradient's components, each of which load(component, place) loads. */
  template <typename TLoad>
  void
  MakeProducts(std::int64_t n, TAcc * to, TLoad && load) const
  {
    const std::int64_t gap = MarchRowLength<TAcc>(m_Boxes.padded.Extent(0));
    const int          size = m_Operation.GetMatrixSize();
    for (int component = 0; component < size; ++component)
    {
      load(component, to + (size * (size - 1) / 2 + component) * gap);
    }
    m_Functions.products(to, gap, size, n);
  }

  /** Lets voxels of a row of results see the numbers around them alone, where NaN takes no part. The first voxel has
   * position `i`, the next one `advance` more; `taps` begin with that of number `first`. */
  void
  SkipNan(const DerivativeTables<TAcc> & axis, int order, std::int64_t i, std::int64_t advance, std::int64_t first,
          std::int64_t last, const TAcc * const * taps, const TAcc * centers, std::int64_t n, TAcc * results) const
  {
    if (!m_Operation.skipsNan)
    {
      return;
    }
    const std::int64_t radius = axis.radius;
    for (std::int64_t v = 0; v < n; ++v)
    {
      if (results[v] == results[v] && centers[v] == centers[v])
      {
        continue;
      }
      const std::int64_t position = i + v * advance;
      const TAcc * const weights = axis.Weight(0, position, radius);
      // The taps that the image has.
      results[v] = RunSum(
        results[v],
        order,
        axis.factor,
        std::max(first - radius, -position),
        std::min(last - radius, axis.extent - 1 - position),
        [&](std::int64_t t) { return taps[t + radius - first][v]; },
        [&](std::int64_t t) { return weights[t]; });
    }
  }

  /** The fields of a group at position `i`, from `count` taps on of which the window has number `first`. Positions of
   * a row rise by `advance`. */
  template <typename TPlace>
  void
  Make(const DerivativeTables<TAcc> & axis, const DerivativeGroup & group, std::int64_t i, std::int64_t first,
       std::int64_t count, const TAcc * const * taps, const TAcc * centers, std::int64_t n, TPlace && place,
       std::int64_t advance) const
  {
    const auto skip = [&](int kind) {
      SkipNan(
        axis, group.orders[kind], i, advance, first, first + count - 1, taps, centers, n, place(group.fields[kind]));
    };
    if (count == 2 * axis.radius + 1)
    {
      WholeDerivatives<TAcc> whole{ taps, axis.radius, n };
      for (int kind = 0; kind < DerivativesTogether; ++kind)
      {
        if (group.fields[kind] >= 0)
        {
          whole.weights[kind] = axis.Weight(group.orders[kind], i, 0);
          whole.results[kind] = place(group.fields[kind]);
        }
      }
      m_Functions.whole(whole);
      for (int kind = 0; kind < DerivativesTogether; ++kind)
      {
        if (group.fields[kind] >= 0)
        {
          skip(kind);
        }
      }
      return;
    }
    CutDerivative<TAcc> cut{ taps, count, centers, n };
    for (int kind = 0; kind < DerivativesTogether; ++kind)
    {
      if (group.fields[kind] >= 0)
      {
        cut.weights = axis.Weight(group.orders[kind], i, first);
        cut.differs = kind > 0;
        cut.result = place(group.fields[kind]);
        m_Functions.cut(cut);
        skip(kind);
      }
    }
  }

  void
  MakeCutWeights(std::int64_t x, std::int64_t last, TAcc * cut) const
  {
    const DerivativeTables<TAcc> & axis = m_Plan.tables[0];
    const std::int64_t             taps = 2 * axis.radius + 1;
    for (int order = 0; order <= DerivativeOperation::LargestOrder; ++order)
    {
      for (std::int64_t t = 0; t < taps && !axis.weights[order].empty(); ++t)
      {
        for (std::int64_t i = x; i < x + Width; ++i)
        {
          const std::int64_t from = i + t - axis.radius;
          const bool         isThere = i <= last && from >= m_Boxes.padded.lower[0] && from < m_Boxes.padded.upper[0];
          cut[(order * taps + t) * Width + (i - x)] =
            isThere ? *axis.Weight(order, i, t) : std::numeric_limits<TAcc>::quiet_NaN();
        }
      }
    }
  }

  const KernelCall &                m_Call;
  const DerivativeOperation &       m_Operation;
  const WindowBoxes &               m_Boxes;
  const DerivativePlan<TAcc> &      m_Plan;
  const DerivativeFunctions<TAcc> & m_Functions;
  const DerivativeLoad<TAcc>        m_Load;
  void (*const m_Convert)(void * to, const void * voxels, std::int64_t n);
  const RowStore<TAcc>              m_Store;
  HessianMeasureParameters          m_Measure;
  std::vector<Part>                 m_Parts;
  mutable std::vector<const TAcc *> m_Taps;
};

/** The output without the axis of components, of which a tile makes all. */
Box
SpatialBox(const DerivativeOperation & operation, Box output)
{
  if (const int axis = operation.componentAxis; axis >= 0)
  {
    output.upper[axis] = std::min(output.lower[axis] + 1, output.upper[axis]);
  }
  return output;
}

/** Tiles whose planes stay in a core's own cache, for so many fields. */
template <typename TAcc>
MarchTiling
MakeDerivativeTiling(const Box & output, const Coordinates & radius, int fields)
{
  constexpr std::int64_t cache = 640 * 1024;
  constexpr auto         size = static_cast<std::int64_t>(sizeof(TAcc));
  MarchTiling            tiling(output, radius, fields * size, size);
  const std::int64_t     planes = 2 * radius[tiling.axis] + MarchTogether;
  // Lines that two tiles share are passed along x twice, but short rows take long.
  const std::int64_t shortest = 4 * tiling.line;
  const std::int64_t usual = 16 * tiling.line;
  std::int64_t       columns = 1;
  for (int a = 1; a < MaxDimension; ++a)
  {
    if (a != tiling.axis && radius[a] > 0)
    {
      const std::int64_t least = std::max<std::int64_t>(columns == 1 ? 16 : 4, 3 * radius[a] / 2);
      const std::int64_t fitting = cache / (planes * columns * fields * size * usual);
      const std::int64_t wanted = std::min<std::int64_t>(std::max(fitting, least), std::max<std::int64_t>(128, least));
      tiling.tile[a] = std::min(output.Extent(a), wanted);
      columns *= wanted;
    }
  }
  const std::int64_t fitting = cache / (planes * columns * fields * size) / tiling.line * tiling.line;
  tiling.tile[0] = std::min(output.Extent(0), std::min<std::int64_t>(std::max(fitting, shortest), 512));
  return tiling;
}

/** A worker's memory: planes, then weights. */
template <typename TAcc>
std::int64_t
BytesOfDerivative(const DerivativePlan<TAcc> & plan, const MarchTiling & tiling)
{
  const Box         tile = Box::FromExtent(tiling.tile);
  const WindowBoxes boxes(tile, tile, tiling.radius, BoundaryMode::Mirror);
  return plan.MakeMemory().LayOut(boxes, tiling.axis, nullptr) +
         DerivativeMarch<TAcc>::CutWeights(tiling.tile[0] + DerivativeMarch<TAcc>::Width, tiling.radius[0]) *
           static_cast<std::int64_t>(sizeof(TAcc));
}

/** The derivatives at a scale, tile by tile. `scratch` has room for each worker; report(tile) hears of finished tiles.
 */
template <typename TAcc, typename TReport>
void
RunDerivativeAt(const KernelCall & call, DerivativePlan<TAcc> & plan, const Box & output, char * scratch,
                TReport && report)
{
  const auto & operation = static_cast<const DerivativeOperation &>(*call.operation);
  plan.MakeTables(operation, call.image);
  const MarchTiling  tiling = MakeDerivativeTiling<TAcc>(output, plan.radius, plan.fields);
  const std::int64_t bytes = BytesOfDerivative(plan, tiling);
  const Coordinates  extent = tiling.Balance(output, call.executor->GetConcurrency());
  KernelCall         march = call;
  if (operation.ofVectors)
  {
    // Rows of several images are loaded by the filter, which has their views.
    march.inputs[0].box = Box{};
  }
  call.executor->ParallelFor(CountTiles(output, extent), [&](std::int64_t task, unsigned int worker) {
    if (call.control && call.control->ShouldStop())
    {
      return;
    }
    const Box         tile = TileNumber(output, extent, task, FastestAxis(call.inputs[0]));
    const WindowBoxes boxes(tile, call.image, plan.radius, operation.boundary.mode);
    char * const      place = scratch + bytes * worker;
    MarchMemory<TAcc> memory = plan.MakeMemory();
    const auto        cut = reinterpret_cast<TAcc *>(place + memory.LayOut(boxes, tiling.axis, place));
    PlaneMarch<TAcc, DerivativeMarch<TAcc>>(
      march, DerivativeMarch<TAcc>(call, boxes, plan, cut), tiling.axis, boxes, memory)
      .Run();
    GetCpuLevel().endStream();
    report(tile);
  });
}

/** The voxels whose gradients the structure tensors of an output need. */
Box
GradientBox(const DerivativeOperation & operation, Box output, const Box & image)
{
  const Coordinates radius = operation.GetRadius(0);
  for (int a = 0; a < MaxDimension; ++a)
  {
    output.lower[a] -= radius[a];
    output.upper[a] += radius[a];
  }
  return operation.boundary.mode == BoundaryMode::Periodic ? output : Intersect(output, image);
}

/** The gradients of the voxels that structure tensors of `output` need, component by component. */
template <typename TAcc>
BufferView
RunGradient(const KernelCall & call, const Box & output, char * memory)
{
  const auto & tensor = static_cast<const DerivativeOperation &>(*call.operation);
  const Box    box = GradientBox(tensor, output, call.image);
  KernelCall   inner = call;
  inner.operation = tensor.gradient.get();
  inner.output = DenseView(memory, sizeof(TAcc) == 4 ? PixelType::Float32 : PixelType::Float64, box);
  DerivativePlan<TAcc> plan(*tensor.gradient, 0);
  plan.resultGap = box.NumberOfVoxels();
  const std::int64_t bytes =
    plan.resultGap * static_cast<std::int64_t>(tensor.gradient->components.size() * sizeof(TAcc));
  RunDerivativeAt<TAcc>(inner, plan, box, memory + RoundToLine(bytes), [](const Box &) {});
  return inner.output;
}

/** One scale after the other: a measure of later scales is compared with the values in the output. */
template <typename TAcc>
void
RunDerivativeIn(const KernelCall & call)
{
  const auto &       operation = static_cast<const DerivativeOperation &>(*call.operation);
  const Box          output = SpatialBox(operation, call.output.box);
  const auto         scales = static_cast<std::int64_t>(operation.scales.size());
  const std::int64_t results = call.output.box.NumberOfVoxels() / std::max<std::int64_t>(1, output.NumberOfVoxels());
  KernelCall         outer = call;
  char *             scratch = static_cast<char *>(call.scratch);
  if (operation.gradient)
  {
    outer.inputs[0] = RunGradient<TAcc>(call, output, scratch);
    scratch += RoundToLine(outer.inputs[0].box.NumberOfVoxels() *
                           static_cast<std::int64_t>(operation.gradient->components.size() * sizeof(TAcc)));
  }
  for (std::size_t scale = 0; scale < operation.scales.size(); ++scale)
  {
    DerivativePlan<TAcc> plan(operation, scale);
    plan.inputGap = operation.gradient ? outer.inputs[0].box.NumberOfVoxels() : 0;
    // Each scale reports its share of the voxels, and the last one the rest.
    RunDerivativeAt<TAcc>(outer, plan, output, scratch, [&](const Box & tile) {
      const std::int64_t voxels = tile.NumberOfVoxels() * results;
      if (call.control)
      {
        call.control->AddFinishedVoxels(
          static_cast<std::int64_t>(scale) + 1 < scales ? voxels / scales : voxels - voxels / scales * (scales - 1));
      }
    });
  }
}

void
RunDerivative(const KernelCall & call)
{
  UsesDouble(call.inputs[0].kind) ? RunDerivativeIn<double>(call) : RunDerivativeIn<float>(call);
}

template <typename TAcc>
std::int64_t
BytesAtScale(const DerivativeOperation & operation, std::size_t scale, const Box & output)
{
  const DerivativePlan<TAcc> plan(operation, scale);
  return BytesOfDerivative(plan, MakeDerivativeTiling<TAcc>(output, plan.radius, plan.fields));
}

template <typename TAcc>
std::int64_t
ScratchOfDerivativeIn(const DerivativeOperation & operation, const ChunkShape & shape)
{
  const Box    output = SpatialBox(operation, shape.outputBox);
  std::int64_t most = 0;
  for (std::size_t scale = 0; scale < operation.scales.size(); ++scale)
  {
    most = std::max(most, BytesAtScale<TAcc>(operation, scale, output));
  }
  if (!operation.gradient)
  {
    return most * shape.concurrency;
  }
  const Coordinates radius = operation.GetRadius(0);
  Coordinates       extent{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    extent[a] = output.Extent(a) + 2 * radius[a];
    if (operation.boundary.mode != BoundaryMode::Periodic)
    {
      extent[a] = std::min(extent[a], std::max<std::int64_t>(1, shape.image.Extent(a)));
    }
  }
  const Box gradients = Box::FromExtent(extent);
  return std::max(most, BytesAtScale<TAcc>(*operation.gradient, 0, gradients)) * shape.concurrency +
         RoundToLine(gradients.NumberOfVoxels() *
                     static_cast<std::int64_t>(operation.gradient->components.size() * sizeof(TAcc)));
}

std::size_t
ScratchOfDerivative(const Operation & operation, const ChunkShape & shape)
{
  const auto & derivative = static_cast<const DerivativeOperation &>(operation);
  return static_cast<std::size_t>(UsesDouble(shape.inputKinds[0]) ? ScratchOfDerivativeIn<double>(derivative, shape)
                                                                  : ScratchOfDerivativeIn<float>(derivative, shape));
}

template <typename TReal>
void
RunScaleStepOf(const KernelCall & call)
{
  const auto &          operation = static_cast<const ScaleStepOperation &>(*call.operation);
  const RowStore<TReal> store = RowStoreOf<TReal>(call.output.kind);
  constexpr int         n = 256;
  const auto            at = [&](int input, const Coordinates & index) {
    return StridedRow<const TReal>(call.inputs[std::min(input, call.numberOfInputs - 1)], index);
  };
  ForEachTileOf({ { n, 16, 16, 1, 1 } }, call, [&](const Box & tile, unsigned int) {
    TReal row[n];
    ForEachRow(tile, [&](const Coordinates & index) {
      const auto measures = at(0, index);
      const auto largest = at(1, index);
      const auto scales = at(2, index);
      for (std::int64_t x = 0; x < tile.Extent(0); ++x)
      {
        const TReal before = operation.isFirst ? TReal(0) : largest[x];
        const TReal otherwise = operation.isFirst ? TReal(0) : scales[x];
        row[x] = ScaleStep(
          measures[x], before, otherwise, operation.givesScale ? static_cast<TReal>(operation.scale) : measures[x]);
      }
      store(call.output, index, tile.Extent(0), row);
    });
  });
}

void
RunScaleStep(const KernelCall & call)
{
  call.inputs[0].kind == PixelType::Float32 ? RunScaleStepOf<float>(call) : RunScaleStepOf<double>(call);
}

} // namespace

void
RegisterHostDerivative(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunDerivative;
  kernel.scratchBytes = ScratchOfDerivative;
  registry.Register("derivative", { kernel });
  Kernel step;
  step.run = RunScaleStep;
  registry.Register("scalestep.voxels", { step });
}

} // namespace chunkwise
