/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNetworkModel.h"

#include "chunkwiseError.h"

#ifdef CHUNKWISE_HAS_ONNX
#  include "chunkwiseOnnxImporter.h"

#  include <filesystem>
#  include <fstream>
#  include <limits>
#  include <system_error>
#endif

namespace chunkwise
{

#ifdef CHUNKWISE_HAS_ONNX

namespace
{

/** What the parser takes at once. */
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

} // namespace

bool
CanReadNetworkModels()
{
  return true;
}

std::shared_ptr<const NetworkGraph>
ReadNetworkModel(const std::string & fileName)
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
  onnx::ModelProto model;
  {
    std::string   data(bytes, '\0');
    std::ifstream stream(path, std::ios::binary);
    if (!stream.read(data.data(), static_cast<std::streamsize>(bytes)))
    {
      throw ParameterError(fileName + ": it cannot be read");
    }
    ParseInto(model, data.data(), bytes, fileName);
  }
  onnx::ExternalData external;
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
