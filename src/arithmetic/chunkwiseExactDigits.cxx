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
  Natural natural;
  natural.reserve(static_cast<std::size_t>(count) + 1);
  std::int64_t carry = 0;
  for (int i = 0; i < count; ++i)
  {
    carry += digits[i];
    natural.push_back(static_cast<std::uint32_t>(carry));
    carry >>= DigitBits;
  }
  natural.push_back(static_cast<std::uint32_t>(carry));
  isNegative = carry < 0;
  std::uint64_t one = 1;
  for (std::size_t i = 0; isNegative && i < natural.size(); ++i)
  {
    one += static_cast<std::uint32_t>(~natural[i]);
    natural[i] = static_cast<std::uint32_t>(one);
    one >>= DigitBits;
  }
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
  const auto divide = [&](auto rest) {
    for (std::size_t i = a.size(); i-- > 0;)
    {
      rest = (rest << DigitBits) | a[i];
      a[i] = static_cast<std::uint32_t>(rest / divisor);
      rest %= divisor;
    }
    return rest != 0;
  };
  // Divisions of 128 bits take several times as long.
  return divisor >> DigitBits == 0 ? divide(std::uint64_t{ 0 }) : divide(UInt128{ 0 });
}

/** 64 bits from the bit `begin` on. */
std::uint64_t
BitsFrom(const Natural & a, int begin)
{
  UInt128 bits = 0;
  for (std::size_t i = 3; i-- > 0;)
  {
    const std::size_t word = static_cast<std::size_t>(begin / DigitBits) + i;
    bits = bits << DigitBits | (word < a.size() ? a[word] : 0);
  }
  return static_cast<std::uint64_t>(bits >> (begin % DigitBits));
}

/** Whether one of the bits below `end` is set. */
bool
AnyBelow(const Natural & a, int end)
{
  for (int i = 0; i < end; i += DigitBits)
  {
    const std::uint32_t word =
      i / DigitBits < static_cast<int>(a.size()) ? a[static_cast<std::size_t>(i / DigitBits)] : 0;
    const int rest = end - i;
    if ((rest >= DigitBits ? word : word & ((1u << rest) - 1)) != 0)
    {
      return true;
    }
  }
  return false;
}

/** The number of the highest bit that is set; -1 of 0. */
int
HighestBit(const Natural & a)
{
  std::size_t size = a.size();
  while (size > 0 && a[size - 1] == 0)
  {
    --size;
  }
  return size == 0 ? -1 : static_cast<int>(size) * DigitBits - 1 - __builtin_clz(a[size - 1]);
}

/** magnitude 2^exponent, and a little more if `isMore`, rounded to nearest, ties to even; subnormal numbers too. */
double
Round(const Natural & magnitude, int exponent, bool isMore)
{
  const int highest = HighestBit(magnitude);
  // The lowest bit that the result has.
  const int     lowest = std::max(highest + exponent - (MantissaBits - 1), LowestExponent) - exponent;
  const int     begin = std::max(lowest, 0);
  std::uint64_t head = highest < begin ? 0 : BitsFrom(magnitude, begin);
  if (lowest <= 0)
  {
    return std::ldexp(static_cast<double>(head), exponent);
  }
  isMore = isMore || AnyBelow(magnitude, lowest - 1);
  if ((BitsFrom(magnitude, lowest - 1) & 1) != 0 && (isMore || head % 2 != 0))
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
