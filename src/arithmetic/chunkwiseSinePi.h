/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSinePi_h
#define chunkwiseSinePi_h

#include "chunkwiseTypes.h"

#include <cmath>

namespace chunkwise
{

/** sin(pi x), with the same bits on every machine; 0 for whole numbers. |x| is less than 2^50; the error is a few units
 * of the last place. */
CHUNKWISE_HOST_DEVICE inline double
SinePi(double x)
{
  // Taylor's series: its next term is below 2e-18 at pi / 2.
  constexpr double pi = 3.14159265358979323846;
  constexpr double factors[] = { 1.0 / (20 * 21), 1.0 / (18 * 19), 1.0 / (16 * 17), 1.0 / (14 * 15), 1.0 / (12 * 13),
                                 1.0 / (10 * 11), 1.0 / (8 * 9),   1.0 / (6 * 7),   1.0 / (4 * 5),   1.0 / (2 * 3) };
  const double     nearest = std::floor(x + 0.5);
  const double     angle = pi * (x - nearest);
  const double     square = angle * angle;
  double           series = 1;
  for (const double factor : factors)
  {
    series = 1 - square * factor * series;
  }
  return nearest - 2 * std::floor(nearest / 2) == 0 ? angle * series : -angle * series;
}

} // namespace chunkwise

#endif
