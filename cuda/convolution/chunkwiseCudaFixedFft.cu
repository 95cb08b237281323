/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaFixedFft.h"
#include "chunkwiseCudaFixedPasses.cuh"
#include "chunkwiseCudaPixelsOfKind.cuh"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

/** Columns of a block: 128 bytes of each row. */
constexpr int ColumnsPerBlock = 16;
/** The product has twice the numbers in registers. */
constexpr int ProductColumnsPerBlock = 8;
constexpr int RowsPerBlock = 16;

/** Whether the kernel's columns are kept in shared memory while tiles are computed: registers would not hold them, and
 * all devices have room for twice the columns. */
constexpr bool
KeepsKernelShared(int length)
{
  return length <= 512;
}

template <int A, int B, int C, bool VInverse>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOf(C * Larger(A, B), Larger(A, B)))
  FixedColumnsKernel(ColumnSet set, float2 * data, const float2 * __restrict__ twiddles)
{
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  const int                                     c = threadIdx.x % C;
  const int                                     t = threadIdx.x / C;
  std::int64_t                                  column = 0;
  float2 * const                                begin = data + ColumnBegin(set, C, column) + c;
  if (t < B)
  {
    ColumnReader<B> reader(begin, set.pointStride, t, VInverse ? A * B : set.live);
    FirstPass<A, B, false>(
      t,
      twiddles,
      [&](int j, float & re, float & im) {
        const float2 z = reader.Next(j);
        // The inverse is the transform with real and imaginary parts exchanged.
        re = VInverse ? z.y : z.x;
        im = VInverse ? z.x : z.y;
      },
      [&](int k, float2 z) { shared[(k * B + t) * C + c] = z; });
  }
  __syncthreads();
  if (t < A)
  {
    float re[B];
    float im[B];
    SecondPass<B>(re, im, [&](int i) { return shared[(t * B + i) * C + c]; });
    const int          first = t - (VInverse ? static_cast<int>(set.from) : 0);
    const int          kept = VInverse ? static_cast<int>(set.to - set.from) : A * B;
    float2 *           out = begin + first * set.pointStride;
    const std::int64_t step = A * set.pointStride;
#pragma unroll
    for (int q = 0; q < B; ++q)
    {
      // One comparison: below 0 is beyond.
      if (!VInverse || static_cast<unsigned int>(first + A * q) < static_cast<unsigned int>(kept))
      {
        *out = VInverse ? make_float2(im[q], re[q]) : make_float2(re[q], im[q]);
      }
      out += step;
    }
  }
}

