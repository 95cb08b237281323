/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, see chunkwiseCpuLevelFunctions.cxx.
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

template <typename TKey>
void
HideKeys(TKey * __restrict keys, std::uint8_t * __restrict mask, TKey hidden, bool ofReals, std::int64_t n)
{
  constexpr int  top = 8 * sizeof(TKey) - 1;
  constexpr TKey rest = static_cast<TKey>(~(TKey{ 1 } << top));
  constexpr TKey infinity = sizeof(TKey) == 8   ? static_cast<TKey>(std::uint64_t{ 0x7ff } << 52)
                            : sizeof(TKey) == 4 ? static_cast<TKey>(std::uint32_t{ 0xff } << 23)
                                                : static_cast<TKey>(~TKey{ 0 });
  // No bits are above all of them.
  const TKey most = ofReals ? infinity : static_cast<TKey>(~TKey{ 0 });
  for (std::int64_t i = 0; i < n; ++i)
  {
    const TKey key = keys[i];
    const bool inside = (mask[i] != 0) & ((key & rest) <= most);
    keys[i] = inside ? key : hidden;
    mask[i] = inside ? 1 : 0;
  }
}

template <typename TKey>
bool
RaiseRow(TKey * __restrict raises, const std::uint8_t * __restrict seen, std::int64_t taps, std::int64_t n,
         bool & empties)
{
  const auto   all = static_cast<std::uint8_t>(taps);
  std::uint8_t any = 0;
  std::uint8_t none = 0;
  for (std::int64_t i = 0; i < n; ++i)
  {
    const std::uint8_t count = seen[i];
    const auto         lost = static_cast<std::uint8_t>(static_cast<std::uint8_t>(all - count) >> 1);
    const std::uint8_t raise = count != 0 ? lost : std::uint8_t{ 0 };
    raises[i] = static_cast<TKey>(raise);
    any |= raise;
    none |= count != 0 ? std::uint8_t{ 0 } : std::uint8_t{ 1 };
  }
  empties = none != 0;
  return any != 0;
}

inline void
SplitRow(float * __restrict values, float * __restrict weights, const std::uint8_t * __restrict mask, std::int64_t n)
{
  for (std::int64_t i = 0; i < n; ++i)
  {
    // As bits, so that there is no branch.
    const std::int32_t inside = mask[i] != 0 ? -1 : 0;
    std::int32_t       bits;
    __builtin_memcpy(&bits, values + i, sizeof(bits));
    bits &= inside;
    __builtin_memcpy(values + i, &bits, sizeof(bits));
    weights[i] = static_cast<float>(-inside);
  }
}

inline RowSight
LookAtRow(const std::uint8_t * mask, std::int64_t parts)
{
  RowSight sight{ 0, 0 };
  for (std::int64_t part = 0; part < parts; ++part)
  {
    std::uint64_t some = 0;
    std::uint64_t lacks = 0;
    for (int half = 0; half < 2; ++half)
    {
      std::uint64_t bytes;
      __builtin_memcpy(&bytes, mask + part * RowSight::Part + 8 * half, sizeof(bytes));
      some |= bytes;
      // The highest bit of each byte that is 0, and perhaps of bytes above it.
      lacks |= (bytes - 0x0101010101010101U) & ~bytes & 0x8080808080808080U;
    }
    sight.some |= static_cast<std::uint64_t>(some != 0) << part;
    sight.lacks |= static_cast<std::uint64_t>(lacks != 0) << part;
  }
  return sight;
}

inline void
HideRow(float * __restrict values, const std::uint8_t * __restrict mask, std::int64_t n)
{
  for (std::int64_t i = 0; i < n; ++i)
  {
    values[i] = mask[i] != 0 ? values[i] : 0.0F;
  }
}

inline bool
MeanRow(float * __restrict out, const float * __restrict sums, const std::uint8_t * __restrict counts, float empty,
        std::int64_t n)
{
  constexpr std::int32_t exponent = 0x7F800000;
  std::int32_t           largest = 0;
  for (std::int64_t i = 0; i < n; ++i)
  {
    const auto  count = static_cast<std::int32_t>(counts[i]);
    const float mean = sums[i] / static_cast<float>(count > 0 ? count : 1);
    out[i] = count > 0 ? mean : empty;
    std::int32_t bits;
    __builtin_memcpy(&bits, sums + i, sizeof(bits));
    bits &= exponent;
    largest = largest > bits ? largest : bits;
  }
  return largest != exponent;
}

inline bool
AreFiniteFloats(const float * numbers, std::int64_t n)
{
  constexpr std::int32_t exponent = 0x7F800000;
  std::int32_t           largest = 0;
  for (std::int64_t i = 0; i < n; ++i)
  {
    std::int32_t bits;
    __builtin_memcpy(&bits, numbers + i, sizeof(bits));
    bits &= exponent;
    largest = largest > bits ? largest : bits;
  }
  return largest != exponent;
}

inline std::int64_t
DivideRow(float * __restrict out, const float * __restrict n, const float * __restrict d, float least, float most,
          float whole, float nothing, float empty, std::int64_t count)
{
  std::int32_t empties = 0;
  for (std::int64_t i = 0; i < count; ++i)
  {
    const float quotient = n[i] / d[i] * whole;
    const bool  isWhole = (d[i] >= least) & (d[i] <= most);
    const float result = isWhole ? n[i] : quotient;
    const bool  isEmpty = !(d[i] > nothing);
    out[i] = isEmpty ? empty : result;
    empties += isEmpty ? 1 : 0;
  }
  return empties;
}

MaskedRowLevel
MakeMaskedRowLevel()
{
  return { MaskedPatchRows<float>(),
           MaskedPatchRows<double>(),
           { HideKeys<std::uint8_t>, RaiseRow<std::uint8_t> },
           { HideKeys<std::uint16_t>, RaiseRow<std::uint16_t> },
           { HideKeys<std::uint32_t>, RaiseRow<std::uint32_t> },
           { HideKeys<std::uint64_t>, RaiseRow<std::uint64_t> },
           { SplitRow, LookAtRow },
           HideRow,
           MeanRow,
           AreFiniteFloats,
           DivideRow };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
