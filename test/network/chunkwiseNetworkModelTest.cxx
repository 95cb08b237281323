/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// ONNX models: the layers that each operator becomes, what is refused and how, and files that are cut, damaged or made
// to do harm.
#include "chunkwiseError.h"
#include "chunkwiseNetworkModel.h"
#include "chunkwiseOnnx.pb.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <random>

using namespace chunkwise;
using Dimensions = std::vector<std::int64_t>;

namespace
{

constexpr std::int64_t Anything = 0;
const LayerExtent      None{ { 0, 0, 0 } };
const LayerExtent      One{ { 1, 1, 1 } };

/** Writes a model. The input is "x", the output "y". */
class Model
{
public:
  explicit Model(const Dimensions & input = { 1, 2, Anything, Anything, Anything }, std::int64_t version = 17)
  {
    proto.set_ir_version(8);
    proto.add_opset_import()->set_version(version);
    proto.mutable_graph()->set_name("g");
    this->Input("x", input);
    proto.mutable_graph()->add_output()->set_name("y");
  }
  void
  Input(const std::string & name, const Dimensions & input)
  {
    onnx_writer::ValueInfoProto * info = proto.mutable_graph()->add_input();
    info->set_name(name);
    onnx_writer::TypeProto::Tensor * type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(1);
    type->mutable_shape();
    for (const std::int64_t size : input)
    {
      if (size == Anything)
      {
        type->mutable_shape()->add_dim()->set_dim_param("n");
      }
      else
      {
        type->mutable_shape()->add_dim()->set_dim_value(size);
      }
    }
  }
  onnx_writer::TensorProto &
  Floats(const std::string & name, const Dimensions & dimensions, std::vector<float> values = {})
  {
    onnx_writer::TensorProto * tensor = proto.mutable_graph()->add_initializer();
    Fill(*tensor, name, dimensions, 1);
    std::int64_t count = 1;
    for (const std::int64_t size : dimensions)
    {
      count *= size;
    }
    for (std::int64_t i = 0; i < count; ++i)
    {
      const auto index = static_cast<std::size_t>(i);
      tensor->add_float_data(values.empty() ? 0.25f * static_cast<float>(i % 7 - 3) : values[index]);
    }
    return *tensor;
  }
  void
  Ints(const std::string & name, const Dimensions & values, bool isScalar = false)
  {
    onnx_writer::TensorProto * tensor = proto.mutable_graph()->add_initializer();
    Fill(*tensor, name, isScalar ? Dimensions{} : Dimensions{ static_cast<std::int64_t>(values.size()) }, 7);
    for (const std::int64_t value : values)
    {
      tensor->add_int64_data(value);
    }
  }
  onnx_writer::NodeProto &
  Node(const std::string & op, const std::vector<std::string> & inputs,
       const std::vector<std::string> & outputs = { "y" })
  {
    onnx_writer::NodeProto * node = proto.mutable_graph()->add_node();
    node->set_op_type(op);
    for (const std::string & name : inputs)
    {
      node->add_input(name);
    }
    for (const std::string & name : outputs)
    {
      node->add_output(name);
    }
    return *node;
  }
  std::string
  Bytes() const
  {
    return proto.SerializeAsString();
  }
  std::shared_ptr<const NetworkGraph>
  Read() const
  {
    const std::string bytes = this->Bytes();
    return ParseNetworkModel(bytes.data(), bytes.size(), "model.onnx");
  }

  onnx_writer::ModelProto proto;

private:
  static void
  Fill(onnx_writer::TensorProto & tensor, const std::string & name, const Dimensions & dimensions, int type)
  {
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const std::int64_t size : dimensions)
    {
      tensor.add_dims(size);
    }
  }
};

onnx_writer::AttributeProto &
AddAttribute(onnx_writer::NodeProto & node, const std::string & name, int type)
{
  onnx_writer::AttributeProto * attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return *attribute;
}

onnx_writer::NodeProto &
Set(onnx_writer::NodeProto & node, const std::string & name, std::int64_t value)
{
  AddAttribute(node, name, 2).set_i(value);
  return node;
}

onnx_writer::NodeProto &
Set(onnx_writer::NodeProto & node, const std::string & name, float value)
{
  AddAttribute(node, name, 1).set_f(value);
  return node;
}

onnx_writer::NodeProto &
Set(onnx_writer::NodeProto & node, const std::string & name, const std::string & value)
{
  AddAttribute(node, name, 3).set_s(value);
  return node;
}

onnx_writer::NodeProto &
Set(onnx_writer::NodeProto & node, const std::string & name, const Dimensions & values)
{
  onnx_writer::AttributeProto & attribute = AddAttribute(node, name, 7);
  for (const std::int64_t value : values)
  {
    attribute.add_ints(value);
  }
  return node;
}

/** The layer that gives the result. */
const NetworkLayer &
Last(const std::shared_ptr<const NetworkGraph> & graph)
{
  return graph->GetLayers()[static_cast<std::size_t>(graph->GetOutput())];
}

/** The error with which the model is refused; empty if it is not. */
std::string
Refusal(const Model & model)
{
  try
  {
    model.Read();
  }
  catch (const ParameterError & error)
  {
    return error.what();
  }
  return "";
}

#define EXPECT_REFUSED(model, part)                                                                                    \
  EXPECT_NE(Refusal(model).find(part), std::string::npos) << "the message is \"" << Refusal(model) << '"';             \
  EXPECT_EQ(Refusal(model).compare(0, 12, "model.onnx: "), 0)

/** A model of one node without constants. */
Model
OneNode(const std::string & op, std::int64_t version = 17)
{
  Model model({ 1, 2, Anything, Anything, Anything }, version);
  model.Node(op, { "x" });
  return model;
}

/** An image is made of the input by a convolution that has no effect on the extents, so that layers can be joined to
 * it. */
void
AddConvolution(Model & model, const std::string & input, const std::string & output, std::int64_t in, std::int64_t out,
               std::int64_t k, std::int64_t pad)
{
  model.Floats(output + ".w", { out, in, k, k, k });
  Set(Set(model.Node("Conv", { input, output + ".w" }, { output }), "kernel_shape", Dimensions{ k, k, k }),
      "pads",
      Dimensions(6, pad));
}

/** A small U-Net whose sizes are computed as PyTorch's exporter writes them. */
Model
SmallNetwork()
{
  Model model({ 1, 1, Anything, Anything, Anything });
  AddConvolution(model, "x", "a", 1, 4, 3, 1);
  for (const char * name : { "scale", "shift", "mean", "variance" })
  {
    model.Floats(name, { 4 }, { 1, 2, 3, 4 });
  }
  model.Node("BatchNormalization", { "a", "scale", "shift", "mean", "variance" }, { "b" });
  model.Node("Relu", { "b" }, { "c" });
  Set(Set(model.Node("MaxPool", { "c" }, { "d" }), "kernel_shape", Dimensions{ 2, 2, 2 }),
      "strides",
      Dimensions{ 2, 2, 2 });
  AddConvolution(model, "d", "e", 4, 4, 3, 1);
  model.Node("LeakyRelu", { "e" }, { "f" });
  model.Node("Shape", { "c" }, { "shape" });
  model.Ints("spatial", { 2, 3, 4 });
  model.Node("Gather", { "shape", "spatial" }, { "extent" });
  model.Node("Shape", { "f" }, { "lowShape" });
  model.Ints("zero", { 0 });
  model.Ints("two", { 2 });
  model.Node("Slice", { "lowShape", "zero", "two", "zero" }, { "batch" });
  Set(model.Node("Concat", { "batch", "extent" }, { "sizes" }), "axis", std::int64_t{ 0 });
  Set(Set(Set(model.Node("Resize", { "f", "", "", "sizes" }, { "g" }), "mode", std::string("nearest")),
          "coordinate_transformation_mode",
          std::string("asymmetric")),
      "nearest_mode",
      std::string("floor"));
  Set(model.Node("Concat", { "c", "g" }, { "h" }), "axis", std::int64_t{ 1 });
  AddConvolution(model, "h", "i", 8, 2, 1, 0);
  Set(model.Node("Softmax", { "i" }), "axis", std::int64_t{ 1 });
  return model;
}

} // namespace

