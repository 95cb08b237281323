/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaNetworkHalf.h"

#include "chunkwiseCudaFixedPasses.cuh"
#include "chunkwiseNetworkPlan.h"

#include <cuda_pipeline.h>

namespace chunkwise
{

namespace
{

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr bool HasHalfInstructions = false;
#else
constexpr bool HasHalfInstructions = true;
#endif

/** 16 x 8 += 16 x 16 times 16 x 8 */
__device__ __forceinline__ void
MultiplyAddHalf(float (&sums)[4], const uint4 & a, unsigned int b0, unsigned int b1)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#endif
}

__device__ __forceinline__ unsigned int
BitsOf(__half2 value)
{
  return *reinterpret_cast<const unsigned int *>(&value);
}

constexpr int HalfThreads = 32 * HalfFrequencies;
constexpr int HalfStages = 4;

/** Shared memory, in numbers. A stage has eight inputs: the kernels' spectra in memory order, the tiles'
 * [input][tile][frequency], and the tiles' exponents [input][tile]. */
template <int VBlocks>
struct HalfShape
{
  static constexpr int channels = 16 * VBlocks;
  static constexpr int kernels = HalfFrequencies * VBlocks * 128;
  static constexpr int tilePitch = HalfTiles * HalfFrequencies + 4; // writers of eight inputs are on different banks
  static constexpr int scalePitch = HalfTiles + 8;                  // readers of four inputs are
  static constexpr int stage = kernels + HalfInputs * (tilePitch + scalePitch);
  /** On the way out: [frequency][tile][output]. */
  static constexpr int outTile = channels + 4;
  static constexpr int outFrequency = HalfTiles * outTile + 4;
  static constexpr int out = HalfFrequencies * outFrequency;
  static constexpr int bytes = 4 * (HalfStages * stage > out ? HalfStages * stage : out);
};

/** Begins to copy a stage to `to`. */
template <int VBlocks, typename TBlock>
__device__ __forceinline__ void
FetchHalf(const ProductShape & shape, const TBlock & block, int stage, int stages, const __half2 * kernels,
          const HalfScales & scales, const __half2 * in, __half2 * to)
{
  using Layout = HalfShape<VBlocks>;
  constexpr int         F = HalfFrequencies;
  const int             t = static_cast<int>(threadIdx.x);
  const __half2 * const from = kernels + ((block.group * stages + stage) * F * shape.padded + block.firstChannel) * 8;
#pragma unroll
  for (int i = t; i < F * VBlocks * 32; i += HalfThreads)
  {
    const int line = i / (VBlocks * 32);
    const int at = i % (VBlocks * 32) * 4;
    __pipeline_memcpy_async(
      to + line * VBlocks * 128 + at, from + static_cast<std::int64_t>(line) * shape.padded * 8 + at, 16);
  }
  const int             input = t % HalfInputs;
  const int             tile = t / HalfInputs;
  const int             ofAll = stage * HalfInputs + input;
  const bool            there = ofAll < shape.inputs && block.firstTile + tile < shape.tiles;
  const std::int64_t    number = block.firstTile + tile;
  const __half2 * const spectrum = there ? in + number * shape.mapsOfTile * shape.points +
                                             PlaceInTile<__half2>(shape.mapsOfTile, ofAll, block.firstPoint)
                                         : in;
  __half2 * const       piece = to + Layout::kernels + input * Layout::tilePitch + tile * F;
  __pipeline_memcpy_async(piece, spectrum, 16, there ? 0 : 16);
  __pipeline_memcpy_async(piece + 4, spectrum + 4, 16, there ? 0 : 16);
  __pipeline_memcpy_async(to + Layout::kernels + HalfInputs * Layout::tilePitch + input * Layout::scalePitch + tile,
                          there ? scales.ofMaps + number * shape.inputs + ofAll : scales.ofMaps,
                          4,
                          there ? 0 : 4);
}

/** Adds the products of a stage: `w`, `x` and `e` are the lane's kernels, tiles and exponents of tiles. */
template <int VBlocks>
__device__ __forceinline__ void
AddHalfProducts(const __half2 * w, const __half2 * x, const int * e, const int (&largest)[HalfTiles / 8],
                float (&re)[VBlocks][HalfTiles / 8][4], float (&im)[VBlocks][HalfTiles / 8][4])
{
  using Layout = HalfShape<VBlocks>;
  constexpr int F = HalfFrequencies;
  unsigned int  ofReal[HalfTiles / 8][2];
  unsigned int  ofImaginary[HalfTiles / 8][2];
#pragma unroll
  for (int j = 0; j < HalfTiles / 8; ++j)
  {
#pragma unroll
    for (int k = 0; k < 2; ++k)
    {
      // Beside the tile's largest map: 2^-25 and less is 0 in half precision.
      const int          below = max(e[4 * k * Layout::scalePitch + 8 * j] - largest[j], -30);
      const __half2      scale = __float2half2_rn(__int_as_float((127 + min(below, 0)) << 23));
      const unsigned int bits = BitsOf(__hmul2(x[4 * k * Layout::tilePitch + 8 * j * F], scale));
      ofReal[j][k] = bits ^ 0x80000000u;
      ofImaginary[j][k] = __byte_perm(bits, bits, 0x1032);
    }
  }
#pragma unroll
  for (int b = 0; b < VBlocks; ++b)
  {
    const uint4 a = *reinterpret_cast<const uint4 *>(w + b * 128);
#pragma unroll
    for (int j = 0; j < HalfTiles / 8; ++j)
    {
      MultiplyAddHalf(re[b][j], a, ofReal[j][0], ofReal[j][1]);
      MultiplyAddHalf(im[b][j], a, ofImaginary[j][0], ofImaginary[j][1]);
    }
  }
}

/** Stores the sums that lie in shared memory. */
template <int VBlocks, typename TBlock>
__device__ __forceinline__ void
StoreHalfProducts(const ProductShape & shape, const TBlock & block, const __half2 * shared, __half2 * out)
{
  using Layout = HalfShape<VBlocks>;
  constexpr int channels = Layout::channels;
  for (int i = static_cast<int>(threadIdx.x); i < HalfTiles * channels * 2; i += HalfThreads)
  {
    const int quarter = i % 2 * 4;
    const int channel = i / 2 % channels;
    const int tile = i / 2 / channels;
    if (block.firstTile + tile < shape.tiles && block.firstChannel + channel < shape.outputs)
    {
      const __half2 * const four = shared + quarter * Layout::outFrequency + tile * Layout::outTile + channel;
      const std::int64_t    number = block.firstTile + tile;
      *reinterpret_cast<uint4 *>(
        out + number * shape.mapsOfOut * shape.points +
        PlaceInTile<__half2>(shape.mapsOfOut, block.firstChannel + channel, block.firstPoint + quarter)) =
        make_uint4(BitsOf(four[0]),
                   BitsOf(four[Layout::outFrequency]),
                   BitsOf(four[2 * Layout::outFrequency]),
                   BitsOf(four[3 * Layout::outFrequency]));
    }
  }
}

/** A block has eight frequencies, HalfTiles tiles and 16 VBlocks outputs; a warp one frequency. A complex number is two
 * neighbouring inputs of a real product: (wr, wi) times (xr, -xi) for the real part of the result, and times (xi, xr)
 * for the imaginary one. Empty where the architecture has no such instructions. */
template <int VBlocks>
__global__ void
__launch_bounds__(HalfThreads, 1) NetworkHalfProductKernel(ProductShape shape, const __half2 * __restrict__ kernels,
                                                           HalfScales scales, const __half2 * in, __half2 * out)
{
  if (!HasHalfInstructions)
  {
    return;
  }
  using Layout = HalfShape<VBlocks>;
  constexpr int     channels = Layout::channels;
  constexpr int     F = HalfFrequencies;
  constexpr int     together = 4; // blocks that share lines of memory
  extern __shared__ __align__(16) unsigned char memory[];
  auto * const                                  shared = reinterpret_cast<__half2 *>(memory);

  const ProductBlock<together, F, HalfTiles, channels> block(shape);

  const int t = static_cast<int>(threadIdx.x);
  const int f = t / 32;
  const int row = t % 32 / 4;
  const int column = t % 4;

  const int  stages = (shape.inputs + HalfInputs - 1) / HalfInputs;
  const auto fetch = [&](int stage) {
    if (stage < stages)
    {
      FetchHalf<VBlocks>(shape, block, stage, stages, kernels, scales, in, shared + stage % HalfStages * Layout::stage);
    }
    __pipeline_commit();
  };

  float re[VBlocks][HalfTiles / 8][4];
  float im[VBlocks][HalfTiles / 8][4];
  int   largest[HalfTiles / 8];
#pragma unroll
  for (int j = 0; j < HalfTiles / 8; ++j)
  {
    const int tile = block.firstTile + 8 * j + row;
    largest[j] = tile < shape.tiles ? scales.ofTiles[tile] : 0;
#pragma unroll
    for (int b = 0; b < VBlocks; ++b)
    {
#pragma unroll
      for (int i = 0; i < 4; ++i)
      {
        re[b][j][i] = im[b][j][i] = 0.0f;
      }
    }
  }
  for (int stage = 0; stage < HalfStages - 1; ++stage)
  {
    fetch(stage);
  }
  for (int stage = 0; stage < stages; ++stage)
  {
    __pipeline_wait_prior(HalfStages - 2);
    __syncthreads();
    fetch(stage + HalfStages - 1);
    const __half2 * const from = shared + stage % HalfStages * Layout::stage;
    const __half2 * const w = from + f * VBlocks * 128 + t % 32 * 4;
    const __half2 * const x = from + Layout::kernels + column * Layout::tilePitch + row * F + f;
    const auto * const    e = reinterpret_cast<const int *>(from + Layout::kernels + HalfInputs * Layout::tilePitch) +
                           column * Layout::scalePitch + row;
    AddHalfProducts<VBlocks>(w, x, e, largest, re, im);
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < HalfTiles / 8; ++j)
  {
#pragma unroll
    for (int b = 0; b < VBlocks; ++b)
    {
#pragma unroll
      for (int i = 0; i < 4; ++i)
      {
        const int tile = 8 * j + 2 * column + i % 2;
        shared[f * Layout::outFrequency + tile * Layout::outTile + 16 * b + row + i / 2 * 8] =
          __floats2half2_rn(re[b][j][i], im[b][j][i]);
      }
    }
  }
  __syncthreads();
  StoreHalfProducts<VBlocks>(shape, block, shared, out);
}

template <int VBlocks>
void
RunHalfProduct(const ProductShape & shape, const __half2 * kernels, const HalfScales & scales, const __half2 * in,
               __half2 * out, cudaStream_t stream)
{
  LaunchPasses("NetworkHalfProductKernel",
               NetworkHalfProductKernel<VBlocks>,
               stream,
               shape.points / HalfFrequencies * ((shape.tiles + HalfTiles - 1) / HalfTiles) *
                 (shape.padded / (16 * VBlocks)),
               HalfThreads,
               HalfShape<VBlocks>::bytes,
               shape,
               kernels,
               scales,
               in,
               out);
}

} // namespace

