/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaNetworkTiles.h"

#include "chunkwiseCudaFixedPasses.cuh"
#include "chunkwiseCudaNetworkHalf.h"
#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseNetworkPlan.h"
#include "chunkwiseNetworkTileGrid.h"

#include <cuda_pipeline.h>

namespace chunkwise
{

namespace
{

using network::FindStrides;
using network::FindTileAxis;
using network::IsWithin;
using network::Step;
using network::Tensor;
using network::TileAxis;
using network::TileGrid;

/** A tile in shared memory: [z][y][x], of which z has half as many complex numbers as voxels. A thread has one line of
 * a full axis, or two of the halved one. */
template <int T>
struct TileShape
{
  static constexpr int half = T / 2;
  static constexpr int pitch = T + 1; // odd: threads that read rows are on different banks
  static constexpr int threads = T * half;
  static constexpr int points = T * T * half;
  static constexpr int bytes = half * T * pitch * static_cast<int>(sizeof(float2));
  static constexpr int blocks = T > 28 ? 1 : T > 24 ? 2 : T > 20 ? 3 : T > 16 ? 5 : 8; ///< on a multiprocessor
};

/** Transforms a line in place. */
template <int T>
__device__ __forceinline__ void
TransformLine(float2 * line)
{
  float re[T];
  float im[T];
#pragma unroll
  for (int j = 0; j < T; ++j)
  {
    const float2 z = line[j];
    re[j] = z.x;
    im[j] = z.y;
  }
  FftPoints<T>(re, im);
#pragma unroll
  for (int j = 0; j < T; ++j)
  {
    line[j] = make_float2(re[j], im[j]);
  }
}

/** Transforms a tile of real numbers load(x, y, z) and gives emit(index of the frequency, value); neighbours along x
 * are neighbouring threads'. Each thread calls share() between the two. Signs: as FixedRows has them along z. */
template <int T, typename TLoad, typename TShare, typename TEmit>
__device__ __forceinline__ void
TransformTile(float2 * shared, TLoad && load, TShare && share, TEmit && emit)
{
  constexpr int H = TileShape<T>::half;
  constexpr int P = TileShape<T>::pitch;
  const int     t = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int i = t; i < T * T; i += TileShape<T>::threads)
  {
    const int x = i % T;
    const int y = i / T;
    float     re[H];
    float     im[H];
#pragma unroll
    for (int n = 0; n < H; ++n)
    {
      re[n] = load(x, y, n);
      im[n] = -load(x, y, n + H);
    }
    TurnEach<2 * T>(re, im, std::make_integer_sequence<int, H>());
    FftPoints<H>(re, im);
#pragma unroll
    for (int k = 0; k < H; ++k)
    {
      shared[(k * T + y) * P + x] = make_float2(re[k], im[k]);
    }
  }
  share();
  __syncthreads();
  TransformLine<T>(shared + t * P);
  __syncthreads();
  const int x = t % T;
  const int plane = t / T * T;
  float     re[T];
  float     im[T];
#pragma unroll
  for (int j = 0; j < T; ++j)
  {
    const float2 z = shared[(plane + j) * P + x];
    re[j] = z.x;
    im[j] = z.y;
  }
  FftPoints<T>(re, im);
#pragma unroll
  for (int j = 0; j < T; ++j)
  {
    emit((plane + j) * T + x, make_float2(re[j], im[j]));
  }
}

/** Back: find(index of the frequency) to store(x, y, z, value) for x, y below the limits. */
template <int T, typename TFind, typename TStore>
__device__ __forceinline__ void
TransformTileBack(float2 * shared, int width, int height, TFind && find, TStore && store)
{
  constexpr int H = TileShape<T>::half;
  constexpr int P = TileShape<T>::pitch;
  const int     t = static_cast<int>(threadIdx.x);
  {
    const int x = t % T;
    const int plane = t / T * T;
    // The inverse is the transform with real and imaginary parts exchanged.
    float re[T];
    float im[T];
#pragma unroll
    for (int j = 0; j < T; ++j)
    {
      const float2 z = find((plane + j) * T + x);
      re[j] = z.y;
      im[j] = z.x;
    }
    FftPoints<T>(re, im);
#pragma unroll
    for (int j = 0; j < T; ++j)
    {
      shared[(plane + j) * P + x] = make_float2(re[j], im[j]);
    }
  }
  __syncthreads();
  if (t % T < height)
  {
    TransformLine<T>(shared + t * P);
  }
  __syncthreads();
#pragma unroll 1
  for (int i = t; i < width * height; i += TileShape<T>::threads)
  {
    const int y = i / width;
    const int x = i - y * width;
    float     re[H];
    float     im[H];
#pragma unroll
    for (int k = 0; k < H; ++k)
    {
      const float2 z = shared[(k * T + y) * P + x];
      re[k] = z.x;
      im[k] = z.y;
    }
    FftPoints<H>(re, im);
    TurnEach<2 * T>(re, im, std::make_integer_sequence<int, H>());
#pragma unroll
    for (int n = 0; n < H; ++n)
    {
      store(x, y, n, im[n]);
      store(x, y, n + H, -re[n]);
    }
  }
}

/** 2^n, of n from -126 to 127. */
__device__ __forceinline__ float
PowerOfTwo(int n)
{
  return __int_as_float((127 + n) << 23);
}

/** The least e with magnitudes of this float's bits below 2^e. The scales of larger ones are beyond float32's, and
 * their sums as well. */
__device__ __forceinline__ int
ExponentAbove(int bits)
{
  return min((bits >> 23) - 126, 120);
}

/** The largest of all threads' numbers, none below 0, in `shared`. */
template <int VThreads>
__device__ __forceinline__ void
ShareLargest(float value, int * shared)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const int      thread = static_cast<int>(threadIdx.x);
  const int      lanes = VThreads - thread / 32 * 32;
  const unsigned mask = lanes >= 32 ? 0xffffffffu : (1u << lanes % 32) - 1;
  const int      bits = __reduce_max_sync(mask, __float_as_int(value));
  if (thread % 32 == 0)
  {
    atomicMax(shared, bits);
  }
#endif
}

