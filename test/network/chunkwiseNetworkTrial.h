/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNetworkTrial_h
#define chunkwiseNetworkTrial_h

#include "chunkwiseKernelTrial.h"
#include "chunkwiseNetworkOperation.h"

// Random networks, and what they compute by their definition, in double, layer by layer over whole images.
namespace chunkwise
{
namespace trial
{

/** A network as it was built, and as the engine finished it. */
struct Network
{
  std::vector<NetworkLayer>           layers;
  int                                 output{ 0 };
  std::shared_ptr<const NetworkGraph> graph;
};

class NetworkBuilder
{
public:
  NetworkBuilder(std::mt19937 & random, int dimension, int inputChannels = 1)
    : m_Random(random)
    , m_Dimension(dimension)
  {
    NetworkLayer input;
    input.channels = inputChannels;
    this->Add(input);
  }
  int
  Below(int n)
  {
    return static_cast<int>(m_Random() % static_cast<unsigned int>(n));
  }
  /** An extent along the axes that there are. */
  LayerExtent
  Extent(int most, int least = 1)
  {
    LayerExtent extent{ { 1, 1, 1 } };
    for (int a = 0; a < m_Dimension; ++a)
    {
      extent[static_cast<std::size_t>(a)] = least + Below(most - least + 1);
    }
    return extent;
  }
  LayerExtent
  Same(std::int64_t value, std::int64_t other = 1) const
  {
    LayerExtent extent{ { other, other, other } };
    std::fill(extent.begin(), extent.begin() + m_Dimension, value);
    return extent;
  }
  std::shared_ptr<const std::vector<float>>
  Values(std::int64_t count, float scale = 1.0f)
  {
    auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(count));
    for (float & value : *values)
    {
      value = scale * static_cast<float>(static_cast<double>(m_Random()) / 2147483648.0 - 1.0);
    }
    return values;
  }
  int
  Channels(int layer) const
  {
    return m_Network.layers[static_cast<std::size_t>(layer)].channels;
  }
  int
  Add(const NetworkLayer & layer)
  {
    const int index = m_Graph->Add(layer);
    m_Network.layers.push_back(m_Graph->GetLayers().back());
    return index;
  }
  int
  Convolve(int from, int channels, const LayerExtent & kernel, NetworkLayer layer = NetworkLayer())
  {
    layer.kind = LayerKind::Convolution;
    layer.inputs = { from };
    layer.channels = channels;
    layer.kernel = kernel;
    const std::int64_t fanIn = Channels(from) / layer.groups * kernel[0] * kernel[1] * kernel[2];
    layer.weights = Values(fanIn * channels, 2.0f / std::sqrt(static_cast<float>(fanIn)));
    layer.bias = Below(4) ? Values(channels) : nullptr;
    return Add(layer);
  }
  int
  Pointwise(int from, ActivationKind kind)
  {
    NetworkLayer layer;
    layer.kind = LayerKind::Pointwise;
    layer.inputs = { from };
    layer.activation.kind = kind;
    layer.activation.alpha = kind == ActivationKind::Clip ? -0.5f : 0.25f;
    layer.activation.beta = kind == ActivationKind::Clip ? 0.75f : 0.5f;
    layer.activation.slopes = kind == ActivationKind::PRelu ? Values(Channels(from)) : nullptr;
    return Add(layer);
  }
  int
  AddKind(LayerKind kind, std::vector<int> from, NetworkLayer layer = NetworkLayer())
  {
    layer.kind = kind;
    layer.inputs = std::move(from);
    return Add(layer);
  }
  Network
  Finish(int output)
  {
    m_Graph->SetOutput(output);
    m_Graph->Finish();
    m_Network.output = output;
    m_Network.graph = m_Graph;
    return m_Network;
  }

private:
  std::mt19937 &                m_Random;
  const int                     m_Dimension;
  std::shared_ptr<NetworkGraph> m_Graph = std::make_shared<NetworkGraph>();
  Network                       m_Network;
};

/** Functions whose values are finite for finite ones. */
inline ActivationKind
RandomActivation(NetworkBuilder & builder)
{
  constexpr ActivationKind kinds[] = { ActivationKind::Relu,        ActivationKind::LeakyRelu, ActivationKind::PRelu,
                                       ActivationKind::Elu,         ActivationKind::Selu,      ActivationKind::Clip,
                                       ActivationKind::Sigmoid,     ActivationKind::Tanh,      ActivationKind::Softplus,
                                       ActivationKind::HardSigmoid, ActivationKind::HardSwish, ActivationKind::Swish,
                                       ActivationKind::Absolute,    ActivationKind::Negative };
  return kinds[builder.Below(14)];
}

/** A classifier of windows: layers do not pad, pooling has strides. */
inline Network
RandomClassifier(std::mt19937 & random, int dimension)
{
  NetworkBuilder builder(random, dimension);
  int            at = 0;
  const int      blocks = 1 + builder.Below(2);
  for (int b = 0; b < blocks; ++b)
  {
    NetworkLayer convolution;
    const int    channels = 1 + builder.Below(3);
    if (builder.Below(4) == 0)
    {
      convolution.dilation = builder.Extent(2);
    }
    at = builder.Convolve(at, channels, builder.Extent(3), convolution);
    if (builder.Below(2))
    {
      NetworkLayer scaling;
      scaling.weights = builder.Values(channels);
      scaling.bias = builder.Values(channels);
      at = builder.AddKind(LayerKind::Scaling, { at }, scaling);
    }
    at = builder.Pointwise(at, RandomActivation(builder));
    NetworkLayer pool;
    pool.kernel = builder.Extent(3);
    pool.stride = builder.Below(2) ? pool.kernel : builder.Extent(3);
    at = builder.AddKind(builder.Below(2) ? LayerKind::MaximumPooling : LayerKind::AveragePooling, { at }, pool);
  }
  at = builder.Convolve(at, 1 + builder.Below(4), builder.Extent(3));
  if (builder.Below(2))
  {
    at = builder.AddKind(builder.Below(2) ? LayerKind::Softmax : LayerKind::LogSoftmax, { at });
  }
  return builder.Finish(at);
}

/** A network that goes down to coarser grids and up again, with padding, shortcuts and all ways up. */
inline Network
RandomUNet(std::mt19937 & random, int dimension, int levels)
{
  NetworkBuilder   builder(random, dimension);
  std::vector<int> shortcuts;
  const auto       padded = [&](int from, int channels, NetworkLayer layer = NetworkLayer()) {
    layer.padLower = builder.Same(1, 0);
    layer.padUpper = builder.Same(1, 0);
    if (builder.Below(3) == 0)
    {
      layer.dilation = builder.Same(2);
      layer.padLower = builder.Same(2, 0);
      layer.padUpper = builder.Same(2, 0);
    }
    if (builder.Channels(from) % 2 == 0 && builder.Below(2))
    {
      layer.groups = 2;
    }
    return builder.Pointwise(builder.Convolve(from, channels, builder.Same(3), layer), RandomActivation(builder));
  };
  int at = padded(0, 2);
  for (int level = 0; level < levels; ++level)
  {
    shortcuts.push_back(at);
    NetworkLayer down;
    down.kernel = builder.Same(2);
    down.stride = builder.Same(2);
    if (builder.Below(3) == 0)
    {
      down.padLower = builder.Same(1, 0);
      down.padUpper = builder.Same(1, 0);
      down.kernel = builder.Same(3);
      at = builder.Convolve(at, 2, down.kernel, down);
    }
    else if (builder.Below(3) == 0)
    {
      down.kernel = builder.Same(3);
      down.padLower = down.padUpper = builder.Same(1, 0);
      down.countsPadding = builder.Below(2) != 0;
      at = builder.AddKind(builder.Below(2) ? LayerKind::MaximumPooling : LayerKind::AveragePooling, { at }, down);
    }
    else
    {
      at = builder.AddKind(builder.Below(2) ? LayerKind::MaximumPooling : LayerKind::AveragePooling, { at }, down);
    }
    at = padded(at, 2 + 2 * builder.Below(2));
  }
  for (int level = levels; level-- > 0;)
  {
    NetworkLayer up;
    up.stride = builder.Same(2);
    const int way = builder.Below(4);
    if (way < 2)
    {
      up.channels = 2;
      up.groups = builder.Channels(at) % 2 == 0 && builder.Below(2) ? 2 : 1;
      up.kernel = builder.Same(way == 0 ? 2 : 3);
      up.padLower = builder.Same(way == 0 ? 0 : 1, 0);
      up.padUpper = builder.Same(0, 0);
      const std::int64_t taps = up.kernel[0] * up.kernel[1] * up.kernel[2];
      up.weights = builder.Values(builder.Channels(at) * up.channels / up.groups * taps, 0.5f);
      at = builder.AddKind(LayerKind::TransposedConvolution, { at }, up);
    }
    else
    {
      at = builder.AddKind(way == 2 ? LayerKind::NearestUpsampling : LayerKind::LinearUpsampling, { at }, up);
    }
    const int       shortcut = shortcuts[static_cast<std::size_t>(level)];
    const LayerKind two[] = { LayerKind::Sum, LayerKind::Difference, LayerKind::Product };
    if (builder.Below(3) && builder.Channels(at) == builder.Channels(shortcut))
    {
      at = builder.AddKind(two[builder.Below(3)], { at, shortcut });
      at = builder.Pointwise(at, ActivationKind::Tanh);
    }
    else
    {
      at = builder.AddKind(LayerKind::Concatenation, { shortcut, at });
      NetworkLayer slice;
      slice.firstChannel = 1;
      slice.channels = 2;
      at = builder.Below(2) ? builder.AddKind(LayerKind::ChannelSlice, { at }, slice) : at;
    }
    at = padded(at, 2);
  }
  return builder.Finish(builder.Convolve(at, 1 + builder.Below(4), builder.Same(1)));
}

/** Convolutions of every size, dilation and number of channels, as transforms take them, and poolings between: a
 * classifier of windows, or layers that pad, each as it likes. */
inline Network
RandomConvolutions(std::mt19937 & random, int dimension, bool pads)
{
  NetworkBuilder builder(random, dimension);
  int            at = 0;
  const int      layers = 2 + builder.Below(2);
  for (int i = 0; i < layers; ++i)
  {
    const int    most[] = { 2, 5, 18 };
    const int    channels = 1 + builder.Below(most[builder.Below(3)]);
    NetworkLayer layer;
    LayerExtent  kernel = builder.Extent(i == 0 ? 7 : 4);
    layer.dilation = builder.Below(3) ? builder.Same(1) : builder.Extent(3);
    for (std::size_t a = 0; pads && a < 3; ++a)
    {
      // As many voxels as before, whatever the windows' centers.
      const std::int64_t reach = layer.dilation[a] * (kernel[a] - 1);
      layer.padLower[a] = reach > 0 ? builder.Below(static_cast<int>(reach) + 1) : 0;
      layer.padUpper[a] = reach - layer.padLower[a];
    }
    at = builder.Convolve(at, channels, kernel, layer);
    at = builder.Below(3) ? builder.Pointwise(at, RandomActivation(builder)) : at;
    if (!pads && i + 1 < layers)
    {
      NetworkLayer pool;
      pool.kernel = builder.Extent(3);
      pool.stride = builder.Below(3) ? pool.kernel : builder.Same(1);
      at = builder.AddKind(builder.Below(2) ? LayerKind::MaximumPooling : LayerKind::AveragePooling, { at }, pool);
      if (builder.Below(3) == 0)
      {
        pool.kernel = pool.stride = builder.Same(2);
        at = builder.AddKind(LayerKind::MaximumPooling, { at }, pool);
      }
    }
    else if (pads && builder.Below(3) == 0)
    {
      NetworkLayer pool;
      pool.kernel = builder.Same(3);
      pool.padLower = pool.padUpper = builder.Same(1, 0);
      pool.countsPadding = builder.Below(2) != 0;
      at = builder.AddKind(builder.Below(2) ? LayerKind::MaximumPooling : LayerKind::AveragePooling, { at }, pool);
    }
  }
  return builder.Finish(builder.Convolve(at, 1 + builder.Below(3), builder.Extent(3)));
}

/** Values of all voxels, [channel][z][y][x]. */
struct Values
{
  int                 channels{ 0 };
  LayerExtent         extent{};
  std::vector<double> values;

