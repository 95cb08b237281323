/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuNetwork.h"

#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuNetworkRows.h"
#include "chunkwiseCpuNetworkTransform.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseNetworkRun.h"
#include "chunkwiseReducer.h"
#include "chunkwiseRoundUp.h"

#include <cstring>

namespace chunkwise
{

namespace
{

using network::Step;
using network::Tensor;

/** Voxels of a row that a worker computes at a time, for all output channels. */
constexpr std::int64_t TileVoxels = 64;
/** Bytes of the input's rows that a worker holds at a time, unless those of one channel take more. */
constexpr std::int64_t PatchBytes = 256 << 10;
/** The rows' ends may be read in whole vectors. */
constexpr std::int64_t Slack = 16;

/** A convolution's rows in a worker's memory: [input channel][tap along z][tap along y][x]. */
struct PatchShape
{
  explicit PatchShape(const std::int64_t * kernel, const std::int64_t * stride, const std::int64_t * dilation)
    : isStrided(stride[0] > 1)
    , rowLength(isStrided ? TileVoxels * kernel[0] : TileVoxels + dilation[0] * (kernel[0] - 1))
    , channelLength((kernel[1] * kernel[2] * rowLength + Slack + 15) / 16 * 16)
    , channels(std::max<std::int64_t>(1, PatchBytes / static_cast<std::int64_t>(sizeof(float)) / channelLength))
  {}
  /** With a stride each tap has a separate row, so that neighbours lie side by side. */
  bool         isStrided;
  std::int64_t rowLength;
  std::int64_t channelLength;
  /** Input channels that are held at a time. */
  std::int64_t channels;
};

constexpr int LargestTile = NetworkTiles[std::size(NetworkTiles) - 1];

/** The bytes that a worker needs beside the layers' results. */
std::size_t
WorkerBytes(const NetworkGraph & graph, std::size_t transformBytes)
{
  std::int64_t floats =
    transformBytes > 0 ? static_cast<std::int64_t>(GetTileWorkerBytes(LargestTile) / sizeof(float)) : 0;
  for (const NetworkLayer & layer : graph.GetLayers())
  {
    if (layer.kind != LayerKind::Convolution)
    {
      continue;
    }
    const PatchShape   shape(layer.kernel.data(), layer.stride.data(), layer.dilation.data());
    const std::int64_t inputs = graph.GetLayers()[static_cast<std::size_t>(layer.inputs[0])].channels / layer.groups;
    const std::int64_t outputs = RoundUp(static_cast<std::size_t>(layer.channels / layer.groups), ChannelsPerBlock);
    const std::int64_t taps = layer.kernel[0] * layer.kernel[1] * layer.kernel[2];
    floats = std::max(floats, std::min(shape.channels, inputs) * shape.channelLength + outputs * TileVoxels + 2 * taps);
  }
  return RoundUp(static_cast<std::size_t>(floats) * sizeof(float));
}

class CpuNetwork : public NetworkBackend
{
public:
  CpuNetwork(const KernelCall & call, KeptPlanes planes, NetworkSide side = NetworkSide::Whole)
    : m_Call(call)
    , m_Operation(static_cast<const NetworkOperation &>(*call.operation))
    , m_Rates(GetHostNetworkRates())
    , m_Bytes(GetNetworkBytes(m_Operation, call.output.box, call.image, m_Rates, planes, side))
    , m_WorkerBytes(WorkerBytes(*m_Operation.graph, m_Bytes.transforms))
    , m_WorkerMemory(static_cast<char *>(call.scratch) + m_Bytes.results)
    , m_Spectra(m_WorkerMemory + call.executor->GetConcurrency() * m_WorkerBytes)
  {}

  const NetworkRates &
  GetRates() const override
  {
    return m_Rates;
  }

  const float *
  Upload(const std::string &, const std::vector<float> & values) override
  {
    return values.data();
  }

