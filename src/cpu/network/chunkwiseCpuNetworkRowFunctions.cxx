/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, see chunkwiseCpuLevelFunctions.cxx.
#include "chunkwiseCpuNetworkRows.h"
#include "chunkwiseCpuVectors.h"

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

// Names of one accumulator for each of the ChannelsPerBlock output channels: arrays would not stay in registers.
#define CHUNKWISE_EACH_CHANNEL(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)

/** See AddToNetworkTileFunction. VVectors are added at a time. */
template <int VVectors>
inline void
AddToNetworkBlock(float * sums, std::int64_t stride, const float * patch, std::int64_t channels,
                  std::int64_t channelStride, const std::int64_t * taps, std::int64_t numberOfTaps,
                  const float * weights)
{
  using V = RealVector<float>;
  using Vector = VectorOf<float>;
  constexpr std::int64_t width = V::Width;
  constexpr std::int64_t second = VVectors == 2 ? width : 0;
#define CHUNKWISE_LOAD(c)                                                                                              \
  Vector a##c = V::Load(sums + c * stride);                                                                            \
  Vector b##c = V::Load(sums + c * stride + second);
  CHUNKWISE_EACH_CHANNEL(CHUNKWISE_LOAD)
#undef CHUNKWISE_LOAD
  for (std::int64_t i = 0; i < channels; ++i, patch += channelStride)
  {
    for (std::int64_t t = 0; t < numberOfTaps; ++t, weights += 8)
    {
      const float * const from = patch + taps[t];
      const Vector        x = V::Load(from);
      const Vector        y = V::Load(from + second);
#define CHUNKWISE_ADD(c)                                                                                               \
  a##c = Fuse<float>(weights[c] - Vector{}, x, a##c);                                                                  \
  if constexpr (VVectors == 2)                                                                                         \
  {                                                                                                                    \
    b##c = Fuse<float>(weights[c] - Vector{}, y, b##c);                                                                \
  }
      CHUNKWISE_EACH_CHANNEL(CHUNKWISE_ADD)
#undef CHUNKWISE_ADD
      static_cast<void>(y);
    }
  }
#define CHUNKWISE_STORE(c)                                                                                             \
  V::Store(sums + c * stride, a##c);                                                                                   \
  if constexpr (VVectors == 2)                                                                                         \
  {                                                                                                                    \
    V::Store(sums + c * stride + second, b##c);                                                                        \
  }
  CHUNKWISE_EACH_CHANNEL(CHUNKWISE_STORE)
#undef CHUNKWISE_STORE
}

void
AddToNetworkTile(float * sums, std::int64_t stride, const float * patch, std::int64_t channels,
                 std::int64_t channelStride, const std::int64_t * taps, std::int64_t numberOfTaps,
                 const float * weights, std::int64_t n)
{
  // Sixteen registers hold the sums of eight channels once, thirty-two twice.
  constexpr std::int64_t width = RealVector<float>::Width;
  constexpr int          vectors = width == 16 ? 2 : 1;
  std::int64_t           x = 0;
  for (; x + vectors * width <= n; x += vectors * width)
  {
    AddToNetworkBlock<vectors>(sums + x, stride, patch + x, channels, channelStride, taps, numberOfTaps, weights);
  }
  for (; x < n; x += width)
  {
    AddToNetworkBlock<1>(sums + x, stride, patch + x, channels, channelStride, taps, numberOfTaps, weights);
  }
}
#undef CHUNKWISE_EACH_CHANNEL

AddToNetworkTileFunction
MakeAddToNetworkTile()
{
  return AddToNetworkTile;
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
