/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuTable_h
#define chunkwiseCpuTable_h

#include <cstdint>

namespace chunkwise
{

/** Columns of which SummedAreaTableOperation takes a scan, and their groups. */
constexpr std::int64_t TableColumns = 128;
constexpr std::int64_t TableGroup = 4;
constexpr std::int64_t TableGroups = TableColumns / TableGroup;
constexpr std::int64_t TableQuarter = 8; ///< groups

/** The place of column x in rows of sums of floats: within a block, all first columns of groups come first, then all
 * second ones, so that a vector has a column of several groups. Sums of integers are in the order of columns. */
constexpr std::int64_t
TablePlace(std::int64_t x)
{
  return x / TableColumns * TableColumns + x % TableGroup * TableGroups + x % TableColumns / TableGroup;
}

/** A row of voxels within some blocks of columns. Sums are SummedAreaTableOperation's A and L for floats; for integers
 * all have 32 bits where the output has, else 64, and wrap around. */
struct TableRow
{
  const void * in;
  void *       out;      ///< of column 0; nullptr: sums are moved on, nothing is stored
  bool         isStaged; ///< `out` is not where the output goes, but memory that the caches have
  std::int64_t nextIn;   ///< bytes from `in` and `out` to those of the row that follows
  std::int64_t nextOut;
  std::int64_t columns; ///< voxels; rows of sums end at a multiple of TableColumns
  std::int64_t first;   ///< columns [first, last) are stored
  std::int64_t last;
  void *       plane;    ///< P, to which the voxels are added first; nullptr: none
  void *       local;    ///< of floats: l; of integers: all rows up to this one; nullptr: only the plane is moved on
  const void * sections; ///< of floats: S
  const void * before;   ///< of floats: X(C)
  void *       left;     ///< of all blocks of columns before: G
};

/** Work on rows compiled for one instruction set. All sets give the same bits. */
struct TableLevel
{
  /** [of squares][input kind][output kind]; nullptr where there is no such table. */
  void (*row[2][10][10])(const TableRow & row);
  /** out = X(C), for columns a multiple of TableColumns. */
  void (*before)(double * out, const double * blocks, std::int64_t columns);
};

/** For the level that GetCpuLevel() names. */
const TableLevel &
GetTableLevel();

} // namespace chunkwise

#endif
