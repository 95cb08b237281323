/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuRowStore_h
#define chunkwiseCpuRowStore_h

#include "chunkwiseCpuRowOutput.h"
#include "chunkwiseCpuTiles.h"

// The code of a kernel between reading its input and storing its output does not depend on the pixel types. It calls a
// function for each tile that it reads and for each row that it stores, so that it is compiled once, not once for each
// pair of kinds. Rows of large outputs go past the caches, so that who stores them ends that (CpuLevel::endStream)
// before others read them; ForEachTile does.
namespace chunkwise
{

/** Stores a row of `n` results as pixels of the output, from its voxel `at` on. */
template <typename TFrom>
using RowStore = void (*)(const BufferView & output, const Coordinates & at, std::int64_t n, const TFrom * results);

template <typename TFrom, typename TOut>
void
StoreResults(const BufferView & output, const Coordinates & at, std::int64_t n, const TFrom * results)
{
  RowOutput(output, 1).Make(at, n, [results](char * to, std::int64_t first, std::int64_t count) {
    TOut * const pixels = reinterpret_cast<TOut *>(to);
    for (std::int64_t i = 0; i < count; ++i)
    {
      pixels[i] = ConvertResult<TOut>(results[first + i]);
    }
  });
}

/** The function for an output's kind. */
template <typename TFrom>
RowStore<TFrom>
RowStoreOf(PixelType kind)
{
  return DispatchPixelType(kind, [](auto out) -> RowStore<TFrom> { return StoreResults<TFrom, decltype(out)>; });
}

} // namespace chunkwise

#endif
