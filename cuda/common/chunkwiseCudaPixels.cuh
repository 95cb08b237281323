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
DispatchKindOnDevice(PixelType kind, TFunctor && f)
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
    default:
      return f(double{});
  }
}

template <typename T, bool VNative>
__device__ T
LoadAs(const void * data, PixelType kind, std::int64_t at)
{
  if constexpr (VNative)
  {
    return static_cast<const T *>(data)[at];
  }
  else
  {
    switch (kind)
    {
      case PixelType::UInt8:
        return static_cast<T>(static_cast<const std::uint8_t *>(data)[at]);
      case PixelType::Int8:
        return static_cast<T>(static_cast<const std::int8_t *>(data)[at]);
      case PixelType::UInt16:
        return static_cast<T>(static_cast<const std::uint16_t *>(data)[at]);
      case PixelType::Int16:
        return static_cast<T>(static_cast<const std::int16_t *>(data)[at]);
      case PixelType::UInt32:
        return static_cast<T>(static_cast<const std::uint32_t *>(data)[at]);
      case PixelType::Int32:
        return static_cast<T>(static_cast<const std::int32_t *>(data)[at]);
      case PixelType::UInt64:
        return static_cast<T>(static_cast<const std::uint64_t *>(data)[at]);
      case PixelType::Int64:
        return static_cast<T>(static_cast<const std::int64_t *>(data)[at]);
      case PixelType::Float32:
        return static_cast<T>(static_cast<const float *>(data)[at]);
      default:
        return static_cast<T>(static_cast<const double *>(data)[at]);
    }
  }
}

template <typename T, bool VNative>
__device__ void
StoreAs(void * data, PixelType kind, std::int64_t at, T value)
{
  if constexpr (VNative)
  {
    static_cast<T *>(data)[at] = value;
  }
  else
  {
    switch (kind)
    {
      case PixelType::UInt8:
        static_cast<std::uint8_t *>(data)[at] = RoundAndClamp<std::uint8_t>(value);
        break;
      case PixelType::Int8:
        static_cast<std::int8_t *>(data)[at] = RoundAndClamp<std::int8_t>(value);
        break;
      case PixelType::UInt16:
        static_cast<std::uint16_t *>(data)[at] = RoundAndClamp<std::uint16_t>(value);
        break;
      case PixelType::Int16:
        static_cast<std::int16_t *>(data)[at] = RoundAndClamp<std::int16_t>(value);
        break;
      case PixelType::UInt32:
        static_cast<std::uint32_t *>(data)[at] = RoundAndClamp<std::uint32_t>(value);
        break;
      case PixelType::Int32:
        static_cast<std::int32_t *>(data)[at] = RoundAndClamp<std::int32_t>(value);
        break;
      case PixelType::UInt64:
        static_cast<std::uint64_t *>(data)[at] = RoundAndClamp<std::uint64_t>(value);
        break;
      case PixelType::Int64:
        static_cast<std::int64_t *>(data)[at] = RoundAndClamp<std::int64_t>(value);
        break;
      case PixelType::Float32:
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
  constexpr PixelType pixel = PixelTypeOf<TPixel>();
  constexpr PixelType kind = PixelTypeOf<T>();
  return IsFloatingPoint(kind) ||
         (!IsFloatingPoint(pixel) && (sizeof(T) == sizeof(TPixel) || (sizeof(T) == 1 && sizeof(TPixel) == 2)));
}

/** Converts the first `count` of `values` to `kind`, which is known at run time, and stores them every `step` pixels
 * from number `at`. The code that computes them is compiled once for all kinds. */
template <typename TPixel, typename TReal, int VCount>
__device__ __forceinline__ void
StoreResults(void * data, PixelType kind, std::int64_t at, std::int64_t step, std::int64_t count,
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
