/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuVariance.h"

#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuMarch.h"
#include "chunkwiseCpuRowStore.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseMoments.h"
#include "chunkwiseSidedBoxes.h"
#include "chunkwiseVarianceOperation.h"

#include <cstring>
#include <vector>

namespace chunkwise
{

namespace
{

/** The windows of a VarianceOperation, or of a FootprintOperation that has sides. */
struct VarianceWindows
{
  FootprintOperation::Sides sides;
  WindowBoundary            boundary;
  bool                      takesRoot{ false };

  VarianceWindows(const Operation & operation, const Box & image)
  {
    if (const auto * const footprint = dynamic_cast<const FootprintOperation *>(&operation))
    {
      sides = *footprint->GetSides(image.Extents());
      boundary = footprint->boundary;
      takesRoot = footprint->statistic == FootprintStatistic::StandardDeviation;
      return;
    }
    const auto & variance = static_cast<const VarianceOperation &>(operation);
    sides.lower = sides.upper = variance.EffectiveRadius(image.Extents());
    boundary = variance.boundary;
    takesRoot = variance.takesRoot;
  }
};

/** Variances of real numbers and 64-bit integers, by merged moments. */
template <typename TPixel>
class MomentMarch
{
public:
  using Real = typename MomentTypes<TPixel>::Real;
  using Step = MomentStep<Real>;
  /** Voxels, which 64-bit integers have the bits of, differences and variances. */
  static constexpr int Fields = 3;

  MomentMarch(const KernelCall & call, const VarianceWindows & windows, const SidedBoxes & boxes)
    : m_Call(call)
    , m_Windows(windows)
    , m_Boxes(boxes)
    , m_Store(RowStoreOf<Real>(call.output.kind))
  {
    const MarchLevel & level = GetMarchLevel();
    if constexpr (std::is_same<TPixel, Real>::value)
    {
      m_Merge = MarchFunctionsOf<Real>(level).mergeMoments;
    }
    else
    {
      m_Merge = std::is_signed<TPixel>::value ? level.mergeInt64 : level.mergeUInt64;
    }
  }

  void
  Load(const Box & row, Real * to) const
  {
    LoadTile<TPixel>(m_Call.inputs[0],
                     m_Call.image,
                     row,
                     m_Windows.boundary.mode,
                     ConstantPixel<TPixel>(m_Windows.boundary.constant),
                     reinterpret_cast<TPixel *>(to),
                     [](TPixel pixel) { return pixel; });
  }

  void
  Convert(const void * voxels, std::int64_t n, Real * to) const
  {
    std::memcpy(to, voxels, static_cast<std::size_t>(n) * sizeof(Real));
  }

  void
  Across(int, std::int64_t, std::int64_t, Step & step) const
  {
    Merge(step);
  }

  void
  AlongX(const Real * row, const Real ** taps, Step & step) const
  {
    const std::int64_t radius = m_Boxes.radius[0];
    const std::int64_t reach = m_Boxes.upper[0];
    const std::int64_t lower = m_Boxes.padded.lower[0];
    const std::int64_t upper = m_Boxes.padded.upper[0];
    const Box &        out = m_Boxes.after[0];
    const Step         whole = step;
    // Windows that the image's edge cuts are made one by one: each writes a line, of which the next one replaces all
    // but the first.
    const std::int64_t begin = std::min(std::max(out.lower[0], lower + radius), out.upper[0]);
    const std::int64_t end = std::max(std::min(out.upper[0], upper - reach), begin);
    for (std::int64_t x = out.lower[0]; x < out.upper[0];)
    {
      const bool         isCut = x < begin || x >= end;
      const std::int64_t first = std::max(x - radius, lower);
      step.taps = (isCut ? std::min(x + reach + 1, upper) : x + reach + 1) - first;
      step.n = isCut ? 1 : end - x;
      for (std::int64_t t = 0; t < step.taps; ++t)
      {
        taps[t] = row + (first + t - lower);
      }
      step.rows = taps;
      step.centers[0] = row + (x - lower);
      step.results[0] = whole.results[0] + (x - out.lower[0]);
      Merge(step);
      x += step.n;
    }
    step.results[0] = whole.results[0];
    step.n = whole.n;
  }

