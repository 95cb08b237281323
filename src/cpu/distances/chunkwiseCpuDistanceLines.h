/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuDistanceLines_h
#define chunkwiseCpuDistanceLines_h

#include <cstdint>

namespace chunkwise
{

/** A parabola of the lower envelope of a line: that of voxel `at`. It may be the lowest from `low` to `high`. */
template <typename T>
struct DistanceParabola
{
  T            value;
  std::int32_t at;
  std::int32_t low;
  std::int32_t high;
};

/** Steps that a search takes at most, and by how many voxels lines are continued to either side for it. */
constexpr std::int64_t DistanceSteps = 256;
constexpr std::int64_t DistancePad = DistanceSteps + 4;
/** Bytes of the columns that are searched together. */
constexpr std::int64_t DistanceTileBytes = 64;
/** Positions along the scan axis that stand for no feature before, and behind. */
constexpr std::int32_t NoneBefore = -(std::int32_t{ 1 } << 30);
constexpr std::int32_t NoneBehind = INT32_MAX;

/** Constants of all lines along an axis. */
template <typename T>
struct DistanceAxis
{
  /** [k]: what k voxels along the axis add to a squared distance; max(length, DistancePad) + 1 of them. */
  const T *    weights;
  std::int64_t length;
  /** The length of a voxel in the units of `weights`, and its square. */
  double spacing;
  double square;
  /** Squared distances from here on are of no feature. */
  T beyond;
};

/** Work of distances on lines, compiled for one instruction set. */
template <typename T>
struct DistanceFunctions
{
  /** A row of a slice at position z, in descending order of z: next[i] becomes z where there is a feature, and out[i]
   * the distance in voxels to next[i]: to what it was before, if features do not count where they are. */
  void (*goBack)(std::int32_t * next, const std::uint8_t * features, T * out, std::int64_t n, std::int32_t z,
                 bool countsOwn);
  /** The same in ascending order: out[i] becomes the squared distance to the nearer of both. `more` is added to
   * distances to what lies before. */
  void (*goOn)(std::int32_t * last, const std::uint8_t * features, T * out, std::int64_t n, std::int32_t z,
               std::int32_t more, const DistanceAxis<T> & axis);
  /** Minima along columns, in place: `lanes` columns, as many as DistanceTileBytes has at most, in rows `stride` apart.
   * `tile` has axis.length + 2 DistancePad rows of DistanceTileBytes, of which those at the ends are `beyond`. */
  void (*columns)(T * slice, std::int64_t stride, std::int64_t lanes, const DistanceAxis<T> & axis, T * tile,
                  DistanceParabola<T> * parabolas);
  /** Minima along a row, in place. `line` has axis.length + 2 DistancePad numbers and a tile's row more, of which those
   * at the ends are `beyond`. */
  void (*row)(T * row, const DistanceAxis<T> & axis, T * line, DistanceParabola<T> * parabolas);
};

struct DistanceLevel
{
  DistanceFunctions<std::int32_t> int32;
  DistanceFunctions<std::int64_t> int64;
  DistanceFunctions<double>       float64;
};

/** For the level that GetCpuLevel() names. */
const DistanceLevel &
GetDistanceLevel();

} // namespace chunkwise

#endif
