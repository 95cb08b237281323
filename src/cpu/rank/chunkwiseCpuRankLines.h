/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuRankLines_h
#define chunkwiseCpuRankLines_h

#include "chunkwiseCpuTiles.h"
#include "chunkwiseRankOperation.h"

// Windows along one axis, of any length. The voxels of a part of a line are sorted once. From then on a window is a set
// of places in that order, one bit each, of which a step along the line clears one and sets another; the result is the
// bit with the rank's number. It lies near that of the window before, so that a step takes as long for any window.
namespace chunkwise
{

/** The axis along which all windows of a radius lie, if there are one and lines are the fastest way; else -1. */
int
RankLineAxis(const RankOperation & operation, const Coordinates & image, PixelKind kind);

/** The extent of a tile: a part of a line, or of some lines side by side. */
Coordinates
RankLineTileExtent(const Box & output, const Coordinates & radius, int axis);

/** A part of a line, and the memory that finding its ranks takes. */
template <typename TKey>
struct RankLine
{
  /** The voxels of all windows, in which NaN is 0 if they are real. */
  TKey *       keys{ nullptr };
  std::int64_t length{ 0 };
  /** One for each output. */
  TKey *       results{ nullptr };
  std::int64_t outputs{ 0 };
  std::int64_t radius{ 0 };
  /** The offset of the voxels from the first output. */
  std::int64_t shift{ 0 };
  double       fraction{ 0.5 };
  bool         isReal{ false };

  /** The sorted items: a part of a key, and the key's place in the line. */
  std::uint64_t * items[2]{};
  std::uint32_t * places{ nullptr }; ///< of each voxel in the order
  std::uint64_t * bits{ nullptr };   ///< the voxels of a window
  std::uint8_t *  counts{ nullptr }; ///< of the bits of each word

  /** Bytes for up to so many voxels and outputs; keys and results too where lines are copied together. */
  std::int64_t
  LayOut(std::int64_t mostVoxels, std::int64_t mostOutputs, bool copies, char * memory)
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
    if (copies)
    {
      take(keys, mostVoxels);
      take(results, mostOutputs);
    }
    return bytes;
  }
};

/** results[]: of each window the key with the rank that its fraction asks for. */
template <typename TKey>
void
FindInLine(const RankLine<TKey> & line);

} // namespace chunkwise

#endif
