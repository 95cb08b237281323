/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNetworkGraph_h
#define chunkwiseNetworkGraph_h

#include "chunkwiseGeometry.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

// Convolutional networks as graphs of layers, and where each voxel of each layer comes from. The operation that runs
// them is in chunkwiseNetworkOperation.h.

namespace chunkwise
{

/** The function of a layer. Tensors are [channel][z][y][x] of float32. */
enum class LayerKind
{
  Input,                 ///< the image
  Convolution,           ///< a correlation, as networks' "convolutions" are; weights [out][in / groups][z][y][x]
  TransposedConvolution, ///< its adjoint; weights [in][out / groups][z][y][x]
  MaximumPooling,        ///< the largest of a window; what lies beyond the edge takes no part
  AveragePooling,        ///< the mean of a window
  NearestUpsampling,     ///< each voxel repeated `stride` times along each axis
  LinearUpsampling,      ///< linear between voxels' centres ("half pixel"), the edge continued
  Pointwise,             ///< the activation alone
  Scaling,               ///< weights[channel] * value + bias[channel]: batch normalization
  Sum,                   ///< of two tensors
  Difference,            ///< the first minus the second
  Product,               ///< of two tensors
  Quotient,              ///< the first over the second
  Concatenation,         ///< of channels
  ChannelSlice,          ///< channels [firstChannel, firstChannel + channels)
  Crop,                  ///< `padLower` voxels less at the lower end of each axis, `padUpper` at the upper
  Softmax,               ///< over channels
  LogSoftmax,            ///< over channels
  /** (value - mean) / sqrt(variance + epsilon) * weights[channel] + bias[channel], with mean and variance of the whole
   * channel: in windows alone. */
  InstanceNormalization
};

/** A function of each value of a layer's result. alpha and beta are as ONNX names them. */
enum class ActivationKind : std::int32_t
{
  None,
  Relu,        ///< max(x, 0)
  LeakyRelu,   ///< x < 0 ? alpha x : x
  PRelu,       ///< the same with a slope for each channel
  Elu,         ///< x < 0 ? alpha (exp(x) - 1) : x
  Selu,        ///< beta (x <= 0 ? alpha (exp(x) - 1) : x); ONNX' gamma is beta
  Clip,        ///< min(max(x, alpha), beta)
  Sigmoid,     ///< 1 / (1 + exp(-x))
  HardSigmoid, ///< min(max(alpha x + beta, 0), 1)
  HardSwish,   ///< x min(max(x / 6 + 1/2, 0), 1)
  Swish,       ///< x / (1 + exp(-x)), also called SiLU
  Tanh,
  Softplus, ///< log(1 + exp(x))
  Exp,
  Log,
  Sqrt,
  Absolute,
  Negative
};

struct Activation
{
  ActivationKind                            kind{ ActivationKind::None };
  float                                     alpha{ 0 };
  float                                     beta{ 0 };
  std::shared_ptr<const std::vector<float>> slopes{}; ///< PRelu: one for each channel
};

/** Whole numbers along x, y, z. A two-dimensional network has a kernel of 1 along z. */
using LayerExtent = std::array<std::int64_t, MaxSpatialAxes>;

/** Output channels whose weights lie side by side for the kernels. */
constexpr int ChannelsPerBlock = 8;

/** A layer of a graph. Fields that the description of a kind does not name have no effect on it. */
struct NetworkLayer
{
  LayerKind        kind{ LayerKind::Input };
  std::string      name;     ///< for messages
  std::vector<int> inputs;   ///< indices of earlier layers
  int         channels{ 0 }; ///< of the result: given for Input, convolutions, ChannelSlice; the graph sets the others
  LayerExtent kernel{ { 1, 1, 1 } };
  LayerExtent stride{ { 1, 1, 1 } }; ///< of TransposedConvolution and upsampling the factor
  LayerExtent dilation{ { 1, 1, 1 } };
  /** Voxels beyond the edge that windows may reach, at either end; for TransposedConvolution the voxels that are cut
   * off its result, which may be negative at the upper end (ONNX' output_padding). */
  LayerExtent padLower{ { 0, 0, 0 } };
  LayerExtent padUpper{ { 0, 0, 0 } };
  int         groups{ 1 };
  int         firstChannel{ 0 };
  float       epsilon{ 1e-5f };       ///< InstanceNormalization
  bool        countsPadding{ false }; ///< AveragePooling: voxels beyond the edge count as 0
  std::shared_ptr<const std::vector<float>> weights{};
  std::shared_ptr<const std::vector<float>> bias{}; ///< one for each channel, or nullptr: 0
  /** Weights of Convolution, made by the graph: [group][block of channels][in][tap][channel of the block], with zeros
   * where a group's last block has fewer than ChannelsPerBlock. */
  std::shared_ptr<const std::vector<float>> packedWeights{};
  Activation                                activation{}; ///< of the result
};

/** A network: layers in the order in which they can be computed.
 *
 * Made by Add, one layer after the other, and SetOutput; then Finish checks it as a whole, and nothing changes any
 * more.
 *
 * "Dense": the result has the image's grid. If the layers' strides leave a coarser grid, as in a classifier that was
 * trained on windows, Finish makes the network that gives at each voxel what the classifier gives for the window around
 * it: every stride becomes 1, and what follows it is dilated (Z. Zlateski et al., ZNNi, 2016, section II). */
class Chunkwise_EXPORT NetworkGraph
{
public:
  /** Returns the layer's index. Throws ParameterError, which names the layer, if it makes no sense. */
  int
  Add(NetworkLayer layer);
  /** The layer whose result is the network's. */
  void
  SetOutput(int layer);
  /** Joins layers where that changes no rounding but of folded scalings, drops what the output does not need, makes the
   * network dense. Throws ParameterError where it cannot. */
  void
  Finish();

