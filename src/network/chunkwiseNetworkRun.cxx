/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkRun.h"

#include "chunkwiseNetworkChunk.h"

#include <algorithm>
#include <cmath>
#include <limits>
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

/** The values that layers need beside their inputs, in the backend's memory. */
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

KeptPlanes
GetKeptPlanes(const KernelCall & call)
{
  return call.sideOut ? KeptPlanes::Spilled : KeptPlanes::InScratch;
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
    // Stores of the layer before may stay pending, unless they read from this place.
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

namespace
{

/** A network's run on one chunk. */
class NetworkRunner
{
public:
  NetworkRunner(const KernelCall & call, NetworkBackend & backend, const NetworkHead * head)
    : m_Call(call)
    , m_Operation(static_cast<const NetworkOperation &>(*call.operation))
    , m_Graph(*m_Operation.graph)
    , m_Layers(m_Graph.GetLayers())
    , m_Backend(backend)
    , m_Head(head)
    , m_Planes(head ? KeptPlanes::InScratch : GetKeptPlanes(call))
    , m_Meeting(head ? static_cast<std::size_t>(m_Operation.headLayers) : 0)
    , m_OutputLayer(static_cast<std::size_t>(m_Graph.GetOutput()))
    , m_Layout(m_Operation, call.output.box, call.image, backend.GetRates(), m_Planes,
               head ? NetworkSide::Tail : NetworkSide::Whole)
    , m_HeadLayout(m_Operation, call.output.box, call.image, this->HeadBackend().GetRates(), KeptPlanes::InScratch,
                   head ? NetworkSide::Head : NetworkSide::Whole)
    , m_Copies(backend, m_Planes)
    , m_CopiesOfHead(this->HeadBackend(), KeptPlanes::InScratch)
  {
    const bool         isDense = m_Operation.mode == NetworkMode::Dense;
    const Box          part = isDense ? call.output.box : WindowBox(m_Operation);
    const LayerExtent  input = isDense ? m_Graph.GetInputExtent(SpatialPart(call.image.Extents())) : m_Operation.patch;
    const NetworkRates rates = m_Layout.Limit(backend.GetRates());
    const NetworkRates headRates = m_HeadLayout.Limit(this->HeadBackend().GetRates());
    const auto         whole = m_Graph.GetExtents(input);
    m_Chunk = PlanChunk(m_Operation, part, whole, call.image, rates, head ? &headRates : nullptr);
    m_Bounds = FindSlabBounds(m_Chunk.march);
    this->PlaceLayers(whole);
    this->UploadValues();
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      m_AxisWeights[a] = MakeWindowWeights(m_Operation.patch[a], m_Operation.weighting);
    }
  }

  void
  Run();

private:
  NetworkBackend &
  HeadBackend() const
  {
    return m_Head ? *m_Head->backend : m_Backend;
  }
  /** The layer's result lies in the host's memory. */
  bool
  LiesInHead(std::size_t i) const
  {
    return m_Head && i < m_Meeting;
  }
  /** The host computes the layer before which its results end, too. */
  NetworkBackend &
  BackendOf(std::size_t i) const
  {
    return m_Head && i <= m_Meeting ? *m_Head->backend : m_Backend;
  }
  bool
  MustStop() const
  {
    return m_Backend.ShouldStop() || (m_Head && m_Head->backend->ShouldStop());
  }

  void
  PlaceLayers(const std::vector<LayerExtent> & whole);
  void
  UploadValues();
  /** One step; gives what it computed of the result. Layers that lie in the padding alone are not used. */
  Tensor
  RunStep(std::size_t s, const Coordinates & where, const LayerExtent & shift, double share);
  /** Computes what step `s` has to compute of layer `i`, `out` of its tensor. */
  void
  ComputeLayer(std::size_t s, std::size_t i, const std::vector<Tensor> & tensors, const Tensor & out,
               const Coordinates & where, const LayerExtent & shift, double share);
  /** Memory of the host for what a step computes of the layer where head and tail meet. */
  Tensor
  Exchange(std::size_t s, const NetworkSlabLayer & layer) const;
  /** For windows: the sums of all channels, and of their weights. */
  Tensor
  MakeSums() const;
  /** False: stopped. */
  bool
  RunWindows(const Tensor & sums, const Coordinates & where, double images);
  /** False: stopped. */
  bool
  RunImage(const Coordinates & at, double images);
  void
  Store(const Tensor & result, const Coordinates & at) const;
  /** The axis of the output along which one run gives all channels; -1: none. */
  int
  GetChannelAxis() const
  {
    return m_Operation.result == NetworkResult::AllChannels ? m_Operation.channelAxis : -1;
  }

  const KernelCall &                m_Call;
  const NetworkOperation &          m_Operation;
  const NetworkGraph &              m_Graph;
  const std::vector<NetworkLayer> & m_Layers;
  NetworkBackend &                  m_Backend;
  const NetworkHead * const         m_Head;
  const KeptPlanes                  m_Planes;
  const std::size_t                 m_Meeting; ///< layers before this one lie in the host's memory
  const std::size_t                 m_OutputLayer;
  const NetworkLayout               m_Layout;
  const NetworkLayout               m_HeadLayout;
  NetworkChunkPlan                  m_Chunk;
  std::vector<NetworkSlabBound>     m_Bounds;
  std::vector<Tensor>               m_Memory; ///< all that steps have for a layer
  std::vector<Tensor>               m_Kept;   ///< and for what they hand on
  std::vector<LayerValues>          m_Values;
  double                            m_AllWork{ 0 };
  std::vector<float>                m_AxisWeights[MaxSpatialAxes]; ///< of windows
  PlaneCopies                       m_Copies;
  PlaneCopies                       m_CopiesOfHead;
  int                               m_Arrivals[2]{ -1, -1 };
};

void
NetworkRunner::PlaceLayers(const std::vector<LayerExtent> & whole)
{
  const auto place = [](Tensor & tensor, std::int64_t room, void * memory, std::size_t offset) {
    const std::int64_t f = tensor.fragments[2];
    tensor.room = (room + f - 1) / f * f;
    tensor.data = reinterpret_cast<float *>(static_cast<char *>(memory) + offset);
    return static_cast<std::size_t>(tensor.channels * tensor.ChannelLength()) * sizeof(float);
  };
  m_Memory.resize(m_Layers.size());
  m_Kept.resize(m_Layers.size());
  for (std::size_t i = 0; i < m_Layers.size(); ++i)
  {
    Tensor & tensor = m_Memory[i];
    tensor.channels = m_Layers[i].channels;
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      tensor.lower[a] = m_Chunk.ranges[i].lower[a];
      tensor.extent[a] = m_Chunk.ranges[i].upper[a] - m_Chunk.ranges[i].lower[a];
      tensor.whole[a] = whole[i][a];
      tensor.fragments[a] = m_Chunk.plan[i].fragments[a];
    }
    m_Kept[i] = tensor;
    const NetworkLayout & own = this->LiesInHead(i) ? m_HeadLayout : m_Layout;
    void * const          scratch = this->LiesInHead(i) ? m_Head->call->scratch : m_Call.scratch;
    void * const          keptMemory = m_Planes == KeptPlanes::Spilled ? m_Call.sideOut : scratch;
    if (place(tensor, m_Bounds[i].held, scratch, own.offsets[i]) > own.sizes[i] ||
        place(m_Kept[i], m_Bounds[i].kept, keptMemory, own.kept[i]) > own.kept[i + 1] - own.kept[i])
    {
      throw std::logic_error("network: layer " + std::to_string(i) + " needs more memory than was planned");
    }
  }
}