  void
  Store(const Coordinates & at, std::int64_t n, const Real * results) const
  {
    m_Store(m_Call.output, at, n, results);
  }

private:
  void
  Merge(Step & step) const
  {
    step.inverse = Real{ 1 } / static_cast<Real>(step.taps);
    step.takesRoot = m_Windows.takesRoot;
    m_Merge(step);
  }

  const KernelCall &      m_Call;
  const VarianceWindows & m_Windows;
  const SidedBoxes &      m_Boxes;
  const RowStore<Real>    m_Store;
  void (*m_Merge)(const Step & step);
};

/** Windows of at most this many voxels have sums of 16-bit integers, and of squares of 8-bit ones, in 32 bits. */
constexpr std::int64_t FewVoxels = 32768;

bool
HasFewVoxels(const FootprintOperation::Sides & sides)
{
  std::int64_t voxels = 1;
  for (int a = 0; a < MaxDimension && voxels <= FewVoxels; ++a)
  {
    voxels *= std::min(sides.Taps(a), FewVoxels + 1);
  }
  return voxels <= FewVoxels;
}

/** The types of sums and of sums of squares: the smallest that hold them, since rows of both go through the caches. */
template <typename TPixel, bool VFew>
struct SumTypes
{
  using First = typename MomentTypes<TPixel>::First;
  using Second = typename MomentTypes<TPixel>::Second;
};
template <typename TPixel>
struct SumTypes<TPixel, true>
{
  using Types = MomentTypes<TPixel>;
  using First = std::conditional_t<sizeof(TPixel) <= 2, std::int32_t, typename Types::First>;
  using Second = std::conditional_t<sizeof(TPixel) == 1, std::int32_t, typename Types::Second>;
};

/** Exact; the product of 16-bit integers is made in 32 bits. */
template <typename TSecond, typename TPixel>
TSecond
SquareOf(TPixel pixel)
{
  if constexpr (sizeof(TPixel) <= 2)
  {
    const auto wide = static_cast<std::uint32_t>(static_cast<std::int32_t>(pixel));
    return static_cast<TSecond>(wide * wide);
  }
  else
  {
    return static_cast<TSecond>(static_cast<std::int64_t>(pixel)) * pixel;
  }
}

template <typename T>
const RowFunctions<T> &
RowsOfLevel()
{
  const CpuLevel & level = GetCpuLevel();
  if constexpr (sizeof(T) == 4)
  {
    return level.int32;
  }
  else if constexpr (sizeof(T) == 8)
  {
    return level.int64;
  }
  else
  {
    return level.int128;
  }
}

/** The parts of a worker's memory for integers of up to 32 bits. */
template <typename TPixel, bool VFew>
struct MomentMemory
{
  using First = typename SumTypes<TPixel, VFew>::First;
  using Second = typename SumTypes<TPixel, VFew>::Second;

  TPixel * pixels{ nullptr };
  First *  first[2]{};
  Second * second[2]{};
  /** A row of the last pass' sums, of what the first one adds up, and of sums of further taps. */
  First *  sums{ nullptr };
  Second * squares{ nullptr };
  First *  voxels{ nullptr };
  Second * squaresOfVoxels{ nullptr };
  First *  further{ nullptr };
  Second * furtherSquares{ nullptr };

  /** Lays the parts out from `memory`; gives the bytes they take. */
  std::int64_t
  LayOut(const WindowBoxes & boxes, char * memory)
  {
    std::int64_t bytes = 0;
    const auto   take = [&](auto *& part, std::int64_t n) {
      using Part = std::remove_reference_t<decltype(*part)>;
      part = reinterpret_cast<Part *>(memory + bytes);
      bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(Part)));
    };
    take(pixels, boxes.padded.NumberOfVoxels());
    for (int i = 0; i < 2; ++i)
    {
      take(first[i], boxes.Intermediate(i));
      take(second[i], boxes.Intermediate(i));
    }
    const std::int64_t row = boxes.padded.Extent(0);
    for (First ** part : { &sums, &voxels, &further })
    {
      take(*part, row);
    }
    for (Second ** part : { &squares, &squaresOfVoxels, &furtherSquares })
    {
      take(*part, row);
    }
    return bytes;
  }
};

