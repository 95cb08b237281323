/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFlatExtremumOperation_h
#define chunkwiseFlatExtremumOperation_h

#include "chunkwiseElementOperation.h"
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
class Chunkwise_EXPORT FlatExtremumOperation : public ElementOperation
{
public:
  bool minimum{ false };

  std::string
  GetName() const override
  {
    return "extremum.flat";
  }
  std::string
  GetKey() const override
  {
    return ElementOperation::GetKey() + (minimum ? " minimum" : " maximum");
  }
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
