/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkGraph.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iomanip>
#include <numeric>
#include <sstream>

namespace chunkwise
{

namespace
{

/** No kernel, stride or number of channels is larger: products of a few of them stay within 64 bits. */
constexpr std::int64_t LargestSize = std::int64_t{ 1 } << 20;

std::int64_t
DivideDown(std::int64_t a, std::int64_t b)
{
  return a / b - (a % b < 0 ? 1 : 0);
}

std::int64_t
DivideUp(std::int64_t a, std::int64_t b)
{
  return -DivideDown(-a, b);
}

bool
HasWindow(LayerKind kind)
{
  return kind == LayerKind::Convolution || kind == LayerKind::MaximumPooling || kind == LayerKind::AveragePooling;
}

bool
IsUpsampling(LayerKind kind)
{
  return kind == LayerKind::TransposedConvolution || kind == LayerKind::NearestUpsampling ||
         kind == LayerKind::LinearUpsampling;
}

bool
HasWeights(LayerKind kind)
{
  return kind == LayerKind::Convolution || kind == LayerKind::TransposedConvolution || kind == LayerKind::Scaling ||
         kind == LayerKind::InstanceNormalization;
}

bool
TakesTwo(LayerKind kind)
{
  return kind == LayerKind::Sum || kind == LayerKind::Difference || kind == LayerKind::Product ||
         kind == LayerKind::Quotient;
}

[[noreturn]] void
Refuse(const NetworkLayer & layer, const std::string & why)
{
  throw ParameterError("network: layer " + (layer.name.empty() ? std::string(LayerKindName(layer.kind)) : layer.name) +
                       ": " + why);
}

void
CheckValues(const NetworkLayer & layer, const char * name, const std::vector<float> & values, std::int64_t count)
{
  if (static_cast<std::int64_t>(values.size()) != count)
  {
    Refuse(layer,
           std::string(name) + ": " + std::to_string(values.size()) + " numbers where " + std::to_string(count) +
             " are needed");
  }
  for (const float value : values)
  {
    if (!std::isfinite(value))
    {
      Refuse(layer, std::string(name) + ": a number is not finite");
    }
  }
}

/** Sizes and padding along each axis. */
void
CheckSizes(const NetworkLayer & layer)
{
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    for (const std::int64_t size : { layer.kernel[a], layer.stride[a], layer.dilation[a] })
    {
      if (size < 1 || size > LargestSize)
      {
        Refuse(layer,
               "a kernel, stride or dilation of " + std::to_string(size) + " along axis " + std::to_string(a) +
                 " is not between 1 and " + std::to_string(LargestSize));
      }
    }
    const std::int64_t least = layer.kind == LayerKind::TransposedConvolution ? -layer.stride[a] : 0;
    for (const std::int64_t size : { layer.padLower[a], layer.padUpper[a] })
    {
      if (size < least || size > LargestSize)
      {
        Refuse(layer,
               "padding of " + std::to_string(size) + " along axis " + std::to_string(a) + " is not between " +
                 std::to_string(least) + " and " + std::to_string(LargestSize));
      }
    }
    // Nothing has no largest voxel and no mean.
    const bool takesThoseInside =
      layer.kind == LayerKind::MaximumPooling || (layer.kind == LayerKind::AveragePooling && !layer.countsPadding);
    if (takesThoseInside && std::max(layer.padLower[a], layer.padUpper[a]) > layer.dilation[a] * (layer.kernel[a] - 1))
    {
      Refuse(layer, "padding along axis " + std::to_string(a) + " leaves windows without a voxel");
    }
  }
}

/** Weights and bias of a layer whose input has `before` channels. */
void
CheckWeights(const NetworkLayer & layer, int before)
{
  std::int64_t size = layer.channels;
  if (layer.kind != LayerKind::Scaling && layer.kind != LayerKind::InstanceNormalization)
  {
    if (layer.groups < 1 || before % layer.groups != 0 || layer.channels % layer.groups != 0)
    {
      Refuse(layer,
             std::to_string(layer.groups) + " groups do not divide " + std::to_string(before) + " and " +
               std::to_string(layer.channels) + " channels");
    }
    size = static_cast<std::int64_t>(before) * layer.channels / layer.groups;
    for (const std::int64_t k : layer.kernel)
    {
      if (size > (std::int64_t{ 1 } << 40) / k)
      {
        Refuse(layer, "its kernel is too large");
      }
      size *= k;
    }
  }
  if (!layer.weights)
  {
    Refuse(layer, "it has no weights");
  }
  CheckValues(layer, "weights", *layer.weights, size);
  if (layer.bias)
  {
    CheckValues(layer, "bias", *layer.bias, layer.channels);
  }
}

void
CheckActivation(const NetworkLayer & layer)
{
  if (layer.activation.kind == ActivationKind::PRelu)
  {
    if (!layer.activation.slopes)
    {
      Refuse(layer, "it has no slopes");
    }
    CheckValues(layer, "slopes", *layer.activation.slopes, layer.channels);
  }
  if (std::isnan(layer.activation.alpha) || std::isnan(layer.activation.beta))
  {
    Refuse(layer, "a parameter of its activation is not a number");
  }
}

/** The extent of a layer's result along an axis, from that of its input; 0 if it does not fit. */
std::int64_t
ResultExtent(const NetworkLayer & layer, int a, std::int64_t n)
{
  if (n <= 0)
  {
    return 0;
  }
  const std::int64_t pads = layer.padLower[a] + layer.padUpper[a];
  const std::int64_t reach = layer.dilation[a] * (layer.kernel[a] - 1);
  std::int64_t       result = n;
  if (HasWindow(layer.kind))
  {
    const std::int64_t room = n + pads - reach - 1;
    result = room < 0 ? 0 : room / layer.stride[a] + 1;
  }
  else if (layer.kind == LayerKind::TransposedConvolution)
  {
    result = (n - 1) * layer.stride[a] - pads + reach + 1;
  }
  else if (IsUpsampling(layer.kind))
  {
    result = n * layer.stride[a];
  }
  else if (layer.kind == LayerKind::Crop)
  {
    result = n - pads;
  }
  return std::max<std::int64_t>(result, 0);
}

/** Two hashes of 64 bits, of which one would do (FNV-1a by words, and a multiplicative one). */
class Digest
{
public:
  void
  Add(std::uint64_t word)
  {
    m_First = (m_First ^ word) * 0x100000001b3ULL;
    m_First ^= m_First >> 29;
    m_Second = (m_Second + word) * 0x9e3779b97f4a7c15ULL;
    m_Second ^= m_Second >> 32;
  }
  void
  Add(const std::shared_ptr<const std::vector<float>> & values)
  {
    this->Add(values ? values->size() : ~std::uint64_t{ 0 });
    if (values)
    {
      for (const float value : *values)
      {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof(bits));
        this->Add(bits);
      }
    }
  }
  std::string
  Text() const
  {
    std::ostringstream text;
    text << std::hex << std::setfill('0') << std::setw(16) << m_First << std::setw(16) << m_Second;
    return text.str();
  }

private:
  std::uint64_t m_First{ 0xcbf29ce484222325ULL };
  std::uint64_t m_Second{ 0x2545f4914f6cdd1dULL };
};