  void
  Load(const Tensor & tensor, const LayerExtent & shift, const Coordinates & at) override
  {
    const double scale = m_Operation.scale;
    const double offset = m_Operation.shift;
    const auto   beyond = static_cast<float>(std::fma(m_Operation.boundary.constant.ToDouble(), scale, offset));
    DispatchPixelType(m_Call.inputs[0].kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      m_Call.executor->ParallelFor(tensor.channels * tensor.extent[2], [&](std::int64_t task, unsigned int) {
        const std::int64_t c = task / tensor.extent[2];
        const std::int64_t z = tensor.lower[2] + task % tensor.extent[2];
        Box                box{};
        for (int a = 0; a < MaxDimension; ++a)
        {
          box.lower[a] = a < MaxSpatialAxes ? tensor.lower[a] - shift[static_cast<std::size_t>(a)] : at[a];
          box.upper[a] = box.lower[a] + (a < MaxSpatialAxes ? tensor.extent[a] : 1);
        }
        box.lower[2] = z - shift[2];
        box.upper[2] = box.lower[2] + 1;
        LoadTile<Pixel>(
          m_Call.inputs[c],
          m_Call.image,
          box,
          m_Operation.boundary.mode,
          beyond,
          tensor.Row(c, tensor.lower[1], z),
          [=](Pixel value) { return static_cast<float>(std::fma(static_cast<double>(value), scale, offset)); });
      });
    });
  }

  void
  Run(const Step & step, const TileChoice & tile) override
  {
    if (tile.tile > 0)
    {
      this->Transform(step, tile);
    }
    else if (step.kind == LayerKind::MaximumPooling || step.kind == LayerKind::AveragePooling)
    {
      PoolFragments(step, this->GetWorkers());
    }
    else if (step.kind == LayerKind::Convolution)
    {
      this->Convolve(step);
    }
    else if (step.kind == LayerKind::InstanceNormalization)
    {
      this->Normalize(step);
    }
    else if (step.kind == LayerKind::Softmax || step.kind == LayerKind::LogSoftmax)
    {
      this->RunSoftmax(step);
    }
    else
    {
      this->RunByVoxels(step);
    }
  }

  void
  Store(const Tensor & tensor, const Coordinates & at, int channel) override
  {
    const BufferView & output = m_Call.output;
    DispatchPixelType(output.kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      m_Call.executor->ParallelFor(tensor.extent[2], [&](std::int64_t plane, unsigned int) {
        Coordinates index = at;
        index[2] = tensor.lower[2] + plane;
        for (index[1] = output.box.lower[1]; index[1] < output.box.upper[1]; ++index[1])
        {
          index[0] = output.box.lower[0];
          Pixel * to = static_cast<Pixel *>(output.data) + output.Offset(index);
          for (; index[0] < output.box.upper[0]; ++index[0], to += output.stride[0])
          {
            *to = this->ResultAt<Pixel>(tensor, index, channel);
          }
        }
      });
    });
  }

  void
  Copy(const Tensor & from, const Tensor & to) override
  {
    const std::int64_t length = from.FragmentExtent(0) * from.FragmentExtent(1) * from.FragmentExtent(2);
    const std::int64_t rows = from.channels * from.fragments[0] * from.fragments[1] * from.fragments[2];
    m_Call.executor->ParallelFor(rows, [&](std::int64_t row, unsigned int) {
      const float * const source = from.data + row * from.FragmentLength();
      std::copy(source, source + length, to.data + row * to.FragmentLength());
    });
  }

  void
  Clear(const Tensor & tensor) override
  {
    std::fill(tensor.data, tensor.data + tensor.channels * tensor.VoxelsPerChannel(), 0.0f);
  }

  void
  AddWindow(const Tensor & result, const Tensor & sums, const LayerExtent & lower,
            const float * const (&weights)[MaxSpatialAxes]) override
  {
    std::int64_t begin[MaxSpatialAxes];
    std::int64_t end[MaxSpatialAxes];
    for (std::size_t a = 0; a < MaxSpatialAxes; ++a)
    {
      begin[a] = std::max(sums.lower[a], lower[a]);
      end[a] = std::min(sums.lower[a] + sums.extent[a], lower[a] + result.extent[a]);
    }
    m_Call.executor->ParallelFor(end[2] - begin[2], [&](std::int64_t plane, unsigned int) {
      const std::int64_t z = begin[2] + plane;
      for (std::int64_t y = begin[1]; y < end[1]; ++y)
      {
        for (int c = 0; c <= result.channels; ++c)
        {
          float * const sum = sums.Row(c, y, z) - sums.lower[0];
          for (std::int64_t x = begin[0]; x < end[0]; ++x)
          {
            const float weight =
              network::WindowWeight(weights[0][x - lower[0]], weights[1][y - lower[1]], weights[2][z - lower[2]]);
            sum[x] += c == result.channels ? weight : weight * result.At(c, x - lower[0], y - lower[1], z - lower[2]);
          }
        }
      }
    });
  }

