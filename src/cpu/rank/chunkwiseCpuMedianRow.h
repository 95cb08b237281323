/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuMedianRow_h
#define chunkwiseCpuMedianRow_h

#include <cstdint>

namespace chunkwise
{

/** Bytes that are computed together at the most. */
constexpr std::int64_t MedianVectorBytes = 64;

/** A row of outputs whose windows have `taps` keys, 3 or 5, of each of `lineCount` lines. Output i has the columns i,
 * i + step, ..., i + (taps - 1) step, a column the keys at its place of all lines: `step` components of pixels lie side
 * by side. All lines, lists and results can be read, and the latter
 * two written, up to `pitch`. See chunkwiseCpuMedianImplementation.h. */
template <typename TKey>
struct MedianRow
{
  const TKey ** lines{ nullptr };
  std::int64_t  lineCount{ 0 };
  std::int64_t  taps{ 0 };
  std::int64_t  step{ 1 };
  /** Outputs and (taps - 1) step. */
  std::int64_t columns{ 0 };
  /** The columns that there are. */
  std::int64_t first{ 0 };
  std::int64_t last{ 0 };
  /** All other lines but one are half below and half above everything. The last one is below in columns of
   * voxels of these numbers modulo 2: before `first`, and from `last` on. */
  std::int64_t below[2]{};
  /** MedianListRows rows of `pitch` keys, a multiple of the vectors with one more than the columns take. */
  TKey *       lists{ nullptr };
  std::int64_t pitch{ 0 };
  /** How many ranks above the median each output wants, less than half of its keys; nullptr: none. */
  const TKey * raises{ nullptr };
  TKey *       results{ nullptr };
};

/** Whether there are networks for such windows. */
constexpr bool
MediansTake(std::int64_t lineCount, std::int64_t taps)
{
  return (taps == 3 || taps == 5) &&
         (lineCount == 3 || lineCount == 5 || lineCount == 9 || lineCount == 15 || lineCount == 25);
}

constexpr std::int64_t
MedianListRows(std::int64_t lineCount, std::int64_t taps)
{
  return taps == 3 ? lineCount : 3 * lineCount;
}

} // namespace chunkwise

#endif
