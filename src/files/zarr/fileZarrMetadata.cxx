/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileZarrMetadata.h"

#include "fileByteCount.h"
#include "fileFormats.h"
#include "fileMemory.h"
#include "fileZarrValues.h"
#include "fileZarrZip.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cerrno>
#include <cstring>

namespace chunkwise::files
{

namespace
{

namespace fs = std::filesystem;
using Json = nlohmann::json;

/** Metadata of many arrays in one file are some megabytes. */
constexpr std::uint64_t MostBytesOfJson = std::uint64_t{ 64 } << 20;
constexpr int           MostDepthOfJson = 64;
constexpr std::size_t   MostAxesOfZarr = 32;
constexpr std::size_t   MostLevelsOfShards = 4;
constexpr std::size_t   MostBytesOfOmero = std::size_t{ 64 } << 10;

/** A part of metadata, and its name for messages. */
class JsonPart
{
public:
  JsonPart(std::string file, const Json & json, std::string name)
    : m_File(std::move(file))
    , m_Json(&json)
    , m_Name(std::move(name))
  {}
  const Json &
  Get() const
  {
    return *m_Json;
  }
  bool
  Has(const std::string & key) const
  {
    return m_Json->is_object() && m_Json->contains(key) && !(*m_Json)[key].is_null();
  }
  JsonPart
  At(const std::string & key) const
  {
    if (!this->Has(key))
    {
      files::Fail(m_File, "has no " + this->NameOf(key));
    }
    return { m_File, (*m_Json)[key], this->NameOf(key) };
  }
  JsonPart
  At(std::size_t i) const
  {
    return { m_File, (*m_Json)[i], m_Name + "[" + std::to_string(i) + "]" };
  }
  std::size_t
  GetSize() const
  {
    if (!m_Json->is_array())
    {
      this->Fail("is no list");
    }
    return m_Json->size();
  }
  std::string
  GetText() const
  {
    if (!m_Json->is_string())
    {
      this->Fail("is no text");
    }
    return m_Json->get<std::string>();
  }
  std::int64_t
  GetInteger(std::int64_t least, std::int64_t most) const
  {
    const bool isFloat = m_Json->is_number_float();
    // Some writers give lengths as 64.0.
    const double       real = isFloat ? m_Json->get<double>() : 0;
    const bool         isWhole = isFloat && real == std::floor(real) && std::abs(real) < 9e15;
    const bool         isTooLarge = m_Json->is_number_unsigned() && m_Json->get<std::uint64_t>() > INT64_MAX;
    const std::int64_t value = isWhole                                      ? static_cast<std::int64_t>(real)
                               : m_Json->is_number_integer() && !isTooLarge ? m_Json->get<std::int64_t>()
                                                                            : least - 1;
    if (value < least || value > most)
    {
      this->Fail("is no integer from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
  }
  double
  GetNumber() const
  {
    const double value = m_Json->is_number() ? m_Json->get<double>() : NAN;
    if (!std::isfinite(value))
    {
      this->Fail("is no finite number");
    }
    return value;
  }
  std::vector<std::int64_t>
  GetIntegers(std::int64_t least, std::int64_t most) const
  {
    std::vector<std::int64_t> values(this->GetSize());
    for (std::size_t i = 0; i < values.size(); ++i)
    {
      values[i] = this->At(i).GetInteger(least, most);
    }
    return values;
  }
  [[noreturn]] void
  Fail(const std::string & why) const
  {
    std::string text =
      m_Json->is_structured() ? "a structure" : m_Json->dump(-1, ' ', true, Json::error_handler_t::replace);
    files::Fail(m_File, "its " + m_Name + " (" + text.substr(0, 60) + ") " + why);
  }
  const std::string &
  GetFile() const
  {
    return m_File;
  }

private:
  std::string
  NameOf(const std::string & key) const
  {
    return m_Name.empty() ? "\"" + key + "\"" : m_Name + " \"" + key + "\"";
  }

  std::string  m_File;
  const Json * m_Json;
  std::string  m_Name;
};

Json
ReadJson(const fs::path & file)
{
  const auto opened = OpenZarrFile(file);
  if (!opened)
  {
    FailWithErrno(file.string(), "cannot be read", ENOENT);
  }
  const std::uint64_t size = opened->bytes;
  if (size > MostBytesOfJson)
  {
    Fail(file.string(), "has " + std::to_string(size) + " bytes of metadata, more than 64 MiB");
  }
  CheckMemoryOfHeader(file.string(), "text", size);
  std::string text(static_cast<std::size_t>(size), '\0');
  opened->file.ReadAt(text.data(), text.size(), opened->offset);
  if (opened->sum)
  {
    ZipSum(*opened, file.string()).Add(text.data(), text.size(), opened->offset);
  }
  // Values lie in lists that grow, or in nodes with their names.
  std::uint64_t bytes = 2 * size;
  for (const char c : text)
  {
    bytes += c == ',' || c == '[' || c == '{' ? 3 * sizeof(Json) : c == ':' ? 112 : 0;
  }
  CheckMemoryOfHeader(file.string(), "metadata", bytes);
  return ParseZarrJson(file.string(), text);
}

/** Metadata of a group or an array. */
struct Node
{
  fs::path              folder;
  int                   version{ 0 };
  bool                  isArray{ false };
  std::vector<fs::path> files;
  Json                  metadata;
  Json                  attributes = Json::object();
};

Node
ReadNode(const fs::path & folder)
{
  Node node;
  node.folder = folder;
  if (IsZarrFileThere(folder / "zarr.json"))
  {
    node.version = 3;
    node.files = { folder / "zarr.json" };
    node.metadata = ReadJson(node.files.front());
    const JsonPart part(node.files.front().string(), node.metadata, "");
    part.At("zarr_format").GetInteger(3, 3);
    const std::string type = part.At("node_type").GetText();
    if (type != "array" && type != "group")
    {
      part.At("node_type").Fail("is none of array, group");
    }
    node.isArray = type == "array";
    if (part.Has("attributes"))
    {
      node.attributes = node.metadata["attributes"];
    }
    return node;
  }
  node.version = 2;
  node.isArray = IsZarrFileThere(folder / ".zarray");
  for (const char * name : { ".zarray", ".zgroup", ".zattrs" })
  {
    if (IsZarrFileThere(folder / name))
    {
      node.files.push_back(folder / name);
      (std::string(name) == ".zattrs" ? node.attributes : node.metadata) = ReadJson(node.files.back());
    }
    if (node.isArray && std::string(name) == ".zarray")
    {
      JsonPart(node.files.back().string(), node.metadata, "").At("zarr_format").GetInteger(2, 2);
    }
  }
  if (node.files.empty())
  {
    Fail(folder.string(), "is no array and no group of Zarr: it has no zarr.json, .zarray or .zgroup");
  }
  return node;
}

std::vector<int>
MakeNaturalOrder(std::size_t count)
{
  std::vector<int> order(count);
  for (std::size_t i = 0; i < count; ++i)
  {
    order[i] = static_cast<int>(i);
  }
  return order;
}

void
SetType(const JsonPart & part, const std::string & name, ZarrArray & array)
{
  struct Type
  {
    const char * name;
    const char * code;
    PixelType    kind;
    ZarrValue    value;
  };
  static const Type types[] = {
    { "bool", "b1", PixelType::UInt8, ZarrValue::Bool },       { "int8", "i1", PixelType::Int8, ZarrValue::Plain },
    { "uint8", "u1", PixelType::UInt8, ZarrValue::Plain },     { "int16", "i2", PixelType::Int16, ZarrValue::Plain },
    { "uint16", "u2", PixelType::UInt16, ZarrValue::Plain },   { "int32", "i4", PixelType::Int32, ZarrValue::Plain },
    { "uint32", "u4", PixelType::UInt32, ZarrValue::Plain },   { "int64", "i8", PixelType::Int64, ZarrValue::Plain },
    { "uint64", "u8", PixelType::UInt64, ZarrValue::Plain },   { "float16", "f2", PixelType::Float32, ZarrValue::Half },
    { "float32", "f4", PixelType::Float32, ZarrValue::Plain }, { "float64", "f8", PixelType::Float64, ZarrValue::Plain }
  };
  for (const Type & type : types)
  {
    if (name == (array.version == 2 ? type.code : type.name))
    {
      array.kind = type.kind;
      array.value = type.value;
      return;
    }
  }
  part.Fail("is no type that can be read; those that can: bool, int8 to int64, uint8 to uint64, float16 to float64");
}

template <typename T>
bool
ParseHex(const std::string & text, T & bits)
{
  const char * const end = text.data() + text.size();
  return text.size() > 2 && text[0] == '0' && text[1] == 'x' &&
         std::from_chars(text.data() + 2, end, bits, 16).ptr == end &&
         std::from_chars(text.data() + 2, end, bits, 16).ec == std::errc();
}

template <typename T>
T
ParseRealFill(const JsonPart & part, const ZarrArray & array)
{
  const Json & json = part.Get();
  if (json.is_number())
  {
    return static_cast<T>(json.get<double>());
  }
  const std::string text = part.GetText();
  std::uint64_t     bits = 0;
  if (text == "NaN")
  {
    return std::numeric_limits<T>::quiet_NaN();
  }
  if (text == "Infinity" || text == "-Infinity")
  {
    return (text[0] == '-' ? -1 : 1) * std::numeric_limits<T>::infinity();
  }
  if (!ParseHex(text, bits) || text.size() != 2 + 2 * array.GetStoredSize())
  {
    part.Fail("is no value of a real type");
  }
  if (array.value == ZarrValue::Half)
  {
    return static_cast<T>(HalfToFloat(static_cast<std::uint16_t>(bits)));
  }
  T value{};
  if constexpr (sizeof(T) == 4)
  {
    const auto low = static_cast<std::uint32_t>(bits);
    std::memcpy(&value, &low, sizeof(value));
  }
  else
  {
    std::memcpy(&value, &bits, sizeof(value));
  }
  return value;
}

template <typename T>
T
ParseIntegerFill(const JsonPart & part, const ZarrArray & array)
{
  const Json & json = part.Get();
  if (array.value == ZarrValue::Bool && json.is_boolean())
  {
    return static_cast<T>(json.get<bool>());
  }
  using Limits = std::numeric_limits<T>;
  if (json.is_number_unsigned() && json.get<std::uint64_t>() <= static_cast<std::uint64_t>(Limits::max()))
  {
    return static_cast<T>(json.get<std::uint64_t>());
  }
  if (json.is_number_integer() && !json.is_number_unsigned() && Limits::is_signed &&
      json.get<std::int64_t>() >= static_cast<std::int64_t>(Limits::min()))
  {
    return static_cast<T>(json.get<std::int64_t>());
  }
  // Version 2 has 0.0 for 0 at times.
  if (json.is_number_float() && json.get<double>() == std::floor(json.get<double>()) &&
      std::abs(json.get<double>()) <= 100)
  {
    return static_cast<T>(json.get<double>());
  }
  part.Fail("is no value of the array's type");
}

void
ReadFill(const JsonPart & part, ZarrArray & array)
{
  DispatchPixelType(array.kind, [&](auto tag) {
    using Value = decltype(tag);
    Value value{};
    if constexpr (std::is_floating_point_v<Value>)
    {
      value = ParseRealFill<Value>(part, array);
    }
    else
    {
      value = ParseIntegerFill<Value>(part, array);
    }
    std::memcpy(array.fill, &value, sizeof(value));
  });
}

ZarrCodec
MakeCodec(const JsonPart & part, const std::string & name)
{
  ZarrCodec codec;
  if (name == "blosc")
  {
    codec.kind = ZarrCodec::Kind::Blosc;
  }
  else if (name == "zstd")
  {
    codec.kind = ZarrCodec::Kind::Zstd;
  }
  else if (name == "lz4")
  {
    codec.kind = ZarrCodec::Kind::Lz4;
  }
  else if (name == "gzip")
  {
    codec.kind = ZarrCodec::Kind::Gzip;
  }
  else if (name == "zlib")
  {
    codec.kind = ZarrCodec::Kind::Zlib;
  }
  else if (name == "crc32c")
  {
    codec.kind = ZarrCodec::Kind::Crc32c;
  }
  else
  {
    part.Fail("is no codec that can be read; those that can: blosc, zstd, lz4, gzip, zlib, crc32c");
  }
  if (const std::string missing = FindMissingZarrLibrary(codec.kind); !missing.empty())
  {
    part.Fail("needs the library " + missing + ", which this build does not have");
  }
  return codec;
}

/** A codec of version 3: an object with a name, or the name alone. */
std::string
GetCodecName(const JsonPart & part)
{
  std::string name = part.Get().is_string() ? part.GetText() : part.At("name").GetText();
  if (name.rfind("numcodecs.", 0) == 0 && name != "numcodecs.crc32c")
  {
    name.erase(0, 10);
  }
  return name;
}

bool
IsBigEndian(const JsonPart & codec, std::size_t size)
{
  if (!codec.Has("configuration") || !codec.At("configuration").Has("endian"))
  {
    if (size > 1)
    {
      codec.Fail("does not say the order of bytes (\"endian\")");
    }
    return false;
  }
  const JsonPart    part = codec.At("configuration").At("endian");
  const std::string endian = part.GetText();
  if (endian != "little" && endian != "big")
  {
    part.Fail("is none of little, big");
  }
  return endian == "big";
}

void
CheckLengths(const JsonPart & part, std::size_t length, std::size_t expected)
{
  if (length != expected)
  {
    part.Fail("has " + std::to_string(length) + " numbers, not one for each of the " + std::to_string(expected) +
              " axes");
  }
}

std::vector<int>
Transpose(const JsonPart & part, const std::vector<int> & order)
{
  std::vector<int> by = MakeNaturalOrder(order.size());
  if (part.Get().is_string())
  {
    if (part.GetText() == "F")
    {
      std::reverse(by.begin(), by.end());
    }
    else if (part.GetText() != "C")
    {
      part.Fail("is no order of axes");
    }
  }
  else
  {
    const auto numbers = part.GetIntegers(0, static_cast<std::int64_t>(order.size()) - 1);
    CheckLengths(part, numbers.size(), order.size());
    std::vector<bool> seen(order.size(), false);
    for (std::size_t i = 0; i < by.size(); ++i)
    {
      by[i] = static_cast<int>(numbers[i]);
      if (seen[static_cast<std::size_t>(by[i])])
      {
        part.Fail("names an axis twice");
      }
      seen[static_cast<std::size_t>(by[i])] = true;
    }
  }
  std::vector<int> transposed(order.size());
  for (std::size_t i = 0; i < by.size(); ++i)
  {
    transposed[i] = order[static_cast<std::size_t>(by[i])];
  }
  return transposed;
}

void
ReadCodecs(const JsonPart & list, ZarrLevel level, ZarrArray & array);

void
ReadSharding(const JsonPart & codec, ZarrLevel level, ZarrArray & array)
{
  if (array.levels.size() + 1 >= MostLevelsOfShards)
  {
    codec.Fail("has shards in shards in shards in shards");
  }
  const JsonPart configuration = codec.At("configuration");
  const JsonPart shape = configuration.At("chunk_shape");
  const auto     inner = shape.GetIntegers(1, INT64_MAX);
  CheckLengths(shape, inner.size(), level.order.size());
  level.isSharded = true;
  if (configuration.Has("index_location"))
  {
    const std::string where = configuration.At("index_location").GetText();
    if (where != "start" && where != "end")
    {
      configuration.At("index_location").Fail("is none of start, end");
    }
    level.indexIsAtEnd = where == "end";
  }
  const JsonPart index = configuration.At("index_codecs");
  const auto     count = index.GetSize();
  if (count < 1 || count > 2 || GetCodecName(index.At(0)) != "bytes" ||
      (count == 2 && GetCodecName(index.At(1)) != "crc32c"))
  {
    files::Fail(index.GetFile(), "its indices of shards are coded otherwise than by bytes, or by bytes and crc32c");
  }
  level.indexIsBigEndian = IsBigEndian(index.At(0), 8);
  level.indexHasChecksum = count == 2;
  ZarrLevel next;
  next.order = level.order;
  next.chunk.resize(inner.size());
  for (std::size_t i = 0; i < inner.size(); ++i)
  {
    const auto axis = static_cast<std::size_t>(level.order[i]);
    next.chunk[axis] = inner[i];
    if (level.chunk[axis] % inner[i] != 0)
    {
      shape.Fail("does not divide a shard of " + std::to_string(level.chunk[axis]) +
                 " voxels into whole chunks along axis " + std::to_string(axis));
    }
  }
  array.levels.push_back(std::move(level));
  ReadCodecs(configuration.At("codecs"), std::move(next), array);
}

/** The codecs of a level, and of those below it. */
void
ReadCodecs(const JsonPart & list, ZarrLevel level, ZarrArray & array)
{
  const std::size_t count = list.GetSize();
  std::size_t       i = 0;
  for (; i < count && GetCodecName(list.At(i)) == "transpose"; ++i)
  {
    level.order = Transpose(list.At(i).At("configuration").At("order"), level.order);
  }
  if (i == count)
  {
    list.Fail("has no codec from an array to bytes");
  }
  const JsonPart    toBytes = list.At(i);
  const std::string name = GetCodecName(toBytes);
  if (name == "sharding_indexed")
  {
    if (i + 1 < count)
    {
      list.Fail("codes whole shards once more, which cannot be read in parts");
    }
    return ReadSharding(toBytes, std::move(level), array);
  }
  if (name != "bytes")
  {
    toBytes.Fail("is \"" + name.substr(0, 60) + "\"; what can be read from an array to bytes: bytes, sharding_indexed");
  }
  array.bigEndian = IsBigEndian(toBytes, array.GetStoredSize());
  for (++i; i < count; ++i)
  {
    level.codecs.push_back(MakeCodec(list.At(i), GetCodecName(list.At(i))));
  }
  array.levels.push_back(std::move(level));
}

void
ReadArray3(const JsonPart & part, ZarrArray & array)
{
  static const char * const known[] = { "zarr_format",     "node_type",           "shape",
                                        "data_type",       "chunk_grid",          "fill_value",
                                        "codecs",          "attributes",          "chunk_key_encoding",
                                        "dimension_names", "storage_transformers" };
  for (const auto & field : part.Get().items())
  {
    const bool isKnown =
      std::any_of(std::begin(known), std::end(known), [&](const char * name) { return field.key() == name; });
    const Json & value = field.value();
    const bool   mayBeIgnored =
      value.is_object() && value.contains("must_understand") && value["must_understand"] == false;
    if (!isKnown && !mayBeIgnored && !value.is_null())
    {
      files::Fail(part.GetFile(),
                  "has a field \"" + field.key().substr(0, 60) + "\" that is not known, and must be understood");
    }
  }
  if (part.Has("storage_transformers") && part.At("storage_transformers").GetSize() > 0)
  {
    files::Fail(part.GetFile(), "has storage transformers, which cannot be read");
  }
  const JsonPart type = part.At("data_type");
  SetType(type, type.Get().is_object() ? type.At("name").GetText() : type.GetText(), array);
  ReadFill(part.At("fill_value"), array);
  const JsonPart grid = part.At("chunk_grid");
  if (grid.At("name").GetText() != "regular")
  {
    grid.At("name").Fail("is not regular");
  }
  const JsonPart chunk = grid.At("configuration").At("chunk_shape");
  ZarrLevel      level;
  level.chunk = chunk.GetIntegers(1, INT64_MAX);
  CheckLengths(chunk, level.chunk.size(), array.shape.size());
  level.order = MakeNaturalOrder(array.shape.size());
  const JsonPart    keys = part.At("chunk_key_encoding");
  const std::string encoding = keys.At("name").GetText();
  if (encoding != "default" && encoding != "v2")
  {
    keys.At("name").Fail("is none of default, v2");
  }
  array.hasPrefix = encoding == "default";
  array.separator = array.hasPrefix ? '/' : '.';
  if (keys.Has("configuration") && keys.At("configuration").Has("separator"))
  {
    const JsonPart    separator = keys.At("configuration").At("separator");
    const std::string text = separator.GetText();
    if (text != "/" && text != ".")
    {
      separator.Fail("is none of /, .");
    }
    array.separator = text[0];
  }
  if (part.Has("dimension_names"))
  {
    const JsonPart names = part.At("dimension_names");
    CheckLengths(names, names.GetSize(), array.shape.size());
    for (std::size_t i = 0; i < array.shape.size(); ++i)
    {
      array.names.push_back(names.At(i).Get().is_string() ? names.At(i).GetText() : "");
    }
  }
  ReadCodecs(part.At("codecs"), std::move(level), array);
}

void
ReadArray2(const JsonPart & part, ZarrArray & array)
{
  array.hasPrefix = false;
  array.separator = '.';
  const JsonPart type = part.At("dtype");
  std::string    name = type.GetText();
  if (!name.empty() && std::strchr("<>|=", name[0]))
  {
    array.bigEndian = name[0] == '>' || (name[0] == '=' && IsBigEndianMachine());
    name.erase(0, 1);
  }
  SetType(type, name, array);
  if (part.Has("fill_value"))
  {
    ReadFill(part.At("fill_value"), array);
  }
  const JsonPart chunk = part.At("chunks");
  ZarrLevel      level;
  level.chunk = chunk.GetIntegers(1, INT64_MAX);
  CheckLengths(chunk, level.chunk.size(), array.shape.size());
  level.order = MakeNaturalOrder(array.shape.size());
  const std::string order = part.Has("order") ? part.At("order").GetText() : "C";
  if (order != "C" && order != "F")
  {
    part.At("order").Fail("is none of C, F");
  }
  if (order == "F")
  {
    std::reverse(level.order.begin(), level.order.end());
  }
  if (part.Has("filters") && part.At("filters").GetSize() > 0)
  {
    files::Fail(part.GetFile(), "has filters, which cannot be read");
  }
  if (part.Has("dimension_separator"))
  {
    const JsonPart    separator = part.At("dimension_separator");
    const std::string text = separator.GetText();
    if (text != "/" && text != ".")
    {
      separator.Fail("is none of /, .");
    }
    array.separator = text[0];
  }
  if (part.Has("compressor"))
  {
    const JsonPart compressor = part.At("compressor");
    level.codecs.push_back(MakeCodec(compressor.At("id"), compressor.At("id").GetText()));
  }
  array.levels.push_back(std::move(level));
}

ZarrArray
ReadArray(const Node & node)
{
  ZarrArray      array;
  const JsonPart part(node.files.front().string(), node.metadata, "");
  array.folder = node.folder;
  array.version = node.version;
  array.shape = part.At("shape").GetIntegers(0, INT64_MAX);
  if (array.shape.empty() || array.shape.size() > MostAxesOfZarr)
  {
    files::Fail(part.GetFile(), "has " + std::to_string(array.shape.size()) + " axes, not 1 to 32");
  }
  array.version == 3 ? ReadArray3(part, array) : ReadArray2(part, array);
  ByteCount bytes(static_cast<std::int64_t>(std::max(array.GetStoredSize(), PixelSize(array.kind))));
  ByteCount outer = bytes;
  for (std::size_t i = 0; i < array.shape.size(); ++i)
  {
    bytes = bytes * array.GetInnermost().chunk[i];
    outer = outer * array.levels.front().chunk[i];
  }
  if (!(bytes * 4).IsCountable() || !(outer * 4).IsCountable())
  {
    files::Fail(part.GetFile(), "its chunks have more bytes than can be counted");
  }
  return array;
}

/** The metadata of a level in OME-Zarr. */
struct OmeLevel
{
  std::vector<std::string> names;
  std::vector<ZarrAxis>    types;
  std::vector<double>      scale;
  std::vector<double>      translation;
  std::vector<std::string> units;
  std::string              omero;
};

/** "ome" of version 0.5, the attributes themselves before that. Null if the group has no image. */
const Json *
FindOme(const Node & node)
{
  const Json & attributes = node.attributes;
  if (!attributes.is_object())
  {
    return nullptr;
  }
  const Json & ome = attributes.contains("ome") && attributes["ome"].is_object() ? attributes["ome"] : attributes;
  return ome.contains("multiscales") && ome["multiscales"].is_array() && !ome["multiscales"].empty() ? &ome : nullptr;
}

/** Applies scale and translation of a list of transformations after the earlier ones. */
void
Transform(const JsonPart & list, std::size_t axes, OmeLevel & level)
{
  for (std::size_t i = 0; i < list.GetSize(); ++i)
  {
    const JsonPart    each = list.At(i);
    const std::string type = each.At("type").GetText();
    if (type == "identity")
    {
      continue;
    }
    if (type != "scale" && type != "translation")
    {
      each.At("type").Fail("is none of scale, translation, identity");
    }
    const JsonPart numbers = each.At(type);
    CheckLengths(numbers, numbers.GetSize(), axes);
    for (std::size_t a = 0; a < axes; ++a)
    {
      const double number = numbers.At(a).GetNumber();
      if (type == "scale")
      {
        level.scale[a] *= number;
        level.translation[a] *= number;
      }
      else
      {
        level.translation[a] += number;
      }
    }
  }
}

void
ReadAxes(const JsonPart & multiscale, OmeLevel & level)
{
  if (!multiscale.Has("axes"))
  {
    // Versions 0.1 and 0.2 have five.
    level.names = { "t", "c", "z", "y", "x" };
    level.types = { ZarrAxis::Time, ZarrAxis::Channel, ZarrAxis::Space, ZarrAxis::Space, ZarrAxis::Space };
    level.units.resize(5);
    return;
  }
  const JsonPart axes = multiscale.At("axes");
  for (std::size_t i = 0; i < axes.GetSize(); ++i)
  {
    const JsonPart    axis = axes.At(i);
    const std::string name = axis.Get().is_string() ? axis.GetText() : axis.At("name").GetText();
    const std::string type = axis.Get().is_object() && axis.Has("type") ? axis.At("type").GetText()
                             : name == "t"                              ? "time"
                             : name == "c"                              ? "channel"
                                                                        : "space";
    if (type != "space" && type != "time" && type != "channel")
    {
      axis.At("type").Fail("is none of space, time, channel");
    }
    level.names.push_back(name);
    level.types.push_back(type == "space" ? ZarrAxis::Space : type == "time" ? ZarrAxis::Time : ZarrAxis::Channel);
    level.units.push_back(axis.Get().is_object() && axis.Has("unit") ? axis.At("unit").GetText() : "");
  }
}

/** A level's path within its group, which may not leave it. */
fs::path
CheckPath(const JsonPart & part)
{
  const std::string text = part.GetText();
  const fs::path    path(text);
  bool              isGood = !text.empty() && text.find('\0') == std::string::npos && !path.has_root_path();
  for (const fs::path & name : path)
  {
    isGood = isGood && name != "..";
  }
  if (!isGood)
  {
    part.Fail("leads out of its group");
  }
  return path;
}

OmeLevel
ReadLevel(const std::string & file, const Json & ome, const Json & dataset)
{
  OmeLevel       level;
  const JsonPart multiscale(file, ome["multiscales"][0], "\"multiscales\"[0]");
  const JsonPart part(file, dataset, "\"datasets\"");
  ReadAxes(multiscale, level);
  const std::size_t axes = level.names.size();
  level.scale.assign(axes, 1);
  level.translation.assign(axes, 0);
  for (const JsonPart & from : { part, multiscale })
  {
    if (from.Has("coordinateTransformations"))
    {
      Transform(from.At("coordinateTransformations"), axes, level);
    }
  }
  if (ome.contains("omero") && ome["omero"].is_object())
  {
    level.omero = ome["omero"].dump(-1, ' ', true, Json::error_handler_t::replace);
  }
  return level;
}

/** Places each axis of an array: spaces first, then time; a channel is a component. */
void
PlaceAxes(const std::string & file, const OmeLevel & level, ZarrImage & image)
{
  const auto &      shape = image.array.shape;
  const std::size_t axes = shape.size();
  ImageHeader &     header = image.header;
  std::vector<int>  place(axes, -1);
  int               spaces = 0;
  int               times = 0;
  int               channels = 0;
  bool              areNamed = true;
  for (std::size_t i = 0; i < axes; ++i)
  {
    spaces += level.types[i] == ZarrAxis::Space ? 1 : 0;
    times += level.types[i] == ZarrAxis::Time ? 1 : 0;
    channels += level.types[i] == ZarrAxis::Channel ? 1 : 0;
    areNamed = areNamed && (level.types[i] != ZarrAxis::Space || level.names[i] == "x" || level.names[i] == "y" ||
                            level.names[i] == "z");
  }
  if (spaces < 1 || spaces > 3 || times > 1 || channels > 1)
  {
    Fail(file,
         "has " + std::to_string(spaces) + " axes of space, " + std::to_string(times) + " of time and " +
           std::to_string(channels) + " of channels; one to three, one and one can be read");
  }
  header.dimension = times > 0 ? 4 : std::max(2, spaces);
  std::vector<bool> isTaken(MaxDimension, false);
  int               next = spaces;
  for (std::size_t i = 0; i < axes; ++i)
  {
    int a = 3;
    if (level.types[i] == ZarrAxis::Channel)
    {
      header.components = shape[i];
      continue;
    }
    if (level.types[i] == ZarrAxis::Space)
    {
      --next;
      a = areNamed ? level.names[i][0] - 'x' : next;
    }
    // Without a unit lengths are in mm, as ITK has them.
    if (isTaken[static_cast<std::size_t>(a)] || (a < 3 && a >= header.dimension))
    {
      Fail(file, "has two axes \"" + level.names[i].substr(0, 20) + "\", or lacks one before it");
    }
    isTaken[static_cast<std::size_t>(a)] = true;
    place[i] = a;
    const double unit = level.units[i].empty() ? 1 : GetZarrUnit(level.units[i]);
    if (unit == 0)
    {
      image.warnings.push_back("the unit \"" + level.units[i].substr(0, 40) + "\" of its axis " +
                               level.names[i].substr(0, 20) + " is not known and was not applied");
    }
    header.extent[a] = shape[i];
    header.spacing[a] = level.scale[i] * (unit == 0 ? 1 : unit);
    header.origin[a] = level.translation[i] * (unit == 0 ? 1 : unit);
  }
  image.fileAxis.assign(axes, -1);
  for (std::size_t i = 0; i < axes; ++i)
  {
    const bool isChannel = level.types[i] == ZarrAxis::Channel;
    image.fileAxis[i] = header.components == 1 ? place[i] : isChannel ? 0 : place[i] + 1;
  }
  if (!level.omero.empty() && level.omero.size() <= MostBytesOfOmero)
  {
    header.metadata["omero"] = level.omero;
  }
}

/** An array without names: its last axis is x. */
void
PlacePlainAxes(const std::string & file, ZarrImage & image)
{
  const auto & shape = image.array.shape;
  const auto   axes = static_cast<int>(shape.size());
  image.fileAxis.assign(shape.size(), -1);
  image.header.dimension = std::clamp(axes, 2, MaxDimension);
  for (int i = 0; i < axes; ++i)
  {
    const int          axis = axes - 1 - i;
    const std::int64_t extent = shape[static_cast<std::size_t>(i)];
    if (axis < MaxDimension)
    {
      image.header.extent[axis] = extent;
      image.fileAxis[static_cast<std::size_t>(i)] = axis;
    }
    else if (extent != 1)
    {
      Fail(file, "has " + std::to_string(axes) + " axes; arrays of up to five can be read");
    }
  }
}

/** Whether names of axes alone say what they are. */
bool
FindNamedLevel(const ZarrArray & array, OmeLevel & level)
{
  for (const std::string & name : array.names)
  {
    const bool isKnown = name.size() == 1 && std::strchr("tczyx", name[0]) != nullptr;
    if (!isKnown || std::count(array.names.begin(), array.names.end(), name) != 1)
    {
      return false;
    }
    level.types.push_back(name == "t" ? ZarrAxis::Time : name == "c" ? ZarrAxis::Channel : ZarrAxis::Space);
  }
  const auto has = [&](const char * name) {
    return std::find(array.names.begin(), array.names.end(), name) != array.names.end();
  };
  level.names = array.names;
  level.scale.assign(array.names.size(), 1);
  level.translation.assign(array.names.size(), 0);
  level.units.resize(array.names.size());
  return has("x") && has("y");
}

fs::path
WithoutSlash(const std::string & file)
{
  fs::path path = fs::path(file).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

/** The group of OME-Zarr that has the array as a level; false if there is none. */
bool
FindGroupOf(const fs::path & array, Node & group, Json & dataset)
{
  fs::path folder = array;
  fs::path within;
  for (int i = 0; i < 3 && folder.has_parent_path() && folder.has_filename() && folder.filename() != ".."; ++i)
  {
    within = within.empty() ? folder.filename() : folder.filename() / within;
    folder = folder.parent_path();
    if (folder.empty())
    {
      folder = ".";
    }
    if (!IsZarr(folder))
    {
      continue;
    }
    group = ReadNode(folder);
    const Json * const ome = FindOme(group);
    if (!ome || !(*ome)["multiscales"][0].is_object() || !(*ome)["multiscales"][0].contains("datasets"))
    {
      continue;
    }
    for (const Json & each : (*ome)["multiscales"][0]["datasets"])
    {
      if (each.is_object() && each.contains("path") && each["path"].is_string() &&
          fs::path(each["path"].get<std::string>()).lexically_normal() == within)
      {
        dataset = each;
        return true;
      }
    }
  }
  return false;
}

[[noreturn]] void
FailAsGroup(const std::string & file, const Node & node)
{
  std::vector<std::string> names;
  std::error_code          error;
  for (fs::directory_iterator entry(node.folder, error), end; !error && entry != end; entry.increment(error))
  {
    if (IsZarr(entry->path()))
    {
      names.push_back(entry->path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < 8; ++i)
  {
    list += (i > 0 ? ", " : "") + (fs::path(file) / names[i]).string();
  }
  Fail(file,
       "is a group of Zarr without an image of OME-Zarr (\"multiscales\")" +
         (list.empty() ? std::string() : "; name what is in it: " + list));
}

} // namespace

Json
ParseZarrJson(const std::string & file, const std::string & text)
{
  try
  {
    return Json::parse(text, [&](int depth, Json::parse_event_t, Json &) {
      if (depth > MostDepthOfJson)
      {
        Fail(file, "its metadata are nested more than 64 deep");
      }
      return true;
    });
  }
  catch (const Json::exception &)
  {
    Fail(file, "its metadata are no JSON");
  }
}

double
GetZarrUnit(const std::string & unit)
{
  struct Unit
  {
    const char * name;
    double       size;
  };
  static const Unit whole[] = { { "angstrom", 1e-7 }, { "inch", 25.4 }, { "foot", 304.8 }, { "yard", 914.4 },
                                { "mile", 1609344 },  { "minute", 60 }, { "hour", 3600 },  { "day", 86400 } };
  static const Unit prefixes[] = { { "", 1 },        { "atto", 1e-18 }, { "femto", 1e-15 }, { "pico", 1e-12 },
                                   { "nano", 1e-9 }, { "micro", 1e-6 }, { "milli", 1e-3 },  { "centi", 1e-2 },
                                   { "deci", 1e-1 }, { "deca", 1e1 },   { "hecto", 1e2 },   { "kilo", 1e3 },
                                   { "mega", 1e6 },  { "giga", 1e9 },   { "tera", 1e12 },   { "peta", 1e15 } };
  for (const Unit & known : whole)
  {
    if (unit == known.name)
    {
      return known.size;
    }
  }
  for (const Unit & prefix : prefixes)
  {
    if (unit == prefix.name + std::string("meter"))
    {
      // 1e-6 * 1e3 is not 1e-3.
      return std::string(prefix.name) == "micro"   ? 1e-3
             : std::string(prefix.name) == "nano"  ? 1e-6
             : std::string(prefix.name) == "milli" ? 1
             : std::string(prefix.name) == "centi" ? 10
                                                   : prefix.size * 1e3;
    }
    if (unit == prefix.name + std::string("second"))
    {
      return prefix.size;
    }
  }
  return 0;
}

std::size_t
ZarrArray::GetStoredSize() const
{
  return value == ZarrValue::Half ? 2 : PixelSize(kind);
}

std::string
ZarrArray::GetChunkName(const std::vector<std::int64_t> & index) const
{
  std::string name = hasPrefix ? "c" : "";
  for (const std::int64_t i : index)
  {
    name += (name.empty() ? "" : std::string(1, separator)) + std::to_string(i);
  }
  return name;
}

fs::path
ZarrArray::GetChunkFile(const std::vector<std::int64_t> & index) const
{
  return folder / this->GetChunkName(index);
}

bool
IsZarr(const fs::path & folder)
{
  std::error_code error;
  return (fs::is_directory(folder, error) || !FindZipOf(folder).empty()) &&
         (IsZarrFileThere(folder / "zarr.json") || IsZarrFileThere(folder / ".zarray") ||
          IsZarrFileThere(folder / ".zgroup"));
}

std::string
FindBesideImage(const fs::path & folder)
{
  const Node node = ReadNode(folder);
  if (node.isArray)
  {
    return "";
  }
  std::vector<std::string> known = { "zarr.json" };
  if (const Json * const ome = FindOme(node))
  {
    const JsonPart datasets =
      JsonPart(node.files.back().string(), (*ome)["multiscales"][0], "\"multiscales\"[0]").At("datasets");
    for (std::size_t i = 0; i < datasets.GetSize(); ++i)
    {
      known.push_back(CheckPath(datasets.At(i).At("path")).begin()->string());
    }
  }
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
  {
    const std::string name = entry->path().filename().string();
    if (name.front() != '.' && std::find(known.begin(), known.end(), name) == known.end())
    {
      return name;
    }
  }
  if (error)
  {
    Fail(folder.string(), "cannot be listed: " + error.message());
  }
  return "";
}

ZarrImage
ReadZarrImage(const std::string & file)
{
  ZarrImage      image;
  const fs::path folder = WithoutSlash(file);
  Node           node = ReadNode(folder);
  Node           group;
  Json           dataset;
  bool           isLevel = false;
  if (node.isArray)
  {
    isLevel = FindGroupOf(folder, group, dataset);
  }
  else
  {
    group = std::move(node);
    const Json * const ome = FindOme(group);
    if (!ome)
    {
      FailAsGroup(file, group);
    }
    const JsonPart datasets =
      JsonPart(group.files.back().string(), (*ome)["multiscales"][0], "\"multiscales\"[0]").At("datasets");
    if (datasets.GetSize() == 0)
    {
      datasets.Fail("names no array");
    }
    dataset = datasets.Get()[0];
    const fs::path array = folder / CheckPath(datasets.At(0).At("path"));
    if (!IsZarr(array))
    {
      datasets.At(0).At("path").Fail("names no array of Zarr: there is none at " + array.string());
    }
    node = ReadNode(array);
    if (!node.isArray)
    {
      datasets.At(0).At("path").Fail("names a group, not an array");
    }
    isLevel = true;
  }
  image.array = ReadArray(node);
  image.header.kind = image.array.kind;
  image.files.emplace_back(folder);
  image.files.insert(image.files.end(), group.files.begin(), group.files.end());
  image.files.insert(image.files.end(), node.files.begin(), node.files.end());
  OmeLevel level;
  if (isLevel)
  {
    const std::string metadata = group.files.back().string();
    level = ReadLevel(metadata, *FindOme(group), dataset);
    if (level.names.size() != image.array.shape.size())
    {
      Fail(metadata,
           "its \"axes\" are " + std::to_string(level.names.size()) + ", the array has " +
             std::to_string(image.array.shape.size()));
    }
    PlaceAxes(file, level, image);
    image.array.names = level.names;
  }
  else if (FindNamedLevel(image.array, level))
  {
    PlaceAxes(file, level, image);
  }
  else
  {
    PlacePlainAxes(file, image);
  }
  if (const fs::path zip = FindZipOf(folder); !zip.empty())
  {
    image.files = { zip };
  }
  CountVoxels(file, image.header);
  NormalizeGeometry(file, image.header);
  return image;
}

} // namespace chunkwise::files