  double &
  At(std::int64_t c, std::int64_t x, std::int64_t y, std::int64_t z)
  {
    return values[static_cast<std::size_t>(((c * extent[2] + z) * extent[1] + y) * extent[0] + x)];
  }
  double
  Or(double other, std::int64_t c, std::int64_t x, std::int64_t y, std::int64_t z)
  {
    const bool inside = x >= 0 && x < extent[0] && y >= 0 && y < extent[1] && z >= 0 && z < extent[2];
    return inside ? this->At(c, x, y, z) : other;
  }
};

inline double
Apply(const Activation & activation, int channel, double x)
{
  const double alpha = activation.alpha;
  const double beta = activation.beta;
  switch (activation.kind)
  {
    case ActivationKind::None:
      return x;
    case ActivationKind::Relu:
      return std::max(x, 0.0);
    case ActivationKind::LeakyRelu:
      return x < 0 ? alpha * x : x;
    case ActivationKind::PRelu:
      return x < 0 ? (*activation.slopes)[static_cast<std::size_t>(channel)] * x : x;
    case ActivationKind::Elu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case ActivationKind::Selu:
      return beta * (x > 0 ? x : alpha * std::expm1(x));
    case ActivationKind::Clip:
      return std::min(std::max(x, alpha), beta);
    case ActivationKind::Sigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::HardSigmoid:
      return std::min(std::max(alpha * x + beta, 0.0), 1.0);
    case ActivationKind::HardSwish:
      return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0);
    case ActivationKind::Swish:
      return x / (1 + std::exp(-x));
    case ActivationKind::Tanh:
      return std::tanh(x);
    case ActivationKind::Softplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
    case ActivationKind::Exp:
      return std::exp(x);
    case ActivationKind::Log:
      return std::log(x);
    case ActivationKind::Sqrt:
      return std::sqrt(x);
    case ActivationKind::Absolute:
      return std::fabs(x);
    case ActivationKind::Negative:
      return -x;
  }
  return x;
}