/** TNumber: float2, or __half2, of which `scales` gets the exponents. */
template <int T, typename TNumber>
__global__ void
__launch_bounds__(TileShape<T>::threads, TileShape<T>::blocks)
  NetworkTilesKernel(Step step, TileGrid grid, std::int64_t firstTile, int mapsOfTile, TNumber * __restrict__ spectra,
                     HalfScales scales)
{
  constexpr bool    isHalf = std::is_same_v<TNumber, __half2>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ TileAxis                           axes[MaxSpatialAxes];
  __shared__ int                                largest;
  const int                                     maps = step.in[0].channels;
  const std::int64_t                            tile = blockIdx.x / maps;
  const int                                     map = static_cast<int>(blockIdx.x - tile * maps);
  if (threadIdx.x < MaxSpatialAxes)
  {
    axes[threadIdx.x] = FindTileAxis(step, grid, firstTile + tile, static_cast<int>(threadIdx.x), true);
    largest = 0;
  }
  __syncthreads();
  const TileAxis      ax = axes[0];
  const TileAxis      ay = axes[1];
  const TileAxis      az = axes[2];
  const float * const in = step.in[0].data + map * step.in[0].ChannelLength() + ax.base + ay.base + az.base;
  TNumber * const     out = spectra + tile * mapsOfTile * TileShape<T>::points;
  float               own = 0.0f;
  TransformTile<T>(
    reinterpret_cast<float2 *>(memory),
    [&](int x, int y, int z) {
      const bool  there = IsWithin(ax, x) && IsWithin(ay, y) && IsWithin(az, z);
      const float value = there ? __ldg(in + (x * ax.step + y * ay.step + z * az.step)) : 0.0f;
      own = isHalf ? fmaxf(own, fabsf(value)) : own;
      return value;
    },
    [&] {
      if constexpr (isHalf)
      {
        ShareLargest<TileShape<T>::threads>(own, &largest);
      }
    },
    [&](int index, float2 value) {
      if constexpr (isHalf)
      {
        const float scale = PowerOfTwo(-ExponentAbove(largest) - HalfShift);
        out[PlaceInTile<TNumber>(mapsOfTile, map, index)] = __floats2half2_rn(scale * value.x, scale * value.y);
      }
      else
      {
        out[PlaceInTile<TNumber>(mapsOfTile, map, index)] = value;
      }
    });
  if (isHalf && threadIdx.x == 0)
  {
    const int e = ExponentAbove(largest);
    scales.ofMaps[tile * maps + map] = e;
    atomicMax(scales.ofTiles + tile, e);
  }
}

/** Each tile has spectra of `mapsOfTile` maps. VProduct: there is one input, and the product is made here. With
 * __half2, the tiles and the outputs' kernels have exponents. */
template <int T, bool VProduct, typename TNumber>
__global__ void
__launch_bounds__(TileShape<T>::threads, TileShape<T>::blocks)
  NetworkTilesBackKernel(Step step, TileGrid grid, std::int64_t firstTile, int mapsOfTile,
                         const TNumber * __restrict__ spectra, const TNumber * __restrict__ kernels,
                         const int * __restrict__ tileExponents, const int * __restrict__ kernelExponents)
{
  constexpr bool    isHalf = std::is_same_v<TNumber, __half2>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ TileAxis                           axes[MaxSpatialAxes];
  constexpr int                                 points = TileShape<T>::points;
  const int                                     maps = step.out.channels;
  const std::int64_t                            tile = blockIdx.x / maps;
  const int                                     map = static_cast<int>(blockIdx.x - tile * maps);
  if (threadIdx.x < MaxSpatialAxes)
  {
    axes[threadIdx.x] = FindTileAxis(step, grid, firstTile + tile, static_cast<int>(threadIdx.x), false);
  }
  __syncthreads();
  const TileAxis ax = axes[0];
  const TileAxis ay = axes[1];
  const TileAxis az = axes[2];
  if (ax.end <= 0 || ay.end <= 0 || az.end <= 0)
  {
    return;
  }
  float * const         out = step.out.data + map * step.out.ChannelLength() + ax.base + ay.base + az.base;
  const float           bias = step.bias ? step.bias[map] : 0.0f;
  const TNumber * const in = spectra + tile * mapsOfTile * points;
  const TNumber * const kernel = kernels + static_cast<std::int64_t>(map) * points;
  // The transforms there and back multiply by the number of points.
  const float factor = isHalf ? ldexpf(1.0f / points, tileExponents[tile] + kernelExponents[map] + HalfShift) : 1.0f;
  TransformTileBack<T>(
    reinterpret_cast<float2 *>(memory),
    ax.end,
    ay.end,
    [&](int index) {
      const TNumber value = in[VProduct ? index : PlaceInTile<TNumber>(mapsOfTile, map, index)];
      if constexpr (isHalf)
      {
        return __half22float2(value);
      }
      else if constexpr (VProduct)
      {
        const float2 w = kernel[index];
        return make_float2(fmaf(value.x, w.x, -value.y * w.y), fmaf(value.x, w.y, value.y * w.x));
      }
      else
      {
        return value;
      }
    },
    [&](int x, int y, int z, float value) {
      if (z < az.end)
      {
        const float sum = isHalf ? fmaf(value, factor, bias) : value + bias;
        out[x * ax.step + y * ay.step + z * az.step] =
          step.activation == ActivationKind::Relu && sum < 0.0f ? 0.0f : sum;
      }
    });
}

/** Activations that are more than a comparison, in place: their code would take the transforms' registers. */
__global__ void
NetworkActivateKernel(Step step)
{
  // A fragment's planes lie together, those of other steps beside them.
  const std::int64_t length = step.out.FragmentExtent(0) * step.out.FragmentExtent(1) * step.out.FragmentExtent(2);
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t fragment = i / length;
  const std::int64_t fragments = step.out.fragments[0] * step.out.fragments[1] * step.out.fragments[2];
  bool               isInside = fragment < fragments;
  // Some fragments have a place more along an axis than the tensor has: nothing was written there.
  if (fragments > 1)
  {
    std::int64_t place = i - fragment * length;
    std::int64_t rest = fragment;
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      const std::int64_t index =
        place % step.out.FragmentExtent(a) * step.out.fragments[a] + rest % step.out.fragments[a];
      isInside = isInside && index < step.out.extent[a];
      place /= step.out.FragmentExtent(a);
      rest /= step.out.fragments[a];
    }
  }
  if (isInside)
  {
    float & value =
      step.out
        .data[blockIdx.y * step.out.ChannelLength() + fragment * step.out.FragmentLength() + (i - fragment * length)];
    value = network::Activate(step, blockIdx.y, value);
  }
}

/** Frequencies that lie together in the spectra of the kernels, and that a block multiplies: a sector of a map's
 * spectrum. */
constexpr int FrequenciesTogether = 4;

/** The place of the number of input i, output o and frequency n of the kernels' spectra. */
struct KernelLayout
{
  std::int64_t ofGroup;
  std::int64_t ofFrequency;
  std::int64_t ofInput;
  std::int64_t ofOutput;

  KernelLayout(int inputs, int outputs, std::int64_t points)
  {
    const std::int64_t block = GetProductChannels(outputs);
    const std::int64_t padded = (outputs + block - 1) / block * block;
    if (inputs == 1)
    {
      ofGroup = FrequenciesTogether;
      ofFrequency = 1;
      ofInput = 0;
      ofOutput = points;
    }
    else
    {
      ofOutput = 1;
      ofFrequency = padded;
      ofInput = FrequenciesTogether * padded;
      ofGroup = inputs * ofInput;
    }
  }

  __device__ std::int64_t
             At(int i, int o, int frequency) const
  {
    return frequency / FrequenciesTogether * ofGroup + frequency % FrequenciesTogether * ofFrequency + i * ofInput +
           o * ofOutput;
  }
};

