/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMedians.h"

#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuRankCounts.h"
#include "chunkwiseCpuTiles.h"

#include <cstring>
#include <limits>

// Medians of small windows, see chunkwiseCpuMedianImplementation.h. What a window lacks at the image's edge is filled
// up with as many keys below everything as above it, and one more below if their number is odd: the median is then that
// of the rest, the lower of two. Where voxels are counted, all that a window does not see is below everything, and half
// as many ranks above the median is what is wanted.
namespace chunkwise
{

namespace
{

/** Columns of a row of a tile, in bytes: few enough for the lists to stay in the first cache. */
constexpr std::int64_t
MedianColumnBytes(std::int64_t taps)
{
  return taps == 3 ? 1024 : 384;
}

/** The parts of a worker's memory. */
template <typename TKey>
struct MedianMemory
{
  TKey *         keys{ nullptr };
  TKey *         lists{ nullptr };
  TKey *         results{ nullptr };
  TKey *         chosen{ nullptr };
  const TKey **  lines{ nullptr };
  std::int64_t * offsets{ nullptr };
  TKey *         below{ nullptr };
  TKey *         above{ nullptr };
  TKey *         alternate{ nullptr };
  TKey *         raises{ nullptr };
  std::int64_t   lineCount{ 1 };
  std::int64_t   taps{ 0 };
  std::int64_t   pitch{ 0 };

  std::int64_t
  LayOut(const Coordinates & tile, const Coordinates & radius, std::int64_t components, char * memory)
  {
    constexpr std::int64_t size = sizeof(TKey);
    std::int64_t           bytes = 0;
    const auto             take = [&](auto *& part, std::int64_t n) {
      part = reinterpret_cast<std::remove_reference_t<decltype(part)>>(memory + bytes);
      bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(*part)));
    };
    taps = 2 * radius[0] + 1;
    std::int64_t numbers = (tile[0] + taps - 1) * components;
    pitch = (RoundToLine(numbers * size) + MedianVectorBytes) / size;
    for (int a = 1; a < MaxDimension; ++a)
    {
      lineCount *= 2 * radius[a] + 1;
      numbers *= a + 1 == MaxDimension && components > 1 ? 1 : tile[a] + 2 * radius[a];
    }
    // The last line is read as far as the others.
    take(keys, numbers + pitch);
    take(lists, MedianListRows(lineCount, taps) * pitch);
    take(results, pitch);
    take(chosen, pitch);
    take(lines, lineCount);
    take(offsets, lineCount);
    take(below, pitch);
    take(above, pitch);
    take(alternate, pitch + components);
    take(raises, pitch);
    return bytes;
  }
};

/** How many ranks above the median is what a window wants that sees so many of `taps` voxels. Returns whether any of n
 * windows sees some of its voxels alone. */
template <typename TKey, typename TCount>
bool
RaisesOf(const TCount * seen, std::int64_t n, std::int64_t taps, TKey * raises)
{
  const auto   all = static_cast<std::int32_t>(taps);
  std::int32_t any = 0;
  for (std::int64_t i = 0; i < n; ++i)
  {
    const auto         count = static_cast<std::int32_t>(seen[i]);
    const std::int32_t raise = count > 0 ? (all - count) / 2 : 0;
    raises[i] = static_cast<TKey>(raise);
    any |= raise;
  }
  return any != 0;
}

