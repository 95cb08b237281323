/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaNetworkDirect.h"
#include "chunkwiseCudaNetworkTiles.h"
#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseNetworkRun.h"

#include <exception>
#include <memory>

namespace chunkwise
{

namespace
{

using network::Step;
using network::Tensor;

/** Weights of up to this size are a table as any other; larger ones are kept where the budget has room. */
constexpr std::size_t SmallBytes = 64 << 10;

struct Position
{
  std::int64_t c, x, y, z;
};

/** Voxel number `i` of a tensor, x fastest, channels slowest. */
__device__ inline Position
PositionOf(const Tensor & tensor, std::int64_t i)
{
  Position           at{};
  const std::int64_t rows = i / tensor.extent[0];
  at.x = tensor.lower[0] + (i - rows * tensor.extent[0]);
  const std::int64_t planes = rows / tensor.extent[1];
  at.y = tensor.lower[1] + (rows - planes * tensor.extent[1]);
  at.c = planes / tensor.extent[2];
  at.z = tensor.lower[2] + (planes - at.c * tensor.extent[2]);
  return at;
}

__device__ inline std::int64_t
FirstItem()
{
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t
ItemStep()
{
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

struct ImageSource
{
  const void * data[MaxInputs];
  PixelType    kind;
  Box          box;
  Coordinates  stride[MaxInputs];
  Box          image;
  BoundaryMode mode;
  double       constant;
  double       scale;
  double       shift;
  std::int64_t origin[MaxSpatialAxes]; ///< of the tensor in the image
  std::int64_t at[MaxDimension];
};

__global__ void
NetworkLoadKernel(ImageSource source, Tensor out)
{
  const std::int64_t n = out.VoxelsPerChannel() * out.channels;
  for (std::int64_t i = FirstItem(); i < n; i += ItemStep())
  {
    const Position     position = PositionOf(out, i);
    const std::int64_t index[MaxDimension] = { position.x - source.origin[0],
                                               position.y - source.origin[1],
                                               position.z - source.origin[2],
                                               source.at[3],
                                               source.at[4] };
    bool               there = true;
    std::int64_t       offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t from =
        MapTap(index[a], source.box.lower.axis[a], source.box.upper.axis[a], source.image.Extent(a), source.mode);
      there = there && !(source.mode == BoundaryMode::Constant && from < 0);
      offset += (from - source.box.lower.axis[a]) * source.stride[position.c].axis[a];
    }
    const double value = there ? LoadAs<double, false>(source.data[position.c], source.kind, offset) : source.constant;
    out.At(position.c, position.x, position.y, position.z) = static_cast<float>(fma(value, source.scale, source.shift));
  }
}

template <LayerKind VKind>
__global__ void
NetworkVoxelKernel(Step step)
{
  const std::int64_t n = step.out.VoxelsPerChannel() * step.out.channels;
  for (std::int64_t i = FirstItem(); i < n; i += ItemStep())
  {
    const Position at = PositionOf(step.out, i);
    step.out.At(at.c, at.x, at.y, at.z) =
      network::Activate(step, at.c, network::ValueAt<VKind>(step, at.c, at.x, at.y, at.z));
  }
}

__global__ void
NetworkSoftmaxKernel(Step step)
{
  const std::int64_t n = step.out.VoxelsPerChannel();
  for (std::int64_t i = FirstItem(); i < n; i += ItemStep())
  {
    const Position at = PositionOf(step.out, i);
    network::SoftmaxAt(step, at.x, at.y, at.z);
  }
}

/** A block has a channel, and a thread a part of its sums (StatisticParts). */
__global__ void
__launch_bounds__(network::StatisticParts) NetworkNormalizeKernel(Step step)
{
  __shared__ double   parts[network::StatisticParts];
  const Tensor &      in = step.in[0];
  const Tensor &      out = step.out;
  const std::int64_t  n = in.VoxelsPerChannel();
  const std::int64_t  c = blockIdx.x;
  const float * const values = in.data + c * n;
  const int           t = static_cast<int>(threadIdx.x);
  const auto          sum = [&](double mean, bool squares) {
    double own = 0;
    for (std::int64_t i = t; i < n; i += network::StatisticParts)
    {
      const double value = static_cast<double>(values[i]);
      own += squares ? (value - mean) * (value - mean) : value;
    }
    __syncthreads();
    parts[t] = own;
    for (int half = network::StatisticParts / 2; half > 0; half /= 2)
    {
      __syncthreads();
      if (t < half)
      {
        parts[t] += parts[t + half];
      }
    }
    __syncthreads();
    return parts[0];
  };
  const double       mean = sum(0.0, false) / static_cast<double>(n);
  const double       variance = sum(mean, true) / static_cast<double>(n);
  const double       factor = 1.0 / sqrt(variance + static_cast<double>(step.epsilon));
  const std::int64_t voxels = out.VoxelsPerChannel();
  for (std::int64_t i = t; i < voxels; i += network::StatisticParts)
  {
    const Position at = PositionOf(out, c * voxels + i);
    out.data[c * voxels + i] = network::NormalizedAt(step, c, in.At(c, at.x, at.y, at.z), mean, factor);
  }
}

struct WindowPlace
{
  std::int64_t  lower[MaxSpatialAxes];
  const float * weights[MaxSpatialAxes];
};

__global__ void
NetworkAddWindowKernel(Tensor result, Tensor sums, WindowPlace window)
{
  const std::int64_t n = sums.VoxelsPerChannel();
  for (std::int64_t i = FirstItem(); i < n; i += ItemStep())
  {
    const Position     at = PositionOf(sums, i);
    const std::int64_t x = at.x - window.lower[0];
    const std::int64_t y = at.y - window.lower[1];
    const std::int64_t z = at.z - window.lower[2];
    if (x < 0 || y < 0 || z < 0 || x >= result.extent[0] || y >= result.extent[1] || z >= result.extent[2])
    {
      continue;
    }
    const float weight = network::WindowWeight(window.weights[0][x], window.weights[1][y], window.weights[2][z]);
    for (int c = 0; c < result.channels; ++c)
    {
      sums.data[c * n + i] += weight * result.At(c, x, y, z);
    }
    sums.data[result.channels * n + i] += weight;
  }
}

__global__ void
NetworkDivideKernel(Tensor sums)
{
  const std::int64_t n = sums.VoxelsPerChannel();
  for (std::int64_t i = FirstItem(); i < n; i += ItemStep())
  {
    const float weight = sums.data[(sums.channels - 1) * n + i];
    for (int c = 0; c + 1 < sums.channels; ++c)
    {
      sums.data[c * n + i] /= weight;
    }
  }
}

/** Voxels along y that a thread computes for all channels of its blocks. */
constexpr int RowsPerThread = 4;
constexpr int WarpsPerBlock = 4;

/** Sums begin with the bias of their channels, from `first` on. */
template <int VChannels>
__device__ __forceinline__ void
BeginSums(const Step & step, std::int64_t ofGroup, std::int64_t first, std::int64_t outputs,
          float (&sums)[RowsPerThread][VChannels])
{
#pragma unroll
  for (int c = 0; c < VChannels; ++c)
  {
    const std::int64_t channel = first + c;
    const float        bias = step.bias && channel < outputs ? step.bias[ofGroup + channel] : 0.0f;
#pragma unroll
    for (int r = 0; r < RowsPerThread; ++r)
    {
      sums[r][c] = bias;
    }
  }
}

/** Adds the products of a tap, whose weights it passes. */
template <int VBlocks>
__device__ __forceinline__ void
AddProducts(const float (&values)[RowsPerThread], const float * (&weights)[VBlocks],
            float (&sums)[RowsPerThread][VBlocks * ChannelsPerBlock])
{
#pragma unroll
  for (int b = 0; b < VBlocks; ++b)
  {
    const float4 low = *reinterpret_cast<const float4 *>(weights[b]);
    const float4 high = *reinterpret_cast<const float4 *>(weights[b] + 4);
    const float  w[ChannelsPerBlock] = { low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w };
    weights[b] += ChannelsPerBlock;
#pragma unroll
    for (int c = 0; c < ChannelsPerBlock; ++c)
    {
#pragma unroll
      for (int r = 0; r < RowsPerThread; ++r)
      {
        sums[r][b * ChannelsPerBlock + c] = fmaf(w[c], values[r], sums[r][b * ChannelsPerBlock + c]);
      }
    }
  }
}

/** Sums of VBlocks blocks of output channels for RowsPerThread voxels a thread; a warp's lie side by side along x. The
 * weights of a tap are the same for all of a block's threads. */
template <int VBlocks>
__global__ void __launch_bounds__(32 * WarpsPerBlock) NetworkConvolutionKernel(Step step)
{
  constexpr int      channels = VBlocks * ChannelsPerBlock;
  const Tensor &     in = step.in[0];
  const Tensor &     out = step.out;
  const std::int64_t inputs = in.channels / step.groups;
  const std::int64_t outputs = out.channels / step.groups;
  const std::int64_t blocks = (outputs + ChannelsPerBlock - 1) / ChannelsPerBlock;
  const std::int64_t parts = (blocks + VBlocks - 1) / VBlocks * step.groups;
  const std::int64_t tilesX = (out.extent[0] + 31) / 32;
  const std::int64_t tilesY = (out.extent[1] + RowsPerThread * WarpsPerBlock - 1) / (RowsPerThread * WarpsPerBlock);
  const std::int64_t taps = step.kernel[0] * step.kernel[1] * step.kernel[2];
  const std::int64_t all = parts * tilesX * tilesY * out.extent[2];
  const int          lane = static_cast<int>(threadIdx.x);
  for (std::int64_t task = blockIdx.x; task < all; task += gridDim.x)
  {
    const std::int64_t part = task % parts;
    std::int64_t       rest = task / parts;
    const std::int64_t x = out.lower[0] + rest % tilesX * 32 + lane;
    rest /= tilesX;
    const std::int64_t y =
      out.lower[1] + (rest % tilesY * WarpsPerBlock + static_cast<std::int64_t>(threadIdx.y)) * RowsPerThread;
    const std::int64_t z = out.lower[2] + rest / tilesY;
    const std::int64_t group = part / ((blocks + VBlocks - 1) / VBlocks);
    const std::int64_t firstBlock = part % ((blocks + VBlocks - 1) / VBlocks) * VBlocks;

    float sums[RowsPerThread][channels];
    BeginSums(step, group * outputs, firstBlock * ChannelsPerBlock, outputs, sums);
    const float * weights[VBlocks];
#pragma unroll
    for (int b = 0; b < VBlocks; ++b)
    {
      // A block beyond the last one has the last one's weights, and its sums are not stored.
      const std::int64_t block = firstBlock + b < blocks ? firstBlock + b : blocks - 1;
      weights[b] = step.packed + (group * blocks + block) * inputs * taps * ChannelsPerBlock;
    }
    const std::int64_t ix0 = x * step.stride[0] - step.padLower[0];
    for (std::int64_t i = 0; i < inputs; ++i)
    {
      for (std::int64_t kz = 0; kz < step.kernel[2]; ++kz)
      {
        const std::int64_t iz = z * step.stride[2] - step.padLower[2] + kz * step.dilation[2];
        const bool         insideZ = iz >= in.lower[2] && iz < in.lower[2] + in.extent[2];
        for (std::int64_t ky = 0; ky < step.kernel[1]; ++ky)
        {
          const float * rows[RowsPerThread];
          bool          inside[RowsPerThread];
#pragma unroll
          for (int r = 0; r < RowsPerThread; ++r)
          {
            const std::int64_t iy = (y + r) * step.stride[1] - step.padLower[1] + ky * step.dilation[1];
            inside[r] = insideZ && iy >= in.lower[1] && iy < in.lower[1] + in.extent[1];
            rows[r] = inside[r] ? in.Row(group * inputs + i, iy, iz) : in.data;
          }
          for (std::int64_t kx = 0; kx < step.kernel[0]; ++kx)
          {
            const std::int64_t ix = ix0 + kx * step.dilation[0] - in.lower[0];
            const bool         insideX = ix >= 0 && ix < in.extent[0];
            float              values[RowsPerThread];
#pragma unroll
            for (int r = 0; r < RowsPerThread; ++r)
            {
              values[r] = insideX && inside[r] ? rows[r][ix] : 0.0f;
            }
            AddProducts<VBlocks>(values, weights, sums);
          }
        }
      }
    }
    if (x >= out.lower[0] + out.extent[0])
    {
      continue;
    }
#pragma unroll
    for (int c = 0; c < channels; ++c)
    {
      const std::int64_t channel = firstBlock * ChannelsPerBlock + c;
#pragma unroll
      for (int r = 0; r < RowsPerThread; ++r)
      {
        if (channel < outputs && y + r < out.lower[1] + out.extent[1])
        {
          const float value = sums[r][c];
          out.At(group * outputs + channel, x, y + r, z) = network::Activate(step, group * outputs + channel, value);
        }
      }
    }
  }
}

struct ResultTarget
{
  void *        data;
  PixelType     kind;
  Box           box;
  Coordinates   stride;
  std::int64_t  at[MaxDimension];
  NetworkResult result;
  int           channel;
  double        threshold;
};

__global__ void
NetworkStoreKernel(Tensor in, ResultTarget target)
{
  const std::int64_t width = in.extent[0];
  const std::int64_t height = in.extent[1];
  const std::int64_t n = in.VoxelsPerChannel();
  for (std::int64_t i = FirstItem(); i < n; i += ItemStep())
  {
    const std::int64_t row = i / width;
    const std::int64_t plane = row / height;
    const std::int64_t x = in.lower[0] + i - row * width;
    const std::int64_t y = in.lower[1] + row - plane * height;
    const std::int64_t z = in.lower[2] + plane;
    const std::int64_t index[MaxDimension] = { x, y, z, target.at[3], target.at[4] };
    std::int64_t       offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += (index[a] - target.box.lower.axis[a]) * target.stride.axis[a];
    }
    float value;
    if (target.result == NetworkResult::ArgMax)
    {
      value = static_cast<float>(network::LargestChannelAt(in, x, y, z));
    }
    else
    {
      value = in.At(target.channel, x, y, z);
      if (target.result == NetworkResult::Threshold)
      {
        value = static_cast<double>(value) > target.threshold ? 1.0f : 0.0f;
      }
    }
    StoreAs<float, false>(target.data, target.kind, offset, value);
  }
}

/** Tensors of the same planes; a block has a part of what lies together. */
constexpr std::int64_t FloatsPerCopy = 1 << 14;

__global__ void
NetworkCopyKernel(Tensor from, Tensor to, std::int64_t length, std::int64_t parts)
{
  const std::int64_t row = blockIdx.x / parts;
  const std::int64_t first = (blockIdx.x - row * parts) * FloatsPerCopy;
  const std::int64_t end = first + FloatsPerCopy < length ? first + FloatsPerCopy : length;
  const float *      source = from.data + row * from.FragmentLength();
  float *            target = to.data + row * to.FragmentLength();
  for (std::int64_t i = first + threadIdx.x; i < end; i += blockDim.x)
  {
    target[i] = source[i];
  }
}

template <LayerKind VKind>
void
LaunchVoxels(const Step & step, cudaStream_t stream)
{
  NetworkVoxelKernel<VKind><<<BlocksFor(step.out.VoxelsPerChannel() * step.out.channels, 256), 256, 0, stream>>>(step);
  CheckLaunch("NetworkVoxelKernel");
}

/** Bytes of all weights that are too large for a table. */
std::size_t
LargeWeightBytes(const NetworkGraph & graph)
{
  std::size_t bytes = 0;
  for (const NetworkLayer & layer : graph.GetLayers())
  {
    for (const auto & values : GetNetworkValues(layer))
    {
      const std::size_t size = values ? values->size() * sizeof(float) : 0;
      bytes += size > SmallBytes ? RoundUp(size) : 0;
    }
  }
  return bytes;
}

bool
HasSmallWindow(const Step & step)
{
  return (step.kind == LayerKind::MaximumPooling || step.kind == LayerKind::AveragePooling) &&
         std::max({ step.kernel[0], step.kernel[1], step.kernel[2] }) <= MostPoolingTaps;
}

/** Copies of planes beside the kernels of a stream: from the host's memory in one stream, to it in another. */
class CopyStreams
{
public:
  explicit CopyStreams(cudaStream_t kernels)
    : m_Kernels(kernels)
  {
    try
    {
      for (cudaStream_t & stream : m_Streams)
      {
        CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
      }
      for (cudaEvent_t & event : m_Events)
      {
        CheckCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
      }
    }
    catch (...)
    {
      this->Destroy();
      throw;
    }
  }
  ~CopyStreams()
  {
    if (std::uncaught_exceptions() > m_Exceptions)
    {
      // Their memory is given up when the kernels' stream, which has not come to wait for them, is empty.
      for (const cudaStream_t stream : m_Streams)
      {
        (void)cudaStreamSynchronize(stream);
      }
    }
    this->Destroy();
  }
  CopyStreams(const CopyStreams &) = delete;
  CopyStreams &
  operator=(const CopyStreams &) = delete;

