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
  Median
};

/** The part of the next level that voxels of `box` make, which begins at multiples of `factor` (1 or 2) along each
 * axis. */
Box
GetReducedBox(const Box & box, const Coordinates & factor);

/** Makes each voxel of the next level from the voxels that exist: fewer at odd ends. `to` is a view of
 * GetReducedBox(box).
 */
void
ReduceLevel(ZarrReducer reducer, const Box & box, const BufferView & from, const Coordinates & factor,
            const BufferView & to, Executor & executor);

} // namespace chunkwise::files

#endif
