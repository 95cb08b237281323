/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMedians.h"

#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuMaskedRows.h"
#include "chunkwiseCpuRankCounts.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseDomainVoxels.h"

#include <cstring>
#include <limits>

// Medians of small windows, see chunkwiseCpuMedianImplementation.h. Missing voxels of a window at the image's edge are
// replaced by as many keys below everything as above it, and one more below if their number is odd: the median is then
// that of the rest, the lower of two. In a mask all that a window does not see is below everything, and half as many
// ranks above the median is what is wanted.
namespace chunkwise
{

namespace
{

/** Columns of a row of a tile, in bytes: few enough for the lists to stay in the first cache. Windows in a plane have
 * few lists. */
std::int64_t
MedianColumnBytes(const Coordinates & radius)
{
  bool isFlat = true;
  for (int a = 2; a < MaxDimension; ++a)
  {
    isFlat = isFlat && radius[a] == 0;
  }
  return radius[0] == 1 ? (isFlat ? 4096 : 1024) : (isFlat ? 1536 : 384);
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
  /** In a mask, bytes: which of the keys are inside, how many along x from each on, and how many each window sees. */
  std::uint8_t * inside{ nullptr };
  std::uint8_t * alongX{ nullptr };
  std::uint8_t * seen{ nullptr };
  std::uint8_t * some{ nullptr };
  std::int64_t   numbers{ 0 };
  std::int64_t   lineCount{ 1 };
  std::int64_t   taps{ 0 };
  std::int64_t   pitch{ 0 };

  std::int64_t
  LayOut(const Coordinates & tile, const Coordinates & radius, std::int64_t components, bool isMasked, char * memory)
  {
    constexpr std::int64_t size = sizeof(TKey);
    std::int64_t           bytes = 0;
    const auto             take = [&](auto *& part, std::int64_t n) {
      part = reinterpret_cast<std::remove_reference_t<decltype(part)>>(memory + bytes);
      bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(*part)));
    };
    taps = 2 * radius[0] + 1;
    numbers = (tile[0] + taps - 1) * components;
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
    if (isMasked)
    {
      take(raises, pitch);
      // Sums along x of the last voxels see what lies behind.
      take(inside, numbers + MedianVectorBytes + taps);
      take(alongX, numbers + 2 * MedianVectorBytes);
      // Sums are made a vector at a time.
      const std::int64_t row = RoundToLine(tile[0] + taps) + MedianVectorBytes;
      take(seen, row);
      take(some, row);
    }
    return bytes;
  }
};

/** Results become `empty` where nothing is seen. */
template <typename TOut>
void
FillEmpty(const std::uint8_t * __restrict__ seen, std::int64_t n, TOut empty, TOut * __restrict__ results,
          std::int64_t stride)
{
  WithStride(stride, [&](auto step) {
    for (std::int64_t x = 0; x < n; ++x)
    {
      TOut & result = results[x * step];
      result = seen[x] > 0 ? result : empty;
    }
  });
}

/** out[i]: the sum of the bytes number i of some rows. */
void
AddBytes(std::uint8_t * out, const std::uint8_t * const * rows, std::int64_t count, std::uint8_t * room, std::int64_t n)
{
  constexpr std::int64_t             most = 9;
  const RowFunctions<std::uint8_t> & functions = GetCpuLevel().count8;
  functions.sum(out, rows, std::min(count, most), n);
  for (std::int64_t first = most; first < count; first += most)
  {
    functions.sum(room, rows + first, std::min(count - first, most), n);
    functions.add(out, out, room, n);
  }
}

/** Finds the medians of a tile, whose keys are loaded to memory.keys, row by row. */
template <typename TKey>
class MedianTile
{
public:
  Box                         tile;
  WindowBoxes                 boxes;
  MedianMemory<TKey>          memory;
  const RankFunctions<TKey> & functions;

