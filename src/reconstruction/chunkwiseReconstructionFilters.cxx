/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of morphological reconstructions.
#include "chunkwiseFilterRows.h"
#include "chunkwiseError.h"
#include "chunkwisePassesOperation.h"
#include "chunkwiseReconstructionRows.h"

namespace chunkwise
{

namespace
{

using Pointer = std::shared_ptr<const Operation>;

FilterDescription
Row(const std::string & name, const std::string & title, const ReconstructionRecipe & recipe)
{
  FilterDescription row;
  row.reconstruction = recipe;
  row.name = name;
  row.group = "Reconstruction";
  row.title = title;
  row.parameters = ReconstructionParameters();
  row.canBeStage = false;
  return row;
}

/** A number as voxels of a kind have it, so that one that was rounded before and one that was not are the same. */
PixelValue
AsVoxel(const PixelValue & value, PixelType kind)
{
  return DispatchPixelType(kind, [&value](auto pixel) { return PixelValue(value.As<decltype(pixel)>()); });
}

/** An operation by a height, which must be a value of the image's kind. */
template <bool VErosion, ReconstructionResult VResult>
Pointer
MakeByHeight(const CheckedParameters & parameters, const FilterImage & image)
{
  const PixelValue height = parameters.Value("Height");
  if (!height.IsFinite() || height.IsNegative() || !height.IsOf(image.inputKind))
  {
    throw ParameterError("Height",
                         height.ToText(),
                         std::string("a finite number of at least 0 that ") + PixelTypeName(image.inputKind) + " has");
  }
  const auto operation = MakeReconstruction(parameters, VErosion, ReconstructionMarker::Shifted, VResult);
  operation->height = AsVoxel(height, image.inputKind);
  return operation;
}

template <bool VErosion, ReconstructionResult VResult>
Pointer
MakeFromBorder(const CheckedParameters & parameters, const FilterImage &)
{
  return MakeReconstruction(parameters, VErosion, ReconstructionMarker::Border, VResult);
}

/** The values of extrema and of all other voxels: as in ITK the ends of an integer kind, of floats 1 and 0. */
template <bool VErosion>
Pointer
MakeExtrema(const CheckedParameters & parameters, const FilterImage & image)
{
  const auto operation =
    MakeReconstruction(parameters, VErosion, ReconstructionMarker::NextBelow, ReconstructionResult::Extrema);
  const PixelType kind = image.outputKind;
  operation->extremum = 1;
  operation->elsewhere = 0;
  if (!IsFloatingPoint(kind))
  {
    DispatchPixelType(kind, [&operation](auto pixel) {
      using Limits = std::numeric_limits<decltype(pixel)>;
      operation->extremum = Limits::max();
      operation->elsewhere = Limits::lowest();
    });
  }
  for (const bool foreground : { true, false })
  {
    const std::string name = foreground ? "ForegroundValue" : "BackgroundValue";
    if (!parameters.Has(name))
    {
      continue;
    }
    const PixelValue value = parameters.Value(name);
    if (!value.IsOf(kind))
    {
      throw ParameterError(name, value.ToText(), std::string("a value that ") + PixelTypeName(kind) + " has");
    }
    (foreground ? operation->extremum : operation->elsewhere) = AsVoxel(value, kind);
  }
  operation->flatIsExtremum = parameters.Flag(VErosion ? "FlatIsMinima" : "FlatIsMaxima");
  return operation;
}

/** Opening and, by erosion, closing by reconstruction. */
template <bool VErosion>
Pointer
MakeOfMorphology(const CheckedParameters & parameters, const FilterImage & image)
{
  const auto extremum = MakeExtremum(parameters, image, WindowBoundary(), !VErosion);
  return MakeReconstructionOfExtremum(extremum,
                                      *MakeReconstruction(parameters, VErosion, ReconstructionMarker::Image),
                                      parameters.Flag("PreserveIntensities"));
}

} // namespace

std::vector<ParameterDescription>
ReconstructionParameters()
{
  ParameterDescription full = MakeParameter(
    "FullyConnected", "full", ParameterType::Flag, "Neighbours share a face, an edge or a corner, not only a face");
  ParameterDescription axes = SpatialAxesParameter();
  axes.help = "The axes along which neighbours lie: the first ones, x is 0 (the first three)";
  // How a CUDA device does it changes no result: no options of the program.
  ParameterDescription method = MakeChoice(
    "Method", "", "How a CUDA device does it; the CPU has one way", { "auto", "wavefront", "forest", "heaps" });
  ParameterDescription heaps =
    MakeParameter("NumberOfHeaps",
                  "",
                  ParameterType::Integer,
                  "Number of heaps, for the method heaps (as many as the device runs at once)",
                  "0");
  heaps.minimum = 0;
  ParameterDescription items = MakeParameter(
    "HeapNodeSize", "", ParameterType::Integer, "Voxels in a node of a heap, for the method heaps (chosen)", "0");
  items.minimum = 0;
  items.maximum = ReconstructionOperation::MaxNodeItems;
  for (ParameterDescription * const ofHeaps : { &heaps, &items })
  {
    ofHeaps->onlyWithName = method.name;
    ofHeaps->onlyWithValue = "heaps";
  }
  return { full, axes, method, heaps, items };
}

std::shared_ptr<ReconstructionOperation>
MakeReconstruction(const CheckedParameters & parameters, bool erosion, ReconstructionMarker marker,
                   ReconstructionResult result)
{
  auto operation = std::make_shared<ReconstructionOperation>();
  operation->erosion = erosion;
  operation->marker = marker;
  operation->result = result;
  operation->fullyConnected = parameters.Flag("FullyConnected");
  const auto & axes = parameters.SpatialAxes();
  for (std::size_t a = 0; a < axes.size(); ++a)
  {
    if (!parameters.IsSpatial(static_cast<int>(a)))
    {
      ThrowParameterError("SpatialAxes",
                          "neighbours lie along axes that follow each other from x on, and axis " + std::to_string(a) +
                            " is missing");
    }
  }
  operation->spatialDimension = static_cast<int>(axes.size());
  const std::string & method = parameters.Choice("Method");
  operation->method = method == "wavefront" ? ReconstructionMethod::TileWavefront
                      : method == "forest"  ? ReconstructionMethod::SpanningForest
                      : method == "heaps"   ? ReconstructionMethod::ParallelHeapCluster
                                            : ReconstructionMethod::Auto;
  operation->heaps = parameters.Integer("NumberOfHeaps");
  operation->nodeItems = parameters.Integer("HeapNodeSize");
  return operation;
}

namespace
{

using Result = ReconstructionResult;
using Gives = ReconstructionGives;

FilterDescription
ReconstructRow()
{
  FilterDescription row =
    Row("reconstruct", "Morphological reconstruction of a marker under a mask, IN", { MarkerRule::Input });
  ParameterDescription erosion =
    MakeParameter("Erosion", "erosion", ParameterType::Flag, "By erosion, over the mask; else by dilation");
  row.parameters = Join({ erosion }, row.parameters);
  row.additionalInputs = { { "MarkerImage", "marker", "The image to start from, of the same size", true, true } };
  row.make = [](const CheckedParameters & p, const FilterImage &) -> Pointer {
    return MakeReconstruction(p, p.Flag("Erosion"), ReconstructionMarker::Image);
  };
  return row;
}

void
AddHeights(std::vector<FilterDescription> & filters)
{
  ParameterDescription height = MakeParameter("Height", "height", ParameterType::PixelValue, "In the image's own unit");
  height.required = true;
  height.exampleText = "10";
  const auto addByHeight = [&](const char * name, const char * title, bool erodes, Gives gives, auto make) {
    FilterDescription byHeight = Row(name, title, { MarkerRule::Shifted, erodes, gives });
    byHeight.parameters = Join({ height }, byHeight.parameters);
    byHeight.make = make;
    filters.push_back(byHeight);
  };
  addByHeight("h-maxima",
              "Suppress maxima that rise by no more than a height",
              false,
              Gives::Image,
              MakeByHeight<false, Result::Reconstruction>);
  addByHeight("h-minima",
              "Suppress minima that are no deeper than a height",
              true,
              Gives::Image,
              MakeByHeight<true, Result::Reconstruction>);
  addByHeight(
    "h-convex", "The image minus its h-maxima: domes", false, Gives::Residue, MakeByHeight<false, Result::Residue>);
  addByHeight(
    "h-concave", "The h-minima minus the image: basins", true, Gives::Residue, MakeByHeight<true, Result::Residue>);
}

/** Reconstructions of the image's edge. */
void
AddOfBorder(std::vector<FilterDescription> & filters)
{
  FilterDescription row =
    Row("fill-holes", "Fill minima that are not connected to the image's edge", { MarkerRule::Border, true });
  row.make = MakeFromBorder<true, Result::Reconstruction>;
  filters.push_back(row);
  row = Row("grind-peaks", "Remove maxima that are not connected to the image's edge", { MarkerRule::Border });
  row.make = MakeFromBorder<false, Result::Reconstruction>;
  filters.push_back(row);
  row = Row("clear-border",
            "Remove what is bright and connected to the image's edge",
            { MarkerRule::Border, false, Gives::Residue });
  row.make = MakeFromBorder<false, Result::Residue>;
  filters.push_back(row);
}

void
AddExtrema(std::vector<FilterDescription> & filters)
{
  ParameterDescription foreground =
    MakeParameter("ForegroundValue",
                  "foreground",
                  ParameterType::PixelValue,
                  "Value of extrema (the largest value of an integer type, 1 of floats)");
  ParameterDescription background = foreground;
  background.name = "BackgroundValue";
  background.option = "background";
  background.help = "Value of all other voxels (the lowest value of an integer type, 0 of floats)";
  ParameterDescription flat = MakeParameter(
    "FlatIsMaxima", "flat-is-none", ParameterType::Flag, "An image of one value has no extrema; else it is one", "on");
  FilterDescription row =
    Row("regional-maxima", "Mark plateaus without a higher neighbour", { MarkerRule::Next, false, Gives::Extrema });
  row.parameters = Join({ foreground, background, flat }, row.parameters);
  row.make = MakeExtrema<false>;
  filters.push_back(row);
  flat.name = "FlatIsMinima";
  row = Row("regional-minima", "Mark plateaus without a lower neighbour", { MarkerRule::Next, true, Gives::Extrema });
  row.parameters = Join({ foreground, background, flat }, row.parameters);
  row.make = MakeExtrema<true>;
  filters.push_back(row);
}

/** Opening and closing. */
void
AddOfMorphology(std::vector<FilterDescription> & filters)
{
  ParameterDescription radius = RadiusParameter();
  radius.help = "Radius of the structuring element in voxels, one number or one for each axis";
  radius.required = false;
  radius.defaultText = "1";
  ParameterDescription preserve = MakeParameter("PreserveIntensities",
                                                "preserve-intensities",
                                                ParameterType::Flag,
                                                "Give structures that are kept their original values");
  FilterDescription    row =
    Row("opening-by-reconstruction",
        "Remove what is bright and the structuring element does not fit into; keep the rest whole",
        { MarkerRule::Window });
  row.parameters = Join(Join(Join({ radius }, ElementParameters()), { preserve }), row.parameters);
  row.make = MakeOfMorphology<false>;
  filters.push_back(row);
  row.name = "closing-by-reconstruction";
  row.reconstruction.erosion = true;
  row.title = "Remove what is dark and the structuring element does not fit into; keep the rest whole";
  row.make = MakeOfMorphology<true>;
  filters.push_back(row);
}

} // namespace

void
AddReconstructionFilters(std::vector<FilterDescription> & filters)
{
  filters.push_back(ReconstructRow());
  AddHeights(filters);
  AddOfBorder(filters);
  AddExtrema(filters);
  AddOfMorphology(filters);
}

} // namespace chunkwise
