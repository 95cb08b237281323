/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNetworkChunk_h
#define chunkwiseNetworkChunk_h

#include "chunkwiseNetworkMarch.h"
#include "chunkwiseNetworkRun.h"

// The parts of a chunk of a network's output, and how each is computed: a pure function of shapes and rates.

namespace chunkwise
{

inline LayerExtent
SpatialPart(const Coordinates & extent)
{
  return { { extent[0], extent[1], extent[2] } };
}

/** A window as a separate image. */
inline Box
WindowBox(const NetworkOperation & operation)
{
  return Box::FromExtent({ { operation.patch[0], operation.patch[1], operation.patch[2], 1, 1 } });
}

double
MultiplyAddsOf(const NetworkGraph & graph, const NetworkLayer & layer, const LayerExtent & part);

/** How often the network is run for an output: once for each place along the axes that have neither space nor channels.
 */
double
NumberOfImages(const NetworkOperation & operation, const Box & output);

/** The plan of a chunk: its steps, and how each step computes each layer. */
struct NetworkChunkPlan
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

/** `ofHead`: rates of the backend that computes the first layers. */
NetworkChunkPlan
PlanChunk(const NetworkOperation & operation, const Box & output, const std::vector<LayerExtent> & whole,
          const Box & image, NetworkRates rates, const NetworkRates * ofHead = nullptr);

/** The places of the layers' results. Layers share memory where no two are needed at a time; which ones depends on no
 * chunk, so that the memory does not shrink when the chunk grows. */
class NetworkLayout
{
public:
  NetworkLayout(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates,
                KeptPlanes planes, NetworkSide side = NetworkSide::Whole);

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
  /** Memory that layers share: a slot has one layer after the other. */
  struct Slots
  {
    std::vector<std::size_t> ofLayer;
    std::vector<std::size_t> bytes;
  };
  /** The most that chunks need of each layer. */
  struct Needs
  {
    std::vector<LayerExtent> computed; ///< by a step
    std::vector<LayerExtent> held;
    std::vector<LayerExtent> handed; ///< from one step to the next
  };

  void
  Place(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates,
        KeptPlanes planes, NetworkSide side);
  static Needs
  FindNeeds(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates,
            NetworkSide side);
  /** Slots of layers `first` to `end`, which have so many bytes each. */
  static Slots
  ShareSlots(const NetworkGraph & graph, const std::vector<std::size_t> & bytes, std::size_t first, std::size_t end);
};

} // namespace chunkwise

#endif
