/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuRankLines.h"

#include "chunkwiseCpuLevels.h"

#include <cstring>

namespace chunkwise
{

CHUNKWISE_DECLARE_AT_LEVELS(RankLaneLevel, MakeRankLaneLevel)

namespace
{

template <typename TKey>
void
Slide(const RankLanes<TKey> & lanes)
{
  static FunctionsAtLevels<RankLaneLevel> levels{ CHUNKWISE_AT_LEVELS(MakeRankLaneLevel) };
  const RankLaneLevel &                   level = levels.Get();
  if constexpr (sizeof(TKey) == 1)
  {
    level.slide8(lanes);
  }
  else if constexpr (sizeof(TKey) == 2)
  {
    level.slide16(lanes);
  }
  else if constexpr (sizeof(TKey) == 4)
  {
    level.slide32(lanes);
  }
  else
  {
    level.slide64(lanes);
  }
}

/** Lines that lie side by side in a tile, along another axis than x, at the least. */
constexpr std::int64_t LinesTogether = 16;
/** Bytes of the longest window whose keys are kept sorted, for a line in each lane of a vector, and the steps that a
 * part of a line has at the least. */
constexpr std::int64_t MostBytesOfLane = 512;
constexpr std::int64_t LeastStepsOfLane = 32;
/** Voxels of a part of a line, unless windows are longer. */
constexpr std::int64_t FewVoxelsOfLine = 512;
/** Longer windows take more memory than they should. */
constexpr std::int64_t MostTapsOfLine = std::int64_t{ 1 } << 17;

/** Digits that are sorted by; what keys of few voxels do not differ in by then is seldom. */
constexpr int           DigitsOfLine = 3;
constexpr int           DigitsOfLongLine = 4;
constexpr std::uint32_t LongLine = 1 << 13;

/** A position in the line. */
inline std::uint32_t
PlaceOf(std::uint64_t item)
{
  return static_cast<std::uint32_t>(item);
}

/** Sorts items whose digits are equal by the keys that they stand for, and equal keys by their places. */
template <typename TKey>
void
SortRun(const TKey * keys, std::uint64_t * begin, std::uint64_t * end)
{
  const auto isBefore = [keys](std::uint64_t a, std::uint64_t b) {
    const TKey first = keys[PlaceOf(a)];
    const TKey second = keys[PlaceOf(b)];
    return first != second ? first < second : PlaceOf(a) < PlaceOf(b);
  };
  if (!std::is_sorted(begin, end, isBefore))
  {
    std::sort(begin, end, isBefore);
  }
}

/** Makes the items of a line, of `VDigits` digits of its keys above `shift`, and sorts them by these. */
template <int VDigits, typename TKey>
std::uint64_t *
SortDigits(const RankLine<TKey> & line, int shift)
{
  std::uint32_t numbers[VDigits][256];
  std::memset(numbers, 0, sizeof(numbers));
  std::uint64_t * from = line.items[0];
  std::uint64_t * to = line.items[1];
  const auto      n = static_cast<std::uint32_t>(line.length);
  for (std::uint32_t i = 0; i < n; ++i)
  {
    const std::uint64_t key = static_cast<std::uint64_t>(line.keys[i]) >> shift & 0xffffffff;
    from[i] = key << 32 | i;
    for (int d = 0; d < VDigits; ++d)
    {
      ++numbers[d][key >> 8 * d & 255];
    }
  }
  for (auto & numbersOfDigit : numbers)
  {
    const int     low = 32 + 8 * static_cast<int>(&numbersOfDigit - numbers);
    std::uint32_t sum = 0;
    for (std::uint32_t & number : numbersOfDigit)
    {
      const std::uint32_t count = number;
      number = sum;
      sum += count;
    }
    for (std::uint32_t i = 0; i < n; ++i)
    {
      to[numbersOfDigit[from[i] >> low & 255]++] = from[i];
    }
    std::swap(from, to);
  }
  return from;
}

/** Sorts the voxels by their keys, and equal ones by their places; returns the items in order. */
template <typename TKey>
const std::uint64_t *
SortLine(const RankLine<TKey> & line)
{
  const auto n = static_cast<std::uint32_t>(line.length);
  TKey       differing = 0;
  for (std::uint32_t i = 0; i < n; ++i)
  {
    differing = static_cast<TKey>(differing | (line.keys[i] ^ line.keys[0]));
  }
  // The highest bits in which keys differ; above, they are the same.
  const int       most = differing == 0 ? 1 : 64 - __builtin_clzll(static_cast<std::uint64_t>(differing));
  const int       digits = std::min((most + 7) / 8, n < LongLine ? DigitsOfLine : DigitsOfLongLine);
  const int       shift = std::max(most - 8 * digits, 0);
  std::uint64_t * sorted = nullptr;
  switch (digits)
  {
    case 1:
      sorted = SortDigits<1>(line, shift);
      break;
    case 2:
      sorted = SortDigits<2>(line, shift);
      break;
    case 3:
      sorted = SortDigits<3>(line, shift);
      break;
    default:
      sorted = SortDigits<4>(line, shift);
  }
  if ((static_cast<std::uint64_t>(differing) & ((std::uint64_t{ 1 } << shift) - 1)) == 0)
  {
    return sorted;
  }
  const auto digitsOf = [&](std::uint32_t i) { return (sorted[i] >> 32) << (64 - 8 * digits); };
  for (std::uint32_t begin = 0; begin + 1 < n; ++begin)
  {
    if (digitsOf(begin) == digitsOf(begin + 1))
    {
      std::uint32_t end = begin + 2;
      while (end < n && digitsOf(end) == digitsOf(begin))
      {
        ++end;
      }
      SortRun(line.keys, sorted + begin, sorted + end);
      begin = end - 1;
    }
  }
  return sorted;
}

/** The positions of the bits of each byte. */
struct BitsOfBytes
{
  std::uint8_t at[256][8]{};

