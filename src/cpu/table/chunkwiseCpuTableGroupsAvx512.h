/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Groups of chunkwiseCpuTableFunctions.cxx, which includes this, for AVX-512: all of a block in a step.

constexpr std::int64_t StepGroups = TableGroups;

template <>
struct Groups<double>
{
  static constexpr int N = 4;
  using Quarters = __m512d; ///< of which every lane is the same
  __m512d v[N];

  static CHUNKWISE_ALWAYS_INLINE Groups
  Load(const double * p)
  {
    Groups g;
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = _mm512_loadu_pd(p + 8 * k);
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE void
  Store(double * p) const
  {
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      _mm512_storeu_pd(p + 8 * k, v[k]);
    }
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  operator+(const Groups & other) const
  {
    Groups g;
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = _mm512_add_pd(v[k], other.v[k]);
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Squared() const
  {
    Groups g;
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = _mm512_mul_pd(v[k], v[k]);
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  After(double left) const
  {
    Groups        g;
    const __m512d all = _mm512_set1_pd(left);
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = _mm512_add_pd(all, v[k]);
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE double
  Last() const
  {
    return _mm512_cvtsd_f64(_mm512_permutexvar_pd(_mm512_set1_epi64(7), v[N - 1]));
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Before(Quarters & quarters) const
  {
    const __m512i none = _mm512_setzero_si512();
    Groups        g;
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      __m512d t = v[k];
      t = _mm512_add_pd(_mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(t), none, 7)), t);
      t = _mm512_add_pd(_mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(t), none, 6)), t);
      t = _mm512_add_pd(_mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(t), none, 4)), t);
      g.v[k] = _mm512_add_pd(quarters, _mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(t), none, 7)));
      quarters = _mm512_add_pd(quarters, _mm512_permutexvar_pd(_mm512_set1_epi64(7), t));
    }
    return g;
  }
};

template <>
struct Groups<float>
{
  static constexpr int N = 2;
  using Quarters = __m512;
  __m512 v[N];

  static CHUNKWISE_ALWAYS_INLINE Groups
  Load(const float * p)
  {
    return { { _mm512_loadu_ps(p), _mm512_loadu_ps(p + 16) } };
  }
  CHUNKWISE_ALWAYS_INLINE void
  Store(float * p) const
  {
    _mm512_storeu_ps(p, v[0]);
    _mm512_storeu_ps(p + 16, v[1]);
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  operator+(const Groups & other) const
  {
    return { { _mm512_add_ps(v[0], other.v[0]), _mm512_add_ps(v[1], other.v[1]) } };
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Squared() const
  {
    return { { _mm512_mul_ps(v[0], v[0]), _mm512_mul_ps(v[1], v[1]) } };
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Before(Quarters & quarters) const
  {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const auto    shifted = [&](__m512 t, int d, __mmask16 mask) {
      return _mm512_maskz_permutexvar_ps(mask, _mm512_sub_epi32(lanes, _mm512_set1_epi32(d)), t);
    };
    Groups g;
#pragma GCC unroll 2
    for (int k = 0; k < N; ++k)
    {
      __m512 t = v[k];
      t = _mm512_add_ps(shifted(t, 1, 0xfefe), t);
      t = _mm512_add_ps(shifted(t, 2, 0xfcfc), t);
      t = _mm512_add_ps(shifted(t, 4, 0xf0f0), t);
      const __m512 first = quarters;
      const __m512 second = _mm512_add_ps(first, _mm512_permutexvar_ps(_mm512_set1_epi32(7), t));
      quarters = _mm512_add_ps(second, _mm512_permutexvar_ps(_mm512_set1_epi32(15), t));
      g.v[k] = _mm512_add_ps(_mm512_mask_blend_ps(0xff00, first, second), shifted(t, 1, 0xfefe));
    }
    return g;
  }
};

CHUNKWISE_ALWAYS_INLINE Groups<double>
                        Widened(const Groups<float> & groups)
{
  Groups<double> g;
#pragma GCC unroll 2
  for (int k = 0; k < Groups<float>::N; ++k)
  {
    g.v[2 * k] = _mm512_cvtps_pd(_mm512_castps512_ps256(groups.v[k]));
    g.v[2 * k + 1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(groups.v[k], 1));
  }
  return g;
}

CHUNKWISE_ALWAYS_INLINE void
Narrow(Groups<float> & to, const Groups<double> & groups)
{
#pragma GCC unroll 2
  for (int k = 0; k < Groups<float>::N; ++k)
  {
    to.v[k] = _mm512_insertf32x8(
      _mm512_castps256_ps512(_mm512_cvtpd_ps(groups.v[2 * k])), _mm512_cvtpd_ps(groups.v[2 * k + 1]), 1);
  }
}

CHUNKWISE_ALWAYS_INLINE void
Load(Groups<float> (&columns)[TableGroup], const float * in)
{
  const __m512i low = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(2));
#pragma GCC unroll 2
  for (int k = 0; k < Groups<float>::N; ++k)
  {
    const __m512 a = _mm512_loadu_ps(in + 64 * k);
    const __m512 b = _mm512_loadu_ps(in + 64 * k + 16);
    const __m512 c = _mm512_loadu_ps(in + 64 * k + 32);
    const __m512 d = _mm512_loadu_ps(in + 64 * k + 48);
    // Columns 0 and 1, and 2 and 3, of eight groups.
    const __m512 first[2] = { _mm512_permutex2var_ps(a, low, b), _mm512_permutex2var_ps(a, high, b) };
    const __m512 second[2] = { _mm512_permutex2var_ps(c, low, d), _mm512_permutex2var_ps(c, high, d) };
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i)
    {
      columns[2 * i].v[k] = _mm512_shuffle_f32x4(first[i], second[i], 0x44);
      columns[2 * i + 1].v[k] = _mm512_shuffle_f32x4(first[i], second[i], 0xee);
    }
  }
}

CHUNKWISE_ALWAYS_INLINE void
Store(float * out, const Groups<double> (&columns)[TableGroup])
{
  const __m512i low = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(4));
#pragma GCC unroll 4
  for (int k = 0; k < Groups<double>::N; ++k)
  {
    const __m512 a =
      _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(columns[0].v[k])), _mm512_cvtpd_ps(columns[1].v[k]), 1);
    const __m512 b =
      _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(columns[2].v[k])), _mm512_cvtpd_ps(columns[3].v[k]), 1);
    _mm512_storeu_ps(out + 32 * k, _mm512_permutex2var_ps(a, low, b));
    _mm512_storeu_ps(out + 32 * k + 16, _mm512_permutex2var_ps(a, high, b));
  }
}

