/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseInt128_h
#define chunkwiseInt128_h

#include "chunkwiseTypes.h"

#include <cstdint>
#include <limits>
#include <type_traits>

// Integers of 128 bits for exact sums and products. Int128 and UInt128 are the compiler's own. A compiler that has none
// takes the class below, which gives the same bits, as does one with CHUNKWISE_PORTABLE_INT128 defined.
namespace chunkwise
{

/** An integer of 128 bits in two's complement, made of two of 64. Arithmetic is modulo 2^128. Shifts are by 0 to 127
 * bits; a negative number is shifted right with its sign. */
template <bool VSigned>
struct alignas(16) PortableInt128
{
  using Unsigned = PortableInt128<false>;

  std::uint64_t low;
  std::uint64_t high;

  PortableInt128() = default;
  constexpr CHUNKWISE_HOST_DEVICE
  PortableInt128(std::uint64_t theLow, std::uint64_t theHigh)
    : low(theLow)
    , high(theHigh)
  {}
  template <typename T, std::enable_if_t<std::is_integral<T>::value, int> = 0>
  constexpr CHUNKWISE_HOST_DEVICE
  PortableInt128(T value)
    : low(static_cast<std::uint64_t>(value))
    , high(std::is_signed<T>::value && value < T(0) ? ~std::uint64_t{ 0 } : 0)
  {}
  /** Rounds towards zero. The result fits. */
  template <typename T, std::enable_if_t<std::is_floating_point<T>::value, int> = 0>
  explicit constexpr CHUNKWISE_HOST_DEVICE
  PortableInt128(T value)
    : low(0)
    , high(0)
  {
    const T magnitude = value < 0 ? -value : value;
    high = static_cast<std::uint64_t>(magnitude / Two64<T>);
    low = static_cast<std::uint64_t>(magnitude - static_cast<T>(high) * Two64<T>);
    *this = value < 0 ? -*this : *this;
  }
  /** In a sum of both kinds the signed number becomes an unsigned one. */
  template <bool VOther, std::enable_if_t<VOther && !VSigned, int> = 0>
  constexpr CHUNKWISE_HOST_DEVICE
  PortableInt128(PortableInt128<VOther> value)
    : low(value.low)
    , high(value.high)
  {}
  template <bool VOther, std::enable_if_t<!VOther && VSigned, char> = 0>
  explicit constexpr CHUNKWISE_HOST_DEVICE
  PortableInt128(PortableInt128<VOther> value)
    : low(value.low)
    , high(value.high)
  {}

  explicit constexpr CHUNKWISE_HOST_DEVICE
  operator bool() const
  {
    return (low | high) != 0;
  }
  template <typename T, std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value, int> = 0>
  explicit constexpr CHUNKWISE_HOST_DEVICE
  operator T() const
  {
    return static_cast<T>(low);
  }
  /** Rounds once, to nearest, ties to even. */
  template <typename T, std::enable_if_t<std::is_floating_point<T>::value, int> = 0>
  explicit constexpr CHUNKWISE_HOST_DEVICE
  operator T() const
  {
    if (this->IsNegative())
    {
      return -static_cast<T>(this->GetMagnitude());
    }
    if (high == 0)
    {
      return static_cast<T>(low);
    }
    if constexpr (std::numeric_limits<T>::digits >= 64)
    {
      return static_cast<T>(high) * Two64<T> + static_cast<T>(low);
    }
    // The number is shifted until its upper half is 0. The last bit says whether there was one below.
    int shift = 1;
    while (shift < 64 && high >> shift != 0)
    {
      ++shift;
    }
    const Unsigned      whole(low, high);
    const std::uint64_t lost = (whole << (128 - shift)) ? 1 : 0;
    return static_cast<T>((whole >> shift).low | lost) * (static_cast<T>(std::uint64_t{ 1 } << (shift - 1)) * 2);
  }

  constexpr CHUNKWISE_HOST_DEVICE bool
  IsNegative() const
  {
    return VSigned && high >> 63 != 0;
  }
  constexpr CHUNKWISE_HOST_DEVICE Unsigned
  GetMagnitude() const
  {
    return this->IsNegative() ? Unsigned(-*this) : Unsigned(low, high);
  }