std::uint64_t
Bits(float value)
{
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

} // namespace

int
NetworkGraph::Add(NetworkLayer layer)
{
  if (m_Finished)
  {
    throw Error("network: a layer was added to a finished graph");
  }
  const auto        count = static_cast<int>(m_Layers.size());
  const std::size_t needed = layer.kind == LayerKind::Input ? 0 : TakesTwo(layer.kind) ? 2 : 1;
  if (layer.kind == LayerKind::Concatenation ? layer.inputs.empty() : layer.inputs.size() != needed)
  {
    Refuse(layer, std::to_string(layer.inputs.size()) + " inputs where " + std::to_string(needed) + " are needed");
  }
  for (const int input : layer.inputs)
  {
    if (input < 0 || input >= count)
    {
      Refuse(layer, "input " + std::to_string(input) + " is not an earlier layer");
    }
  }
  if ((layer.kind == LayerKind::Input) != m_Layers.empty())
  {
    Refuse(layer, m_Layers.empty() ? "the first layer must be the input" : "there is an input already");
  }
  CheckSizes(layer);

  const int  before = layer.inputs.empty() ? 0 : m_Layers[static_cast<std::size_t>(layer.inputs[0])].channels;
  const bool givesChannels = layer.kind == LayerKind::Input || layer.kind == LayerKind::Convolution ||
                             layer.kind == LayerKind::TransposedConvolution || layer.kind == LayerKind::ChannelSlice;
  if (!givesChannels)
  {
    layer.channels = before;
  }
  if (layer.kind == LayerKind::Concatenation)
  {
    std::int64_t sum = 0;
    for (const int input : layer.inputs)
    {
      sum += m_Layers[static_cast<std::size_t>(input)].channels;
    }
    layer.channels = static_cast<int>(std::min(sum, LargestSize + 1));
  }
  if (layer.channels < 1 || layer.channels > LargestSize)
  {
    Refuse(layer, std::to_string(layer.channels) + " channels are not between 1 and " + std::to_string(LargestSize));
  }
  if (TakesTwo(layer.kind) && m_Layers[static_cast<std::size_t>(layer.inputs[1])].channels != before)
  {
    Refuse(layer,
           "its inputs have " + std::to_string(before) + " and " +
             std::to_string(m_Layers[static_cast<std::size_t>(layer.inputs[1])].channels) + " channels");
  }
  if (layer.kind == LayerKind::ChannelSlice && (layer.firstChannel < 0 || layer.channels > before - layer.firstChannel))
  {
    Refuse(layer,
           "channels from " + std::to_string(layer.firstChannel) + " on, " + std::to_string(layer.channels) +
             " of them, of " + std::to_string(before));
  }
  if (HasWeights(layer.kind))
  {
    CheckWeights(layer, before);
  }
  if (layer.kind == LayerKind::InstanceNormalization && !(layer.epsilon >= 0 && std::isfinite(layer.epsilon)))
  {
    Refuse(layer, "its epsilon is not a number from 0 on");
  }
  CheckActivation(layer);
  m_Layers.push_back(std::move(layer));
  return count;
}