template <int A, int B, int C>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOf(C * Larger(A, B), A + B))
  FixedProductKernel(ColumnSet set, ColumnTiles tiles, float2 * data, const float2 * __restrict__ there,
                     const float2 * __restrict__ back, const float2 * __restrict__ kernel, int kernelLive)
{
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  const int                                     c = threadIdx.x % C;
  const int                                     t = threadIdx.x / C;
  std::int64_t                                  column = 0;
  float2 * const                                begin = data + ColumnBegin(set, C, column) + c;
  ColumnReader<B>                               kernelReader(kernel + column + c, set.columns, t, kernelLive);
  const auto                                    loadKernel = [&](int j, float & re, float & im) {
    const float2 z = kernelReader.Next(j);
    re = z.x;
    im = z.y;
  };
  const auto keep = [&](int k, float2 z) { shared[(k * B + t) * C + c] = z; };
  if (t < B)
  {
    if (kernelLive <= A / FirstFactorOfFew(A) * B)
    {
      FirstPass<A, B, true>(t, there, loadKernel, keep);
    }
    else
    {
      FirstPass<A, B, false>(t, there, loadKernel, keep);
    }
  }
  __syncthreads();
  float          kernelRe[B];
  float          kernelIm[B];
  constexpr bool isShared = KeepsKernelShared(A * B);
  float2 * const kernelKept = shared + A * B * C + t * C + c;
  if (t < A)
  {
    SecondPass<B>(kernelRe, kernelIm, [&](int i) { return shared[(t * B + i) * C + c]; });
#pragma unroll
    for (int i = 0; isShared && i < B; ++i)
    {
      kernelKept[i * A * C] = make_float2(kernelRe[i], kernelIm[i]);
    }
  }
#pragma unroll 1
  for (int tile = 0; tile < tiles.output; tile += tiles.tile)
  {
    __syncthreads();
    if (t < B)
    {
      const ColumnTiles::Part part = tiles.At(tile);
      ColumnReader<B>         reader(begin + part.in * set.pointStride, set.pointStride, t, part.live);
      FirstPass<A, B, false>(
        t,
        there,
        [&](int j, float & re, float & im) {
          const float2 z = reader.Next(j);
          re = z.x;
          im = z.y;
        },
        keep);
    }
    __syncthreads();
    float re[B];
    float im[B];
    if (t < A)
    {
      SecondPass<B>(re, im, [&](int i) { return shared[(t * B + i) * C + c]; });
    }
    __syncthreads();
    if (t < A)
    {
      // The frequencies t + A i, as the transform back begins with, real and imaginary parts exchanged.
      FirstPass<B, A, false>(
        t,
        back,
        [&](int j, float & outRe, float & outIm) {
          const float2 k = isShared ? kernelKept[j * A * C] : make_float2(kernelRe[j], kernelIm[j]);
          outIm = fmaf(re[j], k.x, -im[j] * k.y);
          outRe = fmaf(re[j], k.y, im[j] * k.x);
        },
        [&](int k, float2 z) { shared[(k * A + t) * C + c] = z; });
    }
    __syncthreads();
    if (t < B)
    {
      float x[A];
      float y[A];
      SecondPass<A>(x, y, [&](int i) { return shared[(t * A + i) * C + c]; });
      const ColumnTiles::Part part = tiles.At(tile);
      const int               first = t - part.from;
      const int               kept = part.to - part.from;
      float2 *                out = begin + (part.out + first) * set.pointStride;
      const std::int64_t      step = B * set.pointStride;
#pragma unroll
      for (int q = 0; q < A; ++q)
      {
        if (static_cast<unsigned int>(first + B * q) < static_cast<unsigned int>(kept))
        {
          *out = make_float2(y[q], x[q]);
        }
        out += step;
      }
    }
  }
}

/** How the pixels of a row are found. */
enum class RowPixels
{
  Floats, ///< side by side, all in the box
  Apart,  ///< floats; taps may lie beyond the box, and voxels apart
  AnyKind ///< the same, of any kind
};

template <int A, int B, int C, RowPixels VPixels>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOf(C * Larger(A, B), Larger(A, B)))
  FixedForwardRowsKernel(RowSource source, float constant, Spectrum spectrum, PlaneRange range,
                         float2 * __restrict__ out, const float2 * __restrict__ twiddles)
{
  constexpr int     M = A * B;
  constexpr int     pitch = RowLines<A, B>::pitch;
  constexpr int     line = RowLines<A, B>::line;
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  __shared__ long long                          from[C];
  __shared__ long long                          to[C];
  __shared__ int                                taps[VPixels == RowPixels::Floats ? 1 : 2 * M];
  if (threadIdx.x < C)
  {
    FindSource(source,
               spectrum,
               range,
               static_cast<std::int64_t>(blockIdx.x) * C + threadIdx.x,
               from[threadIdx.x],
               to[threadIdx.x]);
  }
  const int live = static_cast<int>(source.count[0]);
  if (VPixels != RowPixels::Floats)
  {
    for (int i = threadIdx.x; i < live; i += blockDim.x)
    {
      taps[i] =
        static_cast<int>(MapTap(source.lower[0] + i, source.boxLower[0], source.boxUpper[0], source.n[0], source.mode) -
                         source.boxLower[0]);
    }
  }
  __syncthreads();
  {
    const int c = threadIdx.x / B;
    const int t = threadIdx.x % B;
    if (c < C && from[c] >= 0)
    {
      const float * const row =
        static_cast<const float *>(source.data) + from[c] + source.lower[0] - source.boxLower[0] + t;
      const auto load = [&](int n) {
        if constexpr (VPixels == RowPixels::Floats)
        {
          return __ldg(row + n) - constant;
        }
        else
        {
          const std::int64_t at = from[c] + taps[t + n] * source.stride[0];
          const float        value = VPixels == RowPixels::Apart ? static_cast<const float *>(source.data)[at]
                                                                 : LoadOfKind(source.data, source.kind, at);
          return source.weights ? (value - constant) * __ldg(source.weights + t + n) : value - constant;
        }
      };
      FirstRowPass<A, B>(t, live, twiddles, load, [&](int k, float2 z) { shared[c * line + k * pitch + t] = z; });
    }
  }
  __syncthreads();
  const int c = threadIdx.x / A;
  const int s = threadIdx.x % A;
  if (c < C && to[c] >= 0)
  {
    float re[B];
    float im[B];
    SecondPass<B>(re, im, [&](int i) { return shared[c * line + s * pitch + i]; });
    float2 * const row = out + to[c] + s;
#pragma unroll
    for (int q = 0; q < B; ++q)
    {
      row[A * q] = make_float2(re[q], im[q]);
    }
  }
}