  /** Begins when all is done that was enqueued for the kernels; see NetworkBackend. */
  int
  Start(const Tensor & from, const Tensor & to, bool isFromHost)
  {
    const int          direction = isFromHost ? 0 : 1;
    const cudaStream_t stream = m_Streams[direction];
    CheckCuda(cudaEventRecord(m_Events[Begin], m_Kernels), "cudaEventRecord");
    CheckCuda(cudaStreamWaitEvent(stream, m_Events[Begin], 0), "cudaStreamWaitEvent");
    CopyRows(from, to, stream);
    const int number = direction + 2 * (m_Started[direction]++ % 2);
    CheckCuda(cudaEventRecord(m_Events[number], stream), "cudaEventRecord");
    return number;
  }
  void
  Await(int number)
  {
    CheckCuda(cudaStreamWaitEvent(m_Kernels, m_Events[number], 0), "cudaStreamWaitEvent");
  }

  void
  Finish(int number)
  {
    CheckCuda(cudaEventSynchronize(m_Events[number]), "cudaEventSynchronize");
  }

private:
  /** The index of the event at the begin, after two for each direction. */
  static constexpr int Begin = 4;

  static void
  CopyRows(const Tensor & from, const Tensor & to, cudaStream_t stream)
  {
    constexpr std::int64_t longestPitch = (std::int64_t{ 1 } << 31) - 1;
    constexpr std::int64_t size = sizeof(float);
    const std::int64_t     rows = from.channels * from.fragments[0] * from.fragments[1] * from.fragments[2];
    const std::int64_t     bytes = from.FragmentExtent(0) * from.FragmentExtent(1) * from.FragmentExtent(2) * size;
    const std::int64_t     source = from.FragmentLength() * size;
    const std::int64_t     target = to.FragmentLength() * size;
    const bool             isShort = std::max(source, target) <= longestPitch;
    for (std::int64_t row = 0; row < rows; row += isShort ? rows : 1)
    {
      CheckCuda(cudaMemcpy2DAsync(reinterpret_cast<char *>(to.data) + row * target,
                                  static_cast<std::size_t>(isShort ? target : bytes),
                                  reinterpret_cast<const char *>(from.data) + row * source,
                                  static_cast<std::size_t>(isShort ? source : bytes),
                                  static_cast<std::size_t>(bytes),
                                  static_cast<std::size_t>(isShort ? rows : 1),
                                  cudaMemcpyDefault,
                                  stream),
                "cudaMemcpy2DAsync");
    }
  }

