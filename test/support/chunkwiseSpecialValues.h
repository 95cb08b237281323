/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSpecialValues_h
#define chunkwiseSpecialValues_h

#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace chunkwise
{

/** Numbers before NaN, -0 before +0. */
template <typename T>
bool
IsLess(T a, T b)
{
  if constexpr (std::is_floating_point<T>::value)
  {
    if (a == 0 && b == 0)
    {
      return std::signbit(a) && !std::signbit(b);
    }
  }
  return a < b;
}

/** Zeros of both signs, infinities and NaN among the numbers. */
template <typename T>
void
AddSpecials(std::mt19937 & random, std::vector<T> & pixels)
{
  const T specials[] = { T(0),
                         -T(0),
                         std::numeric_limits<T>::infinity(),
                         -std::numeric_limits<T>::infinity(),
                         std::numeric_limits<T>::quiet_NaN(),
                         std::numeric_limits<T>::denorm_min(),
                         std::numeric_limits<T>::lowest() };
  for (T & pixel : pixels)
  {
    if (random() % 3)
    {
      pixel = specials[random() % (sizeof(specials) / sizeof(specials[0]))];
    }
  }
}

/** NaN and infinities so far apart that most windows have one or none. */
template <typename T>
void
AddFewSpecials(std::mt19937 & random, std::vector<T> & pixels)
{
  if constexpr (std::is_floating_point<T>::value)
  {
    const T specials[] = { std::numeric_limits<T>::quiet_NaN(),
                           std::numeric_limits<T>::infinity(),
                           -std::numeric_limits<T>::infinity() };
    for (T & pixel : pixels)
    {
      pixel = random() % 50 ? pixel : specials[random() % 3];
    }
  }
}

/** Whether a result is what it must be: NaN, that infinity, or a number near. */
inline bool
IsNear(long double result, long double expected, long double bound)
{
  return std::isnan(expected)   ? std::isnan(result)
         : std::isinf(expected) ? result == expected
                                : std::fabs(result - expected) <= bound;
}

} // namespace chunkwise

#endif
