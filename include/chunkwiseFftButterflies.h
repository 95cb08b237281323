/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFftButterflies_h
#define chunkwiseFftButterflies_h

// Transforms of a few points in registers, for host and device. V is a number, or a vector of numbers that are
// transformed side by side; T is the number. Everything has internal linkage and is inlined: the same template is
// compiled for several instruction sets.
#if defined(__CUDACC__)
#  define CHUNKWISE_FFT_INLINE static __host__ __device__ __forceinline__
#else
#  define CHUNKWISE_FFT_INLINE static inline __attribute__((always_inline))
#endif

namespace chunkwise
{

/** a * b + c, in one rounding where the machine has it. */
template <typename T, typename V>
CHUNKWISE_FFT_INLINE void
FftMultiplyAdd(V & result, T a, const V & b, const V & c)
{
#if defined(__CUDA_ARCH__)
  result = fma(a, b, c);
#else
  result = a * b + c;
#endif
}

/** cos and sin of 2 pi j / R for j = 1 ... R / 2. */
template <int R>
struct FftOddRoots;
template <>
struct FftOddRoots<3>
{
  static constexpr double cosine[] = { -0.5 };
  static constexpr double sine[] = { 0.86602540378443864676 };
};
template <>
struct FftOddRoots<5>
{
  static constexpr double cosine[] = { 0.30901699437494742410, -0.80901699437494742410 };
  static constexpr double sine[] = { 0.95105651629515357212, 0.58778525229247312917 };
};
template <>
struct FftOddRoots<7>
{
  static constexpr double cosine[] = { 0.62348980185873353053, -0.22252093395631440429, -0.90096886790241912624 };
  static constexpr double sine[] = { 0.78183148246802980871, 0.97492791218182360702, 0.43388373911755812048 };
};

/** Forward transforms in place, exp(-2 pi i / R). */
template <typename T, int R, typename V>
CHUNKWISE_FFT_INLINE void
FftOdd(V * re, V * im)
{
  constexpr int H = R / 2;
  V             sumRe[H], sumIm[H], differenceRe[H], differenceIm[H];
  const V       firstRe = re[0], firstIm = im[0];
#pragma GCC unroll 8
  for (int j = 0; j < H; ++j)
  {
    sumRe[j] = re[j + 1] + re[R - 1 - j];
    sumIm[j] = im[j + 1] + im[R - 1 - j];
    differenceRe[j] = re[j + 1] - re[R - 1 - j];
    differenceIm[j] = im[j + 1] - im[R - 1 - j];
    re[0] = re[0] + sumRe[j];
    im[0] = im[0] + sumIm[j];
  }
#pragma GCC unroll 8
  for (int k = 1; k <= H; ++k)
  {
    V evenRe = firstRe, evenIm = firstIm;
    V oddRe{}, oddIm{};
#pragma GCC unroll 8
    for (int j = 1; j <= H; ++j)
    {
      const int jk = j * k % R;
      const T   c = static_cast<T>(FftOddRoots<R>::cosine[(jk <= H ? jk : R - jk) - 1]);
      const T   s = static_cast<T>(jk <= H ? FftOddRoots<R>::sine[jk - 1] : -FftOddRoots<R>::sine[R - jk - 1]);
      FftMultiplyAdd(evenRe, c, sumRe[j - 1], evenRe);
      FftMultiplyAdd(evenIm, c, sumIm[j - 1], evenIm);
      if (j == 1)
      {
        oddRe = s * differenceRe[0];
        oddIm = s * differenceIm[0];
      }
      else
      {
        FftMultiplyAdd(oddRe, s, differenceRe[j - 1], oddRe);
        FftMultiplyAdd(oddIm, s, differenceIm[j - 1], oddIm);
      }
    }
    re[k] = evenRe + oddIm;
    im[k] = evenIm - oddRe;
    re[R - k] = evenRe - oddIm;
    im[R - k] = evenIm + oddRe;
  }
}

template <typename V>
CHUNKWISE_FFT_INLINE void
FftTwo(V & aRe, V & aIm, V & bRe, V & bIm)
{
  const V re = aRe - bRe, im = aIm - bIm;
  aRe = aRe + bRe;
  aIm = aIm + bIm;
  bRe = re;
  bIm = im;
}

/** The points a, b, c, d become the frequencies 0, 1, 2, 3. */
template <typename V>
CHUNKWISE_FFT_INLINE void
FftFour(V & aRe, V & aIm, V & bRe, V & bIm, V & cRe, V & cIm, V & dRe, V & dIm)
{
  FftTwo(aRe, aIm, cRe, cIm);
  FftTwo(bRe, bIm, dRe, dIm);
  FftTwo(aRe, aIm, bRe, bIm);
  // -i times d
  const V re = dIm;
  const V im = V{} - dRe;
  const V lastRe = cRe - re, lastIm = cIm - im;
  const V firstRe = cRe + re, firstIm = cIm + im;
  // a: 0, b: 2
  cRe = bRe;
  cIm = bIm;
  bRe = firstRe;
  bIm = firstIm;
  dRe = lastRe;
  dIm = lastIm;
}

template <typename T, int R, typename V>
CHUNKWISE_FFT_INLINE void
FftButterfly(V * re, V * im)
{
  if constexpr (R == 2)
  {
    FftTwo(re[0], im[0], re[1], im[1]);
  }
  else if constexpr (R == 4)
  {
    FftFour(re[0], im[0], re[1], im[1], re[2], im[2], re[3], im[3]);
  }
  else if constexpr (R == 8)
  {
    constexpr T half = static_cast<T>(0.70710678118654752440);
    FftFour(re[0], im[0], re[2], im[2], re[4], im[4], re[6], im[6]);
    FftFour(re[1], im[1], re[3], im[3], re[5], im[5], re[7], im[7]);
    // Times the eighth roots: exp(-i pi / 4), -i, exp(-3 i pi / 4).
    V t = half * (re[3] + im[3]);
    im[3] = half * (im[3] - re[3]);
    re[3] = t;
    t = im[5];
    im[5] = V{} - re[5];
    re[5] = t;
    t = half * (im[7] - re[7]);
    im[7] = V{} - half * (re[7] + im[7]);
    re[7] = t;
    // 0, 2, 4, 6 hold the even half's frequencies 0 to 3, and 1, 3, 5, 7 the odd half's.
    FftTwo(re[0], im[0], re[1], im[1]);
    FftTwo(re[2], im[2], re[3], im[3]);
    FftTwo(re[4], im[4], re[5], im[5]);
    FftTwo(re[6], im[6], re[7], im[7]);
    // 0 4 1 5 2 6 3 7 to the natural order.
    const V r[8] = { re[0], re[2], re[4], re[6], re[1], re[3], re[5], re[7] };
    const V i[8] = { im[0], im[2], im[4], im[6], im[1], im[3], im[5], im[7] };
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k)
    {
      re[k] = r[k];
      im[k] = i[k];
    }
  }
  else
  {
    FftOdd<T, R>(re, im);
  }
}

} // namespace chunkwise

#endif
