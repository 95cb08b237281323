/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, see chunkwiseCpuLevelFunctions.cxx.
#include "chunkwiseCpuDistanceEnvelope.h"
#include "chunkwiseCpuDistanceLines.h"

#if defined(__SSE2__)
#  include <immintrin.h>
#elif defined(__aarch64__)
#  include <arm_neon.h>
#endif

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

#if defined(__AVX512F__)
constexpr int DistanceVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int DistanceVectorBytes = 32;
#else
constexpr int DistanceVectorBytes = 16;
#endif

template <typename T>
struct DistanceVectorOf;
template <>
struct DistanceVectorOf<std::int32_t>
{
  typedef std::int32_t Type __attribute__((vector_size(DistanceVectorBytes)));
  typedef std::int32_t Unaligned __attribute__((vector_size(DistanceVectorBytes), aligned(4), may_alias));
};
template <>
struct DistanceVectorOf<std::int64_t>
{
  typedef long long Type __attribute__((vector_size(DistanceVectorBytes)));
  typedef long long Unaligned __attribute__((vector_size(DistanceVectorBytes), aligned(8), may_alias));
};
template <>
struct DistanceVectorOf<double>
{
  typedef double Type __attribute__((vector_size(DistanceVectorBytes)));
  typedef double Unaligned __attribute__((vector_size(DistanceVectorBytes), aligned(8), may_alias));
};

template <typename TMask>
CHUNKWISE_ALWAYS_INLINE bool
IsAny(const TMask & mask)
{
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_epi8((__m256i)mask) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_epi8((__m128i)mask) != 0;
#elif defined(__aarch64__)
  return vmaxvq_u32((uint32x4_t)mask) != 0;
#else
  bool any = false;
  for (unsigned int i = 0; i < sizeof(mask) / sizeof(mask[0]); ++i)
  {
    any = any || mask[i] != 0;
  }
  return any;
#endif
}

/** Numbers that are searched together. */
template <typename T>
struct DistanceLanes
{
  using Vector = typename DistanceVectorOf<T>::Type;
  using Unaligned = typename DistanceVectorOf<T>::Unaligned;
  static constexpr int Vectors = static_cast<int>(DistanceTileBytes) / DistanceVectorBytes;
  static constexpr int PerVector = DistanceVectorBytes / static_cast<int>(sizeof(T));
  static constexpr int Count = Vectors * PerVector;

  Vector v[Vectors];

  CHUNKWISE_ALWAYS_INLINE void
  Load(const T * from)
  {
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i)
    {
      v[i] = *reinterpret_cast<const Unaligned *>(from + i * PerVector);
    }
  }
  CHUNKWISE_ALWAYS_INLINE void
  Store(T * to) const
  {
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i)
    {
      *reinterpret_cast<Unaligned *>(to + i * PerVector) = v[i];
    }
  }
  CHUNKWISE_ALWAYS_INLINE void
  Fill(T value)
  {
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i)
    {
      v[i] = Vector{} + value;
    }
  }
  /** Becomes the smaller of both. */
  CHUNKWISE_ALWAYS_INLINE void
  Lower(const DistanceLanes & other)
  {
#pragma GCC unroll 4
    for (int i = 0; i < Vectors; ++i)
    {
      v[i] = other.v[i] < v[i] ? other.v[i] : v[i];
    }
  }
};

template <typename T>
CHUNKWISE_ALWAYS_INLINE bool
IsAnyAbove(const DistanceLanes<T> & a, const DistanceLanes<T> & b, T more)
{
  auto mask = a.v[0] > b.v[0] + more;
#pragma GCC unroll 4
  for (int i = 1; i < DistanceLanes<T>::Vectors; ++i)
  {
    mask |= a.v[i] > b.v[i] + more;
  }
  return IsAny(mask);
}

/** Lowers `best`, the values at `center`, by those of up to DistanceSteps voxels to either side, `stride` apart, until
 * none can be lower. `lowest` bounds all values of the lines. Returns the steps; more than `most`: others follow. */
