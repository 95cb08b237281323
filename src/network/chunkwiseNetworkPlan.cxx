/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkPlan.h"

#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

/** Larger kernels leave too little of a tile. */
constexpr std::int64_t LargestKernel = 24;

std::int64_t
CeilDivide(std::int64_t a, std::int64_t b)
{
  return (a + b - 1) / b;
}

/** Whether there are transforms for such a layer at all. */
bool
HasTransform(const NetworkLayer & layer, const LayerExtent & output)
{
  bool has = layer.kind == LayerKind::Convolution && layer.groups == 1 && Product(layer.kernel) > 1;
  for (std::size_t a = 0; a < MaxSpatialAxes; ++a)
  {
    has = has && layer.stride[a] == 1 && layer.kernel[a] <= LargestKernel && layer.dilation[a] <= output[a];
  }
  return has;
}

int
InputsOf(const NetworkGraph & graph, const NetworkLayer & layer)
{
  return graph.GetLayers()[static_cast<std::size_t>(layer.inputs[0])].channels;
}

/** How long the transform of a tile takes; 0: there is none. */
double
TransformTimes(int tile, const NetworkRates & rates)
{
  const auto number = std::find(std::begin(NetworkTiles), std::end(NetworkTiles), tile) - std::begin(NetworkTiles);
  const bool isLeftOut = rates.onlyTile > 0 && tile != rates.onlyTile;
  return tile > rates.largestTile || isLeftOut ? 0.0 : rates.transforms[number];
}

/** Voxels of a tile that are results. */
double
CountKept(const NetworkLayer & layer, int tile)
{
  double kept = 1;
  for (const std::int64_t kernel : layer.kernel)
  {
    kept *= static_cast<double>(std::max<std::int64_t>(0, tile - kernel + 1));
  }
  return kept;
}

/** The cost of the transforms of a tile: voxels and spectra of either side. */
double
CostOfTransforms(const NetworkLayer & layer, int inputs, int tile, const NetworkRates & rates)
{
  const auto number = std::find(std::begin(NetworkTiles), std::end(NetworkTiles), tile) - std::begin(NetworkTiles);
  return TransformTimes(tile, rates) * 8 * static_cast<double>(tile) * tile * tile * (inputs + layer.channels) +
         rates.stores[number] * CountKept(layer, tile) * layer.channels;
}

/** The cost of the products of a tile. */
double
CostOfProducts(int inputs, int outputs, int tile, const NetworkRates & rates)
{
  const double voxels = static_cast<double>(tile) * tile * tile;
  const int    block = rates.padsOutputs ? GetProductChannels(outputs) : 1;
  const double product = inputs == 1 ? 0.0
                                     : 4.0 * inputs * static_cast<double>(CeilDivide(outputs, block) * block) *
                                         (voxels / 2) / rates.productMultiplyAdds;
  // They move the spectra once more while they compute.
  const double spectra = 4 * voxels * (inputs + outputs);
  const double beside = rates.productTraffic * spectra + rates.productFixed * voxels / 2;
  return std::max(product + (inputs == 1 ? 0.0 : beside), spectra);
}

} // namespace

NetworkRates
GetHostNetworkRates()
{
  NetworkRates rates;
  rates.multiplyAdds = 4;
  rates.productMultiplyAdds = 3.5;
  const double transforms[] = { 1.4, 0, 1.5, 0, 2 };
  std::copy(std::begin(transforms), std::end(transforms), rates.transforms);
  std::fill(std::begin(rates.stores), std::end(rates.stores), 0.0);
  rates.groupBytes = 1.4 * (1 << 30);
  // The inputs' spectra at the frequencies of a cell fit the second cache.
  rates.mostTiles = 64;
  rates.tilesPerGroup = 4;
  rates.padsOutputs = false;
  rates.isInPlace = false;
  rates.leastBytes = 1e9;
  return rates;
}

NetworkRates
GetDeviceNetworkRates(NetworkPrecision precision)
{
  NetworkRates rates;
  rates.multiplyAdds = 4.3;
  rates.planeTaps = 8;
  const bool isHalf = precision == NetworkPrecision::Half;
  rates.productMultiplyAdds = isHalf ? 60 : precision == NetworkPrecision::TensorFloat32 ? 21 : 8;
  rates.productTraffic = isHalf ? 0.5 : 1.7;
  rates.productFixed = isHalf ? 100 : 295;
  rates.spectraMaking = 13.5;
  rates.uploads = 320;
  rates.ofRun = 1.05e10; // 2.6 ms of an H200
  rates.poolingTaps = 0.22;
  return rates;
}

int
GetProductChannels(int outputs)
{
  int best = ChannelsPerProduct;
  int least = 1 << 30;
  for (int channels = ChannelsPerProduct; channels <= 5 * ChannelsPerProduct; channels += ChannelsPerProduct)
  {
    const int all = (outputs + channels - 1) / channels * channels;
    if (all <= least)
    {
      least = all;
      best = channels;
    }
  }
  return best;
}

