/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of distances, and of what follows from them.
#include "chunkwiseDistanceOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseFilterRows.h"
#include "chunkwisePassesOperation.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

/** An opening or a closing: the second run needs the whole result of the first. */
class TwoDistances : public PassesOperation
{
public:
  Halo
  GetHalo(const Coordinates &) const override
  {
    Halo halo = Halo::None();
    for (const int axis : axes)
    {
      halo.lower[axis] = halo.upper[axis] = WholeAxis;
    }
    return halo;
  }

  std::vector<int> axes;
};

/** Constants of all rows. */
std::shared_ptr<DistanceOperation>
MakeDistance(const CheckedParameters & p, const FilterImage & image, DistanceTo to, DistanceResult result)
{
  auto operation = std::make_shared<DistanceOperation>();
  operation->image = image.extent;
  operation->inputKind = image.inputKind;
  operation->outputKind = image.outputKind;
  operation->axes = p.SpatialAxes();
  std::sort(operation->axes.begin(), operation->axes.end());
  operation->to = to;
  operation->result = result;
  operation->background = p.Value("Background");
  for (const int axis : operation->axes)
  {
    operation->spacing[axis] = p.Flag("UseImageSpacing") ? std::abs(image.spacing[axis]) : 1.0;
  }
  return operation;
}

DistanceTo
FeaturesOf(const CheckedParameters & p)
{
  const std::string & name = p.Choice("Features");
  return name == "objects"   ? DistanceTo::Objects
         : name == "contour" ? DistanceTo::Contour
         : name == "others"  ? DistanceTo::Others
                             : DistanceTo::Background;
}

std::shared_ptr<const Operation>
MakeDistances(const CheckedParameters & p, const FilterImage & image)
{
  const auto operation =
    MakeDistance(p, image, FeaturesOf(p), p.Flag("SquaredDistance") ? DistanceResult::Squared : DistanceResult::Root);
  operation->insideIsPositive = p.Flag("InsideIsPositive");
  if (p.Has("MaximumDistance"))
  {
    operation->limit = p.Real("MaximumDistance");
  }
  return operation;
}

std::shared_ptr<const Operation>
MakeNearest(const CheckedParameters & p, const FilterImage & image)
{
  return MakeDistance(p, image, FeaturesOf(p), DistanceResult::Index);
}

std::shared_ptr<const Operation>
MakeExpandedLabels(const CheckedParameters & p, const FilterImage & image)
{
  const auto operation = MakeDistance(p, image, DistanceTo::Objects, DistanceResult::Label);
  operation->limit = p.Real("Distance");
  return operation;
}

std::shared_ptr<const Operation>
MakeBinaryMorphology(const CheckedParameters & p, const FilterImage & image)
{
  const std::string & name = p.Choice("Morphology");
  const auto          make = [&](bool dilates) {
    const auto operation = MakeDistance(p,
                                        image,
                                        dilates ? DistanceTo::Objects : DistanceTo::Background,
                                        dilates ? DistanceResult::Within : DistanceResult::Beyond);
    operation->limit = p.Real("Radius");
    return operation;
  };
  const auto last = make(name == "dilation" || name == "opening");
  last->foreground = p.Value("ForegroundValue");
  if (!last->foreground.IsFinite() || last->foreground.ToDouble() == 0)
  {
    throw ParameterError("ForegroundValue", last->foreground.ToText(), "a finite number other than 0");
  }
  if (name == "dilation" || name == "erosion")
  {
    return last;
  }
  // The second run reads zeros and ones.
  const auto first = make(name == "closing");
  last->inputKind = image.outputKind;
  last->background = 0;
  const auto both = std::make_shared<TwoDistances>();
  both->axes = last->axes;
  both->name = name + " with a ball";
  both->stages = { { first }, { last, { 0 } } };
  return both;
}

