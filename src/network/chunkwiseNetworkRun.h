/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNetworkRun_h
#define chunkwiseNetworkRun_h

#include "chunkwiseNetworkPlan.h"
#include "chunkwiseNetworkVoxels.h"
#include "chunkwisePipedCall.h"

#include <functional>
#include <memory>
#include <vector>

namespace chunkwise
{

/** The work of a backend for a network on one chunk. */
class NetworkBackend
{
public:
  virtual ~NetworkBackend();
  virtual const NetworkRates &
  GetRates() const = 0;
  /** A copy of `values` in the backend's memory, valid for the run. Called once for each layer's values. */
  virtual const float *
  Upload(const std::string & key, const std::vector<float> & values) = 0;
  /** Fills `tensor`, the input, from the call's images. Index i of it is the image's i - shift; `at` says where along
   * the axes that are not spatial. */
  virtual void
  Load(const network::Tensor & tensor, const LayerExtent & shift, const Coordinates & at) = 0;
  /** `tile` is for a convolution by transforms, else its `tile` is 0. */
  virtual void
  Run(const network::Step & step, const TileChoice & tile) = 0;
  /** Makes the output's voxels from the network's result, for the box that `tensor` has. `channel` is for results of
   * one channel. */
  virtual void
  Store(const network::Tensor & tensor, const Coordinates & at, int channel) = 0;
  /** Copies planes of a tensor to where they are in another one. */
  virtual void
  Copy(const network::Tensor & from, const network::Tensor & to) = 0;
  /** The same from or to memory of the host, beside what is asked for afterwards: it begins when all is done that was
   * asked for before. Gives its number. */
  virtual int
  StartCopy(const network::Tensor & from, const network::Tensor & to);
  /** Work that is asked for from now on begins when this copy, and all copies that were started before in its
   * direction, are done.
   * The copy must be among the last two in its direction. */
  virtual void
  AwaitCopy(int number);
  /** Returns when this copy is done. */
  virtual void
  FinishCopy(int number);
  /** Fills a tensor with 0. */
  virtual void
  Clear(const network::Tensor & tensor) = 0;
  /** Adds a window's result, times its weights, to the sums of the channels, and the weights to one channel more. The
   * window's index 0 is index `lower` of the sums; `weights`: along each axis of the window, by Upload. */
  virtual void
  AddWindow(const network::Tensor & result, const network::Tensor & sums, const LayerExtent & lower,
            const float * const (&weights)[MaxSpatialAxes]) = 0;
  /** Divides the sums of all channels by their last one. */
  virtual void
  DivideSums(const network::Tensor & sums) = 0;
  /** The caller asked for an end. */
  virtual bool
  ShouldStop() const = 0;
  /** A part of the chunk's work is done. */
  virtual void
  AddProgress(double fraction) = 0;
};

/** Weights, bias and slopes: what a layer needs beside its inputs. */
constexpr int NetworkLayerValues = 3;

/** In that order; nullptr for what it has not. */
std::array<std::shared_ptr<const std::vector<float>>, NetworkLayerValues>
GetNetworkValues(const NetworkLayer & layer);

/** The place of the planes that steps hand on: with the results of layers, or in the host's memory. */
enum class KeptPlanes
{
  InScratch,
  Spilled
};

/** The layers that one backend computes: all of them, or where NetworkOperation::headLayers says so the first ones, or
 * the others. */
enum class NetworkSide
{
  Whole,
  Head,
  Tail
};

/** Memory of a run; no part of it shrinks when the chunk grows. */
struct NetworkBytes
{
  std::size_t results;    ///< of all layers that are needed at a time
  std::size_t transforms; ///< spectra of the layer that needs most
  std::size_t spilled;    ///< planes in the host's memory; of a tail what two steps of its head give
};
NetworkBytes
GetNetworkBytes(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates,
                KeptPlanes planes = KeptPlanes::InScratch, NetworkSide side = NetworkSide::Whole);

/** The cost of a chunk, as the bytes of memory traffic that take as long as its arithmetic. */
double
GetNetworkCost(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates,
               KeptPlanes planes = KeptPlanes::InScratch, NetworkSide side = NetworkSide::Whole);

/** Slabs of a piped chunk: while the tail computes one, the head is at the next. */
double
CountPipedSlabs(const NetworkOperation & operation, const Box & output, const Box & image, const NetworkRates & rates);

/** How often the time of a plan with spilled planes counts beside that of one without, see chunkwiseSpilledMemory.h. */
double
GetWeightOfSpilling(const NetworkOperation & operation);
bool
MaySpill(const NetworkOperation & operation);

/** The place of the planes that a call keeps. */
KeptPlanes
GetKeptPlanes(const KernelCall & call);

/** The CPU's backend for the first layers, and its call. */
struct NetworkHead
{
  NetworkBackend *   backend;
  const KernelCall * call;
};

/** Runs all layers on a chunk. The results lie at call.scratch, at call.sideOut spilled planes, or what the head gives,
 * whose own results lie at its call's scratch. */
void
RunNetwork(const KernelCall & call, NetworkBackend & backend, const NetworkHead * head = nullptr);

/** The tail of a network, which a head's kernel finds at call.sideIn, and calls with its backend. */
using NetworkTail = std::function<void(NetworkHead head)>;

/** Runs a piped call (chunkwiseSpilledMemory.h): `runTail` runs the network on its backend with this head. */
void
RunPiped(const KernelCall & call, const NetworkTail & runTail);
} // namespace chunkwise

#endif
