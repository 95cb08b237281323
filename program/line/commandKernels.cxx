/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandKernels.h"

#include "commandInputs.h"
#include "commandLine.h"
#include "commandMemory.h"

#include "chunkwiseError.h"
#include "chunkwiseHostMemory.h"
#include "chunkwiseNetworkModel.h"
#include "chunkwiseStreamedRun.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <stdexcept>

namespace command
{

namespace
{

/** The numbers of a parameter that can be a file: those of the text, unless it is the name of a file. */
chunkwise::ParameterValue
ReadNumbers(const chunkwise::ParameterDescription & parameter, const std::string & text, int dimension)
{
  std::error_code none;
  if (!std::filesystem::exists(text, none))
  {
    return chunkwise::ParseParameter(parameter, text);
  }
  std::string numbers;
  if (parameter.file == chunkwise::ParameterFile::Grid)
  {
    // As many axes as are resampled by default.
    const auto header = OpenInputWithComponents(text, "--" + parameter.option)->GetHeader();
    const int  axes = std::min(dimension, 3);
    const auto add = [&](double number) {
      std::ostringstream digits;
      digits.precision(17);
      digits << number;
      numbers += (numbers.empty() ? "" : ",") + digits.str();
    };
    for (int a = 0; a < axes; ++a)
    {
      add(static_cast<double>(header.extent[a]));
    }
    std::for_each(header.spacing, header.spacing + axes, add);
    std::for_each(header.origin, header.origin + axes, add);
    for (int row = 0; row < axes; ++row)
    {
      std::for_each(header.direction[row], header.direction[row] + axes, add);
    }
    return chunkwise::ParseParameter(parameter, numbers);
  }
  constexpr std::uintmax_t most = 1 << 16;
  if (std::filesystem::is_directory(text, none) || std::filesystem::file_size(text, none) > most)
  {
    throw WorkError("--" + parameter.option + ": " + text + " is no text file of some numbers");
  }
  std::ifstream file(text);
  std::string   line;
  while (std::getline(file, line))
  {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line.substr(0, line.find('#')));
    for (std::string word; words >> word;)
    {
      numbers += (numbers.empty() ? "" : ",") + word;
    }
  }
  return chunkwise::ParseParameter(parameter, numbers);
}

[[noreturn]] void
RefuseForMemory(const std::string & file, const std::string & option)
{
  throw WorkError("--" + option + ": " + file + " does not fit into the memory that the system gives");
}

} // namespace

void
CheckRoom(const std::string & file, const std::string & option, double bytes, std::uint64_t memory, const char * held)
{
  // The room that every run leaves for the program itself has so much.
  constexpr std::uint64_t unnoticed = std::uint64_t{ 16 } << 20;
  const std::uint64_t     budget = memory ? memory : chunkwise::GetAvailableHostMemory() / 2;
  const double            needed = static_cast<double>(chunkwise::GetPeakHostMemory() + unnoticed) + bytes;
  if (bytes > static_cast<double>(unnoticed) && budget > 0 && needed > static_cast<double>(budget))
  {
    throw WorkError("--memory: --" + option + " " + file + " alone needs at least " +
                    FormatNeed(static_cast<std::uint64_t>(std::min(needed, 9e18))) + ", as " + held + ", more than " +
                    FormatBytes(static_cast<double>(budget)));
  }
}