/** The exponents of the outputs' kernels: a block has an output. */
__global__ void
NetworkKernelExponentsKernel(Step step, int * __restrict__ exponents)
{
  __shared__ float    sums[256];
  const int           t = static_cast<int>(threadIdx.x);
  const int           o = static_cast<int>(blockIdx.x);
  const std::int64_t  numbers = step.in[0].channels * step.kernel[0] * step.kernel[1] * step.kernel[2];
  const float * const weights = step.packed + o / ChannelsPerBlock * numbers * ChannelsPerBlock + o % ChannelsPerBlock;
  float               sum = 0.0f;
  for (std::int64_t i = t; i < numbers && o < step.out.channels; i += 256)
  {
    sum += fabsf(weights[i * ChannelsPerBlock]);
  }
  sums[t] = sum;
  __syncthreads();
  if (t == 0)
  {
    for (int i = 1; i < 256; ++i)
    {
      sum += sums[i];
    }
    // Below 8: see chunkwiseCudaNetworkHalf.h.
    exponents[o] = max(ExponentAbove(__float_as_int(sum)) - 3, -120);
  }
}

template <int T, typename TNumber, typename TLayout>
__global__ void
__launch_bounds__(TileShape<T>::threads, TileShape<T>::blocks)
  NetworkKernelSpectraKernel(Step step, TLayout layout, int outputs, TNumber * __restrict__ kernels,
                             const int * __restrict__ exponents)
{
  constexpr bool    isHalf = std::is_same_v<TNumber, __half2>;
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     inputs = step.in[0].channels;
  const int                                     i = static_cast<int>(blockIdx.x) / outputs;
  const int                                     o = static_cast<int>(blockIdx.x) - i * outputs;
  const int                                     kx = static_cast<int>(step.kernel[0]);
  const int                                     ky = static_cast<int>(step.kernel[1]);
  const int                                     kz = static_cast<int>(step.kernel[2]);
  const bool                                    isChannel = o < step.out.channels && i < inputs;
  const float * const                           weights =
    step.packed + static_cast<std::int64_t>(o / ChannelsPerBlock * inputs + i) * kx * ky * kz * ChannelsPerBlock +
    o % ChannelsPerBlock;
  // The transforms there and back multiply by the number of points.
  const float scale = isHalf ? PowerOfTwo(-exponents[o]) : 1.0f / static_cast<float>(TileShape<T>::points);
  TransformTile<T>(
    reinterpret_cast<float2 *>(memory),
    [&](int x, int y, int z) {
      return isChannel && x < kx && y < ky && z < kz ? scale * weights[((z * ky + y) * kx + x) * ChannelsPerBlock]
                                                     : 0.0f;
    },
    [] {},
    [&](int index, float2 value) {
      // A correlation is the product with the conjugate.
      if constexpr (isHalf)
      {
        kernels[layout.At(i, o, index)] = __floats2half2_rn(value.x, -value.y);
      }
      else
      {
        kernels[layout.At(i, o, index)] = make_float2(value.x, -value.y);
      }
    });
}

constexpr int TilesPerProduct = 32;
constexpr int ProductThreads = 256;
/** Inputs that lie in shared memory at a time, and how often. */
constexpr int InputsPerStage = 8;
constexpr int ProductStages = 2; // 64 KB is all that some devices have

/** One complex matrix product a frequency: outputs x inputs times inputs x tiles. A block has FrequenciesTogether of
 * them, TilesPerProduct tiles and 16 VPairs outputs; a warp one frequency, a thread 2 VPairs outputs of four tiles.
 * Blocks that follow each other have neighbouring frequencies, then other tiles of these: what they read is in the L2
 * cache. `out` may be `in` where a block has all outputs: it writes when it has read all that it reads. */
template <int VPairs>
__global__ void
__launch_bounds__(ProductThreads, 2)
  NetworkProductKernel(ProductShape shape, const float2 * __restrict__ kernels, const float2 * in, float2 * out)
{
  constexpr int     channels = 16 * VPairs;
  constexpr int     F = FrequenciesTogether;
  constexpr int     kernelNumbers = InputsPerStage * F * channels;
  constexpr int     tileNumbers = InputsPerStage * TilesPerProduct * F;
  constexpr int     stageNumbers = kernelNumbers + tileNumbers;
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);

  const int tileBlocks = (shape.tiles + TilesPerProduct - 1) / TilesPerProduct;
  const int channelBlocks = shape.padded / channels;
  int       block = static_cast<int>(blockIdx.x);
  const int inner = block % F;
  block /= F;
  const int firstTile = block % tileBlocks * TilesPerProduct;
  block /= tileBlocks;
  const int          firstChannel = block % channelBlocks * channels;
  const std::int64_t group = static_cast<std::int64_t>(block / channelBlocks) * F + inner;
  const auto         firstPoint = static_cast<int>(group * F);

  const int t = static_cast<int>(threadIdx.x);
  const int f = t / 32 % F;
  const int ofChannel = t % 8;
  const int ofTile = t % 32 / 8 + 4 * (t / 32 / F);

  const int  stages = (shape.inputs + InputsPerStage - 1) / InputsPerStage;
  const auto fetch = [&](int stage) {
    const int firstInput = stage * InputsPerStage;
    const int count = min(InputsPerStage, shape.inputs - firstInput);
    if (count > 0)
    {
      float2 * const       to = shared + stage % ProductStages * stageNumbers;
      const float2 * const from = kernels + (group * shape.inputs + firstInput) * F * shape.padded + firstChannel;
      for (int i = t; i < count * F * (channels / 2); i += ProductThreads)
      {
        const int row = i / (channels / 2);
        const int at = i % (channels / 2) * 2;
        __pipeline_memcpy_async(
          to + row * channels + at, from + static_cast<std::int64_t>(row) * shape.padded + at, 16);
      }
      const int input = t % InputsPerStage;
      const int tile = t / InputsPerStage;
      if (input < count && firstTile + tile < shape.tiles)
      {
        const float2 * const spectrum = in +
                                        static_cast<std::int64_t>(firstTile + tile) * shape.mapsOfTile * shape.points +
                                        PlaceInTile<float2>(shape.mapsOfTile, firstInput + input, firstPoint);
        float2 * const piece = to + kernelNumbers + (input * TilesPerProduct + tile) * F;
        __pipeline_memcpy_async(piece, spectrum, 16);
        __pipeline_memcpy_async(piece + 2, spectrum + 2, 16);
      }
    }
    __pipeline_commit();
  };

  float2 sums[2 * VPairs][4];
