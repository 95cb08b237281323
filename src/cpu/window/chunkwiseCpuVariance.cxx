/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuVariance.h"

#include "chunkwiseCpuMarch.h"
#include "chunkwiseCpuRowStore.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseMoments.h"
#include "chunkwiseVarianceOperation.h"

#include <cstring>

namespace chunkwise
{

namespace
{

/** Variances of real numbers and 64-bit integers, by merged moments. */
template <typename TPixel>
class MomentMarch
{
public:
  using Real = typename MomentTypes<TPixel>::Real;
  using Step = MomentStep<Real>;
  /** Voxels, which 64-bit integers have the bits of, differences and variances. */
  static constexpr int Fields = 3;

  MomentMarch(const KernelCall & call, const WindowBoxes & boxes)
    : m_Call(call)
    , m_Operation(static_cast<const VarianceOperation &>(*call.operation))
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
                     m_Operation.boundary.mode,
                     ConstantPixel<TPixel>(m_Operation.boundary.constant),
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
    const std::int64_t lower = m_Boxes.padded.lower[0];
    const std::int64_t upper = m_Boxes.padded.upper[0];
    const Box &        out = m_Boxes.after[0];
    const Step         whole = step;
    // Windows that the image's edge cuts are made one by one: each writes a line, of which the next one replaces all
    // but the first.
    const std::int64_t begin = std::min(std::max(out.lower[0], lower + radius), out.upper[0]);
    const std::int64_t end = std::max(std::min(out.upper[0], upper - radius), begin);
    for (std::int64_t x = out.lower[0]; x < out.upper[0];)
    {
      const bool         isCut = x < begin || x >= end;
      const std::int64_t first = std::max(x - radius, lower);
      step.taps = (isCut ? std::min(x + radius + 1, upper) : x + radius + 1) - first;
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
    step.takesRoot = m_Operation.takesRoot;
    m_Merge(step);
  }

  const KernelCall &        m_Call;
  const VarianceOperation & m_Operation;
  const WindowBoxes &       m_Boxes;
  const RowStore<Real>      m_Store;
  void (*m_Merge)(const Step & step);
};

/** The parts of a worker's memory for integers of up to 32 bits. */
template <typename TPixel>
struct MomentMemory
{
  using Types = MomentTypes<TPixel>;
  using First = typename Types::First;
  using Second = typename Types::Second;

  TPixel * pixels{ nullptr };
  First *  first[2]{};
  Second * second[2]{};
  /** A row of what a pass adds up. */
  First *  sums{ nullptr };
  Second * squares{ nullptr };

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
    const std::int64_t row = boxes.after[0].Extent(0);
    take(sums, row);
    take(squares, row);
    return bytes;
  }
};

/** Variances of integers of up to 32 bits, by exact sums. */
template <typename TPixel>
class VarianceOfTile
{
public:
  using Types = MomentTypes<TPixel>;
  using First = typename Types::First;
  using Second = typename Types::Second;

  VarianceOfTile(const KernelCall & call, const WindowBoxes & boxes, const MomentMemory<TPixel> & memory)
    : m_Call(call)
    , m_Operation(static_cast<const VarianceOperation &>(*call.operation))
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
                     m_Operation.boundary.mode,
                     ConstantPixel<TPixel>(m_Operation.boundary.constant),
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
    const std::int64_t n = m_Boxes.after[pass].Extent(0);
    WalkPass(
      m_Boxes,
      pass,
      [&](const Coordinates &) {
        std::fill(m_Memory.sums, m_Memory.sums + n, First{ 0 });
        std::fill(m_Memory.squares, m_Memory.squares + n, Second{ 0 });
      },
      [&](std::int64_t, const Coordinates & from, std::int64_t first, std::int64_t last) {
        Tap(pass, from, first, last);
      },
      [&](const Coordinates & at) { Finish(pass, at); });
  }

  void
  Tap(int pass, const Coordinates & from, std::int64_t first, std::int64_t last)
  {
    First * const        sums = m_Memory.sums;
    Second * const       squares = m_Memory.squares;
    const TPixel * const pixels = m_Memory.pixels + DenseOffset(m_Boxes.padded, from);
    const std::int64_t   before = pass == 0 ? 0 : DenseOffset(m_Boxes.Before(pass), from);
    const First * const  d = m_Memory.first[(pass + 1) % 2] + before;
    const Second * const v = m_Memory.second[(pass + 1) % 2] + before;
    for (std::int64_t x = first; x < last; ++x)
    {
      sums[x] += pass == 0 ? static_cast<First>(pixels[x]) : d[x];
      squares[x] += pass == 0 ? static_cast<Second>(static_cast<First>(pixels[x])) * pixels[x] : v[x];
    }
  }

