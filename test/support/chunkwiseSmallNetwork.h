/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSmallNetwork_h
#define chunkwiseSmallNetwork_h

#include "chunkwiseNetworkGraph.h"

namespace chunkwise
{

/** A network of three channels for tests that need one: it pads, goes to a coarser grid and back, and looks seven
 * voxels around. */
inline std::shared_ptr<const NetworkGraph>
MakeSmallNetwork(int inputChannels = 1)
{
  const auto weights = [](std::size_t count) {
    auto values = std::make_shared<std::vector<float>>(count);
    for (std::size_t i = 0; i < count; ++i)
    {
      (*values)[i] = 0.05f * static_cast<float>(i * 7 % 11) - 0.2f;
    }
    return values;
  };
  const auto   graph = std::make_shared<NetworkGraph>();
  NetworkLayer layer;
  layer.channels = inputChannels;
  graph->Add(layer);

  layer = NetworkLayer();
  layer.kind = LayerKind::Convolution;
  layer.inputs = { 0 };
  layer.channels = 2;
  layer.kernel = { { 3, 3, 3 } };
  layer.padLower = layer.padUpper = { { 1, 1, 1 } };
  layer.weights = weights(static_cast<std::size_t>(54 * inputChannels));
  layer.activation.kind = ActivationKind::Relu;
  const int first = graph->Add(layer);

  NetworkLayer pool;
  pool.kind = LayerKind::MaximumPooling;
  pool.inputs = { first };
  pool.kernel = pool.stride = { { 2, 2, 2 } };
  NetworkLayer up;
  up.kind = LayerKind::NearestUpsampling;
  up.inputs = { graph->Add(pool) };
  up.stride = { { 2, 2, 2 } };
  NetworkLayer join;
  join.kind = LayerKind::Concatenation;
  join.inputs = { first, graph->Add(up) };

  layer.inputs = { graph->Add(join) };
  layer.channels = 3;
  layer.weights = weights(3 * 4 * 27);
  layer.activation.kind = ActivationKind::None;
  graph->SetOutput(graph->Add(layer));
  graph->Finish();
  return graph;
}

} // namespace chunkwise

#endif
