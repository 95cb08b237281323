/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Direct convolutions of many multiply-adds.
#include "chunkwiseCudaFixedPasses.cuh"
#include "chunkwiseCudaNetworkDirect.h"

#include <cuda_pipeline.h>

namespace chunkwise
{

namespace
{

using network::Step;
using network::Tensor;

/** A thread has so many voxels, one below the other along y; a warp 32 of these side by side, and a block Across of its
 * warps side by side and the others below. */
constexpr int DirectRows = 8;
constexpr int Across = 2;
constexpr int DirectWarps = 8;
constexpr int TileWidth = 32 * Across;
constexpr int TileHeight = DirectRows * (DirectWarps / Across);
/** Pitch of a tile with its halo in shared memory. A constant, so that rows are at constant offsets. */
constexpr int DirectPitch = TileWidth + 40;

/** Floats of shared memory for one plane of one input channel, and the weights that belong to it. */
struct PlaneShape
{
  int width;
  int height;
  int taps;

  explicit PlaneShape(const Step & step)
    : width(TileWidth + static_cast<int>(step.dilation[0] * (step.kernel[0] - 1)))
    , height(TileHeight + static_cast<int>(step.dilation[1] * (step.kernel[1] - 1)))
    , taps(static_cast<int>(step.kernel[0] * step.kernel[1]))
  {}
  CHUNKWISE_HOST_DEVICE int
  TileFloats() const
  {
    return height * DirectPitch;
  }
  CHUNKWISE_HOST_DEVICE int
  Floats(int channels) const
  {
    return this->TileFloats() + taps * channels;
  }
};

/** Sums of 8 VBlocks output channels. A plane of an input channel, for a tile of the output, lies in shared memory with
 * its weights, the next one on its way; each number read there meets all channels, or all voxels, of a thread. Sums are
 * added in the order of NetworkOperation. */
template <int VBlocks>
__global__ void __launch_bounds__(32 * DirectWarps, 1) NetworkDirectKernel(Step step, PlaneShape plane)
{
  constexpr int     channels = VBlocks * ChannelsPerBlock;
  extern __shared__ __align__(16) float directMemory[];

  const Tensor &     in = step.in[0];
  const Tensor &     out = step.out;
  const int          inputs = in.channels;
  const int          blocks = (out.channels + ChannelsPerBlock - 1) / ChannelsPerBlock;
  const int          parts = (blocks + VBlocks - 1) / VBlocks;
  const std::int64_t tilesX = (out.extent[0] + TileWidth - 1) / TileWidth;
  const std::int64_t tilesY = (out.extent[1] + TileHeight - 1) / TileHeight;
  const std::int64_t all = parts * tilesX * tilesY * out.extent[2];
  const int          kernelX = static_cast<int>(step.kernel[0]);
  const int          kernelY = static_cast<int>(step.kernel[1]);
  const int          kernelZ = static_cast<int>(step.kernel[2]);
  const int          stepX = static_cast<int>(step.dilation[0]);
  const int          stepY = static_cast<int>(step.dilation[1]) * DirectPitch;
  const int          lane = static_cast<int>(threadIdx.x) % 32;
  const int          warp = static_cast<int>(threadIdx.x) / 32;
  const int          columnOfThread = warp % Across * 32 + lane;
  const int          rowOfThread = warp / Across * DirectRows;
  const int          stages = inputs * kernelZ;

  for (std::int64_t task = blockIdx.x; task < all; task += gridDim.x)
  {
    const int          firstBlock = static_cast<int>(task % parts) * VBlocks;
    std::int64_t       rest = task / parts;
    const std::int64_t x = out.lower[0] + rest % tilesX * TileWidth;
    rest /= tilesX;
    const std::int64_t y = out.lower[1] + rest % tilesY * TileHeight;
    const std::int64_t z = out.lower[2] + rest / tilesY;
    // Where the tile's first voxel is in the part of the input that is in memory.
    const std::int64_t inX = x - step.padLower[0] - in.lower[0];
    const std::int64_t inY = y - step.padLower[1] - in.lower[1];
    const std::int64_t inZ = z - step.padLower[2] - in.lower[2];

    int        nextInput = 0;
    int        nextZ = 0;
    const auto fetch = [&](int stage) {
      if (stage < stages)
      {
        float * const       tile = directMemory + stage % 2 * plane.Floats(channels);
        const std::int64_t  atZ = inZ + nextZ * step.dilation[2];
        const bool          insideZ = atZ >= 0 && atZ < in.extent[2];
        const float * const from = in.data + (nextInput * in.room + atZ) * in.extent[1] * in.extent[0];
        for (int row = warp; row < plane.height; row += DirectWarps)
        {
          const std::int64_t  atY = inY + row;
          const bool          inside = insideZ && atY >= 0 && atY < in.extent[1];
          const float * const line = from + atY * in.extent[0] + inX;
          for (int column = lane; column < plane.width; column += 32)
          {
            const std::int64_t atX = inX + column;
            const bool         there = inside && atX >= 0 && atX < in.extent[0];
            __pipeline_memcpy_async(
              tile + row * DirectPitch + column, there ? line + column : in.data, 4, there ? 0 : 4);
          }
        }
        float * const weights = tile + plane.TileFloats();
        for (int i = static_cast<int>(threadIdx.x); i < plane.taps * channels / 4; i += 32 * DirectWarps)
        {
          const int tap = i / (channels / 4);
          const int channel = i % (channels / 4) * 4;
          // A block beyond the last one has the last one's weights, and its sums are not stored.
          const int           block = min(firstBlock + channel / ChannelsPerBlock, blocks - 1);
          const std::int64_t  ofInput = static_cast<std::int64_t>(block) * inputs + nextInput;
          const std::int64_t  ofTap = (ofInput * kernelZ + nextZ) * plane.taps + tap;
          const float * const weight = step.packed + ofTap * ChannelsPerBlock + channel % ChannelsPerBlock;
          __pipeline_memcpy_async(weights + tap * channels + channel, weight, 16);
        }
        if (++nextZ == kernelZ)
        {
          nextZ = 0;
          ++nextInput;
        }
      }
      __pipeline_commit();
    };

    float sums[channels][DirectRows];
#pragma unroll
    for (int c = 0; c < channels; ++c)
    {
      const int   channel = firstBlock * ChannelsPerBlock + c;
      const float first = step.bias && channel < out.channels ? step.bias[channel] : 0.0f;
#pragma unroll
      for (int r = 0; r < DirectRows; ++r)
      {
        sums[c][r] = first;
      }
    }
    // The tile before may still be read.
    __syncthreads();
    fetch(0);
    for (int stage = 0; stage < stages; ++stage)
    {
      __pipeline_wait_prior(0);
      __syncthreads();
      fetch(stage + 1);
      const float * const tile = directMemory + stage % 2 * plane.Floats(channels);
      const float *       row = tile + rowOfThread * DirectPitch + columnOfThread;
      const float *       weight = tile + plane.TileFloats();
      for (int ky = 0; ky < kernelY; ++ky, row += stepY)
      {
        const float * at = row;
#pragma unroll 1
        for (int kx = 0; kx < kernelX; ++kx, at += stepX, weight += channels)
        {
          float values[DirectRows];
#pragma unroll
          for (int r = 0; r < DirectRows; ++r)
          {
            values[r] = at[r * DirectPitch];
          }
#pragma unroll
          for (int c = 0; c < channels; c += 4)
          {
            const float4 four = *reinterpret_cast<const float4 *>(weight + c);
            const float  w[4] = { four.x, four.y, four.z, four.w };
#pragma unroll
            for (int i = 0; i < 4; ++i)
            {
#pragma unroll
              for (int r = 0; r < DirectRows; ++r)
              {
                sums[c + i][r] = fmaf(w[i], values[r], sums[c + i][r]);
              }
            }
          }
        }
      }
    }
    const std::int64_t column = x + columnOfThread;
    if (column >= out.lower[0] + out.extent[0])
    {
      continue;
    }
#pragma unroll
    for (int c = 0; c < channels; ++c)
    {
      const int channel = firstBlock * ChannelsPerBlock + c;
#pragma unroll
      for (int r = 0; r < DirectRows; ++r)
      {
        const std::int64_t line = y + rowOfThread + r;
        if (channel < out.channels && line < out.lower[1] + out.extent[1])
        {
          out.At(channel, column, line, z) = network::Activate(step, channel, sums[c][r]);
        }
      }
    }
  }
}

template <int VBlocks>
void
Launch(const Step & step, const PlaneShape & plane, std::size_t bytes, cudaStream_t stream)
{
  const Tensor &     out = step.out;
  const std::int64_t blocks = (out.channels + ChannelsPerBlock - 1) / ChannelsPerBlock;
  const std::int64_t tasks = (blocks + VBlocks - 1) / VBlocks * ((out.extent[0] + TileWidth - 1) / TileWidth) *
                             ((out.extent[1] + TileHeight - 1) / TileHeight) * out.extent[2];
  LaunchPasses("NetworkDirectKernel",
               NetworkDirectKernel<VBlocks>,
               stream,
               std::min<std::int64_t>(tasks, 1 << 30),
               32 * DirectWarps,
               bytes,
               step,
               plane);
}

} // namespace

bool
ConvolveDirectly(const Step & step, cudaStream_t stream)
{
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    if (step.stride[a] != 1)
    {
      return false;
    }
  }
  const std::int64_t haloX = step.dilation[0] * (step.kernel[0] - 1);
  const std::int64_t haloY = step.dilation[1] * (step.kernel[1] - 1);
  if (step.groups != 1 || haloX > DirectPitch - TileWidth || haloY > 4 * TileHeight || step.kernel[1] > 64)
  {
    return false;
  }
  const PlaneShape  plane(step);
  const bool        isThin = step.out.channels <= ChannelsPerBlock;
  const std::size_t bytes =
    2 * sizeof(float) * static_cast<std::size_t>(plane.Floats(isThin ? ChannelsPerBlock : 2 * ChannelsPerBlock));
  int device = 0;
  int most = 0;
  CheckCuda(cudaGetDevice(&device), "cudaGetDevice");
  CheckCuda(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  if (bytes > static_cast<std::size_t>(most))
  {
    return false;
  }
  if (isThin)
  {
    Launch<1>(step, plane, bytes, stream);
  }
  else
  {
    Launch<2>(step, plane, bytes, stream);
  }
  return true;
}

} // namespace chunkwise
