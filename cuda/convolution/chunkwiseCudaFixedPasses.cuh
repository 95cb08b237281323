/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaFixedPasses_cuh
#define chunkwiseCudaFixedPasses_cuh

#include "chunkwiseFftPoints.h"
#include "chunkwiseCudaKernels.h"

#include <cstdint>

// The two passes of a transform of A B points whose length is known at compile time.
namespace chunkwise
{

constexpr int
Larger(int a, int b)
{
  return a > b ? a : b;
}

/** Blocks on a multiprocessor, as many as its registers let if a thread has `points` complex numbers. */
constexpr int
BlocksOf(int threads, int points)
{
  const int registers = (2 * points + 32 + 7) / 8 * 8;
  return Larger(1, 65536 / (threads * registers));
}

/** Every point from `load`, transformed over A of them, times twiddles, to shared memory. */
template <int A, int B, bool VFew, typename TLoad, typename TKeep>
__device__ __forceinline__ void
FirstPass(int t, const float2 * __restrict__ twiddles, TLoad && load, TKeep && keep)
{
  float re[A];
  float im[A];
#pragma unroll
  for (int j = 0; j < (VFew ? A / FirstFactorOfFew(A) : A); ++j)
  {
    load(j, re[j], im[j]);
  }
  FftPoints<A, VFew>(re, im);
#pragma unroll
  for (int k = 0; k < A; ++k)
  {
    const float2 w = __ldg(twiddles + k * B + t);
    float2       z;
    z.x = fmaf(re[k], w.x, -im[k] * w.y);
    z.y = fmaf(re[k], w.y, im[k] * w.x);
    keep(k, z);
  }
}

/** B points from shared memory, transformed. */
template <int B, typename TKept>
__device__ __forceinline__ void
SecondPass(float * re, float * im, TKept && kept)
{
#pragma unroll
  for (int i = 0; i < B; ++i)
  {
    const float2 z = kept(i);
    re[i] = z.x;
    im[i] = z.y;
  }
  FftPoints<B>(re, im);
}

/** Every B-th point of a column from `t` on, asked for in order; 0 beyond the live ones. */
template <int B>
struct ColumnReader
{
  const float2 * in;
  std::int64_t   step;
  int            t;
  int            live;

  __device__
  ColumnReader(const float2 * begin, std::int64_t pointStride, int first, std::int64_t points)
    : in(begin + first * pointStride)
    , step(B * pointStride)
    , t(first)
    , live(static_cast<int>(points))
  {}
  __device__ __forceinline__ float2
  Next(int j)
  {
    float2 z = make_float2(0.0f, 0.0f);
    if (t + B * j < live)
    {
      z = *in;
    }
    in += step;
    return z;
  }
};

/** Numbers of a line in shared memory, where a pass reads what is B apart: an odd pitch has no two on one bank. */
template <int A, int B>
struct RowLines
{
  static constexpr int pitch = B | 1;
  static constexpr int line = A * pitch;
};

/** The first pass over a row of 2 A B real numbers as FixedRows has them: load(n) is number t + n, of which there are
 * `live`. */
template <int A, int B, typename TLoad, typename TKeep>
__device__ __forceinline__ void
FirstRowPass(int t, int live, const float2 * __restrict__ twiddles, TLoad && load, TKeep && keep)
{
  float re[A];
  float im[A];
#pragma unroll
  for (int j = 0; j < A; ++j)
  {
    re[j] = t + B * j < live ? load(B * j) : 0.0f;
    im[j] = t + B * j + A * B < live ? -load(B * j + A * B) : 0.0f;
  }
  TurnEach<4 * A>(re, im, std::make_integer_sequence<int, A>());
  FirstPass<A, B, false>(
    t,
    twiddles,
    [&](int j, float & x, float & y) {
      x = re[j];
      y = im[j];
    },
    keep);
}

template <typename... TParameters, typename... TArguments>
void
LaunchPasses(const char * name, void (*kernel)(TParameters...), cudaStream_t stream, std::int64_t blocks, int threads,
             std::size_t bytes, const TArguments &... arguments)
{
  if (blocks > 0)
  {
    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    kernel<<<static_cast<unsigned int>(blocks), threads, bytes, stream>>>(arguments...);
    CheckLaunch(name);
  }
}

} // namespace chunkwise

#endif