void
NetworkGraph::SetOutput(int layer)
{
  if (layer < 0 || layer >= static_cast<int>(m_Layers.size()))
  {
    throw ParameterError("network: the output, layer " + std::to_string(layer) + ", is not one of its " +
                         std::to_string(m_Layers.size()) + " layers");
  }
  m_Output = layer;
}

int
NetworkGraph::GetNumberOfInputChannels() const
{
  return m_Layers.empty() ? 0 : m_Layers.front().channels;
}

int
NetworkGraph::GetNumberOfOutputChannels() const
{
  return m_Output < 0 ? 0 : m_Layers[static_cast<std::size_t>(m_Output)].channels;
}

void
NetworkGraph::Finish()
{
  if (m_Output < 0)
  {
    throw ParameterError("network: it has no output");
  }
  if (!m_Finished)
  {
    this->Simplify();
    this->MakeDense();
    this->FindPeriod();
    this->PlaceResult();
    this->MakeKey();
    this->PackWeights();
    m_Finished = true;
  }
}

namespace
{

/** Multiplies a scaling that follows a convolution of so many input channels into the convolution's weights. */
void
FoldScaling(const NetworkLayer & layer, std::int64_t inputs, NetworkLayer & producer)
{
  auto               weights = std::make_shared<std::vector<float>>(*producer.weights);
  auto               bias = std::make_shared<std::vector<float>>(static_cast<std::size_t>(producer.channels));
  const std::int64_t taps = producer.kernel[0] * producer.kernel[1] * producer.kernel[2];
  const std::int64_t perGroup = producer.channels / producer.groups;
  const std::int64_t inputsPerGroup = inputs / producer.groups;
  for (std::size_t w = 0; w < weights->size(); ++w)
  {
    const std::int64_t block = static_cast<std::int64_t>(w) / taps;
    const std::int64_t channel = producer.kind == LayerKind::Convolution
                                   ? block / inputsPerGroup
                                   : block / perGroup / inputsPerGroup * perGroup + block % perGroup;
    (*weights)[w] = static_cast<float>(static_cast<double>((*weights)[w]) *
                                       static_cast<double>((*layer.weights)[static_cast<std::size_t>(channel)]));
  }
  for (std::size_t c = 0; c < bias->size(); ++c)
  {
    const double before = producer.bias ? (*producer.bias)[c] : 0.0;
    (*bias)[c] = static_cast<float>(before * static_cast<double>((*layer.weights)[c]) +
                                    (layer.bias ? static_cast<double>((*layer.bias)[c]) : 0.0));
  }
  CheckValues(layer, "weights of the folded scaling", *weights, static_cast<std::int64_t>(weights->size()));
  CheckValues(layer, "bias of the folded scaling", *bias, static_cast<std::int64_t>(bias->size()));
  producer.weights = weights;
  producer.bias = bias;
}

} // namespace

