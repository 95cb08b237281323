/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// What operators ask of their node: inputs, attributes, constants.
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

/** Larger kernels, strides, dilations and paddings are a mistake. */
constexpr std::int64_t LargestAttribute = 4096;

/** Counts of voxels end here: products with a few factors stay within 64 bits. */
constexpr std::int64_t LargestCount = std::int64_t{ 1 } << 40;

std::string
Join(const std::vector<std::int64_t> & sizes)
{
  std::string text;
  for (const std::int64_t size : sizes)
  {
    text += (text.empty() ? "" : " x ") + std::to_string(size);
  }
  return text;
}

/** ONNX' numbers of the types of attributes. Files of the first version have none. */
const AttributeProto *
OfType(const AttributeProto * attribute, int type)
{
  if (attribute && attribute->type && attribute->type != type)
  {
    throw Problem("attribute " + Quoted(attribute->name) + " has the wrong type");
  }
  return attribute;
}

} // namespace

const Value &
Importer::GetInput(int index) const
{
  if (!this->HasInput(index))
  {
    throw Problem("input " + std::to_string(index) + " is missing");
  }
  const auto found = m_Values.find(m_Node->input[index]);
  if (found == m_Values.end())
  {
    throw Problem("its input \"" + Quoted(m_Node->input[index]) + "\" is given by no node before it");
  }
  return found->second;
}

int
Importer::GetAxis(std::int64_t axis, std::size_t rank) const
{
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count)
  {
    throw Problem("axis " + std::to_string(axis) + " of a tensor that has " + std::to_string(count));
  }
  return static_cast<int>(axis < 0 ? axis + count : axis);
}

const AttributeProto *
Importer::FindAttribute(const char * name) const
{
  for (const AttributeProto & attribute : m_Node->attribute)
  {
    if (attribute.name == name)
    {
      return &attribute;
    }
  }
  return nullptr;
}

std::int64_t
Importer::GetInt(const char * name, std::int64_t value) const
{
  const AttributeProto * attribute = OfType(this->FindAttribute(name), 2);
  return attribute ? attribute->i : value;
}

float
Importer::GetFloat(const char * name, float value) const
{
  const AttributeProto * attribute = OfType(this->FindAttribute(name), 1);
  return attribute ? attribute->f : value;
}

std::string
Importer::GetString(const char * name, const std::string & value) const
{
  const AttributeProto * attribute = OfType(this->FindAttribute(name), 3);
  return attribute ? attribute->s : value;
}

std::vector<std::int64_t>
Importer::GetInts(const char * name) const
{
  const AttributeProto * attribute = OfType(this->FindAttribute(name), 7);
  return attribute ? attribute->ints : std::vector<std::int64_t>();
}

std::vector<std::int64_t>
Importer::GetAxes(std::int64_t firstVersionWithInput, int input) const
{
  if (m_Version < firstVersionWithInput)
  {
    return this->GetInts("axes");
  }
  return this->HasInput(input) ? this->GetFixedIntegers(input) : std::vector<std::int64_t>();
}

LayerExtent
Importer::GetExtent(const char * name, std::int64_t value) const
{
  LayerExtent                     extent{ { 1, 1, 1 } };
  const std::vector<std::int64_t> sizes = this->GetInts(name);
  if (!sizes.empty() && sizes.size() != static_cast<std::size_t>(m_SpatialAxes))
  {
    throw Problem(std::string("attribute ") + name + " has " + std::to_string(sizes.size()) + " numbers for " +
                  std::to_string(m_SpatialAxes) + " axes");
  }
  for (std::size_t a = 0; a < static_cast<std::size_t>(m_SpatialAxes); ++a)
  {
    extent[a] = sizes.empty() ? value : sizes[sizes.size() - 1 - a];
    if (extent[a] < 1 || extent[a] > LargestAttribute)
    {
      throw Problem(std::string("attribute ") + name + ": " + std::to_string(extent[a]) + " is not between 1 and " +
                    std::to_string(LargestAttribute));
    }
  }
  return extent;
}

