/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseOnnxImporter_h
#define chunkwiseOnnxImporter_h

#include "chunkwiseNetworkGraph.h"
#include "chunkwiseOnnxTensor.h"

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

// Makes a NetworkGraph of an ONNX graph, node by node.
//
// A network takes images of any size, but nodes may compute with sizes: an exporter writes an enlargement as "the
// extent of x, times 2". So such numbers are computed for images of several sizes at once ("probes"). A number that is
// the same for all, a factor or a margin, is a property of the network; other numbers are refused. If the file fixes
// the image's extents, these are one of the probes, and sizes that the exporter wrote as constants are understood for
// it.

namespace chunkwise
{
namespace onnx
{

/** The value of a name in the graph. */
struct Value
{
  enum class Kind
  {
    Layer,   ///< the result of a layer
    Numbers, ///< a few numbers for each probe: sizes, axes, factors
    Tensor   ///< a constant of the file
  };
  Kind kind{ Kind::Layer };

  int layer{ -1 };
  /** Channels and voxels as one axis, as before a fully connected layer. */
  bool isFlat{ false };
  /** Which of the axes N, C, (D,) H, W is where, after a Transpose; empty: they are in order. */
  std::vector<int> order;
  /** A Pad that the node which comes next takes over. */
  LayerExtent padLower{ { 0, 0, 0 } };
  LayerExtent padUpper{ { 0, 0, 0 } };
  float       padValue{ 0 };

  std::vector<std::int64_t>        dimensions;
  std::vector<std::vector<double>> numbers;
  bool                             isInteger{ false };

  const TensorProto * tensor{ nullptr };

  bool
  IsPadded() const
  {
    return padLower != LayerExtent{ { 0, 0, 0 } } || padUpper != LayerExtent{ { 0, 0, 0 } };
  }
};

/** A double as an integer: what is beyond int64 becomes the last one, as exporters mean it. */
std::int64_t
ToInteger(double value);

class Importer
{
public:
  Importer(const ModelProto & model, const ExternalData & external, std::uint64_t bytes, const std::string & name);

  /** Throws ParameterError. */
  std::shared_ptr<NetworkGraph>
  Import();

  // The members below are for the functions of operators: the node at hand, its inputs and attributes.

  std::int64_t
  GetVersion() const
  {
    return m_Version;
  }
  const std::string &
  GetOperator() const
  {
    return m_Node->opType;
  }
  int
  GetNumberOfOutputs() const
  {
    return static_cast<int>(m_Node->output.size());
  }
  int
  GetNumberOfInputs() const
  {
    return static_cast<int>(m_Node->input.size());
  }
  bool
  HasInput(int index) const
  {
    return index < static_cast<int>(m_Node->input.size()) && !m_Node->input[index].empty();
  }
  const Value &
  GetInput(int index) const;
  /** The image's axes that the network has: 2 or 3. */
  int
  GetSpatialAxes() const
  {
    return m_SpatialAxes;
  }
  /** Axes of images: N, C and the spatial ones. */
  int
  GetRank(const Value & value) const
  {
    return value.isFlat ? 2 : m_SpatialAxes + 2;
  }
  /** An axis of a tensor as the file names it, which may count from the end; Problem if there is none. */
  int
  GetAxis(std::int64_t axis, std::size_t rank) const;
  /** Axis of LayerExtent for an axis of an image that is not N or C. */
  int
  GetSpatialAxis(int axis) const
  {
    return m_SpatialAxes + 1 - axis;
  }

  const AttributeProto *
  FindAttribute(const char * name) const;
  std::int64_t
  GetInt(const char * name, std::int64_t value) const;
  float
  GetFloat(const char * name, float value) const;
  std::string
  GetString(const char * name, const std::string & value) const;
  std::vector<std::int64_t>
  GetInts(const char * name) const;
  /** Axes as an attribute or, from a version on, as an input. */
  std::vector<std::int64_t>
  GetAxes(std::int64_t firstVersionWithInput, int input) const;
  /** Spatial attributes, last axis first as a LayerExtent has them; `value` where the node has none. */
  LayerExtent
  GetExtent(const char * name, std::int64_t value) const;
  /** The attribute pads, or what auto_pad means. */
  void
  GetPads(NetworkLayer & layer) const;

