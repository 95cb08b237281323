/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Groups of chunkwiseCpuTableFunctions.cxx, which includes this, for any processor: a quarter of a block in a step.

constexpr std::int64_t StepGroups = TableQuarter;

template <typename T>
struct Groups
{
  using Quarters = T;
  T v[StepGroups];

  static CHUNKWISE_ALWAYS_INLINE Groups
  Load(const T * p)
  {
    Groups g;
    for (int i = 0; i < StepGroups; ++i)
    {
      g.v[i] = p[i];
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE void
  Store(T * p) const
  {
    for (int i = 0; i < StepGroups; ++i)
    {
      p[i] = v[i];
    }
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  operator+(const Groups & other) const
  {
    Groups g;
    for (int i = 0; i < StepGroups; ++i)
    {
      g.v[i] = v[i] + other.v[i];
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Squared() const
  {
    Groups g;
    for (int i = 0; i < StepGroups; ++i)
    {
      g.v[i] = v[i] * v[i];
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  After(T left) const
  {
    Groups g;
    for (int i = 0; i < StepGroups; ++i)
    {
      g.v[i] = left + v[i];
    }
    return g;
  }
  CHUNKWISE_ALWAYS_INLINE T
  Last() const
  {
    return v[StepGroups - 1];
  }
  CHUNKWISE_ALWAYS_INLINE Groups
  Before(Quarters & quarters) const
  {
    T scanned[4][StepGroups];
    for (int i = 0; i < StepGroups; ++i)
    {
      scanned[0][i] = v[i];
    }
    for (int step = 0; step < 3; ++step)
    {
      const int d = 1 << step;
      for (int i = 0; i < StepGroups; ++i)
      {
        scanned[step + 1][i] = i >= d ? scanned[step][i - d] + scanned[step][i] : scanned[step][i];
      }
    }
    Groups g;
    for (int i = 0; i < StepGroups; ++i)
    {
      g.v[i] = quarters + (i > 0 ? scanned[3][i - 1] : T{ 0 });
    }
    quarters = quarters + scanned[3][StepGroups - 1];
    return g;
  }
};

inline Groups<double>
Widened(const Groups<float> & groups)
{
  Groups<double> g;
  for (int i = 0; i < StepGroups; ++i)
  {
    g.v[i] = static_cast<double>(groups.v[i]);
  }
  return g;
}

inline void
Narrow(Groups<float> & to, const Groups<double> & groups)
{
  for (int i = 0; i < StepGroups; ++i)
  {
    to.v[i] = static_cast<float>(groups.v[i]);
  }
}

template <typename T, typename TIn>
void
Load(Groups<T> (&columns)[TableGroup], const TIn * in)
{
  for (int i = 0; i < StepGroups; ++i)
  {
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      columns[c].v[i] = static_cast<T>(in[TableGroup * i + c]);
    }
  }
}

template <typename TOut>
void
Store(TOut * out, const Groups<double> (&columns)[TableGroup])
{
  for (int i = 0; i < StepGroups; ++i)
  {
#pragma GCC unroll 4
    for (int c = 0; c < TableGroup; ++c)
    {
      out[TableGroup * i + c] = static_cast<TOut>(columns[c].v[i]);
    }
  }
}