TEST(NetworkModel, ConvolutionHasItsAxesTurned)
{
  Model model({ 1, 4, Anything, Anything, Anything });
  model.Floats("w", { 6, 2, 5, 3, 1 });
  model.Floats("b", { 6 });
  onnx_writer::NodeProto & node = model.Node("Conv", { "x", "w", "b" });
  node.set_name("first");
  Set(node, "kernel_shape", Dimensions{ 5, 3, 1 });
  Set(node, "dilations", Dimensions{ 3, 2, 1 });
  Set(node, "pads", Dimensions{ 1, 2, 0, 4, 1, 0 });
  Set(node, "group", std::int64_t{ 2 });
  const auto           graph = model.Read();
  const NetworkLayer & layer = Last(graph);
  EXPECT_EQ(layer.kind, LayerKind::Convolution);
  EXPECT_EQ(layer.name, "first");
  EXPECT_EQ(layer.channels, 6);
  EXPECT_EQ(layer.groups, 2);
  EXPECT_EQ(layer.kernel, (LayerExtent{ { 1, 3, 5 } }));
  EXPECT_EQ(layer.dilation, (LayerExtent{ { 1, 2, 3 } }));
  EXPECT_EQ(layer.padLower, (LayerExtent{ { 0, 2, 1 } }));
  EXPECT_EQ(layer.padUpper, (LayerExtent{ { 0, 1, 4 } }));
  ASSERT_EQ(layer.weights->size(), 6u * 2 * 15);
  EXPECT_EQ((*layer.weights)[4], 0.25f);
  EXPECT_EQ(layer.bias->size(), 6u);
  EXPECT_EQ(graph->GetNumberOfInputChannels(), 4);
}

TEST(NetworkModel, ConvolutionOfTwoAxes)
{
  Model model({ Anything, 1, Anything, Anything });
  model.Floats("w", { 2, 1, 3, 5 });
  Set(model.Node("Conv", { "x", "w" }), "auto_pad", std::string("SAME_UPPER"));
  const NetworkLayer layer = Last(model.Read());
  EXPECT_EQ(layer.kernel, (LayerExtent{ { 5, 3, 1 } }));
  EXPECT_EQ(layer.padLower, (LayerExtent{ { 2, 1, 0 } }));
  EXPECT_EQ(layer.padUpper, (LayerExtent{ { 2, 1, 0 } }));
}

TEST(NetworkModel, AutomaticPaddingOfEvenKernels)
{
  for (const bool isUpper : { true, false })
  {
    Model model({ 1, 1, Anything, Anything });
    model.Floats("w", { 1, 1, 2, 4 });
    Set(model.Node("Conv", { "x", "w" }), "auto_pad", std::string(isUpper ? "SAME_UPPER" : "SAME_LOWER"));
    const NetworkLayer layer = Last(model.Read());
    EXPECT_EQ(layer.padLower, (LayerExtent{ { isUpper ? 1 : 2, isUpper ? 0 : 1, 0 } }));
    EXPECT_EQ(layer.padUpper, (LayerExtent{ { isUpper ? 2 : 1, isUpper ? 1 : 0, 0 } }));
  }
  Model strided({ 1, 1, Anything, Anything });
  strided.Floats("w", { 1, 1, 3, 3 });
  Set(Set(strided.Node("Conv", { "x", "w" }), "auto_pad", std::string("SAME_UPPER")), "strides", Dimensions{ 2, 2 });
  EXPECT_REFUSED(strided, "according to the image's size");
}

TEST(NetworkModel, ConvolutionsThatDoNotFit)
{
  const auto make = [](const Dimensions & weights, const std::function<void(onnx_writer::NodeProto &)> & change) {
    Model model;
    model.Floats("w", weights);
    change(model.Node("Conv", { "x", "w" }));
    return model;
  };
  const auto nothing = [](onnx_writer::NodeProto &) {};
  EXPECT_REFUSED(make({ 1, 2, 3, 3 }, nothing), "its weights have 4 axes where 5 are needed");
  EXPECT_REFUSED(make({ 1, 3, 3, 3, 3 }, nothing), "its weights are for 3 channels");
  EXPECT_REFUSED(make({ 0, 2, 3, 3, 3 }, nothing), "0 channels");
  EXPECT_REFUSED(make({ 1, 2, 0, 3, 3 }, nothing), "not between 1 and");
  EXPECT_REFUSED(make({ 1, 2, 1, 1, 1 }, [](auto & node) { Set(node, "group", std::int64_t{ 0 }); }), "0 groups");
  EXPECT_REFUSED(make({ 1, 2, 1, 1, 1 }, [](auto & node) { Set(node, "group", std::int64_t{ 1 } << 40); }), "groups");
  EXPECT_REFUSED(make({ 3, 1, 1, 1, 1 }, [](auto & node) { Set(node, "group", std::int64_t{ 2 }); }), "groups");
  EXPECT_REFUSED(make({ 1, 2, 1, 1, 1 }, [](auto & node) { Set(node, "strides", Dimensions{ 1, 1 }); }),
                 "2 numbers for 3 axes");
  EXPECT_REFUSED(make({ 1, 2, 1, 1, 1 }, [](auto & node) { Set(node, "strides", Dimensions{ 0, 1, 1 }); }),
                 "not between 1");
  EXPECT_REFUSED(make({ 1, 2, 1, 1, 1 }, [](auto & node) { Set(node, "pads", Dimensions{ -1, 0, 0, 0, 0, 0 }); }),
                 "not between 0");
  EXPECT_REFUSED(make({ 1, 2, 1, 1, 1 }, [](auto & node) { Set(node, "kernel_shape", Dimensions{ 1, 1, 2 }); }),
                 "contradicts");
  EXPECT_REFUSED(make({ 1, 2, 1, 1, 1 }, [](auto & node) { Set(node, "auto_pad", std::string("MAYBE")); }), "MAYBE");
  EXPECT_REFUSED(make({ 1, 2, 1, 1, 1 }, [](auto & node) { Set(node, "group", 1.0f); }), "wrong type");
  Model missing;
  missing.Node("Conv", { "x", "w" });
  EXPECT_REFUSED(missing, "its input \"w\" is given by no node before it");
  Model none;
  none.Node("Conv", { "x" });
  EXPECT_REFUSED(none, "input 1 is missing");
  Model computed;
  computed.Node("Conv", { "x", "x" });
  EXPECT_REFUSED(computed, "must be a constant");
}

TEST(NetworkModel, TransposedConvolution)
{
  Model model({ 1, 4, Anything, Anything, Anything });
  AddConvolution(model, "x", "a", 4, 4, 2, 0);
  model.proto.mutable_graph()->mutable_node(0)->clear_attribute();
  Set(*model.proto.mutable_graph()->mutable_node(0), "strides", Dimensions{ 2, 2, 2 });
  model.Floats("w", { 4, 3, 2, 3, 4 });
  onnx_writer::NodeProto & node = model.Node("ConvTranspose", { "a", "w" });
  Set(node, "strides", Dimensions{ 2, 2, 2 });
  Set(node, "pads", Dimensions{ 0, 1, 1, 0, 1, 1 });
  Set(node, "output_padding", Dimensions{ 0, 1, 0 });
  Set(node, "group", std::int64_t{ 2 });
  const NetworkLayer layer = Last(model.Read());
  EXPECT_EQ(layer.kind, LayerKind::TransposedConvolution);
  EXPECT_EQ(layer.channels, 6);
  EXPECT_EQ(layer.kernel, (LayerExtent{ { 4, 3, 2 } }));
  EXPECT_EQ(layer.padLower, (LayerExtent{ { 1, 1, 0 } }));
  EXPECT_EQ(layer.padUpper, (LayerExtent{ { 1, 0, 0 } }));

  Set(*model.proto.mutable_graph()->mutable_node(1), "output_shape", Dimensions{ 8, 8, 8 });
  EXPECT_REFUSED(model, "output_shape");
}

