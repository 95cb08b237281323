/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of filters over windows: statistics, ranks and morphology.
#include "chunkwiseFilterRows.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseFootprintOperation.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwiseRangeOperation.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseSequenceOperation.h"
#include "chunkwiseSidedWindows.h"
#include "chunkwiseStatistics.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseWienerOperation.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

/** Also true for rows without a boundary condition. */
bool
IsRenormalized(const CheckedParameters & parameters)
{
  return !parameters.Has("BoundaryCondition") || parameters.Choice("BoundaryCondition") == "renormalized";
}

/** A box operation with the radius and the boundary of the parameters. */
template <typename TOperation>
std::shared_ptr<TOperation>
MakeBox(const CheckedParameters & parameters, const FilterImage & image)
{
  auto operation = std::make_shared<TOperation>();
  operation->radius = WindowRadius(parameters, image);
  operation->boundary = parameters.Boundary();
  return operation;
}

/** Cuts the radius of renormalized windows, which grow no more once they cover the image. */
Coordinates
CutRadius(const CheckedParameters & parameters, const FilterImage & image, Coordinates radius)
{
  for (const int axis : parameters.SpatialAxes())
  {
    if (IsRenormalized(parameters))
    {
      radius[axis] = std::min(radius[axis], std::max<std::int64_t>(image.extent[axis], 1) - 1);
    }
  }
  return radius;
}

/** The sides of the window: both the radius, unless UpperRadius says otherwise. */
WindowSides
SidesOf(const CheckedParameters & parameters, const FilterImage & image)
{
  WindowSides sides{ WindowRadius(parameters, image), {} };
  sides.upper =
    parameters.Has("UpperRadius") ? CutRadius(parameters, image, parameters.OverAxes("UpperRadius")) : sides.lower;
  return sides;
}

bool
HasMask(const FilterImage & image)
{
  return std::find(image.additionalInputs.begin(), image.additionalInputs.end(), "MaskImage") !=
         image.additionalInputs.end();
}

FilterDescription
BoxRow(const std::string & name, const std::string & group, const std::string & title,
       std::vector<ParameterDescription> parameters = {})
{
  FilterDescription row;
  row.name = name;
  row.group = group;
  row.title = title;
  row.parameters = Join(Join({ RadiusParameter() }, parameters), BoundaryParameters());
  return row;
}

/** The voxels of an element: 1 for those of the box that take part, x fastest; empty for the whole box. */
std::vector<unsigned char>
MakeElement(const CheckedParameters & parameters, const FilterImage & image, Coordinates & radius,
            bool keepsBoxes = false)
{
  std::vector<unsigned char> element;
  if (parameters.Has("UpperRadius") && (parameters.Has("Kernel") || parameters.Choice("Element") != "box"))
  {
    ThrowParameterError("UpperRadius", "it has an effect on boxes alone, and the element is none");
  }
  if (parameters.Has("Kernel"))
  {
    const KernelStack & kernel = parameters.Kernel("Kernel");
    for (int a = 0; a < MaxDimension; ++a)
    {
      radius[a] = kernel.extent[a] / 2;
      if (radius[a] > 0 && !parameters.IsSpatial(a))
      {
        ThrowParameterError("Kernel",
                            "its radius is " + std::to_string(radius[a]) + CheckedParameters::Along(a) +
                              ", which is not spatial");
      }
    }
    for (const double voxel : kernel.kernels.at(0))
    {
      element.push_back(voxel != 0.0 ? 1 : 0);
    }
    if (std::find(element.begin(), element.end(), 1) == element.end())
    {
      ThrowParameterError("Kernel", "the structuring element of radius " + ToString(radius) + " is empty");
    }
  }
  else if (parameters.Choice("Element") == "box")
  {
    radius = WindowRadius(parameters, image);
    return {};
  }
  else
  {
    radius = parameters.OverAxes("Radius");
    const bool  ball = parameters.Choice("Element") == "ball";
    Coordinates offset{};
    double      voxels = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset[a] = -radius[a];
      voxels *= 2.0 * static_cast<double>(radius[a]) + 1.0;
    }
    if (voxels > static_cast<double>(FlatExtremumOperation::LargestElement))
    {
      ThrowParameterError("Radius",
                          ToString(radius) + " makes a box of more than " +
                            std::to_string(FlatExtremumOperation::LargestElement) + " voxels around the element");
    }
    for (;;)
    {
      // The ball has the voxels whose centers are in the ellipsoid that ends where the box does.
      double distance = 0;
      int    axes = 0;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const double half = static_cast<double>(radius[a]) + 0.5;
        distance += static_cast<double>(offset[a] * offset[a]) / (half * half);
        axes += offset[a] != 0 ? 1 : 0;
      }
      element.push_back((ball ? distance <= 1 : axes <= 1) ? 1 : 0);
      int a = 0;
      for (; a < MaxDimension && ++offset[a] > radius[a]; ++a)
      {
        offset[a] = -radius[a];
      }
      if (a == MaxDimension)
      {
        break;
      }
    }
  }
  // A box is the same operation whichever way it was given.
  if (!keepsBoxes && std::find(element.begin(), element.end(), 0) == element.end())
  {
    element.clear();
    radius = CutRadius(parameters, image, radius);
  }
  return element;
}

