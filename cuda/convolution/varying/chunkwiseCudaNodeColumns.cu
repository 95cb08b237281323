/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaNodeColumns.h"
#include "chunkwiseCudaFixedPasses.cuh"

namespace chunkwise
{

namespace
{

constexpr int ColumnsPerBlock = 16;
/** Products have two lines for each column. */
constexpr int ProductColumnsPerBlock = 8;

/** Blocks on a multiprocessor: with more of them many registers would be spilled. */
constexpr int
BlocksOfTerms(int threads)
{
  return 640 / threads;
}
constexpr int
BlocksOfProducts(int threads, bool whole)
{
  return (whole ? 640 : 384) / threads;
}

/** Entry `i` of an array in a kernel's parameters: an index that is known at run time only would copy the array. */
template <typename TEntry>
__device__ __forceinline__ const TEntry &
Entry(const TEntry (&entries)[MostNodes], int i)
{
  static_assert(MostNodes == 2);
  return i == 0 ? entries[0] : entries[1];
}

template <int A, int B, int C>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOf(C * Larger(A, B), A + B))
  TermsInverseKernel(ColumnSet set, NodeTerms terms, const float2 * __restrict__ in, float2 * __restrict__ out,
                     const float2 * __restrict__ twiddles)
{
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  const int                                     c = threadIdx.x % C;
  const int                                     t = threadIdx.x / C;
  std::int64_t                                  column = 0;
  const std::int64_t                            begin = ColumnBegin(set, C, column) + c;
  const int                                     first = t - static_cast<int>(set.from);
  const auto                                    kept = static_cast<unsigned int>(set.to - set.from);
  float                                         sumRe[B];
  float                                         sumIm[B];
#pragma unroll
  for (int q = 0; q < B; ++q)
  {
    sumRe[q] = sumIm[q] = 0.0f;
  }
#pragma unroll 1
  for (int j = 0; j < terms.nodes.nodes; ++j)
  {
    if (t < B)
    {
      ColumnReader<B> reader(in + j * terms.stride + begin, set.pointStride, t, A * B);
      FirstPass<A, B, false>(
        t,
        twiddles,
        [&](int i, float & re, float & im) {
          const float2 z = reader.Next(i);
          re = z.y;
          im = z.x;
        },
        [&](int k, float2 z) { shared[(k * B + t) * C + c] = z; });
    }
    __syncthreads();
    if (t < A)
    {
      float re[B];
      float im[B];
      SecondPass<B>(re, im, [&](int i) { return shared[(t * B + i) * C + c]; });
      const float * const weights = Entry(terms.nodes.weights, j) + first;
#pragma unroll
      for (int q = 0; q < B; ++q)
      {
        // One comparison: below 0 is beyond.
        if (static_cast<unsigned int>(first + A * q) < kept)
        {
          const float weight = __ldg(weights + A * q);
          sumRe[q] = fmaf(weight, im[q], sumRe[q]);
          sumIm[q] = fmaf(weight, re[q], sumIm[q]);
        }
      }
    }
    __syncthreads();
  }
  if (t < A)
  {
    float2 * const to = out + begin;
#pragma unroll
    for (int q = 0; q < B; ++q)
    {
      if (static_cast<unsigned int>(first + A * q) < kept)
      {
        to[(first + A * q) * set.pointStride] = make_float2(sumRe[q], sumIm[q]);
      }
    }
  }
}

template <int A, int B, int C>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOfTerms(C * Larger(A, B)))
  TermsForwardKernel(ColumnSet set, NodeTerms terms, const float2 * __restrict__ in, float2 * __restrict__ out,
                     const float2 * __restrict__ twiddles)
{
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  const int                                     c = threadIdx.x % C;
  const int                                     t = threadIdx.x / C;
  std::int64_t                                  column = 0;
  const std::int64_t                            begin = ColumnBegin(set, C, column) + c;
  const int                                     live = static_cast<int>(set.live);
#pragma unroll 1
  for (int j = 0; j < terms.nodes.nodes; ++j)
  {
    if (t < B)
    {
      const float * const weights = Entry(terms.nodes.weights, j) + t;
      ColumnReader<B>     reader(in + begin, set.pointStride, t, live);
      FirstPass<A, B, false>(
        t,
        twiddles,
        [&](int i, float & re, float & im) {
          const float2 z = reader.Next(i);
          const float  weight = t + B * i < live ? __ldg(weights + B * i) : 0.0f;
          re = z.x * weight;
          im = z.y * weight;
        },
        [&](int k, float2 z) { shared[(k * B + t) * C + c] = z; });
    }
    __syncthreads();
    if (t < A)
    {
      float re[B];
      float im[B];
      SecondPass<B>(re, im, [&](int i) { return shared[(t * B + i) * C + c]; });
      float2 * const to = out + j * terms.stride + begin + t * set.pointStride;
#pragma unroll
      for (int q = 0; q < B; ++q)
      {
        to[A * q * set.pointStride] = make_float2(re[q], im[q]);
      }
    }
    __syncthreads();
  }
}