TEST(NetworkModel, Poolings)
{
  const auto make = [](const char * op) {
    Model model({ 1, 2, Anything, Anything, Anything });
    Set(Set(model.Node(op, { "x" }), "kernel_shape", Dimensions{ 1, 3, 5 }), "pads", Dimensions{ 0, 1, 2, 0, 1, 2 });
    return model;
  };
  Model maximum = make("MaxPool");
  EXPECT_EQ(Last(maximum.Read()).kind, LayerKind::MaximumPooling);
  EXPECT_EQ(Last(maximum.Read()).kernel, (LayerExtent{ { 5, 3, 1 } }));
  EXPECT_EQ(Last(maximum.Read()).padLower, (LayerExtent{ { 2, 1, 0 } }));
  Model average = make("AveragePool");
  EXPECT_EQ(Last(average.Read()).kind, LayerKind::AveragePooling);
  EXPECT_FALSE(Last(average.Read()).countsPadding);
  Set(*average.proto.mutable_graph()->mutable_node(0), "count_include_pad", std::int64_t{ 1 });
  EXPECT_TRUE(Last(average.Read()).countsPadding);
  Set(*maximum.proto.mutable_graph()->mutable_node(0), "ceil_mode", std::int64_t{ 1 });
  EXPECT_REFUSED(maximum, "ceil_mode");
  EXPECT_REFUSED(OneNode("MaxPool"), "kernel_shape is missing");
  Model indices = make("MaxPool");
  indices.proto.mutable_graph()->mutable_node(0)->set_output(0, "z");
  indices.proto.mutable_graph()->mutable_node(0)->add_output("y");
  EXPECT_REFUSED(indices, "no node gives the output \"y\"");
}

TEST(NetworkModel, Activations)
{
  const std::pair<const char *, ActivationKind> plain[] = { { "Relu", ActivationKind::Relu },
                                                            { "Sigmoid", ActivationKind::Sigmoid },
                                                            { "HardSwish", ActivationKind::HardSwish },
                                                            { "Tanh", ActivationKind::Tanh },
                                                            { "Softplus", ActivationKind::Softplus },
                                                            { "Exp", ActivationKind::Exp },
                                                            { "Log", ActivationKind::Log },
                                                            { "Sqrt", ActivationKind::Sqrt },
                                                            { "Abs", ActivationKind::Absolute },
                                                            { "Neg", ActivationKind::Negative },
                                                            { "LeakyRelu", ActivationKind::LeakyRelu },
                                                            { "Elu", ActivationKind::Elu },
                                                            { "Selu", ActivationKind::Selu },
                                                            { "HardSigmoid", ActivationKind::HardSigmoid },
                                                            { "Clip", ActivationKind::Clip } };
  for (const auto & pair : plain)
  {
    const auto graph = OneNode(pair.first).Read();
    EXPECT_EQ(Last(graph).activation.kind, pair.second) << pair.first;
    EXPECT_EQ(Last(graph).channels, 2);
  }
  const auto of = [](const char * op) { return Last(OneNode(op).Read()).activation; };
  EXPECT_EQ(of("LeakyRelu").alpha, 0.01f);
  EXPECT_EQ(of("Elu").alpha, 1.0f);
  EXPECT_EQ(of("Selu").alpha, 1.67326319217681884765625f);
  EXPECT_EQ(of("Selu").beta, 1.05070102214813232421875f);
  EXPECT_EQ(of("HardSigmoid").alpha, 0.2f);
  EXPECT_EQ(of("HardSigmoid").beta, 0.5f);
  EXPECT_EQ(of("Clip").alpha, std::numeric_limits<float>::lowest());
  Model model;
  Set(model.Node("LeakyRelu", { "x" }), "alpha", 0.5f);
  EXPECT_EQ(Last(model.Read()).activation.alpha, 0.5f);
}

TEST(NetworkModel, Slopes)
{
  for (const Dimensions & dimensions :
       { Dimensions{ 2, 1, 1, 1 }, Dimensions{ 1, 2, 1, 1, 1 }, Dimensions{ 1 }, Dimensions{} })
  {
    Model model;
    model.Floats("s", dimensions, { 0.5f, 0.75f });
    model.Node("PRelu", { "x", "s" });
    const NetworkLayer layer = Last(model.Read());
    EXPECT_EQ(layer.activation.kind, ActivationKind::PRelu);
    ASSERT_EQ(layer.activation.slopes->size(), 2u);
    EXPECT_EQ((*layer.activation.slopes)[1], dimensions.size() > 1 ? 0.75f : 0.5f);
  }
  Model model;
  model.Floats("s", { 2 });
  model.Node("PRelu", { "x", "s" });
  EXPECT_REFUSED(model, "one for each of 2 channels");
}

TEST(NetworkModel, ClipOfOldAndNewFiles)
{
  Model old({ 1, 2, Anything, Anything }, 10);
  Set(Set(old.Node("Clip", { "x" }), "min", 1.0f), "max", 6.0f);
  EXPECT_EQ(Last(old.Read()).activation.alpha, 1.0f);
  EXPECT_EQ(Last(old.Read()).activation.beta, 6.0f);
  Model model;
  model.Floats("low", {}, { 2.0f });
  model.Node("Clip", { "x", "low", "" });
  EXPECT_EQ(Last(model.Read()).activation.alpha, 2.0f);
  EXPECT_EQ(Last(model.Read()).activation.beta, std::numeric_limits<float>::max());
}

TEST(NetworkModel, SoftmaxIsOverChannels)
{
  Model model;
  Set(model.Node("Softmax", { "x" }), "axis", std::int64_t{ 1 });
  EXPECT_EQ(Last(model.Read()).kind, LayerKind::Softmax);
  Model negative;
  Set(negative.Node("LogSoftmax", { "x" }), "axis", std::int64_t{ -4 });
  EXPECT_EQ(Last(negative.Read()).kind, LayerKind::LogSoftmax);
  EXPECT_REFUSED(OneNode("Softmax"), "over voxels");
  EXPECT_REFUSED(OneNode("Softmax", 12), "opset 13");
  Model beyond;
  Set(beyond.Node("Softmax", { "x" }), "axis", std::int64_t{ 5 });
  EXPECT_REFUSED(beyond, "axis 5");

  // The form that exporters wrote before opset 13.
  Model turned({ 1, 2, Anything, Anything, Anything }, 12);
  Set(turned.Node("Transpose", { "x" }, { "a" }), "perm", Dimensions{ 0, 4, 2, 3, 1 });
  Set(turned.Node("Softmax", { "a" }, { "b" }), "axis", std::int64_t{ 4 });
  Set(turned.Node("Transpose", { "b" }), "perm", Dimensions{ 0, 4, 2, 3, 1 });
  EXPECT_EQ(Last(turned.Read()).kind, LayerKind::Softmax);
  turned.proto.mutable_graph()->mutable_node()->RemoveLast();
  turned.proto.mutable_graph()->mutable_node(1)->set_output(0, "y");
  EXPECT_REFUSED(turned, "is no image");
}

