/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStatisticsSummary_h
#define chunkwiseStatisticsSummary_h

#include "chunkwiseExactDigits.h"
#include "chunkwiseOrdinal.h"

#include <cstring>
#include <limits>
#include <type_traits>

// The arithmetic of StatisticsOperation, one source for every backend.
namespace chunkwise
{

/** The summary that StatisticsOperation keeps of a set of voxels. All words zero: of no voxel. */
struct StatisticsSummary
{
  /** The digits hold sums of 2^63 doubles, from the lowest bit of the least one to the highest of the largest. */
  static constexpr int SumDigits = 68;
  static constexpr int SumBias = 34 * DigitBits;
  static constexpr int SquareDigits = 134;
  static constexpr int SquareBias = 2 * SumBias;

  std::int64_t finite; ///< voxels that are finite numbers
  std::int64_t nans;
  std::int64_t positiveInfinities;
  std::int64_t negativeInfinities;
  /** Ordinals of the finite voxels; anything if there are none. */
  std::uint64_t minimum;
  std::uint64_t maximum;
  /** The sums of the finite voxels, and of their squares; carries have been passed on. */
  std::int64_t sum[SumDigits];
  std::int64_t squares[SquareDigits];

  CHUNKWISE_HOST_DEVICE void
  PassCarriesOn()
  {
    Carry(sum, SumDigits);
    Carry(squares, SquareDigits);
  }
  void
  Merge(const StatisticsSummary & other)
  {
    if (other.finite > 0)
    {
      minimum = finite > 0 && minimum < other.minimum ? minimum : other.minimum;
      maximum = finite > 0 && maximum > other.maximum ? maximum : other.maximum;
    }
    finite += other.finite;
    nans += other.nans;
    positiveInfinities += other.positiveInfinities;
    negativeInfinities += other.negativeInfinities;
    for (int i = 0; i < SumDigits; ++i)
    {
      sum[i] += other.sum[i];
    }
    for (int i = 0; i < SquareDigits; ++i)
    {
      squares[i] += other.squares[i];
    }
    PassCarriesOn();
  }
};

/** Adds voxels up in registers, up to 2^31 of them. `TDigits` is where sums go that registers do not hold: AddToSum(i,
 * part) and AddToSquares(i, part) whenever; AddAllToSum(first, value) and AddAllToSquares(first, value) in End, which
 * all threads of a device call together. */
template <typename TPixel, typename = void>
class VoxelStatistics;

/** 8- to 64-bit integers. */
template <typename TPixel>
class VoxelStatistics<TPixel, std::enable_if_t<std::is_integral<TPixel>::value>>
{
public:
  template <typename TDigits>
  CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
  Add(TPixel value, TDigits &)
  {
    ++finite;
    m_Minimum = value < m_Minimum ? value : m_Minimum;
    m_Maximum = value > m_Maximum ? value : m_Maximum;
    m_Sum += value;
    if constexpr (sizeof(TPixel) <= 4)
    {
      // Modulo 2^64 the square of a negative number is right too.
      const auto wide = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
      m_Squares += wide * wide;
    }
    else
    {
      auto magnitude = static_cast<std::uint64_t>(value);
      if constexpr (std::is_signed<TPixel>::value)
      {
        magnitude = value < 0 ? 0 - magnitude : magnitude;
      }
      const UInt128 square = static_cast<UInt128>(magnitude) * magnitude;
      m_Squares += static_cast<std::uint64_t>(square);
      m_HighSquares += static_cast<std::uint64_t>(square >> 64);
    }
  }
  template <typename TDigits>
  CHUNKWISE_HOST_DEVICE void
  End(TDigits & digits)
  {
    constexpr int one = StatisticsSummary::SumBias / DigitBits;
    digits.AddAllToSum(one, m_Sum);
    digits.AddAllToSquares(2 * one, static_cast<Int128>(m_Squares));
    if constexpr (sizeof(TPixel) == 8)
    {
      digits.AddAllToSquares(2 * one + 2, static_cast<Int128>(m_HighSquares));
    }
  }
  CHUNKWISE_HOST_DEVICE std::uint64_t
                        GetMinimum() const
  {
    return OrdinalOf(m_Minimum);
  }
  CHUNKWISE_HOST_DEVICE std::uint64_t
                        GetMaximum() const
  {
    return OrdinalOf(m_Maximum);
  }

  std::int64_t finite{ 0 };
  std::int64_t nans{ 0 };
  std::int64_t positiveInfinities{ 0 };
  std::int64_t negativeInfinities{ 0 };

private:
  /** 2^31 values of 32 bits fit 64. */
  using Sum = std::conditional_t<sizeof(TPixel) <= 4, std::int64_t, Int128>;
  /** 2^31 squares of 16-bit integers fit 64. */
  using Squares = std::conditional_t<sizeof(TPixel) <= 2, std::uint64_t, UInt128>;

