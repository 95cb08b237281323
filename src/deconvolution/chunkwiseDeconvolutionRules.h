/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeconvolutionRules_h
#define chunkwiseDeconvolutionRules_h

#include "chunkwiseExactDigits.h"
#include "chunkwiseStatisticsSummary.h"

#include <cmath>
#include <cstring>

// The arithmetic of deconvolution's steps, one source for every backend: single operations of IEEE 754 in the order
// that is written here.
namespace chunkwise
{

/** Adds a double to a sum without rounding; one that is infinite or NaN counts as itself. `add` as of ExactWindow. */
template <typename TAdd>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
AddExactly(ExactWindow<53> & window, double & special, double value, TAdd && add)
{
  std::uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(bits));
  const int     field = static_cast<int>(bits >> 52 & 0x7FF);
  std::uint64_t mantissa = bits & ((std::uint64_t{ 1 } << 52) - 1);
  if (field == 0x7FF)
  {
    special += value;
    return;
  }
  mantissa |= field != 0 ? std::uint64_t{ 1 } << 52 : 0;
  if (mantissa != 0)
  {
    window.Add(mantissa, (field != 0 ? field - 1 : 0) - 1074 + StatisticsSummary::SumBias, (bits >> 63) != 0, add);
  }
}

/** The sum of the terms of a row along x, in one order for every backend: lane l adds those of voxels l, l + 32, ...
 * of the grid, then the upper half of the lanes is added to the lower one until one is left. */
class RowSum
{
public:
  static constexpr int Lanes = 32;

  void
  Add(std::int64_t x, double value)
  {
    m_Lanes[x % Lanes] += value;
    m_IsEmpty = false;
  }
  /** The lanes, for functions that add to them. */
  double *
  GetLanes()
  {
    m_IsEmpty = false;
    return m_Lanes;
  }
  /** The sum so far; the next row begins. */
  double
  Take()
  {
    if (m_IsEmpty)
    {
      return 0;
    }
    m_IsEmpty = true;
    for (int width = Lanes / 2; width > 0; width /= 2)
    {
      for (int lane = 0; lane < width; ++lane)
      {
        m_Lanes[lane] += m_Lanes[lane + width];
      }
    }
    const double sum = m_Lanes[0];
    for (double & lane : m_Lanes)
    {
      lane = 0;
    }
    return sum;
  }

private:
  double m_Lanes[Lanes]{};
  bool   m_IsEmpty{ true };
};

/** a / b, for magnitudes of b and of the quotient from 2^-200 to 2^200, or a = 0: there as the processor's division,
 * but on devices without its branches, so that loops have many of them pending. */
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE double
DeconvolutionQuotient(double a, double b)
{
#ifdef __CUDA_ARCH__
  double inverse = 0;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(inverse) : "d"(b));
  // Newton's steps, and the quotient's remainder: it is rounded once.
  double error = fma(-b, inverse, 1.0);
  inverse = fma(inverse, fma(error, error, error), inverse);
  error = fma(-b, inverse, 1.0);
  inverse = fma(inverse, error, inverse);
  const double quotient = a * inverse;
  return fma(inverse, fma(-b, quotient, a), quotient);
#else
  return a / b;
#endif
}

/** The logarithm of a number above 0, to 1e-13 of its value or of 1: libraries' differ in the last bit. Without
 * branches, so that loops are vectorised. */
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE double
DeconvolutionLog(double x)
{
  constexpr double        least = 2.2250738585072014e-308;
  constexpr double        most = 1.7976931348623157e308;
  constexpr double        lift = 18014398509481984.0;  // 2^54
  constexpr double        number = 4503599627370496.0; // 2^52: its last bits count ones
  constexpr std::uint64_t bitsOfNumber = std::uint64_t{ 0x433 } << 52;
  const double            lifted = x < least ? x * lift : x;
  std::uint64_t           bits = 0;
  memcpy(&bits, &lifted, sizeof(bits));
  const std::uint64_t bitsOfExponent = (bits >> 52 & 0x7FF) | bitsOfNumber;
  const std::uint64_t bitsOfPart = (bits & ((std::uint64_t{ 1 } << 52) - 1)) | std::uint64_t{ 1023 } << 52;
  double              exponent = 0;
  double              part = 0;
  memcpy(&exponent, &bitsOfExponent, sizeof(exponent));
  memcpy(&part, &bitsOfPart, sizeof(part));
  const bool isLarge = part > 1.4142135623730951;
  exponent = (exponent - number) - (x < least ? 1077.0 : 1023.0) + (isLarge ? 1.0 : 0.0);
  part = isLarge ? part * 0.5 : part;
  // 2 atanh(s): the series of s = (part - 1) / (part + 1), at most 0.172.
  const double s = DeconvolutionQuotient(part - 1, part + 1);
  const double square = s * s;
  double       series = 0;
  series = (series + 1.0 / 15) * square;
  series = (series + 1.0 / 13) * square;
  series = (series + 1.0 / 11) * square;
  series = (series + 1.0 / 9) * square;
  series = (series + 1.0 / 7) * square;
  series = (series + 1.0 / 5) * square;
  series = (series + 1.0 / 3) * square;
  const double log = exponent * 0.69314718055994531 + (2 * s + 2 * s * series);
  return x <= most ? log : x;
}

