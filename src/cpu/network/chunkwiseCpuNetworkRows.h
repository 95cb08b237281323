/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuNetworkRows_h
#define chunkwiseCpuNetworkRows_h

#include <cstdint>

namespace chunkwise
{

/** Convolutions of networks, for eight output channels whose sums of `n` voxels begin at sums + channel * stride: over
 * the input channels, for each over the taps, sum = fma(weights[..][tap][output channel], patch[channelStride * input
 * channel + taps[tap] + voxel], sum). Sums and patch are read up to the next multiple of 16 voxels. All instruction
 * sets give the same bits. */
using AddToNetworkTileFunction = void (*)(float * sums, std::int64_t stride, const float * patch, std::int64_t channels,
                                          std::int64_t channelStride, const std::int64_t * taps,
                                          std::int64_t numberOfTaps, const float * weights, std::int64_t n);

/** For the level that GetCpuLevel() names. */
AddToNetworkTileFunction
GetAddToNetworkTile();

} // namespace chunkwise

#endif
