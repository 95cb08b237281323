/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, see chunkwiseCpuLevelFunctions.cxx.
#include "chunkwiseCpuDiffusionRows.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuMarchRows.h"
#include "chunkwiseCpuPatchImplementation.h"
#include "chunkwiseCpuTogetherImplementation.h"
#include "chunkwiseDiffusionRules.h"

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

using BitsOfDoubles [[gnu::vector_size(sizeof(VectorOf<double>))]] = std::uint64_t;
using BitsOfFloats [[gnu::vector_size(sizeof(VectorOf<float>))]] = std::uint32_t;

/** exp(-t) for t >= 0. */
CHUNKWISE_ALWAYS_INLINE VectorOf<float>
                        Decay(VectorOf<float> t)
{
  return FloatDecayOf<VectorOf<float>, BitsOfFloats>(t);
}

CHUNKWISE_ALWAYS_INLINE VectorOf<double>
                        Decay(VectorOf<double> t)
{
  return ExponentialOfMinus<VectorOf<double>, BitsOfDoubles>(t);
}

/** A neighbor, or the voxel itself in place of one that is NaN and takes no part. */
template <typename TVector>
CHUNKWISE_ALWAYS_INLINE TVector
Beside(TVector neighbor, TVector here, bool skipsNan)
{
  return skipsNan ? (neighbor == neighbor ? neighbor : here) : neighbor;
}

/** A number, or 0 if it is NaN because of a voxel that takes no part. */
template <typename TVector>
CHUNKWISE_ALWAYS_INLINE TVector
NumberOrZero(TVector x, bool skipsNan)
{
  return skipsNan ? (x == x ? x : TVector{}) : x;
}

template <typename TReal, bool VCurvature, int VOthers>
void
MakeFluxOf(const FluxStep<TReal> & step)
{
  using V = RealVector<TReal>;
  using Vector = VectorOf<TReal>;
  const int others = VOthers < 0 ? step.others : VOthers;
  for (std::int64_t i = 0; i < step.n; i += V::Width)
  {
    const Vector here = V::Load(step.here + i);
    const Vector next = V::Load(step.next + i);
    const auto   beside = [&](const TReal * row, Vector own) { return Beside(V::Load(row + i), own, step.skipsNan); };
    const Vector d = (next - here) * step.scale;
    Vector       square = d * d;
    for (int j = 0; j < others; ++j)
    {
      const Vector sum = (beside(step.hereAfter[j], here) - beside(step.hereBefore[j], here)) +
                         (beside(step.nextAfter[j], next) - beside(step.nextBefore[j], next));
      const Vector mean = sum * step.half[j] * TReal(0.5);
      square = square + mean * mean;
    }
    Vector flux = d * Decay(square * step.inverse);
    if constexpr (VCurvature)
    {
      flux = flux / Root<TReal>(square + TReal(1e-10));
    }
    V::Store(step.flux + i, NumberOrZero(flux, step.skipsNan));
  }
}

template <typename TReal>
void
MakeFlux(const FluxStep<TReal> & step)
{
  if (step.isCurvature)
  {
    step.others == 2   ? MakeFluxOf<TReal, true, 2>(step)
    : step.others == 1 ? MakeFluxOf<TReal, true, 1>(step)
                       : MakeFluxOf<TReal, true, -1>(step);
    return;
  }
  step.others == 2   ? MakeFluxOf<TReal, false, 2>(step)
  : step.others == 1 ? MakeFluxOf<TReal, false, 1>(step)
                     : MakeFluxOf<TReal, false, -1>(step);
}

template <typename TReal>
void
MakeCoherenceFlux(const FluxStep<TReal> & step)
{
  using V = RealVector<TReal>;
  using Vector = VectorOf<TReal>;
  for (std::int64_t i = 0; i < step.n; i += V::Width)
  {
    const Vector here = V::Load(step.here + i);
    const Vector next = V::Load(step.next + i);
    const auto   beside = [&](const TReal * row, Vector own) { return Beside(V::Load(row + i), own, step.skipsNan); };
    const Vector d = (next - here) * step.scale;
    Vector       mixedHere{};
    Vector       mixedNext{};
    for (int j = 0; j < step.others; ++j)
    {
      const Vector ofHere = (beside(step.hereAfter[j], here) - beside(step.hereBefore[j], here)) * step.half[j];
      const Vector ofNext = (beside(step.nextAfter[j], next) - beside(step.nextBefore[j], next)) * step.half[j];
      mixedHere = mixedHere + V::Load(step.hereTensor[1 + j] + i) * ofHere;
      mixedNext = mixedNext + V::Load(step.nextTensor[1 + j] + i) * ofNext;
    }
    const Vector direct = (V::Load(step.hereTensor[0] + i) + V::Load(step.nextTensor[0] + i)) * d;
    V::Store(step.flux + i, NumberOrZero(CoherenceFluxOf(direct, mixedHere + mixedNext, step.scale), step.skipsNan));
  }
}

