/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandKernels.h"

#include "commandInputs.h"
#include "commandLine.h"

#include "chunkwiseError.h"
#include "chunkwiseNetworkModel.h"
#include "chunkwiseStreamedRun.h"

#include <sstream>

namespace command
{

std::shared_ptr<const chunkwise::KernelStack>
ReadKernels(const std::string & file, const std::string & option, int dimension, bool isStack)
{
  const auto                   source = OpenInput(file, "--" + option);
  const chunkwise::Coordinates extent = source->GetExtent();
  const int                    axes = dimension + (isStack ? 1 : 0);
  for (int a = axes; a < source->GetHeader().dimension; ++a)
  {
    if (extent[a] > 1)
    {
      throw WorkError("--" + option + ": " + file + " has " + std::to_string(source->GetHeader().dimension) +
                      " dimensions, there should be " + std::to_string(axes));
    }
  }
  const auto          box = chunkwise::Box::FromExtent(extent);
  std::vector<double> voxels(static_cast<std::size_t>(box.NumberOfVoxels()));
  chunkwise::ReadConverted(*source, chunkwise::DenseView(voxels.data(), chunkwise::PixelKind::Float64, box));

  auto stack = std::make_shared<chunkwise::KernelStack>();
  for (int a = 0; a < dimension; ++a)
  {
    stack->extent[a] = extent[a];
  }
  const auto kernels = static_cast<std::size_t>(isStack && dimension < chunkwise::MaxDimension ? extent[dimension] : 1);
  const std::size_t each = voxels.size() / kernels;
  for (std::size_t i = 0; i < kernels; ++i)
  {
    const auto begin = voxels.begin() + static_cast<std::ptrdiff_t>(i * each);
    stack->kernels.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(each));
  }
  return stack;
}

chunkwise::ParameterValue
ReadParameter(const chunkwise::ParameterDescription & parameter, const std::string & text, int dimension)
{
  switch (parameter.type)
  {
    case chunkwise::ParameterType::Kernel:
      return ReadKernels(text, parameter.option, dimension, parameter.isStack);
    case chunkwise::ParameterType::Network:
      try
      {
        return chunkwise::ReadNetworkModel(text);
      }
      catch (const chunkwise::ParameterError & error)
      {
        throw chunkwise::ParameterError(parameter.name + ": " + error.what());
      }
    default:
      return chunkwise::ParseParameter(parameter, text);
  }
}

std::string
DescribeNetwork(const std::string & file)
{
  const auto         graph = chunkwise::ReadNetworkModel(file);
  std::ostringstream text;
  const auto         show = [&](const char * name, const chunkwise::LayerExtent & extent) {
    text << name << extent[0] << " x " << extent[1] << " x " << extent[2] << '\n';
  };
  std::size_t weights = 0;
  for (const chunkwise::NetworkLayer & layer : graph->GetLayers())
  {
    weights += (layer.weights ? layer.weights->size() : 0) + (layer.bias ? layer.bias->size() : 0);
  }
  text << graph->Describe() << '\n';
  text << "input channels:  " << graph->GetNumberOfInputChannels() << '\n';
  text << "output channels: " << graph->GetNumberOfOutputChannels() << '\n';
  text << "weights:         " << weights << '\n';
  show("field of view:   ", graph->GetFieldOfView());
  show("total stride:    ", graph->GetTotalStride());
  show("window stride:   ", graph->GetWindowStride());
  return text.str();
}

} // namespace command
