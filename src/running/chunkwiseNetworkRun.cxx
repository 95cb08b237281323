/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkRun.h"

#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

NetworkBackend::~NetworkBackend() = default;

namespace
{

using network::Step;
using network::Tensor;

LayerExtent
SpatialPart(const Coordinates & extent)
{
  return { { extent[0], extent[1], extent[2] } };
}

double
Product(const LayerExtent & extent)
{
  return static_cast<double>(extent[0]) * static_cast<double>(extent[1]) * static_cast<double>(extent[2]);
}

/** More than any memory: sizes beyond it are cut to it, so that sums of them stay numbers and no budget has room. */
constexpr std::size_t TooManyBytes = std::size_t{ 1 } << 56;

/** Bytes of a tensor. A network may ask for more than 64 bits can count. */
std::size_t
BytesOf(LayerExtent extent, const LayerExtent & fragments, int channels)
{
  for (std::size_t a = 0; a < MaxSpatialAxes; ++a)
  {
    extent[a] = (extent[a] + fragments[a] - 1) / fragments[a] * fragments[a];
  }
  const double bytes = Product(extent) * channels * sizeof(float);
  return bytes > static_cast<double>(TooManyBytes)
           ? TooManyBytes
           : RoundUp(static_cast<std::size_t>(extent[0] * extent[1] * extent[2] * channels) * sizeof(float));
}

/** The largest parts of all layers that an output of this extent needs, wherever it lies. */
std::vector<LayerExtent>
LargestParts(const NetworkGraph & graph, const LayerExtent & output, const std::vector<LayerExtent> * whole)
{
  std::vector<LayerExtent> parts(graph.GetLayers().size(), LayerExtent{ { 0, 0, 0 } });
  const LayerExtent &      stride = graph.GetTotalStride();
  for (std::int64_t at = 0; at < *std::max_element(stride.begin(), stride.end()); ++at)
  {
    const NetworkGraph::Range range{ { { at, at, at } }, { { at + output[0], at + output[1], at + output[2] } } };
    const auto                ranges = graph.GetRanges(range, nullptr);
    for (std::size_t i = 0; i < parts.size(); ++i)
    {
      for (int a = 0; a < MaxSpatialAxes; ++a)
      {
        const std::int64_t extent = ranges[i].upper[a] - ranges[i].lower[a];
        parts[i][a] = std::max(parts[i][a], whole ? std::min(extent, (*whole)[i][a]) : extent);
      }
    }
  }
  if (whole && graph.FindNormalization())
  {
    return *whole;
  }
  return parts;
}

/** A window, as the image of its own that it is. */
Box
WindowBox(const NetworkOperation & operation)
{
  return Box::FromExtent({ { operation.patch[0], operation.patch[1], operation.patch[2], 1, 1 } });
}

/** How many windows meet a part of an image of this extent, at most. */
double
NumberOfWindows(const NetworkOperation & operation, const LayerExtent & part, const Coordinates & image)
{
  double number = 1;
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    const auto starts = operation.GetPatchStarts(a, image[a]);
    const auto window = operation.patch[static_cast<std::size_t>(a)];
    // Of a part at the lower end, or at the upper, or where most meet.
    std::size_t most = 0;
    std::size_t first = 0;
    for (std::size_t last = 0; last < starts.size(); ++last)
    {
      for (; starts[first] + window + part[static_cast<std::size_t>(a)] <= starts[last] + 1; ++first)
      {
      }
      most = std::max(most, last - first + 1);
    }
    number *= static_cast<double>(most);
  }
  return number;
}

/** Where the results of layers lie. Layers share memory where no two are needed at a time; which ones depends on no
 * chunk, so that the memory does not shrink when the chunk grows. */
class Layout
{
public:
  Layout(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates)
  {
    if (operation.mode == NetworkMode::Patches)
    {
      const Box window = WindowBox(operation);
      this->Place(operation, window, window, rates);
      sums = numberOfBytes;
      numberOfBytes += BytesOf(
        SpatialPart(output.Extents()), LayerExtent{ { 1, 1, 1 } }, operation.graph->GetNumberOfOutputChannels() + 1);
      numberOfBytes = std::min(numberOfBytes, TooManyBytes);
      return;
    }
    this->Place(operation, output, image, rates);
  }

