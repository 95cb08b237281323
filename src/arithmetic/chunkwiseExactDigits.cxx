/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseExactDigits.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace chunkwise
{

namespace
{

/** An integer that is not negative: digits of 32 bits, the lowest first. */
using Natural = std::vector<std::uint32_t>;

constexpr int MantissaBits = 53;
/** The lowest bit of a double counts 2^LowestExponent. */
constexpr int LowestExponent = -1074;

/** The absolute value; `isNegative` says whether that has changed the sign. */
Natural
MagnitudeOf(const std::int64_t * digits, int count, bool & isNegative)
{
  std::vector<std::int64_t> own(digits, digits + count);
  // Carries make the last digit the sign's.
  Carry(own.data(), count);
  isNegative = own.back() < 0;
  if (isNegative)
  {
    std::transform(own.begin(), own.end(), own.begin(), [](std::int64_t digit) { return -digit; });
    Carry(own.data(), count);
  }
  Natural natural;
  for (const std::int64_t digit : own)
  {
    natural.push_back(static_cast<std::uint32_t>(digit));
  }
  natural.push_back(static_cast<std::uint32_t>(own.back() >> DigitBits));
  return natural;
}

Natural
Multiply(const Natural & a, const Natural & b)
{
  Natural product(a.size() + b.size(), 0);
  for (std::size_t i = 0; i < a.size(); ++i)
  {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < b.size(); ++j)
    {
      carry += std::uint64_t{ a[i] } * b[j] + product[i + j];
      product[i + j] = static_cast<std::uint32_t>(carry);
      carry >>= DigitBits;
    }
    product[i + b.size()] = static_cast<std::uint32_t>(carry);
  }
  return product;
}

/** a - b, which is not negative. */
Natural
Subtract(Natural a, const Natural & b)
{
  std::int64_t borrow = 0;
  a.resize(std::max(a.size(), b.size()), 0);
  for (std::size_t i = 0; i < a.size(); ++i)
  {
    borrow += std::int64_t{ a[i] } - (i < b.size() ? std::int64_t{ b[i] } : 0);
    a[i] = static_cast<std::uint32_t>(borrow);
    borrow >>= DigitBits;
  }
  return a;
}

/** Divides in place; whether there is a remainder. */
bool
Divide(Natural & a, std::uint64_t divisor)
{
  UInt128 rest = 0;
  for (std::size_t i = a.size(); i-- > 0;)
  {
    rest = (rest << DigitBits) | a[i];
    a[i] = static_cast<std::uint32_t>(rest / divisor);
    rest %= divisor;
  }
  return rest != 0;
}

bool
Bit(const Natural & a, int i)
{
  return (a[static_cast<std::size_t>(i / DigitBits)] >> (i % DigitBits) & 1) != 0;
}

/** The number of the highest bit that is set; -1 of 0. */
int
HighestBit(const Natural & a)
{
  int i = static_cast<int>(a.size()) * DigitBits - 1;
  while (i >= 0 && !Bit(a, i))
  {
    --i;
  }
  return i;
}

/** magnitude 2^exponent, and a little more if `isMore`, rounded to nearest, ties to even; subnormal numbers too. */
double
Round(const Natural & magnitude, int exponent, bool isMore)
{
  const int highest = HighestBit(magnitude);
  // The lowest bit that the result has.
  const int     lowest = std::max(highest + exponent - (MantissaBits - 1), LowestExponent) - exponent;
  std::uint64_t head = 0;
  for (int i = highest; i >= std::max(lowest, 0); --i)
  {
    head = head << 1 | (Bit(magnitude, i) ? 1u : 0u);
  }
  if (lowest <= 0)
  {
    return std::ldexp(static_cast<double>(head), exponent);
  }
  for (int i = std::min(lowest - 2, highest); i >= 0 && !isMore; --i)
  {
    isMore = Bit(magnitude, i);
  }
  if (lowest - 1 <= highest && Bit(magnitude, lowest - 1) && (isMore || head % 2 != 0))
  {
    ++head;
  }
  return std::ldexp(static_cast<double>(head), lowest + exponent);
}

} // namespace

double
RoundDigits(const std::int64_t * digits, int count, int bias)
{
  bool          isNegative = false;
  const Natural magnitude = MagnitudeOf(digits, count, isNegative);
  const double  rounded = Round(magnitude, -bias, false);
  return isNegative ? -rounded : rounded;
}

double
RoundVariance(const std::int64_t * sum, int sumCount, const std::int64_t * squares, int squareCount, int sumBias,
              std::int64_t n)
{
  bool          isNegative = false;
  const Natural s = MagnitudeOf(sum, sumCount, isNegative);
  const Natural q = MagnitudeOf(squares, squareCount, isNegative);
  const auto    count = static_cast<std::uint64_t>(n);
  const Natural numerator = Subtract(
    Multiply(q, { static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(count >> DigitBits) }), Multiply(s, s));
  if (HighestBit(numerator) < 0)
  {
    return 0;
  }
  // More bits below: the quotient by up to 2^126 then has at least 66.
  constexpr int more = 6;
  Natural       quotient(more, 0);
  quotient.insert(quotient.end(), numerator.begin(), numerator.end());
  const bool first = Divide(quotient, count);
  const bool second = Divide(quotient, count);
  return Round(quotient, -2 * sumBias - more * DigitBits, first || second);
}

} // namespace chunkwise