/** The columns of a product, C of them in a block. */
template <int A, int B, int C>
struct ProductColumn
{
  int          c{ static_cast<int>(threadIdx.x) % C };
  int          t{ static_cast<int>(threadIdx.x) / C };
  std::int64_t column{ static_cast<std::int64_t>(blockIdx.x) * C + c };

  static __device__ __forceinline__ const float2 *
  KernelOf(const NodeProduct & product, int i, int j)
  {
    return i == 0 ? Entry(product.kernels[0], j) : Entry(product.kernels[1], j);
  }
  /** The first pass of a column of a kernel. */
  __device__ __forceinline__ void
  LoadKernel(const NodeProduct & product, int i, int j, const float2 * twiddles, float2 * shared) const
  {
    this->Load(KernelOf(product, i, j), product, product.kernelLive, twiddles, shared);
  }
  /** The frequencies t + A q of a kernel that is transformed along all axes, if t is below A. */
  __device__ __forceinline__ void
  TakeKernel(const NodeProduct & product, int i, int j, float * re, float * im) const
  {
    const float2 * const from = KernelOf(product, i, j) + t * product.columns + column;
#pragma unroll
    for (int q = 0; q < B; ++q)
    {
      const float2 z = t < A ? __ldg(from + A * q * product.columns) : make_float2(0.0f, 0.0f);
      re[q] = z.x;
      im[q] = z.y;
    }
  }
  /** The same of a kernel that is not; all threads of the block call it, and nobody may use `shared`. */
  __device__ __forceinline__ void
  TransformKernel(const NodeProduct & product, int i, int j, const float2 * twiddles, float2 * shared, float * re,
                  float * im) const
  {
    if (t < B)
    {
      this->LoadKernel(product, i, j, twiddles, shared);
    }
    __syncthreads();
    if (t < A)
    {
      SecondPass<B>(re, im, [&](int q) { return shared[(t * B + q) * C + c]; });
    }
  }
  /** The first pass of a column whose first `live` points are given. */
  template <typename TLive>
  __device__ __forceinline__ void
  Load(const float2 * from, const NodeProduct & product, TLive live, const float2 * twiddles, float2 * shared) const
  {
    ColumnReader<B> reader(from + column, product.columns, t, live);
    FirstPass<A, B, false>(
      t,
      twiddles,
      [&](int q, float & re, float & im) {
        const float2 z = reader.Next(q);
        re = z.x;
        im = z.y;
      },
      [&](int k, float2 z) { shared[(k * B + t) * C + c] = z; });
  }
};

