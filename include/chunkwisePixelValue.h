/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePixelValue_h
#define chunkwisePixelValue_h

#include "chunkwiseTypes.h"

#include <limits>
#include <type_traits>

namespace chunkwise
{

/** The value of a voxel of any kind, without loss: a double would round 64-bit integers. */
class Chunkwise_EXPORT PixelValue
{
public:
  PixelValue() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  PixelValue(T value)
    : m_IsInteger(std::is_integral<T>::value)
    , m_IsNegative(value < T(0))
  {
    if constexpr (std::is_integral<T>::value)
    {
      // The magnitude of the lowest integer has no place in its own type.
      const auto bits = static_cast<std::uint64_t>(value);
      m_Magnitude = m_IsNegative ? 0 - bits : bits;
    }
    else
    {
      m_Real = static_cast<double>(value);
    }
  }

  /** Reads a number; throws ParameterError if `text` is none. A number without point and exponent is an integer. */
  static PixelValue
  FromText(const std::string & text);
  std::string
  ToText() const;

  bool
  IsInteger() const
  {
    return m_IsInteger;
  }
  bool
  IsNegative() const
  {
    return m_IsNegative;
  }
  bool
  IsFinite() const;
  double
  ToDouble() const
  {
    return !m_IsInteger ? m_Real : m_IsNegative ? -static_cast<double>(m_Magnitude) : static_cast<double>(m_Magnitude);
  }
  /** Whether a voxel of this kind can have it exactly; real numbers may be rounded to float. */
  bool
  IsOf(PixelType kind) const;

  /** The value as a T, exactly if IsOf(the kind of T). Else the nearest that T has. */
  template <typename T>
  T
  As() const
  {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point<T>::value)
    {
      return static_cast<T>(this->ToDouble());
    }
    else
    {
      if (!m_IsInteger)
      {
        // 2^digits is a double for every T, the largest T is not.
        const double beyond = 2.0 * static_cast<double>(Limits::max() / 2 + 1);
        return !(m_Real > static_cast<double>(Limits::lowest())) ? Limits::lowest()
               : m_Real >= beyond                                ? Limits::max()
                                                                 : static_cast<T>(m_Real);
      }
      if (m_IsNegative)
      {
        if constexpr (std::is_signed<T>::value)
        {
          constexpr std::uint64_t least = static_cast<std::uint64_t>(Limits::max()) + 1;
          return m_Magnitude >= least ? Limits::lowest() : static_cast<T>(0 - static_cast<std::int64_t>(m_Magnitude));
        }
        return Limits::lowest();
      }
      return m_Magnitude > static_cast<std::uint64_t>(Limits::max()) ? Limits::max() : static_cast<T>(m_Magnitude);
    }
  }

  /** As<T>(). */
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  explicit
  operator T() const
  {
    return this->As<T>();
  }

  friend bool
  operator==(const PixelValue & a, const PixelValue & b)
  {
    return a.m_IsInteger == b.m_IsInteger && a.m_IsNegative == b.m_IsNegative && a.m_Magnitude == b.m_Magnitude &&
           a.m_Real == b.m_Real;
  }
  friend bool
  operator!=(const PixelValue & a, const PixelValue & b)
  {
    return !(a == b);
  }

private:
  bool          m_IsInteger{ true };
  bool          m_IsNegative{ false };
  std::uint64_t m_Magnitude{ 0 };
  double        m_Real{ 0 };
};

} // namespace chunkwise

#endif