  void
  Destroy() noexcept
  {
    // Pending work still completes.
    for (const cudaStream_t stream : m_Streams)
    {
      (void)(stream ? cudaStreamDestroy(stream) : cudaSuccess);
    }
    for (const cudaEvent_t event : m_Events)
    {
      (void)(event ? cudaEventDestroy(event) : cudaSuccess);
    }
  }

  const cudaStream_t m_Kernels;
  const int          m_Exceptions{ std::uncaught_exceptions() };
  cudaStream_t       m_Streams[2]{};
  cudaEvent_t        m_Events[Begin + 1]{};
  unsigned int       m_Started[2]{};
};

/** Scratch: results of layers, large weights, spectra. */
class CudaNetwork : public NetworkBackend
{
public:
  CudaNetwork(const KernelCall & call, KeptPlanes planes, NetworkSide side)
    : m_Call(call)
    , m_Operation(static_cast<const NetworkOperation &>(*call.operation))
    , m_Stream(StreamOf(call))
    , m_Rates(GetDeviceNetworkRates(m_Operation.precision))
    , m_WeightMemory(static_cast<char *>(call.scratch) +
                     GetNetworkBytes(m_Operation, call.output.box, call.image, m_Rates, planes, side).results)
    , m_Spectra(m_WeightMemory + LargeWeightBytes(*m_Operation.graph))
  {
    if (!HasNetworkTensorCores())
    {
      m_Rates = GetDeviceNetworkRates(NetworkPrecision::Float32);
    }
    m_Rates.largestTile = GetLargestNetworkTile();
  }

