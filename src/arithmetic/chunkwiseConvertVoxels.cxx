/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvertVoxels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chunkwise
{

namespace
{

/** Adds 1 to `cut` where the value has no place in TTo. */
template <typename TTo, typename TFrom>
TTo
Convert(TFrom value, std::int64_t & cut)
{
  using To = std::numeric_limits<TTo>;
  if constexpr (!To::is_integer)
  {
    return static_cast<TTo>(value);
  }
  else if constexpr (std::numeric_limits<TFrom>::is_integer)
  {
    // Compared with their signs: a negative value is below every unsigned one.
    const bool below =
      value < 0 && (!To::is_signed || static_cast<std::int64_t>(value) < static_cast<std::int64_t>(To::lowest()));
    const bool above = value > 0 && static_cast<std::uint64_t>(value) > static_cast<std::uint64_t>(To::max());
    cut += below || above ? 1 : 0;
    return below ? To::lowest() : above ? To::max() : static_cast<TTo>(value);
  }
  else
  {
    // The first number above those of TTo is a power of two, which every float has.
    const TFrom beyond = static_cast<TFrom>(std::ldexp(1.0, To::digits));
    const TFrom rounded = std::nearbyint(value);
    const bool  inside = rounded >= static_cast<TFrom>(To::lowest()) && rounded < beyond;
    cut += inside ? 0 : 1;
    return inside ? static_cast<TTo>(rounded) : rounded >= beyond ? To::max() : rounded < 0 ? To::lowest() : TTo{ 0 };
  }
}

} // namespace

std::int64_t
ConvertVoxels(const void * from, PixelType fromKind, void * to, PixelType toKind, std::int64_t count, std::int64_t step)
{
  return DispatchPixelType(fromKind, [&](auto source) {
    return DispatchPixelType(toKind, [&](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      const From * const in = static_cast<const From *>(from);
      To * const         out = static_cast<To *>(to);
      std::int64_t       cut = 0;
      for (std::int64_t i = 0; i < count; ++i)
      {
        out[i * step] = Convert<To>(in[i], cut);
      }
      return cut;
    });
  });
}

std::int64_t
CountVoxelsAtLimits(const void * voxels, PixelType kind, std::int64_t count)
{
  return DispatchPixelType(kind, [&](auto voxel) -> std::int64_t {
    using Limits = std::numeric_limits<decltype(voxel)>;
    if constexpr (Limits::is_integer)
    {
      const auto * const data = static_cast<const decltype(voxel) *>(voxels);
      return std::count_if(
        data, data + count, [](auto value) { return value == Limits::max() || value == Limits::lowest(); });
    }
    return 0;
  });
}

} // namespace chunkwise