void
NetworkGraph::Simplify()
{
  // Layers that the output does not need use nothing.
  const auto findNeeded = [this] {
    std::vector<bool> needed(m_Layers.size(), false);
    needed[0] = true;
    needed[static_cast<std::size_t>(m_Output)] = true;
    for (std::size_t i = m_Layers.size(); i-- > 0;)
    {
      for (const int input : m_Layers[i].inputs)
      {
        needed[static_cast<std::size_t>(input)] = needed[static_cast<std::size_t>(input)] || needed[i];
      }
    }
    return needed;
  };
  std::vector<bool> needed = findNeeded();
  std::vector<int>  users(m_Layers.size(), 0);
  for (std::size_t i = 0; i < m_Layers.size(); ++i)
  {
    for (const int input : m_Layers[i].inputs)
    {
      users[static_cast<std::size_t>(input)] += needed[i] ? 1 : 0;
    }
  }
  // The output is used by the caller.
  ++users[static_cast<std::size_t>(m_Output)];

  std::vector<int> standsFor(m_Layers.size());
  std::iota(standsFor.begin(), standsFor.end(), 0);
  for (std::size_t i = 0; i < m_Layers.size(); ++i)
  {
    NetworkLayer & layer = m_Layers[i];
    for (int & input : layer.inputs)
    {
      input = standsFor[static_cast<std::size_t>(input)];
    }
    if (layer.inputs.size() != 1 || !needed[i])
    {
      continue;
    }
    const auto     from = static_cast<std::size_t>(layer.inputs[0]);
    NetworkLayer & producer = m_Layers[from];
    if (users[from] != 1 || producer.kind == LayerKind::Input || producer.activation.kind != ActivationKind::None)
    {
      continue;
    }
    const bool isConvolution =
      producer.kind == LayerKind::Convolution || producer.kind == LayerKind::TransposedConvolution;
    if (layer.kind == LayerKind::Scaling && isConvolution)
    {
      FoldScaling(layer, m_Layers[static_cast<std::size_t>(producer.inputs[0])].channels, producer);
    }
    else if (layer.kind != LayerKind::Pointwise)
    {
      continue;
    }
    producer.activation = layer.activation;
    users[from] = users[i];
    standsFor[i] = static_cast<int>(from);
  }
  m_Output = standsFor[static_cast<std::size_t>(m_Output)];

  needed = findNeeded();
  std::vector<NetworkLayer> kept;
  std::vector<int>          newIndex(m_Layers.size(), -1);
  for (std::size_t i = 0; i < m_Layers.size(); ++i)
  {
    if (needed[i])
    {
      newIndex[i] = static_cast<int>(kept.size());
      kept.push_back(std::move(m_Layers[i]));
      for (int & input : kept.back().inputs)
      {
        input = newIndex[static_cast<std::size_t>(input)];
      }
    }
  }
  m_Output = newIndex[static_cast<std::size_t>(m_Output)];
  m_Layers = std::move(kept);
}

