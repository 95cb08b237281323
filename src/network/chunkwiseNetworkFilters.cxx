/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The row of networks.
#include "chunkwiseNetworkFilters.h"

#include "chunkwiseCheckedParameters.h"
#include "chunkwiseNetworkOperation.h"

namespace chunkwise
{

namespace
{

/** A network that looks along an axis that the image has not would see nothing there but the continued edge. */
void
CheckAxes(const NetworkGraph & graph, const FilterImage & image)
{
  const LayerExtent view = graph.GetFieldOfView();
  for (int a = image.dimension; a < MaxSpatialAxes; ++a)
  {
    if (view[static_cast<std::size_t>(a)] > 1)
    {
      ThrowParameterError("Model",
                          "the network's windows have " + std::to_string(view[static_cast<std::size_t>(a)]) +
                            " voxels" + CheckedParameters::Along(a) + ", which the " + std::to_string(image.dimension) +
                            "-D image has not");
    }
  }
}

/** The value of a voxel of the output. */
std::vector<ParameterDescription>
ResultParameters()
{
  const ParameterDescription mode =
    MakeChoice("OutputMode",
               "result",
               "Value of a voxel: that of one channel, the number of the largest channel, or 1 where a channel is "
               "above a threshold, else 0",
               { "channel", "argmax", "threshold" });
  ParameterDescription channel =
    MakeParameter("Channel", "channel", ParameterType::Integer, "The channel of channel and threshold, from 0 on", "0");
  channel.minimum = 0;
  channel.maximum = 1 << 20;
  const ParameterDescription threshold =
    MakeParameter("Threshold", "threshold", ParameterType::Real, "Threshold that the channel must exceed", "0.5");
  const ParameterDescription components = MakeParameter("OutputComponents",
                                                        "output-components",
                                                        ParameterType::Flag,
                                                        "A voxel has the values of all channels, as its components");
  return { mode, channel, OnlyWith(threshold, mode.name, "threshold"), OnlyWith(components, mode.name, "channel") };
}

std::vector<ParameterDescription>
ArithmeticParameters()
{
  const std::string help = "The network is given voxel * scale + shift";
  return { MakeParameter("InputScale", "input-scale", ParameterType::Real, help, "1"),
           MakeParameter("InputShift", "input-shift", ParameterType::Real, help, "0"),
           MakeChoice(
             "Precision",
             "precision",
             "float32: errors are some 1e-6 of the largest value. tensorfloat32: faster on devices with tensor "
             "cores, with errors of up to some 5e-3; elsewhere as float32. half: as tensorfloat32, faster still, "
             "with errors of up to some 1e-2. reproducible: the same bits for any chunks and devices, slower",
             { "float32", "tensorfloat32", "half", "reproducible" }) };
}

/** Windows, and how they are added up. */
std::vector<ParameterDescription>
PatchParameters()
{
  const ParameterDescription inference =
    MakeChoice("InferenceMode",
               "mode",
               "dense: what the network gives on the whole image at once. patches: windows that overlap, as networks "
               "that normalize by the statistics of their windows need",
               { "dense", "patches" });
  ParameterDescription patch =
    MakeParameter("PatchSize",
                  "patch-size",
                  ParameterType::Integers,
                  "The extent of a window of patches, in voxels, one for all axes or one for each",
                  "96");
  patch.minimum = 1;
  patch.maximum = 1 << 20;
  ParameterDescription overlap =
    MakeNonNegative("Overlap",
                    "overlap",
                    "How much neighbouring windows of patches overlap, as a part of their extent, below 1",
                    "0.25");
  overlap.maximum = 0.999;
  const ParameterDescription weighting = MakeChoice(
    "PatchWeighting",
    "weighting",
    "How windows of patches are weighed where they overlap: all alike, or by a Gaussian around their centres",
    { "constant", "gaussian" });
  std::vector<ParameterDescription> parameters{ inference };
  for (const ParameterDescription & each : { patch, overlap, weighting })
  {
    parameters.push_back(OnlyWith(each, inference.name, "patches"));
  }
  return parameters;
}

std::vector<ParameterDescription>
ContinuationParameters()
{
  const std::vector<ParameterDescription> all = BoundaryParameters();
  ParameterDescription                    boundary = all.at(0);
  boundary.help = "Values beyond the image's edge, for layers that do not pad: the nearest voxel, a "
                  "constant, or the image mirrored with its edge voxel repeated";
  boundary.defaultText = "zero-flux";
  boundary.choices = { "zero-flux", "constant", "mirror" };
  boundary.choicePerAxis = false;
  return { boundary, all.at(1) };
}

std::int64_t
CountOutputChannels(const CheckedParameters & p, const FilterImage & image)
{
  if (!p.Flag("OutputComponents"))
  {
    return 0;
  }
  if (image.dimension == MaxDimension)
  {
    ThrowParameterError("OutputComponents",
                        "an image of " + std::to_string(MaxDimension) + " dimensions has no room for components");
  }
  return p.Network("Model")->GetNumberOfOutputChannels();
}

void
SetResult(const CheckedParameters & p, NetworkOperation & operation)
{
  const std::string & result = p.Choice("OutputMode");
  operation.result = result == "argmax"      ? NetworkResult::ArgMax
                     : result == "threshold" ? NetworkResult::Threshold
                                             : NetworkResult::Channel;
  operation.channel = static_cast<int>(p.Integer("Channel"));
  if (operation.result == NetworkResult::ArgMax && operation.channel != 0)
  {
    ThrowParameterError("Channel",
                        std::to_string(operation.channel) + " has no effect on the number of the largest channel");
  }
  if (p.Flag("OutputComponents"))
  {
    if (operation.channel != 0)
    {
      ThrowParameterError("Channel", std::to_string(operation.channel) + " has no effect where voxels have them all");
    }
    operation.result = NetworkResult::AllChannels;
    operation.channelAxis = MaxDimension - 1;
  }
  operation.threshold = operation.result == NetworkResult::Threshold ? p.Real("Threshold") : 0.0;
}

std::shared_ptr<const Operation>
MakeNetwork(const CheckedParameters & p, const FilterImage & image)
{
  auto operation = std::make_shared<NetworkOperation>();
  operation->graph = p.Network("Model");
  CheckAxes(*operation->graph, image);
  SetResult(p, *operation);
  operation->scale = p.Real("InputScale");
  operation->shift = p.Real("InputShift");
  const std::string & precision = p.Choice("Precision");
  operation->precision = precision == "reproducible"    ? NetworkPrecision::Reproducible
                         : precision == "tensorfloat32" ? NetworkPrecision::TensorFloat32
                         : precision == "half"          ? NetworkPrecision::Half
                                                        : NetworkPrecision::Float32;
  operation->boundary = p.Boundary();
  if (p.Choice("InferenceMode") == "patches")
  {
    operation->mode = NetworkMode::Patches;
    const Coordinates extents = p.OverAxes("PatchSize", 1);
    operation->patch = { { extents[0], extents[1], extents[2] } };
    operation->overlap = p.Real("Overlap");
    operation->weighting =
      p.Choice("PatchWeighting") == "gaussian" ? PatchWeighting::Gaussian : PatchWeighting::Constant;
  }
  return operation;
}

} // namespace

void
AddNetworkFilters(std::vector<FilterDescription> & filters)
{
  ParameterDescription model = MakeParameter(
    "Model", "model", ParameterType::Network, "The network, an ONNX file; it may also stand before IN without --model");
  model.required = true;

  FilterDescription row;
  row.name = "network";
  row.group = "Networks";
  row.title = "A convolutional network over the whole image, without seams";
  row.parameters = { model };
  for (const auto & parameters :
       { ResultParameters(), ArithmeticParameters(), PatchParameters(), ContinuationParameters() })
  {
    row.parameters = Join(row.parameters, parameters);
  }
  row.output = DefaultOutput::Real;
  row.canBeStage = false;
  row.takesComponents = false;
  row.promisesBits = false;
  row.convertsDefaultOutput = true;
  row.givesClasses = [](const FilterParameters & parameters) {
    const auto mode = parameters.GetValues().find("OutputMode");
    return mode != parameters.GetValues().end() && std::get<std::string>(mode->second) != "channel";
  };
  row.additionalInputs = { { "Input2", "second", "The network's second input channel, an image of IN's size", false },
                           { "Input3", "third", "The network's third input channel, an image of IN's size", false } };
  row.outputComponents = CountOutputChannels;
  row.make = MakeNetwork;
  filters.push_back(row);
}

} // namespace chunkwise