/** An erosion or a dilation with a height for each voxel of the element; nullptr: it has none. */
std::shared_ptr<const Operation>
MakeOfHeights(const CheckedParameters & parameters, const FilterImage & image, bool erodes)
{
  if (!parameters.Has("Heights"))
  {
    return nullptr;
  }
  if (parameters.Has("UpperRadius") || HasMask(image))
  {
    ThrowParameterError("Heights", "they go with an element of any shape, without UpperRadius and MaskImage");
  }
  const KernelStack & heights = parameters.Kernel("Heights");
  auto                operation = std::make_shared<FootprintOperation>();
  operation->heights = heights.kernels.at(0);
  operation->element.assign(operation->heights.size(), 1);
  for (int a = 0; a < MaxDimension; ++a)
  {
    operation->radius[a] = heights.extent[a] / 2;
  }
  if (parameters.Has("Kernel"))
  {
    if (parameters.Kernel("Kernel").extent != heights.extent)
    {
      ThrowParameterError("Heights",
                          "they have " + ToString(heights.extent) + " voxels, and the element has " +
                            ToString(parameters.Kernel("Kernel").extent));
    }
    operation->element = MakeElement(parameters, image, operation->radius, true);
  }
  operation->boundary = parameters.Boundary();
  operation->statistic = erodes ? FootprintStatistic::Erosion : FootprintStatistic::Dilation;
  return operation;
}

ParameterDescription
HeightsParameter()
{
  return MakeParameter(
    "Heights",
    "",
    ParameterType::Kernel,
    "A height for each voxel of the element, of as many voxels as Kernel: a maximum is that of sums of "
    "voxels and heights, a minimum that of differences");
}

FilterDescription
MorphologyRow(const std::string & name, const std::string & title)
{
  FilterDescription row = BoxRow(name, "Flat morphology", title, WindowElementParameters());
  row.parameters.front().required = false;
  row.parameters.front().defaultText = "1";
  AddMask(row);
  return row;
}

/** Makes the operations of rows that have no parameters but the box. */
template <typename TOperation>
std::shared_ptr<const Operation>
MakeBoxAlone(const CheckedParameters & parameters, const FilterImage & image)
{
  return MakeBox<TOperation>(parameters, image);
}

/** One extremum after the other, the second with the element reflected. */
std::shared_ptr<const Operation>
MakeTwoExtrema(const CheckedParameters & parameters, const FilterImage & image, bool minimumFirst)
{
  auto operation = std::make_shared<SequenceOperation>();
  operation->stages = { MakeExtremum(parameters, image, parameters.Boundary(), minimumFirst),
                        MakeExtremum(parameters, image, parameters.Boundary(), !minimumFirst, true) };
  return InDomain(parameters, image, operation);
}

constexpr const char * StatisticsGroup = "Statistics of windows";

/** Filters that sum the window's voxels or their squares. */
void
AddMoments(std::vector<FilterDescription> & filters)
{
  // ITK's own filters truncate: for what takes their place, and so no option of the program.
  ParameterDescription rounding =
    MakeChoice("Rounding", "", "How a mean of integers becomes an integer", { "nearest", "toward-zero" });
  FilterDescription row = BoxRow("mean", StatisticsGroup, "Mean over a box", { UpperRadiusParameter(), rounding });
  row.isLinear = true;
  AddDomain(row);
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    const bool truncates = p.Choice("Rounding") == "toward-zero";
    const auto operation = MakeBox<MeanOperation>(p, image);
    operation->truncates = truncates;
    return OverSides(p, image, InDomain(p, image, operation));
  };
  filters.push_back(row);

  row = BoxRow("sum", StatisticsGroup, "Sum over a box, of the voxels inside the image", { UpperRadiusParameter() });
  row.output = DefaultOutput::RealSum;
  row.isLinear = true;
  row.givesIntegers = [](const FilterParameters &, const std::vector<std::string> & inputs) {
    return std::find(inputs.begin(), inputs.end(), "WeightImage") == inputs.end();
  };
  AddDomain(row, false);
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    const auto operation = MakeBox<MeanOperation>(p, image);
    operation->sums = true;
    return OverSides(p, image, InDomain(p, image, operation));
  };
  filters.push_back(row);

  row = BoxRow("variance", StatisticsGroup, "Variance over a box", { UpperRadiusParameter() });
  row.output = DefaultOutput::Real;
  AddDomain(row);
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    return OverSides(p, image, InDomain(p, image, MakeBox<VarianceOperation>(p, image)));
  };
  filters.push_back(row);

  row = BoxRow("std", StatisticsGroup, "Standard deviation over a box", { UpperRadiusParameter() });
  row.output = DefaultOutput::Real;
  AddDomain(row);
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    const auto operation = MakeBox<VarianceOperation>(p, image);
    operation->takesRoot = true;
    return OverSides(p, image, InDomain(p, image, operation));
  };
  filters.push_back(row);
}