void
NetworkGraph::MakeDense()
{
  // Voxels of the image between neighbours in each layer's result.
  std::vector<LayerExtent> steps(m_Layers.size(), LayerExtent{ { 1, 1, 1 } });
  for (std::size_t i = 1; i < m_Layers.size(); ++i)
  {
    const NetworkLayer & layer = m_Layers[i];
    steps[i] = steps[static_cast<std::size_t>(layer.inputs[0])];
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      for (const int input : layer.inputs)
      {
        if (steps[static_cast<std::size_t>(input)][a] != steps[i][a])
        {
          Refuse(layer, "its inputs have grids of different spacing");
        }
      }
      if (HasWindow(layer.kind))
      {
        steps[i][a] *= layer.stride[a];
        if (steps[i][a] > LargestSize)
        {
          Refuse(layer, "strides of more than " + std::to_string(LargestSize) + " in all");
        }
      }
      else if (IsUpsampling(layer.kind))
      {
        if (steps[i][a] % layer.stride[a] != 0)
        {
          Refuse(layer, "its grid is finer than the image's; networks that enlarge images are not supported");
        }
        steps[i][a] /= layer.stride[a];
      }
    }
  }
  m_WindowStride = steps[static_cast<std::size_t>(m_Output)];
  m_TotalStride = { { 1, 1, 1 } };
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    if (m_WindowStride[a] > 1)
    {
      for (std::size_t i = 1; i < m_Layers.size(); ++i)
      {
        NetworkLayer &     layer = m_Layers[i];
        const std::int64_t step = steps[static_cast<std::size_t>(layer.inputs[0])][a];
        if (IsUpsampling(layer.kind))
        {
          Refuse(layer,
                 "the network's result is coarser than the image, and it enlarges on the way; it would have to end "
                 "on the image's grid");
        }
        if (HasWindow(layer.kind))
        {
          if (layer.padLower[a] != 0 || layer.padUpper[a] != 0)
          {
            Refuse(layer,
                   "it pads the windows of a network whose result is coarser than the image: what it gives for a "
                   "voxel would depend on where its window begins; train it without padding");
          }
          layer.dilation[a] *= step;
          layer.stride[a] = 1;
          if (layer.dilation[a] * (layer.kernel[a] - 1) > LargestSize)
          {
            Refuse(layer, "its dense form reaches further than " + std::to_string(LargestSize) + " voxels");
          }
        }
        else if (layer.kind == LayerKind::Crop)
        {
          layer.padLower[a] *= step;
          layer.padUpper[a] *= step;
        }
      }
    }
    else
    {
      for (const LayerExtent & step : steps)
      {
        m_TotalStride[a] = std::lcm(m_TotalStride[a], step[a]);
        if (m_TotalStride[a] > 4096)
        {
          throw ParameterError("network: strides of more than 4096 in all");
        }
      }
    }
  }
}

