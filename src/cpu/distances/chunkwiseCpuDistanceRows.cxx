/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuDistanceRows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace chunkwise
{

namespace
{

/** ones[i] |= whether voxel i has the value (`other` is nullptr), or differs from voxel i of another row. */
template <typename TPixel>
void
MarkVoxels(const TPixel * voxels, std::int64_t step, std::int64_t n, TPixel value, std::uint8_t * ones)
{
  if (step == 1)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      ones[i] = static_cast<std::uint8_t>(voxels[i] == value ? 1 : 0);
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    ones[i] = static_cast<std::uint8_t>(voxels[i * step] == value ? 1 : 0);
  }
}

/** Steps of a search for each voxel from which on envelopes are faster. */
constexpr std::int64_t ManyScalarSteps = 24;

template <typename T>
T
LargestOf(const T * values, std::int64_t n, T beyond)
{
  T largest = 0;
  for (std::int64_t i = 0; i < n; ++i)
  {
    largest = values[i] < beyond ? std::max(largest, values[i]) : largest;
  }
  return largest;
}

} // namespace

DistanceRows::DistanceRows(const KernelCall & call)
  : m_Call(call)
  , m_Operation(static_cast<const DistanceOperation &>(*call.operation))
  , m_Scan(m_Operation.GetScanAxis())
  , m_X(m_Operation.GetSliceAxis(0))
  , m_Y(m_Operation.GetSliceAxis(1))
  , m_Dense(DenseStrides(m_Operation.image))
{}

Coordinates
DistanceRows::BaseOf(std::int64_t volume) const
{
  Coordinates base{};
  for (int axis = 0; axis < MaxDimension; ++axis)
  {
    if (!m_Operation.IsAlong(axis))
    {
      const std::int64_t n = m_Call.writable.Extent(axis);
      base[axis] = m_Call.writable.lower[axis] + volume % n;
      volume /= n;
    }
  }
  return base;
}

Coordinates
DistanceRows::Place(const Coordinates & base, std::int64_t z, std::int64_t row, std::int64_t column) const
{
  Coordinates place = base;
  place[m_Scan] = z;
  if (m_Y >= 0)
  {
    place[m_Y] = row;
  }
  if (m_X >= 0)
  {
    place[m_X] = column;
  }
  return place;
}

const void *
DistanceRows::InputAt(const Coordinates & place) const
{
  const BufferView & input = m_Call.inputs[0];
  return static_cast<const unsigned char *>(input.data) +
         input.Offset(place) * static_cast<std::int64_t>(PixelSize(input.kind));
}

std::int64_t
DistanceRows::GetIndex(const Coordinates & base, std::int64_t z, std::int64_t row, std::int64_t column) const
{
  const Coordinates place = this->Place(base, z, row, column);
  std::int64_t      index = 0;
  for (int axis = 0; axis < MaxDimension; ++axis)
  {
    index += place[axis] * m_Dense[axis];
  }
  return index;
}

std::uint64_t
DistanceRows::GetBits(const Coordinates & base, std::int64_t z, std::int64_t row, std::int64_t column) const
{
  std::uint64_t bits = 0;
  std::memcpy(&bits, this->InputAt(this->Place(base, z, row, column)), PixelSize(m_Call.inputs[0].kind));
  return bits;
}

void
DistanceRows::GetBackground(const Coordinates & base, std::int64_t z, std::int64_t row, std::int64_t first,
                            std::int64_t n, std::uint8_t * ones) const
{
  const BufferView & input = m_Call.inputs[0];
  if (!m_Operation.background.IsOf(input.kind))
  {
    std::fill_n(ones, n, std::uint8_t{ 0 });
    return;
  }
  const void * const at = this->InputAt(this->Place(base, z, row, first));
  DispatchPixelType(input.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    MarkVoxels(
      static_cast<const Pixel *>(at), m_X < 0 ? 1 : input.stride[m_X], n, m_Operation.background.As<Pixel>(), ones);
  });
}

