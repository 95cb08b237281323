/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaRealOutput_cuh
#define chunkwiseCudaRealOutput_cuh

#include "chunkwiseCudaWindow.cuh"

namespace chunkwise
{

/** Results are stored as voxels of the input's kind, as float or as double: one kernel for all, since a voxel takes
 * many operations. */
struct RealOutput
{
  Voxels<char> voxels;
  PixelKind    kind;

  template <typename TPixel, typename TReal>
  __device__ void
  Store(std::int64_t offset, TReal value) const
  {
    switch (kind)
    {
      case PixelKind::Float32:
        reinterpret_cast<float *>(voxels.data)[offset] = static_cast<float>(value);
        break;
      case PixelKind::Float64:
        reinterpret_cast<double *>(voxels.data)[offset] = static_cast<double>(value);
        break;
      default:
        reinterpret_cast<TPixel *>(voxels.data)[offset] = ConvertResult<TPixel>(value);
    }
  }
};

} // namespace chunkwise

#endif
