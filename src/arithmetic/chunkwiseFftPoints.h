/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFftPoints_h
#define chunkwiseFftPoints_h

#include "chunkwiseFftButterflies.h"

#include <utility>

// Transforms of up to 32 points in registers, made of butterflies, with constants for the twiddles. V is a number or a
// vector of numbers, as in chunkwiseFftButterflies.h.
namespace chunkwise
{

/** cos of that part of a turn. */
static constexpr double
CosineOfTurn(int part, int turn)
{
  part %= turn;
  const double x = 2 * 3.14159265358979323846 * (2 * part > turn ? part - turn : part) / turn;
  double       term = 1;
  double       sum = 1;
  for (int i = 1; i < 16; ++i)
  {
    term *= -x * x / ((2 * i - 1) * (2 * i));
    sum += term;
  }
  return sum;
}

static constexpr double
SineOfTurn(int part, int turn)
{
  return CosineOfTurn(4 * part + 3 * turn, 4 * turn);
}

/** Times exp(-2 pi i part / turn). */
template <int part, int turn, typename V>
CHUNKWISE_FFT_INLINE void
Turn(V & re, V & im)
{
  constexpr int p = part % turn;
  if constexpr (4 * p == turn)
  {
    const V old = re;
    re = im;
    im = -old;
  }
  else if constexpr (2 * p == turn)
  {
    re = -re;
    im = -im;
  }
  else if constexpr (8 * p == turn)
  {
    constexpr float half = 0.70710678118654752440f;
    const V         old = re;
    re = half * (re + im);
    im = half * (im - old);
  }
  else if constexpr (p != 0)
  {
    constexpr float c = static_cast<float>(CosineOfTurn(p, turn));
    constexpr float s = static_cast<float>(SineOfTurn(p, turn));
    const V         old = re;
    FftMultiplyAdd(re, s, im, V(c * re));
    FftMultiplyAdd(im, -s, old, V(c * im));
  }
}

/** Point j times exp(-2 pi i j / turn). */
template <int turn, typename V, int... j>
CHUNKWISE_FFT_INLINE void
TurnEach(V * re, V * im, std::integer_sequence<int, j...>)
{
  (Turn<j, turn>(re[j], im[j]), ...);
}

/** Point Q k + q times exp(-2 pi i k q / (P Q)). */
template <int P, int Q, typename V, int... n>
CHUNKWISE_FFT_INLINE void
TurnProducts(V * re, V * im, std::integer_sequence<int, n...>)
{
  (Turn<(n / Q) * (n % Q), P * Q>(re[n], im[n]), ...);
}

/** The first of the two factors that `points` is transformed by; 1: in one butterfly. */
static constexpr int
FirstFactor(int points)
{
  switch (points)
  {
    case 9:
      return 3;
    case 6:
    case 10:
    case 14:
      return 2;
    case 12:
    case 20:
    case 28:
      return 4;
    case 15:
      return 5;
    case 18:
      return 6;
    case 24:
    case 32:
      return 8;
    default:
      return 1;
  }
}

/** The same where most points are 0. */
static constexpr int
FirstFactorOfFew(int points)
{
  return points == 16 ? 4 : FirstFactor(points);
}

/** Forward, in place, frequencies in order. With `VFew` only the points below R / FirstFactorOfFew(R) are not 0, and
 * the others are not read. */
template <int R, bool VFew = false, typename V>
CHUNKWISE_FFT_INLINE void
FftPoints(V * re, V * im)
{
  constexpr int P = VFew ? FirstFactorOfFew(R) : FirstFactor(R);
  if constexpr (P == 1)
  {
    FftButterfly<float, R>(re, im);
  }
  else
  {
    constexpr int Q = R / P;
    CHUNKWISE_FFT_UNROLL
    for (int q = 0; q < Q; ++q)
    {
      V a[P];
      V b[P];
      CHUNKWISE_FFT_UNROLL
      for (int p = 0; p < P; ++p)
      {
        a[p] = re[VFew ? q : Q * p + q];
        b[p] = im[VFew ? q : Q * p + q];
      }
      if constexpr (!VFew)
      {
        FftPoints<P>(a, b);
      }
      CHUNKWISE_FFT_UNROLL
      for (int p = VFew ? 1 : 0; p < P; ++p)
      {
        re[Q * p + q] = a[p];
        im[Q * p + q] = b[p];
      }
    }
    TurnProducts<P, Q>(re, im, std::make_integer_sequence<int, R>());
    V x[R];
    V y[R];
    CHUNKWISE_FFT_UNROLL
    for (int p = 0; p < P; ++p)
    {
      FftPoints<Q>(re + Q * p, im + Q * p);
      CHUNKWISE_FFT_UNROLL
      for (int q = 0; q < Q; ++q)
      {
        x[p + P * q] = re[Q * p + q];
        y[p + P * q] = im[Q * p + q];
      }
    }
    CHUNKWISE_FFT_UNROLL
    for (int k = 0; k < R; ++k)
    {
      re[k] = x[k];
      im[k] = y[k];
    }
  }
}

} // namespace chunkwise

#endif
