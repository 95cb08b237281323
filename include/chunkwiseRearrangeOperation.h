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
  Coordinates image{};
  Coordinates output{};
  int         source[MaxDimension]{ 0, 1, 2, 3, 4 };
  bool        flips[MaxDimension]{};
  Coordinates offset{};
  /** Along each axis of the output. */
  RearrangeOutside outside[MaxDimension]{};
  PixelValue       value{ 0 };

  void
  SetOutside(RearrangeOutside everywhere)
  {
    for (RearrangeOutside & each : outside)
    {
      each = everywhere;
    }
  }

  /** The place along axis source[a], in a buffer that holds `held`, of voxel `o` of the output along axis `a`; -1: it
   * has the value. */
  std::int64_t
  MapVoxel(int a, std::int64_t o, const Box & held) const;

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
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
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

/** The place in a buffer that holds [lower, upper) of what stands at index `i`, which may be beyond the n voxels of the
 * image; -1: a value. With Wrap an index that the buffer holds stands for itself: what wraps around may have been
 * loaded with it. */
CHUNKWISE_HOST_DEVICE inline std::int64_t
MapBeyond(std::int64_t i, std::int64_t n, RearrangeOutside outside, std::int64_t lower, std::int64_t upper)
{
  if ((i >= 0 && i < n) || (outside == RearrangeOutside::Wrap && i >= lower && i < upper))
  {
    return i - lower;
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
      return (i < 0 ? 0 : n - 1) - lower;
    case RearrangeOutside::Reflect:
      return (m < n ? m : 2 * n - 1 - m) - lower;
    case RearrangeOutside::Mirror:
      return (m < n ? m : 2 * n - 2 - m) - lower;
    default:
      return m - lower;
  }
}

} // namespace chunkwise

#endif