TEST(NetworkModel, BatchNormalization)
{
  Model model;
  model.Floats("scale", { 2 }, { 2, 3 });
  model.Floats("shift", { 2 }, { 1, -1 });
  model.Floats("mean", { 2 }, { 5, 7 });
  model.Floats("variance", { 2 }, { 4, 0 });
  Set(model.Node("BatchNormalization", { "x", "scale", "shift", "mean", "variance" }), "epsilon", 0.25f);
  const NetworkLayer layer = Last(model.Read());
  EXPECT_EQ(layer.kind, LayerKind::Scaling);
  EXPECT_FLOAT_EQ((*layer.weights)[0], static_cast<float>(2 / std::sqrt(4.25)));
  EXPECT_FLOAT_EQ((*layer.weights)[1], 6.0f);
  EXPECT_FLOAT_EQ((*layer.bias)[1], -43.0f);

  Model training = model;
  Set(*training.proto.mutable_graph()->mutable_node(0), "training_mode", std::int64_t{ 1 });
  EXPECT_REFUSED(training, "as in training");
  Model negative = model;
  negative.proto.mutable_graph()->mutable_initializer(3)->set_float_data(1, -1.0f);
  EXPECT_REFUSED(negative, "variance of channel 1");
  Model three = model;
  three.Floats("mean3", { 3 });
  three.proto.mutable_graph()->mutable_node(0)->set_input(3, "mean3");
  EXPECT_REFUSED(three, "3 numbers for 2 channels");
}

TEST(NetworkModel, ValuesThatGoOn)
{
  Model model;
  model.Node("Dropout", { "x" }, { "a", "mask" });
  model.Node("Identity", { "a" }, { "b" });
  Set(model.Node("Cast", { "b" }, { "c" }), "to", std::int64_t{ 10 });
  model.Node("Relu", { "c" });
  EXPECT_EQ(model.Read()->GetLayers().size(), 2u);
  Model integer;
  Set(integer.Node("Cast", { "x" }), "to", std::int64_t{ 7 });
  EXPECT_REFUSED(integer, "it makes int64 of an image");
  Model                      training;
  onnx_writer::TensorProto & on = training.Floats("on", {}, { 1 });
  on.clear_float_data();
  on.set_data_type(9);
  on.add_int32_data(1);
  training.Floats("ratio", {}, { 0.5f });
  training.Node("Dropout", { "x", "ratio", "on" });
  EXPECT_REFUSED(training, "as in training");
}

TEST(NetworkModel, ArithmeticOfTwoImages)
{
  const std::pair<const char *, LayerKind> kinds[] = { { "Add", LayerKind::Sum },
                                                       { "Sub", LayerKind::Difference },
                                                       { "Mul", LayerKind::Product },
                                                       { "Div", LayerKind::Quotient } };
  for (const auto & pair : kinds)
  {
    Model model;
    model.Node("Exp", { "x" }, { "a" });
    model.Node(pair.first, { "x", "a" });
    const NetworkLayer layer = Last(model.Read());
    EXPECT_EQ(layer.kind, pair.second);
    EXPECT_EQ(layer.inputs, (std::vector<int>{ 0, 1 }));
  }
  Model swish;
  swish.Node("Sigmoid", { "x" }, { "a" });
  swish.Node("Mul", { "a", "x" });
  EXPECT_EQ(Last(swish.Read()).activation.kind, ActivationKind::Swish);

  // A map of one channel for all of an image.
  Model gate;
  AddConvolution(gate, "x", "a", 2, 1, 1, 0);
  gate.Node("Mul", { "a", "x" });
  const auto           graph = gate.Read();
  const NetworkLayer & copies = graph->GetLayers()[static_cast<std::size_t>(Last(graph).inputs[0])];
  EXPECT_EQ(copies.kind, LayerKind::Concatenation);
  EXPECT_EQ(copies.channels, 2);

  Model three;
  AddConvolution(three, "x", "a", 2, 3, 1, 0);
  three.Node("Add", { "a", "x" });
  EXPECT_REFUSED(three, "3 and 2 channels");
  Model all;
  all.Node("Sum", { "x", "x", "x" });
  EXPECT_EQ(Last(all.Read()).kind, LayerKind::Sum);
}

TEST(NetworkModel, ArithmeticWithConstants)
{
  const auto scaled = [](const char * op, bool isFirst, const Dimensions & dimensions) {
    Model model;
    model.Floats("c", dimensions, { 2.0f, 4.0f });
    model.Node(op, { isFirst ? "c" : "x", isFirst ? "x" : "c" });
    return Last(model.Read());
  };
  const Dimensions channels{ 1, 2, 1, 1, 1 };
  NetworkLayer     layer = scaled("Mul", true, channels);
  EXPECT_EQ(layer.kind, LayerKind::Scaling);
  EXPECT_EQ(*layer.weights, (std::vector<float>{ 2, 4 }));
  layer = scaled("Add", false, { 2, 1, 1, 1 });
  EXPECT_EQ(*layer.weights, (std::vector<float>{ 1, 1 }));
  EXPECT_EQ(*layer.bias, (std::vector<float>{ 2, 4 }));
  layer = scaled("Sub", false, {});
  EXPECT_EQ(*layer.bias, (std::vector<float>{ -2, -2 }));
  layer = scaled("Sub", true, channels);
  EXPECT_EQ(*layer.weights, (std::vector<float>{ -1, -1 }));
  EXPECT_EQ(*layer.bias, (std::vector<float>{ 2, 4 }));
  layer = scaled("Div", false, channels);
  EXPECT_EQ(*layer.weights, (std::vector<float>{ 0.5f, 0.25f }));
  EXPECT_THROW(scaled("Div", true, channels), ParameterError);
  EXPECT_THROW(scaled("Mul", true, { 2 }), ParameterError);
  Model zero;
  zero.Floats("c", {}, { 0.0f });
  zero.Node("Div", { "x", "c" });
  EXPECT_REFUSED(zero, "divides by 0");
}

TEST(NetworkModel, ConcatenationSliceAndSplit)
{
  Model model({ 1, 3, Anything, Anything, Anything });
  model.Ints("parts", { 1, 2 });
  Set(model.Node("Split", { "x", "parts" }, { "a", "b" }), "axis", std::int64_t{ 1 });
  Set(model.Node("Concat", { "b", "a" }), "axis", std::int64_t{ -4 });
  const auto           graph = model.Read();
  const NetworkLayer & joined = Last(graph);
  EXPECT_EQ(joined.kind, LayerKind::Concatenation);
  EXPECT_EQ(joined.channels, 3);
  const NetworkLayer & part = graph->GetLayers()[static_cast<std::size_t>(joined.inputs[0])];
  EXPECT_EQ(part.kind, LayerKind::ChannelSlice);
  EXPECT_EQ(part.firstChannel, 1);
  EXPECT_EQ(part.channels, 2);
  Set(*model.proto.mutable_graph()->mutable_node(1), "x", std::int64_t{ 2 });
  model.proto.mutable_graph()->mutable_node(1)->mutable_attribute(0)->set_i(2);
  EXPECT_REFUSED(model, "supported are channels");

  Model slice({ 1, 3, Anything, Anything, Anything });
  slice.Ints("starts", { 1, 2, 0 });
  slice.Ints("ends", { std::numeric_limits<std::int64_t>::max(), -3, -4 });
  slice.Ints("axes", { 1, 2, -1 });
  slice.Node("Slice", { "x", "starts", "ends", "axes" });
  const auto sliced = slice.Read();
  EXPECT_EQ(Last(sliced).kind, LayerKind::Crop);
  EXPECT_EQ(Last(sliced).padLower, (LayerExtent{ { 0, 0, 2 } }));
  EXPECT_EQ(Last(sliced).padUpper, (LayerExtent{ { 4, 0, 3 } }));
  EXPECT_EQ(Last(sliced).channels, 2);

  Model old({ 1, 3, Anything, Anything }, 9);
  Set(Set(Set(old.Node("Slice", { "x" }), "axes", Dimensions{ 1 }), "starts", Dimensions{ -2 }),
      "ends",
      Dimensions{ -1 });
  EXPECT_EQ(Last(old.Read()).kind, LayerKind::ChannelSlice);
  EXPECT_EQ(Last(old.Read()).firstChannel, 1);
  EXPECT_EQ(Last(old.Read()).channels, 1);

  // A constant end is a margin if the file fixes the extents.
  const auto constantEnd = [](std::int64_t size) {
    Model fixed({ 1, 3, size, size, size });
    fixed.Ints("starts", { 4 });
    fixed.Ints("ends", { 100 });
    fixed.Ints("axes", { 2 });
    fixed.Node("Slice", { "x", "starts", "ends", "axes" });
    return fixed;
  };
  EXPECT_EQ(Last(constantEnd(110).Read()).padUpper, (LayerExtent{ { 0, 0, 10 } }));
  EXPECT_REFUSED(constantEnd(Anything), "depends on the image's size");
}

