/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuLevel_h
#define chunkwiseCpuLevel_h

#include "ChunkwiseExport.h"
#include "chunkwiseCpuMedianRow.h"
#include "chunkwiseCpuRankTile.h"
#include "chunkwiseInt128.h"

#include <cstddef>
#include <cstdint>

namespace chunkwise
{

/** The accumulators, in the order of the tables below. */
enum class Accumulator : int
{
  Int32,
  Int64,
  Int128,
  Float32,
  Float64,
  Int16
};
constexpr int NumberOfAccumulators = 6;

/** The bytes of a line of the caches. */
constexpr std::int64_t LineBytes = 64;

/** Numbers of a line of the cache, but one at least: some functions read and write rows in multiples of it. */
template <typename TAcc>
constexpr std::int64_t AccumulatorLine = LineBytes / static_cast<std::int64_t>(sizeof(TAcc));

/** Rows beside each other along an axis that are made together, so that each row they share is read once. */
constexpr int RowsTogether = 4;

/** Work on rows of one accumulator type. Rows do not overlap unless they are the same. */
template <typename TAcc>
struct RowFunctions
{
  /** out[i] = fma chain from +0 over weights[t] * rows[t][i], t ascending; nullptr for integers. */
  void (*weigh)(TAcc * out, const TAcc * const * rows, const TAcc * weights, std::int64_t taps, std::int64_t n);
  /** The same of the differences rows[t][i] - center[i]. */
  void (*weighDifferences)(TAcc * out, const TAcc * const * rows, const TAcc * center, const TAcc * weights,
                           std::int64_t taps, std::int64_t n);
  /** out[i] = +0 + rows[0][i] + rows[1][i] + ...; up to 9 taps */
  void (*sum)(TAcc * out, const TAcc * const * rows, std::int64_t taps, std::int64_t n);
  /** out[i] = a[i] + b[i]; out may be a or b. */
  void (*add)(TAcc * out, const TAcc * a, const TAcc * b, std::int64_t n);
  /** row[i] *= factor */
  void (*scale)(TAcc * row, TAcc factor, std::int64_t n);
  /** sum[i] = fma(weight, row[i], sum[i]); nullptr for integers. */
  void (*multiplyAdd)(TAcc * sum, const TAcc * row, TAcc weight, std::int64_t n);
  /** `weigh` and `sum` for RowsTogether results: outs[k] from rows[k], ..., rows[k + taps - 1]; the first of an odd
   * number of at least 3 taps, the second of 2 to 9. The first reads and writes whole lines, see AccumulatorLine. */
  void (*weighTogether)(TAcc * const * outs, const TAcc * const * rows, const TAcc * weights, std::int64_t taps,
                        std::int64_t n);
  void (*sumTogether)(TAcc * const * outs, const TAcc * const * rows, std::int64_t taps, std::int64_t n);
  /** `weigh` with the rows in, in + 1, ...: out is written in whole lines, in read to one line more than there are
   * taps. */
  void (*weighAlong)(TAcc * out, const TAcc * in, const TAcc * weights, std::int64_t taps, std::int64_t n);
};

/** Work of RankOperation on rows of voxels, as keys (RankKey). Voxel i has in its window the `taps` keys from
 * lines[l][i] on, for each line l. */
template <typename TKey>
struct RankFunctions
{
  /** counts[i]: keys of the window below limits[i]. */
  void (*countBelow)(std::int32_t * counts, const TKey * const * lines, std::int64_t lineCount, std::int64_t taps,
                     const TKey * limits, std::int64_t n);
  /** results[i]: the key with number ranks[i], from 0 on. */
  void (*find)(TKey * results, const TKey * const * lines, std::int64_t lineCount, std::int64_t taps,
               const std::int32_t * ranks, std::int64_t n);
  /** Sorts a tile; ranks[]: if `counts`, how many keys of each window are 0, else 0. */
  void (*sortTile)(const RankTile<TKey> & tile, bool counts);
  /** results[]: of each window the key with number ranks[], after sortTile. */
  void (*findInTile)(const RankTile<TKey> & tile);
  /** The bits of real numbers become keys. Returns whether there is a NaN, whose key is not RankKey's. nullptr for keys
   * of up to 16 bits. */
  bool (*realsToKeys)(TKey * keys, std::int64_t n);
  /** Medians of a row. */
  void (*findMedians)(const MedianRow<TKey> & row);
};

/** Numbers that the functions below compute together: rows are read and written up to the next multiple. */
constexpr std::int64_t PatchBlock = 16;

/** Work of NonLocalMeansOperation on rows. */
template <typename TReal>
struct PatchFunctions
{
  /** out[i] = 0 + (a[i] - b[i])^2 + (a[i + stride] - b[i + stride])^2 + ...; `taps` of them. */
  void (*squares)(TReal * out, const TReal * a, const TReal * b, std::int64_t stride, std::int64_t taps,
                  std::int64_t n);
  /** out[i] = 0 + in[i] + in[i + stride] + ... */
  void (*sum)(TReal * out, const TReal * in, std::int64_t stride, std::int64_t taps, std::int64_t n);
  /** out[i] = PatchWeight(0 + in[i] + in[i + 1] + ..., shares[i], twiceNoise, inverse) */
  void (*weigh)(TReal * out, const TReal * in, std::int64_t taps, const TReal * shares, TReal twiceNoise, TReal inverse,
                std::int64_t n);
  /** weighted[i] += w[k][i] * voxels[k][i], weights[i] += w[k][i]; k ascending */
  void (*add)(TReal * weighted, TReal * weights, const TReal * const * w, const TReal * const * voxels, int count,
              std::int64_t n);
};

/** Instruction sets that functions are compiled for: baseline, avx2, avx512. */
constexpr std::size_t NumberOfCpuLevels = 3;

/** The row functions compiled for one instruction set. All sets give the same bits. */
struct CpuLevel
{
  const char * name;
  std::size_t  index; ///< from 0 on, the baseline