std::size_t
GetKernelSpectraBytes(int inputs, int outputs, int tile)
{
  const auto block = static_cast<std::size_t>(GetProductChannels(outputs));
  const auto padded = (static_cast<std::size_t>(outputs) + block - 1) / block * block;
  return RoundUp(GetSpectrumBytes(tile) * static_cast<std::size_t>(inputs) *
                 (inputs == 1 ? static_cast<std::size_t>(outputs) : padded));
}

int
GetTileChannels(int inputs, int outputs, const NetworkRates & rates)
{
  const bool isInPlace = rates.isInPlace && outputs <= GetProductChannels(outputs);
  return inputs == 1 ? 1 : isInPlace ? std::max(inputs, outputs) : inputs + outputs;
}

std::size_t
GetTileBytes(int inputs, int outputs, int tile, const NetworkRates & rates)
{
  return GetSpectrumBytes(tile) * static_cast<std::size_t>(GetTileChannels(inputs, outputs, rates));
}

double
CountTiles(const NetworkLayer & layer, const LayerExtent & output, int tile)
{
  double count = 1;
  for (std::size_t a = 0; a < MaxSpatialAxes; ++a)
  {
    const std::int64_t kept = tile - layer.kernel[a] + 1;
    if (kept < 1)
    {
      return 0;
    }
    const std::int64_t grids = std::min(layer.dilation[a], output[a]);
    count *= static_cast<double>(grids * CeilDivide(CeilDivide(output[a], layer.dilation[a]), kept));
  }
  return count;
}

TileChoice
ChooseTile(const NetworkLayer & layer, int inputs, const LayerExtent & output, std::size_t bytes,
           const NetworkRates & rates)
{
  TileChoice best;
  for (const int tile : NetworkTiles)
  {
    const double      count = CountTiles(layer, output, tile);
    const std::size_t kernels = GetKernelSpectraBytes(inputs, layer.channels, tile);
    const std::size_t each = GetTileBytes(inputs, layer.channels, tile, rates);
    if (count < 1 || TransformTimes(tile, rates) <= 0 || kernels + each > bytes)
    {
      continue;
    }
    TileChoice choice;
    choice.tile = tile;
    const auto most = std::min(
      rates.mostTiles, static_cast<std::int64_t>(std::min(static_cast<double>((bytes - kernels) / each), count)));
    const std::int64_t block = rates.tilesPerGroup;
    // Groups of one size, of which products waste nothing.
    const double groups = std::ceil(count / static_cast<double>(most > block ? most / block * block : most));
    const auto   even = static_cast<std::int64_t>(std::ceil(count / groups));
    choice.tilesAtOnce = std::min((even + block - 1) / block * block, most);
    // A block of the products takes as long for few tiles as for all that it has room for.
    const double multiplied = groups * static_cast<double>((choice.tilesAtOnce + block - 1) / block * block);
    choice.cost =
      count * CostOfTransforms(layer, inputs, tile, rates) +
      std::max(count, inputs == 1 ? 0.0 : multiplied) * CostOfProducts(inputs, layer.channels, tile, rates) +
      (groups + rates.spectraMaking) * static_cast<double>(kernels);
    if (best.tile == 0 || choice.cost < best.cost)
    {
      best = choice;
    }
  }
  return best;
}

double
GetTrafficCost(const NetworkGraph & graph, const NetworkLayer & layer, const LayerExtent & output)
{
  double channels = layer.channels;
  for (const int input : layer.inputs)
  {
    channels += graph.GetLayers()[static_cast<std::size_t>(input)].channels;
  }
  return 4 * channels * Product(output);
}

double
GetDirectCost(const NetworkLayer & layer, int inputs, const LayerExtent & output, const NetworkRates & rates)
{
  const double blocks = static_cast<double>(CeilDivide(layer.channels / layer.groups, ChannelsPerBlock)) * layer.groups;
  return Product(output) * (blocks * ChannelsPerBlock * (inputs / layer.groups) * layer.kernel[2] *
                              (layer.kernel[0] * layer.kernel[1] + rates.planeTaps) / rates.multiplyAdds +
                            4.0 * (inputs + layer.channels));
}

