/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Included once by each chunkwiseCpuMaskedRows*.cxx, as chunkwiseCpuLevelImplementation.h is by its files, see
// there.
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuMaskedRows.h"
#include "chunkwiseCpuPatchImplementation.h"

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

template <typename TReal>
void
SumSeenSquares(TReal * out, const TReal * a, const TReal * b, std::int64_t stride, std::int64_t taps, std::int64_t n)
{
  using V = RealVector<TReal>;
  WithTaps(taps, [&](auto count) {
    for (std::int64_t i = 0; i < n; i += V::Width)
    {
      typename V::Type sum{};
      for (std::int64_t t = 0; t < count; ++t)
      {
        const typename V::Type difference = V::Load(a + t * stride + i) - V::Load(b + t * stride + i);
        sum += difference == difference ? difference * difference : typename V::Type{};
      }
      V::Store(out + i, sum);
    }
  });
}

inline void
CountPairs(std::uint8_t * __restrict out, const std::uint8_t * a, const std::uint8_t * b, std::int64_t stride,
           std::int64_t taps, std::int64_t n)
{
  WithTaps(taps, [&](auto count) {
    for (std::int64_t i = 0; i < n; ++i)
    {
      std::uint8_t pairs = 0;
      for (std::int64_t t = 0; t < count; ++t)
      {
        pairs = static_cast<std::uint8_t>(pairs + (a[t * stride + i] & b[t * stride + i]));
      }
      out[i] = pairs;
    }
  });
}

inline void
AddCounts(std::uint8_t * __restrict out, const std::uint8_t * in, std::int64_t stride, std::int64_t taps,
          std::int64_t n)
{
  WithTaps(taps, [&](auto count) {
    for (std::int64_t i = 0; i < n; ++i)
    {
      std::uint8_t sum = 0;
      for (std::int64_t t = 0; t < count; ++t)
      {
        sum = static_cast<std::uint8_t>(sum + in[t * stride + i]);
      }
      out[i] = sum;
    }
  });
}

template <typename TReal>
void
WeighSeenPatches(TReal * out, const TReal * in, const std::uint8_t * counts, TReal * pairs, std::int64_t taps,
                 TReal twiceNoise, TReal inverse, std::int64_t n)
{
  using V = RealVector<TReal>;
  WithTaps(taps, [&](auto count) {
    const std::int64_t width = (n + PatchBlock - 1) / PatchBlock * PatchBlock;
    for (std::int64_t i = 0; i < width; ++i)
    {
      std::uint8_t sum = 0;
      for (std::int64_t t = 0; t < count; ++t)
      {
        sum = static_cast<std::uint8_t>(sum + counts[i + t]);
      }
      pairs[i] = static_cast<TReal>(static_cast<std::int32_t>(sum));
    }
    for (std::int64_t i = 0; i < n; i += V::Width)
    {
      const typename V::Type number = V::Load(pairs + i);
      const typename V::Type excess = SumOf(in + i, 1, count) * (TReal(1) / number) - twiceNoise;
      const typename V::Type t = (excess < TReal(0) ? typename V::Type{} : excess) * inverse;
      const auto             weight =
        NonLocalWeight<typename V::Float, typename V::Bits>(__builtin_convertvector(t, typename V::Float));
      V::Store(out + i, number > TReal(0) ? __builtin_convertvector(weight, typename V::Type) : typename V::Type{});
    }
  });
}

template <typename TReal>
void
AddSeen(TReal * weighted, TReal * weights, const TReal * const * w, const TReal * const * voxels, int count,
        std::int64_t n)
{
  using V = RealVector<TReal>;
  for (std::int64_t i = 0; i < n; i += V::Width)
  {
    typename V::Type sum = V::Load(weighted + i);
    typename V::Type all = V::Load(weights + i);
    for (int k = 0; k < count; ++k)
    {
      const typename V::Type voxel = V::Load(voxels[k] + i);
      const typename V::Type weight = voxel == voxel ? V::Load(w[k] + i) : typename V::Type{};
      sum += weight * (voxel == voxel ? voxel : typename V::Type{});
      all += weight;
    }
    V::Store(weighted + i, sum);
    V::Store(weights + i, all);
  }
}

template <typename TReal>
MaskedPatchFunctions<TReal>
MaskedPatchRows()
{
  return { SumSeenSquares<TReal>, CountPairs, AddCounts, WeighSeenPatches<TReal>, AddSeen<TReal> };
}

inline void
PairRow(float * __restrict pairs, const float * __restrict voxels, const std::uint8_t * __restrict mask, std::int64_t n)
{
  for (std::int64_t i = 0; i < n; ++i)
  {
    // As bits, so that there is no branch.
    const std::int32_t inside = mask[i] != 0 ? -1 : 0;
    std::int32_t       bits;
    __builtin_memcpy(&bits, voxels + i, sizeof(bits));
    bits &= inside;
    __builtin_memcpy(pairs + 2 * i, &bits, sizeof(bits));
    pairs[2 * i + 1] = static_cast<float>(-inside);
  }
}

inline std::int64_t
DivideRow(float * __restrict out, const float * __restrict pairs, float least, float most, float whole, float nothing,
          std::int64_t n)
{
  std::int32_t empties = 0;
  for (std::int64_t i = 0; i < n; ++i)
  {
    const float numerator = pairs[2 * i];
    const float denominator = pairs[2 * i + 1];
    const float quotient = numerator / denominator * whole;
    const bool  isWhole = (denominator >= least) & (denominator <= most);
    out[i] = isWhole ? numerator : quotient;
    empties += denominator > nothing ? 0 : 1;
  }
  return empties;
}

inline MaskedRowLevel
MakeMaskedRowLevel()
{
  return { MaskedPatchRows<float>(), MaskedPatchRows<double>(), PairRow, DivideRow };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