ParameterDescription
NoiseParameter()
{
  return MakeNonNegative("NoiseVariance", "noise", "The variance of the noise");
}

FilterDescription
WienerRow()
{
  ParameterDescription noise = NoiseParameter();
  noise.help += "; auto: the mean of the local variances";
  noise.required = true;
  noise.provisionalText = "0";
  noise.estimate = GetWienerNoiseEstimate();
  noise.exampleText = "auto";
  FilterDescription row =
    BoxRow("wiener", StatisticsGroup, "Adaptive Wiener filter over a box", { UpperRadiusParameter(), noise });
  AddDomain(row);
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    const auto operation = MakeBox<WienerOperation>(p, image);
    operation->noise = p.Real("NoiseVariance");
    return OverSides(p, image, InDomain(p, image, operation));
  };
  return row;
}

FilterDescription
NonLocalMeansRow()
{
  ParameterDescription patch = RadiusParameter();
  patch.name = "PatchRadius";
  patch.option = "patch";
  patch.help = "Radius of the patches, one number or one for each spatial axis";
  patch.required = false;
  patch.defaultText = "1";
  patch.maximum = std::numeric_limits<std::int32_t>::max();
  ParameterDescription strength =
    MakeParameter("Strength", "strength", ParameterType::Real, "The difference of patches that weighs exp(-1)");
  strength.required = true;
  strength.minimum = 0;
  strength.aboveMinimum = true;
  strength.exampleText = "10";
  ParameterDescription noise = NoiseParameter();
  noise.defaultText = "0";
  FilterDescription row =
    BoxRow("nlm", StatisticsGroup, "Non-local means; the radius is that of the search", { patch, strength, noise });
  AddDomain(row, true, false);
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    auto operation = std::make_shared<NonLocalMeansOperation>();
    operation->search = WindowRadius(p, image);
    operation->patch = p.OverAxes("PatchRadius");
    operation->boundary = p.Boundary();
    operation->strength = p.Real("Strength");
    operation->noise = p.Real("NoiseVariance");
    return InDomain(p, image, operation);
  };
  return row;
}

/** The range of an entropy: the given one, or that of 8- and 16-bit integers. */
void
SetRange(const CheckedParameters & parameters, PixelType kind, EntropyOperation & operation)
{
  if (parameters.Has("Range"))
  {
    operation.lower = parameters.Reals("Range")[0];
    operation.upper = parameters.Reals("Range")[1];
    if (!(operation.lower < operation.upper))
    {
      ThrowParameterError("Range",
                          "from " + PixelValue(operation.lower).ToText() + " to " +
                            PixelValue(operation.upper).ToText() + " is empty");
    }
    return;
  }
  if (IsFloatingPoint(kind) || PixelSize(kind) > 2)
  {
    ThrowParameterError("Range", std::string("it was not set, and ") + PixelTypeName(kind) + " has no default");
  }
  const double values = PixelSize(kind) == 1 ? 256.0 : 65536.0;
  operation.lower = (static_cast<int>(kind) & 1) != 0 ? -values / 2 : 0.0;
  operation.upper = operation.lower + values;
}