TEST(NetworkModel, ResizeByScales)
{
  const auto make =
    [](const std::string & mode, const std::string & transformation, const std::string & rounding, float scale) {
      Model model({ 1, 2, Anything, Anything, Anything });
      Set(Set(model.Node("MaxPool", { "x" }, { "a" }), "kernel_shape", Dimensions{ 3, 3, 3 }),
          "strides",
          Dimensions{ 3, 3, 3 });
      model.Floats("scales", { 5 }, { 1, 1, scale, scale, scale });
      Set(Set(Set(model.Node("Resize", { "a", "", "scales" }), "mode", mode),
              "coordinate_transformation_mode",
              transformation),
          "nearest_mode",
          rounding);
      return model;
    };
  EXPECT_EQ(Last(make("nearest", "asymmetric", "floor", 3).Read()).kind, LayerKind::NearestUpsampling);
  EXPECT_EQ(Last(make("nearest", "asymmetric", "floor", 3).Read()).stride, (LayerExtent{ { 3, 3, 3 } }));
  EXPECT_EQ(Last(make("nearest", "half_pixel", "round_prefer_floor", 3).Read()).kind, LayerKind::NearestUpsampling);
  EXPECT_EQ(Last(make("linear", "half_pixel", "round_prefer_floor", 3).Read()).kind, LayerKind::LinearUpsampling);
  EXPECT_EQ(Last(make("linear", "pytorch_half_pixel", "floor", 3).Read()).kind, LayerKind::LinearUpsampling);
  EXPECT_REFUSED(make("nearest", "half_pixel", "floor", 3), "repeat each voxel equally");
  EXPECT_REFUSED(make("nearest", "asymmetric", "round_prefer_floor", 3), "repeat each voxel equally");
  EXPECT_REFUSED(make("linear", "align_corners", "floor", 3), "align_corners");
  EXPECT_REFUSED(make("linear", "asymmetric", "floor", 3), "half_pixel");
  EXPECT_REFUSED(make("cubic", "half_pixel", "floor", 3), "cubic");
  EXPECT_REFUSED(make("nearest", "asymmetric", "floor", 1.5f), "whole numbers");
  EXPECT_REFUSED(make("nearest", "asymmetric", "floor", 0.5f), "whole numbers");
  EXPECT_REFUSED(make("nearest", "asymmetric", "floor", std::nanf("")), "whole numbers");
  EXPECT_REFUSED(make("nearest", "asymmetric", "floor", 6), "finer than the image's");
}

TEST(NetworkModel, UpsampleOfOldFiles)
{
  for (const std::int64_t version : { 7, 9 })
  {
    Model model({ 1, 2, Anything, Anything }, version);
    Set(
      Set(model.Node("MaxPool", { "x" }, { "a" }), "kernel_shape", Dimensions{ 2, 1 }), "strides", Dimensions{ 2, 1 });
    model.Floats("scales", { 4 }, { 1, 1, 2, 1 });
    onnx_writer::NodeProto & node = model.Node("Upsample", { "a", "scales" });
    if (version == 7)
    {
      node.mutable_input()->RemoveLast();
      onnx_writer::AttributeProto & scales = AddAttribute(node, "scales", 6);
      for (const float scale : { 1, 1, 2, 1 })
      {
        scales.add_floats(scale);
      }
    }
    EXPECT_EQ(Last(model.Read()).kind, LayerKind::NearestUpsampling);
    EXPECT_EQ(Last(model.Read()).stride, (LayerExtent{ { 1, 2, 1 } }));
    Set(node, "mode", std::string("linear"));
    EXPECT_REFUSED(model, "opset 11");
  }
}

TEST(NetworkModel, SizesAreComputedFromShapes)
{
  const auto graph = SmallNetwork().Read();
  bool       isFound = false;
  for (const NetworkLayer & layer : graph->GetLayers())
  {
    if (layer.kind == LayerKind::NearestUpsampling)
    {
      isFound = true;
      EXPECT_EQ(layer.stride, (LayerExtent{ { 2, 2, 2 } }));
    }
  }
  EXPECT_TRUE(isFound);
  EXPECT_EQ(graph->GetTotalStride(), (LayerExtent{ { 2, 2, 2 } }));
  EXPECT_EQ(graph->GetMargin(), None);
  EXPECT_EQ(graph->GetNumberOfOutputChannels(), 2);
}

TEST(NetworkModel, SizesByArithmetic)
{
  // As PyTorch wrote a scale factor up to opset 10: each extent, as float, times 2, rounded down.
  const auto make = [](std::int64_t size, bool isConstant) {
    Model model({ 1, 2, size, size });
    Set(
      Set(model.Node("MaxPool", { "x" }, { "a" }), "kernel_shape", Dimensions{ 2, 2 }), "strides", Dimensions{ 2, 2 });
    model.Node("Shape", { "a" }, { "shape" });
    model.Floats("factor", {}, { 2.0f });
    std::vector<std::string> parts;
    for (int axis = 2; axis < 4; ++axis)
    {
      const std::string name = std::to_string(axis);
      model.Ints("index" + name, { axis }, true);
      model.Node("Gather", { "shape", "index" + name }, { "size" + name });
      Set(model.Node("Cast", { "size" + name }, { "float" + name }), "to", std::int64_t{ 1 });
      model.Node("Mul", { "float" + name, "factor" }, { "more" + name });
      model.Node("Floor", { "more" + name }, { "floor" + name });
      Set(model.Node("Cast", { "floor" + name }, { "int" + name }), "to", std::int64_t{ 7 });
      model.Ints("zero" + name, { 0 });
      model.Node("Unsqueeze", { "int" + name, "zero" + name }, { "part" + name });
      parts.push_back("part" + name);
    }
    model.Ints("ones", { 1, 2 });
    parts.insert(parts.begin(), "ones");
    Set(model.Node("Concat", parts, { "sizes" }), "axis", std::int64_t{ 0 });
    model.Ints("constant", { 1, 2, 64, 64 });
    Set(Set(model.Node("Resize", { "a", "", "", isConstant ? "constant" : "sizes" }),
            "nearest_mode",
            std::string("floor")),
        "coordinate_transformation_mode",
        std::string("asymmetric"));
    return model;
  };
  EXPECT_EQ(Last(make(Anything, false).Read()).stride, (LayerExtent{ { 2, 2, 1 } }));
  EXPECT_EQ(Last(make(64, true).Read()).stride, (LayerExtent{ { 2, 2, 1 } }));
  EXPECT_REFUSED(make(Anything, true), "no whole multiples");
  EXPECT_REFUSED(make(48, true), "no whole multiples");
}