#pragma unroll
  for (int c = 0; c < 2 * VPairs; ++c)
  {
#pragma unroll
    for (int j = 0; j < 4; ++j)
    {
      sums[c][j] = make_float2(0.0f, 0.0f);
    }
  }
  const auto add = [&](const float2 * w, const float2 * x) {
    float2 value[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
    {
      value[j] = x[8 * j * F];
    }
#pragma unroll
    for (int p = 0; p < VPairs; ++p)
    {
      const float4 pair = *reinterpret_cast<const float4 *>(w + 16 * p);
#pragma unroll
      for (int j = 0; j < 4; ++j)
      {
        float2 & a = sums[2 * p][j];
        float2 & b = sums[2 * p + 1][j];
        a.x = fmaf(pair.x, value[j].x, a.x);
        a.y = fmaf(pair.x, value[j].y, a.y);
        b.x = fmaf(pair.z, value[j].x, b.x);
        b.y = fmaf(pair.z, value[j].y, b.y);
        a.x = fmaf(-pair.y, value[j].y, a.x);
        a.y = fmaf(pair.y, value[j].x, a.y);
        b.x = fmaf(-pair.w, value[j].y, b.x);
        b.y = fmaf(pair.w, value[j].x, b.y);
      }
    }
  };
  for (int stage = 0; stage < ProductStages - 1; ++stage)
  {
    fetch(stage);
  }
  for (int stage = 0; stage < stages; ++stage)
  {
    __pipeline_wait_prior(ProductStages - 2);
    __syncthreads();
    fetch(stage + ProductStages - 1);
    const float2 * const from = shared + stage % ProductStages * stageNumbers;
    const float2 * const w = from + f * channels + 2 * ofChannel;
    const float2 * const x = from + kernelNumbers + ofTile * F + f;
    const int            count = min(InputsPerStage, shape.inputs - stage * InputsPerStage);
    if (count == InputsPerStage)
    {
#pragma unroll 1 // more would spill
      for (int i = 0; i < InputsPerStage; ++i)
      {
        add(w + i * F * channels, x + i * TilesPerProduct * F);
      }
    }
    else
    {
#pragma unroll 1
      for (int i = 0; i < count; ++i)
      {
        add(w + i * F * channels, x + i * TilesPerProduct * F);
      }
    }
  }
  // Through shared memory: a sector has the four frequencies of four warps.
#pragma unroll
  for (int j = 0; j < 4; ++j)
  {
    __syncthreads();
#pragma unroll
    for (int p = 0; p < VPairs; ++p)
    {
      *reinterpret_cast<float4 *>(shared + (f * 8 + ofTile) * channels + 16 * p + 2 * ofChannel) =
        make_float4(sums[2 * p][j].x, sums[2 * p][j].y, sums[2 * p + 1][j].x, sums[2 * p + 1][j].y);
    }
    __syncthreads();
    for (int i = t; i < 8 * channels * 2; i += ProductThreads)
    {
      const int pair = i % 2;
      const int channel = i / 2 % channels;
      const int row = i / 2 / channels;
      const int tile = firstTile + 8 * j + row;
      if (tile < shape.tiles && firstChannel + channel < shape.outputs)
      {
        const float2 first = shared[((2 * pair) * 8 + row) * channels + channel];
        const float2 second = shared[((2 * pair + 1) * 8 + row) * channels + channel];
        *reinterpret_cast<float4 *>(
          out + static_cast<std::int64_t>(tile) * shape.mapsOfOut * shape.points +
          PlaceInTile<float2>(shape.mapsOfOut, firstChannel + channel, firstPoint + 2 * pair)) =
          make_float4(first.x, first.y, second.x, second.y);
      }
    }
  }
}

/** The nearest number of 11 significant bits, and what is left: with three of their four products tensor cores give a
 * product nearly the bits of float32 ("3xTF32"). */
struct SplitNumber
{
  float high;
  float low;

  __device__ __forceinline__ explicit SplitNumber(float value)
  {
    // A conversion would have a sixteenth of the rate.
    high = __uint_as_float((__float_as_uint(value) + 0x1000u) & 0xffffe000u);
    low = value - high;
  }
};

/** Whether the architecture compiled for has them; see HasNetworkTensorCores. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr bool HasTensorInstructions = false;
#else
constexpr bool HasTensorInstructions = true;
#endif

/** 16 x 8 += 16 x 8 times 8 x 8 */
__device__ __forceinline__ void
MultiplyAddTensors(float (&sums)[4], const float (&a)[4], float b0, float b1)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(__float_as_uint(a[0])),
        "r"(__float_as_uint(a[1])),
        "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b0)),
        "r"(__float_as_uint(b1)));
#endif
}

/** The same products on tensor cores. A block has FrequenciesTogether frequencies, TensorTiles tiles and 16 VBlocks
 * outputs; a warp one frequency and 16 tiles. */
constexpr int TensorTiles = 64;
constexpr int TensorThreads = 512;
constexpr int TensorStages = 3;

template <int VBlocks>
struct TensorShape
{
  static constexpr int channels = 16 * VBlocks;
  /** Numbers from input to input: threads of a warp that read four inputs are on different banks. */
  static constexpr int kernelPitch = FrequenciesTogether * channels + 4;
  static constexpr int tilePitch = FrequenciesTogether * TensorTiles + 2;
  static constexpr int stage = InputsPerStage * (kernelPitch + tilePitch);
  /** On the way out, of half of the tiles: [frequency][tile][output]. */
  static constexpr int outPitch = channels + 2;
  static constexpr int out = FrequenciesTogether * TensorTiles / 2 * outPitch;
  static constexpr int bytes =
    static_cast<int>(sizeof(float2)) * (TensorStages * stage > out ? TensorStages * stage : out);
};

/** Stores two neighbouring frequencies of an output of a tile. */
template <typename TBlock>
__device__ __forceinline__ void
StorePair(const ProductShape & shape, const TBlock & block, int tile, int channel, int pair, const float2 & first,
          const float2 & second, float2 * out)
{
  if (tile < shape.tiles && block.firstChannel + channel < shape.outputs)
  {
    *reinterpret_cast<float4 *>(
      out + static_cast<std::int64_t>(tile) * shape.mapsOfOut * shape.points +
      PlaceInTile<float2>(shape.mapsOfOut, block.firstChannel + channel, block.firstPoint + 2 * pair)) =
      make_float4(first.x, first.y, second.x, second.y);
  }
}

/** A lane's numbers of eight inputs and 16 tiles, as tensor cores take them. */
template <typename TLayout>
struct TensorNumbers
{
  __device__ __forceinline__ explicit TensorNumbers(const float2 * x)
  {
#pragma unroll
    for (int j = 0; j < 2; ++j)
    {
#pragma unroll
      for (int k = 0; k < 2; ++k)
      {
        const float2      value = x[4 * k * TLayout::tilePitch + 8 * j * FrequenciesTogether];
        const SplitNumber real(value.x);
        const SplitNumber imaginary(value.y);
        re[j][k] = real.high;
        reLow[j][k] = real.low;
        im[j][k] = imaginary.high;
        imLow[j][k] = imaginary.low;
      }
    }
  }

  float re[2][2];
  float im[2][2];
  float reLow[2][2];
  float imLow[2][2];
};