template <int A, int B, int C, bool VWhole>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOfProducts(C * Larger(A, B), VWhole))
  NodeProductKernel(NodeProduct product, const float2 * __restrict__ in, float2 * __restrict__ out,
                    const float2 * __restrict__ there, const float2 * __restrict__ back)
{
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  const ProductColumn<A, B, C>                  own;
  const int                                     c = own.c;
  const int                                     t = own.t;
  // A thread's own: registers are for what is transformed.
  float2 * const frequencies = shared + A * B * C + t * C + c;
  if (t < B)
  {
    own.Load(in, product, product.live, there, shared);
  }
  __syncthreads();
  if (t < A)
  {
    float re[B];
    float im[B];
    SecondPass<B>(re, im, [&](int i) { return shared[(t * B + i) * C + c]; });
#pragma unroll
    for (int q = 0; q < B; ++q)
    {
      frequencies[q * A * C] = make_float2(re[q], im[q]);
    }
  }
  const int  first = t - product.crop;
  const auto kept = static_cast<unsigned int>(product.kept);
#pragma unroll 1
  for (int i = 0; i < product.terms.nodes.nodes; ++i)
  {
    float sumRe[A]{};
    float sumIm[A]{};
#pragma unroll 1
    for (int j = 0; j < product.last.nodes; ++j)
    {
      float kernelRe[B];
      float kernelIm[B];
      if constexpr (VWhole)
      {
        own.TakeKernel(product, i, j, kernelRe, kernelIm);
      }
      else
      {
        __syncthreads();
        own.TransformKernel(product, i, j, there, shared, kernelRe, kernelIm);
      }
      __syncthreads();
      if (t < A)
      {
        // The frequencies t + A q, as the transform back begins with, real and imaginary parts exchanged.
        FirstPass<B, A, false>(
          t,
          back,
          [&](int q, float & outRe, float & outIm) {
            const float2 z = frequencies[q * A * C];
            outIm = fmaf(z.x, kernelRe[q], -z.y * kernelIm[q]);
            outRe = fmaf(z.x, kernelIm[q], z.y * kernelRe[q]);
          },
          [&](int k, float2 z) { shared[(k * A + t) * C + c] = z; });
      }
      __syncthreads();
      if (t < B)
      {
        float x[A];
        float y[A];
        SecondPass<A>(x, y, [&](int q) { return shared[(t * A + q) * C + c]; });
        const float * const weights = Entry(product.last.weights, j) + first;
#pragma unroll
        for (int q = 0; q < A; ++q)
        {
          if (static_cast<unsigned int>(first + B * q) < kept)
          {
            const float weight = __ldg(weights + B * q);
            sumRe[q] = fmaf(weight, y[q], sumRe[q]);
            sumIm[q] = fmaf(weight, x[q], sumIm[q]);
          }
        }
      }
    }
    if (t < B)
    {
      float2 * const to = out + i * product.terms.stride + own.column;
#pragma unroll
      for (int q = 0; q < A; ++q)
      {
        if (static_cast<unsigned int>(first + B * q) < kept)
        {
          to[(first + B * q) * product.columns] = make_float2(sumRe[q], sumIm[q]);
        }
      }
    }
  }
}

template <int A, int B, int C, bool VWhole>
__global__ void
__launch_bounds__(C * Larger(A, B), BlocksOfProducts(C * Larger(A, B), VWhole))
  NodeSpreadProductKernel(NodeProduct product, const float2 * __restrict__ in, float2 * __restrict__ out,
                          const float2 * __restrict__ there, const float2 * __restrict__ back)
{
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);
  float2 * const                                sharedKernel = shared + A * B * C;
  const ProductColumn<A, B, C>                  own;
  const int                                     c = own.c;
  const int                                     t = own.t;
  float                                         sumRe[B];
  float                                         sumIm[B];
#pragma unroll
  for (int q = 0; q < B; ++q)
  {
    sumRe[q] = sumIm[q] = 0.0f;
  }
