/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseEqualKinds_h
#define chunkwiseEqualKinds_h

#include "chunkwiseTypes.h"

#include <cstdint>

namespace chunkwise
{

/** Calls f(TPixel{}) with a type whose values are equal, 0, and 1 where those of this kind are, by their bits: one type
 * for all integers of a size. */
template <typename TFunctor>
void
DispatchEqual(PixelKind kind, TFunctor && f)
{
  if (IsFloatingPoint(kind))
  {
    return kind == PixelKind::Float32 ? f(float{}) : f(double{});
  }
  switch (PixelSize(kind))
  {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

} // namespace chunkwise

#endif
