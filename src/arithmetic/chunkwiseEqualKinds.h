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
DispatchEqual(PixelType kind, TFunctor && f)
{
  if (IsFloatingPoint(kind))
  {
    return kind == PixelType::Float32 ? f(float{}) : f(double{});
  }
  DispatchSize(kind, f);
}

} // namespace chunkwise

#endif
