/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseElementOperation_h
#define chunkwiseElementOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** Base of operations over any set of offsets from each voxel: structuring elements and footprints. In Renormalized
 * mode the voxels are those inside the image. */
class Chunkwise_EXPORT ElementOperation : public WindowedOperation
{
public:
  /** Voxels of the largest box around an element. */
  static constexpr std::int64_t LargestElement = 1 << 21;

  Coordinates                radius{};
  std::vector<unsigned char> element; ///< of the box of 2 radius + 1 voxels an axis, x fastest; not 0: a tap

  /** Taps in a row along x: `length` of them from `first` on. */
  struct Run
  {
    std::int32_t first[MaxDimension];
    std::int32_t length;
  };
  /** In the order of the box, x fastest. */
  std::vector<Run>
  GetRuns() const;

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

} // namespace chunkwise

#endif
