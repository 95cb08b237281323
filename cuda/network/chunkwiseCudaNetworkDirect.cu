/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Direct convolutions of many multiply-adds.
#include "chunkwiseCudaFixedPasses.cuh"
#include "chunkwiseCudaNetworkDirect.h"

#include <cuda_pipeline.h>

#include <limits>

namespace chunkwise
{

namespace
{

using network::Step;
using network::Tensor;

/** A thread has a run of so many voxels along x, a dilation apart, of ChannelsPerBlock channels; a warp has 32 runs,
 * one below the next. */
constexpr int RunLength = 16;
constexpr int DirectWarps = 8;
constexpr int DirectThreads = 32 * DirectWarps;
/** Taps along x for which a run is read once. */
constexpr int TapsTogether = 4;
/** A block's warps: so many runs side by side, so many times 32 rows, and so many blocks of channels. */
struct WarpGrid
{
  int across;
  int down;
  int blocks;
};

/** The part of one plane of an input channel that a block needs: the rows of all its runs, and the weights that belong
 * to it. Runs of the same voxels modulo the dilation follow each other; those of the other ones lie between. */
struct PlaneShape
{
  WarpGrid warps;
  int      length; ///< of a run's row: the run and what the kernel needs beyond it
  int      pitch;  ///< from run to run: whole vectors
  int      rowPitch;
  int      height;
  int      taps;
  int      cells;   ///< of all rows
  int      floats;  ///< with the weights
  int      buffers; ///< such planes in shared memory

  PlaneShape(const Step & step, const WarpGrid & grid)
    : warps(grid)
    , length(RunLength + static_cast<int>(step.kernel[0]) - 1)
    , pitch((length + 3) / 4 * 4)
    // An odd number of vectors: eight rows are on different banks.
    , rowPitch((grid.across * pitch / 4 | 1) * 4)
    , height(32 * grid.down + static_cast<int>(step.dilation[1] * (step.kernel[1] - 1)))
    , taps(static_cast<int>(step.kernel[0] * step.kernel[1]))
    , cells(height * rowPitch)
    , floats(cells + taps * ChannelsPerBlock * grid.blocks)
    , buffers(3)
  {}
  /** The bytes of shared memory: planes, and the source of each cell of one. */
  std::size_t
  GetBytes() const
  {
    const std::size_t planes = sizeof(float) * (static_cast<std::size_t>(buffers) * static_cast<std::size_t>(floats)) +
                               sizeof(int) * static_cast<std::size_t>(cells);
    // Or results on their way out.
    return std::max(planes, sizeof(float) * DirectThreads * (RunLength + 1));
  }
};

/** The tasks of a kernel: parts of the output for one block. */
struct DirectTasks
{
  std::int64_t parts; ///< of the channels
  std::int64_t tilesX;
  std::int64_t tilesY;