  void
  DivideSums(const Tensor & sums) override
  {
    this->ForEachRowOf(sums, sums.channels - 1, [&](std::int64_t c, std::int64_t y, std::int64_t z) {
      float * const       row = sums.Row(c, y, z);
      const float * const weights = sums.Row(sums.channels - 1, y, z);
      for (std::int64_t x = 0; x < sums.extent[0]; ++x)
      {
        row[x] /= weights[x];
      }
    });
  }

  bool
  ShouldStop() const override
  {
    return m_Call.control && m_Call.control->ShouldStop();
  }

  void
  AddProgress(double fraction) override
  {
    if (m_Call.control)
    {
      m_Fraction += fraction;
      const auto reached =
        static_cast<std::int64_t>(std::min(m_Fraction, 1.0) * static_cast<double>(m_Call.output.box.NumberOfVoxels()));
      m_Call.control->AddFinishedVoxels(reached - m_Reported);
      m_Reported = reached;
    }
  }

private:
  NetworkWorkers
  GetWorkers() const
  {
    return { m_Call.executor, m_WorkerMemory, m_WorkerBytes, [this] { return this->ShouldStop(); } };
  }

  void
  Transform(const Step & step, const TileChoice & choice)
  {
    const NetworkWorkers workers = this->GetWorkers();
    const std::size_t    bytes = GetKernelSpectraBytes(step.in[0].channels, step.out.channels, choice.tile);
    const auto           fill = [&](void * memory) {
      MakeKernelSpectra(step, choice.tile, static_cast<float *>(memory), workers);
      if (this->ShouldStop())
      {
        // An incomplete table must not be kept.
        throw std::bad_alloc();
      }
    };
    const std::string key = "network " + m_Operation.graph->GetKey() + ' ' + std::to_string(step.layer) + " spectra " +
                            std::to_string(choice.tile) + ' ' + GetCpuLevel().name;
    const void * kernels = m_Call.tables->GetMade(key, bytes, fill);
    if (!kernels && !this->ShouldStop())
    {
      MakeKernelSpectra(step, choice.tile, reinterpret_cast<float *>(m_Spectra), workers);
      kernels = m_Spectra;
    }
    if (kernels)
    {
      ConvolveTiles(
        step, choice, static_cast<const float *>(kernels), reinterpret_cast<float *>(m_Spectra + bytes), workers);
    }
  }

  template <typename TPixel>
  TPixel
  ResultAt(const Tensor & tensor, const Coordinates & index, int channel) const
  {
    if (m_Operation.result == NetworkResult::ArgMax)
    {
      return static_cast<TPixel>(network::LargestChannelAt(tensor, index[0], index[1], index[2]));
    }
    const float value = tensor.At(channel, index[0], index[1], index[2]);
    if (m_Operation.result == NetworkResult::Threshold)
    {
      return static_cast<TPixel>(static_cast<double>(value) > m_Operation.threshold ? 1 : 0);
    }
    if constexpr (IsFloatingPoint(PixelTypeOf<TPixel>()))
    {
      return static_cast<TPixel>(value);
    }
    else
    {
      return RoundAndClamp<TPixel>(value);
    }
  }

  /** Calls row(channel, y, z) for the rows of the output, in parallel. */
  template <typename TRow>
  void
  ForEachRowOf(const Tensor & out, std::int64_t channels, TRow && row)
  {
    m_Call.executor->ParallelFor(channels * out.extent[2], [&](std::int64_t task, unsigned int) {
      if (this->ShouldStop())
      {
        return;
      }
      const std::int64_t z = out.lower[2] + task % out.extent[2];
      for (std::int64_t y = out.lower[1]; y < out.lower[1] + out.extent[1]; ++y)
      {
        row(task / out.extent[2], y, z);
      }
    });
  }

  void
  RunByVoxels(const Step & step)
  {
    const Tensor & out = step.out;
    network::DispatchVoxelKind(step.kind, [&](auto kind) {
      this->ForEachRowOf(out, out.channels, [&](std::int64_t c, std::int64_t y, std::int64_t z) {
        float * const row = out.Row(c, y, z);
        for (std::int64_t x = 0; x < out.extent[0]; ++x)
        {
          row[x] = network::Activate(step, c, network::ValueAt<decltype(kind)::value>(step, c, out.lower[0] + x, y, z));
        }
      });
    });
  }

