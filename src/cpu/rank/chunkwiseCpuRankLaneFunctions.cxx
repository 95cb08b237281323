/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, see chunkwiseCpuLevelFunctions.cxx. Ranks of windows along one axis, a line
// in each lane of a vector: the sorted keys of a window lie in memory, and a step to the next window passes through
// them once.
#include "chunkwiseCpuMedianImplementation.h"
#include "chunkwiseCpuRankLanes.h"

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

template <typename TKey>
void
SlideLanes(const RankLanes<TKey> & lanes)
{
  using Vector = KeyVectorType<TKey>;
  constexpr std::int64_t width = KeyVector<TKey>::Width;
  const auto             keyAt = [&](std::int64_t row, std::int64_t lane) {
    return FlipKeys<TKey>(LoadKeys(lanes.keys + row * lanes.pitch + lane));
  };
  for (std::int64_t lane = 0; lane < RankLanes<TKey>::Width; lane += width)
  {
    TKey * const list = lanes.list;
    for (std::int64_t t = 0; t < lanes.taps; ++t)
    {
      Vector carried = keyAt(t, lane);
      for (std::int64_t i = 0; i < t; ++i)
      {
        const Vector key = LoadKeys(list + i * width);
        StoreKeys<TKey>(list + i * width, Pick<false, TKey>(key, carried));
        carried = Pick<true, TKey>(key, carried);
      }
      StoreKeys<TKey>(list + t * width, carried);
    }
    for (std::int64_t o = 0;; ++o)
    {
      StoreKeys<TKey>(lanes.results + o * lanes.pitch + lane, FlipKeys<TKey>(LoadKeys(list + lanes.rank * width)));
      if (o + 1 == lanes.outputs)
      {
        break;
      }
      // Keys from the one that leaves on move down; the one that enters pushes those above it up again.
      const Vector leaving = keyAt(o, lane);
      Vector       carried = keyAt(o + lanes.taps, lane);
      Vector       key = LoadKeys(list);
      for (std::int64_t i = 0; i + 1 < lanes.taps; ++i)
      {
        const Vector next = LoadKeys(list + (i + 1) * width);
        const Vector stays = key < leaving ? key : next;
        StoreKeys<TKey>(list + i * width, Pick<false, TKey>(stays, carried));
        carried = Pick<true, TKey>(stays, carried);
        key = next;
      }
      StoreKeys<TKey>(list + (lanes.taps - 1) * width, carried);
    }
  }
}

RankLaneLevel
MakeRankLaneLevel()
{
  return { SlideLanes<std::uint8_t>, SlideLanes<std::uint16_t>, SlideLanes<std::uint32_t>, SlideLanes<std::uint64_t> };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