  constexpr BitsOfBytes()
  {
    for (int byte = 0; byte < 256; ++byte)
    {
      int found = 0;
      for (int bit = 0; bit < 8; ++bit)
      {
        if (byte >> bit & 1)
        {
          at[byte][found++] = static_cast<std::uint8_t>(bit);
        }
      }
    }
  }
};

constexpr BitsOfBytes BitsOfByte;

/** The number of the bit before which `rank` bits of a word are set. */
inline std::uint32_t
SelectBit(std::uint64_t word, std::uint32_t rank)
{
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t tops = 0x8080808080808080;
  std::uint64_t           sums = word - (word >> 1 & 0x5555555555555555);
  sums = (sums & 0x3333333333333333) + (sums >> 2 & 0x3333333333333333);
  // Byte number i has the bits of the bytes up to it.
  sums = ((sums + (sums >> 4)) & 0x0f0f0f0f0f0f0f0f) * ones;
  const std::uint64_t passed = (((rank * ones) | tops) - sums) & tops;
  const auto          first = static_cast<std::uint32_t>(((passed >> 7) * ones) >> 56) * 8;
  const std::uint32_t left = rank - static_cast<std::uint32_t>((sums << 8) >> first & 255);
  return first + BitsOfByte.at[word >> first & 255][left & 7];
}

/** The voxels of a window among those of a line, by their places in the order. */
class RankWindow
{
public:
  RankWindow(std::uint64_t * bits, std::uint8_t * counts, std::int64_t length)
    : m_Bits(bits)
    , m_Counts(counts)
  {
    const std::int64_t words = length / 64 + 1;
    std::fill(bits, bits + words, 0);
    std::fill(counts, counts + words, std::uint8_t{ 0 });
  }
  void
  Insert(std::uint32_t place)
  {
    m_Bits[place >> 6] |= std::uint64_t{ 1 } << (place & 63);
    ++m_Counts[place >> 6];
    m_Below += place >> 6 < m_Word ? 1 : 0;
  }
  void
  Remove(std::uint32_t place)
  {
    m_Bits[place >> 6] &= ~(std::uint64_t{ 1 } << (place & 63));
    --m_Counts[place >> 6];
    m_Below -= place >> 6 < m_Word ? 1 : 0;
  }
  /** The place of voxel number `rank` of the window. */
  std::uint32_t
  Find(std::uint32_t rank)
  {
    while (rank < m_Below)
    {
      m_Below -= m_Counts[--m_Word];
    }
    while (rank >= m_Below + m_Counts[m_Word])
    {
      m_Below += m_Counts[m_Word++];
    }
    return m_Word << 6 | SelectBit(m_Bits[m_Word], rank - m_Below);
  }

private:
  std::uint64_t * m_Bits;
  std::uint8_t *  m_Counts;
  std::uint32_t   m_Word{ 0 };
  std::uint32_t   m_Below{ 0 }; ///< voxels of the window in the words before
};

template <typename TKey>
CHUNKWISE_ALWAYS_INLINE TKey
MiddleOf(TKey a, TKey b, TKey c)
{
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

/** Medians of three or five by exchanges. False, and nothing done, for other ranks, for windows that the image's edge
 * cuts, and where there is a NaN. */
template <typename TKey>
bool
FindByExchanges(const RankLine<TKey> & line)
{
  const std::int64_t taps = line.Taps();
  if (line.lower > 2 || line.upper != line.lower || line.length != line.outputs + taps - 1 ||
      line.shift != -line.lower || RankIn(taps, 0, line.fraction) != line.lower)
  {
    return false;
  }
  if (line.isReal)
  {
    TKey least = line.keys[0];
    for (std::int64_t i = 1; i < line.length; ++i)
    {
      least = std::min(least, line.keys[i]);
    }
    if (least == 0)
    {
      return false;
    }
  }
  const TKey * const __restrict__ keys = line.keys;
  TKey * const __restrict__ results = line.results;
  if (line.lower == 1)
  {
    for (std::int64_t i = 0; i < line.outputs; ++i)
    {
      results[i] = MiddleOf(keys[i], keys[i + 1], keys[i + 2]);
    }
    return true;
  }
  for (std::int64_t i = 0; i < line.outputs; ++i)
  {
    const TKey a = keys[i];
    const TKey b = keys[i + 1];
    const TKey c = keys[i + 3];
    const TKey d = keys[i + 4];
    results[i] =
      MiddleOf(std::max(std::min(a, b), std::min(c, d)), std::min(std::max(a, b), std::max(c, d)), keys[i + 2]);
  }
  return true;
}

template <typename TKey>
void
FindInLine(const RankLine<TKey> & line)
{
  if (line.outputs == 0 || FindByExchanges(line))
  {
    return;
  }
  const auto * const sorted = SortLine(line);
  std::int64_t       zeros = 0;
  for (std::int64_t i = 0; i < line.length; ++i)
  {
    line.places[PlaceOf(sorted[i])] = static_cast<std::uint32_t>(i);
    zeros += line.isReal && line.keys[i] == 0 ? 1 : 0;
  }
  RankWindow         window(line.bits, line.counts, line.length);
  std::int64_t       first = std::max<std::int64_t>(-line.lower - line.shift, 0);
  std::int64_t       end = first;
  std::int64_t       absent = 0;
  std::int64_t       seen = 0;
  std::int64_t       absentSeen = -1;
  std::uint32_t      rank = 0;
  const std::int64_t after = line.upper - line.shift + 1;
  for (std::int64_t o = 0; o < line.outputs; ++o)
  {
    for (const std::int64_t begin = std::max<std::int64_t>(o - line.lower - line.shift, 0); first < begin; ++first)
    {
      window.Remove(line.places[first]);
      absent -= line.places[first] < zeros ? 1 : 0;
    }
    for (const std::int64_t until = std::min(o + after, line.length); end < until; ++end)
    {
      window.Insert(line.places[end]);
      absent += line.places[end] < zeros ? 1 : 0;
    }
    if (end - first != seen || absent != absentSeen)
    {
      seen = end - first;
      absentSeen = absent;
      rank = static_cast<std::uint32_t>(RankIn(seen, absent, line.fraction));
    }
    line.results[o] = line.keys[PlaceOf(sorted[window.Find(rank)])];
  }
}

/** Whether windows of so many keys are kept sorted in lanes. */
bool
LanesTake(std::int64_t taps, std::size_t size)
{
  return taps > 1 && taps * static_cast<std::int64_t>(size) <= MostBytesOfLane;
}

/** The same for windows in an image: whether it has as many lines side by side, or as many parts of a line. */
bool
SlidesIn(const Coordinates & image, int axis, std::int64_t taps, std::size_t size)
{
  const std::int64_t width = 64 / static_cast<std::int64_t>(size);
  const std::int64_t steps = axis == 0 ? image[0] / width : image[axis];
  return LanesTake(taps, size) && (axis == 0 || image[0] >= width) && steps >= std::max(LeastStepsOfLane, taps);
}

/** The windows that are whole, of as many lines as there are lanes from number `first` on. */
template <typename TKey>
void
SlideLines(const RankLineTile<TKey> & tile, std::int64_t first)
{
  const RankLine<TKey> & line = tile.line;
  const std::int64_t     begin = line.WholeBegin();
  RankLanes<TKey>        lanes;
  lanes.keys = tile.keys + (begin - line.lower - line.shift) * tile.lines + first;
  lanes.results = tile.results + begin * tile.lines + first;
  lanes.list = tile.list;
  lanes.pitch = tile.lines;
  lanes.taps = line.Taps();
  lanes.outputs = line.WholeEnd() - begin;
  lanes.rank = RankIn(lanes.taps, 0, line.fraction);
  Slide(lanes);
}

/** The windows that are whole, of one line: a part of it in each lane. */
template <typename TKey>
void
SlideParts(const RankLineTile<TKey> & tile)
{
  const RankLine<TKey> & line = tile.line;
  const std::int64_t     begin = line.WholeBegin();
  const std::int64_t     outputs = line.WholeEnd() - begin;
  constexpr std::int64_t width = RankLanes<TKey>::Width;
  RankLanes<TKey>        lanes;
  lanes.keys = tile.oneLine;
  lanes.results = tile.oneResults;
  lanes.list = tile.list;
  lanes.pitch = width;
  lanes.taps = line.Taps();
  lanes.outputs = (outputs + width - 1) / width;
  lanes.rank = RankIn(lanes.taps, 0, line.fraction);
  const TKey * const keys = tile.keys + begin - line.lower - line.shift;
  for (std::int64_t l = 0; l < width; ++l)
  {
    // The last parts may be short, or have no voxel.
    const std::int64_t from = l * lanes.outputs;
    const std::int64_t there =
      std::clamp(outputs + lanes.taps - 1 - from, std::int64_t{ 0 }, lanes.outputs + lanes.taps - 1);
    for (std::int64_t i = 0; i < there; ++i)
    {
      tile.oneLine[i * width + l] = keys[from + i];
    }
    for (std::int64_t i = there; i < lanes.outputs + lanes.taps - 1; ++i)
    {
      tile.oneLine[i * width + l] = 0;
    }
  }
  Slide(lanes);
  for (std::int64_t l = 0; l < width; ++l)
  {
    const std::int64_t there = std::min(outputs - l * lanes.outputs, lanes.outputs);
    for (std::int64_t i = 0; i < there; ++i)
    {
      tile.results[begin + l * lanes.outputs + i] = tile.oneResults[i * width + l];
    }
  }
}

/** Outputs [begin, end) of a line of the tile. */
template <typename TKey>
void
FindInPart(const RankLineTile<TKey> & tile, std::int64_t number, std::int64_t begin, std::int64_t end)
{
  RankLine<TKey> line = tile.line;
  line.keys = tile.keys;
  line.results = tile.results;
  if (tile.lines == 1 || begin == end)
  {
    FindInLine(line.Part(begin, end));
    return;
  }
  line.results = tile.oneResults;
  line.keys = tile.oneLine;
  for (std::int64_t i = 0; i < line.length; ++i)
  {
    tile.oneLine[i] = tile.keys[i * tile.lines + number];
  }
  FindInLine(line.Part(begin, end));
  for (std::int64_t i = begin; i < end; ++i)
  {
    tile.results[i * tile.lines + number] = line.results[i];
  }
}

} // namespace

int
RankLineAxis(const RankWindows & windows, const Coordinates & image, PixelType kind)
{
  int axis = -1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (windows.sides.Taps(a) > 1 && axis >= 0)
    {
      return -1;
    }
    axis = windows.sides.Taps(a) > 1 ? a : axis;
  }
  if (axis < 0 || windows.isCounted)
  {
    return -1;
  }
  const std::int64_t taps = windows.sides.Taps(axis);
  const std::size_t  size = PixelSize(kind);
  // Above where rows that are searched bit by bit take as long; those of 3 and 5 voxels are searched soon.
  const std::int64_t most = size > 4 ? 0 : SlidesIn(image, axis, taps, size) ? 5 : size == 1 ? 100 : size == 2 ? 40 : 7;
  const bool         isExchanged = size >= 4 && taps <= 5 && windows.fraction == 0.5;
  return (taps > most || isExchanged) && taps <= MostTapsOfLine ? axis : -1;
}

Coordinates
RankLineTileExtent(const Box & output, std::int64_t taps, int axis, PixelType kind)
{
  const auto         size = static_cast<std::int64_t>(PixelSize(kind));
  const std::int64_t width = 64 / size;
  std::int64_t       voxels = std::max(FewVoxelsOfLine - taps, 3 * taps);
  if (axis == 0 && LanesTake(taps, PixelSize(kind)))
  {
    voxels = width * std::max(LeastStepsOfLane, 2 * taps);
  }
  Coordinates tile = Coordinates::Filled(1);
  tile[0] = std::min(output.Extent(0), axis == 0 ? 1 : std::max(LinesTogether, width));
  tile[axis] = std::min(output.Extent(axis), voxels);
  return tile;
}

template <typename TKey>
void
FindInLines(const RankLineTile<TKey> & tile)
{
  const RankLine<TKey> & line = tile.line;
  constexpr std::int64_t width = RankLanes<TKey>::Width;
  const std::int64_t     voxels = line.length * tile.lines;
  const std::int64_t     steps = (line.WholeEnd() - line.WholeBegin()) / (tile.lines > 1 ? 1 : width);
  const bool slides = LanesTake(line.Taps(), sizeof(TKey)) && steps >= std::max(LeastStepsOfLane, line.Taps() / 4) &&
                      !(line.isReal && std::find(tile.keys, tile.keys + voxels, TKey{ 0 }) != tile.keys + voxels);
  std::int64_t slid = 0;
  if (slides && tile.lines == 1)
  {
    SlideParts(tile);
    slid = 1;
  }
  for (; slides && slid + width <= tile.lines; slid += width)
  {
    SlideLines(tile, slid);
  }
  for (std::int64_t l = 0; l < tile.lines; ++l)
  {
    FindInPart(tile, l, 0, l < slid ? line.WholeBegin() : line.outputs);
    FindInPart(tile, l, l < slid ? line.WholeEnd() : line.outputs, line.outputs);
  }
}

template void
FindInLines(const RankLineTile<std::uint8_t> &);
template void
FindInLines(const RankLineTile<std::uint16_t> &);
template void
FindInLines(const RankLineTile<std::uint32_t> &);
template void
FindInLines(const RankLineTile<std::uint64_t> &);

} // namespace chunkwise