/** Adds every A-th voxel of half a row, which begins at `row` and is voxel `first` of the target, to the sums there,
 * times its weight. All sums are asked for before the first one is stored. */
template <int A, int B>
__device__ __forceinline__ void
AddToSums(const RowTarget & target, float * row, std::int64_t stride, int first, const float * values, float scale,
          float constant)
{
  const unsigned int kept = static_cast<unsigned int>(target.count[0]);
  float              sums[B];
  float              weights[B];
#pragma unroll
  for (int q = 0; q < B; ++q)
  {
    const bool isKept = static_cast<unsigned int>(first + A * q) < kept;
    sums[q] = isKept ? row[A * q * stride] : 0.0f;
    weights[q] = isKept && target.weights ? __ldg(target.weights + first + A * q) : 1.0f;
  }
#pragma unroll
  for (int q = 0; q < B; ++q)
  {
    if (static_cast<unsigned int>(first + A * q) < kept)
    {
      row[A * q * stride] = fmaf(fmaf(values[q], scale, constant), weights[q], sums[q]);
    }
  }
}

/** With `VGeneral` voxels may lie apart, and pixels be of any kind; whether there are factors is then seen at run time,
 * as each voxel chooses its kind there too. */
template <int A, int B, int C, bool VGeneral, bool VFactors>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOf(C * Larger(A, B), Larger(A, B)))
  FixedInverseRowsKernel(RowTarget target, float scale, float constant, Spectrum spectrum, PlaneRange range,
                         const float2 * __restrict__ in, const float2 * __restrict__ twiddles)
{
  constexpr int     M = A * B;
  constexpr int     pitch = RowLines<A, B>::pitch;
  constexpr int     line = RowLines<A, B>::line;
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  __shared__ long long                          from[C];
  __shared__ long long                          to[C];
  __shared__ long long                          factorRow[C];
  if (threadIdx.x < C)
  {
    const int r = threadIdx.x;
    FindTarget(target, spectrum, range, static_cast<std::int64_t>(blockIdx.x) * C + r, from[r], to[r], factorRow[r]);
  }
  __syncthreads();
  {
    const int c = threadIdx.x / B;
    const int t = threadIdx.x % B;
    if (c < C && from[c] >= 0)
    {
      const float2 * const row = in + from[c] + t;
      FirstPass<A, B, false>(
        t,
        twiddles,
        [&](int j, float & re, float & im) {
          const float2 z = row[B * j];
          re = z.y;
          im = z.x;
        },
        [&](int k, float2 z) { shared[c * line + k * pitch + t] = z; });
    }
  }
  __syncthreads();
  const int c = threadIdx.x / A;
  const int s = threadIdx.x % A;
  if (c < C && to[c] >= 0)
  {
    float re[B];
    float im[B];
    SecondPass<B>(re, im, [&](int i) { return shared[c * line + s * pitch + i]; });
    TurnEach<4 * B>(re, im, std::make_integer_sequence<int, B>());
    const int          first = s - static_cast<int>(target.crop);
    const unsigned int kept = static_cast<unsigned int>(target.count[0]);
    const std::int64_t stride = VGeneral ? target.stride[0] : 1;
    const std::int64_t begin = to[c] + first * stride;
    float * const      row = static_cast<float *>(target.data) + begin;
    const bool         hasFactors = target.factors != nullptr;
    const auto * const factors = static_cast<const float *>(target.factors) + factorRow[c];
    // In a table the states along a row are beside each other.
    const RowStates states(target.lower[0] + first, target.n[0], target.kernel[0], target.below[0]);
    const auto      store = [&](int n, float value) {
      // One comparison: below 0 is beyond.
      if (static_cast<unsigned int>(first + n) < kept)
      {
        value = fmaf(value, scale, constant);
        if (VFactors && (!VGeneral || hasFactors))
        {
          value *= __ldg(factors + states.At(n));
        }
        if constexpr (VGeneral)
        {
          StoreOfKind(target.data, target.kind, begin + n * stride, value);
        }
        else
        {
          row[n] = value;
        }
      }
    };
    if (VGeneral && target.adds)
    {
      AddToSums<A, B>(target, row, stride, first, im, scale, constant);
      AddToSums<A, B>(target, row + M * stride, stride, first + M, re, -scale, constant);
      return;
    }
#pragma unroll
    for (int q = 0; q < B; ++q)
    {
      store(A * q, im[q]);
      store(A * q + M, -re[q]);
    }
  }
}

