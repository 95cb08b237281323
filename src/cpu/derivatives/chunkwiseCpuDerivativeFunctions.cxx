/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, see chunkwiseCpuLevelFunctions.cxx.
#include "chunkwiseCpuDerivativeRows.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuMarchRows.h"
#include "chunkwiseCpuPatchImplementation.h"
#include "chunkwiseCpuTogetherImplementation.h"

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

template <typename TReal, int VVectors, bool VSmooth, bool VOdd, bool VSecond>
CHUNKWISE_ALWAYS_INLINE void
DeriveBlock(const WholeDerivatives<TReal> & step, std::int64_t i)
{
  using V = RealVector<TReal>;
  using Vector = VectorOf<TReal>;
  const std::int64_t  radius = step.radius;
  const TReal * const center = step.rows[radius] + i;
  Vector              smooth[VVectors]{};
  Vector              odd[VVectors]{};
  Vector              second[VVectors]{};
  for (std::int64_t t = radius; t > 0; --t)
  {
    const TReal * const below = step.rows[radius - t] + i;
    const TReal * const above = step.rows[radius + t] + i;
    Vector              weights[DerivativesTogether]{};
    if constexpr (VSmooth)
    {
      weights[0] = step.weights[0][radius + t] - Vector{};
    }
    if constexpr (VOdd)
    {
      weights[1] = step.weights[1][radius + t] - Vector{};
    }
    if constexpr (VSecond)
    {
      weights[2] = step.weights[2][radius + t] - Vector{};
    }
#pragma GCC unroll 8
    for (int v = 0; v < VVectors; ++v)
    {
      const Vector low = V::Load(below + v * V::Width);
      const Vector high = V::Load(above + v * V::Width);
      if constexpr (VSmooth)
      {
        smooth[v] = Fuse<TReal>(weights[0], high + low, smooth[v]);
      }
      if constexpr (VOdd)
      {
        odd[v] = Fuse<TReal>(weights[1], high - low, odd[v]);
      }
      if constexpr (VSecond)
      {
        const Vector middle = V::Load(center + v * V::Width);
        second[v] = Fuse<TReal>(weights[2], (high - middle) + (low - middle), second[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < VVectors; ++v)
  {
    const Vector       middle = V::Load(center + v * V::Width);
    const std::int64_t at = i + v * V::Width;
    if constexpr (VSmooth)
    {
      V::Store(step.results[0] + at, Fuse<TReal>(step.weights[0][radius] - Vector{}, middle, smooth[v]));
    }
    if constexpr (VOdd)
    {
      V::Store(step.results[1] + at, odd[v]);
    }
    if constexpr (VSecond)
    {
      V::Store(step.results[2] + at, Fuse<TReal>(step.weights[2][radius] - Vector{}, middle, second[v]));
    }
  }
}

template <typename TReal, bool VSmooth, bool VOdd, bool VSecond>
void
DeriveRow(const WholeDerivatives<TReal> & step)
{
  constexpr int most = VSmooth && VOdd && VSecond ? 3 : 4;
  ForEachVectors<most>(0, CountVectors<TReal>(step.n), [&](std::int64_t first, auto vectors) {
    DeriveBlock<TReal, decltype(vectors)::value, VSmooth, VOdd, VSecond>(step, first * RealVector<TReal>::Width);
  });
}

template <typename TReal>
void
DeriveWhole(const WholeDerivatives<TReal> & step)
{
  const int kinds = (step.results[0] ? 1 : 0) + (step.results[1] ? 2 : 0) + (step.results[2] ? 4 : 0);
  switch (kinds)
  {
    case 1:
      return DeriveRow<TReal, true, false, false>(step);
    case 2:
      return DeriveRow<TReal, false, true, false>(step);
    case 3:
      return DeriveRow<TReal, true, true, false>(step);
    case 4:
      return DeriveRow<TReal, false, false, true>(step);
    case 5:
      return DeriveRow<TReal, true, false, true>(step);
    case 6:
      return DeriveRow<TReal, false, true, true>(step);
    default:
      return DeriveRow<TReal, true, true, true>(step);
  }
}

template <typename TReal, bool VLine, bool VDiffers>
void
DeriveCutRow(const CutDerivative<TReal> & step)
{
  using V = RealVector<TReal>;
  using Vector = VectorOf<TReal>;
  constexpr std::int64_t width = MarchLine / static_cast<std::int64_t>(sizeof(TReal));
  for (std::int64_t i = 0; i < step.n; i += V::Width)
  {
    const Vector center = V::Load(step.centers + i);
    Vector       sum{};
    for (std::int64_t t = 0; t < step.taps; ++t)
    {
      const Vector tap = V::Load(step.rows[t] + i);
      Vector       weight;
      if constexpr (VLine)
      {
        weight = V::Load(step.weights + t * width + i);
      }
      else
      {
        weight = step.weights[t] - Vector{};
      }
      Vector next;
      if constexpr (VDiffers)
      {
        next = Fuse<TReal>(weight, tap - center, sum);
      }
      else
      {
        next = Fuse<TReal>(weight, tap, sum);
      }
      if constexpr (VLine)
      {
        // Not a number: no tap.
        sum = weight == weight ? next : sum;
      }
      else
      {
        sum = next;
      }
    }
    V::Store(step.result + i, sum);
  }
}

template <typename TReal>
void
DeriveCut(const CutDerivative<TReal> & step)
{
  if (step.isLine)
  {
    step.differs ? DeriveCutRow<TReal, true, true>(step) : DeriveCutRow<TReal, true, false>(step);
  }
  else
  {
    step.differs ? DeriveCutRow<TReal, false, true>(step) : DeriveCutRow<TReal, false, false>(step);
  }
}

template <typename TReal>
void
DeriveMagnitude(const TReal * rows, std::int64_t gap, int count, std::int64_t n, TReal * out)
{
  using V = RealVector<TReal>;
  for (std::int64_t i = 0; i < n; i += V::Width)
  {
    VectorOf<TReal> sum{};
    for (int c = 0; c < count; ++c)
    {
      const VectorOf<TReal> d = V::Load(rows + c * gap + i);
      sum = Fuse<TReal>(d, d, sum);
    }
    V::Store(out + i, Root<TReal>(sum));
  }
}

template <typename TReal>
void
AddDerivatives(const TReal * rows, std::int64_t gap, int count, std::int64_t n, TReal * out)
{
  using V = RealVector<TReal>;
  for (std::int64_t i = 0; i < n; i += V::Width)
  {
    VectorOf<TReal> sum{};
    for (int c = 0; c < count; ++c)
    {
      sum = sum + V::Load(rows + c * gap + i);
    }
    V::Store(out + i, sum);
  }
}

using Doubles = VectorOf<double>;
using BitsOfDoubles [[gnu::vector_size(sizeof(Doubles))]] = std::uint64_t;

template <typename TReal>
CHUNKWISE_ALWAYS_INLINE Doubles
LoadDoubles(const TReal * from)
{
  if constexpr (sizeof(TReal) == 8)
  {
    return RealVector<double>::Load(from);
  }
  else
  {
    RealVector<double>::Float values;
    __builtin_memcpy(&values, from, sizeof(values));
    return __builtin_convertvector(values, Doubles);
  }
}

template <typename TReal>
CHUNKWISE_ALWAYS_INLINE void
StoreDoubles(TReal * to, const Doubles & values)
{
  if constexpr (sizeof(TReal) == 8)
  {
    RealVector<double>::Store(to, values);
  }
  else
  {
    const auto converted = __builtin_convertvector(values, RealVector<double>::Float);
    __builtin_memcpy(to, &converted, sizeof(converted));
  }
}

/** The upper triangles of the matrices of some voxels. */
template <typename TReal, int VSize>
CHUNKWISE_ALWAYS_INLINE void
LoadMatrix(const TReal * rows, std::int64_t gap, Doubles * h)
{
#pragma GCC unroll 8
  for (int c = 0; c < VSize * (VSize + 1) / 2; ++c)
  {
    h[c] = LoadDoubles(rows + c * gap);
  }
}

/** The eigenvalues of the matrices of some voxels, ascending. */
template <typename TReal, int VSize>
CHUNKWISE_ALWAYS_INLINE void
DeriveEigenvalues(const TReal * rows, std::int64_t gap, Doubles * values)
{
  Doubles h[VSize * (VSize + 1) / 2];
  LoadMatrix<TReal, VSize>(rows, gap, h);
  EigenvaluesOf(h, VSize, values, [](const Doubles & square) { return Root<double>(square); });
}

/** Calls f(constant) with the number of rows of a matrix. */
template <typename TFunctor>
CHUNKWISE_ALWAYS_INLINE void
WithMatrixSize(int size, TFunctor && f)
{
  switch (size)
  {
    case 1:
      return f(std::integral_constant<int, 1>{});
    case 2:
      return f(std::integral_constant<int, 2>{});
    default:
      return f(std::integral_constant<int, 3>{});
  }
}

template <typename TReal>
void
StoreEigenvalues(const TReal * rows, std::int64_t gap, int size, bool byMagnitude, std::int64_t n, TReal * out)
{
  WithMatrixSize(size, [&](auto constant) {
    constexpr int rank = decltype(constant)::value;
    for (std::int64_t i = 0; i < n; i += RealVector<double>::Width)
    {
      Doubles values[3]{};
      DeriveEigenvalues<TReal, rank>(rows + i, gap, values);
      if (byMagnitude)
      {
        for (int step = 0; step < 3; ++step)
        {
          const int first = step % 2;
          if (first + 1 < rank)
          {
            OrderByMagnitude(values[first], values[first + 1]);
          }
        }
      }
      for (int v = 0; v < rank; ++v)
      {
        StoreDoubles(out + v * gap + i, values[v]);
      }
    }
  });
}

template <typename TReal>
void
StoreMeasure(const TReal * rows, std::int64_t gap, int size, const HessianMeasureParameters & parameters,
             std::int64_t n, TReal * out)
{
  WithMatrixSize(size, [&](auto constant) {
    constexpr int rank = decltype(constant)::value;
    for (std::int64_t i = 0; i < n; i += RealVector<double>::Width)
    {
      Doubles values[3]{};
      DeriveEigenvalues<TReal, rank>(rows + i, gap, values);
      StoreDoubles(out + i,
                   HessianMeasureOf<Doubles, BitsOfDoubles>(
                     values, rank, parameters, [](const Doubles & square) { return Root<double>(square); }));
    }
  });
}

template <typename TReal>
void
StoreCurvature(const TReal * rows, std::int64_t gap, int size, const CurvatureParameters & parameters, std::int64_t n,
               TReal * out)
{
  const auto root = [](const Doubles & square) { return Root<double>(square); };
  const auto store = [&](auto constant) {
    constexpr int rank = decltype(constant)::value;
    constexpr int count = rank + rank * (rank + 1) / 2;
    for (std::int64_t i = 0; i < n; i += RealVector<double>::Width)
    {
      Doubles d[count];
#pragma GCC unroll 9
      for (int c = 0; c < count; ++c)
      {
        d[c] = LoadDoubles(rows + c * gap + i);
      }
      StoreDoubles(out + i, CurvatureOf(d, rank, parameters, root));
    }
  };
  size == 2 ? store(std::integral_constant<int, 2>{}) : store(std::integral_constant<int, 3>{});
}

template <typename TReal>
void
StoreTensor(const TReal * rows, std::int64_t gap, int size, DerivativeResult result,
            const TensorParameters & parameters, std::int64_t n, TReal * out)
{
  const auto root = [](const Doubles & square) { return Root<double>(square); };
  WithMatrixSize(size, [&](auto constant) {
    constexpr int rank = decltype(constant)::value;
    for (std::int64_t i = 0; i < n; i += RealVector<double>::Width)
    {
      Doubles h[rank * (rank + 1) / 2];
      LoadMatrix<TReal, rank>(rows + i, gap, h);
      Doubles values[3]{};
      EigenvaluesOf(h, rank, values, root);
      if (result == DerivativeResult::Direction)
      {
        Doubles direction[3]{};
        DirectionOf(h, values, rank, direction, root);
        for (int v = 0; v < rank; ++v)
        {
          StoreDoubles(out + v * gap + i, direction[v]);
        }
        continue;
      }
      if (result == DerivativeResult::Eigenvectors)
      {
        Doubles vectors[rank * rank];
        EigenvectorsOf(h, values, rank, vectors, root);
        for (int v = 0; v < rank * rank; ++v)
        {
          StoreDoubles(out + v * gap + i, vectors[v]);
        }
        continue;
      }
      if (result == DerivativeResult::Diffusivity)
      {
        Doubles tensor[rank * (rank + 1) / 2];
        DiffusionTensorOf<Doubles, BitsOfDoubles>(h, values, rank, parameters, tensor, root);
        for (int c = 0; c < rank * (rank + 1) / 2; ++c)
        {
          StoreDoubles(out + c * gap + i, tensor[c]);
        }
        continue;
      }
      StoreDoubles(out + i,
                   result == DerivativeResult::Coherence ? CoherenceOf(values, rank)
                                                         : CornernessOf(values, rank, parameters.harris));
    }
  });
}

template <typename TReal>
void
MakeProducts(TReal * rows, std::int64_t gap, int size, std::int64_t n)
{
  using V = RealVector<TReal>;
  TReal * const factors = rows + size * (size - 1) / 2 * gap;
  for (std::int64_t i = 0; i < n; i += V::Width)
  {
    VectorOf<TReal> d[3]{};
    for (int c = 0; c < size; ++c)
    {
      d[c] = V::Load(factors + c * gap + i);
    }
    TReal * to = rows + i;
    for (int c = 0; c < size; ++c)
    {
      for (int other = c; other < size; ++other, to += gap)
      {
        V::Store(to, d[c] * d[other]);
      }
    }
  }
}

template <typename TReal>
DerivativeFunctions<TReal>
DerivativeRows()
{
  return { DeriveWhole<TReal>,    DeriveCut<TReal>,        DeriveMagnitude<TReal>,
           AddDerivatives<TReal>, StoreEigenvalues<TReal>, StoreTensor<TReal>,
           MakeProducts<TReal>,   StoreMeasure<TReal>,     StoreCurvature<TReal> };
}

DerivativeLevel
MakeDerivativeLevel()
{
  return { DerivativeRows<float>(), DerivativeRows<double>() };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
