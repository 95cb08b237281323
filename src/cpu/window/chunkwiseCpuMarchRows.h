/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuMarchRows_h
#define chunkwiseCpuMarchRows_h

#include <cstdint>

// Work on rows of windows that look at their center, see chunkwiseCpuMarch.h.

namespace chunkwise
{

/** Bytes to which rows are rounded up: they are read and written up to the next multiple. */
constexpr std::int64_t MarchLine = 64;

/** Rows beside each other along an axis that a pass makes together, so that they share what they read. */
constexpr int MarchTogether = 4;

/** The rows that a pass reads and the rows that it makes. Row `k` of `count` results has the taps rows[k], rows[k + 1],
 * ..., `taps` of them. If a row has several numbers for each voxel, those of a kind lie side by side, `gap` numbers
 * after those of the kind before. */
template <typename TReal>
struct MarchStep
{
  const TReal * const * rows{ nullptr };
  std::int64_t          taps{ 0 };
  std::int64_t          gap{ 0 };
  const TReal *         centers[MarchTogether]{};
  TReal *               results[MarchTogether]{};
  std::int64_t          resultGap{ 0 };
  /** 1 or MarchTogether; at least so many taps if it is more than 1. */
  int          count{ 1 };
  bool         isFirst{ false };
  bool         isLast{ false };
  std::int64_t n{ 0 };
};

/** A pass of VarianceOperation for real numbers. Rows have voxels, differences and variances; before the first pass
 * voxels alone. The last pass gives the variance, or its root. */
template <typename TReal>
struct MomentStep : MarchStep<TReal>
{
  TReal inverse{ 1 };
  bool  takesRoot{ false };
};

/** A pass of LaplacianOperation. Rows have S and L; before the first pass S alone. The last pass gives L. */
template <typename TReal>
struct LaplacianStep : MarchStep<TReal>
{
  /** The weights of the taps of each result. */
  const TReal * g[MarchTogether]{};
  const TReal * h[MarchTogether]{};
};

template <typename TReal>
struct MarchFunctions
{
  void (*mergeMoments)(const MomentStep<TReal> & step);
  void (*mergeLaplacians)(const LaplacianStep<TReal> & step);
  /** The first pass along x, for up to MarchLine bytes of voxels that each have separate weights: tap t of voxel i has
   * g[0][t * width + i], NaN where there is no such tap; `width` is that of a line. */
  void (*mergeCutLaplacians)(const LaplacianStep<TReal> & step);
};

/** The functions compiled for one instruction set. All sets give the same bits. */
struct MarchLevel
{
  MarchFunctions<float>  float32;
  MarchFunctions<double> float64;
  /** For 64-bit integers: the voxels of a row have the bits of integers. */
  void (*mergeInt64)(const MomentStep<double> & step);
  void (*mergeUInt64)(const MomentStep<double> & step);
};

/** For the level that GetCpuLevel() names. */
const MarchLevel &
GetMarchLevel();

template <typename TReal>
const MarchFunctions<TReal> &
MarchFunctionsOf(const MarchLevel & level)
{
  if constexpr (sizeof(TReal) == 4)
  {
    return level.float32;
  }
  else
  {
    return level.float64;
  }
}

} // namespace chunkwise

#endif