FilterDescription
EntropyRow()
{
  ParameterDescription bins =
    MakeParameter("NumberOfBins", "bins", ParameterType::Integer, "Bins of the histogram", "256");
  bins.minimum = 2;
  bins.maximum = EntropyOperation::LargestBins;
  ParameterDescription range =
    MakeParameter("Range",
                  "range",
                  ParameterType::Reals,
                  "The lower edge of the first bin and the upper edge of the last one; auto: the least and the largest "
                  "finite value (all "
                  "values of 8- and 16-bit integers, with auto too)");
  range.count = ParameterCount::Two;
  range.provisionalText = "0,1";
  range.estimate = GetEntropyRangeEstimate();
  FilterDescription row = BoxRow(
    "entropy", StatisticsGroup, "Entropy of the histogram of a box, in bits", { UpperRadiusParameter(), bins, range });
  row.output = DefaultOutput::Real;
  AddMask(row, true);
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    const auto operation = MakeBox<EntropyOperation>(p, image);
    operation->bins = static_cast<int>(p.Integer("NumberOfBins"));
    SetRange(p, image.inputKind, *operation);
    // NaN lies in no bin.
    return OverSides(p, image, InDomain(p, image, operation, true));
  };
  return row;
}

std::shared_ptr<const Operation>
MakeRank(const CheckedParameters & parameters, const FilterImage & image, double fraction)
{
  Coordinates radius{};
  auto        element = MakeElement(parameters, image, radius);
  if (!element.empty())
  {
    const auto footprint = std::make_shared<FootprintOperation>();
    footprint->radius = radius;
    footprint->element = std::move(element);
    footprint->boundary = parameters.Boundary();
    footprint->statistic = FootprintStatistic::Rank;
    footprint->fraction = fraction;
    return InDomain(parameters, image, footprint);
  }
  const auto operation = std::make_shared<RankOperation>();
  operation->radius = radius;
  operation->boundary = parameters.Boundary();
  operation->fraction = fraction;
  return OverSides(parameters, image, InDomain(parameters, image, operation));
}

void
AddRanks(std::vector<FilterDescription> & filters)
{
  const std::string group = "Ranks of windows";
  FilterDescription row = BoxRow("median", group, "Median over a box or another element", WindowElementParameters());
  AddMask(row, true);
  row.make = [](const CheckedParameters & p, const FilterImage & image) { return MakeRank(p, image, 0.5); };
  filters.push_back(row);

  ParameterDescription percentile =
    MakeParameter("Percentile", "percentile", ParameterType::Real, "0, the minimum, to 100, the maximum");
  percentile.required = true;
  percentile.minimum = 0;
  percentile.maximum = 100;
  percentile.exampleText = "50";
  row = BoxRow(
    "percentile", group, "Percentile over a box or another element", Join({ percentile }, WindowElementParameters()));
  AddMask(row, true);
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    return MakeRank(p, image, p.Real("Percentile") / 100.0);
  };
  filters.push_back(row);
}

void
AddMorphology(std::vector<FilterDescription> & filters)
{
  FilterDescription row = BoxRow("range",
                                 "Flat morphology",
                                 "Maximum minus minimum over a box (morphological gradient)",
                                 { UpperRadiusParameter() });
  row.output = DefaultOutput::InputUnlessSigned;
  row.givesIntegers = [](const FilterParameters &, const std::vector<std::string> &) { return true; };
  AddMask(row);
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    return OverSides(p, image, InDomain(p, image, MakeBox<RangeOperation>(p, image)));
  };
  filters.push_back(row);

  row = MorphologyRow("maximum", "Maximum over a structuring element (dilation)");
  row.parameters.push_back(HeightsParameter());
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    const auto raised = MakeOfHeights(p, image, false);
    return raised ? raised : InDomain(p, image, MakeExtremum(p, image, p.Boundary(), false));
  };
  filters.push_back(row);

  row = MorphologyRow("minimum", "Minimum over a structuring element (erosion)");
  row.parameters.push_back(HeightsParameter());
  row.make = [](const CheckedParameters & p, const FilterImage & image) {
    const auto raised = MakeOfHeights(p, image, true);
    return raised ? raised : InDomain(p, image, MakeExtremum(p, image, p.Boundary(), true));
  };
  filters.push_back(row);

  row = MorphologyRow("opening", "Opening with a structuring element");
  row.make = [](const CheckedParameters & p, const FilterImage & image) { return MakeTwoExtrema(p, image, true); };
  filters.push_back(row);

  row = MorphologyRow("closing", "Closing with a structuring element");
  row.make = [](const CheckedParameters & p, const FilterImage & image) { return MakeTwoExtrema(p, image, false); };
  filters.push_back(row);
}

} // namespace

Coordinates
WindowRadius(const CheckedParameters & parameters, const FilterImage & image)
{
  return CutRadius(parameters, image, parameters.OverAxes("Radius"));
}

