/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkOperation.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chunkwise
{

std::string
NetworkOperation::GetKey() const
{
  return "network " + graph->GetKey() + ' ' + BoundaryKey(boundary) + ' ' + ExactText(scale) + ' ' + ExactText(shift) +
         ' ' + std::to_string(static_cast<int>(result)) + ' ' + std::to_string(channel) + ' ' + ExactText(threshold) +
         ' ' + std::to_string(channelAxis) + ' ' + std::to_string(static_cast<int>(precision)) + ' ' +
         std::to_string(static_cast<int>(method)) + (tile > 0 ? " tile " + std::to_string(tile) : std::string()) +
         (slab > 0 ? " slab " + std::to_string(slab) : std::string()) +
         (headLayers > 0 ? " head " + std::to_string(headLayers) : std::string()) +
         (mode == NetworkMode::Dense
            ? std::string()
            : " patches " + std::to_string(patch[0]) + ' ' + std::to_string(patch[1]) + ' ' + std::to_string(patch[2]) +
                ' ' + ExactText(overlap) + ' ' + std::to_string(static_cast<int>(weighting)));
}

int
NetworkOperation::GetNumberOfInputs() const
{
  return graph ? graph->GetNumberOfInputChannels() : 1;
}

Halo
NetworkOperation::GetHalo(const Coordinates & image) const
{
  Halo halo = Halo::None();
  if (mode == NetworkMode::Patches)
  {
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      halo.lower[a] = halo.upper[a] = std::min(patch[static_cast<std::size_t>(a)] - 1, image[a]);
    }
    return halo;
  }
  const LayerExtent & stride = graph->GetTotalStride();
  for (std::int64_t at = 0; at < *std::max_element(stride.begin(), stride.end()); ++at)
  {
    const auto needed = graph->GetRanges({ { { at, at, at } }, { { at + 1, at + 1, at + 1 } } }, nullptr).front();
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      const std::int64_t shift = graph->GetLowerMargin()[a];
      halo.lower[a] = std::max(halo.lower[a], at - (needed.lower[a] - shift));
      halo.upper[a] = std::max(halo.upper[a], needed.upper[a] - shift - (at + 1));
    }
  }
  for (int a = 0; a < MaxSpatialAxes; ++a)
  {
    // A mirror shows to one side the voxels of the opposite side.
    if (IsMirror(boundary.mode))
    {
      halo.lower[a] = halo.upper[a] = std::max(halo.lower[a], halo.upper[a]);
    }
    halo.lower[a] = std::min(halo.lower[a], image[a]);
    halo.upper[a] = std::min(halo.upper[a], image[a]);
  }
  return halo;
}

void
NetworkOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  for (const PixelType kind : inputs)
  {
    if (kind != inputs.front())
    {
      throw ParameterError(std::string("network: its images have voxels of ") + PixelTypeName(inputs.front()) +
                           " and " + PixelTypeName(kind) + "; they must have the same kind");
    }
  }
  const int channels = graph->GetNumberOfOutputChannels();
  if (result == NetworkResult::ArgMax && !PixelValue(std::int64_t{ channels } - 1).IsOf(output))
  {
    throw ParameterError("network: the output, " + std::string(PixelTypeName(output)) + ", has not all numbers of " +
                         std::to_string(channels) + " channels");
  }
}

void
NetworkOperation::Validate(const Coordinates & image) const
{
  if (!graph || graph->GetKey().empty())
  {
    throw ParameterError("Model: a network is needed");
  }
  if (graph->GetNumberOfInputChannels() > MaxInputs)
  {
    throw ParameterError("Model: the network has " + std::to_string(graph->GetNumberOfInputChannels()) +
                         " input channels; there are at most " + std::to_string(MaxInputs));
  }
  const int channels = graph->GetNumberOfOutputChannels();
  if (result == NetworkResult::AllChannels)
  {
    if (channelAxis < MaxSpatialAxes || channelAxis >= MaxDimension)
    {
      throw ParameterError("Channel: axis " + std::to_string(channelAxis) + " has no room for channels, only " +
                           std::to_string(MaxSpatialAxes) + " to " + std::to_string(MaxDimension - 1));
    }
    if (image[channelAxis] != channels)
    {
      throw ParameterError("Channel: the image has " + std::to_string(image[channelAxis]) + " voxels along axis " +
                           std::to_string(channelAxis) + ", and the network " + std::to_string(channels) + " channels");
    }
  }
  else if (result != NetworkResult::ArgMax && (channel < 0 || channel >= channels))
  {
    throw ParameterError("Channel: " + std::to_string(channel) + " is not between 0 and " +
                         std::to_string(channels - 1));
  }
  if (boundary.mode == BoundaryMode::Renormalized || boundary.mode == BoundaryMode::Periodic)
  {
    throw ParameterError(std::string("BoundaryCondition: a network has no ") + BoundaryModeName(boundary.mode) +
                         " boundary");
  }
  for (const auto & number : { std::make_pair("InputScale", scale), std::make_pair("InputShift", shift) })
  {
    if (!std::isfinite(number.second))
    {
      throw ParameterError(std::string(number.first) + ": " + std::to_string(number.second) + " is not finite");
    }
  }
  if (mode == NetworkMode::Patches)
  {
    this->ValidatePatches();
    return;
  }
  if (const NetworkLayer * const layer = graph->FindNormalization())
  {
    throw ParameterError("Model: layer " +
                         (layer->name.empty() ? std::string(LayerKindName(layer->kind)) : layer->name) +
                         " normalizes by statistics of all that the network is given, which no chunk of an image has; "
                         "run it in windows as it was trained (InferenceMode patches, with PatchSize and Overlap), or "
                         "train it with batch normalization");
  }
  const LayerExtent input = graph->GetInputExtent({ { image[0], image[1], image[2] } });
  for (const LayerExtent & extent : graph->GetExtents(input))
  {
    if (std::min({ extent[0], extent[1], extent[2] }) <= 0)
    {
      throw ParameterError("Model: the network's layers do not fit an image of " + ToString(image));
    }
  }
}

