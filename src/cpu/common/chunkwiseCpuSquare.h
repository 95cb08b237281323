/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Included by what is compiled for each instruction set, with CHUNKWISE_CPU_LEVEL the level's namespace.
#ifndef chunkwiseCpuSquare_h
#define chunkwiseCpuSquare_h

#include <cstdint>
#include <type_traits>

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

#if defined(__AVX512F__)
constexpr int RegisterBytes = 64;
#elif defined(__AVX__)
constexpr int RegisterBytes = 32;
#else
constexpr int RegisterBytes = 16;
#endif

/** Squares of numbers, VBytes wide, are transposed by exchanges between pairs of rows. */
template <typename T, int VBytes = RegisterBytes>
class Square
{
  static constexpr int Bytes = VBytes;
  typedef T            Numbers __attribute__((vector_size(Bytes), aligned(sizeof(T)), may_alias));
  using Index = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef Index Mask __attribute__((vector_size(Bytes)));

public:
  typedef T            Row __attribute__((vector_size(Bytes)));
  static constexpr int Side = Bytes / static_cast<int>(sizeof(T));

  /** to[j][l] = from[l][j] */
  static void
  Transpose(const T * const * from, T * const * to)
  {
    Row rows[Side];
    for (int l = 0; l < Side; ++l)
    {
      rows[l] = *reinterpret_cast<const Numbers *>(from[l]);
    }
    Transpose(rows);
    for (int j = 0; j < Side; ++j)
    {
      *reinterpret_cast<Numbers *>(to[j]) = rows[j];
    }
  }
  /** In registers. */
  static void
  Transpose(Row * rows)
  {
    Exchange<Side / 2>(rows);
  }

private:
#ifdef __clang__
  /** Lanes of a and b by their numbers; GCC does the same by __builtin_shuffle. */
  [[gnu::always_inline]] static inline Row
  Shuffle(const Row & a, const Row & b, const Mask & lanes)
  {
    Row result{};
#  pragma clang loop unroll(full)
    for (int j = 0; j < Side; ++j)
    {
      result[j] = lanes[j] < Side ? a[lanes[j]] : b[lanes[j] - Side];
    }
    return result;
  }
#else
  [[gnu::always_inline]] static inline Row
  Shuffle(const Row & a, const Row & b, const Mask & lanes)
  {
    return __builtin_shuffle(a, b, lanes);
  }
#endif

  /** Exchanges the squares of side VStep beside the diagonal of each square twice as large, then within them. */
  template <int VStep>
  static void
  Exchange(Row * rows)
  {
    if constexpr (VStep > 0)
    {
      Mask low{};
      Mask high{};
      for (int j = 0; j < Side; ++j)
      {
        low[j] = j & VStep ? Side + j - VStep : j;
        high[j] = j & VStep ? Side + j : j + VStep;
      }
#pragma GCC unroll 16
      for (int i = 0; i < Side; ++i)
      {
        if (!(i & VStep))
        {
          const Row a = rows[i];
          const Row b = rows[i + VStep];
          rows[i] = Shuffle(a, b, low);
          rows[i + VStep] = Shuffle(a, b, high);
        }
      }
      Exchange<VStep / 2>(rows);
    }
  }
};

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise

#endif