  std::vector<std::size_t> offsets; ///< of each layer
  std::size_t              sums{ 0 };
  std::size_t              numberOfBytes{ 0 };
  std::size_t              transformBytes{ 0 };

private:
  void
  Place(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates)
  {
    const NetworkGraph & graph = *operation.graph;
    const auto &         layers = graph.GetLayers();
    const auto           whole = graph.GetExtents(graph.GetInputExtent(SpatialPart(image.Extents())));
    const auto           parts = LargestParts(graph, SpatialPart(output.Extents()), &whole);
    const auto           plan = PlanNetwork(operation, parts, rates, true);
    const auto           typical = LargestParts(graph, LayerExtent{ { 64, 64, 64 } }, nullptr);

    std::vector<std::size_t> lastUse(layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i)
    {
      lastUse[i] = i;
      for (const int input : layers[i].inputs)
      {
        lastUse[static_cast<std::size_t>(input)] = i;
      }
    }
    lastUse[static_cast<std::size_t>(graph.GetOutput())] = layers.size();

    std::vector<std::size_t> slots(layers.size());
    std::vector<std::size_t> busyUntil;
    std::vector<double>      typicalOf;
    std::vector<std::size_t> bytes;
    for (std::size_t i = 0; i < layers.size(); ++i)
    {
      const double size = layers[i].channels * Product(typical[i]);
      std::size_t  slot = busyUntil.size();
      double       leastWaste = 0;
      for (std::size_t s = 0; s < busyUntil.size(); ++s)
      {
        const double waste = std::max(size, typicalOf[s]) - std::min(size, typicalOf[s]);
        if (busyUntil[s] < i && (slot == busyUntil.size() || waste < leastWaste))
        {
          slot = s;
          leastWaste = waste;
        }
      }
      if (slot == busyUntil.size())
      {
        busyUntil.push_back(0);
        typicalOf.push_back(0);
        bytes.push_back(0);
      }
      busyUntil[slot] = lastUse[i];
      typicalOf[slot] = std::max(typicalOf[slot], size);
      bytes[slot] = std::max(bytes[slot], BytesOf(parts[i], plan[i].fragments, layers[i].channels));
      transformBytes = std::max(transformBytes, plan[i].transformBytes);
      slots[i] = slot;
    }
    std::vector<std::size_t> begins;
    for (const std::size_t size : bytes)
    {
      begins.push_back(numberOfBytes);
      numberOfBytes = std::min(numberOfBytes + size, TooManyBytes);
    }
    for (const std::size_t slot : slots)
    {
      offsets.push_back(begins[slot]);
    }
  }
};

double
MultiplyAddsOf(const NetworkGraph & graph, const NetworkLayer & layer, const LayerExtent & part)
{
  const double voxels = Product(part) * layer.channels;
  const double taps = Product(layer.kernel);
  switch (layer.kind)
  {
    case LayerKind::Convolution:
    case LayerKind::TransposedConvolution:
    {
      const double inputs =
        static_cast<double>(graph.GetLayers()[static_cast<std::size_t>(layer.inputs[0])].channels / layer.groups);
      return voxels * inputs * taps / (layer.kind == LayerKind::Convolution ? 1.0 : Product(layer.stride));
    }
    case LayerKind::MaximumPooling:
    case LayerKind::AveragePooling:
      return voxels * taps;
    default:
      // What goes once through memory takes as long as some arithmetic.
      return voxels * 4;
  }
}

/** The work of a layer, but for the values that it needs beside its inputs. */
Step
MakeStep(const NetworkLayer & layer, const std::vector<Tensor> & tensors, std::size_t i)
{
  Step step{};
  step.kind = layer.kind;
  step.layer = static_cast<int>(i);
  step.out = tensors[i];
  step.in[0] = tensors[static_cast<std::size_t>(layer.inputs.front())];
  step.in[1] = tensors[static_cast<std::size_t>(layer.inputs.back())];
  step.groups = layer.groups;
  step.firstChannel = layer.kind == LayerKind::ChannelSlice ? layer.firstChannel : 0;
  step.countsPadding = layer.countsPadding;
  step.activation = layer.activation.kind;
  step.alpha = layer.activation.alpha;
  step.beta = layer.activation.beta;
  step.epsilon = layer.epsilon;
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    step.kernel[a] = layer.kernel[a];
    step.stride[a] = layer.stride[a];
    step.dilation[a] = layer.dilation[a];
    step.padLower[a] = layer.padLower[a];
  }
  return step;
}