void
NetworkRunner::UploadValues()
{
  m_Values.resize(m_Layers.size());
  for (std::size_t i = 1; i < m_Layers.size(); ++i)
  {
    if (m_Bounds[i].computed == 0)
    {
      continue;
    }
    const auto constants = GetNetworkValues(m_Layers[i]);
    for (std::size_t k = 0; k < constants.size(); ++k)
    {
      const std::string key = "network " + m_Graph.GetKey() + ' ' + std::to_string(i) + ' ' + std::to_string(k);
      m_Values[i][k] = constants[k] ? this->BackendOf(i).Upload(key, *constants[k]) : nullptr;
    }
    for (std::size_t s = 0; s < m_Chunk.march.size(); ++s)
    {
      m_AllWork += MultiplyAddsOf(m_Graph, m_Layers[i], m_Chunk.PartOf(s, i));
    }
  }
}

Tensor
NetworkRunner::RunStep(std::size_t s, const Coordinates & where, const LayerExtent & shift, double share)
{
  std::vector<Tensor> tensors = m_Memory;
  Tensor              result{};
  for (std::size_t i = 0; i < m_Layers.size() && !this->MustStop(); ++i)
  {
    const NetworkSlabLayer & layer = m_Chunk.march[s][i];
    Tensor &                 tensor = tensors[i];
    if (!layer.isUsed || tensor.VoxelsPerChannel() == 0)
    {
      continue;
    }
    tensor.lower[2] = layer.held;
    tensor.extent[2] = layer.upper - layer.held;
    PlaneCopies & copies = this->LiesInHead(i) ? m_CopiesOfHead : m_Copies;
    copies.Enter(m_Layout.offsets[i]);
    if (const std::int64_t upper = layer.GetFetchedUpper(); layer.kept < upper)
    {
      m_Kept[i].lower[2] = layer.kept;
      copies.Fetch(m_Kept[i].Planes(layer.kept, upper), tensor.Planes(layer.kept, upper));
    }
    if (layer.IsComputed())
    {
      const Tensor out = tensor.Planes(layer.lower, layer.upper);
      this->ComputeLayer(s, i, tensors, out, where, shift, share);
      result = i == m_OutputLayer ? out : result;
    }
    copies.AwaitFetched();
    if (layer.next < layer.upper && (layer.IsComputed() || layer.next != layer.kept))
    {
      m_Kept[i].lower[2] = layer.next;
      copies.Store(tensor.Planes(layer.next, layer.upper), m_Kept[i].Planes(layer.next, layer.upper));
    }
  }
  return result;
}

