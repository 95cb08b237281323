/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandRegion_h
#define commandRegion_h

#include "chunkwiseOperation.h"

#include <cstdint>
#include <string>
#include <vector>

namespace command
{

/** The numbers of --region: where it begins along each axis, then its sizes. Throws ArgumentError. */
std::vector<std::int64_t>
ParseRegion(const std::string & text);

/** The part of `whole`, the box of a result, that the numbers name; its first voxel is 0. All of it if there are no
 * numbers. Throws ArgumentError if they are not `dimension` of each or leave the result. */
chunkwise::Box
MakeRegion(const std::vector<std::int64_t> & numbers, const chunkwise::Box & whole, int dimension);

/** The region that has to be computed so that `region` can be had: more than itself where voxels depend on the whole
 * axis, or where sums are handed on from the image's beginning. */
chunkwise::Box
GetComputedBox(const chunkwise::Operation & operation, const chunkwise::Box & region, const chunkwise::Box & image);

} // namespace command

#endif