void
DistanceRows::GetFeatures(const Coordinates & base, std::int64_t z, std::int64_t row, std::int64_t first,
                          std::int64_t n, std::uint8_t * features, std::uint8_t * marks) const
{
  const BufferView & input = m_Call.inputs[0];
  if (m_Operation.to == DistanceTo::Others)
  {
    if (z == 0)
    {
      std::fill_n(features, n, std::uint8_t{ 0 });
      return;
    }
    const void * const at = this->InputAt(this->Place(base, z, row, first));
    const std::int64_t step = m_X < 0 ? 1 : input.stride[m_X];
    DispatchPixelType(input.kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      const auto * const voxels = static_cast<const Pixel *>(at);
      const auto * const before = voxels - input.stride[m_Scan];
      for (std::int64_t i = 0; i < n; ++i)
      {
        // Bits: NaN is equal to itself.
        features[i] =
          static_cast<std::uint8_t>(std::memcmp(voxels + i * step, before + i * step, sizeof(Pixel)) != 0 ? 1 : 0);
      }
    });
    return;
  }
  this->GetBackground(base, z, row, first, n, features);
  if (m_Operation.to == DistanceTo::Background)
  {
    return;
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    features[i] ^= 1;
  }
  if (m_Operation.to == DistanceTo::Objects)
  {
    return;
  }
  // Objects that touch the background.
  const std::int64_t   begin = std::max<std::int64_t>(first - 1, 0);
  const std::int64_t   end = std::min(first + n + 1, this->LengthOf(m_X));
  std::uint8_t * const row1 = marks;
  std::uint8_t * const all = marks + this->LengthOf(m_X);
  std::fill_n(all, end - begin, std::uint8_t{ 0 });
  for (std::int64_t zz = std::max<std::int64_t>(z - 1, 0); zz <= std::min(z + 1, m_Operation.image[m_Scan] - 1); ++zz)
  {
    for (std::int64_t yy = std::max<std::int64_t>(row - 1, 0); yy <= std::min(row + 1, this->LengthOf(m_Y) - 1); ++yy)
    {
      this->GetBackground(base, zz, yy, begin, end - begin, row1);
      for (std::int64_t i = 0; i < end - begin; ++i)
      {
        all[i] |= row1[i];
      }
    }
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    const std::int64_t at = first + i - begin;
    const bool touches = all[at] != 0 || (at > 0 && all[at - 1] != 0) || (at + 1 < end - begin && all[at + 1] != 0);
    features[i] &= static_cast<std::uint8_t>(touches ? 1 : 0);
  }
}

std::int64_t
DistanceRows::EndOfRun(const Coordinates & base, std::int64_t z, std::int64_t number, bool isColumn,
                       std::int64_t begin) const
{
  const int          axis = isColumn ? m_Y : m_X;
  const std::int64_t n = this->LengthOf(axis);
  const BufferView & input = m_Call.inputs[0];
  const Coordinates  place = isColumn ? this->Place(base, z, begin, number) : this->Place(base, z, number, begin);
  const auto         size = static_cast<std::int64_t>(PixelSize(input.kind));
  const unsigned char * const voxel = static_cast<const unsigned char *>(this->InputAt(place));
  const std::int64_t          step = (axis < 0 ? 1 : input.stride[axis]) * size;
  std::int64_t                end = begin + 1;
  while (end < n && std::memcmp(voxel, voxel + (end - begin) * step, static_cast<std::size_t>(size)) == 0)
  {
    ++end;
  }
  return end;
}

