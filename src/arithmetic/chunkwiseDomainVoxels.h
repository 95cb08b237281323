/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDomainVoxels_h
#define chunkwiseDomainVoxels_h

#include "chunkwiseDomainOperation.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseMoments.h"

#include <cmath>

// The arithmetic of DomainOperation voxel by voxel, one source for every backend.
namespace chunkwise
{

/** Text of the error. */
constexpr const char * WrongWeight =
  "WeightImage: a weight is negative, infinite or not a number; weights are finite numbers of 0 and more";

template <typename TWeight>
CHUNKWISE_HOST_DEVICE bool
IsWeight(TWeight weight)
{
  return weight >= TWeight(0) && weight - weight == TWeight(0);
}

/** A voxel times its weight; 0, whatever it is, where it has none. */
template <typename TOut, typename TPixel, typename TWeight>
CHUNKWISE_HOST_DEVICE TOut
WeighedVoxel(TPixel voxel, TWeight weight)
{
  if constexpr (static_cast<TWeight>(0.5) == static_cast<TWeight>(0))
  {
    return weight != 0 ? static_cast<TOut>(voxel) : TOut(0);
  }
  else
  {
    return weight != TWeight(0) ? static_cast<TOut>(static_cast<TOut>(voxel) * weight) : TOut(0);
  }
}

/** The same of its square. */
template <typename TOut, typename TPixel, typename TWeight>
CHUNKWISE_HOST_DEVICE TOut
WeighedSquare(TPixel voxel, TWeight weight)
{
  if constexpr (static_cast<TOut>(0.5) == static_cast<TOut>(0))
  {
    const auto wide = static_cast<std::int64_t>(voxel);
    return weight != 0 ? static_cast<TOut>(wide * wide) : TOut(0);
  }
  else
  {
    const auto real = static_cast<TOut>(voxel);
    return weight != TWeight(0) ? static_cast<TOut>(weight) * (real * real) : TOut(0);
  }
}

/** A voxel inside; what a maximum, or with VHighest a minimum, does not see where it is outside. */
template <bool VHighest, typename TPixel>
CHUNKWISE_HOST_DEVICE TPixel
SeenVoxel(TPixel voxel, std::uint8_t inside)
{
  if constexpr (static_cast<TPixel>(0.5) != static_cast<TPixel>(0))
  {
    return inside != 0 ? voxel : static_cast<TPixel>(__builtin_nanf(""));
  }
  else
  {
    constexpr bool   isSigned = static_cast<TPixel>(-1) < static_cast<TPixel>(0);
    constexpr int    bits = static_cast<int>(8 * sizeof(TPixel));
    constexpr TPixel lowest =
      isSigned ? static_cast<TPixel>(static_cast<std::uint64_t>(1) << (bits - 1)) : static_cast<TPixel>(0);
    constexpr TPixel highest = static_cast<TPixel>(~lowest);
    return inside != 0 ? voxel : VHighest ? highest : lowest;
  }
}

/** A voxel inside; what no voxel is less than where it is outside. */
template <typename TPixel>
CHUNKWISE_HOST_DEVICE TPixel
VoxelOrLeast(TPixel voxel, bool inside)
{
  if constexpr (static_cast<TPixel>(0.5) != static_cast<TPixel>(0))
  {
    return inside ? voxel : static_cast<TPixel>(-__builtin_inff());
  }
  else
  {
    return SeenVoxel<false>(voxel, inside ? 1 : 0);
  }
}

/** The result of an empty window. */
template <typename TOut>
TOut
EmptyPixel(const PixelValue & value)
{
  const bool isNaN = !value.IsInteger() && value.ToDouble() != value.ToDouble();
  return IsFloatingPoint(PixelKindOf<TOut>()) || !isNaN ? ConstantPixel<TOut>(value) : TOut(0);
}

/** TReal: what is divided in. */
template <typename TOut, typename TReal>
struct QuotientRule
{
  double least;
  double most;
  TReal  whole;
  double nothing;
  bool   truncates;
  TOut   empty;

