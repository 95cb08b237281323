/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseOnnxTensor_h
#define chunkwiseOnnxTensor_h

#include "chunkwiseOnnxFormat.h"

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

// Tensors of an ONNX file. Nothing is allocated before the file has shown that it has the bytes.

namespace chunkwise
{
namespace onnx
{

/** A description of an error, without the names of file and node: whoever knows these makes a ParameterError of it. */
class Problem : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/** ONNX' numbers of the types of elements. */
enum ElementType
{
  Float32 = 1,
  UInt8 = 2,
  Int8 = 3,
  Int32 = 6,
  Int64 = 7,
  Boolean = 9,
  Float16 = 10,
  Float64 = 11,
  BFloat16 = 16
};

/** Sizes and axes are a few numbers. */
constexpr std::int64_t MostNumbers = 4096;

/** The place of tensors that a model stores in separate files. */
struct ExternalData
{
  bool                  allowed{ false };
  std::filesystem::path folder;
};

/** A name of the file as part of a message: not too long, and without control characters. */
std::string
Quoted(const std::string & name);

std::string
ElementTypeName(int type);

bool
IsFloatingPoint(int type);

std::vector<std::int64_t>
GetDimensions(const TensorProto & tensor);

/** The product of the dimensions. Throws Problem if one is negative, or if it is larger than any file. */
std::int64_t
CountElements(const TensorProto & tensor);

/** The elements of a tensor of floating-point numbers, all finite. */
std::vector<float>
ReadFloats(const TensorProto & tensor, const ExternalData & external);

/** The elements of a small tensor of numbers of any type: sizes, axes, limits. */
std::vector<double>
ReadNumbers(const TensorProto & tensor, const ExternalData & external);

} // namespace onnx
} // namespace chunkwise

#endif
