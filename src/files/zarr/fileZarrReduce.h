/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarrReduce_h
#define fileZarrReduce_h

#include "chunkwiseExecutor.h"
#include "chunkwiseGeometry.h"

namespace chunkwise::files
{

/** How the voxels of a level become one of the next. */
enum class ZarrReducer
{
  None, ///< there is one level
  // As BinOperation has them.
  Mean,
  Mode,
  Minimum,
  Maximum,
  Median,
  Gaussian
};

/** The part of the next level that voxels of `box` make, which begins at multiples of `factor` (1 or 2) along each
 * axis. */
Box
GetReducedBox(const Box & box, const Coordinates & factor);

/** Planes beside a block of planes that Gaussian means of the block need, for a factor along their axis. */
constexpr std::int64_t
GetReachOfLevel(std::int64_t factor)
{
  return factor - 1;
}

/** Makes the voxels of `to`, a part of the next level, from those of a level of `extent` that exist: fewer at odd ends.
 * `from` has all that they need. */
void
ReduceLevel(ZarrReducer reducer, const Coordinates & extent, const BufferView & from, const Coordinates & factor,
            const BufferView & to, Executor & executor);

} // namespace chunkwise::files

#endif