#pragma unroll 1
  for (int i = 0; i < product.terms.nodes.nodes; ++i)
  {
#pragma unroll 1
    for (int j = 0; j < product.last.nodes; ++j)
    {
      float kernelRe[B];
      float kernelIm[B];
      if constexpr (VWhole)
      {
        own.TakeKernel(product, i, j, kernelRe, kernelIm);
      }
      if (t < B)
      {
        const float * const weights = Entry(product.last.weights, j) + t;
        ColumnReader<B>     reader(in + i * product.terms.stride + own.column, product.columns, t, product.live);
        FirstPass<A, B, false>(
          t,
          there,
          [&](int q, float & re, float & im) {
            const float2 z = reader.Next(q);
            const float  weight = t + B * q < product.live ? __ldg(weights + B * q) : 0.0f;
            re = z.x * weight;
            im = z.y * weight;
          },
          [&](int k, float2 z) { shared[(k * B + t) * C + c] = z; });
        if constexpr (!VWhole)
        {
          own.LoadKernel(product, i, j, there, sharedKernel);
        }
      }
      __syncthreads();
      if (t < A)
      {
        float re[B];
        float im[B];
        SecondPass<B>(re, im, [&](int q) { return shared[(t * B + q) * C + c]; });
        if constexpr (!VWhole)
        {
          SecondPass<B>(kernelRe, kernelIm, [&](int q) { return sharedKernel[(t * B + q) * C + c]; });
        }
#pragma unroll
        for (int q = 0; q < B; ++q)
        {
          sumRe[q] = fmaf(re[q], kernelRe[q], fmaf(-im[q], kernelIm[q], sumRe[q]));
          sumIm[q] = fmaf(re[q], kernelIm[q], fmaf(im[q], kernelRe[q], sumIm[q]));
        }
      }
      __syncthreads();
    }
  }
  if (t < A)
  {
    FirstPass<B, A, false>(
      t,
      back,
      [&](int q, float & re, float & im) {
        re = sumIm[q];
        im = sumRe[q];
      },
      [&](int k, float2 z) { shared[(k * A + t) * C + c] = z; });
  }
  __syncthreads();
  if (t < B)
  {
    float x[A];
    float y[A];
    SecondPass<A>(x, y, [&](int q) { return shared[(t * A + q) * C + c]; });
    const int first = t - product.crop;
#pragma unroll
    for (int q = 0; q < A; ++q)
    {
      if (static_cast<unsigned int>(first + B * q) < static_cast<unsigned int>(product.kept))
      {
        out[(first + B * q) * product.columns + own.column] = make_float2(y[q], x[q]);
      }
    }
  }
}

/** With `VSpread` there, else back; A and B are those of the transform that is done. */
template <int A, int B, bool VSpread>
void
RunTerms(cudaStream_t stream, std::int64_t planes, const ColumnSet & set, const NodeTerms & terms, const float2 * in,
         float2 * out, const float2 * twiddles)
{
  constexpr int C = ColumnsPerBlock;
  LaunchPasses("NodeTermsKernel",
               VSpread ? TermsForwardKernel<A, B, C> : TermsInverseKernel<A, B, C>,
               stream,
               planes * (set.columns / C),
               C * Larger(A, B),
               sizeof(float2) * A * B * C,
               set,
               terms,
               in,
               out,
               twiddles);
}

template <int A, int B, bool VSpread>
void
RunProduct(cudaStream_t stream, const NodeProduct & product, const float2 * in, float2 * out, const float2 * there,
           const float2 * back)
{
  constexpr int C = ProductColumnsPerBlock;
  const bool    isWhole = product.kernelLive == 0;
  const auto    spread = isWhole ? NodeSpreadProductKernel<A, B, C, true> : NodeSpreadProductKernel<A, B, C, false>;
  const auto    gather = isWhole ? NodeProductKernel<A, B, C, true> : NodeProductKernel<A, B, C, false>;
  LaunchPasses("NodeProductKernel",
               VSpread ? spread : gather,
               stream,
               product.columns / C,
               C * Larger(A, B),
               (VSpread && isWhole ? 1 : 2) * sizeof(float2) * A * B * C,
               product,
               in,
               out,
               there,
               back);
}

template <int A, int B>
NodeColumns
MakeColumns()
{
  return { FindFixedColumns(A * B),
           { RunTerms<B, A, false>, RunTerms<A, B, true> },
           { RunProduct<A, B, false>, RunProduct<A, B, true> } };
}

} // namespace

const std::vector<NodeColumns> &
GetNodeColumns()
{
  // The factors are those of the fixed transforms of these lengths.
  static const auto & columns = *new std::vector<NodeColumns>{
    MakeColumns<16, 8>(), MakeColumns<16, 10>(), MakeColumns<16, 12>(), MakeColumns<16, 16>(), MakeColumns<20, 16>()
  };
  return columns;
}

} // namespace chunkwise
