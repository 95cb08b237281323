/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuTiles.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwiseRealOf.h"

#include <type_traits>

namespace chunkwise
{

namespace
{

/** The parts of a worker's memory. */
template <typename TReal>
struct PatchMemory
{
  TReal * values{ nullptr };
  TReal * inside{ nullptr }; ///< 1 where a column is in the image, else 0
  TReal * squares{ nullptr };
  TReal * counts{ nullptr }; ///< offsets along x that both patches have
  TReal * weighted{ nullptr };
  TReal * weights{ nullptr };

  std::int64_t
  LayOut(const WindowBoxes & boxes, char * memory)
  {
    std::int64_t bytes = 0;
    const auto   take = [&](TReal *& part, std::int64_t n) {
      part = reinterpret_cast<TReal *>(memory + bytes);
      bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(TReal)));
    };
    const std::int64_t n = boxes.after[boxes.count - 1].Extent(0);
    take(values, boxes.padded.NumberOfVoxels());
    take(inside, boxes.padded.Extent(0));
    take(squares, n);
    take(counts, n);
    take(weighted, n);
    take(weights, n);
    return bytes;
  }
};

/** Adds the squares of n differences along the row at `a` and `b`, `taps` of them. */
template <typename TReal>
void
AddSquares(TReal * __restrict__ squares, const TReal * a, const TReal * b, std::int64_t taps, std::int64_t n)
{
  for (std::int64_t t = 0; t < taps; ++t)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      const TReal difference = a[i + t] - b[i + t];
      squares[i] += difference * difference;
    }
  }
}

/** As above, of the columns that are in the image. */
template <typename TReal>
void
AddSquaresInside(TReal * __restrict__ squares, const TReal * a, const TReal * b, const TReal * insideA,
                 const TReal * insideB, std::int64_t taps, std::int64_t n)
{
  for (std::int64_t t = 0; t < taps; ++t)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      const TReal difference = a[i + t] - b[i + t];
      const bool  both = insideA[i + t] * insideB[i + t] != TReal(0);
      squares[i] += both ? difference * difference : TReal(0);
    }
  }
}

