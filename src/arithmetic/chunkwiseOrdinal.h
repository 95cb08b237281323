/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseOrdinal_h
#define chunkwiseOrdinal_h

#include "chunkwiseOrderedKey.h"

namespace chunkwise
{

/** A pixel as an integer from 0 to 2^(bits of the kind) - 1, in the same order: what histograms can narrow down bit by
 * bit. -0 is below +0, and NaN is 0, below every number. */
template <typename TPixel>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE std::uint64_t
                                              OrdinalOf(TPixel pixel)
{
  using Key = OrderedKey<TPixel>;
  if constexpr (Key::IsReal)
  {
    using Unsigned = std::make_unsigned_t<typename Key::Type>;
    return static_cast<Unsigned>(Key::From(pixel, 0)) ^ static_cast<Unsigned>(Key::Lowest);
  }
  else
  {
    using Unsigned = std::make_unsigned_t<TPixel>;
    constexpr int sign = 8 * static_cast<int>(sizeof(TPixel)) - 1;
    return static_cast<Unsigned>(static_cast<Unsigned>(pixel) ^ (Unsigned{ Key::IsSigned } << sign));
  }
}

template <typename TPixel>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TPixel
FromOrdinal(std::uint64_t ordinal)
{
  using Key = OrderedKey<TPixel>;
  if constexpr (Key::IsReal)
  {
    using Unsigned = std::make_unsigned_t<typename Key::Type>;
    return Key::To(static_cast<typename Key::Type>(static_cast<Unsigned>(ordinal) ^ static_cast<Unsigned>(Key::Lowest)),
                   0);
  }
  else
  {
    using Unsigned = std::make_unsigned_t<TPixel>;
    constexpr int sign = 8 * static_cast<int>(sizeof(TPixel)) - 1;
    return static_cast<TPixel>(
      static_cast<Unsigned>(static_cast<Unsigned>(ordinal) ^ (Unsigned{ Key::IsSigned } << sign)));
  }
}

} // namespace chunkwise

#endif
