/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuRankLines_h
#define chunkwiseCpuRankLines_h

#include "chunkwiseCpuRankLanes.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseRankWindows.h"

// Windows along one axis, of any length. The voxels of a part of a line are sorted once. From then on a window is a set
// of places in that order, one bit each, of which a step along the line clears one and sets another; the result is the
// bit with the rank's number. It lies near that of the window before, so that a step takes as long for any window.
// Short windows are kept sorted instead, those of a line in each lane of a vector.
namespace chunkwise
{

/** The axis along which all windows lie, if there are one and lines are the fastest way; else -1. */
int
RankLineAxis(const RankWindows & windows, const Coordinates & image, PixelType kind);

/** The extent of a tile: a part of a line, or of some lines side by side. */
Coordinates
RankLineTileExtent(const Box & output, std::int64_t taps, int axis, PixelType kind);

/** A part of a line, and the memory that finding its ranks takes. */
template <typename TKey>
struct RankLine
{
  /** The voxels of all windows, in which NaN is 0 if they are real. */
  const TKey * keys{ nullptr };
  std::int64_t length{ 0 };
  /** One for each output. */
  TKey *       results{ nullptr };
  std::int64_t outputs{ 0 };
  /** How far windows reach to both sides. */
  std::int64_t lower{ 0 };
  std::int64_t upper{ 0 };
  /** The offset of the voxels from the first output. */
  std::int64_t shift{ 0 };
  double       fraction{ 0.5 };
  bool         isReal{ false };

  /** The sorted items: a part of a key, and the key's place in the line. */
  std::uint64_t * items[2]{};
  std::uint32_t * places{ nullptr }; ///< of each voxel in the order
  std::uint64_t * bits{ nullptr };   ///< the voxels of a window
  std::uint8_t *  counts{ nullptr }; ///< of the bits of each word

  std::int64_t
  Taps() const
  {
    return lower + 1 + upper;
  }
  /** The outputs whose windows are whole: [begin, end). */
  std::int64_t
  WholeBegin() const
  {
    return std::clamp(shift + lower, std::int64_t{ 0 }, outputs);
  }
  std::int64_t
  WholeEnd() const
  {
    return std::clamp(shift + length - upper, this->WholeBegin(), outputs);
  }
  /** The line of some of the outputs, with the same memory. */
  RankLine
  Part(std::int64_t begin, std::int64_t end) const
  {
    RankLine           part = *this;
    const std::int64_t first = std::max(begin - lower - shift, std::int64_t{ 0 });
    const std::int64_t last = std::min(end + upper - shift, length);
    part.keys += first;
    part.length = last - first;
    part.results += begin;
    part.outputs = end - begin;
    part.shift = first + shift - begin;
    return part;
  }

  /** Bytes for up to so many voxels and outputs. */
  std::int64_t
  LayOut(std::int64_t mostVoxels, char * memory)
  {
    std::int64_t bytes = 0;
    const auto   take = [&](auto *& part, std::int64_t n) {
      part = reinterpret_cast<std::remove_reference_t<decltype(part)>>(memory + bytes);
      bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(*part)));
    };
    take(items[0], mostVoxels);
    take(items[1], mostVoxels);
    take(places, mostVoxels);
    take(bits, mostVoxels / 64 + 1);
    take(counts, mostVoxels / 64 + 1);
    return bytes;
  }
};

/** A tile of lines side by side, and the memory of a worker. A line along x that is long enough is cut into parts,
 * which are copied side by side. */
template <typename TKey>
struct RankLineTile
{
  RankLine<TKey> line;
  TKey *         keys{ nullptr };    ///< [voxel of a line][line]
  TKey *         results{ nullptr }; ///< the same of outputs
  std::int64_t   lines{ 1 };

  TKey * oneLine{ nullptr };    ///< a line's keys, or parts of a line side by side
  TKey * oneResults{ nullptr }; ///< and their results
  TKey * list{ nullptr };       ///< of RankLanes

  std::int64_t
  LayOut(std::int64_t voxels, std::int64_t outputs, std::int64_t taps, char * memory)
  {
    std::int64_t bytes = line.LayOut(voxels, memory);
    const auto   take = [&](auto *& part, std::int64_t n) {
      part = reinterpret_cast<std::remove_reference_t<decltype(part)>>(memory + bytes);
      bytes += RoundToLine(n * static_cast<std::int64_t>(sizeof(*part)));
    };
    take(keys, voxels * lines);
    take(results, outputs * lines);
    take(oneLine, voxels + RankLanes<TKey>::Width * taps);
    take(oneResults, outputs + RankLanes<TKey>::Width);
    take(list, RankLanes<TKey>::Width * taps);
    return bytes;
  }
};

/** results[]: of each window the key with the rank that its fraction asks for. */
template <typename TKey>
void
FindInLines(const RankLineTile<TKey> & tile);

} // namespace chunkwise

#endif
