/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Groups of chunkwiseCpuTableFunctions.cxx, which includes this, for AVX2: a quarter of a block in a step, since
// sums of floats, the results, and what they are made of then stay in registers.

constexpr std::int64_t StepGroups = TableQuarter;

template <>
struct Groups<double>
{
  using Quarters = __m256d; ///< of which every lane is the same
  __m256d v[2];

  static CHUNKWISE_ALWAYS_INLINE Groups
  Load(const double * p)
  {
    return { { _mm256_loadu_pd(p), _mm256_loadu_pd(p + 4) } };
  }
  CHUNKWISE_ALWAYS_INLINE void
  Store(double * p) const
  {
    _mm256_storeu_pd(p, v[0]);
    _mm256_storeu_pd(p + 4, v[1]);
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  operator+(const Groups & other) const
  {
    return { { _mm256_add_pd(v[0], other.v[0]), _mm256_add_pd(v[1], other.v[1]) } };
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Squared() const
  {
    return { { _mm256_mul_pd(v[0], v[0]), _mm256_mul_pd(v[1], v[1]) } };
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  After(double left) const
  {
    const __m256d all = _mm256_set1_pd(left);
    return { { _mm256_add_pd(all, v[0]), _mm256_add_pd(all, v[1]) } };
  }
  CHUNKWISE_ALWAYS_INLINE double
  Last() const
  {
    const __m128d high = _mm256_extractf128_pd(v[1], 1);
    return _mm_cvtsd_f64(_mm_unpackhi_pd(high, high));
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Before(Quarters & quarters) const
  {
    __m256d low = v[0];
    __m256d high = v[1];
    high = _mm256_add_pd(OneOn(low, high), high);
    low = _mm256_add_pd(OneOn(_mm256_setzero_pd(), low), low);
    high = _mm256_add_pd(_mm256_permute2f128_pd(low, high, 0x21), high);
    low = _mm256_add_pd(_mm256_permute2f128_pd(low, low, 0x08), low);
    high = _mm256_add_pd(low, high);
    const Groups g{ { _mm256_add_pd(quarters, OneOn(_mm256_setzero_pd(), low)),
                      _mm256_add_pd(quarters, OneOn(low, high)) } };
    quarters = _mm256_add_pd(quarters, _mm256_permute4x64_pd(high, 0xff));
    return g;
  }

private:
  /** The last of `before`, then all of v but the last. */
  static CHUNKWISE_ALWAYS_INLINE __m256d
  OneOn(__m256d before, __m256d v)
  {
    return _mm256_shuffle_pd(_mm256_permute2f128_pd(before, v, 0x21), v, 0x5);
  }
};

template <>
struct Groups<float>
{
  using Quarters = __m256;
  __m256 v;

  static CHUNKWISE_ALWAYS_INLINE Groups
  Load(const float * p)
  {
    return { _mm256_loadu_ps(p) };
  }
  CHUNKWISE_ALWAYS_INLINE void
  Store(float * p) const
  {
    _mm256_storeu_ps(p, v);
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  operator+(const Groups & other) const
  {
    return { _mm256_add_ps(v, other.v) };
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Squared() const
  {
    return { _mm256_mul_ps(v, v) };
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Before(Quarters & quarters) const
  {
    __m256 t = _mm256_add_ps(On<1>(v), v);
    t = _mm256_add_ps(On<2>(t), t);
    t = _mm256_add_ps(_mm256_permute2f128_ps(t, t, 0x08), t);
    const Groups g{ _mm256_add_ps(quarters, On<1>(t)) };
    quarters = _mm256_add_ps(quarters, _mm256_permutevar8x32_ps(t, _mm256_set1_epi32(7)));
    return g;
  }

private:
  /** N zeros, then all of v but the last N. */
  template <int N>
  static CHUNKWISE_ALWAYS_INLINE __m256
  On(__m256 v)
  {
    const __m256i lanes = _mm256_castps_si256(v);
    return _mm256_castsi256_ps(_mm256_alignr_epi8(lanes, _mm256_permute2x128_si256(lanes, lanes, 0x08), 16 - 4 * N));
  }
};

CHUNKWISE_ALWAYS_INLINE Groups<double>
                        Widened(const Groups<float> & groups)
{
  return { { _mm256_cvtps_pd(_mm256_castps256_ps128(groups.v)), _mm256_cvtps_pd(_mm256_extractf128_ps(groups.v, 1)) } };
}

CHUNKWISE_ALWAYS_INLINE void
Narrow(Groups<float> & to, const Groups<double> & groups)
{
  to.v = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(groups.v[0])), _mm256_cvtpd_ps(groups.v[1]), 1);
}

/** Rows and columns of each half, of four by four, exchanged. */
CHUNKWISE_ALWAYS_INLINE void
Transpose(__m256 (&rows)[4])
{
  const __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(rows[0], rows[1]));
  const __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(rows[0], rows[1]));
  const __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(rows[2], rows[3]));
  const __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(rows[2], rows[3]));
  rows[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
  rows[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
  rows[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
  rows[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
}

CHUNKWISE_ALWAYS_INLINE void
Load(Groups<float> (&columns)[TableGroup], const float * in)
{
  __m256 rows[4]; // groups i and 4 + i
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
  {
    rows[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(in + 4 * i)), _mm_loadu_ps(in + 16 + 4 * i), 1);
  }
  Transpose(rows);
#pragma GCC unroll 4
  for (int c = 0; c < TableGroup; ++c)
  {
    columns[c].v = rows[c];
  }
}

CHUNKWISE_ALWAYS_INLINE void
Store(float * out, const Groups<double> (&columns)[TableGroup])
{
  __m256 rows[4];
#pragma GCC unroll 4
  for (int c = 0; c < TableGroup; ++c)
  {
    Groups<float> narrow;
    Narrow(narrow, columns[c]);
    rows[c] = narrow.v;
  }
  Transpose(rows);
#pragma GCC unroll 2
  for (int i = 0; i < 4; i += 2)
  {
    _mm256_storeu_ps(out + 4 * i, _mm256_permute2f128_ps(rows[i], rows[i + 1], 0x20));
    _mm256_storeu_ps(out + 16 + 4 * i, _mm256_permute2f128_ps(rows[i], rows[i + 1], 0x31));
  }
}

CHUNKWISE_ALWAYS_INLINE void
Load(Groups<double> (&columns)[TableGroup], const double * in)
{
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k)
  {
#pragma GCC unroll 2
    for (int c = 0; c < TableGroup; c += 2)
    {
      // Two columns of groups 0 and 2, and 1 and 3, of four.
      const double * const p = in + 16 * k + c;
      const __m256d        even = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(p)), _mm_loadu_pd(p + 8), 1);
      const __m256d odd = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(p + 4)), _mm_loadu_pd(p + 12), 1);
      columns[c].v[k] = _mm256_unpacklo_pd(even, odd);
      columns[c + 1].v[k] = _mm256_unpackhi_pd(even, odd);
    }
  }
}

CHUNKWISE_ALWAYS_INLINE void
Store(double * out, const Groups<double> (&columns)[TableGroup])
{
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k)
  {
    const __m256d  even[2] = { _mm256_unpacklo_pd(columns[0].v[k], columns[1].v[k]),
                               _mm256_unpacklo_pd(columns[2].v[k], columns[3].v[k]) };
    const __m256d  odd[2] = { _mm256_unpackhi_pd(columns[0].v[k], columns[1].v[k]),
                              _mm256_unpackhi_pd(columns[2].v[k], columns[3].v[k]) };
    double * const p = out + 16 * k;
    _mm256_storeu_pd(p, _mm256_permute2f128_pd(even[0], even[1], 0x20));
    _mm256_storeu_pd(p + 4, _mm256_permute2f128_pd(odd[0], odd[1], 0x20));
    _mm256_storeu_pd(p + 8, _mm256_permute2f128_pd(even[0], even[1], 0x31));
    _mm256_storeu_pd(p + 12, _mm256_permute2f128_pd(odd[0], odd[1], 0x31));
  }
}