void
NetworkGraph::FindPeriod()
{
  const LayerExtent view = this->GetFieldOfView();
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    const std::int64_t period = m_TotalStride[a];
    // -1 if layers do not fit together in an image of this extent.
    const auto result = [&](std::int64_t n) -> std::int64_t {
      std::vector<std::int64_t> extents(m_Layers.size());
      extents[0] = n;
      for (std::size_t i = 1; i < m_Layers.size(); ++i)
      {
        const NetworkLayer & layer = m_Layers[i];
        const std::int64_t   from = extents[static_cast<std::size_t>(layer.inputs[0])];
        for (const int input : layer.inputs)
        {
          if (extents[static_cast<std::size_t>(input)] != from)
          {
            return -1;
          }
        }
        extents[i] = ResultExtent(layer, a, from);
        if (extents[i] <= 0)
        {
          return -1;
        }
      }
      return extents[static_cast<std::size_t>(m_Output)];
    };
    // A multiple of the period wherever that works, as it does unless layers crop.
    const std::int64_t most = view[a] + 4 * period + 64;
    bool               found = false;
    for (std::int64_t rest = 0; rest < period && !found; ++rest)
    {
      // If a large image fits, so do all larger ones, and the smaller ones from some extent on.
      const std::int64_t first = rest == 0 ? period : rest;
      std::int64_t       fits = (most - first) / period;
      const std::int64_t out = result(first + fits * period);
      if (out <= 0 || result(first + (fits + 1) * period) != out + period)
      {
        continue;
      }
      std::int64_t fitsNot = -1;
      while (fits - fitsNot > 1)
      {
        const std::int64_t middle = fitsNot + (fits - fitsNot) / 2;
        (result(first + middle * period) > 0 ? fits : fitsNot) = middle;
      }
      m_LeastInput[a] = first + fits * period;
      m_Margin[a] = m_LeastInput[a] - result(m_LeastInput[a]);
      found = true;
    }
    if (!found)
    {
      throw ParameterError("network: along axis " + std::to_string(a) + " there is no image of up to " +
                           std::to_string(most) + " voxels for which all branches have the same extent");
    }
    if (m_Margin[a] < 0)
    {
      throw ParameterError("network: along axis " + std::to_string(a) + " its result has " +
                           std::to_string(-m_Margin[a]) + " voxels more than the image; it pads too much");
    }
  }
}

void
NetworkGraph::PlaceResult()
{
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    // For each layer: voxels of the image between neighbours, and twice the position of its index 0.
    std::vector<std::int64_t> step(m_Layers.size(), 1);
    std::vector<std::int64_t> twice(m_Layers.size(), 0);
    for (std::size_t i = 1; i < m_Layers.size(); ++i)
    {
      const NetworkLayer & layer = m_Layers[i];
      const auto           from = static_cast<std::size_t>(layer.inputs[0]);
      const std::int64_t   reach = layer.dilation[a] * (layer.kernel[a] - 1);
      step[i] = step[from];
      twice[i] = twice[from];
      if (HasWindow(layer.kind))
      {
        step[i] = step[from] * layer.stride[a];
        twice[i] += step[from] * (reach - 2 * layer.padLower[a]);
      }
      else if (layer.kind == LayerKind::TransposedConvolution)
      {
        step[i] = step[from] / layer.stride[a];
        twice[i] -= step[i] * (reach - 2 * layer.padLower[a]);
      }
      else if (IsUpsampling(layer.kind))
      {
        step[i] = step[from] / layer.stride[a];
        twice[i] -= step[from] - step[i];
      }
      else if (layer.kind == LayerKind::Crop)
      {
        twice[i] += 2 * step[from] * layer.padLower[a];
      }
    }
    m_LowerMargin[a] =
      std::min(std::max<std::int64_t>(DivideDown(twice[static_cast<std::size_t>(m_Output)], 2), 0), m_Margin[a]);
  }
}

void
NetworkGraph::MakeKey()
{
  Digest digest;
  for (const NetworkLayer & layer : m_Layers)
  {
    digest.Add(static_cast<std::uint64_t>(layer.kind));
    digest.Add(layer.inputs.size());
    for (const int input : layer.inputs)
    {
      digest.Add(static_cast<std::uint64_t>(input));
    }
    digest.Add(static_cast<std::uint64_t>(layer.channels));
    for (const LayerExtent * extent :
         { &layer.kernel, &layer.stride, &layer.dilation, &layer.padLower, &layer.padUpper })
    {
      for (const std::int64_t size : *extent)
      {
        digest.Add(static_cast<std::uint64_t>(size));
      }
    }
    digest.Add(static_cast<std::uint64_t>(layer.groups));
    digest.Add(static_cast<std::uint64_t>(layer.firstChannel));
    digest.Add(layer.countsPadding ? 1 : 0);
    if (layer.kind == LayerKind::InstanceNormalization)
    {
      digest.Add(Bits(layer.epsilon));
    }
    digest.Add(layer.weights);
    digest.Add(layer.bias);
    digest.Add(static_cast<std::uint64_t>(layer.activation.kind));
    digest.Add(Bits(layer.activation.alpha));
    digest.Add(Bits(layer.activation.beta));
    digest.Add(layer.activation.slopes);
  }
  digest.Add(static_cast<std::uint64_t>(m_Output));
  m_Key = digest.Text();
}