  const NetworkRates &
  GetRates() const override
  {
    return m_Rates;
  }

  const float *
  Upload(const std::string & key, const std::vector<float> & values) override
  {
    const std::size_t bytes = values.size() * sizeof(float);
    if (bytes <= SmallBytes)
    {
      return static_cast<const float *>(m_Call.tables->Get(key, values.data(), bytes));
    }
    const auto fill = [&](void * memory) {
      CheckCuda(cudaMemcpyAsync(memory, values.data(), bytes, cudaMemcpyHostToDevice, m_Stream), "cudaMemcpyAsync");
      CheckCuda(cudaStreamSynchronize(m_Stream), "cudaStreamSynchronize");
    };
    char * const own = m_WeightMemory;
    m_WeightMemory += RoundUp(bytes);
    if (const void * const kept = m_Call.tables->GetMade(key, bytes, fill))
    {
      return static_cast<const float *>(kept);
    }
    fill(own);
    return reinterpret_cast<const float *>(own);
  }

  void
  Load(const Tensor & tensor, const LayerExtent & shift, const Coordinates & at) override
  {
    ImageSource source{};
    for (int i = 0; i < m_Call.numberOfInputs; ++i)
    {
      source.data[i] = m_Call.inputs[i].data;
      source.stride[i] = m_Call.inputs[i].stride;
    }
    source.kind = m_Call.inputs[0].kind;
    source.box = m_Call.inputs[0].box;
    source.image = m_Call.image;
    source.mode = m_Operation.boundary.mode;
    source.constant = m_Operation.boundary.constant.ToDouble();
    source.scale = m_Operation.scale;
    source.shift = m_Operation.shift;
    std::copy(shift.begin(), shift.end(), source.origin);
    std::copy(at.axis, at.axis + MaxDimension, source.at);
    NetworkLoadKernel<<<BlocksFor(tensor.VoxelsPerChannel() * tensor.channels, 256), 256, 0, m_Stream>>>(source,
                                                                                                         tensor);
    CheckLaunch("NetworkLoadKernel");
  }

