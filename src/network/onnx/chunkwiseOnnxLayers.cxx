/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Operators with weights or windows.
#include "chunkwiseOnnxImporter.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chunkwise
{
namespace onnx
{

namespace
{

/** The kernel of weights [..][..][z][y][x], which kernel_shape must repeat if it is there. */
LayerExtent
KernelOfWeights(const Importer & importer, const std::vector<std::int64_t> & dimensions)
{
  const auto axes = static_cast<std::size_t>(importer.GetSpatialAxes());
  if (dimensions.size() != axes + 2)
  {
    throw Problem("its weights have " + std::to_string(dimensions.size()) + " axes where " + std::to_string(axes + 2) +
                  " are needed");
  }
  LayerExtent kernel{ { 1, 1, 1 } };
  for (std::size_t a = 0; a < axes; ++a)
  {
    kernel[a] = dimensions[axes + 1 - a];
  }
  if (importer.FindAttribute("kernel_shape") && importer.GetExtent("kernel_shape", 1) != kernel)
  {
    throw Problem("attribute kernel_shape contradicts the dimensions of the weights");
  }
  return kernel;
}

/** An int of the graph from a number of the file; -1 where it is none, which the graph refuses. */
int
ToCount(std::int64_t number)
{
  return number < 0 || number > std::numeric_limits<int>::max() ? -1 : static_cast<int>(number);
}

/** Adds what a Pad before this layer has left to do. */
void
TakePads(NetworkLayer & layer, const Value & image)
{
  for (std::size_t a = 0; a < layer.padLower.size(); ++a)
  {
    layer.padLower[a] += image.padLower[a];
    layer.padUpper[a] += image.padUpper[a];
  }
}

NetworkLayer
MakeWindowLayer(const Importer & importer, LayerKind kind, const Value & image)
{
  NetworkLayer layer;
  layer.kind = kind;
  layer.inputs = { image.layer };
  layer.stride = importer.GetExtent("strides", 1);
  layer.dilation = importer.GetExtent("dilations", 1);
  return layer;
}

void
Convolution(Importer & importer)
{
  const Value &                   image = importer.GetPaddedImage(0);
  const std::vector<std::int64_t> dimensions = importer.GetTensorDimensions(1);
  NetworkLayer                    layer = MakeWindowLayer(importer, LayerKind::Convolution, image);
  layer.kernel = KernelOfWeights(importer, dimensions);
  importer.GetPads(layer);
  if (image.IsPadded() && image.padValue != 0)
  {
    throw Problem("the Pad before it pads with " + std::to_string(image.padValue) +
                  "; a convolution pads with zeros alone");
  }
  TakePads(layer, image);
  layer.groups = ToCount(importer.GetInt("group", 1));
  layer.channels = ToCount(dimensions[0]);
  if (layer.groups < 1 || importer.GetChannels(image) % layer.groups != 0 ||
      dimensions[1] != importer.GetChannels(image) / layer.groups)
  {
    throw Problem("its weights are for " + std::to_string(dimensions[1]) + " channels in " +
                  std::to_string(layer.groups) + " groups; the image has " +
                  std::to_string(importer.GetChannels(image)));
  }
  layer.weights = importer.GetFloats(1);
  if (importer.HasInput(2))
  {
    layer.bias = importer.GetFloats(2);
  }
  importer.Give(std::move(layer), Value());
}

void
TransposedConvolution(Importer & importer)
{
  const Value &                   image = importer.GetImage(0);
  const std::vector<std::int64_t> dimensions = importer.GetTensorDimensions(1);
  NetworkLayer                    layer = MakeWindowLayer(importer, LayerKind::TransposedConvolution, image);
  layer.kernel = KernelOfWeights(importer, dimensions);
  if (importer.FindAttribute("output_shape"))
  {
    throw Problem("attribute output_shape fixes the image's size; export the network with pads and output_padding");
  }
  importer.GetPads(layer);
  const std::vector<std::int64_t> more = importer.GetInts("output_padding");
  const auto                      axes = static_cast<std::size_t>(importer.GetSpatialAxes());
  if (!more.empty() && more.size() != axes)
  {
    throw Problem("attribute output_padding has " + std::to_string(more.size()) + " numbers for " +
                  std::to_string(axes) + " axes");
  }
  for (std::size_t a = 0; a < more.size(); ++a)
  {
    const std::int64_t size = more[axes - 1 - a];
    if (size < 0 || size >= std::max(layer.stride[a], layer.dilation[a]))
    {
      throw Problem("attribute output_padding: " + std::to_string(size) + " is not below the stride");
    }
    layer.padUpper[a] -= size;
  }
  layer.groups = ToCount(importer.GetInt("group", 1));
  if (dimensions[0] != importer.GetChannels(image) || layer.groups < 1 || dimensions[1] < 1 ||
      dimensions[1] > std::numeric_limits<int>::max() / layer.groups)
  {
    throw Problem("its weights are for " + std::to_string(dimensions[0]) + " channels in " +
                  std::to_string(layer.groups) + " groups; the image has " +
                  std::to_string(importer.GetChannels(image)));
  }
  layer.channels = static_cast<int>(dimensions[1]) * layer.groups;
  layer.weights = importer.GetFloats(1);
  if (importer.HasInput(2))
  {
    layer.bias = importer.GetFloats(2);
  }
  importer.Give(std::move(layer), Value());
}

NetworkLayer
MakePooling(const Importer & importer, LayerKind kind, const Value & image)
{
  if (!importer.FindAttribute("kernel_shape"))
  {
    throw Problem("attribute kernel_shape is missing");
  }
  if (importer.GetInt("ceil_mode", 0) != 0)
  {
    throw Problem("ceil_mode makes windows that reach beyond the image's end; train or export the network without it");
  }
  NetworkLayer layer = MakeWindowLayer(importer, kind, image);
  layer.kernel = importer.GetExtent("kernel_shape", 1);
  importer.GetPads(layer);
  return layer;
}

void
MaximumPooling(Importer & importer)
{
  const Value & image = importer.GetPaddedImage(0);
  NetworkLayer  layer = MakePooling(importer, LayerKind::MaximumPooling, image);
  if (image.IsPadded() && !(image.padValue <= std::numeric_limits<float>::lowest()))
  {
    throw Problem("the Pad before it pads with " + std::to_string(image.padValue) +
                  ", which takes part in the maximum; let the pooling pad");
  }
  TakePads(layer, image);
  importer.Give(std::move(layer), Value());
}

void
AveragePooling(Importer & importer)
{
  const Value & image = importer.GetPaddedImage(0);
  NetworkLayer  layer = MakePooling(importer, LayerKind::AveragePooling, image);
  const bool padsItself = layer.padLower != LayerExtent{ { 0, 0, 0 } } || layer.padUpper != LayerExtent{ { 0, 0, 0 } };
  layer.countsPadding = importer.GetInt("count_include_pad", 0) != 0;
  if (image.IsPadded())
  {
    if (image.padValue != 0 || (padsItself && !layer.countsPadding))
    {
      throw Problem("the Pad before it and its own padding count differently; use one of them, with zeros");
    }
    layer.countsPadding = true;
    TakePads(layer, image);
  }
  importer.Give(std::move(layer), Value());
}

void
BatchNormalization(Importer & importer)
{
  const Value & image = importer.GetLayer(0);
  bool          isTraining = importer.GetInt("training_mode", 0) != 0;
  // Before training_mode, further outputs meant training.
  isTraining = isTraining || (importer.GetVersion() < 14 && importer.GetNumberOfOutputs() > 1);
  if (isTraining || importer.GetInt("spatial", 1) == 0)
  {
    throw Problem("it normalizes by the image's own statistics, as in training; export the network for inference");
  }
  if (!image.order.empty() || (image.isFlat && !importer.IsOneVoxel(image)))
  {
    throw Problem("its input is transposed or flattened");
  }
  std::array<std::shared_ptr<const std::vector<float>>, 4> parameters;
  const auto channels = static_cast<std::size_t>(importer.GetChannels(image));
  for (std::size_t p = 0; p < parameters.size(); ++p)
  {
    parameters[p] = importer.GetFloats(static_cast<int>(p) + 1);
    if (parameters[p]->size() != channels)
    {
      throw Problem("a parameter has " + std::to_string(parameters[p]->size()) + " numbers for " +
                    std::to_string(channels) + " channels");
    }
  }
  const double epsilon = static_cast<double>(importer.GetFloat("epsilon", 1e-5f));
  auto         weights = std::make_shared<std::vector<float>>(channels);
  auto         bias = std::make_shared<std::vector<float>>(channels);
  for (std::size_t c = 0; c < channels; ++c)
  {
    const double variance = static_cast<double>((*parameters[3])[c]) + epsilon;
    if (!(variance > 0))
    {
      throw Problem("the variance of channel " + std::to_string(c) + " is not positive");
    }
    const double weight = static_cast<double>((*parameters[0])[c]) / std::sqrt(variance);
    const double shift = static_cast<double>((*parameters[1])[c]) - static_cast<double>((*parameters[2])[c]) * weight;
    constexpr double most = std::numeric_limits<float>::max();
    if (!(std::abs(weight) <= most && std::abs(shift) <= most))
    {
      throw Problem("the parameters of channel " + std::to_string(c) + " give no finite number");
    }
    (*weights)[c] = static_cast<float>(weight);
    (*bias)[c] = static_cast<float>(shift);
  }
  NetworkLayer layer;
  layer.kind = LayerKind::Scaling;
  layer.inputs = { image.layer };
  layer.weights = weights;
  layer.bias = bias;
  importer.Give(std::move(layer), image);
}

/** By the statistics of all that the network is given. */
void
InstanceNormalization(Importer & importer)
{
  const Value & image = importer.GetLayer(0);
  if (!image.order.empty() || image.isFlat)
  {
    throw Problem("its input is transposed or flattened");
  }
  NetworkLayer layer;
  layer.kind = LayerKind::InstanceNormalization;
  layer.inputs = { image.layer };
  layer.weights = importer.GetFloats(1);
  layer.bias = importer.GetFloats(2);
  layer.epsilon = importer.GetFloat("epsilon", 1e-5f);
  importer.Give(std::move(layer), image);
}

/** A product of the flattened window and a matrix: a convolution whose kernel is the window's extent.
 * `isTransposed`: the matrix is [outputs][inputs], as weights are. */
void
FullyConnected(Importer & importer, bool isTransposed, double factor, double biasFactor)
{
  const Value & image = importer.GetLayer(0);
  if (!image.isFlat)
  {
    throw Problem(
      "a product of tensors is supported for fully connected layers alone, after a Flatten of an image whose "
      "extents the file fixes");
  }
  const std::vector<std::int64_t> dimensions = importer.GetTensorDimensions(1);
  if (dimensions.size() != 2)
  {
    throw Problem("its second operand is no matrix");
  }
  const std::int64_t inputs = dimensions[isTransposed ? 1 : 0];
  const std::int64_t outputs = dimensions[isTransposed ? 0 : 1];
  if (inputs != importer.GetShape(image, 2)[1])
  {
    throw Problem("its matrix is for " + std::to_string(inputs) + " numbers; the flattened image has " +
                  std::to_string(importer.GetShape(image, 2)[1]));
  }
  NetworkLayer layer;
  layer.kind = LayerKind::Convolution;
  layer.inputs = { image.layer };
  layer.channels = ToCount(outputs);
  layer.kernel = importer.GetExtents(image)[2];
  layer.weights = importer.GetFloats(1);
  if (!isTransposed || factor != 1)
  {
    importer.Charge(layer.weights->size());
    auto weights = std::make_shared<std::vector<float>>(layer.weights->size());
    for (std::int64_t o = 0; o < outputs; ++o)
    {
      for (std::int64_t i = 0; i < inputs; ++i)
      {
        const std::int64_t from = isTransposed ? o * inputs + i : i * outputs + o;
        (*weights)[static_cast<std::size_t>(o * inputs + i)] =
          static_cast<float>(factor * static_cast<double>((*layer.weights)[static_cast<std::size_t>(from)]));
      }
    }
    layer.weights = weights;
  }
  if (importer.HasInput(2))
  {
    const std::vector<std::int64_t> sizes = importer.GetTensorDimensions(2);
    const auto                      given = importer.GetFloats(2);
    const auto                      count = static_cast<std::size_t>(outputs);
    if (sizes.size() > 2 || (sizes.size() == 2 && sizes[0] != 1) || (given->size() != 1 && given->size() != count))
    {
      throw Problem("its bias has the wrong dimensions");
    }
    importer.Charge(count);
    auto bias = std::make_shared<std::vector<float>>(count);
    for (std::size_t c = 0; c < count; ++c)
    {
      (*bias)[c] = static_cast<float>(biasFactor * static_cast<double>((*given)[given->size() == 1 ? 0 : c]));
    }
    layer.bias = bias;
  }
  importer.Give(std::move(layer), image);
}

void
Gemm(Importer & importer)
{
  if (importer.GetInt("transA", 0) != 0)
  {
    throw Problem("transA is not supported");
  }
  FullyConnected(importer,
                 importer.GetInt("transB", 0) != 0,
                 static_cast<double>(importer.GetFloat("alpha", 1.0f)),
                 static_cast<double>(importer.GetFloat("beta", 1.0f)));
}

void
MatrixProduct(Importer & importer)
{
  FullyConnected(importer, false, 1, 1);
}

/** Softmax, over channels. */
void
Softmax(Importer & importer)
{
  const Value & image = importer.GetLayer(0);
  const auto    rank = static_cast<std::size_t>(importer.GetRank(image));
  const bool    isOld = importer.GetVersion() < 13;
  const int     first = importer.GetAxis(importer.GetInt("axis", isOld ? 1 : -1), rank);
  const int     last = isOld ? static_cast<int>(rank) - 1 : first;
  bool          isOverChannels = !image.isFlat || importer.IsOneVoxel(image);
  bool          hasChannels = false;
  for (int axis = first; axis <= last; ++axis)
  {
    const int position = image.order.empty() ? axis : image.order[static_cast<std::size_t>(axis)];
    hasChannels = hasChannels || position == 1;
    isOverChannels = isOverChannels &&
                     (position <= 1 ||
                      (importer.HasFixedExtents() && importer.GetShape(image, 2)[static_cast<std::size_t>(axis)] == 1));
  }
  if (!isOverChannels || !hasChannels)
  {
    throw Problem(isOld
                    ? "before opset 13 it is over all axes from the given one on, voxels too; export the network with "
                      "opset 13 or newer"
                    : "it is over voxels; supported is the one over channels");
  }
  NetworkLayer layer;
  layer.kind = importer.GetOperator() == "Softmax" ? LayerKind::Softmax : LayerKind::LogSoftmax;
  layer.inputs = { image.layer };
  importer.Give(std::move(layer), image);
}

} // namespace

void
AddLayerOperators(OperatorTable & table)
{
  table["Conv"] = Convolution;
  table["ConvTranspose"] = TransposedConvolution;
  table["MaxPool"] = MaximumPooling;
  table["AveragePool"] = AveragePooling;
  table["BatchNormalization"] = BatchNormalization;
  table["InstanceNormalization"] = InstanceNormalization;
  table["Gemm"] = Gemm;
  table["MatMul"] = MatrixProduct;
  table["Softmax"] = Softmax;
  table["LogSoftmax"] = Softmax;
}

std::string
GetAdvice(const std::string & name)
{
  static const char * const ofWindow =
    "its statistics are of the whole window, which a run over the whole image does not have; ";
  static const std::unordered_map<std::string, std::string> advice = [] {
    std::unordered_map<std::string, std::string> made;
    for (const char * normalization : { "GroupNormalization",
                                        "LayerNormalization",
                                        "MeanVarianceNormalization",
                                        "LpNormalization",
                                        "RMSNormalization" })
    {
      made[normalization] = std::string(ofWindow) + "train the network with batch normalization instead";
    }
    for (const char * reduction : { "GlobalAveragePool",
                                    "GlobalMaxPool",
                                    "GlobalLpPool",
                                    "ReduceMean",
                                    "ReduceMax",
                                    "ReduceMin",
                                    "ReduceSum",
                                    "ReduceL1",
                                    "ReduceL2",
                                    "ReduceProd",
                                    "ReduceSumSquare" })
    {
      made[reduction] = std::string(ofWindow) + "a pooling with a kernel of fixed size can stand in for it";
    }
    for (const char * choice : { "ArgMax", "ArgMin", "TopK", "NonMaxSuppression", "NonZero", "OneHot" })
    {
      made[choice] = "its result is no image of numbers; end the network before it";
    }
    for (const char * shuffle : { "DepthToSpace", "SpaceToDepth" })
    {
      made[shuffle] = "it is not supported; a convolution or transposed convolution with a stride can stand in for it";
    }
    for (const char * control : { "If", "Loop", "Scan", "SequenceMap" })
    {
      made[control] = "graphs inside the graph are not supported; export the network without control flow";
    }
    for (const char * sequence : { "SequenceConstruct",
                                   "SequenceAt",
                                   "SequenceEmpty",
                                   "SequenceInsert",
                                   "SplitToSequence",
                                   "ConcatFromSequence",
                                   "Optional",
                                   "OptionalGetElement" })
    {
      made[sequence] = "sequences are not supported";
    }
    for (const char * quantized : { "QuantizeLinear",
                                    "DequantizeLinear",
                                    "DynamicQuantizeLinear",
                                    "QLinearConv",
                                    "QLinearMatMul",
                                    "ConvInteger",
                                    "MatMulInteger" })
    {
      made[quantized] = "quantized networks are not supported; export the network before it is quantized";
    }
    for (const char * recurrent : { "LSTM", "GRU", "RNN", "Attention", "Einsum" })
    {
      made[recurrent] = "it sees the whole image at once; convolutional networks alone are supported";
    }
    return made;
  }();
  const auto found = advice.find(name);
  return found != advice.end() ? found->second
                               : "the operator is not supported; replace it by others, or end the network before it";
}

} // namespace onnx
} // namespace chunkwise