  void
  Normalize(const Step & step)
  {
    const Tensor &     in = step.in[0];
    const Tensor &     out = step.out;
    const std::int64_t n = in.VoxelsPerChannel();
    m_Call.executor->ParallelFor(out.channels, [&](std::int64_t c, unsigned int) {
      const float * const values = in.data + c * n;
      const auto          sum = [&](auto && term) {
        double parts[network::StatisticParts]{};
        for (std::int64_t i = 0; i < n; ++i)
        {
          parts[i % network::StatisticParts] += term(static_cast<double>(values[i]));
        }
        for (int half = network::StatisticParts / 2; half > 0; half /= 2)
        {
          for (int i = 0; i < half; ++i)
          {
            parts[i] += parts[i + half];
          }
        }
        return parts[0];
      };
      const double mean = sum([](double value) { return value; }) / static_cast<double>(n);
      const double variance =
        sum([&](double value) { return (value - mean) * (value - mean); }) / static_cast<double>(n);
      const double factor = 1.0 / std::sqrt(variance + static_cast<double>(step.epsilon));
      for (std::int64_t z = out.lower[2]; z < out.lower[2] + out.extent[2]; ++z)
      {
        for (std::int64_t y = out.lower[1]; y < out.lower[1] + out.extent[1]; ++y)
        {
          for (std::int64_t x = out.lower[0]; x < out.lower[0] + out.extent[0]; ++x)
          {
            out.At(c, x, y, z) = network::NormalizedAt(step, c, in.At(c, x, y, z), mean, factor);
          }
        }
      }
    });
  }

  void
  RunSoftmax(const Step & step)
  {
    const Tensor & out = step.out;
    this->ForEachRowOf(out, 1, [&](std::int64_t, std::int64_t y, std::int64_t z) {
      for (std::int64_t x = out.lower[0]; x < out.lower[0] + out.extent[0]; ++x)
      {
        network::SoftmaxAt(step, x, y, z);
      }
    });
  }

  /** Rows of the output, all channels of a group at a time: the input's rows that they need are copied to where they
   * fit the cache, with zeros beyond the edge, so that the sums know no edge. */
  void
  Convolve(const Step & step)
  {
    const Tensor &     out = step.out;
    const std::int64_t tiles = (out.extent[0] + TileVoxels - 1) / TileVoxels;
    m_Call.executor->ParallelFor(out.extent[1] * out.extent[2] * tiles, [&](std::int64_t task, unsigned int worker) {
      if (this->ShouldStop())
      {
        return;
      }
      const std::int64_t x = out.lower[0] + task % tiles * TileVoxels;
      const std::int64_t y = out.lower[1] + task / tiles % out.extent[1];
      const std::int64_t z = out.lower[2] + task / tiles / out.extent[1];
      const std::int64_t n = std::min(TileVoxels, out.lower[0] + out.extent[0] - x);
      for (int group = 0; group < step.groups; ++group)
      {
        this->ConvolveTile(step, group, x, y, z, n, reinterpret_cast<float *>(m_WorkerMemory + worker * m_WorkerBytes));
      }
    });
  }