std::shared_ptr<const chunkwise::KernelStack>
ReadKernels(const std::string & file, const std::string & option, int dimension, bool isStack, std::uint64_t memory)
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
  const auto box = chunkwise::Box::FromExtent(extent);
  // The voxels and those of the operation, which sums those of a single kernel up for the image's edge.
  const double copies = isStack ? 2 : 3;
  CheckRoom(file,
            option,
            static_cast<double>(source->GetAccess().heldBytes) +
              copies * sizeof(double) * static_cast<double>(box.NumberOfVoxels()),
            memory);
  std::vector<double> voxels(static_cast<std::size_t>(box.NumberOfVoxels()));
  chunkwise::ReadConverted(*source, chunkwise::DenseView(voxels.data(), chunkwise::PixelType::Float64, box));

  auto stack = std::make_shared<chunkwise::KernelStack>();
  for (int a = 0; a < dimension; ++a)
  {
    stack->extent[a] = extent[a];
  }
  const auto kernels = static_cast<std::size_t>(isStack && dimension < chunkwise::MaxDimension ? extent[dimension] : 1);
  if (kernels == 1)
  {
    stack->kernels.push_back(std::move(voxels));
    return stack;
  }
  const std::size_t each = voxels.size() / kernels;
  for (std::size_t i = 0; i < kernels; ++i)
  {
    const auto begin = voxels.begin() + static_cast<std::ptrdiff_t>(i * each);
    stack->kernels.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(each));
  }
  return stack;
}

namespace
{

/** The image of vectors of a displacement field: a kernel for each component. */
std::shared_ptr<const chunkwise::KernelStack>
ReadVectors(const std::string & file, const std::string & option, int dimension, std::uint64_t memory)
{
  const auto   source = OpenInputWithComponents(file, "--" + option);
  const auto & header = source->GetHeader();
  const auto   components = static_cast<std::size_t>(header.components);
  for (int a = dimension; a < header.dimension; ++a)
  {
    if (header.extent[a] > 1)
    {
      throw WorkError("--" + option + ": " + file + " has " + std::to_string(header.dimension) +
                      " dimensions, there should be " + std::to_string(dimension));
    }
  }
  const auto   box = chunkwise::Box::FromExtent(source->GetExtent());
  const double values = static_cast<double>(box.NumberOfVoxels());
  CheckRoom(file, option, static_cast<double>(source->GetAccess().heldBytes) + 2 * sizeof(double) * values, memory);
  std::vector<double> values64(static_cast<std::size_t>(box.NumberOfVoxels()));
  chunkwise::ReadConverted(*source, chunkwise::DenseView(values64.data(), chunkwise::PixelType::Float64, box));
  auto stack = std::make_shared<chunkwise::KernelStack>();
  std::copy_n(header.extent.axis, std::min(dimension, header.dimension), stack->extent.axis);
  for (std::size_t k = 0; k < components; ++k)
  {
    stack->kernels.emplace_back(values64.size() / components);
    for (std::size_t i = 0; i < stack->kernels.back().size(); ++i)
    {
      stack->kernels.back()[i] = values64[i * components + k];
    }
  }
  return stack;
}

} // namespace

chunkwise::ParameterValue
ReadParameter(const chunkwise::ParameterDescription & parameter, const std::string & text, int dimension,
              std::uint64_t memory)
{
  switch (parameter.type)
  {
    case chunkwise::ParameterType::Kernel:
      try
      {
        return parameter.isVector ? ReadVectors(text, parameter.option, dimension, memory)
                                  : ReadKernels(text, parameter.option, dimension, parameter.isStack, memory);
      }
      catch (const std::bad_alloc &)
      {
        RefuseForMemory(text, parameter.option);
      }
      catch (const std::length_error &)
      {
        RefuseForMemory(text, parameter.option);
      }
#ifdef CHUNKWISE_HAS_NETWORKS
    case chunkwise::ParameterType::Network:
      try
      {
        // The file, what is parsed of it, and the weights.
        std::error_code      none;
        const std::uintmax_t bytes = std::filesystem::file_size(text, none);
        CheckRoom(text, parameter.option, none ? 0.0 : 3.0 * static_cast<double>(bytes), memory);
        return chunkwise::ReadNetworkModel(text);
      }
      catch (const std::bad_alloc &)
      {
        RefuseForMemory(text, parameter.option);
      }
      catch (const chunkwise::ParameterError & error)
      {
        throw chunkwise::ParameterError(parameter.name + ": " + error.what());
      }
#endif
    default:
      return parameter.file == chunkwise::ParameterFile::None ? chunkwise::ParseParameter(parameter, text)
                                                              : ReadNumbers(parameter, text, dimension);
  }
}

#ifdef CHUNKWISE_HAS_NETWORKS
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
#endif

} // namespace command
