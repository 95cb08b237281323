/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseOnnxFormat_h
#define chunkwiseOnnxFormat_h

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The messages of the ONNX format that the importer reads, by the format's names. The rest of a file is skipped. ONNX
// files are messages of Protocol Buffers, whose encoding is simple enough that no library is needed to read it.

namespace chunkwise
{
namespace onnx
{

struct StringStringEntryProto
{
  std::string key;
  std::string value;
};

struct TensorProto
{
  std::vector<std::int64_t>           dims;
  std::int32_t                        dataType{ 0 };
  std::vector<float>                  floatData;
  std::vector<std::int32_t>           int32Data;
  std::vector<std::int64_t>           int64Data;
  std::string                         name;
  std::optional<std::string_view>     rawData; ///< bytes of the file
  std::vector<double>                 doubleData;
  std::vector<StringStringEntryProto> externalData;
  std::int32_t                        dataLocation{ 0 };
};

struct AttributeProto
{
  std::string                 name;
  float                       f{ 0 };
  std::int64_t                i{ 0 };
  std::string                 s;
  TensorProto                 t;
  std::vector<float>          floats;
  std::vector<std::int64_t>   ints;
  std::optional<std::int32_t> type;
};

struct NodeProto
{
  std::vector<std::string>    input;
  std::vector<std::string>    output;
  std::string                 name;
  std::string                 opType;
  std::vector<AttributeProto> attribute;
  std::string                 domain;
};

struct TensorShapeProto
{
  /** The sizes; none where the file has a name in place of a number. */
  std::vector<std::optional<std::int64_t>> dim;
};

struct TensorTypeProto
{
  std::int32_t                    elemType{ 0 };
  std::optional<TensorShapeProto> shape;
};

struct TypeProto
{
  std::optional<TensorTypeProto> tensorType;
};

struct ValueInfoProto
{
  std::string name;
  TypeProto   type;
};

struct GraphProto
{
  std::vector<NodeProto>      node;
  std::vector<TensorProto>    initializer;
  std::vector<ValueInfoProto> input;
  std::vector<ValueInfoProto> output;
  std::size_t                 sparseInitializers{ 0 };
};

struct OperatorSetIdProto
{
  std::string  domain;
  std::int64_t version{ 0 };
};

struct ModelProto
{
  std::optional<GraphProto>       graph;
  std::vector<OperatorSetIdProto> opsetImport;
};

/** Reads a model, which refers to `bytes` from then on. Returns false if they are no message or end early. */
bool
ParseModel(std::string_view bytes, ModelProto & model);

/** The same for a file that has one tensor. */
bool
ParseTensor(std::string_view bytes, TensorProto & tensor);

} // namespace onnx
} // namespace chunkwise

#endif