/** Variances of integers of up to 32 bits, by exact sums. */
template <typename TPixel, bool VFew>
class VarianceOfTile
{
public:
  using First = typename SumTypes<TPixel, VFew>::First;
  using Second = typename SumTypes<TPixel, VFew>::Second;

  VarianceOfTile(const KernelCall & call, const VarianceWindows & windows, const SidedBoxes & boxes,
                 const MomentMemory<TPixel, VFew> & memory)
    : m_Call(call)
    , m_Windows(windows)
    , m_Boxes(boxes)
    , m_Memory(memory)
  {
    DispatchOutput<TPixel>(call.output.kind, [this](auto out) { m_Store = &VarianceOfTile::Store<decltype(out)>; });
  }

  void
  Run()
  {
    LoadTile<TPixel>(m_Call.inputs[0],
                     m_Call.image,
                     m_Boxes.padded,
                     m_Windows.boundary.mode,
                     ConstantPixel<TPixel>(m_Windows.boundary.constant),
                     m_Memory.pixels,
                     [](TPixel pixel) { return pixel; });
    for (int pass = 0; pass < m_Boxes.count; ++pass)
    {
      RunPass(pass);
    }
  }

private:
  void
  RunPass(int pass)
  {
    const int  axis = m_Boxes.axes[pass];
    const bool isLast = pass + 1 == m_Boxes.count;
    ForEachRow(m_Boxes.after[pass], [&](const Coordinates & at) {
      const std::int64_t offset = isLast ? 0 : DenseOffset(m_Boxes.after[pass], at);
      First * const      sums = isLast ? m_Memory.sums : m_Memory.first[pass % 2] + offset;
      Second * const     squares = isLast ? m_Memory.squares : m_Memory.second[pass % 2] + offset;
      if (axis == 0)
      {
        SumAlong(at, sums, squares);
      }
      else if (pass == 0)
      {
        SumVoxels(at, sums, squares);
      }
      else
      {
        SumAcross(pass, at, sums, squares);
      }
      if (isLast)
      {
        (this->*m_Store)(at, m_Boxes.after[pass].Extent(0));
      }
    });
  }

  /** Voxels, and their squares, of `n` from `at` on. */
  void
  LoadVoxels(const Coordinates & at, std::int64_t n) const
  {
    const TPixel * const pixels = m_Memory.pixels + DenseOffset(m_Boxes.padded, at);
    for (std::int64_t x = 0; x < n; ++x)
    {
      m_Memory.voxels[x] = static_cast<First>(pixels[x]);
      m_Memory.squaresOfVoxels[x] = SquareOf<Second>(pixels[x]);
    }
  }

  /** The sums of rows of `n`, by groups of as many as the level adds at once. */
  template <typename T>
  static void
  SumRows(std::vector<const T *> & rows, T * further, std::int64_t n, T * to)
  {
    constexpr std::size_t   together = 9;
    const RowFunctions<T> & level = RowsOfLevel<T>();
    for (std::size_t i = 0; i < rows.size(); i += together)
    {
      const auto count = static_cast<std::int64_t>(std::min(together, rows.size() - i));
      level.sum(i == 0 ? to : further, rows.data() + i, count, n);
      if (i > 0)
      {
        level.add(to, to, further, n);
      }
    }
  }

  void
  SumBoth(std::int64_t n, First * sums, Second * squares)
  {
    SumRows(m_FirstRows, m_Memory.further, n, sums);
    SumRows(m_SecondRows, m_Memory.furtherSquares, n, squares);
  }