  void
  Run(const Step & step, const TileChoice & tile) override
  {
    if (tile.tile > 0)
    {
      this->Transform(step, tile);
    }
    else if (step.kind == LayerKind::Convolution)
    {
      this->Convolve(step);
    }
    else if (HasSmallWindow(step))
    {
      PoolFragments(step, m_Stream);
    }
    else if (step.kind == LayerKind::InstanceNormalization)
    {
      NetworkNormalizeKernel<<<static_cast<unsigned int>(step.out.channels), network::StatisticParts, 0, m_Stream>>>(
        step);
      CheckLaunch("NetworkNormalizeKernel");
    }
    else if (step.kind == LayerKind::Softmax || step.kind == LayerKind::LogSoftmax)
    {
      NetworkSoftmaxKernel<<<BlocksFor(step.out.VoxelsPerChannel(), 256), 256, 0, m_Stream>>>(step);
      CheckLaunch("NetworkSoftmaxKernel");
    }
    else
    {
      network::DispatchVoxelKind(step.kind, [&](auto kind) { LaunchVoxels<decltype(kind)::value>(step, m_Stream); });
    }
  }

  void
  Store(const Tensor & tensor, const Coordinates & at, int channel) override
  {
    const BufferView & output = m_Call.output;
    ResultTarget       target{ output.data, output.kind,        output.box, output.stride,
                               {},          m_Operation.result, channel,    m_Operation.threshold };
    std::copy(at.axis, at.axis + MaxDimension, target.at);
    NetworkStoreKernel<<<BlocksFor(tensor.VoxelsPerChannel(), 256), 256, 0, m_Stream>>>(tensor, target);
    CheckLaunch("NetworkStoreKernel");
  }

