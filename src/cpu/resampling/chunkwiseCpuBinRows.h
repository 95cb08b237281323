/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuBinRows_h
#define chunkwiseCpuBinRows_h

#include "chunkwiseCpuLevel.h"

namespace chunkwise
{

/** Adds `n` voxels of a row to columns, or begins the columns with them. */
using BinJoinRow = void (*)(void * columns, const void * voxels, std::int64_t n, bool begins);
/** Adds each `group` of columns, in order, to one result, or begins the results with them. */
using BinJoinGroups = void (*)(void * results, const void * columns, std::int64_t group, std::int64_t n, bool begins);

/** Adds `n` voxels of a row, times a weight, to columns, or begins the columns with them. */
using BinWeighRow = void (*)(void * columns, const void * voxels, std::int64_t n, std::int64_t weight, bool begins);
/** Makes each of `n` results of 3 * factor - 2 columns with weights, those of the next one begin `factor` later. */
using BinWeighGroups = void (*)(void * results, const void * columns, std::int64_t factor, const std::int64_t * weights,
                                std::int64_t n);

/** Work of BinOperation on rows, compiled for one instruction set. */
struct BinLevel
{
  /** [pixel kind][0: the accumulator of most blocks, 1: of blocks whose sums may be larger] */
  BinJoinRow    add[10][2];
  BinJoinGroups addGroups[NumberOfAccumulators];
  /** [pixel kind][0: minima, 1: maxima]: columns and results are pixels. */
  BinJoinRow    join[10][2];
  BinJoinGroups joinGroups[10][2];
  /** Gaussian means: [pixel kind][accumulator], [accumulator] */
  BinWeighRow    weigh[10][NumberOfAccumulators];
  BinWeighGroups weighGroups[NumberOfAccumulators];
};

} // namespace chunkwise

#endif
