/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuWideMeanRows_h
#define chunkwiseCpuWideMeanRows_h

#include "chunkwiseCpuTiles.h"
#include "chunkwiseOperation.h"
#include "chunkwiseWideMean.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace chunkwise
{

/** Replaces results of float sums that are not finite by the means that WideMean gives. Several threads use it at once.
 */
class WideMeanRows
{
public:
  WideMeanRows(const KernelCall & call, const WideMean & mean)
    : m_Call(call)
    , m_Mean(mean)
    , m_LeastLarge(mean.GetLeastLarge())
  {}

  /** `sums`: those of the `n` numbers of the row of the output that begins at voxel `index`, with the components of
   * each voxel side by side. The results are stored already. */
  void
  Amend(const float * sums, const Coordinates & index, std::int64_t n, std::int64_t components)
  {
    if (AreFinite(sums, n) || !this->HasLargeVoxels())
    {
      return;
    }
    const std::int64_t voxels = n / components;
    for (std::int64_t c = 0; c < components; ++c)
    {
      Coordinates at = index;
      at[MaxDimension - 1] += c;
      for (std::int64_t first = 0; first < voxels; ++first)
      {
        if (!IsFiniteFloat(sums[first * components + c]))
        {
          const std::int64_t count = std::min(voxels - first, MostTogether);
          at[0] = index[0] + first;
          this->AmendTogether(sums + first * components + c, at, count, components);
          first += count - 1;
        }
      }
    }
  }

private:
  static constexpr std::int64_t MostTogether = 128;
  static constexpr std::int64_t ColumnsTogether = 64;

  static bool
  AreFinite(const float * sums, std::int64_t n)
  {
    constexpr std::uint32_t exponent = 0x7F800000;
    std::uint32_t           found = 0;
    for (std::int64_t i = 0; i < n; ++i)
    {
      std::uint32_t bits = 0;
      std::memcpy(&bits, sums + i, sizeof(bits));
      found |= (bits & exponent) == exponent ? 1U : 0U;
    }
    return found == 0;
  }

  /** Without large voxels only windows with a NaN or an infinity have sums that are not finite, and they are right. */
  bool
  HasLargeVoxels()
  {
    std::call_once(m_Looked, [this] {
      bool      found = m_Mean.mode == BoundaryMode::Constant && IsLargeFloat(m_Mean.constant, m_LeastLarge);
      const Box box = m_Mean.GetReadBox(m_Call.output.box);
      ForEachRow(box, [&](const Coordinates & at) {
        const auto * const voxels = static_cast<const float *>(m_Mean.in.data) + m_Mean.in.Offset(at);
        for (std::int64_t x = 0; x < box.Extent(0) && !found; ++x)
        {
          found = IsLargeFloat(voxels[x * m_Mean.in.stride[0]], m_LeastLarge);
        }
      });
      m_HasLarge = found;
    });
    return m_HasLarge;
  }

  /** `count` voxels along x from `index` on, as WideMean::MeanAt each. The sum of a position along x serves all windows
   * that have it. */
  void
  AmendTogether(const float * sums, const Coordinates & index, std::int64_t count, std::int64_t step) const
  {
    const auto * const voxels = static_cast<const float *>(m_Mean.in.data);
    const auto         constant = static_cast<double>(m_Mean.constant);
    const std::int64_t radius = m_Mean.radius[0];
    const std::int64_t end = index[0] + count + radius;
    double             totals[MostTogether] = {};
    for (std::int64_t first = index[0] - radius; first < end; first += ColumnsTogether)
    {
      const std::int64_t columns = std::min(end - first, ColumnsTogether);
      double             column[ColumnsTogether] = {};
      std::int64_t       offsets[ColumnsTogether];
      bool               isInside[ColumnsTogether];
      for (std::int64_t i = 0; i < columns; ++i)
      {
        std::int64_t at = 0;
        isInside[i] = m_Mean.FindTap(0, first + i, at);
        offsets[i] = (at - m_Mean.in.box.lower[0]) * m_Mean.in.stride[0];
      }
      m_Mean.ForEachRow(index, [&](bool isRowInside, std::int64_t row) {
        for (std::int64_t i = 0; i < columns; ++i)
        {
          column[i] += isRowInside && isInside[i] ? static_cast<double>(voxels[row + offsets[i]]) : constant;
        }
      });
      for (std::int64_t i = 0; i < columns; ++i)
      {
        if (!isInside[i] && m_Mean.mode != BoundaryMode::Constant)
        {
          continue;
        }
        // The outputs whose windows have this position.
        const std::int64_t x = first + i - index[0];
        for (std::int64_t k = std::max<std::int64_t>(x - radius, 0); k <= std::min(x + radius, count - 1); ++k)
        {
          totals[k] += column[i];
        }
      }
    }
    for (std::int64_t k = 0; k < count; ++k)
    {
      Coordinates at = index;
      at[0] += k;
      const double mean = totals[k] / static_cast<double>(m_Mean.DivisorAt(at));
      // A mean that is NaN in double is NaN in float already.
      if (!IsFiniteFloat(sums[k * step]) && mean == mean)
      {
        this->Store(at, mean);
      }
    }
  }

  void
  Store(const Coordinates & index, double mean) const
  {
    const std::int64_t offset = m_Call.output.Offset(index);
    if (m_Call.output.kind == PixelType::Float32)
    {
      static_cast<float *>(m_Call.output.data)[offset] = static_cast<float>(mean);
    }
    else
    {
      static_cast<double *>(m_Call.output.data)[offset] = mean;
    }
  }

  const KernelCall & m_Call;
  const WideMean     m_Mean;
  const float        m_LeastLarge;
  std::once_flag     m_Looked;
  bool               m_HasLarge{ false };
};

} // namespace chunkwise

#endif