  void
  Copy(const Tensor & from, const Tensor & to) override
  {
    const std::int64_t length = from.FragmentExtent(0) * from.FragmentExtent(1) * from.FragmentExtent(2);
    const std::int64_t parts = (length + FloatsPerCopy - 1) / FloatsPerCopy;
    const std::int64_t rows = from.channels * from.fragments[0] * from.fragments[1] * from.fragments[2];
    NetworkCopyKernel<<<static_cast<unsigned int>(rows * parts), 256, 0, m_Stream>>>(from, to, length, parts);
    CheckLaunch("NetworkCopyKernel");
  }

  int
  StartCopy(const Tensor & from, const Tensor & to) override
  {
    if (!m_Copies)
    {
      m_Copies = std::make_unique<CopyStreams>(m_Stream);
    }
    return m_Copies->Start(from, to, this->IsSpilled(from));
  }

  void
  AwaitCopy(int number) override
  {
    m_Copies->Await(number);
  }

  void
  FinishCopy(int number) override
  {
    m_Copies->Finish(number);
  }

  void
  Clear(const Tensor & tensor) override
  {
    const std::size_t bytes = static_cast<std::size_t>(tensor.channels * tensor.VoxelsPerChannel()) * sizeof(float);
    CheckCuda(cudaMemsetAsync(tensor.data, 0, bytes, m_Stream), "cudaMemsetAsync");
  }