/** Begins to copy a stage to `to`. */
template <int VBlocks, typename TBlock>
__device__ __forceinline__ void
FetchTensors(const ProductShape & shape, const TBlock & block, int stage, const float2 * kernels, const float2 * in,
             float2 * to)
{
  using Layout = TensorShape<VBlocks>;
  constexpr int        F = FrequenciesTogether;
  constexpr int        channels = Layout::channels;
  const int            t = static_cast<int>(threadIdx.x);
  const int            firstInput = stage * InputsPerStage;
  const float2 * const from =
    kernels + (block.group * shape.inputs + firstInput) * F * shape.padded + block.firstChannel;
  for (int i = t; i < InputsPerStage * F * (channels / 2); i += TensorThreads)
  {
    const int  line = i / (channels / 2);
    const int  at = i % (channels / 2) * 2;
    const int  input = line / F;
    const bool there = firstInput + input < shape.inputs;
    __pipeline_memcpy_async(to + input * Layout::kernelPitch + line % F * channels + at,
                            there ? from + static_cast<std::int64_t>(line) * shape.padded + at : kernels,
                            16,
                            there ? 0 : 16);
  }
  const int            input = t % InputsPerStage;
  const int            tile = t / InputsPerStage;
  const bool           there = firstInput + input < shape.inputs && block.firstTile + tile < shape.tiles;
  const float2 * const spectrum =
    there ? in + static_cast<std::int64_t>(block.firstTile + tile) * shape.mapsOfTile * shape.points +
              PlaceInTile<float2>(shape.mapsOfTile, firstInput + input, block.firstPoint)
          : in;
  float2 * const piece = to + InputsPerStage * Layout::kernelPitch + input * Layout::tilePitch + tile * F;
  __pipeline_memcpy_async(piece, spectrum, 16, there ? 0 : 16);
  __pipeline_memcpy_async(piece + 2, spectrum + 2, 16, there ? 0 : 16);
}

/** Adds the products of 16 outputs: of numbers of 11 bits, `high` those of the kernels' real parts. */
template <typename TNumbers>
__device__ __forceinline__ void
AddTensorProducts(const TNumbers & x, const float2 (&value)[4], const float (&high)[4], float (&re)[2][4],
                  float (&im)[2][4])
{
  const float imaginary[4] = { SplitNumber(value[0].y).high,
                               SplitNumber(value[1].y).high,
                               SplitNumber(value[2].y).high,
                               SplitNumber(value[3].y).high };
#pragma unroll
  for (int j = 0; j < 2; ++j)
  {
    MultiplyAddTensors(re[j], high, x.re[j][0], x.re[j][1]);
    MultiplyAddTensors(im[j], high, x.im[j][0], x.im[j][1]);
  }
#pragma unroll
  for (int j = 0; j < 2; ++j)
  {
    MultiplyAddTensors(re[j], imaginary, -x.im[j][0], -x.im[j][1]);
    MultiplyAddTensors(im[j], imaginary, x.re[j][0], x.re[j][1]);
  }
}

