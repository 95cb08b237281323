/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarrValues_h
#define fileZarrValues_h

#include "chunkwiseGeometry.h"

#include <cstdint>
#include <cstring>

namespace chunkwise::files
{

/** The value of float16 bits, exactly. */
inline float
HalfToFloat(std::uint16_t half)
{
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 31u;
  const std::uint32_t fraction = half & 1023u;
  std::uint32_t       bits = 0;
  if (exponent == 31)
  {
    bits = sign | 0x7f800000u | fraction << 13;
  }
  else if (exponent > 0)
  {
    bits = sign | (exponent + 112) << 23 | fraction << 13;
  }
  else
  {
    // A multiple of 2^-24.
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    std::memcpy(&bits, &value, sizeof(bits));
    bits |= sign;
  }
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/** Copies values of `size` bytes between two layouts of a box of `extent`; strides count values. */
void
CopyStrided(std::size_t size, const Coordinates & extent, const char * from, const Coordinates & fromStride, char * to,
            const Coordinates & toStride);

} // namespace chunkwise::files

#endif
