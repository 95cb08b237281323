/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFftButterflies_h
#define chunkwiseFftButterflies_h

// Transforms of a few points in registers, for host and device. V is a number, or a vector of numbers that are
// transformed side by side; T is the number. Everything has internal linkage and is inlined: the same template is
// compiled for several instruction sets.
#if defined(__CUDACC__)
#  define CHUNKWISE_FFT_INLINE static __host__ __device__ __forceinline__
#  define CHUNKWISE_FFT_UNROLL _Pragma("unroll")
#else
#  define CHUNKWISE_FFT_INLINE static inline __attribute__((always_inline))
#  define CHUNKWISE_FFT_UNROLL _Pragma("GCC unroll 32")
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

/** cos (2 pi j / R) and sin of it for j = 1 ... R / 2. */
template <int R>
CHUNKWISE_FFT_INLINE constexpr double
FftCosine(int j)
{
  return R == 3   ? -0.5
         : R == 5 ? (j == 1 ? 0.30901699437494742410 : -0.80901699437494742410)
                  : (j == 1   ? 0.62348980185873353053
                     : j == 2 ? -0.22252093395631440429
                              : -0.90096886790241912624);
}
template <int R>
CHUNKWISE_FFT_INLINE constexpr double
FftSine(int j)
{
  return R == 3   ? 0.86602540378443864676
         : R == 5 ? (j == 1 ? 0.95105651629515357212 : 0.58778525229247312917)
                  : (j == 1   ? 0.78183148246802980871
                     : j == 2 ? 0.97492791218182360702
                              : 0.43388373911755812048);
}

/** Forward transforms in place, exp(-2 pi i / R). */
template <typename T, int R, typename V>
CHUNKWISE_FFT_INLINE void
FftOdd(V * re, V * im)
{
  constexpr int H = R / 2;
  V             sumRe[H], sumIm[H], differenceRe[H], differenceIm[H];
  const V       firstRe = re[0], firstIm = im[0];
  CHUNKWISE_FFT_UNROLL
  for (int j = 0; j < H; ++j)
  {
    sumRe[j] = re[j + 1] + re[R - 1 - j];
    sumIm[j] = im[j + 1] + im[R - 1 - j];
    differenceRe[j] = re[j + 1] - re[R - 1 - j];
    differenceIm[j] = im[j + 1] - im[R - 1 - j];
    re[0] = re[0] + sumRe[j];
    im[0] = im[0] + sumIm[j];
  }
  CHUNKWISE_FFT_UNROLL
  for (int k = 1; k <= H; ++k)
  {
    V evenRe = firstRe, evenIm = firstIm;
    V oddRe{}, oddIm{};
    CHUNKWISE_FFT_UNROLL
    for (int j = 1; j <= H; ++j)
    {
      const int jk = j * k % R;
      const T   c = static_cast<T>(FftCosine<R>(jk <= H ? jk : R - jk));
      const T   s = static_cast<T>(jk <= H ? FftSine<R>(jk) : -FftSine<R>(R - jk));
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

template <typename T, typename V>
CHUNKWISE_FFT_INLINE void
FftEight(V * re, V * im)
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
  CHUNKWISE_FFT_UNROLL
  for (int k = 0; k < 8; ++k)
  {
    re[k] = r[k];
    im[k] = i[k];
  }
}

template <typename T, typename V>
CHUNKWISE_FFT_INLINE void
FftSixteen(V * re, V * im)
{
  // Fours across, twiddles, fours along.
  CHUNKWISE_FFT_UNROLL
  for (int j = 0; j < 4; ++j)
  {
    FftFour(re[j], im[j], re[j + 4], im[j + 4], re[j + 8], im[j + 8], re[j + 12], im[j + 12]);
  }
  CHUNKWISE_FFT_UNROLL
  for (int k = 1; k < 4; ++k)
  {
    CHUNKWISE_FFT_UNROLL
    for (int j = 1; j < 4; ++j)
    {
      // exp(-2 pi i j k / 16), j k in 1 2 3 4 6 9.
      const int e = j * k;
      V &       x = re[j + 4 * k];
      V &       y = im[j + 4 * k];
      if (e == 4)
      {
        const V old = x;
        x = y;
        y = V{} - old;
        continue;
      }
      const T c = static_cast<T>(e == 1   ? 0.92387953251128675613
                                 : e == 2 ? 0.70710678118654752440
                                 : e == 3 ? 0.38268343236508977173
                                 : e == 6 ? -0.70710678118654752440
                                          : -0.92387953251128675613);
      const T s = static_cast<T>(e == 1   ? 0.38268343236508977173
                                 : e == 3 ? 0.92387953251128675613
                                 : e == 9 ? -0.38268343236508977173
                                          : 0.70710678118654752440);
      V       t{};
      FftMultiplyAdd(t, s, y, V(c * x));
      FftMultiplyAdd(y, c, y, V(-s * x));
      x = t;
    }
  }
  CHUNKWISE_FFT_UNROLL
  for (int k = 0; k < 4; ++k)
  {
    FftFour(
      re[4 * k], im[4 * k], re[4 * k + 1], im[4 * k + 1], re[4 * k + 2], im[4 * k + 2], re[4 * k + 3], im[4 * k + 3]);
  }
  // Frequency k + 4 l is at 4 k + l.
  CHUNKWISE_FFT_UNROLL
  for (int k = 0; k < 4; ++k)
  {
    CHUNKWISE_FFT_UNROLL
    for (int l = 0; l < k; ++l)
    {
      const V x = re[4 * k + l], y = im[4 * k + l];
      re[4 * k + l] = re[4 * l + k];
      im[4 * k + l] = im[4 * l + k];
      re[4 * l + k] = x;
      im[4 * l + k] = y;
    }
  }
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
    FftEight<T>(re, im);
  }
  else if constexpr (R == 16)
  {
    FftSixteen<T>(re, im);
  }
  else
  {
    FftOdd<T, R>(re, im);
  }
}

} // namespace chunkwise

#endif