  DirectTasks(const Step & step, const WarpGrid & warps)
  {
    const Tensor &     out = step.out;
    const std::int64_t blocks = (out.channels + ChannelsPerBlock - 1) / ChannelsPerBlock;
    const std::int64_t runs = (out.extent[0] + RunLength * step.dilation[0] - 1) / (RunLength * step.dilation[0]);
    parts = (blocks + warps.blocks - 1) / warps.blocks;
    tilesX = (runs * step.dilation[0] + warps.across - 1) / warps.across;
    tilesY = (out.extent[1] + 32 * warps.down - 1) / (32 * warps.down);
  }
};

/** VTaps neighbours of a kernel's row, for a run: each number that is read there meets all of them. */
template <int VTaps>
__device__ __forceinline__ void
AddTaps(float (&sums)[ChannelsPerBlock][RunLength], const float * run, const float * weights)
{
  constexpr int vectors = (RunLength + VTaps - 1 + 3) / 4;
  float         values[4 * vectors];
#pragma unroll
  for (int i = 0; i < vectors; ++i)
  {
    const float4 four = reinterpret_cast<const float4 *>(run)[i];
    values[4 * i] = four.x;
    values[4 * i + 1] = four.y;
    values[4 * i + 2] = four.z;
    values[4 * i + 3] = four.w;
  }
#pragma unroll
  for (int t = 0; t < VTaps; ++t)
  {
    const float4 low = reinterpret_cast<const float4 *>(weights)[2 * t];
    const float4 high = reinterpret_cast<const float4 *>(weights)[2 * t + 1];
    const float  w[ChannelsPerBlock] = { low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w };
#pragma unroll
    for (int c = 0; c < ChannelsPerBlock; ++c)
    {
#pragma unroll
      for (int i = 0; i < RunLength; ++i)
      {
        sums[c][i] = fmaf(w[c], values[i + t], sums[c][i]);
      }
    }
  }
}

/** Sums begin with the bias of their channels. */
__device__ __forceinline__ void
BeginSums(const Step & step, int firstChannel, float (&sums)[ChannelsPerBlock][RunLength])
{
#pragma unroll
  for (int c = 0; c < ChannelsPerBlock; ++c)
  {
    const float first = step.bias && firstChannel + c < step.out.channels ? step.bias[firstChannel + c] : 0.0f;
#pragma unroll
    for (int i = 0; i < RunLength; ++i)
    {
      sums[c][i] = first;
    }
  }
}

/** The first voxel of run number `run` of the output's rows, whose voxels are `apart`. */
__device__ __forceinline__ std::int64_t
                           FirstOfRun(std::int64_t run, int apart)
{
  return run / apart * RunLength * apart + run % apart;
}

/** Finds the place of each cell in a plane of the input; -1 where it is 0. `inX`, `inY`: the first voxel's. */
__device__ __forceinline__ void
FindPlaces(const Tensor & in, const PlaneShape & plane, int apart, std::int64_t inX, std::int64_t inY,
           std::int64_t firstRun, int * places)
{
  for (int cell = static_cast<int>(threadIdx.x); cell < plane.cells; cell += DirectThreads)
  {
    const int          row = cell / plane.rowPitch;
    const int          number = cell - row * plane.rowPitch;
    const int          run = number / plane.pitch;
    const int          at = number - run * plane.pitch;
    const std::int64_t atX = inX + FirstOfRun(firstRun + run, apart) + static_cast<std::int64_t>(at) * apart;
    const std::int64_t atY = inY + row;
    const bool         there =
      run < plane.warps.across && at < plane.length && atX >= 0 && atX < in.extent[0] && atY >= 0 && atY < in.extent[1];
    places[cell] = there ? static_cast<int>(atY * in.extent[0] + atX) : -1;
  }
}

/** Begins to copy a plane of an input channel and the weights of `firstBlock` and those after it to `tile`. */
__device__ __forceinline__ void
FetchPlane(const Step & step, const PlaneShape & plane, const int * places, int input, int kernelZ, std::int64_t inZ,
           int firstBlock, float * tile)
{
  const Tensor &      in = step.in[0];
  const int           blocks = (step.out.channels + ChannelsPerBlock - 1) / ChannelsPerBlock;
  const std::int64_t  atZ = inZ + kernelZ * step.dilation[2];
  const bool          inside = atZ >= 0 && atZ < in.extent[2];
  const float * const from = in.data + (input * in.room + atZ) * in.extent[1] * in.extent[0];
#pragma unroll 4
  for (int cell = static_cast<int>(threadIdx.x); cell < plane.cells; cell += DirectThreads)
  {
    const int  place = places[cell];
    const bool there = inside && place >= 0;
    __pipeline_memcpy_async(tile + cell, there ? from + place : in.data, 4, there ? 0 : 4);
  }
  const int vectors = plane.taps * ChannelsPerBlock / 4;
  for (int b = 0; b < plane.warps.blocks; ++b)
  {
    // A block beyond the last one has the last one's weights, and its sums are not stored.
    const int          block = min(firstBlock + b, blocks - 1);
    const std::int64_t ofPlane =
      (static_cast<std::int64_t>(block) * in.channels + input) * static_cast<int>(step.kernel[2]) + kernelZ;
    const float * const weights = step.packed + ofPlane * vectors * 4;
    for (int i = static_cast<int>(threadIdx.x); i < vectors; i += DirectThreads)
    {
      __pipeline_memcpy_async(tile + plane.cells + 4 * (b * vectors + i), weights + 4 * i, 16);
    }
  }
}

/** Adds a row of taps, whose weights it passes. */
__device__ __forceinline__ void
AddRowOfTaps(float (&sums)[ChannelsPerBlock][RunLength], const float * at, int taps, const float *& weight)
{
  int left = taps;
#pragma unroll 1
  for (; left >= TapsTogether; left -= TapsTogether)
  {
    AddTaps<TapsTogether>(sums, at, weight);
    at += TapsTogether;
    weight += TapsTogether * ChannelsPerBlock;
  }
  switch (left)
  {
    case 1:
      AddTaps<1>(sums, at, weight);
      break;
    case 2:
      AddTaps<2>(sums, at, weight);
      break;
    case 3:
      AddTaps<3>(sums, at, weight);
      break;
  }
  weight += left * ChannelsPerBlock;
}

/** Stores the sums of a warp's runs through shared memory: neighbours of a run are stored by neighbouring lanes. `x`:
 * the first voxel of the lane's run, `y`: the first row. */
__device__ __forceinline__ void
StoreRuns(const Step & step, const float (&sums)[ChannelsPerBlock][RunLength], int firstChannel, std::int64_t x,
          std::int64_t y, std::int64_t z, float * own)
{
  const Tensor & out = step.out;
  const int      apart = static_cast<int>(step.dilation[0]);
  const int      lane = static_cast<int>(threadIdx.x) % 32;
  float * const  to = out.data + ((firstChannel * out.room + z) * out.extent[1] + y) * out.extent[0] + x;
  const int      at = lane % RunLength;
  const bool     there = x + static_cast<std::int64_t>(at) * apart < out.extent[0];
#pragma unroll
  for (int c = 0; c < ChannelsPerBlock; ++c)
  {
    if (firstChannel + c < out.channels)
    {
#pragma unroll
      for (int i = 0; i < RunLength; ++i)
      {
        own[lane * (RunLength + 1) + i] = network::Activate(step, firstChannel + c, sums[c][i]);
      }
      __syncwarp();
      float * const channel = to + c * out.room * out.extent[1] * out.extent[0] + static_cast<std::int64_t>(at) * apart;
#pragma unroll 4
      for (int row = lane / RunLength; row < 32; row += 32 / RunLength)
      {
        if (there && y + row < out.extent[1])
        {
          channel[row * out.extent[0]] = own[row * (RunLength + 1) + at];
        }
      }
      __syncwarp();
    }
  }
}

/** A plane of an input channel lies in shared memory with its weights, the next ones on their way. Sums are added in
 * the order of NetworkOperation. */
__global__ void
__launch_bounds__(DirectThreads, 1) NetworkDirectKernel(Step step, PlaneShape plane, DirectTasks tasks)
{
  extern __shared__ __align__(16) float directMemory[];

  const Tensor & in = step.in[0];
  const Tensor & out = step.out;
  const int      inputs = in.channels;
  const int      kernelX = static_cast<int>(step.kernel[0]);
  const int      kernelY = static_cast<int>(step.kernel[1]);
  const int      kernelZ = static_cast<int>(step.kernel[2]);
  const int      apart = static_cast<int>(step.dilation[0]);
  const int      stepY = static_cast<int>(step.dilation[1]) * plane.rowPitch;
  const int      lane = static_cast<int>(threadIdx.x) % 32;
  const int      warp = static_cast<int>(threadIdx.x) / 32;
  const int      runOfThread = warp % plane.warps.across;
  const int      rowOfThread = warp / plane.warps.across % plane.warps.down * 32 + lane;
  const int      blockOfThread = warp / (plane.warps.across * plane.warps.down);
  const int      stages = inputs * kernelZ;
  // The place of each cell in a plane of the input; -1 where it is 0. A thread reads what it has written.
  int * const places = reinterpret_cast<int *>(directMemory + plane.buffers * plane.floats);

  const std::int64_t all = tasks.parts * tasks.tilesX * tasks.tilesY * out.extent[2];
  for (std::int64_t task = blockIdx.x; task < all; task += gridDim.x)
  {
    const int          firstBlock = static_cast<int>(task % tasks.parts) * plane.warps.blocks;
    std::int64_t       rest = task / tasks.parts;
    const std::int64_t firstRun = rest % tasks.tilesX * plane.warps.across;
    rest /= tasks.tilesX;
    const std::int64_t y = rest % tasks.tilesY * 32 * plane.warps.down;
    const std::int64_t z = rest / tasks.tilesY;
    // The place of the task's first voxel in the part of the input that is in memory.
    const std::int64_t inX = out.lower[0] - step.padLower[0] - in.lower[0];
    const std::int64_t inY = out.lower[1] + y - step.padLower[1] - in.lower[1];
    const std::int64_t inZ = out.lower[2] + z - step.padLower[2] - in.lower[2];

    FindPlaces(in, plane, apart, inX, inY, firstRun, places);

    int        nextInput = 0;
    int        nextZ = 0;
    int        nextBuffer = 0;
    const auto fetch = [&](int stage) {
      if (stage < stages)
      {
        FetchPlane(step, plane, places, nextInput, nextZ, inZ, firstBlock, directMemory + nextBuffer * plane.floats);
        if (++nextZ == kernelZ)
        {
          nextZ = 0;
          ++nextInput;
        }
        nextBuffer = nextBuffer + 1 == plane.buffers ? 0 : nextBuffer + 1;
      }
      __pipeline_commit();
    };

    float     sums[ChannelsPerBlock][RunLength];
    const int firstChannel = (firstBlock + blockOfThread) * ChannelsPerBlock;
    BeginSums(step, firstChannel, sums);
    // The planes before may still be read.
    __syncthreads();
    for (int stage = 0; stage + 1 < plane.buffers; ++stage)
    {
      fetch(stage);
    }
    int buffer = 0;
    for (int stage = 0; stage < stages; ++stage)
    {
      if (plane.buffers == 3)
      {
        __pipeline_wait_prior(1);
      }
      else
      {
        __pipeline_wait_prior(0);
      }
      __syncthreads();
      fetch(stage + plane.buffers - 1);
      const float * const tile = directMemory + buffer * plane.floats;
      const float *       row = tile + rowOfThread * plane.rowPitch + runOfThread * plane.pitch;
      const float *       weight = tile + plane.cells + blockOfThread * plane.taps * ChannelsPerBlock;
      buffer = buffer + 1 == plane.buffers ? 0 : buffer + 1;
      for (int ky = 0; ky < kernelY; ++ky, row += stepY)
      {
        AddRowOfTaps(sums, row, kernelX, weight);
      }
    }
    __syncthreads();
    StoreRuns(step,
              sums,
              firstChannel,
              FirstOfRun(firstRun + runOfThread, apart),
              y + rowOfThread - lane,
              z,
              directMemory + warp * 32 * (RunLength + 1));
  }
}

/** The fastest of ten ways to lay eight warps over runs, rows and channels. */
WarpGrid
ChooseWarps(const Step & step)
{
  return step.out.channels <= ChannelsPerBlock ? WarpGrid{ 8, 1, 1 } : WarpGrid{ 4, 1, 2 };
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
  const Tensor & in = step.in[0];
  const double   places = static_cast<double>(in.extent[0]) * static_cast<double>(in.extent[1]);
  if (step.groups != 1 || std::max(step.kernel[0], step.kernel[1]) > 64 || step.dilation[1] > 256 ||
      places >= static_cast<double>(std::numeric_limits<int>::max()))
  {
    return false;
  }
  const WarpGrid    warps = ChooseWarps(step);
  const DirectTasks tasks(step, warps);
  PlaneShape        plane(step, warps);
  int               device = 0;
  int               most = 0;
  CheckCuda(cudaGetDevice(&device), "cudaGetDevice");
  CheckCuda(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  if (plane.GetBytes() > static_cast<std::size_t>(most))
  {
    plane.buffers = 2;
  }
  if (plane.GetBytes() > static_cast<std::size_t>(most))
  {
    return false;
  }
  LaunchPasses("NetworkDirectKernel",
               NetworkDirectKernel,
               stream,
               std::min<std::int64_t>(tasks.parts * tasks.tilesX * tasks.tilesY * step.out.extent[2], 1 << 30),
               DirectThreads,
               plane.GetBytes(),
               step,
               plane,
               tasks);
  return true;
}

} // namespace chunkwise