  void
  ConvolveTile(const Step & step, int group, std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t n,
               float * memory) const
  {
    const PatchShape   shape(step.kernel, step.stride, step.dilation);
    const std::int64_t inputs = step.in[0].channels / step.groups;
    const std::int64_t outputs = step.out.channels / step.groups;
    const std::int64_t blocks = (outputs + ChannelsPerBlock - 1) / ChannelsPerBlock;
    const std::int64_t taps = step.kernel[0] * step.kernel[1] * step.kernel[2];
    float * const      sums = memory;
    auto * const       tapOffsets = reinterpret_cast<std::int64_t *>(sums + blocks * ChannelsPerBlock * TileVoxels);
    float * const      patch = reinterpret_cast<float *>(tapOffsets + taps);
    for (std::int64_t t = 0; t < taps; ++t)
    {
      const std::int64_t tap = t % step.kernel[0];
      tapOffsets[t] = t / step.kernel[0] * shape.rowLength + tap * (shape.isStrided ? TileVoxels : step.dilation[0]);
    }
    for (std::int64_t c = 0; c < blocks * ChannelsPerBlock; ++c)
    {
      const float first = step.bias && c < outputs ? step.bias[group * outputs + c] : 0.0f;
      std::fill(sums + c * TileVoxels, sums + (c + 1) * TileVoxels, first);
    }
    const auto add = GetAddToNetworkTile();
    for (std::int64_t from = 0; from < inputs; from += shape.channels)
    {
      const std::int64_t channels = std::min(shape.channels, inputs - from);
      for (std::int64_t c = 0; c < channels; ++c)
      {
        FillPatch(step, shape, group * inputs + from + c, x, y, z, n, patch + c * shape.channelLength);
      }
      for (std::int64_t block = 0; block < blocks; ++block)
      {
        add(sums + block * ChannelsPerBlock * TileVoxels,
            TileVoxels,
            patch,
            channels,
            shape.channelLength,
            tapOffsets,
            taps,
            step.packed + ((group * blocks + block) * inputs + from) * taps * ChannelsPerBlock,
            n);
      }
    }
    for (std::int64_t c = 0; c < outputs; ++c)
    {
      const std::int64_t channel = group * outputs + c;
      float * const      row = step.out.Row(channel, y, z) + (x - step.out.lower[0]);
      const float *      values = sums + c * TileVoxels;
      if (step.activation == ActivationKind::Relu)
      {
        for (std::int64_t i = 0; i < n; ++i)
        {
          row[i] = values[i] < 0.0f ? 0.0f : values[i];
        }
      }
      else
      {
        for (std::int64_t i = 0; i < n; ++i)
        {
          row[i] = network::Activate(step, channel, values[i]);
        }
      }
    }
  }

  /** The rows of one input channel that a tile needs. */
  static void
  FillPatch(const Step & step, const PatchShape & shape, std::int64_t channel, std::int64_t x, std::int64_t y,
            std::int64_t z, std::int64_t n, float * patch)
  {
    const Tensor & in = step.in[0];
    float *        to = patch;
    // The last vector's voxels beyond the tile are computed and not used; they must not be signals.
    const std::int64_t length =
      shape.isStrided ? TileVoxels : std::min(shape.rowLength, n + Slack + shape.rowLength - TileVoxels);
    for (std::int64_t kz = 0; kz < step.kernel[2]; ++kz)
    {
      const std::int64_t iz = z * step.stride[2] - step.padLower[2] + kz * step.dilation[2];
      for (std::int64_t ky = 0; ky < step.kernel[1]; ++ky, to += shape.rowLength)
      {
        const std::int64_t iy = y * step.stride[1] - step.padLower[1] + ky * step.dilation[1];
        if (!in.IsInside(1, iy) || !in.IsInside(2, iz))
        {
          std::fill(to, to + shape.rowLength, 0.0f);
          continue;
        }
        // From an index of the whole result to this row's part of it.
        const float * const row = in.Row(channel, iy, iz) - in.lower[0];
        const std::int64_t  first = x * step.stride[0] - step.padLower[0];
        if (!shape.isStrided)
        {
          CopyOrZero(row, in, first, length, to);
          continue;
        }
        for (std::int64_t kx = 0; kx < step.kernel[0]; ++kx)
        {
          for (std::int64_t i = 0; i < length; ++i)
          {
            const std::int64_t ix = first + i * step.stride[0] + kx * step.dilation[0];
            to[kx * TileVoxels + i] = ix >= in.lower[0] && ix < in.lower[0] + in.extent[0] ? row[ix] : 0.0f;
          }
        }
      }
    }
    std::fill(to, patch + shape.channelLength, 0.0f);
  }

  static void
  CopyOrZero(const float * row, const Tensor & in, std::int64_t first, std::int64_t length, float * to)
  {
    const std::int64_t from = std::min(std::max(in.lower[0] - first, std::int64_t{ 0 }), length);
    const std::int64_t until = std::max(std::min(in.lower[0] + in.extent[0] - first, length), from);
    std::fill(to, to + from, 0.0f);
    if (until > from)
    {
      std::memcpy(to + from, row + first + from, static_cast<std::size_t>(until - from) * sizeof(float));
    }
    std::fill(to + until, to + length, 0.0f);
  }

  const KernelCall &       m_Call;
  const NetworkOperation & m_Operation;
  const NetworkRates       m_Rates;
  const NetworkBytes       m_Bytes;
  const std::size_t        m_WorkerBytes;
  char * const             m_WorkerMemory;
  char * const             m_Spectra;
  double                   m_Fraction{ 0 };
  std::int64_t             m_Reported{ 0 };
};