void
Importer::GetPads(NetworkLayer & layer) const
{
  const auto        axes = static_cast<std::size_t>(m_SpatialAxes);
  const std::string automatic = this->GetString("auto_pad", "NOTSET");
  if (automatic == "NOTSET")
  {
    const std::vector<std::int64_t> pads = this->GetInts("pads");
    if (!pads.empty() && pads.size() != 2 * axes)
    {
      throw Problem("attribute pads has " + std::to_string(pads.size()) + " numbers for " + std::to_string(axes) +
                    " axes");
    }
    for (std::size_t i = 0; i < pads.size(); ++i)
    {
      if (pads[i] < 0 || pads[i] > LargestAttribute)
      {
        throw Problem("attribute pads: " + std::to_string(pads[i]) + " is not between 0 and " +
                      std::to_string(LargestAttribute));
      }
      (i < axes ? layer.padLower : layer.padUpper)[axes - 1 - i % axes] = pads[i];
    }
    return;
  }
  if (automatic == "VALID")
  {
    return;
  }
  if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
  {
    throw Problem("attribute auto_pad: \"" + Quoted(automatic) + "\" is not known");
  }
  for (std::size_t a = 0; a < axes; ++a)
  {
    const std::int64_t reach = layer.dilation[a] * (layer.kernel[a] - 1);
    std::int64_t       total = reach;
    if (layer.kind == LayerKind::TransposedConvolution)
    {
      total = reach + 1 - layer.stride[a];
      if (total < 0 || total % 2 != 0)
      {
        throw Problem("auto_pad with these strides is understood differently by different programs; give pads");
      }
    }
    else if (layer.stride[a] != 1)
    {
      throw Problem("auto_pad " + automatic +
                    " with a stride pads according to the image's size; export the network with pads");
    }
    const std::int64_t less = total / 2;
    layer.padLower[a] = automatic == "SAME_UPPER" ? less : total - less;
    layer.padUpper[a] = total - layer.padLower[a];
  }
}

const Value &
Importer::GetPaddedImage(int index) const
{
  const Value & value = this->GetInput(index);
  if (value.kind != Value::Kind::Layer)
  {
    throw Problem("its input \"" + Quoted(m_Node->input[index]) + "\" is a constant, not an image");
  }
  if (!value.order.empty())
  {
    throw Problem("its input is transposed, which is supported before softmax and pointwise functions alone");
  }
  if (value.isFlat)
  {
    throw Problem("its input is flattened; only fully connected layers and pointwise functions may follow");
  }
  return value;
}

const Value &
Importer::GetImage(int index) const
{
  this->GetPaddedImage(index);
  return this->GetLayer(index);
}

const Value &
Importer::GetLayer(int index) const
{
  const Value & value = this->GetInput(index);
  if (value.kind != Value::Kind::Layer)
  {
    throw Problem("its input \"" + Quoted(m_Node->input[index]) + "\" is a constant, not an image");
  }
  if (value.IsPadded())
  {
    throw Problem("a Pad comes before it; only a convolution or a pooling can take over what is padded");
  }
  return value;
}

int
Importer::GetChannels(const Value & value) const
{
  return this->GetLayerOf(value).channels;
}

std::vector<std::int64_t>
Importer::GetShape(const Value & value, std::size_t probe) const
{
  const LayerExtent &       extent = m_Extents[static_cast<std::size_t>(value.layer)][probe];
  std::vector<std::int64_t> shape{ 1, this->GetChannels(value) };
  for (int a = m_SpatialAxes; a-- > 0;)
  {
    const std::int64_t size = extent[static_cast<std::size_t>(a)] + value.padLower[static_cast<std::size_t>(a)] +
                              value.padUpper[static_cast<std::size_t>(a)];
    if (value.isFlat)
    {
      // Only the fixed probe of what is flat is ever used; the others must not overflow.
      shape[1] = size > 0 && shape[1] > LargestCount / size ? LargestCount : shape[1] * size;
    }
    else
    {
      shape.push_back(size);
    }
  }
  if (!value.order.empty())
  {
    std::vector<std::int64_t> ordered(shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i)
    {
      ordered[i] = shape[static_cast<std::size_t>(value.order[i])];
    }
    return ordered;
  }
  return shape;
}

bool
Importer::IsOneVoxel(const Value & value) const
{
  return this->HasFixedExtents() && m_Extents[static_cast<std::size_t>(value.layer)][2] == LayerExtent{ { 1, 1, 1 } };
}

std::vector<std::int64_t>
Importer::GetTensorDimensions(int index) const
{
  const Value & value = this->GetInput(index);
  if (value.kind == Value::Kind::Layer)
  {
    throw Problem("its input \"" + Quoted(m_Node->input[index]) + "\" must be a constant of the file");
  }
  return value.kind == Value::Kind::Tensor ? GetDimensions(*value.tensor) : value.dimensions;
}