template <typename T>
CHUNKWISE_ALWAYS_INLINE std::int64_t
Search(const T * center, std::int64_t stride, const T * weights, std::int64_t most, const DistanceLanes<T> & lowest,
       DistanceLanes<T> & best)
{
  for (std::int64_t k = 1; k <= most; k += 4)
  {
    if (!IsAnyAbove(best, lowest, weights[k]))
    {
      return k;
    }
    const T * before = center - k * stride;
    const T * behind = center + k * stride;
#pragma GCC unroll 4
    for (int step = 0; step < 4; ++step)
    {
      DistanceLanes<T> a;
      DistanceLanes<T> b;
      a.Load(before);
      b.Load(behind);
      a.Lower(b);
#pragma GCC unroll 4
      for (int i = 0; i < DistanceLanes<T>::Vectors; ++i)
      {
        a.v[i] = a.v[i] + weights[k + step];
      }
      best.Lower(a);
      before -= stride;
      behind += stride;
    }
  }
  return most + 1;
}

/** Steps for each voxel from which on envelopes are faster. */
template <typename T>
constexpr std::int64_t ManySteps = sizeof(T) == 4 ? 128 : 64;

/** Minima of voxels `first` and on of a line. */
template <typename T>
void
FinishByEnvelope(const T * line, std::int64_t stride, const DistanceAxis<T> & axis, std::int64_t first, T * out,
                 std::int64_t outStride, DistanceParabola<T> * parabolas)
{
  const std::int64_t n = axis.length;
  T                  largest = 0;
  for (std::int64_t i = 0; i < n; ++i)
  {
    const T value = line[i * stride];
    largest = value < axis.beyond && value > largest ? value : largest;
  }
  const double margin = DistanceMargin(largest, axis);
  if (!(margin < MostDistanceMargin))
  {
    for (std::int64_t i = first; i < n; ++i)
    {
      T best = axis.beyond;
      for (std::int64_t j = 0; j < n; ++j)
      {
        const T value = line[j * stride];
        const T sum = value < axis.beyond ? value + axis.weights[j < i ? i - j : j - i] : axis.beyond;
        best = sum < best ? sum : best;
      }
      out[i * outStride] = best;
    }
    return;
  }
  const std::int64_t count = FindDistanceEnvelope(line, stride, n, axis, margin, parabolas);
  for (std::int64_t i = first; i < n; ++i)
  {
    out[i * outStride] = axis.beyond;
  }
  if (count > 0)
  {
    WalkDistanceEnvelope(parabolas, count, first, n, [&](std::int64_t i, const DistanceParabola<T> & parabola) {
      const T sum = parabola.value + axis.weights[parabola.at < i ? i - parabola.at : parabola.at - i];
      T &     best = out[i * outStride];
      best = sum < best ? sum : best;
    });
  }
}

template <typename T>
void
MinimizeColumns(T * slice, std::int64_t stride, std::int64_t lanes, const DistanceAxis<T> & axis, T * tile,
                DistanceParabola<T> * parabolas)
{
  using Lanes = DistanceLanes<T>;
  const std::int64_t n = axis.length;
  T * const          line = tile + DistancePad * Lanes::Count;
  Lanes              lowest;
  lowest.Fill(axis.beyond);
  for (std::int64_t i = 0; i < n; ++i)
  {
    Lanes values;
    if (lanes == Lanes::Count)
    {
      values.Load(slice + i * stride);
    }
    else
    {
      T part[Lanes::Count];
      for (std::int64_t l = 0; l < Lanes::Count; ++l)
      {
        part[l] = l < lanes ? slice[i * stride + l] : axis.beyond;
      }
      values.Load(part);
    }
    values.Store(line + i * Lanes::Count);
    lowest.Lower(values);
  }
  const std::int64_t most = n - 1 < DistanceSteps ? n - 1 : DistanceSteps;
  std::int64_t       steps = 0;
  for (std::int64_t i = 0; i < n; ++i)
  {
    Lanes best;
    best.Load(line + i * Lanes::Count);
    const std::int64_t taken = Search(line + i * Lanes::Count, Lanes::Count, axis.weights, most, lowest, best);
    steps += taken;
    if ((taken > most && most < n - 1) || steps > ManySteps<T> * (i + 16))
    {
      for (std::int64_t l = 0; l < lanes; ++l)
      {
        FinishByEnvelope(line + l, Lanes::Count, axis, i, slice + l, stride, parabolas);
      }
      return;
    }
    if (lanes == Lanes::Count)
    {
      best.Store(slice + i * stride);
    }
    else
    {
      T part[Lanes::Count];
      best.Store(part);
      for (std::int64_t l = 0; l < lanes; ++l)
      {
        slice[i * stride + l] = part[l];
      }
    }
  }
}

