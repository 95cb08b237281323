/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkRun.h"

#include "chunkwiseNetworkMarch.h"
#include "chunkwisePlanner.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>

namespace chunkwise
{

NetworkBackend::~NetworkBackend() = default;

int
NetworkBackend::StartCopy(const network::Tensor & from, const network::Tensor & to)
{
  this->Copy(from, to);
  return 0;
}

void
NetworkBackend::AwaitCopy(int)
{}

void
NetworkBackend::FinishCopy(int)
{}

namespace
{

using network::Step;
using network::Tensor;

LayerExtent
SpatialPart(const Coordinates & extent)
{
  return { { extent[0], extent[1], extent[2] } };
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
    // The number for a part at the lower end, or at the upper, or where most meet.
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

double
CostOfLayer(const NetworkGraph & graph, std::size_t i, const LayerExtent & part, const TileChoice & tile,
            const NetworkRates & rates)
{
  const NetworkLayer & layer = graph.GetLayers()[i];
  if (layer.kind == LayerKind::Convolution)
  {
    const int inputs = graph.GetLayers()[static_cast<std::size_t>(layer.inputs[0])].channels;
    return tile.tile > 0 ? tile.cost : GetDirectCost(layer, inputs, part, rates);
  }
  const bool   isPooling = layer.kind == LayerKind::MaximumPooling || layer.kind == LayerKind::AveragePooling;
  const double rate = isPooling ? rates.poolingTaps : rates.multiplyAdds;
  return MultiplyAddsOf(graph, layer, part) / rate + GetTrafficCost(graph, layer, part);
}

/** Numbers of planes of which slabs are a multiple: tensors then begin where their fragments do. */
std::int64_t
UnitOfSlabs(const NetworkGraph & graph)
{
  std::int64_t unit = graph.GetTotalStride()[2];
  for (const NetworkLayer & layer : graph.GetLayers())
  {
    unit = std::lcm(unit, layer.dilation[2]);
  }
  return unit;
}

/** Thicker slabs than this take memory that is better spent on wider chunks. */
constexpr std::int64_t ThickestSlab = 256;

/** Memory for spectra beside slabs of so many planes: slabs are thin where there is little of either. */
constexpr double SpectraBytesOfPlane = 20 * (1 << 20);

/** What a plane of the output costs in the middle of a wide chunk that is computed in slabs. */
double
CostOfPlane(const NetworkOperation & operation, std::int64_t slab, const NetworkRates & rates)
{
  const NetworkGraph & graph = *operation.graph;
  const auto           bounds = FindSlabBounds(graph, slab);
  auto                 parts = LargestParts(graph, LayerExtent{ { 512, 512, 1 } }, nullptr);
  double               cost = 0;
  for (std::size_t i = 0; i < parts.size(); ++i)
  {
    parts[i][2] = bounds[i].kept;
    cost += 16.0 * graph.GetLayers()[i].channels * Product(parts[i]);
    parts[i][2] = bounds[i].computed;
  }
  NetworkRates limited = rates;
  limited.mostBytes = SpectraBytesOfPlane * static_cast<double>(slab);
  limited.spectraMaking = 0;
  const auto plan = PlanNetwork(operation, parts, limited, false);
  for (std::size_t i = 1; i < parts.size(); ++i)
  {
    cost += CostOfLayer(graph, i, parts[i], plan[i].transform, limited);
  }
  return cost / static_cast<double>(slab);
}

/** Slabs of which each takes less time than all thinner ones, mostly because tiles fit it. */
std::vector<std::int64_t>
FindGoodSlabs(const NetworkOperation & operation, const NetworkRates & rates)
{
  const std::int64_t        unit = UnitOfSlabs(*operation.graph);
  std::vector<std::int64_t> slabs;
  double                    least = 0;
  for (std::int64_t slab = (16 + unit - 1) / unit * unit; slab <= ThickestSlab; slab += unit)
  {
    const double cost = CostOfPlane(operation, slab, rates);
    if (slabs.empty() || cost < 0.97 * least)
    {
      slabs.push_back(slab);
      least = cost;
    }
  }
  return slabs;
}

/** What a function of a key found, remembered: a planner asks with every shape that it tries. */
template <typename TValue, typename TFind>
TValue
Remember(const std::string & key, TFind && find)
{
  static std::mutex                    mutex;
  static std::map<std::string, TValue> known;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto                        found = known.find(key);
    if (found != known.end())
    {
      return found->second;
    }
  }
  TValue                            value = find();
  const std::lock_guard<std::mutex> lock(mutex);
  if (known.size() > 64)
  {
    known.clear();
  }
  known.emplace(key, value);
  return value;
}

std::vector<NetworkSlabBound>
GetSlabBounds(const NetworkGraph & graph, std::int64_t slab)
{
  return Remember<std::vector<NetworkSlabBound>>(graph.GetKey() + ' ' + std::to_string(slab),
                                                 [&] { return FindSlabBounds(graph, slab); });
}

std::vector<std::int64_t>
GetGoodSlabs(const NetworkOperation & operation, const NetworkRates & rates)
{
  const std::string key = operation.graph->GetKey() + ' ' + std::to_string(static_cast<int>(operation.precision)) +
                          ' ' + std::to_string(static_cast<int>(operation.method)) + ' ' +
                          std::to_string(operation.tile) + ' ' + std::to_string(rates.multiplyAdds) + ' ' +
                          std::to_string(rates.productMultiplyAdds) + ' ' + std::to_string(rates.largestTile);
  return Remember<std::vector<std::int64_t>>(key, [&] { return FindGoodSlabs(operation, rates); });
}

/** Planes for each voxel of a chunk's width; narrow chunks have more, as long as tiles gain much by it. */
constexpr double ThicknessOfWidth = 0.5;
constexpr double ThicknessOfNarrowWidth = 0.8;
constexpr double ThicknessForTiles = 64;
constexpr double LeastThickness = 32;

double
GetMostThickness(double width)
{
  return std::max(
    { LeastThickness, std::min(ThicknessForTiles, ThicknessOfNarrowWidth * width), ThicknessOfWidth * width });
}

/** Voxels of an image whose layers need no slabs. */
constexpr double SmallImage = 300.0 * 300 * 300;

/** Slabs of which a chunk is computed, or of which a narrower one is, thickest last: memory is for all of them, so that
 * it does not shrink when the chunk grows. */
struct SlabChoice
{
  std::int64_t              slab{ 0 }; ///< planes of the output at a time; 0: all of them
  std::vector<std::int64_t> upTo;
};

/** Slabs about half as thick as the chunk is wide share memory best between what is computed in vain at the chunk's
 * sides and at the tiles' ends. */
SlabChoice
ChooseSlab(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates,
           NetworkSide side = NetworkSide::Whole)
{
  const NetworkGraph & graph = *operation.graph;
  const std::int64_t   unit = graph.GetTotalStride()[2];
  if (operation.mode == NetworkMode::Patches || operation.slab >= image.Extent(2))
  {
    return {};
  }
  if (operation.slab > 0)
  {
    const std::int64_t slab = (operation.slab + unit - 1) / unit * unit;
    return { slab, { slab } };
  }
  if (UnitOfSlabs(graph) > ThickestSlab || Product(SpatialPart(image.Extents())) <= SmallImage)
  {
    return {};
  }
  // What is planned for a backend holds for all of its devices.
  const auto slabs =
    GetGoodSlabs(operation,
                 rates.padsOutputs || side != NetworkSide::Whole ? GetDeviceNetworkRates(operation.precision)
                                                                 : GetHostNetworkRates());
  const double width = std::sqrt(static_cast<double>(output.Extent(0)) * static_cast<double>(output.Extent(1)));
  SlabChoice   choice;
  // Tiles fit the whole of a wide chunk of few planes best.
  const bool isFlat =
    image.Extent(2) <= 2 * ThickestSlab && 4 * ThicknessOfWidth * width >= static_cast<double>(image.Extent(2));
  for (const std::int64_t slab : slabs)
  {
    if (isFlat || choice.upTo.empty() || static_cast<double>(slab) <= GetMostThickness(width))
    {
      choice.upTo.push_back(slab);
    }
  }
  choice.slab = isFlat || choice.upTo.back() >= image.Extent(2) ? 0 : choice.upTo.back();
  return choice;
}

/** What is computed of a chunk: its steps, and how each step computes each layer. */
struct ChunkPlan
{
  std::vector<NetworkGraph::Range>     ranges;
  std::vector<NetworkSlab>             march;
  std::vector<NetworkLayerPlan>        plan; ///< of the largest steps
  std::vector<std::vector<TileChoice>> tiles;

