/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseOrderedKey_h
#define chunkwiseOrderedKey_h

#include "chunkwiseTypes.h"

#include <cstring>
#include <type_traits>

namespace chunkwise
{

/** Voxels as signed integers in the same order, so that a maximum is the same in whatever order it is taken: 32 bits
 * for pixels of up to 32 bits, 64 for the others. -0 is below +0. A NaN is Lowest, below every number. */
template <typename TPixel>
struct OrderedKey
{
  using Type = std::conditional_t<sizeof(TPixel) <= 4, std::int32_t, std::int64_t>;
  static constexpr bool IsReal = static_cast<TPixel>(0.5) != static_cast<TPixel>(0);
  static constexpr bool IsSigned = static_cast<TPixel>(-1) < static_cast<TPixel>(0);
  static constexpr Type Lowest =
    static_cast<Type>(static_cast<std::make_unsigned_t<Type>>(1) << (8 * sizeof(Type) - 1));

  /** With `flip` -1 the order is reversed, but for NaN; 0: not. */
  CHUNKWISE_HOST_DEVICE static CHUNKWISE_ALWAYS_INLINE Type
  From(TPixel pixel, Type flip)
  {
    if constexpr (IsReal)
    {
      Type bits = 0;
      memcpy(&bits, &pixel, sizeof(bits));
      // A negative number is less the larger its bits are.
      const Type key = bits ^ ((bits >> (8 * sizeof(Type) - 1)) & ~Lowest);
      return pixel == pixel ? key ^ flip : Lowest;
    }
    else if constexpr (sizeof(TPixel) == sizeof(Type) && !IsSigned)
    {
      return static_cast<Type>(pixel ^ static_cast<TPixel>(Lowest)) ^ flip;
    }
    else
    {
      return static_cast<Type>(pixel) ^ flip;
    }
  }

  CHUNKWISE_HOST_DEVICE static CHUNKWISE_ALWAYS_INLINE TPixel
  To(Type key, Type flip)
  {
    if constexpr (IsReal)
    {
      // Lowest itself, not flipped, is the key of a NaN and becomes one.
      const Type ordered = key == Lowest ? key : key ^ flip;
      const Type bits = ordered ^ ((ordered >> (8 * sizeof(Type) - 1)) & ~Lowest);
      TPixel     pixel = 0;
      memcpy(&pixel, &bits, sizeof(pixel));
      return pixel;
    }
    else if constexpr (sizeof(TPixel) == sizeof(Type) && !IsSigned)
    {
      return static_cast<TPixel>(key ^ flip) ^ static_cast<TPixel>(Lowest);
    }
    else
    {
      return static_cast<TPixel>(key ^ flip);
    }
  }
};

} // namespace chunkwise

#endif
