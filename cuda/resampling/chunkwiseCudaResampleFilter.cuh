/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaResampleFilter_cuh
#define chunkwiseCudaResampleFilter_cuh

#include "chunkwiseCudaResample.cuh"

// The coefficients of splines along the lines of an image: each voxel's sum has the order of the CPU's.
namespace chunkwise
{

/** Any lines, voxel by voxel. */
template <typename TReal, bool VNative>
__global__ void
ResampleFilterKernel(const void * __restrict__ in, PixelType kind, TReal * __restrict__ out,
                     const __grid_constant__ ResampleLines lines, const __grid_constant__ SplineSums<TReal> sums)
{
  constexpr int radius = static_cast<int>(SplineRadiusOf<TReal>);
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
      TReal       ofSides[2];
#pragma unroll 1
      for (int side = 0; side < 2; ++side)
      {
        TReal differences[radius];
        TReal last = center;
#pragma unroll
        for (int d = 0; d < radius; ++d)
        {
          const TReal next = load(side == 0 ? place.k + d + 1 : place.k - d - 1);
          differences[d] = side == 0 ? next - last : last - next;
          last = next;
        }
        ofSides[side] = sums.Sum([&](int d) { return differences[d]; });
      }
      out[begin + place.k * lines.inner] = (center - sums.factor * ofSides[1]) + sums.factor * ofSides[0];
    }
  }
}

/** Rows of floats: a block stages a segment of a row in shared memory, of which each thread takes eight voxels. */
constexpr int FilterRowVoxels = 8;
constexpr int FilterRowThreads = 64;
constexpr int FilterRowSegment = FilterRowVoxels * FilterRowThreads;

/** The place of a staged voxel: threads that load four of theirs together find them in different banks. */
__device__ __forceinline__ constexpr int
PlaceInFilterRow(int i)
{
  return i + i / 32 * 4;
}

/** Adds the differences on one side to the voxels of a window: those behind them (VBack), or those ahead. */
template <bool VBack, int VSize>
__device__ __forceinline__ void
AddDifferencesOfRow(const float (&window)[VSize], const SplineSums<float> & sums, float (&results)[FilterRowVoxels])
{
  // Number i of the window, or number i from its end.
  const auto place = [](int i) { return VBack ? i : VSize - 1 - i; };
  float      ofSums[VSize];
#pragma unroll
  for (int i = 1; i < VSize; ++i)
  {
    const float one = window[place(i)];
    const float other = window[place(i - 1)];
    ofSums[i] = VBack ? one - other : other - one;
  }
  // Sum i begins with difference i and goes on towards the window's edge.
  const auto grow = [&](auto lengthOfSums, float power) {
    constexpr int length = decltype(lengthOfSums)::value;
#pragma unroll
    for (int i = VSize - 1; i >= 2 * length; --i)
    {
      ofSums[i] += power * ofSums[i - length];
    }
  };
  grow(std::integral_constant<int, 1>{}, sums.powers[0]);
  grow(std::integral_constant<int, 2>{}, sums.powers[1]);
  grow(std::integral_constant<int, 4>{}, sums.powers[2]);
  grow(std::integral_constant<int, 8>{}, sums.powers[3]);
#pragma unroll
  for (int j = 0; j < FilterRowVoxels; ++j)
  {
    const float of = sums.factor * ofSums[place((VSize - FilterRowVoxels) / 2 + j)];
    results[j] = VBack ? results[j] - of : results[j] + of;
  }
}