bool
HasHalfTensorCores()
{
  int                device = 0;
  int                bytes = 0;
  cudaFuncAttributes code{};
  CheckCuda(cudaGetDevice(&device), "cudaGetDevice");
  CheckCuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  // The code decides, not the device: see HasNetworkTensorCores.
  CheckCuda(cudaFuncGetAttributes(&code, NetworkHalfProductKernel<5>), "cudaFuncGetAttributes");
  return code.ptxVersion >= 80 && bytes >= HalfShape<5>::bytes;
}

void
MultiplyHalf(const ProductShape & shape, const __half2 * kernels, const HalfScales & scales, const __half2 * in,
             __half2 * out, cudaStream_t stream)
{
  switch (GetProductChannels(shape.outputs) / ChannelsPerProduct)
  {
    case 1:
      return RunHalfProduct<1>(shape, kernels, scales, in, out, stream);
    case 2:
      return RunHalfProduct<2>(shape, kernels, scales, in, out, stream);
    case 3:
      return RunHalfProduct<3>(shape, kernels, scales, in, out, stream);
    case 4:
      return RunHalfProduct<4>(shape, kernels, scales, in, out, stream);
    default:
      return RunHalfProduct<5>(shape, kernels, scales, in, out, stream);
  }
}

} // namespace chunkwise
