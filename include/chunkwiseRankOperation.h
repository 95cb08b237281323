/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRankOperation_h
#define chunkwiseRankOperation_h

#include "chunkwiseOperations.h"
#include "chunkwiseOrderedKey.h"

namespace chunkwise
{

/** The voxel of a given rank in a box: the median, or any other percentile. Kernel "rank".
 *
 * The result is number floor(fraction (n - 1)) of the n voxels in ascending order, counted from 0: the median of an
 * even number of voxels is the lower of the two in the middle. The result is one of the voxels of the window, so that
 * it is exact on every backend and in whatever order the window is seen. -0 is less than +0. NaN are not seen; a window
 * of nothing but NaN gives NaN. In Renormalized mode the voxels are those inside the image; in every other mode the
 * image is first continued beyond its edge, in Constant mode by the constant converted to the input's kind. The output
 * is the voxel, converted.
 *
 * With `isCounted` a second input, of float32 or float64, says of each voxel how many n of its window's voxels are
 * seen: the others are the lowest of them. If n is 0, the result is any number. */
class Chunkwise_EXPORT RankOperation : public BoxOperation
{
public:
  /** From 0, the minimum, to 1, the maximum. */
  double fraction{ 0.5 };
  bool   isCounted{ false };

  std::string
  GetName() const override
  {
    return "rank";
  }
  std::string
  GetKey() const override
  {
    return BoxOperation::GetKey() + " " + ExactText(fraction) + (isCounted ? " counted" : "");
  }
  int
  GetNumberOfInputs() const override
  {
    return isCounted ? 2 : 1;
  }
  void
  Validate(const Coordinates & image) const override;
};

/** Voxels as unsigned integers of the same size in the same order. A NaN is 0, which no number is. */
template <typename TPixel>
struct RankKey
{
  static constexpr bool IsReal = static_cast<TPixel>(0.5) != static_cast<TPixel>(0);
  using Type =
    std::conditional_t<sizeof(TPixel) == 1, std::uint8_t,
                       std::conditional_t<sizeof(TPixel) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(TPixel) == 4, std::uint32_t, std::uint64_t>>>;
  static constexpr Type Sign = static_cast<Type>(Type{ 1 } << (8 * sizeof(Type) - 1));

  CHUNKWISE_HOST_DEVICE static CHUNKWISE_ALWAYS_INLINE Type
  From(TPixel pixel)
  {
    if constexpr (IsReal)
    {
      return static_cast<Type>(OrderedKey<TPixel>::From(pixel, 0)) ^ Sign;
    }
    else
    {
      return static_cast<Type>(static_cast<Type>(pixel) ^
                               (static_cast<TPixel>(-1) < static_cast<TPixel>(0) ? Sign : 0));
    }
  }

  CHUNKWISE_HOST_DEVICE static CHUNKWISE_ALWAYS_INLINE TPixel
  To(Type key)
  {
    if constexpr (IsReal)
    {
      return OrderedKey<TPixel>::To(static_cast<typename OrderedKey<TPixel>::Type>(key ^ Sign), 0);
    }
    else
    {
      return static_cast<TPixel>(key ^ (static_cast<TPixel>(-1) < static_cast<TPixel>(0) ? Sign : 0));
    }
  }
};

/** The number, from 0 on, of the result in a window of n voxels of which `absent` are NaN: these are the lowest. */
CHUNKWISE_HOST_DEVICE inline std::int64_t
RankIn(std::int64_t n, std::int64_t absent, double fraction)
{
  return n > absent ? absent + static_cast<std::int64_t>(fraction * static_cast<double>(n - absent - 1)) : 0;
}

} // namespace chunkwise

#endif