namespace
{

/** Whether a part of this size, or of a smaller one, may be faster with transforms: the best that tiles could do. */
bool
MayTransform(const NetworkLayer & layer, int inputs, const LayerExtent & output, const NetworkRates & rates)
{
  double least = 0;
  for (const int tile : NetworkTiles)
  {
    const double kept = CountKept(layer, tile);
    if (kept > 0 && TransformTimes(tile, rates) > 0)
    {
      const double cost =
        (CostOfTransforms(layer, inputs, tile, rates) + CostOfProducts(inputs, layer.channels, tile, rates)) / kept;
      least = least == 0 ? cost : std::min(least, cost);
    }
  }
  const double fixed = static_cast<double>(GetKernelSpectraBytes(inputs, layer.channels, NetworkTiles[0]));
  return least > 0 && GetDirectCost(layer, inputs, output, rates) > Product(output) * least + fixed;
}

/** Beside so many tiles what is read of the kernels' spectra once for all of them is bearable. */
constexpr std::int64_t LeastTilesAtOnce = 64;

/** The smallest tile of which enough is kept. */
int
FindSmallTile(const NetworkLayer & layer, const NetworkRates & rates)
{
  const auto widest = *std::max_element(layer.kernel.begin(), layer.kernel.end());
  for (const int tile : NetworkTiles)
  {
    if (TransformTimes(tile, rates) > 0 && 2 * tile >= 5 * widest)
    {
      return tile;
    }
  }
  return NetworkTiles[std::size(NetworkTiles) - 1];
}

bool
IsSmallPooling(const NetworkLayer & layer)
{
  return (layer.kind == LayerKind::MaximumPooling || layer.kind == LayerKind::AveragePooling) &&
         *std::max_element(layer.kernel.begin(), layer.kernel.end()) <= MostPoolingTaps;
}

/** How results lie: where only transforms and poolings meet, as the grids that the transforms work on. */
void
PlaceFragments(const NetworkGraph & graph, std::vector<NetworkLayerPlan> & plan)
{
  const auto & layers = graph.GetLayers();
  for (std::size_t i = 1; i < layers.size(); ++i)
  {
    const bool transforms = plan[i].transform.tile > 0;
    if ((!transforms && !IsSmallPooling(layers[i])) || static_cast<int>(i) == graph.GetOutput())
    {
      continue;
    }
    LayerExtent wanted{ { 0, 0, 0 } };
    bool        possible = true;
    for (std::size_t j = i + 1; j < layers.size() && possible; ++j)
    {
      const auto & inputs = layers[j].inputs;
      if (std::find(inputs.begin(), inputs.end(), static_cast<int>(i)) == inputs.end() || IsSmallPooling(layers[j]))
      {
        continue;
      }
      possible = plan[j].transform.tile > 0 && (wanted[0] == 0 || wanted == layers[j].dilation);
      wanted = layers[j].dilation;
    }
    if (possible && wanted[0] == 0 && transforms)
    {
      wanted = layers[i].dilation;
    }
    if (possible && wanted[0] != 0 && (!transforms || wanted == layers[i].dilation))
    {
      plan[i].fragments = wanted;
    }
  }
}

} // namespace

TileChoice
ChooseStepTile(const NetworkOperation & operation, std::size_t i, const LayerExtent & part, std::size_t bytes,
               const NetworkRates & ofBackend)
{
  NetworkRates rates = ofBackend;
  rates.onlyTile = operation.tile;
  const NetworkLayer & layer = operation.graph->GetLayers()[i];
  return ChooseTile(layer, InputsOf(*operation.graph, layer), part, bytes, rates);
}

std::vector<NetworkLayerPlan>
PlanNetwork(const NetworkOperation & operation, const std::vector<LayerExtent> & parts, const NetworkRates & ofBackend,
            bool reserve)
{
  NetworkRates rates = ofBackend;
  rates.onlyTile = operation.tile;
  const NetworkGraph &          graph = *operation.graph;
  const auto &                  layers = graph.GetLayers();
  std::vector<NetworkLayerPlan> plan(layers.size());
  if (operation.precision == NetworkPrecision::Reproducible || operation.method == NetworkMethod::Direct ||
      rates.productMultiplyAdds <= 0)
  {
    return plan;
  }
  const int largest = NetworkTiles[std::size(NetworkTiles) - 1];
  for (std::size_t i = 1; i < layers.size(); ++i)
  {
    const NetworkLayer & layer = layers[i];
    if (Product(parts[i]) <= 0 || !HasTransform(layer, parts[i]))
    {
      continue;
    }
    const int  inputs = InputsOf(graph, layer);
    const bool always = operation.method == NetworkMethod::Transforms;
    if (!always && !MayTransform(layer, inputs, parts[i], rates))
    {
      continue;
    }
    const auto        each = static_cast<double>(GetTileBytes(inputs, layer.channels, largest, rates));
    const double      most = std::min(static_cast<double>(rates.mostTiles), std::floor(rates.groupBytes / each));
    const double      tiles = std::max(1.0, std::min(CountTiles(layer, parts[i], largest), most));
    const std::size_t wanted =
      GetKernelSpectraBytes(inputs, layer.channels, largest) + RoundUp(static_cast<std::size_t>(tiles * each));
    const int         small = FindSmallTile(layer, rates);
    const std::size_t least =
      GetKernelSpectraBytes(inputs, layer.channels, small) +
      RoundUp(static_cast<std::size_t>(LeastTilesAtOnce) * GetTileBytes(inputs, layer.channels, small, rates));
    plan[i].transformBytes = std::min(wanted, std::max(least, static_cast<std::size_t>(rates.mostBytes) / 256 * 256));
    const TileChoice choice = ChooseTile(layer, inputs, parts[i], plan[i].transformBytes, rates);
    if (reserve || always || choice.cost < GetDirectCost(layer, inputs, parts[i], rates))
    {
      plan[i].transform = choice;
    }
  }
  PlaceFragments(graph, plan);
  return plan;
}

} // namespace chunkwise
