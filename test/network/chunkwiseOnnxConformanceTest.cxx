/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Models with inputs and outputs that the makers of the format publish (Debian's libonnx-testdata): what is read must
// compute what they say. Skips itself where they are not installed. CHUNKWISE_TEST_VERBOSE=1 says what is refused, and
// why.
#include "chunkwiseError.h"
#include "chunkwiseManager.h"
#include "chunkwiseNetworkModel.h"
#include "chunkwiseNetworkOperation.h"
#include "chunkwiseOnnx.pb.h"
#include "chunkwiseOnnxTensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace chunkwise;

namespace
{

const std::filesystem::path Folder = "/usr/share/libonnx-testdata/data";

std::string
ReadBytes(const std::filesystem::path & file)
{
  std::ifstream      stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/** [batch][channel][z][y][x] of float. */
struct Tensor
{
  std::vector<std::int64_t> dimensions;
  std::vector<float>        values;

  std::int64_t
  CountVoxels() const
  {
    std::int64_t count = 1;
    for (std::size_t i = 2; i < dimensions.size(); ++i)
    {
      count *= dimensions[i];
    }
    return count;
  }
  LayerExtent
  GetExtent() const
  {
    LayerExtent extent{ { 1, 1, 1 } };
    for (std::size_t i = 2; i < dimensions.size(); ++i)
    {
      extent[dimensions.size() - 1 - i] = dimensions[i];
    }
    return extent;
  }
};

bool
ReadTensor(const std::filesystem::path & file, onnx_writer::TensorProto & proto)
{
  return std::filesystem::exists(file) && proto.ParseFromString(ReadBytes(file));
}

bool
ReadFloatTensor(const std::filesystem::path & file, Tensor & tensor)
{
  const std::string bytes = std::filesystem::exists(file) ? ReadBytes(file) : std::string();
  onnx::TensorProto proto;
  if (bytes.empty() || !onnx::ParseTensor(bytes, proto) || !onnx::IsFloatingPoint(proto.dataType))
  {
    return false;
  }
  tensor.dimensions = onnx::GetDimensions(proto);
  try
  {
    tensor.values = onnx::ReadFloats(proto, onnx::ExternalData());
  }
  catch (const onnx::Problem &)
  {
    return false;
  }
  return true;
}

/** The spacings that are tried in turn; x first. */
const LayerExtent Spacings[] = { { { 1, 1, 1 } }, { { 2, 2, 2 } }, { { 3, 2, 1 } }, { { 2, 3, 1 } } };

/** The spacing of an axis of a tensor of so many. */
std::int64_t
SpacingOf(const LayerExtent & spacing, int axis, int rank)
{
  const int a = rank - 1 - axis;
  return a < 3 ? spacing[static_cast<std::size_t>(a)] : 1;
}

/** The model as a file of a network has it: weights are constants, the batch is 1, one output. A network must not
 * enlarge the image: `spacing` puts a layer before it that takes every so many voxels. */
std::string
MakeNetwork(const std::filesystem::path & folder, const LayerExtent & spacing)
{
  onnx_writer::ModelProto model;
  if (!model.ParseFromString(ReadBytes(folder / "model.onnx")))
  {
    return "";
  }
  // The operators of the oldest of these models are the same in the first version that is read.
  for (onnx_writer::OperatorSetIdProto & set : *model.mutable_opset_import())
  {
    set.set_version(std::max<std::int64_t>(set.version(), 7));
  }
  onnx_writer::GraphProto & graph = *model.mutable_graph();
  for (int i = 1; i < graph.input_size(); ++i)
  {
    onnx_writer::TensorProto tensor;
    const bool               isKnown = std::any_of(graph.initializer().begin(),
                                     graph.initializer().end(),
                                     [&](const auto & constant) { return constant.name() == graph.input(i).name(); });
    if (!isKnown && ReadTensor(folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb"), tensor))
    {
      tensor.set_name(graph.input(i).name());
      *graph.add_initializer() = tensor;
    }
  }
  if (graph.input_size() > 0 && graph.input(0).type().tensor_type().shape().dim_size() > 0)
  {
    graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(1);
  }
  while (graph.output_size() > 1)
  {
    graph.mutable_output()->RemoveLast();
  }
  if (spacing != Spacings[0] && graph.input_size() > 0)
  {
    onnx_writer::NodeProto every;
    every.set_op_type("MaxPool");
    every.add_input("chunkwise.image");
    every.add_output(graph.input(0).name());
    onnx_writer::TensorShapeProto & shape =
      *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    for (const bool isStride : { false, true })
    {
      onnx_writer::AttributeProto * attribute = every.add_attribute();
      attribute->set_name(isStride ? "strides" : "kernel_shape");
      attribute->set_type(7);
      for (int i = 2; i < shape.dim_size(); ++i)
      {
        attribute->add_ints(isStride ? SpacingOf(spacing, i, shape.dim_size()) : 1);
      }
    }
    for (int i = 2; i < shape.dim_size(); ++i)
    {
      shape.mutable_dim(i)->set_dim_value(shape.dim(i).dim_value() * SpacingOf(spacing, i, shape.dim_size()));
    }
    graph.mutable_input(0)->set_name("chunkwise.image");
    *graph.add_node() = every;
    for (int i = graph.node_size() - 1; i > 0; --i)
    {
      graph.mutable_node()->SwapElements(i, i - 1);
    }
  }
  return model.SerializeAsString();
}

/** The image of which every so many voxels are this one. */
Tensor
Spread(const Tensor & from, const LayerExtent & spacing)
{
  Tensor            to = from;
  const LayerExtent extent = from.GetExtent();
  LayerExtent       wide{ { 1, 1, 1 } };
  const auto        rank = static_cast<int>(to.dimensions.size());
  for (int i = 2; i < rank; ++i)
  {
    to.dimensions[static_cast<std::size_t>(i)] *= SpacingOf(spacing, i, rank);
    wide[static_cast<std::size_t>(rank - 1 - i)] = to.dimensions[static_cast<std::size_t>(i)];
  }
  to.values.assign(static_cast<std::size_t>(to.dimensions[0] * to.dimensions[1] * to.CountVoxels()), 7.0f);
  std::size_t index = 0;
  for (std::int64_t c = 0; c < from.dimensions[0] * from.dimensions[1]; ++c)
  {
    for (std::int64_t z = 0; z < extent[2]; ++z)
    {
      for (std::int64_t y = 0; y < extent[1]; ++y)
      {
        for (std::int64_t x = 0; x < extent[0]; ++x)
        {
          const std::int64_t at =
            ((c * wide[2] + z * (rank > 4 ? spacing[2] : 1)) * wide[1] + y * spacing[1]) * wide[0] + x * spacing[0];
          to.values[static_cast<std::size_t>(at)] = from.values[index++];
        }
      }
    }
  }
  return to;
}

/** A channel of the network's result for one image of the batch, over the image's grid. */
std::vector<float>
RunNetwork(const std::shared_ptr<const NetworkGraph> & graph, const Tensor & input, std::int64_t image, int channel)
{
  const LayerExtent extent = input.GetExtent();
  const Box         box = Box::FromExtent({ { extent[0], extent[1], extent[2], 1, 1 } });
  const auto        voxels = input.CountVoxels();
  const auto        operation = std::make_shared<NetworkOperation>();
  operation->graph = graph;
  operation->channel = channel;
  if (graph->FindNormalization())
  {
    // The image is one window.
    operation->mode = NetworkMode::Patches;
    operation->patch = extent;
  }
  std::vector<float> values(input.values.begin() + image * input.dimensions[1] * voxels,
                            input.values.begin() + (image + 1) * input.dimensions[1] * voxels);
  std::vector<float> output(static_cast<std::size_t>(voxels));
  ExecutionRequest   request;
  request.operation = operation;
  for (std::int64_t c = 0; c < input.dimensions[1]; ++c)
  {
    request.inputs.push_back(DenseView(values.data() + c * voxels, PixelType::Float32, box));
  }
  request.output = DenseView(output.data(), PixelType::Float32, box);
  request.image = request.region = box;
  Manager::GetGlobal().Execute(request);
  return output;
}

} // namespace

TEST(OnnxConformance, NetworksComputeWhatTheirMakersSay)
{
  if (!std::filesystem::exists(Folder))
  {
    GTEST_SKIP() << "libonnx-testdata is not installed";
  }
  const bool isVerbose = std::getenv("CHUNKWISE_TEST_VERBOSE") != nullptr;
  int        compared = 0;
  for (const auto & entry : std::filesystem::recursive_directory_iterator(Folder))
  {
    if (entry.path().filename() != "model.onnx")
    {
      continue;
    }
    const std::filesystem::path         folder = entry.path().parent_path();
    const std::string                   name = folder.filename().string();
    std::shared_ptr<const NetworkGraph> graph;
    LayerExtent                         spacing{};
    std::string                         refusal;
    for (const LayerExtent & candidate : Spacings)
    {
      const std::string bytes = MakeNetwork(folder, candidate);
      try
      {
        graph = ParseNetworkModel(bytes.data(), bytes.size(), name);
        spacing = candidate;
        break;
      }
      catch (const ParameterError & error)
      {
        refusal += std::string(refusal.empty() ? "" : "; ") + error.what();
      }
    }
    if (!graph)
    {
      if (isVerbose)
      {
        std::cout << "refused  " << refusal << '\n';
      }
      continue;
    }
    Tensor input;
    Tensor expected;
    if (!ReadFloatTensor(folder / "test_data_set_0" / "input_0.pb", input) ||
        !ReadFloatTensor(folder / "test_data_set_0" / "output_0.pb", expected) || input.dimensions.size() < 4 ||
        expected.dimensions.size() != input.dimensions.size() || input.dimensions[1] > MaxInputs ||
        // If the image goes on at its lower end, the spread one would begin elsewhere.
        (spacing != Spacings[0] && std::any_of(graph->GetMargin().begin(),
                                               graph->GetMargin().end(),
                                               [](std::int64_t margin) { return margin > 1; })))
    {
      if (isVerbose)
      {
        std::cout << "unknown  " << name << '\n';
      }
      continue;
    }
    SCOPED_TRACE(name);
    input = Spread(input, spacing);
    ASSERT_EQ(expected.dimensions[1], graph->GetNumberOfOutputChannels());
    const LayerExtent from = input.GetExtent();
    const LayerExtent to = expected.GetExtent();
    LayerExtent       lower{};
    for (std::size_t a = 0; a < 3; ++a)
    {
      lower[a] = graph->GetLowerMargin()[a];
      ASSERT_LT(lower[a] + (to[a] - 1) * graph->GetWindowStride()[a], from[a]);
    }
    float worst = 0;
    for (std::int64_t image = 0; image < input.dimensions[0]; ++image)
    {
      for (int channel = 0; channel < graph->GetNumberOfOutputChannels(); ++channel)
      {
        const std::vector<float> result = RunNetwork(graph, input, image, channel);
        std::size_t              index =
          static_cast<std::size_t>((image * expected.dimensions[1] + channel) * expected.CountVoxels());
        for (std::int64_t z = 0; z < to[2]; ++z)
        {
          for (std::int64_t y = 0; y < to[1]; ++y)
          {
            for (std::int64_t x = 0; x < to[0]; ++x)
            {
              const LayerExtent at{ { lower[0] + x * graph->GetWindowStride()[0],
                                      lower[1] + y * graph->GetWindowStride()[1],
                                      lower[2] + z * graph->GetWindowStride()[2] } };
              const float       is = result[static_cast<std::size_t>((at[2] * from[1] + at[1]) * from[0] + at[0])];
              const float       should = expected.values[index++];
              worst = std::max(worst, std::abs(is - should) / std::max(1.0f, std::abs(should)));
              if (std::isnan(is) != std::isnan(should))
              {
                worst = std::numeric_limits<float>::infinity();
              }
            }
          }
        }
      }
    }
    EXPECT_LT(worst, 2e-5f);
    ++compared;
    if (isVerbose)
    {
      std::cout << "compared " << name << ", largest difference " << worst << '\n';
    }
  }
  std::cout << compared << " models were compared\n";
  EXPECT_GE(compared, 55);
}