template <typename T>
void
MinimizeRow(T * row, const DistanceAxis<T> & axis, T * memory, DistanceParabola<T> * parabolas)
{
  using Lanes = DistanceLanes<T>;
  const std::int64_t n = axis.length;
  T * const          line = memory + DistancePad;
  T                  least = axis.beyond;
  for (std::int64_t i = 0; i < n; ++i)
  {
    line[i] = row[i];
    least = row[i] < least ? row[i] : least;
  }
  if (!(least < axis.beyond))
  {
    return;
  }
  Lanes lowest;
  lowest.Fill(least);
  const std::int64_t most = n - 1 < DistanceSteps ? n - 1 : DistanceSteps;
  std::int64_t       steps = 0;
  for (std::int64_t i = 0; i < n; i += Lanes::Count)
  {
    Lanes best;
    best.Load(line + i);
    const std::int64_t taken = Search(line + i, std::int64_t{ 1 }, axis.weights, most, lowest, best);
    steps += taken;
    if ((taken > most && most < n - 1) || steps > ManySteps<T> * (i / Lanes::Count + 4))
    {
      FinishByEnvelope(line, 1, axis, i, row, 1, parabolas);
      return;
    }
    if (n - i >= Lanes::Count)
    {
      best.Store(row + i);
    }
    else
    {
      T part[Lanes::Count];
      best.Store(part);
      for (std::int64_t l = 0; i + l < n; ++l)
      {
        row[i + l] = part[l];
      }
    }
  }
}

template <typename T>
void
GoBack(std::int32_t * next, const std::uint8_t * features, T * out, std::int64_t n, std::int32_t z, bool countsOwn)
{
  if (!countsOwn)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      out[i] = static_cast<T>(next[i] - z);
      next[i] = features[i] != 0 ? z : next[i];
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    next[i] = features[i] != 0 ? z : next[i];
    out[i] = static_cast<T>(next[i] - z);
  }
}

template <typename T>
struct WrappingNumber
{
  using Type = std::uint64_t;
};
template <>
struct WrappingNumber<std::int32_t>
{
  using Type = std::uint32_t;
};
template <typename T>
using WrappingOf = typename WrappingNumber<T>::Type;

template <typename T>
void
GoOn(std::int32_t * last, const std::uint8_t * features, T * out, std::int64_t n, std::int32_t z, std::int32_t more,
     const DistanceAxis<T> & axis)
{
  // Distances to features that are not there are from here on.
  constexpr T  far = static_cast<T>(std::int32_t{ 1 } << 30);
  const double spacing = axis.spacing;
  for (std::int64_t i = 0; i < n; ++i)
  {
    last[i] = features[i] != 0 ? z : last[i];
    const T before = static_cast<T>(z - last[i] + more);
    const T nearer = before < out[i] ? before : out[i];
    T       square;
    if constexpr (static_cast<T>(0.5) != T{ 0 })
    {
      square = (nearer * spacing) * (nearer * spacing);
    }
    else
    {
      // Those of what is far wrap around, and are not taken.
      square = static_cast<T>(static_cast<WrappingOf<T>>(nearer) * static_cast<WrappingOf<T>>(nearer));
    }
    out[i] = nearer < far && square < axis.beyond ? square : axis.beyond;
  }
}

template <typename T>
DistanceFunctions<T>
MakeDistanceFunctions()
{
  return { GoBack<T>, GoOn<T>, MinimizeColumns<T>, MinimizeRow<T> };
}

DistanceLevel
MakeDistanceLevel()
{
  return { MakeDistanceFunctions<std::int32_t>(),
           MakeDistanceFunctions<std::int64_t>(),
           MakeDistanceFunctions<double>() };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
