/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRearrangeOperation_h
#define chunkwiseRearrangeOperation_h

#include "chunkwiseBoundedGrid.h"
#include "chunkwisePixelValue.h"

namespace chunkwise
{

/** The voxels beyond the image. */
enum class RearrangeOutside
{
  Constant, ///< have a value
  Nearest,  ///< have the value of the nearest voxel
  Reflect,  ///< reflection about the edges: the first voxel is repeated
  Mirror,   ///< reflection about the centers of the first and the last voxel
  Wrap      ///< repetition
};

/** Copies voxels to another grid: crops, pads, flips and permutes axes.
 *
 * Along axis `source[a]` of the image, voxel `o` of the output has the index o[a] + offset[a], or offset[a] - o[a]
 * where `flips[a]`. Voxels keep their bits.
 *
 * Kernel "rearrange". */
class Chunkwise_EXPORT RearrangeOperation
  : public Operation
  , private BoundedGrid
{
public:
  /** The extents of both images. */
  Coordinates      image{};
  Coordinates      output{};
  int              source[MaxDimension]{ 0, 1, 2, 3, 4 };
  bool             flips[MaxDimension]{};
  Coordinates      offset{};
  RearrangeOutside outside{ RearrangeOutside::Constant };
  PixelValue       value{ 0 };

  /** The voxel of the image along axis source[a] for voxel `o` of the output along axis `a`; -1: it has the value. */
  std::int64_t
  MapVoxel(int a, std::int64_t o) const;

  std::string
  GetName() const override
  {
    return "rearrange";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  const OutputGrid *
  GetOutputGrid() const override
  {
    return this;
  }
  void
  CheckKinds(const std::vector<PixelKind> & inputs, PixelKind output) const override;
  void
  Validate(const Coordinates & extent) const override;

private:
  /** Voxels of the output along axis `a` that lie below and above the image. */
  void
  CountBeyond(int a, std::int64_t & below, std::int64_t & above) const;
  Coordinates
  GetExtent(const Coordinates & extent) const override;
  Box
  GetInputBox(const Box & box, const Coordinates & extent) const override;
  Coordinates
  GetMostInput(const Coordinates & box, const Coordinates & extent) const override;
};

/** The index of an axis of n voxels that stands at index `i`, which may be beyond them; -1: none does. */
CHUNKWISE_HOST_DEVICE inline std::int64_t
MapBeyond(std::int64_t i, std::int64_t n, RearrangeOutside outside)
{
  if (i >= 0 && i < n)
  {
    return i;
  }
  const std::int64_t period = outside == RearrangeOutside::Wrap      ? n
                              : outside == RearrangeOutside::Reflect ? 2 * n
                              : n > 1                                ? 2 * n - 2
                                                                     : 1;
  const std::int64_t m = (i % period + period) % period;
  switch (outside)
  {
    case RearrangeOutside::Constant:
      return -1;
    case RearrangeOutside::Nearest:
      return i < 0 ? 0 : n - 1;
    case RearrangeOutside::Reflect:
      return m < n ? m : 2 * n - 1 - m;
    case RearrangeOutside::Mirror:
      return m < n ? m : 2 * n - 2 - m;
    default:
      return m;
  }
}

} // namespace chunkwise

#endif
