/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkModel.h"

#include "chunkwiseError.h"

#include "chunkwiseOnnxImporter.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <system_error>

namespace chunkwise
{

namespace
{

/** The largest file that the format allows. */
constexpr std::uint64_t LargestModel = std::numeric_limits<std::int32_t>::max();

void
CheckSize(std::uint64_t bytes, const std::string & name)
{
  if (bytes > LargestModel)
  {
    throw ParameterError(name + ": a model of more than 2 GiB; export it with its weights in a file beside it");
  }
}

/** The model refers to `data`. */
onnx::ModelProto
ParseModel(std::string_view data, const std::string & name)
{
  CheckSize(data.size(), name);
  onnx::ModelProto model;
  if (!onnx::ParseModel(data, model))
  {
    throw ParameterError(name + ": it is no ONNX model, or it is truncated");
  }
  return model;
}

std::string
ReadModelFile(const std::string & fileName)
{
  const std::filesystem::path path(fileName);
  std::error_code             error;
  if (!std::filesystem::is_regular_file(path, error))
  {
    throw ParameterError(fileName + ": there is no such file");
  }
  const std::uint64_t bytes = std::filesystem::file_size(path, error);
  if (error)
  {
    throw ParameterError(fileName + ": " + error.message());
  }
  CheckSize(bytes, fileName);
  std::string   data(bytes, '\0');
  std::ifstream stream(path, std::ios::binary);
  if (!stream.read(data.data(), static_cast<std::streamsize>(bytes)))
  {
    throw ParameterError(fileName + ": it cannot be read");
  }
  return data;
}

} // namespace

std::vector<std::string>
ListNetworkFiles(const std::string & fileName)
{
  std::set<std::string>       files;
  const std::filesystem::path folder = std::filesystem::path(fileName).parent_path();
  const auto                  add = [&](const onnx::TensorProto & tensor) {
    for (const onnx::StringStringEntryProto & entry : tensor.externalData)
    {
      if (entry.key == "location")
      {
        files.insert((folder / entry.value).string());
      }
    }
  };
  try
  {
    const std::string      data = ReadModelFile(fileName);
    const onnx::ModelProto model = ParseModel(data, fileName);
    if (model.graph)
    {
      for (const onnx::TensorProto & tensor : model.graph->initializer)
      {
        add(tensor);
      }
      for (const onnx::NodeProto & node : model.graph->node)
      {
        for (const onnx::AttributeProto & attribute : node.attribute)
        {
          add(attribute.t);
        }
      }
    }
  }
  catch (const ParameterError &)
  {
    // ReadNetworkModel says what is wrong.
  }
  files.erase(fileName);
  std::vector<std::string> all{ fileName };
  all.insert(all.end(), files.begin(), files.end());
  return all;
}

std::shared_ptr<const NetworkGraph>
ReadNetworkModel(const std::string & fileName)
{
  const std::filesystem::path path(fileName);
  const std::string           data = ReadModelFile(fileName);
  const onnx::ModelProto      model = ParseModel(data, fileName);
  onnx::ExternalData          external;
  external.allowed = true;
  external.folder = path.parent_path();
  return onnx::Importer(model, external, data.size(), fileName).Import();
}

std::shared_ptr<const NetworkGraph>
ParseNetworkModel(const void * data, std::size_t bytes, const std::string & name)
{
  const onnx::ModelProto model = ParseModel({ static_cast<const char *>(data), bytes }, name);
  return onnx::Importer(model, onnx::ExternalData(), bytes, name).Import();
}

} // namespace chunkwise
