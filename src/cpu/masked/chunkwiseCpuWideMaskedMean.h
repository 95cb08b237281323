/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuWideMaskedMean_h
#define chunkwiseCpuWideMaskedMean_h

#include "chunkwiseCpuTiles.h"
#include "chunkwiseWideMaskedMean.h"

namespace chunkwise
{

/** Replaces the results of a chunk that are not finite by the means that WideMaskedMean gives. */
template <typename TOut>
void
AmendMaskedMeans(const KernelCall & call, const WideMaskedMean & mean)
{
  const float leastLarge = mean.window.GetLeastLarge();
  bool        hasLarge = mean.window.mode == BoundaryMode::Constant && IsLargeFloat(mean.window.constant, leastLarge);
  const Box   box = mean.window.GetReadBox(call.output.box);
  ForEachRow(box, [&](Coordinates index) {
    for (std::int64_t x = 0; x < box.Extent(0) && !hasLarge; ++x, ++index[0])
    {
      hasLarge = mean.IsLargeAt(index, leastLarge);
    }
  });
  if (!hasLarge)
  {
    return; // Only windows with a NaN or an infinity have sums that are not finite, and they are right.
  }
  KernelCall part = call;
  part.control = nullptr; // its voxels are reported already
  ForEachTile(part, { { 1 << 20, 1, 1, 0, 0 } }, [&](const Box & tile, unsigned int) {
    ForEachRow(tile, [&](Coordinates index) {
      for (std::int64_t x = 0; x < tile.Extent(0); ++x, ++index[0])
      {
        TOut & result = static_cast<TOut *>(call.output.data)[call.output.Offset(index)];
        if (!(result - result == TOut(0)))
        {
          const double wide = mean.MeanAt(index);
          // A mean that is NaN in double is NaN in float already, or its window is empty.
          result = wide == wide ? static_cast<TOut>(wide) : result;
        }
      }
    });
  });
}

} // namespace chunkwise

#endif