  /** `first` is the tile of the first of the components that are taken together; in a mask they are not. If pixels are
   * keys (`areKeys`), and only the input is read, it is read in place: see ReadsInput. */
  MedianTile(const KernelCall & call, const Coordinates & radius, const Box & first, std::int64_t components,
             bool isMasked, bool areKeys, char * bytes)
    : tile(first)
    , boxes(tile, call.image, radius, BoundaryMode::Mirror)
    , functions(RankFunctionsOf<TKey>(GetCpuLevel()))
    , m_Image(call.image)
    , m_Radius(radius)
    , m_Components(components)
    , m_Cuts(static_cast<const RankOperation &>(*call.operation).boundary.mode == BoundaryMode::Renormalized)
    , m_IsMasked(isMasked)
  {
    constexpr TKey most = std::numeric_limits<TKey>::max();
    memory.LayOut(tile.Extents(), radius, components, isMasked, bytes);
    const Box & padded = boxes.padded;
    m_Row.lines = memory.lines;
    m_Row.lineCount = memory.lineCount;
    m_Row.taps = memory.taps;
    m_Row.step = components;
    m_Row.columns = m_Row.last = padded.Extent(0) * components;
    if (m_Cuts)
    {
      m_Row.first = std::max<std::int64_t>(0, m_Image.lower[0] - padded.lower[0]) * components;
      m_Row.last = std::min(m_Row.columns, (m_Image.upper[0] - padded.lower[0]) * components);
    }
    m_Row.lists = memory.lists;
    m_Row.pitch = memory.pitch;
    Box lines = padded;
    lines.lower[0] = m_Image.lower[0];
    lines.upper[0] = m_Image.upper[0];
    if (m_Cuts && !m_Image.Contains(lines))
    {
      std::fill(memory.below, memory.below + memory.pitch, TKey{ 0 });
      std::fill(memory.above, memory.above + memory.pitch, most);
      for (std::int64_t i = 0; i < memory.pitch + components; ++i)
      {
        memory.alternate[i] = i / components % 2 == 0 ? TKey{ 0 } : most;
      }
    }
    m_Keys = DenseView(memory.keys, call.inputs[0].kind, padded);
    const BufferView & input = call.inputs[0];
    if (areKeys && components == 1 && !isMasked && input.stride[0] == 1 && this->Holds(input))
    {
      m_Keys = input;
    }
    // The first voxels of a window's lines, counted from the first line.
    const Box    window = this->WindowAt(tile.lower);
    std::int64_t count = 0;
    ForEachRow(window, [&](const Coordinates & line) {
      memory.offsets[count++] = this->OffsetOf(line) - this->OffsetOf(window.lower);
    });
  }

  /** Whether keys are the input's pixels; else memory.keys must be loaded. */
  bool
  ReadsInput() const
  {
    return m_Keys.data != memory.keys;
  }

  /** Counts what is inside along x; what is not has the key of what no key is less than. */
  void
  Count()
  {
    const std::uint8_t * taps[5];
    for (std::int64_t t = 0; t < memory.taps; ++t)
    {
      taps[t] = memory.inside + t;
    }
    std::fill(memory.inside + memory.numbers, memory.inside + memory.numbers + memory.taps, std::uint8_t{ 0 });
    AddBytes(memory.alongX, taps, memory.taps, nullptr, memory.numbers);
  }

  /** The medians of a row; `nothing` where windows see nothing, but for a few. */
  const TKey *
  FindRow(const Coordinates & at, TKey nothing)
  {
    const Box          window = this->WindowAt(at);
    const TKey * const keys = static_cast<const TKey *>(m_Keys.data) + this->OffsetOf(window.lower);
    const std::int64_t n = tile.Extent(0) * m_Components;
    if (m_IsMasked)
    {
      return this->FindSeen(this->OffsetOf(window.lower), n, nothing);
    }
    std::int64_t lines = 0;
    if (!m_Cuts || m_Image.Contains(window))
    {
      for (; lines < memory.lineCount; ++lines)
      {
        memory.lines[lines] = keys + memory.offsets[lines];
      }
    }
    else
    {
      ForEachRow(Intersect(window, m_Image), [&](const Coordinates & line) {
        memory.lines[lines++] = static_cast<const TKey *>(m_Keys.data) + this->OffsetOf(line);
      });
    }
    const std::int64_t missing = memory.lineCount - lines;
    for (std::int64_t i = 0; i < missing / 2; ++i)
    {
      memory.lines[lines++] = memory.below;
      memory.lines[lines++] = memory.above;
    }
    m_Row.results = memory.results;
    if (missing % 2 == 0)
    {
      // The columns next to the image have one more key below than above, those beyond them one less, and so on.
      m_Row.below[0] = (m_Row.first / m_Components + 1) % 2;
      m_Row.below[1] = m_Row.last / m_Components % 2;
      functions.findMedians(m_Row);
      return memory.results;
    }
    // Every second column has one more below than above, so that every second window has: first the even half, then the
    // odd half.
    for (const std::int64_t odd : { 0, 1 })
    {
      memory.lines[lines] = memory.alternate + odd * m_Components;
      m_Row.below[0] = m_Row.below[1] = odd;
      m_Row.results = odd ? memory.chosen : memory.results;
      functions.findMedians(m_Row);
    }
    for (std::int64_t x = 0; x < n; x += 2 * m_Components)
    {
      std::copy(memory.results + x, memory.results + x + m_Components, memory.chosen + x);
    }
    return memory.chosen;
  }

