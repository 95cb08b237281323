/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDomainVoxels_h
#define chunkwiseDomainVoxels_h

#include "chunkwiseDomainOperation.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseFootprintOperation.h"
#include "chunkwiseMoments.h"
#include "chunkwiseVaryingConvolutionOperation.h"

#include <cmath>
#include <vector>

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
  return IsFloatingPoint(PixelTypeOf<TOut>()) || !isNaN ? ConstantPixel<TOut>(value) : TOut(0);
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
    , truncates(quotient.truncates && !IsFloatingPoint(PixelTypeOf<TOut>()))
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
    // The quotient is not known if the sum of weights overflows: a pass in double may follow.
    const bool  isKnown = denominator <= std::numeric_limits<TReal>::max();
    const TReal result = isKnown ? numerator / denominator * whole : std::numeric_limits<TReal>::quiet_NaN();
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
      return FinishVariance<TOut>(
        VarianceOfSums(static_cast<std::int64_t>(sum), static_cast<Int128>(squares), static_cast<std::int64_t>(count)),
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

/** Whether a window is wholly inside: from the numbers of voxels that it sees and that lie inside the image, or,
 * for boxes of varying size, from the number of voxels that it does not see. */
struct WindowCount
{
  std::int64_t lower[MaxDimension]; ///< voxels of the window to either side of its center
  std::int64_t upper[MaxDimension];
  std::int64_t extent[MaxDimension];
  bool         cut;
  bool         isGiven;

  WindowCount(const DomainOperation & operation, const Box & image)
  {
    const auto         average = operation.GetAverage();
    const auto * const box = dynamic_cast<const BoxOperation *>(average.get());
    isGiven = average->GetName() == "boxstatistic";
    cut = dynamic_cast<const WindowedOperation &>(*average).boundary.mode == BoundaryMode::Renormalized;
    for (int a = 0; a < MaxDimension; ++a)
    {
      extent[a] = image.Extent(a);
      lower[a] = upper[a] = box ? box->EffectiveRadius(a, extent[a]) : 0;
    }
    if (!box)
    {
      this->TakeSides(dynamic_cast<const FootprintOperation &>(*average));
    }
  }

  /** Those of a footprint that is a box. */
  void
  TakeSides(const FootprintOperation & footprint)
  {
    for (const FootprintOperation::Run & run : footprint.GetRuns())
    {
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t last = run.first[a] + (a == 0 ? run.length - 1 : 0);
        lower[a] = -run.first[a] > lower[a] ? -run.first[a] : lower[a];
        upper[a] = last > upper[a] ? last : upper[a];
      }
    }
  }

  CHUNKWISE_HOST_DEVICE std::int64_t
                        Along(int a, std::int64_t i) const
  {
    const std::int64_t below = cut && i < lower[a] ? i : lower[a];
    const std::int64_t left = extent[a] - 1 - i;
    return below + 1 + (cut && left < upper[a] ? left : upper[a]);
  }
  CHUNKWISE_HOST_DEVICE bool
  IsWhole(const Coordinates & index, double number) const
  {
    std::int64_t count = isGiven ? 0 : 1;
    for (int a = 0; a < MaxDimension && !isGiven; ++a)
    {
      count *= Along(a, index.axis[a]);
    }
    return number == static_cast<double>(count);
  }
};

/** The sum of the kernel that a varying convolution has at a voxel, from those at its nodes. */
struct VaryingWhole
{
  std::int64_t   nodes[MaxDimension];
  double         first[MaxDimension];
  double         spacing[MaxDimension];
  const double * sums{ nullptr };

  explicit VaryingWhole(const VaryingConvolutionOperation & operation)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      nodes[a] = operation.nodes[a];
      first[a] = operation.first[a];
      spacing[a] = operation.spacing[a];
    }
  }

  static std::vector<double>
  MakeSums(const VaryingConvolutionOperation & operation)
  {
    std::vector<double> sums;
    for (const auto & kernel : operation.kernels)
    {
      sums.push_back(kernel->GetSum());
    }
    return sums;
  }

  CHUNKWISE_HOST_DEVICE double
  At(const Coordinates & index) const
  {
    std::int64_t below[MaxDimension];
    double       above[MaxDimension];
    for (int a = 0; a < MaxDimension; ++a)
    {
      const double last = static_cast<double>(nodes[a] - 1);
      double       at = (static_cast<double>(index.axis[a]) - first[a]) / spacing[a];
      at = at < 0 ? 0 : at > last ? last : at;
      below[a] = static_cast<std::int64_t>(at);
      above[a] = at - static_cast<double>(below[a]);
    }
    double whole = 0;
    for (int corner = 0; corner < 1 << MaxDimension; ++corner)
    {
      double       part = 1;
      std::int64_t node = 0;
      std::int64_t step = 1;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const bool upper = (corner >> a & 1) != 0;
        part *= upper ? above[a] : 1 - above[a];
        node += (below[a] + (upper ? 1 : 0)) * step;
        step *= nodes[a];
      }
      whole = part > 0 ? whole + part * sums[node] : whole;
    }
    return whole;
  }
};

/** The quotient rule where the whole varies. */
template <typename TOut>
struct VaryingRule
{
  VaryingWhole whole;
  TOut         empty;

  explicit VaryingRule(const DomainOperation & operation)
    : whole(dynamic_cast<const VaryingConvolutionOperation &>(*operation.window))
    , empty(EmptyPixel<TOut>(operation.emptyValue))
  {}

  CHUNKWISE_HOST_DEVICE TOut
  operator()(const Coordinates & index, double numerator, double denominator) const
  {
    const double all = whole.At(index);
    if (!(denominator > DomainOperation::TransformNoise * all))
    {
      return empty;
    }
    const double off = denominator - all;
    const bool   isWhole = (off < 0 ? -off : off) <= DomainOperation::TransformRounding * all;
    return ConvertResult<TOut>(isWhole ? numerator : numerator / denominator * all);
  }
};

} // namespace chunkwise

#endif