template <bool VNative>
__global__ void
__launch_bounds__(FilterRowThreads)
  ResampleFilterRowKernel(const void * __restrict__ in, PixelType kind, float * __restrict__ out,
                          const __grid_constant__ ResampleLines lines, const __grid_constant__ SplineSums<float> sums)
{
  constexpr int radius = static_cast<int>(SplineRadiusOf<float>);
  constexpr int size = FilterRowVoxels + 2 * radius;
  static_assert(radius == 16, "sums of 16 differences are added up here");
  __shared__ __align__(16) float staged[PlaceInFilterRow(FilterRowSegment + 2 * radius)];

  const std::int64_t segments = (lines.count + FilterRowSegment - 1) / FilterRowSegment;
  const bool         isAligned = lines.count % 4 == 0 && reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
  for (std::int64_t segment = blockIdx.x; segment < segments * lines.outer; segment += gridDim.x)
  {
    const std::int64_t row = Quotient(segment, segments);
    const std::int64_t first = (segment - row * segments) * FilterRowSegment;
    const std::int64_t begin = row * lines.count;
    __syncthreads();
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < FilterRowSegment + 2 * radius; i += FilterRowThreads)
    {
      const std::int64_t k = first + i - radius;
      // Voxels further beyond are no neighbors of the row.
      staged[PlaceInFilterRow(i)] =
        k < lines.count + radius ? LoadAs<float, VNative>(in, kind, begin + lines.Map(k)) : 0.0f;
    }
    __syncthreads();
    const int          own = FilterRowVoxels * static_cast<int>(threadIdx.x);
    const std::int64_t at = first + own;
    if (at < lines.count)
    {
      float window[size];
#pragma unroll
      for (int i = 0; i < size; i += 4)
      {
        const float4 four = *reinterpret_cast<const float4 *>(staged + PlaceInFilterRow(own + i));
        window[i] = four.x;
        window[i + 1] = four.y;
        window[i + 2] = four.z;
        window[i + 3] = four.w;
      }
      float results[FilterRowVoxels];
#pragma unroll
      for (int j = 0; j < FilterRowVoxels; ++j)
      {
        results[j] = window[radius + j];
      }
      AddDifferencesOfRow<true>(window, sums, results);
      AddDifferencesOfRow<false>(window, sums, results);
      float * const to = out + begin + at;
#pragma unroll
      for (int j = 0; j < FilterRowVoxels; j += 4)
      {
        if (isAligned && at + j + 4 <= lines.count)
        {
          *reinterpret_cast<float4 *>(to + j) = make_float4(results[j], results[j + 1], results[j + 2], results[j + 3]);
          continue;
        }
#pragma unroll
        for (int k = j; k < j + 4; ++k)
        {
          if (at + k < lines.count)
          {
            to[k] = results[k];
          }
        }
      }
    }
  }
}

/** Columns of floats: a thread goes along a part of one, and keeps sums of differences for the voxels that need them.
 * Lines reflect once. */
constexpr int FilterColumnLength = 129;
constexpr int FilterColumnThreads = 128;