  QuotientRule(const DomainOperation & operation, const DomainOperation::Quotient & quotient)
    : least(quotient.least)
    , most(quotient.most)
    , whole(static_cast<TReal>(quotient.whole))
    , nothing(quotient.nothing * quotient.whole)
    , truncates(quotient.truncates)
    , empty(EmptyPixel<TOut>(operation.emptyValue))
  {}

  CHUNKWISE_HOST_DEVICE TOut
  operator()(TReal numerator, TReal denominator) const
  {
    if (!(denominator > static_cast<TReal>(nothing)))
    {
      return empty;
    }
    if (denominator >= static_cast<TReal>(least) && denominator <= static_cast<TReal>(most))
    {
      return ConvertResult<TOut>(numerator);
    }
    const TReal result = numerator / denominator * whole;
    return ConvertResult<TOut>(truncates ? std::trunc(result) : result);
  }
};

template <typename TOut>
struct DomainVarianceRule
{
  bool exact;
  bool takesRoot;
  TOut empty;

  explicit DomainVarianceRule(const DomainOperation & operation)
    : exact(operation.IsExact())
    , takesRoot(operation.TakesRoot())
    , empty(EmptyPixel<TOut>(operation.emptyValue))
  {}

  CHUNKWISE_HOST_DEVICE TOut
  operator()(double sum, double squares, double count) const
  {
    if (!(count > 0))
    {
      return empty;
    }
    if (exact)
    {
      __extension__ using Wide = __int128;
      return FinishVariance<TOut>(
        VarianceOfSums(static_cast<std::int64_t>(sum), static_cast<Wide>(squares), static_cast<std::int64_t>(count)),
        takesRoot);
    }
    const double variance = (squares - sum * (sum / count)) / count;
    return FinishVariance<TOut>(variance < 0 ? 0.0 : variance, takesRoot);
  }
};

/** The bins of an entropy's voxels; a further one is of those outside. */
struct DomainBins
{
  double lower;
  double scale;
  int    bins;

  explicit DomainBins(const DomainOperation & operation)
  {
    const auto & entropy = dynamic_cast<const EntropyOperation &>(*operation.window);
    lower = entropy.lower;
    scale = entropy.bins / (entropy.upper - entropy.lower);
    bins = entropy.bins;
  }

  template <typename TPixel>
  CHUNKWISE_HOST_DEVICE std::uint16_t
                        operator()(TPixel voxel, bool inside) const
  {
    return inside ? BinOf(voxel, lower, scale, bins) : static_cast<std::uint16_t>(bins);
  }
};

/** Voxels of a window that lie inside the image: of all axes but x, and along x. */
struct WindowCount
{
  std::int64_t radius[MaxDimension];
  std::int64_t extent[MaxDimension];
  bool         cut;

  WindowCount(const DomainOperation & operation, const Box & image)
  {
    const auto & box = dynamic_cast<const BoxOperation &>(*operation.window);
    cut = box.boundary.mode == BoundaryMode::Renormalized;
    for (int a = 0; a < MaxDimension; ++a)
    {
      extent[a] = image.Extent(a);
      radius[a] = box.EffectiveRadius(a, extent[a]);
    }
  }

  CHUNKWISE_HOST_DEVICE std::int64_t
                        Along(int a, std::int64_t i) const
  {
    const std::int64_t below = cut && i < radius[a] ? i : radius[a];
    const std::int64_t left = extent[a] - 1 - i;
    return below + 1 + (cut && left < radius[a] ? left : radius[a]);
  }
  CHUNKWISE_HOST_DEVICE std::int64_t
                        At(const Coordinates & index) const
  {
    std::int64_t count = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      count *= Along(a, index.axis[a]);
    }
    return count;
  }
};

} // namespace chunkwise

#endif