  /** Whether a window of the row that was found last sees nothing of the mask. */
  bool
  HasEmpty() const
  {
    return m_HasEmpty;
  }

private:
  /** In a mask: all lines and columns are there, and what is not inside is below everything. */
  const TKey *
  FindSeen(std::int64_t offset, std::int64_t n, TKey nothing)
  {
    const std::uint8_t * counts[25];
    for (std::int64_t line = 0; line < memory.lineCount; ++line)
    {
      counts[line] = memory.alongX + offset + memory.offsets[line];
    }
    AddBytes(memory.seen, counts, memory.lineCount, memory.some, RoundToLine(n));
    std::int64_t begin = 0;
    std::int64_t end = n;
    CutEnds(memory.seen, begin, end);
    m_HasEmpty = begin == end;
    if (begin < end)
    {
      for (std::int64_t line = 0; line < memory.lineCount; ++line)
      {
        memory.lines[line] = memory.keys + offset + memory.offsets[line] + begin;
      }
      const bool any =
        MaskedKeyFunctionsOf<TKey>(GetMaskedRowLevel())
          .raise(memory.raises, memory.seen + begin, memory.lineCount * memory.taps, end - begin, m_HasEmpty);
      m_HasEmpty = m_HasEmpty || begin > 0 || end < n;
      m_Row.columns = m_Row.last = end - begin + memory.taps - 1;
      m_Row.first = 0;
      m_Row.raises = any ? memory.raises : nullptr;
      m_Row.results = memory.results + begin;
      functions.findMedians(m_Row);
    }
    std::fill(memory.results, memory.results + begin, nothing);
    std::fill(memory.results + end, memory.results + n, nothing);
    return memory.results;
  }

  /** The first voxels of a window's lines. */
  Box
  WindowAt(const Coordinates & at) const
  {
    Box window{ at, at };
    for (int a = 1; a < MaxDimension; ++a)
    {
      window.lower[a] -= m_Radius[a];
      window.upper[a] += m_Radius[a] + 1;
    }
    window.upper[0] += 1;
    return window;
  }
  /** The keys of a line that begins with the radius before a voxel. */
  std::int64_t
  OffsetOf(const Coordinates & at) const
  {
    return (m_Keys.Offset(at) - m_Radius[0]) * m_Components;
  }
  /** Whether the input's memory has all that a row of windows reads: in Renormalized mode lines of the image, of which
   * columns beyond it are read and not used, and whole vectors. */
  bool
  Holds(const BufferView & input) const
  {
    Box read = boxes.padded;
    if (m_Cuts)
    {
      read = Intersect(read, m_Image);
    }
    if (!input.box.Contains(read))
    {
      return false;
    }
    std::int64_t last = input.Offset(input.box.lower);
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (input.stride[a] < 0)
      {
        return false;
      }
      last += (input.box.Extent(a) - 1) * input.stride[a];
      read.upper[a] -= 1;
    }
    const std::int64_t before = read.lower[0] - boxes.padded.lower[0];
    const std::int64_t after = boxes.padded.upper[0] - 1 - read.upper[0] + MedianVectorBytes;
    return input.Offset(read.lower) >= before && input.Offset(read.upper) + after <= last;
  }

  Box             m_Image;
  Coordinates     m_Radius;
  std::int64_t    m_Components;
  bool            m_Cuts;
  bool            m_IsMasked;
  bool            m_HasEmpty{ false };
  BufferView      m_Keys;
  MedianRow<TKey> m_Row;
};

