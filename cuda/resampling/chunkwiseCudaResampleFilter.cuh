/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaResampleFilter_cuh
#define chunkwiseCudaResampleFilter_cuh

#include "chunkwiseCudaResample.cuh"

// The coefficients of splines along the lines of an image: each voxel's sum has the order of the CPU's.
namespace chunkwise
{

template <typename TReal>
struct ResampleTaps
{
  static constexpr int Radius = static_cast<int>(SplineRadiusOf<TReal>);

  TReal taps[Radius + 1]; ///< of voxels at each distance
};

/** Any lines, voxel by voxel. */
template <typename TReal, bool VNative>
__global__ void
ResampleFilterKernel(const void * __restrict__ in, PixelKind kind, TReal * __restrict__ out,
                     const __grid_constant__ ResampleLines lines, const __grid_constant__ ResampleTaps<TReal> taps)
{
  for (std::int64_t row = FirstRow(); row < lines.CountRows(); row += RowStep())
  {
    for (std::int64_t x = threadIdx.x; x < lines.CountOfRow(); x += blockDim.x)
    {
      const ResampleLines::Place place = lines.Find(row, x);
      const std::int64_t         begin = lines.BeginOf(place);
      const auto                 load = [&](std::int64_t k) {
        return LoadAs<TReal, VNative>(in, kind, begin + lines.Map(k) * lines.inner);
      };
      const TReal center = load(place.k);
      TReal       sum = center;
#pragma unroll 1
      for (int d = 1; d <= taps.Radius; ++d)
      {
        sum += taps.taps[d] * ((load(place.k - d) - center) + (load(place.k + d) - center));
      }
      out[begin + place.k * lines.inner] = sum;
    }
  }
}

/** Rows of floats: a block stages a segment of a row in shared memory, of which each thread takes four voxels. */
constexpr int FilterRowThreads = 128;
constexpr int FilterRowSegment = 4 * FilterRowThreads;

template <bool VNative>
__global__ void
__launch_bounds__(FilterRowThreads)
  ResampleFilterRowKernel(const void * __restrict__ in, PixelKind kind, float * __restrict__ out,
                          const __grid_constant__ ResampleLines lines, const __grid_constant__ ResampleTaps<float> taps)
{
  constexpr int radius = ResampleTaps<float>::Radius;
  constexpr int before = 16;
  __shared__ __align__(16) float staged[FilterRowSegment + 2 * before];

  const std::int64_t segments = (lines.count + FilterRowSegment - 1) / FilterRowSegment;
  const bool         isAligned = lines.count % 4 == 0 && reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
  for (std::int64_t segment = blockIdx.x; segment < segments * lines.outer; segment += gridDim.x)
  {
    const std::int64_t row = Quotient(segment, segments);
    const std::int64_t first = (segment - row * segments) * FilterRowSegment;
    const std::int64_t begin = row * lines.count;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x) + before - radius; i < FilterRowSegment + before + radius;
         i += FilterRowThreads)
    {
      const std::int64_t k = first + i - before;
      // Voxels further beyond are no neighbors of the row.
      staged[i] = k < lines.count + radius ? LoadAs<float, VNative>(in, kind, begin + lines.Map(k)) : 0.0f;
    }
    __syncthreads();
    const int          own = 4 * static_cast<int>(threadIdx.x);
    const std::int64_t at = first + own;
    if (at < lines.count)
    {
      float window[4 + 2 * before];
#pragma unroll
      for (int i = 0; i < 4 + 2 * before; i += 4)
      {
        const float4 four = *reinterpret_cast<const float4 *>(staged + own + i);
        window[i] = four.x;
        window[i + 1] = four.y;
        window[i + 2] = four.z;
        window[i + 3] = four.w;
      }
      float sums[4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
      {
        const float center = window[before + j];
        sums[j] = center;
#pragma unroll
        for (int d = 1; d <= radius; ++d)
        {
          sums[j] += taps.taps[d] * ((window[before + j - d] - center) + (window[before + j + d] - center));
        }
      }
      float * const to = out + begin + at;
      if (isAligned)
      {
        *reinterpret_cast<float4 *>(to) = make_float4(sums[0], sums[1], sums[2], sums[3]);
      }
      else
      {
#pragma unroll
        for (int j = 0; j < 4; ++j)
        {
          if (at + j < lines.count)
          {
            to[j] = sums[j];
          }
        }
      }
    }
  }
}

