/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Operators that change the extents: Pad, Resize and Upsample.
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

constexpr std::int64_t LargestFactor = 4096;

void
Pad(Importer & importer)
{
  Value             value = importer.GetImage(0);
  const std::string mode = importer.GetString("mode", "constant");
  const auto        rank = static_cast<std::size_t>(importer.GetRank(value));
  const bool        isOld = importer.GetVersion() < 11;
  double            number = 0;
  if (isOld)
  {
    number = static_cast<double>(importer.GetFloat("value", 0));
  }
  else if (importer.HasInput(2))
  {
    const std::vector<double> numbers = importer.GetFixedNumbers(2);
    number = numbers.size() == 1 ? numbers[0] : std::numeric_limits<double>::quiet_NaN();
  }
  const std::vector<std::int64_t> pads = isOld ? importer.GetInts("pads") : importer.GetFixedIntegers(1);
  std::vector<std::int64_t>       axes = importer.GetAxes(18, 3);
  if (axes.empty())
  {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (pads.size() != 2 * axes.size())
  {
    throw Problem("it has " + std::to_string(pads.size()) + " paddings for " + std::to_string(axes.size()) + " axes");
  }
  NetworkLayer crop;
  crop.kind = LayerKind::Crop;
  for (std::size_t i = 0; i < pads.size(); ++i)
  {
    const int          axis = importer.GetAxis(axes[i % axes.size()], rank);
    const std::int64_t size = pads[i];
    if (size == 0)
    {
      continue;
    }
    if (axis < 2)
    {
      throw Problem("it pads the batch or the channels, which is not supported");
    }
    if (std::abs(size) > LargestFactor)
    {
      throw Problem("it pads by " + std::to_string(size));
    }
    const auto a = static_cast<std::size_t>(importer.GetSpatialAxis(axis));
    const bool isLower = i < axes.size();
    if (size < 0)
    {
      (isLower ? crop.padLower : crop.padUpper)[a] = -size;
    }
    else
    {
      (isLower ? value.padLower : value.padUpper)[a] = size;
    }
  }
  if (value.IsPadded() && mode != "constant")
  {
    throw Problem("mode \"" + Quoted(mode) +
                  "\" is not supported, only padding with a constant; train the network with that");
  }
  if (std::isnan(number))
  {
    throw Problem("its value is not one number");
  }
  value.padValue = static_cast<float>(std::min(std::max(number, -std::numeric_limits<double>::infinity()),
                                               static_cast<double>(std::numeric_limits<float>::max())));
  if (number < static_cast<double>(std::numeric_limits<float>::lowest()))
  {
    value.padValue = -std::numeric_limits<float>::infinity();
  }
  if (crop.padLower != LayerExtent{ { 0, 0, 0 } } || crop.padUpper != LayerExtent{ { 0, 0, 0 } })
  {
    crop.inputs = { value.layer };
    value.layer = importer.AddLayer(std::move(crop));
  }
  importer.GiveValue(std::move(value));
}

/** A factor that is a whole number, or 0. */
std::int64_t
WholeFactor(double factor)
{
  return factor >= 1 && factor <= static_cast<double>(LargestFactor) && factor == std::floor(factor)
           ? static_cast<std::int64_t>(factor)
           : 0;
}

/** Factors along N, C and the rest, from scales or from sizes. */
std::vector<std::int64_t>
GetFactors(const Importer & importer, const Value & image, const Value & given, bool isSizes,
           const std::vector<std::int64_t> & axes)
{
  const auto                rank = static_cast<std::size_t>(importer.GetRank(image));
  std::vector<std::int64_t> factors(rank, 1);
  if (given.numbers[0].size() != (axes.empty() ? rank : axes.size()))
  {
    throw Problem("it has " + std::to_string(given.numbers[0].size()) + " scales or sizes for " + std::to_string(rank) +
                  " axes");
  }
  for (std::size_t i = 0; i < given.numbers[0].size(); ++i)
  {
    const auto                axis = axes.empty() ? i : static_cast<std::size_t>(importer.GetAxis(axes[i], rank));
    std::vector<std::int64_t> found;
    for (std::size_t p = 0; p < importer.GetNumberOfProbes(); ++p)
    {
      const double before = isSizes ? static_cast<double>(importer.GetShape(image, p)[axis]) : 1.0;
      found.push_back(before > 0 ? WholeFactor(given.numbers[p][i] / before) : 0);
    }
    // A size that the exporter wrote as a constant is meant for the extents that the file fixes.
    factors[axis] = found[0] == found[1] ? found[0] : 0;
    if (factors[axis] == 0 && isSizes && importer.HasFixedExtents())
    {
      factors[axis] = found[2];
    }
    if (factors[axis] == 0)
    {
      throw Problem(isSizes
                      ? "its sizes are no whole multiples of the image's extents, or constants where the file does "
                        "not fix these; export the network with a scale factor"
                      : "a scale of " + std::to_string(given.numbers[0][i]) + "; supported are whole numbers up to " +
                          std::to_string(LargestFactor));
    }
  }
  return factors;
}

void
CheckNearest(const std::string & transformation, const std::string & rounding, std::int64_t factor)
{
  const bool isHalf = transformation == "half_pixel" || transformation == "pytorch_half_pixel" ||
                      transformation == "half_pixel_symmetric";
  const bool isRound = rounding == "round_prefer_floor" || rounding == "round_prefer_ceil";
  const bool repeats = (isHalf && isRound) || (transformation == "asymmetric" && rounding == "floor") ||
                       (transformation == "asymmetric" && rounding == "round_prefer_floor" && factor <= 2) ||
                       (transformation == "tf_half_pixel_for_nn" && rounding == "floor") || factor == 1;
  if (!repeats)
  {
    throw Problem(
      "nearest with " + Quoted(transformation) + " and " + Quoted(rounding) +
      " does not repeat each voxel equally; use asymmetric with floor, or half_pixel with round_prefer_floor");
  }
}

void
Resize(Importer & importer)
{
  const bool                      isUpsample = importer.GetOperator() == "Upsample";
  const std::int64_t              version = importer.GetVersion();
  const bool                      isOld = isUpsample || version < 11;
  const Value &                   image = importer.GetImage(0);
  const std::string               mode = importer.GetString("mode", "nearest");
  Value                           given;
  bool                            isSizes = false;
  const std::vector<std::int64_t> axes =
    !isOld && version >= 18 ? importer.GetInts("axes") : std::vector<std::int64_t>();
  if (isUpsample && version < 9)
  {
    const AttributeProto * scales = importer.FindAttribute("scales");
    if (!scales || scales->floats.size() > 8)
    {
      throw Problem("attribute scales is missing or too long");
    }
    given = importer.MakeNumbers(std::vector<double>(scales->floats.begin(), scales->floats.end()), {}, false);
  }
  else
  {
    const int scales = isOld ? 1 : 2;
    if (importer.HasInput(scales))
    {
      given = importer.GetNumbers(scales);
    }
    if (given.numbers.empty() || given.numbers[0].empty())
    {
      given = importer.GetNumbers(3);
      isSizes = true;
    }
  }
  if (mode != "nearest" && mode != "linear")
  {
    throw Problem("mode \"" + Quoted(mode) + "\" is not supported; supported are nearest and linear");
  }
  const std::vector<std::int64_t> factors = GetFactors(importer, image, given, isSizes, axes);
  if (factors[0] != 1 || factors[1] != 1)
  {
    throw Problem("it enlarges the batch or the channels");
  }
  const std::string policy = importer.GetString("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch")
  {
    throw Problem("keep_aspect_ratio_policy \"" + Quoted(policy) + "\" is not supported");
  }
  const std::string transformation =
    isOld ? "asymmetric" : importer.GetString("coordinate_transformation_mode", "half_pixel");
  const std::string rounding = isOld ? "floor" : importer.GetString("nearest_mode", "round_prefer_floor");
  NetworkLayer      layer;
  layer.kind = mode == "nearest" ? LayerKind::NearestUpsampling : LayerKind::LinearUpsampling;
  layer.inputs = { image.layer };
  bool isSame = true;
  for (std::size_t axis = 2; axis < factors.size(); ++axis)
  {
    layer.stride[static_cast<std::size_t>(importer.GetSpatialAxis(static_cast<int>(axis)))] = factors[axis];
    isSame = isSame && factors[axis] == 1;
    if (mode == "nearest")
    {
      CheckNearest(transformation, rounding, factors[axis]);
    }
  }
  if (isSame)
  {
    importer.GiveValue(image);
    return;
  }
  if (mode == "linear" && transformation != "half_pixel" && transformation != "pytorch_half_pixel" &&
      transformation != "half_pixel_symmetric")
  {
    throw Problem(transformation == "align_corners"
                    ? "align_corners makes the spacing depend on the image's size; train the network without it"
                    : "linear with " + Quoted(transformation) +
                        " is not supported; export the network with half_pixel, which takes opset 11 or newer");
  }
  importer.Give(std::move(layer), image);
}

} // namespace

void
AddExtentOperators(OperatorTable & table)
{
  table["Pad"] = Pad;
  table["Resize"] = Resize;
  table["Upsample"] = Resize;
}

} // namespace onnx
} // namespace chunkwise