void
NetworkRunner::ComputeLayer(std::size_t s, std::size_t i, const std::vector<Tensor> & tensors, const Tensor & out,
                            const Coordinates & where, const LayerExtent & shift, double share)
{
  const bool   isMet = m_Head && i == m_Meeting;
  const Tensor own = isMet ? this->Exchange(s, m_Chunk.march[s][i]) : out;
  int &        arrival = m_Arrivals[s % 2];
  if (isMet && arrival >= 0)
  {
    m_Backend.FinishCopy(arrival);
  }
  NetworkBackend & backend = this->BackendOf(i);
  if (i == 0)
  {
    backend.Load(own, shift, where);
  }
  else
  {
    for (const Step & step : MakeSteps(m_Layers[i], m_Values[i], tensors, own, i))
    {
      backend.Run(step, m_Chunk.tiles[s][i]);
    }
    backend.AddProgress(MultiplyAddsOf(m_Graph, m_Layers[i], m_Chunk.PartOf(s, i)) / m_AllWork * share);
  }
  if (isMet)
  {
    arrival = m_Backend.StartCopy(own, out);
    m_Backend.AwaitCopy(arrival);
  }
}

Tensor
NetworkRunner::Exchange(std::size_t s, const NetworkSlabLayer & layer) const
{
  Tensor tensor = m_Memory[m_Meeting];
  tensor.data = reinterpret_cast<float *>(static_cast<char *>(m_Call.sideOut) + s % 2 * m_Layout.exchangeBytes);
  tensor.room = m_Bounds[m_Meeting].computed;
  tensor.lower[2] = layer.lower;
  tensor.extent[2] = layer.upper - layer.lower;
  return tensor;
}

