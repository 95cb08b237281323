/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Vectors of numbers, for sources that are compiled once for each instruction set (chunkwiseCpuLevelFunctions.cxx).
#ifndef chunkwiseCpuVectors_h
#define chunkwiseCpuVectors_h

#include "chunkwiseCpuLevel.h"
#include "chunkwiseTypes.h"

#if defined(__SSE2__)
#  include <immintrin.h>
#elif defined(__aarch64__)
#  include <arm_neon.h>
#endif

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

/** As many numbers as a register has. */
template <typename TReal>
struct RealVector
{
#if defined(__AVX512F__)
  static constexpr int Bytes = 64;
#elif defined(__AVX2__)
  static constexpr int Bytes = 32;
#else
  static constexpr int Bytes = 16;
#endif
  static constexpr std::int64_t Width = Bytes / static_cast<int>(sizeof(TReal));
  using Type [[gnu::vector_size(Bytes)]] = TReal;
  /** As many of them as floats, and their bits. */
  using Float [[gnu::vector_size(Width * sizeof(float))]] = float;
  using Bits [[gnu::vector_size(Width * sizeof(float))]] = std::uint32_t;

  static CHUNKWISE_ALWAYS_INLINE Type
  Load(const TReal * from)
  {
    Type v;
    __builtin_memcpy(&v, from, sizeof(v));
    return v;
  }
  static CHUNKWISE_ALWAYS_INLINE void
  Store(TReal * to, const Type & v)
  {
    __builtin_memcpy(to, &v, sizeof(v));
  }
};

template <typename TReal>
using VectorOf = typename RealVector<TReal>::Type;

/** w x + sum, rounded once. */
template <typename TReal>
CHUNKWISE_ALWAYS_INLINE VectorOf<TReal>
                        Fuse(VectorOf<TReal> w, VectorOf<TReal> x, VectorOf<TReal> sum)
{
#if defined(__AVX512F__)
  if constexpr (sizeof(TReal) == 4)
  {
    return _mm512_fmadd_ps(w, x, sum);
  }
  else
  {
    return _mm512_fmadd_pd(w, x, sum);
  }
#elif defined(__AVX2__) && defined(__FMA__)
  if constexpr (sizeof(TReal) == 4)
  {
    return _mm256_fmadd_ps(w, x, sum);
  }
  else
  {
    return _mm256_fmadd_pd(w, x, sum);
  }
#elif defined(__aarch64__)
  if constexpr (sizeof(TReal) == 4)
  {
    return vfmaq_f32(sum, w, x);
  }
  else
  {
    return vfmaq_f64(sum, w, x);
  }
#else
  for (int i = 0; i < RealVector<TReal>::Width; ++i)
  {
    if constexpr (sizeof(TReal) == 4)
    {
      sum[i] = __builtin_fmaf(w[i], x[i], sum[i]);
    }
    else
    {
      sum[i] = __builtin_fma(w[i], x[i], sum[i]);
    }
  }
  return sum;
#endif
}

template <typename TReal>
CHUNKWISE_ALWAYS_INLINE VectorOf<TReal>
                        Root(VectorOf<TReal> x)
{
#if defined(__AVX512F__)
  if constexpr (sizeof(TReal) == 4)
  {
    return _mm512_sqrt_ps(x);
  }
  else
  {
    return _mm512_sqrt_pd(x);
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(TReal) == 4)
  {
    return _mm256_sqrt_ps(x);
  }
  else
  {
    return _mm256_sqrt_pd(x);
  }
#elif defined(__SSE2__)
  if constexpr (sizeof(TReal) == 4)
  {
    return _mm_sqrt_ps(x);
  }
  else
  {
    return _mm_sqrt_pd(x);
  }
#elif defined(__aarch64__)
  if constexpr (sizeof(TReal) == 4)
  {
    return vsqrtq_f32(x);
  }
  else
  {
    return vsqrtq_f64(x);
  }
#else
  for (int i = 0; i < RealVector<TReal>::Width; ++i)
  {
    x[i] = static_cast<TReal>(__builtin_sqrt(x[i]));
  }
  return x;
#endif
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise

#endif
