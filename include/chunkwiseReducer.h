/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseReducer_h
#define chunkwiseReducer_h

#include "chunkwiseTypes.h"

namespace chunkwise
{

/** The quotient of integers rounded to nearest, ties to even. count > 0. */
template <typename TInteger>
CHUNKWISE_HOST_DEVICE TInteger
DivideRoundHalfEven(TInteger sum, std::int64_t count)
{
  const auto divisor = static_cast<TInteger>(count);
  TInteger   quotient = sum / divisor;
  TInteger   remainder = sum % divisor;
  if (remainder < 0)
  {
    remainder += divisor;
    --quotient;
  }
  const TInteger rest = divisor - remainder;
  if (remainder > rest || (remainder == rest && quotient % 2 != 0))
  {
    ++quotient;
  }
  return quotient;
}

/** The nearest value that TOutput has. */
template <typename TOutput, typename TInteger>
CHUNKWISE_HOST_DEVICE TOutput
ClampInteger(TInteger value)
{
  if constexpr (sizeof(TInteger) > sizeof(TOutput))
  {
    constexpr bool isSigned = static_cast<TOutput>(-1) < static_cast<TOutput>(0);
    constexpr auto largest = static_cast<TInteger>(
      static_cast<TOutput>(~static_cast<std::uint64_t>(0) >> (64 - 8 * sizeof(TOutput) + (isSigned ? 1 : 0))));
    constexpr TInteger lowest = isSigned ? -largest - 1 : 0;
    value = value < lowest ? lowest : value > largest ? largest : value;
  }
  return static_cast<TOutput>(value);
}

/** Converts a sum and its number of taps to the mean, by the rules of MeanOperation; `truncates` is that of an integer.
 */
template <typename TOutput, typename TAccumulator, typename TCount>
CHUNKWISE_HOST_DEVICE TOutput
MeanOf(TAccumulator sum, TCount count, bool truncates = false)
{
  constexpr bool fromFloat = static_cast<TAccumulator>(0.5) != static_cast<TAccumulator>(0);
  constexpr bool toFloat = static_cast<TOutput>(0.5) != static_cast<TOutput>(0);
  if constexpr (fromFloat)
  {
    return static_cast<TOutput>(sum / static_cast<TAccumulator>(count));
  }
  else if constexpr (toFloat)
  {
    return static_cast<TOutput>(static_cast<double>(sum) / static_cast<double>(count));
  }
  else
  {
    return ClampInteger<TOutput>(truncates ? sum / static_cast<TAccumulator>(count) : DivideRoundHalfEven(sum, count));
  }
}

/** Rounds to nearest, ties to even, clamped to the range of TOutput; NaN gives the lowest value. */
template <typename TOutput, typename TReal>
CHUNKWISE_HOST_DEVICE TOutput
RoundAndClamp(TReal value)
{
  constexpr bool    isSigned = static_cast<TOutput>(-1) < static_cast<TOutput>(0);
  constexpr int     bits = static_cast<int>(8 * sizeof(TOutput));
  constexpr TOutput lowest =
    isSigned ? static_cast<TOutput>(static_cast<std::uint64_t>(1) << (bits - 1)) : static_cast<TOutput>(0);
  constexpr TOutput largest = static_cast<TOutput>(~lowest);
  if (!(value > static_cast<TReal>(lowest)))
  {
    return lowest;
  }
  if (value >= static_cast<TReal>(largest))
  {
    return largest;
  }
  if constexpr (sizeof(TReal) == 4)
  {
    return static_cast<TOutput>(__builtin_rintf(value));
  }
  else
  {
    return static_cast<TOutput>(__builtin_rint(value));
  }
}

} // namespace chunkwise

#endif
