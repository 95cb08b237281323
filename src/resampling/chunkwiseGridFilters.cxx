/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of bins, and of copies to another grid.
#include "chunkwiseBinOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseCheckedParameters.h"
#include "chunkwiseGridRows.h"
#include "chunkwiseRearrangeOperation.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** Sizes beyond are no sizes of images. */
constexpr double LargestSize = 9e15;

ParameterDescription
SizesParameter(const std::string & name, const std::string & option, const std::string & help, const char * text)
{
  ParameterDescription sizes = MakeParameter(name, option, ParameterType::Integers, help, text);
  sizes.minimum = 0;
  sizes.maximum = LargestSize;
  return sizes;
}

ParameterDescription
AxesParameter(const std::string & help)
{
  ParameterDescription axes = SpatialAxesParameter();
  axes.help = help + "; x is 0 (the first three)";
  return axes;
}

template <typename TEnum>
TEnum
FindChoice(const char * filter, const CheckedParameters & p, const std::string & name)
{
  const std::vector<std::string> & choices = GetFilter(filter).FindParameter(name)->choices;
  return static_cast<TEnum>(std::find(choices.begin(), choices.end(), p.Choice(name)) - choices.begin());
}

/** The factors, of which an axis takes as much as it has voxels. */
Coordinates
GetFactor(const CheckedParameters & p, const FilterImage & image)
{
  Coordinates factor = p.OverAxes("Factor", 1);
  for (int a = 0; a < MaxDimension; ++a)
  {
    factor[a] = std::min(factor[a], std::max<std::int64_t>(image.extent[a], 1));
  }
  return factor;
}

/** Moves the first voxel of a grid by so many voxels along its axes. */
void
MoveOrigin(FilterImage & grid, const FilterImage & image, int axis, double voxels)
{
  for (int row = 0; row < MaxDimension && voxels != 0; ++row)
  {
    grid.origin[row] += image.direction[row][axis] * image.spacing[axis] * voxels;
  }
}

FilterImage
FindBinOutput(const CheckedParameters & p, const FilterImage & image)
{
  const Coordinates factor = GetFactor(p, image);
  FilterImage       output = image;
  for (int a = 0; a < MaxDimension; ++a)
  {
    output.extent[a] = image.extent[a] / factor[a] + (image.extent[a] % factor[a] != 0 ? 1 : 0);
    output.spacing[a] *= static_cast<double>(factor[a]);
    MoveOrigin(output, image, a, static_cast<double>(factor[a] - 1) / 2);
  }
  return output;
}

std::shared_ptr<BinOperation>
MakeBin(const CheckedParameters & p, const FilterImage & image)
{
  const auto operation = std::make_shared<BinOperation>();
  operation->image = image.extent;
  operation->factor = GetFactor(p, image);
  return operation;
}

void
AddBinFilters(std::vector<FilterDescription> & filters)
{
  ParameterDescription factor =
    SizesParameter("Factor", "factor", "Voxels of a block along each axis; an axis with fewer is one block", "2");
  factor.minimum = 1;
  ParameterDescription method =
    MakeChoice("Method",
               "method",
               "The value of a block: of two medians, or of several most frequent values, the lowest; gaussian: a mean "
               "with weights that reach beyond the block, 1 3 3 1 for 2",
               { "mean", "minimum", "maximum", "median", "mode", "gaussian" });

  FilterDescription row;
  row.name = "bin";
  row.group = "Other grids";
  row.title =
    "One voxel for each block of voxels: their mean, minimum, maximum, median, most frequent value or Gaussian mean";
  row.canBeStage = false;
  row.outputImage = FindBinOutput;
  row.parameters = { factor, method, AxesParameter("Axes along which blocks have several voxels") };
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    const auto operation = MakeBin(p, image);
    const auto number = FindChoice<int>("bin", p, "Method");
    operation->method = number == 0 ? BinMethod::Mean : static_cast<BinMethod>(number + 1);
    return operation;
  };
  filters.push_back(row);

  row.name = "bin-sum";
  row.title = "The sum of each block of voxels";
  row.output = DefaultOutput::RealSum;
  row.isLinear = true;
  row.givesIntegers = [](const FilterParameters &, const std::vector<std::string> &) { return true; };
  row.parameters = { factor, AxesParameter("Axes along which blocks have several voxels") };
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    const auto operation = MakeBin(p, image);
    operation->method = BinMethod::Sum;
    return operation;
  };
  filters.push_back(row);
}