/** The same, of both parts of split numbers. */
template <typename TNumbers>
__device__ __forceinline__ void
AddSplitProducts(const TNumbers & x, const float2 (&value)[4], float (&high)[4], float (&low)[4], float (&re)[2][4],
                 float (&im)[2][4])
{
  // Tensor cores cut off what they add beyond 24 bits: few of their sums follow each other.
  float partRe[2][4]{};
  float partIm[2][4]{};
#pragma unroll
  for (int j = 0; j < 2; ++j)
  {
    MultiplyAddTensors(partRe[j], low, x.re[j][0], x.re[j][1]);
    MultiplyAddTensors(partIm[j], low, x.im[j][0], x.im[j][1]);
  }
#pragma unroll
  for (int j = 0; j < 2; ++j)
  {
    MultiplyAddTensors(partRe[j], high, x.reLow[j][0], x.reLow[j][1]);
    MultiplyAddTensors(partIm[j], high, x.imLow[j][0], x.imLow[j][1]);
  }
#pragma unroll
  for (int j = 0; j < 2; ++j)
  {
    MultiplyAddTensors(partRe[j], high, x.re[j][0], x.re[j][1]);
    MultiplyAddTensors(partIm[j], high, x.im[j][0], x.im[j][1]);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
  {
    const SplitNumber split(value[i].y);
    high[i] = split.high;
    low[i] = split.low;
  }
#pragma unroll
  for (int j = 0; j < 2; ++j)
  {
    MultiplyAddTensors(partRe[j], low, -x.im[j][0], -x.im[j][1]);
    MultiplyAddTensors(partIm[j], low, x.re[j][0], x.re[j][1]);
  }
#pragma unroll
  for (int j = 0; j < 2; ++j)
  {
    MultiplyAddTensors(partRe[j], high, -x.imLow[j][0], -x.imLow[j][1]);
    MultiplyAddTensors(partIm[j], high, x.reLow[j][0], x.reLow[j][1]);
  }
#pragma unroll
  for (int j = 0; j < 2; ++j)
  {
    MultiplyAddTensors(partRe[j], high, -x.im[j][0], -x.im[j][1]);
    MultiplyAddTensors(partIm[j], high, x.re[j][0], x.re[j][1]);
  }
#pragma unroll
  for (int j = 0; j < 2; ++j)
  {
#pragma unroll
    for (int i = 0; i < 4; ++i)
    {
      re[j][i] += partRe[j][i];
      im[j][i] += partIm[j][i];
    }
  }
}

/** One of both for the kernels of 16 outputs; `pitch`: from input to input. */
template <bool VSplit, typename TNumbers>
__device__ __forceinline__ void
AddSixteen(const TNumbers & x, const float2 * w, int pitch, float (&re)[2][4], float (&im)[2][4])
{
  float2 value[4];
  float  high[4];
  float  low[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
  {
    value[i] = w[i / 2 * 4 * pitch + i % 2 * 8];
    const SplitNumber split(value[i].x);
    high[i] = split.high;
    low[i] = split.low;
  }
  if constexpr (VSplit)
  {
    AddSplitProducts(x, value, high, low, re, im);
  }
  else
  {
    AddTensorProducts(x, value, high, re, im);
  }
}

/** VSplit: as exact as float32, by three products; else of numbers of 11 bits, by one. Empty where the architecture has
 * no such instructions. */
template <int VBlocks, bool VSplit>
__global__ void
__launch_bounds__(TensorThreads, 1)
  NetworkTensorProductKernel(ProductShape shape, const float2 * __restrict__ kernels, const float2 * in, float2 * out)
{
  if (!HasTensorInstructions)
  {
    return;
  }
  using Layout = TensorShape<VBlocks>;
  constexpr int     channels = Layout::channels;
  constexpr int     F = FrequenciesTogether;
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<float2 *>(memory);

  const ProductBlock<F, F, TensorTiles, channels> block(shape);

  const int t = static_cast<int>(threadIdx.x);
  const int f = t / 32 % F;
  const int quarter = t / 32 / F;
  const int row = t % 32 / 4;
  const int column = t % 4;

  const int  stages = (shape.inputs + InputsPerStage - 1) / InputsPerStage;
  const auto fetch = [&](int stage) {
    if (stage < stages)
    {
      FetchTensors<VBlocks>(shape, block, stage, kernels, in, shared + stage % TensorStages * Layout::stage);
    }
    __pipeline_commit();
  };

  float re[VBlocks][2][4];
  float im[VBlocks][2][4];
#pragma unroll
  for (int b = 0; b < VBlocks; ++b)
  {
#pragma unroll
    for (int j = 0; j < 2; ++j)
    {
#pragma unroll
      for (int i = 0; i < 4; ++i)
      {
        re[b][j][i] = im[b][j][i] = 0.0f;
      }
    }
  }
  for (int stage = 0; stage < TensorStages - 1; ++stage)
  {
    fetch(stage);
  }
  for (int stage = 0; stage < stages; ++stage)
  {
    __pipeline_wait_prior(TensorStages - 2);
    __syncthreads();
    fetch(stage + TensorStages - 1);
    const float2 * const from = shared + stage % TensorStages * Layout::stage;
    const float2 * const w = from + column * Layout::kernelPitch + f * channels + row;
    const float2 * const x =
      from + InputsPerStage * Layout::kernelPitch + column * Layout::tilePitch + (quarter * 16 + row) * F + f;
    const TensorNumbers<Layout> numbers(x);
#pragma unroll
    for (int b = 0; b < VBlocks; ++b)
    {
      AddSixteen<VSplit>(numbers, w + 16 * b, Layout::kernelPitch, re[b], im[b]);
    }
  }
#pragma unroll
  for (int j = 0; j < 2; ++j)
  {
    __syncthreads();
#pragma unroll
    for (int b = 0; b < VBlocks; ++b)
    {
#pragma unroll
      for (int i = 0; i < 4; ++i)
      {
        const int line = f * (TensorTiles / 2) + quarter * 8 + 2 * column + i % 2;
        shared[line * Layout::outPitch + 16 * b + row + i / 2 * 8] = make_float2(re[b][j][i], im[b][j][i]);
      }
    }
    __syncthreads();
    for (int i = t; i < TensorTiles / 2 * channels * 2; i += TensorThreads)
    {
      const int            pair = i % 2;
      const int            channel = i / 2 % channels;
      const int            line = i / 2 / channels;
      const int            tile = block.firstTile + line / 8 * 16 + 8 * j + line % 8;
      const float2 * const first = shared + (2 * pair * (TensorTiles / 2) + line) * Layout::outPitch + channel;
      StorePair(shape, block, tile, channel, pair, first[0], first[TensorTiles / 2 * Layout::outPitch], out);
    }
  }
}

} // namespace

bool
HasNetworkTensorCores()
{
  int                device = 0;
  int                bytes = 0;
  cudaFuncAttributes code{};
  CheckCuda(cudaGetDevice(&device), "cudaGetDevice");
  CheckCuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  // The code decides, not the device: a newer device may run what its driver makes of older PTX.
  CheckCuda(cudaFuncGetAttributes(&code, NetworkTensorProductKernel<5, true>), "cudaFuncGetAttributes");
  return code.ptxVersion >= 80 && bytes >= TensorShape<5>::bytes;
}

namespace
{

template <int VPairs>
void
RunProduct(const ProductShape & shape, NetworkPrecision precision, const float2 * kernels, const float2 * in,
           float2 * out, cudaStream_t stream)
{
  constexpr std::size_t bytes =
    sizeof(float2) * ProductStages * InputsPerStage * FrequenciesTogether * (16 * VPairs + TilesPerProduct);
  static_assert(bytes >= sizeof(float2) * FrequenciesTogether * 8 * 16 * VPairs, "the results' way out fits");
  if (HasNetworkTensorCores())
  {
    return LaunchPasses("NetworkTensorProductKernel",
                        precision == NetworkPrecision::Float32 ? NetworkTensorProductKernel<VPairs, true>
                                                               : NetworkTensorProductKernel<VPairs, false>,
                        stream,
                        shape.points / FrequenciesTogether * ((shape.tiles + TensorTiles - 1) / TensorTiles) *
                          (shape.padded / (16 * VPairs)),
                        TensorThreads,
                        TensorShape<VPairs>::bytes,
                        shape,
                        kernels,
                        in,
                        out);
  }
  LaunchPasses("NetworkProductKernel",
               NetworkProductKernel<VPairs>,
               stream,
               shape.points / FrequenciesTogether * ((shape.tiles + TilesPerProduct - 1) / TilesPerProduct) *
                 (shape.padded / (16 * VPairs)),
               ProductThreads,
               bytes,
               shape,
               kernels,
               in,
               out);
}

void
Multiply(const ProductShape & shape, NetworkPrecision precision, const float2 * kernels, const float2 * in,
         float2 * out, cudaStream_t stream)
{
  switch (GetProductChannels(shape.outputs) / ChannelsPerProduct)
  {
    case 1:
      return RunProduct<1>(shape, precision, kernels, in, out, stream);
    case 2:
      return RunProduct<2>(shape, precision, kernels, in, out, stream);
    case 3:
      return RunProduct<3>(shape, precision, kernels, in, out, stream);
    case 4:
      return RunProduct<4>(shape, precision, kernels, in, out, stream);
    default:
      return RunProduct<5>(shape, precision, kernels, in, out, stream);
  }
}

/** Calls f(std::integral_constant<int, tile>). */
template <typename TFunctor>
void
DispatchTile(int tile, TFunctor && f)
{
  switch (tile)
  {
    case 16:
      return f(std::integral_constant<int, 16>());
    case 20:
      return f(std::integral_constant<int, 20>());
    case 24:
      return f(std::integral_constant<int, 24>());
    case 28:
      return f(std::integral_constant<int, 28>());
    default:
      return f(std::integral_constant<int, 32>());
  }
}

/** One axis of a pooling: where the taps of a voxel are, and which are inside the image. Those outside are where one
 * inside is. */
template <int VTaps>
struct PoolTaps
{
  std::int64_t offset[VTaps];
  bool         inside[VTaps];
  bool         any;
};

template <int VTaps>
__device__ inline PoolTaps<VTaps>
FindTaps(const Step & step, int a, int index)
{
  const Tensor & in = step.in[0];
  std::int64_t   voxel;
  std::int64_t   fragment;
  FindStrides(in, a, voxel, fragment);
  const auto      fragments = static_cast<int>(in.fragments[a]);
  PoolTaps<VTaps> taps;
  std::int64_t    last = 0;
  taps.any = false;
#pragma unroll
  for (int k = VTaps - 1; k >= 0; --k)
  {
    const std::int64_t at = (index + step.out.lower[a]) * step.stride[a] - step.padLower[a] + k * step.dilation[a];
    taps.inside[k] = k < step.kernel[a] && in.IsInside(a, at);
    if (taps.inside[k])
    {
      const int from = static_cast<int>(at - in.lower[a]);
      const int number = fragments == 1 ? from : from / fragments;
      last = number * voxel + (from - number * fragments) * fragment;
      taps.any = true;
    }
    taps.offset[k] = last;
  }
#pragma unroll
  for (int k = 0; k < VTaps; ++k)
  {
    taps.offset[k] = taps.inside[k] ? taps.offset[k] : last;
  }
  return taps;
}

/** Places of a channel in memory that belong to a tensor. */
std::int64_t
PlacesOf(const Tensor & tensor)
{
  return tensor.FragmentExtent(0) * tensor.fragments[0] * tensor.FragmentExtent(1) * tensor.fragments[1] *
         tensor.FragmentExtent(2) * tensor.fragments[2];
}

/** Channels that a thread does one after the other: the same voxels of each. */
constexpr int PoolChannels = 16;

/** A thread has a place in memory of the output's channels. A voxel has the bits of PoolingAt: taps beyond the edge
 * repeat a voxel for a maximum, and add 0 to a sum that began as 0. */
template <bool VMaximum, int VTaps>
__global__ void
NetworkPoolKernel(Step step, std::int64_t places)
{
  const Tensor &     in = step.in[0];
  const Tensor &     out = step.out;
  const std::int64_t length = out.ChannelLength();
  const std::int64_t inLength = in.ChannelLength();
  const std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (number >= places)
  {
    return;
  }
  int           index[MaxSpatialAxes];
  std::uint64_t rest = static_cast<std::uint64_t>(number);
  // Divisions of 32 bits are several times as fast.
  const auto split = [&](std::int64_t by) {
    const auto divisor = static_cast<std::uint64_t>(by);
    const auto next = rest >> 32 ? rest / divisor : static_cast<std::uint32_t>(rest) / static_cast<std::uint32_t>(by);
    const auto number = static_cast<int>(rest - next * divisor);
    rest = next;
    return number;
  };
#pragma unroll
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    index[a] = split(out.FragmentExtent(a)) * static_cast<int>(out.fragments[a]);
  }
  // Between a fragment's planes and the next one's there may be those of other steps.
  const std::int64_t perFragment = out.FragmentExtent(0) * out.FragmentExtent(1) * out.FragmentExtent(2);
  const std::int64_t place = number + static_cast<std::int64_t>(rest) * (out.FragmentLength() - perFragment);
#pragma unroll
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    index[a] += split(out.fragments[a]);
    if (index[a] >= out.extent[a])
    {
      return;
    }
  }
  const PoolTaps<VTaps> x = FindTaps<VTaps>(step, 0, index[0]);
  const PoolTaps<VTaps> y = FindTaps<VTaps>(step, 1, index[1]);
  const PoolTaps<VTaps> z = FindTaps<VTaps>(step, 2, index[2]);
  const bool            any = x.any && y.any && z.any;
  int                   count = 0;
  if (!VMaximum)
  {
    int counts[MaxSpatialAxes]{};
#pragma unroll
    for (int k = 0; k < VTaps; ++k)
    {
      counts[0] += x.inside[k];
      counts[1] += y.inside[k];
      counts[2] += z.inside[k];
    }
    count = step.countsPadding ? static_cast<int>(step.kernel[0] * step.kernel[1] * step.kernel[2])
                               : counts[0] * counts[1] * counts[2];
  }
  const int first = static_cast<int>(blockIdx.y) * PoolChannels;
  const int last = min(first + PoolChannels, out.channels);
#pragma unroll 2
  for (int c = first; c < last; ++c)
  {
    const float * const from = in.data + c * inLength;
    float               result = VMaximum ? -HUGE_VALF : 0.0f;
#pragma unroll
    for (int kz = 0; kz < VTaps; ++kz)
    {
#pragma unroll
      for (int ky = 0; ky < VTaps; ++ky)
      {
        const float * const row = from + z.offset[kz] + y.offset[ky];
#pragma unroll
        for (int kx = 0; kx < VTaps; ++kx)
        {
          const bool  takes = VMaximum ? any : x.inside[kx] && y.inside[ky] && z.inside[kz];
          const float value = takes ? row[x.offset[kx]] : VMaximum ? -HUGE_VALF : 0.0f;
          result = !VMaximum ? result + value : value > result || value != value ? value : result;
        }
      }
    }
    if (!VMaximum)
    {
      result /= static_cast<float>(count);
    }
    out.data[c * length + place] = network::Activate(step, c, result);
  }
}