  Sum     m_Sum{ 0 };
  Squares m_Squares{ 0 };
  UInt128 m_HighSquares{ 0 };
  TPixel  m_Minimum{ FromOrdinal<TPixel>(~std::uint64_t{ 0 }) };
  TPixel  m_Maximum{ FromOrdinal<TPixel>(0) };
};

/** float and double. A number is m 2^e, its square m^2 2^2e: of float exact in 64 bits, of double in two parts. */
template <typename TPixel>
class VoxelStatistics<TPixel, std::enable_if_t<std::is_floating_point<TPixel>::value>>
{
public:
  template <typename TDigits>
  CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
  Add(TPixel value, TDigits & digits)
  {
    Bits bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    const int     field = static_cast<int>(bits >> (MantissaBits - 1) & Special);
    std::uint64_t mantissa = bits & ((Bits{ 1 } << (MantissaBits - 1)) - 1);
    const bool    isNegative = bits >> (8 * sizeof(Bits) - 1) != 0;
    if (field == Special)
    {
      nans += mantissa != 0 ? 1 : 0;
      positiveInfinities += mantissa == 0 && !isNegative ? 1 : 0;
      negativeInfinities += mantissa == 0 && isNegative ? 1 : 0;
      return;
    }
    ++finite;
    const std::uint64_t ordinal = OrdinalOf(value);
    m_Minimum = ordinal < m_Minimum ? ordinal : m_Minimum;
    m_Maximum = ordinal > m_Maximum ? ordinal : m_Maximum;
    // Subnormal numbers have the exponent of the least normal ones.
    mantissa |= field != 0 ? std::uint64_t{ 1 } << (MantissaBits - 1) : 0;
    const int exponent = (field != 0 ? field - 1 : 0) + LowestExponent;
    if (mantissa == 0)
    {
      return;
    }
    m_Sum.Add(mantissa, exponent + StatisticsSummary::SumBias, isNegative, [&digits](int i, std::int64_t part) {
      digits.AddToSum(i, part);
    });
    const auto addToSquares = [&digits](int i, std::int64_t part) { digits.AddToSquares(i, part); };
    const int  position = 2 * exponent + StatisticsSummary::SquareBias;
    if constexpr (sizeof(TPixel) == 4)
    {
      m_Squares.Add(mantissa * mantissa, position, false, addToSquares);
    }
    else
    {
      const UInt128 square = static_cast<UInt128>(mantissa) * mantissa;
      m_Squares.Add(static_cast<std::uint64_t>(square), position, false, addToSquares);
      m_HighSquares.Add(static_cast<std::uint64_t>(square >> 64), position + 64, false, addToSquares);
    }
  }
  template <typename TDigits>
  CHUNKWISE_HOST_DEVICE void
  End(TDigits & digits)
  {
    const auto addToSquares = [&digits](int first, Int128 value) { digits.AddAllToSquares(first, value); };
    m_Sum.End([&digits](int first, Int128 value) { digits.AddAllToSum(first, value); });
    m_Squares.End(addToSquares);
    if constexpr (sizeof(TPixel) == 8)
    {
      m_HighSquares.End(addToSquares);
    }
  }
  CHUNKWISE_HOST_DEVICE std::uint64_t
                        GetMinimum() const
  {
    return m_Minimum;
  }
  CHUNKWISE_HOST_DEVICE std::uint64_t
                        GetMaximum() const
  {
    return m_Maximum;
  }

  std::int64_t finite{ 0 };
  std::int64_t nans{ 0 };
  std::int64_t positiveInfinities{ 0 };
  std::int64_t negativeInfinities{ 0 };

private:
  using Bits = std::conditional_t<sizeof(TPixel) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int MantissaBits = sizeof(TPixel) == 4 ? 24 : 53;
  /** The exponent field of infinities and NaN. */
  static constexpr Bits Special = sizeof(TPixel) == 4 ? 0xFF : 0x7FF;
  static constexpr int  LowestExponent = sizeof(TPixel) == 4 ? -149 : -1074;

  ExactWindow<MantissaBits>                        m_Sum;
  ExactWindow<sizeof(TPixel) == 4 ? 48 : 64>       m_Squares;
  ExactWindow<sizeof(TPixel) == 4 ? 48 : 106 - 64> m_HighSquares;
  std::uint64_t                                    m_Minimum{ ~std::uint64_t{ 0 } };
  std::uint64_t                                    m_Maximum{ 0 };
};

} // namespace chunkwise

#endif
