/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseOracle_h
#define chunkwiseOracle_h

#include "chunkwiseOperations.h"
#include "chunkwiseTestOperations.h"

#include <cmath>
#include <vector>

namespace chunkwise
{
namespace oracle
{

/** The position that a window reads at position `i` of an axis with `n` voxels, straight from the names of the boundary
 * modes; false if there is nothing but the constant. */
inline bool
Look(std::int64_t & i, std::int64_t n, BoundaryMode mode)
{
  while (i < 0 || i >= n)
  {
    switch (mode)
    {
      case BoundaryMode::ZeroFluxNeumann:
        i = i < 0 ? 0 : n - 1;
        break;
      case BoundaryMode::Mirror:
        i = i < 0 ? -1 - i : 2 * n - 1 - i;
        break;
      case BoundaryMode::MirrorCenter:
        i = n == 1 ? 0 : i < 0 ? -i : 2 * (n - 1) - i;
        break;
      case BoundaryMode::Periodic:
        i += i < 0 ? n : -n;
        break;
      default:
        return false;
    }
  }
  return true;
}

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

template <typename T>
struct MeanParts
{
  Wide        integerSum{ 0 };
  long double realSum{ 0 };
  /** Sum of absolute values, for error bounds. */
  long double magnitude{ 0 };
  Wide        count{ 0 };
};

/** The sum and count of the window around `index`. */
template <typename T>
MeanParts<T>
SumWindow(const BufferView & image, const Coordinates & index, const Coordinates & radius,
          const WindowBoundary & boundary)
{
  MeanParts<T> parts;
  Box          window{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] = index[a] - radius[a];
    window.upper[a] = index[a] + radius[a] + 1;
  }
  ForEachIndex(window, [&](Coordinates tap) {
    bool there = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      there = Look(tap[a], image.box.upper[a], boundary.mode) && there;
    }
    if (!there && boundary.mode == BoundaryMode::Renormalized)
    {
      return;
    }
    const T value = there ? At<T>(image, tap) : static_cast<T>(boundary.constant);
    parts.integerSum += std::is_integral<T>::value ? static_cast<Wide>(value) : 0;
    parts.realSum += static_cast<long double>(value);
    parts.magnitude += std::fabs(static_cast<long double>(value));
    ++parts.count;
  });
  return parts;
}

/** sum / count rounded to nearest, ties to even, by trying the candidates. */
inline Wide
RoundedQuotient(Wide sum, Wide count)
{
  Wide below = sum / count;
  while (below * count > sum)
  {
    --below;
  }
  const Wide twice = 2 * (sum - below * count);
  if (twice == count)
  {
    return below % 2 == 0 ? below : below + 1;
  }
  return twice > count ? below + 1 : below;
}

/** The weighted sum of the window around `index`: the product of the axes' kernels, over the sum of its part inside the
 * image in Renormalized mode. Also what the absolute values give. */
template <typename T>
std::pair<long double, long double>
WeighWindow(const BufferView & image, const Coordinates & index, const SeparableOperation & operation)
{
  Box window{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    window.lower[a] = index[a] - operation.Radius(a);
    window.upper[a] = index[a] + operation.Radius(a) + 1;
  }
  long double sum = 0;
  long double magnitude = 0;
  long double inside = 0;
  ForEachIndex(window, [&](const Coordinates & at) {
    long double weight = 1;
    Coordinates tap = at;
    bool        there = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      weight *= operation.weights[a].empty()
                  ? 1.0L
                  : static_cast<long double>(operation.weights[a][static_cast<std::size_t>(at[a] - window.lower[a])]);
      there = Look(tap[a], image.box.upper[a], operation.boundary.mode) && there;
    }
    if (!there && operation.boundary.mode == BoundaryMode::Renormalized)
    {
      return;
    }
    const long double value =
      there ? static_cast<long double>(At<T>(image, tap)) : static_cast<long double>(operation.boundary.constant);
    sum += weight * value;
    magnitude += std::fabs(weight * value);
    inside += weight;
  });
  const long double norm = operation.boundary.mode == BoundaryMode::Renormalized ? inside : 1.0L;
  return { sum / norm, magnitude / std::fabs(norm) };
}

} // namespace oracle
} // namespace chunkwise

#endif
