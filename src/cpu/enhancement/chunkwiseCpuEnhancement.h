/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuEnhancement_h
#define chunkwiseCpuEnhancement_h

#include "chunkwiseCpuLevel.h"
#include "chunkwiseOperation.h"

namespace chunkwise
{

/** Numbers of a row in memory: rows are read and written in whole lines. */
inline std::int64_t
PaddedRow(std::int64_t n)
{
  return (n + 2 * LineBytes - 1) / LineBytes * LineBytes;
}

/** A voxel, moved by an offset. */
inline Coordinates
Moved(Coordinates at, const Coordinates & offset)
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    at[a] += offset[a];
  }
  return at;
}

void
RegisterHostAdaptiveEqualization(KernelRegistry & registry);
void
RegisterHostBilateral(KernelRegistry & registry);
void
RegisterHostMaskedVoxels(KernelRegistry & registry);
void
RegisterHostNonFlatExtremum(KernelRegistry & registry);

} // namespace chunkwise

#endif