CHUNKWISE_ALWAYS_INLINE void
Load(Groups<double> (&columns)[TableGroup], const double * in)
{
  const __m512i low = _mm512_setr_epi64(0, 4, 8, 12, 1, 5, 9, 13);
  const __m512i high = _mm512_add_epi64(low, _mm512_set1_epi64(2));
#pragma GCC unroll 4
  for (int k = 0; k < Groups<double>::N; ++k)
  {
    const __m512d a = _mm512_loadu_pd(in + 32 * k);
    const __m512d b = _mm512_loadu_pd(in + 32 * k + 8);
    const __m512d c = _mm512_loadu_pd(in + 32 * k + 16);
    const __m512d d = _mm512_loadu_pd(in + 32 * k + 24);
    // Columns 0 and 1, and 2 and 3, of four groups.
    const __m512d first[2] = { _mm512_permutex2var_pd(a, low, b), _mm512_permutex2var_pd(a, high, b) };
    const __m512d second[2] = { _mm512_permutex2var_pd(c, low, d), _mm512_permutex2var_pd(c, high, d) };
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i)
    {
      columns[2 * i].v[k] = _mm512_shuffle_f64x2(first[i], second[i], 0x44);
      columns[2 * i + 1].v[k] = _mm512_shuffle_f64x2(first[i], second[i], 0xee);
    }
  }
}

CHUNKWISE_ALWAYS_INLINE void
Store(double * out, const Groups<double> (&columns)[TableGroup])
{
  const __m512i low = _mm512_setr_epi64(0, 4, 8, 12, 1, 5, 9, 13);
  const __m512i high = _mm512_add_epi64(low, _mm512_set1_epi64(2));
#pragma GCC unroll 4
  for (int k = 0; k < Groups<double>::N; ++k)
  {
    // Four groups, then the other four, of columns 0 and 1, and 2 and 3.
    const __m512d first[2] = { _mm512_shuffle_f64x2(columns[0].v[k], columns[1].v[k], 0x44),
                               _mm512_shuffle_f64x2(columns[2].v[k], columns[3].v[k], 0x44) };
    const __m512d second[2] = { _mm512_shuffle_f64x2(columns[0].v[k], columns[1].v[k], 0xee),
                                _mm512_shuffle_f64x2(columns[2].v[k], columns[3].v[k], 0xee) };
    _mm512_storeu_pd(out + 32 * k, _mm512_permutex2var_pd(first[0], low, first[1]));
    _mm512_storeu_pd(out + 32 * k + 8, _mm512_permutex2var_pd(first[0], high, first[1]));
    _mm512_storeu_pd(out + 32 * k + 16, _mm512_permutex2var_pd(second[0], low, second[1]));
    _mm512_storeu_pd(out + 32 * k + 24, _mm512_permutex2var_pd(second[0], high, second[1]));
  }
}