/** A layer as steps of the backend: one, or of a concatenation a copy for each input. */
std::vector<Step>
MakeSteps(NetworkBackend & backend, const NetworkGraph & graph, const std::vector<Tensor> & tensors, std::size_t i)
{
  const NetworkLayer & layer = graph.GetLayers()[i];
  const float *        values[NetworkLayerValues]{};
  const auto           constants = GetNetworkValues(layer);
  for (std::size_t k = 0; k < constants.size(); ++k)
  {
    if (constants[k])
    {
      values[k] =
        backend.Upload("network " + graph.GetKey() + ' ' + std::to_string(i) + ' ' + std::to_string(k), *constants[k]);
    }
  }
  Step step = MakeStep(layer, tensors, i);
  (layer.kind == LayerKind::Convolution ? step.packed : step.weights) = values[0];
  step.bias = values[1];
  step.slopes = values[2];
  if (layer.kind != LayerKind::Concatenation)
  {
    return { step };
  }
  std::vector<Step> steps;
  step.kind = LayerKind::Pointwise;
  for (const int input : layer.inputs)
  {
    step.in[0] = tensors[static_cast<std::size_t>(input)];
    step.out.channels = step.in[0].channels;
    steps.push_back(step);
    step.out.data += step.out.channels * step.out.VoxelsPerChannel();
    step.slopes = step.slopes ? step.slopes + step.out.channels : nullptr;
  }
  return steps;
}

} // namespace

std::array<std::shared_ptr<const std::vector<float>>, NetworkLayerValues>
GetNetworkValues(const NetworkLayer & layer)
{
  return { layer.kind == LayerKind::Convolution ? layer.packedWeights : layer.weights,
           layer.bias,
           layer.activation.slopes };
}

NetworkBytes
GetNetworkBytes(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates)
{
  const Layout layout(operation, output, image, rates);
  return { layout.numberOfBytes, layout.transformBytes };
}

double
NetworkOperation::GetMultiplyAdds(const LayerExtent & extent, const Coordinates & image) const
{
  const bool   isDense = mode == NetworkMode::Dense;
  const auto   whole = graph->GetExtents(isDense ? graph->GetInputExtent(SpatialPart(image)) : patch);
  const auto   parts = LargestParts(*graph, isDense ? extent : patch, &whole);
  const double windows = isDense ? 1.0 : NumberOfWindows(*this, extent, image);
  double       sum = 0;
  for (std::size_t i = 1; i < parts.size(); ++i)
  {
    sum += MultiplyAddsOf(*graph, graph->GetLayers()[i], parts[i]);
  }
  return windows * sum;
}

namespace
{

double
CostOfLayer(const NetworkGraph & graph, std::size_t i, const LayerExtent & part, const NetworkLayerPlan & plan,
            const NetworkRates & rates)
{
  const double direct = MultiplyAddsOf(graph, graph.GetLayers()[i], part) / rates.multiplyAdds;
  return plan.transform.tile > 0 ? plan.transform.cost : direct;
}

/** How often the network is run for an output: once for each place along the axes that have neither space nor channels.
 */
double
NumberOfImages(const NetworkOperation & operation, const Box & output)
{
  double number = 1;
  for (int a = MaxSpatialAxes; a < MaxDimension; ++a)
  {
    const bool hasChannels = operation.result == NetworkResult::AllChannels && a == operation.channelAxis;
    number *= hasChannels ? 1.0 : static_cast<double>(output.Extent(a));
  }
  return number;
}

} // namespace

double
GetNetworkCost(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates)
{
  if (operation.mode == NetworkMode::Patches)
  {
    NetworkOperation window = operation;
    window.mode = NetworkMode::Dense;
    window.result = NetworkResult::Channel;
    return GetNetworkCost(window, WindowBox(operation), WindowBox(operation), rates) *
           NumberOfWindows(operation, SpatialPart(output.Extents()), image.Extents()) *
           NumberOfImages(operation, output);
  }
  const NetworkGraph & graph = *operation.graph;
  const auto           whole = graph.GetExtents(graph.GetInputExtent(SpatialPart(image.Extents())));
  const auto           parts = LargestParts(graph, SpatialPart(output.Extents()), &whole);
  const auto           plan = PlanNetwork(operation, parts, rates, false);
  double               sum = 0;
  for (std::size_t i = 1; i < parts.size(); ++i)
  {
    sum += CostOfLayer(graph, i, parts[i], plan[i], rates);
  }
  return sum * NumberOfImages(operation, output);
}