  /** The extent that a step computes of a layer. */
  LayerExtent
  PartOf(std::size_t step, std::size_t i) const
  {
    const NetworkSlabLayer & layer = march[step][i];
    return {
      { ranges[i].upper[0] - ranges[i].lower[0], ranges[i].upper[1] - ranges[i].lower[1], layer.upper - layer.lower }
    };
  }
};

/** The part of what is done once a run that counts for a chunk. */
double
GetShareOfRun(const NetworkOperation & operation, const Box & output, const Box & image)
{
  return operation.mode == NetworkMode::Patches
           ? 0.0
           : Product(SpatialPart(output.Extents())) / Product(SpatialPart(image.Extents()));
}

/** `ofHead`: rates of the backend that computes the first layers. */
ChunkPlan
PlanChunk(const NetworkOperation & operation, const Box & output, const std::vector<LayerExtent> & whole,
          const Box & image, NetworkRates rates, const NetworkRates * ofHead = nullptr)
{
  const NetworkGraph & graph = *operation.graph;
  const std::size_t    n = graph.GetLayers().size();
  const std::int64_t   slab =
    ChooseSlab(operation, output, image, rates, ofHead ? NetworkSide::Tail : NetworkSide::Whole).slab;
  ChunkPlan chunk;
  chunk.ranges = graph.GetRanges({ SpatialPart(output.lower), SpatialPart(output.upper) }, &whole);

  std::vector<std::int64_t> fragments(n, 1);
  chunk.march = MakeNetworkMarch(graph, chunk.ranges, slab, fragments, false);
  rates.spectraMaking *= GetShareOfRun(operation, output, image) / static_cast<double>(chunk.march.size());
  const auto               bounds = FindSlabBounds(chunk.march);
  std::vector<LayerExtent> parts(n);
  for (std::size_t i = 0; i < n; ++i)
  {
    parts[i] = chunk.PartOf(0, i);
    parts[i][2] = bounds[i].computed;
  }
  chunk.plan = PlanNetwork(operation, parts, rates, false);
  if (ofHead)
  {
    const auto head = PlanNetwork(operation, parts, *ofHead, false);
    const auto last = static_cast<std::size_t>(operation.headLayers);
    std::copy(head.begin(), head.begin() + operation.headLayers + 1, chunk.plan.begin());
    // Where the two meet, results lie as both know them.
    chunk.plan[last].fragments = { { 1, 1, 1 } };
  }
  for (std::size_t i = 0; i < n; ++i)
  {
    fragments[i] = chunk.plan[i].fragments[2];
  }
  chunk.march = MakeNetworkMarch(graph, chunk.ranges, slab, fragments, false);
  chunk.tiles.resize(chunk.march.size(), std::vector<TileChoice>(n));
  for (std::size_t s = 0; s < chunk.march.size(); ++s)
  {
    for (std::size_t i = 1; i < n; ++i)
    {
      if (chunk.plan[i].transform.tile > 0 && chunk.march[s][i].IsComputed())
      {
        const LayerExtent part = chunk.PartOf(s, i);
        // Most steps are alike.
        chunk.tiles[s][i] =
          part == parts[i] ? chunk.plan[i].transform
          : s > 0 && part == chunk.PartOf(s - 1, i)
            ? chunk.tiles[s - 1][i]
            : ChooseStepTile(operation,
                             i,
                             part,
                             chunk.plan[i].transformBytes,
                             ofHead && i <= static_cast<std::size_t>(operation.headLayers) ? *ofHead : rates);
      }
    }
  }
  return chunk;
}

/** Memory for spectra, beside that for results of layers: what makes chunks smaller costs more than larger groups of
 * tiles save. Small results leave little for them, so that devices of a few gigabytes have wider chunks. */
constexpr double PartForTransforms = 0.16;
constexpr double PartOfSmallForTransforms = 0.3;
constexpr double EnoughForTransforms = 1e9;

double
GetMostTransformBytes(std::size_t results, const NetworkRates & rates)
{
  const auto bytes = static_cast<double>(results);
  return std::max(
    { rates.leastBytes, std::min(EnoughForTransforms, PartOfSmallForTransforms * bytes), PartForTransforms * bytes });
}

/** Where the results of layers lie. Layers share memory where no two are needed at a time; which ones depends on no
 * chunk, so that the memory does not shrink when the chunk grows. */
class Layout
{
public:
  Layout(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates,
         KeptPlanes planes, NetworkSide side = NetworkSide::Whole)
  {
    if (operation.mode == NetworkMode::Patches)
    {
      const Box window = WindowBox(operation);
      this->Place(operation, window, window, rates, planes, side);
      sums = numberOfBytes;
      numberOfBytes += BytesOf(
        SpatialPart(output.Extents()), LayerExtent{ { 1, 1, 1 } }, operation.graph->GetNumberOfOutputChannels() + 1);
      numberOfBytes = std::min(numberOfBytes, TooManyBytes);
      return;
    }
    this->Place(operation, output, image, rates, planes, side);
  }