std::shared_ptr<const std::vector<float>>
Importer::GetFloats(int index)
{
  const Value & value = this->GetInput(index);
  if (value.kind != Value::Kind::Tensor)
  {
    const std::vector<double> numbers = this->GetFixedNumbers(index);
    auto                      floats = std::make_shared<std::vector<float>>();
    for (const double number : numbers)
    {
      // Out of range is undefined for the conversion; the graph refuses what is not finite.
      floats->push_back(std::abs(number) <= std::numeric_limits<float>::max() ? static_cast<float>(number)
                                                                              : std::numeric_limits<float>::infinity());
    }
    return floats;
  }
  // The same tensor may be used by many nodes.
  std::shared_ptr<const std::vector<float>> & floats = m_Floats[value.tensor];
  if (!floats)
  {
    floats = std::make_shared<const std::vector<float>>(ReadFloats(*value.tensor, m_External));
    // Each byte of a file that was read may be a number of the graph.
    m_Budget += 4 * floats->size();
  }
  return floats;
}

Value
Importer::GetNumbers(int index) const
{
  const Value & value = this->GetInput(index);
  if (value.kind == Value::Kind::Layer)
  {
    throw Problem("its input \"" + Quoted(m_Node->input[index]) +
                  "\" must be known before the network runs, but it depends on the image");
  }
  if (value.kind == Value::Kind::Numbers)
  {
    return value;
  }
  return this->MakeNumbers(
    ReadNumbers(*value.tensor, m_External), GetDimensions(*value.tensor), !IsFloatingPoint(value.tensor->dataType));
}

Value
Importer::MakeNumbers(std::vector<double> numbers, std::vector<std::int64_t> dimensions, bool isInteger) const
{
  Value value;
  value.kind = Value::Kind::Numbers;
  value.dimensions = std::move(dimensions);
  value.numbers.assign(m_NumberOfProbes, numbers);
  value.isInteger = isInteger;
  return value;
}

std::vector<double>
Importer::GetFixedNumbers(int index) const
{
  Value value = this->GetNumbers(index);
  if (value.numbers[0] != value.numbers[1])
  {
    throw Problem("its input \"" + Quoted(m_Node->input[index]) + "\" depends on the image's size");
  }
  return std::move(value.numbers.back());
}

std::vector<std::int64_t>
Importer::GetFixedIntegers(int index) const
{
  std::vector<std::int64_t> integers;
  for (const double number : this->GetFixedNumbers(index))
  {
    integers.push_back(ToInteger(number));
  }
  return integers;
}

std::shared_ptr<const std::vector<float>>
Importer::GetPerChannel(int index, const Value & image)
{
  const std::vector<std::int64_t> dimensions = this->GetTensorDimensions(index);
  const auto                      channels = static_cast<std::size_t>(this->GetChannels(image));
  const auto                      rank = static_cast<std::size_t>(this->GetRank(image));
  bool                            fits = dimensions.size() <= rank;
  bool                            isOne = true;
  for (std::size_t i = 0; i < dimensions.size(); ++i)
  {
    isOne = isOne && dimensions[i] == 1;
    // Axes are compared from the last on.
    const bool isChannel = rank - dimensions.size() + i == 1;
    fits = fits && (dimensions[i] == 1 || (isChannel && dimensions[i] == static_cast<std::int64_t>(channels)));
  }
  if (!fits || (!isOne && (!image.order.empty() || (image.isFlat && !this->IsOneVoxel(image)))))
  {
    throw Problem("its constant has the dimensions " + Join(dimensions) +
                  "; supported are one number, and one for each of " + std::to_string(channels) + " channels");
  }
  std::shared_ptr<const std::vector<float>> floats = this->GetFloats(index);
  if (floats->size() == channels)
  {
    return floats;
  }
  if (floats->size() != 1)
  {
    throw Problem("its constant has " + std::to_string(floats->size()) + " numbers for " + std::to_string(channels) +
                  " channels");
  }
  this->Charge(channels);
  return std::make_shared<const std::vector<float>>(channels, floats->front());
}

void
Importer::Charge(std::uint64_t numbers)
{
  if (numbers > m_Budget)
  {
    throw Problem("the network has far more weights than the file has bytes");
  }
  m_Budget -= numbers;
}

} // namespace onnx
} // namespace chunkwise