std::vector<NetworkLayerDescription>
DescribeNetworkPlan(const NetworkOperation & operation, const Box & output, const Box & image, bool onDevices)
{
  const NetworkRates   rates = onDevices ? GetDeviceNetworkRates(operation.precision) : GetHostNetworkRates();
  const NetworkGraph & graph = *operation.graph;
  const bool           isDense = operation.mode == NetworkMode::Dense;
  const auto whole = graph.GetExtents(isDense ? graph.GetInputExtent(SpatialPart(image.Extents())) : operation.patch);
  const auto parts = LargestParts(graph, isDense ? SpatialPart(output.Extents()) : operation.patch, &whole);
  const auto plan = PlanNetwork(operation, parts, rates, false);

  std::vector<NetworkLayerDescription> rows;
  double                               sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i)
  {
    const NetworkLayer & layer = graph.GetLayers()[i];
    const double         cost = i == 0 ? 0.0 : CostOfLayer(graph, i, parts[i], plan[i], rates);
    sum += cost;
    rows.push_back({ layer.name,
                     layer.kind,
                     layer.channels,
                     parts[i],
                     layer.kernel,
                     layer.stride,
                     layer.dilation,
                     plan[i].transform.tile,
                     BytesOf(parts[i], plan[i].fragments, layer.channels),
                     plan[i].transform.tile > 0 ? plan[i].transformBytes : 0,
                     cost });
  }
  for (NetworkLayerDescription & row : rows)
  {
    row.share = sum > 0 ? row.share / sum : 0.0;
  }
  return rows;
}

namespace
{

/** Along an axis of a window, in float32 as MONAI has them. */
std::vector<float>
MakeWindowWeights(std::int64_t extent, PatchWeighting weighting)
{
  std::vector<float> weights(static_cast<std::size_t>(extent), 1.0f);
  const double       sigma = 0.125 * static_cast<double>(extent);
  for (std::int64_t i = 0; weighting == PatchWeighting::Gaussian && i < extent; ++i)
  {
    const double x = static_cast<double>(i) - 0.5 * static_cast<double>(extent - 1);
    weights[static_cast<std::size_t>(i)] = static_cast<float>(std::exp(x * x / (-2 * sigma * sigma)));
  }
  return weights;
}

} // namespace

