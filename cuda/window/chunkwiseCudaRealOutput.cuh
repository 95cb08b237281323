/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaRealOutput_cuh
#define chunkwiseCudaRealOutput_cuh

#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaWindow.cuh"

#include <type_traits>

namespace chunkwise
{

/** Results are stored as voxels of the input's kind, as float or as double; those of real inputs as any kind, which the
 * last stage of a composite makes. One kernel for all, since a voxel takes many operations. */
struct RealOutput
{
  Voxels<char> voxels;
  PixelType    kind;

  template <typename TReal>
  __device__ __noinline__ static void
  StoreOther(char * data, PixelType kind, std::int64_t offset, TReal value)
  {
    DispatchKindOnDevice(kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      reinterpret_cast<Pixel *>(data)[offset] = ConvertResult<Pixel>(value);
    });
  }

  template <typename TPixel, typename TReal>
  __device__ void
  Store(std::int64_t offset, TReal value) const
  {
    switch (kind)
    {
      case PixelType::Float32:
        reinterpret_cast<float *>(voxels.data)[offset] = static_cast<float>(value);
        break;
      case PixelType::Float64:
        reinterpret_cast<double *>(voxels.data)[offset] = static_cast<double>(value);
        break;
      default:
        if constexpr (std::is_integral<TPixel>::value)
        {
          reinterpret_cast<TPixel *>(voxels.data)[offset] = ConvertResult<TPixel>(value);
        }
        else
        {
          StoreOther(voxels.data, kind, offset, value);
        }
    }
  }
};

} // namespace chunkwise

#endif