template <typename TPixel, typename TOut>
bool
RunTile(const KernelCall & call, const Coordinates & radius, const Box & box, std::int64_t components, char * memory)
{
  using KeyOf = RankKey<TPixel>;
  using Key = typename KeyOf::Type;
  constexpr Key most = std::numeric_limits<Key>::max();
  const auto &  operation = static_cast<const RankOperation &>(*call.operation);
  const auto &  functions = RankFunctionsOf<Key>(GetCpuLevel());
  const bool    cuts = operation.boundary.mode == BoundaryMode::Renormalized;
  // Of components that are taken together it is the first's.
  Box tile = box;
  tile.upper[MaxDimension - 1] -= components - 1;
  const WindowBoxes boxes(tile, call.image, radius, BoundaryMode::Mirror);
  const Box &       padded = boxes.padded;
  MedianMemory<Key> m;
  m.LayOut(tile.Extents(), radius, components, memory);
  const RankCounts counts(call);
  // What is beyond the image in Renormalized mode is in no line, and its columns are filled up; where voxels are
  // counted, it is not seen.
  const TPixel unseen = std::numeric_limits<TPixel>::has_infinity ? -std::numeric_limits<TPixel>::infinity()
                                                                  : std::numeric_limits<TPixel>::lowest();
  const auto   load = [&](auto && convert) {
    LoadTile<TPixel>(call.inputs[0],
                     call.image,
                     padded,
                     cuts ? BoundaryMode::Constant : operation.boundary.mode,
                     convert(cuts ? unseen : ConstantPixel<TPixel>(operation.boundary.constant)),
                     m.keys,
                     convert,
                     components);
  };
  if constexpr (KeyOf::IsReal)
  {
    load([](TPixel pixel) {
      Key bits = 0;
      std::memcpy(&bits, &pixel, sizeof(bits));
      return bits;
    });
    if (functions.realsToKeys(m.keys, padded.NumberOfVoxels() * components))
    {
      return false;
    }
  }
  else
  {
    load([](TPixel pixel) { return KeyOf::From(pixel); });
  }
  MedianRow<Key> row;
  row.lines = m.lines;
  row.lineCount = m.lineCount;
  row.taps = m.taps;
  row.step = components;
  row.columns = padded.Extent(0) * components;
  row.first = cuts ? std::max<std::int64_t>(0, call.image.lower[0] - padded.lower[0]) * components : 0;
  row.last = cuts ? std::min(row.columns, (call.image.upper[0] - padded.lower[0]) * components) : row.columns;
  row.lists = m.lists;
  row.pitch = m.pitch;
  std::fill(m.below, m.below + m.pitch, Key{ 0 });
  std::fill(m.above, m.above + m.pitch, most);
  for (std::int64_t i = 0; i < m.pitch + components; ++i)
  {
    m.alternate[i] = i / components % 2 == 0 ? Key{ 0 } : most;
  }
  const std::int64_t n = tile.Extent(0) * components;
  const BufferView   output = FoldComponents(call.output, components);
  const auto         windowAt = [&](const Coordinates & at) {
    Box window{ at, at };
    for (int a = 1; a < MaxDimension; ++a)
    {
      window.lower[a] -= radius[a];
      window.upper[a] += radius[a] + 1;
    }
    window.upper[0] += 1;
    return window;
  };
  // Where a window's lines begin, from the first one on.
  std::int64_t count = 0;
  ForEachRow(windowAt(tile.lower), [&](const Coordinates & line) {
    m.offsets[count++] = (DenseOffset(padded, line) - radius[0]) * components;
  });
  if (counts.IsGiven())
  {
    row.first = 0;
    row.last = row.columns;
    ForEachRow(tile, [&](const Coordinates & at) {
      counts.WithRow(at, [&](auto seen) {
        std::int64_t begin = 0;
        std::int64_t end = n;
        CutEnds(seen, begin, end);
        const Key * const keys = m.keys + (DenseOffset(padded, windowAt(at).lower) - radius[0]) + begin;
        for (std::int64_t line = 0; line < m.lineCount; ++line)
        {
          m.lines[line] = keys + m.offsets[line];
        }
        if (begin < end)
        {
          row.columns = row.last = end - begin + m.taps - 1;
          row.raises = RaisesOf(seen + begin, end - begin, m.lineCount * m.taps, m.raises) ? m.raises : nullptr;
          row.results = m.results + begin;
          functions.findMedians(row);
        }
        std::fill(m.results, m.results + begin, KeyOf::From(TPixel(0)));
        std::fill(m.results + end, m.results + n, KeyOf::From(TPixel(0)));
        StoreRow<TOut>(output, at, n, [&](std::int64_t x) { return static_cast<TOut>(KeyOf::To(m.results[x])); });
      });
    });
    return true;
  }
  ForEachRow(tile, [&](const Coordinates & at) {
    const Box         window = windowAt(at);
    const Key * const keys = m.keys + (DenseOffset(padded, window.lower) - radius[0]) * components;
    std::int64_t      lines = 0;
    if (!cuts || call.image.Contains(window))
    {
      for (; lines < m.lineCount; ++lines)
      {
        m.lines[lines] = keys + m.offsets[lines];
      }
    }
    else
    {
      ForEachRow(Intersect(window, call.image), [&](const Coordinates & line) {
        m.lines[lines++] = m.keys + (DenseOffset(padded, line) - radius[0]) * components;
      });
    }
    const std::int64_t missing = m.lineCount - lines;
    for (std::int64_t i = 0; i < missing / 2; ++i)
    {
      m.lines[lines++] = m.below;
      m.lines[lines++] = m.above;
    }
    const auto store = [&](const Key * results) {
      Coordinates first = at;
      first[0] *= components;
      StoreRow<TOut>(output, first, n, [&](std::int64_t x) { return static_cast<TOut>(KeyOf::To(results[x])); });
    };
    row.results = m.results;
    if (missing % 2 == 0)
    {
      // The columns next to the image have one more key below than above, those beyond them one less, and so on.
      row.below[0] = (row.first / components + 1) % 2;
      row.below[1] = row.last / components % 2;
      functions.findMedians(row);
      store(m.results);
      return;
    }
    // Every second column has one more below than above, so that every second window has: once the one half, once the
    // other.
    for (const std::int64_t odd : { 0, 1 })
    {
      m.lines[lines] = m.alternate + odd * components;
      row.below[0] = row.below[1] = odd;
      row.results = odd ? m.chosen : m.results;
      functions.findMedians(row);
    }
    for (std::int64_t x = 0; x < n; x += 2 * components)
    {
      std::copy(m.results + x, m.results + x + components, m.chosen + x);
    }
    store(m.chosen);
  });
  return true;
}

} // namespace

