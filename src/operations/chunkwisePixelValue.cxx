/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwisePixelValue.h"

#include "chunkwiseError.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace chunkwise
{

PixelValue
PixelValue::FromText(const std::string & text)
{
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const bool        isInteger = text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string::npos;
  char *            end = nullptr;
  errno = 0;
  PixelValue value;
  if (isInteger)
  {
    value.m_Magnitude = std::strtoull(text.c_str() + sign, &end, 10);
    value.m_IsNegative = text[0] == '-' && value.m_Magnitude != 0;
    if (errno == ERANGE)
    {
      throw ParameterError(text + " is beyond 64-bit integers");
    }
    return value;
  }
  value.m_IsInteger = false;
  value.m_Real = std::strtod(text.c_str(), &end);
  value.m_IsNegative = value.m_Real < 0;
  if (text.empty() || *end != '\0' || std::isspace(static_cast<unsigned char>(text[0])))
  {
    throw ParameterError("'" + text + "' is not a number");
  }
  if (errno == ERANGE && std::isinf(value.m_Real))
  {
    throw ParameterError(text + " is beyond what a double holds");
  }
  return value;
}

std::string
PixelValue::ToText() const
{
  if (m_IsInteger)
  {
    return (m_IsNegative ? "-" : "") + std::to_string(m_Magnitude);
  }
  // The shortest that reads as the same number.
  char text[40];
  for (int digits = 6; digits <= 17; ++digits)
  {
    std::snprintf(text, sizeof(text), "%.*g", digits, m_Real);
    if (std::strtod(text, nullptr) == m_Real)
    {
      break;
    }
  }
  return text;
}

bool
PixelValue::IsFinite() const
{
  return m_IsInteger || std::isfinite(m_Real);
}

bool
PixelValue::IsOf(PixelType kind) const
{
  if (IsFloatingPoint(kind) && !m_IsInteger)
  {
    // A number from there on would become an infinity.
    constexpr double beyondFloat = 0x1.ffffffp127;
    return kind == PixelType::Float64 || !std::isfinite(m_Real) || std::abs(m_Real) < beyondFloat;
  }
  if (IsFloatingPoint(kind))
  {
    // Beyond the integers that a float counts without gaps it would become another one.
    return m_Magnitude <= (kind == PixelType::Float32 ? std::uint64_t{ 1 } << 24 : std::uint64_t{ 1 } << 53) ||
           DispatchPixelType(kind, [this](auto pixel) {
             const double rounded = static_cast<double>(this->As<decltype(pixel)>());
             return std::abs(rounded) < 18446744073709551616.0 &&
                    static_cast<std::uint64_t>(std::abs(rounded)) == m_Magnitude;
           });
  }
  if (!m_IsInteger && !(std::abs(m_Real) < 18446744073709551616.0 && std::floor(m_Real) == m_Real))
  {
    return false;
  }
  const std::uint64_t magnitude = m_IsInteger ? m_Magnitude : static_cast<std::uint64_t>(std::abs(m_Real));
  const bool          negative = m_IsNegative && magnitude != 0;
  const bool          isSigned = (static_cast<int>(kind) & 1) != 0;
  const int           bits = 8 * static_cast<int>(PixelSize(kind)) - (isSigned ? 1 : 0);
  const std::uint64_t largest = bits == 64 ? ~std::uint64_t{ 0 } : (std::uint64_t{ 1 } << bits) - 1;
  return negative ? isSigned && magnitude <= largest + 1 : magnitude <= largest;
}

} // namespace chunkwise
