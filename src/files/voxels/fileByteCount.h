/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileByteCount_h
#define fileByteCount_h

#include "fileImage.h"

#include <cstdint>
#include <limits>
#include <string>

namespace chunkwise::files
{

/** A number of bytes, or of values, that a header asks for: extent * components * bytes per value. Products and sums
 * saturate at Uncountable instead of overflowing, and negative factors give Uncountable, so that numbers of a header
 * need no checks before they are multiplied. */
class ByteCount
{
public:
  /** Positions in files have 63 bits. */
  static constexpr std::int64_t Uncountable = std::numeric_limits<std::int64_t>::max();

  constexpr explicit ByteCount(std::int64_t value)
    : m_Value(value < 0 ? Uncountable : value)
  {}
  /** For numbers without a sign, such as sizes and positions. */
  static constexpr ByteCount
  FromUnsigned(std::uint64_t value)
  {
    return ByteCount(value > static_cast<std::uint64_t>(Uncountable) ? Uncountable : static_cast<std::int64_t>(value));
  }
  /** Values of all components of an image. */
  static constexpr ByteCount
  OfValues(const Coordinates & extent, std::int64_t components)
  {
    ByteCount count(components);
    for (int a = 0; a < MaxDimension; ++a)
    {
      count = count * extent[a];
    }
    return count;
  }
  static constexpr ByteCount
  OfImage(const Coordinates & extent, std::int64_t components, std::size_t bytesPerValue)
  {
    return OfValues(extent, components) * static_cast<std::int64_t>(bytesPerValue);
  }

  constexpr ByteCount
  operator*(std::int64_t factor) const
  {
    const bool fits = factor >= 0 && IsCountable() && (factor == 0 || m_Value <= (Uncountable - 1) / factor);
    return ByteCount(fits ? m_Value * factor : Uncountable);
  }
  constexpr ByteCount
  operator+(ByteCount other) const
  {
    const bool fits = IsCountable() && other.IsCountable() && m_Value < Uncountable - other.m_Value;
    return ByteCount(fits ? m_Value + other.m_Value : Uncountable);
  }
  constexpr bool
  IsCountable() const
  {
    return m_Value < Uncountable;
  }
  /** Uncountable if a factor was negative, or the product too large. */
  constexpr std::int64_t
  Get() const
  {
    return m_Value;
  }
  constexpr bool
  operator<=(ByteCount other) const
  {
    return m_Value <= other.m_Value;
  }

private:
  std::int64_t m_Value;
};

/** How many bytes one byte of a file can expand to. A deflate stream (zlib, gzip) spends at least two bits on a run of
 * 258 bytes: 258 * 8 / 2. */
constexpr std::int64_t RawRatio = 1;
constexpr std::int64_t DeflateRatio = 1032;

/** A header may not ask for more than its file can hold: throws FileError unless `available` bytes of `file` can expand
 * to `needed` bytes. Readers call it before they allocate anything of the header's sizes. */
void
RequireInFile(const std::string & file, ByteCount needed, std::uint64_t available, std::int64_t ratio = RawRatio);

} // namespace chunkwise::files

#endif
