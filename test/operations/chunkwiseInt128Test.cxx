/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseInt128.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

// The class of a compiler without integers of 128 bits gives the bits of one that has them.
namespace
{

using Signed = chunkwise::PortableInt128<true>;
using Unsigned = chunkwise::PortableInt128<false>;

// Constant expressions.
static_assert(Signed(-7) / 2 == -3 && Signed(-7) % 2 == -1 && Signed(-7) >> 1 == -4, "rounding");
static_assert(Unsigned(1) << 127 > Unsigned(~std::uint64_t{ 0 }), "both halves are compared");
static_assert(static_cast<double>(Signed(-3)) == -3.0 && static_cast<std::int64_t>(Signed(-3.9)) == -3, "conversions");
static_assert(sizeof(Signed) == 16 && alignof(Signed) == 16 && std::is_trivial<Signed>::value, "like the compiler's");

#if defined(__SIZEOF_INT128__)
__extension__ using Int = __int128;
__extension__ using UInt = unsigned __int128;

std::uint64_t
LowOf(UInt value)
{
  return static_cast<std::uint64_t>(value);
}
std::uint64_t
HighOf(UInt value)
{
  return static_cast<std::uint64_t>(value >> 64);
}
template <bool VSigned>
UInt
ValueOf(chunkwise::PortableInt128<VSigned> value)
{
  return static_cast<UInt>(value.high) << 64 | value.low;
}

/** Numbers of all magnitudes, those beside powers of two, and the ends of the range; as many are negative. */
std::vector<UInt>
MakeNumbers()
{
  std::vector<UInt> numbers{ 0, 1, 2, 3, 5, 10, UInt(1) << 127 };
  for (int bit = 1; bit < 128; bit += bit % 8 == 7 || bit % 32 == 0 ? 1 : 3)
  {
    numbers.insert(numbers.end(), { UInt(1) << bit, (UInt(1) << bit) - 1, (UInt(1) << bit) + 1 });
  }
  std::mt19937_64 random(1);
  for (int bits = 1; bits <= 128; ++bits)
  {
    numbers.push_back((static_cast<UInt>(random()) << 64 | random()) >> (128 - bits));
  }
  for (std::size_t i = numbers.size(); i-- > 0;)
  {
    numbers.push_back(-numbers[i]);
  }
  return numbers;
}

/** Both kinds of number, the compiler's and the class. */
template <typename TOwn, typename TPortable, typename TCheck>
void
ForEachPair(TCheck && check)
{
  const std::vector<UInt> numbers = MakeNumbers();
  for (const UInt a : numbers)
  {
    for (const UInt b : numbers)
    {
      check(static_cast<TOwn>(a), static_cast<TOwn>(b), TPortable(LowOf(a), HighOf(a)), TPortable(LowOf(b), HighOf(b)));
      ASSERT_FALSE(testing::Test::HasFailure())
        << std::hex << HighOf(a) << ':' << LowOf(a) << ' ' << HighOf(b) << ':' << LowOf(b);
    }
  }
}

template <typename TOwn, typename TPortable>
void
CompareArithmetic()
{
  ForEachPair<TOwn, TPortable>([](TOwn a, TOwn b, TPortable x, TPortable y) {
    // The compiler's signed sums must not overflow, so they are made of unsigned ones.
    const auto u = static_cast<UInt>(a);
    const auto v = static_cast<UInt>(b);
    EXPECT_TRUE(ValueOf(x + y) == u + v);
    EXPECT_TRUE(ValueOf(x - y) == u - v);
    EXPECT_TRUE(ValueOf(x * y) == u * v);
    EXPECT_TRUE(ValueOf(-x) == -u);
    EXPECT_TRUE(ValueOf(~x) == ~u);
    EXPECT_TRUE(ValueOf(x & y) == (u & v));
    EXPECT_TRUE(ValueOf(x | y) == (u | v));
    EXPECT_TRUE(ValueOf(x ^ y) == (u ^ v));
    EXPECT_EQ(x == y, a == b);
    EXPECT_EQ(x != y, a != b);
    EXPECT_EQ(x < y, a < b);
    EXPECT_EQ(x > y, a > b);
    EXPECT_EQ(x <= y, a <= b);
    EXPECT_EQ(x >= y, a >= b);
    const bool isLeastByMinusOne = TOwn(-1) < 0 && ~v == 0 && u == UInt(1) << 127;
    if (b != 0 && !isLeastByMinusOne)
    {
      EXPECT_TRUE(ValueOf(x / y) == static_cast<UInt>(a / b));
      EXPECT_TRUE(ValueOf(x % y) == static_cast<UInt>(a % b));
    }
  });
}

template <typename TOwn, typename TPortable, typename T>
void
CompareConversion(UInt number)
{
  const T own = static_cast<T>(static_cast<TOwn>(number));
  const T portable = static_cast<T>(TPortable(LowOf(number), HighOf(number)));
  EXPECT_TRUE(own == portable) << sizeof(T) << " bytes, " << std::hex << HighOf(number) << ':' << LowOf(number);
  if constexpr (std::is_floating_point<T>::value)
  {
    const T limit = std::ldexp(T(1), TOwn(-1) < 0 ? 127 : 128);
    // A number with a fraction too.
    for (const T value : { own, own / 3 })
    {
      if (std::abs(value) < limit && (value >= 0 || TOwn(-1) < 0))
      {
        EXPECT_TRUE(ValueOf(TPortable(value)) == static_cast<UInt>(static_cast<TOwn>(value))) << value;
      }
    }
  }
  else
  {
    EXPECT_TRUE(ValueOf(TPortable(own)) == static_cast<UInt>(static_cast<TOwn>(own)));
  }
}

template <typename TOwn, typename TPortable>
void
CompareUnary()
{
  for (const UInt number : MakeNumbers())
  {
    for (int bits = 0; bits < 128; ++bits)
    {
      const TPortable x(LowOf(number), HighOf(number));
      ASSERT_TRUE(ValueOf(x << bits) == number << bits) << bits;
      ASSERT_TRUE(ValueOf(x >> bits) == static_cast<UInt>(static_cast<TOwn>(number) >> bits)) << bits;
    }
    CompareConversion<TOwn, TPortable, float>(number);
    CompareConversion<TOwn, TPortable, double>(number);
    CompareConversion<TOwn, TPortable, long double>(number);
    CompareConversion<TOwn, TPortable, std::int8_t>(number);
    CompareConversion<TOwn, TPortable, std::uint16_t>(number);
    CompareConversion<TOwn, TPortable, std::int32_t>(number);
    CompareConversion<TOwn, TPortable, std::uint64_t>(number);
    CompareConversion<TOwn, TPortable, std::int64_t>(number);
    CompareConversion<TOwn, TPortable, bool>(number);
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TEST(Int128, ArithmeticIsTheCompilers)
{
  CompareArithmetic<Int, Signed>();
  CompareArithmetic<UInt, Unsigned>();
}

TEST(Int128, ShiftsAndConversionsAreTheCompilers)
{
  CompareUnary<Int, Signed>();
  CompareUnary<UInt, Unsigned>();
}

/** A number halfway between two of TReal, and those beside it. */
template <typename TReal>
void
CompareTies()
{
  std::mt19937_64 random(2);
  constexpr int   digits = std::numeric_limits<TReal>::digits;
  for (int bits = digits + 1; bits <= 128; ++bits)
  {
    for (int i = 0; i < 20; ++i)
    {
      const UInt mantissa = static_cast<UInt>(random() >> (64 - digits) | std::uint64_t{ 1 } << (digits - 1));
      const UInt tie = (mantissa * 2 + 1) << (bits - digits - 1);
      for (const UInt number : { tie, tie - 1, tie + 1 })
      {
        CompareConversion<UInt, Unsigned, TReal>(number);
        CompareConversion<Int, Signed, TReal>(number);
      }
    }
  }
}

TEST(Int128, TiesAreRoundedToEven)
{
  CompareTies<float>();
  CompareTies<double>();
}
#endif

TEST(Int128, ASignedAndAnUnsignedNumberGiveAnUnsignedOne)
{
  EXPECT_TRUE(Signed(-1) + Unsigned(1) == Unsigned(0));
  EXPECT_TRUE((std::is_same<decltype(Signed(-1) + Unsigned(1)), Unsigned>::value));
  EXPECT_TRUE((std::is_same<decltype(1 - Signed(1)), Signed>::value));
}

TEST(Int128, OverflowIsSeen)
{
  using chunkwise::Int128;
  const Int128 largest = chunkwise::LargestInt128;
  const Int128 least = -largest - 1;
  const Int128 two64 = static_cast<Int128>(std::uint64_t{ 1 } << 63) * 2;
  Int128       result = 0;
  EXPECT_FALSE(chunkwise::MultiplyOverflows(two64, two64 / 2 - 1, result));
  EXPECT_TRUE(result == largest - two64 + 1);
  EXPECT_TRUE(chunkwise::MultiplyOverflows(two64, two64 / 2, result));
  EXPECT_FALSE(chunkwise::MultiplyOverflows(-two64, two64 / 2, result));
  EXPECT_TRUE(result == least);
  EXPECT_TRUE(chunkwise::MultiplyOverflows(least, -1, result));
  EXPECT_FALSE(chunkwise::MultiplyOverflows(least, 0, result));
  EXPECT_FALSE(chunkwise::SubtractOverflows(-1, largest, result));
  EXPECT_TRUE(result == least);
  EXPECT_TRUE(chunkwise::SubtractOverflows(-2, largest, result));
  EXPECT_TRUE(chunkwise::SubtractOverflows(0, least, result));
  EXPECT_FALSE(chunkwise::SubtractOverflows(-1, least, result));
  EXPECT_TRUE(result == largest);
}

} // namespace
