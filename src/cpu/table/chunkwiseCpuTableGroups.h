/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Groups of chunkwiseCpuTableFunctions.cxx, which includes this, in vectors of the compiler: a quarter of a block in a
// step, since sums of floats, the results, and what they are made of then stay in registers. Vectors of 64 bytes are
// not faster (docs/notes/table.md).

#if defined(__GNUC__) && defined(__AVX2__)
constexpr int VectorBytes = 32;
#else
constexpr int VectorBytes = 16;
#endif
constexpr int StepGroups = static_cast<int>(TableQuarter);

template <int... I>
struct Indices
{};
/** Indices<0, ..., N - 1>. */
template <int N, int... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...>
{};
template <int... I>
struct MakeIndices<0, I...>
{
  using Type = Indices<I...>;
};

#if defined(__GNUC__)
template <typename T, int N>
struct LanesOf
{
  typedef T Type __attribute__((vector_size(N * sizeof(T))));
};
#else
template <typename T, int N>
struct LanesOf
{
  struct Type
  {
    T lane[N];

    T &
    operator[](int i)
    {
      return lane[i];
    }
    const T &
    operator[](int i) const
    {
      return lane[i];
    }
    friend Type
    operator+(Type a, const Type & b)
    {
      for (int i = 0; i < N; ++i)
      {
        a.lane[i] += b.lane[i];
      }
      return a;
    }
    friend Type
    operator*(Type a, const Type & b)
    {
      for (int i = 0; i < N; ++i)
      {
        a.lane[i] *= b.lane[i];
      }
      return a;
    }
  };
};
#endif

/** Numbers of a vector. */
template <typename T>
constexpr int LanesIn = VectorBytes / static_cast<int>(sizeof(T));
template <typename T>
using Lanes = typename LanesOf<T, LanesIn<T>>::Type;

template <typename T>
CHUNKWISE_ALWAYS_INLINE Lanes<T>
                        LoadLanes(const T * from)
{
  Lanes<T> lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}
template <typename T>
CHUNKWISE_ALWAYS_INLINE void
StoreLanes(T * to, const Lanes<T> & lanes)
{
  std::memcpy(to, &lanes, sizeof(lanes));
}

template <typename T, typename TPick, int... I>
CHUNKWISE_ALWAYS_INLINE Lanes<T>
                        PickOf(const Lanes<T> & a, const Lanes<T> & b, Indices<I...>)
{
#if defined(__clang__)
  return __builtin_shufflevector(a, b, TPick::At(I)...);
#elif defined(__GNUC__)
  using Place = typename Choice<sizeof(T) == 4, std::int32_t, std::int64_t>::Type;
  return __builtin_shuffle(a, b, Lanes<Place>{ TPick::At(I)... });
#else
  return { { (TPick::At(I) < LanesIn<T> ? a[TPick::At(I) % LanesIn<T>] : b[TPick::At(I) % LanesIn<T>])... } };
#endif
}
/** Lane i of the result is lane TPick::At(i) of `a` with `b` behind it. */
template <typename T, typename TPick>
CHUNKWISE_ALWAYS_INLINE Lanes<T>
                        Pick(const Lanes<T> & a, const Lanes<T> & b)
{
  return PickOf<T, TPick>(a, b, typename MakeIndices<LanesIn<T>>::Type());
}

template <int VLane>
struct Same
{
  static constexpr int
  At(int)
  {
    return VLane;
  }
};
/** All lanes from VFirst on. */
template <int VFirst>
struct From
{
  static constexpr int
  At(int i)
  {
    return VFirst + i;
  }
};
/** Lane 0 of the first of two vectors of N lanes, the other lanes of the second. */
template <int N>
struct FirstOfOther
{
  static constexpr int
  At(int i)
  {
    return i == 0 ? 0 : N + i;
  }
};
/** Half VHalf of the first, and behind it that of the second. */
template <int N, int VHalf>
struct Halves
{
  static constexpr int
  At(int i)
  {
    return VHalf * N / 2 + i % (N / 2) + i / (N / 2) * N;
  }
};
/** Half VHalf of each part of VPart lanes of both, lane by lane in turn. */
template <int N, int VPart, int VHalf>
struct InTurn
{
  static constexpr int
  At(int i)
  {
    return i / VPart * VPart + VHalf * VPart / 2 + i % VPart / 2 + i % 2 * N;
  }
};

