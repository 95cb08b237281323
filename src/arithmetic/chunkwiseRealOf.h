/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRealOf_h
#define chunkwiseRealOf_h

#include "chunkwiseTypes.h"

#include <type_traits>

namespace chunkwise
{

/** The type in which operations on real numbers compute: float for float, 8- and 16-bit integers, double for the
 * others. */
template <typename TPixel>
using RealOf = std::conditional_t<std::is_same<TPixel, float>::value || sizeof(TPixel) <= 2, float, double>;

/** Whether RealOf a pixel of this kind is double. */
inline bool
UsesDouble(PixelType kind)
{
  return kind != PixelType::Float32 && PixelSize(kind) > 2;
}

} // namespace chunkwise

#endif
