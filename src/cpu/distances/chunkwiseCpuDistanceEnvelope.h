/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuDistanceEnvelope_h
#define chunkwiseCpuDistanceEnvelope_h

#include "chunkwiseCpuDistanceLines.h"
#include "chunkwiseTypes.h"

// The lower envelope of the parabolas of a line. The positions where two of them cross are computed in double, with a
// margin for rounding: a parabola leaves the envelope only if it is the lowest at no voxel even so. All that may be the
// lowest at a voxel are compared there, so results are exact.
namespace chunkwise
{

/** The margin, in voxels; numbers that do not fit it are too large, or the spacing too small, for envelopes. */
template <typename T>
CHUNKWISE_ALWAYS_INLINE double
DistanceMargin(T largest, const DistanceAxis<T> & axis)
{
  const double length = static_cast<double>(axis.length);
  return 0x1p-10 + 0x1p-48 * (static_cast<double>(largest) / axis.square + length * length);
}
constexpr double MostDistanceMargin = 0.25;

/** The parabolas of voxels 0 to n - 1 at line[i * stride], whose number is returned. */
template <typename T>
CHUNKWISE_ALWAYS_INLINE std::int64_t
FindDistanceEnvelope(const T * line, std::int64_t stride, std::int64_t n, const DistanceAxis<T> & axis, double margin,
                     DistanceParabola<T> * parabolas)
{
  std::int64_t count = 0;
  const double last = static_cast<double>(n - 1);
  for (std::int64_t i = 0; i < n; ++i)
  {
    const T value = line[i * stride];
    if (!(value < axis.beyond))
    {
      continue;
    }
    std::int32_t low = 0;
    bool         isPart = true;
    while (count > 0)
    {
      DistanceParabola<T> & before = parabolas[count - 1];
      const double          apart = static_cast<double>(i - before.at);
      const double          crossing =
        0.5 * (static_cast<double>(i + before.at) +
               (static_cast<double>(value) - static_cast<double>(before.value)) / (axis.square * apart));
      if (crossing + margin < static_cast<double>(before.low))
      {
        --count;
        continue;
      }
      isPart = crossing - margin <= last;
      if (isPart)
      {
        // Both are at least 0 here, but for the second, by less than one.
        before.high =
          crossing + margin < last ? static_cast<std::int32_t>(crossing + margin) : static_cast<std::int32_t>(n - 1);
        const double       begin = crossing - margin;
        const std::int32_t whole = static_cast<std::int32_t>(begin);
        low = static_cast<double>(whole) < begin ? whole + 1 : whole;
      }
      break;
    }
    if (isPart)
    {
      parabolas[count++] = { value, static_cast<std::int32_t>(i), low, static_cast<std::int32_t>(n - 1) };
    }
  }
  return count;
}

/** Calls f(i, parabola) for voxels `first` to n - 1 and each parabola that may be the lowest there, those of a voxel
 * one after the other. */
template <typename T, typename TFunctor>
CHUNKWISE_ALWAYS_INLINE void
WalkDistanceEnvelope(const DistanceParabola<T> * parabolas, std::int64_t count, std::int64_t first, std::int64_t n,
                     TFunctor && f)
{
  std::int64_t p = 0;
  for (std::int64_t i = first; i < n; ++i)
  {
    while (p + 1 < count && parabolas[p + 1].low <= i)
    {
      ++p;
    }
    f(i, parabolas[p]);
    for (std::int64_t before = p; before > 0 && parabolas[before - 1].high >= i; --before)
    {
      f(i, parabolas[before - 1]);
    }
  }
}

} // namespace chunkwise

#endif