template <typename TOut, typename T>
void
DistanceRows::StoreNumbers(TOut * to, std::int64_t step, std::int64_t n, const T * numbers, T beyond,
                           const std::uint8_t * background) const
{
  constexpr bool isReal = static_cast<T>(0.5) != T{ 0 };
  constexpr bool givesReals = static_cast<TOut>(0.5) != TOut{ 0 };
  const double   square = isReal ? 1.0 : m_Operation.GetUnit() * m_Operation.GetUnit();
  const double   limit = m_Operation.limit;
  const auto     sign = [&](std::int64_t i, auto value) {
    return background != nullptr && (background[i] == 0) != m_Operation.insideIsPositive && value != 0 ? -value : value;
  };
  const bool roots = m_Operation.result == DistanceResult::Root;
  if constexpr (givesReals)
  {
    const auto far = static_cast<TOut>(roots ? limit : limit * limit);
    if (sizeof(T) == 4 && sizeof(TOut) == 4 && roots && step == 1 && !background && square == 1 &&
        m_Operation.GetLargestSquare() < (1 << 24))
    {
      // Floats have these numbers, so that their roots are rounded once.
      for (std::int64_t i = 0; i < n; ++i)
      {
        const auto root = std::sqrt(static_cast<float>(numbers[i]));
        to[i] = numbers[i] < beyond ? static_cast<TOut>(root) : far;
      }
      return;
    }
    for (std::int64_t i = 0; i < n; ++i)
    {
      const double value = static_cast<double>(numbers[i]) * square;
      to[i * step] = sign(i, numbers[i] < beyond ? static_cast<TOut>(roots ? std::sqrt(value) : value) : far);
    }
  }
  else
  {
    const double most = static_cast<double>(std::numeric_limits<TOut>::max());
    const TOut   far = limit * limit < most ? static_cast<TOut>(limit * limit) : std::numeric_limits<TOut>::max();
    for (std::int64_t i = 0; i < n; ++i)
    {
      to[i * step] = static_cast<TOut>(sign(i, numbers[i] < beyond ? static_cast<TOut>(numbers[i]) : far));
    }
  }
}

template <typename TOut, typename T>
void
DistanceRows::StoreLabels(TOut * to, std::int64_t step, std::int64_t n, const T * numbers, const std::int64_t * nearest,
                          T beyond, const void * sides, std::int64_t volume) const
{
  const DistancePlanes        planes = m_Operation.GetPlanes(m_Call.writable);
  const unsigned char * const bytes = static_cast<const unsigned char *>(sides);
  const BufferView &          input = m_Call.inputs[0];
  const auto                  none = m_Operation.background.As<TOut>();
  const std::int64_t          columns = this->LengthOf(m_X);
  const std::int64_t          rows = this->LengthOf(m_Y);
  for (std::int64_t i = 0; i < n; ++i)
  {
    if (!(numbers[i] < beyond))
    {
      to[i * step] = none;
      continue;
    }
    Coordinates  place{};
    std::int64_t rest = nearest[i];
    for (int axis = MaxDimension - 1; axis >= 0; --axis)
    {
      place[axis] = rest / m_Dense[axis];
      rest -= place[axis] * m_Dense[axis];
    }
    const std::int64_t z = place[m_Scan];
    if (z >= m_Call.writable.lower[m_Scan] && z < m_Call.writable.upper[m_Scan])
    {
      to[i * step] = static_cast<const TOut *>(input.data)[input.Offset(place)];
      continue;
    }
    const std::size_t  side = z < m_Call.writable.lower[m_Scan] ? 0 : planes.SideBytes();
    const std::int64_t column = (volume * rows + (m_Y < 0 ? 0 : place[m_Y])) * columns + (m_X < 0 ? 0 : place[m_X]);
    std::memcpy(to + i * step,
                bytes + side + planes.ValuesOffset() + static_cast<std::size_t>(column) * sizeof(std::uint64_t),
                sizeof(TOut));
  }
}

