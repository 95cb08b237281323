/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, see chunkwiseCpuLevelFunctions.cxx.
#include "chunkwiseCpuDeconvolutionRows.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseDeconvolutionRules.h"

#include <algorithm>

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

/** Sums of the lanes of a row, in the order of its voxels. */
struct LaneSums
{
  static constexpr int Lanes = RowSum::Lanes;
  double               sums[Lanes]{};

  void
  Finish(std::int64_t first, double * lanes) const
  {
    for (int l = 0; l < Lanes; ++l)
    {
      lanes[(first + l) % Lanes] += sums[l];
    }
  }
};

/** body(i, lane) for the voxels of a row, so many lanes at a time that they fill registers. */
template <typename TBody>
CHUNKWISE_ALWAYS_INLINE void
ForLanes(std::int64_t n, TBody && body)
{
  constexpr int lanes = LaneSums::Lanes;
  std::int64_t  i = 0;
  for (; i + lanes <= n; i += lanes)
  {
    for (int l = 0; l < lanes; ++l)
    {
      body(i + l, l);
    }
  }
  for (int l = 0; i + l < n; ++l)
  {
    body(i + l, l);
  }
}

template <typename T>
void
Hide(T * __restrict measured, T * __restrict weights, bool isKnown, double saturation, std::int64_t n)
{
  constexpr T most = sizeof(T) == 4 ? T(3.4028234663852886e38) : T(1.7976931348623157e308);
  for (std::int64_t i = 0; i < n; ++i)
  {
    const T    d = measured[i];
    const T    w = isKnown ? T(1) : weights[i];
    const bool counts = (d >= -most) & (d <= most) & !(static_cast<double>(d) >= saturation) & (w > 0);
    measured[i] = counts ? d : T(0);
    weights[i] = counts ? w : T(0);
  }
}

template <typename T>
void
Mean(const T * __restrict measured, const T * __restrict weights, T background, std::int64_t first, double * size,
     double * light, std::int64_t n)
{
  LaneSums sizes;
  LaneSums lights;
  ForLanes(n, [&](std::int64_t i, int lane) {
    const T w = weights[i];
    sizes.sums[lane] += w;
    lights.sums[lane] += static_cast<double>(w) * (measured[i] - background);
  });
  sizes.Finish(first, size);
  lights.Finish(first, light);
}

template <bool VIsRatio, typename T>
void
RatioOf(T * __restrict blurred, const T * __restrict measured, const T * __restrict weights, T background, T least,
        std::int64_t first, double * divergence, double * misfit, std::int64_t n)
{
  LaneSums divergences;
  LaneSums misfits;
  ForLanes(n, [&](std::int64_t i, int lane) {
    const T                   b = blurred[i];
    const T                   d = measured[i];
    const T                   w = weights[i];
    const DeconvolutionMisfit terms(VIsRatio, b, d, w, background);
    divergences.sums[lane] += w > 0 ? terms.divergence : 0.0;
    misfits.sums[lane] += w > 0 ? terms.misfit : 0.0;
    blurred[i] = DeconvolutionRatio(VIsRatio, b, d, w, background, least);
  });
  divergences.Finish(first, divergence);
  misfits.Finish(first, misfit);
}

template <typename T>
void
Ratio(bool isRatio, T * blurred, const T * measured, const T * weights, T background, T least, std::int64_t first,
      double * divergence, double * misfit, std::int64_t n)
{
  const auto ratio = isRatio ? RatioOf<true, T> : RatioOf<false, T>;
  ratio(blurred, measured, weights, background, least, first, divergence, misfit, n);
}

template <typename T>
void
UpdateInPlace(T * __restrict u, const T * __restrict correction, const T * __restrict seen, double leastSeen,
              std::int64_t n)
{
  for (std::int64_t i = 0; i < n; ++i)
  {
    const T updated = RichardsonLucyUpdate(u[i], correction[i], seen[i]);
    u[i] = static_cast<double>(seen[i]) > leastSeen ? updated : T(0);
  }
}

template <typename T>
void
Update(T * after, const T * before, const T * correction, const T * seen, double leastSeen, std::int64_t n)
{
  if (after != before)
  {
    std::copy_n(before, n, after);
  }
  UpdateInPlace(after, correction, seen, leastSeen, n);
}

template <typename T>
void
Change(const T * __restrict after, const T * __restrict before, std::int64_t first, double * change, double * size,
       std::int64_t n)
{
  LaneSums changes;
  LaneSums sizes;
  ForLanes(n, [&](std::int64_t i, int lane) {
    const double now = static_cast<double>(after[i]);
    const double difference = now - static_cast<double>(before[i]);
    changes.sums[lane] += difference * difference;
    sizes.sums[lane] += now * now;
  });
  changes.Finish(first, change);
  sizes.Finish(first, size);
}

template <typename T>
void
Step(T * __restrict step, const T * __restrict after, const T * __restrict before, std::int64_t first, double * steps,
     double * oldStep, std::int64_t n)
{
  if (steps)
  {
    LaneSums products;
    LaneSums squares;
    ForLanes(n, [&](std::int64_t i, int lane) {
      const auto last = static_cast<double>(step[i]);
      products.sums[lane] += static_cast<double>(after[i] - before[i]) * last;
      squares.sums[lane] += last * last;
    });
    products.Finish(first, steps);
    squares.Finish(first, oldStep);
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    step[i] = after[i] - before[i];
  }
}

template <typename T>
DeconvolutionRowFunctions<T>
MakeFunctions()
{
  return { Hide<T>, Mean<T>, Ratio<T>, Update<T>, Change<T>, Step<T> };
}

DeconvolutionRowLevel
MakeDeconvolutionRowLevel()
{
  return { MakeFunctions<float>(), MakeFunctions<double>() };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
