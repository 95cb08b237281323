/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseExactDigits_h
#define chunkwiseExactDigits_h

#include "chunkwiseInt128.h"

// Sums without rounding, one source for every backend. A number is an integer times a power of two, so a sum of numbers
// is an integer of some thousand bits. It is kept as digits: number i counts 2^(32 i). A digit has 64 bits, so that
// 2^30 parts of 32 bits can be added to it before carries are passed on; then digits are from 0 to 2^32 - 1 and the
// last one has the sign. So equal sums have equal digits, in whatever order and parts they were added up.
namespace chunkwise
{

constexpr int DigitBits = 32;

/** Passes the carries on. */
CHUNKWISE_HOST_DEVICE inline void
Carry(std::int64_t * digits, int count)
{
  for (int i = 0; i + 1 < count; ++i)
  {
    digits[i + 1] += digits[i] >> DigitBits;
    digits[i] &= 0xFFFFFFFF;
  }
}

/** Calls add(i, part) with the parts of `value` times 2^(32 first). */
template <typename TAdd>
CHUNKWISE_HOST_DEVICE void
AddParts(int first, Int128 value, TAdd && add)
{
  for (int i = 0; i < 3; ++i)
  {
    add(first + i, static_cast<std::int64_t>(value & 0xFFFFFFFF));
    value >>= DigitBits;
  }
  add(first + 3, static_cast<std::int64_t>(value));
}

/** Adds up m 2^position, |m| < 2^VBits, of up to 2^31 numbers. As long as positions stay near each other this takes an
 * addition of 128 bits; else what was summed so far goes to the digits and the window moves. */
template <int VBits>
class ExactWindow
{
public:
  template <typename TAdd>
  CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
  Add(std::uint64_t mantissa, int position, bool isNegative, TAdd && add)
  {
    if (static_cast<unsigned int>(position - m_Begin) > static_cast<unsigned int>(Reach))
    {
      if (m_Sum != 0)
      {
        AddParts(m_Begin / DigitBits, m_Sum, add);
        m_Sum = 0;
      }
      m_Begin = position < Middle ? 0 : (position - Middle) / DigitBits * DigitBits;
    }
    const Int128 term = static_cast<Int128>(static_cast<UInt128>(mantissa) << (position - m_Begin));
    m_Sum += isNegative ? -term : term;
  }
  /** Calls addParts(first, sum) with what is left, zero or not. */
  template <typename TAddParts>
  CHUNKWISE_HOST_DEVICE void
  End(TAddParts && addParts)
  {
    addParts(m_Begin < 0 ? 0 : m_Begin / DigitBits, m_Sum);
    m_Sum = 0;
  }

private:
  /** The farthest position from the window's begin: 2^31 terms of it stay below 2^127. */
  static constexpr int Reach = 127 - 31 - VBits;
  static_assert(Reach >= DigitBits - 1, "a window begins at a digit");
  /** The position of the first number of a window, so that smaller and larger ones have room. */
  static constexpr int Middle = (Reach - (DigitBits - 1)) / 2;

  Int128 m_Sum{ 0 };
  /** A multiple of DigitBits; so far away at first that no number is in the window. */
  int m_Begin{ -(1 << 20) };
};

/** The sum of digits[i] 2^(32 i - bias), rounded to nearest, ties to even. Carries have been passed on. */
double
RoundDigits(const std::int64_t * digits, int count, int bias);

/** (n Q - S^2) / n^2, the mean square deviation from the mean of n numbers, from the digits of their sum S and of the
 * sum Q of their squares, whose bias is twice that of S. Rounded once: the numerator is exact and divided as an
 * integer. */
double
RoundVariance(const std::int64_t * sum, int sumCount, const std::int64_t * squares, int squareCount, int sumBias,
              std::int64_t n);

} // namespace chunkwise

#endif
