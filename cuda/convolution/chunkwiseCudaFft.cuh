/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaFft_cuh
#define chunkwiseCudaFft_cuh

#include "chunkwiseFftButterflies.h"

#include <cstdint>
#include <cuda_runtime.h>

// Transforms of several lines at once in a block's shared memory, in place. Forward transforms leave frequency k at the
// position where reversing k's digits puts it, inverse ones take it from there: what is between is a product, for which
// any order will do, and no pass has to wait for another to have read. The first pass takes its points from a functor
// and the last hands its to one, so that neither passes through shared memory.
namespace chunkwise
{

constexpr int MostFftPasses = 12;
constexpr int FftThreads = 256;

template <typename T>
struct Complex;
template <>
struct Complex<float>
{
  using Type = float2;
};
template <>
struct Complex<double>
{
  using Type = double2;
};

/** A transform's length and passes. */
template <typename T>
struct FftPasses
{
  int count;
  int length;
  int radix[MostFftPasses];
  /** Points left in a part after the pass. */
  int left[MostFftPasses];
  /** ceil(2^32 / left): products with it divide numbers below 2^16. */
  unsigned int magic[MostFftPasses];
  /** The first of each pass' twiddles: for p in [0, left), k in [1, radix). */
  int                               twiddle[MostFftPasses];
  const typename Complex<T>::Type * twiddles;
  /** The position of a frequency after a forward transform. */
  const int * position;
};

/** The place in shared memory of point `i` of line `c`, and how a block's threads take butterflies. */
struct FftColumns
{
  int lines; ///< a power of two
  int shift;

  __device__ int
  Address(int c, int i) const
  {
    return (i << shift) + c;
  }
  __device__ void
  Split(int butterfly, int, int & c, int & i) const
  {
    c = butterfly & (lines - 1);
    i = butterfly >> shift;
  }
};

struct FftRows
{
  int lines;
  int pitch;

  __device__ int
  Address(int c, int i) const
  {
    // A gap after 16 points keeps points that are a power of two apart on different banks.
    return c * pitch + i + (i >> 4);
  }
  __device__ void
  Split(int butterfly, int perLine, int & c, int & i) const
  {
    c = butterfly / perLine;
    i = butterfly - c * perLine;
  }
};

/** One pass of radix R over all lines of the block. load(c, i) gives a point, store(c, i, re, im) takes one. */
template <typename T, int R, bool VInverse, typename TLayout, typename TLoad, typename TStore>
__device__ __forceinline__ void
FftPass(const FftPasses<T> & passes, int pass, const TLayout & layout, TLoad && load, TStore && store)
{
  const int                               m = passes.left[pass];
  const typename Complex<T>::Type * const twiddles = passes.twiddles + passes.twiddle[pass];
  const int                               perLine = passes.length / R;
  for (int butterfly = threadIdx.x; butterfly < perLine * layout.lines; butterfly += FftThreads)
  {
    int c = 0;
    int i = 0;
    layout.Split(butterfly, perLine, c, i);
    const int part = m == 1 ? i : static_cast<int>(__umulhi(static_cast<unsigned int>(i), passes.magic[pass]));
    const int p = i - part * m;
    const int first = part * m * R + p;
    T         re[R];
    T         im[R];
#pragma unroll
    for (int j = 0; j < R; ++j)
    {
      const auto z = load(c, first + m * j);
      // The inverse is the transform with real and imaginary parts exchanged.
      re[j] = VInverse ? z.y : z.x;
      im[j] = VInverse ? z.x : z.y;
    }
    if (VInverse && m > 1)
    {
#pragma unroll
      for (int k = 1; k < R; ++k)
      {
        const auto w = __ldg(twiddles + p * (R - 1) + k - 1);
        const T    t = fma(re[k], w.x, -im[k] * w.y);
        im[k] = fma(re[k], w.y, im[k] * w.x);
        re[k] = t;
      }
    }
    FftButterfly<T, R>(re, im);
    if (!VInverse && m > 1)
    {
#pragma unroll
      for (int k = 1; k < R; ++k)
      {
        const auto w = __ldg(twiddles + p * (R - 1) + k - 1);
        const T    t = fma(re[k], w.x, -im[k] * w.y);
        im[k] = fma(re[k], w.y, im[k] * w.x);
        re[k] = t;
      }
    }
#pragma unroll
    for (int k = 0; k < R; ++k)
    {
      typename Complex<T>::Type z;
      z.x = VInverse ? im[k] : re[k];
      z.y = VInverse ? re[k] : im[k];
      store(c, first + m * k, z);
    }
  }
}

/** Every point as it is. */
template <typename TLayout, typename TLoad, typename TStore>
__device__ __forceinline__ void
FftCopy(int length, const TLayout & layout, TLoad && load, TStore && store)
{
  for (int n = threadIdx.x; n < length * layout.lines; n += FftThreads)
  {
    int c = 0;
    int i = 0;
    layout.Split(n, length, c, i);
    store(c, i, load(c, i));
  }
}

template <typename T, bool VInverse, typename TLayout, typename TLoad, typename TStore>
__device__ __forceinline__ void
FftDispatch(const FftPasses<T> & passes, int pass, const TLayout & layout, TLoad && load, TStore && store)
{
  switch (passes.radix[pass])
  {
    case 2:
      return FftPass<T, 2, VInverse>(passes, pass, layout, load, store);
    case 3:
      return FftPass<T, 3, VInverse>(passes, pass, layout, load, store);
    case 4:
      return FftPass<T, 4, VInverse>(passes, pass, layout, load, store);
    case 5:
      return FftPass<T, 5, VInverse>(passes, pass, layout, load, store);
    case 7:
      return FftPass<T, 7, VInverse>(passes, pass, layout, load, store);
    case 8:
      return FftPass<T, 8, VInverse>(passes, pass, layout, load, store);
    default:
      return FftPass<T, 16, VInverse>(passes, pass, layout, load, store);
  }
}

/** All passes. From shared memory or `load`, to shared memory, then with the block in step, or to `store`. */
template <typename T, bool VInverse, bool VFromShared, bool VToShared, typename TLayout, typename TLoad,
          typename TStore>
__device__ __forceinline__ void
FftTransform(const FftPasses<T> & passes, typename Complex<T>::Type * shared, const TLayout & layout, TLoad && load,
             TStore && store)
{
  const auto loadShared = [&](int c, int i) { return shared[layout.Address(c, i)]; };
  const auto storeShared = [&](int c, int i, typename Complex<T>::Type z) { shared[layout.Address(c, i)] = z; };
  const int  count = passes.count;
  int        pass = 0;
  if constexpr (!VFromShared)
  {
    FftDispatch<T, VInverse>(passes, VInverse ? count - 1 : 0, layout, load, storeShared);
    __syncthreads();
    pass = 1;
  }
  // A transform of one pass ends in shared memory, wherever it is wanted.
  for (; pass < count - (VToShared || count == 1 ? 0 : 1); ++pass)
  {
    FftDispatch<T, VInverse>(passes, VInverse ? count - 1 - pass : pass, layout, loadShared, storeShared);
    __syncthreads();
  }
  if constexpr (!VToShared)
  {
    if (count > 1)
    {
      FftDispatch<T, VInverse>(passes, VInverse ? 0 : count - 1, layout, loadShared, store);
    }
    else
    {
      FftCopy(passes.length, layout, loadShared, store);
    }
  }
}

} // namespace chunkwise

#endif