TEST(NetworkModel, PaddingGoesToTheNextWindow)
{
  const auto make = [](const std::function<void(Model &)> & next, float value = 0) {
    Model model;
    model.Ints("pads", { 0, 0, 1, 0, 2, 0, 0, 0, 3, 0 });
    model.Floats("value", {}, { value });
    model.Node("Pad", { "x", "pads", "value" }, { "a" });
    next(model);
    return model;
  };
  const auto convolution = [](Model & model) {
    model.Floats("w", { 1, 2, 3, 4, 3 });
    Set(model.Node("Conv", { "a", "w" }), "pads", Dimensions{ 0, 0, 0, 0, 0, 0 });
  };
  const NetworkLayer layer = Last(make(convolution).Read());
  EXPECT_EQ(layer.padLower, (LayerExtent{ { 2, 0, 1 } }));
  EXPECT_EQ(layer.padUpper, (LayerExtent{ { 0, 3, 0 } }));
  EXPECT_REFUSED(make(convolution, 1), "with zeros alone");
  EXPECT_REFUSED(make([](Model & model) { model.Node("Relu", { "a" }); }), "a Pad comes before it");
  EXPECT_REFUSED(make([](Model & model) { model.Node("Identity", { "a" }); }), "is no image");
  const auto pooling = [](const char * op) {
    return [op](Model & model) { Set(model.Node(op, { "a" }), "kernel_shape", Dimensions{ 3, 4, 3 }); };
  };
  EXPECT_TRUE(Last(make(pooling("AveragePool")).Read()).countsPadding);
  EXPECT_REFUSED(make(pooling("MaxPool")), "takes part in the maximum");
  EXPECT_EQ(Last(make(pooling("MaxPool"), -std::numeric_limits<float>::infinity()).Read()).padLower,
            (LayerExtent{ { 2, 0, 1 } }));
  Model mirror = make(convolution);
  Set(*mirror.proto.mutable_graph()->mutable_node(0), "mode", std::string("reflect"));
  EXPECT_REFUSED(mirror, "mode \"reflect\"");
  Model old({ 1, 1, Anything, Anything }, 10);
  Set(old.Node("Pad", { "x" }), "pads", Dimensions{ 0, 0, -1, -2, 0, 0, -3, 0 });
  EXPECT_EQ(Last(old.Read()).kind, LayerKind::Crop);
  EXPECT_EQ(Last(old.Read()).padLower, (LayerExtent{ { 2, 1, 0 } }));
  EXPECT_EQ(Last(old.Read()).padUpper, (LayerExtent{ { 0, 3, 0 } }));
}

TEST(NetworkModel, ClassifierBecomesDense)
{
  const auto make = [](std::int64_t size, bool byReshape) {
    Model model({ 1, 1, size, size });
    model.Floats("w", { 2, 1, 3, 3 });
    model.Node("Conv", { "x", "w" }, { "a" });
    Set(
      Set(model.Node("MaxPool", { "a" }, { "b" }), "kernel_shape", Dimensions{ 2, 2 }), "strides", Dimensions{ 2, 2 });
    if (byReshape)
    {
      model.Ints("shape", { 0, -1 });
      model.Node("Reshape", { "b", "shape" }, { "c" });
      model.Floats("m", { 18, 4 });
      model.Floats("bias", { 4 });
      model.Node("MatMul", { "c", "m" }, { "d0" });
      model.Node("Add", { "d0", "bias" }, { "d" });
    }
    else
    {
      model.Node("Flatten", { "b" }, { "c" });
      model.Floats("m", { 4, 18 });
      model.Floats("bias", { 4 });
      Set(model.Node("Gemm", { "c", "m", "bias" }, { "d" }), "transB", std::int64_t{ 1 });
    }
    model.Node("Relu", { "d" }, { "e" });
    model.Floats("m2", { 4, 3 });
    Set(Set(model.Node("Gemm", { "e", "m2" }, { "f" }), "alpha", 2.0f), "transB", std::int64_t{ 0 });
    Set(model.Node("Softmax", { "f" }), "axis", std::int64_t{ -1 });
    return model;
  };
  for (const bool byReshape : { false, true })
  {
    const auto graph = make(8, byReshape).Read();
    EXPECT_EQ(graph->GetWindowStride(), (LayerExtent{ { 2, 2, 1 } }));
    EXPECT_EQ(graph->GetFieldOfView(), (LayerExtent{ { 8, 8, 1 } }));
    EXPECT_EQ(graph->GetNumberOfOutputChannels(), 3);
    std::vector<NetworkLayer> convolutions;
    for (const NetworkLayer & layer : graph->GetLayers())
    {
      if (layer.kind == LayerKind::Convolution)
      {
        convolutions.push_back(layer);
      }
    }
    ASSERT_EQ(convolutions.size(), 3u);
    EXPECT_EQ(convolutions[1].kernel, (LayerExtent{ { 3, 3, 1 } }));
    EXPECT_EQ(convolutions[1].channels, 4);
    // Output 1, input 2: the matrix of MatMul is [inputs][outputs], that of Gemm the other way here.
    EXPECT_EQ((*convolutions[1].weights)[18 + 2],
              byReshape ? 0.25f * ((2 * 4 + 1) % 7 - 3) : 0.25f * ((18 + 2) % 7 - 3));
    EXPECT_EQ(convolutions[2].kernel, One);
    EXPECT_EQ((*convolutions[2].weights)[1], 2 * 0.25f * (3 % 7 - 3));
  }
  EXPECT_REFUSED(make(Anything, false), "fixed extents");
  EXPECT_REFUSED(make(Anything, true), "fixed extents");
  EXPECT_REFUSED(make(12, false), "its matrix is for 18 numbers");
}

TEST(NetworkModel, TypesOfWeights)
{
  const auto make = [](int type, const std::string & raw) {
    Model                      model({ 1, 1, Anything, Anything });
    onnx_writer::TensorProto & tensor = model.Floats("w", { 1, 1, 1, 2 });
    tensor.clear_float_data();
    tensor.set_data_type(type);
    tensor.set_raw_data(raw);
    model.Node("Conv", { "x", "w" });
    return model;
  };
  const std::vector<float> expected{ 1.0f, -2.5f };
  EXPECT_EQ(*Last(make(1, std::string("\0\0\x80\x3f\0\0\x20\xc0", 8)).Read()).weights, expected);
  EXPECT_EQ(*Last(make(10, std::string("\x00\x3c\x00\xc1", 4)).Read()).weights, expected);
  EXPECT_EQ(*Last(make(16, std::string("\x80\x3f\x20\xc0", 4)).Read()).weights, expected);
  EXPECT_EQ(*Last(make(11, std::string("\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\x04\xc0", 16)).Read()).weights, expected);
  // The smallest half, and a normal one.
  EXPECT_EQ(*Last(make(10, std::string("\x01\x00\xff\x7b", 4)).Read()).weights,
            (std::vector<float>{ std::ldexp(1.0f, -24), 65504.0f }));
  EXPECT_REFUSED(make(10, std::string("\x00\x7c\x00\x00", 4)), "not finite");
  EXPECT_REFUSED(make(11, std::string("\0\0\0\0\0\0\xf0\x7e\0\0\0\0\0\0\0\0", 16)), "not finite");
  EXPECT_REFUSED(make(1, "short"), "it has 5 bytes where its dimensions ask for 8");
  EXPECT_REFUSED(make(3, "ab"), "before it is quantized");
  EXPECT_REFUSED(make(99, "ab"), "type 99");
}