/** Says which voxels of a tile's windows are inside, and hides the others. NaN is outside, and what lies beyond the
 * edge in Renormalized mode. */
template <typename TKey>
void
HideKeys(const KernelCall & call, const BufferView & mask, const WindowBoxes & boxes, TKey hidden, bool isReal,
         const MedianMemory<TKey> & memory)
{
  const BoundaryMode mode = static_cast<const RankOperation &>(*call.operation).boundary.mode;
  const bool         cuts = mode == BoundaryMode::Renormalized;
  LoadTile<std::uint8_t>(mask,
                         call.image,
                         boxes.padded,
                         cuts ? BoundaryMode::Constant : mode,
                         static_cast<std::uint8_t>(cuts ? 0 : 1),
                         memory.inside,
                         [](std::uint8_t inside) { return inside; });
  MaskedKeyFunctionsOf<TKey>(GetMaskedRowLevel()).hide(memory.keys, memory.inside, hidden, isReal, memory.numbers);
}

template <typename TPixel, typename TOut>
bool
RunTile(const KernelCall & call, const Coordinates & radius, const Box & box, std::int64_t components,
        const MedianMask * mask, char * memory)
{
  using KeyOf = RankKey<TPixel>;
  using Key = typename KeyOf::Type;
  const WindowBoundary & boundary = static_cast<const RankOperation &>(*call.operation).boundary;
  const bool             cuts = boundary.mode == BoundaryMode::Renormalized;
  Box                    first = box;
  first.upper[MaxDimension - 1] -= components - 1;
  constexpr bool  areKeys = std::is_same_v<TPixel, Key>;
  MedianTile<Key> tile(call, radius, first, components, mask != nullptr, areKeys, memory);
  // In Renormalized mode, voxels beyond the image are in no line, and their columns are filled up; in a mask, they are
  // not inside.
  using Limits = std::numeric_limits<TPixel>;
  const TPixel unseen = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  const auto   mode = cuts ? BoundaryMode::Constant : boundary.mode;
  const auto   bitsOf = [](TPixel pixel) {
    if constexpr (KeyOf::IsReal)
    {
      Key bits = 0;
      std::memcpy(&bits, &pixel, sizeof(bits));
      return bits;
    }
    else
    {
      return KeyOf::From(pixel);
    }
  };
  if (!tile.ReadsInput())
  {
    LoadTile<TPixel>(call.inputs[0],
                     call.image,
                     tile.boxes.padded,
                     mode,
                     bitsOf(cuts ? unseen : ConstantPixel<TPixel>(boundary.constant)),
                     tile.memory.keys,
                     bitsOf,
                     components);
  }
  if (mask)
  {
    HideKeys(call, mask->inside, tile.boxes, bitsOf(unseen), KeyOf::IsReal, tile.memory);
    tile.Count();
  }
  if (KeyOf::IsReal && tile.functions.realsToKeys(tile.memory.keys, tile.boxes.padded.NumberOfVoxels() * components))
  {
    return false;
  }
  const BufferView   output = FoldComponents(call.output, components);
  const std::int64_t n = tile.tile.Extent(0) * components;
  const auto         empty = mask ? EmptyPixel<TOut>(mask->empty) : TOut(0);
  ForEachRow(tile.tile, [&](const Coordinates & at) {
    const Key * const results = tile.FindRow(at, KeyOf::From(TPixel(0)));
    Coordinates       index = at;
    index[0] *= components;
    StoreRow<TOut>(output, index, n, [&](std::int64_t x) { return static_cast<TOut>(KeyOf::To(results[x])); });
    if (tile.HasEmpty())
    {
      FillEmpty(tile.memory.seen, n, empty, static_cast<TOut *>(output.data) + output.Offset(index), output.stride[0]);
    }
  });
  return true;
}

