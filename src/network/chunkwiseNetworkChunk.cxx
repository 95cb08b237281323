/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkChunk.h"

#include "chunkwisePlanner.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>

namespace chunkwise
{

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
      // A pass through memory takes as long as some arithmetic.
      return voxels * 4;
  }
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

namespace
{

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

/** The cost of a plane of the output in the middle of a wide chunk that is computed in slabs. */
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

/** The value that a function of a key found, remembered: a planner asks with every shape that it tries. */
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
  // A plan for a backend holds for all of its devices.
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

/** The part of what is done once a run that counts for a chunk. */
double
GetShareOfRun(const NetworkOperation & operation, const Box & output, const Box & image)
{
  return operation.mode == NetworkMode::Patches
           ? 0.0
           : Product(SpatialPart(output.Extents())) / Product(SpatialPart(image.Extents()));
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

} // namespace

NetworkChunkPlan
PlanChunk(const NetworkOperation & operation, const Box & output, const std::vector<LayerExtent> & whole,
          const Box & image, NetworkRates rates, const NetworkRates * ofHead)
{
  const NetworkGraph & graph = *operation.graph;
  const std::size_t    n = graph.GetLayers().size();
  const std::int64_t   slab =
    ChooseSlab(operation, output, image, rates, ofHead ? NetworkSide::Tail : NetworkSide::Whole).slab;
  NetworkChunkPlan chunk;
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
    // At the seam between both, results have a layout that both know.
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

NetworkLayout::NetworkLayout(const NetworkOperation & operation, const Box & output, const Box & image,
                             const NetworkRates & rates, KeptPlanes planes, NetworkSide side)
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

NetworkLayout::Needs
NetworkLayout::FindNeeds(const NetworkOperation & operation, const Box & output, const Box & image,
                         const NetworkRates & rates, NetworkSide side)
{
  const NetworkGraph & graph = *operation.graph;
  const auto           whole = graph.GetExtents(graph.GetInputExtent(SpatialPart(image.Extents())));
  const auto           parts = LargestParts(graph, SpatialPart(output.Extents()), &whole);
  const SlabChoice     slabs = ChooseSlab(operation, output, image, rates, side);
  Needs                needs{ parts, parts, std::vector<LayerExtent>(parts.size(), LayerExtent{ { 0, 0, 0 } }) };
  if (slabs.upTo.empty())
  {
    return needs;
  }
  std::vector<NetworkSlabBound> bounds(parts.size());
  for (const std::int64_t slab : slabs.upTo)
  {
    TakeLargest(bounds, GetSlabBounds(graph, slab));
  }
  for (std::size_t i = 0; i < parts.size(); ++i)
  {
    needs.handed[i] = parts[i];
    needs.handed[i][2] = std::min(parts[i][2], bounds[i].kept);
    if (slabs.slab > 0)
    {
      needs.computed[i][2] = std::min(parts[i][2], bounds[i].computed);
      needs.held[i][2] = std::min(parts[i][2], bounds[i].held);
    }
  }
  return needs;
}

NetworkLayout::Slots
NetworkLayout::ShareSlots(const NetworkGraph & graph, const std::vector<std::size_t> & bytes, std::size_t first,
                          std::size_t end)
{
  const auto &             layers = graph.GetLayers();
  const auto               typical = LargestParts(graph, LayerExtent{ { 64, 64, 64 } }, nullptr);
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

  Slots                    slots{ std::vector<std::size_t>(layers.size()), {} };
  std::vector<std::size_t> busyUntil;
  std::vector<double>      typicalOf;
  for (std::size_t i = first; i < end; ++i)
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
      slots.bytes.push_back(0);
    }
    busyUntil[slot] = lastUse[i];
    typicalOf[slot] = std::max(typicalOf[slot], size);
    slots.bytes[slot] = std::max(slots.bytes[slot], bytes[i]);
    slots.ofLayer[i] = slot;
  }
  return slots;
}