  /** A result that nothing has been done to that only some operators understand. */
  const Value &
  GetLayer(int index) const;
  /** The same, with channels and voxels apart. */
  const Value &
  GetImage(int index) const;
  /** The same, but a Pad may come before. */
  const Value &
  GetPaddedImage(int index) const;
  int
  GetChannels(const Value & value) const;
  /** The extent of a result for each probe. */
  std::array<LayerExtent, 3>
  GetExtents(const Value & value) const
  {
    return m_Extents[static_cast<std::size_t>(value.layer)];
  }
  /** Whether the file fixes the image's extents. Then they are the last probe. */
  bool
  HasFixedExtents() const
  {
    return m_NumberOfProbes == 3;
  }
  std::size_t
  GetNumberOfProbes() const
  {
    return m_NumberOfProbes;
  }
  /** N, C and the rest for one probe. */
  std::vector<std::int64_t>
  GetShape(const Value & value, std::size_t probe) const;
  /** The fixed extents of a result are 1. */
  bool
  IsOneVoxel(const Value & value) const;

  bool
  IsConstant(int index) const
  {
    return this->GetInput(index).kind != Value::Kind::Layer;
  }
  std::shared_ptr<const std::vector<float>>
  GetFloats(int index);
  std::vector<std::int64_t>
  GetTensorDimensions(int index) const;
  /** Numbers for each probe, with their dimensions. */
  Value
  GetNumbers(int index) const;
  /** Numbers that do not depend on the image's size. */
  std::vector<double>
  GetFixedNumbers(int index) const;
  std::vector<std::int64_t>
  GetFixedIntegers(int index) const;
  /** A constant that is one number, or one for each channel of the other operand. */
  std::shared_ptr<const std::vector<float>>
  GetPerChannel(int index, const Value & image);
  /** Every number of the graph is paid for by bytes of the file: so a small file cannot ask for all memory. */
  void
  Charge(std::uint64_t numbers);

  /** Adds a layer and makes it the node's result. `like`: layout of the result. */
  void
  Give(NetworkLayer layer, const Value & like, int output = 0);
  int
  AddLayer(NetworkLayer layer);
  void
  GiveValue(Value value, int output = 0);
  const NetworkLayer &
  GetLayerOf(const Value & value) const
  {
    return m_Graph->GetLayers()[static_cast<std::size_t>(value.layer)];
  }
  /** A value of numbers of this node: TensorProto of an attribute and the like live as long as the model. */
  Value
  MakeNumbers(std::vector<double> numbers, std::vector<std::int64_t> dimensions, bool isInteger) const;

private:
  void
  CheckModel();
  void
  AddInput();
  void
  AddNodes();
  void
  AddNode();
  void
  SetResult();
  std::string
  DescribeNode() const;

  const ModelProto & m_Model;
  ExternalData       m_External;
  std::string        m_Name;
  std::uint64_t      m_Budget{ 0 };
  std::int64_t       m_Version{ 0 };
  int                m_SpatialAxes{ 3 };
  std::size_t        m_NumberOfProbes{ 2 };

  std::shared_ptr<NetworkGraph>                                                      m_Graph;
  std::vector<std::array<LayerExtent, 3>>                                            m_Extents;
  std::unordered_map<std::string, Value>                                             m_Values;
  std::unordered_map<const TensorProto *, std::shared_ptr<const std::vector<float>>> m_Floats;
  std::unordered_set<std::string>                                                    m_Needed;
  const NodeProto *                                                                  m_Node{ nullptr };
};

using Operator = void (*)(Importer &);
using OperatorTable = std::unordered_map<std::string, Operator>;

void
AddLayerOperators(OperatorTable & table);
void
AddPointwiseOperators(OperatorTable & table);
void
AddShapeOperators(OperatorTable & table);
void
AddExtentOperators(OperatorTable & table);

/** Advice about an operator that is not in the table. */
std::string
GetAdvice(const std::string & name);

} // namespace onnx
} // namespace chunkwise

#endif
