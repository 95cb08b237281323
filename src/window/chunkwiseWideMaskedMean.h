/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWideMaskedMean_h
#define chunkwiseWideMaskedMean_h

#include "chunkwiseDomainOperation.h"
#include "chunkwiseWideMean.h"
#include "chunkwiseWindow.h"

// The part of DomainOperation's arithmetic that replaces float means whose sums overflow, one source for every backend.
namespace chunkwise
{

/** Means of windows of float voxels in a mask or with weights, in double. Kernels use them where a float sum is not
 * finite.
 *
 * The order of additions is that of WideMean, for the sum of weighted voxels and for that of the weights, which are
 * rounded to float. Products are exact. Unless the quotient is NaN, it is the result. */
struct WideMaskedMean
{
  WideMean   window{};
  BufferView weights{}; ///< a mask of any integers, or weights; not read without `isGiven`
  bool       isGiven{ false };
  bool       ignoresNan{ false };

  WideMaskedMean() = default;
  /** `given`: the mask or the weights, if the domain has them. */
  WideMaskedMean(const DomainOperation & domain, const BufferView & voxels, const BufferView & given, const Box & image)
    : weights(given)
    , isGiven(domain.domain != DomainKind::All)
    , ignoresNan(domain.LeavesOutNan())
  {
    const auto & mean = dynamic_cast<const MeanOperation &>(*domain.window);
    window.in = voxels;
    window.extent = image.Extents();
    for (int a = 0; a < MaxDimension; ++a)
    {
      window.radius[a] = mean.EffectiveRadius(a, image.Extent(a));
    }
    window.mode = mean.boundary.mode;
    window.constant = ConstantPixel<float>(mean.boundary.constant);
  }

  /** Whether the results of a domain are such means. */
  static bool
  IsNeededBy(const DomainOperation & domain)
  {
    const auto * const mean = dynamic_cast<const MeanOperation *>(domain.window.get());
    return mean && !mean->sums && domain.imageKind == PixelType::Float32 && !domain.marksSeen && !domain.insideAlone;
  }

  /** The place where stages, which share the end of a call's scratch, say that a sum is not finite. */
  static constexpr std::size_t NoteBytes = 256;
  static std::uint32_t *
  GetNote(const KernelCall & call)
  {
    char * const end = static_cast<char *>(call.scratch) + call.scratchBytes;
    return reinterpret_cast<std::uint32_t *>(end - reinterpret_cast<std::uintptr_t>(end) % 64 - 64);
  }

  template <typename T>
  CHUNKWISE_HOST_DEVICE bool
  IsInside(std::int64_t offset) const
  {
    return static_cast<const T *>(weights.data)[offset] != T(0);
  }

  /** The weight of the voxel `value` at `index`, without what a mask or weights cannot be. */
  CHUNKWISE_HOST_DEVICE double
  WeightAt(const Coordinates & index, float value) const
  {
    if (ignoresNan && value != value)
    {
      return 0;
    }
    if (!isGiven)
    {
      return 1;
    }
    const std::int64_t offset = weights.Offset(index);
    switch (weights.kind)
    {
      case PixelType::Float32:
        return static_cast<double>(static_cast<const float *>(weights.data)[offset]);
      case PixelType::Float64:
        return static_cast<double>(static_cast<float>(static_cast<const double *>(weights.data)[offset]));
      case PixelType::UInt8:
      case PixelType::Int8:
        return this->IsInside<std::uint8_t>(offset) ? 1 : 0;
      case PixelType::UInt16:
      case PixelType::Int16:
        return this->IsInside<std::uint16_t>(offset) ? 1 : 0;
      case PixelType::UInt32:
      case PixelType::Int32:
        return this->IsInside<std::uint32_t>(offset) ? 1 : 0;
      default:
        return this->IsInside<std::uint64_t>(offset) ? 1 : 0;
    }
  }

  /** Adds the voxel at a position, or what lies there beyond the edge, times its weight. */
  CHUNKWISE_HOST_DEVICE void
  Add(const Coordinates & index, bool isInside, double & sum, double & total) const
  {
    if (!isInside)
    {
      sum += window.mode == BoundaryMode::Constant ? static_cast<double>(window.constant) : 0.0;
      total += window.mode == BoundaryMode::Constant ? 1 : 0;
      return;
    }
    const float  value = static_cast<const float *>(window.in.data)[window.in.Offset(index)];
    const double weight = this->WeightAt(index, value);
    if (weight > 0)
    {
      sum += static_cast<double>(value) * weight;
      total += weight;
    }
  }

  /** NaN where the window is empty. */
  CHUNKWISE_HOST_DEVICE double
  MeanAt(const Coordinates & index) const
  {
    double sum = 0;
    double total = 0;
    for (std::int64_t x = -window.radius.axis[0]; x <= window.radius.axis[0]; ++x)
    {
      std::int64_t tap[MaxDimension];
      for (int a = 1; a < MaxDimension; ++a)
      {
        tap[a] = -window.radius.axis[a];
      }
      tap[0] = x;
      double column = 0;
      double columnTotal = 0;
      for (int next = 1; next < MaxDimension;)
      {
        Coordinates at{};
        bool        isInside = true;
        for (int a = 0; a < MaxDimension; ++a)
        {
          isInside = window.FindTap(a, index.axis[a] + tap[a], at.axis[a]) && isInside;
        }
        this->Add(at, isInside, column, columnTotal);
        for (next = 1; next < MaxDimension && ++tap[next] > window.radius.axis[next]; ++next)
        {
          tap[next] = -window.radius.axis[next];
        }
      }
      sum += column;
      total += columnTotal;
    }
    return sum / total;
  }

  /** Whether the voxel, or its weight, is so large that sums may overflow. */
  CHUNKWISE_HOST_DEVICE bool
  IsLargeAt(const Coordinates & index, float leastLarge) const
  {
    const float  value = static_cast<const float *>(window.in.data)[window.in.Offset(index)];
    const double weight = this->WeightAt(index, value);
    const double product = static_cast<double>(value) * weight;
    return weight >= leastLarge || (IsFiniteFloat(value) && (product >= leastLarge || -product >= leastLarge));
  }
};

} // namespace chunkwise

#endif
