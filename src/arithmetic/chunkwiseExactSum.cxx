/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseExactSum.h"

#include <cmath>

namespace chunkwise
{

namespace
{

/** Exponents of finite doubles. */
constexpr std::size_t NumberOfBins = 2046;
constexpr int         LimbBits = 32;
/** All bins and the carries of 2^39 numbers, and a sign. */
constexpr std::size_t NumberOfLimbs = (NumberOfBins + 53 + 40) / LimbBits + 2;

} // namespace

ExactSum::ExactSum()
  : m_Bins(NumberOfBins, 0)
{}

void
ExactSum::Add(const ExactSum & other)
{
  for (std::size_t i = 0; i < NumberOfBins; ++i)
  {
    m_Bins[i] += other.m_Bins[i];
  }
  m_Special += other.m_Special;
}

double
ExactSum::Get() const
{
  if (m_Special != 0) // true for NaN
  {
    return m_Special;
  }
  // Number i of the limbs counts 2^(32 i - 1074).
  Wide limbs[NumberOfLimbs] = {};
  for (std::size_t i = 0; i < NumberOfBins; ++i)
  {
    // A bin has up to 92 bits: its parts of 32 bits, moved by up to 31, stay far from a limb's 127.
    const Wide        bin = m_Bins[i];
    const std::size_t limb = i / LimbBits;
    const auto        factor = Wide{ 1 } << (i % LimbBits);
    const Wide        high = bin >> (2 * LimbBits);
    const Wide        rest = bin - high * (Wide{ 1 } << (2 * LimbBits));
    limbs[limb] += (rest & 0xFFFFFFFF) * factor;
    limbs[limb + 1] += (rest >> LimbBits) * factor;
    limbs[limb + 2] += high * factor;
  }
  const auto carry = [&] {
    for (std::size_t i = 0; i + 1 < NumberOfLimbs; ++i)
    {
      const Wide over = limbs[i] >> LimbBits;
      limbs[i] -= over * (Wide{ 1 } << LimbBits);
      limbs[i + 1] += over;
    }
  };
  carry();
  const bool isNegative = limbs[NumberOfLimbs - 1] < 0;
  if (isNegative)
  {
    for (Wide & limb : limbs)
    {
      limb = -limb;
    }
    carry();
  }
  std::size_t top = NumberOfLimbs - 1;
  while (top > 0 && limbs[top] == 0)
  {
    --top;
  }
  // The three highest limbs, at least 65 bits, and whether anything is below them.
  Wide      head = 0;
  const int lowest = top >= 2 ? static_cast<int>(top) - 2 : 0;
  for (int i = static_cast<int>(top); i >= lowest; --i)
  {
    head = head * (Wide{ 1 } << LimbBits) + limbs[i];
  }
  for (int i = 0; i < lowest; ++i)
  {
    head |= limbs[i] != 0 ? 1 : 0;
  }
  // Subnormal results are sums of subnormals: they are exact, and so is the scaling.
  const double magnitude = std::ldexp(static_cast<double>(head), LimbBits * lowest - 1074);
  return isNegative ? -magnitude : magnitude;
}

} // namespace chunkwise