Tensor
NetworkRunner::MakeSums() const
{
  const Box & output = m_Call.output.box;
  Tensor      sums{};
  sums.data = reinterpret_cast<float *>(static_cast<char *>(m_Call.scratch) + m_Layout.sums);
  sums.channels = m_Graph.GetNumberOfOutputChannels() + 1;
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    sums.lower[a] = output.lower[a];
    sums.extent[a] = output.Extent(a);
    sums.whole[a] = m_Call.image.Extent(a);
    sums.fragments[a] = 1;
  }
  sums.room = sums.extent[2];
  return sums;
}

bool
NetworkRunner::RunWindows(const Tensor & sums, const Coordinates & where, double images)
{
  m_Backend.Clear(sums);
  const Box &               output = m_Call.output.box;
  std::vector<std::int64_t> starts[MaxSpatialAxes];
  const float *             weights[MaxSpatialAxes];
  double                    windows = 1;
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    for (const std::int64_t start : m_Operation.GetPatchStarts(a, m_Call.image.Extent(a)))
    {
      if (start < output.upper[a] && start + m_Operation.patch[a] > output.lower[a])
      {
        starts[a].push_back(start);
      }
    }
    windows *= static_cast<double>(starts[a].size());
    weights[a] = m_Backend.Upload("network window " + std::to_string(static_cast<int>(m_Operation.weighting)) + ' ' +
                                    std::to_string(m_Operation.patch[a]),
                                  m_AxisWeights[a]);
  }
  for (const std::int64_t z : starts[2])
  {
    for (const std::int64_t y : starts[1])
    {
      for (const std::int64_t x : starts[0])
      {
        const Tensor result = this->RunStep(0, where, { { -x, -y, -z } }, 1.0 / (images * windows));
        if (m_Backend.ShouldStop())
        {
          return false;
        }
        m_Backend.AddWindow(result, sums, { { x, y, z } }, weights);
      }
    }
  }
  m_Backend.DivideSums(sums);
  return !m_Backend.ShouldStop();
}

bool
NetworkRunner::RunImage(const Coordinates & at, double images)
{
  if (m_Operation.mode == NetworkMode::Patches)
  {
    Tensor sums = this->MakeSums();
    if (!this->RunWindows(sums, at, images))
    {
      return false;
    }
    --sums.channels;
    this->Store(sums, at);
    return true;
  }
  for (std::size_t s = 0; s < m_Chunk.march.size(); ++s)
  {
    const Tensor result = this->RunStep(s, at, m_Graph.GetLowerMargin(), 1.0 / images);
    if (this->MustStop())
    {
      return false;
    }
    if (m_Chunk.march[s][m_OutputLayer].IsComputed())
    {
      this->Store(result, at);
    }
  }
  return true;
}

void
NetworkRunner::Store(const Tensor & result, const Coordinates & at) const
{
  const int channelAxis = this->GetChannelAxis();
  if (channelAxis < 0)
  {
    m_Backend.Store(result, at, m_Operation.channel);
    return;
  }
  Coordinates place = at;
  for (; place[channelAxis] < m_Call.output.box.upper[channelAxis]; ++place[channelAxis])
  {
    m_Backend.Store(result, place, static_cast<int>(place[channelAxis]));
  }
}

void
NetworkRunner::Run()
{
  const Box &  output = m_Call.output.box;
  const double images = NumberOfImages(m_Operation, output);
  Coordinates  end = output.upper;
  if (const int channelAxis = this->GetChannelAxis(); channelAxis >= 0)
  {
    end[channelAxis] = output.lower[channelAxis] + 1;
  }
  Coordinates at = output.lower;
  for (at[4] = output.lower[4]; at[4] < end[4]; ++at[4])
  {
    for (at[3] = output.lower[3]; at[3] < end[3]; ++at[3])
    {
      if (!this->RunImage(at, images))
      {
        return;
      }
    }
  }
  m_Copies.AwaitStored();
}

} // namespace

void
RunNetwork(const KernelCall & call, NetworkBackend & backend, const NetworkHead * head)
{
  NetworkRunner(call, backend, head).Run();
}

} // namespace chunkwise
