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
    : m_View(call.inputs[1])
    , m_IsGiven(static_cast<const RankOperation &>(*call.operation).isCounted)
  {}

  bool
  IsGiven() const
  {
    return m_IsGiven;
  }
  std::int64_t
  At(const Coordinates & at) const
  {
    const std::int64_t offset = m_View.Offset(at);
    return static_cast<std::int64_t>(m_View.kind == PixelKind::Float32
                                       ? static_cast<const float *>(m_View.data)[offset]
                                       : static_cast<const double *>(m_View.data)[offset]);
  }
  /** Voxels of a window of n that are not seen; `lost` of them are NaN. */
  std::int64_t
  AbsentAt(const Coordinates & at, std::int64_t n, std::int64_t lost) const
  {
    return m_IsGiven ? n - At(at) : lost;
  }

private:
  BufferView m_View;
  bool       m_IsGiven;
};

} // namespace chunkwise

#endif