  /** The first pass, along x. */
  void
  SumAlong(Coordinates at, First * sums, Second * squares)
  {
    const std::int64_t radius = m_Boxes.radius[0];
    const std::int64_t reach = m_Boxes.upper[0];
    const std::int64_t lower = m_Boxes.padded.lower[0];
    const std::int64_t upper = m_Boxes.padded.upper[0];
    const std::int64_t from = at[0];
    const std::int64_t until = m_Boxes.after[0].upper[0];
    at[0] = lower;
    LoadVoxels(at, upper - lower);
    const auto cut = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t x = begin; x < end; ++x)
      {
        First  sum = 0;
        Second square = 0;
        for (std::int64_t tap = std::max(x - radius, lower); tap < std::min(x + reach + 1, upper); ++tap)
        {
          sum += m_Memory.voxels[tap - lower];
          square += m_Memory.squaresOfVoxels[tap - lower];
        }
        sums[x - from] = sum;
        squares[x - from] = square;
      }
    };
    // The range of windows that have all their taps.
    const std::int64_t begin = std::min(std::max(from, lower + radius), until);
    const std::int64_t end = std::max(std::min(until, upper - reach), begin);
    cut(from, begin);
    cut(end, until);
    if (begin < end)
    {
      m_FirstRows.clear();
      m_SecondRows.clear();
      for (std::int64_t tap = begin - radius - lower; tap <= begin + reach - lower; ++tap)
      {
        m_FirstRows.push_back(m_Memory.voxels + tap);
        m_SecondRows.push_back(m_Memory.squaresOfVoxels + tap);
      }
      SumBoth(end - begin, sums + (begin - from), squares + (begin - from));
    }
  }

  /** The taps of a pass along another axis than x, of which there is one at least. */
  template <typename TTap>
  void
  ForEachTap(int pass, const Coordinates & at, TTap && tap) const
  {
    const int   a = m_Boxes.axes[pass];
    const Box & before = m_Boxes.Before(pass);
    Coordinates from = at;
    for (from[a] = std::max(at[a] - m_Boxes.radius[a], before.lower[a]);
         from[a] < std::min(at[a] + m_Boxes.upper[a] + 1, before.upper[a]);
         ++from[a])
    {
      tap(from);
    }
  }

  /** The first pass, along another axis. */
  void
  SumVoxels(const Coordinates & at, First * sums, Second * squares) const
  {
    const std::int64_t n = m_Boxes.after[0].Extent(0);
    std::fill(sums, sums + n, First{ 0 });
    std::fill(squares, squares + n, Second{ 0 });
    ForEachTap(0, at, [&](const Coordinates & from) {
      LoadVoxels(from, n);
      RowsOfLevel<First>().add(sums, sums, m_Memory.voxels, n);
      RowsOfLevel<Second>().add(squares, squares, m_Memory.squaresOfVoxels, n);
    });
  }

  void
  SumAcross(int pass, const Coordinates & at, First * sums, Second * squares)
  {
    m_FirstRows.clear();
    m_SecondRows.clear();
    ForEachTap(pass, at, [&](const Coordinates & from) {
      const std::int64_t offset = DenseOffset(m_Boxes.Before(pass), from);
      m_FirstRows.push_back(m_Memory.first[(pass + 1) % 2] + offset);
      m_SecondRows.push_back(m_Memory.second[(pass + 1) % 2] + offset);
    });
    SumBoth(m_Boxes.after[pass].Extent(0), sums, squares);
  }

  /** A row of the last pass' variances as pixels of the output: all else knows nothing of its kind. */
  template <typename TOut>
  void
  Store(const Coordinates & at, std::int64_t n) const
  {
    std::int64_t across = 1;
    int          along = -1;
    for (int pass = 0; pass < m_Boxes.count; ++pass)
    {
      const int a = m_Boxes.axes[pass];
      along = a == 0 ? pass : along;
      across *= a == 0 ? 1 : m_Boxes.CountTaps(pass, at[a]);
    }
    StoreRow<TOut>(m_Call.output, at, n, [&](std::int64_t x) {
      const std::int64_t count = along < 0 ? across : across * m_Boxes.CountTaps(along, at[0] + x);
      return FinishVariance<TOut>(VarianceOfSums(m_Memory.sums[x], m_Memory.squares[x], count), m_Windows.takesRoot);
    });
  }

  const KernelCall &                 m_Call;
  const VarianceWindows &            m_Windows;
  const SidedBoxes &                 m_Boxes;
  const MomentMemory<TPixel, VFew> & m_Memory;
  std::vector<const First *>         m_FirstRows;
  std::vector<const Second *>        m_SecondRows;
  void (VarianceOfTile::*m_Store)(const Coordinates & at, std::int64_t n) const;
};