/** Transforms tiles there, multiplies them, and transforms them back, `tilesAtOnce` at a time. */
template <typename TNumber>
void
ConvolveGroups(const Step & step, int tile, std::int64_t tilesAtOnce, NetworkPrecision precision,
               const TNumber * kernels, TNumber * spectra, cudaStream_t stream)
{
  constexpr bool     isHalf = std::is_same_v<TNumber, __half2>;
  const TileGrid     grid(step, tile);
  const int          inputs = step.in[0].channels;
  const int          outputs = step.out.channels;
  const int          block = GetProductChannels(outputs);
  const int          padded = (outputs + block - 1) / block * block;
  const int          mapsOfTile = GetTileChannels(inputs, outputs, GetDeviceNetworkRates(precision));
  const bool         isInPlace = mapsOfTile < inputs + outputs;
  const int          mapsOfInput = isInPlace ? mapsOfTile : inputs;
  const int          mapsOfOutput = isInPlace ? mapsOfTile : outputs;
  const std::int64_t all = grid.Count();
  for (std::int64_t first = 0; first < all; first += tilesAtOnce)
  {
    const std::int64_t count = std::min(tilesAtOnce, all - first);
    DispatchTile(tile, [&](auto size) {
      constexpr int T = decltype(size)::value;
      using Shape = TileShape<T>;
      TNumber * const results = isInPlace ? spectra : spectra + tilesAtOnce * inputs * Shape::points;
      const int *     kernelExponents = nullptr;
      HalfScales      scales{};
      if constexpr (isHalf)
      {
        const HalfKernelLayout layout(inputs, padded, Shape::points);
        kernelExponents = reinterpret_cast<const int *>(kernels + layout.Numbers());
        scales.ofMaps = reinterpret_cast<int *>(spectra + tilesAtOnce * mapsOfTile * Shape::points);
        scales.ofTiles = scales.ofMaps + tilesAtOnce * inputs;
        // Below any exponent.
        CheckCuda(cudaMemsetAsync(scales.ofTiles, 0x80, static_cast<std::size_t>(count) * sizeof(int), stream),
                  "cudaMemsetAsync");
      }
      LaunchPasses("NetworkTilesKernel",
                   NetworkTilesKernel<T, TNumber>,
                   stream,
                   count * inputs,
                   Shape::threads,
                   Shape::bytes,
                   step,
                   grid,
                   first,
                   mapsOfInput,
                   spectra,
                   scales);
      const ProductShape shape{ inputs,        outputs,     padded,      static_cast<int>(count),
                                Shape::points, mapsOfInput, mapsOfOutput };
      if constexpr (isHalf)
      {
        MultiplyHalf(shape, kernels, scales, spectra, results, stream);
      }
      else if (inputs > 1)
      {
        Multiply(shape, precision, kernels, spectra, results, stream);
      }
      const auto back = [&] {
        if constexpr (!isHalf)
        {
          return inputs == 1 ? NetworkTilesBackKernel<T, true, TNumber> : NetworkTilesBackKernel<T, false, TNumber>;
        }
        else
        {
          return NetworkTilesBackKernel<T, false, TNumber>;
        }
      };
      LaunchPasses("NetworkTilesBackKernel",
                   back(),
                   stream,
                   count * outputs,
                   Shape::threads,
                   Shape::bytes,
                   step,
                   grid,
                   first,
                   mapsOfOutput,
                   results,
                   kernels,
                   scales.ofTiles,
                   kernelExponents);
    });
  }
}