/** The last D lanes of `before`, then all of `lanes` but the last D. */
template <typename T, int D>
CHUNKWISE_ALWAYS_INLINE Lanes<T>
                        Move(const Lanes<T> & before, const Lanes<T> & lanes)
{
  constexpr int N = LanesIn<T>;
  if constexpr (VectorBytes == 16 && N == 4 && D == 1)
  {
    // SSE2 has no instruction that moves lanes of two vectors.
    return Pick<T, FirstOfOther<N>>(Pick<T, Same<N - 1>>(before, before), Pick<T, From<N - 1>>(lanes, lanes));
  }
  else
  {
    return Pick<T, From<N - D>>(before, lanes);
  }
}

/** One column of each of the StepGroups groups that a step of the loops takes. */
template <typename T>
struct Groups
{
  using Quarters = Lanes<T>; ///< of which every lane is the same
  static constexpr int L = LanesIn<T>;
  static constexpr int N = StepGroups / L;

  Lanes<T> v[N];

  static CHUNKWISE_ALWAYS_INLINE Groups
  Load(const T * p)
  {
    Groups g;
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = LoadLanes<T>(p + L * k);
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE void
  Store(T * p) const
  {
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      StoreLanes<T>(p + L * k, v[k]);
    }
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  operator+(const Groups & other) const
  {
    Groups g;
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = v[k] + other.v[k];
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
      g.v[k] = v[k] * v[k];
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  After(T left) const
  {
    Lanes<T> all{};
#pragma GCC unroll 8
    for (int i = 0; i < L; ++i)
    {
      all[i] = left;
    }
    Groups g;
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = all + v[k];
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE T
  Last() const
  {
    return v[N - 1][L - 1];
  }
  /** These are totals of groups: gives the sum of the groups before each. `quarters` is the sum of the quarters before
   * the step, and then of the step's too. */
  CHUNKWISE_ALWAYS_INLINE Groups
  Before(Quarters & quarters) const
  {
    Groups t = *this;
    t.template AddBefore<1>();
    t.template AddBefore<2>();
    t.template AddBefore<4>();
    Groups g;
#pragma GCC unroll 4
    for (int k = 0; k < N; ++k)
    {
      g.v[k] = quarters + Move<T, 1>(k > 0 ? t.v[k - 1] : Lanes<T>{}, t.v[k]);
    }
    quarters = quarters + Pick<T, Same<L - 1>>(t.v[N - 1], t.v[N - 1]);
    return g;
  }

private:
  /** Adds to each number that D before it, if there is one. */
  template <int D>
  CHUNKWISE_ALWAYS_INLINE void
  AddBefore()
  {
#pragma GCC unroll 4
    for (int k = N - 1; k >= 0; --k)
    {
      if constexpr (D < L)
      {
        v[k] = Move<T, D>(k > 0 ? v[k - 1] : Lanes<T>{}, v[k]) + v[k];
      }
      else if (k >= D / L)
      {
        v[k] = v[k - D / L] + v[k];
      }
    }
  }
};

// The compiler's own conversions of vectors take several instructions.
#if defined(__GNUC__) && defined(__AVX2__)
CHUNKWISE_ALWAYS_INLINE Groups<double>
                        Widened(const Groups<float> & groups)
{
  return { { _mm256_cvtps_pd(_mm256_castps256_ps128(groups.v[0])),
             _mm256_cvtps_pd(_mm256_extractf128_ps(groups.v[0], 1)) } };
}
CHUNKWISE_ALWAYS_INLINE void
Narrow(Groups<float> & to, const Groups<double> & groups)
{
  to.v[0] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(groups.v[0])), _mm256_cvtpd_ps(groups.v[1]), 1);
}
#elif defined(__GNUC__) && defined(__SSE2__)
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
#else
CHUNKWISE_ALWAYS_INLINE Groups<double>
                        Widened(const Groups<float> & groups)
{
  Groups<double> g{};
#  pragma GCC unroll 8
  for (int i = 0; i < StepGroups; ++i)
  {
    g.v[i / Groups<double>::L][i % Groups<double>::L] =
      static_cast<double>(groups.v[i / Groups<float>::L][i % Groups<float>::L]);
  }
  return g;
}
CHUNKWISE_ALWAYS_INLINE void
Narrow(Groups<float> & to, const Groups<double> & groups)
{
#  pragma GCC unroll 8
  for (int i = 0; i < StepGroups; ++i)
  {
    to.v[i / Groups<float>::L][i % Groups<float>::L] =
      static_cast<float>(groups.v[i / Groups<double>::L][i % Groups<double>::L]);
  }
}
#endif

/** Lanes of a part of a vector, of 16 bytes, within which instructions move them: a group, or half of one. */
template <typename T>
constexpr int LanesInPart = 16 / static_cast<int>(sizeof(T));

/** Lanes of both in turn, those of the first halves of parts and those of the others. */
template <typename T>
CHUNKWISE_ALWAYS_INLINE void
TakeInTurn(const Lanes<T> & a, const Lanes<T> & b, Lanes<T> & low, Lanes<T> & high)
{
  low = Pick<T, InTurn<LanesIn<T>, LanesInPart<T>, 0>>(a, b);
  high = Pick<T, InTurn<LanesIn<T>, LanesInPart<T>, 1>>(a, b);
}

/** The vectors of four times as many columns as they have lanes, in which each has every fourth part of the columns, to
 * one for each column of groups. */
template <typename T>
CHUNKWISE_ALWAYS_INLINE void
ToColumns(Lanes<T> (&v)[TableGroup])
{
  Lanes<T> a[TableGroup];
  TakeInTurn<T>(v[0], v[2], a[0], a[1]);
  TakeInTurn<T>(v[1], v[3], a[2], a[3]);
  if constexpr (LanesInPart<T> == TableGroup)
  {
    TakeInTurn<T>(a[0], a[2], v[0], v[1]);
    TakeInTurn<T>(a[1], a[3], v[2], v[3]);
  }
  else
  {
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      v[c] = a[c];
    }
  }
}
/** And back. */
template <typename T>
CHUNKWISE_ALWAYS_INLINE void
FromColumns(Lanes<T> (&v)[TableGroup])
{
  if constexpr (LanesInPart<T> == TableGroup)
  {
    ToColumns<T>(v);
  }
  else
  {
    Lanes<T> a[TableGroup];
    TakeInTurn<T>(v[0], v[1], a[0], a[2]);
    TakeInTurn<T>(v[2], v[3], a[1], a[3]);
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      v[c] = a[c];
    }
  }
}

