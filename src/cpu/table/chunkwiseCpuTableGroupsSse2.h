/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Groups of chunkwiseCpuTableFunctions.cxx, which includes this, for SSE2: a quarter of a block in a step.

constexpr std::int64_t StepGroups = TableQuarter;

template <>
struct Groups<double>
{
  using Quarters = __m128d; ///< of which both lanes are the same
  static constexpr int N = 4;
  __m128d              v[N];

  static CHUNKWISE_ALWAYS_INLINE Groups
  Load(const double * p)
  {
    return { { _mm_loadu_pd(p), _mm_loadu_pd(p + 2), _mm_loadu_pd(p + 4), _mm_loadu_pd(p + 6) } };
  }
  CHUNKWISE_ALWAYS_INLINE void
  Store(double * p) const
  {
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      _mm_storeu_pd(p + 2 * k, v[k]);
    }
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  operator+(const Groups & other) const
  {
    Groups g;
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = _mm_add_pd(v[k], other.v[k]);
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
      g.v[k] = _mm_mul_pd(v[k], v[k]);
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  After(double left) const
  {
    const __m128d all = _mm_set1_pd(left);
    return Groups{ { all, all, all, all } } + *this;
  }
  CHUNKWISE_ALWAYS_INLINE double
  Last() const
  {
    return _mm_cvtsd_f64(_mm_unpackhi_pd(v[N - 1], v[N - 1]));
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Before(Quarters & quarters) const
  {
    const __m128d none = _mm_setzero_pd();
    const auto    oneOn = [](__m128d before, __m128d t) { return _mm_shuffle_pd(before, t, 1); };
    __m128d       t[N];
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      t[k] = _mm_add_pd(oneOn(k > 0 ? v[k - 1] : none, v[k]), v[k]);
    }
#pragma GCC unroll 4
    for (int k = N - 1; k > 0; --k)
    {
      t[k] = _mm_add_pd(t[k - 1], t[k]);
    }
#pragma GCC unroll 4
    for (int k = N - 1; k > 1; --k)
    {
      t[k] = _mm_add_pd(t[k - 2], t[k]);
    }
    Groups g;
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = _mm_add_pd(quarters, oneOn(k > 0 ? t[k - 1] : none, t[k]));
    }
    quarters = _mm_add_pd(quarters, _mm_unpackhi_pd(t[N - 1], t[N - 1]));
    return g;
  }
};

template <>
struct Groups<float>
{
  using Quarters = __m128;
  __m128 v[2];

  static CHUNKWISE_ALWAYS_INLINE Groups
  Load(const float * p)
  {
    return { { _mm_loadu_ps(p), _mm_loadu_ps(p + 4) } };
  }
  CHUNKWISE_ALWAYS_INLINE void
  Store(float * p) const
  {
    _mm_storeu_ps(p, v[0]);
    _mm_storeu_ps(p + 4, v[1]);
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  operator+(const Groups & other) const
  {
    return { { _mm_add_ps(v[0], other.v[0]), _mm_add_ps(v[1], other.v[1]) } };
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Squared() const
  {
    return { { _mm_mul_ps(v[0], v[0]), _mm_mul_ps(v[1], v[1]) } };
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Before(Quarters & quarters) const
  {
    const __m128 none = _mm_setzero_ps();
    __m128       low = _mm_add_ps(OneOn(none, v[0]), v[0]);
    __m128       high = _mm_add_ps(OneOn(v[0], v[1]), v[1]);
    high = _mm_add_ps(_mm_shuffle_ps(low, high, _MM_SHUFFLE(1, 0, 3, 2)), high);
    low = _mm_add_ps(_mm_movelh_ps(none, low), low);
    high = _mm_add_ps(low, high);
    const Groups g{ { _mm_add_ps(quarters, OneOn(none, low)), _mm_add_ps(quarters, OneOn(low, high)) } };
    quarters = _mm_add_ps(quarters, _mm_shuffle_ps(high, high, _MM_SHUFFLE(3, 3, 3, 3)));
    return g;
  }

private:
  /** The last of `before`, then all of t but the last. */
  static CHUNKWISE_ALWAYS_INLINE __m128
  OneOn(__m128 before, __m128 t)
  {
    return _mm_move_ss(_mm_shuffle_ps(t, t, _MM_SHUFFLE(2, 1, 0, 3)),
                       _mm_shuffle_ps(before, before, _MM_SHUFFLE(3, 3, 3, 3)));
  }
};

CHUNKWISE_ALWAYS_INLINE Groups<double>
                        Widened(const Groups<float> & groups)
{
  return { { _mm_cvtps_pd(groups.v[0]),
             _mm_cvtps_pd(_mm_movehl_ps(groups.v[0], groups.v[0])),
             _mm_cvtps_pd(groups.v[1]),
             _mm_cvtps_pd(_mm_movehl_ps(groups.v[1], groups.v[1])) } };
}

CHUNKWISE_ALWAYS_INLINE void
Narrow(Groups<float> & to, const Groups<double> & groups)
{
  to.v[0] = _mm_movelh_ps(_mm_cvtpd_ps(groups.v[0]), _mm_cvtpd_ps(groups.v[1]));
  to.v[1] = _mm_movelh_ps(_mm_cvtpd_ps(groups.v[2]), _mm_cvtpd_ps(groups.v[3]));
}

CHUNKWISE_ALWAYS_INLINE void
Load(Groups<float> (&columns)[TableGroup], const float * in)
{
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k)
  {
    __m128 rows[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
    {
      rows[i] = _mm_loadu_ps(in + 16 * k + 4 * i);
    }
    _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      columns[c].v[k] = rows[c];
    }
  }
}

CHUNKWISE_ALWAYS_INLINE void
Store(float * out, const Groups<double> (&columns)[TableGroup])
{
  Groups<float> narrow[TableGroup];
#pragma GCC unroll 4
  for (int c = 0; c < TableGroup; ++c)
  {
    Narrow(narrow[c], columns[c]);
  }
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k)
  {
    __m128 rows[4] = { narrow[0].v[k], narrow[1].v[k], narrow[2].v[k], narrow[3].v[k] };
    _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
    {
      _mm_storeu_ps(out + 16 * k + 4 * i, rows[i]);
    }
  }
}

CHUNKWISE_ALWAYS_INLINE void
Load(Groups<double> (&columns)[TableGroup], const double * in)
{
#pragma GCC unroll 4
  for (int k = 0; k < Groups<double>::N; ++k)
  {
#pragma GCC unroll 2
    for (int c = 0; c < TableGroup; c += 2)
    {
      const __m128d first = _mm_loadu_pd(in + 8 * k + c);
      const __m128d second = _mm_loadu_pd(in + 8 * k + 4 + c);
      columns[c].v[k] = _mm_unpacklo_pd(first, second);
      columns[c + 1].v[k] = _mm_unpackhi_pd(first, second);
    }
  }
}

CHUNKWISE_ALWAYS_INLINE void
Store(double * out, const Groups<double> (&columns)[TableGroup])
{
#pragma GCC unroll 4
  for (int k = 0; k < Groups<double>::N; ++k)
  {
#pragma GCC unroll 2
    for (int c = 0; c < TableGroup; c += 2)
    {
      _mm_storeu_pd(out + 8 * k + c, _mm_unpacklo_pd(columns[c].v[k], columns[c + 1].v[k]));
      _mm_storeu_pd(out + 8 * k + 4 + c, _mm_unpackhi_pd(columns[c].v[k], columns[c + 1].v[k]));
    }
  }
}