void
NetworkGraph::PackWeights()
{
  for (NetworkLayer & layer : m_Layers)
  {
    if (layer.kind != LayerKind::Convolution)
    {
      continue;
    }
    const std::int64_t inputs = m_Layers[static_cast<std::size_t>(layer.inputs[0])].channels / layer.groups;
    const std::int64_t outputs = layer.channels / layer.groups;
    const std::int64_t perChannel = inputs * layer.kernel[0] * layer.kernel[1] * layer.kernel[2];
    const std::int64_t blocks = DivideUp(outputs, ChannelsPerBlock);
    auto               packed = std::make_shared<std::vector<float>>(
      static_cast<std::size_t>(layer.groups * blocks * perChannel * ChannelsPerBlock), 0.0f);
    for (std::int64_t c = 0; c < layer.channels; ++c)
    {
      const std::int64_t block = c / outputs * blocks + c % outputs / ChannelsPerBlock;
      for (std::int64_t i = 0; i < perChannel; ++i)
      {
        (*packed)[static_cast<std::size_t>((block * perChannel + i) * ChannelsPerBlock +
                                           c % outputs % ChannelsPerBlock)] =
          (*layer.weights)[static_cast<std::size_t>(c * perChannel + i)];
      }
    }
    layer.packedWeights = packed;
  }
}

LayerExtent
NetworkGraph::GetFieldOfView() const
{
  LayerExtent view{ { 1, 1, 1 } };
  for (std::int64_t at = 0; at < *std::max_element(m_TotalStride.begin(), m_TotalStride.end()); ++at)
  {
    const Range one{ { { at, at, at } }, { { at + 1, at + 1, at + 1 } } };
    const Range needed = this->GetRanges(one, nullptr).front();
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      view[a] = std::max(view[a], needed.upper[a] - needed.lower[a]);
    }
  }
  return view;
}

LayerExtent
NetworkGraph::GetInputExtent(const LayerExtent & output) const
{
  LayerExtent input = m_LeastInput;
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    const std::int64_t missing = output[a] - (input[a] - m_Margin[a]);
    if (missing > 0)
    {
      input[a] += DivideUp(missing, m_TotalStride[a]) * m_TotalStride[a];
    }
  }
  return input;
}

std::vector<LayerExtent>
NetworkGraph::GetExtents(const LayerExtent & image) const
{
  std::vector<LayerExtent> extents(m_Layers.size());
  extents[0] = image;
  for (std::size_t i = 1; i < m_Layers.size(); ++i)
  {
    const LayerExtent & from = extents[static_cast<std::size_t>(m_Layers[i].inputs[0])];
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      extents[i][a] = ResultExtent(m_Layers[i], a, from[a]);
    }
  }
  return extents;
}

void
NetworkGraph::GetNeeded(const NetworkLayer & layer, int a, std::int64_t & lower, std::int64_t & upper) const
{
  const std::int64_t stride = layer.stride[a];
  const std::int64_t reach = layer.dilation[a] * (layer.kernel[a] - 1);
  if (HasWindow(layer.kind))
  {
    lower = lower * stride - layer.padLower[a];
    upper = (upper - 1) * stride - layer.padLower[a] + reach + 1;
  }
  else if (layer.kind == LayerKind::TransposedConvolution)
  {
    lower = DivideUp(lower + layer.padLower[a] - reach, stride);
    upper = DivideDown(upper - 1 + layer.padLower[a], stride) + 1;
  }
  else if (layer.kind == LayerKind::NearestUpsampling)
  {
    lower = DivideDown(lower, stride);
    upper = DivideDown(upper - 1, stride) + 1;
  }
  else if (layer.kind == LayerKind::LinearUpsampling)
  {
    lower = DivideDown(2 * lower + 1 - stride, 2 * stride);
    upper = DivideDown(2 * upper - 1 - stride, 2 * stride) + 2;
  }
  else if (layer.kind == LayerKind::Crop)
  {
    lower += layer.padLower[a];
    upper += layer.padLower[a];
  }
}

