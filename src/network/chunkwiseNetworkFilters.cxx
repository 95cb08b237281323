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

} // namespace

void
AddNetworkFilters(std::vector<FilterDescription> & filters)
{
  ParameterDescription model;
  model.name = "Model";
  model.option = "model";
  model.type = ParameterType::Network;
  model.help = "The network, an ONNX file; it may also stand before IN without --model";
  model.required = true;

  ParameterDescription mode;
  mode.name = "OutputMode";
  mode.option = "result";
  mode.type = ParameterType::Choice;
  mode.help = "Value of a voxel: that of one channel, the number of the largest channel, or 1 where a channel is "
              "above a threshold, else 0";
  mode.defaultText = "channel";
  mode.choices = { "channel", "argmax", "threshold" };

  ParameterDescription channel;
  channel.name = "Channel";
  channel.option = "channel";
  channel.type = ParameterType::Integer;
  channel.help = "The channel of channel and threshold, from 0 on";
  channel.defaultText = "0";
  channel.minimum = 0;
  channel.maximum = 1 << 20;

  ParameterDescription threshold;
  threshold.name = "Threshold";
  threshold.option = "threshold";
  threshold.type = ParameterType::Real;
  threshold.help = "Threshold that the channel must exceed";
  threshold.defaultText = "0.5";
  threshold.onlyWithName = mode.name;
  threshold.onlyWithValue = "threshold";

  ParameterDescription components;
  components.name = "OutputComponents";
  components.option = "output-components";
  components.type = ParameterType::Flag;
  components.help = "A voxel has the values of all channels, as its components";
  components.onlyWithName = mode.name;
  components.onlyWithValue = "channel";

  ParameterDescription scale;
  scale.name = "InputScale";
  scale.option = "input-scale";
  scale.type = ParameterType::Real;
  scale.help = "The network is given voxel * scale + shift";
  scale.defaultText = "1";
  ParameterDescription shift = scale;
  shift.name = "InputShift";
  shift.option = "input-shift";
  shift.defaultText = "0";

  ParameterDescription precision;
  precision.name = "Precision";
  precision.option = "precision";
  precision.type = ParameterType::Choice;
  precision.help = "float32: errors are some 1e-6 of the largest value. tensorfloat32: faster on devices with tensor "
                   "cores, with errors of up to some 5e-3; elsewhere as float32. half: as tensorfloat32, faster still, "
                   "with errors of up to some 1e-2. reproducible: the same bits for any chunks and devices, slower";
  precision.defaultText = "float32";
  precision.choices = { "float32", "tensorfloat32", "half", "reproducible" };

  ParameterDescription inference;
  inference.name = "InferenceMode";
  inference.option = "mode";
  inference.type = ParameterType::Choice;
  inference.help =
    "dense: what the network gives on the whole image at once. patches: windows that overlap, as networks "
    "that normalize by the statistics of their windows need";
  inference.defaultText = "dense";
  inference.choices = { "dense", "patches" };

  ParameterDescription patch;
  patch.name = "PatchSize";
  patch.option = "patch-size";
  patch.type = ParameterType::Integers;
  patch.help = "The extent of a window of patches, in voxels, one for all axes or one for each";
  patch.defaultText = "96";
  patch.minimum = 1;
  patch.maximum = 1 << 20;
  patch.onlyWithName = inference.name;
  patch.onlyWithValue = "patches";

  ParameterDescription overlap;
  overlap.name = "Overlap";
  overlap.option = "overlap";
  overlap.type = ParameterType::Real;
  overlap.help = "How much neighbouring windows of patches overlap, as a part of their extent, below 1";
  overlap.defaultText = "0.25";
  overlap.minimum = 0;
  overlap.maximum = 0.999;
  overlap.onlyWithName = inference.name;
  overlap.onlyWithValue = "patches";

  ParameterDescription weighting;
  weighting.name = "PatchWeighting";
  weighting.option = "weighting";
  weighting.type = ParameterType::Choice;
  weighting.help = "How windows of patches are weighed where they overlap: all alike, or by a Gaussian around their "
                   "centres";
  weighting.defaultText = "constant";
  weighting.choices = { "constant", "gaussian" };
  weighting.onlyWithName = inference.name;
  weighting.onlyWithValue = "patches";

  const std::vector<ParameterDescription> boundaries = BoundaryParameters();
  ParameterDescription                    boundary = boundaries.at(0);
  boundary.help = "Values beyond the image's edge, for layers that do not pad: the nearest voxel, a "
                  "constant, or the image mirrored with its edge voxel repeated";
  boundary.defaultText = "zero-flux";
  boundary.choices = { "zero-flux", "constant", "mirror" };

  FilterDescription row;
  row.name = "network";
  row.group = "Networks";
  row.title = "A convolutional network over the whole image, without seams";
  row.parameters = { model,     mode,      channel, threshold, components, scale,    shift,
                     precision, inference, patch,   overlap,   weighting,  boundary, boundaries.at(1) };
  row.output = DefaultOutput::Real;
  row.canBeStage = false;
  row.takesComponents = false;
  row.promisesBits = false;
  row.convertsDefaultOutput = true;
  row.givesClasses = [](const FilterParameters & parameters) {
    const auto mode = parameters.GetValues().find("OutputMode");
    return mode != parameters.GetValues().end() && std::get<std::string>(mode->second) != "channel";
  };
  row.furtherInputs = { { "Input2", "second", "The network's second input channel, an image of IN's size", false },
                        { "Input3", "third", "The network's third input channel, an image of IN's size", false } };
  row.outputComponents = [](const CheckedParameters & p, const FilterImage & image) -> std::int64_t {
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
  };
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    auto operation = std::make_shared<NetworkOperation>();
    operation->graph = p.Network("Model");
    CheckAxes(*operation->graph, image);
    const std::string & result = p.Choice("OutputMode");
    operation->result = result == "argmax"      ? NetworkResult::ArgMax
                        : result == "threshold" ? NetworkResult::Threshold
                                                : NetworkResult::Channel;
    operation->channel = static_cast<int>(p.Integer("Channel"));
    if (operation->result == NetworkResult::ArgMax && operation->channel != 0)
    {
      ThrowParameterError("Channel",
                          std::to_string(operation->channel) + " has no effect on the number of the largest channel");
    }
    if (p.Flag("OutputComponents"))
    {
      if (operation->channel != 0)
      {
        ThrowParameterError("Channel",
                            std::to_string(operation->channel) + " has no effect where voxels have them all");
      }
      operation->result = NetworkResult::AllChannels;
      operation->channelAxis = MaxDimension - 1;
    }
    operation->threshold = operation->result == NetworkResult::Threshold ? p.Real("Threshold") : 0.0;
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
  };
  filters.push_back(row);
}

} // namespace chunkwise
