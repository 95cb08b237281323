/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseExactSum_h
#define chunkwiseExactSum_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace chunkwise
{

/** A sum without rounding: of up to 2^39 numbers, in any order and any parts, rounded once at the end. */
class Chunkwise_EXPORT ExactSum
{
public:
  ExactSum();

  /** 2^1074 times a double is an integer: bits of equal exponent add up in a bin of their own. */
  void
  Add(double value)
  {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    const auto   exponent = static_cast<std::size_t>(bits >> 52 & 0x7FF);
    std::int64_t mantissa = static_cast<std::int64_t>(bits & 0xFFFFFFFFFFFFF);
    if (exponent == 0x7FF)
    {
      m_Special += value; // infinities and NaN
      return;
    }
    mantissa |= exponent ? std::int64_t{ 1 } << 52 : 0;
    m_Bins[exponent ? exponent - 1 : 0] += bits >> 63 ? -mantissa : mantissa;
  }
  void
  Add(const ExactSum & other);

  /** The sum rounded to nearest, ties to even. NaN or an infinity if there was one. */
  double
  Get() const;

private:
  __extension__ using Wide = __int128;
  std::vector<Wide> m_Bins;
  double            m_Special{ 0 };
};

} // namespace chunkwise

#endif
