/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseOnnxImporter.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chunkwise
{
namespace onnx
{

namespace
{

constexpr std::int64_t OldestVersion = 7;
constexpr std::int64_t NewestVersion = 21;

/** Larger extents are a mistake: products of two of them and a few factors stay within 64 bits. */
constexpr std::int64_t LargestExtent = std::int64_t{ 1 } << 40;

/** A multiple of all strides that networks have. */
constexpr std::int64_t CommonMultiple = 256 * 27 * 5 * 7;

bool
IsStandardDomain(const std::string & domain)
{
  return domain.empty() || domain == "ai.onnx";
}

/** The extent of a layer's result; 0 where its window does not fit. */
std::int64_t
ExtentAfter(const NetworkLayer & layer, int axis, std::int64_t extent)
{
  const auto         a = static_cast<std::size_t>(axis);
  const std::int64_t pads = layer.padLower[a] + layer.padUpper[a];
  const std::int64_t reach = layer.dilation[a] * (layer.kernel[a] - 1);
  std::int64_t       result = extent;
  switch (layer.kind)
  {
    case LayerKind::Convolution:
    case LayerKind::MaximumPooling:
    case LayerKind::AveragePooling:
      result = extent + pads - reach - 1 < 0 ? 0 : (extent + pads - reach - 1) / layer.stride[a] + 1;
      break;
    case LayerKind::TransposedConvolution:
      result = extent == 0 ? 0 : (extent - 1) * layer.stride[a] - pads + reach + 1;
      break;
    case LayerKind::NearestUpsampling:
    case LayerKind::LinearUpsampling:
      result = extent * layer.stride[a];
      break;
    case LayerKind::Crop:
      result = extent - pads;
      break;
    default:
      break;
  }
  if (result > LargestExtent)
  {
    throw Problem("it enlarges the image beyond all measure");
  }
  return std::max<std::int64_t>(result, 0);
}

} // namespace

std::int64_t
ToInteger(double value)
{
  constexpr double Limit = 9007199254740992.0;
  return static_cast<std::int64_t>(std::isnan(value) ? 0.0 : std::min(std::max(value, -Limit), Limit));
}

Importer::Importer(const ModelProto & model, const ExternalData & external, std::uint64_t bytes,
                   const std::string & name)
  : m_Model(model)
  , m_External(external)
  , m_Name(name)
  , m_Budget((std::uint64_t{ 1 } << 24) + bytes)
  , m_Graph(std::make_shared<NetworkGraph>())
{}

std::shared_ptr<NetworkGraph>
Importer::Import()
{
  // Messages of the graph begin with "network: "; its layers have the names of nodes.
  const auto withoutPrefix = [](std::string what) {
    const std::string prefix = "network: ";
    return what.compare(0, prefix.size(), prefix) == 0 ? what.substr(prefix.size()) : what;
  };
  try
  {
    this->CheckModel();
    this->AddInput();
    this->AddNodes();
    this->SetResult();
    m_Graph->Finish();
  }
  catch (const Problem & problem)
  {
    throw ParameterError(m_Name + ": " + this->DescribeNode() + problem.what());
  }
  catch (const ParameterError & error)
  {
    throw ParameterError(m_Name + ": " + this->DescribeNode() + withoutPrefix(error.what()));
  }
  return m_Graph;
}

std::string
Importer::DescribeNode() const
{
  if (!m_Node)
  {
    return "";
  }
  const std::string name = !m_Node->name.empty()     ? m_Node->name
                           : !m_Node->output.empty() ? m_Node->output[0]
                                                     : std::string();
  return "node \"" + Quoted(name) + "\" (" + Quoted(m_Node->opType) + "): ";
}

void
Importer::CheckModel()
{
  if (!m_Model.graph || m_Model.graph->node.empty())
  {
    throw Problem("it is no ONNX model, or it has no nodes");
  }
  for (const OperatorSetIdProto & set : m_Model.opsetImport)
  {
    if (IsStandardDomain(set.domain))
    {
      m_Version = std::max(m_Version, static_cast<std::int64_t>(set.version));
    }
  }
  if (m_Version < OldestVersion || m_Version > NewestVersion)
  {
    throw Problem("its operators are of version " + std::to_string(m_Version) + " (opset); supported are " +
                  std::to_string(OldestVersion) + " to " + std::to_string(NewestVersion) +
                  ": export it with one of these");
  }
  if (m_Model.graph->sparseInitializers > 0)
  {
    throw Problem("it has sparse weights; store them as dense tensors");
  }
  for (const TensorProto & tensor : m_Model.graph->initializer)
  {
    Value value;
    value.kind = Value::Kind::Tensor;
    value.tensor = &tensor;
    if (tensor.name.empty() || !m_Values.emplace(tensor.name, value).second)
    {
      throw Problem("two constants have the name \"" + Quoted(tensor.name) + "\", or one has none");
    }
  }
}

void
Importer::AddInput()
{
  // Old files list the constants among the inputs.
  const ValueInfoProto * input = nullptr;
  for (const ValueInfoProto & candidate : m_Model.graph->input)
  {
    if (m_Values.count(candidate.name) != 0)
    {
      continue;
    }
    if (input)
    {
      throw Problem("it has several inputs, \"" + Quoted(input->name) + "\" and \"" + Quoted(candidate.name) +
                    "\"; the network must have one image as its input");
    }
    input = &candidate;
  }
  if (!input)
  {
    throw Problem("it has no input");
  }
  const std::string name = "input \"" + Quoted(input->name) + "\": ";
  if (!input->type.tensorType || !input->type.tensorType->shape)
  {
    throw Problem(name + "it is no tensor of known rank");
  }
  const TensorTypeProto & type = *input->type.tensorType;
  if (!IsFloatingPoint(type.elemType))
  {
    throw Problem(name + "its elements are " + ElementTypeName(type.elemType) +
                  "; networks of float32, float16 or double are supported");
  }
  const std::vector<std::optional<std::int64_t>> & sizes = type.shape->dim;
  m_SpatialAxes = static_cast<int>(sizes.size()) - 2;
  if (m_SpatialAxes < 2 || m_SpatialAxes > 3)
  {
    throw Problem(name + "it has " + std::to_string(sizes.size()) +
                  " axes; supported are 4 (batch, channels, y, x) and 5 (batch, channels, z, y, x)");
  }
  // A size that is not given, or not positive, is not fixed.
  const auto sizeOf = [&](int axis) {
    return std::max<std::int64_t>(sizes[static_cast<std::size_t>(axis)].value_or(0), 0);
  };
  if (sizeOf(0) > 1)
  {
    throw Problem(name + "a batch of " + std::to_string(sizeOf(0)) + "; export the network with a batch of 1");
  }
  if (sizeOf(1) < 1 || sizeOf(1) > std::numeric_limits<int>::max())
  {
    throw Problem(name + "the number of its channels is not fixed");
  }
  NetworkLayer layer;
  layer.kind = LayerKind::Input;
  layer.name = input->name;
  layer.channels = static_cast<int>(sizeOf(1));

  bool                       isFixed = true;
  std::array<LayerExtent, 3> probes{ { { { 1, 1, 1 } }, { { 1, 1, 1 } }, { { 1, 1, 1 } } } };
  for (int a = 0; a < m_SpatialAxes; ++a)
  {
    probes[2][static_cast<std::size_t>(a)] = sizeOf(m_SpatialAxes + 1 - a);
    isFixed = isFixed && sizeOf(m_SpatialAxes + 1 - a) > 0;
    if (sizeOf(m_SpatialAxes + 1 - a) > LargestExtent / CommonMultiple / 64)
    {
      throw Problem(name + "its extents make no sense");
    }
  }
  // Different along all axes, so that sizes of one axis are not confused with those of another.
  constexpr std::int64_t factors[2][3] = { { 1, 11, 13 }, { 17, 19, 23 } };
  for (std::size_t p = 0; p < 2; ++p)
  {
    for (std::size_t a = 0; a < static_cast<std::size_t>(m_SpatialAxes); ++a)
    {
      probes[p][a] = factors[p][a] * CommonMultiple + (isFixed ? probes[2][a] : 0);
    }
  }
  m_NumberOfProbes = isFixed ? 3 : 2;
  Value value;
  value.layer = m_Graph->Add(layer);
  m_Extents.push_back(probes);
  m_Values[input->name] = value;
}

void
Importer::AddNodes()
{
  if (m_Model.graph->output.size() != 1)
  {
    throw Problem("it has " + std::to_string(m_Model.graph->output.size()) +
                  " outputs; export it with one, such as the finest of several");
  }
  // Nodes that the result does not need are skipped: exporters leave nodes for training, or for sizes that they know.
  const auto & nodes = m_Model.graph->node;
  m_Needed.insert(m_Model.graph->output[0].name);
  std::vector<bool> isNeeded(nodes.size(), false);
  for (std::size_t i = nodes.size(); i-- > 0;)
  {
    const auto & outputs = nodes[i].output;
    if (std::any_of(outputs.begin(), outputs.end(), [this](const std::string & name) {
          return !name.empty() && m_Needed.count(name) != 0;
        }))
    {
      isNeeded[i] = true;
      m_Needed.insert(nodes[i].input.begin(), nodes[i].input.end());
    }
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)
  {
    if (isNeeded[i])
    {
      m_Node = &nodes[i];
      this->AddNode();
    }
  }
  m_Node = nullptr;
}

void
Importer::AddNode()
{
  static const OperatorTable table = [] {
    OperatorTable operators;
    AddLayerOperators(operators);
    AddPointwiseOperators(operators);
    AddShapeOperators(operators);
    AddExtentOperators(operators);
    return operators;
  }();
  if (!IsStandardDomain(m_Node->domain))
  {
    throw Problem("an operator of the domain \"" + Quoted(m_Node->domain) +
                  "\" is not supported; export the network with standard operators alone");
  }
  const auto found = table.find(m_Node->opType);
  if (found == table.end())
  {
    throw Problem(GetAdvice(m_Node->opType));
  }
  for (const std::string & name : m_Node->output)
  {
    if (!name.empty() && m_Values.count(name) != 0)
    {
      throw Problem("its result has the name of another, \"" + Quoted(name) + "\"");
    }
  }
  if (m_Node->output.empty())
  {
    throw Problem("it has no output");
  }
  found->second(*this);
}

void
Importer::SetResult()
{
  const std::string & name = m_Model.graph->output[0].name;
  const auto          found = m_Values.find(name);
  if (found == m_Values.end())
  {
    throw Problem("no node gives the output \"" + Quoted(name) + "\"");
  }
  const Value & value = found->second;
  if (value.kind != Value::Kind::Layer || value.IsPadded() || !value.order.empty() ||
      (value.isFlat && !this->IsOneVoxel(value)))
  {
    throw Problem(
      "the output \"" + Quoted(name) +
      "\" is no image: it is constant, or the last nodes flatten, transpose or pad it; end the network before");
  }
  m_Graph->SetOutput(value.layer);
}

int
Importer::AddLayer(NetworkLayer layer)
{
  layer.name = !m_Node->name.empty() ? m_Node->name : m_Node->output[0];
  layer.name = Quoted(layer.name);
  this->Charge(layer.weights ? layer.weights->size() : 0);
  std::array<LayerExtent, 3> extents{ { { { 1, 1, 1 } }, { { 1, 1, 1 } }, { { 1, 1, 1 } } } };
  const std::string          prefix = "network: layer " + layer.name + ": ";
  int                        index = -1;
  try
  {
    index = m_Graph->Add(std::move(layer));
  }
  catch (const ParameterError & error)
  {
    // The node's name is said before it anyway.
    const std::string what = error.what();
    throw Problem(what.compare(0, prefix.size(), prefix) == 0 ? what.substr(prefix.size()) : what);
  }
  const NetworkLayer & added = m_Graph->GetLayers().back();
  for (std::size_t p = 0; p < m_NumberOfProbes; ++p)
  {
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      const auto from = m_Extents[static_cast<std::size_t>(added.inputs[0])][p][static_cast<std::size_t>(a)];
      extents[p][static_cast<std::size_t>(a)] = ExtentAfter(added, a, from);
    }
  }
  m_Extents.push_back(extents);
  return index;
}

void
Importer::Give(NetworkLayer layer, const Value & like, int output)
{
  Value value;
  value.isFlat = like.isFlat;
  value.order = like.order;
  value.layer = this->AddLayer(std::move(layer));
  this->GiveValue(std::move(value), output);
}

void
Importer::GiveValue(Value value, int output)
{
  for (const std::vector<double> & numbers : value.numbers)
  {
    this->Charge(2 * numbers.size());
  }
  if (output < static_cast<int>(m_Node->output.size()) && !m_Node->output[output].empty() &&
      !m_Values.emplace(m_Node->output[output], std::move(value)).second)
  {
    throw Problem("two of its results have the name \"" + Quoted(m_Node->output[output]) + "\"");
  }
}

} // namespace onnx
} // namespace chunkwise
