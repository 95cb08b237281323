/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileZarrReduce.h"

#include <algorithm>
#include <type_traits>

namespace chunkwise::files
{

namespace
{

/** Two along each of three axes. */
constexpr std::size_t MostToReduce = 8;

template <typename T>
bool
IsNotANumber(T value)
{
  return value != value;
}

/** `count` is a power of two. */
template <typename T>
T
MeanOf(const T * values, std::size_t count)
{
  if constexpr (std::is_floating_point_v<T>)
  {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i)
    {
      sum += static_cast<double>(values[i]);
    }
    return static_cast<T>(sum / static_cast<double>(count));
  }
  else
  {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    const int shift = count == 1 ? 0 : count == 2 ? 1 : count == 4 ? 2 : 3;
    // Quotients and remainders apart: no sum of 64-bit values overflows. Shifts of negative numbers round down.
    Wide          quotient = 0;
    std::uint64_t remainder = 0;
    for (std::size_t i = 0; i < count; ++i)
    {
      const Wide value = values[i];
      quotient = static_cast<Wide>(quotient + (value >> shift));
      remainder += static_cast<std::uint64_t>(value) & (count - 1);
    }
    quotient = static_cast<Wide>(quotient + static_cast<Wide>(remainder >> shift));
    remainder &= count - 1;
    const bool isUp =
      2 * remainder > count || (2 * remainder == count && (static_cast<std::uint64_t>(quotient) & 1) != 0);
    return static_cast<T>(quotient + (isUp ? 1 : 0));
  }
}

template <typename T>
T
ModeOf(const T * values, std::size_t count)
{
  T           best = values[0];
  std::size_t most = 0;
  for (std::size_t i = 0; i < count; ++i)
  {
    const auto same = static_cast<std::size_t>(std::count(values, values + count, values[i]));
    if (same > most || (same == most && values[i] < best))
    {
      most = same;
      best = values[i];
    }
  }
  return best;
}

template <typename T>
T
ExtremeOf(const T * values, std::size_t count, bool isLargest)
{
  T best = values[0];
  for (std::size_t i = 1; i < count; ++i)
  {
    const bool isBetter = isLargest ? values[i] > best : values[i] < best;
    best = isBetter || IsNotANumber(values[i]) ? values[i] : best;
  }
  return best;
}

template <typename T>
T
ReduceValues(ZarrReducer reducer, T * values, std::size_t count)
{
  switch (reducer)
  {
    case ZarrReducer::Mean:
      return MeanOf(values, count);
    case ZarrReducer::Mode:
      return ModeOf(values, count);
    case ZarrReducer::Minimum:
      return ExtremeOf(values, count, false);
    case ZarrReducer::Maximum:
      return ExtremeOf(values, count, true);
    default:
      break;
  }
  // NaN comes last.
  std::sort(values, values + count, [](T a, T b) { return a < b || (IsNotANumber(b) && !IsNotANumber(a)); });
  return values[(count - 1) / 2];
}

/** A row of the next level. */
template <typename T>
void
ReduceRow(ZarrReducer reducer, const Box & box, const BufferView & from, const Coordinates & factor,
          const BufferView & to, Coordinates index)
{
  // The voxels that make the first one and exist, but for axis 0.
  Coordinates begin{};
  Coordinates count{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    begin[a] = index[a] * factor[a];
    count[a] = std::min(factor[a], box.upper[a] - begin[a]);
  }
  auto * out = static_cast<T *>(to.data) + to.Offset(index);
  for (std::int64_t x = to.box.lower[0]; x < to.box.upper[0]; ++x)
  {
    begin[0] = x * factor[0];
    count[0] = std::min(factor[0], box.upper[0] - begin[0]);
    const T * const in = static_cast<const T *>(from.data) + from.Offset(begin);
    T               values[MostToReduce];
    std::size_t     n = 0;
    for (std::int64_t e = 0; e < count[4]; ++e)
    {
      for (std::int64_t d = 0; d < count[3]; ++d)
      {
        for (std::int64_t c = 0; c < count[2]; ++c)
        {
          for (std::int64_t b = 0; b < count[1]; ++b)
          {
            for (std::int64_t a = 0; a < count[0]; ++a)
            {
              values[n++] = in[a * from.stride[0] + b * from.stride[1] + c * from.stride[2] + d * from.stride[3] +
                               e * from.stride[4]];
            }
          }
        }
      }
    }
    *out = ReduceValues(reducer, values, n);
    out += to.stride[0];
  }
}

} // namespace

Box
GetReducedBox(const Box & box, const Coordinates & factor)
{
  Box reduced = box;
  for (int a = 0; a < MaxDimension; ++a)
  {
    reduced.lower[a] = box.lower[a] / factor[a];
    reduced.upper[a] = (box.upper[a] + factor[a] - 1) / factor[a];
  }
  return reduced;
}

void
ReduceLevel(ZarrReducer reducer, const Box & box, const BufferView & from, const Coordinates & factor,
            const BufferView & to, Executor & executor)
{
  const Box    reduced = GetReducedBox(box, factor);
  std::int64_t rows = 1;
  for (int a = 1; a < MaxDimension; ++a)
  {
    rows *= reduced.Extent(a);
  }
  constexpr std::int64_t RowsAtOnce = 64;
  DispatchPixelKind(from.kind, [&](auto tag) {
    executor.ParallelFor((rows + RowsAtOnce - 1) / RowsAtOnce, [&](std::int64_t part, unsigned int) {
      for (std::int64_t row = part * RowsAtOnce; row < std::min(rows, (part + 1) * RowsAtOnce); ++row)
      {
        Coordinates  index = reduced.lower;
        std::int64_t left = row;
        for (int a = 1; a < MaxDimension; ++a)
        {
          index[a] += left % reduced.Extent(a);
          left /= reduced.Extent(a);
        }
        ReduceRow<decltype(tag)>(reducer, box, from, factor, to, index);
      }
    });
  });
}

} // namespace chunkwise::files