  friend constexpr CHUNKWISE_HOST_DEVICE PortableInt128
  operator~(PortableInt128 a)
  {
    return { ~a.low, ~a.high };
  }
  friend constexpr CHUNKWISE_HOST_DEVICE PortableInt128
  operator-(PortableInt128 a)
  {
    return ~a + 1;
  }
  friend constexpr CHUNKWISE_HOST_DEVICE PortableInt128
  operator+(PortableInt128 a, PortableInt128 b)
  {
    const std::uint64_t low = a.low + b.low;
    return { low, a.high + b.high + (low < a.low ? 1 : 0) };
  }
  friend constexpr CHUNKWISE_HOST_DEVICE PortableInt128
  operator-(PortableInt128 a, PortableInt128 b)
  {
    return { a.low - b.low, a.high - b.high - (a.low < b.low ? 1 : 0) };
  }
  friend constexpr CHUNKWISE_HOST_DEVICE PortableInt128
  operator*(PortableInt128 a, PortableInt128 b)
  {
    // The whole product of the lower halves, from products of 32 bits; of the others what stays.
    constexpr std::uint64_t half = 0xFFFFFFFF;
    const std::uint64_t     lowest = (a.low & half) * (b.low & half);
    const std::uint64_t     first = (a.low >> 32) * (b.low & half) + (lowest >> 32);
    const std::uint64_t     second = (a.low & half) * (b.low >> 32) + (first & half);
    return { a.low * b.low,
             (a.low >> 32) * (b.low >> 32) + (first >> 32) + (second >> 32) + a.low * b.high + a.high * b.low };
  }
  friend constexpr CHUNKWISE_HOST_DEVICE PortableInt128
  operator/(PortableInt128 a, PortableInt128 b)
  {
    Unsigned       quotient(0);
    const Unsigned rest = Divide(a.GetMagnitude(), b.GetMagnitude(), quotient);
    (void)rest;
    const PortableInt128 result(quotient.low, quotient.high);
    return a.IsNegative() != b.IsNegative() ? -result : result;
  }
  friend constexpr CHUNKWISE_HOST_DEVICE PortableInt128
  operator%(PortableInt128 a, PortableInt128 b)
  {
    Unsigned             quotient(0);
    const Unsigned       rest = Divide(a.GetMagnitude(), b.GetMagnitude(), quotient);
    const PortableInt128 result(rest.low, rest.high);
    return a.IsNegative() ? -result : result;
  }
  friend constexpr CHUNKWISE_HOST_DEVICE PortableInt128
  operator&(PortableInt128 a, PortableInt128 b)
  {
    return { a.low & b.low, a.high & b.high };
  }
  friend constexpr CHUNKWISE_HOST_DEVICE PortableInt128
  operator|(PortableInt128 a, PortableInt128 b)
  {
    return { a.low | b.low, a.high | b.high };
  }
  friend constexpr CHUNKWISE_HOST_DEVICE PortableInt128
  operator^(PortableInt128 a, PortableInt128 b)
  {
    return { a.low ^ b.low, a.high ^ b.high };
  }
  friend constexpr CHUNKWISE_HOST_DEVICE PortableInt128
  operator<<(PortableInt128 a, int bits)
  {
    return bits == 0   ? a
           : bits < 64 ? PortableInt128(a.low << bits, a.high << bits | a.low >> (64 - bits))
                       : PortableInt128(0, a.low << (bits - 64));
  }
  friend constexpr CHUNKWISE_HOST_DEVICE PortableInt128
  operator>>(PortableInt128 a, int bits)
  {
    const std::uint64_t sign = a.IsNegative() ? ~std::uint64_t{ 0 } : 0;
    return bits == 0   ? a
           : bits < 64 ? PortableInt128(a.low >> bits | a.high << (64 - bits), a.high >> bits | sign << (64 - bits))
           : bits > 64 ? PortableInt128(a.high >> (bits - 64) | sign << (128 - bits), sign)
                       : PortableInt128(a.high, sign);
  }

  friend constexpr CHUNKWISE_HOST_DEVICE bool
  operator==(PortableInt128 a, PortableInt128 b)
  {
    return a.low == b.low && a.high == b.high;
  }
  friend constexpr CHUNKWISE_HOST_DEVICE bool
  operator<(PortableInt128 a, PortableInt128 b)
  {
    return a.IsNegative() != b.IsNegative() ? a.IsNegative() : a.high != b.high ? a.high < b.high : a.low < b.low;
  }
  friend constexpr CHUNKWISE_HOST_DEVICE bool
  operator!=(PortableInt128 a, PortableInt128 b)
  {
    return !(a == b);
  }
  friend constexpr CHUNKWISE_HOST_DEVICE bool
  operator>(PortableInt128 a, PortableInt128 b)
  {
    return b < a;
  }
  friend constexpr CHUNKWISE_HOST_DEVICE bool
  operator<=(PortableInt128 a, PortableInt128 b)
  {
    return !(b < a);
  }
  friend constexpr CHUNKWISE_HOST_DEVICE bool
  operator>=(PortableInt128 a, PortableInt128 b)
  {
    return !(a < b);
  }