template <int A, int B, bool VInverse>
void
RunColumns(cudaStream_t stream, std::int64_t sets, const ColumnSet & set, float2 * data, const float2 * twiddles)
{
  constexpr int C = ColumnsPerBlock;
  LaunchPasses("FixedColumnsKernel",
               FixedColumnsKernel<A, B, C, VInverse>,
               stream,
               sets * (set.columns / C),
               C * Larger(A, B),
               sizeof(float2) * A * B * C,
               set,
               data,
               twiddles);
}

template <int A, int B>
void
RunProduct(cudaStream_t stream, std::int64_t sets, const ColumnSet & set, const ColumnTiles & tiles, float2 * data,
           const float2 * there, const float2 * back, const float2 * kernel, int kernelLive)
{
  constexpr int C = ProductColumnsPerBlock;
  LaunchPasses("FixedProductKernel",
               FixedProductKernel<A, B, C>,
               stream,
               sets * (set.columns / C),
               C * Larger(A, B),
               sizeof(float2) * A * B * C * (KeepsKernelShared(A * B) ? 2 : 1),
               set,
               tiles,
               data,
               there,
               back,
               kernel,
               kernelLive);
}

template <int A, int B>
void
RunForwardRows(cudaStream_t stream, const RowSource & source, const Spectrum & spectrum, const PlaneRange & range,
               float2 * out, const float2 * twiddles)
{
  constexpr int C = RowsPerBlock;
  const bool apart = source.lower[0] < source.boxLower[0] || source.lower[0] + source.count[0] > source.boxUpper[0] ||
                     source.stride[0] != 1 || source.weights;
  const auto kernel = source.kind != PixelType::Float32 ? FixedForwardRowsKernel<A, B, C, RowPixels::AnyKind>
                      : apart                           ? FixedForwardRowsKernel<A, B, C, RowPixels::Apart>
                                                        : FixedForwardRowsKernel<A, B, C, RowPixels::Floats>;
  LaunchPasses("FixedForwardRowsKernel",
               kernel,
               stream,
               (range.count * source.count[1] + C - 1) / C,
               C * Larger(A, B),
               sizeof(float2) * C * RowLines<A, B>::line,
               source,
               static_cast<float>(source.constant),
               spectrum,
               range,
               out,
               twiddles);
}