void
NetworkOperation::ValidatePatches() const
{
  if (!(overlap >= 0 && overlap < 1))
  {
    throw ParameterError("Overlap: " + std::to_string(overlap) + " is not from 0 on and below 1");
  }
  for (std::size_t a = 0; a < MaxSpatialAxes; ++a)
  {
    const std::string along = std::to_string(patch[a]) + " along axis " + std::to_string(a);
    if (patch[a] < 1 || patch[a] > (1 << 20))
    {
      throw ParameterError("PatchSize: " + along + " is not between 1 and " + std::to_string(1 << 20));
    }
    if (graph->GetWindowStride()[a] != 1 || graph->GetMargin()[a] != 0)
    {
      throw ParameterError(
        "Model: the network gives fewer voxels than it is given; run it densely (InferenceMode dense)");
    }
    const std::int64_t needed = graph->GetInputExtent(patch)[a];
    if (needed != patch[a])
    {
      throw ParameterError("PatchSize: " + along + " does not fit the network's strides; " + std::to_string(needed) +
                           " would");
    }
  }
  for (const LayerExtent & extent : graph->GetExtents(patch))
  {
    if (std::min({ extent[0], extent[1], extent[2] }) <= 0)
    {
      throw ParameterError("PatchSize: the network's layers do not fit windows of " + std::to_string(patch[0]) + " x " +
                           std::to_string(patch[1]) + " x " + std::to_string(patch[2]));
    }
  }
}

std::vector<std::int64_t>
NetworkOperation::GetPatchStarts(int axis, std::int64_t image) const
{
  const std::int64_t extent = patch[static_cast<std::size_t>(axis)];
  const std::int64_t room = std::max(image, extent);
  const std::int64_t before = (room - image) / 2;
  const std::int64_t step =
    extent == room
      ? extent
      : std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(extent) * (1.0 - overlap)));
  std::vector<std::int64_t> starts;
  for (std::int64_t at = 0;; at += step)
  {
    starts.push_back(std::min(at, room - extent) - before);
    if (at + extent >= room)
    {
      return starts;
    }
  }
}

Coordinates
NetworkOperation::RoundChunk(const Coordinates & extent) const
{
  Coordinates rounded = extent;
  for (int a = 0; a < MaxSpatialAxes && mode == NetworkMode::Dense; ++a)
  {
    const std::int64_t stride = graph->GetTotalStride()[a];
    rounded[a] = (extent[a] + stride - 1) / stride * stride;
  }
  if (result == NetworkResult::AllChannels)
  {
    // A backend that makes one channel makes all.
    rounded[channelAxis] = graph->GetNumberOfOutputChannels();
  }
  return rounded;
}

std::vector<std::shared_ptr<const Operation>>
NetworkOperation::GetPipedVariants() const
{
  std::vector<std::shared_ptr<const Operation>> variants;
  if (mode != NetworkMode::Dense || headLayers == 0 || precision == NetworkPrecision::Reproducible)
  {
    return variants;
  }
  const auto & layers = graph->GetLayers();
  // Layers after the head's last one read nothing before it.
  int first = std::numeric_limits<int>::max();
  for (int last = static_cast<int>(layers.size()) - 2; last > 0; --last)
  {
    const auto & inputs = layers[static_cast<std::size_t>(last) + 1].inputs;
    first = std::min(first, *std::min_element(inputs.begin(), inputs.end()));
    const bool isWanted = headLayers < 0 || headLayers == last;
    if (isWanted && first >= last && last < graph->GetOutput())
    {
      const auto variant = std::make_shared<NetworkOperation>(*this);
      variant->headLayers = last;
      variants.push_back(variant);
    }
  }
  return variants;
}

} // namespace chunkwise
