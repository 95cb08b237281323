/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNeighborOffsets_h
#define chunkwiseNeighborOffsets_h

#include "chunkwiseGeometry.h"

#include <vector>

namespace chunkwise
{

/** The offsets of neighbors along some axes, in raster order: they share a face (1), also an edge (2), also a corner
 * (3). */
std::vector<Coordinates>
GetNeighborOffsets(const std::vector<int> & axes, int connectivity);

} // namespace chunkwise

#endif