  void
  AddWindow(const Tensor & result, const Tensor & sums, const LayerExtent & lower,
            const float * const (&weights)[MaxSpatialAxes]) override
  {
    WindowPlace window{};
    std::copy(lower.begin(), lower.end(), window.lower);
    std::copy(std::begin(weights), std::end(weights), window.weights);
    NetworkAddWindowKernel<<<BlocksFor(sums.VoxelsPerChannel(), 256), 256, 0, m_Stream>>>(result, sums, window);
    CheckLaunch("NetworkAddWindowKernel");
  }

  void
  DivideSums(const Tensor & sums) override
  {
    NetworkDivideKernel<<<BlocksFor(sums.VoxelsPerChannel(), 256), 256, 0, m_Stream>>>(sums);
    CheckLaunch("NetworkDivideKernel");
  }

  /** Launches take no time. */
  bool
  ShouldStop() const override
  {
    return false;
  }
  void
  AddProgress(double) override
  {}

private:
  bool
  IsSpilled(const Tensor & tensor) const
  {
    const char * const begin = static_cast<const char *>(m_Call.sideOut);
    const char * const at = reinterpret_cast<const char *>(tensor.data);
    return at >= begin && at < begin + m_Call.sideOutBytes;
  }

  void
  Transform(const Step & step, const TileChoice & choice)
  {
    const NetworkPrecision precision = m_Operation.precision;
    const auto fill = [&](void * memory) { MakeKernelSpectra(step, choice.tile, precision, memory, m_Stream); };
    const auto fillAndWait = [&](void * memory) {
      fill(memory);
      CheckCuda(cudaStreamSynchronize(m_Stream), "cudaStreamSynchronize");
    };
    const std::string key = "network " + m_Operation.graph->GetKey() + ' ' + std::to_string(step.layer) +
                            (HasHalfSpectra(step, precision) ? " half spectra " : " spectra ") +
                            std::to_string(choice.tile);
    const std::size_t used = GetUsedKernelBytes(step, choice.tile, precision);
    const void *      kernels = m_Call.tables->GetMade(key, used, fillAndWait);
    if (!kernels)
    {
      fill(m_Spectra);
      kernels = m_Spectra;
    }
    char * const spectra = m_Spectra + GetKernelSpectraBytes(step.in[0].channels, step.out.channels, choice.tile);
    ConvolveTiles(step, choice.tile, choice.tilesAtOnce, precision, kernels, spectra, m_Stream);
  }

  void
  Convolve(const Step & step)
  {
    if (ConvolveDirectly(step, m_Stream))
    {
      return;
    }
    const std::int64_t blocks = (step.out.channels / step.groups + ChannelsPerBlock - 1) / ChannelsPerBlock;
    const std::int64_t tiles =
      (step.out.extent[0] + 31) / 32 *
      ((step.out.extent[1] + RowsPerThread * WarpsPerBlock - 1) / (RowsPerThread * WarpsPerBlock)) *
      step.out.extent[2] * step.groups;
    const dim3 threads(32, WarpsPerBlock, 1);
    if (blocks > 1)
    {
      NetworkConvolutionKernel<2><<<BlocksFor(tiles * ((blocks + 1) / 2), 1), threads, 0, m_Stream>>>(step);
    }
    else
    {
      NetworkConvolutionKernel<1><<<BlocksFor(tiles, 1), threads, 0, m_Stream>>>(step);
    }
    CheckLaunch("NetworkConvolutionKernel");
  }