template <typename T>
void
DistanceRows::Store(const Coordinates & base, std::int64_t z, std::int64_t row, const T * numbers,
                    const std::int64_t * nearest, T beyond, const void * sides, std::int64_t volume,
                    std::uint8_t * ones) const
{
  const BufferView & output = m_Call.output;
  const std::int64_t first = m_X < 0 ? 0 : output.box.lower[m_X];
  const std::int64_t n = m_X < 0 ? 1 : output.box.Extent(m_X);
  if (m_Y >= 0 && (row < output.box.lower[m_Y] || row >= output.box.upper[m_Y]))
  {
    return;
  }
  const Coordinates  place = this->Place(base, z, row, first);
  const std::int64_t step = m_X < 0 ? 1 : output.stride[m_X];
  numbers += first;
  nearest = nearest ? nearest + first : nullptr;
  const std::uint8_t * background = nullptr;
  if (m_Operation.to == DistanceTo::Contour)
  {
    this->GetBackground(base, z, row, first, n, ones);
    background = ones;
  }
  DispatchPixelType(output.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    Pixel * const to = static_cast<Pixel *>(output.data) + output.Offset(place);
    switch (m_Operation.result)
    {
      case DistanceResult::Root:
      case DistanceResult::Squared:
        this->StoreNumbers(to, step, n, numbers, beyond, background);
        break;
      case DistanceResult::Index:
        for (std::int64_t i = 0; i < n; ++i)
        {
          const auto none =
            static_cast<Pixel>(-1) < Pixel{ 0 } ? static_cast<Pixel>(-1) : std::numeric_limits<Pixel>::max();
          to[i * step] = numbers[i] < beyond ? static_cast<Pixel>(nearest[i]) : none;
        }
        break;
      case DistanceResult::Label:
        this->StoreLabels(to, step, n, numbers, nearest, beyond, sides, volume);
        break;
      default:
      {
        const bool isWithin = m_Operation.result == DistanceResult::Within;
        const auto foreground = m_Operation.foreground.As<Pixel>();
        for (std::int64_t i = 0; i < n; ++i)
        {
          to[i * step] = (numbers[i] < beyond) == isWithin ? foreground : Pixel{ 0 };
        }
      }
    }
  });
}

template <typename T>
void
MinimizeNearest(const T * values, const std::int64_t * indices, const DistanceAxis<T> & axis, T * out,
                std::int64_t * nearest, std::int64_t stride, DistanceParabola<T> * parabolas)
{
  const std::int64_t n = axis.length;
  std::int64_t       steps = 0;
  std::int64_t       i = 0;
  T                  least = axis.beyond;
  for (std::int64_t j = 0; j < n; ++j)
  {
    least = std::min(least, values[j]);
  }
  if (!(least < axis.beyond))
  {
    return;
  }
  const double margin = DistanceMargin(LargestOf(values, n, axis.beyond), axis);
  const bool   hasEnvelope = margin < MostDistanceMargin;
  for (; i < n && (!hasEnvelope || steps <= ManyScalarSteps * (i + 16)); ++i)
  {
    T            best = values[i];
    std::int64_t index = best < axis.beyond ? indices[i] : -1;
    const auto   compare = [&](std::int64_t j, std::int64_t k) {
      if (values[j] < axis.beyond)
      {
        const T sum = values[j] + axis.weights[k];
        if (sum < best || (sum == best && indices[j] < index))
        {
          best = sum;
          index = indices[j];
        }
      }
    };
    for (std::int64_t k = 1; (k <= i || i + k < n) && !(best < least + axis.weights[k]); ++k, ++steps)
    {
      if (k <= i)
      {
        compare(i - k, k);
      }
      if (i + k < n)
      {
        compare(i + k, k);
      }
    }
    out[i * stride] = best;
    nearest[i * stride] = index;
  }
  if (i == n)
  {
    return;
  }
  const std::int64_t count = FindDistanceEnvelope(values, 1, n, axis, margin, parabolas);
  for (std::int64_t j = i; j < n; ++j)
  {
    out[j * stride] = axis.beyond;
    nearest[j * stride] = -1;
  }
  WalkDistanceEnvelope(parabolas, count, i, n, [&](std::int64_t j, const DistanceParabola<T> & parabola) {
    const T            sum = parabola.value + axis.weights[parabola.at < j ? j - parabola.at : parabola.at - j];
    const std::int64_t index = indices[parabola.at];
    T &                best = out[j * stride];
    if (sum < best || (sum == best && index < nearest[j * stride]))
    {
      best = sum;
      nearest[j * stride] = index;
    }
  });
}