TEST(NetworkModel, DimensionsThatLie)
{
  const auto make = [](const Dimensions & dimensions) {
    Model                      model({ 1, 1, Anything, Anything });
    onnx_writer::TensorProto & tensor = model.Floats("w", { 1, 1, 1, 1 });
    tensor.clear_dims();
    for (const std::int64_t size : dimensions)
    {
      tensor.add_dims(size);
    }
    model.Node("Conv", { "x", "w" });
    return model;
  };
  constexpr std::int64_t Huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_REFUSED(make({ Huge, 1, 1, 1 }), "");
  EXPECT_REFUSED(make({ 1, 1, Huge, Huge }), "");
  EXPECT_REFUSED(make({ 1, 1, std::int64_t{ 1 } << 32, std::int64_t{ 1 } << 32 }), "dimensions make no sense");
  EXPECT_REFUSED(make({ 1, 1, 1 << 20, 1 << 19 }), "1 numbers where its dimensions ask for 549755813888");
  EXPECT_REFUSED(make({ -1, 1, -1, 1 }), "make no sense");
  EXPECT_REFUSED(make({ 1, 1, 0, Huge }), "make no sense");
  EXPECT_REFUSED(make({}), "0 axes");
}

TEST(NetworkModel, AFewBytesDoNotMakeManyNumbers)
{
  // One tensor for thousands of layers that each get a copy of it.
  Model model({ 1, 64, Anything, Anything });
  model.Floats("w", { 64, 64, 5, 5 });
  std::string from = "x";
  for (int i = 0; i < 1000; ++i)
  {
    const std::string name = "c" + std::to_string(i);
    model.Node("Conv", { from, "w" }, { name });
    from = name;
  }
  model.Node("Relu", { from });
  EXPECT_REFUSED(model, "far more weights than the file has bytes");
  // Lists that double.
  Model lists;
  lists.Ints("l0", Dimensions(64, 1));
  for (int i = 0; i < 40; ++i)
  {
    const std::string name = "l" + std::to_string(i);
    Set(lists.Node("Concat", { name, name }, { "l" + std::to_string(i + 1) }), "axis", std::int64_t{ 0 });
  }
  lists.Node("Resize", { "x", "", "", "l40" });
  EXPECT_REFUSED(lists, "no short lists");
  // Channels that double.
  Model       channels;
  std::string image = "x";
  for (int i = 0; i < 40; ++i)
  {
    const std::string name = "c" + std::to_string(i);
    Set(channels.Node("Concat", { image, image }, { name }), "axis", std::int64_t{ 1 });
    image = name;
  }
  channels.Node("Relu", { image });
  EXPECT_REFUSED(channels, "channels are not between");
  // Extents that grow.
  Model extents({ 1, 1, Anything, Anything });
  extents.Floats("scales", { 4 }, { 1, 1, 4096, 4096 });
  image = "x";
  for (int i = 0; i < 20; ++i)
  {
    const std::string name = "c" + std::to_string(i);
    extents.Node("Resize", { image, "", "scales" }, { name });
    image = name;
  }
  extents.Node("Relu", { image });
  EXPECT_REFUSED(extents, "beyond all measure");
}

TEST(NetworkModel, ModelsThatDoNotFitTogether)
{
  Model empty;
  EXPECT_REFUSED(empty, "no nodes");
  Model cycle;
  cycle.Node("Relu", { "b" }, { "a" });
  cycle.Node("Relu", { "a" }, { "b" });
  cycle.Node("Add", { "a", "b" });
  EXPECT_REFUSED(cycle, "given by no node before it");
  Model unordered;
  unordered.Node("Relu", { "a" });
  unordered.Node("Relu", { "x" }, { "a" });
  EXPECT_REFUSED(unordered, "is given by no node before it");
  Model twice;
  twice.Node("Relu", { "x" }, { "a" });
  twice.Node("Exp", { "x" }, { "a" });
  twice.Node("Abs", { "a" });
  EXPECT_REFUSED(twice, "has the name of another");
  Model constants = OneNode("Relu");
  constants.Floats("w", { 1 });
  constants.Floats("w", { 1 });
  EXPECT_REFUSED(constants, "two constants");
  Model inputs = OneNode("Relu");
  inputs.Input("z", { 1, 1, 1, 1 });
  EXPECT_REFUSED(inputs, "several inputs, \"x\" and \"z\"");
  // Before the fourth version constants were inputs too.
  Model listed = OneNode("Relu");
  listed.Floats("w", { 1 });
  listed.Input("w", { 1 });
  EXPECT_EQ(Last(listed.Read()).kind, LayerKind::Pointwise);
  Model outputs = OneNode("Relu");
  outputs.proto.mutable_graph()->add_output()->set_name("x");
  EXPECT_REFUSED(outputs, "2 outputs");
  Model missing = OneNode("Relu");
  missing.proto.mutable_graph()->mutable_output(0)->set_name("other");
  EXPECT_REFUSED(missing, "no node gives the output \"other\"");
  Model itself = OneNode("Relu");
  itself.proto.mutable_graph()->mutable_output(0)->set_name("x");
  EXPECT_EQ(Last(itself.Read()).kind, LayerKind::Input);
  const auto withInput = [](const Dimensions & dimensions) {
    Model model(dimensions);
    model.Node("Relu", { "x" });
    return model;
  };
  EXPECT_REFUSED(withInput({ 2, 1, Anything, Anything }), "a batch of 2");
  EXPECT_REFUSED(withInput({ 1, Anything, Anything, Anything }), "number of its channels");
  EXPECT_REFUSED(withInput({ 1, 1, Anything }), "3 axes");
  EXPECT_REFUSED(withInput({ 1, 1, std::int64_t{ 1 } << 62, 4 }), "extents make no sense");
  EXPECT_REFUSED(withInput({ 1, std::int64_t{ 1 } << 62, 4, 4 }), "channels");
  Model integer = OneNode("Relu");
  integer.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(2);
  EXPECT_REFUSED(integer, "its elements are uint8");
  EXPECT_REFUSED(OneNode("Relu", 6), "version 6");
  EXPECT_REFUSED(OneNode("Relu", 22), "version 22");
  Model domain = OneNode("Relu");
  domain.proto.mutable_graph()->mutable_node(0)->set_domain("com.example");
  EXPECT_REFUSED(domain, "the domain \"com.example\"");
  Model sparse = OneNode("Relu");
  sparse.proto.mutable_graph()->add_sparse_initializer("");
  EXPECT_REFUSED(sparse, "sparse weights");
  // Nodes that the result does not need may be anything.
  Model unused = OneNode("Relu");
  unused.Node("Nonsense", { "nothing" }, { "z" });
  EXPECT_EQ(unused.Read()->GetLayers().size(), 2u);
}

TEST(NetworkModel, OperatorsThatAreRefusedByName)
{
  const std::pair<const char *, const char *> cases[] = { { "GroupNormalization", "batch normalization" },
                                                          { "LayerNormalization", "batch normalization" },
                                                          { "GlobalAveragePool", "of the whole window" },
                                                          { "ReduceMean", "of the whole window" },
                                                          { "ArgMax", "end the network before it" },
                                                          { "DepthToSpace", "transposed convolution" },
                                                          { "If", "control flow" },
                                                          { "Loop", "control flow" },
                                                          { "SequenceAt", "sequences" },
                                                          { "QLinearConv", "quantized" },
                                                          { "LSTM", "whole image at once" },
                                                          { "Erf", "not supported" },
                                                          { "Bad\nName", "(Bad?Name)" } };
  for (const auto & pair : cases)
  {
    EXPECT_REFUSED(OneNode(pair.first), pair.second);
    EXPECT_REFUSED(OneNode(pair.first), "node \"y\" (");
  }
  Model named = OneNode("Erf");
  named.proto.mutable_graph()->mutable_node(0)->set_name("gelu/erf");
  EXPECT_REFUSED(named, "model.onnx: node \"gelu/erf\" (Erf): ");
}