template <typename TReal>
void
AddFlux(TReal * sum, const TReal * after, TReal * before, bool isFirst, bool keeps, std::int64_t n)
{
  using V = RealVector<TReal>;
  for (std::int64_t i = 0; i < n; i += V::Width)
  {
    const VectorOf<TReal> next = V::Load(after + i);
    const VectorOf<TReal> difference = next - V::Load(before + i);
    V::Store(sum + i, isFirst ? difference : V::Load(sum + i) + difference);
    if (keeps)
    {
      V::Store(before + i, next);
    }
  }
}

template <typename TReal>
void
UpdateByFlux(const NeighborStep<TReal> & step, const TReal * sum, TReal timeStep)
{
  using V = RealVector<TReal>;
  for (std::int64_t i = 0; i < step.n; i += V::Width)
  {
    V::Store(step.out + i, V::Load(step.here + i) + V::Load(sum + i) * timeStep);
  }
}

template <typename TReal>
void
UpdateByCurvature(const NeighborStep<TReal> & step, const TReal * sum, TReal timeStep)
{
  using V = RealVector<TReal>;
  using Vector = VectorOf<TReal>;
  for (std::int64_t i = 0; i < step.n; i += V::Width)
  {
    const Vector here = V::Load(step.here + i);
    const Vector speed = V::Load(sum + i);
    Vector       square{};
    for (int a = 0; a < step.axes; ++a)
    {
      const Vector forward = (Beside(V::Load(step.after[a] + i), here, step.skipsNan) - here) * step.scale[a];
      const Vector backward = (here - Beside(V::Load(step.before[a] + i), here, step.skipsNan)) * step.scale[a];
      square = square + UpwindSquareOf(forward, backward, speed);
    }
    V::Store(step.out + i, here + Root<TReal>(square) * speed * timeStep);
  }
}

template <typename TReal>
void
SquareGradient(const NeighborStep<TReal> & step)
{
  using V = RealVector<TReal>;
  using Vector = VectorOf<TReal>;
  for (std::int64_t i = 0; i < step.n; i += V::Width)
  {
    const Vector here = V::Load(step.here + i);
    Vector       square{};
    for (int a = 0; a < step.axes; ++a)
    {
      const Vector after = Beside(V::Load(step.after[a] + i), here, step.skipsNan);
      const Vector before = Beside(V::Load(step.before[a] + i), here, step.skipsNan);
      const Vector d = (after - before) * (step.scale[a] * TReal(0.5));
      square = square + d * d;
    }
    V::Store(step.out + i, step.skipsNan ? (here == here ? square : here) : square);
  }
}

template <typename TReal>
void
StepDual(const VariationStep<TReal> & step)
{
  using V = RealVector<TReal>;
  using Vector = VectorOf<TReal>;
  for (std::int64_t i = 0; i < step.n; i += V::Width)
  {
    const Vector here = V::Load(step.here + i);
    Vector       p[DiffusionAxes];
    Vector       square{};
    for (int a = 0; a < step.axes; ++a)
    {
      const Vector rise = NumberOrZero(V::Load(step.after[a] + i) - here, step.skipsNan);
      p[a] = V::Load(step.dual[a] + i) + rise * (step.scale[a] * step.step);
      square = square + p[a] * p[a];
    }
    const Vector length = Root<TReal>(square);
    const Vector factor = DualFactorOf(length, step.weight);
    for (int a = 0; a < step.axes; ++a)
    {
      V::Store(step.dual[a] + i, p[a] * factor);
    }
  }
}

template <typename TReal>
void
StepPrimal(const VariationStep<TReal> & step)
{
  using V = RealVector<TReal>;
  using Vector = VectorOf<TReal>;
  const TReal share = TReal(1) / (TReal(1) + step.step);
  for (std::int64_t i = 0; i < step.n; i += V::Width)
  {
    Vector divergence{};
    for (int a = 0; a < step.axes; ++a)
    {
      const Vector before = step.before[a] ? V::Load(step.before[a] + i) : Vector{};
      divergence = divergence + (V::Load(step.dual[a] + i) - before) * step.scale[a];
    }
    const Vector old = V::Load(step.state + i);
    const Vector next = NextPrimalOf(old, divergence, V::Load(step.image + i), step.step, share);
    V::Store(step.state + i, next);
    V::Store(step.out + i, (next + next) - old);
  }
}

template <typename TReal>
DiffusionFunctions<TReal>
DiffusionRows()
{
  return { MakeFlux<TReal>,          MakeCoherenceFlux<TReal>, AddFlux<TReal>,  UpdateByFlux<TReal>,
           UpdateByCurvature<TReal>, SquareGradient<TReal>,    StepDual<TReal>, StepPrimal<TReal> };
}

DiffusionLevel
MakeDiffusionLevel()
{
  return { DiffusionRows<float>(), DiffusionRows<double>() };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
