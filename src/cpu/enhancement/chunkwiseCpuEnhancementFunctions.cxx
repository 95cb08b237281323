/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, see chunkwiseCpuLevelFunctions.cxx.
#include "chunkwiseCpuEnhancementRows.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuPatchImplementation.h"
#include "chunkwiseCpuTogetherImplementation.h"
#include "chunkwiseTileMappings.h"

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

/** As many bins as a register has numbers. */
template <typename TReal>
struct BinVector
{
  using Whole [[gnu::vector_size(RealVector<TReal>::Width * sizeof(std::int32_t))]] = std::int32_t;
  using Bins [[gnu::vector_size(RealVector<TReal>::Width * sizeof(std::uint16_t))]] = std::uint16_t;
};

template <typename TReal>
void
FindBins(std::uint16_t * bins, const TReal * row, TReal lower, TReal scale, TReal inverse, std::int64_t n)
{
  using V = RealVector<TReal>;
  for (std::int64_t i = 0; i < n; i += V::Width)
  {
    const typename V::Type                bin = BinOf(LevelOf(V::Load(row + i), lower, scale), inverse);
    const typename BinVector<TReal>::Bins result = __builtin_convertvector(
      __builtin_convertvector(bin, typename BinVector<TReal>::Whole), typename BinVector<TReal>::Bins);
    __builtin_memcpy(bins + i, &result, sizeof(result));
  }
}

template <typename TReal>
void
LowerRow(TReal * least, const TReal * taps, std::int64_t stride, const TReal * heights, std::int64_t radius,
         std::int64_t n)
{
  using V = RealVector<TReal>;
  for (std::int64_t i = 0; i < n; i += V::Width)
  {
    typename V::Type       found = V::Load(least + i);
    const typename V::Type middle = V::Load(taps + i) + heights[0];
    found = middle < found ? middle : found;
    for (std::int64_t t = 1; t <= radius; ++t)
    {
      // Rounding is monotonic: the lower tap gives the lower sum.
      const typename V::Type before = V::Load(taps + i - t * stride);
      const typename V::Type after = V::Load(taps + i + t * stride);
      const typename V::Type both = (before < after ? before : after) + heights[t];
      found = both < found ? both : found;
    }
    V::Store(least + i, found);
  }
}

template <typename TReal>
void
WeighRow(const BilateralStep<TReal> & step)
{
  using V = RealVector<TReal>;
  for (std::int64_t i = 0; i < step.n; i += V::Width)
  {
    const typename V::Type here = V::Load(step.here + i);
    typename V::Type       deviations = V::Load(step.deviations + i);
    typename V::Type       sums = V::Load(step.sums + i);
    for (std::int64_t t = -step.radius; t <= step.radius; ++t)
    {
      const typename V::Type deviation = V::Load(step.taps + i + t * step.stride) - here;
      const auto             decay = NonLocalWeight<typename V::Float, typename V::Bits>(
        __builtin_convertvector(deviation * deviation * step.inverse, typename V::Float));
      const typename V::Type product =
        __builtin_convertvector(decay, typename V::Type) * (step.weightOfRow * step.weights[t + step.radius]);
      const typename V::Type weight = product > TReal(0) ? product : typename V::Type{};
      deviations += product > TReal(0) ? weight * deviation : typename V::Type{};
      sums += weight;
    }
    V::Store(step.deviations + i, deviations);
    V::Store(step.sums + i, sums);
  }
}

void
MixMappings(float * out, const float * before, const float * after, float part, std::int64_t n)
{
  using V = RealVector<float>;
  for (std::int64_t i = 0; i < n; i += V::Width)
  {
    V::Store(out + i, MixOf(V::Load(before + i), V::Load(after + i), part));
  }
}

EnhancementLevel
MakeEnhancementLevel()
{
  return { { FindBins<float>, LowerRow<float>, WeighRow<float> },
           { FindBins<double>, LowerRow<double>, WeighRow<double> },
           MixMappings };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