TEST(NetworkModel, WeightsBesideTheModel)
{
  const auto folder =
    std::filesystem::temp_directory_path() / ("chunkwise-model-" + std::to_string(std::random_device()()));
  std::filesystem::create_directories(folder / "parts");
  const auto make = [](const std::string & location, const std::string & offset, const std::string & length) {
    Model                      model({ 1, 1, Anything, Anything });
    onnx_writer::TensorProto & tensor = model.Floats("w", { 1, 1, 1, 2 });
    tensor.clear_float_data();
    tensor.set_data_location(1);
    for (const auto & pair :
         { std::make_pair("location", location), std::make_pair("offset", offset), std::make_pair("length", length) })
    {
      if (!pair.second.empty())
      {
        onnx_writer::StringStringEntryProto * entry = tensor.add_external_data();
        entry->set_key(pair.first);
        entry->set_value(pair.second);
      }
    }
    model.Node("Conv", { "x", "w" });
    return model;
  };
  const std::string file = (folder / "model.onnx").string();
  const auto        read = [&](const Model & model) {
    std::ofstream(file, std::ios::binary) << model.Bytes();
    return ReadNetworkModel(file);
  };
  const auto refusal = [&](const Model & model) -> std::string {
    try
    {
      read(model);
    }
    catch (const ParameterError & error)
    {
      EXPECT_EQ(std::string(error.what()).compare(0, file.size(), file), 0);
      return error.what();
    }
    return "";
  };
  std::ofstream(folder / "weights", std::ios::binary) << std::string("....\0\0\x80\x3f\0\0\x20\xc0", 12);
  std::filesystem::copy_file(folder / "weights", folder / "parts" / "weights");
  const std::vector<float> expected{ 1.0f, -2.5f };
  EXPECT_EQ(*Last(read(make("weights", "4", "8"))).weights, expected);
  EXPECT_EQ(*Last(read(make("parts/weights", "4", ""))).weights, expected);
  EXPECT_NE(refusal(make("weights", "8", "8")).find("beyond the end"), std::string::npos);
  EXPECT_NE(refusal(make("weights", "999999999999999999", "")).find("beyond the end"), std::string::npos);
  EXPECT_NE(refusal(make("weights", "-4", "")).find("offset"), std::string::npos);
  EXPECT_NE(refusal(make("weights", "4", "7")).find("7 bytes"), std::string::npos);
  EXPECT_NE(refusal(make("other", "", "")).find("missing"), std::string::npos);
  EXPECT_NE(refusal(make("parts", "", "")).find("missing"), std::string::npos);
  for (const char * outside : { "../weights", "parts/../../weights", "/etc/passwd", "..", "", "a\\..\\b" })
  {
    EXPECT_NE(refusal(make(outside, "", "")).find("a file beside the model"), std::string::npos) << outside;
  }
  EXPECT_REFUSED(make("weights", "4", "8"), "another file");
  EXPECT_THROW(ReadNetworkModel((folder / "nothing.onnx").string()), ParameterError);
  EXPECT_THROW(ReadNetworkModel(folder.string()), ParameterError);
  std::filesystem::remove_all(folder);
}

TEST(NetworkModel, EveryTruncationIsRefusedOrRead)
{
  const std::string bytes = SmallNetwork().Bytes();
  int               refused = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size)
  {
    // A separate copy, so that a sanitizer sees reads beyond the end.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    try
    {
      ParseNetworkModel(cut.data(), cut.size(), "cut");
    }
    catch (const ParameterError &)
    {
      ++refused;
    }
  }
  EXPECT_EQ(refused, static_cast<int>(bytes.size()));
}

TEST(NetworkModel, DamagedFilesAreRefusedOrRead)
{
  const std::string bytes = SmallNetwork().Bytes();
  std::mt19937      random(1);
  int               read = 0;
  const int         trials = std::getenv("CHUNKWISE_TEST_EXHAUSTIVE") ? 200000 : 5000;
  for (int trial = 0; trial < trials; ++trial)
  {
    std::string damaged = bytes;
    for (unsigned i = 0; i <= random() % 4; ++i)
    {
      damaged[random() % damaged.size()] = static_cast<char>(random() % 3 == 0 ? random() : 1u << random() % 8);
    }
    try
    {
      const auto graph = ParseNetworkModel(damaged.data(), damaged.size(), "damaged");
      EXPECT_GE(graph->GetOutput(), 0);
      ++read;
    }
    catch (const ParameterError & error)
    {
      EXPECT_EQ(std::string(error.what()).compare(0, 9, "damaged: "), 0) << error.what();
    }
  }
  // Bits of weights may be anything.
  EXPECT_GT(read, 0);
}

TEST(NetworkModel, DamagedNodesAreRefusedOrRead)
{
  // Damage that is still a message: numbers and names of others in place of the right ones.
  std::mt19937       random(2);
  const std::int64_t numbers[] = { -1,
                                   0,
                                   1,
                                   2,
                                   3,
                                   4096,
                                   4097,
                                   1 << 20,
                                   std::numeric_limits<std::int64_t>::max(),
                                   std::numeric_limits<std::int64_t>::min() };
  const auto         number = [&] { return numbers[random() % (sizeof(numbers) / sizeof(numbers[0]))]; };
  for (int trial = 0; trial < 5000; ++trial)
  {
    Model                     model = SmallNetwork();
    onnx_writer::GraphProto & graph = *model.proto.mutable_graph();
    const auto                anyName = [&]() -> std::string {
      onnx_writer::NodeProto & node =
        *graph.mutable_node(static_cast<int>(random() % static_cast<unsigned>(graph.node_size())));
      return random() % 2 == 0 ? node.output(0) : node.input(0);
    };
    for (unsigned change = 0; change <= random() % 3; ++change)
    {
      onnx_writer::NodeProto & node =
        *graph.mutable_node(static_cast<int>(random() % static_cast<unsigned>(graph.node_size())));
      onnx_writer::TensorProto & tensor =
        *graph.mutable_initializer(static_cast<int>(random() % static_cast<unsigned>(graph.initializer_size())));
      switch (random() % 6)
      {
        case 0:
          node.set_input(static_cast<int>(random() % static_cast<unsigned>(node.input_size())), anyName());
          break;
        case 1:
          node.set_op_type(graph.node(static_cast<int>(random() % static_cast<unsigned>(graph.node_size()))).op_type());
          break;
        case 2:
          if (node.attribute_size() > 0)
          {
            onnx_writer::AttributeProto & attribute = *node.mutable_attribute(0);
            attribute.set_i(number());
            if (attribute.ints_size() > 0)
            {
              attribute.set_ints(static_cast<int>(random() % static_cast<unsigned>(attribute.ints_size())), number());
            }
          }
          break;
        case 3:
          if (tensor.dims_size() > 0)
          {
            tensor.set_dims(static_cast<int>(random() % static_cast<unsigned>(tensor.dims_size())), number());
          }
          break;
        case 4:
          if (tensor.int64_data_size() > 0)
          {
            tensor.set_int64_data(0, number());
          }
          break;
        default:
          graph.mutable_input(0)
            ->mutable_type()
            ->mutable_tensor_type()
            ->mutable_shape()
            ->mutable_dim(static_cast<int>(random() % 5))
            ->set_dim_value(number());
          break;
      }
    }
    try
    {
      model.Read();
    }
    catch (const ParameterError &)
    {}
  }
}
