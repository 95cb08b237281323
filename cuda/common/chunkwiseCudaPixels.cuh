/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaPixels_cuh
#define chunkwiseCudaPixels_cuh

#include "chunkwiseTypes.h"
#include "chunkwiseWindow.h"

#include <cstdint>

// Pixels of a kind that is known at run time; with VNative they are numbers of type T.
namespace chunkwise
{

/** Calls f(T{}) with the type of a kind that is known at run time. */
template <typename TFunctor>
__device__ __forceinline__ void
DispatchKindOnDevice(PixelKind kind, TFunctor && f)
{
  switch (kind)
  {
    case PixelKind::UInt8:
      return f(std::uint8_t{});
    case PixelKind::Int8:
      return f(std::int8_t{});
    case PixelKind::UInt16:
      return f(std::uint16_t{});
    case PixelKind::Int16:
      return f(std::int16_t{});
    case PixelKind::UInt32:
      return f(std::uint32_t{});
    case PixelKind::Int32:
      return f(std::int32_t{});
    case PixelKind::UInt64:
      return f(std::uint64_t{});
    case PixelKind::Int64:
      return f(std::int64_t{});
    case PixelKind::Float32:
      return f(float{});
    default:
      return f(double{});
  }
}

template <typename T, bool VNative>
__device__ T
LoadAs(const void * data, PixelKind kind, std::int64_t at)
{
  if constexpr (VNative)
  {
    return static_cast<const T *>(data)[at];
  }
  else
  {
    switch (kind)
    {
      case PixelKind::UInt8:
        return static_cast<T>(static_cast<const std::uint8_t *>(data)[at]);
      case PixelKind::Int8:
        return static_cast<T>(static_cast<const std::int8_t *>(data)[at]);
      case PixelKind::UInt16:
        return static_cast<T>(static_cast<const std::uint16_t *>(data)[at]);
      case PixelKind::Int16:
        return static_cast<T>(static_cast<const std::int16_t *>(data)[at]);
      case PixelKind::UInt32:
        return static_cast<T>(static_cast<const std::uint32_t *>(data)[at]);
      case PixelKind::Int32:
        return static_cast<T>(static_cast<const std::int32_t *>(data)[at]);
      case PixelKind::UInt64:
        return static_cast<T>(static_cast<const std::uint64_t *>(data)[at]);
      case PixelKind::Int64:
        return static_cast<T>(static_cast<const std::int64_t *>(data)[at]);
      case PixelKind::Float32:
        return static_cast<T>(static_cast<const float *>(data)[at]);
      default:
        return static_cast<T>(static_cast<const double *>(data)[at]);
    }
  }
}

template <typename T, bool VNative>
__device__ void
StoreAs(void * data, PixelKind kind, std::int64_t at, T value)
{
  if constexpr (VNative)
  {
    static_cast<T *>(data)[at] = value;
  }
  else
  {
    switch (kind)
    {
      case PixelKind::UInt8:
        static_cast<std::uint8_t *>(data)[at] = RoundAndClamp<std::uint8_t>(value);
        break;
      case PixelKind::Int8:
        static_cast<std::int8_t *>(data)[at] = RoundAndClamp<std::int8_t>(value);
        break;
      case PixelKind::UInt16:
        static_cast<std::uint16_t *>(data)[at] = RoundAndClamp<std::uint16_t>(value);
        break;
      case PixelKind::Int16:
        static_cast<std::int16_t *>(data)[at] = RoundAndClamp<std::int16_t>(value);
        break;
      case PixelKind::UInt32:
        static_cast<std::uint32_t *>(data)[at] = RoundAndClamp<std::uint32_t>(value);
        break;
      case PixelKind::Int32:
        static_cast<std::int32_t *>(data)[at] = RoundAndClamp<std::int32_t>(value);
        break;
      case PixelKind::UInt64:
        static_cast<std::uint64_t *>(data)[at] = RoundAndClamp<std::uint64_t>(value);
        break;
      case PixelKind::Int64:
        static_cast<std::int64_t *>(data)[at] = RoundAndClamp<std::int64_t>(value);
        break;
      case PixelKind::Float32:
        static_cast<float *>(data)[at] = static_cast<float>(value);
        break;
      default:
        static_cast<double *>(data)[at] = static_cast<double>(value);
        break;
    }
  }
}

/** Whether results of images of TPixel may be stored as T: as they are, as float or as double. TPixel may stand for
 * other integers of its size, and the smaller one of 16 bits for those of 8. */
template <typename TPixel, typename T>
constexpr bool
MayBeOutput()
{
  constexpr PixelKind pixel = PixelKindOf<TPixel>();
  constexpr PixelKind kind = PixelKindOf<T>();
  return IsFloatingPoint(kind) ||
         (!IsFloatingPoint(pixel) && (sizeof(T) == sizeof(TPixel) || (sizeof(T) == 1 && sizeof(TPixel) == 2)));
}

/** Converts the first `count` of `values` to `kind`, which is known at run time, and stores them every `step` pixels
 * from number `at`. The code that computes them is compiled once for all kinds. */
template <typename TPixel, typename TReal, int VCount>
__device__ __forceinline__ void
StoreResults(void * data, PixelKind kind, std::int64_t at, std::int64_t step, std::int64_t count,
             const TReal (&values)[VCount])
{
  const auto store = [&](auto pixel) {
    using T = decltype(pixel);
    if constexpr (MayBeOutput<TPixel, T>())
    {
      T * const to = static_cast<T *>(data) + at;
#pragma unroll
      for (int u = 0; u < VCount; ++u)
      {
        if (u < count)
        {
          to[u * step] = ConvertResult<T>(values[u]);
        }
      }
    }
  };
  DispatchKindOnDevice(kind, store);
}

} // namespace chunkwise

#endif