bool
MediansTake(const RankOperation & operation, const Coordinates & image)
{
  const Coordinates radius = operation.EffectiveRadius(image);
  std::int64_t      lines = 1;
  for (int a = 1; a < MaxDimension; ++a)
  {
    if (radius[a] > 2)
    {
      return false;
    }
    lines *= 2 * radius[a] + 1;
  }
  const std::int64_t taps = 2 * radius[0] + 1;
  // No window reaches beyond both ends of the image along x: what is filled up there would be odd twice.
  return operation.fraction == 0.5 && MediansTake(lines, taps) &&
         (operation.boundary.mode != BoundaryMode::Renormalized || image[0] >= taps);
}

std::int64_t
MediansTogether(const Coordinates & radius, PixelKind kind, std::int64_t components)
{
  const std::int64_t columns = MedianColumnBytes(2 * radius[0] + 1) / static_cast<std::int64_t>(PixelSize(kind));
  return radius[MaxDimension - 1] == 0 && columns >= 64 * components ? components : 1;
}

Coordinates
MedianTileExtent(const Box & output, const Coordinates & radius, PixelKind kind, std::int64_t components)
{
  Coordinates tile{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t wanted =
      a == 0
        ? MedianColumnBytes(2 * radius[0] + 1) / static_cast<std::int64_t>(PixelSize(kind)) / components - 2 * radius[0]
      : radius[a] > 0         ? 16
      : a == MaxDimension - 1 ? components
                              : 1;
    tile[a] = std::min(output.Extent(a), wanted);
  }
  return tile;
}

std::int64_t
MedianTileBytes(const Coordinates & tile, const Coordinates & radius, PixelKind kind, std::int64_t components)
{
  return DispatchPixelKind(kind, [&](auto pixel) {
    return MedianMemory<typename RankKey<decltype(pixel)>::Type>().LayOut(tile, radius, components, nullptr);
  });
}

bool
RunMedianTile(const KernelCall & call, const Coordinates & radius, const Box & tile, std::int64_t components,
              char * memory)
{
  bool done = false;
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    DispatchOutput<decltype(pixel)>(call.output.kind, [&](auto out) {
      done = RunTile<decltype(pixel), decltype(out)>(call, radius, tile, components, memory);
    });
  });
  return done;
}

} // namespace chunkwise
