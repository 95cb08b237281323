/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Operators that move values or compute with sizes, except operators that change the extents.
#include "chunkwiseOnnxImporter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace chunkwise
{
namespace onnx
{

namespace
{

bool
IsOrdered(const std::vector<int> & order)
{
  for (std::size_t i = 0; i < order.size(); ++i)
  {
    if (order[i] != static_cast<int>(i))
    {
      return false;
    }
  }
  return true;
}

void
Constant(Importer & importer)
{
  if (const AttributeProto * attribute = importer.FindAttribute("value"))
  {
    Value value;
    value.kind = Value::Kind::Tensor;
    value.tensor = &attribute->t;
    importer.GiveValue(value);
    return;
  }
  std::vector<double> numbers;
  bool                isInteger = false;
  bool                isOne = false;
  if (importer.FindAttribute("value_float"))
  {
    numbers = { static_cast<double>(importer.GetFloat("value_float", 0)) };
    isOne = true;
  }
  else if (importer.FindAttribute("value_int"))
  {
    numbers = { static_cast<double>(importer.GetInt("value_int", 0)) };
    isInteger = isOne = true;
  }
  else if (const AttributeProto * floats = importer.FindAttribute("value_floats"))
  {
    numbers.assign(floats->floats.begin(), floats->floats.end());
  }
  else if (importer.FindAttribute("value_ints"))
  {
    for (const std::int64_t number : importer.GetInts("value_ints"))
    {
      numbers.push_back(static_cast<double>(number));
    }
    isInteger = true;
  }
  else
  {
    throw Problem("its value is a string or a sparse tensor, or there is none");
  }
  const auto count = static_cast<std::int64_t>(numbers.size());
  if (count > MostNumbers)
  {
    throw Problem("it has " + std::to_string(count) + " numbers; store them as a tensor");
  }
  importer.GiveValue(importer.MakeNumbers(
    std::move(numbers), isOne ? std::vector<std::int64_t>() : std::vector<std::int64_t>{ count }, isInteger));
}

void
ConstantOfShape(Importer & importer)
{
  std::int64_t                    count = 1;
  const std::vector<std::int64_t> dimensions = importer.GetFixedIntegers(0);
  for (const std::int64_t size : dimensions)
  {
    if (size < 0 || size > MostNumbers || count * size > MostNumbers)
    {
      throw Problem("it makes more than a few numbers");
    }
    count *= size;
  }
  double                 number = 0;
  bool                   isInteger = false;
  const AttributeProto * attribute = importer.FindAttribute("value");
  if (attribute)
  {
    const std::vector<double> numbers = ReadNumbers(attribute->t, ExternalData());
    if (numbers.size() != 1)
    {
      throw Problem("its value is not one number");
    }
    number = numbers[0];
    isInteger = !IsFloatingPoint(attribute->t.dataType);
  }
  importer.GiveValue(
    importer.MakeNumbers(std::vector<double>(static_cast<std::size_t>(count), number), dimensions, isInteger));
}

void
Shape(Importer & importer)
{
  const Value & input = importer.GetInput(0);
  Value         value;
  if (input.kind != Value::Kind::Layer)
  {
    const std::vector<std::int64_t> dimensions = importer.GetTensorDimensions(0);
    value = importer.MakeNumbers(std::vector<double>(dimensions.begin(), dimensions.end()),
                                 { static_cast<std::int64_t>(dimensions.size()) },
                                 true);
  }
  else
  {
    value = importer.MakeNumbers({}, { importer.GetRank(input) }, true);
    for (std::size_t p = 0; p < importer.GetNumberOfProbes(); ++p)
    {
      const std::vector<std::int64_t> shape = importer.GetShape(input, p);
      value.numbers[p].assign(shape.begin(), shape.end());
    }
  }
  const std::int64_t rank = value.dimensions[0];
  const auto         end = [&](const char * name, std::int64_t otherwise) {
    const std::int64_t index = importer.GetInt(name, otherwise);
    return std::min(std::max<std::int64_t>(index < 0 ? index + rank : index, 0), rank);
  };
  const std::int64_t first = end("start", 0);
  const std::int64_t last = std::max(first, end("end", rank));
  for (std::vector<double> & numbers : value.numbers)
  {
    numbers = std::vector<double>(numbers.begin() + first, numbers.begin() + last);
  }
  value.dimensions = { last - first };
  importer.GiveValue(std::move(value));
}

void
Gather(Importer & importer)
{
  if (!importer.IsConstant(0))
  {
    throw Problem("of an image it is not supported; use Slice or Split over channels, which keep the axis");
  }
  const Value                     data = importer.GetNumbers(0);
  const std::vector<std::int64_t> indices = importer.GetFixedIntegers(1);
  if (data.dimensions.size() != 1 || importer.GetAxis(importer.GetInt("axis", 0), 1) != 0)
  {
    throw Problem("of a constant of several axes it is not supported");
  }
  Value result = data;
  result.dimensions = importer.GetTensorDimensions(1);
  const auto size = static_cast<std::int64_t>(data.numbers[0].size());
  for (std::size_t p = 0; p < data.numbers.size(); ++p)
  {
    result.numbers[p].clear();
    for (const std::int64_t index : indices)
    {
      if (index < -size || index >= size)
      {
        throw Problem("index " + std::to_string(index) + " of " + std::to_string(size) + " numbers");
      }
      result.numbers[p].push_back(data.numbers[p][static_cast<std::size_t>(index < 0 ? index + size : index)]);
    }
  }
  importer.GiveValue(std::move(result));
}

/** An image as a row of numbers, or a single voxel as an image again: what classifiers need. `shape` is for the extents
 * that the file fixes. */
void
GiveReshaped(Importer & importer, const std::vector<std::int64_t> & shape)
{
  Value                           value = importer.GetLayer(0);
  const std::vector<std::int64_t> before = importer.GetShape(value, 2);
  const bool                      isOne = importer.IsOneVoxel(value);
  if (!value.order.empty())
  {
    throw Problem("its input is transposed");
  }
  if (shape != before)
  {
    const auto total =
      std::accumulate(before.begin(), before.end(), std::int64_t{ 1 }, [](std::int64_t a, std::int64_t b) {
        return b > 0 && a > (std::int64_t{ 1 } << 40) / b ? std::int64_t{ 1 } << 40 : a * b;
      });
    const bool isVoxelAgain =
      isOne && value.isFlat && static_cast<int>(shape.size()) == importer.GetSpatialAxes() + 2 && shape[0] == 1 &&
      shape[1] == before[1] && std::all_of(shape.begin() + 2, shape.end(), [](std::int64_t size) { return size == 1; });
    const bool isFlattened = !value.isFlat && shape.size() == 2 && shape[0] == 1 && shape[1] == total;
    if (!isVoxelAgain && !isFlattened)
    {
      throw Problem("it changes the tensor's shape; supported is flattening before fully connected layers");
    }
    value.isFlat = isFlattened;
  }
  importer.GiveValue(std::move(value));
}

void
CheckFixedExtents(const Importer & importer)
{
  if (!importer.HasFixedExtents())
  {
    throw Problem(
      "flattening needs the extents that the network was trained on; export it with an input of fixed extents");
  }
}

void
Flatten(Importer & importer)
{
  CheckFixedExtents(importer);
  const Value &                   image = importer.GetLayer(0);
  const std::vector<std::int64_t> before = importer.GetShape(image, 2);
  const std::int64_t              axis = importer.GetInt("axis", 1);
  if (importer.GetAxis(axis, before.size()) != 1)
  {
    throw Problem("axis " + std::to_string(axis) + ": supported is 1, which keeps the batch");
  }
  std::int64_t count = 1;
  for (std::size_t i = 1; i < before.size(); ++i)
  {
    count =
      before[i] > 0 && count > (std::int64_t{ 1 } << 40) / before[i] ? std::int64_t{ 1 } << 40 : count * before[i];
  }
  GiveReshaped(importer, { 1, count });
}

void
Reshape(Importer & importer)
{
  if (importer.IsConstant(0))
  {
    Value                           value = importer.GetNumbers(0);
    const std::vector<std::int64_t> shape = importer.GetFixedIntegers(1);
    const auto                      count = static_cast<std::int64_t>(value.numbers[0].size());
    const bool                      isList = shape.size() == 1 && (shape[0] == -1 || shape[0] == count);
    if (!isList && !(shape.empty() && count == 1))
    {
      throw Problem("of a constant it is not supported; simplify the model before");
    }
    value.dimensions = shape;
    if (isList)
    {
      value.dimensions = { count };
    }
    importer.GiveValue(std::move(value));
    return;
  }
  CheckFixedExtents(importer);
  const Value                     target = importer.GetNumbers(1);
  const std::vector<std::int64_t> before = importer.GetShape(importer.GetLayer(0), 2);
  std::vector<std::int64_t>       shape;
  std::int64_t                    known = 1;
  int                             unknown = -1;
  double                          total = 1;
  for (const std::int64_t size : before)
  {
    total *= static_cast<double>(size);
  }
  for (std::size_t i = 0; i < target.numbers[2].size() && i < 8; ++i)
  {
    std::int64_t size = ToInteger(target.numbers[2][i]);
    if (size == 0 && importer.GetInt("allowzero", 0) == 0 && i < before.size())
    {
      size = before[i];
    }
    if (size == -1 && unknown < 0)
    {
      unknown = static_cast<int>(i);
    }
    else if (size < 1 || size > (std::int64_t{ 1 } << 40) / known)
    {
      throw Problem("its shape makes no sense");
    }
    else
    {
      known *= size;
    }
    shape.push_back(size);
  }
  if (unknown >= 0)
  {
    shape[static_cast<std::size_t>(unknown)] = ToInteger(total) / known;
  }
  GiveReshaped(importer, shape);
}

template <bool VInsert>
void
Squeeze(Importer & importer)
{
  const std::vector<std::int64_t> axes = importer.GetAxes(13, 1);
  const bool                      isConstant = importer.IsConstant(0);
  Value                           value = isConstant ? importer.GetNumbers(0) : importer.GetLayer(0);
  if (!isConstant)
  {
    CheckFixedExtents(importer);
  }
  const std::vector<std::int64_t> before = isConstant ? value.dimensions : importer.GetShape(value, 2);
  std::vector<std::int64_t>       after;
  const std::size_t               rank = before.size() + (VInsert ? axes.size() : 0);
  std::vector<bool>               isNamed(rank, false);
  for (const std::int64_t axis : axes)
  {
    const auto index = static_cast<std::size_t>(importer.GetAxis(axis, rank));
    if (isNamed[index])
    {
      throw Problem("it names an axis twice");
    }
    isNamed[index] = true;
  }
  std::size_t from = 0;
  for (std::size_t i = 0; i < rank; ++i)
  {
    if (VInsert)
    {
      after.push_back(isNamed[i] ? 1 : before[from++]);
    }
    else if (!isNamed[i] && !(axes.empty() && before[i] == 1))
    {
      after.push_back(before[i]);
    }
    else if (before[i] != 1)
    {
      throw Problem("it removes an axis of extent " + std::to_string(before[i]));
    }
  }
  if (isConstant)
  {
    value.dimensions = after;
    importer.GiveValue(std::move(value));
    return;
  }
  GiveReshaped(importer, after);
}

void
Transpose(Importer & importer)
{
  Value                     value = importer.GetLayer(0);
  const auto                rank = static_cast<std::size_t>(importer.GetRank(value));
  std::vector<std::int64_t> permutation = importer.GetInts("perm");
  if (permutation.empty())
  {
    for (std::size_t i = rank; i-- > 0;)
    {
      permutation.push_back(static_cast<std::int64_t>(i));
    }
  }
  std::vector<bool> isSeen(rank, false);
  std::vector<int>  order;
  for (const std::int64_t axis : permutation)
  {
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank) || isSeen[static_cast<std::size_t>(axis)])
    {
      throw Problem("attribute perm is no permutation of the axes");
    }
    isSeen[static_cast<std::size_t>(axis)] = true;
    order.push_back(value.order.empty() ? static_cast<int>(axis) : value.order[static_cast<std::size_t>(axis)]);
  }
  if (order.size() != rank)
  {
    throw Problem("attribute perm is no permutation of the axes");
  }
  value.order = IsOrdered(order) ? std::vector<int>() : order;
  importer.GiveValue(std::move(value));
}

void
Concatenation(Importer & importer)
{
  if (importer.GetNumberOfInputs() == 0)
  {
    throw Problem("it has no inputs");
  }
  if (importer.IsConstant(0))
  {
    Value result = importer.GetNumbers(0);
    for (int i = 1; i < importer.GetNumberOfInputs(); ++i)
    {
      const Value next = importer.GetNumbers(i);
      if (next.dimensions.size() != 1 || result.numbers[0].size() + next.numbers[0].size() > MostNumbers)
      {
        throw Problem("of constants that are no short lists it is not supported");
      }
      for (std::size_t p = 0; p < result.numbers.size(); ++p)
      {
        result.numbers[p].insert(result.numbers[p].end(), next.numbers[p].begin(), next.numbers[p].end());
      }
    }
    if (result.dimensions.size() != 1)
    {
      throw Problem("of constants that are no short lists it is not supported");
    }
    result.dimensions = { static_cast<std::int64_t>(result.numbers[0].size()) };
    importer.GiveValue(std::move(result));
    return;
  }
  const Value  first = importer.GetLayer(0);
  NetworkLayer layer;
  layer.kind = LayerKind::Concatenation;
  for (int i = 0; i < importer.GetNumberOfInputs(); ++i)
  {
    const Value & image = importer.GetLayer(i);
    if (image.isFlat != first.isFlat || image.order != first.order || (image.isFlat && !importer.IsOneVoxel(image)))
    {
      throw Problem("one of its inputs is flattened or transposed");
    }
    layer.inputs.push_back(image.layer);
  }
  const auto rank = static_cast<std::size_t>(importer.GetRank(first));
  const int  axis = importer.GetAxis(importer.GetInt("axis", 1), rank);
  if ((first.order.empty() ? axis : first.order[static_cast<std::size_t>(axis)]) != 1)
  {
    throw Problem("it joins along axis " + std::to_string(axis) + "; supported are channels, axis 1");
  }
  importer.Give(std::move(layer), first);
}

/** A range of an axis: how many are left out at either end. */
struct Cut
{
  std::int64_t lower;
  std::int64_t upper;
};

Cut
CutOf(std::int64_t start, std::int64_t end, std::int64_t size)
{
  const auto clamped = [size](std::int64_t index) {
    return std::min(std::max<std::int64_t>(index < 0 ? index + size : index, 0), size);
  };
  return { clamped(start), size - clamped(end) };
}

struct SliceArguments
{
  Value starts;
  Value ends;
  Value steps;
  Value axes;
  bool  hasAxes = false;
  bool  hasSteps = false;
};

/** They are attributes of old versions, and inputs of others. */
SliceArguments
ReadSlice(Importer & importer)
{
  SliceArguments slice;
  if (importer.GetVersion() < 10)
  {
    const auto numbersOf = [&](const char * name) {
      const std::vector<std::int64_t> integers = importer.GetInts(name);
      return importer.MakeNumbers(std::vector<double>(integers.begin(), integers.end()), {}, true);
    };
    slice.starts = numbersOf("starts");
    slice.ends = numbersOf("ends");
    slice.axes = numbersOf("axes");
    slice.hasAxes = importer.FindAttribute("axes") != nullptr;
  }
  else
  {
    slice.starts = importer.GetNumbers(1);
    slice.ends = importer.GetNumbers(2);
    slice.hasAxes = importer.HasInput(3);
    slice.hasSteps = importer.HasInput(4);
    if (slice.hasAxes)
    {
      slice.axes = importer.GetNumbers(3);
    }
    if (slice.hasSteps)
    {
      slice.steps = importer.GetNumbers(4);
    }
  }
  const std::size_t count = slice.starts.numbers[0].size();
  if (slice.ends.numbers[0].size() != count || (slice.hasAxes && slice.axes.numbers[0].size() != count) ||
      (slice.hasSteps && slice.steps.numbers[0].size() != count))
  {
    throw Problem("starts, ends, axes and steps have different lengths");
  }
  return slice;
}

/** A cut in the sizes of the probes, and whether it is that of all sizes. */
struct CutOfSizes
{
  Cut  cut;
  bool isSame;
};

CutOfSizes
FindCut(Importer & importer, const SliceArguments & slice, std::size_t i, const Value & value, std::size_t axis)
{
  std::vector<Cut> cuts;
  for (std::size_t p = 0; p < importer.GetNumberOfProbes(); ++p)
  {
    const std::int64_t size =
      importer.IsConstant(0) ? static_cast<std::int64_t>(value.numbers[0].size()) : importer.GetShape(value, p)[axis];
    cuts.push_back(CutOf(ToInteger(slice.starts.numbers[p][i]), ToInteger(slice.ends.numbers[p][i]), size));
    if (cuts.back().lower + cuts.back().upper > size)
    {
      cuts.back().upper = size - cuts.back().lower;
    }
  }
  const bool isSame = cuts[0].lower == cuts[1].lower && cuts[0].upper == cuts[1].upper;
  if (!isSame && !importer.HasFixedExtents())
  {
    throw Problem("what it leaves out along axis " + std::to_string(axis) +
                  " depends on the image's size; count from the ends, or export the network with fixed extents");
  }
  return { isSame ? cuts[0] : cuts[2], isSame };
}

void
CutConstant(Value & value, const CutOfSizes & found, std::size_t rank)
{
  if (rank != 1 || !found.isSame)
  {
    throw Problem("of a constant of several axes it is not supported");
  }
  for (std::vector<double> & numbers : value.numbers)
  {
    numbers = std::vector<double>(numbers.begin() + found.cut.lower, numbers.end() - found.cut.upper);
  }
  value.dimensions = { static_cast<std::int64_t>(value.numbers[0].size()) };
}

/** Cuts an image; along its spatial axes by `crop`, for all of them at once. */
void
CutImage(Importer & importer, Value & value, std::size_t axis, const Cut & cut, NetworkLayer & crop)
{
  if (axis >= 2)
  {
    const auto a = static_cast<std::size_t>(importer.GetSpatialAxis(static_cast<int>(axis)));
    crop.padLower[a] = cut.lower;
    crop.padUpper[a] = cut.upper;
    return;
  }
  if (cut.lower == 0 && cut.upper == 0)
  {
    return;
  }
  if (axis == 0)
  {
    throw Problem("it leaves out the batch");
  }
  NetworkLayer layer;
  layer.kind = LayerKind::ChannelSlice;
  layer.inputs = { value.layer };
  layer.firstChannel = static_cast<int>(cut.lower);
  layer.channels = static_cast<int>(importer.GetChannels(value) - cut.lower - cut.upper);
  value.layer = importer.AddLayer(std::move(layer));
}

void
Slice(Importer & importer)
{
  const SliceArguments slice = ReadSlice(importer);
  const bool           isConstant = importer.IsConstant(0);
  Value                value = isConstant ? importer.GetNumbers(0) : importer.GetImage(0);
  const std::size_t    rank = isConstant ? value.dimensions.size() : static_cast<std::size_t>(importer.GetRank(value));
  NetworkLayer         crop;
  crop.kind = LayerKind::Crop;
  std::vector<bool> isSeen(rank, false);
  for (std::size_t i = 0; i < slice.starts.numbers[0].size(); ++i)
  {
    const auto axis = static_cast<std::size_t>(
      importer.GetAxis(slice.hasAxes ? ToInteger(slice.axes.numbers[0][i]) : static_cast<std::int64_t>(i), rank));
    if ((slice.hasSteps && slice.steps.numbers[0][i] != 1) || isSeen[axis])
    {
      throw Problem("it takes one of several elements, or an axis twice, which is not supported");
    }
    isSeen[axis] = true;
    const CutOfSizes found = FindCut(importer, slice, i, value, axis);
    isConstant ? CutConstant(value, found, rank) : CutImage(importer, value, axis, found.cut, crop);
  }
  if (crop.padLower != LayerExtent{ { 0, 0, 0 } } || crop.padUpper != LayerExtent{ { 0, 0, 0 } })
  {
    crop.inputs = { value.layer };
    value.layer = importer.AddLayer(std::move(crop));
  }
  importer.GiveValue(std::move(value));
}

void
Split(Importer & importer)
{
  const Value & image = importer.GetImage(0);
  const auto    axis = importer.GetAxis(importer.GetInt("axis", 0), static_cast<std::size_t>(importer.GetRank(image)));
  if (axis != 1)
  {
    throw Problem("it cuts axis " + std::to_string(axis) + "; supported are channels, axis 1");
  }
  std::vector<std::int64_t> sizes;
  if (importer.GetVersion() < 13)
  {
    sizes = importer.GetInts("split");
  }
  else if (importer.HasInput(1))
  {
    sizes = importer.GetFixedIntegers(1);
  }
  const std::int64_t channels = importer.GetChannels(image);
  const std::int64_t outputs = importer.GetNumberOfOutputs();
  if (sizes.empty())
  {
    // The last one is smaller where they cannot be equal.
    const std::int64_t size = (channels + outputs - 1) / outputs;
    for (std::int64_t i = 0; i < outputs; ++i)
    {
      sizes.push_back(std::min(size, channels - i * size));
    }
  }
  if (static_cast<std::int64_t>(sizes.size()) != outputs)
  {
    throw Problem("it has " + std::to_string(outputs) + " outputs for " + std::to_string(sizes.size()) + " parts");
  }
  std::int64_t first = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i)
  {
    if (sizes[i] < 1 || sizes[i] > channels - first)
    {
      throw Problem("its parts do not fit the " + std::to_string(channels) + " channels");
    }
    NetworkLayer layer;
    layer.kind = LayerKind::ChannelSlice;
    layer.inputs = { image.layer };
    layer.firstChannel = static_cast<int>(first);
    layer.channels = static_cast<int>(sizes[i]);
    importer.Give(std::move(layer), image, static_cast<int>(i));
    first += sizes[i];
  }
  if (first != channels)
  {
    throw Problem("its parts do not fit the " + std::to_string(channels) + " channels");
  }
}

} // namespace

void
AddShapeOperators(OperatorTable & table)
{
  table["Constant"] = Constant;
  table["ConstantOfShape"] = ConstantOfShape;
  table["Shape"] = Shape;
  table["Gather"] = Gather;
  table["Flatten"] = Flatten;
  table["Reshape"] = Reshape;
  table["Squeeze"] = Squeeze<false>;
  table["Unsqueeze"] = Squeeze<true>;
  table["Transpose"] = Transpose;
  table["Concat"] = Concatenation;
  table["Slice"] = Slice;
  table["Split"] = Split;
}

} // namespace onnx
} // namespace chunkwise