ParameterDescription
RadiusParameter()
{
  ParameterDescription radius =
    MakeParameter("Radius",
                  "radius",
                  ParameterType::Integers,
                  "Voxels to either side of a window's center, one number or one for each spatial axis");
  radius.required = true;
  radius.minimum = 0;
  radius.exampleText = "1";
  return radius;
}

ParameterDescription
UpperRadiusParameter()
{
  ParameterDescription upper = MakeParameter(
    "UpperRadius",
    "upper-radius",
    ParameterType::Integers,
    "Voxels to the upper side of a window's center where Radius is those to its lower side, one number or one for each "
    "spatial axis (as many as Radius)");
  upper.minimum = 0;
  return upper;
}

std::shared_ptr<const Operation>
OverSides(const CheckedParameters & parameters, const FilterImage & image, std::shared_ptr<const Operation> window)
{
  const WindowSides sides = SidesOf(parameters, image);
  return sides.IsCentered() ? window : MakeSided(window, sides, image.inputKind);
}

ParameterDescription
SpatialAxesParameter()
{
  ParameterDescription axes =
    MakeParameter("SpatialAxes",
                  "axes",
                  ParameterType::Integers,
                  "Spatial axes, along which voxels depend on each other; x is 0 (the first three)");
  axes.count = ParameterCount::Any;
  return axes;
}

std::vector<ParameterDescription>
BoundaryParameters()
{
  ParameterDescription boundary = MakeChoice(
    "BoundaryCondition",
    "boundary",
    "Values beyond the image's edge: none, the nearest voxel (SciPy's nearest), a constant, the "
    "image mirrored with its edge voxel repeated (SciPy's reflect) or not (mirror-center, SciPy's mirror), or the "
    "opposite side (SciPy's wrap)",
    { "renormalized", "zero-flux", "constant", "mirror", "mirror-center", "periodic" });
  boundary.help += "; one for all spatial axes, or one for each, but for renormalized";
  boundary.choicePerAxis = true;
  ParameterDescription constant = OnlyWith(MakeParameter("Constant",
                                                         "constant",
                                                         ParameterType::PixelValue,
                                                         "The value beyond the edge of the boundary condition constant",
                                                         "0"),
                                           boundary.name,
                                           "constant");
  return { boundary, constant, SpatialAxesParameter() };
}

std::vector<ParameterDescription>
WindowElementParameters()
{
  return Join({ OnlyWith(UpperRadiusParameter(), "Element", "box") }, ElementParameters());
}

std::vector<ParameterDescription>
ElementParameters()
{
  ParameterDescription element =
    MakeChoice("Element",
               "element",
               "The structuring element; a ball, as itk::FlatStructuringElement has it, the voxels whose centers are "
               "within radius + 1/2, a cross those along the axes",
               { "box", "ball", "cross" });
  ParameterDescription kernel = MakeParameter(
    "Kernel", "", ParameterType::Kernel, "A structuring element of any shape, instead of Radius and Element");
  return { element, kernel };
}

std::vector<ParameterDescription>
Join(std::vector<ParameterDescription> first, const std::vector<ParameterDescription> & second)
{
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::shared_ptr<const Operation>
MakeExtremum(const CheckedParameters & parameters, const FilterImage & image, const WindowBoundary & boundary,
             bool minimum, bool reflected)
{
  Coordinates radius{};
  auto        element = MakeElement(parameters, image, radius);
  WindowSides sides;
  if (element.empty() && parameters.Has("UpperRadius"))
  {
    sides = SidesOf(parameters, image);
    if (reflected)
    {
      std::swap(sides.lower, sides.upper);
    }
    // Masks hide voxels from one extremum at a time.
    if (!sides.IsCentered() && HasMask(image))
    {
      element = MakeSidedElement(sides, radius);
    }
  }
  else if (reflected)
  {
    std::reverse(element.begin(), element.end());
  }
  if (element.empty())
  {
    auto operation = std::make_shared<ExtremumOperation>();
    operation->radius = radius;
    operation->boundary = boundary;
    operation->minimum = minimum;
    return sides.IsCentered() ? operation : MakeSided(operation, sides, image.inputKind);
  }
  auto operation = std::make_shared<FlatExtremumOperation>();
  operation->radius = radius;
  operation->element = std::move(element);
  operation->boundary = boundary;
  operation->minimum = minimum;
  return operation;
}

void
AddWindowFilters(std::vector<FilterDescription> & filters)
{
  AddMoments(filters);
  filters.push_back(WienerRow());
  filters.push_back(NonLocalMeansRow());
  filters.push_back(EntropyRow());
  AddRanks(filters);
  AddMorphology(filters);
}

} // namespace chunkwise
