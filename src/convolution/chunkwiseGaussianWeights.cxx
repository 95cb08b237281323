/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFilters.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

template <std::size_t N>
double
Horner(const double (&coefficients)[N], double x)
{
  double sum = coefficients[N - 1];
  for (std::size_t i = N - 1; i-- > 0;)
  {
    sum = coefficients[i] + x * sum;
  }
  return sum;
}

/** Modified Bessel functions of orders 0 and 1, Abramowitz and Stegun 9.8.1 to 9.8.4. */
double
BesselI0(double x)
{
  constexpr double near[] = { 1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813 };
  constexpr double far[] = { 0.39894228,  0.01328592, 0.00225319,  -0.00157565, 0.00916281,
                             -0.02057706, 0.02635537, -0.01647633, 0.00392377 };
  const double     t = x / 3.75;
  return x < 3.75 ? Horner(near, t * t) : std::exp(x) / std::sqrt(x) * Horner(far, 3.75 / x);
}

double
BesselI1(double x)
{
  constexpr double near[] = { 0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411 };
  constexpr double far[] = { 0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555,
                             0.02282967, -0.02895312, 0.01787654,  -0.00420059 };
  const double     t = x / 3.75;
  return x < 3.75 ? x * Horner(near, t * t) : Horner(far, 3.75 / x) * (std::exp(x) / std::sqrt(x));
}

/** Order n of at least 2, by recurrence from an order that is treated as 0. */
double
BesselI(int n, double x)
{
  double next = 0.0;
  double current = 1.0;
  double wanted = 0.0;
  for (int order = 2 * (n + static_cast<int>(std::sqrt(40.0 * n))); order > 0; --order)
  {
    const double previous = next + order * (2.0 / x) * current;
    next = current;
    current = previous;
    if (std::abs(current) > 1.0e10)
    {
      wanted *= 1.0e-10;
      current *= 1.0e-10;
      next *= 1.0e-10;
    }
    if (order == n)
    {
      wanted = next;
    }
  }
  return wanted * (BesselI0(x) / current);
}

/** exp(-variance) I_n(variance) for n from 0 to count - 1 where exp overflows: the recurrence from far outside, where
 * the functions are as good as 0, and their sum, which is 1. */
std::vector<double>
ScaledBesselFunctions(double variance, std::size_t count)
{
  const auto          far = count + 16 + static_cast<std::size_t>(16.0 * std::sqrt(variance));
  std::vector<double> values(far + 2, 0.0);
  values[far] = 1e-300;
  double sum = 2.0 * values[far];
  for (std::size_t n = far; n-- > 0;)
  {
    values[n] = values[n + 2] + 2.0 * static_cast<double>(n + 1) / variance * values[n + 1];
    sum += (n > 0 ? 2.0 : 1.0) * values[n];
    if (sum > 1e250)
    {
      for (std::size_t m = n; m <= far; ++m)
      {
        values[m] *= 1e-250;
      }
      sum *= 1e-250;
    }
  }
  values.resize(count);
  for (double & value : values)
  {
    value /= sum;
  }
  return values;
}

} // namespace

std::vector<double>
DiscreteGaussianWeights(double variance, double maximumError, std::int64_t maximumWidth)
{
  // From here on exp(variance) comes close to the end of what a double holds.
  constexpr double    largest = 700.0;
  const bool          scaled = variance > largest;
  const auto          most = static_cast<std::size_t>(std::max<std::int64_t>(maximumWidth, 1)) + 1;
  std::vector<double> half;
  if (scaled)
  {
    // Ten sigmas hold all but 1e-22.
    half = ScaledBesselFunctions(variance, std::min(most, static_cast<std::size_t>(10.0 * std::sqrt(variance))));
    double sum = half[0];
    for (std::size_t n = 1; n < half.size(); ++n)
    {
      sum += 2.0 * half[n];
      if (n > 1 && sum >= 1.0 - maximumError)
      {
        half.resize(n + 1);
        break;
      }
    }
    for (double & weight : half)
    {
      weight /= sum;
    }
  }
  else
  {
    const double decay = std::exp(-variance);
    half = { decay * BesselI0(variance), decay * BesselI1(variance) };
    double sum = half[0] + 2.0 * half[1];
    for (int n = 2; sum < 1.0 - maximumError; ++n)
    {
      half.push_back(decay * BesselI(n, variance));
      sum += 2.0 * half.back();
      if (half.back() <= 0.0 || half.size() >= most)
      {
        break;
      }
    }
    for (double & weight : half)
    {
      weight /= sum;
    }
  }
  std::vector<double> weights(half.rbegin(), half.rend());
  weights.insert(weights.end(), half.begin() + 1, half.end());
  return weights;
}

std::vector<double>
SampledGaussianWeights(double sigma, std::int64_t radius)
{
  std::vector<double> weights(static_cast<std::size_t>(2 * radius + 1));
  // From the tails inwards, smallest first, which keeps the sum accurate.
  double sum = 0.0;
  for (std::int64_t x = radius; x > 0; --x)
  {
    const double z = static_cast<double>(x) / sigma;
    const double weight = std::exp(-0.5 * z * z);
    weights[static_cast<std::size_t>(radius - x)] = weight;
    weights[static_cast<std::size_t>(radius + x)] = weight;
    sum += 2.0 * weight;
  }
  weights[static_cast<std::size_t>(radius)] = 1.0;
  sum += 1.0;
  for (double & weight : weights)
  {
    weight /= sum;
  }
  return weights;
}

} // namespace chunkwise
