/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaFftPoints_cuh
#define chunkwiseCudaFftPoints_cuh

#include "chunkwiseFftButterflies.h"

#include <utility>

// Transforms of up to 32 points in a thread's registers, made of butterflies, with constants for the twiddles.
namespace chunkwise
{

/** cos of that part of a turn. */
constexpr double
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

constexpr double
SineOfTurn(int part, int turn)
{
  return CosineOfTurn(4 * part + 3 * turn, 4 * turn);
}

/** Times exp(-2 pi i part / turn). */
template <int part, int turn>
__device__ __forceinline__ void
Turn(float & re, float & im)
{
  constexpr int p = part % turn;
  if constexpr (4 * p == turn)
  {
    const float old = re;
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
    const float     old = re;
    re = half * (re + im);
    im = half * (im - old);
  }
  else if constexpr (p != 0)
  {
    constexpr float c = static_cast<float>(CosineOfTurn(p, turn));
    constexpr float s = static_cast<float>(SineOfTurn(p, turn));
    const float     old = re;
    re = fmaf(s, im, c * re);
    im = fmaf(-s, old, c * im);
  }
}

/** Point j times exp(-2 pi i j / turn). */
template <int turn, int... j>
__device__ __forceinline__ void
TurnEach(float * re, float * im, std::integer_sequence<int, j...>)
{
  (Turn<j, turn>(re[j], im[j]), ...);
}

/** Point Q k + q times exp(-2 pi i k q / (P Q)). */
template <int P, int Q, int... n>
__device__ __forceinline__ void
TurnProducts(float * re, float * im, std::integer_sequence<int, n...>)
{
  (Turn<(n / Q) * (n % Q), P * Q>(re[n], im[n]), ...);
}

/** The first of the two factors that `points` is transformed by; 1: in one butterfly. */
constexpr int
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
constexpr int
FirstFactorOfFew(int points)
{
  return points == 16 ? 4 : FirstFactor(points);
}

/** Forward, in place, frequencies in order. With `VFew` only the points below R / FirstFactorOfFew(R) are not 0, and
 * the others are not read. */
template <int R, bool VFew = false>
__device__ __forceinline__ void
FftPoints(float * re, float * im)
{
  constexpr int P = VFew ? FirstFactorOfFew(R) : FirstFactor(R);
  if constexpr (P == 1)
  {
    FftButterfly<float, R>(re, im);
  }
  else
  {
    constexpr int Q = R / P;
#pragma unroll
    for (int q = 0; q < Q; ++q)
    {
      float a[P];
      float b[P];
#pragma unroll
      for (int p = 0; p < P; ++p)
      {
        a[p] = re[VFew ? q : Q * p + q];
        b[p] = im[VFew ? q : Q * p + q];
      }
      if constexpr (!VFew)
      {
        FftPoints<P>(a, b);
      }
#pragma unroll
      for (int p = VFew ? 1 : 0; p < P; ++p)
      {
        re[Q * p + q] = a[p];
        im[Q * p + q] = b[p];
      }
    }
    TurnProducts<P, Q>(re, im, std::make_integer_sequence<int, R>());
    float x[R];
    float y[R];
#pragma unroll
    for (int p = 0; p < P; ++p)
    {
      FftPoints<Q>(re + Q * p, im + Q * p);
#pragma unroll
      for (int q = 0; q < Q; ++q)
      {
        x[p + P * q] = re[Q * p + q];
        y[p + P * q] = im[Q * p + q];
      }
    }
#pragma unroll
    for (int k = 0; k < R; ++k)
    {
      re[k] = x[k];
      im[k] = y[k];
    }
  }
}

} // namespace chunkwise

#endif