/** How many tiles of half precision, with their exponents, the memory of so many tiles of float32 has room for. */
std::int64_t
CountHalfTiles(const Step & step, int tile, std::int64_t tilesAtOnce)
{
  const int         inputs = step.in[0].channels;
  const std::size_t bytes =
    GetTileBytes(inputs, step.out.channels, tile, GetDeviceNetworkRates(NetworkPrecision::Half));
  const std::size_t each = bytes / 2 + static_cast<std::size_t>(inputs + 1) * sizeof(int);
  const auto        most = static_cast<std::int64_t>(static_cast<std::size_t>(tilesAtOnce) * bytes / each);
  return most > HalfTiles ? most / HalfTiles * HalfTiles : most;
}

} // namespace

bool
HasHalfSpectra(const Step & step, NetworkPrecision precision)
{
  return precision == NetworkPrecision::Half && step.in[0].channels >= LeastHalfInputs && HasHalfTensorCores();
}

void
ConvolveTiles(const Step & step, int tile, std::int64_t tilesAtOnce, NetworkPrecision precision, const void * kernels,
              void * spectra, cudaStream_t stream)
{
  if (HasHalfSpectra(step, precision))
  {
    ConvolveGroups(step,
                   tile,
                   CountHalfTiles(step, tile, tilesAtOnce),
                   precision,
                   static_cast<const __half2 *>(kernels),
                   static_cast<__half2 *>(spectra),
                   stream);
  }
  else
  {
    ConvolveGroups(
      step, tile, tilesAtOnce, precision, static_cast<const float2 *>(kernels), static_cast<float2 *>(spectra), stream);
  }
  if (step.activation != ActivationKind::None && step.activation != ActivationKind::Relu)
  {
    const dim3 blocks(
      static_cast<unsigned int>((PlacesOf(step.out) + 255) / 256), static_cast<unsigned int>(step.out.channels), 1);
    NetworkActivateKernel<<<blocks, 256, 0, stream>>>(step);
    CheckLaunch("NetworkActivateKernel");
  }
}

void
MakeKernelSpectra(const Step & step, int tile, NetworkPrecision precision, void * kernels, cudaStream_t stream)
{
  const int inputs = step.in[0].channels;
  const int block = GetProductChannels(step.out.channels);
  const int outputs = inputs == 1 ? step.out.channels : (step.out.channels + block - 1) / block * block;
  DispatchTile(tile, [&](auto size) {
    constexpr int T = decltype(size)::value;
    using Shape = TileShape<T>;
    const auto launch = [&](const auto & layout, auto * numbers, int paddedInputs, const int * exponents) {
      LaunchPasses("NetworkKernelSpectraKernel",
                   NetworkKernelSpectraKernel<T,
                                              std::remove_reference_t<decltype(*numbers)>,
                                              std::remove_cv_t<std::remove_reference_t<decltype(layout)>>>,
                   stream,
                   static_cast<std::int64_t>(paddedInputs) * outputs,
                   Shape::threads,
                   Shape::bytes,
                   step,
                   layout,
                   outputs,
                   numbers,
                   exponents);
    };
    if (HasHalfSpectra(step, precision))
    {
      const HalfKernelLayout layout(inputs, outputs, Shape::points);
      auto * const           numbers = static_cast<__half2 *>(kernels);
      auto * const           exponents = reinterpret_cast<int *>(numbers + layout.Numbers());
      NetworkKernelExponentsKernel<<<static_cast<unsigned int>(outputs), 256, 0, stream>>>(step, exponents);
      CheckLaunch("NetworkKernelExponentsKernel");
      launch(layout, numbers, layout.inputs, exponents);
    }
    else
    {
      launch(KernelLayout(inputs, step.out.channels, Shape::points), static_cast<float2 *>(kernels), inputs, nullptr);
    }
  });
}

std::size_t
GetUsedKernelBytes(const Step & step, int tile, NetworkPrecision precision)
{
  const int inputs = step.in[0].channels;
  const int block = GetProductChannels(step.out.channels);
  const int padded = (step.out.channels + block - 1) / block * block;
  return HasHalfSpectra(step, precision)
           ? HalfKernelLayout(inputs, padded, static_cast<std::int64_t>(tile) * tile * tile / 2).Bytes()
           : GetKernelSpectraBytes(inputs, step.out.channels, tile);
}

void
PoolFragments(const Step & step, cudaStream_t stream)
{
  const std::int64_t places = PlacesOf(step.out);
  const std::int64_t blocks = (places + 255) / 256;
  const auto         parts = static_cast<unsigned int>((step.out.channels + PoolChannels - 1) / PoolChannels);
  const dim3         grid(static_cast<unsigned int>(blocks), parts, 1);
  const bool         isSmall = std::max({ step.kernel[0], step.kernel[1], step.kernel[2] }) <= 2;
  const bool         isMaximum = step.kind == LayerKind::MaximumPooling;
  const auto kernel = isMaximum ? (isSmall ? NetworkPoolKernel<true, 2> : NetworkPoolKernel<true, MostPoolingTaps>)
                                : (isSmall ? NetworkPoolKernel<false, 2> : NetworkPoolKernel<false, MostPoolingTaps>);
  kernel<<<grid, 256, 0, stream>>>(step, places);
  CheckLaunch("NetworkPoolKernel");
}

int
GetLargestNetworkTile()
{
  int device = 0;
  int bytes = 0;
  CheckCuda(cudaGetDevice(&device), "cudaGetDevice");
  CheckCuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  int largest = 0;
  for (const int tile : NetworkTiles)
  {
    DispatchTile(tile, [&](auto size) {
      // Beside the tile itself a block has its axes.
      largest = TileShape<decltype(size)::value>::bytes + 1024 <= bytes ? tile : largest;
    });
  }
  return largest;
}

} // namespace chunkwise