/** The part of a tile whose windows may see something, and a few more. */
Box
SeenPart(const BufferView & mask, const Box & image, const Coordinates & radius, const Box & tile, BoundaryMode mode)
{
  Box part{ tile.upper, tile.lower };
  Box windows = tile;
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows.lower[a] -= radius[a];
    windows.upper[a] += radius[a];
  }
  // Beyond the image may be anything.
  if (mode != BoundaryMode::Renormalized && !image.Contains(windows))
  {
    return tile;
  }
  windows = Intersect(windows, image);
  ForEachRow(windows, [&](const Coordinates & at) {
    const StridedRow<const std::uint8_t> row(mask, at);
    const std::int64_t                   n = windows.Extent(0);
    std::int64_t                         begin = 0;
    std::int64_t                         end = n;
    if (mask.stride[0] == 1)
    {
      CutEnds(&row[0], begin, end);
    }
    bool any = false;
    for (std::int64_t x = begin; x < end && !any; ++x)
    {
      any = row[x] != 0;
    }
    begin = any ? begin : end;
    for (int a = 0; a < MaxDimension && begin < end; ++a)
    {
      const std::int64_t lower = a == 0 ? at[0] + begin : at[a];
      const std::int64_t upper = a == 0 ? at[0] + end : at[a] + 1;
      part.lower[a] = std::min(part.lower[a], std::max(lower - radius[a], tile.lower[a]));
      part.upper[a] = std::max(part.upper[a], std::min(upper + radius[a], tile.upper[a]));
    }
  });
  return part;
}

bool
RunAnyTile(const KernelCall & call, const Coordinates & radius, const Box & tile, std::int64_t components,
           const MedianMask * mask, char * memory)
{
  bool done = false;
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    DispatchOutput<decltype(pixel)>(call.output.kind, [&](auto out) {
      done = RunTile<decltype(pixel), decltype(out)>(call, radius, tile, components, mask, memory);
    });
  });
  return done;
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
MediansTogether(const Coordinates & radius, PixelType kind, std::int64_t components)
{
  const std::int64_t columns = MedianColumnBytes(radius) / static_cast<std::int64_t>(PixelSize(kind));
  return radius[MaxDimension - 1] == 0 && columns >= 64 * components ? components : 1;
}

Coordinates
MedianTileExtent(const Box & output, const Coordinates & radius, PixelType kind, std::int64_t components)
{
  // Several components have long rows, so that twice as many bytes share more columns and still fit.
  const std::int64_t bytes = (components > 1 && radius[0] == 1 ? 2 : 1) * MedianColumnBytes(radius);
  const std::int64_t columns = bytes / static_cast<std::int64_t>(PixelSize(kind)) / components;
  Coordinates        tile{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t wanted = a == 0                  ? columns - 2 * radius[0]
                                : radius[a] > 0         ? 16
                                : a == MaxDimension - 1 ? components
                                                        : 1;
    tile[a] = std::min(output.Extent(a), wanted);
  }
  return tile;
}

std::int64_t
MedianTileBytes(const Coordinates & tile, const Coordinates & radius, PixelType kind, std::int64_t components,
                bool isMasked)
{
  return DispatchPixelType(kind, [&](auto pixel) {
    return MedianMemory<typename RankKey<decltype(pixel)>::Type>().LayOut(tile, radius, components, isMasked, nullptr);
  });
}

bool
RunMedianTile(const KernelCall & call, const Coordinates & radius, const Box & tile, std::int64_t components,
              char * memory)
{
  return RunAnyTile(call, radius, tile, components, nullptr, memory);
}

void
RunMaskedMedianTile(const KernelCall & call, const Coordinates & radius, const Box & tile, const MedianMask & mask,
                    char * memory)
{
  const BoundaryMode mode = static_cast<const RankOperation &>(*call.operation).boundary.mode;
  const Box          part = SeenPart(mask.inside, call.image, radius, tile, mode);
  if (!(part == tile))
  {
    DispatchPixelType(call.output.kind, [&](auto out) {
      const auto empty = EmptyPixel<decltype(out)>(mask.empty);
      ForEachRow(tile, [&](const Coordinates & at) {
        StoreRow<decltype(out)>(call.output, at, tile.Extent(0), [&](std::int64_t) { return empty; });
      });
    });
  }
  if (!part.IsEmpty())
  {
    RunAnyTile(call, radius, part, 1, &mask, memory);
  }
}

} // namespace chunkwise
