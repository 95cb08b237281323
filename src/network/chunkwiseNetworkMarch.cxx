/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkMarch.h"

#include <algorithm>
#include <limits>

namespace chunkwise
{

namespace
{

constexpr int          Axis = 2;
constexpr std::int64_t Never = std::numeric_limits<std::int64_t>::max();

/** Up to where each layer is needed for the output up to `upper`, wherever the image ends. */
std::vector<std::int64_t>
FindUppers(const NetworkGraph & graph, std::int64_t upper)
{
  const auto &              layers = graph.GetLayers();
  std::vector<std::int64_t> uppers(layers.size(), -Never);
  uppers[static_cast<std::size_t>(graph.GetOutput())] = upper;
  for (std::size_t i = layers.size(); i-- > 0;)
  {
    for (const int input : layers[i].inputs)
    {
      if (uppers[i] > -Never)
      {
        std::int64_t first = uppers[i] - 1;
        std::int64_t end = uppers[i];
        graph.GetNeeded(layers[i], Axis, first, end);
        std::int64_t & of = uppers[static_cast<std::size_t>(input)];
        of = std::max(of, end);
      }
    }
  }
  return uppers;
}

} // namespace

std::vector<NetworkSlab>
MakeNetworkMarch(const NetworkGraph & graph, const std::vector<NetworkGraph::Range> & ranges, std::int64_t slab,
                 const std::vector<std::int64_t> & fragments, bool isBound)
{
  const auto &      layers = graph.GetLayers();
  const std::size_t n = layers.size();
  const auto &      output = ranges[static_cast<std::size_t>(graph.GetOutput())];
  const auto        isNeeded = [&](std::size_t i) { return ranges[i].lower[Axis] < ranges[i].upper[Axis]; };

  // Up to where layers are computed by each step: the last ones first.
  std::vector<std::vector<std::int64_t>> uppers(1);
  for (std::size_t i = 0; i < n; ++i)
  {
    uppers[0].push_back(ranges[i].upper[Axis]);
  }
  bool isMore = slab > 0;
  for (std::int64_t end =
         output.lower[Axis] + (output.upper[Axis] - 1 - output.lower[Axis]) / std::max<std::int64_t>(slab, 1) * slab;
       isMore;
       end -= slab)
  {
    auto reached = FindUppers(graph, end);
    isMore = false;
    for (std::size_t i = 0; i < n; ++i)
    {
      reached[i] = std::min(reached[i], ranges[i].upper[Axis]);
      isMore = isMore || (isNeeded(i) && reached[i] > ranges[i].lower[Axis]);
    }
    if (isMore)
    {
      uppers.push_back(std::move(reached));
    }
  }
  std::reverse(uppers.begin(), uppers.end());

  // Tensors begin at multiples of their fragments.
  const auto begin = [&](std::size_t i, std::int64_t plane) {
    const std::int64_t f = fragments[i];
    const std::int64_t lower = ranges[i].lower[Axis];
    return std::max(lower, isBound ? plane - (f - 1) : lower + (plane - lower) / f * f);
  };
  std::vector<NetworkSlab> march(uppers.size(), NetworkSlab(n));
  for (std::size_t i = 0; i < n; ++i)
  {
    std::int64_t before = ranges[i].lower[Axis];
    for (std::size_t s = 0; s < march.size() && isNeeded(i); ++s)
    {
      NetworkSlabLayer & layer = march[s][i];
      layer.keptUpper = before;
      layer.upper = std::max(before, uppers[s][i]);
      layer.lower = layer.upper > before ? begin(i, before) : layer.upper;
      layer.isUsed = layer.IsComputed();
      before = layer.upper;
    }
  }
  std::vector<std::int64_t> later(n, Never);
  for (std::size_t s = march.size(); s-- > 0;)
  {
    NetworkSlab & step = march[s];
    for (std::size_t i = 0; i < n; ++i)
    {
      step[i].next = later[i];
    }
    for (std::size_t i = 1; i < n; ++i)
    {
      for (const int input : layers[i].inputs)
      {
        const auto from = static_cast<std::size_t>(input);
        if (step[i].IsComputed())
        {
          std::int64_t first = step[i].lower;
          std::int64_t end = step[i].upper;
          graph.GetNeeded(layers[i], Axis, first, end);
          later[from] = std::min(later[from], begin(from, std::max(first, ranges[from].lower[Axis])));
          step[from].isUsed = true;
        }
      }
    }
    for (std::size_t i = 0; i < n; ++i)
    {
      step[i].kept = later[i];
      step[i].held = std::min(step[i].kept, step[i].lower);
    }
  }
  return march;
}

std::vector<NetworkSlabBound>
FindSlabBounds(const std::vector<NetworkSlab> & march)
{
  std::vector<NetworkSlabBound> bounds(march.front().size());
  for (const NetworkSlab & step : march)
  {
    for (std::size_t i = 0; i < step.size(); ++i)
    {
      const NetworkSlabLayer & layer = step[i];
      if (layer.isUsed)
      {
        bounds[i].computed = std::max(bounds[i].computed, layer.upper - layer.lower);
        bounds[i].held = std::max(bounds[i].held, layer.upper - layer.held);
      }
      bounds[i].kept = std::max(bounds[i].kept, layer.upper - std::min(layer.next, layer.upper));
    }
  }
  return bounds;
}

void
TakeLargest(std::vector<NetworkSlabBound> & most, const std::vector<NetworkSlabBound> & bounds)
{
  for (std::size_t i = 0; i < most.size(); ++i)
  {
    most[i].computed = std::max(most[i].computed, bounds[i].computed);
    most[i].held = std::max(most[i].held, bounds[i].held);
    most[i].kept = std::max(most[i].kept, bounds[i].kept);
  }
}

namespace
{

bool
AreEqual(const std::vector<NetworkSlabBound> & a, const std::vector<NetworkSlabBound> & b)
{
  return std::equal(a.begin(), a.end(), b.begin(), [](const NetworkSlabBound & x, const NetworkSlabBound & y) {
    return x.computed == y.computed && x.held == y.held && x.kept == y.kept;
  });
}

} // namespace

std::vector<NetworkSlabBound>
FindSlabBounds(const NetworkGraph & graph, std::int64_t slab)
{
  const auto &                    layers = graph.GetLayers();
  const std::vector<std::int64_t> none(layers.size(), 1);
  std::vector<std::int64_t>       own = none;
  for (std::size_t i = 0; i < layers.size(); ++i)
  {
    own[i] = std::max(own[i], layers[i].dilation[Axis]);
  }
  std::vector<std::int64_t> largest = own;
  for (const NetworkLayer & layer : layers)
  {
    for (const int input : layer.inputs)
    {
      std::int64_t & of = largest[static_cast<std::size_t>(input)];
      of = std::max(of, layer.dilation[Axis]);
    }
  }
  // The output is so long that no step at its ends is larger than those between.
  const auto         one = graph.GetRanges({ { { 0, 0, 0 } }, { { 1, 1, 1 } } }, nullptr);
  const std::int64_t stride = graph.GetTotalStride()[Axis];
  const std::int64_t longest = slab + stride + one[0].upper[Axis] - one[0].lower[Axis];
  const bool         isCut =
    std::any_of(one.begin(), one.end(), [](const NetworkGraph::Range & range) { return range.lower[Axis] < 0; });
  const auto find = [&](std::int64_t at, const std::vector<std::int64_t> & fragments, bool isBound) {
    const auto ranges = graph.GetRanges({ { { 0, 0, at } }, { { 1, 1, at + 2 * longest + 2 * slab } } }, nullptr);
    return FindSlabBounds(MakeNetworkMarch(graph, ranges, slab, fragments, isBound));
  };
  if (stride == 1 && !isCut)
  {
    // All chunks march alike but for where their last step ends.
    const auto bounds = find(0, none, false);
    if (AreEqual(bounds, find(0, own, false)) && AreEqual(bounds, find(0, largest, false)))
    {
      return bounds;
    }
  }
  std::vector<NetworkSlabBound> most(layers.size());
  for (std::int64_t at = 0; at < stride; ++at)
  {
    TakeLargest(most, find(at, largest, true));
  }
  return most;
}

} // namespace chunkwise