  const std::vector<NetworkLayer> &
  GetLayers() const
  {
    return m_Layers;
  }
  int
  GetOutput() const
  {
    return m_Output;
  }
  int
  GetNumberOfInputChannels() const;
  int
  GetNumberOfOutputChannels() const;
  /** The first layer that needs statistics of all that the network is given, or nullptr. */
  const NetworkLayer *
  FindNormalization() const;
  /** Identifies the network by its contents. */
  const std::string &
  GetKey() const
  {
    return m_Key;
  }
  /** The stride between the windows of the outputs before the graph was made dense; 1 for networks that keep the
   * image's grid.
   */
  const LayerExtent &
  GetWindowStride() const
  {
    return m_WindowStride;
  }
  /** Chunks that begin at multiples of this share the grids of all layers. */
  const LayerExtent &
  GetTotalStride() const
  {
    return m_TotalStride;
  }
  /** Voxels of the image that one voxel of the result depends on, at most. */
  LayerExtent
  GetFieldOfView() const;
  /** How many voxels along each axis the result has less than the image: 0 if layers pad. */
  const LayerExtent &
  GetMargin() const
  {
    return m_Margin;
  }
  /** How many of these are at the lower end: index i of the result belongs to the image's i plus this. It is where the
   * centres of the layers' windows lie; of an even field of view half a voxel below that. */
  const LayerExtent &
  GetLowerMargin() const
  {
    return m_LowerMargin;
  }

  /** The extent of the image that the network is given for a result of at least `output` voxels along each axis: no
   * less than `output` + margin, and such that all branches meet. Throws ParameterError if there is none. */
  LayerExtent
  GetInputExtent(const LayerExtent & output) const;
  /** The extent of each layer's whole result for an image of this extent, empty where the layers do not fit. */
  std::vector<LayerExtent>
  GetExtents(const LayerExtent & image) const;

  /** The range of indices along one axis that a layer needs of one of its inputs, for its own [lower, upper). */
  void
  GetNeeded(const NetworkLayer & layer, int axis, std::int64_t & lower, std::int64_t & upper) const;

  /** The range of each layer that an image's box needs, in the layer's own indices. `extents` as GetExtents gives them:
   * ranges are cut there; nullptr: they are not. Layers that nothing needs have empty ranges. */
  struct Range
  {
    LayerExtent lower;
    LayerExtent upper;
  };
  std::vector<Range>
  GetRanges(const Range & output, const std::vector<LayerExtent> * extents) const;

  /** One line a layer: name, kind, channels, kernel. */
  std::string
  Describe() const;

private:
  void
  Simplify();
  void
  MakeDense();
  void
  PackWeights();
  void
  FindPeriod();
  void
  PlaceResult();
  void
  MakeKey();

  std::vector<NetworkLayer> m_Layers;
  int                       m_Output{ -1 };
  bool                      m_Finished{ false };
  std::string               m_Key;
  LayerExtent               m_WindowStride{ { 1, 1, 1 } };
  LayerExtent               m_TotalStride{ { 1, 1, 1 } };
  LayerExtent               m_Margin{ { 0, 0, 0 } };
  LayerExtent               m_LowerMargin{ { 0, 0, 0 } };
  /** The least image along each axis; larger ones differ from it by multiples of the total stride. */
  LayerExtent m_LeastInput{ { 1, 1, 1 } };
};

/** "Convolution", "MaximumPooling", ... In the header, so that plans are described without the library of networks. */
inline const char *
LayerKindName(LayerKind kind)
{
  static const char * const names[] = { "Input",
                                        "Convolution",
                                        "TransposedConvolution",
                                        "MaximumPooling",
                                        "AveragePooling",
                                        "NearestUpsampling",
                                        "LinearUpsampling",
                                        "Pointwise",
                                        "Scaling",
                                        "Sum",
                                        "Difference",
                                        "Product",
                                        "Quotient",
                                        "Concatenation",
                                        "ChannelSlice",
                                        "Crop",
                                        "Softmax",
                                        "LogSoftmax",
                                        "InstanceNormalization" };
  return names[static_cast<int>(kind)];
}

} // namespace chunkwise

#endif