template <typename T>
void
MinimizeRun(const T * values, std::int64_t begin, std::int64_t end, const DistanceAxis<T> & axis, T * out,
            std::int64_t stride, DistanceParabola<T> * parabolas)
{
  const std::int64_t n = end - begin;
  DistanceAxis<T>    run = axis;
  run.length = n;
  values += begin;
  out += begin * stride;
  const auto ofBorders = [&](std::int64_t i) {
    T border = axis.beyond;
    border = begin > 0 ? std::min(border, axis.weights[i + 1]) : border;
    return end < axis.length ? std::min(border, axis.weights[n - i]) : border;
  };
  const double margin = DistanceMargin(LargestOf(values, n, axis.beyond), run);
  const bool   hasEnvelope = margin < MostDistanceMargin;
  std::int64_t steps = 0;
  std::int64_t i = 0;
  for (; i < n && (!hasEnvelope || steps <= ManyScalarSteps * (i + 16)); ++i)
  {
    T best = std::min(values[i], ofBorders(i));
    for (std::int64_t k = 1; (k <= i || i + k < n) && axis.weights[k] < best; ++k, ++steps)
    {
      const T nearer = std::min(k <= i ? values[i - k] : axis.beyond, i + k < n ? values[i + k] : axis.beyond);
      best = nearer < axis.beyond ? std::min(best, nearer + axis.weights[k]) : best;
    }
    out[i * stride] = best;
  }
  if (i == n)
  {
    return;
  }
  const std::int64_t count = FindDistanceEnvelope(values, 1, n, run, margin, parabolas);
  for (std::int64_t j = i; j < n; ++j)
  {
    out[j * stride] = ofBorders(j);
  }
  if (count > 0)
  {
    WalkDistanceEnvelope(parabolas, count, i, n, [&](std::int64_t j, const DistanceParabola<T> & parabola) {
      const T sum = parabola.value + axis.weights[parabola.at < j ? j - parabola.at : parabola.at - j];
      out[j * stride] = std::min(out[j * stride], sum);
    });
  }
}

#define CHUNKWISE_INSTANTIATE_DISTANCE(T)                                                                              \
  template void DistanceRows::Store<T>(const Coordinates &,                                                            \
                                       std::int64_t,                                                                   \
                                       std::int64_t,                                                                   \
                                       const T *,                                                                      \
                                       const std::int64_t *,                                                           \
                                       T,                                                                              \
                                       const void *,                                                                   \
                                       std::int64_t,                                                                   \
                                       std::uint8_t *) const;                                                          \
  template void MinimizeNearest<T>(const T *,                                                                          \
                                   const std::int64_t *,                                                               \
                                   const DistanceAxis<T> &,                                                            \
                                   T *,                                                                                \
                                   std::int64_t *,                                                                     \
                                   std::int64_t,                                                                       \
                                   DistanceParabola<T> *);                                                             \
  template void MinimizeRun<T>(                                                                                        \
    const T *, std::int64_t, std::int64_t, const DistanceAxis<T> &, T *, std::int64_t, DistanceParabola<T> *)
CHUNKWISE_INSTANTIATE_DISTANCE(std::int32_t);
CHUNKWISE_INSTANTIATE_DISTANCE(std::int64_t);
CHUNKWISE_INSTANTIATE_DISTANCE(double);
#undef CHUNKWISE_INSTANTIATE_DISTANCE

} // namespace chunkwise