/** One layer over whole images, as its name says; with empty extents where it does not fit. */
inline Values
Evaluate(const NetworkLayer & layer, std::vector<Values *> in)
{
  const auto & e = in[0]->extent;
  Values       out;
  out.channels = layer.channels;
  for (std::size_t a = 0; a < 3; ++a)
  {
    const std::int64_t reach = layer.dilation[a] * (layer.kernel[a] - 1) + 1;
    const std::int64_t pads = layer.padLower[a] + layer.padUpper[a];
    switch (layer.kind)
    {
      case LayerKind::Convolution:
      case LayerKind::MaximumPooling:
      case LayerKind::AveragePooling:
        out.extent[a] = e[a] + pads < reach ? 0 : (e[a] + pads - reach) / layer.stride[a] + 1;
        break;
      case LayerKind::TransposedConvolution:
        out.extent[a] = (e[a] - 1) * layer.stride[a] + reach - pads;
        break;
      case LayerKind::NearestUpsampling:
      case LayerKind::LinearUpsampling:
        out.extent[a] = e[a] * layer.stride[a];
        break;
      case LayerKind::Crop:
        out.extent[a] = e[a] - pads;
        break;
      default:
        out.extent[a] = e[a];
    }
  }
  out.values.assign(static_cast<std::size_t>(out.channels * out.extent[0] * out.extent[1] * out.extent[2]), 0.0);
  const int inputs = in[0]->channels / layer.groups;
  const int outputs = layer.channels / layer.groups;
  if (layer.kind == LayerKind::TransposedConvolution)
  {
    // Each voxel of the input is spread over the output.
    for (int i = 0; i < in[0]->channels; ++i)
    {
      for (int o = 0; o < outputs; ++o)
      {
        const int   c = i / inputs * outputs + o;
        std::size_t w =
          static_cast<std::size_t>((i * outputs + o) * layer.kernel[0] * layer.kernel[1] * layer.kernel[2]);
        for (std::int64_t kz = 0; kz < layer.kernel[2]; ++kz)
        {
          for (std::int64_t ky = 0; ky < layer.kernel[1]; ++ky)
          {
            for (std::int64_t kx = 0; kx < layer.kernel[0]; ++kx, ++w)
            {
              for (std::int64_t z = 0; z < e[2]; ++z)
              {
                for (std::int64_t y = 0; y < e[1]; ++y)
                {
                  for (std::int64_t x = 0; x < e[0]; ++x)
                  {
                    const std::int64_t tx = x * layer.stride[0] + kx * layer.dilation[0] - layer.padLower[0];
                    const std::int64_t ty = y * layer.stride[1] + ky * layer.dilation[1] - layer.padLower[1];
                    const std::int64_t tz = z * layer.stride[2] + kz * layer.dilation[2] - layer.padLower[2];
                    if (tx >= 0 && tx < out.extent[0] && ty >= 0 && ty < out.extent[1] && tz >= 0 && tz < out.extent[2])
                    {
                      out.At(c, tx, ty, tz) += static_cast<double>((*layer.weights)[w]) * in[0]->At(i, x, y, z);
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
  std::vector<std::pair<Values *, int>> sources;
  for (Values * values : in)
  {
    for (int c = 0; c < values->channels; ++c)
    {
      sources.emplace_back(values, c);
    }
  }
  for (std::int64_t z = 0; z < out.extent[2]; ++z)
  {
    for (std::int64_t y = 0; y < out.extent[1]; ++y)
    {
      for (std::int64_t x = 0; x < out.extent[0]; ++x)
      {
        double largest = -HUGE_VAL;
        double sum = 0;
        for (int c = 0; c < in[0]->channels; ++c)
        {
          largest = layer.kind >= LayerKind::Softmax ? std::max(largest, in[0]->At(c, x, y, z)) : 0.0;
        }
        for (int c = 0; layer.kind >= LayerKind::Softmax && c < in[0]->channels; ++c)
        {
          sum += std::exp(in[0]->At(c, x, y, z) - largest);
        }
        for (int c = 0; c < out.channels; ++c)
        {
          const auto channel = static_cast<std::size_t>(c);
          double     value = layer.bias ? static_cast<double>((*layer.bias)[channel]) : 0.0;
          double     maximum = -HUGE_VAL;
          double     total = 0;
          double     count = 0;
          double     weighted = 0;
          if (layer.kind <= LayerKind::AveragePooling && layer.kind != LayerKind::TransposedConvolution)
          {
            const bool convolves = layer.kind == LayerKind::Convolution;
            for (std::int64_t kz = 0; kz < layer.kernel[2]; ++kz)
            {
              for (std::int64_t ky = 0; ky < layer.kernel[1]; ++ky)
              {
                for (std::int64_t kx = 0; kx < layer.kernel[0]; ++kx)
                {
                  const std::int64_t ix = x * layer.stride[0] + kx * layer.dilation[0] - layer.padLower[0];
                  const std::int64_t iy = y * layer.stride[1] + ky * layer.dilation[1] - layer.padLower[1];
                  const std::int64_t iz = z * layer.stride[2] + kz * layer.dilation[2] - layer.padLower[2];
                  for (int i = 0; convolves && i < inputs; ++i)
                  {
                    const auto w = static_cast<std::size_t>(
                      (((c * inputs + i) * layer.kernel[2] + kz) * layer.kernel[1] + ky) * layer.kernel[0] + kx);
                    weighted +=
                      static_cast<double>((*layer.weights)[w]) * in[0]->Or(0.0, c / outputs * inputs + i, ix, iy, iz);
                  }
                  if (!convolves)
                  {
                    maximum = std::max(maximum, in[0]->Or(-HUGE_VAL, c, ix, iy, iz));
                    total += in[0]->Or(0.0, c, ix, iy, iz);
                    const bool inside = in[0]->Or(HUGE_VAL, c, ix, iy, iz) != HUGE_VAL;
                    count += inside || layer.countsPadding ? 1 : 0;
                  }
                }
              }
            }
          }
          switch (layer.kind)
          {
            case LayerKind::Convolution:
              value += weighted;
              break;
            case LayerKind::TransposedConvolution:
              value += out.At(c, x, y, z);
              break;
            case LayerKind::MaximumPooling:
              value = maximum;
              break;
            case LayerKind::AveragePooling:
              value = total / count;
              break;
            case LayerKind::NearestUpsampling:
              value = in[0]->At(c, x / layer.stride[0], y / layer.stride[1], z / layer.stride[2]);
              break;
            case LayerKind::LinearUpsampling:
            {
              value = 0;
              const std::int64_t at[] = { x, y, z };
              for (int corner = 0; corner < 8; ++corner)
              {
                double       weight = 1;
                std::int64_t index[3];
                for (int a = 0; a < 3; ++a)
                {
                  const auto   axis = static_cast<std::size_t>(a);
                  const double position =
                    (static_cast<double>(at[a]) + 0.5) / static_cast<double>(layer.stride[axis]) - 0.5;
                  const double below = std::floor(position);
                  const bool   upper = (corner >> a & 1) != 0;
                  weight *= upper ? position - below : 1 - (position - below);
                  index[a] = std::min(std::max<std::int64_t>(static_cast<std::int64_t>(below) + (upper ? 1 : 0), 0),
                                      e[axis] - 1);
                }
                value += weight * in[0]->At(c, index[0], index[1], index[2]);
              }
              break;
            }
            case LayerKind::Scaling:
              value += static_cast<double>((*layer.weights)[channel]) * in[0]->At(c, x, y, z);
              break;
            case LayerKind::Sum:
              value = in[0]->At(c, x, y, z) + in[1]->At(c, x, y, z);
              break;
            case LayerKind::Difference:
              value = in[0]->At(c, x, y, z) - in[1]->At(c, x, y, z);
              break;
            case LayerKind::Product:
              value = in[0]->At(c, x, y, z) * in[1]->At(c, x, y, z);
              break;
            case LayerKind::Quotient:
              value = in[0]->At(c, x, y, z) / in[1]->At(c, x, y, z);
              break;
            case LayerKind::Crop:
              value = in[0]->At(c, x + layer.padLower[0], y + layer.padLower[1], z + layer.padLower[2]);
              break;
            case LayerKind::InstanceNormalization:
            {
              double mean = 0;
              double square = 0;
              for (std::int64_t i = 0; i < e[0] * e[1] * e[2]; ++i)
              {
                const double each = in[0]->At(c, i % e[0], i / e[0] % e[1], i / e[0] / e[1]);
                mean += each / static_cast<double>(e[0] * e[1] * e[2]);
                square += each * each / static_cast<double>(e[0] * e[1] * e[2]);
              }
              value += static_cast<double>((*layer.weights)[channel]) * (in[0]->At(c, x, y, z) - mean) /
                       std::sqrt(std::max(square - mean * mean, 0.0) + static_cast<double>(layer.epsilon));
              break;
            }
            case LayerKind::Softmax:
              value = std::exp(in[0]->At(c, x, y, z) - largest) / sum;
              break;
            case LayerKind::LogSoftmax:
              value = in[0]->At(c, x, y, z) - largest - std::log(sum);
              break;
            default:
            {
              const auto from = sources[static_cast<std::size_t>(c + layer.firstChannel)];
              value = from.first->At(from.second, x, y, z);
            }
          }
          out.At(c, x, y, z) = Apply(layer.activation, c, value);
        }
      }
    }
  }
  return out;
}

/** The network, as it was built, over a whole image; with empty extents where the image is too small. */
inline Values
Evaluate(const Network & network, const Values & image)
{
  std::vector<Values> results{ image };
  for (std::size_t i = 1; i < network.layers.size(); ++i)
  {
    std::vector<Values *> in;
    for (const int input : network.layers[i].inputs)
    {
      in.push_back(&results[static_cast<std::size_t>(input)]);
    }
    results.push_back(Evaluate(network.layers[i], in));
    if (results.back().values.empty())
    {
      return results.back();
    }
  }
  return results[static_cast<std::size_t>(network.output)];
}

/** The value of the boundary mode at an index. */
template <typename T>
double
Continued(const BufferView & image, const NetworkOperation & operation, Coordinates index)
{
  bool there = true;
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    there = oracle::Look(index[a], image.box.upper[a], operation.boundary.mode) && there;
  }
  const double value = there ? static_cast<double>(At<T>(image, index)) : operation.boundary.constant.ToDouble();
  return static_cast<double>(static_cast<float>(value * operation.scale + operation.shift));
}

/** The part [lower, lower + extent) of the continued image, at the other axes' position of `at`. */
template <typename T>
Values
Part(const BufferView & image, const NetworkOperation & operation, const LayerExtent & lower,
     const LayerExtent & extent, const Coordinates & at)
{
  Values part;
  part.channels = 1;
  part.extent = extent;
  part.values.resize(static_cast<std::size_t>(extent[0] * extent[1] * extent[2]));
  for (std::int64_t z = 0; z < extent[2]; ++z)
  {
    for (std::int64_t y = 0; y < extent[1]; ++y)
    {
      for (std::int64_t x = 0; x < extent[0]; ++x)
      {
        part.At(0, x, y, z) =
          Continued<T>(image, operation, { { lower[0] + x, lower[1] + y, lower[2] + z, at[3], at[4] } });
      }
    }
  }
  return part;
}

} // namespace trial
} // namespace chunkwise

#endif