template <typename T>
CHUNKWISE_ALWAYS_INLINE void
Load(Groups<T> (&columns)[TableGroup], const T * in)
{
  constexpr int L = LanesIn<T>;
#pragma GCC unroll 4
  for (int k = 0; k < Groups<T>::N; ++k)
  {
    Lanes<T> v[TableGroup];
#pragma GCC unroll 4
    for (int i = 0; i < TableGroup; ++i)
    {
#if defined(__GNUC__) && defined(__AVX2__)
      const float * const p = reinterpret_cast<const float *>(in + TableGroup * L * k + LanesInPart<T> * i);
      v[i] = reinterpret_cast<Lanes<T>>(
        _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 4 * TableGroup), 1));
#else
      v[i] = LoadLanes<T>(in + TableGroup * L * k + L * i);
#endif
    }
    ToColumns<T>(v);
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      columns[c].v[k] = v[c];
    }
  }
}

template <typename T>
CHUNKWISE_ALWAYS_INLINE void
StoreColumns(T * out, const Groups<T> (&columns)[TableGroup])
{
  constexpr int L = LanesIn<T>;
#pragma GCC unroll 4
  for (int k = 0; k < Groups<T>::N; ++k)
  {
    Lanes<T> v[TableGroup] = { columns[0].v[k], columns[1].v[k], columns[2].v[k], columns[3].v[k] };
    FromColumns<T>(v);
#pragma GCC unroll 2
    for (int i = 0; i < TableGroup; i += 2)
    {
      if constexpr (L == LanesInPart<T>)
      {
        StoreLanes<T>(out + L * (TableGroup * k + i), v[i]);
        StoreLanes<T>(out + L * (TableGroup * k + i + 1), v[i + 1]);
      }
      else
      {
        T * const p = out + TableGroup * L * k + L / 2 * i;
        StoreLanes<T>(p, Pick<T, Halves<L, 0>>(v[i], v[i + 1]));
        StoreLanes<T>(p + L / 2 * TableGroup, Pick<T, Halves<L, 1>>(v[i], v[i + 1]));
      }
    }
  }
}

CHUNKWISE_ALWAYS_INLINE void
Store(double * out, const Groups<double> (&columns)[TableGroup])
{
  StoreColumns(out, columns);
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
  StoreColumns(out, narrow);
}
