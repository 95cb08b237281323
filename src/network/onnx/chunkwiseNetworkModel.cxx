/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkModel.h"

#include "chunkwiseError.h"

#ifdef CHUNKWISE_HAS_ONNX
#  include "chunkwiseOnnxImporter.h"

#  include <filesystem>
#  include <fstream>
#  include <limits>
#  include <set>
#  include <system_error>
#endif

namespace chunkwise
{

#ifdef CHUNKWISE_HAS_ONNX

namespace
{

/** The largest file that the parser takes. */
constexpr std::uint64_t LargestModel = std::numeric_limits<std::int32_t>::max();

void
CheckSize(std::uint64_t bytes, const std::string & name)
{
  if (bytes > LargestModel)
  {
    throw ParameterError(name + ": a model of more than 2 GiB; export it with its weights in a file beside it");
  }
}

void
ParseInto(onnx::ModelProto & model, const void * data, std::uint64_t bytes, const std::string & name)
{
  CheckSize(bytes, name);
  if (!model.ParseFromArray(data, static_cast<int>(bytes)))
  {
    throw ParameterError(name + ": it is no ONNX model, or it is truncated");
  }
}

onnx::ModelProto
ReadModel(const std::string & fileName, std::uint64_t & bytes)
{
  const std::filesystem::path path(fileName);
  std::error_code             error;
  if (!std::filesystem::is_regular_file(path, error))
  {
    throw ParameterError(fileName + ": there is no such file");
  }
  bytes = std::filesystem::file_size(path, error);
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
  onnx::ModelProto model;
  ParseInto(model, data.data(), bytes, fileName);
  return model;
}

} // namespace

bool
CanReadNetworkModels()
{
  return true;
}

std::vector<std::string>
ListNetworkFiles(const std::string & fileName)
{
  std::set<std::string>       files;
  const std::filesystem::path folder = std::filesystem::path(fileName).parent_path();
  const auto                  add = [&](const onnx::TensorProto & tensor) {
    for (const onnx::StringStringEntryProto & entry : tensor.external_data())
    {
      if (entry.key() == "location")
      {
        files.insert((folder / entry.value()).string());
      }
    }
  };
  try
  {
    std::uint64_t          bytes = 0;
    const onnx::ModelProto model = ReadModel(fileName, bytes);
    for (const onnx::TensorProto & tensor : model.graph().initializer())
    {
      add(tensor);
    }
    for (const onnx::NodeProto & node : model.graph().node())
    {
      for (const onnx::AttributeProto & attribute : node.attribute())
      {
        add(attribute.t());
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
  std::uint64_t               bytes = 0;
  const onnx::ModelProto      model = ReadModel(fileName, bytes);
  onnx::ExternalData          external;
  external.allowed = true;
  external.folder = path.parent_path();
  return onnx::Importer(model, external, bytes, fileName).Import();
}

std::shared_ptr<const NetworkGraph>
ParseNetworkModel(const void * data, std::size_t bytes, const std::string & name)
{
  onnx::ModelProto model;
  ParseInto(model, data, bytes, name);
  return onnx::Importer(model, onnx::ExternalData(), bytes, name).Import();
}

#else

namespace
{

[[noreturn]] void
RefuseModel(const std::string & name)
{
  throw ParameterError(name +
                       ": this build of Chunkwise reads no ONNX files; build it with CHUNKWISE_USE_ONNX=ON where "
                       "CMake finds protobuf (libprotobuf-dev and protobuf-compiler)");
}

} // namespace

bool
CanReadNetworkModels()
{
  return false;
}

std::vector<std::string>
ListNetworkFiles(const std::string & fileName)
{
  return { fileName };
}

std::shared_ptr<const NetworkGraph>
ReadNetworkModel(const std::string & fileName)
{
  RefuseModel(fileName);
}

std::shared_ptr<const NetworkGraph>
ParseNetworkModel(const void *, std::size_t, const std::string & name)
{
  RefuseModel(name);
}

#endif

} // namespace chunkwise