void
RunHostNetwork(const KernelCall & call)
{
  CpuNetwork backend(call, GetKeptPlanes(call));
  RunNetwork(call, backend);
}

void
RunHostHead(const KernelCall & call)
{
  CpuNetwork backend(call, KeptPlanes::InScratch, NetworkSide::Head);
  (*static_cast<const NetworkTail *>(call.sideIn))({ &backend, &call });
}

void
RunHostPiped(const KernelCall & call)
{
  RunPiped(call, [&call](const NetworkHead & head) {
    CpuNetwork backend(call, KeptPlanes::InScratch, NetworkSide::Tail);
    RunNetwork(call, backend, &head);
  });
}

template <KeptPlanes VPlanes, NetworkSide VSide = NetworkSide::Whole>
std::size_t
HostNetworkBytes(const Operation & operation, const ChunkShape & shape)
{
  const auto &       network = static_cast<const NetworkOperation &>(operation);
  const NetworkBytes bytes =
    GetNetworkBytes(network, shape.outputBox, shape.image, GetHostNetworkRates(), VPlanes, VSide);
  return bytes.results + static_cast<std::size_t>(shape.concurrency) * WorkerBytes(*network.graph, bytes.transforms) +
         (bytes.transforms > 0 ? bytes.transforms + GetTileSlackBytes(LargestTile) : 0);
}

template <KeptPlanes VPlanes, NetworkSide VSide = NetworkSide::Whole>
double
HostNetworkCost(const Operation & operation, const ChunkShape & shape)
{
  return GetNetworkCost(static_cast<const NetworkOperation &>(operation),
                        shape.outputBox,
                        shape.image,
                        GetHostNetworkRates(),
                        VPlanes,
                        VSide);
}

std::size_t
HostExchangeBytes(const Operation & operation, const ChunkShape & shape)
{
  const auto & network = static_cast<const NetworkOperation &>(operation);
  return GetNetworkBytes(
           network, shape.outputBox, shape.image, GetHostNetworkRates(), KeptPlanes::InScratch, NetworkSide::Tail)
    .spilled;
}

std::size_t
HostSpilledBytes(const Operation & operation, const ChunkShape & shape)
{
  const auto & network = static_cast<const NetworkOperation &>(operation);
  return GetNetworkBytes(network, shape.outputBox, shape.image, GetHostNetworkRates(), KeptPlanes::Spilled).spilled;
}

double
HostPipedSlabs(const Operation & operation, const ChunkShape & shape)
{
  return CountPipedSlabs(
    static_cast<const NetworkOperation &>(operation), shape.outputBox, shape.image, GetHostNetworkRates());
}

double
HostSpilledWeight(const Operation & operation)
{
  return GetWeightOfSpilling(static_cast<const NetworkOperation &>(operation));
}

bool
HostSupportsSpilling(const Operation & operation)
{
  return MaySpill(static_cast<const NetworkOperation &>(operation));
}

} // namespace

void
RegisterHostNetwork(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.compute = { RunHostNetwork, HostNetworkBytes<KeptPlanes::InScratch>, HostNetworkCost<KeptPlanes::InScratch> };
  kernels.head = { RunHostHead,
                   HostNetworkBytes<KeptPlanes::InScratch, NetworkSide::Head>,
                   HostNetworkCost<KeptPlanes::InScratch, NetworkSide::Head> };
  // All memory is the host's: these are for devices that run the host's kernels.
  kernels.spilled = { RunHostNetwork, HostNetworkBytes<KeptPlanes::Spilled>, HostNetworkCost<KeptPlanes::Spilled> };
  kernels.supportsSpilling = HostSupportsSpilling;
  kernels.spilledBytes = HostSpilledBytes;
  kernels.spilledWeight = HostSpilledWeight;
  kernels.piped = { RunHostPiped,
                    HostNetworkBytes<KeptPlanes::InScratch, NetworkSide::Tail>,
                    HostNetworkCost<KeptPlanes::InScratch, NetworkSide::Tail> };
  kernels.exchangedBytes = HostExchangeBytes;
  kernels.pipedParts = HostPipedSlabs;
  registry.Register("network", kernels);
}

} // namespace chunkwise