  std::int64_t
  TapsOf(int pass, const Coordinates & at, std::int64_t x) const
  {
    const int a = m_Boxes.axes[pass];
    return CountTaps(m_Boxes, pass, a == 0 ? at[0] + x : at[a]);
  }

  void
  Finish(int pass, const Coordinates & at)
  {
    const std::int64_t n = m_Boxes.after[pass].Extent(0);
    const bool         isLast = pass + 1 == m_Boxes.count;
    if (!isLast)
    {
      const std::int64_t offset = DenseOffset(m_Boxes.after[pass], at);
      std::copy(m_Memory.sums, m_Memory.sums + n, m_Memory.first[pass % 2] + offset);
      std::copy(m_Memory.squares, m_Memory.squares + n, m_Memory.second[pass % 2] + offset);
      return;
    }
    (this->*m_Store)(at, n);
  }

  /** A row of the last pass' variances as pixels of the output: all else knows nothing of its kind. */
  template <typename TOut>
  void
  Store(const Coordinates & at, std::int64_t n) const
  {
    StoreRow<TOut>(m_Call.output, at, n, [&](std::int64_t x) {
      std::int64_t count = 1;
      for (int which = 0; which < m_Boxes.count; ++which)
      {
        count *= TapsOf(which, at, x);
      }
      return FinishVariance<TOut>(VarianceOfSums(m_Memory.sums[x], m_Memory.squares[x], count), m_Operation.takesRoot);
    });
  }

  const KernelCall &           m_Call;
  const VarianceOperation &    m_Operation;
  const WindowBoxes &          m_Boxes;
  const MomentMemory<TPixel> & m_Memory;
  void (VarianceOfTile::*m_Store)(const Coordinates & at, std::int64_t n) const;
};

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
BytesOf(const Box & output, const Coordinates & radius)
{
  if constexpr (MomentTypes<TPixel>::IsExact)
  {
    return TileBytes(
      output, radius, [](const WindowBoxes & boxes) { return MomentMemory<TPixel>().LayOut(boxes, nullptr); });
  }
  else
  {
    using Filter = MomentMarch<TPixel>;
    const MarchTiling tiling = MakeTiling<TPixel>(output, radius);
    const Box         tile = Box::FromExtent(tiling.tile);
    const WindowBoxes boxes(tile, tile, radius, BoundaryMode::Mirror);
    return MarchMemory<typename Filter::Real, Filter::Fields>().LayOut(boxes, tiling.axis, nullptr);
  }
}

void
RunVariance(const KernelCall & call)
{
  RunVarianceOf(call, [](const Box & tile) { return tile; });
}

std::size_t
ScratchOfVariance(const Operation & operation, const ChunkShape & shape)
{
  const Coordinates radius = static_cast<const VarianceOperation &>(operation).EffectiveRadius(shape.image.Extents());
  return DispatchPixelKind(shape.inputKinds[0], [&](auto pixel) {
    return static_cast<std::size_t>(BytesOf<decltype(pixel)>(shape.outputBox, radius) * shape.concurrency);
  });
}

} // namespace

void
RunVarianceOf(const KernelCall & call, const std::function<Box(const Box & tile)> & part)
{
  const auto &      operation = static_cast<const VarianceOperation &>(*call.operation);
  const Coordinates radius = operation.EffectiveRadius(call.image.Extents());
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const std::int64_t bytes = BytesOf<Pixel>(call.output.box, radius);
    const auto         run = [&](auto && body) {
      return [&](const Box & tile, unsigned int worker) {
        const Box wanted = part(tile);
        if (!wanted.IsEmpty())
        {
          const WindowBoxes boxes(wanted, call.image, radius, operation.boundary.mode);
          body(boxes, static_cast<char *>(call.scratch) + bytes * worker);
        }
      };
    };
    if constexpr (MomentTypes<Pixel>::IsExact)
    {
      ForEachTile(call, radius, run([&](const WindowBoxes & boxes, char * scratch) {
                    MomentMemory<Pixel> memory;
                    memory.LayOut(boxes, scratch);
                    VarianceOfTile<Pixel>(call, boxes, memory).Run();
                  }));
    }
    else
    {
      using Filter = MomentMarch<Pixel>;
      using Real = typename Filter::Real;
      const MarchTiling tiling = MakeTiling<Pixel>(call.output.box, radius);
      ForEachTileOf(tiling.Balance(call.output.box, call.executor->GetConcurrency()),
                    call,
                    run([&](const WindowBoxes & boxes, char * scratch) {
                      MarchMemory<Real, Filter::Fields> memory;
                      memory.LayOut(boxes, tiling.axis, scratch);
                      PlaneMarch<Real, Filter>(call, Filter(call, boxes), tiling.axis, boxes, memory).Run();
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
  registry.Register("variance", kernel);
}

} // namespace chunkwise