/** The image that corrections are made of: the ratio of Richardson-Lucy, or else the difference. */
template <typename T>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE T
DeconvolutionRatio(bool isRatio, T blurred, T measured, T weight, T background, T least)
{
  const T expected = blurred + background;
  return !(weight > 0)      ? T(0)
         : !isRatio         ? weight * (measured - expected)
         : expected > least ? weight * (measured / expected)
                            : T(0);
}

/** 1 / b and the logarithm of a / b, for a >= 0 and b > 0 that are floats; of a = 0 it is some number. One division,
 * and the error of the logarithm is that of DeconvolutionLog. */
struct DeconvolutionShare
{
  double inverse;
  double log;

  CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE
  DeconvolutionShare(double a, double b)
  {
    constexpr double        number = 4503599627370496.0; // 2^52: its last bits count ones
    constexpr std::uint64_t bitsOfNumber = std::uint64_t{ 0x433 } << 52;
    constexpr std::uint64_t mantissa = (std::uint64_t{ 1 } << 52) - 1;
    constexpr std::uint64_t one = std::uint64_t{ 1023 } << 52;
    constexpr double        root = 1.4142135623730951;
    std::uint64_t           bitsA = 0;
    std::uint64_t           bitsB = 0;
    memcpy(&bitsA, &a, sizeof(bitsA));
    memcpy(&bitsB, &b, sizeof(bitsB));
    const std::uint64_t exponentA = bitsA >> 52 & 0x7FF;
    const std::uint64_t exponentB = bitsB >> 52 & 0x7FF;
    const std::uint64_t bitsOfPartA = (bitsA & mantissa) | one;
    const std::uint64_t bitsOfPartB = (bitsB & mantissa) | one;
    const std::uint64_t bitsOfPower = (2046 - exponentB) << 52;
    const std::uint64_t bitsOfExponent = (exponentA + 2048 - exponentB) | bitsOfNumber;
    double              partA = 0;
    double              partB = 0;
    double              power = 0;
    double              exponent = 0;
    memcpy(&partA, &bitsOfPartA, sizeof(partA));
    memcpy(&partB, &bitsOfPartB, sizeof(partB));
    memcpy(&power, &bitsOfPower, sizeof(power));
    memcpy(&exponent, &bitsOfExponent, sizeof(exponent));
    // Their quotient is brought to [1 / root, root].
    const bool isLarge = partA > root * partB;
    const bool isSmall = root * partA < partB;
    exponent = (exponent - (number + 2048)) + (isLarge ? 1.0 : isSmall ? -1.0 : 0.0);
    partA = partA * (isLarge ? 0.5 : isSmall ? 2.0 : 1.0);
    const double sum = partA + partB;
    const double both = DeconvolutionQuotient(1, sum * partB);
    inverse = both * sum * power;
    // 2 atanh(s), s at most 0.172: a polynomial that is off by 1e-15.
    const double s = (partA - partB) * (both * partB);
    const double square = s * s;
    double       series = 0.08310980720740418 * square;
    series = (series + 0.09070091317822947) * square;
    series = (series + 0.11111431299620796) * square;
    series = (series + 0.1428571206718815) * square;
    series = (series + 0.20000000005611174) * square;
    series = (series + 0.3333333333333104) * square;
    log = exponent * 0.69314718055994531 + (2 * s + 2 * s * series);
  }
};

/** The terms of the sums over the measured voxels, of weight above 0. */
struct DeconvolutionMisfit
{
  double divergence{ 0 };
  double misfit{ 0 };

  template <typename T>
  CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE
  DeconvolutionMisfit(bool isRatio, T blurred, T measured, T weight, T background)
  {
    const T      expected = blurred + background;
    const T      difference = measured - expected;
    const double e = expected;
    const double square = static_cast<double>(difference) * difference;
    const double positive = measured > 0 ? measured : 0;
    double       share = 0;
    double       log = 0;
    if constexpr (sizeof(T) == 4)
    {
      constexpr double         most = 3.4028234663852886e38;
      const DeconvolutionShare of(positive, e);
      share = e <= most ? of.inverse : 0.0;
      log = of.log;
    }
    else
    {
      share = 1 / e;
      log = DeconvolutionLog(positive * share);
    }
    const double entropy = positive > 0 ? positive * log : 0;
    const double ofRatio = weight * (entropy - positive + e);
    const double ofMisfit = weight * (square * share);
    divergence = !isRatio ? weight * square : e > 0 ? ofRatio : 0.0;
    misfit = !isRatio ? weight * square : e > 0 ? ofMisfit : 0.0;
  }
};

/** The next estimate of Richardson-Lucy where light is seen. */
template <typename T>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE T
RichardsonLucyUpdate(T before, T correction, T divisor)
{
  const T after = divisor > 0 ? before * (correction / divisor) : before;
  return after > 0 ? after : T(0);
}

template <typename T>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE T
LandweberUpdate(bool isProjected, T before, T correction, T relaxation)
{
  const T after = before + relaxation * correction;
  return isProjected && !(after > 0) ? T(0) : after;
}

template <typename T>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE T
DeconvolutionPoint(bool mayBeNegative, T estimate, T last, T acceleration)
{
  const T point = estimate + acceleration * (estimate - last);
  return point > 0 || mayBeNegative ? point : T(0);
}

} // namespace chunkwise

#endif
