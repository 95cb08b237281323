/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseOnnxTensor.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <system_error>

namespace chunkwise
{
namespace onnx
{

namespace
{

/** The numbers of a file are little-endian, whatever the machine is. */
template <typename TBits>
TBits
BitsAt(const char * bytes)
{
  TBits bits = 0;
  for (std::size_t b = 0; b < sizeof(TBits); ++b)
  {
    bits = static_cast<TBits>(bits | static_cast<TBits>(static_cast<unsigned char>(bytes[b])) << (8 * b));
  }
  return bits;
}

template <typename TValue, typename TBits>
TValue
ValueAt(const char * bytes)
{
  static_assert(sizeof(TValue) == sizeof(TBits), "the bits of the value");
  const TBits bits = BitsAt<TBits>(bytes);
  TValue      value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float
FloatOfHalf(std::uint16_t bits)
{
  const int   exponent = bits >> 10 & 31;
  const int   mantissa = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31)
  {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  }
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                               : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25));
}

float
FloatOfBrain(std::uint16_t bits)
{
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float               value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

std::uint64_t
ParseOffset(const std::string & text)
{
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
  {
    throw Problem("\"" + Quoted(text) + "\" is no offset or length of external data");
  }
  return std::stoull(text);
}

/** The bytes of a tensor that lies in a file beside the model. */
std::string
ReadExternal(const TensorProto & tensor, const ExternalData & external, std::uint64_t bytes)
{
  if (!external.allowed)
  {
    throw Problem("its data are in another file, which a model in memory does not have");
  }
  std::string   location;
  std::uint64_t offset = 0;
  for (const StringStringEntryProto & entry : tensor.externalData)
  {
    if (entry.key == "location")
    {
      location = entry.value;
    }
    else if (entry.key == "offset")
    {
      offset = ParseOffset(entry.value);
    }
    else if (entry.key == "length" && ParseOffset(entry.value) != bytes)
    {
      throw Problem("its external data have " + Quoted(entry.value) + " bytes where " + std::to_string(bytes) +
                    " are needed");
    }
  }
  // A model must not make its reader open files elsewhere.
  const std::filesystem::path path(location);
  bool                        isInside = !location.empty() && location.find('\0') == std::string::npos &&
                  location.find('\\') == std::string::npos && !path.has_root_path();
  for (const std::filesystem::path & part : path)
  {
    isInside = isInside && part != "..";
  }
  if (!isInside)
  {
    throw Problem("its external data are in \"" + Quoted(location) + "\": that must be a file beside the model");
  }
  const std::filesystem::path file = external.folder / path;
  std::error_code             error;
  const bool                  isFile = std::filesystem::is_regular_file(file, error);
  const std::uint64_t         size = isFile ? std::filesystem::file_size(file, error) : 0;
  if (!isFile || error)
  {
    throw Problem("its external data are missing: there is no file \"" + Quoted(location) + "\" beside the model");
  }
  if (offset > size || bytes > size - offset)
  {
    throw Problem("its external data reach beyond the end of \"" + Quoted(location) + "\"");
  }
  std::string   data(bytes, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  if (!stream.read(data.data(), static_cast<std::streamsize>(bytes)))
  {
    throw Problem("its external data, \"" + Quoted(location) + "\", cannot be read");
  }
  return data;
}

/** Elements from raw bytes, from another file, or from the field that the format has for the type. */
template <std::size_t Size, typename TOut, typename TField, typename TFromBytes, typename TFromField>
std::vector<TOut>
Decode(const TensorProto & tensor, const ExternalData & external, const TField & field, TFromBytes fromBytes,
       TFromField fromField)
{
  const auto        count = static_cast<std::uint64_t>(CountElements(tensor));
  std::vector<TOut> values;
  if (tensor.rawData || tensor.dataLocation == 1)
  {
    const bool             isExternal = tensor.dataLocation == 1;
    const std::string      file = isExternal ? ReadExternal(tensor, external, count * Size) : std::string();
    const std::string_view bytes = isExternal ? std::string_view(file) : *tensor.rawData;
    if (bytes.size() != count * Size)
    {
      throw Problem("it has " + std::to_string(bytes.size()) + " bytes where its dimensions ask for " +
                    std::to_string(count * Size));
    }
    values.resize(count);
    for (std::size_t i = 0; i < count; ++i)
    {
      values[i] = static_cast<TOut>(fromBytes(bytes.data() + i * Size));
    }
    return values;
  }
  if (static_cast<std::uint64_t>(field.size()) != count)
  {
    throw Problem("it has " + std::to_string(field.size()) + " numbers where its dimensions ask for " +
                  std::to_string(count));
  }
  values.reserve(count);
  for (const auto & value : field)
  {
    values.push_back(static_cast<TOut>(fromField(value)));
  }
  return values;
}

template <typename TOut>
std::vector<TOut>
DecodeFloatingPoint(const TensorProto & tensor, const ExternalData & external)
{
  const auto same = [](auto value) { return value; };
  // A double that no float holds becomes infinite, which is refused as what the file says.
  const auto narrow = [](double value) {
    return std::abs(value) > std::numeric_limits<float>::max() && sizeof(TOut) == sizeof(float)
             ? std::copysign(std::numeric_limits<double>::infinity(), value)
             : value;
  };
  switch (tensor.dataType)
  {
    case Float32:
      return Decode<4, TOut>(tensor, external, tensor.floatData, ValueAt<float, std::uint32_t>, same);
    case Float64:
      return Decode<8, TOut>(
        tensor,
        external,
        tensor.doubleData,
        [narrow](const char * bytes) { return narrow(ValueAt<double, std::uint64_t>(bytes)); },
        narrow);
    case Float16:
      return Decode<2, TOut>(
        tensor,
        external,
        tensor.int32Data,
        [](const char * bytes) { return FloatOfHalf(BitsAt<std::uint16_t>(bytes)); },
        [](std::int32_t bits) { return FloatOfHalf(static_cast<std::uint16_t>(bits)); });
    default:
      return Decode<2, TOut>(
        tensor,
        external,
        tensor.int32Data,
        [](const char * bytes) { return FloatOfBrain(BitsAt<std::uint16_t>(bytes)); },
        [](std::int32_t bits) { return FloatOfBrain(static_cast<std::uint16_t>(bits)); });
  }
}

/** Adds the tensor's name to what is wrong with it. */
template <typename TRead>
auto
WithName(const TensorProto & tensor, TRead read)
{
  try
  {
    return read();
  }
  catch (const Problem & problem)
  {
    throw Problem("tensor \"" + Quoted(tensor.name) + "\": " + problem.what());
  }
}

} // namespace

std::string
Quoted(const std::string & name)
{
  constexpr std::size_t Most = 120;
  std::string           text = name.substr(0, Most);
  for (char & letter : text)
  {
    if (static_cast<unsigned char>(letter) < 32 || letter == 127)
    {
      letter = '?';
    }
  }
  return name.size() > Most ? text + "..." : text;
}

std::string
ElementTypeName(int type)
{
  static const char * const names[] = { "undefined", "float32", "uint8",   "int8",    "uint16",  "int16",
                                        "int32",     "int64",   "string",  "bool",    "float16", "double",
                                        "uint32",    "uint64",  "complex", "complex", "bfloat16" };
  if (type < 0 || type >= static_cast<int>(sizeof(names) / sizeof(names[0])))
  {
    return "type " + std::to_string(type);
  }
  return names[type];
}

bool
IsFloatingPoint(int type)
{
  return type == Float32 || type == Float16 || type == Float64 || type == BFloat16;
}

std::vector<std::int64_t>
GetDimensions(const TensorProto & tensor)
{
  return { tensor.dims.begin(), tensor.dims.end() };
}

std::int64_t
CountElements(const TensorProto & tensor)
{
  constexpr std::int64_t Most = std::int64_t{ 1 } << 40;
  std::int64_t           count = 1;
  for (const std::int64_t size : tensor.dims)
  {
    if (size < 0 || size > Most || (size > 0 && count > Most / size))
    {
      throw Problem("its dimensions make no sense");
    }
    count *= size;
  }
  return count;
}

std::vector<float>
ReadFloats(const TensorProto & tensor, const ExternalData & external)
{
  return WithName(tensor, [&] {
    if (!IsFloatingPoint(tensor.dataType))
    {
      throw Problem("its numbers are " + ElementTypeName(tensor.dataType) +
                    " where float32, float16 or double are needed; export the network before it is quantized");
    }
    std::vector<float> values = DecodeFloatingPoint<float>(tensor, external);
    for (const float value : values)
    {
      if (!std::isfinite(value))
      {
        throw Problem("a number is not finite as float32");
      }
    }
    return values;
  });
}

std::vector<double>
ReadNumbers(const TensorProto & tensor, const ExternalData & external)
{
  return WithName(tensor, [&] {
    const std::int64_t count = CountElements(tensor);
    if (count > MostNumbers)
    {
      throw Problem("it has " + std::to_string(count) + " elements where a few are expected");
    }
    const auto same = [](auto value) { return value; };
    switch (tensor.dataType)
    {
      case Float32:
      case Float16:
      case Float64:
      case BFloat16:
        return DecodeFloatingPoint<double>(tensor, external);
      case Int64:
        return Decode<8, double>(tensor, external, tensor.int64Data, ValueAt<std::int64_t, std::uint64_t>, same);
      case Int32:
        return Decode<4, double>(tensor, external, tensor.int32Data, ValueAt<std::int32_t, std::uint32_t>, same);
      case Int8:
        return Decode<1, double>(tensor, external, tensor.int32Data, ValueAt<std::int8_t, std::uint8_t>, same);
      case UInt8:
      case Boolean:
        return Decode<1, double>(tensor, external, tensor.int32Data, BitsAt<std::uint8_t>, same);
      default:
        throw Problem("its numbers are " + ElementTypeName(tensor.dataType) + ", which is not supported");
    }
  });
}

} // namespace onnx
} // namespace chunkwise
