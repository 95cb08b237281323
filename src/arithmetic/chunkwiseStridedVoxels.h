/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStridedVoxels_h
#define chunkwiseStridedVoxels_h

#include <cstddef>
#include <cstdint>
#include <cstring>

// Rows of voxels that lie apart, as those of one component of a pixel do, from and to rows where they lie side by side.
namespace chunkwise
{

/** Copies `count` voxels of VSize bytes that lie `fromStride` and `toStride` voxels apart. */
template <std::size_t VSize>
inline void
CopyStrided(char * to, std::int64_t toStride, const char * from, std::int64_t fromStride, std::int64_t count)
{
  constexpr auto size = static_cast<std::int64_t>(VSize);
  const auto     copy = [&](std::int64_t toStep, std::int64_t fromStep) {
    for (std::int64_t i = 0; i < count; ++i)
    {
      std::memcpy(to + i * toStep, from + i * fromStep, VSize);
    }
  };
  // Two, three and four components have separate loops with constant steps.
  const std::int64_t stride = toStride == 1 ? fromStride : toStride;
  const bool         gathers = toStride == 1;
  switch (toStride == 1 || fromStride == 1 ? stride : 0)
  {
    case 2:
      return gathers ? copy(size, 2 * size) : copy(2 * size, size);
    case 3:
      return gathers ? copy(size, 3 * size) : copy(3 * size, size);
    case 4:
      return gathers ? copy(size, 4 * size) : copy(4 * size, size);
    default:
      return copy(toStride * size, fromStride * size);
  }
}

/** The same for voxels of 1, 2, 4 or 8 bytes. */
inline void
CopyStrided(std::size_t size, void * to, std::int64_t toStride, const void * from, std::int64_t fromStride,
            std::int64_t count)
{
  auto * const       target = static_cast<char *>(to);
  const auto * const source = static_cast<const char *>(from);
  switch (size)
  {
    case 1:
      return CopyStrided<1>(target, toStride, source, fromStride, count);
    case 2:
      return CopyStrided<2>(target, toStride, source, fromStride, count);
    case 4:
      return CopyStrided<4>(target, toStride, source, fromStride, count);
    default:
      return CopyStrided<8>(target, toStride, source, fromStride, count);
  }
}

/** Voxels that are made, or used, at a time where a row has others between them. */
constexpr std::int64_t StridedPiece = 512;

/** Calls make(to, first, count) for pieces of a row of `n` voxels, which are then stored `stride` voxels apart. */
template <typename TMake>
inline void
MakeStrided(std::size_t size, void * row, std::int64_t stride, std::int64_t n, TMake && make)
{
  if (stride == 1)
  {
    make(static_cast<char *>(row), std::int64_t{ 0 }, n);
    return;
  }
  alignas(64) char piece[StridedPiece * 8];
  for (std::int64_t first = 0; first < n; first += StridedPiece)
  {
    const std::int64_t count = n - first < StridedPiece ? n - first : StridedPiece;
    make(static_cast<char *>(piece), first, count);
    CopyStrided(
      size, static_cast<char *>(row) + first * stride * static_cast<std::int64_t>(size), stride, piece, 1, count);
  }
}

/** Calls use(from, first, count) for pieces of a row of `n` voxels that lie `stride` voxels apart. */
template <typename TUse>
inline void
UseStrided(std::size_t size, const void * row, std::int64_t stride, std::int64_t n, TUse && use)
{
  if (stride == 1)
  {
    use(static_cast<const char *>(row), std::int64_t{ 0 }, n);
    return;
  }
  alignas(64) char piece[StridedPiece * 8];
  for (std::int64_t first = 0; first < n; first += StridedPiece)
  {
    const std::int64_t count = n - first < StridedPiece ? n - first : StridedPiece;
    CopyStrided(
      size, piece, 1, static_cast<const char *>(row) + first * stride * static_cast<std::int64_t>(size), stride, count);
    use(static_cast<const char *>(piece), first, count);
  }
}

} // namespace chunkwise

#endif