const NetworkLayer *
NetworkGraph::FindNormalization() const
{
  const auto found = std::find_if(m_Layers.begin(), m_Layers.end(), [](const NetworkLayer & layer) {
    return layer.kind == LayerKind::InstanceNormalization;
  });
  return found == m_Layers.end() ? nullptr : &*found;
}

std::vector<NetworkGraph::Range>
NetworkGraph::GetRanges(const Range & output, const std::vector<LayerExtent> * extents) const
{
  std::vector<Range> ranges(m_Layers.size());
  for (Range & range : ranges)
  {
    range.lower = { { WholeAxis, WholeAxis, WholeAxis } };
    range.upper = { { -WholeAxis, -WholeAxis, -WholeAxis } };
  }
  ranges[static_cast<std::size_t>(m_Output)] = output;
  for (std::size_t i = m_Layers.size(); i-- > 0;)
  {
    Range & range = ranges[i];
    bool    isEmpty = false;
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      if (extents)
      {
        range.lower[a] = std::max<std::int64_t>(range.lower[a], 0);
        range.upper[a] = std::min(range.upper[a], (*extents)[i][a]);
      }
      isEmpty = isEmpty || range.lower[a] >= range.upper[a];
    }
    if (isEmpty)
    {
      range = Range{ { { 0, 0, 0 } }, { { 0, 0, 0 } } };
      continue;
    }
    for (const int input : m_Layers[i].inputs)
    {
      Range & from = ranges[static_cast<std::size_t>(input)];
      for (int a = 0; a < MaxSpatialAxes; ++a)
      {
        std::int64_t lower = range.lower[a];
        std::int64_t upper = range.upper[a];
        this->GetNeeded(m_Layers[i], a, lower, upper);
        if (extents && m_Layers[i].kind == LayerKind::InstanceNormalization)
        {
          lower = 0;
          upper = (*extents)[static_cast<std::size_t>(input)][a];
        }
        from.lower[a] = std::min(from.lower[a], lower);
        from.upper[a] = std::max(from.upper[a], upper);
      }
    }
  }
  return ranges;
}

std::string
NetworkGraph::Describe() const
{
  const auto text = [](const LayerExtent & extent) {
    std::ostringstream out;
    out << extent[0];
    if (extent[1] != extent[0] || extent[2] != extent[0])
    {
      out << 'x' << extent[1] << 'x' << extent[2];
    }
    return out.str();
  };
  std::ostringstream out;
  for (std::size_t i = 0; i < m_Layers.size(); ++i)
  {
    const NetworkLayer & layer = m_Layers[i];
    out << std::setw(4) << i << "  " << std::left << std::setw(22) << LayerKindName(layer.kind) << std::right
        << std::setw(5) << layer.channels << " channels";
    if (HasWindow(layer.kind) || layer.kind == LayerKind::TransposedConvolution)
    {
      out << ", kernel " << text(layer.kernel);
    }
    if (layer.stride != LayerExtent{ { 1, 1, 1 } })
    {
      out << ", stride " << text(layer.stride);
    }
    if (layer.dilation != LayerExtent{ { 1, 1, 1 } })
    {
      out << ", dilation " << text(layer.dilation);
    }
    if (layer.padLower != LayerExtent{ { 0, 0, 0 } } || layer.padUpper != LayerExtent{ { 0, 0, 0 } })
    {
      out << (layer.kind == LayerKind::Crop ? ", crop " : ", padding ") << text(layer.padLower) << " and "
          << text(layer.padUpper);
    }
    if (!layer.inputs.empty())
    {
      out << ", of";
      for (const int input : layer.inputs)
      {
        out << ' ' << input;
      }
    }
    if (!layer.name.empty())
    {
      out << "  (" << layer.name << ')';
    }
    out << '\n';
  }
  return out.str();
}

} // namespace chunkwise