void
RunNetwork(const KernelCall & call, NetworkBackend & backend)
{
  const auto &         operation = static_cast<const NetworkOperation &>(*call.operation);
  const NetworkGraph & graph = *operation.graph;
  const auto &         layers = graph.GetLayers();
  const Box &          output = call.output.box;
  const bool           isDense = operation.mode == NetworkMode::Dense;
  const Box            part = isDense ? output : WindowBox(operation);
  const LayerExtent    input = isDense ? graph.GetInputExtent(SpatialPart(call.image.Extents())) : operation.patch;
  const auto           whole = graph.GetExtents(input);
  const auto           ranges = graph.GetRanges({ SpatialPart(part.lower), SpatialPart(part.upper) }, &whole);
  const NetworkRates & rates = backend.GetRates();
  const Layout         layout(operation, output, call.image, rates);

  std::vector<LayerExtent> parts(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i)
  {
    for (std::size_t a = 0; a < MaxSpatialAxes; ++a)
    {
      parts[i][a] = ranges[i].upper[a] - ranges[i].lower[a];
    }
  }
  const auto          plan = PlanNetwork(operation, parts, rates, false);
  std::vector<Tensor> tensors(layers.size());
  std::vector<double> work(layers.size());
  double              allWork = 0;
  for (std::size_t i = 0; i < layers.size(); ++i)
  {
    Tensor & tensor = tensors[i];
    tensor.data = reinterpret_cast<float *>(static_cast<char *>(call.scratch) + layout.offsets[i]);
    tensor.channels = layers[i].channels;
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      tensor.lower[a] = ranges[i].lower[a];
      tensor.extent[a] = parts[i][a];
      tensor.whole[a] = whole[i][a];
      tensor.fragments[a] = plan[i].fragments[a];
    }
    work[i] = i == 0 ? 0.0 : MultiplyAddsOf(graph, layers[i], parts[i]);
    allWork += work[i];
  }
  std::vector<float> axisWeights[MaxSpatialAxes];
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    axisWeights[a] = MakeWindowWeights(operation.patch[a], operation.weighting);
  }
  // What lies in the padding alone needs nothing, and has no voxel.
  const auto                     isNeeded = [&](std::size_t i) { return tensors[i].VoxelsPerChannel() > 0; };
  std::vector<std::vector<Step>> steps(layers.size());
  for (std::size_t i = 1; i < layers.size(); ++i)
  {
    if (isNeeded(i))
    {
      steps[i] = MakeSteps(backend, graph, tensors, i);
    }
  }

  const auto runLayers = [&](const Coordinates & where, const LayerExtent & shift, double share) {
    if (isNeeded(0))
    {
      backend.Load(tensors[0], shift, where);
    }
    for (std::size_t i = 1; i < layers.size() && !backend.ShouldStop(); ++i)
    {
      for (const Step & step : steps[i])
      {
        backend.Run(step, plan[i].transform);
      }
      backend.AddProgress(work[i] / allWork * share);
    }
  };

  // Of windows: the sums of all channels, and of their weights.
  Tensor sums{};
  sums.data = reinterpret_cast<float *>(static_cast<char *>(call.scratch) + layout.sums);
  sums.channels = graph.GetNumberOfOutputChannels() + 1;
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    sums.lower[a] = output.lower[a];
    sums.extent[a] = output.Extent(a);
    sums.whole[a] = call.image.Extent(a);
    sums.fragments[a] = 1;
  }
  Tensor means = sums;
  --means.channels;
  const auto runWindows = [&](const Coordinates & where, double images) {
    backend.Clear(sums);
    std::vector<std::int64_t> starts[MaxSpatialAxes];
    const float *             weights[MaxSpatialAxes];
    double                    windows = 1;
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      for (const std::int64_t start : operation.GetPatchStarts(a, call.image.Extent(a)))
      {
        if (start < output.upper[a] && start + operation.patch[a] > output.lower[a])
        {
          starts[a].push_back(start);
        }
      }
      windows *= static_cast<double>(starts[a].size());
      weights[a] = backend.Upload("network window " + std::to_string(static_cast<int>(operation.weighting)) + ' ' +
                                    std::to_string(operation.patch[a]),
                                  axisWeights[a]);
    }
    for (const std::int64_t z : starts[2])
    {
      for (const std::int64_t y : starts[1])
      {
        for (const std::int64_t x : starts[0])
        {
          runLayers(where, { { -x, -y, -z } }, 1.0 / (images * windows));
          if (backend.ShouldStop())
          {
            return;
          }
          backend.AddWindow(tensors[static_cast<std::size_t>(graph.GetOutput())], sums, { { x, y, z } }, weights);
        }
      }
    }
    backend.DivideSums(sums);
  };

  const double images = NumberOfImages(operation, output);
  // One run gives all channels.
  const int   channelAxis = operation.result == NetworkResult::AllChannels ? operation.channelAxis : -1;
  Coordinates end = output.upper;
  if (channelAxis >= 0)
  {
    end[channelAxis] = output.lower[channelAxis] + 1;
  }
  Coordinates at = output.lower;
  for (at[4] = output.lower[4]; at[4] < end[4]; ++at[4])
  {
    for (at[3] = output.lower[3]; at[3] < end[3]; ++at[3])
    {
      if (isDense)
      {
        runLayers(at, graph.GetLowerMargin(), 1.0 / images);
      }
      else
      {
        runWindows(at, images);
      }
      if (backend.ShouldStop())
      {
        return;
      }
      const Tensor & result = isDense ? tensors[static_cast<std::size_t>(graph.GetOutput())] : means;
      if (channelAxis < 0)
      {
        backend.Store(result, at, operation.channel);
        continue;
      }
      Coordinates place = at;
      for (; place[channelAxis] < output.upper[channelAxis]; ++place[channelAxis])
      {
        backend.Store(result, place, static_cast<int>(place[channelAxis]));
      }
    }
  }
}

} // namespace chunkwise