template <typename TPixel, typename TOut>
void
RunTile(const KernelCall & call, const NonLocalMeansOperation & operation, const WindowBoxes & boxes,
        const PatchMemory<RealOf<TPixel>> & m)
{
  using Real = RealOf<TPixel>;
  const Box &       padded = boxes.padded;
  const bool        cuts = operation.boundary.mode == BoundaryMode::Renormalized;
  const Coordinates image = call.image.Extents();
  const Coordinates search = operation.Cut(operation.search, image);
  const Coordinates patch = operation.Cut(operation.patch, image);
  LoadTile<TPixel>(call.inputs[0],
                   call.image,
                   padded,
                   cuts ? BoundaryMode::Constant : operation.boundary.mode,
                   cuts ? Real(0) : static_cast<Real>(ConstantPixel<TPixel>(operation.boundary.constant)),
                   m.values,
                   [](TPixel pixel) { return static_cast<Real>(pixel); });
  for (std::int64_t x = 0; x < padded.Extent(0); ++x)
  {
    const std::int64_t i = padded.lower[0] + x;
    m.inside[x] = !cuts || (i >= 0 && i < image[0]) ? Real(1) : Real(0);
  }
  const bool         cutsX = cuts && (padded.lower[0] < 0 || padded.upper[0] > image[0]);
  const Box          output = boxes.after[boxes.count - 1];
  const std::int64_t n = output.Extent(0);
  const std::int64_t taps = 2 * patch[0] + 1;
  const auto         twiceNoise = static_cast<Real>(2 * operation.noise);
  const auto         inverse = static_cast<Real>(1 / (operation.strength * operation.strength));
  ForEachRow(output, [&](const Coordinates & at) {
    std::fill(m.weighted, m.weighted + n, Real(0));
    std::fill(m.weights, m.weights + n, Real(0));
    Box around{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      const bool cut = cuts && a > 0;
      around.lower[a] = cut ? std::max(at[a] - search[a], std::int64_t{ 0 }) : at[a] - search[a];
      around.upper[a] = cut ? std::min(at[a] + search[a] + 1, image[a]) : at[a] + search[a] + 1;
    }
    const std::int64_t firstX = around.lower[0];
    const std::int64_t endX = around.upper[0];
    around.upper[0] = firstX + 1;
    const auto addShift = [&](const Coordinates & other) {
      Box          offsets{};
      std::int64_t rows = 1;
      for (int a = 1; a < MaxDimension; ++a)
      {
        const std::int64_t low = std::min(at[a], other[a]);
        const std::int64_t high = std::max(at[a], other[a]);
        offsets.lower[a] = cuts ? std::max(-patch[a], -low) : -patch[a];
        offsets.upper[a] = (cuts ? std::min(patch[a], image[a] - 1 - high) : patch[a]) + 1;
        rows *= offsets.Extent(a);
      }
      offsets.lower[0] = -patch[0];
      offsets.upper[0] = -patch[0] + 1;
      const Real * const insideA = m.inside + (at[0] - padded.lower[0]);
      const Real * const insideB = m.inside + (other[0] - padded.lower[0]);
      std::fill(m.squares, m.squares + n, Real(0));
      ForEachRow(offsets, [&](const Coordinates & offset) {
        Coordinates p = at;
        Coordinates q = other;
        for (int a = 0; a < MaxDimension; ++a)
        {
          p[a] += offset[a];
          q[a] += offset[a];
        }
        const Real * const a = m.values + DenseOffset(padded, p);
        const Real * const b = m.values + DenseOffset(padded, q);
        cutsX ? AddSquaresInside(m.squares, a, b, insideA - patch[0], insideB - patch[0], taps, n)
              : AddSquares(m.squares, a, b, taps, n);
      });
      std::fill(m.counts, m.counts + n, static_cast<Real>(rows * taps));
      for (std::int64_t i = 0; i < n && cutsX; ++i)
      {
        std::int64_t both = 0;
        for (std::int64_t t = -patch[0]; t <= patch[0]; ++t)
        {
          both += insideA[i + t] * insideB[i + t] != Real(0) ? 1 : 0;
        }
        m.counts[i] = static_cast<Real>(rows * both);
      }
      const Real * const voxels = m.values + DenseOffset(padded, other);
      for (std::int64_t i = 0; i < n; ++i)
      {
        const Real weight = PatchWeight(m.squares[i], m.counts[i], twiceNoise, inverse);
        const bool there = insideB[i] != Real(0);
        m.weighted[i] += there ? weight * voxels[i] : Real(0);
        m.weights[i] += there ? weight : Real(0);
      }
    };
    ForEachRow(around, [&](Coordinates other) {
      for (other[0] = firstX; other[0] < endX; ++other[0])
      {
        addShift(other);
      }
    });
    StoreRow<TOut>(
      call.output, at, n, [&](std::int64_t i) { return ConvertResult<TOut>(m.weighted[i] / m.weights[i]); });
  });
}

template <typename TReal>
std::int64_t
BytesOf(const Box & output, const Coordinates & reach)
{
  return TileBytes(
    output, reach, [](const WindowBoxes & boxes) { return PatchMemory<TReal>().LayOut(boxes, nullptr); });
}

void
RunNonLocalMeans(const KernelCall & call)
{
  const auto &      operation = static_cast<const NonLocalMeansOperation &>(*call.operation);
  const Coordinates reach = operation.Reach(call.image.Extents());
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    const std::int64_t bytes = BytesOf<Real>(call.output.box, reach);
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      ForEachTile(call, reach, [&](const Box & tile, unsigned int worker) {
        // Windows are whole: what is beyond the image's edge is known not to be there.
        const WindowBoxes boxes(tile, call.image, reach, BoundaryMode::Mirror);
        PatchMemory<Real> memory;
        memory.LayOut(boxes, static_cast<char *>(call.scratch) + bytes * worker);
        RunTile<Pixel, decltype(out)>(call, operation, boxes, memory);
      });
    });
  });
}

std::size_t
ScratchOfNonLocalMeans(const Operation & operation, const ChunkShape & shape)
{
  const Coordinates reach = static_cast<const NonLocalMeansOperation &>(operation).Reach(shape.image.Extents());
  return DispatchPixelKind(shape.inputKinds[0], [&](auto pixel) {
    return static_cast<std::size_t>(BytesOf<RealOf<decltype(pixel)>>(shape.outputBox, reach) * shape.concurrency);
  });
}

} // namespace

void
RegisterHostNonLocalMeans(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunNonLocalMeans;
  kernel.scratchBytes = ScratchOfNonLocalMeans;
  registry.Register("nonlocalmeans", kernel);
}

} // namespace chunkwise
