/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"

#include <algorithm>
#include <set>

namespace chunkwise::files
{

namespace
{

bool
IsTrue(const std::string & value)
{
  return !value.empty() && (value[0] == 'T' || value[0] == 't' || value[0] == '1');
}

/** Fields that say what the header says elsewhere, or that MetaIO itself reads: no text of a user's. */
const std::set<std::string> &
GetOwnFields()
{
  static const std::set<std::string> fields{ "objecttype",
                                             "objectsubtype",
                                             "transformtype",
                                             "ndims",
                                             "binarydata",
                                             "binarydatabyteordermsb",
                                             "elementbyteordermsb",
                                             "compresseddata",
                                             "compresseddatasize",
                                             "compressionlevel",
                                             "transformmatrix",
                                             "rotation",
                                             "orientation",
                                             "offset",
                                             "position",
                                             "origin",
                                             "centerofrotation",
                                             "anatomicalorientation",
                                             "elementspacing",
                                             "elementsize",
                                             "elementorigin",
                                             "elementdirection",
                                             "elementnumberofchannels",
                                             "dimsize",
                                             "headersize",
                                             "elementtype",
                                             "elementmin",
                                             "elementmax",
                                             "elementdatafile",
                                             "sequenceid",
                                             "id",
                                             "parentid",
                                             "color" };
  return fields;
}

const char *
MetaTypeName(PixelType kind)
{
  static const char * const names[NumberOfPixelTypes] = { "MET_UCHAR", "MET_CHAR",  "MET_USHORT",     "MET_SHORT",
                                                          "MET_UINT",  "MET_INT",   "MET_ULONG_LONG", "MET_LONG_LONG",
                                                          "MET_FLOAT", "MET_DOUBLE" };
  return names[static_cast<int>(kind)];
}

/** The kind of MetaIO's type: its long has 4 bytes wherever it is read. */
bool
FindKind(std::string type, PixelType & kind)
{
  type = type == "MET_LONG" ? "MET_INT" : type == "MET_ULONG" ? "MET_UINT" : type;
  for (int i = 0; i < NumberOfPixelTypes; ++i)
  {
    kind = static_cast<PixelType>(i);
    if (type == MetaTypeName(kind))
    {
      return true;
    }
  }
  return false;
}

/** The fields of a header by name, and the texts among them that are a user's. */
struct MetaFields
{
  std::map<std::string, std::string> values;
  std::map<std::string, std::string> texts;

