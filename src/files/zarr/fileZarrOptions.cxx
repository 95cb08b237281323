/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileZarrOptions.h"

#include "fileByteCount.h"
#include "fileVoxels.h"
#include "fileZarrLabels.h"
#include "fileZarrLevels.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace chunkwise::files
{

namespace
{

using OrderedJson = nlohmann::ordered_json;

/** Voxels of a shard along x and y, of thick chunks and of thin ones: 16 Mi voxels. */
constexpr std::int64_t ThickShardLength = 512;
constexpr std::int64_t ThinShardLength = 1024;

bool
ParseZarrNumber(const std::string & text, std::int64_t & number)
{
  const char * const end = text.data() + text.size();
  const auto         result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end;
}

std::vector<std::int64_t>
ParseLengths(const std::string & name, const std::string & part, const std::string & text)
{
  std::vector<std::int64_t> lengths;
  for (std::size_t at = 0; at <= text.size();)
  {
    const std::size_t end = std::min(text.find('x', at), text.size());
    std::int64_t      length = 0;
    if (!ParseZarrNumber(text.substr(at, end - at), length) || length < 1 || length > INT32_MAX || lengths.size() == 4)
    {
      Fail(name, "'" + part + "' is no size of one to four axes, such as 64x64x64");
    }
    lengths.push_back(length);
    at = end + 1;
  }
  return lengths;
}

void
ParseCodec(const std::string & name, const std::string & text, ZarrOptions & options)
{
  struct Known
  {
    const char *    name;
    ZarrCodec::Kind kind;
    int             level;
    int             most;
  };
  static const Known all[] = { { "zstd", ZarrCodec::Kind::Zstd, 3, 22 },
                               { "blosc", ZarrCodec::Kind::Blosc, 5, 9 },
                               { "gzip", ZarrCodec::Kind::Gzip, 5, 9 },
                               { "zlib", ZarrCodec::Kind::Zlib, 5, 9 },
                               { "lz4", ZarrCodec::Kind::Lz4, 1, 1 } };
  options.hasCodec = true;
  options.codecs.clear();
  if (text == "none")
  {
    return;
  }
  const std::size_t colon = text.find(':');
  std::string       codecName = text.substr(0, colon);
  ZarrCodec         codec;
  if (codecName.rfind("blosc-", 0) == 0)
  {
    codec.compressor = codecName.substr(6);
    codecName = "blosc";
    static const char * const compressors[] = { "blosclz", "lz4", "lz4hc", "zlib", "zstd" };
    if (std::none_of(
          std::begin(compressors), std::end(compressors), [&](const char * c) { return codec.compressor == c; }))
    {
      Fail(name,
           "'codec=" + text +
             "': Blosc has no compressor of this name; those that can be used: blosclz, lz4, lz4hc, zlib, zstd");
    }
  }
  for (const Known & known : all)
  {
    std::int64_t level = known.level;
    if (codecName != known.name)
    {
      continue;
    }
    if (colon != std::string::npos &&
        (!ParseZarrNumber(text.substr(colon + 1), level) || level < 1 || level > known.most))
    {
      Fail(name, "'codec=" + text + "': the level is an integer from 1 to " + std::to_string(known.most));
    }
    codec.kind = known.kind;
    codec.level = static_cast<int>(level);
    if (const std::string missing = FindMissingZarrLibrary(codec.kind); !missing.empty())
    {
      Fail(name, "'codec=" + text + "' needs the library " + missing + ", which this build does not have");
    }
    options.codecs.push_back(codec);
    return;
  }
  Fail(name,
       "'codec=" + text + "' is no codec that can be written; those that can: zstd, blosc, gzip, zlib, lz4, none");
}

ZarrReducer
ParseReducer(const std::string & name, const std::string & text)
{
  static const std::pair<const char *, ZarrReducer> reducers[] = {
    { "mean", ZarrReducer::Mean },   { "mode", ZarrReducer::Mode },     { "min", ZarrReducer::Minimum },
    { "max", ZarrReducer::Maximum }, { "median", ZarrReducer::Median }, { "gaussian", ZarrReducer::Gaussian }
  };
  for (const auto & known : reducers)
  {
    if (text == known.first)
    {
      return known.second;
    }
  }
  Fail(name, "'pyramid=" + text + "' is none of mean, mode, min, max, median, gaussian");
}

/** Axes of space that get half as many voxels in the next level. */
Coordinates
GetFactors(const ImageHeader & header)
{
  Coordinates factor = Coordinates::Filled(1);
  for (int a = 0; a < std::min(3, header.dimension); ++a)
  {
    factor[a] = header.extent[a] > 1 ? 2 : 1;
  }
  return factor;
}

/** Levels go on until one has so few voxels along x, y and z. */
constexpr std::int64_t LastLevelLength = 256;

std::vector<ZarrCodec>
GetDefaultCodecs(int version)
{
  ZarrCodec codec;
  codec.kind = version == 3 ? ZarrCodec::Kind::Zstd : ZarrCodec::Kind::Blosc;
  codec.level = version == 3 ? 3 : 5;
  if (!FindMissingZarrLibrary(codec.kind).empty())
  {
    codec.kind = ZarrCodec::Kind::Gzip;
    codec.level = 5;
  }
  return { codec };
}

/** The letters of the axes, x first; a channel that is a component is not among them. */
std::string
NameAxes(const std::string & file, const ImageHeader & header)
{
  std::string names =
    std::string(header.dimension == 5 ? "xyzct" : "xyzt").substr(0, static_cast<std::size_t>(header.dimension));
  if (header.axes.size() >= static_cast<std::size_t>(header.dimension) && header.components == 1)
  {
    names = header.axes.substr(0, static_cast<std::size_t>(header.dimension));
  }
  if (header.components > 1 && header.dimension > 3 && header.axes.size() > 3 && header.axes[3] == 'c' &&
      header.extent[3] > 1)
  {
    Fail(file, "OME-Zarr holds one axis of channels, the image has channels and components");
  }
  return names;
}

/** Voxels of a chunk along an axis of the file where nobody says. Few planes in a layer of chunks keep small what is in
 * memory at once. */
std::int64_t
ChooseChunk(const ImageHeader & header, int axis)
{
  if (header.extent[2] == 1)
  {
    return axis < 2 ? 512 : 1;
  }
  const ByteCount plane = ByteCount(header.extent[0]) * header.extent[1] * header.components *
                          static_cast<std::int64_t>(PixelSize(header.kind));
  const std::int64_t planes = plane.Get() <= std::int64_t{ 2 } << 20   ? 64
                              : plane.Get() <= std::int64_t{ 8 } << 20 ? 32
                                                                       : 16;
  return axis > 2 ? 1 : axis == 2 ? planes : planes == 64 ? 64 : 128;
}

/** The axes of NGFF, from the array's. */
OrderedJson
DescribeAxes(const ZarrArray & array)
{
  OrderedJson axes = OrderedJson::array();
  for (const std::string & name : array.names)
  {
    OrderedJson axis;
    axis["name"] = name;
    axis["type"] = name == "t" ? "time" : name == "c" ? "channel" : "space";
    if (name != "c")
    {
      axis["unit"] = name == "t" ? "second" : "millimeter";
    }
    axes.push_back(axis);
  }
  return axes;
}

ZarrLayout
LayOutLevel(const std::string & file, const ImageHeader & header, const ZarrOptions & options)
{
  ZarrLayout        layout;
  ZarrArray &       array = layout.array;
  const std::string axes = NameAxes(file, header);
  const bool        hasComponents = header.components > 1;
  array.version = options.version;
  array.kind = header.kind;
  array.bigEndian = IsBigEndianMachine();
  array.hasPrefix = options.version == 3;
  array.separator = '/';
  for (const std::vector<std::int64_t> * given : { &options.chunk, &options.shard })
  {
    if (given->size() > axes.size())
    {
      Fail(file,
           "chunks and shards of " + std::to_string(given->size()) + " axes are asked for, the image has " +
             std::to_string(axes.size()));
    }
  }
  // As NGFF orders them: time, channel, z, y, x.
  ZarrLevel outer;
  ZarrLevel inner;
  for (const char letter : { 't', 'c', 'z', 'y', 'x' })
  {
    const bool        isComponent = letter == 'c' && hasComponents;
    const std::size_t place = axes.find(letter);
    if (!isComponent && place == std::string::npos)
    {
      continue;
    }
    const int          axis = isComponent ? -1 : static_cast<int>(place);
    const std::int64_t extent = isComponent ? header.components : header.extent[axis];
    const auto         given = [&](const std::vector<std::int64_t> & lengths, std::int64_t otherwise) {
      return axis >= 0 && static_cast<std::size_t>(axis) < lengths.size() ? lengths[static_cast<std::size_t>(axis)]
                                                                                  : otherwise;
    };
    const std::int64_t asked = given(options.chunk, isComponent ? 1 : ChooseChunk(header, axis));
    const std::int64_t chunk = std::min(extent, asked);
    const std::int64_t length =
      header.extent[2] > 1 && ChooseChunk(header, 2) > 16 ? ThickShardLength : ThinShardLength;
    const std::int64_t most = axis == 0 || axis == 1 ? std::max<std::int64_t>(1, length / chunk) : 1;
    const std::int64_t shard = given(options.shard, most * asked);
    if (shard % asked != 0)
    {
      Fail(file,
           "a shard of " + std::to_string(shard) + " voxels along axis " + std::to_string(axis) +
             " is no multiple of a chunk of " + std::to_string(asked));
    }
    // Neither is larger than the image.
    const std::int64_t inShard = std::min(shard / asked, (extent + chunk - 1) / chunk);
    layout.fileAxis.push_back(isComponent ? 0 : axis + (hasComponents ? 1 : 0));
    array.names.emplace_back(1, letter);
    array.shape.push_back(extent);
    outer.chunk.push_back(inShard * chunk);
    inner.chunk.push_back(chunk);
    outer.order.push_back(static_cast<int>(outer.order.size()));
  }
  inner.order = outer.order;
  inner.codecs = options.hasCodec ? options.codecs : GetDefaultCodecs(options.version);
  for (ZarrCodec & codec : inner.codecs)
  {
    codec.typeSize = static_cast<int>(PixelSize(header.kind));
  }
  // A shard of one chunk is only a chunk with an index.
  if (options.version == 3 && options.hasShards && (outer.chunk != inner.chunk || !options.shard.empty()))
  {
    outer.isSharded = true;
    array.levels.push_back(outer);
  }
  array.levels.push_back(inner);
  ByteCount bytes(static_cast<std::int64_t>(PixelSize(header.kind)));
  for (const std::int64_t length : inner.chunk)
  {
    bytes = bytes * length;
  }
  if (bytes.Get() > std::int64_t{ 1 } << 30)
  {
    Fail(file, "chunks of more than 1 GiB are asked for");
  }
  return layout;
}

OrderedJson
DescribeCodec(const ZarrCodec & codec, int version)
{
  OrderedJson about;
  const auto  name = [&](const char * text) { about[version == 3 ? "name" : "id"] = text; };
  OrderedJson configuration = OrderedJson::object();
  switch (codec.kind)
  {
    case ZarrCodec::Kind::Blosc:
      name("blosc");
      configuration["cname"] = codec.compressor;
      configuration["clevel"] = codec.level;
      if (version == 3)
      {
        configuration["shuffle"] = codec.shuffle == 1 ? "shuffle" : "noshuffle";
        configuration["typesize"] = codec.typeSize;
      }
      else
      {
        configuration["shuffle"] = codec.shuffle;
      }
      configuration["blocksize"] = 0;
      break;
    case ZarrCodec::Kind::Zstd:
      name("zstd");
      configuration["level"] = codec.level;
      if (version == 3)
      {
        // In version 2 it is the default, and some readers do not know it.
        configuration["checksum"] = false;
      }
      break;
    case ZarrCodec::Kind::Lz4:
      name(version == 3 ? "numcodecs.lz4" : "lz4");
      configuration["acceleration"] = 1;
      break;
    case ZarrCodec::Kind::Gzip:
      name("gzip");
      configuration["level"] = codec.level;
      break;
    case ZarrCodec::Kind::Zlib:
      name(version == 3 ? "numcodecs.zlib" : "zlib");
      configuration["level"] = codec.level;
      break;
    case ZarrCodec::Kind::Crc32c:
      name("crc32c");
      break;
  }
  if (version == 3)
  {
    about["configuration"] = configuration;
  }
  else
  {
    about.update(configuration);
  }
  return about;
}

OrderedJson
DescribeDataset(const ZarrLayout & layout, const ImageHeader & header, const std::string & path)
{
  OrderedJson scale = OrderedJson::array();
  OrderedJson translation = OrderedJson::array();
  bool        isMoved = false;
  for (std::size_t i = 0; i < layout.array.names.size(); ++i)
  {
    const bool isChannel = layout.array.names[i] == "c";
    const int  axis = layout.fileAxis[i] - (header.components > 1 ? 1 : 0);
    scale.push_back(isChannel ? 1.0 : header.spacing[axis]);
    translation.push_back(isChannel ? 0.0 : header.origin[axis]);
    isMoved = isMoved || (!isChannel && header.origin[axis] != 0);
  }
  OrderedJson dataset;
  dataset["path"] = path;
  dataset["coordinateTransformations"] = OrderedJson::array({ { { "type", "scale" }, { "scale", scale } } });
  if (isMoved)
  {
    dataset["coordinateTransformations"].push_back({ { "type", "translation" }, { "translation", translation } });
  }
  return dataset;
}

std::string
ToText(const OrderedJson & json)
{
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

/** The layout of a level with the axes of an array that exists, in its order. */
ZarrLayout
MatchAxes(const ZarrLayout & layout, const ZarrImage & image)
{
  ZarrLayout        matched = layout;
  ZarrArray &       array = matched.array;
  const std::size_t axes = image.fileAxis.size();
  matched.fileAxis = image.fileAxis;
  array.names = image.array.names;
  array.shape.assign(axes, 1);
  for (std::size_t k = 0; k < array.levels.size(); ++k)
  {
    ZarrLevel & level = array.levels[k];
    level.chunk.assign(axes, 1);
    level.order.resize(axes);
    std::iota(level.order.begin(), level.order.end(), 0);
    for (std::size_t i = 0; i < axes; ++i)
    {
      const auto found = std::find(layout.fileAxis.begin(), layout.fileAxis.end(), image.fileAxis[i]);
      if (found != layout.fileAxis.end())
      {
        const auto from = static_cast<std::size_t>(found - layout.fileAxis.begin());
        array.shape[i] = layout.array.shape[from];
        level.chunk[i] = layout.array.levels[k].chunk[from];
      }
    }
  }
  return matched;
}

/** A pyramid whose levels have the axes of the first one, which is there. */
ZarrPyramid
MakeLevelsOf(const std::string & file, const ImageHeader & header, ZarrOptions options)
{
  const ZarrImage image = ZarrLevels(file, options.replacesLevels).GetImage();
  options.addsLevels = false;
  options.version = image.array.version;
  if (options.version == 2 && !options.shard.empty())
  {
    Fail(file, "OME-Zarr 0.4, which this store is, has no shards");
  }
  ZarrPyramid pyramid = MakeZarrPyramid(file, header, options);
  if (pyramid.levels.size() == 1)
  {
    Fail(file, "has " + std::to_string(LastLevelLength) + " voxels or fewer along x, y and z: it needs no levels");
  }
  for (ZarrLayout & layout : pyramid.levels)
  {
    layout = MatchAxes(layout, image);
  }
  return pyramid;
}

/** The options for labels in a store that exists. */
ZarrOptions
MakeOptionsOfLabels(const std::string & file, const ImageHeader & header, ZarrOptions options)
{
  const int version = CheckStoreOfLabels(file);
  if (IsFloatingPoint(header.kind) || header.components > 1)
  {
    Fail(file,
         "labels are integers of one component, not " +
           (header.components > 1 ? std::to_string(header.components) + " components of " : std::string()) +
           PixelTypeName(header.kind));
  }
  if (options.hasVersion && options.version != version)
  {
    Fail(file,
         std::string("OME-Zarr ") + (version == 2 ? "0.5" : "0.4") +
           " is asked for; the store, and so its labels, is OME-Zarr " + (version == 2 ? "0.4" : "0.5"));
  }
  if (version == 2 && !options.shard.empty())
  {
    Fail(file, "OME-Zarr 0.4, which the store is, has no shards");
  }
  if (options.reducer == ZarrReducer::Mean || options.reducer == ZarrReducer::Gaussian)
  {
    Fail(file,
         std::string("pyramid=") + NameOfReducer(options.reducer) +
           " makes values that are no labels; pyramid=mode does not");
  }
  options.version = version;
  return options;
}

} // namespace

const char *
NameOfReducer(ZarrReducer reducer)
{
  return reducer == ZarrReducer::Mean       ? "mean"
         : reducer == ZarrReducer::Mode     ? "mode"
         : reducer == ZarrReducer::Minimum  ? "min"
         : reducer == ZarrReducer::Maximum  ? "max"
         : reducer == ZarrReducer::Gaussian ? "gaussian"
                                            : "median";
}

std::shared_ptr<const ZarrOptions>
ParseLevelOptions(const std::string & name, const std::string & text, const std::string & reducer, bool replaces)
{
  auto options = std::make_shared<ZarrOptions>();
  for (std::size_t at = 0; at < text.size(); at = std::min(text.find(',', at), text.size() - 1) + 1)
  {
    for (const char * const word : { "0.4", "0.5", "pyramid=" })
    {
      if (text.compare(at, std::string(word).size(), word) == 0)
      {
        Fail(name, "'" + std::string(word) + "' is for new stores; levels of one that exists have its version");
      }
    }
  }
  *options = *ParseZarrOptions(name, (text.empty() ? "" : text + ",") + "pyramid=" + reducer);
  options->addsLevels = true;
  options->replacesLevels = replaces;
  return options;
}

std::shared_ptr<const ZarrOptions>
ParseZarrOptions(const std::string & name, const std::string & text)
{
  auto options = std::make_shared<ZarrOptions>();
  for (std::size_t at = 0; at <= text.size();)
  {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const std::size_t sign = part.find('=');
    const std::string key = part.substr(0, sign);
    const std::string value = sign == std::string::npos ? std::string() : part.substr(sign + 1);
    if (part == "0.4" || part == "0.5")
    {
      options->version = part == "0.4" ? 2 : 3;
      options->hasVersion = true;
    }
    else if (key == "chunks" && sign != std::string::npos)
    {
      options->chunk = ParseLengths(name, part, value);
    }
    else if (part == "shards=none")
    {
      options->hasShards = false;
    }
    else if (key == "shards" && sign != std::string::npos)
    {
      options->shard = ParseLengths(name, part, value);
    }
    else if (key == "pyramid" && sign != std::string::npos)
    {
      options->reducer = ParseReducer(name, value);
    }
    else if (key == "codec" && sign != std::string::npos)
    {
      ParseCodec(name, value, *options);
    }
    else
    {
      Fail(name,
           "'" + part +
             "' is none of 0.4, 0.5, chunks=XxYxZ, shards=XxYxZ, shards=none, codec=NAME[:LEVEL], pyramid=NAME");
    }
    at = end + 1;
  }
  if (options->version == 2 && !options->shard.empty())
  {
    Fail(name, "OME-Zarr 0.4 has no shards");
  }
  return options;
}

std::string
MakeArrayMetadata(const ZarrLayout & layout)
{
  const ZarrArray & array = layout.array;
  const bool        isReal = IsFloatingPoint(array.kind);
  OrderedJson       json;
  if (array.version == 2)
  {
    json["zarr_format"] = 2;
    json["shape"] = array.shape;
    json["chunks"] = array.levels.back().chunk;
    json["dtype"] = (PixelSize(array.kind) == 1 ? "|"
                     : array.bigEndian          ? ">"
                                                : "<") +
                    std::string(isReal                                ? "f"
                                : PixelTypeName(array.kind)[0] == 'u' ? "u"
                                                                      : "i") +
                    std::to_string(PixelSize(array.kind));
    json["compressor"] =
      array.levels.back().codecs.empty() ? OrderedJson() : DescribeCodec(array.levels.back().codecs[0], 2);
    json["fill_value"] = isReal ? OrderedJson(0.0) : OrderedJson(0);
    json["order"] = "C";
    json["filters"] = OrderedJson();
    json["dimension_separator"] = "/";
    return ToText(json);
  }
  const OrderedJson toBytes{ { "name", "bytes" },
                             { "configuration", { { "endian", array.bigEndian ? "big" : "little" } } } };
  OrderedJson       codecs = OrderedJson::array({ toBytes });
  for (const ZarrCodec & codec : array.levels.back().codecs)
  {
    codecs.push_back(DescribeCodec(codec, 3));
  }
  if (array.levels.front().isSharded)
  {
    OrderedJson little = toBytes;
    little["configuration"]["endian"] = "little";
    OrderedJson sharding;
    sharding["name"] = "sharding_indexed";
    sharding["configuration"]["chunk_shape"] = array.levels.back().chunk;
    sharding["configuration"]["codecs"] = codecs;
    sharding["configuration"]["index_codecs"] = OrderedJson::array({ little, { { "name", "crc32c" } } });
    sharding["configuration"]["index_location"] = "end";
    codecs = OrderedJson::array({ sharding });
  }
  json["zarr_format"] = 3;
  json["node_type"] = "array";
  json["shape"] = array.shape;
  json["data_type"] = (isReal                                ? "float"
                       : PixelTypeName(array.kind)[0] == 'u' ? "uint"
                                                             : "int") +
                      std::to_string(8 * PixelSize(array.kind));
  json["chunk_grid"]["name"] = "regular";
  json["chunk_grid"]["configuration"]["chunk_shape"] = array.levels.front().chunk;
  json["chunk_key_encoding"]["name"] = "default";
  json["chunk_key_encoding"]["configuration"]["separator"] = "/";
  json["fill_value"] = isReal ? OrderedJson(0.0) : OrderedJson(0);
  json["codecs"] = codecs;
  json["dimension_names"] = array.names;
  json["attributes"] = OrderedJson::object();
  return ToText(json);
}

ZarrPyramid
MakeZarrPyramid(const std::string & file, const ImageHeader & header, const ZarrOptions & given)
{
  if (given.addsLevels)
  {
    return MakeLevelsOf(file, header, given);
  }
  ZarrPyramid pyramid;
  pyramid.isLabels = !FindStoreOfLabels(file).empty();
  const ZarrOptions options = pyramid.isLabels ? MakeOptionsOfLabels(file, header, given) : given;
  pyramid.reducer = options.reducer;
  pyramid.headers.push_back(header);
  pyramid.levels.push_back(LayOutLevel(file, header, options));
  const bool hasComponents = header.components > 1;
  for (;;)
  {
    const ImageHeader & last = pyramid.headers.back();
    if (options.reducer == ZarrReducer::None ||
        std::max({ last.extent[0], last.extent[1], last.extent[2] }) <= LastLevelLength)
    {
      return pyramid;
    }
    const Coordinates  factor = GetFactors(last);
    const ZarrLayout & layout = pyramid.levels.back();
    for (std::size_t i = 0; i < layout.fileAxis.size(); ++i)
    {
      const int          axis = layout.fileAxis[i] - (hasComponents ? 1 : 0);
      const std::int64_t unit = layout.array.GetInnermost().chunk[i];
      if (axis >= 0 && factor[axis] == 2 && unit % 2 != 0 && unit < layout.array.shape[i])
      {
        Fail(file, "a pyramid needs an even number of voxels in chunks, not " + std::to_string(unit));
      }
    }
    ImageHeader next = last;
    Coordinates ofFile = factor;
    for (int a = 0; a < next.dimension; ++a)
    {
      next.extent[a] = (last.extent[a] + factor[a] - 1) / factor[a];
      next.spacing[a] = last.spacing[a] * static_cast<double>(factor[a]);
      next.origin[a] = last.origin[a] + last.spacing[a] * static_cast<double>(factor[a] - 1) / 2;
    }
    if (hasComponents)
    {
      ofFile[0] = 1;
      std::copy_n(factor.axis, MaxDimension - 1, ofFile.axis + 1);
    }
    pyramid.factors.push_back(ofFile);
    pyramid.headers.push_back(next);
    pyramid.levels.push_back(LayOutLevel(file, next, options));
  }
}

std::string
MakeGroupMetadata(const ZarrPyramid & pyramid, const std::string & name)
{
  const ZarrLayout &  layout = pyramid.levels.front();
  const ImageHeader & header = pyramid.headers.front();
  OrderedJson         datasets = OrderedJson::array();
  for (std::size_t i = 0; i < pyramid.levels.size(); ++i)
  {
    datasets.push_back(DescribeDataset(layout, pyramid.headers[i], std::to_string(i)));
  }
  OrderedJson multiscale;
  if (layout.array.version == 2)
  {
    multiscale["version"] = "0.4";
  }
  multiscale["name"] = name;
  multiscale["axes"] = DescribeAxes(layout.array);
  multiscale["datasets"] = datasets;
  if (pyramid.levels.size() > 1)
  {
    multiscale["type"] = NameOfReducer(pyramid.reducer);
  }
  OrderedJson ome;
  if (layout.array.version == 3)
  {
    ome["version"] = "0.5";
  }
  if (pyramid.isLabels)
  {
    OrderedJson & label = ome["image-label"];
    if (layout.array.version == 2)
    {
      label["version"] = "0.4";
    }
    label["source"]["image"] = "../../";
  }
  ome["multiscales"] = OrderedJson::array({ multiscale });
  if (const auto omero = header.metadata.find("omero"); omero != header.metadata.end())
  {
    try
    {
      ome["omero"] = ParseZarrJson(name, omero->second);
    }
    catch (const FileError &)
    {}
  }
  if (layout.array.version == 2)
  {
    return ToText(ome);
  }
  OrderedJson group;
  group["zarr_format"] = 3;
  group["node_type"] = "group";
  group["attributes"]["ome"] = ome;
  return ToText(group);
}

} // namespace chunkwise::files