static __global__ void
__launch_bounds__(FilterColumnThreads, 4)
  ResampleFilterColumnKernel(const float * __restrict__ in, float * __restrict__ out,
                             const __grid_constant__ ResampleLines lines,
                             const __grid_constant__ SplineSums<float> sums)
{
  constexpr int radius = static_cast<int>(SplineRadiusOf<float>);
  constexpr int turn = 16;
  static_assert(radius == 16, "sums of 16 differences are added up here");

  const std::int64_t parts = (lines.count + FilterColumnLength - 1) / FilterColumnLength;
  const std::int64_t all = lines.inner * lines.outer * parts;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < all;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
  {
    const std::int64_t slab = Quotient(i, lines.inner);
    const std::int64_t outer = Quotient(slab, parts);
    const std::int64_t begin = outer * lines.inner * lines.count + (i - slab * lines.inner);
    const std::int64_t first = (slab - outer * parts) * FilterColumnLength;
    const int          length =
      static_cast<int>(FilterColumnLength < lines.count - first ? FilterColumnLength : lines.count - first);
    const auto reflected = [&](std::int64_t k) { return in[begin + lines.MapOnce(k) * lines.inner]; };
    // Voxel k brings difference k. back2[k] is the sum of differences k and k - 1, ahead2[k - 1] that of k - 1 and k,
    // and so on. Each array keeps the last ones.
    float   last = reflected(first - radius);
    float   lastDifference = 0;
    float   back2[2]{};
    float   back4[4]{};
    float   back8[8]{};
    float   ahead2[2]{};
    float   ahead4[4]{};
    float   ahead8[8]{};
    float   halves[turn]; // of the result
    float * to = out + begin + (first - 2 * radius + 1) * lines.inner;
    for (int k = 1 - radius; k < length + radius; k += turn)
    {
      float next[turn];
      if (first + k >= 0 && first + k + turn <= lines.count)
      {
        const float * from = in + begin + (first + k) * lines.inner;
#pragma unroll
        for (int t = 0; t < turn; ++t)
        {
          next[t] = *from;
          from += lines.inner;
        }
      }
      else
      {
#pragma unroll
        for (int t = 0; t < turn; ++t)
        {
          const std::int64_t end = lines.count + radius;
          next[t] = reflected(first + k + t < end ? first + k + t : end - 1);
        }
      }
#pragma unroll
      for (int t = 0; t < turn; ++t)
      {
        const float difference = next[t] - last;
        const float b2 = difference + sums.powers[0] * lastDifference;
        const float b4 = b2 + sums.powers[1] * back2[t % 2];
        const float b8 = b4 + sums.powers[2] * back4[t % 4];
        const float b16 = b8 + sums.powers[3] * back8[t % 8];
        const float a2 = lastDifference + sums.powers[0] * difference;
        const float a4 = ahead2[t % 2] + sums.powers[1] * a2;
        const float a8 = ahead4[t % 4] + sums.powers[2] * a4;
        const float a16 = ahead8[t % 8] + sums.powers[3] * a8;
        // The voxel that is 16 before this one has all differences behind it now.
        const int done = k + t - radius;
        if (done >= 0 && done < length)
        {
          *to = halves[t] + sums.factor * a16;
        }
        to += lines.inner;
        halves[t] = next[t] - sums.factor * b16;
        last = next[t];
        lastDifference = difference;
        back2[t % 2] = b2;
        back4[t % 4] = b4;
        back8[t % 8] = b8;
        ahead2[t % 2] = a2;
        ahead4[t % 4] = a4;
        ahead8[t % 8] = a8;
      }
    }
  }
}

template <typename TReal>
void
LaunchFilter(const KernelCall & call, const BufferView & from, TReal * to, const ResampleLines & lines,
             const SplineSums<TReal> & sums)
{
  const bool isNative = from.kind == PixelTypeOf<TReal>();
  if constexpr (sizeof(TReal) == sizeof(float))
  {
    if (lines.inner == 1)
    {
      const std::int64_t blocks = lines.outer * ((lines.count + FilterRowSegment - 1) / FilterRowSegment);
      (isNative ? ResampleFilterRowKernel<true>
                : ResampleFilterRowKernel<false>)<<<BlocksFor(blocks, 1), FilterRowThreads, 0, StreamOf(call)>>>(
        from.data, from.kind, to, lines, sums);
      CheckLaunch("ResampleFilterRowKernel");
      return;
    }
    if (isNative && lines.ReflectsOnce(SplineRadiusOf<TReal>))
    {
      const std::int64_t parts = (lines.count + FilterColumnLength - 1) / FilterColumnLength;
      ResampleFilterColumnKernel<<<BlocksFor(lines.inner * lines.outer * parts, FilterColumnThreads),
                                   FilterColumnThreads,
                                   0,
                                   StreamOf(call)>>>(static_cast<const float *>(from.data), to, lines, sums);
      CheckLaunch("ResampleFilterColumnKernel");
      return;
    }
  }
  (isNative
     ? ResampleFilterKernel<TReal, true>
     : ResampleFilterKernel<TReal,
                            false>)<<<BlocksFor(lines.CountRows(), RowsOfBlock), ThreadsOfRows(), 0, StreamOf(call)>>>(
    from.data, from.kind, to, lines, sums);
  CheckLaunch("ResampleFilterKernel");
}

} // namespace chunkwise

#endif