ParameterDescription
FeaturesParameter(bool all)
{
  ParameterDescription features;
  features.name = "Features";
  features.option = "to";
  features.type = ParameterType::Choice;
  features.help =
    all ? "To the nearest voxel of the background, of an object, of the contour of objects (negative inside "
          "them), or of another value than the voxel's own"
        : "The nearest voxel of the background, or of an object";
  features.defaultText = all ? "background" : "objects";
  features.choices = all ? std::vector<std::string>{ "background", "objects", "contour", "others" }
                         : std::vector<std::string>{ "background", "objects" };
  return features;
}

FilterDescription
DistanceRow(const std::string & name, const std::string & title)
{
  FilterDescription row;
  row.name = name;
  row.group = "Distances";
  row.title = title;
  row.canBeStage = false;
  row.takesComponents = false;

  ParameterDescription background =
    MakeParameter("Background", "background", ParameterType::PixelValue, "The value of voxels that are no object", "0");
  ParameterDescription spacing = MakeParameter("UseImageSpacing",
                                               "voxels",
                                               ParameterType::Flag,
                                               "Distances are in voxels, not in the image's physical unit",
                                               "on");
  row.parameters = { background, spacing, SpatialAxesParameter() };
  row.parameters.back().help = "The axes along which distances are taken: the first ones, x is 0 (the first three)";
  return row;
}

} // namespace

void
AddDistanceFilters(std::vector<FilterDescription> & filters)
{
  FilterDescription row = DistanceRow("distance", "Exact Euclidean distance of each voxel to the nearest feature");
  row.output = DefaultOutput::Real;
  row.make = MakeDistances;
  ParameterDescription squared =
    MakeParameter("SquaredDistance", "squared", ParameterType::Flag, "Squares of distances");
  ParameterDescription inside = OnlyWith(MakeParameter("InsideIsPositive",
                                                       "inside-positive",
                                                       ParameterType::Flag,
                                                       "Distances are positive inside of objects and negative outside"),
                                         "Features",
                                         "contour");
  row.parameters.insert(
    row.parameters.begin(),
    { FeaturesParameter(true),
      squared,
      MakeNonNegative("MaximumDistance", "maximum", "Voxels that are farther away have this distance"),
      inside });
  filters.push_back(row);

  row = DistanceRow("nearest", "The raster index of each voxel's nearest feature, x fastest");
  row.output = DefaultOutput::Label;
  row.givesIntegers = [](const FilterParameters &, const std::vector<std::string> &) { return true; };
  row.make = MakeNearest;
  row.parameters.insert(row.parameters.begin(), FeaturesParameter(false));
  filters.push_back(row);

  row = DistanceRow("expand-labels",
                    "Each object grows into the background, up to a distance and to where it meets others");
  row.make = MakeExpandedLabels;
  ParameterDescription distance =
    MakeNonNegative("Distance", "distance", "Voxels that are farther from all objects stay background");
  distance.required = true;
  distance.exampleText = "5";
  row.parameters.insert(row.parameters.begin(), distance);
  filters.push_back(row);

  row = DistanceRow("binary-morphology",
                    "Dilation, erosion, opening or closing of objects with a Euclidean ball of any radius");
  row.make = MakeBinaryMorphology;
  row.givesClasses = [](const FilterParameters & parameters) { return !parameters.Has("ForegroundValue"); };
  ParameterDescription operation =
    MakeChoice("Morphology", "operation", "The operation on objects", { "dilation", "erosion", "opening", "closing" });
  ParameterDescription radius =
    MakeNonNegative("Radius", "radius", "The radius of the ball, which has all voxels up to this distance");
  radius.required = true;
  radius.exampleText = "5";
  ParameterDescription foreground = MakeParameter("ForegroundValue",
                                                  "foreground",
                                                  ParameterType::PixelValue,
                                                  "The value of voxels of objects in the result; others are 0",
                                                  "1");
  row.parameters.insert(row.parameters.begin(), { operation, radius, foreground });
  filters.push_back(row);
}

} // namespace chunkwise