  RowFunctions<std::int16_t> int16;
  RowFunctions<std::int32_t> int32;
  RowFunctions<std::int64_t> int64;
  RowFunctions<Int128>       int128;
  RowFunctions<float>        float32;
  RowFunctions<double>       float64;
  /** Maxima in the place of sums: of keys, see OrderedKey. */
  RowFunctions<std::int32_t> largest32;
  RowFunctions<std::int64_t> largest64;
  /** The same of bytes with a bit more for what a mask hides. */
  RowFunctions<std::int16_t> largest16;
  /** The same of bytes, and sums of bytes that stay below 256. */
  RowFunctions<std::uint8_t> largest8;
  RowFunctions<std::uint8_t> count8;

  PatchFunctions<float>  patch32;
  PatchFunctions<double> patch64;

  RankFunctions<std::uint8_t>  rank8;
  RankFunctions<std::uint16_t> rank16;
  RankFunctions<std::uint32_t> rank32;
  RankFunctions<std::uint64_t> rank64;

  /** [input kind][accumulator] */
  void (*convert[10][NumberOfAccumulators])(void * out, const void * in, std::int64_t n);
  /** [accumulator][output kind]: the mean of sums over `count` taps. */
  void (*finishMean[NumberOfAccumulators][10])(void * out, const void * in, std::int64_t count, std::int64_t n,
                                               bool truncates);
  /** [flipped][kind]: voxels as keys; [flipped][kind][to that kind, float or double]: and back. */
  void (*toKey[2][10])(void * out, const void * in, std::int64_t n);
  void (*fromKey[2][10][3])(void * out, const void * in, std::int64_t n);
  /** Keys of 16, 32 and 64 bits become the lowest of all where the mask is 0; one that is the lowest inside, of a NaN,
   * becomes the next. */
  void (*hide16)(std::int16_t * keys, const std::uint8_t * mask, std::int64_t n);
  void (*hide32)(std::int32_t * keys, const std::uint8_t * mask, std::int64_t n);
  void (*hide64)(std::int64_t * keys, const std::uint8_t * mask, std::int64_t n);
  /** [accumulator][output kind]: rounding of weighted sums. */
  void (*finishWeighted[NumberOfAccumulators][10])(void * out, const void * in, std::int64_t n);

  /** Copies past the caches, where the processor can: it need not read what it overwrites. */
  void (*stream)(void * out, const void * in, std::int64_t bytes);
  /** Makes what was copied so visible to others before what follows. */
  void (*endStream)();
};

/** Bytes of an output that is stored past the caches: one that most processors' cannot hold, which else is read before
 * it is overwritten. In a larger cache 64 MiB are equally fast both ways. */
constexpr std::int64_t LeastStreamed = 32 << 20;

template <typename TKey>
const RankFunctions<TKey> &
RankFunctionsOf(const CpuLevel & level)
{
  if constexpr (sizeof(TKey) == 1)
  {
    return level.rank8;
  }
  else if constexpr (sizeof(TKey) == 2)
  {
    return level.rank16;
  }
  else if constexpr (sizeof(TKey) == 4)
  {
    return level.rank32;
  }
  else
  {
    return level.rank64;
  }
}

/** The level that kernels use: the best of this machine, or the one that the environment variable CHUNKWISE_CPU_LEVEL
 * ("baseline", "avx2", "avx512") named when it was first asked for, if this machine has it. */
Chunkwise_EXPORT const CpuLevel &
GetCpuLevel();

/** Makes kernels that begin from now on use the level of this name. False, and no change, if this machine lacks it. */
Chunkwise_EXPORT bool
SetCpuLevel(const char * name);

} // namespace chunkwise

#endif