/** Columns of floats: a thread goes along a part of one, and keeps the voxels around its own in registers. Lines
 * reflect once. */
constexpr int FilterColumnLength = 128;

static __global__ void __launch_bounds__(256, 3)
  ResampleFilterColumnKernel(const float * __restrict__ in, float * __restrict__ out,
                             const __grid_constant__ ResampleLines lines,
                             const __grid_constant__ ResampleTaps<float> taps)
{
  using Taps = ResampleTaps<float>;
  constexpr int size = 2 * Taps::Radius + 1;

  const std::int64_t parts = (lines.count + FilterColumnLength - 1) / FilterColumnLength;
  const std::int64_t all = lines.inner * lines.outer * parts;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < all;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
  {
    const std::int64_t slab = Quotient(i, lines.inner);
    const std::int64_t outer = Quotient(slab, parts);
    const std::int64_t begin = outer * lines.inner * lines.count + (i - slab * lines.inner);
    const std::int64_t first = (slab - outer * parts) * FilterColumnLength;
    const std::int64_t end = first + FilterColumnLength < lines.count ? first + FilterColumnLength : lines.count;
    const auto         reflected = [&](std::int64_t k) { return in[begin + lines.MapOnce(k) * lines.inner]; };
    float              window[size];
#pragma unroll
    for (int k = 0; k < size - 1; ++k)
    {
      window[k] = reflected(first - Taps::Radius + k);
    }
    const float * ahead = in + begin + (first + Taps::Radius) * lines.inner;
    float *       to = out + begin + first * lines.inner;
    // Steps left, and those whose last voxel is inside.
    int left = static_cast<int>(end - first);
    int inside = static_cast<int>(lines.count - Taps::Radius - first);
    while (left > 0)
    {
      // A turn of the ring: where its voxels lie is known in each step.
#pragma unroll
      for (int turn = 0; turn < size; ++turn)
      {
        if (left > 0)
        {
          window[(turn + size - 1) % size] = inside > 0 ? *ahead : reflected(end - left + Taps::Radius);
          const float center = window[(turn + Taps::Radius) % size];
          float       sum = center;
#pragma unroll
          for (int d = 1; d <= Taps::Radius; ++d)
          {
            sum += taps.taps[d] * ((window[(turn + Taps::Radius - d) % size] - center) +
                                   (window[(turn + Taps::Radius + d) % size] - center));
          }
          *to = sum;
          ahead += lines.inner;
          to += lines.inner;
        }
        --left;
        --inside;
      }
    }
  }
}

template <typename TReal>
void
LaunchFilter(const KernelCall & call, const BufferView & from, TReal * to, const ResampleLines & lines,
             const ResampleTaps<TReal> & taps)
{
  const bool isNative = from.kind == PixelKindOf<TReal>();
  if constexpr (sizeof(TReal) == sizeof(float))
  {
    if (lines.inner == 1)
    {
      const std::int64_t blocks = lines.outer * ((lines.count + FilterRowSegment - 1) / FilterRowSegment);
      (isNative ? ResampleFilterRowKernel<true>
                : ResampleFilterRowKernel<false>)<<<BlocksFor(blocks, 1), FilterRowThreads, 0, StreamOf(call)>>>(
        from.data, from.kind, to, lines, taps);
      CheckLaunch("ResampleFilterRowKernel");
      return;
    }
    if (isNative && lines.ReflectsOnce(ResampleTaps<TReal>::Radius))
    {
      const std::int64_t parts = (lines.count + FilterColumnLength - 1) / FilterColumnLength;
      ResampleFilterColumnKernel<<<BlocksFor(lines.inner * lines.outer * parts, 256), 256, 0, StreamOf(call)>>>(
        static_cast<const float *>(from.data), to, lines, taps);
      CheckLaunch("ResampleFilterColumnKernel");
      return;
    }
  }
  (isNative
     ? ResampleFilterKernel<TReal, true>
     : ResampleFilterKernel<TReal,
                            false>)<<<BlocksFor(lines.CountRows(), RowsOfBlock), ThreadsOfRows(), 0, StreamOf(call)>>>(
    from.data, from.kind, to, lines, taps);
  CheckLaunch("ResampleFilterKernel");
}

} // namespace chunkwise

#endif
