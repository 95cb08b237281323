/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuRankLanes_h
#define chunkwiseCpuRankLanes_h

#include <cstdint>

namespace chunkwise
{

/** Windows along lines that lie side by side: key number i of line l is keys[i * pitch + l], and so are the results. */
template <typename TKey>
struct RankLanes
{
  /** Lines that are computed together: a line of the cache. */
  static constexpr std::int64_t Width = 64 / static_cast<std::int64_t>(sizeof(TKey));

  const TKey * keys{ nullptr };
  TKey *       results{ nullptr };
  TKey *       list{ nullptr }; ///< memory for Width keys a tap
  std::int64_t pitch{ 0 };
  std::int64_t taps{ 0 };
  std::int64_t outputs{ 0 };
  /** The number of the key that is found, from 0 on: the same one in all windows. */
  std::int64_t rank{ 0 };
};

/** The functions for an instruction set. */
struct RankLaneLevel
{
  void (*slide8)(const RankLanes<std::uint8_t> & lanes);
  void (*slide16)(const RankLanes<std::uint16_t> & lanes);
  void (*slide32)(const RankLanes<std::uint32_t> & lanes);
  void (*slide64)(const RankLanes<std::uint64_t> & lanes);
};

} // namespace chunkwise

#endif
