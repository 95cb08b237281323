/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuRankTile_h
#define chunkwiseCpuRankTile_h

#include <cstdint>

namespace chunkwise
{

/** Outputs of a tile along its first axis, and along the other two. */
constexpr std::int64_t RankTileWidth = 64;
constexpr std::int64_t RankTileSide = 16;
/** Voxels that are counted in bytes before anyone looks. */
constexpr std::int64_t RankTileBatch = 128;
/** Places that are looked at together: as many can be read beyond the last. */
constexpr std::int64_t RankTileLook = 16;

/** The item that a tile sorts. */
struct RankTileItem
{
  std::uint64_t key;
  std::uint32_t place;
};

/** A tile of outputs along three axes, and the memory that finding their ranks takes. See chunkwiseCpuRankTiles.h. */
template <typename TKey>
struct RankTile
{
  /** The voxels of all windows, dense. */
  TKey *       keys{ nullptr };
  std::int64_t sides[3]{};
  /** Outputs, up to the numbers above. */
  std::int64_t outputs[3]{};
  /** How far windows reach to both sides. */
  std::int64_t lowers[3]{};
  std::int64_t uppers[3]{};
  /** The offsets of the voxels from the first output. */
  std::int64_t shifts[3]{};
  /** The ranks of outputs: RankTileWidth in a row, RankTileSide rows in a plane, outputs[2] planes. */
  std::int32_t * ranks{ nullptr };
  TKey *         results{ nullptr };
  /** Voxels of a window at the most. */
  std::int64_t taps{ 0 };

  /** Voxels in the order of their keys: where each is. */
  std::uint32_t * places{ nullptr };
  void *          items[2]{ nullptr, nullptr };
  std::uint32_t * histograms{ nullptr };
  std::uint8_t *  rows{ nullptr };
  std::uint8_t *  sums{ nullptr };
  std::uint8_t *  masks{ nullptr };
  std::uint32_t * left{ nullptr };
  std::uint32_t * found{ nullptr };
};

/** A digit of a key, and how many there are. */
template <typename TKey>
constexpr int RankTileDigitBits = sizeof(TKey) <= 2 ? 8 : 11;
template <typename TKey>
constexpr int RankTileDigits =
  (8 * static_cast<int>(sizeof(TKey)) + RankTileDigitBits<TKey> - 1) / RankTileDigitBits<TKey>;

} // namespace chunkwise

#endif
