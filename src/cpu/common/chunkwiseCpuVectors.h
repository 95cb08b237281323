/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Included in the namespace of a level, see chunkwiseCpuLevelFunctions.cxx: vectors of numbers of its instruction
// set.

#if defined(__AVX512F__)
struct FloatVector
{
  static constexpr std::int64_t Width = 16;
  __m512                        v;
  static FloatVector
  Zero()
  {
    return { _mm512_setzero_ps() };
  }
  static FloatVector
  Load(const float * x)
  {
    return { _mm512_loadu_ps(x) };
  }
  void
  MultiplyAdd(float w, FloatVector x)
  {
    v = _mm512_fmadd_ps(_mm512_set1_ps(w), x.v, v);
  }
  void
  MultiplyAdd(float w, const float * x)
  {
    v = _mm512_fmadd_ps(_mm512_set1_ps(w), _mm512_loadu_ps(x), v);
  }
  void
  Store(float * out) const
  {
    _mm512_storeu_ps(out, v);
  }
};
struct DoubleVector
{
  static constexpr std::int64_t Width = 8;
  __m512d                       v;
  static DoubleVector
  Zero()
  {
    return { _mm512_setzero_pd() };
  }
  void
  MultiplyAdd(double w, const double * x)
  {
    v = _mm512_fmadd_pd(_mm512_set1_pd(w), _mm512_loadu_pd(x), v);
  }
  void
  Store(double * out) const
  {
    _mm512_storeu_pd(out, v);
  }
};
#elif defined(__AVX2__) && defined(__FMA__)
struct FloatVector
{
  static constexpr std::int64_t Width = 8;
  __m256                        v;
  static FloatVector
  Zero()
  {
    return { _mm256_setzero_ps() };
  }
  static FloatVector
  Load(const float * x)
  {
    return { _mm256_loadu_ps(x) };
  }
  void
  MultiplyAdd(float w, FloatVector x)
  {
    v = _mm256_fmadd_ps(_mm256_set1_ps(w), x.v, v);
  }
  void
  MultiplyAdd(float w, const float * x)
  {
    v = _mm256_fmadd_ps(_mm256_set1_ps(w), _mm256_loadu_ps(x), v);
  }
  void
  Store(float * out) const
  {
    _mm256_storeu_ps(out, v);
  }
};
struct DoubleVector
{
  static constexpr std::int64_t Width = 4;
  __m256d                       v;
  static DoubleVector
  Zero()
  {
    return { _mm256_setzero_pd() };
  }
  void
  MultiplyAdd(double w, const double * x)
  {
    v = _mm256_fmadd_pd(_mm256_set1_pd(w), _mm256_loadu_pd(x), v);
  }
  void
  Store(double * out) const
  {
    _mm256_storeu_pd(out, v);
  }
};
#elif defined(__aarch64__)
struct FloatVector
{
  static constexpr std::int64_t Width = 4;
  float32x4_t                   v;
  static FloatVector
  Zero()
  {
    return { vdupq_n_f32(0.0f) };
  }
  static FloatVector
  Load(const float * x)
  {
    return { vld1q_f32(x) };
  }
  void
  MultiplyAdd(float w, FloatVector x)
  {
    v = vfmaq_n_f32(v, x.v, w);
  }
  void
  MultiplyAdd(float w, const float * x)
  {
    v = vfmaq_n_f32(v, vld1q_f32(x), w);
  }
  void
  Store(float * out) const
  {
    vst1q_f32(out, v);
  }
};
struct DoubleVector
{
  static constexpr std::int64_t Width = 2;
  float64x2_t                   v;
  static DoubleVector
  Zero()
  {
    return { vdupq_n_f64(0.0) };
  }
  void
  MultiplyAdd(double w, const double * x)
  {
    v = vfmaq_n_f64(v, vld1q_f64(x), w);
  }
  void
  Store(double * out) const
  {
    vst1q_f64(out, v);
  }
};
#else
struct FloatVector
{
  static constexpr std::int64_t Width = 1;
  float                         v;
  static FloatVector
  Zero()
  {
    return { 0.0f };
  }
  static FloatVector
  Load(const float * x)
  {
    return { *x };
  }
  void
  MultiplyAdd(float w, FloatVector x)
  {
    v = __builtin_fmaf(w, x.v, v);
  }
  void
  MultiplyAdd(float w, const float * x)
  {
    v = __builtin_fmaf(w, *x, v);
  }
  void
  Store(float * out) const
  {
    *out = v;
  }
};
struct DoubleVector
{
  static constexpr std::int64_t Width = 1;
  double                        v;
  static DoubleVector
  Zero()
  {
    return { 0.0 };
  }
  void
  MultiplyAdd(double w, const double * x)
  {
    v = __builtin_fma(w, *x, v);
  }
  void
  Store(double * out) const
  {
    *out = v;
  }
};
#endif
