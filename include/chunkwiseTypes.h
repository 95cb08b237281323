/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseTypes_h
#define chunkwiseTypes_h

#include "ChunkwiseExport.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

// Marks what both the host compiler and nvcc compile from one source.
#if defined(__CUDACC__)
#  define CHUNKWISE_HOST_DEVICE __host__ __device__
#else
#  define CHUNKWISE_HOST_DEVICE
#endif

// For functions in files that are compiled for several instruction sets: no copy of them is left for the linker, which
// might give the one with AVX to all.
#if defined(__GNUC__)
#  define CHUNKWISE_ALWAYS_INLINE inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#  define CHUNKWISE_ALWAYS_INLINE __forceinline
#else
#  define CHUNKWISE_ALWAYS_INLINE inline
#endif

namespace chunkwise
{

/** Images have up to this many axes, the fastest-varying (x) first. Absent axes have extent 1. */
constexpr int MaxDimension = 5;

/** At most this many axes of an image take part in a window; the others are independent. */
constexpr int MaxSpatialAxes = 3;

/** At most this many images enter one operation. */
constexpr int MaxInputs = 3;

/** The type of one pixel component. */
enum class PixelType : std::int32_t
{
  UInt8,
  Int8,
  UInt16,
  Int16,
  UInt32,
  Int32,
  UInt64,
  Int64,
  Float32,
  Float64
};

constexpr int NumberOfPixelTypes = 10;

/** Bytes of one pixel. */
CHUNKWISE_HOST_DEVICE constexpr std::size_t
PixelSize(PixelType kind)
{
  switch (kind)
  {
    case PixelType::UInt8:
    case PixelType::Int8:
      return 1;
    case PixelType::UInt16:
    case PixelType::Int16:
      return 2;
    case PixelType::UInt32:
    case PixelType::Int32:
    case PixelType::Float32:
      return 4;
    default:
      return 8;
  }
}

CHUNKWISE_HOST_DEVICE constexpr bool
IsFloatingPoint(PixelType kind)
{
  return kind == PixelType::Float32 || kind == PixelType::Float64;
}

/** "uint8" ... "float64", as the command line and messages spell it. */
Chunkwise_EXPORT const char *
PixelTypeName(PixelType kind);

/** The kind of a C++ type, by size and signedness, so that `long` and `long long` both map. */
template <typename T>
constexpr PixelType
PixelTypeOf()
{
  constexpr bool isFloat = static_cast<T>(0.5) != static_cast<T>(0);
  constexpr bool isSigned = static_cast<T>(-1) < static_cast<T>(0);
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "pixel of 1, 2, 4 or 8 bytes");
  if constexpr (isFloat)
  {
    static_assert(sizeof(T) >= 4, "float or double");
    return sizeof(T) == 4 ? PixelType::Float32 : PixelType::Float64;
  }
  else
  {
    constexpr int base = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 2 : sizeof(T) == 4 ? 4 : 6;
    return static_cast<PixelType>(base + (isSigned ? 1 : 0));
  }
}

/** Calls `f(T{})` with the C++ type of a kind. */
template <typename TFunctor>
decltype(auto)
DispatchPixelType(PixelType kind, TFunctor && f)
{
  switch (kind)
  {
    case PixelType::UInt8:
      return f(std::uint8_t{});
    case PixelType::Int8:
      return f(std::int8_t{});
    case PixelType::UInt16:
      return f(std::uint16_t{});
    case PixelType::Int16:
      return f(std::int16_t{});
    case PixelType::UInt32:
      return f(std::uint32_t{});
    case PixelType::Int32:
      return f(std::int32_t{});
    case PixelType::UInt64:
      return f(std::uint64_t{});
    case PixelType::Int64:
      return f(std::int64_t{});
    case PixelType::Float32:
      return f(float{});
    case PixelType::Float64:
      return f(double{});
  }
  throw std::logic_error("chunkwise: unknown pixel kind");
}

/** Calls f(TBits{}) with the unsigned integer of the size of a kind. */
template <typename TFunctor>
decltype(auto)
DispatchSize(PixelType kind, TFunctor && f)
{
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

/** The values that a window reads beyond the image's edge. The edge is the largest possible region's, never a
 * chunk's. */
enum class BoundaryMode : std::int32_t
{
  Renormalized,    ///< the statistic of the part of the window inside the image
  ZeroFluxNeumann, ///< the nearest edge voxel
  Constant,        ///< a given value
  Mirror,          ///< mirrored at the edge, the edge voxel repeated: ..., b, a | a, b, ...
  Periodic,        ///< the opposite side
  MirrorCenter     ///< mirrored at the center of the edge voxel, which is not repeated: ..., c, b | a, b, c, ...
};

Chunkwise_EXPORT const char *
BoundaryModeName(BoundaryMode mode);

/** Whether windows see at one side of an edge what lies as far on its other side. */
constexpr bool
IsMirror(BoundaryMode mode)
{
  return mode == BoundaryMode::Mirror || mode == BoundaryMode::MirrorCenter;
}

} // namespace chunkwise

#endif
