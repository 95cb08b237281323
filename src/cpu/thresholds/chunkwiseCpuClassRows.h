/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuClassRows_h
#define chunkwiseCpuClassRows_h

#include "chunkwiseCpuTiles.h"

#include <algorithm>

namespace chunkwise
{

/** The classes of a part of a row, so that code exists for each type of the image, and for each type of the output, but
 * not for each pair. */
struct ClassRow
{
  static constexpr std::int64_t Most = 512;

  Coordinates  at; ///< its first voxel
  std::int64_t n;
  std::uint8_t classes[Most];

  /** 0 where the mask is 0. */
  void
  Hide(const BufferView & mask);
  void
  Store(const BufferView & output) const;
};

/** Calls classify(row) for all parts of rows of the output, hides what is outside the mask, if there is one, and stores
 * the classes. */
template <typename TFunctor>
void
ForEachClassRow(const KernelCall & call, const BufferView * mask, TFunctor && classify)
{
  const Coordinates plane = { { 1 << 20, 16, 0, 0, 0 } };
  ForEachTile(call, plane, [&](const Box & tile, unsigned int) {
    ForEachRow(tile, [&](const Coordinates & at) {
      ClassRow row;
      row.at = at;
      for (std::int64_t rest = tile.Extent(0); rest > 0; rest -= row.n, row.at[0] += row.n)
      {
        row.n = std::min(rest, ClassRow::Most);
        classify(row);
        if (mask)
        {
          row.Hide(*mask);
        }
        row.Store(call.output);
      }
    });
  });
}

} // namespace chunkwise

#endif
