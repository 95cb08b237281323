/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, see chunkwiseCpuLevelFunctions.cxx.
#include "chunkwiseCpuNetworkRows.h"

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#  include <immintrin.h>
#elif defined(__aarch64__)
#  include <arm_neon.h>
#endif

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

#include "chunkwiseCpuVectors.h"

// Names of one accumulator for each of the ChannelsPerBlock output channels: arrays would not stay in registers.
#define CHUNKWISE_EACH_CHANNEL(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)

/** See AddToNetworkTileFunction. VVectors are added at a time. */
template <typename TVector, int VVectors>
inline void
AddToNetworkBlock(float * sums, std::int64_t stride, const float * patch, std::int64_t channels,
                  std::int64_t channelStride, const std::int64_t * taps, std::int64_t numberOfTaps,
                  const float * weights)
{
  constexpr std::int64_t width = TVector::Width;
  constexpr std::int64_t second = VVectors == 2 ? width : 0;
#define CHUNKWISE_LOAD(c)                                                                                              \
  TVector a##c = TVector::Load(sums + c * stride);                                                                     \
  TVector b##c = TVector::Load(sums + c * stride + second);
  CHUNKWISE_EACH_CHANNEL(CHUNKWISE_LOAD)
#undef CHUNKWISE_LOAD
  for (std::int64_t i = 0; i < channels; ++i, patch += channelStride)
  {
    for (std::int64_t t = 0; t < numberOfTaps; ++t, weights += 8)
    {
      const float * const from = patch + taps[t];
      const TVector       x = TVector::Load(from);
      const TVector       y = TVector::Load(from + second);
#define CHUNKWISE_ADD(c)                                                                                               \
  a##c.MultiplyAdd(weights[c], x);                                                                                     \
  if constexpr (VVectors == 2)                                                                                         \
  {                                                                                                                    \
    b##c.MultiplyAdd(weights[c], y);                                                                                   \
  }
      CHUNKWISE_EACH_CHANNEL(CHUNKWISE_ADD)
#undef CHUNKWISE_ADD
      static_cast<void>(y);
    }
  }
#define CHUNKWISE_STORE(c)                                                                                             \
  a##c.Store(sums + c * stride);                                                                                       \
  if constexpr (VVectors == 2)                                                                                         \
  {                                                                                                                    \
    b##c.Store(sums + c * stride + second);                                                                            \
  }
  CHUNKWISE_EACH_CHANNEL(CHUNKWISE_STORE)
#undef CHUNKWISE_STORE
}

template <typename TVector>
void
AddToNetworkTile(float * sums, std::int64_t stride, const float * patch, std::int64_t channels,
                 std::int64_t channelStride, const std::int64_t * taps, std::int64_t numberOfTaps,
                 const float * weights, std::int64_t n)
{
  // Sixteen registers hold the sums of eight channels once, thirty-two twice.
  constexpr int          vectors = TVector::Width == 16 ? 2 : 1;
  constexpr std::int64_t width = TVector::Width;
  std::int64_t           x = 0;
  for (; x + vectors * width <= n; x += vectors * width)
  {
    AddToNetworkBlock<TVector, vectors>(
      sums + x, stride, patch + x, channels, channelStride, taps, numberOfTaps, weights);
  }
  for (; x < n; x += width)
  {
    AddToNetworkBlock<TVector, 1>(sums + x, stride, patch + x, channels, channelStride, taps, numberOfTaps, weights);
  }
}
#undef CHUNKWISE_EACH_CHANNEL

AddToNetworkTileFunction
MakeAddToNetworkTile()
{
  return AddToNetworkTile<FloatVector>;
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