  /** Rates of a plan that needs no more than this. */
  NetworkRates
  Limit(NetworkRates rates) const
  {
    rates.mostBytes = mostTransformBytes;
    return rates;
  }

  std::vector<std::size_t> offsets; ///< of each layer
  std::vector<std::size_t> sizes;   ///< bytes there are for it
  std::vector<std::size_t> kept;    ///< where each layer's planes lie that steps hand on, and where the last ones end
  std::size_t              sums{ 0 };
  std::size_t              numberOfBytes{ 0 };
  std::size_t              spilledBytes{ 0 };
  std::size_t              exchangeBytes{ 0 }; ///< of a tail: what a step of its head gives
  std::size_t              transformBytes{ 0 };
  double                   mostTransformBytes{ 0 }; ///< NetworkRates::mostBytes

private:
  void
  Place(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates,
        KeptPlanes planes, NetworkSide side)
  {
    const auto last = static_cast<std::size_t>(std::max(operation.headLayers, 0));
    const auto isHere = [side, last](std::size_t i) {
      return side == NetworkSide::Whole || (side == NetworkSide::Head ? i < last : i >= last);
    };
    const NetworkGraph & graph = *operation.graph;
    const auto &         layers = graph.GetLayers();
    const auto           whole = graph.GetExtents(graph.GetInputExtent(SpatialPart(image.Extents())));
    const auto           parts = LargestParts(graph, SpatialPart(output.Extents()), &whole);
    const auto           typical = LargestParts(graph, LayerExtent{ { 64, 64, 64 } }, nullptr);
    const SlabChoice     slabs = ChooseSlab(operation, output, image, rates, side);
    auto                 computed = parts;
    auto                 held = parts;
    auto                 handed = std::vector<LayerExtent>(layers.size(), LayerExtent{ { 0, 0, 0 } });
    if (!slabs.upTo.empty())
    {
      std::vector<NetworkSlabBound> bounds(layers.size());
      for (const std::int64_t slab : slabs.upTo)
      {
        TakeLargest(bounds, GetSlabBounds(graph, slab));
      }
      for (std::size_t i = 0; i < layers.size(); ++i)
      {
        handed[i] = parts[i];
        handed[i][2] = std::min(parts[i][2], bounds[i].kept);
        if (slabs.slab > 0)
        {
          computed[i][2] = std::min(parts[i][2], bounds[i].computed);
          held[i][2] = std::min(parts[i][2], bounds[i].held);
        }
      }
    }
    const auto plan = PlanNetwork(operation, computed, rates, true);

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
      if (!isHere(i))
      {
        continue;
      }
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
      bytes[slot] = std::max(bytes[slot], BytesOf(held[i], plan[i].fragments, layers[i].channels));
      slots[i] = slot;
    }
    std::vector<std::size_t> begins;
    for (const std::size_t size : bytes)
    {
      begins.push_back(numberOfBytes);
      numberOfBytes = std::min(numberOfBytes + size, TooManyBytes);
    }
    std::size_t & end = planes == KeptPlanes::Spilled ? spilledBytes : numberOfBytes;
    for (std::size_t i = 0; i < layers.size(); ++i)
    {
      offsets.push_back(isHere(i) ? begins[slots[i]] : 0);
      sizes.push_back(isHere(i) ? bytes[slots[i]] : 0);
      kept.push_back(end);
      const std::size_t own = BytesOf(handed[i], plan[i].fragments, layers[i].channels);
      end = std::min(end + (isHere(i) ? own : 0), TooManyBytes);
    }
    kept.push_back(end);
    // Wherever planes lie, a chunk has the same tiles, and so the same bits.
    mostTransformBytes = GetMostTransformBytes(numberOfBytes + spilledBytes, rates);
    if (side == NetworkSide::Tail)
    {
      exchangeBytes = BytesOf(computed[last], LayerExtent{ { 1, 1, 1 } }, layers[last].channels);
      spilledBytes = 2 * exchangeBytes;
    }
    const auto limited = PlanNetwork(operation, computed, this->Limit(rates), true);
    for (std::size_t i = 0; i < layers.size(); ++i)
    {
      const bool isComputed = side == NetworkSide::Whole || (side == NetworkSide::Head) == (i <= last);
      transformBytes = std::max(transformBytes, isComputed ? limited[i].transformBytes : 0);
    }
  }
};

/** The work of a layer, but for the values that it needs beside its inputs. */
Step
MakeStep(const NetworkLayer & layer, const std::vector<Tensor> & tensors, std::size_t i)
{
  Step step{};
  step.kind = layer.kind;
  step.layer = static_cast<int>(i);
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

/** What layers need beside their inputs, in the backend's memory. */
using LayerValues = std::array<const float *, NetworkLayerValues>;

/** A layer as steps of the backend: one, or of a concatenation a copy for each input. */
std::vector<Step>
MakeSteps(const NetworkLayer & layer, const LayerValues & values, const std::vector<Tensor> & tensors,
          const Tensor & out, std::size_t i)
{
  Step step = MakeStep(layer, tensors, i);
  step.out = out;
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
    step.out.data += step.out.channels * step.out.ChannelLength();
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
GetNetworkBytes(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates,
                KeptPlanes planes, NetworkSide side)
{
  const Layout layout(operation, output, image, rates, planes, side);
  return { layout.numberOfBytes, layout.transformBytes, layout.spilledBytes };
}

double
CountPipedSlabs(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates)
{
  const std::int64_t slab = ChooseSlab(operation, output, image, rates, NetworkSide::Tail).slab;
  return slab > 0 ? static_cast<double>((output.Extent(2) + slab - 1) / slab) : 1.0;
}

double
GetWeightOfSpilling(const NetworkOperation & operation)
{
  // What is expected to be hardly faster is not worth the host's memory.
  constexpr double ofGain = 1.03;
  return operation.planes == NetworkPlanes::Automatic  ? ofGain
         : operation.planes == NetworkPlanes::OnDevice ? std::numeric_limits<double>::infinity()
                                                       : 0.0;
}

KeptPlanes
GetKeptPlanes(const KernelCall & call)
{
  return call.sideOut ? KeptPlanes::Spilled : KeptPlanes::InScratch;
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

/** The cost of all steps, and of the planes that they hand on: these are read and written twice, or come from the
 * host's memory while their layer is computed and go there beside the next one. */
std::vector<double>
CostOfLayers(const NetworkGraph & graph, const ChunkPlan & chunk, const NetworkRates & rates, KeptPlanes planes,
             std::size_t first, std::size_t end)
{
  std::vector<double> costs(graph.GetLayers().size());
  double              sent = 0;
  for (std::size_t s = 0; s < chunk.march.size(); ++s)
  {
    for (std::size_t i = first; i < end; ++i)
    {
      const NetworkSlabLayer & layer = chunk.march[s][i];
      if (!layer.isUsed)
      {
        continue;
      }
      const LayerExtent part = chunk.PartOf(s, i);
      const auto        bytesOf = [&](std::int64_t begin, std::int64_t end) {
        return 4.0 * graph.GetLayers()[i].channels * static_cast<double>(part[0] * part[1]) *
               static_cast<double>(std::max<std::int64_t>(0, end - begin));
      };
      const double own = layer.IsComputed() ? CostOfLayer(graph, i, part, chunk.tiles[s][i], rates) : 0.0;
      const double handed = bytesOf(layer.kept, layer.GetFetchedUpper());
      if (planes == KeptPlanes::InScratch)
      {
        costs[i] += own + 4 * handed;
        continue;
      }
      costs[i] += std::max({ own, handed * rates.linkTraffic, sent });
      sent = bytesOf(layer.next, layer.upper) * rates.linkTraffic;
    }
  }
  return costs;
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
GetNetworkCost(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates,
               KeptPlanes planes, NetworkSide side)
{
  if (operation.mode == NetworkMode::Patches)
  {
    NetworkOperation window = operation;
    window.mode = NetworkMode::Dense;
    window.result = NetworkResult::Channel;
    NetworkRates ofWindow = rates;
    ofWindow.spectraMaking = ofWindow.uploads = 0;
    return GetNetworkCost(window, WindowBox(operation), WindowBox(operation), ofWindow) *
           NumberOfWindows(operation, SpatialPart(output.Extents()), image.Extents()) *
           NumberOfImages(operation, output);
  }
  const NetworkGraph & graph = *operation.graph;
  const auto           whole = graph.GetExtents(graph.GetInputExtent(SpatialPart(image.Extents())));
  const NetworkRates   limited = Layout(operation, output, image, rates, planes, side).Limit(rates);
  const auto           last = static_cast<std::size_t>(std::max(operation.headLayers, 0));
  // Of either side the plan is that of its backend.
  const ChunkPlan chunk =
    PlanChunk(operation, output, whole, image, limited, side == NetworkSide::Whole ? nullptr : &limited);
  const auto costs = CostOfLayers(graph,
                                  chunk,
                                  limited,
                                  planes,
                                  side == NetworkSide::Tail ? last + 1 : 1,
                                  side == NetworkSide::Head ? last + 1 : graph.GetLayers().size());
  double     weights = 0;
  for (const NetworkLayer & layer : graph.GetLayers())
  {
    weights += layer.packedWeights ? static_cast<double>(layer.packedWeights->size() * sizeof(float)) : 0.0;
  }
  return std::accumulate(costs.begin(), costs.end(), 0.0) * NumberOfImages(operation, output) +
         rates.uploads * weights * GetShareOfRun(operation, output, image);
}

std::vector<NetworkLayerDescription>
DescribeNetworkPlan(const NetworkOperation & asked, const Plan & plan, const Box & image, bool onDevices)
{
  const auto &         operation = plan.piped ? static_cast<const NetworkOperation &>(*plan.piped) : asked;
  const NetworkGraph & graph = *operation.graph;
  const std::size_t    layers = graph.GetLayers().size();
  const bool           isDense = operation.mode == NetworkMode::Dense;
  const Box            output = Box::FromExtent(plan.chunkExtent);
  const KeptPlanes     planes = plan.spilledBytes > 0 && !plan.piped ? KeptPlanes::Spilled : KeptPlanes::InScratch;
  const auto           limit = [&](const NetworkRates & rates, NetworkSide side) {
    return Layout(operation, output, image, rates, planes, side).Limit(rates);
  };
  const NetworkRates rates = limit(onDevices ? GetDeviceNetworkRates(operation.precision) : GetHostNetworkRates(),
                                   plan.piped ? NetworkSide::Tail : NetworkSide::Whole);
  const NetworkRates ofHead = limit(GetHostNetworkRates(), plan.piped ? NetworkSide::Head : NetworkSide::Whole);
  const auto whole = graph.GetExtents(isDense ? graph.GetInputExtent(SpatialPart(image.Extents())) : operation.patch);
  const ChunkPlan chunk =
    PlanChunk(operation, isDense ? output : WindowBox(operation), whole, image, rates, plan.piped ? &ofHead : nullptr);
  const auto        bounds = FindSlabBounds(chunk.march);
  const std::size_t meeting = plan.piped ? static_cast<std::size_t>(operation.headLayers) + 1 : 1;
  auto              shares = CostOfLayers(graph, chunk, rates, planes, meeting, layers);
  const auto        costsOfHead = CostOfLayers(graph, chunk, ofHead, planes, 1, meeting);
  std::copy(costsOfHead.begin(), costsOfHead.begin() + static_cast<std::ptrdiff_t>(meeting), shares.begin());
  const auto normalize = [&shares](std::size_t first, std::size_t end) {
    const auto   at = shares.begin();
    const double sum =
      std::accumulate(at + static_cast<std::ptrdiff_t>(first), at + static_cast<std::ptrdiff_t>(end), 0.0);
    for (std::size_t i = first; i < end; ++i)
    {
      shares[i] = sum > 0 ? shares[i] / sum : 0.0;
    }
  };
  normalize(0, meeting);
  normalize(meeting, layers);

  std::vector<NetworkLayerDescription> rows;
  for (std::size_t i = 0; i < layers; ++i)
  {
    const NetworkLayer & layer = graph.GetLayers()[i];
    LayerExtent          held = chunk.PartOf(0, i);
    LayerExtent          kept = held;
    held[2] = bounds[i].held;
    kept[2] = bounds[i].kept;
    const LayerExtent & fragments = chunk.plan[i].fragments;
    rows.push_back({ layer.name,
                     layer.kind,
                     layer.channels,
                     held,
                     layer.kernel,
                     layer.stride,
                     layer.dilation,
                     chunk.plan[i].transform.tile,
                     BytesOf(held, fragments, layer.channels),
                     chunk.plan[i].transform.tile > 0 ? chunk.plan[i].transformBytes : 0,
                     shares[i],
                     BytesOf(kept, fragments, layer.channels),
                     planes == KeptPlanes::Spilled,
                     plan.piped && i < meeting });
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

namespace
{

/** Copies of planes that steps hand on. Spilled ones are fetched while their layer is computed, and stored while the
 * next one is: no layer begins where planes are that are still on their way. */
class PlaneCopies
{
public:
  PlaneCopies(NetworkBackend & backend, KeptPlanes planes)
    : m_Backend(backend)
    , m_Spills(planes == KeptPlanes::Spilled)
  {}

  /** A layer begins whose result lies at `place`. */
  void
  Enter(std::size_t place)
  {
    ++m_Layer;
    // What the layer before it stores may go on, unless it is stored from there.
    const bool mayGoOn = m_StoredBy + 1 == m_Layer && m_Place != place;
    this->Await(mayGoOn ? m_StoredEarlier : m_Stored);
    m_Place = place;
  }
  void
  Fetch(const Tensor & from, const Tensor & to)
  {
    m_Fetched = this->Start(from, to);
  }
  /** Before the layer's planes are used. */
  void
  AwaitFetched()
  {
    this->Await(m_Fetched);
    m_Fetched = None;
  }
  void
  Store(const Tensor & from, const Tensor & to)
  {
    m_StoredEarlier = m_Stored;
    m_Stored = this->Start(from, to);
    m_StoredBy = m_Layer;
  }
  void
  AwaitStored()
  {
    this->Await(m_Stored);
  }

private:
  static constexpr int None = -1;

  int
  Start(const Tensor & from, const Tensor & to)
  {
    if (m_Spills)
    {
      return m_Backend.StartCopy(from, to);
    }
    m_Backend.Copy(from, to);
    return None;
  }
  void
  Await(int copy)
  {
    if (copy != None)
    {
      m_Backend.AwaitCopy(copy);
    }
  }

  NetworkBackend & m_Backend;
  const bool       m_Spills;
  std::int64_t     m_Layer{ 0 }; ///< layers that have begun
  std::int64_t     m_StoredBy{ -1 };
  std::size_t      m_Place{ 0 };
  int              m_Fetched{ None };
  int              m_Stored{ None };
  int              m_StoredEarlier{ None };
};

} // namespace

void
RunPiped(const KernelCall & call, const NetworkTail & runTail)
{
  const auto & piped = *static_cast<const PipedCall *>(call.sideIn);
  KernelCall   head = piped.call;
  head.sideIn = &runTail;
  head.sideInBytes = sizeof(runTail);
  piped.kernel->run(head);
}

std::vector<std::shared_ptr<const Operation>>
GetPipedVariants(const Operation & operation)
{
  std::vector<std::shared_ptr<const Operation>> variants;
  const auto * const                            network = dynamic_cast<const NetworkOperation *>(&operation);
  if (!network || network->mode != NetworkMode::Dense || network->headLayers == 0 ||
      network->precision == NetworkPrecision::Reproducible)
  {
    return variants;
  }
  const auto & layers = network->graph->GetLayers();
  // Layers after the head's last one read nothing before it.
  int first = std::numeric_limits<int>::max();
  for (int last = static_cast<int>(layers.size()) - 2; last > 0; --last)
  {
    const auto & inputs = layers[static_cast<std::size_t>(last) + 1].inputs;
    first = std::min(first, *std::min_element(inputs.begin(), inputs.end()));
    const bool isWanted = network->headLayers < 0 || network->headLayers == last;
    if (isWanted && first >= last && last < network->graph->GetOutput())
    {
      const auto variant = std::make_shared<NetworkOperation>(*network);
      variant->headLayers = last;
      variants.push_back(variant);
    }
  }
  return variants;
}

void
RunNetwork(const KernelCall & call, NetworkBackend & backend, const NetworkHead * head)
{
  const auto &         operation = static_cast<const NetworkOperation &>(*call.operation);
  const NetworkGraph & graph = *operation.graph;
  const auto &         layers = graph.GetLayers();
  const Box &          output = call.output.box;
  const bool           isDense = operation.mode == NetworkMode::Dense;
  const Box            part = isDense ? output : WindowBox(operation);
  const LayerExtent    input = isDense ? graph.GetInputExtent(SpatialPart(call.image.Extents())) : operation.patch;
  const auto           whole = graph.GetExtents(input);
  const KeptPlanes     planes = head ? KeptPlanes::InScratch : GetKeptPlanes(call);
  const Layout         layout(
    operation, output, call.image, backend.GetRates(), planes, head ? NetworkSide::Tail : NetworkSide::Whole);
  const NetworkRates rates = layout.Limit(backend.GetRates());
  // Layers before this one lie in the host's memory; the host computes it too.
  const std::size_t  meeting = head ? static_cast<std::size_t>(operation.headLayers) : 0;
  const NetworkRates ofHead = head ? head->backend->GetRates() : rates;
  const Layout       headLayout(
    operation, output, call.image, ofHead, KeptPlanes::InScratch, head ? NetworkSide::Head : NetworkSide::Whole);
  const NetworkRates headRates = headLayout.Limit(ofHead);
  const ChunkPlan    chunk = PlanChunk(operation, part, whole, call.image, rates, head ? &headRates : nullptr);
  const auto         bounds = FindSlabBounds(chunk.march);
  const auto         liesInHead = [&](std::size_t i) { return head && i < meeting; };
  const auto         backendOf = [&](std::size_t i) -> NetworkBackend & {
    return head && i <= meeting ? *head->backend : backend;
  };
  const auto mustStop = [&] { return backend.ShouldStop() || (head && head->backend->ShouldStop()); };

  // All memory that steps have for a layer, and for what they hand on.
  std::vector<Tensor>      memory(layers.size());
  std::vector<Tensor>      kept(layers.size());
  std::vector<LayerValues> values(layers.size());
  double                   allWork = 0;
  for (std::size_t i = 0; i < layers.size(); ++i)
  {
    Tensor & tensor = memory[i];
    tensor.channels = layers[i].channels;
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      tensor.lower[a] = chunk.ranges[i].lower[a];
      tensor.extent[a] = chunk.ranges[i].upper[a] - chunk.ranges[i].lower[a];
      tensor.whole[a] = whole[i][a];
      tensor.fragments[a] = chunk.plan[i].fragments[a];
    }
    kept[i] = tensor;
    const auto place = [](Tensor & of, std::int64_t room, void * memory, std::size_t offset) {
      const std::int64_t f = of.fragments[2];
      of.room = (room + f - 1) / f * f;
      of.data = reinterpret_cast<float *>(static_cast<char *>(memory) + offset);
      return static_cast<std::size_t>(of.channels * of.ChannelLength()) * sizeof(float);
    };
    const Layout & own = liesInHead(i) ? headLayout : layout;
    void * const   scratch = liesInHead(i) ? head->call->scratch : call.scratch;
    void * const   keptMemory = planes == KeptPlanes::Spilled ? call.sideOut : scratch;
    if (place(tensor, bounds[i].held, scratch, own.offsets[i]) > own.sizes[i] ||
        place(kept[i], bounds[i].kept, keptMemory, own.kept[i]) > own.kept[i + 1] - own.kept[i])
    {
      throw std::logic_error("network: layer " + std::to_string(i) + " needs more memory than was planned");
    }
    if (i > 0 && bounds[i].computed > 0)
    {
      const auto constants = GetNetworkValues(layers[i]);
      for (std::size_t k = 0; k < constants.size(); ++k)
      {
        values[i][k] =
          constants[k]
            ? backendOf(i).Upload("network " + graph.GetKey() + ' ' + std::to_string(i) + ' ' + std::to_string(k),
                                  *constants[k])
            : nullptr;
      }
      for (std::size_t s = 0; s < chunk.march.size(); ++s)
      {
        allWork += MultiplyAddsOf(graph, layers[i], chunk.PartOf(s, i));
      }
    }
  }
  std::vector<float> axisWeights[MaxSpatialAxes];
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    axisWeights[a] = MakeWindowWeights(operation.patch[a], operation.weighting);
  }
  const auto outputLayer = static_cast<std::size_t>(graph.GetOutput());

  PlaneCopies copies(backend, planes);
  PlaneCopies copiesOfHead(head ? *head->backend : backend, KeptPlanes::InScratch);
  int         arrivals[2] = { -1, -1 };
  /** Memory of the host for what a step computes of the layer where head and tail meet. */
  const auto exchange = [&](std::size_t s, const NetworkSlabLayer & layer) {
    Tensor tensor = memory[meeting];
    tensor.data = reinterpret_cast<float *>(static_cast<char *>(call.sideOut) + s % 2 * layout.exchangeBytes);
    tensor.room = bounds[meeting].computed;
    tensor.lower[2] = layer.lower;
    tensor.extent[2] = layer.upper - layer.lower;
    return tensor;
  };
  /** One step; gives what it computed of the result. Layers that lie in the padding alone are not used. */
  const auto runStep = [&](std::size_t s, const Coordinates & where, const LayerExtent & shift, double share) {
    std::vector<Tensor> tensors = memory;
    Tensor              result{};
    for (std::size_t i = 0; i < layers.size() && !mustStop(); ++i)
    {
      const NetworkSlabLayer & layer = chunk.march[s][i];
      if (!layer.isUsed || tensors[i].VoxelsPerChannel() == 0)
      {
        continue;
      }
      Tensor & tensor = tensors[i];
      tensor.lower[2] = layer.held;
      tensor.extent[2] = layer.upper - layer.held;
      PlaneCopies & ofPlanes = liesInHead(i) ? copiesOfHead : copies;
      ofPlanes.Enter(layout.offsets[i]);
      if (layer.kept < layer.GetFetchedUpper())
      {
        const std::int64_t upper = layer.GetFetchedUpper();
        kept[i].lower[2] = layer.kept;
        ofPlanes.Fetch(kept[i].Planes(layer.kept, upper), tensor.Planes(layer.kept, upper));
      }
      if (layer.IsComputed())
      {
        const bool   isMet = head && i == meeting;
        const Tensor out = tensor.Planes(layer.lower, layer.upper);
        const Tensor own = isMet ? exchange(s, layer) : out;
        if (isMet && arrivals[s % 2] >= 0)
        {
          backend.FinishCopy(arrivals[s % 2]);
        }
        if (i == 0)
        {
          backendOf(i).Load(own, shift, where);
        }
        else
        {
          for (const Step & step : MakeSteps(layers[i], values[i], tensors, own, i))
          {
            backendOf(i).Run(step, chunk.tiles[s][i]);
          }
          backendOf(i).AddProgress(MultiplyAddsOf(graph, layers[i], chunk.PartOf(s, i)) / allWork * share);
        }
        if (isMet)
        {
          arrivals[s % 2] = backend.StartCopy(own, out);
          backend.AwaitCopy(arrivals[s % 2]);
        }
        result = i == outputLayer ? out : result;
      }
      ofPlanes.AwaitFetched();
      if (layer.next < layer.upper && (layer.IsComputed() || layer.next != layer.kept))
      {
        kept[i].lower[2] = layer.next;
        ofPlanes.Store(tensor.Planes(layer.next, layer.upper), kept[i].Planes(layer.next, layer.upper));
      }
    }
    return result;
  };

  // For windows: the sums of all channels, and of their weights.
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
  sums.room = sums.extent[2];
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
          const Tensor result = runStep(0, where, { { -x, -y, -z } }, 1.0 / (images * windows));
          if (backend.ShouldStop())
          {
            return;
          }
          backend.AddWindow(result, sums, { { x, y, z } }, weights);
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
      const auto store = [&](const Tensor & result) {
        if (channelAxis < 0)
        {
          backend.Store(result, at, operation.channel);
          return;
        }
        Coordinates place = at;
        for (; place[channelAxis] < output.upper[channelAxis]; ++place[channelAxis])
        {
          backend.Store(result, place, static_cast<int>(place[channelAxis]));
        }
      };
      if (!isDense)
      {
        runWindows(at, images);
        if (backend.ShouldStop())
        {
          return;
        }
        store(means);
        continue;
      }
      for (std::size_t s = 0; s < chunk.march.size(); ++s)
      {
        const Tensor result = runStep(s, at, graph.GetLowerMargin(), 1.0 / images);
        if (mustStop())
        {
          return;
        }
        if (chunk.march[s][outputLayer].IsComputed())
        {
          store(result);
        }
      }
    }
  }
  copies.AwaitStored();
}

} // namespace chunkwise