/** An operation that copies the image as it is. */
RearrangeOperation
MakeCopy(const FilterImage & image)
{
  RearrangeOperation copy;
  copy.image = image.extent;
  copy.output = image.extent;
  return copy;
}

RearrangeOperation
MakeCrop(const CheckedParameters & p, const FilterImage & image)
{
  RearrangeOperation crop = MakeCopy(image);
  const Coordinates  upper = p.OverAxes("Upper");
  crop.offset = p.OverAxes("Lower");
  for (int a = 0; a < MaxDimension; ++a)
  {
    crop.output[a] -= crop.offset[a] + upper[a];
    if (crop.output[a] < std::min<std::int64_t>(image.extent[a], 1))
    {
      throw ParameterError("Upper",
                           std::to_string(upper[a]) + p.Along(a) + " with Lower " + std::to_string(crop.offset[a]),
                           "a number that leaves one of " + std::to_string(image.extent[a]) + " voxels");
    }
  }
  return crop;
}

RearrangeOperation
MakePad(const CheckedParameters & p, const FilterImage & image)
{
  RearrangeOperation pad = MakeCopy(image);
  const Coordinates  lower = p.OverAxes("Lower");
  const Coordinates  upper = p.OverAxes("Upper");
  for (int a = 0; a < MaxDimension; ++a)
  {
    pad.offset[a] = -lower[a];
    pad.output[a] += lower[a] + upper[a];
    if (image.extent[a] == 0 && pad.output[a] > 0)
    {
      throw ParameterError("the image has no voxels, so padding has no values");
    }
  }
  const auto outside = FindChoice<RearrangeOutside>("pad", p, "Outside");
  pad.SetOutside(outside);
  pad.value = p.Value("OutsideValue");
  if (outside == RearrangeOutside::Constant && !pad.value.IsOf(image.inputKind))
  {
    throw ParameterError("OutsideValue",
                         pad.value.ToText(),
                         std::string("a value of the input's pixel type, ") + PixelTypeName(image.inputKind));
  }
  return pad;
}

RearrangeOperation
MakeFlip(const CheckedParameters & p, const FilterImage & image)
{
  RearrangeOperation flip = MakeCopy(image);
  for (const int a : p.SpatialAxes())
  {
    flip.flips[a] = true;
    flip.offset[a] = image.extent[a] - 1;
  }
  return flip;
}

RearrangeOperation
MakePermutation(const CheckedParameters & p, const FilterImage & image)
{
  RearrangeOperation permutation = MakeCopy(image);
  for (int a = 0; a < image.dimension; ++a)
  {
    const std::int64_t from =
      p.Has("AxisOrder") ? p.Integers("AxisOrder")[static_cast<std::size_t>(a)] : image.dimension - 1 - a;
    const int * const taken = std::find(permutation.source, permutation.source + a, static_cast<int>(from));
    if (from >= image.dimension || taken != permutation.source + a)
    {
      throw ParameterError("AxisOrder",
                           std::to_string(from) + " as entry " + std::to_string(a),
                           "each axis of the " + std::to_string(image.dimension) + "-D image once");
    }
    permutation.source[a] = static_cast<int>(from);
    permutation.output[a] = image.extent[static_cast<int>(from)];
  }
  return permutation;
}

