/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFlatExtremumOperation_h
#define chunkwiseFlatExtremumOperation_h

#include "chunkwiseOperations.h"
#include "chunkwiseOrderedKey.h"

namespace chunkwise
{

/** The maximum or minimum over a flat structuring element: dilation or erosion with any set of offsets. Kernel
 * "extremum.flat".
 *
 * The result at a voxel is that of ExtremumOperation over the voxels at the element's offsets from it: exact, -0 is
 * less than +0, NaN are not seen, and a window of nothing but NaN, or of no voxel at all, gives NaN (of integers the
 * lowest for a maximum, the highest for a minimum). In Renormalized mode the voxels are those inside the image. The
 * output is the voxel, converted. */
class Chunkwise_EXPORT FlatExtremumOperation : public WindowedOperation
{
public:
  /** Voxels of the largest box around an element. */
  static constexpr std::int64_t LargestElement = 1 << 21;

  Coordinates                radius{};
  std::vector<unsigned char> element; ///< of the box of 2 radius + 1 voxels an axis, x fastest; not 0: a tap
  bool                       minimum{ false };

  /** Taps in a row along x: `length` of them from `first` on. */
  struct Run
  {
    std::int32_t first[MaxDimension];
    std::int32_t length;
  };
  std::vector<Run>
  GetRuns() const;

  std::string
  GetName() const override
  {
    return "extremum.flat";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates &) const override
  {
    return { radius, radius };
  }
  void
  Validate(const Coordinates & image) const override;
};

/** The voxel of the largest key of a window, which is Lowest if the window has no voxel. */
template <typename TPixel>
CHUNKWISE_HOST_DEVICE TPixel
FlatResult(typename OrderedKey<TPixel>::Type largest, typename OrderedKey<TPixel>::Type flip)
{
  using KeyOf = OrderedKey<TPixel>;
  if constexpr (!KeyOf::IsReal && sizeof(TPixel) < 4)
  {
    // Keys have more bits than these voxels.
    constexpr std::int32_t half = 1 << (8 * sizeof(TPixel) - 1);
    constexpr std::int32_t lowest = KeyOf::IsSigned ? -half : 0;
    return largest == KeyOf::Lowest ? static_cast<TPixel>(flip == 0 ? lowest : lowest + 2 * half - 1)
                                    : KeyOf::To(largest, flip);
  }
  else
  {
    return KeyOf::To(largest, flip);
  }
}

} // namespace chunkwise

#endif
