/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuRankCounts_h
#define chunkwiseCpuRankCounts_h

#include "chunkwiseCpuTiles.h"
#include "chunkwiseRankOperation.h"

namespace chunkwise
{

/** How many voxels each window sees, where an operation's second input says so. */
class RankCounts
{
public:
  explicit RankCounts(const KernelCall & call)
    : RankCounts(call, static_cast<const RankOperation &>(*call.operation).isCounted)
  {}
  RankCounts(const KernelCall & call, bool isGiven)
    : m_View(call.inputs[1])
    , m_IsGiven(isGiven)
  {}

  bool
  IsGiven() const
  {
    return m_IsGiven;
  }
  /** Calls f(counts) with the counts of a row, side by side, as bytes, floats or doubles. */
  template <typename TFunctor>
  void
  WithRow(const Coordinates & at, TFunctor && f) const
  {
    const std::int64_t offset = m_View.Offset(at);
    if (m_View.kind == PixelType::UInt8)
    {
      f(static_cast<const std::uint8_t *>(m_View.data) + offset);
    }
    else if (m_View.kind == PixelType::Float32)
    {
      f(static_cast<const float *>(m_View.data) + offset);
    }
    else
    {
      f(static_cast<const double *>(m_View.data) + offset);
    }
  }
  /** Voxels of a window of n that are not seen; `lost` of them are NaN. */
  std::int64_t
  AbsentAt(const Coordinates & at, std::int64_t n, std::int64_t lost) const
  {
    if (m_IsGiven)
    {
      WithRow(at, [&](auto counts) { lost = n - static_cast<std::int64_t>(*counts); });
    }
    return lost;
  }

private:
  BufferView m_View;
  bool       m_IsGiven;
};

/** Leaves out what sees nothing at both ends of a row, but for a few. */
template <typename TCount>
inline void
CutEnds(const TCount * seen, std::int64_t & begin, std::int64_t & end)
{
  constexpr std::int64_t few = 32;
  const auto             isEmpty = [&](std::int64_t first) {
    int any = 0;
    for (std::int64_t i = 0; i < few; ++i)
    {
      any |= seen[first + i] > TCount(0) ? 1 : 0;
    }
    return any == 0;
  };
  while (end - begin >= few && isEmpty(begin))
  {
    begin += few;
  }
  while (end - begin >= few && isEmpty(end - few))
  {
    end -= few;
  }
}

} // namespace chunkwise

#endif