/** The grid whose voxels lie in space where the image's voxels lie of which they are copies. */
FilterImage
FindCopyGrid(const RearrangeOperation & copy, const FilterImage & image)
{
  FilterImage output = image;
  output.extent = copy.output;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const int s = copy.source[a];
    output.spacing[a] = image.spacing[s];
    for (int row = 0; row < MaxDimension; ++row)
    {
      output.direction[row][a] = copy.flips[a] ? 0 - image.direction[row][s] : image.direction[row][s];
    }
    // An axis without voxels has no last one.
    MoveOrigin(output, image, s, image.extent[s] == 0 ? 0 : static_cast<double>(copy.offset[a]));
  }
  return output;
}

/** The functions of a row whose operation `VMake` makes. */
template <RearrangeOperation (*VMake)(const CheckedParameters &, const FilterImage &)>
FilterDescription
MakeCopyRow(const std::string & name, const std::string & title)
{
  FilterDescription row;
  row.name = name;
  row.group = "Copies of voxels";
  row.title = title;
  row.canBeStage = false;
  row.isLinear = true;
  row.outputImage = [](const CheckedParameters & p, const FilterImage & image) {
    return FindCopyGrid(VMake(p, image), image);
  };
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    return std::make_shared<RearrangeOperation>(VMake(p, image));
  };
  return row;
}

} // namespace

void
AddGridFilters(std::vector<FilterDescription> & filters)
{
  AddBinFilters(filters);

  FilterDescription crop = MakeCopyRow<MakeCrop>("crop", "The image without voxels at its edges");
  crop.parameters = { SizesParameter("Lower", "lower", "Voxels that are left out at the first edge of each axis", "0"),
                      SizesParameter("Upper", "upper", "Voxels that are left out at the last edge of each axis", "0"),
                      AxesParameter("Axes that the numbers are for") };
  filters.push_back(crop);

  FilterDescription    pad = MakeCopyRow<MakePad>("pad", "The image with more voxels at its edges");
  ParameterDescription outside =
    MakeChoice("Outside",
               "outside",
               "The voxels beyond the image: a value, the nearest voxel, reflections that repeat the first and the "
               "last voxel (reflect) or do not (mirror), or the image again",
               { "constant", "nearest", "reflect", "mirror", "wrap" });
  ParameterDescription value = OnlyWith(
    MakeParameter("OutsideValue", "value", ParameterType::PixelValue, "The value of voxels beyond the image", "0"),
    "Outside",
    "constant");
  pad.isLinear = false;
  pad.parameters = { SizesParameter("Lower", "lower", "Voxels that come before the first one of each axis", "0"),
                     SizesParameter("Upper", "upper", "Voxels that come after the last one of each axis", "0"),
                     outside,
                     value,
                     AxesParameter("Axes that the numbers are for") };
  filters.push_back(pad);

  FilterDescription    flip = MakeCopyRow<MakeFlip>("flip", "The image with its voxels in reverse order along axes");
  ParameterDescription about =
    MakeParameter("FlipAboutOrigin",
                  "about-origin",
                  ParameterType::Flag,
                  "The image is mirrored in space, at the planes through the origin; else voxels keep their places and "
                  "the axes point the other way",
                  "off");
  flip.parameters = { about, AxesParameter("Axes along which voxels are reversed") };
  flip.outputImage = [](const CheckedParameters & p, const FilterImage & image) {
    FilterImage output = FindCopyGrid(MakeFlip(p, image), image);
    for (const int a : p.SpatialAxes())
    {
      for (int row = 0; row < MaxDimension && p.Flag("FlipAboutOrigin"); ++row)
      {
        output.direction[row][a] = image.direction[row][a];
      }
      output.origin[a] = p.Flag("FlipAboutOrigin") ? 0 - output.origin[a] : output.origin[a];
    }
    return output;
  };
  filters.push_back(flip);

  FilterDescription permute = MakeCopyRow<MakePermutation>("permute-axes", "The image with its axes in another order");
  ParameterDescription order = SizesParameter(
    "AxisOrder", "order", "The axis of the image for each axis of the output; without it the axes are reversed", "");
  order.count = ParameterCount::PerAxis;
  order.maximum = MaxDimension - 1;
  permute.parameters = { order };
  filters.push_back(permute);
}

} // namespace chunkwise