  /** The first of `names` that is there; empty if none is. */
  std::string
  Get(std::initializer_list<const char *> names) const
  {
    for (const char * const name : names)
    {
      const auto field = values.find(name);
      if (field != values.end())
      {
        return field->second;
      }
    }
    return std::string();
  }
};

MetaFields
ReadMetaFields(const std::string & file, LineReader & reader)
{
  MetaFields  fields;
  std::string line;
  while (fields.values.count("ElementDataFile") == 0)
  {
    if (!reader.Next(line))
    {
      Fail(file, "its header is not complete: it has no ElementDataFile");
    }
    // MetaIO takes a colon as well.
    const auto equals = line.find('=');
    const auto separator = equals != std::string::npos ? equals : line.find(':');
    if (separator == std::string::npos)
    {
      if (Trim(line).empty())
      {
        continue;
      }
      Fail(file, "is no MetaImage: a line of its header is \"" + line.substr(0, 40) + "\"");
    }
    const std::string key = Trim(line.substr(0, separator));
    const std::string value = Trim(line.substr(separator + 1));
    fields.values[key] = value;
    if (GetOwnFields().count(Lower(key)) == 0)
    {
      fields.texts[key] = value;
    }
  }
  return fields;
}

/** Size, type and geometry, as MetaIO and ITK understand them. */
ImageHeader
ReadMetaHeader(const std::string & file, const MetaFields & fields)
{
  ImageHeader       header;
  const std::string object = fields.Get({ "ObjectType" });
  if (!object.empty() && Lower(object) != "image")
  {
    Fail(file, "is a " + object + " of MetaIO, no image");
  }
  // MetaIO itself has at most ten axes.
  const std::int64_t axes = ParseInteger(file, "NDims", fields.Get({ "NDims" }), 1, 10);
  const auto         count = static_cast<std::size_t>(axes);
  const auto         sizes = ParseIntegers(file, "DimSize", fields.Get({ "DimSize" }), count);
  for (std::size_t a = MaxDimension; a < count; ++a)
  {
    if (sizes[a] != 1)
    {
      Fail(file, "has " + std::to_string(axes) + " dimensions, there may be 2 to 5");
    }
  }
  if (axes < 2)
  {
    Fail(file, "has 1 dimension, there may be 2 to 5");
  }
  header.dimension = static_cast<int>(std::min<std::int64_t>(axes, MaxDimension));
  const auto numbers = [&](std::initializer_list<const char *> names, std::size_t n, auto && use) {
    const std::string text = fields.Get(names);
    if (!text.empty())
    {
      use(ParseNumbers(file, *names.begin(), text, n));
    }
  };
  numbers({ "ElementSpacing", "ElementSize" }, count, [&](const std::vector<double> & spacing) {
    std::copy_n(spacing.begin(), header.dimension, header.spacing);
  });
  numbers({ "Offset", "Position", "Origin" }, count, [&](const std::vector<double> & origin) {
    std::copy_n(origin.begin(), header.dimension, header.origin);
  });
  numbers({ "TransformMatrix", "Rotation", "Orientation" }, count * count, [&](const std::vector<double> & matrix) {
    for (int a = 0; a < header.dimension; ++a)
    {
      for (int row = 0; row < header.dimension; ++row)
      {
        // A row of the file is the direction of an axis.
        header.direction[row][a] = matrix[static_cast<std::size_t>(a) * count + static_cast<std::size_t>(row)];
      }
    }
  });
  for (int a = 0; a < header.dimension; ++a)
  {
    header.extent[a] = sizes[static_cast<std::size_t>(a)];
  }
  const std::string channels = fields.Get({ "ElementNumberOfChannels" });
  if (!channels.empty())
  {
    header.components = ParseInteger(file, "ElementNumberOfChannels", channels, 1);
  }
  const std::string type = fields.Get({ "ElementType" });
  // "MET_FLOAT_ARRAY" is the type of pixels with components; ElementNumberOfChannels says how many.
  const std::size_t array = type.rfind("_ARRAY");
  if (!FindKind(array != std::string::npos && array + 6 == type.size() ? type.substr(0, array) : type, header.kind))
  {
    Fail(file, "has voxels of " + (type.empty() ? "no type" : type) + ", which is no type that can be used");
  }
  // The texts are what the file says, not what ITK makes of it.
  header.metadata = fields.texts;
  CountVoxels(file, header);
  return header;
}

} // namespace

VoxelPlace
LocateMetaImage(const std::string & file)
{
  VoxelPlace       place;
  const Descriptor descriptor = Descriptor::OpenToRead(file);
  LineReader       reader(descriptor);
  const MetaFields fields = ReadMetaFields(file, reader);
  place.header = ReadMetaHeader(file, fields);
  const std::string binary = fields.Get({ "BinaryData" });
  const bool        isBinary = binary.empty() || IsTrue(binary);
  const bool        isMsb = IsTrue(fields.Get({ "BinaryDataByteOrderMSB", "ElementByteOrderMSB" }));
  const bool        isCompressed = IsTrue(fields.Get({ "CompressedData" }));
  const PixelType   kind = place.header.kind;
  place.coding.kind = kind;
  place.codec = !isBinary ? Codec::Text : isCompressed ? Codec::Deflate : Codec::Raw;
  place.coding.swaps = isBinary && isMsb != IsBigEndianMachine();
  place.files.emplace_back(file);
  const std::string dataFile = fields.Get({ "ElementDataFile" });
  if (Lower(dataFile) == "local")
  {
    place.data = file;
    place.offset = reader.GetOffset();
  }
  else
  {
    place.data = FindDataFile(file, dataFile);
    place.files.push_back(place.data);
  }
  const std::string  skipped = fields.Get({ "HeaderSize" });
  const std::int64_t headerSize = skipped.empty() ? 0 : ParseInteger(file, "HeaderSize", skipped, -1);
  if (headerSize == -1 && place.codec == Codec::Raw)
  {
    const auto          bytes = static_cast<std::uint64_t>(CountVoxels(file, place.header)) * PixelSize(kind);
    const std::uint64_t size = Descriptor::OpenToRead(place.data).GetSize();
    place.offset = size - std::min(size, bytes);
  }
  else if (headerSize == -1)
  {
    Fail(file, "its HeaderSize of -1 cannot be used with compressed voxels or text");
  }
  else if (headerSize > 0)
  {
    place.offset = static_cast<std::uint64_t>(headerSize);
  }
  return place;
}

VoxelLayout
LayOutMetaImage(const ImageHeader & header, const std::string & file, const std::string & data, bool compress)
{
  const int   n = header.dimension;
  std::string matrix;
  std::string origin;
  std::string center;
  std::string spacing;
  std::string size;
  for (int a = 0; a < n; ++a)
  {
    // A row of the file is the direction of an axis.
    for (int row = 0; row < n; ++row)
    {
      matrix += " " + Shortest(header.direction[row][a]);
    }
    origin += " " + Shortest(header.origin[a]);
    center += " 0";
    spacing += " " + Shortest(header.spacing[a]);
    size += " " + std::to_string(header.extent[a]);
  }
  VoxelLayout layout;
  layout.detached = !data.empty();
  layout.codec = compress ? Codec::Deflate : Codec::Raw;
  layout.gzip = false;
  std::string & text = layout.header;
  text = "ObjectType = Image\nNDims = " + std::to_string(n) +
         "\nBinaryData = True\nBinaryDataByteOrderMSB = " + (IsBigEndianMachine() ? "True" : "False") +
         "\nCompressedData = " + (compress ? "True" : "False") + "\n";
  if (compress)
  {
    text += "CompressedDataSize = ";
    layout.sizeAt = text.size();
    layout.sizeDigits = 19;
    text += std::string(19, '0') + "\n";
  }
  text += "TransformMatrix =" + matrix + "\nOffset =" + origin + "\nCenterOfRotation =" + center + "\n";
  text += "ElementSpacing =" + spacing + "\nDimSize =" + size + "\n";
  for (const auto & [key, value] : header.metadata)
  {
    const bool canHold = !key.empty() && key.find_first_of(" \t\r\n=") == std::string::npos && !Trim(value).empty() &&
                         value.find_first_of("\r\n") == std::string::npos && GetOwnFields().count(Lower(key)) == 0;
    if (canHold)
    {
      text += key + " = " + value + "\n";
    }
    else
    {
      layout.losses.push_back("the text of " + key);
    }
  }
  if (header.components > 1)
  {
    text += "ElementNumberOfChannels = " + std::to_string(header.components) + "\n";
  }
  text += std::string("ElementType = ") + MetaTypeName(header.kind) +
          "\nElementDataFile = " + (data.empty() ? "LOCAL" : NameOfDataFile(file, data)) + "\n";
  return layout;
}

} // namespace chunkwise::files