  const KernelCall &       m_Call;
  const NetworkOperation & m_Operation;
  const cudaStream_t       m_Stream;
  NetworkRates             m_Rates;
  char *                   m_WeightMemory;
  char * const             m_Spectra;

  std::unique_ptr<CopyStreams> m_Copies;
};

void
RunCudaNetwork(const KernelCall & call)
{
  CudaNetwork backend(call, GetKeptPlanes(call), NetworkSide::Whole);
  RunNetwork(call, backend);
}

void
RunCudaPiped(const KernelCall & call)
{
  RunPiped(call, [&call](const NetworkHead & head) {
    CudaNetwork backend(call, KeptPlanes::InScratch, NetworkSide::Tail);
    RunNetwork(call, backend, &head);
  });
}

template <KeptPlanes VPlanes, NetworkSide VSide = NetworkSide::Whole>
std::size_t
CudaNetworkBytes(const Operation & operation, const ChunkShape & shape)
{
  const auto &       network = static_cast<const NetworkOperation &>(operation);
  const NetworkBytes bytes =
    GetNetworkBytes(network, shape.outputBox, shape.image, GetDeviceNetworkRates(network.precision), VPlanes, VSide);
  return bytes.results + LargeWeightBytes(*network.graph) + bytes.transforms;
}

template <KeptPlanes VPlanes, NetworkSide VSide = NetworkSide::Whole>
double
CudaNetworkCost(const Operation & operation, const ChunkShape & shape)
{
  const auto & network = static_cast<const NetworkOperation &>(operation);
  return GetNetworkCost(
    network, shape.outputBox, shape.image, GetDeviceNetworkRates(network.precision), VPlanes, VSide);
}

std::size_t
CudaExchangeBytes(const Operation & operation, const ChunkShape & shape)
{
  const auto & network = static_cast<const NetworkOperation &>(operation);
  return GetNetworkBytes(network,
                         shape.outputBox,
                         shape.image,
                         GetDeviceNetworkRates(network.precision),
                         KeptPlanes::InScratch,
                         NetworkSide::Tail)
    .spilled;
}

std::size_t
CudaSpilledBytes(const Operation & operation, const ChunkShape & shape)
{
  const auto & network = static_cast<const NetworkOperation &>(operation);
  return GetNetworkBytes(
           network, shape.outputBox, shape.image, GetDeviceNetworkRates(network.precision), KeptPlanes::Spilled)
    .spilled;
}

double
CudaPipedSlabs(const Operation & operation, const ChunkShape & shape)
{
  const auto & network = static_cast<const NetworkOperation &>(operation);
  return CountPipedSlabs(network, shape.outputBox, shape.image, GetDeviceNetworkRates(network.precision));
}

double
CudaSpilledWeight(const Operation & operation)
{
  return GetWeightOfSpilling(static_cast<const NetworkOperation &>(operation));
}

bool
CudaSupportsSpilling(const Operation & operation)
{
  return MaySpill(static_cast<const NetworkOperation &>(operation));
}

} // namespace

void
RegisterCudaNetwork(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.compute = { RunCudaNetwork, CudaNetworkBytes<KeptPlanes::InScratch>, CudaNetworkCost<KeptPlanes::InScratch> };
  kernels.spilled = { RunCudaNetwork, CudaNetworkBytes<KeptPlanes::Spilled>, CudaNetworkCost<KeptPlanes::Spilled> };
  kernels.supportsSpilling = CudaSupportsSpilling;
  kernels.spilledBytes = CudaSpilledBytes;
  kernels.spilledWeight = CudaSpilledWeight;
  kernels.piped = { RunCudaPiped,
                    CudaNetworkBytes<KeptPlanes::InScratch, NetworkSide::Tail>,
                    CudaNetworkCost<KeptPlanes::InScratch, NetworkSide::Tail> };
  kernels.exchangedBytes = CudaExchangeBytes;
  kernels.pipedParts = CudaPipedSlabs;
  registry.Register("network", kernels);
}

} // namespace chunkwise