/** Calls f(whether windows have few voxels, as a type). */
template <typename TFunctor>
auto
WithFew(const FootprintOperation::Sides & sides, TFunctor && f)
{
  return HasFewVoxels(sides) ? f(std::true_type()) : f(std::false_type());
}

template <typename TPixel>
MarchTiling
MakeTiling(const Box & output, const Coordinates & radius)
{
  using Filter = MomentMarch<TPixel>;
  constexpr auto size = static_cast<std::int64_t>(sizeof(typename Filter::Real));
  return { output, radius, Filter::Fields * size, size };
}

template <typename TPixel>
std::int64_t
BytesOf(const Box & output, const FootprintOperation::Sides & sides)
{
  const Coordinates radius = sides.Farthest();
  if constexpr (MomentTypes<TPixel>::IsExact)
  {
    return WithFew(sides, [&](auto few) {
      return TileBytes(output, radius, [](const WindowBoxes & boxes) {
        return MomentMemory<TPixel, decltype(few)::value>().LayOut(boxes, nullptr);
      });
    });
  }
  else
  {
    using Filter = MomentMarch<TPixel>;
    const MarchTiling                  tiling = MakeTiling<TPixel>(output, radius);
    const Box                          tile = Box::FromExtent(tiling.tile);
    const WindowBoxes                  boxes(tile, tile, radius, BoundaryMode::Mirror);
    MarchMemory<typename Filter::Real> memory;
    memory.fields = Filter::Fields;
    return memory.LayOut(boxes, tiling.axis, nullptr);
  }
}

} // namespace

void
RunVariance(const KernelCall & call)
{
  RunVarianceOf(call, [](const Box & tile) { return tile; });
}

std::size_t
ScratchOfVariance(const Operation & operation, const ChunkShape & shape)
{
  const VarianceWindows windows(operation, shape.image);
  return DispatchPixelType(shape.inputKinds[0], [&](auto pixel) {
    return static_cast<std::size_t>(BytesOf<decltype(pixel)>(shape.outputBox, windows.sides) * shape.concurrency);
  });
}

void
RunVarianceOf(const KernelCall & call, const std::function<Box(const Box & tile)> & part)
{
  const VarianceWindows windows(*call.operation, call.image);
  const Coordinates     radius = windows.sides.Farthest();
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const std::int64_t bytes = BytesOf<Pixel>(call.output.box, windows.sides);
    const auto         run = [&](auto && body) {
      return [&](const Box & tile, unsigned int worker) {
        const Box wanted = part(tile);
        if (!wanted.IsEmpty())
        {
          const SidedBoxes boxes(wanted, call.image, windows.sides, windows.boundary.mode);
          body(boxes, static_cast<char *>(call.scratch) + bytes * worker);
        }
      };
    };
    if constexpr (MomentTypes<Pixel>::IsExact)
    {
      WithFew(windows.sides, [&](auto few) {
        ForEachTile(call, radius, run([&](const SidedBoxes & boxes, char * scratch) {
                      MomentMemory<Pixel, decltype(few)::value> memory;
                      memory.LayOut(boxes, scratch);
                      VarianceOfTile<Pixel, decltype(few)::value>(call, windows, boxes, memory).Run();
                    }));
      });
    }
    else
    {
      using Filter = MomentMarch<Pixel>;
      using Real = typename Filter::Real;
      const MarchTiling tiling = MakeTiling<Pixel>(call.output.box, radius);
      ForEachTileOf(tiling.Balance(call.output.box, call.executor->GetConcurrency()),
                    call,
                    run([&](const SidedBoxes & boxes, char * scratch) {
                      MarchMemory<Real> memory;
                      memory.fields = Filter::Fields;
                      memory.LayOut(boxes, tiling.axis, scratch);
                      PlaneMarch<Real, Filter>(call, Filter(call, windows, boxes), tiling.axis, boxes, memory).Run();
                    }));
    }
  });
}

void
RegisterHostVariance(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunVariance;
  kernel.scratchBytes = ScratchOfVariance;
  registry.Register("variance", { kernel });
}

} // namespace chunkwise