void
NetworkLayout::Place(const NetworkOperation & operation, const Box & output, const Box & image,
                     const NetworkRates & rates, KeptPlanes planes, NetworkSide side)
{
  const NetworkGraph & graph = *operation.graph;
  const auto &         layers = graph.GetLayers();
  const std::size_t    n = layers.size();
  const auto           last = static_cast<std::size_t>(std::max(operation.headLayers, 0));
  const std::size_t    first = side == NetworkSide::Tail ? last : 0;
  const std::size_t    end = side == NetworkSide::Head ? last : n;
  const Needs          needs = FindNeeds(operation, output, image, rates, side);
  const auto           plan = PlanNetwork(operation, needs.computed, rates, true);

  std::vector<std::size_t> bytes(n);
  for (std::size_t i = first; i < end; ++i)
  {
    bytes[i] = BytesOf(needs.held[i], plan[i].fragments, layers[i].channels);
  }
  const Slots              slots = ShareSlots(graph, bytes, first, end);
  std::vector<std::size_t> begins;
  for (const std::size_t size : slots.bytes)
  {
    begins.push_back(numberOfBytes);
    numberOfBytes = std::min(numberOfBytes + size, TooManyBytes);
  }
  std::size_t & keptEnd = planes == KeptPlanes::Spilled ? spilledBytes : numberOfBytes;
  for (std::size_t i = 0; i < n; ++i)
  {
    const bool isHere = i >= first && i < end;
    offsets.push_back(isHere ? begins[slots.ofLayer[i]] : 0);
    sizes.push_back(isHere ? slots.bytes[slots.ofLayer[i]] : 0);
    kept.push_back(keptEnd);
    const std::size_t own = BytesOf(needs.handed[i], plan[i].fragments, layers[i].channels);
    keptEnd = std::min(keptEnd + (isHere ? own : 0), TooManyBytes);
  }
  kept.push_back(keptEnd);
  // Wherever planes lie, a chunk has the same tiles, and so the same bits.
  mostTransformBytes = GetMostTransformBytes(numberOfBytes + spilledBytes, rates);
  if (side == NetworkSide::Tail)
  {
    exchangeBytes = BytesOf(needs.computed[last], LayerExtent{ { 1, 1, 1 } }, layers[last].channels);
    spilledBytes = 2 * exchangeBytes;
  }
  const auto limited = PlanNetwork(operation, needs.computed, this->Limit(rates), true);
  for (std::size_t i = 0; i < n; ++i)
  {
    const bool isComputed = side == NetworkSide::Whole || (side == NetworkSide::Head) == (i <= last);
    transformBytes = std::max(transformBytes, isComputed ? limited[i].transformBytes : 0);
  }
}

NetworkBytes
GetNetworkBytes(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates,
                KeptPlanes planes, NetworkSide side)
{
  const NetworkLayout layout(operation, output, image, rates, planes, side);
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
  // A gain that is expected to be small is not worth the host's memory.
  constexpr double ofGain = 1.03;
  return operation.planes == NetworkPlanes::Automatic ? ofGain : 0.0;
}

bool
MaySpill(const NetworkOperation & operation)
{
  return operation.planes != NetworkPlanes::OnDevice;
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
CostOfLayers(const NetworkGraph & graph, const NetworkChunkPlan & chunk, const NetworkRates & rates, KeptPlanes planes,
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
    ofWindow.spectraMaking = ofWindow.uploads = ofWindow.ofRun = 0;
    return GetNetworkCost(window, WindowBox(operation), WindowBox(operation), ofWindow) *
           NumberOfWindows(operation, SpatialPart(output.Extents()), image.Extents()) *
           NumberOfImages(operation, output);
  }
  const NetworkGraph & graph = *operation.graph;
  const auto           whole = graph.GetExtents(graph.GetInputExtent(SpatialPart(image.Extents())));
  const NetworkRates   limited = NetworkLayout(operation, output, image, rates, planes, side).Limit(rates);
  const auto           last = static_cast<std::size_t>(std::max(operation.headLayers, 0));
  // Each side has the plan of its backend.
  const NetworkChunkPlan chunk =
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
         (rates.uploads * weights + rates.ofRun) * GetShareOfRun(operation, output, image);
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
    return NetworkLayout(operation, output, image, rates, planes, side).Limit(rates);
  };
  const NetworkRates rates = limit(onDevices ? GetDeviceNetworkRates(operation.precision) : GetHostNetworkRates(),
                                   plan.piped ? NetworkSide::Tail : NetworkSide::Whole);
  const NetworkRates ofHead = limit(GetHostNetworkRates(), plan.piped ? NetworkSide::Head : NetworkSide::Whole);
  const auto whole = graph.GetExtents(isDense ? graph.GetInputExtent(SpatialPart(image.Extents())) : operation.patch);
  const NetworkChunkPlan chunk =
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

} // namespace chunkwise