template <int A, int B>
void
RunInverseRows(cudaStream_t stream, const RowTarget & target, const Spectrum & spectrum, const PlaneRange & range,
               const float2 * in, const float2 * twiddles)
{
  constexpr int C = RowsPerBlock;
  const bool    general = target.stride[0] != 1 || target.kind != PixelType::Float32 || target.adds;
  const auto    kernel = general          ? FixedInverseRowsKernel<A, B, C, true, true>
                         : target.factors ? FixedInverseRowsKernel<A, B, C, false, true>
                                          : FixedInverseRowsKernel<A, B, C, false, false>;
  LaunchPasses("FixedInverseRowsKernel",
               kernel,
               stream,
               (range.count * target.count[1] + C - 1) / C,
               C * Larger(A, B),
               sizeof(float2) * C * RowLines<A, B>::line,
               target,
               static_cast<float>(target.scale),
               static_cast<float>(target.constant),
               spectrum,
               range,
               in,
               twiddles);
}

template <int A, int B>
constexpr FixedColumns
MakeColumns()
{
  return { A * B, { A, B, 0, 0 }, { B, A, 0, 0 }, RunColumns<A, B, false>, RunColumns<B, A, true>, RunProduct<A, B> };
}

template <int A, int B>
constexpr FixedRows
MakeRows()
{
  return { 2 * A * B, { A, B, 0.25, 0 }, { B, A, 0, 0.25 }, RunForwardRows<A, B>, RunInverseRows<B, A> };
}

constexpr FixedColumns Columns[] = { MakeColumns<16, 8>(),  MakeColumns<16, 9>(),  MakeColumns<16, 10>(),
                                     MakeColumns<16, 12>(), MakeColumns<16, 15>(), MakeColumns<16, 16>(),
                                     MakeColumns<18, 16>(), MakeColumns<20, 16>(), MakeColumns<20, 18>(),
                                     MakeColumns<24, 16>(), MakeColumns<24, 18>(), MakeColumns<24, 20>(),
                                     MakeColumns<32, 16>(), MakeColumns<24, 24>(), MakeColumns<32, 20>(),
                                     MakeColumns<32, 24>(), MakeColumns<32, 32>() };
/** Half the length is a multiple of RowUnit. */
constexpr FixedRows Rows[] = { MakeRows<16, 8>(),  MakeRows<16, 9>(),  MakeRows<16, 10>(), MakeRows<16, 12>(),
                               MakeRows<16, 15>(), MakeRows<16, 16>(), MakeRows<16, 18>(), MakeRows<16, 20>(),
                               MakeRows<16, 24>(), MakeRows<20, 20>(), MakeRows<24, 18>(), MakeRows<16, 32>() };

template <typename TTransform, std::size_t VCount>
const TTransform *
Find(const TTransform (&transforms)[VCount], std::int64_t length)
{
  for (const TTransform & transform : transforms)
  {
    if (transform.length >= length)
    {
      return &transform;
    }
  }
  return nullptr;
}

} // namespace

std::string
FixedTwiddles::GetKey() const
{
  return "fixed transform " + std::to_string(a) + " " + std::to_string(b) + " " + std::to_string(ofPoint) + " " +
         std::to_string(ofFrequency);
}

std::vector<float2>
FixedTwiddles::Make() const
{
  std::vector<float2> twiddles;
  for (int k = 0; k < a; ++k)
  {
    for (int t = 0; t < b; ++t)
    {
      const double angle = 2 * 3.14159265358979323846 * (t * k + ofPoint * t + ofFrequency * k) / (a * b);
      float2       w;
      w.x = static_cast<float>(std::cos(angle));
      w.y = static_cast<float>(-std::sin(angle));
      twiddles.push_back(w);
    }
  }
  return twiddles;
}

const FixedColumns *
FindFixedColumns(std::int64_t length)
{
  return Find(Columns, length);
}

const FixedRows *
FindFixedRows(std::int64_t length)
{
  return Find(Rows, length);
}

} // namespace chunkwise