  constexpr CHUNKWISE_HOST_DEVICE PortableInt128 &
  operator+=(PortableInt128 b)
  {
    return *this = *this + b;
  }
  constexpr CHUNKWISE_HOST_DEVICE PortableInt128 &
  operator-=(PortableInt128 b)
  {
    return *this = *this - b;
  }
  constexpr CHUNKWISE_HOST_DEVICE PortableInt128 &
  operator*=(PortableInt128 b)
  {
    return *this = *this * b;
  }
  constexpr CHUNKWISE_HOST_DEVICE PortableInt128 &
  operator/=(PortableInt128 b)
  {
    return *this = *this / b;
  }
  constexpr CHUNKWISE_HOST_DEVICE PortableInt128 &
  operator%=(PortableInt128 b)
  {
    return *this = *this % b;
  }
  constexpr CHUNKWISE_HOST_DEVICE PortableInt128 &
  operator&=(PortableInt128 b)
  {
    return *this = *this & b;
  }
  constexpr CHUNKWISE_HOST_DEVICE PortableInt128 &
  operator|=(PortableInt128 b)
  {
    return *this = *this | b;
  }
  constexpr CHUNKWISE_HOST_DEVICE PortableInt128 &
  operator^=(PortableInt128 b)
  {
    return *this = *this ^ b;
  }
  constexpr CHUNKWISE_HOST_DEVICE PortableInt128 &
  operator<<=(int b)
  {
    return *this = *this << b;
  }
  constexpr CHUNKWISE_HOST_DEVICE PortableInt128 &
  operator>>=(int b)
  {
    return *this = *this >> b;
  }
  constexpr CHUNKWISE_HOST_DEVICE PortableInt128 &
  operator++()
  {
    return *this += 1;
  }
  constexpr CHUNKWISE_HOST_DEVICE PortableInt128 &
  operator--()
  {
    return *this -= 1;
  }

private:
  template <typename T>
  static constexpr T Two64 = static_cast<T>(std::uint64_t{ 1 } << 63) * 2;

  /** Returns the remainder. The divisor is not 0. */
  static constexpr CHUNKWISE_HOST_DEVICE Unsigned
  Divide(Unsigned number, Unsigned divisor, Unsigned & quotient)
  {
    if ((number.high | divisor.high) == 0)
    {
      quotient = number.low / divisor.low;
      return number.low % divisor.low;
    }
    // The upper half at once, the lower bit by bit. The rest has 127 bits at most before the last shift.
    Unsigned rest(number.high);
    if (divisor.high == 0)
    {
      quotient.high = number.high / divisor.low;
      rest.low = number.high % divisor.low;
    }
    for (int i = 63; i >= 0; --i)
    {
      rest = rest << 1 | (number.low >> i & 1);
      if (rest >= divisor)
      {
        rest -= divisor;
        quotient.low |= std::uint64_t{ 1 } << i;
      }
    }
    return rest;
  }
};

#if defined(__SIZEOF_INT128__) && !defined(CHUNKWISE_PORTABLE_INT128)
#  define CHUNKWISE_HAS_INT128
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;
#else
using Int128 = PortableInt128<true>;
using UInt128 = PortableInt128<false>;
#endif

constexpr Int128 LargestInt128 = static_cast<Int128>(~UInt128(0) >> 1);

/** Whether a product does not fit; else `result` is it. */
constexpr bool
MultiplyOverflows(Int128 a, Int128 b, Int128 & result)
{
#if defined(CHUNKWISE_HAS_INT128)
  return __builtin_mul_overflow(a, b, &result);
#else
  result = a * b;
  const UInt128 largest = static_cast<UInt128>(LargestInt128) + (a.IsNegative() != b.IsNegative() ? 1 : 0);
  return b != 0 && a.GetMagnitude() > largest / b.GetMagnitude();
#endif
}
/** Whether a difference does not fit; else `result` is it. */
constexpr bool
SubtractOverflows(Int128 a, Int128 b, Int128 & result)
{
#if defined(CHUNKWISE_HAS_INT128)
  return __builtin_sub_overflow(a, b, &result);
#else
  result = a - b;
  return a.IsNegative() != b.IsNegative() && a.IsNegative() != result.IsNegative();
#endif
}

} // namespace chunkwise

#endif
